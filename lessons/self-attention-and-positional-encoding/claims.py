"""Check the lesson's claims against NumPy: the data of figures, and every printed result.

nbval compares a notebook with its stored outputs, and cannot know whether these are right.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, read_numbers, read_words, softmax
from tests.lessons.shared_claims import (
    accuracy,
    assert_curves,
    assert_maps,
    assert_range_table,
    assert_ranges,
    median_and_range,
    rope_frequencies,
    run_in_batches,
)
from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import reference_multi_head

# Each framework prints its own name, and the length of its own embeddings.
VARYING_FORM = ["three-layers", "lengths"]
# The training steps, the sequences per step, and the learning rate.
BUDGETS = {
    "mxnet": (100, 128, 0.012),
    "mlx": (100, 128, 0.01),
    "others": (120, 128, 0.008),
}

# The readers that are tested on longer sequences, in the order of their table, and the test lengths.
KINDS = ["fixed", "learned", "causal"]
NAMES = ["sinusoids", "table", "mask"]
TEST_LENGTHS = (8, 16, 32, 64)

# Where readers keep their positions, in the order of another table, and the variables with their accuracies.
PLACES = ["everywhere", "in queries and keys alone", "in values alone"]
ACCURACIES = ["full_accuracies", "scores_accuracies", "values_accuracies"]

# Bounds for the accuracies that the text gives in words, with a margin for each framework's random numbers.
NEARLY_PERFECT = 0.98
HIGH_ACCURACY = 0.95
BELOW_CHANCE = 0.455  # two standard deviations below one half, for five hundred guesses

# The cat sat because it purred.
WORDS = np.array([[0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]], float)
# Attention weights (query, key) of the words: queries are the words themselves, or projections of them.
WEIGHTS = softmax(WORDS @ WORDS.T)
ROLE_WEIGHTS = softmax(WORDS @ [[1, 0], [1, 0]] @ WORDS.T)
OMEGA = rope_frequencies(32)

# The numbers that cells print, where these follow from formulas.
PRINTED = {
    "six-words": [*np.c_[WORDS @ WORDS[4], WEIGHTS[4]], WEIGHTS[4] @ WORDS],
    "all-words": np.hstack([WEIGHTS, WEIGHTS @ WORDS]),
    "three-roles": np.hstack([ROLE_WEIGHTS, ROLE_WEIGHTS @ WORDS]),
    "binary": [[i, int(f"{i:b}")] for i in range(8)],
    "sinusoids": np.c_[range(3), reference.positional_encoding(3, 4)],
    "wavelengths": [np.round(2 * np.pi / OMEGA)],
    "solution-mirrored": [[0]],
    "solution-dilated": [[5, 4, 2], [14, 13, 3], [41, 40, 4], [122, 121, 5]],
}
# Cells without random numbers have the same output in every framework, to the last digit.
DETERMINISTIC = [
    *PRINTED,
    *(
        "shape-check",
        "reach",
        "sequential-operations",
        "multiply-adds",
        "column-plot",
        "encoding-heatmap",
    ),
    *("dot-products", "rotation", "five-back"),
    "solution-causal-map",
]


@pytest.mark.parametrize("cell", PRINTED)
def test_printed_numbers_follow_from_formulas(cells, cell):
    for row, expected in zip(cells[cell].rows, PRINTED[cell], strict=True):
        assert_printed(row, expected)


# Order


def test_shape_stays(cells):
    assert str(cells["shape-check"].value) == "(2, 4, 100)"


def test_order_matters_only_with_mask_or_positions(adapter, cells):
    names = cells["order-seen"].names
    weights = adapter.lesson_projections(names)
    order = [3, 0, 5, 1, 4, 2]
    tokens = array(names["tokens"])

    def attend(X, **mask):
        return reference_multi_head(weights, 5, X, X, X, **mask)[0]

    P = reference.positional_encoding(6, 100)
    layers = attend, partial(attend, causal=True), lambda X: attend(X + P)
    Y = np.stack([layer(tokens) for layer in layers])
    shuffled = np.stack([layer(tokens[:, order]) for layer in layers])
    largest = np.abs(Y).max(axis=(1, 2, 3))
    differences = np.abs(shuffled - Y[:, :, order]).max(axis=(1, 2, 3))
    assert differences[1:].min() > 0.01
    expected = np.stack([largest, differences], axis=1)
    assert_printed(cells["equivariance"].rows, expected[:2], 4)
    assert_printed(cells["order-seen"].rows, expected[2:, 1:], 4)


# CNN, RNN, self-attention


def rnn_matrices(names: Any) -> list[np.ndarray]:
    """Return W_xh and W_hh, for the products x @ W_xh and H @ W_hh."""
    matrices = names["W_xh"], names["W_hh"]
    return [array(W.weight.data().T if hasattr(W, "weight") else W) for W in matrices]


def reference_layers(adapter: Adapter, names: Any) -> dict[str, Callable[..., Any]]:
    """Return the lesson's three layers in NumPy, with its weights."""
    X = np.eye(16)[:, None] * np.eye(10)[4][:, None]  # sixteen unit vectors, at x_4
    # y_3 has x_4 on its right, and y_5 has it on its left.
    kernel = array(names["cnn"](adapter.tensor(X.astype("float32"))))[:, [5, 4, 3]]
    W_xh, W_hh = rnn_matrices(names)
    weights = adapter.lesson_projections(names, "small_attention")

    def cnn(X):
        padded = np.pad(X, ((0, 0), (1, 1), (0, 0)))
        return sum(padded[:, i : i + X.shape[1]] @ kernel[:, i] for i in range(3))

    def rnn(X, factor=1):
        H = np.zeros((len(X), 16))
        outputs = []
        for x in X.swapaxes(0, 1):
            H = np.tanh(x @ W_xh + H @ (factor * W_hh))
            outputs.append(H)
        return np.stack(outputs, axis=1)

    def attend(X, **mask):
        return reference_multi_head(weights, 2, X, X, X, **mask)[0]

    return {"CNN": cnn, "RNN": rnn, "Self-attention": attend}


