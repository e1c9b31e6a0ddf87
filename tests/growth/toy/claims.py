"""The lesson's claims."""

from tests.lessons.cells import read_numbers

DETERMINISTIC = ["sum", "curve"]
VARYING_FORM: list[str] = []


def test_the_sum_is_six(cells):
    assert read_numbers(cells["sum"].printed) == [6]  # the words depend on the language


def test_the_curve_is_the_square(cells):
    ((x, y),) = cells["curve"].curves
    assert [*y] == [*x**2]
