"""Where the numbers and the equations of the text come from.

HELD has words of the original text, the cell that they are about, and what they are held to: the numbers
that they should have, in their order, or whether they are true. ``its`` are the names that the cells up to this
one left behind, and ``its.shown`` is what it showed. Words for one framework's readers are held in it alone.
"""

from math import cos, exp, inf, log, pi, sin, sqrt
from types import SimpleNamespace as Names
from typing import Any

import numpy as np

from d2l_compat._shared.arrays import to_numpy
from tests.lessons import array, softmax

# What the text itself lays down, and what no cell could contradict.
DEFINED = [
    "(A word that the figure does not know is a bit of both, $(1, 1)$.)",
    "positions are counted from 0",
    r"position $i = 0, 1, 2, \ldots$",
    r"in pairs, numbered $l = 0, 1, 2, \ldots$",
    "(The paper writes $PE(pos, 2i)$",
    r"With $\mathbf{M} = \mathbf{W}_q\mathbf{W}_k^\top$",
    "a query meets two keys, with the scores $s$ and 0",
    "The two keys are now $(1, 0)$ and $(0, 1)$",
]


def slope(f: Any, x: float, step: float = 1e-4) -> Any:
    """The derivative, by finite differences."""
    return (f(x + step) - f(x - step)) / (2 * step)


# One word looks around


def place(its: Names, name: str) -> int:
    return its.sentence.split().index(name)


def word(its: Names, name: str) -> np.ndarray:
    return array(its.X)[place(its, name)]


def of_words(*names: str) -> Any:
    """The vectors of these words, one after the other."""
    return lambda its: np.concatenate([word(its, name) for name in names])


def powers(its: Names) -> list[float]:
    """Of the scores 3, 1 and the zeros, and their sum."""
    scores = array(its.scores)
    *_, one, three = sorted(scores)
    zeros = (scores == 0).sum()
    terms = [exp(three), exp(one), zeros]
    return [three, one, zeros, 0, *np.round(terms, 1), round(sum(terms), 1)]


def share_of_the_cat(its: Names) -> list[float]:
    of_cat, everything = exp(max(array(its.scores))), sum(np.exp(array(its.scores)))
    share = array(its.weights)[place(its, "cat")]
    assert abs(of_cat / everything - share) < 1e-5
    return [round(of_cat, 1), round(everything, 1), round(share, 2)]


def shares_of_the_others(its: Names) -> list[float]:
    """Of "it", and of those whose score is 0: what is shared out by hand, and the weights."""
    scores, weights = array(its.scores), array(its.weights)
    total, shares = (
        np.exp(scores).sum(),
        [place(its, "it"), *np.flatnonzero(scores == 0)],
    )
    np.testing.assert_allclose(
        np.exp(scores[shares]) / total, weights[shares], atol=1e-5
    )
    of_it, *others = shares
    (other,) = {round(weights[i], 3) for i in others}
    sizes = round(exp(scores[of_it]), 1), round(exp(scores[others[0]]))
    return [
        sizes[0],
        round(total, 1),
        round(weights[of_it], 2),
        sizes[1],
        round(total, 1),
        other,
    ]


def average_by_hand(its: Names, column: int, *names: str) -> list[float]:
    """The weights of these words, each with its number in this column, and what the output has."""
    digits = 3 if column else 2
    output = round(array(its.output)[column], 2)
    factors = [
        (round(array(its.weights)[place(its, name)], digits), word(its, name)[column])
        for name in names
    ]
    return [*np.ravel(factors), output]


def all_words_are_averaged(its: Names) -> bool:
    X = array(its.X)
    weights = softmax(X @ X.T)
    return np.allclose(its.shown.rows, np.hstack([weights, weights @ X]), atol=0.0051)


def roles_are_products(its: Names) -> bool:
    X, Q, K, V = map(array, (its.X, its.Q, its.K, its.V))
    W_q, W_k, W_v = map(array, (its.W_q, its.W_k, its.W_v))
    return np.allclose(np.vstack([Q, K, V]), np.vstack([X @ W_q, X @ W_k, X @ W_v]))


def score(its: Names, query: str, key: str) -> float:
    return array(its.Q)[place(its, query)] @ array(its.K)[place(its, key)]


def query_of_purred(its: Names) -> list[float]:
    query = array(its.Q)[place(its, "purred")]
    vectors = word(its, "purred"), query, word(its, "cat")
    return [*np.concatenate(vectors), score(its, "purred", "cat")]


# Scaled dot products, many heads, order


def mean_and_variance(x: np.ndarray) -> list[float]:
    return [abs(x.mean().round(1)), x.var().round(1)]


def entries_and_their_products(its: Names) -> list[float]:
    queries, keys = array(its.queries), array(its.keys)
    both = mean_and_variance(queries), mean_and_variance(keys)
    assert both[0] == both[1]
    return [*both[0], *mean_and_variance(queries * keys)]


