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


# %% turn
def turn(vector, position):
    """Turn a vector of two numbers by 30 degrees for each position."""
    angle = math.radians(30 * position)
    (x, y), cos, sin = vector, math.cos(angle), math.sin(angle)
    return d2l.stack([x * cos - y * sin, x * sin + y * cos])


def format_vector(vector):
    return "(" + ", ".join(f"{x:5.2f}" for x in vector) + ")"


# %% turned-by-hand
query, key = d2l.tensor([1.0, 2]), d2l.tensor([2.0, 2])
pairs = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)  # the positions of query and key

print("positions  turned query     turned key      score")
for i, j in pairs:
    q, k = turn(query, i), turn(key, j)
    score = tf.tensordot(q, k, 1)
    print(f"{i:>4}{j:>4}   {format_vector(q)}  {format_vector(k)}  {score:5.2f}")

# %% four-terms
hand = d2l.tensor([1.0, 0])  # rotated to a vector's position, then added to it

print("positions    q.k    q.p    p.k    p.p    sum")
for i, j in pairs:
    p_i, p_j = turn(hand, i), turn(hand, j)
    terms = (query, key), (query, p_j), (p_i, key), (p_i, p_j)
    scores = [tf.tensordot(x, y, 1) for x, y in (*terms, (query + p_i, key + p_j))]
    print(f"{i:>4}{j:>4} ", *(f"{score:6.2f}" for score in scores))


# %% rotate
def rope_frequencies(d, base=10000):
    """Return how far each pair turns from one position to the next, in radians."""
    return base ** (-d2l.arange(0, d, 2, dtype=tf.float32) / d)


def rotate(X, positions, omega):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * omega
    cos, sin = tf.cos(angles), tf.sin(angles)
    x, y = tf.unstack(tf.reshape(X, (*X.shape[:-1], -1, 2)), axis=-1)
    turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return tf.reshape(turned, X.shape)


# %% spread
def spread(scores):
    """Return the largest difference between two scores at one distance."""
    n = len(scores)
    diagonals = (tf.linalg.diag_part(scores, k=offset) for offset in range(1 - n, n))
    return max(
        tf.reduce_max(diagonal) - tf.reduce_min(diagonal) for diagonal in diagonals
    )


# %% rotary-check
keras.utils.set_random_seed(0)
d, n = 8, 40
query, key = d2l.normal((2, d))
positions, omega = d2l.arange(n), rope_frequencies(d)
q = rotate(tf.broadcast_to(query, (n, d)), positions, omega)
k = rotate(tf.broadcast_to(key, (n, d)), positions, omega)
scores = q @ d2l.transpose(k)
layer_output = d2l.RotaryEncoding(d)(tf.broadcast_to(query, (1, n, d)))[0]
length_change = tf.norm(q, axis=-1) - tf.norm(query)

print(f"scores from {tf.reduce_min(scores):.2f} to {tf.reduce_max(scores):.2f}")
print(f"at one distance they differ by {spread(scores):.4f} at most")
print(f"lengths change by {tf.reduce_max(abs(length_change)):.4f} at most")
print(f"the layer: largest difference {tf.reduce_max(abs(layer_output - q)):.4f}")


# %% rotate-halves
def rotate_halves(X, positions, omega):
    """Turn the pairs in the same way, but pair number l with number l + d/2."""
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * omega
    cos, sin = tf.cos(angles), tf.sin(angles)
    x, y = tf.split(X, 2, axis=-1)
    return d2l.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
keras.utils.set_random_seed(0)
X = d2l.normal((n, d))
order = [0, 2, 4, 6, 1, 3, 5, 7]
reordered = tf.gather(X, order, axis=1)
neighbours = rotate(X, positions, omega)
halves = rotate_halves(reordered, positions, omega)
layer_output = d2l.RotaryEncoding(d, layout="halves")(reordered[tf.newaxis])[0]
difference = tf.gather(neighbours, order, axis=1) - halves
print(f"reordered: largest difference {tf.reduce_max(abs(difference)):.4f}")
print(f"the layer: largest difference {tf.reduce_max(abs(layer_output - halves)):.4f}")

