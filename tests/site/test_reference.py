"""The reference has every name, its signature as Python has it, and a link to where it is defined.

Nothing in it is known to the shim alone.
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

from d2l_compat.frameworks import FACES
from tests.site.browser import SITE
from tests.site.conftest import leave_to_release
from tools.site.java import FOLDER
from tools.site.reference import OWN
from tools.weave.launch import BRANCH, REPOSITORY
from tools.weave.lessons import ROOT

ANOTHER_NAME = {
    "EncoderBlock",
    "nn_Module",
}  # of TransformerEncoderBlock, and of the framework's Module
OF_FACES = [framework.face for framework in FACES.values()]
OF_PYTHON = [*OF_FACES, "common", "alias", ""]
PAGES = [*OF_PYTHON, "kernel", "java"]
IN_REPOSITORY = f"{REPOSITORY}/blob/{BRANCH}/"
OF_A_PRIVATE_CLASS = {"invoke"}
CONSTANT = re.compile(r"[A-Z_]{2,}")  # of an enum, which no "public" goes with

# Where names come from that readers know, and what lessons call two of these.
KNOWN = {"collections", "contextlib", "d2l", "d2l_compat", "numpy", "pathlib", "mx", "nn", "np"} | {
    package.module.partition(".")[0] for each in FACES.values() for package in each.packages
}
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
PRIVATE = re.compile(r"(?<![\w^])_[A-Za-z]\w*")


@dataclass(frozen=True)
class Entry:
    """A name, as a page has it."""

    name: str  # in full
    signatures: list[list[str]]  # the parameters of each
    listed: dict[str, str]  # where they have a list: what it says of each
    link: str  # to the source

    @property
    def short(self) -> str:
        return self.name.partition("(")[0].rpartition(".")[2]


@cache
def page(name: str, language: str = "en") -> Tag:
    file = SITE / language / "reference" / "d2l_compat" / name / "index.html"
    article = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser").select_one("article")
    assert article
    return article


@cache
def entries(name: str) -> list[Entry]:
    return [entry(shown) for shown in page(name).select("dl.java" if name == "java" else "dl.py")]


def entry(shown: Tag) -> Entry:
    heads = shown.find_all("dt", recursive=False)
    (link,) = shown.select(":scope > dt > a.external")
    return Entry(
        str(heads[0]["id"]),
        [[named(each) for each in head.select(".sig-param")] for head in heads if is_called(head)],
        {
            name.text: str(name.next_sibling or "").strip("– ")
            for field in shown.select(":scope > dd > dl.field-list > dt")
            if field.text == "Parameters:"
            for name in field.find_next_sibling("dd").select("p > strong")  # type: ignore[union-attr]
        },
        str(link["href"]),
    )


def is_called(head: Tag) -> bool:
    """Or made; a class may show no parentheses."""
    return bool(head.select(".sig-paren")) or head.text.strip().startswith("class ")


def named(parameter: Tag) -> str:
    """With its stars, which may be all there is."""
    text, name = parameter.get_text(), parameter.select_one(".n")
    return "*" * (len(text) - len(text.lstrip("*"))) + (name.text if name else "")


@cache
def of_python(name: str) -> dict[str, list[list[str]]]:
    """What Python says of a module's names, in a process of its own."""
    module = f"d2l_compat.{name}".strip(".")
    names = [each.name.removeprefix(f"{module}.") for each in entries(name)]
    program = [sys.executable, "-m", "tests.site.signatures", module, *names]
    done = subprocess.run(program, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return {
        f"{module}.{each}": said for each, said in json.loads(done.stdout.splitlines()[-1]).items()
    }


@pytest.mark.parametrize("face", OF_FACES)
def test_a_face_page_has_its_names_and_no_others(site: Path, face: str) -> None:
    names = {each.name.removeprefix(f"d2l_compat.{face}.") for each in entries(face)}
    assert {name for name in names if "." not in name} == OWN[f"d2l_compat.{face}"] - ANOTHER_NAME


# A framework takes seconds to import.
@pytest.mark.parametrize("name", leave_to_release(OF_PYTHON, but=["torch", "common", "alias", ""]))
def test_the_parameters_are_those_of_the_signature(site: Path, name: str) -> None:
    for framework in FACES.values():
        if framework.face == name and not all(
            find_spec(each.module.partition(".")[0]) for each in framework.packages
        ):
            pytest.skip(f"needs {framework.title}")
    said = of_python(name)
    assert said
    assert {each.name: each.signatures for each in entries(name)} == said


@pytest.mark.parametrize("name", PAGES)
def test_a_list_of_parameters_has_all_of_them_and_says_something_of_each(
    site: Path, name: str
) -> None:
    for each in entries(name):
        if each.listed:
            (signature,) = each.signatures or [[]]
            kinds = [listed for listed in each.listed if listed.startswith("<")]  # Java's <F>
            assert list(each.listed) == kinds + signature, each.name
            assert all(each.listed.values()), each.name


@pytest.mark.parametrize("name", OF_FACES)
def test_masked_softmax_has_such_a_list(site: Path, name: str) -> None:
    (found,) = [each for each in entries(name) if each.name.endswith(".masked_softmax")]
    assert list(found.listed) == ["X", "valid_lens"]


@pytest.mark.parametrize("name", PAGES)
def test_a_reader_sees_no_name_that_only_the_shim_knows(site: Path, name: str) -> None:
    text = page(name).get_text()
    assert "_shared" not in text
    assert not PRIVATE.findall(text.replace("__", ""))
    for signature in page(name).select("dt.sig"):
        for dotted in DOTTED.findall(signature.get_text()):
            assert dotted.partition(".")[0] in KNOWN, signature.get_text()


@pytest.mark.parametrize("name", PAGES)
def test_a_link_leads_to_the_line_that_defines_the_name(site: Path, name: str) -> None:
    for each in entries(name):
        assert each.link.startswith(IN_REPOSITORY)
        path, line = each.link.removeprefix(IN_REPOSITORY).split("#L")
        defines = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        assert re.search(rf"\b{each.short}\b", defines), each
        assert path.endswith(".java") or re.match(r"\s*(class|def)\b", defines), each


@pytest.mark.parametrize(("language", "word"), [("en", "[source]"), ("zh-TW", "[原始碼]")])
@pytest.mark.parametrize("name", PAGES)
def test_links_speak_the_language_of_the_page(
    site: Path, name: str, language: str, word: str
) -> None:
    links = page(name, language).select("dt.sig > a.external")
    assert {link.text for link in links} <= {word}
    assert len(links) == len(entries(name))


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.java")), ids=lambda file: file.stem)
def test_java_has_every_public_name(site: Path, file: Path) -> None:
    """Read from the lines that begin with ``public``, as all in which one is declared do."""
    declared = re.findall(r"^ *public ([^({;=\n]+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    bare = [re.sub(r" (extends|implements|permits) .*|<.*?>+", "", each) for each in declared]
    public = {each.split()[-1] for each in bare} - OF_A_PRIVATE_CLASS
    shown = {each.short for each in entries("java") if f"/{file.name}#" in each.link}
    assert {each for each in shown if each in public or not CONSTANT.fullmatch(each)} == public


def test_java_has_the_constants_of_its_enums(site: Path) -> None:
    shown = {each.name for each in entries("java")}
    layout, colors = "d2l.RotaryEncoding.Layout", "d2l.ColorMap"
    assert {
        f"{layout}.INTERLEAVED",
        f"{layout}.HALVES",
        f"{colors}.BLUES",
        f"{colors}.REDS",
    } <= shown


def test_each_signature_of_java_has_a_place_of_its_own(site: Path) -> None:
    names = [each.name for each in entries("java")]
    assert len(names) == len({*names}) > 50
    for each in entries("java"):  # the place tells the parameters' types
        _, is_called, types = each.name.removesuffix(")").partition("(")
        assert not is_called or len(each.signatures[0]) == len(types.split(",")) * bool(types)
    inside = {link["href"] for link in page("java").select("dd a.internal")}
    assert inside <= {f"#{name}" for name in names}
