"""Tests of attention in blocks, whose backward pass computes the weights again: gradients, memory and processes."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import assert_dot_product, make_case
from tests.shim.each.test_masks import draw_bias

from d2l_compat import mxnet as d2l  # isort: skip
import mxnet as mx
from mxnet import autograd

LENGTHS = {
    "every key": lambda num_queries, num_keys: None,
    "per example": lambda num_queries, num_keys: np.array([num_keys - 1, 0]),
    "per query": lambda num_queries, num_keys: np.random.default_rng(3).integers(
        0, num_keys + 2, (2, num_queries)
    ),
}
BIASES: dict[str, Any] = {"no bias": None, "shared bias": (), "bias per example": (2,)}


@pytest.mark.usefixtures("force_blockwise")
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("bias", BIASES.values(), ids=BIASES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("steps", [(6, 6), (7, 8)], ids=["full blocks", "short last block"])
def test_masks_match_reference(
    adapter: Adapter, steps: tuple[int, int], causal: bool, bias: Any, lengths: Any
) -> None:
    lens = lengths(*steps)
    case = make_case(lens, steps=steps, sizes=(4, 4, 6))
    masks: dict[str, Any] = {"causal": True} if causal else {}
    if bias is not None:
        masks["score_bias"] = draw_bias((*bias, *steps), float, 5)
        masks["score_bias"][..., 4, :] = -np.inf  # a query that sees no key
    assert_dot_product(adapter.build_dot_product(), case, **masks)


@pytest.mark.usefixtures("force_blockwise")
@pytest.mark.parametrize("window", [5, 8, 9])
def test_long_window_matches_reference(adapter: Adapter, window: int) -> None:
    case = make_case(np.array([8, 3]), steps=(7, 8))
    masks = {"window": window, "score_bias": draw_bias((7, 8), float, 5)}
    assert_dot_product(adapter.build_dot_product(), case, **masks)


@pytest.mark.usefixtures("force_blockwise")
def test_padding_may_hold_nan_in_keys(adapter: Adapter) -> None:
    case = make_case(np.array([[1, 2, 3, 4, 4, 5, 0]] * 2), steps=(7, 8))
    want = adapter.build_dot_product()(*case.arrays)
    case.keys[:, 5:] = np.nan
    np.testing.assert_array_equal(adapter.build_dot_product()(*case.arrays), want)


def compute_gradients(
    requests: tuple[str, ...], is_shared: bool = False
) -> list[np.ndarray | None]:
    """Return the gradients of queries, keys, values and bias, or of one array for the first three, after two steps."""
    rng = np.random.default_rng(0)
    arrays = [mx.np.array(rng.normal(size=(2, 7, 6)), dtype="float64") for _ in range(3)]
    if is_shared:
        arrays = [arrays[0]] * 3
    arrays.append(mx.np.array(draw_bias((7, 7), float, 5), dtype="float64"))
    for x, request in zip(arrays, requests, strict=True):
        if request != "none":
            x.attach_grad(request)
    layer = d2l.DotProductAttention(0.0)
    for _ in range(2):
        with autograd.record():
            loss = (layer(*arrays[:3], causal=True, score_bias=arrays[3]) ** 2).sum()
        loss.backward()
    return [None if x.grad is None else x.grad.asnumpy() for x in arrays]


# Each input gets each kind of gradient, "none" being an array to which no gradient was attached.
KINDS = "write", "add", "null", "none"
REQUESTS = [*([kind] * 4 for kind in KINDS[:2]), *(KINDS[i:] + KINDS[:i] for i in range(4))]


@pytest.mark.parametrize("requests", REQUESTS, ids=" ".join)
@pytest.mark.parametrize("is_shared", [False, True])
def test_kinds_of_gradients_are_those_of_full_matrix(
    request: pytest.FixtureRequest, requests: tuple[str, ...], is_shared: bool
) -> None:
    if is_shared:
        requests = (*[requests[0]] * 3, "add")
    want = compute_gradients(requests, is_shared)
    request.getfixturevalue("force_blockwise")
    for x, y in zip(compute_gradients(requests, is_shared), want, strict=True):
        assert (x is None) == (y is None)
        if x is not None and y is not None:
            np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.usefixtures("force_blockwise")
def test_backward_pass_may_be_repeated_but_not_differentiated() -> None:
    X = mx.np.array(make_case(steps=(7, 7)).queries)
    X.attach_grad()
    layer = d2l.DotProductAttention(0.0)
    with autograd.record():
        loss = (layer(X, X, X) ** 2).sum()
    loss.backward(retain_graph=True)
    want = X.grad.asnumpy()
    assert want.any()
    X.grad[:] = 0
    loss.backward()
    np.testing.assert_array_equal(X.grad.asnumpy(), want)
    with autograd.record():
        [gradient] = autograd.grad(layer(X, X, X).sum(), [X], create_graph=True)
        second = (gradient.as_np_ndarray() * X).sum()
    with pytest.raises(mx.MXNetError, match="non-differentiable"):
        second.backward()


@pytest.mark.usefixtures("force_blockwise")
@pytest.mark.parametrize("is_differentiated", [False, True])
def test_steps_do_not_keep_functions(is_differentiated: bool) -> None:
    functions = autograd.Function._registry.ref_holder  # those that MXNet may still call
    layer = d2l.DotProductAttention(0.0)
    X = mx.np.ones((1, 7, 6))
    X.attach_grad()
    count = len(functions)
    for _ in range(20):
        with autograd.record():
            loss = layer(X, X, X).sum()
        if is_differentiated:
            loss.backward()
        mx.nd.waitall()
    assert len(functions) < count + 3  # the layer keeps the arrays of its last call


@pytest.mark.usefixtures("force_blockwise")
def test_long_input_stays_on_second_device() -> None:
    other = mx.cpu(1)
    X = mx.np.ones((2, 7, 6), ctx=other)
    X.attach_grad()
    lens, bias = mx.np.array([[1, 2, 3, 4, 5, 6, 7]] * 2), mx.np.zeros((7, 7), ctx=other)
    layer = d2l.DotProductAttention(0.0)
    with autograd.record():
        Y = layer(X, X, X, lens, score_bias=bias)
    Y.backward()
    assert Y.ctx == X.grad.ctx == layer.attention_weights.ctx == other
    assert X.grad.asnumpy().any()


@pytest.mark.usefixtures("force_blockwise")
def test_costs_are_counted_at_any_length() -> None:
    X = mx.np.ones((2, 7, 6))
    layer = d2l.DotProductAttention(0.0)
    assert d2l.longest_chain(layer, X, X, X) == 2
    assert d2l.multiply_adds(layer, X, X, X) == 2 * (2 * 7 * 7 * 6)


MEMORY_PROGRAM = """
import resource
from d2l_compat import mxnet as d2l
import mxnet as mx

