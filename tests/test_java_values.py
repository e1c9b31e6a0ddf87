"""What the kernel of a Java notebook hands over to the claims (tests/java/values.py)."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.conftest import PATIENCE
from tests.java.values import DRAWN, Java, assigned_names, camel, literal
from tools.run.kernels import neutral_environment
from tools.run.page_kernel import PageKernel
from tools.weave.lessons import ROOT, Edition
from tools.weave.programs import read_code
from tools.weave.prose import ORIGINAL


def test_the_variables_that_a_cell_sets_are_found_outside_of_its_methods() -> None:
    source = """
    int a = 1, b = 2; // c = 3
    var text = "d = 4; {";
    Map<String, List<Integer>> map = new TreeMap<>();
    a = b + 5;
    int twice(int e) { int f = 2 * e; return f; }
    for (int g = 0; g <= 2; g++) { b = g == 1 ? 1 : 2; }
    Function<Integer, Integer> h = i -> i + 1;
    """
    assert assigned_names(source) == ["a", "b", "text", "map", "h"]


@pytest.mark.parametrize(
    ("python", "java"), [("by_heads", "byHeads"), ("W_q", "W_q"), ("k_", "k_")]
)
def test_names_of_python_are_found_in_java(python: str, java: str) -> None:
    assert camel(python) == java


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    with neutral_environment():
        kernel = PageKernel("java", ".", startup_timeout=PATIENCE)
        kernel.cell_timeout = PATIENCE
        lesson = Edition(ROOT / "lessons" / "attention", ORIGINAL, "djl")
        assert not kernel.tell(read_code(lesson.code)["setup"].source).fault
        java = Java(kernel)
        java.begin()
        yield java
        kernel.stop()


def test_values_come_over_as_they_are(java: Java) -> None:
    X = np.arange(6, dtype="float32").reshape(2, 3)
    for array in (X, X.astype("int64"), X > 2, np.zeros((0, 3), "float32"), np.ones((99, 999))):
        back = java.get(literal(array))
        np.testing.assert_array_equal(back, array)
        assert back.dtype.kind == array.dtype.kind
    assert java.get('List.of(1, 2.5, "a\\"b\\n", true)') == [1, 2.5, 'a"b\n', True]
    assert java.get("Map.of(2, new double[] {1, 2})") == {2: [1, 2]}
    assert np.isnan(java.get("Double.NaN"))
    assert java.get("null") is None


def test_what_stays_in_the_kernel_can_be_asked_and_called(java: Java) -> None:
    kept = java.get('new StringBuilder("abc")')
    assert (kept.kind, kept.call("length")) == ("StringBuilder", 3)
    java.run("Function<Integer, Integer> twice = x -> 2 * x;")
    assert java.get("twice")(4) == 8
    with pytest.raises(ValueError, match="no such place"):
        java.run('throw new IllegalStateException("no such place");')


def test_a_figure_comes_over_with_its_numbers(java: Java) -> None:
    java.run('Plots.heatmaps(manager.eye(2).reshape(1, 1, 2, 2)).xlabel("x").show();')
    java.keep("map", [], 1)
    (its,) = java.get('Handover.kept.get("map/figures")')
    (panel, *_), *_ = [axes.get_images() for axes in DRAWN["Heatmaps"](its).axes]
    np.testing.assert_array_equal(panel.get_array(), np.eye(2))
    assert panel.axes.get_xlabel() == "x"
