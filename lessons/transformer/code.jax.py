# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import functools
import math
import random
from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from flax.training.train_state import TrainState
from flax.traverse_util import path_aware_map

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())


# %% block-by-hand
def print_words(name, rows):
    print(name)
    for word, row in zip(["old", "dog"], rows.tolist(), strict=True):
        print(f"   {word}  ({', '.join(f'{x:g}' for x in row)})")


X = jnp.array([[4.0, 0], [0, 2]])
weights = jnp.array([[0.5, 0.5], [0.5, 0.5]])  # each looks at both alike
X = X + weights @ X
print_words("after attention:", X)

# %% network-by-hand
W_1 = jnp.array([[1.0, -1, 1], [-1, 1, 1]])
b_1 = jnp.array([0.0, 0, -4])
W_2 = jnp.array([[1.0, 0], [0, 1], [1, 1]])
hidden = nn.relu(X @ W_1 + b_1)
print_words("hidden:", hidden)
print_words("network:", hidden @ W_2)
print_words("after the network:", X + hidden @ W_2)


# %% norms-by-hand
def layer_norm(x):
    """Subtract the mean, and divide by the standard deviation."""
    return (x - x.mean()) / x.std()


def rms_norm(x):
    """Divide by the root of the mean of the squares."""
    return x / jnp.sqrt((x**2).mean())


x = jnp.array([1.0, 2, 6])
for norm in [layer_norm, rms_norm]:
    for factor in [1, 10]:
        y = " ".join(f"{number:5.2f}" for number in norm(factor * x).tolist())
        print(f"{norm.__name__:<10} {factor:>2} * (1, 2, 6): {y}")

# %% activations
x = jnp.arange(-4, 4.01, 0.1)
d2l.plot(
    x,
    [nn.relu(x), nn.gelu(x), nn.silu(x)],
    "input",
    "output",
    legend=["ReLU", "GELU", "SiLU"],
    figsize=(4.5, 3),
)


# %% attention
class KVCache(struct.PyTreeNode):
    """Keys and values of the words so far, in arrays of a fixed size."""

    keys: jax.Array
    values: jax.Array
    length: jax.Array

    @classmethod
    def create(cls, batch_size, num_heads, max_len, head_size):
        shape = (batch_size, num_heads, max_len, head_size)
        return cls(jnp.zeros(shape), jnp.zeros(shape), length=jnp.array(0))

    def append(self, keys, values):
        """Add those of new words; return a new cache."""
        start = (0, 0, self.length, 0)
        return KVCache(
            keys=jax.lax.dynamic_update_slice(self.keys, keys, start),
            values=jax.lax.dynamic_update_slice(self.values, values, start),
            length=self.length + keys.shape[2],
        )


class MultiHeadAttention(nn.Module):
    """Let the rows of X attend to those of memory, where a mask is True."""

    num_hiddens: int
    num_heads: int

    def setup(self):
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_o = nn.Dense(self.num_hiddens, use_bias=False)

    @property
    def scale(self):
        return 1 / math.sqrt(self.num_hiddens // self.num_heads)

    def split(self, X):
        """Reshape (batch, words, features) to (batch, heads, words, head_size)."""
        return X.reshape(*X.shape[:2], self.num_heads, -1).swapaxes(1, 2)

    def __call__(self, X, memory, mask, cache=None):
        """Return the outputs, the weights, and the cache with the new words."""
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(memory))
        v = self.split(self.W_v(memory))
        if cache is not None:
            cache = cache.append(k, v)
            k, v = cache.keys, cache.values
        scores = self.scale * (q @ k.mT)
        scores = jnp.where(mask, scores, -jnp.inf)
        weights = jax.nn.softmax(scores)
        Y = weights @ v
        return self.W_o(Y.swapaxes(1, 2).reshape(X.shape)), weights, cache


# %% networks
class FeedForward(nn.Module):
    """Two matrices with GELU in between, applied to each word by itself."""

    num_hiddens: int
    activation: Callable = nn.gelu

    def setup(self):
        self.dense1 = nn.Dense(4 * self.num_hiddens)
        self.dense2 = nn.Dense(self.num_hiddens)

    def __call__(self, X):
        return self.dense2(self.activation(self.dense1(X)))


class SwiGLU(nn.Module):
    """A network whose hidden numbers are multiplied by gates."""

    num_hiddens: int

    def setup(self):
        num_hidden = 8 * self.num_hiddens // 3
        self.gate = nn.Dense(num_hidden, use_bias=False)
        self.dense1 = nn.Dense(num_hidden, use_bias=False)
        self.dense2 = nn.Dense(self.num_hiddens, use_bias=False)

    def __call__(self, X):
        return self.dense2(nn.silu(self.gate(X)) * self.dense1(X))


