"""Test that every visible change of a drawing is noticed.

Each element and each attribute of a drawing is changed in turn. If the comparison then finds no difference, the pixels
must be equal.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from tools.compare.drawing import Drawing
from tools.compare.figures import compare_drawings
from tools.compare.numbers import DEFAULT, NUMBER
from tools.compare.pixels import render

SVG = "{http://www.w3.org/2000/svg}"
ElementTree.register_namespace("", SVG.strip("{}"))
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")

# A drawing in the style of the Java classes; test_outputs.py has matplotlib's.
DRAWING = b"""\
<svg xmlns="http://www.w3.org/2000/svg" width="60pt" height="40pt" viewBox="0 0 60 40">
<rect width="100%" height="100%" fill="#ffffff"/>
<g font-family="DejaVu Sans, sans-serif" font-size="10">
<path d="M10.5 30L10.5 5" stroke="#b0b0b0" stroke-opacity="0.4" stroke-width="0.8"/>
<path d="M10.5 30L20.25 25L50 5" stroke="#0072b2" fill="none" stroke-width="1.5"/>
<rect x="10.5" y="5" width="39.5" height="25" fill="none" stroke="#000000" stroke-width="0.8"/>
<text x="10.5" y="38" text-anchor="middle">0</text>
<text x="5" y="20" text-anchor="middle" transform="rotate(-90 5 20)">y</text>
<g transform="matrix(4 0 0 4 40 10)" shape-rendering="crispEdges">\
<path fill="#ff0000" d="M0 0h1v1h-1z"/><path fill="#0000ff" d="M1 0h1v1h-1zM0 1h1v1h-1z"/></g>
<defs><linearGradient id="bar_1" x1="0" y1="1" x2="0" y2="0"><stop offset="0" stop-color="#ff0000"/>\
<stop offset="1" stop-color="#0000ff"/></linearGradient></defs>
<rect x="52" y="10" width="3" height="20" fill="url(#bar_1)"/>
</g>
</svg>"""


Tampering = Callable[[Element, Element, int], object]  # changes a parent's n-th child


def remove(parent: Element, child: Element, _: int) -> None:
    parent.remove(child)


def duplicate(parent: Element, child: Element, index: int) -> None:
    parent.insert(index, deepcopy(child))


def insert_script(parent: Element, _: Element, index: int) -> None:
    script = Element(f"{SVG}script")
    script.text = "alert(1)"
    parent.insert(index, script)


def wrap(parent: Element, child: Element, index: int) -> None:
    group = Element(f"{SVG}g", {"transform": "translate(50 50)"})
    group.append(child)
    parent[index] = group


def change_text(parent: Element, child: Element, _: int) -> None:
    child.text = (child.text or "") + "!"


def change_tail(parent: Element, child: Element, _: int) -> None:
    child.tail = (child.tail or "") + "!"


def set_attribute(name: str, value: str) -> Tampering:
    def tamper(_: Element, child: Element, index: int) -> None:
        if isinstance(child.tag, str):
            child.set(name, value)

    return tamper


TAMPERINGS: dict[str, Tampering] = {
    "removed": remove,
    "duplicated": duplicate,
    "with a script": insert_script,
    "in a group": wrap,
    "with another text": change_text,
    "before another text": change_tail,
    "with a style": set_attribute("style", "fill: red; stroke: red"),
}


def parse(svg: bytes) -> Element:
    builder = ElementTree.TreeBuilder(insert_comments=True)
    return ElementTree.fromstring(svg, ElementTree.XMLParser(target=builder))


def choose_one_of_each_kind(root: Element) -> list[Element]:
    """Return one element of each kind. A kind is a tag, the names of attributes, and the kind of the parent."""
    kinds: dict[tuple[object, ...], Element] = {}

    def add(element: Element, parent_kind: tuple[object, ...]) -> None:
        name = element.get("id", "").rstrip("0123456789")
        name = name if name.endswith("_") else ""
        kind = (*parent_kind, element.tag, *sorted(element.attrib), name)
        kinds.setdefault(kind, element)
        for child in element:
            add(child, kind)

    add(root, ())
    return list(kinds.values())


def change_each_element(svg: bytes, tamper: Tampering) -> Iterator[tuple[str, Element]]:
    """Yield a copy for each element but the root, with this element changed."""
    root = parse(svg)
    elements = choose_one_of_each_kind(root)
    for number, parent in enumerate(root.iter()):
        for index, child in enumerate(parent):
            if child not in elements:
                continue
            copy = deepcopy(root)
            copied_parent = list(copy.iter())[number]
            tamper(copied_parent, copied_parent[index], index)
            yield f"{child.tag} {child.attrib}", copy


def change_each_attribute(svg: bytes) -> Iterator[tuple[str, Element]]:
    """Yield a copy for each attribute, and for each way to change it."""
    root = parse(svg)
    elements = choose_one_of_each_kind(root)
    for number, element in enumerate(root.iter()):
        if element not in elements:
            continue
        for key, value in element.attrib.items():
            all_numbers_moved = NUMBER.sub(lambda match: str(float(match[0]) + 50), value)
            last_number_moved = re.sub(
                rf"({NUMBER.pattern})(\D*)$",
                lambda match: f"{float(match[1]) + 50}{match[2]}",
                value,
            )
            new_values = {None, all_numbers_moved, last_number_moved, value + " none"}
            for new in new_values - {value}:
                copy = deepcopy(root)
                copied_element = list(copy.iter())[number]
                if new is None:
                    del copied_element.attrib[key]
                else:
                    copied_element.set(key, new)
                yield f"{element.tag} {key}: {new}", copy


def find_unnoticed(
    svg: bytes, changed_copies: Iterator[tuple[str, Element]], by_pixels: bool = True
) -> list[str]:
    """Return the titles of copies whose change is not noticed; ``by_pixels`` leaves out changes that no pixel shows."""
    stored = ElementTree.tostring(parse(svg))
    pixels = render(stored.decode())
    unnoticed = []
    for title, root in changed_copies:
        fresh = ElementTree.tostring(root)
        if fresh == stored:
            continue
        try:
            old, new = (Drawing(each, DEFAULT.points) for each in (stored, fresh))
            difference = compare_drawings(old, new, DEFAULT)
        except (ValueError, LookupError, OSError):  # damaged
            continue
        if difference is None and not (
            by_pixels and np.array_equal(pixels, render(fresh.decode()))
        ):
            unnoticed.append(title)
    return unnoticed


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_every_change_of_an_element_is_noticed(tampering):
    by_pixels = tampering != "with a script"  # a script is invisible
    changed_copies = change_each_element(DRAWING, TAMPERINGS[tampering])
    assert find_unnoticed(DRAWING, changed_copies, by_pixels) == []


def test_every_change_of_an_attribute_is_noticed():
    assert find_unnoticed(DRAWING, change_each_attribute(DRAWING)) == []
