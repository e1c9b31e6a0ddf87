# The lesson's PyTorch code. Each cell is woven into the text where it is asked for
# by name; the file also runs on its own, from top to bottom.

# %% setup
import math

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from d2l_compat import torch as d2l

torch.manual_seed(0)
device = d2l.cpu()  # all tensors here are small; d2l.try_gpu() takes a GPU

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, 0.5).to(device)
attention.eval()

batch_size, num_queries = 2, 4
valid_lens = d2l.tensor([3, 2], device=device)
X = d2l.ones((batch_size, num_queries, num_hiddens), device=device)
tuple(attention(X, X, X, valid_lens).shape)

# %% by-hand
X = d2l.randn(batch_size, num_queries, num_hiddens).to(device)
Y = attention(X, X, X, valid_lens)


def attend_by_hand(X, valid_len):
    """The formula, head by head, for one sequence."""
    projected = [
        W(X).chunk(num_heads, dim=-1)
        for W in (attention.W_q, attention.W_k, attention.W_v)
    ]
    heads = []
    for Q, K, V in zip(*projected, strict=True):
        scores = Q @ K.T / math.sqrt(num_hiddens / num_heads)
        hidden = torch.arange(len(X), device=device) >= valid_len
        heads.append(scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ V)
    return attention.W_o(d2l.concat(heads, dim=-1))


by_hand = d2l.stack(
    [attend_by_hand(x, valid_len) for x, valid_len in zip(X, valid_lens, strict=True)]
)
print(f"largest difference: {(Y - by_hand).abs().max().item():.5f}")

# %% weights-check
weights = attention.attention_weights  # (batch, heads, queries, keys)
print("shape of the weights:", tuple(weights.shape))
for i, valid_len in enumerate(valid_lens.tolist()):
    valid, masked = weights[i, :, :, :valid_len], weights[i, :, :, valid_len:]
    sums = valid.sum(dim=-1)
    print(f"sequence {i + 1}, {valid_len} valid keys")
    print(f"  sums of weights: {sums.min().item():.5f} to {sums.max().item():.5f}")
    print(
        f"  masked weights not exactly 0: {masked.count_nonzero()} of {masked.numel()}"
    )

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
tokens = d2l.randn(1, 6, num_hiddens).to(device)
order = [3, 0, 5, 1, 4, 2]
add_positions = d2l.PositionalEncoding(num_hiddens, 0).to(device)


def self_attention(X):
    return attention(X, X, X)


def with_positions(X):
    return self_attention(add_positions(X))


for name, layer in (
    ("without positions", self_attention),
    ("with positions", with_positions),
):
    difference = layer(tokens[:, order]) - layer(tokens)[:, order]
    print(f"{name:>17}: {difference.abs().max().item():.4f}")

# %% three-layers
n, d, k = 10, 16, 3

conv = nn.Conv1d(d, d, k, padding=k // 2, bias=False).to(device)
W_xh, W_hh = (nn.init.orthogonal_(torch.empty(d, d)).to(device) for _ in range(2))
attend = d2l.MultiHeadAttention(d, 2, 0).to(device)


def cnn(X):
    return conv(X.transpose(1, 2)).transpose(1, 2)


def rnn(X):
    H, outputs = torch.zeros_like(X[:, 0]), []
    for x in X.unbind(dim=1):
        H = torch.tanh(x @ W_xh + H @ W_hh)
        outputs.append(H)
    return d2l.stack(outputs, dim=1)


def attn(X):
    return attend(X, X, X)


layers = {"CNN": cnn, "RNN": rnn, "Self-attention": attn}
X = d2l.randn(1, n, d).to(device)
{name: tuple(layer(X).shape) for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """How strongly input j acts on output i: the norm of dy_i/dx_j, shape (n, n)."""
    jacobian = torch.autograd.functional.jacobian(layer, X)[0, :, :, 0]
    return jacobian.transpose(1, 2).flatten(2).norm(dim=2)


maps = [influence(layer, X) for layer in layers.values()]
for name, m in zip(layers, maps, strict=True):
    print(f"{name}: {m.count_nonzero().item()} of {m.numel()} pairs are connected")

# %% influence-heatmaps
d2l.show_heatmaps(
    d2l.stack([m / m.max() for m in maps])[None],
    xlabel="Input j",
    ylabel="Output i",
    titles=list(layers),
    figsize=(8, 2.8),
    cmap="Blues",
)


# %% receptive-field
def stacked(depth):
    def layer(X):
        for _ in range(depth):
            X = torch.tanh(cnn(X))
        return X

    return layer


sees = influence(stacked(2), X)[2].nonzero().flatten() + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sees.tolist()))
for depth in range(1, 5):
    reached = bool(influence(stacked(depth), X)[4, 0] > 0)
    print(f"{depth} layers: y_5 depends on x_1: {reached}")

# %% sequential-operations
PRODUCTS = ("Mm", "Addmm", "Bmm", "Linear", "Convolution", "ScaledDotProduct")


