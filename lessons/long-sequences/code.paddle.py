# The lesson's PaddlePaddle code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import timeit

from d2l_compat import paddle as d2l  # first: it turns down Paddle's log

import paddle
from paddle import nn

# Unlike that of paddle, this one takes the size of the parts, not their number.
from paddle.compat import split
from paddle.nn import functional as F

paddle.set_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
_ = paddle.seed(0)


# %% plain-attention
def attention(Q, K, V, mask=None):
    """Return softmax(Q K^T / sqrt(d)) V; the mask is True for what a query sees."""
    scores = Q @ K.T / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return F.softmax(scores, axis=-1) @ V


# %% operations
d, kernel_size = 64, 8

print("    n         CNN         RNN   attention")
for n in [32, 128, 512, 2048]:
    counts = kernel_size * n * d**2, 2 * n * d**2, 4 * n * d**2 + 2 * n**2 * d
    print(f"{n:5d}" + "".join(f"{count:12,d}" for count in counts))

# %% layers
conv = nn.Conv1D(d, d, kernel_size)
rnn = nn.SimpleRNN(d, d)
W_q, W_k, W_v, W_o = (nn.Linear(d, d, bias_attr=False) for _ in range(4))


def convolve(X):
    X = F.pad(X.T, [kernel_size - 1, 0])  # zeros in front: n outputs
    return conv(X[None]).squeeze(0).T


def attend(X):
    return W_o(attention(W_q(X), W_k(X), W_v(X)))


layers = [convolve, lambda X: rnn(X[None])[0].squeeze(0), attend]


# %% layers-timed
def milliseconds(layer, n):
    """Return the time of a forward and a backward pass, the fastest of five."""
    X = paddle.randn([n, d], requires_grad=True)

    def step():
        layer(X).sum().backward()
        # A GPU works in the background; numpy() waits until the result is there.
        X.grad.numpy()

    step()
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
weights = F.softmax(paddle.to_tensor(scores), axis=0)
print(f"o / l = {weights @ paddle.to_tensor(values):.3f}")

# %% overflow
large = paddle.to_tensor([100.0, 102.0])
for name, s in {"s": large, "s - m": large - large.max()}.items():
    powers = s.exp()
    weights = powers / powers.sum()
    print(f"{name:5}: powers  {powers.tolist()}")
    print(f"{name:5}: weights {weights.tolist()}")


# %% blocks
def attend_in_blocks(Q, K, V, block_size):
    """Compute attention by blocks of keys; also return the logarithms of the sums."""
    m = paddle.full([len(Q), 1], -math.inf)
    l = paddle.zeros([len(Q), 1])
    O = paddle.zeros([len(Q), V.shape[1]])
    blocks = zip(split(K, block_size), split(V, block_size), strict=True)
    for K_block, V_block in blocks:
        scores = Q @ K_block.T / math.sqrt(Q.shape[1])
        new_m = paddle.maximum(m, scores.amax(axis=1, keepdim=True))
        shrink = (m - new_m).exp()
        powers = (scores - new_m).exp()
        l = l * shrink + powers.sum(axis=1, keepdim=True)
        O = O * shrink + powers @ V_block
        m = new_m
    return O / l, m + l.log()


# %% matrices
n = 300
Q, K, V = (paddle.randn([n, d], requires_grad=True) for _ in range(3))
grad_o = paddle.randn([n, d])  # a gradient for the output, to try the way back with
expected = attention(Q, K, V)

# %% blocks-same
for block_size in [1, 7, 64, 300]:
    O, _ = attend_in_blocks(Q, K, V, block_size)
    print(f"b = {block_size:3d}: max |a - b| = {(O - expected).abs().max():.5f}")

# %% empty-row
hidden = paddle.to_tensor([-math.inf, -math.inf])
m = new_m = hidden.max()
layer = d2l.DotProductAttention(dropout=0.0)
nothing = layer(Q[None], K[None], V[None], valid_lens=paddle.to_tensor([0]))
print("weights:  ", F.softmax(hidden, axis=0).tolist())
print("m - m':   ", (m - new_m).item())
print("d2l:      ", nothing[0, 0, :2].tolist())


