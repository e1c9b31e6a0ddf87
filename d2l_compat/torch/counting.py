"""What a layer costs, whatever the machine: its multiplications, and the steps that must wait."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from d2l_compat._shared import checks
from d2l_compat.torch._arrays import arrays

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("Mm", "Addmm", "Bmm", "Linear", "Convolution", "ScaledDotProduct")


def longest_chain(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """Of all products of matrices and convolutions that ``layer(*inputs)`` computes, those on the
    longest chain: each needs the result of the one before.

    Fused attention is one product. Read from the graph that autograd makes of the call, so that only
    what depends on floating-point inputs or on weights counts. Raises TypeError where the layer is no function or an input no tensor.
    """
    _check(layer, inputs)

    @cache
    def longest(node: Any) -> int:
        if node is None:
            return 0
        before = max((longest(parent) for parent, _ in node.next_functions), default=0)
        return before + node.name().startswith(PRODUCTS)

    watched = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    with torch.enable_grad():
        return longest(layer(*watched).grad_fn)


def multiply_adds(layer: Callable[..., Tensor], *inputs: Tensor) -> int:
    """How often ``layer(*inputs)`` multiplies two numbers and adds the product to a sum: in
    products of matrices, convolutions and attention, from the shapes of all that is multiplied.

    Raises TypeError where the layer is no function or an input no tensor.
    """
    _check(layer, inputs)
    # When it is needed: it imports a compiler for GPUs, if one is installed.
    from torch.utils.flop_counter import FlopCounterMode

    # Not every fused kernel can be counted; the plain one does the same products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(*inputs)
    # The counter takes a multiplication and an addition for two operations.
    return int(counter.get_total_flops()) // 2


def _check(layer: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> None:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
