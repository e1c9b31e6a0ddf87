"""Test that two toy lessons, added to a copy of the project, are built and tested like all lessons."""

import re

import nbformat
import pytest

from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tests.growth.toys import Project, Toy, make_toys
from tools.weave.lessons import LANGUAGES, ROOT, list_lessons

# Tests of the project with a case for each lesson, each notebook or each fault.
PARAMETRIZED_TESTS = (
    "lessons/test_notebooks.py",
    "tools/test_launch.py",
    "tools/test_mutants.py",
    "tools/test_machines.py",
    "lessons/test_lessons.py",
    "tools/test_links.py",
    "lessons/test_prose.py",
)
# Parts of the names of tests that test all lessons together.
COMMON_TESTS = "generated_parts", "every_notebook"


@pytest.fixture(scope="module")
def installed(pytestconfig: pytest.Config) -> list[str]:
    """Return the installed frameworks, in the order of their table."""
    names = pytestconfig.getoption("frameworks").split()
    return [framework for framework in FRAMEWORKS if framework in names]


@pytest.fixture(scope="module")
def chapter(installed: list[str]) -> tuple[Toy, Toy]:
    return make_toys(installed)


@pytest.fixture(scope="module")
def project(chapter: tuple[Toy, Toy]) -> Project:
    """Return a copy with the toys after `make`, which did not execute the other lessons."""
    copy = Project(ROOT / "build" / "growth" / "project")
    for toy in chapter:
        copy.add_lesson(toy)
    with copy.remove_lessons([folder.name for folder in list_lessons()]):
        copy.output = copy.run("tools", "--jobs", "2")
    copy.run("tools.project.documents")
    return copy


def join_names(chapter: tuple[Toy, Toy]) -> str:
    """Return an expression for pytest's -k."""
    return " or ".join(toy.name for toy in chapter)


def test_all_notebooks_were_executed_and_missing_ones_are_named(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    for toy in chapter:
        actual = {str(path.relative_to(project.root)) for path in project.root.glob(toy.pattern)}
        assert actual == {*toy.notebooks}
    partial, complete = chapter
    missing = [name for name in complete.frameworks if name not in partial.frameworks]
    message = f"There is no notebook of {partial.name} in {', '.join(['en', *missing])}.\n"
    assert message in project.output


def test_nbval_executes_the_notebooks_and_finds_no_difference(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    notebooks = [name for toy in chapter for name in toy.notebooks]
    contents = [nbformat.read(project.root / name, as_version=4) for name in notebooks]
    cells = sum(cell.cell_type == "code" for content in contents for cell in content.cells)
    claims = sum(len(toy.frameworks) for toy in chapter)
    assert project.test("--nbval", "--claims", "-n", "2", *notebooks) == cells + claims


def test_all_notebooks_are_listed_under_the_titles_of_their_lessons(
    project: Project, chapter: tuple[Toy, Toy]
) -> None:
    readme = (project.root / "notebooks" / "README.md").read_text(encoding="utf-8")
    _, *sections = readme.split("\n## ")
    titles = [section.partition("\n")[0] for section in sections]
    assert titles[len(list_lessons()) :] == [f"{chapter[0].title} 中文", chapter[1].title]
    for toy, section in zip(chapter, sections[-2:], strict=True):
        assert re.findall(r"\[(?:Notebook|筆記本)\]\((.*?)\)", section) == [
            f"{language}/{framework}/{toy.name}.ipynb"
            for framework in toy.frameworks
            for language in toy.languages
        ]


def test_the_projects_tests_accept_the_toys(project: Project, chapter: tuple[Toy, Toy]) -> None:
    files = [f"tests/{name}" for name in PARAMETRIZED_TESTS]
    expression = " or ".join([join_names(chapter), *COMMON_TESTS])
    notebooks = sum(len(toy.notebooks) for toy in chapter)
    # Each notebook has more than seven tests.
    assert project.test("-n", "2", *files, "-k", expression) > 7 * notebooks


def test_a_wrong_claim_and_an_edited_cell_fail_in_the_notebook(
    project: Project, chapter: tuple[Toy, Toy], installed: list[str]
) -> None:
    toy = chapter[1]
    in_python = next((name for name in toy.frameworks if name in PYTHON_FRAMEWORKS), None)
    claims = f"lessons/{toy.name}/claims.py"
    for framework in {in_python, "djl"} & {*installed}:
        notebook = f"notebooks/en/{framework}/{toy.name}.ipynb"
        wrong_claim = run_claims(project, notebook, claims, "== [6]", "== [7]")
        edited_cell = run_claims(project, notebook, notebook, "0, 1, 4", "0, 1, 2 * 2")
        assert "test_the_sum_is_six" in wrong_claim
        assert "assert [6.0] == [7]" in wrong_claim
        assert "not tested, because these cells were not executed: curve" in edited_cell
        for output in (wrong_claim, edited_cell):
            assert output.splitlines()[-1].startswith("1 failed, ")


def run_claims(project: Project, notebook: str, file: str, old: str, new: str) -> str:
    """Test a notebook after a replacement in a file, which must make it fail; return the output."""
    path = project.root / file
    original = path.read_text(encoding="utf-8")
    assert old in original
    path.write_text(original.replace(old, new), encoding="utf-8")
    options = "--nbval", "--claims", "-q", "-p", "no:cacheprovider", "--color=no"
    process = project.run_unchecked("pytest", *options, notebook)
    path.write_text(original, encoding="utf-8")
    assert process.returncode == 1
    return process.stdout


def test_a_fault_in_a_toy_is_noticed(project: Project, chapter: tuple[Toy, Toy]) -> None:
    toy = chapter[0]
    framework = toy.frameworks[0]
    fault = f"{framework}, {toy.name}: a row too many"
    # Without --everywhere, another of the toy's frameworks may have its turn.
    output = project.run("tests.mutants", "--all-checks", "--everywhere", "--only", fault)
    assert f"[1/1] {fault} (lesson): noticed\n" in output
    assert "    nbval: sum (" in output
    assert "    tests: test_the_" in output


def test_the_site_has_the_pages_and_the_slides_of_the_toys(
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
        toy_names = [toy.name for toy in chapter if language in toy.languages]
        order = [*(folder.name for folder in list_lessons()), *toy_names]
        front = (site / language / "index.html").read_text(encoding="utf-8")
        menu = re.findall(r'toctree-l1"><a class="reference internal" href="([-\w]+)\.html"', front)
        assert [name for name in menu if name in order] == order
        for before, name, after in zip(["", *order], order, [*order[1:], ""], strict=False):
            page = (site / language / f"{name}.html").read_text(encoding="utf-8")
            links = re.findall(r'<a class="(?:prev|next)" rel="\w+" href="([-\w]+)\.html"', page)
            assert links == [name for name in (before, after) if name]
    live_claims = [f"lessons/{toy.name}/live" for toy in chapter]
    # Lessons do not set colours, so axe-core need not test them.
    expression = f"({join_names(chapter)}) and not axe_accepts"
    project.test("tests/site", *live_claims, "-k", expression)
