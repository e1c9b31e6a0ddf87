"""``python -m tools.readme``: puts the links to all notebooks, and the buttons that run them, into README."""

from itertools import groupby

from d2l_compat.frameworks import FRAMEWORKS
from tools.launch import BINDER, COLAB, path, services
from tools.lessons import LANGUAGES, ROOT, Edition, editions

README = ROOT / "README.md"
MARKERS = "<!-- make: launch -->\n", "<!-- end of make: launch -->\n"
BADGES = {
    COLAB: "https://colab.research.google.com/assets/colab-badge.svg",
    BINDER: "https://mybinder.org/badge_logo.svg",
}


def with_links(readme: str) -> str:
    """README with a row for each framework, and in it, for each language, what opens the notebook."""
    before, _, rest = readme.partition(MARKERS[0])
    after = rest.partition(MARKERS[1])[2]
    chosen = sorted(editions(), key=lambda edition: list(FRAMEWORKS).index(edition.framework))
    languages = list(dict.fromkeys(edition.language for edition in chosen))
    head = ["", *(LANGUAGES.get(language, language) for language in languages)]
    rows = [head, [":--"] * len(head)]
    for framework, of_framework in groupby(chosen, key=lambda edition: edition.framework):
        rows.append([FRAMEWORKS[framework].title, *map(_links, of_framework)])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return before + MARKERS[0] + table + MARKERS[1] + after


def _links(edition: Edition) -> str:
    links = [f"[notebook]({path(edition)})"]
    for service in services(edition.framework):
        if badge := BADGES.get(service):
            links.append(f"[![{service.name}]({badge})]({service.link(edition)})")
    return " ".join(links)


def main() -> None:
    readme = README.read_text(encoding="utf-8")
    if (made := with_links(readme)) != readme:
        README.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
