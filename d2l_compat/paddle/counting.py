"""The cost of a layer on any machine: its multiplications, and its longest chain of dependent steps."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import paddle
from paddle import Tensor

from d2l_compat._shared import checks
from d2l_compat.paddle._arrays import arrays

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("pd_op.matmul", "pd_op.bmm", "pd_op.addmm", "pd_op.conv2d")


def longest_chain(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Count the matrix products and convolutions on the longest chain in ``layer(*inputs)``.

    Each product of a chain needs the result of the previous one. The chain is read from the program into which Paddle
    traces the call. In that program, a tensor from outside can be multiplied by ``paddle.matmul``, but not by ``@``.
    Raises TypeError if the layer is not callable or an input is not a tensor.
    """

    @cache
    def chain_length(operation: Any) -> int:
        if operation is None:
            return 0
        operands = [value.get_defining_op() for value in operation.operands_source()]
        return max(map(chain_length, operands), default=0) + (operation.name() in PRODUCTS)

    program = _trace(layer, inputs)  # a variable keeps its operations alive
    return chain_length(program.outputs[0].get_defining_op())


def multiply_adds(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Count the multiplications in ``layer(*inputs)`` whose product is added to a sum.

    These are the ones in matrix products, convolutions and attention, counted from the shapes of their operands in the
    program that :func:`longest_chain` reads, too. Raises TypeError as :func:`longest_chain` does.
    """
    program = _trace(layer, inputs)  # a variable keeps its operations alive
    operations = program.main_program.global_block().ops
    products = [operation for operation in operations if operation.name() in PRODUCTS]
    return sum(math.prod(product.result(0).shape) * _count_terms(product) for product in products)


def _count_terms(operation: Any) -> int:
    """Count the products that are summed for each element of the result."""
    left, right = [value.shape for value in operation.operands_source()][-2:]
    if operation.name() == "pd_op.conv2d":
        return math.prod(right[1:])  # a kernel of shape (outputs, inputs, height, width)
    return left[-2 if operation.attrs().get("transpose_x") else -1]


def _trace(layer: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> Any:
    """Trace ``layer(*inputs)`` into a program."""
    _check(layer, inputs)
    with paddle.no_grad():
        layer(*inputs)  # the layer may take its sizes from its first input

    @paddle.jit.not_to_static  # runs the layer's Python without translating it
    def call(arrays: list[Tensor]) -> Tensor:
        return layer(*arrays)

    shapes = [paddle.static.InputSpec.from_tensor(x) for x in inputs]
    return paddle.jit.to_static(call, [shapes], full_graph=True).concrete_program


def _check(layer: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> None:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
