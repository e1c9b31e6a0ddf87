# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import timeit
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from jax.tree_util import Partial

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())


def draw_normal(seed, *shape):
    """Draw standard normal numbers with NumPy, since JAX compiles for each new shape."""
    numbers = np.random.default_rng(seed).normal(size=shape)
    return jnp.array(numbers, jnp.float32)


# %% plain-attention
@jax.jit
def attention(Q, K, V, mask=None):
    """Return softmax(Q K^T / sqrt(d)) V; the mask is True for what a query sees."""
    scores = Q @ K.T / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jax.nn.softmax(scores) @ V


# %% operations
d, kernel_size = 64, 8

print("    n         CNN         RNN   attention")
for n in [32, 128, 512, 2048]:
    counts = kernel_size * n * d**2, 2 * n * d**2, 4 * n * d**2 + 2 * n**2 * d
    print(f"{n:5d}" + "".join(f"{count:12,d}" for count in counts))

# %% layers
conv = nn.Conv(d, (kernel_size,), padding="CAUSAL")  # zeros in front: n outputs
rnn = nn.RNN(nn.SimpleCell(d))
X = jnp.zeros((kernel_size, d))  # only for its shape
conv_variables = jax.jit(conv.init)(jax.random.key(0), X)
rnn_variables = jax.jit(rnn.init)(jax.random.key(1), X)
matrices = draw_normal(2, 4, d, d) / math.sqrt(d)


def attend(matrices, X):
    W_q, W_k, W_v, W_o = matrices
    return attention(X @ W_q, X @ W_k, X @ W_v) @ W_o


# A Partial is a pytree: JAX also computes gradients of the variables in it.
layers = [
    Partial(conv.apply, conv_variables),
    Partial(rnn.apply, rnn_variables),
    Partial(attend, matrices),
]


# %% layers-timed
@jax.jit
@partial(jax.value_and_grad, argnums=(0, 1))
def sum_and_gradients(layer, X):
    return layer(X).sum()


def milliseconds(layer, n):
    """Return the time of a forward and a backward pass, the fastest of five."""
    X = draw_normal(0, n, d)

    def step():
        # JAX returns before it has computed.
        jax.block_until_ready(sum_and_gradients(layer, X))

    step()  # compiles
    return 1000 * min(timeit.repeat(step, number=1, repeat=5))


lengths = [2**i for i in range(5, 12)]
times = [[milliseconds(layer, n) for n in lengths] for layer in layers]

# %% layers-drawn tags=["nbval-ignore-output"]
names = ["CNN", "RNN", "attention"]
print("milliseconds   " + "".join(f"{n:8d}" for n in lengths) + "  exponent")
for name, row in zip(names, times, strict=True):
    exponent = math.log(row[-1] / row[-3], 4)  # over the last two doublings
    print(f"{name:15}" + "".join(f"{x:8.2f}" for x in row) + f"{exponent:10.1f}")
d2l.plot(
    lengths,
    times,
    "tokens",
    "milliseconds",
    legend=names,
    xscale="log",
    yscale="log",
)

# %% bytes
for n in [1000, 4000, 16_000]:
    print(f"n = {n:6,d}: 8 n^2 = {8 * n**2:13,d}, 4 n d = {4 * n * d:9,d}")

# %% online-by-hand
scores = [1.0, 3.0, 2.0]
values = [10.0, 20.0, 30.0]
m, l, o = -math.inf, 0.0, 0.0
for s, v in zip(scores, values, strict=True):
    new_m = max(m, s)
    shrink = math.exp(m - new_m)
    l = l * shrink + math.exp(s - new_m)
    o = o * shrink + math.exp(s - new_m) * v
    m = new_m
    print(f"s = {s:.0f}: m = {m:.0f}, l = {l:.3f}, o = {o:6.3f}, o / l = {o / l:.3f}")

# %% softmax-by-hand
weights = jax.nn.softmax(jnp.array(scores))
print(f"o / l = {weights @ jnp.array(values):.3f}")

