# The lesson's PyTorch code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import random
import re
import time

import torch
from torch import nn
from torch.nn import functional as F

from d2l_compat import torch as d2l

_ = torch.manual_seed(0)


# %% causal-attention
def causal_attention(X):
    """Let each row attend to itself and the rows before it, as query, key and value."""
    n, d = X.shape
    scores = X @ X.T / math.sqrt(d)
    is_later = torch.arange(n) > torch.arange(n)[:, None]
    weights = scores.masked_fill(is_later, -math.inf).softmax(dim=-1)
    return weights @ X


# %% one-more-token
X = torch.tensor([[2.0, 0], [0, 1], [1, 2], [2, 1]])

for n in [3, 4]:
    print(f"{n} tokens")
    for x, y in causal_attention(X[:n]):
        print(f"   ({x:.2f}, {y:.2f})")

# %% last-row
keys = X[:3]  # kept from before, and so are the values
values = X[:3]
new = X[3]  # all that is new
keys = torch.cat([keys, new[None]])
values = torch.cat([values, new[None]])
weights = (keys @ new / math.sqrt(2)).softmax(dim=0)
x, y = weights @ values
print(f"weights {' '.join(f'{weight:.2f}' for weight in weights)}")
print(f"result  ({x:.2f}, {y:.2f})")


# %% cache
class KVCache:
    """Keys and values of a batch of texts, in arrays that are allocated once."""

    def __init__(self, batch_size, num_heads, max_len, head_size):
        self.keys = torch.zeros(batch_size, num_heads, max_len, head_size)
        self.values = torch.zeros(batch_size, num_heads, max_len, head_size)
        self.length = 0

    def append(self, keys, values):
        """Add the keys and values of new tokens; return those of all tokens."""
        end = self.length + keys.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError("the cache is full")
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]


# %% rotate
def rotate(X, positions):
    """Turn each pair of neighbouring numbers by its position (RoPE)."""
    d = X.shape[-1]
    omega = 10000 ** (-torch.arange(0, d, 2) / d)
    angles = positions[:, None] * omega
    cos, sin = angles.cos(), angles.sin()
    x, y = X[..., ::2], X[..., 1::2]
    return torch.stack([x * cos - y * sin, x * sin + y * cos], dim=-1).flatten(-2)