# %% mixed
q_halves = rotate_halves(tf.broadcast_to(query, (n, d)), positions, omega)
k_halves = rotate_halves(tf.broadcast_to(key, (n, d)), positions, omega)
print("at one distance, scores differ by")
print(f"{spread(q @ d2l.transpose(k)):.4f}  with neighbours for both")
print(f"{spread(q_halves @ d2l.transpose(k_halves)):.4f}  with halves for both")
print(f"{spread(q @ d2l.transpose(k_halves)):.4f}  with one of each")

# %% slopes
slopes = d2l.alibi_slopes(8)
expected = [2.0 ** -(head + 1) for head in range(8)]
print("slopes:", *(f"1/{1 / slope:.0f}" for slope in slopes))
print(f"largest difference: {tf.reduce_max(abs(slopes - expected)):.4f}")

# %% alibi-map
n, positions = 12, d2l.arange(12)
distances = positions[:, tf.newaxis] - positions
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
zeros = d2l.zeros((1, n, 8))  # no content: all scores are zero
bias = -slopes[:, tf.newaxis, tf.newaxis] * tf.cast(distances, tf.float32)
attention(zeros, zeros, zeros, causal=True, score_bias=bias)
weights = attention.attention_weights
print("last row, first head:", *(f"{weight:.3f}" for weight in weights[0, 0, -1, -4:]))
d2l.show_heatmaps(
    tf.gather(weights, [0, 2, 6], axis=1),
    xlabel="Keys",
    ylabel="Queries",
    titles=["Slope 1/2", "Slope 1/8", "Slope 1/128"],
    figsize=(7, 2.7),
    cmap="Blues",
)

# %% clipped
for i in range(6):
    print(*(f"{min(max(i - j, -3), 3):3}" for j in range(6)))


# %% bucket
def bucket(distance, count=8, far=16):
    """Return a distance's bucket: its own if near, a shared and wider one if far."""
    near = count // 2
    if distance < near:
        return distance
    wider = (count - near) * math.log(distance / near) / math.log(far / near)
    return min(near + int(wider), count - 1)


print("distance:", *(f"{distance:>2}" for distance in range(1, 21)))
print("bucket:  ", *(f"{bucket(distance):>2}" for distance in range(1, 21)))

# %% mask-alone
is_first = tf.one_hot([[0]], 8, axis=1)  # one number per token: is it the first?
zeros = d2l.zeros((1, 8, 2))  # all scores are zero
attention = d2l.DotProductAttention(dropout=0)
for name, causal in ("without a mask", False), ("causal mask", True):
    averages = attention(zeros, zeros, is_first, causal=causal)[0, :, 0]
    print(*(f"{x:.3f}" for x in averages), f" {name}")


# %% entries
def draw_entries(count, n=16):
    """Draw letters and digits, one of these letters, and the digit it had last."""
    letters, digits = (np.random.randint(high, size=(count, n)) for high in (6, 10))
    asked = np.take_along_axis(letters, np.random.randint(n, size=(count, 1)), axis=1)
    places = (letters == asked) * np.arange(1, n + 1)
    last = places.argmax(axis=1, keepdims=True)
    return letters, digits, asked, np.take_along_axis(digits, last, axis=1)


keras.utils.set_random_seed(1)
for letters, digits, asked, answer in zip(*draw_entries(3), strict=True):
    line = (f"{chr(97 + x)}{y}" for x, y in zip(letters, digits, strict=True))
    print(*line, f" {chr(97 + asked.item())}?", answer.item())


# %% no-positions
class NoPositions(keras.layers.Layer):
    """The three places where a scheme can use positions; this one uses none."""

    def __init__(self):
        super().__init__()
        self.built = True  # for Keras, since this layer itself is never called

    def add(self, X, positions):
        """Return vectors at these positions as they enter the projections."""
        return X

    def turn(self, X, positions):
        """Return queries or keys as they enter the scores."""
        return X

    def bias(self, q, distances):
        """Return the bias of scores of queries with keys at these distances."""
        return 0


# %% finder
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class Finder(keras.Model):
    """A model that finds a letter's last digit; the question follows the text."""

    def __init__(self, scheme, num_hiddens=32):
        super().__init__()
        self.scheme = scheme
        self.letter, self.digit = (make_table(k, num_hiddens) for k in (6, 10))
        self.W_q, self.W_k, self.W_v = (
            keras.layers.Dense(num_hiddens, use_bias=False) for _ in range(3)
        )
        self.logits = keras.layers.Dense(10)

    def call(self, inputs):
        letters, digits, asked = inputs
        n = letters.shape[1]
        # In NumPy, since Keras needs these values while it traces.
        i, j = np.array([n]), np.arange(n)  # of the question, and of the entries
        X = self.scheme.add(self.letter(letters) + self.digit(digits), j)
        question = self.scheme.add(self.letter(asked), i)
        q = self.scheme.turn(self.W_q(question), i)
        k = self.scheme.turn(self.W_k(X), j)
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(k.shape[-1])
        scores += self.scheme.bias(q, i - j)
        self.attention_weights = tf.nn.softmax(scores)
        return self.logits(self.attention_weights @ self.W_v(X))