# %% overflow
large = jnp.array([100.0, 102.0])
for name, s in {"s": large, "s - m": large - large.max()}.items():
    powers = jnp.exp(s)
    weights = powers / powers.sum()
    print(f"{name:5}: powers  {powers.tolist()}")
    print(f"{name:5}: weights {weights.tolist()}")


# %% blocks
def cut(X, size):
    """Cut rows into blocks (blocks, size, d), as jax.lax.scan takes them.

    Zeros, or False, fill the last block.
    """
    filled = jnp.pad(X, [(0, -len(X) % size), (0, 0)])
    return filled.reshape(-1, size, X.shape[1])


def cut_keys(K, V, block_size):
    """Cut keys and values into blocks; also return which rows are keys."""
    is_key = jnp.ones((len(K), 1), bool)
    return cut(K, block_size), cut(V, block_size), cut(is_key, block_size)


@partial(jax.jit, static_argnames="block_size")
def attend_in_blocks(Q, K, V, block_size):
    """Compute attention by blocks of keys; also return the logarithms of the sums."""

    def add_block(sums, block):
        m, l, O = sums
        K_block, V_block, is_key = block
        scores = Q @ K_block.T / math.sqrt(Q.shape[1])
        scores = jnp.where(is_key.T, scores, -jnp.inf)
        new_m = jnp.maximum(m, scores.max(axis=1, keepdims=True))
        shrink = jnp.exp(m - new_m)
        powers = jnp.exp(scores - new_m)
        l = l * shrink + powers.sum(axis=1, keepdims=True)
        O = O * shrink + powers @ V_block
        return (new_m, l, O), None

    m = jnp.full((len(Q), 1), -jnp.inf)
    l = jnp.zeros((len(Q), 1))
    O = jnp.zeros((len(Q), V.shape[1]))
    # A loop that is compiled once for all blocks, since they have the same shape.
    (m, l, O), _ = jax.lax.scan(add_block, (m, l, O), cut_keys(K, V, block_size))
    return O / l, m + jnp.log(l)


# %% matrices
n = 300
Q, K, V = draw_normal(3, 3, n, d)
grad_o = draw_normal(4, n, d)  # a gradient for the output, to try the way back with
expected = attention(Q, K, V)

# %% blocks-same
for block_size in [1, 7, 64, 300]:
    O, _ = attend_in_blocks(Q, K, V, block_size)
    print(f"b = {block_size:3d}: max |a - b| = {jnp.abs(O - expected).max():.5f}")

# %% empty-row
hidden = jnp.array([-jnp.inf, -jnp.inf])
m = new_m = hidden.max()
layer = d2l.DotProductAttention(dropout=0.0)
apply = jax.jit(layer.apply)
nothing, _ = apply({}, Q[None], K[None], V[None], valid_lens=jnp.array([0]))
print("weights:  ", jax.nn.softmax(hidden).tolist())
print("m - m':   ", (m - new_m).item())
print("d2l:      ", nothing[0, 0, :2].tolist())


# %% backward
@partial(jax.jit, static_argnames="block_size")
def gradients_in_blocks(Q, K, V, O, log_sums, grad_o, block_size):
    """Return the gradients of sum(O * grad_o); weights are computed once more."""
    scale = 1 / math.sqrt(Q.shape[1])
    mean = (grad_o * O).sum(axis=1, keepdims=True)

    def add_block(grad_q, block):
        K_block, V_block, is_key = block
        weights = jnp.exp(Q @ K_block.T * scale - log_sums)
        weights = jnp.where(is_key.T, weights, 0)
        grad_scores = weights * (grad_o @ V_block.T - mean)
        grad_q += grad_scores @ K_block * scale
        grad_k = grad_scores.T @ Q * scale
        grad_v = weights.T @ grad_o
        return grad_q, (grad_k, grad_v)

    blocks = cut_keys(K, V, block_size)
    grad_q, (grads_k, grads_v) = jax.lax.scan(add_block, jnp.zeros_like(Q), blocks)
    grad_k = grads_k.reshape(-1, K.shape[1])[: len(K)]
    grad_v = grads_v.reshape(-1, V.shape[1])[: len(V)]
    return grad_q, grad_k, grad_v


