# The lesson's MLX code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import timeit

import mlx.core as mx
from mlx import nn, optimizers

from d2l_compat import mlx as d2l

mx.set_default_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
mx.random.seed(0)


# %% plain-attention
def attention(Q, K, V, mask=None):
    """Return softmax(Q K^T / sqrt(d)) V; the mask is True for what a query sees."""
    scores = Q @ K.T / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = mx.where(mask, scores, -math.inf)
    return mx.softmax(scores, axis=-1) @ V


# %% operations
d, kernel_size = 64, 8

print("    n         CNN         RNN   attention")
for n in [32, 128, 512, 2048]:
    counts = kernel_size * n * d**2, 2 * n * d**2, 4 * n * d**2 + 2 * n**2 * d
    print(f"{n:5d}" + "".join(f"{count:12,d}" for count in counts))

# %% layers
conv = nn.Conv1d(d, d, kernel_size)
rnn = nn.RNN(d, d)
W_q, W_k, W_v, W_o = (nn.Linear(d, d, bias=False) for _ in range(4))


def convolve(X):
    X = mx.pad(X, [(kernel_size - 1, 0), (0, 0)])  # zeros in front: n outputs
    return conv(X[None])[0]


def attend(X):
    return W_o(attention(W_q(X), W_k(X), W_v(X)))


layers = [convolve, rnn, attend]


# %% layers-timed
def milliseconds(layer, n):
    """Return the time of a forward pass and of X's gradient, the fastest of at most five."""
    X = mx.random.normal((n, d))
    mx.eval(X)
    forward_and_backward = mx.value_and_grad(lambda X: layer(X).sum())
    # MLX computes lazily: without mx.eval, only planning would be measured.
    timer = timeit.Timer(lambda: mx.eval(forward_and_backward(X)))
    seconds = []
    while len(seconds) < 5 and sum(seconds) < 1.5:  # long ones are repeated less
        seconds.append(timer.timeit(number=1))
    return 1000 * min(seconds)


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
weights = mx.softmax(mx.array(scores))
print(f"o / l = {weights @ mx.array(values):.3f}")

# %% overflow
large = mx.array([100.0, 102.0])
for name, s in {"s": large, "s - m": large - large.max()}.items():
    powers = mx.exp(s)
    weights = powers / powers.sum()
    print(f"{name:5}: powers  {powers.tolist()}")
    print(f"{name:5}: weights {weights.tolist()}")


# %% blocks
def attend_in_blocks(Q, K, V, block_size):
    """Compute attention by blocks of keys; also return the logarithms of the sums."""
    m = mx.full((len(Q), 1), -math.inf)
    l = mx.zeros((len(Q), 1))
    O = mx.zeros((len(Q), V.shape[1]))
    for start in range(0, len(K), block_size):
        K_block, V_block = (X[start : start + block_size] for X in (K, V))
        scores = Q @ K_block.T / math.sqrt(Q.shape[1])
        new_m = mx.maximum(m, scores.max(axis=1, keepdims=True))
        shrink = mx.exp(m - new_m)
        powers = mx.exp(scores - new_m)
        l = l * shrink + powers.sum(axis=1, keepdims=True)
        O = O * shrink + powers @ V_block
        m = new_m
    return O / l, m + mx.log(l)


# %% matrices
n = 300
Q, K, V = mx.random.normal((3, n, d))
grad_o = mx.random.normal((n, d))  # a gradient for the output, to try the way back with
expected = attention(Q, K, V)

# %% blocks-same
for block_size in [1, 7, 64, 300]:
    O, _ = attend_in_blocks(Q, K, V, block_size)
    print(f"b = {block_size:3d}: max |a - b| = {(O - expected).abs().max():.5f}")

# %% empty-row
hidden = mx.array([-math.inf, -math.inf])
m = new_m = hidden.max()
layer = d2l.DotProductAttention(dropout=0.0)
nothing = layer(Q[None], K[None], V[None], valid_lens=mx.array([0]))
print("weights:  ", mx.softmax(hidden).tolist())
print("m - m':   ", (m - new_m).item())
print("d2l:      ", nothing[0, 0, :2].tolist())


