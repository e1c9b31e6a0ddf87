"""Citations on a page lead to what they cite, say it under the pointer, and are led back to.

A lesson cites as in (Su et al., 2021), and lists under its last heading whom, a line each: first the
first author's surname, then the year in brackets.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.site.words import WORDS

ENTRY = re.compile(r"(?P<surname>[^\W\d]+)[^(]*\((?P<year>\d{4})\)")
# Where a name is no citation, or leads elsewhere already.
OTHER = nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.math, nodes.raw


class Cited(NamedTuple):
    entry: nodes.list_item
    name: str  # of its place on the page
    pattern: str  # of what cites it


class Cite(SphinxPostTransform):
    """Links each citation and its entry in the list."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        cited = {each.name: each for each in _entries(self.document)}
        if not cited:
            return
        pattern = re.compile("|".join(f"(?P<{c.name}>{c.pattern})" for c in cited.values()))
        places: dict[str, list[str]] = {name: [] for name in cited}
        entries = [each.entry for each in cited.values()]
        for text in [*self.document.findall(nodes.Text)]:
            if not any(isinstance(each, OTHER) or each in entries for each in _around(text)):
                text.parent.replace(text, [*_linked(text, pattern, cited, places)])
        back = WORDS[self.config.language.replace("_", "-")].back
        for name, its_places in places.items():
            entry = cited[name].entry
            entry["ids"].append(name)
            for number, place in enumerate(its_places, 1):
                sign = "↩" if len(its_places) == 1 else f"↩{number}"
                link = nodes.reference("", sign, refid=place, reftitle=back, classes=["back"])
                entry[-1] += [nodes.Text(" "), link]


def _entries(document: nodes.document) -> Iterator[Cited]:
    for section in document.findall(nodes.section):
        if any(name.endswith("references") for name in section["ids"]):
            for entry in section.findall(nodes.list_item):
                if found := ENTRY.match(entry.astext()):
                    surname, year = found.groups()
                    # and others: et al., and Pinter, 等人
                    written = (
                        rf"\b{surname}\b[^\d()（）]{{0,30}}?(?:[(（]{year}[)）]|[,，] ?{year})"
                    )
                    yield Cited(entry, f"{surname}_{year}".lower(), written)


def _linked(
    text: nodes.Text,
    pattern: re.Pattern[str],
    cited: dict[str, Cited],
    places: dict[str, list[str]],
) -> Iterator[nodes.Node]:
    """The text in pieces; ``places`` gets those of its citations to which a reader can be led back."""
    words, done = text.astext(), 0
    for found in pattern.finditer(words):
        name = str(found.lastgroup)
        yield nodes.Text(words[done : found.start()])
        said = " ".join(cited[name].entry.astext().split())
        link = nodes.reference("", found[0], refid=name, reftitle=said, classes=["cites"])
        if not _is_for_one_framework(text):
            places[name].append(f"{name}_cited_{len(places[name]) + 1}")
            link["ids"].append(places[name][-1])
        yield link
        done = found.end()
    yield nodes.Text(words[done:])


def _is_for_one_framework(text: nodes.Text) -> bool:
    """Then it may be hidden."""
    return any("only" in each["classes"] for each in _around(text))


def _around(text: nodes.Text) -> Iterator[nodes.Element]:
    """The elements that it is in, from the innermost on."""
    element = text.parent
    while element is not None:
        yield element
        element = element.parent


def setup(app: Sphinx) -> None:
    app.add_post_transform(Cite)
