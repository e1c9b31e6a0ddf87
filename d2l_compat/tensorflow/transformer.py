"""The Transformer's encoder, and the parts that it shares with the decoder.

The architecture is that of Vaswani et al. (2017), section 3.1: attention, then a small network
at each position, each with a residual connection and layer normalization.
"""

import math
from typing import Any, overload

from tensorflow import Tensor

from d2l_compat._shared import checks, signatures
from d2l_compat._shared.weights import assignable
from d2l_compat.tensorflow._arrays import Array, layer_inputs
from d2l_compat.tensorflow._dropout import Dropout
from d2l_compat.tensorflow._keras import keras, name_training_for_keras_2
from d2l_compat.tensorflow.attention import (
    MultiHeadAttention,
    PositionalEncoding,
    SizedLayer,
    build_dense,
    pop_layer_arguments,
    register,
)
from d2l_compat.tensorflow.seq2seq import Encoder

__all__ = [
    "AddNorm",
    "EncoderBlock",
    "PositionWiseFFN",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


@register
class PositionWiseFFN(SizedLayer):
    """The network max(0, x W_1 + b_1) W_2 + b_2, the same at every position; section 3.3.

    ``PositionWiseFFN(ffn_num_hiddens, ffn_num_outputs)`` takes the size of x from its first
    input; ``PositionWiseFFN(ffn_num_input, ffn_num_hiddens, ffn_num_outputs)`` specifies it. As with
    every Keras layer, ``name``, ``dtype`` and ``trainable`` are further arguments.
    """

    SIZES = ("ffn_num_input",)

    @overload
    def __init__(
        self,
        ffn_num_hiddens: int,
        ffn_num_outputs: int,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self,
        ffn_num_input: int,
        ffn_num_hiddens: int,
        ffn_num_outputs: int,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layer. Raises ValueError or TypeError for sizes that are not integers of at least 1."""
        super().__init__(**pop_layer_arguments(arguments))
        policy = self.dtype_policy
        self.dense1 = keras.layers.Dense(arguments["ffn_num_hiddens"], dtype=policy, name="dense1")
        self.relu = keras.layers.ReLU(dtype=policy)
        self.dense2 = keras.layers.Dense(arguments["ffn_num_outputs"], dtype=policy, name="dense2")
        self._arguments = arguments

    def build(self, X_shape: Any) -> None:
        build_dense(self.dense1, X_shape)
        if type(self.dense1) is keras.layers.Dense:
            build_dense(self.dense2, (*X_shape[:-1], self.dense1.units))
        self.built = True

    def __call__(self, X: Array, **kwargs: Any) -> Tensor:
        """Map X (..., inputs) to (..., ffn_num_outputs).

        Raises ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_features(X, self.dense1, self._arguments.get("ffn_num_input"))
        return super().__call__(X, **kwargs)

    def call(self, X: Tensor) -> Tensor:
        return self.dense2(self.relu(self.dense1(X)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}


@register
class AddNorm(keras.layers.Layer):
    """A residual connection, then layer normalization: LayerNorm(x + dropout(y)); section 5.4."""

    def __init__(self, norm_shape: int | list[int], dropout: float, **kwargs: Any) -> None:
        """Set ``norm_shape``, the axes over which the sum is normalized.

        They are indices, as in D2L's TensorFlow code; in PyTorch they are sizes. [2], or -1, selects the features of
        each position. Raises ValueError or TypeError for a ``dropout`` that is not from 0 to 1, TypeError for axes that
        are not integers.
        """
        checks.check_dropout(dropout)
        super().__init__(**kwargs)
        axes = checks.integers("norm_shape", norm_shape)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)
        self.ln = keras.layers.LayerNormalization(axes, dtype=self.dtype_policy, name="ln")
        self.norm_shape = axes

    def build(self, X_shape: Any) -> None:
        self.ln.build(X_shape)
        self.built = True

    def __call__(self, X: Array, Y: Array, **kwargs: Any) -> Tensor:
        """Return LayerNorm(X + dropout(Y)), of the shape of both; ``training=True`` drops parts of ``Y``.

        Raises ValueError for different shapes, or if they lack an axis to normalize.
        """
        layer_inputs.check_residual(X, Y)
        _check_axes(self.norm_shape, len(X.shape))
        return super().__call__(X, Y, **kwargs)

    def call(self, X: Tensor, Y: Tensor, training: bool | None = None) -> Tensor:
        return self.ln(X + self.dropout(Y, training=training))

    def get_config(self) -> dict[str, Any]:
        arguments = {"norm_shape": self.norm_shape, "dropout": self.dropout.rate}
        return {**super().get_config(), **arguments}


def _check_axes(norm_shape: int | list[int], rank: int) -> None:
    axes = [norm_shape] if isinstance(norm_shape, int) else norm_shape
    if not all(-rank <= axis < rank for axis in axes):
        need = f"axes of X, from {-rank} to {rank - 1}"
        raise ValueError(checks.message("norm_shape", norm_shape, need))


@register
class TransformerEncoderBlock(keras.layers.Layer):
    """Self-attention and a position-wise network, each with :class:`AddNorm`; section 3.1.

    ``TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, dropout, bias=False)``, or
    as in D2L's TensorFlow code, (key_size, query_size, value_size, num_hiddens, norm_shape,
    ffn_num_hiddens, num_heads, dropout, bias=False). Without ``norm_shape`` the features of each
    position are normalized. As with every Keras layer, ``name``, ``dtype`` and ``trainable`` are
    further arguments.
    """

    @overload
    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        bias: bool = False,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self,
        key_size: int,
        query_size: int,
        value_size: int,
        num_hiddens: int,
        norm_shape: int | list[int],
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        bias: bool = False,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layer. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        # Check here, since Keras shortens the messages of sublayers.
        checks.check_heads(arguments["num_hiddens"], arguments["num_heads"])
        super().__init__(**pop_layer_arguments(arguments))
        norm_shape = arguments.get("norm_shape", -1)
        dropout = arguments["dropout"]
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(
            **signatures.attention_arguments(arguments), dtype=policy, name="attention"
        )
        self.addnorm1 = AddNorm(norm_shape, dropout, dtype=policy, name="addnorm1")
        self.ffn = PositionWiseFFN(**signatures.ffn_arguments(arguments), dtype=policy, name="ffn")
        self.addnorm2 = AddNorm(norm_shape, dropout, dtype=policy, name="addnorm2")
        self._arguments = arguments

    def build(self, X_shape: Any) -> None:
        if not self.attention.built:
            self.attention.build(X_shape, X_shape, X_shape)
        self.addnorm1.build(X_shape)
        self.ffn.build(X_shape)
        self.addnorm2.build(X_shape)
        self.built = True

    def __call__(self, X: Array, valid_lens: Array | None = None, **kwargs: Any) -> Tensor:
        """Encode X (batch, steps, num_hiddens) in the same shape; ``valid_lens`` is (batch,).

        ``training=True`` activates dropout. Raises ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_attention(X, X, X)
        layer_inputs.check_last_dimension("X", X, self._arguments["num_hiddens"])
        valid_lens = layer_inputs.check_valid_lens(valid_lens, X, X)
        return super().__call__(X, valid_lens=valid_lens, **kwargs)

    def call(
        self, X: Tensor, valid_lens: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        Y = self.attention(X, X, X, valid_lens, training=training)
        Y = self.addnorm1(X, Y, training=training)
        return self.addnorm2(Y, self.ffn(Y), training=training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}


EncoderBlock = TransformerEncoderBlock  # D2L 0.17's name


@register
class TransformerEncoder(Encoder):
    """The Transformer's encoder: embedding, positional encoding, and ``num_blks`` encoder blocks.

    ``TransformerEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout,
    bias=False)``, or as in D2L's TensorFlow code, (vocab_size, key_size, query_size, value_size,
    num_hiddens, norm_shape, ffn_num_hiddens, num_heads, num_blks, dropout, bias=False). As with
    every Keras layer, ``name``, ``dtype`` and ``trainable`` are further arguments.
    """

    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        bias: bool = False,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self,
        vocab_size: int,
        key_size: int,
        query_size: int,
        value_size: int,
        num_hiddens: int,
        norm_shape: int | list[int],
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        bias: bool = False,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layer. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        checks.check_heads(arguments["num_hiddens"], arguments["num_heads"])
        super().__init__(**pop_layer_arguments(arguments))
        policy = self.dtype_policy
        self.num_hiddens = arguments["num_hiddens"]
        self.embedding = keras.layers.Embedding(
            arguments["vocab_size"], self.num_hiddens, dtype=policy, name="embedding"
        )
        self.pos_encoding = PositionalEncoding(self.num_hiddens, arguments["dropout"], dtype=policy)
        block_arguments = {
            name: value
            for name, value in arguments.items()
            if name not in ("vocab_size", "num_blks")
        }
        self.blks = [
            TransformerEncoderBlock(**block_arguments, dtype=policy, name=f"block{i}")
            for i in range(arguments["num_blks"])
        ]
        self._arguments = arguments

    def build(self, X_shape: Any) -> None:
        self.embedding.build(X_shape)
        for block in self.blks:
            block.build((*X_shape, self.num_hiddens))
        self.built = True

    def __call__(
        self, X: Array, valid_lens: Array | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens``, (batch,), are the sentences' lengths; ``training=True`` activates dropout. The
        embedding is scaled by sqrt(num_hiddens), so that the positional encoding does not outweigh it. Raises
        ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_tokens(X, self.embedding.input_dim)
        layer_inputs.check_positions(0, X, self.pos_encoding.max_len)
        valid_lens = layer_inputs.check_valid_lens(valid_lens, X, X)
        name_training_for_keras_2(kwargs)
        return super().__call__(X, valid_lens, *args, **kwargs)

    def call(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        *args: Any,
        training: bool | None = None,
    ) -> Tensor:
        self._last = None  # forget weights that were assigned
        embedded = self.embedding(X) * math.sqrt(self.num_hiddens)
        X = self.pos_encoding(embedded, training=training)
        for block in self.blks:
            X = block(X, valid_lens, training=training)
        return X

    @assignable
    def attention_weights(self) -> list[Tensor]:
        """Weights of the last call, one tensor per block, shape (batch * heads, steps, steps).

        ``DotProductAttention.attention_weights`` says which calls set them, and when AttributeError is raised.
        """
        return [block.attention.attention.attention_weights for block in self.blks]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}
