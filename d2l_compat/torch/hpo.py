"""Hyperparameter optimization: search, scheduling and evaluation, and the RBF kernel of Gaussian processes."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import message, real
from d2l_compat._shared.hpo import (
    BasicScheduler,
    HPOScheduler,
    HPOSearcher,
    HPOTuner,
    RandomSearcher,
    SuccessiveHalvingScheduler,
)
from d2l_compat.torch.datasets import FashionMNIST
from d2l_compat.torch.models import LeNet, init_cnn
from d2l_compat.torch.training import Trainer

__all__ = [
    "BasicScheduler",
    "HPOScheduler",
    "HPOSearcher",
    "HPOTrainer",
    "HPOTuner",
    "RandomSearcher",
    "SuccessiveHalvingScheduler",
    "hpo_objective_lenet",
    "rbfkernel",
]


class HPOTrainer(Trainer):
    """A trainer that also measures the trained model's validation error."""

    def validation_error(self) -> Tensor:
        """Return the share of validation examples that the model, a ``Classifier``, misclassifies.

        Raises RuntimeError if there is no model or no validation data.
        """
        if not getattr(self, "num_val_batches", 0):
            got = "a trainer without a model or validation data"
            raise RuntimeError(message("validation_error", got, "fit to be called first"))
        self.model.eval()
        hits = torch.zeros(())
        count = 0
        with torch.no_grad():
            for batch in self.val_dataloader or ():
                *X, y = self.prepare_batch(batch)
                hits = hits + self.model.accuracy(self.model(*X), y).cpu() * len(y)
                count += len(y)
        return 1 - hits / count


def hpo_objective_lenet(learning_rate: float, batch_size: int, max_epochs: int = 10) -> Tensor:
    """Train LeNet on Fashion-MNIST with these hyperparameters, and return its validation error.

    Raises TypeError or ValueError for sizes below 1, and what :func:`download` raises.
    """
    real("learning_rate", learning_rate, "a number")
    model = LeNet(lr=learning_rate)
    trainer = HPOTrainer(max_epochs, num_gpus=1)
    data = FashionMNIST(batch_size)
    images, _ = next(iter(data.train_dataloader()))
    model.apply_init([images], init_cnn)
    trainer.fit(model, data)
    return trainer.validation_error()


def rbfkernel(x1: ArrayLike, x2: ArrayLike, ls: float = 4.0) -> NDArray[Any]:
    """Return exp(-(a - b)² / (2 ls)) for each a in ``x1`` (n,) and b in ``x2`` (m,), an array (n, m).

    D2L's ``ls`` is the square of the length scale. Raises TypeError or ValueError if ``x1`` or ``x2`` is not a vector
    of numbers, or ``ls`` is not above 0.
    """
    a = to_numpy("x1", x1).astype("float64")
    b = to_numpy("x2", x2).astype("float64")
    for name, x in ("x1", a), ("x2", b):
        if x.ndim != 1:
            raise ValueError(message(name, f"shape {x.shape}", "a vector of numbers"))
    if real("ls", ls, "a number above 0") <= 0 or not math.isfinite(ls):
        raise ValueError(message("ls", ls, "a number above 0"))
    return np.exp(-((a[:, None] - b) ** 2) / (2 * ls))
