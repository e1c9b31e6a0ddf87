"""Make a deck of slides for each notebook, with nbconvert and reveal.js.

A text marks its slides (tools/weave/prose.py); the prose between two slides becomes the speaker's notes. Code and
outputs come from the executed notebook. Live figures load the same files as on the lesson's page. The first slide also
has the credit line and a link to the lesson.
"""

import json
import re
import shutil
from itertools import groupby, pairwise
from pathlib import Path

import nbformat
import sphinx_revealjs
from nbconvert.exporters import SlidesExporter
from nbformat import NotebookNode, v4
from traitlets.config import Config

from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.figures import SVG
from tools.site.live import list_files
from tools.site.mathematics import to_mathml
from tools.site.words import SITE_TEXT
from tools.weave.credit import render_credit
from tools.weave.lessons import LessonError, Notebook
from tools.weave.notebooks import embed_images, link_lessons, make_svg_tag
from tools.weave.prose import Passage, read_passages, read_title

HERE = Path(__file__).parent
# This package contains a copy of reveal.js.
REVEAL = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FORMULA = re.compile(r"(?P<code>`[^`]*`)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$]+?)\$", re.DOTALL)


def get_deck_path(notebook: Notebook) -> str:
    """Return the path of a notebook's deck within the site."""
    return f"slides/{notebook.language}/{notebook.framework}/{notebook.lesson.name}.html"


def list_decks(notebooks: list[Notebook]) -> str:
    """Return a list in Markdown of the lessons in one language, each with links to its decks."""
    site_text = SITE_TEXT[notebooks[0].language]
    lines = []
    for lesson, group in groupby(notebooks, key=lambda notebook: notebook.lesson):
        decks = [
            f'<a href="../{get_deck_path(notebook)}">{FRAMEWORKS[notebook.framework].title}</a>'
            for notebook in group
        ]
        link = f"{{doc}}`{lesson.name}`"
        frameworks = site_text.separator.join(decks)
        lines.append(f"* {site_text.decks.format(lesson=link, frameworks=frameworks)}")
    return "\n".join(lines)


def write_slides(notebooks: list[Notebook], site: Path) -> None:
    """Write all decks, and a copy of reveal.js for each language. Raise LessonError if a text has no slide."""
    for language in {notebook.language for notebook in notebooks}:
        _write_reveal(site / "slides" / language / "reveal", language)
    exporter = SlidesExporter(
        Config(
            SlidesExporter={"reveal_url_prefix": "../reveal", "exclude_anchor_links": True},
            TemplateExporter={"extra_template_basedirs": [str(HERE)]},
        ),
        template_name="deck",
    )
    for notebook in notebooks:
        html, _ = exporter.from_notebook_node(make_deck(notebook))
        path = site / get_deck_path(notebook)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")


def _write_reveal(folder: Path, language: str) -> None:
    """Write reveal.js, with its messages translated, and the style sheets and scripts of decks."""
    for part in ("dist", "plugin/notes"):
        shutil.copytree(REVEAL / part, folder / part, ignore=_ignore_unused)
    for name in ("deck.css", "deck.js"):
        shutil.copy(HERE / "deck" / name, folder)
    for name in ("favicon.svg", "roots.js", "wide.css", "wide.js"):
        shutil.copy(HERE / "static" / name, folder)
    shutil.copytree(HERE / "static" / "fonts", folder / "fonts")
    translations = HERE / "deck" / "words" / f"{language}.json"
    if not translations.exists():
        return
    messages = json.loads(translations.read_text(encoding="utf-8"))
    for file in folder.rglob("*.js"):
        script = file.read_text(encoding="utf-8")
        file.write_text(translate_script(script, messages), encoding="utf-8")


def translate_script(script: str, messages: dict[str, str]) -> str:
    """Replace messages in a script by their translations; reveal.js has no other way to translate them."""
    pattern = rf"""(?<=["'>])({"|".join(map(re.escape, messages))})(?=\\?["'<])"""
    return re.sub(pattern, lambda message: messages[message[0]], script)


def _ignore_unused(folder: str, names: list[str]) -> list[str]:
    return [
        name for name in names if name == "theme" or name.endswith((".map", ".esm.js", ".html"))
    ]


