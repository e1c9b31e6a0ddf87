from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from tools.bench.layers import HEADS, WIDTH, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], object]]:
    from d2l import tensorflow as upstream

    X = tf.constant(inputs(n))
    lens = None if valid_lens is None else tf.constant(valid_lens)
    keys = None if valid_lens is None else tf.constant(mask(valid_lens, n)[:, None])
    sizes = (WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)
    own = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)
    shim, theirs = d2l.MultiHeadAttention(*sizes), upstream.MultiHeadAttention(*sizes)

    def step(layer: Any, call: Callable[[], Any]) -> Callable[[], object]:
        def run() -> object:
            with tf.GradientTape() as tape:
                tape.watch(X)
                loss = tf.reduce_sum(call())
            gradients = tape.gradient(loss, [X, *layer.trainable_variables])
            return float(tf.reduce_sum(gradients[0]))

        return run

    return {
        "shim": step(shim, lambda: shim(X, X, X, lens)),
        "upstream": step(theirs, lambda: theirs(X, X, X, lens)),
        "own": step(own, lambda: own(X, X, attention_mask=keys)),
    }
