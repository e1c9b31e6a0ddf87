"""Shrink matplotlib's figures for the web site without a visible change.

In a notebook's figure every letter is an outline, because the reader's fonts are unknown. On a page, as in Java's
figures, letters are text in DejaVu Sans or a similar font, stretched to the same length.
"""

import re
from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.font_manager import findfont, get_font

from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import FALLBACK_FAMILIES, FONT
from tools.compare.drawing import SQUARE, is_heat_map

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
FAMILY = "DejaVu Sans, Verdana, sans-serif"
# These fonts have the forms of Chinese characters that are used in Taiwan.
CHINESE_FAMILY = FAMILY.replace("sans-serif", ", ".join([*FALLBACK_FAMILIES[:5], "sans-serif"]))
# The transform of a group of outlines: its position, a rotation or none, and a hundredth of its font size.
TRANSFORM = re.compile(r"(translate\([^)]*\)(?: rotate\([^)]*\))?) scale\(([\d.]+) -[\d.]+\)")
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
PADDED_COMMAND = re.compile(r" ?([MLCQz:;]) ?")  # the spaces are not needed


def shrink_figure(svg: str) -> str:
    """Return the same figure in fewer bytes, or the SVG itself if matplotlib did not draw it."""
    if "figure_1" not in svg:
        return svg
    ElementTree.register_namespace("", SVG[1:-1])
    ElementTree.register_namespace("xlink", HREF[1:].partition("}")[0])
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    for description in [*root.findall(f"{SVG}title"), *root.findall(f"{SVG}desc")]:
        root.remove(description)  # the page has it as alternative text
    for heat_map in filter(is_heat_map, root.iter()):
        _merge_squares(heat_map)
    shapes = {shape.get("id", ""): shape for shape in root.iter(f"{SVG}path")}
    _replace_outlines(root)
    used_ids = set(re.findall(r"#([-\w]+)", ElementTree.tostring(root, "unicode")))
    # Restore outlines that a formula uses, but that were defined in a replaced text.
    remaining_ids = {element.get("id") for element in root.iter()}
    definitions = ElementTree.SubElement(root, f"{SVG}defs")
    definitions.extend([shapes[name] for name in sorted(used_ids & shapes.keys() - remaining_ids)])
    _strip(root, used_ids)
    has_chinese = CHINESE.search(ElementTree.tostring(root, "unicode"))
    root.set("font-family", CHINESE_FAMILY if has_chinese else FAMILY)
    _share_styles(root)
    return ElementTree.tostring(root, "unicode").replace(" />", "/>")


def _merge_squares(heat_map: Element) -> None:
    """Replace the squares of each colour by strokes along rows or along columns, whichever are fewer."""
    squares = [SQUARE.findall(path.get("d", "")) for path in heat_map]
    # The transform moves a stroke to the middle of its cells.
    strokes = {
        "translate(0 0.5)": [_find_runs((int(y), int(x)) for x, y in each) for each in squares],
        "translate(0.5 0)": [_find_runs((int(x), int(y)) for x, y in each) for each in squares],
    }
    shift = min(strokes, key=lambda each: sum(map(len, strokes[each])))
    template = "M{1} {0}h{2}" if shift == "translate(0 0.5)" else "M{0} {1}v{2}"
    heat_map.set("transform", f"{heat_map.get('transform')} {shift}")
    for path, runs in zip(heat_map, strokes[shift], strict=True):
        path.set("stroke", path.attrib.pop("fill"))
        path.set("d", "".join(template.format(*run) for run in runs))


def _find_runs(cells: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Join neighbouring cells (line, position) into runs [line, first position, length]."""
    runs: list[list[int]] = []
    for line, position in sorted(cells):
        if runs and runs[-1][0] == line and sum(runs[-1][1:]) == position:
            runs[-1][2] += 1
        else:
            runs.append([line, position, 1])
    return runs


def _replace_outlines(parent: Element) -> None:
    """Replace outlines of letters, but not of formulas, by the text that matplotlib has in a comment."""
    for group in list(parent):
        if not any(callable(child.tag) for child in group):
            _replace_outlines(group)
            continue
        content = ""
        for child in list(group):
            if callable(child.tag):  # a comment, with the text of the outlines after it
                content = (child.text or "").strip()
                group.remove(child)
                continue
            transform = TRANSFORM.fullmatch(child.get("transform", ""))
            if transform is not None and "$" not in content:
                group.remove(child)
                group.append(_make_text(content, transform, child.get("style")))


def _make_text(content: str, transform: re.Match[str], style: str | None) -> Element:
    size = 100 * float(transform[2])
    text = Element(f"{SVG}text", {"transform": transform[1], "font-size": f"{size:g}"})
    length = sum(_measure_letter(letter, size) for letter in content)
    text.set("textLength", f"{length:.2f}")
    if style:
        text.set("style", style)
    text.text = content
    return text


def _measure_letter(letter: str, size: float) -> float:
    """Return the advance width of a letter at a font size."""
    font = get_font(FONT if CHINESE.match(letter) else findfont("DejaVu Sans"))
    font.set_size(size, 72)
    return float(font.load_char(ord(letter)).linearHoriAdvance) / 65536


def _strip(element: Element, used_ids: set[str]) -> None:
    """Remove unused ids, groups without attributes, spaces, and invisible decimals."""
    element.text = element.text.strip() if element.text and element.text.strip() else None
    element.tail = None
    if element.get("id") not in used_ids:
        element.attrib.pop("id", None)
    for name, value in element.attrib.items():
        if name != HREF:
            short = value if name == "style" else LONG_NUMBER.sub(_shorten_number, value)
            element.set(name, PADDED_COMMAND.sub(r"\1", " ".join(short.split())))
    if element.tag == f"{SVG}use":  # the repeated element has its own style
        element.attrib.pop("style", None)
    children: list[Element] = []
    for child in element:
        _strip(child, used_ids)
        is_bare_group = child.tag == f"{SVG}g" and not child.attrib
        children.extend(child if is_bare_group else [child])
    element[:] = children


def _share_styles(root: Element) -> None:
    """Turn each style that several elements have into a class in matplotlib's style sheet."""
    styles = Counter(element.get("style", "") for element in root.iter())
    classes = {style: f"s{n}" for n, style in enumerate(styles) if style and styles[style] > 1}
    for element in root.iter():
        if element.get("style") in classes:
            element.set("class", classes[element.attrib.pop("style")])
    sheet = next(root.iter(f"{SVG}style"))
    sheet.text = f"{sheet.text}" + "".join(f".{name}{{{style}}}" for style, name in classes.items())


def _shorten_number(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.4g}"
