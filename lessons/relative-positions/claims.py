"""What the lesson claims, held to the reference: figures by their data, and every printed result.

nbval compares a notebook with what was stored, and so cannot know that what was stored is right.
"""

from collections.abc import Callable
from functools import partial
from math import pi, radians
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_axes, assert_printed, first_calls, softmax

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
PAST_THE_END = [
    "maps-past-the-end",
    "rotary-past-the-end",
    "alibi-past-the-end",
]
IN_ANOTHER_FORM = ["entries", "maps", *PAST_THE_END]

PAIRS = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)
SCHEMES = "NoPositions", "Sinusoids", "Rotary", "ALiBi", "Table", "Buckets"
NAMES = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
LENGTHS = 16, 32, 64, 128
CHANCE = 0.1  # of ten digits

Arrays = dict[str, Any]


# What depends on chance is as the text says it.


def test_turns_are_as_told(rows):
    (low, high), *differences = rows["rotary-check"]
    assert high - low > 2
    assert differences == [[0], [0], [0]]
    assert rows["layouts"] == [[0], [0]]
    (neighbours,), (halves,), (mixed,) = rows["mixed"]
    assert (neighbours, halves, mixed > 1) == (0, 0, True)
    (as_they_are,), (turned,), (back,) = rows["solution-values"]
    assert (as_they_are, turned > 0.5, back) == (0, True, 0)


def spreads(rows: list[list[float]], columns: int) -> np.ndarray:
    """Median, lowest and highest: shape (rows, columns, 3)."""
    found = [row for row in rows if len(row) == 3 * columns]
    return np.abs(found).reshape(len(found), columns, 3)


def assert_spreads(cell: Any, shares: Any) -> None:
    """Each row has, in each column, the median of its seeds, the lowest and the highest."""
    found = np.array([[[float(x) for x in seed] for seed in row] for row in shares])
    expected = np.stack([np.median(found, 1), found.min(1), found.max(1)], axis=-1)
    assert_printed(spreads(cell.rows, found.shape[2]), expected)


def test_shares_are_as_told(rows):
    shown = rows["shares"]
    assert shown[0] == [*LENGTHS]
    none, sinusoids, rotary, alibi, table, buckets = spreads(shown, 4)
    median, lowest = none[0, :2]
    assert median == pytest.approx(0.47, abs=0.08)  # about half
    for scheme in (sinusoids, rotary, alibi, table, buckets):
        assert scheme[0, 0] >= 0.9  # well
        assert scheme[0, 1] > none[0, 2] + 0.2
    assert (sinusoids[1:, 0] < 0.5).all()
    assert sinusoids[3, 0] < none[3, 0] + 0.05
    assert (np.diff(rotary[:, 0]) < 0).all()
    assert (rotary[1:, 0] > sinusoids[1:, 0] + 0.2).all()
    assert alibi[:, 0].min() > alibi[0, 0] - 0.08  # hardly notices
    assert (np.diff(buckets[:, 0]) < 0).all()
    assert none[3, 0] < min(rotary[3, 0], buckets[3, 0])
    assert max(rotary[3, 0], buckets[3, 0]) < table[3, 0] < alibi[3, 0]
    assert lowest > CHANCE


def test_weights_are_as_told(rows):
    shown = rows["weight-shown"]
    assert (shown[0][0], shown[7][0]) == (16, 32)
    short, long = np.split(spreads(shown, 2), 2)
    _, sinusoids, *_ = short
    assert sinusoids[0, 0] > 0.95
    assert sinusoids[1, 0] > 0.8
    _, sinusoids, _, alibi, *_ = long
    assert sinusoids[0, 0] > 0.95  # nearly all
    assert sinusoids[1, 0] == pytest.approx(0.25, abs=0.15)  # about a quarter
    assert alibi[1, 0] > 0.6


def test_longer_texts_are_as_told(rows):
    assert rows["stretched-shares"][0] == [*LENGTHS[1:]]
    unchanged, *ways = spreads(rows["stretched-shares"], 3)[..., 0]
    for way in ways:
        assert (way[:2] > unchanged[:2]).all()
    linear, larger_base, by_parts = ways
    assert by_parts[2] > max(unchanged[2], linear[2], larger_base[2])


