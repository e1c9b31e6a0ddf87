"""PaddlePaddle's face beside ``d2l.paddle`` of 0.17.6; tests/shim/each/oracle.py says what each name is for.

Upstream was written for Paddle 2. What is another since is put in its place.
"""

import sys
from functools import partial
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import paddle
from paddle import nn

from tests.shim.each import oracle
from tests.shim.each.oracle import ModuleWith, older
from tests.shim.each.paddle import language, recurrent
from tests.shim.each.paddle.adapter import Layer, plain, tensor

_SIZES = (8, 8, 8, 8, [8], 8)
FORMS = {
    "AddNorm": (8, 0.0),
    "AdditiveAttention": (8, 8, 8, 0.0),
    "BERTEncoder": (7, 8, [8], 8, 16, 2, 2, 0.0, 6, 8, 8, 8),
    "BERTModel": (7, 8, [8], 8, 16, 2, 2, 0.0, 6, 8, 8, 8, 8, 8, 8),
    "DotProductAttention": (0.0,),
    "EncoderBlock": (*_SIZES, 16, 2, 0.0),
    "MaskLM": (7, 8, 8),
    "MultiHeadAttention": (8, 8, 8, 8, 2, 0.0),
    "NextSentencePred": (8,),
    "PositionWiseFFN": (8, 16, 8),
    "PositionalEncoding": (8, 0.0),
    "Residual": (4, 8, True, 2),
    "Seq2SeqEncoder": (7, 6, 4, 2),
    "TransformerEncoder": (7, *_SIZES, 16, 2, 2, 0.0),
}
OLDER_FORMS: dict[str, tuple[Any, ...]] = {}
X = paddle.arange(6, dtype="float32").reshape((2, 3))
TENSOR_CALLS: dict[str, tuple[Any, ...]] = {
    "normal": (0.0, 1.0, (2, 3)),
    "rand": ((2, 3),),
    "randn": ((2, 3),),
    "to": (X, "float64"),
}
READER = recurrent  # who writes language models
LANGUAGE = language  # and networks that read sentences
MODELS = sys.modules[__name__]
NOT_COMPARED: dict[str, dict[str, str]] = {
    "0.17.6": {
        "split_batch": "upstream's calls a function that is not there",
        "try_all_gpus": "of no GPU it makes a device, not a list",
    }
}


def _of(initializer: Any) -> Any:
    """It may be given the weight itself."""

    def initialized(weight: Any = None, **kwargs: Any) -> Any:
        made = initializer(**kwargs)
        return made if weight is None else made(weight)

    return initialized


def upstream() -> ModuleType:
    d2l = older("paddle")
    if not isinstance(d2l.paddle, ModuleWith):
        # It makes initial weights, but does not use them: here it does, so that what follows can be compared.
        initializer = ModuleWith(
            nn.initializer,
            Normal=_of(nn.initializer.Normal),
            XavierUniform=_of(nn.initializer.XavierUniform),
        )
        d2l.nn = ModuleWith(nn, initializer=initializer)
        d2l.int = lambda x=0: int(np.asarray(x).item())  # NumPy 2 takes no array of one number
        d2l.paddle = ModuleWith(
            paddle,
            nn=d2l.nn,
            # Of integers: Paddle 3 multiplies none by a loss.
            ones_like=lambda x: paddle.ones(x.shape),
            # Which upstream takes to be a GPU.
            set_device=lambda name: None,
        )
        mask = d2l.sequence_mask
        # Paddle 3 compares no float with an integer.
        d2l.sequence_mask = lambda X, valid_len, value=0: mask(
            X, valid_len.astype("float32"), value
        )
        # Matplotlib reads Paddle's tensors no more.
        d2l.plt = ModuleWith(
            plt, contour=lambda *args, **kwargs: plt.contour(*plain(args), **kwargs)
        )
    return d2l


UPSTREAM = {"0.17.6": upstream}


def twin(ours: Layer, theirs: nn.Layer, *inputs: Any) -> Layer:
    copy(ours.layer, theirs)
    return Layer(theirs)


def copy(ours: nn.Layer, theirs: nn.Layer) -> None:
    """The names of an encoder's recurrent part are longer in ours."""
    state = {name.replace("rnn.rnn.", "rnn."): array for name, array in ours.state_dict().items()}
    assert theirs.set_state_dict(state) == ([], [])


def answers(model: nn.Layer, X: Any, training: bool = False) -> Any:
    model.train() if training else model.eval()
    return plain(model(tensor(X)))


call = partial(oracle.call, tensor, plain)


def seed() -> None:
    paddle.seed(7)


run_interface = partial(oracle.run_interface, X)


class Decoder(nn.Layer):
    """The simplest there is: the state is the encoder's, and the outputs are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.dense = nn.Linear(4, 7)

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        return enc_all_outputs[1][-1]

    def forward(self, X: paddle.Tensor, state: Any) -> Any:
        self.attention_weights = state.unsqueeze(1)
        features = paddle.tanh(self.embedding(X) + state.unsqueeze(1))
        return self.dense(features), features[:, -1]


def _fill(model: nn.Layer) -> nn.Layer:
    """Give it parameters that are always the same."""
    rng = np.random.default_rng(3)
    for parameter in model.parameters():
        parameter.set_value(rng.normal(scale=0.5, size=parameter.shape).astype("float32"))
    return model


def _model(d2l: Any) -> nn.Layer:
    return _fill(d2l.EncoderDecoder(d2l.Seq2SeqEncoder(7, 6, 4, 2), Decoder()))


def translate(d2l: Any, name: str, tokens: Any, lens: Any) -> Any:
    source = tensor(tokens)
    return plain([_model(d2l)(source, source, tensor(lens))])


def functions(d2l: Any, name: str, vocab: Any, batch: Any) -> Any:
    net = _model(d2l)
    cpu = paddle.CPUPlace()
    if name == "predict_seq2seq":
        return plain(d2l.predict_seq2seq(net, "a b", vocab, vocab, 5, cpu, True))
    d2l.train_seq2seq(net, [[tensor(x.astype("int64")) for x in batch]], 0.01, 3, vocab, cpu)
    return plain([*net.parameters()])
