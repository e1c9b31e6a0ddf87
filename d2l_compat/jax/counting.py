"""The cost of a layer on any machine: its multiplications, and its longest chain of dependent steps."""

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from d2l_compat._shared import checks
from d2l_compat.jax._arrays import Array, arrays

__all__ = ["longest_chain", "multiply_adds"]

PRODUCTS = ("dot_general", "conv_general_dilated")
DATA_DEPENDENT = ("cond", "while")  # their operations are known only at run time


def longest_chain(layer: Callable[..., Any], *inputs: Array) -> int:
    """Count the matrix products and convolutions on the longest chain in ``layer(*inputs)``.

    Each product of a chain needs the result of the previous one. Products are counted in the program
    that JAX traces, with all steps of a scan. Raises TypeError if the layer is not a function or an
    input is not an array, and ValueError for a ``while`` or a ``cond``.
    """
    program = _trace(layer, inputs)
    return max(_measure_chains(program, [0] * len(program.invars)), default=0)


def multiply_adds(layer: Callable[..., Any], *inputs: Array) -> int:
    """Count the multiplications in ``layer(*inputs)`` whose product is added to a sum.

    These are the ones in matrix products, convolutions and attention, counted from the shapes of
    their operands. Raises TypeError and ValueError as :func:`longest_chain` does.
    """
    return sum(map(_count_multiply_adds, _find_products(_trace(layer, inputs))))


def _trace(layer: Callable[..., Any], inputs: tuple[Array, ...]) -> Jaxpr:
    checks.check_callable("layer", layer)
    for x in inputs:
        arrays.check_instance("inputs", x)
    with jax.disable_jit():  # with jit, a scan would be a single operation
        return jax.make_jaxpr(layer)(*inputs).jaxpr


def _measure_chains(program: Jaxpr, input_lengths: list[int]) -> list[int]:
    """Return the length of the longest chain to each result, given the lengths at the inputs."""
    lengths = dict(zip(program.invars, input_lengths, strict=True))

    def look_up(values: list[Any]) -> list[int]:  # 0 for literals and weights
        return [0 if isinstance(v, Literal) else lengths.get(v, 0) for v in values]

    for operation in program.eqns:
        operand_lengths = look_up(operation.invars)
        inner = _get_inner_program(operation)
        if inner is None:
            longest = max(operand_lengths, default=0) + (operation.primitive.name in PRODUCTS)
            result_lengths = [longest] * len(operation.outvars)
        else:
            result_lengths = _measure_chains(inner, operand_lengths)
        lengths.update(zip(operation.outvars, result_lengths, strict=True))
    return look_up(program.outvars)


def _find_products(program: Jaxpr) -> Iterator[JaxprEqn]:
    """Yield the products that the results depend on; JAX computes no others."""
    needed = {v for v in program.outvars if not isinstance(v, Literal)}
    for operation in reversed(program.eqns):
        if needed.isdisjoint(operation.outvars):
            continue
        needed.update(v for v in operation.invars if not isinstance(v, Literal))
        inner = _get_inner_program(operation)
        if inner is not None:
            yield from _find_products(inner)
        elif operation.primitive.name in PRODUCTS:
            yield operation


def _get_inner_program(operation: JaxprEqn) -> Jaxpr | None:
    """Return the program inside an operation, or None for a primitive operation."""
    name = operation.primitive.name
    if name in DATA_DEPENDENT:
        need = "steps that are known in advance, as in a scan"
        raise ValueError(checks.message("layer", f"a program with a {name}", need))
    for value in operation.params.values():
        if isinstance(value, Jaxpr):
            return value
        if isinstance(closed := getattr(value, "jaxpr", None), Jaxpr):  # before JAX 0.12
            return closed
    return None


def _count_multiply_adds(product: JaxprEqn) -> int:
    """Return the size of the result times the number of products that are summed for each element."""
    left, right = map(_get_shape, product.invars)
    dimensions = product.params["dimension_numbers"]
    if product.primitive.name == "dot_general":
        (left_axes, _), _ = dimensions
        terms = math.prod(left.shape[axis] for axis in left_axes)
    else:  # each output channel has a separate kernel, which it sums over
        terms = right.size // right.shape[dimensions.rhs_spec[0]]
    return _get_shape(product.outvars[0]).size * terms


def _get_shape(variable: Any) -> jax.core.ShapedArray:
    return cast(jax.core.ShapedArray, variable.aval)
