"""A Transformer with a decoder, written on each face as a reader of D2L writes it, and trained.

Every framework's ``translator`` has a ``Decoder``, of the sizes that are here. JAX's is trained in its own way.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

WIDTH, HIDDEN, HEADS, BLOCKS = 32, 64, 4, 1
Pairs = tuple[list[str], list[str]]


@dataclass
class Translations:
    sentences: list[str]  # without <eos> and what comes after
    weights: list[Any]  # of the decoder's attention to the source, a step each, of one sentence
    losses: list[float]  # as training drew them


def sentence(tokens: list[str]) -> str:
    """Tokens up to the end of the sentence."""
    end = tokens.index("<eos>") if "<eos>" in tokens else len(tokens)
    return " ".join(tokens[:end])


def with_trainer(face: Any, data: Any, pairs: Pairs, epochs: int) -> Translations:
    """As in D2L 1.0: ``Seq2Seq``, trained on ``data`` (an ``MTFraEng``) by a ``Trainer``.

    ``pairs`` are what ``data.build`` takes.
    """
    start_anew(face)
    d2l = face.d2l
    encoder = d2l.TransformerEncoder(len(data.src_vocab), WIDTH, HIDDEN, HEADS, BLOCKS, 0.0)
    decoder = face.decoder(len(data.tgt_vocab))
    model = d2l.Seq2Seq(encoder, decoder, tgt_pad=data.tgt_vocab["<pad>"], lr=0.005)
    d2l.Trainer(max_epochs=epochs, gradient_clip_val=1).fit(model, data)
    batch = data.build(*pairs)
    tokens, weights = model.predict_step(batch, d2l.cpu(), data.num_steps, True)
    return Translations(
        [sentence(data.tgt_vocab.to_tokens(row)) for row in face.plain(tokens)],
        [[block[:HEADS] for block in step] for step in face.plain(weights)],
        [loss for _, loss in model.board.data["train_loss"]],
    )


def with_functions(
    face: Any, load: Callable[[], Any], pairs: Pairs, num_steps: int, epochs: int
) -> Translations:
    """As in D2L 0.17: ``EncoderDecoder`` and ``train_seq2seq``, on what ``load()`` gives, ``load_data_nmt``'s result."""
    start_anew(face)
    d2l = face.d2l
    batches, src_vocab, tgt_vocab = load()
    sizes = face.sizes(WIDTH)
    encoder = d2l.TransformerEncoder(len(src_vocab), *sizes, HIDDEN, HEADS, BLOCKS, 0.0)
    net = d2l.EncoderDecoder(encoder, face.decoder(len(tgt_vocab)))
    d2l.train_seq2seq(net, batches, 0.005, epochs, tgt_vocab, d2l.cpu())
    predict = d2l.predict_seq2seq
    place = [d2l.cpu()] if "device" in signature(predict).parameters else []
    said = [
        predict(net, source, src_vocab, tgt_vocab, num_steps, *place, True) for source in pairs[0]
    ]
    return Translations([text for text, _ in said], face.plain(said[0][1]), [])


def start_anew(face: Any) -> None:
    """Draw the same weights, and the same order of rows, which some loaders ask NumPy or Python for."""
    random.seed(0)
    np.random.seed(0)
    face.seed(0)
