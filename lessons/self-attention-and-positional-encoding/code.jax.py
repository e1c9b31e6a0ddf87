# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())

# %% six-words
sentence = "the cat sat because it purred"
# How thing-like a word is, and how action-like.
X = jnp.array([[0.0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])

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
W_q = jnp.array([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = jnp.eye(2)
W_v = jnp.eye(2)

Q = X @ W_q
K = X @ W_k
V = X @ W_v
weights = jax.nn.softmax(Q @ K.T)
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)

X = jnp.ones((2, 4, num_hiddens))
valid_lens = jnp.array([3, 2])
attention_variables = attention.init(jax.random.key(11), X, X, X)
Y, _ = attention.apply(attention_variables, X, X, X, valid_lens)
Y.shape

# %% six-tokens
tokens = jax.random.normal(jax.random.key(13), (1, 6, num_hiddens))
order = jnp.array([3, 0, 5, 1, 4, 2])
# The first query may see one key, the second two, and so on.
earlier_only = jnp.arange(1, 7)[None]


def attend_without_mask(X):
    Y, _ = attention.apply(attention_variables, X, X, X)
    return Y


def attend_with_mask(X):
    Y, _ = attention.apply(attention_variables, X, X, X, earlier_only)
    return Y


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
conv_variables = conv.init(jax.random.key(14), jnp.zeros((1, n, d)))
orthogonal = nn.initializers.orthogonal()
W_xh = orthogonal(jax.random.key(15), (d, d))
W_hh = orthogonal(jax.random.key(16), (d, d))


def cnn(X):
    return conv.apply(conv_variables, X)


@jax.jit
def rnn(X, W_hh=W_hh):
    def step(H, x):
        H = jnp.tanh(x @ W_xh + H @ W_hh)
        return H, H

    H = jnp.zeros((X.shape[0], d))
    _, outputs = jax.lax.scan(step, H, X.swapaxes(0, 1))
    return outputs.swapaxes(0, 1)


# %% three-layers
def halve(variables):
    """Return weights half as large, with which attention starts out more even."""
    return jax.tree.map(lambda W: W / 2, variables)


X = jax.random.normal(jax.random.key(17), (1, n, d))
small_attention = d2l.MultiHeadAttention(d, num_heads=2, dropout=0)
small_variables = halve(small_attention.init(jax.random.key(18), X, X, X))


def self_attention(X):
    Y, _ = small_attention.apply(small_variables, X, X, X)
    return Y


layers = [cnn, rnn, self_attention]
for layer in layers:
    print(layer(X).shape)


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    jacobian = jax.jit(jax.jacobian(layer))(X)  # (1, n, d, 1, n, d)
    # over the numbers of y_i, and of x_j
    return jnp.linalg.norm(jacobian[0, :, :, 0], axis=(1, 3))


maps = [influence(layer, X) for layer in layers]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    print(f"{name}: {jnp.count_nonzero(m)} of {m.size} pairs are connected")
d2l.show_heatmaps(
    jnp.stack([m / m.max() for m in maps])[None],
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
sources = jnp.flatnonzero(influences[1][2]) + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sources))
for depth, m in enumerate(influences, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(length, values):
    print(f"{length:>4}" + "".join(f"{value:>16}" for value in values))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = jnp.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = jnp.zeros((1, length, d))
    counts = [d2l.multiply_adds(layer, X) for layer in layers]
    predicted = [
        k * length * d**2,
        2 * length * d**2,
        4 * length * d**2 + 2 * length**2 * d,
    ]
    texts = [f"{count:,}" for count in counts]
    print_row(length, [*texts, "yes" if counts == predicted else "no"])

# %% binary
for i in range(8):
    print(f"{i} in binary is {i:03b}")


# %% sinusoids
def sinusoids(num_positions, num_hiddens):
    """Return P (num_positions, num_hiddens); pairs of columns share a frequency."""
    # In NumPy's double precision: the sine of a large angle needs the digits.
    position = np.arange(num_positions)[:, None]
    column = np.arange(num_hiddens)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return jnp.array(P, jnp.float32)


for i, row in enumerate(sinusoids(3, 4)):
    numbers = " ".join(f"{x:5.2f}" for x in row)
    print(f"{i}  {numbers}")


# %% positional-encoding
class PositionalEncoding(nn.Module):
    """A layer that adds sines and cosines of the position to each vector."""

    num_hiddens: int
    dropout: float
    max_len: int = 1000

    def setup(self):
        # Flax calls this at each `apply`; under jit, P becomes a constant.
        self.P = sinusoids(self.max_len, self.num_hiddens)[None]
        self.dropping = nn.Dropout(self.dropout)

    def __call__(self, X, training=False, *, offset=0):
        end = offset + X.shape[1]
        if offset < 0 or end > self.max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}, expected 0 to {self.max_len - 1}"
            )
        return self.dropping(X + self.P[:, offset:end], deterministic=not training)


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def attend_with_positions(X):
    return attend_without_mask(add_positions.apply({}, X))


