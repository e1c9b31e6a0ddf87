# The lesson's TensorFlow code, with Keras' layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import gc
import math
import timeit

from d2l_compat import tensorflow as d2l  # first: it keeps TensorFlow's log quiet

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
# Everything here is small; without this line TensorFlow would use any GPU.
tf.config.set_visible_devices([], "GPU")


# %% plain-attention
def attention(Q, K, V, mask=None):
    """Return softmax(Q K^T / sqrt(d)) V; the mask is True for what a query sees."""
    scores = tf.matmul(Q, K, transpose_b=True) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = tf.where(mask, scores, -math.inf)
    return tf.nn.softmax(scores) @ V


# %% operations
d, kernel_size = 64, 8

print("    n         CNN         RNN   attention")
for n in [32, 128, 512, 2048]:
    counts = kernel_size * n * d**2, 2 * n * d**2, 4 * n * d**2 + 2 * n**2 * d
    print(f"{n:5d}" + "".join(f"{count:12,d}" for count in counts))

# %% layers
conv = keras.layers.Conv1D(d, kernel_size, padding="causal")
rnn = keras.layers.SimpleRNN(d, return_sequences=True)
W_q, W_k, W_v, W_o = (keras.layers.Dense(d, use_bias=False) for _ in range(4))


def convolve(X):
    return conv(X[tf.newaxis])[0]  # zeros in front: n outputs


def attend(X):
    return W_o(attention(W_q(X), W_k(X), W_v(X)))


layers = [convolve, lambda X: rnn(X[tf.newaxis])[0], attend]


# %% layers-timed
def milliseconds(layer, n):
    """Return the time of a forward and a backward pass, the fastest of five."""
    X = tf.random.normal((n, d))

    @tf.function
    def step(X):
        with tf.GradientTape() as tape:
            tape.watch(X)
            total = tf.reduce_sum(layer(X))
        return tape.gradient(total, [X, *tape.watched_variables()])

    step(X)  # creates the weights, and compiles
    # With numpy(), a call ends when the result is there.
    times = timeit.repeat(lambda: step(X)[0].numpy(), number=1, repeat=5)
    return 1000 * min(times)


lengths = [2**i for i in range(5, 12)]
times = [[milliseconds(layer, n) for n in lengths] for layer in layers]

# %% layers-drawn tags=["nbval-ignore-output"]
names = ["CNN", "RNN", "attention"]
print("milliseconds   " + "".join(f"{n:8d}" for n in lengths) + "  exponent")
for name, row in zip(names, times, strict=True):
    exponent = math.log(row[-1] / row[-3], 4)  # over the last two doublings
    print(f"{name:15}" + "".join(f"{x:8.2f}" for x in row) + f"{exponent:10.1f}")
d2l.plot(
    lengths,
    times,
    "tokens",
    "milliseconds",
    legend=names,
    xscale="log",
    yscale="log",
)

# %% bytes
for n in [1000, 4000, 16_000]:
    print(f"n = {n:6,d}: 8 n^2 = {8 * n**2:13,d}, 4 n d = {4 * n * d:9,d}")

# %% online-by-hand
scores = [1.0, 3.0, 2.0]
values = [10.0, 20.0, 30.0]
m, l, o = -math.inf, 0.0, 0.0
for s, v in zip(scores, values, strict=True):
    new_m = max(m, s)
    shrink = math.exp(m - new_m)
    l = l * shrink + math.exp(s - new_m)
    o = o * shrink + math.exp(s - new_m) * v
    m = new_m
    print(f"s = {s:.0f}: m = {m:.0f}, l = {l:.3f}, o = {o:6.3f}, o / l = {o / l:.3f}")

# %% softmax-by-hand
weights = tf.nn.softmax(tf.constant(scores))
print(f"o / l = {tf.tensordot(weights, tf.constant(values), 1):.3f}")