# %% backward
def gradients_in_blocks(Q, K, V, O, log_sums, grad_o, block_size):
    """Return the gradients of sum(O * grad_o); weights are computed once more."""
    scale = 1 / math.sqrt(Q.shape[1])
    grad_q, grads_k, grads_v = paddle.zeros_like(Q), [], []
    mean = (grad_o * O).sum(axis=1, keepdim=True)
    blocks = zip(split(K, block_size), split(V, block_size), strict=True)
    for K_block, V_block in blocks:
        weights = (Q @ K_block.T * scale - log_sums).exp()
        grad_scores = weights * (grad_o @ V_block.T - mean)
        grad_q += grad_scores @ K_block * scale
        grads_k.append(grad_scores.T @ Q * scale)
        grads_v.append(weights.T @ grad_o)
    return grad_q, paddle.concat(grads_k), paddle.concat(grads_v)


# %% backward-same
wanted = paddle.grad(expected, [Q, K, V], grad_o)
with paddle.no_grad():
    O, log_sums = attend_in_blocks(Q, K, V, 64)
    found = gradients_in_blocks(Q, K, V, O, log_sums, grad_o, 64)
for name, a, b in zip("QKV", found, wanted, strict=True):
    print(f"{name}: max |a - b| = {(a - b).abs().max():.5f}")


# %% kept
def kept_megabytes(function, n):
    """Return how much is kept for the backward pass, each array counted once."""
    kept = {}

    def note(x):
        kept[x.data_ptr()] = x.size * x.element_size()
        return x

    Q, K, V = (paddle.randn([n, d], requires_grad=True) for _ in range(3))
    with paddle.autograd.saved_tensors_hooks(note, lambda x: x):
        result = function(Q, K, V)  # alive until all is counted
    del result
    return sum(kept.values()) / 1e6


def attend_d2l(Q, K, V):
    return d2l.DotProductAttention(dropout=0.0)(Q[None], K[None], V[None])


