"""Words as vectors: the Penn Treebank in batches, for word2vec, and vectors that others have trained."""

from typing import Any

from mxnet import gluon, np

from d2l_compat._shared.data import vectors, words
from d2l_compat.common import Vocab

__all__ = ["TokenEmbedding", "batchify", "load_data_ptb"]


def _array(x: Any) -> np.ndarray:
    return np.array(x, dtype=x.dtype)


class TokenEmbedding(vectors.TokenEmbedding):
    """Vectors of words, by a name in ``DATA_HUB``: glove.6b.50d, glove.6b.100d, glove.42b.300d, wiki.en.

    ``embedding[tokens]`` are those of a list of tokens, (tokens, length), float32; a token that is not there has that
    of ``<unk>``, zeros. ``idx_to_token`` are all tokens, ``token_to_idx`` their numbers, ``idx_to_vec`` all vectors.
    """

    tensor = staticmethod(_array)


def batchify(data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Examples (center, context, noise words) as a batch: centers (batch, 1), contexts and noise (batch, longest),
    filled up with 0; 1 where there is a word, and 1 where it is one of the context: float32.

    Raises TypeError or ValueError where there are none, or others.
    """
    centers, numbers, masks, labels = (
        np.array(each, dtype="float32") for each in words.pad_examples(data)
    )
    return centers, numbers, masks, labels


def load_data_ptb(
    batch_size: int, max_window_size: int, num_noise_words: int
) -> tuple[gluon.data.DataLoader, Vocab]:
    """The Penn Treebank in shuffled batches, as :func:`batchify` makes them, and the vocabulary.

    Each word has a context of up to ``max_window_size`` words on either side, and ``num_noise_words`` for each of them.
    Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` does.
    """
    examples, vocab = words.draw_examples(batch_size, max_window_size, num_noise_words)
    dataset = gluon.data.SimpleDataset(examples)
    return gluon.data.DataLoader(dataset, batch_size, shuffle=True, batchify_fn=batchify), vocab
