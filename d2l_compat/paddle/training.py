"""``Module``, ``Classifier``, ``DataModule`` and ``Trainer``: D2L 1.0's design of training code."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.io import DataLoader, TensorDataset
from paddle.nn import functional as F

from d2l_compat._shared import training as shared
from d2l_compat.paddle import devices
from d2l_compat.paddle._arrays import arrays

__all__ = ["Classifier", "DataModule", "Module", "Trainer", "nn_Module"]

nn_Module = nn.Layer


class Module(shared.Steps, nn.Layer):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``."""

    def configure_optimizers(self) -> paddle.optimizer.Optimizer:
        """Return stochastic gradient descent with the learning rate ``self.lr``."""
        return paddle.optimizer.SGD(self.lr, parameters=self.parameters())

    def apply_init(self, inputs: Any, init: Any = None) -> None:
        """Call the model once, to infer all sizes; then apply ``init`` to each layer of ``self.net``."""
        self.forward(*inputs)
        if init is not None:
            self.net.apply(init)

    def _apply(self, *args: Any, **kwargs: Any) -> None:
        with remove_empty_buffers(self):
            super()._apply(*args, **kwargs)


@contextmanager
def remove_empty_buffers(layer: nn.Layer) -> Iterator[None]:
    """Remove buffers without memory from ``layer``, so that it can be moved; restore them afterwards.

    Paddle cannot move such a buffer to a device or a dtype, and has one in each recurrent layer:
    the state of its dropout, until cuDNN fills it.
    """
    removed = [
        (part, name, buffer)
        for part in layer.sublayers(include_self=True)
        for name, buffer in part._buffers.items()
        if buffer is not None and not buffer._is_initialized()
    ]
    for part, name, _ in removed:
        del part._buffers[name]
    try:
        yield
    finally:
        for part, name, buffer in removed:
            part._buffers[name] = buffer


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that return logits, with classes on the last axis."""

    def accuracy(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the share of rows whose greatest logit is at the label; if not ``averaged``, 0 or 1 for each row."""
        arrays.check_labels(Y_hat, Y)
        hits = (_to_rows(Y_hat).argmax(axis=1) == Y.flatten().astype("int64")).astype("float32")
        return hits.mean() if averaged else hits

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the mean cross-entropy of Y_hat (..., classes) and Y (...); if not ``averaged``, one per label."""
        arrays.check_labels(Y_hat, Y)
        losses = F.cross_entropy(_to_rows(Y_hat), Y.flatten().astype("int64"), reduction="none")
        return losses.mean() if averaged else losses

    def layer_summary(self, X_shape: tuple[int, ...]) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = paddle.randn(X_shape)
        for layer in self.net:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {X.shape}")


def _to_rows(logits: Tensor) -> Tensor:
    return logits.reshape([-1, logits.shape[-1]])


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> DataLoader:
        """Return batches of ``self.batch_size`` rows from ``indices``, shuffled for training."""
        dataset = TensorDataset([tensor[indices] for tensor in tensors])
        return make_loader(dataset, self.batch_size, train)


def make_loader(dataset: Any, batch_size: int, shuffle: bool) -> DataLoader:
    """Return a loader that runs in this process, and shuffles with NumPy's global generator."""
    # Paddle accepts only Python's own int.
    return DataLoader(dataset, batch_size=operator.index(batch_size), shuffle=shuffle)


class Trainer(shared.Trainer):
    """Training of a :class:`Module` on a :class:`DataModule`, epoch by epoch."""

    devices = devices

    def prepare_model(self, model: Any) -> None:
        """Attach ``model`` to this trainer, and move it to the trainer's device."""
        super().prepare_model(model)
        if self.gpus:
            model.to(self.gpus[0])

    def prepare_batch(self, batch: Any) -> Any:
        """Return ``batch`` on the model's device."""
        return [tensor.to(self.gpus[0]) for tensor in batch] if self.gpus else batch

    def _set_training(self, is_training: bool) -> None:
        """Put the model into training or evaluation mode."""
        self.model.train() if is_training else self.model.eval()

    def _step(self, batch: Any) -> None:
        """Train on one batch: compute the loss and its gradients, and update the parameters."""
        loss = self.model.training_step(batch)
        self.optim.clear_grad()
        loss.backward()
        if self.gradient_clip_val > 0:
            self.clip_gradients(self.gradient_clip_val, self.model)
        self.optim.step()

    def _validate(self, batch: Any) -> None:
        """Call the model's ``validation_step`` without gradients."""
        with paddle.no_grad():
            self.model.validation_step(batch)

    def clip_gradients(self, grad_clip_val: float, model: nn.Layer) -> None:
        """Scale the gradients in place so that their joint norm is at most ``grad_clip_val``."""
        clip_gradients(model, grad_clip_val)


def clip_gradients(model: nn.Layer, norm: float) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), norm)