functions = [
    lambda Q, K, V: convolve(Q),
    lambda Q, K, V: rnn(Q[None])[0],
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
    distance = paddle.arange(n)[:, None] - paddle.arange(n)
    return (distance >= 0) & (distance < window)


for row in window_mask(6, 3).astype("int32").tolist():
    print(*row)


# %% window-blocks
def attend_in_window(Q, K, V, window):
    """Let each block of queries attend to its own block of keys and the one before."""
    n, d = Q.shape
    rest = -n % window  # fills the last block: later keys, which no query sees
    # With a pair for each axis, F.pad begins with the first axis, not with the last.
    Q = F.pad(Q, [0, rest, 0, 0]).reshape([-1, window, d])
    # A block of zeros stands in front, since the first block has none before it.
    K, V = (F.pad(X, [window, rest, 0, 0]).reshape([-1, window, d]) for X in (K, V))
    K, V = (paddle.concat([X[:-1], X[1:]], axis=1) for X in (K, V))

    # Queries stand in the second half of their two blocks of keys.
    distance = window + paddle.arange(window)[:, None] - paddle.arange(2 * window)
    mask = ((distance >= 0) & (distance < window)).tile([len(Q), 1, 1])
    mask[0, :, :window] = False
    scores = paddle.matmul(Q, K, transpose_y=True) / math.sqrt(d)
    weights = F.softmax(scores.masked_fill(~mask, -math.inf), axis=-1)
    return (weights @ V).flatten(0, 1)[:n]


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
    X = 0.1 * paddle.randn([n, 8])  # small, so that the weights are nearly equal
    H = X.requires_grad_()
    for _ in range(num_layers):
        H = H + attend_in_window(H, H, H, window)
    (gradient,) = paddle.grad(H[-1].sum(), X)
    # On a CPU, Paddle's softmax turns minus infinity into about 1e-28, and not into 0.
    return (gradient.abs() > 1e-20).any(axis=1)


reached = [find_reach(num_layers, 4).sum().item() for num_layers in range(1, 7)]

# %% reach-shown
for num_layers, num_tokens in enumerate(reached, start=1):
    print(
        f"L = {num_layers}: {num_tokens:2d} tokens, L (w - 1) + 1 = {3 * num_layers + 1:2d}"
    )

# %% linear-by-hand
keys = paddle.to_tensor([[1.0, 0], [0, 1], [1, 1]])
values = paddle.to_tensor([10.0, 20, 30])
query = paddle.to_tensor([1.0, 0])
kv, k = paddle.zeros([2]), paddle.zeros([2])
for key, value in zip(keys, values, strict=True):
    kv = kv + key * value
    k = k + key
    print(f"kv = {kv.tolist()}, k = {k.tolist()}")
print(f"{query @ kv:.0f} / {query @ k:.0f} = {query @ kv / (query @ k):.0f}")


# %% linear-forms
def make_positive(X):
    return F.elu(X) + 1


def attend_in_parallel(Q, K, V, decay=1.0):
    """Compute linear attention with a matrix of weights, all at once."""
    Q, K = make_positive(Q), make_positive(K)
    step = paddle.arange(Q.shape[-2])
    distance = (step[:, None] - step).clip(min=0)  # if negative, powers overflow
    scores = paddle.matmul(Q, K, transpose_y=True)
    weights = scores * (decay**distance).tril()
    return weights @ V / weights.sum(axis=-1, keepdim=True)


def attend_token_by_token(Q, K, V, decay=1.0):
    """Compute the same with two sums, which do not grow."""
    kv, k = paddle.zeros([K.shape[1], V.shape[1]]), paddle.zeros([K.shape[1]])
    outputs = []
    for query, key, value in zip(make_positive(Q), make_positive(K), V, strict=True):
        kv = decay * kv + paddle.outer(key, value)
        k = decay * k + key
        outputs.append(query @ kv / (query @ k))
    return paddle.stack(outputs)


# %% linear-same
expected = attend_token_by_token(Q, K, V, decay=0.9)
found = attend_in_parallel(Q, K, V, decay=0.9)
print(f"max |a - b| = {(found - expected).abs().max():.5f}")


# %% chunks
def attend_in_chunks(Q, K, V, decay=1.0, size=64):
    """Use a matrix of weights in each chunk; two sums lead from chunk to chunk."""
    kv, k = paddle.zeros([K.shape[1], V.shape[1]]), paddle.zeros([K.shape[1]])
    outputs = []
    chunks = (split(X, size) for X in (make_positive(Q), make_positive(K), V))
    for queries, keys, values in zip(*chunks, strict=True):
        n = len(queries)
        step = paddle.arange(n)[:, None]
        weights = queries @ keys.T * (decay ** (step - step.T).clip(min=0)).tril()
        old_queries = queries * decay ** (step + 1)  # for what came before the chunk
        total = weights.sum(axis=1) + old_queries @ k
        outputs.append((weights @ values + old_queries @ kv) / total[:, None])
        new_keys = keys * decay ** (n - 1 - step)  # as the next chunk sees them
        kv = decay**n * kv + new_keys.T @ values
        k = decay**n * k + new_keys.sum(axis=0)
    return paddle.concat(outputs)


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
class LinearAttention(nn.Layer):
    """Causal linear attention with several heads, in its parallel form."""

    def __init__(self, num_hiddens, num_heads, decay=1.0):
        super().__init__()
        self.num_heads, self.decay = num_heads, decay
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        return X.unflatten(-1, [self.num_heads, -1]).transpose([0, 2, 1, 3])

    def forward(self, X):
        q, k, v = (self.split(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        pooled = attend_in_parallel(q, k, v, self.decay)
        return self.W_o(pooled.transpose([0, 2, 1, 3]).flatten(2))


# %% linear-layer-same
layer, d2l_layer = LinearAttention(16, 2, 0.9), d2l.LinearAttention(16, 2, decay=0.9)
d2l_layer.set_state_dict(layer.state_dict())
X = paddle.randn([2, 50, 16])
state = d2l_layer.make_state(batch_size=2)
parts = [d2l_layer(X[:, :30], state), d2l_layer(X[:, 30:], state)]
print(f"max |a - b| = {(paddle.concat(parts, axis=1) - layer(X)).abs().max():.5f}")

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
    keys = paddle.rand([batch_size, num_keys]).argsort(axis=1)[:, :num_pairs]
    values = paddle.randint(num_values, shape=[batch_size, num_pairs])
    order = paddle.rand([batch_size, num_pairs]).argsort(axis=1)
    asked = paddle.full_like(values, num_values)
    all_keys = paddle.concat([keys, keys.take_along_axis(order, axis=1)], axis=1)
    all_values = paddle.concat([values, asked], axis=1)
    return all_keys, all_values, values.take_along_axis(order, axis=1)


keys, values, answers = draw_pairs(1, 3)

# %% pairs-shown
for key, value in zip(keys[0].tolist(), values[0].tolist(), strict=True):
    print(f"({key}, {value if value < num_values else '?'})", end=" ")
print("->", *answers[0].tolist())


# %% recaller
class Recaller(nn.Layer):
    """Read pairs with layers of attention, and name the value of each key asked for."""

    def __init__(self, *layers, num_hiddens=16):
        super().__init__()
        normal = nn.initializer.Normal()  # by default, vectors would be far shorter
        self.key_embedding = nn.Embedding(num_keys, num_hiddens, weight_attr=normal)
        self.value_embedding = nn.Embedding(
            num_values + 1, num_hiddens, weight_attr=normal
        )
        self.layers = nn.LayerList(layers)
        self.dense = nn.Linear(num_hiddens, num_values)

    def forward(self, keys, values):
        X = self.key_embedding(keys) + self.value_embedding(values)
        for layer in self.layers:
            X = X + layer(X)
        return self.dense(X[:, X.shape[1] // 2 :])


# %% train
def train(model, num_steps=400, batch_size=32, lr=0.02):
    """Train on 2, 4, 8 and 16 pairs in turn; the learning rate falls to a tenth."""
    schedule = paddle.optimizer.lr.LinearLR(
        lr, total_steps=num_steps, start_factor=1, end_factor=0.1
    )
    optimizer = paddle.optimizer.Adam(schedule, parameters=model.parameters())
    for step in range(num_steps):
        keys, values, answers = draw_pairs(batch_size, [2, 4, 8, 16][step % 4])
        loss = F.cross_entropy(model(keys, values), answers)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
    return model


def train_five(make_model):
    """Train five models, each from a seed of its own."""
    models = []
    for seed in range(5):
        paddle.seed(seed)
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
    with paddle.no_grad():
        return (model(keys, values).argmax(axis=-1) == answers).astype("float32")


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
    quarter = is_same.astype("int32").argmax(axis=2) * 4 // num_pairs
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
    shares = F.softmax(paddle.concat([log_sums, other_log_sums], axis=1), axis=1)
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
        is_visible = paddle.arange(start, end)[:, None] >= paddle.arange(end)
        outputs.append(attention(Q[start:end], K[:end], V[:end], is_visible))
        num_blocks += math.ceil(end / size)
    return paddle.concat(outputs), num_blocks


O, num_blocks = attend_causally(Q, K, V, 64)
difference = O - attention(Q, K, V, window_mask(300, 300))
print(f"{num_blocks} / {5 * 5}, max |a - b| = {difference.abs().max():.5f}")

# %% solution-powers
a = paddle.to_tensor(0.5)
for j in [100, 126, 128, 200]:
    print(f"j = {j}: a^-j = {a**-j:.3g}")

# %% solution-delta
keys = paddle.to_tensor([[1.0, 0], [0, 1], [1, 0]])
memory = paddle.zeros([2])
for key, value in zip(keys, [10.0, 20.0, 30.0], strict=True):
    remembered = memory @ key
    memory = memory + key * (value - remembered)
    print(f"{remembered:2.0f} -> {value:.0f}: memory = {memory.tolist()}")
