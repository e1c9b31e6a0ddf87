"""Two toy lessons, added to a copy of the project, go through all that lessons go through."""

import re
from dataclasses import dataclass

import nbformat
import pytest

from d2l_compat.frameworks import FACES, FRAMEWORKS
from tests.growth.toys import Project, Toy, toys
from tools.weave.lessons import LANGUAGES, ROOT, lessons

# Of the project's own tests, those that hold each lesson, each edition or each fault.
OF_EACH = (
    "lessons/test_notebooks.py",
    "tools/test_launch.py",
    "tools/test_mutants.py",
    "tools/test_machines.py",
    "lessons/test_lessons.py",
    "tools/test_links.py",
    "lessons/test_prose.py",
)
OF_ALL = "generated_parts", "every_notebook", "every_code_file", "there_are_enough"


@pytest.fixture(scope="module")
def installed(pytestconfig: pytest.Config) -> list[str]:
    chosen = pytestconfig.getoption("frameworks").split()
    return [framework for framework in FRAMEWORKS if framework in chosen]


@pytest.fixture(scope="module")
def chapter(installed: list[str]) -> tuple[Toy, Toy]:
    return toys(installed)


@pytest.fixture(scope="module")
def project(chapter: tuple[Toy, Toy]) -> Project:
    """The copy, after `make`; its other lessons were not executed again."""
    copy = Project(ROOT / "build" / "growth" / "project")
    for toy in chapter:
        copy.add(toy)
    with copy.without([folder.name for folder in lessons()]):
        copy.said = copy.run("tools", "--jobs", "2")
    copy.run("tools.project.documents")
    return copy


def names(chapter: tuple[Toy, Toy]) -> str:
    """For pytest's -k."""
    return " or ".join(toy.name for toy in chapter)


