# The lesson's TensorFlow code, with Keras' layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics

from d2l_compat import tensorflow as d2l  # first: it keeps TensorFlow's log quiet

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
# Everything here is small; without this line TensorFlow would use any GPU.
tf.config.set_visible_devices([], "GPU")

# %% six-words
sentence = "the cat sat because it purred"
# How thing-like a word is, and how action-like.
X = d2l.tensor([[0.0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])

query = X[4]  # the fifth word
scores = tf.linalg.matvec(X, query)  # how well does each word fit?
powers = tf.exp(scores)
weights = powers / tf.reduce_sum(powers)  # softmax: positive, and they sum to 1
# the average, weighted by these shares
output = tf.linalg.matvec(X, weights, transpose_a=True)

for score, weight, word in zip(scores, weights, sentence.split(), strict=True):
    print(f"{score:5.0f}{weight:8.2f}   {word}")
print(f"({output[0]:.2f}, {output[1]:.2f})  it, having looked around")


# %% all-words
def print_rows(weights, Y, sentence):
    """Print each word's weights for all six, and its new vector."""
    for row, (thing, action), word in zip(weights, Y, sentence.split(), strict=True):
        shares = "".join(f"{weight:6.2f}" for weight in row)
        print(f"{shares}   ({thing:.2f}, {action:.2f})  {word}")


weights = tf.nn.softmax(X @ d2l.transpose(X))  # a row for each query
print_rows(weights, weights @ X, "the cat sat because it purred")

# %% three-roles
W_q = d2l.tensor([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = W_v = d2l.eye(2)

Q, K, V = X @ W_q, X @ W_k, X @ W_v
weights = tf.nn.softmax(Q @ d2l.transpose(K))
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% saturation
widths = [2**power for power in range(2, 11)]
plain, scaled = [], []  # for each width, scores of shape (queries, keys)
for width in widths:
    queries, keys = d2l.normal((1000, 1, width)), d2l.normal((1000, 10, width))
    plain.append(tf.reduce_sum(queries * keys, axis=-1))
    scaled.append(plain[-1] / math.sqrt(width))

# %% scaling
for i in (0, 4, 8):
    for name, scores in ("unscaled", plain[i]), ("scaled", scaled[i]):
        largest = tf.reduce_mean(tf.reduce_max(tf.nn.softmax(scores), axis=1))
        print(
            f"d = {widths[i]:>4}: spread {tf.math.reduce_std(scores):5.2f}"
            f", largest weight {largest:.2f}  {name}"
        )


# %% slopes
def slope(scores):
    """Return the norm of the softmax's derivative: the median over the queries."""
    weights = tf.nn.softmax(scores)
    outer = weights[:, :, tf.newaxis] * weights[:, tf.newaxis]  # (queries, keys, keys)
    return np.median(tf.norm(tf.linalg.diag(weights) - outer, axis=(1, 2)))


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
tuple(attention(X, X, X, valid_lens, training=False).shape)


# %% by-hand
def attend_manually(X, valid_len):
    """Compute the formula, head by head, for one sequence."""
    projections = (attention.W_q, attention.W_k, attention.W_v)
    Q, K, V = (tf.split(W(X), num_heads, axis=-1) for W in projections)
    masked = d2l.arange(len(X)) >= valid_len
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):
        scores = q @ d2l.transpose(k) / math.sqrt(q.shape[-1])
        heads.append(tf.nn.softmax(tf.where(masked, -math.inf, scores)) @ v)
    return attention.W_o(d2l.concat(heads, axis=-1))


X = d2l.normal((2, 4, num_hiddens))
Y = attention(X, X, X, valid_lens)
manual_output = d2l.stack([attend_manually(X[i], valid_lens[i]) for i in range(2)])

# %% by-hand-difference
print(f"largest number in Y:  {tf.reduce_max(abs(Y)):.5f}")
print(f"largest difference:   {tf.reduce_max(abs(Y - manual_output)):.5f}")

# %% weights-heatmaps
weights = attention.attention_weights  # (batch, heads, queries, keys)
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(num_heads)],
    figsize=(8, 3.5),
    cmap="Blues",
)

