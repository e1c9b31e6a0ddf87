"""Formulas as MathML, made when the site is built: no script, and legible without one."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

# A word such as softmax comes letter by letter.
LETTERS = re.compile(r'(?:<mi mathvariant="normal">(\w)</mi>){2,}')


def mathml(formula: str, display: str = "inline") -> str:
    """A formula in TeX, without its dollars, as MathML; ``display`` is "inline" or "block"."""
    markup = convert(formula, display=display)
    return LETTERS.sub(lambda letters: f"<mi>{re.sub('<[^>]*>', '', letters[0])}</mi>", markup)


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
