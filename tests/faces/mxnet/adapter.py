"""Drives d2l_compat.mxnet; tests/faces/adapter.py says what each name is for."""

import warnings
from collections.abc import Callable
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

# First: it makes MXNet importable.
from d2l_compat import mxnet as d2l  # isort: skip
import mxnet
from mxnet import autograd, init, npx
from mxnet.gluon import nn

from tests import reference
from tests.faces.mxnet.translator import with_functions, with_trainer

FUSED = False
CASTS = False
ACCEPTS_NUMPY = False
__all__ = ["with_functions", "with_trainer"]
NORM_EPSILON = 1e-5
FORMS = {
    "AddNorm": (0.0,),
    "PositionWiseFFN": {"short": (16, 8), "long": (16, 8)},
    "TransformerEncoderBlock": {"short": (8, 16, 2, 0.0), "long": (8, 16, 2, 0.0)},
    "TransformerEncoder": {"short": (7, 8, 16, 2, 2, 0.0), "long": (7, 8, 16, 2, 2, 0.0)},
}


def tensor(x: NDArray[Any]) -> mxnet.np.ndarray:
    return mxnet.np.array(x, dtype=x.dtype)


class Layer:
    def __init__(self, layer: nn.Block) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        with autograd.train_mode() if training else autograd.predict_mode():
            return self.layer(*map(_given, inputs), **kwargs).asnumpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.asnumpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.asnumpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x for x in tensors if x is not None and np.dtype(x.dtype).kind == "f"]
        for x in floats:
            x.attach_grad()
        with autograd.record(train_mode=False):
            output = self.layer(*tensors)
        output.backward(tensor(direction))
        return [x.grad.asnumpy() for x in floats]


