# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import functools
import math
import random
import re
import timeit
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from flax.training.train_state import TrainState

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())


# %% causal-attention
@jax.jit
def causal_attention(X):
    """Let each row attend to itself and the rows before it, as query, key and value."""
    n, d = X.shape
    scores = X @ X.T / math.sqrt(d)
    is_later = jnp.arange(n) > jnp.arange(n)[:, None]
    weights = jax.nn.softmax(jnp.where(is_later, -jnp.inf, scores))
    return weights @ X


# %% one-more-token
X = jnp.array([[2.0, 0], [0, 1], [1, 2], [2, 1]])

for n in [3, 4]:
    print(f"{n} tokens")
    for x, y in causal_attention(X[:n]).tolist():
        print(f"   ({x:.2f}, {y:.2f})")

# %% last-row
keys = X[:3]  # kept from before, and so are the values
values = X[:3]
new = X[3]  # all that is new
keys = jnp.concatenate([keys, new[None]])
values = jnp.concatenate([values, new[None]])
weights = jax.nn.softmax(keys @ new / math.sqrt(2))
x, y = weights @ values
print("weights", " ".join(f"{weight:.2f}" for weight in weights))
print(f"result  ({x:.2f}, {y:.2f})")


# %% cache
class KVCache(struct.PyTreeNode):
    """Keys and values of a batch of texts, in arrays of a fixed size."""

    keys: jax.Array
    values: jax.Array
    length: jax.Array  # tokens so far

    @classmethod
    def create(cls, batch_size, num_heads, max_len, head_size):
        shape = (batch_size, max_len, num_heads, head_size)
        return cls(jnp.zeros(shape), jnp.zeros(shape), length=jnp.array(0, int))

    def append(self, keys, values):
        """Add new tokens; return a new cache, and all keys, values and positions."""
        end = self.length + keys.shape[1]
        max_len = self.keys.shape[1]
        # Checked only outside of jit: while JAX compiles, the length has no value. Too
        # many tokens would then overwrite the last ones.
        if not isinstance(end, jax.core.Tracer) and end > max_len:
            raise ValueError(f"{end} tokens do not fit into a cache for {max_len}")
        start = (0, self.length, 0, 0)
        cache = self.replace(
            keys=jax.lax.dynamic_update_slice(self.keys, keys, start),
            values=jax.lax.dynamic_update_slice(self.values, values, start),
            length=end,
        )
        # Shapes are fixed, so slots not yet filled are returned as well. Their
        # positions come after every query's, so that no query sees them.
        return cache, cache.keys, cache.values, jnp.arange(max_len)


# %% rotate
def rotate(X, positions):
    """Turn each pair of neighbouring numbers by its position (RoPE)."""
    d = X.shape[-1]
    omega = 10000 ** (-jnp.arange(0, d, 2) / d)
    angles = positions[..., None] * omega
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    turned = jnp.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return turned.reshape(X.shape)


# %% causal-self-attention
class CausalSelfAttention(nn.Module):
    """Each token attends to itself and to those before it."""

    num_hiddens: int
    num_heads: int
    num_kv_heads: int

    def setup(self):
        kv_size = self.num_kv_heads * self.head_size
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(kv_size, use_bias=False)
        self.W_v = nn.Dense(kv_size, use_bias=False)
        self.W_o = nn.Dense(self.num_hiddens, use_bias=False)

    @property
    def head_size(self):
        return self.num_hiddens // self.num_heads

    def make_cache(self, batch_size, max_len):
        return KVCache.create(batch_size, self.num_kv_heads, max_len, self.head_size)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, steps, heads, head_size)."""
        return X.reshape(*X.shape[:2], -1, self.head_size)

    def turn(self, X, positions):
        return rotate(X, positions[:, None])  # the same for all heads

    def is_visible(self, positions, key_positions):
        """Return which keys each query sees; a position of -1 marks no token."""
        return (key_positions >= 0) & (key_positions <= positions[:, None])

    def __call__(self, X, cache=None):
        """Return the outputs, and the cache with the new tokens."""
        start = 0 if cache is None else cache.length
        positions = start + jnp.arange(X.shape[1])
        q = self.turn(self.split(self.W_q(X)), positions)
        k = self.turn(self.split(self.W_k(X)), positions)
        v = self.split(self.W_v(X))
        key_positions = positions
        if cache is not None:
            cache, k, v, key_positions = cache.append(k, v)
        mask = self.is_visible(positions, key_positions)
        Y = jax.nn.dot_product_attention(q, k, v, mask=mask)
        return self.W_o(Y.reshape(X.shape)), cache


# %% chunks
# Both are compiled once for each module, and for each shape of the inputs.
@partial(jax.jit, static_argnames=["module", "method"])
def initialize(module, seed, *inputs, method=None):
    """Draw a module's variables from this seed; of the inputs only shapes matter."""
    return module.init(jax.random.key(seed), *inputs, method=method)


