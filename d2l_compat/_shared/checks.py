"""Checks of arguments, with the same messages in every framework.

All messages are made by :func:`message`. No framework is imported here: the ``_arrays.py`` of a
framework's package reads shapes, dtypes and values of its arrays, and the checks are written once.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence, Sized
from numbers import Number, Real
from typing import Any

import numpy as np

MAX_SIZE = 2**31 - 1  # the largest size that every framework supports
NOT_CALLED = "attention_weights: there are none yet; call the layer first"


def message(what: str, got: object, need: object) -> str:
    """Return the message ``what: got this; need that``."""
    return f"{what}: got {got}; need {need}"


def check_instance(what: str, value: object, kind: type | tuple[type, ...], need: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(message(what, type(value).__name__, need))


def check_methods(what: str, value: object, kind: str, *methods: str) -> None:
    """Check that an object, of whatever class, has the methods of a ``kind`` that will be called."""
    if not all(callable(getattr(value, method, None)) for method in methods):
        need = f"{kind}, or another object with {' and '.join(methods)}"
        raise TypeError(message(what, type(value).__name__, need))


def check_callable(what: str, value: object) -> None:
    if not callable(value):
        raise TypeError(message(what, format_value(value), "a layer or a function"))


def format_value(value: object) -> str:
    """Return the ``repr`` of a number, a string or None, and the type of anything else."""
    is_short = value is None or isinstance(value, (Number, str))
    return repr(value) if is_short else type(value).__name__


def integer(
    what: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return ``value`` as an int; raise TypeError or ValueError unless it is from ``minimum`` to ``maximum``."""
    need = "an integer" if minimum is None else f"an integer of at least {minimum}"
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        raise TypeError(message(what, format_value(value), need))
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError, AssertionError):  # depends on the framework
        raise TypeError(message(what, format_value(value), need)) from None
    if minimum is not None and number < minimum:
        raise ValueError(message(what, number, need))
    if maximum is not None and number > maximum:
        raise ValueError(message(what, number, f"an integer of at most {maximum}"))
    return number


def size(what: str, value: object) -> int:
    """Return ``value`` as an int from 1 to ``MAX_SIZE``."""
    return integer(what, value, 1, MAX_SIZE)


def optional_size(what: str, value: int | None) -> int | None:
    """Return a size, or None if the first input is to determine it."""
    return None if value is None else size(what, value)


def real(what: str, value: object, need: str) -> Any:
    """Return ``value``; raise TypeError with ``need`` unless it is a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(message(what, format_value(value), need))
    return value


def integers(what: str, values: object, minimum: int | None = None) -> int | list[int]:
    """Return an integer of at least ``minimum``, or a list of one or more."""
    if not isinstance(values, (list, tuple)):
        return integer(what, values, minimum)
    if not values:
        raise ValueError(message(what, "an empty list", "at least one integer"))
    return [integer(what, value, minimum) for value in values]


def check_len(a: Any, n: int) -> None:
    """Raise ValueError unless ``a`` has exactly ``n`` elements, TypeError if it has no length."""
    n = integer("n", n, 0)
    check_instance("a", a, Sized, "a list")
    if len(a) != n:
        raise ValueError(message("a", f"{len(a)} elements", n))


def check_flag(what: str, value: object) -> None:
    check_instance(what, value, bool, "True or False")


def check_steps(what: str, shape: Sequence[Any], num_steps: int) -> None:
    if num_steps == 0:
        raise ValueError(message(what, f"shape {tuple(shape)}", "at least one step"))


def check_dropout(value: float) -> None:
    need = "a probability, from 0 to 1"
    if not 0 <= real("dropout", value, need) <= 1:
        raise ValueError(message("dropout", value, need))


def check_representable(what: str, value: object, dtype: str) -> None:
    """Check that ``value`` is a number that ``dtype`` can represent."""
    need = f"a number that {dtype} can represent"
    if dtype == "bool" and isinstance(value, bool):
        return
    number = real(what, value, need)
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        fits = number % 1 == 0 and limits.min <= number <= limits.max
    elif dtype == "bool":
        fits = number in (0, 1)
    else:  # NumPy has no bfloat16, which has the range of float32
        largest = np.finfo(dtype if dtype in ("float16", "float64") else "float32").max
        fits = not math.isfinite(number) or abs(number) <= largest
    if not fits:
        raise ValueError(message(what, number, need))


def gpu_index(i: int) -> int:
    """Return a GPU's number, from 0 to 127: PyTorch has 7 bits for it."""
    return integer("gpu", i, 0, 127)


