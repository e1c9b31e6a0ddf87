"""Load the scripts and styles of live figures on the pages and decks that have one.

All figures share the files in ``lessons/_live``; the figures of one lesson also share the files in its ``live/shared``.
Shared files are loaded first, in this order and alphabetically within a folder; then the figures themselves.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tools.weave.lessons import ROOT, list_lessons

SHARED_FOLDER = ROOT / "lessons" / "_live"
STATIC = ROOT / "build" / "site-sources" / "static"  # copied into the site by Sphinx


def collect() -> None:
    """Copy the files of all figures into STATIC, those of each lesson into a folder of its name."""
    shutil.rmtree(STATIC, ignore_errors=True)
    shutil.copytree(SHARED_FOLDER, STATIC / "live")
    for lesson in list_lessons():
        if (lesson / "live").exists():
            ignore_claims = shutil.ignore_patterns("*.py", "__pycache__")
            shutil.copytree(lesson / "live", STATIC / "live" / lesson.name, ignore=ignore_claims)


def list_files(figures: list[str], lesson: str) -> list[str]:
    """List the files that these figures of a lesson need, relative to STATIC, in loading order."""
    scripts = [_find_script(name, lesson) for name in dict.fromkeys(figures)]
    lesson_folders = dict.fromkeys(script.parent / "shared" for script in scripts)
    folders = [STATIC / "live", *lesson_folders] if scripts else []
    shared = [file for folder in folders for file in _list_folder(folder)]
    return [file.relative_to(STATIC).as_posix() for file in [*shared, *scripts]]


def _add_files(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Handle Sphinx's event html-page-context."""
    figures = re.findall(r'data-live="([-\w]+)"', context.get("body", ""))
    for name in list_files(figures, pagename):
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def _find_script(name: str, lesson: str) -> Path:
    """Return the script of a figure: the lesson's own or, if it has none, that of the first lesson that does."""
    names = [lesson, *(each.name for each in list_lessons())]
    scripts = [STATIC / "live" / each / f"{name}.js" for each in names]
    return next(script for script in scripts if script.exists())


def _list_folder(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.is_file())


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _add_files)
