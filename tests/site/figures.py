"""Compare a figure in a notebook with the figure on the page, where letters are text instead of outlines."""

import re
from functools import cache
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


@cache
def list_strokes(svg: str) -> list[tuple[str, list[float]]]:
    """Return the style and the coordinates of each path that is not a letter."""
    strokes = []
    root = ElementTree.fromstring(svg)
    classes = dict(re.findall(r"\.(\w+)\{([^}]*)\}", root.findtext(".//{*}style") or ""))
    for path in root.iter(f"{SVG}path"):
        style = path.get("style") or classes.get(path.get("class", ""), "")
        style = style.replace(" ", "")
        if style:
            numbers = re.findall(r"-?[\d.]+", path.get("d", ""))
            strokes.append((style, [float(number) for number in numbers]))
    return strokes


@cache
def read_heat_maps(svg: str) -> list[dict[tuple[int, int], str]]:
    """Return the colours of each heat map by column and row.

    A heat map has squares, or strokes through the middle of several squares.
    """
    heat_maps = []
    for heat_map in ElementTree.fromstring(svg).findall(".//{*}g[@shape-rendering]"):
        colors = {}
        for path in heat_map:
            shape = path.get("d", "")
            color = path.get("stroke") or path.get("fill")
            for x, y, direction, length in re.findall(r"M(\d+) (\d+)([hv])(\d+)", shape):
                assert path.get("stroke") or f"M{x} {y}h1v1h-1z" in shape
                for step in range(int(length)):
                    is_down = direction == "v"
                    colors[int(x) + step * (not is_down), int(y) + step * is_down] = color
        heat_maps.append(colors)
    return heat_maps


@cache
def list_texts(svg: str) -> list[str]:
    """Return the texts of a figure except formulas; matplotlib has them in comments."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    comments = [str(each.text).strip() for each in root.iter() if each.tag is ElementTree.Comment]
    texts = comments or [str(each.text) for each in root.iter(f"{SVG}text")]
    return sorted(text for text in texts if "$" not in text)


def list_bar_colors(svg: str) -> list[str | None]:
    """Return the colours of colour bars and the fills of rectangles."""
    root = ElementTree.fromstring(svg)
    fills = [rect.get("fill") for rect in root.iter(f"{SVG}rect")]
    return [stop.get("stop-color") for stop in root.iter(f"{SVG}stop")] + fills


def is_same_figure(on_page: str, stored: str) -> bool:
    """Check whether the figure on a page shows the same as the one stored in a notebook."""
    if "figure_1" not in stored:
        return on_page.strip() == stored.strip()  # the page does not change Java's figures
    page_strokes, stored_strokes = list_strokes(on_page), list_strokes(stored)
    return (
        list_texts(on_page) == list_texts(stored)
        and list_bar_colors(on_page) == list_bar_colors(stored)
        and read_heat_maps(on_page) == read_heat_maps(stored)
        and [style for style, _ in page_strokes] == [style for style, _ in stored_strokes]
        and all(
            actual == pytest.approx(expected, abs=0.006)
            for (_, actual), (_, expected) in zip(page_strokes, stored_strokes, strict=True)
        )
    )
