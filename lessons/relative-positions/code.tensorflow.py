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


# %% turn
def turn(vector, position):
    """Turn a vector of two numbers by 30 degrees for each position."""
    angle = math.radians(30 * position)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = vector
    return tf.stack([x * cos - y * sin, x * sin + y * cos])


def format_vector(vector):
    x, y = vector
    return f"({x:5.2f}, {y:5.2f})"


# %% turned-by-hand
query = tf.constant([1.0, 2])
key = tf.constant([2.0, 2])
positions_of_both = [(2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)]

print("positions  turned query     turned key      score")
for i, j in positions_of_both:
    q = turn(query, i)
    k = turn(key, j)
    score = tf.tensordot(q, k, 1)
    print(f"{i:>4}{j:>4}   {format_vector(q)}  {format_vector(k)}  {score:5.2f}")

# %% four-terms
hand = tf.constant([1.0, 0])  # rotated to a vector's position, then added to it

print("positions    q.k    q.p    p.k    p.p    sum")
for i, j in positions_of_both:
    p_i = turn(hand, i)
    p_j = turn(hand, j)
    terms = [
        tf.tensordot(query, key, 1),
        tf.tensordot(query, p_j, 1),
        tf.tensordot(p_i, key, 1),
        tf.tensordot(p_i, p_j, 1),
    ]
    score = tf.tensordot(query + p_i, key + p_j, 1)
    print(f"{i:>4}{j:>4} " + "".join(f"{x:7.2f}" for x in [*terms, score]))


# %% rotate
def rope_frequencies(d, base=10000):
    """Return how far each pair turns from one position to the next, in radians."""
    return base ** (-tf.range(0, d, 2, dtype=tf.float32) / d)


def rotate(X, positions, omega):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * omega
    cos, sin = tf.cos(angles), tf.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    turned = tf.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return tf.reshape(turned, tf.shape(X))


# %% spread
def spread(scores):
    """Return the largest difference between two scores at one distance."""
    n = len(scores)
    differences = []
    for offset in range(1 - n, n):
        diagonal = tf.linalg.diag_part(scores, k=offset)
        differences.append(tf.reduce_max(diagonal) - tf.reduce_min(diagonal))
    return max(differences)


# %% rotary-check
keras.utils.set_random_seed(0)
d = 8
n = 40
query, key = tf.random.normal((2, d))
positions = tf.range(n)
omega = rope_frequencies(d)
q = rotate(tf.broadcast_to(query, (n, d)), positions, omega)
k = rotate(tf.broadcast_to(key, (n, d)), positions, omega)
scores = q @ tf.transpose(k)
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
    return tf.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
keras.utils.set_random_seed(0)
X = tf.random.normal((n, d))
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
print(f"{spread(q @ tf.transpose(k)):.4f}  with neighbours for both")
print(f"{spread(q_halves @ tf.transpose(k_halves)):.4f}  with halves for both")
print(f"{spread(q @ tf.transpose(k_halves)):.4f}  with one of each")

# %% slopes
slopes = d2l.alibi_slopes(8)
expected = tf.constant([2.0 ** -(head + 1) for head in range(8)])

fractions = " ".join(f"1/{1 / slope:.0f}" for slope in slopes)
print("slopes:", fractions)
print(f"largest difference: {tf.reduce_max(abs(slopes - expected)):.4f}")

# %% alibi-map
n = 12
positions = tf.range(n, dtype=tf.float32)
distances = positions[:, tf.newaxis] - positions
bias = -slopes[:, tf.newaxis, tf.newaxis] * distances  # (heads, queries, keys)
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
zeros = tf.zeros((1, n, 8))  # no content: all scores are zero
attention(zeros, zeros, zeros, causal=True, score_bias=bias)
weights = attention.attention_weights

row = " ".join(f"{weight:.3f}" for weight in weights[0, 0, -1, -4:])
print("last row, first head:", row)
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
    clipped = [min(max(i - j, -3), 3) for j in range(6)]
    print("".join(f"{distance:4}" for distance in clipped))


