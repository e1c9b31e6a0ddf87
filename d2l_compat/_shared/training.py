"""The parts of D2L 1.0's training code that are the same in every framework.

A ``Module`` computes and draws its loss; here it is :class:`Model`, from which a framework's ``Module`` inherits.
A ``DataModule`` has the batches; a ``Trainer`` trains a model on them.
"""

from collections.abc import Iterable, Sized
from types import ModuleType
from typing import Any, Protocol

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import ProgressBoard
from d2l_compat._shared.checks import check_methods, integer, message, real
from d2l_compat._shared.oo_design import HyperParameters


class Batches(Sized, Iterable[Any], Protocol):
    """The protocol of a data loader: it has a length, and yields batches, tuples of tensors."""


def undefined_method_error(owner: object, method: str) -> NotImplementedError:
    """Return an error to raise in a method that a reader's class must define."""
    name = f"{type(owner).__name__}.{method}"
    return NotImplementedError(message(name, "no definition", "one in your class"))


class Model(HyperParameters):
    """Mixin for ``Module``: a board on which the loss is plotted."""

    plot_train_per_epoch: int
    plot_valid_per_epoch: int
    board: ProgressBoard
    trainer: "Trainer"

    def loss(self, y_hat: Any, y: Any) -> Any:
        """Return the loss of predictions ``y_hat``; subclasses define it."""
        raise undefined_method_error(self, "loss")

    def plot(self, key: str, value: Any, train: bool) -> None:
        """Draw ``value``, a number from training or from validation, at the current epoch.

        The board's ``draw`` gets a NumPy array of shape (), without gradient. Raises RuntimeError if the model has no
        ``Trainer``.
        """
        trainer = getattr(self, "trainer", None)
        if trainer is None:
            need = "a model that was passed to Trainer.fit"
            raise RuntimeError(message("plot", "a model without a trainer", need))
        self.board.xlabel = "epoch"
        if train:
            x = trainer.train_batch_idx / trainer.num_train_batches
            n = trainer.num_train_batches / self.plot_train_per_epoch
        else:
            x = trainer.epoch + 1
            n = trainer.num_val_batches / self.plot_valid_per_epoch
        label = f"{'train' if train else 'val'}_{key}"
        # If there are fewer batches than points, each batch is a point.
        self.board.draw(x, to_numpy("value", value), label, every_n=max(1, int(n)))


class Steps(Model):
    """The steps of a model that is called with the inputs only, as in every framework but JAX."""

    net: Any
    lr: Any
    __call__: Any

    def __init__(self, plot_train_per_epoch: int = 2, plot_valid_per_epoch: int = 1) -> None:
        """Set how many points are plotted in an epoch of training and of validation."""
        super().__init__()
        self.save_hyperparameters()
        self.board = ProgressBoard()

    def forward(self, X: Any, *args: Any) -> Any:
        """Return the output of ``self.net`` for ``X``."""
        if not hasattr(self, "net"):
            raise undefined_method_error(self, "forward")
        return self.net(X, *args)

    def training_step(self, batch: Any) -> Any:
        """Return and plot the loss of a batch, whose inputs come first and whose labels come last."""
        loss = self.loss(self(*batch[:-1]), batch[-1])
        self.plot("loss", loss, train=True)
        return loss

    def validation_step(self, batch: Any) -> None:
        """Plot the loss of a batch."""
        self.plot("loss", self.loss(self(*batch[:-1]), batch[-1]), train=False)


class ClassifierSteps:
    """The steps of a model with an ``accuracy``; in a list of bases it precedes ``Module``."""

    plot: Any
    loss: Any
    accuracy: Any
    __call__: Any

    def validation_step(self, batch: Any) -> None:
        """Plot the loss and the accuracy of a batch."""
        Y_hat = self(*batch[:-1])
        self.plot("loss", self.loss(Y_hat, batch[-1]), train=False)
        self.plot("acc", self.accuracy(Y_hat, batch[-1]), train=False)


