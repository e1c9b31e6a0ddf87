"""Test how checks are distributed over machines: the workflows, the merged report, and the choice of GPUs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.project import summary
from tools.run import devices
from tools.run.page_kernel import GPU_CODE
from tools.weave.lessons import ROOT, list_notebooks

WORKFLOW = ROOT / ".github" / "workflows" / "check.yml"
WORKFLOWS = sorted(WORKFLOW.parent.iterdir())
CODE_FILES = sorted({notebook.code for notebook in list_notebooks()})
REPORT = """<testsuites><testsuite name="pytest" tests="3" failures="1" errors="0" skipped="1">
<testcase classname="notebooks.en.jax.tiny" name="Cell 0" time="1"/>
<testcase classname="tests.a" name="b" time="0"><skipped message="no GPU"/></testcase>
<testcase classname="notebooks.en.jax.tiny" name="Cell 1" time="0">{}</testcase>
</testsuite></testsuites>
"""
FAILURE = "<failure>Notebook cell execution failed\nCell 1: Cell outputs differ</failure>"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_workflows_are_valid_and_use_existing_targets(workflow: Path):
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


def test_a_release_is_checked_and_published_without_a_password():
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


def test_reports_of_several_machines_are_merged_with_their_failures(reports, capsys):
    assert summary.main([str(reports)]) == 0
    output = capsys.readouterr().out
    assert "| jax-3.11 | 2 | 1 | 0 |\n| jax-3.13 | 2 | 1 | 0 |\n" in output
    assert (reports.parent / "build" / "merged.xml").read_text().count("<testcase ") == 6
    report = reports / "report-jax-3.13/reports/notebooks.xml"
    report.write_text(REPORT.format(FAILURE))
    assert summary.main([str(reports)]) == 1
    output = capsys.readouterr().out
    assert "| jax-3.13 | 1 | 1 | 1 |" in output
    assert "* jax-3.13: `notebooks.en.jax.tiny` Cell 1: Cell 1: Cell outputs differ" in output
    report.unlink()
    assert summary.main([str(reports)]) == 1
    assert "* jax-3.13: no report" in capsys.readouterr().out


def test_a_missing_report_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(summary, "ROOT", tmp_path)
    assert summary.main([str(tmp_path)]) == 1


@pytest.mark.parametrize("code", CODE_FILES, ids=lambda code: f"{code.parent.name}/{code.name}")
def test_one_line_in_a_lessons_code_chooses_the_device(code):
    text = code.read_text(encoding="utf-8")
    assert sum(text.count(cpu_code) for cpu_code in GPU_CODE) == 1


def test_frameworks_that_see_a_gpu_are_printed(monkeypatch, capsys):
    monkeypatch.setattr(devices, "count_gpus", {"pytorch": 2, "jax": 0}.__getitem__)
    assert devices.main(["jax", "pytorch", "djl"]) == 0
    output = capsys.readouterr()
    assert output.out == "pytorch\n"
    assert output.err == "No GPU, or no build for one: jax, djl\n"
    assert devices.main(["jax"]) == 1