# %% backward-same
_, backward = jax.vjp(attention, Q, K, V)
wanted = backward(grad_o)
O, log_sums = attend_in_blocks(Q, K, V, 64)
found = gradients_in_blocks(Q, K, V, O, log_sums, grad_o, 64)
for name, a, b in zip("QKV", found, wanted, strict=True):
    print(f"{name}: max |a - b| = {jnp.abs(a - b).max():.5f}")


# %% kept
def call(function, *inputs):
    return function(*inputs)


def kept_megabytes(function, n):
    """Return how much is kept for the backward pass."""
    # For shapes alone, nothing has to be computed. The function is an input as well:
    # what the gradients of its variables need is also kept.
    X = jax.ShapeDtypeStruct((n, d), jnp.float32)
    _, backward = jax.eval_shape(partial(jax.vjp, call), function, X, X, X)
    # The backward pass is a pytree, too: its leaves are the arrays that it needs.
    arrays = jax.tree.leaves(backward)
    return sum(x.size * x.dtype.itemsize for x in arrays) / 1e6


def read_queries(layer, Q, K, V):
    return layer(Q)


def attend_d2l(Q, K, V):
    output, _ = d2l.DotProductAttention(dropout=0.0).apply(
        {}, Q[None], K[None], V[None]
    )
    return output


# On a CPU, jax.nn.dot_product_attention keeps the matrix, as our formula does.
functions = [
    Partial(read_queries, layers[0]),
    Partial(read_queries, layers[1]),
    Partial(attention),
    Partial(lambda Q, K, V: attend_in_blocks(Q, K, V, 64)[0]),
    Partial(attend_d2l),
]
kept = [
    [kept_megabytes(function, n) for n in [1024, 2048, 4096]] for function in functions
]

# %% kept-shown tags=["tolerance:relative=0.1"]
names = ["CNN", "RNN", "attention", "in blocks", "d2l"]
print("megabytes   " + "".join(f"{n:8,d}" for n in [1024, 2048, 4096]))
for name, row in zip(names, kept, strict=True):
    print(f"{name:12}" + "".join(f"{x:8.1f}" for x in row))


# %% window
def window_mask(n, window):
    """Return which keys each query sees: its own, and the window - 1 before it."""
    distance = jnp.arange(n)[:, None] - jnp.arange(n)
    return (distance >= 0) & (distance < window)


for row in window_mask(6, 3).astype(int).tolist():
    print(*row)


# %% window-blocks
@partial(jax.jit, static_argnames="window")
def attend_in_window(Q, K, V, window):
    """Let each block of queries attend to its own block of keys and the one before."""
    n, d = Q.shape
    # Zeros fill the last block: later keys, which no query sees.
    Q, K, V = (cut(X, window) for X in (Q, K, V))
    # A block of zeros stands in front, since the first block has none before it.
    K, V = (jnp.pad(X, [(1, 0), (0, 0), (0, 0)]) for X in (K, V))
    K, V = (jnp.concatenate([X[:-1], X[1:]], axis=1) for X in (K, V))

    # Queries stand in the second half of their two blocks of keys.
    distance = window + jnp.arange(window)[:, None] - jnp.arange(2 * window)
    mask = jnp.tile((distance >= 0) & (distance < window), (len(Q), 1, 1))
    mask = mask.at[0, :, :window].set(False)
    scores = jnp.where(mask, Q @ K.mT / math.sqrt(d), -jnp.inf)
    return (jax.nn.softmax(scores) @ V).reshape(-1, d)[:n]


# %% window-same
expected = attention(Q, K, V, window_mask(n, 32))
layer = d2l.DotProductAttention(0.0)
apply = jax.jit(layer.apply, static_argnames="window")
by_d2l, _ = apply({}, Q[None], K[None], V[None], window=32)
for found in [attend_in_window(Q, K, V, 32), by_d2l[0]]:
    print(f"max |a - b| = {jnp.abs(found - expected).max():.5f}")