def check_heads(num_hiddens: int, num_heads: int) -> None:
    if num_hiddens % num_heads:
        raise ValueError(
            message(
                "num_hiddens",
                f"{num_hiddens} with num_heads {num_heads}",
                "a multiple of num_heads, so that every head gets an equal share",
            )
        )


def encoding_sizes(num_hiddens: int, dropout_rate: float, max_len: int) -> tuple[int, int]:
    """Return ``num_hiddens`` and ``max_len`` as ints of at least 1."""
    check_dropout(dropout_rate)
    return size("num_hiddens", num_hiddens), size("max_len", max_len)


LAYOUTS = "interleaved", "halves"


def rotary_sizes(
    num_hiddens: int, max_len: int, base: float, layout: str, position_scale: float
) -> tuple[int, int]:
    """Return ``num_hiddens`` and ``max_len`` as ints of at least 1."""
    num_hiddens, max_len = size("num_hiddens", num_hiddens), size("max_len", max_len)
    if num_hiddens % 2:
        raise ValueError(
            message("num_hiddens", num_hiddens, "an even number, since pairs are rotated")
        )
    for what, value, least in ("base", base, 1), ("position_scale", position_scale, 0):
        need = f"a finite number above {least}"
        if not least < real(what, value, need) <= np.finfo(float).max:
            raise ValueError(message(what, value, need))
    if layout not in LAYOUTS:
        raise ValueError(message("layout", format_value(layout), " or ".join(map(repr, LAYOUTS))))
    return num_hiddens, max_len


def check_positions(offset: int, num_steps: int, max_len: int) -> None:
    """Check that ``num_steps`` positions from ``offset`` on are below ``max_len``."""
    integer("offset", offset, 0)
    if offset + num_steps > max_len:
        got = f"{num_steps} positions from offset {offset}"
        need = f"at most {max_len} in all; make the layer with a larger max_len"
        raise ValueError(message("positions", got, need))


class Unknown:
    """A size that is unknown while a graph is traced; it equals every size but 0."""

    def __init__(self, text: str) -> None:
        self.text = text  # the framework's notation for it

    def __eq__(self, other: object) -> bool:
        return other != 0

    __hash__ = object.__hash__

    def __mod__(self, other: object) -> int:
        return 0  # it counts as a multiple of everything

    def __repr__(self) -> str:
        return self.text