def make_deck(notebook: Notebook) -> NotebookNode:
    """Return a deck as a notebook whose cells are marked for nbconvert. Raise LessonError if it has no slide."""
    executed = nbformat.read(notebook.path, as_version=4)
    code_cells = {cell.id: cell for cell in executed.cells if cell.cell_type == "code"}
    result = v4.new_notebook(metadata=executed.metadata)
    result.metadata.title = read_title(notebook.text)
    result.metadata.language = notebook.language
    slides = _split_slides(notebook)
    figures = [passage.figure for slide, _ in slides for passage in slide if passage.figure]
    static = f"../../../{notebook.language}/_static"
    files = list_files(figures, notebook.lesson.name)
    result.metadata.live = [f"{static}/{file}" for file in files]
    slides[0][0].append(Passage(line=1, prose=_render_credit(notebook)))
    for passages, notes in slides:
        slide_type = "slide"
        for passage in passages:
            cell = _make_cell(passage, code_cells, notebook)
            cell.metadata.slideshow = {"slide_type": slide_type}
            result.cells.append(cell)
            slide_type = "-"
        prose = [embed_images(passage, notebook.text, make_svg_tag) for passage in notes]
        text = "\n\n".join(map(_convert_formulas, prose))
        text = HEADING.sub(r"**\1**", text)  # a heading would look like a slide's
        text = link_lessons(text, link=r"\1")  # notes have no links to lessons, only their names
        cell = v4.new_markdown_cell(text, metadata={"slideshow": {"slide_type": "notes"}})
        result.cells.append(cell)
    return result


def _render_credit(notebook: Notebook) -> str:
    """Return the link to the lesson and the credit line, for the first slide."""
    page = (
        f"../../../{notebook.language}/{notebook.lesson.name}.html?framework={notebook.framework}"
    )
    link = f"[{read_title(notebook.text)}]({page})"
    lesson = SITE_TEXT[notebook.language].lesson.format(title=link)
    return f'<div class="credit">\n\n{lesson}\n\n{render_credit(notebook.language, "slides")}\n\n</div>'


def _split_slides(notebook: Notebook) -> list[tuple[list[Passage], list[Passage]]]:
    """Return the passages of each slide, and those of its notes. Raise LessonError if there is no slide."""
    slides: list[tuple[list[Passage], list[Passage]]] = []
    first_notes: list[Passage] = []  # above the first slide; they are added to its notes
    block = None
    for passage in read_passages(notebook.text):
        if passage.block is not None and passage.block.kind == "slide":
            if passage.block is not block:
                slides.append(([], first_notes))
                first_notes = []
            block = passage.block
            if passage.cell or passage.figure or passage.prose.strip():
                slides[-1][0].append(passage)
        elif passage.cell or not passage.prose.strip():
            continue
        elif passage.block is None or notebook.framework in passage.block.frameworks:
            notes = slides[-1][1] if slides else first_notes
            notes.append(passage)
    if not slides:
        raise LessonError("no slide: need a block :::{slide}", notebook.text)
    # Slides with no prose between them share their notes.
    for (_, notes), (_, next_notes) in reversed([*pairwise(slides)]):
        if not notes:
            notes.extend(next_notes)
    return slides


def _make_cell(
    passage: Passage, code_cells: dict[str, NotebookNode], notebook: Notebook
) -> NotebookNode:
    """Return the cell for a passage: a live figure, prose, or code."""
    if passage.figure:
        # data-prevent-swipe makes reveal.js ignore swipes on the figure.
        figure = f'<div class="live" data-live="{passage.figure}" data-prevent-swipe></div>'
        return v4.new_markdown_cell(figure)
    if not passage.cell:
        prose = embed_images(passage, notebook.text, make_svg_tag)
        return v4.new_markdown_cell(_convert_formulas(prose))
    executed = code_cells[passage.cell]
    outputs = [_embed_figure(output) for output in executed.outputs]
    cell = v4.new_code_cell(executed.source, outputs=outputs)
    cell.metadata.parts = passage.parts
    return cell


def _embed_figure(output: NotebookNode) -> NotebookNode:
    """Turn a figure into an image with its alternative text; leave other outputs as they are."""
    data = output.get("data", {})
    if SVG in data:
        html = make_svg_tag(data[SVG], data["text/plain"])
        return v4.new_output("display_data", {"text/html": html})
    return output


def _convert_formulas(prose: str) -> str:
    def convert(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        if match["block"]:
            return f'\n<div class="math">{to_mathml(match["block"], "block")}</div>\n'
        return to_mathml(match["inline"])

    return FORMULA.sub(convert, prose)
