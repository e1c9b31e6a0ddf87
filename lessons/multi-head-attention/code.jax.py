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
from flax.traverse_util import path_aware_map

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = jnp.eye(3)  # each fruit has its own number
values = d2l.tensor([50.0, 40, 70])  # the price, in cents
pear, lemon = d2l.tensor([0.0, 0, 6]), d2l.tensor([0.0, 6, 0])

for name, query in ("pear", pear), ("lemon", lemon), ("both", pear + lemon):
    weights = jax.nn.softmax(keys @ query)
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {weights @ values:.1f} cents")

# %% two-averages
heads = d2l.stack([jax.nn.softmax(keys @ query) @ values for query in (pear, lemon)])
W_o = d2l.tensor([1.0, -1])  # the first minus the second
print("the two heads:", *(f"{head:.1f}" for head in heads))
print(f"a pear costs {heads @ W_o:.1f} cents more than a lemon")
print(f"a lemon costs {heads[::-1] @ W_o:.1f} cents more than a pear")


# %% split-and-merge
def split(X, num_heads):
    """Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads)."""
    batch, n, d = X.shape
    return X.reshape(batch, n, num_heads, d // num_heads).swapaxes(1, 2)


def merge(X):
    """Put the heads side by side again: (batch, heads, n, width) to (batch, n, d)."""
    batch, num_heads, n, width = X.shape
    return X.swapaxes(1, 2).reshape(batch, n, num_heads * width)


# %% multi-head
def attend(q, k, v):
    """Return scaled dot-product attention over the last two axes."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return jax.nn.softmax(scores) @ v


def multi_head(X, W_q, W_k, W_v, W_o, num_heads):
    """Compute self-attention with heads: project, split, attend, merge, project."""
    q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
    return merge(attend(q, k, v)) @ W_o


# %% shapes
d, num_heads = 8, 2
X = jax.random.normal(jax.random.key(10), (1, 5, d))
W_q, W_k, W_v, W_o = jax.random.normal(jax.random.key(11), (4, d, d)) / math.sqrt(d)
q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
attended = attend(q, k, v)
merged = merge(attended)
steps = {"X": X, "X W_q": X @ W_q, "split": q}
steps |= {"attended": attended, "merged": merged, "output": merged @ W_o}
for name, step in steps.items():
    print(f"{name:>8} {step.shape}")

# %% head-by-head
width = d // num_heads
head_outputs = []
for head in range(num_heads):
    columns = slice(head * width, (head + 1) * width)
    q, k, v = (X @ W[:, columns] for W in (W_q, W_k, W_v))
    head_outputs.append(attend(q, k, v))
headwise_output = d2l.concat(head_outputs, axis=-1) @ W_o

# %% the-layer
layer = d2l.MultiHeadAttention(d, num_heads, dropout=0)
parts = {"W_q": W_q, "W_k": W_k, "W_v": W_v, "W_o": W_o}
parameters = {name: {"kernel": W} for name, W in parts.items()}
layer_output, _ = layer.apply({"params": parameters}, X, X, X)
output = multi_head(X, W_q, W_k, W_v, W_o, num_heads)

# %% all-alike
print(f"largest output: {jnp.abs(output).max():.4f}")
for name, Y in ("head by head", headwise_output), ("the layer", layer_output):
    print(f"{name:>12}: largest difference {jnp.abs(Y - output).max():.4f}")

# %% own-layer
framework_layer = nn.MultiHeadDotProductAttention(num_heads, use_bias=False)
# Its weights also have an axis for the heads.
parts = {"query": W_q, "key": W_k, "value": W_v}
parameters = {
    name: {"kernel": W.reshape(d, num_heads, width)} for name, W in parts.items()
}
parameters["out"] = {"kernel": W_o.reshape(num_heads, width, d)}
framework_output = framework_layer.apply({"params": parameters}, X)
difference = jnp.abs(framework_output - output).max()
print(f"Flax's own: largest difference {difference:.4f}")

# %% merged-wrongly
wrong_merge = attended.reshape(1, 5, d)  # the right shape, and the wrong numbers
print("shapes:", wrong_merge.shape, merge(attended).shape)
share_in_place = (wrong_merge == merge(attended)).mean()
print(f"numbers in their place: {share_in_place:.2f}")


# %% wrong-root
def sharpness(width):
    """Return the mean largest weight of a thousand queries in each of 8 heads."""
    q, k = jax.random.normal(jax.random.key(13), (2, 8, 1000, 64))  # 512 / 8 = 64
    scores = q @ k[:, :10].mT / math.sqrt(width)
    return jax.nn.softmax(scores).max(axis=-1).mean()


for name, width in ("the head's 64", 64), ("the model's 512", 512):
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = jnp.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in 1, 2, 4, 8, 16:
    layer = d2l.MultiHeadAttention(64, num_heads, dropout=0)
    inputs = tokens, tokens, tokens
    initialize = jax.jit(layer.init_with_output)
    (_, weights), variables = initialize(jax.random.key(14), *inputs)
    products = d2l.multiply_adds(layer.bind(variables), *inputs)
    parameters = sum(p.size for p in jax.tree.leaves(variables))
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{parameters:>12,}{products:>15,}"
        f"{weights.size:>9,}"
    )


# %% questions
def draw_questions(rng, count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers."""
    # Drawn with NumPy, since JAX compiles for each new shape.
    alphabets = rng.random((count, 26)).argsort(axis=1)
    letters = alphabets[:, :size]  # no letter twice
    numbers = rng.normal(size=(count, size)).astype("float32")
    # Each question asks for two different entries.
    indices = rng.random((count, size, size)).argsort(axis=2)[:, :, :2]
    questions, pair_numbers = (
        np.take_along_axis(array[:, None], indices, axis=2)
        for array in (letters, numbers)
    )
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


example = draw_questions(np.random.default_rng(15), 1)
letters, numbers, questions, answers = (array[0] for array in example)
print(
    "entries:",
    *(f"{chr(97 + x)} {y:.1f} " for x, y in zip(letters, numbers, strict=True)),
)
for (a, b), answer in zip(questions[:3], answers, strict=False):
    print(f"{chr(97 + a)} - {chr(97 + b)} = {answer:.1f}")


# %% comparer
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class Comparer(nn.Module):
    """A model that compares the numbers of two letters."""

    num_heads: int
    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.first, self.second = (make_table(26, width) for _ in range(3))
        self.number = nn.Dense(width, use_bias=False)
        self.attention = d2l.MultiHeadAttention(width, self.num_heads, dropout=0)
        self.output = nn.Dense(1)

    def __call__(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., None])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        Y, weights = self.attention(queries, entries, entries)
        return self.output(Y)[..., 0], weights


