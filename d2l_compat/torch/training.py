"""``Module``, ``Classifier``, ``DataModule`` and ``Trainer``: D2L 1.0's design of training code."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from d2l_compat._shared import training as shared
from d2l_compat.torch import devices
from d2l_compat.torch._arrays import arrays

__all__ = ["Classifier", "DataModule", "Module", "Trainer", "nn_Module"]

nn_Module = nn.Module


class Module(shared.Steps, nn.Module):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return stochastic gradient descent with the learning rate ``self.lr``."""
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def apply_init(self, inputs: Any, init: Any = None) -> None:
        """Call the model once, to infer all sizes; then apply ``init`` to each layer of ``self.net``."""
        self.forward(*inputs)
        if init is not None:
            self.net.apply(init)


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that return logits, with classes on the last axis."""

    def accuracy(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the share of rows whose greatest logit is at the label; if not ``averaged``, 0 or 1 for each row."""
        arrays.check_labels(Y_hat, Y)
        hits = (Y_hat.flatten(0, -2).argmax(dim=1) == Y.flatten()).float()
        return hits.mean() if averaged else hits

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the mean cross-entropy of Y_hat (..., classes) and Y (...); if not ``averaged``, one per label."""
        arrays.check_labels(Y_hat, Y)
        reduction = "mean" if averaged else "none"
        return F.cross_entropy(Y_hat.flatten(0, -2), Y.flatten().long(), reduction=reduction)

    def layer_summary(self, X_shape: tuple[int, ...]) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = torch.randn(*X_shape)
        for layer in self.net:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {X.shape}")


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> DataLoader[Any]:
        """Return batches of ``self.batch_size`` rows from ``indices``, shuffled for training."""
        dataset = TensorDataset(*(tensor[indices] for tensor in tensors))
        return DataLoader(dataset, self.batch_size, shuffle=train)


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
        self.optim.zero_grad()
        loss.backward()
        if self.gradient_clip_val > 0:
            self.clip_gradients(self.gradient_clip_val, self.model)
        with torch.no_grad():  # so that a custom optimizer need not do this
            self.optim.step()

    def _validate(self, batch: Any) -> None:
        """Call the model's ``validation_step`` without gradients."""
        with torch.no_grad():
            self.model.validation_step(batch)

    def clip_gradients(self, grad_clip_val: float, model: nn.Module) -> None:
        """Scale the gradients in place so that their joint norm is at most ``grad_clip_val``."""
        clip_gradients(model, grad_clip_val)


def clip_gradients(model: nn.Module, norm: float) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), norm)
