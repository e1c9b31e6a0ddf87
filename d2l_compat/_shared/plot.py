"""Line plots and heat maps, the same for every framework.

matplotlib is imported by the first plot. Jupyter gets each figure as an SVG, which is sharp at any zoom; as a PNG,
since some viewers show no SVGs, or none in untrusted notebooks; and as text, which is also the SVG's description.
"""

import os
import sys
from collections.abc import Sequence, Sized
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, message, size
from d2l_compat._shared.description import FRAME, describe
from d2l_compat._shared.fonts import write_chinese
from d2l_compat._shared.svg import BAR, CELLS, add_alt_text, vectorize_images

# Distinct for colour-blind readers; each colour has a line style, for printing in grey.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00", "#555555")
CSS_DPI = 96  # pixels per inch in browsers
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))


def pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt


def use_svg_display() -> None:
    """Display figures as SVG, PNG and text; do nothing outside Jupyter.

    ``D2L_COMPAT_PNG=never`` omits the PNG, which takes as long to make as the SVG.
    """
    IPython = sys.modules.get("IPython")
    shell = IPython.get_ipython() if IPython else None
    if shell is None or not hasattr(shell, "kernel"):
        return
    from matplotlib.figure import Figure
    from matplotlib_inline import backend_inline

    backend_inline.set_matplotlib_formats()  # without Jupyter's own formats
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Figure, as_svg)
    if os.environ.get("D2L_COMPAT_PNG") != "never":
        formatters["image/png"].for_type(Figure, as_png)
    formatters["text/plain"].for_type(Figure, lambda figure, p, _: p.text(describe(figure)))


def set_figsize(figsize: tuple[float, float] = (3.5, 2.5)) -> None:
    """Set the size of the next figures, (width, height) in inches."""
    use_svg_display()
    pyplot().rcParams["figure.figsize"] = figsize


def set_axes(
    axes: Any,
    xlabel: str | None,
    ylabel: str | None,
    xlim: Any,
    ylim: Any,
    xscale: str,
    yscale: str,
    legend: Sequence[str] | None,
) -> None:
    """Set labels, limits, scales and legend; a limit of None is matplotlib's own choice."""
    axes.set_xlabel(xlabel or "")
    axes.set_ylabel(ylabel or "")
    axes.set_xscale(xscale)
    axes.set_yscale(yscale)
    if xlim is not None:
        axes.set_xlim(xlim)
    if ylim is not None:
        axes.set_ylim(ylim)
    if legend:
        axes.legend(legend)
    axes.grid(alpha=0.4)


def plot(
    X: Any,
    Y: Any = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    legend: Sequence[str] | None = None,
    xlim: Any = None,
    ylim: Any = None,
    xscale: str = "linear",
    yscale: str = "linear",
    fmts: Sequence[str] | None = None,
    figsize: tuple[float, float] = (3.5, 2.5),
    axes: Any = None,
) -> None:
    """Plot curves.

    ``X`` and ``Y`` are the coordinates of a curve, shape (points,), or of several curves, shape (curves, points), or
    a list of curves, each of which may be a column, (points, 1). One X serves every curve of Y. Without ``Y``, ``X``
    is plotted against 0, 1, 2, ... ``fmts`` are matplotlib's format strings, by default a colour and a line style
    for each curve; ``figsize`` is (width, height) in inches; ``axes`` are by default the current ones.

    Raises ValueError for curves of unequal length, TypeError for values that are not numeric.
    """
    xs = _to_curves("X", X)
    if Y is None:
        ys = xs
        xs = [np.arange(len(y)) for y in ys]
    else:
        ys = _to_curves("Y", Y)
    if len(xs) == 1:
        xs = xs * len(ys)
    if len(xs) != len(ys):
        got = f"{len(xs)} of X and {len(ys)} of Y"
        raise ValueError(message("curves", got, "one X for all curves, or one for each"))
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if len(x) != len(y):
            got = f"{len(x)} points in X and {len(y)} in Y"
            raise ValueError(message(f"curve {i}", got, "the same number of each"))

    set_figsize(figsize)
    axes = axes if axes is not None else pyplot().gca()
    axes.cla()
    draw_curves(axes, xs, ys, fmts)
    set_axes(axes, xlabel, ylabel, xlim, ylim, xscale, yscale, legend)
    write_chinese(axes.figure)


def draw_curves(
    axes: Any, xs: Sequence[Any], ys: Sequence[Any], fmts: Sequence[str] | None = None
) -> None:
    """Draw curves into ``axes``, with ``fmts`` or with a colour and a line style for each."""
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if fmts:
            axes.plot(x, y, fmts[i % len(fmts)])
        else:
            axes.plot(x, y, color=COLORS[i % len(COLORS)], linestyle=STYLES[i % len(STYLES)])


