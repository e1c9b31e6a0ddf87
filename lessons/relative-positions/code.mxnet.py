# The lesson's MXNet code. Each cell is woven into the text where it is asked for
# by name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics

# First: with it MXNet, of before NumPy 2, can be imported on the NumPy of today. It
# also turns on MXNet's NumPy arrays, as npx.set_np() does.
from d2l_compat import mxnet as d2l

from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn
from mxnet.test_utils import set_default_context

set_default_context(d2l.cpu())  # all is small here; d2l.try_gpu() takes a GPU
npx.random.seed(0)
initializer = init.Xavier(magnitude=1)  # weights from -1/sqrt(d) to 1/sqrt(d)


# %% turn
def turn(vector, position):
    """A vector of two numbers, turned by 30 degrees for each position."""
    angle = math.radians(30 * position)
    (x, y), cos, sin = vector, math.cos(angle), math.sin(angle)
    return d2l.tensor([x * cos - y * sin, x * sin + y * cos])


def written(vector):
    return "(" + ", ".join(f"{x:5.2f}" for x in vector) + ")"


# %% turned-by-hand
query, key = d2l.tensor([1, 2]), d2l.tensor([2, 2])
pairs = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)  # where the two stand

print("positions  turned query     turned key      score")
for i, j in pairs:
    q, k = turn(query, i), turn(key, j)
    print(f"{i:>4}{j:>4}   {written(q)}  {written(k)}  {q @ k:5.2f}")

# %% four-terms
hand = d2l.tensor([1, 0])  # what is added: a hand, turned to its position

print("positions    q.k    q.p    p.k    p.p    sum")
for i, j in pairs:
    p_i, p_j = turn(hand, i), turn(hand, j)
    terms = query @ key, query @ p_j, p_i @ key, p_i @ p_j
    score = (query + p_i) @ (key + p_j)
    print(f"{i:>4}{j:>4} ", *(f"{term:6.2f}" for term in (*terms, score)))


# %% rotate
def frequencies(d, base=10000):
    """How far each pair turns from one position to the next, in radians."""
    return base ** (-np.arange(0, d, 2) / d)


def rotate(X, positions, frequencies):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = np.expand_dims(positions, 1) * frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    return d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).reshape(X.shape)


# %% spread
def spread(scores):
    """The most by which scores at one distance differ, over all distances."""
    n = len(scores)
    diagonals = (np.diagonal(scores, offset) for offset in range(1 - n, n))
    return max(diagonal.max() - diagonal.min() for diagonal in diagonals)


# %% rotary-check
npx.random.seed(0)
d, n = 8, 40
query, key = d2l.randn(2, d)
positions = np.arange(n)
q, k = (
    rotate(np.tile(each, (n, 1)), positions, frequencies(d)) for each in (query, key)
)
scores = q @ k.T
by_layer = d2l.RotaryEncoding(d)(np.tile(query, (1, n, 1)))[0]

print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"at one distance they differ by {spread(scores):.4f} at most")
longer = np.linalg.norm(q, axis=-1) - np.linalg.norm(query)
print(f"lengths change by {np.abs(longer).max():.4f} at most")
print(f"the layer: largest difference {np.abs(by_layer - q).max():.4f}")


# %% rotate-halves
def rotate_halves(X, positions, frequencies):
    """The same, but number l has number l + d/2 for a partner."""
    angles = np.expand_dims(positions, 1) * frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    x, y = np.split(X, 2, axis=-1)
    return d2l.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
npx.random.seed(0)
X, omega = d2l.randn(n, d), frequencies(d)
order = [0, 2, 4, 6, 1, 3, 5, 7]
neighbours = rotate(X, positions, omega)
halves = rotate_halves(X[:, order], positions, omega)
by_layer = d2l.RotaryEncoding(d, layout="halves")(X[None, :, order])[0]
apart = np.abs(neighbours[:, order] - halves).max()
print(f"reordered: largest difference {apart:.4f}")
print(f"the layer: largest difference {np.abs(by_layer - halves).max():.4f}")

