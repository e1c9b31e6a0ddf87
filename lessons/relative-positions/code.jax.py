# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import dataclasses
import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from flax.traverse_util import path_aware_map

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())


# %% turn
def turn(vector, position):
    """Turn a vector of two numbers by 30 degrees for each position."""
    angle = math.radians(30 * position)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = vector
    return jnp.array([x * cos - y * sin, x * sin + y * cos])


def format_vector(vector):
    x, y = vector
    return f"({x:5.2f}, {y:5.2f})"


# %% turned-by-hand
query = jnp.array([1.0, 2])
key = jnp.array([2.0, 2])
positions_of_both = [(2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)]

print("positions  turned query     turned key      score")
for i, j in positions_of_both:
    q = turn(query, i)
    k = turn(key, j)
    print(f"{i:>4}{j:>4}   {format_vector(q)}  {format_vector(k)}  {q @ k:5.2f}")

# %% four-terms
hand = jnp.array([1.0, 0])  # rotated to a vector's position, then added to it

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
    return base ** (-jnp.arange(0, d, 2) / d)


@jax.jit
def rotate(X, positions, omega):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = positions[:, None] * omega
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    turned = jnp.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return turned.reshape(X.shape)


# %% spread
def spread(scores):
    """Return the largest difference between two scores at one distance."""
    scores = np.asarray(scores)  # JAX would compile for the length of each diagonal
    n = len(scores)
    differences = []
    for offset in range(1 - n, n):
        diagonal = scores.diagonal(offset)
        differences.append(diagonal.max() - diagonal.min())
    return max(differences)


# %% rotary-check
d = 8
n = 40
query, key = jax.random.normal(jax.random.key(0), (2, d))
positions = jnp.arange(n)
omega = rope_frequencies(d)
q = rotate(jnp.tile(query, (n, 1)), positions, omega)
k = rotate(jnp.tile(key, (n, 1)), positions, omega)
scores = q @ k.T
layer_output = d2l.RotaryEncoding(d).apply({}, jnp.tile(query, (1, n, 1)))[0]
length_change = jnp.linalg.norm(q, axis=-1) - jnp.linalg.norm(query)

print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"at one distance they differ by {spread(scores):.4f} at most")
print(f"lengths change by {jnp.abs(length_change).max():.4f} at most")
print(f"the layer: largest difference {jnp.abs(layer_output - q).max():.4f}")