# %% backward
def gradients_in_blocks(Q, K, V, O, log_sums, grad_o, block_size):
    """Return the gradients of sum(O * grad_o); weights are computed once more."""
    scale = 1 / math.sqrt(Q.shape[1])
    grad_q, grads_k, grads_v = mx.zeros_like(Q), [], []
    mean = (grad_o * O).sum(axis=1, keepdims=True)
    for start in range(0, len(K), block_size):
        K_block, V_block = (X[start : start + block_size] for X in (K, V))
        weights = mx.exp(Q @ K_block.T * scale - log_sums)
        grad_scores = weights * (grad_o @ V_block.T - mean)
        grad_q += grad_scores @ K_block * scale
        grads_k.append(grad_scores.T @ Q * scale)
        grads_v.append(weights.T @ grad_o)
    return grad_q, mx.concatenate(grads_k), mx.concatenate(grads_v)


# %% backward-same
_, wanted = mx.vjp(attention, [Q, K, V], [grad_o])
O, log_sums = attend_in_blocks(Q, K, V, 64)
found = gradients_in_blocks(Q, K, V, O, log_sums, grad_o, 64)
for name, a, b in zip("QKV", found, wanted, strict=True):
    print(f"{name}: max |a - b| = {(a - b).abs().max():.5f}")


# %% kept
def kept_megabytes(function, n):
    """Return how much a forward pass leaves in memory.

    That is its result, and what is kept for the gradients of Q, K and V.
    """
    Q, K, V, grad_o = mx.random.normal((4, n, d))
    mx.eval(Q, K, V, grad_o)
    before = mx.get_active_memory()
    result, gradients = mx.vjp(function, [Q, K, V], [grad_o])
    mx.eval(result)  # not the gradients, which hold on to what they will need
    kept = mx.get_active_memory() - before
    del result, gradients  # alive until all is counted
    return kept / 1e6


def attend_d2l(Q, K, V):
    return d2l.DotProductAttention(dropout=0.0)(Q[None], K[None], V[None])[0]


