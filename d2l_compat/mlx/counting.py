"""The cost of a layer on any machine: its multiplications, and its longest chain of products."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mlx.core as mx

from d2l_compat._shared import checks
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._blockwise import use_exportable_operations

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("Matmul", "AddMM", "Convolution")
FUSED_ATTENTION = "ScaledDotProductAttention"


class Operation(NamedTuple):
    name: str
    inputs: list[Any]  # a tuple (name, shape, dtype) for each array
    outputs: list[Any]


def longest_chain(layer: Callable[..., mx.array], *inputs: mx.array) -> int:
    """Count the matrix products and convolutions on the longest chain in ``layer(*inputs)``.

    Each product of a chain needs the result of the previous one. Fused attention counts as the two
    products that it fuses. Products are counted in the graph that MLX would export. Raises TypeError
    if the layer is not a function or an input is not an array.
    """
    lengths: dict[str, int] = {}
    for operation in _trace(layer, inputs):
        before = max((lengths.get(name, 0) for name, *_ in operation.inputs), default=0)
        products = 2 if operation.name == FUSED_ATTENTION else operation.name in PRODUCTS
        lengths.update({name: before + products for name, *_ in operation.outputs})
    return max(lengths.values(), default=0)


def multiply_adds(layer: Callable[..., mx.array], *inputs: mx.array) -> int:
    """Count the multiplications in ``layer(*inputs)`` whose product is added to a sum.

    These are the ones in matrix products, convolutions and attention, counted from the shapes of
    their operands. Raises TypeError as :func:`longest_chain` does.
    """
    return sum(map(_multiply_adds, _trace(layer, inputs)))


def _multiply_adds(operation: Operation) -> int:
    """Return the size of the result times the number of terms that are summed for each of its elements."""
    if operation.name not in (*PRODUCTS, FUSED_ATTENTION):
        return 0
    (_, left, _), (_, right, _) = operation.inputs[:2]
    if operation.name == FUSED_ATTENTION:  # queries times keys, then weights times values
        _, values, _ = operation.inputs[2]
        return math.prod(left[:-1]) * right[-2] * (left[-1] + values[-1])
    _, result, _ = operation.outputs[0]
    # A convolution's kernel has the shape (outputs, ..., inputs).
    terms = math.prod(right[1:]) if operation.name == "Convolution" else left[-1]
    return math.prod(result) * terms


def _trace(layer: Callable[..., mx.array], inputs: tuple[mx.array, ...]) -> list[Operation]:
    """Return the operations that ``layer(*inputs)`` computes, in topological order."""
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
    mx.eval(layer(*inputs))  # so that its layers infer their sizes and draw their weights
    operations = []

    def collect(event: dict[str, Any]) -> None:
        if event["type"] == "primitive":
            operations.append(Operation(event["name"], event["inputs"], event["outputs"]))

    with use_exportable_operations():
        mx.export_function(collect, layer, *inputs)
    return operations
