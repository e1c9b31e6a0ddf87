"""Tests of TensorFlow with Keras 2, for which D2L was written, and which TF_USE_LEGACY_KERAS chooses."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from d2l_compat.tensorflow._keras import IS_KERAS_2
from tools.weave.lessons import ROOT

# These tests pass with both versions.
FILES = (
    "attention",
    "blocks",
    "generation",
    "linear_attention",
    "models",
    "recurrent",
    "training",
    "transformer",
    "windows",
)

pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(IS_KERAS_2, reason="the tests run with Keras 2 already"),
    pytest.mark.skipif(find_spec("tf_keras") is None, reason="tf-keras is not installed"),
]


def run_on_keras_2(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TF_USE_LEGACY_KERAS": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("file", FILES)
def test_shared_tests_pass_with_keras_2(file: str) -> None:
    tests = f"tests/shim/each/test_{file}.py"
    options = "--framework", "tensorflow", "-q", "-p", "no:cacheprovider"
    process = run_on_keras_2("-m", "pytest", tests, *options)
    assert process.returncode == 0, process.stdout


PROGRAM = """
import numpy as np
import tensorflow as tf
from d2l_compat import tensorflow as d2l

# The shim uses the same Keras as `tf.keras`.
assert issubclass(d2l.Module, tf.keras.Model)
assert d2l.nn_Module.__module__.startswith("tf_keras")

# A call gets `training` as D2L's pages expect it.
class Model(d2l.Module):
    def call(self, X, **kwargs):
        return X + 1 if kwargs["training"] else X

assert [float(Model()(tf.zeros(1), training=on)[0]) for on in (True, False)] == [1, 0]

# The second input is not mistaken for `training`.
tokens, lens = tf.constant([[0, 1, 2], [2, 2, 0]]), tf.constant([3, 2])
for encoder in d2l.Seq2SeqEncoder(3, 4, 8, 2, 0.5), d2l.TransformerEncoder(3, 8, 8, 2, 1, 0.5):
    first, again = (tf.nest.flatten(encoder(tokens, lens))[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)  # nothing is dropped

# All inputs are cast to the layer's dtype.
X = np.linspace(-1, 1, 48, dtype="float32").reshape(2, 3, 8)
bias = np.zeros((3, 3), "float32")
attention = d2l.MultiHeadAttention(8, 2, 0.5, dtype="float16")
assert attention(X, X, X, score_bias=bias).dtype == "float16"
assert d2l.AdditiveAttention(8, 0.5, dtype="float16")(X, X, X).dtype == "float16"

# A layer's first axis may be time.
def make_model(is_time_major):
    cell = tf.keras.layers.GRUCell(4)
    layer = tf.keras.layers.RNN(cell, time_major=is_time_major, return_sequences=True, return_state=True)
    return d2l.RNNModel(layer, 3)

models = [make_model(False), make_model(True)]
start = models[0].begin_state(2)
for model in models:
    model(tokens, start)
models[1].set_weights(models[0].get_weights())
(Y, H), (Z, G) = (model(tokens, start) for model in models)
np.testing.assert_allclose(Y, Z, atol=1e-6)
np.testing.assert_allclose(H, G, atol=1e-6)
assert np.ptp(np.asarray(Y)) > 0.01
print("passed")
"""


def test_keras_2_behaves_as_d2l_expects() -> None:
    process = run_on_keras_2("-c", PROGRAM)
    assert process.stdout == "passed\n", process.stderr


def test_missing_keras_2_is_reported() -> None:
    program = "import sys; sys.modules['tf_keras'] = None; import d2l_compat.tensorflow"
    last = run_on_keras_2("-c", program).stderr.splitlines()[-1]
    assert last.startswith("ImportError: tf-keras 2.17 or newer is needed")
    assert 'pip install "tf-keras>=2.17"' in last
