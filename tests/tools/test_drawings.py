"""Figures that were tampered with: whatever is changed in one is noticed, or cannot be seen.

Each element of a drawing, and each of its attributes, is changed in turn, in ways that the
comparison knows nothing of. Where it says that nothing differs, the pixels have to say so too.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from tools.compare.drawing import Drawing
from tools.compare.figures import drawing_difference
from tools.compare.numbers import DEFAULT, NUMBER
from tools.compare.pictures import render

SVG = "{http://www.w3.org/2000/svg}"
ElementTree.register_namespace("", SVG.strip("{}"))
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")

# As the Java classes draw; matplotlib's drawings are in tests/tools/test_agreement.py.
JAVAS = b"""\
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


Tampering = Callable[[Element, Element, int], object]  # with a parent's n-th child


def lost(parent: Element, child: Element, _: int) -> None:
    parent.remove(child)


def twice(parent: Element, child: Element, place: int) -> None:
    parent.insert(place, deepcopy(child))


def with_script(parent: Element, _: Element, place: int) -> None:
    script = Element(f"{SVG}script")
    script.text = "alert(1)"
    parent.insert(place, script)


def wrapped(parent: Element, child: Element, place: int) -> None:
    group = Element(f"{SVG}g", {"transform": "translate(50 50)"})
    group.append(child)
    parent[place] = group


def in_words(parent: Element, child: Element, _: int) -> None:
    child.text = (child.text or "") + "!"


def behind(parent: Element, child: Element, _: int) -> None:
    child.tail = (child.tail or "") + "!"


def given(name: str, value: str) -> Tampering:
    def give(_: Element, child: Element, place: int) -> None:
        if isinstance(child.tag, str):
            child.set(name, value)

    return give


TAMPERINGS: dict[str, Tampering] = {
    "lost": lost,
    "twice": twice,
    "with a script": with_script,
    "wrapped": wrapped,
    "other words": in_words,
    "words behind": behind,
    "styled": given("style", "fill: red; stroke: red"),
}


def parsed(svg: bytes) -> Element:
    builder = ElementTree.TreeBuilder(insert_comments=True)
    return ElementTree.fromstring(svg, ElementTree.XMLParser(target=builder))


def one_of_each_sort(root: Element) -> list[Element]:
    """There are many ticks and letters, all of a kind: by its attributes, within the same."""
    sorts: dict[tuple[object, ...], Element] = {}

    def sort(element: Element, outer: tuple[object, ...]) -> None:
        name = element.get("id", "").rstrip("0123456789")
        own = (*outer, element.tag, *sorted(element.attrib), name if name.endswith("_") else "")
        sorts.setdefault(own, element)
        for child in element:
            sort(child, own)

    sort(root, ())
    return list(sorts.values())


def tampered(svg: bytes, tamper: Tampering) -> Iterator[tuple[str, Element]]:
    """A copy for each element but the root, with that one changed."""
    root = parsed(svg)
    chosen = one_of_each_sort(root)
    for number, parent in enumerate(root.iter()):
        for place, child in enumerate(parent):
            if child not in chosen:
                continue
            copy = deepcopy(root)
            its_parent = list(copy.iter())[number]
            tamper(its_parent, its_parent[place], place)
            yield f"{child.tag} {child.attrib}", copy


def with_attributes_changed(svg: bytes) -> Iterator[tuple[str, Element]]:
    """A copy for each attribute, and each way to change it."""
    root = parsed(svg)
    chosen = one_of_each_sort(root)
    for number, element in enumerate(root.iter()):
        if element not in chosen:
            continue
        for key, value in element.attrib.items():
            further = NUMBER.sub(lambda found: str(float(found[0]) + 50), value)
            last_further = re.sub(
                rf"({NUMBER.pattern})(\D*)$",
                lambda found: f"{float(found[1]) + 50}{found[2]}",
                value,
            )
            for new in {None, further, last_further, value + " none"} - {value}:
                copy = deepcopy(root)
                changed = list(copy.iter())[number]
                if new is None:
                    del changed.attrib[key]
                else:
                    changed.set(key, new)
                yield f"{element.tag} {key}: {new}", copy


def unseen(svg: bytes, changed: Iterator[tuple[str, Element]], by_pixels: bool = True) -> list[str]:
    """Of the changed copies those that pass for the same, and look otherwise."""
    stored = ElementTree.tostring(parsed(svg))
    look, found = render(stored.decode()), []
    for title, root in changed:
        fresh = ElementTree.tostring(root)
        if fresh == stored:
            continue
        try:
            fault = drawing_difference(
                *(Drawing(each, DEFAULT.points) for each in (stored, fresh)), DEFAULT
            )
        except (ValueError, LookupError, OSError):  # damaged
            continue
        if fault is None and not (by_pixels and np.array_equal(look, render(fresh.decode()))):
            found.append(title)
    return found


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_whatever_is_tampered_with_is_noticed(tampering):
    by_pixels = tampering != "with a script"  # which is not in the picture
    assert unseen(JAVAS, tampered(JAVAS, TAMPERINGS[tampering]), by_pixels) == []


def test_every_attribute_counts():
    assert unseen(JAVAS, with_attributes_changed(JAVAS)) == []