# %% transformer-block
class TransformerBlock(nn.Module):
    """Attention and a network, each of which adds to what it was given."""

    num_hiddens: int
    num_heads: int
    reads_memory: bool = False  # a decoder's block also attends to an encoder's output
    norm_first: bool = True
    norm: Callable = nn.LayerNorm
    network: Callable = FeedForward
    attention: Callable = MultiHeadAttention
    has_residual: bool = True
    dropout: float = 0.0

    def setup(self):
        self.norm1 = self.norm()
        self.self_attention = self.attention(self.num_hiddens, self.num_heads)
        if self.reads_memory:
            self.norm2 = self.norm()
            self.cross_attention = self.attention(self.num_hiddens, self.num_heads)
        self.norm3 = self.norm()
        self.feed_forward = self.network(self.num_hiddens)
        # Drops only if there is a key for it, as in training.
        self.drop = nn.Dropout(self.dropout, deterministic=not self.has_rng("dropout"))

    def prepare(self, X, norm):
        """Return a layer's input, which is normalized if norms come first."""
        return norm(X) if self.norm_first else X

    def add(self, X, Y, norm):
        """Add what a layer made of X; normalize the sum if its input was not."""
        old = X if self.has_residual else 0
        X = old + self.drop(Y)
        return X if self.norm_first else norm(X)

    def __call__(self, X, mask, memory=None, memory_mask=None, cache=None):
        """Return new rows, the weights of the last attention, and the cache."""
        Y = self.prepare(X, self.norm1)
        Y, weights, cache = self.self_attention(Y, Y, mask, cache)
        X = self.add(X, Y, self.norm1)
        if memory is not None:
            Y = self.prepare(X, self.norm2)
            Y, weights, _ = self.cross_attention(Y, memory, memory_mask)
            X = self.add(X, Y, self.norm2)
        Y = self.feed_forward(self.prepare(X, self.norm3))
        return self.add(X, Y, self.norm3), weights, cache


# %% block-same
@partial(jax.jit, static_argnames=["module", "method"])
def apply(module, variables, *inputs, method=None):
    """Call a module; compiled once for it, and for each shape of the inputs."""
    return module.apply(variables, *inputs, method=method)


def print_difference(name, a, b):
    print(f"{name}: max |a - b| = {jnp.abs(a - b).max():.5f}")


block = TransformerBlock(
    32, 4, norm_first=False, network=partial(FeedForward, activation=nn.relu)
)
layer = d2l.TransformerEncoderBlock(32, 128, 4, dropout=0.0)

X = jax.random.normal(jax.random.key(0), (2, 6, 32))
valid_lens = jnp.array([6, 4])
mask = (jnp.arange(6) < valid_lens[:, None])[:, None, None]
variables = block.init(jax.random.key(1), X, mask)
params = variables["params"]
layer_params = {
    "attention": params["self_attention"],
    "addnorm1": {"LayerNorm_0": params["norm1"]},
    "ffn": params["feed_forward"],
    "addnorm2": {"LayerNorm_0": params["norm3"]},
}
outputs, _, _ = apply(block, variables, X, mask)
layer_outputs, _ = apply(layer, {"params": layer_params}, X, valid_lens)
print_difference("d2l", outputs, layer_outputs)


# %% parameters
def count_parameters(model):
    _, variables = model
    return sum(parameter.size for parameter in jax.tree.leaves(variables))


d = 48
X = jnp.zeros((1, 1, d))
mask = jnp.ones((1, 1), bool)
sizes = {
    "MultiHeadAttention": (MultiHeadAttention(d, 4), [X, X, mask], 4 * d**2),
    "FeedForward": (FeedForward(d), [X], 8 * d**2 + 5 * d),
    "SwiGLU": (SwiGLU(d), [X], 8 * d**2),
    "LayerNorm": (nn.LayerNorm(), [X], 2 * d),
    "RMSNorm": (nn.RMSNorm(), [X], d),
    "TransformerBlock": (TransformerBlock(d, 4), [X, mask], 12 * d**2 + 9 * d),
}
for name, (module, inputs, formula) in sizes.items():
    # Only shapes are computed, no numbers.
    variables = jax.eval_shape(module.init, jax.random.key(0), *inputs)
    print(f"{name:<18}{count_parameters((module, variables)):>7}{formula:>7}")

# %% llama
d, head_size = 4096, 128
attention_size = 2 * d**2 + 2 * d * 8 * head_size  # 8 key heads for 32 query heads
network_size = 3 * d * 14336
block_size = attention_size + network_size + 2 * d
embedding_size = 128256 * d  # and as much again for the output
total = 32 * block_size + 2 * embedding_size + d
print(f"attention  {32 * attention_size:>13,}")
print(f"networks   {32 * network_size:>13,}")
print(f"words      {2 * embedding_size:>13,}")
print(f"in all     {total:>13,}")

