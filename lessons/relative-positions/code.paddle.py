# The lesson's PaddlePaddle code. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math

from d2l_compat import paddle as d2l  # first: it turns down Paddle's log

import paddle
from paddle import nn
from paddle.nn import functional as F

paddle.set_device(d2l.cpu())  # small enough for the CPU; d2l.try_gpu() picks a GPU
_ = paddle.seed(0)


# %% turn
def turn(vector, position):
    """Turn a vector of two numbers by 30 degrees for each position."""
    angle = math.radians(30 * position)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = vector
    return paddle.stack([x * cos - y * sin, x * sin + y * cos])


def format_vector(vector):
    x, y = vector
    return f"({x:5.2f}, {y:5.2f})"


# %% turned-by-hand
query = paddle.to_tensor([1.0, 2])
key = paddle.to_tensor([2.0, 2])
positions_of_both = [(2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)]

print("positions  turned query     turned key      score")
for i, j in positions_of_both:
    q = turn(query, i)
    k = turn(key, j)
    print(f"{i:>4}{j:>4}   {format_vector(q)}  {format_vector(k)}  {q @ k:5.2f}")

# %% four-terms
hand = paddle.to_tensor([1.0, 0])  # rotated to a vector's position, then added to it

print("positions    q.k    q.p    p.k    p.p    sum")
for i, j in positions_of_both:
    p_i = turn(hand, i)
    p_j = turn(hand, j)
    terms = [query @ key, query @ p_j, p_i @ key, p_i @ p_j]
    score = (query + p_i) @ (key + p_j)
    print(f"{i:>4}{j:>4} " + "".join(f"{x:7.2f}" for x in [*terms, score]))


# %% rotate
def rope_frequencies(d, base=10000):
    """Return how far each pair turns from one position to the next, in radians."""
    return base ** (-paddle.arange(0, d, 2) / d)


def rotate(X, positions, omega):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = positions[:, None].astype("float32") * omega
    cos, sin = angles.cos(), angles.sin()
    x, y = X[..., ::2], X[..., 1::2]
    return paddle.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).flatten(-2)


# %% spread
def spread(scores):
    """Return the largest difference between two scores at one distance."""
    n = len(scores)
    differences = []
    for offset in range(1 - n, n):
        diagonal = scores.diagonal(offset)
        differences.append(diagonal.max() - diagonal.min())
    return max(differences)


# %% rotary-check
paddle.seed(0)
d = 8
n = 40
query, key = paddle.randn([2, d])
positions = paddle.arange(n)
omega = rope_frequencies(d)
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
    angles = positions[:, None].astype("float32") * omega
    cos, sin = angles.cos(), angles.sin()
    x, y = X.chunk(2, axis=-1)
    return paddle.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
paddle.seed(0)
X = paddle.randn([n, d])
order = paddle.to_tensor([0, 2, 4, 6, 1, 3, 5, 7])
neighbours = rotate(X, positions, omega)
halves = rotate_halves(X[:, order], positions, omega)
layer_output = d2l.RotaryEncoding(d, layout="halves")(X[:, order].unsqueeze(0))[0]

difference = (neighbours[:, order] - halves).abs().max()
print(f"reordered: largest difference {difference:.4f}")
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
expected = paddle.to_tensor([2.0 ** -(head + 1) for head in range(8)])

fractions = " ".join(f"1/{1 / slope:.0f}" for slope in slopes)
print("slopes:", fractions)
print(f"largest difference: {(slopes - expected).abs().max():.4f}")

# %% alibi-map
n = 12
positions = paddle.arange(n, dtype="float32")
distances = positions[:, None] - positions
bias = -slopes[:, None, None] * distances  # (heads, queries, keys)
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
zeros = paddle.zeros([1, n, 8])  # no content: all scores are zero
with paddle.no_grad():
    attention(zeros, zeros, zeros, causal=True, score_bias=bias)
weights = attention.attention_weights

