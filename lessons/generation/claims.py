"""Check the lesson's claims against NumPy: layers, models and samplers, the made language, and every printed result.

nbval compares a notebook with its stored outputs, and cannot know whether these are right.
"""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, softmax
from tests.lessons.shared_claims import (
    assert_curves,
    assert_maps,
    assert_range_table,
    assert_variables,
    rope_frequencies,
    rotate_pairs,
    to_floats,
)
from tests.shim.reference import Linear, causal_self_attention

# Cells without random numbers have the same output in every framework, to the last digit.
DETERMINISTIC = [
    "one-more-token",
    "last-row",
    "full",
    "choices-by-hand",
    "operations",
    "bytes",
    "published",
    "slots",
]
# Each framework has its own causal mask, and draws its own words and letters.
VARYING_FORM = [
    "upper-left",
    "sentences",
    "surprise",
    "written",
    "same-as-recomputed",  # Java prints true, Python True
    "d2l-generate",
    "sink-map",
]

Arrays = dict[str, Any]
PROJECTIONS = "W_q", "W_k", "W_v"
DIFFERENCE = re.compile(r"= (\d+\.\d+)$", re.MULTILINE)


def read_differences(cell: Any) -> list[float]:
    return [float(number) for number in DIFFERENCE.findall(cell.printed)]


# One more token


def test_new_row_is_all_that_a_new_token_adds(cells):
    X = np.array([[2.0, 0], [0, 1], [1, 2], [2, 1]])
    weights = softmax(np.where(np.tri(4), X @ X.T / np.sqrt(2), -np.inf))
    rows = [row for row in cells["one-more-token"].rows if len(row) == 2]
    Y = weights @ X
    assert_printed(rows, [*Y[:3], *Y])
    printed_weights, result = cells["last-row"].rows
    assert_printed(printed_weights, weights[3])
    assert_printed(result, weights[3] @ X)
    products = X @ X[3]
    assert products.tolist() == [4, 1, 4, 5]
    assert_printed([2.83, 0.71, 2.83, 3.54], products / np.sqrt(2))


# A layer with a cache


def attend(W: Arrays, X: np.ndarray, **options: Any) -> np.ndarray:
    """Return causal self-attention of four heads with rotary positions, for texts (batch, n, d)."""
    projections = {f"w_{role}": Linear(W[f"W_{role}"]) for role in "qkvo"}
    output, _ = causal_self_attention(
        X, **projections, num_heads=4, rope=True, **options
    )
    return output


def test_outputs_do_not_depend_on_chunks(adapter, cells):
    names = cells["chunks"].names
    W = adapter.lesson_projections(names)
    X = array(names["X"])
    assert X.shape == (2, 12, 32)
    assert_variables(names, whole=attend(W, X))
    assert [row[0] for row in cells["chunks"].rows] == [1, 3, 12]
    assert read_differences(cells["chunks"]) == [0, 0, 0]
    assert read_differences(cells["the-layer"]) == [0]


def test_full_cache_refuses_one_more_token(cells):
    assert cells["full"].rows == [[13, 12]]


def test_forgotten_positions_turn_the_same_text_otherwise(adapter, cells):
    W = adapter.lesson_projections(cells["chunks"].names)
    X = array(cells["chunks"].names["X"])
    whole = attend(W, X)
    expected = []
    for size in (12, 3, 1):
        # A chunk's tokens are turned by their places in it; keys keep the turns of their own chunk.
        wrong = attend(W, X, positions=[i % size for i in range(12)])
        expected.append(np.abs(wrong - whole).max())
    assert_printed(read_differences(cells["forgotten-position-shown"]), expected, 4)
    assert expected[0] == 0
    assert min(expected[1:]) > 0.05


def test_mask_aligned_at_the_first_key(cells, framework):
    expected = [[1, 0, 0, 0, 0], [1 / 2, 1 / 2, 0, 0, 0]]
    if framework == "mlx":  # its own mask is aligned at the last key
        expected = [[1 / 4, 1 / 4, 1 / 4, 1 / 4, 0], [1 / 5] * 5, *expected]
    assert_printed(cells["upper-left"].rows, expected)


