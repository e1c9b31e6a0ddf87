"""Text + code -> notebook: prose (tools/weave/prose.py) and the cells it asks for (tools/weave/programs.py).

An image that stands beside the text goes into the notebook, so that the notebook is whole wherever
it is opened. The first code cell is ours: it installs what is missing (tools/weave/launch.py). So is the
last cell, which says whose it is (tools/weave/credit.py).
"""

import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path

from nbformat import NotebookNode, v4

from tools.compare.pictures import as_png, css_width
from tools.weave.credit import credit
from tools.weave.launch import INSTALL, install_cell
from tools.weave.lessons import Edition, LessonError, frameworks_of
from tools.weave.programs import LANGUAGES, read_code
from tools.weave.prose import Passage, check_same_order, read_passages, read_text
from tools.weave.words import check_used, read_words

LESSON = re.compile(r"\[([^]]*)\]\(\.\./([\w-]+)/text\.[\w-]+\.md(#[^)]*)?\)")  # a link to another
# An image, or a code fence, in which nothing is one.
IMAGE = re.compile(
    r"^\s*(?P<fence>`{3,}|~{3,}).*?^\s*(?P=fence)\s*?$|!\[(?P<alt>[^]]*)\]\((?P<file>[^():]+\.svg)\)",
    re.DOTALL | re.MULTILINE,
)


def weave(edition: Edition) -> NotebookNode:
    """The notebook of an edition, not executed yet. Raises LessonError."""
    check_same_order(edition)
    check_words(edition)
    cells = read_code(edition.code, edition.language)
    language = LANGUAGES[edition.code.suffix]
    notebook = v4.new_notebook(
        metadata={
            "kernelspec": language.kernelspec,
            "language_info": {"name": language.kernelspec["language"]},
            "d2l_compat": {
                "note": "Woven by `make` from the lesson's text and code: edit those, not this.",
                "lesson": edition.folder.name,
                "language": edition.language,
                "framework": edition.framework,
            },
        }
    )

    def add_prose(source: str) -> None:
        number = sum(cell.cell_type == "markdown" for cell in notebook.cells) + 1
        notebook.cells.append(v4.new_markdown_cell(source, id=f"text-{number:02}"))

    asked: dict[str, int] = {}
    if INSTALL in cells:
        fault = f"a cell named {INSTALL!r}: the weave has one of that name"
        raise LessonError(fault, edition.code, cells[INSTALL].marker)
    for passage in read_text(edition.text, edition.framework):
        if not passage.cell:
            add_prose(link_lessons(embed_images(passage, edition.text)))
            continue
        if not asked and (code := install_cell(edition)):
            notebook.cells.append(v4.new_code_cell(code, id=INSTALL))
        name = passage.cell
        if name in asked:
            fault = f"cell {name!r} is asked for twice, before on line {asked[name]}"
            raise LessonError(fault, edition.text, passage.line)
        if name not in cells:
            fault = f"unknown cell {name!r}: {edition.code.name} has none of that name"
            raise LessonError(fault, edition.text, passage.line)
        asked[name] = passage.line
        cell = cells[name]
        metadata = {"tags": cell.tags} if cell.tags else {}
        notebook.cells.append(v4.new_code_cell(cell.source, id=name, metadata=metadata))
    add_prose(f"---\n\n{credit(edition.language, 'notebook')}")
    for passage in read_passages(edition.text):
        is_on_a_slide = passage.block is not None and passage.block.kind == "slide"
        if is_on_a_slide and passage.cell and passage.cell not in asked:
            fault = f"unknown cell {passage.cell!r}: the text does not ask for it"
            raise LessonError(fault, edition.text, passage.line)
    for name, cell in cells.items():
        if name not in asked:
            fault = f"unused cell {name!r}: {edition.text.name} does not ask for it"
            raise LessonError(fault, cell.file, cell.marker)
    return notebook


def link_lessons(prose: str, to: str = r"[\1](\2.ipynb\3)") -> str:
    """Where a text leads to another lesson's text, its notebook leads to the notebook beside it."""
    return LESSON.sub(to, prose)


@cache
def png_image(svg: str, alt: str) -> str:
    """For notebooks: in prose Colab shows no SVG. It is as wide as the drawing, and twice as fine."""
    png = as_png(svg)
    data, width = b64encode(png).decode(), css_width(png)
    return f'<img src="data:image/png;base64,{data}" width="{width}" alt="{escape(alt)}">'


def svg_image(svg: str, alt: str) -> str:
    """For pages of our own."""
    data = b64encode(svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'


def check_words(edition: Edition) -> None:
    """Raises LessonError where the words of the edition's language have an entry that no code needs."""
    folder = edition.folder
    words = read_words(folder, edition.language)
    check_used(words, [replace(edition, framework=name).code for name in frameworks_of(folder)])


def embed_images(
    passage: Passage, text: Path, image_of: Callable[[str, str], str] = png_image
) -> str:
    """The prose, with its drawings in it; ``image_of`` makes an image of an SVG and its alternative."""

    def embed(image: re.Match[str]) -> str:
        if image["fence"]:
            return image[0]
        line = passage.line + passage.prose[: image.start()].count("\n")
        drawing = text.parent / image["file"]
        try:
            return image_of(drawing.read_text(encoding="utf-8"), " ".join(image["alt"].split()))
        except (OSError, ValueError) as error:
            fault = f"image {image['file']}: {getattr(error, 'strerror', error)}"
            raise LessonError(fault, text, line) from None

    return IMAGE.sub(embed, passage.prose)
