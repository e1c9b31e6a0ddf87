"""Call TensorFlow's package alongside upstream's ``d2l.tensorflow``; tests/shim/each/oracle.py explains the names.

Upstream was written for Keras 2. What Keras 3 lacks is added here.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from d2l_compat.tensorflow._keras import keras
from tests.shim.each import oracle
from tests.shim.each.oracle import PatchedModule, import_older
from tests.shim.each.tensorflow import models, recurrent
from tests.shim.each.tensorflow.adapter import Layer, short_name

_SIZES = (8, 8, 8, 8, [2])  # key_size to norm_shape
LAYER_ARGS = oracle.LAYER_ARGS | {
    "AddNorm": ([2], 0.0),
    "AdditiveAttention": (8, 8, 8, 0.0),
    "EncoderBlock": (*_SIZES, 16, 2, 0.0),
    "MultiHeadAttention": (8, 8, 8, 8, 2, 0.0),
    "TransformerEncoder": (7, *_SIZES, 16, 2, 2, 0.0),
    "TransformerEncoderBlock": (*_SIZES, 16, 2, 0.0),
}
RECURRENT = recurrent.RECURRENT
MODELS = models
BATCH_DTYPE = "int32"
NOT_COMPARED: dict[str, dict[str, str]] = {
    "1.0.3": {
        "LinearRegressionScratch": "upstream's does not train with Keras 3: ours does",
        "SGD": "upstream's model that uses it does not train with Keras 3: ours does",
    }
}


class TimeMajorMixin:
    """Make a layer behave as in Keras 2: the first axis is time, and the state is flat."""

    def __init__(self, cells: Any, time_major: bool, **kwargs: Any) -> None:
        super().__init__(cells, **kwargs)  # type: ignore[call-arg]
        assert time_major

    def __call__(self, X: tf.Tensor, initial_state: Any = None, **kwargs: Any) -> Any:
        X = tf.transpose(X, (1, 0, 2))
        outputs, *state = super().__call__(X, initial_state=initial_state, **kwargs)
        return tf.transpose(outputs, (1, 0, 2)), *tf.nest.flatten(state)


class FlatStateRNN(keras.layers.RNN):
    """An RNN as in Keras 2: the state is flat."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outputs, *state = super().__call__(*args, **kwargs)
        return outputs, *tf.nest.flatten(state)


class TimeMajorLayer(keras.layers.Layer):
    """A layer like Keras 2's with ``time_major=True``: the first axis of input and output is time."""

    def __init__(self, layer: keras.layers.RNN) -> None:
        super().__init__()
        self.layer = layer

    @property
    def cell(self) -> "TimeMajorLayer":
        """The layer itself, which makes the first state."""
        return self

    def call(self, X: tf.Tensor, initial_state: Any = None) -> Any:
        outputs, *state = self.layer(tf.transpose(X, (1, 0, 2)), initial_state=initial_state)
        return tf.transpose(outputs, (1, 0, 2)), *state

    def get_initial_state(self, batch_size: int, dtype: Any) -> Any:
        return self.layer.get_initial_state(batch_size)


class RNN(TimeMajorMixin, keras.layers.RNN): ...


class SimpleRNN(TimeMajorMixin, keras.layers.SimpleRNN): ...


def import_upstream() -> Any:
    from d2l import tensorflow as d2l

    d2l.int = lambda x=0: int(np.asarray(x).item())  # NumPy 2 rejects an array of one number
    if not isinstance(d2l.tf, PatchedModule):
        layers = PatchedModule(keras.layers, RNN=RNN, SimpleRNN=SimpleRNN)
        d2l.tf = PatchedModule(tf, keras=PatchedModule(tf.keras, layers=layers))
        initialize = d2l.Module.__init__

        def initialize_without_loss(self: Any, *args: Any, **kwargs: Any) -> None:
            initialize(self, *args, **kwargs)
            vars(self).pop("loss", None)  # Keras 3 sets one, which hides the method

        d2l.Module.__init__ = initialize_without_loss
        # Keras 3 would convert labels to floating point first.
        d2l.MaskedSoftmaxCELoss.__call__ = lambda self, *args: self.call(*args)
    return d2l


def import_older_upstream() -> Any:
    d2l = import_older("tensorflow")
    if not isinstance(d2l.tf, PatchedModule):
        layers = PatchedModule(keras.layers, RNN=FlatStateRNN)
        d2l.tf = PatchedModule(tf, keras=PatchedModule(tf.keras, layers=layers))
        d2l.int = lambda x=0: int(np.asarray(x).item())  # NumPy 2 rejects an array of one number
        # Keras 3 would convert labels to floating point first.
        d2l.MaskedSoftmaxCELoss.__call__ = lambda self, *args: self.call(*args)
        initialize = d2l.RNNModel.__init__
        d2l.RNNModel.__init__ = lambda self, layer, *args: initialize(
            self, TimeMajorLayer(layer), *args
        )
    return d2l


UPSTREAM = {"1.0.3": import_upstream, "0.17.6": import_older_upstream}


def build_twin(ours: Layer, theirs: keras.layers.Layer, *inputs: Any) -> Layer:
    layer = Layer(theirs)
    with warnings.catch_warnings(action="ignore"):  # Keras 3 warns about unnamed arguments
        layer(*inputs)  # creates its weights
    _copy(ours.layer, theirs)
    return layer


def _copy(ours: Any, theirs: Any) -> None:
    """Copy the weights of each part, which have the same names."""
    parts = {name: part for name, part in vars(theirs).items() if not name.startswith("_")}
    pairs = []
    for name, part in parts.items():
        their_layers = part if isinstance(part, list) else [part]
        if their_layers and all(isinstance(layer, keras.layers.Layer) for layer in their_layers):
            our_part = getattr(ours, name)
            our_layers = our_part if isinstance(part, list) else [our_part]
            pairs += zip(our_layers, their_layers, strict=True)
    for pair in pairs:
        _copy(*pair)
    if not pairs:
        theirs.set_weights(ours.get_weights())


seed = keras.utils.set_random_seed


def initial_parameters(net: keras.layers.Layer, *inputs: Any) -> Any:
    arrays = [x.transpose(0, 2, 3, 1) if x.ndim == 4 else x for x in inputs if x is not None]
    with warnings.catch_warnings(action="ignore"):  # Keras 3 warns about unnamed arguments
        net(*Layer.to_tensors(arrays))
    names = {id(weight): name for name, weight in _name_weights(net, "")}
    return {names[id(weight)]: weight.numpy() for weight in net.weights}


def _name_weights(layer: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the weights, named by the attributes that hold them: Keras's names depend on layers made before."""
    yield from ((f"{path}{i} {short_name(x)}", x) for i, x in enumerate(layer.weights))
    for name, part in vars(layer).items():
        parts = part if isinstance(part, list) else [part]
        for i, sublayer in enumerate(parts):
            if isinstance(sublayer, keras.layers.Layer) and not name.startswith("_"):
                yield from _name_weights(sublayer, f"{path}{name}[{i}].")


def parameters(net: keras.layers.Layer) -> Any:
    return net.trainable_variables
