"""The face against upstream's d2l, 1.0.3 and 0.17.6: name by name, the same weights and input, the same result.

Upstream is installed without its pins, for this alone. Every name that both have is compared, or
stands in ``NOT_COMPARED`` with the reason; how many there were is told at the end of the run.
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
from tests.shim.each.cases import LENGTHS, make_case
from tests.shim.each.oracle import ModuleWith
from tests.shim.each.test_models import data_of
from tests.shim.each.test_tensors import DTYPES, FUNCTIONS, KEYS, RANDOM, example
from tests.shim.each.test_training import PAIRS

pytestmark = pytest.mark.usefixtures("no_figures_left")

X = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
Z = np.random.default_rng(2).normal(size=(2, 5, 8)).astype("float32")
TOKENS = np.array([[1, 2, 3, 0, 4], [6, 5, 4, 3, 2]], "int32")
LENS = np.array([3, 5], "int32")

NOT_COMPARED = {
    **dict.fromkeys(
        ("BananasDataset", "load_data_bananas", "load_data_voc", "read_data_bananas"),
        "it would load the whole data set from the network",
    ),
    **dict.fromkeys(
        ("read_data_ml100k", "split_and_load_ml100k"),
        "it would load the whole data set from the network",
    ),
    **dict.fromkeys(
        ("VOCSegDataset", "read_voc_images", "voc_rand_crop"),
        "it needs torchvision or OpenCV: ours needs neither",
    ),
    "DATA_HUB": "its addresses are not secure: ours are",
    "DATA_URL": "its addresses are not secure: ours are",
    "FashionMNIST": "it would load the whole data set from the network",
    "Timer": "no two times are the same",
    "download": "it would fetch from the network",
    "load_data_fashion_mnist": "it would load the whole data set from the network",
    "download_extract": "it would fetch from the network",
    "hpo_objective_lenet": "it would load the whole data set from the network",
    "extract": "it writes files, some outside their folder: ours refuses these",
    "use_svg_display": "nothing can be seen of it but in Jupyter",
}


OF_ONE_VERSION = {
    "1.0.3": {
        "try_all_gpus": "of no GPU it makes an empty list: ours has the CPU in it, as in 0.17"
    },
    "0.17.6": {},
}


@dataclass(frozen=True)
class Both:
    adapter: Adapter  # the adapter
    ours: Any  # the face itself
    theirs: Any  # upstream
    oracle: ModuleType
    version: str = "1.0.3"

    @property
    def is_older(self) -> bool:
        return self.version == "0.17.6"

    @property
    def forms(self) -> dict[str, tuple[Any, ...]]:
        """Arguments of layers that both take."""
        older = getattr(self.oracle, "OLDER_FORMS", {}) if self.is_older else {}
        return getattr(self.oracle, "FORMS", shared.FORMS) | older

    def __iter__(self) -> Iterator[Any]:
        return iter((self.ours, self.theirs))


Compare = Callable[[Both], None]
COMPARED: dict[str, Compare] = {}


def same(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    """Arrays, or lists and tuples of them, of the same shapes and values."""
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, tolerance)
    elif isinstance(ours, str) or ours is None:
        assert ours == theirs
    else:
        a, b = np.asarray(ours), np.asarray(theirs)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def equal(ours: Any, theirs: Any) -> None:
    assert ours == theirs


nearly_same = partial(same, tolerance=1e-4)


def compares(*names: str, by: Callable[[Any, Any], None] = same) -> Callable[[Any], Any]:
    """The function below compares these names: each alone where it asks for the ``name``, else all at once.

    Where it asks for a ``d2l`` it is called for either, and what it returns is compared.
    """

    def register(function: Any) -> Any:
        asked = signature(function).parameters

        def compare(both: Both, **given: Any) -> None:
            if "d2l" in asked:
                by(*(function(both, d2l, **given) for d2l in both))
            else:
                function(both, **given)

        once = cache(compare)
        for name in names:
            COMPARED[name] = partial(compare, name=name) if "name" in asked else once
        return function

    return register


# Layers

CASE = make_case(sizes=(8, 8, 8), dtype="float32")
ATTENTION = [(CASE.queries, CASE.keys, CASE.values, lens) for lens in LENGTHS.values()]
# Lengths of zero are left out: upstream then looks at padding, the shim at nothing.
ATTENTION = [
    (*inputs[:3], None if inputs[3] is None else np.maximum(inputs[3], 1).astype("int32"))
    for inputs in ATTENTION
]
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
def layers(both: Both, name: str) -> None:
    args = both.forms[name]
    ours = both.adapter.build(name, *args)
    ours.randomize(*LAYERS[name][-1])
    theirs = both.oracle.twin(ours, getattr(both.theirs, name)(*args), *LAYERS[name][-1])
    for inputs in LAYERS[name]:
        same(ours(*inputs), theirs(*inputs), 1e-4)
        if name in ("DotProductAttention", "AdditiveAttention", "TransformerEncoder"):
            same(ours.attention_weights, theirs.attention_weights)


@compares("masked_softmax", "sequence_mask")
def masks(both: Both, name: str) -> None:
    scores = np.random.default_rng(3).normal(size=(2, 3, 4)).astype("float32")
    given = [(X[..., 0].copy(), LENS)] if name == "sequence_mask" else []
    if name == "masked_softmax":
        given = [(scores, inputs[3]) for inputs in ATTENTION]
    for inputs in given:
        same(*(both.adapter.apply(getattr(d2l, name), *inputs) for d2l in both))


@compares("Encoder", "Decoder", "AttentionDecoder")
def interfaces(both: Both, name: str) -> None:
    for d2l in both:
        with pytest.raises(NotImplementedError):
            shared.run_interface(both.adapter, getattr(d2l, name))


@compares("transpose_qkv", "transpose_output")
def heads(both: Both, name: str) -> None:
    same(*(both.adapter.to_numpy(getattr(d2l, name)(both.adapter.tensor(X), 2)) for d2l in both))


# Training


@compares("Module", "Classifier", "DataModule", "Trainer")
def training(both: Both) -> None:
    X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    Y = np.array([0, 1, 2, 0, 1, 2], "int32")
    start = {
        "weight": np.random.default_rng(5).normal(size=(4, 3)).astype("float32"),
        "bias": np.array([0.1, 0.2, -0.3], "float32"),
    }
    for clip in (0, 0.05):
        done = [
            both.adapter.fit_classifier(X, Y, 0.5, 3, clip, d2l=d2l, start=start) for d2l in both
        ]
        (_, ours, our_board), (_, theirs, their_board) = done
        for name, before in start.items():
            assert np.abs(ours[name] - before).max() > 1e-3
            same(ours[name], theirs[name])
        assert our_board.keys() == their_board.keys()
        for label, curve in our_board.items():
            theirs = [(float(p.x), float(p.y)) for p in their_board[label]]
            if label == "train_loss":  # of fewer batches than points upstream draws nothing
                assert (len(curve), len(theirs)) == (3, 0)
            else:
                same([*map(tuple, curve)], theirs, 1e-4)


@compares("EncoderDecoder", "Seq2Seq")
def prediction(both: Both, name: str) -> None:
    def of_that_time(d2l: Any) -> Any:
        """Made of the class itself, ours gives the state as well, as 0.17's; of a subclass, not."""
        own = type("Own", (d2l.EncoderDecoder,), {})
        return d2l if both.is_older else ModuleWith(d2l, EncoderDecoder=own)

    translate = getattr(both.oracle, "translate", shared.translate)
    ours, theirs = (translate(both.adapter, of_that_time(d2l), name, TOKENS, LENS) for d2l in both)
    if both.is_older:  # which has functions that predict
        ours, theirs = ours[0], theirs[0]
    same(ours, theirs)


