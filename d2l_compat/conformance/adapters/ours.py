"""The project's own layers, the same in every Python framework."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.files import Array, Arrays, Case
from d2l_compat.frameworks import PYTHON_FRAMEWORKS

KEYS = {"causal", "causal_lower_right", "window"}
OFFERS = {
    "attention": MASKS | KEYS | {"mask_per_head", "bias", "value_width"},
    "multi_head": MASKS
    | KEYS
    | {"mask_per_head", "bias", "projection_bias", "cross_widths", "query_width"},
    "rope": {"interleaved", "halves", "offset", "base", "position_scale"},
    "alibi_slopes": {"other_heads"},
    "alibi": {"causal", "symmetric", "more_keys", "other_heads"},
    "relative": {"causal"},
    "cached": {"grouped", "no_rope", "rope", "interleaved", "window", "sinks"},
    "linear": {"decay"},
}


@dataclass(frozen=True)
class Framework:
    """What differs between frameworks: the module of array functions, and how a layer gets its weights."""

    xp: Any
    answer: Callable[[Case, Callable[[dict[str, Any]], Any]], Arrays]
    tensor: Callable[[Array], Any]
    load: Callable[
        [Any, Arrays, str], Callable[..., Any]
    ]  # returns a function that calls the layer
    layer_options: Callable[[str], dict[str, Any]] = lambda dtype: {}
    has_state: bool = True  # a layer changes a cache, and keeps its weights


def make_adapter(module: str) -> Adapter:
    """Make the adapter of ``d2l_compat.MODULE``."""
    d2l = import_module(f"d2l_compat.{module}")
    framework = FRAMEWORKS[module]()
    info = next(entry for entry in PYTHON_FRAMEWORKS.values() if entry.module == module)
    return Adapter(
        title=f"d2l_compat.{module}",
        packages=("d2l-compat", *(package.distribution for package in info.packages)),
        offers=OFFERS,
        compute=lambda case: Asker(d2l, framework, case).ask(),
    )


class Asker:
    """One case, asked of one framework."""

    def __init__(self, d2l: Any, framework: Framework, case: Case) -> None:
        self.d2l, self.framework, self.case = d2l, framework, case
        floats = [x.dtype.name for x in case.inputs.values() if x.dtype.kind == "f"]
        self.dtype = floats[0] if floats else "float32"
        self.weights = {name: x for name, x in case.inputs.items() if name[:2] in ("W_", "b_")}

    def ask(self) -> Arrays:
        return getattr(self, self.case.kind)()  # type: ignore[no-any-return]

    def build(self, name: str, *args: Any, **options: Any) -> tuple[Any, Callable[..., Any]]:
        """Return a layer, and a function that calls it."""
        options |= self.framework.layer_options(self.dtype)
        layer = getattr(self.d2l, name)(*args, **options)
        return layer, self.framework.load(layer, self.weights, self.dtype)

    def constant(self, x: Array) -> Any:
        return self.framework.tensor(np.asarray(x, self.dtype))

    def shape(self) -> tuple[int, ...]:
        queries, keys = self.case["queries"], self.case["keys"]
        num_heads = self.case.options.get("num_heads", queries.shape[1])
        return len(queries), num_heads, queries.shape[-2], keys.shape[-2]

    def fold(self, x: Any, *shape: int) -> Any:
        """Broadcast to a shape, and join the axes of batch and heads."""
        whole = self.framework.xp.broadcast_to(x, shape)
        return self.framework.xp.reshape(whole, (-1, *shape[2:]))

    def masks(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Return the masks as keyword arguments; a boolean mask becomes a bias."""
        masks: dict[str, Any] = {"causal": True} if "causal" in self.case.options else {}
        if "window" in self.case.options:
            masks["window"] = self.case.options["window"]
        bias = tensors.get("bias")
        mask = self.case.get("mask")
        if mask is not None:
            hidden = self.constant(np.where(np.broadcast_to(mask, self.shape()), 0, -np.inf))
            bias = hidden if bias is None else bias + hidden
        if bias is not None:
            masks["score_bias"] = self.framework.xp.broadcast_to(bias, self.shape())
        return masks

    def attention(self, extra_bias: Callable[[dict[str, Any]], Any] | None = None) -> Arrays:
        layer, call = self.build("DotProductAttention", 0.0)
        shape = self.shape()

        def compute(tensors: dict[str, Any]) -> Any:
            masks = self.masks(tensors)
            if extra_bias is not None:
                masks["score_bias"] = extra_bias(tensors)
            if "score_bias" in masks:
                masks["score_bias"] = self.fold(masks["score_bias"], *shape)
            names = ("queries", "keys", "values")
            inputs = [self.fold(tensors[x], *self.case[x].shape) for x in names]
            lengths = self.case.get("lengths")
            if lengths is not None:
                lengths = self.framework.tensor(lengths.repeat(shape[1], axis=0))
            result = call(*inputs, lengths, **masks)
            output, weights = self.split_weights(layer, result)
            reshape = self.framework.xp.reshape
            return reshape(output, (*shape[:3], -1)), reshape(weights, shape)

        return self.framework.answer(self.case, compute)

    def split_weights(self, layer: Any, result: Any) -> tuple[Any, Any]:
        return (result, layer.attention_weights) if self.framework.has_state else result

    def multi_head(self) -> Arrays:
        sizes = [self.case[name].shape[-1] for name in ("keys", "queries", "values")]
        num_hiddens, num_heads = self.case["W_o"].shape[0], self.case.options["num_heads"]
        has_bias = "b_q" in self.weights
        layer, call = self.build(
            "MultiHeadAttention", *sizes, num_hiddens, num_heads, 0.0, has_bias
        )

        def compute(tensors: dict[str, Any]) -> Any:
            inputs = [tensors[name] for name in ("queries", "keys", "values")]
            result = call(*inputs, tensors.get("lengths"), **self.masks(tensors))
            return self.split_weights(layer, result)

        return self.framework.answer(self.case, compute)

    def rope(self) -> Arrays:
        start = int(self.case["positions"][0])
        names = {"layout", "base", "position_scale"}
        options = {name: x for name, x in self.case.options.items() if name in names}
        shape = self.case["x"].shape
        _, call = self.build("RotaryEncoding", shape[-1], start + shape[2], **options)

        def compute(tensors: dict[str, Any]) -> Any:
            rotated = call(self.fold(tensors["x"], *shape), offset=start)
            return self.framework.xp.reshape(rotated, shape)

        return self.framework.answer(self.case, compute)

    def slopes(self, num_heads: int) -> Array:
        return to_numpy(self.d2l.alibi_slopes(num_heads))

    def alibi_slopes(self) -> Arrays:
        slopes = self.slopes(self.case.options["num_heads"])
        return {"output": slopes.astype("float32")}  # as the documentation says

    def alibi(self) -> Arrays:
        _, num_heads, num_queries, num_keys = self.shape()
        query, key = np.ogrid[num_keys - num_queries : num_keys, :num_keys]
        bias = -self.slopes(num_heads)[:, None, None] * np.abs(query - key)
        return self.attention(lambda tensors: self.constant(bias[None]))

    def relative(self) -> Arrays:
        steps = np.arange(self.shape()[2])
        far = len(self.case["table"]) // 2
        rows = np.clip(steps[:, None] - steps, -far, far) + far
        choice = self.constant(np.eye(2 * far + 1)[rows])  # selects the rows in every framework

        def bias(tensors: dict[str, Any]) -> Any:
            xp, queries = self.framework.xp, tensors["queries"]
            vectors = xp.einsum("qkr,rd->qkd", choice, tensors["table"])
            return xp.einsum("bhqd,qkd->bhqk", queries, vectors) / math.sqrt(queries.shape[-1])

        return self.attention(bias)

    def cached(self) -> Arrays:
        options = dict(self.case.options)
        num_heads, chunks = options.pop("num_heads"), options.pop("chunks")
        options["rope"] = "rope" in options
        width = self.case["x"].shape[2]
        layer, call = self.build("CausalSelfAttention", width, num_heads, **options)
        answers = self.framework.answer(self.case, lambda tensors: call(tensors["x"]))

        def make_cache(steps: int) -> Any:
            extra = () if self.framework.has_state else (self.dtype,)
            return layer.make_cache(len(self.case["x"]), steps, *extra)

        return answers | self.read(call, chunks, "cache", make_cache)

    def linear(self) -> Arrays:
        decay = self.case["decay"].tolist()
        width = self.case["x"].shape[2]
        layer, call = self.build("LinearAttention", width, len(decay), decay=decay)
        answers = self.framework.answer(self.case, lambda tensors: call(tensors["x"]))

        def make_state(steps: int) -> Any:
            extra = () if self.framework.has_state else (self.dtype,)
            return layer.make_state(len(self.case["x"]), *extra)

        return answers | self.read(call, self.case.options["chunks"], "state", make_state)

    def read(
        self, call: Callable[..., Any], chunks: list[int], name: str, make: Callable[[int], Any]
    ) -> Arrays:
        """Read the text in chunks, with a cache or a state."""
        x = self.case["x"]
        answers = {}
        for size in chunks:
            memory, parts = make(x.shape[1]), []
            for start in range(0, x.shape[1], size):
                part = call(self.constant(x[:, start : start + size]), **{name: memory})
                if not self.framework.has_state:
                    part, memory = part
                parts.append(to_numpy(part))
            answers[f"chunks_{size}"] = np.concatenate(parts, axis=1)
        return answers


