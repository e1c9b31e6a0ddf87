# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics
from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% six-words
sentence = "the cat sat because it purred"
# How thing-like a word is, and how action-like.
X = d2l.tensor([[0.0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])

query = X[4]  # the fifth word
scores = X @ query  # how well does each word fit?
powers = jnp.exp(scores)
weights = powers / powers.sum()  # softmax: positive, and they sum to 1
output = weights @ X  # the average, weighted by these shares

for score, weight, word in zip(scores, weights, sentence.split(), strict=True):
    print(f"{score:5.0f}{weight:8.2f}   {word}")
print(f"({output[0]:.2f}, {output[1]:.2f})  it, having looked around")


# %% all-words
def print_rows(weights, Y, sentence):
    """Print each word's weights for all six, and its new vector."""
    for row, (thing, action), word in zip(weights, Y, sentence.split(), strict=True):
        shares = "".join(f"{weight:6.2f}" for weight in row)
        print(f"{shares}   ({thing:.2f}, {action:.2f})  {word}")


weights = jax.nn.softmax(X @ X.T)  # a row for each query
print_rows(weights, weights @ X, "the cat sat because it purred")

# %% three-roles
W_q = d2l.tensor([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = W_v = jnp.eye(2)

Q, K, V = X @ W_q, X @ W_k, X @ W_v
weights = jax.nn.softmax(Q @ K.T)
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% saturation
widths = [2**power for power in range(2, 11)]
plain, scaled = [], []  # for each width, scores of shape (queries, keys)
samples = jax.random.normal(jax.random.key(10), (1000, 11, 1024))
for width in widths:  # all from one draw; narrow vectors are cut from wide ones
    queries, keys = samples[:, :1, :width], samples[:, 1:, :width]
    plain.append((queries * keys).sum(axis=-1))
    scaled.append(plain[-1] / math.sqrt(width))

# %% scaling
for i in (0, 4, 8):
    for name, scores in ("unscaled", plain[i]), ("scaled", scaled[i]):
        largest = d2l.numpy(jax.nn.softmax(scores)).max(axis=1).mean()
        print(
            f"d = {widths[i]:>4}: spread {d2l.numpy(scores).std():5.2f}"
            f", largest weight {largest:.2f}  {name}"
        )


# %% slopes
@jax.jit
def slope(scores):
    """Return the norm of the softmax's derivative: the median over the queries."""
    derivatives = jax.vmap(jax.jacobian(jax.nn.softmax))(scores)
    return jnp.median(jnp.linalg.norm(derivatives, axis=(1, 2)))


d2l.plot(
    [math.log2(width) for width in widths],
    [[slope(scores) for scores in plain], [slope(scores) for scores in scaled]],
    xlabel="log2(d)",
    ylabel="Norm of the derivative",
    ylim=(0, 0.4),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)

X = d2l.ones((2, 4, num_hiddens))
valid_lens = d2l.tensor([3, 2])
attention_variables = jax.jit(attention.init)(jax.random.key(11), X, X, X)
attend = jax.jit(attention.apply)  # compiled once for each shape
Y, weights = attend(attention_variables, X, X, X, valid_lens)
Y.shape


# %% by-hand
def attend_manually(X, valid_len):
    """Compute the formula, head by head, for one sequence."""
    parameters = attention_variables["params"]
    W_q, W_k, W_v, W_o = (parameters[f"W_{i}"]["kernel"] for i in "qkvo")
    Q, K, V = (jnp.split(X @ W, num_heads, axis=-1) for W in (W_q, W_k, W_v))
    masked = jnp.arange(len(X)) >= valid_len
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        heads.append(jax.nn.softmax(jnp.where(masked, -jnp.inf, scores)) @ v)
    return d2l.concat(heads, axis=-1) @ W_o


X = jax.random.normal(jax.random.key(12), (2, 4, num_hiddens))
# The weights have the shape (batch, heads, queries, keys).
Y, weights = attend(attention_variables, X, X, X, valid_lens)
manual_output = jax.jit(jax.vmap(attend_manually))(X, valid_lens)

# %% by-hand-difference
print(f"largest number in Y:  {jnp.abs(Y).max():.5f}")
print(f"largest difference:   {jnp.abs(Y - manual_output).max():.5f}")

# %% weights-heatmaps
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(num_heads)],
    figsize=(8, 3.5),
    cmap="Blues",
)

# %% six-tokens
tokens = jax.random.normal(jax.random.key(13), (1, 6, num_hiddens))
order = d2l.tensor([3, 0, 5, 1, 4, 2])
# The first query may see one key, the second two, and so on.
earlier_only = jnp.arange(1, 7)[None]


def attend_without_mask(X):
    return attend(attention_variables, X, X, X)[0]


def attend_with_mask(X):
    return attend(attention_variables, X, X, X, earlier_only)[0]


def effect_of_order(layer):
    """Return how far shuffling before the layer is from shuffling after it."""
    return jnp.abs(layer(tokens[:, order]) - layer(tokens)[:, order]).max()


# %% equivariance
for name, layer in (
    ("without a mask", attend_without_mask),
    ("with a causal mask", attend_with_mask),
):
    largest = jnp.abs(layer(tokens)).max()
    difference = effect_of_order(layer)
    print(f"{name}: largest output {largest:.4f}, largest difference {difference:.4f}")


# %% cnn-and-rnn
n, d, k = 10, 16, 3

conv = nn.Conv(d, kernel_size=(k,), use_bias=False)  # pads to keep the length
conv_variables = jax.jit(conv.init)(jax.random.key(14), jnp.zeros((1, n, d)))
orthogonal = nn.initializers.orthogonal()
W_xh, W_hh = (orthogonal(key, (d, d)) for key in jax.random.split(jax.random.key(15)))


@jax.jit
def cnn(X):
    return conv.apply(conv_variables, X)


@jax.jit
def rnn(X, W_hh=W_hh):
    def step(H, x):
        H = jnp.tanh(x @ W_xh + H @ W_hh)
        return H, H

    _, outputs = jax.lax.scan(step, jnp.zeros_like(X[:, 0]), X.swapaxes(0, 1))
    return outputs.swapaxes(0, 1)


# %% three-layers
@partial(jax.jit, static_argnums=0)
def halve(layer, key, X):
    """Halve the weights that Flax draws, so that attention is more even."""
    return jax.tree.map(lambda W: W / 2, layer.init(key, X, X, X))


X = jax.random.normal(jax.random.key(16), (1, n, d))
small_attention = d2l.MultiHeadAttention(d, 2, 0)
small_variables = halve(small_attention, jax.random.key(17), X)


@jax.jit
def self_attention(X):
    return small_attention.apply(small_variables, X, X, X)[0]


layers = {"CNN": cnn, "RNN": rnn, "Self-attention": self_attention}
{name: layer(X).shape for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    jacobian = d2l.numpy(jax.jit(jax.jacobian(layer))(X))
    return np.linalg.norm(jacobian[0, :, :, 0], axis=(1, 3))


maps = [influence(layer, X) for layer in layers.values()]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    print(f"{name}: {np.count_nonzero(m)} of {m.size} pairs are connected")
d2l.show_heatmaps(
    np.stack([m / m.max() for m in maps])[None],
    xlabel="Input j",
    ylabel="Output i",
    titles=names,
    figsize=(8, 3),
    cmap="Blues",
)


# %% receptive-field
def stack(depth):
    def layer(X):
        for _ in range(depth):
            X = jnp.tanh(cnn(X))
        return X

    return layer


influences = [influence(stack(depth), X) for depth in range(1, 5)]

# %% reach
sources = [f"x_{j + 1}" for j in np.flatnonzero(influences[1][2])]
print("two layers: y_3 depends on", ", ".join(sources))
for depth, m in enumerate(influences, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(length, values):
    print(f"{length:>4}" + "".join(f"{value:>16}" for value in values))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = np.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers.values()])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = np.zeros((1, length, d))
    counts = [d2l.multiply_adds(layer, X) for layer in layers.values()]
    attention_count = 4 * length * d**2 + 2 * length**2 * d
    agree = counts == [k * length * d**2, 2 * length * d**2, attention_count]
    print_row(length, [*(f"{count:,}" for count in counts), "yes" if agree else "no"])


# %% binary
for i in range(8):
    print(f"{i} in binary is {i:>03b}")


# %% sinusoids
def sinusoids(num_positions, num_hiddens):
    """Return P, with a row for each position; pairs of columns share a frequency."""
    # In NumPy's double precision: the sine of a large angle needs the digits.
    position, column = np.arange(num_positions)[:, None], np.arange(num_hiddens)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return jnp.asarray(P, jnp.float32)


for i, row in enumerate(sinusoids(3, 4)):
    print(i, [f"{x:.2f}" for x in row])


# %% positional-encoding
class PositionalEncoding(nn.Module):
    """A layer that adds sines and cosines of the position to each vector."""

    num_hiddens: int
    dropout: float
    max_len: int = 1000

    def setup(self):
        self.P = sinusoids(self.max_len, self.num_hiddens)[None]
        self.dropping = nn.Dropout(self.dropout)

    def __call__(self, X, training=False, *, offset=0):
        end = offset + X.shape[1]
        if offset < 0 or end > self.max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}, expected 0 to {self.max_len - 1}"
            )
        self.sow("intermediates", "P", self.P)
        return self.dropping(X + self.P[:, offset:end], deterministic=not training)


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def attend_with_positions(X):
    return attend_without_mask(add_positions.apply({}, X))


