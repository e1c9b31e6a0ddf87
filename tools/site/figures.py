"""matplotlib's figures, made light for the page: what they show stays as it is.

In a notebook every letter is an outline, since nothing is known of the reader's fonts. On the page
words are words, as in Java's figures: in DejaVu Sans or the next best, stretched to the same length.
"""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.font_manager import findfont, get_font

from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import FONT, OTHERS

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
FAMILY = "DejaVu Sans, Verdana, sans-serif"
# What writes Chinese as it is written in Taiwan, where it is installed.
CHINESE_FAMILY = FAMILY.replace("sans-serif", ", ".join([*OTHERS[:5], "sans-serif"]))
# Of a group of outlines: where it stands, perhaps turned, and a hundredth of its size.
PLACE = re.compile(r"(translate\([^)]*\)(?: rotate\([^)]*\))?) scale\(([\d.]+) -[\d.]+\)")
NUMBER = re.compile(r"-?\d+\.\d{3,}")
PADDED = re.compile(r" ?([MLCQz:;]) ?")  # by blanks that no one needs


def light(svg: str) -> str:
    """The same figure in fewer bytes; one that is not matplotlib's comes back as it is."""
    if "figure_1" not in svg:
        return svg
    ElementTree.register_namespace("", SVG[1:-1])
    ElementTree.register_namespace("xlink", HREF[1:].partition("}")[0])
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    for metadata in root.findall(f"{SVG}metadata"):
        root.remove(metadata)
    shapes = {shape.get("id", ""): shape for shape in root.iter(f"{SVG}path")}
    _words(root)
    used = set(re.findall(r"#([-\w]+)", ElementTree.tostring(root, "unicode")))
    # A formula's outlines may have been defined among a word's.
    defined = {element.get("id") for element in root.iter()}
    lost = ElementTree.SubElement(root, f"{SVG}defs")
    lost.extend([shapes[name] for name in sorted(used & shapes.keys() - defined)])
    _strip(root, used)
    said = ElementTree.tostring(root, "unicode")
    root.set("font-family", CHINESE_FAMILY if CHINESE.search(said) else FAMILY)
    return ElementTree.tostring(root, "unicode")


def _words(parent: Element) -> None:
    """Texts in the place of outlines; formulas stay outlines."""
    for group in list(parent):
        comments = [child for child in group if callable(child.tag)]
        if not comments:
            _words(group)
            continue
        for comment in comments:
            group.remove(comment)
        words = (comments[0].text or "").strip()
        for outlines in group.findall(f"{SVG}g"):
            place = PLACE.fullmatch(outlines.get("transform", ""))
            if place is not None and "$" not in words:
                group.remove(outlines)
                group.append(_text(words, place, outlines.get("style")))


def _text(words: str, place: re.Match[str], style: str | None) -> Element:
    size = 100 * float(place[2])
    text = Element(f"{SVG}text", {"transform": place[1], "font-size": f"{size:g}"})
    text.set("textLength", f"{_length(words, size):.2f}")
    if style:
        text.set("style", style)
    text.text = words
    return text


def _length(words: str, size: float) -> float:
    return sum(_advance(letter, size) for letter in words)


def _advance(letter: str, size: float) -> float:
    font = get_font(FONT if CHINESE.match(letter) else findfont("DejaVu Sans"))
    font.set_size(size, 72)
    return float(font.load_char(ord(letter)).linearHoriAdvance) / 65536


def _strip(element: Element, used: set[str]) -> None:
    """Ids nobody refers to, groups that say nothing, blanks, and decimals nobody sees."""
    element.text = element.text.strip() if element.text and element.text.strip() else None
    element.tail = None
    if element.get("id") not in used:
        element.attrib.pop("id", None)
    for name, value in element.attrib.items():
        if name != HREF:
            short = value if name == "style" else NUMBER.sub(_shorter, value)
            element.set(name, PADDED.sub(r"\1", " ".join(short.split())))
    if element.tag == f"{SVG}use":  # what it repeats is drawn in its own style
        element.attrib.pop("style", None)
    children: list[Element] = []
    for child in element:
        _strip(child, used)
        is_a_bare_group = child.tag == f"{SVG}g" and not child.attrib
        children.extend(child if is_a_bare_group else [child])
    element[:] = children


def _shorter(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"
