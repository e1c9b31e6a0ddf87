# The lesson's PaddlePaddle code. Each cell is woven into the text where it is asked for
# by name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics

from d2l_compat import paddle as d2l  # first: it turns down Paddle's log

import paddle
from paddle import nn
from paddle.nn import functional as F

paddle.seed(0)
paddle.set_device(d2l.cpu())  # all is small here; d2l.try_gpu() takes a GPU
# Weights from -1/sqrt(d) to 1/sqrt(d); Paddle's own are wider.
initializer = nn.initializer.XavierUniform(gain=1 / math.sqrt(3))
nn.initializer.set_global_initializer(initializer)

# %% six-words
words = "the cat sat because it purred".split()
# How much of a thing a word is, and how much of an action.
X = d2l.tensor([[0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2.0]])

query = X[4]  # it
scores = X @ query  # how well does each word fit?
weights = scores.exp() / scores.exp().sum()  # softmax: positive, and 1 in all
output = weights @ X  # the average, in these shares

for score, weight, word in zip(scores.tolist(), weights.tolist(), words, strict=True):
    print(f"{score:5.0f}{weight:8.2f}   {word}")
print("it, having looked around:", [round(x, 2) for x in output.tolist()])

# %% all-words
weights = F.softmax(X @ X.T, axis=-1)  # a row for each query
Y = weights @ X
for row, word in zip(weights.tolist(), words, strict=True):
    print("".join(f"{weight:8.2f}" for weight in row), "  ", word)

# %% three-roles
W_q = d2l.tensor([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = W_v = d2l.eye(2)

Q, K, V = X @ W_q, X @ W_k, X @ W_v
weights = F.softmax(Q @ K.T, axis=-1)
Y = weights @ V
for row, word in zip(weights.tolist(), words, strict=True):
    print("".join(f"{weight:8.2f}" for weight in row), "  ", word)


# %% saturation
def peak_and_slope(scores):
    """Of the softmax: its largest weight, and the norm of its derivative."""
    weights = F.softmax(scores, axis=-1)
    outer = weights.unsqueeze(2) * weights.unsqueeze(1)
    derivative = paddle.diag_embed(weights) - outer
    slope = derivative.norm("fro", axis=[1, 2])
    return weights.max(axis=1).mean().item(), slope.mean().item()


widths = [2**power for power in range(2, 11)]
measured = []
for width in widths:
    queries, keys = paddle.randn([1000, 1, width]), paddle.randn([1000, 10, width])
    scores = (queries * keys).sum(axis=-1)  # (queries, keys)
    scaled = scores / math.sqrt(width)
    spread = scores.std().item(), scaled.std().item()
    measured.append((spread, peak_and_slope(scores), peak_and_slope(scaled)))

# %% scaling
for width, (spread, plain, scaled) in zip(widths, measured, strict=True):
    if width in (4, 64, 1024):
        print(f"d = {width}")
        print(f"  spread {spread[0]:5.2f}, largest weight {plain[0]:.2f}")
        print(f"  spread {spread[1]:5.2f}, largest weight {scaled[0]:.2f}, scaled")

# %% slopes
d2l.plot(
    widths,
    [[plain[1] for _, plain, _ in measured], [scaled[1] for *_, scaled in measured]],
    xlabel="Width d",
    ylabel="Slope of the softmax",
    xscale="log",
    ylim=(0, 0.4),
    figsize=(6, 2.5),
    legend=["plain", "scaled"],
)

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)
attention.eval()

X = d2l.ones((2, 4, num_hiddens))
valid_lens = d2l.tensor([3, 2])
tuple(attention(X, X, X, valid_lens).shape)


# %% by-hand
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


X = d2l.randn((2, 4, num_hiddens))
Y = attention(X, X, X, valid_lens)
by_hand = d2l.stack([attend_by_hand(X[i], valid_lens[i]) for i in range(2)])

# %% by-hand-difference
print(f"largest number in Y:  {Y.abs().max().item():.5f}")
print(f"largest difference:   {(Y - by_hand).abs().max().item():.5f}")

# %% weights-heatmaps
weights = attention.attention_weights  # (batch, heads, queries, keys)
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(num_heads)],
    figsize=(8, 3.5),
    cmap="Blues",
)

# %% six-tokens
tokens = d2l.randn((1, 6, num_hiddens))
order = [3, 0, 5, 1, 4, 2]
add_positions = d2l.PositionalEncoding(num_hiddens, 0)
earlier_only = d2l.arange(1, 7).unsqueeze(0)  # valid lengths, one for each query


