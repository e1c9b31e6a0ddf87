"""Check the lesson's claims against NumPy: the data of figures, and every printed result.

nbval compares a notebook with its stored outputs, and cannot know whether these are right.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import pi, radians
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, read_numbers, softmax
from tests.lessons.shared_claims import (
    accuracy,
    assert_maps,
    assert_medians_with_bars,
    assert_variables,
    median_and_range,
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
PAST_THE_END = ["maps-past-the-end", "rotary-past-the-end", "alibi-past-the-end"]
VARYING_FORM = ["entries", "maps", *PAST_THE_END]
# The training steps, the texts per step, and the learning rate.
BUDGETS = {"mlx": (150, 64, 0.015), "others": (100, 256, 0.02)}

PAIRS = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)
SCHEMES = "NoPositions", "Sinusoids", "Rotary", "ALiBi", "Table", "Buckets"
NAMES = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
LENGTHS = 16, 32, 64, 128
CHANCE_ACCURACY = 0.1  # one of ten digits
# Two of 500 answers: rounding may decide between two digits that are equally likely.
TIE_TOLERANCE = 0.0041

Arrays = dict[str, Any]


# Two hands: a hand is a complex number, and a turn multiplies it by another


def turn_hand(vector: tuple[float, float], position: int) -> complex:
    return complex(*vector) * np.exp(1j * radians(30 * position))


def dot(a: complex, b: complex) -> float:
    return (a * b.conjugate()).real


def test_hands_that_turn_together_keep_their_score(cells):
    assert [*map(tuple, cells["turned-by-hand"].names["pairs"])] == [*PAIRS]
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


@pytest.mark.parametrize("n", [16, 48])
def test_answer_is_last_digit_of_letter(adapter, cells, n):
    samples = adapter.lesson_draw(cells["entries"].names, "draw_entries", 300, n)
    letters, digits, asked, answers = (array(x).astype(int) for x in samples)
    assert letters.shape == digits.shape == (300, n)
    assert asked.shape == answers.shape == (300, 1)
    assert {*letters.ravel()} == {*asked.ravel()} == {*range(6)}
    assert {*digits.ravel()} == {*range(10)}
    np.testing.assert_array_equal(
        digits[mark_last_match(letters, asked)], answers[:, 0]
    )


def test_printed_texts_have_right_answers(cells):
    lines = cells["entries"].printed.splitlines()
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
    scheme: str = "Rotary",
    stretch_method: str = "unchanged",
    halves: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the digits, and the attention weights."""
    n, d = letters.shape[1], parameters["W_q"].shape[0]
    X = parameters["letter"][letters] + parameters["digit"][digits]
    question = parameters["letter"][asked]
    if scheme == "Sinusoids":
        P = positional_encoding(n + 1, d)
        X, question = X + P[:n], question + P[n:]
    q = question @ parameters["W_q"]
    k, v = X @ parameters["W_k"], X @ parameters["W_v"]
    if scheme == "Rotary":
        omega = stretch_frequencies(n / 16)[stretch_method]
        q = rotate_pairs(q, n * omega, halves)
        k = rotate_pairs(k, np.arange(n)[:, None] * omega, halves)
    distances = n - np.arange(n)
    if scheme == "Table":
        k = (
            k
            + parameters["vectors"][
                np.minimum(distances, len(parameters["vectors"])) - 1
            ]
        )
    scores = q @ k.mT / np.sqrt(d)
    if scheme == "ALiBi":
        scores = scores - distances / 2
    if scheme == "Buckets":
        scores = scores + parameters["numbers"][[*map(expected_bucket, distances)]]
    weights = softmax(scores)
    return weights @ v @ parameters["output"] + parameters["bias"], weights


@pytest.fixture(scope="module")
def finders(adapter, cells) -> dict[str, list[Arrays]]:
    """Return the parameters of each scheme's models."""
    models = cells["train-all"].names["models"].values()
    parameters = [[*map(adapter.lesson_finder, runs)] for runs in models]
    return dict(zip(SCHEMES, parameters, strict=True))


