"""Check the lesson's claims against NumPy: the data of figures, and every printed result.

nbval compares a notebook with its stored outputs, and cannot know whether these are right.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import pi, radians
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, softmax
from tests.lessons.shared_claims import (
    accuracy,
    assert_maps,
    assert_range_table,
    assert_ranges,
    assert_variables,
    rope_frequencies,
    rotate_pairs,
    run_in_batches,
    to_floats,
)
from tests.shim.reference import positional_encoding

# Cells without random numbers have the same output in every framework, to the last digit.
DETERMINISTIC = [
    "turned-by-hand",
    "four-terms",
    "slopes",
    "clipped",
    "bucket",
    "mask-alone",
    "wavelengths",
    "solution-untouched",
]
# Each framework draws its own letters and digits.
MAPS = ["maps", "sinusoids-past-the-end", "alibi-past-the-end"]
VARYING_FORM = ["entries-shown", *MAPS]
# The training steps, the texts per step, and the learning rate.
BUDGETS = {"others": (120, 64, 0.015)}

PAIRS = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)
NAMES = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
LENGTHS = 16, 32, 64, 128
# Two of 500 answers: rounding may decide between two digits that are equally likely.
TIE_TOLERANCE = 0.0041

Arrays = dict[str, Any]


# Two hands: a hand is a complex number, and a turn multiplies it by another


def turn_hand(vector: tuple[float, float], position: int) -> complex:
    return complex(*vector) * np.exp(1j * radians(30 * position))


def dot(a: complex, b: complex) -> float:
    return (a * b.conjugate()).real


def test_hands_that_turn_together_keep_their_score(cells):
    assert [*map(tuple, cells["turned-by-hand"].names["positions_of_both"])] == [*PAIRS]
    for row, (i, j) in zip(cells["turned-by-hand"].rows, PAIRS, strict=True):
        q, k = turn_hand((1, 2), i), turn_hand((2, 2), j)
        assert_printed(row, [i, j, q.real, q.imag, k.real, k.imag, dot(q, k)])


def test_added_positions_make_four_terms(cells):
    q, k = complex(1, 2), complex(2, 2)
    for row, (i, j) in zip(cells["four-terms"].rows, PAIRS, strict=True):
        p_i, p_j = turn_hand((1, 0), i), turn_hand((1, 0), j)
        terms = dot(q, k), dot(q, p_j), dot(p_i, k), dot(p_i, p_j)
        assert_printed(row, [i, j, *terms, sum(terms)])


# Rotary position embedding


def expected_spread(scores: np.ndarray) -> float:
    """Return the largest difference between two scores at the same distance."""
    n = len(scores)
    return max(np.ptp(np.diagonal(scores, offset)) for offset in range(1 - n, n))


def rotate_to_all_positions(cells: Any, halves: bool = False) -> list[np.ndarray]:
    """Return the lesson's query and its key, each rotated to 40 positions."""
    names = cells["rotary-check"].names
    vectors = [array(names[name]).reshape(1, 8) for name in ("query", "key")]
    angles = np.arange(40)[:, None] * rope_frequencies(8)
    return [
        rotate_pairs(np.tile(vector, (40, 1)), angles, halves) for vector in vectors
    ]


def test_rotated_scores_depend_only_on_distance(cells):
    names = cells["rotary-check"].names
    q, k = rotate_to_all_positions(cells)
    scores = q @ k.T
    assert_variables(names, q=q, k=k, layer_output=q, scores=scores, atol=1e-4)
    (low, high), *rest = cells["rotary-check"].rows
    assert_printed([low, high], [scores.min(), scores.max()])
    assert high - low > 2
    assert rest == [[0], [0], [0]]
    assert names["n"] == 40