# %% order-seen
difference = effect_of_order(attend_with_positions)
print(f"with positions: largest difference {difference:.4f}")

# %% scale-and-sum
d_model = 512
ids = jax.random.randint(jax.random.key(18), (1, 60), 0, 1000)
normal = nn.initializers.normal(stddev=d_model**-0.5)
default_embedding = nn.Embed(1000, d_model)
small = nn.Embed(1000, d_model, embedding_init=normal)

embedded, _ = jax.jit(small.init_with_output)(jax.random.key(19), ids)
scaled_up = embedded * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
total, state = encoding.apply({}, scaled_up, mutable="intermediates")
(P,) = state["intermediates"]["P"]
lengths = [
    np.linalg.norm(vectors, axis=-1).mean()
    for vectors in (embedded, scaled_up, P[0, :60], total)
]
default_vectors, _ = jax.jit(default_embedding.init_with_output)(
    jax.random.key(20), ids
)
default_length = np.linalg.norm(default_vectors, axis=-1).mean()

# %% lengths
for length, name in zip(
    lengths,
    ["embedding", "scaled by sqrt(d)", "encoding", "sum of these two"],
    strict=True,
):
    print(f"{length:6.2f}  {name}")
print(f"{default_length:6.2f}  embedding, as Flax draws it")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding.apply({}, d2l.zeros((1, num_steps, width)))[0]
d2l.plot(
    d2l.arange(num_steps),
    P[:, 6:10].T,
    xlabel="Row (position)",
    figsize=(6, 2.5),
    legend=[f"Col {column}" for column in range(6, 10)],
)