# %% causal-self-attention
class CausalSelfAttention(nn.Module):
    """Each token attends to itself and to what came before it."""

    def __init__(self, num_hiddens, num_heads, num_kv_heads=None):
        super().__init__()
        self.head_size = num_hiddens // num_heads
        self.num_kv_heads = num_kv_heads or num_heads
        kv_size = self.num_kv_heads * self.head_size
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, kv_size, bias=False)
        self.W_v = nn.Linear(num_hiddens, kv_size, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def split(self, X):
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size)."""
        return X.unflatten(-1, (-1, self.head_size)).transpose(1, 2)

    def forward(self, X, cache=None):
        start = cache.length if cache else 0
        positions = torch.arange(start, start + X.shape[1])
        q = rotate(self.split(self.W_q(X)), positions)
        k = rotate(self.split(self.W_k(X)), positions)
        v = self.split(self.W_v(X))
        if cache:
            k, v = cache.append(k, v)
        is_visible = torch.arange(k.shape[2]) <= positions[:, None]
        Y = F.scaled_dot_product_attention(q, k, v, attn_mask=is_visible, enable_gqa=True)
        return self.W_o(Y.transpose(1, 2).flatten(2))


# %% chunks
torch.manual_seed(0)
attention = CausalSelfAttention(32, 4)
X = torch.randn(2, 12, 32)


def run_in_chunks(attention, X, size):
    """Return the outputs for texts that are read a few tokens at a time."""
    cache = KVCache(len(X), attention.num_kv_heads, X.shape[1], attention.head_size)
    outputs = [attention(chunk, cache) for chunk in X.split(size, dim=1)]
    return torch.cat(outputs, dim=1)


with torch.no_grad():
    whole = attention(X)
    for size in [1, 3, 12]:
        difference = (run_in_chunks(attention, X, size) - whole).abs().max()
        print(f"chunks of {size:>2}: largest difference {difference:.4f}")

# %% the-layer
layer = d2l.CausalSelfAttention(32, 4, rope=True)
layer.load_state_dict(attention.state_dict())
layer_cache = layer.make_cache(batch_size=2, max_len=12)
with torch.no_grad():
    first = layer(X[:, :5], cache=layer_cache)
    rest = layer(X[:, 5:], cache=layer_cache)
difference = (torch.cat([first, rest], dim=1) - whole).abs().max()
print(f"the layer: largest difference {difference:.4f}")


# %% forgotten-position
class ForgetsPositions(CausalSelfAttention):
    def forward(self, X, cache):
        positions = torch.arange(X.shape[1])  # wrong: each chunk starts from 0
        k = rotate(self.split(self.W_k(X)), positions)
        q = rotate(self.split(self.W_q(X)), positions)
        k, v = cache.append(k, self.split(self.W_v(X)))
        seen = cache.length - X.shape[1]
        is_visible = torch.arange(k.shape[2]) <= seen + positions[:, None]
        Y = F.scaled_dot_product_attention(q, k, v, attn_mask=is_visible)
        return self.W_o(Y.transpose(1, 2).flatten(2))


# %% forgotten-position-shown
forgetful = ForgetsPositions(32, 4)
forgetful.load_state_dict(attention.state_dict())
with torch.no_grad():
    for size in [12, 3, 1]:
        difference = (run_in_chunks(forgetful, X, size) - whole).abs().max()
        print(f"chunks of {size:>2}: largest difference {difference:.2f}")

# %% upper-left
zeros = torch.zeros(1, 2, 4)  # two queries, without content
keys = torch.zeros(1, 5, 4)
values = torch.eye(5)[None]  # so that the result shows the weights
weights = F.scaled_dot_product_attention(zeros, keys, values, is_causal=True)[0]
for row in weights:
    print(" ".join(f"{weight:.2f}" for weight in row))

# %% grammar
ADJECTIVES = "old young small big happy tired quiet kind".split()
NOUNS = "dog cat bird fox horse child farmer sailor singer nurse king cook".split()
PLURALS = (
    "dogs cats birds foxes horses children farmers sailors singers nurses kings cooks"
).split()
VERBS = "sleep run sing wait laugh see hear follow like help".split()
SINGULAR_VERBS = [verb + "s" for verb in VERBS]  # the dog sleeps, the dogs sleep


def make_phrase(rng):
    """Return a noun phrase, each word's probability, and whether it is plural."""
    words, probabilities = ["the"], [1]
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
        words += ["that", *clause, rng.choice(VERBS if clause_is_plural else SINGULAR_VERBS)]
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
rng = random.Random(1)
for word, probability in zip(*make_sentence(rng), strict=True):
    print(f"{word:>10}  {math.log(1 / probability):.2f}")

# %% corpus
VOCAB = [".", "the", "that", *ADJECTIVES, *NOUNS, *PLURALS, *VERBS, *SINGULAR_VERBS]
TOKENS = {word: token for token, word in enumerate(VOCAB)}


def make_corpus(num_texts, num_steps, seed):
    """Return texts of whole sentences after a full stop, and each word's surprise."""
    rng = random.Random(seed)
    texts, surprises = [], []
    for _ in range(num_texts):
        tokens, surprise = [TOKENS["."]], [0.0]
        while len(tokens) <= num_steps:
            words, probabilities = make_sentence(rng)
            tokens += [TOKENS[word] for word in words]
            surprise += [-math.log(probability) for probability in probabilities]
        texts.append(tokens[: num_steps + 1])
        surprises.append(surprise[: num_steps + 1])
    return torch.tensor(texts), torch.tensor(surprises)


train_texts, _ = make_corpus(4000, 24, seed=0)
test_texts, test_surprises = make_corpus(500, 24, seed=1)
best_loss = test_surprises[:, 1:].mean()
print(len(VOCAB), "words")
print(f"best possible loss: {best_loss:.3f}")


# %% language-model
class LanguageModel(nn.Module):
    """Two blocks of attention and a feed-forward network, before each a normalization."""

    def __init__(self, num_hiddens=16, num_heads=4, num_kv_heads=None):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCAB), num_hiddens)
        self.blocks = nn.ModuleList(TransformerBlock(num_hiddens, num_heads, num_kv_heads) for _ in range(2))
        self.norm = nn.RMSNorm(num_hiddens)
        self.output = nn.Linear(num_hiddens, len(VOCAB))

    def forward(self, tokens, caches=(None, None)):
        X = self.embedding(tokens)
        for block, cache in zip(self.blocks, caches, strict=True):
            X = block(X, cache)
        return self.output(self.norm(X))

    def make_caches(self, batch_size, max_len):
        """Return a cache for each block."""
        sizes = [(block.attention.num_kv_heads, block.attention.head_size) for block in self.blocks]
        return [KVCache(batch_size, heads, max_len, size) for heads, size in sizes]


