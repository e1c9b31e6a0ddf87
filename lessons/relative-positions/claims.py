"""What the lesson claims, held to the reference: figures by their data, and every printed result.

nbval compares a notebook with what was stored, and so cannot know that what was stored is right.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import pi, radians
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, numbers, softmax
from tests.lessons.shared_claims import (
    assert_maps,
    assert_medians_with_bars,
    assert_variables,
    floats,
    frequencies,
    in_parts,
    median_and_range,
    share_right,
    turned,
)
from tests.shim.reference import positional_encoding

# What does not depend on random numbers is the same in every framework, to the last digit.
DETERMINED = [
    "turned-by-hand",
    "four-terms",
    "slopes",
    "clipped",
    "bucket",
    "mask-alone",
    "wavelengths",
    "solution-untouched",
]
# Letters and digits are drawn.
PAST_THE_END = ["maps-past-the-end", "rotary-past-the-end", "alibi-past-the-end"]
IN_ANOTHER_FORM = ["entries", "maps", *PAST_THE_END]
# Of training: the steps, the texts in each, and the rate.
BUDGETS = {"mlx": (150, 64, 0.015), "others": (100, 256, 0.02)}

PAIRS = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)
SCHEMES = "NoPositions", "Sinusoids", "Rotary", "ALiBi", "Table", "Buckets"
NAMES = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
LENGTHS = 16, 32, 64, 128
CHANCE = 0.1  # of ten digits
NEARLY_NONE = 0.0041  # of 500 answers: some may be as good as equally likely

Arrays = dict[str, Any]


# Two hands. A pair of numbers is a complex one, and to turn it is to multiply.


def hand(vector: tuple[float, float], position: int) -> complex:
    return complex(*vector) * np.exp(1j * radians(30 * position))


def dot(a: complex, b: complex) -> float:
    return (a * b.conjugate()).real


def test_two_hands_that_turn_together_keep_their_score(cells):
    assert [*map(tuple, cells["turned-by-hand"].names["pairs"])] == [*PAIRS]
    for row, (i, j) in zip(cells["turned-by-hand"].rows, PAIRS, strict=True):
        q, k = hand((1, 2), i), hand((2, 2), j)
        assert_printed(row, [i, j, q.real, q.imag, k.real, k.imag, dot(q, k)])


def test_any_vector_is_turned_by_30_degrees_for_each_position(adapter, cells):
    turn = cells["turn"].names["turn"]
    for x, y, position in ((1, 0, 3), (3, -2, 1), (0.5, 4, 7), (2, 1, -5)):
        found = array(
            turn(adapter.tensor(np.array([x, y], adapter.HAND_DTYPE)), position)
        )
        expected = hand((x, y), position)
        np.testing.assert_allclose(found, [expected.real, expected.imag], atol=1e-5)


def test_what_is_added_makes_four_terms(cells):
    q, k = complex(1, 2), complex(2, 2)
    for row, (i, j) in zip(cells["four-terms"].rows, PAIRS, strict=True):
        p_i, p_j = hand((1, 0), i), hand((1, 0), j)
        terms = dot(q, k), dot(q, p_j), dot(p_i, k), dot(p_i, p_j)
        assert_printed(row, [i, j, *terms, sum(terms)])
        assert sum(terms) == pytest.approx(dot(q + p_i, k + p_j))


# Rotary position embedding


def test_frequencies_fall_from_one_by_the_same_factor(cells):
    for d, base in ((8, 10000), (32, 10000), (64, 500)):
        found = array(cells["rotate"].names["frequencies"](d, base))
        np.testing.assert_allclose(found, frequencies(d, base), rtol=1e-5)


@pytest.mark.parametrize("cell", ["rotate", "rotate-halves"])
def test_pairs_are_turned_by_position_times_frequency(adapter, cells, cell):
    rotate = cells[cell].names[cell.replace("-", "_")]
    rng = np.random.default_rng(0)
    for shape, start in (((5, 8), 0), ((3, 7, 12), 4), ((2, 1, 4), 20)):
        X = rng.normal(size=shape).astype("float32")
        positions = np.arange(start, start + shape[-2])
        omega = frequencies(shape[-1], 100).astype("float32")
        found = array(rotate(*map(adapter.tensor, (X, positions, omega))))
        angles, halves = positions[:, None] * omega, cell == "rotate-halves"
        expected = turned(X, angles, halves)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def spread_by_hand(scores: np.ndarray) -> float:
    n = len(scores)
    return max(np.ptp(np.diagonal(scores, offset)) for offset in range(1 - n, n))


def test_the_spread_is_the_most_that_a_diagonal_differs_by(adapter, cells):
    spread = cells["spread"].names["spread"]
    drawn = np.random.default_rng(0).normal(size=(9, 9)).astype("float32")
    for scores in (drawn, drawn + 3 * np.eye(9, k=-8, dtype="float32"), drawn.T):
        found = float(array(spread(adapter.tensor(scores))))
        assert found == pytest.approx(spread_by_hand(scores), rel=1e-5)
    i, j = np.indices((9, 9))
    assert float(array(spread(adapter.tensor(np.sin(i - j).astype("float32"))))) == 0


def turned_everywhere(cells: Any, halves: bool = False) -> list[np.ndarray]:
    """The lesson's one query, and its one key, at each of 40 positions."""
    names = cells["rotary-check"].names
    vectors = [array(names[name]).reshape(1, 8) for name in ("query", "key")]
    angles = np.arange(40)[:, None] * frequencies(8)
    return [turned(np.tile(vector, (40, 1)), angles, halves) for vector in vectors]