def show_heatmaps(
    matrices: Any,
    xlabel: str,
    ylabel: str,
    titles: Sequence[str] | None = None,
    figsize: tuple[float, float] = (2.5, 2.5),
    cmap: str = "Reds",
    *,
    xticklabels: Sequence[str] | None = None,
    yticklabels: Sequence[str] | None = None,
    marks: Any = None,
) -> None:
    """Show a grid of heat maps on one colour scale.

    ``matrices`` has shape (grid rows, grid columns, matrix rows, matrix columns). The scale spans all of them, its
    ends rounded to three digits. A scale with both signs is symmetric, so that zero has the middle colour. ``titles``
    names the grid's columns; ``figsize`` is (width, height) in inches. ``xticklabels`` names the matrices' columns
    and ``yticklabels`` their rows, for example by tokens; without them, both are counted from 0. ``marks``, booleans
    that broadcast to the shape of ``matrices``, says which cells get a frame.

    Raises ValueError for another rank, for matrices without a finite number, for a wrong number of titles or labels
    and for marks of another shape, TypeError for values that are not numeric.
    """
    grid = to_numpy("matrices", matrices)
    if grid.ndim != 4:
        need = "4 dimensions (grid rows, grid columns, matrix rows, matrix columns)"
        raise ValueError(message("matrices", f"shape {grid.shape}", need))
    low, high = color_scale("matrices", grid)
    if titles and len(titles) != grid.shape[1]:
        got = f"{len(titles)} for {grid.shape[1]} columns of heat maps"
        raise ValueError(message("titles", got, "one for each column"))
    if xticklabels is not None:
        check_names("xticklabels", xticklabels, grid.shape[3], "columns")
    if yticklabels is not None:
        check_names("yticklabels", yticklabels, grid.shape[2], "rows")
    is_marked = _broadcast_marks(marks, grid.shape)

    use_svg_display()
    rows, columns = grid.shape[:2]
    figure, axes = pyplot().subplots(
        rows, columns, figsize=figsize, sharex=True, sharey=True, squeeze=False, layout="compressed"
    )
    for i in range(rows):
        for j in range(columns):
            image = draw_cells(axes[i, j], i * columns + j, grid[i, j], cmap, low, high)
            set_ticks(axes[i, j].xaxis, xticklabels)
            set_ticks(axes[i, j].yaxis, yticklabels)
            draw_frames(axes[i, j], is_marked[i, j])
            if i == rows - 1:
                axes[i, j].set_xlabel(xlabel)
            if j == 0:
                axes[i, j].set_ylabel(ylabel)
            if titles:
                axes[i, j].set_title(titles[j])
    draw_color_bar(figure, axes, image)
    write_chinese(figure)


def color_scale(what: str, grid: NDArray[Any]) -> tuple[float, float]:
    """Return the limits of one colour scale for all matrices, symmetric if both signs occur."""
    finite = grid[np.isfinite(grid)]
    if not finite.size:
        got = f"shape {grid.shape} without a finite number"
        raise ValueError(message(what, got, "at least one number"))
    # Rounding does not change colours visibly. It keeps the colour bar's tick at 1 for a softmax that is
    # 0.9999999 on one processor and 1 on another.
    low, high = (float(f"{end:.3g}") for end in (finite.min(), finite.max()))
    return (-max(-low, high), max(-low, high)) if low < 0 < high else (low, high)


def draw_cells(
    axes: Any, number: int, matrix: NDArray[Any], cmap: str, low: float, high: float
) -> Any:
    """Draw a heat map, the one with this ``number`` in its figure, from 0; return its image."""
    # Without interpolation each number is a sharp cell at any zoom.
    image = axes.imshow(matrix, cmap=cmap, vmin=low, vmax=high, interpolation="none")
    image.set_gid(f"{CELLS}{number + 1}")
    return image


def draw_frames(axes: Any, is_marked: NDArray[Any]) -> None:
    """Draw a black frame with a white edge, visible on any colour, around each marked cell."""
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(is_marked):
        for color, width in ("white", 2.5), ("black", 1.2):
            corner = column - 0.5, row - 0.5
            axes.add_patch(
                Rectangle(corner, 1, 1, label=FRAME, fill=False, edgecolor=color, linewidth=width)
            )


def check_names(what: str, names: Any, count: int, items: str) -> None:
    """Check that there is a name for each of ``count`` items."""
    check_instance(what, names, Sequence, "a list of names")
    if len(names) != count:
        raise ValueError(message(what, f"{len(names)} for {count} {items}", "one for each"))


