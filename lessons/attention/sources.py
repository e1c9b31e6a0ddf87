"""Where the numbers and the equations of the text come from.

HELD has words of the original text, the cell that they are about, and what they are held to: the numbers
that they should have, in their order, or whether they are true. ``its`` are the names that the cells up to this
one left behind, and ``its.shown`` is what it showed.
"""

from math import exp, inf, sqrt
from types import SimpleNamespace as Names

import numpy as np

from tests.lessons import array, softmax

# What the text itself lays down, and what no cell could contradict.
DEFINED = [
    "a method from 1964",
    "Nadaraya and Watson, 1964",
    "*Theory of Probability and Its Applications*, 9(1)",
    "*Sankhyā: The Indian Journal of Statistics, Series A*, 26(4)",
]


# A dictionary that always answers


def key(its: Names, fruit: str) -> np.ndarray:
    return array(its.keys)[its.fruits.index(fruit)]


def fruits_keys_and_the_query(its: Names) -> np.ndarray:
    return np.concatenate(
        [*(key(its, fruit) for fruit in ("apple", "lemon", "pear")), array(its.query)]
    )


def scores_by_hand(its: Names) -> list[float]:
    """Each pair of factors, and the score that they make."""
    said = []
    for k, score in zip(array(its.keys), array(its.scores), strict=True):
        assert k @ array(its.query) == score
        said += [*np.stack([k, array(its.query)], axis=1).ravel(), score]
    return said


def softmax_by_hand(scores: np.ndarray) -> list[float]:
    """The exponents, what they make, and the sum of these."""
    powers = np.exp(scores)
    return [*scores, *np.round(powers, 1), round(powers.sum(), 1)]


def lemons_share(its: Names) -> list[float]:
    powers, weights = np.exp(array(its.scores)), array(its.weights)
    np.testing.assert_allclose(weights, powers / powers.sum(), rtol=1e-5)
    return [round(powers[1], 1), round(powers.sum(), 1), round(weights[1], 2)]


def what_is_drawn(its: Names) -> list[float]:
    answer = array(its.weights) @ array(its.values)
    weights = np.round(array(its.weights), 3)
    return [*array(its.scores), *weights, *array(its.values), round(answer)]


def extremes_of_the_factor(its: Names) -> list[float]:
    """Even weights at the one, those of a dictionary at the other."""
    factors = [row[0] for row in its.shown.rows]
    weights = [row[1:4] for row in its.shown.rows]
    assert len({*weights[0]}) == 1
    assert weights[-1] == [0, 1, 0]
    return [factors[0], factors[-1]]


def asked_for_the_apple(its: Names) -> list[float]:
    """Its own description; then the highest score, the pear's, and its own."""
    apple, pear = key(its, "apple"), key(its, "pear")
    scores = array(its.keys) @ apple
    assert scores.max() == pear @ apple
    return [*apple, pear @ apple, apple @ apple]


def all_score_alike(its: Names) -> list[float]:
    """The score that every fruit gets from the last of the three queries."""
    scores = array(its.keys) @ array(its.queries)[-1]
    mean = array(its.values).mean(axis=0)
    np.testing.assert_allclose(array(its.answers)[-1], mean, rtol=1e-5)
    return [*{*scores}]


# Averages by nearness


def kernel(distance: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-(distance**2) / (2 * width**2))


def scores_are_the_kernels_logarithm(its: Names) -> bool:
    q, k = array(its.between), array(its.x)
    distance = q[:, None] - k
    ours = kernel(distance, 0.3) / kernel(distance, 0.3).sum(axis=1, keepdims=True)
    theirs = softmax(array(its.closeness(its.between, its.x, 0.3)))
    return np.allclose(theirs, ours, atol=1e-5)