# %% language
NOUNS = {
    "dog": "kano",
    "horse": "kavalo",
    "bird": "uzelo",
    "cook": "koko",
    "cat": "gata",
    "cow": "vaka",
    "girl": "mika",
    "queen": "rega",
}
ADJECTIVES = {
    "old": "vek",
    "small": "pik",
    "happy": "lin",
    "red": "ros",
    "quick": "rap",
    "good": "bon",
}
VERBS = {
    "saw": "vid",
    "heard": "aud",
    "followed": "sek",
    "helped": "yut",
    "fed": "nut",
    "called": "vok",
}
PLURALS = {"o": "i", "a": "e"}  # kano, kani; gata, gate


def make_phrase(rng, num_adjectives):
    """Return a phrase's words, their translation, where each comes from, its ending."""
    noun = rng.choice(list(NOUNS))
    adjectives = rng.sample(list(ADJECTIVES), num_adjectives)
    translation = NOUNS[noun]
    ending = translation[-1]
    is_plural = rng.random() < 0.5
    if is_plural:
        ending = PLURALS[ending]
    source = ["the", *adjectives, noun + "s" if is_plural else noun]
    target = ["l" + ending, translation[:-1] + ending]
    target += [ADJECTIVES[adjective] + ending for adjective in reversed(adjectives)]
    origins = [0, *range(num_adjectives + 1, 0, -1)]
    return source, target, origins, ending


def make_sentence(rng, max_adjectives=1):
    """Return a sentence, its translation, and the place where each word comes from."""
    counts = [rng.randint(0, max_adjectives) for _ in range(2)]
    subject, subject_target, origins, ending = make_phrase(rng, counts[0])
    thing, thing_target, thing_origins, _ = make_phrase(rng, counts[1])
    verb = rng.choice(list(VERBS))
    source = [*subject, verb, *thing, "."]
    is_plural = ending in PLURALS.values()
    verb_target = VERBS[verb] + ("ent" if is_plural else "et")
    target = [*subject_target, *thing_target, verb_target, "."]
    origins += [len(subject) + 1 + origin for origin in thing_origins]
    return source, target, [*origins, len(subject), len(source) - 1]


# %% sentences
rng = random.Random(3)
for _ in range(3):
    source, target, _ = make_sentence(rng)
    print(" ".join(source))
    print("  ", " ".join(target))

# %% corpus
SOURCE_WORDS = ["", ".", "the", *NOUNS, *[noun + "s" for noun in NOUNS]]
SOURCE_WORDS += [*ADJECTIVES, *VERBS]
TARGET_WORDS = ["", "<start>", ".", *["l" + ending for ending in "oaie"]]
for noun in NOUNS.values():
    TARGET_WORDS += [noun, noun[:-1] + PLURALS[noun[-1]]]
TARGET_WORDS += [adj + ending for adj in ADJECTIVES.values() for ending in "oaie"]
TARGET_WORDS += [verb + ending for verb in VERBS.values() for ending in ["et", "ent"]]
SOURCE_TOKENS = {word: token for token, word in enumerate(SOURCE_WORDS)}
TARGET_TOKENS = {word: token for token, word in enumerate(TARGET_WORDS)}
PAD = 0  # the token of no word
START = 1  # what a translation begins with
NUM_STEPS = 10  # the longest sentence, with two adjectives in each phrase


def pad(texts, tokens):
    """Return the tokens of texts, (texts, NUM_STEPS), filled up with padding."""
    rows = [[tokens[word] for word in text] for text in texts]
    return np.array([row + [PAD] * (NUM_STEPS - len(row)) for row in rows])


def encode_pairs(pairs):
    """Return the tokens of sentences and of their translations."""
    sources = [source for source, _, _ in pairs]
    targets = [target for _, target, _ in pairs]
    return pad(sources, SOURCE_TOKENS), pad(targets, TARGET_TOKENS)


rng = random.Random(0)
test_pairs = [make_sentence(rng) for _ in range(1000)]
test_sources = {" ".join(source) for source, _, _ in test_pairs}
train_pairs = []
while len(train_pairs) < 10000:
    pair = make_sentence(rng)
    if " ".join(pair[0]) not in test_sources:
        train_pairs.append(pair)

sources, targets = encode_pairs(train_pairs)
held_out, answers = encode_pairs(test_pairs)
print(len(SOURCE_WORDS) - 1, "words, and", len(TARGET_WORDS) - 2)
print(6 * (16 * 7) ** 2, "sentences are possible")


# %% masks
def make_padding_mask(tokens):
    """Return which words may be seen, by every word and in every head."""
    return (tokens != PAD)[:, None, None]