def test_every_edition_there_is_was_executed_and_those_there_are_not_are_named(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    for toy in chapter:
        made = {str(path.relative_to(project.root)) for path in project.root.glob(toy.everywhere)}
        assert made == {*toy.notebooks}
    two, every = chapter
    lacking = ["en", *(name for name in every.frameworks if name not in two.frameworks)]
    assert f"There is no edition of {two.name} in {', '.join(lacking)}.\n" in project.said


def test_nbval_executes_them_again_and_finds_no_difference(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    notebooks = [name for toy in chapter for name in toy.notebooks]
    stored = [nbformat.read(project.root / name, as_version=4) for name in notebooks]
    cells = sum(cell.cell_type == "code" for notebook in stored for cell in notebook.cells)
    held = sum(len(toy.frameworks) for toy in chapter)
    assert project.test("--nbval", "--claims", "-n", "2", *notebooks) == cells + held


def test_every_notebook_is_listed_under_its_lessons_title(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    listed = (project.root / "notebooks" / "README.md").read_text(encoding="utf-8")
    _, *sections = listed.split("\n## ")
    titles = [section.partition("\n")[0] for section in sections]
    assert titles[len(lessons()) :] == [f"{chapter[0].title} 中文", chapter[1].title]
    for toy, section in zip(chapter, sections[-2:], strict=True):
        assert re.findall(r"\[(?:Notebook|筆記本)\]\((.*?)\)", section) == [
            f"{language}/{framework}/{toy.name}.ipynb"
            for framework in toy.frameworks
            for language in toy.languages
        ]


def test_the_projects_own_tests_hold_them(project: Project, chapter: tuple[Toy, Toy]) -> None:
    files = [f"tests/{name}" for name in OF_EACH]
    which = " or ".join([names(chapter), *OF_ALL])
    of_each_notebook = (
        7  # at least: whole, executed, as woven, as claimed, its links, its first cell
    )
    notebooks = sum(len(toy.notebooks) for toy in chapter)
    assert project.test("-n", "2", *files, "-k", which) > of_each_notebook * notebooks


def test_a_claim_that_is_untrue_fails_in_its_notebook_and_so_does_a_cell_that_is_none_of_the_lessons(
    project: Project, chapter: tuple[Toy, Toy], installed: list[str]
) -> None:
    in_python = next((name for name in chapter[1].frameworks if name in FACES), None)
    for framework in {in_python, "djl"} & {*installed}:
        held = Held(project, chapter[1], framework)
        untrue = held.said(claims={"== [6]": "== [7]"})
        lacking = held.said(notebook={"0, 1, 4": "0, 1, 2 * 2"})
        assert "test_the_sum_is_six" in untrue
        assert "assert [6.0] == [7]" in untrue
        assert "not tested, for these cells were not executed: curve" in lacking
        for each in (untrue, lacking):
            assert each.splitlines()[-1].startswith("1 failed, ")


@dataclass
class Held:
    """A notebook of a toy, held to its claims."""

    project: Project
    toy: Toy
    framework: str

    def said(self, **changes: dict[str, str]) -> str:
        """What is said where these words are others, in the claims or in the notebook."""
        notebook = f"notebooks/en/{self.framework}/{self.toy.name}.ipynb"
        files = {"claims": f"lessons/{self.toy.name}/claims.py", "notebook": notebook}
        before = {}
        for which, words in changes.items():
            path = self.project.root / files[which]
            text = before[path] = path.read_text(encoding="utf-8")
            for old, new in words.items():
                assert old in text
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
        options = "--nbval", "--claims", "-q", "-p", "no:cacheprovider", "--color=no"
        done = self.project.start("pytest", *options, notebook)
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
        assert done.returncode == 1
        return done.stdout


def test_a_fault_seeded_in_one_is_noticed(project: Project, chapter: tuple[Toy, Toy]) -> None:
    toy = chapter[0]
    framework = toy.frameworks[0]
    fault = f"{framework}, {toy.name}: a row too many"
    said = project.run("tests.mutants", "--by-all", "--only", fault)
    assert f"[1/1] {fault} (lesson): noticed\n" in said
    assert "    nbval: sum (" in said
    assert "    tests: test_the_" in said


def test_the_site_has_their_pages_and_their_slides(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    project.run("tools.site")
    site = project.root / "build" / "site"
    for toy in chapter:
        for language in toy.languages:
            page = (site / language / f"{toy.name}.html").read_text(encoding="utf-8")
            drawing = re.search(r'src="(_images/line\d*\.svg)"', page)
            assert toy.title in (site / language / drawing[1]).read_text(encoding="utf-8")
            assert f'<meta name="description" content="{toy.title}' in page
            assert ("for-jax" in page) == ("jax" in toy.frameworks)
            slides = (site / language / "slides.html").read_text(encoding="utf-8")
            decks = re.findall(rf'href="\.\./(slides/{language}/(\w+)/{toy.name}.html)"', slides)
            assert [framework for _, framework in decks] == [*toy.frameworks]
            assert all((site / path).exists() for path, _ in decks)
    for language in LANGUAGES:
        grown = [toy.name for toy in chapter if language in toy.languages]
        order = [*(folder.name for folder in lessons()), *grown]
        front = (site / language / "index.html").read_text(encoding="utf-8")
        menu = re.findall(r'toctree-l1"><a class="reference internal" href="([-\w]+)\.html"', front)
        assert [name for name in menu if name in order] == order
        for before, name, after in zip(["", *order], order, [*order[1:], ""], strict=False):
            page = (site / language / f"{name}.html").read_text(encoding="utf-8")
            ways = re.findall(r'<a class="(?:prev|next)" rel="\w+" href="([-\w]+)\.html"', page)
            assert ways == [way for way in (before, after) if way]
    live = [f"lessons/{toy.name}/live" for toy in chapter]
    which = f"({names(chapter)}) and not nothing_is_found"  # of colours, which are no lesson's own
    project.test("tests/site", *live, "-k", which)