def relative_influence(layer: Callable[[Any], Any], X: Any) -> np.ndarray:
    """Return the norms of dy_i/dx_j by finite differences, divided by the largest."""
    _, n, d = X.shape
    steps = 1e-4 * np.eye(n * d).reshape(-1, n, d)
    change = (layer(X + steps) - layer(X - steps)).reshape(n, d, n, d)
    norms = np.linalg.norm(change, axis=(1, 3)).T
    return norms / norms.max()


def test_rnn_has_two_orthogonal_matrices(cells):
    W_xh, W_hh = rnn_matrices(cells["three-layers"].names)
    for W in W_xh, W_hh:
        np.testing.assert_allclose(W @ W.T, np.eye(16), atol=1e-5)
    assert np.abs(W_xh - W_hh).max() > 0.1


def test_influence_is_a_band_a_triangle_and_a_full_square(adapter, cells):
    names, cell = cells["influence"].names, cells["influence-heatmaps"]
    layers = reference_layers(adapter, names)
    X = array(names["X"])
    expected = [relative_influence(layer, X) for layer in layers.values()]
    axes, titles = ("Input j", "Output i"), [*layers]
    maps = assert_maps(cell, expected, axes, titles, atol=1e-3)
    i, j = np.indices((10, 10))
    connected = [abs(i - j) <= 1, j <= i, np.full((10, 10), True)]
    np.testing.assert_array_equal(maps > 0, connected)
    assert [row[0] for row in cell.rows] == [pairs.sum() for pairs in connected]


def test_each_convolution_reaches_one_token_farther(cells):
    i, j = np.indices((10, 10))
    influences = cells["receptive-field"].names["influences"]
    for depth, influence in enumerate(influences, 1):
        np.testing.assert_array_equal(array(influence) > 0, abs(i - j) <= depth)
    first, *depths = cells["reach"].printed.splitlines()
    assert first.endswith(" x_1, x_2, x_3, x_4, x_5")
    assert [line.split()[-1] for line in depths] == ["no", "no", "no", "yes"]


