"""What a figure shows, in the notebook and on the page, where its letters are no outlines."""

import re
from functools import cache
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


@cache
def strokes(svg: str) -> list[tuple[str, list[float]]]:
    """Colour and coordinates of all that is drawn, but for letters."""
    found = []
    root = ElementTree.fromstring(svg)
    classes = dict(re.findall(r"\.(\w+)\{([^}]*)\}", root.findtext(".//{*}style") or ""))
    for path in root.iter(f"{SVG}path"):
        style = path.get("style") or classes.get(path.get("class", ""), "")
        style = style.replace(" ", "")
        if style:
            numbers = re.findall(r"-?[\d.]+", path.get("d", ""))
            found.append((style, [float(number) for number in numbers]))
    return found


@cache
def cells(svg: str) -> list[dict[tuple[int, int], str]]:
    """The colours of its heat maps, by column and row: of squares, or of strokes through their middles."""
    found = []
    for heat_map in ElementTree.fromstring(svg).findall(".//{*}g[@shape-rendering]"):
        colors = {}
        for path in heat_map:
            d, color = path.get("d", ""), path.get("stroke") or path.get("fill")
            for x, y, way, length in re.findall(r"M(\d+) (\d+)([hv])(\d+)", d):
                assert path.get("stroke") or f"M{x} {y}h1v1h-1z" in d
                for step in range(int(length)):
                    down = way == "v"
                    colors[int(x) + step * (not down), int(y) + step * down] = color
        found.append(colors)
    return found


@cache
def words(svg: str) -> list[str]:
    """Of matplotlib's figure: its comments; of a light one: its texts. Formulas are in neither."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    comments = [str(each.text).strip() for each in root.iter() if each.tag is ElementTree.Comment]
    found = comments or [str(each.text) for each in root.iter(f"{SVG}text")]
    return sorted(text for text in found if "$" not in text)


def bars(svg: str) -> list[str | None]:
    """The colours of its colour bars, and what is filled with them."""
    root = ElementTree.fromstring(svg)
    filled = [rect.get("fill") for rect in root.iter(f"{SVG}rect")]
    return [stop.get("stop-color") for stop in root.iter(f"{SVG}stop")] + filled


def shows_the_same(made: str, stored: str) -> bool:
    """Whether the page's figure shows what the notebook's does."""
    if "figure_1" not in stored:
        return made.strip() == stored.strip()  # Java's, which is light already
    here, there = strokes(made), strokes(stored)
    return (
        words(made) == words(stored)
        and bars(made) == bars(stored)
        and cells(made) == cells(stored)
        and [style for style, _ in here] == [style for style, _ in there]
        and all(
            mine == pytest.approx(theirs, abs=0.006)
            for (_, mine), (_, theirs) in zip(here, there, strict=True)
        )
    )
