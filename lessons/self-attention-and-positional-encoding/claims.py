"""What the lesson claims, held to the reference: figures by their data, and every printed result.

nbval compares a notebook with what was stored, and so cannot know that what was stored is right.
"""

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, numbers, softmax, table
from tests.lessons.shared_claims import (
    assert_curves,
    assert_maps,
    assert_medians_with_bars,
    assert_variables,
    frequencies,
    in_parts,
    independent_scores,
    median_and_range,
    saturation,
    share_right,
    turned,
)
from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import reference_multi_head

# What does not depend on random numbers is the same in every framework, to the last digit.
DETERMINED = [
    "six-words",
    "all-words",
    "three-roles",
    "shape-check",
    "reach",
    "multiply-adds",
    "binary",
    "sinusoids",
    "column-plot",
    "encoding-heatmap",
    "wavelengths",
    "dot-products",
    "rotation",
    "five-back",
    "solution-mirrored",
    "solution-causal-map",
    "solution-dilated",
    "solution-decoding-cost",
]
# Java shows a map in its own way; PyTorch's attention is fused, and takes a step less;
# each framework names itself, and draws embeddings of its own length.
IN_ANOTHER_FORM = ["three-layers", "sequential-operations", "lengths"]
# Of training: the steps, the sequences in each, and the rate.
BUDGETS = {
    "mxnet": (100, 128, 0.012),
    "mlx": (100, 128, 0.01),
    "others": (120, 128, 0.008),
}

# The readers trained past the end, in the order of their table, and the lengths tested.
KINDS = ["fixed", "learned", "rotary", "mask", "fixed_mask"]
NAMES = ["fixed encoding", "learned table", "RoPE", "causal mask", "fixed, causal mask"]
TESTED = (8, 16, 32, 64)

# What the text says of shares in words, with room for another framework's draws.
ALL_RIGHT = 0.98
ALMOST_ALWAYS = 0.95
SIX_TO_EIGHT_IN_TEN = pytest.approx(0.7, abs=0.15)
CHANCE = pytest.approx(1 / 2, abs=0.1)
NINE_IN_TEN = pytest.approx(9 / 10, abs=0.07)
A_THIRD = 1 / 3
# Of the numbers in the frameworks' own embeddings, as far as the text names it.
OF_VARIANCE = {"pytorch": 1, "jax": 1 / 512, "mlx": 1 / 512}
MISLED = 0.455  # two standard deviations below one half, for five hundred guesses

Weights = dict[str, np.ndarray]


# One word looks around

THE, CAT, SAT, BECAUSE, IT, PURRED = range(6)
WORDS = np.array([[0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]], float)


def test_it_becomes_mostly_cat(cells):
    scores = WORDS @ WORDS[IT]
    weights = softmax(scores)
    *words, new = cells["six-words"].rows
    assert_printed(words, np.stack([scores, weights], axis=1))
    assert_printed(new, weights @ WORDS)
    assert weights[CAT] == pytest.approx(0.75, abs=0.005)
    assert new[0] > 2  # most of the way from 1 to 3


def test_every_word_shares_out_its_attention_in_its_row(cells):
    weights = softmax(WORDS @ WORDS.T)
    assert_printed(cells["all-words"].rows, np.hstack([weights, weights @ WORDS]))
    np.testing.assert_allclose(weights[[THE, BECAUSE]], 1 / 6)
    assert weights[CAT, CAT] > 0.995  # printed as 1
    assert weights[[SAT, PURRED]][:, [SAT, PURRED]].sum(axis=1).min() > 0.95


def test_with_three_roles_purred_finds_the_cat_and_the_cat_does_not_look_back(cells):
    scores = WORDS @ [[1, 0], [1, 0]] @ WORDS.T
    weights = softmax(scores)
    new = weights @ WORDS
    assert_printed(cells["three-roles"].rows, np.hstack([weights, new]))
    assert (scores[PURRED, CAT], scores[CAT, PURRED]) == (6, 0)
    Q, K = (array(cells["three-roles"].names[name]) for name in "QK")
    np.testing.assert_allclose(Q @ K.T, scores)
    np.testing.assert_allclose(new[PURRED], WORDS[CAT], atol=0.15)


# Scaled dot products


def test_the_root_keeps_the_spread_of_scores_and_the_softmax_from_saturating(cells):
    """The scores are those of independent queries and keys."""
    names, rows = cells["saturation"].names, cells["scaling"].rows
    scores = [[array(each) for each in names[name]] for name in ("plain", "scaled")]
    found = np.array([[saturation(each) for each in of_kind] for of_kind in scores])
    slopes = found[..., 1]  # without the root, and with it
    curves, axes = ["unscaled", "scaled"], ("log2(d)", "Norm of the derivative")
    # Some take the lower median.
    assert_curves(cells["slopes"], np.arange(2, 11), slopes, curves, axes, atol=5e-3)
    assert slopes[1].min() > 0.8 * slopes[1].max()
    assert slopes[0, -1] < 0.05
    np.testing.assert_array_less(slopes[0, 2::2], slopes[0, :-2:2])
    for i, of_width in zip((0, 4, 8), np.split(np.array(rows), 3), strict=True):
        width, (plain, scaled) = 2 ** (i + 2), (of_kind[i] for of_kind in scores)
        assert plain.shape == (1000, 10)
        np.testing.assert_allclose(scaled, plain / np.sqrt(width), rtol=1e-4)
        np.testing.assert_allclose(scaled.std(), 1, rtol=0.1)
        spreads = plain.std(), scaled.std()
        assert_printed(of_width, np.transpose([[width] * 2, spreads, found[:, i, 0]]))
        ours = independent_scores(width)
        expected = saturation(ours), saturation(ours / np.sqrt(width))
        np.testing.assert_allclose(found[:, i], expected, atol=0.04)