# %% encoding-heatmap
d2l.show_heatmaps(
    P[None, None],
    xlabel="Column (encoding dimension)",
    ylabel="Row (position)",
    figsize=(3.5, 4),
    cmap="RdBu_r",
)

# %% wavelengths
pair = jnp.arange(width // 2)
omega = 10000.0 ** (-2 * pair / width)  # radians per position, one for each pair
print("positions per turn:")
print((2 * math.pi / omega).round().astype(int).tolist())

# %% dot-products
products = d2l.numpy(P @ P.T)
distances = np.arange(-20, 21)  # i - j
d2l.plot(
    distances,
    [products[i, i - distances] for i in (20, 28, 36)],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in (20, 28, 36)],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"P_i with itself: {products[0, 0]:.4f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% rotation
@jax.jit
def turn(X, angle):
    """Turn the pairs of columns, points in the plane, by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]  # all sines, all cosines
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    return d2l.stack([x * cos + y * sin, y * cos - x * sin], axis=-1).reshape(X.shape)


for row, name in (P[3], "3"), (turn(P[3], 5 * omega), "3, turned by 5"), (P[8], "8"):
    print(*(f"{x:7.4f}" for x in row[:4]), f"  row {name}")
rows, largest = d2l.numpy(P), 0
for delta in (1, 2, 5, 10, 30, -5):
    i = np.arange(max(0, -delta), num_steps - max(0, delta))
    residual = d2l.numpy(turn(P, delta * omega))[i] - rows[i + delta]
    largest = max(largest, np.abs(residual).max())
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q, W_k = turn(np.eye(width), -5 * omega), 4 * np.eye(width)
Q, K = P[:20] @ W_q, P[:20] @ W_k
back_weights = jax.nn.softmax(Q @ K.T / math.sqrt(width))
d2l.show_heatmaps(
    back_weights[None, None],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% rotary
class RotaryAttention(d2l.DotProductAttention):
    """Attention that first turns queries and keys by their positions."""

    def __call__(self, queries, keys, values, valid_lens=None, training=False):
        queries, keys = self.rotate(queries), self.rotate(keys)
        return super().__call__(queries, keys, values, valid_lens, training)

    def rotate(self, X):
        position = jnp.arange(X.shape[1])[:, None]
        pair = jnp.arange(X.shape[2] // 2)
        return turn(X, position * 10000.0 ** (-2 * pair / X.shape[2]))


# %% rotary-scores
q, k_ = jax.random.normal(jax.random.key(21), (2, 1, width))
rotary = RotaryAttention(0)
Q, K = (rotary.rotate(jnp.broadcast_to(x, (1, 60, width))) for x in (q, k_))
scores = d2l.numpy(Q @ K.mT)[0]
diagonals = [scores.diagonal(k) for k in range(1 - num_steps, num_steps)]

# %% rotary-check
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% task
def draw_sequences(rng, count, length=8):
    """Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first."""
    # Drawn with NumPy, as data often are, since JAX compiles for each new shape.
    tokens = rng.integers(2, 10, (count, length))
    # Two different positions: one for the 0, and one for the 1.
    positions = rng.random((count, length)).argsort(axis=1)[:, :2]
    np.put_along_axis(tokens, positions, np.array([[0, 1]]), axis=1)
    return tokens, (positions[:, 0] < positions[:, 1]).astype("float32")


for tokens, label in zip(*draw_sequences(np.random.default_rng(22), 3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% learned-positions
# Flax would draw the entries of a table with variance 1 / num_hiddens.
variance_1 = nn.initializers.normal(stddev=1)


class LearnedPositionalEncoding(nn.Module):
    """A table of positions, trained like every other weight."""

    num_hiddens: int
    max_len: int

    def setup(self):
        self.P = nn.Embed(self.max_len, self.num_hiddens, embedding_init=variance_1)

    def __call__(self, X):
        return X + self.P(jnp.arange(X.shape[1]))


# %% reader
class Reader(nn.Module):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    positions: Callable = lambda X: X
    causal: bool = False
    attention: nn.Module = d2l.MultiHeadAttention(32, 4, 0)
    num_hiddens: int = 32

    def setup(self):
        self.embedding = nn.Embed(10, self.num_hiddens, embedding_init=variance_1)
        self.output = nn.Sequential([nn.Dense(self.num_hiddens), nn.relu, nn.Dense(1)])

    def __call__(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y, weights = self.attention(X, X, X, causal=self.causal)
        return self.output(Y.mean(axis=1)).squeeze(-1), weights


# %% train
@partial(jax.jit, static_argnums=0)  # compiled once for each reader
def fit(reader, keys, tokens, labels):
    """Train one reader for each key, side by side; return their variables."""
    adam = optax.adam(8e-3)

    def loss(variables, tokens, labels):
        logits, _ = reader.apply(variables, tokens)
        return optax.sigmoid_binary_cross_entropy(logits, labels).mean()

    def step(state, batch):
        variables, adam_state = state
        gradients = jax.grad(loss)(variables, *batch)
        updates, adam_state = adam.update(gradients, adam_state)
        return (optax.apply_updates(variables, updates), adam_state), None

    def train_one(key, tokens, labels):
        variables = reader.init(key, tokens[0])
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, (tokens, labels))
        return variables

    return jax.vmap(train_one)(keys, tokens, labels)


def train(reader, seeds=range(5)):
    """Train a reader for each seed on sequences of 8 tokens; return the variables."""
    keys, tokens, labels = [], [], []
    for seed in seeds:
        examples = draw_sequences(np.random.default_rng(seed), 120 * 128)
        keys.append(jax.random.key(seed))
        tokens.append(examples[0].reshape(120, 128, -1))
        labels.append(examples[1].reshape(120, 128))
    return fit(reader, jnp.stack(keys), np.stack(tokens), np.stack(labels))


@partial(jax.jit, static_argnums=0)
def ask(reader, variables, tokens):
    """Return the logits, and the weights of the reader's attention."""
    return reader.apply(variables, tokens)


example = np.array([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])
reader = Reader(d2l.PositionalEncoding(32, 0))
# From here to the end of the section, this is the reader of the first seed.
variables = jax.tree.map(lambda arrays: d2l.numpy(arrays)[0], train(reader))
_, weights = ask(reader, variables, example)

# %% trained-maps tags=["tolerance:levels=16"]
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(4)],
    figsize=(8, 4),
    cmap="Blues",
)

