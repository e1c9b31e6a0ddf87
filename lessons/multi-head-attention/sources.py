"""Where the numbers and the equations of the text come from.

HELD has words of the original text, the cell that they are about, and what they are held to: the numbers
that they should have, in their order, or whether they are true. ``its`` are the names that the cells up to this
one left behind, and ``its.shown`` is what it showed.
"""

from math import exp, sqrt
from types import SimpleNamespace as Names

import numpy as np

from tests.lessons import array, softmax

# What the text itself lays down, and what no cell could contradict.
DEFINED = ["Four tokens of width 8", "cut into two heads of width 4"]


# One average is not enough

PRICES = np.array([50, 40, 70])


def keys_of_the_fruits(its: Names) -> list[float]:
    """Of apple, lemon and pear, in the order of the list."""
    assert its.fruits == ["apple", "lemon", "pear"]
    np.testing.assert_array_equal(array(its.values), PRICES)
    return array(its.keys).ravel().tolist()


def loud_query(its: Names) -> list[float]:
    """The query for a pear; its score for the pear, and for the others."""
    scores = array(its.keys) @ array(its.pear)
    (others,) = {*scores[:2]}
    return [*array(its.pear), scores[2], others]


def share_of_one_fruit(its: Names) -> list[float]:
    """In per cent, of the pear and of the lemon alike."""
    shares = [softmax(array(query)).max() for query in (its.pear, its.lemon)]
    (percent,) = {*np.round(shares, 3)}
    assert its.shown.rows[0][2] == percent
    return [100 * percent]


def asked_for_both(its: Names) -> list[float]:
    """The query; the answer, and the two prices that it is the mean of."""
    query = array(its.pear) + array(its.lemon)
    weights = softmax(array(its.keys) @ query)
    assert weights[1] == weights[2]
    answer = weights @ PRICES
    assert round(answer) == PRICES[1:].mean()
    return [*query, round(answer), PRICES[2], PRICES[1]]


def averages_lie_between(_: Names) -> list[float]:
    drawn = softmax(np.random.default_rng(0).normal(size=(1000, 3), scale=5)) @ PRICES
    assert PRICES.min() <= drawn.min()
    assert drawn.max() <= PRICES.max()
    return [PRICES.min(), PRICES.max()]


def difference_comes_nearer(_: Names) -> list[float]:
    """Not quite 30; the louder, the nearer."""
    differences = [
        (softmax(np.array([0, 0, loud])) - softmax(np.array([0, loud, 0]))) @ PRICES
        for loud in (6, 8, 12)
    ]
    assert differences == sorted(differences)
    assert round(differences[0], 1) < 30
    return [round(differences[-1])]


# Split, attend, merge


def heads_in_formulas(its: Names) -> bool:
    """Each head by its own columns, put side by side, times W_o."""
    X, *matrices = (array(each) for each in (its.X, its.W_q, its.W_k, its.W_v))
    width = its.d // its.num_heads
    each = []
    for head in range(its.num_heads):
        q, k, v = (X @ W[:, head * width :][:, :width] for W in matrices)
        each.append(softmax(q @ k.mT / np.sqrt(width)) @ v)
    Y = np.concatenate(each, axis=-1) @ array(its.W_o)
    return np.allclose(array(its.steps["output"]), Y, atol=1e-5)


def is_split_evenly(its: Names) -> bool:
    return array(its.steps["split"]).shape[-1] == its.d / its.num_heads


def widths_of_the_wrong_root(_: Names) -> list[float]:
    """The model's width, its heads, and their width."""
    return [512, 8, 512 / 8]


def costs_by_formula(its: Names) -> bool:
    """Parameters, multiply-adds and weights of a layer of width d, for n tokens."""
    n, d = np.shape(array(its.tokens))[1:]
    _, *lines = its.shown.printed.replace(",", "").splitlines()
    for heads, width, *costs in (map(int, line.split()) for line in lines):
        assert heads * width == d
        assert costs == [4 * d**2, 4 * n * d**2 + 2 * n**2 * d, heads * n**2]
    return len(lines) > 1


# One head or two


def error_near_one(its: Names) -> list[float]:
    """Of one head, the median."""
    assert [row[0] for row in its.shown.rows] == [1, 2, 4]
    return [round(its.shown.rows[0][1])]


def least_by_chance(its: Names) -> list[float]:
    """What five hundred examples may take away from the best that one head can do."""
    assert abs(its.shown.rows[0][2]) > 1 - 4 * sqrt(2 / 500)
    return [1]


