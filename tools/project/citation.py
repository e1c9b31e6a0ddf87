"""How to cite: CITATION.cff, and an entry for BibTeX in README and on the site, made from pyproject.toml."""

import re
from textwrap import dedent

from tools.weave.launch import PROJECT, REPOSITORY
from tools.weave.lessons import ROOT

CITATION = ROOT / "CITATION.cff"
# Where the entry stands, between its markers.
TEXTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/*/chapter.md"))]

AUTHORS: str = PROJECT["authors"][0]["name"]
TITLE = "d2l_compat: attention, alive in every framework"
(YEAR,) = re.findall(r"Copyright \(c\) (\d{4}) ", (ROOT / "LICENSE").read_text(encoding="utf-8"))


def _for_tex(text: str) -> str:
    """In which a bare _ is mathematics."""
    return text.replace("_", r"\_")


# A name in braces of its own stays whole, and a title keeps its capitals.
BIBTEX = f"""\
@software{{d2l-compat,
  author  = {{{{{_for_tex(AUTHORS)}}}}},
  title   = {{{{{_for_tex(TITLE)}}}}},
  year    = {{{YEAR}}},
  version = {{{PROJECT["version"]}}},
  url     = {{{REPOSITORY}}},
}}
"""


def cff() -> str:
    """The content of CITATION.cff, from which GitHub and others make entries of their own."""
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
