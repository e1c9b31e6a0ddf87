"""Tests of plots of the framework's tensors, which may be in lists."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

from tests.shim.each.adapter import Adapter

Y = np.array([[1.0, 4.0, 9.0], [2.0, 0.0, -2.0]])

pytestmark = pytest.mark.usefixtures("close_figures")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_curves_may_be_tensors(adapter: Adapter, dtype: str) -> None:
    tensor = adapter.tensor(Y.astype(dtype))
    rows = [tensor[0], tensor[1]]
    for curves in (tensor, rows, [[row[i] for i in range(3)] for row in rows]):
        adapter.d2l.plot(adapter.tensor(np.arange(3)), curves)
        heights = [line.get_ydata() for line in plt.gca().get_lines()]
        np.testing.assert_array_equal(heights, Y)


def test_heat_maps_may_be_tensors(adapter: Adapter) -> None:
    grid = np.random.default_rng(0).random((2, 3, 4, 5))
    adapter.d2l.show_heatmaps(adapter.tensor(grid), "Keys", "Queries")
    arrays = [image.get_array() for axes in plt.gcf().axes for image in axes.get_images()]
    np.testing.assert_array_equal(arrays, grid.reshape(6, 4, 5))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_values_and_policies_may_be_tensors(adapter: Adapter, dtype: str) -> None:
    values, actions = np.eye(2, 4).astype(dtype), np.arange(8).reshape(2, 4).astype(dtype) % 4
    for show in (adapter.d2l.show_value_function_progress, adapter.d2l.show_Q_function_progress):
        show([["S", "F"], ["F", "F"]], adapter.tensor(values), adapter.tensor(actions))
        maps = [axes for axes in plt.gcf().axes if axes.get_images()]
        arrays = [axes.get_images()[0].get_array() for axes in maps]
        np.testing.assert_array_equal(arrays, values.reshape(2, 2, 2))
        for axes in maps:
            (arrows,) = (artist for artist in axes.collections if hasattr(artist, "U"))
            np.testing.assert_array_equal(arrows.U, [-0.5, 0, 0.5, 0])
            np.testing.assert_array_equal(arrows.V, [0, 0.5, 0, -0.5])


def test_plt_has_matplotlibs_names(adapter: Adapter) -> None:
    """Test that all names are pyplot's, except for ``stem``, which accepts an older argument."""
    ours = adapter.d2l.plt
    assert dir(ours) == dir(plt)
    public = [name for name in dir(plt) if not name.startswith("_")]
    assert [name for name in public if getattr(ours, name) is not getattr(plt, name)] == ["stem"]


def test_boxes_are_drawn_with_their_labels(adapter: Adapter) -> None:
    _, axes = plt.subplots()
    boxes = [[1, 2, 4, 8], [0, 0, 3, 3], [5, 5, 6, 6]]
    adapter.d2l.show_bboxes(
        axes, adapter.tensor(np.array(boxes, "float32")), ["dog", "cat"], ["r", "w"]
    )
    rectangles = axes.patches
    assert [r.get_bbox().extents.tolist() for r in rectangles] == boxes
    assert [r.get_edgecolor() for r in rectangles] == [to_rgba(color) for color in "rwr"]
    assert not any(r.get_fill() for r in rectangles)
    assert [(t.get_text(), t.get_position(), t.get_color()) for t in axes.texts] == [
        ("dog", (1, 2), "w"),
        ("cat", (0, 0), "k"),
    ]
    adapter.d2l.show_bboxes(axes, adapter.tensor(np.array(boxes, "float32")), "all")
    assert [to_rgba(color) for color in "bgr"] == [r.get_edgecolor() for r in axes.patches[3:]]
    assert [text.get_text() for text in axes.texts] == ["dog", "cat", "all"]
