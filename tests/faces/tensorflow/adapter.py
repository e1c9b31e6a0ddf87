"""Drives d2l_compat.tensorflow; tests/faces/adapter.py says what each name is for."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from d2l_compat import tensorflow as d2l
from tests import reference
from tests.faces.tensorflow.translator import with_functions, with_trainer

FUSED = False
CASTS = "float32"
ACCEPTS_NUMPY = True
__all__ = ["with_functions", "with_trainer"]
NORM_EPSILON = 1e-3
_SIZES = (8, 8, 8, 8, [2])
FORMS = {
    "AddNorm": ([2], 0.0),
    "PositionWiseFFN": {"short": (16, 8), "long": (8, 16, 8)},
    "TransformerEncoderBlock": {"short": (8, 16, 2, 0.0), "long": (*_SIZES, 16, 2, 0.0)},
    "TransformerEncoder": {"short": (7, 8, 16, 2, 2, 0.0), "long": (7, *_SIZES, 16, 2, 2, 0.0)},
}


def tensor(x: NDArray[Any]) -> tf.Tensor:
    return tf.constant(x)


class Layer:
    def __init__(self, layer: keras.layers.Layer) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        return self.layer(*map(_given, inputs), training=training, **kwargs).numpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.numpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x for x in tensors if x is not None and x.dtype.is_floating]
        tf.debugging.enable_check_numerics()  # NaN on the way is an error as well
        try:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(floats)
                output = self.layer(*tensors)
            return [g.numpy() for g in tape.gradient(output, floats, tensor(direction))]
        finally:
            tf.debugging.disable_check_numerics()


class AnyLayer(Layer):
    @property
    def attention_weights(self) -> Any:
        return plain(self.layer.attention_weights)

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        return plain(self.layer(*map(_given, inputs), training=training, **kwargs))

    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        rng = np.random.default_rng(0)
        for variable in self.layer.trainable_variables:
            variable.assign(rng.normal(scale=0.5, size=variable.shape))

    def _part(self, path: str) -> Any:
        part: Any = self.layer
        for name in path.split("."):
            part = part[int(name)] if name.isdecimal() else getattr(part, name)
        return part

    def parameters(self, path: str) -> dict[str, NDArray[Any]]:
        layer = self._part(path)
        names = {"kernel": "weight", "embeddings": "table"}
        return {names.get(v.name, v.name): v.numpy() for v in layer.trainable_variables}

    def gates(self, path: str) -> list[reference.Gates]:
        def linears(kernel: NDArray[Any], bias: NDArray[Any]) -> dict[str, reference.Linear]:
            parts = zip(np.split(kernel, 3, axis=1), np.split(bias, 3), strict=True)
            names = ("update", "reset", "new")
            return {name: reference.Linear(*part) for name, part in zip(names, parts, strict=True)}

        gates = []
        for cell in self._part(path).cell.cells:
            biases = cell.bias.numpy()
            of_input = linears(cell.kernel.numpy(), biases[0])
            gates.append(
                reference.Gates(of_input, linears(cell.recurrent_kernel.numpy(), biases[1]))
            )
        return gates


def build(name: str, *args: Any, **kwargs: Any) -> AnyLayer:
    return AnyLayer(getattr(d2l, name)(*args, **kwargs))


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return plain(getattr(d2l, name)(*map(_given, args), **kwargs))


def masked_softmax(X: Any, valid_lens: Any = None) -> NDArray[Any]:
    return d2l.masked_softmax(_given(X), _given(valid_lens)).numpy()


def dot_product(dropout: float = 0.0) -> Layer:
    return Layer(d2l.DotProductAttention(dropout))


def multi_head(
    *args: Any,
    weights: dict[str, NDArray[Any]] | None = None,
    dtype: str = "float64",
    **kwargs: Any,
) -> Layer:
    layer = d2l.MultiHeadAttention(*args, dtype=dtype, **kwargs)
    if weights is not None:
        if not layer.built:
            layer.build(*((None, None, len(weights[f"W_{role}"])) for role in "qkv"))
        for role in "qkvo":
            arrays = [weights[name] for name in (f"W_{role}", f"b_{role}") if name in weights]
            getattr(layer, f"W_{role}").set_weights(arrays)
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Layer(d2l.PositionalEncoding(*args, dtype=dtype, **kwargs))


def fit_classifier(
    X: NDArray[Any],
    Y: NDArray[Any],
    lr: float,
    epochs: int,
    clip: float,
    d2l: Any = d2l,
    start: dict[str, NDArray[Any]] | None = None,
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]], dict[str, Any]]:
    class Rows(d2l.DataModule):
        def __init__(self) -> None:
            super().__init__()
            self.arrays, self.batch_size = (tensor(X), tensor(Y)), len(X)

        def get_dataloader(self, train: bool) -> Any:
            return self.get_tensorloader(self.arrays, train)

    class Linear(d2l.Classifier):
        def __init__(self, lr: float) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.net = keras.layers.Dense(3)
            self.net.build((None, X.shape[1]))

    model = Linear(lr)
    if start:
        model.net.set_weights([start["weight"], start["bias"]])
    built = AnyLayer(model)
    before = {name: array.copy() for name, array in built.parameters("net").items()}
    d2l.Trainer(max_epochs=epochs, gradient_clip_val=clip).fit(model, Rows())
    return before, built.parameters("net"), model.board.data


def sequence_loss(Y_hat: NDArray[Any], Y: NDArray[Any], tgt_pad: int) -> list[NDArray[Any]]:
    model = d2l.Seq2Seq(keras.layers.Dense(1), keras.layers.Dense(1), tgt_pad, 0.1)
    given = tensor(Y_hat), tensor(Y)
    return [plain(model.loss(*given)), plain(model.loss(*given, averaged=False))]


def classifier(name: str) -> Any:
    return getattr(d2l.Classifier(), name)


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    names = {"kernel": "W", "bias": "b"}
    return {
        f"{names[weight.name]}_{role}": tuple(weight.shape)
        for role in "qkvo"
        for weight in getattr(layer.layer, f"W_{role}").weights
    }


def lesson_projections(names: dict[str, Any], layer: str = "attention") -> dict[str, NDArray[Any]]:
    return {f"W_{i}": plain(getattr(names[layer], f"W_{i}").kernel.value) for i in "qkvo"}


def lesson_encoding(
    layer: keras.layers.Layer, X: NDArray[Any], offset: int = 0, training: bool = False
) -> NDArray[Any]:
    return plain(layer(X, offset=offset, training=training))


def lesson_kept(layer: keras.layers.Layer) -> list[str]:
    return [weight.path for weight in layer.weights]


def lesson_sequences(names: dict[str, Any], count: int, length: int = 8) -> list[NDArray[Any]]:
    return plain(names["sequences"](count, length))


def lesson_reader(
    names: dict[str, Any], kind: str = ""
) -> tuple[dict[str, NDArray[Any]], Callable[[NDArray[Any]], NDArray[Any]]]:
    reader = names["readers"][kind]() if kind else names["reader"]

    def answers(tokens: NDArray[Any]) -> NDArray[Any]:
        return plain(reader(tokens))

    answers(np.zeros((1, 8), "int32"))  # Keras makes weights for the first input
    hidden, answer = reader.answer.layers
    weights = {
        "embedding": reader.embedding.embeddings,
        "W_1": hidden.kernel,
        "b_1": hidden.bias,
        "W_2": answer.kernel,
        "b_2": answer.bias,
    }
    if kind == "learned":
        weights["P"] = reader.positions.P.embeddings
    projections = lesson_projections({"attention": reader.attention})
    return {name: plain(each.value) for name, each in weights.items()} | projections, answers


def lesson_learned_table(names: dict[str, Any]) -> list[NDArray[Any]]:
    tables = []

    def make_reader() -> keras.Model:
        reader = names["readers"]["learned"]()
        reader(np.zeros((1, 8), "int32"))
        tables.append(reader.positions.P.embeddings.numpy())
        return reader

    reader = names["trained"](make_reader, 0)
    return [*tables, reader.positions.P.embeddings.numpy()]


def lesson_blocks(names: dict[str, Any]) -> list[dict[str, NDArray[Any]]]:
    return [lesson_projections({"attention": block}) for block in names["blocks"]]


def lesson_relative(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    relative = names["relative"]
    weights = {f"W_{i}": plain(getattr(relative, f"W_{i}").kernel.value) for i in "qkv"}
    return weights | {"table": plain(relative.table.embeddings.value)}


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    if hasattr(x, "_device_name"):  # a device, which equals no other
        return x._device_name
    return x.numpy() if isinstance(x, (tf.Tensor, tf.Variable)) else x
