"""Link the citations on a page to its list of references, and the references back to their citations.

A citation is written as (Su et al., 2021), and its tooltip is the reference. A lesson's last section is the list of
references, one per line. Each begins with the first author's surname and has the year in parentheses.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.site.words import SITE_TEXT

ENTRY = re.compile(r"(?P<surname>[^\W\d]+)[^(]*\((?P<year>\d{4})\)")
# Text in these nodes is not a citation, or is part of another link.
IGNORED_NODES = (
    nodes.title,
    nodes.literal,
    nodes.literal_block,
    nodes.reference,
    nodes.math,
    nodes.raw,
)


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
            ancestors = [*_list_ancestors(text)]
            if any(isinstance(each, IGNORED_NODES) or each in entries for each in ancestors):
                continue
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
                if match := ENTRY.match(entry.astext()):
                    surname, year = match.groups()
                    # Between surname and year there may be "et al.", "and Pinter" or "等人".
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
    """Yield the text in pieces, with links for citations, and add the citations' anchors to ``anchors``."""
    content = text.astext()
    position = 0
    for citation in pattern.finditer(content):
        name = str(citation.lastgroup)
        yield nodes.Text(content[position : citation.start()])
        title = " ".join(references[name].entry.astext().split())
        link = nodes.reference("", citation[0], refid=name, reftitle=title, classes=["cites"])
        if not _may_be_hidden(text):  # a reference cannot link back to a hidden passage
            anchors[name].append(f"{name}_cited_{len(anchors[name]) + 1}")
            link["ids"].append(anchors[name][-1])
        yield link
        position = citation.end()
    yield nodes.Text(content[position:])


def _may_be_hidden(text: nodes.Text) -> bool:
    """Check whether a text is in a passage for some frameworks only."""
    return any("only" in each["classes"] for each in _list_ancestors(text))


def _list_ancestors(text: nodes.Text) -> Iterator[nodes.Element]:
    """Yield the elements around a text, innermost first."""
    element = text.parent
    while element is not None:
        yield element
        element = element.parent


def setup(app: Sphinx) -> None:
    app.add_post_transform(LinkCitations)
