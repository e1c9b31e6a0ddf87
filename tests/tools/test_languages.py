"""Test which cells are executed for a page in several languages, and how their outputs are compared."""

from collections.abc import Callable
from typing import Any

import pytest
from matplotlib import pyplot as plt

from d2l_compat._shared.plot import as_svg, plot, show_heatmaps
from tools.compare.figures import SVG
from tools.compare.languages import compare_languages
from tools.run.sharing import CodeCell, find_definitions, plan_steps


def plan(*notebooks: dict[str, str], suffix: str = ".py") -> list[str]:
    """Return each step as its cell's name and its notebook's number, such as a0; a * marks repeated definitions."""
    cells = [[CodeCell(*cell) for cell in notebook.items()] for notebook in notebooks]
    return [
        f"{step.identity.name}{step.notebook}{'*' * step.is_definition}"
        for step in plan_steps(cells, suffix)
    ]


def test_only_cells_with_words_are_executed_in_each_language():
    one = {"a": "x = 1  # one", "b": "f('x')", "c": 'def f():\n    """Two."""\n    return 2'}
    other = {"a": "x = 1", "b": "f('y')", "c": 'def f():\n    """Zwei."""\n    return 2'}
    assert plan(one, other, other) == ["a0", "b0", "b1", "c0"]
    assert plan(one, one) == plan(one) == ["a0", "b0", "c0"]


def test_definitions_with_words_are_executed_again_before_they_are_used():
    one = {
        "greet": "def greet():\n    return 'one'",
        "shared": "greet()",
        "b": "f('x', greet)",
        "c": "f('x')",
        "d": "f('x', greet)",
    }
    other = {name: code.replace("one", "eins").replace("x", "y") for name, code in one.items()}
    last_steps = ["greet0*", "b0", "greet1*", "b1", "c0", "c1", "greet0*", "d0", "greet1*", "d1"]
    assert plan(one, other) == ["greet0", "greet1", "shared0", *last_steps]


@pytest.mark.parametrize("source", ["g('y')", "f('y', 1)", "f(x)"])
def test_a_cell_that_is_not_a_translation_is_left_out(source):
    """Such a cell was edited by hand. It must not change the outputs of the first notebook."""
    assert plan({"a": "f('x')"}, {"a": source}) == ["a0"]
    assert plan({"a": "f('x')"}, {"b": "f('y')"}) == ["a0"]


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
def test_cells_with_only_definitions_are_found(source, suffix, names):
    assert find_definitions(source, suffix) == names


# Outputs


def make_text_output(text: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": text}]


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ("largest: 0.12\n", "最大：0.12\n", None),
        ("two of 3", "3 分之二", None),
        ("largest: 0.12\n", "最大：0.13\n", "'0.13' instead of '0.12'"),
        ("1", "", "0 lines instead of 1"),
    ],
)
def test_numbers_are_compared_and_words_are_not(one, other, difference):
    assert compare_languages(make_text_output(one), make_text_output(other)) == difference


def make_figure_output(draw: Callable[[], object]) -> list[dict[str, Any]]:
    draw()
    try:
        return [{"output_type": "display_data", "data": {SVG: as_svg(plt.gcf())}}]
    finally:
        plt.close("all")


def draw_curves(y: float, *words: str) -> list[dict[str, Any]]:
    X, Y = [0, 1, 2, 3, 4], [[0, 1, 4, 2, y], [1, 2, 0, 1, 0]]
    return make_figure_output(
        lambda: plot(X, Y, xlabel=words[0], ylabel=words[1], legend=words[2:])
    )


def draw_heat_maps(value: float, *words: str) -> list[dict[str, Any]]:
    matrices = [[[[0, 1, 2], [3, value, 9]], [[1, 1, 1], [2, 2, 2]]]]
    return make_figure_output(lambda: show_heatmaps(matrices, *words[:2], titles=words[2:]))


ENGLISH = "x", "A label of several words", "one", "another, which is longer"
CHINESE = "很長很長的橫軸", "縱軸", "甲，也很長", "乙"


def make_java_output(y: float, words: str) -> list[dict[str, Any]]:
    """Return a drawing in the style of d2l's Java classes, in which the length of the words moves the shapes."""
    x = len(words)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><rect width="100%" fill="#ffffff"/>'
        f'<path d="M{x} 1L{x + 1} 2L{x + 2} {y}L{x + 3} 9" fill="none"/>'
        f'<rect width="{10 * x}" fill="none"/><path d="M1 2h20" fill="none"/><text>{words}</text></svg>'
    )
    return [{"data": {SVG: svg, "text/plain": words}}]


@pytest.mark.parametrize(
    "draw",
    [draw_curves, draw_heat_maps, lambda value, *words: make_java_output(value, " ".join(words))],
    ids=["curves", "heat maps", "Java's"],
)
def test_figures_are_compared_without_their_words(draw):
    assert compare_languages(draw(3, *ENGLISH), draw(3, *CHINESE)) is None
    assert compare_languages(draw(3, *ENGLISH), draw(2.5, *CHINESE)) is not None