class TransformerBlock(nn.Module):
    def __init__(self, num_hiddens, num_heads, num_kv_heads):
        super().__init__()
        self.norm1 = nn.RMSNorm(num_hiddens)
        self.attention = CausalSelfAttention(num_hiddens, num_heads, num_kv_heads)
        self.norm2 = nn.RMSNorm(num_hiddens)
        self.dense1 = nn.Linear(num_hiddens, 2 * num_hiddens)
        self.dense2 = nn.Linear(2 * num_hiddens, num_hiddens)

    def forward(self, X, cache=None):
        X = X + self.attention(self.norm1(X), cache)
        return X + self.dense2(F.gelu(self.dense1(self.norm2(X))))


# %% train
def fit(model, num_steps=200):
    """Train a model on 16 texts a step; return it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.1, num_steps)
    for _ in range(num_steps):
        texts = train_texts[torch.randint(len(train_texts), (16,))]
        logits = model(texts[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def measure_loss(model):
    """Return the mean loss on the test texts."""
    with torch.no_grad():
        logits = model(test_texts[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), test_texts[:, 1:].flatten()).item()


# %% train-all
models = []
for seed in range(5):
    torch.manual_seed(seed)
    models.append(fit(LanguageModel()))
losses = [[measure_loss(model)] for model in models]

# %% losses-shown tags=["tolerance:absolute=0.05"]
d2l.print_ranges({"five models": losses}, ["loss"])
print(f"best possible: {best_loss:.3f}")


# %% write
def write(model, prompt, num_tokens, choose):
    """Continue texts, tokens of shape (batch, steps), with a cache."""
    caches = model.make_caches(len(prompt), prompt.shape[1] + num_tokens)
    tokens = prompt
    new = prompt
    for _ in range(num_tokens):
        with torch.no_grad():
            logits = model(new, caches)[:, -1]
        new = choose(logits)
        tokens = torch.cat([tokens, new], dim=1)
    return tokens


def greedy(logits):
    return logits.argmax(dim=-1, keepdim=True)


def sample(logits):
    return logits.softmax(dim=-1).multinomial(1)


def to_text(tokens):
    return " ".join(VOCAB[token] for token in tokens)


# %% written
model = models[0]
start = torch.full((4, 1), TOKENS["."])
torch.manual_seed(0)
for tokens in write(model, start, 12, sample):
    print(to_text(tokens[1:]))


# %% same-as-recomputed
def write_slowly(model, tokens, num_tokens):
    """Continue texts greedily, and compute everything anew for each token."""
    all_logits = []
    for _ in range(num_tokens):
        with torch.no_grad():
            logits = model(tokens)[:, -1]
        all_logits.append(logits)
        tokens = torch.cat([tokens, greedy(logits)], dim=1)
    return tokens, torch.stack(all_logits, dim=1)


def read_logits(model, tokens, num_tokens):
    """Return the logits for the last tokens of texts, read one by one with a cache."""
    caches = model.make_caches(*tokens.shape)
    with torch.no_grad():
        logits = [model(token, caches) for token in tokens[:, :-1].split(1, dim=1)]
    return torch.cat(logits, dim=1)[:, -num_tokens:]


prompt = test_texts[:8, :6]
slow, slow_logits = write_slowly(model, prompt, 10)
fast = write(model, prompt, 10, greedy)
difference = (read_logits(model, slow, 10) - slow_logits).abs().max()
print("same tokens:", bool((slow == fast).all()))
print(f"logits: largest difference {difference:.4f}")

# %% d2l-generate
caches = model.make_caches(len(prompt), 16)
tokens = d2l.generate(lambda new, _: model(new, caches), prompt, 10, top_k=1)
print("same tokens:", tokens == fast[:, 6:].tolist())


# %% choices
def keep(probs, is_kept):
    """Set all other probabilities to zero; let the rest sum to one."""
    kept = probs * is_kept
    return kept / kept.sum(dim=-1, keepdim=True)


def with_temperature(probs, temperature):
    return (probs.log() / temperature).softmax(dim=-1)


def top_k(probs, k):
    """Keep the k most probable words."""
    return keep(probs, probs >= probs.topk(k).values[..., -1:])


def top_p(probs, p):
    """Keep the most probable words, until they have a share of p."""
    ordered, words = probs.sort(dim=-1, descending=True)
    share_before = ordered.cumsum(dim=-1) - ordered
    is_kept = torch.zeros_like(probs).scatter(-1, words, (share_before < p).float())
    return keep(probs, is_kept)


def min_p(probs, p):
    """Keep words with at least this fraction of the largest probability."""
    return keep(probs, probs >= p * probs.amax(dim=-1, keepdim=True))


# %% choices-shown tags=["tolerance:absolute=0.05"]
def predict(text):
    """Return the probabilities of the next word."""
    tokens = torch.tensor([[TOKENS[word] for word in text.split()]])
    with torch.no_grad():
        return model(tokens)[0, -1].softmax(dim=-1)


probs = predict(". the")
ways = {
    "as it is": lambda probs: probs,
    "temperature 2": lambda probs: with_temperature(probs, 2),
    "temperature 0.5": lambda probs: with_temperature(probs, 0.5),
    "top-k 10": lambda probs: top_k(probs, 10),
    "top-p 0.9": lambda probs: top_p(probs, 0.9),
    "min-p 0.1": lambda probs: min_p(probs, 0.1),
}
print("words with a probability above 0:")
for name, way in ways.items():
    print(f"{(way(probs) > 0).sum():>3}  {name}")

# %% choices-drawn tags=["tolerance:absolute=0.05"]
contexts = [". the", ". the dogs that the cat"]
d2l.plot(
    list(range(1, len(VOCAB) + 1)),
    [predict(text).sort(descending=True).values for text in contexts],
    "Words, the most probable first",
    "Probability",
    legend=["the ...", "the dogs that the cat ..."],
    yscale="log",
    figsize=(5, 3),
)


# %% is-sentence
KINDS = {".": ".", "the": "t", "that": "r"}  # a letter for each kind of word
WORDS_OF_KIND = {"a": ADJECTIVES, "n": NOUNS, "p": PLURALS, "s": SINGULAR_VERBS, "v": VERBS}
for kind, words in WORDS_OF_KIND.items():
    KINDS |= dict.fromkeys(words, kind)
CLAUSE = "(rta?(ns|pv))?"
SENTENCE = re.compile(rf"ta?(n{CLAUSE}s|p{CLAUSE}v)\.")


def is_sentence(words):
    """Return whether words are a sentence of the language, with its full stop."""
    kinds = "".join(KINDS[word] for word in words)
    return SENTENCE.fullmatch(kinds) is not None


# %% sentences-written
def share_of_sentences(model, change):
    """Write 200 texts from the start; return the share whose first sentence is right."""
    start = torch.full((200, 1), TOKENS["."])
    texts = write(model, start, 12, lambda logits: change(logits.softmax(-1)).multinomial(1))
    num_right = 0
    for tokens in texts[:, 1:].tolist():
        words = [VOCAB[token] for token in tokens]
        end = words.index(".") + 1 if "." in words else len(words)
        num_right += is_sentence(words[:end])
    return num_right / 200


torch.manual_seed(0)
shares = {name: [[share_of_sentences(m, way)] for m in models] for name, way in ways.items()}

# %% sentences-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges(shares, ["right"])


# %% operations
def count_operations(context, num_hiddens=16, num_layers=2):
    """Return the multiplications for one more token: its own work, and attention."""
    matrices = 4 * num_hiddens**2 + 4 * num_hiddens**2  # attention, feed-forward network
    attention = 2 * context * num_hiddens  # scores and averages
    return num_layers * matrices, num_layers * attention


print("context  with cache   recomputed   ratio")
for n in [1, 16, 256, 4096]:
    own, attention_cost = count_operations(n)
    cached = own + attention_cost
    recomputed = sum(sum(count_operations(i)) for i in range(1, n + 1))
    print(f"{n:>7}{cached:>12,}{recomputed:>13,}{recomputed / cached:>8.1f}")

# %% milliseconds tags=["nbval-ignore-output"]
big = LanguageModel(num_hiddens=128, num_heads=4)
texts = torch.randint(len(VOCAB), (1, 1024))


def measure(function, repetitions=5):
    """Return the shortest time of several runs, in milliseconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