# %% off-by-one
found = attention(Q, K, V, window_mask(n, 32 + 1))
print(f"max |a - b| = {jnp.abs(found - expected).max():.5f}")


# %% reach
def find_reach(num_layers, window, n=24):
    """Return which inputs the last output depends on, after several layers."""
    X = 0.1 * draw_normal(5, n, 8)  # small, so that the weights are nearly equal

    def sum_last_output(H):
        for _ in range(num_layers):
            H = H + attend_in_window(H, H, H, window)
        return H[-1].sum()

    gradient = jax.grad(sum_last_output)(X)
    return (gradient != 0).any(axis=1)


reached = [find_reach(num_layers, 4).sum().item() for num_layers in range(1, 7)]

# %% reach-shown
for num_layers, num_tokens in enumerate(reached, start=1):
    print(
        f"L = {num_layers}: {num_tokens:2d} tokens, L (w - 1) + 1 = {3 * num_layers + 1:2d}"
    )

# %% linear-by-hand
keys = jnp.array([[1.0, 0], [0, 1], [1, 1]])
values = jnp.array([10.0, 20, 30])
query = jnp.array([1.0, 0])
kv, k = jnp.zeros(2), jnp.zeros(2)
for key, value in zip(keys, values, strict=True):
    kv = kv + key * value
    k = k + key
    print(f"kv = {kv.tolist()}, k = {k.tolist()}")
print(f"{query @ kv:.0f} / {query @ k:.0f} = {query @ kv / (query @ k):.0f}")


# %% linear-forms
def make_positive(X):
    return jax.nn.elu(X) + 1


@jax.jit
def attend_in_parallel(Q, K, V, decay=1.0):
    """Compute linear attention with a matrix of weights, all at once."""
    Q, K = make_positive(Q), make_positive(K)
    step = jnp.arange(Q.shape[-2])
    distance = (step[:, None] - step).clip(min=0)  # if negative, powers overflow
    weights = jnp.tril(Q @ K.mT * decay**distance)
    return weights @ V / weights.sum(axis=-1, keepdims=True)


@jax.jit
def attend_token_by_token(Q, K, V, decay=1.0):
    """Compute the same with two sums, which do not grow."""

    def add_token(sums, token):
        kv, k = sums
        query, key, value = token
        kv = decay * kv + jnp.outer(key, value)
        k = decay * k + key
        return (kv, k), query @ kv / (query @ k)

    sums = jnp.zeros((K.shape[1], V.shape[1])), jnp.zeros(K.shape[1])
    tokens = make_positive(Q), make_positive(K), V
    _, outputs = jax.lax.scan(add_token, sums, tokens)
    return outputs


# %% linear-same
expected = attend_token_by_token(Q, K, V, decay=0.9)
found = attend_in_parallel(Q, K, V, decay=0.9)
print(f"max |a - b| = {jnp.abs(found - expected).max():.5f}")


# %% chunks
@partial(jax.jit, static_argnames="size")
def attend_in_chunks(Q, K, V, decay=1.0, size=64):
    """Use a matrix of weights in each chunk; two sums lead from chunk to chunk."""
    step = jnp.arange(size)[:, None]

    def add_chunk(sums, chunk):
        kv, k = sums
        queries, keys, values = chunk
        # After cut, so that the zeros that fill the last chunk become positive, too:
        # otherwise their rows, though dropped, would be 0 / 0, and gradients NaN.
        queries, keys = make_positive(queries), make_positive(keys)
        weights = jnp.tril(queries @ keys.T * decay ** (step - step.T).clip(min=0))
        old_queries = queries * decay ** (step + 1)  # for what came before the chunk
        total = weights.sum(axis=1) + old_queries @ k
        output = (weights @ values + old_queries @ kv) / total[:, None]
        new_keys = keys * decay ** (size - 1 - step)  # as the next chunk sees them
        kv = decay**size * kv + new_keys.T @ values
        k = decay**size * k + new_keys.sum(axis=0)
        return (kv, k), output

    sums = jnp.zeros((K.shape[1], V.shape[1])), jnp.zeros(K.shape[1])
    chunks = cut(Q, size), cut(K, size), cut(V, size)
    _, outputs = jax.lax.scan(add_chunk, sums, chunks)
    return outputs.reshape(-1, V.shape[1])[: len(Q)]


