"""Curves that grow during training: D2L 0.17's ``Animator``, and 1.0's ``ProgressBoard``.

In Jupyter each figure replaces the one before; elsewhere a figure is displayed by ``plt.show()`` only.
"""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d2l_compat._shared import plot
from d2l_compat._shared.checks import check_instance, integer
from d2l_compat._shared.measuring import as_float
from d2l_compat._shared.oo_design import HyperParameters

FORMATS = "-", "m--", "g-.", "r:"  # D2L's


class Animator:
    """Plots curves point by point: ``add(epoch, (loss, accuracy))``.

    ``X`` and ``Y`` have a list of coordinates for each curve, or are None before the first point. ``axes`` are those
    of the figure ``fig``, in a list or an array.
    """

    def __init__(
        self,
        xlabel: str | None = None,
        ylabel: str | None = None,
        legend: Sequence[str] | None = None,
        xlim: Any = None,
        ylim: Any = None,
        xscale: str = "linear",
        yscale: str = "linear",
        fmts: Sequence[str] = FORMATS,
        nrows: int = 1,
        ncols: int = 1,
        figsize: tuple[float, float] = (3.5, 2.5),
    ) -> None:
        """Create the figure; labels, limits and scales are as in :func:`plot`.

        The figure has ``nrows`` by ``ncols`` axes, with curves in the first; ``figsize`` is (width, height) in inches.
        ``fmts`` are matplotlib's format strings; instead of the default ones, ``add`` uses the styles of :func:`plot`.
        """
        plot.use_svg_display()
        self.fig, axes = plot.pyplot().subplots(nrows, ncols, figsize=figsize)
        self.axes: Any = [axes] if nrows * ncols == 1 else axes
        self._settings = (xlabel, ylabel, xlim, ylim, xscale, yscale, legend or [])
        self.X: list[list[float]] | None = None
        self.Y: list[list[float]] | None = None
        self.fmts = fmts

    @property
    def _first_axes(self) -> Any:
        return np.ravel(self.axes)[0]

    def config_axes(self) -> None:
        """Set labels, limits, scales and legend of the first axes, which ``cla`` removes."""
        plot.set_axes(self._first_axes, *self._settings)

    def add(self, x: Any, y: Any) -> None:
        """Add a point to each curve: ``x`` and ``y`` are numbers, or lists with a number or None for each curve."""
        ys = _as_list(y) or [y]
        xs = _as_list(x) or [x] * len(ys)
        self.X, self.Y = self.X or [], self.Y or []
        for curves in self.X, self.Y:
            curves.extend([] for _ in range(len(ys) - len(curves)))
        for curve, (curve_x, curve_y) in enumerate(zip(xs, ys, strict=True)):
            if curve_x is not None and curve_y is not None:
                self.X[curve].append(as_float("x", curve_x))
                self.Y[curve].append(as_float("y", curve_y))
        axes = self._first_axes
        axes.cla()
        plot.draw_curves(axes, self.X, self.Y, None if self.fmts is FORMATS else self.fmts)
        self.config_axes()
        _display(self.fig)


class Point(NamedTuple):
    x: float
    y: float


class ProgressBoard(HyperParameters):
    """Plots named curves point by point: ``draw(epoch, loss, "train_loss")``."""

    xlabel: str | None
    ylabel: str | None
    xlim: Any
    ylim: Any
    xscale: str
    yscale: str
    ls: Sequence[Any]
    colors: Sequence[str]
    fig: Any
    axes: Any
    figsize: tuple[float, float]
    display: bool
    raw_points: dict[str, list[Point]]  # not drawn yet
    data: dict[str, list[Point]]

    def __init__(
        self,
        xlabel: str | None = None,
        ylabel: str | None = None,
        xlim: Any = None,
        ylim: Any = None,
        xscale: str = "linear",
        yscale: str = "linear",
        ls: Sequence[Any] = plot.STYLES,
        colors: Sequence[str] = plot.COLORS,
        fig: Any = None,
        axes: Any = None,
        figsize: tuple[float, float] = (3.5, 2.5),
        display: bool = True,
    ) -> None:
        """Set the style: ``ls`` and ``colors`` are cycles of line styles and colours, as in :func:`plot`.

        ``figsize`` is (width, height) in inches. Nothing is drawn unless ``display`` is True.
        """
        self.save_hyperparameters()

    def draw(self, x: Any, y: Any, label: str, every_n: int = 1) -> None:
        """Add the point (x, y) to a curve, which shows the mean of every ``every_n`` points.

        Raises TypeError or ValueError unless ``every_n`` is an integer of at least 1, the label a string,
        and x and y numbers.
        """
        every_n = integer("every_n", every_n, 1)
        check_instance("label", label, str, "a curve's name as a string")
        if not hasattr(self, "raw_points"):  # made here for subclasses with another __init__
            self.raw_points = {}
            self.data = {}
        points = self.raw_points.setdefault(label, [])
        curve = self.data.setdefault(label, [])
        points.append(Point(as_float("x", x), as_float("y", y)))
        if len(points) < every_n:
            return
        xs, ys = zip(*points, strict=True)
        curve.append(Point(sum(xs) / len(xs), sum(ys) / len(ys)))
        points.clear()
        if self.display:
            self._redraw()

    def _redraw(self) -> None:
        if self.fig is None:
            plot.use_svg_display()
            self.fig = plot.pyplot().figure(figsize=self.figsize)
        axes = self.axes if self.axes is not None else self.fig.gca()
        axes.cla()
        for number, (label, curve) in enumerate(self.data.items()):
            style = self.ls[number % len(self.ls)]
            color = self.colors[number % len(self.colors)]
            axes.plot(*zip(*curve, strict=True), linestyle=style, color=color, label=label)
        labels = list(self.data)
        limits = (self.xlim, self.ylim, self.xscale, self.yscale)
        plot.set_axes(axes, self.xlabel, self.ylabel or "", *limits, labels)
        _display(self.fig)


def _as_list(numbers: Any) -> list[Any]:
    """Return the elements of a list or an array; an empty list for a number or a framework's scalar."""
    has_elements = hasattr(numbers, "__len__") and getattr(numbers, "ndim", 1) > 0
    return list(numbers) if has_elements else []


def _display(figure: Any) -> None:
    IPython = sys.modules.get("IPython")
    shell = IPython.get_ipython() if IPython else None
    if shell is not None and hasattr(shell, "kernel"):
        from IPython import display

        display.display(figure)
        display.clear_output(wait=True)  # waits until the next figure is displayed
