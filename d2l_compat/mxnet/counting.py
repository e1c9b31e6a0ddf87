"""What a layer costs, whatever the machine: its multiplications, and the steps that must wait."""

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

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("FullyConnected", "Convolution", "batch_dot", "_npi_matmul", "_np_dot")


def longest_chain(layer: Callable[..., np.ndarray], *inputs: np.ndarray) -> int:
    """Of all products of matrices and convolutions that ``layer(*inputs)`` computes, those on the
    longest chain: each needs the result of the one before.

    Read from the graph that autograd makes of the call, so that only what depends on the inputs or on
    weights counts; what a hybridized layer computes is not seen. Raises TypeError where the layer is no
    function or an input no array.
    """
    _check(layer, inputs)
    watched = [x.copy() for x in inputs]
    for x in watched:
        x.attach_grad()
    with autograd.record(train_mode=False):
        symbol = autograd.get_symbol(layer(*watched))
    longest: list[int] = []  # up to each operation; they are listed after all that they wait for
    for node in json.loads(symbol.tojson())["nodes"]:
        before = max((longest[parent] for parent, *_ in node["inputs"]), default=0)
        longest.append(before + (node["op"] in PRODUCTS))
    return longest[-1]


def multiply_adds(layer: Callable[..., np.ndarray], *inputs: np.ndarray) -> int:
    """How often ``layer(*inputs)`` multiplies two numbers and adds the product to a sum: in
    products of matrices, convolutions and attention, from the shapes of all that is multiplied.

    What a hybridized layer computes is not seen. Raises TypeError where the layer is no function or an input no array.
    """
    _check(layer, inputs)
    with _counted() as counts:
        layer(*inputs)
    return sum(counts)


@contextmanager
def _counted() -> Iterator[list[int]]:
    """The multiply-adds of each product that is computed in here. A graph would not do: it has no
    shapes, and they do not follow from the inputs' alone."""
    counts: list[int] = []
    compute = register._imperative_invoke

    def computed(handle: int, arrays: list[np.ndarray], names: Any, values: Any, *rest: Any) -> Any:
        result = compute(handle, arrays, names, values, *rest)
        if _name(handle) in PRODUCTS:
            transposed = bool(dict(zip(names, values, strict=True)).get("transpose_a"))
            counts.append(result.size * _terms(_name(handle), arrays, transposed))
        return result

    register._imperative_invoke = computed
    try:
        yield counts
    finally:
        register._imperative_invoke = compute


def _terms(name: str, arrays: list[np.ndarray], transposed: bool) -> int:
    """Of the sum that each number of the product is."""
    left, right = arrays[:2]
    if name in ("FullyConnected", "Convolution"):
        return math.prod(right.shape[1:])  # a weight of shape (outputs, inputs, ...)
    return left.shape[-2 if transposed else -1]


@cache
def _name(handle: int) -> str:
    name = ctypes.c_char_p()
    check_call(_LIB.MXSymbolGetAtomicSymbolName(ctypes.c_void_p(handle), ctypes.byref(name)))
    return (name.value or b"").decode()


def _check(layer: Callable[..., np.ndarray], inputs: tuple[np.ndarray, ...]) -> None:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