# %% mixed
q_halves, k_halves = (
    rotate_halves(np.tile(each, (n, 1)), positions, omega) for each in (query, key)
)
print("at one distance, scores differ by")
print(f"{spread(q @ k.T):.4f}  with neighbours for both")
print(f"{spread(q_halves @ k_halves.T):.4f}  with halves for both")
print(f"{spread(q @ k_halves.T):.4f}  with one of each")

# %% slopes
slopes = d2l.alibi_slopes(8)
by_hand = [2.0 ** -(head + 1) for head in range(8)]
print("slopes:", *(f"1/{1 / slope:.0f}" for slope in slopes))
print(f"largest difference: {np.abs(slopes - d2l.tensor(by_hand)).max():.4f}")

# %% alibi-map
n, positions = 12, np.arange(12)
distances = np.expand_dims(positions, 1) - positions
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
attention.initialize(initializer)
nothing = d2l.zeros((1, n, 8))  # no content: all scores are zero
bias = -slopes[:, None, None] * distances
attention(nothing, nothing, nothing, causal=True, score_bias=bias)
weights = attention.attention_weights
print("last row, first head:", *(f"{weight:.3f}" for weight in weights[0, 0, -1, -4:]))
d2l.show_heatmaps(
    weights[:, [0, 2, 6]],
    xlabel="Keys",
    ylabel="Queries",
    titles=["Slope 1/2", "Slope 1/8", "Slope 1/128"],
    figsize=(7, 2.7),
    cmap="Blues",
)

# %% clipped
for i in range(6):
    print(*(f"{min(max(i - j, -3), 3):3}" for j in range(6)))


# %% bucket
def bucket(distance, count=8, far=16):
    """Near distances have buckets of their own, far ones share: ever wider ones."""
    near = count // 2
    if distance < near:
        return distance
    wider = (count - near) * math.log(distance / near) / math.log(far / near)
    return min(near + int(wider), count - 1)


print("distance:", *(f"{distance:>2}" for distance in range(1, 21)))
print("bucket:  ", *(f"{bucket(distance):>2}" for distance in range(1, 21)))

# %% mask-alone
first = d2l.zeros((1, 8, 1))
first[0, 0] = 1  # one number to a token: is it the first?
alike = d2l.zeros((1, 8, 2))  # all scores are zero
attention = d2l.DotProductAttention(dropout=0)
for name, causal in ("without a mask", False), ("causal mask", True):
    found = attention(alike, alike, first, causal=causal)[0, :, 0]
    print(*(f"{x:.3f}" for x in found), f" {name}")


# %% entries
def entries(count, n=16):
    """Letters and digits; a letter that is there; the digit that it had last."""
    letters, digits = (np.random.randint(k, size=(count, n)) for k in (6, 10))
    places = np.random.randint(n, size=count)
    asked = npx.pick(letters, places, keepdims=True)
    last = ((letters == asked) * np.arange(1, n + 1)).argmax(axis=1)
    return letters, digits, asked, npx.pick(digits, last, keepdims=True)


npx.random.seed(1)
for letters, digits, asked, answer in zip(*entries(3), strict=True):
    text = zip(letters.tolist(), digits.tolist(), strict=True)
    line = (f"{chr(97 + x)}{y}" for x, y in text)
    print(*line, f" {chr(97 + asked.item())}?", answer.item())


# %% no-positions
class NoPositions(nn.Block):
    """Where a scheme can tell positions; this one says nothing."""

    def add(self, X, positions):
        """What becomes of vectors at these positions, before the projections."""
        return X

    def turn(self, X, positions):
        """What becomes of queries or keys."""
        return X

    def bias(self, q, distances):
        """What is added to the scores of queries with keys at these distances."""
        return 0