def test_the_same_query_and_key_have_one_score_at_one_distance(cells):
    names = cells["rotary-check"].names
    q, k = turned_everywhere(cells)
    scores = q @ k.T
    assert_variables(names, q=q, k=k, by_layer=q, scores=scores, atol=1e-4)
    assert spread_by_hand(scores) < 1e-9
    (low, high), *rest = cells["rotary-check"].rows
    assert_printed([low, high], [scores.min(), scores.max()])
    assert (high - low > 2, rest) == (True, [[0], [0], [0]])
    assert names["n"] == 40


def test_one_layout_is_the_other_in_another_order(cells):
    names = cells["layouts"].names
    X, order = array(names["X"]), array(names["order"]).astype(int)
    n, d = X.shape
    assert order.tolist() == [*range(0, d, 2), *range(1, d, 2)]
    angles = np.arange(n)[:, None] * frequencies(d)
    neighbours, halves = turned(X, angles), turned(X[:, order], angles, halves=True)
    np.testing.assert_allclose(neighbours[:, order], halves, atol=1e-12)
    expected = {"neighbours": neighbours, "halves": halves, "by_layer": halves}
    assert_variables(names, **expected, atol=1e-4)
    assert cells["layouts"].rows == [[0], [0]]


def test_mixed_layouts_make_scores_that_depend_on_more_than_distance(cells):
    q, k = turned_everywhere(cells)
    q_halves, k_halves = turned_everywhere(cells, halves=True)
    pairs = (q, k), (q_halves, k_halves), (q, k_halves)
    shown, expected = cells["mixed"].rows, [[spread_by_hand(a @ b.T)] for a, b in pairs]
    np.testing.assert_allclose(shown, expected, atol=2e-4)
    assert_variables(cells["mixed"].names, q_halves=q_halves, atol=1e-4)
    assert (*shown[0], *shown[1], shown[2][0] > 1) == (0, 0, True)


# Added to the scores


def test_each_heads_slope_is_half_of_the_one_before(cells):
    slopes = [2.0 ** -(head + 1) for head in range(8)]
    np.testing.assert_allclose(array(cells["slopes"].names["slopes"]), slopes)
    of_slopes = [each for slope in slopes for each in (1, 1 / slope)]
    assert cells["slopes"].rows == [of_slopes, [0]]


def test_without_content_each_step_back_costs_the_same_factor(cells):
    cell = cells["alibi-map"]
    i, j = np.indices((12, 12))
    costs = [(i - j) / 2 ** (head + 1) for head in range(8)]  # also of heads not drawn
    bias = array(cell.names["bias"]).reshape(8, 12, 12)
    np.testing.assert_allclose(bias, -np.array(costs))
    expected = [softmax(np.where(j <= i, -costs[h], -np.inf)) for h in (0, 2, 6)]
    titles = ["Slope 1/2", "Slope 1/8", "Slope 1/128"]
    assert_maps(cell, expected, ("Keys", "Queries"), titles)
    assert_printed(cell.rows[0], expected[0][-1, -4:], 3)


def test_distances_are_clipped_on_both_sides(cells):
    i, j = np.indices((6, 6))
    assert cells["clipped"].rows == np.clip(i - j, -3, 3).tolist()