contexts = [16, 64, 256, 1024]
recomputed, cached = [], []
with torch.no_grad():
    for n in contexts:
        recomputed.append(measure(lambda: big(texts[:, :n])))
        caches = big.make_caches(1, n + 5)
        big(texts[:, :n], caches)
        cached.append(measure(lambda: big(texts[:, :1], caches)))
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

# %% padded
torch.manual_seed(0)
layer = d2l.CausalSelfAttention(32, 4, rope=True)
X = torch.randn(2, 9, 32)  # of the first text only 4 tokens, then padding
with torch.no_grad():
    layer_cache = layer.make_cache(batch_size=2, max_len=12)
    padded = layer(X, torch.tensor([4, 9]), layer_cache)
    print("tokens in the cache:", layer_cache.lengths.tolist())
    new = torch.randn(2, 1, 32)
    both = layer(new, cache=layer_cache)
    alone = layer(torch.cat([X[:1, :4], new[:1]], dim=1))[:, -1:]
print(f"as if alone: largest difference {(both[:1] - alone).abs().max():.4f}")

# %% not-hidden
with torch.no_grad():
    left = torch.cat([torch.zeros(1, 5, 32), X[:1, :4]], dim=1)  # padding, then the text
    ignored = layer(left)[:, -4:]
    alone = layer(X[:1, :4])
