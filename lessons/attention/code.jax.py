# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in ["lemon", "lime"]:
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
keys = jnp.array([[2.0, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = jnp.array([50.0, 40, 70])  # the price, in cents
query = jnp.array([0.0, 1])  # a lime: not sweet, a little sour

scores = keys @ query  # how well does each key fit?
exponentials = jnp.exp(scores)
weights = exponentials / exponentials.sum()  # softmax: positive, and they sum to 1
answer = weights @ values  # the average of the values, with these weights

for score, weight, fruit in zip(scores, weights, fruits, strict=True):
    print(f"{score:4.0f}{weight:8.3f}   {fruit}")
print(f"a lime costs about {answer:.0f} cents")

# %% from-soft-to-hard
for factor in [0, 1, 3, 10]:
    weights = jax.nn.softmax(keys @ (factor * query))
    shares = "".join(f"{weight:8.3f}" for weight in weights)
    print(f"query times {factor:>2}:{shares}   {weights @ values:5.1f} cents")


# %% attend
def attend(queries, keys, values):
    """Return an answer for each query: score, softmax, average."""
    scores = queries @ keys.mT  # (queries, keys)
    return jax.nn.softmax(scores) @ values


# %% three-customers
queries = jnp.array([[0.0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = jnp.array([[50.0, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")


# %% batches
def draw_normal(seed, *shapes):
    """Draw standard normal numbers, an array of each shape."""
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    pairs = zip(keys, shapes, strict=True)
    return [jax.random.normal(key, shape) for key, shape in pairs]


queries, keys, values = draw_normal(10, (2, 3, 4), (2, 5, 4), (2, 5, 6))
answers = attend(queries, keys, values)
print("queries", queries.shape)
print("keys   ", keys.shape)
print("values ", values.shape)
print("answers", answers.shape)


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
grid = jnp.linspace(0, 5, 101)
fits = {}
for width in [0.05, 0.3, 3]:
    fits[width] = jax.nn.softmax(closeness(grid, x, width)) @ y

# %% three-widths
d2l.plot(
    [x, *[grid] * 4],
    [y, curve(grid), *fits.values()],
    xlabel="x",
    ylabel="y",
    figsize=(6, 3.5),
    legend=["measured", "true curve", *(f"width {width}" for width in fits)],
    fmts=["o", "-", "--", "-.", ":"],
)

# %% width-heatmaps
maps = []
for width in fits:
    weights = jax.nn.softmax(closeness(x, x, width))
    maps.append(weights / weights.max())
d2l.show_heatmaps(
    jnp.stack(maps)[None],
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
    """Learn the width, by Adam on its logarithm, which keeps it positive."""
    optimizer = optax.adam(0.1)

    def loss(log_width):
        return error(jnp.exp(log_width), x, y, hide_itself)

    def step(_, state):
        log_width, adam_state = state
        gradient = jax.grad(loss)(log_width)
        update, adam_state = optimizer.update(gradient, adam_state)
        return optax.apply_updates(log_width, update), adam_state

    log_width = jnp.log(start)
    state = (log_width, optimizer.init(log_width))
    log_width, _ = jax.lax.fori_loop(0, 100, step, state)
    return jnp.exp(log_width)


# %% learned-widths
for start in [0.1, 1]:
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
variables = additive_layer.init(jax.random.key(12), Q, K, V)
scaled_output, _ = scaled_layer.apply({}, Q, K, V)
additive_output, _ = additive_layer.apply(variables, Q, K, V)
layer_outputs = [scaled_output, additive_output]

parameters = variables["params"]
W_q = parameters["W_q"]["kernel"]
W_k = parameters["W_k"]["kernel"]
w = parameters["w_v"]["kernel"][:, 0]
manual_outputs = [
    jax.nn.softmax(scaled_dot(Q, K)) @ V,
    jax.nn.softmax(additive(Q, K, W_q, W_k, w)) @ V,
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
framework_output = jax.nn.dot_product_attention(
    Q[:, :, None], K[:, :, None], V[:, :, None]
)
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
    query = samples[:, :1, :width]
    ten_keys = samples[:, 1:, :width]
    for name, score in [("unscaled", dot), ("scaled", scaled_dot)]:
        weights = jax.nn.softmax(score(query, ten_keys))[:, 0]
        largest_weights[name].append(weights.max(axis=1).mean())
        outer = weights[:, :, None] * weights[:, None]
        derivative = weights[:, :, None] * jnp.eye(10) - outer
        slopes[name].append(jnp.median(jnp.linalg.norm(derivative, axis=(1, 2))))

# %% largest-weight
powers = [math.log2(width) for width in widths]
d2l.plot(
    powers,
    list(largest_weights.values()),
    xlabel="log2(d)",
    ylabel="Largest weight",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)

# %% slope
d2l.plot(
    powers,
    list(slopes.values()),
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


position = jnp.arange(5)
is_real = jnp.broadcast_to(position < 3, (5, 5))  # three real keys, two of padding
causal_mask = position <= position[:, None]  # no later key
scores = jax.random.normal(jax.random.key(14), (5, 5))
masks = [is_real, causal_mask, is_real & causal_mask]
maps = [masked_weights(scores, mask) for mask in masks]
d2l.show_heatmaps(
    jnp.stack(maps)[None],
    xlabel="Keys",
    ylabel="Queries",
    titles=["Padding", "Causal", "Both"],
    figsize=(8, 3),
    cmap="Blues",
)

# %% last-queries
layer = d2l.DotProductAttention(dropout=0)
X = jax.random.normal(jax.random.key(15), (1, 5, 8))
output_all, _ = layer.apply({}, X, X, X, causal=True)
output_last_two, weights = layer.apply({}, X[:, -2:], X, X, causal=True)
print("two queries: keys seen", (weights[0] > 0).sum(axis=-1).tolist())
difference = jnp.abs(output_last_two - output_all[:, -2:]).max()
print(f"from the last two of five: largest difference {difference:.4f}")


# %% empty-row
def print_row(name, weights):
    print(name, *[f"{weight:5.2f}" for weight in weights])


is_real = jnp.broadcast_to(position >= 2, (5, 5))  # here the padding comes first
weights = masked_weights(scores, is_real & causal_mask)
print_row("by hand:   ", weights[0])
bias = jnp.where(is_real, 0.0, -jnp.inf)
_, weights = layer.apply({}, X, X, X, causal=True, score_bias=bias)
print_row("the layer: ", weights[0, 0])

# %% own-empty-row
# As wide as the keys, as JAX asks; the last three numbers are zeros.
identity = jnp.eye(5, 8)[None]  # with these values, the answers are the weights
own_weights = jax.nn.dot_product_attention(
    X[:, :, None],
    X[:, :, None],
    identity[:, :, None],
    mask=(is_real & causal_mask)[None, None],
)
print_row("JAX's:     ", own_weights[0, 0, 0, :5])


# %% dictionaries
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_dictionaries(rng, count, size=6):
    """Draw entries (a letter and a digit each), letters to ask for, and the answers.

    Return four arrays of whole numbers, each of shape (count, size).
    """
    # Drawn with NumPy, since JAX compiles for each new shape.
    letters = rng.random((count, 26)).argsort(axis=1)[:, :size]  # no letter twice
    digits = rng.integers(10, size=(count, size))
    order = rng.random((count, size)).argsort(axis=1)
    questions = np.take_along_axis(letters, order, axis=1)
    answers = np.take_along_axis(digits, order, axis=1)
    return letters, digits, questions, answers


def name_pairs(letters, digits):
    """Return names such as p2, for one dictionary's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


rng = np.random.default_rng(16)
for letters, digits, questions, answers in zip(*draw_dictionaries(rng, 3), strict=True):
    print(*name_pairs(letters, digits), " -> ", *name_pairs(questions, answers))


# %% look-up
class LookUp(nn.Module):
    """A dictionary with learned queries, keys and values, which scores each digit."""

    num_hiddens: int = 32

    def setup(self):
        # Vectors of variance 1; Flax's default vectors are shorter.
        normal = nn.initializers.normal(stddev=1)
        self.letter = nn.Embed(26, self.num_hiddens, embedding_init=normal)
        self.digit = nn.Embed(10, self.num_hiddens, embedding_init=normal)
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False)
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        """Return a logit for each digit, and the weights."""
        scores = scaled_dot(self.W_q(queries), self.W_k(keys))
        weights = jax.nn.softmax(scores)
        return self.output(weights @ self.W_v(values)), weights


# %% train
optimizer = optax.adam(0.015)


def loss(params, apply, inputs, answers):
    scores, _ = apply({"params": params}, *inputs)
    return optax.softmax_cross_entropy_with_integer_labels(scores, answers).mean()


@jax.jit  # compiled once for each module, since the state contains its `apply`
def train_step(state, inputs, answers):
    gradients = jax.grad(loss)(state.params, state.apply_fn, inputs, answers)
    return state.apply_gradients(grads=gradients)


def train(module, seed):
    """Train a module from this seed; return a model, the module with its variables."""
    rng = np.random.default_rng(seed)
    letters, digits, questions, _ = draw_dictionaries(rng, 1)  # only for their shapes
    variables = module.init(jax.random.key(seed), letters, digits, questions)
    state = TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )
    for _ in range(150):
        letters, digits, questions, answers = draw_dictionaries(rng, 64)
        state = train_step(state, (letters, digits, questions), answers)
    return module, {"params": state.params}


# %% accuracies
# The same questions for every model.
sizes = [6, 12, 26]
rng = np.random.default_rng(17)
tests = {size: draw_dictionaries(rng, 500, size) for size in sizes}


def accuracies(models):
    """Return the share of right answers, (models, sizes)."""
    shares = []
    for module, variables in models:
        row = []
        for letters, digits, questions, answers in tests.values():
            scores, _ = module.apply(variables, letters, digits, questions)
            predictions = scores.argmax(axis=-1)
            row.append((predictions == answers).mean().item())
        shares.append(row)
    return shares


module = LookUp()
models = [train(module, seed) for seed in range(5)]
look_up_accuracies = accuracies(models)

# %% shares tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": look_up_accuracies}, sizes, "entries", digits=3)

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
rng = np.random.default_rng(18)
letters, digits, questions, answers = draw_dictionaries(rng, 1)
module, variables = models[0]
_, weights = module.apply(variables, letters, digits, questions)
d2l.show_heatmaps(
    weights[None],
    xlabel="Entries",
    ylabel="Letters asked for",
    figsize=(3.5, 3),
    cmap="Blues",
    xticklabels=name_pairs(letters[0], digits[0]),
    yticklabels=[LETTERS[letter] for letter in questions[0]],
    marks=questions[0][:, None] == letters[0],
)


# %% letters-in-keys
def answer_from_parts(module, letters, digits, questions):
    """Return the logits for four choices of keys and values."""
    queries = module.letter(questions)
    letter_vectors = module.letter(letters)
    digit_vectors = module.digit(digits)
    entries = letter_vectors + digit_vectors
    keys_and_values = [
        (entries, entries),
        (letter_vectors, digit_vectors),
        (digit_vectors, entries),
        (entries, letter_vectors),
    ]
    return [module.answer(queries, K, V)[0] for K, V in keys_and_values]


letters, digits, questions, answers = tests[6]
module, variables = models[0]
# Within `apply`, a function can use the module's parts.
part_logits = module.apply(
    variables, letters, digits, questions, method=answer_from_parts
)
part_accuracies = [(logits.argmax(axis=-1) == answers).mean() for logits in part_logits]

# %% letters-in-keys-shown tags=["tolerance:absolute=0.03"]
names = [
    "as trained",
    "letters alone in the keys, digits alone in the values",
    "digits alone in the keys",
    "letters alone in the values",
]
for share, name in zip(part_accuracies, names, strict=True):
    print(f"{share:.3f}  {name}")


# %% removed
def answer_with_masks(module, letters, digits, questions):
    """Return the logits without the heaviest entry, and with it alone."""
    queries = module.letter(questions)
    entries = module.letter(letters) + module.digit(digits)
    _, weights = module.answer(queries, entries, entries)
    heaviest = weights.argmax(axis=-1)  # what each question looks at
    is_heaviest = jax.nn.one_hot(heaviest, 6, dtype=bool)
    scores = scaled_dot(module.W_q(queries), module.W_k(entries))
    others_only = masked_weights(scores, ~is_heaviest) @ module.W_v(entries)
    heaviest_only = masked_weights(scores, is_heaviest) @ module.W_v(entries)
    return [module.output(Y) for Y in [others_only, heaviest_only]]


masked_logits = module.apply(
    variables, letters, digits, questions, method=answer_with_masks
)
masked_accuracies = [
    (logits.argmax(axis=-1) == answers).mean() for logits in masked_logits
]

# %% removed-shown tags=["tolerance:absolute=0.03"]
names = ["that entry hidden", "that entry alone"]
for share, name in zip(masked_accuracies, names, strict=True):
    print(f"{share:.3f}  right with {name}")

# %% same-answer
values = jnp.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
for weights in [[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]]:
    print(weights, "->", (jnp.array(weights) @ values).tolist())

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
counts = [20, 80, 320]
learned_widths = []
for seed in range(5):
    row = []
    for count in counts:
        x_few, y_few = draw_points(count, seed)
        row.append(learn_width(x_few, y_few, start=1))
    learned_widths.append(row)

# %% solution-width-shown
d2l.print_ranges({"width": learned_widths}, counts, "points")


# %% solution-additive
class AdditiveLookUp(LookUp):
    def setup(self):
        super().setup()
        self.w = nn.Dense(1, use_bias=False)

    def answer(self, queries, keys, values):
        every_pair = self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]
        scores = self.w(jnp.tanh(every_pair)).squeeze(-1)
        weights = jax.nn.softmax(scores)
        return self.output(weights @ self.W_v(values)), weights


module = AdditiveLookUp()
additive_models = [train(module, seed) for seed in range(5)]
additive_accuracies = accuracies(additive_models)

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": additive_accuracies}, sizes, "entries", digits=3)


# %% solution-reversal
class Reverser(nn.Module):
    """A model that writes digits backwards; a key is the sum of place and digit."""

    num_hiddens: int = 32
    length: int = 8

    def setup(self):
        normal = nn.initializers.normal(stddev=1)
        self.digit = nn.Embed(10, self.num_hiddens, embedding_init=normal)
        self.query = nn.Embed(self.length, self.num_hiddens, embedding_init=normal)
        self.place = nn.Embed(self.length, self.num_hiddens, embedding_init=normal)
        self.output = nn.Dense(10)

    def __call__(self, digits):
        keys = self.place.embedding + self.digit(digits)
        weights = jax.nn.softmax(scaled_dot(self.query.embedding, keys))
        return self.output(weights @ self.digit(digits)), weights


# %% solution-reversers
def train_reverser(module, seed):
    rng = np.random.default_rng(seed)
    digits = rng.integers(10, size=(1, 8))  # only for its shape
    variables = module.init(jax.random.key(seed), digits)
    state = TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )
    for _ in range(150):
        digits = rng.integers(10, size=(64, 8))
        state = train_step(state, (digits,), digits[:, ::-1])
    return module, {"params": state.params}


module = Reverser()
reversers = [train_reverser(module, seed) for seed in range(5)]
digits = np.random.default_rng(20).integers(10, size=(500, 8))
reverser_accuracies = []
for module, variables in reversers:
    scores, _ = module.apply(variables, digits)
    predictions = scores.argmax(axis=-1)
    reverser_accuracies.append((predictions == digits[:, ::-1]).mean())

# %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
print("right:", *(f"{share:.3f}" for share in reverser_accuracies))
module, variables = reversers[0]
_, weights = module.apply(variables, digits[:1])
d2l.show_heatmaps(
    weights[:, None],
    xlabel="Digits read",
    ylabel="Digits written",
    figsize=(3.5, 3),
    cmap="Blues",
)

# %% solution-twice
letters = np.array([[0, 1, 0, 2], [0, 1, 0, 2]])
digits = np.array([[3, 5, 7, 9], [7, 5, 3, 9]])  # a3 b5 a7 c9; a7 b5 a3 c9
questions = np.array([[0], [0]])
predictions = []
attention_maps = []
for module, variables in models:
    scores, weights = module.apply(variables, letters, digits, questions)
    predictions.append(scores.argmax(axis=-1)[:, 0])
    attention_maps.append(weights[:, 0])

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    pairs = " ".join(name_pairs(letters[i], digits[i]))
    print(f"weights of {pairs}, and the answer to a:")
    for weights, prediction in zip(attention_maps, predictions, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(prediction[i]))
