from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat import jax as d2l
from tools.bench.layers import HEADS, WIDTH, Mask, Step, make_inputs, make_optional_converter

to_array = make_optional_converter(jnp.asarray)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = jnp.asarray(make_inputs(mask.n))

    def make_step(layer: nn.Module, **masks: Any) -> Step:
        initialize = jax.jit(layer.init, static_argnames="causal")
        variables = initialize(jax.random.key(0), X, X, X, **masks)

        @partial(jax.jit, static_argnames="causal")  # compiled, as D2L's own loss is
        def gradients(variables: Any, X: jax.Array, **masks: Any) -> Any:
            def loss(variables: Any, X: jax.Array) -> jax.Array:
                result = layer.apply(variables, X, X, X, **masks)
                output = result[0] if isinstance(result, tuple) else result
                return output.sum()

            return jax.grad(loss, argnums=(0, 1))(variables, X)

        return lambda: jax.block_until_ready(gradients(variables, X, **masks))

    def prepare_shim() -> Step:
        layer = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        lens, bias = to_array(mask.valid_lens), to_array(mask.score_bias)
        return make_step(layer, valid_lens=lens, causal=mask.causal, score_bias=bias)

    def prepare_upstream() -> Step:
        from d2l import jax as upstream

        layer = upstream.MultiHeadAttention(WIDTH, HEADS, 0.0)
        return make_step(layer, valid_lens=to_array(mask.all_lens))

    def prepare_own() -> Step:
        layer = nn.MultiHeadDotProductAttention(HEADS, qkv_features=WIDTH, use_bias=False)
        # The layer does not accept a bias, but its attention function does.
        if mask.score_bias is not None:
            return make_step(
                layer.clone(attention_fn=attend_with_bias), mask=to_array(mask.score_bias)
            )
        if mask.causal:
            return make_step(layer, mask=nn.make_causal_mask(X[:1, :, 0], dtype=jnp.bool_))
        return make_step(
            layer, mask=None if mask.key_mask is None else to_array(mask.key_mask[:, None, None])
        )

    if mask.score_bias is not None:
        return {"shim": prepare_shim, "own": prepare_own}
    return {"shim": prepare_shim, "upstream": prepare_upstream, "own": prepare_own}


def attend_with_bias(
    query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array
) -> jax.Array:
    return nn.dot_product_attention(query, key, value, bias=mask)
