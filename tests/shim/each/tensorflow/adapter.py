"""Drives d2l_compat.tensorflow."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras
from tests.shim import reference
from tests.shim.each import adapter
from tests.shim.each.tensorflow.descent import Descent


def short(variable: Any) -> str:
    """Its name, which in Keras 2 begins with its layer's."""
    return str(variable.name.split("/")[-1].removesuffix(":0"))


class Layer(adapter.Layer):
    @staticmethod
    def tensor(x: NDArray[Any]) -> tf.Tensor:
        return tf.constant(x)

    @staticmethod
    def array(x: Any) -> Any:
        if hasattr(x, "_device_name"):  # a device, which equals no other
            return x._device_name
        return x.numpy() if isinstance(x, (tf.Tensor, tf.Variable)) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        named = self.named(kwargs)
        return self.plain(self.layer(*self.given(inputs), training=training, **named))

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        tensors, named = self.given(inputs), self.named(kwargs)
        every = (*tensors, *named.values())
        floats = [x for x in every if isinstance(x, tf.Tensor) and x.dtype.is_floating]
        try:  # NaN on the way is an error as well; so is infinity, but that a bias may hold
            if all(np.isfinite(x).all() for x in floats):
                tf.debugging.enable_check_numerics()
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(floats)
                output = self.layer(*tensors, **named)
            tf.debugging.enable_check_numerics()
            gradients = tape.gradient(output, floats, self.tensor(direction))
            # A table's holds only the rows that were looked up, until it is made a tensor.
            return [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
        finally:
            tf.debugging.disable_check_numerics()

    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        rng = np.random.default_rng(0)
        for variable in self.layer.trainable_variables:
            variable.assign(rng.normal(scale=0.5, size=variable.shape))

    @property
    def names(self) -> list[str]:
        return [
            getattr(weight, "path", weight.name) for weight in self.layer.weights
        ]  # Keras 2 has no paths

    def parameters(self, path: str) -> adapter.Arrays:
        layer = self.part(path)
        names = {"kernel": "weight", "embeddings": "table"}
        named = {short(variable): variable for variable in layer.trainable_variables}
        return {names.get(name, name): variable.numpy() for name, variable in named.items()}

    def gates(self, path: str) -> list[reference.Gates]:
        def linears(kernel: NDArray[Any], bias: NDArray[Any]) -> dict[str, reference.Linear]:
            parts = zip(np.split(kernel, 3, axis=1), np.split(bias, 3), strict=True)
            names = ("update", "reset", "new")
            return {name: reference.Linear(*part) for name, part in zip(names, parts, strict=True)}

        gates = []
        for cell in self.part(path).cell.cells:
            biases = cell.bias.numpy()
            of_input = linears(cell.kernel.numpy(), biases[0])
            gates.append(
                reference.Gates(of_input, linears(cell.recurrent_kernel.numpy(), biases[1]))
            )
        return gates


tensor, plain = Layer.tensor, Layer.plain


class Adapter(adapter.Adapter):
    d2l, layer, descent = d2l, Layer, Descent()
    Block, Embedding = keras.layers.Layer, keras.layers.Embedding
    seed = staticmethod(tf.random.set_seed)
    CALL = "call"
    CASTS = "float32"
    NORMAL = ((2, 3),)
    ACCEPTS_NUMPY = True
    DROPS_INPUTS = True
    NORM_EPSILON = 1e-3
    NORM = [2], 0.0
    LAST, LAYERS = ("logits", "answer"), "attentions."  # a Keras model has an "output" of its own
    OUTPUT = "answer.layers.0", "answer.layers.1"

    def sizes(self, width: int) -> tuple[Any, ...]:
        return width, width, width, width, [2]

    def dense(self, inputs: int, outputs: int) -> Any:
        return keras.layers.Dense(outputs)

    def is_training(self, layer: Any, training: bool | None) -> bool:
        return bool(training)

    def first_keys(self, encoded: Any) -> list[Any]:
        return [tf.zeros((len(encoded), 0, encoded.shape[-1]))]  # of None, old Kerases fail

    def products(self, queries: Any, table: Any, rows: Any) -> Any:
        return tf.einsum("bqd,qkd->bqk", queries, tf.gather(table, rows))

    def multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
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

    def encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.PositionalEncoding(*args, dtype=dtype, **kwargs))

    def rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.RotaryEncoding(*args, dtype=dtype, **kwargs))

    def linear(self, inputs: int, start: adapter.Arrays | None) -> keras.layers.Layer:
        net = keras.layers.Dense(3)
        net.build((None, inputs))
        if start:
            net.set_weights([start["weight"], start["bias"]])
        return net

    def nothing(self) -> keras.layers.Layer:
        return keras.layers.Dense(1)

    def lesson_learned_table(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        tables = []

        def make_reader() -> keras.Model:
            reader = self.new_reader(names, "learned")
            tables.append(reader.positions.P.embeddings.numpy())
            return reader

        (reader,) = names["train"](make_reader, [0])
        return [*tables, reader.positions.P.embeddings.numpy()]

    def own_causal(self, *inputs: NDArray[Any]) -> NDArray[Any]:
        given = (self.tensor(x.swapaxes(1, 2)) for x in inputs)
        answers = keras.ops.dot_product_attention(*given, is_causal=True)
        return self.plain(answers).swapaxes(1, 2)