# %% order-seen
difference = effect_of_order(attend_with_positions)
print(f"with positions: largest difference {difference:.4f}")

# %% scale-and-sum
d_model = 512
ids = jax.random.randint(jax.random.key(19), (1, 60), 0, 1000)
normal = nn.initializers.normal(stddev=d_model**-0.5)
embedding = nn.Embed(1000, d_model, embedding_init=normal)
embedded, _ = embedding.init_with_output(jax.random.key(20), ids)
scaled = embedded * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
default_embedding = nn.Embed(1000, d_model)
default_vectors, _ = default_embedding.init_with_output(jax.random.key(21), ids)

vectors = [
    embedded,
    scaled,
    encoding.apply({}, jnp.zeros((1, 60, d_model))),
    encoding.apply({}, scaled),
    default_vectors,
]

# %% lengths
names = [
    "embedding",
    "scaled by sqrt(d)",
    "encoding",
    "sum of these two",
    "embedding, as Flax draws it",
]
for name, X in zip(names, vectors, strict=True):
    print(f"{jnp.linalg.norm(X, axis=-1).mean():6.2f}  {name}")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding.apply({}, jnp.zeros((1, num_steps, width)))[0]
d2l.plot(
    jnp.arange(num_steps),
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
# In NumPy, since JAX would compile for the length of each diagonal.
products = np.asarray(P @ P.T)
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
    """Turn the pairs (sine, cosine) of columns by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    turned = jnp.stack([x * cos + y * sin, y * cos - x * sin], axis=-1)
    return turned.reshape(X.shape)


rows = {"3": P[3], "3, turned by 5": turn(P[3], 5 * omega), "8": P[8]}
for name, row in rows.items():
    numbers = " ".join(f"{x:7.4f}" for x in row[:4])
    print(f"{numbers}   row {name}")
largest = 0
for delta in [1, 2, 5, 10, 30, -5]:
    i = jnp.arange(max(0, -delta), num_steps - max(0, delta))
    residual = turn(P[i], delta * omega) - P[i + delta]
    largest = max(largest, jnp.abs(residual).max())
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q = turn(jnp.eye(width), -5 * omega)
W_k = 4 * jnp.eye(width)
Q = P[:20] @ W_q
K = P[:20] @ W_k
back_weights = jax.nn.softmax(Q @ K.T / math.sqrt(width))
d2l.show_heatmaps(
    back_weights[None, None],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% task
def draw_sequences(rng, count, length=8):
    """Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first.

    Return tokens (count, length), and count labels: 1 if so, else 0.
    """
    # Drawn with NumPy, as data often are, since JAX compiles for each new shape.
    tokens = rng.integers(2, 10, (count, length))
    order = rng.random((count, length)).argsort(axis=1)
    positions = order[:, :2]  # two different ones
    np.put_along_axis(tokens, positions[:, :1], 0, axis=1)
    np.put_along_axis(tokens, positions[:, 1:], 1, axis=1)
    return tokens, (positions[:, 0] < positions[:, 1]).astype("float32")


for tokens, label in zip(*draw_sequences(np.random.default_rng(22), 3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% reader
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class Reader(nn.Module):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    positions: Callable
    causal: bool = False
    num_hiddens: int = 32
    num_heads: int = 4

    def setup(self):
        self.embedding = make_table(10, self.num_hiddens)
        self.attention = d2l.MultiHeadAttention(
            self.num_hiddens, self.num_heads, dropout=0
        )
        self.output = nn.Sequential([nn.Dense(self.num_hiddens), nn.relu, nn.Dense(1)])

    def __call__(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y, weights = self.attention(X, X, X, causal=self.causal)
        return self.output(Y.mean(axis=1)).squeeze(-1), weights


fixed_reader = Reader(d2l.PositionalEncoding(32, dropout=0))


# %% train-step
def loss(params, apply, tokens, labels):
    logits, _ = apply({"params": params}, tokens)
    return optax.sigmoid_binary_cross_entropy(logits, labels).mean()


def train_step(state, batch):
    gradients = jax.grad(loss)(state.params, state.apply_fn, *batch)
    return state.apply_gradients(grads=gradients), None


@jax.jit  # compiled once for each module, since the state contains its `apply`
def take_steps(state, batches):
    """Take a step for each batch; return the state after the last."""
    state, _ = jax.lax.scan(train_step, state, batches)
    return state


# %% train
optimizer = optax.adam(8e-3)


def train(module, seed):
    """Train a reader on sequences of 8 tokens, starting from this seed."""
    # Drawn before the loop, since JAX compiles the loop as a whole.
    tokens, labels = draw_sequences(np.random.default_rng(seed), 120 * 128)
    batches = tokens.reshape(120, 128, 8), labels.reshape(120, 128)
    variables = module.init(jax.random.key(seed), tokens[:1])
    state = TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )
    state = take_steps(state, batches)
    return module, {"params": state.params}


fixed_readers = [train(fixed_reader, seed) for seed in range(5)]
reader = fixed_readers[0]


# %% show-attention
def ask(reader, tokens):
    """Return a reader's answers, and the weights of its attention."""
    module, variables = reader
    return module.apply(variables, tokens)


def show_attention(tokens, xlabel):
    """Show what each token attends to, with frames around the 0 and the 1."""
    _, weights = ask(reader, np.array([tokens]))
    d2l.show_heatmaps(
        weights,
        xlabel=xlabel,
        ylabel="Queries",
        titles=[f"Head {h + 1}" for h in range(4)],
        figsize=(8, 2.5),
        cmap="Blues",
        xticklabels=[str(token) for token in tokens],
        yticklabels=[str(token) for token in tokens],
        marks=np.array(tokens) < 2,
    )


# %% trained-maps tags=["tolerance:levels=16"]
show_attention([5, 3, 0, 7, 2, 1, 9, 4], "Keys: the 0 comes first")

# %% exchanged-maps tags=["tolerance:levels=16"]
show_attention([5, 3, 1, 7, 2, 0, 9, 4], "Keys: the 1 comes first")

# %% found
tokens, labels = draw_sequences(np.random.default_rng(23), 1000)
_, weights = ask(reader, tokens)
received = weights.mean(axis=2)  # (sequences, heads, keys)
on_zero = (received * (tokens == 0)[:, None]).sum(axis=2)  # (sequences, heads)
on_one = (received * (tokens == 1)[:, None]).sum(axis=2)
zero_is_first = (labels > 0)[:, None]
on_first = jnp.where(zero_is_first, on_zero, on_one)
on_last = jnp.where(zero_is_first, on_one, on_zero)

# %% found-shares tags=["tolerance:absolute=0.02"]
shares = [on_zero, on_one, on_first, on_last]
print("    on 0    on 1   on the first   on the last")
for h in range(4):
    means = [share[:, h].mean() for share in shares]
    print(
        f"{means[0]:8.2f}{means[1]:8.2f}{means[2]:15.2f}{means[3]:14.2f}   head {h + 1}"
    )


# %% without-positions
def answer(module, tokens, in_scores, in_values):
    X = module.embedding(tokens)
    X_with_P = module.positions(X)
    queries = X_with_P if in_scores else X
    values = X_with_P if in_values else X
    Y, _ = module.attention(queries, queries, values)
    return module.output(Y.mean(axis=1)).squeeze(-1)


def attention_accuracy(reader, in_scores=True, in_values=True):
    """Return the share right, with positions in queries and keys, in values, or both."""
    module, variables = reader
    # With `method`, Flax calls this function in place of the module's own.
    answers = module.apply(variables, tokens, in_scores, in_values, method=answer)
    return ((answers > 0) == (labels > 0)).mean().item()


full_accuracies = [attention_accuracy(reader) for reader in fixed_readers]
scores_accuracies = [
    attention_accuracy(reader, in_values=False) for reader in fixed_readers
]
values_accuracies = [
    attention_accuracy(reader, in_scores=False) for reader in fixed_readers
]

# %% without-positions-shown tags=["tolerance:absolute=0.1"]
results = {
    "everywhere": full_accuracies,
    "in queries and keys alone": scores_accuracies,
    "in values alone": values_accuracies,
}
d2l.print_ranges(results, ["share right"], "positions", digits=3)
first_reader = [full_accuracies[0], scores_accuracies[0], values_accuracies[0]]
print("the first reader:", *[f"{share:.3f}" for share in first_reader])


# %% learned-positions
class LearnedPositionalEncoding(nn.Module):
    """A table of positions, trained like every other weight."""

    num_hiddens: int
    max_len: int

    def setup(self):
        self.P = make_table(self.max_len, self.num_hiddens)

    def __call__(self, X):
        return X + self.P(jnp.arange(X.shape[1]))


# %% accuracies
# The same sequences for every reader.
rng = np.random.default_rng(24)
lengths = [8, 16, 32, 64]
tests = [draw_sequences(rng, 500, length) for length in lengths]


def accuracies(reader):
    """Return the share of sequences that the reader gets right, for each length."""
    shares = []
    for tokens, labels in tests:
        answers, _ = ask(reader, tokens)
        is_right = (answers > 0) == (labels > 0)
        shares.append(is_right.mean().item())
    return shares


# %% fifteen-readers
def identity(X):
    return X


learned_reader = Reader(LearnedPositionalEncoding(32, max_len=64))
causal_reader = Reader(identity, causal=True)

runs = [
    [accuracies(reader) for reader in fixed_readers],
    [accuracies(train(learned_reader, seed)) for seed in range(5)],
    [accuracies(train(causal_reader, seed)) for seed in range(5)],
]

# %% past-the-end tags=["tolerance:absolute=0.25", "tolerance:points=50"]
names = ["sinusoids", "table", "mask"]
results = dict(zip(names, runs, strict=True))
d2l.print_ranges(results, lengths, "tokens")
d2l.plot_ranges(
    lengths,
    results,
    xlabel="Tokens (trained on 8)",
    ylabel="Share right",
    ylim=(0, 1.05),
)

# %% solution-bias
X = jax.random.normal(jax.random.key(25), (1, 4, 8))
b_k = jax.random.normal(jax.random.key(26), 8)
scores = X @ X.mT
shifted = X @ (X + b_k).mT
difference = jnp.abs(jax.nn.softmax(scores) - jax.nn.softmax(shifted)).max()

# %% solution-bias-shown
print(f"scores differ by up to {jnp.abs(scores - shifted).max():.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-diversity
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    deviations = X - X.mean(axis=1, keepdims=True)
    return jnp.linalg.norm(deviations) / jnp.linalg.norm(X)


def stack_up(X, module, blocks, skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    curve = [diversity(X)]
    for variables in blocks:
        pooled, _ = module.apply(variables, sharpness * X, X, X)
        if skip:
            X = X + pooled
        else:
            X = pooled * jnp.linalg.norm(X) / jnp.linalg.norm(pooled)
        curve.append(diversity(X))
    return curve


# %% solution-stacking
start = jax.random.normal(jax.random.key(27), (1, 16, 64))
X = d2l.PositionalEncoding(64, dropout=0).apply({}, start)
# one layer, with variables for each depth
module = d2l.MultiHeadAttention(64, num_heads=4, dropout=0)
keys = jax.random.split(jax.random.key(28), 8)
blocks = [halve(module.init(key, start, start, start)) for key in keys]
curves = [
    stack_up(X, module, blocks),
    stack_up(X, module, blocks, sharpness=10),
    stack_up(X, module, blocks, skip=True),
]

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


tokens, _ = draw_sequences(np.random.default_rng(29), 500)
module = Reader(identity)
reader = module, module.init(jax.random.key(30), tokens)
answers, _ = ask(reader, tokens)
mirrored_answers, _ = ask(reader, mirror(tokens))
difference = jnp.abs(answers - mirrored_answers).max()
print(f"largest difference between the answers to both: {difference:.5f}")


# %% solution-causal
def causal_attention(X):
    Y, _ = small_attention.apply(small_variables, X, X, X, causal=True)
    return Y


X = jax.random.normal(jax.random.key(31), (1, n, d))
causal_map = influence(causal_attention, X)

# %% solution-causal-map
print("any influence of the future:", "yes" if jnp.triu(causal_map, 1).any() else "no")
print(f"{jnp.count_nonzero(causal_map)} of {causal_map.size} pairs are connected")
d2l.show_heatmaps(
    (causal_map / causal_map.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)


# %% solution-fading
def shrinking_rnn(X):
    return rnn(X, 0.8 * W_hh)


n_far = 24
X = jax.random.normal(jax.random.key(32), (1, n_far, d))
fading_layers = [rnn, shrinking_rnn, self_attention]
fading_curves = [influence(layer, X)[:, 0] for layer in fading_layers]

# %% solution-fading-figure
d2l.plot(
    jnp.arange(n_far),
    [curve / curve[0] for curve in fading_curves],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-8, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "RNN, matrix times 0.8", "self-attention"],
)


# %% solution-dilated
def count_layers(n, growth):
    """Count layers with k = 3 until the first of n tokens reaches the last output."""
    signal = jnp.zeros((1, 1, n)).at[..., 0].set(1)
    kernel = jnp.ones((1, 1, 3))
    depth = 0
    while signal[..., -1] == 0:
        step = growth**depth
        signal = jax.lax.conv_general_dilated(
            signal, kernel, (1,), padding=[(step, step)], rhs_dilation=(step,)
        )
        signal = signal.clip(max=1)  # 1 if it arrives, else 0
        depth += 1
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")
