"""What the lesson claims, held to the reference: figures by their data, and every printed result.

nbval compares a notebook with what was stored, and so cannot know that what was stored is right.
"""

import re
from typing import Any

import numpy as np
import pytest

from d2l_compat._shared.arrays import to_numpy
from tests import reference
from tests.faces.cases import reference_multi_head
from tests.lessons import named, numbers, table

# What does not depend on random numbers is the same in every framework, to the last digit.
DETERMINED = [
    "shape-check",
    "by-hand",
    "weights-check",
    "influence",
    "receptive-field",
    "multiply-adds",
    "encoding-checks",
    "column-plot",
    "binary",
    "encoding-heatmap",
    "dot-products",
    "rotation",
    "solution-causal",
    "solution-dilated",
    "solution-decoding",
]
# Java shows a map in its own way; PyTorch's attention is fused, and takes a step less.
IN_ANOTHER_FORM = ["three-layers", "sequential-operations"]


def every_notebook_shows(cells: dict[str, list[str]], framework: str) -> None:
    """What depends on chance is as the text says it."""
    for line in cells["scaling"][0].splitlines():
        width, spread, scaled = numbers(line)
        assert spread == pytest.approx(width**0.5, rel=0.1)
        assert scaled == pytest.approx(1, rel=0.1)
    assert cells["three-layers"][0].count("(1, 10, 16)") == 3
    without, with_positions = numbers(cells["equivariance"][0])
    assert without == 0
    assert with_positions > 0.01
    lengths = numbers(cells["scale-and-sum"][0])
    assert lengths == pytest.approx([1, 512**0.5, 16, 768**0.5], rel=0.02)
    for n, cnn, rnn, attention in map(
        numbers, cells["sequential-operations"][0].splitlines()[1:]
    ):
        assert (cnn, rnn, attention) == (
            1,
            n,
            3 if framework == "pytorch" else 4,
        )
    example, exchanged = map(numbers, cells["solution-learned-data"][0].splitlines())
    for *tokens, label in (example, exchanged):
        assert label == (tokens.index(0) < tokens.index(1))
    assert exchanged == [1 - number if number < 2 else number for number in example]
    none, fixed, learned = numbers(cells["solution-learned-training"][0])
    assert none == 50
    assert min(fixed, learned) > 99
    # A curve's last point, and its extent: "from (0, 0.83) to (8, 0.63), values from 0.63 to 0.83."
    stacking, fading = cells["solution-stacking"][0], cells["solution-fading"][0]
    assert named(stacking) == ["attention alone", "with skip connections"]
    alone, skip = map(numbers, stacking.split("points")[1:])
    assert alone[3] == 0
    assert skip[3] > 0.5
    assert named(fading) == ["RNN", "self-attention"]
    rnn, attention = map(numbers, fading.split("points")[1:])
    assert rnn[3] == 0
    assert attention[4] > 0.1


def test_the_numbers_and_equations_of_the_text_are_those_of_the_cells(untrue):
    assert untrue == []


def test_dividing_by_the_root_keeps_the_spread_of_scores(cells):
    rows = table(cells["scaling"].printed.replace(":", "").replace(",", ""))
    assert [int(row[2]) for row in rows] == [4, 64, 1024]
    np.testing.assert_allclose([float(row[4]) for row in rows], [2, 8, 32], rtol=0.1)
    np.testing.assert_allclose([float(row[-1]) for row in rows], 1, rtol=0.1)


def test_self_attention_keeps_the_shape(cells):
    assert cells["shape-check"].value == (2, 4, 100)


def test_the_layer_computes_the_formula(face, cells):
    names = cells["by-hand"].names
    weights = face.lesson_projections(names)
    X = to_numpy("X", names["X"])
    expected, _ = reference_multi_head(weights, 5, X, X, X, np.array([3, 2]))
    np.testing.assert_allclose(to_numpy("Y", names["Y"]), expected, atol=1e-5)
    np.testing.assert_allclose(
        to_numpy("by_hand", names["by_hand"]), expected, atol=1e-5
    )
    assert cells["by-hand"].printed == "largest difference: 0.00000\n"