# %% overflow
large = tf.constant([100.0, 102.0])
for name, s in {"s": large, "s - m": large - tf.reduce_max(large)}.items():
    powers = tf.exp(s)
    weights = powers / tf.reduce_sum(powers)
    print(f"{name:5}: powers  {powers.numpy().tolist()}")
    print(f"{name:5}: weights {weights.numpy().tolist()}")


# %% blocks
def split_rows(X, size):
    """Cut a matrix into blocks of rows; the last one may be smaller."""
    n = X.shape[0]
    return tf.split(X, [min(size, n - start) for start in range(0, n, size)])


def attend_in_blocks(Q, K, V, block_size):
    """Compute attention by blocks of keys; also return the logarithms of the sums."""
    m = tf.fill((Q.shape[0], 1), -math.inf)
    l = tf.zeros((Q.shape[0], 1))
    O = tf.zeros((Q.shape[0], V.shape[1]))
    blocks = zip(split_rows(K, block_size), split_rows(V, block_size), strict=True)
    for K_block, V_block in blocks:
        scores = tf.matmul(Q, K_block, transpose_b=True) / math.sqrt(Q.shape[1])
        new_m = tf.maximum(m, tf.reduce_max(scores, axis=1, keepdims=True))
        shrink = tf.exp(m - new_m)
        powers = tf.exp(scores - new_m)
        l = l * shrink + tf.reduce_sum(powers, axis=1, keepdims=True)
        O = O * shrink + powers @ V_block
        m = new_m
    return O / l, m + tf.math.log(l)


# %% matrices
n = 300
Q, K, V = (tf.random.normal((n, d)) for _ in range(3))
grad_o = tf.random.normal((n, d))  # a gradient for the output, to try the way back with
expected = attention(Q, K, V)


# %% blocks-same
def print_difference(a, b, label=""):
    print(f"{label}max |a - b| = {tf.reduce_max(abs(a - b)):.5f}")


for block_size in [1, 7, 64, 300]:
    O, _ = attend_in_blocks(Q, K, V, block_size)
    print_difference(O, expected, f"b = {block_size:3d}: ")

# %% empty-row
hidden = tf.constant([-math.inf, -math.inf])
m = new_m = tf.reduce_max(hidden)
layer = d2l.DotProductAttention(dropout=0.0)
nothing = layer(
    Q[tf.newaxis], K[tf.newaxis], V[tf.newaxis], valid_lens=tf.constant([0])
)
print("weights:  ", tf.nn.softmax(hidden).numpy().tolist())
print("m - m':   ", (m - new_m).numpy().item())
print("d2l:      ", nothing[0, 0, :2].numpy().tolist())


# %% backward
def gradients_in_blocks(Q, K, V, O, log_sums, grad_o, block_size):
    """Return the gradients of sum(O * grad_o); weights are computed once more."""
    scale = 1 / math.sqrt(Q.shape[1])
    grad_q, grads_k, grads_v = tf.zeros_like(Q), [], []
    mean = tf.reduce_sum(grad_o * O, axis=1, keepdims=True)
    blocks = zip(split_rows(K, block_size), split_rows(V, block_size), strict=True)
    for K_block, V_block in blocks:
        scores = tf.matmul(Q, K_block, transpose_b=True) * scale
        weights = tf.exp(scores - log_sums)
        grad_weights = tf.matmul(grad_o, V_block, transpose_b=True)
        grad_scores = weights * (grad_weights - mean)
        grad_q += grad_scores @ K_block * scale
        grads_k.append(tf.matmul(grad_scores, Q, transpose_a=True) * scale)
        grads_v.append(tf.matmul(weights, grad_o, transpose_a=True))
    return grad_q, tf.concat(grads_k, axis=0), tf.concat(grads_v, axis=0)


# %% backward-same
with tf.GradientTape() as tape:
    tape.watch([Q, K, V])
    expected = attention(Q, K, V)
