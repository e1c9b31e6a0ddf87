"""What files of tests say that they read (tools/changed) is there."""

import ast
from pathlib import Path

import pytest

from tools.changed.views import VIEWS
from tools.weave.lessons import ROOT

SAYING = [
    file for file in ROOT.glob("tests/**/test_*.py") if "\nREADS = " in file.read_text("utf-8")
]


@pytest.mark.parametrize("file", SAYING, ids=lambda file: file.stem)
def test_what_a_file_of_tests_reads_is_there(file: Path) -> None:
    said = [
        node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.Assign)
    ]
    (reads,) = (node.value for node in said if ast.unparse(node.targets[0]) == "READS")
    for pattern in ast.literal_eval(reads):
        view, _, glob = pattern.rpartition(" of ")
        assert view in ("", *VIEWS)
        assert glob.startswith("build/") or any(ROOT.glob(glob)), pattern
