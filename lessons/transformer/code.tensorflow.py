# The lesson's TensorFlow code, with Keras' layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import random

from d2l_compat import tensorflow as d2l  # first: it keeps TensorFlow's log quiet

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
# Everything here is small; without this line TensorFlow would use any GPU.
tf.config.set_visible_devices([], "GPU")


# %% block-by-hand
def print_words(name, rows):
    print(name)
    for word, row in zip(["old", "dog"], rows.numpy(), strict=True):
        print(f"   {word}  ({', '.join(f'{x:g}' for x in row)})")


X = tf.constant([[4.0, 0], [0, 2]])
weights = tf.constant([[0.5, 0.5], [0.5, 0.5]])  # each looks at both alike
X = X + weights @ X
print_words("after attention:", X)

# %% network-by-hand
W_1 = tf.constant([[1.0, -1, 1], [-1, 1, 1]])
b_1 = tf.constant([0.0, 0, -4])
W_2 = tf.constant([[1.0, 0], [0, 1], [1, 1]])
hidden = tf.nn.relu(X @ W_1 + b_1)
print_words("hidden:", hidden)
print_words("network:", hidden @ W_2)
print_words("after the network:", X + hidden @ W_2)


# %% norms-by-hand
def layer_norm(x):
    """Subtract the mean, and divide by the standard deviation."""
    return (x - tf.reduce_mean(x)) / tf.math.reduce_std(x)


def rms_norm(x):
    """Divide by the root of the mean of the squares."""
    return x / tf.sqrt(tf.reduce_mean(tf.square(x)))


x = tf.constant([1.0, 2, 6])
for norm in [layer_norm, rms_norm]:
    for factor in [1, 10]:
        y = " ".join(f"{number:5.2f}" for number in norm(factor * x))
        print(f"{norm.__name__:<10} {factor:>2} * (1, 2, 6): {y}")

# %% activations
x = tf.range(-4, 4.01, 0.1)
d2l.plot(
    x,
    [tf.nn.relu(x), tf.nn.gelu(x), tf.nn.silu(x)],
    "input",
    "output",
    legend=["ReLU", "GELU", "SiLU"],
    figsize=(4.5, 3),
)


# %% attention
class KVCache:
    """Keys and values of the words so far."""

    def __init__(self):
        self.keys = None
        self.values = None
        self.length = 0

    def append(self, keys, values):
        """Add those of new words; return all."""
        if self.length > 0:
            keys = tf.concat([self.keys, keys], axis=2)
            values = tf.concat([self.values, values], axis=2)
        self.keys = keys
        self.values = values
        self.length = keys.shape[2]
        return keys, values


def make_projection(width, use_bias=False):
    """Make a linear map; Keras itself draws larger numbers."""
    narrow = keras.initializers.VarianceScaling(scale=1 / 3, distribution="uniform")
    return keras.layers.Dense(width, use_bias=use_bias, kernel_initializer=narrow)


