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

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = np.eye(3)  # each fruit has its own number
# np.array makes float32 even of whole numbers.
values = np.array([50, 40, 70])  # the price, in cents
pear = np.array([0, 0, 6])
lemon = np.array([0, 6, 0])

for name, query in [("pear", pear), ("lemon", lemon), ("both", pear + lemon)]:
    weights = npx.softmax(keys @ query, axis=-1)
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {weights @ values:.1f} cents")

# %% two-averages
first_head = npx.softmax(keys @ pear, axis=-1) @ values
second_head = npx.softmax(keys @ lemon, axis=-1) @ values
heads = np.stack([first_head, second_head])
W_o = np.array([1, -1])  # the first minus the second
print(f"the two heads: {first_head:.1f} {second_head:.1f}")
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
class MultiHeadAttention(nn.Block):
    """Attention with several heads: project, split, attend, merge, project."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        # By default, Dense would flatten all axes but the first into one.
        self.W_q = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_k = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_v = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_o = nn.Dense(
            num_hiddens, use_bias=False, flatten=False, in_units=num_hiddens
        )

    def __call__(self, queries, keys, values, causal=False):
        # Gluon passes arguments on by position only.
        return super().__call__(queries, keys, values, causal)

    def forward(self, queries, keys, values, causal):
        q = split(self.W_q(queries), self.num_heads)
        k = split(self.W_k(keys), self.num_heads)
        v = split(self.W_v(values), self.num_heads)
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        if causal:  # the last query sees all keys, the one before it one fewer, ...
            num_queries, num_keys = scores.shape[-2:]
            is_visible = np.ones((num_queries, num_keys), ctx=scores.ctx)
            is_visible = np.tril(is_visible, num_keys - num_queries)
            # An array: with a plain number, np.where would swap the gradients.
            hidden = np.array(-math.inf, ctx=scores.ctx)
            scores = np.where(is_visible, scores, hidden)
        self.attention_weights = npx.softmax(scores, axis=-1)
        return self.W_o(merge(self.attention_weights @ v))


# %% shapes
npx.random.seed(0)
d = 8
num_heads = 2
X = np.random.randn(1, 5, d)
layer = MultiHeadAttention(d, num_heads)
layer.initialize(initializer)
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
    print(f"{name:>8} {step.shape}")

# %% head-by-head
W_q = layer.W_q.weight.data().T  # nn.Dense stores it transposed
W_k = layer.W_k.weight.data().T
W_v = layer.W_v.weight.data().T
W_o = layer.W_o.weight.data().T
width = d // num_heads
head_outputs = []
for head in range(num_heads):
    columns = slice(head * width, (head + 1) * width)
    q = X @ W_q[:, columns]
    k = X @ W_k[:, columns]
    v = X @ W_v[:, columns]
    weights = npx.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(width), axis=-1)
    head_outputs.append(weights @ v)
headwise_output = np.concatenate(head_outputs, axis=-1) @ W_o

# %% the-layer
d2l_layer = d2l.MultiHeadAttention(d, num_heads, dropout=0)
d2l_layer.initialize()
d2l_layer.W_q.weight.set_data(layer.W_q.weight.data())
d2l_layer.W_k.weight.set_data(layer.W_k.weight.data())
d2l_layer.W_v.weight.set_data(layer.W_v.weight.data())
d2l_layer.W_o.weight.set_data(layer.W_o.weight.data())
d2l_output = d2l_layer(X, X, X)
d2l_causal_output = d2l_layer(X[:, -2:], X, X, causal=True)
causal_output = layer(X[:, -2:], X, X, causal=True)  # the last two of five queries

# %% all-alike
print(f"largest output: {np.abs(output).max():.4f}")
difference = np.abs(headwise_output - output).max()
print(f"head by head:         largest difference {difference:.4f}")
difference = np.abs(d2l_output - output).max()
print(f"d2l's layer:          largest difference {difference:.4f}")
difference = np.abs(d2l_causal_output - causal_output).max()
print(f"d2l's layer, causal:  largest difference {difference:.4f}")

# %% merged-wrongly
wrong_merge = attended.reshape(1, 5, d)  # the right shape, and the wrong numbers
print("shapes:", wrong_merge.shape, merge(attended).shape)
share_in_place = (wrong_merge == merge(attended)).mean()
print(f"numbers in their place: {share_in_place:.2f}")


# %% wrong-root
def sharpness(width):
    """Return the mean largest weight of a thousand queries in each of 8 heads."""
    npx.random.seed(0)
    q = np.random.randn(8, 1000, 64)  # 512 / 8 = 64
    k = np.random.randn(8, 10, 64)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(width)
    return npx.softmax(scores, axis=-1).max(axis=-1).mean()


for name, width in [("the head's 64", 64), ("the model's 512", 512)]:
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = np.zeros((1, 10, 64))
print("heads  width  parameters  multiply-adds  weights")
for num_heads in [1, 2, 4, 8, 16]:
    layer = MultiHeadAttention(64, num_heads)
    layer.initialize()
    products = d2l.multiply_adds(layer, tokens, tokens, tokens)
    parameters = sum(p.data().size for p in layer.collect_params().values())
    print(
        f"{num_heads:>5}{64 // num_heads:>7}{parameters:>12,}{products:>15,}"
        f"{layer.attention_weights.size:>9,}"
    )


# %% questions
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_questions(count, size=6, sign=-1):
    """Draw entries (a letter and a number each), pairs of letters, and the answers.

    An answer is the first letter's number plus `sign` times the second's. Letters,
    numbers and answers have shape (count, size), questions (count, size, 2).
    """
    letters = np.random.rand(count, 26).argsort(axis=1)[:, :size]  # no letter twice
    numbers = np.random.randn(count, size)
    # Each question asks for two different entries.
    orders = np.random.rand(count, size, size).argsort(axis=2)
    indices = orders[:, :, :2]
    rows = np.arange(count, dtype="int64")[:, None, None]
    questions = letters[rows, indices]
    pair_numbers = numbers[rows, indices]
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


npx.random.seed(2)
letters, numbers, questions, answers = draw_questions(1)
pairs = zip(letters[0].tolist(), numbers[0].tolist(), strict=True)
entries = [f"{LETTERS[letter]} {number:.1f}" for letter, number in pairs]
print("entries:", "  ".join(entries))
for i in range(3):
    first, second = questions[0, i].tolist()
    print(f"{LETTERS[first]} - {LETTERS[second]} = {answers[0, i]:.1f}")


# %% comparer
class Comparer(nn.Block):
    """A model that compares the numbers of two letters."""

    def __init__(self, num_heads, num_hiddens=32):
        super().__init__()
        normal = init.Normal(1)  # by default, vectors would be far shorter
        self.letter = nn.Embedding(26, num_hiddens, weight_initializer=normal)
        self.first = nn.Embedding(26, num_hiddens, weight_initializer=normal)
        self.second = nn.Embedding(26, num_hiddens, weight_initializer=normal)
        self.number = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.attention = MultiHeadAttention(num_hiddens, num_heads)
        self.output = nn.Dense(1, flatten=False)

    def forward(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers[..., None])
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        return self.output(self.attention(queries, entries, entries)).squeeze(-1)


# %% train
def train(num_heads, seed, sign=-1):
    npx.random.seed(seed)
    model = Comparer(num_heads)
    model.initialize(initializer)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.015})
    # Cut examples into batches: drawing all of them at once is faster.
    letters, numbers, questions, answers = draw_questions(100 * 128, sign=sign)
    for step in range(100):
        batch = slice(128 * step, 128 * (step + 1))
        with autograd.record():
            predictions = model(letters[batch], numbers[batch], questions[batch])
            # A loss for each example: the trainer divides by the batch size.
            loss = ((predictions - answers[batch]) ** 2).mean(axis=1)
        loss.backward()
        trainer.step(batch_size=128)
    return model


# %% comparer-errors
# The same questions for every model.
differences = draw_questions(1000)


def error(model, examples=differences):
    """Return the mean squared error."""
    letters, numbers, questions, answers = examples
    return ((model(letters, numbers, questions) - answers) ** 2).mean().item()


models = {}
errors = {}
for num_heads in [1, 2, 4]:
    models[num_heads] = [train(num_heads, seed) for seed in range(5)]
    errors[num_heads] = [error(model) for model in models[num_heads]]

# %% errors tags=["tolerance:absolute=0.03"]
results = {str(num_heads): runs for num_heads, runs in errors.items()}
d2l.print_ranges(results, ["mean squared error"], "heads", digits=3)

# %% two-heads-map tags=["tolerance:levels=16"]
npx.random.seed(4)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)


def name_questions(questions):
    pairs = questions.tolist()
    return [f"{LETTERS[first]}-{LETTERS[second]}" for first, second in pairs]


# Both letters of each question are framed.
is_asked = (letters[0] == questions[0][:, :, None]).any(axis=1)
d2l.show_heatmaps(
    models[2][0].attention.attention_weights,
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2"],
    figsize=(6, 3),
    cmap="Blues",
    xticklabels=[LETTERS[letter] for letter in letters[0].tolist()],
    yticklabels=name_questions(questions[0]),
    marks=is_asked,
)


# %% without-a-head
def copy_parameters(model, new_model):
    """Give a new model the parameters of a trained one."""
    new_model.initialize()
    targets = new_model.collect_params().values()
    sources = model.collect_params().values()
    for target, source in zip(targets, sources, strict=True):
        target.set_data(source.data())


def error_without(model, head):
    """Return the error after setting a head's rows of W_o to zero."""
    changed = Comparer(model.attention.num_heads)
    copy_parameters(model, changed)
    W_o = changed.attention.W_o.weight.data()  # stored transposed
    width = W_o.shape[1] // changed.attention.num_heads
    W_o[:, head * width : (head + 1) * width] = 0
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
    rows = np.arange(count, dtype="int64")[:, None]
    repeated = pairs[rows, order]
    tokens = np.concatenate([pairs, repeated], axis=1).reshape(count, 4 * size)
    return tokens, digits[rows, order]


