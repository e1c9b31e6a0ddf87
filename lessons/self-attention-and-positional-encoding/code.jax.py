# The lesson's JAX code, with Flax's layers. Each cell is woven into the text where it is
# asked for by name; the file also runs on its own, from top to bottom.

# %% setup
import math
from collections.abc import Callable
from functools import cache

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.extend.core import Literal

from d2l_compat import jax as d2l

# All arrays here are small; d2l.try_gpu() takes a GPU.
jax.config.update("jax_default_device", d2l.cpu())


# %% scaling
for width in (4, 64, 1024):
    key = jax.random.fold_in(jax.random.key(0), width)
    queries, keys = jax.random.normal(key, (2, 2000, width))
    scores = (queries * keys).sum(axis=-1)
    scaled = scores / math.sqrt(width)
    print(
        f"d = {width:>4}: spread {scores.std():5.2f}, over sqrt(d) {scaled.std():.2f}"
    )

# %% shape-check
num_hiddens, num_heads = 100, 5
attention = d2l.MultiHeadAttention(num_hiddens, num_heads, dropout=0.5)

X = d2l.ones((2, 4, num_hiddens))
valid_lens = d2l.tensor([3, 2])
(Y, weights), attention_variables = attention.init_with_output(
    jax.random.key(1), X, X, X, valid_lens, training=False
)
Y.shape


# %% by-hand
X = jax.random.normal(jax.random.key(2), (2, 4, num_hiddens))
Y, weights = attention.apply(attention_variables, X, X, X, valid_lens)


def attend_by_hand(X, valid_len):
    """The formula, head by head, for one sequence."""
    parameters = attention_variables["params"]
    W_q, W_k, W_v, W_o = (parameters[f"W_{i}"]["kernel"] for i in "qkvo")
    Q, K, V = (jnp.split(X @ W, num_heads, axis=-1) for W in (W_q, W_k, W_v))
    masked = jnp.arange(len(X)) >= valid_len
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        heads.append(jax.nn.softmax(jnp.where(masked, -jnp.inf, scores)) @ v)
    return d2l.concat(heads, axis=-1) @ W_o


by_hand = jax.vmap(attend_by_hand)(X, valid_lens)
print(f"largest difference: {jnp.abs(Y - by_hand).max():.5f}")


# %% weights-check
# The layer returned its weights as well: (batch, heads, queries, keys).
print("shape of the weights:", weights.shape)
for i, valid_len in enumerate(valid_lens.tolist()):
    valid, masked = weights[i, :, :, :valid_len], weights[i, :, :, valid_len:]
    sums, zeros = valid.sum(axis=-1), (masked == 0).sum()
    print(f"sequence {i + 1} has {valid_len} valid keys")
    print(f"  sums of weights: {sums.min():.5f} to {sums.max():.5f}")
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
tokens = jax.random.normal(jax.random.key(3), (1, 6, num_hiddens))
order = d2l.tensor([3, 0, 5, 1, 4, 2])
add_positions = d2l.PositionalEncoding(num_hiddens, 0)


def without_positions(X):
    return attention.apply(attention_variables, X, X, X)[0]


def with_positions(X):
    return without_positions(add_positions.apply({}, X))


for layer in (without_positions, with_positions):
    difference = layer(tokens[:, order]) - layer(tokens)[:, order]
    print(f"{layer.__name__:>17}: {jnp.abs(difference).max():.4f}")


# %% three-layers
n, d, k = 10, 16, 3


def halved(variables):
    """Half of what Flax draws: no token gets nearly all the attention then."""
    return jax.tree.map(lambda W: W / 2, variables)


X = jax.random.normal(jax.random.key(4), (1, n, d))
conv = nn.Conv(d, kernel_size=(k,), use_bias=False)  # pads to keep the length
conv_variables = conv.init(jax.random.key(5), X)
orthogonal = nn.initializers.orthogonal()
W_xh, W_hh = (orthogonal(key, (d, d)) for key in jax.random.split(jax.random.key(6)))
small_attention = d2l.MultiHeadAttention(d, 2, 0)
small_variables = halved(small_attention.init(jax.random.key(7), X, X, X))


def cnn(X):
    return conv.apply(conv_variables, X)


def rnn(X, W_hh=W_hh):
    def step(H, x):
        H = jnp.tanh(x @ W_xh + H @ W_hh)
        return H, H

    _, outputs = jax.lax.scan(step, jnp.zeros_like(X[:, 0]), X.swapaxes(0, 1))
    return outputs.swapaxes(0, 1)


