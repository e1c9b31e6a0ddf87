"""Compare each name with upstream's d2l, 1.0.3 and 0.17.6: the same weights and input give the same result.

Upstream is installed without its pins, only for this. Every name that both packages have is compared, or listed in
``NOT_COMPARED`` with the reason. The end of the run shows how many there are.
"""

import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from d2l_compat._shared.data import translation
from tests.shim.each import fake_data
from tests.shim.each import oracle as shared
from tests.shim.each.adapter import Adapter
from tests.shim.each.calls import get_device
from tests.shim.each.cases import LENGTHS, make_case
from tests.shim.each.figures import describe
from tests.shim.each.oracle import PatchedModule
from tests.shim.each.test_models import make_data
from tests.shim.each.test_tensors import DTYPES, FUNCTIONS, KEYS, RANDOM, make_example
from tests.shim.each.test_training import PAIRS

pytestmark = pytest.mark.usefixtures("close_figures")

X = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
Z = np.random.default_rng(2).normal(size=(2, 5, 8)).astype("float32")
TOKENS = np.array([[1, 2, 3, 0, 4], [6, 5, 4, 3, 2]], "int32")
LENS = np.array([3, 5], "int32")

NOT_COMPARED = {
    name: reason
    for reason, names in {
        "it would load the whole data set from the network": """
            BananasDataset FashionMNIST hpo_objective_lenet load_data_bananas load_data_fashion_mnist
            load_data_voc read_data_bananas read_data_ml100k split_and_load_ml100k""",
        "it would load from the network": "download download_all download_extract",
        "it needs torchvision or OpenCV, which ours does not": """
            VOCSegDataset read_voc_images voc_rand_crop""",
        "its addresses are not secure: ours are": "DATA_URL",
        "times differ": "Timer",
        "it may write files outside its folder: ours rejects such archives": "extract",
        "its effect is only visible in Jupyter": "use_svg_display",
    }.items()
    for name in names.split()
}
NOT_COMPARED_IN = {
    "1.0.3": {"try_all_gpus": "without a GPU its list is empty: ours has the CPU, as in 0.17"},
    "0.17.6": {},
}


@dataclass(frozen=True)
class Both:
    """The framework's package ``ours`` and upstream's package ``theirs``."""

    adapter: Adapter
    ours: Any
    theirs: Any
    oracle: ModuleType
    version: str = "1.0.3"

    @property
    def is_older(self) -> bool:
        return self.version == "0.17.6"

    @property
    def layer_args(self) -> dict[str, tuple[Any, ...]]:
        """The arguments of each layer that both packages accept."""
        older = getattr(self.oracle, "OLDER_LAYER_ARGS", {}) if self.is_older else {}
        return getattr(self.oracle, "LAYER_ARGS", shared.LAYER_ARGS) | older

    def __iter__(self) -> Iterator[Any]:
        return iter((self.ours, self.theirs))


Compare = Callable[[Both], None]
COMPARED: dict[str, Compare] = {}


def assert_same(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    """Check that arrays, or lists and tuples of them, have the same shapes and values."""
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, tolerance)
    elif isinstance(ours, str) or ours is None:
        assert ours == theirs
    else:
        a, b = np.asarray(ours), np.asarray(theirs)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def assert_equal(ours: Any, theirs: Any) -> None:
    assert ours == theirs


assert_nearly_same = partial(assert_same, tolerance=1e-4)


def compares(*names: str, by: Callable[[Any, Any], None] = assert_same) -> Callable[[Any], Any]:
    """Register the decorated function to compare these names, one by one if it has the parameter ``name``.

    A function with the parameter ``d2l`` is called with our package and with upstream's, and its results are compared.
    """

    def register(function: Any) -> Any:
        parameters = signature(function).parameters

        def compare(both: Both, **kwargs: Any) -> None:
            if "d2l" in parameters:
                by(*(function(both, d2l, **kwargs) for d2l in both))
            else:
                function(both, **kwargs)

        compare_once = cache(compare)
        for name in names:
            COMPARED[name] = partial(compare, name=name) if "name" in parameters else compare_once
        return function

    return register


# Layers

CASE = make_case(sizes=(8, 8, 8), dtype="float32")
# No length is zero: upstream would attend to padding then, the shim to no key.
POSITIVE_LENGTHS = [
    None if lens is None else np.maximum(lens, 1).astype("int32") for lens in LENGTHS.values()
]
ATTENTION = [(CASE.queries, CASE.keys, CASE.values, lens) for lens in POSITIVE_LENGTHS]
SEGMENTS = np.array([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]], "int32")
POSITIONS = np.array([[1, 2, 0], [4, 0, 3]], "int32")
LAYERS: dict[str, list[tuple[Any, ...]]] = {
    "AddNorm": [(X, Z)],
    "AdditiveAttention": ATTENTION,
    "BERTEncoder": [(TOKENS, SEGMENTS, None), (TOKENS, SEGMENTS, LENS)],
    "BERTModel": [(TOKENS, SEGMENTS), (TOKENS, SEGMENTS, LENS, POSITIONS)],
    "DotProductAttention": ATTENTION,
    "EncoderBlock": [(X, None), (X, LENS)],
    "GRU": [(X.swapaxes(0, 1).copy(),)],
    "MaskLM": [(X, POSITIONS)],
    "MultiHeadAttention": ATTENTION,
    "NextSentencePred": [(X[:, 0].copy(),)],
    "PositionWiseFFN": [(X,)],
    "PositionalEncoding": [(X,)],
    "Seq2SeqEncoder": [(TOKENS,)],
    "TransformerEncoder": [(TOKENS, None), (TOKENS, LENS)],
    "TransformerEncoderBlock": [(X, None), (X, LENS)],
}


@compares(*LAYERS)
def compare_layers(both: Both, name: str) -> None:
    args = both.layer_args[name]
    ours = both.adapter.build(name, *args)
    ours.randomize(*LAYERS[name][-1])
    theirs = both.oracle.build_twin(ours, getattr(both.theirs, name)(*args), *LAYERS[name][-1])
    for inputs in LAYERS[name]:
        assert_same(ours(*inputs), theirs(*inputs), 1e-4)
        if name in ("DotProductAttention", "AdditiveAttention", "TransformerEncoder"):
            assert_same(ours.attention_weights, theirs.attention_weights)


LABELS = np.array([0, 2, 1, 1, 0, 2, 2, 0, 1, 2], "int32")
FUNCTIONS_OF_TENSORS: dict[str, list[tuple[Any, ...]]] = {
    "accuracy": [
        (X[..., :3].reshape(10, 3).copy(), LABELS),
        (LABELS.astype("float32"), LABELS[::-1].copy()),
        (X[..., :3].reshape(10, 3).copy(), LABELS.astype("float32")),
    ],
    "corr2d": [(X[0], Z[0, :2, :3].copy()), (X[1], Z[0, :5, :1].copy())],
    "linreg": [(X[0], Z[0].T[:, :3].copy(), Z[0, 0, :3].copy())],
    "masked_softmax": [
        (X[:, :3, :4].copy(), lens)
        for lens in (*POSITIVE_LENGTHS, np.array([3, 9], "int32"), np.array([2, 4], "float32"))
    ],
    "sequence_mask": [(X[..., 0].copy(), lens) for lens in (LENS, LENS.astype("float32"))],
    "squared_loss": [(X[0, :, :1].copy(), X[1, :, 0].copy()), (X[0], Z[0])],
    "transpose_output": [(X, 2)],
    "transpose_qkv": [(X, 2)],
}


@compares(*FUNCTIONS_OF_TENSORS)
def compare_functions(both: Both, name: str) -> None:
    for inputs in FUNCTIONS_OF_TENSORS[name]:
        assert_same(*(both.adapter.apply(getattr(d2l, name), *inputs) for d2l in both))


@compares("Encoder", "Decoder", "AttentionDecoder")
def compare_interfaces(both: Both, name: str) -> None:
    for d2l in both:
        with pytest.raises(NotImplementedError):
            shared.run_interface(both.adapter, getattr(d2l, name))


# Training


@compares("Module", "Classifier", "DataModule", "Trainer")
def compare_training(both: Both) -> None:
    X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    Y = np.array([0, 1, 2, 0, 1, 2], "int32")
    start = {
        "weight": np.random.default_rng(5).normal(size=(4, 3)).astype("float32"),
        "bias": np.array([0.1, 0.2, -0.3], "float32"),
    }
    for clip in (0, 0.05):
        results = [
            both.adapter.fit_classifier(X, Y, 0.5, 3, clip, d2l=d2l, start=start) for d2l in both
        ]
        (_, ours, our_board), (_, theirs, their_board) = results
        for name, before in start.items():
            assert np.abs(ours[name] - before).max() > 1e-3
            assert_same(ours[name], theirs[name])
        assert our_board.keys() == their_board.keys()
        for label, curve in our_board.items():
            points = [(float(p.x), float(p.y)) for p in their_board[label]]
            if label == "train_loss":  # with so few batches, upstream draws nothing
                assert (len(curve), len(points)) == (3, 0)
            else:
                assert_same([*map(tuple, curve)], points, 1e-4)


