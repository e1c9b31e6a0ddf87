from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from tools.bench.layers import HEADS, WIDTH, Mask, Step, make_inputs, optional_converter

tensor = optional_converter(tf.constant)


def contenders(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = tf.constant(make_inputs(mask.n))
    sizes = (WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)

    def step(layer: Any, *args: Any, **kwargs: Any) -> Step:
        def run() -> object:
            with tf.GradientTape() as tape:
                tape.watch(X)
                loss = tf.reduce_sum(layer(X, X, X, *args, **kwargs))
            gradients = tape.gradient(loss, [X, *layer.trainable_variables])
            return float(tf.reduce_sum(gradients[0]))

        return run

    def shim() -> Step:
        lens, bias = tensor(mask.valid_lens), tensor(mask.score_bias)
        return step(d2l.MultiHeadAttention(*sizes), lens, causal=mask.causal, score_bias=bias)

    def theirs() -> Step:
        from d2l import tensorflow as upstream

        return step(upstream.MultiHeadAttention(*sizes), tensor(mask.lens))

    def own() -> Step:
        layer = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)
        keys = None if mask.keys is None else tensor(mask.keys[:, None])
        return step(layer, attention_mask=keys, use_causal_mask=mask.causal)

    if mask.score_bias is not None:
        return {"shim": shim}
    return {"shim": shim, "upstream": theirs, "own": own}