def spread_at_any_width(its: Names) -> set[float]:
    return np.unique([array(scores).std().round() for scores in its.scaled])


def slopes_of_two_weights(_: Names) -> list[float]:
    def at(w: float) -> float:
        return round(slope(lambda s: 1 / (1 + exp(-s)), log(w / (1 - w))), 4)

    assert np.isclose(at(0.3), 0.3 * (1 - 0.3), atol=1e-4)
    return [1, 1, at(0.5), at(0.99), 0.99]


def derivative_is_the_matrix(its: Names) -> bool:
    scores = array(its.scaled[0])[0]
    w = softmax(scores)
    columns = [
        slope(lambda x, i=i: softmax(scores + x * np.eye(10)[i]), 0) for i in range(10)
    ]
    return np.allclose(
        np.stack(columns, axis=1), np.diag(w) - np.outer(w, w), atol=1e-6
    )


def narrow_heads(its: Names) -> list[int]:
    d, heads = its.num_hiddens, its.num_heads
    width = d // heads
    return [d, heads, width, width, d, width, d, heads * width]


def layer_is_the_formula(its: Names) -> bool:
    """As the cell found that computes it by hand."""
    return its.shown.rows[-1] == [0]


def shuffling_commutes(its: Names) -> bool:
    (_, without), (_, with_mask) = its.shown.rows
    return without == 0 and with_mask > 0


# CNN, RNN, self-attention


def rnn_is_the_formula(its: Names) -> bool:
    W_xh, W_hh = (
        array(W.weight.data().T if hasattr(W, "weight") else W)  # Gluon's are layers
        for W in (its.W_xh, its.W_hh)
    )
    x, y = array(its.X)[0], array(its.rnn(its.X))[0]
    return np.allclose(y[1:], np.tanh(x[1:] @ W_xh + y[:-1] @ W_hh), atol=1e-5)


def cost(its: Names, layer: Any, n: int) -> int:
    return its.d2l.multiply_adds(layer, its.d2l.zeros((1, n, its.d)))


def waiting(its: Names, layer: Any, n: int) -> int:
    return its.d2l.longest_chain(layer, its.d2l.zeros((1, n, its.d)))


def cnn_costs(its: Names, n: int = 9) -> bool:
    """By its formulas: multiplications, what must wait, and the layers that join the ends."""
    return (
        cost(its, its.cnn, n) == its.k * n * its.d**2
        and waiting(its, its.cnn, n) == 1
        and its.layers_to_cross(n, 1) == 2 * (n - 1) / (its.k - 1)
    )


def rnn_costs(its: Names, n: int = 9) -> bool:
    """A product for the state and one for the input, in each step."""
    return cost(its, its.rnn, n) == n * 2 * its.d**2 and waiting(its, its.rnn, n) == n


def self_attention_costs(its: Names, n: int = 9) -> bool:
    d, layer = its.d, its.self_attention
    same = waiting(its, layer, n) == waiting(its, layer, 2 * n)
    return same and cost(its, layer, n) == 4 * n * d**2 + 2 * n**2 * d


def halves_are_equal(its: Names) -> bool:
    """At n = 2d the projections of self-attention cost as much as all the rest."""
    n, d = 2 * its.d, its.d
    return cost(its, its.self_attention, n) == 2 * (4 * n * d**2)


