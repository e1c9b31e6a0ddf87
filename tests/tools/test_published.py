"""Test `make published` on addresses, a repository and services that are imitated on this machine."""

import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.conftest import run_server
from tools.project import published
from tools.project.published import BINDER_FILES, check_addresses, check_repository, check_services
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


class FakeGitHub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response({"/moved": 301, "/there": 200}.get(self.path, 404))
        self.send_header("Location", "/there")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """Yield the address of a server on this machine, which is reached without a proxy."""
    with run_server(FakeGitHub) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "127.0.0.1")
        yield address


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes a repository with a tiny package, and returns its address."""

    def make_repository(package: str = PACKAGE, branch: str = BRANCH) -> str:
        folder = tmp_path / "repository"
        (folder / "tiny").mkdir(parents=True)
        (folder / "tiny" / "__init__.py").touch()
        (folder / "pyproject.toml").write_text(package)
        user = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        for command in (
            ["init", "--quiet", f"--initial-branch={branch}"],
            ["add", "--all"],
            [*user, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", "all"],
            ["clone", "--quiet", "--bare", ".", "../bare.git"],
        ):
            subprocess.run(["git", *command], cwd=folder, check=True)
        return (tmp_path / "bare.git").as_uri()

    return make_repository


def test_an_address_that_fails_or_has_moved_is_reported_with_its_setting(web: str):
    addresses = {
        "Repository": f"{web}/there",
        "Gone": f"{web}/gone",
        "Refused": "http://127.0.0.1:1/",
        "Moved": f"{web}/moved",
    }
    gone, refused, moved = check_addresses(addresses)
    assert gone.startswith(f"{web}/gone does not answer (404): make it public or")
    assert gone.endswith("set `Gone` in pyproject.toml, and run `make`.")
    assert "Connection refused): check the network, " in refused
    assert moved.startswith(f"{web}/moved has moved: set `Moved`")
    assert moved.endswith(f"to {web}/there.")


@pytest.mark.parametrize(
    ("arguments", "missing", "words"),
    [
        ({}, [], ""),
        ({}, ["b.ipynb", "c.ipynb"], "lacks b.ipynb and 1 more: commit what `make` writes"),
        ({"branch": "trunk"}, [], "set `BRANCH` in tools/weave/launch.py."),
        ({"package": "[project]\nname = 1\n"}, [], "pip cannot install git+file:"),
    ],
)
def test_a_repository_needs_the_branch_all_files_and_a_valid_package(
    repository, arguments, missing, words
):
    messages = [*check_repository(repository(**arguments), ["tiny/__init__.py", *missing])]
    assert len(messages) == bool(words)
    assert words in "".join(messages)


def test_a_service_that_does_not_open_a_link_is_reported(web: str):
    (message,) = check_services({"Colab": f"{web}/there", "Binder": f"{web}/gone"})
    assert message.startswith(f"Binder does not open {web}/gone (404): ")
    assert "tools/weave/launch.py" in message


def test_the_addresses_of_all_buttons_are_checked(monkeypatch, capsys):
    calls: dict[str, object] = {}
    for name in ("check_addresses", "check_repository", "check_services"):

        def record(*arguments: object, name: str = name) -> list[str]:
            calls[name] = arguments
            return []

        monkeypatch.setattr(published, name, record)
    assert published.main() == 0
    assert capsys.readouterr().out == f"Everything is published: {REPOSITORY}\n"
    assert calls["check_addresses"][0]["Repository"] == REPOSITORY
    address, files = calls["check_repository"]
    assert address == REPOSITORY
    assert {*BINDER_FILES, "notebooks/en/jax/attention.ipynb"} <= {*files}
    assert all((ROOT / file).exists() for file in files)
    assert [*calls["check_services"][0]] == ["GitHub", "Colab", "Kaggle", "Binder"]
    monkeypatch.setattr(published, "check_services", lambda links: ["Colab does not answer."])
    assert published.main() == 1
