"""Tests of data and training with D2L 1.0's classes and 0.17's functions on a small corpus."""

import hashlib
import math
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.shim.each import fake_data
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import assert_close
from tests.shim.each.translator import Translations

SUBJECTS = {"i": "je", "you": "tu", "we": "nous"}
VERBS = {"see": "voir", "want": "vouloir"}
THINGS = {"red house": "maison rouge", "old car": "voiture vieille", "new dog": "chien neuf"}
THINGS |= {"red dog": "chien rouge"}
PAIRS = [
    (f"{subject} {verb} the {thing}.", f"{SUBJECTS[subject]} {VERBS[verb]} le {THINGS[thing]} !")
    for subject in SUBJECTS
    for verb in VERBS
    for thing in THINGS
]
NUM_STEPS = 8


@pytest.fixture
def corpus(adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace D2L's corpus by a small one, and return its pairs."""
    text = "\n".join("\t".join(pair) for pair in PAIRS)
    fake_data.replace_sentences(monkeypatch, adapter.d2l, tmp_path, text)
    return PAIRS


# Data


def split_words(sentence: str) -> list[str]:
    return sentence.replace(".", " .").split()


def test_sentence_pairs_become_tokens(adapter: Adapter, corpus: list[Any]) -> None:
    data = adapter.d2l.MTFraEng(batch_size=5, num_steps=NUM_STEPS, num_train=20, num_val=3)
    source, target, lengths, answer = map(np.asarray, map(adapter.to_numpy, data.arrays))
    assert source.shape == target.shape == answer.shape == (24, NUM_STEPS)
    for row, (english, french) in enumerate(corpus):
        expected = [*split_words(english), "<eos>", "<pad>", "<pad>"][:NUM_STEPS]
        assert data.src_vocab.to_tokens(source[row]) == expected
        assert lengths[row] == NUM_STEPS - expected.count("<pad>") == 7
        target_words = [*split_words(french), "<eos>", "<pad>", "<pad>"][:NUM_STEPS]
        assert data.tgt_vocab.to_tokens(answer[row]) == target_words
        assert data.tgt_vocab.to_tokens(target[row]) == ["<bos>", *target_words[:-1]]
    arrays = source, target, lengths, answer
    assert {str(array.dtype) for array in arrays} == {adapter.INTEGER_DTYPE}


def test_only_training_rows_are_shuffled(adapter: Adapter, corpus: list[Any]) -> None:
    data = adapter.d2l.MTFraEng(batch_size=7, num_steps=NUM_STEPS, num_train=20, num_val=3)
    source = np.asarray(adapter.to_numpy(data.arrays[0]))
    train, val = data.train_dataloader(), data.val_dataloader()
    assert [len(train), len(val)] == [3, 1]

    def rows(loader: Any) -> np.ndarray:
        return np.concatenate([np.asarray(adapter.to_numpy(batch[0])) for batch in loader])

    def as_set(array: np.ndarray) -> set[tuple[int, ...]]:
        return set(map(tuple, array.tolist()))

    first = rows(train)
    assert as_set(first) == as_set(source[:20])
    assert any((rows(train) != first).any() for _ in range(5)), "rows are shuffled in each epoch"
    np.testing.assert_array_equal(rows(val), source[20:])


def test_training_batch_comes_from_all_data(adapter: Adapter) -> None:
    class Numbers(adapter.d2l.DataModule):  # type: ignore[misc, name-defined]
        batch_size = 10

        def get_dataloader(self, train: bool) -> Any:
            return self.get_tensorloader([adapter.tensor(np.arange(1000))] * 2, train)

    data = Numbers()
    (first, _), *_ = data.train_dataloader()
    assert np.ptp(adapter.to_numpy(first)) > 200  # a small shuffle buffer would return neighbours
    (first, _), *_ = data.val_dataloader()
    np.testing.assert_array_equal(adapter.to_numpy(first), np.arange(10))  # in order


def test_load_data_nmt_returns_lengths_and_vocabularies(
    adapter: Adapter, corpus: list[Any]
) -> None:
    if adapter.train_with_functions is None:
        adapter.assert_missing("load_data_nmt")
        return
    batches, src_vocab, tgt_vocab = adapter.d2l.load_data_nmt(6, NUM_STEPS, num_examples=23)
    assert src_vocab["<pad>"] != src_vocab["<unk>"]
    sentences = set()
    for batch in batches:
        source, source_lens, target, target_lens = map(np.asarray, map(adapter.to_numpy, batch))
        for x, n, y, m in zip(source, source_lens, target, target_lens, strict=True):
            assert set(src_vocab.to_tokens(x[n:])) <= {"<pad>"}
            assert src_vocab.to_tokens(x[:n])[-1] == tgt_vocab.to_tokens(y[:m])[-1] == "<eos>"
            english = " ".join(src_vocab.to_tokens(x[: n - 1])).replace(" .", ".")
            sentences.add((english, " ".join(tgt_vocab.to_tokens(y[: m - 1]))))
    assert sentences == set(corpus)


# Training


@pytest.mark.parametrize("clip", [0, 0.01])
def test_training_step_follows_gradient(adapter: Adapter, clip: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4)).astype("float32")
    Y = np.array([0, 1, 2, 0, 1, 2], "int32")
    before, after, board = adapter.fit_classifier(X, Y, lr=0.5, epochs=1, clip=clip)
    logits = X @ before["weight"] + before["bias"]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    loss = -np.log(probs[np.arange(6), Y]).mean()
    slope = (probs - np.eye(3)[Y]) / 6
    gradients = {"weight": X.T @ slope, "bias": slope.sum(axis=0)}
    norm = math.sqrt(sum((g**2).sum() for g in gradients.values()))
    scale = min(1, clip / norm) if clip else 1
    for name, g in gradients.items():
        assert_close(after[name], before[name] - 0.5 * scale * g, 1e-4)
    logits = X @ after["weight"] + after["bias"]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert board["train_loss"] == [(0, pytest.approx(loss, rel=1e-4))]
    val_loss = -np.log(probs[np.arange(6), Y]).mean()
    assert board["val_loss"] == [(1, pytest.approx(val_loss, rel=1e-4))]
    assert board["val_acc"] == [(1, pytest.approx((logits.argmax(axis=1) == Y).mean()))]


