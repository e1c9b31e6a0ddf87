"""Bad calls that no rule of ``rules.py`` describes: the same words in every framework.

The words are the keys of the table, with ``...`` for anything. Where two names say the same, blanks at the end of a key
make it another.
"""

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from d2l_compat import common
from tests.shim.each.adapter import Adapter
from tests.shim.each.calls import ratings_table, sizes
from tests.shim.each.rules import matches_message

X = np.zeros((2, 3, 8), "float32")
TOKENS = np.zeros((2, 3), "int32")
BOXES = np.array([[0, 0, 1, 1]] * 3, "float32")
PICTURES = np.ones((2, 4, 4, 4), "float32")
VOCAB = common.Vocab(["a"], reserved_tokens=["<pad>", "<bos>", "<eos>"])
ERRORS = ValueError, TypeError, KeyError, OSError, RuntimeError
# The public name that is called, and the call.
Case = tuple[str, Callable[[Adapter], Any]]


def do(name: str, call: Callable[[Adapter], Any]) -> Case:
    return name, call


def call(name: str, *args: Any, **kwargs: Any) -> Case:
    """Call a function or make a layer, with tensors instead of NumPy's arrays."""
    return name, lambda adapter: adapter.call(name, *args, **kwargs)


def ask(name: str, *args: Any, **kwargs: Any) -> Case:
    """The same, with the arguments as they are."""
    return name, lambda adapter: getattr(adapter.d2l, name)(*args, **kwargs)


def use(name: str, *inputs: Any, made_of: tuple[Any, ...] | None = None, **kwargs: Any) -> Case:
    """Call a layer, by default one of widths of 8, with 2 heads and 7 tokens."""

    def call_layer(adapter: Adapter) -> Any:
        built = adapter.build(name, *(sizes(adapter, name) if made_of is None else made_of))
        if hasattr(built.layer, "initialize"):  # Gluon's must be
            built.layer.initialize()
        return built(*inputs, **kwargs)

    return name, call_layer


def judge(which: str, Y_hat: Any, Y: Any) -> Case:
    """A classifier's loss or accuracy."""
    return "Classifier", lambda adapter: adapter.classifier(which)(
        adapter.tensor(Y_hat), adapter.tensor(Y)
    )


def pictured(name: str, *args: Any, X: Any = PICTURES) -> Case:
    """Make and call a model, which in JAX makes its layers then; it has its parameters in MXNet."""

    def make_and_call(adapter: Adapter) -> Any:
        model = getattr(adapter.d2l, name)(*args)
        if hasattr(model, "initialize"):
            model.initialize(force_reinit=True)
        return adapter.layer(model)(X)

    return name, make_and_call


def regression_loss(adapter: Adapter, model: Any) -> Any:
    """The loss of 2 predictions and 3 labels."""
    y_hat, y = adapter.tensor(X[0, :2, :1]), adapter.tensor(X[0, :, 0])
    if "state" not in signature(model.loss).parameters:
        return model.loss(y_hat, y)
    return model.loss({}, (y_hat,), y, SimpleNamespace(apply_fn=lambda variables, X: X))


def descend(adapter: Adapter) -> None:
    """A step of ``sgd`` without a gradient; only TensorFlow's takes gradients by themselves."""
    if "grads" in signature(adapter.d2l.sgd).parameters:
        adapter.d2l.sgd([adapter.descent.variable(1.0)], [None], 0.1, 2)
    else:
        adapter.d2l.sgd([adapter.tensor(X)], 0.1, 2)


def clicks(label: str = "1") -> Path:
    """Write a file of one line in the folder of the data."""
    file = Path(os.environ["D2L_DATA"], "clicks.csv")
    file.write_text(f"{label}\ta\n")
    return file


def unsteady(adapter: Adapter, name: str) -> Any:
    """A class of the reader's, which defines nothing."""
    return type("Mine", (getattr(adapter.d2l, name),), {"setup": lambda self: None})()


def encode(adapter: Adapter, inputs: Any = X, offset: Any = 0) -> np.ndarray:
    return adapter.encoding(8, 0.0, max_len=10, dtype="float32")(inputs, offset=offset)


