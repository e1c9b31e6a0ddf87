"""Test how the variables of Java's cells are found and read (tests/lessons/java/values.py)."""

from collections.abc import Iterator

import pytest

from tests.conftest import TIMEOUT
from tests.lessons.java.values import Java, Names, find_assigned_names
from tools.run.page_kernel import PageKernel
from tools.weave.lessons import ROOT
from tools.weave.programs import read_code

NESTED = """\
class Outer {
    static class Inner {
        int size = 7;
        int add(int number) { return size + number; }
    }
    record Pair(int first, List<String> words) {}
}
"""
VALUES = """\
var inner = new Outer.Inner();
Map<String, List<Outer.Inner>> byName = Map.of("a", List.of(inner));
Supplier<List<Integer>> supplier = () -> List.of(1, 2);
var pair = new Outer.Pair(3, List.of("x"));
"""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("Map<String, List<NDArray>> kept = new HashMap<>();", "kept"),
        ("Supplier<NDArray> make = () -> { var inner = f(); return inner; };", "make"),
        ('Map<String, int[]> sizes = Map.of("a = b{", new int[] {1}); int n = 2;', "sizes n"),
        (
            "int one = 1, two = 2; boolean less = one <= two, same = one == two;",
            "one two less same",
        ),
        ("record Pair<A, B>(A first, B second) { static int count = 0; }", ""),
        (NESTED, ""),
        (NESTED + VALUES, "inner byName supplier pair"),
        ("static <T> List<T> copy(List<T> all) { var made = all; return made; }", ""),
        ("layer.size = 3; counts[0] = 4; int n = 5;", "counts n"),
        ('String text = """\n    a = "b" {\n    """;\nint n = 1;', "text n"),
    ],
)
def test_variables_outside_methods_and_classes_are_found(source: str, names: str) -> None:
    assert find_assigned_names(source) == names.split()


@pytest.fixture
def java(pytestconfig: pytest.Config) -> Iterator[Java]:
    """Start a kernel, and run the imports of a lesson."""
    if "djl" not in pytestconfig.getoption("frameworks").split():
        pytest.skip("DJL is not installed")
    kernel = PageKernel("java", ".", startup_timeout=TIMEOUT)
    try:
        java = Java(kernel)
        program = read_code(ROOT / "lessons" / "attention" / "code.djl.java", "en")
        java.run(next(iter(program.values())).source)
        java.define_helpers()
        yield java
    finally:
        if hasattr(kernel, "km"):
            kernel.stop()


def test_objects_of_nested_classes_can_be_read(java: Java) -> None:
    java.run(NESTED + VALUES)
    found = find_assigned_names(NESTED + VALUES)
    java.store("cell", found)
    names = Names(java, {name: f"cell/{name}" for name in found})
    assert names["inner"].get("size") == 7
    assert names["by_name"]["a"][0].call("add", 1) == 8
    assert names["supplier"]() == [1, 2]
    first, words = names["pair"]
    assert (first, words) == (3, ["x"])