def gaps_reach(its: Names) -> bool:
    """(3^L - 1)/2 places in L layers."""
    return all(its.layers_to_cross((3**L - 1) // 2 + 1, 3) == L for L in (1, 2, 3, 4))


def weights_that_fill_four_gibibytes(its: Names) -> list[float]:
    bytes_each = to_numpy("weights", its.weights).itemsize
    return [sqrt(4 * 2**30 / bytes_each), bytes_each, 4]


# Positional encoding


def encoding_is_sine_and_cosine(its: Names) -> bool:
    P, d = array(its.P), its.width
    i, l = np.indices((its.num_steps, d // 2))
    angle = i / 10000 ** (2 * l / d)
    return np.allclose(P[i, 2 * l], np.sin(angle), atol=1e-5) and np.allclose(
        P[i, 2 * l + 1], np.cos(angle), atol=1e-5
    )


def hands_turn_by_one_and_a_hundredth(its: Names) -> bool:
    sines = array(its.sinusoids(2, 4))[1, 0::2]
    return np.allclose(np.arcsin(sines), [1, 0.01], atol=1e-5)


def nearly_whole_turns(_: Names) -> int:
    """Up to 60, the position whose first hand is closest to where it was at the start."""
    return min(range(1, 60), key=lambda i: abs(i / (2 * pi) - round(i / (2 * pi))))


def wavelengths_are_turns(its: Names) -> bool:
    (turns,), omega = its.shown.rows, array(its.omega)
    formula = 10000 ** (-2 * np.arange(its.width // 2) / its.width)
    return (
        np.allclose(omega, formula, rtol=1e-5)
        and turns == np.round(2 * pi / formula).tolist()
    )


def wavelengths_grow(its: Names) -> bool:
    (turns,) = its.shown.rows
    return (
        turns[0] == round(2 * pi) == 6
        and turns == sorted(turns)
        and turns[-1] < 1e4 * 2 * pi
    )


def products_are_linear(_: Names) -> bool:
    """Of random content, positions and matrices: a sum goes through as its parts do."""
    rng = np.random.default_rng(0)
    (x, y), (p, q), M = (
        rng.normal(size=(2, 5)),
        rng.normal(size=(2, 5)),
        rng.normal(size=(5, 5)),
    )
    terms = x @ M @ y + x @ M @ q + p @ M @ y + p @ M @ q
    return np.allclose((x + p) @ M, x @ M + p @ M) and np.isclose(
        (x + p) @ M @ (y + q), terms
    )


def dot_product_is_a_sum_of_cosines(its: Names) -> bool:
    d, products = its.width, array(its.products)
    i, j = np.indices(products.shape)
    cosines = sum(np.cos((i - j) / 10000 ** (2 * l / d)) for l in range(d // 2))
    return np.allclose(products, cosines, atol=1e-4)


def width_columns_and_their_pair(its: Names) -> list[int]:
    """Columns of P as the legend names them; the first two are a pair, and that faster than the next."""
    first, second, *others = (
        int(name.removeprefix("Col ")) for name in its.shown.legend
    )
    turns = np.abs(np.diff(array(its.P), axis=0)).max(axis=0)  # in one step
    assert first // 2 == second // 2
    assert min(turns[[first, second]]) > max(turns[others])
    return [its.width, first, second, first // 2, *others]


# Relative position


def pair_is_turned_by_the_matrix(its: Names) -> bool:
    P, delta = array(its.P), 5
    for l, omega in enumerate(array(its.omega)):
        c, s = cos(delta * omega), sin(delta * omega)
        pairs = P[:, 2 * l : 2 * l + 2]
        if not np.allclose(
            pairs[:-delta] @ np.array([[c, s], [-s, c]]).T, pairs[delta:], atol=1e-5
        ):
            return False
    return True


def looks_back(its: Names) -> float:
    """By how many places each query from the sixth on looks back."""
    weights = array(its.looking_back)[5:]
    (places,) = {*(np.arange(5, 20) - weights.argmax(axis=1))}
    return places


def queries_are_rows_five_back(its: Names) -> bool:
    return np.allclose(array(its.Q)[5:], array(its.P)[:15], atol=1e-5)


def scores_are_turned_by_the_difference(its: Names) -> bool:
    """q R(j - i) k, by complex numbers: a pair is one, and a turn is a product."""
    q, k = (array(x)[0] for x in (its.q, its.k_))
    q, k = (x[0::2] + 1j * x[1::2] for x in (q, k))
    i, j = np.indices((60, 60))
    turns = np.exp(-1j * (j - i)[..., None] * array(its.omega))
    return np.allclose(
        (q.conj() * turns * k).sum(axis=-1).real, array(its.scores), atol=1e-3
    )


# What a trained model looks at, and past the end


def the_task(its: Names) -> list[float]:
    """The others from the least to the greatest; those that are there once; and what is asked for."""
    tokens, labels = array(its.tokens), array(its.labels)
    others = tokens[tokens > 1]
    once = [token for token in range(10) if ((tokens == token).sum(axis=1) == 1).all()]
    first = [
        token for token in once if (labels == is_before(tokens, token, 1 - token)).all()
    ]
    return [others.min(), others.max(), *once, *first, *(1 - token for token in first)]


def is_before(tokens: np.ndarray, one: int, other: int) -> np.ndarray:
    return (tokens == one).argmax(axis=1) < (tokens == other).argmax(axis=1)


def example(its: Names) -> list[float]:
    above, below = array(its.example)
    assert above.tolist().index(0) < above.tolist().index(1)
    assert below[-1] == 0
    return [*above, 0, 1, *below, 0]


def where_stripes_stand(its: Names) -> list[int]:
    """The keys of the 0 and the 1, above and below; most heads' largest weights are there."""
    keys = [np.flatnonzero(row < 2) for row in array(its.example)]
    largest = array(its.weights).mean(axis=2).argmax(axis=-1)  # (sequences, heads)
    there = [
        np.isin(heads, of_row) for heads, of_row in zip(largest, keys, strict=True)
    ]
    assert np.mean(there) > 0.5
    return [int(key) for of_row in keys for key in of_row]


def shares_of_heads(its: Names) -> np.ndarray:
    """Of the 0, of the 1, of the first and of the last: shape (heads, 4)."""
    return np.array([row[:4] for row in its.shown.rows if len(row) == 5])


def some_heads_follow_one_token(its: Names) -> bool:
    return (shares_of_heads(its)[:, :2] > 0.8).any()


def heads_of_one_token_follow_it_wherever_it_stands(its: Names) -> bool:
    """As often where it comes first as where it comes last; and there is such a head."""
    followers = [row for row in shares_of_heads(its) if max(row[:2]) > 0.8]
    return bool(followers) and all(
        abs(first - last) < 0.2 for _, _, first, last in followers
    )


def last_one_tells(its: Names) -> bool:
    """Where the last is a 1, the 0 came first, and nowhere else."""
    tokens = array(its.tokens)
    last_is_one = is_before(tokens, 0, 1)
    return np.array_equal(array(its.labels), last_is_one)


def shares(its: Names) -> dict[str, np.ndarray]:
    return {kind: array(runs) for kind, runs in its.results.items()}


def where_all_are_right(its: Names) -> list[int]:
    least = np.min([*shares(its).values()], axis=(0, 1))
    return [n for n, share in zip(its.test_lengths, least, strict=True) if share > 0.98]


def where_rotary_is_far_ahead(its: Names) -> list[int]:
    """The lengths at which it is, and those at which it guesses."""
    medians = {kind: np.median(runs, axis=0) for kind, runs in shares(its).items()}
    others = np.maximum(medians["fixed"], medians["learned"])
    beats = medians["rotary"] > others + 0.15
    guesses = abs(medians["rotary"] - 0.5) < 0.1
    lengths = np.array(its.test_lengths)
    return [*lengths[beats], *lengths[guesses]]


def zero_is_seen_by_the_one_where_it_came_first(its: Names) -> bool:
    tokens, visible = array(its.tokens), np.tri(8) > 0  # under the causal mask
    of_one = visible[(tokens == 1).argmax(axis=1)]
    sees = (of_one & (tokens == 0)).any(axis=1)
    return np.array_equal(sees, array(its.labels) > 0)


# Solutions


def weight_of_nine_tenths(_: Names) -> list[float]:
    s = log(9)
    return [round(exp(s) / (exp(s) + 1), 6), round(exp(s)), 9, round(s, 1)]


def queries_for_nine_tenths(_: Names) -> list[float]:
    keys, s = np.eye(2), log(9)
    for c in (-1, 0, 2.5):
        assert np.isclose(softmax(keys @ [s + c, c])[0], 0.9)
    return [*np.round(keys @ [s, 0], 1), 0, round(s, 1)]


def zero_and_one_are_exchanged(its: Names) -> bool:
    tokens = its.tokens
    there, back = array(tokens), array(its.mirrored(tokens))
    return np.array_equal(back, np.choose(there.astype(int), [1, 0, *range(2, 10)]))


def factor_adds_to_the_slope(its: Names) -> bool:
    """The slope of the tanh alone is less than 1; with the factor, less again, but not by all of it."""
    rnn, shrunk, _ = (np.diff(np.log(y)).mean() for _, y in its.shown.curves)
    return 0.8 * exp(rnn) < exp(shrunk) < exp(rnn) < 1


ROLES = r"\mathbf{Q} = \mathbf{X}\mathbf{W}_q"
ENCODING = r"""p_{i, 2l} = \sin\left(\frac{i}{10000^{2l/d}}\right), \qquad
    p_{i, 2l+1} = \cos\left(\frac{i}{10000^{2l/d}}\right)"""
MATRIX = r"""\begin{bmatrix} \cos(\delta\omega_l) & \sin(\delta\omega_l) \\
    -\sin(\delta\omega_l) & \cos(\delta\omega_l) \end{bmatrix}
    \begin{bmatrix} p_{i,2l} \\ p_{i,2l+1} \end{bmatrix}"""

HELD = {
    # One word looks around
    """The cat is very much a thing, $(3, 0)$; "it" only a little, $(1, 0)$; "sat" and "purred" are
        actions, $(0, 2)$; "the" and "because" are neither, $(0, 0)$""": (
        "six-words",
        of_words("cat", "it", "sat", "the"),
    ),
    "the scores are 0, 3, 0, 0, 1, 0": ("six-words", lambda its: array(its.scores)),
    "$e^3 + e^1 + 4e^0 = 20.1 + 2.7 + 4 = 26.8$": ("six-words", powers),
    "so the cat gets $20.1 / 26.8 = 0.75$": ("six-words", share_of_the_cat),
    """"it" itself $2.7 / 26.8 = 0.10$, and each of the other four $1 / 26.8 = 0.037$""": (
        "six-words",
        shares_of_the_others,
    ),
    r"Its first number is $0.75 \cdot 3 + 0.10 \cdot 1 = 2.35$": (
        "six-words",
        lambda its: average_by_hand(its, 0, "cat", "it"),
    ),
    r"the two actions add $0.037 \cdot 2$ each, which makes $2 \cdot 0.037 \cdot 2 = 0.15$": (
        "six-words",
        lambda its: [
            *average_by_hand(its, 1, "sat")[:2],
            2,
            *average_by_hand(its, 1, "purred"),
        ],
    ),
    "which started at $(1, 0)$, has come most of the way to $(3, 0)$": (
        "six-words",
        of_words("it", "cat"),
    ),
    r"\mathbf{Y} = \mathrm{softmax}(\mathbf{X}\mathbf{X}^\top)\,\mathbf{X}": (
        "all-words",
        all_words_are_averaged,
    ),
    "are zero, so all their scores are 0": (
        "all-words",
        lambda its: np.unique(array(its.X) @ word(its, "the")),
    ),
    "its score with itself is 9": (
        "all-words",
        lambda its: word(its, "cat") @ word(its, "cat"),
    ),
    rf"""${ROLES}$, $\mathbf{{K}} = \mathbf{{X}}\mathbf{{W}}_k$,
        $\mathbf{{V}} = \mathbf{{X}}\mathbf{{W}}_v$""": (
        "three-roles",
        roles_are_products,
    ),
    rf"""{ROLES}, \quad \mathbf{{K}} = \mathbf{{X}}\mathbf{{W}}_k, \quad
        \mathbf{{V}} = \mathbf{{X}}\mathbf{{W}}_v""": (
        "three-roles",
        roles_are_products,
    ),
    r"""This $\mathbf{W}_q$ turns "purred", $(0, 2)$, into the query $(2, 0)$; with the cat's key,
        $(3, 0)$, that scores 6""": ("three-roles", query_of_purred),
    """Its score with the cat is 6, and the cat's with "purred" is 0""": (
        "three-roles",
        lambda its: [score(its, "purred", "cat"), score(its, "cat", "purred")],
    ),
    # Scaled dot products, many heads, order
    r"\mathbf{Y} = \mathrm{softmax}\left(\frac{\mathbf{Q}\mathbf{K}^\top}{\sqrt{d}}\right)\mathbf{V}": (
        "by-hand-difference",
        layer_is_the_formula,
    ),
    "Entries independent, with mean 0 and variance 1": (
        "saturation",
        lambda its: mean_and_variance(array(its.keys)),
    ),
    """let their entries be independent, with mean 0 and variance 1. The product of two entries then
        has mean 0 and variance 1 as well""": (
        "saturation",
        entries_and_their_products,
    ),
    "they spread by 1 at any width": ("saturation", spread_at_any_width),
    """Of two weights $w$ and $1 - w$, the first has the derivative $w(1 - w)$ with respect to its own
        score: that is 0.25 for half and half, and 0.0099 at $w = 0.99$""": (
        "setup",
        slopes_of_two_weights,
    ),
    r"make a matrix, $\mathrm{diag}(\mathbf{w}) - \mathbf{w}\mathbf{w}^\top$": (
        "saturation",
        derivative_is_the_matrix,
    ),
    "2 sequences of 4 tokens (3 and 2 of them real), $d = 100$, 5 heads": (
        "shape-check",
        lambda its: [
            *its.X.shape[:2],
            *array(its.valid_lens),
            its.num_hiddens,
            its.num_heads,
        ],
    ),
    """With $d = 100$ and 5 heads, each works in 20 dimensions (and the $d$ under the root is the
        head's, 20). Five matrices from 100 numbers to 20, side by side, are one matrix from 100 to
        100""": ("by-hand", narrow_heads),
    r"since $e^{-\infty} = 0$": ("setup", lambda its: exp(-inf) == 0),
    "The first sequence, of 3 real tokens, is above, the second, of 2, below": (
        "weights-heatmaps",
        lambda its: array(its.valid_lens),
    ),
    r"""\mathrm{Attention}(\boldsymbol{\Pi}\mathbf{X})
        = \boldsymbol{\Pi}\,\mathrm{Attention}(\mathbf{X})""": (
        "equivariance",
        shuffling_commutes,
    ),
    r"""\mathrm{softmax}\left(\frac{\boldsymbol{\Pi}\mathbf{Q}\mathbf{K}^\top\boldsymbol{\Pi}^\top}{\sqrt{d}}\right)\boldsymbol{\Pi}\mathbf{V}
        = \boldsymbol{\Pi}\,\mathrm{softmax}\left(\frac{\mathbf{Q}\mathbf{K}^\top}{\sqrt{d}}\right)\boldsymbol{\Pi}^\top\boldsymbol{\Pi}\mathbf{V}
        = \boldsymbol{\Pi}\mathbf{Y}""": ("equivariance", shuffling_commutes),
    # CNN, RNN, self-attention
    r"$\mathbf{y}_i = \tanh(\mathbf{x}_i\mathbf{W}_{xh} + \mathbf{y}_{i-1}\mathbf{W}_{hh})$": (
        "three-layers",
        rnn_is_the_formula,
    ),
    "kernel size 3; all five inputs reach the unit above x3": (
        "reach",
        lambda its: [its.k, its.shown.rows[0][0]],
    ),
    "kernel size 3; the unit above x3": (
        "reach",
        lambda its: [its.k, its.shown.rows[0][0]],
    ),
    "inputs x1 to x5 are connected": (
        "reach",
        lambda its: [its.shown.rows[0][1], its.shown.rows[0][-1]],
    ),
    r"| CNN, kernel size $k$ | $\mathcal{O}(k n d^2)$ | $\mathcal{O}(1)$ | $\mathcal{O}(n/k)$ |": (
        "solution-dilated",
        cnn_costs,
    ),
    r"| RNN | $\mathcal{O}(n d^2)$ | $\mathcal{O}(n)$ | $\mathcal{O}(n)$ |": (
        "multiply-adds",
        rnn_costs,
    ),
    r"| Self-attention | $\mathcal{O}(n^2 d)$ | $\mathcal{O}(1)$ | $\mathcal{O}(1)$ |": (
        "multiply-adds",
        self_attention_costs,
    ),
    r"A CNN's $\mathcal{O}(1)$": (
        "sequential-operations",
        lambda its: waiting(its, its.cnn, 9),
    ),
    r"self-attention takes $4nd^2 + 2n^2d$ multiply-adds": (
        "multiply-adds",
        self_attention_costs,
    ),
    r"$k d^2$ multiplications, for each of $n$ outputs": (
        "solution-dilated",
        cnn_costs,
    ),
    r"""by $k - 1$: after $(n-1)/(k-1)$ layers one unit sees both ends, and after twice as many
        the first input reaches the last output""": ("solution-dilated", cnn_costs),
    r"$\mathcal{O}(d^2)$, $n$ times": ("multiply-adds", rnn_costs),
    r"$n^2 d$ each time": ("multiply-adds", self_attention_costs),
    r"$n^2 d$ leaves out the projections. With them self-attention costs $4nd^2 + 2n^2d$": (
        "multiply-adds",
        self_attention_costs,
    ),
    r"only once $n$ exceeds $2d$": ("multiply-adds", halves_are_equal),
    "to *store* $n^2$ weights for each head": (
        "weights-heatmaps",
        lambda its: its.weights.shape == (2, its.num_heads, 4, 4),
    ),
    "$x^2$ has the derivative zero at $x = 0$": (
        "setup",
        lambda its: [2, slope(lambda x: x**2, 0)],
    ),
    r"two layers with $k = 3$ join $\mathbf{x}_1$ and $\mathbf{x}_5$": (
        "reach",
        lambda its: [its.k, its.shown.rows[0][1], its.shown.rows[0][-1]],
    ),
    r"the unit in the middle, $\mathbf{y}_3$": (
        "reach",
        lambda its: its.shown.rows[0][0],
    ),
    r"For $\mathbf{x}_1$ to act on $\mathbf{y}_5$": (
        "reach",
        lambda its: [its.shown.rows[-1][2], its.shown.rows[-1][1]],
    ),
    "Multiply-adds for $d = 16$": ("multiply-adds", lambda its: its.d),
    "Here $d = 16$.": ("multiply-adds", lambda its: its.d),
    "$knd^2$": ("solution-dilated", cnn_costs),
    "$2nd^2$": ("multiply-adds", rnn_costs),
    "and $4nd^2 + 2n^2d$": ("multiply-adds", self_attention_costs),
    "At $n = 2d = 32$ the two parts of self-attention's cost are equal": (
        "multiply-adds",
        lambda its: halves_are_equal(its) and 2 * its.d == 32,
    ),
    "at $n = 32768$ those of a single head, as 4-byte numbers, would fill 4 GiB": (
        "weights-heatmaps",
        weights_that_fill_four_gibibytes,
    ),
    # Positional encoding
    ENCODING: ("column-plot", encoding_is_sine_and_cosine),
    "the first three rows for $d = 4$": (
        "sinusoids",
        lambda its: np.unique([len(row) - 1 for row in its.shown.rows]),
    ),
    "the first hand turns by one radian per position, the second by a hundredth": (
        "sinusoids",
        hands_turn_by_one_and_a_hundredth,
    ),
    "has $d = 512$": ("scale-and-sum", lambda its: its.d_model),
    "with variance $1/d$, its rows have a length (a norm) near 1": (
        "scale-and-sum",
        lambda its: [1, round(float(its.lengths[0]))],
    ),
    r"$\sin^2 + \cos^2 = 1$": (
        "setup",
        lambda its: np.isclose(sin(2) ** 2 + cos(2) ** 2, 1),
    ),
    r"its length is $\sqrt{d/2}$ at every position, which is 16 here": (
        "scale-and-sum",
        lambda its: [2, sqrt(its.d_model / 2)],
    ),
    "PyTorch's entries have variance 1 to begin with": (
        "scale-and-sum",
        lambda its: round(its.default_length**2 / its.d_model),
    ),
    "Flax's entries have variance $1/d$": (
        "scale-and-sum",
        lambda its: round(float(its.default_length)),
    ),
    "MLX's entries have variance $1/d$": (
        "scale-and-sum",
        lambda its: round(float(its.default_length)),
    ),
    r"by $\sqrt{d}$, which is about 22.6, and compare it with the encoding's 16": (
        "scale-and-sum",
        lambda its: [round(sqrt(its.d_model), 1), round(float(its.lengths[2]))],
    ),
    "$d = 32$: columns 6 and 7, the pair $l = 3$, swing faster than columns 8 and 9": (
        "column-plot",
        width_columns_and_their_pair,
    ),
    "for $d = 32$. Columns 6 and 7, the pair $l = 3$, swing faster than columns 8 and 9": (
        "column-plot",
        width_columns_and_their_pair,
    ),
    "over 60 positions": ("encoding-heatmap", lambda its: its.num_steps),
    "their sines are still near 0 and their cosines near 1": (
        "encoding-heatmap",
        lambda its: array(its.P)[-1, -2:].round(),
    ),
    r"$\omega_l = 10000^{-2l/d}$": ("wavelengths", wavelengths_are_turns),
    r"comes round after $2\pi / \omega_l$ positions": (
        "wavelengths",
        wavelengths_are_turns,
    ),
    r"From $2\pi$, some six positions, the wavelengths grow towards $10000 \cdot 2\pi$": (
        "wavelengths",
        wavelengths_grow,
    ),
    "*Why 10000?*": (
        "wavelengths",
        lambda its: max(x for x in its.shown.constants if isinstance(x, int | float)),
    ),
    "as after 44 positions": ("setup", nearly_whole_turns),
    r"""$(\mathbf{x} + \mathbf{p})\mathbf{W} = \mathbf{x}\mathbf{W} + \mathbf{p}\mathbf{W}$""": (
        "setup",
        products_are_linear,
    ),
    r"""\mathbf{p}_i^\top \mathbf{p}_j = \sum_{l} \cos\left(\frac{i - j}{10000^{2l/d}}\right)""": (
        "dot-products",
        dot_product_is_a_sum_of_cosines,
    ),
    r"$\sin a \sin b + \cos a \cos b = \cos(a - b)$": (
        "setup",
        lambda its: np.isclose(sin(3) * sin(2) + cos(3) * cos(2), cos(3 - 2)),
    ),
    "It is largest for $i = j$, where every cosine is 1 and the sum is $d/2$": (
        "dot-products",
        lambda its: np.isclose(array(its.products).max(), its.width / 2),
    ),
    r"""(\mathbf{x}_i + \mathbf{p}_i)\,\mathbf{M}\,(\mathbf{x}_j + \mathbf{p}_j)^\top
        = \mathbf{x}_i\mathbf{M}\mathbf{x}_j^\top + \mathbf{x}_i\mathbf{M}\mathbf{p}_j^\top
        + \mathbf{p}_i\mathbf{M}\mathbf{x}_j^\top + \mathbf{p}_i\mathbf{M}\mathbf{p}_j^\top""": (
        "setup",
        products_are_linear,
    ),
    # Relative position
    rf"""{MATRIX}
        = \begin{{bmatrix}} p_{{i+\delta,2l}} \\ p_{{i+\delta,2l+1}} \end{{bmatrix}}""": (
        "rotation",
        pair_is_turned_by_the_matrix,
    ),
    rf"""{MATRIX}
        &= \begin{{bmatrix}} \cos(\delta\omega_l)\sin(i\omega_l) + \sin(\delta\omega_l)\cos(i\omega_l) \\
        -\sin(\delta\omega_l)\sin(i\omega_l) + \cos(\delta\omega_l)\cos(i\omega_l) \end{{bmatrix}} \\
        &= \begin{{bmatrix}} \sin((i+\delta)\omega_l) \\ \cos((i+\delta)\omega_l) \end{{bmatrix}}
        = \begin{{bmatrix}} p_{{i+\delta,2l}} \\ p_{{i+\delta,2l+1}} \end{{bmatrix}}""": (
        "rotation",
        pair_is_turned_by_the_matrix,
    ),
    r"the first numbers of row 3, the same row turned by $\delta = 5$, and row 8": (
        "rotation",
        lambda its: [row[-1] for row in its.shown.rows[:3]],
    ),
    r"""turns every position 5 back: from the sixth on, each query looks hardest at the token 5
        before it""": ("five-back", lambda its: [looks_back(its)] * 2),
    r"""be the turn by $-5$, so that the query at position $i$ is $\mathbf{p}_{i-5}$""": (
        "five-back",
        queries_are_rows_five_back,
    ),
    "most similar to the one at $j = i - 5$": ("five-back", looks_back),
    "each query from $i = 5$ on": ("five-back", looks_back),
    "the last two of them settle for key 0": (
        "five-back",
        lambda its: np.unique(array(its.looking_back)[3:5].argmax(axis=1)),
    ),
    r"the factor 4 in $\mathbf{W}_k$": (
        "five-back",
        lambda its: np.unique(array(its.W_k).diagonal()),
    ),
    r"""(\mathbf{R}_i\mathbf{q})^\top(\mathbf{R}_j\mathbf{k})
        = \mathbf{q}^\top\mathbf{R}_{j-i}\,\mathbf{k}""": (
        "rotary-scores",
        scores_are_turned_by_the_difference,
    ),
    r"""(\mathbf{R}_i\mathbf{q})^\top(\mathbf{R}_j\mathbf{k})
        = \mathbf{q}^\top\mathbf{R}_i^\top\mathbf{R}_j\,\mathbf{k}
        = \mathbf{q}^\top\mathbf{R}_{j-i}\,\mathbf{k}""": (
        "rotary-scores",
        scores_are_turned_by_the_difference,
    ),
    # What a trained model looks at
    "Tokens 2 to 9 with one 0 and one 1 among them: does the 0 come before the 1?": (
        "found",
        the_task,
    ),
    """among the tokens 2 to 9 there is one 0 and one 1. Does the 0 come before the 1?""": (
        "found",
        the_task,
    ),
    """5 3 0 7 2 1 9 4, where the 0 comes before the 1, and 5 1 3 7 2 6 9 0, where it comes
        after""": (
        "train",
        lambda its: example(its)[:-1],
    ),
    """most of these stripes stand where the 0 or the 1 does, at keys 2 and 5 above and at 1 and 7
        below (counted from 0)""": (
        "trained-maps",
        lambda its: [0, 1, *where_stripes_stand(its), 0],
    ),
    "each head gives to the 0, to the 1": (
        "found-shares",
        lambda its: its.shown.rows[0],
    ),
    "Some heads follow the 0 or the 1": ("found-shares", some_heads_follow_one_token),
    """A head with a share near 1 in one of the first two columns follows the 0, or the 1, wherever
        it stands""": ("found-shares", heads_of_one_token_follow_it_wherever_it_stands),
    "If the last one is a 1, the 0 came first": ("found", last_one_tells),
    # Past the end
    "Trained on 8 tokens, tested on up to 64": (
        "past-the-end",
        lambda its: [its.test_lengths[0], its.test_lengths[-1]],
    ),
    "train readers on sequences of 8 tokens, and test them on up to 64": (
        "past-the-end",
        lambda its: [its.test_lengths[0], its.test_lengths[-1]],
    ),
    "On 8 tokens all of them are right": (
        "past-the-end",
        where_all_are_right,
    ),
    """The readers with RoPE are far ahead of both on 16 and on 32 tokens, but on 64 most of them,
        too, are little better than chance""": (
        "past-the-end",
        where_rotary_is_far_ahead,
    ),
    """Take the token 1. Under the mask it sees the 0 exactly when the 0 came before it. So what a head
        that looks for the 0 brings back to the 1""": (
        "found",
        zero_is_seen_by_the_one_where_it_came_first,
    ),
    "a cost that grows with $n^2$": ("multiply-adds", self_attention_costs),
    # Exercises and solutions
    "weight of 0.9": ("setup", lambda its: weight_of_nine_tenths(its)[0]),
    "The weight is $e^s / (e^s + 1)$": (
        "setup",
        lambda its: np.isclose(
            softmax(np.array([0.7, 0]))[0], exp(0.7) / (exp(0.7) + 1)
        ),
    ),
    r"It is 0.9 where $e^s = 9$, so $s = \ln 9$, about 2.2": (
        "setup",
        weight_of_nine_tenths,
    ),
    """The query $(2.2, 0)$ has this score with the first key and 0 with the second. Every
        $(2.2 + c, c)$""": ("setup", queries_for_nine_tenths),
    "with its 0 and 1 exchanged": ("solution-mirrored", zero_and_one_are_exchanged),
    "Multiply the RNN's recurrent matrix by 0.8": (
        "solution-fading",
        lambda its: 0.8 in its.shown.constants,
    ),
    "The cost is one issue: $n^2$": ("multiply-adds", self_attention_costs),
    "along 24 positions": ("solution-fading", lambda its: its.n_far),
    "slope of the tanh is less than 1. The factor 0.8 adds to that, though not quite in full": (
        "solution-fading-figure",
        factor_adds_to_the_slope,
    ),
    "1, 3, 9, ...": (
        "solution-dilated",
        lambda its: [its.k**layer for layer in range(3)],
    ),
    "layers with $k = 3$ does": ("solution-dilated", lambda its: its.k),
    "plain convolution of size 3 moves": ("solution-dilated", lambda its: its.k),
    "$(3^L - 1)/2$ places": ("solution-dilated", gaps_reach),
    r"$L$ grows like $\log_3 n$": ("solution-dilated", gaps_reach),
}

# What names an exercise, and a cell of its solution.
EXERCISES = {
    'skip the text of "Three Ways to Mix a Sequence" and Exercises 5': "solution-causal",
    "to 7, but run the cells": "solution-dilated",
    "more of that in Exercise 3": "solution-stacking",
    r"need only about $\log_k n$ layers (Exercise 7)": "solution-dilated",
    "carry on where it left off (Exercise 8)": "solution-decoding",
}

# What a language says in other numbers or formulas than the others do, or in words.
IN_OTHER_WORDS: list[str] = []