row = " ".join(f"{weight:.3f}" for weight in weights[0, 0, -1, -4:])
print("last row, first head:", row)
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
    clipped = [min(max(i - j, -3), 3) for j in range(6)]
    print("".join(f"{distance:4}" for distance in clipped))


# %% bucket
def bucket(distance, count=8, far=16):
    """Return a distance's bucket: its own if near, a shared and wider one if far."""
    near = count // 2
    if distance < near:
        return distance
    wider = (count - near) * math.log(distance / near) / math.log(far / near)
    return min(near + int(wider), count - 1)


def print_row(name, numbers):
    print(name, " ".join(f"{number:>2}" for number in numbers))


print_row("distance:", range(1, 21))
print_row("bucket:  ", [bucket(distance) for distance in range(1, 21)])

# %% mask-alone
is_first = paddle.zeros([1, 8, 1])
is_first[0, 0] = 1  # one number per token: is it the first?
zeros = paddle.zeros([1, 8, 2])  # all scores are zero
attention = d2l.DotProductAttention(dropout=0)
for name, causal in [("without a mask", False), ("causal mask", True)]:
    averages = attention(zeros, zeros, is_first, causal=causal)[0, :, 0]
    row = " ".join(f"{x:.3f}" for x in averages)
    print(f"{row}  {name}")

# %% entries
LETTERS = "abcdef"


def draw_entries(count, num_entries=16, nearest=1, farthest=16):
    """Draw texts, and a letter to ask for; it stood last `nearest` to `farthest` back.

    Return letters and digits (count, num_entries), the letters asked for and the
    answers (count, 1).
    """
    letters = paddle.randint(6, shape=[count, num_entries])
    digits = paddle.randint(10, shape=[count, num_entries])
    asked = paddle.randint(6, shape=[count, 1])
    last = num_entries - paddle.randint(nearest, farthest + 1, shape=[count, 1])
    others = (asked + paddle.randint(1, 6, shape=[count, num_entries])) % 6
    positions = paddle.arange(num_entries)
    letters = paddle.where(positions == last, asked, letters)
    letters = paddle.where(positions > last, others, letters)
    return letters, digits, asked, digits.take_along_axis(last, axis=1)


def name_entries(letters, digits):
    """Return names such as b2, for one text's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


# %% entries-shown
paddle.seed(1)
for letters, digits, asked, answer in zip(*draw_entries(3), strict=True):
    print(*name_entries(letters, digits), f" {LETTERS[asked.item()]}?", answer.item())


# %% no-positions
class PositionScheme(nn.Layer):
    """The three places where a scheme can use positions; by default, it uses none."""

    def add(self, X, positions):
        """Return vectors (batch, n, d), at n positions, as they enter projections."""
        return X

    def turn(self, X, positions):
        """Return queries or keys (batch, n, d) as they enter the scores."""
        return X

    def bias(self, q, distances):
        """Return what is added to scores of queries (batch, 1, d) with n keys."""
        return 0


class NoPositions(PositionScheme):
    pass


# %% finder
class Finder(nn.Layer):
    """A model that finds a letter's last digit; the question follows the text."""

    def __init__(self, scheme, num_hiddens=32):
        super().__init__()
        self.scheme = scheme
        normal = nn.initializer.Normal()  # by default, vectors would be far shorter
        self.letter = nn.Embedding(6, num_hiddens, weight_attr=normal)
        self.digit = nn.Embedding(10, num_hiddens, weight_attr=normal)
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias_attr=False)
        self.output = nn.Linear(num_hiddens, 10)

    def forward(self, letters, digits, asked):
        n = letters.shape[1]
        i = paddle.to_tensor([n])  # the question's position
        j = paddle.arange(n)  # the entries'
        question = self.scheme.add(self.letter(asked), i)
        X = self.scheme.add(self.letter(letters) + self.digit(digits), j)
        q = self.scheme.turn(self.W_q(question), i)
        k = self.scheme.turn(self.W_k(X), j)
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(k.shape[-1])
        scores = scores + self.scheme.bias(q, i - j)
        self.attention_weights = F.softmax(scores, axis=-1)
        return self.output(self.attention_weights @ self.W_v(X))


