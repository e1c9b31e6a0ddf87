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
from flax.traverse_util import path_aware_map

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = jnp.eye(3)  # each fruit has its own number
values = jnp.array([50.0, 40, 70])  # the price, in cents
pear = jnp.array([0.0, 0, 6])
lemon = jnp.array([0.0, 6, 0])

for name, query in [("pear", pear), ("lemon", lemon), ("both", pear + lemon)]:
    weights = jax.nn.softmax(keys @ query)
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {weights @ values:.1f} cents")

# %% two-averages
first_head = jax.nn.softmax(keys @ pear) @ values
second_head = jax.nn.softmax(keys @ lemon) @ values
heads = jnp.stack([first_head, second_head])
W_o = jnp.array([1.0, -1])  # the first minus the second
print(f"the two heads: {first_head:.1f} {second_head:.1f}")
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
# Kernels of variance 1 / (3 d) for d inputs; Flax itself draws them with 1 / d.
narrow = nn.initializers.variance_scaling(
    scale=1 / 3, mode="fan_in", distribution="truncated_normal"
)


class MultiHeadAttention(nn.Module):
    """Attention with several heads: project, split, attend, merge, project."""

    num_hiddens: int
    num_heads: int

    def setup(self):
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False, kernel_init=narrow)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False, kernel_init=narrow)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False, kernel_init=narrow)
        self.W_o = nn.Dense(self.num_hiddens, use_bias=False, kernel_init=narrow)

    def __call__(self, queries, keys, values, causal=False):
        q = split(self.W_q(queries), self.num_heads)
        k = split(self.W_k(keys), self.num_heads)
        v = split(self.W_v(values), self.num_heads)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:  # the last query sees all keys, the one before it one fewer, ...
            num_queries, num_keys = scores.shape[-2:]
            is_visible = jnp.ones((num_queries, num_keys), dtype=bool)
            is_visible = jnp.tril(is_visible, num_keys - num_queries)
            scores = jnp.where(is_visible, scores, -jnp.inf)
        weights = jax.nn.softmax(scores)
        return self.W_o(merge(weights @ v)), weights


# %% shapes
d = 8
num_heads = 2
X = jax.random.normal(jax.random.key(10), (1, 5, d))
layer = MultiHeadAttention(d, num_heads)
variables = layer.init(jax.random.key(11), X, X, X)
output, weights = layer.apply(variables, X, X, X)
projected = X @ variables["params"]["W_v"]["kernel"]
v = split(projected, num_heads)
attended = weights @ v
steps = {
    "X": X,
    "X W_v": projected,
    "split": v,
    "weights": weights,
    "attended": attended,
    "merged": merge(attended),
    "output": output,
}
for name, step in steps.items():
    print(f"{name:>8} {step.shape}")

# %% head-by-head
W_q = variables["params"]["W_q"]["kernel"]
W_k = variables["params"]["W_k"]["kernel"]
W_v = variables["params"]["W_v"]["kernel"]
W_o = variables["params"]["W_o"]["kernel"]
width = d // num_heads
head_outputs = []
for head in range(num_heads):
    columns = slice(head * width, (head + 1) * width)
    q = X @ W_q[:, columns]
    k = X @ W_k[:, columns]
    v = X @ W_v[:, columns]
    weights = jax.nn.softmax(q @ k.mT / math.sqrt(width))
    head_outputs.append(weights @ v)
headwise_output = jnp.concatenate(head_outputs, axis=-1) @ W_o

# %% the-layer
d2l_layer = d2l.MultiHeadAttention(d, num_heads, dropout=0)
d2l_output, _ = d2l_layer.apply(variables, X, X, X)
last_two = X[:, -2:]  # the last two of five queries
d2l_causal_output, _ = d2l_layer.apply(variables, last_two, X, X, causal=True)
causal_output, _ = layer.apply(variables, last_two, X, X, causal=True)

# %% all-alike
print(f"largest output: {jnp.abs(output).max():.4f}")
difference = jnp.abs(headwise_output - output).max()
print(f"head by head:         largest difference {difference:.4f}")
difference = jnp.abs(d2l_output - output).max()
print(f"d2l's layer:          largest difference {difference:.4f}")
difference = jnp.abs(d2l_causal_output - causal_output).max()
print(f"d2l's layer, causal:  largest difference {difference:.4f}")