# %% chunks-same
for size in [1, 64, 300]:
    found = attend_in_chunks(Q, K, V, 0.9, size)
    print(f"c = {size:3d}: max |a - b| = {jnp.abs(found - expected).max():.5f}")

# %% forms-timed
forms = [
    attention,
    lambda Q, K, V: attend_in_window(Q, K, V, 64),
    lambda Q, K, V: attend_in_chunks(Q, K, V, size=64),
]
form_lengths = [512, 1024, 2048, 4096]
form_times = []
for form in forms:
    layer = Partial(lambda X, form=form: form(X, X, X))
    form_times.append([milliseconds(layer, n) for n in form_lengths])

# %% forms-timed-shown tags=["nbval-ignore-output"]
names = ["attention", "in a window", "chunks"]
print("milliseconds   " + "".join(f"{n:8,d}" for n in form_lengths))
for name, row in zip(names, form_times, strict=True):
    print(f"{name:15}" + "".join(f"{x:8.2f}" for x in row))


# %% linear-layer
class LinearAttention(nn.Module):
    """Causal linear attention with several heads, in its parallel form."""

    num_hiddens: int
    num_heads: int
    decay: float = 1.0

    def setup(self):
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_o = nn.Dense(self.num_hiddens, use_bias=False)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        return X.reshape(*X.shape[:2], self.num_heads, -1).swapaxes(1, 2)

    def __call__(self, X):
        q, k, v = (self.split(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        pooled = attend_in_parallel(q, k, v, self.decay)
        return self.W_o(pooled.swapaxes(1, 2).reshape(X.shape))


# %% linear-layer-same
layer, d2l_layer = LinearAttention(16, 2, 0.9), d2l.LinearAttention(16, 2, decay=0.9)
X = draw_normal(6, 2, 50, 16)
# Both layers name their matrices alike.
variables = jax.jit(layer.init)(jax.random.key(7), X)
state = d2l_layer.make_state(batch_size=2)
apply = jax.jit(d2l_layer.apply)
parts = []
for part in [X[:, :30], X[:, 30:]]:
    output, state = apply(variables, part, state)
    parts.append(output)
difference = jnp.concatenate(parts, axis=1) - jax.jit(layer.apply)(variables, X)
print(f"max |a - b| = {jnp.abs(difference).max():.5f}")

# %% state-bytes
cache = d2l.CausalSelfAttention(256, 4).make_cache(batch_size=1, max_len=1000)
state = d2l.LinearAttention(256, 4).make_state(batch_size=1)
bytes_per_token = cache.nbytes // 1000

# %% state-bytes-shown
print(f"state                      {state.nbytes:11,d} bytes")
for n in [100, 1000, 10_000, 100_000]:
    print(f"cache of {n:7,d} tokens    {bytes_per_token * n:11,d} bytes")

# %% draw-pairs
num_keys, num_values = 32, 8


def draw_pairs(rng, batch_size, num_pairs):
    """Draw pairs of a key and a value, then each key once more; also return answers.

    A token is a key and a value; where the value is asked for, it is num_values.
    """
    # Drawn with NumPy, as data often are, since JAX compiles for each new shape.
    keys = rng.random((batch_size, num_keys)).argsort(axis=1)[:, :num_pairs]
    values = rng.integers(num_values, size=(batch_size, num_pairs))
    order = rng.random((batch_size, num_pairs)).argsort(axis=1)
    asked = np.full_like(values, num_values)
    keys_again = np.take_along_axis(keys, order, axis=1)
    answers = np.take_along_axis(values, order, axis=1)
    all_keys = np.concatenate([keys, keys_again], axis=1)
    return all_keys, np.concatenate([values, asked], axis=1), answers


keys, values, answers = draw_pairs(np.random.default_rng(0), 1, 3)

# %% pairs-shown
for key, value in zip(keys[0].tolist(), values[0].tolist(), strict=True):
    print(f"({key}, {value if value < num_values else '?'})", end=" ")
print("->", *answers[0].tolist())


# %% recaller
class Recaller(nn.Module):
    """Read pairs with layers of attention, and name the value of each token's key."""

    layers: tuple[nn.Module, ...]
    num_hiddens: int = 16

    def setup(self):
        # Vectors of variance 1; Flax's default vectors are shorter.
        normal = nn.initializers.normal(stddev=1)
        make_embedding = partial(nn.Embed, embedding_init=normal)
        self.key_embedding = make_embedding(num_keys, self.num_hiddens)
        self.value_embedding = make_embedding(num_values + 1, self.num_hiddens)
        self.dense = nn.Dense(num_values)

    def __call__(self, keys, values):
        X = self.key_embedding(keys) + self.value_embedding(values)
        for layer in self.layers:
            X = X + layer(X)
        return self.dense(X)


# %% train
num_steps, lr = 400, 0.02
# One for all models, since train_step is compiled for each optimizer.
optimizer = optax.adam(optax.linear_schedule(lr, 0.1 * lr, num_steps))


def fill(keys, values, answers, num_tokens=32):
    """Fill texts up, since JAX compiles for each shape; no token sees what comes later.

    Each token that asks gets its answer, and other tokens have 0 in its place.
    """
    num_pairs = answers.shape[1]
    rest = num_tokens - 2 * num_pairs
    keys, values = (np.pad(X, [(0, 0), (0, rest)]) for X in (keys, values))
    return keys, values, np.pad(answers, [(0, 0), (num_pairs, rest)])


@jax.jit  # compiled once for each module, since the state contains its `apply`
def train_step(state, keys, values, answers):
    def loss(params):
        logits = state.apply_fn({"params": params}, keys, values)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, answers)
        return losses.mean(where=values == num_values)

    return state.apply_gradients(grads=jax.grad(loss)(state.params))


def train(module, seed, batch_size=32):
    """Train on 2, 4, 8 and 16 pairs in turn; the learning rate falls to a tenth."""
    rng = np.random.default_rng(seed)
    keys, values, _ = draw_pairs(rng, 1, 2)  # only for their shapes
    variables = module.init(jax.random.key(seed), keys, values)
    state = TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )
    for step in range(num_steps):
        batch = draw_pairs(rng, batch_size, [2, 4, 8, 16][step % 4])
        state = train_step(state, *fill(*batch))
    return module, {"params": state.params}