def sequential_products(layer, n):
    """Products on the longest chain of operations that wait for each other."""
    known = {None: 0}

    def longest(node):
        if node not in known:
            before = max(
                (longest(parent) for parent, _ in node.next_functions), default=0
            )
            known[node] = before + node.name().startswith(PRODUCTS)
        return known[node]

    return longest(
        layer(torch.zeros(1, n, d, device=device, requires_grad=True)).grad_fn
    )


def print_row(first, others):
    print(f"{first:>4}" + "".join(f"{other:>16}" for other in others))


print_row("n", layers)
for length in (4, 8, 16, 32):
    print_row(length, [sequential_products(layer, length) for layer in layers.values()])


# %% multiply-adds
def multiply_adds(layer, n):
    with FlopCounterMode(display=False) as counter:
        layer(torch.zeros(1, n, d, device=device))
    # The counter takes a multiplication and an addition for two operations.
    return counter.get_total_flops() // 2


formulas = {
    "CNN": lambda n: k * n * d**2,
    "RNN": lambda n: 2 * n * d**2,
    "Self-attention": lambda n: 4 * n * d**2 + 2 * n**2 * d,
}
print_row("n", [*layers, "as the formulas"])
for length in (8, 16, 32, 64, 128):
    counts = {name: multiply_adds(layer, length) for name, layer in layers.items()}
    agree = all(counts[name] == formulas[name](length) for name in layers)
    print_row(length, [*(f"{count:,}" for count in counts.values()), str(agree)])


