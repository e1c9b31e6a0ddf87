"""PyTorch's face beside ``d2l.torch``; tests/shim/each/oracle.py says what each name is for."""

from functools import partial
from typing import Any

import torch
from torch import nn

from tests.shim.each import oracle
from tests.shim.each.oracle import older
from tests.shim.each.pytorch import language, models, recurrent
from tests.shim.each.pytorch.adapter import Layer, plain, tensor

FORMS = {
    "AddNorm": (8, 0.0),
    "AdditiveAttention": (8, 0.0),
    "BERTEncoder": (7, 8, 16, 2, 2, 0.0, 6),
    "BERTModel": (7, 8, 16, 2, 2, 0.0, 6),
    "DotProductAttention": (0.0,),
    "GRU": (8, 6, 2),
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
OLDER_FORMS: dict[str, tuple[Any, ...]] = {
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
X = torch.arange(6.0).reshape(2, 3)
TENSOR_CALLS: dict[str, tuple[Any, ...]] = {
    "normal": (0.0, 1.0, (2, 3)),
    "ones": (2, 3),
    "rand": (2, 3),
    "randn": (2, 3),
    "repeat": (X, (2, 1)),
    "to": (X, torch.device("cpu")),
    "zeros": (2, 3),
}
READER = recurrent  # who writes language models
MODELS = models
LANGUAGE = language  # and networks that read sentences
NOT_COMPARED: dict[str, dict[str, str]] = {
    "1.0.3": {"split_batch": "upstream's wants GPUs"},
    "0.17.6": {"split_batch": "upstream's wants GPUs"},
}


def upstream() -> Any:
    from d2l import torch as d2l

    return d2l


UPSTREAM = {"1.0.3": upstream, "0.17.6": lambda: older("torch")}


def twin(ours: Layer, theirs: nn.Module, *inputs: Any) -> Layer:
    built = Layer(theirs)
    built(*inputs)  # which gives it sizes
    models.copy(ours.layer, theirs)
    return built


call = partial(oracle.call, tensor, plain)


def seed() -> None:
    torch.manual_seed(7)


run_interface = partial(oracle.run_interface, X)


class Decoder(nn.Module):
    """The simplest there is: the state is the encoder's, and the outputs are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.dense = nn.Linear(4, 7)

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        return enc_all_outputs[1][-1]

    def forward(self, X: torch.Tensor, state: Any) -> Any:
        self.attention_weights = state[:, None]
        features = torch.tanh(self.embedding(X.long()) + state[:, None])
        return self.dense(features), features[:, -1]


def _fill(model: nn.Module) -> nn.Module:
    """Give it parameters that are always the same."""
    torch.manual_seed(3)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def _model(d2l: Any, name: str) -> Any:
    parts = d2l.Seq2SeqEncoder(7, 6, 4, 2), Decoder()
    made = d2l.EncoderDecoder(*parts) if name == "EncoderDecoder" else d2l.Seq2Seq(*parts, 0, 0.1)
    return _fill(made)


def translate(d2l: Any, name: str, tokens: Any, lens: Any) -> Any:
    model = _model(d2l, name).eval()
    source, lengths = tensor(tokens), tensor(lens)
    output = model(source, source, lengths)
    if not hasattr(model, "predict_step"):
        return plain([output])
    batch = source, source, lengths, source
    predicted, weights = model.predict_step(batch, torch.device("cpu"), 4, True)
    return plain([output, predicted, weights])


def xavier(function: Any) -> Any:
    torch.manual_seed(0)
    layers = nn.Linear(3, 4), nn.GRU(3, 4, 2), nn.Embedding(3, 4)
    for layer in layers:
        layer.apply(function)
    return plain([parameter for layer in layers for parameter in layer.parameters()])


class Pair(nn.Module):
    """As D2L 0.17's ``EncoderDecoder``: it gives the state as well."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, X: torch.Tensor, Y: torch.Tensor, lens: torch.Tensor) -> Any:
        return self.decoder(Y, self.decoder.init_state(self.encoder(X, lens), lens))


def functions(d2l: Any, name: str, vocab: Any, batch: Any) -> Any:
    net = _model(d2l, "EncoderDecoder")
    cpu = torch.device("cpu")
    if name == "predict_seq2seq":
        return plain(d2l.predict_seq2seq(net, "a b", vocab, vocab, 5, cpu, True))
    d2l.train_seq2seq(net, [[tensor(x) for x in batch]], 0.01, 3, vocab, cpu)
    return plain([*net.parameters()])
