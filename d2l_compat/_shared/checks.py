"""The argument checks: the same fault gets the same words in every framework.

Every message has one form: ``what: got this; need that``. No framework is known here: a face says
in its ``_arrays.py`` how its arrays answer, and the checks of arrays are then the same for all.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Sized
from numbers import Number, Real
from typing import Any

import numpy as np

GREATEST_SIZE = 2**31 - 1  # what all frameworks can count
NOT_CALLED = "attention_weights: there are none yet; call the layer first"


def fault(what: str, got: object, need: object) -> str:
    return f"{what}: got {got}; need {need}"


def check_instance(what: str, value: object, kind: type | tuple[type, ...], need: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(fault(what, type(value).__name__, need))


def check_callable(what: str, value: object) -> None:
    if not callable(value):
        raise TypeError(fault(what, format_value(value), "a layer or a function"))


def format_value(value: object) -> str:
    """A number or a string as it is written; of anything else its type."""
    is_short = value is None or isinstance(value, (Number, str))
    return repr(value) if is_short else type(value).__name__


def integer(
    what: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """``value`` as an int from ``minimum`` to ``maximum``; TypeError or ValueError otherwise."""
    need = "an integer" if minimum is None else f"an integer of at least {minimum}"
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        raise TypeError(fault(what, format_value(value), need))
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError, AssertionError):  # as arrays differ
        raise TypeError(fault(what, format_value(value), need)) from None
    if minimum is not None and number < minimum:
        raise ValueError(fault(what, number, need))
    if maximum is not None and number > maximum:
        raise ValueError(fault(what, number, f"an integer of at most {maximum}"))
    return number


def size(what: str, value: object) -> int:
    """``value`` as an int from 1 to as many as a framework can count."""
    return integer(what, value, 1, GREATEST_SIZE)


def optional_size(what: str, value: int | None) -> int | None:
    """The same, or None: the first input tells it."""
    return None if value is None else size(what, value)


def real(what: str, value: object, need: str) -> Any:
    """``value``, which is a number; ``need`` says which are right."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(fault(what, format_value(value), need))
    return value


def integers(what: str, values: object, minimum: int | None = None) -> int | list[int]:
    """An integer of at least ``minimum``, or a list of them: at least one."""
    if not isinstance(values, (list, tuple)):
        return integer(what, values, minimum)
    if not values:
        raise ValueError(fault(what, "an empty list", "at least one integer"))
    return [integer(what, value, minimum) for value in values]


def check_len(a: Any, n: int) -> None:
    """Raise ValueError unless ``a`` has exactly ``n`` elements, TypeError if it has no length."""
    n = integer("n", n, 0)
    check_instance("a", a, Sized, "a list")
    if len(a) != n:
        raise ValueError(fault("a", f"{len(a)} elements", n))


def check_dropout(value: float) -> None:
    need = "a probability, from 0 to 1"
    if not 0 <= real("dropout", value, need) <= 1:
        raise ValueError(fault("dropout", value, need))


def check_representable(what: str, value: object, dtype: str) -> None:
    """``value`` is a number that does not become another one in an array of ``dtype``."""
    need = f"a number that {dtype} holds"
    if dtype == "bool" and isinstance(value, bool):
        return
    number = real(what, value, need)
    if dtype.startswith(("int", "uint")):
        ends = np.iinfo(dtype)
        fits = number % 1 == 0 and ends.min <= number <= ends.max
    elif dtype == "bool":
        fits = number in (0, 1)
    else:  # NumPy has no bfloat16, whose ends are those of float32
        largest = np.finfo(dtype if dtype in ("float16", "float64") else "float32").max
        fits = not math.isfinite(number) or abs(number) <= largest
    if not fits:
        raise ValueError(fault(what, number, need))


def gpu_index(i: int) -> int:
    """The number of a GPU; PyTorch counts them with 7 bits."""
    return integer("gpu", i, 0, 127)