# %% six-tokens
tokens = d2l.normal((1, 6, num_hiddens))
order = [3, 0, 5, 1, 4, 2]
# The first query may see one key, the second two, and so on.
earlier_only = d2l.arange(1, 7)[tf.newaxis]


def attend_without_mask(X):
    return attention(X, X, X)


def attend_with_mask(X):
    return attention(X, X, X, earlier_only)


def shuffled(X):
    return tf.gather(X, order, axis=1)


def effect_of_order(layer):
    """Return how far shuffling before the layer is from shuffling after it."""
    return tf.reduce_max(abs(layer(shuffled(tokens)) - shuffled(layer(tokens))))


# %% equivariance
for name, layer in (
    ("without a mask", attend_without_mask),
    ("with a causal mask", attend_with_mask),
):
    largest = tf.reduce_max(abs(layer(tokens)))
    difference = effect_of_order(layer)
    print(f"{name}: largest output {largest:.4f}, largest difference {difference:.4f}")


# %% cnn-and-rnn
n, d, k = 10, 16, 3

cnn = keras.layers.Conv1D(d, k, padding="same", use_bias=False)
W_xh, W_hh = (keras.initializers.Orthogonal()((d, d)) for _ in range(2))


def rnn(X, W_hh=W_hh):
    H, outputs = tf.zeros_like(X[:, 0]), []
    for x in tf.unstack(X, axis=1):
        H = tf.tanh(x @ W_xh + H @ W_hh)
        outputs.append(H)
    return d2l.stack(outputs, axis=1)


# %% three-layers
def halve(layer, *inputs):
    """Halve the weights that Keras draws, so that attention is more even."""
    layer(*inputs)  # creates the weights
    for weight in layer.weights:
        if weight.name == "kernel":
            weight.assign(weight / 2)
    return layer


X = d2l.normal((1, n, d))
small_attention = halve(d2l.MultiHeadAttention(d, 2, 0), X, X, X)


def self_attention(X):
    return small_attention(X, X, X)


layers = {"CNN": cnn, "RNN": rnn, "self_attention": self_attention}
{name: tuple(layer(X).shape) for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    _, n, d = X.shape
    # With a copy of X for each number of the output, one backward pass is enough.
    copies = tf.repeat(X, n * d, axis=0)
    with tf.GradientTape() as tape:
        tape.watch(copies)
        Y = layer(copies)
    directions = d2l.reshape(d2l.eye(n * d), Y.shape)
    jacobian = tape.gradient(Y, copies, output_gradients=directions)
    return tf.norm(d2l.reshape(jacobian, (n, d, n, d)), axis=(1, 3))


maps = [influence(layer, X) for layer in layers.values()]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    connected = tf.math.count_nonzero(m)
    print(f"{name}: {connected} of {d2l.size(m)} pairs are connected")
d2l.show_heatmaps(
    d2l.stack([m / tf.reduce_max(m) for m in maps])[tf.newaxis],
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
            X = tf.tanh(cnn(X))
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
    X = d2l.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers.values()])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = d2l.zeros((1, length, d))
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
    position, column = np.arange(num_positions)[:, np.newaxis], np.arange(num_hiddens)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return tf.constant(P, tf.float32)


for i, row in enumerate(sinusoids(3, 4)):
    print(i, [f"{x:.2f}" for x in row])


