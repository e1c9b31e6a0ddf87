"""Bad calls that no rule of ``rules.py`` describes, with the same messages in every framework.

The keys of the table are messages, with ``...`` for any text. Trailing spaces distinguish equal messages of two names.
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
from tests.shim.each.calls import layer_args, ratings_table
from tests.shim.each.rules import matches_message

X = np.zeros((2, 3, 8), "float32")
TOKENS = np.zeros((2, 3), "int32")
BOXES = np.array([[0, 0, 1, 1]] * 3, "float32")
IMAGES = np.ones((2, 4, 4, 4), "float32")
VOCAB = common.Vocab(["a"], reserved_tokens=["<pad>", "<bos>", "<eos>"])
ERRORS = ValueError, TypeError, KeyError, OSError, RuntimeError
# A public name, and a function that calls it.
Case = tuple[str, Callable[[Adapter], Any]]


def case(name: str, call: Callable[[Adapter], Any]) -> Case:
    return name, call


def call(name: str, *args: Any, **kwargs: Any) -> Case:
    """Return a case that calls a function or makes a layer, with tensors instead of NumPy's arrays."""
    return name, lambda adapter: adapter.call(name, *args, **kwargs)


def call_directly(name: str, *args: Any, **kwargs: Any) -> Case:
    """Return a case that calls a function or makes a layer, with the arguments unchanged."""
    return name, lambda adapter: getattr(adapter.d2l, name)(*args, **kwargs)


def call_layer(
    name: str, *inputs: Any, init_args: tuple[Any, ...] | None = None, **kwargs: Any
) -> Case:
    """Return a case that makes and calls a layer, by default with a width of 8, 2 heads and 7 tokens."""

    def build_and_call(adapter: Adapter) -> Any:
        args = layer_args(adapter, name) if init_args is None else init_args
        built = adapter.build(name, *args)
        if hasattr(built.layer, "initialize"):  # Gluon's layers must be initialized
            built.layer.initialize()
        return built(*inputs, **kwargs)

    return name, build_and_call


def call_classifier(method: str, Y_hat: Any, Y: Any) -> Case:
    """Return a case that calls a classifier's loss or accuracy."""
    return "Classifier", lambda adapter: adapter.classifier_method(method)(
        adapter.tensor(Y_hat), adapter.tensor(Y)
    )


def call_model(name: str, *args: Any, X: Any = IMAGES) -> Case:
    """Return a case that makes and calls a model: JAX makes layers only in the call, MXNet initializes them first."""

    def make_and_call(adapter: Adapter) -> Any:
        model = getattr(adapter.d2l, name)(*args)
        if hasattr(model, "initialize"):
            model.initialize(force_reinit=True)
        return adapter.layer(model)(X)

    return name, make_and_call


def regression_loss(adapter: Adapter, model: Any) -> Any:
    """Return the loss of 2 predictions and 3 labels."""
    y_hat, y = adapter.tensor(X[0, :2, :1]), adapter.tensor(X[0, :, 0])
    if "state" not in signature(model.loss).parameters:
        return model.loss(y_hat, y)
    return model.loss({}, (y_hat,), y, SimpleNamespace(apply_fn=lambda variables, X: X))


def sgd_without_gradient(adapter: Adapter) -> None:
    """Call ``sgd`` with a parameter that has no gradient; TensorFlow's gets gradients as an argument."""
    if "grads" in signature(adapter.d2l.sgd).parameters:
        adapter.d2l.sgd([adapter.descent.variable(1.0)], [None], 0.1, 2)
    else:
        adapter.d2l.sgd([adapter.tensor(X)], 0.1, 2)


def write_clicks(label: str = "1") -> Path:
    """Write a file with one click to the data folder."""
    file = Path(os.environ["D2L_DATA"], "clicks.csv")
    file.write_text(f"{label}\ta\n", encoding="utf-8")
    return file


def make_incomplete(adapter: Adapter, name: str) -> Any:
    """Make an instance of a subclass that does not define the abstract methods."""
    return type("Mine", (getattr(adapter.d2l, name),), {"setup": lambda self: None})()


