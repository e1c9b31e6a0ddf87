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
        """Stochastic gradient descent, at the learning rate ``self.lr``."""
        parameters = self.parameters()
        if isinstance(parameters, list):
            return _SGD(parameters, self.lr)
        return gluon.Trainer(parameters, "sgd", {"learning_rate": self.lr})

    def parameters(self) -> Any:
        """Gluon's parameters; or, of a model without them, :meth:`get_scratch_params`."""
        parameters = self.collect_params()  # a model from scratch may give a list
        has_gluons = hasattr(parameters, "keys") and parameters.keys()
        return parameters if has_gluons else self.get_scratch_params()

    def get_scratch_params(self) -> list[np.ndarray]:
        """The arrays among the attributes of this module, and of the modules in it."""
        return [array for _, _, array in self._scratch()]

    def set_scratch_params_device(self, device: Context) -> None:
        """Put these arrays on another device, with room for gradients."""
        for owner, name, array in self._scratch():
            moved = array.as_in_ctx(device)
            moved.attach_grad()
            setattr(owner, name, moved)

    def _scratch(self) -> Iterator[tuple["Module", str, np.ndarray]]:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                yield self, name, value
            for module in value if isinstance(value, list) else [value]:
                if isinstance(module, Module):
                    yield from module._scratch()


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that give logits, over classes on the last axis."""

    def accuracy(self, Y_hat: np.ndarray, Y: np.ndarray, averaged: bool = True) -> np.ndarray:
        """The share of rows whose greatest logit is at the label; or, not averaged, 0 or 1 each."""
        arrays.check_labels(Y_hat, Y)
        guesses = Y_hat.reshape(-1, Y_hat.shape[-1]).argmax(axis=1)
        hits = (guesses == Y.reshape(-1).astype(guesses.dtype)).astype("float32")
        return hits.mean() if averaged else hits

    def loss(self, Y_hat: np.ndarray, Y: np.ndarray, averaged: bool = True) -> np.ndarray:
        """Cross-entropy of logits (..., classes) and labels (...), the mean or one each."""
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
        """Batches of ``self.batch_size`` rows out of ``indices``, shuffled for training."""
        dataset = gluon.data.ArrayDataset(*(_in_numpy(tensor)[indices] for tensor in tensors))
        return gluon.data.DataLoader(dataset, self.batch_size, shuffle=train)


class Trainer(shared.Trainer):
    """Fits a :class:`Module` to a :class:`DataModule`, epoch by epoch."""

    devices = devices

    def prepare_model(self, model: Any) -> None:
        """Make ``model`` this trainer's, on its device."""
        super().prepare_model(model)
        if self.gpus:
            nn.Block.collect_params(model).reset_ctx(self.gpus[0])  # a model's own may be a list
            model.set_scratch_params_device(self.gpus[0])

    def prepare_batch(self, batch: Any) -> Any:
        """``batch`` on the model's device."""
        return [tensor.as_in_ctx(self.gpus[0]) for tensor in batch] if self.gpus else batch

    def _step(self, batch: Any) -> None:
        """A step of training: the loss of a batch, its gradients, and the optimizer."""
        with autograd.record():
            loss = self.model.training_step(batch)
        loss.backward()
        if self.gradient_clip_val > 0:
            self.clip_gradients(self.gradient_clip_val, self.model)
        self.optim.step(1)  # the loss is a mean already

    def clip_gradients(self, grad_clip_val: float, model: nn.Block) -> None:
        """Shorten the gradients so that all together have at most the norm ``grad_clip_val``."""
        clip_gradients(model, grad_clip_val)


def clip_gradients(model: nn.Block, norm: float) -> None:
    shorten(gradients_of(model), norm)


def gradients_of(model: nn.Block) -> list[np.ndarray]:
    """Of its parameters, or of a model without them, of the arrays that it has instead."""
    parameters = model.parameters() if isinstance(model, Module) else model.collect_params()
    if isinstance(parameters, list):
        return [parameter.grad for parameter in parameters]
    return [p.grad() for p in parameters.values() if p.grad_req != "null"]


def shorten(gradients: list[np.ndarray], norm: float) -> None:
    """In place, so that all together have at most this norm."""
    length = math.sqrt(sum((gradient**2).sum() for gradient in gradients))
    if length > norm:
        for gradient in gradients:
            gradient *= norm / length


def cross_entropy(Y_hat: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Of logits (..., classes) and labels (...), each label's own."""
    return -npx.pick(npx.log_softmax(Y_hat, axis=-1), Y, axis=-1)


def _in_numpy(tensor: Any) -> Any:
    # A loader puts NumPy's rows together in one go, and MXNet's one by one.
    return tensor.asnumpy() if isinstance(tensor, np.ndarray) else tensor


class _SGD:
    """Gradient descent for arrays that are no Parameters; it steps as ``gluon.Trainer`` does."""

    def __init__(self, parameters: list[np.ndarray], lr: float) -> None:
        self.parameters, self.lr = parameters, lr

    def step(self, batch_size: int) -> None:
        for parameter in self.parameters:
            parameter -= self.lr / batch_size * parameter.grad
