"""The models of D2L 1.0's first chapters in TensorFlow, with channels last."""

from typing import Any

import numpy as np
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras
from tests.shim.each.tensorflow.adapter import short_name

BN_EPSILON = 1e-3
FACTOR = 2  # LinearRegression's loss divided by half the mean squared error


def predict(model: Any, X: Any, training: bool = False) -> Any:
    X = X.transpose(0, 2, 3, 1) if X.ndim == 4 else X
    Y = model(tf.constant(X), training=training).numpy()
    return Y.transpose(0, 3, 1, 2) if Y.ndim == 4 else Y


def layer_weights(model: Any) -> list[tuple[Any, Any]]:
    """Return each layer's weight, shape (inputs, outputs) or (outputs, inputs, height, width), and bias."""
    kinds = "kernel", "bias"
    arrays = [x.numpy() for x in model.trainable_variables if short_name(x) in kinds]
    pairs = zip(arrays[::2], arrays[1::2], strict=True)
    return [(w.transpose(3, 2, 0, 1) if w.ndim == 4 else w, b) for w, b in pairs]


def copy(ours: Any, theirs: Any) -> None:
    """Copy a model's parameters to upstream's; both have been called."""
    theirs.set_weights(ours.get_weights())


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Train a linear regression from ``start``; return flat (w, b) before and after."""

    def variables() -> Any:
        return (model.w, model.b) if hasattr(model, "w") else (model.net.kernel, model.net.bias)

    def weights() -> tuple[Any, ...]:
        return tuple(np.asarray(variable).ravel().copy() for variable in variables())

    model(data.train_batch()[0])
    if start is not None:
        for variable, value in zip(variables(), start, strict=True):
            variable.assign(value.reshape(variable.shape))
    before = weights()
    d2l.Trainer(max_epochs=epochs).fit(model, data)
    return before, weights()


def dense(weight: Any, bias: Any) -> Any:
    layer = keras.layers.Dense(weight.shape[1])
    layer.build((None, weight.shape[0]))
    layer.set_weights([weight, bias])
    return layer


loss = keras.losses.BinaryCrossentropy(from_logits=True, reduction="sum")


def optimizer(net: Any, lr: float) -> Any:
    return keras.optimizers.SGD(lr)
