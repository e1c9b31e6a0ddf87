"""Where notebooks can be opened: one address, from which all links and first cells are made."""

import re
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest

from d2l_compat.frameworks import FRAMEWORKS
from tools.project.documents import PART, documents, fill, generated_parts, language_of
from tools.weave.launch import FROM_A_CLONE, INSTALL, SOURCE, install_cell, services
from tools.weave.lessons import LANGUAGES, ROOT, Edition, editions

EDITIONS = list(editions())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PYPROJECT["project"]["urls"]["Repository"]
OWNER_AND_NAME = REPOSITORY.removeprefix("https://github.com/")
BINDER = f"https://mybinder.org/v2/gh/{OWNER_AND_NAME}/main"


def test_the_address_stands_in_one_place_and_in_what_is_made_from_it():
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = {
        name.partition("/")[0]
        for name in filter(None, files.split("\0"))
        if (ROOT / name).is_file() and OWNER_AND_NAME.encode() in (ROOT / name).read_bytes()
    }
    made = {"README.md", "README.zh-TW.md", "CITATION.cff", "docs", "notebooks"}
    assert named == made | {"pyproject.toml"}


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_parts_are_up_to_date(document: Path):
    text = document.read_text(encoding="utf-8")
    assert fill(text, generated_parts(language_of(document))) == text, "run `make`"


def test_generated_parts_stand_where_readers_look_for_them_in_every_language():
    expected = {"notebooks/README.md": ["notebooks"]}
    for readme in ("README.md", "README.zh-TW.md"):
        expected[readme] = ["start", "site", "install", "cite"]
    for language in LANGUAGES:
        expected[f"docs/{language}/coming-from-d2l.md"] = ["first cell", "install"]
        expected[f"docs/{language}/compared-with-d2l.md"] = ["book"]
        expected[f"docs/{language}/chapter.md"] = ["cite"]
    found = {}
    for document in documents():
        parts = PART.finditer(document.read_text(encoding="utf-8"))
        found[str(document.relative_to(ROOT))] = [part["name"] for part in parts]
    assert {name: parts for name, parts in found.items() if parts} == expected


def test_installing_begins_with_a_clone_of_the_repository():
    clone, install = FROM_A_CLONE.splitlines()
    assert clone == f"git clone {REPOSITORY} d2l"
    assert install.startswith("pip install './d2l[pytorch]' ")


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_every_notebook_begins_with_the_cell_that_installs_what_is_missing(edition: Edition):
    notebook = nbformat.read(edition.notebook, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert first.id == INSTALL
    assert first.source == install_cell(edition)
    assert first.outputs == []  # silent where nothing is missing
    is_python = FRAMEWORKS[edition.framework].is_python
    addresses = [f"git+{REPOSITORY}"] if is_python else [BINDER, REPOSITORY]
    assert re.findall(r"(?:git\+)?https://\S+", first.source) == addresses


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_links_open_the_notebook_and_java_is_not_sent_to_what_starts_python_alone(edition: Edition):
    path = f"notebooks/{edition.language}/{edition.framework}/{edition.folder.name}.ipynb"
    assert (ROOT / path).is_file()
    shown = f"{REPOSITORY}/blob/main/{path}"
    want = {
        "Colab": f"https://colab.research.google.com/github/{OWNER_AND_NAME}/blob/main/{path}",
        "Kaggle": f"https://www.kaggle.com/kernels/welcome?src={shown}",
        "Binder": f"{BINDER}?urlpath=lab%2Ftree%2F{path.replace('/', '%2F')}",
        "GitHub": shown,
    }
    if not FRAMEWORKS[edition.framework].is_python:  # which these start alone
        del want["Colab"], want["Kaggle"]
    opened = (*services(edition.framework), SOURCE)
    assert {service.name: service.link(edition) for service in opened} == want