print(f"padding that is seen: largest difference {(ignored - alone).abs().max():.2f}")

# %% bytes
caches = model.make_caches(batch_size=1, max_len=1000)
nbytes = sum(cache.keys.nbytes + cache.values.nbytes for cache in caches)
print("our model, 1,000 tokens:", nbytes, "bytes")
print("2 x 2 layers x 4 heads x 4 numbers x 4 bytes x 1,000 =", 2 * 2 * 4 * 4 * 4 * 1000)


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
    print(f"{name:<14}{layers:>7}{heads:>7}{kv_heads:>11}{each:>8.0f} KB{shared:>8.0f} KB")

# %% which-head
torch.manual_seed(0)
queries = torch.randn(1, 8, 5, 4)
keys, values = torch.randn(2, 1, 2, 5, 4)
shared = F.scaled_dot_product_attention(queries, keys, values, enable_gqa=True)
repeated = F.scaled_dot_product_attention(
    queries, keys.repeat_interleave(4, dim=1), values.repeat_interleave(4, dim=1)
)
difference = (shared - repeated).abs().max()
print(f"each key head written four times: largest difference {difference:.4f}")


# %% seating
def draw_plans(count):
    """Draw seating plans for 16 guests: lists of guests and of their seats, (count, 16).

    Also draw a guest and a seat to ask for, (count, 1); the answers are the guest's
    seat, and who sits on the seat, (count,).
    """
    guests = torch.arange(16).expand(count, 16)
    seats = torch.rand(count, 16).argsort(dim=1)  # the seat of each guest
    occupants = seats.argsort(dim=1)  # the guest on each seat
    asked_guest, asked_seat = torch.randint(16, (2, count, 1))
    seat = seats.gather(1, asked_guest)[:, 0]
    guest = occupants.gather(1, asked_seat)[:, 0]
    return guests, seats, asked_guest, asked_seat, seat, guest


# %% usher
class Usher(nn.Module):
    """Four heads with one query each for both questions; heads share keys and values."""

    def __init__(self, num_kv_heads, head_size=4, num_hiddens=32):
        super().__init__()
        self.head_size = head_size
        self.guest = nn.Embedding(16, num_hiddens)
        self.seat = nn.Embedding(16, num_hiddens)
        self.W_q = nn.Linear(num_hiddens, 4 * head_size, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_kv_heads * head_size, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_kv_heads * head_size, bias=False)
        self.seat_output = nn.Linear(4 * head_size, 16)
        self.guest_output = nn.Linear(4 * head_size, 16)

    def split(self, X):
        return X.unflatten(-1, (-1, self.head_size)).transpose(1, 2)

    def forward(self, guests, seats, asked_guest, asked_seat):
        plan = self.guest(guests) + self.seat(seats)
        question = self.guest(asked_guest) + self.seat(asked_seat)
        q, k, v = self.split(self.W_q(question)), self.split(self.W_k(plan)), self.split(self.W_v(plan))
        Y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        Y = Y.transpose(1, 2).flatten(1)
        return self.seat_output(Y), self.guest_output(Y)