# A language that is known

ADJECTIVES = "old young small big happy tired quiet kind"
NOUNS = "dog cat bird horse farmer sailor singer nurse king cook doctor baker"
VERBS = "sleep run sing wait laugh see hear follow like help"


def is_plural_noun(word: str) -> bool | None:
    """Return None for a word that is no noun."""
    return (
        None
        if word.removesuffix("s") not in NOUNS.split()
        else word not in NOUNS.split()
    )


def is_plural_verb(word: str) -> bool | None:
    return (
        None if word.removesuffix("s") not in VERBS.split() else word in VERBS.split()
    )


def read_probabilities(words: list[str]) -> Iterator[float]:
    """Return each word's probability in a text of sentences, given those before it; 0 for a wrong word."""
    subjects: list[
        bool
    ] = []  # nouns that have no verb yet, and whether they are plural
    previous, has_adjective, had_clause = ".", False, False
    for word in words:
        can_be_verb = bool(subjects) and previous != "the" and not has_adjective
        if previous == "." or previous == "that":
            yield float(word == "the")
        elif previous == "the" or has_adjective:
            of_noun = (1 if has_adjective else 0.7) / 24
            is_noun = is_plural_noun(word) is not None
            is_adjective = word in ADJECTIVES.split() and not has_adjective
            yield of_noun if is_noun else 0.3 / 8 if is_adjective else 0
        elif not subjects:
            yield float(word == ".")
        else:
            agrees = can_be_verb and is_plural_verb(word) == subjects[-1]
            may_have_clause = len(subjects) == 1 and not had_clause
            yield (
                0.5 * (word == "that" or agrees / 10)
                if may_have_clause
                else agrees / 10
            )
        has_adjective = word in ADJECTIVES.split()
        had_clause = word != "." and (had_clause or word == "that")
        plural = is_plural_noun(word)
        if plural is not None:
            subjects.append(plural)
        elif is_plural_verb(word) is not None and subjects:
            subjects.pop()
        if word == ".":
            subjects = []
        previous = word


def test_printed_sentences_follow_the_grammar(cells):
    lines = [line.split() for line in cells["sentences"].printed.splitlines()]
    assert len(lines) == 4
    for words in lines:
        assert all(p > 0 for p in read_probabilities(words))
        assert words[-1] == "."
    words = [line.split()[0] for line in cells["surprise"].printed.splitlines()]
    surprises = [row[0] for row in cells["surprise"].rows]
    assert_printed(surprises, [-np.log(p) for p in read_probabilities(words)])
    assert words == lines[0]


@pytest.fixture(scope="module")
def vocab(cells) -> list[str]:
    return [*map(str, cells["corpus"].names["VOCAB"])]


@pytest.fixture(scope="module")
def test_tokens(cells) -> np.ndarray:
    return array(cells["corpus"].names["test_texts"]).astype(int)


def test_best_loss_is_the_mean_surprise(cells, vocab, test_tokens):
    names = cells["corpus"].names
    surprises = []
    for tokens in test_tokens:
        (start, *words) = [vocab[token] for token in tokens]
        assert start == "."
        surprises.append([-np.log(p) for p in read_probabilities(words)])
    np.testing.assert_allclose(
        array(names["test_surprises"])[:, 1:], surprises, atol=1e-5
    )
    assert float(names["best_loss"]) == pytest.approx(np.mean(surprises), abs=1e-5)
    assert len({*vocab}) == 55
    assert cells["corpus"].rows[0] == [55]
    assert_printed(cells["corpus"].rows[1], [np.mean(surprises)], 3)
    train = array(names["train_texts"]).astype(int)
    assert train.shape == (4000, 25)
    assert test_tokens.shape == (500, 25)
    assert len({*map(tuple, train)} & {*map(tuple, test_tokens)}) == 0