@pytest.fixture(scope="module")
def texts(adapter, cells) -> dict[int, list[np.ndarray]]:
    """Return the letters, digits, letters asked for and answers of the test texts, by length."""
    texts = {}
    for n in LENGTHS:
        examples = adapter.lesson_arrays(cells["train"].names["tests"][n])
        texts[n] = [x.astype(int) for x in examples]
        letters, digits, asked, answers = texts[n]
        assert letters.shape == digits.shape == (500, n)
        np.testing.assert_array_equal(
            digits[mark_last_match(letters, asked)], answers[:, 0]
        )
        assert len({*map(tuple, digits)}) > 490
    return texts


def assert_accuracies(
    texts: dict[int, list[np.ndarray]],
    models: list[Arrays],
    accuracies: Any,
    run: Callable[..., tuple[np.ndarray, np.ndarray]],
    lengths: Sequence[int] = LENGTHS,
) -> None:
    """Check each model's accuracy at each length, and that the models differ.

    ``run`` computes scores from a model's parameters and a text.
    """
    assert len({parameters["digit"][0, 0] for parameters in models}) == 5
    for parameters, row in zip(models, accuracies, strict=True):
        for n, actual in zip(lengths, row, strict=True):
            *inputs, answers = texts[n]
            scores = run_in_batches(partial(run, parameters), *inputs)
            expected = accuracy(scores.argmax(axis=-1), answers)
            assert float(actual) == pytest.approx(expected, abs=TIE_TOLERANCE)


def assert_table(cell: Any, results: Any, names: list[str]) -> np.ndarray:
    """Check each row's name, and its median and range over the seeds at each length.

    Returns medians, lowest and highest values, of shape (rows, lengths, 3).
    """
    expected = median_and_range(results, axis=1)
    lines = [line.rpartition(")") for line in cell.printed.splitlines() if ")" in line]
    printed = np.abs([read_numbers(values) for values, _, _ in lines])  # "-" is no sign
    assert_printed(printed.reshape(expected.shape), expected)
    assert [name.strip() for _, _, name in lines] == names
    return expected


def test_models_differ_only_in_scheme(cells, finders, texts):
    names = cells["train-all"].names
    assert tuple(names["lengths"]) == LENGTHS
    results = zip(finders.items(), names["accuracies"], strict=True)
    for (scheme, models), accuracies in results:
        run = partial(run_finder, scheme=scheme)
        assert_accuracies(texts, models, accuracies, run)
    sizes = [sum(x.size for x in model.values()) for model, *_ in finders.values()]
    assert [size - sizes[0] for size in sizes] == [0, 0, 0, 0, 16 * 32, 8]


def test_training_has_the_stated_budget_and_length(assert_budget):
    assert_budget("train-all", "draw_entries", length=16)


def test_bias_of_distance_is_learned_for_its_bucket(adapter, cells, finders):
    *_, (model, *_) = cells["train-all"].names["models"].values()
    bias = adapter.lesson_bias(model, np.arange(1, 41)).ravel()
    buckets = [*map(expected_bucket, range(1, 41))]
    expected = finders["Buckets"][0]["numbers"][buckets]
    np.testing.assert_allclose(bias, expected, atol=1e-6)


def test_table_and_figure_show_medians_and_ranges(cells):
    cell = cells["shares"]
    accuracies = cell.names["accuracies"]
    assert cell.rows[0] == [*LENGTHS]
    xlabel = "Entries (trained on 16)"
    assert_medians_with_bars(cell, accuracies[1:], LENGTHS, 1, NAMES[1:], xlabel)
    rows = assert_table(cell, accuracies, NAMES)
    none, sinusoids, rotary, alibi, table, buckets = rows[..., 0]
    assert none[0] == pytest.approx(0.47, abs=0.08)  # "about half"
    assert rows[1:, 0, 0].min() >= 0.9  # "well"
    _, lowest, highest = rows[0, 0]
    assert lowest > CHANCE_ACCURACY
    assert rows[1:, 0, 1].min() > highest + 0.2
    assert (sinusoids[1:] < 0.5).all()
    assert sinusoids[3] < none[3] + 0.05
    assert (np.diff(rotary) < 0).all()
    assert (rotary[1:] > sinusoids[1:] + 0.2).all()
    assert alibi.min() > alibi[0] - 0.08  # "hardly notices"
    assert (np.diff(buckets) < 0).all()
    assert none[3] < min(rotary[3], buckets[3])
    assert max(rotary[3], buckets[3]) < table[3] < alibi[3]


