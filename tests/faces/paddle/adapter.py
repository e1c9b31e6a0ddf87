"""Drives d2l_compat.paddle; tests/faces/adapter.py says what each name is for."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat import paddle as d2l  # isort: split

import paddle
from paddle import nn

from tests import reference
from tests.faces.paddle.translator import with_functions, with_trainer

FUSED = False
CASTS = False
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


def tensor(x: NDArray[Any]) -> paddle.Tensor:
    return paddle.to_tensor(np.array(x))


class Layer:
    def __init__(self, layer: nn.Layer) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        self.layer.train() if training else self.layer.eval()
        return self.layer(*map(_given, inputs), **kwargs).numpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.numpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.numpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        self.layer.eval()
        tensors = [_given(x) for x in inputs]
        floats = [x for x in tensors if x is not None and x.is_floating_point()]
        for x in floats:
            x.stop_gradient = False
        paddle.set_flags({"FLAGS_check_nan_inf": True})  # NaN on the way is an error as well
        try:
            gradients = paddle.grad((self.layer(*tensors) * tensor(direction)).sum(), floats)
        finally:
            paddle.set_flags({"FLAGS_check_nan_inf": False})
        return [gradient.numpy() for gradient in gradients]


class AnyLayer(Layer):
    @property
    def attention_weights(self) -> Any:
        return plain(self.layer.attention_weights)

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        self.layer.train() if training else self.layer.eval()
        return plain(self.layer(*map(_given, inputs), **kwargs))

    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        paddle.seed(0)
        for parameter in self.layer.parameters():
            parameter.set_value(paddle.randn(parameter.shape) * 0.5)

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
        bias = {} if layer.bias is None else {"bias": plain(layer.bias)}
        return {"weight": weight, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self._part(path)

        def linears(kind: str, number: int) -> dict[str, reference.Linear]:
            weight, bias = (
                np.split(plain(getattr(layer, f"{what}_{kind}_l{number}")), 3)
                for what in ("weight", "bias")
            )
            parts = zip(("reset", "update", "new"), weight, bias, strict=True)
            return {name: reference.Linear(w.T, b) for name, w, b in parts}

        return [
            reference.Gates(linears("ih", number), linears("hh", number))
            for number in range(layer.num_layers)
        ]


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
    layer = d2l.MultiHeadAttention(*args, **kwargs).to(dtype=dtype)
    if weights is not None:
        # The short signature takes its sizes from the first call, and then weights fit.
        sizes = [weights[name].shape[0] for name in ("W_q", "W_k", "W_v")]
        layer(*(paddle.zeros([1, 1, size], dtype) for size in sizes))
        names = {"W": "weight", "b": "bias"}
        missing, unexpected = layer.set_state_dict(
            {f"W_{name[2]}.{names[name[0]]}": tensor(x) for name, x in weights.items()}
        )
        assert not missing
        assert not unexpected
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Layer(d2l.PositionalEncoding(*args, **kwargs).to(dtype=dtype))


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
        model.net.set_state_dict({name: tensor(array) for name, array in start.items()})
    built = AnyLayer(model)
    before = {name: array.copy() for name, array in built.parameters("net").items()}
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
    for name, parameter in layer.layer.named_parameters():
        projection, kind = name.split(".")
        shapes[f"{names[kind]}_{projection[2]}"] = tuple(parameter.shape)
    return shapes


def lesson_projections(names: dict[str, Any], layer: str = "attention") -> dict[str, NDArray[Any]]:
    return {f"W_{i}": plain(getattr(names[layer], f"W_{i}").weight) for i in "qkvo"}


def lesson_encoding(
    layer: nn.Layer, X: NDArray[Any], offset: int = 0, training: bool = False
) -> NDArray[Any]:
    layer.train() if training else layer.eval()
    return layer(tensor(X), offset=offset).numpy()


def lesson_kept(layer: nn.Layer) -> list[str]:
    return [*dict(layer.named_parameters()), *layer.state_dict()]


def lesson_sequences(names: dict[str, Any], count: int, length: int = 8) -> list[NDArray[Any]]:
    return plain(names["sequences"](count, length))


def lesson_reader(
    names: dict[str, Any], kind: str = ""
) -> tuple[dict[str, NDArray[Any]], Callable[[NDArray[Any]], NDArray[Any]]]:
    reader = names["readers"][kind]() if kind else names["reader"]

    def answers(tokens: NDArray[Any]) -> NDArray[Any]:
        return plain(reader(tensor(tokens)))

    answers(np.zeros((1, 8), "int64"))  # attention takes its sizes from its first input
    hidden, _, output = reader.output
    weights = {"embedding": reader.embedding.weight, "W_1": hidden.weight, "b_1": hidden.bias}
    weights |= {"W_2": output.weight, "b_2": output.bias}
    if kind == "learned":
        weights["P"] = reader.positions.P.weight
    projections = lesson_projections({"attention": reader.attention})
    return {name: plain(each) for name, each in weights.items()} | projections, answers


def lesson_learned_table(names: dict[str, Any]) -> list[NDArray[Any]]:
    tables = []

    def make_reader() -> nn.Layer:
        reader = names["readers"]["learned"]()
        tables.append(reader.positions.P.weight.numpy().copy())
        return reader

    trained = names["trained"](make_reader, 0)
    return [*tables, trained.positions.P.weight.numpy()]


def lesson_blocks(names: dict[str, Any]) -> list[dict[str, NDArray[Any]]]:
    return [lesson_projections({"attention": block}) for block in names["blocks"]]


def lesson_relative(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    relative = names["relative"]
    weights = {f"W_{i}": plain(getattr(relative, f"W_{i}").weight) for i in "qkv"}
    return weights | {"table": plain(relative.table.weight)}


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return x.numpy() if isinstance(x, paddle.Tensor) else x
