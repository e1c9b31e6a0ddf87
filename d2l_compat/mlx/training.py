"""``Module``, ``Classifier``, ``DataModule`` and ``Trainer``: D2L 1.0's design of training code."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn, optimizers

from d2l_compat._shared import training as shared
from d2l_compat._shared.data.loader import Loader, Rows
from d2l_compat.mlx import devices
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._lazy import infer_sizes

__all__ = ["Classifier", "DataModule", "Module", "Trainer"]


class Module(shared.Steps, nn.Module):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hparams":  # MLX would register its arrays as parameters a second time
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def __call__(self, X: mx.array, *args: Any) -> Any:
        """Call ``forward``."""
        return self.forward(X, *args)

    def configure_optimizers(self) -> optimizers.Optimizer:
        """Return stochastic gradient descent with the learning rate ``self.lr``."""
        return optimizers.SGD(learning_rate=self.lr)

    def apply_init(self, inputs: Any, init: Any = None) -> None:
        """Call the model once, to infer all sizes; then apply ``init`` to each layer of ``self.net``."""
        self(*inputs)
        if init is not None:
            self.net.apply_to_modules(lambda _, layer: init(layer))


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that return logits, with classes on the last axis."""

    def accuracy(self, Y_hat: mx.array, Y: mx.array, averaged: bool = True) -> mx.array:
        """Return the share of rows whose greatest logit is at the label; if not ``averaged``, 0 or 1 for each row."""
        arrays.check_labels(Y_hat, Y)
        hits = (Y_hat.flatten(0, -2).argmax(axis=1) == Y.flatten()).astype(mx.float32)
        return hits.mean() if averaged else hits

    def loss(self, Y_hat: mx.array, Y: mx.array, averaged: bool = True) -> mx.array:
        """Return the cross-entropy of logits (..., classes) and labels (...).

        The loss is the mean, or one per label if not ``averaged``.
        """
        arrays.check_labels(Y_hat, Y)
        logits = Y_hat.reshape(-1, Y_hat.shape[-1])
        reduction: Any = "mean" if averaged else "none"
        return nn.losses.cross_entropy(logits, Y.flatten().astype(mx.int32), reduction=reduction)

    def layer_summary(self, X_shape: tuple[int, ...]) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = mx.random.normal(X_shape)
        for layer in self.net.layers:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {X.shape}")


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> Loader:
        """Return batches of ``self.batch_size`` rows from ``indices``, shuffled for training."""
        selected = [tensor[indices] for tensor in tensors]

        def take(rows: Rows) -> tuple[mx.array, ...]:
            return tuple(tensor[mx.array(rows)] for tensor in selected)

        return Loader(take, len(selected[0]), self.batch_size, shuffle if train else None)


class Trainer(shared.Trainer):
    """The training of a :class:`Module` on a :class:`DataModule`, epoch by epoch.

    With ``num_gpus=0`` the model is trained on MLX's default device.
    """

    devices = devices

    def run_epochs(self) -> None:
        batch = next(iter(self.train_dataloader), None)
        if batch is not None:
            infer_sizes(self.model, lambda: self.model(*self.prepare_batch(batch)[:-1]))
        with self._on_device():
            super().run_epochs()

    def _on_device(self) -> AbstractContextManager[Any]:
        return mx.stream(self.gpus[0]) if self.gpus else nullcontext()

    def _set_training(self, is_training: bool) -> None:
        """Put the model in training or in evaluation mode."""
        self.model.train(is_training)

    def _step(self, batch: Any) -> None:
        """Do one step of training: compute the loss and its gradients, and update the parameters."""
        _, gradients = nn.value_and_grad(self.model, self.model.training_step)(batch)
        if self.gradient_clip_val > 0:
            gradients = self.clip_gradients(self.gradient_clip_val, gradients)
        self.optim.update(self.model, gradients)
        # Computed now, since otherwise the graphs of all steps would accumulate until the end.
        mx.eval(self.model.parameters(), self.optim.state)

    def clip_gradients(self, grad_clip_val: float, grads: Any) -> Any:
        """Scale the gradients down so that their joint norm is at most ``grad_clip_val``."""
        return clip_gradients(grads, grad_clip_val)


def clip_gradients(gradients: Any, max_norm: float) -> Any:
    return optimizers.clip_grad_norm(gradients, max_norm)[0]


def shuffle(rows: Rows) -> Rows:
    """Return ``rows`` in a random order, drawn by ``mx.random``."""
    return rows[np.array(mx.random.permutation(len(rows)))]