@compares("init_seq2seq")
def initialization(both: Both) -> None:
    same(*(both.oracle.xavier(d2l.init_seq2seq) for d2l in both))


@compares("train_seq2seq", "predict_seq2seq")
def functions(both: Both, name: str) -> None:
    vocab = both.ours.Vocab(["a", "b", "c"], reserved_tokens=["<pad>", "<bos>", "<eos>"])
    labels = TOKENS[::-1].astype("int64")
    batch = (TOKENS, LENS, labels, LENS[::-1].copy())

    def lent(d2l: Any) -> Any:
        """The functions of 1.0.3 want the state as well, which its own class does not give."""
        return (
            d2l if both.is_older else ModuleWith(d2l, EncoderDecoder=shared.make_pair(both.adapter))
        )

    given = name, vocab, batch
    same(*(shared.functions(both.adapter, both.oracle, lent(d2l), *given) for d2l in both), 1e-4)


@compares("load_data_nmt")
def batches(both: Both) -> None:
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
def sentences(both: Both) -> None:
    text = (
        "\n".join("\t".join(pair) for pair in PAIRS) + "\nGo\u202f!\tVa\xa0!  Oui\nno tabs here\n"
    )

    def made(d2l: Any) -> Any:
        class Data(d2l.MTFraEng):
            def _download(self) -> str:
                return text

        data = Data(batch_size=4, num_steps=6, num_train=18, num_val=7)
        built = data.build(["i see ."], ["je voir !"])
        arrays = [np.asarray(both.adapter.to_numpy(array)) for array in (*data.arrays, *built)]
        return arrays, data.src_vocab.idx_to_token, data.tgt_vocab.idx_to_token, data

    (arrays, *vocabs, ours), (their_arrays, *their_vocabs, theirs) = map(made, both)
    same(arrays, their_arrays)
    if "mxnet" not in both.ours.__name__:  # which makes floats of a list: ours are integers
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


@compares("linreg", "squared_loss")
def formulas(both: Both, name: str) -> None:
    given = [(X[0], Z[0].T[:, :3].copy(), Z[0, 0, :3].copy())]
    if name == "squared_loss":
        given = [(X[0, :, :1].copy(), X[1, :, 0].copy()), (X[0], Z[0])]
    for inputs in given:
        same(*(both.adapter.apply(getattr(d2l, name), *inputs) for d2l in both))


@compares("synthetic_data")
def examples(both: Both) -> None:
    w = both.adapter.tensor(np.array([2, -3.4], "float32"))
    for d2l in both:  # drawn at random
        X, y = map(both.adapter.to_numpy, d2l.synthetic_data(w, 4.2, 2000))
        assert (X.shape, y.shape) == ((2000, 2), (2000, 1))
        assert (y[:, 0] - X @ [2, -3.4] - 4.2).std() == pytest.approx(0.01, rel=0.1)


@compares("load_array", "evaluate_loss")
def in_batches(both: Both) -> None:
    features, labels = X.reshape(10, 8), Z[..., 0].reshape(10)
    arrays = both.adapter.tensor(features), both.adapter.tensor(labels)
    w = both.adapter.tensor(Z[0, 0].reshape(8, 1))

    def net(X: Any) -> Any:
        return both.ours.linreg(X, w, 0.5)

    kept = []
    for d2l in both:
        batches = d2l.load_array(arrays, 4, is_train=False)
        kept.append([[both.adapter.to_numpy(part) for part in batch] for batch in batches])
        kept[-1].append([d2l.evaluate_loss(net, batches, both.ours.squared_loss)])
        rows = [both.adapter.to_numpy(X) for X, _ in d2l.load_array(arrays, 4)]
        kept[-1].append([np.sort(np.concatenate(rows), axis=0)])
    same(*kept)


@compares("sgd")
def descent(both: Both, d2l: Any) -> Any:
    w, features = both.adapter.descent.variable(Z[0, 0].reshape(8, 1)), both.adapter.tensor(X[0])

    def loss() -> Any:
        return both.ours.reduce_sum(both.ours.linreg(features, w, 0.0) ** 2)

    for _ in range(2):
        both.adapter.descent.sgd([w], loss, 0.1, 5, d2l)
    return both.adapter.to_numpy(w)


@compares("Updater")
def updates(both: Both, d2l: Any) -> Any:
    w = both.adapter.descent.variable(Z[0, 0].copy())
    d2l.Updater([w], 0.1)(5, [both.adapter.tensor(X[0, 0])])
    return both.adapter.to_numpy(w)


@compares("train_2d", "show_trace_2d", by=partial(same, tolerance=1e-3))
def trace(both: Both, d2l: Any) -> Any:
    d2l.plt.close("all")
    points = d2l.train_2d(lambda x1, x2, s1, s2: (x1 * 0.8, x2 * 0.5, s1, s2), 5)
    more = d2l.train_2d(lambda x1, x2, s1, s2, g: (x1 + g(x2), x2, s1, s2), 2, abs)
    if not hasattr(d2l, "show_trace_2d"):
        return points, more
    d2l.show_trace_2d(lambda x1, x2: x1**2 + 2 * x2**2, points)
    (contours,) = d2l.plt.gca().collections
    axes = described(d2l.plt.gcf())[0]
    # Not how far the contours go: MXNet's end at 0.
    return points, more, contours.levels, axes["lines"], axes["labels"]


@compares("get_data_ch11", "train_ch11", "train_concise_ch11")
def noise_of_wings(both: Both) -> None:
    table = np.random.default_rng(4).normal(size=(1503, 6)).round(3)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake_data.airfoil(patch, both.ours, Path(folder), table)
        patch.setattr(both.theirs, "download", lambda name: both.ours.download(name, folder))
        loaded = [d2l.get_data_ch11(10, 1000) for d2l in both]
        rows = [
            np.sort(np.concatenate([both.adapter.to_numpy(X) for X, _ in it]), axis=0)
            for it, _ in loaded
        ]
        same(*rows)
        assert [n for _, n in loaded] == [5, 5]
    table = table[:400].astype("float32")
    data = [both.adapter.tensor(array.copy()) for array in (table[:, :5], table[:, 5])]
    batches, kept = both.ours.load_array(data, 20, is_train=False), []
    for d2l in both:
        both.adapter.seed(7)
        _, losses = d2l.train_ch11(both.adapter.descent.trainer, None, {"lr": 0.01}, batches, 5)
        kept.append(losses)
    same(*kept, 1e-4)
    for d2l in both:  # Keras draws other weights than upstream's
        both.adapter.seed(7)
        optimizer, hyperparams = both.adapter.descent.concise(0.01)
        d2l.train_concise_ch11(optimizer, hyperparams, batches, num_epochs=2)
        kept.append(described(d2l.plt.gcf())[0]["lines"])
    same(*kept[2:], 0.03)


# Classification

LABELS = np.array([0, 2, 1, 1, 0, 2, 2, 0, 1, 2], "int32")


@compares("accuracy", "corr2d")
def counted(both: Both, name: str) -> None:
    given = [(X[0], Z[0, :2, :3].copy()), (X[1], Z[0, :5, :1].copy())]
    if name == "accuracy":
        logits = X[..., :3].reshape(10, 3).copy()
        given = [(logits, LABELS), (LABELS.astype("float32"), LABELS[::-1].copy())]
    for inputs in given:
        same(*(both.adapter.apply(getattr(d2l, name), *inputs) for d2l in both))


