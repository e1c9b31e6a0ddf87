# The lesson's MXNet code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics

# This import comes first: MXNet, which is older than NumPy 2, cannot be imported
# without it. It also turns on MXNet's NumPy arrays, as npx.set_np() does.
from d2l_compat import mxnet as d2l

from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn
from mxnet.test_utils import set_default_context

set_default_context(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
npx.random.seed(0)
initializer = init.Xavier(magnitude=1)  # weights from -1/sqrt(d) to 1/sqrt(d)

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = d2l.eye(3)  # each fruit has its own number
values = d2l.tensor([50, 40, 70])  # the price, in cents
pear, lemon = d2l.tensor([0, 0, 6]), d2l.tensor([0, 6, 0])

for name, query in ("pear", pear), ("lemon", lemon), ("both", pear + lemon):
    weights = npx.softmax(keys @ query, axis=-1)
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {weights @ values:.1f} cents")

# %% two-averages
heads = d2l.stack(
    [npx.softmax(keys @ query, axis=-1) @ values for query in (pear, lemon)]
)
W_o = d2l.tensor([1, -1])  # the first minus the second
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
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return npx.softmax(scores, axis=-1) @ v


def multi_head(X, W_q, W_k, W_v, W_o, num_heads):
    """Compute self-attention with heads: project, split, attend, merge, project."""
    q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
    return merge(attend(q, k, v)) @ W_o


# %% shapes
npx.random.seed(0)
d, num_heads = 8, 2
X = d2l.randn(1, 5, d)
W_q, W_k, W_v, W_o = (d2l.randn(d, d) / math.sqrt(d) for _ in range(4))
q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))
attended = attend(q, k, v)
merged = merge(attended)
steps = {"X": X, "X W_q": X @ W_q, "split": q}
steps |= {"attended": attended, "merged": merged, "output": merged @ W_o}
for name, step in steps.items():
    print(f"{name:>8} {step.shape}")

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
layer.initialize(initializer)
layer(X, X, X)
parts = layer.W_q, layer.W_k, layer.W_v, layer.W_o
for part, W in zip(parts, (W_q, W_k, W_v, W_o), strict=True):
    part.weight.set_data(W.T)
layer_output = layer(X, X, X)
output = multi_head(X, W_q, W_k, W_v, W_o, num_heads)

# %% all-alike
print(f"largest output: {np.abs(output).max():.4f}")
for name, Y in ("head by head", headwise_output), ("the layer", layer_output):
    print(f"{name:>12}: largest difference {np.abs(Y - output).max():.4f}")

# %% merged-wrongly
wrong_merge = attended.reshape(1, 5, d)  # the right shape, and the wrong numbers
print("shapes:", wrong_merge.shape, merge(attended).shape)
share_in_place = (wrong_merge == merge(attended)).mean()
print(f"numbers in their place: {share_in_place:.2f}")


# %% wrong-root
def sharpness(width):
    """Return the mean largest weight of a thousand queries in each of 8 heads."""
    npx.random.seed(0)
    q, k = d2l.randn(2, 8, 1000, 64)  # 512 / 8 = 64
    scores = q @ k[:, :10].swapaxes(-1, -2) / math.sqrt(width)
    return npx.softmax(scores, axis=-1).max(axis=-1).mean()


for name, width in ("the head's 64", 64), ("the model's 512", 512):
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = d2l.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in 1, 2, 4, 8, 16:
    layer = d2l.MultiHeadAttention(64, num_heads, dropout=0)
    layer.initialize()
    products = d2l.multiply_adds(layer, tokens, tokens, tokens)
    parameters = sum(p.data().size for p in layer.collect_params().values())
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{parameters:>12,}{products:>15,}"
        f"{layer.attention_weights.size:>9,}"
    )


