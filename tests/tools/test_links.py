"""Test the links within the project, in README, CONTRIBUTING, docs/, the lessons and the notebooks."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag

import nbformat
import pytest

from tests.lessons.prose import find_anchors, find_inline_code, find_links
from tools.weave.launch import BRANCH, REPOSITORY
from tools.weave.lessons import LANGUAGES, ROOT, list_lessons, shorten_path

TEXTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*/*.md")),
    ROOT / "notebooks" / "README.md",
    *sorted(ROOT.glob("lessons/*/text.*.md")),
    *sorted(ROOT.glob("notebooks/*/*/*.ipynb")),
]
FILES_ADDRESS = f"{REPOSITORY}/blob/{BRANCH}/"
# The web site has a page for each module.
MODULE_PAGE = re.compile(r"reference/(d2l_compat(?:/\w+)*?)/index")


def read_prose(file: Path) -> list[str]:
    """Return a text, or the prose cells of a notebook."""
    if file.suffix != ".ipynb":
        return [file.read_text(encoding="utf-8")]
    cells = nbformat.read(file, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def leads_to_target(file: Path, link: str) -> bool:
    """Check whether a link leads to a file of the project and, if it has an anchor, to a heading in the file.

    Addresses outside the project are accepted.
    """
    if link == "../@WHEEL@":  # the site's tests test this link
        return True
    address, anchor = urldefrag(link)
    if address.startswith(FILES_ADDRESS):
        target = ROOT / unquote(address.removeprefix(FILES_ADDRESS))
    elif re.match(r"[a-z]+:", address):
        return True
    elif page := MODULE_PAGE.fullmatch(address):
        target = ROOT / page[1]
        target = target if target.exists() else target.with_suffix(".py")
    else:
        target = file.parent / unquote(address) if address else file
        if target.suffix == ".html" and file.is_relative_to(ROOT / "docs"):
            target = target.with_suffix(".md")  # the source of this page of the web site
    if not target.exists() or not anchor:
        return target.exists()
    return unquote(anchor) in {name for part in read_prose(target) for name in find_anchors(part)}


@pytest.mark.parametrize("page", ["index", "chapter"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_lesson_is_shown_on_the_front_page_and_in_the_chapter(language: str, page: str):
    """Each has a link and a drawing, in the chapter's order."""
    text = (ROOT / "docs" / language / f"{page}.md").read_text(encoding="utf-8")
    lessons_in_links = re.findall(
        rf"\]\(\.\./\.\./notebooks/{language}/pytorch/([-\w]+)\.ipynb\)", text
    )
    lessons_in_drawings = re.findall(
        r"!\[[^\]]+\]\(\.\./\.\./lessons/([-\w]+)/[-\w.]+\.svg\)", text
    )
    assert lessons_in_links == lessons_in_drawings == [folder.name for folder in list_lessons()]


@cache
def list_top_folders() -> set[str]:
    """Return the project's top-level folders that are under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name.partition("/")[0] for name in files.split("\0") if "/" in name}


def find_missing_files(part: str) -> Iterator[tuple[int, str]]:
    """Yield paths in code that do not exist; capitals stand for any name, as in lessons/LESSON/claims.py."""
    for line, name in find_inline_code(part):
        is_path = re.fullmatch(r"[\w.-]+(/[\w.*-]+)+/?", name)
        if is_path and name.partition("/")[0] in list_top_folders():
            pattern = re.sub(r"\b[A-Z]{2,}\b", "*", name)
            if not any(ROOT.glob(pattern.rstrip("/"))):
                yield line, name


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_and_file_names_lead_to_existing_targets(file: Path):
    errors = []
    for part in read_prose(file):
        broken = [
            (line, link) for line, link in find_links(part) if not leads_to_target(file, link)
        ]
        broken += find_missing_files(part)
        errors += [f"{shorten_path(file)}:{line}: {name}" for line, name in broken]
    assert errors == []