# %% own-layer
framework_layer = nn.MultiHeadDotProductAttention(num_heads, use_bias=False)
# Its matrices also have an axis for the heads.
framework_params = {
    "query": {"kernel": W_q.reshape(d, num_heads, width)},
    "key": {"kernel": W_k.reshape(d, num_heads, width)},
    "value": {"kernel": W_v.reshape(d, num_heads, width)},
    "out": {"kernel": W_o.reshape(num_heads, width, d)},
}
framework_output = framework_layer.apply({"params": framework_params}, X)
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
    q = jax.random.normal(jax.random.key(12), (8, 1000, 64))  # 512 / 8 = 64
    k = jax.random.normal(jax.random.key(13), (8, 10, 64))
    scores = q @ k.mT / math.sqrt(width)
    return jax.nn.softmax(scores).max(axis=-1).mean()


for name, width in [("the head's 64", 64), ("the model's 512", 512)]:
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = jnp.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in [1, 2, 4, 8, 16]:
    layer = MultiHeadAttention(64, num_heads)
    variables = layer.init(jax.random.key(14), tokens, tokens, tokens)
    apply = partial(layer.apply, variables)
    _, weights = apply(tokens, tokens, tokens)
    products = d2l.multiply_adds(apply, tokens, tokens, tokens)
    parameters = sum(p.size for p in jax.tree.leaves(variables))
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{parameters:>12,}{products:>15,}"
        f"{weights.size:>9,}"
    )


