# The lesson's TensorFlow code, with Keras' layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import functools
import math
import random
import re
import timeit

from d2l_compat import tensorflow as d2l  # first: it keeps TensorFlow's log quiet

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
# Everything here is small; without this line TensorFlow would use any GPU.
tf.config.set_visible_devices([], "GPU")


# %% causal-attention
def causal_attention(X):
    """Let each row attend to itself and the rows before it, as query, key and value."""
    n, d = X.shape
    scores = tf.matmul(X, X, transpose_b=True) / math.sqrt(d)
    is_later = tf.range(n) > tf.range(n)[:, tf.newaxis]
    weights = tf.nn.softmax(tf.where(is_later, -math.inf, scores))
    return weights @ X


# %% one-more-token
X = tf.constant([[2.0, 0], [0, 1], [1, 2], [2, 1]])

for n in [3, 4]:
    print(f"{n} tokens")
    for x, y in causal_attention(X[:n]):
        print(f"   ({x:.2f}, {y:.2f})")

# %% last-row
keys = X[:3]  # kept from before, and so are the values
values = X[:3]
new = X[3]  # all that is new
keys = tf.concat([keys, new[tf.newaxis]], axis=0)
values = tf.concat([values, new[tf.newaxis]], axis=0)
weights = tf.nn.softmax(tf.linalg.matvec(keys, new) / math.sqrt(2))
x, y = tf.tensordot(weights, values, 1)
print("weights", " ".join(f"{weight:.2f}" for weight in weights))
print(f"result  ({x:.2f}, {y:.2f})")


# %% cache
class KVCache:
    """Keys and values of a batch of texts, in arrays that are allocated once."""

    def __init__(self, batch_size, num_heads, max_len, head_size):
        shape = (batch_size, num_heads, max_len, head_size)
        self.keys = tf.Variable(tf.zeros(shape), trainable=False)
        self.values = tf.Variable(tf.zeros(shape), trainable=False)
        # A variable, too, so that each call of a tf.function finds its value.
        self.length = tf.Variable(0, trainable=False)  # tokens so far

    def append(self, keys, values):
        """Add new tokens; return the keys and values of all, and their positions."""
        end = self.length + keys.shape[2]
        max_len = self.keys.shape[2]
        if tf.executing_eagerly():
            if end > max_len:
                raise ValueError(f"{end} tokens do not fit into a cache for {max_len}")
        else:  # a graph knows the length only when it runs
            tf.debugging.assert_less_equal(end, max_len)
        self.keys[:, :, self.length : end].assign(keys)
        self.values[:, :, self.length : end].assign(values)
        self.length.assign(end)
        # Slots that are not filled yet lie after all queries, so the mask hides them.
        keys = tf.convert_to_tensor(self.keys)
        values = tf.convert_to_tensor(self.values)
        return keys, values, tf.range(max_len)


# %% rotate
def rotate(X, positions):
    """Turn each pair of neighbouring numbers by its position (RoPE)."""
    d = X.shape[-1]
    omega = 10000 ** (-tf.range(0, d, 2, dtype=tf.float32) / d)
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * omega
    cos, sin = tf.cos(angles), tf.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    turned = tf.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return tf.reshape(turned, X.shape)


# %% causal-self-attention
def make_projection(width):
    """Make a linear map without bias; Keras itself draws larger numbers."""
    uniform = keras.initializers.VarianceScaling(scale=1 / 3, distribution="uniform")
    return keras.layers.Dense(width, use_bias=False, kernel_initializer=uniform)


def attend(q, k, v, mask=None):
    """Return attention pooling; heads of queries may share a head of keys."""
    # Keras' dot_product_attention fails if a single head of keys serves all queries.
    groups = q.shape[1] // k.shape[1]
    k = tf.repeat(k, groups, axis=1)
    v = tf.repeat(v, groups, axis=1)
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = tf.where(mask, scores, -1e9)  # a row of padding may see no key
    return tf.nn.softmax(scores) @ v