@pytest.fixture(scope="module")
def test_logits(adapter, cells, test_tokens) -> list[np.ndarray]:
    """Return each model's logits for the test texts."""
    models = cells["train-all"].names["models"]
    return [adapter.lesson_logits(model, test_tokens[:, :-1]) for model in models]


def cross_entropy(logits: np.ndarray, answers: np.ndarray) -> float:
    probs = np.take_along_axis(softmax(logits), answers[..., None], axis=-1)
    return float(-np.log(probs).mean())


def test_models_come_close_to_the_best_loss(cells, test_tokens, test_logits):
    cell = cells["losses-shown"]
    losses = [[cross_entropy(logits, test_tokens[:, 1:])] for logits in test_logits]
    np.testing.assert_allclose(to_floats(cell.names["losses"]), losses, atol=1e-4)
    assert len({round(loss, 6) for (loss,) in losses}) == 5
    assert_range_table(cell, {"five models": losses})
    best = float(cell.names["best_loss"])
    assert best < np.min(losses) < np.max(losses) < 1.06 * best  # "within six percent"
    assert {200, 16, 0.02} <= cells["train-all"].numbers


def test_logits_do_not_see_later_words(adapter, cells, test_tokens):
    model = cells["train-all"].names["models"][0]
    short = adapter.lesson_logits(model, test_tokens[:8, :6])
    long = adapter.lesson_logits(model, test_tokens[:8, :16])
    np.testing.assert_allclose(long[:, :6], short, atol=1e-4)


# Writing


def test_written_texts_are_those_without_a_cache(adapter, cells, test_tokens):
    names = cells["same-as-recomputed"].names
    expected = test_tokens[:8, :6]
    for _ in range(10):
        logits = adapter.lesson_logits(names["model"], expected)
        expected = np.concatenate([expected, logits[:, -1:].argmax(axis=-1)], axis=1)
    for name in ("fast", "slow"):
        assert (array(names[name]).astype(int) == expected).all()
    same, difference = cells["same-as-recomputed"].printed.splitlines()
    assert same.lower().endswith("true")
    assert difference.endswith(" 0.0000")
    assert cells["d2l-generate"].printed.lower().endswith("true\n")
    lines = cells["written"].printed.splitlines()
    assert len(lines) == 4
    assert {len(line.split()) for line in lines} == {12}


def choose_in_words(probs: np.ndarray) -> dict[str, np.ndarray]:
    """Return the six distributions, each by the sentence that describes it."""
    order = sorted(range(len(probs)), key=lambda token: -probs[token])
    kept: list[int] = []
    while sum(probs[kept]) < 0.9:
        kept.append(order[len(kept)])
    masks = {
        "top-k 10": np.isin(range(len(probs)), order[:10]),
        "top-p 0.9": np.isin(range(len(probs)), kept),
        "min-p 0.1": probs >= 0.1 * max(probs),
    }
    powers = {"as it is": 1.0, "temperature 2": 0.5, "temperature 1/2": 2.0}
    weights = {name: probs**power for name, power in powers.items()}
    weights |= {name: probs * mask for name, mask in masks.items()}
    return {name: x / x.sum() for name, x in weights.items()}


def test_ways_to_choose_are_those_in_words(adapter, cells):
    rng = np.random.default_rng(0)
    ways = cells["ways"].names["ways"]
    for sharpness in (1, 3):
        probs = softmax(sharpness * rng.normal(size=55)).astype("float32")
        expected = choose_in_words(probs.astype(float))
        for way, (name, distribution) in zip(ways, expected.items(), strict=True):
            actual = adapter.lesson_way(way, probs)
            np.testing.assert_allclose(actual, distribution, atol=1e-5, err_msg=name)


def test_printed_choices(cells):
    probs = np.array([0.5, 0.25, 0.15, 0.1])
    weights = [
        probs,
        probs**0.5,
        probs**2,
        *(probs * (np.arange(4) < k) for k in (2, 3, 2)),
    ]
    for line, expected in zip(
        cells["choices-by-hand"].printed.splitlines(), weights, strict=True
    ):
        printed = [float(number) for number in line.split()[:4]]
        assert_printed(printed, expected / expected.sum())


