"""Helpers for test_oracle.py, which calls upstream's d2l alongside this project's.

Each framework except MLX, which upstream does not have, defines these names in its ``oracle``, some only if needed:

``UPSTREAM``
    maps a version to a function that imports it, or raises ImportError. Only 1.0.3 has JAX, and only 0.17.6 has
    PaddlePaddle
``LAYER_ARGS``
    arguments of each layer that upstream accepts as well, if they differ from those below
``OLDER_LAYER_ARGS``
    arguments that 0.17.6 accepts, if they differ
``build_twin(ours, theirs, *inputs)``
    wraps upstream's layer in the adapter's ``Layer``, and copies the parameters of our layer into it
``NOT_COMPARED``
    maps a version to names and reasons
``translate(adapter, d2l, name, tokens, lens)``
    replaces ``translate`` below
``draw_xavier_parameters(function)``
    the parameters that ``init_seq2seq`` draws with a fixed seed
``MODELS``, ``RECURRENT``, ``LANGUAGE``
    modules or objects that define models as a reader writes them; ``MODELS.copy(ours, theirs)`` copies parameters
``BATCH_DTYPE``
    the dtype of the batches for ``train_seq2seq``
``parameters(net)``
    the trained parameters of a network
"""

import sys
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.shim.each.adapter import Adapter

# Arguments of layers in D2L 1.0, for most frameworks; LONG_LAYER_ARGS has those that differ in 0.17. Most have widths
# of 8, 2 heads, 16 hidden units, 7 words and no dropout.
LAYER_ARGS: dict[str, tuple[Any, ...]] = {
    "AddNorm": (0.0,),
    "AdditiveAttention": (8, 0.0),
    "BERTEncoder": (7, 8, 16, 2, 2, 0.0, 6),
    "BERTModel": (7, 8, 16, 2, 2, 0.0, 6),
    "DotProductAttention": (0.0,),
    "EncoderBlock": (8, 16, 2, 0.0),
    "GRU": (6, 2),
    "MaskLM": (7, 8),
    "MultiHeadAttention": (8, 2, 0.0),
    "NextSentencePred": (),
    "PositionWiseFFN": (16, 8),
    "PositionalEncoding": (8, 0.0),
    "Seq2SeqEncoder": (7, 6, 4, 2),
    "TransformerEncoder": (7, 8, 16, 2, 2, 0.0),
    "TransformerEncoderBlock": (8, 16, 2, 0.0),
}
_SIZES = (8, 8, 8, 8, [8], 8)  # key_size to ffn_num_input
LONG_LAYER_ARGS: dict[str, tuple[Any, ...]] = {
    "AdditiveAttention": (8, 8, 8, 0.0),
    "BERTEncoder": (7, 8, [8], 8, 16, 2, 2, 0.0, 6, 8, 8, 8),
    "BERTModel": (7, 8, [8], 8, 16, 2, 2, 0.0, 6, 8, 8, 8, 8, 8, 8),
    "EncoderBlock": (*_SIZES, 16, 2, 0.0),
    "MaskLM": (7, 8, 8),
    "MultiHeadAttention": (8, 8, 8, 8, 2, 0.0),
    "NextSentencePred": (8,),
    "PositionWiseFFN": (8, 16, 8),
    "Residual": (4, 8, True, 2),
    "TransformerEncoder": (7, *_SIZES, 16, 2, 2, 0.0),
}
OLDER_FOLDER = Path(sys.prefix, "d2l-0.17")  # where `make` puts it