def make_causal_mask(num_steps, num_before=0, num_keys=None):
    """Return that words see themselves and those before them, also those in a cache."""
    positions = num_before + jnp.arange(num_steps)
    if num_keys is None:
        num_keys = num_before + num_steps
    return jnp.arange(num_keys) <= positions[:, None]


# %% teacher-forcing
def shift(targets):
    """Return what a decoder reads: a start, and all words but the last."""
    starts = jnp.full_like(targets[:, :1], START)
    return jnp.concatenate([starts, targets[:, :-1]], axis=1)


def name_words(tokens, words):
    return [words[token] if token != PAD else "-" for token in tokens.tolist()]


source_names = name_words(held_out[0], SOURCE_WORDS)
input_names = name_words(shift(answers)[0], TARGET_WORDS)
answer_names = name_words(answers[0], TARGET_WORDS)
print(f"{'reads':<12}should say")
for word, answer in zip(input_names, answer_names, strict=True):
    print(f"{word:<12}{answer}")

# %% masks-drawn
padding_mask = jnp.broadcast_to(make_padding_mask(held_out[:1])[0, 0], (10, 10))
masks = {
    ("Read", "Reading"): (padding_mask, source_names, source_names),
    ("Written", "Writing"): (make_causal_mask(10), input_names, input_names),
    ("Read", "Writing"): (padding_mask, source_names, input_names),
}
for (xlabel, ylabel), (mask, columns, rows) in masks.items():
    d2l.show_heatmaps(
        mask.astype(float)[None, None],
        xlabel=xlabel,
        ylabel=ylabel,
        figsize=(7, 5.6),
        cmap="Blues",
        xticklabels=columns,
        yticklabels=rows,
    )


# %% translator
def make_table(rows, num_hiddens):
    """Make a table of trainable vectors of variance 1; Flax draws shorter ones."""
    normal = nn.initializers.normal(stddev=1)
    return nn.Embed(rows, num_hiddens, embedding_init=normal)


class Translator(nn.Module):
    """A block that reads a sentence, and a block that writes its translation."""

    num_hiddens: int = 32
    num_heads: int = 4
    has_positions: bool = True
    norm_first: bool = True
    norm: Callable = nn.LayerNorm
    network: Callable = FeedForward
    attention: Callable = MultiHeadAttention
    has_residual: bool = True

    def setup(self):
        self.source_embedding = make_table(len(SOURCE_WORDS), self.num_hiddens)
        self.target_embedding = make_table(len(TARGET_WORDS), self.num_hiddens)
        self.position = make_table(NUM_STEPS, self.num_hiddens)
        make_block = partial(
            TransformerBlock,
            self.num_hiddens,
            self.num_heads,
            norm_first=self.norm_first,
            norm=self.norm,
            network=self.network,
            attention=self.attention,
            has_residual=self.has_residual,
        )
        self.encoder = make_block()
        self.encoder_norm = self.norm()
        self.decoder = make_block(reads_memory=True)
        self.decoder_norm = self.norm()
        self.output = nn.Dense(len(TARGET_WORDS))

    def make_cache(self, batch_size):
        head_size = self.num_hiddens // self.num_heads
        return KVCache.create(batch_size, self.num_heads, NUM_STEPS, head_size)

    def embed(self, embedding, tokens, start=0):
        """Return vectors of words, to which those of their positions are added."""
        X = embedding(tokens)
        if self.has_positions:
            X = X + self.position(start + jnp.arange(tokens.shape[1]))
        return X

    def encode(self, source):
        """Return what the decoder reads, and which of it are words."""
        mask = make_padding_mask(source)
        X = self.embed(self.source_embedding, source)
        X, _, _ = self.encoder(X, mask)
        return self.encoder_norm(X), mask

    def decode(self, tokens, memory, memory_mask, cache=None):
        """Return the logits of the word after each of these, weights, and the cache."""
        start = 0 if cache is None else cache.length
        num_keys = None if cache is None else NUM_STEPS
        X = self.embed(self.target_embedding, tokens, start)
        mask = make_causal_mask(tokens.shape[1], start, num_keys)
        X, weights, cache = self.decoder(X, mask, memory, memory_mask, cache)
        return self.output(self.decoder_norm(X)), weights, cache

    def __call__(self, source, tokens):
        """Return logits, and how the words written attend to those read."""
        logits, weights, _ = self.decode(tokens, *self.encode(source))
        return logits, weights


# %% fit
@functools.cache  # one for all models, since steps are compiled for each optimizer
def make_optimizer(num_steps, lr):
    """Make Adam, whose rate falls to a fiftieth."""
    return optax.adam(optax.linear_schedule(lr, lr / 50, num_steps))