# %% train-ushers
def fit_usher(model):
    """Train a model on 64 plans a step; return it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        *inputs, seat, guest = draw_plans(64)
        seat_scores, guest_scores = model(*inputs)
        loss = F.cross_entropy(seat_scores, seat) + F.cross_entropy(guest_scores, guest)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


ushers = {}
for num_kv_heads in [4, 2, 1]:
    ushers[num_kv_heads] = []
    for seed in range(5):
        torch.manual_seed(seed)
        ushers[num_kv_heads].append(fit_usher(Usher(num_kv_heads)))

# %% ushers-asked
torch.manual_seed(100)
plans = draw_plans(1000)


def share_right(model):
    """Return the share of plans for which both answers are right."""
    *inputs, seat, guest = plans
    with torch.no_grad():
        seat_scores, guest_scores = model(*inputs)
    is_right = (seat_scores.argmax(dim=1) == seat) & (guest_scores.argmax(dim=1) == guest)
    return is_right.float().mean().item()


right = {
    f"{num_kv_heads} key heads": [[share_right(model)] for model in models]
    for num_kv_heads, models in ushers.items()
}

# %% ushers-shown tags=["tolerance:absolute=0.2"]
d2l.print_ranges(right, ["both right"])

# %% latent
class LatentAttention(nn.Module):
    """Multi-head latent attention (MLA): keys and values are made of one short vector."""

    def __init__(self, num_hiddens=32, num_heads=4, latent_size=8, rope_size=4):
        super().__init__()
        self.num_heads = num_heads
        self.head_size = num_hiddens // num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_q_rope = nn.Linear(num_hiddens, num_heads * rope_size, bias=False)
        self.W_latent = nn.Linear(num_hiddens, latent_size, bias=False)
        self.W_k_rope = nn.Linear(num_hiddens, rope_size, bias=False)
        self.W_k = nn.Linear(latent_size, num_hiddens, bias=False)
        self.W_v = nn.Linear(latent_size, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.scale = 1 / math.sqrt(self.head_size + rope_size)

    def split(self, X):
        return X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def to_cache(self, X):
        """Return all that has to be kept of tokens: a latent vector and a rotated key."""
        positions = torch.arange(X.shape[1])
        return self.W_latent(X), rotate(self.W_k_rope(X), positions)

    def weights(self, content, X, rotated_keys):
        """Return attention weights from the content's scores; positions add theirs."""
        positions = torch.arange(X.shape[1])
        q_rope = rotate(self.split(self.W_q_rope(X)), positions)
        scores = (content + q_rope @ rotated_keys[:, None].mT) * self.scale
        is_later = positions > positions[:, None]
        return scores.masked_fill(is_later, -math.inf).softmax(dim=-1)

    def forward(self, X):
        latents, rotated_keys = self.to_cache(X)
        q = self.split(self.W_q(X))
        k = self.split(self.W_k(latents))
        v = self.split(self.W_v(latents))
        Y = self.weights(q @ k.mT, X, rotated_keys) @ v
        return self.W_o(Y.transpose(1, 2).flatten(2))


# %% absorbed
class AbsorbedAttention(LatentAttention):
    """The same, without making keys and values: their matrices go to queries and outputs."""

    def forward(self, X):
        latents, rotated_keys = self.to_cache(X)
        W_k = self.W_k.weight.unflatten(0, (self.num_heads, -1))  # (heads, head_size, latent_size)
        W_v = self.W_v.weight.unflatten(0, (self.num_heads, -1))
        q = self.split(self.W_q(X)) @ W_k  # (batch, heads, steps, latent_size)
        latents = latents[:, None]  # one for all heads
        pooled = self.weights(q @ latents.mT, X, rotated_keys) @ latents
        Y = pooled @ W_v.mT
        return self.W_o(Y.transpose(1, 2).flatten(2))


# %% latent-compared
torch.manual_seed(0)
latent = LatentAttention()
absorbed = AbsorbedAttention()
absorbed.load_state_dict(latent.state_dict())
X = torch.randn(2, 10, 32)
with torch.no_grad():
    difference = (latent(X) - absorbed(X)).abs().max()
    kept = sum(x.shape[-1] for x in latent.to_cache(X))
print(f"largest difference {difference:.4f}")
print(f"numbers per token: {kept}; with a key and a value for each head: {2 * 32}")
print(f"DeepSeek-V2: {kilobytes(512 + 64, layers=60):.1f} KB per token")
print(f"with a key and a value for each head: {kilobytes(2 * 128 * 128, layers=60):.0f} KB")

# %% slots
window, num_sinks = 4, 1
slots = ["-"] * (num_sinks + window)
for position in range(12):
    slot = position
    if position >= num_sinks:
        slot = num_sinks + (position - num_sinks) % window
    slots[slot] = position
    if position in (0, 3, 4, 5, 11):
        print(f"after token {position:>2}:", *(f"{held:>2}" for held in slots))


