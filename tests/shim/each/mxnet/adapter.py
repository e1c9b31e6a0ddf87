"""The adapter of d2l_compat.mxnet."""

import math
import warnings
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

# First: it makes MXNet importable.
from d2l_compat import mxnet as d2l  # isort: skip
import mxnet
from mxnet import autograd, init, npx
from mxnet.gluon import nn

from tests.shim import reference
from tests.shim.each import adapter
from tests.shim.each.mxnet.descent import Descent


class Layer(adapter.Layer):
    @staticmethod
    def tensor(x: NDArray[Any]) -> mxnet.np.ndarray:
        return mxnet.np.array(x, dtype=x.dtype)

    @staticmethod
    def array(x: Any) -> Any:
        return x.asnumpy() if isinstance(x, mxnet.np.ndarray) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        with autograd.train_mode() if training else autograd.predict_mode():
            return self.to_numpy(
                self.layer(*self.to_tensors(inputs), **self.kwargs_to_tensors(kwargs))
            )

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        tensors, kwargs = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
        floats = [
            x
            for x in (*tensors, *kwargs.values())
            if isinstance(x, mxnet.np.ndarray) and np.dtype(x.dtype).kind == "f"
        ]
        for x in floats:
            x.attach_grad()
        with autograd.record(train_mode=False):
            output = self.layer(*tensors, **kwargs)
        output.backward(self.tensor(direction))
        return [x.grad.asnumpy() for x in floats]

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        # Encoders are initialized already. MXNet's random initializers have single precision only.
        self.layer.initialize(init.Zero(), force_reinit=True)
        self(*inputs, **kwargs)
        rng = np.random.default_rng(0)
        for parameter in self.layer.collect_params().values():
            parameter.set_data(self.tensor(rng.normal(0, 0.5, parameter.shape).astype("float32")))

    @property
    def parameter_names(self) -> list[str]:
        return [*self.layer.collect_params()]

    @property
    def num_parameters(self) -> int:
        return sum(math.prod(x.shape) for x in self.layer.collect_params().values())

    def parameters(self, path: str) -> adapter.Arrays:
        layer = self.part(path)
        if isinstance(layer, nn.LayerNorm):
            return {name: self.to_numpy(getattr(layer, name).data()) for name in ("gamma", "beta")}
        if hasattr(layer, "scale"):  # an RMSNorm of a lesson
            return {"gamma": self.to_numpy(layer.scale.data())}
        if hasattr(layer, "gamma"):  # an RMSNorm of a block
            return {"gamma": self.to_numpy(layer.gamma.data())}
        weight = self.to_numpy(layer.weight.data())
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        bias = {} if layer.bias is None else {"bias": self.to_numpy(layer.bias.data())}
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self.part(path)
        parameters = layer.collect_params()

        def linears(name: str) -> dict[str, reference.Linear]:
            """Return the gates of a name such as ``l0_i2h``."""
            weight, bias = (
                np.split(self.to_numpy(parameters[f"{layer.prefix}{name}_{kind}"].data()), 3)
                for kind in ("weight", "bias")
            )
            parts = zip(("reset", "update", "new"), weight, bias, strict=True)
            return {gate: reference.Linear(w.T, b) for gate, w, b in parts}

        return [
            reference.Gates(linears(f"l{number}_i2h"), linears(f"l{number}_h2h"))
            for number in range(len(parameters.keys()) // 4)
        ]


tensor, to_numpy = Layer.tensor, Layer.to_numpy


def initialize_projections(layer: nn.Block, weights: adapter.Arrays | None) -> Layer:
    # MXNet's other initializers have single precision only.
    layer.initialize(init.Orthogonal())
    kinds = {"W": "weight", "b": "bias"}
    for name, array in (weights or {}).items():
        getattr(getattr(layer, f"W_{name[2]}"), kinds[name[0]]).set_data(tensor(array.T))
    return Layer(layer)


def initialize(layer: nn.Block) -> None:
    """Initialize a layer that may be initialized already, as encoders are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer.initialize()


class Adapter(adapter.Adapter):
    d2l, layer, descent = d2l, Layer, Descent()
    Block, Embedding = nn.Block, nn.Embedding
    seed = staticmethod(mxnet.random.seed)
    wait = staticmethod(mxnet.nd.waitall)
    CAN_REPLACE_TYPE = False
    RAND_ARGS = 2, 3
    ADDNORM_ARGS = (0.0,)
    FEATURES_ARGS = ()  # Gluon's layers take their sizes from their input
    READER_OUTPUT = "output.0", "output.1"

    def block_sizes(self, width: int) -> tuple[Any, ...]:
        return (width,)

    def build_dense(self, inputs: int, outputs: int) -> Any:
        return nn.Dense(outputs, flatten=False, in_units=inputs)

    def initialize(self, layer: Any) -> Any:
        layer.initialize(init.Xavier())
        return layer

    def is_training(self, layer: Any, training: bool | None) -> bool:
        return autograd.is_training()

    def build_multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.MultiHeadAttention(*args, **kwargs)
        layer.cast(dtype)
        return initialize_projections(layer, weights)

    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        layer = d2l.PositionalEncoding(*args, **kwargs)
        layer.cast(dtype)
        return Layer(layer)

    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        layer = d2l.RotaryEncoding(*args, **kwargs)
        layer.cast(dtype)
        return Layer(layer)

    def build_causal(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.CausalSelfAttention(*args, **kwargs)
        layer.cast(dtype)
        return initialize_projections(layer, weights)

    def build(self, name: str, *args: Any, **kwargs: Any) -> Layer:
        layer = super().build(name, *args, **kwargs)
        if isinstance(layer.layer, nn.Block):
            initialize(layer.layer)
        return layer

    def with_dtype(self, layer: nn.Block, dtype: str) -> Layer:
        initialize(layer)
        layer.cast(dtype)
        return Layer(layer)

    def build_linear_attention(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.LinearAttention(*args, **kwargs)
        layer.cast(dtype)
        return initialize_projections(layer, weights)

    def build_linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Block:
        net = nn.Dense(3, in_units=inputs)
        net.initialize(init.Normal(0.1))
        if start:
            net.weight.set_data(tensor(start["weight"].T))
            net.bias.set_data(tensor(start["bias"]))
        return net

    def build_unused(self) -> nn.Block:
        return nn.Dense(1)

    def lesson_encode(
        self, layer: nn.Block, X: NDArray[Any], offset: int = 0, training: bool = False
    ) -> NDArray[Any]:
        return Layer(layer)(X, offset, training=training)  # Gluon takes no keyword arguments

    def lesson_state_names(self, layer: nn.Block) -> list[str]:
        with NamedTemporaryFile() as file:
            layer.save_parameters(file.name)
            return [*super().lesson_state_names(layer), *npx.load(file.name)]

    def new_reader(self, names: dict[str, Any], kind: str) -> nn.Block:
        reader = names[f"{kind}_reader"]()
        reader.initialize(init.Xavier())
        reader(tensor(np.zeros((1, 8), "int64")))
        return reader

    def lesson_parameter(self, parameter: Any) -> NDArray[Any]:
        return to_numpy(parameter.data())

    def lesson_learned_table(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*already initialized")
            return super().lesson_learned_table(names)
