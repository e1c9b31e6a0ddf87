"""Attention and its gradients in plain float64 formulas, the same to the last bit on every machine.

Sums are loops in a fixed order, and exponentials, powers, sines and cosines are computed by :mod:`decimal`, because those
of NumPy and of matrix libraries differ in the last bits between processors. Each function returns its outputs and the
gradients of sum(direction * output) by name: ``output``, ``weights``, ``gradient_queries``, and so on.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]

PRECISE = Context(prec=40)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


# Sums and functions


def matmul(a: Array, b: Array) -> Array:
    """Return a @ b, added up in the order of the inner axis."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*shape, a.shape[-2], b.shape[-1]))
    for i in range(a.shape[-1]):
        total += a[..., :, i, None] * b[..., None, i, :]
    return total


def add_up(x: Array, axis: int = -1) -> Array:
    """Return the sum over an axis, which stays with length 1, in its order."""
    total = np.zeros_like(np.take(x, [0], axis))
    for i in range(x.shape[axis]):
        total = total + np.take(x, [i], axis)
    return total


def transpose(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def sum_to_shape(x: Array, shape: tuple[int, ...]) -> Array:
    """Add up the axes along which an array of this shape is broadcast."""
    missing = x.ndim - len(shape)
    for axis in range(x.ndim):
        if axis < missing or (shape[axis - missing] == 1 and x.shape[axis] > 1):
            x = add_up(x, axis)
    return x.reshape(shape)


def exp(x: Array) -> Array:
    return _apply(lambda number: number.exp(), x)


def tanh(x: Array) -> Array:
    def compute(number: Decimal) -> Decimal:
        power = (-2 * abs(number)).exp()
        return ((1 - power) / (1 + power)).copy_sign(number)

    return _apply(compute, x)


def _apply(function: Callable[[Decimal], Decimal], x: Array) -> Array:
    numbers = [float(function(Decimal(number))) for number in x.ravel().tolist()]
    return np.array(numbers, np.float64).reshape(x.shape)


def rotate_by(angle: Decimal) -> tuple[float, float]:
    """Return the cosine and the sine of an angle in radians, by their series."""
    angle %= 2 * PI
    term = Decimal(1)
    sums = [Decimal(0), Decimal(0)]
    for i in range(80):
        sums[i % 2] += term if i % 4 < 2 else -term
        term *= angle / (i + 1)
    return float(sums[0]), float(sums[1])


# Masks


def visible_keys(
    arrays: Mapping[str, Array], options: Mapping[str, Any], shape: tuple[int, int, int, int]
) -> Array:
    """Return True for the keys that a query sees, broadcast to a shape (batch, heads, queries, keys)."""
    visible = np.ones(shape, bool)
    num_queries, num_keys = shape[2:]
    query, key = np.ogrid[:num_queries, :num_keys]
    position = query if options.get("causal") == "upper_left" else query + num_keys - num_queries
    if "causal" in options or "window" in options:
        visible &= key <= position
    if "window" in options:
        visible &= (position - key < options["window"]) | (key < options.get("num_sinks", 0))
    if "lengths" in arrays:
        lengths = arrays["lengths"]
        visible &= key < (lengths[:, None] if lengths.ndim == 1 else lengths)[:, None, :, None]
    if "mask" in arrays:
        visible &= arrays["mask"]
    return visible


# Attention


def attend(
    queries: Array,
    keys: Array,
    values: Array,
    visible: Array,
    bias: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array, Callable[[Array], Arrays]]:
    """Return output, weights, and a function from the output's gradient to those of queries, keys, values and scores.

    The shapes are (batch, heads, queries or keys, features); query head h reads key head h // (heads / key heads).
    """
    served = queries.shape[1] // keys.shape[1]
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    many_keys, many_values = (np.repeat(x, served, axis=1) for x in (keys, values))
    scores = matmul(queries, transpose(many_keys)) * scale
    slope = np.ones_like(scores)
    if softcap is not None:
        bounded = tanh(scores / softcap)
        scores, slope = softcap * bounded, 1 - bounded * bounded
    scores = np.where(visible, scores if bias is None else scores + bias, -np.inf)
    highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = exp(scores - np.where(highest == -np.inf, 0, highest))
    total = add_up(powers)
    weights = powers / np.where(total == 0, 1, total)

    def pull_back(direction: Array) -> Arrays:
        d_weights = matmul(direction, transpose(many_values))
        d_scores = weights * (d_weights - add_up(d_weights * weights))
        d_products = d_scores * slope * scale
        gradients = {
            "queries": matmul(d_products, many_keys),
            "keys": matmul(transpose(d_products), queries),
            "values": matmul(transpose(weights), direction),
        }
        for name in ("keys", "values"):  # a head of keys is used by several heads of queries
            x = gradients[name]
            groups = x.reshape(len(x), -1, served, *x.shape[2:])
            gradients[name] = add_up(groups, 2)[:, :, 0]
        return gradients | {"scores": d_scores}

    return matmul(weights, many_values), weights, pull_back


def compute_attention(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    inputs = arrays["queries"], arrays["keys"], arrays["values"]
    bias = arrays.get("bias")
    shape = (*inputs[0].shape[:3], inputs[1].shape[2])
    visible = visible_keys(arrays, options, shape)
    others = options.get("scale"), options.get("softcap")
    output, weights, pull_back = attend(*inputs, visible, bias, *others)
    gradients = pull_back(arrays["direction"])
    d_scores = gradients.pop("scores")
    if bias is not None:
        gradients["bias"] = sum_to_shape(d_scores, bias.shape)
    return {"output": output, "weights": weights} | _prefix(gradients)


def compute_multi_head(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    names = "queries", "keys", "values"
    num_heads = options["num_heads"]
    num_kv_heads = options.get("num_kv_heads", num_heads)
    heads = dict(zip(names, (num_heads, num_kv_heads, num_kv_heads), strict=True))
    parts = {name: split(_project(arrays, arrays[name], name[0]), heads[name]) for name in names}
    bias = arrays.get("bias")
    shape = (*parts["queries"].shape[:3], parts["keys"].shape[2])
    visible = visible_keys(arrays, options, shape)
    inputs = parts["queries"], parts["keys"], parts["values"]
    pooled, weights, pull_back = attend(*inputs, visible, bias)
    output = _project(arrays, merge(pooled), "o")
    gradients = pull_back(split(matmul(arrays["direction"], arrays["W_o"].T), num_heads))
    answers = {name: matmul(merge(gradients[name]), arrays[f"W_{name[0]}"].T) for name in parts}
    if bias is not None:
        answers["bias"] = sum_to_shape(gradients["scores"], bias.shape)
    return {"output": output, "weights": weights} | _prefix(answers)


def _project(arrays: Arrays, x: Array, role: str) -> Array:
    return matmul(x, arrays[f"W_{role}"]) + arrays.get(f"b_{role}", 0.0)


def split(x: Array, num_heads: int) -> Array:
    """Reshape (batch, steps, features) to (batch, heads, steps, features / heads)."""
    return x.reshape(*x.shape[:2], num_heads, -1).swapaxes(1, 2)


def merge(x: Array) -> Array:
    """Reverse :func:`split`."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def _prefix(gradients: Arrays) -> Arrays:
    return {f"gradient_{name}": gradient for name, gradient in gradients.items()}


# Positions


def rotate(x: Array, positions: Array, options: Mapping[str, Any], direction: int = 1) -> Array:
    """Rotate x, shape (batch, heads, steps, features), pair by pair; direction -1 rotates back."""
    size = options.get("rotary_dim", x.shape[-1])
    base, scale = Decimal(options.get("base", 10000)), Decimal(options.get("position_scale", 1))
    positions = np.broadcast_to(positions, (len(x), x.shape[2]))
    rotated = x.copy()
    for pair in range(size // 2):
        halves = options["layout"] == "halves"
        first, second = (pair, pair + size // 2) if halves else (2 * pair, 2 * pair + 1)
        frequency = base ** (Decimal(-2 * pair) / size)
        for row, step in np.ndindex(positions.shape):
            angle = int(positions[row, step]) * scale * frequency * direction
            cos, sin = rotate_by(angle)
            a, b = x[row, :, step, first], x[row, :, step, second]
            rotated[row, :, step, first] = a * cos - b * sin
            rotated[row, :, step, second] = a * sin + b * cos
    return rotated


def compute_rope(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    positions = arrays["positions"]
    output = rotate(arrays["x"], positions, options)
    return {"output": output, "gradient_x": rotate(arrays["direction"], positions, options, -1)}


def slopes(num_heads: int) -> Array:
    """Return ALiBi's slope of each head: those of the next lower power of two, then every second of the next higher."""

    def sequence(count: int) -> list[float]:
        return [float(Decimal(2) ** (Decimal(-8 * h) / count)) for h in range(1, count + 1)]

    power = 1
    while 2 * power <= num_heads:
        power *= 2
    return np.array(sequence(power) + sequence(2 * power)[::2][: num_heads - power])


def alibi_bias(num_heads: int, num_queries: int, num_keys: int) -> Array:
    """Return -slope * |i - j|, shape (heads, queries, keys); the last query stands at the last key."""
    query, key = np.ogrid[num_keys - num_queries : num_keys, :num_keys]
    return -slopes(num_heads)[:, None, None] * np.abs(query - key)


def compute_alibi_slopes(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    return {"output": slopes(options["num_heads"])}


def compute_alibi(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    _, num_heads, num_queries, _ = arrays["queries"].shape
    bias = alibi_bias(num_heads, num_queries, arrays["keys"].shape[2])
    answers = compute_attention(arrays | {"bias": bias}, options)
    del answers["gradient_bias"]
    return answers


def compute_relative(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    """Compute attention with a table of vectors, one for each distance i - j from -far to far."""
    queries, keys, values, table = (arrays[x] for x in ("queries", "keys", "values", "table"))
    far = len(table) // 2
    query, key = np.ogrid[: queries.shape[2], : keys.shape[2]]
    rows = np.clip(query + keys.shape[2] - queries.shape[2] - key, -far, far) + far
    scale = 1 / math.sqrt(queries.shape[-1])
    bias = add_up(queries[:, :, :, None] * table[rows])[..., 0] * scale
    shape = (*queries.shape[:3], keys.shape[2])
    visible = visible_keys(arrays, options, shape)
    output, weights, pull_back = attend(queries, keys, values, visible, bias)
    gradients = pull_back(arrays["direction"])
    d_products = (gradients.pop("scores") * scale)[..., None]
    gradients["queries"] = gradients["queries"] + add_up(d_products * table[rows], 3)[:, :, :, 0]
    gradients["table"] = np.zeros(table.shape)
    by_pair = d_products * queries[:, :, :, None]
    for index in np.ndindex(shape):
        gradients["table"][rows[index[2:]]] += by_pair[index]
    return {"output": output, "weights": weights} | _prefix(gradients)


def bucket(distance: int, num_buckets: int, max_distance: int, *, bidirectional: bool) -> int:
    """Return T5's bucket for a key at this distance after its query; in integers, without a logarithm."""
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = num_buckets // 2
    if distance < exact:
        return first + distance
    steps = num_buckets - exact
    # The largest n with (max_distance / exact)^(n / steps) <= distance / exact.
    count = 0
    while count < steps - 1 and (
        distance**steps * exact ** (count + 1) >= max_distance ** (count + 1) * exact**steps
    ):
        count += 1
    return first + exact + count


def compute_t5_buckets(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    distances = arrays["distances"]
    sizes = options["num_buckets"], options["max_distance"]
    bidirectional = options["bidirectional"]
    buckets = [bucket(d, *sizes, bidirectional=bidirectional) for d in distances.ravel().tolist()]
    return {"output": np.array(buckets, np.int64).reshape(distances.shape)}


# Layers that read a text token by token


def compute_cached(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    """Compute causal self-attention, whose results must be the same with a cache, in chunks."""
    x = arrays["x"]
    num_heads, num_kv_heads = options["num_heads"], options["num_kv_heads"]
    heads = {"q": num_heads, "k": num_kv_heads, "v": num_kv_heads}
    parts = {role: split(_project(arrays, x, role), count) for role, count in heads.items()}
    rope = {"layout": options.get("rope")}
    positions = np.arange(x.shape[1])
    rotated = "qk" if rope["layout"] else ""
    for role in rotated:
        parts[role] = rotate(parts[role], positions, rope)
    shape = len(x), num_heads, x.shape[1], x.shape[1]
    visible = visible_keys({}, {"causal": "lower_right", **options}, shape)
    pooled, _, pull_back = attend(parts["q"], parts["k"], parts["v"], visible)
    output = _project(arrays, merge(pooled), "o")
    pulled = pull_back(split(matmul(arrays["direction"], arrays["W_o"].T), num_heads))
    gradients = {"q": pulled["queries"], "k": pulled["keys"], "v": pulled["values"]}
    for role in rotated:
        gradients[role] = rotate(gradients[role], positions, rope, -1)
    total = np.zeros(x.shape)
    for role, gradient in gradients.items():
        total = total + matmul(merge(gradient), arrays[f"W_{role}"].T)
    chunks = {f"chunks_{size}": output for size in options["chunks"]}
    return {"output": output, "gradient_x": total} | chunks


def compute_linear(arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    """Compute causal linear attention; a key's weight is decay^(i - j) f(q_i) f(k_j) with f(x) = elu(x) + 1."""
    x, decay = arrays["x"], arrays["decay"]
    q, k, v = (split(_project(arrays, x, role), len(decay)) for role in "qkv")
    steps = x.shape[1]
    powers = np.zeros((len(decay), steps, steps))
    for i, j in np.ndindex(steps, steps):
        if j <= i:
            powers[:, i, j] = powers[:, i - 1, j] * decay if j < i else 1.0
    f_q, f_k = (np.where(y > 0, y + 1, exp(np.minimum(y, 0))) for y in (q, k))
    products = matmul(f_q, transpose(f_k)) * powers
    total = add_up(products)
    weights = products / total
    output = _project(arrays, merge(matmul(weights, v)), "o")
    pooled = split(matmul(arrays["direction"], arrays["W_o"].T), len(decay))
    d_weights = matmul(pooled, transpose(v))
    d_products = (d_weights - add_up(d_weights * weights)) / total * powers
    # The derivative of elu(x) + 1 is 1 above 0, and the function itself below.
    gradients = {
        "q": matmul(d_products, f_k) * np.minimum(f_q, 1),
        "k": matmul(transpose(d_products), f_q) * np.minimum(f_k, 1),
        "v": matmul(transpose(weights), pooled),
    }
    gradient = np.zeros(x.shape)
    for role, part in gradients.items():
        gradient = gradient + matmul(merge(part), arrays[f"W_{role}"].T)
    chunks = {f"chunks_{size}": output for size in options["chunks"]}
    return {"output": output, "gradient_x": gradient} | chunks


KINDS: dict[str, Callable[[Arrays, Mapping[str, Any]], Arrays]] = {
    "attention": compute_attention,
    "multi_head": compute_multi_head,
    "rope": compute_rope,
    "alibi_slopes": compute_alibi_slopes,
    "alibi": compute_alibi,
    "relative": compute_relative,
    "t5_buckets": compute_t5_buckets,
    "cached": compute_cached,
    "linear": compute_linear,
}


def compute(kind: str, arrays: Arrays, options: Mapping[str, Any]) -> Arrays:
    """Return the answers to a case of this kind, with decimals of the same precision everywhere."""
    with localcontext(PRECISE):
        return KINDS[kind](arrays, options)
