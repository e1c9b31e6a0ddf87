"""Sentences and what is said of them: reviews of films, IMDb's, and pairs of which one follows from the other, SNLI's."""

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import gluon, np

from d2l_compat._shared.checks import check_callable
from d2l_compat._shared.data import sentences
from d2l_compat.common import Vocab
from d2l_compat.mxnet.devices import try_gpu
from d2l_compat.mxnet.linear import load_array

__all__ = ["SNLIDataset", "load_data_imdb", "load_data_snli", "predict_sentiment", "predict_snli"]


def _int32(x: Any) -> np.ndarray:
    return np.array(x, dtype="int32")


def load_data_imdb(
    batch_size: int, num_steps: int = 500
) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader, Vocab]:
    """Reviews of films in batches, shuffled for training, and for the test; and the vocabulary.

    A batch is numbers of words (batch, num_steps) and 1 for praise, 0 for blame (batch,): int32. What is longer is cut
    off; what is shorter is filled up with ``<unk>``. Raises TypeError or ValueError for sizes below 1, and what
    :func:`download_extract` does.
    """
    train, test, vocab = sentences.imdb(batch_size, num_steps)
    for_training, for_test = ([*map(_int32, arrays)] for arrays in (train, test))
    return load_array(for_training, batch_size), load_array(for_test, batch_size, False), vocab


class SNLIDataset(sentences.SNLI, gluon.data.Dataset):
    """Pairs of sentences: ((premise, hypothesis), label), (num_steps,) each, and ``labels`` of :func:`read_snli`: int32.

    ``SNLIDataset(dataset, num_steps, vocab=None)``: ``dataset`` is what :func:`read_snli` gives; ``vocab`` by default that
    of its words that occur 5 times. Raises TypeError or ValueError for others.
    """

    tensor = staticmethod(_int32)


def load_data_snli(
    batch_size: int, num_steps: int = 50
) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader, Vocab]:
    """Batches of :class:`SNLIDataset`, shuffled for training, and for the test; and the vocabulary.

    Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` does.
    """
    train, test = sentences.snli(SNLIDataset, batch_size, num_steps)
    for_training, for_test = map(_rows, (train, test))
    batches = (
        gluon.data.DataLoader(for_training, batch_size, shuffle=True),
        gluon.data.DataLoader(for_test, batch_size),
    )
    return *batches, train.vocab


def _rows(dataset: SNLIDataset) -> gluon.data.ArrayDataset:
    """The same in NumPy, whose rows are found faster."""
    columns = dataset.premises, dataset.hypotheses, dataset.labels
    premises, hypotheses, labels = (column.asnumpy() for column in columns)
    pairs = gluon.data.ArrayDataset(premises, hypotheses)
    return gluon.data.ArrayDataset(pairs, labels)


def predict_sentiment(net: Callable[[Any], Any], vocab: Vocab, sequence: str) -> str:
    """Whether a review is "positive" or "negative", by a network of two classes: it gets numbers (1, words).

    Raises TypeError or ValueError where these are of another kind, or there are no words.
    """
    check_callable("net", net)
    words = sentences.words_in(sequence, vocab)
    return sentences.named(sentences.SENTIMENTS, _asked(net, words))


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


def _asked(net: Any, *sequences: Any) -> np.ndarray:
    """What it says of one sequence of words, or of a list of several."""
    parameters = net.collect_params().values() if isinstance(net, gluon.Block) else []
    device = next((each.list_ctx()[0] for each in parameters), None) or try_gpu()
    given = [np.array(each, dtype="int32", ctx=device) for each in sequences]
    return net(given if len(given) > 1 else given[0])
