# The lesson's PyTorch code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics

import torch
from torch import nn

from d2l_compat import torch as d2l

_ = torch.manual_seed(0)

# %% six-words
sentence = "the cat sat because it purred"
# How thing-like a word is, and how action-like.
X = torch.tensor([[0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]]).float()

query = X[4]  # the fifth word
scores = X @ query  # how well does each word fit?
weights = scores.exp() / scores.exp().sum()  # softmax: positive, and they sum to 1
output = weights @ X  # the average, weighted by these shares

for score, weight, word in zip(scores, weights, sentence.split(), strict=True):
    print(f"{score:5.0f}{weight:8.2f}   {word}")
print(f"({output[0]:.2f}, {output[1]:.2f})  it, having looked around")


# %% all-words
def print_rows(weights, Y, sentence):
    """Print each word's weights for all six, and its new vector."""
    for row, (thing, action), word in zip(weights, Y, sentence.split(), strict=True):
        shares = "".join(f"{weight:6.2f}" for weight in row)
        print(f"{shares}   ({thing:.2f}, {action:.2f})  {word}")


weights = (X @ X.T).softmax(dim=-1)  # a row for each query
print_rows(weights, weights @ X, "the cat sat because it purred")

# %% three-roles
W_q = torch.tensor([[1.0, 0], [1, 0]])  # things and actions both ask for a thing
W_k = W_v = torch.eye(2)

Q, K, V = X @ W_q, X @ W_k, X @ W_v
weights = (Q @ K.T).softmax(dim=-1)
print_rows(weights, weights @ V, "the cat sat because it purred")

# %% saturation
widths = [2**power for power in range(2, 11)]
plain, scaled = [], []  # for each width, scores of shape (queries, keys)
for width in widths:
    queries, keys = torch.randn(1000, 1, width), torch.randn(1000, 10, width)
    plain.append((queries * keys).sum(dim=-1))
    scaled.append(plain[-1] / math.sqrt(width))

# %% scaling
for i in (0, 4, 8):
    for name, scores in ("unscaled", plain[i]), ("scaled", scaled[i]):
        largest = scores.softmax(dim=-1).amax(dim=1).mean()
        print(
            f"d = {widths[i]:>4}: spread {scores.std():5.2f}"
            f", largest weight {largest:.2f}  {name}"
        )


# %% slopes
def slope(scores):
    """Return the norm of the softmax's derivative: the median over the queries."""
    weights = scores.softmax(dim=-1)
    outer = weights[:, :, None] * weights[:, None]  # (queries, keys, keys)
    return (torch.diag_embed(weights) - outer).norm(dim=(1, 2)).median()


d2l.plot(
    [math.log2(width) for width in widths],
    [[slope(scores) for scores in plain], [slope(scores) for scores in scaled]],
    xlabel="log2(d)",
    ylabel="Norm of the derivative",
    ylim=(0, 0.4),
    figsize=(6, 2.5),
    legend=["unscaled", "scaled"],
)

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)
attention.eval()

X = torch.ones((2, 4, num_hiddens))
valid_lens = torch.tensor([3, 2])
tuple(attention(X, X, X, valid_lens).shape)


# %% by-hand
def attend_manually(X, valid_len):
    """Compute the formula, head by head, for one sequence."""
    projections = (attention.W_q, attention.W_k, attention.W_v)
    Q, K, V = (W(X).chunk(num_heads, dim=-1) for W in projections)
    masked = torch.arange(len(X)) >= valid_len
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        heads.append(scores.masked_fill(masked, -math.inf).softmax(dim=-1) @ v)
    return attention.W_o(torch.cat(heads, dim=-1))


X = torch.randn(2, 4, num_hiddens)
Y = attention(X, X, X, valid_lens)
manual_output = torch.stack([attend_manually(X[i], valid_lens[i]) for i in range(2)])