# %% rotate-halves
@jax.jit
def rotate_halves(X, positions, omega):
    """Turn the pairs in the same way, but pair number l with number l + d/2."""
    angles = positions[:, None] * omega
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = jnp.split(X, 2, axis=-1)
    return jnp.concatenate([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
X = jax.random.normal(jax.random.key(1), (n, d))
order = jnp.array([0, 2, 4, 6, 1, 3, 5, 7])
neighbours = rotate(X, positions, omega)
halves = rotate_halves(X[:, order], positions, omega)
layer_output = d2l.RotaryEncoding(d, layout="halves").apply({}, X[None, :, order])[0]

difference = jnp.abs(neighbours[:, order] - halves).max()
print(f"reordered: largest difference {difference:.4f}")
print(f"the layer: largest difference {jnp.abs(layer_output - halves).max():.4f}")

# %% mixed
q_halves = rotate_halves(jnp.tile(query, (n, 1)), positions, omega)
k_halves = rotate_halves(jnp.tile(key, (n, 1)), positions, omega)

print("at one distance, scores differ by")
print(f"{spread(q @ k.T):.4f}  with neighbours for both")
print(f"{spread(q_halves @ k_halves.T):.4f}  with halves for both")
print(f"{spread(q @ k_halves.T):.4f}  with one of each")

# %% slopes
slopes = d2l.alibi_slopes(8)
expected = jnp.array([2.0 ** -(head + 1) for head in range(8)])

fractions = " ".join(f"1/{1 / slope:.0f}" for slope in slopes)
print("slopes:", fractions)
print(f"largest difference: {jnp.abs(slopes - expected).max():.4f}")

# %% alibi-map
n = 12
positions = jnp.arange(n)
distances = positions[:, None] - positions
bias = -slopes[:, None, None] * distances  # (heads, queries, keys)
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
zeros = jnp.zeros((1, n, 8))  # no content: all scores are zero
(_, weights), _ = attention.init_with_output(
    jax.random.key(0), zeros, zeros, zeros, causal=True, score_bias=bias
)

row = " ".join(f"{weight:.3f}" for weight in weights[0, 0, -1, -4:])
print("last row, first head:", row)
d2l.show_heatmaps(
    weights[:, jnp.array([0, 2, 6])],
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
is_first = jnp.zeros((1, 8, 1))
is_first = is_first.at[0, 0].set(1)  # one number per token: is it the first?
zeros = jnp.zeros((1, 8, 2))  # all scores are zero
attention = d2l.DotProductAttention(dropout=0)
for name, causal in [("without a mask", False), ("causal mask", True)]:
    Y, _ = attention.apply({}, zeros, zeros, is_first, causal=causal)
    averages = Y[0, :, 0]
    row = " ".join(f"{x:.3f}" for x in averages)
    print(f"{row}  {name}")

# %% entries
LETTERS = "abcdef"


def draw_entries(rng, count, num_entries=16, nearest=1, farthest=16):
    """Draw texts, and a letter to ask for; it stood last `nearest` to `farthest` back.

    Return letters and digits (count, num_entries), the letters asked for and the
    answers (count, 1).
    """
    # Drawn with NumPy, as data often are, since JAX compiles for each new shape.
    letters = rng.integers(6, size=(count, num_entries))
    digits = rng.integers(10, size=(count, num_entries))
    asked = rng.integers(6, size=(count, 1))
    last = num_entries - rng.integers(nearest, farthest + 1, size=(count, 1))
    others = (asked + rng.integers(1, 6, size=(count, num_entries))) % 6
    positions = np.arange(num_entries)
    letters = np.where(positions == last, asked, letters)
    letters = np.where(positions > last, others, letters)
    return letters, digits, asked, np.take_along_axis(digits, last, axis=1)


def name_entries(letters, digits):
    """Return names such as b2, for one text's entries."""
    pairs = zip(letters, digits, strict=True)
    return [f"{LETTERS[letter]}{digit}" for letter, digit in pairs]


# %% entries-shown
rng = np.random.default_rng(1)
for letters, digits, asked, answer in zip(*draw_entries(rng, 3), strict=True):
    print(*name_entries(letters, digits), f" {LETTERS[asked.item()]}?", answer.item())


# %% no-positions
class PositionScheme(nn.Module):
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
class Finder(nn.Module):
    """A model that finds a letter's last digit; the question follows the text."""

    scheme: nn.Module
    num_hiddens: int = 32

    def setup(self):
        # Vectors of variance 1; Flax's default vectors are shorter.
        normal = nn.initializers.normal(stddev=1)
        self.letter = nn.Embed(6, self.num_hiddens, embedding_init=normal)
        self.digit = nn.Embed(10, self.num_hiddens, embedding_init=normal)
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=False)
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, asked):
        n = letters.shape[1]
        # In NumPy, since JAX's arrays have no values while a function is compiled.
        i = np.array([n])  # the question's position
        j = np.arange(n)  # the entries'
        question = self.scheme.add(self.letter(asked), i)
        X = self.scheme.add(self.letter(letters) + self.digit(digits), j)
        q = self.scheme.turn(self.W_q(question), i)
        k = self.scheme.turn(self.W_k(X), j)
        scores = q @ k.mT / math.sqrt(k.shape[-1]) + self.scheme.bias(q, i - j)
        weights = jax.nn.softmax(scores)
        return self.output(weights @ self.W_v(X)), weights


# %% schemes
class Sinusoids(PositionScheme):
    def add(self, X, positions):
        angles = positions[:, None] * rope_frequencies(X.shape[-1])
        P = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
        return X + P.reshape(len(positions), -1)


class Rotary(PositionScheme):
    # A field, so that a model can be run with other frequencies.
    omega: jax.Array = dataclasses.field(default_factory=lambda: rope_frequencies(32))

    def turn(self, X, positions):
        return rotate(X, positions, self.omega)


class ALiBi(PositionScheme):
    slope: float = 1 / 2

    def bias(self, q, distances):
        return -self.slope * distances


# %% learned-schemes
class Table(PositionScheme):
    reach: int = 16

    def setup(self):
        shape = (self.reach, 32)  # a vector for each distance from 1 on
        self.vectors = self.param("vectors", nn.initializers.zeros, shape)

    def bias(self, q, distances):
        rows = distances.clip(max=self.reach) - 1
        return q @ self.vectors[rows].T / math.sqrt(q.shape[-1])


class Buckets(PositionScheme):
    def setup(self):
        self.numbers = self.param("numbers", nn.initializers.zeros, (8,))

    def bias(self, q, distances):
        rows = np.array([bucket(distance) for distance in distances.tolist()])
        # Adam moves a number by about 0.015 per step; a score has to move by several
        # units.
        return 10 * self.numbers[rows]


# %% train
optimizer = optax.adam(0.015)


def loss(params, apply, letters, digits, asked, answers):
    scores, _ = apply({"params": params}, letters, digits, asked)
    return optax.softmax_cross_entropy_with_integer_labels(scores, answers).mean()


@jax.jit  # compiled once for each module, since the state contains its `apply`
def train_step(state, examples):
    gradients = jax.grad(loss)(state.params, state.apply_fn, *examples)
    return state.apply_gradients(grads=gradients)


def fit(module, seed):
    """Train a module from this seed; return it with its variables."""
    rng = np.random.default_rng(seed)
    letters, digits, asked, _ = draw_entries(rng, 1)  # only for their shapes
    variables = module.init(jax.random.key(seed), letters, digits, asked)
    state = TrainState.create(
        apply_fn=module.apply, params=variables["params"], tx=optimizer
    )
    for _ in range(120):
        state = train_step(state, draw_entries(rng, 64))
    return module, {"params": state.params}


# %% tests
lengths = [16, 32, 64, 128]
# The same texts for every model.
rng = np.random.default_rng(100)
near_tests = {n: draw_entries(rng, 500, n) for n in lengths}
far_tests = {n: draw_entries(rng, 500, n, 17, n) for n in lengths[1:]}


def accuracies(models, tests):
    """Return the share of right answers, (models, tests)."""
    shares = []
    for model in models:
        module, variables = model
        row = []
        for letters, digits, asked, answers in tests:
            scores, _ = module.apply(variables, letters, digits, asked)
            predictions = scores.argmax(axis=-1)
            row.append((predictions == answers).mean().item())
        shares.append(row)
    return shares


# %% train-all
def train_finders(scheme_class, *args):
    """Train a model with this scheme from each of five seeds."""
    module = Finder(scheme_class(*args))
    return [fit(module, seed) for seed in range(5)]


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
    positions = np.arange(letters.shape[-1])
    last = np.where(is_match, positions, -1).max(axis=-1, keepdims=True)
    return positions == last


# %% ask-for-all
def show_weights(schemes, titles, n):
    """Ask for all letters of a new text; draw the weights, and frame the right ones."""
    letters, digits, _, _ = draw_entries(np.random.default_rng(1), 1, n)
    asked = np.arange(6)[None]
    weights = []
    for scheme in schemes:
        module, variables = models[scheme][0]
        _, attention_weights = module.apply(variables, letters, digits, asked)
        weights.append(attention_weights)
    entries = name_entries(letters[0], digits[0])
    d2l.show_heatmaps(
        jnp.stack(weights, axis=1),
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
    is_match = letters == asked
    is_last = find_last(letters, asked)
    shares = []
    for model in models:
        module, variables = model
        _, attention_weights = module.apply(variables, letters, digits, asked)
        weights = attention_weights[:, 0]
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
        stretched = Finder(Rotary(way(rope_frequencies(32), n / 16)))
        runs = [(stretched, variables) for _, variables in models[Rotary]]
        columns.append(accuracies(runs, [test]))
    return np.concatenate(columns, axis=1)


long_tests = {n: near_tests[n] for n in lengths[1:]}
stretched_near = [stretched_accuracies(way, long_tests) for way in ways]
stretched_far = [stretched_accuracies(way, far_tests) for way in ways]

# %% stretched-shares tags=["tolerance:absolute=0.15"]
names = ["unchanged", "linear", "larger base", "by parts"]
d2l.print_ranges(dict(zip(names, stretched_near, strict=True)), lengths[1:], "near")
d2l.print_ranges(dict(zip(names, stretched_far, strict=True)), lengths[1:], "far")

# %% solution-values
X = jax.random.normal(jax.random.key(0), (6, 8))
omega = rope_frequencies(8)


def shifted_output(shift, turn_values=False, turn_back=False):
    """Attend among six tokens that are shifted by this many positions."""
    positions = jnp.arange(6) + shift
    rotated = rotate(X, positions, omega)
    values = rotated if turn_values else X
    Y = jax.nn.softmax(rotated @ rotated.T / math.sqrt(8)) @ values
    return rotate(Y, -positions, omega) if turn_back else Y


def change(turn_values=False, turn_back=False):
    start = shifted_output(0, turn_values, turn_back)
    shifted = shifted_output(5, turn_values, turn_back)
    return jnp.abs(shifted - start).max()


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
    _, variables = model
    order = np.concatenate([np.arange(0, 32, 2), np.arange(1, 32, 2)])

    def reorder_columns(path, W):
        return W[:, order] if "W_q" in path or "W_k" in path else W

    if reorder:
        variables = path_aware_map(reorder_columns, variables)
    return Finder(RotaryHalves()), variables


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
module = Finder(Table(reach=32))
examples = draw_entries(np.random.default_rng(0), 64)
letters, digits, asked, _ = examples
params = module.init(jax.random.key(0), letters, digits, asked)["params"]
compute_gradients = jax.jit(jax.grad(loss), static_argnames="apply")
gradients = compute_gradients(params, module.apply, *examples)
has_gradient = jnp.abs(gradients["scheme"]["vectors"]).sum(axis=1) > 0
distances = has_gradient.nonzero()[0] + 1
print("distances with a gradient:")
print(*distances.tolist())


# %% solution-two-layers
class TwoLayers(nn.Module):
    """Two causal layers above each other, and no encoding at all."""

    num_hiddens: int = 32

    def setup(self):
        normal = nn.initializers.normal(stddev=1)
        self.letter = nn.Embed(6, self.num_hiddens, embedding_init=normal)
        self.digit = nn.Embed(10, self.num_hiddens, embedding_init=normal)
        self.first = d2l.MultiHeadAttention(self.num_hiddens, num_heads=1, dropout=0)
        self.second = d2l.MultiHeadAttention(self.num_hiddens, num_heads=1, dropout=0)
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, asked):
        entries = self.letter(letters) + self.digit(digits)
        X = jnp.concatenate([entries, self.letter(asked)], axis=1)
        Y, _ = self.first(X, X, X, causal=True)
        X = X + Y
        Y, weights = self.second(X, X, X, causal=True)
        X = X + Y
        return self.output(X[:, -1:]), weights


# %% solution-two-layers-trained
module = TwoLayers()
two_layers = [fit(module, seed) for seed in range(5)]
two_layer_accuracies = accuracies(two_layers, near_tests.values())

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
d2l.print_ranges({"two layers": two_layer_accuracies}, lengths, "entries")
