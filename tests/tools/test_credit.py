"""Whose the lessons are, what may be done with them, and how to cite them: said wherever they may be found alone."""

import re
import subprocess
import sys

import nbformat
import pytest
import yaml

from d2l_compat import __version__
from tests.lessons.prose import links
from tools.project.citation import AUTHORS, BIBTEX, CITATION, YEAR, cff
from tools.weave.credit import WORDS, credit
from tools.weave.launch import REPOSITORY
from tools.weave.lessons import LANGUAGES, ROOT, editions

# In the reader's language, where Creative Commons does not ask the browser for it.
DEEDS = {"en": "", "zh-TW": "deed.zh-hant"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("what", ["notebook", "slides", "site"])
def test_the_words_name_the_authors_both_licences_and_the_address(language: str, what: str):
    said = credit(language, what)
    assert [link for _, link in links(said)] == [
        REPOSITORY,
        f"https://creativecommons.org/licenses/by/4.0/{DEEDS[language]}",
        f"{REPOSITORY}/blob/main/LICENSE",
    ]
    assert "d2l_compat" in said.partition("](")[0]
    assert "CC BY 4.0" in said
    assert "MIT" in said
    assert said.startswith(getattr(WORDS[language], what))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notebook_ends_with_them(language: str):
    """And so do all: in tests/lessons/test_notebooks.py each is what is woven."""
    edition = next(editions([language]))
    last = nbformat.read(edition.notebook, as_version=4).cells[-1]
    assert last.cell_type == "markdown"
    assert last.source.endswith(credit(language, "notebook"))


def test_the_licences_are_those_that_are_named():
    code, text = ((ROOT / name).read_text("utf-8") for name in ("LICENSE", "LICENSE-TEXT"))
    assert code.startswith("MIT License\n")
    assert f"\nCopyright (c) {YEAR} {AUTHORS}\n" in code
    assert text.startswith("Creative Commons Attribution 4.0 International\n")


# How to cite


def test_the_citation_file_is_valid_and_says_what_the_package_says():
    written = CITATION.read_text(encoding="utf-8")
    assert written == cff(), "run `make`"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    subprocess.run([*command, "vendor.citation-file-format", str(CITATION)], check=True)
    said = yaml.safe_load(written)
    assert (said["version"], said["repository-code"]) == (__version__, REPOSITORY)
    assert said["authors"] == [{"name": AUTHORS}]


def test_the_entry_for_bibtex_is_one():
    """Every brace is closed, no name is taken apart at its `and` or its comma, and TeX can set it."""
    assert BIBTEX.count("{") == BIBTEX.count("}")
    assert not re.search(r"(?<!\\)[_&%#$]", BIBTEX.replace(REPOSITORY, ""))
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", BIBTEX, re.MULTILINE))
    assert fields["author"].replace("\\", "") == f"{{{AUTHORS}}}"
    assert (fields["version"], fields["url"]) == (__version__, REPOSITORY)
    assert fields["year"] == YEAR
