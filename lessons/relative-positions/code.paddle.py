# The lesson's PaddlePaddle code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics

from d2l_compat import paddle as d2l  # first: it turns down Paddle's log

import paddle
from paddle import nn
from paddle.nn import functional as F

paddle.seed(0)
paddle.set_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
# Weights from -1/sqrt(d) to 1/sqrt(d); Paddle's own are wider.
initializer = nn.initializer.XavierUniform(gain=1 / math.sqrt(3))
nn.initializer.set_global_initializer(initializer)


# %% turn
def turn(vector, position):
    """Turn a vector of two numbers by 30 degrees for each position."""
    angle = math.radians(30 * position)
    (x, y), cos, sin = vector, math.cos(angle), math.sin(angle)
    return d2l.stack([x * cos - y * sin, x * sin + y * cos])


def format_vector(vector):
    return "(" + ", ".join(f"{x:5.2f}" for x in vector) + ")"


# %% turned-by-hand
query, key = d2l.tensor([1.0, 2]), d2l.tensor([2.0, 2])
pairs = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)  # the positions of query and key

print("positions  turned query     turned key      score")
for i, j in pairs:
    q, k = turn(query, i), turn(key, j)
    print(f"{i:>4}{j:>4}   {format_vector(q)}  {format_vector(k)}  {q @ k:5.2f}")

# %% four-terms
hand = d2l.tensor([1.0, 0])  # rotated to a vector's position, then added to it

print("positions    q.k    q.p    p.k    p.p    sum")
for i, j in pairs:
    p_i, p_j = turn(hand, i), turn(hand, j)
    terms = query @ key, query @ p_j, p_i @ key, p_i @ p_j
    score = (query + p_i) @ (key + p_j)
    print(f"{i:>4}{j:>4} ", *(f"{term:6.2f}" for term in (*terms, score)))


# %% rotate
def rope_frequencies(d, base=10000):
    """Return how far each pair turns from one position to the next, in radians."""
    return base ** (-d2l.arange(0, d, 2) / d)


def rotate(X, positions, omega):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = positions.unsqueeze(1).astype("float32") * omega
    cos, sin = angles.cos(), angles.sin()
    x, y = X.unflatten(-1, [-1, 2]).unbind(axis=-1)
    return d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).flatten(-2)


# %% spread
def spread(scores):
    """Return the largest difference between two scores at one distance."""
    n = len(scores)
    diagonals = (scores.diagonal(offset) for offset in range(1 - n, n))
    return max(diagonal.max() - diagonal.min() for diagonal in diagonals)


# %% rotary-check
paddle.seed(0)
d, n = 8, 40
query, key = d2l.randn((2, d))
positions, omega = d2l.arange(n), rope_frequencies(d)
q = rotate(query.expand([n, d]), positions, omega)
k = rotate(key.expand([n, d]), positions, omega)
scores = q @ k.T
layer_output = d2l.RotaryEncoding(d)(query.expand([1, n, d]))[0]

print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"at one distance they differ by {spread(scores):.4f} at most")
print(f"lengths change by {(q.norm(axis=-1) - query.norm()).abs().max():.4f} at most")
print(f"the layer: largest difference {(layer_output - q).abs().max():.4f}")


# %% rotate-halves
def rotate_halves(X, positions, omega):
    """Turn the pairs in the same way, but pair number l with number l + d/2."""
    angles = positions.unsqueeze(1).astype("float32") * omega
    cos, sin = angles.cos(), angles.sin()
    x, y = X.chunk(2, axis=-1)
    return d2l.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
paddle.seed(0)
X = d2l.randn((n, d))
order = d2l.tensor([0, 2, 4, 6, 1, 3, 5, 7])
neighbours = rotate(X, positions, omega)
halves = rotate_halves(X[:, order], positions, omega)
layer_output = d2l.RotaryEncoding(d, layout="halves")(X[:, order].unsqueeze(0))[0]
print(
    f"reordered: largest difference {(neighbours[:, order] - halves).abs().max():.4f}"
)
print(f"the layer: largest difference {(layer_output - halves).abs().max():.4f}")

