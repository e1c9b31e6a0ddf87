"""Figures in words: their text alternatives, in the language of their labels."""

import re
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")

# Below it a GPU has zero where the CPU still has a few bits.
SMALLEST = np.finfo(np.float32).smallest_normal

# The same numbers, in the same order.
IN_ENGLISH = SimpleNamespace(
    title='"{}": ',
    heat_map=(
        "Heat map, {} rows ({}) by {} columns ({}), {}, {} of {} zero; "
        "colours {} from {:.2f} to {:.2f}."
    ),
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
    between=" ",
)
IN_CHINESE = SimpleNamespace(
    title="「{}」：",
    heat_map=(
        "熱圖，縱軸 {} 格，是{}；橫軸 {} 格，是{}；{}，零有 {} 個（共 {} 個）；"
        "顏色 {}，從 {:.2f} 到 {:.2f}。"
    ),
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
    between="",
)


def describe(figure: Any) -> str:
    """A figure in words: the kind, labels and extent of everything drawn in it."""
    say = IN_CHINESE if CHINESE.search(" ".join(_labels(figure))) else IN_ENGLISH
    parts = []
    for axes in figure.axes:
        title = say.title.format(axes.get_title()) if axes.get_title() else ""
        for image in axes.get_images():
            parts.append(title + _describe_image(image, axes, say))
        names = _names(axes)
        lines, bars = axes.get_lines(), [each for each in axes.containers if len(each)]
        for kind, of_kind in (say.line_plot, lines), (say.bar_chart, bars):
            if of_kind:
                x, y = _label(axes, "x"), _label(axes, "y")
                parts.append(title + kind.format(y or say.values, x or say.index))
        for line, name in zip_longest(lines, names[: len(lines)]):
            parts.append(_describe_line(line, name or say.curve, say))
        for some, name in zip_longest(bars, names[: len(bars)]):
            parts.append(_describe_bars(some, name or say.bar, say))
        for arrows in axes.collections:
            if hasattr(arrows, "U"):
                parts.append(_describe_arrows(arrows, axes, say))
    return say.between.join(parts) or "Empty figure."


def _labels(figure: Any) -> list[str]:
    """All that its axes say."""
    found = []
    for axes in figure.axes:
        found += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *_names(axes)]
    return found


def _names(axes: Any) -> list[str]:
    legend = axes.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def _describe_image(image: Any, axes: Any, say: SimpleNamespace) -> str:
    values = np.ma.masked_invalid(image.get_array()).compressed()
    rows, columns = image.get_array().shape[:2]
    return str(
        say.heat_map.format(
            rows,
            _label(axes, "y") or say.unnamed,
            columns,
            _label(axes, "x") or say.unnamed,
            _extent(values, say),
            np.count_nonzero(abs(values) < SMALLEST),
            values.size,
            image.get_cmap().name,
            *image.get_clim(),
        )
    )


def _describe_line(line: Any, name: str, say: SimpleNamespace) -> str:
    x, y = (np.asarray(values, float) for values in line.get_data(orig=False))
    if not len(x):
        return str(say.no_points.format(name))
    extent = _extent(y[np.isfinite(y)], say)
    return str(say.line.format(name, len(x), x[0], y[0], x[-1], y[-1], extent))


def _describe_bars(bars: Any, name: str, say: SimpleNamespace) -> str:
    heights = np.array([bar.get_height() for bar in bars], float)
    first, last = bars[0].get_x(), bars[-1].get_x() + bars[-1].get_width()
    return str(say.bars.format(name, len(heights), first, last, _extent(heights, say)))


def _describe_arrows(arrows: Any, axes: Any, say: SimpleNamespace) -> str:
    """How many point in each direction, or nearest to it."""
    right, up = np.ma.filled(arrows.U, 0), np.ma.filled(arrows.V, 0)
    if isinstance(arrows.angles, str) and arrows.angles == "xy":  # as the axes run
        right, up = (-1) ** axes.xaxis_inverted() * right, (-1) ** axes.yaxis_inverted() * up
    is_level = abs(right) > abs(up)
    told = (
        is_level & (right < 0),
        ~is_level & (up < 0),
        is_level & (right > 0),
        ~is_level & (up > 0),
    )
    return str(say.arrows.format(*map(np.count_nonzero, told)))


def _extent(values: NDArray[Any], say: SimpleNamespace) -> str:
    if not values.size:
        return str(say.no_extent)
    return str(say.extent.format(values.min(), values.max()))


def _label(axes: Any, which: str) -> str:
    """An axis's label; a panel that shares the axis has it from a neighbour."""
    group = getattr(axes, f"get_shared_{which}_axes")().get_siblings(axes)
    labels = [getattr(each, f"get_{which}label")() for each in (axes, *group)]
    return next(filter(None, labels), "")
