"""The tensor functions: D2L's names, PyTorch's results, checked against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from d2l_compat import common
from d2l_compat import torch as d2l
from d2l_compat.torch import (
    additive,
    attention,
    data,
    devices,
    seq2seq,
    tensors,
    training,
    transformer,
)

A = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -0.25]])
B = np.arange(24.0).reshape(2, 3, 4)
a, b = torch.from_numpy(A), torch.from_numpy(B)

FUNCTIONS = {
    "abs": (lambda: d2l.abs(a), np.abs(A)),
    "arange": (lambda: d2l.arange(2, 9, 3), np.array([2, 5, 8])),
    "argmax": (lambda: d2l.argmax(a, dim=1), A.argmax(axis=1)),
    "astype": (lambda: d2l.astype(a, d2l.int32), A.astype(np.int32)),
    "batch_matmul": (lambda: d2l.batch_matmul(b, b.mT), B @ B.swapaxes(1, 2)),
    "concat": (lambda: d2l.concat((a, a), dim=1), np.concatenate((A, A), axis=1)),
    "cos": (lambda: d2l.cos(a), np.cos(A)),
    "cosh": (lambda: d2l.cosh(a), np.cosh(A)),
    "exp": (lambda: d2l.exp(a), np.exp(A)),
    "expand_dims": (lambda: d2l.expand_dims(a, 1), A[:, None]),
    "eye": (lambda: d2l.eye(3), np.eye(3)),
    "linspace": (lambda: d2l.linspace(0, 1, 5), np.linspace(0, 1, 5)),
    "log": (lambda: d2l.log(d2l.abs(a[:, 0])), np.log(np.abs(A[:, 0]))),
    "matmul": (lambda: d2l.matmul(a, b), A @ B),
    "meshgrid": (
        lambda: d2l.stack(d2l.meshgrid(a[0], a[1, :2], indexing="ij")),
        np.stack(np.meshgrid(A[0], A[1, :2], indexing="ij")),
    ),
    "numpy": (lambda: d2l.numpy(a.clone().requires_grad_()), A),
    "ones": (lambda: d2l.ones(2, 3), np.ones((2, 3))),
    "ones_like": (lambda: d2l.ones_like(a), np.ones_like(A)),
    "reduce_mean": (lambda: d2l.reduce_mean(a, dim=0), A.mean(axis=0)),
    "reduce_sum": (lambda: d2l.reduce_sum(a, 1, keepdim=True), A.sum(axis=1, keepdims=True)),
    "repeat": (lambda: d2l.repeat(a, 2, 3), np.tile(A, (2, 3))),
    "reshape": (lambda: d2l.reshape(a, (3, -1)), A.reshape(3, 2)),
    "sigmoid": (lambda: d2l.sigmoid(a), 1 / (1 + np.exp(-A))),
    "sin": (lambda: d2l.sin(a), np.sin(A)),
    "sinh": (lambda: d2l.sinh(a), np.sinh(A)),
    "size": (lambda: d2l.size(b), 24),
    "stack": (lambda: d2l.stack((a, a), dim=1), np.stack((A, A), axis=1)),
    "swapaxes": (lambda: d2l.swapaxes(b, 0, 2), B.swapaxes(0, 2)),
    "tanh": (lambda: d2l.tanh(a), np.tanh(A)),
    "tensor": (lambda: d2l.tensor([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
    "to": (lambda: d2l.to(a, d2l.cpu()), A),
    "transpose": (lambda: d2l.transpose(a), A.T),
    "zeros": (lambda: d2l.zeros((2, 3)), np.zeros((2, 3))),
    "zeros_like": (lambda: d2l.zeros_like(a), np.zeros_like(A)),
}
RANDOM = {
    "normal": lambda: d2l.normal(0.0, 1.0, size=(2, 3)),
    "rand": lambda: d2l.rand(2, 3),
    "randn": lambda: d2l.randn(2, 3),
}
DTYPES = {"float32": np.float32, "int32": np.int32, "int64": np.int64}


@pytest.mark.parametrize(("call", "want"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_do_what_their_names_say(call: Callable[[], Any], want: Any) -> None:
    got = np.asarray(call())
    assert got.shape == np.shape(want)
    assert got.dtype.kind == np.asarray(want).dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("call", RANDOM.values(), ids=RANDOM)
def test_random_functions_follow_the_seed(call: Callable[[], torch.Tensor]) -> None:
    torch.manual_seed(1)
    first, second = call(), call()
    torch.manual_seed(1)
    assert torch.equal(call(), first)
    assert not torch.equal(first, second)
    d2l.check_shape(first, (2, 3))


@pytest.mark.parametrize(("name", "want"), DTYPES.items())
def test_dtypes_are_what_their_names_say(name: str, want: type) -> None:
    assert d2l.zeros(1, dtype=getattr(d2l, name)).numpy().dtype == want


@pytest.mark.parametrize(
    "shape", [(2, 3), [2, 3], torch.Size([2, 3])], ids=["tuple", "list", "Size"]
)
def test_check_shape_accepts_the_shape_itself(shape: Any) -> None:
    assert d2l.check_shape(a, shape) is None


def test_all_tensor_names_are_listed_sorted_and_tested_here() -> None:
    assert tensors.__all__ == sorted({*FUNCTIONS, *RANDOM, *DTYPES, "check_shape"})


def test_the_face_lists_every_name_once_and_has_it() -> None:
    assert len(d2l.__all__) == len({*d2l.__all__})
    assert all(hasattr(d2l, name) for name in d2l.__all__)
    # No layer is forgotten.
    modules = (additive, attention, data, devices, seq2seq, training, transformer)
    classes = {
        name
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    assert classes <= {*d2l.__all__}
    assert {*tensors.__all__, *common.__all__} <= {*d2l.__all__}
