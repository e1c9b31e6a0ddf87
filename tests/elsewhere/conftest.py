"""Fixtures: the environments of services, the choice of frameworks, and a repository of the project."""

from pathlib import Path

import pytest

from tests.elsewhere.services import (
    CAN_IMITATE,
    UNSUPPORTED_PLATFORM,
    list_outdated,
    make_repository,
)


@pytest.fixture(scope="session")
def services() -> None:
    """Check that the environments of services exist and are up to date."""
    if not CAN_IMITATE:
        pytest.skip(UNSUPPORTED_PLATFORM)
    if outdated := list_outdated():
        pytest.fail(f"run `python -m tests.elsewhere` first, for {', '.join(outdated)}")


@pytest.fixture
def skip_unless_requested(request: pytest.FixtureRequest) -> None:
    """Skip a framework that is not in ``--frameworks``."""
    framework = request.getfixturevalue("framework")
    if framework not in request.config.getoption("frameworks").split():
        pytest.skip(f"{framework} is not in --frameworks")


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a git repository with the project's files, as on GitHub."""
    folder = tmp_path_factory.mktemp("repository")
    make_repository(folder)
    return folder