def test_solutions_are_as_told(rows):
    as_trained, halves, reordered = spreads(rows["solution-layouts-shown"], 1)[:, 0, 0]
    assert 0.5 < halves < as_trained - 0.05
    assert reordered == pytest.approx(as_trained, abs=0.03)
    (two_layers,) = spreads(rows["solution-two-layers-shown"], 4)[..., 0]
    (one, *_), *_ = spreads(rows["shares"], 4)[..., 0]
    assert two_layers[0] > one + 0.2
    assert (np.diff(two_layers) < 0).all()


# Two hands. A pair of numbers is a complex one, and to turn it is to multiply.


def turned(vector: tuple[float, float], angle: float) -> complex:
    return complex(*vector) * np.exp(1j * angle)


def dot(a: complex, b: complex) -> float:
    return (a * b.conjugate()).real


def test_two_hands_that_turn_together_keep_their_score(cells):
    assert [*map(tuple, cells["turned-by-hand"].names["pairs"])] == [*PAIRS]
    rows = cells["turned-by-hand"].rows
    for row, (i, j) in zip(rows, PAIRS, strict=True):
        q, k = turned((1, 2), radians(30 * i)), turned((2, 2), radians(30 * j))
        expected = [i, j, q.real, q.imag, k.real, k.imag, dot(q, k)]
        assert_printed(row, expected)


def test_any_vector_is_turned_by_30_degrees_for_each_position(face, cells):
    turn = cells["turn"].names["turn"]
    for x, y, position in ((1, 0, 3), (3, -2, 1), (0.5, 4, 7), (2, 1, -5)):
        found = array(turn(face.tensor(np.array([x, y], face.HAND)), position))
        hand = turned((x, y), radians(30 * position))
        np.testing.assert_allclose(found, [hand.real, hand.imag], atol=1e-5)


def test_what_is_added_makes_four_terms(cells):
    for row, (i, j) in zip(cells["four-terms"].rows, PAIRS, strict=True):
        q, k = complex(1, 2), complex(2, 2)
        p_i, p_j = (turned((1, 0), radians(30 * at)) for at in (i, j))
        terms = dot(q, k), dot(q, p_j), dot(p_i, k), dot(p_i, p_j)
        assert_printed(row, [i, j, *terms, sum(terms)])
        assert sum(terms) == pytest.approx(dot(q + p_i, k + p_j))


# Rotary position embedding


