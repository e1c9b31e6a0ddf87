"""A layer's signatures are those that it declares, and every argument has a check."""

import inspect
from typing import Any, get_overloads, overload

import pytest

from d2l_compat._shared.signatures import CHECKS, parse_arguments, parse_overloads


class Layer:
    """Of two signatures; ``name`` is its framework's."""

    @overload
    def __init__(self, num_hiddens: int, bias: bool = False, *, name: str = ...) -> None: ...
    @overload
    def __init__(
        self, key_size: int, num_hiddens: int, bias: bool = False, *, name: str = ...
    ) -> None: ...
    @parse_overloads
    def __init__(self, **given: Any) -> None:
        """Makes it."""
        self.given = given


class OfOneSignature:
    @parse_arguments
    def __init__(self, num_heads: int, dropout: float = 0) -> None:
        self.given = {"num_heads": num_heads, "dropout": dropout}


SHORT, LONG = {"num_hiddens": 8, "bias": False}, {"key_size": 3, "num_hiddens": 8, "bias": False}


@pytest.mark.parametrize(
    ("args", "kwargs", "want"),
    [
        pytest.param([8], {}, SHORT, id="the first"),
        pytest.param([3, 8, False], {}, LONG, id="more than the first has"),
        pytest.param([], {"num_hiddens": 8, "key_size": 3}, LONG, id="a name of the second's"),
        pytest.param([8, True], {}, SHORT | {"bias": True}, id="as many as the first has"),
        pytest.param([8], {"name": "A"}, SHORT | {"name": "A"}, id="the framework's own"),
        pytest.param([3, 8, False], {"name": 5}, LONG | {"name": 5}, id="not checked here"),
    ],
)
def test_a_call_has_the_first_signature_that_fits(args: list[Any], kwargs: Any, want: Any) -> None:
    assert Layer(*args, **kwargs).given == want


def test_one_signature_is_read_as_well() -> None:
    assert OfOneSignature(2).given == {"num_heads": 2, "dropout": 0}
    assert [*inspect.signature(OfOneSignature).parameters] == ["num_heads", "dropout"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        pytest.param(
            Layer,
            TypeError,
            "Layer: missing a required argument: 'num_hiddens'; "
            "need (num_hiddens, bias=False) or (key_size, num_hiddens, bias=False)",
            id="none fits",
        ),
        pytest.param(
            OfOneSignature,
            TypeError,
            "OfOneSignature: missing a required argument: 'num_heads'; need (num_heads, dropout=0)",
            id="the only one does not fit",
        ),
        pytest.param(
            lambda: Layer(8, bias=1),
            TypeError,
            "bias: got int; need True or False",
            id="another kind",
        ),
        pytest.param(
            lambda: OfOneSignature(0),
            ValueError,
            "num_heads: got 0; need an integer of at least 1",
            id="another range",
        ),
    ],
)
def test_bad_arguments_are_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == words


def test_an_argument_that_nothing_checks_is_refused_when_its_class_is_made() -> None:
    with pytest.raises(TypeError, match="num_hidden: got no check; need one for it in"):

        class Misspelt:
            @parse_arguments
            def __init__(self, num_hidden: int) -> None: ...

    assert "num_hidden" not in CHECKS


def test_tools_show_the_docstring_and_the_first_signature() -> None:
    first, *_ = get_overloads(Layer.__init__)
    assert Layer.__init__.__doc__ == "Makes it."
    assert inspect.signature(Layer.__init__) == inspect.signature(first)
