"""Classification of sentences: IMDb's film reviews by sentiment, and SNLI's pairs of sentences by their relation."""

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import gluon, np

from d2l_compat._shared.checks import check_callable
from d2l_compat._shared.data import sentences
from d2l_compat.common import Vocab
from d2l_compat.mxnet.devices import try_gpu
from d2l_compat.mxnet.linear import load_array

__all__ = ["SNLIDataset", "load_data_imdb", "load_data_snli", "predict_sentiment", "predict_snli"]


def _to_int32(x: Any) -> np.ndarray:
    return np.array(x, dtype="int32")


def load_data_imdb(
    batch_size: int, num_steps: int = 500
) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader, Vocab]:
    """Load IMDb's film reviews: return shuffled training batches, test batches, and the vocabulary.

    A batch is token indices (batch, num_steps) and labels (batch,), 1 for positive and 0 for negative reviews, both
    int32. Longer reviews are cut off, shorter ones padded with ``<unk>``. Raises TypeError or ValueError for sizes
    below 1, and what :func:`download_extract` raises.
    """
    train, test, vocab = sentences.load_imdb(batch_size, num_steps)
    train_iter = load_array([*map(_to_int32, train)], batch_size)
    test_iter = load_array([*map(_to_int32, test)], batch_size, False)
    return train_iter, test_iter, vocab


class SNLIDataset(sentences.SNLI, gluon.data.Dataset):
    """Pairs of sentences with labels, ((premise, hypothesis), label), int32.

    Sentences have the shape (num_steps,); labels are those of :func:`read_snli`. In ``SNLIDataset(dataset, num_steps,
    vocab=None)``, ``dataset`` is a result of :func:`read_snli`; by default, ``vocab`` has its words that occur at least
    5 times. Raises TypeError or ValueError for other arguments.
    """

    tensor = staticmethod(_to_int32)


def load_data_snli(
    batch_size: int, num_steps: int = 50
) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader, Vocab]:
    """Load :class:`SNLIDataset`: return shuffled training batches, test batches, and the vocabulary.

    Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` raises.
    """
    train, test = sentences.load_snli(SNLIDataset, batch_size, num_steps)
    train_iter = gluon.data.DataLoader(_to_numpy(train), batch_size, shuffle=True)
    test_iter = gluon.data.DataLoader(_to_numpy(test), batch_size)
    return train_iter, test_iter, train.vocab


def _to_numpy(dataset: SNLIDataset) -> gluon.data.ArrayDataset:
    """Convert a data set to NumPy arrays, whose rows are indexed faster."""
    pairs = gluon.data.ArrayDataset(dataset.premises.asnumpy(), dataset.hypotheses.asnumpy())
    return gluon.data.ArrayDataset(pairs, dataset.labels.asnumpy())


def predict_sentiment(net: Callable[[Any], Any], vocab: Vocab, sequence: str) -> str:
    """Return whether a review is "positive" or "negative", as predicted by a network with two classes.

    ``net`` gets token indices (1, words). Raises TypeError or ValueError if arguments are of the wrong type, or there
    are no words.
    """
    check_callable("net", net)
    words = sentences.encode_string(sequence, vocab)
    return sentences.best_name(sentences.SENTIMENTS, _predict(net, words))


def predict_snli(
    net: Callable[[Any], Any], vocab: Vocab, premise: Sequence[str], hypothesis: Sequence[str]
) -> str:
    """Return the relation of two lists of words: "entailment", "contradiction" or "neutral".

    ``net`` has three classes, and gets a list of two arrays of token indices, (1, words) each. Raises TypeError or
    ValueError if arguments are of the wrong type, or there are no words.
    """
    check_callable("net", net)
    pair = sentences.encode_pair(premise, hypothesis, vocab)
    return sentences.best_name(sentences.RELATIONS, _predict(net, *pair))


def _predict(net: Any, *sequences: Any) -> np.ndarray:
    """Return the output of ``net`` for one sequence of token indices, or for a list of several."""
    parameters = net.collect_params().values() if isinstance(net, gluon.Block) else []
    device = next((param.list_ctx()[0] for param in parameters), None) or try_gpu()
    inputs = [np.array(tokens, dtype="int32", ctx=device) for tokens in sequences]
    return net(inputs if len(inputs) > 1 else inputs[0])