def encode(adapter: Adapter, inputs: Any = X, offset: Any = 0) -> np.ndarray:
    return adapter.build_encoding(8, 0.0, max_len=10, dtype="float32")(inputs, offset=offset)


def make_called_attention(adapter: Adapter) -> Any:
    """Return multi-head attention, made with the short signature, after a call that set its sizes."""
    layer = adapter.build_multi_head(8, 2, 0.0, dtype="float32")
    layer(X, X, X)
    return layer


def make_language_model(adapter: Adapter) -> Any:
    return adapter.build("RNNLMScratch", adapter.d2l.RNNScratch(5, 4), 5)


def train_recommender(adapter: Adapter, batches: Any) -> Any:
    trainer = adapter.descent.optimizer(adapter.build_linear(3, None), 0.1)
    return adapter.d2l.train_ranking(max, batches, [], max, trainer, None, 2, 2, 1, None, max, {})


BOTH_SIGNATURES = "need (num_hiddens, num_heads, dropout, ...bias=False) or (key_size, query_size, value_size, ..."
MISSING_ARGUMENT = "TypeError: {}: missing a required argument: '{}'; need ({}"
CAUSAL = (
    "ValueError: causal attention: got 3 queries and 2 keys; need at least one key for each query"
)
TOO_LONG = "need at most 10 in all; make the layer with a larger max_len"
LENGTHS = "shape (2,), a length per example, or (2, 3), one per query"
BERT = {"tokens": TOKENS, "segments": TOKENS, "lens": None, "pred_positions": TOKENS}


def call_bert(**others: Any) -> Case:
    return call_layer("BERTModel", *(BERT | others).values(), init_args=(7, 8, 16, 2, 1, 0.0, 4))