def check_heads(num_hiddens: int, num_heads: int) -> None:
    if num_hiddens % num_heads:
        raise ValueError(
            fault(
                "num_hiddens",
                f"{num_hiddens} with num_heads {num_heads}",
                "a multiple of num_heads, so that every head gets an equal share",
            )
        )


def encoding_sizes(num_hiddens: int, dropout_rate: float, max_len: int) -> tuple[int, int]:
    """``num_hiddens`` and ``max_len`` as ints of at least 1."""
    check_dropout(dropout_rate)
    return size("num_hiddens", num_hiddens), size("max_len", max_len)


LAYOUTS = "interleaved", "halves"


def rotary_sizes(
    num_hiddens: int, max_len: int, base: float, layout: str, position_scale: float
) -> tuple[int, int]:
    """``num_hiddens`` and ``max_len`` as ints of at least 1."""
    sizes = size("num_hiddens", num_hiddens), size("max_len", max_len)
    if sizes[0] % 2:
        raise ValueError(fault("num_hiddens", sizes[0], "an even number, since pairs are turned"))
    for what, value, least in ("base", base, 1), ("position_scale", position_scale, 0):
        need = f"a finite number above {least}"
        if not least < real(what, value, need) <= np.finfo(float).max:
            raise ValueError(fault(what, value, need))
    if layout not in LAYOUTS:
        raise ValueError(fault("layout", format_value(layout), " or ".join(map(repr, LAYOUTS))))
    return sizes