# %% positional-encoding
class PositionalEncoding(nn.Module):
    """Adds sines and cosines of the position to each vector of a sequence."""

    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        # Double precision: in single, far positions would be off by 7e-5.
        j = torch.arange(0, num_hiddens, 2, dtype=torch.float64)
        angles = torch.arange(max_len)[:, None] / 10000 ** (j / num_hiddens)
        P = torch.zeros(1, max_len, num_hiddens)
        P[:, :, 0::2] = torch.sin(angles)
        P[:, :, 1::2] = torch.cos(angles[:, : num_hiddens // 2])
        self.register_buffer("P", P, persistent=False)

    def forward(self, X, offset=0):
        end, max_len = offset + X.shape[1], self.P.shape[1]
        if not 0 <= offset <= end <= max_len:
            raise ValueError(
                f"positions {offset} to {end - 1}: there are only 0 to {max_len - 1}"
            )
        return self.dropout(X + self.P[:, offset:end])


# %% encoding-checks
encoding = PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
zeros = d2l.zeros((1, 10, 7))
steps = [encoding(zeros[:, :1], offset=i) for i in range(10)]
print(
    "one by one as all at once:", torch.equal(encoding(zeros), d2l.concat(steps, dim=1))
)
print(
    "the same as the library's:",
    torch.equal(encoding.P, d2l.PositionalEncoding(7, 0, 10).P),
)
print("trained:", list(encoding.parameters()), " saved:", list(encoding.state_dict()))
try:
    encoding(zeros, offset=1)
except ValueError as error:
    print("ValueError:", error)

# %% scale-and-sum
d_model = 512
embedding = nn.Embedding(1000, d_model)
nn.init.normal_(embedding.weight, std=d_model**-0.5)
pos_encoding = PositionalEncoding(d_model, 0)

E = embedding(torch.randint(1000, (1, 60)))
X = pos_encoding(E * math.sqrt(d_model))
for name, vectors in (
    ("embedding", E),
    ("embedding * sqrt(d)", E * math.sqrt(d_model)),
    ("positional encoding", pos_encoding.P[:, :60]),
):
    print(f"{name:>19}: length {vectors.norm(dim=-1).mean().item():.2f}")

# %% column-plot
encoding_dim, num_steps = 32, 60
pos_encoding = PositionalEncoding(encoding_dim, 0).to(device)
X = pos_encoding(d2l.zeros((1, num_steps, encoding_dim), device=device))
P = X[0]
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
distances = torch.arange(-20, 21)
starts = (20, 28, 36)
d2l.plot(
    distances,
    [products[i, i - 20 : i + 21] for i in starts],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in starts],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
print(f"P_i with itself: {products[0, 0].item():.4f}")
spread = max((x.max() - x.min()).item() for x in diagonals)
print(f"largest spread at any one distance: {spread:.4f}")

# %% rotation
pairs = P.reshape(num_steps, encoding_dim // 2, 2)  # (position, pair, sine and cosine)
omega = 10000 ** -(torch.arange(0, encoding_dim, 2, device=device) / encoding_dim)
largest = 0
for delta in (1, 2, 5, 10, 30):
    sin, cos = torch.sin(delta * omega), torch.cos(delta * omega)
    rotations = d2l.stack([cos, sin, -sin, cos], dim=-1).reshape(
        -1, 2, 2
    )  # one for each pair
    turned = torch.einsum("jab,ijb->ija", rotations, pairs[:-delta])
    residual = (turned - pairs[delta:]).abs().max().item()
    largest = max(largest, residual)
    pairs_turned, on_target = turned[..., 0].numel(), residual < 1e-5
    print(f"delta {delta:>2}: {pairs_turned} pairs turned, all on target: {on_target}")
print(f"largest residual: {largest:.1e}")


# %% solution-stacking
def diversity(X):
    """The share of X in which its tokens differ: 0 where all are the same."""
    return ((X - X.mean(dim=1, keepdim=True)).norm() / X.norm()).item()


depth = 8
blocks = [d2l.MultiHeadAttention(64, 4, 0).to(device).eval() for _ in range(depth)]
start = d2l.PositionalEncoding(64, 0).to(device)(d2l.randn(1, 16, 64).to(device))
curves = []
for skip in (False, True):
    X, curve = start, [diversity(start)]
    with torch.no_grad():
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
class LearnedPositionalEncoding(nn.Module):
    """A table of positions, trained like every other weight."""

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.P = nn.Parameter(0.1 * torch.randn(1, max_len, num_hiddens))

    def forward(self, X, offset=0):
        return X + self.P[:, offset : offset + X.shape[1]]


class Reader(nn.Module):
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
        return self.output(self.attention(X, X, X).mean(dim=1)).squeeze(-1)


# %% solution-learned-data
def sequences(count, length=8):
    """Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come first?"""
    tokens = torch.randint(2, 10, (count, length))
    places = torch.rand(count, length).argsort(dim=1)[:, :2]
    tokens.scatter_(1, places, torch.tensor([0, 1]).expand(count, 2))
    return tokens.to(device), (places[:, 0] < places[:, 1]).float().to(device)


def mirrored(tokens, labels):
    """Every sequence twice: as it is, and with its 0 and 1 exchanged."""
    exchanged = torch.where(tokens < 2, 1 - tokens, tokens)
    return d2l.concat([tokens, exchanged]), d2l.concat([labels, 1 - labels])


# %% solution-learned-training
test_tokens, test_labels = mirrored(*sequences(500))
for name, encoding in (
    ("none", nn.Identity()),
    ("fixed", d2l.PositionalEncoding(32, 0)),
    ("learned", LearnedPositionalEncoding(32, 8)),
):
    torch.manual_seed(1)
    model = Reader(encoding).to(device)
    model(test_tokens[:1])  # the attention layer takes its sizes from its first input
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        tokens, labels = sequences(128)
        loss = nn.functional.binary_cross_entropy_with_logits(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    correct = ((model(test_tokens) > 0) == (test_labels > 0)).float().mean().item()
    print(f"{name:>8}: {correct:.1%} of the test sequences right")

# %% solution-causal
causal_lens = torch.arange(1, n + 1, device=device)[None]  # (batch, queries)
X = d2l.randn(1, n, d).to(device)
causal = influence(lambda X: attend(X, X, X, causal_lens), X)
print("any influence of the future:", bool(causal.triu(1).any()))
print("pairs connected:", causal.count_nonzero().item(), "of", causal.numel())
d2l.show_heatmaps(
    (causal / causal.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
n_far = 24
W_hh = 0.8 * nn.init.orthogonal_(torch.empty(d, d)).to(device)
X = d2l.randn(1, n_far, d).to(device)
fading = [influence(layer, X)[:, 0] for layer in (rnn, attn)]
d2l.plot(
    d2l.arange(n_far),
    [curve / curve[0] for curve in fading],
    xlabel="Distance from the first token",
    ylabel="Influence",
    yscale="log",
    figsize=(6, 2.5),
    legend=["RNN", "self-attention"],
)


# %% solution-dilated
def layers_to_cross(n, growth):
    """Layers with k = 3 until the first of n tokens reaches the last output."""
    signal, depth = torch.eye(n)[:1, None], 0  # one at the first token
    while signal[0, 0, -1] == 0:
        dilation = growth**depth
        signal = nn.functional.conv1d(
            signal, torch.ones(1, 1, 3), padding=dilation, dilation=dilation
        )
        depth += 1
    return depth


print(f"{'n':>4}{'plain':>8}{'dilated':>9}")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{layers_to_cross(length, 1):>8}{layers_to_cross(length, 3):>9}")

# %% solution-decoding
encoding = PositionalEncoding(d, 0).to(device)
tokens = d2l.randn(1, n, d).to(device)
whole = encoding(tokens)
at_once = attend(whole, whole, whole, causal_lens)

cache, outputs = whole[:, :0], []
for i in range(n):
    x = encoding(tokens[:, i : i + 1], offset=i)
    cache = d2l.concat([cache, x], dim=1)
    outputs.append(attend(x, cache, cache))
difference = (at_once - d2l.concat(outputs, dim=1)).abs().max().item()
print(f"largest difference: {difference:.5f}")
