"""matplotlib's figures, made light for the page: what they show stays as it is.

In a notebook every letter is an outline, since nothing is known of the reader's fonts. On the page
words are words, as in Java's figures: in DejaVu Sans or the next best, stretched to the same length.
"""

import re
from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.font_manager import findfont, get_font

from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import FONT, OTHERS
from tools.compare.drawing import SQUARE, is_heat_map

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
    for words in [*root.findall(f"{SVG}title"), *root.findall(f"{SVG}desc")]:
        root.remove(words)  # the page says them
    for heat_map in filter(is_heat_map, root.iter()):
        _strokes(heat_map)
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
    _share_styles(root)
    return ElementTree.tostring(root, "unicode").replace(" />", "/>")


def _strokes(heat_map: Element) -> None:
    """Strokes as thick as a cell in the place of squares, one for cells of a row or of a column."""
    cells = [SQUARE.findall(path.get("d", "")) for path in heat_map]
    ways = {
        "translate(0 0.5)": [_runs((int(y), int(x)) for x, y in each) for each in cells],
        "translate(0.5 0)": [_runs((int(x), int(y)) for x, y in each) for each in cells],
    }
    middle = min(ways, key=lambda way: sum(map(len, ways[way])))
    form = "M{1} {0}h{2}" if middle == "translate(0 0.5)" else "M{0} {1}v{2}"
    heat_map.set("transform", f"{heat_map.get('transform')} {middle}")
    for path, runs in zip(heat_map, ways[middle], strict=True):
        path.set("stroke", path.attrib.pop("fill"))
        path.set("d", "".join(form.format(*run) for run in runs))


def _runs(cells: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Of cells by line and place: the line, the first place, and how many."""
    runs: list[list[int]] = []
    for line, place in sorted(cells):
        if runs and runs[-1][0] == line and sum(runs[-1][1:]) == place:
            runs[-1][2] += 1
        else:
            runs.append([line, place, 1])
    return runs


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


def _share_styles(root: Element) -> None:
    """A class for each that several elements have, in the style sheet that matplotlib begins."""
    styles = Counter(element.get("style", "") for element in root.iter())
    classes = {style: f"s{n}" for n, style in enumerate(styles) if style and styles[style] > 1}
    for element in root.iter():
        if element.get("style") in classes:
            element.set("class", classes[element.attrib.pop("style")])
    sheet = next(root.iter(f"{SVG}style"))
    sheet.text = f"{sheet.text}" + "".join(f".{name}{{{style}}}" for style, name in classes.items())


def _shorter(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.4g}"
