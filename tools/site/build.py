"""Run Sphinx on the sources of one language."""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools.site.lean import shrink_css
from tools.weave.lessons import ROOT

HERE = Path(__file__).parent
SOURCES = ROOT / "build" / "site-sources"
SITE = ROOT / "build" / "site"


def build(language: str) -> int:
    """Build the pages of one language; return Sphinx's exit code. Warnings count as errors."""
    with patch_docutils(HERE), docutils_namespace():
        app = Sphinx(
            srcdir=SOURCES / language,
            confdir=HERE,
            outdir=SITE / language,
            doctreedir=ROOT / "build" / "doctrees" / language,
            buildername="html",
            confoverrides={"language": language.replace("-", "_")},
            warningiserror=True,
            freshenv=True,  # cached pages do not repeat their warnings
            status=None,  # print warnings only
        )
        app.build()
        shrink_css(SITE / language / "_static" / "pygments.css")
        return int(app.statuscode)
