"""The Transformer's encoder, and the parts its decoder is made of as well.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, and around both a residual connection and layer normalization.
"""

import math
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat._shared import checks, layers, signatures
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._dropout import Dropout
from d2l_compat.mlx._lazy import linear
from d2l_compat.mlx.attention import MultiHeadAttention, PositionalEncoding
from d2l_compat.mlx.seq2seq import Encoder

__all__ = [
    "AddNorm",
    "EncoderBlock",
    "PositionWiseFFN",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


class PositionWiseFFN(layers.PositionWiseFFN, nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, the same at every position; section 3.3.

    ``PositionWiseFFN(ffn_num_hiddens, ffn_num_outputs)`` takes the size of x from its first
    input; ``PositionWiseFFN(ffn_num_input, ffn_num_hiddens, ffn_num_outputs)`` is given it.
    """

    def _make_layers(
        self, *, ffn_num_hiddens: int, ffn_num_outputs: int, ffn_num_input: int | None = None
    ) -> None:
        self.dense1 = linear(ffn_num_input, ffn_num_hiddens)
        self.relu = nn.ReLU()
        self.dense2 = linear(ffn_num_hiddens, ffn_num_outputs)

    def __call__(self, X: mx.array) -> mx.array:
        """Shape (..., inputs) to (..., ffn_num_outputs)."""
        arrays.check_features(X, self.dense1)
        return self.dense2(self.relu(self.dense1(X)))


class AddNorm(nn.Module):
    """LayerNorm(x + dropout(y)): residual connection, then layer normalization; section 5.4."""

    def __init__(self, norm_shape: int | list[int], dropout: float) -> None:
        """``norm_shape``: the last sizes of the inputs, over which they are normalized together.

        Raises ValueError or TypeError for a ``dropout`` that is not from 0 to 1.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = Dropout(dropout)
        sizes = checks.integers("norm_shape", norm_shape, 1)
        self.norm_shape = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        self.ln = nn.LayerNorm(math.prod(self.norm_shape))

    def __call__(self, X: mx.array, Y: mx.array) -> mx.array:
        """Two tensors of one shape, which the result has too. Raises ValueError for two shapes."""
        arrays.check_residual(X, Y, self.norm_shape, self.ln)
        total = X + self.dropout(Y)
        # MLX normalizes one dimension.
        last = total.flatten(-len(self.norm_shape), -1)
        return self.ln(last).reshape(total.shape)


class TransformerEncoderBlock(layers.TransformerEncoderBlock, nn.Module):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    ``TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False)``,
    or with the sizes that all follow from ``num_hiddens`` (key_size, query_size, value_size,
    num_hiddens, norm_shape, ffn_num_input, ffn_num_hiddens, num_heads, dropout,
    use_bias=False), as ``EncoderBlock`` once was.
    """

    def _make_layers(self, norm_shape: int | list[int], **given: Any) -> None:
        self.attention = MultiHeadAttention(**signatures.attention_arguments(given))
        self.addnorm1 = AddNorm(norm_shape, given["dropout"])
        self.ffn = PositionWiseFFN(**signatures.ffn_arguments(given))
        self.addnorm2 = AddNorm(norm_shape, given["dropout"])

    def __call__(self, X: mx.array, valid_lens: mx.array | None = None) -> mx.array:
        """Shape (batch, steps, num_hiddens), and so is the result; ``valid_lens`` (batch,)."""
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.ffn(Y))


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


class TransformerEncoder(layers.TransformerEncoder, Encoder):
    """Embedding, positional encoding, and ``num_blks`` encoder blocks.

    ``TransformerEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout,
    use_bias=False)``, or with the sizes that follow from ``num_hiddens``: (vocab_size, key_size,
    query_size, value_size, num_hiddens, norm_shape, ffn_num_input, ffn_num_hiddens, num_heads,
    num_blks, dropout, use_bias=False).
    """

    def _make_layers(self, vocab_size: int, num_blks: int, **block: Any) -> None:
        self.embedding = nn.Embedding(vocab_size, self.num_hiddens)
        self.pos_encoding = PositionalEncoding(self.num_hiddens, block["dropout"])
        self.blks = [TransformerEncoderBlock(**block) for _ in range(num_blks)]

    def __call__(self, X: mx.array, valid_lens: mx.array | None = None, *args: Any) -> mx.array:
        """Tokens, integers of shape (batch, steps), to (batch, steps, num_hiddens).

        The embedding is scaled by sqrt(num_hiddens), so that the encoding does not drown it.
        """
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        X = self.pos_encoding(self.embedding(X.astype(mx.int32)) * math.sqrt(self.num_hiddens))
        for block in self.blks:
            X = block(X, valid_lens)
        return X

    @property
    def attention_weights(self) -> list[mx.array]:
        """The last call's weights, a tensor a block, shape (batch * heads, steps, steps).

        Raises RuntimeError before the first call.
        """
        return [block.attention.attention.attention_weights for block in self.blks]