@partial(jax.jit, static_argnames=["module", "compute_loss"])
@partial(jax.vmap, in_axes=(0, 0, None, None))  # over the models
def train_step(state, batch, module, compute_loss):
    def loss(params):
        return compute_loss((module, {"params": params}), *batch)

    return state.apply_gradients(grads=jax.grad(loss)(state.params))


def fit(models, examples, compute_loss, num_steps, lr):
    """Train models together by Adam, each on its own draws of 32 examples."""
    module, _ = models[0]
    create = partial(
        TrainState.create, apply_fn=module.apply, tx=make_optimizer(num_steps, lr)
    )
    states = [create(params=variables["params"]) for _, variables in models]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    rng = np.random.default_rng(0)
    for _ in range(num_steps):
        draws = rng.integers(len(examples[0]), size=(len(models), 32))
        batch = [array[draws] for array in examples]
        states = train_step(states, batch, module, compute_loss)
    return [
        (module, {"params": jax.tree.map(lambda leaf, i=i: leaf[i], states.params)})
        for i in range(len(models))
    ]


# %% train
def word_loss(logits, targets):
    """Return the mean loss over words; padding does not count."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
    return losses.mean(where=targets != PAD)


def translation_loss(model, source, target):
    """Return the loss on sentences."""
    module, variables = model
    logits, _ = apply(module, variables, source, shift(target))
    return word_loss(logits, target)


def make_models(module, *inputs, seeds=range(5)):
    """Draw a module's variables from each of these seeds; inputs are for shapes."""
    return [(module, module.init(jax.random.key(seed), *inputs)) for seed in seeds]


def train_translators(**options):
    """Train a translator from each of five seeds."""
    models = make_models(Translator(**options), sources[:1], targets[:1])
    return fit(models, (sources, targets), translation_loss, num_steps=300, lr=0.01)


translators = train_translators()


# %% translate
def translate(model, source, uses_cache=True):
    """Write the most probable word each time; return the words, and all logits."""
    module, variables = model
    memory, mask = apply(module, variables, source, method="encode")
    # Padded to its full length, since JAX compiles for each new shape.
    tokens = np.full((len(source), NUM_STEPS + 1), PAD)
    tokens[:, 0] = START
    cache = module.make_cache(len(source)) if uses_cache else None
    steps = []
    for step in range(NUM_STEPS):
        new = tokens[:, step : step + 1] if uses_cache else tokens[:, :-1]
        logits, _, cache = apply(
            module, variables, new, memory, mask, cache, method="decode"
        )
        logits = logits[:, 0 if uses_cache else step]
        steps.append(logits)
        tokens[:, step + 1] = logits.argmax(axis=-1)
    return tokens[:, 1:], np.stack(steps, axis=1)


def right_share(model, source, target):
    """Return the share of sentences all of whose words are right."""
    tokens, _ = translate(model, source)
    is_right = (tokens == target) | (target == PAD)  # after the full stop all is right
    return is_right.all(axis=1).mean().item()


# %% translated
tokens, _ = translate(translators[0], held_out[:3])
for (source, _, _), translation in zip(test_pairs, tokens.tolist(), strict=False):
    words = [TARGET_WORDS[token] for token in translation]
    print(" ".join(source))
    print("  ", " ".join(words[: words.index(".") + 1]))

# %% right-shown
shares = [right_share(model, held_out, answers) for model in translators]
print("right translations:", " ".join(f"{share:.3f}" for share in shares))

# %% cache-same
tokens, logits = translate(translators[0], held_out[:100])
same_tokens, same_logits = translate(translators[0], held_out[:100], uses_cache=False)
print("same words:", bool((tokens == same_tokens).all()))
print_difference("logits", logits, same_logits)

# %% attention-map
module, variables = translators[0]
_, weights = apply(module, variables, held_out[:1], shift(answers[:1]))
source, target, origins = test_pairs[0]
largest = weights[0].max(axis=0)[: len(target), : len(source)]  # of the heads'
d2l.show_heatmaps(
    largest[None, None],
    xlabel="Read",
    ylabel="Writing",
    figsize=(6.4, 5),
    cmap="Blues",
    xticklabels=source,
    yticklabels=target,
    marks=np.array(origins)[:, None] == np.arange(len(source)),
)


# %% alignment
def find_kind(word):
    """Return what kind of word a word of the translation is."""
    if word == ".":
        return "stop"
    if word.startswith("l") and len(word) == 2:
        return "article"
    if word.endswith("t"):
        return "verb"
    return "adjective" if word[:-1] in ADJECTIVES.values() else "noun"