class MultiHeadAttention(keras.layers.Layer):
    """Let the rows of X attend to those of memory, where a mask is True."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.scale = 1 / math.sqrt(num_hiddens // num_heads)
        self.W_q = make_projection(num_hiddens)
        self.W_k = make_projection(num_hiddens)
        self.W_v = make_projection(num_hiddens)
        self.W_o = make_projection(num_hiddens)
        self.built = True  # each part creates its weights when it is first called

    def split(self, X):
        """Reshape (batch, words, features) to (batch, heads, words, head_size)."""
        batch, words, _ = X.shape
        heads = tf.reshape(X, (batch, words, self.num_heads, -1))
        return tf.transpose(heads, (0, 2, 1, 3))

    def call(self, X, memory, mask, cache=None):
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(memory))
        v = self.split(self.W_v(memory))
        if cache is not None:
            k, v = cache.append(k, v)
        scores = self.scale * tf.matmul(q, k, transpose_b=True)
        scores = tf.where(mask, scores, -math.inf)
        self.attention_weights = tf.nn.softmax(scores)
        Y = self.attention_weights @ v
        return self.W_o(tf.reshape(tf.transpose(Y, (0, 2, 1, 3)), X.shape))


# %% networks
class FeedForward(keras.layers.Layer):
    """Two matrices with GELU in between, applied to each word by itself."""

    activation = staticmethod(tf.nn.gelu)

    def __init__(self, num_hiddens):
        super().__init__()
        self.dense1 = make_projection(4 * num_hiddens, use_bias=True)
        self.dense2 = make_projection(num_hiddens, use_bias=True)
        self.built = True

    def call(self, X):
        return self.dense2(self.activation(self.dense1(X)))


class SwiGLU(keras.layers.Layer):
    """A network whose hidden numbers are multiplied by gates."""

    def __init__(self, num_hiddens):
        super().__init__()
        num_hidden = 8 * num_hiddens // 3
        self.gate = make_projection(num_hidden)
        self.dense1 = make_projection(num_hidden)
        self.dense2 = make_projection(num_hiddens)

    def call(self, X):
        return self.dense2(tf.nn.silu(self.gate(X)) * self.dense1(X))


# %% transformer-block
class TransformerBlock(keras.layers.Layer):
    """Attention and a network, each of which adds to what it was given."""

    def __init__(
        self,
        num_hiddens,
        num_heads,
        reads_memory=False,  # a decoder's block also attends to an encoder's output
        norm_first=True,
        norm=keras.layers.LayerNormalization,
        network=FeedForward,
        attention=MultiHeadAttention,
        has_residual=True,
        dropout=0.0,
    ):
        super().__init__()
        self.norm_first = norm_first
        self.has_residual = has_residual
        self.norm1 = norm()
        self.attention = attention(num_hiddens, num_heads)
        if reads_memory:
            self.norm2 = norm()
            self.cross_attention = attention(num_hiddens, num_heads)
        self.norm3 = norm()
        self.network = network(num_hiddens)
        self.dropout = keras.layers.Dropout(dropout)
        self.built = True

    def add(self, X, norm, layer):
        """Add what a layer makes of X; normalize its input, or the sum."""
        old = X if self.has_residual else 0
        if self.norm_first:
            return old + self.dropout(layer(norm(X)))
        return norm(old + self.dropout(layer(X)))

    def call(self, X, mask, memory=None, memory_mask=None, cache=None):
        X = self.add(X, self.norm1, lambda X: self.attention(X, X, mask, cache=cache))
        if memory is not None:
            X = self.add(
                X,
                self.norm2,
                lambda X: self.cross_attention(X, memory, memory_mask),
            )
        return self.add(X, self.norm3, self.network)


# %% block-same
class ReluNetwork(FeedForward):
    activation = staticmethod(tf.nn.relu)


def print_difference(name, a, b):
    print(f"{name}: max |a - b| = {tf.reduce_max(abs(a - b)):.5f}")


keras.utils.set_random_seed(0)
X = tf.random.normal((2, 6, 32))
valid_lens = tf.constant([6, 4])
mask = (tf.range(6) < valid_lens[:, tf.newaxis])[:, tf.newaxis, tf.newaxis]
block = TransformerBlock(32, 4, norm_first=False, network=ReluNetwork)
layer = d2l.TransformerEncoderBlock(32, 128, 4, dropout=0.0)
output = block(X, mask)
layer(X, valid_lens)  # creates the weights
layer.attention.set_weights(block.attention.get_weights())
layer.addnorm1.ln.set_weights(block.norm1.get_weights())
layer.ffn.set_weights(block.network.get_weights())
layer.addnorm2.ln.set_weights(block.norm3.get_weights())
print_difference("d2l", output, layer(X, valid_lens))


# %% parameters
def build(layer, *inputs):
    """Call a layer, so that it creates its weights; return it."""
    layer(*inputs)
    return layer


def count_parameters(model):
    return model.count_params()


d = 48
X = tf.zeros((1, 6, d))
mask = tf.fill((6, 6), True)
sizes = {
    "MultiHeadAttention": (build(MultiHeadAttention(d, 4), X, X, mask), 4 * d**2),
    "FeedForward": (build(FeedForward(d), X), 8 * d**2 + 5 * d),
    "SwiGLU": (build(SwiGLU(d), X), 8 * d**2),
    "LayerNorm": (build(keras.layers.LayerNormalization(), X), 2 * d),
    "RMSNorm": (build(keras.layers.RMSNormalization(), X), d),
    "TransformerBlock": (build(TransformerBlock(d, 4), X, mask), 12 * d**2 + 9 * d),
}
for name, (module, formula) in sizes.items():
    print(f"{name:<18}{count_parameters(module):>7}{formula:>7}")

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
    return tf.constant([row + [PAD] * (NUM_STEPS - len(row)) for row in rows])


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
    return (tokens != PAD)[:, tf.newaxis, tf.newaxis]


def make_causal_mask(num_steps, num_before=0):
    """Return that words see themselves and those before them, also those in a cache."""
    positions = tf.range(num_before, num_before + num_steps)
    return tf.range(num_before + num_steps) <= positions[:, tf.newaxis]


# %% teacher-forcing
def shift(targets):
    """Return what a decoder reads: a start, and all words but the last."""
    starts = tf.fill((targets.shape[0], 1), START)
    return tf.concat([starts, targets[:, :-1]], axis=1)


def name_words(tokens, words):
    return [words[token] if token != PAD else "-" for token in tokens]


source_names = name_words(held_out[0], SOURCE_WORDS)
input_names = name_words(shift(answers)[0], TARGET_WORDS)
answer_names = name_words(answers[0], TARGET_WORDS)
print(f"{'reads':<12}should say")
for word, answer in zip(input_names, answer_names, strict=True):
    print(f"{word:<12}{answer}")

# %% masks-drawn
padding_mask = tf.broadcast_to(make_padding_mask(held_out[:1])[0, 0], (10, 10))
masks = {
    ("Read", "Reading"): (padding_mask, source_names, source_names),
    ("Written", "Writing"): (make_causal_mask(10), input_names, input_names),
    ("Read", "Writing"): (padding_mask, source_names, input_names),
}
for (xlabel, ylabel), (mask, columns, rows) in masks.items():
    d2l.show_heatmaps(
        tf.cast(mask, tf.float32)[tf.newaxis, tf.newaxis],
        xlabel=xlabel,
        ylabel=ylabel,
        figsize=(7, 5.6),
        cmap="Blues",
        xticklabels=columns,
        yticklabels=rows,
    )


# %% translator
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1; Keras draws far shorter ones."""
    normal = keras.initializers.RandomNormal(stddev=1)
    return keras.layers.Embedding(rows, width, embeddings_initializer=normal)


