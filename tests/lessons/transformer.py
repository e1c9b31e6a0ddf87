"""A Transformer in NumPy float64, and the made language of the lesson "transformer": both written afresh."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.shim.reference import LayerNorm, Linear, multi_head_attention

Array = NDArray[Any]
Parts = Mapping[str, Mapping[str, Array]]  # the parameters of a model's parts, by path

PAD, START, NUM_STEPS = 0, 1, 10


# The model


def gelu(x: Array) -> Array:
    """Return x times the probability that a standard normal number is below x."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def tanh_gelu(x: Array) -> Array:
    """Return the approximation that some frameworks use by default."""
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def causal_mask(num_steps: int) -> Array:
    return np.tri(num_steps, dtype=bool)


def padding_mask(tokens: Array) -> Array:
    """Return what may be seen, of shape (batch, heads, queries, keys)."""
    return (tokens != PAD)[:, None, None, :]


def block_paths(
    prefix: str = "", reads_memory: bool = False, norm: str = "LayerNorm", network: str = ""
) -> list[str]:
    """Return the paths of a block's parts that have parameters."""
    norms = ["norm1", "norm3", *["norm2"][: int(reads_memory)]]
    attentions = ["attention", *["cross_attention"][: int(reads_memory)]]
    layers = {"NoNetwork": [], "SwiGLU": ["gate", "dense1", "dense2"]}
    paths = norms if norm != "NoNorm" else []
    paths += [f"{attention}.W_{role}" for attention in attentions for role in "qkvo"]
    paths += [f"network.{name}" for name in layers.get(network, ["dense1", "dense2"])]
    return [prefix + path for path in paths]


TRANSLATOR_PATHS = [
    *("source_embedding", "target_embedding", "position", "encoder_norm", "decoder_norm"),
    *("output", *block_paths("encoder."), *block_paths("decoder.", reads_memory=True)),
]