# %% schemes
class Sinusoids(PositionScheme):
    def add(self, X, positions):
        omega = rope_frequencies(X.shape[-1])
        angles = positions[:, None].astype("float32") * omega
        return X + paddle.stack([angles.sin(), angles.cos()], axis=-1).flatten(-2)


class Rotary(PositionScheme):
    def __init__(self):
        super().__init__()
        # A buffer moves with the model and is not trained; this one is not saved.
        self.register_buffer("omega", rope_frequencies(32), persistable=False)

    def turn(self, X, positions):
        return rotate(X, positions, self.omega)


class ALiBi(PositionScheme):
    def __init__(self, slope=1 / 2):
        super().__init__()
        self.slope = slope

    def bias(self, q, distances):
        return -self.slope * distances


# %% learned-schemes
class Table(PositionScheme):
    def __init__(self, reach=16):
        super().__init__()
        shape = [reach, 32]  # of distances from 1 on
        zero = nn.initializer.Constant(0)
        self.vectors = self.create_parameter(shape, default_initializer=zero)

    def bias(self, q, distances):
        rows = distances.clip(max=len(self.vectors)) - 1
        return q @ self.vectors[rows].T / math.sqrt(q.shape[-1])


class Buckets(PositionScheme):
    def __init__(self):
        super().__init__()
        zero = nn.initializer.Constant(0)
        self.numbers = self.create_parameter([8], default_initializer=zero)

    def bias(self, q, distances):
        rows = [bucket(distance) for distance in distances.tolist()]
        # Adam moves a number by about 0.015 per step; a score has to move by several
        # units.
        return 10 * self.numbers[rows]


# %% train
def fit(model):
    """Train a model; return it."""
    optimizer = paddle.optimizer.Adam(0.015, parameters=model.parameters())
    for _ in range(120):
        letters, digits, asked, answers = draw_entries(64)
        loss = F.cross_entropy(model(letters, digits, asked), answers)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return model


# %% tests
lengths = [16, 32, 64, 128]
# The same texts for every model.
paddle.seed(100)
near_tests = {n: draw_entries(500, n) for n in lengths}
far_tests = {n: draw_entries(500, n, 17, n) for n in lengths[1:]}


def accuracies(models, tests):
    """Return the share of right answers, (models, tests)."""
    shares = []
    for model in models:
        row = []
        for letters, digits, asked, answers in tests:
            with paddle.no_grad():
                predictions = model(letters, digits, asked).argmax(axis=-1)
            row.append((predictions == answers).astype("float32").mean().item())
        shares.append(row)
    return shares


# %% train-all
def train_finders(scheme_class, *args):
    """Train a model with this scheme from each of five seeds."""
    models = []
    for seed in range(5):
        paddle.seed(seed)
        models.append(fit(Finder(scheme_class(*args))))
    return models


schemes = [NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets]
models = {scheme: train_finders(scheme) for scheme in schemes}
near = [accuracies(runs, near_tests.values()) for runs in models.values()]
far = [accuracies(runs, far_tests.values()) for runs in models.values()]

# %% near-shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
results = dict(zip(names, near, strict=True))
d2l.print_ranges(results, lengths, "entries")
d2l.plot_ranges(
    lengths,
    results,
    xlabel="Entries (trained on 16)",
    ylabel="Share right, answer near",
    ylim=(0, 1.05),
)

# %% far-shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
results = dict(zip(names, far, strict=True))
d2l.print_ranges(results, lengths[1:], "entries")
d2l.plot_ranges(
    lengths[1:],
    results,
    xlabel="Entries (trained on 16)",
    ylabel="Share right, answer far",
    ylim=(0, 1.05),
)

