# The lesson's JAX code, with Flax's layers. Each cell is woven into the text where it is
# asked for by name; the file also runs on its own, from top to bottom.

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

# All is small here; d2l.try_gpu() takes a GPU.
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
    """For each word, the weights it gives to all six, and its new vector."""
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
drawn = jax.random.normal(jax.random.key(10), (1000, 11, 1024))
for width in widths:  # all from one draw, the narrow ones cut from the wide
    queries, keys = drawn[:, :1, :width], drawn[:, 1:, :width]
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
    """The norm of the softmax's derivative: the median over the queries."""
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
def attend_by_hand(X, valid_len):
    """The formula, head by head, for one sequence."""
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
by_hand = jax.jit(jax.vmap(attend_by_hand))(X, valid_lens)

# %% by-hand-difference
print(f"largest number in Y:  {jnp.abs(Y).max():.5f}")
print(f"largest difference:   {jnp.abs(Y - by_hand).max():.5f}")

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


def without_mask(X):
    return attend(attention_variables, X, X, X)[0]


def with_mask(X):
    return attend(attention_variables, X, X, X, earlier_only)[0]


def effect_of_order(layer):
    """How far shuffling before the layer is from shuffling after it."""
    return jnp.abs(layer(tokens[:, order]) - layer(tokens)[:, order]).max()


# %% equivariance
for name, layer in ("without a mask", without_mask), ("with a causal mask", with_mask):
    largest = jnp.abs(layer(tokens)).max()
    apart = effect_of_order(layer)
    print(f"{name}: largest output {largest:.4f}, largest difference {apart:.4f}")


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
def halved(layer, key, X):
    """Half of what Flax draws: attention is shared out more evenly then."""
    return jax.tree.map(lambda W: W / 2, layer.init(key, X, X, X))


X = jax.random.normal(jax.random.key(16), (1, n, d))
small_attention = d2l.MultiHeadAttention(d, 2, 0)
small_variables = halved(small_attention, jax.random.key(17), X)


@jax.jit
def self_attention(X):
    return small_attention.apply(small_variables, X, X, X)[0]


layers = {"CNN": cnn, "RNN": rnn, "Self-attention": self_attention}
{name: layer(X).shape for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """How strongly input j acts on output i: the norm of dy_i/dx_j, shape (n, n)."""
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
def stacked(depth):
    def layer(X):
        for _ in range(depth):
            X = jnp.tanh(cnn(X))
        return X

    return layer


seen = [influence(stacked(depth), X) for depth in range(1, 5)]

# %% reach
sees = [f"x_{j + 1}" for j in np.flatnonzero(seen[1][2])]
print("two layers: y_3 depends on", ", ".join(sees))
for depth, m in enumerate(seen, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(first, others):
    print(f"{first:>4}" + "".join(f"{other:>16}" for other in others))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = np.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers.values()])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = np.zeros((1, length, d))
    counts = [d2l.multiply_adds(layer, X) for layer in layers.values()]
    of_attention = 4 * length * d**2 + 2 * length**2 * d
    agree = counts == [k * length * d**2, 2 * length * d**2, of_attention]
    print_row(length, [*(f"{count:,}" for count in counts), "yes" if agree else "no"])


# %% binary
for i in range(8):
    print(f"{i} in binary is {i:>03b}")


# %% sinusoids
def sinusoids(num_positions, num_hiddens):
    """The matrix P: a row for each position; pairs of columns share a frequency."""
    # In NumPy's double precision: the sine of a large angle needs the digits.
    position, column = np.arange(num_positions)[:, None], np.arange(num_hiddens)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return jnp.asarray(P, jnp.float32)


for i, row in enumerate(sinusoids(3, 4)):
    print(i, [f"{x:.2f}" for x in row])


# %% positional-encoding
class PositionalEncoding(nn.Module):
    """Adds sines and cosines of the position to each vector of a sequence."""

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
                f"no positions {offset} to {end - 1}: there are 0 to {self.max_len - 1}"
            )
        self.sow("intermediates", "P", self.P)
        return self.dropping(X + self.P[:, offset:end], deterministic=not training)


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def with_positions(X):
    return without_mask(add_positions.apply({}, X))


# %% order-seen
print(f"with positions: largest difference {effect_of_order(with_positions):.4f}")

# %% scale-and-sum
d_model = 512
ids = jax.random.randint(jax.random.key(18), (1, 60), 0, 1000)
normal = nn.initializers.normal(stddev=d_model**-0.5)
as_made, small = nn.Embed(1000, d_model), nn.Embed(1000, d_model, embedding_init=normal)