# %% schemes
class Sinusoids(NoPositions):
    def add(self, X, positions):
        d = X.shape[-1]
        angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * rope_frequencies(d)
        P = d2l.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
        return X + tf.reshape(P, (-1, d))


class Rotary(NoPositions):
    omega = rope_frequencies(32)

    def turn(self, X, positions):
        return rotate(X, positions, self.omega)


class ALiBi(NoPositions):
    def bias(self, q, distances):
        return -distances / 2


# %% learned-schemes
class Table(NoPositions):
    def __init__(self, reach=16):
        super().__init__()
        self.vectors = make_table(reach, 32)  # for the distances from 1 on

    def bias(self, q, distances):
        rows = np.minimum(distances, self.vectors.input_dim) - 1
        vectors = self.vectors(rows)
        return tf.matmul(q, vectors, transpose_b=True) / math.sqrt(q.shape[-1])


class Buckets(NoPositions):
    def __init__(self):
        super().__init__()
        self.numbers = self.add_weight(shape=(8,), initializer="zeros", name="numbers")

    def bias(self, q, distances):
        return tf.gather(
            self.numbers, [bucket(int(distance)) for distance in distances]
        )


# %% train
def narrow_weights(model):
    """Scale weights into -1/sqrt(d) to 1/sqrt(d): Keras draws from a wider range."""
    model(draw_entries(1)[:3])  # creates the weights
    for weight in model.weights:
        if weight.name == "kernel":
            weight.assign(weight / math.sqrt(3))
    return model


def fit(models, examples):
    """Train models of one kind side by side: stacked, their weights have one more axis."""
    model_weights = [model.get_weights() for model in models]
    stacked = [np.stack(arrays) for arrays in zip(*model_weights, strict=True)]
    weights = [tf.Variable(array) for array in stacked]
    adam = keras.optimizers.Adam(0.02)
    adam.build(weights)

    def model_loss(weights_and_batch):
        """Return the loss of one model, with its own weights and its own batch."""
        weights, *inputs, answers = weights_and_batch
        logits, _ = models[0].stateless_call(weights, [], inputs)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(answers, logits)

    @tf.function
    def step(*batch):
        with tf.GradientTape() as tape:
            losses = tf.vectorized_map(model_loss, (weights, *batch))
            total = tf.reduce_sum(tf.reduce_mean(losses, axis=(1, 2)))
        adam.apply(tape.gradient(total, weights), weights)

    for batch in zip(*examples, strict=True):
        step(*batch)
    for i, model in enumerate(models):
        model.set_weights([weight[i] for weight in weights])


def train(model_class, *part_classes, seeds=range(5)):
    """Train a model for each seed."""
    models, batches = [], []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        parts = [part_class() for part_class in part_classes]
        models.append(narrow_weights(model_class(*parts)))
        examples = draw_entries(100 * 256)
        batches.append([np.split(array, 100) for array in examples])
    # Letters, digits, ... have the shape (steps, models, batch, number in a text).
    fit(models, [np.stack(arrays, axis=1) for arrays in zip(*batches, strict=True)])
    return models


# The same texts for every model.
lengths = 16, 32, 64, 128
tests = {n: draw_entries(500, n) for n in lengths}


def accuracy(model, n):
    *inputs, answers = tests[n]
    return np.mean(np.argmax(model(inputs), axis=-1) == answers)


# %% train-all tags=["nbval-ignore-output"]
schemes = NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets
models = {scheme: train(Finder, scheme) for scheme in schemes}
accuracies = [
    [[accuracy(model, n) for n in lengths] for model in scheme_models]
    for scheme_models in models.values()
]


# %% in-rows
def print_rows(names, results):
    """Print each name's median over the seeds, and the range, at each length."""
    for name, runs in zip(names, results, strict=True):
        for values in zip(*runs, strict=True):
            low, median, high = min(values), statistics.median(values), max(values)
            summary = f"{median:.2f} ({low:.2f}-{high:.2f})"
            print(f"{summary:>18}", end="")
        print(f"  {name}")


