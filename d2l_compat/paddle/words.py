"""Word vectors: the Penn Treebank in batches for word2vec, and pretrained vectors."""

import operator
from typing import Any

import paddle
from paddle import Tensor
from paddle.io import DataLoader

from d2l_compat._shared.data import vectors, words
from d2l_compat.common import Vocab

__all__ = ["TokenEmbedding", "batchify", "load_data_ptb"]


class TokenEmbedding(vectors.TokenEmbedding):
    """Pretrained word vectors, by a name in ``DATA_HUB``: glove.6b.50d, glove.6b.100d, glove.42b.300d, wiki.en.

    ``embedding[tokens]`` are the vectors of a list of tokens, (tokens, length), float32; unknown tokens have the vector
    of ``<unk>``, zeros. ``idx_to_token`` lists all tokens, ``token_to_idx`` has their indices, ``idx_to_vec`` the
    vectors.
    """

    tensor = staticmethod(paddle.to_tensor)


def batchify(data: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Turn examples (center, context, noise words) into a batch of four tensors.

    They are the centers (batch, 1); the contexts and noise words (batch, longest), padded with 0; a mask of the same
    shape, 1 at words and 0 at padding; and labels of the same shape, 1 at words of the context. The mask is float32,
    since Paddle cannot divide a loss by integers; all others are int64. Raises TypeError or ValueError if there are no
    examples, or they are of another form.
    """
    centers, numbers, masks, labels = map(paddle.to_tensor, words.pad_examples(data))
    return centers, numbers, masks.astype("float32"), labels


def load_data_ptb(
    batch_size: int, max_window_size: int, num_noise_words: int
) -> tuple[DataLoader, Vocab]:
    """Load the Penn Treebank: return shuffled batches, made by :func:`batchify`, and the vocabulary.

    Each word has a context of up to ``max_window_size`` words on either side, and ``num_noise_words`` noise words for
    each context word. Raises TypeError or ValueError for sizes below 1, and what :func:`download_extract` raises.
    """
    examples, vocab = words.draw_examples(batch_size, max_window_size, num_noise_words)
    dataset: Any = examples
    options: dict[str, Any] = {"batch_size": operator.index(batch_size), "collate_fn": batchify}
    return DataLoader(dataset, shuffle=True, **options), vocab