# %% rolling
torch.manual_seed(0)
layer = d2l.CausalSelfAttention(32, 4, rope=True, window=4, num_sinks=1)
X = torch.randn(1, 30, 32)
layer_cache = layer.make_cache(batch_size=1, max_len=30)
with torch.no_grad():
    whole = layer(X)
    chunks = [layer(chunk, cache=layer_cache) for chunk in X.split([1, 3, 10, 16], dim=1)]
difference = (torch.cat(chunks, dim=1) - whole).abs().max()
print("slots:", layer_cache.keys.shape[2])
print(f"largest difference {difference:.4f}")

# %% lookups
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WINDOW = 16


def draw_lookups(count, num_entries):
    """Draw texts of letters with digits, and answers: a letter's digit, or 10 if it is new.

    In a text, a letter always has the same digit. It is new if it was not among the last
    16 entries. All have the shape (count, num_entries).
    """
    letters = torch.randint(26, (count, num_entries))
    digit_of_letter = torch.randint(10, (count, 26))
    digits = digit_of_letter.gather(1, letters)
    i = torch.arange(num_entries)
    distances = i[:, None] - i
    is_before = (distances > 0) & (distances <= WINDOW)
    is_same = letters[:, :, None] == letters[:, None, :]
    is_known = (is_same & is_before).any(dim=-1)
    return letters, digits, torch.where(is_known, digits, 10)


