"""Make the page of a lesson: one notebook with the code cells of all frameworks, which MyST-NB renders.

Each cell that the text refers to becomes one code cell per framework, with the outputs of the executed
notebook; tools/site/tabs.py puts them into tabs. Nothing is executed here.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import count
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.figures import SVG
from tools.site.figures import shrink_figure
from tools.site.slides import get_deck_path
from tools.site.words import SITE_TEXT
from tools.weave.launch import SOURCE, get_project_path, list_services
from tools.weave.lessons import LessonError, Notebook
from tools.weave.notebooks import IMAGE, link_lessons
from tools.weave.programs import PROGRAMMING_LANGUAGES
from tools.weave.prose import Passage, find_original, join_prose, read_passages


def make_page(notebooks: list[Notebook]) -> NotebookNode:
    """Return the page of a lesson in one language, from its notebooks in all frameworks.

    Raise LessonError if a notebook is missing.
    """
    code_cells = {notebook: _read_cells(notebook) for notebook in notebooks}
    text = notebooks[0].text
    anchors = _generate_anchors(find_original(text.parent))
    result = v4.new_notebook(metadata={"kernelspec": PROGRAMMING_LANGUAGES[".py"].kernelspec})
    number = count(1)

    def add_markdown(source: str) -> None:
        source = link_lessons(_rewrite_drawings(source, text.parent.name))
        result.cells.append(v4.new_markdown_cell(source, id=f"text-{next(number)}"))

    for block, passages in _group_by_block(text):
        if block == "slide":
            continue
        for passage in passages:
            if passage.cell:
                result.cells.extend(
                    _make_code_cell(passage.cell, notebook.framework, cells[passage.cell])
                    for notebook, cells in code_cells.items()
                    if passage.cell in cells
                )
            elif block == "live":
                add_markdown(_render_live(passage))
            elif block == "only":
                if prose := _render_only(passage, notebooks):
                    add_markdown(prose)
            elif passage.heading == "#":
                add_markdown(passage.prose)
                add_markdown(_render_launch(notebooks))
            else:
                anchor = f"({next(anchors)})=\n" if passage.heading else ""
                add_markdown(anchor + passage.prose)
    return result


def _group_by_block(text: Path) -> list[tuple[str, list[Passage]]]:
    """Return the passages of a text, grouped by block, with the kind of each block ("" outside of blocks)."""
    groups: list[tuple[str, list[Passage]]] = []
    block: object = object()  # differs from any block and from None
    for passage in read_passages(text):
        if passage.block is not block:
            block = passage.block
            groups.append((passage.block.kind if passage.block else "", []))
        groups[-1][1].append(passage)
    return [(kind, list(join_prose(passages))) for kind, passages in groups]


def _read_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    """Return the code cells of an executed notebook, by name. Raise LessonError if it cannot be read."""
    try:
        content = nbformat.read(notebook.path, as_version=4)
    except OSError as error:
        raise LessonError(f"{error.strerror}: run `make` first", notebook.path) from None
    return {cell.id: cell for cell in content.cells if cell.cell_type == "code"}


def _rewrite_drawings(prose: str, lesson: str) -> str:
    """Make drawings refer to the folder with the lesson's name, which is beside the page.

    Their alternative text is put on one line, because MyST drops line breaks and would join two words.
    """

    def rewrite(image: re.Match[str]) -> str:
        if image["fence"]:
            return image[0]
        return f"![{' '.join(image['alt'].split())}]({lesson}/{image['file']})"

    return IMAGE.sub(rewrite, prose)


def _generate_anchors(text: Path) -> Iterator[str]:
    """Yield an anchor for each heading of the original text; the translations use the same anchors.

    So a link leads to the same section in every language. An anchor begins with the lesson's name, because several
    lessons have headings such as "Summary".
    """
    for passage in read_passages(text):
        if passage.block is None and len(passage.heading) > 1:
            words = re.findall(r"[a-z]\w*", passage.prose.splitlines()[0].lower())
            yield "-".join([text.parent.name, *words]) if words else ""


def _render_only(passage: Passage, notebooks: list[Notebook]) -> str:
    """Render a passage for some frameworks, or return "" if the page has none of them."""
    assert passage.block
    all_frameworks = [notebook.framework for notebook in notebooks]
    frameworks = [each for each in all_frameworks if each in passage.block.frameworks]
    if not frameworks:
        return ""
    classes = " ".join(f"for-{framework}" for framework in frameworks)
    titles = ", ".join(FRAMEWORKS[framework].title for framework in frameworks)
    box = f"::::::{{div}} only {classes}\n:::{{div}} only-title\n{titles}\n:::\n\n"
    return f"{box}{passage.prose}\n::::::"


def _render_live(passage: Passage) -> str:
    assert passage.block
    return (
        "::::::{div} live-figure\n"
        f'```{{raw}} html\n<div class="live" data-live="{passage.block.name}"></div>\n```\n\n'
        f"{passage.prose}\n::::::"
    )


def _render_launch(notebooks: list[Notebook]) -> str:
    """Render the framework tabs below the title, with links to each notebook, its source and its slides."""
    tabs = []
    for notebook in notebooks:
        site_text = SITE_TEXT[notebook.language]
        title = FRAMEWORKS[notebook.framework].title
        buttons = [site_text.run.format(framework=title)]
        for service in [*list_services(notebook.framework), SOURCE]:
            buttons.append(_render_button(service.name, service.link(notebook)))
        buttons.append(
            _render_button(site_text.download, f"../{get_project_path(notebook)}", " download")
        )
        buttons.append(_render_button(site_text.slides, f"../{get_deck_path(notebook)}"))
        tabs.append(
            f":::::{{tab-item}} {title}\n:sync: {notebook.framework}\n"
            f'```{{raw}} html\n<p class="launch">{" ".join(buttons)}</p>\n```\n:::::'
        )
    return "::::::{tab-set}\n:sync-group: framework\n" + "\n".join(tabs) + "\n::::::"


def _render_button(name: str, link: str, attributes: str = "") -> str:
    """Render a link; its address is its tooltip if the link leaves the site."""
    tooltip = f' title="{escape(link)}"' if "://" in link else ""
    return f'<a href="{escape(link)}"{tooltip}{attributes}>{name}</a>'


def _make_code_cell(name: str, framework: str, executed: NotebookNode) -> NotebookNode:
    alternatives = []  # of the figures, for tools/site/tabs.py: MyST-NB has only one for all of a cell's figures
    outputs = []
    for output in executed.outputs:
        data = output.get("data", {})
        if SVG in data:
            alternatives.append(data["text/plain"])
            output = v4.new_output("display_data", {SVG: shrink_figure(data[SVG])})
        outputs.append(output)
    metadata = {"d2l": {"name": name, "framework": framework, "alternatives": alternatives}}
    return v4.new_code_cell(
        executed.source, id=f"{framework}-{name}", metadata=metadata, outputs=outputs
    )
