"""Live figures: a lesson's own scripts, loaded by the pages that ask for them."""

import re
from typing import Any

from sphinx.application import Sphinx

from tools.lessons import ROOT

FOLDERS = sorted(ROOT.glob("lessons/*/live"))
STATIC = [str(path) for folder in FOLDERS for path in (folder, folder / "shared")]
SHARED = ("encoding", "words", "kit")  # in the order in which they need each other


def _load(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    figures = re.findall(r'data-live="([-\w]+)"', context.get("body", ""))
    if figures:
        app.add_css_file("live.css")
        for script in (*SHARED, *dict.fromkeys(figures)):
            app.add_js_file(f"{script}.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _load)
