"""What the lesson claims, held to the reference: figures by their data, and every printed result.

nbval compares a notebook with what was stored, and so cannot know that what was stored is right.
"""

import ast
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from d2l_compat._shared.arrays import to_numpy
from tests.lessons.cells import (
    assert_printed,
    first_calls,
    numbers,
    softmax,
    table,
)
from tests.shim import reference
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


# What depends on chance is as the text says it.


def test_the_reader_is_as_told(rows):
    shares = [row[:4] for row in rows["found-shares"] if len(row) == 5]
    assert len(shares) == 4
    for zero, one, first, last in shares:
        assert zero + one == pytest.approx(first + last, abs=0.03)
    followers = [row for row in shares if max(row[:2]) > 0.8]
    assert followers
    for *_, first, last in followers:  # wherever it stands
        assert abs(first - last) < 0.2
    for_order = [
        row
        for row in shares
        # Rounded, since of the numbers printed 0.59 - 0.39 would be less than 0.2.
        if round(abs(row[0] - row[1]), 2) < 0.2 and row[0] + row[1] > 0.5
    ]
    assert for_order
    for *_, first, last in for_order:
        assert max(first, last) > 3 * min(first, last)
    (everywhere,), (not_in_values,), (in_values,) = rows["without-positions-shown"]
    assert everywhere >= ALL_RIGHT
    assert not_in_values > ALMOST_ALWAYS
    assert in_values < not_in_values - 0.2


def runs_in(rows: list[list[float]]) -> np.ndarray:
    """The median, the least and the most of each kind: shape (kinds, 3, lengths)."""
    _, *rows = rows[: 2 * len(KINDS) + 1]
    return np.array(
        [
            [medians, *np.abs(np.reshape(ranges, (len(TESTED), 2)).T)]  # 0.5-0.7
            for medians, ranges in zip(rows[::2], rows[1::2], strict=True)
        ]
    )


def past_the_end_is_as_told(runs: np.ndarray) -> None:
    """Of the medians, the least and the most, by kind and length."""
    fixed, learned, rotary, mask, both = runs
    median, least, most = range(3)
    assert runs[:, least, 0].min() >= ALL_RIGHT  # on 8 tokens
    for absolute in (fixed, learned):
        assert absolute[median, 1] == SIX_TO_EIGHT_IN_TEN
        assert (rotary[median, 1:3] > absolute[median, 1:3] + 0.15).all()
    assert fixed[least, 3] < MISLED
    assert rotary[median, 3] == CHANCE
    assert mask[median, 3] > 0.8
    assert both[median, 3] == NINE_IN_TEN
    for masked in (mask, both):
        assert masked[median, 3] > max(
            fixed[most, 3], learned[most, 3], rotary[most, 3]
        )


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
    rows = cells["all-words"].rows
    assert_printed(rows, np.hstack([weights, weights @ WORDS]))
    assert_printed(rows[IT][:6], softmax(WORDS @ WORDS[IT]))  # as computed before
    for word in (THE, BECAUSE):
        assert_printed(rows[word][:6], [1 / 6] * 6)
    assert rows[CAT][CAT] == 1
    for word in (SAT, PURRED):
        assert rows[word][SAT] + rows[word][PURRED] > 0.95


def test_with_three_roles_purred_finds_the_cat_and_the_cat_does_not_look_back(cells):
    queries = WORDS @ [[1, 0], [1, 0]]
    scores = queries @ WORDS.T
    weights = softmax(scores)
    rows = cells["three-roles"].rows
    assert_printed(rows, np.hstack([weights, weights @ WORDS]))
    assert (scores[PURRED, CAT], scores[CAT, PURRED]) == (6, 0)
    names = cells["three-roles"].names
    found = to_numpy("Q", names["Q"]) @ to_numpy("K", names["K"]).T
    np.testing.assert_allclose(found, scores)
    assert np.allclose(rows[PURRED][6:], WORDS[CAT], atol=0.15)


# Scaled dot products


def slopes(scores: np.ndarray) -> np.ndarray:
    """Of each row's softmax: the norm of diag(w) - w w^T."""
    w = softmax(scores.astype(float))
    outer = np.einsum("qi,qj->qij", w, w)
    return np.linalg.norm(w[:, None] * np.eye(w.shape[1]) - outer, axis=(1, 2))


def largest_weights(scores: np.ndarray) -> np.ndarray:
    return softmax(scores.astype(float)).max(axis=1)


def test_dividing_by_the_root_keeps_the_spread_of_scores(cells):
    names = cells["saturation"].names
    shown = iter(cells["scaling"].rows)
    for i, width in ((0, 4), (4, 64), (8, 1024)):
        plain = to_numpy("plain", names["plain"][i])
        scaled = to_numpy("scaled", names["scaled"][i])
        assert plain.shape == (1000, 10)
        np.testing.assert_allclose(scaled, plain / np.sqrt(width), rtol=1e-4)
        for scores, spread in (plain, np.sqrt(width)), (scaled, 1):
            of_weights = largest_weights(scores).mean()
            assert_printed(next(shown), [width, scores.std(), of_weights])
            assert scores.std() == pytest.approx(spread, rel=0.1)


def test_scores_are_those_of_independent_queries_and_keys(cells):
    """The weights saturate as they do for queries and keys of our own."""
    rng, names = np.random.default_rng(0), cells["saturation"].names
    for i in (0, 4, 8):
        width = names["widths"][i]
        queries, keys = (rng.normal(size=(1000, k, width)) for k in (1, 10))
        ours = (queries * keys).sum(axis=-1)
        for name, scores in ("plain", ours), ("scaled", ours / np.sqrt(width)):
            theirs = to_numpy(name, names[name][i])
            for measure in (largest_weights, slopes):
                medians = [np.median(measure(each)) for each in (theirs, scores)]
                assert medians[0] == pytest.approx(medians[1], abs=0.04)


