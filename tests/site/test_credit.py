"""Test that every page and every deck has the credit line, and that every deck links to its lesson."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.site.conftest import NOTEBOOKS
from tools.site.build import SITE
from tools.site.slides import get_deck_path
from tools.site.words import SITE_TEXT
from tools.weave.credit import render_credit
from tools.weave.lessons import Notebook
from tools.weave.prose import read_title


def read_parts(page: Path, selector: str, start: str, end: str) -> list[str]:
    """Return the selected elements between two tags as text, with links in Markdown."""
    html = page.read_text(encoding="utf-8")
    excerpt = html[html.index(start) :].partition(end)[0] + end
    parts = BeautifulSoup(excerpt, "html.parser").select(selector)
    for part in parts:
        for link in part.select("a"):
            link.replace_with(f"[{link.get_text()}]({link['href']})")
    return [" ".join(part.get_text().split()) for part in parts]


@pytest.mark.parametrize("language", SITE_TEXT)
def test_every_page_has_the_credit_in_its_footer(language: str):
    pages = [*(SITE / language).rglob("*.html")]
    assert len(pages) > 10
    for page in pages:
        parts = read_parts(page, "footer .left-details", "<footer", "</footer>")
        assert render_credit(language, "site") in parts, page


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_deck_has_the_credit_on_its_first_slide(notebook: Notebook):
    page = (
        f"../../../{notebook.language}/{notebook.lesson.name}.html?framework={notebook.framework}"
    )
    link = f"[{read_title(notebook.text)}]({page})"
    lesson = SITE_TEXT[notebook.language].lesson.format(title=link)
    parts = read_parts(SITE / get_deck_path(notebook), ".credit p", "<section", "</section>")
    assert parts == [lesson, render_credit(notebook.language, "slides")]
