"""``python -m tools.project.summary FOLDER``: one report of many machines' reports, as Markdown.

FOLDER holds a folder for each machine, named ``report-NAME``, with the JUnit files of its checks
somewhere in it. They are merged into build/merged.xml. The exit code is 1 where a test failed or a
machine left no report.
"""

import sys
from pathlib import Path

from junitparser import JUnitXml, TestCase

from tools.weave.lessons import ROOT


def main(arguments: list[str]) -> int:
    (folder,) = map(Path, arguments)
    machines = sorted(path for path in folder.glob("report-*") if path.is_dir())
    merged, rows, faults = JUnitXml(), [], []
    for machine in machines:
        name = machine.name.removeprefix("report-")
        cases = []
        for file in sorted(machine.rglob("*.xml")):
            report = JUnitXml.fromfile(str(file))
            merged += report
            cases += [case for suite in report for case in suite]
        failed = [case for case in cases if case.is_failure or case.is_error]
        skipped = sum(case.is_skipped for case in cases)
        passed = len(cases) - len(failed) - skipped
        rows.append(f"| {name} | {passed} | {skipped} | {len(failed)} |")
        faults += [f"* {name}: {_words(case)}" for case in failed]
        if not cases:
            faults.append(f"* {name}: no report")
    print("| machine | passed | skipped | failed |\n|:--|--:|--:|--:|", *rows, sep="\n")
    if not machines:
        faults.append(f"* no machine's report in {folder}")
    if faults:
        print("\nFailed:\n", *faults, sep="\n")
    (ROOT / "build").mkdir(exist_ok=True)
    merged.write(str(ROOT / "build" / "merged.xml"))
    return 1 if faults else 0


def _words(case: TestCase) -> str:
    """Which test, and the first line that says more than that it failed."""
    said = [line.strip() for result in case.result for line in (result.text or "").splitlines()]
    telling = [line for line in said if line and not line.startswith(("Notebook cell", "Input:"))]
    return f"`{case.classname}` {case.name}: {' '.join(telling[:1])}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
