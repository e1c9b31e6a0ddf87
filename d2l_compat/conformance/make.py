"""``python -m d2l_compat.conformance.make [FOLDER]``: write the suite's files, the same to the byte on every machine.

Inputs are multiples of 1/512 from -2 to 2, or larger numbers, which float16, float32 and float64 represent exactly. Each
case draws its own from a generator that its name seeds, so that a new case changes no other.
"""

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from d2l_compat.conformance import reference
from d2l_compat.conformance.files import FOLDER, FORMAT, Array, Arrays, write_safetensors

# What each kind computes, and what each feature of a case means.
KINDS = {
    "attention": "softmax(scale * Q K^T) V for queries, keys and values of shape (batch, heads, steps, features); the"
    " scale is 1 / sqrt(features of a query) unless it is given.",
    "multi_head": "Multi-head attention of inputs of shape (batch, steps, features): x W_q + b_q is split into heads,"
    " whose features are consecutive columns; the pooled heads are joined in their order, then W_o and b_o. A matrix"
    " has the shape (inputs, outputs).",
    "rope": "Rotary position embedding of x, shape (batch, heads, steps, features): pair l at position i,"
    " (x, y), becomes (x cos a - y sin a, x sin a + y cos a), with the angle a = i * base^(-2l/d) in radians, d the number"
    " of rotated features and the base 10000 unless it is given.",
    "alibi_slopes": "ALiBi's slopes: head h of H, counted from 1, has 2^(-8h/H).",
    "alibi": "Attention with ALiBi's bias: -slope * |i - j| is added to the score of key j for query i. The last query"
    " stands at the last key.",
    "relative": "Attention with a table of vectors (Shaw et al., 2018): the score is q_i (k_j + a_(i - j)) / sqrt(d)."
    " Rows of the table are the distances i - j from -far to far; a larger distance has the nearest end. The last query"
    " stands at the last key.",
    "t5_buckets": "T5's buckets of the distances j - i, of key j from query i: the lower half of the buckets has one"
    " distance each, the others are spaced logarithmically up to max_distance, and the last has all beyond. On the border"
    " of two buckets the exact logarithm decides, and the distance belongs to the farther one.",
    "cached": "Causal self-attention of x, shape (batch, steps, features), which gives the same results if the text is"
    " read in chunks with a cache of keys and values: chunks_1 token by token, chunks_3 in chunks of 3. Projections"
    " as in multi-head attention, without biases.",
    "linear": "Causal linear attention of x (Katharopoulos et al., 2020): the weight of key j for query i is"
    " decay^(i - j) f(q_i) f(k_j), divided by the sum of the row, with f(x) = elu(x) + 1; in chunks with a state it gives the"
    " same. Projections as in multi-head attention, without biases.",
}
CONVENTIONS = {
    "mask": "True in a mask means that the query sees the key; a mask is broadcast over the axes of length 1.",
    "mask_per_head": "Each head has its own mask.",
    "bias": "The bias is added to the scaled score; minus infinity hides the key.",
    "lengths": "A query sees the first keys, as many as the length of its batch row; a length of 0 hides all.",
    "lengths_per_query": "A query sees the first keys, as many as its own length, shape (batch, queries).",
    "causal": "A query sees the key at its own position, and those before.",
    "causal_lower_right": "The last query stands at the last key: query i of n sees the keys up to m - n + i, of m.",
    "more_queries": "There are more queries than keys: with this alignment the first queries see no key.",
    "causal_upper_left": "The first query stands at the first key: query i sees the keys up to i.",
    "window": "With a window of w, a query sees w keys, its own position the last of them.",
    "grouped": "Query head h of H reads key head h // (H / G), of G: consecutive query heads share one.",
    "scale": "The given scale takes the place of 1 / sqrt(d).",
    "softcap": "A score s becomes cap * tanh(s / cap) after the scale, and before bias and masks.",
    "empty_rows": "A query that sees no key has weights of zero, an output of zero, and no gradient: no NaN, no mean.",
    "value_width": "Values have another width than queries and keys.",
    "large_scores": "Scores reach 10000 and more, exactly representable; the softmax must not overflow.",
    "projection_bias": "Projections have biases.",
    "cross_widths": "Keys and values have other widths than queries, and than each other.",
    "query_width": "Queries have another width than the output.",
    "interleaved": "Pair l consists of the features 2l and 2l + 1.",
    "halves": "Pair l consists of the features l and l + d/2.",
    "offset": "The first position is not 0; positions are consecutive.",
    "positions": "Positions are given for each step, in any order.",
    "positions_per_row": "Each batch row has its own positions, shape (batch, steps).",
    "base": "The base is not 10000.",
    "partial": "Only the first rotary_dim features are rotated, and d is their number; the others pass through.",
    "position_scale": "Positions are multiplied by position_scale (position interpolation).",
    "other_heads": "H is no power of two: the slopes for the next lower power P, then the 1st, 3rd, 5th, ... for 2P.",
    "symmetric": "Without a causal mask, a key after the query is as far as one before it.",
    "more_keys": "There are more keys than queries.",
    "bidirectional": "Half of the buckets is for keys after the query, and these have the higher numbers.",
    "one_way": "A key after the query has bucket 0, as one at its own position.",
    "border": "Some distances lie exactly on the border of two buckets.",
    "rope": "Queries and keys are rotated by their positions, from 0.",
    "no_rope": "Queries and keys are not rotated.",
    "sinks": "A query also sees the first num_sinks tokens of the text, however far.",
    "decay": "Each head has its own decay.",
}
# Reports of implementations that had it otherwise, by kind, feature or case.
ISSUES = {
    "causal_lower_right": (
        "pytorch/pytorch#103082",
        "pytorch/pytorch#108108",
        "ml-explore/mlx#2835",
        "onnx/onnx#8068",
    ),
    "cached": ("google/flax#5591",),
    "empty_rows": ("pytorch/pytorch#160064",),
    "mask": ("keras-team/keras#23038",),
    "other_heads": ("ml-explore/mlx#343",),
    "rope_halves_one_step": ("ml-explore/mlx#3494",),
    "rope_interleaved_one_step": ("ml-explore/mlx#3494",),
    "softcap": ("onnx/onnx#7867",),
}
TOLERANCES = {"float32": 1e-5, "float64": 1e-10}
# Float32 represents an angle of thousands, and the logarithm of a sum that fused kernels keep, to about 1e-3.
FAR = {"tolerances": {"float32": 2e-3}}
FEW = (
    "plain",
    "causal_3x5",
    "mask_empty_row",
    "grouped_4_2",
    "rope_halves_per_row",
    "cached_grouped",
)