@compares("EncoderDecoder", "Seq2Seq")
def compare_prediction(both: Both, name: str) -> None:
    def adapt_to_version(d2l: Any) -> Any:
        """For 1.0.3, use a subclass: our EncoderDecoder itself also returns the state, its subclasses do not."""
        subclass = type("Own", (d2l.EncoderDecoder,), {})
        return d2l if both.is_older else PatchedModule(d2l, EncoderDecoder=subclass)

    translate = getattr(both.oracle, "translate", shared.translate)
    ours, theirs = (
        translate(both.adapter, adapt_to_version(d2l), name, TOKENS, LENS) for d2l in both
    )
    if both.is_older:  # 0.17 predicts with functions
        ours, theirs = ours[0], theirs[0]
    assert_same(ours, theirs)


@compares("init_seq2seq")
def compare_initialization(both: Both) -> None:
    assert_same(*(both.oracle.draw_xavier_parameters(d2l.init_seq2seq) for d2l in both))


@compares("train_seq2seq", "predict_seq2seq")
def compare_seq2seq_functions(both: Both, name: str) -> None:
    vocab = both.ours.Vocab(["a", "b", "c"], reserved_tokens=["<pad>", "<bos>", "<eos>"])
    labels = TOKENS[::-1].astype("int64")
    batch = (TOKENS, LENS, labels, LENS[::-1].copy())

    results = []
    for package in both:
        d2l = package
        if not both.is_older:  # 1.0.3's functions need the state, which its class does not return
            d2l = PatchedModule(package, EncoderDecoder=shared.make_pair_class(both.adapter))
        args = both.adapter, both.oracle, d2l, name, vocab, batch
        results.append(shared.train_or_predict(*args))
    assert_same(*results, 1e-4)


@compares("MaskedSoftmaxCELoss")
def compare_masked_loss(both: Both) -> None:
    pred, lens = both.adapter.tensor(X), both.adapter.tensor(LENS)
    label = both.adapter.label_tensor(TOKENS)
    losses = []
    for d2l in both:
        if "tensorflow" in both.ours.__name__:
            losses.append(d2l.MaskedSoftmaxCELoss(lens)(label, pred))
        else:
            losses.append(d2l.MaskedSoftmaxCELoss()(pred, label, lens))
    assert_same(*map(both.adapter.to_numpy, losses))


@compares("read_data_nmt", "preprocess_nmt", "tokenize_nmt", "build_array_nmt", by=assert_equal)
def compare_nmt_functions(both: Both, d2l: Any) -> Any:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        fake_data.replace_sentences(
            patch, both.ours, Path(folder), "Go.\tVa\xa0!\n\nHi?\tOui, oui\n" * 2
        )
        patch.setattr(both.theirs, "download_extract", both.ours.download_extract)
        text = d2l.preprocess_nmt(d2l.read_data_nmt())
    source, target = d2l.tokenize_nmt(text)
    vocab = both.ours.Vocab(source, 0, ["<pad>", "<bos>", "<eos>"])
    arrays = []
    if hasattr(both.theirs, "build_array_nmt"):
        for num_steps in (2, 6):
            arrays += both.adapter.to_numpy(d2l.build_array_nmt(source, vocab, num_steps))
    dtypes = [array.dtype for array in arrays]
    return text, source, target, d2l.tokenize_nmt(text, 2), _convert_to_lists(arrays), dtypes


@compares("load_data_nmt")
def compare_load_data_nmt(both: Both) -> None:
    text = "\n".join("\t".join(pair) for pair in PAIRS)
    with (
        mock.patch.object(translation, "read", return_value=text),
        mock.patch.object(both.theirs, "read_data_nmt", return_value=text),
    ):
        loaded = [d2l.load_data_nmt(4, 7, 20) for d2l in both]
    (ours, *vocabs), (theirs, *their_vocabs) = loaded
    for vocab, other in zip(vocabs, their_vocabs, strict=True):
        assert vocab.idx_to_token == other.idx_to_token

    def rows(loader: Any) -> list[Any]:
        batches = [[np.asarray(both.adapter.to_numpy(part)) for part in batch] for batch in loader]
        columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
        lines = [[x.tolist(), n, y.tolist(), m] for x, n, y, m in zip(*columns, strict=True)]
        return [[column.dtype for column in columns], *sorted(lines)]

    assert rows(ours) == rows(theirs)


@compares("MTFraEng")
def compare_mt_fra_eng(both: Both) -> None:
    text = (
        "\n".join("\t".join(pair) for pair in PAIRS) + "\nGo\u202f!\tVa\xa0!  Oui\nno tabs here\n"
    )

    def load(d2l: Any) -> Any:
        class Data(d2l.MTFraEng):
            def _download(self) -> str:
                return text

        data = Data(batch_size=4, num_steps=6, num_train=18, num_val=7)
        built = data.build(["i see ."], ["je voir !"])
        arrays = [np.asarray(both.adapter.to_numpy(array)) for array in (*data.arrays, *built)]
        return arrays, data.src_vocab.idx_to_token, data.tgt_vocab.idx_to_token, data

    (arrays, *vocabs, ours), (their_arrays, *their_vocabs, theirs) = map(load, both)
    assert_same(arrays, their_arrays)
    if "mxnet" not in both.ours.__name__:  # upstream's are floats there, ours are integers
        assert [array.dtype for array in arrays] == [array.dtype for array in their_arrays]
    assert vocabs == their_vocabs
    assert ours._preprocess(text) == theirs._preprocess(text)
    for limit in (None, 3):
        lines, their_lines = (
            data._tokenize(data._preprocess(text), limit) for data in (ours, theirs)
        )
        assert [*lines] == [*their_lines]
    for train in (False, True):
        sizes = [[len(batch) for batch in data.get_dataloader(train)] for data in (ours, theirs)]
        assert sizes[0] == sizes[1]


# Linear regression from scratch, and the optimization chapter


@compares("synthetic_data")
def compare_synthetic_data(both: Both) -> None:
    w = both.adapter.tensor(np.array([2, -3.4], "float32"))
    for d2l in both:  # the data are random
        X, y = map(both.adapter.to_numpy, d2l.synthetic_data(w, 4.2, 2000))
        assert (X.shape, y.shape) == ((2000, 2), (2000, 1))
        assert (y[:, 0] - X @ [2, -3.4] - 4.2).std() == pytest.approx(0.01, rel=0.1)


@compares("load_array", "evaluate_loss")
def compare_loaders(both: Both) -> None:
    features, labels = X.reshape(10, 8), Z[..., 0].reshape(10)
    arrays = both.adapter.tensor(features), both.adapter.tensor(labels)
    w = both.adapter.tensor(Z[0, 0].reshape(8, 1))

    def net(X: Any) -> Any:
        return both.ours.linreg(X, w, 0.5)

    results = []
    for d2l in both:
        batches = d2l.load_array(arrays, 4, is_train=False)
        loss = d2l.evaluate_loss(net, batches, both.ours.squared_loss)
        rows = [both.adapter.to_numpy(X) for X, _ in d2l.load_array(arrays, 4)]
        batches = [both.adapter.to_numpy([*batch]) for batch in batches]
        results.append([batches, loss, np.sort(np.concatenate(rows), axis=0)])
    assert_same(*results)


@compares("sgd")
def compare_sgd(both: Both, d2l: Any) -> Any:
    w = both.adapter.descent.variable(Z[0, 0].reshape(8, 1))
    features = both.adapter.tensor(X[0])

    def loss() -> Any:
        return both.ours.reduce_sum(both.ours.linreg(features, w, 0.0) ** 2)

    for _ in range(2):
        both.adapter.descent.sgd([w], loss, 0.1, 5, d2l)
    return both.adapter.to_numpy(w)


@compares("Updater")
def compare_updater(both: Both, d2l: Any) -> Any:
    w = both.adapter.descent.variable(Z[0, 0].copy())
    d2l.Updater([w], 0.1)(5, [both.adapter.tensor(X[0, 0])])
    return both.adapter.to_numpy(w)


@compares("train_2d", "show_trace_2d", by=partial(assert_same, tolerance=1e-3))
def compare_train_2d(both: Both, d2l: Any) -> Any:
    d2l.plt.close("all")
    points = d2l.train_2d(lambda x1, x2, s1, s2: (x1 * 0.8, x2 * 0.5, s1, s2), 5)
    gradient_points = d2l.train_2d(lambda x1, x2, s1, s2, g: (x1 + g(x2), x2, s1, s2), 2, abs)
    if not hasattr(d2l, "show_trace_2d"):
        return points, gradient_points
    d2l.show_trace_2d(lambda x1, x2: x1**2 + 2 * x2**2, points)
    (contours,) = d2l.plt.gca().collections
    axes = describe(d2l.plt.gcf())[0]
    # The contours' extent is not compared: in MXNet, upstream's end at 0.
    return points, gradient_points, contours.levels, axes["lines"], axes["labels"]


