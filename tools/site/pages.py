"""A lesson's page: one notebook with the code cells of all frameworks, for MyST-NB to render.

Each cell that the text asks for becomes one code cell for each framework, with the outputs of its
executed notebook; tools/site/tabs.py puts them into tabs. Nothing is executed.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode, v4

from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.figures import SVG
from tools.site.figures import light
from tools.site.slides import deck_path
from tools.site.words import WORDS
from tools.weave.launch import SOURCE, path, services
from tools.weave.lessons import Edition, LessonError
from tools.weave.notebooks import IMAGE, link_lessons
from tools.weave.programs import LANGUAGES
from tools.weave.prose import Passage, joined, original, read_passages


def page(editions: list[Edition]) -> NotebookNode:
    """The page of a lesson in one language, from its editions in all frameworks.

    Raises LessonError where a notebook is missing.
    """
    executed = {edition: _executed(edition) for edition in editions}
    text = editions[0].text
    anchors = _anchors(original(text.parent))
    result = v4.new_notebook(metadata={"kernelspec": LANGUAGES[".py"].kernelspec})
    number = count(1)

    def markdown(source: str) -> None:
        source = link_lessons(_with_drawings(source, text.parent.name))
        result.cells.append(v4.new_markdown_cell(source, id=f"text-{next(number)}"))

    for block, passages in _by_block(text):
        if block == "slide":
            continue
        for passage in passages:
            if passage.cell:
                result.cells.extend(
                    _code_cell(passage.cell, edition.framework, cells[passage.cell])
                    for edition, cells in executed.items()
                    if passage.cell in cells
                )
            elif block == "live":
                markdown(_live(passage))
            elif block == "only":
                if prose := _only(passage, editions):
                    markdown(prose)
            elif passage.heading == "#":
                markdown(passage.prose)
                markdown(_launch(editions))
            else:
                anchor = f"({next(anchors)})=\n" if passage.heading else ""
                markdown(anchor + passage.prose)
    return result


def _by_block(text: Path) -> list[tuple[str, list[Passage]]]:
    """The passages, those of a block together, with its kind."""
    together: list[tuple[object, list[Passage]]] = []
    for passage in read_passages(text):
        if not together or together[-1][0] is not passage.block:
            together.append((passage.block, []))
        together[-1][1].append(passage)
    return [
        (them[0].block.kind if them[0].block else "", list(joined(them))) for _, them in together
    ]


def _executed(edition: Edition) -> dict[str, NotebookNode]:
    try:
        notebook = nbformat.read(edition.notebook, as_version=4)
    except OSError as error:
        raise LessonError(f"{error.strerror}: run `make` first", edition.notebook) from None
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def _with_drawings(prose: str, lesson: str) -> str:
    """Drawings are in a folder of the lesson's name, beside its page: another's may be called the same.

    What they show is told in one line: where a line ends, MyST would join two words.
    """

    def draw(image: re.Match[str]) -> str:
        if image["fence"]:
            return image[0]
        return f"![{' '.join(image['alt'].split())}]({lesson}/{image['file']})"

    return IMAGE.sub(draw, prose)


def _anchors(first: Path) -> Iterator[str]:
    """The same in every language, so that a link keeps its place when the language changes; of one lesson's
    own, since others have a summary, too."""
    for passage in read_passages(first):
        if passage.block is None and len(passage.heading) > 1:
            words = re.findall(r"[a-z]\w*", passage.prose.splitlines()[0].lower())
            yield "-".join([first.parent.name, *words]) if words else ""


def _only(passage: Passage, editions: list[Edition]) -> str:
    """Nothing, where the page has none of the frameworks."""
    assert passage.block
    shown = [each.framework for each in editions if each.framework in passage.block.frameworks]
    classes = " ".join(f"for-{framework}" for framework in shown)
    names = ", ".join(FRAMEWORKS[framework].title for framework in shown)
    box = f"::::::{{div}} only {classes}\n:::{{div}} only-title\n{names}\n:::\n\n"
    return f"{box}{passage.prose}\n::::::" if shown else ""


def _live(passage: Passage) -> str:
    assert passage.block
    return (
        "::::::{div} live-figure\n"
        f'```{{raw}} html\n<div class="live" data-live="{passage.block.name}"></div>\n```\n\n'
        f"{passage.prose}\n::::::"
    )


def _launch(editions: list[Edition]) -> str:
    """The choice of a framework; with each, what runs its notebook, its source and its slides."""
    tabs = []
    for edition in editions:
        words = WORDS[edition.language]
        elsewhere = [*services(edition.framework), SOURCE]
        links = [
            *(_button(service.name, service.link(edition)) for service in elsewhere),
            _button(words.download, f"../{path(edition)}", " download"),
            _button(words.slides, f"../{deck_path(edition)}"),
        ]
        buttons = " ".join(links)
        run = words.run.format(framework=FRAMEWORKS[edition.framework].title)
        tabs.append(
            f":::::{{tab-item}} {FRAMEWORKS[edition.framework].title}\n:sync: {edition.framework}\n"
            f'```{{raw}} html\n<p class="launch">{run} {buttons}</p>\n```\n:::::'
        )
    return "::::::{tab-set}\n:sync-group: framework\n" + "\n".join(tabs) + "\n::::::"


def _button(name: str, link: str, more: str = "") -> str:
    """It says which address it opens, if it leaves the site."""
    title = f' title="{escape(link)}"' if "://" in link else ""
    return f'<a href="{escape(link)}"{title}{more}>{name}</a>'


def _code_cell(name: str, framework: str, executed: NotebookNode) -> NotebookNode:
    metadata: dict[str, Any] = {"d2l": {"name": name, "framework": framework}, "mystnb": {}}
    outputs = []
    for output in executed.outputs:
        data = output.get("data", {})
        if SVG in data:
            metadata["mystnb"]["image"] = {"alt": data["text/plain"]}
            output = v4.new_output("display_data", {SVG: light(data[SVG])})
        outputs.append(output)
    return v4.new_code_cell(
        executed.source, id=f"{framework}-{name}", metadata=metadata, outputs=outputs
    )
