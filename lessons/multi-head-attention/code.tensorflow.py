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

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = d2l.eye(3)  # each fruit has its own number
values = d2l.tensor([50.0, 40, 70])  # the price, in cents
pear, lemon = d2l.tensor([0.0, 0, 6]), d2l.tensor([0.0, 6, 0])

for name, query in ("pear", pear), ("lemon", lemon), ("both", pear + lemon):
    weights = tf.nn.softmax(tf.linalg.matvec(keys, query))
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {tf.reduce_sum(weights * values):.1f} cents")

# %% two-averages
heads = tf.linalg.matvec(
    tf.nn.softmax(d2l.stack([pear, lemon]) @ d2l.transpose(keys)), values
)
W_o = d2l.tensor([1.0, -1])  # the first minus the second
pear_minus_lemon = tf.reduce_sum(heads * W_o)
lemon_minus_pear = tf.reduce_sum(heads[::-1] * W_o)
print("the two heads:", *(f"{head:.1f}" for head in heads))
print(f"a pear costs {pear_minus_lemon:.1f} cents more than a lemon")
print(f"a lemon costs {lemon_minus_pear:.1f} cents more than a pear")


# %% split-and-merge
def split(X, num_heads):
    """Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads)."""
    batch, n, d = X.shape
    heads = tf.reshape(X, (batch, n, num_heads, d // num_heads))
    return tf.transpose(heads, (0, 2, 1, 3))


def merge(X):
    """Put the heads side by side again: (batch, heads, n, width) to (batch, n, d)."""
    batch, num_heads, n, width = X.shape
    return tf.reshape(tf.transpose(X, (0, 2, 1, 3)), (batch, n, num_heads * width))


# %% multi-head
def attend(q, k, v):
    """Return scaled dot-product attention over the last two axes."""
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
    return tf.nn.softmax(scores) @ v


def multi_head(X, W_q, W_k, W_v, W_o, num_heads):
    """Compute self-attention with heads: project, split, attend, merge, project."""
    q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
    return merge(attend(q, k, v)) @ W_o


# %% shapes
keras.utils.set_random_seed(0)
d, num_heads = 8, 2
X = d2l.normal((1, 5, d))
W_q, W_k, W_v, W_o = (d2l.normal((d, d)) / math.sqrt(d) for _ in range(4))
q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
attended = attend(q, k, v)
merged = merge(attended)
steps = {"X": X, "X W_q": X @ W_q, "split": q}
steps |= {"attended": attended, "merged": merged, "output": merged @ W_o}
for name, step in steps.items():
    print(f"{name:>8} {tuple(step.shape)}")

# %% head-by-head
width = d // num_heads
head_outputs = []
for head in range(num_heads):
    columns = slice(head * width, (head + 1) * width)
    q, k, v = (X @ W[:, columns] for W in (W_q, W_k, W_v))
    head_outputs.append(attend(q, k, v))
headwise_output = d2l.concat(head_outputs, axis=-1) @ W_o

# %% the-layer
layer = d2l.MultiHeadAttention(d, num_heads, dropout=0)
layer(X, X, X)  # creates the weights
parts = layer.W_q, layer.W_k, layer.W_v, layer.W_o
for part, W in zip(parts, (W_q, W_k, W_v, W_o), strict=True):
    part.kernel.assign(W)
layer_output = layer(X, X, X)
output = multi_head(X, W_q, W_k, W_v, W_o, num_heads)

# %% all-alike
print(f"largest output: {tf.reduce_max(abs(output)):.4f}")
for name, Y in ("head by head", headwise_output), ("the layer", layer_output):
    print(f"{name:>12}: largest difference {tf.reduce_max(abs(Y - output)):.4f}")

# %% own-layer
framework_layer = keras.layers.MultiHeadAttention(num_heads, width, use_bias=False)
framework_layer.build(X.shape, X.shape)
# Its weights also have an axis for the heads.
kernels = [tf.reshape(W, (d, num_heads, width)) for W in (W_q, W_k, W_v)]
framework_layer.set_weights([*kernels, tf.reshape(W_o, (num_heads, width, d))])
framework_output = framework_layer(X, X)
difference = tf.reduce_max(abs(framework_output - output))
print(f"Keras' own: largest difference {difference:.4f}")

# %% merged-wrongly
wrong_merge = tf.reshape(attended, (1, 5, d))  # the right shape, and the wrong numbers
print("shapes:", tuple(wrong_merge.shape), tuple(merge(attended).shape))
share_in_place = np.mean(wrong_merge == merge(attended))
print(f"numbers in their place: {share_in_place:.2f}")


# %% wrong-root
def sharpness(width):
    """Return the mean largest weight of a thousand queries in each of 8 heads."""
    keras.utils.set_random_seed(0)
    q, k = d2l.normal((2, 8, 1000, 64))  # 512 / 8 = 64
    scores = tf.matmul(q, k[:, :10], transpose_b=True) / math.sqrt(width)
    return tf.reduce_mean(tf.reduce_max(tf.nn.softmax(scores), axis=-1))


for name, width in ("the head's 64", 64), ("the model's 512", 512):
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = d2l.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in 1, 2, 4, 8, 16:
    layer = d2l.MultiHeadAttention(64, num_heads, dropout=0)
    products = d2l.multiply_adds(layer, tokens, tokens, tokens)
    layer(tokens, tokens, tokens)
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{layer.count_params():>12,}{products:>15,}"
        f"{d2l.size(layer.attention_weights):>9,}"
    )


# %% questions
def draw_questions(count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers."""
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]  # no letter twice
    numbers = np.random.randn(count, size).astype("float32")
    # Each question asks for two different entries.
    indices = np.random.rand(count, size, size).argsort(axis=2)[:, :, :2]
    questions, pair_numbers = (
        np.take_along_axis(array[:, np.newaxis], indices, axis=2)
        for array in (letters, numbers)
    )
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


keras.utils.set_random_seed(2)
letters, numbers, questions, answers = (array[0] for array in draw_questions(1))
print(
    "entries:",
    *(f"{chr(97 + x)} {y:.1f} " for x, y in zip(letters, numbers, strict=True)),
)
for (a, b), answer in zip(questions[:3], answers, strict=False):
    print(f"{chr(97 + a)} - {chr(97 + b)} = {answer:.1f}")


# %% comparer
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class Comparer(keras.Model):
    """A model that compares the numbers of two letters."""

    def __init__(self, num_heads, num_hiddens=32):
        super().__init__()
        self.letter, self.first, self.second = (
            make_table(26, num_hiddens) for _ in range(3)
        )
        self.number = keras.layers.Dense(num_hiddens, use_bias=False)
        self.attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0)
        self.answer = keras.layers.Dense(1)

    def call(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., tf.newaxis])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        return self.answer(self.attention(queries, entries, entries))[..., 0]


# %% train
def narrow_weights(model, *inputs):
    """Scale weights into -1/sqrt(d) to 1/sqrt(d): Keras draws from a wider range."""
    model(*inputs)  # creates the weights
    for weight in model.weights:
        if weight.name == "kernel":
            weight.assign(weight / math.sqrt(3))
    return model


def fit(models, samples, rate, loss):
    """Train models of one kind side by side, their weights stacked on a new axis."""
    model_weights = [model.get_weights() for model in models]
    weights = [
        tf.Variable(np.stack(arrays)) for arrays in zip(*model_weights, strict=True)
    ]
    adam = keras.optimizers.Adam(rate)
    adam.build(weights)

    def model_loss(weights_and_batch):
        """Return the loss of one model, with its own weights and its own batch."""
        weights, *inputs, answers = weights_and_batch
        predictions, _ = models[0].stateless_call(weights, [], *inputs)
        return tf.reduce_mean(loss(answers, predictions))

    @tf.function
    def step(*batch):
        with tf.GradientTape() as tape:
            losses = tf.vectorized_map(model_loss, (weights, *batch))
            total = tf.reduce_sum(losses)
        adam.apply(tape.gradient(total, weights), weights)

    # Each model's examples in 100 batches, with shape (steps, models, batch, ...).
    batches = (
        np.stack([np.split(array, 100) for array in arrays], axis=1)
        for arrays in zip(*samples, strict=True)
    )
    for batch in zip(*batches, strict=True):
        step(*batch)
    for i, model in enumerate(models):
        model.set_weights([weight[i] for weight in weights])
    return models


def train(num_heads, seeds=range(5), **task):
    """Train a model for each seed."""
    models, samples = [], []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        models.append(narrow_weights(Comparer(num_heads), *draw_questions(1)[:3]))
        samples.append(draw_questions(100 * 128, **task))
    return fit(models, samples, 0.015, tf.math.squared_difference)


# The same questions for every model.
differences = draw_questions(1000)


def error(model, examples=differences):
    *inputs, answers = examples
    return np.mean((model(*inputs) - answers) ** 2)


models = {h: train(h) for h in (1, 2, 4)}
errors = {h: [error(model) for model in runs] for h, runs in models.items()}

# %% errors tags=["tolerance:absolute=0.03"]
print("heads  mean squared error, five seeds: median (range)")
for h, runs in errors.items():
    print(f"{h:>5}  {statistics.median(runs):.3f} ({min(runs):.3f}-{max(runs):.3f})")

# %% two-heads-map tags=["tolerance:levels=16"]
keras.utils.set_random_seed(4)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
print("entries:  ", *(chr(97 + x) for x in letters[0]))
print("questions:", *(f"{chr(97 + a)}-{chr(97 + b)}" for a, b in questions[0]))
d2l.show_heatmaps(
    models[2][0].attention.attention_weights,
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2"],
    figsize=(6, 3),
    cmap="Blues",
)


# %% without-a-head
def error_without(model, head):
    """Return the error after setting a head's rows of W_o to zero."""
    W_o, num_heads = model.attention.W_o.kernel, model.attention.num_heads
    width = W_o.shape[0] // num_heads
    original = W_o.numpy()
    new_weights = original.copy()
    new_weights[head * width : (head + 1) * width] = 0
    W_o.assign(new_weights)
    result = error(model)
    W_o.assign(original)
    return result


errors_without = {
    h: [[error_without(model, head) for head in range(h)] for model in models[h]]
    for h in (2, 4)
}

# %% without-a-head-shown tags=["tolerance:absolute=0.05"]
for h, runs in errors_without.items():
    print(f"{h} heads, without one of them:")
    for seed, costs in enumerate(runs):
        print(f"   seed {seed}:", *(f"{cost:6.3f}" for cost in costs))


# %% texts
def draw_texts(count, size=4):
    """Draw letters, each followed by its digit; then the same pairs, shuffled."""
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]
    digits = np.random.randint(10, size=(count, size))
    order = np.random.rand(count, size).argsort(axis=1)
    pairs = np.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    repeated = np.take_along_axis(pairs, order[..., np.newaxis], axis=1)
    tokens = np.concatenate([pairs, repeated], axis=1).reshape(count, 4 * size)
    return tokens, np.take_along_axis(digits, order, axis=1)


def format_tokens(tokens):
    return " ".join(chr(97 + x) if x < 26 else str(x - 26) for x in tokens)


for tokens in draw_texts(3)[0]:
    print(format_tokens(tokens))


# %% reader
class Reader(keras.Model):
    """One or two residual layers, with two causal heads in all."""

    def __init__(self, num_layers, num_hiddens=32, length=16):
        super().__init__()
        self.token = make_table(36, num_hiddens)
        self.place = make_table(length, num_hiddens)
        self.attentions = [
            d2l.MultiHeadAttention(num_hiddens, 2 // num_layers, dropout=0)
            for _ in range(num_layers)
        ]
        self.logits = keras.layers.Dense(10)

    def call(self, tokens):
        X = self.token(tokens) + self.place(d2l.arange(tokens.shape[1]))
        for layer in self.attentions:
            X = X + layer(X, X, X, causal=True)
        half = tokens.shape[1] // 2
        return self.logits(X[:, half::2])  # the letters of the second half


# %% train-readers
def train_readers(num_layers, seeds=range(5)):
    """Train a reader for each seed."""
    models, samples = [], []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        models.append(narrow_weights(Reader(num_layers), draw_texts(1)[0]))
        samples.append(draw_texts(100 * 128))
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return fit(models, samples, 0.01, cross_entropy)


# The same texts for every model.
test = draw_texts(500)


def accuracy(model):
    tokens, digits = test
    return np.mean(np.argmax(model(tokens), axis=-1) == digits)


readers = {count: train_readers(count) for count in (1, 2)}
accuracies = {
    count: [accuracy(model) for model in runs] for count, runs in readers.items()
}

# %% readers-shares tags=["tolerance:absolute=0.02"]
for count, runs in accuracies.items():
    print(
        f"layers: {count}, right: {statistics.median(runs):.3f} "
        f"({min(runs):.3f}-{max(runs):.3f})"
    )

# %% readers-maps tags=["nbval-ignore-output"]
keras.utils.set_random_seed(5)
tokens, _ = draw_texts(1)
model = readers[2][0]
model(tokens)
print(format_tokens(tokens[0]))
d2l.show_heatmaps(
    d2l.concat([layer.attention_weights for layer in model.attentions], axis=1),
    xlabel="Keys",
    ylabel="Queries",
    titles=["First layer", "Second layer"],
    figsize=(7, 3.5),
    cmap="Blues",
)

# %% solution-rank
keras.utils.set_random_seed(0)
X = d2l.normal((1, 20, d))
for num_heads in 1, 2, 4, 8:
    q, k = (split(X @ W, num_heads)[0, 0] for W in (W_q, W_k))  # the first head's
    rank = tf.linalg.matrix_rank(q @ d2l.transpose(k))
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
keras.utils.set_random_seed(0)
X = d2l.normal((1, 5, d))
order = [4, 5, 6, 7, 0, 1, 2, 3]  # the second of two heads comes first
reordered_weights = [tf.gather(W, order, axis=1) for W in (W_q, W_k, W_v)]
original_output = multi_head(X, W_q, W_k, W_v, W_o, 2)
reordered_output = multi_head(X, *reordered_weights, tf.gather(W_o, order), 2)
print(f"largest output: {tf.reduce_max(abs(original_output)):.4f}")
difference = tf.reduce_max(abs(reordered_output - original_output))
print(f"largest difference: {difference:.4f}")

# %% solution-sum
adders = train(1, sign=1)
sums = draw_questions(1000, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
median, low, high = statistics.median(sum_errors), min(sum_errors), max(sum_errors)
print(f"one head, sums: mean squared error {median:.3f} ({low:.3f}-{high:.3f})")

# %% solution-mean-map tags=["tolerance:levels=16"]
keras.utils.set_random_seed(0)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
weights = models[2][0].attention.attention_weights
d2l.show_heatmaps(
    d2l.concat([weights, d2l.reduce_mean(weights, axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""
    W_o = model.attentions[layer].W_o.kernel
    original = W_o.numpy()
    W_o.assign(tf.zeros_like(original))
    result = accuracy(model)
    W_o.assign(original)
    return result


accuracies_without = {
    layer: [accuracy_without(model, layer) for model in readers[2]] for layer in (0, 1)
}

# %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
for layer, runs in accuracies_without.items():
    name = ["first", "second"][layer]
    print(
        f"without the {name:>6}: {statistics.median(runs):.3f} "
        f"({min(runs):.3f}-{max(runs):.3f}) right"
    )
