"""Links within the project lead somewhere: from README, CONTRIBUTING, docs/, the lessons and the notebooks."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag

import nbformat
import pytest

from tests.lessons.prose import anchors, code, links
from tools.weave.launch import BRANCH, REPOSITORY
from tools.weave.lessons import LANGUAGES, ROOT, display, lessons

TEXTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*/*.md")),
    ROOT / "notebooks" / "README.md",
    *sorted(ROOT.glob("lessons/*/text.*.md")),
    *sorted(ROOT.glob("notebooks/*/*/*.ipynb")),
]
OURS = f"{REPOSITORY}/blob/{BRANCH}/"
# The web site makes a page for each module.
PAGE_OF = re.compile(r"reference/(d2l_compat(?:/\w+)*?)/index")


def parts(file: Path) -> list[str]:
    """A text, or the cells of prose of a notebook."""
    if file.suffix != ".ipynb":
        return [file.read_text(encoding="utf-8")]
    cells = nbformat.read(file, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def leads_somewhere(file: Path, link: str) -> bool:
    """To a file of the project, and in this to a heading; what is elsewhere is not asked."""
    if link == "../@WHEEL@":  # which the web site builds, and tests
        return True
    address, anchor = urldefrag(link)
    if address.startswith(OURS):
        target = ROOT / unquote(address.removeprefix(OURS))
    elif re.match(r"[a-z]+:", address):
        return True
    elif page := PAGE_OF.fullmatch(address):
        target = ROOT / page[1]
        target = target if target.exists() else target.with_suffix(".py")
    else:
        target = file.parent / unquote(address) if address else file
        if target.suffix == ".html" and file.is_relative_to(ROOT / "docs"):
            target = target.with_suffix(".md")  # of which the web site makes this page
    if not target.exists() or not anchor:
        return target.exists()
    return unquote(anchor) in {name for part in parts(target) for name in anchors(part)}


@pytest.mark.parametrize("page", ["index", "chapter"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_lesson_is_shown_where_a_reader_looks_for_one(language: str, page: str):
    """On the front page and the chapter's: by a link and one of its drawings, in the chapter's order."""
    text = (ROOT / "docs" / language / f"{page}.md").read_text(encoding="utf-8")
    linked = re.findall(rf"\]\(\.\./\.\./notebooks/{language}/pytorch/([-\w]+)\.ipynb\)", text)
    drawn = re.findall(r"!\[[^\]]+\]\(\.\./\.\./lessons/([-\w]+)/[-\w.]+\.svg\)", text)
    assert linked == drawn == [folder.name for folder in lessons()]


@cache
def folders() -> set[str]:
    """Those that are under version control, at the top."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name.partition("/")[0] for name in files.split("\0") if "/" in name}


def missing_files(part: str) -> Iterator[tuple[int, str]]:
    """Words in capitals stand for any name: lessons/LESSON/claims.py."""
    for line, said in code(part):
        if re.fullmatch(r"[\w.-]+(/[\w.*-]+)+/?", said) and said.partition("/")[0] in folders():
            name = re.sub(r"\b[A-Z]{2,}\b", "*", said)
            if not any(ROOT.glob(name.rstrip("/"))):
                yield line, said


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there_and_so_do_names_of_files(file: Path):
    gone = []
    for part in parts(file):
        dead = [(line, link) for line, link in links(part) if not leads_somewhere(file, link)]
        gone += [f"{display(file)}:{line}: {name}" for line, name in [*dead, *missing_files(part)]]
    assert gone == []