def measure_alignment(model):
    """Return the mean weight of the head that looks most at a word's origin, by kind.

    An article is measured twice: at the word "the", and at its noun.
    """
    module, variables = model
    _, weights = apply(module, variables, held_out, shift(answers))
    largest = weights.max(axis=1)
    by_kind = {kind: [] for kind in KINDS}
    for weights, (_, target, origins) in zip(largest.tolist(), test_pairs, strict=True):
        for place, word in enumerate(target):
            kind = find_kind(word)
            by_kind[kind].append(weights[place][origins[place]])
            if kind == "article":
                by_kind["its noun"].append(weights[place][origins[place + 1]])
    return [sum(found) / len(found) for found in by_kind.values()]


KINDS = ["noun", "adjective", "verb", "stop", "article", "its noun"]
alignments = [measure_alignment(model) for model in translators]

# %% alignment-shown tags=["tolerance:absolute=0.6"]
by_kind = zip(*alignments, strict=True)
names = ["nouns", "adjectives", "verbs", "full stops"]
names += ["articles", "articles, at their noun"]
d2l.print_ranges(dict(zip(names, by_kind, strict=True)))


# %% removed
class NoNorm(nn.Module):
    """Leave a row as it is."""

    def __call__(self, X):
        return X


class NoNetwork(nn.Module):
    """Add nothing."""

    num_hiddens: int

    def __call__(self, X):
        return jnp.zeros_like(X)


class UnscaledAttention(MultiHeadAttention):
    """Take the products of queries and keys as they are."""

    scale = 1


def report(models):
    """Return for each model the share of right translations and the loss."""
    rows = []
    for model in models:
        loss = translation_loss(model, held_out, answers)
        rows.append([right_share(model, held_out, answers), loss.item()])
    return rows


results = [
    report(translators),
    report(train_translators(has_positions=False)),
    report(train_translators(has_residual=False)),
    report(train_translators(norm=NoNorm)),
    report(train_translators(attention=UnscaledAttention)),
    report(train_translators(num_heads=1)),
    report(train_translators(network=NoNetwork)),
]

# %% removed-shown tags=["tolerance:absolute=2.5"]
names = ["complete", "no positions", "no residual", "no norm"]
names += ["no scaling", "one head", "no network"]
d2l.print_ranges(dict(zip(names, results, strict=True)), ["right", "loss"], digits=3)

# %% since-2017
options = [
    report(train_translators(norm_first=False)),
    report(translators),
    report(train_translators(norm=nn.RMSNorm)),
    report(train_translators(network=SwiGLU)),
]

# %% since-2017-shown tags=["tolerance:absolute=2.5"]
names = ["norm after", "norm first", "RMSNorm", "SwiGLU"]
d2l.print_ranges(dict(zip(names, options, strict=True)), ["right", "loss"], digits=3)


# %% stack
class Stack(nn.Module):
    """Blocks that read one text; the mask says what a word sees."""

    num_words: int
    num_outputs: int
    num_hiddens: int = 32
    num_heads: int = 4
    num_blocks: int = 2
    norm_first: bool = True

    def setup(self):
        self.embedding = make_table(self.num_words, self.num_hiddens)
        self.position = make_table(2 * NUM_STEPS, self.num_hiddens)
        # Its parameters have an axis for the blocks.
        self.blocks = TransformerBlock(
            self.num_hiddens, self.num_heads, norm_first=self.norm_first
        )
        self.norm = nn.LayerNorm()
        self.output = nn.Dense(self.num_outputs)

    def read(self, tokens, mask):
        """Return the rows after each block, (blocks, batch, words, features)."""

        def step(block, X):
            X, _, _ = block(X, mask)
            return X, X  # for the next block, and to keep

        # A loop that is compiled once for all blocks, however many there are.
        loop = nn.scan(
            step,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=self.num_blocks,
        )
        X = self.embedding(tokens) + self.position(jnp.arange(tokens.shape[1]))
        _, rows = loop(self.blocks, X)
        return rows

    def __call__(self, tokens, mask):
        rows = self.read(tokens, mask)
        return self.output(self.norm(rows[-1]))


@partial(jax.jit, static_argnames="module")
def draw_stack(module, seed):
    """Draw a stack's variables from this seed; compiled once for all seeds."""
    tokens = jnp.zeros((1, NUM_STEPS), int)  # only for their shape
    mask = make_causal_mask(NUM_STEPS)
    return module.init(jax.random.key(seed), tokens, mask)


# %% encoder-only
ENDINGS = ["", "o", "a", "i", "e"]


def name_endings(target, origins):
    """Return the ending of each word that was read; verb and full stop have none."""
    endings = [PAD] * NUM_STEPS
    for word, origin in zip(target, origins, strict=True):
        if word[-1] in ENDINGS:
            endings[origin] = ENDINGS.index(word[-1])
    return endings


endings = np.array([name_endings(*pair[1:]) for pair in train_pairs])
test_endings = np.array([name_endings(*pair[1:]) for pair in test_pairs])


def make_tagger_mask(tokens, is_causal):
    mask = make_padding_mask(tokens)
    return mask & make_causal_mask(tokens.shape[1]) if is_causal else mask


