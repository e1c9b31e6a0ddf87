"""What files of tests say that they read (tools/changed) is there."""

import ast
from pathlib import Path

import pytest

from d2l_compat.frameworks import FACES
from tools.changed.__main__ import READS, _found
from tools.changed.imports import is_anothers, used
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


@pytest.mark.parametrize("framework", FACES)
def test_a_faces_check_depends_on_no_other_face_and_not_on_the_site(framework: str) -> None:
    """It would on all of them, if one of its programs imported a name that is not known."""
    found = [each.file for pattern in READS["faces"] for each in _found(pattern, framework)]
    programs = [file for file in found if file.suffix == ".py"]
    files = [file.relative_to(ROOT) for file in used(programs, framework, ROOT)]
    faces = [file for file in files if file.parts[:1] == ("d2l_compat",) or "faces" in file.parts]
    assert not [file for file in faces if is_anothers(file, framework)]
    assert not [file for file in files if "site" in file.parts]
