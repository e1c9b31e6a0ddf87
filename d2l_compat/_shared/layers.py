"""Signatures of layers that take the same arguments in several frameworks.

A framework's layer inherits from one of these classes and from the framework's base class, in this order. It
creates its sublayers in ``_make_layers``, to which the arguments are passed after they have been checked.
"""

from typing import Any, overload

from d2l_compat._shared import checks, signatures


class _LayerSignature:
    def _make_layers(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError


class MultiHeadAttention(_LayerSignature):
    num_hiddens: int
    num_heads: int

    @overload
    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float, bias: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self,
        key_size: int,
        query_size: int,
        value_size: int,
        num_hiddens: int,
        num_heads: int,
        dropout: float,
        bias: bool = False,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, *, num_hiddens: int, num_heads: int, **arguments: Any) -> None:
        """Create the layers; ``dropout``, from 0 to 1, is the fraction of weights dropped in training.

        Raises ValueError unless num_hiddens is a multiple of num_heads, and ValueError or
        TypeError for arguments of the wrong type or range.
        """
        checks.check_heads(num_hiddens, num_heads)
        super().__init__()
        self.num_hiddens, self.num_heads = num_hiddens, num_heads
        self._make_layers(num_hiddens, **arguments)


class AdditiveAttention(_LayerSignature):
    @overload
    def __init__(self, num_hiddens: int, dropout: float) -> None: ...
    @overload
    def __init__(
        self, key_size: int, query_size: int, num_hiddens: int, dropout: float
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layers; ``dropout``, from 0 to 1, is the fraction of weights dropped in training.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        super().__init__()
        self._make_layers(**arguments)


class RotaryEncoding(_LayerSignature):
    def __init__(
        self,
        num_hiddens: int,
        max_len: int = 1000,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
        position_scale: float = 1.0,
    ) -> None:
        """Compute the angles for ``num_hiddens`` features, an even number: in multi-head attention, those of a head.

        Positions are from 0 to ``max_len`` - 1. ``position_scale`` multiplies them: with 0.5, twice as many
        fit in the same range of angles (position interpolation, Chen et al., 2023).
        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        super().__init__()
        sizes = checks.rotary_sizes(num_hiddens, max_len, base, layout, position_scale)
        self.num_hiddens, self.max_len = sizes
        self.base, self.layout, self.position_scale = base, layout, position_scale
        self._make_layers()


class PositionWiseFFN(_LayerSignature):
    @overload
    def __init__(self, ffn_num_hiddens: int, ffn_num_outputs: int) -> None: ...
    @overload
    def __init__(self, ffn_num_input: int, ffn_num_hiddens: int, ffn_num_outputs: int) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **sizes: Any) -> None:
        """Create the layers. Raises ValueError or TypeError for sizes that are not integers of at least 1."""
        super().__init__()
        self._make_layers(**sizes)


class TransformerEncoderBlock(_LayerSignature):
    @overload
    def __init__(
        self,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self,
        key_size: int,
        query_size: int,
        value_size: int,
        num_hiddens: int,
        norm_shape: int | list[int],
        ffn_num_input: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layers. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        norm_shape = arguments.pop("norm_shape", arguments["num_hiddens"])
        self._make_layers(norm_shape, **arguments)


class TransformerEncoder(_LayerSignature):
    num_hiddens: int

    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        use_bias: bool = False,
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
        ffn_num_input: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, *, vocab_size: int, num_blks: int, **block: Any) -> None:
        """Create the layers. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        self.num_hiddens = block["num_hiddens"]
        self._make_layers(vocab_size, num_blks, **block)


class BERTEncoder(_LayerSignature):
    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        max_len: int = 1000,
    ) -> None: ...
    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        norm_shape: int | list[int],
        ffn_num_input: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
        max_len: int = 1000,
        key_size: int = 768,
        query_size: int = 768,
        value_size: int = 768,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, *, vocab_size: int, max_len: int, **config: Any) -> None:
        """Create the layers. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        num_blks = config["num_blks" if "num_blks" in config else "num_layers"]
        self._make_layers(vocab_size, max_len, num_blks, **signatures.bert_block_arguments(config))


class BERTModel(_LayerSignature):
    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        max_len: int = 1000,
    ) -> None: ...
    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        norm_shape: int | list[int],
        ffn_num_input: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
        max_len: int = 1000,
        key_size: int = 768,
        query_size: int = 768,
        value_size: int = 768,
        hid_in_features: int = 768,
        mlm_in_features: int = 768,
        nsp_in_features: int = 768,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **config: Any) -> None:
        """Create the layers. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        names = ("hid_in_features", "mlm_in_features", "nsp_in_features")
        features = {name: config.pop(name, None) for name in names}
        self._make_layers(**features, **config)