# %% finder
class Finder(nn.Block):
    """Finds the digit that a letter had last; the question is asked after the text."""

    def __init__(self, scheme, num_hiddens=32):
        super().__init__()
        self.scheme = scheme
        self.letter, self.digit = (
            nn.Embedding(k, num_hiddens, weight_initializer=init.Normal(1))
            for k in (6, 10)
        )
        self.W_q, self.W_k, self.W_v = (
            nn.Dense(num_hiddens, use_bias=False, flatten=False) for _ in range(3)
        )
        self.output = nn.Dense(10, flatten=False)

    def forward(self, letters, digits, asked):
        n = letters.shape[1]
        there, here = np.arange(n), np.arange(n, n + 1)
        X = self.scheme.add(self.letter(letters) + self.digit(digits), there)
        question = self.scheme.add(self.letter(asked), here)
        q = self.scheme.turn(self.W_q(question), here)
        k = self.scheme.turn(self.W_k(X), there)
        scores = npx.batch_dot(q, k, transpose_b=True) / math.sqrt(k.shape[-1])
        scores = scores + self.scheme.bias(q, here - there)
        self.attention_weights = npx.softmax(scores, axis=-1)
        return self.output(npx.batch_dot(self.attention_weights, self.W_v(X)))


# %% schemes
class Sinusoids(NoPositions):
    frequencies = frequencies(32)

    def add(self, X, positions):
        angles = np.expand_dims(positions, 1) * self.frequencies
        waves = d2l.stack([np.sin(angles), np.cos(angles)], axis=-1)
        return X + waves.reshape(len(positions), -1)


class Rotary(NoPositions):
    frequencies = frequencies(32)

    def turn(self, X, positions):
        return rotate(X, positions, self.frequencies)


class ALiBi(NoPositions):
    def bias(self, q, distances):
        return -distances / 2


# %% learned-schemes
class Table(NoPositions):
    def __init__(self, reach=16):
        super().__init__()
        normal = init.Normal(1)  # for the distances from 1 on
        self.vectors = nn.Embedding(reach, 32, weight_initializer=normal)

    def bias(self, q, distances):
        rows = np.minimum(distances, self.vectors.weight.shape[0]) - 1
        return q @ self.vectors(rows).T / math.sqrt(q.shape[-1])


class Buckets(NoPositions):
    def __init__(self):
        super().__init__()
        self.numbers = self.params.get("numbers", shape=8, init=init.Zero())

    def bias(self, q, distances):
        buckets = d2l.tensor([bucket(distance) for distance in distances.tolist()])
        return np.take(self.numbers.data(), buckets)


# %% train
def batches(count, examples):
    """All examples are drawn at once, which is faster, and then cut into batches."""
    cut = (each.reshape(count, -1, each.shape[1]) for each in examples)
    return zip(*cut, strict=True)


def trained(seed, kind, *parts):
    npx.random.seed(seed)
    model = kind(*(part() for part in parts))
    model.initialize(initializer)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.02})
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()
    cross_entropy.hybridize()  # one operation instead of several
    for *given, answers in batches(100, entries(100 * 256)):
        with autograd.record():
            loss = cross_entropy(model(*given), answers)
        loss.backward()
        trainer.step(batch_size=256)
    return model


# The same texts for every model.
lengths = 16, 32, 64, 128
tests = {n: entries(500, n) for n in lengths}


def share_right(model, n):
    *given, answers = tests[n]
    return (model(*given).argmax(axis=-1) == answers).mean().item()


# %% train-all
schemes = NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets
models = {
    scheme: [trained(seed, Finder, scheme) for seed in range(5)] for scheme in schemes
}
shares = [[[share_right(m, n) for n in lengths] for m in of] for of in models.values()]


# %% in-rows
def in_rows(names, shares):
    """For each name, at each length: the median over the seeds, and the range."""
    for name, of_name in zip(names, shares, strict=True):
        for found in zip(*of_name, strict=True):
            told = f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"
            print(f"{told:>18}", end="")
        print(f"  {name}")


# %% shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
print("".join(f"{n:>18}" for n in lengths), " entries")
in_rows(names, shares)
X, Y, drawn = [lengths] * 5, [], shares[1:]
for of in drawn:
    Y.append([statistics.median(found) for found in zip(*of, strict=True)])