# On a CPU, mx.fast.scaled_dot_product_attention keeps the matrix, as our formula does.
functions = [
    lambda Q, K, V: convolve(Q),
    lambda Q, K, V: rnn(Q),
    attention,
    lambda Q, K, V: attend_in_blocks(Q, K, V, 64)[0],
    attend_d2l,
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
    distance = mx.arange(n)[:, None] - mx.arange(n)
    return (distance >= 0) & (distance < window)


for row in window_mask(6, 3).astype(mx.int32).tolist():
    print(*row)


# %% window-blocks
def attend_in_window(Q, K, V, window):
    """Let each block of queries attend to its own block of keys and the one before."""
    n, d = Q.shape
    rest = -n % window  # fills the last block: later keys, which no query sees
    Q = mx.unflatten(mx.pad(Q, [(0, rest), (0, 0)]), 0, (-1, window))
    # A block of zeros stands in front, since the first block has none before it.
    K, V = (mx.pad(X, [(window, rest), (0, 0)]) for X in (K, V))
    K, V = (mx.unflatten(X, 0, (-1, window)) for X in (K, V))
    K, V = (mx.concatenate([X[:-1], X[1:]], axis=1) for X in (K, V))

    # Queries stand in the second half of their two blocks of keys.
    distance = window + mx.arange(window)[:, None] - mx.arange(2 * window)
    mask = mx.tile((distance >= 0) & (distance < window), (len(Q), 1, 1))
    mask[0, :, :window] = False
    scores = mx.where(mask, Q @ K.mT / math.sqrt(d), -math.inf)
    return (mx.softmax(scores, axis=-1) @ V).flatten(0, 1)[:n]


# %% window-same
expected = attention(Q, K, V, window_mask(n, 32))
by_d2l = d2l.DotProductAttention(0.0)(Q[None], K[None], V[None], window=32)[0]
for found in [attend_in_window(Q, K, V, 32), by_d2l]:
    print(f"max |a - b| = {(found - expected).abs().max():.5f}")

# %% off-by-one
found = attention(Q, K, V, window_mask(n, 32 + 1))
print(f"max |a - b| = {(found - expected).abs().max():.5f}")


# %% reach
def find_reach(num_layers, window, n=24):
    """Return which inputs the last output depends on, after several layers."""

    def last_output(H):
        for _ in range(num_layers):
            H = H + attend_in_window(H, H, H, window)
        return H[-1].sum()

    X = 0.1 * mx.random.normal((n, 8))  # small, so that the weights are nearly equal
    gradient = mx.grad(last_output)(X)
    return (gradient != 0).any(axis=1)


reached = [find_reach(num_layers, 4).sum().item() for num_layers in range(1, 7)]

# %% reach-shown
for num_layers, num_tokens in enumerate(reached, start=1):
    print(
        f"L = {num_layers}: {num_tokens:2d} tokens, L (w - 1) + 1 = {3 * num_layers + 1:2d}"
    )

# %% linear-by-hand
keys = mx.array([[1.0, 0], [0, 1], [1, 1]])
values = mx.array([10.0, 20, 30])
query = mx.array([1.0, 0])
kv, k = mx.zeros(2), mx.zeros(2)
for key, value in zip(keys, values, strict=True):
    kv = kv + key * value
    k = k + key
    print(f"kv = {kv.tolist()}, k = {k.tolist()}")
print(f"{query @ kv:.0f} / {query @ k:.0f} = {query @ kv / (query @ k):.0f}")


# %% linear-forms
def make_positive(X):
    # elu(X) + 1; the gradient of nn.elu is NaN where exp(X) overflows.
    return mx.maximum(X, 0) + mx.exp(mx.minimum(X, 0))


def attend_in_parallel(Q, K, V, decay=1.0):
    """Compute linear attention with a matrix of weights, all at once."""
    Q, K = make_positive(Q), make_positive(K)
    step = mx.arange(Q.shape[-2])
    distance = mx.maximum(step[:, None] - step, 0)  # if negative, powers overflow
    weights = mx.tril(Q @ K.mT * decay**distance)
    return weights @ V / weights.sum(axis=-1, keepdims=True)


def attend_token_by_token(Q, K, V, decay=1.0):
    """Compute the same with two sums, which do not grow."""
    kv, k = mx.zeros((K.shape[1], V.shape[1])), mx.zeros(K.shape[1])
    outputs = []
    for query, key, value in zip(make_positive(Q), make_positive(K), V, strict=True):
        kv = decay * kv + mx.outer(key, value)
        k = decay * k + key
        outputs.append(query @ kv / (query @ k))
    return mx.stack(outputs)


# %% linear-same
expected = attend_token_by_token(Q, K, V, decay=0.9)
found = attend_in_parallel(Q, K, V, decay=0.9)
print(f"max |a - b| = {(found - expected).abs().max():.5f}")


# %% chunks
def attend_in_chunks(Q, K, V, decay=1.0, size=64):
    """Use a matrix of weights in each chunk; two sums lead from chunk to chunk."""
    kv, k = mx.zeros((K.shape[1], V.shape[1])), mx.zeros(K.shape[1])
    outputs = []
    Q, K = make_positive(Q), make_positive(K)
    for start in range(0, len(Q), size):
        queries, keys, values = (X[start : start + size] for X in (Q, K, V))
        n = len(queries)
        step = mx.arange(n)[:, None]
        weights = mx.tril(queries @ keys.T * decay ** mx.maximum(step - step.T, 0))
        old_queries = queries * decay ** (step + 1)  # for what came before the chunk
        total = weights.sum(axis=1) + old_queries @ k
        outputs.append((weights @ values + old_queries @ kv) / total[:, None])
        new_keys = keys * decay ** (n - 1 - step)  # as the next chunk sees them
        kv = decay**n * kv + new_keys.T @ values
        k = decay**n * k + new_keys.sum(axis=0)
    return mx.concatenate(outputs)


# %% chunks-same
for size in [1, 64, 300]:
    found = attend_in_chunks(Q, K, V, 0.9, size)
    print(f"c = {size:3d}: max |a - b| = {(found - expected).abs().max():.5f}")

# %% forms-timed
forms = [
    attention,
    lambda Q, K, V: attend_in_window(Q, K, V, 64),
    lambda Q, K, V: attend_in_chunks(Q, K, V, size=64),
]
form_lengths = [512, 1024, 2048, 4096]
form_times = [
    [milliseconds(lambda X, form=form: form(X, X, X), n) for n in form_lengths]
    for form in forms
]

# %% forms-timed-shown tags=["nbval-ignore-output"]
names = ["attention", "in a window", "chunks"]
print("milliseconds   " + "".join(f"{n:8,d}" for n in form_lengths))
for name, row in zip(names, form_times, strict=True):
    print(f"{name:15}" + "".join(f"{x:8.2f}" for x in row))


# %% linear-layer
class LinearAttention(nn.Module):
    """Causal linear attention with several heads, in its parallel form."""

    def __init__(self, num_hiddens, num_heads, decay=1.0):
        super().__init__()
        self.num_heads, self.decay = num_heads, decay
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        return mx.unflatten(X, -1, (self.num_heads, -1)).swapaxes(1, 2)

    def __call__(self, X):
        q, k, v = (self.split(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        pooled = attend_in_parallel(q, k, v, self.decay)
        return self.W_o(pooled.swapaxes(1, 2).flatten(2))


# %% linear-layer-same
layer, d2l_layer = LinearAttention(16, 2, 0.9), d2l.LinearAttention(16, 2, decay=0.9)
d2l_layer.update(layer.parameters())
X = mx.random.normal((2, 50, 16))
state = d2l_layer.make_state(batch_size=2)
parts = [d2l_layer(X[:, :30], state), d2l_layer(X[:, 30:], state)]
difference = mx.concatenate(parts, axis=1) - layer(X)
print(f"max |a - b| = {difference.abs().max():.5f}")

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


def draw_pairs(batch_size, num_pairs):
    """Draw pairs of a key and a value, then each key once more; also return answers.

    A token is a key and a value; where the value is asked for, it is num_values.
    """
    shuffled = mx.argsort(mx.random.uniform(shape=(batch_size, num_keys)), axis=1)
    keys = shuffled[:, :num_pairs]
    values = mx.random.randint(0, num_values, (batch_size, num_pairs))
    order = mx.argsort(mx.random.uniform(shape=(batch_size, num_pairs)), axis=1)
    asked = mx.full_like(values, num_values)
    asked_keys = mx.take_along_axis(keys, order, axis=1)
    answers = mx.take_along_axis(values, order, axis=1)
    all_keys = mx.concatenate([keys, asked_keys], axis=1)
    return all_keys, mx.concatenate([values, asked], axis=1), answers


keys, values, answers = draw_pairs(1, 3)

# %% pairs-shown
for key, value in zip(keys[0].tolist(), values[0].tolist(), strict=True):
    print(f"({key}, {value if value < num_values else '?'})", end=" ")
print("->", *answers[0].tolist())


# %% recaller
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; MLX draws shorter ones."""
    embedding = nn.Embedding(rows, width)
    embedding.weight = mx.random.normal(embedding.weight.shape)
    return embedding


class Recaller(nn.Module):
    """Read pairs with layers of attention, and name the value of each key asked for."""

    def __init__(self, *layers, num_hiddens=16):
        super().__init__()
        self.key_embedding = make_table(num_keys, num_hiddens)
        self.value_embedding = make_table(num_values + 1, num_hiddens)
        self.layers = [*layers]
        self.dense = nn.Linear(num_hiddens, num_values)

    def __call__(self, keys, values):
        X = self.key_embedding(keys) + self.value_embedding(values)
        for layer in self.layers:
            X = X + layer(X)
        return self.dense(X[:, X.shape[1] // 2 :])


# %% train
def compute_loss(model, keys, values, answers):
    logits = model(keys, values)
    return nn.losses.cross_entropy(logits, answers, reduction="mean")


def train(model, num_steps=400, batch_size=32, lr=0.02):
    """Train on 2, 4, 8 and 16 pairs in turn; the learning rate falls to a tenth."""
    schedule = optimizers.linear_schedule(lr, 0.1 * lr, num_steps)
    # As in other frameworks; by default, MLX's Adam leaves this correction out.
    optimizer = optimizers.Adam(schedule, bias_correction=True)
    compute_gradients = nn.value_and_grad(model, compute_loss)
    for step in range(num_steps):
        pairs = draw_pairs(batch_size, [2, 4, 8, 16][step % 4])
        _, gradients = compute_gradients(model, *pairs)
        optimizer.update(model, gradients)
        # MLX computes lazily: without this line, all steps would pile up.
        mx.eval(model.parameters(), optimizer.state)
    return model


def train_five(make_model):
    """Train five models, each from a seed of its own."""
    models = []
    for seed in range(5):
        mx.random.seed(seed)
        models.append(train(make_model()))
    return models


# %% train-all
softmax_models = train_five(lambda: Recaller(d2l.CausalSelfAttention(16, 4)))
one_head_models = train_five(lambda: Recaller(LinearAttention(16, 1)))
four_heads_models = train_five(lambda: Recaller(LinearAttention(16, 4)))

# %% recall
nums_pairs = [2, 4, 8, 16]
texts = [draw_pairs(500, num_pairs) for num_pairs in nums_pairs]


def is_right(model, keys, values, answers):
    return model(keys, values).argmax(axis=-1) == answers


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
    lambda: Recaller(LinearAttention(16, 4), LinearAttention(16, 4))
)
mixed_models = train_five(
    lambda: Recaller(LinearAttention(16, 4), d2l.CausalSelfAttention(16, 4))
)
two_linear_recall, mixed_recall = recall(two_linear_models), recall(mixed_models)

# %% stacks-shown tags=["tolerance:absolute=0.15"]
two_layers = {"two linear": two_linear_recall, "mixed": mixed_recall}
d2l.print_ranges(two_layers, nums_pairs, "pairs")

# %% decay-by-hand
for a in [0.5, 0.9, 0.99]:
    print(f"a = {a:.2f}:", ", ".join(f"a^{r} = {a**r:.4f}" for r in [1, 10, 100]))

# %% train-decaying
decaying_models = train_five(lambda: Recaller(LinearAttention(16, 4, decay=0.9)))


# %% recall-by-age
def recall_by_age(models, num_pairs=16):
    """Return the recall of each quarter of the pairs, from the oldest to the newest."""
    keys, values, answers = texts[-1]
    # Find where each key that is asked for stands among the pairs.
    is_same = keys[:, num_pairs:, None] == keys[:, None, :num_pairs]
    quarter = is_same.argmax(axis=2) * 4 // num_pairs
    in_quarter = [quarter == i for i in range(4)]  # MLX cannot select by such a mask
    all_right = [is_right(model, keys, values, answers) for model in models]
    return [
        [((right & mask).sum() / mask.sum()).item() for mask in in_quarter]
        for right in all_right
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
    log_sums = mx.concatenate([log_sums, other_log_sums], axis=1)
    shares = mx.softmax(log_sums, axis=1)
    return shares[:, :1] * O + shares[:, 1:] * other_O


first = attend_in_blocks(Q, K[:100], V[:100], 64)
second = attend_in_blocks(Q, K[100:], V[100:], 64)
difference = merge(*first, *second) - attention(Q, K, V)
print(f"max |a - b| = {difference.abs().max():.5f}")


# %% solution-causal
def attend_causally(Q, K, V, size):
    """Compute causal attention without later blocks; also count the blocks."""
    outputs, num_blocks = [], 0
    for start in range(0, len(Q), size):
        end = min(start + size, len(Q))
        is_visible = mx.arange(start, end)[:, None] >= mx.arange(end)
        outputs.append(attention(Q[start:end], K[:end], V[:end], is_visible))
        num_blocks += math.ceil(end / size)
    return mx.concatenate(outputs), num_blocks


O, num_blocks = attend_causally(Q, K, V, 64)
difference = O - attention(Q, K, V, window_mask(300, 300))
print(f"{num_blocks} / {5 * 5}, max |a - b| = {difference.abs().max():.5f}")

# %% solution-powers
a = mx.array(0.5)
for j in [100, 126, 128, 200]:
    print(f"j = {j}: a^-j = {a**-j:.3g}")

# %% solution-delta
keys = mx.array([[1.0, 0], [0, 1], [1, 0]])
memory = mx.zeros(2)
for key, value in zip(keys, [10.0, 20.0, 30.0], strict=True):
    remembered = memory @ key
    memory = memory + key * (value - remembered)
    print(f"{remembered:2.0f} -> {value:.0f}: memory = {memory.tolist()}")
