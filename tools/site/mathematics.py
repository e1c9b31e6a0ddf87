"""Convert formulas to MathML when the site is built, so that pages need no script for them."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

# The converter splits a word such as softmax into letters.
LETTERS = re.compile(r'(?:<mi mathvariant="normal">(\w)</mi>){2,}')
# Browsers ignore this attribute, and the page's font has no bold italic Greek capitals.
GREEK_CAPITALS = re.compile(r'<mi mathvariant="bold-italic">(&#x0*(?:39[1-9A-F]|3A[0-9]);)</mi>')
# A function's name, with an exponent, a base or neither, needs space before it, and after it if its argument has no
# parentheses.
NAME = "<mi>(?:sin|cos|tan|log|exp)</mi>"
FUNCTION = rf"((?<!<msub>)(?<!<msup>){NAME}|<msu[bp]>{NAME}<m[in]>[^<]*</m[in]></msu[bp]>)"
SPACE_BEFORE = re.compile(rf"(?<=</mi>|</mn>){FUNCTION}")
SPACE_AFTER = re.compile(rf"{FUNCTION}(?=<m[in]>)")
# As an operator, infinity would have space after its sign, and before a comma.
INFINITY = re.compile("<mo>(&#x0*221E;)</mo>")
# Attributes whose value is the default in HTML.
DEFAULT_ATTRIBUTES = re.compile(' xmlns="http://www.w3.org/1998/Math/MathML"| display="inline"')
THIN_SPACE = '<mspace width="0.17em"/>'
# No line may begin with a closing mark or end with an opening one. Browsers break lines between a mark and a formula.
CLOSING = re.compile(r"[.,;:!?)”’。，、；：！？）」』]+")
OPENING = re.compile(r"[(“‘（「『]+$")


def to_mathml(formula: str, display: str = "inline") -> str:
    """Convert a formula in TeX, without its dollar signs, to MathML; ``display`` is "inline" or "block"."""
    # The converter supports only align* for lines that are aligned at their &.
    markup = convert(formula.replace("{aligned}", "{align*}"), display=display)
    markup = LETTERS.sub(lambda letters: f"<mi>{re.sub('<[^>]*>', '', letters[0])}</mi>", markup)
    markup = GREEK_CAPITALS.sub(r'<mi mathvariant="normal" class="bold">\1</mi>', markup)
    markup = INFINITY.sub(r"<mi>\1</mi>", markup)
    markup = DEFAULT_ATTRIBUTES.sub("", markup)
    markup = SPACE_BEFORE.sub(rf"{THIN_SPACE}\1", markup)
    return SPACE_AFTER.sub(rf"\1{THIN_SPACE}", markup)


class JoinPunctuation(SphinxPostTransform):
    """Keep each formula and the punctuation next to it on one line."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            position = parent.index(formula)
            before, after = _get_text(parent, position - 1), _get_text(parent, position + 1)
            opening, closing = OPENING.search(before), CLOSING.match(after)
            if not opening and not closing:
                continue
            group = nodes.inline(classes=["joined"])
            parent.replace(formula, group)
            if opening:
                parent[position - 1] = nodes.Text(before.removesuffix(opening[0]))
                group += nodes.Text(opening[0])
            group += formula
            if closing:
                parent[position + 1] = nodes.Text(after.removeprefix(closing[0]))
                group += nodes.Text(closing[0])


def _get_text(parent: nodes.Element, position: int) -> str:
    """Return the text at a position among a node's children, or "" if there is no text node."""
    if not 0 <= position < len(parent):
        return ""
    node = parent[position]
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
