"""Call JAX's package alongside upstream's ``d2l.jax``; tests/shim/each/oracle.py explains the names.

Upstream's code is from 2023. Features that JAX, Flax and Python have removed since are added here.
"""

import random
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from tests.shim.each.adapter import Adapter
from tests.shim.each.jax import models, recurrent
from tests.shim.each.jax.adapter import Layer, tensor, to_numpy

RECURRENT = recurrent
MODELS = models
NOT_COMPARED: dict[str, dict[str, str]] = {
    "1.0.3": {
        "RNN": "upstream's raises NotImplementedError",
        "RNNLM": "it needs an RNN",
    }
}


class GRUCell(nn.GRUCell):
    """Flax's former cell: its size comes from its state, which a static method makes."""

    features: int = 0

    @staticmethod
    def initialize_carry(rng: Any, batch: tuple[int, ...], size: int) -> jax.Array:
        return jnp.zeros((*batch, size))


class Batches:
    """A stand-in for ``tf.data.Dataset``, which upstream uses, since JAX is installed without TensorFlow.

    It does not use the shim's own loader, since that is compared with it.
    """

    def __init__(self, arrays: Any) -> None:
        self.arrays = [np.asarray(array) for array in arrays]

    def shuffle(self, buffer_size: int) -> "Batches":
        self.is_shuffled = buffer_size > 1
        return self

    def batch(self, size: int) -> "Batches":
        self.starts = range(0, len(self.arrays[0]), size)
        return self

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        rows = np.arange(len(self.arrays[0]))
        if self.is_shuffled:
            np.random.default_rng().shuffle(rows)
        for start in self.starts:
            selected = rows[start : start + self.starts.step]
            yield tuple(array[selected] for array in self.arrays)


def import_upstream() -> Any:
    randint = random.randint
    dataset = SimpleNamespace(Dataset=SimpleNamespace(from_tensor_slices=Batches))
    datasets = SimpleNamespace(as_numpy=lambda batches: batches)
    with pytest.MonkeyPatch.context() as patch:
        # Upstream draws up to 1e6, a float, which Python 3.12 rejects.
        patch.setattr(random, "randint", lambda a, b: randint(a, int(b)))
        patch.setitem(sys.modules, "tensorflow", SimpleNamespace(data=dataset))
        patch.setitem(sys.modules, "tensorflow_datasets", datasets)
        from d2l import jax as d2l
    d2l.get_seed = lambda: randint(0, 1_000_000)
    d2l.int = lambda x=0: int(np.asarray(x).item())  # JAX no longer converts an array of one number
    d2l.jax = _extend(jax, random=_extend(jax.random, PRNGKeyArray=jax.Array))
    d2l.nn = _extend(nn, GRUCell=GRUCell)

    class Trainer(d2l.Trainer):
        """A trainer that clips gradients if asked: upstream's has the method, but never calls it."""

        def prepare_model(self, model: Any) -> None:
            super().prepare_model(model)
            step = model.training_step
            norm = self.gradient_clip_val

            def clipped_step(*args: Any) -> tuple[Any, Any]:
                value, gradients = step(*args)
                return value, self.clip_gradients(norm, gradients) if norm else gradients

            model.training_step = clipped_step

    d2l.Trainer = Trainer
    return d2l


UPSTREAM = {"1.0.3": import_upstream}


def _extend(module: ModuleType, **names: Any) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(module), **names})


def build_twin(ours: Layer, theirs: nn.Module, *inputs: Any) -> Layer:
    return Layer(theirs, ours.variables)


seed = random.seed


def initial_parameters(net: nn.Module, *inputs: Any) -> Any:
    arrays = [x.transpose(0, 2, 3, 1) if x is not None and x.ndim == 4 else x for x in inputs]
    variables = net.init(jax.random.key(0), *Layer.to_tensors(arrays))
    variables.pop("intermediates", None)
    return flatten_dict(variables, sep=".")


class Decoder(nn.Module):
    """A minimal decoder, which computes outputs from embeddings and the encoder's last state."""

    def setup(self) -> None:
        self.embedding = nn.Embed(7, 4)
        self.dense = nn.Dense(7)

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        is_recurrent = isinstance(enc_all_outputs, tuple)
        return enc_all_outputs[1][-1] if is_recurrent else enc_all_outputs[:, -1]

    def __call__(self, X: jax.Array, state: Any, training: bool = False) -> Any:
        self.sow("intermediates", "dec_attention_weights", state[:, None])
        features = jnp.tanh(self.embedding(X) + state[:, None])
        return self.dense(features), features[:, -1]


def translate(adapter: Adapter, d2l: Any, name: str, tokens: Any, lens: Any) -> Any:
    source, lengths = tensor(tokens), tensor(lens)
    batch = source, source, lengths, source
    others = {"tgt_pad": 0, "lr": 0.1} if name == "Seq2Seq" else {}
    results = []
    for encoder in (d2l.Seq2SeqEncoder(7, 6, 4, 2), d2l.TransformerEncoder(7, 4, 8, 2, 2, 0.0)):
        model = getattr(d2l, name)(encoder, decoder=Decoder(), training=False, **others)
        layer = Layer(model)
        layer.randomize(*batch[:-1])
        predicted, weights = model.predict_step(layer.variables["params"], batch, 4, True)
        results.append([layer(*batch[:-1]), to_numpy(predicted), to_numpy(weights)])
    return results