def mean_variance_and_error_of_zero(its: Names) -> list[float]:
    """What always says 0 is off by the variance of a difference."""
    differences = np.random.default_rng(0).normal(size=(2, 10**5))
    error = ((differences[0] - differences[1]) ** 2).mean()
    return [1, 0, 1, 0, round(error)]


def error_of_an_average(_: Names) -> bool:
    """The mean squared error of c (w a + w' b) where a - b is right."""
    a, b = np.random.default_rng(0).normal(size=(2, 10**6))
    w, other, c = 0.7, 0.2, 1.5
    error = ((c * (w * a + other * b) - (a - b)) ** 2).mean()
    return np.isclose(error, (c * w - 1) ** 2 + (c * other + 1) ** 2, rtol=0.01)


def least_error_of_one_head(_: Names) -> list[float]:
    """The least over all weights and factors; 0 and 1 for how it comes about."""
    w, other, c = np.meshgrid(
        np.linspace(0, 1, 51), np.linspace(0, 1, 51), np.linspace(-5, 5, 201)
    )
    error = np.where(w + other <= 1, (c * w - 1) ** 2 + (c * other + 1) ** 2, np.inf)
    same_sign = (c * w) * (c * other) >= 0
    assert same_sign.all()
    return [0, 0, 0, round(float(error.min()), 6)]


# Solutions


def scores_and_shares_of_solution_1(_: Names) -> list[float]:
    scores = np.array([0, 6, 12])
    powers = np.round(np.exp(scores))
    share = powers[2] / powers.sum()
    assert round(powers.sum()) == 163159
    price = softmax(scores) @ PRICES
    assert 350 < exp(6) < 450  # about four hundred
    said = [6, powers[1], 12, powers[2], powers[2], powers.sum(), round(share, 3)]
    return [*scores, *said, 6, round(price, 1)]


def sum_and_mean(its: Names) -> list[float]:
    heads = array(its.heads)
    assert np.isclose(heads @ [1, 1], heads.sum())
    assert np.isclose(heads @ [0.5, 0.5], heads.mean())
    return [1, 1, 0.5, 0.5]


