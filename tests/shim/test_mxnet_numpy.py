"""Tests of the NumPy names that MXNet needs, which are added while it is imported, and removed afterwards."""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from d2l_compat._mxnet_numpy import REMOVED, add_removed_names

needs_mxnet = pytest.mark.skipif(find_spec("mxnet") is None, reason="MXNet is not installed")


def run(program: str, *options: str) -> None:
    """Run a program in a fresh interpreter, which must succeed and print nothing."""
    command = [sys.executable, *options, "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_removed_names_exist_only_inside_context() -> None:
    before = dict(vars(np))
    with add_removed_names():
        assert REMOVED.keys() <= vars(np).keys()
        assert np.Inf == np.inf
    assert vars(np) == before


def test_numpy_is_restored_after_failed_import() -> None:
    before = dict(vars(np))
    with pytest.raises(ImportError), add_removed_names():
        raise ImportError
    assert vars(np) == before


def test_existing_numpy_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in REMOVED:  # as in a NumPy that has removed nothing yet
        monkeypatch.setattr(np, name, f"NumPy's own {name}", raising=False)
    before = dict(vars(np))
    with add_removed_names():
        assert vars(np) == before
    assert vars(np) == before


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("in1d", ([[1, 2], [3, 4]], [4, 1]), [True, False, False, True]),
        ("msort", ([[3, 1], [2, 4]],), [[2, 1], [3, 4]]),
        ("trapz", ([0, 1, 4],), 3),
        ("product", ([2, 3],), 6),
        ("sometrue", ([0, 1],), True),
        ("alltrue", ([0, 1],), False),
        ("round_", (1.26, 1), 1.3),
    ],
)
def test_restored_functions_behave_as_before(name: str, arguments: tuple, expected: object) -> None:
    np.testing.assert_array_equal(REMOVED[name](*arguments), expected)


def test_financial_functions_name_their_package() -> None:
    with pytest.raises(RuntimeError, match="npv: removed from NumPy"):
        REMOVED["npv"](0.1, [1, 2])


@needs_mxnet
def test_importing_mxnet_is_silent_and_keeps_numpy() -> None:
    program = """
import types
import numpy as np
before = dict(vars(np))
import d2l_compat.mxnet
assert all(vars(np)[name] is value for name, value in before.items())
# NumPy's own modules, which it imports on first use.
new = [vars(np)[name] for name in vars(np).keys() - before.keys()]
assert all(isinstance(part, types.ModuleType) and "numpy." in part.__name__ for part in new)
"""
    run(program, "-W", "error")


USES = {
    "np.compat, in padding": "assert mx.np.pad(mx.np.ones((2, 2)), ((1, 1), (1, 1))).shape == (4, 4)",
    "np.Inf, in an estimator": """
handlers = mx.gluon.contrib.estimator.event_handler
handler = handlers.EarlyStoppingHandler(mx.metric.Accuracy(), mode="max")
handler.train_begin(None)
assert handler.best == -float("inf")""",
    "np.bool, in an index": "assert mx.np.arange(3)[mx.np.arange(3) > 0].shape == (2,)",
    "np.int, in a test of samples": "assert mx.test_utils.np.int is int",
    "a shape of NumPy's integers": """
import numpy
assert mx.np.random.normal(size=(numpy.int64(2), 3)).shape == (2, 3)
dense = mx.gluon.nn.Dense(4, in_units=4)
dense.initialize(mx.init.Orthogonal(scale=1))
W = dense.weight.data()
assert abs(W @ W.T - mx.np.eye(4)).max() < 1e-6""",
    "NumPy's functions, on MXNet's arrays": """
import numpy
for function in (numpy.any, numpy.prod, numpy.round, numpy.sum):
    assert isinstance(function(mx.np.ones((2, 2))), mx.np.ndarray)""",
    "printing": "assert repr(mx.np.ones((1, 2))) == 'array([[1., 1.]])'",
    "a data loader": """
data = mx.gluon.data.ArrayDataset(mx.np.arange(4), mx.np.arange(4))
batches = [x.tolist() for x, _ in mx.gluon.data.DataLoader(data, batch_size=3)]
assert batches == [[0, 1, 2], [3]]""",
}


# Run each use in its own namespace, and print the errors by use.
PROGRAM = f"""
import json, traceback
import d2l_compat.mxnet
import mxnet as mx
errors = {{}}
for name, use in {USES!r}.items():
    try:
        exec(use, {{"mx": mx}})
    except BaseException:
        errors[name] = traceback.format_exc()
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    return json.loads(process.stdout)


@needs_mxnet
@pytest.mark.parametrize("use", USES)
def test_mxnet_works_after_import(errors: dict[str, str], use: str) -> None:
    assert errors.get(use, "") == ""