def name_tokens(tokens):
    return [(LETTERS + "0123456789")[token] for token in tokens.tolist()]


for tokens in draw_texts(3)[0]:
    print(*name_tokens(tokens))


# %% reader
class Reader(nn.Block):
    """One or two residual layers, with two causal heads in all."""

    def __init__(self, num_layers, num_hiddens=32, length=16):
        super().__init__()
        normal = init.Normal(1)
        self.token = nn.Embedding(36, num_hiddens, weight_initializer=normal)
        self.place = nn.Embedding(length, num_hiddens, weight_initializer=normal)
        num_heads = 2 // num_layers
        self.layers = nn.Sequential()
        for _ in range(num_layers):
            self.layers.add(MultiHeadAttention(num_hiddens, num_heads))
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
    tokens, digits = draw_texts(100 * 128)
    for step in range(100):
        batch = slice(128 * step, 128 * (step + 1))
        with autograd.record():
            loss = cross_entropy(model(tokens[batch]), digits[batch])
        loss.backward()
        trainer.step(batch_size=128)
    return model


# %% reader-accuracies
# The same texts for every model.
test = draw_texts(500)


def accuracy(model):
    tokens, digits = test
    return (model(tokens).argmax(axis=-1) == digits).mean().item()


readers = {}
accuracies = {}
for num_layers in [1, 2]:
    readers[num_layers] = [train_reader(num_layers, seed) for seed in range(5)]
    accuracies[num_layers] = [accuracy(model) for model in readers[num_layers]]

