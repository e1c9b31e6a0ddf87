"""The cost of a layer on any machine: its multiplications, and its longest chain of dependent steps."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from d2l_compat._shared import checks
from d2l_compat.torch._arrays import arrays

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("Mm", "Addmm", "Bmm", "Linear", "Convolution")


def longest_chain(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Count the matrix products and convolutions on the longest chain in ``layer(*inputs)``.

    Each product of a chain needs the result of the previous one. Fused attention counts as the two products that it
    fuses. The chain is read from autograd's graph of the call, so only operations that depend on floating-point inputs
    or weights are counted.
    Raises TypeError if the layer is not callable or an input is not a tensor.
    """
    _check(layer, inputs)

    @cache
    def chain_length(node: Any) -> int:
        if node is None:
            return 0
        longest = max((chain_length(parent) for parent, _ in node.next_functions), default=0)
        return longest + node.name().startswith(PRODUCTS)

    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    # In autograd's graph a fused kernel is one node; the plain one is a node for each product.
    with sdpa_kernel(SDPBackend.MATH), torch.enable_grad():
        return chain_length(layer(*leaves).grad_fn)


def multiply_adds(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Count the multiplications in ``layer(*inputs)`` whose product is added to a sum.

    These are the ones in matrix products, convolutions and attention, counted from the shapes of their operands. Raises
    TypeError as :func:`longest_chain` does.
    """
    _check(layer, inputs)
    # Imported on first use: it imports a compiler for GPUs, if one is installed.
    from torch.utils.flop_counter import FlopCounterMode

    # Not every fused kernel can be counted; the plain one computes the same products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(*inputs)
    # The counter counts a multiplication and an addition as two operations.
    return int(counter.get_total_flops()) // 2


def _check(layer: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> None:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
