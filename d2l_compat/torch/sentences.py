"""Classification of sentences: IMDb's film reviews by sentiment, and SNLI's pairs of sentences by their relation."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from d2l_compat._shared.checks import check_callable
from d2l_compat._shared.data import sentences
from d2l_compat.common import Vocab
from d2l_compat.torch.devices import try_gpu
from d2l_compat.torch.linear import load_array
from d2l_compat.torch.seq2seq import prediction_mode

__all__ = ["SNLIDataset", "load_data_imdb", "load_data_snli", "predict_sentiment", "predict_snli"]


def load_data_imdb(
    batch_size: int, num_steps: int = 500
) -> tuple[DataLoader[Any], DataLoader[Any], Vocab]:
    """Load IMDb's film reviews: return shuffled training batches, test batches, and the vocabulary.

    A batch is token indices (batch, num_steps) and labels (batch,), 1 for positive and 0 for negative reviews, both
    int64. Longer reviews are cut off, shorter ones padded with ``<unk>``. Raises TypeError or ValueError for sizes
    below 1, and what :func:`download_extract` raises.
    """
    train, test, vocab = sentences.load_imdb(batch_size, num_steps)
    train_iter = load_array([*map(torch.from_numpy, train)], batch_size)
    test_iter = load_array([*map(torch.from_numpy, test)], batch_size, False)
    return train_iter, test_iter, vocab


class SNLIDataset(sentences.SNLI, Dataset[Any]):
    """Pairs of sentences with labels, ((premise, hypothesis), label), int64.

    Sentences have the shape (num_steps,); labels are those of :func:`read_snli`. In ``SNLIDataset(dataset, num_steps,
    vocab=None)``, ``dataset`` is a result of :func:`read_snli`; by default, ``vocab`` has its words that occur at least
    5 times. Raises TypeError or ValueError for other arguments.
    """

    tensor = staticmethod(torch.from_numpy)


def load_data_snli(
    batch_size: int, num_steps: int = 50
) -> tuple[DataLoader[Any], DataLoader[Any], Vocab]:
    """Load :class:`SNLIDataset`: return shuffled training batches, test batches, and the vocabulary.

    Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` raises.
    """
    train, test = sentences.load_snli(SNLIDataset, batch_size, num_steps)
    return DataLoader(train, batch_size, shuffle=True), DataLoader(test, batch_size), train.vocab


def predict_sentiment(net: Callable[[Any], Any], vocab: Vocab, sequence: str) -> str:
    """Return whether a review is "positive" or "negative", as predicted by a network with two classes.

    ``net`` gets token indices (1, words). Raises TypeError or ValueError if arguments are of the wrong type, or there
    are no words.
    """
    check_callable("net", net)
    tokens = sentences.encode_string(sequence, vocab)
    return sentences.best_name(sentences.SENTIMENTS, _predict(net, tokens))


def predict_snli(
    net: Callable[[Any], Any], vocab: Vocab, premise: Sequence[str], hypothesis: Sequence[str]
) -> str:
    """Return the relation of two lists of words: "entailment", "contradiction" or "neutral".

    ``net`` has three classes, and gets a list of two tensors of token indices, (1, words) each. Raises TypeError or
    ValueError if arguments are of the wrong type, or there are no words.
    """
    check_callable("net", net)
    pair = sentences.encode_pair(premise, hypothesis, vocab)
    return sentences.best_name(sentences.RELATIONS, _predict(net, *pair))


def _predict(net: Any, *sequences: Any) -> Any:
    """Return the output of ``net`` for one sequence of token indices, or for a list of several."""
    parameter = next(net.parameters(), None) if isinstance(net, nn.Module) else None
    device = try_gpu() if parameter is None else parameter.device
    inputs = [torch.tensor(sequence, device=device) for sequence in sequences]
    with prediction_mode(net):
        return net(inputs if len(inputs) > 1 else inputs[0])