for i, n in enumerate(lengths):  # the ranges, as bars beside each other
    for j, of in enumerate(drawn):
        X.append([n + j] * 2)
        Y.append([min(each[i] for each in of), max(each[i] for each in of)])
d2l.plot(
    X,
    Y,
    xlabel="Entries (trained on 16)",
    ylabel="Share right",
    ylim=(0, 1.05),
    figsize=(6, 4.5),
    legend=names[1:],
)
# The best place moves with the numbers.
d2l.plt.gca().get_legend().set_loc((0.5, 0.25))


# %% ask-for-all
def maps(n):
    """A text, letters above digits; the weights of the questions for each letter."""
    npx.random.seed(1)
    letters, digits, _, _ = entries(1, n)
    of_schemes = []
    for scheme in Sinusoids, Rotary, ALiBi:
        model = models[scheme][0]
        model(letters, digits, np.arange(6)[None])
        of_schemes.append(model.attention_weights)
    told = (chr(97 + x) for x in letters[0].tolist()), map(str, digits[0].tolist())
    return "\n".join(map("".join, told)), d2l.stack(of_schemes)


# %% maps tags=["nbval-ignore-output"]
text, weights = maps(16)
print(text)
d2l.show_heatmaps(
    weights.swapaxes(0, 1),
    xlabel="Entries",
    ylabel="Letter asked for",
    titles=["Sinusoids", "Rotary", "ALiBi"],
    figsize=(8, 2.2),
    cmap="Blues",
)

# %% maps-past-the-end tags=["nbval-ignore-output"]
text, weights = maps(32)
print(text)
d2l.show_heatmaps(
    weights[0][None],
    xlabel="Entries",
    ylabel="Letter",
    titles=["Sinusoids"],
    figsize=(7, 2),
    cmap="Blues",
)

# %% rotary-past-the-end tags=["nbval-ignore-output"]
d2l.show_heatmaps(
    weights[1][None],
    xlabel="Entries",
    ylabel="Letter",
    titles=["Rotary"],
    figsize=(7, 2),
    cmap="Blues",
)

# %% alibi-past-the-end tags=["nbval-ignore-output"]
d2l.show_heatmaps(
    weights[2][None],
    xlabel="Entries",
    ylabel="Letter",
    titles=["ALiBi"],
    figsize=(7, 2),
    cmap="Blues",
)


# %% weight-found
def weight_found(model, n):
    """The weight on all entries with the letter asked for, and on the last of them."""
    letters, digits, asked, _ = tests[n]
    model(letters, digits, asked)
    weights, has_it = model.attention_weights[:, 0], letters == asked
    last = (has_it * np.arange(1, n + 1)).argmax(axis=1)
    on_it, on_last = (weights * has_it).sum(axis=1), npx.pick(weights, last)
    return [on_it.mean().item(), on_last.mean().item()]


weight = {
    n: [[weight_found(m, n) for m in of] for of in models.values()] for n in (16, 32)
}

# %% weight-shown tags=["tolerance:absolute=0.2"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
for n, found in weight.items():
    print(f"{n} entries: weight on the letter, and on the last entry with it")
    in_rows(names, found)


# %% stretch
def unchanged(omega, factor):
    return omega


def linear(omega, factor):
    """Position interpolation: all pairs turn more slowly."""
    return omega / factor


def larger_base(omega, factor):
    """NTK-aware: the slowest pair as above, the fastest as it was."""
    d = 2 * len(omega)
    return frequencies(d, base=10000 * factor ** (d / (d - 2)))


def by_parts(omega, factor, low=1 / 4, high=2):
    """YaRN: at least two turns in training, as before; less than a quarter, slower."""
    turns = 16 * omega / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clip(0, 1)
    return kept * omega + (1 - kept) * omega / factor


