"""The cost of a layer on any machine: its multiplications, and its longest chain of dependent steps."""

import ctypes
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from mxnet import autograd, np
from mxnet.base import _LIB, check_call
from mxnet.ndarray import register

from d2l_compat._shared import checks
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._blockwise import use_full_matrix

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("FullyConnected", "Convolution", "batch_dot", "_npi_matmul", "_np_dot")


def longest_chain(layer: Callable[..., np.ndarray], *inputs: np.ndarray) -> int:
    """Count the matrix products and convolutions on the longest chain in ``layer(*inputs)``.

    Each product of a chain needs the result of the previous one. The chain is read from autograd's graph of the
    call. The graph has only operations that depend on inputs or weights, and none inside a hybridized layer. Raises
    TypeError if the layer is not callable or an input is not an array.
    """
    _check(layer, inputs)
    tracked_inputs = [x.copy() for x in inputs]
    for x in tracked_inputs:
        x.attach_grad()
    with use_full_matrix(), autograd.record(train_mode=False):
        symbol = autograd.get_symbol(layer(*tracked_inputs))
    # The length of the longest chain up to each node. A node follows its inputs.
    lengths: list[int] = []
    for node in json.loads(symbol.tojson())["nodes"]:
        input_length = max((lengths[parent] for parent, *_ in node["inputs"]), default=0)
        lengths.append(input_length + (node["op"] in PRODUCTS))
    return lengths[-1]


def multiply_adds(layer: Callable[..., np.ndarray], *inputs: np.ndarray) -> int:
    """Count the multiplications in ``layer(*inputs)`` whose product is added to a sum.

    These are the ones in matrix products, convolutions and attention, counted from the shapes of their operands.
    Those inside a hybridized layer are not counted. Raises TypeError if the layer is not callable or an input is not
    an array.
    """
    _check(layer, inputs)
    with use_full_matrix(), _record_multiply_adds() as counts:
        layer(*inputs)
    return sum(counts)


@contextmanager
def _record_multiply_adds() -> Iterator[list[int]]:
    """Record the multiply-adds of each product computed in this context.

    The graph is not enough: it has no shapes, and they do not follow from the inputs' shapes alone.
    """
    counts: list[int] = []
    invoke = register._imperative_invoke

    def invoke_and_count(
        handle: int, operands: list[np.ndarray], names: Any, values: Any, *rest: Any
    ) -> Any:
        result = invoke(handle, operands, names, values, *rest)
        operator = _get_operator_name(handle)
        if operator in PRODUCTS:
            is_transposed = bool(dict(zip(names, values, strict=True)).get("transpose_a"))
            counts.append(result.size * _count_terms(operator, operands, is_transposed))
        return result

    register._imperative_invoke = invoke_and_count
    try:
        yield counts
    finally:
        register._imperative_invoke = invoke


def _count_terms(operator: str, operands: list[np.ndarray], is_transposed: bool) -> int:
    """Count the products that are summed for each element of the result."""
    left, right = operands[:2]
    if operator in ("FullyConnected", "Convolution"):
        return math.prod(right.shape[1:])  # a weight of shape (outputs, inputs, ...)
    return left.shape[-2 if is_transposed else -1]


@cache
def _get_operator_name(handle: int) -> str:
    name = ctypes.c_char_p()
    check_call(_LIB.MXSymbolGetAtomicSymbolName(ctypes.c_void_p(handle), ctypes.byref(name)))
    return (name.value or b"").decode()


def _check(layer: Callable[..., np.ndarray], inputs: tuple[np.ndarray, ...]) -> None:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
