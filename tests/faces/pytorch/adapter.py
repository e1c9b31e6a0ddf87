"""Drives d2l_compat.torch."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from d2l_compat import torch as d2l
from tests import reference
from tests.faces import adapter
from tests.faces.pytorch.translator import with_functions, with_trainer


def tensor(x: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(x))


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return x.detach().numpy() if isinstance(x, torch.Tensor) else x


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


class Layer(adapter.Layer):
    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        return plain(self.layer.train(training)(*map(_given, inputs), **kwargs))

    @property
    def attention_weights(self) -> Any:
        return plain(self.layer.attention_weights)

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.numpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x.requires_grad_() for x in tensors if x is not None and x.is_floating_point()]
        with torch.autograd.set_detect_anomaly(True):  # NaN on the way is an error as well
            (self.layer.eval()(*tensors) * tensor(direction)).sum().backward()
        return [x.grad.numpy() for x in floats]

    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        torch.manual_seed(0)
        for parameter in self.layer.parameters():
            nn.init.normal_(parameter, std=0.5)

    def parameters(self, path: str) -> dict[str, NDArray[Any]]:
        layer = self.part(path)
        weight = plain(layer.weight)
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        if isinstance(layer, nn.LayerNorm):
            return {"gamma": weight, "beta": plain(layer.bias)}
        bias = {} if layer.bias is None else {"bias": plain(layer.bias)}
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self.part(path)

        def linears(weight: torch.Tensor, bias: torch.Tensor) -> dict[str, reference.Linear]:
            parts = zip(("reset", "update", "new"), weight.chunk(3), bias.chunk(3), strict=True)
            return {name: reference.Linear(plain(w).T, plain(b)) for name, w, b in parts}

        return [
            reference.Gates(linears(w_i, b_i), linears(w_h, b_h))
            for w_i, w_h, b_i, b_h in layer.all_weights
        ]


class Adapter(adapter.Adapter):
    d2l, layer = d2l, Layer
    tensor, plain = staticmethod(tensor), staticmethod(plain)
    with_trainer, with_functions = staticmethod(with_trainer), staticmethod(with_functions)
    FUSED = True

    def multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
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

    def parameter_shapes(self, layer: adapter.Layer) -> dict[str, tuple[int, ...]]:
        names = {"weight": "W", "bias": "b"}
        shapes = {}
        for name, parameter in layer.layer.named_parameters():
            projection, kind = name.split(".")
            shapes[f"{names[kind]}_{projection[2]}"] = tuple(parameter.shape)[::-1]
        return shapes

    def encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.PositionalEncoding(*args, **kwargs).to(getattr(torch, dtype)))

    def linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Module:
        net = nn.Linear(inputs, 3)
        if start:
            net.load_state_dict(
                {"weight": tensor(start["weight"].T), "bias": tensor(start["bias"])}
            )
        return net

    def nothing(self) -> nn.Module:
        return nn.Identity()

    def labels(self, Y: NDArray[Any]) -> torch.Tensor:
        return tensor(Y.astype("int64"))

    def lesson_kept(self, layer: nn.Module) -> list[str]:
        return [*dict(layer.named_parameters()), *layer.state_dict()]