# Where they look


@pytest.mark.parametrize(
    ("names", "n", "ylabel"),
    [(["maps"], 16, "Letter asked for"), (PAST_THE_END, 32, "Letter")],
)
def test_maps_match_three_models(cells, finders, names, n, ylabel):
    letters, digits = cells[names[0]].printed.split()
    assert (len(letters), len(digits), {*letters}) == (n, n, {*"abcdef"})
    text = [[*map("abcdef".index, letters)]], [[*map(int, digits)]], [range(6)]
    schemes = ["Sinusoids", "Rotary", "ALiBi"]
    expected = []
    for scheme in schemes:
        model = finders[scheme][0]
        _, weights = run_finder(model, *map(np.array, text), scheme=scheme)
        expected.append(weights[0])
    last = [letters.rindex(letter) for letter in "abcdef"]
    hits = [(weights.argmax(axis=1) == last).sum() for weights in expected]
    assert hits[0] < hits[2] if n == 32 else sum(hits) >= 15  # of eighteen rows
    count = len(schemes) // len(names)  # maps per cell
    for i, name in enumerate(names):
        shown = slice(i * count, (i + 1) * count)
        axes, titles = ("Entries", ylabel), schemes[shown]
        assert_maps(cells[name], expected[shown], axes, titles, atol=2e-3)


def test_weights_on_letter_and_its_last_entry(cells, finders, texts):
    cell = cells["weight-shown"]
    letter_weights = cell.names["letter_weights"]
    for n in (16, 32):
        letters, digits, asked, _ = texts[n]
        masks = letters == asked, mark_last_match(letters, asked)
        results = zip(finders.items(), letter_weights[n], strict=True)
        for (scheme, models), scheme_weights in results:
            for parameters, actual in zip(models, scheme_weights, strict=True):
                inputs = letters, digits, asked
                _, weights = run_finder(parameters, *inputs, scheme=scheme)
                expected = [(weights[:, 0] * mask).sum(axis=1).mean() for mask in masks]
                np.testing.assert_allclose(
                    to_floats(actual), expected, atol=TIE_TOLERANCE
                )
    assert (cell.rows[0][0], cell.rows[7][0]) == (16, 32)
    rows = assert_table(cell, [*letter_weights[16], *letter_weights[32]], 2 * NAMES)
    short, long = np.split(rows[..., 0], 2)  # texts of 16 and of 32 entries
    assert (short[1] > [0.95, 0.8]).all()
    _, sinusoids, _, alibi, *_ = long
    assert sinusoids[0] > 0.95  # nearly all
    assert sinusoids[1] == pytest.approx(0.25, abs=0.15)  # about a quarter
    assert alibi[1] > 0.6


# Longer than trained


def stretch_frequencies(factor: float) -> dict[str, np.ndarray]:
    """Return the 16 frequencies for texts longer by this factor, for each method of stretching them."""
    omega = rope_frequencies(32)
    turns = 16 * omega / (2 * pi)
    ramp = np.interp(turns, [1 / 4, 2], [0, 1])
    return {
        "unchanged": omega,
        "linear": omega / factor,
        "larger_base": rope_frequencies(32, 10000 * factor ** (32 / 30)),
        "by_parts": ramp * omega + (1 - ramp) * omega / factor,
    }


