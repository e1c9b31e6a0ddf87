"""The names that a face gives to its readers: those pinned in its exports.txt, and no others.

A change that adds or loses a name shows it there, one a line.
"""

from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def pinned(pytestconfig: pytest.Config) -> list[str]:
    folder = Path(__file__).with_name(pytestconfig.getoption("framework"))
    return folder.joinpath("exports.txt").read_text().split()


def test_the_face_has_the_names_that_are_pinned_each_once(
    face: ModuleType, pinned: list[str]
) -> None:
    assert sorted(face.d2l.__all__) == pinned


def test_a_star_imports_these_names_alone(face: ModuleType, pinned: list[str]) -> None:
    names: dict[str, object] = {}
    exec(f"from {face.d2l.__name__} import *", names)
    assert sorted(names.keys() - {"__builtins__"}) == pinned
    assert {*pinned} <= {*dir(face.d2l)}


def test_no_name_is_private_or_a_module(face: ModuleType, pinned: list[str]) -> None:
    assert not [name for name in pinned if name.startswith("_")]
    assert not [name for name in pinned if isinstance(getattr(face.d2l, name), ModuleType)]


def test_a_name_that_is_missing_is_told_with_the_nearest(face: ModuleType) -> None:
    with pytest.raises(
        AttributeError, match=r"MultiHeadAtention: d2l_compat\.\w+ has no such name"
    ):
        _ = face.d2l.MultiHeadAtention
    with pytest.raises(AttributeError, match="the nearest names are MultiHeadAttention"):
        _ = face.d2l.MultiHeadAtention
    assert not hasattr(face.d2l, "__wrapped__")
