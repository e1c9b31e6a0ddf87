"""Test the credit line, the licences and the citation. Each part that may be shared separately needs them."""

import re
import subprocess
import sys

import nbformat
import pytest
import yaml

from d2l_compat import __version__
from tests.lessons.prose import find_links
from tools.project.citation import AUTHORS, BIBTEX, CITATION, YEAR, make_cff
from tools.weave.credit import CREDIT_TEXTS, render_credit
from tools.weave.launch import REPOSITORY
from tools.weave.lessons import LANGUAGES, ROOT, list_notebooks

# Creative Commons selects the browser's language, except for Chinese, which needs its own page.
LICENSE_PAGES = {"en": "", "zh-TW": "deed.zh-hant"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("medium", ["notebook", "slides", "site"])
def test_the_credit_names_the_authors_the_licences_and_the_address(language: str, medium: str):
    text = render_credit(language, medium)
    assert [link for _, link in find_links(text)] == [
        REPOSITORY,
        f"https://creativecommons.org/licenses/by/4.0/{LICENSE_PAGES[language]}",
        f"{REPOSITORY}/blob/main/LICENSE",
    ]
    assert "d2l_compat" in text.partition("](")[0]
    assert "CC BY 4.0" in text
    assert "MIT" in text
    assert text.startswith(getattr(CREDIT_TEXTS[language], medium))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notebook_ends_with_the_credit(language: str):
    """Test one notebook; tests/lessons/test_notebooks.py tests that all are woven from their lessons."""
    notebook = next(list_notebooks([language]))
    last = nbformat.read(notebook.path, as_version=4).cells[-1]
    assert last.cell_type == "markdown"
    assert last.source.endswith(render_credit(language, "notebook"))


def test_the_licence_files_have_the_named_licences():
    code, text = ((ROOT / name).read_text("utf-8") for name in ("LICENSE", "LICENSE-TEXT"))
    assert code.startswith("MIT License\n")
    assert f"\nCopyright (c) {YEAR} {AUTHORS}\n" in code
    assert text.startswith("Creative Commons Attribution 4.0 International\n")


# How to cite


def test_the_citation_file_is_valid_and_agrees_with_the_package():
    text = CITATION.read_text(encoding="utf-8")
    assert text == make_cff(), "run `make`"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    subprocess.run([*command, "vendor.citation-file-format", str(CITATION)], check=True)
    content = yaml.safe_load(text)
    assert (content["version"], content["repository-code"]) == (__version__, REPOSITORY)
    assert content["authors"] == [{"name": AUTHORS}]


def test_the_bibtex_entry_is_valid():
    """Check that every brace is closed, that BibTeX takes the author for one name, and that TeX needs no escapes."""
    assert BIBTEX.count("{") == BIBTEX.count("}")
    assert not re.search(r"(?<!\\)[_&%#$]", BIBTEX.replace(REPOSITORY, ""))
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", BIBTEX, re.MULTILINE))
    assert fields["author"].replace("\\", "") == f"{{{AUTHORS}}}"
    assert (fields["version"], fields["url"]) == (__version__, REPOSITORY)
    assert fields["year"] == YEAR