class Translator(keras.Model):
    """A block that reads a sentence, and a block that writes its translation."""

    def __init__(
        self,
        num_hiddens=32,
        num_heads=4,
        has_positions=True,
        norm=keras.layers.LayerNormalization,
        **options,
    ):
        super().__init__()
        self.has_positions = has_positions
        self.source_embedding = make_table(len(SOURCE_WORDS), num_hiddens)
        self.target_embedding = make_table(len(TARGET_WORDS), num_hiddens)
        self.position = make_table(NUM_STEPS, num_hiddens)
        self.encoder = TransformerBlock(num_hiddens, num_heads, norm=norm, **options)
        self.encoder_norm = norm()
        self.decoder = TransformerBlock(
            num_hiddens, num_heads, reads_memory=True, norm=norm, **options
        )
        self.decoder_norm = norm()
        # Keras reserves the name `output`.
        self.logits = make_projection(len(TARGET_WORDS), use_bias=True)
        self.built = True

    def embed(self, embedding, tokens, start=0):
        """Return vectors of words, to which those of their positions are added."""
        X = embedding(tokens)
        if self.has_positions:
            X = X + self.position(tf.range(start, start + tokens.shape[1]))
        return X

    def encode(self, source):
        """Return what the decoder reads, and which of it are words."""
        mask = make_padding_mask(source)
        X = self.embed(self.source_embedding, source)
        return self.encoder_norm(self.encoder(X, mask)), mask

    def decode(self, tokens, memory, memory_mask, cache=None):
        """Return the logits of the word after each of these."""
        start = 0 if cache is None else cache.length
        X = self.embed(self.target_embedding, tokens, start)
        mask = make_causal_mask(tokens.shape[1], start)
        X = self.decoder(X, mask, memory, memory_mask, cache=cache)
        return self.logits(self.decoder_norm(X))

    def call(self, source, tokens):
        return self.decode(tokens, *self.encode(source))


