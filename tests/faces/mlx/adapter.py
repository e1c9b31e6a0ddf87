"""Drives d2l_compat.mlx; tests/faces/adapter.py says what each name is for."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten
from numpy.typing import NDArray

from d2l_compat import mlx as d2l
from tests import reference
from tests.faces.mlx.translator import with_functions, with_trainer

FUSED = False  # on a CPU
CASTS = "float64"  # with weights of float32: MLX takes the wider
ACCEPTS_NUMPY = False
__all__ = ["with_functions", "with_trainer"]
NORM_EPSILON = 1e-5
_SIZES = (8, 8, 8, 8, [8], 8)
FORMS = {
    "AddNorm": (8, 0.0),
    "PositionWiseFFN": {"short": (16, 8), "long": (8, 16, 8)},
    "TransformerEncoderBlock": {"short": (8, 16, 2, 0.0), "long": (*_SIZES, 16, 2, 0.0)},
    "TransformerEncoder": {"short": (7, 8, 16, 2, 2, 0.0), "long": (7, *_SIZES, 16, 2, 2, 0.0)},
}


def tensor(x: NDArray[Any]) -> mx.array:
    return mx.array(x, getattr(mx, "bool_" if x.dtype == bool else str(x.dtype)))


class Layer:
    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        return plain(self.layer.train(training)(*map(_given, inputs), **kwargs))

    @property
    def attention_weights(self) -> NDArray[Any]:
        return plain(self.layer.attention_weights)

    @property
    def P(self) -> NDArray[Any]:
        return plain(self.layer.P)

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        *floats, valid_lens = map(_given, inputs)
        self.layer.eval()

        def output(*floats: mx.array) -> list[mx.array]:
            return [self.layer(*floats, valid_lens)]

        return plain(mx.vjp(output, floats, [tensor(direction)])[1])


class AnyLayer(Layer):
    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        mx.random.seed(0)
        self.layer.apply(lambda array: 0.5 * mx.random.normal(array.shape))

    def _part(self, path: str) -> Any:
        part: Any = self.layer
        for name in path.split("."):
            part = part[int(name)] if name.isdecimal() else getattr(part, name)
        return part

    def parameters(self, path: str) -> dict[str, NDArray[Any]]:
        layer = self._part(path)
        weight = plain(layer.weight)
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        if isinstance(layer, nn.LayerNorm):
            return {"gamma": weight, "beta": plain(layer.bias)}
        bias = {"bias": plain(layer.bias)} if "bias" in layer else {}
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        def linears(weight: mx.array, *biases: mx.array) -> dict[str, reference.Linear]:
            names = ("reset", "update", "new")
            parts = zip(names, mx.split(weight, 3), biases, strict=True)
            return {name: reference.Linear(plain(w).T, plain(b)) for name, w, b in parts}

        none = mx.array(0.0)
        return [
            reference.Gates(
                linears(layer.Wx, *mx.split(layer.b, 3)), linears(layer.Wh, none, none, layer.bhn)
            )
            for layer in self._part(path)
        ]


def build(name: str, *args: Any, **kwargs: Any) -> AnyLayer:
    return AnyLayer(getattr(d2l, name)(*args, **kwargs))


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return plain(getattr(d2l, name)(*map(_given, args), **kwargs))


def masked_softmax(X: Any, valid_lens: Any = None) -> NDArray[Any]:
    return plain(d2l.masked_softmax(_given(X), _given(valid_lens)))


def dot_product(dropout: float = 0.0) -> Layer:
    return Layer(d2l.DotProductAttention(dropout))


def multi_head(
    *args: Any,
    weights: dict[str, NDArray[Any]] | None = None,
    dtype: str = "float64",
    **kwargs: Any,
) -> Layer:
    layer = d2l.MultiHeadAttention(*args, **kwargs)
    if weights is not None:
        # Of the short signature, a first call makes the parameters.
        inputs = [mx.zeros((1, 1, len(weights[f"W_{role}"]))) for role in "qkv"]
        layer(*inputs)
        names = {"W": "weight", "b": "bias"}
        layer.load_weights(
            [(f"W_{name[2]}.{names[name[0]]}", tensor(x.T)) for name, x in weights.items()]
        )
    layer.set_dtype(getattr(mx, dtype))
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    layer = d2l.PositionalEncoding(*args, **kwargs)
    layer.set_dtype(getattr(mx, dtype))
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
            self.net = nn.Linear(X.shape[1], 3)

    model = Linear(lr)
    if start:
        model.net.weight, model.net.bias = tensor(start["weight"].T), tensor(start["bias"])
    built = AnyLayer(model)
    before = built.parameters("net")
    d2l.Trainer(max_epochs=epochs, gradient_clip_val=clip).fit(model, Rows())
    return before, built.parameters("net"), model.board.data


def sequence_loss(Y_hat: NDArray[Any], Y: NDArray[Any], tgt_pad: int) -> list[NDArray[Any]]:
    model = d2l.Seq2Seq(nn.Identity(), nn.Identity(), tgt_pad, 0.1)
    given = tensor(Y_hat), tensor(Y)
    return [plain(model.loss(*given)), plain(model.loss(*given, averaged=False))]


def classifier(name: str) -> Any:
    return getattr(d2l.Classifier(), name)


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    names = {"weight": "W", "bias": "b"}
    shapes = {}
    for path, parameter in tree_flatten(layer.layer.parameters()):
        projection, kind = path.split(".")
        shapes[f"{names[kind]}_{projection[2]}"] = parameter.shape[::-1]
    return shapes


def lesson_projections(names: dict[str, Any], layer: str = "attention") -> dict[str, NDArray[Any]]:
    return {f"W_{i}": plain(getattr(names[layer], f"W_{i}").weight).T for i in "qkvo"}


def lesson_encoding(
    layer: nn.Module, X: NDArray[Any], offset: int = 0, training: bool = False
) -> NDArray[Any]:
    return plain(layer.train(training)(tensor(X), offset=offset))


def lesson_kept(layer: nn.Module) -> list[str]:
    return [path for path, _ in tree_flatten(layer.parameters())]


def lesson_sequences(names: dict[str, Any], count: int, length: int = 8) -> list[NDArray[Any]]:
    return plain(names["sequences"](count, length))


def lesson_reader(
    names: dict[str, Any], kind: str = ""
) -> tuple[dict[str, NDArray[Any]], Callable[[NDArray[Any]], NDArray[Any]]]:
    reader = names["readers"][kind]() if kind else names["reader"]

    def answers(tokens: NDArray[Any]) -> NDArray[Any]:
        return plain(reader(tensor(tokens)))

    answers(np.zeros((1, 8), "int64"))  # attention takes its sizes from its first input
    hidden, _, output = reader.output.layers
    weights = {"embedding": reader.embedding.weight, "W_1": hidden.weight.T, "b_1": hidden.bias}
    weights |= {"W_2": output.weight.T, "b_2": output.bias}
    if kind == "learned":
        weights["P"] = reader.positions.P.weight
    projections = lesson_projections({"attention": reader.attention})
    return {name: plain(each) for name, each in weights.items()} | projections, answers


def lesson_learned_table(names: dict[str, Any]) -> list[NDArray[Any]]:
    readers = []

    def make_reader() -> nn.Module:
        reader = names["readers"]["learned"]()
        readers.append(deepcopy(reader))
        return reader

    readers.append(names["trained"](make_reader, 0))
    return [plain(reader.positions.P.weight) for reader in readers]


def lesson_blocks(names: dict[str, Any]) -> list[dict[str, NDArray[Any]]]:
    return [lesson_projections({"attention": block}) for block in names["blocks"]]


def lesson_relative(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    relative = names["relative"]
    weights = {f"W_{i}": plain(getattr(relative, f"W_{i}").weight.T) for i in "qkv"}
    return weights | {"table": plain(relative.table.weight)}


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return np.array(x) if isinstance(x, mx.array) else x
