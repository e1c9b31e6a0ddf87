"""Test that the faults in tests/mutants still fit the current files. ``make mutants`` tries them."""

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from d2l_compat.frameworks import FRAMEWORKS
from tests.mutants.__main__ import Outcomes, is_noticed, render_report, void_failing_checks
from tests.mutants.fault import Fault, OutdatedFaultError
from tests.mutants.tables import ALL_FAULTS, FAULTS, LESSON_FAULTS
from tests.mutants.trial import MAVEN, NBVAL, Check, Outcome, list_checks, merge_failing_checks
from tools.weave.lessons import ROOT, list_lessons


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the folders whose files may have faults."""
    copy = tmp_path_factory.mktemp("project")
    for folder in ("lessons", "notebooks", "d2l_compat"):
        ignored = shutil.ignore_patterns("target", "__pycache__")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    return copy


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=str)
def test_every_fault_still_fits(project: Path, fault: Fault) -> None:
    file = project / fault.file
    before = file.read_bytes()
    try:
        fault.put_into(project)
        assert file.read_bytes() != before
    finally:
        file.write_bytes(before)


# One in a Python program and one in a Java program.
EXAMPLE_FAULTS = [
    next(f for f in ALL_FAULTS if f.kind == "lesson" and f.framework == framework)
    for framework in ("pytorch", "djl")
]


@pytest.mark.parametrize("fault", EXAMPLE_FAULTS, ids=str)
def test_a_fault_in_a_lesson_is_woven_into_its_notebook(project: Path, fault: Fault) -> None:
    notebooks = [notebook.path for notebook in fault.find_notebooks(project)]
    before = {file: file.read_bytes() for file in (project / fault.file, *notebooks)}
    try:
        fault.put_into(project)
        fault.weave_into(project)
        assert all(file.read_bytes() != content for file, content in before.items())
    finally:
        for file, content in before.items():
            file.write_bytes(content)


@pytest.mark.parametrize("fault", EXAMPLE_FAULTS, ids=str)
def test_a_lessons_fault_is_tried_with_its_claims_and_with_nbval(fault: Fault) -> None:
    (first, claims), (second, nbval) = list_checks(fault)
    assert (first, second) == ("tests", "nbval")
    assert nbval == Check(NBVAL, tuple(fault.list_notebook_files()))
    if fault.framework == "djl":
        assert {"--nbval-lax", "--claims"} < {*claims.command}
        assert claims.tests == nbval.tests
    else:
        assert claims.tests == (f"lessons/{fault.lesson}/claims.py",)


def test_each_lesson_and_each_framework_has_faults() -> None:
    assert all(LESSON_FAULTS)
    assert max(Counter(map(str, ALL_FAULTS)).values()) == 1
    assert {f.lesson for f in FAULTS if f.kind == "lesson"} == {
        lesson.name for lesson in list_lessons()
    }
    for framework in FRAMEWORKS:
        places = {fault.kind for fault in FAULTS if fault.framework == framework}
        assert places == {"lesson", "shim", "stored"}


def test_a_fault_that_no_longer_fits_is_rejected(project: Path) -> None:
    for old, new, words in (
        ("no such code", "", "occurs 0 times"),
        ("P[:, 0::2]", "P[:, 0::2]", "nothing"),
    ):
        fault = Fault("jax", "name", "d2l_compat/_shared/encoding.py", old, new)
        with pytest.raises(OutdatedFaultError, match=words):
            fault.put_into(project)


def test_tests_that_noticed_faults_are_run_once_without_them() -> None:
    claims = "pytest", "--framework", "jax"
    test_checks = [
        Check(claims, ("lessons/a/claims.py::one",), ("--first", "cell")),
        Check(claims, ("lessons/a/claims.py::two", "lessons/a/claims.py::one")),
        Check(claims, ("lessons/b/claims.py::one",)),
        Check((*MAVEN, "test")),
    ]
    english, chinese = (
        Check(NBVAL, (f"notebooks/{language}/jax/page.ipynb",)) for language in ("en", "zh-TW")
    )
    checks = [*test_checks, english, chinese, *test_checks]
    outcomes = [Outcome(failing_check=check) for check in checks]
    assert merge_failing_checks([*outcomes, Outcome()]) == [
        Check(claims, ("lessons/a/claims.py::one", "lessons/a/claims.py::two")),
        *test_checks[2:],
        Check(NBVAL, (*english.tests, *chinese.tests)),
    ]


def test_a_test_that_fails_without_a_fault_does_not_count() -> None:
    class FakeWorkshop:
        """A workshop in which the second of two tests fails with or without a fault."""

        def try_without_fault(self, check: Check) -> Outcome:
            return Outcome(["two"], failing_check=replace(check, tests=check.tests[1:]))

    results: list[Outcomes] = []
    for name in ("one", "two"):
        check = Check(("pytest",), (f"a.py::{name}",))
        results.append({"tests": Outcome([name], failing_check=check)})
    with ThreadPoolExecutor(1) as pool:
        void_failing_checks(FakeWorkshop(), pool, results)
    assert [is_noticed(outcomes) for outcomes in results] == [True, False]


def test_a_check_that_did_not_run_does_not_count() -> None:
    fault = FAULTS[0]
    outcomes: Outcomes = {"nbval": Outcome(void_reason="over the limit"), "tests": Outcome()}
    assert not is_noticed(outcomes)
    assert "| void | - |" in render_report({fault: outcomes})
    outcomes["tests"].failures.append("test_something")
    assert is_noticed(outcomes)
