"""``python -m tools.project.readme``: puts into README what is made, between markers: the links to all notebooks with
the buttons that run them, how to install from a clone, how to cite. How to cite is also told on the site and in
CITATION.cff, how to install where readers come from d2l, and there, too, which of D2L's pages run.
"""

import sys
from html import escape
from itertools import groupby

from d2l_compat.frameworks import FRAMEWORKS
from tools.book import results
from tools.project.citation import BIBTEX, CITATION, TEXTS, cff
from tools.site.words import WORDS
from tools.weave.launch import BINDER, COLAB, FOR_D2L, FROM_A_CLONE, path, services
from tools.weave.lessons import LANGUAGES, ROOT, Edition, LessonError, editions
from tools.weave.prose import original, title

README = ROOT / "README.md"
COMING = sorted(ROOT.glob("docs/*/coming-from-d2l.md"))
INSTALL = f"```\n{FROM_A_CLONE}\n```\n"
FIRST_CELL = f"```python\n{FOR_D2L}\n```\n"
BADGES = {
    COLAB: "https://colab.research.google.com/assets/colab-badge.svg",
    BINDER: "https://mybinder.org/badge_logo.svg",
}


def markers(name: str) -> tuple[str, str]:
    return f"<!-- make: {name} -->\n", f"<!-- end of make: {name} -->\n"


def between(text: str, name: str, made: str) -> str:
    """The text, with what is made between the markers of this name. Raises ValueError where they are not there."""
    begin, end = markers(name)
    before, rest = text.split(begin)
    return before + begin + made + end + rest.split(end)[1]


def with_links(readme: str, chosen: list[Edition]) -> str:
    """README with what opens the notebooks: a table for each lesson. Where there are several lessons,
    each is folded under its title."""
    tables = [_table(list(group)) for _, group in groupby(chosen, key=lambda each: each.folder)]
    if len(tables) > 1:
        folders = dict.fromkeys(edition.folder for edition in chosen)
        titles = [escape(title(original(folder))) for folder in folders]
        tables = [
            f"<details>\n<summary>{name}</summary>\n\n{table}\n</details>\n"
            for name, table in zip(titles, tables, strict=True)
        ]
    return between(readme, "launch", "\n".join(tables))


def _table(of_lesson: list[Edition]) -> str:
    """A row for each framework, a column for each language."""
    links = {(edition.framework, edition.language): _links(edition) for edition in of_lesson}
    frameworks = dict.fromkeys(edition.framework for edition in of_lesson)
    languages = dict.fromkeys(edition.language for edition in of_lesson)
    rows = [
        ["", *(LANGUAGES.get(name, name) for name in languages)],
        [":--"] * (len(languages) + 1),
    ]
    for framework in frameworks:
        rows.append(
            [FRAMEWORKS[framework].title, *(links[framework, language] for language in languages)]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _links(edition: Edition) -> str:
    links = [f"[{WORDS[edition.language].notebook}]({path(edition)})"]
    for service in services(edition.framework):
        if badge := BADGES.get(service):
            links.append(f"[![{service.name}]({badge})]({service.link(edition)})")
    return " ".join(links)


def with_citation(text: str) -> str:
    return between(text, "cite", f"```bibtex\n{BIBTEX}```\n")


def with_installation(text: str) -> str:
    """The page on coming from d2l: in a notebook on a service, and from a clone."""
    return between(between(text, "first cell", FIRST_CELL), "install", INSTALL)


def with_pages(text: str, language: str) -> str:
    """The same page: which of D2L's own pages run."""
    return between(text, "book", results.tables(results.read(), language))


def main() -> int:
    """The exit code: 0, or 1 where the lessons have a fault."""
    made = {text: with_citation(text.read_text(encoding="utf-8")) for text in TEXTS}
    try:
        made[README] = between(with_links(made[README], list(editions())), "install", INSTALL)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    for file in COMING:
        text = with_installation(file.read_text(encoding="utf-8"))
        made[file] = with_pages(text, file.parent.name)
    made[CITATION] = cff()
    for file, text in made.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
