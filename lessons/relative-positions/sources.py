"""Where the numbers and the equations of the text come from.

HELD has words of the original text, the cell that they are about, and what they are held to: the numbers
that they should have, in their order, or whether they are true. ``its`` are the names that the cells up to this
one left behind, and ``its.shown`` is what it showed.
"""

from math import ceil, cos, degrees, log, pi, radians, sqrt, tan
from types import SimpleNamespace as Names

import numpy as np

from tests.lessons import array

# What the text itself lays down, and what no cell could contradict.
DEFINED = [
    "T5 (Raffel et al., 2020)",
    "(T5 has 32 buckets for distances up to 128",
    "YaRN's are 32 turns and one",
    "$d = 32$ and $s = 4$. By how much does the base grow",
    r"ever nearer to $10000 \cdot 2\pi$",
]

QUERY, KEY = np.array([1, 2]), np.array([2, 2])


def turned(vector: np.ndarray, degrees: float) -> np.ndarray:
    a = radians(degrees)
    return np.array([[cos(a), -np.sin(a)], [np.sin(a), cos(a)]]) @ vector


# Two hands


def query_and_key(its: Names) -> list[float]:
    """And the score that they have unturned."""
    np.testing.assert_array_equal(array(its.query), QUERY)
    np.testing.assert_array_equal(array(its.key), KEY)
    products = [
        x for pair in zip(array(its.query), array(its.key), strict=True) for x in pair
    ]
    return [*QUERY, *KEY, *products, QUERY @ KEY]


def quarter_turn(its: Names) -> list[float]:
    """30 degrees for each position; a position, its angle; the query there."""
    found = array(its.turn(its.query, 3))
    np.testing.assert_allclose(found, [-2, 1], atol=1e-6)
    return [30, 3, 90, *QUERY, *np.abs(np.round(found))]  # signs do not count


def turn_by_formula(_: Names) -> bool:
    x, y, a = 0.3, -1.2, 0.7
    by_hand = turned(np.array([x, y]), degrees(a))
    said = [x * np.cos(a) - y * np.sin(a), x * np.sin(a) + y * np.cos(a)]
    return np.allclose(said, by_hand)


def score_two_before(its: Names) -> list[float]:
    """Of the first three rows, and of the next two."""
    two_before, one_before = (
        {*(row[-1] for row in its.shown.rows if row[0] - row[1] == distance)}
        for distance in (2, 1)
    )
    assert len(its.shown.rows) == 7 - 1
    return [*two_before, *one_before]


# What adding does


def product_of_sums(_: Names) -> bool:
    q, p, k, r = np.random.default_rng(0).normal(size=(4, 5))
    return np.isclose((q + p) @ (k + r), q @ k + q @ r + p @ k + p @ r)


def position_with_position(its: Names) -> list[float]:
    """At two places, at one; the sums for two places."""
    rows = its.shown.rows
    two, one = ([row for row in rows if row[0] - row[1] == away] for away in (2, 1))
    (near,), (far,) = ({row[5] for row in of} for of in (one, two))
    return [far, near, *(row[6] for row in two)]


# Rotary position embedding