def import_older(module: str) -> ModuleType:
    """Import the module ``d2l.MODULE`` of version 0.17.6 under another name, alongside that of 1.0.3."""
    name = f"d2l_0_17.{module}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, OLDER_FOLDER / "d2l" / f"{module}.py")
        if spec is None or spec.loader is None or not OLDER_FOLDER.exists():
            raise ImportError(f"{OLDER_FOLDER}: there is no d2l 0.17.6; `make env` installs it")
        sys.modules[name] = module_from_spec(spec)  # where the module looks itself up
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def make_decoder(adapter: Adapter) -> Any:
    """Make a minimal decoder, which computes outputs from embeddings and the encoder's last state."""
    d2l = adapter.d2l

    class Decoder(adapter.Block):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = adapter.Embedding(7, 4)
            self.dense = adapter.build_dense(4, 7)

        def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
            state = enc_all_outputs[1]
            if isinstance(state, list) and len(state[0].shape) == 3:  # in MXNet, 0.17
                (state,) = state
            return state[-1]

        def forward(self, X: Any, state: Any) -> Any:
            self.attention_weights = d2l.expand_dims(state, 1)
            features = d2l.tanh(self.embedding(X) + d2l.expand_dims(state, 1))
            return self.dense(features), features[:, -1]

    setattr(Decoder, adapter.CALL_METHOD, Decoder.forward)
    return adapter.initialize(Decoder())


def make_pair_class(adapter: Adapter) -> Any:
    """Return a class like the ``EncoderDecoder`` of 0.17.6, which also returns the state."""

    class Pair(adapter.Block):  # type: ignore[name-defined, misc]
        def __init__(self, encoder: Any, decoder: Any) -> None:
            super().__init__()
            self.encoder, self.decoder = encoder, decoder

        def forward(self, X: Any, Y: Any, lens: Any) -> Any:
            return self.decoder(Y, self.decoder.init_state(self.encoder(X, lens), lens))

    setattr(Pair, adapter.CALL_METHOD, Pair.forward)
    return Pair


def make_model(adapter: Adapter, d2l: Any, name: str, *inputs: Any) -> Any:
    """Make an ``EncoderDecoder`` or a ``Seq2Seq`` with fixed parameters, and call it with the inputs."""
    parts = d2l.Seq2SeqEncoder(7, 6, 4, 2), make_decoder(adapter)
    model = d2l.EncoderDecoder(*parts) if name == "EncoderDecoder" else d2l.Seq2Seq(*parts, 0, 0.1)
    with warnings.catch_warnings(action="ignore"):  # Keras 3 warns about *args
        adapter.layer(model).randomize(*inputs)
    return model


def run_interface(adapter: Adapter, Class: Any) -> None:
    """Make an object of an interface class, and call it."""
    layer = Class()
    assert not hasattr(layer, "attention_weights")
    X = np.zeros((2, 3), "float32")
    layer.init_state(X) if hasattr(layer, "init_state") else adapter.layer(layer)(X)


def translate(adapter: Adapter, d2l: Any, name: str, tokens: Any, lens: Any) -> Any:
    """Return the output of an ``EncoderDecoder`` or a ``Seq2Seq``, and the results of its ``predict_step``."""
    net = make_model(adapter, d2l, name, tokens, tokens, lens)
    output = adapter.layer(net)(tokens, tokens, lens)
    if not hasattr(d2l, "Seq2Seq"):
        return [output]
    source = adapter.tensor(tokens)
    batch = source, source, adapter.tensor(lens), source
    return [output, *adapter.to_numpy(net.predict_step(batch, adapter.d2l.cpu(), 4, True))]


def train_or_predict(
    adapter: Adapter, oracle: Any, d2l: Any, name: str, vocab: Any, batch: list[Any]
) -> Any:
    """Return an ``EncoderDecoder``'s parameters after ``train_seq2seq``, or the result of ``predict_seq2seq``."""
    arrays = [array.astype(oracle.BATCH_DTYPE) for array in batch]
    net = make_model(adapter, d2l, "EncoderDecoder", arrays[0], arrays[2], arrays[1])
    adapter.seed(5)
    if name == "predict_seq2seq":
        device = (
            [adapter.d2l.cpu()] if "device" in signature(d2l.predict_seq2seq).parameters else []
        )
        return adapter.to_numpy(d2l.predict_seq2seq(net, "a b", vocab, vocab, 5, *device, True))
    d2l.train_seq2seq(net, [adapter.layer.to_tensors(arrays)], 0.01, 3, vocab, adapter.descent.CPU)
    return adapter.to_numpy([*oracle.parameters(net)])


class PatchedModule:
    """A module with some names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
