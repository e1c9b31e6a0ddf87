"""What notebooks in several languages share: which cells are executed when, and that all show the same."""

from collections.abc import Callable
from typing import Any

import pytest
from matplotlib import pyplot as plt

from d2l_compat._shared.plot import as_svg, plot, show_heatmaps
from tools.compare.figures import SVG
from tools.compare.languages import difference_but_words
from tools.run.sharing import Cell, defined, turns


def order(*notebooks: dict[str, str], suffix: str = ".py") -> list[str]:
    """Which cells are executed: their names, each with its notebook's number; definitions with a *."""
    cells = [[Cell(*cell) for cell in notebook.items()] for notebook in notebooks]
    return [
        f"{turn.identity.name}{turn.notebook}{'*' * turn.is_definition}"
        for turn in turns(cells, suffix)
    ]


def test_cells_with_words_are_executed_in_each_language_at_their_place_and_all_others_once():
    one = {"a": "x = 1  # one", "b": "f('x')", "c": 'def f():\n    """Two."""\n    return 2'}
    other = {"a": "x = 1", "b": "f('y')", "c": 'def f():\n    """Zwei."""\n    return 2'}
    assert order(one, other, other) == ["a0", "b0", "b1", "c0"]
    assert order(one, one) == order(one) == ["a0", "b0", "c0"]


def test_definitions_with_words_come_again_before_a_cell_that_names_them():
    one = {
        "say": "def say():\n    return 'one'",
        "shared": "say()",
        "b": "f('x', say)",
        "c": "f('x')",
        "d": "f('x', say)",
    }
    other = {name: code.replace("one", "eins").replace("x", "y") for name, code in one.items()}
    after = ["say0*", "b0", "say1*", "b1", "c0", "c1", "say0*", "d0", "say1*", "d1"]
    assert order(one, other) == ["say0", "say1", "shared0", *after]


@pytest.mark.parametrize("source", ["g('y')", "f('y', 1)", "f(x)"])
def test_what_is_no_cell_in_other_words_waits_for_its_own_notebook(source):
    """Someone has edited it: it may not change what the first notebook shows."""
    assert order({"a": "f('x')"}, {"a": source}) == ["a0"]
    assert order({"a": "f('x')"}, {"b": "f('y')"}) == ["a0"]


@pytest.mark.parametrize(
    ("source", "suffix", "names"),
    [
        ("def f():\n    x = 1\n\n\nclass A:\n    y = 2", ".py", {"f", "A"}),
        ("def f(): pass\nx = 1", ".py", set()),
        ('class A<B> extends C { String x = "};"; int y() { return 1; } }', ".java", {"A"}),
        ("/** Says. */\nint f(int x) { return x; }\nrecord B(int y) {}", ".java", {"f", "B"}),
        ("int f() { return 1; }\nint x = 2;", ".java", set()),
        ("int f() {\n    return 2;\n}\nif (f() > 1) {\n    g();\n}", ".java", set()),
    ],
)
def test_definitions_are_told_from_what_is_done(source, suffix, names):
    assert defined(source, suffix) == names


# What they show


def printed(text: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": text}]


@pytest.mark.parametrize(
    ("one", "other", "fault"),
    [
        ("largest: 0.12\n", "最大：0.12\n", None),
        ("two of 3", "3 分之二", None),
        ("largest: 0.12\n", "最大：0.13\n", "'0.13' instead of '0.12'"),
        ("1", "", "0 lines instead of 1"),
    ],
)
def test_numbers_have_to_agree_and_words_do_not(one, other, fault):
    assert difference_but_words(printed(one), printed(other)) == fault


def shown(draw: Callable[[], object]) -> list[dict[str, Any]]:
    draw()
    try:
        return [{"output_type": "display_data", "data": {SVG: as_svg(plt.gcf())}}]
    finally:
        plt.close("all")


def curves(y: float, *words: str) -> list[dict[str, Any]]:
    x, y = [0, 1, 2, 3, 4], [[0, 1, 4, 2, y], [1, 2, 0, 1, 0]]
    return shown(lambda: plot(x, y, xlabel=words[0], ylabel=words[1], legend=words[2:]))


def heat_maps(value: float, *words: str) -> list[dict[str, Any]]:
    matrices = [[[[0, 1, 2], [3, value, 9]], [[1, 1, 1], [2, 2, 2]]]]
    return shown(lambda: show_heatmaps(matrices, *words[:2], titles=words[2:]))


ENGLISH = "x", "A label of several words", "one", "another, which is longer"
CHINESE = "很長很長的橫軸", "縱軸", "甲，也很長", "乙"


def java(y: float, words: str) -> list[dict[str, Any]]:
    """A drawing as d2l's classes for Java write it; words move what stands beside them."""
    x = len(words)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><rect width="100%" fill="#ffffff"/>'
        f'<path d="M{x} 1L{x + 1} 2L{x + 2} {y}L{x + 3} 9" fill="none"/>'
        f'<rect width="{10 * x}" fill="none"/><path d="M1 2h20" fill="none"/><text>{words}</text></svg>'
    )
    return [{"data": {SVG: svg, "text/plain": words}}]


@pytest.mark.parametrize(
    "draw",
    [curves, heat_maps, lambda value, *words: java(value, " ".join(words))],
    ids=["curves", "heat maps", "Java's"],
)
def test_figures_have_to_agree_in_all_but_their_words(draw):
    assert difference_but_words(draw(3, *ENGLISH), draw(3, *CHINESE)) is None
    assert difference_but_words(draw(3, *ENGLISH), draw(2.5, *CHINESE)) is not None