class AnyLayer(Layer):
    @property
    def attention_weights(self) -> Any:
        return plain(self.layer.attention_weights)

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        with autograd.train_mode() if training else autograd.predict_mode():
            return plain(self.layer(*map(_given, inputs), **kwargs))

    def randomize(self, *inputs: Any) -> None:
        self.layer.initialize(force_reinit=True)  # encoders are already
        self(*inputs)
        rng = np.random.default_rng(0)
        for parameter in self.layer.collect_params().values():
            parameter.set_data(tensor(rng.normal(0, 0.5, parameter.shape).astype("float32")))

    def _part(self, path: str) -> Any:
        part: Any = self.layer
        for name in path.split("."):
            part = part[int(name)] if name.isdecimal() else getattr(part, name)
        return part

    def parameters(self, path: str) -> dict[str, NDArray[Any]]:
        layer = self._part(path)
        if isinstance(layer, nn.LayerNorm):
            return {name: plain(getattr(layer, name).data()) for name in ("gamma", "beta")}
        weight = plain(layer.weight.data())
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        bias = {} if layer.bias is None else {"bias": plain(layer.bias.data())}
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self._part(path)
        parameters = layer.collect_params()

        def linears(name: str) -> dict[str, reference.Linear]:
            """Of ``l0_i2h`` and its like."""
            weight, bias = (
                np.split(plain(parameters[f"{layer.prefix}{name}_{kind}"].data()), 3)
                for kind in ("weight", "bias")
            )
            parts = zip(("reset", "update", "new"), weight, bias, strict=True)
            return {gate: reference.Linear(w.T, b) for gate, w, b in parts}

        return [
            reference.Gates(linears(f"l{number}_i2h"), linears(f"l{number}_h2h"))
            for number in range(len(parameters.keys()) // 4)
        ]


def build(name: str, *args: Any, **kwargs: Any) -> AnyLayer:
    return AnyLayer(getattr(d2l, name)(*args, **kwargs))


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return plain(getattr(d2l, name)(*map(_given, args), **kwargs))


def masked_softmax(X: Any, valid_lens: Any = None) -> NDArray[Any]:
    return d2l.masked_softmax(_given(X), _given(valid_lens)).asnumpy()


def dot_product(dropout: float = 0.0) -> Layer:
    return Layer(d2l.DotProductAttention(dropout))


def multi_head(
    *args: Any,
    weights: dict[str, NDArray[Any]] | None = None,
    dtype: str = "float64",
    **kwargs: Any,
) -> Layer:
    layer = d2l.MultiHeadAttention(*args, **kwargs)
    layer.cast(dtype)
    # MXNet's other initial weights come in single precision only.
    layer.initialize(init.Orthogonal())
    kinds = {"W": "weight", "b": "bias"}
    for name, array in (weights or {}).items():
        getattr(getattr(layer, f"W_{name[2]}"), kinds[name[0]]).set_data(tensor(array.T))
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    layer = d2l.PositionalEncoding(*args, **kwargs)
    layer.cast(dtype)
    return Layer(layer)


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
            self.net = nn.Dense(3, in_units=X.shape[1])
            self.net.initialize(init.Normal(0.1))

    model = Linear(lr)
    if start:
        model.net.weight.set_data(tensor(start["weight"].T))
        model.net.bias.set_data(tensor(start["bias"]))
    built = AnyLayer(model)
    before = built.parameters("net")
    d2l.Trainer(max_epochs=epochs, gradient_clip_val=clip).fit(model, Rows())
    return before, built.parameters("net"), model.board.data


def sequence_loss(Y_hat: NDArray[Any], Y: NDArray[Any], tgt_pad: int) -> list[NDArray[Any]]:
    model = d2l.Seq2Seq(nn.Dense(1), nn.Dense(1), tgt_pad, 0.1)
    given = tensor(Y_hat), tensor(Y)
    return [plain(model.loss(*given)), plain(model.loss(*given, averaged=False))]


def classifier(name: str) -> Any:
    return getattr(d2l.Classifier(), name)


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    projections = {role: getattr(layer.layer, f"W_{role}") for role in "qkvo"}
    shapes = {f"W_{role}": W.weight.shape[::-1] for role, W in projections.items()}
    biases = {f"b_{role}": W.bias.shape for role, W in projections.items() if W.bias is not None}
    return shapes | biases


def lesson_projections(names: dict[str, Any], layer: str = "attention") -> dict[str, NDArray[Any]]:
    return {f"W_{i}": plain(getattr(names[layer], f"W_{i}").weight.data()).T for i in "qkvo"}


def lesson_encoding(
    layer: nn.Block, X: NDArray[Any], offset: int = 0, training: bool = False
) -> NDArray[Any]:
    with autograd.train_mode() if training else autograd.predict_mode():
        return layer(tensor(X), offset).asnumpy()


def lesson_kept(layer: nn.Block) -> list[str]:
    with NamedTemporaryFile() as file:
        layer.save_parameters(file.name)
        return [*layer.collect_params(), *npx.load(file.name)]


def lesson_sequences(names: dict[str, Any], count: int, length: int = 8) -> list[NDArray[Any]]:
    return plain(names["sequences"](count, length))


def lesson_reader(
    names: dict[str, Any], kind: str = ""
) -> tuple[dict[str, NDArray[Any]], Callable[[NDArray[Any]], NDArray[Any]]]:
    reader = names["readers"][kind]() if kind else names["reader"]
    if kind:
        reader.initialize(init.Xavier())

    def answers(tokens: NDArray[Any]) -> NDArray[Any]:
        return plain(reader(tensor(tokens)))

    answers(np.zeros((1, 8), "int64"))  # Gluon makes weights for the first input
    hidden, output = reader.output
    weights = {"embedding": plain(reader.embedding.weight.data())}
    for i, dense in ((1, hidden), (2, output)):
        weights |= {f"W_{i}": plain(dense.weight.data()).T, f"b_{i}": plain(dense.bias.data())}
    if kind == "learned":
        weights["P"] = plain(reader.positions.P.weight.data())
    return weights | lesson_projections({"attention": reader.attention}), answers


def lesson_learned_table(names: dict[str, Any]) -> list[NDArray[Any]]:
    tables = []

    def make_reader() -> nn.Block:
        reader = names["readers"]["learned"]()
        reader.initialize(init.Xavier())
        tables.append(plain(reader.positions.P.weight.data()))
        return reader

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*already initialized")
        trained = names["trained"](make_reader, 0)
    return [*tables, plain(trained.positions.P.weight.data())]


def lesson_blocks(names: dict[str, Any]) -> list[dict[str, NDArray[Any]]]:
    return [lesson_projections({"attention": block}) for block in names["blocks"]]


def lesson_relative(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    relative = names["relative"]
    weights = {f"W_{i}": plain(getattr(relative, f"W_{i}").weight.data().T) for i in "qkv"}
    return weights | {"table": plain(relative.table.weight.data())}


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return x.asnumpy() if isinstance(x, mxnet.np.ndarray) else x