def narrowest_and_widest(its: Names) -> list[float]:
    """The first follows each point; the last is not far from the mean."""
    fits = {width: array(fit) for width, fit in its.fits.items()}
    assert np.ptp(fits[3]) < np.ptp(fits[0.05]) / 4
    return [min(fits), max(fits)]


def far_end_keeps(its: Names) -> bool:
    """The ends of the widest map: a quarter of the largest weight."""
    weights = array(its.maps[-1])
    kept = np.array([weights[0, -1] / weights[0].max(), weights[-1, 0] / weights.max()])
    return np.allclose(kept, 1 / 4, atol=0.06)


def square_multiplied_out(_: Names) -> bool:
    q, k = np.random.default_rng(0).normal(size=(2, 4))
    return np.isclose(-((q - k) @ (q - k)) / 2, q @ k - q @ q / 2 - k @ k / 2)


# Why divide by the root of the width


def entries_and_products(its: Names) -> list[float]:
    """Mean and variance of the entries, of their products, and so of a sum's terms."""
    q, k = array(its.query), array(its.ten_keys)
    products = (q * k).ravel()
    said = [k.mean(), k.var(), products.mean(), products.var()]
    np.testing.assert_allclose(said, [0, 1, 0, 1], atol=0.05)
    return np.abs(np.round(said)).tolist()


def sum_of_products_spreads(its: Names) -> bool:
    q, k = array(its.query), array(its.ten_keys)
    spread = (q * k).sum(axis=-1).std()
    return np.isclose(spread, sqrt(k.shape[-1]), rtol=0.1)


def derivative_is_the_matrix(_: Names) -> bool:
    scores, step = np.random.default_rng(0).normal(size=10), 1e-5
    w = softmax(scores)
    moved = [
        (softmax(scores + h) - softmax(scores - h)) / (2 * step)
        for h in step * np.eye(10)
    ]
    return np.allclose(np.diag(w) - np.outer(w, w), moved, atol=1e-8)


def rates_are_the_matrixs(_: Names) -> bool:
    a = softmax(np.random.default_rng(0).normal(size=10))
    matrix = np.diag(a) - np.outer(a, a)
    off = ~np.eye(10, dtype=bool)
    return np.allclose(matrix[off], -np.outer(a, a)[off]) and np.allclose(
        matrix.diagonal(), a - a**2
    )


def nothing_moves_in_a_dictionary(_: Names) -> list[float]:
    a = np.eye(10)[3]
    (all_of_them,) = {*(np.diag(a) - np.outer(a, a)).ravel()}
    return [a.max(), a.min(), all_of_them]


# A dictionary that is learned


def where_it_is_right(its: Names) -> list[float]:
    """As many entries as it was trained on, and the most that were tried."""
    sizes = [row[0] for row in its.shown.rows]
    assert min(row[2] for row in its.shown.rows) > 0.98
    return [its.shown.rows[0][0], max(sizes)]


def example(its: Names) -> bool:
    return its.written(np.array([15, 16, 5]), np.array([2, 6, 1])) == "p2 q6 f1"


def is_the_share_of_one_digit_of_six(its: Names) -> bool:
    """Of the entry's own, or of another that is the same by chance: about one in four."""
    size = array(its.digits).shape[1]
    expected = 1 / size + (1 - 1 / size) / 10
    found = its.shown.rows[2][0]
    return size == 6 and abs(expected - 1 / 4) < 0.01 and abs(found - expected) < 0.06


def wrong_entries(its: Names) -> bool:
    return max(its.shares) - 1 == 25


# Solutions

PRICES = np.array([50, 40, 70])


def scores_twice_as_loud(its: Names) -> list[float]:
    """Scores, exponents, powers and their sum; the weights, and each with its price; what it comes to."""
    scores = array(its.keys) @ [0, 2]
    weights = softmax(scores)
    said = np.round(weights, 3)
    by_price = np.stack([said, PRICES], axis=1).ravel()
    answer = round(weights @ PRICES)
    return [*scores, *softmax_by_hand(scores), *said, *by_price, answer]


