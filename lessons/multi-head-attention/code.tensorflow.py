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

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = tf.eye(3)  # each fruit has its own number
values = tf.constant([50.0, 40, 70])  # the price, in cents
pear = tf.constant([0.0, 0, 6])
lemon = tf.constant([0.0, 6, 0])

for name, query in [("pear", pear), ("lemon", lemon), ("both", pear + lemon)]:
    weights = tf.nn.softmax(tf.linalg.matvec(keys, query))
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {tf.tensordot(weights, values, 1):.1f} cents")

# %% two-averages
first_head = tf.tensordot(tf.nn.softmax(tf.linalg.matvec(keys, pear)), values, 1)
second_head = tf.tensordot(tf.nn.softmax(tf.linalg.matvec(keys, lemon)), values, 1)
heads = tf.stack([first_head, second_head])
W_o = tf.constant([1.0, -1])  # the first minus the second
pear_minus_lemon = tf.tensordot(heads, W_o, 1)
lemon_minus_pear = tf.tensordot(heads[::-1], W_o, 1)
print(f"the two heads: {first_head:.1f} {second_head:.1f}")
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
def make_projection(width, use_bias=False):
    """Make a linear map; Keras itself draws larger numbers."""
    # With mode="fan_in", one of the models below would not learn its task.
    narrow = keras.initializers.VarianceScaling(
        scale=1 / 3, mode="fan_avg", distribution="uniform"
    )
    return keras.layers.Dense(width, use_bias=use_bias, kernel_initializer=narrow)


class MultiHeadAttention(keras.layers.Layer):
    """Attention with several heads: project, split, attend, merge, project."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = make_projection(num_hiddens)
        self.W_k = make_projection(num_hiddens)
        self.W_v = make_projection(num_hiddens)
        self.W_o = make_projection(num_hiddens)

    def call(self, queries, keys, values, causal=False):
        q = split(self.W_q(queries), self.num_heads)
        k = split(self.W_k(keys), self.num_heads)
        v = split(self.W_v(values), self.num_heads)
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
        if causal:  # the last query sees all keys, the one before it one fewer, ...
            num_queries, num_keys = scores.shape[-2:]
            is_visible = np.tri(
                num_queries, num_keys, num_keys - num_queries, dtype=bool
            )
            scores = tf.where(is_visible, scores, -math.inf)
        self.attention_weights = tf.nn.softmax(scores)
        return self.W_o(merge(self.attention_weights @ v))


# %% shapes
keras.utils.set_random_seed(0)
d = 8
num_heads = 2
X = tf.random.normal((1, 5, d))
layer = MultiHeadAttention(d, num_heads)
output = layer(X, X, X)
v = split(layer.W_v(X), num_heads)
attended = layer.attention_weights @ v
steps = {
    "X": X,
    "X W_v": layer.W_v(X),
    "split": v,
    "weights": layer.attention_weights,
    "attended": attended,
    "merged": merge(attended),
    "output": output,
}
for name, step in steps.items():
    print(f"{name:>8} {tuple(step.shape)}")

# %% head-by-head
W_q = tf.convert_to_tensor(layer.W_q.kernel)
W_k = tf.convert_to_tensor(layer.W_k.kernel)
W_v = tf.convert_to_tensor(layer.W_v.kernel)
W_o = tf.convert_to_tensor(layer.W_o.kernel)
width = d // num_heads
head_outputs = []
for head in range(num_heads):
    columns = slice(head * width, (head + 1) * width)
    q = X @ W_q[:, columns]
    k = X @ W_k[:, columns]
    v = X @ W_v[:, columns]
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(width)
    head_outputs.append(tf.nn.softmax(scores) @ v)
headwise_output = tf.concat(head_outputs, axis=-1) @ W_o

# %% the-layer
d2l_layer = d2l.MultiHeadAttention(d, d, d, d, num_heads, dropout=0)
d2l_layer.set_weights(layer.get_weights())
d2l_output = d2l_layer(X, X, X)
d2l_causal_output = d2l_layer(X[:, -2:], X, X, causal=True)
causal_output = layer(X[:, -2:], X, X, causal=True)  # the last two of five queries

# %% all-alike
print(f"largest output: {tf.reduce_max(abs(output)):.4f}")
difference = tf.reduce_max(abs(headwise_output - output))
print(f"head by head:         largest difference {difference:.4f}")
difference = tf.reduce_max(abs(d2l_output - output))
print(f"d2l's layer:          largest difference {difference:.4f}")
difference = tf.reduce_max(abs(d2l_causal_output - causal_output))
print(f"d2l's layer, causal:  largest difference {difference:.4f}")

# %% own-layer
framework_layer = keras.layers.MultiHeadAttention(num_heads, width, use_bias=False)
framework_layer.build(X.shape, X.shape)
# Its matrices also have an axis for the heads.
framework_layer.set_weights(
    [
        tf.reshape(W_q, (d, num_heads, width)),
        tf.reshape(W_k, (d, num_heads, width)),
        tf.reshape(W_v, (d, num_heads, width)),
        tf.reshape(W_o, (num_heads, width, d)),
    ]
)
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
    q = tf.random.normal((8, 1000, 64))  # 512 / 8 = 64
    k = tf.random.normal((8, 10, 64))
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(width)
    return tf.reduce_mean(tf.reduce_max(tf.nn.softmax(scores), axis=-1))


for name, width in [("the head's 64", 64), ("the model's 512", 512)]:
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = tf.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in [1, 2, 4, 8, 16]:
    layer = MultiHeadAttention(64, num_heads)
    layer(tokens, tokens, tokens)  # creates the weights
    attention_weights = layer.attention_weights
    products = d2l.multiply_adds(layer, tokens, tokens, tokens)
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{layer.count_params():>12,}{products:>15,}"
        f"{tf.size(attention_weights):>9,}"
    )


# %% questions
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_questions(count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers.

    An answer is the first letter's number plus `sign` times the second's. Letters,
    numbers and answers have shape (count, size), questions (count, size, 2).
    """
    # Drawn with NumPy, which set_random_seed seeds as well.
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]  # no letter twice
    numbers = np.random.randn(count, size).astype("float32")
    # Each question asks for two different entries.
    orders = np.random.rand(count, size, size).argsort(axis=2)
    indices = orders[:, :, :2]
    questions = np.take_along_axis(letters[:, np.newaxis], indices, axis=2)
    pair_numbers = np.take_along_axis(numbers[:, np.newaxis], indices, axis=2)
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


