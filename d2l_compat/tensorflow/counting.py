"""The cost of a layer on any machine: its multiplications, and its longest chain of dependent steps."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import tensorflow as tf

from d2l_compat._shared import checks
from d2l_compat.tensorflow._arrays import Array, arrays

__all__ = ["longest_chain", "multiply_adds"]


def _count_einsum_terms(einsum: Any, *shapes: Any) -> int:
    """Multiply the sizes of the axes that are summed: those whose letters are not in the result."""
    operands, result = einsum.get_attr("equation").decode().split("->")
    sizes: dict[str, int] = {}
    for letters, shape in zip(operands.split(","), shapes, strict=True):
        first_letters, _, last_letters = letters.partition("...")
        sizes |= dict(zip(first_letters, shape, strict=False))
        sizes |= dict(zip(reversed(last_letters), reversed(shape), strict=False))
    return math.prod(size for letter, size in sizes.items() if letter not in result)


# For each operation, the number of terms summed for one element of its result, from its inputs' shapes a and b.
TERMS: dict[str, Callable[[Any, Any, Any], int]] = {
    "MatMul": lambda product, a, b: a[0] if product.get_attr("transpose_a") else a[1],
    "BatchMatMulV2": lambda product, a, b: a[-2] if product.get_attr("adj_x") else a[-1],
    "Einsum": _count_einsum_terms,
    "Conv2D": lambda product, a, b: math.prod(b[:-1]),  # b: (height, width, inputs, outputs)
    "Conv3D": lambda product, a, b: math.prod(b[:-1]),
    "DepthwiseConv2dNative": lambda product, a, b: math.prod(b[:2]),
}


def longest_chain(layer: Callable[..., Any], *inputs: Array) -> int:
    """Count the matrix products and convolutions on the longest chain in ``layer(*inputs)``.

    Each product of a chain needs the result of the previous one. The chain is read from the graph that TensorFlow
    traces. Raises TypeError if the layer is not callable or an input is not a tensor, and ValueError for a loop or a
    function within the graph.
    """

    @cache
    def longest(operation: Any) -> int:
        input_length = max((longest(x.op) for x in operation.inputs), default=0)
        return input_length + _is_product(operation)

    return max((longest(output.op) for output in _trace(layer, inputs).outputs), default=0)


def multiply_adds(layer: Callable[..., Any], *inputs: Array) -> int:
    """Count the multiplications in ``layer(*inputs)`` whose product is added to a sum.

    These are the ones in matrix products, convolutions and attention, counted from the shapes of their operands. Raises
    TypeError and ValueError as :func:`longest_chain` does.
    """
    total = 0
    for operation in _trace(layer, inputs).get_operations():
        if _is_product(operation):
            a, b = (x.shape for x in operation.inputs)
            terms = TERMS[operation.type](operation, a, b)
            total += terms * operation.outputs[0].shape.num_elements()
    return total


def _is_product(operation: Any) -> bool:
    return operation.type in TERMS and len(operation.inputs) == 2  # an einsum may have one input


def _trace(layer: Callable[..., Any], inputs: tuple[Array, ...]) -> Any:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs]
    graph = tf.function(lambda *inputs: layer(*inputs)).get_concrete_function(*specs).graph
    for operation in graph.get_operations():
        if any(value.HasField("func") for value in operation.node_def.attr.values()):
            got = f"a graph with a {operation.type}"
            need = "single operations: loops that Python unrolls, and no tf.function inside"
            raise ValueError(checks.message("layer", got, need))
    return graph
