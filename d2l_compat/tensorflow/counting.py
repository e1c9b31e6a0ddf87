"""What a layer costs, whatever the machine: its multiplications, and the steps that must wait."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import tensorflow as tf

from d2l_compat._shared import checks
from d2l_compat.tensorflow._arrays import Array, arrays

__all__ = ["longest_chain", "multiply_adds"]


def _summed(einsum: Any, *shapes: Any) -> int:
    """How many products are added for one number: the sizes of the letters it has not."""
    letters, result = einsum.get_attr("equation").decode().split("->")
    sizes: dict[str, int] = {}
    for each, shape in zip(letters.split(","), shapes, strict=True):
        first, _, last = each.partition("...")
        sizes |= dict(zip(first, shape, strict=False))
        sizes |= dict(zip(reversed(last), reversed(shape), strict=False))
    return math.prod(size for letter, size in sizes.items() if letter not in result)


# Of each product, of these two shapes: how many multiplications make one number of its result.
TERMS: dict[str, Callable[[Any, Any, Any], int]] = {
    "MatMul": lambda product, a, b: a[0] if product.get_attr("transpose_a") else a[1],
    "BatchMatMulV2": lambda product, a, b: a[-2] if product.get_attr("adj_x") else a[-1],
    "Einsum": _summed,
    "Conv2D": lambda product, a, b: math.prod(b[:-1]),  # b: (height, width, inputs, outputs)
    "Conv3D": lambda product, a, b: math.prod(b[:-1]),
    "DepthwiseConv2dNative": lambda product, a, b: math.prod(b[:2]),
}


def longest_chain(layer: Callable[..., Any], *inputs: Array) -> int:
    """Of all products of matrices and convolutions that ``layer(*inputs)`` computes, those on the
    longest chain: each needs the result of the one before.

    Read from the graph that TensorFlow traces. Raises TypeError where the layer is no function or
    an input no tensor, and ValueError for a loop or a function within the graph.
    """

    @cache
    def longest(operation: Any) -> int:
        before = max((longest(x.op) for x in operation.inputs), default=0)
        return before + _is_product(operation)

    return max((longest(output.op) for output in _graph(layer, inputs).outputs), default=0)


def multiply_adds(layer: Callable[..., Any], *inputs: Array) -> int:
    """How often ``layer(*inputs)`` multiplies two numbers and adds the product to a sum: in
    products of matrices, convolutions and attention, from the shapes of all that is multiplied.

    Raises TypeError and ValueError as :func:`longest_chain` does.
    """
    total = 0
    for operation in _graph(layer, inputs).get_operations():
        if _is_product(operation):
            a, b = (x.shape for x in operation.inputs)
            terms = TERMS[operation.type](operation, a, b)
            total += terms * operation.outputs[0].shape.num_elements()
    return total


def _is_product(operation: Any) -> bool:
    return operation.type in TERMS and len(operation.inputs) == 2  # an einsum may have one


def _graph(layer: Callable[..., Any], inputs: tuple[Array, ...]) -> Any:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs]
    graph = tf.function(lambda *inputs: layer(*inputs)).get_concrete_function(*specs).graph
    for operation in graph.get_operations():
        if any(value.HasField("func") for value in operation.node_def.attr.values()):
            got = f"one with a {operation.type} in its graph"
            need = "single operations: loops that Python unrolls, and no tf.function inside"
            raise ValueError(checks.fault("layer", got, need))
    return graph
