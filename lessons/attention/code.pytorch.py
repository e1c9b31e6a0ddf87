# The lesson's PyTorch code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

import torch
from torch import nn

from d2l_compat import torch as d2l

_ = torch.manual_seed(0)

# %% price-list
prices = {"apple": 50, "lemon": 40, "pear": 70}
for fruit in ["lemon", "lime"]:
    print(f"{fruit}: {prices.get(fruit, 'not in the list')}")

# %% soft-look-up
fruits = ["apple", "lemon", "pear"]
keys = torch.tensor([[2.0, 1], [0, 3], [3, 0]])  # how sweet, and how sour
values = torch.tensor([50.0, 40, 70])  # the price, in cents
query = torch.tensor([0.0, 1])  # a lime: not sweet, a little sour

scores = keys @ query  # how well does each key fit?
weights = scores.exp() / scores.exp().sum()  # softmax: positive, and they sum to 1
answer = weights @ values  # the average of the values, with these weights

for score, weight, fruit in zip(scores, weights, fruits, strict=True):
    print(f"{score:4.0f}{weight:8.3f}   {fruit}")
print(f"a lime costs about {answer:.0f} cents")

# %% from-soft-to-hard
for factor in [0, 1, 3, 10]:
    weights = (keys @ (factor * query)).softmax(dim=-1)
    shares = "".join(f"{weight:8.3f}" for weight in weights)
    print(f"query times {factor:>2}:{shares}   {weights @ values:5.1f} cents")


# %% attend
def attend(queries, keys, values):
    """Return an answer for each query: score, softmax, average."""
    scores = queries @ keys.mT  # (queries, keys)
    return scores.softmax(dim=-1) @ values


# %% three-customers
queries = torch.tensor([[0.0, 1], [1, 0], [1, 1]])  # sour, sweet, both
values = torch.tensor([[50.0, 19], [40, 2], [70, 17]])  # cents, and grams of sugar
answers = attend(queries, keys, values)
for name, (price, sugar) in zip(["sour", "sweet", "both"], answers, strict=True):
    print(f"{name:>6}: {price:.1f} cents, {sugar:.1f} g of sugar")

# %% batches
queries = torch.randn(2, 3, 4)
keys = torch.randn(2, 5, 4)
values = torch.randn(2, 5, 6)
answers = attend(queries, keys, values)
print("queries", tuple(queries.shape))
print("keys   ", tuple(keys.shape))
print("values ", tuple(values.shape))
print("answers", tuple(answers.shape))


# %% points
def curve(x):
    return torch.sin(2 * x) + x / 2


def draw_points(count, seed):
    """Draw noisy measurements of the curve at random x from 0 to 5."""
    torch.manual_seed(seed)
    x = (5 * torch.rand(count)).sort().values
    return x, curve(x) + 0.3 * torch.randn(count)


# %% kernel-regression
def closeness(queries, keys, width):
    """Return scores, the logarithm of a Gaussian kernel: shape (queries, keys)."""
    return -((queries[:, None] - keys) ** 2) / (2 * width**2)


x, y = draw_points(40, seed=0)
grid = torch.linspace(0, 5, 101)
fits = {}
for width in [0.05, 0.3, 3]:
    fits[width] = closeness(grid, x, width).softmax(dim=-1) @ y

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
    weights = closeness(x, x, width).softmax(dim=-1)
    maps.append(weights / weights.max())
