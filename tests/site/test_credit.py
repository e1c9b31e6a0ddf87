"""Every page and every deck says whose it is, and under which licences; a deck also which lesson it is for."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.site.conftest import EDITIONS
from tools.site.build import SITE
from tools.site.slides import deck_path
from tools.site.words import WORDS
from tools.weave.credit import credit
from tools.weave.lessons import Edition
from tools.weave.prose import title


def said(page: Path, where: str, start: str, end: str) -> list[str]:
    """What each part says, with where its links lead, as in Markdown; of what is between two tags."""
    html = page.read_text(encoding="utf-8")
    part = html[html.index(start) :].partition(end)[0] + end
    parts = BeautifulSoup(part, "html.parser").select(where)
    for link in (link for part in parts for link in part.select("a")):
        link.replace_with(f"[{link.get_text()}]({link['href']})")
    return [" ".join(part.get_text().split()) for part in parts]


@pytest.mark.parametrize("language", WORDS)
def test_every_page_says_so_at_its_foot(language: str):
    pages = [*(SITE / language).rglob("*.html")]
    assert len(pages) > 10
    for page in pages:
        found = said(page, "footer .left-details", "<footer", "</footer>")
        assert credit(language, "site") in found, page


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_every_deck_says_so_on_its_first_slide(edition: Edition):
    page = f"../../../{edition.language}/{edition.folder.name}.html?framework={edition.framework}"
    words = WORDS[edition.language]
    lesson = words.lesson.format(title=f"[{title(edition.text)}]({page})")
    found = said(SITE / deck_path(edition), ".credit p", "<section", "</section>")
    assert found == [lesson, credit(edition.language, "slides")]
