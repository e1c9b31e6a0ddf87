# The lesson's TensorFlow code, with Keras' layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

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
X = tf.constant([[0.0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])

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


weights = tf.nn.softmax(X @ tf.transpose(X))  # a row for each query
print_rows(weights, weights @ X, "the cat sat because it purred")

# %% three-roles
W_q = tf.constant([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = tf.eye(2)
W_v = tf.eye(2)

Q = X @ W_q
K = X @ W_k
V = X @ W_v
weights = tf.nn.softmax(Q @ tf.transpose(K))
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)

X = tf.ones((2, 4, num_hiddens))
valid_lens = tf.constant([3, 2])
tuple(attention(X, X, X, valid_lens).shape)


# %% six-tokens
tokens = tf.random.normal((1, 6, num_hiddens))
order = [3, 0, 5, 1, 4, 2]
# The first query may see one key, the second two, and so on.
earlier_only = tf.range(1, 7)[tf.newaxis]


def attend_without_mask(X):
    return attention(X, X, X)


def attend_with_mask(X):
    return attention(X, X, X, earlier_only)


def shuffle(X):
    return tf.gather(X, order, axis=1)


def effect_of_order(layer):
    """Return how far shuffling before the layer is from shuffling after it."""
    return tf.reduce_max(abs(layer(shuffle(tokens)) - shuffle(layer(tokens))))


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
W_xh = keras.initializers.Orthogonal()((d, d))
W_hh = keras.initializers.Orthogonal()((d, d))


def rnn(X, W_hh=W_hh):
    H = tf.zeros((X.shape[0], d))
    outputs = []
    for x in tf.unstack(X, axis=1):
        H = tf.tanh(x @ W_xh + H @ W_hh)
        outputs.append(H)
    return tf.stack(outputs, axis=1)


# %% three-layers
def make_initializer():
    """Make an initializer of kernels; Keras itself draws numbers twice as large."""
    return keras.initializers.VarianceScaling(
        scale=1 / 4, mode="fan_avg", distribution="uniform"
    )


def make_attention(num_hiddens, num_heads):
    """Make attention with smaller weights, so that it starts out more even."""
    layer = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0)
    # One for each, since an initializer would draw the same numbers again.
    layer.W_q.kernel_initializer = make_initializer()
    layer.W_k.kernel_initializer = make_initializer()
    layer.W_v.kernel_initializer = make_initializer()
    layer.W_o.kernel_initializer = make_initializer()
    return layer


small_attention = make_attention(d, num_heads=2)


def self_attention(X):
    return small_attention(X, X, X)


layers = [cnn, rnn, self_attention]
X = tf.random.normal((1, n, d))
for layer in layers:
    print(tuple(layer(X).shape))


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    _, n, d = X.shape
    # With a copy of X for each number of the output, one backward pass is enough.
    copies = tf.repeat(X, n * d, axis=0)
    with tf.GradientTape() as tape:
        tape.watch(copies)
        Y = layer(copies)
    directions = tf.reshape(tf.eye(n * d), Y.shape)
    jacobian = tape.gradient(Y, copies, output_gradients=directions)
    return tf.norm(tf.reshape(jacobian, (n, d, n, d)), axis=(1, 3))


maps = [influence(layer, X) for layer in layers]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    connected = tf.math.count_nonzero(m)
    print(f"{name}: {connected} of {tf.size(m)} pairs are connected")
d2l.show_heatmaps(
    tf.stack([m / tf.reduce_max(m) for m in maps])[tf.newaxis],
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
sources = np.flatnonzero(influences[1][2]) + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sources))
for depth, m in enumerate(influences, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(length, values):
    print(f"{length:>4}" + "".join(f"{value:>16}" for value in values))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = tf.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = tf.zeros((1, length, d))
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
    position = np.arange(num_positions)[:, np.newaxis]
    column = np.arange(num_hiddens)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return tf.constant(P, tf.float32)


for i, row in enumerate(sinusoids(3, 4)):
    numbers = " ".join(f"{x:5.2f}" for x in row)
    print(f"{i}  {numbers}")


# %% positional-encoding
class PositionalEncoding(keras.layers.Layer):
    """A layer that adds sines and cosines of the position to each vector."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = keras.layers.Dropout(dropout)
        self.P = sinusoids(max_len, num_hiddens)[tf.newaxis]

    def call(self, X, offset=0, training=None):
        end = offset + X.shape[1]
        max_len = self.P.shape[1]
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
embedding = keras.layers.Embedding(1000, d_model, embeddings_initializer=normal)
scaled = embedding(ids) * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)

vectors = [
    embedding(ids),
    scaled,
    encoding.P[:, :60],
    encoding(scaled),
    keras.layers.Embedding(1000, d_model)(ids),
]

# %% lengths
names = [
    "embedding",
    "scaled by sqrt(d)",
    "encoding",
    "sum of these two",
    "embedding, as Keras draws it",
]
for name, X in zip(names, vectors, strict=True):
    print(f"{tf.reduce_mean(tf.norm(X, axis=-1)):6.2f}  {name}")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding(tf.zeros((1, num_steps, width)))[0]
d2l.plot(
    tf.range(num_steps),
    tf.transpose(P[:, 6:10]),
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
pair = tf.range(width // 2, dtype=tf.float32)
omega = 10000.0 ** (-2 * pair / width)  # radians per position, one for each pair
turns = tf.cast(tf.round(2 * math.pi / omega), tf.int32)
print("positions per turn:")
print(turns.numpy().tolist())

# %% dot-products
products = (P @ tf.transpose(P)).numpy()
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
    """Turn the pairs (sine, cosine) of columns by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]
    sin, cos = tf.sin(angle), tf.cos(angle)
    pairs = tf.stack([x * cos + y * sin, y * cos - x * sin], axis=-1)
    return tf.reshape(pairs, tf.shape(X))