def test_curves_are_sorted_probabilities(adapter, cells, vocab):
    texts = [".", "the"], [".", "the", "dogs", "that", "the", "cat"]
    model = cells["written"].names["model"]
    heights = []
    for words in texts:
        tokens = np.array([[vocab.index(word) for word in words]])
        probs = softmax(adapter.lesson_logits(model, tokens)[0, -1])
        heights.append(np.sort(probs)[::-1])
    assert_curves(
        cells["choices-drawn"],
        np.arange(1, 56),
        heights,
        ["the ...", "the dogs that the cat ..."],
        ("Words, the most probable first", "Probability"),
        yscale="log",
        atol=1e-4,
        rtol=1e-3,
    )
    the, cat = heights
    assert min(the[:32].sum(), cat[:10].sum()) > 0.8  # "nearly all of the probability"
    assert the[10:32].sum() > 0.5


def test_sentences_are_recognized(cells, vocab, python_only):
    is_sentence = cells["is-sentence"].names["is_sentence"]
    rng = np.random.default_rng(0)
    make_sentence = cells["grammar"].names["make_sentence"]
    for seed in range(200):
        words, _ = make_sentence(random.Random(seed))
        assert is_sentence(words)
        words[rng.integers(len(words))] = str(rng.choice(vocab))
        is_right = (
            all(p > 0 for p in read_probabilities(words))
            and words.index(".") == len(words) - 1
        )
        assert is_sentence(words) == is_right


def test_tail_makes_errors(cells):
    cell = cells["sentences-shown"]
    names = [*choose_in_words(np.ones(11) / 11)]
    rows = assert_range_table(cell, dict(zip(names, cell.names["shares"], strict=True)))
    as_it_is, hot, *others = rows[:, 0]
    assert 0.3 < hot[0] < 0.65 < as_it_is[0]  # "about half of the sentences break"
    for median, _, _ in others:  # "mends nearly all of them"
        assert median > max(as_it_is[0], 0.93)
    shares = np.array(to_floats(cell.names["shares"]))
    np.testing.assert_allclose(shares * 200, np.round(shares * 200), atol=1e-3)


# What the cache saves, and what it costs


def test_operations_are_counted(cells):
    rows = [
        [float(x.replace(",", "")) for x in line.split()]
        for line in cells["operations"].printed.splitlines()[1:]
    ]
    for (n, cached, recomputed, ratio), expected in zip(
        rows, (1, 16, 256, 4096), strict=True
    ):
        per_token = [2 * (8 * 16**2 + 2 * i * 16) for i in range(1, expected + 1)]
        assert (n, cached, recomputed) == (expected, per_token[-1], sum(per_token))
        assert_printed(ratio, recomputed / cached, 1)


def test_padding_is_hidden(adapter, cells):
    names = cells["padded"].names
    W = adapter.lesson_projections(names)
    X = array(names["X"])
    alone = attend(W, X[:1, 5:])
    seen = attend(W, X)[:1, 5:]
    assert_variables(names, alone=alone)
    hidden, shown = read_differences(cells["padded"])
    assert hidden == 0
    assert_printed(shown, np.abs(seen - alone).max(), 4)
    assert shown > 0.1
    assert cells["padded-layer"].rows == [[5, 10], [0]]


def test_bytes_follow_the_formula(cells):
    assert cells["bytes"].rows[0][-1] == int(cells["bytes"].names["nbytes"]) == 256000
    assert cells["bytes"].rows[1][-1] == 2 * 2 * 4 * 4 * 4 * 1000
    rows = [row[-5:] for row in cells["published"].rows if len(row) >= 5]
    assert [row[:3] for row in rows] == [[80, 64, 8], [32, 32, 8], [32, 32, 8]]
    for layers, heads, kv_heads, each, shared in rows:
        assert each == 2 * 2 * heads * 128 * layers / 1024
        assert shared == 2 * 2 * kv_heads * 128 * layers / 1024