keras.utils.set_random_seed(2)
letters, numbers, questions, answers = draw_questions(1)
pairs = zip(letters[0], numbers[0], strict=True)
entries = [f"{LETTERS[letter]} {number:.1f}" for letter, number in pairs]
print("entries:", "  ".join(entries))
for i in range(3):
    first, second = questions[0, i]
    print(f"{LETTERS[first]} - {LETTERS[second]} = {answers[0, i]:.1f}")


# %% comparer
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class Comparer(keras.Model):
    """A model that compares the numbers of two letters."""

    def __init__(self, num_heads, num_hiddens=32):
        super().__init__()
        self.letter = make_table(26, num_hiddens)
        self.first = make_table(26, num_hiddens)
        self.second = make_table(26, num_hiddens)
        self.number = make_projection(num_hiddens)
        self.attention = MultiHeadAttention(num_hiddens, num_heads)
        # Keras reserves the name `output`.
        self.answer = make_projection(1, use_bias=True)

    def call(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., tf.newaxis])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        return self.answer(self.attention(queries, entries, entries))[..., 0]


# %% train
def fit(model, examples, loss, rate):
    """Train a model; return it."""
    optimizer = keras.optimizers.Adam(rate)
    optimizer.build(model.trainable_weights)

    @tf.function
    def step(answers, *inputs):
        with tf.GradientTape() as tape:
            mean_loss = loss(answers, model(*inputs))
        gradients = tape.gradient(mean_loss, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)

    batches = [np.split(array, 100) for array in examples]
    for *inputs, answers in zip(*batches, strict=True):
        step(answers, *inputs)
    return model


def train(num_heads, seed, sign=-1):
    keras.utils.set_random_seed(seed)
    model = Comparer(num_heads)
    letters, numbers, questions, _ = draw_questions(1)
    model(letters, numbers, questions)  # creates the weights
    examples = draw_questions(100 * 128, sign=sign)
    return fit(model, examples, keras.losses.MeanSquaredError(), 0.015)


# %% comparer-errors
# The same questions for every model.
differences = draw_questions(1000)


