"""Where notebooks can be opened: one address, from which all links and first cells are made."""

import subprocess

import nbformat
import pytest

from tools.project.readme import COMING, README, between, with_installation, with_links, with_pages
from tools.project.readme import INSTALL as INSTALLATION
from tools.weave.launch import (
    BINDER,
    COLAB,
    FROM_A_CLONE,
    INSTALL,
    OWNER_AND_NAME,
    REPOSITORY,
    install_cell,
    services,
)
from tools.weave.lessons import LANGUAGES, ROOT, Edition, editions

EDITIONS = list(editions())


def test_readme_has_the_links_of_today():
    readme = README.read_text(encoding="utf-8")
    assert with_links(readme, EDITIONS) == readme, "run `make`"


def test_the_address_stands_in_one_place_and_in_what_is_made_from_it():
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = {
        name.partition("/")[0]
        for name in filter(None, files.split("\0"))
        if (ROOT / name).is_file() and OWNER_AND_NAME.encode() in (ROOT / name).read_bytes()
    }
    assert named == {"README.md", "CITATION.cff", "docs", "pyproject.toml", "notebooks"}


def test_readme_first_says_how_to_install_from_a_clone_of_the_address():
    readme = README.read_text(encoding="utf-8")
    assert between(readme, "install", INSTALLATION) == readme, "run `make`"
    assert REPOSITORY in FROM_A_CLONE
    first, *others = (line for line in readme.splitlines() if "pip install" in line)
    assert first in FROM_A_CLONE.splitlines()
    assert others


def test_who_comes_from_d2l_is_told_how_to_install_and_which_pages_run_in_every_language():
    assert [file.parent.name for file in COMING] == sorted(LANGUAGES)
    for file in COMING:
        text = file.read_text(encoding="utf-8")
        assert with_pages(with_installation(text), file.parent.name) == text, "run `make`"


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_every_notebook_begins_with_the_cell_that_installs_what_is_missing(edition: Edition):
    notebook = nbformat.read(edition.notebook, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert first.id == INSTALL
    assert first.source == install_cell(edition)
    assert first.outputs == []  # silent where nothing is missing


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_links_open_the_notebook(edition: Edition):
    path = f"notebooks/{edition.language}/{edition.framework}/{edition.folder.name}.ipynb"
    assert (ROOT / path).is_file()
    for service in services(edition.framework):
        link = service.link(edition)
        assert path in link.replace("%2F", "/")
        assert OWNER_AND_NAME in link


def test_java_is_not_sent_to_what_starts_python_alone():
    assert services("djl") == (BINDER,)
    assert COLAB in services("jax")
