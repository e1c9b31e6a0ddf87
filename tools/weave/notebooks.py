"""Weave a text (tools/weave/prose.py) and the cells of its program (tools/weave/programs.py) into a notebook.

Drawings are embedded, so that a notebook is complete wherever it is opened. Two cells are added: a first code cell,
which installs missing packages (tools/weave/launch.py), and a last cell with the credit line (tools/weave/credit.py).
"""

import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, v4

from tools.compare.pixels import read_css_width, render_png
from tools.weave.credit import render_credit
from tools.weave.launch import FILES_ADDRESS, INSTALL, render_install_cell
from tools.weave.lessons import LessonError, Notebook, find_frameworks
from tools.weave.programs import PROGRAMMING_LANGUAGES, read_code
from tools.weave.prose import Passage, check_same_order, read_passages, read_text
from tools.weave.words import check_no_unused_entries, read_translations

DOCS_LINK = re.compile(r"\]\(\.\./\.\./(docs/[\w/-]+\.md)")
LESSON_LINK = re.compile(r"\[([^]]*)\]\(\.\./([\w-]+)/text\.[\w-]+\.md(#[^)]*)?\)")
# An image, or a code fence, whose images must not be replaced.
IMAGE = re.compile(
    r"^\s*(?P<fence>`{3,}|~{3,}).*?^\s*(?P=fence)\s*?$|!\[(?P<alt>[^]]*)\]\((?P<file>[^():]+\.svg)\)",
    re.DOTALL | re.MULTILINE,
)


def weave(notebook: Notebook) -> NotebookNode:
    """Return a notebook's content without outputs. Raise LessonError if the lesson is invalid."""
    check_same_order(notebook)
    check_translations(notebook)
    cells = read_code(notebook.code, notebook.language)
    language = PROGRAMMING_LANGUAGES[notebook.code.suffix]
    node = v4.new_notebook(
        metadata={
            "kernelspec": language.kernelspec,
            "language_info": {"name": language.kernelspec["language"]},
            "d2l_compat": {
                "note": "Woven by `make` from the lesson's text and code: edit those, not this.",
                "lesson": notebook.lesson.name,
                "language": notebook.language,
                "framework": notebook.framework,
            },
        }
    )

    def add_prose(source: str, **metadata: Any) -> None:
        number = sum(cell.cell_type == "markdown" for cell in node.cells) + 1
        node.cells.append(v4.new_markdown_cell(source, id=f"text-{number:02}", metadata=metadata))

    lines: dict[str, int] = {}  # the line of the text at which each cell is inserted, by name
    if INSTALL in cells:
        message = f"a cell named {INSTALL!r}: the weave adds a cell of that name"
        raise LessonError(message, notebook.code, cells[INSTALL].marker_line)
    for passage in read_text(notebook.text, notebook.framework):
        if not passage.cell:
            # JupyterLab folds the solutions, the only section without a text of its own, until the reader opens them.
            is_folded = passage.heading == "##" and "\n" not in passage.prose.strip()
            folding = {"jp-MarkdownHeadingCollapsed": True} if is_folded else {}
            add_prose(link_lessons(embed_images(passage, notebook.text)), **folding)
            continue
        if not lines and (code := render_install_cell(notebook)):
            node.cells.append(v4.new_code_cell(code, id=INSTALL))
        name = passage.cell
        if name in lines:
            message = f"cell {name!r} is inserted twice, first on line {lines[name]}"
            raise LessonError(message, notebook.text, passage.line)
        if name not in cells:
            message = f"unknown cell {name!r}: {notebook.code.name} has no cell of that name"
            raise LessonError(message, notebook.text, passage.line)
        lines[name] = passage.line
        cell = cells[name]
        metadata = {"tags": cell.tags} if cell.tags else {}
        node.cells.append(v4.new_code_cell(cell.source, id=name, metadata=metadata))
    add_prose(f"---\n\n{render_credit(notebook.language, 'notebook')}")
    for passage in read_passages(notebook.text):
        is_on_a_slide = passage.block is not None and passage.block.kind == "slide"
        if is_on_a_slide and passage.cell and passage.cell not in lines:
            message = f"unknown cell {passage.cell!r}: the text does not insert it"
            raise LessonError(message, notebook.text, passage.line)
    for name, cell in cells.items():
        if name not in lines:
            message = f"unused cell {name!r}: {notebook.text.name} does not insert it"
            raise LessonError(message, cell.file, cell.marker_line)
    return node


def link_lessons(prose: str, link: str = r"[\1](\2.ipynb\3)") -> str:
    """Replace links to other lessons' texts, by default with links to the notebooks in the same folder.

    Links to the documentation become addresses, since Colab has only the notebook.
    """
    prose = DOCS_LINK.sub(rf"]({FILES_ADDRESS}/\1", prose)
    return LESSON_LINK.sub(link, prose)


@cache
def make_png_tag(svg: str, alt: str) -> str:
    """Return an image for a notebook, as a PNG: Colab shows no SVG in prose.

    It is displayed at the drawing's width, with twice as many pixels.
    """
    png = render_png(svg)
    data = b64encode(png).decode()
    width = read_css_width(png)
    return f'<img src="data:image/png;base64,{data}" width="{width}" alt="{escape(alt)}">'


def make_svg_tag(svg: str, alt: str) -> str:
    """Return an image for a page of the web site."""
    data = b64encode(svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'


def check_translations(notebook: Notebook) -> None:
    """Raise LessonError if the translations for the notebook's language have an unused entry."""
    translations = read_translations(notebook.lesson, notebook.language)
    frameworks = find_frameworks(notebook.lesson)
    programs = [replace(notebook, framework=framework).code for framework in frameworks]
    check_no_unused_entries(translations, programs)


def embed_images(
    passage: Passage, text: Path, make_tag: Callable[[str, str], str] = make_png_tag
) -> str:
    """Return the prose with embedded drawings; ``make_tag`` takes an SVG and its alternative text."""

    def embed(image: re.Match[str]) -> str:
        if image["fence"]:
            return image[0]
        line = passage.line + passage.prose[: image.start()].count("\n")
        drawing = text.parent / image["file"]
        try:
            return make_tag(drawing.read_text(encoding="utf-8"), " ".join(image["alt"].split()))
        except (OSError, ValueError) as error:
            message = f"image {image['file']}: {getattr(error, 'strerror', error)}"
            raise LessonError(message, text, line) from None

    return IMAGE.sub(embed, passage.prose)