# %% found
tokens, labels = draw_sequences(np.random.default_rng(23), 1000)
_, weights = ask(reader, variables, tokens)
received = d2l.numpy(weights).mean(axis=2)
# Shares of weight, of shape (sequences, heads).
zero, one = ((received * (tokens == token)[:, None]).sum(axis=2) for token in (0, 1))
zero_is_first = (labels > 0)[:, None]
first, last = np.where(zero_is_first, (zero, one), (one, zero))

# %% found-shares tags=["tolerance:absolute=0.02"]
print("    on 0    on 1   on the first   on the last")
for h in range(4):
    means = [share[:, h].mean() for share in (zero, one, first, last)]
    print(
        f"{means[0]:8.2f}{means[1]:8.2f}{means[2]:15.2f}{means[3]:14.2f}   head {h + 1}"
    )


# %% without-positions
@jax.jit
def answer(queries, keys, values):
    Y, _ = bound_reader.attention(queries, keys, values)
    return bound_reader.output(Y.mean(axis=1)).squeeze(-1)


def attention_accuracy(queries, keys, values):
    return ((answer(queries, keys, values) > 0) == (labels > 0)).mean()


bound_reader = reader.bind(variables)
X = bound_reader.embedding(tokens)
X_with_P = bound_reader.positions(X)
full_accuracy = attention_accuracy(X_with_P, X_with_P, X_with_P)
scores_accuracy = attention_accuracy(X_with_P, X_with_P, X)
values_accuracy = attention_accuracy(X, X, X_with_P)