class CausalSelfAttention(keras.layers.Layer):
    """Each token attends to itself and to those before it."""

    def __init__(self, num_hiddens, num_heads, num_kv_heads):
        super().__init__()
        self.head_size = num_hiddens // num_heads
        self.num_kv_heads = num_kv_heads
        self.W_q = make_projection(num_hiddens)
        self.W_k = make_projection(num_kv_heads * self.head_size)
        self.W_v = make_projection(num_kv_heads * self.head_size)
        self.W_o = make_projection(num_hiddens)

    def make_cache(self, batch_size, max_len):
        return KVCache(batch_size, self.num_kv_heads, max_len, self.head_size)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        batch, steps, _ = X.shape
        heads = tf.reshape(X, (batch, steps, -1, self.head_size))
        return tf.transpose(heads, (0, 2, 1, 3))

    def turn(self, X, positions):
        return rotate(X, positions)

    def is_visible(self, positions, key_positions):
        """Return which keys each query sees; a position of -1 marks no token."""
        return (key_positions >= 0) & (key_positions <= positions[:, tf.newaxis])

    def call(self, X, cache=None):
        start = 0 if cache is None else cache.length
        positions = start + tf.range(X.shape[1])
        q = self.turn(self.split(self.W_q(X)), positions)
        k = self.turn(self.split(self.W_k(X)), positions)
        v = self.split(self.W_v(X))
        key_positions = positions
        if cache is not None:
            k, v, key_positions = cache.append(k, v)
        mask = self.is_visible(positions, key_positions)
        Y = attend(q, k, v, mask)
        return self.W_o(tf.reshape(tf.transpose(Y, (0, 2, 1, 3)), X.shape))


# %% chunks
def run_in_chunks(attention, X, sizes, cache):
    """Return the outputs for texts that are read some tokens at a time."""
    chunks = tf.split(X, sizes, axis=1)
    outputs = [attention(chunk, cache=cache) for chunk in chunks]
    return tf.concat(outputs, axis=1)


def print_difference(name, a, b):
    print(f"{name}: max |a - b| = {tf.reduce_max(abs(a - b)):.4f}")