# %% train
def narrow_weights(variables):
    """Scale kernels to a variance of 1 / (3 d): Flax draws them with 1 / d."""
    return path_aware_map(
        lambda path, W: W / math.sqrt(3) if "kernel" in path else W, variables
    )


# Compiled once for each kind of model.
@partial(jax.jit, static_argnames=("model", "loss"))
def fit(model, keys, examples, rate, loss):
    """Train one model for each key, side by side; return their variables."""
    adam = optax.adam(rate)

    def mean_loss(variables, batch):
        *inputs, answers = batch
        predictions, _ = model.apply(variables, *inputs)
        return loss(predictions, answers).mean()

    def step(state, batch):
        variables, adam_state = state
        gradients = jax.grad(mean_loss)(variables, batch)
        updates, adam_state = adam.update(gradients, adam_state)
        return (optax.apply_updates(variables, updates), adam_state), None

    def train_one(key, examples):
        *inputs, _ = (array[0] for array in examples)
        variables = narrow_weights(model.init(key, *inputs))
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, examples)
        return variables

    return jax.vmap(train_one)(keys, examples)


def fit_models(model, draw, rate, loss, seeds):
    """Train a model for each seed in one pass over its examples, 128 at a time."""
    samples = [draw(np.random.default_rng(seed), 150 * 128) for seed in seeds]
    examples = [
        np.stack([array.reshape(150, 128, *array.shape[1:]) for array in arrays])
        for arrays in zip(*samples, strict=True)
    ]
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    variables = jax.tree.map(d2l.numpy, fit(model, keys, examples, rate, loss))
    return [
        model.bind(jax.tree.map(itemgetter(i), variables)) for i in range(len(seeds))
    ]


