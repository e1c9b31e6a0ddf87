"""Descent as a reader of D2L writes it in MXNet."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat import mxnet as d2l  # isort: skip  it makes MXNet importable
from mxnet import autograd, gluon, np

from tests.shim.each.boards import Begun

CPU = d2l.cpu()


def variable(x: Any) -> np.ndarray:
    """One that gets a gradient."""
    made = np.array(x)
    made.attach_grad()
    return made


def sgd(
    params: list[Any], loss: Callable[[], Any], lr: float, batch_size: int, d2l: Any = d2l
) -> None:
    """A step with ``d2l.sgd``, along the gradients of a loss."""
    with autograd.record():
        value = loss()
    value.backward()
    d2l.sgd(params, lr, batch_size)


def trainer(params: Sequence[Any], states: Any, hyperparams: dict[str, Any]) -> None:
    """For ``train_ch11``."""
    for param in params:
        param[:] -= hyperparams["lr"] * param.grad


def concise(lr: float) -> tuple[Any, dict[str, Any]]:
    """For ``train_concise_ch11``, with the factor that its gradients have."""
    return "sgd", {"learning_rate": lr}


def losses(y_hat: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cross-entropy, one for each example."""
    return gluon.loss.SoftmaxCrossEntropyLoss()(y_hat, y)


def updater(params: list[Any], lr: float) -> Callable[[int], None]:
    """For ``train_epoch_ch3``: of a model from scratch."""
    return lambda batch_size: d2l.sgd(params, lr, batch_size)


def optimizer(net: gluon.Block, lr: float) -> gluon.Trainer:
    """For ``train_epoch_ch3``: the framework's own."""
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})


def dropped(net: gluon.Block, rate: float) -> gluon.Block:
    """A layer, and dropout after it."""
    both = gluon.nn.Sequential()
    both.add(net, gluon.nn.Dropout(rate))
    return both


def model(make: Callable[[], Any]) -> Any:
    """For ``train_ch6``: a layer."""
    return make()


def train_ch6(
    make: Callable[[], Any], first: Callable[[Any], None], batches: Any, *args: Any, d2l: Any = d2l
) -> Any:
    """With ``d2l.train_ch6``: the model, which ``first`` was given before the first step."""
    net = model(make)
    assert d2l.train_ch6(net, Begun(batches, lambda: first(net)), *args, CPU) is None
    return net
