# The lesson's MXNet code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

# This import comes first: MXNet, which is older than NumPy 2, cannot be imported
# without it. It also turns on MXNet's NumPy arrays, as npx.set_np() does.
from d2l_compat import mxnet as d2l

from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn
from mxnet.gluon.contrib.nn import Identity
from mxnet.test_utils import set_default_context

set_default_context(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
npx.random.seed(0)
# Weights from -1/sqrt(d) to 1/sqrt(d), where d is the mean of inputs and outputs.
initializer = init.Xavier(magnitude=1)

# %% six-words
sentence = "the cat sat because it purred"
# How thing-like a word is, and how action-like.
# np.array makes float32 even of whole numbers.
X = np.array([[0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])

query = X[4]  # the fifth word
scores = X @ query  # how well does each word fit?
weights = np.exp(scores) / np.exp(scores).sum()  # softmax: positive, and they sum to 1
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


weights = npx.softmax(X @ X.T, axis=-1)  # a row for each query
print_rows(weights, weights @ X, "the cat sat because it purred")

# %% three-roles
W_q = np.array([[1, 0], [1, 0]])  # things and actions both ask for a thing
W_k = np.eye(2)
W_v = np.eye(2)

Q = X @ W_q
K = X @ W_k
V = X @ W_v
weights = npx.softmax(Q @ K.T, axis=-1)
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)
attention.initialize(initializer)

X = np.ones((2, 4, num_hiddens))
valid_lens = np.array([3, 2])
attention(X, X, X, valid_lens).shape


# %% six-tokens
tokens = np.random.randn(1, 6, num_hiddens)
order = [3, 0, 5, 1, 4, 2]
# The first query may see one key, the second two, and so on.
earlier_only = np.arange(1, 7)[None]


def attend_without_mask(X):
    return attention(X, X, X)


def attend_with_mask(X):
    return attention(X, X, X, earlier_only)


def effect_of_order(layer):
    """Return how far shuffling before the layer is from shuffling after it."""
    return np.abs(layer(tokens[:, order]) - layer(tokens)[:, order]).max()


# %% equivariance
for name, layer in (
    ("without a mask", attend_without_mask),
    ("with a causal mask", attend_with_mask),
):
    largest = np.abs(layer(tokens)).max()
    difference = effect_of_order(layer)
    print(f"{name}: largest output {largest:.4f}, largest difference {difference:.4f}")


# %% cnn-and-rnn
n, d, k = 10, 16, 3

conv = nn.Conv1D(d, k, padding=k // 2, use_bias=False)
W_xh = nn.Dense(d, use_bias=False)
W_hh = nn.Dense(d, use_bias=False)
conv.initialize(initializer)
W_xh.initialize(init.Orthogonal(scale=1))
W_hh.initialize(init.Orthogonal(scale=1))


def cnn(X):
    return conv(X.swapaxes(1, 2)).swapaxes(1, 2)


def rnn(X, W_hh=W_hh):
    H = np.zeros((len(X), d))
    outputs = []
    for x in X.swapaxes(0, 1):
        H = np.tanh(W_xh(x) + W_hh(H))
        outputs.append(H)
    return np.stack(outputs, axis=1)


# %% three-layers
small_attention = d2l.MultiHeadAttention(d, num_heads=2, dropout=0)
small_attention.initialize(initializer)


def self_attention(X):
    return small_attention(X, X, X)


layers = [cnn, rnn, self_attention]
X = np.random.randn(1, n, d)
for layer in layers:
    print(layer(X).shape)


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    _, n, d = X.shape
    # With a copy of X for each number of the output, one backward pass is enough.
    copies = X.repeat(n * d, axis=0)
    copies.attach_grad()
    with autograd.record():
        Y = layer(copies)
    Y.backward(np.eye(n * d).reshape(Y.shape))
    return np.linalg.norm(copies.grad.reshape(n, d, n, d), axis=(1, 3))


maps = [influence(layer, X) for layer in layers]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    print(f"{name}: {(m != 0).sum()} of {m.size} pairs are connected")
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
            X = np.tanh(cnn(X))
        return X

    return layer


influences = [influence(stack(depth), X) for depth in range(1, 5)]

# %% reach
sources = influences[1][2].nonzero()[0] + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sources))
for depth, m in enumerate(influences, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(length, values):
    print(f"{length:>4}" + "".join(f"{value:>16}" for value in values))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = np.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = np.zeros((1, length, d))
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
    position = np.arange(num_positions, dtype="float64")[:, None]
    column = np.arange(num_hiddens, dtype="float64")
    # Not 2 * (column // 2), since MXNet has no operator //.
    angle = position / 10000 ** ((column - column % 2) / num_hiddens)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle)).astype("float32")


for i, row in enumerate(sinusoids(3, 4)):
    numbers = " ".join(f"{x:5.2f}" for x in row)
    print(f"{i}  {numbers}")