# %% questions
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_questions(rng, count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers.

    An answer is the first letter's number plus `sign` times the second's. Letters,
    numbers and answers have shape (count, size), questions (count, size, 2).
    """
    # Drawn with NumPy, since JAX compiles for each new shape.
    alphabets = rng.random((count, 26)).argsort(axis=1)
    letters = alphabets[:, :size]  # no letter twice
    numbers = rng.normal(size=(count, size)).astype("float32")
    # Each question asks for two different entries.
    orders = rng.random((count, size, size)).argsort(axis=2)
    indices = orders[:, :, :2]
    questions = np.take_along_axis(letters[:, None], indices, axis=2)
    pair_numbers = np.take_along_axis(numbers[:, None], indices, axis=2)
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


letters, numbers, questions, answers = draw_questions(np.random.default_rng(15), 1)
pairs = zip(letters[0], numbers[0], strict=True)
entries = [f"{LETTERS[letter]} {number:.1f}" for letter, number in pairs]
print("entries:", "  ".join(entries))
for i in range(3):
    first, second = questions[0, i]
    print(f"{LETTERS[first]} - {LETTERS[second]} = {answers[0, i]:.1f}")


# %% comparer
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class Comparer(nn.Module):
    """A model that compares the numbers of two letters."""

    num_heads: int
    num_hiddens: int = 32

    def setup(self):
        self.letter = make_table(26, self.num_hiddens)
        self.first = make_table(26, self.num_hiddens)
        self.second = make_table(26, self.num_hiddens)
        self.number = nn.Dense(self.num_hiddens, use_bias=False, kernel_init=narrow)
        self.attention = MultiHeadAttention(self.num_hiddens, self.num_heads)
        self.output = nn.Dense(1, kernel_init=narrow)

    def __call__(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., None])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        Y, weights = self.attention(queries, entries, entries)
        return self.output(Y)[..., 0], weights


# %% train
# Compiled once for each module, since the state contains its `apply`.
@partial(jax.jit, static_argnames="loss")
def train_step(state, batch, loss):
    *inputs, answers = batch

    def mean_loss(params):
        predictions, _ = state.apply_fn({"params": params}, *inputs)
        return loss(predictions, answers).mean()

    return state.apply_gradients(grads=jax.grad(mean_loss)(state.params))


def fit(module, seed, examples, loss, optimizer):
    """Train a model from this seed; return it with its variables."""
    *inputs, _ = [array[:1] for array in examples]  # only for their shapes
    variables = module.init(jax.random.key(seed), *inputs)
    state = TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )
    batches = [np.split(array, 150) for array in examples]
    for batch in zip(*batches, strict=True):
        state = train_step(state, batch, loss)
    return module, {"params": state.params}


optimizer = optax.adam(0.015)


def train(comparer, seed, sign=-1):
    rng = np.random.default_rng(seed)
    examples = draw_questions(rng, 150 * 128, sign=sign)
    return fit(comparer, seed, examples, optax.squared_error, optimizer)


# %% comparer-errors
# The same questions for every model.
differences = draw_questions(np.random.default_rng(16), 1000)


def error(model, examples=differences):
    """Return the mean squared error."""
    module, variables = model
    letters, numbers, questions, answers = examples
    predictions, _ = module.apply(variables, letters, numbers, questions)
    return ((predictions - answers) ** 2).mean().item()


models = {}
errors = {}
for num_heads in [1, 2, 4]:
    comparer = Comparer(num_heads)
    models[num_heads] = [train(comparer, seed) for seed in range(5)]
    errors[num_heads] = [error(model) for model in models[num_heads]]

# %% errors tags=["tolerance:absolute=0.03"]
results = {str(num_heads): runs for num_heads, runs in errors.items()}
d2l.print_ranges(results, ["mean squared error"], "heads", digits=3)

# %% two-heads-map tags=["tolerance:levels=16"]
letters, numbers, questions, _ = draw_questions(np.random.default_rng(17), 1)
module, variables = models[2][0]
_, weights = module.apply(variables, letters, numbers, questions)


def name_questions(questions):
    return [f"{LETTERS[first]}-{LETTERS[second]}" for first, second in questions]


# Both letters of each question are framed.
is_asked = (letters[0] == questions[0][:, :, None]).any(axis=1)
d2l.show_heatmaps(
    weights,
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2"],
    figsize=(6, 3),
    cmap="Blues",
    xticklabels=[LETTERS[letter] for letter in letters[0]],
    yticklabels=name_questions(questions[0]),
    marks=is_asked,
)


# %% without-a-head
def error_without(model, head):
    """Return the error after setting a head's rows of W_o to zero."""
    module, variables = model
    width = module.num_hiddens // module.num_heads
    rows = slice(head * width, (head + 1) * width)

    def remove_head(path, W):
        return W.at[rows].set(0) if "W_o" in path else W

    return error((module, path_aware_map(remove_head, variables)))


errors_without = {}
for num_heads in [2, 4]:
    errors_without[num_heads] = [
        [error_without(model, head) for head in range(num_heads)]
        for model in models[num_heads]
    ]

# %% without-a-head-shown tags=["tolerance:absolute=0.05"]
for num_heads, runs in errors_without.items():
    print(f"{num_heads} heads, without one of them:")
    for seed, head_errors in enumerate(runs):
        row = " ".join(f"{x:6.3f}" for x in head_errors)
        print(f"   seed {seed}: {row}")


# %% texts
def draw_texts(rng, count, size=4):
    """Draw letters, each followed by its digit; then the same pairs, shuffled.

    Return tokens (count, 4 * size), and the digits to predict (count, size).
    """
    letters = rng.random((count, 26)).argsort(axis=1)[:, :size]
    digits = rng.integers(10, size=(count, size))
    order = rng.random((count, size)).argsort(axis=1)
    pairs = np.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    repeated = np.take_along_axis(pairs, order[..., None], axis=1)
    tokens = np.concatenate([pairs, repeated], axis=1).reshape(count, 4 * size)
    return tokens, np.take_along_axis(digits, order, axis=1)


def name_tokens(tokens):
    return [(LETTERS + "0123456789")[token] for token in tokens]


for tokens in draw_texts(np.random.default_rng(18), 3)[0]:
    print(*name_tokens(tokens))


# %% reader
class Reader(nn.Module):
    """One or two residual layers, with two causal heads in all."""

    num_layers: int
    num_hiddens: int = 32
    length: int = 16

    def setup(self):
        self.token = make_table(36, self.num_hiddens)
        self.place = make_table(self.length, self.num_hiddens)
        num_heads = 2 // self.num_layers
        self.layers = [
            MultiHeadAttention(self.num_hiddens, num_heads)
            for _ in range(self.num_layers)
        ]
        self.output = nn.Dense(10, kernel_init=narrow)

    def __call__(self, tokens):
        X = self.token(tokens) + self.place(jnp.arange(tokens.shape[1]))
        maps = []
        for layer in self.layers:
            Y, weights = layer(X, X, X, causal=True)
            X = X + Y
            maps.append(weights)
        half = tokens.shape[1] // 2
        logits = self.output(X[:, half::2])  # the letters of the second half
        return logits, jnp.concatenate(maps, axis=1)


# %% train-readers
reader_optimizer = optax.adam(0.01)


def train_reader(reader, seed):
    examples = draw_texts(np.random.default_rng(seed), 150 * 128)
    cross_entropy = optax.softmax_cross_entropy_with_integer_labels
    return fit(reader, seed, examples, cross_entropy, reader_optimizer)


# %% reader-accuracies
# The same texts for every model.
test = draw_texts(np.random.default_rng(19), 500)


def accuracy(model):
    module, variables = model
    tokens, digits = test
    logits, _ = module.apply(variables, tokens)
    return (logits.argmax(axis=-1) == digits).mean().item()


readers = {}
accuracies = {}
for num_layers in [1, 2]:
    reader = Reader(num_layers)
    readers[num_layers] = [train_reader(reader, seed) for seed in range(5)]
    accuracies[num_layers] = [accuracy(model) for model in readers[num_layers]]

# %% readers-shares tags=["tolerance:absolute=0.02"]
results = {str(num_layers): runs for num_layers, runs in accuracies.items()}
d2l.print_ranges(results, ["right"], "layers", digits=3)

# %% readers-maps tags=["nbval-ignore-output"]
tokens, _ = draw_texts(np.random.default_rng(20), 1)
module, variables = readers[2][0]
_, weights = module.apply(variables, tokens)
# First layer: a digit looks at its letter, just before it. Second layer: a letter of
# the second half looks just after its first appearance.
marks = np.zeros((2, 16, 16), dtype=bool)
for i in range(1, 8, 2):
    marks[0, i, i - 1] = True
for i in range(8, 16, 2):
    for j in range(0, 8, 2):
        if tokens[0, i] == tokens[0, j]:
            marks[1, i, j + 1] = True
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=["First layer", "Second layer"],
    figsize=(8, 4),
    cmap="Blues",
    xticklabels=name_tokens(tokens[0]),
    yticklabels=name_tokens(tokens[0]),
    marks=marks,
)