def error(model, examples=differences):
    """Return the mean squared error."""
    letters, numbers, questions, answers = examples
    return np.mean((model(letters, numbers, questions) - answers) ** 2)


models = {}
errors = {}
for num_heads in [1, 2, 4]:
    models[num_heads] = [train(num_heads, seed) for seed in range(5)]
    errors[num_heads] = [error(model) for model in models[num_heads]]

# %% errors tags=["tolerance:absolute=0.03"]
results = {str(num_heads): runs for num_heads, runs in errors.items()}
d2l.print_ranges(results, ["mean squared error"], "heads", digits=3)

# %% two-heads-map tags=["tolerance:levels=16"]
keras.utils.set_random_seed(4)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)


def name_questions(questions):
    return [f"{LETTERS[first]}-{LETTERS[second]}" for first, second in questions]


# Both letters of each question are framed.
is_asked = (letters[0] == questions[0][:, :, np.newaxis]).any(axis=1)
d2l.show_heatmaps(
    models[2][0].attention.attention_weights,
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2"],
    figsize=(6, 3),
    cmap="Blues",
    xticklabels=[LETTERS[letter] for letter in letters[0]],
    yticklabels=name_questions(questions[0]),
    marks=is_asked,
)


# %% without-a-head
def error_without(model, head):
    """Return the error after setting a head's rows of W_o to zero."""
    letters, numbers, questions, _ = differences
    changed = Comparer(model.attention.num_heads)
    changed(letters, numbers, questions)  # creates the weights
    changed.set_weights(model.get_weights())
    W_o = changed.attention.W_o.kernel
    width = W_o.shape[0] // changed.attention.num_heads
    new_rows = W_o.numpy()
    new_rows[head * width : (head + 1) * width] = 0
    W_o.assign(new_rows)
    return error(changed)


errors_without = {}
for num_heads in [2, 4]:
    errors_without[num_heads] = [
        [error_without(model, head) for head in range(num_heads)]
        for model in models[num_heads]
    ]

# %% without-a-head-shown tags=["tolerance:absolute=0.05"]
for num_heads, runs in errors_without.items():
    print(f"{num_heads} heads, without one of them:")
    for seed, head_errors in enumerate(runs):
        row = " ".join(f"{x:6.3f}" for x in head_errors)
        print(f"   seed {seed}: {row}")


# %% texts
def draw_texts(count, size=4):
    """Draw letters, each followed by its digit; then the same pairs, shuffled.

    Return tokens (count, 4 * size), and the digits to predict (count, size).
    """
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]
    digits = np.random.randint(10, size=(count, size))
    order = np.random.rand(count, size).argsort(axis=1)
    pairs = np.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    repeated = np.take_along_axis(pairs, order[..., np.newaxis], axis=1)
    tokens = np.concatenate([pairs, repeated], axis=1).reshape(count, 4 * size)
    return tokens, np.take_along_axis(digits, order, axis=1)


def name_tokens(tokens):
    return [(LETTERS + "0123456789")[token] for token in tokens]


for tokens in draw_texts(3)[0]:
    print(*name_tokens(tokens))


# %% reader
class Reader(keras.Model):
    """One or two residual layers, with two causal heads in all."""

    def __init__(self, num_layers, num_hiddens=32, length=16):
        super().__init__()
        self.token = make_table(36, num_hiddens)
        self.place = make_table(length, num_hiddens)
        num_heads = 2 // num_layers
        self.attentions = [  # Keras reserves the name `layers`
            MultiHeadAttention(num_hiddens, num_heads) for _ in range(num_layers)
        ]
        self.logits = make_projection(10, use_bias=True)

    def call(self, tokens):
        X = self.token(tokens) + self.place(tf.range(tokens.shape[1]))
        for layer in self.attentions:
            X = X + layer(X, X, X, causal=True)
        half = tokens.shape[1] // 2
        return self.logits(X[:, half::2])  # the letters of the second half


# %% train-readers
def train_reader(num_layers, seed):
    keras.utils.set_random_seed(seed)
    model = Reader(num_layers)
    tokens, _ = draw_texts(1)
    model(tokens)  # creates the weights
    examples = draw_texts(100 * 128)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return fit(model, examples, cross_entropy, 0.01)


# %% reader-accuracies
# The same texts for every model.
test = draw_texts(500)


