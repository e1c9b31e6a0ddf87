"""What others show of a page: its title, what it is about, its address, and that it is there in another language."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from PIL import Image

from tests.site.conftest import PAGES
from tools.weave.launch import REPOSITORY, SITE_ADDRESS
from tools.weave.lessons import LANGUAGES

FRONT = [f"{language}/index.html" for language in LANGUAGES]


def head(page: Path) -> BeautifulSoup:
    """Parse a page down to its first heading."""
    return BeautifulSoup(page.read_text(encoding="utf-8").partition("</h1>")[0], "html.parser")


@pytest.mark.parametrize("path", [*PAGES, *FRONT])
def test_a_page_tells_others_what_it_is(site: Path, path: str):
    page = head(site / path)
    told = {meta["property"]: meta["content"] for meta in page.select("meta[property]")}
    assert page.title.string == f"{page.h1.find(string=True)} - d2l_compat"
    assert told["og:title"] == page.h1.find(string=True)
    assert told["og:description"] == page.select_one("meta[name=description]")["content"]
    assert told["og:url"] == page.select_one("link[rel=canonical]")["href"] == SITE_ADDRESS + path
    picture = site / told["og:image"].removeprefix(SITE_ADDRESS)
    assert Image.open(picture).size == (1200, 630)  # what is shown whole
    assert told["og:image:alt"]
    others = {link["hreflang"]: link["href"] for link in page.select("link[rel=alternate]")}
    name = path.partition("/")[2]
    written = [language for language in LANGUAGES if f"{language}/{name}" in [*PAGES, *FRONT]]
    assert others == {language: f"{SITE_ADDRESS}{language}/{name}" for language in written}


@pytest.mark.parametrize("path", [*PAGES, *FRONT, "en/search.html", "zh-TW/search.html"])
def test_search_engines_may_read_it(site: Path, path: str):
    page = head(site / path)
    assert page.select("meta[name=description]")
    assert not page.select("meta[name=robots]")


def test_a_page_in_one_language_names_no_other(site: Path):
    page = head(site / "en/regression.html")
    assert [link["hreflang"] for link in page.select("link[rel=alternate]")] == ["en"]


def test_the_sites_address_comes_from_the_repositorys():
    owner, name = REPOSITORY.removeprefix("https://github.com/").split("/")
    assert f"https://{owner}.github.io/{name}/" == SITE_ADDRESS


def test_the_map_of_the_site_has_all_its_pages(site: Path):
    listed = (site / "sitemap.txt").read_text(encoding="utf-8").splitlines()
    assert all(address.startswith(SITE_ADDRESS) for address in listed)
    files = [address.removeprefix(SITE_ADDRESS) for address in listed]
    assert all((site / file).exists() for file in files)
    assert {*PAGES, "en/index.html", "zh-TW/chapter.html"} <= {*files}
    assert not [file for file in files if "search" in file]
