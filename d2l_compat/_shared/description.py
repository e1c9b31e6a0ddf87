"""Text alternatives for figures, in the language of their labels."""

import re
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")

# Smaller numbers count as zero: a GPU rounds them to zero, a CPU may not.
SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal

FRAME = "_frame"  # the label of the patches that frame a heat map's cells

# Both languages have the same placeholders in the same order.
ENGLISH_WORDS = SimpleNamespace(
    title='"{}": ',
    heat_map=(
        "Heat map, {} rows ({}) by {} columns ({}), {}, {} of {} zero; "
        "colours {} from {:.2f} to {:.2f}."
    ),
    frames="{} cells framed; {} of {} rows have their largest value in one.",
    line_plot="Line plot of {} against {}.",
    line="{}: {} points from ({:.4g}, {:.2f}) to ({:.4g}, {:.2f}), {}.",
    no_points="{}: no points.",
    bar_chart="Bar chart of {} against {}.",
    bars="{}: {} bars from {:.4g} to {:.4g}, {}.",
    arrows="Arrows: {} left, {} down, {} right, {} up.",
    extent="values from {:.2f} to {:.2f}",
    no_extent="values none",
    unnamed="unnamed",
    values="values",
    index="index",
    curve="Curve",
    bar="Bars",
    separator=" ",
)
CHINESE_WORDS = SimpleNamespace(
    title="「{}」：",
    heat_map=(
        "熱圖，縱軸 {} 格，是{}；橫軸 {} 格，是{}；{}，零有 {} 個（共 {} 個）；"
        "顏色 {}，從 {:.2f} 到 {:.2f}。"
    ),
    frames="加框的有 {} 格；最大值在框內的有 {} 列（共 {} 列）。",
    line_plot="折線圖，縱軸是{}，橫軸是{}。",
    line="{}：{} 個點，從 ({:.4g}, {:.2f}) 到 ({:.4g}, {:.2f})，{}。",
    no_points="{}：沒有點。",
    bar_chart="長條圖，縱軸是{}，橫軸是{}。",
    bars="{}：{} 條，從 {:.4g} 到 {:.4g}，{}。",
    arrows="箭頭：向左 {} 個，向下 {} 個，向右 {} 個，向上 {} 個。",
    extent="數值從 {:.2f} 到 {:.2f}",
    no_extent="沒有數值",
    unnamed="未命名的軸",
    values="數值",
    index="編號",
    curve="曲線",
    bar="長條",
    separator="",
)


def describe(figure: Any) -> str:
    """Describe a figure in words: the kind, labels and extent of everything drawn in it."""
    is_chinese = CHINESE.search(" ".join(_list_labels(figure)))
    words = CHINESE_WORDS if is_chinese else ENGLISH_WORDS
    parts = []
    for axes in figure.axes:
        title = words.title.format(axes.get_title()) if axes.get_title() else ""
        for image in axes.get_images():
            parts.append(title + _describe_image(image, axes, words))
            if frames := [patch for patch in axes.patches if patch.get_label() == FRAME]:
                parts.append(_describe_frames(image, frames, words))
        names = _legend_names(axes)
        lines = axes.get_lines()
        bar_groups = [container for container in axes.containers if len(container)]
        for kind, artists in (words.line_plot, lines), (words.bar_chart, bar_groups):
            if artists:
                x, y = _axis_label(axes, "x"), _axis_label(axes, "y")
                parts.append(title + kind.format(y or words.values, x or words.index))
        for line, name in zip_longest(lines, names[: len(lines)]):
            parts.append(_describe_line(line, name or words.curve, words))
        for bars, name in zip_longest(bar_groups, names[: len(bar_groups)]):
            parts.append(_describe_bars(bars, name or words.bar, words))
        for arrows in axes.collections:
            if hasattr(arrows, "U"):
                parts.append(_describe_arrows(arrows, axes, words))
    return words.separator.join(parts) or "Empty figure."


def _list_labels(figure: Any) -> list[str]:
    """Return all titles, axis labels and legend entries."""
    labels = []
    for axes in figure.axes:
        labels += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *_legend_names(axes)]
    return labels


def _legend_names(axes: Any) -> list[str]:
    legend = axes.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def _describe_image(image: Any, axes: Any, words: SimpleNamespace) -> str:
    values = np.ma.masked_invalid(image.get_array()).compressed()
    rows, columns = image.get_array().shape[:2]
    return str(
        words.heat_map.format(
            rows,
            _axis_label(axes, "y") or words.unnamed,
            columns,
            _axis_label(axes, "x") or words.unnamed,
            _describe_extent(values, words),
            np.count_nonzero(abs(values) < SMALLEST_NORMAL),
            values.size,
            image.get_cmap().name,
            *image.get_clim(),
        )
    )


def _describe_frames(image: Any, frames: list[Any], words: SimpleNamespace) -> str:
    """Count the framed cells, and the rows whose largest value is in one."""
    values = np.ma.filled(np.ma.masked_invalid(image.get_array()), -np.inf)
    cells = {(round(y + 0.5), round(x + 0.5)) for x, y in (frame.get_xy() for frame in frames)}
    largest = set(enumerate(values.argmax(axis=1)))
    return str(words.frames.format(len(cells), len(cells & largest), len(values)))


def _describe_line(line: Any, name: str, words: SimpleNamespace) -> str:
    x, y = (np.asarray(values, float) for values in line.get_data(orig=False))
    if not len(x):
        return str(words.no_points.format(name))
    extent = _describe_extent(y[np.isfinite(y)], words)
    return str(words.line.format(name, len(x), x[0], y[0], x[-1], y[-1], extent))


def _describe_bars(bars: Any, name: str, words: SimpleNamespace) -> str:
    heights = np.array([bar.get_height() for bar in bars], float)
    first, last = bars[0].get_x(), bars[-1].get_x() + bars[-1].get_width()
    return str(words.bars.format(name, len(heights), first, last, _describe_extent(heights, words)))


def _describe_arrows(arrows: Any, axes: Any, words: SimpleNamespace) -> str:
    """Count the arrows by the nearest direction: left, down, right or up."""
    right, up = np.ma.filled(arrows.U, 0), np.ma.filled(arrows.V, 0)
    if isinstance(arrows.angles, str) and arrows.angles == "xy":  # in the axes' directions
        right, up = (-1) ** axes.xaxis_inverted() * right, (-1) ** axes.yaxis_inverted() * up
    is_horizontal = abs(right) > abs(up)
    directions = (
        is_horizontal & (right < 0),
        ~is_horizontal & (up < 0),
        is_horizontal & (right > 0),
        ~is_horizontal & (up > 0),
    )
    return str(words.arrows.format(*map(np.count_nonzero, directions)))


def _describe_extent(values: NDArray[Any], words: SimpleNamespace) -> str:
    if not values.size:
        return str(words.no_extent)
    return str(words.extent.format(values.min(), values.max()))


def _axis_label(axes: Any, which: str) -> str:
    """Return an axis's label, which may belong to a panel that shares the axis."""
    siblings = getattr(axes, f"get_shared_{which}_axes")().get_siblings(axes)
    labels = [getattr(panel, f"get_{which}label")() for panel in (axes, *siblings)]
    return next(filter(None, labels), "")
