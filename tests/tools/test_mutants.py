"""Test that the faults in tests/mutants still fit the current files. ``make mutants`` tries them."""

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from d2l_compat.frameworks import FRAMEWORKS
from tests.mutants.__main__ import Outcomes, is_noticed, render_report, try_unchanged
from tests.mutants.fault import Fault, OutdatedFaultError
from tests.mutants.tables import EVERYWHERE, FAULTS, ROWS
from tests.mutants.trial import MAVEN, NBVAL, Check, Outcome, list_checks, list_used_checks
from tools.weave.lessons import ROOT, list_lessons


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the folders that faults are put into."""
    copy = tmp_path_factory.mktemp("project")
    for folder in ("lessons", "notebooks", "d2l_compat"):
        ignored = shutil.ignore_patterns("target", "__pycache__")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    return copy


@pytest.mark.parametrize("fault", EVERYWHERE, ids=str)
def test_every_fault_still_fits(project: Path, fault: Fault) -> None:
    file = project / fault.file
    before = file.read_bytes()
    try:
        fault.put_into(project)
        assert file.read_bytes() != before
    finally:
        file.write_bytes(before)


# One in Python and one in Java.
LESSON_FAULTS = [
    next(f for f in EVERYWHERE if f.place == "lesson" and f.framework == framework)
    for framework in ("pytorch", "djl")
]


@pytest.mark.parametrize("fault", LESSON_FAULTS, ids=str)
def test_a_fault_in_a_lesson_is_woven_into_its_notebook(project: Path, fault: Fault) -> None:
    files = [project / fault.file, *(edition.path for edition in fault.find_notebooks(project))]
    before = {file: file.read_bytes() for file in files}
    try:
        fault.put_into(project)
        fault.weave_into(project)
        assert all(file.read_bytes() != old for file, old in before.items())
    finally:
        for file, old in before.items():
            file.write_bytes(old)


@pytest.mark.parametrize("fault", LESSON_FAULTS, ids=str)
def test_a_lessons_fault_is_tried_with_its_claims_and_with_nbval(fault: Fault) -> None:
    (first, claims), (second, nbval) = list_checks(fault)
    assert (first, second) == ("tests", "nbval")
    assert nbval == Check(NBVAL, tuple(fault.list_files()))
    if fault.framework == "djl":
        assert {"--nbval-lax", "--claims"} < {*claims.command}
        assert claims.tests == nbval.tests
    else:
        assert claims.tests == (f"lessons/{fault.lesson}/claims.py",)


def test_each_lesson_and_each_framework_has_faults() -> None:
    assert all(ROWS)
    assert max(Counter(map(str, EVERYWHERE)).values()) == 1
    assert {f.lesson for f in FAULTS if f.place == "lesson"} == {
        each.name for each in list_lessons()
    }
    for framework in FRAMEWORKS:
        places = {fault.place for fault in FAULTS if fault.framework == framework}
        assert places == {"lesson", "shim", "stored"}


def test_a_fault_that_no_longer_fits_is_refused(project: Path) -> None:
    for old, new, words in (
        ("no such code", "", "is 0 times"),
        ("P[:, 0::2]", "P[:, 0::2]", "nothing"),
    ):
        fault = Fault("jax", "name", "d2l_compat/_shared/encoding.py", old, new)
        with pytest.raises(OutdatedFaultError, match=words):
            fault.put_into(project)


def test_tests_that_noticed_faults_are_run_once_without_them() -> None:
    claims = "pytest", "--framework", "jax"
    noticed = [
        Check(claims, ("claims.py::one",), ("--first", "cell")),
        Check(claims, ("claims.py::two", "claims.py::one")),
        Check((*MAVEN, "test")),
    ]
    languages = [Check(NBVAL, (f"notebooks/{name}/jax/page.ipynb",)) for name in ("en", "zh-TW")]
    again = list_used_checks(
        [*(Outcome(noticed_by=by) for by in (*noticed, *languages, *noticed)), Outcome()]
    )
    assert again == [
        Check(claims, ("claims.py::one", "claims.py::two")),
        noticed[2],
        Check(NBVAL, (*languages[0].tests, *languages[1].tests)),
    ]


def test_a_test_that_fails_without_a_fault_has_noticed_nothing() -> None:
    class Copies:
        """Copies of the project in which the second of two tests fails with or without a fault."""

        def try_unchanged(self, check: Check) -> Outcome:
            return Outcome(["two"], noticed_by=replace(check, tests=check.tests[1:]))

    right, wrong = (
        Outcome([n], noticed_by=Check(("pytest",), (f"a.py::{n}",))) for n in ("one", "two")
    )
    said: list[Outcomes] = [{"tests": right}, {"tests": wrong}]
    with ThreadPoolExecutor(1) as pool:
        try_unchanged(Copies(), pool, said)
    assert [is_noticed(each) for each in said] == [True, False]


def test_a_check_that_did_not_run_has_noticed_nothing() -> None:
    fault = FAULTS[0]
    said: Outcomes = {"nbval": Outcome(void="over the limit"), "tests": Outcome()}
    assert not is_noticed(said)
    assert "| void | - |" in render_report({fault: said})
    said["tests"].noticed.append("test_something")
    assert is_noticed(said)
