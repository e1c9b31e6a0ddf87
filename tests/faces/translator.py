"""A Transformer with a decoder, written on each face as a reader of D2L writes it, and trained.

Every framework's ``translator`` has the same two functions, which return one :class:`Translations`:

``with_trainer(data, pairs, epochs)``
    as in D2L 1.0: ``Seq2Seq``, trained on ``data`` (an ``MTFraEng``) by a ``Trainer``; ``pairs`` are what
    ``data.build`` takes
``with_functions(load, pairs, num_steps, epochs)``
    as in D2L 0.17: ``EncoderDecoder`` and ``train_seq2seq``, on what ``load()`` gives, ``load_data_nmt``'s result.
    None where D2L 0.17 did not have the framework (JAX)
"""

from dataclasses import dataclass
from typing import Any


@dataclass
class Translations:
    sentences: list[str]  # without <eos> and what comes after
    weights: list[Any]  # of the decoder's attention to the source, a step each, of one sentence
    losses: list[float]  # as training drew them


def sentence(tokens: list[str]) -> str:
    """Tokens up to the end of the sentence."""
    end = tokens.index("<eos>") if "<eos>" in tokens else len(tokens)
    return " ".join(tokens[:end])


Pairs = tuple[list[str], list[str]]