def test_masked_keys_get_no_weight_and_the_rest_sums_to_one(cells):
    assert (
        cells["weights-check"].printed.count("sums of weights: 1.00000 to 1.00000") == 2
    )
    assert "exactly 0: 20 of 20" in cells["weights-check"].printed
    assert "exactly 0: 40 of 40" in cells["weights-check"].printed
    panels = cells["weights-heatmaps"].panels
    assert len(panels) == 10
    for i, panel in enumerate(panels):
        shown, valid = panel.get_array(), (3, 2)[i // 5]
        assert not shown[:, valid:].any()
        np.testing.assert_allclose(shown.sum(axis=1), 1, atol=1e-6)
        assert panel.get_cmap().name == "Blues"
    titles = [
        axes.get_title() for axes in cells["weights-heatmaps"].figures[0].axes[:5]
    ]
    assert titles == [f"Head {h}" for h in range(1, 6)]


def test_order_is_seen_only_with_positions(cells):
    without, with_positions = (
        float(row[-1]) for row in table(cells["equivariance"].printed)
    )
    assert without == 0
    assert with_positions > 0.01


def rnns_matrices(names: dict[str, Any]) -> list[np.ndarray]:
    """W_xh and W_hh, to be multiplied from the right."""
    matrices = []
    for name in ("W_xh", "W_hh"):
        W = names[name]  # Gluon's are layers
        W = to_numpy(name, W.weight.data().T if hasattr(W, "weight") else W)
        matrices.append(W.astype(float))
    return matrices


def test_the_rnns_matrices_are_orthogonal(cells):
    for W in rnns_matrices(cells["three-layers"].names):
        np.testing.assert_allclose(W @ W.T, np.eye(16), atol=1e-5)
    W_xh, W_hh = rnns_matrices(cells["three-layers"].names)
    assert np.abs(W_xh - W_hh).max() > 0.1


def test_the_rnn_computes_the_formula(cells):
    names = cells["three-layers"].names
    W_xh, W_hh = rnns_matrices(names)
    X = to_numpy("X", names["X"]).astype(float)
    Y = to_numpy("Y", names["rnn"](names["X"]))
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
    printed = cells["influence"].printed.splitlines()
    counts = [int(line.split(": ")[1].split()[0]) for line in printed]
    assert counts == [connected.sum() for connected in expected]


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
        slopes = (up - down).reshape(n, d, n, d) / (2 * step)
        strengths = np.linalg.norm(slopes, axis=(1, 3)).T
        np.testing.assert_allclose(
            panel.get_array(), strengths / strengths.max(), atol=0.01
        )


def test_two_convolutions_join_the_first_and_fifth_token_in_the_third_unit(cells):
    first, *depths = cells["receptive-field"].printed.splitlines()
    assert first.endswith("x_1, x_2, x_3, x_4, x_5")
    assert [line.split()[-1] for line in depths] == ["False", "False", "False", "True"]


def test_only_the_rnn_takes_more_steps_for_a_longer_sequence(face, cells):
    for n, cnn, rnn, attention in table(cells["sequential-operations"].printed)[1:]:
        assert (int(cnn), int(rnn), int(attention)) == (
            1,
            int(n),
            3 if face.FUSED else 4,
        )


def test_multiply_adds_are_those_of_the_formulas(cells):
    d, k = 16, 3
    rows = table(cells["multiply-adds"].printed.replace(",", ""))[1:]
    assert len(rows) == 5
    for n, *counts, agree in rows:
        n = int(n)
        assert [int(c) for c in counts] == [
            k * n * d**2,
            2 * n * d**2,
            4 * n * d**2 + 2 * n**2 * d,
        ]
        assert agree == "True"


@pytest.mark.parametrize(("num_hiddens", "offset"), [(32, 0), (7, 0), (32, 3), (1, 2)])
def test_the_lessons_encoding_is_the_sinusoidal_one(face, cells, num_hiddens, offset):
    layer = cells["positional-encoding"].names["PositionalEncoding"](
        num_hiddens, 0, max_len=20
    )
    zeros = np.zeros((1, 10, num_hiddens), "float32")
    shown = face.lesson_encoding(layer, zeros, offset)[0]
    expected = reference.positional_encoding(20, num_hiddens)[offset : offset + 10]
    np.testing.assert_allclose(shown, expected, atol=1e-6)


def test_the_lessons_encoding_behaves_at_its_edges(cells):
    assert cells["encoding-checks"].printed.splitlines() == [
        "one by one as all at once: True",
        "the same as the library's: True",
        "dropped or doubled in training: True",
        "trained: []  saved: []",
        "ValueError: no positions -1 to 8: there are 0 to 9",
        "ValueError: no positions 1 to 10: there are 0 to 9",
    ]


def test_embedding_and_encoding_have_comparable_lengths(cells):
    lengths = [float(row[-1]) for row in table(cells["scale-and-sum"].printed)]
    expected = [
        1,
        np.sqrt(512),
        16,
        np.sqrt(512 + 16**2),
    ]  # the two are nearly orthogonal
    np.testing.assert_allclose(lengths, expected, rtol=0.02)


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


def test_dot_products_depend_on_the_distance_alone(cells):
    distances = np.arange(-20, 21)
    frequencies = [10000 ** (-2 * j / 32) for j in range(16)]
    expected = sum(np.cos(distances * frequency) for frequency in frequencies)
    curves = cells["dot-products"].curves
    assert len(curves) == 3
    for x, y in curves:
        np.testing.assert_array_equal(x, distances)
        np.testing.assert_allclose(y, expected, atol=1e-4)
    assert [row[-1] for row in table(cells["dot-products"].printed)] == [
        "16.0000",
        "0.0000",
    ]


def test_every_pair_is_turned_onto_its_target(cells):
    *offsets, largest = table(cells["rotation"].printed)
    for row in offsets:
        delta, pairs, on_target = int(row[1].rstrip(":")), int(row[2]), row[-1]
        assert pairs == 16 * (60 - abs(delta))
        assert on_target == "True"
    assert len(offsets) == 6
    assert float(largest[-1]) < 1e-5


def test_attention_alone_averages_the_tokens_away(cells):
    alone, skip = (curve[1] for curve in cells["solution-stacking"].curves)
    assert alone[-1] < 1e-3
    assert skip[-1] > 0.5


def test_labels_tell_whether_the_zero_comes_first(cells):
    names = cells["solution-learned-training"].names
    tokens, labels = (
        to_numpy(name, names[name]) for name in ("test_tokens", "test_labels")
    )
    assert tokens.shape == (1000, 8)
    assert (np.sort(tokens)[:, :3] >= [0, 1, 2]).all()  # one 0 and one 1
    assert tokens.max() == 9
    first = (tokens == 0).argmax(axis=1) < (tokens == 1).argmax(axis=1)
    np.testing.assert_array_equal(labels, first)
    # The second half is the first with 0 and 1 exchanged.
    exchanged = np.where(tokens < 2, 1 - tokens, tokens)
    np.testing.assert_array_equal(tokens[500:], exchanged[:500])


def test_only_a_model_with_positions_learns_the_order(cells):
    right = {
        row[0]: row[1] for row in table(cells["solution-learned-training"].printed)
    }
    assert right["none:"] == "50.0%"
    assert float(right["fixed:"].rstrip("%")) > 99
    assert float(right["learned:"].rstrip("%")) > 99


def test_each_seed_is_used_once(cells):
    """JAX draws the same numbers from the same key."""
    code = "".join(cell.source for cell in cells.values())
    seeds = re.findall(r"random\.key\((\d+)\)", code)
    assert len(set(seeds)) == len(seeds)


def test_sequences_are_drawn_evenly(face, cells):
    """No number depends on another: what stands at a place says nothing of the 0's and the 1's."""
    tokens, labels = face.lesson_sequences(
        cells["solution-learned-data"].names["sequences"], 4000
    )
    assert labels.mean() == pytest.approx(0.5, abs=0.03)
    others = tokens[tokens > 1]
    shares = np.bincount(others)[2:] / len(others)
    np.testing.assert_allclose(shares, 1 / 8, atol=0.01)
    for token in (0, 1):
        np.testing.assert_allclose((tokens == token).mean(axis=0), 1 / 8, atol=0.02)
    for place in range(8):
        there = tokens[tokens[:, place] > 1, place]
        assert there.mean() == pytest.approx(5.5, abs=0.15)


def test_the_encodings_compared_are_none_the_fixed_and_a_learned_one(face, cells):
    cell = cells["solution-learned-training"]
    encodings = dict(cell.passed_through())
    assert list(encodings) == ["none", "fixed", "learned"]
    zeros = np.zeros((1, 8, 32), "float32")
    shown = face.lesson_encoding(encodings["fixed"], zeros, 0)[0]
    expected = reference.positional_encoding(8, 32)
    np.testing.assert_allclose(shown, expected, atol=1e-6)
    before, after = face.lesson_learned_table(cell.names)
    assert before.shape == after.shape == (8, 32)
    assert (before != after).any(axis=1).all(), "each position is trained"


def test_the_models_learn_from_new_sequences_and_not_from_the_tests(cells):
    """Told the contrary from the second drawing on, they are wrong on nearly all of the first."""
    cell = cells["solution-learned-training"]
    drawings = 0

    def sequences(*arguments):
        nonlocal drawings
        drawings += 1
        *keys, count = arguments  # JAX's come first
        drawn, labels = cell.names["sequences"](*keys, min(count, 120 * 128))
        return drawn, labels if drawings == 1 else 1 - labels

    printed = cell.again(
        sequences=sequences, range=lambda steps: range(min(steps, 120))
    )
    shares = [float(row[1].rstrip("%")) for row in table(printed)]
    assert shares[0] == 50
    assert max(shares[1:]) < 20


def test_causal_attention_is_a_full_lower_triangle(cells):
    (panel,) = cells["solution-causal"].panels
    np.testing.assert_array_equal(panel.get_array() > 0, np.tri(10) > 0)
    assert "influence of the future: False" in cells["solution-causal"].printed
    assert "connected: 55 of 100" in cells["solution-causal"].printed


def test_influence_fades_in_the_rnn_alone(cells):
    rnn, attention = (curve[1] for curve in cells["solution-fading"].curves)
    steps = np.diff(np.log(rnn))
    assert rnn[-1] < 1e-4
    assert steps.max() < 0  # weaker with every step
    assert attention.min() > 0.1


def test_the_rnns_influence_is_that_of_the_chain_rule(cells):
    names = cells["solution-fading"].names
    W_xh, W_hh = rnns_matrices(names)
    W_hh *= 0.8
    H, slope, expected = np.zeros(16), None, []
    for x in to_numpy("X", names["X"])[0].astype(float):
        H = np.tanh(x @ W_xh + H @ W_hh)
        slope = (W_xh if slope is None else slope @ W_hh) * (1 - H**2)
        expected.append(np.linalg.norm(slope))
    (distances, shown), _ = cells["solution-fading"].curves
    np.testing.assert_array_equal(distances, np.arange(24))
    np.testing.assert_allclose(shown, np.array(expected) / expected[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("cell", "xlabel", "ylabel", "yscale", "names"),
    [
        (
            "dot-products",
            "Distance i - j",
            "Dot product",
            "linear",
            ["i = 20", "i = 28", "i = 36"],
        ),
        (
            "solution-stacking",
            "Layers",
            "Diversity",
            "linear",
            ["attention alone", "with skip connections"],
        ),
        (
            "solution-fading",
            "Distance from the first token",
            "Influence",
            "log",
            ["RNN", "self-attention"],
        ),
    ],
)
def test_curves_and_axes_have_their_names(cells, cell, xlabel, ylabel, yscale, names):
    (figure,) = cells[cell].figures
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == (
        xlabel,
        ylabel,
        yscale,
    )
    assert cells[cell].legend == names


def test_growing_gaps_cross_the_sequence_in_logarithmically_many_layers(cells):
    rows = [
        [int(x) for x in row] for row in table(cells["solution-dilated"].printed)[1:]
    ]
    assert rows == [[5, 4, 2], [14, 13, 3], [41, 40, 4], [122, 121, 5]]


def test_one_token_at_a_time_gives_what_all_at_once_gave(cells):
    assert cells["solution-decoding"].printed == "largest difference: 0.00000\n"
