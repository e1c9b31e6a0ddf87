"""Test a release: build the package, check it with twine, install it into an empty environment, and use it."""

import os
import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path
from tarfile import TarFile
from zipfile import ZipFile

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from d2l_compat import __version__
from tools.project import dist
from tools.weave.launch import REPOSITORY
from tools.weave.lessons import ROOT

NAME = f"d2l_compat-{__version__}"


@pytest.fixture(scope="module")
def dist_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    assert dist.main([str(folder)]) == 0
    return folder


def list_project_files(*folders: str) -> set[str]:
    """Return the project's files, committed or not, except those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listing.split("\0") if name and (ROOT / name).is_file()}


def test_the_wheel_has_the_shim_and_its_licences(dist_folder: Path) -> None:
    names = ZipFile(dist_folder / f"{NAME}-py3-none-any.whl").namelist()
    shim = {name for name in names if not name.startswith(f"{NAME}.dist-info/")}
    assert shim == list_project_files("d2l_compat") - list_project_files("d2l_compat/java")
    licences = {name.partition("/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "d2l_compat/_shared/fonts/OFL.txt"}


def test_the_sdist_has_exactly_the_files_that_build_the_wheel(dist_folder: Path) -> None:
    with TarFile.open(dist_folder / f"{NAME}.tar.gz") as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}
    build_files = {"pyproject.toml", "LICENSE", "README.md", "tools/project/description.py"}
    added_by_hatchling = {".gitignore", "PKG-INFO"}
    assert names == build_files | list_project_files("d2l_compat") | added_by_hatchling


def find_links(markdown: str) -> list[tuple[str, str]]:
    """Return the tag and the address of each link and image."""
    html = MarkdownIt().enable("table").render(markdown)
    tags = BeautifulSoup(html, "html.parser")(["a", "img"])
    return [(tag.name, str(tag.get("href") or tag.get("src"))) for tag in tags]


def test_links_in_the_description_lead_to_the_repository(dist_folder: Path) -> None:
    wheel = ZipFile(dist_folder / f"{NAME}-py3-none-any.whl")
    description = wheel.read(f"{NAME}.dist-info/METADATA").decode().partition("\n\n")[2]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pairs = zip(find_links(description), find_links(readme), strict=True)
    for (tag, address), (readme_tag, readme_address) in pairs:
        assert tag == readme_tag
        if re.match("https?:|#", readme_address):
            assert address == readme_address
            continue
        kind = "raw" if tag == "img" else "blob"
        assert address == f"{REPOSITORY}/{kind}/v{__version__}/{readme_address}"
        assert readme_address.partition("#")[0] in list_project_files()


def add_distributions(requirement: Requirement, by_name: dict[str, Distribution]) -> None:
    """Add the installed distributions that a requirement needs, with their requirements."""
    name = canonicalize_name(requirement.name)
    extras = requirement.extras or {""}
    if name in by_name and not requirement.extras:
        return
    by_name[name] = distribution(requirement.name)
    for other in map(Requirement, by_name[name].requires or []):
        if not other.marker or any(other.marker.evaluate({"extra": extra}) for extra in extras):
            add_distributions(other, by_name)


def link_distribution(packages: Path, source: Distribution) -> None:
    """Link a distribution's files into another environment."""
    for part in {file.parts[0] for file in source.files or []} - {"..", "__pycache__"}:
        if not (packages / part).exists():
            (packages / part).symlink_to(str(source.locate_file(part)))


@pytest.mark.release
@pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is not installed")
def test_readmes_example_runs_in_an_empty_environment(dist_folder: Path, tmp_path: Path) -> None:
    """Check that the wheel and its requirements are enough."""
    uv = [sys.executable, "-m", "uv", "--quiet"]
    python = tmp_path / "bin" / "python"
    subprocess.run([*uv, "venv", "--python", sys.executable, tmp_path], check=True)
    install = [*uv, "pip", "install", "--python", python, "--offline", "--no-deps", "--no-cache"]
    subprocess.run([*install, *dist_folder.glob("*.whl")], cwd=tmp_path, check=True)
    (packages,) = tmp_path.glob("lib/python3*/site-packages")
    (wheel,) = Distribution.discover(name="d2l-compat", path=[str(packages)])
    assert wheel.version == __version__
    needed: dict[str, Distribution] = {}
    for requirement in map(Requirement, wheel.requires or []):
        if not requirement.marker or requirement.marker.evaluate({"extra": "pytorch"}):
            add_distributions(requirement, needed)
    for each in needed.values():
        link_distribution(packages, each)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    program = tmp_path / "example.py"
    show = "print(d2l.__file__, tuple(attention(X, X, X, d2l.tensor([3, 2])).shape))\n"
    draw = "d2l.plot(d2l.arange(3), [d2l.arange(3)], xlabel='字')\n"
    program.write_text(example + show + draw, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MPLBACKEND": "Agg"}
    command = [python, "-I", program]
    process = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.stderr == ""
    assert process.stdout == f"{packages / 'd2l_compat' / 'torch' / '__init__.py'} (2, 4, 100)\n"


# The version


def test_the_version_is_the_same_everywhere() -> None:
    assert dist.PROJECT["version"] == __version__
    newest = re.search(r"^## (\S+) \(", dist.CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE)
    assert newest[1] == __version__


@pytest.mark.parametrize(
    ("tag", "changelog", "expected"),
    [
        (f"v{__version__}", f"# C\n\n## {__version__} (2026-12-01)\n\n## 0.0.1 (2026-01-01)\n", ""),
        ("v99", "", "The tag v99 does not match version "),
        (f"v{__version__}", f"## {__version__} (not yet released)\n", "CHANGELOG.md begins with "),
        (f"v{__version__}", "## 0.0.1 (2026-01-01)\n", "CHANGELOG.md begins with 0.0.1 "),
    ],
)
def test_nothing_is_built_unless_tag_and_changelog_have_the_version(
    tmp_path: Path, tag: str, changelog: str, expected: str
) -> None:
    message = dist.find_release_error(tag, changelog)
    assert message.startswith(expected)
    assert bool(message) == bool(expected)
    if not tag.endswith(__version__):
        assert dist.main([str(tmp_path / "dist"), tag]) == 1
        assert not (tmp_path / "dist").exists()


@pytest.mark.release
def test_a_package_that_twine_rejects_is_a_failure(tmp_path: Path, monkeypatch) -> None:
    """Build a package whose description is invalid reStructuredText."""
    (tmp_path / "d2l_compat").mkdir()
    (tmp_path / "d2l_compat" / "__init__.py").touch()
    (tmp_path / "README.rst").write_text("A *word\n====\n\n.. nothing::\n")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "d2l-compat"\nversion = "1"\nreadme = "README.rst"\n'
    )
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    assert dist.main([str(tmp_path / "dist")]) == 1
    assert len([*(tmp_path / "dist").glob("d2l_compat-1*")]) == 2  # it was built
