"""Where the numbers and the equations of the text come from.

HELD has words of the original text, the cell that they are about, and what they are held to: the numbers
that they should have, in their order, or whether they are true. ``its`` are the names that the cells up to this
one left behind, and ``its.shown`` is what it showed.
"""

from math import cos, sin, sqrt
from types import SimpleNamespace as Names

import numpy as np

from d2l_compat._shared.arrays import to_numpy

# What the text itself lays down, and what no cell could contradict.
DEFINED = [
    r"$\mathbf{x}_1, \ldots, \mathbf{x}_n$",
    r"\mathbf{y}_i = f(\mathbf{x}_i, (\mathbf{x}_1, \mathbf{x}_1), \ldots, (\mathbf{x}_n, \mathbf{x}_n))",
    "positions are counted from 0",
    r"position $i = 0, 1, 2, \ldots$",
    "A digit needs a whole dimension to say 0 or 1",
]


def encoding_is_sine_and_cosine(its: Names) -> bool:
    P, d = to_numpy("P", its.P), its.width
    i, j = np.indices((its.num_steps, d // 2))
    angle = i / 10000 ** (2 * j / d)
    return np.allclose(P[i, 2 * j], np.sin(angle), atol=1e-5) and np.allclose(
        P[i, 2 * j + 1], np.cos(angle), atol=1e-5
    )


def dot_product_is_a_sum_of_cosines(its: Names) -> bool:
    d, products = its.width, to_numpy("products", its.products)
    i, j = np.indices(products.shape)
    cosines = sum(np.cos((i - j) / 10000 ** (2 * l / d)) for l in range(d // 2))
    return np.allclose(products, cosines, atol=1e-4)


def pair_is_turned_by_the_matrix(its: Names) -> bool:
    pairs, delta = to_numpy("pairs", its.pairs), 5
    for j, omega in enumerate(to_numpy("omega", its.omega).astype(float)):
        c, s = cos(delta * omega), sin(delta * omega)
        turned = pairs[:-delta, j] @ np.array([[c, s], [-s, c]]).T
        if not np.allclose(turned, pairs[delta:, j], atol=1e-5):
            return False
    return True


def cnn_costs(its: Names, n: int = 9) -> bool:
    """By its formulas: multiplications, what must wait, and the layers that join the ends."""
    return (
        its.multiply_adds(its.cnn, n) == its.k * n * its.d**2
        and its.sequential_products(its.cnn, n) == 1
        and its.layers_to_cross(n, 1) == 2 * (n - 1) / (its.k - 1)
    )


def rnn_costs(its: Names, n: int = 9) -> bool:
    """A product for the state and one for the input, in each step."""
    return (
        its.multiply_adds(its.rnn, n) == n * 2 * its.d**2
        and its.sequential_products(its.rnn, n) == n
    )


def self_attention_costs(its: Names, n: int = 9) -> bool:
    d, layer = its.d, its.self_attention
    same = its.sequential_products(layer, n) == its.sequential_products(layer, 2 * n)
    return same and its.multiply_adds(layer, n) == 4 * n * d**2 + 2 * n**2 * d


def halves_are_equal(its: Names) -> bool:
    """At n = 2d the projections of self-attention cost as much as all the rest."""
    n, d = 2 * its.d, its.d
    return its.multiply_adds(its.self_attention, n) == 2 * (4 * n * d**2)


def gaps_reach(its: Names) -> bool:
    """(3^L - 1)/2 places in L layers."""
    return all(its.layers_to_cross((3**L - 1) // 2 + 1, 3) == L for L in (1, 2, 3, 4))


def columns(its: Names) -> list[int]:
    """Of P, as the legend names them."""
    return [int(name.removeprefix("Col ")) for name in its.shown.legend]


def zero_comes_first(its: Names) -> bool:
    """One sequence both ways, as it is printed: its tokens, and last of all its answer."""
    (*tokens, answer), (*exchanged, other) = its.shown.rows
    return (
        exchanged == [1 - token if token < 2 else token for token in tokens]
        and (tokens.count(0), tokens.count(1)) == (1, 1)
        and (answer, other) == (tokens.index(0) < tokens.index(1), 1 - answer)
    )


def rnn_fades_faster(its: Names) -> bool:
    influence = its.shown.curves[0][1]
    return 0.8 in its.shown.constants and max(influence[1:] / influence[:-1]) < 0.8


def layer_is_the_formula(its: Names) -> bool:
    """As the cell found that computes it by hand."""
    return its.shown.rows == [[0]]


HELD = {
    # Self-attention
    r"""$\mathbf{Q} = \mathbf{X}\mathbf{W}_q$, $\mathbf{K} = \mathbf{X}\mathbf{W}_k$,
        $\mathbf{V} = \mathbf{X}\mathbf{W}_v$""": ("by-hand", layer_is_the_formula),
    r"""\mathbf{Q} = \mathbf{X}\mathbf{W}_q, \quad \mathbf{K} = \mathbf{X}\mathbf{W}_k, \quad
        \mathbf{V} = \mathbf{X}\mathbf{W}_v, \qquad""": (
        "by-hand",
        layer_is_the_formula,
    ),
    r"\mathbf{Y} = \mathrm{softmax}\left(\frac{\mathbf{Q}\mathbf{K}^\top}{\sqrt{d}}\right)\mathbf{V}": (
        "by-hand",
        layer_is_the_formula,
    ),
    "spread near 1": ("scaling", lambda its: round(its.shown.rows[-1][-1])),
    "2 sequences of 4 tokens (3 and 2 of them real), $d = 100$, 5 heads": (
        "shape-check",
        lambda its: [*its.X.shape[:2], *its.valid_lens, its.num_hiddens, its.num_heads],
    ),
    "Above, 3 real tokens; below, 2.": ("shape-check", lambda its: [*its.valid_lens]),
    # CNN, RNN, self-attention
    "kernel size 3; all five inputs reach the unit above x3": (
        "receptive-field",
        lambda its: [its.k, its.shown.rows[0][0]],
    ),
    "inputs x1 to x5 are connected": (
        "receptive-field",
        lambda its: [its.shown.rows[0][1], its.shown.rows[0][-1]],
    ),
    "kernel size 3; the unit above x3": (
        "receptive-field",
        lambda its: [its.k, its.shown.rows[0][0]],
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
        lambda its: its.sequential_products(its.cnn, 9),
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
    r"With $k = 3$, two layers are said to join $\mathbf{x}_1$ and $\mathbf{x}_5$": (
        "receptive-field",
        lambda its: [its.k, its.shown.rows[0][1], its.shown.rows[0][-1]],
    ),
    r"the unit in the middle, $\mathbf{y}_3$": (
        "receptive-field",
        lambda its: its.shown.rows[0][0],
    ),
    r"For $\mathbf{x}_1$ to act on $\mathbf{y}_5$": (
        "receptive-field",
        lambda its: [its.shown.rows[-1][2], its.shown.rows[-1][1]],
    ),
    "Multiplications for $d = 16$": ("multiply-adds", lambda its: its.d),
    "Here $d = 16$.": ("multiply-adds", lambda its: its.d),
    "$knd^2$": ("solution-dilated", cnn_costs),
    "$2nd^2$": ("multiply-adds", rnn_costs),
    "and $4nd^2 + 2n^2d$": ("multiply-adds", self_attention_costs),
    "At $n = 2d = 32$ the two parts of self-attention's cost are equal": (
        "multiply-adds",
        lambda its: halves_are_equal(its) and 2 * its.d == 32,
    ),
    # Positional encoding
    r"""p_{i, 2j} = \sin\left(\frac{i}{10000^{2j/d}}\right), \qquad
        p_{i, 2j+1} = \cos\left(\frac{i}{10000^{2j/d}}\right)""": (
        "column-plot",
        encoding_is_sine_and_cosine,
    ),
    "a `dropout` of 0.5": ("encoding-checks", lambda its: 0.5 in its.shown.constants),
    "a vector of $d = 512$ numbers": ("scale-and-sum", lambda its: its.d_model),
    "with variance $1/d$, embeddings have a length near 1": (
        "scale-and-sum",
        lambda its: [1, round(its.shown.rows[0][0])],
    ),
    r"$\sin^2 + \cos^2 = 1$": (
        "setup",
        lambda its: np.isclose(sin(2) ** 2 + cos(2) ** 2, 1),
    ),
    r"its length is $\sqrt{d/2}$ at every position, which is 16 here": (
        "scale-and-sum",
        lambda its: [2, sqrt(its.d_model / 2)],
    ),
    "$d = 32$: the pair 6 and 7 swings faster than the pair 8 and 9": (
        "column-plot",
        lambda its: [its.width, *columns(its)],
    ),
    "for $d = 32$. The pair 6 and 7 swings faster than the pair 8 and 9": (
        "column-plot",
        lambda its: [its.width, *columns(its)],
    ),
    "over 60 positions": ("encoding-heatmap", lambda its: its.num_steps),
    "their sines are still near 0 and their cosines near 1": (
        "encoding-heatmap",
        lambda its: to_numpy("P", its.P)[-1, -2:].round(),
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
        lambda its: np.isclose(to_numpy("products", its.products).max(), its.width / 2),
    ),
    # Relative position
    r"$\omega_j = 1/10000^{2j/d}$": (
        "rotation",
        lambda its: np.allclose(
            to_numpy("omega", its.omega),
            [1 / 10000 ** (2 * j / its.width) for j in range(its.width // 2)],
        ),
    ),
    r"""\begin{bmatrix} \cos(\delta\omega_j) & \sin(\delta\omega_j) \\
        -\sin(\delta\omega_j) & \cos(\delta\omega_j) \end{bmatrix}
        \begin{bmatrix} p_{i,2j} \\ p_{i,2j+1} \end{bmatrix}
        = \begin{bmatrix} p_{i+\delta,2j} \\ p_{i+\delta,2j+1} \end{bmatrix}""": (
        "rotation",
        pair_is_turned_by_the_matrix,
    ),
    r"""\begin{bmatrix} \cos(\delta\omega_j) & \sin(\delta\omega_j) \\
        -\sin(\delta\omega_j) & \cos(\delta\omega_j) \end{bmatrix}
        \begin{bmatrix} p_{i,2j} \\ p_{i,2j+1} \end{bmatrix}
        &= \begin{bmatrix} \cos(\delta\omega_j)\sin(i\omega_j) + \sin(\delta\omega_j)\cos(i\omega_j) \\
        -\sin(\delta\omega_j)\sin(i\omega_j) + \cos(\delta\omega_j)\cos(i\omega_j) \end{bmatrix} \\
        &= \begin{bmatrix} \sin((i+\delta)\omega_j) \\ \cos((i+\delta)\omega_j) \end{bmatrix}
        = \begin{bmatrix} p_{i+\delta,2j} \\ p_{i+\delta,2j+1} \end{bmatrix}""": (
        "rotation",
        pair_is_turned_by_the_matrix,
    ),
    "a cost that grows with $n^2$": ("multiply-adds", self_attention_costs),
    # Exercises and solutions
    "The cost is one issue: $n^2$": ("multiply-adds", self_attention_costs),
    "1, 3, 9, ...": (
        "solution-dilated",
        lambda its: [its.k**layer for layer in range(3)],
    ),
    "How many layers with $k = 3$": ("solution-dilated", lambda its: its.k),
    "one 0 and one 1 among other tokens and ask: does the 0 come first?": (
        "solution-learned-data",
        zero_comes_first,
    ),
    "the second time with 0 and 1 exchanged": (
        "solution-learned-data",
        zero_comes_first,
    ),
    "its answer: 1 for yes, 0 for no": ("solution-learned-data", zero_comes_first),
    "multiply the recurrent matrix by 0.8": (
        "solution-fading",
        lambda its: 0.8 in its.shown.constants,
    ),
    "along 24 positions": ("solution-fading", lambda its: its.n_far),
    "The factor is well below 0.8, since the slope of the tanh, less than 1,": (
        "solution-fading",
        rnn_fades_faster,
    ),
    "plain convolution of size 3 moves": ("solution-dilated", lambda its: its.k),
    "$(3^L - 1)/2$ places": ("solution-dilated", gaps_reach),
    r"$L$ grows like $\log_3 n$": ("solution-dilated", gaps_reach),
}

# What names an exercise, and a cell of its solution.
EXERCISES = {
    r"need only about $\log_k n$ layers (Exercise 5)": "solution-dilated",
    "How fast it can fade is Exercise 4": "solution-fading",
    "learn these vectors (Exercise 2)": "solution-learned",
}

# What a language says in other numbers or formulas than the others do, or in words.
IN_OTHER_WORDS = [
    "a `dropout` of 0.5",
    "每個查詢的權重加起來都是 1",
    "輸入若全是 1",
    "注意力權重必須剛好是 0；其餘的鍵，權重總和必須是 1",
    "兩者的差到印出的最後一位都是 0",
    "用二進位從 0 數上去",
    "最大與最小的差到印出的最後一位都是 0",
]
