"""Test that the reference has every public name, with its signature and a link to its definition.

It must not have private names.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.site.browser import SITE
from tests.site.conftest import mark_release
from tools.site.java import FOLDER
from tools.site.reference import OWN_NAMES
from tools.weave.launch import BRANCH, REPOSITORY
from tools.weave.lessons import ROOT

# Other names of TransformerEncoderBlock and of the framework's Module.
ALIASES = {"EncoderBlock", "nn_Module"}
PACKAGES = [framework.module for framework in PYTHON_FRAMEWORKS.values()]
PYTHON_PAGES = [*PACKAGES, "common", "alias", ""]
PAGES = [*PYTHON_PAGES, "kernel", "java"]
REPOSITORY_ADDRESS = f"{REPOSITORY}/blob/{BRANCH}/"
MEMBERS_OF_PRIVATE_CLASSES = {"invoke"}
CONSTANT = re.compile(r"[A-Z_]{2,}")  # of an enum, declared without "public"

# Modules that may occur in signatures, and their abbreviations in lessons.
PUBLIC_MODULES = {"collections", "contextlib", "d2l", "d2l_compat", "numpy", "pathlib"}
PUBLIC_MODULES |= {"mx", "nn", "np"}
PUBLIC_MODULES |= {"TransformerBlock"}  # its Builder, in Java
PUBLIC_MODULES |= {
    package.module.partition(".")[0]
    for framework in PYTHON_FRAMEWORKS.values()
    for package in framework.packages
}
DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
PRIVATE = re.compile(r"(?<![\w^])_[A-Za-z]\w*")


@dataclass(frozen=True)
class Entry:
    """A name on a page of the reference."""

    name: str  # full name
    signatures: list[list[str]]  # the parameters of each
    descriptions: dict[str, str]  # by parameter, if there is a list of parameters
    link: str  # to the source

    @property
    def short_name(self) -> str:
        return self.name.partition("(")[0].rpartition(".")[2]


@cache
def read_page(name: str, language: str = "en") -> Tag:
    file = SITE / language / "reference" / "d2l_compat" / name / "index.html"
    article = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser").select_one("article")
    assert article
    return article


@cache
def read_entries(name: str) -> list[Entry]:
    selector = "dl.java" if name == "java" else "dl.py"
    return [parse_entry(tag) for tag in read_page(name).select(selector)]


def parse_entry(entry: Tag) -> Entry:
    heads = entry.find_all("dt", recursive=False)
    signatures = [
        [parse_parameter(parameter) for parameter in head.select(".sig-param")]
        for head in heads
        if has_parameters(head)
    ]
    descriptions = {}
    for field in entry.select(":scope > dd > dl.field-list > dt"):
        if field.text == "Parameters:":
            names = field.find_next_sibling("dd").select("p > strong")  # type: ignore[union-attr]
            for name in names:
                descriptions[name.text] = str(name.next_sibling or "").strip("– ")
    (link,) = entry.select(":scope > dt > a.external")
    return Entry(str(heads[0]["id"]), signatures, descriptions, str(link["href"]))


def has_parameters(head: Tag) -> bool:
    """Check whether a signature is that of a function or a class, which may have no parentheses."""
    return bool(head.select(".sig-paren")) or head.text.strip().startswith("class ")


def parse_parameter(parameter: Tag) -> str:
    """Return the name of a parameter with its stars; a lone star has no name."""
    text = parameter.get_text()
    stars = text[: len(text) - len(text.lstrip("*"))]
    name = parameter.select_one(".n")
    return stars + (name.text if name else "")


@cache
def read_signatures(name: str) -> dict[str, list[list[str]]]:
    """Return the signatures that Python reports for a module's names, in another process."""
    module = f"d2l_compat.{name}".strip(".")
    names = [entry.name.removeprefix(f"{module}.") for entry in read_entries(name)]
    program = [sys.executable, "-m", "tests.site.signatures", module, *names]
    process = subprocess.run(program, check=False, capture_output=True, text=True, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    signatures = json.loads(process.stdout.splitlines()[-1])
    return {f"{module}.{short_name}": signatures[short_name] for short_name in signatures}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_page_of_a_package_has_its_names_and_no_others(site: Path, name: str) -> None:
    names = {entry.name.removeprefix(f"d2l_compat.{name}.") for entry in read_entries(name)}
    assert {each for each in names if "." not in each} == OWN_NAMES[f"d2l_compat.{name}"] - ALIASES


# Importing a framework takes seconds.
@pytest.mark.parametrize(
    "name", mark_release(PYTHON_PAGES, always=["torch", "common", "alias", ""])
)
def test_the_parameters_are_those_that_python_reports(site: Path, name: str) -> None:
    for framework in PYTHON_FRAMEWORKS.values():
        if framework.module == name and not all(
            find_spec(package.module.partition(".")[0]) for package in framework.packages
        ):
            pytest.skip(f"needs {framework.title}")
    expected = read_signatures(name)
    assert expected
    assert {entry.name: entry.signatures for entry in read_entries(name)} == expected


@pytest.mark.parametrize("name", PAGES)
def test_a_list_of_parameters_describes_all_of_them(site: Path, name: str) -> None:
    for entry in read_entries(name):
        if entry.descriptions:
            (signature,) = entry.signatures or [[]]
            # Java's type parameters, such as <F>, come first.
            types = [parameter for parameter in entry.descriptions if parameter.startswith("<")]
            assert list(entry.descriptions) == types + signature, entry.name
            assert all(entry.descriptions.values()), entry.name


@pytest.mark.parametrize("name", PACKAGES)
def test_masked_softmax_has_a_list_of_parameters(site: Path, name: str) -> None:
    (entry,) = [entry for entry in read_entries(name) if entry.name.endswith(".masked_softmax")]
    assert list(entry.descriptions) == ["X", "valid_lens"]


@pytest.mark.parametrize("name", PAGES)
def test_no_private_name_is_shown(site: Path, name: str) -> None:
    text = read_page(name).get_text()
    assert "_shared" not in text
    assert not PRIVATE.findall(text.replace("__", ""))
    for signature in read_page(name).select("dt.sig"):
        for dotted in DOTTED_NAME.findall(signature.get_text()):
            assert dotted.partition(".")[0] in PUBLIC_MODULES, signature.get_text()


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_the_line_that_defines_a_name(site: Path, name: str) -> None:
    for entry in read_entries(name):
        assert entry.link.startswith(REPOSITORY_ADDRESS)
        path, line = entry.link.removeprefix(REPOSITORY_ADDRESS).split("#L")
        definition = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert re.search(rf"\b{entry.short_name}\b", definition), entry
        assert path.endswith(".java") or re.match(r"\s*(class|def)\b", definition), entry


@pytest.mark.parametrize(("language", "word"), [("en", "[source]"), ("zh-TW", "[原始碼]")])
@pytest.mark.parametrize("name", PAGES)
def test_links_are_in_the_language_of_the_page(
    site: Path, name: str, language: str, word: str
) -> None:
    links = read_page(name, language).select("dt.sig > a.external")
    assert {link.text for link in links} <= {word}
    assert len(links) == len(read_entries(name))


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.java")), ids=lambda file: file.stem)
def test_java_has_every_public_name(site: Path, file: Path) -> None:
    # Every public declaration is on a line that begins with "public".
    text = file.read_text(encoding="utf-8")
    public = set()
    for declaration in re.findall(r"^ *public ([^({;=\n]+)", text, re.MULTILINE):
        type_and_name = re.sub(r" (extends|implements|permits) .*|<.*?>+", "", declaration)
        public.add(type_and_name.split()[-1])
    public -= MEMBERS_OF_PRIVATE_CLASSES
    documented = {each.short_name for each in read_entries("java") if f"/{file.name}#" in each.link}
    assert {name for name in documented if name in public or not CONSTANT.fullmatch(name)} == public


def test_java_has_the_constants_of_its_enums(site: Path) -> None:
    names = {entry.name for entry in read_entries("java")}
    layout, colors = "d2l.RotaryEncoding.Layout", "d2l.ColorMap"
    assert {
        f"{layout}.INTERLEAVED",
        f"{layout}.HALVES",
        f"{colors}.BLUES",
        f"{colors}.REDS",
    } <= names


def test_each_signature_of_java_has_its_own_anchor(site: Path) -> None:
    names = [entry.name for entry in read_entries("java")]
    assert len(names) == len({*names}) > 50
    for entry in read_entries("java"):  # an anchor ends with the types of the parameters
        _, parenthesis, types = entry.name.removesuffix(")").partition("(")
        num_types = len(types.split(",")) if types else 0
        assert not parenthesis or len(entry.signatures[0]) == num_types
    links = {link["href"] for link in read_page("java").select("dd a.internal")}
    assert links <= {f"#{name}" for name in names}
