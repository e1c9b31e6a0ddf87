from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from d2l_compat import torch as d2l
from tools.bench.layers import (
    BATCH,
    HEADS,
    WIDTH,
    Mask,
    Step,
    make_inputs,
    make_optional_converter,
    make_text,
)

to_tensor = make_optional_converter(torch.tensor)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = torch.tensor(make_inputs(mask.n), requires_grad=True)

    def make_step(layer: nn.Module, *args: Any, num_inputs: int = 3, **kwargs: Any) -> Step:
        def run() -> None:
            layer.zero_grad(set_to_none=True)
            X.grad = None
            result = layer(*[X] * num_inputs, *args, **kwargs)
            output = result[0] if isinstance(result, tuple) else result
            output.sum().backward()

        return run

    def prepare_shim() -> Step:
        if mask.is_linear:
            return make_step(d2l.LinearAttention(WIDTH, HEADS), num_inputs=1)
        layer = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        lens, bias = to_tensor(mask.valid_lens), to_tensor(mask.score_bias)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias, window=mask.window)

    def prepare_upstream() -> Step:
        from d2l import torch as upstream

        return make_step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0), to_tensor(mask.all_lens))

    def prepare_own() -> Step:
        layer = nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True)
        if mask.key_mask is not None:
            return make_step(layer, key_padding_mask=to_tensor(~mask.key_mask), need_weights=False)
        additive = mask.additive_mask
        if mask.score_bias is not None:  # the layer needs the heads' biases for each example
            additive = np.tile(mask.score_bias, (BATCH, 1, 1))
        return make_step(
            layer,
            attn_mask=to_tensor(additive),
            is_causal=mask.causal and mask.window is None,
            need_weights=False,
        )

    return {"shim": prepare_shim, "upstream": prepare_upstream, "own": prepare_own}


def list_token_steps(n: int) -> dict[str, Callable[[], Step]]:
    X = torch.tensor(make_text(n + 1))
    last = X[:, n:]

    def prepare_cached() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        cache = layer.make_cache(1, n + 1)
        layer(X[:, :n], cache=cache)
        lengths = cache.lengths

        @torch.no_grad()
        def run() -> None:
            cache.lengths = lengths
            layer(last, cache=cache)

        return run

    def prepare_recomputed() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        return torch.no_grad()(lambda: layer(X))

    def prepare_own() -> Step:
        """Keep keys and values by hand, for PyTorch's function."""
        W_q, W_k, W_v, W_o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        keys, values = torch.ones(2, 1, HEADS, n + 1, WIDTH // HEADS)

        def split(x: torch.Tensor) -> torch.Tensor:
            return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

        @torch.no_grad()
        def run() -> None:
            keys[:, :, n:] = split(W_k(last))
            values[:, :, n:] = split(W_v(last))
            query = split(W_q(last))
            pooled = nn.functional.scaled_dot_product_attention(query, keys, values)
            W_o(pooled.transpose(1, 2).flatten(2))

        return run

    return {"cached": prepare_cached, "recomputed": prepare_recomputed, "own": prepare_own}