class DataModule(HyperParameters):
    """The base class of data: define ``get_dataloader(train)``."""

    root: str
    batch_size: int

    def __init__(self, root: str = "../data", num_workers: int = 4) -> None:
        """Set the folder of the files; ``num_workers`` has no effect, since all data are in memory."""
        self.save_hyperparameters()

    def get_dataloader(self, train: bool) -> Any:
        """Return batches of the training data, or of the validation data; subclasses define it."""
        raise undefined_method_error(self, "get_dataloader")

    def get_tensorloader(self, tensors: Any, train: bool, indices: slice = slice(0, None)) -> Any:
        """Return batches of rows; a framework's package defines it."""
        raise undefined_method_error(self, "get_tensorloader")

    def train_dataloader(self) -> Any:
        """Return batches of the training data."""
        return self.get_dataloader(train=True)

    def val_dataloader(self) -> Any:
        """Return batches of the validation data."""
        return self.get_dataloader(train=False)


class Trainer(HyperParameters):
    """A loop that trains a model on data; a framework's package defines its steps."""

    devices: ModuleType  # the framework's
    max_epochs: int
    gradient_clip_val: float
    gpus: list[Any]
    model: Any
    epoch: int

    def __init__(self, max_epochs: int, num_gpus: int = 0, gradient_clip_val: float = 0) -> None:
        """Set the number of epochs, and train on the first GPU if there is one and ``num_gpus`` is at least 1.

        ``gradient_clip_val`` is the greatest norm that all gradients together may have, 0 for no limit.
        Raises TypeError or ValueError for ``max_epochs`` below 1, or any of the others below 0.
        """
        self.save_hyperparameters()
        integer("max_epochs", max_epochs, 1)
        integer("num_gpus", num_gpus, 0)
        need = "a number of at least 0"
        if not real("gradient_clip_val", gradient_clip_val, need) >= 0:
            raise ValueError(message("gradient_clip_val", gradient_clip_val, need))
        available = min(num_gpus, self.devices.num_gpus())
        self.gpus = [self.devices.gpu(i) for i in range(available)]

    def fit(self, model: Any, data: Any) -> None:
        """Train ``model`` on ``data``. Raises TypeError if these lack methods of a Module and of a DataModule."""
        self.prepare_data(data)
        self.prepare_model(model)
        self.optim = model.configure_optimizers()
        self.run_epochs()

    def run_epochs(self) -> None:
        self.train_batch_idx = self.val_batch_idx = 0
        for epoch in range(self.max_epochs):
            self.epoch = epoch
            self.fit_epoch()

    def prepare_data(self, data: Any) -> None:
        """Get the data loaders of ``data``."""
        check_methods("data", data, "a DataModule", "train_dataloader", "val_dataloader")
        self.train_dataloader: Batches = data.train_dataloader()
        self.val_dataloader: Batches | None = data.val_dataloader()
        self.num_train_batches = len(self.train_dataloader)
        self.num_val_batches = 0 if self.val_dataloader is None else len(self.val_dataloader)

    def prepare_model(self, model: Any) -> None:
        """Connect ``model`` with this trainer."""
        check_methods("model", model, "a Module", "configure_optimizers", "training_step")
        model.trainer = self
        if hasattr(model, "board"):
            model.board.xlim = [0, self.max_epochs]
        self.model = model

    def prepare_batch(self, batch: Any) -> Any:
        """Return ``batch`` on the model's device."""
        return batch

    def _set_training(self, is_training: bool) -> None:
        """Switch the model between training and validation."""

    def fit_epoch(self) -> None:
        """Train on every batch once, and then validate."""
        self._set_training(True)
        for batch in self.train_dataloader:
            self._step(self.prepare_batch(batch))
            self.train_batch_idx += 1
        if self.val_dataloader is None:
            return
        self._set_training(False)
        for batch in self.val_dataloader:
            self._validate(self.prepare_batch(batch))
            self.val_batch_idx += 1

    def _step(self, batch: Any) -> None:
        """Train on a batch: compute the loss and its gradients, and update the parameters."""
        raise undefined_method_error(self, "_step")

    def _validate(self, batch: Any) -> None:
        """Call the model's ``validation_step``."""
        self.model.validation_step(batch)
