"""``python -m tools.site``: build the web site from the lessons, the notebooks and docs/."""

import multiprocessing
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

import nbformat

from d2l_compat.frameworks import FRAMEWORKS
from tools.project.dist import WHEEL, build_wheel
from tools.site import live, names, preview
from tools.site.build import SITE, SOURCES, build
from tools.site.pages import make_page
from tools.site.slides import list_decks, write_slides
from tools.site.words import SITE_TEXT
from tools.weave.launch import FILES_ADDRESS, REPOSITORY, SITE_ADDRESS, get_project_path
from tools.weave.lessons import ROOT, LessonError, Notebook, list_notebooks, shorten_path

HERE = Path(__file__).parent
DRAWING = re.compile(r"\]\(\.\./\.\./lessons/(?=[^)]*\.svg\))")  # a drawing's path in a document
UNLISTED_PAGES = "search", "genindex", "py-modindex"  # that the site map leaves out


def main() -> int:
    """Build the site; return the exit code, which is 1 if a file is missing or Sphinx warns."""
    shutil.rmtree(SITE, ignore_errors=True)
    notebooks = list(list_notebooks())
    try:
        live.collect()
        for language in SITE_TEXT:
            _write_sources(language, list(list_notebooks([language])))
        write_slides(notebooks, SITE)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    shutil.copy(HERE / "index.html", SITE)
    if code := build_wheel(SITE):
        return code
    shutil.copy(preview.FILE, SITE)
    for notebook in notebooks:  # for readers who cannot reach a notebook service
        (SITE / get_project_path(notebook)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook.path, SITE / get_project_path(notebook))
    # Sphinx keeps its settings in global variables, so each language has its own process. These are spawned
    # because the threads of some libraries do not survive a fork.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        exit_code = max(pool.map(build, SITE_TEXT))
    shutil.rmtree(SITE / "jupyter_execute", ignore_errors=True)  # the pages have their own copies
    (SITE / "sitemap.txt").write_text(_render_sitemap(), encoding="utf-8")
    if exit_code == 0:
        print(f"The web site is built: open {shorten_path(SITE / 'index.html')}")
    return exit_code


def _write_sources(language: str, notebooks: list[Notebook]) -> None:
    """Write Sphinx's sources in one language: the documents, and a page for each lesson."""
    folder = SOURCES / language
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / language, folder)
    lessons = []
    for lesson, group in groupby(notebooks, key=lambda notebook: notebook.lesson):
        nbformat.write(make_page(list(group)), folder / f"{lesson.name}.ipynb")
        (folder / lesson.name).mkdir()
        for drawing in lesson.glob("*.svg"):
            shutil.copy(drawing, folder / lesson.name)
        lessons.append(lesson.name)
    replacements = {
        "@LESSONS@": "\n".join(lessons),
        "@SLIDES@": list_decks(notebooks),
        "@NAMES@": names.render_table(),
        "@FRAMEWORKS@": _render_framework_links(lessons[0]),
        "@REPOSITORY@": REPOSITORY,
        "@WHEEL@": WHEEL,
    }
    # Links to lessons stay within the site; other relative links lead to the repository.
    replacements[f"](../../notebooks/{language}/pytorch/"] = "]("
    replacements["](../../"] = f"]({FILES_ADDRESS}/"
    for document in folder.glob("*.md"):
        text = DRAWING.sub("](", document.read_text(encoding="utf-8"))
        for placeholder, content in replacements.items():
            text = text.replace(placeholder, content)
        document.write_text(text, encoding="utf-8")


def _render_sitemap() -> str:
    """Return the address of each page, one per line, for search engines."""
    pages = [file for file in SITE.glob("*/**/*.html") if file.stem not in UNLISTED_PAGES]
    return "".join(f"{SITE_ADDRESS}{file.relative_to(SITE).as_posix()}\n" for file in sorted(pages))


def _render_framework_links(lesson: str) -> str:
    """Return for each framework a link that opens a lesson in this framework."""
    links = [
        f'<a href="{lesson}.html?framework={name}">{framework.title}</a>'
        for name, framework in FRAMEWORKS.items()
    ]
    return f'<p class="launch">{" ".join(links)}</p>'


if __name__ == "__main__":
    sys.exit(main())
