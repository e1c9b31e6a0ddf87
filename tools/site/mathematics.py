"""Formulas as MathML, made when the site is built: no script, and legible without one."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

# A word such as softmax comes letter by letter.
LETTERS = re.compile(r'(?:<mi mathvariant="normal">(\w)</mi>){2,}')
# Bold Greek capitals: browsers do not know this attribute, and the page's font not the letters.
CAPITALS = re.compile(r'<mi mathvariant="bold-italic">(&#x0*(?:39[1-9A-F]|3A[0-9]);)</mi>')
# A function's name, perhaps with an exponent or a base, stands apart from what is before it, and
# from an argument without brackets.
NAME = "<mi>(?:sin|cos|tan|log|exp)</mi>"
FUNCTION = rf"((?<!<msub>)(?<!<msup>){NAME}|<msu[bp]>{NAME}<m[in]>[^<]*</m[in]></msu[bp]>)"
BEFORE = re.compile(rf"(?<=</mi>|</mn>){FUNCTION}")
AFTER = re.compile(rf"{FUNCTION}(?=<m[in]>)")
# No operator, which would stand apart from its sign and from the comma after it.
INFINITY = re.compile("<mo>(&#x0*221E;)</mo>")
# Known in a page, and what a formula is without it.
NEEDLESS = re.compile(' xmlns="http://www.w3.org/1998/Math/MathML"| display="inline"')
THIN = '<mspace width="0.17em"/>'
# No line begins with these, or ends with those. A browser would, where a formula is the neighbour.
CLOSING = re.compile(r"[.,;:!?)”’。，、；：！？）」』]+")
OPENING = re.compile(r"[(“‘（「『]+$")


def mathml(formula: str, display: str = "inline") -> str:
    """A formula in TeX, without its dollars, as MathML; ``display`` is "inline" or "block"."""
    # The one name that the converter knows for lines aligned at their &.
    markup = convert(formula.replace("{aligned}", "{align*}"), display=display)
    markup = LETTERS.sub(lambda letters: f"<mi>{re.sub('<[^>]*>', '', letters[0])}</mi>", markup)
    markup = CAPITALS.sub(r'<mi mathvariant="normal" class="bold">\1</mi>', markup)
    markup = NEEDLESS.sub("", INFINITY.sub(r"<mi>\1</mi>", markup))
    return AFTER.sub(rf"\1{THIN}", BEFORE.sub(rf"{THIN}\1", markup))


class Join(SphinxPostTransform):
    """Holds each formula and the punctuation next to it together on one line."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent, at = formula.parent, formula.parent.index(formula)
            before, after = parent[:at][-1:], parent[at + 1 :][:1]
            opened = [found[0] for each in before if (found := OPENING.search(text_of(each)))]
            closed = [found[0] for each in after if (found := CLOSING.match(text_of(each)))]
            if not opened and not closed:
                continue
            if opened:
                parent[at - 1] = nodes.Text(text_of(before[0]).removesuffix(opened[0]))
            if closed:
                parent[at + 1] = nodes.Text(text_of(after[0]).removeprefix(closed[0]))
            held = nodes.inline(classes=["joined"])
            parent.replace(formula, held)
            held += [*map(nodes.Text, opened), formula, *map(nodes.Text, closed)]


def text_of(node: nodes.Node) -> str:
    """Of a text; other nodes keep theirs."""
    return node.astext() if isinstance(node, nodes.Text) else ""


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_post_transform(Join)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