# %% without-positions-shown tags=["tolerance:absolute=0.02"]
print(f"share right, positions everywhere:                {full_accuracy:.3f}")
print(f"share right, positions in queries and keys alone: {scores_accuracy:.3f}")
print(f"share right, positions in values alone:           {values_accuracy:.3f}")


# %% five-readers
@partial(jax.jit, static_argnums=0)
def ask_all(reader, variables, tokens):
    """Return the logits of each seed's reader, side by side: (seeds, sequences)."""
    logits, _ = jax.vmap(reader.apply, in_axes=(0, None))(variables, tokens)
    return logits


# The same sequences for every reader.
tests = {
    length: draw_sequences(np.random.default_rng(length), 500, length)
    for length in (8, 16, 32, 64)
}


def accuracies(reader, variables, length):
    """Return the share of these sequences that the reader of each seed gets right."""
    tokens, labels = tests[length]
    logits = d2l.numpy(ask_all(reader, variables, tokens))
    return ((logits > 0) == (labels > 0)).mean(axis=1)


class RotaryMultiHeadAttention(d2l.MultiHeadAttention):
    """Multi-head attention, with queries and keys turned in every head."""

    Attention = RotaryAttention


readers = {
    "fixed": Reader(d2l.PositionalEncoding(32, 0)),
    "learned": Reader(LearnedPositionalEncoding(32, max_len=64)),
    "rotary": Reader(attention=RotaryMultiHeadAttention(32, 4, 0)),
    "mask": Reader(causal=True),
    "fixed_mask": Reader(d2l.PositionalEncoding(32, 0), causal=True),
}

# %% past-the-end
results = {}
for name, reader in readers.items():
    variables = train(reader)
    shares = [accuracies(reader, variables, length) for length in tests]
    results[name] = np.transpose(shares).tolist()  # by seed, and then by length

# %% past-the-end-figure tags=["tolerance:absolute=0.25", "tolerance:points=50"]
names = ["fixed encoding", "learned table", "RoPE", "causal mask", "fixed, causal mask"]
xs = [[*tests]] * len(names)
ys = []
print("".join(f"{length:>15}" for length in tests), "  tokens")
for name, runs in zip(names, results.values(), strict=True):
    by_length = list(zip(*runs, strict=True))
    medians = [statistics.median(shares) for shares in by_length]
    ranges = [f"({min(shares):.2f}-{max(shares):.2f})" for shares in by_length]
    print("".join(f"{median:15.2f}" for median in medians), f"  {name}")
    print("".join(f"{text:>15}" for text in ranges))
    ys.append(medians)