def asked_for_nothing(its: Names) -> list[float]:
    scores = array(its.keys) @ [0, 0]
    assert {*scores} == {0}
    return [0, 0, round(softmax(scores) @ PRICES)]


def nearer_but_smaller(_: Names) -> list[float]:
    """A query and two keys; then of each key the distance and the dot product."""
    query, near, far = 1, 1, 3
    in_the_plane = np.array([[query, 0], [near, 0], [far, 0]])
    assert abs(query - near) < abs(query - far)
    assert query * near < query * far
    of_both = [abs(query - near), query * near, abs(query - far), query * far]
    return [query, near, far, *in_the_plane.ravel(), *of_both]


def within_the_distance(its: Names) -> bool:
    inside = np.abs(array(its.between)[:, None] - array(its.x)) < 0.3
    return np.array_equal(array(its.near) != 0, inside)


def weights_of_a_box(_: Names) -> list[float]:
    """One score within, whose exponent is the power's; all that are within weigh alike."""
    within, beyond = 0, -inf
    assert softmax(np.array([within, beyond, within])).tolist() == [0.5, 0, 0.5]
    return [within, within, exp(within)]


SQUARE = r"""-\frac{\lVert\mathbf{q} - \mathbf{k}\rVert^2}{2} = \mathbf{q}^\top\mathbf{k}
    - \frac{\lVert\mathbf{q}\rVert^2}{2} - \frac{\lVert\mathbf{k}\rVert^2}{2}"""
KERNEL = (
    r"\frac{\exp\left(-\frac{(q - k)^2}{2\sigma^2}\right)}"
    r"{\sum_{k'} \exp\left(-\frac{(q - k')^2}{2\sigma^2}\right)}"
)

