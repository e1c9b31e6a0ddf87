"""A toy lesson in the place of all others runs in the imitations of Colab and Binder."""

from collections.abc import Iterator

import pytest

from d2l_compat.frameworks import FACES
from tests.elsewhere.places import CAN_IMITATE, LACKING, WHY_NOT
from tests.growth.toys import Project, Toy
from tools.weave.lessons import ROOT, lessons


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
    which = "runs_on_colab or runs_on_binder"
    assert project.test("tests/elsewhere", "-k", which, "--frameworks", framework) == 2