def test_layouts_differ_in_order_of_numbers(cells):
    names = cells["layouts"].names
    X = array(names["X"])
    order = array(names["order"]).astype(int)
    n, d = X.shape
    assert order.tolist() == [*range(0, d, 2), *range(1, d, 2)]
    angles = np.arange(n)[:, None] * rope_frequencies(d)
    neighbours = rotate_pairs(X, angles)
    halves = rotate_pairs(X[:, order], angles, halves=True)
    expected = {"neighbours": neighbours, "halves": halves, "layer_output": halves}
    assert_variables(names, **expected, atol=1e-4)
    assert cells["layouts"].rows == [[0], [0]]


def test_mixed_layouts_depend_on_more_than_distance(cells):
    q, k = rotate_to_all_positions(cells)
    q_halves, k_halves = rotate_to_all_positions(cells, halves=True)
    pairs = (q, k), (q_halves, k_halves), (q, k_halves)
    expected = [[expected_spread(queries @ keys.T)] for queries, keys in pairs]
    printed = cells["mixed"].rows
    np.testing.assert_allclose(printed, expected, atol=2e-4)
    assert_variables(cells["mixed"].names, q_halves=q_halves, atol=1e-4)
    assert printed[:2] == [[0], [0]]
    assert printed[2][0] > 1


# Added to the scores


def test_each_slope_is_half_of_the_one_before(cells):
    slopes = [2.0 ** -(head + 1) for head in range(8)]
    np.testing.assert_allclose(array(cells["slopes"].names["slopes"]), slopes)
    printed, difference = cells["slopes"].rows
    assert printed == [x for slope in slopes for x in (1, 1 / slope)]  # "1/2": 1, 2
    assert difference == [0]


def test_alibi_lowers_weights_by_one_factor_per_step(cells):
    cell = cells["alibi-map"]
    i, j = np.indices((12, 12))
    penalties = [(i - j) / 2 ** (head + 1) for head in range(8)]  # of all heads
    bias = array(cell.names["bias"]).reshape(8, 12, 12)
    np.testing.assert_allclose(bias, -np.array(penalties))
    expected = [softmax(np.where(j <= i, -penalties[h], -np.inf)) for h in (0, 2, 6)]
    titles = ["Slope 1/2", "Slope 1/8", "Slope 1/128"]
    assert_maps(cell, expected, ("Keys", "Queries"), titles)
    assert_printed(cell.rows[0], expected[0][-1, -4:], 3)


def test_distances_are_clipped_on_both_sides(cells):
    i, j = np.indices((6, 6))
    assert cells["clipped"].rows == np.clip(i - j, -3, 3).tolist()


def expected_bucket(distance: int) -> int:
    """Return a distance's bucket; the buckets start at 0, 1, 2, 3, 4, 5.7, 8 and 11.3."""
    starts = [0, 1, 2, 3, *(4 * (16 / 4) ** (step / 4) for step in range(4))]
    return sum(distance >= start - 1e-9 for start in starts) - 1


def test_far_distances_share_wider_buckets(cells):
    distances = [*range(1, 21)]
    buckets = [*map(expected_bucket, distances)]
    assert cells["bucket"].rows == [distances, buckets]
    assert buckets[15:] == [7] * 5


def test_causal_mask_shows_position(cells):
    without, causal = cells["mask-alone"].rows
    assert without == [1 / 8] * 8
    assert_printed(causal, 1 / np.arange(1, 9), 3)


# One task, six schemes


