"""Test the metadata for search engines and previews: titles, descriptions, addresses and translations of pages."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from PIL import Image

from tests.site.conftest import PAGES
from tools.weave.launch import REPOSITORY, SITE_ADDRESS
from tools.weave.lessons import LANGUAGES

FRONT = [f"{language}/index.html" for language in LANGUAGES]


def parse_head(page: Path) -> BeautifulSoup:
    """Parse a page down to its first heading."""
    return BeautifulSoup(page.read_text(encoding="utf-8").partition("</h1>")[0], "html.parser")


@pytest.mark.parametrize("path", [*PAGES, *FRONT])
def test_a_page_has_metadata_for_previews(site: Path, path: str):
    page = parse_head(site / path)
    metadata = {meta["property"]: meta["content"] for meta in page.select("meta[property]")}
    assert page.title.string == f"{page.h1.find(string=True)} - d2l_compat"
    assert metadata["og:title"] == page.h1.find(string=True)
    assert metadata["og:description"] == page.select_one("meta[name=description]")["content"]
    assert (
        metadata["og:url"] == page.select_one("link[rel=canonical]")["href"] == SITE_ADDRESS + path
    )
    image = site / metadata["og:image"].removeprefix(SITE_ADDRESS)
    assert Image.open(image).size == (1200, 630)  # previews do not crop this size
    assert metadata["og:image:alt"]
    alternates = {link["hreflang"]: link["href"] for link in page.select("link[rel=alternate]")}
    name = path.partition("/")[2]
    languages = [language for language in LANGUAGES if f"{language}/{name}" in [*PAGES, *FRONT]]
    assert alternates == {language: f"{SITE_ADDRESS}{language}/{name}" for language in languages}


@pytest.mark.parametrize("path", [*PAGES, *FRONT, "en/search.html", "zh-TW/search.html"])
def test_search_engines_may_index_a_page(site: Path, path: str):
    page = parse_head(site / path)
    assert page.select("meta[name=description]")
    assert not page.select("meta[name=robots]")


def test_a_page_without_translation_has_no_alternate(site: Path):
    page = parse_head(site / "en/regression.html")
    assert [link["hreflang"] for link in page.select("link[rel=alternate]")] == ["en"]


def test_the_sites_address_follows_from_the_repositorys():
    owner, name = REPOSITORY.removeprefix("https://github.com/").split("/")
    assert f"https://{owner}.github.io/{name}/" == SITE_ADDRESS


def test_the_site_map_lists_all_pages(site: Path):
    addresses = (site / "sitemap.txt").read_text(encoding="utf-8").splitlines()
    assert all(address.startswith(SITE_ADDRESS) for address in addresses)
    files = [address.removeprefix(SITE_ADDRESS) for address in addresses]
    assert all((site / file).exists() for file in files)
    assert {*PAGES, "en/index.html", "zh-TW/chapter.html"} <= {*files}
    assert not [file for file in files if "search" in file]
