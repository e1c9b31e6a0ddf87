"""Render the Javadoc of the Java package in the style of Sphinx's reference of Python.

The directive ``java-package`` inserts the whole reference into a page.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from tools.site.javadoc import Declaration, read_package
from tools.site.names import PACKAGE
from tools.weave.launch import get_line_address

FOLDER = PACKAGE / "java" / "src" / "main" / "java" / "d2l"
PROGRAM = re.compile(r"<pre>\{@code\n(.*?)\n\}</pre>", re.DOTALL)
INLINE = re.compile(r"\{@(?P<kind>code|link) (?P<target>[^}]*)\}")
TAGS = re.compile(r"^@(\w+)\s+", re.MULTILINE)
# Sphinx's own labels, which it translates.
FIELDS = {"param": "Parameters", "return": "Returns", "throws": "Throws"}


class JavaPackage(SphinxDirective):
    """Insert the package's description and all of its public names."""

    def run(self) -> list[nodes.Node]:
        doc, types = read_package(FOLDER)
        # Anchors by the target of a link. If several methods have the same name, the first one's is used.
        self.anchors = {
            f"{each.name}#{member.name}": make_anchor(member)
            for each in types
            for member in reversed(each.members)
        }
        self.anchors |= {each.name: make_anchor(each) for each in types}
        declarations = [self._render_declaration(each, each.name) for each in types]
        return [*self._render_prose(doc, ""), *declarations]

    def _render_declaration(self, declaration: Declaration, outer: str) -> nodes.Node:
        """Render a declaration with its members; ``outer`` is the type that "#name" in a link refers to."""
        node = addnodes.desc(objtype="", classes=["java"])
        content = addnodes.desc_content("", *self._render_doc(declaration.doc, outer))
        content += [self._render_declaration(member, outer) for member in declaration.members]
        node += [_render_signature(declaration), content]
        return node

    def _render_doc(self, doc: str, outer: str) -> Iterator[nodes.Node]:
        prose, *parts = TAGS.split(doc)
        yield from self._render_prose(prose, outer)
        tags_and_texts = list(zip(parts[::2], parts[1::2], strict=True))
        fields = nodes.field_list()
        for tag, label in FIELDS.items():
            texts = [text for each, text in tags_and_texts if each == tag]
            if texts:
                items = [self._render_tag(tag, text, outer) for text in texts]
                name = nodes.field_name("", _(label))
                fields += nodes.field("", name, nodes.field_body("", *_make_list(items)))
        if fields.children:
            yield fields

    def _render_tag(self, tag: str, text: str, outer: str) -> nodes.Node:
        name, description = ("", text) if tag == "return" else text.split(maxsplit=1)
        prefix = [nodes.strong("", name), nodes.Text(" – ")] if name else []
        return nodes.paragraph("", "", *prefix, *self._render_inline(description, outer))

    def _render_prose(self, prose: str, outer: str) -> Iterator[nodes.Node]:
        for number, part in enumerate(PROGRAM.split(prose)):
            if number % 2:
                yield nodes.literal_block(part, part, language="java")
            else:
                for paragraph in filter(str.strip, part.split("<p>")):
                    yield nodes.paragraph("", "", *self._render_inline(paragraph, outer))

    def _render_inline(self, text: str, outer: str) -> Iterator[nodes.Node]:
        text = " ".join(text.split())
        position = 0
        for tag in INLINE.finditer(text):
            yield nodes.Text(text[position : tag.start()])
            position = tag.end()
            target = tag["target"]
            node = nodes.literal("", target.removeprefix("#"))
            if tag["kind"] == "link":
                anchor = self.anchors[f"{outer}{target}" if target.startswith("#") else target]
                node = nodes.reference("", "", node, internal=True, refid=anchor)
            yield node
        yield nodes.Text(text[position:])


def make_anchor(declaration: Declaration) -> str:
    """Return an anchor that no other declaration has, even with the same name."""
    if declaration.parameters is None:
        return declaration.full_name
    types = (each.type.partition("<")[0] for each in declaration.parameters)
    return f"{declaration.full_name}({','.join(types)})"


def _make_list(paragraphs: list[nodes.Node]) -> list[nodes.Node]:
    if len(paragraphs) == 1:
        return paragraphs
    return [nodes.bullet_list("", *(nodes.list_item("", each) for each in paragraphs))]


def _render_signature(declaration: Declaration) -> nodes.Node:
    """Render a declaration as in the source, but without ``public``, because all of them are public."""
    name, parameters = declaration.name, declaration.parameters
    anchor = make_anchor(declaration)
    is_top_level = "." not in declaration.outer
    node = addnodes.desc_signature(ids=[anchor], classes=["sig", "sig-object"])
    text = declaration.text.replace("public ", "")
    before, after = re.split(rf"\b{name}\b", text, maxsplit=1)
    node += addnodes.desc_annotation("", before)
    node += addnodes.desc_addname("", f"{declaration.outer}." if is_top_level else "")
    node += addnodes.desc_name("", name)
    if parameters is not None:
        parameter_list = addnodes.desc_parameterlist()
        for each in parameters:
            type_ = nodes.Text(f"{each.type} ")
            argument = addnodes.desc_sig_name("", each.name)
            parameter_list += addnodes.desc_parameter("", "", type_, argument)
        node += parameter_list
        after = after.partition(")")[2]
    node += addnodes.desc_annotation("", after)
    source = nodes.inline("", _("[source]"), classes=["viewcode-link"])
    address = get_line_address(declaration.file, declaration.line)
    node += nodes.reference("", "", source, internal=False, refuri=address)
    # For the table of contents.
    node["_toc_parts"] = tuple(anchor.removeprefix("d2l.").split("."))
    node["_toc_name"] = name if parameters is None else f"{name}()"
    return node


def setup(app: Sphinx) -> None:
    app.add_directive("java-package", JavaPackage)