class Maker:
    """Collects cases, and computes their answers."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.arrays: Arrays = {}

    def add(
        self,
        name: str,
        kind: str,
        features: str,
        inputs: Arrays,
        options: dict[str, Any] | None = None,
        **entry: Any,
    ) -> None:
        """Add a case with these inputs; ``features`` are separated by spaces."""
        names = features.split()
        options = options or {}
        answers = reference.compute(kind, inputs, options)
        self.entries.append(
            {
                "name": name,
                "kind": kind,
                "features": names,
                "options": options,
                "inputs": [*inputs],
                "answers": [*answers],
                "convention": " ".join([KINDS[kind], *(CONVENTIONS[feature] for feature in names)]),
                "issues": [issue for key in [kind, *names, name] for issue in ISSUES.get(key, ())],
                **entry,
            }
        )
        self.arrays |= {f"{name}/{key}": x for key, x in (inputs | answers).items()}

    def attention(
        self,
        name: str,
        features: str = "",
        sizes: tuple[int, int, int, int] = (2, 2, 4, 4),
        *,
        kind: str = "attention",
        width: int = 4,
        value_width: int = 4,
        num_kv_heads: int | None = None,
        masks: Arrays | None = None,
        **options: Any,
    ) -> None:
        """Add attention for sizes batch, heads, queries and keys, with masks and options."""
        batch, heads, num_queries, num_keys = sizes
        kv_heads = num_kv_heads or heads
        rng = generator(name)
        inputs = {
            "queries": draw(rng, batch, heads, num_queries, width),
            "keys": draw(rng, batch, kv_heads, num_keys, width),
            "values": draw(rng, batch, kv_heads, num_keys, value_width),
            "direction": draw(rng, batch, heads, num_queries, value_width),
        }
        self.add(name, kind, features, inputs | (masks or {}), options)


def generator(name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


def draw(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-512, 513, shape) / 256


def draw_mask(name: str, *shape: int) -> Array:
    """Draw a mask in which each query sees one key at least."""
    mask = generator(f"mask of {name}").integers(0, 2, shape) == 1
    mask[..., 0] |= ~mask.any(axis=-1)
    return mask


def draw_bias(name: str, *shape: int) -> Array:
    return draw(generator(f"bias of {name}"), *shape)


def add_masks(maker: Maker) -> None:
    """Add attention without masks, and with each of them."""
    add = maker.attention
    add("plain")
    add("one_head", "", (1, 1, 3, 3))
    add("one_token", "", (2, 2, 1, 1))
    add("one_query", "", (2, 2, 1, 5))
    add("more_keys", "", (2, 2, 3, 7))
    add("more_queries", "", (2, 2, 7, 3))
    add("width_8", "", (2, 3, 4, 5), width=8, value_width=8)
    add("value_width", "value_width", (2, 2, 3, 5), value_width=6)

    lengths = {
        "all": [4, 4],
        "some": [3, 2],
        "one": [1, 4],
        "zero": [0, 3],
        "all_zero": [0, 0],
    }
    for name, lens in lengths.items():
        features = "lengths" + " empty_rows" * (0 in lens)
        add(f"lengths_{name}", features, masks={"lengths": np.array(lens)})
    per_query = {"some": [[1, 2, 4], [3, 5, 2]], "zero": [[0, 1, 5], [2, 0, 0]]}
    for name, rows in per_query.items():
        features = "lengths_per_query" + " empty_rows" * (name == "zero")
        add(f"lengths_per_query_{name}", features, (2, 2, 3, 5), masks={"lengths": np.array(rows)})
    add("lengths_one_query", "lengths", (2, 2, 1, 6), masks={"lengths": np.array([2, 5])})

    shapes = {"shared": (1, 1, 4, 5), "per_row": (2, 1, 4, 5), "per_head": (2, 3, 4, 5)}
    for name, shape in shapes.items():
        name = f"mask_{name}"
        features = "mask" + " mask_per_head" * (shape[1] > 1)
        add(name, features, (2, 3, 4, 5), masks={"mask": draw_mask(name, *shape)})
    add("mask_keys", "mask", (2, 2, 3, 5), masks={"mask": draw_mask("mask_keys", 2, 1, 1, 5)})
    only_last = np.zeros((1, 1, 4, 4), bool)
    only_last[..., 3] = True
    add("mask_only_last_key", "mask", masks={"mask": only_last})
    empty = draw_mask("mask_empty_row", 2, 1, 4, 5)
    empty[0, 0, 1] = empty[1, 0, 3] = False
    add("mask_empty_row", "mask empty_rows", (2, 2, 4, 5), masks={"mask": empty})
    add("mask_all_empty", "mask empty_rows", masks={"mask": np.zeros((1, 1, 4, 4), bool)})

    for name, shape in shapes.items():
        name = f"bias_{name}"
        add(name, "bias", (2, 3, 4, 5), masks={"bias": draw_bias(name, *shape)})
    hidden = draw_bias("bias_infinite", 2, 2, 4, 5)
    hidden[:, :, 1:3, 1] = hidden[0, 1, :, 4] = -np.inf
    add("bias_infinite", "bias", (2, 2, 4, 5), masks={"bias": hidden})
    hidden = hidden.copy()
    hidden[1, :, 2] = -np.inf
    add("bias_empty_row", "bias empty_rows", (2, 2, 4, 5), masks={"bias": hidden})


def add_causal(maker: Maker) -> None:
    """Add causal attention, for as many queries as keys, fewer and more, and windows."""
    add = maker.attention
    for size in (1, 2, 6):
        add(f"causal_{size}x{size}", "causal", (2, 2, size, size), causal="lower_right")
    for num_queries, num_keys in ((1, 5), (2, 7), (3, 5), (4, 5), (5, 3), (4, 1)):
        sizes = (2, 2, num_queries, num_keys)
        name = f"{num_queries}x{num_keys}"
        features = "causal_lower_right" + " more_queries empty_rows" * (num_queries > num_keys)
        add(f"causal_{name}", features, sizes, causal="lower_right")
        if num_queries not in (2, 4):
            add(f"upper_left_{name}", "causal_upper_left", sizes, causal="upper_left")
    for window in (1, 2, 3, 9):
        add(f"window_{window}", "window", (2, 2, 6, 6), window=window)
    add("window_3x7", "window causal_lower_right", (2, 2, 3, 7), window=2)
    add("window_1x6", "window causal_lower_right", (2, 2, 1, 6), window=3)
    lengths = np.array([6, 4])
    add(
        "window_lengths",
        "window lengths empty_rows",
        (2, 2, 6, 6),
        window=2,
        masks={"lengths": lengths},
    )


def add_mixes(maker: Maker) -> None:
    """Add attention with several masks: a query sees the keys that none of them hides."""
    for num_queries, num_keys in ((5, 5), (3, 5)):
        sizes = (2, 2, num_queries, num_keys)
        causal = "causal" if num_queries == num_keys else "causal_lower_right"
        masks = {
            "lengths": np.array([5, 3]),
            "mask": draw_mask("mixes", 2, 1, num_queries, num_keys)
            | np.eye(num_keys, dtype=bool)[:num_queries],
            "bias": draw_bias("mixes", 1, 2, num_queries, num_keys),
        }
        mixes = ("lengths mask", "lengths bias", "mask bias", "lengths mask bias")
        for mix in ("lengths", "mask", "bias", *mixes):
            chosen = {name: masks[name] for name in mix.split()}
            name = f"{'_'.join(chosen)}_{num_queries}x{num_keys}"
            maker.attention(
                f"causal_{name}", f"{causal} {mix}", sizes, masks=chosen, causal="lower_right"
            )
            if " " in mix:
                maker.attention(name, mix, sizes, masks=chosen)


def add_options(maker: Maker) -> None:
    """Add grouped heads, scales, capped scores and large scores."""
    add = maker.attention
    for heads, kv_heads in ((4, 2), (4, 1), (6, 2), (6, 3)):
        add(f"grouped_{heads}_{kv_heads}", "grouped", (2, heads, 3, 4), num_kv_heads=kv_heads)
    grouped: dict[str, Any] = {"num_kv_heads": 2}
    add("grouped_causal", "grouped causal", (2, 4, 4, 4), causal="lower_right", **grouped)
    add(
        "grouped_causal_2x5",
        "grouped causal_lower_right",
        (2, 4, 2, 5),
        causal="lower_right",
        **grouped,
    )
    masks = {"lengths": np.array([2, 4])}
    add("grouped_lengths", "grouped lengths", (2, 4, 3, 4), masks=masks, **grouped)
    masks = {"mask": draw_mask("grouped_mask", 2, 4, 3, 4)}
    add("grouped_mask", "grouped mask mask_per_head", (2, 4, 3, 4), masks=masks, **grouped)

    add("scale_1", "scale", scale=1.0)
    add("scale_small", "scale", scale=0.125)
    add("scale_causal", "scale causal", scale=0.75, causal="lower_right")

    add("softcap", "softcap", softcap=2.0)
    add("softcap_scale", "softcap scale", softcap=1.5, scale=2.0)
    add("softcap_causal", "softcap causal", softcap=2.0, causal="lower_right")
    masks = {"mask": draw_mask("softcap_mask", 2, 1, 4, 4)}
    add("softcap_mask", "softcap mask", softcap=2.0, masks=masks)
    masks = {"bias": draw_bias("softcap_bias", 1, 2, 4, 4)}
    add("softcap_bias", "softcap bias", softcap=2.0, masks=masks)

    for name, features, factor, options in (
        ("large_scores", "", 128, {}),
        ("large_scores_causal", "causal", 128, {"causal": "lower_right"}),
        ("large_scores_lengths", "lengths", 128, {}),
        ("large_bias", "bias", 1, {}),
    ):
        rng = generator(name)
        # Products of small whole numbers are exact; equal scores share the weight.
        shape = 2, 2, 4, 4
        inputs = {x: float(factor) * rng.integers(-1, 2, shape) for x in ("queries", "keys")}
        inputs |= {x: draw(rng, *shape) for x in ("values", "direction")}
        if features == "lengths":
            inputs["lengths"] = np.array([3, 2])
        if features == "bias":
            inputs["bias"] = 10000.0 * rng.integers(-1, 2, (1, 1, 4, 4))
        maker.add(name, "attention", f"{features} large_scores", inputs, options, **FAR)


def add_multi_head(maker: Maker) -> None:
    """Add multi-head attention with projections."""

    def add(
        name: str,
        features: str = "",
        steps: tuple[int, int] = (4, 4),
        widths: tuple[int, int, int] = (8, 8, 8),
        masks: Arrays | None = None,
        num_heads: int = 2,
        **options: Any,
    ) -> None:
        rng = generator(name)
        inputs = {
            "queries": draw(rng, 2, steps[0], widths[0]),
            "keys": draw(rng, 2, steps[1], widths[1]),
            "values": draw(rng, 2, steps[1], widths[2]),
        }
        kv_width = 8 // num_heads * options.get("num_kv_heads", num_heads)
        shapes = {
            "q": (widths[0], 8),
            "k": (widths[1], kv_width),
            "v": (widths[2], kv_width),
            "o": (8, 8),
        }
        for role, shape in shapes.items():
            inputs[f"W_{role}"] = draw(rng, *shape) / 2
            if "projection_bias" in features:
                inputs[f"b_{role}"] = draw(rng, shape[1])
        inputs["direction"] = draw(rng, 2, steps[0], 8)
        options |= {"num_heads": num_heads}
        maker.add(f"multi_head_{name}", "multi_head", features, inputs | (masks or {}), options)

    for heads in (1, 2, 4):
        add(f"{heads}", num_heads=heads)
    add("bias", "projection_bias")
    add("cross", "", (3, 5))
    add("cross_widths", "cross_widths", (3, 5), (8, 5, 6))
    add("cross_widths_bias", "cross_widths projection_bias", (3, 5), (8, 5, 6))
    add("query_width", "query_width cross_widths", (3, 5), (4, 5, 6))
    add("causal", "causal", causal="lower_right")
    add("causal_3x5", "causal_lower_right", (3, 5), causal="lower_right")
    lengths = {"lengths": np.array([3, 5])}
    add("lengths", "lengths", (4, 5), masks=lengths)
    add("lengths_causal", "lengths causal", (5, 5), masks=lengths, causal="lower_right")
    add("lengths_zero", "lengths empty_rows", (4, 5), masks={"lengths": np.array([0, 4])})
    add("mask", "mask", (4, 5), masks={"mask": draw_mask("multi_head", 2, 1, 4, 5)})
    add(
        "mask_per_head",
        "mask mask_per_head",
        (4, 5),
        masks={"mask": draw_mask("heads", 2, 2, 4, 5)},
    )
    add("score_bias", "bias", (4, 5), masks={"bias": draw_bias("multi_head", 1, 2, 4, 5)})
    add("window", "window", (6, 6), window=2)
    add("grouped_window", "grouped window", (6, 6), num_heads=4, num_kv_heads=2, window=3)
    for kv_heads in (1, 2):
        add(f"grouped_{kv_heads}", "grouped", num_heads=4, num_kv_heads=kv_heads)
    add("grouped_causal", "grouped causal", num_heads=4, num_kv_heads=2, causal="lower_right")


def add_positions(maker: Maker) -> None:
    """Add rotary embeddings, ALiBi, tables of distances and T5's buckets."""

    def rope(
        name: str,
        features: str,
        positions: Any = range(5),
        width: int = 8,
        entry: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        positions = np.array(positions)
        shape = 2, 2, positions.shape[-1], width
        for layout in ("interleaved", "halves"):
            case = f"rope_{layout}{name and '_'}{name}"
            rng = generator(case)
            inputs = {
                "x": draw(rng, *shape),
                "positions": positions,
                "direction": draw(rng, *shape),
            }
            all_options = {"layout": layout, **options}
            maker.add(case, "rope", f"{layout} {features}", inputs, all_options, **(entry or {}))

    rope("", "")
    rope("width_2", "", width=2)
    rope("one_step", "offset", [7])
    rope("offset", "offset", range(20, 25))
    rope("positions", "positions", [3, 0, 12, 5])
    rope("per_row", "positions_per_row", [[0, 1, 2, 3], [7, 8, 9, 10]])
    rope("per_row_one_step", "positions_per_row", [[4], [11]])
    rope("base", "base", base=500)
    rope("base_offset", "base offset", range(9, 13), base=1000000)
    rope("partial", "partial", rotary_dim=4)
    rope("partial_offset", "partial offset", range(6, 10), rotary_dim=4)
    rope("scaled", "position_scale", position_scale=0.25)
    rope("scaled_offset", "position_scale offset", range(17, 21), position_scale=0.5)
    rope("far", "offset", range(4000, 4003), entry=FAR)

    for heads in range(1, 17):
        features = "other_heads" if heads & (heads - 1) else ""
        maker.add(f"alibi_slopes_{heads}", "alibi_slopes", features, {}, {"num_heads": heads})
    for heads in (1, 2, 3, 4, 6):
        features = "other_heads" if heads & (heads - 1) else ""
        causal: dict[str, Any] = {"causal": "lower_right"}
        maker.attention(
            f"alibi_{heads}", f"causal {features}", (1, heads, 5, 5), kind="alibi", **causal
        )
        maker.attention(
            f"alibi_symmetric_{heads}", f"symmetric {features}", (1, heads, 5, 5), kind="alibi"
        )
    maker.attention("alibi_3x5", "causal more_keys", (2, 2, 3, 5), kind="alibi", **causal)
    maker.attention("alibi_1x5", "causal more_keys", (2, 2, 1, 5), kind="alibi", **causal)

    for far in (1, 2, 6):
        table = {"table": draw(generator(f"table {far}"), 2 * far + 1, 4)}
        maker.attention(f"relative_{far}", "", (2, 2, 5, 5), kind="relative", masks=table)
    maker.attention(
        "relative_causal", "causal", (2, 2, 5, 5), kind="relative", masks=table, **causal
    )

    query, key = np.ogrid[:40, :40]
    near = key - query
    far_distances = np.array([[sign * d for d in (40, 57, 100, 127, 129, 500)] for sign in (-1, 1)])
    border = np.array([[sign * d for d in (16, 32, 64, 128)] for sign in (-1, 1)])
    for name, bidirectional in (("bidirectional", True), ("one_way", False)):
        # With 32 buckets, some near distances lie on a border: 16 if bidirectional, 32 if not.
        is_border = np.isin(np.abs(near), (16, 32))
        questions = {"near": np.where(is_border, 0, near), "far": far_distances, "border": border}
        for part, distances in questions.items():
            maker.add(
                f"t5_{name}_{part}",
                "t5_buckets",
                f"{name}{' border' * (part == 'border')}",
                {"distances": distances},
                {"bidirectional": bidirectional, "num_buckets": 32, "max_distance": 128},
            )
        options = {"bidirectional": bidirectional, "num_buckets": 8, "max_distance": 20}
        maker.add(f"t5_{name}_8", "t5_buckets", name, {"distances": near[:9, :9]}, options)


def add_texts(maker: Maker) -> None:
    """Add layers that read a text at once, and in chunks with a cache or a state."""

    def draw_inputs(name: str, width: int, kv_width: int) -> Arrays:
        rng = generator(name)
        inputs = {"x": draw(rng, 2, 7, width)}
        sizes = {"q": width, "k": kv_width, "v": kv_width, "o": width}
        for role, size in sizes.items():
            inputs[f"W_{role}"] = draw(rng, width, size) / 2
        return inputs | {"direction": draw(rng, 2, 7, width)}

    def cached(
        name: str, features: str = "", heads: int = 4, kv_heads: int = 4, **options: Any
    ) -> None:
        width = 16 if "rope" in options else 8
        inputs = draw_inputs(name, width, width // heads * kv_heads)
        options = {"num_heads": heads, "num_kv_heads": kv_heads, "chunks": [1, 3], **options}
        maker.add(f"cached_{name}", "cached", features, inputs, options)

    cached("plain", "no_rope")
    cached("one_head", "no_rope", 1, 1)
    cached("grouped", "no_rope grouped", 4, 2)
    cached("one_kv_head", "no_rope grouped", 4, 1)
    cached("window", "no_rope window", window=3)
    cached("window_1", "no_rope window", window=1)
    cached("sinks", "no_rope window sinks", window=2, num_sinks=1)
    for layout in ("interleaved", "halves"):
        rope: dict[str, Any] = {"rope": layout}
        features = f"rope {layout}"
        cached(f"rope_{layout}", features, **rope)
        cached(f"grouped_rope_{layout}", f"grouped {features}", 4, 2, **rope)
        cached(f"window_rope_{layout}", f"window grouped {features}", 4, 2, window=4, **rope)
        features = f"window sinks grouped {features}"
        cached(f"sinks_rope_{layout}", features, 4, 1, window=3, num_sinks=2, **rope)

    decays = {"1": [1.0], "4": [1.0] * 4, "decay": [0.5, 0.875, 1.0, 0.25], "decay_1": [0.75]}
    for name, decay in decays.items():
        inputs = draw_inputs(f"linear {name}", 8, 8) | {"decay": np.array(decay)}
        features = "decay" if "decay" in name else ""
        maker.add(f"linear_{name}", "linear", features, inputs, {"chunks": [1, 3]})


def make(folder: Path) -> None:
    """Write the files into a folder."""
    maker = Maker()
    for add in (
        add_masks,
        add_causal,
        add_mixes,
        add_options,
        add_multi_head,
        add_positions,
        add_texts,
    ):
        add(maker)
    manifest = {
        "format": FORMAT,
        "tolerances": TOLERANCES,
        "kinds": KINDS,
        "conventions": CONVENTIONS,
        "cases": maker.entries,
    }
    write_safetensors(folder / "cases.safetensors", maker.arrays)
    write_json(folder / "cases.json", manifest)
    few = []
    for entry in maker.entries:
        if entry["name"] in FEW:
            names = [*entry["inputs"], *entry["answers"]]
            arrays = {name: maker.arrays[f"{entry['name']}/{name}"].tolist() for name in names}
            few.append({**entry, "arrays": arrays})
    write_json(folder / "cases.few.json", {**manifest, "cases": few})


def write_json(path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with one line per case."""
    head = {name: value for name, value in manifest.items() if name != "cases"}
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in manifest["cases"])
    text = json.dumps(head, indent=1)[:-2] + f',\n "cases": [\n{lines}\n ]\n}}\n'
    path.write_bytes(text.encode())


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