def plain(X):
    return attention(X, X, X)


def with_mask(X):
    return attention(X, X, X, earlier_only)


def with_positions(X):
    return plain(add_positions(X))


# %% equivariance
print(f"outputs up to {plain(tokens).abs().max().item():.4f}")
named = {"plain": plain, "causal mask": with_mask, "positions": with_positions}
for name, layer in named.items():
    difference = layer(tokens[:, order]) - layer(tokens)[:, order]
    print(f"differ by {difference.abs().max().item():.4f}: {name}")

# %% cnn-and-rnn
n, d, k = 10, 16, 3

conv = nn.Conv1D(d, d, k, padding=k // 2, bias_attr=False, data_format="NLC")
# As attr: set_global_initializer overrules default_initializer.
orthogonal = nn.initializer.Orthogonal()
W_xh, W_hh = (
    paddle.create_parameter([d, d], "float32", attr=orthogonal) for _ in range(2)
)


def cnn(X):
    return conv(X)


def rnn(X, W_hh=W_hh):
    H, outputs = d2l.zeros((X.shape[0], d)), []
    for x in X.unbind(axis=1):
        # Not x @ W_xh: with a parameter @ cannot be traced.
        H = d2l.tanh(d2l.matmul(x, W_xh) + d2l.matmul(H, W_hh))
        outputs.append(H)
    return d2l.stack(outputs, axis=1)


# %% three-layers
small_attention = d2l.MultiHeadAttention(d, 2, 0)


def self_attention(X):
    return small_attention(X, X, X)


layers = {"CNN": cnn, "RNN": rnn, "Self-attention": self_attention}
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

# %% influence-heatmaps
for name, m in zip(layers, maps, strict=True):
    print(f"{name}: {m.count_nonzero().item()} of {m.size} pairs are connected")
d2l.show_heatmaps(
    d2l.stack([m / m.max() for m in maps]).unsqueeze(0),
    xlabel="Input j",
    ylabel="Output i",
    titles=list(layers),
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


seen = [influence(stacked(depth), X) for depth in range(1, 5)]

# %% reach
sees = [f"x_{j + 1}" for j in seen[1][2].nonzero().flatten().tolist()]
print("two layers: y_3 depends on", ", ".join(sees))
for depth, m in enumerate(seen, 1):
    print(f"{depth} layers: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(first, others):
    print(f"{first:>4}" + "".join(f"{other:>16}" for other in others))


print_row("n", layers)
for length in (4, 8, 16, 32):
    X = d2l.zeros((1, length, d))
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers.values()])

# %% multiply-adds
print_row("n", [*layers, "as predicted"])
for length in (8, 16, 32, 64, 128):
    X = d2l.zeros((1, length, d))
    counts = [d2l.multiply_adds(layer, X) for layer in layers.values()]
    of_attention = 4 * length * d**2 + 2 * length**2 * d
    agree = counts == [k * length * d**2, 2 * length * d**2, of_attention]
    print_row(length, [*(f"{count:,}" for count in counts), "yes" if agree else "no"])


# %% positional-encoding
class PositionalEncoding(nn.Layer):
    """Adds sines and cosines of the position to each vector of a sequence."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        # In double precision: the sine of a large angle needs the digits.
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


# %% scale-and-sum
d_model = 512
ids = paddle.randint(0, 1000, (1, 60))
nn.initializer.set_global_initializer(None)  # Paddle's own, for once
as_made = nn.Embedding(1000, d_model)
nn.initializer.set_global_initializer(initializer)
normal = nn.initializer.Normal(std=d_model**-0.5)
small = nn.Embedding(1000, d_model, weight_attr=normal)

scaled = small(ids) * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
lengths = [
    vectors.norm(axis=-1).mean().item()
    for vectors in (small(ids), scaled, encoding.P[0, :60], encoding(scaled))
]
default_length = as_made(ids).norm(axis=-1).mean().item()

# %% lengths
for length, name in zip(
    lengths,
    ["embedding", "scaled by sqrt(d)", "encoding", "sum of these two"],
    strict=True,
):
    print(f"{length:6.2f}  {name}")
print(f"{default_length:6.2f}  embedding, as Paddle draws it")

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

# %% wavelengths
pair = d2l.arange(width // 2)
omega = 10000.0 ** (-2 * pair / width)  # radians per position, one for each pair
print("positions per turn:", [round(turn) for turn in (2 * math.pi / omega).tolist()])

# %% dot-products
products = P @ P.T
distances = d2l.arange(-20, 21)  # i - j
d2l.plot(
    distances,
    [products[i][i - distances] for i in (20, 28, 36)],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in (20, 28, 36)],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
spread = max((diagonal.max() - diagonal.min()).item() for diagonal in diagonals)
print(f"P_i with itself: {products[0, 0].item():.4f}")
print(f"largest spread at any one distance: {spread:.4f}")


# %% rotation
def turn(X, angle):
    """Turn the pairs of columns, points in the plane, by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]
    sin, cos = d2l.sin(angle), d2l.cos(angle)
    return d2l.stack([x * cos + y * sin, y * cos - x * sin], axis=-1).flatten(-2)


