# The lesson's MXNet code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

# This import comes first: MXNet, which is older than NumPy 2, cannot be imported
# without it. It also turns on MXNet's NumPy arrays, as npx.set_np() does.
from d2l_compat import mxnet as d2l

from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn
from mxnet.test_utils import set_default_context

set_default_context(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
npx.random.seed(0)
# Weights from -1/sqrt(d) to 1/sqrt(d), where d is the mean of inputs and outputs.
initializer = init.Xavier(magnitude=1)

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in ["lemon", "lime"]:
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
# np.array makes float32 even of whole numbers.
keys = np.array([[2, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = np.array([50, 40, 70])  # the price, in cents
query = np.array([0, 1])  # a lime: not sweet, a little sour

scores = keys @ query  # how well does each key fit?
weights = np.exp(scores) / np.exp(scores).sum()  # softmax: positive, and they sum to 1
answer = weights @ values  # the average of the values, with these weights

for score, weight, fruit in zip(scores, weights, fruits, strict=True):
    print(f"{score:4.0f}{weight:8.3f}   {fruit}")
print(f"a lime costs about {answer:.0f} cents")

# %% from-soft-to-hard
for factor in [0, 1, 3, 10]:
    weights = npx.softmax(keys @ (factor * query), axis=-1)
    shares = "".join(f"{weight:8.3f}" for weight in weights)
    print(f"query times {factor:>2}:{shares}   {weights @ values:5.1f} cents")


# %% attend
def attend(queries, keys, values):
    """Return an answer for each query: score, softmax, average."""
    scores = queries @ keys.swapaxes(-1, -2)  # (queries, keys)
    return npx.softmax(scores, axis=-1) @ values


# %% three-customers
queries = np.array([[0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = np.array([[50, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")

# %% batches
queries = np.random.randn(2, 3, 4)
keys = np.random.randn(2, 5, 4)
values = np.random.randn(2, 5, 6)
answers = attend(queries, keys, values)
print("queries", queries.shape)
print("keys   ", keys.shape)
print("values ", values.shape)
print("answers", answers.shape)


# %% points
def curve(x):
    return np.sin(2 * x) + x / 2


def draw_points(count, seed):
    """Draw noisy measurements of the curve at random x from 0 to 5."""
    npx.random.seed(seed)
    x = np.sort(5 * np.random.rand(count))
    return x, curve(x) + 0.3 * np.random.randn(count)


# %% kernel-regression
def closeness(queries, keys, width):
    """Return scores, the logarithm of a Gaussian kernel: shape (queries, keys)."""
    return -((queries[:, None] - keys) ** 2) / (2 * width**2)


x, y = draw_points(40, seed=0)
grid = np.linspace(0, 5, 101)
fits = {}
for width in [0.05, 0.3, 3]:
    fits[width] = npx.softmax(closeness(grid, x, width), axis=-1) @ y

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
    weights = npx.softmax(closeness(x, x, width), axis=-1)
    maps.append(weights / weights.max())
d2l.show_heatmaps(
    np.stack(maps)[None],
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
        scores = scores + np.log(1 - np.eye(len(x)))  # minus infinity on the diagonal
    return ((npx.softmax(scores, axis=-1) @ y - y) ** 2).mean()


# %% learned-width
def learn_width(x, y, start, hide_itself=True):
    """Learn the width, by Adam on its logarithm, which keeps it positive."""
    log_start = init.Constant(math.log(start))
    log_width = gluon.Parameter("log_width", shape=(1,), init=log_start)
    log_width.initialize()
    trainer = gluon.Trainer({"log_width": log_width}, "adam", {"learning_rate": 0.1})
    for _ in range(100):
        with autograd.record():
            loss = error(np.exp(log_width.data()), x, y, hide_itself)
        loss.backward()
        trainer.step(batch_size=1)
    return np.exp(log_width.data()).item()


# %% learned-widths
for start in [0.1, 1]:
    print(f"from {start}, without itself: {learn_width(x, y, start):.2f}")
unmasked_width = learn_width(x, y, 1, hide_itself=False)
print(f"from 1, itself among them: {unmasked_width:.2f}")


# %% four-scores
def dot(Q, K):
    # Many small products: several times as fast as Q @ K.swapaxes(-1, -2).
    return npx.batch_dot(Q, K, transpose_b=True)


def scaled_dot(Q, K):
    return npx.batch_dot(Q, K, transpose_b=True) / math.sqrt(K.shape[-1])


def bilinear(Q, K, W):
    return Q @ W @ K.swapaxes(-1, -2)


def additive(Q, K, W_q, W_k, w):
    # shape (batch, queries, keys, num_hiddens)
    every_pair = np.expand_dims(Q @ W_q, 2) + np.expand_dims(K @ W_k, 1)
    return np.tanh(every_pair) @ w


# %% two-layers
Q = np.random.randn(2, 3, 8)
K = np.random.randn(2, 5, 8)
V = np.random.randn(2, 5, 4)
scaled_layer = d2l.DotProductAttention(dropout=0)
additive_layer = d2l.AdditiveAttention(num_hiddens=16, dropout=0)
additive_layer.initialize(initializer)
layer_outputs = [scaled_layer(Q, K, V), additive_layer(Q, K, V)]

W_q = additive_layer.W_q.weight.data().T  # nn.Dense stores it transposed
W_k = additive_layer.W_k.weight.data().T
w = additive_layer.w_v.weight.data()[0]
manual_outputs = [
    npx.softmax(scaled_dot(Q, K), axis=-1) @ V,
    npx.softmax(additive(Q, K, W_q, W_k, w), axis=-1) @ V,
]

# %% two-layers-shown
for name, layer_output, output in zip(
    ["scaled dot", "additive"], layer_outputs, manual_outputs, strict=True
):
    largest = np.abs(output).max()
    difference = np.abs(layer_output - output).max()
    print(
        f"{name:>10}: largest answer {largest:.4f}, largest difference {difference:.4f}"
    )


# %% gaussian-or-dot
def gaussian(Q, K):
    differences = np.expand_dims(Q, 2) - np.expand_dims(K, 1)
    return -(differences**2).sum(axis=-1) / 2


def weight_difference(Q, K):
    distance_weights = npx.softmax(gaussian(Q, K), axis=-1)
    product_weights = npx.softmax(dot(Q, K), axis=-1)
    return np.abs(distance_weights - product_weights).max()


unit_keys = K / np.linalg.norm(K, axis=-1, keepdims=True)

# %% gaussian-or-dot-shown
print(f"keys of any length:    weights differ by up to {weight_difference(Q, K):.4f}")
difference = weight_difference(Q, unit_keys)
print(f"keys of equal length:  weights differ by up to {difference:.4f}")

# %% saturation
npx.random.seed(0)
widths = [2**power for power in range(2, 11)]
largest_weights = {"unscaled": [], "scaled": []}
slopes = {"unscaled": [], "scaled": []}
for width in widths:
    query = np.random.randn(1000, 1, width)
    ten_keys = np.random.randn(1000, 10, width)
    for name, score in [("unscaled", dot), ("scaled", scaled_dot)]:
        weights = npx.softmax(score(query, ten_keys), axis=-1)[:, 0]
        largest_weights[name].append(weights.max(axis=1).mean())
        outer = weights[:, :, None] * weights[:, None]  # (queries, keys, keys)
        derivative = np.eye(10) * weights[:, None] - outer
        norms = np.linalg.norm(derivative, axis=(1, 2))
        slopes[name].append(np.percentile(norms, 50))  # MXNet has no median

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
    # An array: with a plain number, np.where would swap the gradients.
    hidden = np.array(-math.inf, ctx=scores.ctx)
    return npx.softmax(np.where(is_visible, scores, hidden), axis=-1)


npx.random.seed(0)
position = np.arange(5)
is_real = np.broadcast_to(position < 3, (5, 5))  # three real keys, two of padding
causal_mask = position <= position[:, None]  # no later key
scores = np.random.randn(5, 5)
masks = [is_real, causal_mask, is_real & causal_mask]
maps = [masked_weights(scores, mask) for mask in masks]
d2l.show_heatmaps(
    np.stack(maps)[None],
    xlabel="Keys",
    ylabel="Queries",
    titles=["Padding", "Causal", "Both"],
    figsize=(8, 3),
    cmap="Blues",
)

# %% last-queries
npx.random.seed(0)
layer = d2l.DotProductAttention(dropout=0)
X = np.random.randn(1, 5, 8)
output_all = layer(X, X, X, causal=True)
output_last_two = layer(X[:, -2:], X, X, causal=True)
print("two queries: keys seen", (layer.attention_weights[0] > 0).sum(axis=-1).tolist())
difference = np.abs(output_last_two - output_all[:, -2:]).max()
print(f"from the last two of five: largest difference {difference:.4f}")


# %% empty-row
def print_row(name, weights):
    print(name, *[f"{weight:5.2f}" for weight in weights])


is_real = np.broadcast_to(position >= 2, (5, 5))  # here the padding comes first
weights = masked_weights(scores, is_real & causal_mask)
print_row("by hand:   ", weights[0])
bias = np.where(is_real, np.zeros((5, 5)), -math.inf)
layer(X, X, X, causal=True, score_bias=bias)
print_row("the layer: ", layer.attention_weights[0, 0])


# %% dictionaries
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_dictionaries(count, size=6):
    """Draw entries (a letter and a digit each), letters to ask for, and the answers.

    Return four arrays of whole numbers, each of shape (count, size).
    """
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]  # no letter twice
    digits = np.random.randint(10, size=(count, size))
    order = np.random.rand(count, size).argsort(axis=1)
    rows = np.arange(count, dtype="int64")[:, None]
    questions = letters[rows, order]
    answers = digits[rows, order]
    return letters, digits, questions, answers


def name_pairs(letters, digits):
    """Return names such as p2, for one dictionary's entries."""
    pairs = zip(letters.tolist(), digits.tolist(), strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


for letters, digits, questions, answers in zip(*draw_dictionaries(3), strict=True):
    print(*name_pairs(letters, digits), " -> ", *name_pairs(questions, answers))


# %% look-up
class LookUp(nn.Block):
    """A dictionary with learned queries, keys and values, which scores each digit."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        normal = init.Normal(1)  # by default, vectors would be far shorter
        self.letter = nn.Embedding(26, num_hiddens, weight_initializer=normal)
        self.digit = nn.Embedding(10, num_hiddens, weight_initializer=normal)
        # By default, Dense would flatten all axes but the first into one.
        self.W_q = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_k = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_v = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.output = nn.Dense(10, flatten=False)

    def forward(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        scores = scaled_dot(self.W_q(queries), self.W_k(keys))
        self.attention_weights = npx.softmax(scores, axis=-1)
        return self.output(npx.batch_dot(self.attention_weights, self.W_v(values)))


# %% train
def train(seed, model_class=LookUp):
    npx.random.seed(seed)
    model = model_class()
    model.initialize(initializer)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.015})
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    cross_entropy.hybridize()  # one operation instead of several
    # Cut examples into batches: drawing all of them at once is faster.
    letters, digits, questions, answers = draw_dictionaries(150 * 64)
    for step in range(150):
        batch = slice(64 * step, 64 * (step + 1))
        with autograd.record():
            scores = model(letters[batch], digits[batch], questions[batch])
            loss = cross_entropy(scores, answers[batch])
        loss.backward()
        trainer.step(batch_size=64)
    return model


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
            predictions = model(letters, digits, questions).argmax(axis=-1)
            row.append((predictions == answers).mean().item())
        shares.append(row)
    return shares


models = [train(seed) for seed in range(5)]
look_up_accuracies = accuracies(models)

# %% shares tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": look_up_accuracies}, sizes, "entries", digits=3)

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
npx.random.seed(0)
letters, digits, questions, answers = draw_dictionaries(1)
models[0](letters, digits, questions)
d2l.show_heatmaps(
    models[0].attention_weights[None],
    xlabel="Entries",
    ylabel="Letters asked for",
    figsize=(3.5, 3),
    cmap="Blues",
    xticklabels=name_pairs(letters[0], digits[0]),
    yticklabels=[LETTERS[letter] for letter in questions[0].tolist()],
    marks=questions[0][:, None] == letters[0],
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
    (model.answer(queries, K, V).argmax(axis=-1) == answers).mean()
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
heaviest = model.attention_weights.argmax(axis=-1)  # what each question looks at
is_heaviest = npx.one_hot(heaviest, 6) > 0
scores = scaled_dot(model.W_q(queries), model.W_k(entries))
others_only = masked_weights(scores, ~is_heaviest) @ model.W_v(entries)
heaviest_only = masked_weights(scores, is_heaviest) @ model.W_v(entries)
masked_accuracies = [
    (model.output(Y).argmax(axis=-1) == answers).mean()
    for Y in [others_only, heaviest_only]
]

# %% removed-shown tags=["tolerance:absolute=0.03"]
names = ["that entry hidden", "that entry alone"]
for share, name in zip(masked_accuracies, names, strict=True):
    print(f"{share:.3f}  right with {name}")

# %% same-answer
values = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
for weights in [[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]]:
    print(weights, "->", (np.array(weights) @ values).tolist())

# %% solution-box
is_near = np.abs(grid[:, None] - x) < 0.3
box = masked_weights(np.zeros((101, 40)), is_near) @ y
means = np.stack([y[nearby].mean() for nearby in is_near])
has_point = is_near.any(axis=1)
difference = np.abs(box - means)[has_point].max()
print(
    f"largest difference: {difference:.4f}; places without a point nearby: "
    f"{(~has_point).sum()}"
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
        self.w = nn.Dense(1, use_bias=False, flatten=False)

    def answer(self, queries, keys, values):
        Q = self.W_q(queries)
        K = self.W_k(keys)
        every_pair = np.expand_dims(Q, 2) + np.expand_dims(K, 1)
        scores = self.w(np.tanh(every_pair)).squeeze(-1)
        self.attention_weights = npx.softmax(scores, axis=-1)
        return self.output(npx.batch_dot(self.attention_weights, self.W_v(values)))


additive_models = [train(seed, AdditiveLookUp) for seed in range(5)]
additive_accuracies = accuracies(additive_models)

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": additive_accuracies}, sizes, "entries", digits=3)


# %% solution-reversal
class Reverser(nn.Block):
    """A model that writes digits backwards; a key is the sum of place and digit."""

    def __init__(self, num_hiddens=32, length=8):
        super().__init__()
        normal = init.Normal(1)
        self.digit = nn.Embedding(10, num_hiddens, weight_initializer=normal)
        self.query = nn.Embedding(length, num_hiddens, weight_initializer=normal)
        self.place = nn.Embedding(length, num_hiddens, weight_initializer=normal)
        self.output = nn.Dense(10, flatten=False)

    def forward(self, digits):
        position = np.broadcast_to(np.arange(digits.shape[1]), digits.shape)
        queries = self.query(position)
        keys = self.place(position) + self.digit(digits)
        self.attention_weights = npx.softmax(scaled_dot(queries, keys), axis=-1)
        return self.output(npx.batch_dot(self.attention_weights, self.digit(digits)))


# %% solution-reversers
def train_reverser(seed):
    npx.random.seed(seed)
    model = Reverser()
    model.initialize(initializer)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.015})
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    cross_entropy.hybridize()
    all_digits = np.random.randint(10, size=(150 * 64, 8))
    for digits in np.split(all_digits, 150):
        with autograd.record():
            loss = cross_entropy(model(digits), digits[:, ::-1])
        loss.backward()
        trainer.step(batch_size=64)
    return model


reversers = [train_reverser(seed) for seed in range(5)]
digits = np.random.randint(10, size=(500, 8))
reverser_accuracies = [
    (reverser(digits).argmax(axis=-1) == digits[:, ::-1]).mean()
    for reverser in reversers
]

# %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
print("right:", *(f"{share:.3f}" for share in reverser_accuracies))
d2l.show_heatmaps(
    reversers[0].attention_weights[:1, None],
    xlabel="Digits read",
    ylabel="Digits written",
    figsize=(3.5, 3),
    cmap="Blues",
)

# %% solution-twice
letters = np.array([[0, 1, 0, 2], [0, 1, 0, 2]], dtype="int32")
# a3 b5 a7 c9; a7 b5 a3 c9
digits = np.array([[3, 5, 7, 9], [7, 5, 3, 9]], dtype="int32")
questions = np.array([[0], [0]], dtype="int32")
predictions = []
attention_maps = []
for model in models:
    predictions.append(model(letters, digits, questions).argmax(axis=-1)[:, 0])
    attention_maps.append(model.attention_weights[:, 0])

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    pairs = " ".join(name_pairs(letters[i], digits[i]))
    print(f"weights of {pairs}, and the answer to a:")
    for weights, prediction in zip(attention_maps, predictions, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(prediction[i]))
