"""Test the links that open notebooks, and their first cells, which are all made from one address."""

import re
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest

from d2l_compat.frameworks import FRAMEWORKS
from tools.project.documents import PART, fill_parts, find_language, generate_parts, list_documents
from tools.weave.launch import (
    INSTALL,
    INSTALL_FROM_CLONE,
    SOURCE,
    list_services,
    render_install_cell,
)
from tools.weave.lessons import LANGUAGES, ROOT, Notebook, list_notebooks

NOTEBOOKS = list(list_notebooks())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PYPROJECT["project"]["urls"]["Repository"]
OWNER_AND_NAME = REPOSITORY.removeprefix("https://github.com/")
BINDER = f"https://mybinder.org/v2/gh/{OWNER_AND_NAME}/main"


def test_the_repositorys_address_is_written_by_hand_only_once():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files_and_folders = {
        name.partition("/")[0]
        for name in filter(None, files.split("\0"))
        if (ROOT / name).is_file() and OWNER_AND_NAME.encode() in (ROOT / name).read_bytes()
    }
    generated = {"README.md", "README.zh-TW.md", "CITATION.cff", "docs", "notebooks"}
    assert files_and_folders == generated | {"pyproject.toml"}


@pytest.fixture(scope="module")
def parts() -> dict[str, dict[str, str]]:
    """Return the generated parts by language."""
    return {language: generate_parts(language) for language in LANGUAGES}


@pytest.mark.parametrize("document", list_documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_parts_are_up_to_date(document: Path, parts: dict[str, dict[str, str]]):
    text = document.read_text(encoding="utf-8")
    assert fill_parts(text, parts[find_language(document)]) == text, "run `make`"


def test_generated_parts_are_in_the_expected_documents():
    expected = {"notebooks/README.md": ["notebooks"]}
    for readme in ("README.md", "README.zh-TW.md"):
        expected[readme] = ["start", "site", "install", "cite"]
    for language in LANGUAGES:
        expected[f"docs/{language}/coming-from-d2l.md"] = ["first cell", "install"]
        expected[f"docs/{language}/compared-with-d2l.md"] = ["book"]
        expected[f"docs/{language}/chapter.md"] = ["cite"]
    actual = {}
    for document in list_documents():
        parts = [part["name"] for part in PART.finditer(document.read_text(encoding="utf-8"))]
        if parts:
            actual[str(document.relative_to(ROOT))] = parts
    assert actual == expected


def test_installation_begins_with_a_clone_of_the_repository():
    clone, install = INSTALL_FROM_CLONE.splitlines()
    assert clone == f"git clone {REPOSITORY} d2l"
    assert install.startswith("pip install './d2l[pytorch]' ")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_notebook_begins_with_the_install_cell(notebook: Notebook):
    node = nbformat.read(notebook.path, as_version=4)
    first = next(cell for cell in node.cells if cell.cell_type == "code")
    assert first.id == INSTALL
    assert first.source == render_install_cell(notebook)
    assert first.outputs == []  # no package was missing
    is_python = FRAMEWORKS[notebook.framework].is_python
    addresses = [f"git+{REPOSITORY}"] if is_python else [BINDER, REPOSITORY]
    assert re.findall(r"(?:git\+)?https://\S+", first.source) == addresses


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_links_open_the_notebook_in_services_with_its_kernel(notebook: Notebook):
    path = f"notebooks/{notebook.language}/{notebook.framework}/{notebook.lesson.name}.ipynb"
    assert (ROOT / path).is_file()
    on_github = f"{REPOSITORY}/blob/main/{path}"
    expected = {
        "Colab": f"https://colab.research.google.com/github/{OWNER_AND_NAME}/blob/main/{path}",
        "Kaggle": f"https://www.kaggle.com/kernels/welcome?src={on_github}",
        "Binder": f"{BINDER}?urlpath=lab%2Ftree%2F{path.replace('/', '%2F')}",
        "GitHub": on_github,
    }
    if not FRAMEWORKS[notebook.framework].is_python:  # these services only start Python
        del expected["Colab"], expected["Kaggle"]
    services = (*list_services(notebook.framework), SOURCE)
    assert {service.name: service.link(notebook) for service in services} == expected