def with_sizes(adapter: Adapter) -> Any:
    """Multi-head attention of the short signature, after the call that told it its sizes."""
    layer = adapter.multi_head(8, 2, 0.0, dtype="float32")
    layer(X, X, X)
    return layer


def speaker(adapter: Adapter) -> Any:
    return adapter.build("RNNLMScratch", adapter.d2l.RNNScratch(5, 4), 5)


def recommend(adapter: Adapter, batches: Any) -> Any:
    trainer = adapter.descent.optimizer(adapter.linear(3, None), 0.1)
    return adapter.d2l.train_ranking(max, batches, [], max, trainer, None, 2, 2, 1, None, max, {})


BOTH = "need (num_hiddens, num_heads, dropout, ...bias=False) or (key_size, query_size, value_size, ..."
FORM = "TypeError: {}: missing a required argument: '{}'; need ({}"
CAUSAL = (
    "ValueError: causal attention: got 3 queries and 2 keys; need at least one key for each query"
)
TOO_LONG = "need at most 10 in all; make the layer with a larger max_len"
LENGTHS = "shape (2,), a length per example, or (2, 3), one per query"
BERT = {"tokens": TOKENS, "segments": TOKENS, "lens": None, "at": TOKENS}


def bert(**others: Any) -> Case:
    return use("BERTModel", *(BERT | others).values(), made_of=(7, 8, 16, 2, 1, 0.0, 4))