# %% shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
print("".join(f"{n:>18}" for n in lengths), " entries")
print_rows(names, accuracies)
xs = [lengths] * 5
ys = []
for runs in accuracies[1:]:
    ys.append([statistics.median(values) for values in zip(*runs, strict=True)])
for i, n in enumerate(lengths):  # the ranges, as bars beside each other
    for j, runs in enumerate(accuracies[1:]):
        values = [run[i] for run in runs]
        xs.append([n + j] * 2)
        ys.append([min(values), max(values)])
d2l.plot(
    xs,
    ys,
    xlabel="Entries (trained on 16)",
    ylabel="Share right",
    ylim=(0, 1.05),
    figsize=(6, 4.5),
    legend=names[1:],
)
# The default location, "best", depends on the numbers.
d2l.plt.gca().get_legend().set_loc((0.5, 0.25))


# %% ask-for-all
def ask_all_letters(n):
    """Ask for every letter of a new text; return the text and the weights."""
    keras.utils.set_random_seed(1)
    letters, digits, _, _ = draw_entries(1, n)
    scheme_weights = []
    for scheme in Sinusoids, Rotary, ALiBi:
        model = models[scheme][0]
        model([letters, digits, np.arange(6)[np.newaxis]])
        scheme_weights.append(model.attention_weights)
    letter_row = "".join(chr(97 + x) for x in letters[0])
    digit_row = "".join(map(str, digits[0]))
    return f"{letter_row}\n{digit_row}", d2l.stack(scheme_weights)


# %% maps tags=["nbval-ignore-output"]
text, weights = ask_all_letters(16)
print(text)
d2l.show_heatmaps(
    tf.transpose(weights, (1, 0, 2, 3)),
    xlabel="Entries",
    ylabel="Letter asked for",
    titles=["Sinusoids", "Rotary", "ALiBi"],
    figsize=(8, 2.2),
    cmap="Blues",
)

# %% maps-past-the-end tags=["nbval-ignore-output"]
text, weights = ask_all_letters(32)
print(text)
d2l.show_heatmaps(
    weights[0][tf.newaxis],
    xlabel="Entries",
    ylabel="Letter",
    titles=["Sinusoids"],
    figsize=(7, 2),
    cmap="Blues",
)

# %% rotary-past-the-end tags=["nbval-ignore-output"]
d2l.show_heatmaps(
    weights[1][tf.newaxis],
    xlabel="Entries",
    ylabel="Letter",
    titles=["Rotary"],
    figsize=(7, 2),
    cmap="Blues",
)

# %% alibi-past-the-end tags=["nbval-ignore-output"]
d2l.show_heatmaps(
    weights[2][tf.newaxis],
    xlabel="Entries",
    ylabel="Letter",
    titles=["ALiBi"],
    figsize=(7, 2),
    cmap="Blues",
)


# %% weight-found
def measure_weight(model, n):
    """Return the weight on all entries with the letter, and on the last of them."""
    letters, digits, asked, _ = tests[n]
    model([letters, digits, asked])
    weights, is_match = d2l.numpy(model.attention_weights)[:, 0], letters == asked
    last = (is_match * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)
    last_weight = np.take_along_axis(weights, last, axis=1)
    return [(weights * is_match).sum() / 500, last_weight.mean()]


letter_weights = {}
for n in 16, 32:
    letter_weights[n] = [
        [measure_weight(model, n) for model in scheme_models]
        for scheme_models in models.values()
    ]

# %% weight-shown tags=["tolerance:absolute=0.2"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
for n, scheme_weights in letter_weights.items():
    print(f"{n} entries: weight on the letter, and on the last entry with it")
    print_rows(names, scheme_weights)


# %% stretch
def unchanged(omega, factor):
    return omega


def linear(omega, factor):
    """Position interpolation: slow all pairs down."""
    return omega / factor


def larger_base(omega, factor):
    """NTK-aware: slow the slowest pair as above, and keep the fastest."""
    d = 2 * len(omega)
    return rope_frequencies(d, base=10000 * factor ** (d / (d - 2)))


