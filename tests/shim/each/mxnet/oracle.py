"""MXNet's face beside ``d2l.mxnet``; tests/shim/each/oracle.py says what each name is for."""

from functools import partial
from typing import Any

import matplotlib.pyplot as plt

from tests.shim.each import oracle

# First: it makes MXNet importable.
from tests.shim.each.mxnet import language, models, recurrent
from tests.shim.each.oracle import ModuleWith, older

from tests.shim.each.mxnet.adapter import Layer, plain, tensor  # isort: skip
from mxnet import cpu, init, np, npx
from mxnet.gluon import nn

FORMS = {
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
OLDER_FORMS: dict[str, tuple[Any, ...]] = {}
X = np.arange(6.0).reshape(2, 3)
TENSOR_CALLS: dict[str, tuple[Any, ...]] = {
    "normal": (0.0, 1.0, (2, 3)),
    "rand": (2, 3),
    "randn": (2, 3),
    "repeat": (X, 2, 1),
    "to": (X, cpu()),
}
READER = recurrent  # who writes language models
MODELS = models
LANGUAGE = language  # and networks that read sentences
NOT_COMPARED: dict[str, dict[str, str]] = {"1.0.3": {}}


def old_upstream() -> Any:
    d2l = older("mxnet")
    # Matplotlib reads MXNet's arrays no more.
    d2l.plt = ModuleWith(plt, contour=lambda *args, **kwargs: plt.contour(*plain(args), **kwargs))
    return d2l


def upstream() -> Any:
    from d2l import mxnet as d2l

    return d2l


UPSTREAM = {"1.0.3": upstream, "0.17.6": old_upstream}


def twin(ours: Layer, theirs: nn.Block, *inputs: Any) -> Layer:
    built = Layer(theirs)
    built.randomize(*inputs)  # which gives it sizes
    values = ours.layer._collect_params_with_prefix()
    parameters = theirs._collect_params_with_prefix()
    if isinstance(theirs, older("mxnet").Seq2SeqEncoder):
        values = {name.replace("rnn.rnn.", "rnn."): value for name, value in values.items()}
    assert parameters.keys() == values.keys()
    for name, parameter in parameters.items():
        parameter.set_data(values[name].data())
    return built


call = partial(oracle.call, tensor, plain)


def seed() -> None:
    npx.random.seed(7)


run_interface = partial(oracle.run_interface, X)


class Decoder(nn.Block):
    """The simplest there is: the state is the encoder's, and the outputs are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.dense = nn.Dense(7, flatten=False, in_units=4)
        self.initialize(init.Xavier())

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        state = enc_all_outputs[1]
        return (state[0] if isinstance(state, list) else state)[-1]

    def forward(self, X: np.ndarray, state: Any) -> Any:
        self.attention_weights = np.expand_dims(state, 1)
        features = np.tanh(self.embedding(X) + np.expand_dims(state, 1))
        return self.dense(features), features[:, -1]


def _model(d2l: Any, name: str) -> Any:
    parts = d2l.Seq2SeqEncoder(7, 6, 4, 2), Decoder()
    return d2l.EncoderDecoder(*parts) if name == "EncoderDecoder" else d2l.Seq2Seq(*parts, 0, 0.1)


def translate(d2l: Any, name: str, tokens: Any, lens: Any) -> Any:
    model = _model(d2l, name)
    source, lengths = tensor(tokens), tensor(lens)
    Layer(model).randomize(source, source, lengths)
    output = model(source, source, lengths)
    if not hasattr(model, "predict_step"):
        return plain([output])
    batch = source, source, lengths, source
    predicted, weights = model.predict_step(batch, cpu(), 4, True)
    return plain([output, predicted, weights])


class Pair(nn.Block):
    """As D2L 0.17's ``EncoderDecoder``: it gives the state as well."""

    def __init__(self, encoder: nn.Block, decoder: nn.Block) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, X: np.ndarray, Y: np.ndarray, lens: np.ndarray) -> Any:
        return self.decoder(Y, self.decoder.init_state(self.encoder(X, lens), lens))


def functions(d2l: Any, name: str, vocab: Any, batch: Any) -> Any:
    net = _model(d2l, "EncoderDecoder")
    # Upstream's numbers come from lists, of which MXNet makes float32.
    arrays = [tensor(x.astype("float32")) for x in batch]
    Layer(net).randomize(arrays[0], arrays[2], arrays[1])
    npx.random.seed(5)
    if name == "predict_seq2seq":
        return plain(d2l.predict_seq2seq(net, "a b", vocab, vocab, 5, cpu(), True))
    d2l.train_seq2seq(net, [arrays], 0.01, 3, vocab, cpu())
    return plain([parameter.data() for parameter in net.collect_params().values()])
