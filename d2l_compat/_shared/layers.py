"""The signatures of layers that are made with the same arguments in several frameworks.

A face's layer inherits from one of these and from its framework's own layer, in this order. It makes its
parts in ``_make_layers``, which gets the arguments by name, checked.
"""

from typing import Any, overload

from d2l_compat._shared import checks, signatures


class _Signed:
    def _make_layers(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError


class MultiHeadAttention(_Signed):
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
    def __init__(self, *, num_hiddens: int, num_heads: int, **given: Any) -> None:
        """``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError where num_hiddens is not a multiple of num_heads, and ValueError or
        TypeError for arguments of a wrong range or kind.
        """
        checks.check_heads(num_hiddens, num_heads)
        super().__init__()
        self.num_hiddens, self.num_heads = num_hiddens, num_heads
        self._make_layers(num_hiddens, **given)


class AdditiveAttention(_Signed):
    @overload
    def __init__(self, num_hiddens: int, dropout: float) -> None: ...
    @overload
    def __init__(
        self, key_size: int, query_size: int, num_hiddens: int, dropout: float
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **given: Any) -> None:
        """``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError or TypeError for arguments of a wrong range or kind.
        """
        super().__init__()
        self._make_layers(**given)


class RotaryEncoding(_Signed):
    def __init__(
        self,
        num_hiddens: int,
        max_len: int = 1000,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
        position_scale: float = 1.0,
    ) -> None:
        """``num_hiddens``: the even width of what is turned, which in multi-head attention is a head's.

        ``max_len``: how many positions there are, from 0 to max_len - 1. ``position_scale`` multiplies them:
        with 0.5, twice as many lie in the range of angles (position interpolation, Chen et al., 2023).
        Raises ValueError or TypeError for arguments of a wrong range or kind.
        """
        super().__init__()
        sizes = checks.rotary_sizes(num_hiddens, max_len, base, layout, position_scale)
        self.num_hiddens, self.max_len = sizes
        self.base, self.layout, self.position_scale = base, layout, position_scale
        self._make_layers()


class PositionWiseFFN(_Signed):
    @overload
    def __init__(self, ffn_num_hiddens: int, ffn_num_outputs: int) -> None: ...
    @overload
    def __init__(self, ffn_num_input: int, ffn_num_hiddens: int, ffn_num_outputs: int) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **given: Any) -> None:
        """Raises ValueError or TypeError for sizes that are not integers of at least 1."""
        super().__init__()
        self._make_layers(**given)


class TransformerEncoderBlock(_Signed):
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
    def __init__(self, **given: Any) -> None:
        """Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        norm_shape = given.pop("norm_shape", given["num_hiddens"])
        self._make_layers(norm_shape, **given)


class TransformerEncoder(_Signed):
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
        """Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        self.num_hiddens = block["num_hiddens"]
        self._make_layers(vocab_size, num_blks, **block)


class BERTEncoder(_Signed):
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
    def __init__(self, *, vocab_size: int, max_len: int, **given: Any) -> None:
        """Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        num_blks = given["num_blks" if "num_blks" in given else "num_layers"]
        self._make_layers(vocab_size, max_len, num_blks, **signatures.bert_block_arguments(given))


class BERTModel(_Signed):
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
    def __init__(self, **given: Any) -> None:
        """Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        names = ("hid_in_features", "mlm_in_features", "nsp_in_features")
        features = {name: given.pop(name, given["num_hiddens"]) for name in names}
        self._make_layers(**features, **given)
