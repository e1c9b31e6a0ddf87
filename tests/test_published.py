"""What `make published` says of an address, a repository and services; all of them stand-ins on this machine."""

import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.conftest import serving
from tools.project import published
from tools.project.published import OF_BINDER, of_addresses, of_repository, of_services
from tools.weave.launch import BRANCH, REPOSITORY
from tools.weave.lessons import ROOT

PACKAGE = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tiny"
version = "1"
"""


class Forge(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response({"/moved": 301, "/there": 200}.get(self.path, 404))
        self.send_header("Location", "/there")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """The address of a server that is ours; no proxy is between."""
    with serving(Forge) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "127.0.0.1")
        yield address


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., str]:
    """The address of a repository with these files."""

    def make(branch: str = BRANCH, **files: str) -> str:
        folder = tmp_path / "repository"
        (folder / "tiny").mkdir(parents=True)
        for name, text in {"tiny/__init__.py": "", "pyproject.toml": PACKAGE, **files}.items():
            (folder / name).write_text(text)
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        for command in (
            ["init", "--quiet", f"--initial-branch={branch}"],
            ["add", "--all"],
            [*who, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", "all"],
            ["clone", "--quiet", "--bare", ".", "../bare.git"],
        ):
            subprocess.run(["git", *command], cwd=folder, check=True)
        return (tmp_path / "bare.git").as_uri()

    return make


def test_an_address_that_answers_is_no_fault(web: str):
    assert [*of_addresses({"Repository": f"{web}/there"})] == []


def test_an_address_that_does_not_answer_is_named_with_what_to_set(web: str):
    gone, nobody = of_addresses({"Repository": f"{web}/gone", "Site": "http://127.0.0.1:1/"})
    assert gone.startswith(f"{web}/gone does not answer (404): make it public or")
    assert gone.endswith("set `Repository` in pyproject.toml, and run `make`.")
    assert "Connection refused): see that there is a network, " in nobody
    assert "set `Site`" in nobody


def test_an_address_that_leads_to_another_is_named_with_the_other(web: str):
    (fault,) = of_addresses({"Repository": f"{web}/moved"})
    assert fault.startswith(f"{web}/moved has moved: set `Repository`")
    assert fault.endswith(f"to {web}/there.")


def test_a_repository_with_all_files_that_pip_can_install_is_no_fault(repository):
    assert [*of_repository(repository(), ["pyproject.toml", "tiny/__init__.py"])] == []


def test_files_that_the_branch_lacks_are_named(repository):
    (fault,) = of_repository(repository(), ["pyproject.toml", "a.ipynb", "b.ipynb", "c.ipynb"])
    assert "lacks a.ipynb and 2 more: commit what `make` writes, and push it." in fault


def test_a_branch_of_another_name_is_a_fault(repository):
    (fault,) = of_repository(repository(branch="trunk"), [])
    assert f"git cannot clone the branch {BRANCH} of" in fault
    assert "set `BRANCH` in tools/weave/launch.py." in fault


def test_a_repository_that_is_not_there_is_a_fault(tmp_path):
    (fault,) = of_repository((tmp_path / "none.git").as_uri(), [])
    assert "git cannot clone" in fault
    assert "push it" in fault


def test_what_pip_cannot_install_is_a_fault(repository):
    (fault,) = of_repository(repository(**{"pyproject.toml": "[project]\nname = 1\n"}), [])
    assert fault.startswith("pip cannot install git+file:")


def test_a_service_that_does_not_open_a_link_is_named(web: str):
    assert [*of_services({"Colab": f"{web}/there"})] == []
    (fault,) = of_services({"Colab": f"{web}/there", "Binder": f"{web}/gone"})
    assert fault.startswith(f"Binder does not open {web}/gone (404): ")
    assert "tools/weave/launch.py" in fault


def test_it_asks_for_all_that_the_buttons_open(monkeypatch, capsys):
    asked: dict[str, object] = {}
    for name in ("of_addresses", "of_repository", "of_services"):

        def note(*given: object, name: str = name) -> list[str]:
            asked[name] = given
            return []

        monkeypatch.setattr(published, name, note)
    assert published.main() == 0
    assert capsys.readouterr().out == f"All is there: {REPOSITORY}\n"
    assert asked["of_addresses"][0]["Repository"] == REPOSITORY
    address, files = asked["of_repository"]
    assert address == REPOSITORY
    assert {*OF_BINDER, "notebooks/en/jax/attention.ipynb"} <= {*files}
    assert all((ROOT / file).exists() for file in files)
    assert [*asked["of_services"][0]] == ["GitHub", "Colab", "Kaggle", "Binder"]
    monkeypatch.setattr(published, "of_services", lambda links: ["Colab does not answer."])
    assert published.main() == 1
    assert capsys.readouterr().out == "Colab does not answer.\n"