def test_only_the_rnn_takes_more_steps_for_longer_sequences(adapter, cells):
    rows = cells["sequential-operations"].rows
    assert rows == [[n, 1, n, 4] for n in (4, 8, 16, 32)]


def test_multiply_adds_match_formulas(cells):
    d, k = 16, 3
    rows = read_words(cells["multiply-adds"].printed.replace(",", ""))[1:]
    for n, row in zip((8, 16, 32, 64, 128), rows, strict=True):
        attention = 4 * n * d**2 + 2 * n**2 * d
        counts = n, k * n * d**2, 2 * n * d**2, attention
        assert row == [*map(str, counts), "yes"]


# Positional encoding


@pytest.fixture
def make_encoding(adapter, cells) -> Callable[..., Any]:
    """Return a function that creates the lesson's positional encoding, for 1000 positions."""
    names = cells["positional-encoding"].names
    return partial(adapter.lesson_new_encoding, names, max_len=1000)


# If the frequencies had single precision, the encoding of position 1000 would be off by 5e-6.
@pytest.mark.parametrize(("width", "offset"), [(32, 992), (7, 0), (32, 3), (1, 2)])
def test_positions_are_added_singly_or_at_once(adapter, make_encoding, width, offset):
    layer = make_encoding(width, 0)
    encode = partial(adapter.lesson_encode, layer)
    X = np.random.default_rng(0).normal(size=(2, 8, width)).astype("float32")
    P = reference.positional_encoding(1000, width)[offset : offset + 8]
    output = encode(X, offset)
    np.testing.assert_allclose(output, X + P, atol=1e-6)
    one_by_one = [encode(X[:, i : i + 1], offset + i) for i in range(8)]
    np.testing.assert_array_equal(np.concatenate(one_by_one, axis=1), output)
    assert adapter.lesson_state_names(layer) == []  # neither trained nor saved


def test_dropout_is_on_in_training_only(adapter, make_encoding):
    layer, X = make_encoding(32, 0.5), np.ones((1, 500, 32), "float32")
    kept = 2 * adapter.lesson_encode(layer, X)
    output = adapter.lesson_encode(layer, X, training=True)
    is_dropped = output == 0
    assert is_dropped.mean() == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(output[~is_dropped], kept[~is_dropped], rtol=1e-5)


@pytest.mark.parametrize(("offset", "last"), [(-1, 8), (991, 1000)])
def test_positions_past_the_ends_are_rejected(adapter, make_encoding, offset, last):
    message = rf"{offset}\D+{last}\D+0\D+999"  # positions -1 to 8, expected 0 to 999
    layer, X = make_encoding(7, 0), np.zeros((1, 10, 7), "float32")
    with pytest.raises(ValueError, match=message):
        adapter.lesson_encode(layer, X, offset)


def test_embedding_and_encoding_have_comparable_lengths(cells, framework):
    lengths = [row[0] for row in cells["lengths"].rows]
    embedding, encoding = np.sqrt(512), 16
    total = np.hypot(embedding, encoding)  # they are nearly orthogonal
    expected = [1, embedding, encoding, total]
    # The text names the variance of some frameworks' own embeddings.
    variance = {"pytorch": 1, "jax": 1 / 512, "mlx": 1 / 512}
    if framework in variance:
        expected.append(np.sqrt(512 * variance[framework]))
    np.testing.assert_allclose(lengths[: len(expected)], expected, rtol=0.02)


def test_figures_show_the_encoding(cells):
    P = reference.positional_encoding(60, 32)
    plot, cell = cells["column-plot"], cells["encoding-heatmap"]
    names, axes = ["Col 6", "Col 7", "Col 8", "Col 9"], ("Row (position)", "")
    assert_curves(plot, np.arange(60), P[:, 6:10].T, names, axes, atol=1e-6)
    axes = "Column (encoding dimension)", "Row (position)"
    assert_maps(cell, P[None], axes, atol=1e-6, colours="RdBu_r")
    assert cell.panels[0].get_clim() == (-1, 1)  # zero in the middle


