"""The Transformer's encoder, and the parts its decoder is made of as well.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, and around both a residual connection and layer normalization.
"""

import math
from typing import Any

from mxnet import np
from mxnet.gluon import nn

from d2l_compat._shared import checks, signatures
from d2l_compat.mxnet.attention import Dropout, MultiHeadAttention, PositionalEncoding
from d2l_compat.mxnet.seq2seq import Encoder

__all__ = [
    "AddNorm",
    "EncoderBlock",
    "PositionWiseFFN",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


class PositionWiseFFN(nn.Block):
    """max(0, x W_1 + b_1) W_2 + b_2, the same at every position; section 3.3.

    ``PositionWiseFFN(ffn_num_hiddens, ffn_num_outputs)``; the first input tells the size of x.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError or TypeError for sizes that are not integers of at least 1."""
        # Of the forms that there are, D2L has the first alone in MXNet; so below.
        given = signatures.read("PositionWiseFFN", signatures.FFN[:1], args, kwargs)
        super().__init__()
        self.dense1 = nn.Dense(given["ffn_num_hiddens"], activation="relu", flatten=False)
        self.dense2 = nn.Dense(given["ffn_num_outputs"], flatten=False)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Shape (..., inputs) to (..., ffn_num_outputs)."""
        return self.dense2(self.dense1(X))


class AddNorm(nn.Block):
    """LayerNorm(x + dropout(y)): residual connection, then layer normalization; section 5.4.

    The last axis is normalized; the first input tells its size.
    """

    def __init__(self, dropout: float) -> None:
        """Raises ValueError or TypeError for a ``dropout`` that is not from 0 to 1."""
        checks.dropout(dropout)
        super().__init__()
        self.dropout = Dropout(dropout)
        self.ln = nn.LayerNorm()

    def forward(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Two tensors of one shape, and the result has it. Raises ValueError for two shapes."""
        checks.instance("X", X, np.ndarray, "a tensor")
        checks.instance("Y", Y, np.ndarray, "a tensor")
        checks.residual(X.shape, Y.shape)
        return self.ln(X + self.dropout(Y))


class TransformerEncoderBlock(nn.Block):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    ``TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False)``,
    which was ``EncoderBlock`` once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        what = "TransformerEncoderBlock"
        given = signatures.read(what, signatures.ENCODER_BLOCK[:1], args, kwargs)
        super().__init__()
        self.attention = MultiHeadAttention(**signatures.of_attention(given, "use_bias"))
        self.addnorm1 = AddNorm(given["dropout"])
        self.ffn = PositionWiseFFN(**signatures.of_ffn(given))
        self.addnorm2 = AddNorm(given["dropout"])

    def __call__(self, X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
        return super().__call__(X, valid_lens)

    def forward(self, X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
        """Shape (batch, steps, num_hiddens), and so is the result; ``valid_lens`` (batch,)."""
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.ffn(Y))


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


class TransformerEncoder(Encoder):
    """Embedding, positional encoding, and ``num_blks`` encoder blocks, with weights to begin with.

    ``TransformerEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout,
    use_bias=False)``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        given = signatures.read("TransformerEncoder", signatures.ENCODER[:1], args, kwargs)
        super().__init__()
        vocab_size, num_blks = given.pop("vocab_size"), given.pop("num_blks")
        self.num_hiddens = given["num_hiddens"]
        self.embedding = nn.Embedding(vocab_size, self.num_hiddens)
        self.pos_encoding = PositionalEncoding(self.num_hiddens, given["dropout"])
        self.blks = nn.Sequential()
        for _ in range(num_blks):
            self.blks.add(TransformerEncoderBlock(**given))
        self.initialize()

    def __call__(self, X: np.ndarray, valid_lens: np.ndarray | None = None, *args: Any) -> Any:
        return super().__call__(X, valid_lens, *args)

    def forward(
        self, X: np.ndarray, valid_lens: np.ndarray | None = None, *args: Any
    ) -> np.ndarray:
        """Tokens, whole numbers of shape (batch, steps), to (batch, steps, num_hiddens).

        The embedding is scaled by sqrt(num_hiddens), so that the encoding does not drown it.
        """
        checks.instance("X", X, np.ndarray, "a tensor")
        checks.rank("X", X.shape, ("batch", "steps"))
        X = self.pos_encoding(self.embedding(X) * math.sqrt(self.num_hiddens))
        for block in self.blks:
            X = block(X, valid_lens)
        return X

    @property
    def attention_weights(self) -> list[np.ndarray]:
        """The last call's weights, a tensor a block, shape (batch * heads, steps, steps).

        Raises RuntimeError before the first call.
        """
        return [block.attention.attention.attention_weights for block in self.blks]