# Many heads


def test_self_attention_keeps_the_shape(cells):
    assert str(cells["shape-check"].value) == "(2, 4, 100)"
    assert str(cells["three-layers"].value).count("(1, 10, 16)") == 3


def test_the_layer_computes_the_formula_and_masked_keys_get_no_weight(adapter, cells):
    names = cells["by-hand"].names
    X, lens = array(names["X"]), np.array([3, 2])
    its = adapter.lesson_projections(names)
    expected, weights = reference_multi_head(its, 5, X, X, X, lens)
    assert_variables(names, Y=expected, by_hand=expected)
    (largest,), (difference,) = cells["by-hand-difference"].rows
    assert largest == pytest.approx(np.abs(expected).max(), abs=2e-5)
    assert (largest > 0.1, difference) == (True, 0)
    titles = [f"Head {h}" for h in range(1, 6)]
    cell, expected = cells["weights-heatmaps"], weights.reshape(10, 4, 4)
    maps = assert_maps(cell, expected, ("Keys", "Queries"), titles)
    for of_sequence, length in zip(np.split(maps, 2), lens, strict=True):
        assert not of_sequence[..., length:].any()


def test_order_is_seen_with_a_mask_or_with_positions_alone(adapter, cells):
    names = cells["order-seen"].names
    weights, order = adapter.lesson_projections(names), [3, 0, 5, 1, 4, 2]
    tokens = array(names["tokens"])
    assert tokens.shape == (1, 6, 100)

    def attend(X, **mask):
        return reference_multi_head(weights, 5, X, X, X, **mask)[0]

    P = reference.positional_encoding(6, 100)
    layers = attend, partial(attend, causal=True), lambda X: attend(X + P)
    Y = np.stack([layer(tokens) for layer in layers])
    shuffled = np.stack([layer(tokens[:, order]) for layer in layers])
    largest = np.abs(Y).max(axis=(1, 2, 3))
    apart = np.abs(shuffled - Y[:, :, order]).max(axis=(1, 2, 3))
    assert apart[0] < 1e-12
    assert apart[1:].min() > 0.01
    expected = np.stack([largest, apart], axis=1)
    assert_printed(cells["equivariance"].rows, expected[:2], 4)
    assert_printed(cells["order-seen"].rows, expected[2:, 1:], 4)


# CNN, RNN, self-attention


def rnns_matrices(names: dict[str, Any]) -> list[np.ndarray]:
    """W_xh and W_hh, to be multiplied from the right."""
    matrices = (names[name] for name in ("W_xh", "W_hh"))
    return [array(W.weight.data().T if hasattr(W, "weight") else W) for W in matrices]


def influence_of(layer: Callable[[Any], Any], X: np.ndarray, step: float) -> np.ndarray:
    """The norm of dy_i/dx_j, by finite differences."""
    _, n, d = X.shape
    moves = step * np.eye(n * d).reshape(-1, n, d)
    change = (layer(X + moves) - layer(X - moves)).reshape(n, d, n, d) / (2 * step)
    return np.linalg.norm(change, axis=(1, 3)).T


def influence_of_attention(adapter: Adapter, names: Any, **mask: Any) -> np.ndarray:
    weights = adapter.lesson_projections(names, "small_attention")

    def attend(X):
        return reference_multi_head(weights, 2, X, X, X, **mask)[0]

    return influence_of(attend, array(names["X"]), 1e-4)


def test_the_cnn_is_one_kernel_everywhere(adapter, cells):
    """Its answers to a single 1 are the kernel; an output is the sum of these answers."""
    cnn, n, d = cells["three-layers"].names["cnn"], 10, 16
    ones = np.eye(d)[:, None] * np.eye(n)[4][:, None]  # at x_4
    kernel = array(cnn(adapter.tensor(ones.astype("float32"))))
    assert not np.delete(kernel, (3, 4, 5), axis=1).any()
    X = np.random.default_rng(0).normal(size=(2, n, d)).astype("float32")
    padded = np.pad(X.astype(float), ((0, 0), (1, 1), (0, 0)))
    # y_3 hears x_4 on its right, y_5 on its left.
    heard = (padded[:, 2 - i : 2 - i + n] @ kernel[:, 3 + i] for i in range(3))
    np.testing.assert_allclose(array(cnn(adapter.tensor(X))), sum(heard), atol=1e-5)


def test_the_rnn_computes_the_formula_and_its_matrices_are_orthogonal(cells):
    names = cells["three-layers"].names
    W_xh, W_hh = rnns_matrices(names)
    for W in W_xh, W_hh:
        np.testing.assert_allclose(W @ W.T, np.eye(16), atol=1e-5)
    assert np.abs(W_xh - W_hh).max() > 0.1
    Y, H = array(names["layers"]["RNN"](names["X"])), np.zeros(16)
    for x, y in zip(array(names["X"])[0], Y[0], strict=True):
        H = np.tanh(x @ W_xh + H @ W_hh)
        np.testing.assert_allclose(y, H, atol=1e-5)


