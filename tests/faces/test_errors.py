"""Bad calls: each is refused with what was given and what is needed, in every face's same words."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

X = np.zeros((2, 3, 8), "float32")
BOTH_SIGNATURES = "or (key_size, query_size, value_size, num_hiddens, num_heads, dropout, "


def attend(
    face: ModuleType,
    queries: Any = X,
    keys: Any = X,
    values: Any = X,
    valid_lens: Any = None,
    **masks: Any,
) -> np.ndarray:
    return face.dot_product(0.0)(queries, keys, values, valid_lens, **masks)


def heads(
    face: ModuleType,
    queries: Any = X,
    keys: Any = X,
    values: Any = X,
    valid_lens: Any = None,
    **masks: Any,
) -> np.ndarray:
    layer = face.multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    return layer(queries, keys, values, valid_lens, **masks)


def encode(face: ModuleType, inputs: Any = X, offset: Any = 0) -> np.ndarray:
    return face.encoding(8, 0.0, max_len=10, dtype="float32")(inputs, offset=offset)


def used_heads(face: ModuleType) -> Any:
    """A layer of the short signature, after the call that told it its sizes."""
    layer = face.multi_head(8, 2, 0.0, dtype="float32")
    layer(X, X, X)
    return layer


# The call, the error, what was given, what is needed.
LAYERS = [
    pytest.param(
        lambda face: face.multi_head(100, 3, 0.5),
        ValueError,
        "num_hiddens: got 100 with num_heads 3",
        "a multiple of num_heads",
        id="num_hiddens not divisible by heads",
    ),
    pytest.param(
        lambda face: face.multi_head(100, 0, 0.5),
        ValueError,
        "num_heads: got 0",
        "at least 1",
        id="no heads",
    ),
    pytest.param(
        lambda face: face.multi_head(8.0, 2, 0.5),
        TypeError,
        "num_hiddens: got 8.0",
        "an integer",
        id="num_hiddens not an integer",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 0, 8, 8, 2, 0.5),
        ValueError,
        "query_size: got 0",
        "at least 1",
        id="a size of 0",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2),
        TypeError,
        "missing a required argument: 'dropout'",
        BOTH_SIGNATURES,
        id="too few arguments",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 8, 8, 8, 2),
        TypeError,
        "missing a required argument: 'dropout'",
        BOTH_SIGNATURES,
        id="between the two signatures",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 8, 8, 8, 2, 0.5, False, 1),
        TypeError,
        "too many positional arguments",
        BOTH_SIGNATURES,
        id="too many arguments",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2, 0.5, num_heads=2),
        TypeError,
        "multiple values for argument 'num_heads'",
        BOTH_SIGNATURES,
        id="an argument given twice",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2, 0.5, with_bias=True),
        TypeError,
        "unexpected keyword argument 'with_bias'",
        BOTH_SIGNATURES,
        id="an unknown keyword",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2, 1.5),
        ValueError,
        "dropout: got 1.5",
        "from 0 to 1",
        id="multi-head dropout above 1",
    ),
    pytest.param(
        lambda face: face.dot_product(-0.1),
        ValueError,
        "dropout: got -0.1",
        "from 0 to 1",
        id="attention dropout below 0",
    ),
    pytest.param(
        lambda face: face.encoding(8, float("nan")),
        ValueError,
        "dropout: got nan",
        "from 0 to 1",
        id="encoding dropout NaN",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2, True),
        TypeError,
        "dropout: got True",
        "a probability",
        id="bias in the place of dropout",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2, 0.1, 0.5),
        TypeError,
        "bias: got float",
        "True or False",
        id="dropout in the place of bias",
    ),
    pytest.param(
        lambda face: face.encoding(0, 0.0),
        ValueError,
        "num_hiddens: got 0",
        "at least 1",
        id="encoding of width 0",
    ),
    pytest.param(
        lambda face: face.encoding(8, 0.0, max_len=0),
        ValueError,
        "max_len: got 0",
        "at least 1",
        id="encoding of length 0",
    ),
    pytest.param(
        lambda face: face.dot_product(0.0).attention_weights,
        RuntimeError,
        "attention_weights: there are none yet",
        "call the layer first",
        id="weights before a call",
    ),
    pytest.param(
        lambda face: face.multi_head(8, 2, 0.0).attention_weights,
        RuntimeError,
        "attention_weights: there are none yet",
        "call the layer first",
        id="multi-head weights before a call",
    ),
]

INPUTS = [
    pytest.param(
        lambda face: face.masked_softmax(X[0]),
        ValueError,
        "X: got shape (3, 8)",
        "3 dimensions (batch, queries, keys)",
        id="scores without a batch",
    ),
    pytest.param(
        lambda face: attend(face, queries=X[0]),
        ValueError,
        "queries: got shape (3, 8)",
        "3 dimensions (batch, queries, features)",
        id="queries without a batch",
    ),
    pytest.param(
        lambda face: attend(face, queries=X[..., :7]),
        ValueError,
        "keys: got shape (2, 3, 8)",
        "a last dimension of 7",
        id="keys of another size than queries",
    ),
    pytest.param(
        lambda face: attend(face, keys=X[:1]),
        ValueError,
        "batch sizes of queries, keys and values: got 2, 1 and 2",
        "three equal ones",
        id="unequal batches",
    ),
    pytest.param(
        lambda face: attend(face, values=X[:, :2]),
        ValueError,
        "got 3 keys and 2 values",
        "one value for each key",
        id="fewer values than keys",
    ),
    pytest.param(
        lambda face: heads(face, queries=X[..., :7]),
        ValueError,
        "queries: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="multi-head: wrong last dimension of queries",
    ),
    pytest.param(
        lambda face: heads(face, keys=X[..., :7]),
        ValueError,
        "keys: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="multi-head: wrong last dimension of keys",
    ),
    pytest.param(
        lambda face: used_heads(face)(X, X, X[..., :7]),
        ValueError,
        "values: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="multi-head: another last dimension than at first",
    ),
    pytest.param(
        lambda face: encode(face, X[0]),
        ValueError,
        "X: got shape (3, 8)",
        "3 dimensions (batch, steps, features)",
        id="encoding without a batch",
    ),
    pytest.param(
        lambda face: encode(face, X[..., :7]),
        ValueError,
        "X: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="encoding of another width",
    ),
    pytest.param(
        lambda face: encode(face, X.astype("int64")),
        TypeError,
        "X: got dtype int64",
        "one floating-point dtype",
        id="encoding of integers",
    ),
    pytest.param(
        lambda face: face.masked_softmax([[[1.0]]]),
        TypeError,
        "X: got list",
        "a tensor",
        id="softmax of a list",
    ),
    pytest.param(
        lambda face: face.masked_softmax(X.astype("int64")),
        TypeError,
        "X: got dtype int64",
        "one floating-point dtype",
        id="softmax of integers",
    ),
    pytest.param(
        lambda face: attend(face, X.astype("int64"), X.astype("int64"), X.astype("int64")),
        TypeError,
        "queries, keys and values: got dtype int64",
        "one floating-point dtype",
        id="attention of integers",
    ),
    pytest.param(
        lambda face: heads(face, X, X.astype("float64"), X),
        TypeError,
        "queries, keys and values: got dtype float32, float64",
        "one floating-point dtype",
        id="two dtypes",
    ),
    pytest.param(
        lambda face: attend(face, X[..., :0], X[..., :0], X),
        ValueError,
        "queries: got shape (2, 3, 0)",
        "at least one feature",
        id="no features",
    ),
    pytest.param(
        lambda face: face.dot_product("0.5"),
        TypeError,
        "dropout: got '0.5'",
        "a probability",
        id="dropout not a number",
    ),
    pytest.param(
        lambda face: encode(face, offset=-1),
        ValueError,
        "offset: got -1",
        "at least 0",
        id="offset negative",
    ),
    pytest.param(
        lambda face: encode(face, offset=8),
        ValueError,
        "got 3 positions from offset 8",
        "at most 10 in all; make the layer with a larger max_len",
        id="offset past max_len",
    ),
    pytest.param(
        lambda face: encode(face, np.zeros((1, 11, 8), "float32")),
        ValueError,
        "got 11 positions from offset 0",
        "at most 10 in all",
        id="input longer than max_len",
    ),
    pytest.param(
        lambda face: encode(face, offset=1.0),
        TypeError,
        "offset: got 1.0",
        "an integer",
        id="offset a float",
    ),
    pytest.param(
        lambda face: encode(face, offset=True),
        TypeError,
        "offset: got True",
        "an integer",
        id="offset a bool",
    ),
    pytest.param(
        lambda face: attend(face, keys=X[:, :2], values=X[:, :2], causal=True),
        ValueError,
        "causal attention: got 3 queries and 2 keys",
        "at least one key for each query",
        id="causal, with more queries than keys",
    ),
    pytest.param(
        lambda face: heads(face, keys=X[:, :2], values=X[:, :2], causal=True),
        ValueError,
        "causal attention: got 3 queries and 2 keys",
        "at least one key for each query",
        id="causal heads, with more queries than keys",
    ),
    pytest.param(
        lambda face: attend(face, causal=1),
        TypeError,
        "causal: got int",
        "True or False",
        id="causal a number",
    ),
    pytest.param(
        lambda face: heads(face, causal=1),
        TypeError,
        "causal: got int",
        "True or False",
        id="causal heads with a number",
    ),
    pytest.param(
        lambda face: attend(face, score_bias=np.zeros((3, 2), "float32")),
        ValueError,
        "score_bias: got shape (3, 2)",
        "shape (queries, keys), here (3, 3) or (batch, queries, keys), here (2, 3, 3)",
        id="bias of another shape",
    ),
    pytest.param(
        lambda face: heads(face, score_bias=np.zeros((3, 3, 3), "float32")),
        ValueError,
        "score_bias: got shape (3, 3, 3)",
        "(heads, queries, keys), here (2, 3, 3) or (batch, heads, queries, keys), here (2, 2, 3, 3)",
        id="bias of too many heads",
    ),
    pytest.param(
        lambda face: attend(face, score_bias=np.zeros((3, 3), "float64")),
        TypeError,
        "queries and score_bias: got dtype float32, float64",
        "one floating-point dtype",
        id="bias of another dtype",
    ),
    pytest.param(
        lambda face: attend(face, score_bias=[[0.0]]),
        TypeError,
        "score_bias: got list",
        "a tensor",
        id="bias a list",
    ),
    pytest.param(
        lambda face: face.rotary(7),
        ValueError,
        "num_hiddens: got 7",
        "an even number, since pairs are turned",
        id="odd width to be turned",
    ),
    pytest.param(
        lambda face: face.rotary(8, layout="neox"),
        ValueError,
        "layout: got 'neox'",
        "'interleaved' or 'halves'",
        id="unknown layout",
    ),
    pytest.param(
        lambda face: face.rotary(8, base=1),
        ValueError,
        "base: got 1",
        "a finite number above 1",
        id="base too small",
    ),
    pytest.param(
        lambda face: face.rotary(8, position_scale=0),
        ValueError,
        "position_scale: got 0",
        "a finite number above 0",
        id="positions scaled to nothing",
    ),
    pytest.param(
        lambda face: face.rotary(8, 10, dtype="float32")(X, offset=8),
        ValueError,
        "got 3 positions from offset 8",
        "at most 10 in all; make the layer with a larger max_len",
        id="turned past max_len",
    ),
    pytest.param(
        lambda face: face.rotary(6, dtype="float32")(X),
        ValueError,
        "X: got shape (2, 3, 8)",
        "a last dimension of 6",
        id="turned in another width",
    ),
    pytest.param(
        lambda face: face.call("alibi_slopes", 0),
        ValueError,
        "num_heads: got 0",
        "at least 1",
        id="slopes of no heads",
    ),
]

DEVICES = [
    pytest.param(
        lambda face: face.d2l.gpu(-1), ValueError, "gpu: got -1", "at least 0", id="gpu negative"
    ),
    pytest.param(
        lambda face: face.d2l.try_gpu(-1),
        ValueError,
        "gpu: got -1",
        "at least 0",
        id="try_gpu negative",
    ),
    pytest.param(
        lambda face: face.d2l.gpu(300), ValueError, "gpu: got 300", "at most 127", id="gpu 300"
    ),
]

# Every function that takes valid_lens, here with 2 examples of 3 queries and 3 keys.
TAKE_LENGTHS = {
    "masked_softmax": lambda face, valid_lens: face.masked_softmax(X[..., :3], valid_lens),
    "DotProductAttention": lambda face, valid_lens: attend(face, valid_lens=valid_lens),
    "MultiHeadAttention": lambda face, valid_lens: heads(face, valid_lens=valid_lens),
}
EITHER_SHAPE = "shape (2,), a length per example, or (2, 3), one per query"
INTEGER = "an integer dtype"
RANGE = "from 0 to 3, the number of keys"
LENGTHS = {
    "a list": ([1, 2], TypeError, "got list", "an integer tensor"),
    "fractions": (np.float32([1.5, 2]), TypeError, "got dtype float32", INTEGER),
    "bools": (np.array([True, False]), TypeError, "got dtype bool", INTEGER),
    "a scalar": (np.array(1), ValueError, "got shape ()", EITHER_SHAPE),
    "another batch": (np.array([1, 2, 3]), ValueError, "got shape (3,)", EITHER_SHAPE),
    "fewer queries": (np.ones((2, 2), int), ValueError, "got shape (2, 2)", EITHER_SHAPE),
    "a mask": (np.ones((2, 3, 3), int), ValueError, "got shape (2, 3, 3)", EITHER_SHAPE),
    "negative": (np.array([0, -1]), ValueError, "got a length of -1", RANGE),
    "past the keys": (np.array([4, 1]), ValueError, "got a length of 4", RANGE),
}


@pytest.mark.parametrize(("call", "error", "got", "need"), LAYERS + INPUTS + DEVICES)
def test_bad_calls_say_what_was_given_and_what_is_needed(
    face: ModuleType,
    call: Callable[[ModuleType], Any],
    error: type[Exception],
    got: str,
    need: str,
) -> None:
    with pytest.raises(error) as caught:
        call(face)
    assert got in str(caught.value)
    assert need in str(caught.value)


@pytest.mark.parametrize("call", TAKE_LENGTHS.values(), ids=TAKE_LENGTHS)
@pytest.mark.parametrize(
    ("valid_lens", "error", "got", "need"), LENGTHS.values(), ids=LENGTHS.keys()
)
def test_bad_valid_lens_get_the_same_words_everywhere(
    face: ModuleType,
    call: Callable[[ModuleType, Any], Any],
    valid_lens: Any,
    error: type[Exception],
    got: str,
    need: str,
) -> None:
    with pytest.raises(error) as caught:
        call(face, valid_lens)
    message = str(caught.value)
    assert message.startswith("valid_lens: ")
    assert got in message
    assert need in message


def test_numpy_arrays_are_taken_or_refused_in_the_usual_words(face: ModuleType) -> None:
    scores, lengths = np.zeros((2, 3, 4), "float32"), np.array([1, 2])
    if face.ACCEPTS_NUMPY:
        weights = np.asarray(face.d2l.masked_softmax(scores, lengths))
        np.testing.assert_array_equal(weights, face.masked_softmax(scores, lengths))
        return
    with pytest.raises(TypeError, match="X: got ndarray; need a tensor"):
        face.d2l.masked_softmax(scores)
    with pytest.raises(TypeError, match="valid_lens: got ndarray; need an integer tensor"):
        face.d2l.masked_softmax(face.tensor(scores), lengths)


def test_a_refused_call_leaves_the_weights_of_the_last_good_one(face: ModuleType) -> None:
    layer = face.dot_product()
    layer(X, X, X)
    before = layer.attention_weights
    with pytest.raises(ValueError, match="valid_lens"):
        layer(X, X, X, np.array([4, 4]))
    np.testing.assert_array_equal(layer.attention_weights, before)


@pytest.mark.parametrize("offset", [2, np.int64(2)], ids=lambda x: type(x).__name__)
def test_any_integer_is_an_offset(face: ModuleType, offset: Any) -> None:
    np.testing.assert_array_equal(encode(face, offset=offset), encode(face, offset=2))


def test_sizes_may_be_numpys_integers(face: ModuleType) -> None:
    layer = face.multi_head(np.int64(8), np.int32(2), 0.0, dtype="float32")
    assert layer(X, X, X).shape == (2, 3, 8)


def test_input_of_another_dtype_than_the_weights_is_refused_or_cast(face: ModuleType) -> None:
    layer = face.multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    double = X.astype("float64")
    if face.CASTS:
        assert layer(double, double, double).dtype == face.CASTS
        return
    used = used_heads(face)
    for each in (layer, used):
        with pytest.raises(TypeError, match="queries: got dtype float64; need float32, as the"):
            each(double, double, double)


def test_faults_are_named_in_the_same_order(face: ModuleType) -> None:
    layer = face.multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    with pytest.raises(ValueError, match="queries: got shape"):
        layer(X[..., :7], X, X, np.array([9, 9]))


def test_a_refused_first_call_leaves_the_sizes_open(face: ModuleType) -> None:
    layer = face.multi_head(8, 2, 0.0, dtype="float32")
    with pytest.raises(ValueError, match="a length of 9"):
        layer(X, X, X, np.array([9, 9]))
    narrow = X[..., :5]
    assert layer(narrow, narrow, narrow, np.array([1, 3])).shape == (2, 3, 8)
    assert face.parameter_shapes(layer)["W_q"] == (5, 8)