def train(num_heads, seeds=range(5), sign=-1):
    draw = partial(draw_questions, sign=sign)
    return fit_models(Comparer(num_heads), draw, 0.015, optax.squared_error, seeds)


@partial(jax.jit, static_argnames="model")
def ask(model, variables, *inputs):
    """Return the model's predictions, and its weights."""
    return model.apply(variables, *inputs)


# The same questions for every model.
differences = draw_questions(np.random.default_rng(16), 1000)


def error(model, examples=differences):
    *inputs, answers = examples
    predictions, _ = ask(*model.unbind(), *inputs)
    return ((d2l.numpy(predictions) - answers) ** 2).mean()


models = {h: train(h) for h in (1, 2, 4)}
errors = {h: [error(model) for model in runs] for h, runs in models.items()}

# %% errors tags=["tolerance:absolute=0.03"]
print("heads  mean squared error, five seeds: median (range)")
for h, runs in errors.items():
    print(f"{h:>5}  {statistics.median(runs):.3f} ({min(runs):.3f}-{max(runs):.3f})")

# %% two-heads-map tags=["tolerance:levels=16"]
letters, numbers, questions, _ = draw_questions(np.random.default_rng(17), 1)
_, weights = ask(*models[2][0].unbind(), letters, numbers, questions)
print("entries:  ", *(chr(97 + x) for x in letters[0]))
print("questions:", *(f"{chr(97 + a)}-{chr(97 + b)}" for a, b in questions[0]))
d2l.show_heatmaps(
    weights,
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2"],
    figsize=(6, 3),
    cmap="Blues",
)


# %% without-a-head
def error_without(model, head):
    """Return the error after setting a head's rows of W_o to zero."""
    width = model.num_hiddens // model.num_heads
    mask = np.arange(model.num_hiddens) // width != head

    def remove(path, W):
        return W * mask[:, None] if "W_o" in path else W

    model, variables = model.unbind()
    return error(model.bind(path_aware_map(remove, variables)))


errors_without = {
    h: [[error_without(model, head) for head in range(h)] for model in models[h]]
    for h in (2, 4)
}

# %% without-a-head-shown tags=["tolerance:absolute=0.05"]
for h, runs in errors_without.items():
    print(f"{h} heads, without one of them:")
    for seed, costs in enumerate(runs):
        print(f"   seed {seed}:", *(f"{cost:6.3f}" for cost in costs))


# %% texts
def draw_texts(rng, count, size=4):
    """Draw letters, each followed by its digit; then the same pairs, shuffled."""
    letters = rng.random((count, 26)).argsort(axis=1)[:, :size]
    digits = rng.integers(10, size=(count, size))
    order = rng.random((count, size)).argsort(axis=1)
    pairs = np.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    repeated = np.take_along_axis(pairs, order[..., None], axis=1)
    tokens = np.concatenate([pairs, repeated], axis=1).reshape(count, 4 * size)
    return tokens, np.take_along_axis(digits, order, axis=1)


def format_tokens(tokens):
    return " ".join(chr(97 + x) if x < 26 else str(x - 26) for x in tokens)


for tokens in draw_texts(np.random.default_rng(18), 3)[0]:
    print(format_tokens(tokens))