# %% wavelengths
omega, ways = frequencies(32), (unchanged, linear, larger_base, by_parts)
wavelengths = [2 * math.pi / way(omega, 4) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in 0, 1, 2, 3, 4, 6, 9, 12, 15:
    columns = "".join(f"{of_way[pair]:12.1f}" for of_way in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def share_stretched(model, n, way):
    model.scheme.frequencies = way(omega, n / 16)
    share = share_right(model, n)
    model.scheme.frequencies = omega
    return share


stretched = [
    [[share_stretched(model, n, way) for n in lengths[1:]] for model in models[Rotary]]
    for way in ways
]

# %% stretched-shares tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths[1:]), " entries")
in_rows(["unchanged", "linear", "larger base", "by parts"], stretched)

# %% solution-values
npx.random.seed(0)
X, omega = d2l.randn(6, 8), frequencies(8)


def outputs(shift, turned=False, back=False):
    """Attention among six tokens, moved by so many positions."""
    positions = np.arange(6) + shift
    q = k = rotate(X, positions, omega)
    v = rotate(X, positions, omega) if turned else X
    Y = npx.softmax(q @ k.T / math.sqrt(8), axis=-1) @ v
    return rotate(Y, -positions, omega) if back else Y


def change(**how):
    return np.abs(outputs(5, **how) - outputs(0, **how)).max()


print("five positions on, outputs differ by")
print(f"{change():.4f}  with values as they are")
print(f"{change(turned=True):.4f}  with values turned")
print(f"{change(turned=True, back=True):.4f}  with outputs turned back")


# %% solution-layouts
class RotaryHalves(Rotary):
    def turn(self, X, positions):
        return rotate_halves(X, positions, self.frequencies)


def in_halves(model, reorder):
    """The model in the other layout, its queries and keys reordered or not."""
    other = Finder(RotaryHalves())
    other.initialize()
    parts = (each.collect_params().values() for each in (other, model))
    for part, kept in zip(*parts, strict=True):
        part.set_data(kept.data())
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    if reorder:
        for part, kept in (other.W_q, model.W_q), (other.W_k, model.W_k):
            part.weight.set_data(kept.weight.data()[order])  # Gluon stores transposed
    return other


# %% solution-layouts-compared
in_layouts = [
    [[share_right(model, 16)] for model in models[Rotary]],
    [[share_right(in_halves(model, False), 16)] for model in models[Rotary]],
    [[share_right(in_halves(model, True), 16)] for model in models[Rotary]],
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
in_rows(["as trained", "in halves", "in halves, reordered"], in_layouts)

# %% solution-untouched
npx.random.seed(0)
model = Finder(Table(reach=32))
model.initialize(initializer)
*given, answers = entries(64)
with autograd.record():
    loss = gluon.loss.SoftmaxCrossEntropyLoss()(model(*given), answers)
loss.backward()
is_touched = np.abs(model.scheme.vectors.weight.grad()).sum(axis=1) > 0
print("distances with a gradient:")
print(*(np.nonzero(is_touched)[0] + 1).tolist())


# %% solution-two-layers
class TwoLayers(nn.Block):
    """Two causal layers above each other, and no encoding at all."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter, self.digit = (
            nn.Embedding(k, num_hiddens, weight_initializer=init.Normal(1))
            for k in (6, 10)
        )
        self.layers = nn.Sequential()
        for _ in range(2):
            self.layers.add(d2l.MultiHeadAttention(num_hiddens, 1, dropout=0))
        self.output = nn.Dense(10, flatten=False)

    def forward(self, letters, digits, asked):
        entries = self.letter(letters) + self.digit(digits)
        X = d2l.concat([entries, self.letter(asked)], axis=1)
        for layer in self.layers:
            X = X + layer(X, X, X, causal=True)
        return self.output(X[:, -1:])


# %% solution-two-layers-trained
two_layers = [trained(seed, TwoLayers) for seed in range(5)]
found = [[share_right(model, n) for n in lengths] for model in two_layers]

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths), " entries")
in_rows(["two layers"], [found])