def train_taggers(is_causal):
    """Train stacks to name the ending that each word gets in the translation."""

    def compute_loss(model, source, endings):
        module, variables = model
        mask = make_tagger_mask(source, is_causal)
        return word_loss(apply(module, variables, source, mask), endings)

    module = Stack(len(SOURCE_WORDS), len(ENDINGS))
    models = [(module, draw_stack(module, seed)) for seed in range(5)]
    return fit(models, (sources, endings), compute_loss, num_steps=100, lr=0.01)


def right_endings(model, is_causal):
    module, variables = model
    mask = make_tagger_mask(held_out, is_causal)
    logits = np.asarray(apply(module, variables, held_out, mask))
    is_right = (logits.argmax(axis=-1) == test_endings)[test_endings != PAD]
    return is_right.mean().item()


tagged = []
for is_causal in [False, True]:
    models = train_taggers(is_causal)
    tagged.append([right_endings(model, is_causal) for model in models])

# %% encoder-only-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges(dict(zip(["no mask", "causal"], tagged, strict=True)))


# %% decoder-only
def join(sources, targets):
    """Write each sentence and its translation as one text, without padding between."""
    joined = np.zeros((len(sources), 2 * NUM_STEPS), int)
    for row, source, target in zip(joined, sources, targets, strict=True):
        source = source[source != PAD]
        target = target[target != PAD] + len(SOURCE_WORDS)
        row[: len(source)] = source
        row[len(source) : len(source) + len(target)] = target
    return joined


texts = join(sources, targets)
test_texts = join(held_out, answers)
causal_mask = make_causal_mask(2 * NUM_STEPS - 1)


def next_word_loss(model, texts):
    """Return the loss on the words of translations."""
    module, variables = model
    logits = apply(module, variables, texts[:, :-1], causal_mask)
    is_target = texts[:, 1:] >= len(SOURCE_WORDS)
    return word_loss(logits, texts[:, 1:] * is_target)


def right_texts(model):
    """Return the share of right translations; each is written after its sentence."""
    module, variables = model
    is_target = test_texts >= len(SOURCE_WORDS)
    tokens = np.where(is_target, PAD, test_texts)
    for step in range(1, 2 * NUM_STEPS):
        # Always the whole text, of one shape; no word sees those after it.
        logits = apply(module, variables, tokens[:, :-1], causal_mask)[:, step - 1]
        words = logits.argmax(axis=-1)
        tokens[:, step] = np.where(is_target[:, step], words, tokens[:, step])
    return (tokens == test_texts).all(axis=1).mean().item()


num_words = len(SOURCE_WORDS) + len(TARGET_WORDS)
module = Stack(num_words, num_words)
models = [(module, draw_stack(module, seed)) for seed in range(5)]
models = fit(models, (texts,), next_word_loss, num_steps=300, lr=0.01)
one_stack = [right_texts(model) for model in models]

# %% decoder-only-shown
d2l.print_ranges({"one stack": one_stack}, digits=3)


# %% deep
def initialize(module, seed, has_small_branches):
    """Draw matrices that keep a row's size; make what is added to it small, if asked."""
    # Flax's own: numbers of variance 1 / fan_in, and biases of zero.
    variables = draw_stack(module, seed)
    if not has_small_branches:
        return variables
    factor = 1 / math.sqrt(2 * module.num_blocks)

    def shrink(path, parameter):
        is_last = "W_o" in path or "dense2" in path
        return factor * parameter if is_last else parameter

    return path_aware_map(shrink, variables)


def make_deep(num_blocks, norm_first, has_small_branches, seed):
    num_words = len(TARGET_WORDS)
    module = Stack(num_words, num_words, 16, 4, num_blocks, norm_first)
    return module, initialize(module, seed, has_small_branches)


def language_loss(model, targets):
    """Return the loss on the next word of translations, without what they translate."""
    module, variables = model
    logits = apply(module, variables, shift(targets), make_causal_mask(NUM_STEPS))
    return word_loss(logits, targets)


# %% measure-depth
@partial(jax.jit, static_argnames="module")
def compute_gradients(module, params, targets):
    def loss(params):
        return language_loss((module, {"params": params}), targets)

    return jax.grad(loss)(params)


def measure_depth(model):
    """Return, by block, the size of rows, how words differ, and a gradient's size."""
    module, variables = model
    texts = answers[:64]
    mask = make_causal_mask(NUM_STEPS)
    rows = np.asarray(apply(module, variables, shift(texts), mask, method="read"))
    sizes = np.sqrt((rows**2).mean(axis=(1, 2, 3)))
    words = rows[:, texts != PAD]  # (blocks, words, features)
    deviations = words - words.mean(axis=1, keepdims=True)
    spreads = np.sqrt((deviations**2).mean(axis=(1, 2))) / sizes
    grads = compute_gradients(module, variables["params"], texts)
    W_q_grads = grads["blocks"]["self_attention"]["W_q"]["kernel"]
    gradients = jnp.linalg.norm(W_q_grads, axis=(1, 2))  # one for each block
    return sizes.tolist(), spreads.tolist(), gradients.tolist()


