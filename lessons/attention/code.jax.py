# The lesson's JAX code, with Flax's layers. Each cell is woven into the text where it is
# asked for by name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics
from functools import partial
from operator import itemgetter

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from d2l_compat import jax as d2l

# All is small here; d2l.try_gpu() takes a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in "lemon", "lime":
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
keys = d2l.tensor([[2.0, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = d2l.tensor([50.0, 40, 70])  # what it costs, in cents
query = d2l.tensor([0.0, 1])  # a lime: not sweet, a little sour

scores = keys @ query  # how well does each key fit?
powers = jnp.exp(scores)
weights = powers / powers.sum()  # softmax: positive, and they sum to 1
answer = weights @ values  # the average of the values, in these shares

for score, weight, fruit in zip(scores, weights, fruits, strict=True):
    print(f"{score:4.0f}{weight:8.3f}   {fruit}")
print(f"a lime costs about {answer:.0f} cents")

# %% from-soft-to-hard
for factor in 0, 1, 3, 10:
    weights = jax.nn.softmax(keys @ (factor * query))
    shares = "".join(f"{weight:8.3f}" for weight in weights)
    print(f"query times {factor:>2}:{shares}   {weights @ values:5.1f} cents")


# %% attend
def attend(queries, keys, values):
    """Score, softmax, average: an answer for each query."""
    scores = queries @ keys.mT  # (queries, keys)
    return jax.nn.softmax(scores) @ values


# %% three-customers
queries = d2l.tensor([[0.0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = d2l.tensor([[50.0, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")


# %% batches
def normal(seed, *shapes):
    """Standard normal numbers, an array of each shape."""
    each = jax.random.split(jax.random.key(seed), len(shapes))
    return [jax.random.normal(*given) for given in zip(each, shapes, strict=True)]


batch = normal(10, (2, 3, 4), (2, 5, 4), (2, 5, 6))
print("queries", batch[0].shape)
print("keys   ", batch[1].shape)
print("values ", batch[2].shape)
print("answers", attend(*batch).shape)


# %% points
def curve(x):
    return jnp.sin(2 * x) + x / 2


def points(count, seed):
    """Measurements of the curve, with noise, at random places from 0 to 5."""
    for_x, for_noise = jax.random.split(jax.random.key(seed))
    x = jnp.sort(5 * jax.random.uniform(for_x, count))
    return x, curve(x) + 0.3 * jax.random.normal(for_noise, count)


# %% kernel-regression
def closeness(queries, keys, width):
    """Scores: the logarithm of a Gaussian kernel, shape (queries, keys)."""
    return -((queries[:, None] - keys) ** 2) / (2 * width**2)


x, y = points(40, seed=2)
between = d2l.linspace(0, 5, 101)
fits = {
    width: jax.nn.softmax(closeness(between, x, width)) @ y for width in (0.05, 0.3, 3)
}

# %% three-widths
d2l.plot(
    [x, *[between] * 4],
    [y, curve(between), *fits.values()],
    xlabel="x",
    ylabel="y",
    figsize=(6, 3),
    legend=["measured", "true curve", *(f"width {width}" for width in fits)],
    fmts=["o", "-", "--", "-.", ":"],
)

# %% width-heatmaps
maps = [jax.nn.softmax(closeness(x, x, width)) for width in fits]
d2l.show_heatmaps(
    d2l.stack([weights / weights.max() for weights in maps])[None],
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Width {width}" for width in fits],
    figsize=(8, 3),
    cmap="Blues",
)


# %% without-itself
def error(width, x, y, without_itself=True):
    """The mean squared error of predicting each point from the others (or from all)."""
    scores = closeness(x, x, width)
    if without_itself:
        scores = jnp.where(jnp.eye(len(x), dtype=bool), -jnp.inf, scores)
    return ((jax.nn.softmax(scores) @ y - y) ** 2).mean()


# %% learned-width
@partial(jax.jit, static_argnames="without_itself")
def learned_width(x, y, start, without_itself=True):
    """Gradient descent on the logarithm of the width, which keeps it positive."""

    def error_at(log_width):
        return error(jnp.exp(log_width), x, y, without_itself)

    def step(_, state):
        log_width, of_adam = state
        update, of_adam = adam.update(jax.grad(error_at)(log_width), of_adam)
        return optax.apply_updates(log_width, update), of_adam

    log_width, adam = jnp.log(start), optax.adam(0.1)
    state = log_width, adam.init(log_width)
    log_width, _ = jax.lax.fori_loop(0, 100, step, state)
    return jnp.exp(log_width)


# %% learned-widths
for start in 0.1, 1:
    print(f"from {start}, without itself: {learned_width(x, y, start):.2f}")
alone = learned_width(x, y, 1, without_itself=False)
print(f"from 1, itself among them: {alone:.2f}")


# %% four-scores
def dot(Q, K):
    return Q @ K.mT


def scaled_dot(Q, K):
    return Q @ K.mT / math.sqrt(K.shape[-1])


def bilinear(Q, K, W):
    return Q @ W @ K.mT


def additive(Q, K, W_q, W_k, w):
    # shape (batch, queries, keys, num_hiddens)
    every_pair = (Q @ W_q)[:, :, None] + (K @ W_k)[:, None]
    return jnp.tanh(every_pair) @ w


# %% two-layers
Q, K, V = normal(11, (2, 3, 8), (2, 5, 8), (2, 5, 8))
scaled_layer = d2l.DotProductAttention(dropout=0)  # which has no parameters
additive_layer = d2l.AdditiveAttention(num_hiddens=16, dropout=0)
variables = jax.jit(additive_layer.init)(jax.random.key(12), Q, K, V)
by_scaled, _ = scaled_layer.apply({}, Q, K, V)
by_additive, _ = additive_layer.apply(variables, Q, K, V)
layers_say = [by_scaled, by_additive]

parameters = variables["params"]
W_q, W_k, w = (parameters[name]["kernel"] for name in ("W_q", "W_k", "w_v"))
we_say = [
    jax.nn.softmax(scaled_dot(Q, K)) @ V,
    jax.nn.softmax(additive(Q, K, W_q, W_k, w[:, 0])) @ V,
]

# %% two-layers-shown
for name, theirs, ours in zip(
    ["scaled dot", "additive"], layers_say, we_say, strict=True
):
    largest, apart = jnp.abs(ours).max(), jnp.abs(theirs - ours).max()
    print(f"{name:>10}: largest answer {largest:.4f}, largest difference {apart:.4f}")

# %% own-function
# It wants values as wide as the keys, and an axis of heads before the last: here of one.
own = jax.nn.dot_product_attention(*(X[:, :, None] for X in (Q, K, V)))
apart = jnp.abs(own[:, :, 0] - we_say[0]).max()
print(f"JAX's own: largest difference {apart:.4f}")


# %% gaussian-or-dot
def gaussian(Q, K):
    return -((Q[:, :, None] - K[:, None]) ** 2).sum(axis=-1) / 2


def weights_differ(Q, K):
    by_distance, by_product = jax.nn.softmax(gaussian(Q, K)), jax.nn.softmax(dot(Q, K))
    return jnp.abs(by_distance - by_product).max()


equally_long = K / jnp.linalg.norm(K, axis=-1, keepdims=True)

# %% gaussian-or-dot-shown
print(f"keys of any length:    weights differ by up to {weights_differ(Q, K):.4f}")
print(
    f"keys of equal length:  weights differ by up to {weights_differ(Q, equally_long):.4f}"
)

# %% saturation
widths = [2**power for power in range(2, 11)]
largest, slopes = {"unscaled": [], "scaled": []}, {"unscaled": [], "scaled": []}
drawn = jax.random.normal(jax.random.key(13), (1000, 11, 1024))
for width in widths:  # all from one draw, the narrow ones cut from the wide
    query, ten_keys = drawn[:, :1, :width], drawn[:, 1:, :width]
    for name, score in ("unscaled", dot), ("scaled", scaled_dot):
        weights = jax.nn.softmax(score(query, ten_keys))[:, 0]
        largest[name].append(weights.max(axis=1).mean())
        outer = weights[:, :, None] * weights[:, None]
        derivative = weights[:, :, None] * jnp.eye(10) - outer
        slopes[name].append(jnp.median(jnp.linalg.norm(derivative, axis=(1, 2))))

# %% largest-weight
powers = [math.log2(width) for width in widths]
d2l.plot(
    powers,
    [*largest.values()],
    xlabel="log2(d)",
    ylabel="Largest weight",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)

# %% slope
d2l.plot(
    powers,
    [*slopes.values()],
    xlabel="log2(d)",
    ylabel="Norm of the derivative",
    ylim=(0, 0.4),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)


# %% masked
def masked_weights(scores, may_see):
    """A softmax over what each query may see; the rest gets a weight of zero."""
    return jax.nn.softmax(jnp.where(may_see, scores, -jnp.inf))


def show(*maps, titles):
    d2l.show_heatmaps(
        d2l.stack(maps)[None],
        xlabel="Keys",
        ylabel="Queries",
        titles=titles,
        figsize=(8, 3),
        cmap="Blues",
    )


position = jnp.arange(5)
real = jnp.broadcast_to(position < 3, (5, 5))  # three real keys, two of padding
causal = position <= position[:, None]  # nothing that comes later
scores = jax.random.normal(jax.random.key(14), (5, 5))
show(
    *(masked_weights(scores, may_see) for may_see in (real, causal, real & causal)),
    titles=["Padding", "Causal", "Both"],
)

# %% last-queries
layer = d2l.DotProductAttention(dropout=0)
X = jax.random.normal(jax.random.key(15), (1, 5, 8))
of_all, _ = layer.apply({}, X, X, X, causal=True)
of_two, weights = layer.apply({}, X[:, -2:], X, X, causal=True)
print("two queries: keys seen", (weights[0] > 0).sum(axis=-1).tolist())
apart = jnp.abs(of_two - of_all[:, -2:]).max()
print(f"from the last two of five: largest difference {apart:.4f}")

# %% empty-row
real = jnp.broadcast_to(position >= 2, (5, 5))  # here the padding comes first
weights = masked_weights(scores, real & causal)
print("by hand:   ", *(f"{weight:5.2f}" for weight in weights[0]))
hidden = jnp.where(real, 0.0, -jnp.inf)
_, weights = layer.apply({}, X, X, X, causal=True, score_bias=hidden)
print("the layer: ", *(f"{weight:5.2f}" for weight in weights[0, 0]))


# %% dictionaries
def dictionaries(rng, count, size=6):
    """Entries, each a letter with a digit; then the letters asked for, and what is right."""
    # In NumPy, as data often are: there is nothing to compile for each new shape.
    letters = rng.random((count, 26)).argsort(axis=1)[:, :size]  # none of them twice
    digits = rng.integers(10, size=(count, size))
    asked = rng.random((count, size)).argsort(axis=1)
    questions, answers = (
        np.take_along_axis(each, asked, axis=1) for each in (letters, digits)
    )
    return letters, digits, questions, answers


def written(letters, digits):
    return " ".join(f"{chr(97 + x)}{y}" for x, y in zip(letters, digits, strict=True))


for letters, digits, questions, answers in zip(
    *dictionaries(np.random.default_rng(16), 3), strict=True
):
    print(written(letters, digits), " -> ", written(questions, answers))


# %% look-up
def table(rows, width):
    """A trainable vector for each row, of variance 1: Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class LookUp(nn.Module):
    """A score for each digit as the answer; queries, keys and values are learned."""

    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.digit = table(26, width), table(10, width)
        self.W_q, self.W_k, self.W_v = (
            nn.Dense(width, use_bias=False) for _ in range(3)
        )
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        """A logit for each digit, and the weights."""
        weights = jax.nn.softmax(scaled_dot(self.W_q(queries), self.W_k(keys)))
        return self.output(weights @ self.W_v(values)), weights


# %% train
@partial(jax.jit, static_argnums=0)  # compiled once for each kind of model
def fit(model, keys, examples):
    """The variables of one model for each key, trained side by side."""
    adam = optax.adam(0.015)

    def loss(variables, given, answers):
        logits, _ = model.apply(variables, *given)
        return optax.softmax_cross_entropy_with_integer_labels(logits, answers).mean()

    def step(state, batch):
        variables, of_adam = state
        *given, answers = batch
        gradients = jax.grad(loss)(variables, given, answers)
        updates, of_adam = adam.update(gradients, of_adam)
        return (optax.apply_updates(variables, updates), of_adam), None

    def train_one(key, examples):
        *given, _ = (each[0] for each in examples)
        variables = model.init(key, *given)
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, examples)
        return variables

    return jax.vmap(train_one)(keys, examples)


def fitted(model, draw, seeds):
    """A model for each seed, after one pass over its examples, 64 at a time."""
    drawn = [draw(np.random.default_rng(seed), 150 * 64) for seed in seeds]
    examples = [
        np.stack(each).reshape(len(seeds), 150, 64, -1)
        for each in zip(*drawn, strict=True)
    ]
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    variables = jax.tree.map(d2l.numpy, fit(model, keys, examples))
    # With its variables bound to it, a model can be called, and its parts as well.
    of_seed = (jax.tree.map(itemgetter(i), variables) for i in range(len(seeds)))
    return [model.bind(each) for each in of_seed]


def trained(*seeds, make=LookUp):
    return fitted(make(), dictionaries, seeds)


@partial(jax.jit, static_argnums=0)
def ask(model, variables, *given):
    """A logit for each digit, and the weights."""
    return model.apply(variables, *given)


# The same questions for every model.
tests = {
    size: dictionaries(np.random.default_rng(17), 500, size) for size in (6, 12, 26)
}


def share_right(model, size=6):
    *given, answers = tests[size]
    logits, _ = ask(*model.unbind(), *given)
    return (d2l.numpy(logits).argmax(axis=-1) == answers).mean()


models = trained(*range(5))
shares = {size: [share_right(model, size) for model in models] for size in tests}

# %% shares tags=["tolerance:absolute=0.02"]
for size, right in shares.items():
    low, high = min(right), max(right)
    print(
        f"{size:>2} entries: {statistics.median(right):.3f} ({low:.3f}-{high:.3f}) right"
    )

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
letters, digits, questions, answers = dictionaries(np.random.default_rng(18), 1)
_, weights = ask(*models[0].unbind(), letters, digits, questions)
print("entries:  ", written(letters[0], digits[0]))
print("asked for:", " ".join(chr(97 + x) for x in questions[0]))
d2l.show_heatmaps(
    weights[None],
    xlabel="Entries",
    ylabel="Letters asked for",
    figsize=(3.5, 3),
    cmap="Blues",
)

# %% letters-in-keys
letters, digits, questions, answers = tests[6]
model = models[0]
asked, letter, digit = (
    model.letter(questions),
    model.letter(letters),
    model.digit(digits),
)
both = letter + digit
keys_and_values = [(both, both), (letter, digit), (digit, both), (both, letter)]
right = [
    (model.answer(asked, K, V)[0].argmax(axis=-1) == answers).mean()
    for K, V in keys_and_values
]

# %% letters-in-keys-shown tags=["tolerance:absolute=0.03"]
names = (
    "as trained",
    "letters alone in the keys, digits alone in the values",
    "digits alone in the keys",
    "letters alone in the values",
)
for share, name in zip(right, names, strict=True):
    print(f"{share:.3f}  {name}")

# %% removed
_, weights = ask(*model.unbind(), letters, digits, questions)
sharpest = weights.argmax(axis=-1)  # the entry each question looks at
is_it = jax.nn.one_hot(sharpest, 6, dtype=bool)
scores = scaled_dot(model.W_q(asked), model.W_k(both))
without_it = masked_weights(scores, ~is_it) @ model.W_v(both)
it_alone = masked_weights(scores, is_it) @ model.W_v(both)
kept = [
    (model.output(Y).argmax(axis=-1) == answers).mean() for Y in (without_it, it_alone)
]

# %% removed-shown tags=["tolerance:absolute=0.03"]
names = "that entry hidden", "that entry alone"
for share, name in zip(kept, names, strict=True):
    print(f"{share:.3f}  right with {name}")

# %% same-answer
values = d2l.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])
for weights in ([0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]):
    print(weights, "->", (d2l.tensor(weights) @ values).tolist())

# %% solution-box
near = jnp.abs(between[:, None] - x) < 0.3
box = masked_weights(jnp.zeros((101, 40)), near) @ y
by_hand = jax.vmap(lambda seen: y.mean(where=seen))(near)
has_a_point = near.any(axis=1)
apart = jnp.abs(box - by_hand)[has_a_point].max()
print(
    f"largest difference: {apart:.4f}; places without a point nearby: {(~has_a_point).sum()}"
)

# %% solution-width
by_count = {
    count: [learned_width(*points(count, seed), 1) for seed in range(5)]
    for count in (20, 80, 320)
}

# %% solution-width-shown
for count, found in by_count.items():
    print(
        f"{count:>3} points: {statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"
    )


# %% solution-additive
class AdditiveLookUp(LookUp):
    def setup(self):
        super().setup()
        self.w = nn.Dense(1, use_bias=False)

    def answer(self, queries, keys, values):
        every_pair = self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]
        weights = jax.nn.softmax(self.w(jnp.tanh(every_pair)).squeeze(-1))
        return self.output(weights @ self.W_v(values)), weights


additive_models = trained(*range(5), make=AdditiveLookUp)
shares = {
    size: [share_right(model, size) for model in additive_models] for size in tests
}

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
for size, right in shares.items():
    low, high = min(right), max(right)
    print(
        f"{size:>2} entries: {statistics.median(right):.3f} ({low:.3f}-{high:.3f}) right"
    )


# %% solution-reversal
class Reverser(nn.Module):
    """Writes digits backwards; queries are learned, keys are a place plus a digit."""

    num_hiddens: int = 32
    length: int = 8

    def setup(self):
        self.digit = table(10, self.num_hiddens)
        self.asks, self.stands = (
            table(self.length, self.num_hiddens) for _ in range(2)
        )
        self.output = nn.Dense(10)

    def __call__(self, digits):
        keys = self.stands.embedding + self.digit(digits)
        weights = jax.nn.softmax(scaled_dot(self.asks.embedding, keys))
        return self.output(weights @ self.digit(digits)), weights


def reversals(rng, count):
    digits = rng.integers(10, size=(count, 8))
    return digits, digits[:, ::-1]


reversers = fitted(Reverser(), reversals, range(5))
digits, backwards = reversals(np.random.default_rng(20), 500)
said_and_seen = [ask(*each.unbind(), digits) for each in reversers]
right = [(Y.argmax(axis=-1) == backwards).mean() for Y, _ in said_and_seen]

# %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
print("right:", *(f"{share:.3f}" for share in right))
_, weights = said_and_seen[0]
d2l.show_heatmaps(
    weights[:1, None],
    xlabel="Digits read",
    ylabel="Digits written",
    figsize=(3.5, 3),
    cmap="Blues",
)

# %% solution-twice
letters = np.array([[0, 1, 0, 2]] * 2)
digits = np.array([[3, 5, 7, 9], [7, 5, 3, 9]])  # a3 b5 a7 c9; a7 b5 a3 c9
asked = np.array([[0]] * 2)
answered = [ask(*model.unbind(), letters, digits, asked) for model in models]
said = [logits.argmax(axis=-1)[:, 0] for logits, _ in answered]
looked = [weights[:, 0] for _, weights in answered]

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    print(f"weights of {written(letters[i], digits[i])}, and the answer to a:")
    for weights, answers in zip(looked, said, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(answers[i]))
