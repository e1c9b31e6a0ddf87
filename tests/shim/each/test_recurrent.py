"""Tests of batches of a novel, and tests of recurrent language models against NumPy in float64."""

import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.shim.each import fake_data
from tests.shim.each.adapter import Adapter
from tests.shim.each.boards import watch_boards
from tests.shim.each.cases import assert_close
from tests.shim.each.recurrent import load_recurrent_models

pytestmark = pytest.mark.usefixtures("close_figures")

TEXT = "The Time Machine, by H. G. Wells\n\n  I\n\n" + "The Time Traveller (so we call him)\n" * 8
LETTERS = " ".join(re.findall("[a-z]+", TEXT.lower())) + " "
RNG = np.random.default_rng(0)
V, H = 6, 4
SHAPES = {"W_xh": (V, H), "W_hh": (H, H), "b_h": (H,), "W_hq": (H, V), "b_q": (V,)}
START = {name: RNG.normal(size=shape).astype("float32") for name, shape in SHAPES.items()}
ROWS = RNG.integers(0, V, (3, 13))
Weights = dict[str, Any]


@pytest.fixture
def novel(adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace D2L's text by a short one."""
    fake_data.replace_novel(monkeypatch, adapter.d2l, tmp_path, TEXT)


@pytest.fixture
def models(adapter: Adapter, pytestconfig: pytest.Config) -> Any:
    """Return the framework's recurrent models; if D2L has no such chapters, check that their names are missing."""
    framework = pytestconfig.getoption("framework")
    if find_spec(f"tests.shim.each.{framework}.recurrent") is None:
        adapter.assert_missing("RNN", "RNNModel", "TimeMachine", "train_ch8")
        pytest.skip("D2L has no such chapters in this framework")
    return load_recurrent_models(framework)


@pytest.fixture
def class_models(adapter: Adapter, models: Any) -> Any:
    """Return models made of the classes of D2L 1.0."""
    if not hasattr(models, "model"):
        adapter.assert_missing("RNNLM")
        pytest.skip("D2L 1.0 does not have this framework")
    return models


@pytest.fixture
def function_models(adapter: Adapter, models: Any) -> Any:
    """Return models made of the functions of D2L 0.17."""
    if not hasattr(models, "train_ch8"):
        adapter.assert_missing("train_ch8")
        pytest.skip("D2L 0.17 does not have this framework")
    return models


# The reference, in NumPy


def run(w: Weights, tokens: Any, state: Any, activation: Any = np.tanh) -> tuple[Any, Any]:
    """Return states (steps + 1, batch, hiddens) and logits (batch, steps, V) for tokens (batch, steps)."""
    states = [state]
    for column in tokens.T:
        states.append(activation(w["W_xh"][column] + states[-1] @ w["W_hh"] + w["b_h"]))
    return np.array(states), (np.array(states[1:]) @ w["W_hq"] + w["b_q"]).swapaxes(0, 1)


def loss_and_gradients(w: Weights, X: Any, Y: Any, state: Any) -> tuple[float, Weights, Any]:
    """Return the mean cross-entropy, its gradients through all steps of X, and the last state."""
    states, logits = run(w, X, state)
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    losses = -np.log(np.take_along_axis(probs, Y[..., None], 2))
    slopes = (probs - np.eye(V)[Y]).swapaxes(0, 1) / Y.size
    gradients = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    state_gradient = np.zeros_like(state)
    for t in reversed(range(len(slopes))):
        gradients["W_hq"] += states[t + 1].T @ slopes[t]
        gradients["b_q"] += slopes[t].sum(axis=0)
        inner = (slopes[t] @ w["W_hq"].T + state_gradient) * (1 - states[t + 1] ** 2)
        np.add.at(gradients["W_xh"], X[:, t], inner)
        gradients["W_hh"] += states[t].T @ inner
        gradients["b_h"] += inner.sum(axis=0)
        state_gradient = inner @ w["W_hh"].T
    return losses.mean(), gradients, states[-1]


def take_clipped_step(w: Weights, gradients: Weights, lr: float, clip: float) -> Weights:
    norm = math.sqrt(sum((x**2).sum() for x in gradients.values()))
    scale = min(1, clip / norm) if clip else 1
    return {name: w[name] - lr * scale * gradients[name] for name in w}


def predict_greedily(
    w: Weights, tokens: list[int], count: int, activation: Any = np.tanh
) -> list[int]:
    for _ in range(count):
        _, logits = run(w, np.array([tokens]), np.zeros((1, w["W_hh"].shape[0])), activation)
        tokens = [*tokens, int(logits[0, -1].argmax())]
    return tokens


def as_float64(w: Weights) -> Weights:
    return {name: x.astype("float64") for name, x in w.items()}


def make_vocab(adapter: Adapter) -> Any:
    """Make a vocabulary of V tokens, including <unk>."""
    vocab = adapter.d2l.Vocab([*"abcd "])
    assert len(vocab) == V
    return vocab


# Text


def test_tokenize_splits_words_or_characters(adapter: Adapter) -> None:
    lines = ["the time  machine", "", " by h g"]
    assert adapter.d2l.tokenize(lines) == [["the", "time", "machine"], [], ["by", "h", "g"]]
    assert adapter.d2l.tokenize(lines, "char") == [[*line] for line in lines]
    counts = adapter.d2l.count_corpus(adapter.d2l.tokenize(["a b a", "c a"]))
    assert counts.most_common() == [("a", 3), ("b", 1), ("c", 1)]
    assert adapter.d2l.count_corpus(["a", "b", "a"]) == {"a": 2, "b": 1}


def test_truncate_pad_and_check_len(adapter: Adapter) -> None:
    assert adapter.d2l.truncate_pad([1, 2, 3], 2, 0) == [1, 2]
    assert adapter.d2l.truncate_pad([1, 2, 3], 5, 0) == [1, 2, 3, 0, 0]
    adapter.d2l.check_len([1, 2], 2)
    with pytest.raises(ValueError, match="a: got 3 elements; need 2"):
        adapter.d2l.check_len([1, 2, 3], 2)


def test_time_machine_is_read_as_letters_and_spaces(adapter: Adapter, novel: None) -> None:
    lines = adapter.d2l.read_time_machine()
    assert lines[:3] == ["the time machine by h g wells", "", "i"]
    corpus, vocab = adapter.d2l.load_corpus_time_machine()
    assert vocab.to_tokens(corpus) == [*"".join(lines)]
    assert adapter.d2l.load_corpus_time_machine(7)[0] == corpus[:7]
    assert len(vocab) == len({*"".join(lines)}) + 1


def test_random_sequences_start_at_random_offset(adapter: Adapter, function_models: Any) -> None:
    corpus = list(range(35))
    batch_size, num_steps = 2, 5
    offsets = set()
    for _ in range(100):
        seen = []
        for X, Y in adapter.d2l.seq_data_iter_random(corpus, batch_size, num_steps):
            X, Y = adapter.to_numpy(X), adapter.to_numpy(Y)
            assert X.shape == Y.shape == (batch_size, num_steps)
            assert (Y == X + 1).all()
            assert (np.diff(X) == 1).all()
            seen.extend(X[:, 0].tolist())
        offset = min(seen) % num_steps
        starts = range(offset, 35 - num_steps, num_steps)
        assert len(seen) == len({*seen}) == len(starts) // batch_size * batch_size
        assert {*seen} <= {*starts}
        offsets.add(offset)
    assert offsets == {0, 1, 2, 3, 4}


def test_sequential_rows_continue_in_next_batch(adapter: Adapter, function_models: Any) -> None:
    corpus = list(range(35))
    batch_size, num_steps = 2, 5
    offsets = set()
    for _ in range(100):
        pairs = [*adapter.d2l.seq_data_iter_sequential(corpus, batch_size, num_steps)]
        X, Y = (
            np.concatenate([adapter.to_numpy(pair[i]) for pair in pairs], axis=1) for i in (0, 1)
        )
        offset = int(X[0, 0])
        length = (34 - offset) // batch_size
        want = offset + np.arange(batch_size)[:, None] * length + np.arange(X.shape[1])
        assert X.shape[1] == length // num_steps * num_steps
        assert (want == X).all()
        assert (want + 1 == Y).all()
        offsets.add(offset)
    assert offsets == {0, 1, 2, 3, 4, 5}


def test_too_short_corpus_gives_no_batch(adapter: Adapter, function_models: Any) -> None:
    for iterate in adapter.d2l.seq_data_iter_random, adapter.d2l.seq_data_iter_sequential:
        assert [*iterate([1, 2, 3], 2, 5)] == []
        assert [*iterate([], 2, 5)] == []


def test_time_machine_batches_can_be_iterated_twice(
    adapter: Adapter, function_models: Any, novel: None
) -> None:
    for is_random in (False, True):
        batches, vocab = adapter.d2l.load_data_time_machine(4, 6, is_random, max_tokens=100)
        for _ in range(2):
            pairs = [[adapter.to_numpy(x) for x in pair] for pair in batches]
            assert len(pairs) in (3, 4)
            lines = ["".join(vocab.to_tokens(row)) for X, Y in pairs for row in X]
            read = "".join(adapter.d2l.read_time_machine())[:100]
            assert all(part in read for part in lines)
        first_rows = "".join(vocab.to_tokens(np.concatenate([X[0] for X, _ in pairs])))
        assert (first_rows in read) != is_random


def test_time_machine_has_sequence_at_each_character(
    adapter: Adapter, models: Any, novel: None
) -> None:
    data = adapter.d2l.TimeMachine(4, 7, num_train=10, num_val=6)
    X, Y = adapter.to_numpy(data.X), adapter.to_numpy(data.Y)
    assert X.shape == Y.shape == (len(LETTERS) - 7, 7)
    for row in (0, 5, len(X) - 1):
        assert "".join(data.vocab.to_tokens(X[row])) == LETTERS[row : row + 7]
        assert "".join(data.vocab.to_tokens(Y[row])) == LETTERS[row + 1 : row + 8]
    rows = np.concatenate([adapter.to_numpy(batch[0]) for batch in data.val_dataloader()])
    assert (rows == X[10:16]).all()
    train = np.concatenate([adapter.to_numpy(batch[0]) for batch in data.train_dataloader()])
    assert {*map(tuple, train.tolist())} == {*map(tuple, X[:10].tolist())}
    corpus, vocab = data.build("Wells, H. G.")
    assert vocab.to_tokens(corpus) == [*"wells h g "]
    assert data.build("tea", data.vocab) == ([data.vocab[letter] for letter in "tea"], data.vocab)


# Models of D2L 1.0


def test_rnn_from_scratch_matches_reference(adapter: Adapter, class_models: Any) -> None:
    inputs = np.eye(V, dtype="float32")[ROWS.T]
    state0 = RNG.normal(size=(3, H)).astype("float32")
    for state in (None, state0):
        outputs, last = class_models.layer("RNNLMScratch", START, inputs, state)
        want, _ = run(as_float64(START), ROWS, np.zeros((3, H)) if state is None else state)
        assert_close(outputs, want[1:])
        assert_close(last, want[-1])


@pytest.mark.parametrize("name", ["RNNLMScratch", "RNNLM"])
def test_language_model_matches_reference(adapter: Adapter, class_models: Any, name: str) -> None:
    model = class_models.model(name, START)
    w = as_float64(class_models.weights(model))
    assert {name: x.shape for name, x in w.items()} == SHAPES
    activation = np.tanh if name == "RNNLMScratch" else class_models.ACTIVATION
    assert_close(class_models.logits(model, ROWS), run(w, ROWS, np.zeros((3, H)), activation)[1])
    state0 = RNG.normal(size=(1, 3, H)).astype("float32")
    assert_close(class_models.logits(model, ROWS, state0), run(w, ROWS, state0[0], activation)[1])


@pytest.mark.parametrize("name", ["RNNLMScratch", "RNNLM"])
def test_predict_continues_with_likeliest_tokens(
    adapter: Adapter, class_models: Any, name: str
) -> None:
    vocab = make_vocab(adapter)
    model = class_models.model(name, START)
    w = as_float64(class_models.weights(model))
    activation = np.tanh if name == "RNNLMScratch" else class_models.ACTIVATION
    for prefix, count in (("a", 5), ("bad cab", 8), ("dab", 0)):
        want = predict_greedily(w, vocab[[*prefix]], count, activation)
        assert class_models.predict(model, prefix, count, vocab) == "".join(vocab.to_tokens(want))


@pytest.mark.parametrize("clip", [0, 0.1])
def test_training_descends_and_draws_perplexity(
    adapter: Adapter, class_models: Any, clip: float
) -> None:
    X, Y = ROWS[:, :-1], ROWS[:, 1:]

    class Data(adapter.d2l.DataModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.batch_size = 3

        def get_dataloader(self, train: bool) -> Any:
            tensors = [adapter.tensor(x.astype("int32")) for x in (X, Y)]
            return self.get_tensorloader(tensors, False)

    model = class_models.model("RNNLMScratch", START, lr=0.5)
    trained = class_models.fit(model, Data(), clip)
    state0 = np.zeros((3, H))
    loss, gradients, _ = loss_and_gradients(as_float64(START), X, Y, state0)
    want = take_clipped_step(as_float64(START), gradients, 0.5, clip)
    for name, x in class_models.weights(trained or model).items():
        assert_close(x, want[name])
    curves = {name: [point[-1] for point in points] for name, points in model.board.data.items()}
    final_loss = loss_and_gradients(want, X, Y, state0)[0]
    assert curves == {
        "train_ppl": [pytest.approx(math.exp(loss), rel=1e-4)],
        "val_ppl": [pytest.approx(math.exp(final_loss), rel=1e-4)],
    }


# Functions of D2L 0.17


@pytest.mark.parametrize("by_sgd", [True, False])
@pytest.mark.parametrize("use_random_iter", [True, False])
def test_epoch_keeps_state_between_sequential_batches(
    adapter: Adapter, function_models: Any, by_sgd: bool, use_random_iter: bool
) -> None:
    pairs = [(ROWS[:, i : i + 4], ROWS[:, i + 1 : i + 5]) for i in (0, 4, 8)]
    net = function_models.make_scratch(START)
    tensors = [[adapter.tensor(x.astype("int32")) for x in pair] for pair in pairs]
    perplexity, speed = function_models.train_epoch(net, tensors, 0.5, use_random_iter, by_sgd)
    w = as_float64(START)
    state = np.zeros((3, H))
    losses = []
    for X, Y in pairs:
        loss, gradients, last = loss_and_gradients(w, X, Y, state)
        w = take_clipped_step(w, gradients, 0.5, 1)
        losses.append(loss)
        state = np.zeros((3, H)) if use_random_iter else last
    assert perplexity == pytest.approx(math.exp(np.mean(losses)), rel=1e-4)
    assert speed > 0
    for got, want in zip(function_models.params(net), w.values(), strict=True):
        assert_close(got, want)


def test_predict_ch8_continues_with_likeliest_tokens(
    adapter: Adapter, function_models: Any
) -> None:
    vocab = make_vocab(adapter)
    net = function_models.make_scratch(START)
    for prefix, count in (("a", 5), ("bad cab", 8), ("dab", 0)):
        want = predict_greedily(as_float64(START), vocab[[*prefix]], count)
        assert function_models.predict_ch8(net, prefix, count, vocab) == "".join(
            vocab.to_tokens(want)
        )


def test_rnn_model_matches_its_layers(adapter: Adapter, function_models: Any) -> None:
    for net in function_models.make_rnn_models(V, H):
        first, second, *by_hand = function_models.run_twice(net, ROWS)
        assert first.shape == second.shape == (39, V)
        assert np.abs(first - second).max() > 1e-3  # a state is passed on
        assert_close(np.stack([first, second]), np.stack(by_hand))


@pytest.mark.parametrize("theta", [0.5, 100.0])
def test_gradients_are_clipped_together(
    adapter: Adapter, function_models: Any, theta: float
) -> None:
    gradients = [x.astype("float32") for x in (START["W_xh"], START["b_q"])]
    norm = math.sqrt(sum((x.astype("float64") ** 2).sum() for x in gradients))
    for got, before in zip(
        function_models.clip_gradients(gradients, theta), gradients, strict=True
    ):
        assert_close(got, before * min(1, theta / norm))


def test_training_reports_every_ten_epochs(
    adapter: Adapter,
    function_models: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    boards = watch_boards(monkeypatch)
    vocab = adapter.d2l.Vocab([*"abcd "])
    X, Y = (adapter.tensor(ROWS[:, i : i + 4].astype("int32")) for i in (0, 1))
    function_models.train_ch8(function_models.make_scratch(START), [(X, Y)], vocab, 1, 20)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    w = as_float64(START)
    perplexities = []
    samples = {}
    for number in range(1, 21):
        loss, gradients, _ = loss_and_gradients(w, ROWS[:, :4], ROWS[:, 1:5], np.zeros((3, H)))
        w = take_clipped_step(w, gradients, 1, 1)
        perplexities.append(math.exp(loss))
        if number % 10 == 0:
            samples[number] = "".join(
                vocab.to_tokens(predict_greedily(w, vocab[[*"time traveller"]], 50))
            )
    (board,) = boards
    assert board.X == [[10, 20]]
    assert_close(np.array(board.Y[0]), np.array([perplexities[9], perplexities[19]]), 1e-3)
    assert re.fullmatch(rf"perplexity {perplexities[-1]:.1f}, [\d.]+ tokens/sec on .+", lines[2])
    for line, prefix in zip([lines[3], lines[4]], ["time traveller", "traveller"], strict=True):
        want = predict_greedily(w, vocab[[*prefix]], 50)
        assert line == "".join(vocab.to_tokens(want))
    assert lines[:2] == [samples[10], samples[20]]


def test_perplexity_of_huge_loss_is_infinite(adapter: Adapter) -> None:
    from d2l_compat._shared.recurrent import perplexity

    assert perplexity(0.0) == 1
    assert perplexity(1e4) == math.inf
