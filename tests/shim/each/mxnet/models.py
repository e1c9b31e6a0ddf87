"""The models of D2L 1.0's first chapters as they are in MXNet: pictures have their channels first."""

from typing import Any

from mxnet import autograd, gluon, np
from mxnet.gluon import nn

from d2l_compat import mxnet as d2l

BN_EPSILON = 1e-5
FACTOR = 1  # of LinearRegression's loss, to half the mean squared difference


def answers(model: Any, X: Any, training: bool = False) -> Any:
    params = model.collect_params()
    if any(param._data is None and not param._deferred_init for param in params.values()):
        model.initialize()
    with autograd.train_mode() if training else autograd.predict_mode():
        return model(np.array(X)).asnumpy()


def layers(model: Any) -> list[tuple[Any, Any]]:
    """Weights and biases: of convolutions (outputs, inputs, height, width), else (inputs, outputs)."""
    found: list[Any] = []
    model.apply(
        lambda each: found.append(each) if isinstance(each, (nn.Conv2D, nn.Dense)) else None
    )
    arrays = [(each.weight.data().asnumpy(), each.bias.data().asnumpy()) for each in found]
    return [(w if w.ndim == 4 else w.T, b) for w, b in arrays]


def copy(ours: Any, theirs: Any) -> None:
    """The parameters of a model to upstream's, both of which have been called."""
    params = (model.collect_params().values() for model in (ours, theirs))
    for param, other in zip(*params, strict=True):
        other.set_data(param.data())


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Of linear regression: (w, b) before and after, flat; ``start`` sets them before."""

    def arrays() -> Any:
        return (model.w, model.b) if hasattr(model, "w") else model.get_w_b()

    def now() -> tuple[Any, ...]:
        return tuple(array.asnumpy().ravel().copy() for array in arrays())

    model(data.train_batch()[0])
    if start is not None:
        for array, value in zip(arrays(), start, strict=True):
            array[:] = np.array(value).reshape(array.shape)
    before = now()
    d2l.Trainer(max_epochs=epochs).fit(model, data)
    return before, now()


def dense(weight: Any, bias: Any) -> nn.Block:
    layer = nn.Dense(weight.shape[1], in_units=weight.shape[0])
    layer.initialize()
    layer.weight.set_data(np.array(weight.T))
    layer.bias.set_data(np.array(bias))
    return layer


loss = gluon.loss.SigmoidBCELoss()


def optimizer(net: nn.Block, lr: float) -> Any:
    # As the losses are summed: the step divides by the batch's size, which the tests know.
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})
