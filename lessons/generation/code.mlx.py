# The lesson's MLX code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import random
import re
import timeit

import mlx.core as mx
from mlx import nn, optimizers

from d2l_compat import mlx as d2l

mx.set_default_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
mx.random.seed(0)


# %% causal-attention
def causal_attention(X):
    """Let each row attend to itself and the rows before it, as query, key and value."""
    n, d = X.shape
    scores = X @ X.T / math.sqrt(d)
    is_later = mx.arange(n) > mx.arange(n)[:, None]
    weights = mx.softmax(mx.where(is_later, -math.inf, scores), axis=-1)
    return weights @ X


# %% one-more-token
X = mx.array([[2.0, 0], [0, 1], [1, 2], [2, 1]])

for n in [3, 4]:
    print(f"{n} tokens")
    for x, y in causal_attention(X[:n]):
        print(f"   ({x:.2f}, {y:.2f})")

# %% last-row
keys = X[:3]  # kept from before, and so are the values
values = X[:3]
new = X[3]  # all that is new
keys = mx.concatenate([keys, new[None]])
values = mx.concatenate([values, new[None]])
weights = mx.softmax(keys @ new / math.sqrt(2), axis=0)
x, y = weights @ values
print("weights", " ".join(f"{weight:.2f}" for weight in weights))
print(f"result  ({x:.2f}, {y:.2f})")


# %% cache
class KVCache:
    """Keys and values of a batch of texts, in arrays that are allocated once."""

    def __init__(self, batch_size, num_heads, max_len, head_size):
        shape = (batch_size, num_heads, max_len, head_size)
        self.keys = mx.zeros(shape)
        self.values = mx.zeros(shape)
        self.length = 0  # tokens so far

    def append(self, keys, values):
        """Add new tokens; return the keys and values of all, and their positions."""
        end = self.length + keys.shape[2]
        max_len = self.keys.shape[2]
        if end > max_len:
            raise ValueError(f"{end} tokens do not fit into a cache for {max_len}")
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end], mx.arange(end)


# %% rotate
def rotate(X, positions):
    """Turn each pair of neighbouring numbers by its position (RoPE)."""
    d = X.shape[-1]
    omega = 10000 ** (-mx.arange(0, d, 2) / d)
    angles = positions[:, None] * omega
    cos, sin = mx.cos(angles), mx.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    return mx.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).flatten(-2)


# %% causal-self-attention
class CausalSelfAttention(nn.Module):
    """Each token attends to itself and to those before it."""

    def __init__(self, num_hiddens, num_heads, num_kv_heads):
        super().__init__()
        self.head_size = num_hiddens // num_heads
        self.num_kv_heads = num_kv_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_kv_heads * self.head_size, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_kv_heads * self.head_size, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def make_cache(self, batch_size, max_len):
        return KVCache(batch_size, self.num_kv_heads, max_len, self.head_size)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        return mx.unflatten(X, -1, (-1, self.head_size)).swapaxes(1, 2)

    def turn(self, X, positions):
        return rotate(X, positions)

    def is_visible(self, positions, key_positions):
        """Return which keys each query sees; a position of -1 marks no token."""
        return (key_positions >= 0) & (key_positions <= positions[:, None])

    def __call__(self, X, cache=None):
        start = 0 if cache is None else cache.length
        positions = mx.arange(start, start + X.shape[1])
        q = self.turn(self.split(self.W_q(X)), positions)
        k = self.turn(self.split(self.W_k(X)), positions)
        v = self.split(self.W_v(X))
        key_positions = positions
        if cache is not None:
            k, v, key_positions = cache.append(k, v)
        mask = self.is_visible(positions, key_positions)
        scale = 1 / math.sqrt(self.head_size)
        Y = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        return self.W_o(Y.swapaxes(1, 2).flatten(2))


# %% chunks
def run_in_chunks(attention, X, sizes, cache):
    """Return the outputs for texts that are read some tokens at a time."""
    outputs = []
    start = 0
    for size in sizes:
        outputs.append(attention(X[:, start : start + size], cache))
        # Without this line, each chunk that waits would have a copy of the cache.
        mx.eval(outputs[-1])
        start += size
    return mx.concatenate(outputs, axis=1)


def print_difference(name, a, b):
    print(f"{name}: max |a - b| = {(a - b).abs().max():.4f}")


