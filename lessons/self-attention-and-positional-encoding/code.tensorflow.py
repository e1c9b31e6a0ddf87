# The lesson's TensorFlow code, with Keras' layers. Each cell is woven into the text where it
# is asked for by name; the file also runs on its own, from top to bottom.

# %% setup
import math
from functools import cache

from d2l_compat import tensorflow as d2l  # first: it keeps TensorFlow's log quiet

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
# All tensors here are small; without this line TensorFlow takes a GPU where there is one.
tf.config.set_visible_devices([], "GPU")


# %% scaling
keras.utils.set_random_seed(0)
for width in (4, 64, 1024):
    queries, keys = d2l.normal((2, 2000, width))
    scores = d2l.reduce_sum(queries * keys, axis=-1)
    scaled = scores / math.sqrt(width)
    print(
        f"d = {width:>4}: spread {tf.math.reduce_std(scores):5.2f}"
        f", over sqrt(d) {tf.math.reduce_std(scaled):.2f}"
    )

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)

X = d2l.ones((2, 4, num_hiddens))
valid_lens = d2l.tensor([3, 2])
tuple(attention(X, X, X, valid_lens, training=False).shape)


# %% by-hand
keras.utils.set_random_seed(0)
X = d2l.normal((2, 4, num_hiddens))
Y = attention(X, X, X, valid_lens)


def attend_by_hand(X, valid_len):
    """The formula, head by head, for one sequence."""
    projections = (attention.W_q, attention.W_k, attention.W_v)
    Q, K, V = (tf.split(W(X), num_heads, axis=-1) for W in projections)
    masked = d2l.arange(len(X)) >= valid_len
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):
        scores = q @ d2l.transpose(k) / math.sqrt(q.shape[-1])
        heads.append(tf.nn.softmax(tf.where(masked, -math.inf, scores)) @ v)
    return attention.W_o(d2l.concat(heads, axis=-1))


by_hand = d2l.stack([attend_by_hand(X[i], valid_lens[i]) for i in range(2)])
print(f"largest difference: {tf.reduce_max(abs(Y - by_hand)):.5f}")


# %% weights-check
weights = attention.attention_weights  # (batch, heads, queries, keys)
print("shape of the weights:", tuple(weights.shape))
for i, valid_len in enumerate(d2l.numpy(valid_lens)):
    valid, masked = weights[i, :, :, :valid_len], weights[i, :, :, valid_len:]
    sums = d2l.numpy(d2l.reduce_sum(valid, axis=-1))
    zeros = d2l.size(masked) - tf.math.count_nonzero(masked)
    print(f"sequence {i + 1} has {valid_len} valid keys")
    print(f"  sums of weights: {sums.min():.5f} to {sums.max():.5f}")
    print(f"  masked weights exactly 0: {zeros} of {d2l.size(masked)}")


# %% weights-heatmaps
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(num_heads)],
    figsize=(8, 3.5),
    cmap="Blues",
)

# %% equivariance
tokens = d2l.normal((1, 6, num_hiddens))
order = [3, 0, 5, 1, 4, 2]
add_positions = d2l.PositionalEncoding(num_hiddens, 0)


def without_positions(X):
    return attention(X, X, X)


def with_positions(X):
    return without_positions(add_positions(X))


def shuffle(X):
    return tf.gather(X, order, axis=1)


for layer in (without_positions, with_positions):
    difference = layer(shuffle(tokens)) - shuffle(layer(tokens))
    print(f"{layer.__name__:>17}: {tf.reduce_max(abs(difference)):.4f}")


# %% three-layers
n, d, k = 10, 16, 3


def halved(layer):
    """Half of what Keras draws: no token gets nearly all the attention then."""
    layer.set_weights([W / 2 for W in layer.get_weights()])
    return layer


cnn = keras.layers.Conv1D(d, k, padding="same", use_bias=False)
W_xh, W_hh = (keras.initializers.Orthogonal()((d, d)) for _ in range(2))
small_attention = halved(d2l.MultiHeadAttention(d, d, d, d, 2, 0))


def rnn(X, W_hh=W_hh):
    H, outputs = tf.zeros_like(X[:, 0]), []
    for x in tf.unstack(X, axis=1):
        H = tf.tanh(x @ W_xh + H @ W_hh)
        outputs.append(H)
    return d2l.stack(outputs, axis=1)


def self_attention(X):
    return small_attention(X, X, X)