@pytest.mark.parametrize("factor", [2.0, 4.0, 8.0])
def test_frequencies_are_stretched_in_four_ways(adapter, cells, factor):
    omega = adapter.tensor(rope_frequencies(32).astype("float32"))
    for method, expected in stretch_frequencies(factor).items():
        actual = array(cells["stretch"].names[method](omega, factor))
        np.testing.assert_allclose(actual, expected, rtol=1e-4)
    slowed = stretch_frequencies(factor)["larger_base"] / rope_frequencies(32)
    assert (slowed[0], slowed[-1]) == (1, pytest.approx(1 / factor))


def test_printed_wavelengths(cells):
    wavelengths = 2 * pi / np.array([*stretch_frequencies(4).values()])
    pairs, turns, *printed = np.transpose(cells["wavelengths"].rows[1:])
    assert pairs.tolist() == [0, 1, 2, 3, 4, 6, 9, 12, 15]
    expected = wavelengths[:, pairs.astype(int)]
    assert_printed(turns, 16 / expected[0], 3)
    np.testing.assert_allclose(printed, expected, rtol=1e-5, atol=0.051)


def test_accuracies_with_stretched_frequencies(cells, finders, texts):
    results = cells["stretched"].names["stretched_accuracies"]
    methods = [*stretch_frequencies(1)]
    for method, accuracies in zip(methods, results, strict=True):
        run = partial(run_finder, stretch_method=method)
        assert_accuracies(texts, finders["Rotary"], accuracies, run, LENGTHS[1:])
    cell, names = cells["stretched-shares"], [x.replace("_", " ") for x in methods]
    unchanged, *changed = assert_table(cell, results, names)[..., 0]
    assert cell.rows[0] == [*LENGTHS[1:]]
    for medians in changed:
        assert (medians[:2] > unchanged[:2]).all()
    linear, larger_base, by_parts = changed
    assert by_parts[2] > max(unchanged[2], linear[2], larger_base[2])


def test_models_get_their_frequencies_back(cells, finders, texts):
    names = cells["stretched"].names
    _, _, rotary, *_ = names["models"].values()
    accuracies = [[names["accuracy"](model, 32)] for model in rotary]
    assert_accuracies(texts, finders["Rotary"], accuracies, run_finder, [32])


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


def test_reordered_weights_fit_the_other_layout(adapter, cells, finders, texts):
    cell, names = cells["solution-layouts-shown"], cells["solution-layouts-shown"].names
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    trained = finders["Rotary"]
    reordered = [
        model | {name: model[name][:, order] for name in ("W_q", "W_k")}
        for model in trained
    ]
    _, _, rotary, *_ = names["models"].values()
    # Compare weights too: with the pairs' halves exchanged, accuracies would be nearly as high.
    for reorder, expected in ((False, trained), (True, reordered)):
        for model, weights in zip(rotary, expected, strict=True):
            converted = names["convert_to_halves"](model, reorder)
            names["accuracy"](converted, 16)  # creates the weights in Gluon
            np.testing.assert_equal(adapter.lesson_finder(converted), weights)
    models, halves = (trained, trained, reordered), (False, True, True)
    results = names["layout_accuracies"]
    for parameters, layout, accuracies in zip(models, halves, results, strict=True):
        run = partial(run_finder, halves=layout)
        assert_accuracies(texts, parameters, accuracies, run, [16])
    labels = ["as trained", "in halves", "in halves, reordered"]
    as_trained, in_halves, in_order = assert_table(cell, results, labels)[:, 0, 0]
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


def test_printed_accuracies_of_two_causal_layers(adapter, cells, texts):
    cell = cells["solution-two-layers-shown"]
    accuracies = cell.names["two_layer_accuracies"]
    models = []
    for model in cell.names["two_layers"]:
        tables, layers = adapter.lesson_layers(model, 2, ("letter", "digit"))
        models.append(tables | {"layers": layers})
    assert_accuracies(texts, models, accuracies, run_two_layers)
    (two_layers,) = assert_table(cell, [accuracies], ["two layers"])[..., 0]
    one_layer = median_and_range(cells["shares"].names["accuracies"][0], axis=0)
    assert two_layers[0] > one_layer[0, 0] + 0.2
    assert (np.diff(two_layers) < 0).all()