# fmt: off
CASES: dict[str, Case] = {
    # Signatures
    f"TypeError: ...missing a required argument: 'dropout'; {BOTH}":
        call("MultiHeadAttention", 8, 2),
    f"TypeError: ...too many positional arguments; {BOTH}":
        call("MultiHeadAttention", 8, 8, 8, 8, 2, 0.5, False, 1),
    f"TypeError: ...multiple values for argument 'num_heads'; {BOTH}":
        call("MultiHeadAttention", 8, 2, 0.5, num_heads=2),
    f"TypeError: ...unexpected keyword argument 'with_bias'; {BOTH}":
        call("MultiHeadAttention", 8, 2, 0.5, with_bias=True),
    "ValueError: query_size: got 0; need an integer of at least 1":
        call("MultiHeadAttention", 8, 0, 8, 8, 2, 0.5),
    FORM.format("AdditiveAttention", "dropout", "num_hiddens, dropout)..."): call(
        "AdditiveAttention", 8
    ),
    FORM.format("PositionWiseFFN", "ffn_num_outputs", "ffn_num_hiddens, ffn_num_outputs)..."): call(
        "PositionWiseFFN", 8
    ),
    FORM.format(
        "TransformerEncoderBlock",
        "dropout",
        "num_hiddens, ffn_num_hiddens, num_heads, dropout, ...",
    ): call("TransformerEncoderBlock", 8, 16, 2),
    FORM.format("BERTEncoder", "num_heads", "...num_blks, dropout, max_len..."): call(
        "BERTEncoder", 7, 8, 16
    ),
    FORM.format("Residual", "...", "..."): ask("Residual"),
    "ValueError: num_hiddens: got 7; need an even number, since pairs are turned":
        call("RotaryEncoding", 7),
    # Attention
    **{
        f"RuntimeError: attention_weights: there are none yet; call the layer first{blank}":
            do(name, lambda adapter, name=name: adapter.build(name, *sizes(adapter, name)).attention_weights)
        for blank, name in {"": "DotProductAttention", " ": "MultiHeadAttention", "  ": "AdditiveAttention"}.items()
    },
    "ValueError: keys: got shape (2, 3, 8); need a last dimension of 7":
        use("DotProductAttention", X[..., :7], X, X),
    "ValueError: keys and values: got 3 keys and 2 values; need one value for each key":
        use("AdditiveAttention", X, X, X[:, :2]),
    "TypeError: queries, keys and values: got dtype float32, float64; need one floating-point dtype":
        use("MultiHeadAttention", X, X.astype("float64"), X),
    **{
        f"ValueError: {name}: got shape (2, 3, 7); need a last dimension of 8":
            do("MultiHeadAttention", lambda adapter, given=given: with_sizes(adapter)(*given))
        for name, given in {
            "queries": (X[..., :7], X, X),
            "keys": (X, X[..., :7], X),
            "values": (X, X, X[..., :7]),
        }.items()
    },
    f"ValueError: valid_lens: got shape (2, 2); need {LENGTHS}":
        use("DotProductAttention", X, X, X, np.ones((2, 2), "int32")),
    f"ValueError: valid_lens: got shape (2, 3, 3); need {LENGTHS}":
        use("MultiHeadAttention", X, X, X, np.ones((2, 3, 3), "int32")),
    CAUSAL: use("DotProductAttention", X, X[:, :2], X[:, :2], causal=True),
    "ValueError: score_bias: got shape (3, 2); need shape (queries, keys), here (3, 3) or "
    "(batch, queries, keys), here (2, 3, 3)":
        use("DotProductAttention", X, X, X, score_bias=X[0, :, :2]),
    "ValueError: score_bias: got shape (3, 3, 3); need shape ...(heads, queries, keys), here (2, 3, 3) or "
    "(batch, heads, queries, keys), here (2, 2, 3, 3)":
        use("MultiHeadAttention", X, X, X, score_bias=np.zeros((3, 3, 3), "float32")),
    "TypeError: queries and score_bias: got dtype float32, float64; need one floating-point dtype":
        use("DotProductAttention", X, X, X, score_bias=np.zeros((3, 3), "float64")),
    # Positions
    f"ValueError: positions: got 3 positions from offset 8; {TOO_LONG}":
        use("PositionalEncoding", X, offset=8),
    f"ValueError: positions: got 11 positions from offset 0; {TOO_LONG}":
        use("PositionalEncoding", np.zeros((1, 11, 8), "float32")),
    # Layers
    "ValueError: state: got 2 states; need one, (batch, hiddens)":
        use("RNNScratch", X, np.zeros((2, 3, 4), "float32"), made_of=(8, 4)),
    "ValueError: inputs: got shape (2, 3, 8); need a last dimension of 5":
        use("RNNScratch", X, made_of=(5, 4)),
    "ValueError: X: got shape (3,); need 2 dimensions (batch, steps)":
        do("RNNLMScratch", lambda adapter: speaker(adapter)(TOKENS[0])),
    "ValueError: X: got a token of 5; need tokens from 0 to 4, of a vocabulary of 5":
        do("RNNLMScratch", lambda adapter: speaker(adapter)(TOKENS + 5)),
    "ValueError: positions: got 5 positions from offset 0; need at most 4 in all; ...":
        bert(tokens=np.zeros((1, 5), "int32")),
    **{
        f"ValueError: groups: got {got}; need as many channels a group as divide them evenly":
            pictured("ResNeXtBlock", *sizes)
        for got, sizes in {"6 for 20 channels": (20, 6, 1), "8 for 4 channels": (4, 8, 1)}.items()
    },
    "ValueError: X and Y: got shapes (2, 4, ...; need two equal ones":
        pictured("ResNeXtBlock", 6, 2, 1),
    "ValueError: X: got shape (2, 3, 8); need 4 dimensions (examples, ...":
        pictured("ResNeXtBlock", 4, 2, 1, X=X),
    # Losses and numbers
    "ValueError: y: got shape (3,) for predictions of shape (2, 1); need one number for each prediction":
        do("LinearRegression", lambda adapter: regression_loss(adapter, adapter.d2l.LinearRegression(0.1))),
    "ValueError: y: got shape (3,) for predictions of shape (2, 1); need one number ...": do(
        "LinearRegressionScratch",
        lambda adapter: regression_loss(adapter, adapter.d2l.LinearRegressionScratch(2, 0.1)),
    ),
    **{
        f"ValueError: value: got {value}; need a number that {dtype} holds":
            call("sequence_mask", X.astype(dtype), TOKENS[0, :2], value)
        for dtype, value in [("int32", 0.5), ("int32", 2**31), ("uint8", -1), ("float32", 1e39)]
    },
    "ValueError: X: got shape (8,); need at least 2 dimensions (batch, steps)":
        call("sequence_mask", X[0, 0], TOKENS[0, :1]),
    # Designs, and what is to be defined
    "NotImplementedError: Module.loss: got no definition; need one in your class":
        do("Module", lambda adapter: adapter.d2l.Module().loss(0, 0)),
    "NotImplementedError: Mine...: got no definition; need one in your class":
        do("Encoder", lambda adapter: adapter.layer(unsteady(adapter, "Encoder"))(X)),
    "NotImplementedError: Mine.init_state: got no definition; need one in your class":
        do("Decoder", lambda adapter: unsteady(adapter, "Decoder").init_state(X)),
    "NotImplementedError: Mine.attention_weights: got no definition; need one in your class":
        do("AttentionDecoder", lambda adapter: unsteady(adapter, "AttentionDecoder").attention_weights),
    "RuntimeError: plot: got a model without a trainer; need one that Trainer.fit has been given":
        do("Module", lambda adapter: adapter.d2l.Module().plot("loss", 1.0, train=True)),
    "TypeError: model: got str; need a Module":
        do("Trainer", lambda adapter: adapter.d2l.Trainer(1).prepare_model("a model")),
    "ValueError: number_of_trials: got 0; need an integer of at least 1":
        do("HPOTuner", lambda adapter: adapter.d2l.HPOTuner(adapter.d2l.HPOScheduler(), max).run(0)),
    "TypeError: config_space: got int for 'a'; need ...which have rvs()":
        ask("RandomSearcher", {"a": 1}),
    # Linear models and numbers
    "TypeError: X and w: got dtype float32, float64; need one floating-point dtype":
        call("linreg", X, np.ones((8, 1), "float64"), 0.5),
    "ValueError: X: got shape (2, 3, 8); need a last dimension of 7":
        call("linreg", X, np.ones((7, 1), "float32"), 0.5),
    "ValueError: data_arrays: got shapes (2, 3, 8), (3, 8); need equally many rows of each, at least one":
        do("load_array", lambda adapter: adapter.d2l.load_array((adapter.tensor(X), adapter.tensor(X[0])), 2)),
    "ValueError: params: got a parameter without a gradient; need ...call backward first":
        do("sgd", descend),
    "ValueError: x1: got shape (1, 1); need a vector of numbers": ask("rbfkernel", [[1.0]], [1.0]),
    "ValueError: K: got shape (4, 1) for X of shape (3, 8); need at least one row and column, and no more than X has":
        call("corr2d", X[0], np.ones((4, 1), "float32")),
    "ValueError: results: got points of 3 numbers; need points (x1, x2), at least one":
        ask("show_trace_2d", lambda x, y: x, np.zeros((4, 3))),
    "ValueError: f: got shape () from it; need ...shape (65, 40)":
        ask("show_trace_2d", lambda x, y: 1, [(0, 0)]),
    # Batches and networks
    "TypeError: data_iter: got a batch that is 1; need batches (inputs, labels)":
        ask("evaluate_accuracy", max, [1]),
    "ValueError: sequence: got none; need a list of words, at least one":
        ask("predict_sentiment", max, VOCAB, " "),
    "ValueError: net_D: got shape (3, 3) from it for 3 examples; need a number for each example": do(
        "update_G",
        lambda adapter: adapter.d2l.update_G(
            adapter.tensor(X[0]), lambda X: X, adapter.linear(8, None), max, None
        ),
    ),
    "TypeError: corpus: got shape (1,), dtype float64; need a list of numbers of tokens":
        ask("seq_data_iter_random", [0.5], 1, 3),
    "TypeError: resize: got (2, 3, 4); need (height, width), in pixels":
        ask("load_data_fashion_mnist", 4, (2, 3, 4)),
    "ValueError: crop_size: got 0; need an integer of at least 1":
        ask("VOCSegDataset", True, (5, 0), "."),
    # Sentences
    "ValueError: dataset: got 1, 0 and 1; need premises, hypotheses and labels, as many of each, at least one":
        ask("SNLIDataset", (["a"], [], [1]), 5),
    "TypeError: dataset: got labels of another ...; need integers...":
        ask("SNLIDataset", (["a"], ["b"], ["1"]), 5),
    "KeyError: url: got 'glove'; need an https address, or a name: ...glove.6b.100d, glove.6b.50d...":
        ask("TokenEmbedding", "glove"),
    # Files that are not there
    **{
        f"FileNotFoundError: D2L_DATA: got ...; need {file} from ...": ask(name, *args)
        for name, file, *args in [
            ("TokenEmbedding", "wiki.en.zip", "wiki.en"),
            ("load_data_imdb", "aclImdb_v1.tar.gz", 2),
            ("load_data_snli", "snli_1.0.zip", 2),
            ("read_data_bananas", "banana-detection.zip"),
            ("load_data_voc", "VOCtrainval_11-May-2012.tar", 2, (1, 1)),
            ("read_data_ml100k", "ml-100k.zip"),
        ]
    },
    "FileNotFoundError: voc_dir: got nowhere...; need a folder with VOC's files":
        ask("read_voc_images", "nowhere"),
    # Boxes and pictures
    "ValueError: offset_preds: got shape (2, 8); need shape (batch, anchors * 4), here (2, 12)":
        call("multibox_detection", X[:, :, :3], X[:, 0], BOXES[None]),
    "TypeError: X: got ndarray; need a list of arrays, at least one":
        ask("split_batch_multi_inputs", X, 1, 2),
    # Films
    "FileNotFoundError: data_path: got a.csv...; need a file that can be read":
        ask("CTRDataset", "a.csv"),
    "ValueError: data_path: got no such line; need lines of a label, 0 or 1, and 34 values":
        ask("CTRDataset", __file__),
    "TypeError: feat_mapper and defaults: got dict and NoneType; need ...or None of both":
        do("CTRDataset", lambda adapter: adapter.d2l.CTRDataset(clicks(), {1: {}}, num_feat=1)),
    "ValueError: feat_mapper and defaults: got 0 fields and 0 fields; need what another CTRDataset of 1 fields has...":
        do("CTRDataset", lambda adapter: adapter.d2l.CTRDataset(clicks(), {}, {}, num_feat=1)),
    "ValueError: data_path: got a label '2'; need lines of a label, 0 or 1, and 1 values":
        do("CTRDataset", lambda adapter: adapter.d2l.CTRDataset(clicks("2"), num_feat=1)),
    "KeyError: test_input: got none of user 0; need the items of each user from 0 to 1":
        ask("evaluate_ranking", max, {}, None, {}, 2, 5, [None]),
    "ValueError: net: got 4 numbers for 5 items; need one number for each item": do(
        "evaluate_ranking",
        lambda adapter: adapter.d2l.evaluate_ranking(
            lambda users, items: items[1:], {0: [0]}, None, {}, 1, 5, [adapter.d2l.cpu()]
        ),
    ),
    "ValueError: data: got items from 1 to 2; need items from 1 to 1...":
        do("load_data_ml100k", lambda adapter: adapter.d2l.load_data_ml100k(ratings_table(), 2, 1)),
    "ValueError: data: got users from 1 to 2; need users from 1 to 1...":
        do("split_data_ml100k", lambda adapter: adapter.d2l.split_data_ml100k(ratings_table(), 1, 2)),
    "ValueError: train_iter: got a batch of 2; need batches of at least 3 arrays":
        do("train_ranking", lambda adapter: recommend(adapter, [[1, 2]])),
}
# fmt: on


