"""A deck of slides for each framework and language, by nbconvert and reveal.js.

A slide is what a text marks as one (tools/weave/prose.py); what the text says from there to the next
slide is the speaker's notes. Code and outputs are those of the executed notebook. Live figures load the
pages' own files. The first slide also says whose it is, and leads back to the lesson.
"""

import json
import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import nbformat
import sphinx_revealjs
from nbconvert.exporters import SlidesExporter
from nbformat import NotebookNode, v4
from traitlets.config import Config

from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.figures import SVG
from tools.site.live import needed
from tools.site.mathematics import mathml
from tools.site.words import WORDS
from tools.weave.credit import credit
from tools.weave.lessons import Edition, LessonError
from tools.weave.notebooks import embed_images, link_lessons, svg_image
from tools.weave.prose import Passage, read_passages, title

HERE = Path(__file__).parent
# It is the package on PyPI that carries reveal.js.
REVEAL = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FORMULA = re.compile(r"(?P<code>`[^`]*`)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$]+?)\$", re.DOTALL)


def deck_path(edition: Edition) -> str:
    """Of its deck, within the site."""
    return f"slides/{edition.language}/{edition.framework}/{edition.folder.name}.html"


def index(editions: list[Edition]) -> str:
    """A list of the lessons in one language, with a link to each one's decks. Markdown."""
    lines = []
    for lesson, group in groupby(editions, key=lambda edition: edition.folder):
        of_lesson = list(group)
        words = WORDS[of_lesson[0].language]
        decks = [
            f'<a href="../{deck_path(edition)}">{FRAMEWORKS[edition.framework].title}</a>'
            for edition in of_lesson
        ]
        frameworks = words.between.join(decks)
        lines.append(
            f"* {words.decks.format(lesson=f'{{doc}}`{lesson.name}`', frameworks=frameworks)}"
        )
    return "\n".join(lines)


def write_slides(editions: list[Edition], site: Path) -> None:
    """All decks, and beside them, once in each language, reveal.js. Raises LessonError."""
    for language in {edition.language for edition in editions}:
        _write_reveal(site / "slides" / language / "reveal", language)
    exporter = SlidesExporter(
        Config(
            SlidesExporter={"reveal_url_prefix": "../reveal", "exclude_anchor_links": True},
            TemplateExporter={"extra_template_basedirs": [str(HERE)]},
        ),
        template_name="deck",
    )
    for edition in editions:
        html, _ = exporter.from_notebook_node(deck(edition))
        path = site / deck_path(edition)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")


def _write_reveal(folder: Path, language: str) -> None:
    for part in ("dist", "plugin/notes"):
        shutil.copytree(REVEAL / part, folder / part, ignore=_unused)
    for own in ("deck.css", "deck.js"):
        shutil.copy(HERE / "deck" / own, folder)
    for shared in ("favicon.svg", "roots.js", "wide.css", "wide.js"):
        shutil.copy(HERE / "static" / shared, folder)
    shutil.copytree(HERE / "static" / "fonts", folder / "fonts")
    words = HERE / "deck" / "words" / f"{language}.json"
    said = json.loads(words.read_text(encoding="utf-8")) if words.exists() else {}
    for script in folder.rglob("*.js") if said else ():
        script.write_text(in_words(script.read_text(encoding="utf-8"), said), encoding="utf-8")


def in_words(script: str, said: dict[str, str]) -> str:
    """The script, saying the second of each pair for the first: reveal.js has no translations."""
    whole = "|".join(map(re.escape, said))
    return re.sub(rf"""(?<=["'>])({whole})(?=\\?["'<])""", lambda words: said[words[0]], script)


def _unused(folder: str, names: list[str]) -> list[str]:
    return [
        name for name in names if name == "theme" or name.endswith((".map", ".esm.js", ".html"))
    ]


def deck(edition: Edition) -> NotebookNode:
    """The cells of a deck, marked as nbconvert reads it. Raises LessonError."""
    executed = nbformat.read(edition.notebook, as_version=4)
    code = {cell.id: cell for cell in executed.cells if cell.cell_type == "code"}
    about = {"title": title(edition.text), "language": edition.language}
    result = v4.new_notebook(metadata={**executed.metadata, **about})
    slides = [*_slides(edition)]
    figures = [passage.figure for slide, _ in slides for passage in slide if passage.figure]
    static = f"../../../{edition.language}/_static"
    files = needed(figures, edition.folder.name)
    result.metadata["live"] = [f"{static}/{file}" for file in files]
    page = f"../../../{edition.language}/{edition.folder.name}.html?framework={edition.framework}"
    lesson = WORDS[edition.language].lesson.format(title=f"[{about['title']}]({page})")
    whose = f'<div class="credit">\n\n{lesson}\n\n{credit(edition.language, "slides")}\n\n</div>'
    slides[0][0].append(Passage(line=1, prose=whose))
    for passages, notes in slides:
        kind = "slide"
        for passage in passages:
            cell = _cell(passage, code, edition)
            cell.metadata.slideshow = {"slide_type": kind}
            result.cells.append(cell)
            kind = "-"
        said = "\n\n".join(
            _with_mathml(embed_images(each, edition.text, svg_image)) for each in notes
        )
        said = HEADING.sub(r"**\1**", said)  # only slides have headings
        said = link_lessons(said, to=r"\1")  # and only pages lead on
        cell = v4.new_markdown_cell(said, metadata={"slideshow": {"slide_type": "notes"}})
        result.cells.append(cell)
    return result


def _slides(edition: Edition) -> Iterator[tuple[list[Passage], list[Passage]]]:
    """Each slide's passages, and the prose that is said to it."""
    slides: list[tuple[list[Passage], list[Passage]]] = []
    before: list[Passage] = []  # the first slide
    block = None
    for passage in read_passages(edition.text):
        if passage.block is not None and passage.block.kind == "slide":
            if passage.block is not block:
                slides.append(([], before))
                before = []
            block = passage.block
            if passage.cell or passage.figure or passage.prose.strip():
                slides[-1][0].append(passage)
        elif passage.cell or not passage.prose.strip():
            continue
        elif passage.block is None or edition.framework in passage.block.frameworks:
            (slides[-1][1] if slides else before).append(passage)
    if not slides:
        raise LessonError("no slide: need a block :::{slide}", edition.text)
    yield from slides


def _cell(passage: Passage, code: dict[str, NotebookNode], edition: Edition) -> NotebookNode:
    if passage.figure:
        # It is for reveal.js to leave alone, whatever a finger does there.
        figure = f'<div class="live" data-live="{passage.figure}" data-prevent-swipe></div>'
        return v4.new_markdown_cell(figure)
    if not passage.cell:
        prose = embed_images(passage, edition.text, svg_image)
        return v4.new_markdown_cell(_with_mathml(prose))
    outputs = [_with_image(output) for output in code[passage.cell].outputs]
    cell = v4.new_code_cell(code[passage.cell].source, outputs=outputs)
    cell.metadata.parts = passage.parts
    return cell


def _with_image(output: NotebookNode) -> NotebookNode:
    """A figure as an image with its alternative."""
    data = output.get("data", {})
    if SVG in data:
        html = svg_image(data[SVG], data["text/plain"])
        return v4.new_output("display_data", {"text/html": html})
    return output


def _with_mathml(prose: str) -> str:
    def convert(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        if found["block"]:
            return f'\n<div class="math">{mathml(found["block"], "block")}</div>\n'
        return mathml(found["inline"])

    return FORMULA.sub(convert, prose)