for i, length in enumerate(tests):  # the ranges, as bars beside each other
    for j, runs in enumerate(results.values()):
        xs.append([length + j / 2] * 2)
        ys.append([min(run[i] for run in runs), max(run[i] for run in runs)])
d2l.plot(
    xs,
    ys,
    xlabel="Tokens (trained on 8)",
    ylabel="Share right",
    ylim=(0, 1.05),
    figsize=(6, 4),
    legend=names,
)
# The default location, "best", depends on the numbers.
d2l.plt.gca().get_legend().set_loc("lower left")

# %% solution-bias
X_key, b_key = jax.random.split(jax.random.key(24))
X, b_k = jax.random.normal(X_key, (1, 4, 8)), jax.random.normal(b_key, 8)
scores = X @ X.mT
shifted = X @ (X + b_k).mT
difference = jnp.abs(jax.nn.softmax(scores) - jax.nn.softmax(shifted)).max()

# %% solution-bias-shown
print(f"scores differ by up to {jnp.abs(scores - shifted).max():.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-stacking
@jax.jit
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    return norm(X - X.mean(axis=1, keepdims=True)) / norm(X)


@jax.jit
def apply_layer(variables, X, skip, sharpness):
    """Return a layer's output, with the input added or stretched to its norm."""
    pooled, _ = block.apply(variables, sharpness * X, X, X)
    return jnp.where(skip, pooled + X, pooled * norm(X) / norm(pooled))


def stack_up(skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    X = d2l.PositionalEncoding(64, 0).apply({}, start)
    curve = [diversity(X)]
    for variables in blocks:
        X = apply_layer(variables, X, skip, sharpness)
        curve.append(diversity(X))
    return curve


norm = jnp.linalg.norm
start = jax.random.normal(jax.random.key(25), (1, 16, 64))
block = d2l.MultiHeadAttention(64, 4, 0)  # one layer, with variables for each depth
keys = jax.random.split(jax.random.key(26), 8)
blocks = [halve(block, key, start) for key in keys]
curves = [stack_up(), stack_up(sharpness=10), stack_up(skip=True)]

# %% solution-stacking-figure
d2l.plot(
    list(range(9)),
    curves,
    xlabel="Layers",
    ylabel="Diversity",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["attention alone", "queries ten times as long", "with skip connections"],
)
# The default location, "best", depends on the numbers.
d2l.plt.gca().get_legend().set_loc((0.5, 0.18))


# %% solution-mirrored
def mirror(tokens):
    """Exchange the 0 and the 1 of every sequence."""
    return np.where(tokens < 2, 1 - tokens, tokens)


tokens, _ = draw_sequences(np.random.default_rng(27), 500)
reader = Reader()
variables = jax.jit(reader.init)(jax.random.key(28), tokens)
answers, _ = ask(reader, variables, tokens)
mirrored_answers, _ = ask(reader, variables, mirror(tokens))
difference = jnp.abs(answers - mirrored_answers).max()
print(f"largest difference between the answers to both: {difference:.5f}")

# %% solution-causal
causal_lens = jnp.arange(1, n + 1)[None]  # (batch, queries)
X = jax.random.normal(jax.random.key(29), (1, n, d))


@jax.jit
def attend_causally(X):
    return small_attention.apply(small_variables, X, X, X, causal_lens)[0]


causal_map = influence(attend_causally, X)

# %% solution-causal-map
print("any influence of the future:", "yes" if np.triu(causal_map, 1).any() else "no")
print(f"{np.count_nonzero(causal_map)} of {causal_map.size} pairs are connected")
d2l.show_heatmaps(
    (causal_map / causal_map.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
n_far = 24
X = jax.random.normal(jax.random.key(30), (1, n_far, d))
fading_layers = (rnn, lambda X: rnn(X, 0.8 * W_hh), self_attention)
fading_curves = [influence(layer, X)[:, 0] for layer in fading_layers]

# %% solution-fading-figure
d2l.plot(
    d2l.arange(n_far),
    [curve / curve[0] for curve in fading_curves],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-8, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "RNN, matrix times 0.8", "self-attention"],
)


# %% solution-dilated
@partial(jax.jit, static_argnums=1)
def propagate(signal, step):
    """Return where the signal has arrived after a layer with gaps of this size."""
    kernel, padding = jnp.ones((1, 1, 3)), [(step, step)]
    sums = jax.lax.conv_general_dilated(
        signal, kernel, (1,), padding=padding, rhs_dilation=(step,)
    )
    return sums.clip(max=1)  # 1 if it arrives, else 0


def count_layers(n, growth):
    """Count layers with k = 3 until the first of n tokens reaches the last output."""
    signal, depth = np.zeros((1, 1, n)), 0
    signal[..., 0] = 1
    while d2l.numpy(signal)[..., -1] == 0:
        signal, depth = propagate(signal, growth**depth), depth + 1
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")

# %% solution-decoding
layer, encoding = small_attention.bind(small_variables), PositionalEncoding(d, 0)


@jax.jit
def decode_token(x, keys, values, i):
    """Return the output of new token i, and the cache with its key and value."""
    keys = keys.at[:, i].set(layer.W_k(x)[:, 0])
    values = values.at[:, i].set(layer.W_v(x)[:, 0])
    # cut into heads; transpose_output puts them together again
    heads = [layer.transpose_qkv(array) for array in (layer.W_q(x), keys, values)]
    filled = jnp.full(layer.num_heads, i + 1)
    pooled, _ = layer.attention(*heads, valid_lens=filled)
    return layer.W_o(layer.transpose_output(pooled)), keys, values


tokens = jax.random.normal(jax.random.key(31), (1, n, d))
keys = values = jnp.zeros((1, n, d))  # the cache, with room for all
outputs = []
for i in range(n):
    x = encoding.apply({}, tokens[:, i : i + 1], offset=i)
    y, keys, values = decode_token(x, keys, values, i)
    outputs.append(y)

# %% solution-decoding-cost
full_output = attend_causally(encoding.apply({}, tokens))
difference = jnp.abs(full_output - d2l.concat(outputs, axis=1)).max()
print(f"largest difference: {difference:.5f}")
print("tokens  without cache  with cache")
for length in (10, 100, 1000):
    x, all_tokens = np.zeros((1, 1, d)), np.zeros((1, length, d))
    plain_count = d2l.multiply_adds(layer, x, all_tokens, all_tokens)
    last = partial(decode_token, i=length - 1)
    cached_count = d2l.multiply_adds(last, x, all_tokens, all_tokens)
    print(f"{length:>6}{plain_count:>15,}{cached_count:>12,}")


# %% solution-relative
class RelativeAttention(nn.Module):
    """Attention that adds to each key a learned vector for its distance."""

    num_hiddens: int
    max_distance: int

    def setup(self):
        self.W_q, self.W_k, self.W_v = (
            nn.Dense(self.num_hiddens, use_bias=False) for _ in range(3)
        )
        self.table = nn.Embed(2 * self.max_distance + 1, self.num_hiddens)

    def scores(self, X):
        Q, K, position = self.W_q(X), self.W_k(X), jnp.arange(X.shape[1])
        distance = position[:, None] - position  # i - j
        row = distance.clip(-self.max_distance, self.max_distance) + self.max_distance
        keys = K[:, None] + self.table(row)  # (batch, queries, keys, num_hiddens)
        return (Q[:, :, None] * keys).sum(axis=-1) / math.sqrt(X.shape[-1])

    def __call__(self, X):
        return jax.nn.softmax(self.scores(X)) @ self.W_v(X)


seven_tokens = jax.random.normal(jax.random.key(32), (1, 7, d))
four_tokens, middle_tokens = seven_tokens[:, :4], seven_tokens[:, 4:]
relative_layer = RelativeAttention(d, max_distance=3)
variables = jax.jit(relative_layer.init)(jax.random.key(33), four_tokens)
relative = relative_layer.bind(variables)
# The four tokens are at 0 to 3 and at 7 to 10.
repeated = d2l.concat([four_tokens, middle_tokens, four_tokens], axis=1)
attend = jax.jit(relative_layer.apply)
score = jax.jit(partial(relative_layer.apply, method="scores"))
scores = score(variables, repeated)[0]
outputs = attend(variables, four_tokens)
reversed_output = attend(variables, four_tokens[:, ::-1])[:, ::-1]

# %% solution-relative-shown
scores = d2l.numpy(scores)
difference = np.abs(scores[:4, :4] - scores[7:, 7:]).max()
print(f"scores at 0 and at 7: largest difference {difference:.5f}")
difference = jnp.abs(outputs - reversed_output).max()
print(f"in the other order: largest difference {difference:.2f}")