@partial(jax.jit, static_argnames=["module", "method"])
def apply(module, variables, *inputs, method=None, **options):
    """Call a module."""
    return module.apply(variables, *inputs, method=method, **options)


def run_in_chunks(attention, X, sizes, cache):
    """Return the outputs for texts read some tokens at a time, and the cache."""
    module, variables = attention
    outputs = []
    # Cut and joined in NumPy, since JAX compiles for each new shape.
    for chunk in np.split(X, np.cumsum(sizes)[:-1], axis=1):
        output, cache = apply(module, variables, chunk, cache=cache)
        outputs.append(output)
    return np.concatenate(outputs, axis=1), cache


def print_difference(name, a, b):
    difference = np.abs(np.asarray(a) - np.asarray(b)).max()
    print(f"{name}: max |a - b| = {difference:.4f}")


X = np.random.default_rng(0).normal(size=(2, 12, 32))
module = CausalSelfAttention(32, 4, num_kv_heads=4)
variables = initialize(module, 0, X)
attention = module, variables
whole, _ = apply(module, variables, X)
for size in [1, 3, 12]:
    cache = module.make_cache(batch_size=2, max_len=12)
    sizes = [size] * (12 // size)
    outputs, cache = run_in_chunks(attention, X, sizes, cache)
    print_difference(f"chunks of {size:>2}", outputs, whole)

# %% full
one_more = jnp.zeros((2, 1, 4, 8))
try:
    cache.append(one_more, one_more)
except ValueError as error:
    print(error)

# %% the-layer
module = d2l.CausalSelfAttention(32, 4, rope=True)
layer = module, variables  # the names and shapes of the matrices are the same
cache = module.make_cache(batch_size=2, max_len=12)
outputs, cache = run_in_chunks(layer, X, [5, 7], cache)
print_difference("the layer", outputs, whole)


# %% forgotten-position
class ForgetsPositions(CausalSelfAttention):
    """Wrong: turns each chunk as if the text began with it."""

    def turn(self, X, positions):
        return super().turn(X, positions - positions[0])


# %% forgotten-position-shown
module = ForgetsPositions(32, 4, num_kv_heads=4)
forgetful = module, variables
for size in [12, 3, 1]:
    cache = module.make_cache(batch_size=2, max_len=12)
    sizes = [size] * (12 // size)
    outputs, cache = run_in_chunks(forgetful, X, sizes, cache)
    print_difference(f"chunks of {size:>2}", outputs, whole)

# %% upper-left
queries = jnp.zeros((2, 1, 5))  # without content: all scores are zero
keys = jnp.zeros((5, 1, 5))
values = jnp.eye(5)[:, None]  # so that the result shows the weights
attend = jax.jit(jax.nn.dot_product_attention, static_argnames="is_causal")
weights = attend(queries, keys, values, is_causal=True)[:, 0]
for row in weights.tolist():
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
    return np.array(texts), np.array(surprises)


train_texts, _ = make_corpus(4000, 24, seed=0)
test_texts, test_surprises = make_corpus(500, 24, seed=1)
best_loss = test_surprises[:, 1:].mean()
print(len(VOCAB), "words")
print(f"best possible loss: {best_loss:.3f}")


# %% language-model
class TransformerBlock(nn.Module):
    num_hiddens: int
    num_heads: int

    def setup(self):
        self.norm1 = nn.RMSNorm()
        self.attention = CausalSelfAttention(
            self.num_hiddens, self.num_heads, self.num_heads
        )
        self.norm2 = nn.RMSNorm()
        self.dense1 = nn.Dense(2 * self.num_hiddens)
        self.dense2 = nn.Dense(self.num_hiddens)

    def __call__(self, X, cache=None):
        Y, cache = self.attention(self.norm1(X), cache)
        X = X + Y
        return X + self.dense2(nn.gelu(self.dense1(self.norm2(X)))), cache


class LanguageModel(nn.Module):
    num_hiddens: int = 16
    num_heads: int = 4

    def setup(self):
        # Vectors of variance 1; Flax's default vectors are shorter.
        normal = nn.initializers.normal(stddev=1)
        self.embedding = nn.Embed(len(VOCAB), self.num_hiddens, embedding_init=normal)
        self.blocks = [
            TransformerBlock(self.num_hiddens, self.num_heads) for _ in range(2)
        ]
        self.norm = nn.RMSNorm()
        self.output = nn.Dense(len(VOCAB))

    def make_caches(self, batch_size, max_len):
        """Return a cache for each block."""
        head_size = self.num_hiddens // self.num_heads
        sizes = batch_size, self.num_heads, max_len, head_size
        return KVCache.create(*sizes), KVCache.create(*sizes)

    def __call__(self, tokens, caches=(None, None)):
        X = self.embedding(tokens)
        new_caches = []
        for block, cache in zip(self.blocks, caches, strict=True):
            X, new_cache = block(X, cache)
            new_caches.append(new_cache)
        return self.output(self.norm(X)), tuple(new_caches)


# %% train
@functools.cache  # one for all seeds, since steps are compiled for each optimizer
def make_optimizer(num_steps, lr):
    """Make Adam, whose rate falls to a tenth."""
    return optax.adam(optax.linear_schedule(lr, lr / 10, num_steps))


@partial(jax.jit, static_argnames=["module", "compute_loss"])
def train_step(state, examples, module, compute_loss):
    def loss(params):
        return compute_loss((module, {"params": params}), examples)

    return state.apply_gradients(grads=jax.grad(loss)(state.params))


def fit(model, rng, draw, compute_loss, num_steps, lr):
    """Train a model by Adam, whose rate falls to a tenth; return it."""
    module, variables = model
    state = TrainState.create(
        apply_fn=module.apply,
        params=variables["params"],
        tx=make_optimizer(num_steps, lr),
    )
    for _ in range(num_steps):
        state = train_step(state, draw(rng), module, compute_loss)
    return module, {"params": state.params}


# %% train-all
@partial(jax.jit, static_argnames="module", donate_argnames="caches")
def read(module, variables, tokens, caches=(None, None)):
    """Return the logits of tokens, and new caches in the memory of the old ones."""
    return module.apply(variables, tokens, caches)


def next_word_loss(model, texts, caches=(None, None)):
    """Return the mean of minus the logarithm of each next word's probability."""
    module, variables = model
    logits, _ = read(module, variables, texts[:, :-1], caches)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, texts[:, 1:])
    return losses.mean()


def draw_texts(rng):
    """Draw 16 training texts."""
    return train_texts[rng.integers(4000, size=16)]


module = LanguageModel()
models = []
for seed in range(5):
    rng = np.random.default_rng(seed)
    model = module, initialize(module, seed, train_texts[:1])
    models.append(fit(model, rng, draw_texts, next_word_loss, num_steps=200, lr=0.02))

losses = [[next_word_loss(model, test_texts).item()] for model in models]

# %% losses-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges({"five models": losses}, ["loss"])
print(f"best possible: {best_loss:.3f}")


# %% write
def write(model, prompt, num_tokens, choose, key):
    """Continue texts, (batch, steps), with a cache; also return the logits, by step."""
    module, variables = model
    caches = module.make_caches(len(prompt), prompt.shape[1] + num_tokens)
    tokens = [prompt]
    new = prompt
    steps = []
    for _ in range(num_tokens):
        key, step_key = jax.random.split(key)
        logits, caches = read(module, variables, new, caches)
        new = choose(logits[:, -1], step_key)
        tokens.append(new)
        steps.append(logits[:, -1])
    return np.concatenate(tokens, axis=1), steps


def greedy(logits, key):
    return logits.argmax(axis=-1, keepdims=True)


@jax.jit
def sample(logits, key):
    return jax.random.categorical(key, logits)[:, None]


# %% written tags=["nbval-ignore-output"]
model = models[0]
prompt = np.full((4, 1), TOKENS["."])
texts, _ = write(model, prompt, 12, sample, jax.random.key(0))
for tokens in texts[:, 1:].tolist():
    print(" ".join(VOCAB[token] for token in tokens))


# %% same-as-recomputed
def write_slowly(model, tokens, num_tokens, choose, key):
    """Do the same without a cache: read the whole text again for each token."""
    module, variables = model
    steps = []
    # Padded to its full length, so that one compiled function serves all steps. No
    # token sees what comes after it.
    start = tokens.shape[1]
    tokens = np.pad(tokens, [(0, 0), (0, num_tokens)])
    for i in range(start, start + num_tokens):
        key, step_key = jax.random.split(key)
        logits, _ = read(module, variables, tokens)
        tokens[:, i : i + 1] = choose(logits[:, i - 1], step_key)
        steps.append(logits[:, i - 1])
    return tokens, steps


prompt = test_texts[:8, :6]
fast, fast_logits = write(model, prompt, 10, greedy, jax.random.key(0))
slow, slow_logits = write_slowly(model, prompt, 10, greedy, jax.random.key(0))
print("same tokens:", bool((fast == slow).all()))
print_difference("logits", np.stack(fast_logits), np.stack(slow_logits))

# %% d2l-generate
module, variables = model
caches = module.make_caches(batch_size=8, max_len=16)


def read_new(new, _):
    """Return the logits of new tokens; keep the caches for the next call."""
    global caches
    logits, caches = read(module, variables, new, caches)
    return logits


tokens = d2l.generate(read_new, prompt, 10, top_k=1)
print("same tokens:", tokens == fast[:, 6:].tolist())


# %% choices
def keep(probs, is_kept):
    """Set all other probabilities to zero; let the rest sum to one."""
    kept = probs * is_kept
    return kept / kept.sum(axis=-1, keepdims=True)


def apply_temperature(probs, temperature):
    return jax.nn.softmax(jnp.log(probs) / temperature)


def top_k(probs, k):
    """Keep the k most probable words."""
    largest, _ = jax.lax.top_k(probs, k)
    return keep(probs, probs >= largest[..., -1:])


def top_p(probs, p):
    """Keep the most probable words, until they have a share of p."""
    words = jnp.argsort(probs, descending=True)
    ordered = jnp.take_along_axis(probs, words, axis=-1)
    share_before = ordered.cumsum(axis=-1) - ordered
    is_kept = jnp.put_along_axis(
        jnp.zeros_like(probs), words, share_before < p, axis=-1, inplace=False
    )
    return keep(probs, is_kept)


def min_p(probs, p):
    """Keep words with at least this fraction of the largest probability."""
    return keep(probs, probs >= p * probs.max(axis=-1, keepdims=True))


# %% choices-by-hand
def print_row(name, probs):
    print(" ".join(f"{p:.2f}" for p in probs), "", name)


probs = jnp.array([0.5, 0.25, 0.15, 0.1])
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
    module, variables = model
    tokens = np.array([[TOKENS[word] for word in text.split()]])
    logits, _ = read(module, variables, tokens)
    return jax.nn.softmax(logits[0, -1])


# %% choices-drawn tags=["tolerance:absolute=0.05"]
contexts = [". the", ". the dogs that the cat"]
d2l.plot(
    list(range(1, len(VOCAB) + 1)),
    [jnp.sort(predict(text), descending=True) for text in contexts],
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
@partial(jax.jit, static_argnames="way")
def change(logits, way):
    """Return the logits of the probabilities that one of the ways makes of these."""
    return jnp.log(way(jax.nn.softmax(logits)))


def share_of_sentences(model, way, key):
    """Write 200 texts; return the share whose first sentence is right."""

    def choose(logits, step_key):
        return sample(change(logits, way), step_key)

    prompt = np.full((200, 1), TOKENS["."])
    texts, _ = write(model, prompt, 12, choose, key)
    num_right = 0
    for tokens in texts[:, 1:].tolist():
        words = [VOCAB[token] for token in tokens]
        end = words.index(".") + 1 if "." in words else len(words)
        num_right += is_sentence(words[:end])
    return num_right / 200


# The same key for all, so that no model and no way is just luckier than another.
key = jax.random.key(0)
shares = [[[share_of_sentences(model, way, key)] for model in models] for way in ways]

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
    module, variables = model

    def run():
        nonlocal caches
        # JAX returns before it has computed.
        _, caches = jax.block_until_ready(read(module, variables, tokens, caches))

    run()  # compiles
    times = timeit.repeat(run, number=1, repeat=5)
    return 1000 * min(times)


module = LanguageModel(num_hiddens=128)
texts = np.random.default_rng(0).integers(len(VOCAB), size=(1, 1025))
variables = initialize(module, 0, texts)
big = module, variables
contexts = [16, 64, 256, 1024]
recomputed = []
cached = []
for n in contexts:
    recomputed.append(measure(big, texts[:, : n + 1]))
    caches = module.make_caches(1, n + 6)
    # As if n tokens had been read; which ones makes no difference here.
    caches = tuple(cache.replace(length=jnp.array(n, int)) for cache in caches)
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

    num_padding: jax.Array  # how many tokens of padding each text has

    @classmethod
    def create(cls, num_padding, *sizes):
        cache = KVCache.create(*sizes)
        return cls(cache.keys, cache.values, cache.length, num_padding)

    def append(self, keys, values):
        cache, keys, values, positions = super().append(keys, values)
        is_padding = positions < self.num_padding[:, None]
        positions = jnp.where(is_padding, -1, positions)
        positions = positions[:, None, None]  # for all heads and queries
        return cache, keys, values, positions


# %% padded
X = np.random.default_rng(0).normal(size=(2, 10, 32))
num_padding = jnp.array([5, 0])  # the first text has only 5 tokens
module, variables = attention
cache = PaddedCache.create(num_padding, 2, 4, 10, 8)
hidden, _ = run_in_chunks(attention, X, [9, 1], cache)
seen, _ = run_in_chunks(attention, X, [9, 1], module.make_cache(2, 10))
alone, _ = apply(module, variables, X[:1, 5:])
print_difference("padding hidden", hidden[:1, 5:], alone)
print_difference("padding seen", seen[:1, 5:], alone)

# %% padded-layer
module, variables = layer
cache = module.make_cache(batch_size=2, max_len=10)
prompts = X[:, :9].copy()
prompts[0, :4] = X[0, 5:9]  # here padding comes after the tokens
_, cache = apply(module, variables, prompts, jnp.array([4, 9]), cache=cache)
last, cache = apply(module, variables, X[:, 9:], cache=cache)
print("tokens in the cache:", cache.lengths.tolist())
print_difference("the layer", last[:1], alone[:, -1:])

# %% bytes
module, _ = model
caches = module.make_caches(batch_size=1, max_len=1000)
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
rng = np.random.default_rng(0)
q = rng.normal(size=(1, 5, 8, 4))
k = rng.normal(size=(1, 5, 2, 4))
v = rng.normal(size=(1, 5, 2, 4))
shared = attend(q, k, v)
for head in range(8):
    key_head = head // 4
    alone = attend(q[:, :, [head]], k[:, :, [key_head]], v[:, :, [key_head]])
    print_difference(
        f"query head {head}, key head {key_head}", shared[:, :, [head]], alone
    )


# %% reports
def draw_reports(rng, count):
    """Draw reports, a pupil to ask for in each subject, and the 16 marks asked for.

    Reports have the shape (count, 8 pupils, 4 subjects, 4 marks). A mark tells how far
    a pupil is above or below average: its mean is 0 and its variance 1.
    """
    # Drawn with NumPy, as data often are, since JAX compiles for each new shape.
    reports = rng.normal(size=(count, 8, 4, 4)).astype("float32")
    asked = rng.integers(8, size=(count, 4))
    answers = reports[np.arange(count)[:, None], asked, np.arange(4)]
    return reports, asked, answers.reshape(count, 16)


# %% report-reader
# Kernels of variance 1 / (3 d) for d inputs; Flax itself draws them with 1 / d.
narrow = nn.initializers.variance_scaling(
    scale=1 / 3, mode="fan_in", distribution="truncated_normal"
)
NarrowDense = partial(nn.Dense, kernel_init=narrow)


class ReportReader(nn.Module):
    """Four heads, one for each subject, which ask for a pupil; heads share keys."""

    num_kv_heads: int
    head_size: int = 4
    num_hiddens: int = 32

    def setup(self):
        # Vectors of variance 1; Flax's default vectors are shorter.
        normal = nn.initializers.normal(stddev=1)
        self.pupil = nn.Embed(8, self.num_hiddens, embedding_init=normal)
        self.marks = NarrowDense(self.num_hiddens, use_bias=False)
        self.W_q = NarrowDense(self.head_size, use_bias=False)
        self.W_k = NarrowDense(self.num_kv_heads * self.head_size, use_bias=False)
        self.W_v = NarrowDense(self.num_kv_heads * self.head_size, use_bias=False)
        self.output = NarrowDense(16)

    def split(self, X):
        return X.reshape(*X.shape[:2], -1, self.head_size)

    def __call__(self, reports, asked):
        count = len(reports)
        X = self.pupil(jnp.arange(8)) + self.marks(reports.reshape(count, 8, 16))
        q = self.W_q(self.pupil(asked))[:, None]  # one query per head
        k = self.split(self.W_k(X))
        v = self.split(self.W_v(X))
        Y = jax.nn.dot_product_attention(q, k, v)
        return self.output(Y.reshape(count, -1))


# %% train-report-readers
def report_loss(model, examples):
    """Return the mean squared error."""
    module, variables = model
    reports, asked, answers = examples
    predictions = apply(module, variables, reports, asked)
    return optax.squared_error(predictions, answers).mean()


test_reports = draw_reports(np.random.default_rng(100), 2000)
sizes = [(4, 4), (1, 4), (1, 16)]  # key heads, and numbers in each
errors = []
for num_kv_heads, head_size in sizes:
    module = ReportReader(num_kv_heads, head_size)
    errors.append([])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        reports, asked, _ = draw_reports(rng, 1)  # only for their shapes
        reader = module, initialize(module, seed, reports, asked)
        draw = partial(draw_reports, count=64)
        reader = fit(reader, rng, draw, report_loss, num_steps=150, lr=0.04)
        error = report_loss(reader, test_reports)
        errors[-1].append([error.item()])

# %% report-errors tags=["tolerance:absolute=0.05"]
names = [f"{heads} x {size}" for heads, size in sizes]
d2l.print_ranges(dict(zip(names, errors, strict=True)), ["error"], "key heads")


# %% latent
class LatentAttention(nn.Module):
    """Multi-head latent attention (MLA): keys and values come from one short vector."""

    num_hiddens: int = 32
    num_heads: int = 4
    latent_size: int = 8
    rope_size: int = 4

    def setup(self):
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_q_rope = nn.Dense(self.num_heads * self.rope_size, use_bias=False)
        self.W_latent = nn.Dense(self.latent_size, use_bias=False)
        self.W_k_rope = nn.Dense(self.rope_size, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_o = nn.Dense(self.num_hiddens, use_bias=False)
        head_size = self.num_hiddens // self.num_heads
        self.scale = 1 / math.sqrt(head_size + self.rope_size)

    def split(self, X):
        return X.reshape(*X.shape[:2], self.num_heads, -1)

    def compress(self, X, positions):
        """Return what is kept of tokens: a latent vector each, and a rotated key."""
        return self.W_latent(X), rotate(self.W_k_rope(X), positions)

    def compute_weights(self, scores, X, positions, rotated_keys):
        """Return attention weights from scores of content, and of places."""
        q = rotate(self.split(self.W_q_rope(X)), positions[:, None])
        scores_of_places = jnp.einsum("bqhr,bkr->bhqk", q, rotated_keys)
        scores = self.scale * (scores + scores_of_places)
        key_positions = jnp.arange(scores.shape[-1])
        is_later = key_positions > positions[:, None]
        return jax.nn.softmax(jnp.where(is_later, -jnp.inf, scores))

    def __call__(self, X, positions, latents, rotated_keys):
        """Let tokens at these positions attend to all that is kept."""
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(latents))
        v = self.split(self.W_v(latents))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        weights = self.compute_weights(scores, X, positions, rotated_keys)
        Y = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        return self.W_o(Y.reshape(X.shape))


# %% absorbed
class AbsorbedAttention(LatentAttention):
    """The same without keys and values: their matrices go to queries and outputs."""

    def __call__(self, X, positions, latents, rotated_keys):
        # (latent_size, heads, head_size)
        shape = (self.latent_size, self.num_heads, -1)
        W_k = self.W_k.variables["params"]["kernel"].reshape(shape)
        W_v = self.W_v.variables["params"]["kernel"].reshape(shape)
        q = jnp.einsum("bqhd,lhd->bqhl", self.split(self.W_q(X)), W_k)
        scores = jnp.einsum("bqhl,bkl->bhqk", q, latents)  # the same for all heads
        weights = self.compute_weights(scores, X, positions, rotated_keys)
        Y = jnp.einsum("bhqk,bkl->bqhl", weights, latents)
        Y = jnp.einsum("bqhl,lhd->bqhd", Y, W_v)
        return self.W_o(Y.reshape(X.shape))


# %% latent-compared
def attend_to_all(module, X, positions):
    """Let tokens attend to each other; return what is kept of them, and the outputs."""
    kept = module.compress(X, positions)
    return kept, module(X, positions, *kept)


latent = LatentAttention()
absorbed = AbsorbedAttention()
X = np.random.default_rng(0).normal(size=(2, 10, 32))
positions = np.arange(10)
variables = initialize(latent, 0, X, positions, method=attend_to_all)
kept, whole = apply(latent, variables, X, positions, method=attend_to_all)
last = apply(absorbed, variables, X[:, 9:], positions[9:], *kept)
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
class RollingCache(struct.PyTreeNode):
    """Keys and values of the last `window` tokens."""

    keys: jax.Array
    values: jax.Array
    positions: jax.Array
    length: jax.Array

    @classmethod
    def create(cls, batch_size, num_heads, window, head_size):
        shape = (batch_size, window, num_heads, head_size)
        positions = jnp.full(window, -1)  # no slot has a token
        return cls(
            jnp.zeros(shape), jnp.zeros(shape), positions, length=jnp.array(0, int)
        )

    def append(self, keys, values):
        """Add new tokens; return old and new ones, even those that are replaced."""
        new = self.length + jnp.arange(keys.shape[1])
        all_keys = jnp.concatenate([self.keys, keys], axis=1)
        all_values = jnp.concatenate([self.values, values], axis=1)
        all_positions = jnp.concatenate([self.positions, new])
        window = len(self.positions)
        slots = new[-window:] % window  # of the tokens that stay
        cache = self.replace(
            keys=self.keys.at[:, slots].set(keys[:, -window:]),
            values=self.values.at[:, slots].set(values[:, -window:]),
            positions=self.positions.at[slots].set(new[-window:]),
            length=self.length + len(new),
        )
        return cache, all_keys, all_values, all_positions


# %% window-attention
class WindowAttention(CausalSelfAttention):
    """Each token attends to the last `window` tokens, itself among them."""

    window: int = 4

    def make_cache(self, batch_size, max_len=None):
        return RollingCache.create(
            batch_size, self.num_kv_heads, self.window, self.head_size
        )

    def is_visible(self, positions, key_positions):
        distances = positions[:, None] - key_positions
        return super().is_visible(positions, key_positions) & (distances < self.window)


# %% rolling
X = np.random.default_rng(0).normal(size=(1, 30, 32))
module = WindowAttention(32, 4, num_kv_heads=4)
variables = initialize(module, 0, X)
window_attention = module, variables
whole, _ = apply(module, variables, X)
for sizes in [[1] * 30, [3] * 10, [1, 3, 10, 16]]:
    cache = module.make_cache(batch_size=1)
    outputs, cache = run_in_chunks(window_attention, X, sizes, cache)
    print_difference(f"{len(sizes)} chunks", outputs, whole)
print("positions kept:", cache.positions.tolist())

# %% rolling-layer
module = d2l.CausalSelfAttention(32, 4, rope=True, window=4)
layer = module, variables
cache = module.make_cache(batch_size=1, max_len=30)
outputs, cache = run_in_chunks(layer, X, [1, 3, 10, 16], cache)
print_difference("the layer", outputs, whole)
print("slots:", cache.keys.shape[2])

# %% lookups
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WINDOW = 16


def draw_lookups(rng, count, num_entries):
    """Draw texts of letters with digits, and answers: a letter's digit, or 10 if new.

    In a text, a letter always has the same digit. It is new if it was not among the
    last 16 entries. All have the shape (count, num_entries).
    """
    letters = rng.integers(26, size=(count, num_entries))
    digit_of_letter = rng.integers(10, size=(count, 26))
    digits = np.take_along_axis(digit_of_letter, letters, axis=1)
    i = np.arange(num_entries)
    distances = i[:, None] - i
    is_before = (distances > 0) & (distances <= WINDOW)
    is_same = letters[:, :, None] == letters[:, None]
    is_known = (is_same & is_before).any(axis=-1)
    return letters, digits, np.where(is_known, digits, 10)


# %% softmax-plus-one
def softmax_plus_one(scores):
    """Softmax with 1 more in the denominator: a score of zero that has no value."""
    zero = jnp.zeros_like(scores[..., :1])
    with_zero = jnp.concatenate([zero, scores], axis=-1)
    return jax.nn.softmax(with_zero)[..., 1:]


# %% recaller
class Recaller(nn.Module):
    """A head that looks for each entry's letter among the 16 entries before it."""

    has_start: bool
    num_hiddens: int = 32

    def setup(self):
        # Vectors of variance 1; Flax's default vectors are shorter.
        normal = nn.initializers.normal(stddev=1)
        self.letter = nn.Embed(26, self.num_hiddens, embedding_init=normal)
        self.digit = nn.Embed(10, self.num_hiddens, embedding_init=normal)
        # Before the first entry.
        self.start = self.param("start_token", normal, (self.num_hiddens,))
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False)
        self.output = nn.Dense(11)

    def __call__(self, letters, digits, keeps_start=True, window=WINDOW):
        count, n = letters.shape
        X = self.letter(letters) + self.digit(digits)
        i = jnp.arange(n)
        distances = i[:, None] - i
        is_visible = (distances > 0) & (distances <= window)
        if self.has_start:
            start = jnp.broadcast_to(self.start, (count, 1, self.num_hiddens))
            X = jnp.concatenate([start, X], axis=1)
            is_visible = jnp.pad(
                is_visible, [(0, 0), (1, 0)], constant_values=keeps_start
            )
        q = self.W_q(self.letter(letters))
        k = self.W_k(X)
        v = self.W_v(X)
        scores = q @ k.mT / math.sqrt(k.shape[-1])
        scores = jnp.where(is_visible, scores, -1e9)  # an entry may see no key
        softmax = jax.nn.softmax if self.has_start else softmax_plus_one
        weights = softmax(scores)
        return self.output(weights @ v), weights


# %% train-recallers
def recall_loss(model, examples):
    """Return the mean of minus the logarithm of each answer's probability."""
    module, variables = model
    letters, digits, answers = examples
    logits, _ = apply(module, variables, letters, digits)
    return optax.softmax_cross_entropy_with_integer_labels(logits, answers).mean()


def train_recallers(has_start):
    """Train a model from each of five seeds."""
    module = Recaller(has_start)
    models = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        letters, digits, _ = draw_lookups(rng, 1, 16)  # only for their shapes
        model = module, initialize(module, seed, letters, digits)
        draw = partial(draw_lookups, count=64, num_entries=16)
        models.append(fit(model, rng, draw, recall_loss, num_steps=150, lr=0.02))
    return models


recallers = train_recallers(has_start=True)
without_start = train_recallers(has_start=False)

# %% sink-map tags=["nbval-ignore-output"]
letters, digits, _ = draw_lookups(np.random.default_rng(3), 1, 16)
module, variables = recallers[0]
_, weights = apply(module, variables, letters, digits)
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
letters, digits, answers = draw_lookups(np.random.default_rng(100), 200, 64)


def recall_shares(models, keeps_start=True, window=WINDOW):
    """Return shares of right answers, new letters and known ones, after 16 entries."""
    is_new = answers[:, WINDOW:] == 10
    shares = []
    for module, variables in models:
        logits, _ = apply(module, variables, letters, digits, keeps_start, window)
        predictions = np.asarray(logits).argmax(axis=-1)
        is_right = (predictions == answers)[:, WINDOW:]
        shares.append([is_right[is_new].mean().item(), is_right[~is_new].mean().item()])
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
module, variables = model
prompt = test_texts[:1, :6]
caches = module.make_caches(batch_size=1, max_len=7)
_, caches = read(module, variables, prompt, caches)


def continue_with(word, caches):
    """Return new caches, and the logits after one more word, with them and without."""
    new = np.array([[TOKENS[word]]])
    # Forget what came after the prompt.
    caches = tuple(cache.replace(length=jnp.array(6, int)) for cache in caches)
    logits, caches = read(module, variables, new, caches)
    whole_logits, _ = read(module, variables, np.concatenate([prompt, new], axis=1))
    return caches, logits[:, -1], whole_logits[:, -1]


for word in ["old", "cooks"]:
    caches, logits, whole_logits = continue_with(word, caches)
    print_difference(word, logits, whole_logits)

# %% solution-half-window
half = recall_shares(recallers, window=8)

# %% solution-half-window-shown tags=["tolerance:absolute=0.1"]
d2l.print_ranges({"window of 8": half}, ["new letter", "known letter"])


# %% solution-quantized
def quantize(X):
    """Round to whole multiples, -127 to 127, of a scale for each token and head."""
    scale = jnp.maximum(jnp.abs(X).max(axis=-1, keepdims=True) / 127, 1e-9)  # not 0
    return jnp.round(X / scale).astype(jnp.int8), scale


class RoundedCache(KVCache):
    """Keep keys and values as they are after rounding to whole numbers."""

    def append(self, keys, values):
        whole_keys, key_scale = quantize(keys)
        whole_values, value_scale = quantize(values)
        return super().append(whole_keys * key_scale, whole_values * value_scale)


# %% solution-quantized-shown tags=["tolerance:absolute=0.05"]
for cache_class in [KVCache, RoundedCache]:
    caches = cache_class.create(500, 4, 24, 4), cache_class.create(500, 4, 24, 4)
    loss = next_word_loss(model, test_texts, caches)
    print(f"{cache_class.__name__:<12} loss {loss:.4f}")