@compares("Benchmark", "get_dataloader_workers", "get_fashion_mnist_labels")
def told(both: Both) -> None:
    said = []
    for d2l in both:
        with redirect_stdout(StringIO()) as printed, d2l.Benchmark("one by one"):
            pass
        said.append(re.sub(r"\d", "0", printed.getvalue()))
        if hasattr(d2l, "get_fashion_mnist_labels"):
            said[-1] += str(d2l.get_fashion_mnist_labels([*range(9, -1, -1)]))
    same(*said)
    if hasattr(both.theirs, "get_dataloader_workers"):  # on a machine of so many cores
        with mock.patch("os.cpu_count", return_value=64):
            same(*(d2l.get_dataloader_workers() for d2l in both))


@compares("evaluate_accuracy", "evaluate_accuracy_gpu")
def shares(both: Both, name: str) -> None:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.labels(LABELS)
    batches = both.ours.load_array(arrays, 4, is_train=False)
    net = both.adapter.linear(8, {"weight": Z[0].T[:, :3].copy(), "bias": X[0, 0, :3].copy()})
    same(*(getattr(d2l, name)(net, batches) for d2l in both))


@compares("train_ch6", "TrainCallback", by=nearly_same)
def networks(both: Both, d2l: Any) -> Any:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.labels(LABELS)
    batches = both.ours.load_array(arrays, 1, is_train=False)
    start = {"weight": Z[0].T[:, :3].copy(), "bias": np.zeros(3, "float32")}
    both.adapter.seed(7)
    with redirect_stdout(StringIO()) as printed:
        net = both.adapter.descent.train_ch6(
            lambda: both.adapter.linear(8, start),
            lambda net: both.adapter.to_numpy(net(arrays[0])),
            *(batches, batches, 2, 0.1),
            d2l=d2l,
        )
    # Upstream tells of its figures as well.
    said = re.findall(r"(?:training on|loss \d|\d+\.\d examples).*", printed.getvalue())
    said[-1] = said[-1].split(maxsplit=1)[1]  # without the speed
    return [both.adapter.to_numpy(net(arrays[0])), said, described(d2l.plt.gcf())[0]["lines"]]


@compares("train_epoch_ch3", "train_ch3")
def epochs(both: Both) -> None:
    """Of a model from scratch, and of a layer with the framework's optimizer; 0.17's fails where little is learned."""
    own = both.adapter.descent
    features = np.tile(3 * np.eye(3, 8, dtype="float32"), (10, 1)) + 0.3 * X[0, 0]
    labels = np.tile(np.arange(3, dtype="int32"), 10)
    batches = both.ours.load_array(
        (both.adapter.tensor(features), both.adapter.labels(labels)), 8, is_train=False
    )
    start = {"weight": Z[0].T[:, :3].copy(), "bias": X[0, 0, :3].copy()}
    for from_scratch in (True, False):
        kept = []
        for d2l in both:
            net = both.adapter.linear(8, start)
            loss, update = getattr(own, "mean_loss", lambda: own.losses)(), own.optimizer(net, 0.5)
            if from_scratch:
                params = [own.variable(each) for each in start.values()]
                net = lambda X, params=params: both.ours.linreg(X, *params)
                loss, update = own.losses, own.updater(params, 0.5)
            told = d2l.train_epoch_ch3(net, batches, loss, update)
            d2l.train_ch3(net, batches, batches, loss, 4, update)
            answers = both.adapter.to_numpy(net(both.adapter.tensor(features[:5])))
            kept.append([[float(each) for each in told], answers, described(d2l.plt.gcf())])
        same(*(each[:2] for each in kept))
        same(*(each[2][0].pop("lines") for each in kept), 1e-4)
        assert kept[0][2] == kept[1][2]


@compares("predict_ch3", by=equal)
def guesses(both: Both, d2l: Any) -> Any:
    pictures = both.adapter.tensor(np.random.default_rng(0).random((6, 28, 28)).astype("float32"))
    labels = both.adapter.labels(np.array([9, 0, 1, 2, 3, 5], "int32"))
    scores = both.adapter.tensor(np.eye(10, dtype="float32")[[9, 1, 1, 2, 3, 4]])
    drawn = []
    for n in (6, 3):
        d2l.predict_ch3(lambda X: scores, [(pictures, labels)], n)
        drawn += map(without_colors, described(d2l.plt.gcf()))
    return drawn


# Recurrent networks

START = {
    name: np.random.default_rng(5).normal(size=shape).astype("float32")
    for name, shape in {
        "W_xh": (7, 4),
        "W_hh": (4, 4),
        "b_h": (4,),
        "W_hq": (4, 7),
        "b_q": (7,),
    }.items()
}


@compares("RNNScratch", "RNNLMScratch", "RNN", "RNNLM")
def speaking(both: Both, d2l: Any, name: str) -> Any:
    rnns = both.oracle.RECURRENT
    both.adapter.seed(7)
    model = rnns.model(name if name.startswith("RNNLM") else "RNNLMScratch", START, d2l=d2l)
    vocab = both.ours.Vocab([*"abcdef"])
    return [rnns.logits(model, TOKENS), rnns.predict(model, "fab", 9, vocab)]


@compares("TimeMachine")
def novels(both: Both, d2l: Any) -> Any:
    text = "The Time Machine, by H. G. Wells\n\n I\n" * 3
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake_data.novel(patch, both.ours, Path(folder), text)
        patch.setattr(d2l.TimeMachine, "_download", lambda self: text)
        data = d2l.TimeMachine(4, 5, 20, 10)
        parts = [data.X, data.Y, *next(iter(data.val_dataloader()))]
        numbers = [np.asarray(both.adapter.to_numpy(each)).astype(int) for each in parts]
        return [numbers, data.vocab.idx_to_token, data.build("Tea, now!", data.vocab)[0]]


@compares("count_corpus")
def counts(both: Both) -> None:
    for tokens in ([["a", "b"], [], ["a"]], ["b", "a", "b"], []):
        ours, theirs = (d2l.count_corpus(tokens).most_common() for d2l in both)
        assert ours == theirs


@compares("seq_data_iter_random", "seq_data_iter_sequential")
def cut_out(both: Both, d2l: Any, name: str) -> Any:
    """At random, from the same seed."""
    found = []
    for seed in range(3):
        random.seed(seed)
        found += [both.adapter.to_numpy([*pair]) for pair in getattr(d2l, name)([*range(35)], 2, 5)]
    return found


@compares(
    *("read_time_machine", "load_corpus_time_machine", "load_data_time_machine", "SeqDataLoader"),
    by=equal,
)
def novel_in_batches(both: Both, d2l: Any) -> Any:
    text = "The Time Machine, by H. G. Wells\n\n I\n" * 5
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake_data.novel(patch, both.ours, Path(folder), text)
        patch.chdir(folder)
        patch.setattr(both.theirs, "download", lambda name: "timemachine.txt")
        corpus, vocab = d2l.load_corpus_time_machine(50)
        told = [d2l.read_time_machine(), corpus, vocab.idx_to_token]
        told.append(d2l.load_corpus_time_machine()[0])
        for is_random in (False, True):
            random.seed(3)
            batches, _ = d2l.load_data_time_machine(3, 4, is_random, 90)
            told += [both.adapter.to_numpy([*pair]) for pair in batches]
            loader = d2l.SeqDataLoader(2, 5, is_random, 90)
            told += [both.adapter.to_numpy([*pair]) for pair in loader]
    return _as_lists(told)