# %% readers-shares tags=["tolerance:absolute=0.03"]
results = {str(num_layers): runs for num_layers, runs in accuracies.items()}
d2l.print_ranges(results, ["right"], "layers", digits=3)

# %% readers-maps tags=["nbval-ignore-output"]
npx.random.seed(0)
tokens, _ = draw_texts(1)
model = readers[2][0]
model(tokens)
# First layer: a digit looks at its letter, just before it. Second layer: a letter of
# the second half looks just after its first appearance.
marks = np.zeros((2, 16, 16))
for i in range(1, 8, 2):
    marks[0, i, i - 1] = 1
for i in range(8, 16, 2):
    for j in range(0, 8, 2):
        if tokens[0, i] == tokens[0, j]:
            marks[1, i, j + 1] = 1
d2l.show_heatmaps(
    np.concatenate([layer.attention_weights for layer in model.layers], axis=1),
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
npx.random.seed(0)
X = np.random.randn(1, 20, d)
for num_heads in [1, 2, 4, 8]:
    q = split(X @ W_q, num_heads)[0, 0]  # the first head's
    k = split(X @ W_k, num_heads)[0, 0]
    rank = np.linalg.matrix_rank(q @ k.T)
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
npx.random.seed(0)
X = np.random.randn(1, 5, d)
layer = MultiHeadAttention(d, num_heads=2)
layer.initialize(initializer)
original_output = layer(X, X, X)
order = [4, 5, 6, 7, 0, 1, 2, 3]  # the second of two heads comes first
reordered = MultiHeadAttention(d, num_heads=2)
reordered.initialize()
reordered.W_q.weight.set_data(layer.W_q.weight.data()[order])  # stored transposed
reordered.W_k.weight.set_data(layer.W_k.weight.data()[order])
reordered.W_v.weight.set_data(layer.W_v.weight.data()[order])
reordered.W_o.weight.set_data(layer.W_o.weight.data()[:, order])
reordered_output = reordered(X, X, X)
print(f"largest output: {np.abs(original_output).max():.4f}")
print(f"largest difference: {np.abs(reordered_output - original_output).max():.4f}")

# %% solution-sum
adders = [train(1, seed, sign=1) for seed in range(5)]
sums = draw_questions(1000, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
d2l.print_ranges({"1": sum_errors}, ["mean squared error"], "heads", digits=3)

# %% solution-mean-map tags=["tolerance:levels=16"]
npx.random.seed(0)
letters, numbers, questions, _ = draw_questions(1)
models[2][0](letters, numbers, questions)
weights = models[2][0].attention.attention_weights
is_asked = (letters[0] == questions[0][:, :, None]).any(axis=1)
d2l.show_heatmaps(
    np.concatenate([weights, weights.mean(axis=1, keepdims=True)], axis=1),
    xlabel="Entries",
    ylabel="Questions",
    titles=["Head 1", "Head 2", "Mean"],
    figsize=(8, 3),
    cmap="Blues",
    xticklabels=[LETTERS[letter] for letter in letters[0].tolist()],
    yticklabels=name_questions(questions[0]),
    marks=is_asked,
)


# %% solution-without-a-layer
def accuracy_without(model, layer):
    """Return the accuracy when one layer contributes nothing."""
    changed = Reader(len(model.layers))
    copy_parameters(model, changed)
    changed.layers[layer].W_o.initialize(init.Zero(), force_reinit=True)
    return accuracy(changed)


accuracies_without = []
for layer in [0, 1]:
    accuracies_without.append([accuracy_without(model, layer) for model in readers[2]])

# %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
names = ["without the first", "without the second"]
results = dict(zip(names, accuracies_without, strict=True))
d2l.print_ranges(results, ["right"], "layer", digits=3)
