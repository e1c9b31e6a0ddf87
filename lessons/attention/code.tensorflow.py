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

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in ["lemon", "lime"]:
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
keys = tf.constant([[2.0, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = tf.constant([50.0, 40, 70])  # the price, in cents
query = tf.constant([0.0, 1])  # a lime: not sweet, a little sour

scores = tf.linalg.matvec(keys, query)  # how well does each key fit?
powers = tf.exp(scores)
weights = powers / tf.reduce_sum(powers)  # softmax: positive, and they sum to 1
# the average of the values, with these weights
answer = tf.reduce_sum(weights * values)

for score, weight, fruit in zip(scores, weights, fruits, strict=True):
    print(f"{score:4.0f}{weight:8.3f}   {fruit}")
print(f"a lime costs about {answer:.0f} cents")

# %% from-soft-to-hard
for factor in [0, 1, 3, 10]:
    weights = tf.nn.softmax(tf.linalg.matvec(keys, factor * query))
    shares = "".join(f"{weight:8.3f}" for weight in weights)
    average = tf.reduce_sum(weights * values)
    print(f"query times {factor:>2}:{shares}   {average:5.1f} cents")


# %% attend
def attend(queries, keys, values):
    """Return an answer for each query: score, softmax, average."""
    scores = tf.matmul(queries, keys, transpose_b=True)  # (queries, keys)
    return tf.nn.softmax(scores) @ values


# %% three-customers
queries = tf.constant([[0.0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = tf.constant([[50.0, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")

# %% batches
queries = tf.random.normal((2, 3, 4))
keys = tf.random.normal((2, 5, 4))
values = tf.random.normal((2, 5, 6))
answers = attend(queries, keys, values)
print("queries", tuple(queries.shape))
print("keys   ", tuple(keys.shape))
print("values ", tuple(values.shape))
print("answers", tuple(answers.shape))


# %% points
def curve(x):
    return tf.sin(2 * x) + x / 2


def draw_points(count, seed):
    """Draw noisy measurements of the curve at random x from 0 to 5."""
    keras.utils.set_random_seed(seed)
    x = tf.sort(5 * tf.random.uniform((count,)))
    return x, curve(x) + 0.3 * tf.random.normal((count,))


# %% kernel-regression
def closeness(queries, keys, width):
    """Return scores, the logarithm of a Gaussian kernel: shape (queries, keys)."""
    return -((queries[:, tf.newaxis] - keys) ** 2) / (2 * width**2)


x, y = draw_points(40, seed=0)
grid = tf.linspace(0.0, 5, 101)
fits = {}
for width in [0.05, 0.3, 3]:
    weights = tf.nn.softmax(closeness(grid, x, width))
    fits[width] = tf.linalg.matvec(weights, y)

# %% three-widths
d2l.plot(
    [x, *[grid] * 4],
    [y, curve(grid), *fits.values()],
    xlabel="x",
    ylabel="y",
    figsize=(6, 3.5),
    legend=["measured", "true curve", *(f"width {width}" for width in fits)],
    fmts=["o", "-", "--", "-.", ":"],
)

# %% width-heatmaps
maps = []
for width in fits:
    weights = tf.nn.softmax(closeness(x, x, width))
    maps.append(weights / tf.reduce_max(weights))
d2l.show_heatmaps(
    tf.stack(maps)[tf.newaxis],
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Width {width}" for width in fits],
    figsize=(8, 3),
    cmap="Blues",
)


# %% without-itself
def error(width, x, y, hide_itself=True):
    """Return the mean squared error of predicting each point from others (or all)."""
    scores = closeness(x, x, width)
    if hide_itself:
        scores = tf.where(tf.eye(x.shape[0], dtype=bool), -math.inf, scores)
    return tf.reduce_mean((tf.linalg.matvec(tf.nn.softmax(scores), y) - y) ** 2)


# %% learned-width
def learn_width(x, y, start, hide_itself=True):
    """Learn the width, by Adam on its logarithm, which keeps it positive."""
    log_width = tf.Variable(math.log(start))
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build([log_width])

    @tf.function  # as a graph, it is five times as fast
    def step():
        with tf.GradientTape() as tape:
            loss = error(tf.exp(log_width), x, y, hide_itself)
        gradient = tape.gradient(loss, log_width)
        optimizer.apply([gradient], [log_width])

    for _ in range(100):
        step()
    return math.exp(log_width.numpy())


# %% learned-widths
for start in [0.1, 1]:
    print(f"from {start}, without itself: {learn_width(x, y, start):.2f}")
unmasked_width = learn_width(x, y, 1, hide_itself=False)
print(f"from 1, itself among them: {unmasked_width:.2f}")


# %% four-scores
def dot(Q, K):
    return tf.matmul(Q, K, transpose_b=True)


def scaled_dot(Q, K):
    return tf.matmul(Q, K, transpose_b=True) / math.sqrt(K.shape[-1])


def bilinear(Q, K, W):
    return tf.matmul(Q @ W, K, transpose_b=True)


def additive(Q, K, W_q, W_k, w):
    # shape (batch, queries, keys, num_hiddens)
    every_pair = (Q @ W_q)[:, :, tf.newaxis] + (K @ W_k)[:, tf.newaxis]
    return tf.linalg.matvec(tf.tanh(every_pair), w)


# %% two-layers
Q = tf.random.normal((2, 3, 8))
K = tf.random.normal((2, 5, 8))
V = tf.random.normal((2, 5, 4))
scaled_layer = d2l.DotProductAttention(dropout=0)
additive_layer = d2l.AdditiveAttention(num_hiddens=16, dropout=0)
layer_outputs = [scaled_layer(Q, K, V), additive_layer(Q, K, V)]

W_q = additive_layer.W_q.kernel
W_k = additive_layer.W_k.kernel
w = additive_layer.w_v.kernel[:, 0]
manual_outputs = [
    tf.nn.softmax(scaled_dot(Q, K)) @ V,
    tf.nn.softmax(additive(Q, K, W_q, W_k, w)) @ V,
]

# %% two-layers-shown
for name, layer_output, output in zip(
    ["scaled dot", "additive"], layer_outputs, manual_outputs, strict=True
):
    largest = tf.reduce_max(abs(output))
    difference = tf.reduce_max(abs(layer_output - output))
    print(
        f"{name:>10}: largest answer {largest:.4f}, largest difference {difference:.4f}"
    )

# %% own-function
# Keras expects heads on the axis before the last; here there is one.
framework_output = keras.ops.dot_product_attention(
    Q[:, :, tf.newaxis], K[:, :, tf.newaxis], V[:, :, tf.newaxis]
)
difference = tf.reduce_max(abs(framework_output[:, :, 0] - manual_outputs[0]))
print(f"Keras' own: largest difference {difference:.4f}")


# %% gaussian-or-dot
def gaussian(Q, K):
    return -tf.reduce_sum((Q[:, :, tf.newaxis] - K[:, tf.newaxis]) ** 2, axis=-1) / 2


def weight_difference(Q, K):
    distance_weights = tf.nn.softmax(gaussian(Q, K))
    product_weights = tf.nn.softmax(dot(Q, K))
    return tf.reduce_max(abs(distance_weights - product_weights))


unit_keys = tf.math.l2_normalize(K, axis=-1)

# %% gaussian-or-dot-shown
print(f"keys of any length:    weights differ by up to {weight_difference(Q, K):.4f}")
difference = weight_difference(Q, unit_keys)
print(f"keys of equal length:  weights differ by up to {difference:.4f}")

# %% saturation
keras.utils.set_random_seed(0)
widths = [2**power for power in range(2, 11)]
largest_weights = {"unscaled": [], "scaled": []}
slopes = {"unscaled": [], "scaled": []}
for width in widths:
    query = tf.random.normal((1000, 1, width))
    ten_keys = tf.random.normal((1000, 10, width))
    for name, score in [("unscaled", dot), ("scaled", scaled_dot)]:
        weights = tf.nn.softmax(score(query, ten_keys))[:, 0]
        largest_weights[name].append(tf.reduce_mean(tf.reduce_max(weights, axis=1)))
        outer = weights[:, :, tf.newaxis] * weights[:, tf.newaxis]
        derivative = tf.linalg.diag(weights) - outer
        slopes[name].append(np.median(tf.norm(derivative, axis=(1, 2))))

# %% largest-weight
powers = [math.log2(width) for width in widths]
d2l.plot(
    powers,
    list(largest_weights.values()),
    xlabel="log2(d)",
    ylabel="Largest weight",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)

# %% slope
d2l.plot(
    powers,
    list(slopes.values()),
    xlabel="log2(d)",
    ylabel="Norm of the derivative",
    ylim=(0, 0.4),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)


# %% masked
def masked_weights(scores, is_visible):
    """Take the softmax over the visible keys; the others get a weight of zero."""
    return tf.nn.softmax(tf.where(is_visible, scores, -math.inf))


keras.utils.set_random_seed(0)
position = tf.range(5)
is_real = tf.broadcast_to(position < 3, (5, 5))  # three real keys, two of padding
causal_mask = position <= position[:, tf.newaxis]  # no later key
scores = tf.random.normal((5, 5))
masks = [is_real, causal_mask, is_real & causal_mask]
maps = [masked_weights(scores, mask) for mask in masks]
d2l.show_heatmaps(
    tf.stack(maps)[tf.newaxis],
    xlabel="Keys",
    ylabel="Queries",
    titles=["Padding", "Causal", "Both"],
    figsize=(8, 3),
    cmap="Blues",
)

# %% last-queries
keras.utils.set_random_seed(0)
layer = d2l.DotProductAttention(dropout=0)
X = tf.random.normal((1, 5, 8))
output_all = layer(X, X, X, causal=True)
output_last_two = layer(X[:, -2:], X, X, causal=True)
keys_seen = tf.math.count_nonzero(layer.attention_weights[0], axis=-1)
print("two queries: keys seen", keys_seen.numpy().tolist())
difference = tf.reduce_max(abs(output_last_two - output_all[:, -2:]))
print(f"from the last two of five: largest difference {difference:.4f}")


# %% empty-row
def print_row(name, weights):
    print(name, *[f"{weight:5.2f}" for weight in weights])


is_real = tf.broadcast_to(position >= 2, (5, 5))  # here the padding comes first
weights = masked_weights(scores, is_real & causal_mask)
print_row("by hand:   ", weights[0])
bias = tf.where(is_real, 0.0, -math.inf)
layer(X, X, X, causal=True, score_bias=bias)
print_row("the layer: ", layer.attention_weights[0, 0])

# %% own-empty-row
identity = tf.eye(5)[tf.newaxis]  # with these values, the answers are the weights
own_weights = keras.ops.dot_product_attention(
    X[:, :, tf.newaxis],
    X[:, :, tf.newaxis],
    identity[:, :, tf.newaxis],
    mask=is_real & causal_mask,
)
print_row("Keras':    ", own_weights[0, 0, 0])

# %% dictionaries
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_dictionaries(count, size=6):
    """Draw entries (a letter and a digit each), letters to ask for, and the answers.

    Return four arrays of whole numbers, each of shape (count, size).
    """
    # Drawn with NumPy, which set_random_seed seeds as well.
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]  # no letter twice
    digits = np.random.randint(10, size=(count, size))
    order = np.random.rand(count, size).argsort(axis=1)
    questions = np.take_along_axis(letters, order, axis=1)
    answers = np.take_along_axis(digits, order, axis=1)
    return letters, digits, questions, answers


def name_pairs(letters, digits):
    """Return names such as p2, for one dictionary's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


for letters, digits, questions, answers in zip(*draw_dictionaries(3), strict=True):
    print(*name_pairs(letters, digits), " -> ", *name_pairs(questions, answers))


# %% look-up
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


def make_projection(width):
    """Make a linear map without bias; Keras itself draws larger numbers."""
    uniform = keras.initializers.VarianceScaling(scale=1 / 3, distribution="uniform")
    return keras.layers.Dense(width, use_bias=False, kernel_initializer=uniform)


class LookUp(keras.Model):
    """A dictionary with learned queries, keys and values, which scores each digit."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter = make_table(26, num_hiddens)
        self.digit = make_table(10, num_hiddens)
        self.W_q = make_projection(num_hiddens)
        self.W_k = make_projection(num_hiddens)
        self.W_v = make_projection(num_hiddens)
        # Keras reserves the name `output`.
        self.logits = keras.layers.Dense(10)

    def call(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        scores = scaled_dot(self.W_q(queries), self.W_k(keys))
        self.attention_weights = tf.nn.softmax(scores)
        return self.logits(self.attention_weights @ self.W_v(values))


# %% train
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit(model, draw):
    """Train a model on new examples in each step, 64 at a time."""
    *inputs, _ = draw(1)
    model(*inputs)  # creates the weights
    optimizer = keras.optimizers.Adam(0.015)
    optimizer.build(model.trainable_weights)

    @tf.function
    def step(answers, *inputs):
        with tf.GradientTape() as tape:
            loss = cross_entropy(answers, model(*inputs))
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)

    for _ in range(150):
        *inputs, answers = draw(64)
        step(answers, *inputs)
    return model


def train(seed, model_class=LookUp):
    keras.utils.set_random_seed(seed)
    return fit(model_class(), draw_dictionaries)


# %% accuracies
# The same questions for every model.
sizes = [6, 12, 26]
tests = {size: draw_dictionaries(500, size) for size in sizes}


def accuracies(models):
    """Return the share of right answers, (models, sizes)."""
    shares = []
    for model in models:
        row = []
        for letters, digits, questions, answers in tests.values():
            predictions = np.argmax(model(letters, digits, questions), axis=-1)
            row.append(np.mean(predictions == answers))
        shares.append(row)
    return shares


models = [train(seed) for seed in range(5)]
look_up_accuracies = accuracies(models)

# %% shares tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": look_up_accuracies}, sizes, "entries", digits=3)

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
keras.utils.set_random_seed(0)
letters, digits, questions, answers = draw_dictionaries(1)
models[0](letters, digits, questions)
d2l.show_heatmaps(
    models[0].attention_weights[tf.newaxis],
    xlabel="Entries",
    ylabel="Letters asked for",
    figsize=(3.5, 3),
    cmap="Blues",
    xticklabels=name_pairs(letters[0], digits[0]),
    yticklabels=[LETTERS[letter] for letter in questions[0]],
    marks=questions[0][:, np.newaxis] == letters[0],
)

# %% letters-in-keys
letters, digits, questions, answers = tests[6]
model = models[0]
queries = model.letter(questions)
letter_vectors = model.letter(letters)
digit_vectors = model.digit(digits)
entries = letter_vectors + digit_vectors
keys_and_values = [
    (entries, entries),
    (letter_vectors, digit_vectors),
    (digit_vectors, entries),
    (entries, letter_vectors),
]
part_accuracies = [
    np.mean(np.argmax(model.answer(queries, K, V), axis=-1) == answers)
    for K, V in keys_and_values
]

# %% letters-in-keys-shown tags=["tolerance:absolute=0.03"]
names = [
    "as trained",
    "letters alone in the keys, digits alone in the values",
    "digits alone in the keys",
    "letters alone in the values",
]
for share, name in zip(part_accuracies, names, strict=True):
    print(f"{share:.3f}  {name}")

# %% removed
model(letters, digits, questions)
heaviest = tf.argmax(model.attention_weights, axis=-1)  # what each question looks at
is_heaviest = tf.one_hot(heaviest, 6) > 0
scores = scaled_dot(model.W_q(queries), model.W_k(entries))
others_only = masked_weights(scores, ~is_heaviest) @ model.W_v(entries)
heaviest_only = masked_weights(scores, is_heaviest) @ model.W_v(entries)
masked_accuracies = [
    np.mean(np.argmax(model.logits(Y), axis=-1) == answers)
    for Y in [others_only, heaviest_only]
]

# %% removed-shown tags=["tolerance:absolute=0.03"]
names = ["that entry hidden", "that entry alone"]
for share, name in zip(masked_accuracies, names, strict=True):
    print(f"{share:.3f}  right with {name}")

# %% same-answer
values = tf.constant([[0.0, 0], [1, 0], [0, 1], [1, 1]])
for weights in [[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]]:
    average = tf.linalg.matvec(values, weights, transpose_a=True)
    print(weights, "->", average.numpy().tolist())

# %% solution-box
is_near = abs(grid[:, tf.newaxis] - x) < 0.3
box = tf.linalg.matvec(masked_weights(tf.zeros((101, 40)), is_near), y)
means = tf.stack([tf.reduce_mean(y[nearby]) for nearby in is_near])
has_point = tf.reduce_any(is_near, axis=1)
difference = tf.reduce_max(abs(box - means)[has_point])
print(
    f"largest difference: {difference:.4f}; places without a point nearby: "
    f"{tf.math.count_nonzero(~has_point)}"
)

# %% solution-width
counts = [20, 80, 320]
learned_widths = []
for seed in range(5):
    row = []
    for count in counts:
        x_few, y_few = draw_points(count, seed)
        row.append(learn_width(x_few, y_few, start=1))
    learned_widths.append(row)

# %% solution-width-shown
d2l.print_ranges({"width": learned_widths}, counts, "points")


# %% solution-additive
class AdditiveLookUp(LookUp):
    def __init__(self, num_hiddens=32):
        super().__init__(num_hiddens)
        self.w = make_projection(1)

    def answer(self, queries, keys, values):
        every_pair = self.W_q(queries)[:, :, tf.newaxis] + self.W_k(keys)[:, tf.newaxis]
        scores = tf.squeeze(self.w(tf.tanh(every_pair)), axis=-1)
        self.attention_weights = tf.nn.softmax(scores)
        return self.logits(self.attention_weights @ self.W_v(values))


additive_models = [train(seed, AdditiveLookUp) for seed in range(5)]
additive_accuracies = accuracies(additive_models)

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": additive_accuracies}, sizes, "entries", digits=3)


# %% solution-reversal
class Reverser(keras.Model):
    """A model that writes digits backwards; a key is the sum of place and digit."""

    def __init__(self, num_hiddens=32, length=8):
        super().__init__()
        self.digit = make_table(10, num_hiddens)
        self.query = make_table(length, num_hiddens)
        self.place = make_table(length, num_hiddens)
        self.logits = keras.layers.Dense(10)

    def call(self, digits):
        position = tf.range(digits.shape[1])
        keys = self.place(position) + self.digit(digits)
        self.attention_weights = tf.nn.softmax(scaled_dot(self.query(position), keys))
        return self.logits(self.attention_weights @ self.digit(digits))


# %% solution-reversers
def draw_reversals(count):
    digits = np.random.randint(10, size=(count, 8))
    return digits, np.flip(digits, axis=1)


def train_reverser(seed):
    keras.utils.set_random_seed(seed)
    return fit(Reverser(), draw_reversals)


reversers = [train_reverser(seed) for seed in range(5)]
digits, answers = draw_reversals(500)
reverser_accuracies = [
    np.mean(np.argmax(reverser(digits), axis=-1) == answers) for reverser in reversers
]

# %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
print("right:", *(f"{share:.3f}" for share in reverser_accuracies))
d2l.show_heatmaps(
    reversers[0].attention_weights[:1, tf.newaxis],
    xlabel="Digits read",
    ylabel="Digits written",
    figsize=(3.5, 3),
    cmap="Blues",
)

# %% solution-twice
letters = np.array([[0, 1, 0, 2], [0, 1, 0, 2]])
digits = np.array([[3, 5, 7, 9], [7, 5, 3, 9]])  # a3 b5 a7 c9; a7 b5 a3 c9
questions = np.array([[0], [0]])
predictions = []
attention_maps = []
for model in models:
    logits = model(letters, digits, questions)
    predictions.append(np.argmax(logits, axis=-1)[:, 0])
    attention_maps.append(model.attention_weights[:, 0])

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    pairs = " ".join(name_pairs(letters[i], digits[i]))
    print(f"weights of {pairs}, and the answer to a:")
    for weights, prediction in zip(attention_maps, predictions, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(prediction[i]))
