from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from d2l_compat import torch as d2l
from tools.bench.layers import HEADS, WIDTH, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], object]]:
    from d2l import torch as upstream

    X = torch.tensor(inputs(n), requires_grad=True)
    lens = None if valid_lens is None else torch.tensor(valid_lens)
    padding = None if valid_lens is None else torch.tensor(~mask(valid_lens, n))
    own = nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True)
    shim = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
    theirs = upstream.MultiHeadAttention(WIDTH, HEADS, 0.0)

    def step(layer: nn.Module, call: Callable[[], Any]) -> Callable[[], object]:
        def run() -> None:
            layer.zero_grad(set_to_none=True)
            X.grad = None
            call().sum().backward()

        return run

    return {
        "shim": step(shim, lambda: shim(X, X, X, lens)),
        "upstream": step(theirs, lambda: theirs(X, X, X, lens)),
        "own": step(own, lambda: own(X, X, X, key_padding_mask=padding, need_weights=False)[0]),
    }