def step(n, is_recording, call):
    X = mx.np.ones((2, n, 8))
    X.attach_grad()
    if not is_recording:
        call(X).wait_to_read()
        return
    with mx.autograd.record():
        Y = call(X)
    Y.backward()
    X.grad.wait_to_read()

def measure(n, *options):
    step(16, *options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(n, *options)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

attention, heads = d2l.DotProductAttention(0.0), d2l.MultiHeadAttention(8, 1, 0.0)
causal = d2l.CausalSelfAttention(8, 1)
heads.initialize()
causal.initialize()
calls = [
    lambda X: attention(X, X, X),
    lambda X: attention(X, X, X, causal=True),
    lambda X: attention(X, X, X, mx.np.ones((2, X.shape[1]))),
    lambda X: heads(X, X, X),
    lambda X: causal(X),
]
for call in calls:
    for is_recording in False, True:
        print(measure({n}, is_recording, call))
"""


def test_memory_is_not_quadratic_in_length() -> None:
    n = 4096
    program = MEMORY_PROGRAM.replace("{n}", str(n))
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    kilobytes = [int(line) for line in process.stdout.splitlines()]
    assert len(kilobytes) == 10
    assert max(kilobytes) * 1000 < n**2 * 4  # half of the weights, which are of two examples


# Without waiting for pending gradients, this program would never end.
PENDING_PROGRAM = """
import os
from d2l_compat import mxnet as d2l
from d2l_compat.mxnet import _blockwise
import mxnet as mx

_blockwise.MIN_QUERIES = 4
layer = d2l.DotProductAttention(0.0)
X = mx.np.ones((2, 256, 16))
X.attach_grad()
for _ in range(3):
    with mx.autograd.record():
        Y = X
        for _ in range(20):
            Y = layer(Y, X, X)
        loss = (Y**2).sum()
    loss.backward()
    if {is_forking}:
        process = os.fork()
        if not process:
            os._exit(0)
        os.waitpid(process, 0)
        mx.nd.waitall()
"""


@pytest.mark.parametrize("is_forking", [False, True])
def test_process_ends_or_forks_with_pending_gradients(is_forking: bool) -> None:
    program = PENDING_PROGRAM.replace("{is_forking}", str(is_forking))
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