# %% reader
class Reader(nn.Module):
    """One or two residual layers, with two causal heads in all."""

    num_layers: int
    num_hiddens: int = 32
    length: int = 16

    def setup(self):
        width = self.num_hiddens
        self.token, self.place = make_table(36, width), make_table(self.length, width)
        self.layers = [
            d2l.MultiHeadAttention(width, 2 // self.num_layers, dropout=0)
            for _ in range(self.num_layers)
        ]
        self.output = nn.Dense(10)

    def __call__(self, tokens):
        X = self.token(tokens) + self.place(jnp.arange(tokens.shape[1]))
        maps = []
        for layer in self.layers:
            Y, weights = layer(X, X, X, causal=True)
            X = X + Y
            maps.append(weights)
        half = tokens.shape[1] // 2
        logits = self.output(X[:, half::2])  # the letters of the second half
        return logits, d2l.concat(maps, axis=1)


# %% train-readers
def train_readers(num_layers, seeds=range(5)):
    cross_entropy = optax.softmax_cross_entropy_with_integer_labels
    return fit_models(Reader(num_layers), draw_texts, 0.01, cross_entropy, seeds)


# The same texts for every model.
test = draw_texts(np.random.default_rng(19), 500)


def accuracy(model):
    tokens, digits = test
    logits, _ = ask(*model.unbind(), tokens)
    return (d2l.numpy(logits).argmax(axis=-1) == digits).mean()


readers = {count: train_readers(count) for count in (1, 2)}
accuracies = {
    count: [accuracy(model) for model in runs] for count, runs in readers.items()
}

# %% readers-shares tags=["tolerance:absolute=0.02"]
for count, runs in accuracies.items():
    print(
        f"layers: {count}, right: {statistics.median(runs):.3f} "
        f"({min(runs):.3f}-{max(runs):.3f})"
    )

# %% readers-maps tags=["nbval-ignore-output"]
tokens, _ = draw_texts(np.random.default_rng(20), 1)
_, weights = ask(*readers[2][0].unbind(), tokens)
print(format_tokens(tokens[0]))
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=["First layer", "Second layer"],
    figsize=(7, 3.5),
    cmap="Blues",
)

# %% solution-rank
X = jax.random.normal(jax.random.key(21), (1, 20, d))
for num_heads in 1, 2, 4, 8:
    q, k = (split(X @ W, num_heads)[0, 0] for W in (W_q, W_k))  # the first head's
    rank = jnp.linalg.matrix_rank(q @ k.T)
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
X = jax.random.normal(jax.random.key(22), (1, 5, d))
order = d2l.tensor([4, 5, 6, 7, 0, 1, 2, 3])  # the second of two heads comes first
reordered_weights = [W[:, order] for W in (W_q, W_k, W_v)]
original_output = multi_head(X, W_q, W_k, W_v, W_o, 2)
reordered_output = multi_head(X, *reordered_weights, W_o[order], 2)
print(f"largest output: {jnp.abs(original_output).max():.4f}")
print(f"largest difference: {jnp.abs(reordered_output - original_output).max():.4f}")

# %% solution-sum
adders = train(1, sign=1)
sums = draw_questions(np.random.default_rng(16), 1000, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
median, low, high = statistics.median(sum_errors), min(sum_errors), max(sum_errors)
print(f"one head, sums: mean squared error {median:.3f} ({low:.3f}-{high:.3f})")

# %% solution-mean-map tags=["tolerance:levels=16"]
letters, numbers, questions, _ = draw_questions(np.random.default_rng(23), 1)
_, weights = ask(*models[2][0].unbind(), letters, numbers, questions)
weights = d2l.numpy(weights)
d2l.show_heatmaps(
    np.concatenate([weights, weights.mean(axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""

    def remove(path, W):
        is_removed = f"layers_{layer}" in path and "W_o" in path
        return 0 * W if is_removed else W

    model, variables = model.unbind()
    return accuracy(model.bind(path_aware_map(remove, variables)))


accuracies_without = {
    layer: [accuracy_without(model, layer) for model in readers[2]] for layer in (0, 1)
}

# %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
for layer, runs in accuracies_without.items():
    name = ["first", "second"][layer]
    print(
        f"without the {name:>6}: {statistics.median(runs):.3f} "
        f"({min(runs):.3f}-{max(runs):.3f}) right"
    )
