"""The Transformer's encoder, and the parts that it shares with the decoder.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, each with a residual connection and layer normalization.
"""

import math
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat._shared import checks, layers, signatures
from d2l_compat._shared.weights import AssignableWeights, assignable
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

    ``PositionWiseFFN(ffn_num_hiddens, ffn_num_outputs)`` infers the size of x from its first
    input; ``PositionWiseFFN(ffn_num_input, ffn_num_hiddens, ffn_num_outputs)`` fixes it.
    """

    def _make_layers(
        self, *, ffn_num_hiddens: int, ffn_num_outputs: int, ffn_num_input: int | None = None
    ) -> None:
        self.dense1 = linear(ffn_num_input, ffn_num_hiddens)
        self.relu = nn.ReLU()
        self.dense2 = linear(ffn_num_hiddens, ffn_num_outputs)

    def __call__(self, X: mx.array) -> mx.array:
        """Map (..., inputs) to (..., ffn_num_outputs)."""
        arrays.check_features(X, self.dense1)
        return self.dense2(self.relu(self.dense1(X)))


class AddNorm(nn.Module):
    """LayerNorm(x + dropout(y)): residual connection, then layer normalization; section 5.4."""

    def __init__(self, norm_shape: int | list[int], dropout: float) -> None:
        """Create the layer; it normalizes over the last dimensions, whose sizes are ``norm_shape``.

        Raises ValueError or TypeError for a ``dropout`` that is not from 0 to 1.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = Dropout(dropout)
        sizes = checks.integers("norm_shape", norm_shape, 1)
        self.norm_shape = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        self.ln = nn.LayerNorm(math.prod(self.norm_shape))

    def __call__(self, X: mx.array, Y: mx.array) -> mx.array:
        """Add X and Y, and normalize. Raises ValueError unless they have the same shape."""
        arrays.check_residual(X, Y, self.norm_shape, self.ln)
        total = X + self.dropout(Y)
        # MLX normalizes over one dimension only.
        flat = total.flatten(-len(self.norm_shape), -1)
        return self.ln(flat).reshape(total.shape)


class TransformerEncoderBlock(layers.TransformerEncoderBlock, nn.Module):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    ``TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False)``,
    or with explicit sizes, as D2L 0.17's ``EncoderBlock``: (key_size, query_size, value_size,
    num_hiddens, norm_shape, ffn_num_input, ffn_num_hiddens, num_heads, dropout, use_bias=False).
    """

    def _make_layers(self, norm_shape: int | list[int], **block: Any) -> None:
        self.attention = MultiHeadAttention(**signatures.attention_arguments(block))
        self.addnorm1 = AddNorm(norm_shape, block["dropout"])
        self.ffn = PositionWiseFFN(**signatures.ffn_arguments(block))
        self.addnorm2 = AddNorm(norm_shape, block["dropout"])

    def __call__(self, X: mx.array, valid_lens: mx.array | None = None) -> mx.array:
        """Apply the block to ``X``, (batch, steps, num_hiddens), with ``valid_lens`` (batch,).

        Returns an array of the same shape.
        """
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.ffn(Y))


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


class TransformerEncoder(AssignableWeights, layers.TransformerEncoder, Encoder):
    """Embedding, positional encoding, and ``num_blks`` encoder blocks.

    ``TransformerEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout,
    use_bias=False)``, or with explicit sizes, as in D2L 0.17: (vocab_size, key_size, query_size,
    value_size, num_hiddens, norm_shape, ffn_num_input, ffn_num_hiddens, num_heads, num_blks,
    dropout, use_bias=False).
    """

    def _make_layers(self, vocab_size: int, num_blks: int, **block: Any) -> None:
        self.embedding = nn.Embedding(vocab_size, self.num_hiddens)
        self.pos_encoding = PositionalEncoding(self.num_hiddens, block["dropout"])
        self.blks = [TransformerEncoderBlock(**block) for _ in range(num_blks)]

    def __call__(self, X: mx.array, valid_lens: mx.array | None = None, *args: Any) -> mx.array:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        The embedding is scaled by sqrt(num_hiddens), so that the positional encoding does not
        outweigh it.
        """
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        self._last = None  # forget weights that were assigned
        X = self.pos_encoding(self.embedding(X.astype(mx.int32)) * math.sqrt(self.num_hiddens))
        for block in self.blks:
            X = block(X, valid_lens)
        return X

    @assignable
    def attention_weights(self) -> list[mx.array]:
        """Weights of the last call, an array of shape (batch * heads, steps, steps) for each block.

        Raises AttributeError before the first call.
        """
        return [block.attention.attention.attention_weights for block in self.blks]
