"""``python -m tools.project.readme``: puts the links to all notebooks, and the buttons that run them, into README."""

import sys
from html import escape
from itertools import groupby

from d2l_compat.frameworks import FRAMEWORKS
from tools.site.words import WORDS
from tools.weave.launch import BINDER, COLAB, path, services
from tools.weave.lessons import LANGUAGES, ROOT, Edition, LessonError, editions
from tools.weave.prose import original, title

README = ROOT / "README.md"
MARKERS = "<!-- make: launch -->\n", "<!-- end of make: launch -->\n"
BADGES = {
    COLAB: "https://colab.research.google.com/assets/colab-badge.svg",
    BINDER: "https://mybinder.org/badge_logo.svg",
}


def with_links(readme: str, chosen: list[Edition]) -> str:
    """README with what opens the notebooks: a table for each lesson. Where there are several lessons,
    each is folded under its title."""
    before, _, rest = readme.partition(MARKERS[0])
    after = rest.partition(MARKERS[1])[2]
    tables = [_table(list(group)) for _, group in groupby(chosen, key=lambda each: each.folder)]
    if len(tables) > 1:
        folders = dict.fromkeys(edition.folder for edition in chosen)
        titles = [escape(title(original(folder))) for folder in folders]
        tables = [
            f"<details>\n<summary>{name}</summary>\n\n{table}\n</details>\n"
            for name, table in zip(titles, tables, strict=True)
        ]
    return before + MARKERS[0] + "\n".join(tables) + MARKERS[1] + after


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
    links = [f"[{WORDS[edition.language].source}]({path(edition)})"]
    for service in services(edition.framework):
        if badge := BADGES.get(service):
            links.append(f"[![{service.name}]({badge})]({service.link(edition)})")
    return " ".join(links)


def main() -> int:
    """The exit code: 0, or 1 where the lessons have a fault."""
    readme = README.read_text(encoding="utf-8")
    try:
        made = with_links(readme, list(editions()))
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    if made != readme:
        README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
