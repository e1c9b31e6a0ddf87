# The lesson's MLX code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

import mlx.core as mx
import numpy as np
from mlx import nn, optimizers

from d2l_compat import mlx as d2l

mx.set_default_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
mx.random.seed(0)

# %% six-words
sentence = "the cat sat because it purred"
# How thing-like a word is, and how action-like.
X = mx.array([[0.0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])

query = X[4]  # the fifth word
scores = X @ query  # how well does each word fit?
weights = scores.exp() / scores.exp().sum()  # softmax: positive, and they sum to 1
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


weights = mx.softmax(X @ X.T, axis=-1)  # a row for each query
print_rows(weights, weights @ X, "the cat sat because it purred")

# %% three-roles
W_q = mx.array([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = mx.eye(2)
W_v = mx.eye(2)

Q = X @ W_q
K = X @ W_k
V = X @ W_v
weights = mx.softmax(Q @ K.T, axis=-1)
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(
    num_hiddens, num_hiddens, num_hiddens, num_hiddens, num_heads, dropout=0.5
)
attention.eval()

X = mx.ones((2, 4, num_hiddens))
valid_lens = mx.array([3, 2])
tuple(attention(X, X, X, valid_lens).shape)

# %% six-tokens
tokens = mx.random.normal((1, 6, num_hiddens))
order = mx.array([3, 0, 5, 1, 4, 2])
# The first query may see one key, the second two, and so on.
earlier_only = mx.arange(1, 7)[None]


def attend_without_mask(X):
    return attention(X, X, X)


def attend_with_mask(X):
    return attention(X, X, X, earlier_only)


def effect_of_order(layer):
    """Return how far shuffling before the layer is from shuffling after it."""
    return (layer(tokens[:, order]) - layer(tokens)[:, order]).abs().max()


# %% equivariance
for name, layer in (
    ("without a mask", attend_without_mask),
    ("with a causal mask", attend_with_mask),
):
    largest = layer(tokens).abs().max()
    difference = effect_of_order(layer)
    print(f"{name}: largest output {largest:.4f}, largest difference {difference:.4f}")

# %% cnn-and-rnn
n, d, k = 10, 16, 3

cnn = nn.Conv1d(d, d, k, padding=k // 2, bias=False)
orthogonal = nn.init.orthogonal()
W_xh = orthogonal(mx.zeros((d, d)))
W_hh = orthogonal(mx.zeros((d, d)))


def rnn(X, W_hh=W_hh):
    H = mx.zeros((X.shape[0], d))
    outputs = []
    for x in X.swapaxes(0, 1):
        H = mx.tanh(x @ W_xh + H @ W_hh)
        outputs.append(H)
    return mx.stack(outputs, axis=1)


# %% three-layers
small_attention = d2l.MultiHeadAttention(d, d, d, d, num_heads=2, dropout=0)


def self_attention(X):
    return small_attention(X, X, X)


layers = [cnn, rnn, self_attention]
X = mx.random.normal((1, n, d))
for layer in layers:
    print(tuple(layer(X).shape))


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    n, d = X.shape[1:]

    def derivatives(direction):
        """Return the derivatives of the number of the output that is 1 in `direction`."""
        _, (gradient,) = mx.vjp(layer, [X], [direction])
        return gradient

    # One direction for each number of the output; vmap takes them all at once.
    directions = mx.eye(n * d).reshape(n * d, 1, n, d)
    jacobian = mx.vmap(derivatives)(directions).reshape(n, d, n, d)
    return (jacobian**2).sum(axis=(1, 3)).sqrt()  # over the numbers of y_i, and of x_j


maps = [influence(layer, X) for layer in layers]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    print(f"{name}: {mx.count_nonzero(m).item()} of {m.size} pairs are connected")
d2l.show_heatmaps(
    mx.stack([m / m.max() for m in maps])[None],
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
            X = mx.tanh(cnn(X))
        return X

    return layer


influences = [influence(stack(depth), X) for depth in range(1, 5)]

# %% reach
sources = np.flatnonzero(influences[1][2]) + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sources))
for depth, m in enumerate(influences, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(length, values):
    print(f"{length:>4}" + "".join(f"{value:>16}" for value in values))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = mx.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = mx.zeros((1, length, d))
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
    # In double precision: the sine of a large angle needs the digits.
    # MLX computes sines in single precision only, so NumPy's sine is used.
    position = np.arange(num_positions)[:, None]
    column = np.arange(num_hiddens)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return mx.array(P, mx.float32)


for i, row in enumerate(sinusoids(3, 4)):
    numbers = " ".join(f"{x:5.2f}" for x in row)
    print(f"{i}  {numbers}")


# %% positional-encoding
class PositionalEncoding(nn.Module):
    """A layer that adds sines and cosines of the position to each vector."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        # Under a name that begins with _ it is neither trained nor saved.
        self._P = sinusoids(max_len, num_hiddens)[None]

    def __call__(self, X, offset=0):
        end = offset + X.shape[1]
        max_len = self._P.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}, expected 0 to {max_len - 1}"
            )
        return self.dropout(X + self._P[:, offset:end])


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def attend_with_positions(X):
    X = add_positions(X)
    return attention(X, X, X)


# %% order-seen
difference = effect_of_order(attend_with_positions)
print(f"with positions: largest difference {difference:.4f}")

# %% scale-and-sum
d_model = 512
ids = mx.random.randint(0, 1000, (1, 60))
embedding = nn.Embedding(1000, d_model)
embedding.weight = mx.random.normal(embedding.weight.shape, scale=d_model**-0.5)
scaled = embedding(ids) * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)

vectors = [
    embedding(ids),
    scaled,
    encoding(mx.zeros((1, 60, d_model))),
    encoding(scaled),
    nn.Embedding(1000, d_model)(ids),
]

# %% lengths
names = [
    "embedding",
    "scaled by sqrt(d)",
    "encoding",
    "sum of these two",
    "embedding, as MLX draws it",
]
for name, X in zip(names, vectors, strict=True):
    print(f"{mx.linalg.norm(X, axis=-1).mean():6.2f}  {name}")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding(mx.zeros((1, num_steps, width)))[0]
d2l.plot(
    mx.arange(num_steps),
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
pair = mx.arange(width // 2)
omega = 10000.0 ** (-2 * pair / width)  # radians per position, one for each pair
print("positions per turn:")
print((2 * math.pi / omega).round().astype(mx.int32).tolist())

# %% dot-products
products = P @ P.T
distances = mx.arange(-20, 21)  # i - j
d2l.plot(
    distances,
    [products[i, i - distances] for i in (20, 28, 36)],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in (20, 28, 36)],
)
diagonals = [mx.diagonal(products, k) for k in range(1 - num_steps, num_steps)]
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"P_i with itself: {products[0, 0]:.4f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% rotation
def turn(X, angle):
    """Turn the pairs (sine, cosine) of columns by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]
    sin, cos = mx.sin(angle), mx.cos(angle)
    return mx.stack([x * cos + y * sin, y * cos - x * sin], axis=-1).flatten(-2)


rows = {"3": P[3], "3, turned by 5": turn(P[3], 5 * omega), "8": P[8]}
for name, row in rows.items():
    numbers = " ".join(f"{x:7.4f}" for x in row[:4])
    print(f"{numbers}   row {name}")
largest = 0
for delta in [1, 2, 5, 10, 30, -5]:
    i = mx.arange(max(0, -delta), num_steps - max(0, delta))
    residual = turn(P[i], delta * omega) - P[i + delta]
    largest = max(largest, residual.abs().max().item())
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q = turn(mx.eye(width), -5 * omega)
W_k = 4 * mx.eye(width)
Q = P[:20] @ W_q
K = P[:20] @ W_k
back_weights = mx.softmax(Q @ K.T / math.sqrt(width), axis=-1)
d2l.show_heatmaps(
    back_weights[None, None],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% task
def draw_sequences(count, length=8):
    """Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first.

    Return tokens (count, length), and count labels: 1 if so, else 0.
    """
    tokens = mx.random.randint(2, 10, (count, length))
    shuffled = mx.argsort(mx.random.uniform(shape=(count, length)), axis=1)
    positions = shuffled[:, :2]  # two different ones
    rows = mx.arange(count)
    tokens[rows, positions[:, 0]] = 0
    tokens[rows, positions[:, 1]] = 1
    return tokens, (positions[:, 0] < positions[:, 1]).astype(mx.float32)


mx.random.seed(2)  # a seed whose examples show both answers
for tokens, label in zip(*draw_sequences(3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% reader
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; MLX draws shorter ones."""
    embedding = nn.Embedding(rows, width)
    embedding.weight = mx.random.normal(embedding.weight.shape)
    return embedding


class Reader(nn.Module):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    def __init__(self, positions, causal=False, num_hiddens=32, num_heads=4):
        super().__init__()
        self.embedding = make_table(10, num_hiddens)
        self.positions = positions
        self.causal = causal
        self.attention = d2l.MultiHeadAttention(
            num_hiddens, num_hiddens, num_hiddens, num_hiddens, num_heads, dropout=0
        )
        self.output = nn.Sequential(
            nn.Linear(num_hiddens, num_hiddens), nn.ReLU(), nn.Linear(num_hiddens, 1)
        )

    def __call__(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y = self.attention(X, X, X, causal=self.causal)
        return self.output(Y.mean(axis=1)).squeeze(-1)


def fixed_reader():
    return Reader(d2l.PositionalEncoding(32, dropout=0))


# %% train
def loss(reader, tokens, labels):
    return nn.losses.binary_cross_entropy(reader(tokens), labels, reduction="mean")


def train(make_reader, seed):
    """Train a reader on sequences of 8 tokens, starting from this seed."""
    mx.random.seed(seed)
    reader = make_reader()
    # As in other frameworks; by default, MLX's Adam leaves this correction out.
    optimizer = optimizers.Adam(learning_rate=0.01, bias_correction=True)
    compute_gradients = nn.value_and_grad(reader, loss)
    for _ in range(100):
        tokens, labels = draw_sequences(128)
        _, gradients = compute_gradients(reader, tokens, labels)
        optimizer.update(reader, gradients)
        # MLX computes lazily: without this line, all steps would pile up.
        mx.eval(reader.parameters(), optimizer.state)
    return reader


fixed_readers = [train(fixed_reader, seed) for seed in range(5)]
reader = fixed_readers[0]


# %% show-attention
def show_attention(tokens, xlabel):
    """Show what each token attends to, with frames around the 0 and the 1."""
    reader(mx.array([tokens]))
    d2l.show_heatmaps(
        reader.attention.attention_weights,
        xlabel=xlabel,
        ylabel="Queries",
        titles=[f"Head {h + 1}" for h in range(4)],
        figsize=(8, 2.5),
        cmap="Blues",
        xticklabels=[str(token) for token in tokens],
        yticklabels=[str(token) for token in tokens],
        marks=mx.array(tokens) < 2,
    )


# %% trained-maps tags=["tolerance:levels=16"]
show_attention([5, 3, 0, 7, 2, 1, 9, 4], "Keys: the 0 comes first")

# %% exchanged-maps tags=["tolerance:levels=16"]
show_attention([5, 3, 1, 7, 2, 0, 9, 4], "Keys: the 1 comes first")

# %% found
tokens, labels = draw_sequences(1000)
reader(tokens)
received = reader.attention.attention_weights.mean(axis=2)  # (sequences, heads, keys)
on_zero = (received * (tokens == 0)[:, None]).sum(axis=2)  # (sequences, heads)
on_one = (received * (tokens == 1)[:, None]).sum(axis=2)
zero_is_first = (labels > 0)[:, None]
on_first = mx.where(zero_is_first, on_zero, on_one)
on_last = mx.where(zero_is_first, on_one, on_zero)

# %% found-shares tags=["tolerance:absolute=0.02"]
shares = [on_zero, on_one, on_first, on_last]
print("    on 0    on 1   on the first   on the last")
for h in range(4):
    means = [share[:, h].mean().item() for share in shares]
    print(
        f"{means[0]:8.2f}{means[1]:8.2f}{means[2]:15.2f}{means[3]:14.2f}   head {h + 1}"
    )


# %% without-positions
def attention_accuracy(reader, in_scores=True, in_values=True):
    """Return the share right, with positions in queries and keys, in values, or both."""
    X = reader.embedding(tokens)
    X_with_P = reader.positions(X)
    queries = X_with_P if in_scores else X
    values = X_with_P if in_values else X
    Y = reader.attention(queries, queries, values)
    answers = reader.output(Y.mean(axis=1)).squeeze(-1)
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

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = make_table(max_len, num_hiddens)

    def __call__(self, X):
        return X + self.P(mx.arange(X.shape[1]))


# %% accuracies
# The same sequences for every reader.
lengths = [8, 16, 32, 64]
tests = [draw_sequences(500, length) for length in lengths]


def accuracies(reader):
    """Return the share of sequences that the reader gets right, for each length."""
    shares = []
    for tokens, labels in tests:
        is_right = (reader(tokens) > 0) == (labels > 0)
        shares.append(is_right.mean().item())
    return shares


# %% fifteen-readers
def learned_reader():
    return Reader(LearnedPositionalEncoding(32, max_len=64))


def causal_reader():
    return Reader(nn.Identity(), causal=True)


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
X = mx.random.normal((1, 4, 8))
b_k = mx.random.normal((8,))
scores = X @ X.mT
shifted = X @ (X + b_k).mT
difference = (mx.softmax(scores, axis=-1) - mx.softmax(shifted, axis=-1)).abs().max()

# %% solution-bias-shown
print(f"scores differ by up to {(scores - shifted).abs().max():.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-diversity
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    deviations = X - X.mean(axis=1, keepdims=True)
    return (mx.linalg.norm(deviations) / mx.linalg.norm(X)).item()


def stack_up(X, layers, skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    curve = [diversity(X)]
    for layer in layers:
        pooled = layer(sharpness * X, X, X)
        X = X + pooled if skip else pooled * mx.linalg.norm(X) / mx.linalg.norm(pooled)
        curve.append(diversity(X))
    return curve


# %% solution-stacking
start = mx.random.normal((1, 16, 64))
X = d2l.PositionalEncoding(64, dropout=0)(start)
blocks = [d2l.MultiHeadAttention(64, 64, 64, 64, 4, dropout=0) for _ in range(8)]
curves = [
    stack_up(X, blocks),
    stack_up(X, blocks, sharpness=10),
    stack_up(X, blocks, skip=True),
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
    return mx.where(tokens < 2, 1 - tokens, tokens)


mx.random.seed(0)
reader = Reader(nn.Identity())
tokens, _ = draw_sequences(500)
difference = (reader(tokens) - reader(mirror(tokens))).abs().max().item()
print(f"largest difference between the answers to both: {difference:.5f}")


# %% solution-causal
def causal_attention(X):
    return small_attention(X, X, X, causal=True)


X = mx.random.normal((1, n, d))
causal_map = influence(causal_attention, X)

# %% solution-causal-map
print("any influence of the future:", "yes" if mx.triu(causal_map, 1).any() else "no")
print(f"{mx.count_nonzero(causal_map).item()} of {causal_map.size} pairs are connected")
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
X = mx.random.normal((1, n_far, d))
fading_layers = [rnn, shrinking_rnn, self_attention]
fading_curves = [influence(layer, X)[:, 0] for layer in fading_layers]

# %% solution-fading-figure
d2l.plot(
    mx.arange(n_far),
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
    signal = mx.zeros((1, n, 1))
    signal[:, 0] = 1
    kernel = mx.ones((1, 3, 1))
    depth = 0
    while signal[0, -1, 0] == 0:
        step = growth**depth
        signal = mx.conv1d(signal, kernel, padding=step, dilation=step)
        signal = mx.minimum(signal, 1)  # 1 if it arrives, else 0
        depth += 1
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")