def accuracy(model):
    tokens, digits = test
    return np.mean(np.argmax(model(tokens), axis=-1) == digits)


readers = {}
accuracies = {}
for num_layers in [1, 2]:
    readers[num_layers] = [train_reader(num_layers, seed) for seed in range(5)]
    accuracies[num_layers] = [accuracy(model) for model in readers[num_layers]]

# %% readers-shares tags=["tolerance:absolute=0.02"]
results = {str(num_layers): runs for num_layers, runs in accuracies.items()}
d2l.print_ranges(results, ["right"], "layers", digits=3)

# %% readers-maps tags=["nbval-ignore-output"]
keras.utils.set_random_seed(5)
tokens, _ = draw_texts(1)
model = readers[2][0]
model(tokens)
# First layer: a digit looks at its letter, just before it. Second layer: a letter of
# the second half looks just after its first appearance.
marks = np.zeros((2, 16, 16), dtype=bool)
for i in range(1, 8, 2):
    marks[0, i, i - 1] = True
for i in range(8, 16, 2):
    for j in range(0, 8, 2):
        if tokens[0, i] == tokens[0, j]:
            marks[1, i, j + 1] = True
d2l.show_heatmaps(
    tf.concat([layer.attention_weights for layer in model.attentions], axis=1),
    xlabel="Keys",
    ylabel="Queries",
    titles=["First layer", "Second layer"],
    figsize=(8, 4),
    cmap="Blues",
    xticklabels=name_tokens(tokens[0]),
    yticklabels=name_tokens(tokens[0]),
    marks=marks,
)

# %% solution-rank
keras.utils.set_random_seed(0)
X = tf.random.normal((1, 20, d))
for num_heads in [1, 2, 4, 8]:
    q = split(X @ W_q, num_heads)[0, 0]  # the first head's
    k = split(X @ W_k, num_heads)[0, 0]
    rank = tf.linalg.matrix_rank(q @ tf.transpose(k))
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
keras.utils.set_random_seed(0)
X = tf.random.normal((1, 5, d))
layer = MultiHeadAttention(d, num_heads=2)
original_output = layer(X, X, X)
order = [4, 5, 6, 7, 0, 1, 2, 3]  # the second of two heads comes first
reordered = MultiHeadAttention(d, num_heads=2)
reordered(X, X, X)  # creates the weights
reordered.W_q.kernel.assign(tf.gather(layer.W_q.kernel, order, axis=1))
reordered.W_k.kernel.assign(tf.gather(layer.W_k.kernel, order, axis=1))
reordered.W_v.kernel.assign(tf.gather(layer.W_v.kernel, order, axis=1))
reordered.W_o.kernel.assign(tf.gather(layer.W_o.kernel, order))
reordered_output = reordered(X, X, X)
print(f"largest output: {tf.reduce_max(abs(original_output)):.4f}")
difference = tf.reduce_max(abs(reordered_output - original_output))
print(f"largest difference: {difference:.4f}")

# %% solution-sum
adders = [train(1, seed, sign=1) for seed in range(5)]
sums = draw_questions(1000, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
d2l.print_ranges({"1": sum_errors}, ["mean squared error"], "heads", digits=3)

# %% solution-mean-map tags=["tolerance:levels=16"]
keras.utils.set_random_seed(0)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
weights = models[2][0].attention.attention_weights
is_asked = (letters[0] == questions[0][:, :, np.newaxis]).any(axis=1)
d2l.show_heatmaps(
    tf.concat([weights, tf.reduce_mean(weights, axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
    xticklabels=[LETTERS[letter] for letter in letters[0]],
    yticklabels=name_questions(questions[0]),
    marks=is_asked,
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""
    tokens, _ = test
    changed = Reader(num_layers=2)
    changed(tokens)  # creates the weights
    changed.set_weights(model.get_weights())
    W_o = changed.attentions[layer].W_o.kernel
    W_o.assign(tf.zeros(W_o.shape))
    return accuracy(changed)


accuracies_without = []
for layer in [0, 1]:
    accuracies_without.append([accuracy_without(model, layer) for model in readers[2]])

# %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
names = ["without the first", "without the second"]
results = dict(zip(names, accuracies_without, strict=True))
d2l.print_ranges(results, ["right"], "layer", digits=3)