wanted = tape.gradient(expected, [Q, K, V], output_gradients=grad_o)
O, log_sums = attend_in_blocks(Q, K, V, 64)
found = gradients_in_blocks(Q, K, V, O, log_sums, grad_o, 64)
for name, a, b in zip("QKV", found, wanted, strict=True):
    print_difference(a, b, f"{name}: ")


# %% kept
def find_arrays():
    """Return the size in bytes of each tensor's array, by its address."""
    gc.collect()  # what nothing refers to is not kept
    eager_tensor = type(tf.constant(0.0))
    tensors = [x for x in gc.get_objects() if type(x) is eager_tensor]
    arrays = [np.asarray(memoryview(x)) for x in tensors if x.dtype.is_floating]
    return {array.ctypes.data: array.nbytes for array in arrays}


def kept_megabytes(function, n):
    """Return how much is kept for the backward pass, each array counted once."""
    Q, K, V = (tf.random.normal((n, d)) for _ in range(3))
    with tf.GradientTape() as tape:
        tape.watch([Q, K, V])
        result = function(Q, K, V)  # alive until all is counted
    del Q, K, V  # the tape still has them if it needs them
    with_tape = find_arrays()
    del tape
    without_tape = find_arrays()
    del result
    freed = with_tape.keys() - without_tape.keys()
    return sum(with_tape[address] for address in freed) / 1e6


def attend_d2l(Q, K, V):
    layer = d2l.DotProductAttention(dropout=0.0)
    return layer(Q[tf.newaxis], K[tf.newaxis], V[tf.newaxis])


functions = [
    lambda Q, K, V: convolve(Q),
    lambda Q, K, V: rnn(Q[tf.newaxis]),
    attention,
    lambda Q, K, V: attend_in_blocks(Q, K, V, 64)[0],
    attend_d2l,
]
gc.freeze()  # looking only at new objects is faster
kept = [
    [kept_megabytes(function, n) for n in [1024, 2048, 4096]] for function in functions
]
gc.unfreeze()

# %% kept-shown tags=["tolerance:relative=0.1"]
names = ["CNN", "RNN", "attention", "in blocks", "d2l"]
print("megabytes   " + "".join(f"{n:8,d}" for n in [1024, 2048, 4096]))
for name, row in zip(names, kept, strict=True):
    print(f"{name:12}" + "".join(f"{x:8.1f}" for x in row))


# %% window
def window_mask(n, window):
    """Return which keys each query sees: its own, and the window - 1 before it."""
    distance = tf.range(n)[:, tf.newaxis] - tf.range(n)
    return (distance >= 0) & (distance < window)


for row in tf.cast(window_mask(6, 3), tf.int32).numpy():
    print(*row)


# %% window-blocks
def attend_in_window(Q, K, V, window):
    """Let each block of queries attend to its own block of keys and the one before."""
    n, d = Q.shape
    rest = -n % window  # fills the last block: later keys, which no query sees
    Q = tf.reshape(tf.pad(Q, [[0, rest], [0, 0]]), (-1, window, d))
    # A block of zeros stands in front, since the first block has none before it.
    K, V = (
        tf.reshape(tf.pad(X, [[window, rest], [0, 0]]), (-1, window, X.shape[1]))
        for X in (K, V)
    )
    K, V = (tf.concat([X[:-1], X[1:]], axis=1) for X in (K, V))

    # Queries stand in the second half of their two blocks of keys.
    start = window * tf.range(Q.shape[0])[:, tf.newaxis, tf.newaxis]
    query = start + tf.range(window)[:, tf.newaxis]
    key = start - window + tf.range(2 * window)
    distance = query - key
    mask = (distance >= 0) & (distance < window) & (key >= 0)
    scores = tf.matmul(Q, K, transpose_b=True) / math.sqrt(d)
    weights = tf.nn.softmax(tf.where(mask, scores, -math.inf))
    return tf.reshape(weights @ V, (-1, V.shape[-1]))[:n]


