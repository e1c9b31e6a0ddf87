"""What a figure shows, in the notebook and on the page, where its letters are no outlines."""

import re
from functools import cache
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = re.compile(r'xlink:href="data:image/png;base64,([^"]*)"')


@cache
def strokes(svg: str) -> list[tuple[str, list[float]]]:
    """Colour and coordinates of all that is drawn, but for letters."""
    found = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        style = path.get("style", "").replace(" ", "")
        if style:
            numbers = re.findall(r"-?[\d.]+", path.get("d", ""))
            found.append((style, [float(number) for number in numbers]))
    return found


@cache
def words(svg: str) -> list[str]:
    """Of matplotlib's figure: its comments; of a light one: its texts. Formulas are in neither."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    comments = [str(each.text).strip() for each in root.iter() if each.tag is ElementTree.Comment]
    found = comments or [str(each.text) for each in root.iter(f"{SVG}text")]
    return sorted(text for text in found if "$" not in text)


def pictures(svg: str) -> list[str]:
    """The cells of its heat maps."""
    return ["".join(picture.split()) for picture in PICTURES.findall(svg)]


def shows_the_same(made: str, stored: str) -> bool:
    """Whether the page's figure shows what the notebook's does."""
    if "figure_1" not in stored:
        return made.strip() == stored.strip()  # Java's, which is light already
    here, there = strokes(made), strokes(stored)
    return (
        words(made) == words(stored)
        and pictures(made) == pictures(stored)
        and [style for style, _ in here] == [style for style, _ in there]
        and all(
            mine == pytest.approx(theirs, abs=0.006)
            for (_, mine), (_, theirs) in zip(here, there, strict=True)
        )
    )