@compares("get_data_ch11", "train_ch11", "train_concise_ch11")
def compare_train_ch11(both: Both) -> None:
    table = np.random.default_rng(4).normal(size=(1503, 6)).round(3)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake_data.replace_airfoil(patch, both.ours, Path(folder), table)
        patch.setattr(both.theirs, "download", lambda name: both.ours.download(name, folder))
        loaded = [d2l.get_data_ch11(10, 1000) for d2l in both]
        rows = [
            np.sort(np.concatenate([both.adapter.to_numpy(X) for X, _ in it]), axis=0)
            for it, _ in loaded
        ]
        assert_same(*rows)
        assert [n for _, n in loaded] == [5, 5]
    table = table[:400].astype("float32")
    data = [both.adapter.tensor(array.copy()) for array in (table[:, :5], table[:, 5])]
    batches = both.ours.load_array(data, 20, is_train=False)
    losses = []
    curves = []
    for d2l in both:
        both.adapter.seed(7)
        losses += [
            d2l.train_ch11(both.adapter.descent.take_step, None, {"lr": 0.01}, batches, 5)[1]
        ]
        both.adapter.seed(7)
        optimizer, hyperparams = both.adapter.descent.concise_optimizer(0.01)
        d2l.train_concise_ch11(optimizer, hyperparams, batches, num_epochs=2)
        curves.append(describe(d2l.plt.gcf())[0]["lines"])
    assert_same(*losses, 1e-4)
    assert_same(*curves, 0.03)  # Keras draws other weights than upstream


# Classification


@compares("Benchmark", by=assert_equal)
def compare_benchmark(both: Both, d2l: Any) -> Any:
    with redirect_stdout(StringIO()) as output, d2l.Benchmark("one by one"):
        pass
    return re.sub(r"\d", "0", output.getvalue())


@compares("get_fashion_mnist_labels", by=assert_equal)
def compare_fashion_labels(both: Both, d2l: Any) -> Any:
    return d2l.get_fashion_mnist_labels([*range(9, -1, -1)])


@compares("get_dataloader_workers", by=assert_equal)
def compare_dataloader_workers(both: Both, d2l: Any) -> Any:
    with mock.patch("os.cpu_count", return_value=64):
        return d2l.get_dataloader_workers()


@compares("evaluate_accuracy", "evaluate_accuracy_gpu")
def compare_evaluate_accuracy(both: Both, name: str) -> None:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.label_tensor(LABELS)
    batches = both.ours.load_array(arrays, 4, is_train=False)
    net = both.adapter.build_linear(8, {"weight": Z[0].T[:, :3].copy(), "bias": X[0, 0, :3].copy()})
    assert_same(*(getattr(d2l, name)(net, batches) for d2l in both))


@compares("train_ch6", "TrainCallback", by=assert_nearly_same)
def compare_train_ch6(both: Both, d2l: Any) -> Any:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.label_tensor(LABELS)
    batches = both.ours.load_array(arrays, 1, is_train=False)
    start = {"weight": Z[0].T[:, :3].copy(), "bias": np.zeros(3, "float32")}
    both.adapter.seed(7)
    with redirect_stdout(StringIO()) as output:
        net = both.adapter.descent.train_ch6(
            lambda: both.adapter.build_linear(8, start),
            lambda net: both.adapter.to_numpy(net(arrays[0])),
            *(batches, batches, 2, 0.1),
            d2l=d2l,
        )
    # Upstream also prints its figures' names.
    lines = re.findall(r"(?:training on|loss \d|\d+\.\d examples).*", output.getvalue())
    lines[-1] = lines[-1].split(maxsplit=1)[1]  # without the speed
    return [both.adapter.to_numpy(net(arrays[0])), lines, describe(d2l.plt.gcf())[0]["lines"]]


@compares("train_epoch_ch3", "train_ch3")
def compare_train_ch3(both: Both) -> None:
    """Compare a model from scratch, and a layer with the framework's optimizer; 0.17 fails if they learn little."""
    descent = both.adapter.descent
    features = np.tile(3 * np.eye(3, 8, dtype="float32"), (10, 1)) + 0.3 * X[0, 0]
    labels = np.tile(np.arange(3, dtype="int32"), 10)
    batches = both.ours.load_array(
        (both.adapter.tensor(features), both.adapter.label_tensor(labels)), 8, is_train=False
    )
    start = {"weight": Z[0].T[:, :3].copy(), "bias": X[0, 0, :3].copy()}
    for is_scratch in (True, False):
        results, figures = [], []
        for d2l in both:
            net = both.adapter.build_linear(8, start)
            loss = getattr(descent, "mean_loss", lambda: descent.losses)()
            update = descent.optimizer(net, 0.5)
            if is_scratch:
                params = [descent.variable(array) for array in start.values()]
                net = lambda X, params=params: both.ours.linreg(X, *params)
                loss = descent.losses
                update = descent.updater(params, 0.5)
            metrics = d2l.train_epoch_ch3(net, batches, loss, update)
            d2l.train_ch3(net, batches, batches, loss, 4, update)
            outputs = both.adapter.to_numpy(net(both.adapter.tensor(features[:5])))
            results.append([[float(metric) for metric in metrics], outputs])
            figures.append(describe(d2l.plt.gcf()))
        assert_same(*results)
        assert_same(*(axes.pop("lines") for (axes,) in figures), 1e-4)
        assert figures[0] == figures[1]


@compares("predict_ch3", by=assert_equal)
def compare_predict_ch3(both: Both, d2l: Any) -> Any:
    images = both.adapter.tensor(np.random.default_rng(0).random((6, 28, 28)).astype("float32"))
    labels = both.adapter.label_tensor(np.array([9, 0, 1, 2, 3, 5], "int32"))
    scores = both.adapter.tensor(np.eye(10, dtype="float32")[[9, 1, 1, 2, 3, 4]])
    figures = []
    for n in (6, 3):
        d2l.predict_ch3(lambda X: scores, [(images, labels)], n)
        figures += describe(d2l.plt.gcf())
    return figures


# Recurrent networks

SHAPES = {"W_xh": (7, 4), "W_hh": (4, 4), "b_h": (4,), "W_hq": (4, 7), "b_q": (7,)}
START = {
    name: np.random.default_rng(5).normal(size=shape).astype("float32")
    for name, shape in SHAPES.items()
}


@compares("RNNScratch", "RNNLMScratch", "RNN", "RNNLM")
def compare_language_models(both: Both, d2l: Any, name: str) -> Any:
    rnns = both.oracle.RECURRENT
    both.adapter.seed(7)
    model = rnns.model(name if name.startswith("RNNLM") else "RNNLMScratch", START, d2l=d2l)
    vocab = both.ours.Vocab([*"abcdef"])
    return [rnns.logits(model, TOKENS), rnns.predict(model, "fab", 9, vocab)]


@compares("TimeMachine")
def compare_time_machine(both: Both, d2l: Any) -> Any:
    text = "The Time Machine, by H. G. Wells\n\n I\n" * 3
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake_data.replace_novel(patch, both.ours, Path(folder), text)
        patch.setattr(d2l.TimeMachine, "_download", lambda self: text)
        data = d2l.TimeMachine(4, 5, 20, 10)
        parts = [data.X, data.Y, *next(iter(data.val_dataloader()))]
        numbers = [np.asarray(both.adapter.to_numpy(part)).astype(int) for part in parts]
        return [numbers, data.vocab.idx_to_token, data.build("Tea, now!", data.vocab)[0]]


@compares("count_corpus", by=assert_equal)
def compare_count_corpus(both: Both, d2l: Any) -> Any:
    pairs = [("a", "b"), ("b", "c"), ("a", "b")]
    corpora = [["a", "b"], [], ["a"]], ["b", "a", "b"], [], pairs, [["a"], ("b", "c")], [1, 2, 1]
    return [d2l.count_corpus(tokens).most_common() for tokens in corpora]


@compares("seq_data_iter_random", "seq_data_iter_sequential")
def compare_sequence_iterators(both: Both, d2l: Any, name: str) -> Any:
    """Compare random batches for the same seed."""
    batches = []
    for seed in range(3):
        random.seed(seed)
        batches += [
            both.adapter.to_numpy([*pair]) for pair in getattr(d2l, name)([*range(35)], 2, 5)
        ]
    return batches


@compares(
    *("read_time_machine", "load_corpus_time_machine", "load_data_time_machine", "SeqDataLoader"),
    by=assert_equal,
)
def compare_time_machine_batches(both: Both, d2l: Any) -> Any:
    text = "The Time Machine, by H. G. Wells\n\n I\n" * 5
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake_data.replace_novel(patch, both.ours, Path(folder), text)
        patch.chdir(folder)
        patch.setattr(both.theirs, "download", lambda name: "timemachine.txt")
        corpus, vocab = d2l.load_corpus_time_machine(50)
        results = [d2l.read_time_machine(), corpus, vocab.idx_to_token]
        results.append(d2l.load_corpus_time_machine()[0])
        for is_random in (False, True):
            random.seed(3)
            batches, _ = d2l.load_data_time_machine(3, 4, is_random, 90)
            results += [both.adapter.to_numpy([*pair]) for pair in batches]
            loader = d2l.SeqDataLoader(2, 5, is_random, 90)
            results += [both.adapter.to_numpy([*pair]) for pair in loader]
    return _convert_to_lists(results)


