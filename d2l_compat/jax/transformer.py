"""The Transformer's encoder, and the parts that it shares with the decoder.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, each with a residual connection and layer normalization. With ``training``,
layers with dropout need a key named "dropout".
"""

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import checks
from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax._checked import CheckedModule
from d2l_compat.jax.attention import MultiHeadAttention, PositionalEncoding
from d2l_compat.jax.seq2seq import Encoder

__all__ = [
    "AddNorm",
    "EncoderBlock",
    "PositionWiseFFN",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


class PositionWiseFFN(CheckedModule):
    """The network max(0, x W_1 + b_1) W_2 + b_2, the same at every position; section 3.3.

    The size of x is inferred from the first input. Raises ValueError or TypeError for sizes that
    are not integers of at least 1.
    """

    ffn_num_hiddens: int
    ffn_num_outputs: int

    def setup(self) -> None:
        self.dense1 = nn.Dense(self.ffn_num_hiddens)
        self.dense2 = nn.Dense(self.ffn_num_outputs)

    def __call__(self, X: Array) -> jax.Array:
        """Map (..., inputs) to (..., ffn_num_outputs)."""
        X = as_jax(X)
        arrays.check_features(X, self.dense1)
        return self.dense2(nn.relu(self.dense1(X)))


class AddNorm(nn.Module):
    """A residual connection, then layer normalization: LayerNorm(x + dropout(y)); section 5.4.

    The last axis is normalized. Raises ValueError or TypeError for a ``dropout`` that is not
    from 0 to 1.
    """

    dropout: float

    def __post_init__(self) -> None:
        checks.check_dropout(self.dropout)
        super().__post_init__()

    @nn.compact
    def __call__(self, X: Array, Y: Array, training: bool = False) -> jax.Array:
        """Add X and Y, and normalize. Raises ValueError unless they have the same shape."""
        check_training(training)
        X, Y = as_jax(X), as_jax(Y)
        params: Any = self.get_variable("params", "LayerNorm_0")
        arrays.check_residual(X, Y, () if params is None else params["scale"].shape)
        return nn.LayerNorm()(X + nn.Dropout(self.dropout)(Y, deterministic=not training))


class TransformerEncoderBlock(CheckedModule):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    Raises ValueError or TypeError as :class:`MultiHeadAttention` does.
    """

    num_hiddens: int
    ffn_num_hiddens: int
    num_heads: int
    dropout: float
    use_bias: bool = False

    def __post_init__(self) -> None:
        checks.check_heads(self.num_hiddens, self.num_heads)
        super().__post_init__()

    def setup(self) -> None:
        self.attention = MultiHeadAttention(
            self.num_hiddens, self.num_heads, self.dropout, self.use_bias
        )
        self.addnorm1 = AddNorm(self.dropout)
        self.ffn = PositionWiseFFN(self.ffn_num_hiddens, self.num_hiddens)
        self.addnorm2 = AddNorm(self.dropout)

    def __call__(
        self, X: Array, valid_lens: Array | None = None, training: bool = False
    ) -> tuple[jax.Array, jax.Array]:
        """Apply the block to ``X``, (batch, steps, num_hiddens), with ``valid_lens`` (batch,).

        Returns an array of the same shape, and the weights, shape (batch, heads, steps, steps).
        """
        attended, weights = self.attention(X, X, X, valid_lens, training)
        Y = self.addnorm1(X, attended, training)
        return self.addnorm2(Y, self.ffn(Y), training), weights


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


class TransformerEncoder(CheckedModule, Encoder):
    """The Transformer's encoder: embedding, positional encoding, and ``num_blks`` blocks.

    Raises ValueError or TypeError as :class:`MultiHeadAttention` does.
    """

    vocab_size: int
    num_hiddens: int
    ffn_num_hiddens: int
    num_heads: int
    num_blks: int
    dropout: float
    use_bias: bool = False

    def __post_init__(self) -> None:
        checks.check_heads(self.num_hiddens, self.num_heads)
        super().__post_init__()

    def setup(self) -> None:
        self.embedding = nn.Embed(self.vocab_size, self.num_hiddens)
        self.pos_encoding = PositionalEncoding(self.num_hiddens, self.dropout)
        self.blks = [
            TransformerEncoderBlock(
                self.num_hiddens, self.ffn_num_hiddens, self.num_heads, self.dropout, self.use_bias
            )
            for _ in range(self.num_blks)
        ]

    def __call__(
        self, X: Array, valid_lens: Array | None = None, training: bool = False
    ) -> jax.Array:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        The embedding is scaled by sqrt(num_hiddens), so that the positional encoding does not
        outweigh it. "enc_attention_weights" are sown into "intermediates": a list with an array
        of shape (batch * heads, steps, steps) for each block.
        """
        check_training(training)
        X = as_jax(X)
        arrays.check_tokens(X, self.vocab_size)
        X = self.pos_encoding(
            self.embedding(X.astype(jnp.int32)) * math.sqrt(self.num_hiddens), training
        )
        all_weights = []
        for block in self.blks:
            X, weights = block(X, valid_lens, training)
            all_weights.append(weights.reshape(-1, *weights.shape[2:]))
        self.sow("intermediates", "enc_attention_weights", all_weights)
        return X
