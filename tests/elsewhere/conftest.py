"""What these tests share: the imitations, the frameworks asked for, and the project as a forge has it."""

from pathlib import Path

import pytest

from tests.elsewhere.places import CAN_IMITATE, WHY_NOT, make_repository, not_ready


@pytest.fixture(scope="session")
def places() -> None:
    """They are there, and made of what is written today."""
    if not CAN_IMITATE:
        pytest.skip(WHY_NOT)
    if missing := not_ready():
        pytest.fail(f"to be made first, by `python -m tests.elsewhere`: {', '.join(missing)}")


@pytest.fixture
def only_if_asked_for(request: pytest.FixtureRequest) -> None:
    """Leaves out a framework that is not in ``--frameworks``."""
    framework = request.getfixturevalue("framework")
    if framework not in request.config.getoption("frameworks").split():
        pytest.skip(f"{framework} is not among the frameworks asked for, or not installed")


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a forge has it."""
    folder = tmp_path_factory.mktemp("repository")
    make_repository(folder)
    return folder