def test_influence_is_a_band_a_triangle_and_everything(adapter, cells):
    names, cell = cells["influence"].names, cells["influence-heatmaps"]
    expected = []
    for layer in names["layers"].values():

        def compute(X, layer=layer):
            return array(layer(adapter.tensor(X.astype("float32"))))

        strengths = influence_of(compute, array(names["X"]), 0.01)
        expected.append(strengths / strengths.max())
    axes, titles = ("Input j", "Output i"), ["CNN", "RNN", "Self-attention"]
    maps = assert_maps(cell, expected, axes, titles, atol=0.01)
    i, j = np.indices((10, 10))
    connected = [abs(i - j) <= 1, j <= i, np.full((10, 10), True)]
    np.testing.assert_array_equal(maps > 0, connected)
    assert [row[0] for row in cell.rows] == [each.sum() for each in connected]


def test_two_convolutions_join_the_first_and_fifth_token_in_the_third_unit(cells):
    i, j = np.indices((10, 10))
    for depth, seen in enumerate(cells["receptive-field"].names["seen"], 1):
        np.testing.assert_array_equal(array(seen) > 0, abs(i - j) <= depth)
    first, *depths = cells["reach"].printed.splitlines()
    assert first.endswith(" x_1, x_2, x_3, x_4, x_5")
    assert [line.split()[-1] for line in depths] == ["no", "no", "no", "yes"]


def test_only_the_rnn_takes_more_steps_for_a_longer_sequence(adapter, cells):
    rows = cells["sequential-operations"].rows
    assert rows == [[n, 1, n, 3 if adapter.FUSED else 4] for n in (4, 8, 16, 32)]


def test_multiply_adds_are_those_of_the_formulas(cells):
    d, k = 16, 3
    rows = table(cells["multiply-adds"].printed.replace(",", ""))[1:]
    for n, row in zip((8, 16, 32, 64, 128), rows, strict=True):
        attention = 4 * n * d**2 + 2 * n**2 * d
        counts = n, k * n * d**2, 2 * n * d**2, attention
        assert row == [*map(str, counts), "yes"]


# Positional encoding


@pytest.mark.parametrize(("rows", "width"), [(3, 4), (20, 7), (1000, 32), (5, 1)])
def test_the_lessons_sinusoids_are_the_formula(cells, rows, width):
    P = cells["sinusoids"].names["sinusoids"](rows, width)
    expected = reference.positional_encoding(rows, width)
    # In single precision, frequencies would put position 1000 off by 5e-6.
    np.testing.assert_allclose(array(P), expected, atol=1e-6)


def test_the_first_rows_are_shown_for_four_columns(cells):
    expected = np.c_[range(3), reference.positional_encoding(3, 4)]
    assert_printed(cells["sinusoids"].rows, expected)


def encoding_of(
    adapter: Adapter,
    cells: Any,
    num_hiddens: int,
    dropout: float = 0,
    max_len: int = 20,
) -> Callable[..., np.ndarray]:
    """A layer of the lesson's own class."""
    names = cells["positional-encoding"].names
    layer = adapter.lesson_new_encoding(names, num_hiddens, dropout, max_len=max_len)
    return partial(adapter.lesson_encode, layer)


@pytest.mark.parametrize(("num_hiddens", "offset"), [(32, 0), (7, 0), (32, 3), (1, 2)])
def test_the_lessons_encoding_adds_them_one_by_one_or_all_at_once(
    adapter, cells, num_hiddens, offset
):
    encode = encoding_of(adapter, cells, num_hiddens)
    X = np.random.default_rng(0).normal(size=(2, 8, num_hiddens)).astype("float32")
    P = reference.positional_encoding(20, num_hiddens)[offset : offset + 8]
    at_once = encode(X, offset)
    np.testing.assert_allclose(at_once, X + P, atol=1e-6)
    one_by_one = [encode(X[:, i : i + 1], offset + i) for i in range(8)]
    np.testing.assert_array_equal(np.concatenate(one_by_one, axis=1), at_once)


def test_numbers_are_dropped_or_doubled_in_training_alone(adapter, cells):
    encode, ones = encoding_of(adapter, cells, 8, 0.5), np.ones((1, 20, 8), "float32")
    whole = 1 + reference.positional_encoding(20, 8)[None]
    np.testing.assert_allclose(encode(ones), whole, atol=1e-6)
    dropped = encode(ones, training=True)
    is_kept = dropped != 0
    np.testing.assert_allclose(dropped, np.where(is_kept, 2 * whole, 0), atol=1e-5)
    assert 0.3 < is_kept.mean() < 0.7
    assert adapter.lesson_state_names(*encode.args) == []  # neither trained nor saved


@pytest.mark.parametrize(("offset", "last"), [(-1, 8), (1, 10)])
def test_there_are_no_positions_past_the_ends(adapter, cells, offset, last):
    message = rf"{offset}\D+{last}\D+0\D+9"  # no positions -1 to 8: there are 0 to 9
    with pytest.raises(ValueError, match=message):
        encoding_of(adapter, cells, 7, max_len=10)(
            np.zeros((1, 10, 7), "float32"), offset
        )


