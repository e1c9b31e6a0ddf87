"""Plots take the framework's own tensors, on their own or in lists."""

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from matplotlib import pyplot as plt

Y = np.array([[1.0, 4.0, 9.0], [2.0, 0.0, -2.0]])


@pytest.fixture(autouse=True)
def fresh_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_curves_may_be_tensors(face: ModuleType, dtype: str) -> None:
    tensor = face.tensor(Y.astype(dtype))
    rows = [tensor[0], tensor[1]]
    for curves in (tensor, rows, [[row[i] for i in range(3)] for row in rows]):
        face.d2l.plot(face.tensor(np.arange(3)), curves)
        drawn = [line.get_ydata() for line in plt.gca().get_lines()]
        np.testing.assert_array_equal(drawn, Y)


def test_heat_maps_may_be_tensors(face: ModuleType) -> None:
    grid = np.random.default_rng(0).random((2, 3, 4, 5))
    face.d2l.show_heatmaps(face.tensor(grid), "Keys", "Queries")
    shown = [image.get_array() for axes in plt.gcf().axes for image in axes.get_images()]
    np.testing.assert_array_equal(shown, grid.reshape(6, 4, 5))


def test_plt_is_matplotlibs(face: ModuleType) -> None:
    assert face.d2l.plt is plt


def test_a_name_that_is_not_there_is_an_attribute_error(face: ModuleType) -> None:
    with pytest.raises(
        AttributeError,
        match=r"^show_heatmap: .* has no such name .*; the nearest names are show_heatmaps",
    ):
        _ = face.d2l.show_heatmap