d2l.show_heatmaps(
    torch.stack(maps)[None],
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
        scores = scores.masked_fill(torch.eye(len(x), dtype=bool), -math.inf)
    return ((scores.softmax(dim=-1) @ y - y) ** 2).mean()


# %% learned-width
def learn_width(x, y, start, hide_itself=True):
    """Learn the width, by Adam on its logarithm, which keeps it positive."""
    log_width = torch.tensor(math.log(start), requires_grad=True)
    optimizer = torch.optim.Adam([log_width], lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        error(log_width.exp(), x, y, hide_itself).backward()
        optimizer.step()
    return log_width.exp().item()


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
    return torch.tanh(every_pair) @ w


# %% two-layers
Q = torch.randn(2, 3, 8)
K = torch.randn(2, 5, 8)
V = torch.randn(2, 5, 4)
scaled_layer = d2l.DotProductAttention(dropout=0)
additive_layer = d2l.AdditiveAttention(num_hiddens=16, dropout=0)
layer_outputs = [scaled_layer(Q, K, V), additive_layer(Q, K, V)]

W_q = additive_layer.W_q.weight.T  # nn.Linear stores it transposed
W_k = additive_layer.W_k.weight.T
w = additive_layer.w_v.weight[0]
manual_outputs = [
    scaled_dot(Q, K).softmax(dim=-1) @ V,
    additive(Q, K, W_q, W_k, w).softmax(dim=-1) @ V,
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
framework_output = nn.functional.scaled_dot_product_attention(Q, K, V)
difference = (framework_output - manual_outputs[0]).abs().max()
print(f"PyTorch's own: largest difference {difference:.4f}")


# %% gaussian-or-dot
def gaussian(Q, K):
    return -((Q[:, :, None] - K[:, None]) ** 2).sum(dim=-1) / 2


def weight_difference(Q, K):
    distance_weights = gaussian(Q, K).softmax(dim=-1)
    product_weights = dot(Q, K).softmax(dim=-1)
    return (distance_weights - product_weights).abs().max()


unit_keys = nn.functional.normalize(K, dim=-1)

# %% gaussian-or-dot-shown
print(f"keys of any length:    weights differ by up to {weight_difference(Q, K):.4f}")
difference = weight_difference(Q, unit_keys)
print(f"keys of equal length:  weights differ by up to {difference:.4f}")

# %% saturation
torch.manual_seed(0)
widths = [2**power for power in range(2, 11)]
largest_weights = {"unscaled": [], "scaled": []}
slopes = {"unscaled": [], "scaled": []}
for width in widths:
    query = torch.randn(1000, 1, width)
    ten_keys = torch.randn(1000, 10, width)
    for name, score in [("unscaled", dot), ("scaled", scaled_dot)]:
        weights = score(query, ten_keys).softmax(dim=-1)[:, 0]
        largest_weights[name].append(weights.amax(dim=1).mean())
        derivative = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
        slopes[name].append(derivative.norm(dim=(1, 2)).median())

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
    return scores.masked_fill(~is_visible, -math.inf).softmax(dim=-1)


torch.manual_seed(0)
position = torch.arange(5)
is_real = (position < 3).expand(5, 5)  # three real keys, two of padding
causal_mask = position <= position[:, None]  # no later key
scores = torch.randn(5, 5)
masks = [is_real, causal_mask, is_real & causal_mask]
maps = [masked_weights(scores, mask) for mask in masks]
d2l.show_heatmaps(
    torch.stack(maps)[None],
    xlabel="Keys",
    ylabel="Queries",
    titles=["Padding", "Causal", "Both"],
    figsize=(8, 3),
    cmap="Blues",
)

# %% last-queries
torch.manual_seed(0)
layer = d2l.DotProductAttention(dropout=0)
X = torch.randn(1, 5, 8)
output_all = layer(X, X, X, causal=True)
output_last_two = layer(X[:, -2:], X, X, causal=True)
print("two queries: keys seen", (layer.attention_weights[0] > 0).sum(dim=-1).tolist())
difference = (output_last_two - output_all[:, -2:]).abs().max()
print(f"from the last two of five: largest difference {difference:.4f}")


# %% empty-row
def print_row(name, weights):
    print(name, *[f"{weight:5.2f}" for weight in weights])


is_real = (position >= 2).expand(5, 5)  # here the padding comes first
weights = masked_weights(scores, is_real & causal_mask)
print_row("by hand:   ", weights[0])
bias = torch.zeros(5, 5).masked_fill(~is_real, -math.inf)
layer(X, X, X, causal=True, score_bias=bias)
print_row("the layer: ", layer.attention_weights[0, 0])

# %% own-empty-row
identity = torch.eye(5)[None]  # with these values, the answers are the weights
own_weights = nn.functional.scaled_dot_product_attention(
    X, X, identity, attn_mask=is_real & causal_mask
)
print_row("PyTorch's: ", own_weights[0, 0])

# %% two-meanings
torch.manual_seed(0)
function = nn.functional.scaled_dot_product_attention
layer = nn.MultiheadAttention(8, 1)
function_weights = function(X, X, identity, attn_mask=causal_mask)[0]
# No batch: by default, the layer's first axis is for the tokens.
_, layer_weights = layer(X[0], X[0], X[0], attn_mask=causal_mask)
causal_weights = function(X[:, -2:], X, identity, is_causal=True)[0]
for name, weights in [
    ("function", function_weights),
    ("layer", layer_weights),
    ("is_causal", causal_weights),
]:
    print(f"{name:>9}: keys seen", (weights > 0).sum(dim=-1).tolist())
print("the layer's last row:", *(f"{weight:.2f}" for weight in layer_weights[-1]))


# %% dictionaries
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_dictionaries(count, size=6):
    """Draw entries (a letter and a digit each), letters to ask for, and the answers.

    Return four arrays of whole numbers, each of shape (count, size).
    """
    letters = torch.rand(count, 26).argsort(dim=1)[:, :size]  # no letter twice
    digits = torch.randint(10, (count, size))
    order = torch.rand(count, size).argsort(dim=1)
    questions = letters.gather(1, order)
    answers = digits.gather(1, order)
    return letters, digits, questions, answers


def name_pairs(letters, digits):
    """Return names such as p2, for one dictionary's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


for letters, digits, questions, answers in zip(*draw_dictionaries(3), strict=True):
    print(*name_pairs(letters, digits), " -> ", *name_pairs(questions, answers))


# %% look-up
class LookUp(nn.Module):
    """A dictionary with learned queries, keys and values, which scores each digit."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter = nn.Embedding(26, num_hiddens)
        self.digit = nn.Embedding(10, num_hiddens)
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.output = nn.Linear(num_hiddens, 10)

    def forward(self, letters, digits, questions):
        entries = self.letter(letters) + self.digit(digits)
        return self.answer(self.letter(questions), entries, entries)

    def answer(self, queries, keys, values):
        scores = scaled_dot(self.W_q(queries), self.W_k(keys))
        self.attention_weights = scores.softmax(dim=-1)
        return self.output(self.attention_weights @ self.W_v(values))


# %% train
def train(seed, model_class=LookUp):
    torch.manual_seed(seed)
    model = model_class()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.015)
    for _ in range(150):
        letters, digits, questions, answers = draw_dictionaries(64)
        scores = model(letters, digits, questions)
        # cross_entropy expects the classes on the second axis.
        loss = nn.functional.cross_entropy(scores.mT, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
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
            with torch.no_grad():
                predictions = model(letters, digits, questions).argmax(dim=-1)
            row.append((predictions == answers).float().mean().item())
        shares.append(row)
    return shares


models = [train(seed) for seed in range(5)]
look_up_accuracies = accuracies(models)

# %% shares tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": look_up_accuracies}, sizes, "entries", digits=3)

# %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
torch.manual_seed(0)
letters, digits, questions, answers = draw_dictionaries(1)
with torch.no_grad():
    models[0](letters, digits, questions)
d2l.show_heatmaps(
    models[0].attention_weights[None],
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
with torch.no_grad():
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
        (model.answer(queries, K, V).argmax(dim=-1) == answers).float().mean()
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
with torch.no_grad():
    model(letters, digits, questions)
    heaviest = model.attention_weights.argmax(dim=-1)  # what each question looks at
    is_heaviest = nn.functional.one_hot(heaviest, 6).bool()
    scores = scaled_dot(model.W_q(queries), model.W_k(entries))
    others_only = masked_weights(scores, ~is_heaviest) @ model.W_v(entries)
    heaviest_only = masked_weights(scores, is_heaviest) @ model.W_v(entries)
    masked_accuracies = [
        (model.output(Y).argmax(dim=-1) == answers).float().mean()
        for Y in [others_only, heaviest_only]
    ]

# %% removed-shown tags=["tolerance:absolute=0.03"]
names = ["that entry hidden", "that entry alone"]
for share, name in zip(masked_accuracies, names, strict=True):
    print(f"{share:.3f}  right with {name}")

# %% same-answer
values = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])
for weights in [[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0.25, 0.25, 0.25, 0.25]]:
    print(weights, "->", (torch.tensor(weights) @ values).tolist())

# %% solution-box
is_near = (grid[:, None] - x).abs() < 0.3
box = masked_weights(torch.zeros(101, 40), is_near) @ y
means = torch.stack([y[nearby].mean() for nearby in is_near])
has_point = is_near.any(dim=1)
difference = (box - means)[has_point].abs().max()
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
        self.attention_weights = self.w(every_pair.tanh()).squeeze(-1).softmax(dim=-1)
        return self.output(self.attention_weights @ self.W_v(values))


additive_models = [train(seed, AdditiveLookUp) for seed in range(5)]
additive_accuracies = accuracies(additive_models)

# %% solution-additive-shown tags=["tolerance:absolute=0.02"]
d2l.print_ranges({"right": additive_accuracies}, sizes, "entries", digits=3)


# %% solution-reversal
class Reverser(nn.Module):
    """A model that writes digits backwards; a key is the sum of place and digit."""

    def __init__(self, num_hiddens=32, length=8):
        super().__init__()
        self.digit = nn.Embedding(10, num_hiddens)
        self.query = nn.Embedding(length, num_hiddens)
        self.place = nn.Embedding(length, num_hiddens)
        self.output = nn.Linear(num_hiddens, 10)

    def forward(self, digits):
        queries = self.query.weight.expand(len(digits), -1, -1)
        keys = self.place.weight + self.digit(digits)
        self.attention_weights = scaled_dot(queries, keys).softmax(dim=-1)
        return self.output(self.attention_weights @ self.digit(digits))


# %% solution-reversers
def train_reverser(seed):
    torch.manual_seed(seed)
    model = Reverser()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.015)
    for _ in range(150):
        digits = torch.randint(10, (64, 8))
        loss = nn.functional.cross_entropy(model(digits).mT, digits.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


reversers = [train_reverser(seed) for seed in range(5)]
digits = torch.randint(10, (500, 8))
with torch.no_grad():
    reverser_accuracies = [
        (reverser(digits).argmax(dim=-1) == digits.flip(1)).float().mean()
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
letters = torch.tensor([[0, 1, 0, 2], [0, 1, 0, 2]])
digits = torch.tensor([[3, 5, 7, 9], [7, 5, 3, 9]])  # a3 b5 a7 c9; a7 b5 a3 c9
questions = torch.tensor([[0], [0]])
predictions = []
attention_maps = []
for model in models:
    with torch.no_grad():
        predictions.append(model(letters, digits, questions).argmax(dim=-1)[:, 0])
    attention_maps.append(model.attention_weights[:, 0])

# %% solution-twice-shown tags=["nbval-ignore-output"]
for i in range(2):
    pairs = " ".join(name_pairs(letters[i], digits[i]))
    print(f"weights of {pairs}, and the answer to a:")
    for weights, prediction in zip(attention_maps, predictions, strict=True):
        print(*(f"{weight:.2f}" for weight in weights[i]), "->", int(prediction[i]))