# %% window-same
expected = attention(Q, K, V, window_mask(n, 32))
d2l_layer = d2l.DotProductAttention(dropout=0.0)
by_d2l = d2l_layer(Q[tf.newaxis], K[tf.newaxis], V[tf.newaxis], window=32)[0]
for found in [attend_in_window(Q, K, V, 32), by_d2l]:
    print_difference(found, expected)

# %% off-by-one
found = attention(Q, K, V, window_mask(n, 32 + 1))
print_difference(found, expected)


# %% reach
def find_reach(num_layers, window, n=24):
    """Return which inputs the last output depends on, after several layers."""
    X = 0.1 * tf.random.normal((n, 8))  # small, so that the weights are nearly equal
    with tf.GradientTape() as tape:
        tape.watch(X)
        H = X
        for _ in range(num_layers):
            H = H + attend_in_window(H, H, H, window)
        total = tf.reduce_sum(H[-1])
    gradient = tape.gradient(total, X)
    return tf.reduce_any(gradient != 0, axis=1)


reached = [
    int(tf.math.count_nonzero(find_reach(num_layers, 4))) for num_layers in range(1, 7)
]

# %% reach-shown
for num_layers, num_tokens in enumerate(reached, start=1):
    print(
        f"L = {num_layers}: {num_tokens:2d} tokens, L (w - 1) + 1 = {3 * num_layers + 1:2d}"
    )

# %% linear-by-hand
keys = tf.constant([[1.0, 0], [0, 1], [1, 1]])
values = tf.constant([10.0, 20, 30])
query = tf.constant([1.0, 0])
kv, k = tf.zeros(2), tf.zeros(2)
for key, value in zip(keys, values, strict=True):
    kv = kv + key * value
    k = k + key
    print(f"kv = {kv.numpy().tolist()}, k = {k.numpy().tolist()}")
top, bottom = tf.tensordot(query, kv, 1), tf.tensordot(query, k, 1)
print(f"{top:.0f} / {bottom:.0f} = {top / bottom:.0f}")


# %% linear-forms
def make_positive(X):
    return tf.nn.elu(X) + 1


def attend_in_parallel(Q, K, V, decay=1.0):
    """Compute linear attention with a matrix of weights, all at once."""
    Q, K = make_positive(Q), make_positive(K)
    step = tf.range(keras.ops.shape(Q)[-2], dtype=tf.float32)
    powers = decay ** tf.maximum(step[:, tf.newaxis] - step, 0)
    powers = tf.linalg.band_part(powers, -1, 0)  # the lower triangle
    weights = tf.matmul(Q, K, transpose_b=True) * powers
    return weights @ V / tf.reduce_sum(weights, axis=-1, keepdims=True)


def attend_token_by_token(Q, K, V, decay=1.0):
    """Compute the same with two sums, which do not grow."""
    kv, k = tf.zeros((K.shape[1], V.shape[1])), tf.zeros(K.shape[1])
    outputs = []
    for query, key, value in zip(make_positive(Q), make_positive(K), V, strict=True):
        kv = decay * kv + key[:, tf.newaxis] * value
        k = decay * k + key
        outputs.append(tf.tensordot(query, kv, 1) / tf.tensordot(query, k, 1))
    return tf.stack(outputs)


# %% linear-same
expected = attend_token_by_token(Q, K, V, decay=0.9)
found = attend_in_parallel(Q, K, V, decay=0.9)
print_difference(found, expected)


