# The lesson's PaddlePaddle code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import copy
import math

from d2l_compat import paddle as d2l  # first: it turns down Paddle's log

import paddle
from paddle import nn
from paddle.nn import functional as F

paddle.seed(0)
paddle.set_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
# Weights from -1/sqrt(d) to 1/sqrt(d), where d is the mean of inputs and outputs;
# Paddle's default range is wider.
initializer = nn.initializer.XavierUniform(gain=1 / math.sqrt(3))

# %% one-average
fruits = ["apple", "lemon", "pear"]
keys = paddle.eye(3)  # each fruit has its own number
values = paddle.to_tensor([50.0, 40, 70])  # the price, in cents
pear = paddle.to_tensor([0.0, 0, 6])
lemon = paddle.to_tensor([0.0, 6, 0])

for name, query in [("pear", pear), ("lemon", lemon), ("both", pear + lemon)]:
    weights = F.softmax(keys @ query, axis=-1)
    shares = "".join(f"{weight:7.3f}" for weight in weights)
    print(f"{name:>5}:{shares}   {weights @ values:.1f} cents")

# %% two-averages
first_head = F.softmax(keys @ pear, axis=-1) @ values
second_head = F.softmax(keys @ lemon, axis=-1) @ values
heads = paddle.stack([first_head, second_head])
W_o = paddle.to_tensor([1.0, -1])  # the first minus the second
print(f"the two heads: {first_head:.1f} {second_head:.1f}")
print(f"a pear costs {heads @ W_o:.1f} cents more than a lemon")
print(f"a lemon costs {heads.flip(0) @ W_o:.1f} cents more than a pear")


