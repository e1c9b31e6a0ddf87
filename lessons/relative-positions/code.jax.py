# The lesson's JAX code, with Flax's layers. Each cell is woven into the text by
# name; the file also runs on its own, from top to bottom.

# %% setup
import math
import statistics
from functools import partial
from operator import itemgetter

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.traverse_util import path_aware_map

from d2l_compat import jax as d2l

# Small enough for the CPU; d2l.try_gpu() picks a GPU.
jax.config.update("jax_default_device", d2l.cpu())


# %% turn
def turn(vector, position):
    """Turn a vector of two numbers by 30 degrees for each position."""
    angle = math.radians(30 * position)
    (x, y), cos, sin = vector, math.cos(angle), math.sin(angle)
    return d2l.tensor([x * cos - y * sin, x * sin + y * cos])


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
    return base ** (-jnp.arange(0, d, 2) / d)


@jax.jit
def rotate(X, positions, omega):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = positions[:, None] * omega
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return turned.reshape(X.shape)


# %% spread
def spread(scores):
    """Return the largest difference between two scores at one distance."""
    n, scores = len(scores), d2l.numpy(scores)  # JAX would compile for each length
    diagonals = (scores.diagonal(offset) for offset in range(1 - n, n))
    return max(diagonal.max() - diagonal.min() for diagonal in diagonals)


# %% rotary-check
d, n = 8, 40
query, key = jax.random.normal(jax.random.key(10), (2, d))
positions, omega = jnp.arange(n), rope_frequencies(d)
q = rotate(jnp.tile(query, (n, 1)), positions, omega)
k = rotate(jnp.tile(key, (n, 1)), positions, omega)
scores = q @ k.T
layer_output = d2l.RotaryEncoding(d).apply({}, jnp.tile(query, (1, n, 1)))[0]
length_change = np.linalg.norm(q, axis=-1) - np.linalg.norm(query)

print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"at one distance they differ by {spread(scores):.4f} at most")
print(f"lengths change by {np.abs(length_change).max():.4f} at most")
print(f"the layer: largest difference {jnp.abs(layer_output - q).max():.4f}")


# %% rotate-halves
@jax.jit
def rotate_halves(X, positions, omega):
    """Turn the pairs in the same way, but pair number l with number l + d/2."""
    angles = positions[:, None] * omega
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = jnp.split(X, 2, axis=-1)
    return d2l.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
X = jax.random.normal(jax.random.key(11), (n, d))
order = d2l.tensor([0, 2, 4, 6, 1, 3, 5, 7])
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
expected = [2.0 ** -(head + 1) for head in range(8)]
print("slopes:", *(f"1/{1 / slope:.0f}" for slope in slopes))
print(f"largest difference: {jnp.abs(slopes - d2l.tensor(expected)).max():.4f}")

# %% alibi-map
n, positions = 12, jnp.arange(12)
distances = positions[:, None] - positions
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
zeros = jnp.zeros((1, n, 8))  # no content: all scores are zero
bias = -slopes[:, None, None] * distances
attend = jax.jit(attention.init_with_output, static_argnames="causal")
(_, weights), _ = attend(
    jax.random.key(12), zeros, zeros, zeros, causal=True, score_bias=bias
)
weights = d2l.numpy(weights)
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
# one number per token: is it the first?
is_first = jnp.zeros((1, 8, 1)).at[0, 0].set(1)
zeros = jnp.zeros((1, 8, 2))  # all scores are zero
attend = jax.jit(d2l.DotProductAttention(dropout=0).apply, static_argnames="causal")
for name, causal in ("without a mask", False), ("causal mask", True):
    averages, _ = attend({}, zeros, zeros, is_first, causal=causal)
    print(*(f"{x:.3f}" for x in d2l.numpy(averages)[0, :, 0]), f" {name}")


# %% entries
def draw_entries(rng, count, n=16):
    """Draw letters and digits, one of these letters, and the digit it had last."""
    # Drawn with NumPy, as data often are, since JAX compiles for each new shape.
    letters, digits = (rng.integers(high, size=(count, n)) for high in (6, 10))
    asked = np.take_along_axis(letters, rng.integers(n, size=(count, 1)), axis=1)
    last = ((letters == asked) * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)
    return letters, digits, asked, np.take_along_axis(digits, last, axis=1)


examples = draw_entries(np.random.default_rng(13), 3)
for letters, digits, asked, answer in zip(*examples, strict=True):
    line = (f"{chr(97 + x)}{y}" for x, y in zip(letters, digits, strict=True))
    print(*line, f" {chr(97 + asked.item())}?", answer.item())