# %% chunks
def attend_in_chunks(Q, K, V, decay=1.0, size=64):
    """Use a matrix of weights in each chunk; two sums lead from chunk to chunk."""
    kv, k = tf.zeros((K.shape[1], V.shape[1])), tf.zeros((K.shape[1], 1))
    outputs = []
    chunks = (split_rows(X, size) for X in (make_positive(Q), make_positive(K), V))
    for queries, keys, values in zip(*chunks, strict=True):
        n = queries.shape[0]
        step = tf.range(n, dtype=tf.float32)[:, tf.newaxis]
        powers = decay ** tf.maximum(step - tf.transpose(step), 0)
        powers = tf.linalg.band_part(powers, -1, 0)
        weights = tf.matmul(queries, keys, transpose_b=True) * powers
        old_queries = queries * decay ** (step + 1)  # for what came before the chunk
        total = tf.reduce_sum(weights, axis=1, keepdims=True) + old_queries @ k
        outputs.append((weights @ values + old_queries @ kv) / total)
        new_keys = keys * decay ** (n - 1 - step)  # as the next chunk sees them
        kv = decay**n * kv + tf.matmul(new_keys, values, transpose_a=True)
        k = decay**n * k + tf.reduce_sum(new_keys, axis=0)[:, tf.newaxis]
    return tf.concat(outputs, axis=0)


# %% chunks-same
for size in [1, 64, 300]:
    found = attend_in_chunks(Q, K, V, 0.9, size)
    print_difference(found, expected, f"c = {size:3d}: ")

# %% forms-timed
forms = [
    attention,
    lambda Q, K, V: attend_in_window(Q, K, V, 64),
    lambda Q, K, V: attend_in_chunks(Q, K, V, size=64),
]
form_lengths = [512, 1024, 2048, 4096]
form_times = [
    [milliseconds(lambda X, form=form: form(X, X, X), n) for n in form_lengths]
    for form in forms
]

# %% forms-timed-shown tags=["nbval-ignore-output"]
names = ["attention", "in a window", "chunks"]
print("milliseconds   " + "".join(f"{n:8,d}" for n in form_lengths))
for name, row in zip(names, form_times, strict=True):
    print(f"{name:15}" + "".join(f"{x:8.2f}" for x in row))