# %% slopes-trained
alibi_models = {
    "1/2": models[ALiBi],
    "1/8": train_finders(ALiBi, 1 / 8),
    "1/32": train_finders(ALiBi, 1 / 32),
}
tests = [near_tests[16], near_tests[64], far_tests[64]]
slope_shares = {name: accuracies(runs, tests) for name, runs in alibi_models.items()}

# %% slopes-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges(slope_shares, ["16", "64, near", "64, far"], "slope")


# %% find-last
def find_last(letters, asked):
    """Mark, for each letter asked for, the last entry with it."""
    is_match = letters == asked
    positions = paddle.arange(letters.shape[-1])
    last = paddle.where(is_match, positions, -1).max(axis=-1, keepdim=True)
    return positions == last


# %% ask-for-all
def show_weights(schemes, titles, n):
    """Ask for all letters of a new text; draw the weights, and frame the right ones."""
    paddle.seed(1)
    letters, digits, _, _ = draw_entries(1, n)
    asked = paddle.arange(6).unsqueeze(0)
    weights = []
    for scheme in schemes:
        model = models[scheme][0]
        with paddle.no_grad():
            model(letters, digits, asked)
        weights.append(model.attention_weights)
    entries = name_entries(letters[0], digits[0])
    d2l.show_heatmaps(
        paddle.stack(weights, axis=1),
        xlabel="Entries",
        ylabel="Asked for",
        titles=titles,
        figsize=(8, 2.4),
        cmap="Blues",
        xticklabels=[f"{letter}\n{digit}" for letter, digit in entries],
        yticklabels=LETTERS,
        marks=find_last(letters, asked.T),
    )


# %% maps tags=["nbval-ignore-output"]
show_weights([Sinusoids, Rotary, ALiBi], ["Sinusoids", "Rotary", "ALiBi"], 16)

# %% sinusoids-past-the-end tags=["nbval-ignore-output"]
show_weights([Sinusoids], ["Sinusoids, 32 entries"], 32)

# %% alibi-past-the-end tags=["nbval-ignore-output"]
show_weights([ALiBi], ["ALiBi, 32 entries"], 32)


# %% weight-found
def measure_weights(models, test):
    """Return the mean weight on the letter and on its last entry, (models, 2)."""
    letters, digits, asked, _ = test
    is_match = (letters == asked).astype("float32")
    is_last = find_last(letters, asked).astype("float32")
    shares = []
    for model in models:
        with paddle.no_grad():
            model(letters, digits, asked)
        weights = model.attention_weights[:, 0]
        on_letter = (weights * is_match).sum(axis=1).mean()
        on_last = (weights * is_last).sum(axis=1).mean()
        shares.append([on_letter, on_last])
    return shares


near_weights = [measure_weights(runs, near_tests[32]) for runs in models.values()]
far_weights = [measure_weights(runs, far_tests[32]) for runs in models.values()]

# %% weight-shown tags=["tolerance:absolute=0.2"]
names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]
columns = ["on the letter", "on its last entry"]
d2l.print_ranges(dict(zip(names, near_weights, strict=True)), columns, "near")
d2l.print_ranges(dict(zip(names, far_weights, strict=True)), columns, "far")


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


ways = [unchanged, linear, larger_base, by_parts]

