"""What spreads the run over machines: the workflow, the merged report, and who sees a GPU."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.project import summary
from tools.run import devices
from tools.run.page_kernel import TO_GPU
from tools.weave.lessons import ROOT, editions

WORKFLOW = ROOT / ".github" / "workflows" / "check.yml"
WORKFLOWS = sorted(WORKFLOW.parent.iterdir())
CODES = sorted({edition.code for edition in editions()})
REPORT = """<testsuites><testsuite name="pytest" tests="3" failures="1" errors="0" skipped="1">
<testcase classname="notebooks.en.jax.tiny" name="Cell 0" time="1"/>
<testcase classname="tests.a" name="b" time="0"><skipped message="no GPU"/></testcase>
<testcase classname="notebooks.en.jax.tiny" name="Cell 1" time="0">{}</testcase>
</testsuite></testsuites>
"""
FAILURE = "<failure>Notebook cell execution failed\nCell 1: Cell outputs differ</failure>"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_a_workflow_is_one_and_names_targets_there_are(workflow: Path):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    subprocess.run([*command, "vendor.github-workflows", str(workflow)], check=True)
    text = workflow.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in re.findall(r"run: make (.*)", text):
        for target in re.findall(r"(?<!\S)[a-z][a-z-]+(?!\S)", line):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_workflow_runs_every_framework():
    frameworks = re.findall(r"framework: \[(.*)\]", WORKFLOW.read_text(encoding="utf-8"))
    assert {*frameworks[0].split(", ")} == {path.stem for path in ROOT.glob("requirements/*.lock")}


def test_what_is_released_was_checked_and_is_published_without_a_password():
    jobs = yaml.safe_load((WORKFLOW.parent / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["check"]["uses"] == f"./{WORKFLOW.relative_to(ROOT)}"
    assert "workflow_call:" in WORKFLOW.read_text(encoding="utf-8")
    for name in ("package", "site"):
        assert jobs[name]["needs"] == ["check", "build"]
        assert jobs[name]["permissions"]["id-token"] == "write"
    assert "secrets." not in str(jobs)
    assert 'TAG="$GITHUB_REF_NAME"' in str(jobs["build"])


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(summary, "ROOT", tmp_path)
    for machine in ("jax-3.11", "jax-3.13"):
        folder = tmp_path / "all" / f"report-{machine}" / "reports"
        folder.mkdir(parents=True)
        (folder / "notebooks.xml").write_text(REPORT.format(""))
    return tmp_path / "all"


def test_reports_of_several_machines_become_one_and_what_failed_is_named(reports, capsys):
    assert summary.main([str(reports)]) == 0
    said = capsys.readouterr().out
    assert "| jax-3.11 | 2 | 1 | 0 |\n| jax-3.13 | 2 | 1 | 0 |\n" in said
    assert (reports.parent / "build" / "merged.xml").read_text().count("<testcase ") == 6
    its_report = reports / "report-jax-3.13/reports/notebooks.xml"
    its_report.write_text(REPORT.format(FAILURE))
    assert summary.main([str(reports)]) == 1
    said = capsys.readouterr().out
    assert "| jax-3.13 | 1 | 1 | 1 |" in said
    assert "* jax-3.13: `notebooks.en.jax.tiny` Cell 1: Cell 1: Cell outputs differ" in said
    its_report.unlink()
    assert summary.main([str(reports)]) == 1
    assert "* jax-3.13: no report" in capsys.readouterr().out


def test_no_machine_at_all_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(summary, "ROOT", tmp_path)
    assert summary.main([str(tmp_path)]) == 1


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{code.parent.name}/{code.name}")
def test_one_place_in_a_lessons_code_chooses_the_device(code):
    text = code.read_text(encoding="utf-8")
    assert sum(text.count(on_cpu) for on_cpu in TO_GPU) == 1


def test_those_that_see_a_gpu_are_told_from_the_others(monkeypatch, capsys):
    monkeypatch.setattr(devices, "num_gpus", {"pytorch": 2, "jax": 0}.__getitem__)
    assert devices.main(["jax", "pytorch", "djl"]) == 0
    said = capsys.readouterr()
    assert said.out == "pytorch\n"
    assert said.err == "No GPU, or no build for one: jax, djl\n"
    assert devices.main(["jax"]) == 1