HELD = {
    "an apple is $(2, 1)$, a lemon $(0, 3)$, a pear $(3, 0)$. What we know of the lime is $(0, 1)$": (
        "soft-look-up",
        fruits_keys_and_the_query,
    ),
    r"""apple $2 \cdot 0 + 1 \cdot 1 = 1$, lemon $0 \cdot 0 + 3 \cdot 1 = 3$,
        pear $3 \cdot 0 + 0 \cdot 1 = 0$""": ("soft-look-up", scores_by_hand),
    "$e^1 + e^3 + e^0 = 2.7 + 20.1 + 1 = 23.8$": (
        "soft-look-up",
        lambda its: softmax_by_hand(array(its.scores)),
    ),
    "so the lemon gets $20.1 / 23.8 = 0.84$": ("soft-look-up", lemons_share),
    "the apple $0.11$ and the pear $0.04$": (
        "soft-look-up",
        lambda its: np.round(array(its.weights), 2)[[0, 2]],
    ),
    """the scores are 1, 3 and 0. A softmax turns these into the weights 0.114, 0.844 and 0.042,
        drawn as bars. The prices, 50, 40 and 70 cents, averaged with these weights, make 42 cents""": (
        "soft-look-up",
        what_is_drawn,
    ),
    """At 0 all scores are equal, and the answer is the plain mean of all prices. The louder we ask,
        the more the best key takes, and at 10 the weights are those of a dictionary""": (
        "from-soft-to-hard",
        extremes_of_the_factor,
    ),
    "Ask with the apple's own $(2, 1)$, and the pear wins, by 6 to 5": (
        "soft-look-up",
        asked_for_the_apple,
    ),
    "every fruit scores 3": ("three-customers", all_score_alike),
    "even the far end keeps about a quarter of the largest weight": (
        "width-heatmaps",
        far_end_keeps,
    ),
    r"a softmax of $-(q - k)^2 / 2\sigma^2$": (
        "kernel-regression",
        scores_are_the_kernels_logarithm,
    ),
    r"of the scores $-(q - k)^2 / 2\sigma^2$": (
        "kernel-regression",
        scores_are_the_kernels_logarithm,
    ),
    KERNEL: ("kernel-regression", scores_are_the_kernels_logarithm),
    """With a width of 0.05 hardly any point counts but the nearest, and the curve follows the noise.
        With 3 it is""": ("kernel-regression", narrowest_and_widest),
    r"since $e^{-\infty} = 0$": ("setup", lambda its: exp(-inf) == 0),
    r"Multiply it out, with $\sigma = 1$": (
        "gaussian-or-dot",
        lambda its: np.allclose(
            array(its.gaussian(its.Q, its.K)),
            -((array(its.Q)[:, :, None] - array(its.K)[:, None]) ** 2).sum(-1) / 2,
            atol=1e-4,
        ),
    ),
    SQUARE: ("setup", square_multiplied_out),
    "Independent numbers, mean 0, variance 1": (
        "saturation",
        lambda its: entries_and_products(its)[:2],
    ),
    """Let the numbers in queries and keys be independent, with mean 0 and variance 1. Each product of
        two of them then has mean 0 and variance 1""": (
        "saturation",
        entries_and_products,
    ),
    r"scores spread by 1 at any width": (
        "saturation",
        sum_of_products_spreads,
    ),
    r"$\mathrm{diag}(\mathbf{a}) - \mathbf{a}\mathbf{a}^\top$": (
        "saturation",
        derivative_is_the_matrix,
    ),
    "moves at the rate $-a_i a_j$, and weight $j$ itself at $a_j - a_j^2$": (
        "saturation",
        rates_are_the_matrixs,
    ),
    "Where one weight is 1 and the others are 0, all of these are 0": (
        "saturation",
        nothing_moves_in_a_dictionary,
    ),
    "Trained on 6 entries, right on 26": ("shares", where_it_is_right),
    "It is given entries such as p2 q6 f1": ("dictionaries", example),
    "twenty-five of them still take too little": ("shares", wrong_entries),
    "says one of the six digits: that is right about one time in four": (
        "letters-in-keys-shown",
        is_the_share_of_one_digit_of_six,
    ),
    r"$\frac{1}{6} + \frac{5}{6} \cdot \frac{1}{10} = \frac{1}{4}$": (
        "letters-in-keys-shown",
        is_the_share_of_one_digit_of_six,
    ),
    # Exercises and solutions
    "ask for $(0, 2)$ instead of $(0, 1)$": (
        "soft-look-up",
        lambda its: [*2 * array(its.query), *array(its.query)],
    ),
    "What would $(0, 0)$ get?": ("soft-look-up", lambda its: 0 * array(its.query)),
    "within a distance of 0.3": ("solution-box", within_the_distance),
    "Learn the width from 20, 80 and 320 points": (
        "solution-width",
        lambda its: [*its.by_count],
    ),
    r"""The scores double, to 2, 6 and 0. $e^2 + e^6 + e^0 = 7.4 + 403.4 + 1 = 411.8$, so the weights are
        0.018, 0.980 and 0.002, and the price is
        $0.018 \cdot 50 + 0.980 \cdot 40 + 0.002 \cdot 70$, about 40 cents""": (
        "soft-look-up",
        scores_twice_as_loud,
    ),
    """For $(0, 0)$ all scores are zero: each weight is one third, and the price is the mean, 53
        cents""": ("soft-look-up", asked_for_nothing),
    """A query of 1, and keys of 1 and 3 (or, with two numbers, $(1, 0)$, $(1, 0)$ and $(3, 0)$): the first
        key is the query itself, at a distance of 0, and its dot product is 1; the second is 2 away,
        and its dot product is 3""": ("setup", nearer_but_smaller),
    r"A score of 0 within the distance and of $-\infty$ beyond: $e^0 = 1$": (
        "setup",
        weights_of_a_box,
    ),
}

EXERCISES: dict[str, str] = {}
IN_OTHER_WORDS: list[str] = []