def test_embedding_and_encoding_have_comparable_lengths(cells, framework):
    lengths = [row[0] for row in cells["lengths"].rows]
    embedding, encoding = np.sqrt(512), 16
    both = np.hypot(embedding, encoding)  # they are nearly orthogonal
    expected = [1, embedding, encoding, both]
    if framework in OF_VARIANCE:
        expected.append(np.sqrt(512 * OF_VARIANCE[framework]))
    np.testing.assert_allclose(lengths[: len(expected)], expected, rtol=0.02)


def test_the_column_plot_shows_columns_six_to_nine(cells):
    P, cell = reference.positional_encoding(60, 32), cells["column-plot"]
    names, axes = ["Col 6", "Col 7", "Col 8", "Col 9"], ("Row (position)", "")
    assert_curves(cell, np.arange(60), P[:, 6:10].T, names, axes, atol=1e-6)
    assert tuple(cell.figures[0].get_size_inches()) == (6, 2.5)


def test_zero_to_seven_in_three_bits(cells):
    words = [(row[0], row[-1]) for row in table(cells["binary"].printed)]
    assert words == [(f"{i}", f"{i:03b}") for i in range(8)]


def test_the_heat_map_shows_the_encoding_with_zero_in_the_middle(cells):
    cell, P = cells["encoding-heatmap"], reference.positional_encoding(60, 32)
    axes = "Column (encoding dimension)", "Row (position)"
    assert_maps(cell, P[None], axes, atol=1e-6, colours="RdBu_r")
    assert cell.panels[0].get_clim() == (-1, 1)
    assert tuple(cell.figures[0].get_size_inches()) == (3.5, 4)


OMEGA = frequencies(32)


def test_wavelengths_grow_from_two_pi_towards_ten_thousand_times_that(cells):
    (turns,) = cells["wavelengths"].rows
    np.testing.assert_array_equal(turns, np.round(2 * np.pi / OMEGA))
    omega = array(cells["wavelengths"].names["omega"])
    np.testing.assert_allclose(omega, OMEGA, rtol=1e-5)


def products_at(distances: np.ndarray) -> np.ndarray:
    """The dot product of two rows of the encoding, by their distance."""
    return np.cos(distances[..., None] * OMEGA).sum(axis=-1)


def test_dot_products_depend_on_the_distance_alone(cells):
    cell, distances = cells["dot-products"], np.arange(-20, 21)
    names, axes = ["i = 20", "i = 28", "i = 36"], ("Distance i - j", "Dot product")
    expected = [products_at(distances)] * 3
    assert_curves(cell, distances, expected, names, axes, atol=1e-4)
    assert [row[-1] for row in table(cell.printed)] == ["16.0000", "0.0000"]


# Relative position


def rotated(X: np.ndarray) -> np.ndarray:
    """Queries or keys, turned clockwise by their positions: X of shape (batch, positions, width)."""
    positions = np.arange(X.shape[1])[:, None]
    return turned(X, -positions * frequencies(X.shape[2]))


def test_pairs_are_turned_and_queries_and_keys_by_their_positions(adapter, cells):
    rng = np.random.default_rng(0)
    X, angle = (rng.normal(size=size).astype("float32") for size in ((2, 9, 8), 4))
    shown = array(
        cells["rotation"].names["turn"](adapter.tensor(X), adapter.tensor(angle))
    )
    np.testing.assert_allclose(shown, turned(X, -angle), atol=1e-5)
    shown = adapter.lesson_rotate(cells["rotary"].names, X)
    np.testing.assert_allclose(shown, rotated(X), atol=1e-5)


def test_a_turn_by_five_takes_row_three_to_row_eight(cells):
    P = reference.positional_encoding(60, 32)
    *rows, (largest,) = cells["rotation"].rows
    assert_printed([row[:4] for row in rows], P[[3, 8, 8], :4], 4)
    assert [row[4:] for row in rows] == [[3], [3, 5], [8]]
    np.testing.assert_allclose(turned(P[3], -5 * OMEGA), P[8])
    assert largest < 1e-5


@pytest.mark.parametrize("row", [0, 1, 29, 58, 59])
def test_every_row_is_tried_with_six_offsets(adapter, cells, row, python_alone):
    """One that is wrong shows."""
    P = reference.positional_encoding(60, 32).astype("float32")
    P[row] += 1
    printed = cells["rotation"].again(P=adapter.tensor(P))
    assert numbers(printed)[-1] > 0.1
    offsets = cells["rotation"].passed_through("delta")
    assert (len({*offsets}), sum(delta < 0 for delta in offsets)) == (6, 1)


