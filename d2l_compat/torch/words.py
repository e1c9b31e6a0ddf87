"""Word vectors: the Penn Treebank in batches for word2vec, and pretrained vectors."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from d2l_compat._shared.data import vectors, words
from d2l_compat.common import Vocab

__all__ = ["TokenEmbedding", "batchify", "load_data_ptb"]


class TokenEmbedding(vectors.TokenEmbedding):
    """Pretrained word vectors, by a name in ``DATA_HUB``: glove.6b.50d, glove.6b.100d, glove.42b.300d, wiki.en.

    ``embedding[tokens]`` are the vectors of a list of tokens, (tokens, length), float32; unknown tokens have the vector
    of ``<unk>``, zeros. ``idx_to_token`` lists all tokens, ``token_to_idx`` has their indices, ``idx_to_vec`` the
    vectors.
    """

    tensor = staticmethod(torch.from_numpy)


def batchify(data: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Turn examples (center, context, noise words) into a batch of four int64 tensors.

    They are the centers (batch, 1); the contexts and noise words (batch, longest), padded with 0; a mask of the same
    shape, 1 at words and 0 at padding; and labels of the same shape, 1 at words of the context. Raises TypeError or
    ValueError if there are no examples, or they are of another form.
    """
    centers, numbers, masks, labels = map(torch.from_numpy, words.pad_examples(data))
    return centers, numbers, masks, labels


def load_data_ptb(
    batch_size: int, max_window_size: int, num_noise_words: int
) -> tuple[DataLoader[Any], Vocab]:
    """Load the Penn Treebank: return shuffled batches, made by :func:`batchify`, and the vocabulary.

    Each word has a context of up to ``max_window_size`` words on either side, and ``num_noise_words`` noise words for
    each context word. Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` raises.
    """
    examples, vocab = words.draw_examples(batch_size, max_window_size, num_noise_words)
    dataset: Any = examples
    return DataLoader(dataset, batch_size, shuffle=True, collate_fn=batchify), vocab
