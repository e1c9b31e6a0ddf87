"""Test how the Java kernel is started, and how a failing Java cell is reported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import write_chapter
from tools.run import java
from tools.run.java import SPEC
from tools.weave.lessons import ROOT


def test_the_kernel_finds_the_classes_and_downloads_nothing() -> None:
    environment = SPEC["env"]
    assert environment["OPT_OUT_TRACKING"] == environment["DJL_OFFLINE"] == "true"
    for path in (*environment["JJAVA_CLASSPATH"].split(":"), environment["DJL_CACHE_DIR"]):
        assert Path(path).is_relative_to(ROOT)
    # Both are needed for the same decimal point on every machine.
    assert {"-Duser.language=en", "-Duser.country=US"} <= set(SPEC["argv"])


def test_writing_the_kernels_file_keeps_the_installers_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_file, kernel_file = tmp_path / "cached.json", tmp_path / "kernel.json"
    cache_file.write_text("{}")
    kernel_file.hardlink_to(cache_file)
    monkeypatch.setattr(java, "KERNEL", tmp_path)
    java.main()
    assert json.loads(kernel_file.read_text()) == SPEC
    assert cache_file.read_text() == "{}"


def test_a_java_cell_that_fails_is_reported_with_the_compilers_message(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    if "djl" not in pytestconfig.getoption("frameworks").split():
        pytest.skip("DJL is not installed")
    lesson = tmp_path / "lessons" / "tiny"
    lesson.mkdir(parents=True)
    write_chapter(tmp_path, "tiny")
    (lesson / "text.en.md").write_text("# Title\n\n<<one>>\n")
    (lesson / "code.a.java").write_text("// %% one\nint x = 1;\nint y = nothing + x;\n")
    process = subprocess.run(
        [sys.executable, "-m", "tools", "--root", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "code.a.java:2: in en/a/tiny, cell 'one': " in process.stdout
    assert "symbol:   variable nothing" in process.stdout
    assert not (tmp_path / "notebooks").exists()
