"""What a layer costs, whatever the machine: its multiplications, and the steps that must wait."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mlx.core as mx

from d2l_compat._shared import checks
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._blockwise import exportable

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("Matmul", "AddMM", "Convolution")
FUSED = "ScaledDotProductAttention"


class Operation(NamedTuple):
    name: str
    inputs: list[Any]  # of each array a name, the shape and the dtype
    outputs: list[Any]


def longest_chain(layer: Callable[..., mx.array], *inputs: mx.array) -> int:
    """Of all products of matrices and convolutions that ``layer(*inputs)`` computes, those on the
    longest chain: each needs the result of the one before.

    Fused attention is one product. Read from the graph that MLX would export. Raises TypeError where the layer is
    no function or an input no array.
    """
    depth: dict[str, int] = {}
    for operation in _program(layer, inputs):
        longest = max((depth.get(name, 0) for name, *_ in operation.inputs), default=0)
        is_product = operation.name in (*PRODUCTS, FUSED)
        depth.update({name: longest + is_product for name, *_ in operation.outputs})
    return max(depth.values(), default=0)


def multiply_adds(layer: Callable[..., mx.array], *inputs: mx.array) -> int:
    """How often ``layer(*inputs)`` multiplies two numbers and adds the product to a sum: in
    products of matrices, convolutions and attention, from the shapes of all that is multiplied.

    Raises TypeError as :func:`longest_chain` does.
    """
    return sum(map(_multiply_adds, _program(layer, inputs)))


def _multiply_adds(operation: Operation) -> int:
    """The numbers in the result, times the products that each of them is the sum of."""
    if operation.name not in (*PRODUCTS, FUSED):
        return 0
    (_, left, _), (_, right, _) = operation.inputs[:2]
    if operation.name == FUSED:  # queries and keys, then weights and values
        _, of_values, _ = operation.inputs[2]
        return math.prod(left[:-1]) * right[-2] * (left[-1] + of_values[-1])
    _, result, _ = operation.outputs[0]
    # A convolution's kernel has the shape (outputs, ..., inputs).
    terms = math.prod(right[1:]) if operation.name == "Convolution" else left[-1]
    return math.prod(result) * terms


def _program(layer: Callable[..., mx.array], inputs: tuple[mx.array, ...]) -> list[Operation]:
    """All that ``layer(*inputs)`` computes, in an order in which it can be."""
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
    mx.eval(layer(*inputs))  # it may take its sizes from its first input, and draw its weights
    found = []

    def note(told: dict[str, Any]) -> None:
        if told["type"] == "primitive":
            found.append(Operation(told["name"], told["inputs"], told["outputs"]))

    with exportable():
        mx.export_function(note, layer, *inputs)
    return found
