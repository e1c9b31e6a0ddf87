# The lesson's JAX code, with Flax's layers. Each cell is woven into the text where it is
# asked for by name; the file also runs on its own, from top to bottom.

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

# All is small here; d2l.try_gpu() takes a GPU.
jax.config.update("jax_default_device", d2l.cpu())


# %% turn
def turn(vector, position):
    """A vector of two numbers, turned by 30 degrees for each position."""
    angle = math.radians(30 * position)
    (x, y), cos, sin = vector, math.cos(angle), math.sin(angle)
    return d2l.tensor([x * cos - y * sin, x * sin + y * cos])


def written(vector):
    return "(" + ", ".join(f"{x:5.2f}" for x in vector) + ")"


# %% turned-by-hand
query, key = d2l.tensor([1.0, 2]), d2l.tensor([2.0, 2])
pairs = (2, 0), (5, 3), (9, 7), (5, 4), (9, 8), (0, 2)  # where the two stand

print("positions  turned query     turned key      score")
for i, j in pairs:
    q, k = turn(query, i), turn(key, j)
    print(f"{i:>4}{j:>4}   {written(q)}  {written(k)}  {q @ k:5.2f}")

# %% four-terms
hand = d2l.tensor([1.0, 0])  # what is added: a hand, turned to its position

print("positions    q.k    q.p    p.k    p.p    sum")
for i, j in pairs:
    p_i, p_j = turn(hand, i), turn(hand, j)
    terms = query @ key, query @ p_j, p_i @ key, p_i @ p_j
    score = (query + p_i) @ (key + p_j)
    print(f"{i:>4}{j:>4} ", *(f"{term:6.2f}" for term in (*terms, score)))


# %% rotate
def frequencies(d, base=10000):
    """How far each pair turns from one position to the next, in radians."""
    return base ** (-jnp.arange(0, d, 2) / d)


@jax.jit
def rotate(X, positions, frequencies):
    """Turn each pair of neighbouring numbers by position times frequency."""
    angles = positions[:, None] * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = X[..., ::2], X[..., 1::2]
    turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
    return turned.reshape(X.shape)


# %% spread
def spread(scores):
    """The most by which scores at one distance differ, over all distances."""
    n, scores = len(scores), d2l.numpy(scores)  # JAX would compile for each length
    diagonals = (scores.diagonal(offset) for offset in range(1 - n, n))
    return max(diagonal.max() - diagonal.min() for diagonal in diagonals)


# %% rotary-check
d, n = 8, 40
query, key = jax.random.normal(jax.random.key(10), (2, d))
positions = jnp.arange(n)
q, k = (
    rotate(jnp.tile(each, (n, 1)), positions, frequencies(d)) for each in (query, key)
)
scores = q @ k.T
by_layer = d2l.RotaryEncoding(d).apply({}, jnp.tile(query, (1, n, 1)))[0]
apart = np.linalg.norm(q, axis=-1) - np.linalg.norm(query)

print(f"scores from {scores.min():.2f} to {scores.max():.2f}")
print(f"at one distance they differ by {spread(scores):.4f} at most")
print(f"lengths change by {np.abs(apart).max():.4f} at most")
print(f"the layer: largest difference {jnp.abs(by_layer - q).max():.4f}")


# %% rotate-halves
@jax.jit
def rotate_halves(X, positions, frequencies):
    """The same, but number l has number l + d/2 for a partner."""
    angles = positions[:, None] * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    x, y = jnp.split(X, 2, axis=-1)
    return d2l.concat([x * cos - y * sin, x * sin + y * cos], axis=-1)


# %% layouts
X, omega = jax.random.normal(jax.random.key(11), (n, d)), frequencies(d)
order = d2l.tensor([0, 2, 4, 6, 1, 3, 5, 7])
neighbours = rotate(X, positions, omega)
halves = rotate_halves(X[:, order], positions, omega)
by_layer = d2l.RotaryEncoding(d, layout="halves").apply({}, X[None, :, order])[0]
apart = jnp.abs(neighbours[:, order] - halves).max()
print(f"reordered: largest difference {apart:.4f}")
print(f"the layer: largest difference {jnp.abs(by_layer - halves).max():.4f}")

