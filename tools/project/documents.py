"""``python -m tools.project.documents``: fill in the generated parts of README, notebooks/README.md and docs/.

A generated part is enclosed by two comments: ``<!-- make: NAME -->`` and ``<!-- end of make: NAME -->``.
"""

import re
import sys
from html import escape
from itertools import groupby
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tools.book import results
from tools.project.citation import BIBTEX, CITATION, make_cff
from tools.site.words import SITE_TEXT
from tools.weave.launch import (
    BINDER,
    COLAB,
    D2L_FIRST_CELL,
    INSTALL_FROM_CLONE,
    SITE_ADDRESS,
    get_project_path,
    list_services,
)
from tools.weave.lessons import LANGUAGES, ROOT, LessonError, Notebook, list_notebooks
from tools.weave.prose import find_original, read_title

NOTEBOOKS = ROOT / "notebooks" / "README.md"
BADGES = {
    COLAB: "https://colab.research.google.com/assets/colab-badge.svg",
    BINDER: "https://mybinder.org/badge_logo.svg",
}
PART = re.compile(
    r"^(?P<begin><!-- make: (?P<name>.*) -->\n).*?(?P<end><!-- end of make: (?P=name) -->)$",
    re.MULTILINE | re.DOTALL,
)


def fill_parts(text: str, parts: dict[str, str]) -> str:
    """Replace the content of each generated part. Raises KeyError if ``parts`` lacks one of them."""
    return PART.sub(lambda part: part["begin"] + parts[part["name"]] + part["end"], text)


def list_documents() -> list[Path]:
    """Return the files that may have generated parts."""
    return [*sorted(ROOT.glob("README*.md")), NOTEBOOKS, *sorted(ROOT.glob("docs/*/*.md"))]


def generate_parts(language: str) -> dict[str, str]:
    """Return the content of every generated part by name, in this language.

    Raises LessonError if a lesson is invalid.
    """
    notebooks = list(list_notebooks())
    return {
        "start": render_start(notebooks, language),
        "site": f"<{SITE_ADDRESS}{language}/>\n",
        "notebooks": render_launch_tables(notebooks),
        "install": f"```\n{INSTALL_FROM_CLONE}\n```\n",
        "first cell": f"```python\n{D2L_FIRST_CELL}\n```\n",
        "book": results.render_tables(results.load_results(), language),
        "cite": f"```bibtex\n{BIBTEX}```\n",
    }


def find_language(document: Path) -> str:
    """Return the language in a document's path, as in docs/zh-TW/index.md and README.zh-TW.md."""
    candidates = [*document.name.split(".")[1:-1], document.parent.name]
    return next((name for name in candidates if name in LANGUAGES), "en")


def render_start(notebooks: list[Notebook], language: str) -> str:
    """Return the links that open the first lesson in PyTorch."""
    first = next(notebook for notebook in notebooks if notebook.language == language)
    return f"**{read_title(first.text)}** {_render_launch_links(first)}\n"


def render_launch_tables(notebooks: list[Notebook]) -> str:
    """Return a table for each lesson, with a row for each framework and a column for each language."""
    sections = []
    for lesson, group in groupby(notebooks, key=lambda notebook: notebook.lesson):
        heading = escape(read_title(find_original(lesson)))
        sections.append(f"## {heading}\n\n{_render_launch_table(list(group))}")
    return "\n".join(sections)


def _render_launch_table(notebooks: list[Notebook]) -> str:
    """Return a table of links from notebooks/README.md to the notebooks of a lesson."""
    folder = f"{NOTEBOOKS.parent.name}/"
    links = {
        (notebook.framework, notebook.language): _render_launch_links(notebook, folder)
        for notebook in notebooks
    }
    frameworks = dict.fromkeys(notebook.framework for notebook in notebooks)
    languages = dict.fromkeys(notebook.language for notebook in notebooks)
    rows = [
        ["", *(LANGUAGES.get(name, name) for name in languages)],
        [":--"] * (len(languages) + 1),
    ]
    for framework in frameworks:
        cells = [links[framework, language] for language in languages]
        rows.append([FRAMEWORKS[framework].title, *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _render_launch_links(notebook: Notebook, folder: str = "") -> str:
    """Return links and badges that open a notebook, for a document in this folder."""
    relative_path = get_project_path(notebook).removeprefix(folder)
    links = [f"[{SITE_TEXT[notebook.language].notebook}]({relative_path})"]
    for service in list_services(notebook.framework):
        if badge := BADGES.get(service):
            links.append(f"[![{service.name}]({badge})]({service.link(notebook)})")
    return " ".join(links)


def main() -> int:
    """Return the exit code: 0, or 1 if a lesson is invalid."""
    try:
        parts = {language: generate_parts(language) for language in LANGUAGES}
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    contents = {CITATION: make_cff()}
    for document in list_documents():
        text = document.read_text(encoding="utf-8")
        contents[document] = fill_parts(text, parts[find_language(document)])
    for file, content in contents.items():
        if not file.exists() or file.read_text(encoding="utf-8") != content:
            file.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