# %% no-positions
class NoPositions(nn.Module):
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
    """Make a table of trainable vectors of variance 1; Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class Finder(nn.Module):
    """A model that finds a letter's last digit; the question follows the text."""

    scheme: nn.Module
    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.digit = (make_table(k, width) for k in (6, 10))
        self.W_q, self.W_k, self.W_v = (
            nn.Dense(width, use_bias=False) for _ in range(3)
        )
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, asked):
        n = letters.shape[1]
        # In NumPy, since JAX needs these values while it compiles.
        i, j = np.array([n]), np.arange(n)  # of the question, and of the entries
        X = self.scheme.add(self.letter(letters) + self.digit(digits), j)
        question = self.scheme.add(self.letter(asked), i)
        q = self.scheme.turn(self.W_q(question), i)
        k = self.scheme.turn(self.W_k(X), j)
        scores = q @ k.mT / math.sqrt(k.shape[-1]) + self.scheme.bias(q, i - j)
        weights = jax.nn.softmax(scores)
        return self.output(weights @ self.W_v(X)), weights


# %% schemes
class Sinusoids(NoPositions):
    def add(self, X, positions):
        angles = positions[:, None] * rope_frequencies(X.shape[-1])
        P = d2l.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
        return X + P.reshape(len(positions), -1)


class Rotary(NoPositions):
    def setup(self):
        # A variable that is not trained, and can be replaced later.
        self.omega = self.variable("constants", "omega", rope_frequencies, 32)

    def turn(self, X, positions):
        return rotate(X, positions, jax.lax.stop_gradient(self.omega.value))


class ALiBi(NoPositions):
    def bias(self, q, distances):
        return -distances / 2


# %% learned-schemes
class Table(NoPositions):
    reach: int = 16

    def setup(self):
        self.vectors = make_table(self.reach, 32)  # for the distances from 1 on

    def bias(self, q, distances):
        rows = distances.clip(max=self.reach) - 1
        return q @ self.vectors(rows).T / math.sqrt(q.shape[-1])


class Buckets(NoPositions):
    def setup(self):
        self.numbers = self.param("numbers", nn.initializers.zeros, 8)

    def bias(self, q, distances):
        return self.numbers[np.array([bucket(distance) for distance in distances])]


# %% train
def narrow_weights(variables):
    """Scale kernels to a variance of 1 / (3 d): Flax draws them with 1 / d."""
    return path_aware_map(
        lambda path, W: W / math.sqrt(3) if "kernel" in path else W, variables
    )


def loss(variables, model, examples):
    *inputs, answers = examples
    logits, _ = model.apply(variables, *inputs)
    return optax.softmax_cross_entropy_with_integer_labels(logits, answers).mean()


@partial(jax.jit, static_argnames="model")  # compiled once for each kind of model
def fit(model, keys, examples):
    """Train one model for each key, side by side; return their variables."""
    adam = optax.adam(0.02)

    def step(state, batch):
        variables, adam_state = state
        gradients = jax.grad(loss)(variables, model, batch)
        updates, adam_state = adam.update(gradients, adam_state)
        return (optax.apply_updates(variables, updates), adam_state), None

    def train_one(key, examples):
        *inputs, _ = (array[0] for array in examples)
        variables = narrow_weights(model.init(key, *inputs))
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, examples)
        return variables

    return jax.vmap(train_one)(keys, examples)


def train(model_class, *part_classes, seeds=range(5)):
    """Train a model for each seed on one pass over its examples, 256 at a time."""
    parts = [part_class() for part_class in part_classes]
    model = model_class(*parts)
    seed_examples = [
        draw_entries(np.random.default_rng(seed), 100 * 256) for seed in seeds
    ]
    examples = [
        np.stack(arrays).reshape(len(seed_examples), 100, 256, -1)
        for arrays in zip(*seed_examples, strict=True)
    ]
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    variables = jax.tree.map(d2l.numpy, fit(model, keys, examples))
    seed_variables = [jax.tree.map(itemgetter(i), variables) for i in range(len(keys))]
    return [model.bind(variables) for variables in seed_variables]


@partial(jax.jit, static_argnames="model")
def ask(model, variables, letters, digits, asked):
    """Return the logits, and the weights of the question."""
    return model.apply(variables, letters, digits, asked)


# The same texts for every model.
lengths = 16, 32, 64, 128
tests = {n: draw_entries(np.random.default_rng(14), 500, n) for n in lengths}


def accuracy(model, n):
    *inputs, answers = tests[n]
    logits, _ = ask(*model.unbind(), *inputs)
    return (d2l.numpy(logits).argmax(axis=-1) == answers).mean()