def by_turns(
    X: np.ndarray, positions: np.ndarray, omega: np.ndarray, halves: bool = False
) -> np.ndarray:
    """Each pair as a complex number, turned by position times frequency."""
    d = X.shape[-1]
    first, second = (
        (slice(d // 2), slice(d // 2, d))
        if halves
        else (slice(0, d, 2), slice(1, d, 2))
    )
    pairs = X[..., first] + 1j * X[..., second]
    pairs = pairs * np.exp(1j * positions[:, None] * omega)
    made = np.empty((*pairs.shape[:-1], d))
    made[..., first], made[..., second] = pairs.real, pairs.imag
    return made


def frequencies(d: int, base: float = 10000) -> np.ndarray:
    return base ** (-2 * np.arange(d // 2) / d)


def test_frequencies_fall_from_one_by_the_same_factor(cells):
    for d, base in ((8, 10000), (32, 10000), (64, 500)):
        found = array(cells["rotate"].names["frequencies"](d, base))
        np.testing.assert_allclose(found, frequencies(d, base), rtol=1e-5)


@pytest.mark.parametrize(
    ("cell", "halves"), [("rotate", False), ("rotate-halves", True)]
)
def test_pairs_are_turned_by_position_times_frequency(face, cells, cell, halves):
    rotate = cells[cell].names[cell.replace("-", "_")]
    rng = np.random.default_rng(0)
    for shape, start in (((5, 8), 0), ((3, 7, 12), 4), ((2, 1, 4), 20)):
        X = rng.normal(size=shape).astype("float32")
        positions = np.arange(start, start + shape[-2])
        omega = frequencies(shape[-1], 100).astype("float32")
        found = rotate(*map(face.tensor, (X, positions, omega)))
        expected = by_turns(X, positions, omega, halves)
        np.testing.assert_allclose(array(found), expected, atol=1e-4)


def spread_by_hand(scores: np.ndarray) -> float:
    n = len(scores)
    diagonals = [np.diagonal(scores, offset) for offset in range(1 - n, n)]
    return max(np.ptp(diagonal) for diagonal in diagonals)


def test_the_spread_is_the_most_that_a_diagonal_differs_by(face, cells):
    spread = cells["spread"].names["spread"]
    drawn = np.random.default_rng(0).normal(size=(9, 9)).astype("float32")
    for scores in (drawn, drawn + 3 * np.eye(9, k=-8, dtype="float32"), drawn.T):
        found = float(array(spread(face.tensor(scores))))
        assert found == pytest.approx(spread_by_hand(scores), rel=1e-5)
    i, j = np.indices((9, 9))
    assert float(array(spread(face.tensor(np.sin(i - j).astype("float32"))))) == 0


def turned_everywhere(cells: Any, name: str, halves: bool = False) -> np.ndarray:
    """The lesson's one query or key at each of its positions."""
    names = cells["rotary-check"].names
    n, d = names["n"], names["d"]
    same = np.repeat(array(names[name]).reshape(1, d), n, axis=0)
    return by_turns(same, np.arange(n), frequencies(d), halves)


def test_the_same_query_and_key_have_one_score_at_one_distance(cells):
    names = cells["rotary-check"].names
    q, k = (turned_everywhere(cells, name) for name in ("query", "key"))
    np.testing.assert_allclose(array(names["q"]), q, atol=1e-4)
    np.testing.assert_allclose(array(names["k"]), k, atol=1e-4)
    np.testing.assert_allclose(array(names["by_layer"]).reshape(q.shape), q, atol=1e-4)
    scores = q @ k.T
    np.testing.assert_allclose(array(names["scores"]), scores, atol=1e-4)
    assert spread_by_hand(scores) < 1e-9
    (low, high), *rest = cells["rotary-check"].rows
    assert_printed([low, high], [scores.min(), scores.max()])
    assert rest == [[0], [0], [0]]
    assert names["n"] == 40


def test_one_layout_is_the_other_in_another_order(cells):
    names = cells["layouts"].names
    X, order = array(names["X"]), array(names["order"]).astype(int)
    n, d = X.shape
    assert order.tolist() == [*range(0, d, 2), *range(1, d, 2)]
    neighbours = by_turns(X, np.arange(n), frequencies(d))
    halves = by_turns(X[:, order], np.arange(n), frequencies(d), halves=True)
    np.testing.assert_allclose(neighbours[:, order], halves, atol=1e-12)
    np.testing.assert_allclose(array(names["neighbours"]), neighbours, atol=1e-4)
    for name in ("halves", "by_layer"):
        found = array(names[name]).reshape(halves.shape)
        np.testing.assert_allclose(found, halves, atol=1e-4)
    assert cells["layouts"].rows == [[0], [0]]


def test_mixed_layouts_make_scores_that_depend_on_more_than_distance(cells):
    q, k = (turned_everywhere(cells, name) for name in ("query", "key"))
    q_halves, k_halves = (
        turned_everywhere(cells, name, halves=True) for name in ("query", "key")
    )
    expected = [
        [spread_by_hand(a @ b.T)]
        for a, b in ((q, k), (q_halves, k_halves), (q, k_halves))
    ]
    np.testing.assert_allclose(cells["mixed"].rows, expected, atol=2e-4)
    np.testing.assert_allclose(
        array(cells["mixed"].names["q_halves"]), q_halves, atol=1e-4
    )


# Added to the scores


def test_each_heads_slope_is_half_of_the_one_before(cells):
    slopes = [2.0 ** -(head + 1) for head in range(8)]
    np.testing.assert_allclose(array(cells["slopes"].names["slopes"]), slopes)
    of_slopes, difference = cells["slopes"].rows
    assert of_slopes == [each for slope in slopes for each in (1, 1 / slope)]
    assert difference == [0]


def test_without_content_each_step_back_costs_the_same_factor(cells):
    cell = cells["alibi-map"]
    i, j = np.indices((12, 12))
    expected = [
        softmax(np.where(j <= i, -slope * (i - j), -np.inf))
        for slope in (1 / 2, 1 / 8, 1 / 128)
    ]
    maps = [np.asarray(panel.get_array()) for panel in cell.panels]
    np.testing.assert_allclose(maps, expected, atol=1e-5)
    costs = [(i - j) / 2 ** (head + 1) for head in range(8)]  # also of heads not drawn
    np.testing.assert_allclose(
        array(cell.names["bias"]).reshape(8, 12, 12), -np.array(costs)
    )
    assert_printed(cell.rows[0], expected[0][-1, -4:], 3)
    titles = [panel.axes.get_title() for panel in cell.panels]
    assert titles == ["Slope 1/2", "Slope 1/8", "Slope 1/128"]
    assert_axes(cell, "Keys", "Queries")


def test_distances_are_clipped_on_both_sides(cells):
    i, j = np.indices((6, 6))
    assert cells["clipped"].rows == np.clip(i - j, -3, 3).tolist()


def bucket_by_hand(distance: int, count: int, far: int) -> int:
    """By the least distance of each bucket: those of the far half grow by one factor."""
    near = count // 2
    growth = (far / near) ** (1 / (count - near))
    starts = [*range(near), *(near * growth**each for each in range(count - near))]
    return sum(distance >= start - 1e-9 for start in starts) - 1


@pytest.mark.parametrize(("count", "far"), [(8, 16), (16, 64), (32, 128)])
def test_far_distances_share_ever_wider_buckets(face, cells, count, far):
    asked = [(distance, count, far) for distance in range(2 * far)]
    found = face.lesson_each(cells["bucket"].names, "bucket", asked)
    assert found == [bucket_by_hand(*each) for each in asked]


def test_the_buckets_of_the_first_distances_are_printed(cells):
    distances = [*range(1, 21)]
    buckets = [bucket_by_hand(distance, 8, 16) for distance in distances]
    assert cells["bucket"].rows == [distances, buckets]
    assert buckets[15:] == [7] * 5


def test_a_causal_mask_alone_tells_how_much_came_before(cells):
    without, causal = cells["mask-alone"].rows
    assert without == [1 / 8] * 8
    assert_printed(causal, 1 / np.arange(1, 9), 3)


# One task, six schemes


def drawn(face: Any, cells: Any, count: int, n: int) -> list[np.ndarray]:
    """Letters, digits, what is asked, the answers."""
    made = face.lesson_drawn(cells["entries"].names, "entries", count, n)
    return [array(each).astype(int) for each in made]


@pytest.mark.parametrize("n", [16, 48])
def test_the_answer_is_the_last_digit_of_the_letter(face, cells, n):
    letters, digits, asked, answers = drawn(face, cells, 300, n)
    assert letters.shape == digits.shape == (300, n)
    assert asked.shape == answers.shape == (300, 1)
    assert ({*letters.ravel()}, {*digits.ravel()}) == ({*range(6)}, {*range(10)})
    assert {*asked.ravel()} == {*range(6)}
    for text, its, (letter,), (answer,) in zip(
        letters, digits, asked, answers, strict=True
    ):
        assert letter in text
        assert dict(zip(text, its, strict=True))[letter] == answer  # the last one stays


def test_the_texts_shown_are_answered_right(cells):
    lines = cells["entries"].printed.splitlines()
    assert len(lines) == 3
    for line in lines:
        *entries, asked, answer = line.split()
        assert len(entries) == 16
        last = {entry[0]: entry[1:] for entry in entries}
        assert last[asked.removesuffix("?")] == answer


def sinusoids(positions: np.ndarray, d: int) -> np.ndarray:
    turns = np.exp(1j * positions[:, None] * frequencies(d))
    return np.stack([turns.imag, turns.real], axis=-1).reshape(len(positions), d)


def finder_by_hand(
    its: Arrays,
    scheme: str,
    given: list[np.ndarray],
    omega: np.ndarray | None = None,
    halves: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """What a model makes of its parameters: the scores of the digits, and its weights."""
    letters, digits, asked = given
    n, d = letters.shape[1], its["W_q"].shape[0]
    there, here = np.arange(n), np.array([n])
    X, question = its["letter"][letters] + its["digit"][digits], its["letter"][asked]
    if scheme == "Sinusoids":
        X, question = X + sinusoids(there, d), question + sinusoids(here, d)
    q, k, v = question @ its["W_q"], X @ its["W_k"], X @ its["W_v"]
    if scheme == "Rotary":
        omega = frequencies(d) if omega is None else omega
        q, k = by_turns(q, here, omega, halves), by_turns(k, there, omega, halves)
    distances = n - there
    scores = q @ k.mT / np.sqrt(d)
    if scheme == "ALiBi":
        scores = scores - distances / 2
    if scheme == "Table":
        vectors = its["vectors"][np.minimum(distances, len(its["vectors"])) - 1]
        scores = q @ (k + vectors).mT / np.sqrt(d)
    if scheme == "Buckets":
        scores = scores + its["numbers"][[bucket_by_hand(x, 8, 16) for x in distances]]
    weights = softmax(scores)
    return weights @ v @ its["output"] + its["bias"], weights


def models_of(cells: Any) -> dict[str, list[Any]]:
    models = {
        getattr(scheme, "__name__", scheme): of
        for scheme, of in cells["train-all"].names["models"].items()
    }
    assert tuple(models) == SCHEMES
    return models


def right(said: np.ndarray, answers: np.ndarray) -> float:
    return float((said.argmax(axis=-1) == answers).mean())


def in_parts(compute: Callable[[list[Any]], Any], given: list[Any]) -> np.ndarray:
    """The same, fifty texts at a time: a processor's cache holds their numbers."""
    starts = range(0, len(given[0]), 50)
    return np.concatenate([compute([x[i : i + 50] for x in given]) for i in starts])


def said_by_hand(
    its: Arrays, scheme: str, given: list[np.ndarray], omega: np.ndarray | None = None
) -> np.ndarray:
    find = partial(finder_by_hand, its, scheme, omega=omega)
    return in_parts(lambda texts: find(texts)[0], given)


def nearly(share: float) -> Any:
    """Of five hundred answers, some may be as good as equally likely."""
    return pytest.approx(share, abs=0.0041)


def read_test(face: Any, cells: Any, n: int) -> list[np.ndarray]:
    """The texts of n entries that all models are tested on: letters, digits, what is asked, the answers."""
    test = face.lesson_test(cells["train"].names["tests"][n])
    letters, digits, asked, answers = (each.astype(int) for each in test)
    assert letters.shape == digits.shape == (500, n)
    has_it = letters == asked
    last = n - 1 - has_it[:, ::-1].argmax(axis=1)
    np.testing.assert_array_equal(digits[range(500), last], answers[:, 0])
    assert len({*map(tuple, digits)}) > 490
    return [letters, digits, asked, answers]


def test_shares_are_those_of_the_models_which_differ_in_their_scheme_alone(face, cells):
    names = cells["train-all"].names
    assert tuple(names["lengths"]) == LENGTHS
    sizes = {}
    for (scheme, models), of_scheme in zip(
        models_of(cells).items(), names["shares"], strict=True
    ):
        assert len(models) == len(of_scheme) == 5
        for model, shares in zip(models, of_scheme, strict=True):
            its = face.lesson_finder(model)
            sizes[scheme] = sum(each.size for each in its.values())
            for n, share in zip(LENGTHS, shares, strict=True):
                *given, answers = read_test(face, cells, n)
                said = said_by_hand(its, scheme, given)
                assert float(share) == nearly(right(said, answers))
        starts = {face.lesson_finder(model)["digit"][0, 0] for model in models}
        assert len(starts) == 5  # each from a seed of its own
    least = sizes["NoPositions"]
    more = [sizes[scheme] - least for scheme in SCHEMES]
    assert more == [0, 0, 0, 0, 16 * 32, 8]


def budget_of(framework: str) -> tuple[int, int, float]:
    """Of training: the steps, the texts in each, and the rate."""
    return (150, 64, 0.015) if framework == "mlx" else (100, 256, 0.02)


def test_models_are_trained_for_so_many_steps(cells, pytestconfig):
    budget = budget_of(pytestconfig.getoption("framework"))
    assert {*budget} <= cells["train"].numbers


def test_models_are_trained_on_sixteen_entries(cells, watch, pytestconfig):
    steps, batch, _ = budget_of(pytestconfig.getoption("framework"))
    names = cells["train-all"].names

    def run(watched):
        watch(names["trained"], entries=watched)
        cells["train-all"].again()

    drawn = first_calls(run, names["entries"])
    assert {letters.shape[1] for letters, *_ in drawn} == {16}
    assert {len(letters) for letters, *_ in drawn} <= {1, batch, steps * batch}


def test_buckets_add_the_number_of_each_distance(face, cells):
    model, distances = models_of(cells)["Buckets"][0], np.arange(1, 41)
    found = face.lesson_bias(model, distances).ravel()
    numbers = face.lesson_finder(model)["numbers"]
    expected = numbers[[bucket_by_hand(distance, 8, 16) for distance in distances]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_table_has_the_median_and_the_range(cells):
    cell = cells["shares"]
    assert cell.rows[0] == [*LENGTHS]
    assert_spreads(cell, cell.names["shares"])
    lines = cell.printed.splitlines()[1:]
    assert [line.split()[-1] for line in lines] == NAMES


def test_the_figure_has_the_medians_and_the_ranges_as_bars(cells):
    cell = cells["shares"]
    shares = np.array(cell.names["shares"], float)
    curves = cell.curves
    for of, (x, y) in zip(shares[1:], curves[:5], strict=True):
        assert x.tolist() == [*LENGTHS]
        np.testing.assert_allclose(y, np.median(of, axis=0), atol=1e-6)
    bars = iter(curves[5:])
    for i, n in enumerate(LENGTHS):
        for j, of in enumerate(shares[1:]):
            x, y = next(bars)
            np.testing.assert_allclose(x, [n + j] * 2)
            np.testing.assert_allclose(y, [of[:, i].min(), of[:, i].max()], atol=1e-6)
    assert next(bars, None) is None
    (figure,) = cell.figures
    (axes,) = figure.axes
    assert axes.get_xlabel() == "Entries (trained on 16)"
    assert axes.get_ylabel() == "Share right"
    assert cell.legend == NAMES[1:]


# Where they look


def heat_maps(figure: Any) -> list[Any]:
    """Those of a figure, without the colour bar."""
    axes = [each for each in figure.axes if each.get_images()]
    return [each.get_images()[0] for each in axes if each.get_xlabel()]


@pytest.mark.parametrize(("names", "n"), [(["maps"], 16), (PAST_THE_END, 32)])
def test_maps_are_those_of_three_models(face, cells, names, n):
    cell = cells[names[0]]
    letters, digits = cell.printed.split()
    assert (len(letters), len(digits), {*letters}) == (n, n, {*"abcdef"})
    figures = [figure for name in names for figure in cells[name].figures]
    panels = [panel for figure in figures for panel in heat_maps(figure)]
    titles = [panel.axes.get_title() for panel in panels]
    assert titles == ["Sinusoids", "Rotary", "ALiBi"]
    maps = [np.asarray(panel.get_array()) for panel in panels]
    last = [letters.rindex(letter) for letter in "abcdef"]
    hits = [(weights.argmax(axis=1) == last).sum() for weights in maps]
    if n == 16:
        assert sum(hits) >= 15  # of eighteen rows
        assert_axes(cell, "Entries", "Letter asked for")
    else:
        assert hits[0] < hits[2]
        for panel in panels:
            axes = panel.axes
            assert (axes.get_xlabel(), axes.get_ylabel()) == ("Entries", "Letter")
    text = [
        np.array([[*map(int, each)]]) for each in (map("abcdef".index, letters), digits)
    ]
    for scheme, weights in zip(("Sinusoids", "Rotary", "ALiBi"), maps, strict=True):
        its = face.lesson_finder(models_of(cells)[scheme][0])
        _, expected = finder_by_hand(its, scheme, [*text, np.arange(6)[None]])
        np.testing.assert_allclose(weights, expected[0], atol=2e-3)


def test_weight_on_the_letter_and_on_its_last_entry(face, cells):
    cell = cells["weight-shown"]
    names = cell.names
    for n in (16, 32):
        for (scheme, models), found in zip(
            models_of(cells).items(), names["weight"][n], strict=True
        ):
            for model, shares in zip(models, found, strict=True):
                its = face.lesson_finder(model)
                letters, digits, asked, _ = read_test(face, cells, n)
                _, weights = finder_by_hand(its, scheme, [letters, digits, asked])
                has_it = letters == asked
                is_last = has_it & (np.cumsum(has_it[:, ::-1], axis=1)[:, ::-1] == 1)
                for share, where in zip(shares, (has_it, is_last), strict=True):
                    of_texts = (weights[:, 0] * where).sum(axis=1).mean()
                    assert float(share) == nearly(of_texts)
    assert_spreads(cell, [*names["weight"][16], *names["weight"][32]])
    lines = cell.printed.splitlines()
    assert [line.split()[-1] for line in lines[1:7] + lines[8:]] == 2 * NAMES


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
def test_frequencies_are_changed_in_four_ways(face, cells, factor):
    omega = face.tensor(frequencies(32).astype("float32"))
    for way, expected in ways(factor).items():
        found = array(cells["stretch"].names[way](omega, factor))
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    slowed = ways(factor)["larger_base"] / frequencies(32)
    assert (slowed[0], slowed[-1]) == (1, pytest.approx(1 / factor))


def test_wavelengths_are_printed(cells):
    wavelengths = {way: 2 * pi / omega for way, omega in ways(4).items()}
    rows = cells["wavelengths"].rows
    assert [row[0] for row in rows[1:]] == [0, 1, 2, 3, 4, 6, 9, 12, 15]
    for pair, turns, *found in rows[1:]:
        assert_printed(turns, 16 / wavelengths["unchanged"][int(pair)], 3)
        expected = [of_way[int(pair)] for of_way in wavelengths.values()]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0.051)


def test_shares_of_rotary_models_with_other_frequencies(face, cells):
    names = cells["stretched"].names
    for way, of_way in zip(ways(1), names["stretched"], strict=True):
        for model, shares in zip(models_of(cells)["Rotary"], of_way, strict=True):
            its = face.lesson_finder(model)
            for n, share in zip(LENGTHS[1:], shares, strict=True):
                *given, answers = read_test(face, cells, n)
                said = said_by_hand(its, "Rotary", given, ways(n / 16)[way])
                assert float(share) == nearly(right(said, answers))
    cell = cells["stretched-shares"]
    assert_spreads(cell, names["stretched"])
    said = [line.split(")")[-1].strip() for line in cell.printed.splitlines()[1:]]
    assert said == ["unchanged", "linear", "larger base", "by parts"]


def test_the_models_have_their_own_frequencies_again_afterwards(face, cells):
    names = cells["stretched"].names
    *given, answers = read_test(face, cells, 32)
    for model in models_of(cells)["Rotary"]:
        said, _ = finder_by_hand(face.lesson_finder(model), "Rotary", given)
        share = float(names["share_right"](model, 32))
        assert share == nearly(right(said, answers))


# Solutions


def test_the_score_is_greatest_one_place_after_the_query():
    scores = [dot(complex(1, 2), turned((2, 2), radians(30 * at))) for at in range(12)]
    assert np.argmax(scores) == 1
    assert_printed(scores[1], 6.20)


def test_turned_values_depend_on_where_they_stand(cells):
    names = cells["solution-values"].names
    X, omega = array(names["X"]), frequencies(8)

    def output(shift: int, turned: bool = False, back: bool = False) -> np.ndarray:
        positions = np.arange(6) + shift
        q = by_turns(X, positions, omega)
        Y = softmax(q @ q.T / np.sqrt(8)) @ (q if turned else X)
        return by_turns(Y, -positions, omega) if back else Y

    for shift in (0, 5):
        for turned, back in ((False, False), (True, False), (True, True)):
            found = array(names["outputs"](shift, turned, back))
            np.testing.assert_allclose(found, output(shift, turned, back), atol=1e-4)
    change = np.abs(output(5, turned=True) - output(0, turned=True)).max()
    (as_they_are,), (moved,), (back,) = cells["solution-values"].rows[-3:]
    assert (as_they_are, back) == (0, 0)
    assert_printed(moved, change, 3)


def test_what_was_learned_in_one_layout_fits_the_other_once_reordered(face, cells):
    cell = cells["solution-layouts-shown"]
    as_trained, halves, reordered = cell.names["in_layouts"]
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    for i, model in enumerate(models_of(cells)["Rotary"]):
        its = face.lesson_finder(model)
        *given, answers = read_test(face, cells, 16)
        other = its | {W: its[W][:, order] for W in ("W_q", "W_k")}
        # By their weights: the pairs' halves exchanged would find nearly as much.
        for reorder, weights in ((False, its), (True, other)):
            made = cell.names["in_halves"](model, reorder)
            cell.names["share_right"](made, 16)  # Gluon's has its weights after a call
            np.testing.assert_equal(face.lesson_finder(made), weights)
        for (share,), weights, is_in_halves in (
            (as_trained[i], its, False),
            (halves[i], its, True),
            (reordered[i], other, True),
        ):
            said, _ = finder_by_hand(weights, "Rotary", given, halves=is_in_halves)
            assert float(share) == nearly(right(said, answers))
    assert_spreads(cell, cell.names["in_layouts"])


def test_only_distances_that_occur_have_a_gradient(cells):
    touched = array(cells["solution-untouched"].names["is_touched"]).ravel()
    assert touched.tolist() == [True] * 16 + [False] * 16
    assert cells["solution-untouched"].rows == [[*range(1, 17)]]


def two_layers_by_hand(
    its: Arrays, layers: list[Arrays], given: list[np.ndarray]
) -> np.ndarray:
    letters, digits, asked = given
    X = np.concatenate(
        [its["letter"][letters] + its["digit"][digits], its["letter"][asked]], axis=1
    )
    i, j = np.indices((X.shape[1],) * 2)
    # Of the second layer the question alone, which comes last, is needed.
    for W, rows in zip(layers, (slice(None), slice(-1, None)), strict=True):
        asking = X[:, rows]
        q, k, v = asking @ W["W_q"], X @ W["W_k"], X @ W["W_v"]
        scores = q @ k.mT / np.sqrt(X.shape[-1])
        scores = np.where((j <= i)[rows], scores, -np.inf)
        X = asking + softmax(scores) @ v @ W["W_o"]
    return X @ its["output"] + its["bias"]


def test_two_causal_layers_are_right_as_often_as_is_printed(face, cells):
    cell = cells["solution-two-layers-shown"]
    found = cell.names["found"]
    starts = set()
    for model, shares in zip(cell.names["two_layers"], found, strict=True):
        its, layers = face.lesson_layers(model, 2, ("letter", "digit"))
        starts.add(its["digit"][0, 0])
        for n, share in zip(LENGTHS, shares, strict=True):
            *given, answers = read_test(face, cells, n)
            said = in_parts(partial(two_layers_by_hand, its, layers), given)
            assert float(share) == nearly(right(said, answers))
    assert len(starts) == 5  # each from a seed of its own
    assert_spreads(cell, [found])
