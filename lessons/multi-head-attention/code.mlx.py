# The lesson's MLX code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics
from functools import partial

import mlx.core as mx
import numpy as np
from mlx import nn, optimizers
from mlx.utils import tree_flatten

from d2l_compat import mlx as d2l

mx.set_default_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
mx.random.seed(0)

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = mx.eye(3)  # each fruit has its own number
values = mx.array([50.0, 40, 70])  # the price, in cents
pear, lemon = mx.array([0.0, 0, 6]), mx.array([0.0, 6, 0])

for name, query in ("pear", pear), ("lemon", lemon), ("both", pear + lemon):
    weights = mx.softmax(keys @ query, axis=-1)
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {weights @ values:.1f} cents")

# %% two-averages
heads = mx.stack(
    [mx.softmax(keys @ query, axis=-1) @ values for query in (pear, lemon)]
)
W_o = mx.array([1.0, -1])  # the first minus the second
print("the two heads:", *(f"{head:.1f}" for head in heads))
print(f"a pear costs {heads @ W_o:.1f} cents more than a lemon")
print(f"a lemon costs {heads[::-1] @ W_o:.1f} cents more than a pear")


# %% split-and-merge
def split(X, num_heads):
    """Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads)."""
    batch, n, d = X.shape
    return X.reshape(batch, n, num_heads, d // num_heads).swapaxes(1, 2)


def merge(X):
    """Put the heads side by side again: (batch, heads, n, width) to (batch, n, d)."""
    batch, num_heads, n, width = X.shape
    return X.swapaxes(1, 2).reshape(batch, n, num_heads * width)


# %% multi-head
def attend(q, k, v):
    """Return scaled dot-product attention over the last two axes."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return mx.softmax(scores, axis=-1) @ v


def multi_head(X, W_q, W_k, W_v, W_o, num_heads):
    """Compute self-attention with heads: project, split, attend, merge, project."""
    q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
    return merge(attend(q, k, v)) @ W_o


# %% shapes
mx.random.seed(0)
d, num_heads = 8, 2
X = mx.random.normal((1, 5, d))
W_q, W_k, W_v, W_o = (mx.random.normal((d, d)) / math.sqrt(d) for _ in range(4))
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
headwise_output = mx.concatenate(head_outputs, axis=-1) @ W_o

# %% the-layer
layer = d2l.MultiHeadAttention(d, num_heads, dropout=0)
layer(X, X, X)  # creates the weights
parts = layer.W_q, layer.W_k, layer.W_v, layer.W_o
for part, W in zip(parts, (W_q, W_k, W_v, W_o), strict=True):
    part.weight = W.T  # a layer stores its matrix transposed
layer_output = layer(X, X, X)
output = multi_head(X, W_q, W_k, W_v, W_o, num_heads)

# %% all-alike
print(f"largest output: {output.abs().max():.4f}")
for name, Y in ("head by head", headwise_output), ("the layer", layer_output):
    print(f"{name:>12}: largest difference {(Y - output).abs().max():.4f}")

# %% own-layer
framework_layer = nn.MultiHeadAttention(d, num_heads)
framework_layer.query_proj.weight = W_q.T
framework_layer.key_proj.weight = W_k.T
framework_layer.value_proj.weight = W_v.T
framework_layer.out_proj.weight = W_o.T
framework_output = framework_layer(X, X, X)
difference = (framework_output - output).abs().max()
print(f"MLX's own: largest difference {difference:.4f}")

# %% merged-wrongly
wrong_merge = attended.reshape(1, 5, d)  # the right shape, and the wrong numbers
print("shapes:", tuple(wrong_merge.shape), tuple(merge(attended).shape))
share_in_place = (wrong_merge == merge(attended)).mean()
print(f"numbers in their place: {share_in_place:.2f}")


# %% wrong-root
def sharpness(width):
    """Return the mean largest weight of a thousand queries in each of 8 heads."""
    mx.random.seed(0)
    q, k = mx.random.normal((2, 8, 1000, 64))  # 512 / 8 = 64
    scores = q @ k[:, :10].mT / math.sqrt(width)
    return mx.softmax(scores, axis=-1).max(axis=-1).mean()


for name, width in ("the head's 64", 64), ("the model's 512", 512):
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = mx.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in 1, 2, 4, 8, 16:
    layer = d2l.MultiHeadAttention(64, num_heads, dropout=0)
    products = d2l.multiply_adds(layer, tokens, tokens, tokens)
    parameters = sum(p.size for _, p in tree_flatten(layer.parameters()))
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{parameters:>12,}{products:>15,}"
        f"{layer.attention_weights.size:>9,}"
    )


# %% questions
def draw_questions(count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers."""
    alphabets = mx.argsort(mx.random.uniform(shape=(count, 26)), axis=1)
    letters = alphabets[:, :size]  # no letter twice
    numbers = mx.random.normal((count, size))
    # Each question asks for two different entries.
    indices = mx.argsort(mx.random.uniform(shape=(count, size, size)), axis=2)[..., :2]
    questions, pair_numbers = (
        mx.take_along_axis(array[:, None], indices, axis=2)
        for array in (letters, numbers)
    )
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


mx.random.seed(2)
letters, numbers, questions, answers = (array[0] for array in draw_questions(1))
print(
    "entries:",
    *(f"{chr(97 + x)} {y:.1f} " for x, y in zip(letters, numbers, strict=True)),
)
for (a, b), answer in zip(questions[:3], answers, strict=False):
    print(f"{chr(97 + a)} - {chr(97 + b)} = {answer:.1f}")


# %% comparer
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; MLX draws shorter ones."""
    embedding = nn.Embedding(rows, width)
    embedding.weight = mx.random.normal(embedding.weight.shape)
    return embedding


class Comparer(nn.Module):
    """A model that compares the numbers of two letters."""

    def __init__(self, num_heads, num_hiddens=32):
        super().__init__()
        self.letter, self.first, self.second = (
            make_table(26, num_hiddens) for _ in range(3)
        )
        self.number = nn.Linear(1, num_hiddens, bias=False)
        self.attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0)
        self.output = nn.Linear(num_hiddens, 1)

    def __call__(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., None])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        return self.output(self.attention(queries, entries, entries))[..., 0]


# %% train
def fit(model, draw, loss, steps):
    """Train the model, each step on a batch of new examples."""
    optimizer = optimizers.Adam(learning_rate=0.01, bias_correction=True)

    def batch_loss(*inputs, answers):
        return loss(model(*inputs), answers, reduction="mean")

    for _ in range(steps):
        *inputs, answers = draw()
        _, gradients = nn.value_and_grad(model, batch_loss)(*inputs, answers=answers)
        optimizer.update(model, gradients)
        # MLX computes lazily: without this line, all steps would pile up.
        mx.eval(model.parameters(), optimizer.state)
    return model


def train(num_heads, seed, **task):
    mx.random.seed(seed)
    model = Comparer(num_heads)
    model(*draw_questions(1)[:3])  # creates all parameters
    draw = partial(draw_questions, 32, **task)
    return fit(model, draw, nn.losses.mse_loss, steps=250)


# The same questions for every model.
differences = draw_questions(500)


def error(model, examples=differences):
    *inputs, answers = examples
    return ((model(*inputs) - answers) ** 2).mean().item()


models = {h: [train(h, seed) for seed in range(5)] for h in (1, 2, 4)}
errors = {h: [error(model) for model in runs] for h, runs in models.items()}

# %% errors tags=["tolerance:absolute=0.03"]
print("heads  mean squared error, five seeds: median (range)")
for h, runs in errors.items():
    print(f"{h:>5}  {statistics.median(runs):.3f} ({min(runs):.3f}-{max(runs):.3f})")

# %% two-heads-map tags=["tolerance:levels=16"]
mx.random.seed(4)
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
    W_o, num_heads = model.attention.W_o, model.attention.num_heads
    original = W_o.weight
    width = original.shape[1] // num_heads
    W_o.weight = mx.array(original)
    W_o.weight[:, head * width : (head + 1) * width] = 0  # stored transposed
    result = error(model)
    W_o.weight = original
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
    letters = mx.argsort(mx.random.uniform(shape=(count, 26)), axis=1)[:, :size]
    digits = mx.random.randint(0, 10, (count, size))
    order = mx.argsort(mx.random.uniform(shape=(count, size)), axis=1)
    pairs = mx.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    repeated = mx.take_along_axis(pairs, order[..., None], axis=1)
    tokens = mx.concatenate([pairs, repeated], axis=1).flatten(1)
    return tokens, mx.take_along_axis(digits, order, axis=1)


def format_tokens(tokens):
    return " ".join(chr(97 + x) if x < 26 else str(x - 26) for x in tokens.tolist())


for tokens in draw_texts(3)[0]:
    print(format_tokens(tokens))


# %% reader
class Reader(nn.Module):
    """One or two residual layers, with two causal heads in all."""

    def __init__(self, num_layers, num_hiddens=32, length=16):
        super().__init__()
        self.token, self.place = (
            make_table(36, num_hiddens),
            make_table(length, num_hiddens),
        )
        self.layers = [
            d2l.MultiHeadAttention(num_hiddens, 2 // num_layers, dropout=0)
            for _ in range(num_layers)
        ]
        self.output = nn.Linear(num_hiddens, 10)

    def __call__(self, tokens):
        X = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for layer in self.layers:
            X = X + layer(X, X, X, causal=True)
        half = tokens.shape[1] // 2
        return self.output(X[:, half::2])  # the letters of the second half


# %% train-readers
def train_reader(num_layers, seed):
    mx.random.seed(seed)
    model = Reader(num_layers)
    model(draw_texts(1)[0])
    return fit(model, partial(draw_texts, 64), nn.losses.cross_entropy, steps=150)


# The same texts for every model.
test = draw_texts(500)


def accuracy(model):
    tokens, digits = test
    return (model(tokens).argmax(axis=-1) == digits).mean().item()


readers = {count: [train_reader(count, seed) for seed in range(5)] for count in (1, 2)}
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
mx.random.seed(7)
tokens, _ = draw_texts(1)
model = readers[2][0]
model(tokens)
print(format_tokens(tokens[0]))
d2l.show_heatmaps(
    mx.concatenate([layer.attention_weights for layer in model.layers], axis=1),
    xlabel="Keys",
    ylabel="Queries",
    titles=["First layer", "Second layer"],
    figsize=(7, 3.5),
    cmap="Blues",
)

# %% solution-rank
mx.random.seed(0)
X = mx.random.normal((1, 20, d))
for num_heads in 1, 2, 4, 8:
    q, k = (split(X @ W, num_heads)[0, 0] for W in (W_q, W_k))  # the first head's
    rank = np.linalg.matrix_rank(q @ k.T)
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
mx.random.seed(0)
X = mx.random.normal((1, 5, d))
order = mx.array([4, 5, 6, 7, 0, 1, 2, 3])  # the second of two heads comes first
reordered_weights = [W[:, order] for W in (W_q, W_k, W_v)]
original_output = multi_head(X, W_q, W_k, W_v, W_o, 2)
reordered_output = multi_head(X, *reordered_weights, W_o[order], 2)
print(f"largest output: {original_output.abs().max():.4f}")
print(f"largest difference: {(reordered_output - original_output).abs().max():.4f}")

# %% solution-sum
adders = [train(1, seed, sign=1) for seed in range(5)]
sums = draw_questions(500, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
median, low, high = statistics.median(sum_errors), min(sum_errors), max(sum_errors)
print(f"one head, sums: mean squared error {median:.3f} ({low:.3f}-{high:.3f})")

# %% solution-mean-map tags=["tolerance:levels=16"]
mx.random.seed(0)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
weights = models[2][0].attention.attention_weights
d2l.show_heatmaps(
    mx.concatenate([weights, weights.mean(axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""
    W_o = model.layers[layer].W_o
    original = W_o.weight
    W_o.weight = mx.zeros_like(original)
    result = accuracy(model)
    W_o.weight = original
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
