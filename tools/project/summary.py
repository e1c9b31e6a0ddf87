"""``python -m tools.project.summary FOLDER``: summarize the reports of several machines in Markdown.

FOLDER has a folder ``report-MACHINE`` for each machine, with the JUnit files of its checks at any depth. These files
are merged into build/merged.xml. The exit code is 1 if a test failed or a machine has no report.
"""

import sys
from pathlib import Path

from junitparser import JUnitXml, TestCase

from tools.weave.lessons import ROOT


def main(arguments: list[str]) -> int:
    """Print the summary; return the exit code."""
    (folder,) = map(Path, arguments)
    machines = sorted(path for path in folder.glob("report-*") if path.is_dir())
    merged = JUnitXml()
    rows = []
    failures = []
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
        failures += [f"* {name}: {_describe(case)}" for case in failed]
        if not cases:
            failures.append(f"* {name}: no report")
    print("| machine | passed | skipped | failed |\n|:--|--:|--:|--:|", *rows, sep="\n")
    if not machines:
        failures.append(f"* no machine's report in {folder}")
    if failures:
        print("\nFailed:\n", *failures, sep="\n")
    (ROOT / "build").mkdir(exist_ok=True)
    merged.write(str(ROOT / "build" / "merged.xml"))
    return 1 if failures else 0


def _describe(case: TestCase) -> str:
    """Return the name of a failed test and the first informative line of its message."""
    lines = [line.strip() for result in case.result for line in (result.text or "").splitlines()]
    reasons = [line for line in lines if line and not line.startswith(("Notebook cell", "Input:"))]
    return f"`{case.classname}` {case.name}: {' '.join(reasons[:1])}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
