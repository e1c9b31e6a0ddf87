"""Tests of the signatures that layers declare, and of the checks of their arguments."""

import inspect
from typing import Any, get_overloads, overload

import pytest

from d2l_compat._shared.signatures import CHECKS, parse_arguments, parse_overloads


class Layer:
    """A layer with two signatures; ``name`` stands for an argument of the framework, which is not checked."""

    @overload
    def __init__(self, num_hiddens: int, bias: bool = False, *, name: str = ...) -> None: ...
    @overload
    def __init__(
        self, key_size: int, num_hiddens: int, bias: bool = False, *, name: str = ...
    ) -> None: ...
    @parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Make it."""
        self.arguments = arguments


class SingleSignature:
    @parse_arguments
    def __init__(self, num_heads: int, dropout: float = 0) -> None:
        self.arguments = {"num_heads": num_heads, "dropout": dropout}


SHORT_FORM, LONG_FORM = (
    {"num_hiddens": 8, "bias": False},
    {"key_size": 3, "num_hiddens": 8, "bias": False},
)


@pytest.mark.parametrize(
    ("args", "kwargs", "want"),
    [
        pytest.param([8], {}, SHORT_FORM, id="first signature"),
        pytest.param([3, 8, False], {}, LONG_FORM, id="too many for the first"),
        pytest.param([], {"num_hiddens": 8, "key_size": 3}, LONG_FORM, id="keyword of the second"),
        pytest.param([8, True], {}, SHORT_FORM | {"bias": True}, id="all of the first"),
        pytest.param([8], {"name": "A"}, SHORT_FORM | {"name": "A"}, id="framework's argument"),
        pytest.param([3, 8, False], {"name": 5}, LONG_FORM | {"name": 5}, id="unchecked argument"),
    ],
)
def test_first_matching_signature_is_used(args: list[Any], kwargs: Any, want: Any) -> None:
    assert Layer(*args, **kwargs).arguments == want


def test_single_signature_is_read() -> None:
    assert SingleSignature(2).arguments == {"num_heads": 2, "dropout": 0}
    assert [*inspect.signature(SingleSignature).parameters] == ["num_heads", "dropout"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        pytest.param(
            Layer,
            TypeError,
            "Layer: missing a required argument: 'num_hiddens'; "
            "need (num_hiddens, bias=False) or (key_size, num_hiddens, bias=False)",
            id="none fits",
        ),
        pytest.param(
            SingleSignature,
            TypeError,
            "SingleSignature: missing a required argument: 'num_heads'; need (num_heads, dropout=0)",
            id="the only one does not fit",
        ),
        pytest.param(
            lambda: Layer(8, bias=1),
            TypeError,
            "bias: got int; need True or False",
            id="wrong type",
        ),
        pytest.param(
            lambda: SingleSignature(0),
            ValueError,
            "num_heads: got 0; need an integer of at least 1",
            id="out of range",
        ),
    ],
)
def test_bad_arguments_are_rejected(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == message


def test_unchecked_argument_fails_at_class_definition() -> None:
    with pytest.raises(TypeError, match="num_hidden: got no check; need one for it in"):

        class Misspelt:
            @parse_arguments
            def __init__(self, num_hidden: int) -> None: ...

    assert "num_hidden" not in CHECKS


def test_tools_show_docstring_and_first_signature() -> None:
    first, *_ = get_overloads(Layer.__init__)
    assert Layer.__init__.__doc__ == "Make it."
    assert inspect.signature(Layer.__init__) == inspect.signature(first)