# %% split-and-merge
def split(X, num_heads):
    """Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads)."""
    batch, n, d = X.shape
    return X.reshape([batch, n, num_heads, d // num_heads]).transpose([0, 2, 1, 3])


def merge(X):
    """Put the heads side by side again: (batch, heads, n, width) to (batch, n, d)."""
    batch, num_heads, n, width = X.shape
    return X.transpose([0, 2, 1, 3]).reshape([batch, n, num_heads * width])


# %% multi-head
class MultiHeadAttention(nn.Layer):
    """Attention with several heads: project, split, attend, merge, project."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, initializer, bias_attr=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, initializer, bias_attr=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, initializer, bias_attr=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, initializer, bias_attr=False)

    def forward(self, queries, keys, values, causal=False):
        q = split(self.W_q(queries), self.num_heads)
        k = split(self.W_k(keys), self.num_heads)
        v = split(self.W_v(values), self.num_heads)
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(q.shape[-1])
        if causal:  # the last query sees all keys, the one before it one fewer, ...
            num_queries, num_keys = scores.shape[-2:]
            is_visible = paddle.ones([num_queries, num_keys], dtype="bool")
            is_visible = paddle.tril(is_visible, diagonal=num_keys - num_queries)
            scores = scores.masked_fill(~is_visible, -math.inf)
        self.attention_weights = F.softmax(scores, axis=-1)
        return self.W_o(merge(self.attention_weights @ v))


# %% shapes
paddle.seed(0)
d = 8
num_heads = 2
X = paddle.randn([1, 5, d])
layer = MultiHeadAttention(d, num_heads)
with paddle.no_grad():
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
W_q = layer.W_q.weight.detach()
W_k = layer.W_k.weight.detach()
W_v = layer.W_v.weight.detach()
W_o = layer.W_o.weight.detach()
width = d // num_heads
head_outputs = []
for head in range(num_heads):
    columns = slice(head * width, (head + 1) * width)
    q = X @ W_q[:, columns]
    k = X @ W_k[:, columns]
    v = X @ W_v[:, columns]
    scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(width)
    head_outputs.append(F.softmax(scores, axis=-1) @ v)
headwise_output = paddle.concat(head_outputs, axis=-1) @ W_o

# %% the-layer
d2l_layer = d2l.MultiHeadAttention(d, d, d, d, num_heads, dropout=0)
d2l_layer.set_state_dict(layer.state_dict())
with paddle.no_grad():
    d2l_output = d2l_layer(X, X, X)
    d2l_causal_output = d2l_layer(X[:, -2:], X, X, causal=True)
    causal_output = layer(X[:, -2:], X, X, causal=True)  # the last two of five queries

# %% all-alike
print(f"largest output: {output.abs().max():.4f}")
difference = (headwise_output - output).abs().max()
print(f"head by head:         largest difference {difference:.4f}")
difference = (d2l_output - output).abs().max()
print(f"d2l's layer:          largest difference {difference:.4f}")
difference = (d2l_causal_output - causal_output).abs().max()
print(f"d2l's layer, causal:  largest difference {difference:.4f}")

# %% own-layer
framework_layer = nn.MultiHeadAttention(d, num_heads, bias_attr=False)
with paddle.no_grad():
    framework_layer.q_proj.weight.set_value(W_q)
    framework_layer.k_proj.weight.set_value(W_k)
    framework_layer.v_proj.weight.set_value(W_v)
    framework_layer.out_proj.weight.set_value(W_o)
    framework_output = framework_layer(X, X, X)
difference = (framework_output - output).abs().max()
print(f"Paddle's own: largest difference {difference:.4f}")

# %% merged-wrongly
wrong_merge = attended.reshape([1, 5, d])  # the right shape, and the wrong numbers
print("shapes:", tuple(wrong_merge.shape), tuple(merge(attended).shape))
share_in_place = (wrong_merge == merge(attended)).astype("float32").mean()
print(f"numbers in their place: {share_in_place:.2f}")


# %% wrong-root
def sharpness(width):
    """Return the mean largest weight of a thousand queries in each of 8 heads."""
    paddle.seed(0)
    q = paddle.randn([8, 1000, 64])  # 512 / 8 = 64
    k = paddle.randn([8, 10, 64])
    scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(width)
    return F.softmax(scores, axis=-1).max(axis=-1).mean()


for name, width in [("the head's 64", 64), ("the model's 512", 512)]:
    print(f"divided by the root of {name:>15}: {sharpness(width):.2f}")

# %% costs
tokens = paddle.zeros([1, 10, 64])
print("heads  width  parameters  multiply-adds  weights")
for num_heads in [1, 2, 4, 8, 16]:
    layer = MultiHeadAttention(64, num_heads)
    products = d2l.multiply_adds(layer, tokens, tokens, tokens)
    parameters = sum(p.size for p in layer.parameters())
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
    letters = paddle.rand([count, 26]).argsort(axis=1)[:, :size]  # no letter twice
    numbers = paddle.randn([count, size])
    # Each question asks for two different entries.
    orders = paddle.rand([count, size, size]).argsort(axis=2)
    indices = orders[:, :, :2].flatten(1)  # (count, 2 * size)
    questions = letters.take_along_axis(indices, axis=1).unflatten(1, [size, 2])
    pair_numbers = numbers.take_along_axis(indices, axis=1).unflatten(1, [size, 2])
    answers = pair_numbers[..., 0] + sign * pair_numbers[..., 1]
    return letters, numbers, questions, answers


paddle.seed(2)
letters, numbers, questions, answers = draw_questions(1)
pairs = zip(letters[0], numbers[0], strict=True)
entries = [f"{LETTERS[letter]} {number:.1f}" for letter, number in pairs]
print("entries:", "  ".join(entries))
for i in range(3):
    first, second = questions[0, i]
    print(f"{LETTERS[first]} - {LETTERS[second]} = {answers[0, i]:.1f}")


# %% comparer
class Comparer(nn.Layer):
    """A model that compares the numbers of two letters."""

    def __init__(self, num_heads, num_hiddens=32):
        super().__init__()
        normal = nn.initializer.Normal()  # by default, vectors would be far shorter
        self.letter = nn.Embedding(26, num_hiddens, weight_attr=normal)
        self.first = nn.Embedding(26, num_hiddens, weight_attr=normal)
        self.second = nn.Embedding(26, num_hiddens, weight_attr=normal)
        self.number = nn.Linear(1, num_hiddens, initializer, bias_attr=False)
        self.attention = MultiHeadAttention(num_hiddens, num_heads)
        self.output = nn.Linear(num_hiddens, 1, initializer)

    def forward(self, letters, numbers, questions):
        entries = self.letter(letters) + self.number(numbers.unsqueeze(-1))
        queries = self.first(questions[..., 0]) + self.second(questions[..., 1])
        return self.output(self.attention(queries, entries, entries)).squeeze(-1)


# %% train
def train(num_heads, seed, sign=-1):
    paddle.seed(seed)
    model = Comparer(num_heads)
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    for _ in range(250):
        letters, numbers, questions, answers = draw_questions(32, sign=sign)
        loss = F.mse_loss(model(letters, numbers, questions), answers)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return model


# %% comparer-errors
# The same questions for every model.
differences = draw_questions(500)


def error(model, examples=differences):
    """Return the mean squared error."""
    letters, numbers, questions, answers = examples
    with paddle.no_grad():
        return F.mse_loss(model(letters, numbers, questions), answers).item()


models = {}
errors = {}
for num_heads in [1, 2, 4]:
    models[num_heads] = [train(num_heads, seed) for seed in range(5)]
    errors[num_heads] = [error(model) for model in models[num_heads]]

# %% errors tags=["tolerance:absolute=0.03"]
results = {str(num_heads): runs for num_heads, runs in errors.items()}
d2l.print_ranges(results, ["mean squared error"], "heads", digits=3)

# %% two-heads-map tags=["tolerance:levels=16"]
paddle.seed(4)
letters, numbers, questions, _ = draw_questions(1)
with paddle.no_grad():
    models[2][0](letters, numbers, questions)


def name_questions(questions):
    return [f"{LETTERS[first]}-{LETTERS[second]}" for first, second in questions]


# Both letters of each question are framed.
is_asked = (letters[0] == questions[0][:, :, None]).any(axis=1)
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
    changed = copy.deepcopy(model)
    W_o = changed.attention.W_o.weight
    width = W_o.shape[0] // changed.attention.num_heads
    with paddle.no_grad():
        W_o[head * width : (head + 1) * width] = 0
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
    letters = paddle.rand([count, 26]).argsort(axis=1)[:, :size]
    digits = paddle.randint(10, shape=[count, size])
    order = paddle.rand([count, size]).argsort(axis=1)
    pairs = paddle.stack([letters, 26 + digits], axis=-1)  # tokens 26 to 35 are digits
    repeated = pairs.take_along_axis(order.unsqueeze(-1), axis=1)
    tokens = paddle.concat([pairs, repeated], axis=1).flatten(1)
    return tokens, digits.take_along_axis(order, axis=1)


def name_tokens(tokens):
    return [(LETTERS + "0123456789")[token] for token in tokens]


for tokens in draw_texts(3)[0]:
    print(*name_tokens(tokens))


# %% reader
class Reader(nn.Layer):
    """One or two residual layers, with two causal heads in all."""

    def __init__(self, num_layers, num_hiddens=32, length=16):
        super().__init__()
        normal = nn.initializer.Normal()
        self.token = nn.Embedding(36, num_hiddens, weight_attr=normal)
        self.place = nn.Embedding(length, num_hiddens, weight_attr=normal)
        num_heads = 2 // num_layers
        self.layers = nn.LayerList(
            [MultiHeadAttention(num_hiddens, num_heads) for _ in range(num_layers)]
        )
        self.output = nn.Linear(num_hiddens, 10, initializer)

    def forward(self, tokens):
        X = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for layer in self.layers:
            X = X + layer(X, X, X, causal=True)
        half = tokens.shape[1] // 2
        return self.output(X[:, half::2])  # the letters of the second half


# %% train-readers
def train_reader(num_layers, seed):
    paddle.seed(seed)
    model = Reader(num_layers)
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    for _ in range(100):
        tokens, digits = draw_texts(128)
        loss = F.cross_entropy(model(tokens), digits)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return model


# %% reader-accuracies
# The same texts for every model.
test = draw_texts(500)


def accuracy(model):
    tokens, digits = test
    with paddle.no_grad():
        predictions = model(tokens).argmax(axis=-1)
    return (predictions == digits).astype("float32").mean().item()


readers = {}
accuracies = {}
for num_layers in [1, 2]:
    readers[num_layers] = [train_reader(num_layers, seed) for seed in range(5)]
    accuracies[num_layers] = [accuracy(model) for model in readers[num_layers]]

# %% readers-shares tags=["tolerance:absolute=0.02"]
results = {str(num_layers): runs for num_layers, runs in accuracies.items()}
d2l.print_ranges(results, ["right"], "layers", digits=3)

# %% readers-maps tags=["nbval-ignore-output"]
paddle.seed(1)
tokens, _ = draw_texts(1)
model = readers[2][0]
with paddle.no_grad():
    model(tokens)
# First layer: a digit looks at its letter, just before it. Second layer: a letter of
# the second half looks just after its first appearance.
marks = paddle.zeros([2, 16, 16])
for i in range(1, 8, 2):
    marks[0, i, i - 1] = 1
for i in range(8, 16, 2):
    for j in range(0, 8, 2):
        if tokens[0, i] == tokens[0, j]:
            marks[1, i, j + 1] = 1
d2l.show_heatmaps(
    paddle.concat([layer.attention_weights for layer in model.layers], axis=1),
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
paddle.seed(0)
X = paddle.randn([1, 20, d])
for num_heads in [1, 2, 4, 8]:
    q = split(X @ W_q, num_heads)[0, 0]  # the first head's
    k = split(X @ W_k, num_heads)[0, 0]
    rank = paddle.linalg.matrix_rank(q @ k.T)
    print(f"heads: {num_heads}, width: {d // num_heads}, rank: {rank}")

# %% solution-order
paddle.seed(0)
X = paddle.randn([1, 5, d])
layer = MultiHeadAttention(d, num_heads=2)
order = [4, 5, 6, 7, 0, 1, 2, 3]  # the second of two heads comes first
reordered = copy.deepcopy(layer)
with paddle.no_grad():
    reordered.W_q.weight.set_value(layer.W_q.weight[:, order])
    reordered.W_k.weight.set_value(layer.W_k.weight[:, order])
    reordered.W_v.weight.set_value(layer.W_v.weight[:, order])
    reordered.W_o.weight.set_value(layer.W_o.weight[order])
    original_output = layer(X, X, X)
    reordered_output = reordered(X, X, X)
print(f"largest output: {original_output.abs().max():.4f}")
print(f"largest difference: {(reordered_output - original_output).abs().max():.4f}")

# %% solution-sum
adders = [train(1, seed, sign=1) for seed in range(5)]
sums = draw_questions(500, sign=1)
sum_errors = [error(model, sums) for model in adders]

# %% solution-sum-shown tags=["tolerance:absolute=0.03"]
d2l.print_ranges({"1": sum_errors}, ["mean squared error"], "heads", digits=3)

# %% solution-mean-map tags=["tolerance:levels=16"]
paddle.seed(0)
letters, numbers, questions, _ = draw_questions(1)
with paddle.no_grad():
    models[2][0](letters, numbers, questions)
weights = models[2][0].attention.attention_weights
is_asked = (letters[0] == questions[0][:, :, None]).any(axis=1)
d2l.show_heatmaps(
    paddle.concat([weights, weights.mean(axis=1, keepdim=True)], axis=1),
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
    changed = copy.deepcopy(model)
    with paddle.no_grad():
        changed.layers[layer].W_o.weight.zero_()
    return accuracy(changed)


accuracies_without = []
for layer in [0, 1]:
    accuracies_without.append([accuracy_without(model, layer) for model in readers[2]])

# %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
names = ["without the first", "without the second"]
results = dict(zip(names, accuracies_without, strict=True))
d2l.print_ranges(results, ["right"], "layer", digits=3)