largest = 0
for delta in (1, 2, 5, 10, 30, -5):
    i = d2l.arange(max(0, -delta), num_steps - max(0, delta))
    residual = (turn(P[i], delta * omega) - P[i + delta]).abs().max().item()
    largest = max(largest, residual)
    print(
        f"delta {delta:>2}, {len(i)} positions: off by less than 1e-5: {residual < 1e-5}"
    )
print(f"largest residual: {largest:.1e}")

# %% five-back
W_q = turn(d2l.eye(width), -5 * omega)  # a row of P times this is the row 5 above
looking_back = F.softmax(4 * P[:20] @ W_q @ P[:20].T / math.sqrt(width), axis=-1)
d2l.show_heatmaps(
    looking_back[None, None],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% rotary
class RotaryAttention(d2l.DotProductAttention):
    """Turns queries and keys by their positions before they meet."""

    def forward(self, queries, keys, values, valid_lens=None):
        queries, keys = self.turned(queries), self.turned(keys)
        return super().forward(queries, keys, values, valid_lens)

    def turned(self, X):
        position = d2l.arange(X.shape[1], dtype=X.dtype).unsqueeze(1)
        pair = d2l.arange(X.shape[2] // 2)
        return turn(X, position * 10000.0 ** (-2 * pair / X.shape[2]))


# %% rotary-scores
q, k_ = d2l.randn((2, 1, width))
rotary = RotaryAttention(0)
Q, K = (rotary.turned(x.expand([1, 60, width])) for x in (q, k_))
scores = Q[0] @ K[0].T
diagonals = [scores.diagonal(k) for k in range(1 - num_steps, num_steps)]

# %% rotary-check
spread = max((diagonal.max() - diagonal.min()).item() for diagonal in diagonals)
print(f"scores from {scores.min().item():.2f} to {scores.max().item():.2f}")
print(f"largest spread at any one distance: {spread:.4f}")


# %% task
def sequences(count, length=8):
    """Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come first?"""
    places = d2l.rand((count, length)).argsort(axis=1)  # of 0, 1 and the others
    which = places.argsort(axis=1)  # the other way round: the one at each place
    tokens = paddle.where(which < 2, which, paddle.randint(2, 10, which.shape))
    return tokens, (places[:, 0] < places[:, 1]).astype("float32")


for tokens, label in zip(*sequences(3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% learned-positions
class LearnedPositionalEncoding(nn.Layer):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = nn.Embedding(max_len, num_hiddens)

    def forward(self, X):
        return X + self.P(paddle.arange(X.shape[1]))


# %% reader
class Reader(nn.Layer):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    def __init__(self, positions, causal=False, num_hiddens=32):
        super().__init__()
        normal = nn.initializer.Normal()  # entries about as large as the encoding's
        self.embedding = nn.Embedding(10, num_hiddens, weight_attr=normal)
        self.positions, self.causal = positions, causal
        self.attention = d2l.MultiHeadAttention(num_hiddens, 4, 0)
        self.output = nn.Sequential(
            nn.Linear(num_hiddens, num_hiddens), nn.ReLU(), nn.Linear(num_hiddens, 1)
        )

    def forward(self, tokens):
        X = self.positions(self.embedding(tokens))
        earlier = d2l.arange(1, X.shape[1] + 1).expand(tokens.shape)
        Y = self.attention(X, X, X, earlier if self.causal else None)
        return self.output(Y.mean(axis=1)).squeeze(-1)


# %% train
def trained(make_reader, seed):
    """A reader, trained on sequences of 8 tokens, from this seed on."""
    paddle.seed(seed)
    reader = make_reader()
    optimizer = paddle.optimizer.Adam(3e-3, parameters=reader.parameters())
    for _ in range(300):
        tokens, labels = sequences(128)
        loss = F.binary_cross_entropy_with_logits(reader(tokens), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return reader


reader = trained(lambda: Reader(d2l.PositionalEncoding(32, 0)), seed=0)
example = d2l.tensor([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])
reader(example)
weights = reader.attention.attention_weights

# %% trained-maps
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(4)],
    figsize=(8, 4),
    cmap="Blues",
)

# %% found
tokens, _ = sequences(1000)
reader(tokens)
received = reader.attention.attention_weights.mean(axis=2)
share = [
    [received[:, h][tokens == token].mean().item() for token in (0, 1)]
    for h in range(4)
]

# %% found-shares
print("head   on the 0   on the 1")
for h, (zero, one) in enumerate(share):
    print(f"{h + 1:>4}{zero:>11.2f}{one:>11.2f}")


# %% four-readers
def accuracy(reader, length):
    """The share of 1,000 new sequences that the reader answers rightly."""
    tokens, labels = sequences(1000, length)
    with paddle.no_grad():
        correct = (reader(tokens) > 0) == (labels > 0)
    return correct.astype("float32").mean().item()


def rotary_reader():
    reader = Reader(nn.Identity())
    reader.attention.attention = RotaryAttention(0)
    return reader


readers = {
    "fixed": lambda: Reader(d2l.PositionalEncoding(32, 0)),
    "learned": lambda: Reader(LearnedPositionalEncoding(32, max_len=64)),
    "rotary": rotary_reader,
    "causal mask, no encoding": lambda: Reader(nn.Identity(), causal=True),
}

# %% past-the-end
test_lengths = (8, 16, 32, 64)
results = {name: [] for name in readers}
for name, make_reader in readers.items():
    for seed in range(5):
        reader = trained(make_reader, seed)
        results[name].append([accuracy(reader, length) for length in test_lengths])

# %% past-the-end-figure
X, Y = [test_lengths] * len(results), []
for name, runs in results.items():
    by_length = list(zip(*runs, strict=True))
    Y.append([statistics.median(run) for run in by_length])
    ranges = [f"{min(run):.0%} to {max(run):.0%}" for run in by_length]
    print(f"{name}\n" + "".join(f"{each:>14}" for each in ranges))
for i, length in enumerate(test_lengths):  # the ranges, as bars beside each other
    for j, runs in enumerate(results.values()):
        X.append([length * 1.03 ** (j - 1.5)] * 2)
        Y.append([min(run[i] for run in runs), max(run[i] for run in runs)])
d2l.plot(
    X,
    Y,
    xlabel="Length tested (trained at 8)",
    ylabel="Share right",
    xscale="log",
    ylim=(0.3, 1.05),
    figsize=(6, 3),
    legend=list(results),
)

# %% solution-bias
X, b_k = d2l.randn((4, 8)), d2l.randn((8,))
scores = X @ X.T
shifted = X @ (X + b_k).T
difference = F.softmax(scores, axis=-1) - F.softmax(shifted, axis=-1)

# %% solution-bias-shown
print(f"scores differ by up to {(scores - shifted).abs().max().item():.2f}")
print(f"weights differ by up to {difference.abs().max().item():.5f}")


# %% solution-stacking
def diversity(X):
    """The norm of what tells the tokens apart, over the norm of all."""
    return ((X - X.mean(axis=1, keepdim=True)).norm() / X.norm()).item()


@paddle.no_grad()
def stack_up(layers, skip=False, sharpness=1):
    """The diversity before the first layer, and after each."""
    X = d2l.PositionalEncoding(64, 0)(start)
    curve = [diversity(X)]
    for layer in layers:
        pooled = layer(sharpness * X, X, X)
        X = pooled + X if skip else pooled * X.norm() / pooled.norm()
        curve.append(diversity(X))
    return curve


start = d2l.randn((1, 16, 64))
blocks = [d2l.MultiHeadAttention(64, 4, 0) for _ in range(8)]
curves = [stack_up(blocks), stack_up(blocks, sharpness=10), stack_up(blocks, skip=True)]

# %% solution-stacking-figure
d2l.plot(
    list(range(9)),
    curves,
    xlabel="Layers",
    ylabel="Diversity",
    ylim=(0, 1.05),
    figsize=(6, 2.5),
    legend=["attention alone", "queries ten times as long", "with skip connections"],
)


# %% solution-mirrored
def mirrored(tokens):
    """Every sequence with its 0 and 1 exchanged."""
    return paddle.where(tokens < 2, 1 - tokens, tokens)


paddle.seed(0)
reader = Reader(nn.Identity())
tokens, _ = sequences(500)
difference = (reader(tokens) - reader(mirrored(tokens))).abs().max().item()
print(f"largest difference between the answers to both: {difference:.5f}")

# %% solution-causal
causal_lens = d2l.arange(1, n + 1).unsqueeze(0)  # (batch, queries)
X = d2l.randn((1, n, d))
causal = influence(lambda X: small_attention(X, X, X, causal_lens), X)

# %% solution-causal-map
print("any influence of the future:", "yes" if causal.triu(1).any() else "no")
print(f"{causal.count_nonzero().item()} of {causal.size} pairs are connected")
d2l.show_heatmaps(
    (causal / causal.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
n_far = 24
X = d2l.randn((1, n_far, d))
followed = (rnn, lambda X: rnn(X, 0.8 * W_hh), self_attention)
fading = [influence(layer, X)[:, 0] for layer in followed]

# %% solution-fading-figure
d2l.plot(
    d2l.arange(n_far),
    [curve / curve[0] for curve in fading],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-7, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "RNN, matrix times 0.8", "self-attention"],
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
encoding, layer = PositionalEncoding(d, 0), small_attention
tokens = d2l.randn((1, n, d))
whole = encoding(tokens)
at_once = layer(whole, whole, whole, causal_lens)

keys = values = whole[:, :0]  # the cache, still empty
outputs = []
for i in range(n):
    x = encoding(tokens[:, i : i + 1], offset=i)
    keys = d2l.concat([keys, layer.W_k(x)], axis=1)
    values = d2l.concat([values, layer.W_v(x)], axis=1)
    heads = [layer.transpose_qkv(each) for each in (layer.W_q(x), keys, values)]
    outputs.append(layer.W_o(layer.transpose_output(layer.attention(*heads))))
difference = (at_once - d2l.concat(outputs, axis=1)).abs().max().item()

# %% solution-decoding-cost
print(f"largest difference: {difference:.5f}")
print(f"{'tokens so far':>13}{'without cache':>15}{'with cache':>12}")
for length in (10, 100, 1000):
    x, so_far = d2l.zeros((1, 1, d)), d2l.zeros((1, length, d))
    without = d2l.multiply_adds(layer, x, so_far, so_far)
    saved = 2 * (length - 1) * d**2  # keys and values that were kept
    print(f"{length:>13}{without:>15,}{without - saved:>12,}")


# %% solution-relative
class RelativeAttention(nn.Layer):
    """Adds to each key a learned vector for its distance from the query."""

    def __init__(self, num_hiddens, max_distance):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (
            nn.Linear(num_hiddens, num_hiddens, bias_attr=False) for _ in range(3)
        )
        self.table = nn.Embedding(2 * max_distance + 1, num_hiddens)
        self.max_distance = max_distance

    def scores(self, X):
        Q, K, position = self.W_q(X), self.W_k(X), paddle.arange(X.shape[1])
        distance = position.unsqueeze(1) - position  # i - j
        row = distance.clip(-self.max_distance, self.max_distance) + self.max_distance
        keys = K.unsqueeze(1) + self.table(row)  # (batch, queries, keys, num_hiddens)
        return (Q.unsqueeze(2) * keys).sum(axis=-1) / math.sqrt(X.shape[-1])

    def forward(self, X):
        return F.softmax(self.scores(X), axis=-1) @ self.W_v(X)


four = d2l.randn((1, 4, d))
relative = RelativeAttention(d, max_distance=3)
twice = d2l.concat([four, d2l.randn((1, 3, d)), four], axis=1)  # at 0 to 3 and 7 to 10
scores, backwards = relative.scores(twice)[0], relative(four.flip(1)).flip(1)

# %% solution-relative-shown
apart = (scores[:4, :4] - scores[7:, 7:]).abs().max().item()
print(f"scores at 0 and at 7: {apart:.5f} apart")
print(
    f"in the other order: {(relative(four) - backwards).abs().max().item():.2f} apart"
)