# %% questions
def draw_questions(count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers."""
    letters = d2l.rand(count, 26).argsort(axis=1)[:, :size]  # no letter twice
    numbers = d2l.randn(count, size)
    # Each question asks for two different entries.
    indices = d2l.rand(count, size, size).argsort(axis=2)[:, :, :2]
    rows = np.arange(count, dtype="int64")[:, None, None]
    questions, pair_numbers = letters[rows, indices], numbers[rows, indices]
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


npx.random.seed(2)
letters, numbers, questions, answers = (array[0] for array in draw_questions(1))
print(
    "entries:",
    *(
        f"{chr(97 + x)} {y:.1f} "
        for x, y in zip(letters.tolist(), numbers.tolist(), strict=True)
    ),
)
for (a, b), answer in zip(questions[:3].tolist(), answers, strict=False):
    print(f"{chr(97 + a)} - {chr(97 + b)} = {answer:.1f}")


# %% comparer
class Comparer(nn.Block):
    """A model that compares the numbers of two letters."""

    def __init__(self, num_heads, num_hiddens=32):
        super().__init__()
        self.letter, self.first, self.second = (
            nn.Embedding(26, num_hiddens, weight_initializer=init.Normal(1))
            for _ in range(3)
        )
        self.number = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0)
        self.output = nn.Dense(1, flatten=False)

    def forward(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., None])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        return self.output(self.attention(queries, entries, entries)).squeeze(-1)


# %% train
def cut_batches(count, examples):
    """Cut examples into batches: drawing all of them at once is faster."""
    return zip(*(np.split(array, count) for array in examples), strict=True)


def train(num_heads, seed, **task):
    npx.random.seed(seed)
    model = Comparer(num_heads)
    model.initialize(initializer)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.015})
    for *inputs, answers in cut_batches(100, draw_questions(100 * 128, **task)):
        with autograd.record():
            loss = ((model(*inputs) - answers) ** 2).mean(axis=1)
        loss.backward()
        trainer.step(batch_size=128)
    return model


# The same questions for every model.
differences = draw_questions(1000)


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
npx.random.seed(4)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
print("entries:  ", *(chr(97 + x) for x in letters[0].tolist()))
print("questions:", *(f"{chr(97 + a)}-{chr(97 + b)}" for a, b in questions[0].tolist()))
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
    W_o, num_heads = model.attention.W_o.weight, model.attention.num_heads
    width = W_o.shape[1] // num_heads
    original = W_o.data().copy()
    W_o.data()[:, head * width : (head + 1) * width] = 0  # stored transposed
    result = error(model)
    W_o.set_data(original)
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
    letters = d2l.rand(count, 26).argsort(axis=1)[:, :size]
    digits = np.random.randint(10, size=(count, size))
    order = d2l.rand(count, size).argsort(axis=1)
    pairs = d2l.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    rows = np.arange(count, dtype="int64")[:, None]
    tokens = d2l.concat([pairs, pairs[rows, order]], axis=1)
    return tokens.reshape(count, 4 * size), digits[rows, order]


def format_tokens(tokens):
    return " ".join(chr(97 + x) if x < 26 else str(x - 26) for x in tokens.tolist())


for tokens in draw_texts(3)[0]:
    print(format_tokens(tokens))


# %% reader
class Reader(nn.Block):
    """One or two residual layers, with two causal heads in all."""

    def __init__(self, num_layers, num_hiddens=32, length=16):
        super().__init__()
        self.token, self.place = (
            nn.Embedding(n, num_hiddens, weight_initializer=init.Normal(1))
            for n in (36, length)
        )
        self.layers = nn.Sequential()
        for _ in range(num_layers):
            layer = d2l.MultiHeadAttention(num_hiddens, 2 // num_layers, dropout=0)
            self.layers.add(layer)
        self.output = nn.Dense(10, flatten=False)

    def forward(self, tokens):
        X = self.token(tokens) + self.place(np.arange(tokens.shape[1]))
        for layer in self.layers:
            X = X + layer(X, X, X, causal=True)
        half = tokens.shape[1] // 2
        return self.output(X[:, half::2])  # the letters of the second half


# %% train-readers
def train_reader(num_layers, seed):
    npx.random.seed(seed)
    model = Reader(num_layers)
    model.initialize(initializer)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.01})
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    cross_entropy.hybridize()  # one operation instead of several
    for tokens, digits in cut_batches(100, draw_texts(100 * 128)):
        with autograd.record():
            loss = cross_entropy(model(tokens), digits)
        loss.backward()
        trainer.step(batch_size=128)
    return model


# The same texts for every model.
test = draw_texts(500)


def accuracy(model):
    tokens, digits = test
    return (model(tokens).argmax(axis=-1) == digits).mean().item()


readers = {count: [train_reader(count, seed) for seed in range(5)] for count in (1, 2)}
accuracies = {
    count: [accuracy(model) for model in runs] for count, runs in readers.items()
}

# %% readers-shares tags=["tolerance:absolute=0.03"]
for count, runs in accuracies.items():
    print(
        f"layers: {count}, right: {statistics.median(runs):.3f} "
        f"({min(runs):.3f}-{max(runs):.3f})"
    )

# %% readers-maps tags=["nbval-ignore-output"]
npx.random.seed(0)
tokens, _ = draw_texts(1)
model = readers[2][0]
model(tokens)
print(format_tokens(tokens[0]))
d2l.show_heatmaps(
    d2l.concat([layer.attention_weights for layer in model.layers], axis=1),
    xlabel="Keys",
    ylabel="Queries",
    titles=["First layer", "Second layer"],
    figsize=(7, 3.5),
    cmap="Blues",
)

# %% solution-rank
npx.random.seed(0)
X = d2l.randn(1, 20, d)
for num_heads in 1, 2, 4, 8:
    q, k = (split(X @ W, num_heads)[0, 0] for W in (W_q, W_k))  # the first head's
    rank = np.linalg.matrix_rank(q @ k.T)
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
npx.random.seed(0)
X = d2l.randn(1, 5, d)
order = [4, 5, 6, 7, 0, 1, 2, 3]  # the second of two heads comes first
reordered_weights = [W[:, order] for W in (W_q, W_k, W_v)]
original_output = multi_head(X, W_q, W_k, W_v, W_o, 2)
reordered_output = multi_head(X, *reordered_weights, W_o[order], 2)
print(f"largest output: {np.abs(original_output).max():.4f}")
print(f"largest difference: {np.abs(reordered_output - original_output).max():.4f}")

# %% solution-sum
adders = [train(1, seed, sign=1) for seed in range(5)]
sums = draw_questions(1000, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
median, low, high = statistics.median(sum_errors), min(sum_errors), max(sum_errors)
print(f"one head, sums: mean squared error {median:.3f} ({low:.3f}-{high:.3f})")

# %% solution-mean-map tags=["tolerance:levels=16"]
npx.random.seed(0)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
weights = models[2][0].attention.attention_weights
d2l.show_heatmaps(
    d2l.concat([weights, weights.mean(axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""
    W_o = model.layers[layer].W_o.weight
    original = W_o.data().copy()
    W_o.set_data(np.zeros_like(original))
    result = accuracy(model)
    W_o.set_data(original)
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