def train_five(module):
    """Train five models, each from a seed of its own."""
    return [train(module, seed) for seed in range(5)]


# %% train-all
softmax_models = train_five(Recaller((d2l.CausalSelfAttention(16, 4),)))
one_head_models = train_five(Recaller((LinearAttention(16, 1),)))
four_heads_models = train_five(Recaller((LinearAttention(16, 4),)))

# %% recall
nums_pairs = [2, 4, 8, 16]
rng = np.random.default_rng(100)
texts = [fill(*draw_pairs(rng, 500, num_pairs)) for num_pairs in nums_pairs]


@partial(jax.jit, static_argnames="module")
def predict(module, variables, keys, values):
    return module.apply(variables, keys, values).argmax(axis=-1)


def is_right(model, keys, values, answers):
    """Return which answers are right, (texts, pairs)."""
    is_asked = values == num_values
    right = np.asarray(predict(*model, keys, values) == answers)
    return right[is_asked].reshape(len(keys), -1)


def recall(models):
    """Return each model's share of right answers, for each number of pairs."""
    return [
        [is_right(model, *text).mean().item() for text in texts] for model in models
    ]


softmax_recall = recall(softmax_models)
one_head_recall, four_heads_recall = recall(one_head_models), recall(four_heads_models)

# %% recall-shown tags=["tolerance:absolute=0.15"]
one_layer = {
    "softmax": softmax_recall,
    "16 x 16": one_head_recall,
    "4 x 4 x 4": four_heads_recall,
}
d2l.print_ranges(one_layer, nums_pairs, "pairs")
d2l.plot_ranges(nums_pairs, one_layer, "pairs", "recall", ylim=(0, 1.05))