def test_every_query_from_the_sixth_on_looks_five_back(cells):
    i, j = np.indices((20, 20))
    # The row that the turn by -5 makes of row i is that of position i - 5.
    expected = softmax(4 * products_at(i - 5 - j) / np.sqrt(32))
    cell, axes = cells["five-back"], ("Key j", "Query i")
    (shown,) = assert_maps(cell, expected[None], axes, atol=1e-4)
    weights = shown[5:]
    np.testing.assert_array_equal(weights.argmax(axis=1), np.arange(15))
    stripe, after, before = (weights.diagonal(k) for k in (0, 1, -1))
    np.testing.assert_allclose(stripe[1:], A_THIRD, atol=0.04)
    # With a neighbour on one side only.
    assert stripe[0] == pytest.approx(A_THIRD, abs=0.11)
    np.testing.assert_array_less((1 - stripe[1:]) / 2, after[1:] + before)
    # There is no key five before these: some settle for the nearest, the others spread their weight.
    early = shown[:5]
    assert (early[3:].argmax(axis=1) == 0).all()
    assert early[3:, 0].min() > 0.25 > early[:3].max()


def test_rotated_scores_depend_on_content_and_distance_alone(cells):
    names = cells["rotary-scores"].names
    q, k = (array(names[name])[0] for name in ("q", "k_"))
    Q, K = (rotated(np.tile(x, (1, 60, 1)))[0] for x in (q, k))
    scores = array(names["scores"])
    np.testing.assert_allclose(scores, Q @ K.T, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(Q, axis=1), np.linalg.norm(q))
    for distance in range(-59, 60):
        at_zero = q @ turned(k, -distance * OMEGA)
        np.testing.assert_allclose((Q @ K.T).diagonal(distance), at_zero, atol=1e-6)
    (low, high), (spread,) = cells["rotary-check"].rows
    assert_printed([low, high], [scores.min(), scores.max()])
    assert (high - low > 1, spread) == (True, 0)


# What a trained model looks at

EXAMPLE = np.array([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])


def zero_is_first(tokens: np.ndarray) -> np.ndarray:
    return (tokens == 0).argmax(axis=1) < (tokens == 1).argmax(axis=1)