def to_numpy(x: Any) -> Array:
    """Return an array of any framework; TensorFlow's have no method ``tolist``."""
    return np.array(x.tolist() if hasattr(x, "tolist") else x)


def torch() -> Framework:
    import torch as xp

    from d2l_compat.conformance.adapters._torch import answer

    def load(layer: Any, weights: Arrays, dtype: str) -> Any:
        layer = layer.to(getattr(xp, dtype)).eval()
        kinds = {"W": "weight", "b": "bias"}
        state = {f"W_{n[2]}.{kinds[n[0]]}": xp.tensor(x.T) for n, x in weights.items()}
        if state:
            layer.load_state_dict(state)
        return layer

    return Framework(xp, answer, xp.tensor, load)


def tensorflow() -> Framework:
    import tensorflow as xp

    from d2l_compat.conformance.adapters._tensorflow import answer

    def load(layer: Any, weights: Arrays, dtype: str) -> Any:
        roles = [name[2] for name in weights if name.startswith("W_")]
        if roles and not layer.built:
            is_multi_head = hasattr(layer, "attention")
            shapes = [(None, None, len(weights[f"W_{role}"])) for role in "qkv"]
            layer.build(*(shapes if is_multi_head else shapes[:1]))
        for role in roles:
            arrays = [weights[name] for name in (f"W_{role}", f"b_{role}") if name in weights]
            getattr(layer, f"W_{role}").set_weights(arrays)
        return layer

    return Framework(xp, answer, xp.constant, load, lambda dtype: {"dtype": dtype})


