# The lesson's PaddlePaddle code. Each cell is woven into the text where it is asked for
# by name; the file also runs on its own, from top to bottom.

# %% setup
import math
from functools import cache

from d2l_compat import paddle as d2l  # first: it turns down Paddle's log

import paddle
from paddle import nn
from paddle.nn import functional as F

paddle.seed(1)
# All tensors here are small; d2l.try_gpu() takes a GPU.
device = paddle.set_device(d2l.cpu())
# Weights from -1/sqrt(d) to 1/sqrt(d); Paddle's own are wider.
initializer = nn.initializer.XavierUniform(gain=1 / math.sqrt(3))
nn.initializer.set_global_initializer(initializer)


# %% scaling
paddle.seed(0)
for width in (4, 64, 1024):
    queries, keys = paddle.randn([2, 2000, width])
    scores = (queries * keys).sum(axis=-1)
    scaled = scores / math.sqrt(width)
    print(
        f"d = {width:>4}: spread {scores.std():5.2f}, over sqrt(d) {scaled.std():.2f}"
    )

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)
attention.eval()

X = d2l.ones((2, 4, num_hiddens))
valid_lens = d2l.tensor([3, 2])
tuple(attention(X, X, X, valid_lens).shape)


# %% by-hand
paddle.seed(0)
X = d2l.randn((2, 4, num_hiddens))
Y = attention(X, X, X, valid_lens)


def attend_by_hand(X, valid_len):
    """The formula, head by head, for one sequence."""
    projections = (attention.W_q, attention.W_k, attention.W_v)
    Q, K, V = (W(X).chunk(num_heads, axis=-1) for W in projections)
    masked = paddle.arange(len(X)) >= valid_len
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        heads.append(F.softmax(scores.masked_fill(masked, -math.inf), axis=-1) @ v)
    return attention.W_o(d2l.concat(heads, axis=-1))


by_hand = d2l.stack([attend_by_hand(X[i], valid_lens[i]) for i in range(2)])
print(f"largest difference: {(Y - by_hand).abs().max().item():.5f}")


# %% weights-check
weights = attention.attention_weights  # (batch, heads, queries, keys)
print("shape of the weights:", tuple(weights.shape))
for i, valid_len in enumerate(valid_lens.tolist()):
    valid, masked = weights[i, :, :, :valid_len], weights[i, :, :, valid_len:]
    sums, zeros = valid.sum(axis=-1), (masked == 0).sum().item()
    print(f"sequence {i + 1} has {valid_len} valid keys")
    print(f"  sums of weights: {sums.min().item():.5f} to {sums.max().item():.5f}")
    print(f"  masked weights exactly 0: {zeros} of {masked.size}")


# %% weights-heatmaps
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(num_heads)],
    figsize=(8, 3.5),
    cmap="Blues",
)

# %% equivariance
tokens = d2l.randn((1, 6, num_hiddens))
order = [3, 0, 5, 1, 4, 2]
add_positions = d2l.PositionalEncoding(num_hiddens, 0)


def without_positions(X):
    return attention(X, X, X)


def with_positions(X):
    return without_positions(add_positions(X))


for layer in (without_positions, with_positions):
    difference = layer(tokens[:, order]) - layer(tokens)[:, order]
    print(f"{layer.__name__:>17}: {difference.abs().max().item():.4f}")


# %% three-layers
n, d, k = 10, 16, 3