# %% wavelengths
omega = rope_frequencies(32)
wavelengths = [2 * math.pi / way(omega, 4) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in [0, 1, 2, 3, 4, 6, 9, 12, 15]:
    columns = "".join(f"{row[pair]:12.1f}" for row in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def stretched_accuracies(way, tests):
    """Return the rotary models' shares of right answers, (models, tests)."""
    columns = []
    for n, test in tests.items():
        for model in models[Rotary]:
            model.scheme.omega = way(rope_frequencies(32), n / 16)
        columns.append(accuracies(models[Rotary], [test]))
    for model in models[Rotary]:
        model.scheme.omega = rope_frequencies(32)
    return paddle.to_tensor(columns)[:, :, 0].T


long_tests = {n: near_tests[n] for n in lengths[1:]}
stretched_near = [stretched_accuracies(way, long_tests) for way in ways]
stretched_far = [stretched_accuracies(way, far_tests) for way in ways]

# %% stretched-shares tags=["tolerance:absolute=0.15"]
names = ["unchanged", "linear", "larger base", "by parts"]
d2l.print_ranges(dict(zip(names, stretched_near, strict=True)), lengths[1:], "near")
d2l.print_ranges(dict(zip(names, stretched_far, strict=True)), lengths[1:], "far")

# %% solution-values
paddle.seed(0)
X = paddle.randn([6, 8])
omega = rope_frequencies(8)


def shifted_output(shift, turn_values=False, turn_back=False):
    """Attend among six tokens that are shifted by this many positions."""
    positions = paddle.arange(6) + shift
    rotated = rotate(X, positions, omega)
    values = rotated if turn_values else X
    Y = F.softmax(rotated @ rotated.T / math.sqrt(8), axis=-1) @ values
    return rotate(Y, -positions, omega) if turn_back else Y


def change(turn_values=False, turn_back=False):
    start = shifted_output(0, turn_values, turn_back)
    shifted = shifted_output(5, turn_values, turn_back)
    return (shifted - start).abs().max()


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
    order = paddle.concat([paddle.arange(0, 32, 2), paddle.arange(1, 32, 2)])
    if reorder:
        converted.W_q.weight.set_value(model.W_q.weight[:, order])
        converted.W_k.weight.set_value(model.W_k.weight[:, order])
    return converted


# %% solution-layouts-compared
as_trained = models[Rotary]
in_halves = [convert_to_halves(model, reorder=False) for model in as_trained]
in_halves_reordered = [convert_to_halves(model, reorder=True) for model in as_trained]
layout_accuracies = [
    accuracies(runs, [near_tests[16]])
    for runs in [as_trained, in_halves, in_halves_reordered]
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
names = ["as trained", "in halves", "in halves, reordered"]
d2l.print_ranges(dict(zip(names, layout_accuracies, strict=True)))

# %% solution-untouched
paddle.seed(0)
model = Finder(Table(reach=32))
letters, digits, asked, answers = draw_entries(64)
F.cross_entropy(model(letters, digits, asked), answers).backward()
has_gradient = model.scheme.vectors.grad.abs().sum(axis=1) > 0
distances = has_gradient.nonzero()[:, 0] + 1
print("distances with a gradient:")
print(*distances.tolist())


# %% solution-two-layers
class TwoLayers(nn.Layer):
    """Two causal layers above each other, and no encoding at all."""

    def __init__(self, num_hiddens=32):
        super().__init__()
        normal = nn.initializer.Normal()
        self.letter = nn.Embedding(6, num_hiddens, weight_attr=normal)
        self.digit = nn.Embedding(10, num_hiddens, weight_attr=normal)
        d = num_hiddens  # of queries, keys, values and the layer
        self.first = d2l.MultiHeadAttention(d, d, d, d, num_heads=1, dropout=0)
        self.second = d2l.MultiHeadAttention(d, d, d, d, num_heads=1, dropout=0)
        self.output = nn.Linear(num_hiddens, 10)

    def forward(self, letters, digits, asked):
        entries = self.letter(letters) + self.digit(digits)
        X = paddle.concat([entries, self.letter(asked)], axis=1)
        X = X + self.first(X, X, X, causal=True)
        X = X + self.second(X, X, X, causal=True)
        return self.output(X[:, -1:])


# %% solution-two-layers-trained
two_layers = []
for seed in range(5):
    paddle.seed(seed)
    two_layers.append(fit(TwoLayers()))
two_layer_accuracies = accuracies(two_layers, near_tests.values())

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges({"two layers": two_layer_accuracies}, lengths, "entries")
