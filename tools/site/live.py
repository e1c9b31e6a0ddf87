"""Live figures: scripts and styles, loaded by the pages and the decks that ask for a figure.

``lessons/_live`` is what all lessons' figures share, ``live/shared`` what those of one lesson do. They are
loaded in this order and, within a folder, in that of the alphabet; then come the figures themselves.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tools.weave.lessons import ROOT, lessons

SHARED = ROOT / "lessons" / "_live"
STATIC = ROOT / "build" / "site-sources" / "static"  # what the site serves, figures and all


def collect() -> None:
    """Put all that figures need into one folder, each lesson's under its name."""
    shutil.rmtree(STATIC, ignore_errors=True)
    shutil.copytree(SHARED, STATIC / "live")
    for lesson in lessons():
        if (lesson / "live").exists():
            not_claims = shutil.ignore_patterns("*.py", "__pycache__")
            shutil.copytree(lesson / "live", STATIC / "live" / lesson.name, ignore=not_claims)


def needed(figures: list[str], lesson: str) -> list[str]:
    """What these figures need, within a page's folder of static files, in its order."""
    found = [_figure(name, lesson) for name in dict.fromkeys(figures)]
    of_lessons = dict.fromkeys(file.parent / "shared" for file in found)
    folders = [STATIC / "live", *of_lessons] if found else []
    shared = [file for folder in folders for file in _files(folder)]
    return [file.relative_to(STATIC).as_posix() for file in [*shared, *found]]


def _load(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    figures = re.findall(r'data-live="([-\w]+)"', context.get("body", ""))
    for name in needed(figures, pagename):
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def _figure(name: str, lesson: str) -> Path:
    """A lesson's own, or that of a lesson which has one of this name."""
    folders = [STATIC / "live" / each for each in (lesson, *(each.name for each in lessons()))]
    return next(file for folder in folders if (file := folder / f"{name}.js").exists())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.is_file())


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _load)
