"""Bad calls: each is refused with what was given and what is needed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from d2l_compat import torch as d2l

X = torch.zeros(2, 3, 8)
BOTH_SIGNATURES = (
    "need (num_hiddens, num_heads, dropout, bias=False) or "
    "(key_size, query_size, value_size, num_hiddens, num_heads, dropout, bias=False)"
)


def attend(queries: Tensor = X, keys: Tensor = X, values: Tensor = X, valid_lens: Any = None):
    return d2l.DotProductAttention(0.0)(queries, keys, values, valid_lens)


def heads(
    queries: Tensor = X, keys: Tensor = X, values: Tensor = X, valid_lens: Any = None
) -> Tensor:
    return d2l.MultiHeadAttention(8, 8, 8, 8, 2, 0.0)(queries, keys, values, valid_lens)


def encode(inputs: Tensor = X, offset: Any = 0) -> Tensor:
    return d2l.PositionalEncoding(8, 0.0, max_len=10)(inputs, offset)


def used_heads() -> nn.Module:
    """A layer of the short signature, after the call that told it its sizes."""
    layer = d2l.MultiHeadAttention(8, 2, 0.0)
    layer(X, X, X)
    return layer


# The call, the error, what was given, what is needed.
LAYERS = [
    pytest.param(
        lambda: d2l.MultiHeadAttention(100, 3, 0.5),
        ValueError,
        "num_hiddens: got 100 with num_heads 3",
        "a multiple of num_heads",
        id="num_hiddens not divisible by heads",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(100, 0, 0.5),
        ValueError,
        "num_heads: got 0",
        "at least 1",
        id="no heads",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8.0, 2, 0.5),
        TypeError,
        "num_hiddens: got 8.0",
        "an integer",
        id="num_hiddens not an integer",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 0, 8, 8, 2, 0.5),
        ValueError,
        "query_size: got 0",
        "at least 1",
        id="a size of 0",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 2),
        TypeError,
        "missing a required argument: 'dropout'",
        BOTH_SIGNATURES,
        id="too few arguments",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 8, 8, 8, 2),
        TypeError,
        "missing a required argument: 'dropout'",
        BOTH_SIGNATURES,
        id="between the two signatures",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 8, 8, 8, 2, 0.5, False, 1),
        TypeError,
        "too many positional arguments",
        BOTH_SIGNATURES,
        id="too many arguments",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 2, 0.5, num_heads=2),
        TypeError,
        "multiple values for argument 'num_heads'",
        BOTH_SIGNATURES,
        id="an argument given twice",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 2, 0.5, use_bias=True),
        TypeError,
        "unexpected keyword argument 'use_bias'",
        "bias=False",
        id="another framework's keyword",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 2, 1.5),
        ValueError,
        "dropout: got 1.5",
        "from 0 to 1",
        id="multi-head dropout above 1",
    ),
    pytest.param(
        lambda: d2l.DotProductAttention(-0.1),
        ValueError,
        "dropout: got -0.1",
        "from 0 to 1",
        id="attention dropout below 0",
    ),
    pytest.param(
        lambda: d2l.PositionalEncoding(8, float("nan")),
        ValueError,
        "dropout: got nan",
        "from 0 to 1",
        id="encoding dropout NaN",
    ),
    pytest.param(
        lambda: d2l.PositionalEncoding(0, 0.0),
        ValueError,
        "num_hiddens: got 0",
        "at least 1",
        id="encoding of width 0",
    ),
    pytest.param(
        lambda: d2l.PositionalEncoding(8, 0.0, max_len=0),
        ValueError,
        "max_len: got 0",
        "at least 1",
        id="encoding of length 0",
    ),
    pytest.param(
        lambda: d2l.DotProductAttention(0.0).attention_weights,
        RuntimeError,
        "attention_weights: there are none yet",
        "call the layer first",
        id="weights before a call",
    ),
    pytest.param(
        lambda: d2l.MultiHeadAttention(8, 2, 0.0).attention_weights,
        RuntimeError,
        "attention_weights: there are none yet",
        "call the layer first",
        id="multi-head weights before a call",
    ),
]

INPUTS = [
    pytest.param(
        lambda: d2l.masked_softmax(X[0]),
        ValueError,
        "X: got shape (3, 8)",
        "3 dimensions (batch, queries, keys)",
        id="scores without a batch",
    ),
    pytest.param(
        lambda: attend(queries=X[0]),
        ValueError,
        "queries: got shape (3, 8)",
        "3 dimensions (batch, queries, features)",
        id="queries without a batch",
    ),
    pytest.param(
        lambda: attend(queries=X[..., :7]),
        ValueError,
        "keys: got shape (2, 3, 8)",
        "a last dimension of 7",
        id="keys of another size than queries",
    ),
    pytest.param(
        lambda: attend(keys=X[:1]),
        ValueError,
        "batch sizes of queries, keys and values: got 2, 1 and 2",
        "three equal ones",
        id="unequal batches",
    ),
    pytest.param(
        lambda: attend(values=X[:, :2]),
        ValueError,
        "got 3 keys and 2 values",
        "one value for each key",
        id="fewer values than keys",
    ),
    pytest.param(
        lambda: heads(queries=X[..., :7]),
        ValueError,
        "queries: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="multi-head: wrong last dimension of queries",
    ),
    pytest.param(
        lambda: heads(keys=X[..., :7]),
        ValueError,
        "keys: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="multi-head: wrong last dimension of keys",
    ),
    pytest.param(
        lambda: used_heads()(X, X, X[..., :7]),
        ValueError,
        "values: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="multi-head: another last dimension than at first",
    ),
    pytest.param(
        lambda: encode(X[0]),
        ValueError,
        "X: got shape (3, 8)",
        "3 dimensions (batch, steps, features)",
        id="encoding without a batch",
    ),
    pytest.param(
        lambda: encode(X[..., :7]),
        ValueError,
        "X: got shape (2, 3, 7)",
        "a last dimension of 8",
        id="encoding of another width",
    ),
    pytest.param(
        lambda: encode(X.long()),
        TypeError,
        "X: got dtype torch.int64",
        "one floating-point dtype",
        id="encoding of integers",
    ),
    pytest.param(
        lambda: d2l.masked_softmax([[[1.0]]]),
        TypeError,
        "X: got list",
        "a tensor",
        id="softmax of a list",
    ),
    pytest.param(
        lambda: heads(X, X.numpy(), X),
        TypeError,
        "keys: got ndarray",
        "a tensor",
        id="attention of NumPy arrays",
    ),
    pytest.param(
        lambda: encode(X.numpy()),
        TypeError,
        "X: got ndarray",
        "a tensor",
        id="encoding of NumPy arrays",
    ),
    pytest.param(
        lambda: d2l.masked_softmax(X.long()),
        TypeError,
        "X: got dtype torch.int64",
        "one floating-point dtype",
        id="softmax of integers",
    ),
    pytest.param(
        lambda: attend(X.long(), X.long(), X.long()),
        TypeError,
        "queries, keys and values: got dtype torch.int64",
        "one floating-point dtype",
        id="attention of integers",
    ),
    pytest.param(
        lambda: heads(X, X.double(), X),
        TypeError,
        "queries, keys and values: got dtype torch.float32, torch.float64",
        "one floating-point dtype",
        id="two dtypes",
    ),
    pytest.param(
        lambda: attend(X[..., :0], X[..., :0], X),
        ValueError,
        "queries: got shape (2, 3, 0)",
        "at least one feature",
        id="no features",
    ),
    pytest.param(
        lambda: d2l.DotProductAttention("0.5"),
        TypeError,
        "dropout: got '0.5'",
        "a probability",
        id="dropout not a number",
    ),
    pytest.param(
        lambda: d2l.show_heatmaps(np.zeros((1, 2, 3, 3)), "x", "y", titles=["one"]),
        ValueError,
        "titles: got 1 for 2 columns",
        "one for each column",
        id="too few titles",
    ),
    pytest.param(
        lambda: d2l.show_heatmaps(np.full((1, 1, 2, 2), np.nan), "x", "y"),
        ValueError,
        "matrices: got shape (1, 1, 2, 2) without a finite number",
        "at least one number",
        id="heat map without numbers",
    ),
    pytest.param(
        lambda: encode(offset=-1),
        ValueError,
        "offset: got -1",
        "at least 0",
        id="offset negative",
    ),
    pytest.param(
        lambda: encode(offset=8),
        ValueError,
        "got 3 positions from offset 8",
        "at most 10 in all; make the layer with a larger max_len",
        id="offset past max_len",
    ),
    pytest.param(
        lambda: encode(torch.zeros(1, 11, 8)),
        ValueError,
        "got 11 positions from offset 0",
        "at most 10 in all",
        id="input longer than max_len",
    ),
    pytest.param(
        lambda: encode(offset=1.0), TypeError, "offset: got 1.0", "an integer", id="offset a float"
    ),
    pytest.param(
        lambda: encode(offset=True), TypeError, "offset: got True", "an integer", id="offset a bool"
    ),
]

# Every function that takes valid_lens, here with 2 examples of 3 queries and 3 keys.
TAKE_LENGTHS = {
    "masked_softmax": lambda valid_lens: d2l.masked_softmax(X[..., :3], valid_lens),
    "DotProductAttention": lambda valid_lens: attend(valid_lens=valid_lens),
    "MultiHeadAttention": lambda valid_lens: heads(valid_lens=valid_lens),
}
EITHER_SHAPE = "shape (2,), a length per example, or (2, 3), one per query"
LENGTHS = [
    pytest.param([1, 2], TypeError, "got list", "an integer tensor", id="a list"),
    pytest.param(np.array([1, 2]), TypeError, "got ndarray", "an integer tensor", id="NumPy's"),
    pytest.param(
        torch.tensor([1.0, 2.0]), TypeError, "got dtype torch.float32", "an integer", id="floats"
    ),
    pytest.param(
        torch.tensor([True, False]), TypeError, "got dtype torch.bool", "an integer", id="bools"
    ),
    pytest.param(torch.tensor(1), ValueError, "got shape ()", EITHER_SHAPE, id="a scalar"),
    pytest.param(
        torch.tensor([1, 2, 3]), ValueError, "got shape (3,)", EITHER_SHAPE, id="another batch"
    ),
    pytest.param(
        torch.ones(2, 2).int(), ValueError, "got shape (2, 2)", EITHER_SHAPE, id="fewer queries"
    ),
    pytest.param(
        torch.ones(2, 3, 3).int(), ValueError, "got shape (2, 3, 3)", EITHER_SHAPE, id="a mask"
    ),
    pytest.param(torch.tensor([0, -1]), ValueError, "a length of -1", "from 0 to 3", id="negative"),
    pytest.param(
        torch.tensor([4, 1]),
        ValueError,
        "a length of 4",
        "from 0 to 3, the number of keys",
        id="past the keys",
    ),
]

HELPERS = [
    pytest.param(
        lambda: d2l.check_shape(X, (2, 3)),
        ValueError,
        "shape: got (2, 3, 8)",
        "need (2, 3)",
        id="check_shape of another rank",
    ),
    pytest.param(
        lambda: d2l.check_shape(X, (2, 3, 9)),
        ValueError,
        "shape: got (2, 3, 8)",
        "need (2, 3, 9)",
        id="check_shape of another size",
    ),
    pytest.param(lambda: d2l.gpu(-1), ValueError, "gpu: got -1", "at least 0", id="gpu negative"),
    pytest.param(
        lambda: d2l.try_gpu(-1), ValueError, "gpu: got -1", "at least 0", id="try_gpu negative"
    ),
    pytest.param(
        lambda: d2l.show_heatmaps(torch.zeros(2, 3), "Keys", "Queries"),
        ValueError,
        "matrices: got shape (2, 3)",
        "4 dimensions (grid rows, grid columns, matrix rows, matrix columns)",
        id="heat map of wrong rank",
    ),
    pytest.param(
        lambda: d2l.show_heatmaps(torch.zeros(1, 1, 0, 3), "Keys", "Queries"),
        ValueError,
        "matrices: got shape (1, 1, 0, 3)",
        "at least one number",
        id="heat map of nothing",
    ),
    pytest.param(
        lambda: d2l.show_heatmaps([[[[1, 2], [3]]]], "Keys", "Queries"),
        ValueError,
        "matrices: got rows of unequal length",
        "rows of one length",
        id="heat map of ragged rows",
    ),
    pytest.param(
        lambda: d2l.show_heatmaps("Reds", "Keys", "Queries"),
        TypeError,
        "matrices: got str",
        "an array of real numbers",
        id="heat map of text",
    ),
    pytest.param(
        lambda: d2l.plot([1, 2, 3], [[1, 2, 3], [1, 2]]),
        ValueError,
        "curve 1: got 3 points in X and 2 in Y",
        "as many of each",
        id="curves of unequal length",
    ),
    pytest.param(
        lambda: d2l.plot([[1, 2], [3, 4]], [[1, 2]] * 3),
        ValueError,
        "curves: got 2 of X and 3 of Y",
        "one X for all curves, or one for each",
        id="another number of X than of Y",
    ),
    pytest.param(
        lambda: d2l.plot(torch.zeros(2, 3, 4)),
        ValueError,
        "X: got shape (2, 3, 4)",
        "1 dimension (points) or 2 (curves, points)",
        id="curves of rank 3",
    ),
    pytest.param(
        lambda: d2l.plot([1, 2], ["a", "b"]),
        TypeError,
        "Y: got",
        "an array of real numbers",
        id="curve of text",
    ),
    pytest.param(
        lambda: d2l.plot(torch.zeros(3, dtype=torch.complex64)),
        TypeError,
        "X: got Tensor of dtype complex64",
        "an array of real numbers",
        id="curve of complex numbers",
    ),
]


@pytest.mark.parametrize(("call", "error", "got", "need"), LAYERS + INPUTS + HELPERS)
def test_bad_calls_say_what_was_given_and_what_is_needed(
    call: Callable[[], Any], error: type[Exception], got: str, need: str
) -> None:
    with pytest.raises(error) as caught:
        call()
    assert got in str(caught.value)
    assert need in str(caught.value)


@pytest.mark.parametrize("call", TAKE_LENGTHS.values(), ids=TAKE_LENGTHS)
@pytest.mark.parametrize(("valid_lens", "error", "got", "need"), LENGTHS)
def test_bad_valid_lens_get_the_same_words_everywhere(
    call: Callable[[Any], Tensor], valid_lens: Any, error: type[Exception], got: str, need: str
) -> None:
    with pytest.raises(error) as caught:
        call(valid_lens)
    message = str(caught.value)
    assert message.startswith("valid_lens: ")
    assert got in message
    assert need in message


@pytest.mark.parametrize(
    "offset", [2, np.int64(2), torch.tensor(2)], ids=lambda x: type(x).__name__
)
def test_any_integer_is_an_offset(offset: Any) -> None:
    assert torch.equal(encode(offset=offset), encode(offset=2))


@pytest.mark.parametrize("call", TAKE_LENGTHS.values(), ids=TAKE_LENGTHS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
def test_any_integer_dtype_is_one_for_valid_lens(
    call: Callable[[Any], Tensor], dtype: torch.dtype
) -> None:
    assert torch.equal(call(torch.tensor([3, 1], dtype=dtype)), call(torch.tensor([3, 1])))