conv = nn.Conv1D(d, d, k, padding=k // 2, bias_attr=False, data_format="NLC")
# As attr: set_global_initializer overrules default_initializer.
orthogonal = nn.initializer.Orthogonal()
W_xh, W_hh = (
    paddle.create_parameter([d, d], "float32", attr=orthogonal) for _ in range(2)
)
small_attention = d2l.MultiHeadAttention(d, 2, 0)


def cnn(X):
    return conv(X)


def rnn(X, W_hh=W_hh):
    H, outputs = d2l.zeros((X.shape[0], d)), []
    for x in X.unbind(axis=1):
        # Not x @ W_xh: with a parameter @ cannot be traced.
        H = d2l.tanh(d2l.matmul(x, W_xh) + d2l.matmul(H, W_hh))
        outputs.append(H)
    return d2l.stack(outputs, axis=1)


def self_attention(X):
    return small_attention(X, X, X)


layers = {"CNN": cnn, "RNN": rnn, "self_attention": self_attention}
X = d2l.randn((1, n, d))
{name: tuple(layer(X).shape) for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """How strongly input j acts on output i: the norm of dy_i/dx_j, shape (n, n)."""
    X = X.detach()
    X.stop_gradient = False
    # Not paddle.autograd.jacobian: it asks for second derivatives, which softmax lacks.
    rows = [paddle.grad(y, X, retain_graph=True)[0] for y in layer(X).flatten()]
    jacobian = d2l.stack(rows).reshape([*X.shape[1:], *X.shape[1:]])
    return jacobian.square().sum(axis=[1, 3]).sqrt()


maps = [influence(layer, X) for layer in layers.values()]
for name, m in zip(layers, maps, strict=True):
    print(f"{name}: {m.count_nonzero().item()} of {m.size} pairs are connected")

# %% influence-heatmaps
d2l.show_heatmaps(
    d2l.stack([m / m.max() for m in maps]).unsqueeze(0),
    xlabel="Input j",
    ylabel="Output i",
    titles=["CNN", "RNN", "Self-attention"],
    figsize=(8, 3),
    cmap="Blues",
)


# %% receptive-field
def stacked(depth):
    def layer(X):
        for _ in range(depth):
            X = d2l.tanh(cnn(X))
        return X

    return layer


sees = influence(stacked(2), X)[2].nonzero().flatten() + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sees.tolist()))
for depth in range(1, 5):
    reached = bool(influence(stacked(depth), X)[4, 0] > 0)
    print(f"{depth} layers: y_5 depends on x_1: {reached}")

# %% sequential-operations
PRODUCTS = ("pd_op.matmul", "pd_op.bmm", "pd_op.conv2d")


def graph_of(layer, n):
    """All that a layer does with n tokens, written down as a program."""
    as_it_is = paddle.jit.not_to_static(layer)  # its Python is run, not translated
    shape = paddle.static.InputSpec([1, n, d])
    return paddle.jit.to_static(as_it_is, [shape], full_graph=True).concrete_program


def sequential_products(layer, n):
    """Products on the longest chain of operations that wait for each other."""

    @cache
    def longest(operation):
        inputs = [value.get_defining_op() for value in operation.operands_source()]
        return max(map(longest, inputs), default=0) + (operation.name() in PRODUCTS)

    program = graph_of(layer, n)
    return longest(program.outputs[0].get_defining_op())


def print_row(first, others):
    print(f"{first:>4}" + "".join(f"{other:>16}" for other in others))


print_row("n", layers)
for length in (4, 8, 16, 32):
    print_row(length, [sequential_products(layer, length) for layer in layers.values()])


# %% multiply-adds
def multiply_adds(layer, n):
    program, total = graph_of(layer, n), 0
    for operation in program.main_program.global_block().ops:
        if operation.name() in PRODUCTS:
            left, right = (value.shape for value in operation.operands_source())
            # Terms of one sum: a kernel has shape (outputs, inputs, 1, k).
            terms = math.prod(right[1:]) if len(right) == 4 else left[-1]
            total += math.prod(operation.result(0).shape) * terms
    return total


formulas = {
    "CNN": lambda n: k * n * d**2,
    "RNN": lambda n: 2 * n * d**2,
    "self_attention": lambda n: 4 * n * d**2 + 2 * n**2 * d,
}
print_row("n", [*layers, "as predicted"])
for length in (8, 16, 32, 64, 128):
    counts = {name: multiply_adds(layer, length) for name, layer in layers.items()}
    agree = all(counts[name] == formulas[name](length) for name in layers)
    print_row(length, [*(f"{count:,}" for count in counts.values()), str(agree)])


