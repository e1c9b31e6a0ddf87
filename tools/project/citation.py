"""Make CITATION.cff, and a BibTeX entry for README and the web site, from pyproject.toml."""

import re
from textwrap import dedent

from tools.weave.launch import PROJECT, REPOSITORY
from tools.weave.lessons import ROOT

CITATION = ROOT / "CITATION.cff"

AUTHORS: str = PROJECT["authors"][0]["name"]
TITLE = "d2l_compat: learn attention in every framework"
(YEAR,) = re.findall(r"Copyright \(c\) (\d{4}) ", (ROOT / "LICENSE").read_text(encoding="utf-8"))


def _escape_tex(text: str) -> str:
    """Escape underscores, which TeX takes for mathematics."""
    return text.replace("_", r"\_")


# The second pair of braces keeps BibTeX from splitting the name and from changing capitals.
BIBTEX = f"""\
@software{{d2l-compat,
  author  = {{{{{_escape_tex(AUTHORS)}}}}},
  title   = {{{{{_escape_tex(TITLE)}}}}},
  year    = {{{YEAR}}},
  version = {{{PROJECT["version"]}}},
  url     = {{{REPOSITORY}}},
}}
"""


def make_cff() -> str:
    """Return the content of CITATION.cff, which GitHub and reference managers read."""
    return dedent(f"""\
        # Made by `make` (tools/project/citation.py).
        cff-version: 1.2.0
        message: To cite the lessons or the package, please use these metadata.
        type: software
        title: "{TITLE}"
        authors:
          - name: {AUTHORS}
        version: {PROJECT["version"]}
        repository-code: {REPOSITORY}
        license: MIT  # of the code; text and drawings are under CC BY 4.0
        references:
          - type: book
            title: Dive into Deep Learning
            authors:
              - {{given-names: Aston, family-names: Zhang}}
              - {{given-names: Zachary C., family-names: Lipton}}
              - {{given-names: Mu, family-names: Li}}
              - {{given-names: Alexander J., family-names: Smola}}
            publisher: {{name: Cambridge University Press}}
            year: 2023
            url: https://d2l.ai
        """)
