"""``python -m tools.site``: builds the web site from the lessons, the notebooks and docs/."""

import multiprocessing
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

import nbformat

from d2l_compat.frameworks import FRAMEWORKS
from tools.project.dist import WHEEL, wheel
from tools.site import live, names, preview
from tools.site.build import SITE, SOURCES, build
from tools.site.pages import page
from tools.site.slides import index, write_slides
from tools.site.words import WORDS
from tools.weave.launch import FILES, REPOSITORY, SITE_ADDRESS, path
from tools.weave.lessons import ROOT, Edition, LessonError, display, editions

HERE = Path(__file__).parent
DRAWING = re.compile(r"\]\(\.\./\.\./lessons/(?=[^)]*\.svg\))")  # where a document shows one

NO_PAGES = "search", "genindex", "py-modindex"


def main() -> int:
    """The exit code: 0, or 1 where something is missing or Sphinx warns."""
    shutil.rmtree(SITE, ignore_errors=True)
    all_editions = list(editions())
    try:
        live.collect()
        for language in WORDS:
            _write_sources(language, list(editions([language])))
        write_slides(all_editions, SITE)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    shutil.copy(HERE / "index.html", SITE)
    if code := wheel(SITE):
        return code
    shutil.copy(preview.FILE, SITE)
    for edition in all_editions:  # to take along, where no service is reached
        (SITE / path(edition)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(edition.notebook, SITE / path(edition))
    # A process each: Sphinx keeps its settings in global variables. Not forked, as some libraries' threads
    # would not survive it.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as languages:
        status = max(languages.map(build, WORDS))
    shutil.rmtree(SITE / "jupyter_execute", ignore_errors=True)  # the pages have their own copies
    (SITE / "sitemap.txt").write_text(_sitemap(), encoding="utf-8")
    if status == 0:
        print(f"The web site is built: open {display(SITE / 'index.html')}")
    return status


def _write_sources(language: str, chosen: list[Edition]) -> None:
    folder = SOURCES / language
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / language, folder)
    lessons = []
    for lesson, of_lesson in groupby(chosen, key=lambda edition: edition.folder):
        nbformat.write(page(list(of_lesson)), folder / f"{lesson.name}.ipynb")
        (folder / lesson.name).mkdir()
        for drawing in lesson.glob("*.svg"):
            shutil.copy(drawing, folder / lesson.name)
        lessons.append(lesson.name)
    filled = {
        "@LESSONS@": "\n".join(lessons),
        "@SLIDES@": index(chosen),
        "@NAMES@": names.table(),
        "@FRAMEWORKS@": _frameworks(lessons[0]),
        "@REPOSITORY@": REPOSITORY,
        "@WHEEL@": WHEEL,
    }
    # The site has the lessons itself; the rest is in the repository.
    filled[f"](../../notebooks/{language}/pytorch/"] = "]("
    filled["](../../"] = f"]({FILES}/"
    for document in folder.glob("*.md"):
        text = DRAWING.sub("](", document.read_text(encoding="utf-8"))
        for place, content in filled.items():
            text = text.replace(place, content)
        document.write_text(text, encoding="utf-8")


def _sitemap() -> str:
    """For search engines: the address of each page, one on a line."""
    pages = [file for file in SITE.glob("*/**/*.html") if file.stem not in NO_PAGES]
    return "".join(f"{SITE_ADDRESS}{file.relative_to(SITE).as_posix()}\n" for file in sorted(pages))


def _frameworks(lesson: str) -> str:
    """Each leads to a lesson, and is chosen there."""
    links = [
        f'<a href="{lesson}.html?framework={name}">{about.title}</a>'
        for name, about in FRAMEWORKS.items()
    ]
    return f'<p class="launch">{" ".join(links)}</p>'


if __name__ == "__main__":
    sys.exit(main())