def test_classifier_learns(adapter: Adapter) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype("float32")
    Y = X[:, :3].argmax(axis=1).astype("int32")
    _, _, board = adapter.fit_classifier(X, Y, lr=1.0, epochs=30, clip=0)
    assert board["val_acc"][-1][1] > 0.9


class Duck:
    """An object of another class that has the attributes and methods of ``other``."""

    def __init__(self, other: Any) -> None:
        vars(self)["other"] = other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.other, name)

    def __getitem__(self, name: str) -> Any:  # of MLX's modules
        return self.other[name]

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.other, name, value)


def test_trainer_needs_methods_and_hooks_get_numbers(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Train objects of other classes, on batches that a replaced ``prepare_batch`` reads, with a replaced ``draw``."""
    d2l, drawn = adapter.d2l, []
    fit, draw = d2l.Trainer.fit, d2l.ProgressBoard.draw

    def fit_ducks(trainer: Any, model: Any, data: Any) -> None:
        batches = [{"X": batch[0], "y": batch[1]} for batch in data.train_dataloader()]
        data.train_dataloader = data.val_dataloader = lambda: batches
        fit(trainer, Duck(model), Duck(data))

    def keep(board: Any, x: float, y: Any, label: str, every_n: int = 1) -> None:
        drawn.append((label, type(y), np.shape(y), f"{y:.3f}" == f"{float(y):.3f}"))
        draw(board, x, y, label, every_n)

    monkeypatch.setattr(d2l.Trainer, "fit", fit_ducks)
    monkeypatch.setattr(d2l.Trainer, "prepare_batch", lambda self, batch: [batch["X"], batch["y"]])
    monkeypatch.setattr(d2l.ProgressBoard, "draw", keep)
    X, Y = np.eye(4, dtype="float32"), np.array([0, 1, 2, 0], "int32")
    before, after, _ = adapter.fit_classifier(X, Y, lr=0.5, epochs=1, clip=1)
    assert (before["weight"] != after["weight"]).any()
    labels = "train_loss", "val_loss", "val_acc"
    assert drawn == [(label, np.ndarray, (), True) for label in labels]


def test_only_encoder_decoder_itself_returns_state(adapter: Adapter) -> None:
    """Test that ``EncoderDecoder`` also returns the state, as in D2L 0.17, except in JAX; subclasses do not."""
    d2l = adapter.d2l
    call = next(name for name in ("forward", "call", "__call__") if hasattr(d2l.Encoder, name))
    encoder = {call: lambda self, X, *args, **kwargs: 2 * X}
    decoder = {
        "init_state": lambda self, enc_all_outputs, *args: enc_all_outputs + args[0],
        call: lambda self, X, state, **kwargs: (X * state, state + 1),
    }
    X, Z, lens = np.random.default_rng(0).normal(size=(3, 2, 4)).astype("float32")
    parts = (type("Own", (d2l.Encoder,), encoder), type("Own", (d2l.Decoder,), decoder))
    subclass = type("Own", (d2l.EncoderDecoder,), {})
    pair_output, own_output = (
        adapter.layer(model(*(part() for part in parts)))(X, Z, lens)
        for model in (d2l.EncoderDecoder, subclass)
    )
    output, state = Z * (2 * X + lens), 2 * X + lens + 1
    assert_close(own_output, output)
    if adapter.train_with_functions is None:
        assert_close(pair_output, output)
    else:
        assert isinstance(pair_output, list)
        assert_close(pair_output[0], output)
        assert_close(pair_output[1], state)


def test_labels_may_be_whole_floats(adapter: Adapter) -> None:
    logits, labels = np.random.default_rng(0).normal(size=(4, 3)), np.array([0, 2, 1, 1], "int32")
    for name in "loss", "accuracy":
        function = adapter.classifier_method(name)
        results = [
            adapter.to_numpy(function(adapter.tensor(logits.astype("float32")), adapter.tensor(y)))
            for y in (labels, labels.astype("float32"))
        ]
        np.testing.assert_array_equal(*results)
        fractions = adapter.tensor(labels.astype("float32") + 0.5)
        if not adapter.d2l.__name__.endswith(
            "jax"
        ):  # whose compiled functions do not know the values
            with pytest.raises(ValueError, match="Y: got dtype float32 with fractions"):
                function(adapter.tensor(logits.astype("float32")), fractions)
        elif name == "loss":
            assert np.isnan(function(adapter.tensor(logits.astype("float32")), fractions)[0])


def test_translation_loss_ignores_padding(adapter: Adapter) -> None:
    rng = np.random.default_rng(0)
    Y_hat = rng.normal(size=(2, 4, 5)).astype("float32")
    Y = np.array([[3, 4, 1, 1], [2, 3, 4, 1]], "int32")  # 1 is padding
    probs = np.exp(Y_hat) / np.exp(Y_hat).sum(axis=-1, keepdims=True)
    losses = -np.log(np.take_along_axis(probs, Y[..., None], axis=-1)[..., 0])
    mask = Y != 1
    mean, token_losses = adapter.sequence_loss(Y_hat, Y, tgt_pad=1)
    assert float(mean) == pytest.approx(losses[mask].mean(), rel=1e-5)
    assert_close(token_losses, (losses * mask).reshape(-1))


@pytest.mark.parametrize("modes", [[True, True, False], [False, False, False], [True, False, True]])
def test_prediction_restores_each_layers_mode(adapter: Adapter, modes: list[bool]) -> None:
    seq2seq = import_module(f"{adapter.d2l.__name__}.seq2seq")
    if not hasattr(seq2seq, "evaluation_mode"):
        pytest.skip("layers have no modes in this framework")
    block = adapter.build(
        "TransformerEncoderBlock", *adapter.layer_args["TransformerEncoderBlock"]["short"]
    )
    layers = [block.layer, block.part("attention"), block.part("attention.attention")]
    for layer, mode in zip(layers, modes, strict=True):  # each call also sets the layers inside
        layer.train() if mode else layer.eval()
    with seq2seq.evaluation_mode(block.layer):
        assert not any(layer.training for layer in layers)
    assert [layer.training for layer in layers] == modes


def test_summary_prints_each_layer_and_its_shape(
    adapter: Adapter, descent: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model = adapter.d2l.Classifier()
    dense = adapter.build_linear(4, None)
    model.net = descent.add_dropout(dense, 0.5)
    model.layer_summary((2, 4))
    shape = adapter.tensor(np.zeros((2, 3), "float32")).shape  # printed as in the framework
    assert capsys.readouterr().out.splitlines() == [
        f"{type(dense).__name__} output shape:\t {shape}",
        f"Dropout output shape:\t {shape}",
    ]


def is_attention(weights: list[Any], num_keys: int, length: int) -> bool:
    """Return whether each row sums to 1, with no weight on padding."""
    rows = np.concatenate([np.reshape(block, (-1, num_keys)) for step in weights for block in step])
    return np.allclose(rows.sum(axis=1), 1, atol=1e-5) and not rows[:, length:].any()


def check_translations(result: Translations, expected: list[str], adapter: Adapter) -> None:
    scores = [
        adapter.d2l.bleu(sentence, want, k=2)
        for sentence, want in zip(result.sentences, expected, strict=True)
    ]
    assert scores == [1.0] * len(expected), result.sentences[:3]
    assert len(result.weights) >= 6, "there are weights for each token"
    assert is_attention(result.weights, NUM_STEPS, 7)


@pytest.mark.release("jax")
def test_transformer_learns_pairs_with_trainer(adapter: Adapter, corpus: list[Any]) -> None:
    # All batches have eight rows, since JAX recompiles the model for each size.
    data = adapter.d2l.MTFraEng(batch_size=8, num_steps=NUM_STEPS, num_train=16, num_val=8)
    pairs = corpus[:16:2]
    result = adapter.train_with_trainer(data, tuple(map(list, zip(*pairs, strict=True))), epochs=20)
    check_translations(result, [french for _, french in pairs], adapter)
    assert result.losses[-1] < 0.1 < result.losses[0]


@pytest.mark.release("tensorflow")
def test_transformer_learns_pairs_with_functions(
    adapter: Adapter, corpus: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    if adapter.train_with_functions is None:
        adapter.assert_missing("train_seq2seq")
        return
    pairs = corpus[::7]  # few, since sentences are translated one by one
    sources = [english.replace(".", " .") for english, _ in pairs]
    result = adapter.train_with_functions(
        lambda: adapter.d2l.load_data_nmt(8, NUM_STEPS, 23),
        (sources, [french for _, french in pairs]),
        NUM_STEPS,
        epochs=15,
    )
    check_translations(result, [french for _, french in pairs], adapter)
    assert "tokens/sec on" in capsys.readouterr().out


def test_train_seq2seq_clips_gradients(
    adapter: Adapter,
    corpus: list[Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clip gradients to almost nothing, so that the second epoch's loss is the first's."""
    if adapter.train_with_functions is None:  # tested above
        return
    seq2seq = import_module(f"{adapter.d2l.__name__}.seq2seq")
    clip = seq2seq.clip_gradients

    def train_and_read_losses() -> list[str]:
        for epochs in (1, 2):
            pairs = [[corpus[0][0].replace(".", " .")], [corpus[0][1]]]
            adapter.train_with_functions(
                lambda: adapter.d2l.load_data_nmt(24, NUM_STEPS, 23), pairs, NUM_STEPS, epochs
            )
        return re.findall(r"loss (\d+\.\d+)", capsys.readouterr().out)

    first, second = train_and_read_losses()
    assert first != second
    monkeypatch.setattr(seq2seq, "clip_gradients", lambda net, norm: clip(net, 1e-30 * norm))
    first, second = train_and_read_losses()
    assert first == second


# Images


def test_fashion_mnist_comes_in_batches(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = write_fashion_mnist(adapter.d2l, tmp_path, monkeypatch)
    data = adapter.d2l.FashionMNIST(batch_size=4)
    X, y = (np.asarray(adapter.to_numpy(part)) for part in next(iter(data.val_dataloader())))
    assert X.dtype == np.float32
    assert_close(X.reshape(4, 28, 28), images["t10k"][:4] / 255)
    assert y.tolist() == [0, 1, 2, 3]
    assert data.text_labels(y) == ["t-shirt", "trouser", "pullover", "dress"]
    assert [len(data.train_dataloader()), len(data.val_dataloader())] == [3, 2]
    assert adapter.is_shuffled(data.train_dataloader())
    X, _ = next(iter(adapter.d2l.FashionMNIST(batch_size=4, resize=(14, 21)).train_dataloader()))
    assert np.squeeze(adapter.to_numpy(X)).shape == (4, 14, 21)
    for ncols in (4, 3):  # all images, or one per column
        data.visualize(next(iter(data.val_dataloader())), ncols=ncols)
        titles = [axes.get_title() for axes in adapter.d2l.plt.gcf().axes]
        assert titles == ["t-shirt", "trouser", "pullover", "dress"][:ncols]


def test_fashion_mnist_can_be_changed(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = write_fashion_mnist(adapter.d2l, tmp_path, monkeypatch)["train"]
    data = adapter.d2l.FashionMNIST(batch_size=4, resize=28)
    if isinstance(data.train, tuple):  # two arrays, as Keras loads them
        np.testing.assert_array_equal(data.train[0], images)
        assert (data.train[0].dtype, data.train[1].tolist()) == (np.uint8, [*range(10)])
        data.train = tuple(array[5:] for array in data.train)
    else:
        image, label = data.train[3]
        assert type(image) is type(adapter.tensor(np.zeros(1)))
        assert_close(np.squeeze(adapter.to_numpy(image)), images[3] / 255)
        assert (int(label), data.train.classes[3]) == (3, "Dress")
        data.train.data, data.train.targets = data.train.data[5:], data.train.targets[5:]
        data.train.targets[:2] = 1
        assert [int(label) for _, label in data.train] == [1, 1, 7, 8, 9]
    X, _ = next(iter(data.train_dataloader()))
    expected = {image.sum() / 255 for image in images[5:].astype("float64")}
    assert all(np.isclose(x.sum(), [*expected]).any() for x in np.asarray(adapter.to_numpy(X)))


def write_fashion_mnist(
    d2l: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, np.ndarray]:
    """Replace Fashion-MNIST by files in its format, with a few images of noise."""
    import gzip

    rng = np.random.default_rng(0)
    arrays = {}
    for kind, count in (("train", 10), ("t10k", 8)):
        arrays[kind] = rng.integers(0, 256, (count, 28, 28), np.uint8)
        for suffix, array in (
            ("images-idx3", arrays[kind]),
            ("labels-idx1", np.arange(count, dtype=np.uint8) % 10),
        ):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
            file = folder / f"{kind}-{suffix}-ubyte.gz"
            file.write_bytes(gzip.compress(header + array.tobytes()))
            checksum = hashlib.md5(file.read_bytes()).hexdigest()
            address = f"https://example.org/{file.name}"
            monkeypatch.setitem(d2l.DATA_HUB, file.stem, (address, checksum))
    monkeypatch.setenv("D2L_DATA", str(folder))
    return arrays
