"""The argument checks: the same fault gets the same words in every framework.

Every message has one form: ``what: got this; need that``. No framework is known here: a face says
in its ``_arrays.py`` how its arrays answer, and the checks of arrays are then the same for all.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any

NOT_CALLED = "attention_weights: there are none yet; call the layer first"


def fault(what: str, got: object, need: str) -> str:
    return f"{what}: got {got}; need {need}"


def instance(what: str, value: object, kind: type | tuple[type, ...], need: str) -> None:
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


def heads(num_hiddens: int, num_heads: int) -> None:
    if num_hiddens % num_heads:
        raise ValueError(
            fault(
                "num_hiddens",
                f"{num_hiddens} with num_heads {num_heads}",
                "a multiple of num_heads, so that every head gets an equal share",
            )
        )


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


class Arrays(ABC):
    """A framework's arrays. The first methods ask them, and are the face's; all others check."""

    types: tuple[type, ...]  # what is an array

    @abstractmethod
    def dtype(self, x: Any) -> str:
        """The dtype's name, as in NumPy: ``float32``."""

    @abstractmethod
    def range(self, x: Any) -> tuple[int, int] | None:
        """The smallest and the largest number; None where there is none, or none to read yet."""

    @abstractmethod
    def takes(self, projection: Any, inputs: Any) -> tuple[int | None, str | None]:
        """The last dimension and the dtype that a linear layer needs of ``inputs``; None for any."""

    def shape(self, x: Any) -> Sequence[Any]:
        """The sizes, :class:`Unknown` for one that is not known while a graph is traced."""
        return x.shape

    def lengths(self, x: Any) -> Any:
        """``x``, whose dtype and range are asked next, in the form in which it tells them."""
        return x

    def check_instance(self, what: str, x: Any, need: str = "a tensor") -> None:
        instance(what, x, self.types, need)

    def check_rank(self, what: str, x: Any, axes: tuple[str, ...]) -> None:
        """``x`` is an array, and has one dimension for each name in ``axes``."""
        self.check_instance(what, x)
        _rank(what, self.shape(x), axes)

    def check_last_dimension(self, what: str, x: Any, size: int) -> None:
        shape = self.shape(x)
        if shape[-1] != size:
            raise ValueError(fault(what, f"shape {tuple(shape)}", f"a last dimension of {size}"))

    def check_floating(self, what: str, *arrays: Any) -> None:
        """All have one dtype, and that is of floating-point numbers."""
        dtypes = [self.dtype(x) for x in arrays]
        if dtypes != dtypes[:1] * len(dtypes) or not dtypes[0].startswith(("float", "bfloat")):
            got = f"dtype {', '.join(dict.fromkeys(dtypes))}"
            raise TypeError(fault(what, got, "one floating-point dtype"))

    def check_integer(self, what: str, x: Any) -> None:
        dtype = self.dtype(x)
        if not dtype.startswith(("int", "uint")):
            raise TypeError(fault(what, f"dtype {dtype}", "an integer dtype"))

    def check_attention(self, queries: Any, keys: Any, values: Any) -> None:
        """Shapes (batch, queries, features), (batch, keys, features), (batch, keys, features)."""
        self.check_instance("queries", queries)
        self.check_instance("keys", keys)
        self.check_instance("values", values)
        of_queries, of_keys, of_values = self.shape(queries), self.shape(keys), self.shape(values)
        _rank("queries", of_queries, ("batch", "queries", "features"))
        _rank("keys", of_keys, ("batch", "keys", "features"))
        _rank("values", of_values, ("batch", "keys", "features"))
        if not of_queries[0] == of_keys[0] == of_values[0]:
            what = "batch sizes of queries, keys and values"
            got = f"{of_queries[0]}, {of_keys[0]} and {of_values[0]}"
            raise ValueError(fault(what, got, "three equal ones"))
        if of_queries[2] == 0:
            raise ValueError(fault("queries", f"shape {tuple(of_queries)}", "at least one feature"))
        if of_keys[1] != of_values[1]:
            got = f"{of_keys[1]} keys and {of_values[1]} values"
            raise ValueError(fault("keys and values", got, "one value for each key"))
        self.check_floating("queries, keys and values", queries, keys, values)

    def check_dot_product(self, queries: Any, keys: Any, values: Any) -> None:
        """The same, and queries and keys have as many features."""
        self.check_attention(queries, keys, values)
        self.check_last_dimension("keys", keys, self.shape(queries)[-1])

    def check_projection(
        self, what: str, inputs: Any, projection: Any, size: int | None = None
    ) -> bool:
        """Inputs fit the weights they will meet; False where their size is not known by now.

        ``size`` is what the layer was told, where the projection itself cannot say.
        """
        needed, dtype = self.takes(projection, inputs)
        size = size or needed
        if size is not None:
            self.check_last_dimension(what, inputs, size)
        if dtype is not None and dtype != self.dtype(inputs):
            need = f"{dtype}, as the layer's weights are; convert one of the two"
            raise TypeError(fault(what, f"dtype {self.dtype(inputs)}", need))
        return size is not None

    def check_valid_lens(
        self, valid_lens: Any, queries: Any, keys: Any, in_range: bool = True
    ) -> Any:
        """A length for each example, or for each query; returns ``lengths`` of them.

        That they are ``in_range`` is read from their values, which on a GPU means waiting for them.
        """
        if valid_lens is None:
            return None
        of_queries, num_keys = self.shape(queries), self.shape(keys)[1]
        return self._check_lens(valid_lens, of_queries[0], of_queries[1], num_keys, in_range)

    def check_scores(self, X: Any, valid_lens: Any) -> Any:
        """What is given to ``masked_softmax``; returns ``lengths`` of ``valid_lens``."""
        self.check_rank("X", X, ("batch", "queries", "keys"))
        self.check_floating("X", X)
        return None if valid_lens is None else self._check_lens(valid_lens, *self.shape(X))

    def _check_lens(
        self, valid_lens: Any, batch: int, num_queries: int, num_keys: Any, in_range: bool = True
    ) -> Any:
        self.check_instance("valid_lens", valid_lens, "an integer tensor")
        lens = self.lengths(valid_lens)
        self.check_integer("valid_lens", lens)
        shape = tuple(self.shape(lens))
        if shape not in ((batch,), (batch, num_queries)):
            need = f"({batch},), a length per example, or ({batch}, {num_queries}), one per query"
            raise ValueError(fault("valid_lens", f"shape {shape}", f"shape {need}"))
        known = self.range(lens) if in_range and not isinstance(num_keys, Unknown) else None
        if known is not None and (known[0] < 0 or known[1] > num_keys):
            got = known[0] if known[0] < 0 else known[1]
            need = f"lengths from 0 to {num_keys}, the number of keys"
            raise ValueError(fault("valid_lens", f"a length of {got}", need))
        return lens

    def check_tokens(self, X: Any) -> None:
        self.check_rank("X", X, ("batch", "steps"))

    def check_encoding(self, X: Any, num_hiddens: int) -> None:
        """What positions are to be added to."""
        self.check_rank("X", X, ("batch", "steps", "features"))
        self.check_last_dimension("X", X, num_hiddens)
        self.check_floating("X", X)

    def check_positions(self, offset: int, X: Any, max_len: int) -> None:
        """The positions of ``X`` from ``offset`` on are among the ``max_len`` there are."""
        num_steps = self.shape(X)[1]
        positions(offset, 0 if isinstance(num_steps, Unknown) else num_steps, max_len)

    def check_residual(self, X: Any, Y: Any) -> None:
        """Two of one shape."""
        self.check_instance("X", X)
        self.check_instance("Y", Y)
        of_X, of_Y = tuple(self.shape(X)), tuple(self.shape(Y))
        if of_X != of_Y:
            raise ValueError(fault("X and Y", f"shapes {of_X} and {of_Y}", "two equal ones"))

    def check_heads_apart(self, X: Any, num_heads: int) -> int:
        """Features that are to be shared out among ``num_heads``, given back as an int."""
        self.check_rank("X", X, ("batch", "steps", "num_hiddens"))
        num_heads = integer("num_heads", num_heads, 1)
        heads(self.shape(X)[2], num_heads)
        return num_heads

    def check_heads_together(self, X: Any, num_heads: int) -> int:
        """A batch in which every example stands once for each of ``num_heads``."""
        self.check_rank("X", X, ("batch * heads", "steps", "num_hiddens / heads"))
        num_heads = integer("num_heads", num_heads, 1)
        shape = self.shape(X)
        if shape[0] % num_heads:
            got = f"shape {tuple(shape)} with num_heads {num_heads}"
            raise ValueError(fault("X", got, "a batch that is a multiple of num_heads"))
        return num_heads

    def check_sequence_mask(self, X: Any, valid_len: Any) -> Any:
        """Lengths, one for each example of ``X``, which has steps; returns ``lengths`` of them."""
        self.check_instance("X", X)
        self.check_instance("valid_len", valid_len, "an integer tensor")
        lens = self.lengths(valid_len)
        of_X, of_lens = self.shape(X), self.shape(lens)
        if len(of_X) < 2:
            need = "at least 2 dimensions (batch, steps)"
            raise ValueError(fault("X", f"shape {tuple(of_X)}", need))
        self.check_integer("valid_len", lens)
        if tuple(of_lens) != (of_X[0],):
            need = f"shape ({of_X[0]},), a length per example"
            raise ValueError(fault("valid_len", f"shape {tuple(of_lens)}", need))
        return lens

    def check_shape(self, x: Any, shape: tuple[int, ...]) -> None:
        """``x`` has exactly this ``shape``."""
        self.check_instance("x", x)
        if tuple(x.shape) != tuple(shape):
            raise ValueError(fault("shape", tuple(x.shape), f"{tuple(shape)}"))


def _rank(what: str, shape: Sequence[Any], axes: tuple[str, ...]) -> None:
    if len(shape) != len(axes):
        need = f"{len(axes)} dimensions ({', '.join(axes)})"
        raise ValueError(fault(what, f"shape {tuple(shape)}", need))