def jax() -> Framework:
    from jax import numpy as xp

    from d2l_compat.conformance.adapters._jax import answer

    def load(layer: Any, weights: Arrays, dtype: str) -> Any:
        parameters: dict[str, dict[str, Any]] = {}
        for name, x in weights.items():
            kind = {"W": "kernel", "b": "bias"}[name[0]]
            parameters.setdefault(f"W_{name[2]}", {})[kind] = xp.asarray(x)

        def call(*args: Any, **options: Any) -> Any:
            return layer.apply({"params": parameters}, *args, **options)

        return call

    return Framework(xp, answer, xp.asarray, load, has_state=False)


def mxnet() -> Framework:
    from d2l_compat.conformance.adapters._mxnet import answer  # isort: split

    from mxnet import init
    from mxnet import np as xp

    def tensor(x: Array) -> Any:
        return xp.array(x, dtype=x.dtype)

    def load(layer: Any, weights: Arrays, dtype: str) -> Any:
        layer.cast(dtype)
        layer.initialize(init.Orthogonal())
        kinds = {"W": "weight", "b": "bias"}
        for name, x in weights.items():
            getattr(getattr(layer, f"W_{name[2]}"), kinds[name[0]]).set_data(tensor(x.T))

        def call(*args: Any, offset: int | None = None, **options: Any) -> Any:
            return layer(*args, **options) if offset is None else layer(*args, offset)

        return call

    return Framework(xp, answer, tensor, load)


def paddle() -> Framework:
    from d2l_compat.conformance.adapters._paddle import answer  # isort: split

    import paddle as xp

    def tensor(x: Array) -> Any:
        return xp.to_tensor(np.array(x))

    def load(layer: Any, weights: Arrays, dtype: str) -> Any:
        layer = layer.to(dtype=dtype)
        layer.eval()
        kinds = {"W": "weight", "b": "bias"}
        layer.set_state_dict({f"W_{n[2]}.{kinds[n[0]]}": tensor(x) for n, x in weights.items()})
        return layer

    return Framework(xp, answer, tensor, load)


def mlx() -> Framework:
    import mlx.core as xp

    from d2l_compat.conformance.adapters._mlx import answer, tensor

    def load(layer: Any, weights: Arrays, dtype: str) -> Any:
        kinds = {"W": "weight", "b": "bias"}
        layer.load_weights([(f"W_{n[2]}.{kinds[n[0]]}", tensor(x.T)) for n, x in weights.items()])
        layer.set_dtype(getattr(xp, dtype))
        return layer.eval()

    return Framework(xp, answer, tensor, load)


FRAMEWORKS: dict[str, Callable[[], Framework]] = {
    "torch": torch,
    "tensorflow": tensorflow,
    "jax": jax,
    "mxnet": mxnet,
    "paddle": paddle,
    "mlx": mlx,
}
