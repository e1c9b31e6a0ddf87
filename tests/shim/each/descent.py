"""Gradient descent as a reader of D2L writes it; frameworks in which D2L has it define a subclass in ``descent``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from tests.shim.each.boards import HookedBatches


class Descent(ABC):
    d2l: Any  # the framework's package
    CPU: Any

    @abstractmethod
    def variable(self, x: Any) -> Any:
        """Make a tensor that gets a gradient."""

    def sgd(
        self,
        params: list[Any],
        loss: Callable[[], Any],
        lr: float,
        batch_size: int,
        d2l: Any = None,
    ) -> None:
        """Take a step of ``d2l.sgd`` along the gradients of a loss."""
        loss().backward()
        (d2l or self.d2l).sgd(params, lr, batch_size)

    @abstractmethod
    def take_step(self, params: Sequence[Any], *args: Any) -> Any:
        """Take a step of ``train_ch11``; the last arguments are the states and the hyperparameters."""

    @abstractmethod
    def concise_optimizer(self, lr: float) -> tuple[Any, dict[str, Any]]:
        """Return an optimizer and hyperparameters for ``train_concise_ch11``; the rate offsets a factor in its loss."""

    @abstractmethod
    def losses(self, y_hat: Any, y: Any) -> Any:
        """Return the cross-entropy of each example."""

    def updater(self, params: list[Any], lr: float) -> Callable[..., Any]:
        """Return a function that updates a model from scratch, for ``train_epoch_ch3``."""
        return lambda batch_size: self.d2l.sgd(params, lr, batch_size)

    @abstractmethod
    def optimizer(self, net: Any, lr: float) -> Any:
        """Return the framework's optimizer, for ``train_epoch_ch3``."""

    @abstractmethod
    def add_dropout(self, net: Any, rate: float) -> Any:
        """Return a layer followed by dropout."""

    def prepare_model(self, make: Callable[[], Any]) -> Any:
        """Return the model for ``train_ch6``, or a function that makes it if ``train_ch6`` needs one."""
        return make()

    def train_ch6(
        self,
        make: Callable[[], Any],
        hook: Callable[[Any], None],
        batches: Any,
        *args: Any,
        d2l: Any = None,
    ) -> Any:
        """Train a model with ``d2l.train_ch6`` and return it; ``hook`` is called with it before the first step."""
        net = self.prepare_model(make)
        hooked = HookedBatches(batches, lambda: hook(net))
        assert (d2l or self.d2l).train_ch6(net, hooked, *args, self.CPU) is None
        return net