# %% positional-encoding
class PositionalEncoding(nn.Block):
    """A layer that adds sines and cosines of the position to each vector."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        # An array, not a Parameter: it is neither trained nor saved.
        self.P = sinusoids(max_len, num_hiddens)[None]

    def forward(self, X, offset=0):
        end = offset + X.shape[1]
        max_len = self.P.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}, expected 0 to {max_len - 1}"
            )
        P = self.P[:, offset:end].as_in_ctx(X.ctx)
        return self.dropout(X + P)


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def attend_with_positions(X):
    X = add_positions(X)
    return attention(X, X, X)


# %% order-seen
difference = effect_of_order(attend_with_positions)
print(f"with positions: largest difference {difference:.4f}")

# %% scale-and-sum
d_model = 512
ids = np.random.randint(1000, size=(1, 60))
normal = init.Normal(d_model**-0.5)
embedding = nn.Embedding(1000, d_model, weight_initializer=normal)
embedding.initialize()
scaled = embedding(ids) * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
default_embedding = nn.Embedding(1000, d_model)
default_embedding.initialize()

vectors = [
    embedding(ids),
    scaled,
    encoding.P[:, :60],
    encoding(scaled),
    default_embedding(ids),
]

# %% lengths
names = [
    "embedding",
    "scaled by sqrt(d)",
    "encoding",
    "sum of these two",
    "embedding, as MXNet draws it",
]
for name, X in zip(names, vectors, strict=True):
    print(f"{np.linalg.norm(X, axis=-1).mean():6.2f}  {name}")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding(np.zeros((1, num_steps, width)))[0]
d2l.plot(
    np.arange(num_steps),
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
pair = np.arange(width // 2)
omega = 10000 ** (-2 * pair / width)  # radians per position, one for each pair
print("positions per turn:")
print(np.round(2 * math.pi / omega).astype("int32").tolist())

# %% dot-products
products = P @ P.T
distances = np.arange(-20, 21)  # i - j
d2l.plot(
    distances,
    [products[i][i - distances] for i in (20, 28, 36)],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in (20, 28, 36)],
)
diagonals = [np.diagonal(products, k) for k in range(1 - num_steps, num_steps)]
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"P_i with itself: {products[0, 0]:.4f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% rotation
def turn(X, angle):
    """Turn the pairs (sine, cosine) of columns by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]
    sin, cos = np.sin(angle), np.cos(angle)
    pairs = np.stack([x * cos + y * sin, y * cos - x * sin], axis=-1)
    return pairs.reshape(X.shape)


rows = {"3": P[3], "3, turned by 5": turn(P[3], 5 * omega), "8": P[8]}
for name, row in rows.items():
    numbers = " ".join(f"{x:7.4f}" for x in row[:4])
    print(f"{numbers}   row {name}")
largest = 0
for delta in [1, 2, 5, 10, 30, -5]:
    i = np.arange(max(0, -delta), num_steps - max(0, delta))
    residual = turn(P[i], delta * omega) - P[i + delta]
    largest = max(largest, np.abs(residual).max().item())
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q = turn(np.eye(width), -5 * omega)
W_k = 4 * np.eye(width)
Q = P[:20] @ W_q
K = P[:20] @ W_k
back_weights = npx.softmax(Q @ K.T / math.sqrt(width), axis=-1)
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
    tokens = np.random.randint(2, 10, size=(count, length))
    shuffled = np.random.rand(count, length).argsort(axis=1)
    positions = shuffled[:, :2]  # two different ones
    rows = np.arange(count, dtype="int64")
    tokens[rows, positions[:, 0]] = 0
    tokens[rows, positions[:, 1]] = 1
    return tokens, (positions[:, 0] < positions[:, 1]).astype("float32")