embedded, _ = jax.jit(small.init_with_output)(jax.random.key(19), ids)
scaled = embedded * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
both, sown = encoding.apply({}, scaled, mutable="intermediates")
(P,) = sown["intermediates"]["P"]
lengths = [
    np.linalg.norm(vectors, axis=-1).mean()
    for vectors in (embedded, scaled, P[0, :60], both)
]
drawn, _ = jax.jit(as_made.init_with_output)(jax.random.key(20), ids)
default_length = np.linalg.norm(drawn, axis=-1).mean()

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
looking_back = jax.nn.softmax(Q @ K.T / math.sqrt(width))
d2l.show_heatmaps(
    looking_back[None, None],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% rotary
class RotaryAttention(d2l.DotProductAttention):
    """Turns queries and keys by their positions, and then attends as usual."""

    def __call__(self, queries, keys, values, valid_lens=None, training=False):
        queries, keys = self.turned(queries), self.turned(keys)
        return super().__call__(queries, keys, values, valid_lens, training)

    def turned(self, X):
        position = jnp.arange(X.shape[1])[:, None]
        pair = jnp.arange(X.shape[2] // 2)
        return turn(X, position * 10000.0 ** (-2 * pair / X.shape[2]))


# %% rotary-scores
q, k_ = jax.random.normal(jax.random.key(21), (2, 1, width))
rotary = RotaryAttention(0)
Q, K = (rotary.turned(jnp.broadcast_to(x, (1, 60, width))) for x in (q, k_))
scores = d2l.numpy(Q @ K.mT)[0]
diagonals = [scores.diagonal(k) for k in range(1 - num_steps, num_steps)]

# %% rotary-check
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% task
def sequences(rng, count, length=8):
    """Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come before the 1?"""
    # In NumPy, as data often are: there is nothing to compile for each new shape.
    tokens = rng.integers(2, 10, (count, length))
    # Two different places: one for the 0, and one for the 1.
    places = rng.random((count, length)).argsort(axis=1)[:, :2]
    np.put_along_axis(tokens, places, np.array([[0, 1]]), axis=1)
    return tokens, (places[:, 0] < places[:, 1]).astype("float32")


for tokens, label in zip(*sequences(np.random.default_rng(22), 3), strict=True):
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
def train(reader, keys, tokens, labels):
    """The variables of one reader for each key, trained side by side."""
    adam = optax.adam(8e-3)

    def loss(variables, tokens, labels):
        logits, _ = reader.apply(variables, tokens)
        return optax.sigmoid_binary_cross_entropy(logits, labels).mean()

    def step(state, batch):
        variables, of_adam = state
        gradients = jax.grad(loss)(variables, *batch)
        updates, of_adam = adam.update(gradients, of_adam)
        return (optax.apply_updates(variables, updates), of_adam), None

    def train_one(key, tokens, labels):
        variables = reader.init(key, tokens[0])
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, (tokens, labels))
        return variables

    return jax.vmap(train_one)(keys, tokens, labels)


def trained(reader, seeds=range(5)):
    """The variables of a reader for each seed, trained on sequences of 8 tokens."""
    keys, tokens, labels = [], [], []
    for seed in seeds:
        drawn = sequences(np.random.default_rng(seed), 120 * 128)
        keys.append(jax.random.key(seed))
        tokens.append(drawn[0].reshape(120, 128, -1))
        labels.append(drawn[1].reshape(120, 128))
    return train(reader, jnp.stack(keys), np.stack(tokens), np.stack(labels))


@partial(jax.jit, static_argnums=0)
def ask(reader, variables, tokens):
    """Logits, and the weights of the reader's attention."""
    return reader.apply(variables, tokens)


example = np.array([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])
reader = Reader(d2l.PositionalEncoding(32, 0))
# From here to the end of the section, the reader of the first seed.
variables = jax.tree.map(lambda of_seeds: d2l.numpy(of_seeds)[0], trained(reader))
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
tokens, labels = sequences(np.random.default_rng(23), 1000)
_, attending = ask(reader, variables, tokens)
received = d2l.numpy(attending).mean(axis=2)
# Shares of weight, of shape (sequences, heads).
zero, one = ((received * (tokens == token)[:, None]).sum(axis=2) for token in (0, 1))
zero_is_first = (labels > 0)[:, None]
first, last = np.where(zero_is_first, (zero, one), (one, zero))

# %% found-shares tags=["tolerance:absolute=0.02"]
print("    on 0    on 1   on the first   on the last")
for h in range(4):
    on = [each[:, h].mean() for each in (zero, one, first, last)]
    print(f"{on[0]:8.2f}{on[1]:8.2f}{on[2]:15.2f}{on[3]:14.2f}   head {h + 1}")


# %% without-positions
@jax.jit
def answer(queries, keys, values):
    Y, _ = bound.attention(queries, keys, values)
    return bound.output(Y.mean(axis=1)).squeeze(-1)


def share_right(queries, keys, values):
    return ((answer(queries, keys, values) > 0) == (labels > 0)).mean()


bound = reader.bind(variables)
X = bound.embedding(tokens)
with_P = bound.positions(X)
as_trained = share_right(with_P, with_P, with_P)
in_queries_and_keys = share_right(with_P, with_P, X)
in_values = share_right(X, X, with_P)

# %% without-positions-shown tags=["tolerance:absolute=0.02"]
print(f"share right, positions everywhere:                {as_trained:.3f}")
print(f"share right, positions in queries and keys alone: {in_queries_and_keys:.3f}")
print(f"share right, positions in values alone:           {in_values:.3f}")


# %% five-readers
@partial(jax.jit, static_argnums=0)
def ask_all(reader, variables, tokens):
    """The logits of a reader for each seed, side by side: shape (seeds, sequences)."""
    logits, _ = jax.vmap(reader.apply, in_axes=(0, None))(variables, tokens)
    return logits


# The same sequences for every reader.
tests = {
    length: sequences(np.random.default_rng(length), 500, length)
    for length in (8, 16, 32, 64)
}


def accuracies(reader, variables, length):
    """The share of the sequences of this length that the reader of each seed gets right."""
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
    variables = trained(reader)
    shares = [accuracies(reader, variables, length) for length in tests]
    results[name] = np.transpose(shares).tolist()  # by seed, and then by length

# %% past-the-end-figure tags=["tolerance:absolute=0.25", "tolerance:points=50"]
names = ["fixed encoding", "learned table", "RoPE", "causal mask", "fixed, causal mask"]
X, Y = [[*tests]] * len(names), []
print("".join(f"{length:>15}" for length in tests), "  tokens")
for name, runs in zip(names, results.values(), strict=True):
    by_length = list(zip(*runs, strict=True))
    medians = [statistics.median(shares) for shares in by_length]
    ranges = [f"({min(shares):.2f}-{max(shares):.2f})" for shares in by_length]
    print("".join(f"{m:15.2f}" for m in medians), f"  {name}")
    print("".join(f"{each:>15}" for each in ranges))
    Y.append(medians)
for i, length in enumerate(tests):  # the ranges, as bars beside each other
    for j, runs in enumerate(results.values()):
        X.append([length + j / 2] * 2)
        Y.append([min(run[i] for run in runs), max(run[i] for run in runs)])
d2l.plot(
    X,
    Y,
    xlabel="Tokens (trained on 8)",
    ylabel="Share right",
    ylim=(0, 1.05),
    figsize=(6, 4),
    legend=names,
)
# The best place moves with the numbers.
d2l.plt.gca().get_legend().set_loc("lower left")

# %% solution-bias
for_X, for_b = jax.random.split(jax.random.key(24))
X, b_k = jax.random.normal(for_X, (1, 4, 8)), jax.random.normal(for_b, 8)
scores = X @ X.mT
shifted = X @ (X + b_k).mT
difference = jnp.abs(jax.nn.softmax(scores) - jax.nn.softmax(shifted)).max()

# %% solution-bias-shown
print(f"scores differ by up to {jnp.abs(scores - shifted).max():.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-stacking
@jax.jit
def diversity(X):
    """The norm of what tells the tokens apart, over the norm of all."""
    return norm(X - X.mean(axis=1, keepdims=True)) / norm(X)


@jax.jit
def one_layer(variables, X, skip, sharpness):
    """One layer's output, with the input added, or stretched to the input's norm."""
    pooled, _ = block.apply(variables, sharpness * X, X, X)
    return jnp.where(skip, pooled + X, pooled * norm(X) / norm(pooled))


def stack_up(skip=False, sharpness=1):
    """The diversity before the first layer, and after each."""
    X = d2l.PositionalEncoding(64, 0).apply({}, start)
    curve = [diversity(X)]
    for variables in blocks:
        X = one_layer(variables, X, skip, sharpness)
        curve.append(diversity(X))
    return curve


norm = jnp.linalg.norm
start = jax.random.normal(jax.random.key(25), (1, 16, 64))
block = d2l.MultiHeadAttention(64, 4, 0)  # one layer, with variables for each depth
keys = jax.random.split(jax.random.key(26), 8)
blocks = [halved(block, key, start) for key in keys]
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
# The best place moves with the numbers.
d2l.plt.gca().get_legend().set_loc((0.5, 0.18))


# %% solution-mirrored
def mirrored(tokens):
    """Every sequence with its 0 and 1 exchanged."""
    return np.where(tokens < 2, 1 - tokens, tokens)


tokens, _ = sequences(np.random.default_rng(27), 500)
reader = Reader()
variables = jax.jit(reader.init)(jax.random.key(28), tokens)
answers, _ = ask(reader, variables, tokens)
to_mirrored, _ = ask(reader, variables, mirrored(tokens))
difference = jnp.abs(answers - to_mirrored).max()
print(f"largest difference between the answers to both: {difference:.5f}")

# %% solution-causal
causal_lens = jnp.arange(1, n + 1)[None]  # (batch, queries)
X = jax.random.normal(jax.random.key(29), (1, n, d))


@jax.jit
def causal_attention(X):
    return small_attention.apply(small_variables, X, X, X, causal_lens)[0]


causal = influence(causal_attention, X)

# %% solution-causal-map
print("any influence of the future:", "yes" if np.triu(causal, 1).any() else "no")
print(f"{np.count_nonzero(causal)} of {causal.size} pairs are connected")
d2l.show_heatmaps(
    (causal / causal.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
n_far = 24
X = jax.random.normal(jax.random.key(30), (1, n_far, d))
followed = (rnn, lambda X: rnn(X, 0.8 * W_hh), self_attention)
fading = [influence(layer, X)[:, 0] for layer in followed]

# %% solution-fading-figure
d2l.plot(
    d2l.arange(n_far),
    [curve / curve[0] for curve in fading],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-8, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "RNN, matrix times 0.8", "self-attention"],
)


# %% solution-dilated
@partial(jax.jit, static_argnums=1)
def passed_on(signal, step):
    """Where the signal has arrived after a layer whose inputs lie so far apart."""
    kernel, padding = jnp.ones((1, 1, 3)), [(step, step)]
    sums = jax.lax.conv_general_dilated(
        signal, kernel, (1,), padding=padding, rhs_dilation=(step,)
    )
    return sums.clip(max=1)  # only whether it arrives


def layers_to_cross(n, growth):
    """Layers with k = 3 until the first of n tokens reaches the last output."""
    signal, depth = np.zeros((1, 1, n)), 0
    signal[..., 0] = 1
    while d2l.numpy(signal)[..., -1] == 0:
        signal, depth = passed_on(signal, growth**depth), depth + 1
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{layers_to_cross(length, 1):>8}{layers_to_cross(length, 3):>9}")

# %% solution-decoding
layer, encoding = small_attention.bind(small_variables), PositionalEncoding(d, 0)


@jax.jit
def one_more(x, keys, values, i):
    """The output of new token i, and the cache with its key and value."""
    keys = keys.at[:, i].set(layer.W_k(x)[:, 0])
    values = values.at[:, i].set(layer.W_v(x)[:, 0])
    # cut into heads; transpose_output puts them together again
    heads = [layer.transpose_qkv(each) for each in (layer.W_q(x), keys, values)]
    filled = jnp.full(layer.num_heads, i + 1)
    pooled, _ = layer.attention(*heads, valid_lens=filled)
    return layer.W_o(layer.transpose_output(pooled)), keys, values


tokens = jax.random.normal(jax.random.key(31), (1, n, d))
keys = values = jnp.zeros((1, n, d))  # the cache, with room for all
outputs = []
for i in range(n):
    x = encoding.apply({}, tokens[:, i : i + 1], offset=i)
    y, keys, values = one_more(x, keys, values, i)
    outputs.append(y)

# %% solution-decoding-cost
at_once = causal_attention(encoding.apply({}, tokens))
difference = jnp.abs(at_once - d2l.concat(outputs, axis=1)).max()
print(f"largest difference: {difference:.5f}")
print("tokens  without cache  with cache")
for length in (10, 100, 1000):
    x, all_of_them = np.zeros((1, 1, d)), np.zeros((1, length, d))
    without = d2l.multiply_adds(layer, x, all_of_them, all_of_them)
    last = partial(one_more, i=length - 1)
    with_cache = d2l.multiply_adds(last, x, all_of_them, all_of_them)
    print(f"{length:>6}{without:>15,}{with_cache:>12,}")


# %% solution-relative
class RelativeAttention(nn.Module):
    """Adds to each key a learned vector for its distance from the query."""

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


four, three = jnp.split(jax.random.normal(jax.random.key(32), (1, 7, d)), [4], axis=1)
unbound = RelativeAttention(d, max_distance=3)
variables = jax.jit(unbound.init)(jax.random.key(33), four)
relative = unbound.bind(variables)
twice = d2l.concat([four, three, four], axis=1)  # at 0 to 3 and 7 to 10
attend, score = jax.jit(unbound.apply), jax.jit(partial(unbound.apply, method="scores"))
scores, outputs = score(variables, twice)[0], attend(variables, four)
backwards = attend(variables, four[:, ::-1])[:, ::-1]

# %% solution-relative-shown
scores = d2l.numpy(scores)
apart = np.abs(scores[:4, :4] - scores[7:, 7:]).max()
print(f"scores at 0 and at 7: largest difference {apart:.5f}")
apart = jnp.abs(outputs - backwards).max()
print(f"in the other order: largest difference {apart:.2f}")
