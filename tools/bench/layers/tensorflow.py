from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from tools.bench.layers import HEADS, WIDTH, Step, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], Step]]:
    X = tf.constant(inputs(n))
    lens = None if valid_lens is None else tf.constant(valid_lens)
    keys = None if valid_lens is None else tf.constant(mask(valid_lens, n)[:, None])
    sizes = (WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)

    def step(layer: Any, *rest: Any, **named: Any) -> Step:
        def run() -> object:
            with tf.GradientTape() as tape:
                tape.watch(X)
                loss = tf.reduce_sum(layer(X, X, X, *rest, **named))
            gradients = tape.gradient(loss, [X, *layer.trainable_variables])
            return float(tf.reduce_sum(gradients[0]))

        return run

    def shim() -> Step:
        return step(d2l.MultiHeadAttention(*sizes), lens)

    def theirs() -> Step:
        from d2l import tensorflow as upstream

        return step(upstream.MultiHeadAttention(*sizes), lens)

    def own() -> Step:
        layer = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)
        return step(layer, attention_mask=keys)

    return {"shim": shim, "upstream": theirs, "own": own}
