"""The reference of the Java package: what its Javadoc says, shown as Sphinx shows the names of Python.

A page has all of it where it has the directive ``java-package``.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from tools.site.javadoc import Declaration, package
from tools.site.names import PACKAGE
from tools.weave.launch import in_repository

FOLDER = PACKAGE / "java" / "src" / "main" / "java" / "d2l"
PROGRAM = re.compile(r"<pre>\{@code\n(.*?)\n\}</pre>", re.DOTALL)
INLINE = re.compile(r"\{@(?P<kind>code|link) (?P<of>[^}]*)\}")
TAGS = re.compile(r"^@(\w+)\s+", re.MULTILINE)
# What Sphinx itself says of Python and JavaScript, and has in other languages.
FIELDS = {"param": "Parameters", "return": "Returns", "throws": "Throws"}


class JavaPackage(SphinxDirective):
    """What is said of the package, and all of its public names."""

    def run(self) -> list[nodes.Node]:
        about, types = package(FOLDER)
        # Where links lead; of methods with one name, to the first.
        self.anchors = {
            f"{each.name}#{member.name}": anchor(member)
            for each in types
            for member in reversed(each.members)
        } | {each.name: anchor(each) for each in types}
        return [*self._prose(about, ""), *(self._shown(each, each.name) for each in types)]

    def _shown(self, name: Declaration, within: str) -> nodes.Node:
        shown = addnodes.desc(objtype="", classes=["java"])
        content = addnodes.desc_content("", *self._doc(name.doc, within))
        content += [self._shown(member, within) for member in name.members]
        shown += [_signature(name), content]
        return shown

    def _doc(self, doc: str, within: str) -> Iterator[nodes.Node]:
        prose, *tagged = TAGS.split(doc)
        yield from self._prose(prose, within)
        said = list(zip(tagged[::2], tagged[1::2], strict=True))
        fields = nodes.field_list()
        for tag, label in FIELDS.items():
            if words := [self._tagged(tag, words, within) for kind, words in said if kind == tag]:
                name = nodes.field_name("", _(label))
                fields += nodes.field("", name, nodes.field_body("", *_listed(words)))
        if fields.children:
            yield fields

    def _tagged(self, tag: str, words: str, within: str) -> nodes.Node:
        name, about = ("", words) if tag == "return" else words.split(maxsplit=1)
        begin = [nodes.strong("", name), nodes.Text(" – ")] if name else []
        return nodes.paragraph("", "", *begin, *self._inline(about, within))

    def _prose(self, said: str, within: str) -> Iterator[nodes.Node]:
        for number, part in enumerate(PROGRAM.split(said)):
            if number % 2:
                yield nodes.literal_block(part, part, language="java")
            else:
                for words in filter(str.strip, part.split("<p>")):
                    yield nodes.paragraph("", "", *self._inline(words, within))

    def _inline(self, said: str, within: str) -> Iterator[nodes.Node]:
        said, at = " ".join(said.split()), 0
        for found in INLINE.finditer(said):
            yield nodes.Text(said[at : found.start()])
            at, of = found.end(), found["of"]
            shown = nodes.literal("", of.removeprefix("#"))
            if found["kind"] == "link":
                there = self.anchors[f"{within}{of}" if of.startswith("#") else of]
                shown = nodes.reference("", "", shown, internal=True, refid=there)
            yield shown
        yield nodes.Text(said[at:])


def anchor(name: Declaration) -> str:
    """Each signature has one of its own."""
    if name.parameters is None:
        return name.full_name
    types = (each.type.partition("<")[0] for each in name.parameters)
    return f"{name.full_name}({','.join(types)})"


def _listed(paragraphs: list[nodes.Node]) -> list[nodes.Node]:
    if len(paragraphs) == 1:
        return paragraphs
    return [nodes.bullet_list("", *(nodes.list_item("", each) for each in paragraphs))]


def _signature(name: Declaration) -> nodes.Node:
    """As in the source, but for ``public``, which each of them is."""
    is_of_package = "." not in name.outer
    shown = addnodes.desc_signature(ids=[anchor(name)], classes=["sig", "sig-object"])
    before, after = re.split(rf"\b{name.name}\b", name.text.replace("public ", ""), maxsplit=1)
    shown += addnodes.desc_annotation("", before)
    shown += addnodes.desc_addname("", f"{name.outer}." if is_of_package else "")
    shown += addnodes.desc_name("", name.name)
    if name.parameters is not None:
        given = addnodes.desc_parameterlist()
        for each in name.parameters:
            type_, argument = nodes.Text(f"{each.type} "), addnodes.desc_sig_name("", each.name)
            given += addnodes.desc_parameter("", "", type_, argument)
        shown += given
        after = after.partition(")")[2]
    shown += addnodes.desc_annotation("", after)
    source = nodes.inline("", _("[source]"), classes=["viewcode-link"])
    address = in_repository(name.file, name.line)
    shown += nodes.reference("", "", source, internal=False, refuri=address)
    # In the table of contents.
    shown["_toc_parts"] = tuple(anchor(name).removeprefix("d2l.").split("."))
    shown["_toc_name"] = name.name if name.parameters is None else f"{name.name}()"
    return shown


def setup(app: Sphinx) -> None:
    app.add_directive("java-package", JavaPackage)
