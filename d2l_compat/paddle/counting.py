"""What a layer costs, whatever the machine: its multiplications, and the steps that must wait."""

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
    """Of all products of matrices and convolutions that ``layer(*inputs)`` computes, those on the
    longest chain: each needs the result of the one before.

    Read from the program that Paddle makes of the call, in which a tensor from outside can be multiplied by
    ``paddle.matmul`` and not by ``@``. Raises TypeError where the layer is no function or an input no tensor.
    """

    @cache
    def longest(operation: Any) -> int:
        if operation is None:
            return 0
        inputs = [value.get_defining_op() for value in operation.operands_source()]
        return max(map(longest, inputs), default=0) + (operation.name() in PRODUCTS)

    program = _program(layer, inputs)  # held, since its operations end with it
    return longest(program.outputs[0].get_defining_op())


def multiply_adds(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """How often ``layer(*inputs)`` multiplies two numbers and adds the product to a sum: in
    products of matrices, convolutions and attention, from the shapes of all that is multiplied.

    Read from the same program as :func:`longest_chain`. Raises TypeError where the layer is no function or an input no tensor.
    """
    program = _program(layer, inputs)  # held, since its operations end with it
    operations = program.main_program.global_block().ops
    products = [each for each in operations if each.name() in PRODUCTS]
    return sum(math.prod(each.result(0).shape) * _terms(each) for each in products)


def _terms(operation: Any) -> int:
    """Of the sum that each number of the product is."""
    left, right = [value.shape for value in operation.operands_source()][-2:]
    if operation.name() == "pd_op.conv2d":
        return math.prod(right[1:])  # a kernel of shape (outputs, inputs, height, width)
    return left[-2 if operation.attrs().get("transpose_x") else -1]


def _program(layer: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> Any:
    """All that ``layer(*inputs)`` computes, written down."""
    _check(layer, inputs)
    with paddle.no_grad():
        layer(*inputs)  # it may take its sizes from its first input

    @paddle.jit.not_to_static  # its Python is run, not translated
    def call(arrays: list[Tensor]) -> Tensor:
        return layer(*arrays)

    shapes = [paddle.static.InputSpec.from_tensor(x) for x in inputs]
    return paddle.jit.to_static(call, [shapes], full_graph=True).concrete_program


def _check(layer: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> None:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