# %% bucket
def bucket(distance, count=8, far=16):
    """Return a distance's bucket: its own if near, a shared and wider one if far."""
    near = count // 2
    if distance < near:
        return distance
    wider = (count - near) * math.log(distance / near) / math.log(far / near)
    return min(near + int(wider), count - 1)


def print_row(name, numbers):
    print(name, " ".join(f"{number:>2}" for number in numbers))


print_row("distance:", range(1, 21))
print_row("bucket:  ", [bucket(distance) for distance in range(1, 21)])

# %% mask-alone
is_first = tf.one_hot([[0]], 8, axis=1)  # one number per token: is it the first?
zeros = tf.zeros((1, 8, 2))  # all scores are zero
attention = d2l.DotProductAttention(dropout=0)
for name, causal in [("without a mask", False), ("causal mask", True)]:
    averages = attention(zeros, zeros, is_first, causal=causal)[0, :, 0]
    row = " ".join(f"{x:.3f}" for x in averages)
    print(f"{row}  {name}")

# %% entries
LETTERS = "abcdef"


def draw_entries(count, num_entries=16, nearest=1, farthest=16):
    """Draw texts, and a letter to ask for; it stood last `nearest` to `farthest` back.

    Return letters and digits (count, num_entries), the letters asked for and the
    answers (count, 1).
    """
    # Drawn with NumPy, which set_random_seed seeds as well.
    letters = np.random.randint(6, size=(count, num_entries))
    digits = np.random.randint(10, size=(count, num_entries))
    asked = np.random.randint(6, size=(count, 1))
    last = num_entries - np.random.randint(nearest, farthest + 1, size=(count, 1))
    others = (asked + np.random.randint(1, 6, size=(count, num_entries))) % 6
    positions = np.arange(num_entries)
    letters = np.where(positions == last, asked, letters)
    letters = np.where(positions > last, others, letters)
    return letters, digits, asked, np.take_along_axis(digits, last, axis=1)


def name_entries(letters, digits):
    """Return names such as b2, for one text's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


# %% entries-shown
keras.utils.set_random_seed(1)
for letters, digits, asked, answer in zip(*draw_entries(3), strict=True):
    print(*name_entries(letters, digits), f" {LETTERS[asked.item()]}?", answer.item())


# %% no-positions
class PositionScheme(keras.layers.Layer):
    """The three places where a scheme can use positions; by default, it uses none."""

    def __init__(self):
        super().__init__()
        self.built = True  # for Keras, since this layer itself is never called

    def add(self, X, positions):
        """Return vectors (batch, n, d), at n positions, as they enter projections."""
        return X

    def turn(self, X, positions):
        """Return queries or keys (batch, n, d) as they enter the scores."""
        return X

    def bias(self, q, distances):
        """Return what is added to scores of queries (batch, 1, d) with n keys."""
        return 0


class NoPositions(PositionScheme):
    pass


# %% finder
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


def make_projection(width):
    """Make a linear map without bias; Keras itself draws larger numbers."""
    uniform = keras.initializers.VarianceScaling(scale=1 / 3, distribution="uniform")
    return keras.layers.Dense(width, use_bias=False, kernel_initializer=uniform)


class Finder(keras.Model):
    """A model that finds a letter's last digit; the question follows the text."""

    def __init__(self, scheme, num_hiddens=32):
        super().__init__()
        self.scheme = scheme
        self.letter = make_table(6, num_hiddens)
        self.digit = make_table(10, num_hiddens)
        self.W_q = make_projection(num_hiddens)
        self.W_k = make_projection(num_hiddens)
        self.W_v = make_projection(num_hiddens)
        # Keras reserves the name `output`.
        self.logits = keras.layers.Dense(10)

    def call(self, inputs):
        letters, digits, asked = inputs
        n = letters.shape[1]
        # In NumPy, since a scheme may need these values while Keras traces the model.
        i = np.array([n])  # the question's position
        j = np.arange(n)  # the entries'
        question = self.scheme.add(self.letter(asked), i)
        X = self.scheme.add(self.letter(letters) + self.digit(digits), j)
        q = self.scheme.turn(self.W_q(question), i)
        k = self.scheme.turn(self.W_k(X), j)
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(k.shape[-1])
        scores += self.scheme.bias(q, i - j)
        self.attention_weights = tf.nn.softmax(scores)
        return self.logits(self.attention_weights @ self.W_v(X))