# %% positional-encoding
class PositionalEncoding(keras.layers.Layer):
    """A layer that adds sines and cosines of the position to each vector."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = keras.layers.Dropout(dropout)
        self.P = sinusoids(max_len, num_hiddens)[tf.newaxis]

    def call(self, X, offset=0, training=None):
        end, max_len = offset + X.shape[1], self.P.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}, expected 0 to {max_len - 1}"
            )
        return self.dropout(X + self.P[:, offset:end], training=training)


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def attend_with_positions(X):
    X = add_positions(X)
    return attention(X, X, X)


# %% order-seen
difference = effect_of_order(attend_with_positions)
print(f"with positions: largest difference {difference:.4f}")

# %% scale-and-sum
d_model = 512
ids = tf.random.uniform((1, 60), maxval=1000, dtype=tf.int32)
normal = keras.initializers.RandomNormal(stddev=d_model**-0.5)
default_embedding = keras.layers.Embedding(1000, d_model)
small = keras.layers.Embedding(1000, d_model, embeddings_initializer=normal)

scaled_up = small(ids) * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
lengths = [
    tf.reduce_mean(tf.norm(vectors, axis=-1))
    for vectors in (small(ids), scaled_up, encoding.P[0, :60], encoding(scaled_up))
]
default_length = tf.reduce_mean(tf.norm(default_embedding(ids), axis=-1))

# %% lengths
for length, name in zip(
    lengths,
    ["embedding", "scaled by sqrt(d)", "encoding", "sum of these two"],
    strict=True,
):
    print(f"{length:6.2f}  {name}")
print(f"{default_length:6.2f}  embedding, as Keras draws it")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding(d2l.zeros((1, num_steps, width)))[0]
d2l.plot(
    d2l.arange(num_steps),
    d2l.transpose(P[:, 6:10]),
    xlabel="Row (position)",
    figsize=(6, 2.5),
    legend=[f"Col {column}" for column in range(6, 10)],
)

# %% encoding-heatmap
d2l.show_heatmaps(
    P[tf.newaxis, tf.newaxis],
    xlabel="Column (encoding dimension)",
    ylabel="Row (position)",
    figsize=(3.5, 4),
    cmap="RdBu_r",
)

# %% wavelengths
pair = d2l.arange(width // 2, dtype=tf.float32)
omega = 10000.0 ** (-2 * pair / width)  # radians per position, one for each pair
turns = tf.cast(tf.round(2 * math.pi / omega), tf.int32)
print("positions per turn:")
print(d2l.numpy(turns).tolist())

# %% dot-products
products = d2l.numpy(P @ d2l.transpose(P))
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
def turn(X, angle):
    """Turn the pairs of columns, points in the plane, by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]  # all sines, all cosines
    sin, cos = tf.sin(angle), tf.cos(angle)
    pairs = d2l.stack([x * cos + y * sin, y * cos - x * sin], axis=-1)
    return tf.reshape(pairs, tf.shape(X))


for row, name in (P[3], "3"), (turn(P[3], 5 * omega), "3, turned by 5"), (P[8], "8"):
    print(*(f"{x:7.4f}" for x in row[:4]), f"  row {name}")
