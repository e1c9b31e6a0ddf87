"""The Transformer's encoder, and the parts that it shares with the decoder.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, each with a residual connection and layer normalization.
"""

import math
from typing import Any

from paddle import Tensor, nn

from d2l_compat._shared import checks, layers, signatures
from d2l_compat._shared.weights import AssignableWeights, assignable
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.attention import MultiHeadAttention, PositionalEncoding, linear
from d2l_compat.paddle.seq2seq import Encoder

__all__ = [
    "AddNorm",
    "EncoderBlock",
    "PositionWiseFFN",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


class PositionWiseFFN(layers.PositionWiseFFN, nn.Layer):
    """The network max(0, x W_1 + b_1) W_2 + b_2, the same at every position; section 3.3.

    ``PositionWiseFFN(ffn_num_hiddens, ffn_num_outputs)`` takes the size of x from its first input;
    ``PositionWiseFFN(ffn_num_input, ffn_num_hiddens, ffn_num_outputs)`` specifies it.
    """

    def _make_layers(
        self, *, ffn_num_hiddens: int, ffn_num_outputs: int, ffn_num_input: int | None = None
    ) -> None:
        self.dense1 = linear(ffn_num_input, ffn_num_hiddens)
        self.relu = nn.ReLU()
        self.dense2 = linear(ffn_num_hiddens, ffn_num_outputs)

    def forward(self, X: Tensor) -> Tensor:
        """Map X (..., inputs) to (..., ffn_num_outputs)."""
        arrays.check_features(X, self.dense1)
        return self.dense2(self.relu(self.dense1(X)))


class AddNorm(nn.Layer):
    """A residual connection, then layer normalization: LayerNorm(x + dropout(y)); section 5.4."""

    def __init__(self, norm_shape: int | list[int], dropout: float) -> None:
        """Create the layer; it normalizes over the last dimensions, whose sizes are ``norm_shape``.

        Raises ValueError or TypeError for a ``dropout`` that is not from 0 to 1.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = nn.Dropout(float(dropout))
        self.ln = nn.LayerNorm(checks.integers("norm_shape", norm_shape, 1))

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        """Return LayerNorm(X + dropout(Y)), of the shape of both. Raises ValueError for different shapes."""
        arrays.check_residual(X, Y, getattr(self.ln, "_normalized_shape", ()), self.ln)
        return self.ln(X + self.dropout(Y))


class TransformerEncoderBlock(layers.TransformerEncoderBlock, nn.Layer):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    ``TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False)``,
    or the longer form of D2L 0.17, with sizes that follow from ``num_hiddens``: (key_size, query_size, value_size,
    num_hiddens, norm_shape, ffn_num_input, ffn_num_hiddens, num_heads, dropout, use_bias=False).
    """

    def _make_layers(self, norm_shape: int | list[int], **block: Any) -> None:
        self.attention = MultiHeadAttention(**signatures.attention_arguments(block))
        self.addnorm1 = AddNorm(norm_shape, block["dropout"])
        self.ffn = PositionWiseFFN(**signatures.ffn_arguments(block))
        self.addnorm2 = AddNorm(norm_shape, block["dropout"])

    def forward(self, X: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        """Encode X (batch, steps, num_hiddens) in the same shape; ``valid_lens`` is (batch,)."""
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.ffn(Y))


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


class TransformerEncoder(AssignableWeights, layers.TransformerEncoder, Encoder):
    """The Transformer's encoder: embedding, positional encoding, and ``num_blks`` encoder blocks.

    ``TransformerEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, use_bias=False)``, or
    D2L's longer form, with sizes that must equal ``num_hiddens``: (vocab_size, key_size, query_size, value_size,
    num_hiddens, norm_shape, ffn_num_input, ffn_num_hiddens, num_heads, num_blks, dropout, use_bias=False).
    """

    def _make_layers(self, vocab_size: int, num_blks: int, **block: Any) -> None:
        self.embedding = nn.Embedding(vocab_size, self.num_hiddens)
        self.pos_encoding = PositionalEncoding(self.num_hiddens, block["dropout"])
        # The blocks are named by their numbers, as in D2L, so that weights saved there load here.
        self.blks = nn.Sequential(*(TransformerEncoderBlock(**block) for _ in range(num_blks)))

    def forward(self, X: Tensor, valid_lens: Tensor | None = None, *args: Any) -> Tensor:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        The embedding is scaled by sqrt(num_hiddens), so that the positional encoding does not outweigh it.
        """
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        self._last = None  # forget weights that were assigned
        X = self.pos_encoding(self.embedding(X.astype("int64")) * math.sqrt(self.num_hiddens))
        for block in self.blks:
            X = block(X, valid_lens)
        return X

    @assignable
    def attention_weights(self) -> list[Tensor]:
        """Weights of the last eager call, one tensor per block, shape (batch * heads, steps, steps).

        Running a traced program does not change them. Raises AttributeError before the first call.
        """
        blocks: Any = self.blks
        return [block.attention.attention.attention_weights for block in blocks]