# %% fit
def make_models(make_model, compute_loss, seeds):
    """Make a model from each seed."""
    models = []
    for seed in seeds:
        keras.utils.set_random_seed(seed)
        model = make_model()
        compute_loss(model)  # creates the weights
        models.append(model)
    return models


def fit(make_model, compute_loss, num_steps, lr, seeds=range(5)):
    """Train a model from each seed by Adam, whose rate falls to a fiftieth."""
    models = make_models(make_model, compute_loss, seeds)
    starts = [model.get_weights() for model in models]
    # All are trained in the place of the last, so that a step is compiled only once.
    weights = models[-1].trainable_weights
    schedule = keras.optimizers.schedules.PolynomialDecay(lr, num_steps, lr / 50)
    optimizer = keras.optimizers.Adam(schedule)
    optimizer.build(weights)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = compute_loss(models[-1])
        optimizer.apply(tape.gradient(loss, weights), weights)

    for model, start in zip(models, starts, strict=True):
        models[-1].set_weights(start)
        for variable in optimizer.variables:
            variable.assign(tf.zeros_like(variable))
        for _ in range(num_steps):
            step()
        model.set_weights(models[-1].get_weights())
    return models


# %% train
def word_loss(logits, targets):
    """Return the mean loss over words; padding does not count."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
    return tf.reduce_mean(losses[targets != PAD])


def translation_loss(model):
    """Return the loss on 32 training sentences."""
    batch = tf.random.uniform((32,), maxval=len(sources), dtype=tf.int32)
    source, target = tf.gather(sources, batch), tf.gather(targets, batch)
    return word_loss(model(source, shift(target)), target)


def train_translators(**options):
    """Train a translator from each of five seeds."""
    return fit(lambda: Translator(**options), translation_loss, num_steps=300, lr=0.01)


translators = train_translators()


# %% translate
def translate(model, source, uses_cache=True):
    """Write the most probable word each time; return the words, and all logits."""
    memory, mask = model.encode(source)
    tokens = tf.fill((len(source), 1), START)
    cache = KVCache() if uses_cache else None
    steps = []
    for _ in range(NUM_STEPS):
        new = tokens[:, -1:] if uses_cache else tokens
        logits = model.decode(new, memory, mask, cache)[:, -1]
        steps.append(logits)
        words = tf.argmax(logits, axis=-1, output_type=tf.int32)
        tokens = tf.concat([tokens, words[:, tf.newaxis]], axis=1)
    return tokens[:, 1:], tf.stack(steps, axis=1)


def mean(is_true):
    """Return the share of what is true."""
    return float(tf.reduce_mean(tf.cast(is_true, tf.float32)))


def right_share(model, source, target):
    """Return the share of sentences all of whose words are right."""
    tokens, _ = translate(model, source)
    is_right = (tokens == target) | (target == PAD)  # after the full stop all is right
    return mean(tf.reduce_all(is_right, axis=1))


# %% translated
tokens, _ = translate(translators[0], held_out[:3])
for (source, _, _), translation in zip(test_pairs, tokens, strict=False):
    words = [TARGET_WORDS[token] for token in translation]
    print(" ".join(source))
    print("  ", " ".join(words[: words.index(".") + 1]))

# %% right-shown
shares = [right_share(model, held_out, answers) for model in translators]
print("right translations:", " ".join(f"{share:.3f}" for share in shares))

# %% cache-same
tokens, logits = translate(translators[0], held_out[:100])
same_tokens, same_logits = translate(translators[0], held_out[:100], uses_cache=False)
print("same words:", bool(tf.reduce_all(tokens == same_tokens)))
print_difference("logits", logits, same_logits)

# %% attention-map
model = translators[0]
model(held_out[:1], shift(answers[:1]))
source, target, origins = test_pairs[0]
weights = model.decoder.cross_attention.attention_weights[0]  # (heads, 10, 10)
largest = tf.reduce_max(weights, axis=0)[: len(target), : len(source)]
d2l.show_heatmaps(
    largest[tf.newaxis, tf.newaxis],
    xlabel="Read",
    ylabel="Writing",
    figsize=(6.4, 5),
    cmap="Blues",
    xticklabels=source,
    yticklabels=target,
    marks=tf.constant(origins)[:, tf.newaxis] == tf.range(len(source)),
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
    model(held_out, shift(answers))
    weights = model.decoder.cross_attention.attention_weights
    largest = tf.reduce_max(weights, axis=1).numpy()
    by_kind = {kind: [] for kind in KINDS}
    for weights, (_, target, origins) in zip(largest, test_pairs, strict=True):
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
class NoNorm(keras.layers.Identity):
    """Leave a row as it is."""


class NoNetwork(keras.layers.Layer):
    """Add nothing."""

    def __init__(self, num_hiddens):
        super().__init__()

    def call(self, X):
        return 0 * X


class UnscaledAttention(MultiHeadAttention):
    """Take the products of queries and keys as they are."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__(num_hiddens, num_heads)
        self.scale = 1


