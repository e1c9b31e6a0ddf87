# The lesson's PyTorch code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import random

import torch
from torch import nn
from torch.nn import functional as F

from d2l_compat import torch as d2l

_ = torch.manual_seed(0)


# %% block-by-hand
def print_words(name, rows):
    print(name)
    for word, row in zip(["old", "dog"], rows, strict=True):
        print(f"   {word}  ({', '.join(f'{x:g}' for x in row)})")


X = torch.tensor([[4.0, 0], [0, 2]])
weights = torch.tensor([[0.5, 0.5], [0.5, 0.5]])  # each looks at both alike
X = X + weights @ X
print_words("after attention:", X)

# %% network-by-hand
W_1 = torch.tensor([[1.0, -1, 1], [-1, 1, 1]])
b_1 = torch.tensor([0.0, 0, -4])
W_2 = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
hidden = F.relu(X @ W_1 + b_1)
print_words("hidden:", hidden)
print_words("network:", hidden @ W_2)
print_words("after the network:", X + hidden @ W_2)


# %% norms-by-hand
def layer_norm(x):
    """Subtract the mean, and divide by the standard deviation."""
    return (x - x.mean()) / x.std(correction=0)


def rms_norm(x):
    """Divide by the root of the mean of the squares."""
    return x / x.square().mean().sqrt()


x = torch.tensor([1.0, 2, 6])
for norm in [layer_norm, rms_norm]:
    for factor in [1, 10]:
        y = " ".join(f"{number:5.2f}" for number in norm(factor * x))
        print(f"{norm.__name__:<10} {factor:>2} * (1, 2, 6): {y}")

# %% activations
x = torch.arange(-4, 4.01, 0.1)
d2l.plot(
    x,
    [F.relu(x), F.gelu(x), F.silu(x)],
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
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys = keys
        self.values = values
        self.length = keys.shape[2]
        return keys, values


class MultiHeadAttention(nn.Module):
    """Let the rows of X attend to those of memory, where a mask is True."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.scale = 1 / math.sqrt(num_hiddens // num_heads)
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def split(self, X):
        """Reshape (batch, words, features) to (batch, heads, words, head_size)."""
        return X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, X, memory, mask, cache=None):
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(memory))
        v = self.split(self.W_v(memory))
        if cache is not None:
            k, v = cache.append(k, v)
        scores = self.scale * (q @ k.mT)
        scores = scores.masked_fill(~mask, -math.inf)
        self.attention_weights = scores.softmax(dim=-1)
        Y = self.attention_weights @ v
        return self.W_o(Y.transpose(1, 2).flatten(2))


# %% networks
class FeedForward(nn.Module):
    """Two matrices with GELU in between, applied to each word by itself."""

    activation = staticmethod(F.gelu)

    def __init__(self, num_hiddens):
        super().__init__()
        self.dense1 = nn.Linear(num_hiddens, 4 * num_hiddens)
        self.dense2 = nn.Linear(4 * num_hiddens, num_hiddens)

    def forward(self, X):
        return self.dense2(self.activation(self.dense1(X)))


class SwiGLU(nn.Module):
    """A network whose hidden numbers are multiplied by gates."""

    def __init__(self, num_hiddens):
        super().__init__()
        num_hidden = 8 * num_hiddens // 3
        self.gate = nn.Linear(num_hiddens, num_hidden, bias=False)
        self.dense1 = nn.Linear(num_hiddens, num_hidden, bias=False)
        self.dense2 = nn.Linear(num_hidden, num_hiddens, bias=False)

    def forward(self, X):
        return self.dense2(F.silu(self.gate(X)) * self.dense1(X))


# %% transformer-block
class TransformerBlock(nn.Module):
    """Attention and a network, each of which adds to what it was given."""

    def __init__(
        self,
        num_hiddens,
        num_heads,
        reads_memory=False,  # a decoder's block also attends to an encoder's output
        norm_first=True,
        norm=nn.LayerNorm,
        network=FeedForward,
        attention=MultiHeadAttention,
        has_residual=True,
        dropout=0.0,
    ):
        super().__init__()
        self.norm_first = norm_first
        self.has_residual = has_residual
        self.norm1 = norm(num_hiddens)
        self.attention = attention(num_hiddens, num_heads)
        if reads_memory:
            self.norm2 = norm(num_hiddens)
            self.cross_attention = attention(num_hiddens, num_heads)
        self.norm3 = norm(num_hiddens)
        self.network = network(num_hiddens)
        self.dropout = nn.Dropout(dropout)

    def add(self, X, norm, layer):
        """Add what a layer makes of X; normalize its input, or the sum."""
        old = X if self.has_residual else 0
        if self.norm_first:
            return old + self.dropout(layer(norm(X)))
        return norm(old + self.dropout(layer(X)))

    def forward(self, X, mask, memory=None, memory_mask=None, cache=None):
        X = self.add(X, self.norm1, lambda X: self.attention(X, X, mask, cache))
        if memory is not None:
            X = self.add(
                X,
                self.norm2,
                lambda X: self.cross_attention(X, memory, memory_mask),
            )
        return self.add(X, self.norm3, self.network)


# %% block-same
class ReluNetwork(FeedForward):
    activation = staticmethod(F.relu)


def print_difference(name, a, b):
    print(f"{name}: max |a - b| = {(a - b).abs().max():.5f}")


torch.manual_seed(0)
block = TransformerBlock(32, 4, norm_first=False, network=ReluNetwork)
layer = d2l.TransformerEncoderBlock(32, 128, 4, dropout=0.0)
layer.attention.load_state_dict(block.attention.state_dict())
layer.addnorm1.ln.load_state_dict(block.norm1.state_dict())
layer.ffn.load_state_dict(block.network.state_dict())
layer.addnorm2.ln.load_state_dict(block.norm3.state_dict())

X = torch.randn(2, 6, 32)
valid_lens = torch.tensor([6, 4])
mask = (torch.arange(6) < valid_lens[:, None])[:, None, None]
with torch.no_grad():
    print_difference("d2l", block(X, mask), layer(X, valid_lens))


# %% block-same-framework
def copy_block(block, layer):
    """Copy a block's parameters into an encoder layer of PyTorch."""
    attention = block.attention
    W_qkv = [attention.W_q.weight, attention.W_k.weight, attention.W_v.weight]
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat(W_qkv))
        layer.self_attn.in_proj_bias.zero_()
        layer.self_attn.out_proj.bias.zero_()
    layer.self_attn.out_proj.weight = attention.W_o.weight
    layer.norm1 = block.norm1
    layer.linear1 = block.network.dense1
    layer.linear2 = block.network.dense2
    layer.norm2 = block.norm3