def frequencies_by_formula(its: Names) -> bool:
    d = 12
    expected = [10000 ** (-2 * each / d) for each in range(d // 2)]
    return np.allclose(array(its.frequencies(d)), expected)


def partners_by_formula(its: Names) -> bool:
    """In halves, number l is turned together with number l + d/2."""
    its_halves, X = array(its.halves), array(its.X)[:, array(its.order).astype(int)]
    half = X.shape[1] // 2
    lengths = (its_halves[:, :half] ** 2 + its_halves[:, half:] ** 2) ** 0.5
    return np.allclose(lengths, (X[:, :half] ** 2 + X[:, half:] ** 2) ** 0.5, atol=1e-4)


# Added to the scores


def slopes_by_formula(its: Names) -> list[float]:
    """The first head, and the base and factor of the slopes."""
    np.testing.assert_allclose(
        array(its.slopes), [2.0 ** (-8 * h / 8) for h in range(1, 9)]
    )
    return [1, 2, 8]


def biases_by_formula(its: Names) -> bool:
    """Without content: what is left in a row are the biases of one head."""
    weights = array(its.weights)[0]
    rows = np.log(weights[0, -1]) - np.log(weights[0, -1, -1])
    return np.allclose(rows, -array(its.slopes)[0] * np.arange(11, -1, -1), atol=1e-4)


def slopes_of_the_maps(its: Names) -> list[float]:
    """The first slope, by how much a weight falls with it, and the last slope shown."""
    last = array(its.weights)[0, 0, -1]
    (falls,) = {*np.round(last[:-1] / last[1:], 2)}
    slopes = array(its.slopes)
    assert "Slope 1/128" in its.shown.source
    return [1, 1 / slopes[0], falls, 1, 1 / slopes[6]]


def table_by_formula(_: Names) -> bool:
    """The vector of a distance, added to the key, adds to the score what the model adds."""
    q, k, a = np.random.default_rng(0).normal(size=(3, 6))
    return np.isclose(q @ (k + a) / sqrt(6), q @ k / sqrt(6) + q @ a / sqrt(6))


def clipped_at(its: Names) -> list[float]:
    rows = np.array(its.shown.rows)
    assert rows.shape == (6, 6)
    assert rows.max() == -rows.min()
    return [rows.max()]


def buckets_and_their_end(its: Names) -> list[float]:
    """How many there are, how far they reach, and where the last one begins."""
    distances, buckets = its.shown.rows
    count, reach = its.bucket.__defaults__
    assert buckets[-1] == count - 1 == its.bucket(10 * reach)
    return [count, reach, distances[buckets.index(count - 1)]]


def seen_by_each(its: Names) -> list[float]:
    """1/8 without a mask; 1, 1/2 and 1/3 with it."""
    without, causal = its.shown.rows
    (alike,) = {*without}
    return [1, 1 / alike, 1, 1, round(1 / causal[1]), 1, round(1 / causal[2])]


# One task


def entries_of_a_text(its: Names) -> list[float]:
    lines = its.shown.printed.splitlines()
    (length,) = {len(line.split()) - 2 for line in lines}
    return [length]


def trained_and_longest(its: Names) -> list[float]:
    return [its.lengths[0], its.lengths[-1]]


def slope_and_reach(its: Names) -> list[float]:
    """ALiBi's slope; how far the table and the buckets reach."""
    bias = array(its.ALiBi().bias(its.q, its.distances))
    (slope,) = {*(-bias[1:, 0] / array(its.distances)[1:, 0])}
    return [1, 1 / slope, its.bucket.__defaults__[1]]


def lengths_asked(its: Names) -> list[float]:
    assert len(next(iter(its.models.values()))) == 5
    return [its.lengths[0], *its.lengths]


def short_and_long_texts(its: Names) -> list[float]:
    short, long = its.weight
    assert short == its.lengths[0]
    return [long, 30, 30] if short < 30 < long else []


# Longer than trained


def wavelengths_of_width_32(its: Names) -> list[float]:
    """The width; the shortest wavelength; the trained length; the pair that made a quarter of a turn."""
    omega = array(its.omega)
    turns = its.lengths[0] * omega / (2 * pi)
    assert round(turns[0], 1) == 2.5
    assert 2 * pi / omega[-1] > 30_000
    (quarter,) = (l for l in range(16) if abs(turns[l] - 1 / 4) < 0.01)
    return [2 * len(omega), round(2 * pi / omega[0], 1), its.lengths[0], quarter]


def wavelength_by_formula(its: Names) -> bool:
    return np.allclose(array(its.wavelengths[0]) * array(its.omega), 2 * pi)


def larger_base_by_formula(its: Names) -> bool:
    """The slowest pair turns s times more slowly, the fastest as before."""
    omega, s, d = array(its.omega), 4, 32
    expected = (10000 * s ** (d / (d - 2))) ** (-np.arange(0, d, 2) / d)
    found = array(its.larger_base(its.omega, s))
    assert np.isclose(found[-1], omega[-1] / s)
    assert found[0] == omega[0]
    return np.allclose(found, expected, rtol=1e-4)


# Solutions


def best_place(_: Names) -> list[float]:
    """Where the query points, and the key; what is between them; the greatest score."""
    query, key = (degrees(np.arctan2(*hand[::-1])) for hand in (QUERY, KEY))
    between = query - key
    left = 30 - between
    best = QUERY @ turned(KEY, 30)
    assert best == max(QUERY @ turned(KEY, 30 * away) for away in range(12))
    lengths = QUERY @ QUERY, KEY @ KEY
    assert np.isclose(best, sqrt(lengths[0] * lengths[1]) * cos(radians(left)))
    points = round(query, 1), round(key)
    assert round(tan(radians(query))) == 2
    score = [*lengths, round(left, 1), round(best, 2)]
    return [
        points[0],
        points[0],
        2,
        points[1],
        round(between, 1),
        30,
        round(left, 1),
        *score,
        QUERY @ KEY,
    ]


def whole_turn(_: Names) -> list[float]:
    """Positions of a whole turn, by 30 degrees; two distances that look alike."""
    assert np.allclose(turned(KEY, 30 * 1), turned(KEY, 30 * 13))
    return [360 / 30, 30, 1, 1 + 360 / 30]


def how_far_alibi_sees(_: Names) -> list[float]:
    thousandth = log(1000)
    steep, flat = thousandth * 2, thousandth * 128
    said = [1, 1000, 1000, round(thousandth, 3)]
    of_steep = [1, 2, round(steep, 1), ceil(steep)]
    return [*said, *of_steep, 1, 128, round(flat, 1), ceil(flat)]


def larger_base_in_numbers(_: Names) -> list[float]:
    s, d = 4, 32
    grown = s ** (d / (d - 2))
    omega, slower = (
        np.array([base ** (-2 * l / d) for l in range(d // 2)])
        for base in (10000, 10000 * grown)
    )
    np.testing.assert_allclose(omega / slower, [s ** (l / 15) for l in range(16)])
    first = round(s ** (1 / 15), 2)
    base = [s, d, d - 2, round(grown, 2)]
    power = [2, d, s, d, d - 2, 2, d, s, 2, d - 2, s, 15]
    return [*base, *power, 15, s, 1, s, 1, 15, first]


SUMS = r"""$$(\mathbf{q} + \mathbf{p}_i)^\top(\mathbf{k} + \mathbf{p}_j) = \mathbf{q}^\top\mathbf{k} + \mathbf{q}^\top\mathbf{p}_j
    + \mathbf{p}_i^\top\mathbf{k} + \mathbf{p}_i^\top\mathbf{p}_j"""

HELD = {
    "on texts of 16 entries, and are asked about texts of up to 128": (
        "train-all",
        trained_and_longest,
    ),
    "Both are turned by 30° for each position": (
        "turned-by-hand",
        lambda its: quarter_turn(its)[0],
    ),
    r"""$\mathbf{q} = (1, 2)$ and $\mathbf{k} = (2, 2)$. Their score is
        $1 \cdot 2 + 2 \cdot 2 = 6$""": ("turned-by-hand", query_and_key),
    "turn it by 30° for each position, counter-clockwise. At position 3 that makes 90°: the query $(1, 2)$ becomes $(-2, 1)$": (
        "turned-by-hand",
        quarter_turn,
    ),
    r"$(x\cos a - y\sin a,\; x\sin a + y\cos a)$": ("turn", turn_by_formula),
    "the score is the same, 1.27. In the next two rows the key is one place before: 4.20": (
        "turned-by-hand",
        score_two_before,
    ),
    SUMS: ("setup", product_of_sums),
    "the hand $(1, 0)$": ("four-terms", lambda its: array(its.hand)),
    "0.50 at two places, 0.87 at one": (
        "four-terms",
        lambda its: position_with_position(its)[:2],
    ),
    "get 10.23, 7.77 or 2.63": (
        "four-terms",
        lambda its: position_with_position(its)[2:],
    ),
    r"with $\omega_l = 10000^{-2l/d}$": ("rotate", frequencies_by_formula),
    r"**frequency** $\omega_l = 10000^{-2l/d}$": ("rotate", frequencies_by_formula),
    "at each of 40 positions": ("rotary-check", lambda its: its.n),
    "number $l$ and number $l + d/2$": ("layouts", partners_by_formula),
    "number $l$ is the partner of number $l + d/2$": ("layouts", partners_by_formula),
    "counted from 1, has $m_h = 2^{-8h/H}$": ("slopes", slopes_by_formula),
    r"$$s_{ij} = \frac{\mathbf{q}_i^\top\mathbf{k}_j}{\sqrt{d}} - m_h\,(i - j)$$": (
        "alibi-map",
        biases_by_formula,
    ),
    """with the slope 1/2 that is 0.61. So the first head hardly sees farther than a few places, and the head
        with the slope 1/128""": ("alibi-map", slopes_of_the_maps),
    r"$s_{ij} = \mathbf{q}_i^\top(\mathbf{k}_j + \mathbf{a}_{i-j})/\sqrt{d}$": (
        "setup",
        table_by_formula,
    ),
    r"$$s_{ij} = \frac{\mathbf{q}_i^\top(\mathbf{k}_j + \mathbf{a}_{i-j})}{\sqrt{d}}$$": (
        "setup",
        table_by_formula,
    ),
    "for six tokens and $K = 3$": ("clipped", clipped_at),
    "with 8 buckets for distances up to 16": (
        "bucket",
        lambda its: buckets_and_their_end(its)[:2],
    ),
    "Everything from 12 on is in the last bucket": (
        "bucket",
        lambda its: buckets_and_their_end(its)[2],
    ),
    "1 for the first token and 0 for all others": (
        "mask-alone",
        lambda its: np.unique(array(its.first))[::-1],
    ),
    "all eight find 1/8. Under the mask the first finds 1, the second 1/2, the third 1/3": (
        "mask-alone",
        seen_by_each,
    ),
    "Trained on 16 entries, asked about up to 128": ("train-all", trained_and_longest),
    "A text has 16 entries": ("entries", entries_of_a_text),
    "ALiBi has the slope 1/2, the table and the buckets reach to 16": (
        "learned-schemes",
        slope_and_reach,
    ),
    "on 16 entries. Then we ask about texts of 16, 32, 64 and 128 entries": (
        "train-all",
        lengths_asked,
    ),
    "at 128 entries it does no better": ("train-all", lambda its: its.lengths[-1]),
    "had to learn from 16 entries": ("train-all", lambda its: its.lengths[0]),
    "in texts of 32 about a quarter of the weight is there": (
        "weight-shown",
        lambda its: short_and_long_texts(its)[0],
    ),
    "what to make of position 30": (
        "weight-shown",
        lambda its: short_and_long_texts(its)[1],
    ),
    "the sinusoids of position 30": (
        "weight-shown",
        lambda its: short_and_long_texts(its)[2],
    ),
    r"Wavelength of pair $l$: $2\pi/\omega_l$ positions": (
        "wavelengths",
        wavelength_by_formula,
    ),
    r"once around in $2\pi/\omega_l$ positions": ("wavelengths", wavelength_by_formula),
    "With a width of 32, wavelengths go from 6.3 positions": (
        "wavelengths",
        lambda its: wavelengths_of_width_32(its)[:2],
    ),
    "In texts of 16 entries the first pair": (
        "wavelengths",
        lambda its: wavelengths_of_width_32(its)[2],
    ),
    "The fifth, pair 4, has made a quarter of a turn": (
        "wavelengths",
        lambda its: wavelengths_of_width_32(its)[3],
    ),
    r"replace 10000 by $10000 \cdot s^{d/(d-2)}$": (
        "wavelengths",
        larger_base_by_formula,
    ),
    "some wavelengths for $s = 4$": (
        "wavelengths",
        lambda its: round(
            float(array(its.wavelengths[1])[0] / array(its.wavelengths[0])[0])
        ),
    ),
    # Exercises and solutions
    r"$\mathbf{q} = (1, 2)$ and $\mathbf{k} = (2, 2)$ are turned by 30° for each position": (
        "turned-by-hand",
        lambda its: [*query_and_key(its)[:4], quarter_turn(its)[0]],
    ),
    "ALiBi with a slope of 1/2. How many places back": (
        "setup",
        lambda its: how_far_alibi_sees(its)[4:6],
    ),
    "And with a slope of 1/128?": (
        "setup",
        lambda its: how_far_alibi_sees(its)[8:10],
    ),
    "Give the table 32 vectors instead of 16, and take one step of training on texts of 16 entries": (
        "solution-untouched",
        lambda its: [len(array(its.is_touched).ravel()), *2 * [its.lengths[0]]],
    ),
    "What does that mean for texts of 32?": (
        "solution-untouched",
        lambda its: len(array(its.is_touched).ravel()),
    ),
    "the wavelengths of the slowest pair, and of pair 1?": (
        "setup",
        lambda its: larger_base_in_numbers(its)[-3],
    ),
    r"""The query points up at 63.4°, since $\tan 63.4° = 2$, and the key at 45°. To point the same way the key would
        have to turn 18.4° more than the query. One position more makes 30°, which leaves 11.6° between them: the score
        is $\sqrt{5}\sqrt{8}\cos 11.6° = 6.20$. At the query's own place it is 6""": (
        "setup",
        best_place,
    ),
    """And so is every place 12 positions farther on, or back: twelve times 30° is a whole turn. A single pair cannot
        tell a distance of 1 from one of 13""": ("setup", whole_turn),
    r"""so we need $e^{-mk} < 1/1000$, that is $k > \ln 1000 / m = 6.908 / m$. With the slope 1/2 that is 13.8, so 14
        places; with 1/128 it is 884.2, so 885""": ("setup", how_far_alibi_sees),
    "the first text with 17 entries makes use of one of them. That is why our table ends at 16": (
        "solution-untouched",
        lambda its: [its.lengths[0] + 1, its.lengths[0]],
    ),
    r"""The base is multiplied by $4^{32/30} = 4.39$. The frequency of pair $l$ is the base to the power of $-2l/32$, so its
        wavelength grows by $(4^{32/30})^{2l/32} = 4^{2l/30} = 4^{l/15}$: for the slowest pair, $l = 15$, by 4; for pair
        1 by $4^{1/15} = 1.10$""": ("setup", larger_base_in_numbers),
}

# What names an exercise, and a cell of its solution.
EXERCISES = {
    "does not depend on where it says it (Exercise 3)": "solution-values",
    "the layout it was trained with, and no other (Exercise 4)": "solution-layouts",
    "can make use of this (Exercise 6)": "solution-two-layers",
}

# What a language says in other numbers or formulas than the others do, or in words.
IN_OTHER_WORDS: list[str] = []