keras.utils.set_random_seed(0)
attention = CausalSelfAttention(32, 4, num_kv_heads=4)
X = tf.random.normal((2, 12, 32))
whole = attention(X)
for size in [1, 3, 12]:
    cache = attention.make_cache(batch_size=2, max_len=12)
    outputs = run_in_chunks(attention, X, [size] * (12 // size), cache)
    print_difference(f"chunks of {size:>2}", outputs, whole)

# %% full
one_more = tf.zeros((2, 4, 1, 8))
try:
    cache.append(one_more, one_more)
except ValueError as error:
    print(error)

# %% the-layer
layer = d2l.CausalSelfAttention(32, 4, rope=True)
layer(X)  # creates the weights
layer.set_weights(attention.get_weights())
cache = layer.make_cache(batch_size=2, max_len=12)
first = layer(X[:, :5], cache=cache)
rest = layer(X[:, 5:], cache=cache)
print_difference("the layer", tf.concat([first, rest], axis=1), whole)


# %% forgotten-position
class ForgetsPositions(CausalSelfAttention):
    """Wrong: turns each chunk as if the text began with it."""

    def turn(self, X, positions):
        return rotate(X, positions - positions[0])


# %% forgotten-position-shown
forgetful = ForgetsPositions(32, 4, num_kv_heads=4)
forgetful(X)  # creates the weights
forgetful.set_weights(attention.get_weights())
for size in [12, 3, 1]:
    cache = forgetful.make_cache(batch_size=2, max_len=12)
    outputs = run_in_chunks(forgetful, X, [size] * (12 // size), cache)
    print_difference(f"chunks of {size:>2}", outputs, whole)

# %% upper-left
queries = tf.zeros((1, 2, 1, 4))  # without content: all scores are zero
keys = tf.zeros((1, 5, 1, 4))  # the third axis is for heads
values = tf.eye(5)[tf.newaxis, :, tf.newaxis]  # so that the result shows the weights
weights = keras.ops.dot_product_attention(queries, keys, values, is_causal=True)
for row in weights[0, :, 0]:
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
    return tf.constant(texts), tf.constant(surprises)


train_texts, _ = make_corpus(4000, 24, seed=0)
test_texts, test_surprises = make_corpus(500, 24, seed=1)
best_loss = tf.reduce_mean(test_surprises[:, 1:])
print(len(VOCAB), "words")
print(f"best possible loss: {best_loss:.3f}")


# %% language-model
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class TransformerBlock(keras.layers.Layer):
    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.norm1 = keras.layers.RMSNormalization()
        self.attention = CausalSelfAttention(num_hiddens, num_heads, num_heads)
        self.norm2 = keras.layers.RMSNormalization()
        self.dense1 = keras.layers.Dense(2 * num_hiddens)
        self.dense2 = keras.layers.Dense(num_hiddens)

    def call(self, X, cache=None):
        X = X + self.attention(self.norm1(X), cache=cache)
        return X + self.dense2(tf.nn.gelu(self.dense1(self.norm2(X))))


class LanguageModel(keras.Model):
    def __init__(self, num_hiddens=16, num_heads=4):
        super().__init__()
        self.embedding = make_table(len(VOCAB), num_hiddens)
        self.blocks = [TransformerBlock(num_hiddens, num_heads) for _ in range(2)]
        self.norm = keras.layers.RMSNormalization()
        # Keras reserves the name `output`.
        self.logits = keras.layers.Dense(len(VOCAB))

    def make_caches(self, batch_size, max_len):
        """Return a cache for each block."""
        return [
            block.attention.make_cache(batch_size, max_len) for block in self.blocks
        ]

    def call(self, tokens, caches=(None, None)):
        X = self.embedding(tokens)
        for block, cache in zip(self.blocks, caches, strict=True):
            X = block(X, cache=cache)
        return self.logits(self.norm(X))


# %% train
def fit(model, compute_loss, num_steps, lr):
    """Train a model by Adam, whose rate falls to a tenth; return it."""
    compute_loss(model)  # creates the weights
    schedule = keras.optimizers.schedules.PolynomialDecay(lr, num_steps, lr / 10)
    optimizer = keras.optimizers.Adam(schedule)
    optimizer.build(model.trainable_weights)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = compute_loss(model)
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)

    for _ in range(num_steps):
        step()
    return model


# %% train-all
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def next_word_loss(model, texts, caches=(None, None)):
    """Return the mean of minus the logarithm of each next word's probability."""
    logits = model(texts[:, :-1], caches=caches)
    return cross_entropy(texts[:, 1:], logits)


def language_loss(model):
    """Return the loss on 16 training texts."""
    rows = tf.random.uniform((16,), maxval=4000, dtype=tf.int32)
    return next_word_loss(model, tf.gather(train_texts, rows))


models = []
for seed in range(5):
    keras.utils.set_random_seed(seed)
    models.append(fit(LanguageModel(), language_loss, num_steps=200, lr=0.02))

losses = [[next_word_loss(model, test_texts)] for model in models]

# %% losses-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges({"five models": losses}, ["loss"])
print(f"best possible: {best_loss:.3f}")


# %% write
@functools.cache  # compiling takes longer than writing
def compile_step(model, batch_size, max_len):
    """Return caches, and a function that reads tokens and returns the last logits.

    All texts of the same size share them, so write them one after the other.
    """
    caches = model.make_caches(batch_size, max_len)

    @tf.function
    def read(tokens):
        return model(tokens, caches=caches)[:, -1]

    return caches, read


def write(model, prompt, num_tokens, choose):
    """Continue texts, (batch, steps), with a cache; also return the logits, by step."""
    caches, read = compile_step(model, len(prompt), prompt.shape[1] + num_tokens)
    for cache in caches:
        cache.length.assign(0)  # forget earlier texts
    tokens = prompt
    new = prompt
    steps = []
    for _ in range(num_tokens):
        logits = read(new)
        new = choose(logits)
        tokens = tf.concat([tokens, new], axis=1)
        steps.append(logits)
    return tokens, steps


def greedy(logits):
    return tf.argmax(logits, axis=-1, output_type=tf.int32)[:, tf.newaxis]


def sample(logits):
    return tf.random.categorical(logits, 1, dtype=tf.int32)


# %% written tags=["nbval-ignore-output"]
model = models[0]
keras.utils.set_random_seed(0)
texts, _ = write(model, tf.fill((4, 1), TOKENS["."]), 12, sample)
for tokens in texts[:, 1:]:
    print(" ".join(VOCAB[token] for token in tokens))


# %% same-as-recomputed
def write_slowly(model, tokens, num_tokens, choose):
    """Do the same without a cache: read the whole text again for each token."""
    steps = []
    for _ in range(num_tokens):
        logits = model(tokens)[:, -1]
        tokens = tf.concat([tokens, choose(logits)], axis=1)
        steps.append(logits)
    return tokens, steps


prompt = test_texts[:8, :6]
fast, fast_logits = write(model, prompt, 10, greedy)
slow, slow_logits = write_slowly(model, prompt, 10, greedy)
print("same tokens:", bool(tf.reduce_all(fast == slow)))
print_difference("logits", tf.stack(fast_logits), tf.stack(slow_logits))

# %% d2l-generate
caches = model.make_caches(batch_size=8, max_len=16)
tokens = d2l.generate(lambda new, _: model(new, caches=caches), prompt, 10, top_k=1)
print("same tokens:", tokens == fast[:, 6:].numpy().tolist())


# %% choices
def keep(probs, is_kept):
    """Set all other probabilities to zero; let the rest sum to one."""
    kept = tf.where(is_kept, probs, 0)
    return kept / tf.reduce_sum(kept, axis=-1, keepdims=True)


def apply_temperature(probs, temperature):
    return tf.nn.softmax(tf.math.log(probs) / temperature)


def top_k(probs, k):
    """Keep the k most probable words."""
    return keep(probs, probs >= tf.math.top_k(probs, k).values[..., -1:])


def top_p(probs, p):
    """Keep the most probable words, until they have a share of p."""
    words = tf.argsort(probs, direction="DESCENDING")
    ordered = tf.gather(probs, words, batch_dims=-1)
    share_before = tf.cumsum(ordered, axis=-1, exclusive=True)
    rank = tf.argsort(words)  # of each word
    return keep(probs, tf.gather(share_before < p, rank, batch_dims=-1))


def min_p(probs, p):
    """Keep words with at least this fraction of the largest probability."""
    return keep(probs, probs >= p * tf.reduce_max(probs, axis=-1, keepdims=True))


# %% choices-by-hand
def print_row(name, probs):
    print(" ".join(f"{p:.2f}" for p in probs), "", name)


probs = tf.constant([0.5, 0.25, 0.15, 0.1])
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
    tokens = tf.constant([[TOKENS[word] for word in text.split()]])
    return tf.nn.softmax(model(tokens)[0, -1])


# %% choices-drawn tags=["tolerance:absolute=0.05"]
contexts = [". the", ". the dogs that the cat"]
d2l.plot(
    list(range(1, len(VOCAB) + 1)),
    [tf.sort(predict(text), direction="DESCENDING") for text in contexts],
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

    def choose(logits):
        probs = way(tf.nn.softmax(logits))
        return tf.random.categorical(tf.math.log(probs), 1, dtype=tf.int32)

    texts, _ = write(model, tf.fill((200, 1), TOKENS["."]), 12, choose)
    num_right = 0
    for tokens in texts[:, 1:].numpy().tolist():
        words = [VOCAB[token] for token in tokens]
        end = words.index(".") + 1 if "." in words else len(words)
        num_right += is_sentence(words[:end])
    return num_right / 200


keras.utils.set_random_seed(0)
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

    @tf.function
    def read(tokens):
        return model(tokens, caches=caches)

    read(tokens)  # compiles
    # With numpy(), a call ends when the result is there.
    times = timeit.repeat(lambda: read(tokens).numpy(), number=1, repeat=5)
    return 1000 * min(times)


big = LanguageModel(num_hiddens=128)
texts = tf.random.uniform((1, 1025), maxval=len(VOCAB), dtype=tf.int32)
big(texts)  # creates the weights
contexts = [16, 64, 256, 1024]
recomputed = []
cached = []
for n in contexts:
    recomputed.append(measure(big, texts[:, : n + 1]))
    caches = big.make_caches(1, n + 6)
    big(texts[:, :n], caches=caches)
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
        is_padding = positions < self.num_padding[:, tf.newaxis]
        positions = tf.where(is_padding, -1, positions)
        positions = positions[:, tf.newaxis, tf.newaxis]  # for all heads and queries
        return keys, values, positions


# %% padded
keras.utils.set_random_seed(0)
X = tf.random.normal((2, 10, 32))
num_padding = tf.constant([5, 0])  # the first text has only 5 tokens
cache = PaddedCache(num_padding, 2, 4, 10, 8)
hidden = run_in_chunks(attention, X, [9, 1], cache)
seen = run_in_chunks(attention, X, [9, 1], attention.make_cache(2, 10))
alone = attention(X[:1, 5:])
print_difference("padding hidden", hidden[:1, 5:], alone)
print_difference("padding seen", seen[:1, 5:], alone)

# %% padded-layer
cache = layer.make_cache(batch_size=2, max_len=10)
prompts = X[:, :9].numpy()
prompts[0, :4] = X[0, 5:9]  # here padding comes after the tokens
layer(prompts, tf.constant([4, 9]), cache)
last = layer(X[:, 9:], cache=cache)
print("tokens in the cache:", cache.lengths.tolist())
print_difference("the layer", last[:1], alone[:, -1:])

# %% bytes
caches = model.make_caches(batch_size=1, max_len=1000)
nbytes = sum(
    cache.keys.numpy().nbytes + cache.values.numpy().nbytes for cache in caches
)
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
keras.utils.set_random_seed(0)
q = tf.random.normal((1, 8, 5, 4))
k = tf.random.normal((1, 2, 5, 4))
v = tf.random.normal((1, 2, 5, 4))
shared = attend(q, k, v)
for head in range(8):
    key_head = head // 4
    one_q = q[:, head, tf.newaxis]
    alone = attend(one_q, k[:, key_head, tf.newaxis], v[:, key_head, tf.newaxis])[:, 0]
    print_difference(f"query head {head}, key head {key_head}", shared[:, head], alone)


# %% reports
def draw_reports(count):
    """Draw reports, a pupil to ask for in each subject, and the 16 marks asked for.

    Reports have the shape (count, 8 pupils, 4 subjects, 4 marks). A mark tells how far
    a pupil is above or below average: its mean is 0 and its variance 1.
    """
    reports = tf.random.normal((count, 8, 4, 4))
    asked = tf.random.uniform((count, 4), maxval=8, dtype=tf.int32)
    by_subject = tf.transpose(reports, (0, 2, 1, 3))
    answers = tf.gather(by_subject, asked, axis=2, batch_dims=2)
    return reports, asked, tf.reshape(answers, (count, 16))


# %% report-reader
class ReportReader(keras.Model):
    """Four heads, one for each subject, which ask for a pupil; heads share keys."""

    def __init__(self, num_kv_heads, head_size=4, num_hiddens=32):
        super().__init__()
        self.head_size = head_size
        self.pupil = make_table(8, num_hiddens)
        self.marks = make_projection(num_hiddens)
        self.W_q = make_projection(head_size)
        self.W_k = make_projection(num_kv_heads * head_size)
        self.W_v = make_projection(num_kv_heads * head_size)
        # Keras reserves the name `output`.
        self.answer = keras.layers.Dense(16)

    def split(self, X):
        count, n, _ = X.shape
        heads = tf.reshape(X, (count, n, -1, self.head_size))
        return tf.transpose(heads, (0, 2, 1, 3))

    def call(self, reports, asked):
        count = reports.shape[0]
        marks = self.marks(tf.reshape(reports, (count, 8, 16)))
        X = self.pupil(tf.range(8)) + marks
        q = self.W_q(self.pupil(asked))[:, :, tf.newaxis]  # one query per head
        k = self.split(self.W_k(X))
        v = self.split(self.W_v(X))
        Y = attend(q, k, v)
        return self.answer(tf.reshape(Y, (count, 4 * self.head_size)))


# %% train-report-readers
squared_error = keras.losses.MeanSquaredError()


def report_loss(model):
    """Return the mean squared error on 64 reports."""
    reports, asked, answers = draw_reports(64)
    return squared_error(answers, model(reports, asked))


keras.utils.set_random_seed(100)
reports, asked, answers = draw_reports(2000)
sizes = [(4, 4), (1, 4), (1, 16)]  # key heads, and numbers in each
errors = []
for num_kv_heads, head_size in sizes:
    errors.append([])
    for seed in range(5):
        keras.utils.set_random_seed(seed)
        reader = ReportReader(num_kv_heads, head_size)
        reader = fit(reader, report_loss, num_steps=150, lr=0.04)
        error = squared_error(answers, reader(reports, asked))
        errors[-1].append([error])

# %% report-errors tags=["tolerance:absolute=0.05"]
names = [f"{heads} x {size}" for heads, size in sizes]
d2l.print_ranges(dict(zip(names, errors, strict=True)), ["error"], "key heads")


# %% latent
class LatentAttention(keras.layers.Layer):
    """Multi-head latent attention (MLA): keys and values come from one short vector."""

    def __init__(self, num_hiddens=32, num_heads=4, latent_size=8, rope_size=4):
        super().__init__()
        self.num_heads = num_heads
        head_size = num_hiddens // num_heads
        self.W_q = make_projection(num_hiddens)
        self.W_q_rope = make_projection(num_heads * rope_size)
        self.W_latent = make_projection(latent_size)
        self.W_k_rope = make_projection(rope_size)
        self.W_k = make_projection(num_hiddens)
        self.W_v = make_projection(num_hiddens)
        self.W_o = make_projection(num_hiddens)
        self.scale = 1 / math.sqrt(head_size + rope_size)

    def split(self, X):
        batch, steps, _ = X.shape
        heads = tf.reshape(X, (batch, steps, self.num_heads, -1))
        return tf.transpose(heads, (0, 2, 1, 3))

    def compress(self, X, positions):
        """Return what is kept of tokens: a latent vector each, and a rotated key."""
        return self.W_latent(X), rotate(self.W_k_rope(X), positions)

    def compute_weights(self, scores, X, positions, rotated_keys):
        """Return attention weights from scores of content, and of places."""
        q = rotate(self.split(self.W_q_rope(X)), positions)
        places = tf.matmul(q, rotated_keys[:, tf.newaxis], transpose_b=True)
        scores = self.scale * (scores + places)
        key_positions = tf.range(scores.shape[-1])
        is_later = key_positions > positions[:, tf.newaxis]
        return tf.nn.softmax(tf.where(is_later, -math.inf, scores))

    def call(self, X, positions, latents, rotated_keys):
        """Let tokens at these positions attend to all that is kept."""
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(latents))
        v = self.split(self.W_v(latents))
        scores = tf.matmul(q, k, transpose_b=True)
        Y = self.compute_weights(scores, X, positions, rotated_keys) @ v
        return self.W_o(tf.reshape(tf.transpose(Y, (0, 2, 1, 3)), X.shape))


# %% absorbed
class AbsorbedAttention(LatentAttention):
    """The same without keys and values: their matrices go to queries and outputs."""

    def call(self, X, positions, latents, rotated_keys):
        shape = (self.num_heads, -1, latents.shape[-1])
        # (heads, head_size, latent_size)
        W_k = tf.reshape(tf.transpose(self.W_k.kernel), shape)
        W_v = tf.reshape(tf.transpose(self.W_v.kernel), shape)
        q = self.split(self.W_q(X)) @ W_k  # (batch, heads, steps, latent_size)
        latents = latents[:, tf.newaxis]  # the same for all heads
        scores = tf.matmul(q, latents, transpose_b=True)
        weights = self.compute_weights(scores, X, positions, rotated_keys)
        Y = tf.matmul(weights @ latents, W_v, transpose_b=True)
        return self.W_o(tf.reshape(tf.transpose(Y, (0, 2, 1, 3)), X.shape))


# %% latent-compared
keras.utils.set_random_seed(0)
latent = LatentAttention()
X = tf.random.normal((2, 10, 32))
positions = tf.range(10)
kept = latent.compress(X, positions)
whole = latent(X, positions, *kept)
absorbed = AbsorbedAttention()
# These two layers are never called, so they have to be built.
absorbed.W_k.build(kept[0].shape)
absorbed.W_v.build(kept[0].shape)
absorbed(X, positions, *absorbed.compress(X, positions))  # creates the weights
absorbed.set_weights(latent.get_weights())
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
        self.keys = tf.Variable(tf.zeros(shape), trainable=False)
        self.values = tf.Variable(tf.zeros(shape), trainable=False)
        positions = tf.fill((window,), -1)  # no slot has a token
        self.positions = tf.Variable(positions, trainable=False)
        self.length = tf.Variable(0, trainable=False)

    def append(self, keys, values):
        """Add new tokens; return old and new ones, even those that are replaced."""
        steps = keys.shape[2]
        new = self.length + tf.range(steps)
        all_keys = tf.concat([self.keys, keys], axis=2)
        all_values = tf.concat([self.values, values], axis=2)
        all_positions = tf.concat([self.positions, new], axis=0)
        window = self.positions.shape[0]
        slots = new[-window:] % window  # of the tokens that stay
        # Where each slot's token is, among old and new ones.
        sources = tf.tensor_scatter_nd_update(
            tf.range(window),
            slots[:, tf.newaxis],
            tf.range(window, window + steps)[-window:],
        )
        self.keys.assign(tf.gather(all_keys, sources, axis=2))
        self.values.assign(tf.gather(all_values, sources, axis=2))
        self.positions.assign(tf.gather(all_positions, sources))
        self.length.assign_add(steps)
        return all_keys, all_values, all_positions


# %% window-attention
class WindowAttention(CausalSelfAttention):
    """Each token attends to the last `window` tokens, itself among them."""

    window = 4

    def make_cache(self, batch_size, max_len=None):
        return RollingCache(batch_size, self.num_kv_heads, self.window, self.head_size)

    def is_visible(self, positions, key_positions):
        distances = positions[:, tf.newaxis] - key_positions
        return super().is_visible(positions, key_positions) & (distances < self.window)


# %% rolling
keras.utils.set_random_seed(0)
window_attention = WindowAttention(32, 4, num_kv_heads=4)
X = tf.random.normal((1, 30, 32))
whole = window_attention(X)
for sizes in [[1] * 30, [3] * 10, [1, 3, 10, 16]]:
    cache = window_attention.make_cache(batch_size=1)
    outputs = run_in_chunks(window_attention, X, sizes, cache)
    print_difference(f"{len(sizes)} chunks", outputs, whole)
print("positions kept:", cache.positions.numpy().tolist())

# %% rolling-layer
layer = d2l.CausalSelfAttention(32, 4, rope=True, window=4)
layer(X)  # creates the weights
layer.set_weights(window_attention.get_weights())
cache = layer.make_cache(batch_size=1, max_len=30)
outputs = run_in_chunks(layer, X, [1, 3, 10, 16], cache)
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
    letters = tf.random.uniform((count, num_entries), maxval=26, dtype=tf.int32)
    digit_of_letter = tf.random.uniform((count, 26), maxval=10, dtype=tf.int32)
    digits = tf.gather(digit_of_letter, letters, batch_dims=1)
    i = tf.range(num_entries)
    distances = i[:, tf.newaxis] - i
    is_before = (distances > 0) & (distances <= WINDOW)
    is_same = letters[:, :, tf.newaxis] == letters[:, tf.newaxis]
    is_known = tf.reduce_any(is_same & is_before, axis=-1)
    return letters, digits, tf.where(is_known, digits, 10)


# %% softmax-plus-one
def softmax_plus_one(scores):
    """Softmax with 1 more in the denominator: a score of zero that has no value."""
    with_zero = tf.pad(scores, [[0, 0], [0, 0], [1, 0]])
    return tf.nn.softmax(with_zero)[..., 1:]


# %% recaller
class Recaller(keras.Model):
    """A head that looks for each entry's letter among the 16 entries before it."""

    def __init__(self, has_start, num_hiddens=32):
        super().__init__()
        self.has_start = has_start
        self.letter = make_table(26, num_hiddens)
        self.digit = make_table(10, num_hiddens)
        if has_start:
            normal = keras.initializers.RandomNormal(stddev=1)
            # Before the first entry.
            self.start = self.add_weight(shape=(num_hiddens,), initializer=normal)
        self.W_q = make_projection(num_hiddens)
        self.W_k = make_projection(num_hiddens)
        self.W_v = make_projection(num_hiddens)
        # Keras reserves the name `output`.
        self.logits = keras.layers.Dense(11)

    def call(self, letters, digits, keeps_start=True, window=WINDOW):
        count, n = letters.shape
        X = self.letter(letters) + self.digit(digits)
        i = tf.range(n)
        distances = i[:, tf.newaxis] - i
        is_visible = (distances > 0) & (distances <= window)
        if self.has_start:
            start = tf.broadcast_to(self.start, (count, 1, X.shape[-1]))
            X = tf.concat([start, X], axis=1)
            is_visible = tf.pad(
                is_visible, [[0, 0], [1, 0]], constant_values=keeps_start
            )
        q = self.W_q(self.letter(letters))
        k = self.W_k(X)
        v = self.W_v(X)
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(k.shape[-1])
        scores = tf.where(is_visible, scores, -1e9)  # an entry may see no key
        softmax = tf.nn.softmax if self.has_start else softmax_plus_one
        weights = softmax(scores)
        self.attention_weights = weights
        return self.logits(weights @ v)


# %% train-recallers
def recall_loss(model):
    """Return the loss on 64 texts of 16 entries."""
    letters, digits, answers = draw_lookups(64, 16)
    return cross_entropy(answers, model(letters, digits))


def train_recallers(has_start):
    """Train a model from each of five seeds."""
    models = []
    for seed in range(5):
        keras.utils.set_random_seed(seed)
        models.append(fit(Recaller(has_start), recall_loss, num_steps=150, lr=0.02))
    return models


recallers = train_recallers(has_start=True)
without_start = train_recallers(has_start=False)

# %% sink-map tags=["nbval-ignore-output"]
keras.utils.set_random_seed(3)
letters, digits, _ = draw_lookups(1, 16)
recallers[0](letters, digits)
pairs = zip(letters[0], digits[0], strict=True)
entries = [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]
d2l.show_heatmaps(
    recallers[0].attention_weights[:, tf.newaxis],
    xlabel="Entries before",
    ylabel="Entry",
    figsize=(6, 4.8),
    cmap="Blues",
    xticklabels=["start", *(f"{letter}\n{digit}" for letter, digit in entries)],
    yticklabels=entries,
)

# %% recalled
keras.utils.set_random_seed(100)
letters, digits, answers = draw_lookups(200, 64)


def recall_shares(models, keeps_start=True, window=WINDOW):
    """Return shares of right answers, new letters and known ones, after 16 entries."""
    is_new = (answers[:, WINDOW:] == 10).numpy()
    shares = []
    for model in models:
        logits = model(letters, digits, keeps_start=keeps_start, window=window)
        predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
        is_right = (predictions == answers)[:, WINDOW:].numpy()
        shares.append([is_right[is_new].mean(), is_right[~is_new].mean()])
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
model(prompt, caches=caches)


def continue_with(word):
    """Return the logits after one more word, with the cache and without."""
    new = tf.constant([[TOKENS[word]]])
    for cache in caches:
        cache.length.assign(6)  # forget what came after the prompt
    text = tf.concat([prompt, new], axis=1)
    return model(new, caches=caches)[:, -1], model(text)[:, -1]


for word in ["old", "cooks"]:
    print_difference(word, *continue_with(word))

# %% solution-half-window
half = recall_shares(recallers, window=8)

# %% solution-half-window-shown tags=["tolerance:absolute=0.1"]
d2l.print_ranges({"window of 8": half}, ["new letter", "known letter"])


# %% solution-quantized
def quantize(X):
    """Round to whole multiples, -127 to 127, of a scale for each token and head."""
    scale = tf.reduce_max(abs(X), axis=-1, keepdims=True) / 127
    scale = tf.maximum(scale, 1e-9)  # not 0
    return tf.cast(tf.round(X / scale), tf.int8), scale


class RoundedCache(KVCache):
    """Keep keys and values as they are after rounding to whole numbers."""

    def append(self, keys, values):
        whole_keys, key_scale = quantize(keys)
        whole_values, value_scale = quantize(values)
        rounded_keys = tf.cast(whole_keys, tf.float32) * key_scale
        rounded_values = tf.cast(whole_values, tf.float32) * value_scale
        return super().append(rounded_keys, rounded_values)


# %% solution-quantized-shown tags=["tolerance:absolute=0.05"]
for cache_class in [KVCache, RoundedCache]:
    caches = [cache_class(500, 4, 24, 4) for _ in model.blocks]
    loss = next_word_loss(model, test_texts, caches)
    print(f"{cache_class.__name__:<12} loss {loss:.4f}")