def test_the_root_keeps_the_softmax_from_saturating(cells):
    names = cells["saturation"].names
    for name, (x, y) in zip(("plain", "scaled"), cells["slopes"].curves, strict=True):
        medians = [np.median(slopes(to_numpy(name, each))) for each in names[name]]
        np.testing.assert_array_equal(x, range(2, 11))
        np.testing.assert_allclose(y, medians, atol=5e-3)  # some take the lower median
    plain, scaled = (y for _, y in cells["slopes"].curves)
    assert scaled.min() > 0.8 * scaled.max()
    assert plain[-1] < 0.05
    assert all(wider < narrower for narrower, wider in pairwise(plain[::2]))


# Many heads


def test_self_attention_keeps_the_shape(cells):
    assert str(cells["shape-check"].value) == "(2, 4, 100)"
    assert str(cells["three-layers"].value).count("(1, 10, 16)") == 3


def test_the_layer_computes_the_formula(face, cells):
    names = cells["by-hand"].names
    weights = face.lesson_projections(names)
    X = to_numpy("X", names["X"])
    expected, _ = reference_multi_head(weights, 5, X, X, X, np.array([3, 2]))
    for name in ("Y", "by_hand"):
        np.testing.assert_allclose(to_numpy(name, names[name]), expected, atol=1e-5)
    (largest,), (difference,) = cells["by-hand-difference"].rows
    assert largest == pytest.approx(np.abs(expected).max(), abs=2e-5)
    assert (largest > 0.1, difference) == (True, 0)