# %% positional-encoding
class PositionalEncoding(nn.Layer):
    """Adds sines and cosines of the position to each vector of a sequence."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        # Double precision: in single, far positions would be off by more than 5e-5.
        column = paddle.arange(num_hiddens, dtype="float64")
        position = paddle.arange(max_len, dtype="float64").unsqueeze(1)
        angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
        P = paddle.where(column % 2 == 0, d2l.sin(angle), d2l.cos(angle))
        self.register_buffer("P", P.astype("float32").unsqueeze(0), persistable=False)

    def forward(self, X, offset=0):
        end, max_len = offset + X.shape[1], self.P.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(
                f"no positions {offset} to {end - 1}: there are 0 to {max_len - 1}"
            )
        return self.dropout(X + self.P[:, offset:end])


# %% encoding-checks
paddle.seed(0)
encoding = PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
zeros = d2l.zeros((1, 10, 7))
one_by_one = [encoding(zeros[:, :1], offset=i) for i in range(10)]
library = d2l.PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
dropping = PositionalEncoding(num_hiddens=7, dropout=0.5, max_len=10)
dropped = dropping(zeros)  # layers start out in training

print(
    "one by one as all at once:",
    paddle.equal_all(encoding(zeros), d2l.concat(one_by_one, axis=1)).item(),
)
print("the same as the library's:", paddle.allclose(encoding.P, library.P).item())
print(
    "dropped or doubled in training:",
    paddle.all((dropped == 0) | (dropped == 2 * encoding.P)).item(),
)
print("trained:", list(encoding.parameters()), " saved:", list(encoding.state_dict()))
for offset in (-1, 1):
    try:
        encoding(zeros, offset=offset)
    except ValueError as error:
        print("ValueError:", error)


# %% scale-and-sum
paddle.seed(0)
d_model = 512
normal = nn.initializer.Normal(std=d_model**-0.5)
embedding = nn.Embedding(1000, d_model, weight_attr=normal)
encoding = PositionalEncoding(d_model, 0)

E = embedding(paddle.randint(0, 1000, (1, 60)))
scaled = E * math.sqrt(d_model)
X = encoding(scaled)
named = {
    "embedding": E,
    "scaled": scaled,
    "encoding": encoding.P[:, :60],
    "their sum": X,
}
for name, vectors in named.items():
    print(f"{name:>10}: mean length {vectors.norm(axis=-1).mean().item():.2f}")


# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding(d2l.zeros((1, num_steps, width)))[0]
d2l.plot(
    d2l.arange(num_steps),
    P[:, 6:10].T,
    xlabel="Row (position)",
    figsize=(6, 2.5),
    legend=[f"Col {column}" for column in range(6, 10)],
)


# %% binary
for i in range(8):
    print(f"{i} in binary is {i:>03b}")

# %% encoding-heatmap
d2l.show_heatmaps(
    P[None, None],
    xlabel="Column (encoding dimension)",
    ylabel="Row (position)",
    figsize=(3.5, 4),
    cmap="RdBu_r",
)

# %% dot-products
products = P @ P.T
distances = d2l.arange(-20, 21)  # i - j
rows = (20, 28, 36)
d2l.plot(
    distances,
    [products[i][i - distances] for i in rows],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in rows],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
spread = max((x.max() - x.min()).item() for x in diagonals)
print(f"P_i with itself: {products[0, 0].item():.4f}")
print(f"largest spread at any one distance: {spread:.4f}")


# %% rotation
pairs = P.unflatten(-1, (width // 2, 2))  # (position, pair, sine and cosine)
omega = 10000 ** -(d2l.arange(0, width, 2) / width)
largest = 0
for delta in (1, 2, 5, 10, 30, -5):
    sin, cos = d2l.sin(delta * omega), d2l.cos(delta * omega)
    rotations = d2l.stack([cos, sin, -sin, cos], axis=-1).unflatten(-1, (2, 2))
    i = d2l.arange(max(0, -delta), num_steps - max(0, delta))
    turned = (rotations @ pairs[i].unsqueeze(-1)).squeeze(-1)
    residual = (turned - pairs[i + delta]).abs().max().item()
    largest = max(largest, residual)
    print(
        f"delta {delta:>2}: {len(i) * len(omega)} pairs, on target: {residual < 1e-5}"
    )
print(f"largest residual: {largest:.1e}")


# %% solution-stacking
def diversity(X):
    """The share of X in which its tokens differ: 0 where all are the same."""
    return ((X - X.mean(axis=1, keepdim=True)).norm() / X.norm()).item()


paddle.seed(0)
depth = 8
blocks = [d2l.MultiHeadAttention(64, 4, 0) for _ in range(depth)]
start = d2l.PositionalEncoding(64, 0)(d2l.randn((1, 16, 64)))
curves = []
for skip in (False, True):
    X, curve = start, [diversity(start)]
    with paddle.no_grad():
        for block in blocks:
            X = block(X, X, X) + (X if skip else 0)
            curve.append(diversity(X))
    curves.append(curve)
d2l.plot(
    list(range(depth + 1)),
    curves,
    xlabel="Layers",
    ylabel="Diversity",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["attention alone", "with skip connections"],
)


# %% solution-learned
class LearnedPositionalEncoding(nn.Layer):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = nn.Embedding(max_len, num_hiddens)

    def forward(self, X):
        return X + self.P(paddle.arange(X.shape[1]))


class Reader(nn.Layer):
    """Embedding, encoding, self-attention, and a yes or no for the sequence."""

    def __init__(self, encoding, vocab_size=10, num_hiddens=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, num_hiddens)
        self.encoding = encoding
        self.attention = d2l.MultiHeadAttention(num_hiddens, 4, 0)
        self.output = nn.Sequential(
            nn.Linear(num_hiddens, num_hiddens), nn.ReLU(), nn.Linear(num_hiddens, 1)
        )

    def forward(self, tokens):
        X = self.encoding(self.embedding(tokens))
        return self.output(self.attention(X, X, X).mean(axis=1)).squeeze(-1)


# %% solution-learned-data
def sequences(count, length=8):
    """Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come first?"""
    tokens = paddle.randint(2, 10, (count, length))
    places = d2l.rand((count, length)).argsort(axis=1)[:, :2]
    tokens = tokens.put_along_axis(places, d2l.tensor([[0, 1]]), axis=1)
    return tokens, (places[:, 0] < places[:, 1]).astype("float32")


def mirrored(tokens, labels):
    """Every sequence twice: as it is, and with its 0 and 1 exchanged."""
    exchanged = paddle.where(tokens < 2, 1 - tokens, tokens)
    return d2l.concat([tokens, exchanged]), d2l.concat([labels, 1 - labels])


for tokens, label in zip(*mirrored(*sequences(1)), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% solution-learned-training
test_tokens, test_labels = mirrored(*sequences(500))
for name, encoding in (
    ("none", nn.Identity()),
    ("fixed", d2l.PositionalEncoding(32, 0)),
    ("learned", LearnedPositionalEncoding(32, 8)),
):
    paddle.seed(1)
    model = Reader(encoding)
    optimizer = paddle.optimizer.Adam(3e-3, parameters=model.parameters())
    for _ in range(300):
        tokens, labels = sequences(128)
        loss = F.binary_cross_entropy_with_logits(model(tokens), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    with paddle.no_grad():
        correct = (model(test_tokens) > 0) == (test_labels > 0)
    share = correct.astype("float32").mean().item()
    print(f"{name:>8}: {share:.1%}")

# %% solution-causal
paddle.seed(0)
causal_lens = d2l.arange(1, n + 1).unsqueeze(0)  # (batch, queries)
X = d2l.randn((1, n, d))
causal = influence(lambda X: small_attention(X, X, X, causal_lens), X)
print("any influence of the future:", bool(causal.triu(1).any()))
print("pairs connected:", causal.count_nonzero().item(), "of", causal.size)
d2l.show_heatmaps(
    (causal / causal.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
paddle.seed(0)
n_far = 24
X = d2l.randn((1, n_far, d))
fading = [influence(f, X)[:, 0] for f in (lambda X: rnn(X, 0.8 * W_hh), self_attention)]
d2l.plot(
    d2l.arange(n_far),
    [curve / curve[0] for curve in fading],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-7, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "self-attention"],
)


# %% solution-dilated
def layers_to_cross(n, growth):
    """Layers with k = 3 until the first of n tokens reaches the last output."""
    signal, kernel, depth = d2l.zeros((1, 1, n)), d2l.ones((1, 1, 3)), 0
    signal[..., 0] = 1
    while signal[..., -1] == 0:
        step = growth**depth
        signal = F.conv1d(signal, kernel, padding=step, dilation=step)
        signal, depth = signal.clip(max=1), depth + 1  # only whether it arrives
    return depth


print(f"{'n':>4}{'plain':>8}{'dilated':>9}")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{layers_to_cross(length, 1):>8}{layers_to_cross(length, 3):>9}")


# %% solution-decoding
paddle.seed(0)
encoding = PositionalEncoding(d, 0)
tokens = d2l.randn((1, n, d))
whole = encoding(tokens)
at_once = small_attention(whole, whole, whole, causal_lens)

kept, outputs = whole[:, :0], []
for i in range(n):
    x = encoding(tokens[:, i : i + 1], offset=i)
    kept = d2l.concat([kept, x], axis=1)
    outputs.append(small_attention(x, kept, kept))
difference = (at_once - d2l.concat(outputs, axis=1)).abs().max().item()
print(f"largest difference: {difference:.5f}")
