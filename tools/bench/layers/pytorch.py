from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from d2l_compat import torch as d2l
from tools.bench.layers import HEADS, WIDTH, Step, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], Step]]:
    X = torch.tensor(inputs(n), requires_grad=True)
    lens = None if valid_lens is None else torch.tensor(valid_lens)
    padding = None if valid_lens is None else torch.tensor(~mask(valid_lens, n))

    def step(layer: nn.Module, *rest: Any, **named: Any) -> Step:
        def run() -> None:
            layer.zero_grad(set_to_none=True)
            X.grad = None
            result = layer(X, X, X, *rest, **named)
            output = result[0] if isinstance(result, tuple) else result
            output.sum().backward()

        return run

    def shim() -> Step:
        return step(d2l.MultiHeadAttention(WIDTH, HEADS, 0.0), lens)

    def theirs() -> Step:
        from d2l import torch as upstream

        return step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0), lens)

    def own() -> Step:
        layer = nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True)
        return step(layer, key_padding_mask=padding, need_weights=False)

    return {"shim": shim, "upstream": theirs, "own": own}