# %% by-hand-difference
print(f"largest number in Y:  {Y.abs().max():.5f}")
print(f"largest difference:   {(Y - manual_output).abs().max():.5f}")

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
tokens = torch.randn(1, 6, num_hiddens)
order = [3, 0, 5, 1, 4, 2]
# The first query may see one key, the second two, and so on.
earlier_only = torch.arange(1, 7)[None]


def attend_without_mask(X):
    return attention(X, X, X)


def attend_with_mask(X):
    return attention(X, X, X, earlier_only)


def effect_of_order(layer):
    """Return how far shuffling before the layer is from shuffling after it."""
    return (layer(tokens[:, order]) - layer(tokens)[:, order]).abs().max()


# %% equivariance
for name, layer in (
    ("without a mask", attend_without_mask),
    ("with a causal mask", attend_with_mask),
):
    largest = layer(tokens).abs().max()
    difference = effect_of_order(layer)
    print(f"{name}: largest output {largest:.4f}, largest difference {difference:.4f}")

# %% cnn-and-rnn
n, d, k = 10, 16, 3

conv = nn.Conv1d(d, d, k, padding=k // 2, bias=False)
W_xh, W_hh = (nn.init.orthogonal_(torch.empty(d, d)) for _ in range(2))


def cnn(X):
    return conv(X.transpose(1, 2)).transpose(1, 2)


def rnn(X, W_hh=W_hh):
    H, outputs = torch.zeros_like(X[:, 0]), []
    for x in X.unbind(dim=1):
        H = torch.tanh(x @ W_xh + H @ W_hh)
        outputs.append(H)
    return torch.stack(outputs, dim=1)


# %% three-layers
small_attention = d2l.MultiHeadAttention(d, 2, 0)


def self_attention(X):
    return small_attention(X, X, X)


layers = {"CNN": cnn, "RNN": rnn, "self_attention": self_attention}
X = torch.randn(1, n, d)
{name: tuple(layer(X).shape) for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n)."""
    jacobian = torch.autograd.functional.jacobian(layer, X)  # (1, n, d, 1, n, d)
    return jacobian[0, :, :, 0].norm(dim=(1, 3))  # over the numbers of y_i, and of x_j


maps = [influence(layer, X) for layer in layers.values()]

# %% influence-heatmaps
names = ["CNN", "RNN", "Self-attention"]
for name, m in zip(names, maps, strict=True):
    print(f"{name}: {m.count_nonzero()} of {m.numel()} pairs are connected")
d2l.show_heatmaps(
    torch.stack([m / m.max() for m in maps])[None],
    xlabel="Input j",
    ylabel="Output i",
    titles=names,
    figsize=(8, 3),
    cmap="Blues",
)


# %% receptive-field
def stack(depth):
    def layer(X):
        for _ in range(depth):
            X = torch.tanh(cnn(X))
        return X

    return layer


influences = [influence(stack(depth), X) for depth in range(1, 5)]

# %% reach
sources = [f"x_{j + 1}" for j in influences[1][2].nonzero().flatten().tolist()]
print("two layers: y_3 depends on", ", ".join(sources))
for depth, m in enumerate(influences, 1):
    print(f"depth {depth}: y_5 depends on x_1:", "yes" if m[4, 0] > 0 else "no")


# %% sequential-operations
def print_row(length, values):
    print(f"{length:>4}" + "".join(f"{value:>16}" for value in values))


print("   n             CNN             RNN  Self-attention")
for length in (4, 8, 16, 32):
    X = torch.zeros(1, length, d)
    print_row(length, [d2l.longest_chain(layer, X) for layer in layers.values()])

# %% multiply-adds
print("   n             CNN             RNN  Self-attention    as predicted")
for length in (8, 16, 32, 64, 128):
    X = torch.zeros(1, length, d)
    counts = [d2l.multiply_adds(layer, X) for layer in layers.values()]
    attention_count = 4 * length * d**2 + 2 * length**2 * d
    agree = counts == [k * length * d**2, 2 * length * d**2, attention_count]
    print_row(length, [*(f"{count:,}" for count in counts), "yes" if agree else "no"])


# %% binary
for i in range(8):
    print(f"{i} in binary is {i:>03b}")


# %% sinusoids
def sinusoids(num_positions, num_hiddens):
    """Return P, with a row for each position; pairs of columns share a frequency."""
    # In double precision: the sine of a large angle needs the digits.
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    column = torch.arange(num_hiddens, dtype=torch.float64)
    angle = position / 10000 ** (2 * (column // 2) / num_hiddens)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


for i, row in enumerate(sinusoids(3, 4)):
    print(i, [f"{x:.2f}" for x in row])


# %% positional-encoding
class PositionalEncoding(nn.Module):
    """A layer that adds sines and cosines of the position to each vector."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        P = sinusoids(max_len, num_hiddens)[None]
        self.register_buffer("P", P, persistent=False)

    def forward(self, X, offset=0):
        end, max_len = offset + X.shape[1], self.P.shape[1]
        if offset < 0 or end > max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}, expected 0 to {max_len - 1}"
            )
        return self.dropout(X + self.P[:, offset:end])