# %% mixed
q_halves = rotate_halves(query.expand([n, d]), positions, omega)
k_halves = rotate_halves(key.expand([n, d]), positions, omega)
print("at one distance, scores differ by")
print(f"{spread(q @ k.T):.4f}  with neighbours for both")
print(f"{spread(q_halves @ k_halves.T):.4f}  with halves for both")
print(f"{spread(q @ k_halves.T):.4f}  with one of each")

# %% slopes
slopes = d2l.alibi_slopes(8)
expected = [2.0 ** -(head + 1) for head in range(8)]
print("slopes:", *(f"1/{1 / slope:.0f}" for slope in slopes))
print(f"largest difference: {(slopes - d2l.tensor(expected)).abs().max():.4f}")

# %% alibi-map
n, positions = 12, d2l.arange(12)
distances = positions.unsqueeze(1) - positions
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
zeros = d2l.zeros((1, n, 8))  # no content: all scores are zero
bias = -slopes.reshape([8, 1, 1]) * distances.astype("float32")
with paddle.no_grad():
    attention(zeros, zeros, zeros, causal=True, score_bias=bias)
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
    """Return a distance's bucket: its own if near, a shared and wider one if far."""
    near = count // 2
    if distance < near:
        return distance
    wider = (count - near) * math.log(distance / near) / math.log(far / near)
    return min(near + int(wider), count - 1)


print("distance:", *(f"{distance:>2}" for distance in range(1, 21)))
print("bucket:  ", *(f"{bucket(distance):>2}" for distance in range(1, 21)))

# %% mask-alone
is_first = d2l.zeros((1, 8, 1))
is_first[0, 0] = 1  # one number per token: is it the first?
zeros = d2l.zeros((1, 8, 2))  # all scores are zero
attention = d2l.DotProductAttention(dropout=0)
for name, causal in ("without a mask", False), ("causal mask", True):
    averages = attention(zeros, zeros, is_first, causal=causal)[0, :, 0]
    print(*(f"{x:.3f}" for x in averages), f" {name}")


# %% entries
def draw_entries(count, n=16):
    """Draw letters and digits, one of these letters, and the digit it had last."""
    letters, digits = (paddle.randint(high, shape=(count, n)) for high in (6, 10))
    asked = letters.take_along_axis(paddle.randint(n, shape=(count, 1)), axis=1)
    last = paddle.where(letters == asked, d2l.arange(n), -1).max(axis=1, keepdim=True)
    return letters, digits, asked, digits.take_along_axis(last, axis=1)


paddle.seed(1)
for letters, digits, asked, answer in zip(*draw_entries(3), strict=True):
    line = (f"{chr(97 + x)}{y}" for x, y in zip(letters, digits, strict=True))
    print(*line, f" {chr(97 + asked.item())}?", answer.item())


# %% no-positions
class NoPositions(nn.Layer):
    """The three places where a scheme can use positions; this one uses none."""

    def add(self, X, positions):
        """Return vectors at these positions as they enter the projections."""
        return X

    def turn(self, X, positions):
        """Return queries or keys as they enter the scores."""
        return X

    def bias(self, q, distances):
        """Return the bias of scores of queries with keys at these distances."""
        return 0


# %% finder
def make_table(rows, width):
    """Make a table of trainable vectors of variance 1."""
    return nn.Embedding(rows, width, weight_attr=nn.initializer.Normal())


