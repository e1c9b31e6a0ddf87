"""Drives d2l_compat.torch; tests/faces/adapter.py says what each name is for."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from d2l_compat import torch as d2l
from tests import reference
from tests.faces.pytorch.translator import with_functions, with_trainer

FUSED = True
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


def tensor(x: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(x))


class Layer:
    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        return self.layer.train(training)(*map(_given, inputs), **kwargs).detach().numpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.detach().numpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.numpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x.requires_grad_() for x in tensors if x is not None and x.is_floating_point()]
        with torch.autograd.set_detect_anomaly(True):  # NaN on the way is an error as well
            (self.layer.eval()(*tensors) * tensor(direction)).sum().backward()
        return [x.grad.numpy() for x in floats]


class AnyLayer(Layer):
    @property
    def attention_weights(self) -> Any:
        return plain(self.layer.attention_weights)

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        return plain(self.layer.train(training)(*map(_given, inputs), **kwargs))

    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        torch.manual_seed(0)
        for parameter in self.layer.parameters():
            nn.init.normal_(parameter, std=0.5)

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
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self._part(path)

        def linears(weight: torch.Tensor, bias: torch.Tensor) -> dict[str, reference.Linear]:
            parts = zip(("reset", "update", "new"), weight.chunk(3), bias.chunk(3), strict=True)
            return {name: reference.Linear(plain(w).T, plain(b)) for name, w, b in parts}

        return [
            reference.Gates(linears(w_i, b_i), linears(w_h, b_h))
            for w_i, w_h, b_i, b_h in layer.all_weights
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
    layer = d2l.MultiHeadAttention(*args, **kwargs).to(getattr(torch, dtype))
    names = {"W": "weight", "b": "bias"}
    layer.load_state_dict(
        {f"W_{name[2]}.{names[name[0]]}": tensor(x.T) for name, x in (weights or {}).items()},
        strict=weights is not None,
    )
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Layer(d2l.PositionalEncoding(*args, **kwargs).to(getattr(torch, dtype)))


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
            self.arrays, self.batch_size = (tensor(X), tensor(Y.astype("int64"))), len(X)

        def get_dataloader(self, train: bool) -> Any:
            return self.get_tensorloader(self.arrays, train)

    class Linear(d2l.Classifier):
        def __init__(self, lr: float) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.net = nn.Linear(X.shape[1], 3)

    model = Linear(lr)
    if start:
        model.net.load_state_dict(
            {"weight": tensor(start["weight"].T), "bias": tensor(start["bias"])}
        )
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
        shapes[f"{names[kind]}_{projection[2]}"] = tuple(parameter.shape)[::-1]
    return shapes


def lesson_projections(names: dict[str, Any], layer: str = "attention") -> dict[str, NDArray[Any]]:
    return {f"W_{i}": plain(getattr(names[layer], f"W_{i}").weight).T for i in "qkvo"}


def lesson_encoding(
    layer: nn.Module, X: NDArray[Any], offset: int = 0, training: bool = False
) -> NDArray[Any]:
    return plain(layer.train(training)(tensor(X), offset=offset))


def lesson_kept(layer: nn.Module) -> list[str]:
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
    return x.detach().numpy() if isinstance(x, torch.Tensor) else x