def _broadcast_marks(marks: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    if marks is None:
        return np.zeros(shape, bool)
    array = to_numpy("marks", marks)
    try:
        return np.broadcast_to(array != 0, shape)
    except ValueError:
        need = f"a shape that broadcasts to that of matrices, {shape}"
        raise ValueError(message("marks", f"shape {array.shape}", need)) from None


def set_ticks(axis: Any, labels: Sequence[str] | None) -> None:
    """Label each cell along an axis, or some of them by their numbers."""
    if labels is None:
        axis.get_major_locator().set_params(integer=True)
    else:
        axis.set_ticks(range(len(labels)), labels)


def draw_color_bar(figure: Any, axes: Any, image: Any) -> None:
    """Draw the colour bar of all heat maps next to them."""
    bar = figure.colorbar(image, ax=axes, shrink=0.6)
    bar.solids.set(gid=BAR, rasterized=False)


def show_images(
    imgs: Any,
    num_rows: int,
    num_cols: int,
    titles: Sequence[str] | None = None,
    scale: float = 1.5,
) -> Any:
    """Show images in a grid, row by row; return its axes, a flat array.

    Each image is an array, shape (height, width) or (height, width, channels); ``scale`` is its height and width
    in inches. Images that do not fit into the grid are omitted; cells without an image stay empty.
    Raises ValueError for fewer titles than images in the grid, TypeError for images that are not numeric.
    """
    num_rows, num_cols = size("num_rows", num_rows), size("num_cols", num_cols)
    images = [to_numpy("imgs", image) for image in islice(imgs, num_rows * num_cols)]
    if titles and len(titles) < len(images):
        need = "one for each image in the grid"
        raise ValueError(message("titles", f"{len(titles)} for {len(images)} images", need))
    use_svg_display()
    figsize = (num_cols * scale, num_rows * scale)
    axes = pyplot().subplots(num_rows, num_cols, figsize=figsize, squeeze=False)[1].flatten()
    for i, axis in enumerate(axes):
        if i >= len(images):
            axis.axis("off")
            continue
        axis.imshow(images[i])
        axis.xaxis.set_visible(False)
        axis.yaxis.set_visible(False)
        if titles:
            axis.set_title(titles[i])
    write_chinese(axes[0].figure)
    return axes


def show_list_len_pair_hist(
    legend: Sequence[str], xlabel: str, ylabel: str, xlist: Any, ylist: Any
) -> None:
    """Show histograms, in ten bins, of the lengths of the lists in ``xlist`` and, hatched, in ``ylist``.

    ``legend`` names the two. Raises TypeError or ValueError unless they are lists of lists, not empty.
    """
    lengths = [_list_lengths("xlist", xlist), _list_lengths("ylist", ylist)]
    set_figsize()
    _, _, (_, hatched) = pyplot().hist(lengths, color=COLORS[:2])
    for bar in hatched:
        bar.set_hatch("/")
    axes = pyplot().gca()
    set_axes(axes, xlabel, ylabel, None, None, "linear", "linear", legend)
    write_chinese(axes.figure)


def _list_lengths(what: str, lists: Any) -> list[int]:
    need = "a list of lists, at least one"
    check_instance(what, lists, (list, tuple), need)
    if not lists:
        raise ValueError(message(what, "none", need))
    for part in lists:
        check_instance(what, part, Sized, need)
    return [len(part) for part in lists]


def annotate(text: str, xy: tuple[float, float], xytext: tuple[float, float]) -> None:
    """Write ``text`` at ``xytext`` into the current axes, with an arrow from it to ``xy``."""
    pyplot().gca().annotate(text, xy=xy, xytext=xytext, arrowprops={"arrowstyle": "->"})


def _to_curves(what: str, data: Any) -> list[NDArray[Any]]:
    """Return one curve or several as a list of vectors."""
    is_list = isinstance(data, (list, tuple))
    if is_list and any(getattr(part, "ndim", hasattr(part, "__len__")) for part in data):
        return [curve for part in data for curve in _part_to_curves(what, part)]
    array = to_numpy(what, data)
    if array.ndim not in (1, 2):
        need = "1 dimension (points) or 2 (curves, points)"
        raise ValueError(message(what, f"shape {array.shape}", need))
    return list(np.atleast_2d(array))


def _part_to_curves(what: str, data: Any) -> list[NDArray[Any]]:
    """Return the curves in an element of a list, where a column (points, 1) is one curve, as in matplotlib."""
    shape: tuple[int, ...] = getattr(data, "shape", ())
    if len(shape) == 2 and shape[1] == 1 < shape[0]:
        return [to_numpy(what, data)[:, 0]]
    return _to_curves(what, data)


def as_svg(figure: Any) -> str:
    """Return the figure as an SVG document with a title and a description."""
    import matplotlib

    write_chinese(figure)
    svg = BytesIO()
    # With a fixed salt and no date, the same figure always gives the same bytes.
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": "d2l_compat", "svg.fonttype": "path"}):
        figure.savefig(svg, format="svg", bbox_inches="tight", metadata=no_metadata)
    return add_alt_text(vectorize_images(svg.getvalue().decode(), figure), describe(figure))


def as_png(figure: Any) -> tuple[bytes, dict[str, Any]]:
    """Return a PNG of the figure at twice a usual screen's resolution, with its width on such a screen and alt text."""
    write_chinese(figure)
    png = BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight", dpi=2 * CSS_DPI)
    width = int.from_bytes(png.getvalue()[16:20])  # in a PNG's header
    return png.getvalue(), {"width": width // 2, "alt": describe(figure)}