def encoding_products(distances: np.ndarray) -> np.ndarray:
    """Return the dot products of two rows of the encoding at these distances."""
    return np.cos(distances[..., None] * OMEGA).sum(axis=-1)


def test_dot_products_depend_only_on_distance(cells):
    cell = cells["dot-products"]
    distances = np.arange(-20, 21)
    names, axes = ["i = 20", "i = 28", "i = 36"], ("Distance i - j", "Dot product")
    expected = [encoding_products(distances)] * 3
    assert_curves(cell, distances, expected, names, axes, atol=1e-4)
    assert [row[-1] for row in read_words(cell.printed)] == ["16.0000", "0.0000"]


# Relative position


def test_turn_by_five_takes_row_three_to_row_eight(cells):
    P = reference.positional_encoding(60, 32)
    *rows, (largest,) = cells["rotation"].rows
    assert_printed([row[:4] for row in rows], P[[3, 8, 8], :4], 4)
    assert [row[4:] for row in rows] == [[3], [3, 5], [8]]
    assert largest < 1e-5


def test_queries_from_sixth_on_look_five_back(cells):
    i, j = np.indices((20, 20))
    # Rotated by -5 positions, row i of the encoding becomes row i - 5.
    expected = softmax(4 * encoding_products(i - 5 - j) / np.sqrt(32))
    cell, axes = cells["five-back"], ("Key j", "Query i")
    (weights,) = assert_maps(cell, expected[None], axes, atol=1e-4)
    np.testing.assert_array_equal(weights[5:].argmax(axis=1), np.arange(15))
    assert weights[6:].max(axis=1) == pytest.approx(1 / 3, abs=0.04)
    # The first five have no such key; the last two of them settle for the nearest.
    assert weights[3:5, 0].min() > 0.25 > weights[:3].max()


# What a trained model looks at


def zero_is_first(tokens: np.ndarray) -> np.ndarray:
    return (tokens == 0).argmax(axis=1) < (tokens == 1).argmax(axis=1)


