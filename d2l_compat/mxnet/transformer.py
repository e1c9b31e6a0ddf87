"""The Transformer's encoder, and the parts that it shares with the decoder.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, each with a residual connection and layer normalization.
"""

import math
from typing import Any

from mxnet import np
from mxnet.gluon import nn

from d2l_compat._shared import checks, signatures
from d2l_compat._shared.weights import assignable
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout
from d2l_compat.mxnet.attention import MultiHeadAttention, PositionalEncoding
from d2l_compat.mxnet.seq2seq import Encoder

__all__ = [
    "AddNorm",
    "EncoderBlock",
    "PositionWiseFFN",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


class PositionWiseFFN(nn.Block):
    """The network max(0, x W_1 + b_1) W_2 + b_2, the same at every position; section 3.3.

    ``PositionWiseFFN(ffn_num_hiddens, ffn_num_outputs)``; the first input sets the size of x.
    """

    @signatures.parse_arguments
    def __init__(self, ffn_num_hiddens: int, ffn_num_outputs: int) -> None:
        """Create the layer. Raises ValueError or TypeError for sizes that are not integers of at least 1."""
        super().__init__()
        self.dense1 = nn.Dense(ffn_num_hiddens, activation="relu", flatten=False)
        self.dense2 = nn.Dense(ffn_num_outputs, flatten=False)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Map X (..., inputs) to (..., ffn_num_outputs)."""
        arrays.check_features(X, self.dense1)
        return self.dense2(self.dense1(X))


class AddNorm(nn.Block):
    """A residual connection, then layer normalization: LayerNorm(x + dropout(y)); section 5.4.

    The last axis is normalized; the first input sets its size.
    """

    def __init__(self, dropout: float) -> None:
        """Create the layer. Raises ValueError or TypeError for a ``dropout`` that is not from 0 to 1."""
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = Dropout(dropout)
        self.ln = nn.LayerNorm()

    def forward(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return LayerNorm(X + dropout(Y)), of the shape of both. Raises ValueError for different shapes."""
        is_own = type(self.ln) in arrays.layer_types
        size = arrays.expected_input(self.ln, X)[0] if is_own else None
        arrays.check_residual(X, Y, () if size is None else (size,), self.ln)
        return self.ln(X + self.dropout(Y))


class TransformerEncoderBlock(nn.Block):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    ``TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False)``,
    which D2L 0.17 calls ``EncoderBlock``.
    """

    @signatures.parse_arguments
    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None:
        """Create the layer. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        self.attention = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias)
        self.addnorm1 = AddNorm(dropout)
        self.ffn = PositionWiseFFN(ffn_num_hiddens, num_hiddens)
        self.addnorm2 = AddNorm(dropout)

    def __call__(self, X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
        return super().__call__(X, valid_lens)

    def forward(self, X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
        """Encode X (batch, steps, num_hiddens) in the same shape; ``valid_lens`` is (batch,)."""
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.ffn(Y))


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


class TransformerEncoder(Encoder):
    """The Transformer's encoder: embedding, positional encoding, and ``num_blks`` blocks, all initialized.

    ``TransformerEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout,
    use_bias=False)``.
    """

    @signatures.parse_arguments
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None:
        """Create the layer. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        self.num_hiddens = num_hiddens
        self.embedding = nn.Embedding(vocab_size, num_hiddens)
        self.pos_encoding = PositionalEncoding(num_hiddens, dropout)
        self.blks = nn.Sequential()
        for _ in range(num_blks):
            block = TransformerEncoderBlock(
                num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias
            )
            self.blks.add(block)
        self.initialize()

    def __call__(self, X: np.ndarray, valid_lens: np.ndarray | None = None, *args: Any) -> Any:
        return super().__call__(X, valid_lens, *args)

    def forward(
        self, X: np.ndarray, valid_lens: np.ndarray | None = None, *args: Any
    ) -> np.ndarray:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        The embedding is scaled by sqrt(num_hiddens), so that the positional encoding does not outweigh it.
        """
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        self._last = None  # forget weights that were assigned
        X = self.pos_encoding(self.embedding(X) * math.sqrt(self.num_hiddens))
        for block in self.blks:
            X = block(X, valid_lens)
        return X

    @assignable
    def attention_weights(self) -> list[np.ndarray]:
        """Weights of the last call, one tensor per block, shape (batch * heads, steps, steps).

        Raises AttributeError before the first call.
        """
        return [block.attention.attention.attention_weights for block in self.blks]