@dataclass(frozen=True)
class Transformer:
    """A block, or the lesson's translator, with the parameters of a framework's model."""

    parts: Parts
    num_heads: int
    epsilon: float  # what LayerNorm adds to the variance
    rms_epsilon: float  # what RMSNorm adds to the mean square
    activation: Callable[[Array], Array] = gelu
    norm_first: bool = True
    has_residual: bool = True
    is_scaled: bool = True

    def dense(self, path: str, x: Array) -> Array:
        part = self.parts[path]
        return Linear(part["weight"].astype(float), part.get("bias", np.array(0.0)))(x)

    def normalize(self, path: str, x: Array) -> Array:
        if path not in self.parts:
            return x
        part = self.parts[path]
        if "beta" in part:
            return LayerNorm(part["gamma"], part["beta"], self.epsilon)(x)
        mean_square = (x * x).mean(axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.rms_epsilon) * part["gamma"]

    def attend(self, path: str, X: Array, memory: Array, mask: Array) -> tuple[Array, Array]:
        w_q, w_k, w_v, w_o = (
            self.parts[f"{path}.W_{role}"]["weight"].astype(float) for role in "qkvo"
        )
        if not self.is_scaled:
            w_q = w_q * math.sqrt(X.shape[-1] // self.num_heads)
        return multi_head_attention(
            *(X, memory, memory),
            num_heads=self.num_heads,
            w_q=Linear(w_q),
            w_k=Linear(w_k),
            w_v=Linear(w_v),
            w_o=Linear(w_o),
            score_bias=np.where(mask, 0, -np.inf),
        )

    def feed(self, path: str, x: Array) -> Array:
        if f"{path}.dense1" not in self.parts:
            return np.zeros_like(x)
        hidden = self.dense(f"{path}.dense1", x)
        if f"{path}.gate" in self.parts:
            hidden = hidden * silu(self.dense(f"{path}.gate", x))
        else:
            hidden = self.activation(hidden)
        return self.dense(f"{path}.dense2", hidden)

    def add(self, norm: str, X: Array, layer: Callable[[Array], Array]) -> Array:
        old = X if self.has_residual else 0 * X
        if self.norm_first:
            return old + layer(self.normalize(norm, X))
        return self.normalize(norm, old + layer(X))

    def block(
        self, X: Array, mask: Array, memory: Any = None, memory_mask: Any = None, prefix: str = ""
    ) -> tuple[Array, Array]:
        """Return a block's output, and the weights of its attention to the memory."""
        weights = np.array(0.0)

        def look_up(X: Array) -> Array:
            nonlocal weights
            Y, weights = self.attend(f"{prefix}cross_attention", X, memory, memory_mask)
            return Y

        attention = f"{prefix}attention"
        X = self.add(f"{prefix}norm1", X, lambda X: self.attend(attention, X, X, mask)[0])
        if memory is not None:
            X = self.add(f"{prefix}norm2", X, look_up)
        return self.add(f"{prefix}norm3", X, lambda X: self.feed(f"{prefix}network", X)), weights

    def embed(self, table: str, tokens: Array) -> Array:
        X = self.parts[table]["table"].astype(float)[tokens]
        return X + self.parts["position"]["table"][: tokens.shape[1]]

    def translator(self, source: Array, tokens: Array) -> tuple[Array, Array]:
        """Return logits, and the weights of the decoder's attention to the source."""
        mask = padding_mask(source)
        memory, _ = self.block(self.embed("source_embedding", source), mask, prefix="encoder.")
        memory = self.normalize("encoder_norm", memory)
        X = self.embed("target_embedding", tokens)
        causal = causal_mask(tokens.shape[1])
        X, weights = self.block(X, causal, memory, mask, prefix="decoder.")
        return self.dense("output", self.normalize("decoder_norm", X)), weights

    def write(self, source: Array) -> tuple[Array, Array]:
        """Return the most probable words, and the logits of all, computed anew for each word."""
        tokens = np.full((len(source), 1), START)
        for _ in range(NUM_STEPS):
            logits, _ = self.translator(source, tokens)
            tokens = np.concatenate([tokens, logits[:, -1:].argmax(axis=-1)], axis=1)
        return tokens[:, 1:], logits


# The language


def read_pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


NOUNS = read_pairs(
    "dog kano horse kavalo bird uzelo cook koko cat gata cow vaka girl mika queen rega"
)
ADJECTIVES = read_pairs("old vek small pik happy lin red ros quick rap good bon")
VERBS = read_pairs("saw vid heard aud followed sek helped yut fed nut called vok")


def is_plural(noun: str) -> bool:
    return noun not in NOUNS


def find_kind(word: str) -> str:
    """Return the kind of an English word."""
    kinds = {".": "full stop", "the": "article"} | dict.fromkeys(VERBS, "verb")
    return (kinds | dict.fromkeys(ADJECTIVES, "adjective")).get(word, "noun")


def translate_phrase(words: list[str], start: int) -> Iterator[tuple[str, int]]:
    """Yield each word of a phrase's translation, and the place that it comes from."""
    *before, noun = words
    stem = NOUNS[noun.removesuffix("s")]
    ending = {"o": "oi", "a": "ae"}[stem[-1]][is_plural(noun)]
    yield f"l{ending}", start
    yield stem[:-1] + ending, start + len(before)
    for place in range(len(before) - 1, 0, -1):
        yield ADJECTIVES[before[place]] + ending, start + place


def translate(words: list[str]) -> tuple[list[str], list[int]]:
    """Return a sentence's translation, and the places that its words come from."""
    (place,) = (i for i, word in enumerate(words) if word in VERBS)
    pairs = [*translate_phrase(words[:place], 0)]
    pairs += translate_phrase(words[place + 1 : -1], place + 1)
    verb = VERBS[words[place]] + ("ent" if is_plural(words[place - 1]) else "et")
    pairs += [(verb, place), (".", len(words) - 1)]
    return [word for word, _ in pairs], [origin for _, origin in pairs]


def count_sentences(words: list[str]) -> int:
    """Return how many sentences have exactly these words, in any order, with at most one adjective to a noun."""
    nouns = [word for word in words if find_kind(word) == "noun"]
    adjectives = [word for word in words if find_kind(word) == "adjective"]
    adjectives += [""] * (2 - len(adjectives))
    return len({(*n, *a) for n in permutations(nouns) for a in permutations(adjectives)})