@compares("RNNModelScratch", "predict_ch8", "train_epoch_ch8", "train_ch8")
def of_functions(both: Both) -> None:
    rnns, vocab = both.oracle.RECURRENT, both.ours.Vocab([*"abcdef"])
    tokens = np.concatenate([TOKENS, TOKENS[::-1]], 1).astype("int64")
    pairs = [(tokens[:, i : i + 2], tokens[:, i + 1 : i + 3]) for i in (0, 2, 4)]
    batches, kept = [[both.adapter.tensor(each.copy()) for each in pair] for pair in pairs], []
    for d2l in both:
        told = []
        for is_random, own in (True, True), (False, True), (False, False):
            net = rnns.make_scratch(START, d2l=d2l)
            told += [rnns.predict_ch8(net, "fab", 9, vocab, d2l=d2l)]
            told += [rnns.train_epoch(net, batches, 0.5, is_random, own, d2l=d2l)[0]]
            told += [*rnns.params(net), rnns.predict_ch8(net, "fab", 9, vocab, d2l=d2l)]
        with redirect_stdout(StringIO()) as printed:
            rnns.train_ch8(net, batches[:2], vocab, 0.5, 11, d2l=d2l)
        # Upstream tells of its figures as well, and of Paddle's perplexity in Chinese.
        of_text = r"<unk><unk>.*|(?<=perplexity )[\d.]+|(?<=困惑度 )[\d.]+"
        said = re.findall(of_text, printed.getvalue(), re.MULTILINE)
        (axes,) = described(d2l.plt.gcf())
        kept.append([told, axes.pop("lines"), said, axes])
    same(kept[0][:2], kept[1][:2], 1e-4)
    said, theirs = kept[0][2], kept[1][2]
    assert said[-len(theirs) :] == theirs  # MXNet's says nothing but in the end
    assert len(theirs) >= 3
    assert kept[0][3] == kept[1][3]


@compares("RNNModel")
def of_layers(both: Both) -> None:
    rnns, tokens = both.oracle.RECURRENT, TOKENS[:, :2].astype("int64")
    for nets in zip(*(rnns.layers(7, 4, d2l=d2l) for d2l in both), strict=True):
        told, _ = (rnns.run_twice(net, tokens)[:2] for net in nets)  # which gives them sizes
        both.oracle.MODELS.copy(*nets)
        same(told, rnns.run_twice(nets[1], tokens)[:2])


@compares("grad_clipping")
def clipping(both: Both) -> None:
    gradients = [X[0], Z[0, 0]]
    for theta in (0.5, 1000.0):
        same(*(both.oracle.RECURRENT.clip_gradients(gradients, theta, d2l=d2l) for d2l in both))


@compares("train_batch_ch13", "train_ch13", "evaluate_accuracy_gpus", by=nearly_same)
def on_devices(both: Both, d2l: Any) -> Any:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.labels(LABELS)
    batches = both.ours.load_array(arrays, 2, is_train=False)
    start = {"weight": Z[0].T[:, :3].copy(), "bias": np.zeros(3, "float32")}
    net, devices = both.adapter.linear(8, start), [both.ours.cpu()]
    given = both.adapter.descent.losses, both.adapter.descent.optimizer(net, 0.1)
    told = [float(x) for x in d2l.train_batch_ch13(net, *arrays, *given, devices)]
    with redirect_stdout(StringIO()) as printed:
        d2l.train_ch13(net, batches, batches, *given, 2, devices)
    if hasattr(d2l, "evaluate_accuracy_gpus"):
        told.append(d2l.evaluate_accuracy_gpus(net, batches))
    (said,) = re.findall(r"loss \d.*", printed.getvalue())
    answers = both.adapter.to_numpy(net(arrays[0]))
    return [answers, told, said, described(d2l.plt.gcf())[0]["lines"]]


@compares("split_batch", "split_batch_multi_inputs")
def shared_out(both: Both, name: str) -> None:
    rows, labels = both.adapter.tensor(X[0]), both.adapter.labels(np.arange(5, dtype="int32"))
    given = [rows, rows] if name == "split_batch_multi_inputs" else rows
    same(
        *(
            both.adapter.to_numpy([*getattr(d2l, name)(given, labels, [both.ours.cpu()])])
            for d2l in both
        )
    )


@compares("resnet18")
def small_resnet(both: Both) -> None:
    x = both.adapter.tensor(Z.reshape(2, 1, 5, 8))
    nets = []
    for d2l in both:
        both.adapter.seed(7)
        net = d2l.resnet18(3)
        if hasattr(net, "initialize"):
            net.initialize()
        net(x)  # which gives it sizes
        nets.append(net)
    if hasattr(nets[0], "state_dict"):  # upstream draws at the first call
        both.oracle.MODELS.copy(*nets)
    same(*(both.adapter.to_numpy(net(x)) for net in nets), 1e-4)