add_positions = PositionalEncoding(num_hiddens, dropout=0)


def attend_with_positions(X):
    X = add_positions(X)
    return attention(X, X, X)


# %% order-seen
difference = effect_of_order(attend_with_positions)
print(f"with positions: largest difference {difference:.4f}")

# %% scale-and-sum
d_model = 512
ids = torch.randint(1000, (1, 60))
default_embedding = nn.Embedding(1000, d_model)
small = nn.Embedding(1000, d_model)
nn.init.normal_(small.weight, std=d_model**-0.5)

scaled_up = small(ids) * math.sqrt(d_model)
encoding = PositionalEncoding(d_model, 0)
lengths = [
    vectors.norm(dim=-1).mean().item()
    for vectors in (small(ids), scaled_up, encoding.P[0, :60], encoding(scaled_up))
]
default_length = default_embedding(ids).norm(dim=-1).mean().item()

# %% lengths
for length, name in zip(
    lengths,
    ["embedding", "scaled by sqrt(d)", "encoding", "sum of these two"],
    strict=True,
):
    print(f"{length:6.2f}  {name}")
print(f"{default_length:6.2f}  embedding, as PyTorch draws it")

# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding(torch.zeros((1, num_steps, width)))[0]
d2l.plot(
    torch.arange(num_steps),
    P[:, 6:10].T,
    xlabel="Row (position)",
    figsize=(6, 2.5),
    legend=[f"Col {column}" for column in range(6, 10)],
)

# %% encoding-heatmap
d2l.show_heatmaps(
    P[None, None],
    xlabel="Column (encoding dimension)",
    ylabel="Row (position)",
    figsize=(3.5, 4),
    cmap="RdBu_r",
)