def drawn(count: int, length: int = 8) -> np.ndarray:
    """Sequences of our own."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(2, 10, (count, length))
    places = rng.permuted(np.tile(np.arange(length), (count, 1)), axis=1)[:, :2]
    np.put_along_axis(tokens, places, np.array([[0, 1]]), axis=1)
    return tokens


def read(
    weights: Weights,
    tokens: np.ndarray,
    kind: str = "fixed",
    to_scores: bool = True,
    to_values: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """A reader's answers, and its weights of shape (sequences, heads, queries, keys).

    Positions can be kept from its queries and keys, and from its values.
    """
    X = weights["embedding"].astype(float)[tokens]
    placed, length = X, X.shape[1]
    if kind == "learned":
        placed = X + weights["P"][:length]
    elif "fixed" in kind:
        placed = X + reference.positional_encoding(length, 32)
    scored, valued = (placed if is_told else X for is_told in (to_scores, to_values))
    heads = {f"w_{i}": reference.Linear(weights[f"W_{i}"]) for i in "qkvo"}
    if kind == "rotary":
        for name in "w_q", "w_k":
            heads[name] = partial(turned_by_heads, heads[name])
    Y, attention = reference.multi_head_attention(
        scored, scored, valued, num_heads=4, causal="mask" in kind, **heads
    )
    hidden = np.maximum(Y.mean(axis=1) @ weights["W_1"] + weights["b_1"], 0)
    return (hidden @ weights["W_2"] + weights["b_2"])[:, 0], attention


def turned_by_heads(projection: reference.Linear, X: np.ndarray) -> np.ndarray:
    heads = np.split(projection(X), 4, axis=-1)
    return np.concatenate([rotated(each) for each in heads], axis=-1)


def test_labels_tell_whether_the_zero_comes_first(adapter, cells):
    names = cells["task"].names
    for length in TESTED:
        tokens, labels = adapter.lesson_draw(names, "sequences", 100, length)
        assert tokens.shape == (100, length)
        np.testing.assert_array_equal(np.sort(tokens)[:, :2], [[0, 1]] * 100)
        assert (np.sort(tokens)[:, 2].min(), tokens.max()) == (2, 9)
        np.testing.assert_array_equal(labels, zero_is_first(tokens))
    shown = np.array(cells["task"].rows)
    np.testing.assert_array_equal(shown[:, -1], zero_is_first(shown[:, :-1]))


def test_sequences_are_drawn_evenly(adapter, cells):
    """No number depends on another: what stands at a place says nothing of the 0's and the 1's."""
    tokens, labels = adapter.lesson_draw(cells["task"].names, "sequences", 4000)
    assert labels.mean() == pytest.approx(0.5, abs=0.03)
    shares = np.bincount(tokens[tokens > 1])[2:] / (tokens > 1).sum()
    np.testing.assert_allclose(shares, 1 / 8, atol=0.01)
    for token in (0, 1):
        np.testing.assert_allclose((tokens == token).mean(axis=0), 1 / 8, atol=0.02)
    means = np.ma.masked_less(tokens, 2).mean(axis=0)  # at each place
    np.testing.assert_allclose(means, 5.5, atol=0.15)


def test_the_trained_reader_is_the_fixed_one_and_right(adapter, cells):
    weights, answers = adapter.lesson_reader(cells["train"].names)
    tokens = drawn(1000)
    expected, _ = read(weights, tokens)
    np.testing.assert_allclose(answers(tokens), expected, rtol=1e-3, atol=1e-3)
    assert share_right(expected > 0, zero_is_first(tokens)) >= ALL_RIGHT


def test_the_trained_maps_are_those_of_its_weights(adapter, cells):
    weights, _ = adapter.lesson_reader(cells["train"].names)
    _, expected = read(weights, EXAMPLE)
    axes, titles = ("Keys", "Queries"), [f"Head {h}" for h in range(1, 5)]
    maps = expected.reshape(8, 8, 8)
    assert_maps(cells["trained-maps"], maps, axes, titles, atol=1e-3)
    # In half of the maps or more, every query gives most of its weight to the same key.
    stripes = (expected.min(axis=-2) > 0.5).any(axis=-1)
    assert stripes.mean() >= 0.5
    # Many queries give nearly all their weight to one key: there stand the 0 and the 1.
    is_decided = expected.max(axis=-1) > 0.8
    assert is_decided.mean() > 0.25
    keys = expected.argmax(axis=-1)
    for decided, chosen, tokens in zip(is_decided, keys, EXAMPLE, strict=True):
        # Not every head looks there.
        assert (tokens[chosen[decided]] < 2).mean() > 0.7


def test_heads_look_at_the_zero_and_the_one_or_at_the_order(adapter, cells):
    weights, _ = adapter.lesson_reader(cells["train"].names)
    tokens = array(cells["found"].names["tokens"]).astype(int)
    assert tokens.shape == (1000, 8)
    received = read(weights, tokens)[1].mean(axis=2)  # (sequences, heads, keys)
    zero, one = ((tokens == token).argmax(axis=1) for token in (0, 1))
    expected = [
        received[range(1000), :, place].mean(axis=0)
        for place in (zero, one, np.minimum(zero, one), np.maximum(zero, one))
    ]
    rows = [row[:4] for row in cells["found-shares"].rows if len(row) == 5]
    assert_printed(rows, np.transpose(expected))
    zero, one, first, last = np.transpose(rows)
    np.testing.assert_allclose(zero + one, first + last, atol=0.03)
    follows = np.maximum(zero, one) > 0.8
    assert follows.any()
    assert (abs(first - last) < 0.2)[follows].all()  # wherever it stands
    # Rounded, since of the numbers printed 0.59 - 0.39 would be less than 0.2.
    is_for_order = (abs(zero - one).round(2) < 0.2) & (zero + one > 0.5)
    assert is_for_order.any()
    assert (np.maximum(first, last) > 3 * np.minimum(first, last))[is_for_order].all()


def test_the_trained_reader_needs_no_positions_in_its_values(adapter, cells):
    weights, _ = adapter.lesson_reader(cells["train"].names)

    def right(tokens, **kept):
        answers, _ = read(weights, tokens, **kept)
        return share_right(answers > 0, zero_is_first(tokens))

    assert right(drawn(1000), to_values=False) > ALMOST_ALWAYS
    tokens = array(cells["found"].names["tokens"]).astype(int)
    kept_from_one = {}, {"to_values": False}, {"to_scores": False}
    shown = np.ravel(cells["without-positions-shown"].rows)
    expected = [right(tokens, **kept) for kept in kept_from_one]
    np.testing.assert_allclose(shown, expected, atol=0.002)
    everywhere, not_in_values, in_values = shown
    assert everywhere >= ALL_RIGHT
    assert not_in_values > max(ALMOST_ALWAYS, in_values + 0.2)


def test_positions_are_left_out_where_the_text_says(cells, python_alone):
    """The shares alone do not tell where a reader is always right, with and without."""
    tree = ast.parse(cells["without-positions"].source)
    found = [each for each in ast.walk(tree) if isinstance(each, ast.Assign)]
    said = {ast.unparse(each.targets[0]): ast.unparse(each.value) for each in found}
    assert said["as_trained"] == "share_right(with_P, with_P, with_P)"
    assert said["in_queries_and_keys"] == "share_right(with_P, with_P, X)"
    assert said["in_values"] == "share_right(X, X, with_P)"


# Past the end


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_reader_is_what_its_name_says(adapter, cells, kind):
    """Positions are added to the tokens, or turn queries and keys, and leave the values alone."""
    weights, answers = adapter.lesson_reader(cells["five-readers"].names, kind)
    for length in (8, 21):
        tokens = drawn(5, length)
        expected, _ = read(weights, tokens, kind)
        np.testing.assert_allclose(answers(tokens), expected, atol=1e-4)


def test_readers_are_trained_for_so_many_steps_on_eight_tokens(assert_trained_on):
    assert_trained_on("past-the-end", "sequences", 8)


def test_the_learned_table_is_trained_up_to_its_eighth_row(adapter, cells):
    before, after = adapter.lesson_learned_table(cells["five-readers"].names)
    assert before.shape == after.shape == (64, 32)
    assert (before != after)[:8].any(axis=1).all()
    np.testing.assert_array_equal(before[8:], after[8:])


@pytest.fixture
def results(cells) -> np.ndarray:
    """The shares right: of each kind, by seed and length."""
    found = cells["past-the-end"].names["results"]
    assert list(found) == KINDS
    shares = array([*found.values()])
    assert shares.shape == (5, 5, 4)
    return shares


def test_past_the_end_the_readers_are_right_as_often_as_the_text_says(results):
    fixed, learned, rotary, mask, both = range(5)
    median, least, most = np.moveaxis(median_and_range(results, axis=1), -1, 0)
    assert least[:, 0].min() >= ALL_RIGHT  # on 8 tokens
    for absolute in (fixed, learned):
        assert median[absolute, 1] == SIX_TO_EIGHT_IN_TEN
        assert (median[rotary, 1:3] > median[absolute, 1:3] + 0.15).all()
    assert least[fixed, 3] < MISLED
    assert median[rotary, 3] == CHANCE
    assert median[mask, 3] > 0.8
    assert median[both, 3] == NINE_IN_TEN
    assert median[[mask, both], 3].min() > most[[fixed, learned, rotary], 3].max()


def test_no_seed_is_used_twice_for_a_kind(results):
    for kind, runs in zip(KINDS, results, strict=True):
        if kind != "mask":  # may be right everywhere, more than once
            assert len(np.unique(runs, axis=0)) == 5, kind


def test_shares_are_those_of_sequences_of_each_length(adapter, cells, results):
    """The first of the fixed readers is the one trained before."""
    weights, _ = adapter.lesson_reader(cells["train"].names)
    tests = cells["five-readers"].names["tests"]
    tests = tests.values() if isinstance(tests, dict) else tests
    for length, test, share in zip(TESTED, tests, results[0, 0], strict=True):
        tokens, labels = adapter.lesson_arrays(test)
        assert tokens.shape == (500, length)
        answers = in_parts(lambda part: read(weights, part)[0], tokens.astype(int))
        assert share == pytest.approx(share_right(answers > 0, labels > 0), abs=0.0021)


def test_the_table_and_the_figure_past_the_end_have_medians_and_ranges(cells, results):
    cell = cells["past-the-end-figure"]
    _, *rows = cell.rows[:11]
    spread = median_and_range(results, axis=1)  # (kinds, lengths, 3)
    assert_printed(rows[::2], spread[..., 0])
    assert_printed(np.abs(rows[1::2]), spread[..., 1:].reshape(5, 8))
    lines = cell.printed.splitlines()[1::2]
    assert [re.sub(r"^[\d. ]+", "", line) for line in lines] == NAMES
    across = "Tokens (trained on 8)"
    assert_medians_with_bars(cell, results, TESTED, 1 / 2, NAMES, across)


# Solutions


def test_a_bias_of_the_keys_changes_scores_and_no_weights(cells):
    names = cells["solution-bias"].names
    X, b = array(names["X"]).reshape(4, 8), array(names["b_k"])
    before, after = X @ X.T, X @ (X + b).T
    np.testing.assert_allclose(softmax(before), softmax(after))
    (scores,), (weights,) = cells["solution-bias-shown"].rows
    assert_printed(scores, np.abs(before - after).max())
    assert (scores > 0.1, weights) == (True, 0)
    # A bias of the queries does change them.
    assert np.abs(softmax((X + b) @ X.T) - softmax(before)).max() > 0.01


def diversity_of(X: np.ndarray) -> float:
    """The norm of what sets the tokens apart, over the norm of all."""
    return np.linalg.norm(X - X.mean(axis=1, keepdims=True)) / np.linalg.norm(X)


def test_attention_alone_averages_the_tokens_away(adapter, cells):
    names = cells["solution-stacking"].names
    X = np.random.default_rng(0).normal(size=(1, 5, 6)).astype("float32") + 1
    shown = float(names["diversity"](adapter.tensor(X)))
    assert shown == pytest.approx(diversity_of(X), rel=1e-4)
    blocks = adapter.lesson_blocks(names)
    assert len({weights["W_q"].tobytes() for weights in blocks}) == 8  # none twice
    start = array(names["start"]) + reference.positional_encoding(16, 64)
    expected = []
    for sharpness, skip in ((1, False), (10, False), (1, True)):
        X, curve = start, [diversity_of(start)]
        for weights in blocks:
            pooled, _ = reference_multi_head(weights, 4, sharpness * X, X, X)
            length = np.linalg.norm(X) / np.linalg.norm(pooled)
            X = pooled + X if skip else pooled * length
            curve.append(diversity_of(X))
        expected.append(curve)
    cell, axes = cells["solution-stacking-figure"], ("Layers", "Diversity")
    curves = ["attention alone", "queries ten times as long", "with skip connections"]
    assert_curves(cell, np.arange(9), expected, curves, axes, rtol=1e-2, atol=1e-5)
    alone, sharper, skip = np.array(expected)
    assert alone[4] < 0.05
    assert (sharper[1:5] > alone[1:5]).all()
    assert sharper[-1] < sharper[0] / 2
    assert skip[-1] > max(0.5, sharper[-1])


def test_without_positions_the_answer_is_the_same_in_the_mirror(adapter, cells):
    names = cells["solution-mirrored"].names
    weights, answers = adapter.lesson_reader(names)
    tokens = drawn(500)
    mirrored = np.where(tokens < 2, 1 - tokens, tokens)
    expected, _ = read(weights, tokens, "none")
    for each in (tokens, mirrored):
        np.testing.assert_allclose(answers(each), expected, atol=1e-4)
    assert expected.std() > 1e-3  # it is not one answer for all
    told = array(names["mirrored"](adapter.tensor(tokens)))
    np.testing.assert_array_equal(told, mirrored)
    # So it is right for one of the two, and wrong for the other.
    np.testing.assert_array_equal(zero_is_first(mirrored), ~zero_is_first(tokens))
    assert cells["solution-mirrored"].rows == [[0]]


def test_causal_attention_is_a_full_lower_triangle(adapter, cells):
    cell, names = cells["solution-causal-map"], cells["solution-causal"].names
    strengths = influence_of_attention(adapter, names, causal=True)
    expected, axes = [strengths / strengths.max()], ("Input j", "Output i")
    (shown,) = assert_maps(cell, expected, axes, atol=1e-4)
    np.testing.assert_array_equal(shown > 0, np.tri(10) > 0)
    assert shown[:, 0].argmax() == 0
    future, connected = cell.printed.splitlines()
    assert future.endswith(": no")
    assert numbers(connected) == [55, 100]


def fading_by_the_chain_rule(names: Any, factor: float) -> np.ndarray:
    """How strongly the first token acts on each state of the RNN, its matrix times a factor."""
    W_xh, W_hh = rnns_matrices(names)
    H, slope, strengths = np.zeros(16), None, []
    for x in array(names["X"])[0]:
        H = np.tanh(x @ W_xh + H @ (factor * W_hh))
        slope = (W_xh if slope is None else slope @ (factor * W_hh)) * (1 - H**2)
        strengths.append(np.linalg.norm(slope))
    return np.array(strengths)


def test_influence_fades_in_the_rnns_alone(adapter, cells):
    names = cells["solution-fading"].names
    strengths = [fading_by_the_chain_rule(names, factor) for factor in (1, 0.8)]
    strengths.append(influence_of_attention(adapter, names)[:, 0])
    expected = [each / each[0] for each in strengths]
    cell = cells["solution-fading-figure"]
    axes = "Distance from the first token", "Influence"
    curves = ["RNN", "RNN, matrix times 0.8", "self-attention"]
    assert_curves(cell, np.arange(24), expected, curves, axes, yscale="log", rtol=1e-3)
    *rnns, attention = expected
    factors = np.diff(np.log(rnns))
    assert factors.max() < 0  # weaker with every step
    assert factors.std(axis=1).max() < 0.35  # roughly a straight line
    without, with_factor = np.exp(factors.mean(axis=1))
    assert 0.8 * without < with_factor < without
    assert rnns[0][-1] < 1e-2
    assert attention.min() > 0.1


def test_growing_gaps_cross_the_sequence_in_logarithmically_many_layers(cells):
    rows = cells["solution-dilated"].rows
    assert rows == [[5, 4, 2], [14, 13, 3], [41, 40, 4], [122, 121, 5]]


def test_one_token_at_a_time_gives_what_all_at_once_gives(adapter, cells):
    names = cells["solution-decoding-cost"].names
    weights = adapter.lesson_projections(names, "small_attention")
    X = array(names["tokens"]) + reference.positional_encoding(10, 16)
    expected, _ = reference_multi_head(weights, 2, X, X, X, causal=True)
    outputs = np.concatenate([array(y) for y in names["outputs"]], axis=1)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    difference, _, *rows = cells["solution-decoding-cost"].printed.splitlines()
    assert numbers(difference) == [0]
    # The cache saves the projections of earlier tokens.
    d = 16
    for n, row in zip((10, 100, 1000), rows, strict=True):
        attending = 2 * d**2 + 2 * n * d  # the query, the output, scores and average
        counts = n, attending + 2 * n * d**2, attending + 2 * d**2
        assert row.replace(",", "").split() == [*map(str, counts)]


def test_relative_attention_is_the_formula_up_to_the_tables_ends(adapter, cells):
    names = cells["solution-relative-shown"].names
    weights = adapter.lesson_relative(names)
    assert weights["table"].shape == (7, 16)

    def scores_of(X):
        Q, K = (X @ weights[W] for W in ("W_q", "W_k"))
        a = weights["table"][reference.distance_rows(X.shape[1], 3)]
        return np.einsum("bid,bijd->bij", Q, K[:, None] + a) / 4

    def attend(X):
        return softmax(scores_of(X)) @ (X @ weights["W_v"])

    X = np.random.default_rng(0).normal(size=(1, 11, 16)).astype("float32")
    scores = adapter.lesson_relative_scores(names, X)
    np.testing.assert_allclose(scores, scores_of(X), atol=1e-4)
    four = array(names["four"])
    Y, backwards = attend(four), attend(four[:, ::-1])[:, ::-1]
    shown = array(adapter.lesson_relative_output(names, names["four"]))
    np.testing.assert_allclose(shown, Y, atol=1e-5)
    (*_, at_both_places), (in_the_other_order,) = cells["solution-relative-shown"].rows
    assert_printed(in_the_other_order, np.abs(Y - backwards).max())
    assert (at_both_places, in_the_other_order > 0.1) == (0, True)


def test_each_seed_is_used_once(cells):
    """JAX draws the same numbers from the same key."""
    code = "".join(cell.source for cell in cells.values())
    seeds = re.findall(r"random\.key\((\d+)\)", code)
    assert len(set(seeds)) == len(seeds)