for norm_first in [False, True]:
    block = TransformerBlock(32, 4, norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(
        32, 4, 128, 0.0, "gelu", batch_first=True, norm_first=norm_first
    )
    copy_block(block, layer)
    padding = torch.arange(6) >= valid_lens[:, None]  # here True means: do not look
    with torch.no_grad():
        outputs = layer(X, src_key_padding_mask=padding)
        is_word = ~padding  # outputs at padding do not matter
        print_difference(
            f"norm_first={norm_first}", block(X, mask)[is_word], outputs[is_word]
        )


# %% parameters
def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


d = 48
sizes = {
    "MultiHeadAttention": (MultiHeadAttention(d, 4), 4 * d**2),
    "FeedForward": (FeedForward(d), 8 * d**2 + 5 * d),
    "SwiGLU": (SwiGLU(d), 8 * d**2),
    "LayerNorm": (nn.LayerNorm(d), 2 * d),
    "RMSNorm": (nn.RMSNorm(d), d),
    "TransformerBlock": (TransformerBlock(d, 4), 12 * d**2 + 9 * d),
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
    return torch.tensor([row + [PAD] * (NUM_STEPS - len(row)) for row in rows])


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


def make_causal_mask(num_steps, num_before=0):
    """Return that words see themselves and those before them, also those in a cache."""
    positions = torch.arange(num_before, num_before + num_steps)
    return torch.arange(num_before + num_steps) <= positions[:, None]


# %% teacher-forcing
def shift(targets):
    """Return what a decoder reads: a start, and all words but the last."""
    starts = torch.full_like(targets[:, :1], START)
    return torch.cat([starts, targets[:, :-1]], dim=1)


def name_words(tokens, words):
    return [words[token] if token != PAD else "-" for token in tokens]


source_names = name_words(held_out[0], SOURCE_WORDS)
input_names = name_words(shift(answers)[0], TARGET_WORDS)
answer_names = name_words(answers[0], TARGET_WORDS)
print(f"{'reads':<12}should say")
for word, answer in zip(input_names, answer_names, strict=True):
    print(f"{word:<12}{answer}")

# %% masks-drawn
padding_mask = make_padding_mask(held_out[:1])[0, 0]
masks = {
    ("Read", "Reading"): (padding_mask.expand(10, 10), source_names, source_names),
    ("Written", "Writing"): (make_causal_mask(10), input_names, input_names),
    ("Read", "Writing"): (padding_mask.expand(10, 10), source_names, input_names),
}
for (xlabel, ylabel), (mask, columns, rows) in masks.items():
    d2l.show_heatmaps(
        mask.float()[None, None],
        xlabel=xlabel,
        ylabel=ylabel,
        figsize=(7, 5.6),
        cmap="Blues",
        xticklabels=columns,
        yticklabels=rows,
    )


# %% translator
class Translator(nn.Module):
    """A block that reads a sentence, and a block that writes its translation."""

    def __init__(
        self,
        num_hiddens=32,
        num_heads=4,
        has_positions=True,
        norm=nn.LayerNorm,
        **options,
    ):
        super().__init__()
        self.has_positions = has_positions
        self.source_embedding = nn.Embedding(len(SOURCE_WORDS), num_hiddens)
        self.target_embedding = nn.Embedding(len(TARGET_WORDS), num_hiddens)
        self.position = nn.Embedding(NUM_STEPS, num_hiddens)
        self.encoder = TransformerBlock(num_hiddens, num_heads, norm=norm, **options)
        self.encoder_norm = norm(num_hiddens)
        self.decoder = TransformerBlock(
            num_hiddens, num_heads, reads_memory=True, norm=norm, **options
        )
        self.decoder_norm = norm(num_hiddens)
        self.output = nn.Linear(num_hiddens, len(TARGET_WORDS))

    def embed(self, embedding, tokens, start=0):
        """Return vectors of words, to which those of their positions are added."""
        X = embedding(tokens)
        if self.has_positions:
            X = X + self.position.weight[start : start + tokens.shape[1]]
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
        X = self.decoder(X, mask, memory, memory_mask, cache)
        return self.output(self.decoder_norm(X))

    def forward(self, source, tokens):
        return self.decode(tokens, *self.encode(source))


# %% fit
def fit(model, compute_loss, num_steps, lr):
    """Train a model by Adam, whose rate falls to a fiftieth; return it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=1, end_factor=0.02, total_iters=num_steps
    )
    for _ in range(num_steps):
        loss = compute_loss(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


# %% train
def word_loss(logits, targets):
    """Return the mean loss over words; padding does not count."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)


def translation_loss(model):
    """Return the loss on 32 training sentences."""
    batch = torch.randint(len(sources), (32,))
    source, target = sources[batch], targets[batch]
    return word_loss(model(source, shift(target)), target)


def train_translators(**options):
    """Train a translator from each of five seeds."""
    models = []
    for seed in range(5):
        torch.manual_seed(seed)
        model = Translator(**options)
        models.append(fit(model, translation_loss, num_steps=300, lr=0.01))
    return models


translators = train_translators()


# %% translate
def translate(model, source, uses_cache=True):
    """Write the most probable word each time; return the words, and all logits."""
    memory, mask = model.encode(source)
    tokens = torch.full((len(source), 1), START)
    cache = KVCache() if uses_cache else None
    steps = []
    for _ in range(NUM_STEPS):
        new = tokens[:, -1:] if uses_cache else tokens
        logits = model.decode(new, memory, mask, cache)[:, -1]
        steps.append(logits)
        tokens = torch.cat([tokens, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return tokens[:, 1:], torch.stack(steps, dim=1)


def right_share(model, source, target):
    """Return the share of sentences all of whose words are right."""
    with torch.no_grad():
        tokens, _ = translate(model, source)
    is_right = (tokens == target) | (target == PAD)  # after the full stop all is right
    return is_right.all(dim=1).float().mean().item()


# %% translated
with torch.no_grad():
    tokens, _ = translate(translators[0], held_out[:3])
for (source, _, _), translation in zip(test_pairs, tokens.tolist(), strict=False):
    words = [TARGET_WORDS[token] for token in translation]
    print(" ".join(source))
    print("  ", " ".join(words[: words.index(".") + 1]))

# %% right-shown
shares = [right_share(model, held_out, answers) for model in translators]
print("right translations:", " ".join(f"{share:.3f}" for share in shares))

# %% cache-same
with torch.no_grad():
    tokens, logits = translate(translators[0], held_out[:100])
    same_tokens, same_logits = translate(
        translators[0], held_out[:100], uses_cache=False
    )
print("same words:", bool((tokens == same_tokens).all()))
print_difference("logits", logits, same_logits)

# %% attention-map
model = translators[0]
with torch.no_grad():
    model(held_out[:1], shift(answers[:1]))
source, target, origins = test_pairs[0]
weights = model.decoder.cross_attention.attention_weights[0]  # (heads, 10, 10)
largest = weights.amax(dim=0)[: len(target), : len(source)]
d2l.show_heatmaps(
    largest[None, None],
    xlabel="Read",
    ylabel="Writing",
    figsize=(6.4, 5),
    cmap="Blues",
    xticklabels=source,
    yticklabels=target,
    marks=torch.tensor(origins)[:, None] == torch.arange(len(source)),
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
    with torch.no_grad():
        model(held_out, shift(answers))
    largest = model.decoder.cross_attention.attention_weights.amax(dim=1)
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
class NoNorm(nn.Identity):
    """Leave a row as it is."""


class NoNetwork(nn.Module):
    """Add nothing."""

    def __init__(self, num_hiddens):
        super().__init__()

    def forward(self, X):
        return torch.zeros_like(X)


class UnscaledAttention(MultiHeadAttention):
    """Take the products of queries and keys as they are."""

    def __init__(self, num_hiddens, num_heads):
        super().__init__(num_hiddens, num_heads)
        self.scale = 1


def report(models):
    """Return for each model the share of right translations and the loss."""
    rows = []
    for model in models:
        with torch.no_grad():
            loss = word_loss(model(held_out, shift(answers)), answers)
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
        self.embedding = nn.Embedding(num_words, num_hiddens)
        self.position = nn.Embedding(2 * NUM_STEPS, num_hiddens)
        self.blocks = nn.ModuleList(
            TransformerBlock(num_hiddens, num_heads, **options)
            for _ in range(num_blocks)
        )
        self.norm = nn.LayerNorm(num_hiddens)
        self.output = nn.Linear(num_hiddens, num_outputs)

    def forward(self, tokens, mask):
        X = self.embedding(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            X = block(X, mask)
        return self.output(self.norm(X))


# %% encoder-only
ENDINGS = ["", "o", "a", "i", "e"]


def name_endings(target, origins):
    """Return the ending of each word that was read; verb and full stop have none."""
    endings = [PAD] * NUM_STEPS
    for word, origin in zip(target, origins, strict=True):
        if word[-1] in ENDINGS:
            endings[origin] = ENDINGS.index(word[-1])
    return endings


endings = torch.tensor([name_endings(*pair[1:]) for pair in train_pairs])
test_endings = torch.tensor([name_endings(*pair[1:]) for pair in test_pairs])


def make_tagger_mask(tokens, is_causal):
    mask = make_padding_mask(tokens)
    return mask & make_causal_mask(tokens.shape[1]) if is_causal else mask


def train_tagger(is_causal):
    """Train a stack to name the ending that each word gets in the translation."""

    def compute_loss(model):
        batch = torch.randint(len(sources), (32,))
        mask = make_tagger_mask(sources[batch], is_causal)
        return word_loss(model(sources[batch], mask), endings[batch])

    return fit(Stack(len(SOURCE_WORDS), len(ENDINGS)), compute_loss, 100, lr=0.01)


def right_endings(model, is_causal):
    with torch.no_grad():
        logits = model(held_out, make_tagger_mask(held_out, is_causal))
    is_right = (logits.argmax(dim=-1) == test_endings)[test_endings != PAD]
    return is_right.float().mean().item()


tagged = []
for is_causal in [False, True]:
    tagged.append([])
    for seed in range(5):
        torch.manual_seed(seed)
        tagged[-1].append(right_endings(train_tagger(is_causal), is_causal))

# %% encoder-only-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges(dict(zip(["no mask", "causal"], tagged, strict=True)))


# %% decoder-only
def join(sources, targets):
    """Write each sentence and its translation as one text, without padding between."""
    joined = torch.zeros(len(sources), 2 * NUM_STEPS, dtype=torch.long)
    for row, source, target in zip(joined, sources, targets, strict=True):
        source = source[source != PAD]
        target = target[target != PAD] + len(SOURCE_WORDS)
        row[: len(source)] = source
        row[len(source) : len(source) + len(target)] = target
    return joined


texts = join(sources, targets)
test_texts = join(held_out, answers)


def next_word_loss(model):
    """Return the loss on the words of 32 translations."""
    batch = texts[torch.randint(len(texts), (32,))]
    logits = model(batch[:, :-1], make_causal_mask(2 * NUM_STEPS - 1))
    is_target = batch[:, 1:] >= len(SOURCE_WORDS)
    return word_loss(logits, batch[:, 1:] * is_target)


def right_texts(model):
    """Return the share of right translations; each is written after its sentence."""
    tokens = torch.where(test_texts < len(SOURCE_WORDS), test_texts, PAD)
    for step in range(1, 2 * NUM_STEPS):
        with torch.no_grad():
            logits = model(tokens[:, :step], make_causal_mask(step))[:, -1]
        is_target = test_texts[:, step] >= len(SOURCE_WORDS)
        tokens[:, step] = torch.where(
            is_target, logits.argmax(dim=-1), test_texts[:, step]
        )
    return (tokens == test_texts).all(dim=1).float().mean().item()


one_stack = []
num_words = len(SOURCE_WORDS) + len(TARGET_WORDS)
for seed in range(5):
    torch.manual_seed(seed)
    model = fit(Stack(num_words, num_words), next_word_loss, 300, lr=0.01)
    one_stack.append(right_texts(model))

# %% decoder-only-shown
d2l.print_ranges({"one stack": one_stack}, digits=3)


# %% deep
def initialize(model, has_small_branches):
    """Draw matrices that keep a row's size; make what is added to it small, if asked."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    if has_small_branches:
        factor = 1 / math.sqrt(2 * len(model.blocks))
        with torch.no_grad():
            for block in model.blocks:
                block.attention.W_o.weight *= factor
                block.network.dense2.weight *= factor


def make_deep(num_blocks, norm_first, has_small_branches, seed):
    torch.manual_seed(seed)
    num_words = len(TARGET_WORDS)
    model = Stack(num_words, num_words, 16, 4, num_blocks, norm_first=norm_first)
    initialize(model, has_small_branches)
    return model


def language_loss(model, targets):
    """Return the loss on the next word of translations, without what they translate."""
    logits = model(shift(targets), make_causal_mask(NUM_STEPS))
    return word_loss(logits, targets)


# %% measure-depth
def measure_depth(model):
    """Return, by block, the size of rows, how words differ, and a gradient's size."""
    rows = []
    hooks = [
        block.register_forward_hook(lambda _, __, output: rows.append(output))
        for block in model.blocks
    ]
    model.zero_grad()
    language_loss(model, answers[:64]).backward()
    for hook in hooks:
        hook.remove()
    sizes = [X.square().mean().sqrt().item() for X in rows]
    spreads = []
    for X, size in zip(rows, sizes, strict=True):
        words = X[answers[:64] != PAD]
        spreads.append(
            ((words - words.mean(dim=0)).square().mean().sqrt() / size).item()
        )
    gradients = [
        block.attention.W_q.weight.grad.norm().item() for block in model.blocks
    ]
    return sizes, spreads, gradients


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
    deep_losses.append([])
    for seed in range(5):
        model = make_deep(16, *kind, seed)
        fit(
            model,
            lambda model: language_loss(model, targets[torch.randint(10000, (32,))]),
            num_steps=60,
            lr=0.005,
        )
        with torch.no_grad():
            deep_losses[-1].append(language_loss(model, answers).item())
    after_training.append(measure_depth(model))

# %% deep-losses-shown tags=["tolerance:absolute=1"]
names = ["norm after", "norm after, small", "norm first", "norm first, small"]
counts = answers[answers != PAD].bincount().float()
shares = counts[counts > 0] / counts.sum()
print(f"from how frequent words are: {-(shares * shares.log()).sum():.2f}")
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
tokens = shift(answers)
tokens[:, 1] = torch.tensor([is_wrong[token] for token in tokens[:, 1].tolist()])
after_wrong = []
for model in translators:
    with torch.no_grad():
        nouns = model(held_out, tokens)[:, 1].argmax(dim=-1)
    is_right = nouns == answers[:, 1]
    agrees = [
        TARGET_WORDS[noun][-1] == TARGET_WORDS[article][-1]
        for noun, article in zip(nouns.tolist(), tokens[:, 1].tolist(), strict=True)
    ]
    after_wrong.append([is_right.float().mean().item(), sum(agrees) / len(agrees)])

# %% solution-wrong-article-shown tags=["tolerance:absolute=0.6"]
d2l.print_ranges({"first noun": after_wrong}, ["right", "agrees with the article"])


# %% solution-no-mask
class SeesAll(Translator):
    """Wrong: in training, a decoder that sees the words it has to say."""

    def forward(self, source, tokens):
        memory, memory_mask = self.encode(source)
        X = self.embed(self.target_embedding, tokens)
        mask = torch.ones(NUM_STEPS, NUM_STEPS, dtype=torch.bool)
        X = self.decoder(X, mask, memory, memory_mask)
        return self.output(self.decoder_norm(X))


torch.manual_seed(0)
model = fit(SeesAll(), translation_loss, num_steps=300, lr=0.01)
[[share, loss]] = report([model])

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
