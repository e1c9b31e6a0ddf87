"""The argument checks: the same fault gets the same words in every framework.

Every message has one form: ``what: got this; need that``. The faces pass plain shapes and
numbers in, so nothing here knows a framework.
"""

import operator
from collections.abc import Sequence
from numbers import Real

Shape = Sequence[int]

NOT_CALLED = "attention_weights: there are none yet; call the layer first"


class Unknown:
    """A size that is not known while a graph is traced: it fits any other but 0."""

    def __init__(self, shown: str) -> None:
        self.shown = shown  # what the framework writes in its place

    def __eq__(self, other: object) -> bool:
        return other != 0

    __hash__ = object.__hash__

    def __mod__(self, other: object) -> int:
        return 0  # a multiple of any

    def __repr__(self) -> str:
        return self.shown


def fault(what: str, got: object, need: str) -> str:
    return f"{what}: got {got}; need {need}"


def instance(what: str, value: object, kind: type, need: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(fault(what, type(value).__name__, need))


def integer(what: str, value: object, minimum: int) -> int:
    """``value`` as an int of at least ``minimum``; TypeError or ValueError otherwise."""
    need = f"an integer of at least {minimum}"
    if isinstance(value, bool):
        raise TypeError(fault(what, repr(value), need))
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(fault(what, repr(value), need)) from None
    if number < minimum:
        raise ValueError(fault(what, number, need))
    return number


def dropout(value: float) -> None:
    need = "a probability, from 0 to 1"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(fault("dropout", repr(value), need))
    if not 0 <= value <= 1:
        raise ValueError(fault("dropout", value, need))


def floating(what: str, dtypes: Sequence[str], is_floating: bool) -> None:
    """All ``dtypes`` are one, and of floating-point numbers."""
    if not is_floating or len(set(dtypes)) > 1:
        got = f"dtype {', '.join(dict.fromkeys(dtypes))}"
        raise TypeError(fault(what, got, "one floating-point dtype"))


def same_dtype(what: str, dtype: str, expected: str) -> None:
    """The input's dtype is that of the layer's weights."""
    if dtype != expected:
        need = f"{expected}, as the layer's weights are; convert one of the two"
        raise TypeError(fault(what, f"dtype {dtype}", need))


def heads(num_hiddens: int, num_heads: int) -> None:
    if num_hiddens % num_heads:
        raise ValueError(
            fault(
                "num_hiddens",
                f"{num_hiddens} with num_heads {num_heads}",
                "a multiple of num_heads, so that every head gets an equal share",
            )
        )


def heads_apart(shape: Shape, num_heads: int) -> int:
    """Features that are to be shared out among ``num_heads``, given back as an int."""
    rank("X", shape, ("batch", "steps", "num_hiddens"))
    num_heads = integer("num_heads", num_heads, 1)
    heads(shape[2], num_heads)
    return num_heads


def heads_together(shape: Shape, num_heads: int) -> int:
    """A batch in which every example stands once for each head."""
    rank("X", shape, ("batch * heads", "steps", "num_hiddens / heads"))
    num_heads = integer("num_heads", num_heads, 1)
    if shape[0] % num_heads:
        got = f"shape {tuple(shape)} with num_heads {num_heads}"
        raise ValueError(fault("X", got, "a batch that is a multiple of num_heads"))
    return num_heads


def rank(what: str, shape: Shape, axes: tuple[str, ...]) -> None:
    """``shape`` has one dimension for each name in ``axes``."""
    if len(shape) != len(axes):
        need = f"{len(axes)} dimensions ({', '.join(axes)})"
        raise ValueError(fault(what, f"shape {tuple(shape)}", need))


def last_dimension(what: str, shape: Shape, size: int) -> None:
    if shape[-1] != size:
        raise ValueError(fault(what, f"shape {tuple(shape)}", f"a last dimension of {size}"))


def attention_inputs(queries: Shape, keys: Shape, values: Shape) -> None:
    """Shapes (batch, queries, features), (batch, keys, features), (batch, keys, value features)."""
    rank("queries", queries, ("batch", "queries", "features"))
    rank("keys", keys, ("batch", "keys", "features"))
    rank("values", values, ("batch", "keys", "features"))
    if not queries[0] == keys[0] == values[0]:
        got = f"{queries[0]}, {keys[0]} and {values[0]}"
        raise ValueError(fault("batch sizes of queries, keys and values", got, "three equal ones"))
    if queries[2] == 0:
        raise ValueError(fault("queries", f"shape {tuple(queries)}", "at least one feature"))
    if keys[1] != values[1]:
        got = f"{keys[1]} keys and {values[1]} values"
        raise ValueError(fault("keys and values", got, "one value for each key"))


def valid_lens(shape: Shape, dtype: str, is_integer: bool, batch: int, num_queries: int) -> None:
    """One length for each example, shape (batch,), or for each query, (batch, queries)."""
    if not is_integer:
        raise TypeError(fault("valid_lens", f"dtype {dtype}", "an integer dtype"))
    if tuple(shape) not in ((batch,), (batch, num_queries)):
        need = f"({batch},), a length per example, or ({batch}, {num_queries}), one per query"
        raise ValueError(fault("valid_lens", f"shape {tuple(shape)}", f"shape {need}"))


def valid_lens_range(smallest: int, largest: int, num_keys: int) -> None:
    if smallest < 0 or largest > num_keys:
        got = smallest if smallest < 0 else largest
        need = f"lengths from 0 to {num_keys}, the number of keys"
        raise ValueError(fault("valid_lens", f"a length of {got}", need))


def residual(x: Shape, y: Shape) -> None:
    if tuple(x) != tuple(y):
        raise ValueError(fault("X and Y", f"shapes {tuple(x)} and {tuple(y)}", "two equal ones"))


def sequence_mask(x: Shape, lens: Shape, dtype: str, is_integer: bool) -> None:
    """Lengths, one for each example of ``x``, which has steps."""
    if len(x) < 2:
        raise ValueError(fault("X", f"shape {tuple(x)}", "at least 2 dimensions (batch, steps)"))
    if not is_integer:
        raise TypeError(fault("valid_len", f"dtype {dtype}", "an integer dtype"))
    if tuple(lens) != (x[0],):
        need = f"shape ({x[0]},), a length per example"
        raise ValueError(fault("valid_len", f"shape {tuple(lens)}", need))


def encoding_arguments(num_hiddens: int, dropout_rate: float, max_len: int) -> tuple[int, int]:
    """``num_hiddens`` and ``max_len`` as ints of at least 1."""
    dropout(dropout_rate)
    return integer("num_hiddens", num_hiddens, 1), integer("max_len", max_len, 1)


def positions(offset: int, num_steps: int, max_len: int) -> None:
    """Positions ``offset`` to ``offset + num_steps`` are among the ``max_len`` there are."""
    integer("offset", offset, 0)
    if offset + num_steps > max_len:
        got = f"{num_steps} positions from offset {offset}"
        need = f"at most {max_len} in all; make the layer with a larger max_len"
        raise ValueError(fault("positions", got, need))


def same_shape(shape: Shape, expected: Shape) -> None:
    if tuple(shape) != tuple(expected):
        raise ValueError(fault("shape", tuple(shape), f"{tuple(expected)}"))