for tokens, label in zip(*draw_sequences(3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% reader
class Reader(nn.Block):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    def __init__(self, positions, causal=False, num_hiddens=32, num_heads=4):
        super().__init__()
        normal = init.Normal(1)  # entries about as large as the encoding's
        self.embedding = nn.Embedding(10, num_hiddens, weight_initializer=normal)
        self.positions = positions
        self.causal = causal
        self.attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0)
        self.output = nn.Sequential()
        self.output.add(nn.Dense(num_hiddens, activation="relu"), nn.Dense(1))

    def forward(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y = self.attention(X, X, X, causal=self.causal)
        return self.output(Y.mean(axis=1)).squeeze(-1)


def fixed_reader():
    return Reader(d2l.PositionalEncoding(32, dropout=0))


# %% train
def train(make_reader, seed):
    """Train a reader on sequences of 8 tokens, starting from this seed."""
    npx.random.seed(seed)
    reader = make_reader()
    reader.initialize(initializer)
    trainer = gluon.Trainer(reader.collect_params(), "adam", {"learning_rate": 0.012})
    cross_entropy = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    cross_entropy.hybridize()  # one operation instead of several
    # Cut examples into batches: drawing all of them at once is faster.
    tokens, labels = draw_sequences(100 * 128)
    for step in range(100):
        batch = slice(128 * step, 128 * (step + 1))
        with autograd.record():
            loss = cross_entropy(reader(tokens[batch]), labels[batch])
        loss.backward()
        trainer.step(batch_size=128)
    return reader


fixed_readers = [train(fixed_reader, seed) for seed in range(5)]
reader = fixed_readers[0]


# %% show-attention
def show_attention(tokens, xlabel):
    """Show what each token attends to, with frames around the 0 and the 1."""
    reader(np.array([tokens]))
    d2l.show_heatmaps(
        reader.attention.attention_weights,
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
tokens, labels = draw_sequences(1000)
reader(tokens)
received = reader.attention.attention_weights.mean(axis=2)  # (sequences, heads, keys)
on_zero = (received * (tokens == 0)[:, None]).sum(axis=2)  # (sequences, heads)
on_one = (received * (tokens == 1)[:, None]).sum(axis=2)
zero_is_first = (labels > 0)[:, None]
on_first = np.where(zero_is_first, on_zero, on_one)
on_last = np.where(zero_is_first, on_one, on_zero)

# %% found-shares tags=["tolerance:absolute=0.02"]
shares = [on_zero, on_one, on_first, on_last]
print("    on 0    on 1   on the first   on the last")
for h in range(4):
    means = [share[:, h].mean() for share in shares]
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
class LearnedPositionalEncoding(nn.Block):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        normal = init.Normal(1)
        self.P = nn.Embedding(max_len, num_hiddens, weight_initializer=normal)

    def forward(self, X):
        position = np.arange(X.shape[1], ctx=X.ctx)
        return X + self.P(position)


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
    return Reader(Identity(), causal=True)


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
X = np.random.randn(4, 8)
b_k = np.random.randn(8)
scores = X @ X.T
shifted = X @ (X + b_k).T
difference = npx.softmax(scores, axis=-1) - npx.softmax(shifted, axis=-1)

# %% solution-bias-shown
print(f"scores differ by up to {np.abs(scores - shifted).max():.2f}")
print(f"weights differ by up to {np.abs(difference).max():.5f}")


# %% solution-diversity
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    differences = X - X.mean(axis=1, keepdims=True)
    return (np.linalg.norm(differences) / np.linalg.norm(X)).item()


def stack_up(X, layers, skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    curve = [diversity(X)]
    for layer in layers:
        pooled = layer(sharpness * X, X, X)
        ratio = np.linalg.norm(X) / np.linalg.norm(pooled)
        X = X + pooled if skip else pooled * ratio
        curve.append(diversity(X))
    return curve


# %% solution-stacking
start = np.random.randn(1, 16, 64)
X = d2l.PositionalEncoding(64, dropout=0)(start)
blocks = [d2l.MultiHeadAttention(64, 4, dropout=0) for _ in range(8)]
for block in blocks:
    block.initialize(initializer)
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
    return np.where(tokens < 2, 1 - tokens, tokens)


npx.random.seed(0)
reader = Reader(Identity())
reader.initialize(initializer)
tokens, _ = draw_sequences(500)
difference = np.abs(reader(tokens) - reader(mirror(tokens))).max()
print(f"largest difference between the answers to both: {difference:.5f}")


# %% solution-causal
def causal_attention(X):
    return small_attention(X, X, X, causal=True)


X = np.random.randn(1, n, d)
causal_map = influence(causal_attention, X)

# %% solution-causal-map
future = causal_map - np.tril(causal_map)  # MXNet has no triu
print("any influence of the future:", "yes" if (future != 0).any() else "no")
print(f"{(causal_map != 0).sum()} of {causal_map.size} pairs are connected")
d2l.show_heatmaps(
    (causal_map / causal_map.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)


# %% solution-fading
def shrink(H):
    return 0.8 * W_hh(H)


def shrinking_rnn(X):
    return rnn(X, shrink)


n_far = 24
X = np.random.randn(1, n_far, d)
fading_layers = [rnn, shrinking_rnn, self_attention]
fading_curves = [influence(layer, X)[:, 0] for layer in fading_layers]

# %% solution-fading-figure
d2l.plot(
    np.arange(n_far),
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
    signal = np.zeros((1, 1, n))
    signal[..., 0] = 1
    kernel = np.ones((1, 1, 3))
    depth = 0
    while signal[..., -1] == 0:
        step = growth**depth
        signal = npx.convolution(
            signal,
            kernel,
            kernel=3,
            pad=step,
            dilate=step,
            num_filter=1,
            no_bias=True,
        )
        signal = np.minimum(signal, 1)  # 1 if it arrives, else 0
        depth += 1
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")