class Finder(nn.Layer):
    """A model that finds a letter's last digit; the question follows the text."""

    def __init__(self, scheme, num_hiddens=32):
        super().__init__()
        self.scheme = scheme
        self.letter, self.digit = (make_table(k, num_hiddens) for k in (6, 10))
        self.W_q, self.W_k, self.W_v = (
            nn.Linear(num_hiddens, num_hiddens, bias_attr=False) for _ in range(3)
        )
        self.output = nn.Linear(num_hiddens, 10)

    def forward(self, letters, digits, asked):
        n = letters.shape[1]
        i, j = d2l.tensor([n]), d2l.arange(n)  # of the question, and of the entries
        X = self.scheme.add(self.letter(letters) + self.digit(digits), j)
        question = self.scheme.add(self.letter(asked), i)
        q = self.scheme.turn(self.W_q(question), i)
        k = self.scheme.turn(self.W_k(X), j)
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(k.shape[-1])
        scores = scores + self.scheme.bias(q, i - j)
        self.attention_weights = F.softmax(scores, axis=-1)
        return self.output(self.attention_weights @ self.W_v(X))


# %% schemes
class Sinusoids(NoPositions):
    def add(self, X, positions):
        angles = positions.unsqueeze(1).astype("float32") * rope_frequencies(
            X.shape[-1]
        )
        return X + d2l.stack([angles.sin(), angles.cos()], axis=-1).flatten(-2)


class Rotary(NoPositions):
    def __init__(self):
        super().__init__()
        self.omega = rope_frequencies(32)

    def turn(self, X, positions):
        return rotate(X, positions, self.omega)


class ALiBi(NoPositions):
    def bias(self, q, distances):
        return -distances / 2


# %% learned-schemes
class Table(NoPositions):
    def __init__(self, reach=16):
        super().__init__()
        self.vectors = make_table(reach, 32)  # for the distances from 1 on

    def bias(self, q, distances):
        rows = distances.clip(max=len(self.vectors.weight)) - 1
        vectors = self.vectors(rows)
        return paddle.matmul(q, vectors, transpose_y=True) / math.sqrt(q.shape[-1])


class Buckets(NoPositions):
    def __init__(self):
        super().__init__()
        self.numbers = self.create_parameter([8], attr=nn.initializer.Constant(0))

    def bias(self, q, distances):
        return self.numbers[[bucket(distance) for distance in distances.tolist()]]


# %% train
def train(seed, model_class, *part_classes):
    paddle.seed(seed)
    parts = [part_class() for part_class in part_classes]
    model = model_class(*parts)
    optimizer = paddle.optimizer.Adam(0.02, parameters=model.parameters())
    for _ in range(100):
        *inputs, answers = draw_entries(256)
        loss = F.cross_entropy(model(*inputs), answers)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return model


# The same texts for every model.
lengths = 16, 32, 64, 128
tests = {n: draw_entries(500, n) for n in lengths}


def accuracy(model, n):
    *inputs, answers = tests[n]
    with paddle.no_grad():
        correct = model(*inputs).argmax(axis=-1) == answers
    return correct.astype("float32").mean().item()


# %% train-all
schemes = NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets
models = {
    scheme: [train(seed, Finder, scheme) for seed in range(5)] for scheme in schemes
}
accuracies = [
    [[accuracy(model, n) for n in lengths] for model in scheme_models]
    for scheme_models in models.values()
]


# %% in-rows
def print_rows(names, results):
    """Print each name's median over the seeds, and the range, at each length."""
    for name, runs in zip(names, results, strict=True):
        for values in zip(*runs, strict=True):
            low, median, high = min(values), statistics.median(values), max(values)
            summary = f"{median:.2f} ({low:.2f}-{high:.2f})"
            print(f"{summary:>18}", end="")
        print(f"  {name}")


# %% shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
print("".join(f"{n:>18}" for n in lengths), " entries")
print_rows(names, accuracies)
xs = [lengths] * 5
ys = []
for runs in accuracies[1:]:
    ys.append([statistics.median(values) for values in zip(*runs, strict=True)])
for i, n in enumerate(lengths):  # the ranges, as bars beside each other
    for j, runs in enumerate(accuracies[1:]):
        values = [run[i] for run in runs]
        xs.append([n + j] * 2)
        ys.append([min(values), max(values)])