# %% train-all
schemes = NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets
models = {scheme: train(Finder, scheme) for scheme in schemes}
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
    letters, digits, _, _ = draw_entries(np.random.default_rng(15), 1, n)
    scheme_weights = []
    for scheme in Sinusoids, Rotary, ALiBi:
        model = models[scheme][0]
        _, weights = ask(*model.unbind(), letters, digits, np.arange(6)[None])
        scheme_weights.append(weights)
    letter_row = "".join(chr(97 + x) for x in letters[0])
    digit_row = "".join(str(x) for x in digits[0])
    return f"{letter_row}\n{digit_row}", np.stack(scheme_weights)


# %% maps tags=["nbval-ignore-output"]
text, weights = ask_all_letters(16)
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
text, weights = ask_all_letters(32)
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
def measure_weight(model, n):
    """Return the weight on all entries with the letter, and on the last of them."""
    letters, digits, asked, _ = tests[n]
    _, weights = ask(*model.unbind(), letters, digits, asked)
    weights, is_match = d2l.numpy(weights)[:, 0], letters == asked
    last = (is_match * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)
    last_weight = np.take_along_axis(weights, last, axis=1).mean()
    return [(weights * is_match).sum() / 500, last_weight]


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
wavelengths = [2 * math.pi / d2l.numpy(way(omega, 4)) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in 0, 1, 2, 3, 4, 6, 9, 12, 15:
    columns = "".join(f"{row[pair]:12.1f}" for row in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def stretched_accuracy(model, n, way):
    constants = {"scheme": {"omega": way(omega, n / 16)}}
    variables = model.variables | {"constants": constants}
    return accuracy(Finder(Rotary()).bind(variables), n)


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
X, omega = jax.random.normal(jax.random.key(17), (6, 8)), rope_frequencies(8)


@partial(jax.jit, static_argnums=(1, 2))
def shifted_output(shift, turn_values=False, turn_back=False):
    """Attend among six tokens that are shifted by this many positions."""
    positions = jnp.arange(6) + shift
    q = k = rotate(X, positions, omega)
    v = rotate(X, positions, omega) if turn_values else X
    Y = jax.nn.softmax(q @ k.T / math.sqrt(8)) @ v
    return rotate(Y, -positions, omega) if turn_back else Y


def change(*options):
    return jnp.abs(shifted_output(5, *options) - shifted_output(0, *options)).max()


print("five positions on, outputs differ by")
print(f"{change():.4f}  with values as they are")
print(f"{change(True):.4f}  with values turned")
print(f"{change(True, True):.4f}  with outputs turned back")


# %% solution-layouts
class RotaryHalves(Rotary):
    def turn(self, X, positions):
        return rotate_halves(X, positions, jax.lax.stop_gradient(self.omega.value))


def convert_to_halves(model, reorder):
    """Return the model in the other layout, its queries and keys reordered or not."""
    order = [*range(0, 32, 2), *range(1, 32, 2)]

    def reorder_columns(path, W):
        return W[:, order] if "W_q" in path or "W_k" in path else W

    variables = model.variables
    if reorder:
        variables = path_aware_map(reorder_columns, variables)
    return Finder(RotaryHalves()).bind(variables)


# %% solution-layouts-compared
layout_accuracies = [
    [[accuracy(model, 16)] for model in models[Rotary]],
    [[accuracy(convert_to_halves(model, False), 16)] for model in models[Rotary]],
    [[accuracy(convert_to_halves(model, True), 16)] for model in models[Rotary]],
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
print_rows(["as trained", "in halves", "in halves, reordered"], layout_accuracies)

# %% solution-untouched
model, examples = Finder(Table(reach=32)), draw_entries(np.random.default_rng(18), 64)
variables = jax.jit(model.init)(jax.random.key(19), *examples[:-1])
gradients = jax.jit(jax.grad(loss), static_argnums=1)(variables, model, examples)
gradient = d2l.numpy(gradients["params"]["scheme"]["vectors"]["embedding"])
has_gradient = np.abs(gradient).sum(axis=1) > 0
print("distances with a gradient:")
print(*(np.flatnonzero(has_gradient) + 1).tolist())


# %% solution-two-layers
class TwoLayers(nn.Module):
    """Two causal layers above each other, and no encoding at all."""

    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.digit = (make_table(k, width) for k in (6, 10))
        self.layers = [d2l.MultiHeadAttention(width, 1, dropout=0) for _ in range(2)]
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, asked):
        entries = self.letter(letters) + self.digit(digits)
        X = d2l.concat([entries, self.letter(asked)], axis=1)
        for layer in self.layers:
            Y, weights = layer(X, X, X, causal=True)
            X = X + Y
        return self.output(X[:, -1:]), weights


# %% solution-two-layers-trained
two_layers = train(TwoLayers)
two_layer_accuracies = [[accuracy(model, n) for n in lengths] for model in two_layers]

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths), " entries")
print_rows(["two layers"], [two_layer_accuracies])
