"""Formulas as MathML, made when the site is built: no script, and legible without one."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

# A word such as softmax comes letter by letter.
LETTERS = re.compile(r'(?:<mi mathvariant="normal">(\w)</mi>){2,}')
# A function's name, perhaps with an exponent or a base, stands apart from what is before it, and
# from an argument without brackets.
NAME = "<mi>(?:sin|cos|tan|log|exp)</mi>"
FUNCTION = rf"((?<!<msub>)(?<!<msup>){NAME}|<msu[bp]>{NAME}<m[in]>[^<]*</m[in]></msu[bp]>)"
BEFORE = re.compile(rf"(?<=</mi>|</mn>){FUNCTION}")
AFTER = re.compile(rf"{FUNCTION}(?=<m[in]>)")
THIN = '<mspace width="0.17em"/>'


def mathml(formula: str, display: str = "inline") -> str:
    """A formula in TeX, without its dollars, as MathML; ``display`` is "inline" or "block"."""
    # The one name that the converter knows for lines aligned at their &.
    markup = convert(formula.replace("{aligned}", "{align*}"), display=display)
    markup = LETTERS.sub(lambda letters: f"<mi>{re.sub('<[^>]*>', '', letters[0])}</mi>", markup)
    return AFTER.sub(rf"\1{THIN}", BEFORE.sub(rf"{THIN}\1", markup))


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