@compares("RNNModelScratch", "predict_ch8", "train_epoch_ch8", "train_ch8")
def compare_scratch_rnns(both: Both) -> None:
    rnns = both.oracle.RECURRENT
    vocab = both.ours.Vocab([*"abcdef"])
    tokens = np.concatenate([TOKENS, TOKENS[::-1]], 1).astype("int64")
    pairs = [(tokens[:, i : i + 2], tokens[:, i + 1 : i + 3]) for i in (0, 2, 4)]
    batches = [[both.adapter.tensor(array.copy()) for array in pair] for pair in pairs]
    results, outputs, figures = [], [], []
    for d2l in both:
        values = []
        for is_random, by_sgd in (True, True), (False, True), (False, False):
            net = rnns.make_scratch(START, d2l=d2l)
            values += [rnns.predict_ch8(net, "fab", 9, vocab, d2l=d2l)]
            values += [rnns.train_epoch(net, batches, 0.5, is_random, by_sgd, d2l=d2l)[0]]
            values += [*rnns.params(net), rnns.predict_ch8(net, "fab", 9, vocab, d2l=d2l)]
        with redirect_stdout(StringIO()) as output:
            rnns.train_ch8(net, batches[:2], vocab, 0.5, 11, d2l=d2l)
        # Upstream also prints its figures' names; in Paddle, it prints the perplexity in Chinese.
        pattern = r"<unk><unk>.*|(?<=perplexity )[\d.]+|(?<=困惑度 )[\d.]+"
        outputs.append(re.findall(pattern, output.getvalue(), re.MULTILINE))
        (axes,) = describe(d2l.plt.gcf())
        results.append([values, axes.pop("lines")])
        figures.append(axes)
    assert_same(*results, 1e-4)
    ours, theirs = outputs
    assert ours[-len(theirs) :] == theirs  # MXNet's prints only at the end
    assert len(theirs) >= 3
    assert figures[0] == figures[1]


@compares("RNNModel")
def compare_rnn_models(both: Both) -> None:
    rnns = both.oracle.RECURRENT
    tokens = TOKENS[:, :2].astype("int64")
    for nets in zip(*(rnns.make_rnn_models(7, 4, d2l=d2l) for d2l in both), strict=True):
        logits, _ = (rnns.run_twice(net, tokens)[:2] for net in nets)  # sets their sizes
        both.oracle.MODELS.copy(*nets)
        assert_same(logits, rnns.run_twice(nets[1], tokens)[:2])


@compares("grad_clipping")
def compare_grad_clipping(both: Both) -> None:
    gradients = [X[0], Z[0, 0]]
    for theta in (0.5, 1000.0):
        assert_same(
            *(both.oracle.RECURRENT.clip_gradients(gradients, theta, d2l=d2l) for d2l in both)
        )


@compares("train_batch_ch13", "train_ch13", "evaluate_accuracy_gpus", by=assert_nearly_same)
def compare_train_ch13(both: Both, d2l: Any) -> Any:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.label_tensor(LABELS)
    batches = both.ours.load_array(arrays, 2, is_train=False)
    start = {"weight": Z[0].T[:, :3].copy(), "bias": np.zeros(3, "float32")}
    net = both.adapter.build_linear(8, start)
    devices = [both.ours.cpu()]
    loss = both.adapter.descent.losses
    trainer = both.adapter.descent.optimizer(net, 0.1)
    metrics = [float(x) for x in d2l.train_batch_ch13(net, *arrays, loss, trainer, devices)]
    with redirect_stdout(StringIO()) as output:
        d2l.train_ch13(net, batches, batches, loss, trainer, 2, devices)
    if hasattr(d2l, "evaluate_accuracy_gpus"):
        metrics.append(d2l.evaluate_accuracy_gpus(net, batches))
    (line,) = re.findall(r"loss \d.*", output.getvalue())
    logits = both.adapter.to_numpy(net(arrays[0]))
    return [logits, metrics, line, describe(d2l.plt.gcf())[0]["lines"]]


@compares("split_batch", "split_batch_multi_inputs")
def compare_split_batch(both: Both, d2l: Any, name: str) -> Any:
    rows, labels = both.adapter.tensor(X[0]), both.adapter.label_tensor(np.arange(5, dtype="int32"))
    inputs = [rows, rows] if name == "split_batch_multi_inputs" else rows
    return both.adapter.to_numpy([*getattr(d2l, name)(inputs, labels, [both.ours.cpu()])])


@compares("resnet18")
def compare_resnet18(both: Both) -> None:
    x = both.adapter.tensor(Z.reshape(2, 1, 5, 8))
    nets = []
    for d2l in both:
        both.adapter.seed(7)
        net = d2l.resnet18(3)
        if hasattr(net, "initialize"):
            net.initialize()
        net(x)  # sets its sizes
        nets.append(net)
    if hasattr(nets[0], "state_dict"):  # upstream draws its weights at the first call
        both.oracle.MODELS.copy(*nets)
    assert_same(*(both.adapter.to_numpy(net(x)) for net in nets), 1e-4)


