from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from tools.bench.layers import (
    HEADS,
    WIDTH,
    Mask,
    Step,
    make_inputs,
    make_optional_converter,
    make_text,
)

to_tensor = make_optional_converter(tf.constant)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = tf.constant(make_inputs(mask.n))
    sizes = (WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)

    def make_step(layer: Any, *args: Any, num_inputs: int = 3, **kwargs: Any) -> Step:
        def run() -> object:
            with tf.GradientTape() as tape:
                tape.watch(X)
                loss = tf.reduce_sum(layer(*[X] * num_inputs, *args, **kwargs))
            gradients = tape.gradient(loss, [X, *layer.trainable_variables])
            return float(tf.reduce_sum(gradients[0]))

        return run

    def prepare_shim() -> Step:
        if mask.is_linear:
            return make_step(d2l.LinearAttention(WIDTH, HEADS), num_inputs=1)
        lens, bias = to_tensor(mask.valid_lens), to_tensor(mask.score_bias)
        layer = d2l.MultiHeadAttention(*sizes)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias, window=mask.window)

    def prepare_upstream() -> Step:
        from d2l import tensorflow as upstream

        return make_step(upstream.MultiHeadAttention(*sizes), to_tensor(mask.all_lens))

    def prepare_own() -> Step:
        layer = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)
        if mask.window is not None:
            return make_step(layer, attention_mask=to_tensor(mask.query_mask))
        key_mask = None if mask.key_mask is None else to_tensor(mask.key_mask[:, None])
        return make_step(layer, attention_mask=key_mask, use_causal_mask=mask.causal)

    if mask.score_bias is not None:  # Keras's layer does not accept one
        return {"shim": prepare_shim}
    return {"shim": prepare_shim, "upstream": prepare_upstream, "own": prepare_own}


def list_token_steps(n: int) -> dict[str, Callable[[], Step]]:
    X = tf.constant(make_text(n + 1))
    last = X[:, n:]

    def prepare_cached() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        cache = layer.make_cache(1, n + 1)
        layer(X[:, :n], cache=cache)
        lengths = cache.lengths

        def run() -> object:
            cache.lengths = lengths
            return np.asarray(layer(last, cache=cache))

        return run

    def prepare_recomputed() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        return lambda: np.asarray(layer(X))

    return {"cached": prepare_cached, "recomputed": prepare_recomputed}