def test_masked_keys_get_no_weight_and_the_rest_sums_to_one(face, cells):
    names = cells["by-hand"].names
    X = to_numpy("X", names["X"])
    weights = face.lesson_projections(names)
    _, expected = reference_multi_head(weights, 5, X, X, X, np.array([3, 2]))
    cell = cells["weights-heatmaps"]
    assert len(cell.panels) == 10
    for panel, weights in zip(cell.panels, expected.reshape(10, 4, 4), strict=True):
        np.testing.assert_allclose(panel.get_array(), weights, atol=1e-5)
        assert panel.get_cmap().name == "Blues"
    for i, panel in enumerate(cell.panels):
        assert not panel.get_array()[:, (3, 2)[i // 5] :].any()


def test_order_is_seen_with_a_mask_or_with_positions_alone(face, cells):
    names = cells["order-seen"].names
    weights, order = face.lesson_projections(names), [3, 0, 5, 1, 4, 2]
    tokens = to_numpy("tokens", names["tokens"]).astype(float)
    assert tokens.shape == (1, 6, 100)

    def attend(X, lens=None):
        return reference_multi_head(weights, 5, X, X, X, lens)[0]

    def apart(layer):
        return np.abs(layer(tokens[:, order]) - layer(tokens)[:, order]).max()

    P = reference.positional_encoding(6, 100)
    without = apart(attend)
    with_mask = apart(lambda X: attend(X, np.arange(1, 7)[None]))
    with_positions = apart(lambda X: attend(X + P))
    assert without < 1e-12
    assert min(with_mask, with_positions) > 0.01
    masked = attend(tokens, np.arange(1, 7)[None])
    up_to, up_to_with_mask = (np.abs(Y).max() for Y in (attend(tokens), masked))
    expected = [[up_to, 0], [up_to_with_mask, with_mask]]
    assert_printed(cells["equivariance"].rows, expected, 4)
    assert_printed(cells["order-seen"].rows, [[with_positions]], 4)


# CNN, RNN, self-attention


def rnns_matrices(names: dict[str, Any]) -> list[np.ndarray]:
    """W_xh and W_hh, to be multiplied from the right."""
    matrices = []
    for name in ("W_xh", "W_hh"):
        W = names[name]  # Gluon's are layers
        W = to_numpy(name, W.weight.data().T if hasattr(W, "weight") else W)
        matrices.append(W.astype(float))
    return matrices


def test_the_cnn_is_one_kernel_everywhere(face, cells):
    """Its answers to a single 1 are the kernel; an output is the sum of these answers."""
    cnn, n, d = cells["three-layers"].names["cnn"], 10, 16
    ones = np.eye(d, dtype="float32")[:, None] * np.eye(n)[4][:, None]  # at x_4
    kernel = to_numpy("Y", cnn(face.tensor(ones.astype("float32")))).astype(float)
    assert not np.delete(kernel, (3, 4, 5), axis=1).any()
    X = np.random.default_rng(0).normal(size=(2, n, d)).astype("float32")
    Y = to_numpy("Y", cnn(face.tensor(X)))
    padded = np.pad(X.astype(float), ((0, 0), (1, 1), (0, 0)))
    # y_3 hears x_4 on its right, y_5 on its left.
    expected = sum(
        padded[:, 2 - shift : 2 - shift + n] @ kernel[:, 3 + shift]
        for shift in (0, 1, 2)
    )
    np.testing.assert_allclose(Y, expected, atol=1e-5)


def test_the_rnns_matrices_are_orthogonal(cells):
    for W in rnns_matrices(cells["three-layers"].names):
        np.testing.assert_allclose(W @ W.T, np.eye(16), atol=1e-5)
    W_xh, W_hh = rnns_matrices(cells["three-layers"].names)
    assert np.abs(W_xh - W_hh).max() > 0.1


def test_the_rnn_computes_the_formula(cells):
    names = cells["three-layers"].names
    W_xh, W_hh = rnns_matrices(names)
    X = to_numpy("X", names["X"]).astype(float)
    rnn = names["layers"]["RNN"]
    Y = to_numpy("Y", rnn(names["X"]))
    H = np.zeros((1, 16))
    for t in range(10):
        H = np.tanh(X[:, t] @ W_xh + H @ W_hh)
        np.testing.assert_allclose(Y[:, t], H, atol=1e-5)


def test_influence_is_a_band_a_triangle_and_everything(cells):
    i, j = np.indices((10, 10))
    expected = [abs(i - j) <= 1, j <= i, np.full((10, 10), True)]
    panels = cells["influence-heatmaps"].panels
    for panel, connected in zip(panels, expected, strict=True):
        np.testing.assert_array_equal(panel.get_array() > 0, connected)
        assert panel.get_cmap().name == "Blues"
    printed = [row[0] for row in cells["influence-heatmaps"].rows]
    assert printed == [connected.sum() for connected in expected]


def test_maps_of_influence_are_those_of_finite_differences(face, cells):
    names = cells["influence"].names
    X = to_numpy("X", names["X"])
    _, n, d = X.shape
    step = 0.01
    moves = step * np.eye(n * d, dtype="float32").reshape(-1, n, d)
    panels = cells["influence-heatmaps"].panels
    for panel, layer in zip(panels, names["layers"].values(), strict=True):
        up, down = (
            to_numpy("Y", layer(face.tensor(X + moved))) for moved in (moves, -moves)
        )
        change = (up - down).reshape(n, d, n, d) / (2 * step)
        strengths = np.linalg.norm(change, axis=(1, 3)).T
        np.testing.assert_allclose(
            panel.get_array(), strengths / strengths.max(), atol=0.01
        )


def influence_of_attention(
    weights: dict[str, np.ndarray], X: np.ndarray, lens: Any = None
) -> np.ndarray:
    """The norm of dy_i/dx_j of two heads, by finite differences in double precision."""
    _, n, d = X.shape
    step = 1e-4
    moves = step * np.eye(n * d).reshape(-1, n, d)
    if lens is not None:
        lens = np.tile(lens, (n * d, 1))
    up, down = (
        reference_multi_head(weights, 2, *[X.astype(float) + moved] * 3, lens)[0]
        for moved in (moves, -moves)
    )
    change = (up - down).reshape(n, d, n, d) / (2 * step)
    return np.linalg.norm(change, axis=(1, 3)).T


def test_two_convolutions_join_the_first_and_fifth_token_in_the_third_unit(cells):
    i, j = np.indices((10, 10))
    for depth, seen in enumerate(cells["receptive-field"].names["seen"], 1):
        np.testing.assert_array_equal(to_numpy("seen", seen) > 0, abs(i - j) <= depth)
    first, *depths = cells["reach"].printed.splitlines()
    assert first.endswith(" x_1, x_2, x_3, x_4, x_5")
    assert [line.split()[-1] for line in depths] == ["no", "no", "no", "yes"]


def test_only_the_rnn_takes_more_steps_for_a_longer_sequence(face, cells):
    rows = cells["sequential-operations"].rows
    assert rows == [[n, 1, n, 3 if face.FUSED else 4] for n in (4, 8, 16, 32)]


def test_multiply_adds_are_those_of_the_formulas(cells):
    d, k = 16, 3
    rows = table(cells["multiply-adds"].printed.replace(",", ""))[1:]
    for n, (length, *counts, agree) in zip((8, 16, 32, 64, 128), rows, strict=True):
        attention = 4 * n * d**2 + 2 * n**2 * d
        assert [int(count) for count in (length, *counts)] == [
            n,
            k * n * d**2,
            2 * n * d**2,
            attention,
        ]
        assert agree == "yes"


# Positional encoding


@pytest.mark.parametrize(("rows", "width"), [(3, 4), (20, 7), (1000, 32), (5, 1)])
def test_the_lessons_sinusoids_are_the_formula(cells, rows, width):
    P = cells["sinusoids"].names["sinusoids"](rows, width)
    expected = reference.positional_encoding(rows, width)
    # In single precision, frequencies would put position 1000 off by 5e-6.
    np.testing.assert_allclose(to_numpy("P", P), expected, atol=1e-6)


def test_the_first_rows_are_shown_for_four_columns(cells):
    expected = reference.positional_encoding(3, 4)
    rows = cells["sinusoids"].rows
    assert [row[0] for row in rows] == [0, 1, 2]
    assert_printed([row[1:] for row in rows], expected)


@pytest.mark.parametrize(("num_hiddens", "offset"), [(32, 0), (7, 0), (32, 3), (1, 2)])
def test_the_lessons_encoding_adds_them(face, cells, num_hiddens, offset):
    layer = encoding_of(face, cells, num_hiddens, 0)
    X = np.random.default_rng(0).normal(size=(2, 8, num_hiddens)).astype("float32")
    P = reference.positional_encoding(20, num_hiddens)[offset : offset + 8]
    shown = face.lesson_encoding(layer, X, offset)
    np.testing.assert_allclose(shown, X + P, atol=1e-6)


def encoding_of(
    face: Any, cells: Any, num_hiddens: int, dropout: float, max_len: int = 20
) -> Any:
    """A layer of the lesson's own class."""
    names = cells["positional-encoding"].names
    return face.lesson_new_encoding(names, num_hiddens, dropout, max_len=max_len)


def test_one_by_one_the_encoding_is_what_it_is_all_at_once(face, cells):
    layer = encoding_of(face, cells, 7, 0, max_len=10)
    zeros = np.zeros((1, 10, 7), "float32")
    one_by_one = [face.lesson_encoding(layer, zeros[:, :1], i) for i in range(10)]
    at_once = face.lesson_encoding(layer, zeros)
    np.testing.assert_array_equal(np.concatenate(one_by_one, axis=1), at_once)


def test_numbers_are_dropped_or_doubled_in_training_alone(face, cells):
    layer, ones = encoding_of(face, cells, 8, 0.5), np.ones((1, 20, 8), "float32")
    whole = 1 + reference.positional_encoding(20, 8)[None]
    np.testing.assert_allclose(face.lesson_encoding(layer, ones), whole, atol=1e-6)
    dropped = face.lesson_encoding(layer, ones, training=True)
    is_kept = dropped != 0
    np.testing.assert_allclose(dropped, np.where(is_kept, 2 * whole, 0), atol=1e-5)
    assert 0.3 < is_kept.mean() < 0.7


def test_the_encoding_is_neither_trained_nor_saved(face, cells):
    assert face.lesson_kept(encoding_of(face, cells, 8, 0.5)) == []


@pytest.mark.parametrize(("offset", "last"), [(-1, 8), (1, 10)])
def test_there_are_no_positions_past_the_ends(face, cells, offset, last):
    layer = encoding_of(face, cells, 7, 0, max_len=10)
    zeros = np.zeros((1, 10, 7), "float32")
    message = rf"{offset}\D+{last}\D+0\D+9"  # no positions -1 to 8: there are 0 to 9
    with pytest.raises(ValueError, match=message):
        face.lesson_encoding(layer, zeros, offset)


def test_embedding_and_encoding_have_comparable_lengths(cells, pytestconfig):
    lengths = [row[0] for row in cells["lengths"].rows]
    embedding, encoding = np.sqrt(512), 16
    both = np.hypot(embedding, encoding)  # they are nearly orthogonal
    variance = OF_VARIANCE.get(pytestconfig.getoption("framework"))
    own = [] if variance is None else [np.sqrt(512 * variance)]
    expected = [1, embedding, encoding, both, *own]
    np.testing.assert_allclose(lengths[: len(expected)], expected, rtol=0.02)


def test_the_column_plot_shows_columns_six_to_nine(cells):
    P = reference.positional_encoding(60, 32)
    curves = cells["column-plot"].curves
    for (x, y), column in zip(curves, range(6, 10), strict=True):
        np.testing.assert_array_equal(x, np.arange(60))
        np.testing.assert_allclose(y, P[:, column], atol=1e-6)
    assert cells["column-plot"].legend == ["Col 6", "Col 7", "Col 8", "Col 9"]
    (figure,) = cells["column-plot"].figures
    assert figure.axes[0].get_xlabel() == "Row (position)"
    assert tuple(figure.get_size_inches()) == (6, 2.5)


def test_zero_to_seven_in_three_bits(cells):
    bits = ["000", "001", "010", "011", "100", "101", "110", "111"]
    assert [row[-1] for row in table(cells["binary"].printed)] == bits
    assert [row[0] for row in table(cells["binary"].printed)] == list("01234567")


def test_the_heat_map_shows_the_encoding_with_zero_in_the_middle(cells):
    (panel,) = cells["encoding-heatmap"].panels
    np.testing.assert_allclose(
        panel.get_array(), reference.positional_encoding(60, 32), atol=1e-6
    )
    assert panel.get_cmap().name == "RdBu_r"
    assert panel.get_clim() == (-1, 1)
    assert tuple(cells["encoding-heatmap"].figures[0].get_size_inches()) == (3.5, 4)


OMEGA = 10000.0 ** (-2 * np.arange(16) / 32)  # radians per position, by pair


def test_wavelengths_grow_from_two_pi_towards_ten_thousand_times_that(cells):
    (turns,) = cells["wavelengths"].rows
    np.testing.assert_array_equal(turns, np.round(2 * np.pi / OMEGA))
    np.testing.assert_allclose(
        to_numpy("omega", cells["wavelengths"].names["omega"]), OMEGA, rtol=1e-5
    )


def test_dot_products_depend_on_the_distance_alone(cells):
    distances = np.arange(-20, 21)
    expected = sum(np.cos(distances * frequency) for frequency in OMEGA)
    curves = cells["dot-products"].curves
    assert len(curves) == 3
    for x, y in curves:
        np.testing.assert_array_equal(x, distances)
        np.testing.assert_allclose(y, expected, atol=1e-4)
    printed = [row[-1] for row in table(cells["dot-products"].printed)]
    assert printed == ["16.0000", "0.0000"]


# Relative position


def turned(X: np.ndarray, angle: Any) -> np.ndarray:
    """Each pair of columns as a complex number, turned clockwise."""
    pairs = (X[..., 0::2] + 1j * X[..., 1::2]) * np.exp(-1j * np.asarray(angle))
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(X.shape)


def rotated(X: np.ndarray) -> np.ndarray:
    """Queries or keys, turned by their positions: X of shape (batch, positions, width)."""
    _, length, width = X.shape
    omega = 10000.0 ** (-2 * np.arange(width // 2) / width)
    return turned(X, np.arange(length)[:, None] * omega)


def test_pairs_are_turned(face, cells):
    rng = np.random.default_rng(0)
    X, angle = rng.normal(size=(2, 3, 8)), rng.normal(size=4)
    shown = cells["rotation"].names["turn"](
        *(face.tensor(each.astype("float32")) for each in (X, angle))
    )
    np.testing.assert_allclose(to_numpy("turned", shown), turned(X, angle), atol=1e-5)


def test_a_turn_by_five_takes_row_three_to_row_eight(cells):
    P = reference.positional_encoding(60, 32)
    *rows, (largest,) = cells["rotation"].rows
    assert_printed([row[:4] for row in rows], P[[3, 8, 8], :4], 4)
    assert [row[4:] for row in rows] == [[3], [3, 5], [8]]
    np.testing.assert_allclose(turned(P[3], 5 * OMEGA), P[8])
    assert largest < 1e-5


def test_six_offsets_are_tried_and_one_of_them_backwards(cells, python_alone):
    offsets = cells["rotation"].passed_through("delta")
    assert len({*offsets}) == 6
    assert sum(delta < 0 for delta in offsets) == 1


@pytest.mark.parametrize("row", [0, 1, 29, 58, 59])
def test_every_row_is_tried(face, cells, row, python_alone):
    """One that is wrong shows."""
    P = reference.positional_encoding(60, 32).astype("float32")
    P[row] += 1
    printed = cells["rotation"].again(P=face.tensor(P))
    assert numbers(printed)[-1] > 0.1


def test_every_query_from_the_sixth_on_looks_five_back(cells):
    (panel,) = cells["five-back"].panels
    i, j = np.indices((20, 20))
    # The row that the turn by -5 makes of row i is that of position i - 5.
    scores = sum(np.cos((i - 5 - j) * frequency) for frequency in OMEGA)
    expected = softmax(4 * scores / np.sqrt(32))
    np.testing.assert_allclose(panel.get_array(), expected, atol=1e-4)
    weights = np.asarray(panel.get_array())[5:]
    rows = np.arange(15)
    np.testing.assert_array_equal(weights.argmax(axis=1), rows)
    stripe = weights[rows, rows]
    assert (abs(stripe - A_THIRD) < 0.04)[1:].all()
    assert abs(stripe[0] - A_THIRD) < 0.11  # with a neighbour on one side only
    neighbours = weights[rows, rows + 1] + np.where(
        rows > 0, weights[rows, rows - 1], 0
    )
    assert (neighbours > (1 - stripe) / 2)[1:].all()
    # There is no key five before these: some settle for the nearest, the others spread their weight.
    early = np.asarray(panel.get_array())[:5]
    assert (early[3:].argmax(axis=1) == 0).all()
    assert early[3:, 0].min() > 0.25 > early[:3].max()


def test_rotated_scores_depend_on_content_and_distance_alone(cells):
    names = cells["rotary-scores"].names
    q, k = (to_numpy(name, names[name])[0].astype(float) for name in ("q", "k_"))
    Q, K = (rotated(np.tile(x, (1, 60, 1)))[0] for x in (q, k))
    scores = to_numpy("scores", names["scores"])
    np.testing.assert_allclose(scores, Q @ K.T, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(Q, axis=1), np.linalg.norm(q))
    for distance in range(-59, 60):
        (at_any,) = np.unique((Q @ K.T).diagonal(distance).round(9))
        at_zero = turned(q, 0) @ turned(k, distance * OMEGA)
        assert at_any == pytest.approx(at_zero, abs=1e-6)
    (low, high), (spread,) = cells["rotary-check"].rows
    assert_printed([low, high], [scores.min(), scores.max()])
    assert (high - low > 1, spread) == (True, 0)


def test_the_rotary_layer_turns_queries_and_keys_and_keeps_their_lengths(face, cells):
    X = np.random.default_rng(0).normal(size=(2, 9, 8)).astype("float32")
    shown = face.lesson_turned(cells["rotary"].names, X)
    np.testing.assert_allclose(shown, rotated(X), atol=1e-5)
    np.testing.assert_allclose(
        np.linalg.norm(shown, axis=-1), np.linalg.norm(X, axis=-1), rtol=1e-5
    )


# What a trained model looks at

EXAMPLE = np.array([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])


def drawn(count: int, length: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of our own, and whether the 0 comes first."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(2, 10, (count, length))
    places = rng.permuted(np.tile(np.arange(length), (count, 1)), axis=1)[:, :2]
    np.put_along_axis(tokens, places, np.array([[0, 1]]), axis=1)
    return tokens, places[:, 0] < places[:, 1]


def read(
    weights: dict[str, np.ndarray],
    tokens: np.ndarray,
    kind: str,
    to_scores: bool = True,
    to_values: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """A reader's answers, and its weights of shape (sequences, heads, queries, keys).

    Positions can be kept from its queries and keys, and from its values.
    """
    X = weights["embedding"].astype(float)[tokens]
    placed = X + positions(weights, X.shape[1], kind)
    Q, K = ((placed if to_scores else X) @ weights[W] for W in ("W_q", "W_k"))
    V = (placed if to_values else X) @ weights["W_v"]
    Y, attention = heads(Q, K, V, kind)
    pooled = (Y @ weights["W_o"]).mean(axis=1)
    hidden = np.maximum(pooled @ weights["W_1"] + weights["b_1"], 0)
    return (hidden @ weights["W_2"] + weights["b_2"])[:, 0], attention


def positions(weights: dict[str, np.ndarray], length: int, kind: str) -> Any:
    """What is added to the tokens."""
    if kind == "learned":
        return weights["P"][:length]
    return reference.positional_encoding(length, 32) if "fixed" in kind else 0


def heads(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Four side by side, and their weights."""
    length = Q.shape[1]
    lens = np.tile(np.arange(1, length + 1), (len(Q), 1)) if "mask" in kind else None
    outputs, attention = [], []
    for q, k, v in zip(
        *(np.split(each, 4, axis=-1) for each in (Q, K, V)), strict=True
    ):
        if kind == "rotary":
            q, k = rotated(q), rotated(k)
        output, weights = reference.dot_product_attention(q, k, v, lens)
        outputs.append(output)
        attention.append(weights)
    return np.concatenate(outputs, axis=-1), np.stack(attention, axis=1)


def test_labels_tell_whether_the_zero_comes_first(face, cells):
    for length in TESTED:
        names = cells["task"].names
        tokens, labels = face.lesson_drawn(names, "sequences", 100, length)
        assert tokens.shape == (100, length)
        assert ((np.sort(tokens)[:, :3] >= [0, 1, 2]).all(), tokens.max()) == (True, 9)
        assert ((tokens == 0).sum(axis=1) == 1).all()
        assert ((tokens == 1).sum(axis=1) == 1).all()
        first = (tokens == 0).argmax(axis=1) < (tokens == 1).argmax(axis=1)
        np.testing.assert_array_equal(labels, first)
    for *tokens, label in cells["task"].rows:
        assert label == (tokens.index(0) < tokens.index(1))


def test_sequences_are_drawn_evenly(face, cells):
    """No number depends on another: what stands at a place says nothing of the 0's and the 1's."""
    tokens, labels = face.lesson_drawn(cells["task"].names, "sequences", 4000)
    assert labels.mean() == pytest.approx(0.5, abs=0.03)
    others = tokens[tokens > 1]
    shares = np.bincount(others)[2:] / len(others)
    np.testing.assert_allclose(shares, 1 / 8, atol=0.01)
    for token in (0, 1):
        np.testing.assert_allclose((tokens == token).mean(axis=0), 1 / 8, atol=0.02)
    for place in range(8):
        there = tokens[tokens[:, place] > 1, place]
        assert there.mean() == pytest.approx(5.5, abs=0.15)


def test_the_trained_reader_is_the_fixed_one_and_right(face, cells):
    weights, answers = face.lesson_reader(cells["train"].names)
    tokens, labels = drawn(1000)
    expected, _ = read(weights, tokens, "fixed")
    np.testing.assert_allclose(answers(tokens), expected, rtol=1e-3, atol=1e-3)
    assert ((expected > 0) == labels).mean() >= ALL_RIGHT


def test_the_trained_maps_are_those_of_its_weights(face, cells):
    weights, _ = face.lesson_reader(cells["train"].names)
    _, expected = read(weights, EXAMPLE, "fixed")
    panels = cells["trained-maps"].panels
    for panel, of_head in zip(panels, expected.reshape(8, 8, 8), strict=True):
        np.testing.assert_allclose(panel.get_array(), of_head, atol=1e-3)
    # In half of the maps or more, every query gives most of its weight to the same key.
    stripes = (expected.min(axis=-2) > 0.5).any(axis=-1)
    assert stripes.mean() >= 0.5
    # Many queries give nearly all their weight to one key: there stand the 0 and the 1.
    decided = expected.max(axis=-1) > 0.8
    chosen = np.where(decided, expected.argmax(axis=-1), -1).reshape(2, -1)
    assert decided.mean() > 0.25
    for keys, tokens in zip(chosen, EXAMPLE, strict=True):
        assert (tokens[keys[keys >= 0]] < 2).mean() > 0.7  # not every head looks there


def test_shares_are_those_that_the_heads_give_to_the_zero_and_the_one(face, cells):
    weights, _ = face.lesson_reader(cells["train"].names)
    tokens = to_numpy("tokens", cells["found"].names["tokens"])
    assert tokens.shape == (1000, 8)
    _, attention = read(weights, tokens, "fixed")
    places = [(tokens == token).argmax(axis=1) for token in (0, 1)]
    places += [np.minimum(*places), np.maximum(*places)]
    received = attention.mean(axis=2)  # (sequences, heads, keys)
    each = np.arange(len(tokens))
    expected = [received[each, :, place].mean(axis=0) for place in places]
    rows = [row[:4] for row in cells["found-shares"].rows if len(row) == 5]
    assert_printed(rows, np.transpose(expected))


def test_the_trained_reader_needs_no_positions_in_its_values(face, cells):
    weights, _ = face.lesson_reader(cells["train"].names)
    tokens, labels = drawn(1000)
    for kind, to_values, least in (
        ("fixed", True, ALL_RIGHT),
        ("fixed", False, ALMOST_ALWAYS),
    ):
        answers, _ = read(weights, tokens, kind, to_values=to_values)
        assert ((answers > 0) == labels).mean() > least
    tokens = to_numpy("tokens", cells["found"].names["tokens"])
    labels = (tokens == 0).argmax(axis=1) < (tokens == 1).argmax(axis=1)
    kept_from_one = {}, {"to_values": False}, {"to_scores": False}
    right = [
        [((read(weights, tokens, "fixed", **kept)[0] > 0) == labels).mean()]
        for kept in kept_from_one
    ]
    shown = cells["without-positions-shown"].rows
    np.testing.assert_allclose(shown, right, atol=0.002)


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
def test_each_kind_of_reader_is_what_its_name_says(face, cells, kind):
    """Positions are added to the tokens, or turn queries and keys, and leave the values alone."""
    weights, answers = face.lesson_reader(cells["five-readers"].names, kind)
    for length in (8, 21):
        tokens, _ = drawn(5, length)
        expected, _ = read(weights, tokens, kind)
        np.testing.assert_allclose(answers(tokens), expected, atol=1e-4)


def budget_of(framework: str) -> tuple[int, int, float]:
    """Of training: the steps, the sequences in each, and the rate."""
    budgets = {"mxnet": (100, 128, 0.012), "mlx": (100, 128, 0.01)}
    return budgets.get(framework, (120, 128, 0.008))


def test_readers_are_trained_for_so_many_steps(cells, pytestconfig):
    budget = budget_of(pytestconfig.getoption("framework"))
    assert {*budget} <= cells["train"].numbers


def test_readers_are_trained_on_eight_tokens(cells, pytestconfig, python_alone):
    cell = cells["train"]
    drawn = first_calls(
        lambda sequences: cell.again(sequences=sequences), cell.names["sequences"]
    )
    assert {tokens.shape[1] for tokens, _ in drawn} == {8}
    steps, batch, _ = budget_of(pytestconfig.getoption("framework"))
    assert {len(tokens) for tokens, _ in drawn} <= {1, batch, steps * batch}


def test_the_learned_table_is_trained_up_to_its_eighth_row(face, cells):
    before, after = face.lesson_learned_table(cells["five-readers"].names)
    assert before.shape == after.shape == (64, 32)
    assert (before != after)[:8].any(axis=1).all()
    np.testing.assert_array_equal(before[8:], after[8:])


@pytest.fixture
def results(cells) -> np.ndarray:
    """The shares right: of each kind, by seed and length."""
    found = cells["past-the-end"].names["results"]
    assert list(found) == KINDS
    shares = to_numpy("results", [*found.values()]).astype(float)
    assert shares.shape == (5, 5, 4)
    return shares


def medians_and_ranges(results: np.ndarray) -> np.ndarray:
    """Of shape (kinds, 3, lengths)."""
    return np.stack([np.median(results, 1), results.min(1), results.max(1)], axis=1)


def test_past_the_end_the_readers_are_right_as_often_as_the_text_says(results):
    past_the_end_is_as_told(medians_and_ranges(results))


def test_no_seed_is_used_twice_for_a_kind(results):
    for kind, runs in zip(KINDS, results.tolist(), strict=True):
        if kind != "mask":  # may be right everywhere, more than once
            assert len(set(map(tuple, runs))) == 5, kind


def test_shares_are_those_of_sequences_of_each_length(face, cells, results):
    """The first of the fixed readers is the one trained before."""
    weights, _ = face.lesson_reader(cells["train"].names)
    tests = cells["five-readers"].names["tests"]
    tests = tests.values() if isinstance(tests, dict) else tests
    for length, test, share in zip(TESTED, tests, results[0, 0], strict=True):
        tokens, labels = face.lesson_test(test)
        assert tokens.shape == (500, length)
        starts = range(0, 500, 100)  # a processor's cache holds their numbers
        answers = np.concatenate(
            [read(weights, tokens[i : i + 100].astype(int), "fixed")[0] for i in starts]
        )
        assert share == pytest.approx(
            ((answers > 0) == (labels > 0)).mean(), abs=0.0021
        )


def test_the_table_past_the_end_has_medians_and_ranges(cells, results):
    runs = runs_in(cells["past-the-end-figure"].rows)
    np.testing.assert_allclose(runs, medians_and_ranges(results), atol=0.0051)
    lines = cells["past-the-end-figure"].printed.splitlines()[1::2]
    assert [re.sub(r"^[\d. ]+", "", line) for line in lines] == NAMES


def test_the_figure_past_the_end_has_medians_and_ranges(cells, results):
    cell = cells["past-the-end-figure"]
    assert cell.legend == NAMES
    medians, least, most = medians_and_ranges(results).swapaxes(0, 1)
    curves = cell.curves
    for (x, y), of_kind in zip(curves[:5], medians, strict=True):
        np.testing.assert_array_equal(x, TESTED)
        np.testing.assert_allclose(y, of_kind)
    bars = np.array(curves[5:]).reshape(4, 5, 2, 2)  # (lengths, kinds, x and y, ends)
    np.testing.assert_allclose(bars[:, :, 1, 0].T, least)
    np.testing.assert_allclose(bars[:, :, 1, 1].T, most)
    for at, length in zip(bars[:, :, 0], TESTED, strict=True):
        assert (abs(at - length) < 3).all()
        np.testing.assert_array_equal(at[:, 0], at[:, 1])


# Solutions


def test_a_bias_of_the_keys_changes_scores_and_no_weights(cells):
    names = cells["solution-bias"].names
    X, b = (to_numpy(name, names[name]).astype(float) for name in ("X", "b_k"))
    X = X.reshape(4, 8)
    before, after = X @ X.T, X @ (X + b).T
    np.testing.assert_allclose(softmax(before), softmax(after))
    (scores,), (weights,) = cells["solution-bias-shown"].rows
    assert scores == pytest.approx(np.abs(before - after).max(), abs=0.006)
    assert (scores > 0.1, weights) == (True, 0)
    # A bias of the queries does change them.
    assert np.abs(softmax((X + b) @ X.T) - softmax(before)).max() > 0.01


def test_attention_alone_averages_the_tokens_away(cells):
    curves = [y for _, y in cells["solution-stacking-figure"].curves]
    alone, sharper, skip = curves
    assert alone[4] < 0.05
    assert (sharper[1:5] > alone[1:5]).all()
    assert sharper[-1] < sharper[0] / 2
    assert skip[-1] > max(0.5, sharper[-1])
    for x, _ in cells["solution-stacking-figure"].curves:
        np.testing.assert_array_equal(x, np.arange(9))


def test_diversity_is_that_of_the_formula_layer_by_layer(face, cells):
    names = cells["solution-stacking"].names
    blocks = face.lesson_blocks(names)
    assert len({weights["W_q"].tobytes() for weights in blocks}) == 8  # none twice
    start = to_numpy("start", names["start"]).astype(float)
    start = start + reference.positional_encoding(16, 64)
    shown = [y for _, y in cells["solution-stacking-figure"].curves]
    variants = [(1, False), (10, False), (1, True)]  # how sharp, and whether with skips
    for curve, (sharpness, skip) in zip(shown, variants, strict=True):
        X, expected = start, [diversity_of(start)]
        for weights in blocks:
            pooled, _ = reference_multi_head(weights, 4, sharpness * X, X, X, None)
            length = np.linalg.norm(X) / np.linalg.norm(pooled)
            X = pooled + X if skip else pooled * length
            expected.append(diversity_of(X))
        np.testing.assert_allclose(curve, expected, rtol=1e-2, atol=1e-5)


def diversity_of(X: np.ndarray) -> float:
    return np.linalg.norm(X - X.mean(axis=1, keepdims=True)) / np.linalg.norm(X)


def test_diversity_is_what_sets_the_tokens_apart(face, cells):
    diversity = cells["solution-stacking"].names["diversity"]
    X = np.random.default_rng(0).normal(size=(1, 5, 6)) + 1
    shown = diversity(face.tensor(X.astype("float32")))
    assert float(shown) == pytest.approx(diversity_of(X), rel=1e-4)


def test_without_positions_the_answer_is_the_same_in_the_mirror(face, cells):
    weights, answers = face.lesson_reader(cells["solution-mirrored"].names)
    tokens, labels = drawn(500)
    mirrored = np.where(tokens < 2, 1 - tokens, tokens)
    expected, _ = read(weights, tokens, "none")
    for each in (tokens, mirrored):
        np.testing.assert_allclose(answers(each), expected, atol=1e-4)
    assert expected.std() > 1e-3  # it is not one answer for all
    told = to_numpy(
        "mirrored", cells["solution-mirrored"].names["mirrored"](face.tensor(tokens))
    )
    np.testing.assert_array_equal(told, mirrored)
    right = [((expected > 0) == each).mean() for each in (labels, ~labels)]
    assert sum(right) == 1
    assert cells["solution-mirrored"].rows == [[0]]


def test_causal_attention_is_a_full_lower_triangle(face, cells):
    names = cells["solution-causal"].names
    weights = face.lesson_projections(names, "small_attention")
    X, lens = to_numpy("X", names["X"]), np.arange(1, 11)[None]
    expected = influence_of_attention(weights, X, lens)
    (panel,) = cells["solution-causal-map"].panels
    shown = panel.get_array()
    np.testing.assert_allclose(shown, expected / expected.max(), atol=1e-4)
    np.testing.assert_array_equal(shown > 0, np.tri(10) > 0)
    assert panel.get_array()[:, 0].argmax() == 0
    future, connected = cells["solution-causal-map"].printed.splitlines()
    assert future.endswith(": no")
    assert numbers(connected) == [55, 100]


def test_influence_fades_in_the_rnns_alone(cells):
    rnn, shrunk, attention = (y for _, y in cells["solution-fading-figure"].curves)
    factors = [np.diff(np.log(curve)) for curve in (rnn, shrunk)]
    assert max(steps.max() for steps in factors) < 0  # weaker with every step
    assert all(steps.std() < 0.35 for steps in factors)  # roughly a straight line
    without, with_factor = (np.exp(steps.mean()) for steps in factors)
    assert 0.8 * without < with_factor < without
    assert rnn[-1] < 1e-2
    assert attention.min() > 0.1


@pytest.mark.parametrize(("curve", "factor"), [(0, 1), (1, 0.8)])
def test_the_rnns_influence_is_that_of_the_chain_rule(cells, curve, factor):
    names = cells["solution-fading"].names
    W_xh, W_hh = rnns_matrices(names)
    H, slope, expected = np.zeros(16), None, []
    for x in to_numpy("X", names["X"])[0].astype(float):
        H = np.tanh(x @ W_xh + H @ (factor * W_hh))
        slope = (W_xh if slope is None else slope @ (factor * W_hh)) * (1 - H**2)
        expected.append(np.linalg.norm(slope))
    distances, shown = cells["solution-fading-figure"].curves[curve]
    np.testing.assert_array_equal(distances, np.arange(24))
    np.testing.assert_allclose(shown, np.array(expected) / expected[0], rtol=1e-3)


def test_attentions_influence_is_that_of_the_formula(face, cells):
    names = cells["solution-fading"].names
    weights = face.lesson_projections(names, "small_attention")
    expected = influence_of_attention(weights, to_numpy("X", names["X"]))[:, 0]
    _, shown = cells["solution-fading-figure"].curves[2]
    np.testing.assert_allclose(shown, expected / expected[0], rtol=1e-3)


def test_growing_gaps_cross_the_sequence_in_logarithmically_many_layers(cells):
    rows = cells["solution-dilated"].rows
    assert rows == [[5, 4, 2], [14, 13, 3], [41, 40, 4], [122, 121, 5]]


def test_one_token_at_a_time_gives_what_all_at_once_gives(face, cells):
    names = cells["solution-decoding-cost"].names
    weights = face.lesson_projections(names, "small_attention")
    tokens = to_numpy("tokens", names["tokens"]).astype(float)
    X = tokens + reference.positional_encoding(10, 16)
    expected, _ = reference_multi_head(weights, 2, X, X, X, np.arange(1, 11)[None])
    outputs = np.concatenate([to_numpy("outputs", y) for y in names["outputs"]], axis=1)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    assert numbers(cells["solution-decoding-cost"].printed.splitlines()[0]) == [0]


def test_the_cache_saves_the_projections_of_earlier_tokens(cells):
    d, rows = 16, table(cells["solution-decoding-cost"].printed.replace(",", ""))[2:]
    for n, row in zip((10, 100, 1000), rows, strict=True):
        attending = 2 * d**2 + 2 * n * d  # the query, the output, scores and average
        without, with_cache = attending + 2 * n * d**2, attending + 2 * d**2
        assert [int(each) for each in row] == [n, without, with_cache]


def test_relative_scores_depend_on_the_distance_up_to_the_tables_ends(face, cells):
    names = cells["solution-relative"].names
    X = np.tile(np.random.default_rng(0).normal(size=16), (1, 11, 1)).astype("float32")
    scores = face.lesson_relative_scores(names, X)[0]
    i, j = np.indices(scores.shape)
    rows = [scores[(i - j).clip(-3, 3) == distance] for distance in range(-3, 4)]
    for row in rows:
        np.testing.assert_allclose(row, row[0], atol=1e-4)
    assert len({round(float(row[0]), 3) for row in rows}) == 7
    (*_, at_both_places), (in_the_other_order,) = cells["solution-relative-shown"].rows
    assert (at_both_places, in_the_other_order > 0.1) == (0, True)


def test_relative_attention_is_the_formula(face, cells):
    names = cells["solution-relative-shown"].names
    weights = face.lesson_relative(names)
    assert weights["table"].shape == (7, 16)
    four = to_numpy("four", names["four"]).astype(float)

    def attend(X):
        Q, K, V = (X[0] @ weights[f"W_{i}"] for i in "qkv")
        i, j = np.indices((len(Q), len(K)))
        a = weights["table"][(i - j).clip(-3, 3) + 3]  # of the distance i - j
        return softmax(np.einsum("id,ijd->ij", Q, K + a) / 4) @ V

    Y, backwards = attend(four), attend(four[:, ::-1])[::-1]
    shown = to_numpy("Y", face.lesson_relative_output(names, names["four"]))[0]
    np.testing.assert_allclose(shown, Y, atol=1e-5)
    *_, shown = cells["solution-relative-shown"].rows
    assert_printed(shown, [np.abs(Y - backwards).max()])


def test_each_seed_is_used_once(cells):
    """JAX draws the same numbers from the same key."""
    code = "".join(cell.source for cell in cells.values())
    seeds = re.findall(r"random\.key\((\d+)\)", code)
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(
    ("cell", "xlabel", "ylabel", "scales", "names"),
    [
        (
            "slopes",
            "log2(d)",
            "Norm of the derivative",
            ("linear", "linear"),
            ["unscaled", "scaled"],
        ),
        (
            "dot-products",
            "Distance i - j",
            "Dot product",
            ("linear", "linear"),
            ["i = 20", "i = 28", "i = 36"],
        ),
        (
            "past-the-end-figure",
            "Tokens (trained on 8)",
            "Share right",
            ("linear", "linear"),
            NAMES,
        ),
        (
            "solution-stacking-figure",
            "Layers",
            "Diversity",
            ("linear", "linear"),
            ["attention alone", "queries ten times as long", "with skip connections"],
        ),
        (
            "solution-fading-figure",
            "Distance from the first token",
            "Influence",
            ("linear", "log"),
            ["RNN", "RNN, matrix times 0.8", "self-attention"],
        ),
    ],
)
def test_curves_and_axes_have_their_names(cells, cell, xlabel, ylabel, scales, names):
    (figure,) = cells[cell].figures
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == (xlabel, ylabel)
    assert (axes.get_xscale(), axes.get_yscale()) == scales
    assert cells[cell].legend == names


@pytest.mark.parametrize(
    ("cell", "ylabel", "xlabel", "titles"),
    [
        ("weights-heatmaps", "Queries", "Keys", 5),
        ("influence-heatmaps", "Output i", "Input j", ["CNN", "RNN", "Self-attention"]),
        ("encoding-heatmap", "Row (position)", "Column (encoding dimension)", []),
        ("five-back", "Query i", "Key j", []),
        ("trained-maps", "Queries", "Keys", 4),
        ("solution-causal-map", "Output i", "Input j", []),
    ],
)
def test_maps_and_their_axes_have_their_names(cells, cell, ylabel, xlabel, titles):
    """A row of maps is named on its left, a column below."""
    (figure,) = cells[cell].figures
    maps = [axes for axes in figure.axes if axes.get_images()]
    assert {axes.get_ylabel() for axes in maps} - {""} == {ylabel}
    assert {axes.get_xlabel() for axes in maps} - {""} == {xlabel}
    if isinstance(titles, int):
        titles = [f"Head {h}" for h in range(1, titles + 1)]
    assert [axes.get_title() for axes in maps[: len(titles)]] == titles
