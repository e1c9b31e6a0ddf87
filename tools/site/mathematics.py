"""Convert formulas to MathML when the site is built, so that pages need no script for them."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

# The converter splits a word such as softmax into letters.
LETTERS = re.compile(r'(?:<mi mathvariant="normal">(\w)</mi>){2,}')
# Browsers do not know this attribute, and the page's font has no bold italic Greek capitals.
CAPITALS = re.compile(r'<mi mathvariant="bold-italic">(&#x0*(?:39[1-9A-F]|3A[0-9]);)</mi>')
# A function's name, perhaps with an exponent or a base, needs space before it, and before an argument
# without parentheses.
NAME = "<mi>(?:sin|cos|tan|log|exp)</mi>"
FUNCTION = rf"((?<!<msub>)(?<!<msup>){NAME}|<msu[bp]>{NAME}<m[in]>[^<]*</m[in]></msu[bp]>)"
BEFORE = re.compile(rf"(?<=</mi>|</mn>){FUNCTION}")
AFTER = re.compile(rf"{FUNCTION}(?=<m[in]>)")
# As an operator, it would have space between itself and its sign, and before a comma.
INFINITY = re.compile("<mo>(&#x0*221E;)</mo>")
# Attributes with a value that is the default in HTML.
NEEDLESS = re.compile(' xmlns="http://www.w3.org/1998/Math/MathML"| display="inline"')
THIN = '<mspace width="0.17em"/>'
# No line may begin with these or end with those. Browsers break a line there if a formula is the neighbour.
CLOSING = re.compile(r"[.,;:!?)”’。，、；：！？）」』]+")
OPENING = re.compile(r"[(“‘（「『]+$")


def to_mathml(formula: str, display: str = "inline") -> str:
    """Convert a formula in TeX, without its dollars, to MathML; ``display`` is "inline" or "block"."""
    # The converter knows only this name for lines that are aligned at their &.
    markup = convert(formula.replace("{aligned}", "{align*}"), display=display)
    markup = LETTERS.sub(lambda letters: f"<mi>{re.sub('<[^>]*>', '', letters[0])}</mi>", markup)
    markup = CAPITALS.sub(r'<mi mathvariant="normal" class="bold">\1</mi>', markup)
    markup = NEEDLESS.sub("", INFINITY.sub(r"<mi>\1</mi>", markup))
    return AFTER.sub(rf"\1{THIN}", BEFORE.sub(rf"{THIN}\1", markup))


class JoinPunctuation(SphinxPostTransform):
    """Keep each formula and the punctuation next to it on one line."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            position = parent.index(formula)
            before, after = parent[:position][-1:], parent[position + 1 :][:1]
            opened = [found[0] for each in before if (found := OPENING.search(_get_text(each)))]
            closed = [found[0] for each in after if (found := CLOSING.match(_get_text(each)))]
            if not opened and not closed:
                continue
            if opened:
                parent[position - 1] = nodes.Text(_get_text(before[0]).removesuffix(opened[0]))
            if closed:
                parent[position + 1] = nodes.Text(_get_text(after[0]).removeprefix(closed[0]))
            joined = nodes.inline(classes=["joined"])
            parent.replace(formula, joined)
            joined += [*map(nodes.Text, opened), formula, *map(nodes.Text, closed)]


def _get_text(node: nodes.Node) -> str:
    """Return the content of a text node, and "" for any other node."""
    return node.astext() if isinstance(node, nodes.Text) else ""


def _render_inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(to_mathml(node.astext()))
    raise nodes.SkipNode


def _render_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{to_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_post_transform(JoinPunctuation)
    app.add_html_math_renderer("mathml", (_render_inline, None), (_render_block, None))