# %% schemes
class Sinusoids(PositionScheme):
    def add(self, X, positions):
        d = X.shape[-1]
        angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * rope_frequencies(d)
        P = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
        return X + tf.reshape(P, (-1, d))


class Rotary(PositionScheme):
    def __init__(self):
        super().__init__()
        self.omega = rope_frequencies(32)

    def turn(self, X, positions):
        return rotate(X, positions, self.omega)


class ALiBi(PositionScheme):
    def __init__(self, slope=1 / 2):
        super().__init__()
        self.slope = slope

    def bias(self, q, distances):
        return -self.slope * tf.cast(distances, tf.float32)


# %% learned-schemes
class Table(PositionScheme):
    def __init__(self, reach=16):
        super().__init__()
        self.vectors = self.add_weight(  # of distances from 1 on
            shape=(reach, 32), initializer="zeros", name="vectors"
        )

    def bias(self, q, distances):
        rows = np.minimum(distances, self.vectors.shape[0]) - 1
        vectors = tf.gather(self.vectors, rows)
        return tf.matmul(q, vectors, transpose_b=True) / math.sqrt(q.shape[-1])


class Buckets(PositionScheme):
    def __init__(self):
        super().__init__()
        self.numbers = self.add_weight(shape=(8,), initializer="zeros", name="numbers")

    def bias(self, q, distances):
        rows = [bucket(int(distance)) for distance in distances]
        # Adam moves a number by about 0.015 per step; a score has to move by several
        # units.
        return 10 * tf.gather(self.numbers, rows)


# %% train
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit(model):
    """Train a model; return it."""
    model(draw_entries(1)[:3])  # creates the weights
    optimizer = keras.optimizers.Adam(0.015)
    optimizer.build(model.trainable_weights)

    @tf.function
    def step(letters, digits, asked, answers):
        with tf.GradientTape() as tape:
            loss = cross_entropy(answers, model((letters, digits, asked)))
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)

    for _ in range(120):
        step(*draw_entries(64))
    return model


# %% tests
lengths = [16, 32, 64, 128]
# The same texts for every model.
keras.utils.set_random_seed(100)
near_tests = {n: draw_entries(500, n) for n in lengths}
far_tests = {n: draw_entries(500, n, 17, n) for n in lengths[1:]}


def accuracies(models, tests):
    """Return the share of right answers, (models, tests)."""
    shares = []
    for model in models:
        row = []
        for letters, digits, asked, answers in tests:
            predictions = np.argmax(model((letters, digits, asked)), axis=-1)
            row.append(np.mean(predictions == answers))
        shares.append(row)
    return shares


# %% train-all
def train_finders(scheme_class, *args):
    """Train a model with this scheme from each of five seeds."""
    models = []
    for seed in range(5):
        keras.utils.set_random_seed(seed)
        models.append(fit(Finder(scheme_class(*args))))
    return models


schemes = [NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets]
models = {scheme: train_finders(scheme) for scheme in schemes}
near = [accuracies(runs, near_tests.values()) for runs in models.values()]
far = [accuracies(runs, far_tests.values()) for runs in models.values()]

# %% near-shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
results = dict(zip(names, near, strict=True))
d2l.print_ranges(results, lengths, "entries")
d2l.plot_ranges(
    lengths,
    results,
    xlabel="Entries (trained on 16)",
    ylabel="Share right, answer near",
    ylim=(0, 1.05),
)