# %% solution-rank
X = jax.random.normal(jax.random.key(21), (1, 20, d))
for num_heads in [1, 2, 4, 8]:
    q = split(X @ W_q, num_heads)[0, 0]  # the first head's
    k = split(X @ W_k, num_heads)[0, 0]
    rank = jnp.linalg.matrix_rank(q @ k.T)
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
X = jax.random.normal(jax.random.key(22), (1, 5, d))
layer = MultiHeadAttention(d, num_heads=2)
variables = layer.init(jax.random.key(24), X, X, X)
params = variables["params"]
order = jnp.array([4, 5, 6, 7, 0, 1, 2, 3])  # the second of two heads comes first
reordered_params = {
    "W_q": {"kernel": params["W_q"]["kernel"][:, order]},
    "W_k": {"kernel": params["W_k"]["kernel"][:, order]},
    "W_v": {"kernel": params["W_v"]["kernel"][:, order]},
    "W_o": {"kernel": params["W_o"]["kernel"][order]},
}
original_output, _ = layer.apply(variables, X, X, X)
reordered_output, _ = layer.apply({"params": reordered_params}, X, X, X)
print(f"largest output: {jnp.abs(original_output).max():.4f}")
print(f"largest difference: {jnp.abs(reordered_output - original_output).max():.4f}")

# %% solution-sum
comparer = Comparer(num_heads=1)
adders = [train(comparer, seed, sign=1) for seed in range(5)]
sums = draw_questions(np.random.default_rng(16), 1000, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
d2l.print_ranges({"1": sum_errors}, ["mean squared error"], "heads", digits=3)

# %% solution-mean-map tags=["tolerance:levels=16"]
letters, numbers, questions, _ = draw_questions(np.random.default_rng(23), 1)
module, variables = models[2][0]
_, weights = module.apply(variables, letters, numbers, questions)
is_asked = (letters[0] == questions[0][:, :, None]).any(axis=1)
d2l.show_heatmaps(
    jnp.concatenate([weights, weights.mean(axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
    xticklabels=[LETTERS[letter] for letter in letters[0]],
    yticklabels=name_questions(questions[0]),
    marks=is_asked,
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""
    module, variables = model

    def remove_layer(path, W):
        is_removed = f"layers_{layer}" in path and "W_o" in path
        return jnp.zeros_like(W) if is_removed else W

    return accuracy((module, path_aware_map(remove_layer, variables)))


accuracies_without = []
for layer in [0, 1]:
    accuracies_without.append([accuracy_without(model, layer) for model in readers[2]])

# %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
names = ["without the first", "without the second"]
results = dict(zip(names, accuracies_without, strict=True))
d2l.print_ranges(results, ["right"], "layer", digits=3)