def parameters_of_512(_: Names) -> list[float]:
    """Two sides, four matrices, their parameters; biases; the heads' widths."""
    d, matrices = 512, 4
    of_matrices, of_biases = matrices * d**2, matrices * d
    counted = [d, d, matrices, d, 2, of_matrices, matrices, d, of_biases]
    return [*counted, d // 8, 8, d // 16, 16]


def says_the_most_frequent(its: Names) -> list[float]:
    """How often the digit that stands most often among four is the right one, in a hundred."""
    digits = np.random.default_rng(0).integers(10, size=(10**5, 4))
    often = (digits[:, :, None] == digits[:, None]).sum(axis=-1).max(axis=-1)
    share = round(100 * (often / 4).mean())
    one_layer = its.shown.rows[0][1]
    assert abs(one_layer - share / 100) < 0.05
    return [share]


def rows_of_the_two_layers(its: Names) -> list[float]:
    """Of the digits in the first half of the text, and of the letters in the second."""
    text = its.shown.printed.split()
    digits = [i for i in range(8) if text[i].isdigit()]
    return [*digits, *(i for i in range(8, 16) if text[i].isalpha())]


def ranks(its: Names) -> list[float]:
    """Tokens and their width; how many heads."""
    shape = array(its.X).shape[1:]
    for heads, width, rank in its.shown.rows:
        assert heads * width == shape[1]
        assert rank <= width
    return [*shape, *(row[0] for row in its.shown.rows)]


def error_of_always_zero_for_sums(its: Names) -> list[float]:
    assert its.shown.rows[0][0] < 0.5
    return [*mean_variance_and_error_of_zero(its)[-1:], 0]


HEADS = r"""$$\mathrm{head}_h = \mathrm{softmax}\left(\frac{\mathbf{Q}_h\mathbf{K}_h^\top}{\sqrt{d_h}}\right)\mathbf{V}_h,
    \qquad \mathbf{Y} = [\mathrm{head}_1, \ldots, \mathrm{head}_H]\,\mathbf{W}_o"""

HELD = {
    "an apple is $(1, 0, 0)$, a lemon $(0, 1, 0)$, a pear $(0, 0, 1)$": (
        "one-average",
        keys_of_the_fruits,
    ),
    "$(0, 0, 6)$: the score is 6 for the pear and 0 for the others": (
        "one-average",
        loud_query,
    ),
    "99.5 % of the weight": ("one-average", share_of_one_fruit),
    """The query is the sum, $(0, 6, 6)$. Pear and lemon have the same score, so each gets half, and
        the answer is 55 cents, the mean of 70 and 40""": (
        "one-average",
        asked_for_both,
    ),
    "The difference, 30 cents": ("one-average", lambda its: PRICES[2] - PRICES[1]),
    "lies between 40 and 70": ("one-average", averages_lie_between),
    "the sum $(0, 6, 6)$ does not know": (
        "one-average",
        lambda its: array(its.pear) + array(its.lemon),
    ),
    "Not quite 30": ("two-averages", difference_comes_nearer),
    HEADS: ("shapes", heads_in_formulas),
    r"$\mathbf{Q}_h = \mathbf{X}\mathbf{W}_{q,h}$": ("shapes", heads_in_formulas),
    "$d_h = d / H$": ("shapes", is_split_evenly),
    "Take a width of 512 and 8 heads: each head is 64 wide": (
        "wrong-root",
        widths_of_the_wrong_root,
    ),
    "Parameters: $4d^2$ without biases": ("costs", costs_by_formula),
    "Multiply-adds: $4nd^2 + 2n^2d$": ("costs", costs_by_formula),
    "each head has $n^2$ weights": ("costs", costs_by_formula),
    "have $4d^2$ parameters": ("costs", costs_by_formula),
    "and $4nd^2 + 2n^2d$ multiply-adds": ("costs", costs_by_formula),
    "With one head the error stays near 1": ("errors", error_near_one),
    """And 1 is no accident. The numbers are independent, with mean 0 and variance 1, so a model that
        always says 0 has an error of 2""": ("setup", mean_variance_and_error_of_zero),
    "$$(cw - 1)^2 + (cw' + 1)^2.$$": ("setup", error_of_an_average),
    r"""either $cw \geq 0$ and $cw' \geq 0$, or neither is above 0. In the first case the second square is
        at least 1""": ("setup", least_error_of_one_head),
    "which is right 38 times in a hundred": ("readers-shares", says_the_most_frequent),
    """(rows 1, 3, 5 and 7): each of them looks hardest at the place just before, where its letter stands.
        In the second layer, see the letters of the second half (rows 8, 10, 12 and 14)""": (
        "readers-maps",
        rows_of_the_two_layers,
    ),
    "an error printed as a little less than 1 is chance": ("errors", least_by_chance),
    # Exercises and solutions
    "count the parameters of a layer of width 512": (
        "setup",
        lambda its: parameters_of_512(its)[0],
    ),
    "the query $(0, 6, 12)$": (
        "setup",
        lambda its: scores_and_shares_of_solution_1(its)[:3],
    ),
    "a layer of width 512 with 8 heads have": ("setup", lambda its: [512, 512 / 64]),
    "What changes with 16 heads?": ("setup", lambda its: 512 / 32),
    "Draw 20 random tokens of width 8": (
        "solution-rank",
        lambda its: ranks(its)[:2],
    ),
    "with 1, 2, 4 and 8 heads": ("solution-rank", lambda its: ranks(its)[2:]),
    """The scores are 0, 6 and 12. $e^6 = 403$ and $e^{12} = 162755$, so the pear gets
        $162755 / 163159 = 0.998$ of the weight: 6 louder is about four hundred times the weight, and
        the answer is almost the pear's price, 69.9 cents""": (
        "setup",
        scores_and_shares_of_solution_1,
    ),
    "The sum is made by $(1, 1)$, the mean by $(0.5, 0.5)$": (
        "two-averages",
        sum_and_mean,
    ),
    r"""Four matrices of $512 \times 512$ have $4 \cdot 512^2 = 1048576$ parameters. A bias for each adds
        $4 \cdot 512 = 2048$. The number of heads does not change that. It changes the width of each
        head, 64 with 8 heads and 32 with 16""": ("setup", parameters_of_512),
    "With a width of 1, each query is a single number": (
        "solution-rank",
        lambda its: its.shown.rows[-1][1],
    ),
    "The error is small beside 2, which is that of a model that always says 0": (
        "solution-sum-shown",
        error_of_always_zero_for_sums,
    ),
}

# What names an exercise, and a cell of its solution.
EXERCISES = {
    "the subject of Exercise 3": "solution-rank",
    "like a map that no head has (Exercise 6)": "solution-mean-map",
}

# What a language says in other numbers or formulas than the others do, or in words.
IN_OTHER_WORDS: list[str] = []