def check_positions(offset: int, num_steps: int, max_len: int) -> None:
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
    def value_range(self, x: Any) -> tuple[float, float] | None:
        """The smallest and the largest number; None where there is none, or none to read yet."""

    @abstractmethod
    def expected_input(self, projection: Any, inputs: Any) -> tuple[int | None, str | None]:
        """The last dimension and the dtype that a linear layer needs of ``inputs``; None for any.

        Where dtypes must agree, a layer that normalizes tells its own here as well.
        """

    def shape(self, x: Any) -> Sequence[Any]:
        """The sizes, :class:`Unknown` for one that is not known while a graph is traced."""
        return x.shape

    def as_readable(self, x: Any) -> Any:
        """``x``, whose dtype and range are asked next, in the form in which it tells them."""
        return x

    def check_instance(self, what: str, x: Any, need: str = "a tensor") -> None:
        check_instance(what, x, self.types, need)

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
        needed, dtype = self.expected_input(projection, inputs)
        size = size or needed
        if size is not None:
            self.check_last_dimension(what, inputs, size)
        self._check_weights(what, inputs, dtype)
        return size is not None

    def _check_weights(self, what: str, inputs: Any, dtype: str | None) -> None:
        if dtype is not None and dtype != self.dtype(inputs):
            need = f"{dtype}, as the layer's weights are; convert one of the two"
            raise TypeError(fault(what, f"dtype {self.dtype(inputs)}", need))

    def check_valid_lens(
        self, valid_lens: Any, queries: Any, keys: Any, in_range: bool = True
    ) -> Any:
        """A length for each example, or for each query; returns ``counts`` of them.

        That they are ``in_range`` is read from their values, which on a GPU means waiting for them.
        """
        if valid_lens is None:
            return None
        of_queries, num_keys = self.shape(queries), self.shape(keys)[1]
        return self._check_lens(valid_lens, of_queries[0], of_queries[1], num_keys, in_range)

    def check_causal(self, causal: Any, queries: Any, keys: Any) -> None:
        """True or False; the last query sees the last key, so every query needs a key of its own."""
        check_instance("causal", causal, bool, "True or False")
        num_queries, num_keys = self.shape(queries)[1], self.shape(keys)[1]
        are_known = not any(isinstance(size, Unknown) for size in (num_queries, num_keys))
        if causal and are_known and num_queries > num_keys:
            got = f"{num_queries} queries and {num_keys} keys"
            raise ValueError(fault("causal attention", got, "at least one key for each query"))

    def check_score_bias(
        self, score_bias: Any, queries: Any, keys: Any, heads: int | None = None
    ) -> None:
        """One number for each score; of ``heads``, the same for all of them or each its own."""
        if score_bias is None:
            return
        self.check_instance("score_bias", score_bias)
        (batch, num_queries, _), num_keys = self.shape(queries), self.shape(keys)[1]
        each = num_queries, num_keys
        fitting: dict[str, tuple[Any, ...]] = {"queries, keys": each}
        if heads is None:
            fitting["batch, queries, keys"] = batch, *each
        else:
            fitting["heads, queries, keys"] = heads, *each
            fitting["batch, heads, queries, keys"] = batch, heads, *each
        shape = tuple(self.shape(score_bias))
        if shape not in fitting.values():
            need = " or ".join(f"({axes}), here {sizes}" for axes, sizes in fitting.items())
            raise ValueError(fault("score_bias", f"shape {shape}", f"shape {need}"))
        self.check_floating("queries and score_bias", queries, score_bias)

    def check_scores(self, X: Any, valid_lens: Any) -> Any:
        """What is given to ``masked_softmax``; returns ``counts`` of ``valid_lens``."""
        self.check_rank("X", X, ("batch", "queries", "keys"))
        self.check_floating("X", X)
        return None if valid_lens is None else self._check_lens(valid_lens, *self.shape(X))

    def _check_lens(
        self, valid_lens: Any, batch: int, num_queries: int, num_keys: Any, in_range: bool = True
    ) -> Any:
        self.check_instance("valid_lens", valid_lens, "an integer tensor")
        lens = self.as_readable(valid_lens)
        self.check_integer("valid_lens", lens)
        shape = tuple(self.shape(lens))
        if shape not in ((batch,), (batch, num_queries)):
            need = f"({batch},), a length per example, or ({batch}, {num_queries}), one per query"
            raise ValueError(fault("valid_lens", f"shape {shape}", f"shape {need}"))
        if in_range and not isinstance(num_keys, Unknown):
            self._check_range("valid_lens", "length", lens, num_keys, "the number of keys")
        return lens

    def check_tokens(self, X: Any, vocab_size: int, what: str = "X") -> None:
        """Numbers of tokens, each below ``vocab_size``."""
        why = f"of a vocabulary of {vocab_size}"
        self._check_whole(what, "token", X, ("batch", "steps"), vocab_size - 1, why)

    def check_sentence_pair(
        self, tokens: Any, segments: Any, vocab_size: int, max_len: int
    ) -> None:
        """Numbers of tokens, no more than ``max_len``, and of each the number of its sentence, 0 or 1."""
        self.check_tokens(tokens, vocab_size, "tokens")
        self.check_positions(0, tokens, max_len)
        self._check_whole(
            "segments", "segment", segments, ("batch", "steps"), 1, "of two sentences"
        )
        of_tokens, of_segments = tuple(self.shape(tokens)), tuple(self.shape(segments))
        if of_segments != of_tokens:
            need = f"shape {of_tokens}, a segment for each token"
            raise ValueError(fault("segments", f"shape {of_segments}", need))

    def check_pred_positions(self, X: Any, pred_positions: Any) -> None:
        """Of each example of ``X`` (batch, steps, features) some positions, (batch, predictions)."""
        self.check_rank("X", X, ("batch", "steps", "features"))
        batch, steps, _ = self.shape(X)
        axes, why = ("batch", "predictions"), "of those in X"
        last = 0 if isinstance(steps, Unknown) else steps - 1  # then there are no values either
        self._check_whole("pred_positions", "position", pred_positions, axes, last, why)
        if self.shape(pred_positions)[0] != batch:
            got = f"shape {tuple(self.shape(pred_positions))}"
            raise ValueError(fault("pred_positions", got, f"a row for each of {batch} examples"))

    def _check_whole(
        self, what: str, each: str, X: Any, axes: tuple[str, ...], largest: int, why: str
    ) -> None:
        """Whole numbers from 0 to ``largest``.

        D2L's pages have them in floating point as well.
        """
        self.check_rank(what, X, axes)
        numbers = self.as_readable(X)
        dtype = self.dtype(numbers)
        if "float" not in dtype:
            self.check_integer(what, numbers)
        elif self.value_range(numbers % 1) not in (None, (0, 0)):
            need = f"whole numbers, of {each}s"
            raise ValueError(fault(what, f"dtype {dtype} with fractions", need))
        self._check_range(what, each, numbers, largest, why)

    def _check_range(self, what: str, each: str, x: Any, largest: int, why: str) -> None:
        """Nothing is below 0 or above ``largest``, where values are known by now."""
        known = self.value_range(x)
        if known is not None and (known[0] < 0 or known[1] > largest):
            got = f"a {each} of {known[0] if known[0] < 0 else known[1]}"
            raise ValueError(fault(what, got, f"{each}s from 0 to {largest}, {why}"))

    def check_features(self, X: Any, projection: Any, size: int | None = None) -> None:
        """What is projected, of whatever rank; as in ``check_projection``."""
        self.check_instance("X", X)
        _last("X", self.shape(X), "feature")
        self.check_floating("X", X)
        self.check_projection("X", X, projection, size)

    def check_labels(self, Y_hat: Any, Y: Any) -> None:
        """Logits (..., classes), and a label for each row of them."""
        self.check_instance("Y_hat", Y_hat)
        self.check_instance("Y", Y, "an integer tensor")
        of_Y_hat, of_Y = tuple(self.shape(Y_hat)), tuple(self.shape(Y))
        _last("Y_hat", of_Y_hat, "class")
        self.check_floating("Y_hat", Y_hat)
        labels = self.as_readable(Y)
        self.check_integer("Y", labels)
        is_known = not any(isinstance(size, Unknown) for size in of_Y_hat + of_Y)
        if is_known and math.prod(of_Y_hat[:-1]) != math.prod(of_Y):
            need = f"as many labels as there are rows in Y_hat, of shape {of_Y_hat}"
            raise ValueError(fault("Y", f"shape {of_Y}", need))
        if 0 in of_Y:
            raise ValueError(fault("Y", f"shape {of_Y}", "at least one label"))
        if not isinstance(of_Y_hat[-1], Unknown):
            classes = of_Y_hat[-1]
            self._check_range("Y", "label", labels, classes - 1, f"of {classes} classes")

    def check_encoding(self, X: Any, num_hiddens: int) -> None:
        """What positions are to be added to."""
        self.check_rank("X", X, ("batch", "steps", "features"))
        self.check_last_dimension("X", X, num_hiddens)
        self.check_floating("X", X)

    def check_positions(self, offset: int, X: Any, max_len: int) -> None:
        """The positions of ``X`` from ``offset`` on are among the ``max_len`` there are."""
        num_steps = self.shape(X)[1]
        check_positions(offset, 0 if isinstance(num_steps, Unknown) else num_steps, max_len)

    def check_residual(
        self, X: Any, Y: Any, sizes: Sequence[int] = (), norm: Any | None = None
    ) -> None:
        """Two of one shape; ``norm`` normalizes their sum over the last dimensions, of these sizes."""
        self.check_instance("X", X)
        self.check_instance("Y", Y)
        of_X, of_Y = tuple(self.shape(X)), tuple(self.shape(Y))
        if of_X != of_Y:
            raise ValueError(fault("X and Y", f"shapes {of_X} and {of_Y}", "two equal ones"))
        _last("X", of_X, "feature")
        if sizes and of_X[-len(sizes) :] != tuple(sizes):
            need = f"last dimensions of {tuple(sizes)}"
            raise ValueError(fault("X", f"shape {of_X}", need))
        for what, x in (("X", X), ("Y", Y)):
            self.check_floating(what, x)
            self._check_weights(what, x, None if norm is None else self.expected_input(norm, x)[1])

    def check_head_split(self, X: Any, num_heads: int) -> int:
        """Features that are to be shared out among ``num_heads``, given back as an int."""
        self.check_rank("X", X, ("batch", "steps", "num_hiddens"))
        self._check_numbers("X", X)
        num_heads = integer("num_heads", num_heads, 1)
        check_heads(self.shape(X)[2], num_heads)
        return num_heads

    def _check_numbers(self, what: str, x: Any) -> None:
        if self.dtype(x) == "bool":
            raise TypeError(fault(what, "dtype bool", "a dtype of numbers"))

    def check_head_merge(self, X: Any, num_heads: int) -> int:
        """A batch in which every example stands once for each of ``num_heads``."""
        self.check_rank("X", X, ("batch * heads", "steps", "num_hiddens / heads"))
        self._check_numbers("X", X)
        num_heads = integer("num_heads", num_heads, 1)
        shape = self.shape(X)
        if shape[0] % num_heads:
            got = f"shape {tuple(shape)} with num_heads {num_heads}"
            raise ValueError(fault("X", got, "a batch that is a multiple of num_heads"))
        return num_heads

    def check_sequence_mask(self, X: Any, valid_len: Any, value: Any) -> Any:
        """Lengths, one for each example of ``X``, which has steps; returns ``counts`` of them.

        ``value`` is a number that ``X`` can hold.
        """
        self.check_instance("X", X)
        self.check_instance("valid_len", valid_len, "an integer tensor")
        lens = self.as_readable(valid_len)
        of_X, of_lens = self.shape(X), self.shape(lens)
        if len(of_X) < 2:
            need = "at least 2 dimensions (batch, steps)"
            raise ValueError(fault("X", f"shape {tuple(of_X)}", need))
        self.check_integer("valid_len", lens)
        if tuple(of_lens) != (of_X[0],):
            need = f"shape ({of_X[0]},), a length per example"
            raise ValueError(fault("valid_len", f"shape {tuple(of_lens)}", need))
        check_representable("value", value, self.dtype(X))
        return lens

    def check_sequence(self, what: str, X: Any, size: int | None, dtype: str | None = None) -> None:
        """What a recurrent layer reads step by step: ``size`` features each, or any number."""
        self.check_rank(what, X, ("steps", "batch", "features"))
        shape = self.shape(X)
        if 0 in tuple(shape):
            need = "at least one step, example and feature"
            raise ValueError(fault(what, f"shape {tuple(shape)}", need))
        self.check_floating(what, X)
        self._check_weights(what, X, dtype)
        if size is not None:
            self.check_last_dimension(what, X, size)

    def check_state(self, what: str, H: Any, *shape: int) -> None:
        """A recurrent layer's state, of this ``shape``."""
        self.check_instance(what, H)
        self.check_floating(what, H)
        if tuple(self.shape(H)) != shape:
            raise ValueError(fault(what, f"shape {tuple(self.shape(H))}", f"shape {shape}"))

    def check_shape(self, x: Any, shape: tuple[int, ...]) -> None:
        """``x`` has exactly this ``shape``."""
        self.check_instance("x", x)
        check_instance("shape", shape, Iterable, "a tuple of sizes")
        needed = tuple(integer("shape", size, 0) for size in shape)
        if tuple(x.shape) != needed:
            raise ValueError(fault("shape", tuple(x.shape), needed))


def _rank(what: str, shape: Sequence[Any], axes: tuple[str, ...]) -> None:
    if len(shape) != len(axes):
        need = f"{len(axes)} dimensions ({', '.join(axes)})"
        raise ValueError(fault(what, f"shape {tuple(shape)}", need))


def _last(what: str, shape: Sequence[Any], each: str) -> None:
    if not len(shape) or shape[-1] == 0:
        need = f"at least one {each}, in the last dimension"
        raise ValueError(fault(what, f"shape {tuple(shape)}", need))