def mark_last_match(letters: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return a mask of each text's last entry with the letter asked for."""
    is_match = letters == asked
    return is_match & (np.cumsum(is_match[:, ::-1], axis=1)[:, ::-1] == 1)


def assert_answers(examples: list[np.ndarray], nearest: int, farthest: int) -> None:
    """Check that the answer is the letter's last digit, and every distance about equally frequent."""
    letters, digits, asked, answers = examples
    n = letters.shape[1]
    assert {*letters.ravel()} == {*asked.ravel()} == {*range(6)}
    assert {*digits.ravel()} == {*range(10)}
    is_last = mark_last_match(letters, asked)
    np.testing.assert_array_equal(digits[is_last], answers[:, 0])
    distances = n - np.argwhere(is_last)[:, 1]
    assert (distances.min(), distances.max()) == (nearest, farthest)
    middle = (nearest + farthest) / 2
    assert (distances <= middle).mean() == pytest.approx(0.5, abs=0.12)
    # Before the answer, letters are free: one in six is the one asked for.
    is_before = np.arange(n) < n - distances[:, None]
    assert (letters == asked)[is_before].mean() == pytest.approx(1 / 6, abs=0.05)


@pytest.mark.parametrize(
    ("n", "nearest", "farthest"), [(16, 1, 16), (48, 1, 16), (48, 17, 48)]
)
def test_answer_is_last_digit_of_letter(adapter, cells, n, nearest, farthest):
    names = cells["entries"].names
    samples = adapter.lesson_draw(names, "draw_entries", 400, n, nearest, farthest)
    assert_answers([array(x).astype(int) for x in samples], nearest, farthest)


def test_printed_texts_have_right_answers(cells):
    lines = cells["entries-shown"].printed.splitlines()
    assert len(lines) == 3
    for line in lines:
        *entries, asked, answer = line.split()
        assert len(entries) == 16
        last = {entry[0]: entry[1:] for entry in entries}
        assert last[asked.removesuffix("?")] == answer


def run_finder(
    parameters: Arrays,
    letters: np.ndarray,
    digits: np.ndarray,
    asked: np.ndarray,
    *,
    scheme: str = "rotary",
    slope: float = 1 / 2,
    way: str = "unchanged",
    halves: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the digits, and the attention weights."""
    n, d = letters.shape[1], parameters["W_q"].shape[0]
    X = parameters["letter"][letters] + parameters["digit"][digits]
    question = parameters["letter"][asked]
    if scheme == "sinusoids":
        P = positional_encoding(n + 1, d)
        X, question = X + P[:n], question + P[n:]
    q = question @ parameters["W_q"]
    k, v = X @ parameters["W_k"], X @ parameters["W_v"]
    if scheme == "rotary":
        omega = stretch_frequencies(n / 16)[way]
        q = rotate_pairs(q, n * omega, halves)
        k = rotate_pairs(k, np.arange(n)[:, None] * omega, halves)
    distances = n - np.arange(n)
    if scheme == "table":
        vectors = parameters["vectors"]
        k = k + vectors[np.minimum(distances, len(vectors)) - 1]
    scores = q @ k.mT / np.sqrt(d)
    if scheme == "ALiBi":
        scores = scores - slope * distances
    if scheme == "buckets":
        scores = scores + 10 * parameters["numbers"][[*map(expected_bucket, distances)]]
    weights = softmax(scores)
    return weights @ v @ parameters["output"] + parameters["bias"], weights


@pytest.fixture(scope="module")
def finders(adapter, cells) -> dict[str, list[Arrays]]:
    """Return the parameters of each scheme's models."""
    models = cells["train-all"].names["models"].values()
    parameters = [[*map(adapter.lesson_finder, runs)] for runs in models]
    return dict(zip(NAMES, parameters, strict=True))


@pytest.fixture(scope="module")
def tests(adapter, cells) -> list[dict[int, list[np.ndarray]]]:
    """Return the near and the far test texts by length: letters, digits, letters asked for, answers."""
    both = []
    for name in ("near_tests", "far_tests"):
        texts = {}
        for n, given in cells["tests"].names[name].items():
            texts[int(n)] = [x.astype(int) for x in adapter.lesson_arrays(given)]
            nearest, farthest = (1, 16) if name == "near_tests" else (17, int(n))
            assert_answers(texts[int(n)], nearest, farthest)
            letters, digits, *_ = texts[int(n)]
            assert len(letters) == len({*map(tuple, digits)}) == 500
        both.append(texts)
    assert [(*texts,) for texts in both] == [LENGTHS, LENGTHS[1:]]
    return both


def assert_accuracies(
    tests: Mapping, models: list[Arrays], accuracies: Any, run: Callable
) -> None:
    """Check each model's accuracy in each test, and that the models differ.

    ``run`` computes scores from a model's parameters and a text.
    """
    assert len({parameters["digit"][0, 0] for parameters in models}) == 5
    for parameters, row in zip(models, accuracies, strict=True):
        for (*inputs, answers), actual in zip(tests.values(), row, strict=True):
            scores = run_in_batches(partial(run, parameters), *inputs)
            expected = accuracy(scores.argmax(axis=-1), answers)
            assert float(actual) == pytest.approx(expected, abs=TIE_TOLERANCE)


def test_models_differ_only_in_scheme(cells, finders, tests):
    names = cells["train-all"].names
    for results, texts in zip((names["near"], names["far"]), tests, strict=True):
        for (scheme, models), shares in zip(finders.items(), results, strict=True):
            run = partial(run_finder, scheme=scheme)
            assert_accuracies(texts, models, shares, run)
    sizes = [sum(x.size for x in model.values()) for model, *_ in finders.values()]
    assert [size - sizes[0] for size in sizes] == [0, 0, 0, 0, 16 * 32, 8]


def test_training_has_the_stated_budget_and_length(assert_budget):
    assert_budget("train-all", "draw_entries", length=16)


def test_bias_of_distance_is_learned_for_its_bucket(adapter, cells, finders):
    *_, (model, *_) = cells["train-all"].names["models"].values()
    bias = adapter.lesson_bias(model, np.arange(1, 41)).ravel()
    buckets = [*map(expected_bucket, range(1, 41))]
    expected = 10 * finders["buckets"][0]["numbers"][buckets]
    np.testing.assert_allclose(bias, expected, atol=1e-5)


XLABEL = "Entries (trained on 16)"


def test_near_answers(cells):
    cell = cells["near-shares"]
    near = dict(zip(NAMES, cell.names["near"], strict=True))
    assert_ranges(cell, near, LENGTHS, XLABEL, "Share right, answer near")
    rows = assert_range_table(cell, near)
    assert cell.rows[0] == [*LENGTHS]
    none, sinusoids, rotary, alibi, table, buckets = rows[..., 0]
    assert none[0] == pytest.approx(2 / 3, abs=0.06)  # "two times in three"
    assert rows[1:, 0, 0].min() > 0.88  # "well"
    assert rows[1:, 0, 1].min() > rows[0, 0, 2] + 0.1
    assert alibi.min() > alibi[0] - 0.07  # "hardly notices"
    assert (sinusoids[1:] < [0.55, 0.4, 0.3]).all()
    assert (sinusoids[1:] < none[1:] + 0.1).all()  # "no better than without positions"
    assert (np.diff([rotary, table, buckets]) < 0.02).all()
    assert (alibi[1:] > table[1:]).all()
    assert table[3] > max(rotary[3], buckets[3])
    assert min(rotary[3], buckets[3]) > none[3] + 0.2


def test_far_answers(cells):
    cell = cells["far-shares"]
    far = dict(zip(NAMES, cell.names["far"], strict=True))
    assert_ranges(cell, far, LENGTHS[1:], XLABEL, "Share right, answer far")
    rows = assert_range_table(cell, far)
    assert cell.rows[0] == [*LENGTHS[1:]]
    none, sinusoids, rotary, alibi, table, buckets = rows[..., 0]
    assert (np.diff(none) < 0).all()
    assert (np.abs([table - none, buckets - none]) < 0.08).all()  # "as well as none"
    assert (np.array([rotary, alibi]) < none - 0.04).all()  # "worse than none"
    assert sinusoids[0] > rows[[0, 2, 3, 4, 5], 0, 2].max() + 0.08  # "the best at 32"


def test_steep_slope_is_near_and_flat_slope_is_far(adapter, cells, tests):
    trained = cells["slopes-trained"].names["alibi_models"]
    models = {
        name: [*map(adapter.lesson_finder, runs)] for name, runs in trained.items()
    }
    assert [*models] == ["1/2", "1/8", "1/32"]
    near, far = tests
    texts = {"16": near[16], "64, near": near[64], "64, far": far[64]}
    cell, results = cells["slopes-shown"], cells["slopes-shown"].names["slope_shares"]
    for (name, runs), slope in zip(models.items(), (1 / 2, 1 / 8, 1 / 32), strict=True):
        run = partial(run_finder, scheme="ALiBi", slope=slope)
        assert_accuracies(texts, runs, results[name], run)
    header = cell.printed.splitlines()[0]
    assert header.split() == ["slope", "16", "64,", "near", "64,", "far"]
    at_16, near_64, far_64 = assert_range_table(cell, results)[..., 0].T
    assert (np.diff(at_16) < -0.03).all()
    assert (np.diff(near_64) < -0.05).all()
    assert (np.diff(far_64) > 0.05).all()


# Where they look


def find_map_text(cell: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the letters and digits below a figure's maps."""
    labels = [label.get_text() for label in cell.panels[-1].axes.get_xticklabels()]
    letters, digits = zip(*(label.split("\n") for label in labels), strict=True)
    return np.array([[*map("abcdef".index, letters)]]), np.array([[*map(int, digits)]])


@pytest.mark.parametrize(
    ("name", "schemes", "n"),
    [
        ("maps", ["Sinusoids", "Rotary", "ALiBi"], 16),
        ("sinusoids-past-the-end", ["Sinusoids, 32 entries"], 32),
        ("alibi-past-the-end", ["ALiBi, 32 entries"], 32),
    ],
)
def test_maps_are_those_of_models_with_right_entries_framed(
    cells, finders, name, schemes, n
):
    letters, digits = find_map_text(cells[name])
    assert letters.shape == (1, n)
    asked = np.arange(6)[None]
    expected = []
    for title in schemes:
        scheme = title.removesuffix(", 32 entries").lower().replace("alibi", "ALiBi")
        model = finders[scheme][0]
        _, weights = run_finder(model, letters, digits, asked, scheme=scheme)
        expected.append(weights[0])
    marks = mark_last_match(np.tile(letters, (6, 1)), asked.T)
    assert marks.sum() == len({*letters[0]})
    framed = {"rows": "abcdef", "marks": marks}
    axes = "Entries", "Asked for"
    assert_maps(cells[name], expected, axes, schemes, atol=2e-3, **framed)
    is_hit = [marks[range(6), weights.argmax(axis=1)] for weights in expected]
    if n == 16:
        assert np.mean(is_hit) > 0.75  # "nearly every row"


def test_weights_on_letter_and_its_last_entry(cells, finders, tests):
    cell = cells["weight-shown"]
    tables = []
    for i, name in enumerate(("near_weights", "far_weights")):
        *texts, _ = tests[i][32]
        letters, _, asked = texts
        masks = letters == asked, mark_last_match(letters, asked)
        shares = dict(zip(NAMES, cell.names[name], strict=True))
        for scheme, models in finders.items():
            found = to_floats(shares[scheme])
            for parameters, actual in zip(models, found, strict=True):
                _, weights = run_finder(parameters, *texts, scheme=scheme)
                expected = [(weights[:, 0] * mask).sum(axis=1).mean() for mask in masks]
                np.testing.assert_allclose(actual, expected, atol=TIE_TOLERANCE)
        tables.append(assert_range_table(cell, shares, 6 * i)[..., 0])
    near, far = tables
    _, sinusoids, rotary, alibi, table, buckets = near
    assert near[:, 0].min() > 0.8  # "find the letter"
    assert sinusoids[0] > 0.95
    assert sinusoids[1] < 0.6 < min(rotary[1], alibi[1], table[1])
    _, sinusoids, rotary, alibi, table, buckets = far
    assert min(table[0], buckets[0]) > 0.85
    assert alibi[0] < 0.5
    assert rotary[0] < min(table[0], buckets[0]) - 0.1


# Longer than trained


def stretch_frequencies(factor: float) -> dict[str, np.ndarray]:
    """Return the 16 frequencies for texts longer by this factor, for each method of stretching them."""
    omega = rope_frequencies(32)
    turns = 16 * omega / (2 * pi)
    ramp = np.interp(turns, [1 / 4, 2], [0, 1])
    return {
        "unchanged": omega,
        "linear": omega / factor,
        "larger base": rope_frequencies(32, 10000 * factor ** (32 / 30)),
        "by parts": ramp * omega + (1 - ramp) * omega / factor,
    }


@pytest.mark.parametrize("factor", [2.0, 4.0, 8.0])
def test_frequencies_are_stretched_in_four_ways(adapter, cells, factor):
    omega = adapter.tensor(rope_frequencies(32).astype("float32"))
    ways = cells["stretch"].names["ways"]
    for way, expected in zip(ways, stretch_frequencies(factor).values(), strict=True):
        actual = array(way(omega, factor))
        np.testing.assert_allclose(actual, expected, rtol=1e-4)
    slowed = stretch_frequencies(factor)["larger base"] / rope_frequencies(32)
    assert (slowed[0], slowed[-1]) == (1, pytest.approx(1 / factor))


def test_printed_wavelengths(cells):
    wavelengths = 2 * pi / np.array([*stretch_frequencies(4).values()])
    pairs, turns, *printed = np.transpose(cells["wavelengths"].rows[1:])
    assert pairs.tolist() == [0, 1, 2, 3, 4, 6, 9, 12, 15]
    expected = wavelengths[:, pairs.astype(int)]
    assert_printed(turns, 16 / expected[0], 3)
    np.testing.assert_allclose(printed, expected, rtol=1e-5, atol=0.051)


def test_accuracies_with_stretched_frequencies(cells, finders, tests):
    cell = cells["stretched-shares"]
    names = "stretched_near", "stretched_far"
    tables = []
    for i, (name, all_texts) in enumerate(zip(names, tests, strict=True)):
        texts = {n: all_texts[n] for n in LENGTHS[1:]}
        results = dict(zip(stretch_frequencies(1), cell.names[name], strict=True))
        for way, accuracies in results.items():
            run = partial(run_finder, way=way)
            assert_accuracies(texts, finders["rotary"], accuracies, run)
        tables.append(assert_range_table(cell, results, 4 * i)[..., 0])
    near_medians, far_medians = tables
    assert cell.rows[0] == [*LENGTHS[1:]]
    for medians in tables:
        unchanged, *slower = medians
        assert (np.array(slower)[:, :2] > unchanged[:2]).all()  # "slower hands help"
    _, linear, larger_base, by_parts = far_medians
    assert (linear > by_parts).all()  # "finds far answers best"
    assert (larger_base < by_parts).all()
    unchanged, linear, _, by_parts = near_medians
    assert by_parts[2] > max(linear[2], unchanged[2])
    assert linear[2] < unchanged[2] + 0.15


def test_models_get_their_frequencies_back(cells, finders, tests, python_only):
    names = cells["stretched"].names
    _, _, rotary, *_ = names["models"].values()
    accuracies = names["accuracies"](rotary, [names["near_tests"][32]])
    assert_accuracies({32: tests[0][32]}, finders["rotary"], accuracies, run_finder)


# Solutions


def test_score_is_greatest_one_position_after_query():
    scores = [dot(complex(1, 2), turn_hand((2, 2), i)) for i in range(12)]
    assert np.argmax(scores) == 1
    assert_printed(scores[1], 6.20)


def test_turned_values_depend_on_position(cells):
    names = cells["solution-values"].names
    X = array(names["X"])

    def shifted_output(shift, turn_values=False, turn_back=False):
        angles = (np.arange(6) + shift)[:, None] * rope_frequencies(8)
        q = rotate_pairs(X, angles)
        Y = softmax(q @ q.T / np.sqrt(8)) @ (q if turn_values else X)
        return rotate_pairs(Y, -angles) if turn_back else Y

    for shift in (0, 5):
        for options in ((False, False), (True, False), (True, True)):
            actual = array(names["shifted_output"](shift, *options))
            expected = shifted_output(shift, *options)
            np.testing.assert_allclose(actual, expected, atol=1e-4)
    change = np.abs(shifted_output(5, True) - shifted_output(0, True)).max()
    (plain,), (turned,), (turned_back,) = cells["solution-values"].rows[-3:]
    assert (plain, turned_back) == (0, 0)
    assert turned > 0.5
    assert_printed(turned, change, 3)


def test_reordered_weights_fit_the_other_layout(adapter, cells, finders, tests):
    cell, names = cells["solution-layouts-shown"], cells["solution-layouts-shown"].names
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    trained = finders["rotary"]
    reordered = [
        model | {name: model[name][:, order] for name in ("W_q", "W_k")}
        for model in trained
    ]
    # Compare weights too: with the pairs' halves exchanged, accuracies would be nearly as high.
    for name, expected in (("in_halves", trained), ("in_halves_reordered", reordered)):
        for model, weights in zip(names[name], expected, strict=True):
            np.testing.assert_equal(adapter.lesson_finder(model), weights)
    models, halves = (trained, trained, reordered), (False, True, True)
    results = names["layout_accuracies"]
    for parameters, layout, accuracies in zip(models, halves, results, strict=True):
        run = partial(run_finder, halves=layout)
        assert_accuracies({16: tests[0][16]}, parameters, accuracies, run)
    labels = ["as trained", "in halves", "in halves, reordered"]
    table = assert_range_table(cell, dict(zip(labels, results, strict=True)))
    as_trained, in_halves, in_order = table[:, 0, 0]
    assert 0.5 < in_halves < as_trained - 0.05
    assert in_order == pytest.approx(as_trained, abs=0.03)


def test_only_distances_that_occur_have_a_gradient(cells):
    has_gradient = array(cells["solution-untouched"].names["has_gradient"]).ravel()
    assert has_gradient.tolist() == [True] * 16 + [False] * 16
    assert cells["solution-untouched"].rows == [[*range(1, 17)]]


def run_two_layers(
    parameters: Arrays, letters: np.ndarray, digits: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the digits, and the weights of the last layer."""
    letter, digit = parameters["letter"], parameters["digit"]
    X = np.concatenate([letter[letters] + digit[digits], letter[asked]], axis=1)
    is_visible = np.tri(X.shape[1], dtype=bool)
    # The second layer needs only the question, which comes last.
    queries = slice(None), slice(-1, None)
    for layer, rows in zip(parameters["layers"], queries, strict=True):
        q, k, v = X[:, rows] @ layer["W_q"], X @ layer["W_k"], X @ layer["W_v"]
        scores = q @ k.mT / np.sqrt(X.shape[-1])
        weights = softmax(np.where(is_visible[rows], scores, -np.inf))
        X = X[:, rows] + weights @ v @ layer["W_o"]
    return X @ parameters["output"] + parameters["bias"], weights


def test_printed_accuracies_of_two_causal_layers(adapter, cells, tests):
    cell = cells["solution-two-layers-shown"]
    accuracies = cell.names["two_layer_accuracies"]
    parts = ("first", "second"), ("letter", "digit")
    models = []
    for model in cell.names["two_layers"]:
        tables, layers = adapter.lesson_layers(model, *parts)
        models.append(tables | {"layers": layers})
    assert_accuracies(tests[0], models, accuracies, run_two_layers)
    (two_layers,) = assert_range_table(cell, {"two layers": accuracies})[..., 0]
    none = np.median(to_floats(cells["near-shares"].names["near"][0]), axis=0)
    assert two_layers[0] > none[0] + 0.08  # "helps a lot"
    assert (np.diff(two_layers) < 0).all()