# %% far-shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
results = dict(zip(names, far, strict=True))
d2l.print_ranges(results, lengths[1:], "entries")
d2l.plot_ranges(
    lengths[1:],
    results,
    xlabel="Entries (trained on 16)",
    ylabel="Share right, answer far",
    ylim=(0, 1.05),
)

# %% slopes-trained
alibi_models = {
    "1/2": models[ALiBi],
    "1/8": train_finders(ALiBi, 1 / 8),
    "1/32": train_finders(ALiBi, 1 / 32),
}
tests = [near_tests[16], near_tests[64], far_tests[64]]
slope_shares = {name: accuracies(runs, tests) for name, runs in alibi_models.items()}

# %% slopes-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges(slope_shares, ["16", "64, near", "64, far"], "slope")


# %% find-last
def find_last(letters, asked):
    """Mark, for each letter asked for, the last entry with it."""
    is_match = letters == asked
    positions = np.arange(letters.shape[-1])
    last = np.where(is_match, positions, -1).max(axis=-1, keepdims=True)
    return positions == last


# %% ask-for-all
def show_weights(schemes, titles, n):
    """Ask for all letters of a new text; draw the weights, and frame the right ones."""
    keras.utils.set_random_seed(1)
    letters, digits, _, _ = draw_entries(1, n)
    asked = np.arange(6)[np.newaxis]
    weights = []
    for scheme in schemes:
        model = models[scheme][0]
        model((letters, digits, asked))
        weights.append(model.attention_weights)
    entries = name_entries(letters[0], digits[0])
    d2l.show_heatmaps(
        tf.stack(weights, axis=1),
        xlabel="Entries",
        ylabel="Asked for",
        titles=titles,
        figsize=(8, 2.4),
        cmap="Blues",
        xticklabels=[f"{letter}\n{digit}" for letter, digit in entries],
        yticklabels=LETTERS,
        marks=find_last(letters, asked.T),
    )


# %% maps tags=["nbval-ignore-output"]
show_weights([Sinusoids, Rotary, ALiBi], ["Sinusoids", "Rotary", "ALiBi"], 16)

# %% sinusoids-past-the-end tags=["nbval-ignore-output"]
show_weights([Sinusoids], ["Sinusoids, 32 entries"], 32)

# %% alibi-past-the-end tags=["nbval-ignore-output"]
show_weights([ALiBi], ["ALiBi, 32 entries"], 32)


# %% weight-found
def measure_weights(models, test):
    """Return the mean weight on the letter and on its last entry, (models, 2)."""
    letters, digits, asked, _ = test
    is_match = letters == asked
    is_last = find_last(letters, asked)
    shares = []
    for model in models:
        model((letters, digits, asked))
        weights = model.attention_weights.numpy()[:, 0]
        on_letter = (weights * is_match).sum(axis=1).mean()
        on_last = (weights * is_last).sum(axis=1).mean()
        shares.append([on_letter, on_last])
    return shares


near_weights = [measure_weights(runs, near_tests[32]) for runs in models.values()]
far_weights = [measure_weights(runs, far_tests[32]) for runs in models.values()]

# %% weight-shown tags=["tolerance:absolute=0.2"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
columns = ["on the letter", "on its last entry"]
d2l.print_ranges(dict(zip(names, near_weights, strict=True)), columns, "near")
d2l.print_ranges(dict(zip(names, far_weights, strict=True)), columns, "far")


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


ways = [unchanged, linear, larger_base, by_parts]

