"""A Transformer block in plain NumPy float64, as a reference for each framework's."""

import math
from typing import Any

import numpy as np

from tests.shim.reference import (
    Array,
    LayerNorm,
    Lengths,
    Linear,
    dot_product_attention,
    multi_head_attention,
    rotary,
)

NUM_HEADS = 4
SLOPES = 1 / 4, 1 / 16, 1 / 64, 1 / 256  # ALiBi's, for four heads


class Block:
    """A block with the parameters of a framework's layer, at ``path``, and the options that it was made with."""

    def __init__(self, layer: Any, path: str = "", **options: Any) -> None:
        self.layer, self.path, self.options = layer, path, options

    def __call__(
        self,
        x: Array,
        lens: Lengths = None,
        memory: Array | None = None,
        memory_lens: Lengths = None,
        score_bias: Array | float = 0.0,
    ) -> Array:
        x = self.add("norm1", x, lambda x: self.attend(x, lens, score_bias))
        if memory is not None:
            x = self.add("norm2", x, lambda x: self.read(x, memory, memory_lens))
        return self.add("norm3", x, self.feed)

    def add(self, norm: str, x: Array, layer: Any) -> Array:
        if self.options.get("norm_first", True):
            return x + layer(self.normalize(norm, x))
        return self.normalize(norm, x + layer(x))

    def normalize(self, name: str, x: Array) -> Array:
        part, epsilon = self.layer.parameters(self.path + name), self.options["norm_epsilon"]
        if self.options.get("norm", "layer") == "layer":
            return LayerNorm(part["gamma"], part["beta"], epsilon)(x)
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * part["gamma"]

    def linear(self, name: str) -> Linear:
        part = self.layer.parameters(self.path + name)
        assert ("bias" in part) == self.options.get("bias", True), name
        return Linear(part["weight"], part.get("bias", 0.0))

    def attend(self, x: Array, lens: Lengths, score_bias: Array | float) -> Array:
        q, k, v = (self.linear(f"attention.W_{role}")(x) for role in "qkv")
        batch, steps, width = q.shape
        size = width // NUM_HEADS
        num_served = width // k.shape[2]  # heads of queries for each head of keys
        biases = np.broadcast_to(score_bias, (batch, NUM_HEADS, steps, steps))
        outputs = []
        for head in range(NUM_HEADS):
            start = head // num_served * size
            q_head = q[..., head * size : (head + 1) * size]
            k_head, v_head = k[..., start : start + size], v[..., start : start + size]
            if self.options.get("positions") == "rope":
                q_head, k_head = (rotary(part, range(steps)) for part in (q_head, k_head))
            bias = biases[:, head] + self.bias(head, steps)
            outputs.append(dot_product_attention(q_head, k_head, v_head, lens, score_bias=bias)[0])
        return self.linear("attention.W_o")(np.concatenate(outputs, axis=-1))

    def bias(self, head: int, steps: int) -> Array:
        """Return what is added to a head's scores: ALiBi's bias, and minus infinity for hidden keys."""
        bias = np.zeros((steps, steps))
        window, num_sinks = self.options.get("window"), self.options.get("num_sinks", 0)
        for i, j in np.ndindex(bias.shape):
            if self.options.get("positions") == "alibi":
                bias[i, j] = -SLOPES[head] * abs(i - j)
            if self.options.get("causal", False) and j > i:
                bias[i, j] = -np.inf
            if window is not None and i - j >= window and j >= num_sinks:
                bias[i, j] = -np.inf
        return bias

    def read(self, x: Array, memory: Array, lens: Lengths) -> Array:
        roles = {f"w_{role}": self.linear(f"cross_attention.W_{role}") for role in "qkvo"}
        return multi_head_attention(x, memory, memory, lens, num_heads=NUM_HEADS, **roles)[0]

    def feed(self, x: Array) -> Array:
        hidden = self.linear("network.dense1")(x)
        match self.options.get("activation", "gelu"):
            case "swiglu":
                gate = self.linear("network.gate")(x)
                hidden = hidden * gate / (1 + np.exp(-gate))
            case "gelu":  # x times the probability that a standard normal number is below x
                hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
            case _:
                hidden = np.maximum(hidden, 0)
        return self.linear("network.dense2")(hidden)
