"""Link the citations on a page to its list of references, with the reference as a tooltip, and back.

A lesson cites as in (Su et al., 2021). Its last section is a list of references, one per line, which begin with
the first author's surname and have the year in parentheses.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.site.words import SITE_TEXT

ENTRY = re.compile(r"(?P<surname>[^\W\d]+)[^(]*\((?P<year>\d{4})\)")
# In these, a name is not a citation, or is part of another link.
SKIPPED = nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.math, nodes.raw


class Reference(NamedTuple):
    entry: nodes.list_item
    name: str  # its anchor on the page
    pattern: str  # matches its citations


class LinkCitations(SphinxPostTransform):
    """Link each citation to its entry in the list of references, and each entry back to its citations."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        references = {each.name: each for each in _find_references(self.document)}
        if not references:
            return
        groups = [f"(?P<{each.name}>{each.pattern})" for each in references.values()]
        pattern = re.compile("|".join(groups))
        anchors: dict[str, list[str]] = {name: [] for name in references}
        entries = [each.entry for each in references.values()]
        for text in [*self.document.findall(nodes.Text)]:
            if not any(isinstance(each, SKIPPED) or each in entries for each in _ancestors(text)):
                text.parent.replace(text, [*_link_citations(text, pattern, references, anchors)])
        title = SITE_TEXT[self.config.language.replace("_", "-")].back_to_text
        for name, citations in anchors.items():
            entry = references[name].entry
            entry["ids"].append(name)
            for number, anchor in enumerate(citations, 1):
                sign = "↩" if len(citations) == 1 else f"↩{number}"
                link = nodes.reference("", sign, refid=anchor, reftitle=title, classes=["back"])
                entry[-1] += [nodes.Text(" "), link]


def _find_references(document: nodes.document) -> Iterator[Reference]:
    """Yield the entries of the list of references."""
    for section in document.findall(nodes.section):
        if any(name.endswith("references") for name in section["ids"]):
            for entry in section.findall(nodes.list_item):
                if found := ENTRY.match(entry.astext()):
                    surname, year = found.groups()
                    # Other authors may stand between: et al., and Pinter, 等人.
                    pattern = (
                        rf"\b{surname}\b[^\d()（）]{{0,30}}?(?:[(（]{year}[)）]|[,，] ?{year})"
                    )
                    yield Reference(entry, f"{surname}_{year}".lower(), pattern)


def _link_citations(
    text: nodes.Text,
    pattern: re.Pattern[str],
    references: dict[str, Reference],
    anchors: dict[str, list[str]],
) -> Iterator[nodes.Node]:
    """Yield the text in pieces, with links for citations, and add their anchors to ``anchors``."""
    content = text.astext()
    position = 0
    for found in pattern.finditer(content):
        name = str(found.lastgroup)
        yield nodes.Text(content[position : found.start()])
        title = " ".join(references[name].entry.astext().split())
        link = nodes.reference("", found[0], refid=name, reftitle=title, classes=["cites"])
        if not _may_be_hidden(text):  # a reference cannot lead back to a hidden passage
            anchors[name].append(f"{name}_cited_{len(anchors[name]) + 1}")
            link["ids"].append(anchors[name][-1])
        yield link
        position = found.end()
    yield nodes.Text(content[position:])


def _may_be_hidden(text: nodes.Text) -> bool:
    """Return whether a text is in a passage for some frameworks only."""
    return any("only" in each["classes"] for each in _ancestors(text))


def _ancestors(text: nodes.Text) -> Iterator[nodes.Element]:
    """Yield the elements around a text, innermost first."""
    element = text.parent
    while element is not None:
        yield element
        element = element.parent


def setup(app: Sphinx) -> None:
    app.add_post_transform(LinkCitations)
