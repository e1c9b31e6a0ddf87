"""Tests of the tensor functions, which are the framework's own under D2L's names, against NumPy."""

from typing import Any

import numpy as np
import pytest

from tests.shim.each.adapter import Adapter
from tests.shim.each.calls import Lazy, resolve, tensor

A = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -0.25]], "float32")
B = np.arange(24, dtype="float32").reshape(2, 3, 4)
a = tensor(A, "float32")
b = tensor(B, "float32")
b_transposed = tensor(B.swapaxes(1, 2), "float32")
two_tensors = Lazy(lambda adapter: [adapter.tensor(A), adapter.tensor(A)])
UNARY = {
    "abs": np.abs,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "numpy": np.array,
    "ones_like": np.ones_like,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "sinh": np.sinh,
    "tanh": np.tanh,
    "transpose": np.transpose,
    "zeros_like": np.zeros_like,
}
# Arguments of each function, followed by its result.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **{name: (a, function(A)) for name, function in UNARY.items()},
    "arange": (2.0, 9.0, 3.0, np.array([2.0, 5.0, 8.0])),
    "argmax": (a, 1, A.argmax(axis=1)),
    "astype": (a, Lazy(lambda adapter: adapter.d2l.int32), A.astype("int32")),
    "batch_matmul": (b, b_transposed, B @ B.swapaxes(1, 2)),
    "concat": (two_tensors, 1, np.concatenate((A, A), axis=1)),
    "expand_dims": (a, 1, A[:, None]),
    "eye": (3, np.eye(3)),
    "linspace": (0.0, 1.0, 5, np.linspace(0, 1, 5)),
    "log": (tensor(B + 1, "float32"), np.log(B + 1)),
    "matmul": (a, tensor(B[0], "float32"), A @ B[0]),
    "meshgrid": (tensor(A[0], "float32"), tensor(A[1], "float32"), np.meshgrid(A[0], A[1])),
    "ones": ((2, 3), np.ones((2, 3))),
    "reduce_mean": (a, 0, A.mean(axis=0)),
    "reduce_sum": (a, 1, A.sum(axis=1)),
    "repeat": (a, 2, 1, A.repeat(2, axis=1)),
    "reshape": (a, (3, -1), A.reshape(3, 2)),
    "size": (b, np.array(24)),
    "stack": (two_tensors, 1, np.stack((A, A), axis=1)),
    "swapaxes": (b, 0, 2, B.swapaxes(0, 2)),
    "tensor": ([[1.0, 2.0], [3.0, 4.0]], np.array([[1.0, 2.0], [3.0, 4.0]])),
    "to": (a, Lazy(lambda adapter: adapter.d2l.cpu()), A),
    "zeros": ((2, 3), np.zeros((2, 3))),
}
RANDOM = "normal", "rand", "randn"
DTYPES = "float32", "int32", "int64"
KEYS = "get_key", "get_seed"  # only in JAX


def make_example(adapter: Adapter, name: str) -> tuple[list[Any], Any]:
    """Return arguments for a function, and the expected result or None if it is random."""
    want = None
    if name == "normal":
        args = adapter.NORMAL_ARGS
    elif name in RANDOM:
        args = adapter.RAND_ARGS
    elif name == "repeat" and adapter.REPEAT_TILES:
        args = (a, (2, 1))
        want = np.tile(A, (2, 1))
    else:
        *args, want = FUNCTIONS[name]
    if name == "meshgrid":
        want = np.meshgrid(A[0], A[1], indexing=adapter.MESHGRID_INDEXING)
    return [resolve(adapter, x) for x in args], want


@pytest.mark.filterwarnings("ignore:torch.meshgrid")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tensor_functions_match_numpy(adapter: Adapter, name: str) -> None:
    if name not in adapter.d2l.tensors.__all__:
        pytest.skip("names that this package lacks")
    args, want = make_example(adapter, name)
    got = np.asarray(adapter.to_numpy(getattr(adapter.d2l, name)(*args)))
    assert got.shape == np.shape(want)
    kinds = {"u": "i"}  # MLX's indices are unsigned
    assert kinds.get(got.dtype.kind, got.dtype.kind) == np.asarray(want).dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("name", RANDOM)
def test_random_functions_follow_seed(adapter: Adapter, name: str) -> None:
    if name not in adapter.d2l.tensors.__all__:
        pytest.skip("names that this package lacks")

    def draw() -> np.ndarray:
        return adapter.to_numpy(getattr(adapter.d2l, name)(*make_example(adapter, name)[0]))

    adapter.seed(1)
    first, second = draw(), draw()
    adapter.seed(1)
    np.testing.assert_array_equal(draw(), first)
    assert first.shape == (2, 3)
    assert not np.array_equal(first, second)
    if name == "rand":
        assert 0 <= first.min() < first.max() <= 1


def test_check_shape_accepts_right_shape(adapter: Adapter) -> None:
    kinds = [adapter.tensor]
    if adapter.ACCEPTS_NUMPY:
        kinds.append(np.array)
    if adapter.descent:
        kinds.append(adapter.descent.variable)
    for kind in kinds:
        for shape in ((2, 3), [2, 3]):
            assert adapter.d2l.check_shape(kind(A), shape) is None
        with pytest.raises(ValueError, match=r"shape: got \(2, 3\); need \(3, 2\)"):
            adapter.d2l.check_shape(kind(A), (3, 2))


def test_tensor_names_are_sorted_and_tested(adapter: Adapter) -> None:
    names = adapter.d2l.tensors.__all__
    assert names == sorted(names)
    assert {*names} <= {*FUNCTIONS, *RANDOM, *DTYPES, *KEYS, "check_shape"}
    assert {*DTYPES} <= {*names}
    for name in DTYPES:
        assert name in str(getattr(adapter.d2l, name))


def test_numpy_detaches_gradient(adapter: Adapter) -> None:
    if adapter.descent:
        np.testing.assert_array_equal(adapter.d2l.numpy(adapter.descent.variable(A)), A)
