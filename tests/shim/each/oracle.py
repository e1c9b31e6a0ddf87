"""How test_oracle.py drives upstream's d2l beside the adapter.

A framework's ``oracle`` has these names. MLX has none: upstream has no such adapter.

``UPSTREAM``
    version to a function that gives its module; ImportError where it cannot be imported. Only 1.0.3
    has JAX, only 0.17.6 PaddlePaddle
``FORMS``
    of each layer, arguments that upstream takes as well, where they are not those below
``OLDER_FORMS``
    those that 0.17.6 takes, where they are others
``twin(ours, theirs, *inputs)``
    upstream's layer behind the adapter's ``Layer``, with the parameters of ours
``NOT_COMPARED``
    version to name to reason, of this framework
``translate(adapter, d2l, name, tokens, lens)``
    where the one below does not fit
``xavier(function)``
    the parameters after ``init_seq2seq``, from a fixed seed
``MODELS``
    what copies a model's parameters to upstream's, and what it answers
``INTEGERS``
    the dtype of what ``train_seq2seq`` is given
``parameters(net)``
    all that is trained of a network
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

# Arguments as most frameworks have them in D2L 1.0, and in 0.17 where those are others: widths of 8, 2 heads,
# 16 hidden units, 7 words, no dropout.
FORMS: dict[str, tuple[Any, ...]] = {
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
_SIZES = (8, 8, 8, 8, [8], 8)
LONG_FORMS: dict[str, tuple[Any, ...]] = {
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
OLDER = Path(sys.prefix, "d2l-0.17")  # where `make` puts it


def older(module: str) -> ModuleType:
    """The module ``d2l.MODULE`` of version 0.17.6, under a name of its own: that of 1.0.3 stays what it is."""
    name = f"d2l_0_17.{module}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, OLDER / "d2l" / f"{module}.py")
        if spec is None or spec.loader is None or not OLDER.exists():
            raise ImportError(f"{OLDER}: there is no d2l 0.17.6; `make env` installs it")
        sys.modules[name] = module_from_spec(spec)  # where it looks itself up
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def make_decoder(adapter: Adapter) -> Any:
    """Make the simplest there is: the state is the encoder's, and the outputs are looked up."""
    d2l = adapter.d2l

    class Decoder(adapter.Block):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = adapter.Embedding(7, 4)
            self.dense = adapter.dense(4, 7)

        def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
            state = enc_all_outputs[1]
            if isinstance(state, list) and len(state[0].shape) == 3:  # as MXNet's of 0.17
                (state,) = state
            return state[-1]

        def forward(self, X: Any, state: Any) -> Any:
            self.attention_weights = d2l.expand_dims(state, 1)
            features = d2l.tanh(self.embedding(X) + d2l.expand_dims(state, 1))
            return self.dense(features), features[:, -1]

    setattr(Decoder, adapter.CALL, Decoder.forward)
    return adapter.initialize(Decoder())


def make_pair(adapter: Adapter) -> Any:
    """Return a model as ``EncoderDecoder`` of 0.17.6 is: it gives the state as well."""

    class Pair(adapter.Block):  # type: ignore[name-defined, misc]
        def __init__(self, encoder: Any, decoder: Any) -> None:
            super().__init__()
            self.encoder, self.decoder = encoder, decoder

        def forward(self, X: Any, Y: Any, lens: Any) -> Any:
            return self.decoder(Y, self.decoder.init_state(self.encoder(X, lens), lens))

    setattr(Pair, adapter.CALL, Pair.forward)
    return Pair


def make_model(adapter: Adapter, d2l: Any, name: str, *inputs: Any) -> Any:
    """Make an ``EncoderDecoder`` or a ``Seq2Seq`` of fixed parameters; it is called with the inputs."""
    parts = d2l.Seq2SeqEncoder(7, 6, 4, 2), make_decoder(adapter)
    made = d2l.EncoderDecoder(*parts) if name == "EncoderDecoder" else d2l.Seq2Seq(*parts, 0, 0.1)
    with warnings.catch_warnings(action="ignore"):  # Keras 3 wants *args by name
        adapter.layer(made).randomize(*inputs)
    return made


def run_interface(adapter: Adapter, Class: Any) -> None:
    """Make one and call it."""
    layer = Class()
    if hasattr(layer, "attention_weights"):
        raise AssertionError("there are no weights yet")
    X = np.zeros((2, 3), "float32")
    layer.init_state(X) if hasattr(layer, "init_state") else adapter.layer(layer)(X)


def translate(adapter: Adapter, d2l: Any, name: str, tokens: Any, lens: Any) -> Any:
    """What an ``EncoderDecoder`` or a ``Seq2Seq`` puts out, and what its ``predict_step`` gives."""
    net = make_model(adapter, d2l, name, tokens, tokens, lens)
    output = adapter.layer(net)(tokens, tokens, lens)
    if not hasattr(d2l, "Seq2Seq"):
        return [output]
    source = adapter.tensor(tokens)
    batch = source, source, adapter.tensor(lens), source
    return [output, *adapter.plain(net.predict_step(batch, adapter.d2l.cpu(), 4, True))]


def functions(
    adapter: Adapter, oracle: Any, d2l: Any, name: str, vocab: Any, batch: list[Any]
) -> Any:
    """What ``train_seq2seq`` makes of an ``EncoderDecoder``, or what ``predict_seq2seq`` says with it."""
    arrays = [array.astype(oracle.INTEGERS) for array in batch]
    net = make_model(adapter, d2l, "EncoderDecoder", arrays[0], arrays[2], arrays[1])
    adapter.seed(5)
    if name == "predict_seq2seq":
        device = (
            [adapter.d2l.cpu()] if "device" in signature(d2l.predict_seq2seq).parameters else []
        )
        return adapter.plain(d2l.predict_seq2seq(net, "a b", vocab, vocab, 5, *device, True))
    d2l.train_seq2seq(net, [adapter.layer.given(arrays)], 0.01, 3, vocab, adapter.descent.CPU)
    return adapter.plain([*oracle.parameters(net)])


class ModuleWith:
    """A module, some of whose names mean something else."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
