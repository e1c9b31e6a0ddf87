"""What a layer costs, whatever the machine: its multiplications, and the steps that must wait."""

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from d2l_compat._shared import checks
from d2l_compat.jax._arrays import Array, arrays

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("dot_general", "conv_general_dilated")
UNTOLD = ("cond", "while")  # what they compute is known only when they run


def longest_chain(layer: Callable[..., Any], *inputs: Array) -> int:
    """Of all products of matrices and convolutions that ``layer(*inputs)`` computes, those on the
    longest chain: each needs the result of the one before.

    Read from the program that JAX traces, with all steps of a scan. Raises TypeError where the
    layer is no function or an input no array, and ValueError for a ``while`` or a ``cond``.
    """
    program = _traced(layer, inputs)
    return max(_depths(program, [0] * len(program.invars)), default=0)


def multiply_adds(layer: Callable[..., Any], *inputs: Array) -> int:
    """How often ``layer(*inputs)`` multiplies two numbers and adds the product to a sum: in
    products of matrices, convolutions and attention, from the shapes of all that is multiplied.

    Raises TypeError and ValueError as :func:`longest_chain` does.
    """
    return sum(_terms(product) for product in _products(_traced(layer, inputs)))


def _traced(layer: Callable[..., Any], inputs: tuple[Array, ...]) -> Jaxpr:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
    with jax.disable_jit():  # or a scan would be a single operation
        return jax.make_jaxpr(layer)(*inputs).jaxpr


def _depths(program: Jaxpr, depths: list[int]) -> list[int]:
    """Of each result the longest chain that leads to it, from those that lead to the inputs."""
    depth = dict(zip(program.invars, depths, strict=True))

    def of(values: list[Any]) -> list[int]:  # a literal or a weight waits for nothing
        return [0 if isinstance(v, Literal) else depth.get(v, 0) for v in values]

    for operation in program.eqns:
        before, inner = of(operation.invars), _inner(operation)
        if inner is None:
            longest = max(before, default=0) + (operation.primitive.name in PRODUCTS)
            after = [longest] * len(operation.outvars)
        else:
            after = _depths(inner, before)
        depth.update(zip(operation.outvars, after, strict=True))
    return of(program.outvars)


def _products(program: Jaxpr) -> Iterator[JaxprEqn]:
    """Those that a result is made of: JAX computes no others."""
    needed = {v for v in program.outvars if not isinstance(v, Literal)}
    for operation in reversed(program.eqns):
        if needed.isdisjoint(operation.outvars):
            continue
        needed.update(v for v in operation.invars if not isinstance(v, Literal))
        inner = _inner(operation)
        if inner is not None:
            yield from _products(inner)
        elif operation.primitive.name in PRODUCTS:
            yield operation


def _inner(operation: JaxprEqn) -> Jaxpr | None:
    """The program of an operation that is made of others."""
    name = operation.primitive.name
    if name in UNTOLD:
        need = "steps that are known beforehand, as those of a scan are"
        raise ValueError(checks.fault("layer", f"one with a {name}", need))
    for value in operation.params.values():
        if isinstance(value, Jaxpr):
            return value
        if isinstance(closed := getattr(value, "jaxpr", None), Jaxpr):  # before JAX 0.12
            return closed
    return None


def _terms(product: JaxprEqn) -> int:
    """The numbers in the result, times the products that each of them is the sum of."""
    left, right = (_array(v) for v in product.invars)
    dimensions = product.params["dimension_numbers"]
    if product.primitive.name == "dot_general":
        (summed, _), _ = dimensions
        terms = math.prod(left.shape[axis] for axis in summed)
    else:  # every output channel sums over a kernel of its own
        terms = right.size // right.shape[dimensions.rhs_spec[0]]
    return _array(product.outvars[0]).size * terms


def _array(variable: Any) -> jax.core.ShapedArray:
    return cast(jax.core.ShapedArray, variable.aval)
