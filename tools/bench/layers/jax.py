from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat import jax as d2l
from tools.bench.layers import HEADS, WIDTH, Step, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], Step]]:
    X = jnp.asarray(inputs(n))
    lens = None if valid_lens is None else jnp.asarray(valid_lens)
    keys = None if valid_lens is None else jnp.asarray(mask(valid_lens, n)[:, None, None])

    def step(layer: nn.Module, **rest: Any) -> Step:
        variables = jax.jit(partial(layer.init, **rest))(jax.random.key(0), X, X, X)

        @jax.jit  # as D2L's own loss is
        def gradients(variables: Any, X: jax.Array) -> Any:
            def loss(variables: Any, X: jax.Array) -> jax.Array:
                result = layer.apply(variables, X, X, X, **rest)
                output = result[0] if isinstance(result, tuple) else result
                return output.sum()

            return jax.grad(loss, argnums=(0, 1))(variables, X)

        return lambda: jax.block_until_ready(gradients(variables, X))

    def shim() -> Step:
        return step(d2l.MultiHeadAttention(WIDTH, HEADS, 0.0), valid_lens=lens)

    def theirs() -> Step:
        from d2l import jax as upstream

        return step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0), valid_lens=lens)

    def own() -> Step:
        layer = nn.MultiHeadDotProductAttention(HEADS, qkv_features=WIDTH, use_bias=False)
        return step(layer, mask=keys)

    return {"shim": shim, "upstream": theirs, "own": own}