def run_reader(
    weights: dict[str, np.ndarray],
    tokens: np.ndarray,
    kind: str = "fixed",
    in_scores: bool = True,
    in_values: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a reader's answers, and its attention weights (sequences, heads, queries, keys).

    Positions are added to queries and keys only if ``in_scores``, and to values only if ``in_values``.
    """
    X = weights["embedding"].astype(float)[tokens]
    X_with_P, length = X, X.shape[1]
    if kind == "learned":
        X_with_P = X + weights["P"][:length]
    elif kind == "fixed":
        X_with_P = X + reference.positional_encoding(length, 32)
    queries, values = X_with_P if in_scores else X, X_with_P if in_values else X
    projections = {f"w_{i}": reference.Linear(weights[f"W_{i}"]) for i in "qkvo"}
    Y, attention = reference.multi_head_attention(
        queries, queries, values, num_heads=4, causal=kind == "causal", **projections
    )
    hidden = np.maximum(Y.mean(axis=1) @ weights["W_1"] + weights["b_1"], 0)
    return (hidden @ weights["W_2"] + weights["b_2"])[:, 0], attention


@pytest.mark.parametrize("length", TEST_LENGTHS)
def test_labels_mean_that_zero_comes_first(adapter, cells, length):
    names = cells["task"].names
    tokens, labels = adapter.lesson_draw(names, "draw_sequences", 5000, length)
    assert tokens.shape == (5000, length)
    np.testing.assert_array_equal(np.sort(tokens)[:, :2], [[0, 1]] * 5000)
    assert (np.sort(tokens)[:, 2].min(), tokens.max()) == (2, 9)
    np.testing.assert_array_equal(labels, zero_is_first(tokens))
    assert labels.mean() == pytest.approx(0.5, abs=0.03)
    for token in (0, 1):
        shares = (tokens == token).mean(axis=0)
        np.testing.assert_allclose(shares, 1 / length, atol=0.02)
    examples = np.array(cells["task"].rows)
    np.testing.assert_array_equal(examples[:, -1], zero_is_first(examples[:, :-1]))


@pytest.fixture
def weights(adapter, cells) -> dict[str, np.ndarray]:
    """Return the weights of the trained reader."""
    return adapter.lesson_reader(cells["train"].names)[0]


def test_trained_maps_match_weights(cells, weights):
    examples = np.array([[5, 3, 0, 7, 2, 1, 9, 4], [5, 3, 1, 7, 2, 0, 9, 4]])
    _, expected = run_reader(weights, examples)
    titles = [f"Head {h}" for h in range(1, 5)]
    for name, first, tokens, maps in zip(
        ("trained-maps", "exchanged-maps"), (0, 1), examples, expected, strict=True
    ):
        axes = f"Keys: the {first} comes first", "Queries"
        labels = [str(token) for token in tokens]
        marks = np.tile(tokens < 2, (8, 1))
        assert_maps(
            cells[name],
            maps,
            axes,
            titles,
            atol=1e-3,
            columns=labels,
            rows=labels,
            marks=marks,
        )
    # Some columns are dark from top to bottom, often that of the 0 or the 1.
    is_dark = expected.min(axis=-2) > 0.5  # (sequences, heads, keys)
    sequences, _, keys = np.nonzero(is_dark)
    assert (examples[sequences, keys] < 2).mean() >= 0.5


def test_heads_follow_tokens_or_their_order(cells, weights):
    tokens = array(cells["found"].names["tokens"]).astype(int)
    assert tokens.shape == (1000, 8)
    received = run_reader(weights, tokens)[1].mean(axis=2)  # (sequences, heads, keys)
    zero, one = ((tokens == token).argmax(axis=1) for token in (0, 1))
    positions = zero, one, np.minimum(zero, one), np.maximum(zero, one)
    expected = [received[range(1000), :, keys].mean(axis=0) for keys in positions]
    rows = [row[:4] for row in cells["found-shares"].rows if len(row) == 5]
    assert_printed(rows, np.transpose(expected))
    zero, one, first, last = np.transpose(rows)
    follows_token = np.maximum(zero, one) > 0.8
    assert (abs(first - last) < 0.2)[follows_token].all()  # at any position
    # Rounded, since in floating point 0.59 - 0.39 is less than 0.2.
    follows_order = (abs(zero - one).round(2) < 0.2) & (zero + one > 0.5)
    assert follows_order.any()
    assert (np.maximum(first, last) > 3 * np.minimum(first, last))[follows_order].all()


def test_some_readers_need_no_positions_in_their_values(adapter, cells):
    names = cells["without-positions"].names
    tokens = array(names["tokens"]).astype(int)
    rows = []
    for reader in names["fixed_readers"]:
        weights, _ = adapter.lesson_reader({"reader": reader})
        row = []
        for options in {}, {"in_values": False}, {"in_scores": False}:
            answers, _ = run_reader(weights, tokens, **options)
            row.append(accuracy(answers > 0, zero_is_first(tokens)))
        rows.append(row)
    assert len(np.unique(rows, axis=0)) > 1  # five seeds
    results = dict(zip(PLACES, np.transpose(rows), strict=True))
    for name, expected in zip(ACCURACIES, results.values(), strict=True):
        np.testing.assert_allclose(array(names[name]).ravel(), expected, atol=0.0021)
    shown = {
        place: array(names[name]).reshape(5, 1)
        for place, name in zip(PLACES, ACCURACIES, strict=True)
    }
    assert_range_table(cells["without-positions-shown"], shown, digits=3)
    *_, first_reader = cells["without-positions-shown"].rows
    np.testing.assert_allclose(first_reader, rows[0], atol=0.0021)
    full, scores, values = np.transpose(rows)
    assert full.min() >= NEARLY_PERFECT
    assert scores.max() > HIGH_ACCURACY
    assert values.min() < 0.7


# Past the end


@pytest.mark.parametrize("kind", ["", *KINDS], ids=["trained", *KINDS])
def test_each_kind_of_reader_matches_its_name(adapter, cells, kind):
    """Without a kind, check the trained reader, which has a fixed encoding."""
    names = cells["fifteen-readers"].names
    weights, answers = adapter.lesson_reader(names, kind)
    for length in (8, 21):
        samples = adapter.lesson_draw(names, "draw_sequences", 50, length)
        tokens = samples[0].astype(int)
        expected, _ = run_reader(weights, tokens, kind or "fixed")
        rtol, atol = (1e-7, 1e-4) if kind else (1e-3, 1e-3)
        np.testing.assert_allclose(answers(tokens), expected, rtol, atol)


def test_training_has_the_stated_budget_and_length(assert_budget):
    assert_budget("fifteen-readers", "draw_sequences", length=8)


def test_learned_table_is_trained_up_to_its_eighth_row(adapter, cells):
    before, after = adapter.lesson_learned_table(cells["fifteen-readers"].names)
    assert (before != after)[:8].any(axis=1).all()
    np.testing.assert_array_equal(before[8:], after[8:])


@pytest.fixture
def results(cells) -> dict[str, np.ndarray]:
    """Return the accuracies (seed, length) by name; check that the seeds differ."""
    runs = array(cells["fifteen-readers"].names["runs"])
    assert runs.shape == (3, 5, 4)
    for kind, accuracies in zip(KINDS, runs, strict=True):
        if kind != "causal":  # two seeds may both be right everywhere
            assert len(np.unique(accuracies, axis=0)) == 5, kind
    return dict(zip(NAMES, runs, strict=True))


def test_readers_past_the_end_are_as_accurate_as_the_text_says(results):
    summary = median_and_range([*results.values()], axis=1)  # (kinds, lengths, 3)
    median, lowest, highest = np.moveaxis(summary, -1, 0)
    fixed, learned, causal = range(3)
    assert lowest[:, 0].min() >= NEARLY_PERFECT  # on 8 tokens
    absolute = [fixed, learned]
    assert median[absolute, 1].min() > 0.5
    assert median[absolute, 1].max() < 0.8
    assert lowest[fixed, 3] < BELOW_CHANCE
    assert median[causal, 3] > 0.8
    assert median[causal, 3] > highest[absolute, 3].max()


def test_accuracies_are_measured_at_each_length(adapter, cells, results, weights):
    """Check the first of the readers with a fixed encoding: the reader that an earlier section trained."""
    sets = cells["fifteen-readers"].names["tests"]
    accuracies = results["sinusoids"][0]
    for length, examples, actual in zip(TEST_LENGTHS, sets, accuracies, strict=True):
        tokens, labels = adapter.lesson_arrays(examples)
        assert tokens.shape == (500, length)
        answers = run_in_batches(partial(run_reader, weights), tokens.astype(int))
        assert actual == pytest.approx(accuracy(answers > 0, labels > 0), abs=0.0021)


def test_table_and_figure_show_medians_and_ranges(cells, results):
    cell = cells["past-the-end"]
    assert_range_table(cell, results)
    assert_ranges(cell, results, TEST_LENGTHS, "Tokens (trained on 8)", "Share right")


# Solutions


def test_bias_of_keys_changes_scores_but_not_weights(cells):
    names = cells["solution-bias"].names
    X = array(names["X"]).reshape(4, 8)
    b = array(names["b_k"])
    before, after = X @ X.T, X @ (X + b).T
    (scores,), (weights,) = cells["solution-bias-shown"].rows
    assert_printed(scores, np.abs(before - after).max())
    assert scores > 0.1
    assert weights == 0
    # A bias of the queries does change them.
    assert np.abs(softmax((X + b) @ X.T) - softmax(before)).max() > 0.01


def diversity(X: np.ndarray) -> float:
    """Return the norm of the deviations from the mean token, over the norm of all."""
    return np.linalg.norm(X - X.mean(axis=1, keepdims=True)) / np.linalg.norm(X)


def test_stacked_attention_makes_tokens_alike(adapter, cells):
    names = cells["solution-stacking"].names
    blocks = adapter.lesson_blocks(names)
    assert len({weights["W_q"].tobytes() for weights in blocks}) == 8  # all differ
    start = array(names["start"]) + reference.positional_encoding(16, 64)
    expected = []
    for sharpness, skip in ((1, False), (10, False), (1, True)):
        X, curve = start, [diversity(start)]
        for weights in blocks:
            pooled, _ = reference_multi_head(weights, 4, sharpness * X, X, X)
            ratio = np.linalg.norm(X) / np.linalg.norm(pooled)
            X = pooled + X if skip else pooled * ratio
            curve.append(diversity(X))
        expected.append(curve)
    cell, axes = cells["solution-stacking-figure"], ("Layers", "Diversity")
    curves = ["attention alone", "queries ten times as long", "with skip connections"]
    assert_curves(cell, np.arange(9), expected, curves, axes, rtol=1e-2, atol=1e-5)
    alone, sharper, skip = np.array(expected)
    assert alone[4] < 0.05
    assert (sharper[1:5] > alone[1:5]).all()
    assert sharper[-1] < sharper[0] / 2
    assert skip[-1] > max(0.5, sharper[-1])


def test_reader_without_positions_answers_mirrored_sequences_alike(adapter, cells):
    names = cells["solution-mirrored"].names
    weights, answers = adapter.lesson_reader(names)
    tokens = array(names["tokens"]).astype(int)
    mirrored = array(names["mirror"](adapter.tensor(tokens))).astype(int)
    np.testing.assert_array_equal(mirrored, np.where(tokens < 2, 1 - tokens, tokens))
    expected, _ = run_reader(weights, tokens, "none")
    for inputs in (tokens, mirrored):
        np.testing.assert_allclose(answers(inputs), expected, atol=1e-4)
    assert expected.std() > 1e-3  # the answers differ between sequences


def test_causal_influence_is_lower_triangle(adapter, cells):
    cell, names = cells["solution-causal-map"], cells["solution-causal"].names
    attend = partial(reference_layers(adapter, names)["Self-attention"], causal=True)
    expected = [relative_influence(attend, array(names["X"]))]
    (shown,) = assert_maps(cell, expected, ("Input j", "Output i"), atol=1e-4)
    np.testing.assert_array_equal(shown > 0, np.tri(10) > 0)
    assert shown[:, 0].argmax() == 0
    future, connected = cell.printed.splitlines()
    assert future.endswith(": no")
    assert read_numbers(connected) == [55, 100]


def test_influence_fades_only_in_rnns(adapter, cells):
    names = cells["solution-fading"].names
    _, rnn, attend = reference_layers(adapter, names).values()
    expected = []
    for layer in (rnn, partial(rnn, factor=0.8), attend):
        strengths = relative_influence(layer, array(names["X"]))[:, 0]
        expected.append(strengths / strengths[0])
    cell = cells["solution-fading-figure"]
    axes = "Distance from the first token", "Influence"
    curves = ["RNN", "RNN, matrix times 0.8", "self-attention"]
    assert_curves(cell, np.arange(24), expected, curves, axes, yscale="log", rtol=1e-3)
    *rnns, attention = expected
    factors = np.diff(np.log(rnns))
    assert factors.max() < 0  # weaker with every step
    assert factors.std(axis=1).max() < 0.35  # roughly a straight line
    plain, shrunk = np.exp(factors.mean(axis=1))
    assert 0.8 * plain < shrunk < plain
    assert rnns[0][-1] < 1e-2
    assert attention.min() > 0.1