def report(models):
    """Return for each model the share of right translations and the loss."""
    rows = []
    for model in models:
        loss = word_loss(model(held_out, shift(answers)), answers)
        rows.append([right_share(model, held_out, answers), float(loss)])
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
    report(train_translators(norm=keras.layers.RMSNormalization)),
    report(train_translators(network=SwiGLU)),
]

# %% since-2017-shown tags=["tolerance:absolute=2.5"]
names = ["norm after", "norm first", "RMSNorm", "SwiGLU"]
d2l.print_ranges(dict(zip(names, options, strict=True)), ["right", "loss"], digits=3)


# %% stack
class Stack(keras.Model):
    """Blocks that read one text; the mask says what a word sees."""

    def __init__(
        self,
        num_words,
        num_outputs,
        num_hiddens=32,
        num_heads=4,
        num_blocks=2,
        **options,
    ):
        super().__init__()
        self.embedding = make_table(num_words, num_hiddens)
        self.position = make_table(2 * NUM_STEPS, num_hiddens)
        self.blocks = [
            TransformerBlock(num_hiddens, num_heads, **options)
            for _ in range(num_blocks)
        ]
        self.norm = keras.layers.LayerNormalization()
        self.logits = make_projection(num_outputs, use_bias=True)
        self.built = True

    def read(self, tokens, mask):
        """Return the rows after each block."""
        X = self.embedding(tokens) + self.position(tf.range(tokens.shape[1]))
        rows = []
        for block in self.blocks:
            X = block(X, mask)
            rows.append(X)
        return rows

    def call(self, tokens, mask):
        return self.logits(self.norm(self.read(tokens, mask)[-1]))


# %% encoder-only
ENDINGS = ["", "o", "a", "i", "e"]


def name_endings(target, origins):
    """Return the ending of each word that was read; verb and full stop have none."""
    endings = [PAD] * NUM_STEPS
    for word, origin in zip(target, origins, strict=True):
        if word[-1] in ENDINGS:
            endings[origin] = ENDINGS.index(word[-1])
    return endings