# %% mixed
q_halves, k_halves = (
    rotate_halves(jnp.tile(each, (n, 1)), positions, omega) for each in (query, key)
)
print("at one distance, scores differ by")
print(f"{spread(q @ k.T):.4f}  with neighbours for both")
print(f"{spread(q_halves @ k_halves.T):.4f}  with halves for both")
print(f"{spread(q @ k_halves.T):.4f}  with one of each")

# %% slopes
slopes = d2l.alibi_slopes(8)
by_hand = [2.0 ** -(head + 1) for head in range(8)]
print("slopes:", *(f"1/{1 / slope:.0f}" for slope in slopes))
print(f"largest difference: {jnp.abs(slopes - d2l.tensor(by_hand)).max():.4f}")

# %% alibi-map
n, positions = 12, jnp.arange(12)
distances = positions[:, None] - positions
attention = d2l.MultiHeadAttention(8, 8, dropout=0)
nothing = jnp.zeros((1, n, 8))  # no content: all scores are zero
bias = -slopes[:, None, None] * distances
attend = jax.jit(attention.init_with_output, static_argnames="causal")
(_, weights), _ = attend(
    jax.random.key(12), nothing, nothing, nothing, causal=True, score_bias=bias
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
    """Near distances have buckets of their own, far ones share: ever wider ones."""
    near = count // 2
    if distance < near:
        return distance
    wider = (count - near) * math.log(distance / near) / math.log(far / near)
    return min(near + int(wider), count - 1)


print("distance:", *(f"{distance:>2}" for distance in range(1, 21)))
print("bucket:  ", *(f"{bucket(distance):>2}" for distance in range(1, 21)))

# %% mask-alone
first = jnp.zeros((1, 8, 1)).at[0, 0].set(1)  # one number to a token: is it the first?
alike = jnp.zeros((1, 8, 2))  # all scores are zero
attend = jax.jit(d2l.DotProductAttention(dropout=0).apply, static_argnames="causal")
for name, causal in ("without a mask", False), ("causal mask", True):
    found, _ = attend({}, alike, alike, first, causal=causal)
    print(*(f"{x:.3f}" for x in d2l.numpy(found)[0, :, 0]), f" {name}")


# %% entries
def entries(rng, count, n=16):
    """Letters and digits; a letter that is there; the digit that it had last."""
    # In NumPy, as data often are: there is nothing to compile for each new shape.
    letters, digits = (rng.integers(high, size=(count, n)) for high in (6, 10))
    asked = np.take_along_axis(letters, rng.integers(n, size=(count, 1)), axis=1)
    last = ((letters == asked) * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)
    return letters, digits, asked, np.take_along_axis(digits, last, axis=1)


examples = entries(np.random.default_rng(13), 3)
for letters, digits, asked, answer in zip(*examples, strict=True):
    line = (f"{chr(97 + x)}{y}" for x, y in zip(letters, digits, strict=True))
    print(*line, f" {chr(97 + asked.item())}?", answer.item())


# %% no-positions
class NoPositions(nn.Module):
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
def table(rows, width):
    """A trainable vector for each row, of variance 1: Flax draws shorter ones."""
    return nn.Embed(rows, width, embedding_init=nn.initializers.normal(stddev=1))


class Finder(nn.Module):
    """Finds the digit that a letter had last; the question is asked after the text."""

    scheme: nn.Module
    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.digit = (table(k, width) for k in (6, 10))
        self.W_q, self.W_k, self.W_v = (
            nn.Dense(width, use_bias=False) for _ in range(3)
        )
        self.output = nn.Dense(10)

    def __call__(self, letters, digits, asked):
        # In NumPy: these are known while JAX compiles.
        there, here = np.arange(letters.shape[1]), np.array([letters.shape[1]])
        X = self.scheme.add(self.letter(letters) + self.digit(digits), there)
        question = self.scheme.add(self.letter(asked), here)
        q = self.scheme.turn(self.W_q(question), here)
        k = self.scheme.turn(self.W_k(X), there)
        scores = q @ k.mT / math.sqrt(k.shape[-1]) + self.scheme.bias(q, here - there)
        weights = jax.nn.softmax(scores)
        return self.output(weights @ self.W_v(X)), weights


# %% schemes
class Sinusoids(NoPositions):
    def add(self, X, positions):
        angles = positions[:, None] * frequencies(X.shape[-1])
        P = d2l.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
        return X + P.reshape(len(positions), -1)


class Rotary(NoPositions):
    def setup(self):
        # A variable that is not trained: others can take its place later.
        self.omega = self.variable("constants", "omega", frequencies, 32)

    def turn(self, X, positions):
        return rotate(X, positions, jax.lax.stop_gradient(self.omega.value))


class ALiBi(NoPositions):
    def bias(self, q, distances):
        return -distances / 2


# %% learned-schemes
class Table(NoPositions):
    reach: int = 16

    def setup(self):
        self.vectors = table(self.reach, 32)  # for the distances from 1 on

    def bias(self, q, distances):
        rows = distances.clip(max=self.reach) - 1
        return q @ self.vectors(rows).T / math.sqrt(q.shape[-1])


class Buckets(NoPositions):
    def setup(self):
        self.numbers = self.param("numbers", nn.initializers.zeros, 8)

    def bias(self, q, distances):
        return self.numbers[np.array([bucket(distance) for distance in distances])]


# %% train
def narrowed(variables):
    """With kernels of variance 1 / (3 d): of those that Flax draws it is 1 / d."""
    return path_aware_map(
        lambda path, W: W / math.sqrt(3) if "kernel" in path else W, variables
    )


def loss(variables, model, examples):
    *given, answers = examples
    logits, _ = model.apply(variables, *given)
    return optax.softmax_cross_entropy_with_integer_labels(logits, answers).mean()


@partial(jax.jit, static_argnames="model")  # compiled once for each kind of model
def fit(model, keys, examples):
    """The variables of one model for each key, trained side by side."""
    adam = optax.adam(0.02)

    def step(state, batch):
        variables, of_adam = state
        gradients = jax.grad(loss)(variables, model, batch)
        updates, of_adam = adam.update(gradients, of_adam)
        return (optax.apply_updates(variables, updates), of_adam), None

    def train_one(key, examples):
        *given, _ = (each[0] for each in examples)
        variables = narrowed(model.init(key, *given))
        state = variables, adam.init(variables)
        (variables, _), _ = jax.lax.scan(step, state, examples)
        return variables

    return jax.vmap(train_one)(keys, examples)


def trained(kind, *parts, seeds=range(5)):
    """A model for each seed, after one pass over its examples, 256 at a time."""
    model = kind(*(part() for part in parts))
    drawn = [entries(np.random.default_rng(seed), 100 * 256) for seed in seeds]
    examples = [
        np.stack(each).reshape(len(drawn), 100, 256, -1)
        for each in zip(*drawn, strict=True)
    ]
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    variables = jax.tree.map(d2l.numpy, fit(model, keys, examples))
    of_seed = (jax.tree.map(itemgetter(i), variables) for i in range(len(drawn)))
    return [model.bind(each) for each in of_seed]


@partial(jax.jit, static_argnames="model")
def ask(model, variables, letters, digits, asked):
    """Logits, and the weights that the question gave."""
    return model.apply(variables, letters, digits, asked)


# The same texts for every model.
lengths = 16, 32, 64, 128
tests = {n: entries(np.random.default_rng(14), 500, n) for n in lengths}


def share_right(model, n):
    *given, answers = tests[n]
    logits, _ = ask(*model.unbind(), *given)
    return (d2l.numpy(logits).argmax(axis=-1) == answers).mean()


# %% train-all
schemes = NoPositions, Sinusoids, Rotary, ALiBi, Table, Buckets
models = {scheme: trained(Finder, scheme) for scheme in schemes}
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
    letters, digits, _, _ = entries(np.random.default_rng(15), 1, n)
    of_schemes = []
    for scheme in Sinusoids, Rotary, ALiBi:
        model = models[scheme][0]
        _, weights = ask(*model.unbind(), letters, digits, np.arange(6)[None])
        of_schemes.append(weights)
    told = (chr(97 + x) for x in letters[0]), (str(x) for x in digits[0])
    return "\n".join(map("".join, told)), np.stack(of_schemes)


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
    _, weights = ask(*model.unbind(), letters, digits, asked)
    weights, has_it = d2l.numpy(weights)[:, 0], letters == asked
    last = (has_it * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)
    on_last = np.take_along_axis(weights, last, axis=1).mean()
    return [(weights * has_it).sum() / 500, on_last]


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
wavelengths = [2 * math.pi / d2l.numpy(way(omega, 4)) for way in ways]
print("pair  turns in 16   unchanged      linear larger base    by parts")
for pair in 0, 1, 2, 3, 4, 6, 9, 12, 15:
    columns = "".join(f"{of_way[pair]:12.1f}" for of_way in wavelengths)
    print(f"{pair:>4}{16 / wavelengths[0][pair]:13.3f}{columns}")


# %% stretched
def share_stretched(model, n, way):
    constants = {"scheme": {"omega": way(omega, n / 16)}}
    variables = model.variables | {"constants": constants}
    return share_right(Finder(Rotary()).bind(variables), n)


stretched = [
    [[share_stretched(model, n, way) for n in lengths[1:]] for model in models[Rotary]]
    for way in ways
]

# %% stretched-shares tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths[1:]), " entries")
in_rows(["unchanged", "linear", "larger base", "by parts"], stretched)

# %% solution-values
X, omega = jax.random.normal(jax.random.key(17), (6, 8)), frequencies(8)


@partial(jax.jit, static_argnums=(1, 2))
def outputs(shift, turned=False, back=False):
    """Attention among six tokens, moved by so many positions."""
    positions = jnp.arange(6) + shift
    q = k = rotate(X, positions, omega)
    v = rotate(X, positions, omega) if turned else X
    Y = jax.nn.softmax(q @ k.T / math.sqrt(8)) @ v
    return rotate(Y, -positions, omega) if back else Y


def change(*how):
    return jnp.abs(outputs(5, *how) - outputs(0, *how)).max()


print("five positions on, outputs differ by")
print(f"{change():.4f}  with values as they are")
print(f"{change(True):.4f}  with values turned")
print(f"{change(True, True):.4f}  with outputs turned back")


# %% solution-layouts
class RotaryHalves(Rotary):
    def turn(self, X, positions):
        return rotate_halves(X, positions, jax.lax.stop_gradient(self.omega.value))


def in_halves(model, reorder):
    """The model in the other layout, its queries and keys reordered or not."""
    order = [*range(0, 32, 2), *range(1, 32, 2)]

    def reordered(path, W):
        return W[:, order] if "W_q" in path or "W_k" in path else W

    variables = model.variables
    if reorder:
        variables = path_aware_map(reordered, variables)
    return Finder(RotaryHalves()).bind(variables)


# %% solution-layouts-compared
in_layouts = [
    [[share_right(model, 16)] for model in models[Rotary]],
    [[share_right(in_halves(model, False), 16)] for model in models[Rotary]],
    [[share_right(in_halves(model, True), 16)] for model in models[Rotary]],
]

# %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
in_rows(["as trained", "in halves", "in halves, reordered"], in_layouts)

# %% solution-untouched
model, examples = Finder(Table(reach=32)), entries(np.random.default_rng(18), 64)
variables = jax.jit(model.init)(jax.random.key(19), *examples[:-1])
gradients = jax.jit(jax.grad(loss), static_argnums=1)(variables, model, examples)
of_vectors = d2l.numpy(gradients["params"]["scheme"]["vectors"]["embedding"])
is_touched = np.abs(of_vectors).sum(axis=1) > 0
print("distances with a gradient:")
print(*(np.flatnonzero(is_touched) + 1).tolist())


# %% solution-two-layers
class TwoLayers(nn.Module):
    """Two causal layers above each other, and no encoding at all."""

    num_hiddens: int = 32

    def setup(self):
        width = self.num_hiddens
        self.letter, self.digit = (table(k, width) for k in (6, 10))
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
two_layers = trained(TwoLayers)
found = [[share_right(model, n) for n in lengths] for model in two_layers]

# %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
print("".join(f"{n:>18}" for n in lengths), " entries")
in_rows(["two layers"], [found])