# %% wavelengths
pair = torch.arange(width // 2)
omega = 10000.0 ** (-2 * pair / width)  # radians per position, one for each pair
print("positions per turn:")
print((2 * math.pi / omega).round().int().tolist())

# %% dot-products
products = P @ P.T
distances = torch.arange(-20, 21)  # i - j
d2l.plot(
    distances,
    [products[i, i - distances] for i in (20, 28, 36)],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in (20, 28, 36)],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"P_i with itself: {products[0, 0]:.4f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% rotation
def turn(X, angle):
    """Turn the pairs of columns, points in the plane, by one angle each, in radians."""
    x, y = X[..., 0::2], X[..., 1::2]  # all sines, all cosines
    sin, cos = torch.sin(angle), torch.cos(angle)
    return torch.stack([x * cos + y * sin, y * cos - x * sin], dim=-1).flatten(-2)


for row, name in (P[3], "3"), (turn(P[3], 5 * omega), "3, turned by 5"), (P[8], "8"):
    print(*(f"{x:7.4f}" for x in row[:4]), f"  row {name}")
largest = 0
for delta in (1, 2, 5, 10, 30, -5):
    i = torch.arange(max(0, -delta), num_steps - max(0, delta))
    residual = turn(P[i], delta * omega) - P[i + delta]
    largest = max(largest, residual.abs().max().item())
print(f"largest residual, all rows, six offsets: {largest:.1e}")

# %% five-back
# To get a map's matrix, apply the map to the rows of the identity.
W_q, W_k = turn(torch.eye(width), -5 * omega), 4 * torch.eye(width)
Q, K = P[:20] @ W_q, P[:20] @ W_k
back_weights = (Q @ K.T / math.sqrt(width)).softmax(dim=-1)
d2l.show_heatmaps(
    back_weights[None, None],
    xlabel="Key j",
    ylabel="Query i",
    figsize=(3.5, 3),
    cmap="Blues",
)


# %% rotary
class RotaryAttention(d2l.DotProductAttention):
    """Attention that first turns queries and keys by their positions."""

    def forward(self, queries, keys, values, valid_lens=None):
        queries, keys = self.rotate(queries), self.rotate(keys)
        return super().forward(queries, keys, values, valid_lens)

    def rotate(self, X):
        position = torch.arange(X.shape[1])[:, None]
        pair = torch.arange(X.shape[2] // 2)
        return turn(X, position * 10000.0 ** (-2 * pair / X.shape[2]))


# %% rotary-scores
q, k_ = torch.randn(2, 1, width)
rotary = RotaryAttention(0)
Q, K = rotary.rotate(q.expand(1, 60, width)), rotary.rotate(k_.expand(1, 60, width))
scores = (Q @ K.mT)[0]
diagonals = [scores.diagonal(k) for k in range(1 - num_steps, num_steps)]

# %% rotary-check
gap = max(diagonal.max() - diagonal.min() for diagonal in diagonals)
print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"largest gap at any one distance: {gap:.4f}")


# %% task
def draw_sequences(count, length=8):
    """Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first."""
    tokens = torch.randint(2, 10, (count, length))
    positions = torch.rand(count, length).argsort(dim=1)[:, :2]  # two different ones
    tokens.scatter_(1, positions, torch.tensor([0, 1]).expand(count, 2))  # the 0, the 1
    return tokens, (positions[:, 0] < positions[:, 1]).float()


for tokens, label in zip(*draw_sequences(3), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% learned-positions
class LearnedPositionalEncoding(nn.Module):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = nn.Embedding(max_len, num_hiddens)

    def forward(self, X):
        return X + self.P(torch.arange(X.shape[1]))


# %% reader
class Reader(nn.Module):
    """Embedding, positions, self-attention, and a yes or no for the sequence."""

    def __init__(self, positions, causal=False, num_hiddens=32):
        super().__init__()
        self.embedding = nn.Embedding(10, num_hiddens)
        self.positions, self.causal = positions, causal
        self.attention = d2l.MultiHeadAttention(num_hiddens, 4, 0)
        self.output = nn.Sequential(
            nn.Linear(num_hiddens, num_hiddens), nn.ReLU(), nn.Linear(num_hiddens, 1)
        )

    def forward(self, tokens):
        X = self.positions(self.embedding(tokens))
        Y = self.attention(X, X, X, causal=self.causal)
        return self.output(Y.mean(dim=1)).squeeze(-1)


# %% train
def train(make_reader, seed):
    """Train a reader on sequences of 8 tokens, starting from this seed."""
    torch.manual_seed(seed)
    reader = make_reader()
    reader(draw_sequences(1)[0])  # attention takes its sizes from its first input
    optimizer = torch.optim.Adam(reader.parameters(), lr=8e-3, fused=True)
    for _ in range(120):
        tokens, labels = draw_sequences(128)
        loss = nn.functional.binary_cross_entropy_with_logits(reader(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return reader


reader = train(lambda: Reader(d2l.PositionalEncoding(32, 0)), seed=0)
example = torch.tensor([[5, 3, 0, 7, 2, 1, 9, 4], [5, 1, 3, 7, 2, 6, 9, 0]])
reader(example)
weights = reader.attention.attention_weights.detach()

# %% trained-maps tags=["tolerance:levels=16"]
d2l.show_heatmaps(
    weights,
    xlabel="Keys",
    ylabel="Queries",
    titles=[f"Head {h + 1}" for h in range(4)],
    figsize=(8, 4),
    cmap="Blues",
)

# %% found
tokens, labels = draw_sequences(1000)
reader(tokens)
received = reader.attention.attention_weights.detach().mean(dim=2)
# Shares of weight, of shape (sequences, heads).
zero, one = ((received * (tokens == token)[:, None]).sum(dim=2) for token in (0, 1))
zero_is_first = (labels > 0)[:, None]
first = torch.where(zero_is_first, zero, one)
last = torch.where(zero_is_first, one, zero)

# %% found-shares tags=["tolerance:absolute=0.02"]
print("    on 0    on 1   on the first   on the last")
for h in range(4):
    means = [share[:, h].mean() for share in (zero, one, first, last)]
    print(
        f"{means[0]:8.2f}{means[1]:8.2f}{means[2]:15.2f}{means[3]:14.2f}   head {h + 1}"
    )


# %% without-positions
def attention_accuracy(queries, keys, values):
    with torch.no_grad():
        Y = reader.attention(queries, keys, values)
        answers = reader.output(Y.mean(dim=1)).squeeze(-1)
    return ((answers > 0) == (labels > 0)).float().mean()


X = reader.embedding(tokens)
X_with_P = reader.positions(X)
full_accuracy = attention_accuracy(X_with_P, X_with_P, X_with_P)
scores_accuracy = attention_accuracy(X_with_P, X_with_P, X)
values_accuracy = attention_accuracy(X, X, X_with_P)

# %% without-positions-shown tags=["tolerance:absolute=0.02"]
print(f"share right, positions everywhere:                {full_accuracy:.3f}")
print(f"share right, positions in queries and keys alone: {scores_accuracy:.3f}")
print(f"share right, positions in values alone:           {values_accuracy:.3f}")


# %% five-readers
# The same sequences for every reader.
tests = {length: draw_sequences(500, length) for length in (8, 16, 32, 64)}


def accuracy(reader, length):
    """Return the share of sequences of this length that the reader gets right."""
    tokens, labels = tests[length]
    with torch.no_grad():
        return ((reader(tokens) > 0) == (labels > 0)).float().mean().item()


def rotary_reader():
    reader = Reader(nn.Identity())
    reader.attention.attention = RotaryAttention(0)
    return reader


readers = {
    "fixed": lambda: Reader(d2l.PositionalEncoding(32, 0)),
    "learned": lambda: Reader(LearnedPositionalEncoding(32, max_len=64)),
    "rotary": rotary_reader,
    "mask": lambda: Reader(nn.Identity(), causal=True),
    "fixed_mask": lambda: Reader(d2l.PositionalEncoding(32, 0), causal=True),
}

# %% past-the-end
results = {name: [] for name in readers}
for name, make_reader in readers.items():
    for seed in range(5):
        reader = train(make_reader, seed)
        results[name].append([accuracy(reader, length) for length in tests])

# %% past-the-end-figure tags=["tolerance:absolute=0.25", "tolerance:points=50"]
names = ["fixed encoding", "learned table", "RoPE", "causal mask", "fixed, causal mask"]
xs = [[*tests]] * len(names)
ys = []
print("".join(f"{length:>15}" for length in tests), "  tokens")
for name, runs in zip(names, results.values(), strict=True):
    by_length = list(zip(*runs, strict=True))
    medians = [statistics.median(shares) for shares in by_length]
    ranges = [f"({min(shares):.2f}-{max(shares):.2f})" for shares in by_length]
    print("".join(f"{median:15.2f}" for median in medians), f"  {name}")
    print("".join(f"{text:>15}" for text in ranges))
    ys.append(medians)
for i, length in enumerate(tests):  # the ranges, as bars beside each other
    for j, runs in enumerate(results.values()):
        xs.append([length + j / 2] * 2)
        ys.append([min(run[i] for run in runs), max(run[i] for run in runs)])
d2l.plot(
    xs,
    ys,
    xlabel="Tokens (trained on 8)",
    ylabel="Share right",
    ylim=(0, 1.05),
    figsize=(6, 4),
    legend=names,
)
# The default location, "best", depends on the numbers.
d2l.plt.gca().get_legend().set_loc("lower left")

# %% solution-bias
X, b_k = torch.randn(1, 4, 8), torch.randn(8)
scores = X @ X.mT
shifted = X @ (X + b_k).mT
difference = (scores.softmax(dim=-1) - shifted.softmax(dim=-1)).abs().max()

# %% solution-bias-shown
print(f"scores differ by up to {(scores - shifted).abs().max():.2f}")
print(f"weights differ by up to {difference:.5f}")


# %% solution-stacking
def diversity(X):
    """Return the norm of the deviations from the mean token, divided by the norm of X."""
    return ((X - X.mean(dim=1, keepdim=True)).norm() / X.norm()).item()


def stack_up(layers, skip=False, sharpness=1):
    """Return the diversity before the first layer, and after each."""
    X = d2l.PositionalEncoding(64, 0)(start)
    curve = [diversity(X)]
    for layer in layers:
        pooled = layer(sharpness * X, X, X)
        X = pooled + X if skip else pooled * X.norm() / pooled.norm()
        curve.append(diversity(X))
    return curve


start = torch.randn(1, 16, 64)
blocks = [d2l.MultiHeadAttention(64, 4, 0) for _ in range(8)]
with torch.no_grad():
    curves = [
        stack_up(blocks),
        stack_up(blocks, sharpness=10),
        stack_up(blocks, skip=True),
    ]

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
# The default location, "best", depends on the numbers.
d2l.plt.gca().get_legend().set_loc((0.5, 0.18))


# %% solution-mirrored
def mirror(tokens):
    """Exchange the 0 and the 1 of every sequence."""
    return torch.where(tokens < 2, 1 - tokens, tokens)


torch.manual_seed(0)
reader = Reader(nn.Identity())
tokens, _ = draw_sequences(500)
difference = (reader(tokens) - reader(mirror(tokens))).abs().max().item()
print(f"largest difference between the answers to both: {difference:.5f}")

# %% solution-causal
causal_lens = torch.arange(1, n + 1)[None]  # (batch, queries)
X = torch.randn(1, n, d)
causal_map = influence(lambda X: small_attention(X, X, X, causal_lens), X)

# %% solution-causal-map
print("any influence of the future:", "yes" if causal_map.triu(1).any() else "no")
print(f"{causal_map.count_nonzero()} of {causal_map.numel()} pairs are connected")
d2l.show_heatmaps(
    (causal_map / causal_map.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
n_far = 24
X = torch.randn(1, n_far, d)
fading_layers = (rnn, lambda X: rnn(X, 0.8 * W_hh), self_attention)
fading_curves = [influence(layer, X)[:, 0] for layer in fading_layers]

# %% solution-fading-figure
d2l.plot(
    torch.arange(n_far),
    [curve / curve[0] for curve in fading_curves],
    xlabel="Distance from the first token",
    ylabel="Influence",
    ylim=(1e-8, 10),
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "RNN, matrix times 0.8", "self-attention"],
)


# %% solution-dilated
def count_layers(n, growth):
    """Count layers with k = 3 until the first of n tokens reaches the last output."""
    signal, kernel, depth = torch.zeros(1, 1, n), torch.ones(1, 1, 3), 0
    signal[..., 0] = 1
    while signal[..., -1] == 0:
        step = growth**depth
        signal = nn.functional.conv1d(signal, kernel, padding=step, dilation=step)
        signal, depth = signal.clamp(max=1), depth + 1  # 1 if it arrives, else 0
    return depth


print("   n   plain  dilated")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{count_layers(length, 1):>8}{count_layers(length, 3):>9}")

# %% solution-decoding
layer, encoding = small_attention, PositionalEncoding(d, 0)


def decode_token(x, keys, values):
    """Return the output of a new token, and the cache with its key and value."""
    keys = torch.cat([keys, layer.W_k(x)], dim=1)
    values = torch.cat([values, layer.W_v(x)], dim=1)
    # cut into heads; transpose_output puts them together again
    heads = [layer.transpose_qkv(array) for array in (layer.W_q(x), keys, values)]
    pooled = layer.transpose_output(layer.attention(*heads))
    return layer.W_o(pooled), keys, values


tokens = torch.randn(1, n, d)
keys = values = tokens[:, :0]  # the cache, still empty
outputs = []
for i in range(n):
    x = encoding(tokens[:, i : i + 1], offset=i)
    y, keys, values = decode_token(x, keys, values)
    outputs.append(y)

# %% solution-decoding-cost
full_input = encoding(tokens)
full_output = layer(full_input, full_input, full_input, causal_lens)
difference = (full_output - torch.cat(outputs, dim=1)).abs().max()
print(f"largest difference: {difference:.5f}")
print("tokens  without cache  with cache")
for length in (10, 100, 1000):
    x, all_tokens = torch.zeros(1, 1, d), torch.zeros(1, length, d)
    cache = torch.zeros(1, length - 1, d)
    plain_count = d2l.multiply_adds(layer, x, all_tokens, all_tokens)
    cached_count = d2l.multiply_adds(
        lambda *inputs: decode_token(*inputs)[0], x, cache, cache
    )
    print(f"{length:>6}{plain_count:>15,}{cached_count:>12,}")


# %% solution-relative
class RelativeAttention(nn.Module):
    """Attention that adds to each key a learned vector for its distance."""

    def __init__(self, num_hiddens, max_distance):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (
            nn.Linear(num_hiddens, num_hiddens, bias=False) for _ in range(3)
        )
        self.table = nn.Embedding(2 * max_distance + 1, num_hiddens)
        self.max_distance = max_distance

    def scores(self, X):
        Q, K, position = self.W_q(X), self.W_k(X), torch.arange(X.shape[1])
        distance = position[:, None] - position  # i - j
        row = distance.clamp(-self.max_distance, self.max_distance) + self.max_distance
        keys = K[:, None] + self.table(row)  # (batch, queries, keys, num_hiddens)
        return (Q[:, :, None] * keys).sum(dim=-1) / math.sqrt(X.shape[-1])

    def forward(self, X):
        return self.scores(X).softmax(dim=-1) @ self.W_v(X)


four_tokens = torch.randn(1, 4, d)
relative = RelativeAttention(d, max_distance=3)
# The four tokens are at 0 to 3 and at 7 to 10.
repeated = torch.cat([four_tokens, torch.randn(1, 3, d), four_tokens], dim=1)
scores = relative.scores(repeated)[0]
reversed_output = relative(four_tokens.flip(1)).flip(1)

# %% solution-relative-shown
difference = (scores[:4, :4] - scores[7:, 7:]).abs().max()
print(f"scores at 0 and at 7: largest difference {difference:.5f}")
difference = (relative(four_tokens) - reversed_output).abs().max()
print(f"in the other order: largest difference {difference:.2f}")