@compares(
    *("box_corner_to_center", "box_center_to_corner", "box_iou", "offset_boxes", "offset_inverse"),
    *("multibox_prior", "multibox_target", "assign_anchor_to_bbox", "nms", "multibox_detection"),
)
def compare_boxes(both: Both, name: str) -> None:
    corners = np.abs(X[0, :, :2])
    array = np.concatenate([corners, corners + np.abs(Z[0, :, :2]) + 0.1], axis=1)
    boxes, reversed_boxes = both.adapter.tensor(array), both.adapter.tensor(array[::-1].copy())
    labels = np.concatenate([np.ones((5, 1), "float32"), array[::-1]], axis=1)[None, :2]
    probs = np.abs(Z[:1, :3, :5]) / np.abs(Z[:1, :3, :5]).sum(axis=1, keepdims=True)
    device = get_device(both.adapter)
    arguments: dict[str, tuple[Any, ...]] = {
        "box_corner_to_center": (boxes,),
        "box_center_to_corner": (boxes,),
        "multibox_prior": (both.adapter.tensor(X[None]), [0.75, 0.5], [1, 2, 0.5]),
        "multibox_target": (boxes[None], both.adapter.tensor(labels)),
        "assign_anchor_to_bbox": (reversed_boxes[:2], boxes, device),
        "nms": (boxes, both.adapter.tensor(Z[1, :, 0].copy()), 0.1),
        "multibox_detection": (
            both.adapter.tensor(probs),
            both.adapter.tensor(X[:1, :, :4].reshape(1, 20)),
            boxes[None],
            0.3,
        ),
    }
    given = [arguments.get(name, (boxes, reversed_boxes))]
    converters = "box_corner_to_center", "box_center_to_corner"
    if name == "box_iou" or (name in converters and both.ours.__name__.endswith("torch")):
        pixels = np.array([[0, 1, 4, 3], [1, 0, 3, 4]], "int32")
        given.append((both.adapter.tensor(pixels),) * len(given[0]))
    for args in given:
        results = [getattr(d2l, name)(*args) for d2l in both]
        tuples = [x if isinstance(x, tuple) else (x,) for x in results]
        for ours, theirs in zip(*tuples, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert_same(*map(both.adapter.to_numpy, tuples))


@compares("bbox_to_rect")
def compare_bbox_to_rect(both: Both) -> None:
    ours, theirs = (d2l.bbox_to_rect((1.0, 2.0, 4.0, 8.0), "r") for d2l in both)
    assert_same(ours.get_bbox().extents, theirs.get_bbox().extents)
    assert ours.get_edgecolor() == theirs.get_edgecolor()


@compares("show_bboxes")
def compare_show_bboxes(both: Both) -> None:
    styles, positions = [], []
    for d2l in both:
        _, axes = d2l.plt.subplots()
        d2l.show_bboxes(axes, both.adapter.tensor(np.abs(X[0, :3, :4])), ["a", "b"], ["w", "r"])
        styles.append([(r.get_edgecolor(), r.get_linewidth(), r.get_fill()) for r in axes.patches])
        styles[-1] += [(text.get_text(), text.get_color()) for text in axes.texts]
        positions.append([r.get_bbox().extents for r in axes.patches])
        positions[-1] += [[*text.get_position(), 0, 0] for text in axes.texts]
    assert styles[0] == styles[1]
    np.testing.assert_allclose(*positions, rtol=1e-5)


@compares("VOC_CLASSES", "VOC_COLORMAP", "voc_colormap2label", "voc_label_indices")
def compare_voc_classes(both: Both) -> None:
    assert both.ours.VOC_CLASSES == both.theirs.VOC_CLASSES
    assert both.ours.VOC_COLORMAP == both.theirs.VOC_COLORMAP
    if not hasattr(both.ours, "voc_colormap2label"):
        return
    tables = [d2l.voc_colormap2label() for d2l in both]
    assert tables[0].dtype == tables[1].dtype
    np.testing.assert_array_equal(*map(both.adapter.to_numpy, tables))
    colors = np.array(both.ours.VOC_COLORMAP, "uint8").reshape(3, 7, 3)
    has_channels_last = both.ours.__name__.endswith("mxnet")
    image = both.adapter.tensor(colors if has_channels_last else colors.transpose(2, 0, 1).copy())
    labels = [d2l.voc_label_indices(image, tables[0]) for d2l in both]
    np.testing.assert_array_equal(*map(both.adapter.to_numpy, labels))


@compares("copyfile", "read_csv_labels", "reorg_test", "reorg_train_valid", by=assert_equal)
def compare_competition_files(both: Both, d2l: Any) -> Any:
    with TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        for part in "train", "test":
            (folder / part).mkdir()
            for i in range(9):
                (folder / part / f"{i}.png").touch()
        lines = "\n".join(f"{i},{'ab'[i % 2]}" for i in range(9))
        (folder / "labels.csv").write_text(f"id,label\n{lines}\n")
        labels = d2l.read_csv_labels(str(folder / "labels.csv"))
        count = d2l.reorg_train_valid(folder_name, labels, 0.3)
        d2l.reorg_test(folder_name)
        folders = [path.relative_to(folder).parent for path in folder.rglob("*.png")]
        # Upstream reads the files in any order, so only their number in each folder is the same.
        return [labels, count, sorted(map(str, folders))]


# Natural language


@compares(
    *("TokenEmbedding", "load_data_imdb", "load_data_ptb", "load_data_snli", "load_data_wiki"),
    *("SNLIDataset", "batchify", "read_imdb", "read_ptb", "read_snli", "get_tokens_and_segments"),
    *("subsample", "get_centers_and_contexts", "get_negatives", "RandomGenerator"),
    by=assert_equal,
)
def compare_language_data(both: Both, d2l: Any) -> Any:
    """Compare data and random draws for the same seeds; upstream reads files in any order."""
    if not hasattr(both.theirs, "read_ptb"):
        return None
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        work = Path(folder) / "work"
        work.mkdir()
        patch.chdir(work)
        fake_data.replace_language(patch, both.ours, Path(folder))
        patch.setattr(both.theirs, "download_extract", both.ours.download_extract)
        patch.setattr(both.theirs, "get_dataloader_workers", lambda: 0)
        with redirect_stdout(StringIO()) as output:
            results = [*_draw_skip_grams(both.adapter, d2l), *_read_texts(both.adapter, d2l)]
    return _convert_to_lists([*results, output.getvalue()])


def _convert_to_lists(x: Any) -> Any:
    """Convert arrays to lists, which are compared exactly: they contain integers, words and numbers from files."""
    if isinstance(x, (list, tuple)):
        return [*map(_convert_to_lists, x)]
    return x.tolist() if isinstance(x, np.ndarray) else x


def _draw_skip_grams(adapter: Adapter, d2l: Any) -> Iterator[Any]:
    random.seed(1)
    sentences = d2l.read_ptb()
    vocab = d2l.Vocab(sentences)
    subsampled, counter = d2l.subsample(sentences, vocab)
    centers, contexts = d2l.get_centers_and_contexts([vocab[line] for line in subsampled], 3)
    negatives = d2l.get_negatives(contexts, vocab, counter, 2)
    generator = d2l.RandomGenerator([2, 3, 4])
    yield [subsampled, [*map(list, sorted(counter.items()))], centers, contexts, negatives]
    yield [generator.draw() for _ in range(20)]
    yield adapter.to_numpy([*d2l.batchify([*zip(centers, contexts, negatives, strict=True)])])
    yield d2l.get_tokens_and_segments(["a", "b"], ["c"])


def _read_texts(adapter: Adapter, d2l: Any) -> Iterator[Any]:
    embedding = d2l.TokenEmbedding("glove.6b.50d")
    yield [
        embedding.idx_to_token,
        *adapter.to_numpy([embedding.idx_to_vec, embedding[["w2", "x"]]]),
    ]
    random.seed(2)
    for load, *sizes in ("ptb", 8, 2, 3), ("wiki", 8, 9), ("imdb", 4, 6), ("snli", 4, 3):
        *loaders, vocab = getattr(d2l, f"load_data_{load}")(*sizes)
        yield [vocab.idx_to_token, [len(loader) for loader in loaders]]
        for loader in loaders:
            batches = [_flatten_pairs(adapter.to_numpy([*batch])) for batch in loader]
            rows = [row for batch in batches for row in zip(*batch, strict=True)]
            # The padding of skip-grams depends on the random batch, so zeros are not compared.
            yield sorted([[float(n) for x in row for n in np.ravel(x) if n] for row in rows])
    for is_train in (True, False):
        texts, labels = d2l.read_imdb("../data/aclImdb", is_train)
        yield [sorted(texts), labels, *d2l.read_snli("../data/snli_1.0", is_train)]
    pairs = d2l.SNLIDataset((["a b"] * 5, ["c"] * 5, [0, 1, 2, 0, 1]), 3)
    yield adapter.to_numpy([pairs.premises, pairs.hypotheses, pairs.labels, *pairs[1]])


def _flatten_pairs(batch: Any) -> list[Any]:
    """Return the arrays of a batch, some of which may be in pairs."""
    return [x for part in batch for x in (part if isinstance(part, list) else [part])]


@compares(
    *("_get_next_sentence", "_get_nsp_data_from_paragraph", "_get_mlm_data_from_tokens"),
    *("_replace_mlm_tokens", "_pad_bert_inputs"),
    by=assert_equal,
)
def compare_bert_examples(both: Both, d2l: Any) -> Any:
    random.seed(1)
    texts = [[[*"abcde"], [*"c"], [*"defgh"], [*"g"]], [[*"hi"], [*"klmnopq"]]]
    vocab = both.ours.Vocab([*texts[0], *texts[1]], 0, ["<pad>", "<mask>", "<cls>", "<sep>"])
    pairs = [
        pair for t in texts * 30 for pair in d2l._get_nsp_data_from_paragraph(t, texts, vocab, 14)
    ]
    examples = [(*d2l._get_mlm_data_from_tokens(pair[0], vocab), *pair[1:]) for pair in pairs]
    padded = [*map(both.adapter.to_numpy, d2l._pad_bert_inputs(examples, 14, vocab))]
    others = (
        d2l._get_next_sentence(*texts[1], texts),
        d2l._replace_mlm_tokens([*"abc"], [0, 2], 1, vocab),
    )
    return _convert_to_lists([pairs, examples, padded, others])


@compares("predict_sentiment", "predict_snli", by=assert_equal)
def compare_text_predictions(both: Both, d2l: Any) -> Any:
    vocab = both.ours.Vocab([*"abc"])
    table = np.eye(4, dtype="float32")
    weight = np.abs(X[0, :4, :3])
    network = both.oracle.LANGUAGE.classifier(table, weight[:, :2])
    answers = [_predict(network, d2l.predict_sentiment, vocab, x) for x in ("a b", "c", "x c")]
    network = both.oracle.LANGUAGE.classifier(table, weight)
    for pair in (["a"], ["b", "c"]), (["c"], ["c"]), (["b"], ["x"]):
        answers.append(_predict(network, d2l.predict_snli, vocab, *pair))
    return answers


def _predict(network: Any, function: Any, vocab: Any, *texts: Any) -> str:
    """Predict without dropout, which upstream's predict_sentiment does not turn off."""
    if hasattr(network, "eval"):
        network.eval()
    return function(network, vocab, *texts)


@compares("show_list_len_pair_hist", by=assert_equal)
def compare_length_histograms(both: Both, d2l: Any) -> Any:
    d2l.plt.close("all")
    d2l.show_list_len_pair_hist(["a", "b"], "x", "y", [[1], [1, 2], [3]], [[1] * 4, []])
    (axes,) = d2l.plt.gcf().axes
    bars = [(bar.get_x(), bar.get_height(), bar.get_hatch()) for bar in axes.patches]
    return [bars, axes.get_xlabel(), [t.get_text() for t in axes.get_legend().texts]]


# Models


@compares("LinearRegression", "LinearRegressionScratch", "SGD")
def compare_regressions(both: Both, name: str) -> None:
    """Compare trained models; LinearRegressionScratch uses its package's SGD."""
    name = "LinearRegressionScratch" if name == "SGD" else name
    args = (3, 0.1) if name == "LinearRegressionScratch" else (0.1,)
    start = Z[0, 0, :3].copy(), Z[0, 1, :1].copy()
    fit = both.oracle.MODELS.fit
    weights = []
    for d2l in both:
        model = getattr(d2l, name)(*args)
        weights.append(fit(model, make_data(both.adapter, d2l), 3, d2l, start))
    assert_same(*weights)
    assert_same(weights[0][0], start)


@compares("SyntheticRegressionData")
def compare_regression_data(both: Both, d2l: Any) -> Any:
    w = both.adapter.tensor(np.array([2, -3.4], "float32"))
    both.adapter.seed(0)
    data = d2l.SyntheticRegressionData(w, 4.2, 0.1, 20, 6, 4)
    batches = [[*map(both.adapter.to_numpy, batch)] for batch in data.val_dataloader()]
    return [both.adapter.to_numpy(data.X), both.adapter.to_numpy(data.y), batches]


IMAGE_MODELS = {
    "LeNet": ((), np.random.default_rng(6).normal(size=(2, 1, 28, 28))),
    "SoftmaxRegression": ((3, 0.1), np.random.default_rng(6).normal(size=(2, 1, 4, 4))),
    "Residual": ((8, True, 2), np.random.default_rng(6).normal(size=(2, 4, 5, 5))),
    "ResNeXtBlock": ((8, 4, 1, True), np.random.default_rng(6).normal(size=(2, 4, 5, 5))),
}


@compares(*IMAGE_MODELS)
def compare_image_models(both: Both, name: str) -> None:
    args = IMAGE_MODELS[name][0]
    images = IMAGE_MODELS[name][1].astype("float32")
    args = both.layer_args.get(name, args)
    models = both.oracle.MODELS
    ours, theirs = (getattr(d2l, name)(*args) for d2l in both)
    for model in (ours, theirs):
        models.predict(model, images)
    models.copy(ours, theirs)
    assert_same(*(models.predict(model, images, training=True) for model in (ours, theirs)), 1e-4)


def make_recurrent_model(both: Both, d2l: Any, name: str) -> Any:
    is_scratch = name == "RNNLMScratch"
    rnn = d2l.RNNScratch(7, 4) if is_scratch else both.oracle.RECURRENT.make_layer(d2l, 7, 4)
    return getattr(d2l, name)(rnn, 7)


INITIALIZED: dict[str, tuple[Any, ...]] = {
    **{name: inputs[-1] for name, inputs in LAYERS.items()},
    **{name: (images.astype("float32"),) for name, (_, images) in IMAGE_MODELS.items()},
    "resnet18": (Z.reshape(2, 1, 5, 8),),
    **dict.fromkeys(("RNNLM", "RNNLMScratch"), (TOKENS.astype("int64"),)),
}


@pytest.mark.release("jax")
@pytest.mark.parametrize("name", INITIALIZED)
def test_initial_parameters_match_upstream(both: Both, name: str) -> None:
    """Compare the names, the order and the seeded values of the parameters of a layer called for the first time."""
    if not all(hasattr(d2l, name) for d2l in both) or name in find_reasons(both):
        pytest.skip("names that one of the packages lacks, or that cannot be compared")
    args = both.layer_args.get(name, IMAGE_MODELS.get(name, ((3,), None))[0])
    results = []
    for d2l in both:
        both.oracle.seed(3)
        is_recurrent = name.startswith("RNN")
        net = make_recurrent_model(both, d2l, name) if is_recurrent else getattr(d2l, name)(*args)
        results.append(both.oracle.initial_parameters(net, *INITIALIZED[name]))
    ours, theirs = results
    assert [*ours] == [*theirs]
    assert_same([*ours.values()], [*theirs.values()])


@compares("nn_Module")
def compare_nn_module(both: Both) -> None:
    assert both.ours.nn_Module is both.theirs.nn_Module


@compares("init_cnn")
def compare_init_cnn(both: Both, d2l: Any) -> Any:
    both.adapter.seed(0)
    net = both.adapter.build_linear(8, None)
    d2l.init_cnn(net)
    return both.adapter.to_numpy(net.weight)


@compares("update_D", "update_G")
def compare_gan_updates(both: Both, d2l: Any) -> Any:
    models = both.oracle.MODELS
    real, noise = both.adapter.tensor(X[0, :, :3].copy()), both.adapter.tensor(Z[0, :, :2].copy())
    net_D = models.dense(Z[1, :3, :1].copy(), Z[1, 0, :1].copy())
    net_G = models.dense(X[1, :2, :3].copy(), X[1, 0, :3].copy())
    optimizer_D, optimizer_G = models.optimizer(net_D, 0.5), models.optimizer(net_G, 0.5)
    for _ in range(2):
        losses = [
            d2l.update_D(real, noise, net_D, net_G, models.loss, optimizer_D),
            d2l.update_G(noise, net_D, net_G, models.loss, optimizer_G),
        ]
    return both.adapter.to_numpy([*losses, net_D(real), net_G(noise)])


@compares("HPOSearcher", "HPOScheduler")
def compare_abstract_hpo(both: Both, name: str) -> None:
    for d2l in both:
        instance = getattr(d2l, name)()
        with pytest.raises((NotImplementedError, TypeError)):  # upstream's method lacks self
            instance.sample_configuration() if name == "HPOSearcher" else instance.suggest()


@compares("RandomSearcher", "BasicScheduler", "HPOTuner")
def compare_hpo(both: Both, d2l: Any) -> Any:
    import torch

    numbers = iter([3.0, 1.0, 2.0])
    space = {"a": SimpleNamespace(rvs=lambda: next(numbers))}
    searcher = d2l.RandomSearcher(space, {"a": 5.0})
    tuner = d2l.HPOTuner(d2l.BasicScheduler(searcher), lambda a: torch.tensor(a / 10))
    with redirect_stdout(StringIO()):
        tuner.run(4)
    trials = [[trial["config"]["a"], trial["error"]] for trial in tuner.records]
    return [trials, [tuner.incumbent["a"], tuner.incumbent_error], tuner.incumbent_trajectory]


@compares("SuccessiveHalvingScheduler", by=assert_equal)
def compare_successive_halving(both: Both, d2l: Any) -> Any:
    import torch

    results = []
    for args in (2, 1, 8), (3, 2, 20), (2, 4, 4), (4, 1, 16, 1.5):
        numbers = iter(np.random.default_rng(3).normal(size=999).tolist())
        searcher = d2l.RandomSearcher({"a": SimpleNamespace(rvs=lambda: next(numbers))}, {"a": 0.5})  # noqa: B023
        scheduler = d2l.SuccessiveHalvingScheduler(searcher, *args)
        tuner = d2l.HPOTuner(scheduler, lambda a, max_epochs: torch.tensor(a**2 / max_epochs))
        with redirect_stdout(StringIO()):
            tuner.run(60)
        results.append([(trial["config"], trial["error"]) for trial in tuner.records])
        results.append([scheduler.rung_levels, scheduler.K, scheduler.queue])
        results.append(dict(scheduler.all_observed_error_at_rungs))
        results.append(scheduler.get_top_n_configurations(args[1], 2))
    return results


@compares("HPOTrainer")
def compare_validation_error(both: Both, d2l: Any) -> Any:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.label_tensor(LABELS)
    trainer = d2l.HPOTrainer(max_epochs=1)
    net = both.adapter.build_linear(8, {"weight": Z[0].T[:, :3].copy(), "bias": X[0, 0, :3].copy()})
    trainer.model = d2l.Classifier()
    trainer.model.net = net
    trainer.val_dataloader = both.ours.load_array(arrays, 5, is_train=False)
    trainer.num_val_batches = 2
    return float(trainer.validation_error())


@compares("rbfkernel")
def compare_rbfkernel(both: Both) -> None:
    points = X[0, :, 0].astype("float64"), Z[0, :4, 0].astype("float64")
    for scale in ([], [0.2]):
        assert_same(*(d2l.rbfkernel(*points, *scale) for d2l in both))


@compares("DATA_HUB")
def compare_data_hub(both: Both) -> None:
    ours, theirs = ({name: entry[1] for name, entry in d2l.DATA_HUB.items()} for d2l in both)
    assert theirs.items() <= ours.items()


# Recommender systems

USERS, ITEMS, NEGATIVES, STARS = (
    np.random.default_rng(8 + i).integers(0, n, 20) for i, n in enumerate((4, 6, 6, 5))
)


def make_ratings() -> Any:
    """Return ratings; users and items are counted from 1, and each rating has its own time."""
    from pandas import DataFrame

    users, items = np.r_[0:4, USERS] + 1, np.r_[0:4, ITEMS] + 1
    times = np.random.default_rng(9).permutation(24)
    return DataFrame({"user": users, "item": items, "stars": np.r_[0:4, STARS] + 1, "at": times})


@compares("split_data_ml100k", "load_data_ml100k")
def compare_rating_splits(both: Both) -> None:
    data = make_ratings()
    tables = []
    lists = []
    for d2l in both:
        both.adapter.seed(7)
        train, test = d2l.split_data_ml100k(data, 4, 6)
        tables.append([train, test, *d2l.split_data_ml100k(data, 4, 6, "seq-aware")])
        loaded = [d2l.load_data_ml100k(data, 4, 6, x) for x in ("explicit", "implicit")]
        lists.append(_convert_to_lists(both.adapter.to_numpy(loaded)))
    for ours, theirs in zip(*tables, strict=True):
        assert ours.equals(theirs)
        assert [*ours.columns] == [*theirs.columns]
    assert lists[0] == lists[1]


@compares("BPRLoss", "HingeLossbRec")
def compare_pair_losses(both: Both, name: str) -> None:
    scores = both.adapter.tensor(X[0, :, :1].copy()), both.adapter.tensor(Z[0, :, :1].copy())
    assert_same(*(both.adapter.to_numpy(getattr(d2l, name)()(*scores)) for d2l in both))


@compares("hit_and_auc")
def compare_rankings(both: Both) -> None:
    for wanted in ([3], [9, 1], [7]):
        assert_same(*(d2l.hit_and_auc([5, 1, 3, 9], wanted, 2) for d2l in both))


def make_recommender(adapter: Adapter) -> Any:
    """Make a model that scores a user's rating of an item."""
    from mxnet.gluon import nn

    class Recommender(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.users, self.items = nn.Embedding(6, 3), nn.Embedding(6, 3)
            for layer, start in (self.users, X), (self.items, Z):
                layer.initialize()
                layer.weight.set_data(adapter.tensor(start.reshape(-1)[:18].reshape(6, 3)))

        def forward(self, user: Any, *others: Any) -> Any:
            *sequences, item = others
            bonus = sequences[0].sum(1) if sequences else 0
            return (self.users(user) * self.items(item)).sum(1) + bonus

    return Recommender()


@compares("evaluate_ranking")
def compare_evaluate_ranking(both: Both) -> None:
    """Compare with equally many users and items, since upstream ranks as many items as there are users."""
    known, wanted = {0: [0], 1: [2, 3], 2: [1], 3: [3]}, {0: [1], 1: [0], 2: [3], 3: [0]}
    seq = both.adapter.tensor(X[0, :4].copy())
    args = make_recommender(both.adapter), wanted, seq, known, 4, 4, [both.ours.cpu()]
    assert_same(*([*map(float, d2l.evaluate_ranking(*args))] for d2l in both))


@compares("train_ranking", "train_recsys_rating")
def compare_recommender_training(both: Both, d2l: Any, name: str) -> Any:
    """Compare training, but not the printed losses: upstream prints sums of sums, ours prints the plotted losses."""
    from mxnet import gluon

    last = STARS.astype("float32") if name == "train_recsys_rating" else NEGATIVES
    columns = [both.adapter.tensor(column) for column in (USERS, ITEMS, last)]
    batches = [[column[i : i + 10] for column in columns] for i in (0, 10)]
    net = make_recommender(both.adapter)
    devices = [both.ours.cpu()]
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    evaluator = mock.Mock(return_value=(0.5, 0.25) if name == "train_ranking" else 0.5)
    args = gluon.loss.L2Loss(), trainer, 2, devices, evaluator
    if name == "train_ranking":
        args = d2l.BPRLoss(), trainer, None, 6, 6, 2, devices, evaluator, "known", 2
    with redirect_stdout(StringIO()) as output:
        getattr(d2l, name)(net, batches, "test", *args)
    metrics = re.findall(r"test .*", output.getvalue())
    scores = both.adapter.to_numpy(net(*columns[:2]))
    lines = describe(d2l.plt.gcf())[0]["lines"]
    return [scores, metrics, lines, [len(call.args) for call in evaluator.mock_calls]]


@compares("CTRDataset", by=assert_equal)
def compare_ctr_dataset(both: Both, d2l: Any) -> Any:
    """Compare values, not their numbers, which upstream assigns at random."""
    fields = np.random.default_rng(3).integers(0, 4, (30, 3))
    lines = ["\t".join(map(str, row)) for row in np.c_[fields[:, 0] % 2, fields]]
    with TemporaryDirectory() as folder:
        file = Path(folder, "rows.csv")
        file.write_text("\n".join([*lines, "1\t2"]), encoding="utf-8")
        data = d2l.CTRDataset(str(file), min_threshold=7, num_feat=3)
        other = d2l.CTRDataset(str(file), data.feat_mapper, data.defaults, num_feat=3)
    values = [{number: value for value, number in x.items()} for x in data.feat_mapper.values()]
    rows = []
    for n in range(len(data)):
        numbers = both.adapter.to_numpy(data[n][0]) - both.adapter.to_numpy(data.offsets)
        rows.append([x.get(int(i), "rare") for x, i in zip(values, numbers, strict=True)])
    assert "rare" in {value for row in rows for value in row}
    sizes = [data.field_dims.tolist(), data.offsets.tolist(), other.field_dims.tolist()]
    return [sizes, rows, [float(other[n][1][0]) for n in range(30)]]


# Text and small helpers


@compares("check_len", "tokenize", "truncate_pad")
def compare_text_helpers(both: Both) -> None:
    for d2l in both if hasattr(both.theirs, "check_len") else ():
        d2l.check_len([1, 2], 2)
        with pytest.raises((ValueError, AssertionError)):
            d2l.check_len([1, 2], 3)
    if hasattr(both.theirs, "tokenize"):
        lines = ["the time  machine", "", "by h g"]
        assert_same(*(d2l.tokenize(lines) for d2l in both))
        assert_same(*(d2l.tokenize(lines, "char") for d2l in both))
        for n in (2, 5):
            assert_same(*(d2l.truncate_pad([1, 2, 3], n, 0) for d2l in both))


@compares("Vocab")
def compare_vocabulary(both: Both) -> None:
    tokens = [["go", "."], ["hi", "."], ["go", "!"]]
    for args in ((tokens,), (tokens, 2), (tokens, 2, ["<pad>"]), (["a", "b", "a"],), ()):
        ours, theirs = (d2l.Vocab(*args) for d2l in both)
        assert ours.token_freqs == theirs.token_freqs
        assert len(ours) == len(theirs)
        assert ours.idx_to_token == theirs.idx_to_token
        assert ours[["go", "x"]] == theirs[["go", "x"]]
        assert (ours[5], ours[None, "go"]) == (theirs[5], theirs[None, "go"])
        assert ours.unk == theirs.unk
        indices = list(range(len(ours)))
        assert len(ours) == 1 or ours.to_tokens(indices) == theirs.to_tokens(indices)


@compares("bleu", by=partial(assert_same, tolerance=1e-6))
def compare_bleu(both: Both, d2l: Any) -> Any:
    sentences = ("a b c d", "a b c d", 4), ("a b x c", "a b c", 2), ("a a a", "a b", 1)
    return [d2l.bleu(*args) for args in sentences]


@compares("check_shape")
def compare_shapes(both: Both) -> None:
    for d2l in both:
        d2l.check_shape(both.adapter.tensor(X), (2, 5, 8))
        with pytest.raises((ValueError, AssertionError)):
            d2l.check_shape(both.adapter.tensor(X), (2, 5, 7))


@compares("HyperParameters", "add_to_class", by=assert_equal)
def compare_hyper_parameters(both: Both, d2l: Any) -> Any:
    class A(d2l.HyperParameters):
        def __init__(self, a: int, b: int = 2, _c: int = 3, *rest: int, d: int = 4) -> None:
            local = [a, d]
            self.save_hyperparameters(ignore=["b"])
            assert local

    instance = A(1, 2, 3, 5)

    @d2l.add_to_class(A)
    def twice(self: Any) -> int:
        return 2 * self.a

    assert instance.hparams == {"a": 1, "rest": (5,), "d": 4, "local": [1, 4]}
    return instance.twice(), hasattr(instance, "b"), hasattr(instance, "_c"), instance.local


@compares("Accumulator", by=assert_equal)
def compare_accumulator(both: Both, d2l: Any) -> Any:
    sums = d2l.Accumulator(2)
    sums.add(1, 2.5)
    sums.add(3, 4)
    before = [sums[0], sums[1]]
    sums.reset()
    return [before, [sums[0], sums[1]]]


@compares("cpu", "gpu", "num_gpus", "try_gpu")
def compare_devices(both: Both) -> None:
    if "mps" in str(both.ours.try_gpu()):
        pytest.skip("upstream does not find Apple's GPU")
    names = ["cpu", "num_gpus", "try_gpu"]
    if both.ours.num_gpus():  # some frameworks cannot refer to a missing GPU
        names.append("gpu")
    names = [name for name in names if hasattr(both.theirs, name)]
    ours, theirs = ([getattr(d2l, name)() for name in names] for d2l in both)
    assert both.adapter.to_numpy(ours) == both.adapter.to_numpy(theirs)


@compares("try_all_gpus", by=assert_equal)
def compare_try_all_gpus(both: Both, d2l: Any) -> Any:
    return both.adapter.to_numpy(d2l.try_all_gpus())


# Figures


@compares("plot", "set_axes", "set_figsize", "annotate", "plt", by=assert_equal)
def compare_plots(both: Both, d2l: Any) -> Any:
    x = np.arange(4.0)
    d2l.plt.close("all")
    d2l.plot(x, [x**2, 2 * x], "x", "f(x)", legend=["a", "b"], xlim=[0, 3], figsize=(4, 2.5))
    if hasattr(both.theirs, "annotate"):  # upstream's JAX package lacks it
        d2l.annotate("here", (1, 1), (2, 5))
    first = describe(d2l.plt.gcf())
    d2l.plt.close("all")
    d2l.set_figsize((5, 3))
    axes = d2l.plt.gca()
    d2l.plot([1, 2, 4], yscale="log", axes=axes, figsize=(5, 3))
    d2l.set_axes(axes, "a", "b", [0, 2], [1, 5], "linear", "log", ["one"])
    return [*first, *describe(d2l.plt.gcf())]


@compares("show_heatmaps")
def compare_heatmaps(both: Both) -> None:
    weights = np.random.default_rng(0).random((2, 3, 4, 5)).astype("float32")

    def draw(d2l: Any) -> list[Any]:
        d2l.plt.close("all")
        titles = ["a", "b", "c"]
        d2l.show_heatmaps(both.adapter.tensor(weights), "Keys", "Queries", titles, (7, 4))
        grid = describe(d2l.plt.gcf())
        d2l.plt.close("all")
        d2l.show_heatmaps(both.adapter.tensor(weights[:1, :1]), "K", "Q", cmap="Blues")
        return [*grid, *describe(d2l.plt.gcf())]

    ours, theirs = draw(both.ours), draw(both.theirs)
    # Upstream scales each map separately, so the limits differ if there are several.
    ours[:6], theirs[:6] = map(drop_limits, ours[:6]), map(drop_limits, theirs[:6])
    assert ours == theirs


@compares("show_images", by=assert_equal)
def compare_images(both: Both, d2l: Any) -> Any:
    images = np.random.default_rng(0).random((3, 4, 4)).astype("float32")
    d2l.plt.close("all")
    # There are no axes for the third image.
    axes = d2l.show_images(both.adapter.tensor(images), 1, 2, titles=["a", "b", "c"], scale=2)
    assert len(axes) == 2
    return describe(d2l.plt.gcf())


@compares("frozen_lake", "make_env")
def compare_lakes(both: Both, name: str) -> None:
    args = (3,) if name == "frozen_lake" else ("FrozenLake-v1", 3)
    with mock.patch.dict(sys.modules, gym=SimpleNamespace(make=make_gym_environment)):
        ours, theirs = (getattr(d2l, name)(*args) for d2l in both)
        if name == "make_env":
            for d2l in both:
                with pytest.raises(ValueError, match="env"):
                    d2l.make_env("CartPole-v1")
    assert ours.pop("desc").tolist() == theirs.pop("desc").tolist()
    assert ours.pop("env").P == theirs.pop("env").P
    assert ours == theirs


def make_gym_environment(name: str, **settings: Any) -> Any:
    """Make an environment of gymnasium, with those attributes of gym's environments that upstream uses."""
    import gymnasium

    env = gymnasium.make(name, **settings).unwrapped
    unseeded = SimpleNamespace(seed=lambda seed: None)
    return SimpleNamespace(
        desc=env.desc,
        P=env.P,
        nS=env.observation_space.n,
        nA=env.action_space.n,
        seed=unseeded.seed,
        action_space=SimpleNamespace(seed=unseeded.seed, np_random=unseeded),
    )


@compares("show_value_function_progress", "show_Q_function_progress")
def compare_policies(both: Both, name: str) -> None:
    """Compare arrows to the left, down and right: upstream's arrow for up points to the left."""
    lake = np.array([[*"SFFF"], [*"FHFH"], [*"FFFH"], [*"HFFG"]], "S")
    rng = np.random.default_rng(6)
    steps = 30 if name == "show_Q_function_progress" else 3
    values, actions = rng.random((steps, 16)), rng.integers(0, 3, (steps, 16)).astype(float)
    with mock.patch("matplotlib.pyplot.show"):
        figures = []
        for d2l in both:
            d2l.plt.close("all")
            getattr(d2l, name)(lake, values, actions)
            figures.append([describe_map(axes) for axes in d2l.plt.gcf().axes if axes.images])
    assert len(figures[0]) == (11 if steps == 30 else 3)
    assert figures[0] == figures[1]


def describe_map(axes: Any) -> tuple[Any, ...]:
    """Return a map's title, colours, letters, and arrows with their directions."""
    letters = {(*np.round(text.get_position()),): text.get_text() for text in axes.texts}
    arrows = [(x._x, x._y, x._dx, x._dy) for x in axes.patches]  # upstream's
    for quiver in axes.collections:  # ours
        arrows += np.column_stack([quiver.get_offsets(), quiver.U, quiver.V]).tolist()
    (image,) = axes.images
    directions = sorted((x, y, *np.sign(direction)) for x, y, *direction in arrows)
    return axes.get_title(), image.get_cmap().name, image.get_array().tolist(), letters, directions


@compares("Animator", "ProgressBoard")
def compare_boards(both: Both, name: str) -> None:
    def draw(d2l: Any) -> list[Any]:
        d2l.plt.close("all")
        if name == "Animator":
            board = d2l.Animator("epoch", "loss", ["train", "test"], xlim=[1, 3], yscale="log")
            assert (board.X, board.Y) == (None, None)
            for epoch in (1, 2, 3):
                board.add(epoch, (2.0 / epoch, None if epoch == 2 else 3.0 / epoch))
            # What the public replacements of `add` in other programs than Jupyter do.
            second = d2l.Animator(xlabel="epoch", nrows=2, figsize=(3, 4), legend=["a", "b"])
            for x, y, fmt in zip(board.X, board.Y, board.fmts, strict=False):
                second.axes[0].plot(x, y, fmt)
            second.config_axes()
            return [*describe(board.fig), *describe(second.fig), second.axes.shape]
        else:
            board = d2l.ProgressBoard("x", "y", xlim=[0, 10], ylim=[-1, 1])
            for i in range(10):
                board.draw(float(i), np.sin(i), "sin", every_n=2)
                board.draw(float(i), np.cos(i), "cos", every_n=5)
            board.draw(10.0, 0.5, "sin", every_n=2)
            assert board.raw_points == {"sin": [(10, 0.5)], "cos": []}
            assert board.data["sin"][0].x == 0.5
        return describe(board.fig)

    ours, theirs = draw(both.ours), draw(both.theirs)
    theirs[0]["lines"] = theirs[0]["lines"][-2:]  # upstream's ProgressBoard keeps old lines
    assert ours == theirs


def drop_limits(axes: dict[str, Any]) -> dict[str, Any]:
    return {**axes, "images": [image[:2] for image in axes["images"]]}


# Tensor functions


@compares(*FUNCTIONS, *RANDOM, *DTYPES, *KEYS)
def compare_tensors(both: Both, name: str) -> None:
    """Compare tensor functions, random ones only by shape and dtype."""
    ours, theirs = getattr(both.ours, name), getattr(both.theirs, name)
    if name in DTYPES:
        assert ours == theirs
        return
    args = [] if name in KEYS else make_example(both.adapter, name)[0]
    results = [both.adapter.to_numpy(function(*args)) for function in (ours, theirs)]
    if name in RANDOM:
        assert len({(result.shape, result.dtype) for result in results}) == 1
    elif name not in KEYS:
        assert_same(*results)


# All names


# `make test` compares each framework with one version. Only the older one has PaddlePaddle.
@pytest.fixture(
    scope="module",
    params=[
        "1.0.3",
        pytest.param("0.17.6", marks=pytest.mark.release("pytorch", "tensorflow", "mxnet")),
    ],
)
def both(
    request: pytest.FixtureRequest,
    adapter: Adapter,
    oracle: ModuleType,
    load_upstream: Callable[[str], Any],
) -> Iterator[Both]:
    """Return both packages; ours behaves as upstream's version."""
    pair = Both(adapter, adapter.d2l, load_upstream(request.param), oracle, request.param)
    with pytest.MonkeyPatch.context() as patch:
        if pair.is_older:
            patch.setenv("D2L_VERSION", "0.17")
        yield pair


def find_reasons(both: Both) -> dict[str, str]:
    """Return the names that are not compared, with the reasons."""
    in_framework = both.oracle.NOT_COMPARED.get(both.version, {})
    return {**NOT_COMPARED, **NOT_COMPARED_IN[both.version], **in_framework}


# Other tests compare these with NumPy, which is enough for `make test`.
TESTED_AGAINST_NUMPY = {
    *LAYERS,
    *("Classifier", "DataModule", "EncoderDecoder", "Module", "Seq2Seq", "Trainer"),
    *("LeNet", "LinearRegression", "LinearRegressionScratch", "ResNeXtBlock", "Residual"),
    *("SGD", "SoftmaxRegression", "SyntheticRegressionData", "resnet18", "train_seq2seq"),
    *("TrainCallback", "train_ch3", "train_ch6", "train_epoch_ch3"),
    *("evaluate_accuracy_gpus", "train_batch_ch13", "train_ch13"),
    *("get_data_ch11", "train_ch11", "train_concise_ch11"),
    *("RNN", "RNNLM", "RNNLMScratch", "RNNModel", "RNNModelScratch", "RNNScratch"),
    *("predict_ch8", "train_ch8", "train_epoch_ch8"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.release if name in TESTED_AGAINST_NUMPY else [])
        for name in sorted(COMPARED)
    ],
)
def test_name_matches_upstream(
    both: Both, name: str, record_property: Callable[[str, object], None]
) -> None:
    if not hasattr(both.ours, name):
        pytest.skip("names that this package lacks")
    if not hasattr(both.theirs, name):
        pytest.skip("names that upstream lacks in this framework")
    if name in find_reasons(both):
        pytest.skip("names that cannot be compared; the end of the run gives the reasons")
    COMPARED[name](both)
    record_property(f"compared with upstream's {both.version}", name)


def test_every_name_is_compared_or_has_reason(
    both: Both, record_property: Callable[[str, object], None]
) -> None:
    names = both.adapter.exports
    skipped = {name: "upstream lacks it" for name in names if not hasattr(both.theirs, name)}
    skipped |= find_reasons(both)
    assert names <= COMPARED.keys() | skipped.keys()
    for name in sorted(names & skipped.keys()):
        record_property(f"not compared with upstream's {both.version}", f"{name}: {skipped[name]}")