endings = tf.constant([name_endings(*pair[1:]) for pair in train_pairs])
test_endings = tf.constant([name_endings(*pair[1:]) for pair in test_pairs])


def make_tagger_mask(tokens, is_causal):
    mask = make_padding_mask(tokens)
    return mask & make_causal_mask(tokens.shape[1]) if is_causal else mask


def train_taggers(is_causal):
    """Train a stack to name the ending that each word gets in the translation."""

    def compute_loss(model):
        batch = tf.random.uniform((32,), maxval=len(sources), dtype=tf.int32)
        source = tf.gather(sources, batch)
        logits = model(source, make_tagger_mask(source, is_causal))
        return word_loss(logits, tf.gather(endings, batch))

    def make_model():
        return Stack(len(SOURCE_WORDS), len(ENDINGS))

    return fit(make_model, compute_loss, num_steps=100, lr=0.01)


def right_endings(model, is_causal):
    logits = model(held_out, make_tagger_mask(held_out, is_causal))
    is_right = tf.argmax(logits, axis=-1, output_type=tf.int32) == test_endings
    return mean(is_right[test_endings != PAD])


tagged = []
for is_causal in [False, True]:
    models = train_taggers(is_causal)
    tagged.append([right_endings(model, is_causal) for model in models])

# %% encoder-only-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges(dict(zip(["no mask", "causal"], tagged, strict=True)))


# %% decoder-only
def join(sources, targets):
    """Write each sentence and its translation as one text, without padding between."""
    texts = []
    for source, target in zip(sources.numpy(), targets.numpy(), strict=True):
        text = [*source[source != PAD], *target[target != PAD] + len(SOURCE_WORDS)]
        texts.append(text + [PAD] * (2 * NUM_STEPS - len(text)))
    return tf.constant(texts)


texts = join(sources, targets)
test_texts = join(held_out, answers)


def next_word_loss(model):
    """Return the loss on the words of 32 translations."""
    rows = tf.random.uniform((32,), maxval=len(texts), dtype=tf.int32)
    batch = tf.gather(texts, rows)
    logits = model(batch[:, :-1], make_causal_mask(2 * NUM_STEPS - 1))
    is_target = batch[:, 1:] >= len(SOURCE_WORDS)
    return word_loss(logits, tf.where(is_target, batch[:, 1:], PAD))


def right_texts(model):
    """Return the share of right translations; each is written after its sentence."""
    tokens = test_texts[:, :1]
    for step in range(1, 2 * NUM_STEPS):
        logits = model(tokens, make_causal_mask(step))[:, -1]
        words = tf.argmax(logits, axis=-1, output_type=tf.int32)
        is_target = test_texts[:, step] >= len(SOURCE_WORDS)
        new = tf.where(is_target, words, test_texts[:, step])
        tokens = tf.concat([tokens, new[:, tf.newaxis]], axis=1)
    return mean(tf.reduce_all(tokens == test_texts, axis=1))


num_words = len(SOURCE_WORDS) + len(TARGET_WORDS)
models = fit(lambda: Stack(num_words, num_words), next_word_loss, 300, lr=0.01)
one_stack = [right_texts(model) for model in models]

# %% decoder-only-shown
d2l.print_ranges({"one stack": one_stack}, digits=3)


# %% deep
def initialize(model, has_small_branches):
    """Draw matrices that keep a row's size; make what is added to it small, if asked."""
    for weight in model.trainable_weights:
        if weight.name == "kernel":  # Keras' biases are zero at first
            num_inputs = weight.shape[0]
            normal = tf.random.normal(weight.shape, stddev=1 / math.sqrt(num_inputs))
            weight.assign(normal)
    if has_small_branches:
        factor = 1 / math.sqrt(2 * len(model.blocks))
        for block in model.blocks:
            for layer in [block.attention.W_o, block.network.dense2]:
                layer.kernel.assign(factor * layer.kernel)


