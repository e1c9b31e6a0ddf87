"""Descent as a reader of D2L writes it. Every framework whose readers do has a subclass in its ``descent``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from tests.shim.each.boards import Begun


class Descent(ABC):
    d2l: Any  # the face
    CPU: Any

    @abstractmethod
    def variable(self, x: Any) -> Any:
        """One that gets a gradient."""

    def sgd(
        self,
        params: list[Any],
        loss: Callable[[], Any],
        lr: float,
        batch_size: int,
        d2l: Any = None,
    ) -> None:
        """A step with ``d2l.sgd``, along the gradients of a loss."""
        loss().backward()
        (d2l or self.d2l).sgd(params, lr, batch_size)

    @abstractmethod
    def trainer(self, params: Sequence[Any], *args: Any) -> Any:
        """For ``train_ch11``; the last of the arguments are the states and the hyperparameters."""

    @abstractmethod
    def concise(self, lr: float) -> tuple[Any, dict[str, Any]]:
        """For ``train_concise_ch11``, with the factor that its gradients have."""

    @abstractmethod
    def losses(self, y_hat: Any, y: Any) -> Any:
        """Cross-entropy, one for each example."""

    def updater(self, params: list[Any], lr: float) -> Callable[..., Any]:
        """For ``train_epoch_ch3``: of a model from scratch."""
        return lambda batch_size: self.d2l.sgd(params, lr, batch_size)

    @abstractmethod
    def optimizer(self, net: Any, lr: float) -> Any:
        """For ``train_epoch_ch3``: the framework's own."""

    @abstractmethod
    def dropped(self, net: Any, rate: float) -> Any:
        """A layer, and dropout after it."""

    def prepare_model(self, make: Callable[[], Any]) -> Any:
        """For ``train_ch6``: a layer, or a function that makes a model."""
        return make()

    def train_ch6(
        self,
        make: Callable[[], Any],
        first: Callable[[Any], None],
        batches: Any,
        *args: Any,
        d2l: Any = None,
    ) -> Any:
        """With ``d2l.train_ch6``: the model, which ``first`` was given before the first step."""
        net = self.prepare_model(make)
        begun = Begun(batches, lambda: first(net))
        assert (d2l or self.d2l).train_ch6(net, begun, *args, self.CPU) is None
        return net