layers = {"CNN": cnn, "RNN": rnn, "self_attention": self_attention}
X = d2l.normal((1, n, d))
{name: tuple(layer(X).shape) for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """How strongly input j acts on output i: the norm of dy_i/dx_j, shape (n, n)."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        Y = layer(X)
    # One backward pass for each number in Y: quick enough, and nothing to compile.
    jacobian = tape.jacobian(Y, X, experimental_use_pfor=False)[0, :, :, 0]
    return tf.norm(jacobian, axis=(1, 3))


maps = [influence(layer, X) for layer in layers.values()]
for name, m in zip(layers, maps, strict=True):
    connected = tf.math.count_nonzero(m)
    print(f"{name}: {connected} of {d2l.size(m)} pairs are connected")

# %% influence-heatmaps
d2l.show_heatmaps(
    d2l.stack([m / tf.reduce_max(m) for m in maps])[tf.newaxis],
    xlabel="Input j",
    ylabel="Output i",
    titles=["CNN", "RNN", "Self-attention"],
    figsize=(8, 3),
    cmap="Blues",
)


# %% receptive-field
def stacked(depth):
    def layer(X):
        for _ in range(depth):
            X = tf.tanh(cnn(X))
        return X

    return layer


sees = d2l.numpy(tf.where(influence(stacked(2), X)[2])[:, 0] + 1)
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sees))
for depth in range(1, 5):
    reached = bool(influence(stacked(depth), X)[4, 0] > 0)
    print(f"{depth} layers: y_5 depends on x_1: {reached}")

# %% sequential-operations
# Each product, and how many multiplications make one number of its result.
PRODUCTS = {
    "MatMul": lambda a, b: a[-1],
    "BatchMatMulV2": lambda a, b: a[-1],
    "Conv2D": lambda a, b: math.prod(b[:-1]),  # b: (height, width, inputs, outputs)
}


def graph_of(layer, n):
    """The graph of all that the layer does to n tokens."""
    return tf.function(layer).get_concrete_function(tf.TensorSpec((1, n, d))).graph


def sequential_products(layer, n):
    """Products on the longest chain of operations that wait for each other."""

    @cache
    def longest(operation):
        before = max((longest(x.op) for x in operation.inputs), default=0)
        return before + (operation.type in PRODUCTS)

    return max(longest(output.op) for output in graph_of(layer, n).outputs)


def print_row(first, others):
    print(f"{first:>4}" + "".join(f"{other:>16}" for other in others))


print_row("n", layers)
for length in (4, 8, 16, 32):
    print_row(length, [sequential_products(layer, length) for layer in layers.values()])


# %% multiply-adds
def multiply_adds(layer, n):
    total = 0
    for operation in graph_of(layer, n).get_operations():
        if operation.type in PRODUCTS:
            a, b = (x.shape for x in operation.inputs)
            (result,) = operation.outputs
            total += result.shape.num_elements() * PRODUCTS[operation.type](a, b)
    return total


formulas = {
    "CNN": lambda n: k * n * d**2,
    "RNN": lambda n: 2 * n * d**2,
    "self_attention": lambda n: 4 * n * d**2 + 2 * n**2 * d,
}
print_row("n", [*layers, "as predicted"])
for length in (8, 16, 32, 64, 128):
    counts = {name: multiply_adds(layer, length) for name, layer in layers.items()}
    agree = all(counts[name] == formulas[name](length) for name in layers)
    print_row(length, [*(f"{count:,}" for count in counts.values()), str(agree)])


# %% positional-encoding
class PositionalEncoding(keras.layers.Layer):
    """Adds sines and cosines of the position to each vector of a sequence."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = keras.layers.Dropout(dropout)
        # Double precision: in single, far positions would be off by more than 5e-5.
        column, position = np.arange(num_hiddens), np.arange(max_len)[:, np.newaxis]
        angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
        P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
        self.P = tf.constant(P[np.newaxis], tf.float32)

    def call(self, X, offset=0, training=None):
        end, max_len = offset + X.shape[1], self.P.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(
                f"no positions {offset} to {end - 1}: there are 0 to {max_len - 1}"
            )
        return self.dropout(X + self.P[:, offset:end], training=training)


# %% encoding-checks
keras.utils.set_random_seed(0)
encoding = PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
zeros = d2l.zeros((1, 10, 7))
one_by_one = [encoding(zeros[:, :1], offset=i) for i in range(10)]
library = d2l.PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
dropping = PositionalEncoding(num_hiddens=7, dropout=0.5, max_len=10)
dropped = dropping(zeros, training=True)

print(
    "one by one as all at once:",
    np.array_equal(encoding(zeros), d2l.concat(one_by_one, 1)),
)
print("the same as the library's:", np.allclose(encoding.P, library.P))
print(
    "dropped or doubled in training:",
    np.all((dropped == 0) | (dropped == 2 * encoding.P)),
)
print("trained:", encoding.trainable_weights, " saved:", encoding.weights)
keras.config.disable_traceback_filtering()  # or Keras would add to the message
for offset in (-1, 1):
    try:
        encoding(zeros, offset=offset)
    except ValueError as error:
        print("ValueError:", error)


# %% scale-and-sum
keras.utils.set_random_seed(0)
d_model = 512
narrow = keras.initializers.RandomNormal(stddev=d_model**-0.5)
embedding = keras.layers.Embedding(1000, d_model, embeddings_initializer=narrow)
encoding = PositionalEncoding(d_model, 0)

E = embedding(tf.random.uniform((1, 60), maxval=1000, dtype=tf.int32))
scaled = E * math.sqrt(d_model)
X = encoding(scaled)
named = {
    "embedding": E,
    "scaled": scaled,
    "encoding": encoding.P[:, :60],
    "their sum": X,
}
for name, vectors in named.items():
    mean_length = d2l.reduce_mean(tf.norm(vectors, axis=-1))
    print(f"{name:>10}: mean length {mean_length:.2f}")


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


# %% binary
for i in range(8):
    print(f"{i} in binary is {i:>03b}")

# %% encoding-heatmap
d2l.show_heatmaps(
    P[tf.newaxis, tf.newaxis],
    xlabel="Column (encoding dimension)",
    ylabel="Row (position)",
    figsize=(3.5, 4),
    cmap="RdBu_r",
)

# %% dot-products
products = d2l.numpy(P @ d2l.transpose(P))
distances = np.arange(-20, 21)  # i - j
rows = (20, 28, 36)
d2l.plot(
    distances,
    [products[i, i - distances] for i in rows],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in rows],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
spread = max(x.max() - x.min() for x in diagonals)
print(f"P_i with itself: {products[0, 0]:.4f}")
print(f"largest spread at any one distance: {spread:.4f}")


# %% rotation
pairs = d2l.reshape(P, (num_steps, width // 2, 2))  # (position, pair, sine and cosine)
omega = 10000 ** -(d2l.arange(0, width, 2, dtype=tf.float32) / width)
largest = 0
for delta in (1, 2, 5, 10, 30, -5):
    sin, cos = d2l.sin(delta * omega), d2l.cos(delta * omega)
    rotations = d2l.reshape(d2l.stack([cos, sin, -sin, cos], axis=-1), (-1, 2, 2))
    i = d2l.arange(max(0, -delta), num_steps - max(0, delta))
    turned = tf.linalg.matvec(rotations, tf.gather(pairs, i))
    residual = tf.reduce_max(abs(turned - tf.gather(pairs, i + delta))).numpy()
    largest = max(largest, residual)
    print(
        f"delta {delta:>2}: {len(i) * len(omega)} pairs, on target: {residual < 1e-5}"
    )
print(f"largest residual: {largest:.1e}")


# %% solution-stacking
def diversity(X):
    """The share of X in which its tokens differ: 0 where all are the same."""
    return tf.norm(X - d2l.reduce_mean(X, axis=1, keepdims=True)) / tf.norm(X)


keras.utils.set_random_seed(0)
depth = 8
sizes = (64, 64, 64)  # of keys, queries and values
blocks = [halved(d2l.MultiHeadAttention(*sizes, 64, 4, 0)) for _ in range(depth)]
start = d2l.PositionalEncoding(64, 0)(d2l.normal((1, 16, 64)))
curves = []
for skip in (False, True):
    X, curve = start, [diversity(start)]
    for block in blocks:
        X = block(X, X, X) + (X if skip else 0)
        curve.append(diversity(X))
    curves.append(curve)
d2l.plot(
    list(range(depth + 1)),
    curves,
    xlabel="Layers",
    ylabel="Diversity",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["attention alone", "with skip connections"],
)


# %% solution-learned
def table(rows, width):
    """Trainable rows, wider apart than Keras' own, which take longer to learn."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class LearnedPositionalEncoding(keras.layers.Layer):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = table(max_len, num_hiddens)

    def call(self, X):
        return X + self.P(d2l.arange(X.shape[1]))


class Reader(keras.Model):
    """Embedding, encoding, self-attention, and a yes or no for the sequence."""

    def __init__(self, encoding, vocab_size=10, num_hiddens=32):
        super().__init__()
        self.embedding = table(vocab_size, num_hiddens)
        self.encoding = encoding
        self.attention = d2l.MultiHeadAttention(num_hiddens, 4, 0)
        self.hidden = keras.layers.Dense(num_hiddens, activation="relu")
        self.answer = keras.layers.Dense(1)

    def call(self, tokens):
        X = self.encoding(self.embedding(tokens))
        pooled = d2l.reduce_mean(self.attention(X, X, X), axis=1)
        return tf.squeeze(self.answer(self.hidden(pooled)), axis=-1)


# %% solution-learned-data
def sequences(count, length=8):
    """Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come first?"""
    tokens = tf.random.uniform((count, length), 2, 10, tf.int32)
    places = tf.argsort(d2l.rand((count, length)))[:, :2]
    for token in (0, 1):
        here = d2l.arange(length) == places[:, token, tf.newaxis]
        tokens = tf.where(here, token, tokens)
    return tokens, d2l.astype(places[:, 0] < places[:, 1], tf.float32)


def mirrored(tokens, labels):
    """Every sequence twice: as it is, and with its 0 and 1 exchanged."""
    exchanged = tf.where(tokens < 2, 1 - tokens, tokens)
    return d2l.concat([tokens, exchanged], 0), d2l.concat([labels, 1 - labels], 0)


for tokens, label in zip(*mirrored(*sequences(1)), strict=True):
    print(tokens.numpy().tolist(), "->", int(label))


# %% solution-learned-training
test_tokens, test_labels = mirrored(*sequences(500))
for name, encoding in (
    ("none", keras.layers.Identity()),
    ("fixed", d2l.PositionalEncoding(32, 0)),
    ("learned", LearnedPositionalEncoding(32, 8)),
):
    keras.utils.set_random_seed(1)
    model = Reader(encoding)
    model.compile(
        optimizer=keras.optimizers.Adam(3e-3),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    model.fit(*sequences(300 * 128), batch_size=128, verbose=0)  # 300 steps
    correct = (model(test_tokens) > 0) == (test_labels > 0)
    share = d2l.reduce_mean(d2l.astype(correct, tf.float32))
    print(f"{name:>8}: {share:.1%}")

# %% solution-causal
keras.utils.set_random_seed(0)
causal_lens = d2l.arange(1, n + 1)[tf.newaxis]  # (batch, queries)
X = d2l.normal((1, n, d))
causal = influence(lambda X: small_attention(X, X, X, causal_lens), X)
future = tf.linalg.band_part(causal, 0, -1) - tf.linalg.band_part(causal, 0, 0)
print("any influence of the future:", bool(tf.math.count_nonzero(future)))
print("pairs connected:", int(tf.math.count_nonzero(causal)), "of", d2l.size(causal))
d2l.show_heatmaps(
    (causal / tf.reduce_max(causal))[tf.newaxis, tf.newaxis],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
keras.utils.set_random_seed(0)
n_far = 24
X = d2l.normal((1, n_far, d))
fading = [influence(f, X)[:, 0] for f in (lambda X: rnn(X, 0.8 * W_hh), self_attention)]
d2l.plot(
    d2l.arange(n_far),
    [curve / curve[0] for curve in fading],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-7, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "self-attention"],
)


# %% solution-dilated
def layers_to_cross(n, growth):
    """Layers with k = 3 until the first of n tokens reaches the last output."""
    signal, kernel, depth = tf.one_hot([[0]], n, axis=1), d2l.ones((3, 1, 1)), 0
    while signal[0, -1, 0] == 0:
        step = growth**depth
        signal = tf.nn.convolution(signal, kernel, padding="SAME", dilations=[step])
        signal, depth = tf.minimum(signal, 1), depth + 1  # only whether it arrives
    return depth


print(f"{'n':>4}{'plain':>8}{'dilated':>9}")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{layers_to_cross(length, 1):>8}{layers_to_cross(length, 3):>9}")


# %% solution-decoding
keras.utils.set_random_seed(0)
encoding = PositionalEncoding(d, 0)
tokens = d2l.normal((1, n, d))
whole = encoding(tokens)
at_once = small_attention(whole, whole, whole, causal_lens)

kept, outputs = whole[:, :0], []
for i in range(n):
    x = encoding(tokens[:, i : i + 1], offset=i)
    kept = d2l.concat([kept, x], axis=1)
    outputs.append(small_attention(x, kept, kept))
difference = tf.reduce_max(abs(at_once - d2l.concat(outputs, axis=1)))
print(f"largest difference: {difference:.5f}")
