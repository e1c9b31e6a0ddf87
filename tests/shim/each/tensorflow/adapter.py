"""The adapter of d2l_compat.tensorflow."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras
from tests.shim import reference
from tests.shim.each import adapter
from tests.shim.each.tensorflow.descent import Descent


def short_name(variable: Any) -> str:
    """Return a variable's name without its layer's, which Keras 2 puts before it."""
    return str(variable.name.split("/")[-1].removesuffix(":0"))


class Layer(adapter.Layer):
    @staticmethod
    def tensor(x: NDArray[Any]) -> tf.Tensor:
        return tf.constant(x)

    @staticmethod
    def array(x: Any) -> Any:
        if hasattr(x, "_device_name"):  # a device, which equals no other object
            return x._device_name
        return x.numpy() if isinstance(x, (tf.Tensor, tf.Variable)) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        kwargs = self.kwargs_to_tensors(kwargs)
        return self.to_numpy(self.layer(*self.to_tensors(inputs), training=training, **kwargs))

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        tensors, kwargs = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
        arguments = (*tensors, *kwargs.values())
        floats = [x for x in arguments if isinstance(x, tf.Tensor) and x.dtype.is_floating]
        try:  # NaN in an intermediate result is an error as well; so is infinity, except in a bias
            if all(np.isfinite(x).all() for x in floats):
                tf.debugging.enable_check_numerics()
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(floats)
                output = self.layer(*tensors, **kwargs)
            tf.debugging.enable_check_numerics()
            gradients = tape.gradient(output, floats, self.tensor(direction))
            # A table's gradient has only the rows that were looked up, until it is made a tensor.
            return [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
        finally:
            tf.debugging.disable_check_numerics()

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        self(*inputs, **kwargs)
        rng = np.random.default_rng(0)
        for variable in self.layer.trainable_variables:
            variable.assign(rng.normal(scale=0.5, size=variable.shape))

    @property
    def parameter_names(self) -> list[str]:
        # Keras 2 has no paths.
        return [getattr(weight, "path", weight.name) for weight in self.layer.weights]

    @property
    def num_parameters(self) -> int:
        return int(self.layer.count_params())

    def parameters(self, path: str) -> adapter.Arrays:
        layer = self.part(path)
        names = {"kernel": "weight", "embeddings": "table", "scale": "gamma"}
        variables = {short_name(variable): variable for variable in layer.trainable_variables}
        return {names.get(name, name): variable.numpy() for name, variable in variables.items()}

    def gates(self, path: str) -> list[reference.Gates]:
        def linears(kernel: NDArray[Any], bias: NDArray[Any]) -> dict[str, reference.Linear]:
            parts = zip(np.split(kernel, 3, axis=1), np.split(bias, 3), strict=True)
            names = ("update", "reset", "new")
            return {name: reference.Linear(*part) for name, part in zip(names, parts, strict=True)}

        gates = []
        for cell in self.part(path).cell.cells:
            biases = cell.bias.numpy()
            input_gates = linears(cell.kernel.numpy(), biases[0])
            state_gates = linears(cell.recurrent_kernel.numpy(), biases[1])
            gates.append(reference.Gates(input_gates, state_gates))
        return gates


tensor, to_numpy = Layer.tensor, Layer.to_numpy


def load_projections(layer: keras.layers.Layer, weights: adapter.Arrays) -> None:
    for role in "qkvo":
        arrays = [weights[name] for name in (f"W_{role}", f"b_{role}") if name in weights]
        getattr(layer, f"W_{role}").set_weights(arrays)


class Adapter(adapter.Adapter):
    d2l, layer, descent = d2l, Layer, Descent()
    Block, Embedding = keras.layers.Layer, keras.layers.Embedding
    RMSNorm = getattr(keras.layers, "RMSNormalization", None)  # Keras 2 has none
    seed = staticmethod(tf.random.set_seed)
    CALL_METHOD = "call"
    CAST_DTYPE = "float32"
    NORMAL_ARGS = ((2, 3),)
    ACCEPTS_NUMPY = True
    DROPS_INPUTS = True
    NORM_EPSILON = 1e-3
    ADDNORM_ARGS = [2], 0.0
    # A Keras model already has an attribute ``output``.
    OUTPUT_NAMES = "logits", "answer"
    LAYERS_PREFIX = "attentions."
    READER_OUTPUT = "answer.layers.0", "answer.layers.1"

    def block_sizes(self, width: int) -> tuple[Any, ...]:
        return width, width, width, width, [2]

    def build_dense(self, inputs: int, outputs: int) -> Any:
        return keras.layers.Dense(outputs)

    def is_training(self, layer: Any, training: bool | None) -> bool:
        return bool(training)

    def first_keys(self, encoded: Any) -> list[Any]:
        return [tf.zeros((len(encoded), 0, encoded.shape[-1]))]  # old versions of Keras reject None

    def build_multi_head(
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
            load_projections(layer, weights)
        return Layer(layer)

    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.PositionalEncoding(*args, dtype=dtype, **kwargs))

    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.RotaryEncoding(*args, dtype=dtype, **kwargs))

    def build_causal(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.CausalSelfAttention(*args, dtype=dtype, **kwargs)
        if weights is not None:
            layer.build((None, None, len(weights["W_q"])))
            load_projections(layer, weights)
        return Layer(layer)

    def build_block(self, *args: Any, dtype: str = "float64", **options: Any) -> Layer:
        return Layer(d2l.TransformerBlock(*args, dtype=dtype, **options))

    def with_dtype(self, layer: keras.layers.Layer, dtype: str) -> Layer:
        assert layer.compute_dtype == dtype  # a layer of Keras gets it when it is made
        return Layer(layer)

    def build_block_encoder(
        self, vocab_size: int, num_blks: int, options: dict[str, Any], **model: Any
    ) -> Layer:
        dtype = {"dtype": "float64"}
        return super().build_block_encoder(vocab_size, num_blks, options | dtype, **model, **dtype)

    def build_block_decoder(
        self, vocab_size: int, num_blks: int, options: dict[str, Any], **model: Any
    ) -> Layer:
        dtype = {"dtype": "float64"}
        return super().build_block_decoder(vocab_size, num_blks, options | dtype, **model, **dtype)

    def build_linear_attention(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.LinearAttention(*args, dtype=dtype, **kwargs)
        if weights is not None:
            layer.build((None, None, len(weights["W_q"])))
            load_projections(layer, weights)
        return Layer(layer)

    def build_linear(self, inputs: int, start: adapter.Arrays | None) -> keras.layers.Layer:
        net = keras.layers.Dense(3)
        net.build((None, inputs))
        if start:
            net.set_weights([start["weight"], start["bias"]])
        return net

    def build_unused(self) -> keras.layers.Layer:
        return keras.layers.Dense(1)

    def native_causal_attention(self, *inputs: NDArray[Any]) -> NDArray[Any] | None:
        if not hasattr(keras, "ops"):  # Keras 2
            return None
        tensors = (self.tensor(x.swapaxes(1, 2)) for x in inputs)
        output = keras.ops.dot_product_attention(*tensors, is_causal=True)
        return self.to_numpy(output).swapaxes(1, 2)
