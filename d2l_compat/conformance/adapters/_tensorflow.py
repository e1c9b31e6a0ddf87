"""Ask TensorFlow: tensors, and gradients by a tape."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from d2l_compat.conformance.files import Arrays, Case


def answer(case: Case, function: Callable[[dict[str, tf.Tensor]], Any]) -> Arrays:
    """Call a function of the case's inputs, which returns the output, or output and weights; differentiate it."""
    tensors = {name: tf.constant(x) for name, x in case.inputs.items()}
    floats = {name: tensors[name] for name in case.gradients}
    with tf.GradientTape() as tape:
        tape.watch(floats)
        result = function(tensors)
        output, weights = result if isinstance(result, tuple) else (result, None)
    answers = {"output": output}
    if weights is not None:
        answers["weights"] = weights
    if floats:
        zero = tf.UnconnectedGradients.ZERO
        gradients = tape.gradient(output, floats, tensors["direction"], unconnected_gradients=zero)
        answers |= {f"gradient_{name}": tf.convert_to_tensor(x) for name, x in gradients.items()}
    return {name: np.asarray(x) for name, x in answers.items()}