rows = {"3": P[3], "3, turned by 5": turn(P[3], 5 * omega), "8": P[8]}
for name, row in rows.items():
    numbers = " ".join(f"{x:7.4f}" for x in row[:4])
    print(f"{numbers}   row {name}")
largest = 0
for delta in [1, 2, 5, 10, 30, -5]:
    i = tf.range(max(0, -delta), num_steps - max(0, delta))
    residual = turn(tf.gather(P, i), delta * omega) - tf.gather(P, i + delta)
    largest = max(largest, tf.reduce_max(abs(residual)))
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q = turn(tf.eye(width), -5 * omega)
W_k = 4 * tf.eye(width)
Q = P[:20] @ W_q
K = P[:20] @ W_k
back_weights = tf.nn.softmax(Q @ tf.transpose(K) / math.sqrt(width))
d2l.show_heatmaps(
    back_weights[tf.newaxis, tf.newaxis],
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
    # Drawn with NumPy, which set_random_seed seeds as well.
    tokens = np.random.randint(2, 10, (count, length))
    order = np.random.rand(count, length).argsort(axis=1)
    positions = order[:, :2]  # two different ones
    np.put_along_axis(tokens, positions[:, :1], 0, axis=1)
    np.put_along_axis(tokens, positions[:, 1:], 1, axis=1)
    return tokens, (positions[:, 0] < positions[:, 1]).astype("float32")


for tokens, label in zip(*draw_sequences(3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% reader
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class Reader(keras.Model):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    def __init__(self, positions, causal=False, num_hiddens=32, num_heads=4):
        super().__init__()
        self.embedding = make_table(10, num_hiddens)
        self.positions = positions
        self.causal = causal
        self.attention = make_attention(num_hiddens, num_heads)
        # Keras reserves the name `output`.
        self.answer = keras.Sequential(
            [
                keras.layers.Dense(
                    num_hiddens,
                    activation="relu",
                    kernel_initializer=make_initializer(),
                ),
                keras.layers.Dense(1, kernel_initializer=make_initializer()),
            ]
        )

    def call(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y = self.attention(X, X, X, causal=self.causal)
        return tf.squeeze(self.answer(tf.reduce_mean(Y, axis=1)), axis=-1)


def fixed_reader():
    return Reader(d2l.PositionalEncoding(32, dropout=0))


# %% train
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)


def train(make_reader, seed):
    """Train a reader on sequences of 8 tokens, starting from this seed."""
    keras.utils.set_random_seed(seed)
    # All examples are drawn at once, as a dataset that is cut into batches.
    tokens, labels = draw_sequences(120 * 128)
    batches = tf.data.Dataset.from_tensor_slices((tokens, labels)).batch(128)
    reader = make_reader()
    reader(tokens[:1])  # creates the weights
    optimizer = keras.optimizers.Adam(8e-3)
    optimizer.build(reader.trainable_weights)

    @tf.function
    def step(tokens, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, reader(tokens))
        gradients = tape.gradient(loss, reader.trainable_weights)
        optimizer.apply(gradients, reader.trainable_weights)

    for batch in batches:
        step(*batch)
    return reader


fixed_readers = [train(fixed_reader, seed) for seed in range(5)]
reader = fixed_readers[0]


# %% show-attention
def show_attention(tokens, xlabel):
    """Show what each token attends to, with frames around the 0 and the 1."""
    reader(tf.constant([tokens]))
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
weights = reader.attention.attention_weights.numpy()
received = weights.mean(axis=2)  # (sequences, heads, keys)
on_zero = (received * (tokens == 0)[:, np.newaxis]).sum(axis=2)  # (sequences, heads)
on_one = (received * (tokens == 1)[:, np.newaxis]).sum(axis=2)
zero_is_first = (labels > 0)[:, np.newaxis]
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
    answers = tf.squeeze(reader.answer(tf.reduce_mean(Y, axis=1)), axis=-1)
    return np.mean((answers > 0) == (labels > 0))


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
class LearnedPositionalEncoding(keras.layers.Layer):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = make_table(max_len, num_hiddens)

    def call(self, X):
        return X + self.P(tf.range(X.shape[1]))


# %% accuracies
# The same sequences for every reader.
lengths = [8, 16, 32, 64]
tests = [draw_sequences(500, length) for length in lengths]


def accuracies(reader):
    """Return the share of sequences that the reader gets right, for each length."""
    shares = []
    for tokens, labels in tests:
        is_right = (reader(tokens) > 0) == (labels > 0)
        shares.append(np.mean(is_right))
    return shares


# %% fifteen-readers
def learned_reader():
    return Reader(LearnedPositionalEncoding(32, max_len=64))


def causal_reader():
    return Reader(keras.layers.Identity(), causal=True)


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
X = tf.random.normal((1, 4, 8))
b_k = tf.random.normal((8,))
scores = X @ tf.linalg.matrix_transpose(X)
shifted = X @ tf.linalg.matrix_transpose(X + b_k)
difference = tf.reduce_max(abs(tf.nn.softmax(scores) - tf.nn.softmax(shifted)))

# %% solution-bias-shown
print(f"scores differ by up to {tf.reduce_max(abs(scores - shifted)):.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-diversity
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    return tf.norm(X - tf.reduce_mean(X, axis=1, keepdims=True)) / tf.norm(X)


def stack_up(X, layers, skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    curve = [diversity(X)]
    for layer in layers:
        pooled = layer(sharpness * X, X, X)
        X = X + pooled if skip else pooled * tf.norm(X) / tf.norm(pooled)
        curve.append(diversity(X))
    return curve


# %% solution-stacking
start = tf.random.normal((1, 16, 64))
X = d2l.PositionalEncoding(64, dropout=0)(start)
blocks = [make_attention(64, num_heads=4) for _ in range(8)]
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


keras.utils.set_random_seed(0)
reader = Reader(keras.layers.Identity())
tokens, _ = draw_sequences(500)
difference = tf.reduce_max(abs(reader(tokens) - reader(mirror(tokens))))
print(f"largest difference between the answers to both: {difference:.5f}")


# %% solution-causal
def causal_attention(X):
    return small_attention(X, X, X, causal=True)


X = tf.random.normal((1, n, d))
causal_map = influence(causal_attention, X).numpy()

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
def shrinking_rnn(X):
    return rnn(X, 0.8 * W_hh)


n_far = 24
X = tf.random.normal((1, n_far, d))
fading_layers = [rnn, shrinking_rnn, self_attention]
fading_curves = [influence(layer, X)[:, 0] for layer in fading_layers]

# %% solution-fading-figure
d2l.plot(
    tf.range(n_far),
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
    signal = tf.one_hot([[0]], n, axis=1)
    kernel = tf.ones((3, 1, 1))
    depth = 0
    while signal[0, -1, 0] == 0:
        step = growth**depth
        signal = tf.nn.convolution(signal, kernel, padding="SAME", dilations=[step])
        signal = tf.minimum(signal, 1)  # 1 if it arrives, else 0
        depth += 1
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")