# %% train-stacks
two_linear_models = train_five(
    Recaller((LinearAttention(16, 4), LinearAttention(16, 4)))
)
mixed_models = train_five(
    Recaller((LinearAttention(16, 4), d2l.CausalSelfAttention(16, 4)))
)
two_linear_recall, mixed_recall = recall(two_linear_models), recall(mixed_models)

# %% stacks-shown tags=["tolerance:absolute=0.15"]
two_layers = {"two linear": two_linear_recall, "mixed": mixed_recall}
d2l.print_ranges(two_layers, nums_pairs, "pairs")

# %% decay-by-hand
for a in [0.5, 0.9, 0.99]:
    print(f"a = {a:.2f}:", ", ".join(f"a^{r} = {a**r:.4f}" for r in [1, 10, 100]))

# %% train-decaying
decaying_models = train_five(Recaller((LinearAttention(16, 4, decay=0.9),)))


# %% recall-by-age
def recall_by_age(models, num_pairs=16):
    """Return the recall of each quarter of the pairs, from the oldest to the newest."""
    keys, values, answers = texts[-1]
    # Find where each key that is asked for stands among the pairs.
    is_same = keys[:, num_pairs:, None] == keys[:, None, :num_pairs]
    quarter = is_same.argmax(axis=2) * 4 // num_pairs
    all_right = [is_right(model, keys, values, answers) for model in models]
    return [
        [right[quarter == i].mean().item() for i in range(4)] for right in all_right
    ]


lasting_by_age, decaying_by_age = (
    recall_by_age(four_heads_models),
    recall_by_age(decaying_models),
)

# %% recall-by-age-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges(
    {"a = 1": lasting_by_age, "a = 0.9": decaying_by_age},
    ["oldest", "older", "newer", "newest"],
)


# %% solution-merge
def merge(O, log_sums, other_O, other_log_sums):
    """Combine attention to some keys with attention to others."""
    shares = jax.nn.softmax(jnp.concatenate([log_sums, other_log_sums], axis=1))
    return shares[:, :1] * O + shares[:, 1:] * other_O


first = attend_in_blocks(Q, K[:100], V[:100], 64)
second = attend_in_blocks(Q, K[100:], V[100:], 64)
difference = merge(*first, *second) - attention(Q, K, V)
print(f"max |a - b| = {jnp.abs(difference).max():.5f}")


# %% solution-causal
@partial(jax.jit, static_argnames="size")
def attend_causally(Q, K, V, size):
    """Compute causal attention without later blocks; also count the blocks."""
    outputs, num_blocks = [], 0
    for start in range(0, len(Q), size):
        end = min(start + size, len(Q))
        is_visible = jnp.arange(start, end)[:, None] >= jnp.arange(end)
        outputs.append(attention(Q[start:end], K[:end], V[:end], is_visible))
        num_blocks += math.ceil(end / size)
    return jnp.concatenate(outputs), num_blocks


O, num_blocks = attend_causally(Q, K, V, 64)
difference = O - attention(Q, K, V, window_mask(300, 300))
print(f"{num_blocks} / {5 * 5}, max |a - b| = {jnp.abs(difference).max():.5f}")

# %% solution-powers
a = jnp.array(0.5)
for j in [100, 126, 128, 200]:
    print(f"j = {j}: a^-j = {a**-j:.3g}")

# %% solution-delta
keys = jnp.array([[1.0, 0], [0, 1], [1, 0]])
memory = jnp.zeros(2)
for key, value in zip(keys, [10.0, 20.0, 30.0], strict=True):
    remembered = memory @ key
    memory = memory + key * (value - remembered)
    print(f"{remembered:2.0f} -> {value:.0f}: memory = {memory.tolist()}")