def by_parts(omega, factor, low=1 / 4, high=2):
    """YaRN: keep pairs that turned twice in training, slow those below a quarter."""
    turns = 16 * omega / (2 * math.pi)
    ramp = tf.clip_by_value((turns - low) / (high - low), 0, 1)
    return ramp * omega + (1 - ramp) * omega / factor


# %% wavelengths
omega, ways = rope_frequencies(32), (unchanged, linear, larger_base, by_parts)
wavelengths = [2 * math.pi / way(omega, 4) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in 0, 1, 2, 3, 4, 6, 9, 12, 15:
    columns = "".join(f"{row[pair]:12.1f}" for row in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def stretched_accuracy(model, n, way):
    model.scheme.omega = way(omega, n / 16)
    share = accuracy(model, n)
    model.scheme.omega = omega
    return share


stretched_accuracies = []
for way in ways:
    runs = [
        [stretched_accuracy(model, n, way) for n in lengths[1:]]
        for model in models[Rotary]
    ]
    stretched_accuracies.append(runs)

# %% stretched-shares tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths[1:]), " entries")
print_rows(["unchanged", "linear", "larger base", "by parts"], stretched_accuracies)

# %% solution-values
keras.utils.set_random_seed(0)
X, omega = d2l.normal((6, 8)), rope_frequencies(8)


def shifted_output(shift, turn_values=False, turn_back=False):
    """Attend among six tokens that are shifted by this many positions."""
    positions = d2l.arange(6) + shift
    q = k = rotate(X, positions, omega)
    v = rotate(X, positions, omega) if turn_values else X
    Y = tf.nn.softmax(q @ d2l.transpose(k) / math.sqrt(8)) @ v
    return rotate(Y, -positions, omega) if turn_back else Y


def change(**options):
    return tf.reduce_max(
        abs(shifted_output(5, **options) - shifted_output(0, **options))
    )


print("five positions on, outputs differ by")
print(f"{change():.4f}  with values as they are")
print(f"{change(turn_values=True):.4f}  with values turned")
print(f"{change(turn_values=True, turn_back=True):.4f}  with outputs turned back")


# %% solution-layouts
class RotaryHalves(Rotary):
    def turn(self, X, positions):
        return rotate_halves(X, positions, self.omega)


def convert_to_halves(model, reorder):
    """Return the model in the other layout, its queries and keys reordered or not."""
    converted = Finder(RotaryHalves())
    converted(draw_entries(1)[:3])  # creates the weights
    converted.set_weights(model.get_weights())
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    if reorder:
        for part in converted.W_q, converted.W_k:
            part.kernel.assign(tf.gather(part.kernel, order, axis=1))
    return converted


# %% solution-layouts-compared
layout_accuracies = [
    [[accuracy(model, 16)] for model in models[Rotary]],
    [[accuracy(convert_to_halves(model, False), 16)] for model in models[Rotary]],
    [[accuracy(convert_to_halves(model, True), 16)] for model in models[Rotary]],
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
print_rows(["as trained", "in halves", "in halves, reordered"], layout_accuracies)

# %% solution-untouched
keras.utils.set_random_seed(0)
model = Finder(Table(reach=32))
*inputs, answers = draw_entries(64)
entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
with tf.GradientTape() as tape:
    loss = entropy(answers, model(inputs))
gradient = tape.gradient(loss, model.scheme.vectors.embeddings)
has_gradient = tf.reduce_sum(abs(tf.convert_to_tensor(gradient)), axis=1) > 0
print("distances with a gradient:")
print(*(np.flatnonzero(has_gradient) + 1).tolist())


# %% solution-two-layers
class TwoLayers(keras.Model):
    """Two causal layers above each other, and no encoding at all."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter, self.digit = (make_table(k, num_hiddens) for k in (6, 10))
        self.attentions = [
            d2l.MultiHeadAttention(num_hiddens, 1, dropout=0) for _ in range(2)
        ]
        self.logits = keras.layers.Dense(10)

    def call(self, inputs):
        letters, digits, asked = inputs
        entries = self.letter(letters) + self.digit(digits)
        X = d2l.concat([entries, self.letter(asked)], axis=1)
        for layer in self.attentions:
            X = X + layer(X, X, X, causal=True)
        return self.logits(X[:, -1:])


# %% solution-two-layers-trained
two_layers = train(TwoLayers)
two_layer_accuracies = [[accuracy(model, n) for n in lengths] for model in two_layers]

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths), " entries")
print_rows(["two layers"], [two_layer_accuracies])