def self_attention(X):
    return small_attention.apply(small_variables, X, X, X)[0]


layers = {"CNN": cnn, "RNN": rnn, "self_attention": self_attention}
{name: layer(X).shape for name, layer in layers.items()}


# %% influence
def influence(layer, X):
    """How strongly input j acts on output i: the norm of dy_i/dx_j, shape (n, n)."""
    jacobian = jax.jit(jax.jacobian(layer))(X)[0, :, :, 0]
    return jnp.linalg.norm(jacobian, axis=(1, 3))


maps = [influence(layer, X) for layer in layers.values()]
for name, m in zip(layers, maps, strict=True):
    print(f"{name}: {jnp.count_nonzero(m)} of {m.size} pairs are connected")

# %% influence-heatmaps
d2l.show_heatmaps(
    d2l.stack([m / m.max() for m in maps])[None],
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
            X = jnp.tanh(cnn(X))
        return X

    return layer


sees = jnp.flatnonzero(influence(stacked(2), X)[2]) + 1
print("two layers: y_3 depends on", ", ".join(f"x_{j}" for j in sees))
for depth in range(1, 5):
    reached = influence(stacked(depth), X)[4, 0] > 0
    print(f"{depth} layers: y_5 depends on x_1: {reached}")

# %% sequential-operations
PRODUCTS = ("dot_general", "conv_general_dilated")


def graph_of(layer, n):
    """What a layer does with n tokens, operation by operation."""
    with jax.disable_jit():  # or a loop would be a single operation
        return jax.make_jaxpr(layer)(jnp.zeros((1, n, d))).jaxpr


def sequential_products(layer, n):
    """Products on the longest chain of operations that wait for each other."""
    graph = graph_of(layer, n)
    made_by = {v: operation for operation in graph.eqns for v in operation.outvars}

    @cache
    def longest(v):
        if v not in made_by:  # the input or a weight
            return 0
        operation = made_by[v]
        parents = [v for v in operation.invars if not isinstance(v, Literal)]
        before = max(map(longest, parents), default=0)
        return before + (operation.primitive.name in PRODUCTS)

    return longest(graph.outvars[0])


def print_row(first, others):
    print(f"{first:>4}" + "".join(f"{other:>16}" for other in others))


print_row("n", layers)
for length in (4, 8, 16, 32):
    print_row(length, [sequential_products(layer, length) for layer in layers.values()])


# %% multiply-adds
def multiply_adds(layer, n):
    total = 0
    for operation in graph_of(layer, n).eqns:
        if operation.primitive.name in PRODUCTS:
            left, right, result = (v.aval for v in operation.invars + operation.outvars)
            dimensions = operation.params["dimension_numbers"]
            if operation.primitive.name == "dot_general":
                (summed, _), _ = dimensions
                terms = math.prod(left.shape[axis] for axis in summed)
            else:  # every output channel sums over a kernel of its own
                terms = right.size // right.shape[dimensions.rhs_spec[0]]
            total += result.size * terms
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
class PositionalEncoding(nn.Module):
    """Adds sines and cosines of the position to each vector of a sequence."""

    num_hiddens: int
    dropout: float
    max_len: int = 1000

    def setup(self):
        column = np.arange(self.num_hiddens)
        # NumPy's double precision: in single, far positions would be off by more than 5e-5.
        position = np.arange(self.max_len)[:, None]
        angle = position / 10000 ** (2 * (column // 2) / self.num_hiddens)
        P = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
        self.P = jnp.asarray(P[None], jnp.float32)

    @nn.compact
    def __call__(self, X, training=False, *, offset=0):
        end = offset + X.shape[1]
        if offset < 0 or end > self.max_len:
            raise ValueError(
                f"no positions {offset} to {end - 1}: there are 0 to {self.max_len - 1}"
            )
        self.sow("intermediates", "P", self.P)
        X = X + self.P[:, offset:end]
        return nn.Dropout(self.dropout)(X, deterministic=not training)


# %% encoding-checks
encoding = PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
zeros = d2l.zeros((1, 10, 7))
variables = encoding.init(jax.random.key(8), zeros)
one_by_one = [encoding.apply(variables, zeros[:, :1], offset=i) for i in range(10)]
whole, sown = encoding.apply(variables, zeros, mutable="intermediates")
(P,) = sown["intermediates"]["P"]
library = d2l.PositionalEncoding(num_hiddens=7, dropout=0, max_len=10)
dropping = PositionalEncoding(num_hiddens=7, dropout=0.5, max_len=10)
rngs = {"dropout": jax.random.key(19)}
dropped = dropping.apply(variables, zeros, training=True, rngs=rngs)

as_one = d2l.concat(one_by_one, axis=1)
print("one by one as all at once:", jnp.array_equal(whole, as_one))
print("the same as the library's:", jnp.allclose(P, library.P))
print("dropped or doubled in training:", jnp.all((dropped == 0) | (dropped == 2 * P)))
print("trained:", list(variables.get("params", [])), " saved:", list(variables))
for offset in (-1, 1):
    try:
        encoding.apply(variables, zeros, offset=offset)
    except ValueError as error:
        print("ValueError:", error)


# %% scale-and-sum
d_model = 512
embedding = nn.Embed(1000, d_model)  # drawn with variance 1 / d_model
tokens = jax.random.randint(jax.random.key(9), (1, 60), 0, 1000)
encoding = PositionalEncoding(d_model, 0)

E, _ = embedding.init_with_output(jax.random.key(10), tokens)
scaled = E * math.sqrt(d_model)
X, sown = encoding.apply({}, scaled, mutable="intermediates")
(P,) = sown["intermediates"]["P"]
named = {
    "embedding": E,
    "scaled": scaled,
    "encoding": P[:, :60],
    "their sum": X,
}
for name, vectors in named.items():
    print(f"{name:>10}: mean length {jnp.linalg.norm(vectors, axis=-1).mean():.2f}")


# %% column-plot
num_steps, width = 60, 32
encoding = PositionalEncoding(width, 0)
P = encoding.apply({}, d2l.zeros((1, num_steps, width)))[0]
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
products = d2l.numpy(P @ P.T)
distances = np.arange(-20, 21)  # i - j
rows = (20, 28, 36)
d2l.plot(
    distances,
    [products[i, i - distances] for i in rows],
    xlabel="Distance i - j",
    ylabel="Dot product",
    figsize=(6, 2.5),
    legend=[f"i = {i}" for i in rows],
)
diagonals = [products.diagonal(k) for k in range(1 - num_steps, num_steps)]
spread = max(x.max() - x.min() for x in diagonals)
print(f"P_i with itself: {products[0, 0]:.4f}")
print(f"largest spread at any one distance: {spread:.4f}")


# %% rotation
# (position, pair, sine and cosine)
pairs = P.reshape(num_steps, width // 2, 2)
omega = 10000 ** -(jnp.arange(0, width, 2) / width)
largest = 0
for delta in (1, 2, 5, 10, 30, -5):
    sin, cos = jnp.sin(delta * omega), jnp.cos(delta * omega)
    rotations = d2l.stack([cos, sin, -sin, cos], axis=-1).reshape(-1, 2, 2)
    turned = jnp.einsum("jab,ijb->ija", rotations, pairs)
    i = jnp.arange(max(0, -delta), num_steps - max(0, delta))
    residual = jnp.abs(turned[i] - pairs[i + delta]).max()
    largest = max(largest, residual)
    print(
        f"delta {delta:>2}: {len(i) * len(omega)} pairs, on target: {residual < 1e-5}"
    )
print(f"largest residual: {largest:.1e}")


# %% solution-stacking
def diversity(X):
    """The share of X in which its tokens differ: 0 where all are the same."""
    differences = X - X.mean(axis=1, keepdims=True)
    return float(jnp.linalg.norm(differences) / jnp.linalg.norm(X))


depth = 8
start = jax.random.normal(jax.random.key(11), (1, 16, 64))
start = d2l.PositionalEncoding(64, 0).apply({}, start)
block = d2l.MultiHeadAttention(64, 4, 0)  # one layer, with parameters for each depth
keys = jax.random.split(jax.random.key(12), depth)
stack = [halved(block.init(key, start, start, start)) for key in keys]
curves = []
for skip in (False, True):
    X, curve = start, [diversity(start)]
    for block_variables in stack:
        X = block.apply(block_variables, X, X, X)[0] + (X if skip else 0)
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

    num_hiddens: int
    max_len: int

    def setup(self):
        self.P = nn.Embed(self.max_len, self.num_hiddens)

    def __call__(self, X):
        return X + self.P(jnp.arange(X.shape[1]))


class Reader(nn.Module):
    """Embedding, encoding, self-attention, and a yes or no for the sequence."""

    encoding: Callable
    vocab_size: int = 10
    num_hiddens: int = 32

    @nn.compact
    def __call__(self, tokens):
        X = self.encoding(nn.Embed(self.vocab_size, self.num_hiddens)(tokens))
        Y, _ = d2l.MultiHeadAttention(self.num_hiddens, 4, 0)(X, X, X)
        H = nn.relu(nn.Dense(self.num_hiddens)(Y.mean(axis=1)))
        return nn.Dense(1)(H).squeeze(-1)


# %% solution-learned-data
def sequences(key, count, length=8):
    """Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come first?"""
    for_tokens, for_places = jax.random.split(key)
    tokens = jax.random.randint(for_tokens, (count, length), 2, 10)
    places = jax.random.uniform(for_places, (count, length)).argsort(axis=1)[:, :2]
    tokens = tokens.at[jnp.arange(count)[:, None], places].set(jnp.arange(2))
    return tokens, (places[:, 0] < places[:, 1]).astype(jnp.float32)


def mirrored(tokens, labels):
    """Every sequence twice: as it is, and with its 0 and 1 exchanged."""
    exchanged = jnp.where(tokens < 2, 1 - tokens, tokens)
    return d2l.concat([tokens, exchanged]), d2l.concat([labels, 1 - labels])


for tokens, label in zip(*mirrored(*sequences(jax.random.key(20), 1)), strict=True):
    print(tokens.tolist(), "->", int(label))


# %% solution-learned-training
def train(model, steps=300):
    """The variables that Adam finds, with new sequences in every step."""
    variables = model.init(jax.random.key(13), test_tokens)
    optimizer = optax.adam(3e-3)
    state = optimizer.init(variables)

    def loss(variables, tokens, labels):
        logits = model.apply(variables, tokens)
        return optax.sigmoid_binary_cross_entropy(logits, labels).mean()

    @jax.jit
    def step(variables, state, i):
        key = jax.random.fold_in(jax.random.key(14), i)
        gradients = jax.grad(loss)(variables, *sequences(key, 128))
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(variables, updates), state

    for i in range(steps):
        variables, state = step(variables, state, i)
    return variables


test_tokens, test_labels = mirrored(*sequences(jax.random.key(15), 500))
for name, encoding in (
    ("none", lambda X: X),
    ("fixed", d2l.PositionalEncoding(32, 0)),
    ("learned", LearnedPositionalEncoding(32, 8)),
):
    model = Reader(encoding)
    correct = (model.apply(train(model), test_tokens) > 0) == (test_labels > 0)
    print(f"{name:>8}: {correct.mean():.1%}")

# %% solution-causal
causal_lens = jnp.arange(1, n + 1)[None]  # (batch, queries)
X = jax.random.normal(jax.random.key(16), (1, n, d))


def causal_attention(X):
    return small_attention.apply(small_variables, X, X, X, causal_lens)[0]


causal = influence(causal_attention, X)
print("any influence of the future:", jnp.triu(causal, 1).any())
print("pairs connected:", jnp.count_nonzero(causal), "of", causal.size)
d2l.show_heatmaps(
    (causal / causal.max())[None, None],
    xlabel="Input j",
    ylabel="Output i",
    cmap="Blues",
)

# %% solution-fading
n_far = 24
X = jax.random.normal(jax.random.key(17), (1, n_far, d))
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
    signal, kernel, depth = jnp.zeros((1, 1, n)), jnp.ones((1, 1, 3)), 0
    signal = signal.at[..., 0].set(1)
    while signal[..., -1] == 0:
        step = growth**depth
        signal = jax.lax.conv_general_dilated(
            signal, kernel, (1,), padding=[(step, step)], rhs_dilation=(step,)
        )
        signal, depth = signal.clip(max=1), depth + 1  # only whether it arrives
    return depth


print(f"{'n':>4}{'plain':>8}{'dilated':>9}")
for length in (5, 14, 41, 122):
    print(f"{length:>4}{layers_to_cross(length, 1):>8}{layers_to_cross(length, 3):>9}")


# %% solution-decoding
encoding = PositionalEncoding(d, 0)
tokens = jax.random.normal(jax.random.key(18), (1, n, d))
at_once = causal_attention(encoding.apply({}, tokens))

# Room for all tokens from the start: JAX compiles anew for every other shape.
kept, outputs = jnp.zeros((1, n, d)), []
for i in range(n):
    x = encoding.apply({}, tokens[:, i : i + 1], offset=i)
    kept = kept.at[:, i].set(x[:, 0])
    so_far = d2l.tensor([i + 1])
    output, _ = small_attention.apply(small_variables, x, kept, kept, so_far)
    outputs.append(output)
difference = jnp.abs(at_once - d2l.concat(outputs, axis=1)).max()
print(f"largest difference: {difference:.5f}")