# %% wavelengths
omega = rope_frequencies(32)
wavelengths = [2 * math.pi / way(omega, 4) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in [0, 1, 2, 3, 4, 6, 9, 12, 15]:
    columns = "".join(f"{row[pair]:12.1f}" for row in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def stretched_accuracies(way, tests):
    """Return the rotary models' shares of right answers, (models, tests)."""
    columns = []
    for n, test in tests.items():
        for model in models[Rotary]:
            model.scheme.omega = way(rope_frequencies(32), n / 16)
        columns.append(accuracies(models[Rotary], [test]))
    for model in models[Rotary]:
        model.scheme.omega = rope_frequencies(32)
    return np.array(columns)[:, :, 0].T


long_tests = {n: near_tests[n] for n in lengths[1:]}
stretched_near = [stretched_accuracies(way, long_tests) for way in ways]
stretched_far = [stretched_accuracies(way, far_tests) for way in ways]

# %% stretched-shares tags=["tolerance:absolute=0.15"]
names = ["unchanged", "linear", "larger base", "by parts"]
d2l.print_ranges(dict(zip(names, stretched_near, strict=True)), lengths[1:], "near")
d2l.print_ranges(dict(zip(names, stretched_far, strict=True)), lengths[1:], "far")

# %% solution-values
keras.utils.set_random_seed(0)
X = tf.random.normal((6, 8))
omega = rope_frequencies(8)


def shifted_output(shift, turn_values=False, turn_back=False):
    """Attend among six tokens that are shifted by this many positions."""
    positions = tf.range(6) + shift
    rotated = rotate(X, positions, omega)
    values = rotated if turn_values else X
    scores = rotated @ tf.transpose(rotated) / math.sqrt(8)
    Y = tf.nn.softmax(scores) @ values
    return rotate(Y, -positions, omega) if turn_back else Y


def change(turn_values=False, turn_back=False):
    start = shifted_output(0, turn_values, turn_back)
    shifted = shifted_output(5, turn_values, turn_back)
    return tf.reduce_max(abs(shifted - start))


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
    converted(near_tests[16][:3])  # creates the weights
    converted.set_weights(model.get_weights())
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    if reorder:
        converted.W_q.kernel.assign(tf.gather(model.W_q.kernel, order, axis=1))
        converted.W_k.kernel.assign(tf.gather(model.W_k.kernel, order, axis=1))
    return converted


# %% solution-layouts-compared
as_trained = models[Rotary]
in_halves = [convert_to_halves(model, reorder=False) for model in as_trained]
in_halves_reordered = [convert_to_halves(model, reorder=True) for model in as_trained]
layout_accuracies = [
    accuracies(runs, [near_tests[16]])
    for runs in [as_trained, in_halves, in_halves_reordered]
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
names = ["as trained", "in halves", "in halves, reordered"]
d2l.print_ranges(dict(zip(names, layout_accuracies, strict=True)))

# %% solution-untouched
keras.utils.set_random_seed(0)
model = Finder(Table(reach=32))
letters, digits, asked, answers = draw_entries(64)
with tf.GradientTape() as tape:
    loss = cross_entropy(answers, model((letters, digits, asked)))
# The gradient holds only the rows that were looked up, until it is made a tensor.
gradient = tf.convert_to_tensor(tape.gradient(loss, model.scheme.vectors))
has_gradient = tf.reduce_sum(abs(gradient), axis=1) > 0
distances = np.flatnonzero(has_gradient) + 1
print("distances with a gradient:")
print(*distances.tolist())


# %% solution-two-layers
class TwoLayers(keras.Model):
    """Two causal layers above each other, and no encoding at all."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter = make_table(6, num_hiddens)
        self.digit = make_table(10, num_hiddens)
        self.first = d2l.MultiHeadAttention(num_hiddens, num_heads=1, dropout=0)
        self.second = d2l.MultiHeadAttention(num_hiddens, num_heads=1, dropout=0)
        self.logits = keras.layers.Dense(10)

    def call(self, inputs):
        letters, digits, asked = inputs
        entries = self.letter(letters) + self.digit(digits)
        X = tf.concat([entries, self.letter(asked)], axis=1)
        X = X + self.first(X, X, X, causal=True)
        X = X + self.second(X, X, X, causal=True)
        return self.logits(X[:, -1:])


# %% solution-two-layers-trained
two_layers = []
for seed in range(5):
    keras.utils.set_random_seed(seed)
    two_layers.append(fit(TwoLayers()))
two_layer_accuracies = accuracies(two_layers, near_tests.values())

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges({"two layers": two_layer_accuracies}, lengths, "entries")
