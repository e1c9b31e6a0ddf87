"""Tests of the site's table of names, which is read from the code, against the exports.txt of each framework."""

from pathlib import Path

import pytest

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.site.names import PACKAGE, read_names, render_table

EXPORTS = {
    name: Path(__file__).parent.joinpath("each", name, "exports.txt").read_text().split()
    for name in PYTHON_FRAMEWORKS
}


@pytest.mark.parametrize("framework", PYTHON_FRAMEWORKS)
def test_names_are_read_from_code(framework: str):
    assert sorted(read_names(PACKAGE / PYTHON_FRAMEWORKS[framework].module)) == EXPORTS[framework]


def test_table_marks_frameworks_of_each_name():
    rows = [line.strip("|").replace("`", "").split("|") for line in render_table().splitlines()]
    for column, framework in enumerate(PYTHON_FRAMEWORKS, start=2):
        marked = [row[0].strip() for row in rows if row[column].strip() == "✓"]
        assert sorted(marked) == EXPORTS[framework]