class Arrays(ABC):
    """The arrays of a framework: methods that read them, which a package defines, and checks."""

    types: tuple[type, ...]  # the classes of arrays
    # The classes of linear and normalization layers whose weights show what input they require. Layers of other
    # classes, even of subclasses, are a user's, and are not checked.
    layer_types: tuple[type, ...]

    @abstractmethod
    def dtype(self, x: Any) -> str:
        """Return the dtype's name, as in NumPy: ``float32``."""

    @abstractmethod
    def value_range(self, x: Any) -> tuple[float, float] | None:
        """Return the smallest and the largest number; None if there are no numbers, or they are not computed yet."""

    @abstractmethod
    def expected_input(self, projection: Any, inputs: Any) -> tuple[int | None, str | None]:
        """Return the last dimension and the dtype that a linear layer requires of ``inputs``; None allows any.

        ``projection`` may also be a normalization layer, in frameworks whose layers and inputs must have one dtype.
        """

    def shape(self, x: Any) -> Sequence[Any]:
        """Return the sizes, :class:`Unknown` for one that is unknown while a graph is traced."""
        return x.shape

    def as_readable(self, x: Any) -> Any:
        """Return ``x`` in a form whose dtype and values can be read repeatedly."""
        return x

    def cast(self, x: Any, dtype: str) -> Any:
        """Convert ``x`` to the dtype of this name."""
        return x.astype(dtype)

    def cast_integers(self, *arrays: Any) -> list[Any]:
        """Convert arrays of integers to the floating-point dtype of the others, or to float32."""
        dtypes = [self.dtype(x) for x in arrays]
        target = next((dtype for dtype in dtypes if "float" in dtype), "float32")
        return [
            self.cast(x, target) if dtype.startswith(("int", "uint")) else x
            for x, dtype in zip(arrays, dtypes, strict=True)
        ]

    def check_instance(self, what: str, x: Any, need: str = "a tensor") -> None:
        check_instance(what, x, self.types, need)

    def check_rank(self, what: str, x: Any, axes: tuple[str, ...]) -> None:
        """Check that ``x`` is an array with one dimension for each name in ``axes``."""
        self.check_instance(what, x)
        _check_axes(what, self.shape(x), axes)

    def check_last_dimension(self, what: str, x: Any, size: int) -> None:
        shape = self.shape(x)
        if shape[-1] != size:
            raise ValueError(message(what, f"shape {tuple(shape)}", f"a last dimension of {size}"))

    def check_floating(self, what: str, *arrays: Any) -> None:
        """Check that all arrays have the same floating-point dtype."""
        dtypes = [self.dtype(x) for x in arrays]
        if dtypes != dtypes[:1] * len(dtypes) or not dtypes[0].startswith(("float", "bfloat")):
            got = f"dtype {', '.join(dict.fromkeys(dtypes))}"
            raise TypeError(message(what, got, "one floating-point dtype"))

    def check_integer(self, what: str, x: Any) -> None:
        dtype = self.dtype(x)
        if not dtype.startswith(("int", "uint")):
            raise TypeError(message(what, f"dtype {dtype}", "an integer dtype"))

    def check_whole(self, what: str, kind: str, x: Any, read_values: bool = True) -> None:
        """Check whole numbers; their dtype may be floating, as on D2L's pages."""
        dtype = self.dtype(x)
        if "float" not in dtype:
            self.check_integer(what, x)
        elif read_values and self.value_range(x % 1) not in (None, (0, 0)):
            got, need = f"dtype {dtype} with fractions", f"whole numbers, of {kind}s"
            raise ValueError(message(what, got, need))

    def check_attention(self, queries: Any, keys: Any, values: Any) -> None:
        """Check shapes (batch, queries, features), (batch, keys, features), (batch, keys, features)."""
        self.check_instance("queries", queries)
        self.check_instance("keys", keys)
        self.check_instance("values", values)
        Q, K, V = self.shape(queries), self.shape(keys), self.shape(values)
        _check_axes("queries", Q, ("batch", "queries", "features"))
        _check_axes("keys", K, ("batch", "keys", "features"))
        _check_axes("values", V, ("batch", "keys", "features"))
        if not Q[0] == K[0] == V[0]:
            what = "batch sizes of queries, keys and values"
            raise ValueError(message(what, f"{Q[0]}, {K[0]} and {V[0]}", "equal batch sizes"))
        if Q[2] == 0:
            raise ValueError(message("queries", f"shape {tuple(Q)}", "at least one feature"))
        if K[1] != V[1]:
            got = f"{K[1]} keys and {V[1]} values"
            raise ValueError(message("keys and values", got, "one value for each key"))
        self.check_floating("queries, keys and values", queries, keys, values)

    def check_dot_product(self, queries: Any, keys: Any, values: Any) -> None:
        """Check as in ``check_attention``, and that queries and keys have the same number of features."""
        self.check_attention(queries, keys, values)
        self.check_last_dimension("keys", keys, self.shape(queries)[-1])

    def check_projection(
        self, what: str, inputs: Any, projection: Any, size: int | None = None
    ) -> bool:
        """Check that inputs fit a layer's weights; return False if the weights' size is still unknown.

        ``size`` is the input size given to the layer, for a projection that does not store its own.
        """
        if type(projection) not in self.layer_types:
            return False
        expected_size, dtype = self.expected_input(projection, inputs)
        size = size or expected_size
        if size is not None:
            self.check_last_dimension(what, inputs, size)
        self._check_weights(what, inputs, dtype)
        return size is not None

    def _check_weights(self, what: str, inputs: Any, dtype: str | None) -> None:
        if dtype is not None and dtype != self.dtype(inputs):
            need = f"{dtype}, as the layer's weights are; convert one of the two"
            raise TypeError(message(what, f"dtype {self.dtype(inputs)}", need))

    def check_valid_lens(
        self, valid_lens: Any, queries: Any, keys: Any, in_range: bool = True
    ) -> Any:
        """Check a length for each example, or for each query; return them ``as_readable``.

        They may exceed the number of keys: then all keys are valid, as after a text was cut off. ``in_range`` also
        checks their values, which on a GPU means waiting for them.
        """
        if valid_lens is None:
            return None
        batch, num_queries = self.shape(queries)[:2]
        return self._check_lens(valid_lens, batch, num_queries, in_range)

    def check_texts(self, X: Any, valid_lens: Any, projection: Any) -> Any:
        """Check ``X``, (batch, steps, features), and a length for each example; return lengths ``as_readable``."""
        self.check_rank("X", X, ("batch", "steps", "features"))
        self.check_features(X, projection)
        batch, num_steps = self.shape(X)[:2]
        check_steps("X", self.shape(X), num_steps)
        return self.check_text_lens(valid_lens, batch, num_steps)

    def check_text_lens(self, valid_lens: Any, batch: int, num_steps: int) -> Any:
        """Check a length for each of ``batch`` examples; return them ``as_readable``."""
        if valid_lens is None:
            return None
        self.check_instance("valid_lens", valid_lens, "an integer tensor")
        lens = self.as_readable(valid_lens)
        self.check_integer("valid_lens", lens)
        shape = tuple(self.shape(lens))
        if shape != (batch,):
            need = f"shape ({batch},), a length per example"
            raise ValueError(message("valid_lens", f"shape {shape}", need))
        if not isinstance(num_steps, Unknown):
            self._check_range("valid_lens", "length", lens, num_steps, "the number of steps")
        return lens

    def check_causal(
        self, causal: Any, queries: Any, keys: Any, window: int | None = None
    ) -> int | None:
        """Check that ``causal`` is a bool, and the window a size; return it.

        With either, there must be at least as many keys as queries: the last query sees the last key, and each query
        before it one key fewer.
        """
        check_flag("causal", causal)
        window = optional_size("window", window)
        num_queries, num_keys = self.shape(queries)[1], self.shape(keys)[1]
        are_known = not any(isinstance(size, Unknown) for size in (num_queries, num_keys))
        if (causal or window) and are_known and num_queries > num_keys:
            got = f"{num_queries} queries and {num_keys} keys"
            raise ValueError(message("causal attention", got, "at least one key for each query"))
        return window

    def check_score_bias(
        self, score_bias: Any, queries: Any, keys: Any, heads: int | None = None
    ) -> None:
        """Check that there is a bias for each score, either shared by all ``heads`` or separate for each head."""
        if score_bias is None:
            return
        self.check_instance("score_bias", score_bias)
        batch, num_queries = self.shape(queries)[:2]
        num_keys = self.shape(keys)[1]
        scores = num_queries, num_keys
        allowed: dict[str, tuple[Any, ...]] = {"queries, keys": scores}
        if heads is None:
            allowed["batch, queries, keys"] = batch, *scores
        else:
            allowed["heads, queries, keys"] = heads, *scores
            allowed["batch, heads, queries, keys"] = batch, heads, *scores
        shape = tuple(self.shape(score_bias))
        if shape not in allowed.values():
            need = " or ".join(f"({axes}), here {sizes}" for axes, sizes in allowed.items())
            raise ValueError(message("score_bias", f"shape {shape}", f"shape {need}"))
        self.check_floating("queries and score_bias", queries, score_bias)

    def check_scores(self, X: Any, valid_lens: Any) -> Any:
        """Check the arguments of ``masked_softmax``; return ``valid_lens`` ``as_readable``."""
        self.check_rank("X", X, ("batch", "queries", "keys"))
        self.check_floating("X", X)
        return None if valid_lens is None else self._check_lens(valid_lens, *self.shape(X)[:2])

    def _check_lens(
        self, valid_lens: Any, batch: int, num_queries: int, in_range: bool = True
    ) -> Any:
        self.check_instance("valid_lens", valid_lens, "an integer tensor")
        lens = self.as_readable(valid_lens)
        self.check_whole("valid_lens", "length", lens, in_range)
        shape = tuple(self.shape(lens))
        if shape not in ((batch,), (batch, num_queries)):
            need = f"({batch},), a length per example, or ({batch}, {num_queries}), one per query"
            raise ValueError(message("valid_lens", f"shape {shape}", f"shape {need}"))
        limits = self.value_range(lens) if in_range else None
        if limits is not None and limits[0] < 0:
            raise ValueError(
                message("valid_lens", f"a length of {limits[0]}", "lengths of at least 0")
            )
        return lens

    def check_tokens(self, X: Any, vocab_size: int, what: str = "X") -> None:
        """Check token indices, each below ``vocab_size``."""
        scope = f"of a vocabulary of {vocab_size}"
        self._check_indices(what, "token", X, ("batch", "steps"), vocab_size - 1, scope)

    def check_sentence_pair(
        self, tokens: Any, segments: Any, vocab_size: int, max_len: int
    ) -> None:
        """Check token indices, at most ``max_len`` per example, and segments of the same shape: 0 or 1."""
        self.check_tokens(tokens, vocab_size, "tokens")
        self.check_positions(0, tokens, max_len)
        scope = "of two sentences"
        self._check_indices("segments", "segment", segments, ("batch", "steps"), 1, scope)
        expected, shape = tuple(self.shape(tokens)), tuple(self.shape(segments))
        if shape != expected:
            need = f"shape {expected}, a segment for each token"
            raise ValueError(message("segments", f"shape {shape}", need))

    def check_pred_positions(self, X: Any, pred_positions: Any) -> None:
        """Check positions (batch, predictions) in the examples of ``X`` (batch, steps, features)."""
        self.check_rank("X", X, ("batch", "steps", "features"))
        batch, steps, _ = self.shape(X)
        axes = ("batch", "predictions")
        last = 0 if isinstance(steps, Unknown) else steps - 1  # then the values are unknown as well
        scope = "of those in X"
        self._check_indices("pred_positions", "position", pred_positions, axes, last, scope)
        if self.shape(pred_positions)[0] != batch:
            got = f"shape {tuple(self.shape(pred_positions))}"
            raise ValueError(message("pred_positions", got, f"a row for each of {batch} examples"))

    def _check_indices(
        self, what: str, kind: str, X: Any, axes: tuple[str, ...], largest: int, scope: str
    ) -> None:
        """Check whole numbers from 0 to ``largest``; their dtype may be floating, as on D2L's pages."""
        self.check_rank(what, X, axes)
        numbers = self.as_readable(X)
        self.check_whole(what, kind, numbers)
        self._check_range(what, kind, numbers, largest, scope)

    def _check_range(self, what: str, kind: str, x: Any, largest: int, scope: str) -> None:
        """Check that no value is below 0 or above ``largest``, if values are known."""
        limits = self.value_range(x)
        if limits is not None and (limits[0] < 0 or limits[1] > largest):
            got = f"a {kind} of {limits[0] if limits[0] < 0 else limits[1]}"
            raise ValueError(message(what, got, f"{kind}s from 0 to {largest}, {scope}"))

    def check_features(self, X: Any, projection: Any, size: int | None = None) -> None:
        """Check the input of a linear layer, of any rank; see ``check_projection``."""
        self.check_instance("X", X)
        _check_last("X", self.shape(X), "feature")
        self.check_floating("X", X)
        self.check_projection("X", X, projection, size)

    def check_labels(self, Y_hat: Any, Y: Any) -> None:
        """Check logits (..., classes), and a label for each row."""
        self.check_instance("Y_hat", Y_hat)
        self.check_instance("Y", Y, "an integer tensor")
        logits_shape, shape = tuple(self.shape(Y_hat)), tuple(self.shape(Y))
        _check_last("Y_hat", logits_shape, "class")
        self.check_floating("Y_hat", Y_hat)
        labels = self.as_readable(Y)
        self.check_whole("Y", "label", labels)
        rows, classes = logits_shape[:-1], logits_shape[-1]
        is_known = not any(isinstance(size, Unknown) for size in logits_shape + shape)
        if is_known and math.prod(rows) != math.prod(shape):
            need = f"as many labels as there are rows in Y_hat, of shape {logits_shape}"
            raise ValueError(message("Y", f"shape {shape}", need))
        if 0 in shape:
            raise ValueError(message("Y", f"shape {shape}", "at least one label"))
        if not isinstance(classes, Unknown):
            self._check_range("Y", "label", labels, classes - 1, f"of {classes} classes")

    def check_sentence_loss(self, pred: Any, label: Any) -> None:
        """Check logits ``pred`` (batch, steps, vocab_size), and ``label`` (batch, steps)."""
        self.check_rank("pred", pred, ("batch", "steps", "vocab_size"))
        self.check_rank("label", label, ("batch", "steps"))
        shape, label_shape = tuple(self.shape(pred))[:2], tuple(self.shape(label))
        if shape != label_shape:
            raise ValueError(message("label", f"shape {label_shape}", f"shape {shape}"))
        self.check_floating("pred", pred)

    def check_encoding(self, X: Any, num_hiddens: int) -> None:
        """Check the input of a positional encoding."""
        self.check_rank("X", X, ("batch", "steps", "features"))
        self.check_last_dimension("X", X, num_hiddens)
        self.check_floating("X", X)

    def check_positions(self, offset: int, X: Any, max_len: int) -> None:
        """Check that the positions of ``X`` from ``offset`` on are below ``max_len``."""
        num_steps = self.shape(X)[1]
        check_positions(offset, 0 if isinstance(num_steps, Unknown) else num_steps, max_len)

    def check_residual(
        self, X: Any, Y: Any, sizes: Sequence[int] = (), norm: Any | None = None
    ) -> None:
        """Check two arrays of the same shape, whose last dimensions have the ``sizes`` that ``norm`` requires."""
        self.check_instance("X", X)
        self.check_instance("Y", Y)
        shape, other = tuple(self.shape(X)), tuple(self.shape(Y))
        if shape != other:
            raise ValueError(message("X and Y", f"shapes {shape} and {other}", "equal shapes"))
        _check_last("X", shape, "feature")
        if sizes and shape[-len(sizes) :] != tuple(sizes):
            need = f"last dimensions of {tuple(sizes)}"
            raise ValueError(message("X", f"shape {shape}", need))
        for what, x in (("X", X), ("Y", Y)):
            self.check_floating(what, x)
            if type(norm) in self.layer_types:
                self._check_weights(what, x, self.expected_input(norm, x)[1])

    def check_head_split(self, X: Any, num_heads: int) -> int:
        """Check features to be split into heads; return ``num_heads`` as an int."""
        self.check_rank("X", X, ("batch", "steps", "num_hiddens"))
        self._check_numbers("X", X)
        num_heads = integer("num_heads", num_heads, 1)
        check_heads(self.shape(X)[2], num_heads)
        return num_heads

    def _check_numbers(self, what: str, x: Any) -> None:
        if self.dtype(x) == "bool":
            raise TypeError(message(what, "dtype bool", "a dtype of numbers"))

    def check_head_merge(self, X: Any, num_heads: int) -> int:
        """Check separate heads (batch * heads, steps, num_hiddens / heads); return ``num_heads`` as an int."""
        self.check_rank("X", X, ("batch * heads", "steps", "num_hiddens / heads"))
        self._check_numbers("X", X)
        num_heads = integer("num_heads", num_heads, 1)
        shape = self.shape(X)
        if shape[0] % num_heads:
            got = f"shape {tuple(shape)} with num_heads {num_heads}"
            raise ValueError(message("X", got, "a batch that is a multiple of num_heads"))
        return num_heads

    def check_sequence_mask(self, X: Any, valid_len: Any, value: Any) -> Any:
        """Check a length for each example of ``X`` (batch, steps, ...); return them ``as_readable``.

        ``value`` is a number that the dtype of ``X`` can represent.
        """
        self.check_instance("X", X)
        self.check_instance("valid_len", valid_len, "an integer tensor")
        lens = self.as_readable(valid_len)
        shape, lens_shape = tuple(self.shape(X)), tuple(self.shape(lens))
        if len(shape) < 2:
            need = "at least 2 dimensions (batch, steps)"
            raise ValueError(message("X", f"shape {shape}", need))
        self.check_whole("valid_len", "length", lens)
        if lens_shape != shape[:1]:
            need = f"shape ({shape[0]},), a length per example"
            raise ValueError(message("valid_len", f"shape {lens_shape}", need))
        check_representable("value", value, self.dtype(X))
        return lens

    def check_sequence(self, what: str, X: Any, size: int | None, dtype: str | None = None) -> None:
        """Check the input of a recurrent layer, with ``size`` features in each step (None allows any number)."""
        self.check_rank(what, X, ("steps", "batch", "features"))
        shape = self.shape(X)
        if 0 in tuple(shape):
            need = "at least one step, example and feature"
            raise ValueError(message(what, f"shape {tuple(shape)}", need))
        self.check_floating(what, X)
        self._check_weights(what, X, dtype)
        if size is not None:
            self.check_last_dimension(what, X, size)

    def check_state(self, what: str, H: Any, *shape: int) -> None:
        """Check that a recurrent layer's state has this ``shape``."""
        self.check_instance(what, H)
        self.check_floating(what, H)
        if tuple(self.shape(H)) != shape:
            raise ValueError(message(what, f"shape {tuple(self.shape(H))}", f"shape {shape}"))

    def check_shape(self, x: Any, shape: tuple[int, ...]) -> None:
        """Check that ``x`` has exactly this ``shape``."""
        self.check_instance("x", x)
        check_instance("shape", shape, Iterable, "a tuple of sizes")
        expected = tuple(integer("shape", size, 0) for size in shape)
        if tuple(x.shape) != expected:
            raise ValueError(message("shape", tuple(x.shape), expected))


def _check_axes(what: str, shape: Sequence[Any], axes: tuple[str, ...]) -> None:
    if len(shape) != len(axes):
        need = f"{len(axes)} dimensions ({', '.join(axes)})"
        raise ValueError(message(what, f"shape {tuple(shape)}", need))


def _check_last(what: str, shape: Sequence[Any], kind: str) -> None:
    if not len(shape) or shape[-1] == 0:
        need = f"at least one {kind}, in the last dimension"
        raise ValueError(message(what, f"shape {tuple(shape)}", need))