d2l.plot(
    xs,
    ys,
    xlabel="Entries (trained on 16)",
    ylabel="Share right",
    ylim=(0, 1.05),
    figsize=(6, 4.5),
    legend=names[1:],
)
# The default location, "best", depends on the numbers.
d2l.plt.gca().get_legend().set_loc((0.5, 0.25))


# %% ask-for-all
def ask_all_letters(n):
    """Ask for every letter of a new text; return the text and the weights."""
    paddle.seed(1)
    letters, digits, _, _ = draw_entries(1, n)
    scheme_weights = []
    for scheme in Sinusoids, Rotary, ALiBi:
        model = models[scheme][0]
        with paddle.no_grad():
            model(letters, digits, d2l.arange(6).unsqueeze(0))
        scheme_weights.append(model.attention_weights)
    letter_row = "".join(chr(97 + x) for x in letters[0])
    digit_row = "".join(str(x.item()) for x in digits[0])
    return f"{letter_row}\n{digit_row}", d2l.stack(scheme_weights)


# %% maps tags=["nbval-ignore-output"]
text, weights = ask_all_letters(16)
print(text)
d2l.show_heatmaps(
    d2l.swapaxes(weights, 0, 1),
    xlabel="Entries",
    ylabel="Letter asked for",
    titles=["Sinusoids", "Rotary", "ALiBi"],
    figsize=(8, 2.2),
    cmap="Blues",
)

# %% maps-past-the-end tags=["nbval-ignore-output"]
text, weights = ask_all_letters(32)
print(text)
d2l.show_heatmaps(
    weights[0].unsqueeze(0),
    xlabel="Entries",
    ylabel="Letter",
    titles=["Sinusoids"],
    figsize=(7, 2),
    cmap="Blues",
)

# %% rotary-past-the-end tags=["nbval-ignore-output"]
d2l.show_heatmaps(
    weights[1].unsqueeze(0),
    xlabel="Entries",
    ylabel="Letter",
    titles=["Rotary"],
    figsize=(7, 2),
    cmap="Blues",
)

# %% alibi-past-the-end tags=["nbval-ignore-output"]
d2l.show_heatmaps(
    weights[2].unsqueeze(0),
    xlabel="Entries",
    ylabel="Letter",
    titles=["ALiBi"],
    figsize=(7, 2),
    cmap="Blues",
)


# %% weight-found
def measure_weight(model, n):
    """Return the weight on all entries with the letter, and on the last of them."""
    letters, digits, asked, _ = tests[n]
    with paddle.no_grad():
        model(letters, digits, asked)
    weights, is_match = model.attention_weights[:, 0], letters == asked
    last = paddle.where(is_match, d2l.arange(n), -1).max(axis=1, keepdim=True)
    letter_weight = (weights * is_match.astype("float32")).sum() / 500
    return [letter_weight, weights.take_along_axis(last, axis=1).mean()]


letter_weights = {}
for n in 16, 32:
    letter_weights[n] = [
        [measure_weight(model, n) for model in scheme_models]
        for scheme_models in models.values()
    ]

# %% weight-shown tags=["tolerance:absolute=0.2"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
for n, scheme_weights in letter_weights.items():
    print(f"{n} entries: weight on the letter, and on the last entry with it")
    print_rows(names, scheme_weights)


# %% stretch
def unchanged(omega, factor):
    return omega


def linear(omega, factor):
    """Position interpolation: slow all pairs down."""
    return omega / factor


def larger_base(omega, factor):
    """NTK-aware: slow the slowest pair as above, and keep the fastest."""
    d = 2 * len(omega)
    return rope_frequencies(d, base=10000 * factor ** (d / (d - 2)))


def by_parts(omega, factor, low=1 / 4, high=2):
    """YaRN: keep pairs that turned twice in training, slow those below a quarter."""
    turns = 16 * omega / (2 * math.pi)
    ramp = ((turns - low) / (high - low)).clip(0, 1)
    return ramp * omega + (1 - ramp) * omega / factor