@compares(
    *("box_corner_to_center", "box_center_to_corner", "box_iou", "offset_boxes", "offset_inverse"),
    *("multibox_prior", "multibox_target", "assign_anchor_to_bbox", "nms", "multibox_detection"),
)
def boxes(both: Both, name: str) -> None:
    corners = np.abs(X[0, :, :2])
    some = np.concatenate([corners, corners + np.abs(Z[0, :, :2]) + 0.1], axis=1)
    some, others = both.adapter.tensor(some), both.adapter.tensor(some[::-1].copy())
    labels = np.concatenate([np.ones((5, 1), "float32"), both.adapter.to_numpy(others)], axis=1)[
        None, :2
    ]
    probs = np.abs(Z[:1, :3, :5]) / np.abs(Z[:1, :3, :5]).sum(axis=1, keepdims=True)
    device = next(getattr(some, each) for each in ("place", "device", "ctx") if hasattr(some, each))
    calls: dict[str, tuple[Any, ...]] = {
        "box_corner_to_center": (some,),
        "box_center_to_corner": (some,),
        "multibox_prior": (both.adapter.tensor(X[None]), [0.75, 0.5], [1, 2, 0.5]),
        "multibox_target": (some[None], both.adapter.tensor(labels)),
        "assign_anchor_to_bbox": (others[:2], some, device),
        "nms": (some, both.adapter.tensor(Z[1, :, 0].copy()), 0.1),
        "multibox_detection": (
            both.adapter.tensor(probs),
            both.adapter.tensor(X[:1, :, :4].reshape(1, 20)),
            some[None],
            0.3,
        ),
    }
    found = [getattr(d2l, name)(*calls.get(name, (some, others))) for d2l in both]
    for ours, theirs in zip(*(x if isinstance(x, tuple) else (x,) for x in found), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    same(*map(both.adapter.to_numpy, map(_listed, found)))


def _listed(x: Any) -> Any:
    return [*x] if isinstance(x, tuple) else x


@compares("bbox_to_rect")
def rectangle(both: Both) -> None:
    ours, theirs = (d2l.bbox_to_rect((1.0, 2.0, 4.0, 8.0), "r") for d2l in both)
    same(ours.get_bbox().extents, theirs.get_bbox().extents)
    assert ours.get_edgecolor() == theirs.get_edgecolor()


@compares("show_bboxes")
def rectangles(both: Both) -> None:
    looks, places = [], []
    for d2l in both:
        _, axes = d2l.plt.subplots()
        d2l.show_bboxes(axes, both.adapter.tensor(np.abs(X[0, :3, :4])), ["a", "b"], ["w", "r"])
        looks.append([(r.get_edgecolor(), r.get_linewidth(), r.get_fill()) for r in axes.patches])
        looks[-1] += [(text.get_text(), text.get_color()) for text in axes.texts]
        places.append([r.get_bbox().extents for r in axes.patches])
        places[-1] += [[*text.get_position(), 0, 0] for text in axes.texts]
    assert looks[0] == looks[1]
    np.testing.assert_allclose(*places, rtol=1e-5)


@compares("VOC_CLASSES", "VOC_COLORMAP", "voc_colormap2label", "voc_label_indices")
def classes_of_pixels(both: Both) -> None:
    assert both.ours.VOC_CLASSES == both.theirs.VOC_CLASSES
    assert both.ours.VOC_COLORMAP == both.theirs.VOC_COLORMAP
    if not hasattr(both.ours, "voc_colormap2label"):
        return
    tables = [d2l.voc_colormap2label() for d2l in both]
    assert tables[0].dtype == tables[1].dtype
    np.testing.assert_array_equal(*map(both.adapter.to_numpy, tables))
    colors = np.array(both.ours.VOC_COLORMAP, "uint8").reshape(3, 7, 3)
    is_last = both.ours.__name__.endswith("mxnet")
    picture = both.adapter.tensor(colors if is_last else colors.transpose(2, 0, 1).copy())
    found = [d2l.voc_label_indices(picture, tables[0]) for d2l in both]
    np.testing.assert_array_equal(*map(both.adapter.to_numpy, found))


@compares("copyfile", "read_csv_labels", "reorg_test", "reorg_train_valid", by=equal)
def competition(both: Both, d2l: Any) -> Any:
    with TemporaryDirectory() as place:
        folder = Path(place)
        for part in "train", "test":
            (folder / part).mkdir()
            for i in range(9):
                (folder / part / f"{i}.png").touch()
        lines = "\n".join(f"{i},{'ab'[i % 2]}" for i in range(9))
        (folder / "labels.csv").write_text(f"id,label\n{lines}\n")
        labels = d2l.read_csv_labels(str(folder / "labels.csv"))
        count = d2l.reorg_train_valid(place, labels, 0.3)
        d2l.reorg_test(place)
        made = [path.relative_to(folder).parent for path in folder.rglob("*.png")]
        # Upstream takes the files in the order of the disk: how many there are is the same.
        return [labels, count, sorted(map(str, made))]


# Natural language


@compares(
    *("TokenEmbedding", "load_data_imdb", "load_data_ptb", "load_data_snli", "load_data_wiki"),
    *("SNLIDataset", "batchify", "read_imdb", "read_ptb", "read_snli", "get_tokens_and_segments"),
    *("subsample", "get_centers_and_contexts", "get_negatives", "RandomGenerator"),
    by=equal,
)
def texts(both: Both, d2l: Any) -> Any:
    """From the same seeds the same is drawn; upstream reads files in the order of the disk."""
    if not hasattr(both.theirs, "read_ptb"):
        return None
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        work = Path(folder) / "work"
        work.mkdir()
        patch.chdir(work)
        fake_data.language(patch, both.ours, Path(folder))
        patch.setattr(both.theirs, "download_extract", both.ours.download_extract)
        patch.setattr(both.theirs, "get_dataloader_workers", lambda: 0)
        with redirect_stdout(StringIO()) as printed:
            found = [*_drawn(both.adapter, d2l), *_read(both.adapter, d2l)]
    return _as_lists([*found, printed.getvalue()])


def _as_lists(x: Any) -> Any:
    """All is whole numbers, words, or read from a file: it is the same to the last digit."""
    if isinstance(x, (list, tuple)):
        return [*map(_as_lists, x)]
    return x.tolist() if isinstance(x, np.ndarray) else x


def _drawn(adapter: Adapter, d2l: Any) -> Iterator[Any]:
    random.seed(1)
    sentences = d2l.read_ptb()
    vocab = d2l.Vocab(sentences)
    some, counter = d2l.subsample(sentences, vocab)
    centers, contexts = d2l.get_centers_and_contexts([vocab[line] for line in some], 3)
    negatives = d2l.get_negatives(contexts, vocab, counter, 2)
    generator = d2l.RandomGenerator([2, 3, 4])
    yield [some, [*map(list, sorted(counter.items()))], centers, contexts, negatives]
    yield [generator.draw() for _ in range(20)]
    yield adapter.to_numpy([*d2l.batchify([*zip(centers, contexts, negatives, strict=True)])])
    yield d2l.get_tokens_and_segments(["a", "b"], ["c"])


def _read(adapter: Adapter, d2l: Any) -> Iterator[Any]:
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
            batches = [_columns(adapter.to_numpy([*batch])) for batch in loader]
            rows = [row for batch in batches for row in zip(*batch, strict=True)]
            # What is filled up is as long as the batch, which is drawn: of skip-grams.
            yield sorted([[float(n) for x in row for n in np.ravel(x) if n] for row in rows])
    for is_train in (True, False):
        texts, labels = d2l.read_imdb("../data/aclImdb", is_train)
        yield [sorted(texts), labels, *d2l.read_snli("../data/snli_1.0", is_train)]
    pairs = d2l.SNLIDataset((["a b"] * 5, ["c"] * 5, [0, 1, 2, 0, 1]), 3)
    yield adapter.to_numpy([pairs.premises, pairs.hypotheses, pairs.labels, *pairs[1]])


def _columns(batch: Any) -> list[Any]:
    """Of pairs too."""
    return [x for part in batch for x in (part if isinstance(part, list) else [part])]


@compares("predict_sentiment", "predict_snli", by=equal)
def sayings(both: Both, d2l: Any) -> Any:
    vocab, table = both.ours.Vocab([*"abc"]), np.eye(4, dtype="float32")
    weight = np.abs(X[0, :4, :3])
    network = both.oracle.LANGUAGE.classifier(table, weight[:, :2])
    said = [_asked(network, d2l.predict_sentiment, vocab, text) for text in ("a b", "c", "x c")]
    network = both.oracle.LANGUAGE.classifier(table, weight)
    for pair in (["a"], ["b", "c"]), (["c"], ["c"]), (["b"], ["x"]):
        said.append(_asked(network, d2l.predict_snli, vocab, *pair))
    return said


def _asked(network: Any, function: Any, vocab: Any, *texts: Any) -> str:
    """Where nothing is dropped: of sentiments upstream lets it be."""
    if hasattr(network, "eval"):
        network.eval()
    return function(network, vocab, *texts)


@compares("show_list_len_pair_hist", by=equal)
def lengths(both: Both, d2l: Any) -> Any:
    d2l.plt.close("all")
    d2l.show_list_len_pair_hist(["a", "b"], "x", "y", [[1], [1, 2], [3]], [[1] * 4, []])
    (axes,) = d2l.plt.gcf().axes
    bars = [(bar.get_x(), bar.get_height(), bar.get_hatch()) for bar in axes.patches]
    return [bars, axes.get_xlabel(), [t.get_text() for t in axes.get_legend().texts]]


# Models


@compares("LinearRegression", "LinearRegressionScratch", "SGD")
def regressions(both: Both, name: str) -> None:
    """Those from scratch have upstream's SGD for one, and ours for the other."""
    name = "LinearRegressionScratch" if name == "SGD" else name
    args = (3, 0.1) if name == "LinearRegressionScratch" else (0.1,)
    start = Z[0, 0, :3].copy(), Z[0, 1, :1].copy()
    fit, kept = both.oracle.MODELS.fit, []
    for d2l in both:
        model = getattr(d2l, name)(*args)
        kept.append(fit(model, data_of(both.adapter, d2l), 3, d2l, start))
    same(*kept)
    same(kept[0][0], start)


@compares("SyntheticRegressionData")
def examples_of_regression(both: Both, d2l: Any) -> Any:
    w = both.adapter.tensor(np.array([2, -3.4], "float32"))
    both.adapter.seed(0)
    data = d2l.SyntheticRegressionData(w, 4.2, 0.1, 20, 6, 4)
    batches = [[*map(both.adapter.to_numpy, batch)] for batch in data.val_dataloader()]
    return [both.adapter.to_numpy(data.X), both.adapter.to_numpy(data.y), batches]


PICTURES = {
    "LeNet": ((), np.random.default_rng(6).normal(size=(2, 1, 28, 28))),
    "SoftmaxRegression": ((3, 0.1), np.random.default_rng(6).normal(size=(2, 1, 4, 4))),
    "Residual": ((8, True, 2), np.random.default_rng(6).normal(size=(2, 4, 5, 5))),
    "ResNeXtBlock": ((8, 4, 1, True), np.random.default_rng(6).normal(size=(2, 4, 5, 5))),
}


@compares(*PICTURES)
def on_pictures(both: Both, name: str) -> None:
    args, pictures = PICTURES[name][0], PICTURES[name][1].astype("float32")
    args = both.forms.get(name, args)
    models = both.oracle.MODELS
    ours, theirs = (getattr(d2l, name)(*args) for d2l in both)
    for model in (ours, theirs):
        models.predict(model, pictures)
    models.copy(ours, theirs)
    same(*(models.predict(model, pictures, training=True) for model in (ours, theirs)), 1e-4)


@compares("nn_Module")
def base(both: Both) -> None:
    assert both.ours.nn_Module is both.theirs.nn_Module


@compares("init_cnn")
def xavier(both: Both, d2l: Any) -> Any:
    both.adapter.seed(0)
    net = both.adapter.linear(8, None)
    d2l.init_cnn(net)
    return both.adapter.to_numpy(net.weight)


@compares("update_D", "update_G")
def adversaries(both: Both, d2l: Any) -> Any:
    models = both.oracle.MODELS
    real, noise = both.adapter.tensor(X[0, :, :3].copy()), both.adapter.tensor(Z[0, :, :2].copy())
    net_D = models.dense(Z[1, :3, :1].copy(), Z[1, 0, :1].copy())
    net_G = models.dense(X[1, :2, :3].copy(), X[1, 0, :3].copy())
    of_D, of_G = models.optimizer(net_D, 0.5), models.optimizer(net_G, 0.5)
    for _ in range(2):
        losses = [
            d2l.update_D(real, noise, net_D, net_G, models.loss, of_D),
            d2l.update_G(noise, net_D, net_G, models.loss, of_G),
        ]
    return both.adapter.to_numpy([*losses, net_D(real), net_G(noise)])


@compares("HPOSearcher", "HPOScheduler")
def to_be_defined(both: Both, name: str) -> None:
    for d2l in both:
        made = getattr(d2l, name)()
        with pytest.raises((NotImplementedError, TypeError)):  # upstream's search forgets self
            made.sample_configuration() if name == "HPOSearcher" else made.suggest()


@compares("RandomSearcher", "BasicScheduler", "HPOTuner")
def searches(both: Both, d2l: Any) -> Any:
    import torch

    numbers = iter([3.0, 1.0, 2.0])
    space = {"a": SimpleNamespace(rvs=lambda: next(numbers))}
    searcher = d2l.RandomSearcher(space, {"a": 5.0})
    tuner = d2l.HPOTuner(d2l.BasicScheduler(searcher), lambda a: torch.tensor(a / 10))
    with redirect_stdout(StringIO()):
        tuner.run(4)
    trials = [[each["config"]["a"], each["error"]] for each in tuner.records]
    return [trials, [tuner.incumbent["a"], tuner.incumbent_error], tuner.incumbent_trajectory]


@compares("HPOTrainer")
def measure_validation_error(both: Both, d2l: Any) -> Any:
    arrays = both.adapter.tensor(X.reshape(10, 8)), both.adapter.labels(LABELS)
    trainer = d2l.HPOTrainer(max_epochs=1)
    net = both.adapter.linear(8, {"weight": Z[0].T[:, :3].copy(), "bias": X[0, 0, :3].copy()})
    trainer.model = d2l.Classifier()
    trainer.model.net = net
    trainer.val_dataloader = both.ours.load_array(arrays, 5, is_train=False)
    trainer.num_val_batches = 2
    return float(trainer.validation_error())


@compares("rbfkernel")
def kernels(both: Both) -> None:
    given = X[0, :, 0].astype("float64"), Z[0, :4, 0].astype("float64")
    for more in ([], [0.2]):
        same(*(d2l.rbfkernel(*given, *more) for d2l in both))


# Recommender systems

USERS, ITEMS, OTHERS, STARS = (
    np.random.default_rng(8 + i).integers(0, n, 20) for i, n in enumerate((4, 6, 6, 5))
)


def ratings() -> Any:
    """Users and items counted from 1, each once at least; no two ratings of a user at one time."""
    from pandas import DataFrame

    users, items = np.r_[0:4, USERS] + 1, np.r_[0:4, ITEMS] + 1
    times = np.random.default_rng(9).permutation(24)
    return DataFrame({"user": users, "item": items, "stars": np.r_[0:4, STARS] + 1, "at": times})


@compares("split_data_ml100k", "load_data_ml100k")
def rated(both: Both) -> None:
    data, kept = ratings(), []
    for d2l in both:
        both.adapter.seed(7)
        parts = [d2l.split_data_ml100k(data, 4, 6, *given) for given in ((), ("seq-aware",))]
        for feedback in "explicit", "implicit":
            *lists, known = d2l.load_data_ml100k(data, 4, 6, feedback)
            parts.append((lists, known if isinstance(known, dict) else known.tolist()))
        kept.append(parts)
    for ours, theirs in zip(*(parts[0] + parts[1] for parts in kept), strict=True):
        assert ours.equals(theirs)
        assert [*ours.columns] == [*theirs.columns]
    assert kept[0][2:] == kept[1][2:]


@compares("BPRLoss", "HingeLossbRec")
def pairs(both: Both, name: str) -> None:
    scores = both.adapter.tensor(X[0, :, :1].copy()), both.adapter.tensor(Z[0, :, :1].copy())
    same(*(both.adapter.to_numpy(getattr(d2l, name)()(*scores)) for d2l in both))


@compares("hit_and_auc")
def compare_rankings(both: Both) -> None:
    for wanted in ([3], [9, 1], [7]):
        same(*(d2l.hit_and_auc([5, 1, 3, 9], wanted, 2) for d2l in both))


def liking(adapter: Adapter) -> Any:
    """A model that knows how a user likes an item."""
    from mxnet.gluon import nn

    class Liking(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.of_user, self.of_item = nn.Embedding(6, 3), nn.Embedding(6, 3)
            for name, layer in ("users", self.of_user), ("items", self.of_item):
                layer.initialize()
                start = (X if name == "users" else Z).reshape(-1)[:18].reshape(6, 3)
                layer.weight.set_data(adapter.tensor(start))

        def forward(self, user: Any, *others: Any) -> Any:
            *before, item = others
            bonus = before[0].sum(1) if before else 0
            return (self.of_user(user) * self.of_item(item)).sum(1) + bonus

    return Liking()


@compares("evaluate_ranking")
def ranked(both: Both) -> None:
    """As many users as items: upstream ranks as many items as there are users."""
    known, wanted = {0: [0], 1: [2, 3], 2: [1], 3: [3]}, {0: [1], 1: [0], 2: [3], 3: [0]}
    seq = both.adapter.tensor(X[0, :4].copy())
    given = liking(both.adapter), wanted, seq, known, 4, 4, [both.ours.cpu()]
    same(*([*map(float, d2l.evaluate_ranking(*given))] for d2l in both))


@compares("train_ranking", "train_recsys_rating")
def recommended(both: Both, d2l: Any, name: str) -> Any:
    """Losses that upstream prints are sums of sums: ours are those that it draws."""
    from mxnet import gluon

    last = STARS.astype("float32") if name == "train_recsys_rating" else OTHERS
    columns = [both.adapter.tensor(each) for each in (USERS, ITEMS, last)]
    batches = [[column[i : i + 10] for column in columns] for i in (0, 10)]
    net, devices = liking(both.adapter), [both.ours.cpu()]
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    evaluator = mock.Mock(return_value=(0.5, 0.25) if name == "train_ranking" else 0.5)
    given = gluon.loss.L2Loss(), trainer, 2, devices, evaluator
    if name == "train_ranking":
        given = d2l.BPRLoss(), trainer, None, 6, 6, 2, devices, evaluator, "known", 2
    with redirect_stdout(StringIO()) as printed:
        getattr(d2l, name)(net, batches, "test", *given)
    said = re.findall(r"test .*", printed.getvalue())
    answers = both.adapter.to_numpy(net(*columns[:2]))
    lines = described(d2l.plt.gcf())[0]["lines"]
    return [answers, said, lines, [len(each.args) for each in evaluator.mock_calls]]


@compares("CTRDataset")
def clicked(both: Both) -> None:
    """Which of a field's values has which number, upstream leaves to chance."""
    fields = np.random.default_rng(3).integers(0, 4, (30, 3))
    rows = ["\t".join(map(str, row)) for row in np.c_[fields[:, 0] % 2, fields]]
    kept = []
    with TemporaryDirectory() as folder:
        file = Path(folder, "rows.csv")
        file.write_text("\n".join([*rows, "1\t2"]))
        for d2l in both:
            data = d2l.CTRDataset(str(file), min_threshold=7, num_feat=3)
            other = d2l.CTRDataset(str(file), data.feat_mapper, data.defaults, num_feat=3)
            sizes = [data.field_dims.tolist(), data.offsets.tolist(), other.field_dims.tolist()]
            values = [
                {**dict(zip(ids.values(), ids, strict=True))} for ids in data.feat_mapper.values()
            ]
            back = [
                [
                    of.get(int(i - start), "rare")
                    for of, i, start in zip(values, x, sizes[1], strict=True)
                ]
                for x, _ in (data[n] for n in range(len(data)))
            ]
            kept.append([sizes, back, [float(other[n][1][0]) for n in range(30)]])
    assert kept[0] == kept[1]
    assert "rare" in {value for row in kept[0][1] for value in row}


# Text and small helpers


@compares("check_len", "tokenize", "truncate_pad")
def lines(both: Both) -> None:
    for d2l in both if hasattr(both.theirs, "check_len") else ():
        d2l.check_len([1, 2], 2)
        with pytest.raises((ValueError, AssertionError)):
            d2l.check_len([1, 2], 3)
    if hasattr(both.theirs, "tokenize"):
        given = ["the time  machine", "", "by h g"]
        same(*(d2l.tokenize(given) for d2l in both))
        same(*(d2l.tokenize(given, "char") for d2l in both))
        for n in (2, 5):
            same(*(d2l.truncate_pad([1, 2, 3], n, 0) for d2l in both))


@compares("Vocab")
def vocabulary(both: Both) -> None:
    tokens = [["go", "."], ["hi", "."], ["go", "!"]]
    for arguments in ((tokens,), (tokens, 2), (tokens, 2, ["<pad>"]), (["a", "b", "a"],), ()):
        ours, theirs = (d2l.Vocab(*arguments) for d2l in both)
        assert ours.token_freqs == theirs.token_freqs
        assert len(ours) == len(theirs)
        assert ours.idx_to_token == theirs.idx_to_token
        assert ours[["go", "x"]] == theirs[["go", "x"]]
        assert ours.unk == theirs.unk
        everything = list(range(len(ours)))
        assert len(ours) == 1 or ours.to_tokens(everything) == theirs.to_tokens(everything)


@compares("bleu")
def translations(both: Both) -> None:
    for said, want, k in (("a b c d", "a b c d", 4), ("a b x c", "a b c", 2), ("a a a", "a b", 1)):
        assert both.ours.bleu(said, want, k) == pytest.approx(both.theirs.bleu(said, want, k))


@compares("check_shape")
def shapes(both: Both) -> None:
    for d2l in both:
        d2l.check_shape(both.adapter.tensor(X), (2, 5, 8))
        with pytest.raises((ValueError, AssertionError)):
            d2l.check_shape(both.adapter.tensor(X), (2, 5, 7))


@compares("HyperParameters", "add_to_class")
def classes(both: Both) -> None:
    def made(d2l: Any) -> Any:
        class A(d2l.HyperParameters):
            def __init__(self, a: int, b: int = 2, _c: int = 3, *, d: int = 4) -> None:
                self.save_hyperparameters(ignore=["b"])

        one = A(1)

        @d2l.add_to_class(A)
        def twice(self: Any) -> int:
            return 2 * self.a

        return one.hparams, one.twice(), hasattr(one, "b"), hasattr(one, "_c"), one.d

    assert made(both.ours) == made(both.theirs) == ({"a": 1, "d": 4}, 2, False, False, 4)


@compares("Accumulator", by=equal)
def sums(both: Both, d2l: Any) -> Any:
    sums = d2l.Accumulator(2)
    sums.add(1, 2.5)
    sums.add(3, 4)
    before = [sums[0], sums[1]]
    sums.reset()
    return [before, [sums[0], sums[1]]]


@compares("cpu", "gpu", "num_gpus", "try_gpu")
def devices(both: Both) -> None:
    names = ["cpu", "num_gpus", "try_gpu"]
    if both.ours.num_gpus():  # some frameworks cannot make one that is not there
        names.append("gpu")
    names = [name for name in names if hasattr(both.theirs, name)]
    ours, theirs = ([getattr(d2l, name)() for name in names] for d2l in both)
    assert both.adapter.to_numpy(ours) == both.adapter.to_numpy(theirs)


@compares("try_all_gpus")
def all_devices(both: Both) -> None:
    ours, theirs = (both.adapter.to_numpy(d2l.try_all_gpus()) for d2l in both)
    assert ours == theirs


# Figures


@compares("plot", "set_axes", "set_figsize", "annotate", "plt", by=equal)
def curves(both: Both, d2l: Any) -> Any:
    x = np.arange(4.0)
    d2l.plt.close("all")
    d2l.plot(x, [x**2, 2 * x], "x", "f(x)", legend=["a", "b"], xlim=[0, 3], figsize=(4, 2.5))
    if hasattr(both.theirs, "annotate"):  # JAX's has it not
        d2l.annotate("here", (1, 1), (2, 5))
    first = described(d2l.plt.gcf())
    d2l.plt.close("all")
    d2l.set_figsize((5, 3))
    axes = d2l.plt.gca()
    d2l.plot([1, 2, 4], yscale="log", axes=axes, figsize=(5, 3))
    d2l.set_axes(axes, "a", "b", [0, 2], [1, 5], "linear", "log", ["one"])
    return [*first, *described(d2l.plt.gcf())]


@compares("show_heatmaps")
def heatmaps(both: Both) -> None:
    weights = np.random.default_rng(0).random((2, 3, 4, 5)).astype("float32")

    def draw(d2l: Any) -> list[Any]:
        d2l.plt.close("all")
        titles = ["a", "b", "c"]
        d2l.show_heatmaps(both.adapter.tensor(weights), "Keys", "Queries", titles, (7, 4))
        grid = described(d2l.plt.gcf())
        d2l.plt.close("all")
        d2l.show_heatmaps(both.adapter.tensor(weights[:1, :1]), "K", "Q", cmap="Blues")
        return [*grid, *described(d2l.plt.gcf())]

    ours, theirs = draw(both.ours), draw(both.theirs)
    # The shim gives all maps one scale, upstream each its own: of several, the limits differ.
    ours[:6], theirs[:6] = ([without_limits(axes) for axes in part[:6]] for part in (ours, theirs))
    assert ours == theirs


@compares("show_images", by=equal)
def pictures(both: Both, d2l: Any) -> Any:
    images = np.random.default_rng(0).random((3, 4, 4)).astype("float32")
    d2l.plt.close("all")
    tensor = both.adapter.tensor(images)  # the last has no place
    axes = d2l.show_images(tensor, 1, 2, titles=["a", "b", "c"], scale=2)
    assert len(axes) == 2
    return [*map(without_colors, described(d2l.plt.gcf()))]


@compares("frozen_lake", "make_env")
def lakes(both: Both, name: str) -> None:
    args = (3,) if name == "frozen_lake" else ("FrozenLake-v1", 3)
    with mock.patch.dict(sys.modules, gym=SimpleNamespace(make=as_gym)):
        ours, theirs = (getattr(d2l, name)(*args) for d2l in both)
        if name == "make_env":
            for d2l in both:
                with pytest.raises(ValueError, match="env"):
                    d2l.make_env("CartPole-v1")
    assert ours.pop("desc").tolist() == theirs.pop("desc").tolist()
    assert ours.pop("env").P == theirs.pop("env").P
    assert ours == theirs


def as_gym(name: str, **settings: Any) -> Any:
    """gymnasium's environment, with what upstream asks gym's for."""
    import gymnasium

    env = gymnasium.make(name, **settings).unwrapped
    seeded = SimpleNamespace(seed=lambda seed: None)
    return SimpleNamespace(
        desc=env.desc,
        P=env.P,
        nS=env.observation_space.n,
        nA=env.action_space.n,
        seed=seeded.seed,
        action_space=SimpleNamespace(seed=seeded.seed, np_random=seeded),
    )


@compares("show_value_function_progress", "show_Q_function_progress")
def policies(both: Both, name: str) -> None:
    """Left, down and right: upstream's arrow for up points to the left."""
    lake = np.array([[*"SFFF"], [*"FHFH"], [*"FFFH"], [*"HFFG"]], "S")
    rng, steps = np.random.default_rng(6), 30 if name == "show_Q_function_progress" else 3
    values, actions = rng.random((steps, 16)), rng.integers(0, 3, (steps, 16)).astype(float)
    with mock.patch("matplotlib.pyplot.show"):
        drawn = []
        for d2l in both:
            d2l.plt.close("all")
            getattr(d2l, name)(lake, values, actions)
            drawn.append([maps(axes) for axes in d2l.plt.gcf().axes if axes.images])
    assert len(drawn[0]) == (11 if steps == 30 else 3)
    assert drawn[0] == drawn[1]


def maps(axes: Any) -> tuple[Any, ...]:
    """Title, colours, letters, and arrows with their directions."""
    letters = {(*np.round(text.get_position()),): text.get_text() for text in axes.texts}
    arrows = [(each._x, each._y, each._dx, each._dy) for each in axes.patches]  # upstream's
    for each in axes.collections:
        arrows += np.column_stack([each.get_offsets(), each.U, each.V]).tolist()
    (image,) = axes.images
    ways = sorted((x, y, *np.sign(way)) for x, y, *way in arrows)
    return axes.get_title(), image.get_cmap().name, image.get_array().tolist(), letters, ways


@compares("Animator", "ProgressBoard")
def growing(both: Both, name: str) -> None:
    def draw(d2l: Any) -> list[Any]:
        d2l.plt.close("all")
        if name == "Animator":
            board = d2l.Animator("epoch", "loss", ["train", "test"], xlim=[1, 3], yscale="log")
            for epoch in (1, 2, 3):
                board.add(epoch, (2.0 / epoch, None if epoch == 2 else 3.0 / epoch))
        else:
            board = d2l.ProgressBoard("x", "y", xlim=[0, 10], ylim=[-1, 1])
            for i in range(10):
                board.draw(float(i), np.sin(i), "sin", every_n=2)
                board.draw(float(i), np.cos(i), "cos", every_n=5)
        return described(board.fig)

    ours, theirs = draw(both.ours), draw(both.theirs)
    theirs[0]["lines"] = theirs[0]["lines"][-2:]  # its ProgressBoard leaves the old ones there
    assert ours == theirs


def described(figure: Any) -> list[dict[str, Any]]:
    """What can be read off a figure; colours and styles of lines are the shim's own."""
    size = [round(float(inch), 2) for inch in figure.get_size_inches()]
    return [
        {
            "size": size,
            "lines": [np.round(line.get_xydata(), 5).tolist() for line in axes.lines],
            "labels": (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()),
            "limits": [
                np.round(axes.get_xlim(), 5).tolist(),
                np.round(axes.get_ylim(), 5).tolist(),
            ],
            "scales": (axes.get_xscale(), axes.get_yscale()),
            "legend": [t.get_text() for t in legend.get_texts()]
            if (legend := axes.get_legend())
            else [],
            "texts": [(text.get_text(), text.xy) for text in axes.texts],
            "images": [
                (
                    np.round(np.asarray(image.get_array()), 5).tolist(),
                    image.get_cmap().name,
                    [float(f"{end:.3g}") for end in image.get_clim()],  # ours are rounded so
                )
                for image in axes.images
            ],
        }
        for axes in figure.axes
        if axes.get_label() != "<colorbar>"
    ]


def without_limits(axes: dict[str, Any]) -> dict[str, Any]:
    return {**axes, "images": [image[:2] for image in axes["images"]]}


def without_colors(axes: dict[str, Any]) -> dict[str, Any]:
    return {**axes, "images": [image[0] for image in axes["images"]]}


# Tensor functions


@compares(*FUNCTIONS, *RANDOM, *DTYPES, *KEYS)
def tensors(both: Both, name: str) -> None:
    """What is drawn at random is compared by shape and dtype."""
    ours, theirs = getattr(both.ours, name), getattr(both.theirs, name)
    if name in DTYPES:
        assert ours == theirs
        return
    given = [] if name in KEYS else example(both.adapter, name)[0]
    results = [both.adapter.to_numpy(function(*given)) for function in (ours, theirs)]
    if name in RANDOM:
        assert len({(result.shape, result.dtype) for result in results}) == 1
    elif name not in KEYS:
        same(*results)


# All together


# In `make test` each framework is compared with one version: PaddlePaddle's is in the older one alone.
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
    """Ours answers as the version that upstream is."""
    pair = Both(adapter, adapter.d2l, load_upstream(request.param), oracle, request.param)
    with pytest.MonkeyPatch.context() as patch:
        if pair.is_older:
            patch.setenv("D2L_VERSION", "0.17")
        yield pair


def reasons(both: Both) -> dict[str, str]:
    """Why a name is not compared."""
    own = both.oracle.NOT_COMPARED.get(both.version, {})
    return {**NOT_COMPARED, **OF_ONE_VERSION[both.version], **own}


# The other tests here hold these to NumPy, which `make test` is content with.
HELD_TO_NUMPY = {
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
        pytest.param(name, marks=pytest.mark.release if name in HELD_TO_NUMPY else [])
        for name in sorted(COMPARED)
    ],
)
def test_it_is_as_upstreams(
    both: Both, name: str, record_property: Callable[[str, object], None]
) -> None:
    if name not in both.adapter.d2l.__all__ and name != "plt":
        pytest.skip("names that this face has not")
    if not hasattr(both.theirs, name):
        pytest.skip("names that upstream has not in this framework")
    if name in reasons(both):
        pytest.skip("names that cannot be compared; the end of the run says why")
    COMPARED[name](both)
    record_property(f"compared with upstream's {both.version}", name)


def test_every_name_is_compared_or_it_is_said_why_not(
    both: Both, record_property: Callable[[str, object], None]
) -> None:
    names = {*both.adapter.d2l.__all__}
    missing = {name: "upstream has it not" for name in names if not hasattr(both.theirs, name)}
    why = missing | reasons(both)
    assert names <= COMPARED.keys() | why.keys()
    for name in sorted(names & why.keys()):
        record_property(f"not compared with upstream's {both.version}", f"{name}: {why[name]}")