mx.random.seed(0)
attention = CausalSelfAttention(32, 4, num_kv_heads=4)
X = mx.random.normal((2, 12, 32))
whole = attention(X)
for size in [1, 3, 12]:
    cache = attention.make_cache(batch_size=2, max_len=12)
    outputs = run_in_chunks(attention, X, [size] * (12 // size), cache)
    print_difference(f"chunks of {size:>2}", outputs, whole)

# %% full
try:
    attention(X[:, :1], cache)
except ValueError as error:
    print(error)

# %% the-layer
layer = d2l.CausalSelfAttention(32, 4, rope=True)
layer.update(attention.parameters())
cache = layer.make_cache(batch_size=2, max_len=12)
first = layer(X[:, :5], cache=cache)
rest = layer(X[:, 5:], cache=cache)
print_difference("the layer", mx.concatenate([first, rest], axis=1), whole)


# %% forgotten-position
class ForgetsPositions(CausalSelfAttention):
    """Wrong: turns each chunk as if the text began with it."""

    def turn(self, X, positions):
        return rotate(X, positions - positions[0])


# %% forgotten-position-shown
forgetful = ForgetsPositions(32, 4, num_kv_heads=4)
forgetful.update(attention.parameters())
for size in [12, 3, 1]:
    cache = forgetful.make_cache(batch_size=2, max_len=12)
    outputs = run_in_chunks(forgetful, X, [size] * (12 // size), cache)
    print_difference(f"chunks of {size:>2}", outputs, whole)

# %% upper-left
queries = mx.zeros((1, 1, 2, 4))  # without content: all scores are zero
keys = mx.zeros((1, 1, 5, 4))
values = mx.eye(5)[None, None]  # so that the result shows the weights
lower_triangle = mx.tril(mx.ones((2, 5))).astype(mx.bool_)
for mask in ["causal", lower_triangle]:
    weights = mx.fast.scaled_dot_product_attention(
        queries, keys, values, scale=1, mask=mask
    )
    for row in weights[0, 0]:
        print(" ".join(f"{weight:.2f}" for weight in row))

# %% grammar
ADJECTIVES = "old young small big happy tired quiet kind".split()
NOUNS = "dog cat bird horse farmer sailor singer nurse king cook doctor baker".split()
PLURALS = [noun + "s" for noun in NOUNS]
VERBS = "sleep run sing wait laugh see hear follow like help".split()
SINGULAR_VERBS = [verb + "s" for verb in VERBS]  # the dog sleeps, the dogs sleep


def make_phrase(rng):
    """Return a noun phrase, each word's probability, and whether it is plural."""
    words = ["the"]
    probabilities = [1]
    has_adjective = rng.random() < 0.3
    if has_adjective:
        words.append(rng.choice(ADJECTIVES))
        probabilities.append(0.3 / 8)
    is_plural = rng.random() < 0.5
    words.append(rng.choice(PLURALS if is_plural else NOUNS))
    probabilities.append((1 if has_adjective else 0.7) / 24)
    return words, probabilities, is_plural


def make_sentence(rng):
    """Return a sentence's words, and the probability of each after those before it."""
    words, probabilities, is_plural = make_phrase(rng)
    has_clause = rng.random() < 0.5
    if has_clause:
        clause, clause_probabilities, clause_is_plural = make_phrase(rng)
        verb = rng.choice(VERBS if clause_is_plural else SINGULAR_VERBS)
        words += ["that", *clause, verb]
        probabilities += [0.5, *clause_probabilities, 1 / 10]
    words += [rng.choice(VERBS if is_plural else SINGULAR_VERBS), "."]
    probabilities += [(1 if has_clause else 0.5) / 10, 1]
    return words, probabilities


# %% sentences
rng = random.Random(1)
for _ in range(4):
    words, _ = make_sentence(rng)
    print(*words)

# %% surprise
words, probabilities = make_sentence(random.Random(1))
for word, probability in zip(words, probabilities, strict=True):
    print(f"{word:>10}  {math.log(1 / probability):.2f}")

# %% corpus
VOCAB = [".", "the", "that", *ADJECTIVES, *NOUNS, *PLURALS, *VERBS, *SINGULAR_VERBS]
TOKENS = {word: token for token, word in enumerate(VOCAB)}


def make_corpus(num_texts, num_steps, seed):
    """Return sentences after a full stop, cut to size, and each word's surprise."""
    rng = random.Random(seed)
    texts = []
    surprises = []
    for _ in range(num_texts):
        tokens = [TOKENS["."]]
        surprise = [0.0]
        while len(tokens) <= num_steps:
            words, probabilities = make_sentence(rng)
            tokens += [TOKENS[word] for word in words]
            surprise += [-math.log(probability) for probability in probabilities]
        texts.append(tokens[: num_steps + 1])
        surprises.append(surprise[: num_steps + 1])
    return mx.array(texts), mx.array(surprises)


train_texts, _ = make_corpus(4000, 24, seed=0)
test_texts, test_surprises = make_corpus(500, 24, seed=1)
best_loss = test_surprises[:, 1:].mean()
print(len(VOCAB), "words")
print(f"best possible loss: {best_loss:.3f}")


# %% language-model
class TransformerBlock(nn.Module):
    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.norm1 = nn.RMSNorm(num_hiddens)
        self.attention = CausalSelfAttention(num_hiddens, num_heads, num_heads)
        self.norm2 = nn.RMSNorm(num_hiddens)
        self.dense1 = nn.Linear(num_hiddens, 2 * num_hiddens)
        self.dense2 = nn.Linear(2 * num_hiddens, num_hiddens)

    def __call__(self, X, cache=None):
        X = X + self.attention(self.norm1(X), cache)
        return X + self.dense2(nn.gelu(self.dense1(self.norm2(X))))


class LanguageModel(nn.Module):
    def __init__(self, num_hiddens=16, num_heads=4):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCAB), num_hiddens)
        self.blocks = [TransformerBlock(num_hiddens, num_heads) for _ in range(2)]
        self.norm = nn.RMSNorm(num_hiddens)
        self.output = nn.Linear(num_hiddens, len(VOCAB))

    def make_caches(self, batch_size, max_len):
        """Return a cache for each block."""
        return [
            block.attention.make_cache(batch_size, max_len) for block in self.blocks
        ]

    def __call__(self, tokens, caches=(None, None)):
        X = self.embedding(tokens)
        for block, cache in zip(self.blocks, caches, strict=True):
            X = block(X, cache)
        return self.output(self.norm(X))


# %% train
def fit(model, compute_loss, num_steps, lr):
    """Train a model by Adam, whose rate falls to a tenth; return it."""
    schedule = optimizers.linear_schedule(lr, lr / 10, num_steps)
    # As in other frameworks; by default, MLX's Adam leaves this correction out.
    optimizer = optimizers.Adam(schedule, bias_correction=True)
    compute_gradients = nn.value_and_grad(model, compute_loss)
    for _ in range(num_steps):
        _, gradients = compute_gradients(model)
        optimizer.update(model, gradients)
        # MLX computes lazily: without this line, all steps would pile up.
        mx.eval(model.parameters(), optimizer.state)
    return model


# %% train-all
def next_word_loss(model, texts, caches=(None, None)):
    """Return the mean of minus the logarithm of each next word's probability."""
    logits = model(texts[:, :-1], caches)
    return nn.losses.cross_entropy(logits, texts[:, 1:], reduction="mean")


def language_loss(model):
    """Return the loss on 16 training texts."""
    return next_word_loss(model, train_texts[mx.random.randint(0, 4000, (16,))])


models = []
for seed in range(5):
    mx.random.seed(seed)
    models.append(fit(LanguageModel(), language_loss, num_steps=200, lr=0.02))

losses = [[next_word_loss(model, test_texts).item()] for model in models]

# %% losses-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges({"five models": losses}, ["loss"])
print(f"best possible: {best_loss:.3f}")


# %% write
def write(model, prompt, num_tokens, choose):
    """Continue texts, (batch, steps), with a cache; also return the logits, by step."""
    caches = model.make_caches(len(prompt), prompt.shape[1] + num_tokens)
    tokens = prompt
    new = prompt
    steps = []
    for _ in range(num_tokens):
        logits = model(new, caches)[:, -1]
        new = choose(logits)
        tokens = mx.concatenate([tokens, new], axis=1)
        steps.append(logits)
        # MLX computes lazily: without this line, all steps would pile up.
        mx.eval(tokens)
    return tokens, steps


def greedy(logits):
    return logits.argmax(axis=-1, keepdims=True)


def sample(logits):
    # categorical takes logits, or logarithms of probabilities: the softmax is inside.
    return mx.random.categorical(logits, num_samples=1)


# %% written tags=["nbval-ignore-output"]
model = models[0]
mx.random.seed(0)
texts, _ = write(model, mx.full((4, 1), TOKENS["."]), 12, sample)
for tokens in texts[:, 1:]:
    print(" ".join(VOCAB[token] for token in tokens))


# %% same-as-recomputed
def write_slowly(model, tokens, num_tokens, choose):
    """Do the same without a cache: read the whole text again for each token."""
    steps = []
    for _ in range(num_tokens):
        logits = model(tokens)[:, -1]
        tokens = mx.concatenate([tokens, choose(logits)], axis=1)
        steps.append(logits)
        mx.eval(tokens)
    return tokens, steps


prompt = test_texts[:8, :6]
fast, fast_logits = write(model, prompt, 10, greedy)
slow, slow_logits = write_slowly(model, prompt, 10, greedy)
print("same tokens:", (fast == slow).all().item())
print_difference("logits", mx.stack(fast_logits), mx.stack(slow_logits))

# %% d2l-generate
caches = model.make_caches(batch_size=8, max_len=16)
tokens = d2l.generate(lambda new, _: model(new, caches), prompt, 10, top_k=1)
print("same tokens:", tokens == fast[:, 6:].tolist())


# %% choices
def keep(probs, is_kept):
    """Set all other probabilities to zero; let the rest sum to one."""
    kept = probs * is_kept
    return kept / kept.sum(axis=-1, keepdims=True)


def apply_temperature(probs, temperature):
    return mx.softmax(mx.log(probs) / temperature, axis=-1)


def top_k(probs, k):
    """Keep the k most probable words."""
    return keep(probs, probs >= mx.topk(probs, k).min(axis=-1, keepdims=True))


def top_p(probs, p):
    """Keep the most probable words, until they have a share of p."""
    words = mx.argsort(-probs, axis=-1)
    ordered = mx.take_along_axis(probs, words, axis=-1)
    share_before = mx.cumsum(ordered, axis=-1) - ordered
    nothing = mx.zeros_like(probs)
    is_kept = mx.put_along_axis(nothing, words, share_before < p, axis=-1)
    return keep(probs, is_kept)


def min_p(probs, p):
    """Keep words with at least this fraction of the largest probability."""
    return keep(probs, probs >= p * probs.max(axis=-1, keepdims=True))


# %% choices-by-hand
def print_row(name, probs):
    print(" ".join(f"{p:.2f}" for p in probs), "", name)


probs = mx.array([0.5, 0.25, 0.15, 0.1])
print_row("as it is", probs)
print_row("temperature 2", apply_temperature(probs, 2))
print_row("temperature 1/2", apply_temperature(probs, 0.5))
print_row("top-k 2", top_k(probs, 2))
print_row("top-p 0.8", top_p(probs, 0.8))
print_row("min-p 0.4", min_p(probs, 0.4))

# %% ways
ways = [
    lambda probs: probs,
    lambda probs: apply_temperature(probs, 2),
    lambda probs: apply_temperature(probs, 0.5),
    lambda probs: top_k(probs, 10),
    lambda probs: top_p(probs, 0.9),
    lambda probs: min_p(probs, 0.1),
]


def predict(text):
    """Return the probabilities of the next word."""
    tokens = mx.array([[TOKENS[word] for word in text.split()]])
    return mx.softmax(model(tokens)[0, -1], axis=-1)


# %% choices-drawn tags=["tolerance:absolute=0.05"]
contexts = [". the", ". the dogs that the cat"]
d2l.plot(
    list(range(1, len(VOCAB) + 1)),
    [mx.sort(predict(text))[::-1] for text in contexts],
    "Words, the most probable first",
    "Probability",
    legend=["the ...", "the dogs that the cat ..."],
    yscale="log",
    figsize=(5, 3),
)


# %% is-sentence
KINDS = {".": ".", "the": "t", "that": "r"}  # a letter for each kind of word
WORDS_OF_KIND = {
    "a": ADJECTIVES,
    "n": NOUNS,
    "p": PLURALS,
    "s": SINGULAR_VERBS,
    "v": VERBS,
}
for kind, words in WORDS_OF_KIND.items():
    KINDS |= dict.fromkeys(words, kind)
CLAUSE = "(rta?(ns|pv))?"
SENTENCE = re.compile(rf"ta?(n{CLAUSE}s|p{CLAUSE}v)\.")


def is_sentence(words):
    """Return whether words are a sentence of the language, with its full stop."""
    kinds = "".join(KINDS[word] for word in words)
    return SENTENCE.fullmatch(kinds) is not None


# %% sentences-written
def share_of_sentences(model, way):
    """Write 200 texts; return the share whose first sentence is right."""
    prompt = mx.full((200, 1), TOKENS["."])

    def choose(logits):
        probs = way(mx.softmax(logits, axis=-1))
        return mx.random.categorical(mx.log(probs), num_samples=1)

    texts, _ = write(model, prompt, 12, choose)
    num_right = 0
    for tokens in texts[:, 1:].tolist():
        words = [VOCAB[token] for token in tokens]
        end = words.index(".") + 1 if "." in words else len(words)
        num_right += is_sentence(words[:end])
    return num_right / 200


mx.random.seed(0)
shares = [[[share_of_sentences(model, way)] for model in models] for way in ways]

# %% sentences-shown tags=["tolerance:absolute=0.15"]
names = [
    "as it is",
    "temperature 2",
    "temperature 1/2",
    "top-k 10",
    "top-p 0.9",
    "min-p 0.1",
]
d2l.print_ranges(dict(zip(names, shares, strict=True)), ["right"])


# %% operations
def count_operations(context, num_hiddens=16, num_layers=2):
    """Return the multiplications in the layers for one more token."""
    projections = 4 * num_hiddens**2
    feed_forward = 4 * num_hiddens**2
    scores_and_averages = 2 * context * num_hiddens
    return num_layers * (projections + feed_forward + scores_and_averages)


print("context  with cache   recomputed   ratio")
for n in [1, 16, 256, 4096]:
    cached = count_operations(n)
    recomputed = sum(count_operations(i) for i in range(1, n + 1))
    print(f"{n:>7}{cached:>12,}{recomputed:>13,}{recomputed / cached:>8.1f}")


# %% milliseconds
def measure(model, tokens, caches=(None, None)):
    """Return the shortest time of five calls, in milliseconds."""
    # MLX computes lazily: without mx.eval, only planning would be measured.
    times = timeit.repeat(lambda: mx.eval(model(tokens, caches)), number=1, repeat=5)
    return 1000 * min(times)


big = LanguageModel(num_hiddens=128)
texts = mx.random.randint(0, len(VOCAB), (1, 1025))
contexts = [16, 64, 256, 1024]
recomputed = []
cached = []
for n in contexts:
    recomputed.append(measure(big, texts[:, : n + 1]))
    caches = big.make_caches(1, n + 5)
    mx.eval(big(texts[:, :n], caches))
    cached.append(measure(big, texts[:, :1], caches))

# %% milliseconds-drawn tags=["nbval-ignore-output"]
d2l.plot(
    contexts,
    [recomputed, cached],
    "Tokens before",
    "Milliseconds for one more",
    legend=["recomputed", "with cache"],
    xscale="log",
    yscale="log",
    figsize=(5, 3),
)


# %% padded-cache
class PaddedCache(KVCache):
    """A cache for texts that begin with padding, whose position is -1."""

    def __init__(self, num_padding, *sizes):
        super().__init__(*sizes)
        self.num_padding = num_padding  # how many tokens of padding each text has

    def append(self, keys, values):
        keys, values, positions = super().append(keys, values)
        is_padding = positions < self.num_padding[:, None]
        positions = mx.where(is_padding, -1, positions)
        return keys, values, positions[:, None, None]  # for all heads and queries


# %% padded
mx.random.seed(0)
X = mx.random.normal((2, 10, 32))
num_padding = mx.array([5, 0])  # the first text has only 5 tokens
cache = PaddedCache(num_padding, 2, 4, 10, 8)
hidden = run_in_chunks(attention, X, [9, 1], cache)
seen = run_in_chunks(attention, X, [9, 1], attention.make_cache(2, 10))
alone = attention(X[:1, 5:])
print_difference("padding hidden", hidden[:1, 5:], alone)
print_difference("padding seen", seen[:1, 5:], alone)

# %% padded-layer
cache = layer.make_cache(batch_size=2, max_len=10)
prompts = X[:, :9]  # a copy: MLX's slices are no views
prompts[0, :4] = X[0, 5:9]  # here padding comes after the tokens
layer(prompts, mx.array([4, 9]), cache)
last = layer(X[:, 9:], cache=cache)
print("tokens in the cache:", cache.lengths.tolist())
print_difference("the layer", last[:1], alone[:, -1:])

# %% bytes
caches = model.make_caches(batch_size=1, max_len=1000)
nbytes = sum(cache.keys.nbytes + cache.values.nbytes for cache in caches)
print("our model, 1,000 tokens:", nbytes, "bytes")
print(
    "2 x 2 layers x 4 heads x 4 numbers x 4 bytes x 1,000 =", 2 * 2 * 4 * 4 * 4 * 1000
)


# %% published
def kilobytes(numbers, layers):
    """Return the kilobytes that one token takes in the cache, in numbers of 2 bytes."""
    return 2 * numbers * layers / 1024


print("               layers  heads  key heads   one each     shared")
for name, layers, heads, kv_heads in [
    ("Llama 2 70B", 80, 64, 8),
    ("Llama 3 8B", 32, 32, 8),
    ("Mistral 7B", 32, 32, 8),
]:
    each = kilobytes(2 * heads * 128, layers)
    shared = kilobytes(2 * kv_heads * 128, layers)
    print(
        f"{name:<14}{layers:>7}{heads:>7}{kv_heads:>11}{each:>8.0f} KB{shared:>8.0f} KB"
    )

# %% which-head
mx.random.seed(0)
q = mx.random.normal((1, 8, 5, 4))
k = mx.random.normal((1, 2, 5, 4))
v = mx.random.normal((1, 2, 5, 4))
scale = 1 / math.sqrt(4)
shared = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale)
for head in range(8):
    key_head = head // 4
    # Lists keep the axis of heads: MLX's function needs all four axes.
    alone = mx.fast.scaled_dot_product_attention(
        q[:, [head]], k[:, [key_head]], v[:, [key_head]], scale=scale
    )
    name = f"query head {head}, key head {key_head}"
    print_difference(name, shared[:, [head]], alone)


# %% reports
def draw_reports(count):
    """Draw reports, a pupil to ask for in each subject, and the 16 marks asked for.

    Reports have the shape (count, 8 pupils, 4 subjects, 4 marks). A mark tells how far
    a pupil is above or below average: its mean is 0 and its variance 1.
    """
    reports = mx.random.normal((count, 8, 4, 4))
    asked = mx.random.randint(0, 8, (count, 4))
    answers = reports[mx.arange(count)[:, None], asked, mx.arange(4)]
    return reports, asked, answers.flatten(1)


# %% report-reader
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; MLX draws shorter ones."""
    embedding = nn.Embedding(rows, width)
    embedding.weight = mx.random.normal(embedding.weight.shape)
    return embedding


class ReportReader(nn.Module):
    """Four heads, one for each subject, which ask for a pupil; heads share keys."""

    def __init__(self, num_kv_heads, head_size=4, num_hiddens=32):
        super().__init__()
        self.head_size = head_size
        self.pupil = make_table(8, num_hiddens)
        self.marks = nn.Linear(16, num_hiddens, bias=False)
        self.W_q = nn.Linear(num_hiddens, head_size, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_kv_heads * head_size, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_kv_heads * head_size, bias=False)
        self.output = nn.Linear(4 * head_size, 16)

    def split(self, X):
        return mx.unflatten(X, -1, (-1, self.head_size)).swapaxes(1, 2)

    def __call__(self, reports, asked):
        X = self.pupil.weight + self.marks(reports.flatten(2))
        q = self.W_q(self.pupil(asked))[:, :, None]  # one query per head
        k = self.split(self.W_k(X))
        v = self.split(self.W_v(X))
        scale = 1 / math.sqrt(self.head_size)
        Y = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale)
        return self.output(Y.flatten(1))


# %% train-report-readers
def report_loss(model):
    """Return the mean squared error on 64 reports."""
    reports, asked, answers = draw_reports(64)
    return nn.losses.mse_loss(model(reports, asked), answers)


mx.random.seed(100)
reports, asked, answers = draw_reports(2000)
sizes = [(4, 4), (1, 4), (1, 16)]  # key heads, and numbers in each
errors = []
for num_kv_heads, head_size in sizes:
    errors.append([])
    for seed in range(5):
        mx.random.seed(seed)
        reader = ReportReader(num_kv_heads, head_size)
        reader = fit(reader, report_loss, num_steps=150, lr=0.04)
        error = nn.losses.mse_loss(reader(reports, asked), answers)
        errors[-1].append([error.item()])

# %% report-errors tags=["tolerance:absolute=0.05"]
names = [f"{heads} x {size}" for heads, size in sizes]
d2l.print_ranges(dict(zip(names, errors, strict=True)), ["error"], "key heads")


# %% latent
class LatentAttention(nn.Module):
    """Multi-head latent attention (MLA): keys and values come from one short vector."""

    def __init__(self, num_hiddens=32, num_heads=4, latent_size=8, rope_size=4):
        super().__init__()
        self.num_heads = num_heads
        head_size = num_hiddens // num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_q_rope = nn.Linear(num_hiddens, num_heads * rope_size, bias=False)
        self.W_latent = nn.Linear(num_hiddens, latent_size, bias=False)
        self.W_k_rope = nn.Linear(num_hiddens, rope_size, bias=False)
        self.W_k = nn.Linear(latent_size, num_hiddens, bias=False)
        self.W_v = nn.Linear(latent_size, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.scale = 1 / math.sqrt(head_size + rope_size)

    def split(self, X):
        return mx.unflatten(X, -1, (self.num_heads, -1)).swapaxes(1, 2)

    def compress(self, X, positions):
        """Return what is kept of tokens: a latent vector each, and a rotated key."""
        return self.W_latent(X), rotate(self.W_k_rope(X), positions)

    def compute_weights(self, scores, X, positions, rotated_keys):
        """Return attention weights from scores of content, and of places."""
        q = rotate(self.split(self.W_q_rope(X)), positions)
        scores = self.scale * (scores + q @ rotated_keys[:, None].mT)
        is_later = mx.arange(scores.shape[-1]) > positions[:, None]
        return mx.softmax(mx.where(is_later, -math.inf, scores), axis=-1)

    def __call__(self, X, positions, latents, rotated_keys):
        """Let tokens at these positions attend to all that is kept."""
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(latents))
        v = self.split(self.W_v(latents))
        Y = self.compute_weights(q @ k.mT, X, positions, rotated_keys) @ v
        return self.W_o(Y.swapaxes(1, 2).flatten(2))


# %% absorbed
class AbsorbedAttention(LatentAttention):
    """The same without keys and values: their matrices go to queries and outputs."""

    def __call__(self, X, positions, latents, rotated_keys):
        # (heads, head_size, latent_size)
        W_k = mx.unflatten(self.W_k.weight, 0, (self.num_heads, -1))
        W_v = mx.unflatten(self.W_v.weight, 0, (self.num_heads, -1))
        q = self.split(self.W_q(X)) @ W_k  # (batch, heads, steps, latent_size)
        latents = latents[:, None]  # the same for all heads
        weights = self.compute_weights(q @ latents.mT, X, positions, rotated_keys)
        Y = weights @ latents @ W_v.mT
        return self.W_o(Y.swapaxes(1, 2).flatten(2))


# %% latent-compared
mx.random.seed(0)
latent = LatentAttention()
absorbed = AbsorbedAttention()
absorbed.update(latent.parameters())
X = mx.random.normal((2, 10, 32))
positions = mx.arange(10)
kept = latent.compress(X, positions)
whole = latent(X, positions, *kept)
last = absorbed(X[:, 9:], positions[9:], *kept)
print_difference("the last token, absorbed", last, whole[:, 9:])
print("numbers per token:", sum(x.shape[-1] for x in kept), "instead of", 2 * 32)
print(f"DeepSeek-V2: {kilobytes(512 + 64, layers=60):.1f} KB per token")
print(f"with 128 heads of 128: {kilobytes(2 * 128 * 128, layers=60):.0f} KB")

# %% slots
slots = ["-"] * 4
for position in range(8):
    slots[position % 4] = str(position)
    print(f"after token {position}:", " ".join(slots))


# %% rolling-cache
class RollingCache:
    """Keys and values of the last `window` tokens."""

    def __init__(self, batch_size, num_heads, window, head_size):
        shape = (batch_size, num_heads, window, head_size)
        self.keys = mx.zeros(shape)
        self.values = mx.zeros(shape)
        self.positions = mx.full((window,), -1)  # no slot has a token
        self.length = 0

    def append(self, keys, values):
        """Add new tokens; return old and new ones, even those that are replaced."""
        end = self.length + keys.shape[2]
        new = mx.arange(self.length, end)
        all_keys = mx.concatenate([self.keys, keys], axis=2)
        all_values = mx.concatenate([self.values, values], axis=2)
        all_positions = mx.concatenate([self.positions, new])
        window = len(self.positions)
        slots = new[-window:] % window  # of the tokens that stay
        self.keys[:, :, slots] = keys[:, :, -window:]
        self.values[:, :, slots] = values[:, :, -window:]
        self.positions[slots] = new[-window:]
        self.length = end
        return all_keys, all_values, all_positions


# %% window-attention
class WindowAttention(CausalSelfAttention):
    """Each token attends to the last `window` tokens, itself among them."""

    window = 4

    def make_cache(self, batch_size, max_len=None):
        return RollingCache(batch_size, self.num_kv_heads, self.window, self.head_size)

    def is_visible(self, positions, key_positions):
        distances = positions[:, None] - key_positions
        return super().is_visible(positions, key_positions) & (distances < self.window)


# %% rolling
mx.random.seed(0)
window_attention = WindowAttention(32, 4, num_kv_heads=4)
X = mx.random.normal((1, 30, 32))
whole = window_attention(X)
for sizes in [[1] * 30, [3] * 10, [1, 3, 10, 16]]:
    cache = window_attention.make_cache(batch_size=1)
    outputs = run_in_chunks(window_attention, X, sizes, cache)
    print_difference(f"{len(sizes)} chunks", outputs, whole)
print("positions kept:", cache.positions.tolist())

# %% rolling-layer
layer = d2l.CausalSelfAttention(32, 4, rope=True, window=4)
layer.update(window_attention.parameters())
cache = layer.make_cache(batch_size=1, max_len=30)
outputs = run_in_chunks(
    lambda X, cache: layer(X, cache=cache), X, [1, 3, 10, 16], cache
)
print_difference("the layer", outputs, whole)
print("slots:", cache.keys.shape[2])

# %% lookups
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WINDOW = 16


def draw_lookups(count, num_entries):
    """Draw texts of letters with digits, and answers: a letter's digit, or 10 if new.

    In a text, a letter always has the same digit. It is new if it was not among the
    last 16 entries. All have the shape (count, num_entries).
    """
    letters = mx.random.randint(0, 26, (count, num_entries))
    digit_of_letter = mx.random.randint(0, 10, (count, 26))
    digits = mx.take_along_axis(digit_of_letter, letters, axis=1)
    i = mx.arange(num_entries)
    distances = i[:, None] - i
    is_before = (distances > 0) & (distances <= WINDOW)
    is_same = letters[:, :, None] == letters[:, None]
    is_known = (is_same & is_before).any(axis=-1)
    return letters, digits, mx.where(is_known, digits, 10)


# %% softmax-plus-one
def softmax_plus_one(scores):
    """Softmax with 1 more in the denominator: a score of zero that has no value."""
    with_zero = mx.concatenate([mx.zeros_like(scores[..., :1]), scores], axis=-1)
    return mx.softmax(with_zero, axis=-1)[..., 1:]


# %% recaller
class Recaller(nn.Module):
    """A head that looks for each entry's letter among the 16 entries before it."""

    def __init__(self, has_start, num_hiddens=32):
        super().__init__()
        self.has_start = has_start
        self.letter = make_table(26, num_hiddens)
        self.digit = make_table(10, num_hiddens)
        self.start = mx.random.normal((num_hiddens,))  # before the first entry
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.output = nn.Linear(num_hiddens, 11)

    def __call__(self, letters, digits, keeps_start=True, window=WINDOW):
        count, n = letters.shape
        X = self.letter(letters) + self.digit(digits)
        i = mx.arange(n)
        distances = i[:, None] - i
        is_visible = (distances > 0) & (distances <= window)
        if self.has_start:
            start = mx.broadcast_to(self.start, (count, 1, len(self.start)))
            X = mx.concatenate([start, X], axis=1)
            sees_start = mx.full((n, 1), keeps_start)
            is_visible = mx.concatenate([sees_start, is_visible], axis=1)
        q = self.W_q(self.letter(letters))
        k = self.W_k(X)
        v = self.W_v(X)
        scores = q @ k.mT / math.sqrt(k.shape[-1])
        scores = mx.where(is_visible, scores, -1e9)  # an entry may see no key
        if self.has_start:
            weights = mx.softmax(scores, axis=-1)
        else:
            weights = softmax_plus_one(scores)
        # An array in an attribute would be a parameter; so the weights are returned.
        return self.output(weights @ v), weights


# %% train-recallers
def recall_loss(model):
    """Return the loss on 64 texts of 16 entries."""
    letters, digits, answers = draw_lookups(64, 16)
    logits, _ = model(letters, digits)
    return nn.losses.cross_entropy(logits, answers, reduction="mean")


def train_recallers(has_start):
    """Train a model from each of five seeds."""
    models = []
    for seed in range(5):
        mx.random.seed(seed)
        models.append(fit(Recaller(has_start), recall_loss, num_steps=150, lr=0.02))
    return models


recallers = train_recallers(has_start=True)
without_start = train_recallers(has_start=False)

# %% sink-map tags=["nbval-ignore-output"]
mx.random.seed(1)
letters, digits, _ = draw_lookups(1, 16)
_, weights = recallers[0](letters, digits)
pairs = zip(letters[0], digits[0], strict=True)
entries = [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]
d2l.show_heatmaps(
    weights[:, None],
    xlabel="Entries before",
    ylabel="Entry",
    figsize=(6, 4.8),
    cmap="Blues",
    xticklabels=["start", *(f"{letter}\n{digit}" for letter, digit in entries)],
    yticklabels=entries,
)

# %% recalled
mx.random.seed(100)
letters, digits, answers = draw_lookups(200, 64)


def recall_shares(models, keeps_start=True, window=WINDOW):
    """Return shares of right answers, new letters and known ones, after 16 entries."""
    is_new = answers[:, WINDOW:] == 10
    shares = []
    for model in models:
        logits, _ = model(letters, digits, keeps_start, window)
        is_right = (logits.argmax(axis=-1) == answers)[:, WINDOW:]
        new_share = (is_right & is_new).sum() / is_new.sum()
        known_share = (is_right & ~is_new).sum() / (~is_new).sum()
        shares.append([new_share.item(), known_share.item()])
    return shares


recall = [
    recall_shares(recallers),
    recall_shares(recallers, keeps_start=False),
    recall_shares(without_start),
]

# %% recalled-shown tags=["tolerance:absolute=0.2"]
names = ["start kept", "start evicted", "extra zero"]
d2l.print_ranges(dict(zip(names, recall, strict=True)), ["new letter", "known letter"])

# %% solution-rewind
prompt = test_texts[:1, :6]
caches = model.make_caches(batch_size=1, max_len=7)
model(prompt, caches)


def continue_with(word):
    """Return the logits after one more word, with the cache and without."""
    new = mx.array([[TOKENS[word]]])
    for cache in caches:
        cache.length = 6  # forget what came after the prompt
    text = mx.concatenate([prompt, new], axis=1)
    return model(new, caches)[:, -1], model(text)[:, -1]


for word in ["old", "cooks"]:
    print_difference(word, *continue_with(word))

# %% solution-half-window
half = recall_shares(recallers, window=8)

# %% solution-half-window-shown tags=["tolerance:absolute=0.1"]
d2l.print_ranges({"window of 8": half}, ["new letter", "known letter"])


# %% solution-quantized
def quantize(X):
    """Round to whole multiples, -127 to 127, of a scale for each token and head."""
    scale = mx.maximum(X.abs().max(axis=-1, keepdims=True) / 127, 1e-9)  # not 0
    return mx.round(X / scale).astype(mx.int8), scale


class RoundedCache(KVCache):
    """Keep keys and values as they are after rounding to whole numbers."""

    def append(self, keys, values):
        whole_keys, key_scale = quantize(keys)
        whole_values, value_scale = quantize(values)
        return super().append(whole_keys * key_scale, whole_values * value_scale)


# %% solution-quantized-shown tags=["tolerance:absolute=0.05"]
for cache_class in [KVCache, RoundedCache]:
    caches = [cache_class(500, 4, 24, 4) for _ in model.blocks]
    loss = next_word_loss(model, test_texts, caches)
    print(f"{cache_class.__name__:<12} loss {loss:.4f}")