# fmt: off
CASES: dict[str, Case] = {
    # Signatures
    f"TypeError: ...missing a required argument: 'dropout'; {BOTH_SIGNATURES}":
        call("MultiHeadAttention", 8, 2),
    f"TypeError: ...too many positional arguments; {BOTH_SIGNATURES}":
        call("MultiHeadAttention", 8, 8, 8, 8, 2, 0.5, False, 1),
    f"TypeError: ...multiple values for argument 'num_heads'; {BOTH_SIGNATURES}":
        call("MultiHeadAttention", 8, 2, 0.5, num_heads=2),
    f"TypeError: ...unexpected keyword argument 'with_bias'; {BOTH_SIGNATURES}":
        call("MultiHeadAttention", 8, 2, 0.5, with_bias=True),
    "ValueError: query_size: got 0; need an integer of at least 1":
        call("MultiHeadAttention", 8, 0, 8, 8, 2, 0.5),
    MISSING_ARGUMENT.format("AdditiveAttention", "dropout", "num_hiddens, dropout)..."): call(
        "AdditiveAttention", 8
    ),
    MISSING_ARGUMENT.format("PositionWiseFFN", "ffn_num_outputs", "ffn_num_hiddens, ffn_num_outputs)..."): call(
        "PositionWiseFFN", 8
    ),
    MISSING_ARGUMENT.format(
        "TransformerEncoderBlock",
        "dropout",
        "num_hiddens, ffn_num_hiddens, num_heads, dropout, ...",
    ): call("TransformerEncoderBlock", 8, 16, 2),
    MISSING_ARGUMENT.format("BERTEncoder", "num_heads", "...num_blks, dropout, max_len..."): call(
        "BERTEncoder", 7, 8, 16
    ),
    MISSING_ARGUMENT.format("Residual", "...", "..."): call_directly("Residual"),
    "ValueError: num_hiddens: got 7; need an even number, since pairs are rotated":
        call("RotaryEncoding", 7),
    # Attention
    "ValueError: keys: got shape (2, 3, 8); need a last dimension of 7":
        call_layer("DotProductAttention", X[..., :7], X, X),
    "ValueError: keys and values: got 3 keys and 2 values; need one value for each key":
        call_layer("AdditiveAttention", X, X, X[:, :2]),
    "TypeError: queries, keys and values: got dtype float32, float64; need one floating-point dtype":
        call_layer("MultiHeadAttention", X, X.astype("float64"), X),
    **{
        f"ValueError: {name}: got shape (2, 3, 7); need a last dimension of 8":
            case("MultiHeadAttention", lambda adapter, inputs=inputs: make_called_attention(adapter)(*inputs))
        for name, inputs in {
            "queries": (X[..., :7], X, X),
            "keys": (X, X[..., :7], X),
            "values": (X, X, X[..., :7]),
        }.items()
    },
    f"ValueError: valid_lens: got shape (2, 2); need {LENGTHS}":
        call_layer("DotProductAttention", X, X, X, np.ones((2, 2), "int32")),
    f"ValueError: valid_lens: got shape (2, 3, 3); need {LENGTHS}":
        call_layer("MultiHeadAttention", X, X, X, np.ones((2, 3, 3), "int32")),
    CAUSAL: call_layer("DotProductAttention", X, X[:, :2], X[:, :2], causal=True),
    "ValueError: score_bias: got shape (3, 2); need shape (queries, keys), here (3, 3) or "
    "(batch, queries, keys), here (2, 3, 3)":
        call_layer("DotProductAttention", X, X, X, score_bias=X[0, :, :2]),
    "ValueError: score_bias: got shape (3, 3, 3); need shape ...(heads, queries, keys), here (2, 3, 3) or "
    "(batch, heads, queries, keys), here (2, 2, 3, 3)":
        call_layer("MultiHeadAttention", X, X, X, score_bias=np.zeros((3, 3, 3), "float32")),
    "TypeError: queries and score_bias: got dtype float32, float64; need one floating-point dtype":
        call_layer("DotProductAttention", X, X, X, score_bias=np.zeros((3, 3), "float64")),
    # Positions
    f"ValueError: positions: got 3 positions from offset 8; {TOO_LONG}":
        call_layer("PositionalEncoding", X, offset=8),
    f"ValueError: positions: got 11 positions from offset 0; {TOO_LONG}":
        call_layer("PositionalEncoding", np.zeros((1, 11, 8), "float32")),
    # Layers
    "ValueError: state: got 2 states; need one, (batch, hiddens)":
        call_layer("RNNScratch", X, np.zeros((2, 3, 4), "float32"), init_args=(8, 4)),
    "ValueError: inputs: got shape (2, 3, 8); need a last dimension of 5":
        call_layer("RNNScratch", X, init_args=(5, 4)),
    "ValueError: X: got shape (3,); need 2 dimensions (batch, steps)":
        case("RNNLMScratch", lambda adapter: make_language_model(adapter)(TOKENS[0])),
    "ValueError: X: got a token of 5; need tokens from 0 to 4, of a vocabulary of 5":
        case("RNNLMScratch", lambda adapter: make_language_model(adapter)(TOKENS + 5)),
    "ValueError: positions: got 5 positions from offset 0; need at most 4 in all; ...":
        call_bert(tokens=np.zeros((1, 5), "int32")),
    **{
        f"ValueError: groups: got {got}; need a number of channels per group that divides them evenly":
            call_model("ResNeXtBlock", *sizes)
        for got, sizes in {"6 for 20 channels": (20, 6, 1), "8 for 4 channels": (4, 8, 1)}.items()
    },
    "ValueError: X and Y: got shapes (2, 4, ...; need equal shapes":
        call_model("ResNeXtBlock", 6, 2, 1),
    "ValueError: X: got shape (2, 3, 8); need 4 dimensions (examples, ...":
        call_model("ResNeXtBlock", 4, 2, 1, X=X),
    # Losses and numbers
    "ValueError: y: got shape (3,) for predictions of shape (2, 1); need one number for each prediction":
        case("LinearRegression", lambda adapter: regression_loss(adapter, adapter.d2l.LinearRegression(0.1))),
    "ValueError: y: got shape (3,) for predictions of shape (2, 1); need one number ...": case(
        "LinearRegressionScratch",
        lambda adapter: regression_loss(adapter, adapter.d2l.LinearRegressionScratch(2, 0.1)),
    ),
    **{
        f"ValueError: value: got {value}; need a number that {dtype} can represent":
            call("sequence_mask", X.astype(dtype), TOKENS[0, :2], value)
        for dtype, value in [("int32", 0.5), ("int32", 2**31), ("uint8", -1), ("float32", 1e39)]
    },
    "ValueError: X: got shape (8,); need at least 2 dimensions (batch, steps)":
        call("sequence_mask", X[0, 0], TOKENS[0, :1]),
    # Classes of D2L's design, and abstract methods
    "NotImplementedError: Module.loss: got no definition; need one in your class":
        case("Module", lambda adapter: adapter.d2l.Module().loss(0, 0)),
    "NotImplementedError: Mine...: got no definition; need one in your class":
        case("Encoder", lambda adapter: adapter.layer(make_incomplete(adapter, "Encoder"))(X)),
    "NotImplementedError: Mine.init_state: got no definition; need one in your class":
        case("Decoder", lambda adapter: make_incomplete(adapter, "Decoder").init_state(X)),
    "RuntimeError: plot: got a model without a trainer; need a model that was passed to Trainer.fit":
        case("Module", lambda adapter: adapter.d2l.Module().plot("loss", 1.0, train=True)),
    "TypeError: model: got str; need a Module, or another object with configure_optimizers and training_step":
        case("Trainer", lambda adapter: adapter.d2l.Trainer(1).prepare_model("a model")),
    "ValueError: number_of_trials: got 0; need an integer of at least 1":
        case("HPOTuner", lambda adapter: adapter.d2l.HPOTuner(adapter.d2l.HPOScheduler(), max).run(0)),
    "TypeError: config_space: got int for 'a'; need ...which have rvs()":
        call_directly("RandomSearcher", {"a": 1}),
    # Linear models and numbers
    "TypeError: X and w: got dtype float32, float64; need one floating-point dtype":
        call("linreg", X, np.ones((8, 1), "float64"), 0.5),
    "ValueError: X: got shape (2, 3, 8); need a last dimension of 7":
        call("linreg", X, np.ones((7, 1), "float32"), 0.5),
    "ValueError: data_arrays: got shapes (2, 3, 8), (3, 8); need the same number of rows in each, at least one":
        case("load_array", lambda adapter: adapter.d2l.load_array((adapter.tensor(X), adapter.tensor(X[0])), 2)),
    "ValueError: params: got a parameter without a gradient; need ...call backward first":
        case("sgd", sgd_without_gradient),
    "ValueError: x1: got shape (1, 1); need a vector of numbers": call_directly("rbfkernel", [[1.0]], [1.0]),
    "ValueError: K: got shape (4, 1) for X of shape (3, 8); need at least one row and column, and no more than X has":
        call("corr2d", X[0], np.ones((4, 1), "float32")),
    "ValueError: results: got points of 3 numbers; need points (x1, x2), at least one":
        call_directly("show_trace_2d", lambda x, y: x, np.zeros((4, 3))),
    "ValueError: f: got an output of shape (); need ...shape (65, 40)":
        call_directly("show_trace_2d", lambda x, y: 1, [(0, 0)]),
    # Batches and networks
    "TypeError: data_iter: got a batch that is 1; need batches (inputs, labels)":
        call_directly("evaluate_accuracy", max, [1]),
    "ValueError: sequence: got none; need a list of words, at least one":
        call_directly("predict_sentiment", max, VOCAB, " "),
    "ValueError: net_D: got an output of shape (3, 3) for 3 examples; need a number for each example": case(
        "update_G",
        lambda adapter: adapter.d2l.update_G(
            adapter.tensor(X[0]), lambda X: X, adapter.build_linear(8, None), max, None
        ),
    ),
    "TypeError: corpus: got shape (1,), dtype float64; need a list of token indices":
        call_directly("seq_data_iter_random", [0.5], 1, 3),
    "TypeError: resize: got (2, 3, 4); need (height, width), in pixels":
        call_directly("load_data_fashion_mnist", 4, (2, 3, 4)),
    "ValueError: crop_size: got 0; need an integer of at least 1":
        call_directly("VOCSegDataset", True, (5, 0), "."),
    # Sentences
    "ValueError: dataset: got 1, 0 and 1; need the same number of premises, hypotheses and labels, at least one":
        call_directly("SNLIDataset", (["a"], [], [1]), 5),
    "TypeError: dataset: got labels of dtype ...; need a list of integers":
        call_directly("SNLIDataset", (["a"], ["b"], ["1"]), 5),
    "KeyError: url: got 'glove'; need an https address, or a name: ...glove.6b.100d, glove.6b.50d...":
        call_directly("TokenEmbedding", "glove"),
    # Missing files
    **{
        f"FileNotFoundError: D2L_DATA: got ...; need {file} from ...": call_directly(name, *args)
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
        call_directly("read_voc_images", "nowhere"),
    # Boxes and images
    "ValueError: offset_preds: got shape (2, 8); need shape (batch, anchors * 4), here (2, 12)":
        call("multibox_detection", X[:, :, :3], X[:, 0], BOXES[None]),
    "TypeError: X: got ndarray; need a list of arrays, at least one":
        call_directly("split_batch_multi_inputs", X, 1, 2),
    # Films
    "FileNotFoundError: data_path: got a.csv...; need a file that can be read":
        call_directly("CTRDataset", "a.csv"),
    "ValueError: data_path: got no valid lines; need lines of a label, 0 or 1, and 34 values":
        call_directly("CTRDataset", __file__),
    "TypeError: feat_mapper and defaults: got dict and NoneType; need ...or None for both":
        case("CTRDataset", lambda adapter: adapter.d2l.CTRDataset(write_clicks(), {1: {}}, num_feat=1)),
    "ValueError: feat_mapper and defaults: got 0 fields and 0 fields; need those of another CTRDataset with 1 fields...":
        case("CTRDataset", lambda adapter: adapter.d2l.CTRDataset(write_clicks(), {}, {}, num_feat=1)),
    "ValueError: data_path: got a label '2'; need lines of a label, 0 or 1, and 1 values":
        case("CTRDataset", lambda adapter: adapter.d2l.CTRDataset(write_clicks("2"), num_feat=1)),
    "KeyError: test_input: got no items for user 0; need the items of each user from 0 to 1":
        call_directly("evaluate_ranking", max, {}, None, {}, 2, 5, [None]),
    "ValueError: net: got 4 numbers for 5 items; need one number for each item": case(
        "evaluate_ranking",
        lambda adapter: adapter.d2l.evaluate_ranking(
            lambda users, items: items[1:], {0: [0]}, None, {}, 1, 5, [adapter.d2l.cpu()]
        ),
    ),
    "ValueError: data: got items from 1 to 2; need items from 1 to 1...":
        case("load_data_ml100k", lambda adapter: adapter.d2l.load_data_ml100k(ratings_table(), 2, 1)),
    "ValueError: data: got users from 1 to 2; need users from 1 to 1...":
        case("split_data_ml100k", lambda adapter: adapter.d2l.split_data_ml100k(ratings_table(), 1, 2)),
    "ValueError: train_iter: got a batch of 2; need batches of at least 3 arrays":
        case("train_ranking", lambda adapter: train_recommender(adapter, [[1, 2]])),
}
# fmt: on


@pytest.mark.parametrize(
    ("expected", "case"),
    CASES.items(),
    ids=[f"{name}: {message}" for message, (name, _) in CASES.items()],
)
def test_bad_calls_raise_clear_errors(
    adapter: Adapter, expected: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("D2L_DATA", str(tmp_path))  # an empty folder, so nothing is downloaded
    name, make_call = case
    if name not in adapter.exports:  # D2L does not have it in this framework
        adapter.assert_missing(name)
        return
    with pytest.raises(ERRORS) as caught:
        make_call(adapter)
    message = caught.value.args[0] if isinstance(caught.value, KeyError) else str(caught.value)
    if message.startswith("Exception encountered"):  # Keras adds more text
        message = message.partition("\x1b[1m")[2].partition("\x1b[0m")[0]
    assert matches_message(expected.strip(), f"{caught.type.__name__}: {message}")


def test_numpy_arrays_are_accepted_or_rejected(adapter: Adapter) -> None:
    scores, lengths = np.zeros((2, 3, 4), "float32"), np.array([1, 2])
    if adapter.ACCEPTS_NUMPY:
        weights = np.asarray(adapter.d2l.masked_softmax(scores, lengths))
        np.testing.assert_array_equal(weights, adapter.masked_softmax(scores, lengths))
        return
    with pytest.raises(TypeError, match="X: got ndarray; need a tensor"):
        adapter.d2l.masked_softmax(scores)
    with pytest.raises(TypeError, match="valid_lens: got ndarray; need an integer tensor"):
        adapter.d2l.masked_softmax(adapter.tensor(scores), lengths)


def test_rejected_call_keeps_weights_of_last_call(adapter: Adapter) -> None:
    layer = adapter.build_dot_product()
    layer(X, X, X)
    before = layer.attention_weights
    with pytest.raises(ValueError, match="valid_lens"):
        layer(X, X, X, np.array([-1, 4]))
    np.testing.assert_array_equal(layer.attention_weights, before)


@pytest.mark.parametrize("offset", [2, np.int64(2)], ids=lambda x: type(x).__name__)
def test_offset_may_be_any_integer(adapter: Adapter, offset: Any) -> None:
    np.testing.assert_array_equal(encode(adapter, offset=offset), encode(adapter, offset=2))


def test_sizes_may_be_numpys_integers(adapter: Adapter) -> None:
    layer = adapter.build_multi_head(np.int64(8), np.int32(2), 0.0, dtype="float32")
    assert layer(X, X, X).shape == (2, 3, 8)


def test_input_of_other_dtype_is_rejected_or_cast(adapter: Adapter) -> None:
    layer = adapter.build_multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    double = X.astype("float64")
    if adapter.CAST_DTYPE:
        assert layer(double, double, double).dtype == adapter.CAST_DTYPE
        return
    for attention in (layer, make_called_attention(adapter)):
        with pytest.raises(TypeError, match="queries: got dtype float64; need float32, as the"):
            attention(double, double, double)


def test_first_bad_argument_is_reported(adapter: Adapter) -> None:
    layer = adapter.build_multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    with pytest.raises(ValueError, match="queries: got shape"):
        layer(X[..., :7], X, X, np.array([9, 9]))


def test_rejected_first_call_leaves_sizes_unset(adapter: Adapter) -> None:
    layer = adapter.build_multi_head(8, 2, 0.0, dtype="float32")
    with pytest.raises(ValueError, match="a length of -1"):
        layer(X, X, X, np.array([9, -1]))
    if not adapter.CAST_DTYPE:
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
def test_tokens_may_have_any_number_dtype(adapter: Adapter, name: str, dtype: str) -> None:
    layer = adapter.build(name, *layer_args(adapter, name))
    expected, got = (np.asarray(layer(TOKENS.astype(x), None), object)[0] for x in ("int32", dtype))
    np.testing.assert_array_equal(got, expected)


def test_label_outside_classes_is_rejected(adapter: Adapter) -> None:
    _, call = call_classifier("loss", X[0], np.array([0, 1, 8], "int32"))
    if adapter.d2l.__name__.endswith("jax"):  # compiled code cannot check values
        assert np.isnan(adapter.to_numpy(call(adapter))[0])
        return
    with pytest.raises(ValueError, match="Y: got a label of 8; need labels from 0 to 7, of 8 clas"):
        call(adapter)
