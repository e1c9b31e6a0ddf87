"""``Module``, ``Classifier``, ``DataModule`` and ``Trainer``: D2L 1.0's design of training code."""

import math
from collections.abc import Iterator
from typing import Any

from mxnet import Context, autograd, gluon, np, npx
from mxnet.gluon import nn

from d2l_compat._shared import training as shared
from d2l_compat.mxnet import devices
from d2l_compat.mxnet._arrays import arrays

__all__ = ["Classifier", "DataModule", "Module", "Trainer", "nn_Module"]

nn_Module = nn.Block


class Module(shared.Steps, nn.Block):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``."""

    def configure_optimizers(self) -> Any:
        """Return stochastic gradient descent with the learning rate ``self.lr``."""
        parameters = self.parameters()
        if isinstance(parameters, list):
            return _SGD(parameters, self.lr)
        return gluon.Trainer(parameters, "sgd", {"learning_rate": self.lr})

    def parameters(self) -> Any:
        """Return Gluon's parameters, or for a model without them, :meth:`get_scratch_params`."""
        parameters = self.collect_params()  # a model from scratch may return a list
        has_gluon_parameters = hasattr(parameters, "keys") and parameters.keys()
        return parameters if has_gluon_parameters else self.get_scratch_params()

    def get_scratch_params(self) -> list[np.ndarray]:
        """Return the arrays among the attributes of this module and of its submodules."""
        return [array for _, _, array in self._find_scratch_params()]

    def set_scratch_params_device(self, device: Context) -> None:
        """Move the arrays of :meth:`get_scratch_params` to another device, and attach gradients there."""
        for owner, name, array in self._find_scratch_params():
            array = array.as_in_ctx(device)
            array.attach_grad()
            setattr(owner, name, array)

    def _find_scratch_params(self) -> Iterator[tuple["Module", str, np.ndarray]]:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                yield self, name, value
            for module in value if isinstance(value, list) else [value]:
                if isinstance(module, Module):
                    yield from module._find_scratch_params()


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that return logits, with classes on the last axis."""

    def accuracy(self, Y_hat: np.ndarray, Y: np.ndarray, averaged: bool = True) -> np.ndarray:
        """Return the share of rows whose greatest logit is at the label; if not ``averaged``, 0 or 1 for each row."""
        arrays.check_labels(Y_hat, Y)
        predictions = Y_hat.reshape(-1, Y_hat.shape[-1]).argmax(axis=1)
        hits = (predictions == Y.reshape(-1).astype(predictions.dtype)).astype("float32")
        return hits.mean() if averaged else hits

    def loss(self, Y_hat: np.ndarray, Y: np.ndarray, averaged: bool = True) -> np.ndarray:
        """Return the mean cross-entropy of Y_hat (..., classes) and Y (...); if not ``averaged``, one per label."""
        arrays.check_labels(Y_hat, Y)
        losses = cross_entropy(Y_hat, Y).reshape(-1)
        return losses.mean() if averaged else losses

    def layer_summary(self, X_shape: tuple[int, ...]) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = np.random.randn(*X_shape)
        for layer in self.net:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {X.shape}")


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> gluon.data.DataLoader:
        """Return batches of ``self.batch_size`` rows from ``indices``, shuffled for training."""
        dataset = gluon.data.ArrayDataset(*[_to_numpy(tensor)[indices] for tensor in tensors])
        return gluon.data.DataLoader(dataset, self.batch_size, shuffle=train)


class Trainer(shared.Trainer):
    """Training of a :class:`Module` on a :class:`DataModule`, epoch by epoch."""

    devices = devices

    def prepare_model(self, model: Any) -> None:
        """Attach ``model`` to this trainer, and move it to the trainer's device."""
        super().prepare_model(model)
        if self.gpus:
            # A model's own `collect_params` may return a list.
            nn.Block.collect_params(model).reset_ctx(self.gpus[0])
            model.set_scratch_params_device(self.gpus[0])

    def prepare_batch(self, batch: Any) -> Any:
        """Return ``batch`` on the model's device."""
        return [tensor.as_in_ctx(self.gpus[0]) for tensor in batch] if self.gpus else batch

    def _step(self, batch: Any) -> None:
        """Train on one batch: compute the loss and its gradients, and update the parameters."""
        with autograd.record():
            loss = self.model.training_step(batch)
        loss.backward()
        if self.gradient_clip_val > 0:
            self.clip_gradients(self.gradient_clip_val, self.model)
        self.optim.step(1)  # the loss is a mean already

    def clip_gradients(self, grad_clip_val: float, model: nn.Block) -> None:
        """Scale the gradients in place so that their joint norm is at most ``grad_clip_val``."""
        clip_gradients(model, grad_clip_val)


def clip_gradients(model: nn.Block, max_norm: float) -> None:
    clip_norm(get_gradients(model), max_norm)


def get_gradients(model: nn.Block) -> list[np.ndarray]:
    """Return the gradients of a model's parameters, or of the arrays of a model from scratch."""
    parameters = getattr(model, "parameters", model.collect_params)()
    if isinstance(parameters, list):
        return [param.grad for param in parameters]
    return [param.grad() for param in parameters.values() if param.grad_req != "null"]


def clip_norm(gradients: list[np.ndarray], max_norm: float) -> None:
    """Scale the gradients in place so that their joint norm is at most ``max_norm``."""
    norm = math.sqrt(sum((gradient**2).sum() for gradient in gradients))
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm


def cross_entropy(Y_hat: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the cross-entropy of each label, for logits (..., classes) and labels (...)."""
    return -npx.pick(npx.log_softmax(Y_hat, axis=-1), Y, axis=-1)


def _to_numpy(tensor: Any) -> Any:
    # A data loader stacks rows of NumPy arrays at once, but rows of MXNet arrays one by one.
    return tensor.asnumpy() if isinstance(tensor, np.ndarray) else tensor


class _SGD:
    """Gradient descent for arrays that are not Parameters, with the ``step`` of ``gluon.Trainer``."""

    def __init__(self, parameters: list[np.ndarray], lr: float) -> None:
        self.parameters = parameters
        self.lr = lr

    def step(self, batch_size: int) -> None:
        for parameter in self.parameters:
            parameter -= self.lr / batch_size * parameter.grad
