from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat import jax as d2l
from tools.bench.layers import (
    HEADS,
    WIDTH,
    Mask,
    Step,
    make_inputs,
    make_optional_converter,
    make_text,
)

to_array = make_optional_converter(jnp.asarray)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = jnp.asarray(make_inputs(mask.n))

    def make_step(layer: nn.Module, num_inputs: int = 3, **masks: Any) -> Step:
        initialize = jax.jit(layer.init, static_argnames=("causal", "window"))
        variables = initialize(jax.random.key(0), *[X] * num_inputs, **masks)

        @partial(jax.jit, static_argnames=("causal", "window"))  # compiled, as D2L's own loss is
        def gradients(variables: Any, X: jax.Array, **masks: Any) -> Any:
            def loss(variables: Any, X: jax.Array) -> jax.Array:
                result = layer.apply(variables, *[X] * num_inputs, **masks)
                output = result[0] if isinstance(result, tuple) else result
                return output.sum()

            return jax.grad(loss, argnums=(0, 1))(variables, X)

        return lambda: jax.block_until_ready(gradients(variables, X, **masks))

    def prepare_shim() -> Step:
        if mask.is_linear:
            return make_step(d2l.LinearAttention(WIDTH, HEADS), num_inputs=1)
        layer = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        lens, bias = to_array(mask.valid_lens), to_array(mask.score_bias)
        return make_step(
            layer, valid_lens=lens, causal=mask.causal, score_bias=bias, window=mask.window
        )

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
            return make_step(layer, mask=to_array(mask.query_mask[None, None]))
        return make_step(
            layer, mask=None if mask.key_mask is None else to_array(mask.key_mask[:, None, None])
        )

    return {"shim": prepare_shim, "upstream": prepare_upstream, "own": prepare_own}


def attend_with_bias(
    query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array
) -> jax.Array:
    return nn.dot_product_attention(query, key, value, bias=mask)


def list_token_steps(n: int) -> dict[str, Callable[[], Step]]:
    X = jnp.asarray(make_text(n + 1))
    last = X[:, n:]

    def make_step(update: Callable[[Any], Any], state: Any) -> Step:
        """Return a step that updates a cache in place."""
        compiled = jax.jit(update, donate_argnums=0)

        def run() -> None:
            nonlocal state
            state = jax.block_until_ready(compiled(state))

        return run

    def prepare_cached() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        variables = layer.init(jax.random.key(0), last)
        _, cache = layer.apply(variables, X[:, :n], cache=layer.make_cache(1, n + 1))

        def update(state: Any) -> Any:
            _, cache = state
            new: Any  # for mypy, Flax's layers return anything
            output, new = layer.apply(variables, last, cache=cache)
            return output, new.replace(lengths=cache.lengths)

        return make_step(update, (last, cache))

    def prepare_recomputed() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        variables = layer.init(jax.random.key(0), last)
        compute = jax.jit(lambda X: layer.apply(variables, X))
        return lambda: jax.block_until_ready(compute(X))

    def prepare_own() -> Step:
        layer = nn.MultiHeadDotProductAttention(HEADS, use_bias=False, decode=True)
        variables = layer.init(jax.random.key(0), X)
        index = jnp.full((), n, jnp.int32)

        def update(state: Any) -> Any:
            _, cache = state
            read = {"params": variables["params"], "cache": cache | {"cache_index": index}}
            output, changed = layer.apply(read, last, mutable="cache")
            return output, changed["cache"]

        return make_step(update, (last, variables["cache"]))

    return {"cached": prepare_cached, "recomputed": prepare_recomputed, "own": prepare_own}