# norm first?, small branches?
STACKS = [(False, False), (False, True), (True, False), (True, True)]

at_start = [measure_depth(make_deep(32, *kind, seed=0)) for kind in STACKS]

# %% depth-drawn
names = ["norm after", "norm after, small", "norm first", "norm first, small"]
for index, label in enumerate(["size", "difference among words", "gradient of W_q"]):
    d2l.plot(
        range(1, 33),
        [measured[index] for measured in at_start],
        "block",
        label,
        legend=names,
        yscale="log",
        figsize=(4.5, 3),
    )
    d2l.plt.show()

# %% train-deep
deep_losses = []
after_training = []
for kind in STACKS:
    models = [make_deep(16, *kind, seed) for seed in range(5)]
    models = fit(models, (targets,), language_loss, num_steps=60, lr=0.005)
    deep_losses.append([language_loss(model, answers).item() for model in models])
    after_training.append(measure_depth(models[-1]))

# %% deep-losses-shown tags=["tolerance:absolute=1"]
names = ["norm after", "norm after, small", "norm first", "norm first, small"]
counts = np.bincount(answers[answers != PAD])
shares = counts[counts > 0] / counts.sum()
print(f"from how frequent words are: {-(shares * np.log(shares)).sum():.2f}")
d2l.print_ranges(dict(zip(names, deep_losses, strict=True)))

# %% depth-trained-drawn
names = ["norm after", "norm after, small", "norm first", "norm first, small"]
for index, label in [(1, "difference among words"), (2, "gradient of W_q")]:
    d2l.plot(
        range(1, 17),
        [measured[index] for measured in after_training],
        "block",
        label,
        legend=names,
        yscale="log",
        figsize=(4.5, 3),
    )
    d2l.plt.show()

# %% solution-gpt2
d = 768
block_size = 12 * d**2 + 13 * d
print(f"{12 * block_size + (50257 + 1024) * d + 2 * d:,}")

# %% solution-wrong-article
OTHER_GENDER = {"lo": "la", "la": "lo", "li": "le", "le": "li"}
is_wrong = {TARGET_TOKENS[a]: TARGET_TOKENS[b] for a, b in OTHER_GENDER.items()}
tokens = np.array(shift(answers))
tokens[:, 1] = [is_wrong[token] for token in tokens[:, 1].tolist()]
after_wrong = []
for module, variables in translators:
    logits, _ = apply(module, variables, held_out, tokens)
    nouns = np.asarray(logits)[:, 1].argmax(axis=-1)
    is_right = nouns == answers[:, 1]
    agrees = [
        TARGET_WORDS[noun][-1] == TARGET_WORDS[article][-1]
        for noun, article in zip(nouns.tolist(), tokens[:, 1].tolist(), strict=True)
    ]
    after_wrong.append([is_right.mean().item(), sum(agrees) / len(agrees)])

# %% solution-wrong-article-shown tags=["tolerance:absolute=0.6"]
d2l.print_ranges({"first noun": after_wrong}, ["right", "agrees with the article"])


# %% solution-no-mask
class SeesAll(Translator):
    """Wrong: in training, a decoder that sees the words it has to say."""

    def __call__(self, source, tokens):
        memory, memory_mask = self.encode(source)
        X = self.embed(self.target_embedding, tokens)
        mask = jnp.ones((NUM_STEPS, NUM_STEPS), bool)
        X, weights, _ = self.decoder(X, mask, memory, memory_mask)
        return self.output(self.decoder_norm(X)), weights


models = make_models(SeesAll(), sources[:1], targets[:1], seeds=[0])
models = fit(models, (sources, targets), translation_loss, num_steps=300, lr=0.01)
[[share, loss]] = report(models)
# %% solution-no-mask-shown tags=["tolerance:absolute=0.05"]
print(f"loss {loss:.3f}, right translations {share:.3f}")

# %% solution-two-adjectives
rng = random.Random(1)
long_pairs = [make_sentence(rng, max_adjectives=2) for _ in range(1000)]
long_pairs = [pair for pair in long_pairs if len(pair[0]) > 8]
long_sources, long_answers = encode_pairs(long_pairs)
long_shares = [right_share(model, long_sources, long_answers) for model in translators]

# %% solution-two-adjectives-shown tags=["tolerance:absolute=0.3"]
d2l.print_ranges({"longer sentences": long_shares})
