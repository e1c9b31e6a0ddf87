"""The face on Keras 2, for which D2L's pages were written, and which TF_USE_LEGACY_KERAS asks for."""

import os
import subprocess
import sys

import pytest

from d2l_compat.tensorflow._keras import IS_KERAS_2
from tools.weave.lessons import ROOT

# The tests of what D2L's pages are made of; they pass on both.
FILES = "attention", "models", "recurrent", "training", "transformer"

pytestmark = pytest.mark.skipif(IS_KERAS_2, reason="all of these tests run on it already")


def on_keras_2(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TF_USE_LEGACY_KERAS": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("file", FILES)
def test_the_same_tests_pass_there(file: str) -> None:
    tests = f"tests/faces/test_{file}.py"
    options = "--framework", "tensorflow", "-q", "-p", "no:cacheprovider"
    done = on_keras_2("-m", "pytest", tests, *options)
    assert done.returncode == 0, done.stdout


BOTH = """
import tensorflow as tf
from d2l_compat import tensorflow as d2l

class Model(d2l.Module):
    def call(self, X, **kwargs):  # as on D2L's pages
        return X + 1 if kwargs["training"] else X

assert issubclass(d2l.Module, tf.keras.Model)
print(d2l.nn_Module.__module__.split(".")[0], [float(Model()(tf.zeros(1), training=on)[0]) for on in (True, False)])
"""


def test_keras_is_the_one_that_tensorflow_has() -> None:
    done = on_keras_2("-c", BOTH)
    assert done.stdout == "tf_keras [1.0, 0.0]\n", done.stderr


TIME_MAJOR = """
import numpy as np, tensorflow as tf
from d2l_compat import tensorflow as d2l

X = tf.constant([[0, 1, 2], [2, 2, 0]])
batch_first, time_major = (
    d2l.RNNModel(tf.keras.layers.RNN(tf.keras.layers.GRUCell(4), time_major=is_major, return_sequences=True, return_state=True), 3)
    for is_major in (False, True)
)
start = batch_first.begin_state(2)
for model in (batch_first, time_major):
    model(X, start)
time_major.set_weights(batch_first.get_weights())
(Y, H), (Z, G) = batch_first(X, start), time_major(X, start)
np.testing.assert_allclose(Y, Z, atol=1e-6)
np.testing.assert_allclose(H, G, atol=1e-6)
assert np.ptp(np.asarray(Y)) > 0.01
print("the same")
"""


def test_a_layer_may_have_its_steps_first() -> None:
    done = on_keras_2("-c", TIME_MAJOR)
    assert done.stdout == "the same\n", done.stderr


def test_where_it_is_missing_the_reader_is_told() -> None:
    program = "import sys; sys.modules['tf_keras'] = None; import d2l_compat.tensorflow"
    last = on_keras_2("-c", program).stderr.splitlines()[-1]
    assert last.startswith("ImportError: tf-keras 2.17 or newer is needed")
    assert 'pip install "tf-keras>=2.17"' in last