@pytest.mark.parametrize(
    ("says", "case"), CASES.items(), ids=[f"{name}: {says}" for says, (name, _) in CASES.items()]
)
def test_bad_calls_raise_clear_errors(
    adapter: Adapter, says: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("D2L_DATA", str(tmp_path))  # nothing is there, and nothing is fetched
    name, make_call = case
    if (
        name not in adapter.d2l.__all__
    ):  # D2L had it not in this framework: the name itself is refused
        with pytest.raises(AttributeError, match=f"{name}: .* has no such name"):
            getattr(adapter.d2l, name)
        return
    with pytest.raises(ERRORS) as caught:
        make_call(adapter)
    words = caught.value.args[0] if isinstance(caught.value, KeyError) else str(caught.value)
    if words.startswith("Exception encountered"):  # Keras writes more around it
        words = words.partition("\x1b[1m")[2].partition("\x1b[0m")[0]
    assert matches_message(says.strip(), f"{caught.type.__name__}: {words}")


def test_numpy_arrays_are_accepted_or_refused(adapter: Adapter) -> None:
    scores, lengths = np.zeros((2, 3, 4), "float32"), np.array([1, 2])
    if adapter.ACCEPTS_NUMPY:
        weights = np.asarray(adapter.d2l.masked_softmax(scores, lengths))
        np.testing.assert_array_equal(weights, adapter.masked_softmax(scores, lengths))
        return
    with pytest.raises(TypeError, match="X: got ndarray; need a tensor"):
        adapter.d2l.masked_softmax(scores)
    with pytest.raises(TypeError, match="valid_lens: got ndarray; need an integer tensor"):
        adapter.d2l.masked_softmax(adapter.tensor(scores), lengths)


def test_refused_call_keeps_weights_of_last_call(adapter: Adapter) -> None:
    layer = adapter.dot_product()
    layer(X, X, X)
    before = layer.attention_weights
    with pytest.raises(ValueError, match="valid_lens"):
        layer(X, X, X, np.array([4, 4]))
    np.testing.assert_array_equal(layer.attention_weights, before)


@pytest.mark.parametrize("offset", [2, np.int64(2)], ids=lambda x: type(x).__name__)
def test_any_integer_is_offset(adapter: Adapter, offset: Any) -> None:
    np.testing.assert_array_equal(encode(adapter, offset=offset), encode(adapter, offset=2))


def test_sizes_may_be_numpys_integers(adapter: Adapter) -> None:
    layer = adapter.multi_head(np.int64(8), np.int32(2), 0.0, dtype="float32")
    assert layer(X, X, X).shape == (2, 3, 8)


def test_input_of_other_dtype_is_refused_or_cast(adapter: Adapter) -> None:
    layer = adapter.multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    double = X.astype("float64")
    if adapter.CASTS:
        assert layer(double, double, double).dtype == adapter.CASTS
        return
    used = with_sizes(adapter)
    for each in (layer, used):
        with pytest.raises(TypeError, match="queries: got dtype float64; need float32, as the"):
            each(double, double, double)


def test_first_of_several_errors_is_the_same(adapter: Adapter) -> None:
    layer = adapter.multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    with pytest.raises(ValueError, match="queries: got shape"):
        layer(X[..., :7], X, X, np.array([9, 9]))


def test_refused_first_call_leaves_sizes_open(adapter: Adapter) -> None:
    layer = adapter.multi_head(8, 2, 0.0, dtype="float32")
    with pytest.raises(ValueError, match="a length of 9"):
        layer(X, X, X, np.array([9, 9]))
    if not adapter.CASTS:
        with pytest.raises(TypeError, match="queries: got dtype float64; need float32"):
            layer(*[X.astype("float64")] * 3)
    narrow = X[..., :5]
    assert layer(narrow, narrow, narrow, np.array([1, 3])).shape == (2, 3, 8)
    assert adapter.parameter_shapes(layer)["W_q"] == (5, 8)


@pytest.mark.parametrize("name", ["Seq2SeqEncoder", "TransformerEncoder"])
@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "uint8",
        *(pytest.param(x, marks=pytest.mark.release("jax")) for x in ("int64", "int8")),
    ],
)
def test_tokens_are_whole_numbers_of_any_dtype(adapter: Adapter, name: str, dtype: str) -> None:
    layer = adapter.build(name, *sizes(adapter, name))
    np.testing.assert_array_equal(
        *(np.asarray(layer(TOKENS.astype(kind), None), object)[0] for kind in ("int32", dtype))
    )


def test_label_outside_classes_is_refused(adapter: Adapter) -> None:
    _, call = judge("loss", X[0], np.array([0, 1, 8], "int32"))
    if adapter.d2l.__name__.endswith("jax"):  # it compiles its loss, which has no values
        assert np.isnan(adapter.to_numpy(call(adapter))[0])
        return
    with pytest.raises(ValueError, match="Y: got a label of 8; need labels from 0 to 7, of 8 clas"):
        call(adapter)