largest = 0
for delta in (1, 2, 5, 10, 30, -5):
    i = d2l.arange(max(0, -delta), num_steps - max(0, delta))
    residual = turn(tf.gather(P, i), delta * omega) - tf.gather(P, i + delta)
    largest = max(largest, tf.reduce_max(abs(residual)))
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q, W_k = turn(d2l.eye(width), -5 * omega), 4 * d2l.eye(width)
Q, K = P[:20] @ W_q, P[:20] @ W_k
back_weights = tf.nn.softmax(Q @ d2l.transpose(K) / math.sqrt(width))
d2l.show_heatmaps(
    back_weights[tf.newaxis, tf.newaxis],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% rotary
class RotaryAttention(d2l.DotProductAttention):
    """Attention that first turns queries and keys by their positions."""

    def call(self, queries, keys, values, valid_lens=None, training=None):
        queries, keys = self.rotate(queries), self.rotate(keys)
        return super().call(queries, keys, values, valid_lens, training)

    def rotate(self, X):
        position = d2l.arange(X.shape[1], dtype=X.dtype)[:, tf.newaxis]
        pair = d2l.arange(X.shape[2] // 2, dtype=X.dtype)
        return turn(X, position * 10000.0 ** (-2 * pair / X.shape[2]))


# %% rotary-scores
q, k_ = d2l.normal((2, 1, width))
rotary = RotaryAttention(0)
Q, K = (rotary.rotate(tf.broadcast_to(x, (1, 60, width))) for x in (q, k_))
scores = d2l.numpy(Q @ tf.linalg.matrix_transpose(K))[0]
diagonals = [scores.diagonal(k) for k in range(1 - num_steps, num_steps)]

# %% rotary-check
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% task
def draw_sequences(count, length=8):
    """Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first."""
    tokens = np.random.randint(2, 10, (count, length))
    # Two different positions: one for the 0, and one for the 1.
    positions = np.random.rand(count, length).argsort(axis=1)[:, :2]
    np.put_along_axis(tokens, positions, np.array([[0, 1]]), axis=1)
    return tokens, (positions[:, 0] < positions[:, 1]).astype("float32")


for tokens, label in zip(*draw_sequences(3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% learned-positions
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class LearnedPositionalEncoding(keras.layers.Layer):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = make_table(max_len, num_hiddens)

    def call(self, X):
        return X + self.P(d2l.arange(X.shape[1]))


# %% reader
class Reader(keras.Model):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    def __init__(self, positions, causal=False, num_hiddens=32):
        super().__init__()
        self.embedding = make_table(10, num_hiddens)
        self.positions, self.causal = positions, causal
        self.attention = d2l.MultiHeadAttention(num_hiddens, 4, 0)
        hidden = keras.layers.Dense(num_hiddens, activation="relu")
        self.answer = keras.Sequential([hidden, keras.layers.Dense(1)])

    def call(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y = self.attention(X, X, X, causal=self.causal)
        return tf.squeeze(self.answer(tf.reduce_mean(Y, axis=1)), axis=-1)


# %% train
def fit(readers, tokens, labels):
    """Train readers of one kind side by side: stacked, their weights have one more axis."""
    reader_weights = [reader.get_weights() for reader in readers]
    stacked = [np.stack(arrays) for arrays in zip(*reader_weights, strict=True)]
    weights = [tf.Variable(array) for array in stacked]
    adam = keras.optimizers.Adam(8e-3)
    adam.build(weights)

    def model_loss(weights_and_batch):
        """Return the loss of one reader, with its own weights and its own batch."""
        weights, tokens, labels = weights_and_batch
        logits, _ = readers[0].stateless_call(weights, [], tokens)
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)

    @tf.function
    def step(tokens, labels):
        with tf.GradientTape() as tape:
            losses = tf.vectorized_map(model_loss, (weights, tokens, labels))
            total = tf.reduce_sum(tf.reduce_mean(losses, axis=1))
        adam.apply(tape.gradient(total, weights), weights)

    for batch in zip(tokens, labels, strict=True):
        step(*batch)
    for i, reader in enumerate(readers):
        reader.set_weights([weight[i] for weight in weights])


def train(make_reader, seeds=range(5)):
    """Train a reader for each seed on sequences of 8 tokens."""
    readers, batches = [], []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        examples = draw_sequences(120 * 128)
        batches.append([np.split(array, 120) for array in examples])
        readers.append(halve(make_reader(), draw_sequences(1)[0]))
    # The tokens' shape is (steps, readers, batch, tokens); labels lack the last axis.
    tokens, labels = (np.stack(arrays, axis=1) for arrays in zip(*batches, strict=True))
    fit(readers, tokens, labels)
    return readers


reader = train(lambda: Reader(d2l.PositionalEncoding(32, 0)))[0]
example = d2l.tensor([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])
reader(example)
weights = reader.attention.attention_weights

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
tokens, labels = draw_sequences(1000)
reader(tokens)
received = np.mean(reader.attention.attention_weights, axis=2)
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
def attention_accuracy(queries, keys, values):
    Y = reader.attention(queries, keys, values)
    answers = tf.squeeze(reader.answer(tf.reduce_mean(Y, axis=1)), axis=-1)
    return np.mean((answers > 0) == (labels > 0))


X = reader.embedding(tokens)
X_with_P = reader.positions(X)
full_accuracy = attention_accuracy(X_with_P, X_with_P, X_with_P)
scores_accuracy = attention_accuracy(X_with_P, X_with_P, X)
values_accuracy = attention_accuracy(X, X, X_with_P)

# %% without-positions-shown tags=["tolerance:absolute=0.02"]
print(f"share right, positions everywhere:                {full_accuracy:.3f}")
print(f"share right, positions in queries and keys alone: {scores_accuracy:.3f}")
print(f"share right, positions in values alone:           {values_accuracy:.3f}")


# %% five-readers
# The same sequences for every reader.
tests = {length: draw_sequences(500, length) for length in (8, 16, 32, 64)}


def accuracy(reader, length):
    """Return the share of sequences of this length that the reader gets right."""
    tokens, labels = tests[length]
    return np.mean((reader(tokens) > 0) == (labels > 0)).item()


def rotary_reader():
    reader = Reader(keras.layers.Identity())
    reader.attention.attention = RotaryAttention(0)
    return reader


readers = {
    "fixed": lambda: Reader(d2l.PositionalEncoding(32, 0)),
    "learned": lambda: Reader(LearnedPositionalEncoding(32, max_len=64)),
    "rotary": rotary_reader,
    "mask": lambda: Reader(keras.layers.Identity(), causal=True),
    "fixed_mask": lambda: Reader(d2l.PositionalEncoding(32, 0), causal=True),
}

# %% past-the-end
results = {}
for name, make_reader in readers.items():
    keras.utils.clear_session()  # frees the memory of earlier readers
    results[name] = [
        [accuracy(reader, length) for length in tests] for reader in train(make_reader)
    ]

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
X, b_k = d2l.normal((1, 4, 8)), d2l.normal((8,))
scores = X @ tf.linalg.matrix_transpose(X)
shifted = X @ tf.linalg.matrix_transpose(X + b_k)
difference = tf.reduce_max(abs(tf.nn.softmax(scores) - tf.nn.softmax(shifted)))

# %% solution-bias-shown
print(f"scores differ by up to {tf.reduce_max(abs(scores - shifted)):.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-stacking
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    return tf.norm(X - d2l.reduce_mean(X, axis=1, keepdims=True)) / tf.norm(X)


def stack_up(layers, skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    X = d2l.PositionalEncoding(64, 0)(start)
    curve = [diversity(X)]
    for layer in layers:
        pooled = layer(sharpness * X, X, X)
        X = pooled + X if skip else pooled * tf.norm(X) / tf.norm(pooled)
        curve.append(diversity(X))
    return curve


start = d2l.normal((1, 16, 64))
blocks = [
    halve(d2l.MultiHeadAttention(64, 4, 0), start, start, start) for _ in range(8)
]
curves = [stack_up(blocks), stack_up(blocks, sharpness=10), stack_up(blocks, skip=True)]

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


keras.utils.set_random_seed(0)
reader = Reader(keras.layers.Identity())
tokens, _ = draw_sequences(500)
difference = tf.reduce_max(abs(reader(tokens) - reader(mirror(tokens))))
print(f"largest difference between the answers to both: {difference:.5f}")

# %% solution-causal
causal_lens = d2l.arange(1, n + 1)[tf.newaxis]  # (batch, queries)
X = d2l.normal((1, n, d))


def attend_causally(X):
    return small_attention(X, X, X, tf.repeat(causal_lens, len(X), axis=0))


causal_map = d2l.numpy(influence(attend_causally, X))

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
X = d2l.normal((1, n_far, d))
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
def count_layers(n, growth):
    """Count layers with k = 3 until the first of n tokens reaches the last output."""
    signal, kernel, depth = tf.one_hot([[0]], n, axis=1), d2l.ones((3, 1, 1)), 0
    while signal[0, -1, 0] == 0:
        step = growth**depth
        signal = tf.nn.convolution(signal, kernel, padding="SAME", dilations=[step])
        signal, depth = tf.minimum(signal, 1), depth + 1  # 1 if it arrives, else 0
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")

# %% solution-decoding
layer, encoding = small_attention, PositionalEncoding(d, 0)


def decode_token(x, keys, values):
    """Return the output of a new token, and the cache with its key and value."""
    keys = d2l.concat([keys, layer.W_k(x)], axis=1)
    values = d2l.concat([values, layer.W_v(x)], axis=1)
    # cut into heads; transpose_output puts them together again
    heads = [layer.transpose_qkv(array) for array in (layer.W_q(x), keys, values)]
    pooled = layer.transpose_output(layer.attention(*heads))
    return layer.W_o(pooled), keys, values


tokens = d2l.normal((1, n, d))
keys = values = tokens[:, :0]  # the cache, still empty
outputs = []
for i in range(n):
    x = encoding(tokens[:, i : i + 1], offset=i)
    y, keys, values = decode_token(x, keys, values)
    outputs.append(y)

# %% solution-decoding-cost
full_input = encoding(tokens)
full_output = layer(full_input, full_input, full_input, causal_lens)
difference = tf.reduce_max(abs(full_output - d2l.concat(outputs, axis=1)))
print(f"largest difference: {difference:.5f}")
print("tokens  without cache  with cache")
for length in (10, 100, 1000):
    x, all_tokens = d2l.zeros((1, 1, d)), d2l.zeros((1, length, d))
    cache = d2l.zeros((1, length - 1, d))
    plain_count = d2l.multiply_adds(layer, x, all_tokens, all_tokens)
    cached_count = d2l.multiply_adds(
        lambda *inputs: decode_token(*inputs)[0], x, cache, cache
    )
    print(f"{length:>6}{plain_count:>15,}{cached_count:>12,}")


# %% solution-relative
class RelativeAttention(keras.layers.Layer):
    """Attention that adds to each key a learned vector for its distance."""

    def __init__(self, num_hiddens, max_distance):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (
            keras.layers.Dense(num_hiddens, use_bias=False) for _ in range(3)
        )
        self.table = make_table(2 * max_distance + 1, num_hiddens)
        self.max_distance = max_distance

    def scores(self, X):
        Q, K, position = self.W_q(X), self.W_k(X), d2l.arange(X.shape[1])
        distance = position[:, tf.newaxis] - position  # i - j
        far = self.max_distance
        row = tf.clip_by_value(distance, -far, far) + far
        keys = K[:, tf.newaxis] + self.table(row)  # (batch, queries, keys, num_hiddens)
        products = d2l.reduce_sum(Q[:, :, tf.newaxis] * keys, axis=-1)
        return products / math.sqrt(X.shape[-1])

    def call(self, X):
        return tf.nn.softmax(self.scores(X)) @ self.W_v(X)


four_tokens = d2l.normal((1, 4, d))
relative = RelativeAttention(d, max_distance=3)
# The four tokens are at 0 to 3 and at 7 to 10.
repeated = d2l.concat([four_tokens, d2l.normal((1, 3, d)), four_tokens], axis=1)
scores = relative.scores(repeated)[0]
reversed_output = relative(four_tokens[:, ::-1])[:, ::-1]

# %% solution-relative-shown
difference = tf.reduce_max(abs(scores[:4, :4] - scores[7:, 7:]))
print(f"scores at 0 and at 7: largest difference {difference:.5f}")
difference = tf.reduce_max(abs(relative(four_tokens) - reversed_output))
print(f"in the other order: largest difference {difference:.2f}")