# %% wavelengths
omega, ways = rope_frequencies(32), (unchanged, linear, larger_base, by_parts)
wavelengths = [2 * math.pi / way(omega, 4) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in 0, 1, 2, 3, 4, 6, 9, 12, 15:
    columns = "".join(f"{row[pair]:12.1f}" for row in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def stretched_accuracy(model, n, way):
    model.scheme.omega = way(omega, n / 16)
    share = accuracy(model, n)
    model.scheme.omega = omega
    return share


stretched_accuracies = []
for way in ways:
    runs = [
        [stretched_accuracy(model, n, way) for n in lengths[1:]]
        for model in models[Rotary]
    ]
    stretched_accuracies.append(runs)

# %% stretched-shares tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths[1:]), " entries")
print_rows(["unchanged", "linear", "larger base", "by parts"], stretched_accuracies)

# %% solution-values
paddle.seed(0)
X, omega = d2l.randn((6, 8)), rope_frequencies(8)


def shifted_output(shift, turn_values=False, turn_back=False):
    """Attend among six tokens that are shifted by this many positions."""
    positions = d2l.arange(6) + shift
    q = k = rotate(X, positions, omega)
    v = rotate(X, positions, omega) if turn_values else X
    Y = F.softmax(q @ k.T / math.sqrt(8), axis=-1) @ v
    return rotate(Y, -positions, omega) if turn_back else Y


def change(**options):
    return (shifted_output(5, **options) - shifted_output(0, **options)).abs().max()


print("five positions on, outputs differ by")
print(f"{change():.4f}  with values as they are")
print(f"{change(turn_values=True):.4f}  with values turned")
print(f"{change(turn_values=True, turn_back=True):.4f}  with outputs turned back")


# %% solution-layouts
class RotaryHalves(Rotary):
    def turn(self, X, positions):
        return rotate_halves(X, positions, self.omega)


def convert_to_halves(model, reorder):
    """Return the model in the other layout, its queries and keys reordered or not."""
    converted = Finder(RotaryHalves())
    converted.set_state_dict(model.state_dict())
    order = d2l.concat([d2l.arange(0, 32, 2), d2l.arange(1, 32, 2)])
    if reorder:
        for part in converted.W_q, converted.W_k:
            part.weight.set_value(part.weight[:, order])
    return converted


# %% solution-layouts-compared
layout_accuracies = [
    [[accuracy(model, 16)] for model in models[Rotary]],
    [[accuracy(convert_to_halves(model, False), 16)] for model in models[Rotary]],
    [[accuracy(convert_to_halves(model, True), 16)] for model in models[Rotary]],
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
print_rows(["as trained", "in halves", "in halves, reordered"], layout_accuracies)

# %% solution-untouched
paddle.seed(0)
model = Finder(Table(reach=32))
*inputs, answers = draw_entries(64)
F.cross_entropy(model(*inputs), answers).backward()
has_gradient = model.scheme.vectors.weight.grad.abs().sum(axis=1) > 0
print("distances with a gradient:")
print(*(has_gradient.nonzero().flatten() + 1).tolist())


# %% solution-two-layers
class TwoLayers(nn.Layer):
    """Two causal layers above each other, and no encoding at all."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        self.letter, self.digit = (make_table(k, num_hiddens) for k in (6, 10))
        self.layers = nn.LayerList(
            d2l.MultiHeadAttention(num_hiddens, 1, dropout=0) for _ in range(2)
        )
        self.output = nn.Linear(num_hiddens, 10)

    def forward(self, letters, digits, asked):
        entries = self.letter(letters) + self.digit(digits)
        X = d2l.concat([entries, self.letter(asked)], axis=1)
        for layer in self.layers:
            X = X + layer(X, X, X, causal=True)
        return self.output(X[:, -1:])


# %% solution-two-layers-trained
two_layers = [train(seed, TwoLayers) for seed in range(5)]
two_layer_accuracies = [[accuracy(model, n) for n in lengths] for model in two_layers]

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths), " entries")
print_rows(["two layers"], [two_layer_accuracies])