def test_query_head_reads_its_key_head(cells):
    names = cells["which-head"].names
    q, k, v = (array(names[name]) for name in "qkv")
    shared = array(names["shared"])
    if q.shape[1] == 5:  # heads come after steps
        q, k, v, shared = (x.swapaxes(1, 2) for x in (q, k, v, shared))
    k, v = (np.repeat(x, 4, axis=1) for x in (k, v))
    np.testing.assert_allclose(shared, softmax(q @ k.mT / 2) @ v, atol=1e-5)
    assert read_differences(cells["which-head"]) == [0] * 8
    assert [row[:2] for row in cells["which-head"].rows] == [
        [h, h // 4] for h in range(8)
    ]


def test_shared_heads_hand_on_fewer_numbers(adapter, cells):
    drawn = adapter.lesson_draw(cells["reports"].names, "draw_reports", 500)
    reports, asked, answers = (np.asarray(x) for x in drawn)
    reports = reports.reshape(500, 8, 4, 4)
    expected = reports[np.arange(500)[:, None], asked.astype(int), np.arange(4)]
    np.testing.assert_allclose(answers.reshape(500, 4, 4), expected, atol=1e-6)
    assert (reports.mean(), reports.var()) == pytest.approx((0, 1), abs=0.03)
    assert {*asked.ravel().astype(int)} == {*range(8)}
    cell = cells["report-errors"]
    names = ["4 x 4", "1 x 4", "1 x 16"]
    rows = assert_range_table(cell, dict(zip(names, cell.names["errors"], strict=True)))
    four, one, wide = rows[:, 0]
    assert max(four[2], wide[2]) < 0.05
    np.testing.assert_allclose(one, 0.75, atol=0.04)
    assert one[1] > 0.72  # no model is better than is possible
    assert len({*np.ravel(to_floats(cell.names["errors"]))}) == 15
    assert {150, 64, 0.04} <= cells["train-report-readers"].numbers


def run_latent(W: Arrays, X: np.ndarray) -> np.ndarray:
    """Return multi-head latent attention of whole texts: each head's key is made of content, then of its place."""
    n = X.shape[1]
    angles = np.arange(n)[:, None] * rope_frequencies(4)
    latents, place = X @ W["W_latent"], rotate_pairs(X @ W["W_k_rope"], angles)

    def split(Y: np.ndarray) -> np.ndarray:
        return Y.reshape(len(X), n, 4, -1).swapaxes(1, 2)

    q_place = rotate_pairs(split(X @ W["W_q_rope"]), angles)
    q = np.concatenate([split(X @ W["W_q"]), q_place], axis=-1)
    k = split(latents @ W["W_k"])
    k = np.concatenate([k, np.broadcast_to(place[:, None], (*k.shape[:3], 4))], axis=-1)
    scores = np.where(np.tri(n), q @ k.mT / np.sqrt(q.shape[-1]), -np.inf)
    Y = softmax(scores) @ split(latents @ W["W_v"])
    return Y.swapaxes(1, 2).reshape(X.shape) @ W["W_o"]


def test_absorbed_form_gives_the_same_numbers(adapter, cells):
    names = cells["latent-compared"].names
    matrices = "W_q", "W_q_rope", "W_latent", "W_k_rope", "W_k", "W_v", "W_o"
    W = adapter.lesson_matrices(names, "latent", matrices)
    whole = run_latent(W, array(names["X"]))
    assert_variables(names, whole=whole, last=whole[:, 9:])
    assert read_differences(cells["latent-compared"]) == [0]
    _, per_token, deepseek, separate = cells["latent-compared"].rows
    assert per_token == [12, 64]
    assert_printed(deepseek[-1], 2 * (512 + 64) * 60 / 1024, 1)
    assert separate[-1] == 2 * 2 * 128 * 128 * 60 / 1024
    assert (2 * 128 + 64) / (2 * 128) == 1.25  # "a quarter more"


def test_slots_are_used_in_turn(cells):
    for position, line in enumerate(cells["slots"].printed.splitlines()):
        *_, a, b, c, d = line.split()
        held = sorted(int(slot) for slot in (a, b, c, d) if slot != "-")
        assert held == [*range(max(0, position - 3), position + 1)]
        assert [a, b, c, d][position % 4] == str(position)


def test_rolling_cache_equals_the_masked_whole(adapter, cells):
    names = cells["rolling"].names
    W = adapter.lesson_projections(names, "window_attention")
    assert_variables(names, whole=attend(W, array(names["X"]), window=4))
    assert read_differences(cells["rolling"]) == [0, 0, 0]
    assert sorted(cells["rolling"].rows[-1]) == [26, 27, 28, 29]
    assert cells["rolling-layer"].rows == [[0], [4]]


# Sinks


def find_answers(letters: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """Return the digit of each entry's letter if it is among the last 16 entries, else 10."""
    answers = np.full(letters.shape, 10)
    for text, i in np.ndindex(letters.shape):
        window = letters[text, max(0, i - 16) : i]
        if letters[text, i] in window:
            answers[text, i] = digits[text, i]
    return answers


def test_lookups_have_right_answers(adapter, cells):
    letters, digits, answers = (
        x.astype(int)
        for x in adapter.lesson_draw(cells["lookups"].names, "draw_lookups", 50, 40)
    )
    assert (answers == find_answers(letters, digits)).all()
    for row, numbers in zip(
        letters, digits, strict=True
    ):  # a letter always has the same digit
        assert len({*zip(row, numbers, strict=True)}) == len({*row})
    assert {*letters.ravel()} == {*range(26)}
    assert {*digits.ravel()} == {*range(10)}


def run_recaller(
    W: Arrays,
    letters: np.ndarray,
    digits: np.ndarray,
    start: np.ndarray | None,
    *,
    keeps_start: bool = True,
    window: int = 16,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the answers, and the weights; without a start, 1 is added to the denominator."""
    count, n = letters.shape
    X = W["letter"][letters] + W["digit"][digits]
    distance = np.arange(n)[:, None] - np.arange(n)
    mask = (distance > 0) & (distance <= window)
    first = np.zeros(X.shape[-1]) if start is None else start
    X = np.concatenate([np.broadcast_to(first, (count, 1, len(first))), X], axis=1)
    is_first_seen = start is None or keeps_start
    mask = np.concatenate([np.full((n, 1), is_first_seen), mask], axis=1)
    q, k, v = W["letter"][letters] @ W["W_q"], X @ W["W_k"], X @ W["W_v"]
    # A token of zeros has the score 0, and its value adds nothing.
    weights = softmax(np.where(mask, q @ k.mT / np.sqrt(X.shape[-1]), -1e9))
    return weights @ v @ W["output"] + W["bias"], weights


@pytest.fixture(scope="module")
def recallers(adapter, cells) -> dict[str, list[tuple[Arrays, np.ndarray | None]]]:
    """Return the parameters of each model, and its start token."""
    names = cells["train-recallers"].names
    parts = ("letter", "digit"), PROJECTIONS
    with_start = [
        (adapter.lesson_weights(m, *parts), adapter.lesson_start(m))
        for m in names["recallers"]
    ]
    without = [
        (adapter.lesson_weights(m, *parts), None) for m in names["without_start"]
    ]
    return {"recallers": with_start, "without_start": without}


def recall_shares(
    models: Any, texts: list[np.ndarray], **options: Any
) -> list[list[float]]:
    letters, digits, answers = texts
    is_new = answers[:, 16:] == 10
    shares = []
    for W, start in models:
        scores, _ = run_recaller(W, letters, digits, start, **options)
        is_right = (scores.argmax(axis=-1) == answers)[:, 16:]
        shares.append([is_right[is_new].mean(), is_right[~is_new].mean()])
    return shares


def test_sink_is_needed_where_nothing_is_found(cells, recallers):
    cell = cells["recalled-shown"]
    names = cells["recalled"].names
    texts = [
        array(names[name]).astype(int) for name in ("letters", "digits", "answers")
    ]
    assert (texts[2] == find_answers(*texts[:2])).all()
    assert texts[0].shape == (200, 64)
    expected = [
        recall_shares(recallers["recallers"], texts),
        recall_shares(recallers["recallers"], texts, keeps_start=False),
        recall_shares(recallers["without_start"], texts),
    ]
    np.testing.assert_allclose(to_floats(names["recall"]), expected, atol=3e-3)
    labels = "start kept", "start evicted", "extra zero"
    rows = assert_range_table(cell, dict(zip(labels, names["recall"], strict=True)))
    kept, evicted, extra = rows
    assert min(kept[..., 1].min(), extra[..., 1].min(), evicted[1, 1]) > 0.94
    assert evicted[0, 2] < 0.4  # "rarely recognized as new"
    seeds = [W["digit"][0, 0] for models in recallers.values() for W, _ in models]
    assert len({*seeds[:5]}) == len({*seeds[5:]}) == 5
    assert {150, 64, 16, 0.02} <= cells["train-recallers"].numbers
    half = cells["solution-half-window-shown"]
    expected_half = recall_shares(recallers["recallers"], texts, window=8)
    np.testing.assert_allclose(to_floats(half.names["half"]), expected_half, atol=3e-3)
    ((new, known),) = assert_range_table(half, {"window of 8": expected_half})
    assert new[0] > 0.97
    is_near = [texts[0][:, 16 - i : 64 - i] == texts[0][:, 16:] for i in range(1, 9)]
    near_share = np.any(is_near, axis=0)[texts[2][:, 16:] != 10].mean()
    assert known[0] == pytest.approx(
        near_share, abs=0.03
    )  # "only those among the last 8"


def test_map_shows_the_sink(cells, recallers):
    cell = cells["sink-map"]
    names = cell.names
    letters, digits = (array(names[x]).astype(int) for x in ("letters", "digits"))
    _, weights = run_recaller(
        *recallers["recallers"][0][:1], letters, digits, recallers["recallers"][0][1]
    )
    entries = [f"{chr(97 + x)}{y}" for x, y in zip(letters[0], digits[0], strict=True)]
    columns = ["start", *(f"{entry[0]}\n{entry[1]}" for entry in entries)]
    axes = "Entries before", "Entry"
    assert_maps(cell, weights, axes, atol=2e-3, columns=columns, rows=entries)
    is_new = find_answers(letters, digits)[0] == 10
    assert weights[0, is_new, 0].min() > 0.5 > weights[0, ~is_new, 0].max()
    assert 0 < (~is_new).sum() < 16


# Solutions


def test_prompt_is_read_once(cells):
    assert read_differences(cells["solution-rewind"]) == [0, 0]


def test_whole_numbers_cost_little(cells):
    (plain,), (rounded,) = ([row[-1]] for row in cells["solution-quantized-shown"].rows)
    loss = to_floats(cells["train-all"].names["losses"])[0][0]
    assert_printed(plain, loss, 4)
    assert rounded == pytest.approx(plain, abs=0.01)


def test_rounded_numbers_are_multiples_of_a_unit(adapter, cells, python_only):
    X = np.random.default_rng(0).normal(size=(2, 3, 5, 4)).astype("float32")
    whole, unit = (
        array(x)
        for x in cells["solution-quantized"].names["quantize"](adapter.tensor(X))
    )
    assert np.abs(whole).max(axis=-1).min() == 127
    assert (whole == np.round(whole)).all()
    assert np.abs(whole * unit - X).max() <= unit.max() * 0.501


def test_pen_and_paper():
    assert 24 * 1024**2 // (4096 * 2 * 2048 * 32 / 1024) == 48
    assert 24 * 1024**2 // (4096 * 2 * 576 * 32 / 1024) == 170
    assert [1 + (p - 1) % 4 for p in range(17, 21)] == [1, 2, 3, 4]
    for d, n in ((16, 64), (4096, 16384)):
        assert 2 * n * d == 8 * d**2
