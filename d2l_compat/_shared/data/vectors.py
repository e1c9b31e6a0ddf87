"""Pretrained word vectors: GloVe (Pennington et al., 2014) and fastText (Bojanowski et al., 2017)."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import format_value, message
from d2l_compat._shared.data.files import rephrase_os_errors
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.text import UNKNOWN

Vectors = NDArray[np.float32]


class TokenEmbedding:
    """Pretrained word vectors, by a name in ``DATA_HUB``: glove.6b.50d, glove.6b.100d, glove.42b.300d, wiki.en.

    ``embedding[tokens]`` are the vectors of a list of tokens, (tokens, length), float32; unknown tokens have the vector
    of ``<unk>``, zeros. ``idx_to_token`` has all tokens, ``token_to_idx`` their indices, ``idx_to_vec`` their vectors.
    """

    tensor: Callable[[Any], Any]  # the framework's

    def __init__(self, embedding_name: str) -> None:
        """Load the vectors.

        Raises ValueError if the vectors in the file differ in length, and what :func:`download_extract` raises.
        """
        self.idx_to_token, vectors = read(embedding_name)
        self.idx_to_vec = self.tensor(vectors)
        self.unknown_idx = 0
        self.token_to_idx = {token: idx for idx, token in enumerate(self.idx_to_token)}

    def __getitem__(self, tokens: Iterable[str]) -> Any:
        if isinstance(tokens, str) or not isinstance(tokens, Iterable):
            raise TypeError(message("tokens", format_value(tokens), "a list of tokens"))
        indices = [self.token_to_idx.get(token, self.unknown_idx) for token in tokens]
        return self.idx_to_vec[self.tensor(np.array(indices, np.int64))]

    def __len__(self) -> int:
        return len(self.idx_to_token)


def read(embedding_name: str) -> tuple[list[str], Vectors]:
    """Read the tokens, ``<unk>`` first, and the vectors; a line of the file is a token and its numbers."""
    file = Path(download_extract(embedding_name), "vec.txt")
    tokens, vectors = [UNKNOWN], []
    with (
        rephrase_os_errors("embedding_name", file, "an archive with that file"),
        file.open(encoding="utf-8") as f,
    ):
        for line in f:
            token, *numbers = line.rstrip().split(" ")
            if len(numbers) > 1:  # skips fastText's first line, the number and length of vectors
                tokens.append(token)
                vectors.append(_parse_vector(token, numbers))
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1:
        got = f"{file} with vectors of {' and '.join(map(str, sorted(lengths))) or 'no'} numbers"
        raise ValueError(message("embedding_name", got, "vectors of one length"))
    return tokens, np.stack([np.zeros_like(vectors[0]), *vectors])


def _parse_vector(token: str, numbers: list[str]) -> Vectors:
    try:
        return np.array(numbers, np.float32)
    except ValueError as error:
        raise ValueError(message("embedding_name", f"{token} ({error})", "numbers")) from None
