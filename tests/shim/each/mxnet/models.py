"""The models of D2L 1.0's first chapters in MXNet, with channels first."""

from typing import Any

from mxnet import autograd, gluon, np
from mxnet.gluon import nn

from d2l_compat import mxnet as d2l

BN_EPSILON = 1e-5
FACTOR = 1  # LinearRegression's loss divided by half the mean squared error


def predict(model: Any, X: Any, training: bool = False) -> Any:
    params = model.collect_params()
    if any(param._data is None and not param._deferred_init for param in params.values()):
        model.initialize()
    with autograd.train_mode() if training else autograd.predict_mode():
        return model(np.array(X)).asnumpy()


def layer_weights(model: Any) -> list[tuple[Any, Any]]:
    """Return each layer's weight, shape (inputs, outputs) or (outputs, inputs, height, width), and bias."""
    blocks: list[Any] = []
    model.apply(blocks.append)
    layers = [block for block in blocks if isinstance(block, (nn.Conv2D, nn.Dense))]
    arrays = [(x.weight.data().asnumpy(), x.bias.data().asnumpy()) for x in layers]
    return [(w if w.ndim == 4 else w.T, b) for w, b in arrays]


def copy(ours: Any, theirs: Any) -> None:
    """Copy a model's parameters to upstream's; both have been called."""
    params = (model.collect_params().values() for model in (ours, theirs))
    for param, other in zip(*params, strict=True):
        other.set_data(param.data())


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Train a linear regression from ``start``; return flat (w, b) before and after."""

    def arrays() -> Any:
        return (model.w, model.b) if hasattr(model, "w") else model.get_w_b()

    def weights() -> tuple[Any, ...]:
        return tuple(array.asnumpy().ravel().copy() for array in arrays())

    model(data.train_batch()[0])
    if start is not None:
        for array, value in zip(arrays(), start, strict=True):
            array[:] = np.array(value).reshape(array.shape)
    before = weights()
    d2l.Trainer(max_epochs=epochs).fit(model, data)
    return before, weights()


def dense(weight: Any, bias: Any) -> nn.Block:
    layer = nn.Dense(weight.shape[1], in_units=weight.shape[0])
    layer.initialize()
    layer.weight.set_data(np.array(weight.T))
    layer.bias.set_data(np.array(bias))
    return layer


loss = gluon.loss.SigmoidBCELoss()


def optimizer(net: nn.Block, lr: float) -> Any:
    # The losses are summed, and a step divides by the batch size; the tests take this into account.
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})