# %% recaller
class Recaller(nn.Module):
    """A head that looks for each entry's letter among the 16 entries before it."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter = nn.Embedding(26, num_hiddens)
        self.digit = nn.Embedding(10, num_hiddens)
        self.start = nn.Parameter(torch.randn(num_hiddens))  # a token before the first entry
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.output = nn.Linear(num_hiddens, 11)

    def forward(self, letters, digits, keeps_start=True, window=WINDOW):
        batch, n = letters.shape
        entries = self.letter(letters) + self.digit(digits)
        X = torch.cat([self.start.expand(batch, 1, -1), entries], dim=1)
        q, k, v = self.W_q(self.letter(letters)), self.W_k(X), self.W_v(X)
        i = torch.arange(1, n + 1)[:, None]
        j = torch.arange(n + 1)
        is_visible = (j < i) & (i - j <= window)
        if keeps_start:
            is_visible |= j == 0
        scores = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(~is_visible, -math.inf)
        self.attention_weights = self.softmax(scores)
        return self.output(self.attention_weights @ v)

    def softmax(self, scores):
        return scores.softmax(dim=-1)


# %% extra-zero
class ExtraZero(Recaller):
    """Without a start: one more score, always zero, takes the weight that is left."""

    def softmax(self, scores):
        scores = scores[..., 1:]  # hide the start
        weights = F.pad(scores, (1, 0)).softmax(dim=-1)
        return F.pad(weights[..., 1:], (1, 0))


# %% train-recallers
def fit_recaller(model):
    """Train a model on texts of 16 entries, 64 a step; return it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        letters, digits, answers = draw_lookups(64, 16)
        loss = F.cross_entropy(model(letters, digits).flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


recallers, without_start = [], []
for seed in range(5):
    torch.manual_seed(seed)
    recallers.append(fit_recaller(Recaller()))
    without_start.append(fit_recaller(ExtraZero()))

# %% recalled
torch.manual_seed(100)
lookups = draw_lookups(200, 64)


def recall_shares(model, keeps_start, window=WINDOW):
    """Return the shares of right answers after the window has filled: new letters, known ones."""
    letters, digits, answers = lookups
    with torch.no_grad():
        predictions = model(letters, digits, keeps_start, window).argmax(dim=-1)
    is_right = (predictions == answers)[:, WINDOW:]
    is_new = (answers == 10)[:, WINDOW:]
    return [is_right[is_new].float().mean().item(), is_right[~is_new].float().mean().item()]


recall = {
    "start kept": [recall_shares(model, True) for model in recallers],
    "start evicted": [recall_shares(model, False) for model in recallers],
    "extra zero": [recall_shares(model, False) for model in without_start],
}

# %% recalled-shown tags=["tolerance:absolute=0.2"]
d2l.print_ranges(recall, ["new letter", "known letter"])

# %% sink-map tags=["nbval-ignore-output"]
torch.manual_seed(3)
letters, digits, _ = draw_lookups(1, 16)
with torch.no_grad():
    recallers[0](letters, digits)
entries = [f"{LETTERS[letter]}{digit}" for letter, digit in zip(letters[0], digits[0], strict=True)]
d2l.show_heatmaps(
    recallers[0].attention_weights[:, None],
    xlabel="Entries before",
    ylabel="Entry",
    figsize=(5, 4),
    cmap="Blues",
    xticklabels=["start", *(entry[0] + "\n" + entry[1] for entry in entries)],
    yticklabels=entries,
)

# %% solution-rewind
prompt = test_texts[:1, :6]
caches = model.make_caches(1, 16)
with torch.no_grad():
    first = model(prompt, caches)
    endings = []
    for word in ["old", "cooks"]:
        for cache in caches:
            cache.length = prompt.shape[1]  # forget what came after the prompt
        endings.append(model(torch.tensor([[TOKENS[word]]]), caches)[:, -1])
    again = [
        model(torch.cat([prompt, torch.tensor([[TOKENS[word]]])], dim=1))[:, -1]
        for word in ["old", "cooks"]
    ]
difference = (torch.cat(endings) - torch.cat(again)).abs().max()
print(f"largest difference {difference:.4f}")


# %% solution-draft
def write_with_draft(model, draft, prompt, num_tokens, num_guesses=4):
    """Continue one text greedily; return its tokens, and how often the model was called."""
    caches = model.make_caches(1, prompt.shape[1] + num_tokens + num_guesses)
    tokens = prompt
    num_calls = 0
    while tokens.shape[1] < prompt.shape[1] + num_tokens:
        guesses, _ = write_slowly(draft, tokens, num_guesses)
        seen = caches[0].length
        with torch.no_grad():
            logits = model(guesses[:, seen:], caches)
        num_calls += 1
        # What the model itself would write after the last token, and after each guess.
        choices = greedy(logits)[:, tokens.shape[1] - 1 - seen :, 0]
        guessed = guesses[:, tokens.shape[1] :]
        is_right = (choices[:, :-1] == guessed).int().cumprod(dim=1)
        num_accepted = int(is_right.sum())
        tokens = torch.cat([tokens, choices[:, : num_accepted + 1]], dim=1)
        for cache in caches:
            cache.length = tokens.shape[1] - 1  # the last token has not been read yet
    return tokens[:, : prompt.shape[1] + num_tokens], num_calls


# %% solution-draft-shown
prompt = test_texts[:1, :1]
torch.manual_seed(0)
draft = fit(LanguageModel(num_hiddens=8))
tokens, num_calls = write_with_draft(model, draft, prompt, 24)
print("same tokens:", bool((tokens == write(model, prompt, 24, greedy)).all()))
print(f"24 tokens in {num_calls} calls")


# %% solution-half-window
half = [recall_shares(model, keeps_start=True, window=8) for model in recallers]

# %% solution-half-window-shown tags=["tolerance:absolute=0.1"]
d2l.print_ranges({"window of 8": half}, ["new letter", "known letter"])


# %% solution-quantized
class QuantizedCache(KVCache):
    """Keep each key and value as whole numbers from -127 to 127, and one scale."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.scales = [torch.ones(*x.shape[:3], 1) for x in (self.keys, self.values)]
        self.keys, self.values = self.keys.to(torch.int8), self.values.to(torch.int8)

    def append(self, keys, values):
        start = self.length
        end = start + keys.shape[2]
        for new, scale in zip((keys, values), self.scales, strict=True):
            scale[:, :, start:end] = new.abs().amax(dim=-1, keepdim=True) / 127
        k_scale, v_scale = (scale[:, :, start:end] for scale in self.scales)
        keys, values = super().append((keys / k_scale).round(), (values / v_scale).round())
        return keys * self.scales[0][:, :, :end], values * self.scales[1][:, :, :end]


# %% solution-quantized-shown
def loss_with_caches(model, cache_class):
    """Return the loss on test texts that are read through caches of this class."""
    caches = [
        cache_class(len(test_texts), block.attention.num_kv_heads, 24, block.attention.head_size)
        for block in model.blocks
    ]
    with torch.no_grad():
        logits = model(test_texts[:, :-1], caches)
    return F.cross_entropy(logits.flatten(0, 1), test_texts[:, 1:].flatten()).item()


for name, cache_class in [("float32", KVCache), ("int8", QuantizedCache)]:
    print(f"{name:>7}: loss {loss_with_caches(model, cache_class):.4f}")
