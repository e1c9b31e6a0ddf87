"""Sentences and what is said of them: reviews of films, IMDb's, and pairs of which one follows from the other, SNLI's."""

from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle import nn
from paddle.io import DataLoader, Dataset

from d2l_compat._shared.checks import check_callable
from d2l_compat._shared.data import sentences
from d2l_compat.common import Vocab
from d2l_compat.paddle.devices import try_gpu
from d2l_compat.paddle.linear import load_array
from d2l_compat.paddle.seq2seq import asking
from d2l_compat.paddle.training import batches

__all__ = ["SNLIDataset", "load_data_imdb", "load_data_snli", "predict_sentiment", "predict_snli"]


def load_data_imdb(batch_size: int, num_steps: int = 500) -> tuple[DataLoader, DataLoader, Vocab]:
    """Reviews of films in batches, shuffled for training, and for the test; and the vocabulary.

    A batch is numbers of words (batch, num_steps) and 1 for praise, 0 for blame (batch,): int64. What is longer is cut
    off; what is shorter is filled up with ``<unk>``. Raises TypeError or ValueError for sizes below 1, and what
    :func:`download_extract` does.
    """
    train, test, vocab = sentences.imdb(batch_size, num_steps)
    for_training, for_test = ([*map(paddle.to_tensor, arrays)] for arrays in (train, test))
    return load_array(for_training, batch_size), load_array(for_test, batch_size, False), vocab


class SNLIDataset(sentences.SNLI, Dataset[Any]):
    """Pairs of sentences: ((premise, hypothesis), label), (num_steps,) each, and ``labels`` of :func:`read_snli`: int64.

    ``SNLIDataset(dataset, num_steps, vocab=None)``: ``dataset`` is what :func:`read_snli` gives; ``vocab`` by default that
    of its words that occur 5 times. Raises TypeError or ValueError for others.
    """

    tensor = staticmethod(paddle.to_tensor)


def load_data_snli(batch_size: int, num_steps: int = 50) -> tuple[DataLoader, DataLoader, Vocab]:
    """Batches of :class:`SNLIDataset`, shuffled for training, and for the test; and the vocabulary.

    Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` does.
    """
    train, test = sentences.snli(SNLIDataset, batch_size, num_steps)
    return batches(train, batch_size, True), batches(test, batch_size, False), train.vocab


def predict_sentiment(net: Callable[[Any], Any], vocab: Vocab, sequence: str) -> str:
    """Whether a review is "positive" or "negative", by a network of two classes: it gets numbers (1, words).

    Raises TypeError or ValueError where these are of another kind, or there are no words.
    """
    check_callable("net", net)
    return sentences.named(sentences.SENTIMENTS, _asked(net, sentences.words_in(sequence, vocab)))


def predict_snli(
    net: Callable[[Any], Any], vocab: Vocab, premise: Sequence[str], hypothesis: Sequence[str]
) -> str:
    """What a list of words says of another: "entailment", "contradiction" or "neutral".

    ``net`` has three classes, and gets a list of two, (1, words) each. Raises TypeError or ValueError where these are of
    another kind, or there are no words.
    """
    check_callable("net", net)
    pair = sentences.pair_of(premise, hypothesis, vocab)
    return sentences.named(sentences.RELATIONS, _asked(net, *pair))


def _asked(net: Any, *sequences: Any) -> Any:
    """What it says of one sequence of words, or of a list of several."""
    parameters = net.parameters() if isinstance(net, nn.Layer) else []
    device = parameters[0].place if parameters else try_gpu()
    given = [paddle.to_tensor(each, place=device) for each in sequences]
    with asking(net):
        return net(given if len(given) > 1 else given[0])