def make_deep(num_blocks, norm_first, has_small_branches):
    num_words = len(TARGET_WORDS)
    model = Stack(num_words, num_words, 16, 4, num_blocks, norm_first=norm_first)
    language_loss(model, targets[:1])  # creates the weights
    initialize(model, has_small_branches)
    return model


def language_loss(model, targets):
    """Return the loss on the next word of translations, without what they translate."""
    logits = model(shift(targets), make_causal_mask(NUM_STEPS))
    return word_loss(logits, targets)


# %% measure-depth
def measure_depth(model):
    """Return, by block, the size of rows, how words differ, and a gradient's size."""
    tokens = answers[:64]
    sizes = []
    spreads = []
    for X in model.read(shift(tokens), make_causal_mask(NUM_STEPS)):
        size = tf.sqrt(tf.reduce_mean(tf.square(X)))
        words = X[tokens != PAD]
        variances = tf.math.reduce_variance(words, axis=0)
        sizes.append(float(size))
        spreads.append(float(tf.sqrt(tf.reduce_mean(variances)) / size))

    matrices = [block.attention.W_q.kernel for block in model.blocks]
    with tf.GradientTape() as tape:
        loss = language_loss(model, tokens)
    gradients = [float(tf.norm(dW)) for dW in tape.gradient(loss, matrices)]
    return sizes, spreads, gradients


# norm first?, small branches?
STACKS = [(False, False), (False, True), (True, False), (True, True)]

at_start = []
for kind in STACKS:
    keras.utils.set_random_seed(0)
    at_start.append(measure_depth(make_deep(32, *kind)))

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
def deep_loss(model):
    batch = tf.random.uniform((32,), maxval=len(targets), dtype=tf.int32)
    return language_loss(model, tf.gather(targets, batch))


deep_losses = []
after_training = []
for kind in STACKS:
    models = fit(lambda kind=kind: make_deep(16, *kind), deep_loss, 60, lr=0.005)
    deep_losses.append([float(language_loss(model, answers)) for model in models])
    after_training.append(measure_depth(models[-1]))

# %% deep-losses-shown tags=["tolerance:absolute=1"]
names = ["norm after", "norm after, small", "norm first", "norm first, small"]
counts = tf.math.bincount(answers[answers != PAD], dtype=tf.float32)
shares = counts[counts > 0] / tf.reduce_sum(counts)
entropy = -tf.reduce_sum(shares * tf.math.log(shares))
print(f"from how frequent words are: {entropy:.2f}")
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
tokens = shift(answers).numpy()
tokens[:, 1] = [is_wrong[token] for token in tokens[:, 1]]
after_wrong = []
for model in translators:
    logits = model(held_out, tf.constant(tokens))
    nouns = tf.argmax(logits[:, 1], axis=-1, output_type=tf.int32)
    agrees = [
        TARGET_WORDS[noun][-1] == TARGET_WORDS[article][-1]
        for noun, article in zip(nouns, tokens[:, 1], strict=True)
    ]
    after_wrong.append([mean(nouns == answers[:, 1]), mean(agrees)])

# %% solution-wrong-article-shown tags=["tolerance:absolute=0.6"]
d2l.print_ranges({"first noun": after_wrong}, ["right", "agrees with the article"])


# %% solution-no-mask
class SeesAll(Translator):
    """Wrong: in training, a decoder that sees the words it has to say."""

    def call(self, source, tokens):
        memory, memory_mask = self.encode(source)
        X = self.embed(self.target_embedding, tokens)
        mask = tf.fill((NUM_STEPS, NUM_STEPS), True)
        X = self.decoder(X, mask, memory, memory_mask)
        return self.logits(self.decoder_norm(X))


models = fit(SeesAll, translation_loss, num_steps=300, lr=0.01, seeds=[0])
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
