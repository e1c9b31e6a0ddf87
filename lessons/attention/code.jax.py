# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

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

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in "lemon", "lime":
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
keys = d2l.tensor([[2.0, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = d2l.tensor([50.0, 40, 70])  # the price, in cents
query = d2l.tensor([0.0, 1])  # a lime: not sweet, a little sour

scores = keys @ query  # how well does each key fit?
powers = jnp.exp(scores)
weights = powers / powers.sum()  # softmax: positive, and they sum to 1
answer = weights @ values  # the average of the values, with these weights

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
    """Return an answer for each query: score, softmax, average."""
    scores = queries @ keys.mT  # (queries, keys)
    return jax.nn.softmax(scores) @ values


# %% three-customers
queries = d2l.tensor([[0.0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = d2l.tensor([[50.0, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")


# %% batches
def draw_normal(seed, *shapes):
    """Draw standard normal numbers, an array of each shape."""
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    pairs = zip(keys, shapes, strict=True)
    return [jax.random.normal(key, shape) for key, shape in pairs]


batch = draw_normal(10, (2, 3, 4), (2, 5, 4), (2, 5, 6))
print("queries", batch[0].shape)
print("keys   ", batch[1].shape)
print("values ", batch[2].shape)
print("answers", attend(*batch).shape)


# %% points
def curve(x):
    return jnp.sin(2 * x) + x / 2


def draw_points(count, seed):
    """Draw noisy measurements of the curve at random x from 0 to 5."""
    x_key, noise_key = jax.random.split(jax.random.key(seed))
    x = jnp.sort(5 * jax.random.uniform(x_key, count))
    return x, curve(x) + 0.3 * jax.random.normal(noise_key, count)


# %% kernel-regression
def closeness(queries, keys, width):
    """Return scores, the logarithm of a Gaussian kernel: shape (queries, keys)."""
    return -((queries[:, None] - keys) ** 2) / (2 * width**2)


x, y = draw_points(40, seed=2)
grid = d2l.linspace(0, 5, 101)
fits = {
    width: jax.nn.softmax(closeness(grid, x, width)) @ y for width in (0.05, 0.3, 3)
}

# %% three-widths
d2l.plot(
    [x, *[grid] * 4],
    [y, curve(grid), *fits.values()],
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
def error(width, x, y, hide_itself=True):
    """Return the mean squared error of predicting each point from others (or all)."""
    scores = closeness(x, x, width)
    if hide_itself:
        scores = jnp.where(jnp.eye(len(x), dtype=bool), -jnp.inf, scores)
    return ((jax.nn.softmax(scores) @ y - y) ** 2).mean()


# %% learned-width
@partial(jax.jit, static_argnames="hide_itself")
def learn_width(x, y, start, hide_itself=True):
    """Learn the width by gradient descent on its logarithm, which keeps it positive."""

    def loss(log_width):
        return error(jnp.exp(log_width), x, y, hide_itself)

    def step(_, state):
        log_width, adam_state = state
        update, adam_state = adam.update(jax.grad(loss)(log_width), adam_state)
        return optax.apply_updates(log_width, update), adam_state

    log_width = jnp.log(start)
    adam = optax.adam(0.1)
    state = log_width, adam.init(log_width)
    log_width, _ = jax.lax.fori_loop(0, 100, step, state)
    return jnp.exp(log_width)


# %% learned-widths
for start in 0.1, 1:
    print(f"from {start}, without itself: {learn_width(x, y, start):.2f}")
unmasked_width = learn_width(x, y, 1, hide_itself=False)
print(f"from 1, itself among them: {unmasked_width:.2f}")


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
Q, K, V = draw_normal(11, (2, 3, 8), (2, 5, 8), (2, 5, 8))
scaled_layer = d2l.DotProductAttention(dropout=0)  # this layer has no parameters
additive_layer = d2l.AdditiveAttention(num_hiddens=16, dropout=0)
variables = jax.jit(additive_layer.init)(jax.random.key(12), Q, K, V)
scaled_output, _ = scaled_layer.apply({}, Q, K, V)
additive_output, _ = additive_layer.apply(variables, Q, K, V)
layer_outputs = [scaled_output, additive_output]

parameters = variables["params"]
W_q, W_k, w = (parameters[name]["kernel"] for name in ("W_q", "W_k", "w_v"))
manual_outputs = [
    jax.nn.softmax(scaled_dot(Q, K)) @ V,
    jax.nn.softmax(additive(Q, K, W_q, W_k, w[:, 0])) @ V,
]

# %% two-layers-shown
for name, layer_output, output in zip(
    ["scaled dot", "additive"], layer_outputs, manual_outputs, strict=True
):
    largest = jnp.abs(output).max()
    difference = jnp.abs(layer_output - output).max()
    print(
        f"{name:>10}: largest answer {largest:.4f}, largest difference {difference:.4f}"
    )

# %% own-function
# JAX expects values as wide as the keys, and heads on the axis before the last.
heads = (X[:, :, None] for X in (Q, K, V))
framework_output = jax.nn.dot_product_attention(*heads)
difference = jnp.abs(framework_output[:, :, 0] - manual_outputs[0]).max()
print(f"JAX's own: largest difference {difference:.4f}")


# %% gaussian-or-dot
def gaussian(Q, K):
    return -((Q[:, :, None] - K[:, None]) ** 2).sum(axis=-1) / 2


def weight_difference(Q, K):
    distance_weights = jax.nn.softmax(gaussian(Q, K))
    product_weights = jax.nn.softmax(dot(Q, K))
    return jnp.abs(distance_weights - product_weights).max()


unit_keys = K / jnp.linalg.norm(K, axis=-1, keepdims=True)

# %% gaussian-or-dot-shown
print(f"keys of any length:    weights differ by up to {weight_difference(Q, K):.4f}")
difference = weight_difference(Q, unit_keys)
print(f"keys of equal length:  weights differ by up to {difference:.4f}")

# %% saturation
widths = [2**power for power in range(2, 11)]
largest_weights = {"unscaled": [], "scaled": []}
slopes = {"unscaled": [], "scaled": []}
# Queries and keys of all widths are cut from one sample.
samples = jax.random.normal(jax.random.key(13), (1000, 11, 1024))
for width in widths:
    query, ten_keys = samples[:, :1, :width], samples[:, 1:, :width]
    for name, score in ("unscaled", dot), ("scaled", scaled_dot):
        weights = jax.nn.softmax(score(query, ten_keys))[:, 0]
        largest_weights[name].append(weights.max(axis=1).mean())
        outer = weights[:, :, None] * weights[:, None]
        derivative = weights[:, :, None] * jnp.eye(10) - outer
        slopes[name].append(jnp.median(jnp.linalg.norm(derivative, axis=(1, 2))))

# %% largest-weight
powers = [math.log2(width) for width in widths]
d2l.plot(
    powers,
    [*largest_weights.values()],
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
def masked_weights(scores, is_visible):
    """Take the softmax over the visible keys; the others get a weight of zero."""
    return jax.nn.softmax(jnp.where(is_visible, scores, -jnp.inf))


def show(maps, titles):
    d2l.show_heatmaps(
        d2l.stack(maps)[None],
        xlabel="Keys",
        ylabel="Queries",
        titles=titles,
        figsize=(8, 3),
        cmap="Blues",
    )


position = jnp.arange(5)
is_real = jnp.broadcast_to(position < 3, (5, 5))  # three real keys, two of padding
causal_mask = position <= position[:, None]  # no later key
scores = jax.random.normal(jax.random.key(14), (5, 5))
masks = is_real, causal_mask, is_real & causal_mask
maps = [masked_weights(scores, mask) for mask in masks]
show(maps, titles=["Padding", "Causal", "Both"])

# %% last-queries
layer = d2l.DotProductAttention(dropout=0)
X = jax.random.normal(jax.random.key(15), (1, 5, 8))
output_all, _ = layer.apply({}, X, X, X, causal=True)
output_last_two, weights = layer.apply({}, X[:, -2:], X, X, causal=True)
print("two queries: keys seen", (weights[0] > 0).sum(axis=-1).tolist())
difference = jnp.abs(output_last_two - output_all[:, -2:]).max()
print(f"from the last two of five: largest difference {difference:.4f}")

# %% empty-row
is_real = jnp.broadcast_to(position >= 2, (5, 5))  # here the padding comes first
weights = masked_weights(scores, is_real & causal_mask)
print("by hand:   ", *(f"{weight:5.2f}" for weight in weights[0]))
bias = jnp.where(is_real, 0.0, -jnp.inf)
_, weights = layer.apply({}, X, X, X, causal=True, score_bias=bias)
print("the layer: ", *(f"{weight:5.2f}" for weight in weights[0, 0]))


# %% dictionaries
def draw_dictionaries(rng, count, size=6):
    """Draw entries (a letter and a digit each), letters to ask for, and the answers."""
    # Drawn with NumPy, since JAX compiles for each new shape.
    letters = rng.random((count, 26)).argsort(axis=1)[:, :size]  # no letter twice
    digits = rng.integers(10, size=(count, size))
    order = rng.random((count, size)).argsort(axis=1)
    questions, answers = (
        np.take_along_axis(array, order, axis=1) for array in (letters, digits)
    )
    return letters, digits, questions, answers


def format_pairs(letters, digits):
    return " ".join(f"{chr(97 + x)}{y}" for x, y in zip(letters, digits, strict=True))


for letters, digits, questions, answers in zip(
    *draw_dictionaries(np.random.default_rng(16), 3), strict=True
):
    print(format_pairs(letters, digits), " -> ", format_pairs(questions, answers))


# %% look-up
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class LookUp(nn.Module):
    """A dictionary with learned queries, keys and values, which scores each digit."""

    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.digit = make_table(26, width), make_table(10, width)
        self.W_q, self.W_k, self.W_v = (
            nn.Dense(width, use_bias=False) for _ in range(3)
        )
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        """Return a logit for each digit, and the weights."""
        weights = jax.nn.softmax(scaled_dot(self.W_q(queries), self.W_k(keys)))
        return self.output(weights @ self.W_v(values)), weights


# %% train
@partial(jax.jit, static_argnums=0)  # compiled once for each kind of model
def fit(model, keys, examples):
    """Train one model for each key, side by side; return their variables."""
    adam = optax.adam(0.015)

    def loss(variables, inputs, answers):
        logits, _ = model.apply(variables, *inputs)
        return optax.softmax_cross_entropy_with_integer_labels(logits, answers).mean()

    def step(state, batch):
        variables, adam_state = state
        *inputs, answers = batch
        gradients = jax.grad(loss)(variables, inputs, answers)
        updates, adam_state = adam.update(gradients, adam_state)
        return (optax.apply_updates(variables, updates), adam_state), None

    def train_one(key, examples):
        *inputs, _ = (array[0] for array in examples)
        variables = model.init(key, *inputs)
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, examples)
        return variables

    return jax.vmap(train_one)(keys, examples)


def fit_models(model, draw, seeds):
    """Train a model for each seed in one pass over its examples, 64 at a time."""
    samples = [draw(np.random.default_rng(seed), 150 * 64) for seed in seeds]
    examples = [
        np.stack(arrays).reshape(len(seeds), 150, 64, -1)
        for arrays in zip(*samples, strict=True)
    ]
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    variables = jax.tree.map(d2l.numpy, fit(model, keys, examples))
    # A model that is bound to its variables can be called, and so can its parts.
    return [
        model.bind(jax.tree.map(itemgetter(i), variables)) for i in range(len(seeds))
    ]


def train(*seeds, model_class=LookUp):
    return fit_models(model_class(), draw_dictionaries, seeds)


@partial(jax.jit, static_argnums=0)
def ask(model, variables, *inputs):
    """Return a logit for each digit, and the weights."""
    return model.apply(variables, *inputs)


# The same questions for every model.
tests = {
    size: draw_dictionaries(np.random.default_rng(17), 500, size)
    for size in (6, 12, 26)
}


def accuracy(model, size=6):
    *inputs, answers = tests[size]
    logits, _ = ask(*model.unbind(), *inputs)
    return (d2l.numpy(logits).argmax(axis=-1) == answers).mean()


models = train(*range(5))
accuracies = {size: [accuracy(model, size) for model in models] for size in tests}

# %% shares tags=["tolerance:absolute=0.02"]
for size, runs in accuracies.items():
    low, high = min(runs), max(runs)
    print(
        f"{size:>2} entries: {statistics.median(runs):.3f} ({low:.3f}-{high:.3f}) right"
    )

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
letters, digits, questions, answers = draw_dictionaries(np.random.default_rng(18), 1)
_, weights = ask(*models[0].unbind(), letters, digits, questions)
print("entries:  ", format_pairs(letters[0], digits[0]))
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
queries = model.letter(questions)
letter_vectors = model.letter(letters)
digit_vectors = model.digit(digits)
entries = letter_vectors + digit_vectors
keys_and_values = [
    (entries, entries),
    (letter_vectors, digit_vectors),
    (digit_vectors, entries),
    (entries, letter_vectors),
]
part_accuracies = [
    (model.answer(queries, K, V)[0].argmax(axis=-1) == answers).mean()
    for K, V in keys_and_values
]

# %% letters-in-keys-shown tags=["tolerance:absolute=0.03"]
names = (
    "as trained",
    "letters alone in the keys, digits alone in the values",
    "digits alone in the keys",
    "letters alone in the values",
)
for share, name in zip(part_accuracies, names, strict=True):
    print(f"{share:.3f}  {name}")

# %% removed
_, weights = ask(*model.unbind(), letters, digits, questions)
heaviest = weights.argmax(axis=-1)  # the entry each question looks at
is_heaviest = jax.nn.one_hot(heaviest, 6, dtype=bool)
scores = scaled_dot(model.W_q(queries), model.W_k(entries))
others_only = masked_weights(scores, ~is_heaviest) @ model.W_v(entries)
heaviest_only = masked_weights(scores, is_heaviest) @ model.W_v(entries)
masked_accuracies = [
    (model.output(Y).argmax(axis=-1) == answers).mean()
    for Y in (others_only, heaviest_only)
]

# %% removed-shown tags=["tolerance:absolute=0.03"]
names = "that entry hidden", "that entry alone"
for share, name in zip(masked_accuracies, names, strict=True):
    print(f"{share:.3f}  right with {name}")

# %% same-answer
values = d2l.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])
for weights in ([0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]):
    print(weights, "->", (d2l.tensor(weights) @ values).tolist())

# %% solution-box
is_near = jnp.abs(grid[:, None] - x) < 0.3
box = masked_weights(jnp.zeros((101, 40)), is_near) @ y
means = jax.vmap(lambda nearby: y.mean(where=nearby))(is_near)
has_point = is_near.any(axis=1)
difference = jnp.abs(box - means)[has_point].max()
print(
    f"largest difference: {difference:.4f}; places without a point nearby: "
    f"{(~has_point).sum()}"
)

# %% solution-width
widths_by_count = {
    count: [learn_width(*draw_points(count, seed), 1) for seed in range(5)]
    for count in (20, 80, 320)
}

# %% solution-width-shown
for count, runs in widths_by_count.items():
    low, high = min(runs), max(runs)
    print(f"{count:>3} points: {statistics.median(runs):.2f} ({low:.2f}-{high:.2f})")


# %% solution-additive
class AdditiveLookUp(LookUp):
    def setup(self):
        super().setup()
        self.w = nn.Dense(1, use_bias=False)

    def answer(self, queries, keys, values):
        every_pair = self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]
        weights = jax.nn.softmax(self.w(jnp.tanh(every_pair)).squeeze(-1))
        return self.output(weights @ self.W_v(values)), weights


additive_models = train(*range(5), model_class=AdditiveLookUp)
accuracies = {
    size: [accuracy(model, size) for model in additive_models] for size in tests
}

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
for size, runs in accuracies.items():
    low, high = min(runs), max(runs)
    print(
        f"{size:>2} entries: {statistics.median(runs):.3f} ({low:.3f}-{high:.3f}) right"
    )


# %% solution-reversal
class Reverser(nn.Module):
    """A model that writes digits backwards; a key is the sum of place and digit."""

    num_hiddens: int = 32
    length: int = 8

    def setup(self):
        self.digit = make_table(10, self.num_hiddens)
        self.query, self.place = (
            make_table(self.length, self.num_hiddens) for _ in range(2)
        )
        self.output = nn.Dense(10)

    def __call__(self, digits):
        keys = self.place.embedding + self.digit(digits)
        weights = jax.nn.softmax(scaled_dot(self.query.embedding, keys))
        return self.output(weights @ self.digit(digits)), weights


def draw_reversals(rng, count):
    digits = rng.integers(10, size=(count, 8))
    return digits, digits[:, ::-1]


reversers = fit_models(Reverser(), draw_reversals, range(5))
digits, answers = draw_reversals(np.random.default_rng(20), 500)
results = [ask(*reverser.unbind(), digits) for reverser in reversers]
reverser_accuracies = [(Y.argmax(axis=-1) == answers).mean() for Y, _ in results]

# %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
print("right:", *(f"{share:.3f}" for share in reverser_accuracies))
_, weights = results[0]
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
questions = np.array([[0]] * 2)
results = [ask(*model.unbind(), letters, digits, questions) for model in models]
predictions = [logits.argmax(axis=-1)[:, 0] for logits, _ in results]
attention_maps = [weights[:, 0] for _, weights in results]

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    print(f"weights of {format_pairs(letters[i], digits[i])}, and the answer to a:")
    for weights, prediction in zip(attention_maps, predictions, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(prediction[i]))
