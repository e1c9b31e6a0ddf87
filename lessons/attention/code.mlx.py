# The lesson's MLX code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

import mlx.core as mx
from mlx import nn, optimizers

from d2l_compat import mlx as d2l

mx.set_default_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
mx.random.seed(0)

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in ["lemon", "lime"]:
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
keys = mx.array([[2.0, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = mx.array([50.0, 40, 70])  # the price, in cents
query = mx.array([0.0, 1])  # a lime: not sweet, a little sour

scores = keys @ query  # how well does each key fit?
weights = scores.exp() / scores.exp().sum()  # softmax: positive, and they sum to 1
answer = weights @ values  # the average of the values, with these weights

for score, weight, fruit in zip(scores, weights, fruits, strict=True):
    print(f"{score:4.0f}{weight:8.3f}   {fruit}")
print(f"a lime costs about {answer:.0f} cents")

# %% from-soft-to-hard
for factor in [0, 1, 3, 10]:
    weights = mx.softmax(keys @ (factor * query), axis=-1)
    shares = "".join(f"{weight:8.3f}" for weight in weights)
    print(f"query times {factor:>2}:{shares}   {weights @ values:5.1f} cents")


# %% attend
def attend(queries, keys, values):
    """Return an answer for each query: score, softmax, average."""
    scores = queries @ keys.mT  # (queries, keys)
    return mx.softmax(scores, axis=-1) @ values


# %% three-customers
queries = mx.array([[0.0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = mx.array([[50.0, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")

# %% batches
queries = mx.random.normal((2, 3, 4))
keys = mx.random.normal((2, 5, 4))
values = mx.random.normal((2, 5, 6))
answers = attend(queries, keys, values)
print("queries", tuple(queries.shape))
print("keys   ", tuple(keys.shape))
print("values ", tuple(values.shape))
print("answers", tuple(answers.shape))


# %% points
def curve(x):
    return mx.sin(2 * x) + x / 2


def draw_points(count, seed):
    """Draw noisy measurements of the curve at random x from 0 to 5."""
    mx.random.seed(seed)
    x = mx.sort(5 * mx.random.uniform(shape=(count,)))
    return x, curve(x) + 0.3 * mx.random.normal((count,))


# %% kernel-regression
def closeness(queries, keys, width):
    """Return scores, the logarithm of a Gaussian kernel: shape (queries, keys)."""
    return -((queries[:, None] - keys) ** 2) / (2 * width**2)


x, y = draw_points(40, seed=0)
grid = mx.linspace(0, 5, 101)
fits = {}
for width in [0.05, 0.3, 3]:
    fits[width] = mx.softmax(closeness(grid, x, width), axis=-1) @ y

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
    weights = mx.softmax(closeness(x, x, width), axis=-1)
    maps.append(weights / weights.max())
d2l.show_heatmaps(
    mx.stack(maps)[None],
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
        scores = mx.where(mx.eye(len(x), dtype=mx.bool_), -math.inf, scores)
    return ((mx.softmax(scores, axis=-1) @ y - y) ** 2).mean()


# %% learned-width
def learn_width(x, y, start, hide_itself=True):
    """Learn the width, by Adam on its logarithm, which keeps it positive."""

    def loss(parameters):
        return error(parameters["log_width"].exp(), x, y, hide_itself)

    parameters = {"log_width": mx.array(math.log(start))}
    # As in other frameworks; by default, MLX's Adam leaves this correction out.
    optimizer = optimizers.Adam(learning_rate=0.1, bias_correction=True)
    for _ in range(100):
        gradients = mx.grad(loss)(parameters)
        parameters = optimizer.apply_gradients(gradients, parameters)
        # MLX computes lazily: without this line, all steps would pile up.
        mx.eval(parameters, optimizer.state)
    return parameters["log_width"].exp().item()


# %% learned-widths
for start in [0.1, 1]:
    print(f"from {start}, without itself: {learn_width(x, y, start):.2f}")
unmasked_width = learn_width(x, y, 1, hide_itself=False)
print(f"from 1, itself among them: {unmasked_width:.2f}")


# %% four-scores
def dot(Q, K):
    return Q @ K.mT


def scaled_dot(Q, K):
    return Q @ K.mT / math.sqrt(K.shape[-1])


def bilinear(Q, K, W):
    return Q @ W @ K.mT


def additive(Q, K, W_q, W_k, w):
    # shape (batch, queries, keys, num_hiddens)
    every_pair = (Q @ W_q)[:, :, None] + (K @ W_k)[:, None]
    return mx.tanh(every_pair) @ w


# %% two-layers
Q = mx.random.normal((2, 3, 8))
K = mx.random.normal((2, 5, 8))
V = mx.random.normal((2, 5, 4))
scaled_layer = d2l.DotProductAttention(dropout=0)
additive_layer = d2l.AdditiveAttention(num_hiddens=16, dropout=0)
layer_outputs = [scaled_layer(Q, K, V), additive_layer(Q, K, V)]

W_q = additive_layer.W_q.weight.T  # nn.Linear stores it transposed
W_k = additive_layer.W_k.weight.T
w = additive_layer.w_v.weight[0]
manual_outputs = [
    mx.softmax(scaled_dot(Q, K), axis=-1) @ V,
    mx.softmax(additive(Q, K, W_q, W_k, w), axis=-1) @ V,
]

# %% two-layers-shown
for name, layer_output, output in zip(
    ["scaled dot", "additive"], layer_outputs, manual_outputs, strict=True
):
    largest = output.abs().max()
    difference = (layer_output - output).abs().max()
    print(
        f"{name:>10}: largest answer {largest:.4f}, largest difference {difference:.4f}"
    )

# %% own-function
# MLX expects heads on the axis before the queries and keys; here there is one.
heads = [Q[:, None], K[:, None], V[:, None]]
framework_output = mx.fast.scaled_dot_product_attention(*heads, scale=1 / math.sqrt(8))
difference = (framework_output[:, 0] - manual_outputs[0]).abs().max()
print(f"MLX's own: largest difference {difference:.4f}")


# %% gaussian-or-dot
def gaussian(Q, K):
    return -((Q[:, :, None] - K[:, None]) ** 2).sum(axis=-1) / 2


def weight_difference(Q, K):
    distance_weights = mx.softmax(gaussian(Q, K), axis=-1)
    product_weights = mx.softmax(dot(Q, K), axis=-1)
    return (distance_weights - product_weights).abs().max()


unit_keys = K / mx.linalg.norm(K, axis=-1, keepdims=True)

# %% gaussian-or-dot-shown
print(f"keys of any length:    weights differ by up to {weight_difference(Q, K):.4f}")
difference = weight_difference(Q, unit_keys)
print(f"keys of equal length:  weights differ by up to {difference:.4f}")

# %% saturation
mx.random.seed(0)
widths = [2**power for power in range(2, 11)]
largest_weights = {"unscaled": [], "scaled": []}
slopes = {"unscaled": [], "scaled": []}
for width in widths:
    query = mx.random.normal((1000, 1, width))
    ten_keys = mx.random.normal((1000, 10, width))
    for name, score in [("unscaled", dot), ("scaled", scaled_dot)]:
        weights = mx.softmax(score(query, ten_keys), axis=-1)[:, 0]
        largest_weights[name].append(weights.max(axis=1).mean())
        outer = weights[:, :, None] * weights[:, None]
        derivative = weights[:, :, None] * mx.eye(10) - outer
        slopes[name].append(mx.median(mx.linalg.norm(derivative, axis=(1, 2))))

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
    return mx.softmax(mx.where(is_visible, scores, -math.inf), axis=-1)


mx.random.seed(0)
position = mx.arange(5)
is_real = mx.broadcast_to(position < 3, (5, 5))  # three real keys, two of padding
causal_mask = position <= position[:, None]  # no later key
scores = mx.random.normal((5, 5))
masks = [is_real, causal_mask, is_real & causal_mask]
maps = [masked_weights(scores, mask) for mask in masks]
d2l.show_heatmaps(
    mx.stack(maps)[None],
    xlabel="Keys",
    ylabel="Queries",
    titles=["Padding", "Causal", "Both"],
    figsize=(8, 3),
    cmap="Blues",
)

# %% last-queries
mx.random.seed(0)
layer = d2l.DotProductAttention(dropout=0)
X = mx.random.normal((1, 5, 8))
output_all = layer(X, X, X, causal=True)
output_last_two = layer(X[:, -2:], X, X, causal=True)
print("two queries: keys seen", (layer.attention_weights[0] > 0).sum(axis=-1).tolist())
difference = (output_last_two - output_all[:, -2:]).abs().max()
print(f"from the last two of five: largest difference {difference:.4f}")


# %% empty-row
def print_row(name, weights):
    print(name, *[f"{weight:5.2f}" for weight in weights])


is_real = mx.broadcast_to(position >= 2, (5, 5))  # here the padding comes first
weights = masked_weights(scores, is_real & causal_mask)
print_row("by hand:   ", weights[0])
bias = mx.where(is_real, 0.0, -math.inf)
layer(X, X, X, causal=True, score_bias=bias)
print_row("the layer: ", layer.attention_weights[0, 0])

# %% own-empty-row
identity = mx.eye(5)[None]  # with these values, the answers are the weights
heads = [X[:, None], X[:, None], identity[:, None]]
is_visible = is_real & causal_mask
added_mask = mx.where(is_visible, 0.0, -math.inf)
for name, mask in [("MLX's, booleans:", is_visible), ("MLX's, added:   ", added_mask)]:
    own_weights = mx.fast.scaled_dot_product_attention(
        *heads, scale=1 / math.sqrt(8), mask=mask
    )
    print_row(name, own_weights[0, 0, 0])


# %% dictionaries
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_dictionaries(count, size=6):
    """Draw entries (a letter and a digit each), letters to ask for, and the answers.

    Return four arrays of whole numbers, each of shape (count, size).
    """
    alphabets = mx.argsort(mx.random.uniform(shape=(count, 26)), axis=1)
    letters = alphabets[:, :size]  # no letter twice
    digits = mx.random.randint(0, 10, (count, size))
    order = mx.argsort(mx.random.uniform(shape=(count, size)), axis=1)
    questions = mx.take_along_axis(letters, order, axis=1)
    answers = mx.take_along_axis(digits, order, axis=1)
    return letters, digits, questions, answers


def name_pairs(letters, digits):
    """Return names such as p2, for one dictionary's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


for letters, digits, questions, answers in zip(*draw_dictionaries(3), strict=True):
    print(*name_pairs(letters, digits), " -> ", *name_pairs(questions, answers))


# %% look-up
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; MLX draws shorter ones."""
    embedding = nn.Embedding(rows, width)
    embedding.weight = mx.random.normal(embedding.weight.shape)
    return embedding


class LookUp(nn.Module):
    """A dictionary with learned queries, keys and values, which scores each digit."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter = make_table(26, num_hiddens)
        self.digit = make_table(10, num_hiddens)
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.output = nn.Linear(num_hiddens, 10)

    def __call__(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        """Return a logit for each digit, and the weights."""
        scores = scaled_dot(self.W_q(queries), self.W_k(keys))
        weights = mx.softmax(scores, axis=-1)
        return self.output(weights @ self.W_v(values)), weights


# %% train
def loss(model, letters, digits, questions, answers):
    logits, _ = model(letters, digits, questions)
    return nn.losses.cross_entropy(logits, answers, reduction="mean")


def train(seed, model_class=LookUp):
    mx.random.seed(seed)
    model = model_class()
    optimizer = optimizers.Adam(learning_rate=0.015, bias_correction=True)
    compute_gradients = nn.value_and_grad(model, loss)
    for _ in range(150):
        letters, digits, questions, answers = draw_dictionaries(64)
        _, gradients = compute_gradients(model, letters, digits, questions, answers)
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)  # compute now, as above
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
            logits, _ = model(letters, digits, questions)
            predictions = logits.argmax(axis=-1)
            row.append((predictions == answers).mean().item())
        shares.append(row)
    return shares


models = [train(seed) for seed in range(5)]
look_up_accuracies = accuracies(models)

# %% shares tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": look_up_accuracies}, sizes, "entries", digits=3)

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
mx.random.seed(0)
letters, digits, questions, answers = draw_dictionaries(1)
_, weights = models[0](letters, digits, questions)
d2l.show_heatmaps(
    weights[None],
    xlabel="Entries",
    ylabel="Letters asked for",
    figsize=(3.5, 3),
    cmap="Blues",
    xticklabels=name_pairs(letters[0], digits[0]),
    yticklabels=[LETTERS[letter] for letter in questions[0]],
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
    (model.answer(queries, K, V)[0].argmax(axis=-1) == answers).mean()
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
_, weights = model(letters, digits, questions)
heaviest = weights.argmax(axis=-1)  # what each question looks at
is_heaviest = heaviest[:, :, None] == mx.arange(6)
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
values = mx.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
for weights in [[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]]:
    print(weights, "->", (mx.array(weights) @ values).tolist())

# %% solution-box
is_near = (grid[:, None] - x).abs() < 0.3
box = masked_weights(mx.zeros((101, 40)), is_near) @ y
means = (is_near * y).sum(axis=1) / is_near.sum(axis=1)
has_point = is_near.any(axis=1)
difference = mx.where(has_point, (box - means).abs(), 0).max()
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
        self.w = nn.Linear(num_hiddens, 1, bias=False)

    def answer(self, queries, keys, values):
        every_pair = self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]
        scores = self.w(mx.tanh(every_pair)).squeeze(-1)
        weights = mx.softmax(scores, axis=-1)
        return self.output(weights @ self.W_v(values)), weights


additive_models = [train(seed, AdditiveLookUp) for seed in range(5)]
additive_accuracies = accuracies(additive_models)

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": additive_accuracies}, sizes, "entries", digits=3)


# %% solution-reversal
class Reverser(nn.Module):
    """A model that writes digits backwards; a key is the sum of place and digit."""

    def __init__(self, num_hiddens=32, length=8):
        super().__init__()
        self.digit = make_table(10, num_hiddens)
        self.query = make_table(length, num_hiddens)
        self.place = make_table(length, num_hiddens)
        self.output = nn.Linear(num_hiddens, 10)

    def __call__(self, digits):
        keys = self.place.weight + self.digit(digits)
        weights = mx.softmax(scaled_dot(self.query.weight, keys), axis=-1)
        return self.output(weights @ self.digit(digits)), weights


# %% solution-reversers
def reverser_loss(model, digits):
    logits, _ = model(digits)
    return nn.losses.cross_entropy(logits, digits[:, ::-1], reduction="mean")


def train_reverser(seed):
    mx.random.seed(seed)
    model = Reverser()
    optimizer = optimizers.Adam(learning_rate=0.015, bias_correction=True)
    compute_gradients = nn.value_and_grad(model, reverser_loss)
    for _ in range(150):
        digits = mx.random.randint(0, 10, (64, 8))
        _, gradients = compute_gradients(model, digits)
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state)  # compute now, as above
    return model


reversers = [train_reverser(seed) for seed in range(5)]
digits = mx.random.randint(0, 10, (500, 8))
results = [reverser(digits) for reverser in reversers]
reverser_accuracies = [
    (logits.argmax(axis=-1) == digits[:, ::-1]).mean() for logits, _ in results
]

# %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
print("right:", *(f"{share:.3f}" for share in reverser_accuracies))
_, weights = results[0]
d2l.show_heatmaps(
    weights[:1, None],
    xlabel="Digits read",
    ylabel="Digits written",
    figsize=(3.5, 3),
    cmap="Blues",
)

# %% solution-twice
letters = mx.array([[0, 1, 0, 2], [0, 1, 0, 2]])
digits = mx.array([[3, 5, 7, 9], [7, 5, 3, 9]])  # a3 b5 a7 c9; a7 b5 a3 c9
questions = mx.array([[0], [0]])
predictions = []
attention_maps = []
for model in models:
    logits, weights = model(letters, digits, questions)
    predictions.append(logits.argmax(axis=-1)[:, 0])
    attention_maps.append(weights[:, 0])

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    pairs = " ".join(name_pairs(letters[i], digits[i]))
    print(f"weights of {pairs}, and the answer to a:")
    for weights, prediction in zip(attention_maps, predictions, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(prediction[i]))
