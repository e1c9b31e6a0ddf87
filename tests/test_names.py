"""The site's table of names, read from the code, is what the faces really have."""

import subprocess
import sys

import pytest

from d2l_compat.frameworks import FACES
from tools.site.names import PACKAGE, names, table

READS = ("d2l_compat/**/*.py",)


def test_the_table_is_what_can_be_imported(pytestconfig: pytest.Config):
    installed = {*pytestconfig.getoption("frameworks").split()}
    rows = [line.strip("| ").replace("`", "") for line in table().splitlines()]
    cells = [[cell.strip() for cell in line.split("|")] for line in rows]
    for number, framework in enumerate(FACES):
        listed = names(PACKAGE / FACES[framework].face)
        assert [*listed] == [*dict.fromkeys(listed)]
        if framework not in installed:
            continue
        code = f"from d2l_compat import {FACES[framework].face} as d2l; print(*d2l.__all__)"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
        )
        assert {*done.stdout.split()} == listed.keys()
        marked = {row[0] for row in cells if len(row) > number + 2 and row[number + 2] == "✓"}
        assert marked == listed.keys()


@pytest.mark.parametrize("framework", FACES)
def test_every_name_has_a_row(framework: str):
    there = {line.split("`")[1] for line in table().splitlines()}
    assert names(PACKAGE / FACES[framework].face).keys() <= there