# %% linear-layer
class LinearAttention(keras.layers.Layer):
    """Causal linear attention with several heads, in its parallel form."""

    def __init__(self, num_hiddens, num_heads, decay=1.0):
        super().__init__()
        self.num_heads, self.decay = num_heads, decay
        self.W_q = keras.layers.Dense(num_hiddens, use_bias=False)
        self.W_k = keras.layers.Dense(num_hiddens, use_bias=False)
        self.W_v = keras.layers.Dense(num_hiddens, use_bias=False)
        self.W_o = keras.layers.Dense(num_hiddens, use_bias=False)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        batch, steps, num_hiddens = keras.ops.shape(X)
        head_size = num_hiddens // self.num_heads
        heads = tf.reshape(X, (batch, steps, self.num_heads, head_size))
        return tf.transpose(heads, (0, 2, 1, 3))

    def call(self, X):
        q, k, v = (self.split(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        pooled = attend_in_parallel(q, k, v, self.decay)
        joined = tf.reshape(tf.transpose(pooled, (0, 2, 1, 3)), keras.ops.shape(X))
        return self.W_o(joined)


# %% linear-layer-same
layer, d2l_layer = LinearAttention(16, 2, 0.9), d2l.LinearAttention(16, 2, decay=0.9)
X = tf.random.normal((2, 50, 16))
whole = layer(X)
d2l_layer(X)  # creates the weights
d2l_layer.set_weights(layer.get_weights())
state = d2l_layer.make_state(batch_size=2)
parts = [d2l_layer(X[:, :30], state), d2l_layer(X[:, 30:], state)]
print_difference(tf.concat(parts, axis=1), whole)

# %% state-bytes
cache = d2l.CausalSelfAttention(256, 4).make_cache(batch_size=1, max_len=1000)
state = d2l.LinearAttention(256, 4).make_state(batch_size=1)
bytes_per_token = cache.nbytes // 1000

# %% state-bytes-shown
print(f"state                      {state.nbytes:11,d} bytes")
for n in [100, 1000, 10_000, 100_000]:
    print(f"cache of {n:7,d} tokens    {bytes_per_token * n:11,d} bytes")

# %% draw-pairs
num_keys, num_values = 32, 8


def draw_pairs(batch_size, num_pairs):
    """Draw pairs of a key and a value, then each key once more; also return answers.

    A token is a key and a value; where the value is asked for, it is num_values.
    """
    # Drawn with NumPy, which set_random_seed seeds as well.
    keys = np.random.rand(batch_size, num_keys).argsort(axis=1)[:, :num_pairs]
    values = np.random.randint(num_values, size=(batch_size, num_pairs))
    order = np.random.rand(batch_size, num_pairs).argsort(axis=1)
    asked = np.full_like(values, num_values)
    all_keys = np.concatenate([keys, np.take_along_axis(keys, order, axis=1)], axis=1)
    all_values = np.concatenate([values, asked], axis=1)
    return all_keys, all_values, np.take_along_axis(values, order, axis=1)


keys, values, answers = draw_pairs(1, 3)

# %% pairs-shown
for key, value in zip(keys[0], values[0], strict=True):
    print(f"({key}, {value if value < num_values else '?'})", end=" ")
print("->", *answers[0])


# %% recaller
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class Recaller(keras.Model):
    """Read pairs with layers of attention, and name the value of each key asked for."""

    def __init__(self, *layers, num_hiddens=16):
        super().__init__()
        self.key_embedding = make_table(num_keys, num_hiddens)
        self.value_embedding = make_table(num_values + 1, num_hiddens)
        self.attentions = layers  # Keras reserves the name `layers`
        self.dense = keras.layers.Dense(num_values)

    def call(self, keys, values):
        X = self.key_embedding(keys) + self.value_embedding(values)
        for layer in self.attentions:
            X = X + layer(X)
        return self.dense(X[:, keras.ops.shape(X)[1] // 2 :])


# %% train
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(model, num_steps=400, batch_size=32, lr=0.02):
    """Train on 2, 4, 8 and 16 pairs in turn; the learning rate falls to a tenth."""
    keys, values, _ = draw_pairs(1, 2)
    model(keys, values)  # creates the weights
    schedule = keras.optimizers.schedules.PolynomialDecay(lr, num_steps, 0.1 * lr)
    optimizer = keras.optimizers.Adam(schedule)
    optimizer.build(model.trainable_weights)

    @tf.function(reduce_retracing=True)  # compiles for any number of pairs at once
    def update(keys, values, answers):
        with tf.GradientTape() as tape:
            loss = cross_entropy(answers, model(keys, values))
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)

    for step in range(num_steps):
        update(*draw_pairs(batch_size, [2, 4, 8, 16][step % 4]))
    return model


def train_five(make_model):
    """Train five models, each from a seed of its own."""
    models = []
    for seed in range(5):
        keras.utils.set_random_seed(seed)
        models.append(train(make_model()))
    return models


# %% train-all
softmax_models = train_five(lambda: Recaller(d2l.CausalSelfAttention(16, 4)))
one_head_models = train_five(lambda: Recaller(LinearAttention(16, 1)))
four_heads_models = train_five(lambda: Recaller(LinearAttention(16, 4)))

# %% recall
nums_pairs = [2, 4, 8, 16]
texts = [draw_pairs(500, num_pairs) for num_pairs in nums_pairs]


def is_right(model, keys, values, answers):
    return np.argmax(model(keys, values), axis=-1) == answers


def recall(models):
    """Return each model's share of right answers, for each number of pairs."""
    return [[np.mean(is_right(model, *text)) for text in texts] for model in models]


softmax_recall = recall(softmax_models)
one_head_recall, four_heads_recall = recall(one_head_models), recall(four_heads_models)

# %% recall-shown tags=["tolerance:absolute=0.15"]
one_layer = {
    "softmax": softmax_recall,
    "16 x 16": one_head_recall,
    "4 x 4 x 4": four_heads_recall,
}
d2l.print_ranges(one_layer, nums_pairs, "pairs")
d2l.plot_ranges(nums_pairs, one_layer, "pairs", "recall", ylim=(0, 1.05))

# %% train-stacks
two_linear_models = train_five(
    lambda: Recaller(LinearAttention(16, 4), LinearAttention(16, 4))
)
mixed_models = train_five(
    lambda: Recaller(LinearAttention(16, 4), d2l.CausalSelfAttention(16, 4))
)
two_linear_recall, mixed_recall = recall(two_linear_models), recall(mixed_models)

# %% stacks-shown tags=["tolerance:absolute=0.15"]
two_layers = {"two linear": two_linear_recall, "mixed": mixed_recall}
d2l.print_ranges(two_layers, nums_pairs, "pairs")

# %% decay-by-hand
for a in [0.5, 0.9, 0.99]:
    print(f"a = {a:.2f}:", ", ".join(f"a^{r} = {a**r:.4f}" for r in [1, 10, 100]))

# %% train-decaying
decaying_models = train_five(lambda: Recaller(LinearAttention(16, 4, decay=0.9)))


# %% recall-by-age
def recall_by_age(models, num_pairs=16):
    """Return the recall of each quarter of the pairs, from the oldest to the newest."""
    keys, values, answers = texts[-1]
    # Find where each key that is asked for stands among the pairs.
    is_same = keys[:, num_pairs:, np.newaxis] == keys[:, np.newaxis, :num_pairs]
    quarter = is_same.argmax(axis=2) * 4 // num_pairs
    all_right = [is_right(model, keys, values, answers) for model in models]
    return [[np.mean(right[quarter == i]) for i in range(4)] for right in all_right]


lasting_by_age, decaying_by_age = (
    recall_by_age(four_heads_models),
    recall_by_age(decaying_models),
)

# %% recall-by-age-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges(
    {"a = 1": lasting_by_age, "a = 0.9": decaying_by_age},
    ["oldest", "older", "newer", "newest"],
)


# %% solution-merge
def merge(O, log_sums, other_O, other_log_sums):
    """Combine attention to some keys with attention to others."""
    shares = tf.nn.softmax(tf.concat([log_sums, other_log_sums], axis=1))
    return shares[:, :1] * O + shares[:, 1:] * other_O


first = attend_in_blocks(Q, K[:100], V[:100], 64)
second = attend_in_blocks(Q, K[100:], V[100:], 64)
print_difference(merge(*first, *second), attention(Q, K, V))


# %% solution-causal
def attend_causally(Q, K, V, size):
    """Compute causal attention without later blocks; also count the blocks."""
    outputs, num_blocks = [], 0
    for start in range(0, len(Q), size):
        end = min(start + size, len(Q))
        is_visible = tf.range(start, end)[:, tf.newaxis] >= tf.range(end)
        outputs.append(attention(Q[start:end], K[:end], V[:end], is_visible))
        num_blocks += math.ceil(end / size)
    return tf.concat(outputs, axis=0), num_blocks


O, num_blocks = attend_causally(Q, K, V, 64)
expected = attention(Q, K, V, window_mask(300, 300))
print_difference(O, expected, f"{num_blocks} / {5 * 5}, ")

# %% solution-powers
a = tf.constant(0.5)
for j in [100, 126, 128, 200]:
    print(f"j = {j}: a^-j = {a**-j:.3g}")

# %% solution-delta
keys = tf.constant([[1.0, 0], [0, 1], [1, 0]])
memory = tf.zeros(2)
for key, value in zip(keys, [10.0, 20.0, 30.0], strict=True):
    remembered = tf.tensordot(memory, key, 1)
    memory = memory + key * (value - remembered)
    print(f"{remembered:2.0f} -> {value:.0f}: memory = {memory.numpy().tolist()}")
