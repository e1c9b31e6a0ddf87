from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat import jax as d2l
from tools.bench.layers import HEADS, WIDTH, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], object]]:
    from d2l import jax as upstream

    X = jnp.asarray(inputs(n))
    lens = None if valid_lens is None else jnp.asarray(valid_lens)
    keys = None if valid_lens is None else jnp.asarray(mask(valid_lens, n)[:, None, None])
    own = nn.MultiHeadDotProductAttention(HEADS, qkv_features=WIDTH, use_bias=False)

    def step(layer: nn.Module, **rest: Any) -> Callable[[], object]:
        variables = layer.init(jax.random.key(0), X, X, X, **rest)

        @jax.jit  # as D2L's own loss is
        def gradients(variables: Any, X: jax.Array) -> Any:
            def loss(variables: Any, X: jax.Array) -> jax.Array:
                result = layer.apply(variables, X, X, X, **rest)
                output = result[0] if isinstance(result, tuple) else result
                return output.sum()

            return jax.grad(loss, argnums=(0, 1))(variables, X)

        return lambda: jax.block_until_ready(gradients(variables, X))

    return {
        "shim": step(d2l.MultiHeadAttention(WIDTH, HEADS, 0.0), valid_lens=lens),
        "upstream": step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0), valid_lens=lens),
        "own": step(own, mask=keys),
    }