def bucket_by_hand(distance: int, count: int = 8, far: int = 16) -> int:
    """By the least distance of each bucket: those of the far half grow by one factor."""
    near = count // 2
    growth = (far / near) ** (1 / (count - near))
    starts = [*range(near), *(near * growth**each for each in range(count - near))]
    return sum(distance >= start - 1e-9 for start in starts) - 1


@pytest.mark.parametrize(("count", "far"), [(8, 16), (16, 64), (32, 128)])
def test_far_distances_share_ever_wider_buckets(adapter, cells, count, far):
    asked = [(distance, count, far) for distance in range(2 * far)]
    found = adapter.lesson_map(cells["bucket"].names, "bucket", asked)
    assert found == [bucket_by_hand(*each) for each in asked]


def test_the_buckets_of_the_first_distances_are_printed(cells):
    distances = [*range(1, 21)]
    buckets = [*map(bucket_by_hand, distances)]
    assert cells["bucket"].rows == [distances, buckets]
    assert buckets[15:] == [7] * 5


def test_a_causal_mask_alone_tells_how_much_came_before(cells):
    without, causal = cells["mask-alone"].rows
    assert without == [1 / 8] * 8
    assert_printed(causal, 1 / np.arange(1, 9), 3)


# One task, six schemes


def last_asked(letters: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Where the letter asked for stands last."""
    has_it = letters == asked
    return has_it & (np.cumsum(has_it[:, ::-1], axis=1)[:, ::-1] == 1)


@pytest.mark.parametrize("n", [16, 48])
def test_the_answer_is_the_last_digit_of_the_letter(adapter, cells, n):
    made = adapter.lesson_draw(cells["entries"].names, "entries", 300, n)
    letters, digits, asked, answers = (array(each).astype(int) for each in made)
    assert letters.shape == digits.shape == (300, n)
    assert asked.shape == answers.shape == (300, 1)
    assert {*letters.ravel()} == {*asked.ravel()} == {*range(6)}
    assert {*digits.ravel()} == {*range(10)}
    np.testing.assert_array_equal(digits[last_asked(letters, asked)], answers[:, 0])


def test_the_texts_shown_are_answered_right(cells):
    lines = cells["entries"].printed.splitlines()
    assert len(lines) == 3
    for line in lines:
        *entries, asked, answer = line.split()
        assert len(entries) == 16
        last = {entry[0]: entry[1:] for entry in entries}
        assert last[asked.removesuffix("?")] == answer


def finder_by_hand(
    its: Arrays,
    letters: np.ndarray,
    digits: np.ndarray,
    asked: np.ndarray,
    *,
    scheme: str = "Rotary",
    way: str = "unchanged",
    halves: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """What a model makes of its parameters: the scores of the digits, and its weights."""
    n, d = letters.shape[1], its["W_q"].shape[0]
    X, question = its["letter"][letters] + its["digit"][digits], its["letter"][asked]
    if scheme == "Sinusoids":
        P = positional_encoding(n + 1, d)
        X, question = X + P[:n], question + P[n:]
    q, k, v = question @ its["W_q"], X @ its["W_k"], X @ its["W_v"]
    if scheme == "Rotary":
        omega = ways(n / 16)[way]
        q = turned(q, n * omega, halves)
        k = turned(k, np.arange(n)[:, None] * omega, halves)
    distances = n - np.arange(n)
    if scheme == "Table":
        k = k + its["vectors"][np.minimum(distances, len(its["vectors"])) - 1]
    scores = q @ k.mT / np.sqrt(d)
    if scheme == "ALiBi":
        scores = scores - distances / 2
    if scheme == "Buckets":
        scores = scores + its["numbers"][[*map(bucket_by_hand, distances)]]
    weights = softmax(scores)
    return weights @ v @ its["output"] + its["bias"], weights


@pytest.fixture(scope="module")
def finders(adapter, cells) -> dict[str, list[Arrays]]:
    """What the models of each scheme have learned."""
    models = cells["train-all"].names["models"].values()
    learned = [[*map(adapter.lesson_finder, of_scheme)] for of_scheme in models]
    return dict(zip(SCHEMES, learned, strict=True))


@pytest.fixture(scope="module")
def tests(adapter, cells) -> dict[int, list[np.ndarray]]:
    """The texts that all models are tested on: letters, digits, what is asked, the answers, by the number of entries."""
    drawn, tests = cells["train"].names["tests"], {}
    for n in LENGTHS:
        tests[n] = [each.astype(int) for each in adapter.lesson_arrays(drawn[n])]
        letters, digits, asked, answers = tests[n]
        assert letters.shape == digits.shape == (500, n)
        np.testing.assert_array_equal(digits[last_asked(letters, asked)], answers[:, 0])
        assert len({*map(tuple, digits)}) > 490
    return tests


def assert_shares(
    tests: dict[int, list[np.ndarray]],
    models: list[Arrays],
    found: Any,
    by_hand: Callable[..., tuple[np.ndarray, np.ndarray]],
    lengths: Sequence[int] = LENGTHS,
) -> None:
    """What is found of each model at each length, by what its parameters answer; each has a seed of its own."""
    assert len({its["digit"][0, 0] for its in models}) == 5
    for its, shares in zip(models, found, strict=True):
        for n, share in zip(lengths, shares, strict=True):
            *given, answers = tests[n]
            said = in_parts(lambda *texts, its=its: by_hand(its, *texts)[0], *given)
            expected = share_right(said.argmax(axis=-1), answers)
            assert float(share) == pytest.approx(expected, abs=NEARLY_NONE)


def assert_table(cell: Any, shares: Any, names: list[str]) -> np.ndarray:
    """In each row the medians of the seeds at each length, the lowest and highest, and a name: (rows, lengths, 3)."""
    expected = median_and_range(shares, axis=1)
    lines = [line.rpartition(")") for line in cell.printed.splitlines() if ")" in line]
    shown = np.abs([numbers(spreads) for spreads, _, _ in lines])
    assert_printed(shown.reshape(expected.shape), expected)
    assert [name.strip() for _, _, name in lines] == names
    return expected


def test_shares_are_those_of_the_models_which_differ_in_their_scheme_alone(
    cells, finders, tests
):
    names = cells["train-all"].names
    assert tuple(names["lengths"]) == LENGTHS
    for (scheme, models), found in zip(finders.items(), names["shares"], strict=True):
        assert_shares(tests, models, found, partial(finder_by_hand, scheme=scheme))
    sizes = [sum(each.size for each in its.values()) for its, *_ in finders.values()]
    assert [size - sizes[0] for size in sizes] == [0, 0, 0, 0, 16 * 32, 8]


def test_models_are_trained_for_so_many_steps_on_sixteen_entries(assert_trained_on):
    assert_trained_on("train-all", "entries", 16)


def test_buckets_add_the_number_of_each_distance(adapter, cells, finders):
    *_, (model, *_) = cells["train-all"].names["models"].values()
    found = adapter.lesson_bias(model, np.arange(1, 41)).ravel()
    expected = finders["Buckets"][0]["numbers"][[*map(bucket_by_hand, range(1, 41))]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_table_and_the_figure_have_medians_and_ranges_as_told(cells):
    cell = cells["shares"]
    shares = cell.names["shares"]
    assert cell.rows[0] == [*LENGTHS]
    across = "Entries (trained on 16)"
    assert_medians_with_bars(cell, shares[1:], LENGTHS, 1, NAMES[1:], across)
    spreads = assert_table(cell, shares, NAMES)
    none, sinusoids, rotary, alibi, table, buckets = spreads[..., 0]
    assert none[0] == pytest.approx(0.47, abs=0.08)  # about half
    assert spreads[1:, 0, 0].min() >= 0.9  # well
    _, lowest, highest = spreads[0, 0]
    assert lowest > CHANCE
    assert spreads[1:, 0, 1].min() > highest + 0.2
    assert (sinusoids[1:] < 0.5).all()
    assert sinusoids[3] < none[3] + 0.05
    assert (np.diff(rotary) < 0).all()
    assert (rotary[1:] > sinusoids[1:] + 0.2).all()
    assert alibi.min() > alibi[0] - 0.08  # hardly notices
    assert (np.diff(buckets) < 0).all()
    assert none[3] < min(rotary[3], buckets[3])
    assert max(rotary[3], buckets[3]) < table[3] < alibi[3]


# Where they look


@pytest.mark.parametrize(
    ("names", "n", "down"),
    [(["maps"], 16, "Letter asked for"), (PAST_THE_END, 32, "Letter")],
)
def test_maps_are_those_of_three_models(cells, finders, names, n, down):
    letters, digits = cells[names[0]].printed.split()
    assert (len(letters), len(digits), {*letters}) == (n, n, {*"abcdef"})
    text = [[*map("abcdef".index, letters)]], [[*map(int, digits)]], [range(6)]
    schemes = ["Sinusoids", "Rotary", "ALiBi"]
    expected = [
        finder_by_hand(finders[scheme][0], *map(np.array, text), scheme=scheme)[1][0]
        for scheme in schemes
    ]
    last = [letters.rindex(letter) for letter in "abcdef"]
    hits = [(weights.argmax(axis=1) == last).sum() for weights in expected]
    assert sum(hits) >= 15 if n == 16 else hits[0] < hits[2]  # of eighteen rows
    of_cells = (np.split(np.array(each), len(names)) for each in (expected, schemes))
    for name, maps, titles in zip(names, *of_cells, strict=True):
        assert_maps(cells[name], maps, ("Entries", down), titles.tolist(), atol=2e-3)


def test_weight_on_the_letter_and_on_its_last_entry(cells, finders, tests):
    cell = cells["weight-shown"]
    weight = cell.names["weight"]
    for n in (16, 32):
        letters, digits, asked, _ = tests[n]
        where = letters == asked, last_asked(letters, asked)
        for (scheme, models), found in zip(finders.items(), weight[n], strict=True):
            for its, shares in zip(models, found, strict=True):
                _, weights = finder_by_hand(its, letters, digits, asked, scheme=scheme)
                expected = [(weights[:, 0] * each).sum(axis=1).mean() for each in where]
                np.testing.assert_allclose(floats(shares), expected, atol=NEARLY_NONE)
    assert (cell.rows[0][0], cell.rows[7][0]) == (16, 32)
    spreads = assert_table(cell, [*weight[16], *weight[32]], 2 * NAMES)
    (_, short, *_), (_, sinusoids, _, alibi, *_) = np.split(spreads[..., 0], 2)
    assert short[0] > 0.95
    assert short[1] > 0.8
    assert sinusoids[0] > 0.95  # nearly all
    assert sinusoids[1] == pytest.approx(0.25, abs=0.15)  # about a quarter
    assert alibi[1] > 0.6


# Longer than trained


def ways(factor: float) -> dict[str, np.ndarray]:
    """The frequencies of 16 pairs, changed for texts so many times as long."""
    omega = frequencies(32)
    turns = 16 * omega / (2 * pi)
    kept = np.interp(turns, [1 / 4, 2], [0, 1])
    return {
        "unchanged": omega,
        "linear": omega / factor,
        "larger_base": frequencies(32, 10000 * factor ** (32 / 30)),
        "by_parts": kept * omega + (1 - kept) * omega / factor,
    }


@pytest.mark.parametrize("factor", [2.0, 4.0, 8.0])
def test_frequencies_are_changed_in_four_ways(adapter, cells, factor):
    omega = adapter.tensor(frequencies(32).astype("float32"))
    for way, expected in ways(factor).items():
        found = array(cells["stretch"].names[way](omega, factor))
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    slowed = ways(factor)["larger_base"] / frequencies(32)
    assert (slowed[0], slowed[-1]) == (1, pytest.approx(1 / factor))


def test_wavelengths_are_printed(cells):
    wavelengths = 2 * pi / np.array([*ways(4).values()])
    pairs, turns, *found = np.transpose(cells["wavelengths"].rows[1:])
    assert pairs.tolist() == [0, 1, 2, 3, 4, 6, 9, 12, 15]
    expected = wavelengths[:, pairs.astype(int)]
    assert_printed(turns, 16 / expected[0], 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0.051)


def test_shares_of_rotary_models_with_other_frequencies(cells, finders, tests):
    found = cells["stretched"].names["stretched"]
    for way, shares in zip(ways(1), found, strict=True):
        by_hand = partial(finder_by_hand, way=way)
        assert_shares(tests, finders["Rotary"], shares, by_hand, LENGTHS[1:])
    cell, names = cells["stretched-shares"], [way.replace("_", " ") for way in ways(1)]
    unchanged, *changed = assert_table(cell, found, names)[..., 0]
    assert cell.rows[0] == [*LENGTHS[1:]]
    for way in changed:
        assert (way[:2] > unchanged[:2]).all()
    linear, larger_base, by_parts = changed
    assert by_parts[2] > max(unchanged[2], linear[2], larger_base[2])


def test_the_models_have_their_own_frequencies_again_afterwards(cells, finders, tests):
    names = cells["stretched"].names
    _, _, rotary, *_ = names["models"].values()
    found = [[names["share_right"](model, 32)] for model in rotary]
    assert_shares(tests, finders["Rotary"], found, finder_by_hand, [32])


# Solutions


def test_the_score_is_greatest_one_place_after_the_query():
    scores = [dot(complex(1, 2), hand((2, 2), position)) for position in range(12)]
    assert np.argmax(scores) == 1
    assert_printed(scores[1], 6.20)


def test_turned_values_depend_on_where_they_stand(cells):
    names = cells["solution-values"].names
    X = array(names["X"])

    def output(shift: int, values_turn: bool = False, back: bool = False) -> np.ndarray:
        angles = (np.arange(6) + shift)[:, None] * frequencies(8)
        q = turned(X, angles)
        Y = softmax(q @ q.T / np.sqrt(8)) @ (q if values_turn else X)
        return turned(Y, -angles) if back else Y

    for shift in (0, 5):
        for how in ((False, False), (True, False), (True, True)):
            found = array(names["outputs"](shift, *how))
            np.testing.assert_allclose(found, output(shift, *how), atol=1e-4)
    change = np.abs(output(5, True) - output(0, True)).max()
    (as_they_are,), (moved,), (back,) = cells["solution-values"].rows[-3:]
    assert (as_they_are, moved > 0.5, back) == (0, True, 0)
    assert_printed(moved, change, 3)


def test_what_was_learned_in_one_layout_fits_the_other_once_reordered(
    adapter, cells, finders, tests
):
    cell, trained = cells["solution-layouts-shown"], finders["Rotary"]
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    other = [its | {W: its[W][:, order] for W in ("W_q", "W_k")} for its in trained]
    _, _, rotary, *_ = cell.names["models"].values()
    # By their weights: the pairs' halves exchanged would find nearly as much.
    for reorder, expected in ((False, trained), (True, other)):
        for model, weights in zip(rotary, expected, strict=True):
            made = cell.names["in_halves"](model, reorder)
            cell.names["share_right"](made, 16)  # Gluon's has its weights after a call
            np.testing.assert_equal(adapter.lesson_finder(made), weights)
    found, layouts = cell.names["in_layouts"], (False, True, True)
    of_layouts = zip((trained, trained, other), layouts, found, strict=True)
    for weights, halves, shares in of_layouts:
        by_hand = partial(finder_by_hand, halves=halves)
        assert_shares(tests, weights, shares, by_hand, [16])
    names = ["as trained", "in halves", "in halves, reordered"]
    as_trained, in_halves, reordered = assert_table(cell, found, names)[:, 0, 0]
    assert 0.5 < in_halves < as_trained - 0.05
    assert reordered == pytest.approx(as_trained, abs=0.03)


def test_only_distances_that_occur_have_a_gradient(cells):
    touched = array(cells["solution-untouched"].names["is_touched"]).ravel()
    assert touched.tolist() == [True] * 16 + [False] * 16
    assert cells["solution-untouched"].rows == [[*range(1, 17)]]


def two_layers_by_hand(
    its: Arrays, letters: np.ndarray, digits: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the digits, and the weights of the last layer."""
    entries = its["letter"][letters] + its["digit"][digits]
    X = np.concatenate([entries, its["letter"][asked]], axis=1)
    is_seen = np.tri(X.shape[1], dtype=bool)
    # Of the second layer the question alone, which comes last, is needed.
    for layer, rows in zip(its["layers"], (slice(None), slice(-1, None)), strict=True):
        asking = X[:, rows]
        q, k, v = asking @ layer["W_q"], X @ layer["W_k"], X @ layer["W_v"]
        scores = q @ k.mT / np.sqrt(X.shape[-1])
        weights = softmax(np.where(is_seen[rows], scores, -np.inf))
        X = asking + weights @ v @ layer["W_o"]
    return X @ its["output"] + its["bias"], weights


def test_two_causal_layers_are_right_as_often_as_is_printed(adapter, cells, tests):
    cell = cells["solution-two-layers-shown"]
    found, trained = cell.names["found"], cell.names["two_layers"]
    learned = (adapter.lesson_layers(each, 2, ("letter", "digit")) for each in trained)
    models = [its | {"layers": layers} for its, layers in learned]
    assert_shares(tests, models, found, two_layers_by_hand)
    (of_two_layers,) = assert_table(cell, [found], ["two layers"])[..., 0]
    of_one_layer = median_and_range(cells["shares"].names["shares"][0], axis=0)
    assert of_two_layers[0] > of_one_layer[0, 0] + 0.2
    assert (np.diff(of_two_layers) < 0).all()
