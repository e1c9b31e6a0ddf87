"""A toy lesson in the place of all others runs in the imitations of Colab and Binder."""

from collections.abc import Iterator

import pytest

from d2l_compat.frameworks import FACES
from tests.elsewhere.places import CAN_IMITATE, LACKING, WHY_NOT
from tests.growth.toys import Project, Toy
from tools.weave.lessons import ROOT, lessons

# By their whole names: a new test beside them is not counted, and a renamed one is missed.
RUN_A_NOTEBOOK = [
    f"tests/elsewhere/test_{place}.py::test_a_notebook_runs_on_{place}_{what}"
    for place, what in (
        ("colab", "and_its_first_cell_adds_what_is_missing_alone"),
        ("binder", "in_its_memory"),
    )
]


@pytest.fixture
def framework(pytestconfig: pytest.Config) -> str:
    """One that Colab has."""
    installed = pytestconfig.getoption("frameworks").split()
    for name, about in FACES.items():
        if name in installed and not {*about.packages} & {*LACKING}:
            return name
    pytest.skip("Colab has none of these frameworks")


@pytest.fixture
def project(framework: str) -> Iterator[Project]:
    copy = Project(ROOT / "build" / "growth" / "elsewhere")
    copy.add(Toy("elsewhere", ("zh-TW",), (framework,)))
    with copy.without([folder.name for folder in lessons()]):
        copy.run("tools")
        yield copy


@pytest.mark.skipif(not CAN_IMITATE, reason=WHY_NOT)
def test_it_runs_on_colab_and_on_binder(project: Project, framework: str) -> None:
    assert project.test(*RUN_A_NOTEBOOK, "--frameworks", framework) == len(RUN_A_NOTEBOOK)
