"""``python -m tests.mutants``: try every fault, and report which checks noticed it."""

import argparse
import signal
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

from d2l_compat.frameworks import FRAMEWORKS
from tests.mutants.fault import Fault
from tests.mutants.tables import ALL_FAULTS, FAULTS
from tests.mutants.trial import PYTEST, Outcome, Workshop, merge_failing_checks, shares_tests
from tools.weave.lessons import ROOT

REPORT = ROOT / "build" / "mutants" / "report.md"

Outcomes = dict[str, Outcome]  # by check: nbval, tests


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0 if all faults were noticed, 130 after Ctrl-C, otherwise 1."""
    options = _parse_options(arguments)
    frameworks = options.framework or FRAMEWORKS
    order = [*FRAMEWORKS]
    candidates = ALL_FAULTS if options.everywhere else FAULTS
    faults = [f for f in candidates if f.framework in frameworks and options.only in str(f)]
    faults.sort(key=lambda fault: order.index(fault.framework))
    if options.list or not faults:
        print(*faults or ["there is no such fault"], sep="\n")
        return 0 if faults else 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    needs_java = any(fault.framework == "djl" for fault in faults)
    try:
        # These exit in reverse order: kill the checks, wait for the threads, remove the copies.
        with (
            TemporaryDirectory(prefix="mutants-") as folder,
            ThreadPoolExecutor(options.jobs) as pool,
            Workshop(Path(folder), needs_java) as workshop,
        ):
            results = _try_all(workshop, pool, faults, options.all_checks)
            void_failing_checks(workshop, pool, results.values())
    except KeyboardInterrupt:
        return 130
    text = render_report(results)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(text, encoding="utf-8")
    print(text)
    all_ran = not any(outcome.void_reason for each in results.values() for outcome in each.values())
    return 0 if all_ran and all(map(is_noticed, results.values())) else 1


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS)
    parser.add_argument(
        "--only", default="", metavar="SUBSTRING", help="part of a line that --list prints"
    )
    parser.add_argument(
        "--everywhere",
        action="store_true",
        help="try a lesson's faults in every framework that has them, not only in one",
    )
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time (default: 2)")
    parser.add_argument(
        "--all-checks", action="store_true", help="run all checks, even after one noticed the fault"
    )
    parser.add_argument("--list", action="store_true", help="list the faults without trying them")
    return parser.parse_args(arguments)


def void_failing_checks(
    workshop: Workshop, pool: ThreadPoolExecutor, results: Iterable[Outcomes]
) -> None:
    """Run the checks that noticed faults on the unchanged project; void the outcomes of those that fail there."""
    outcomes = [outcome for result in results for outcome in result.values()]
    checks = merge_failing_checks(outcomes)
    for check, outcome in zip(checks, pool.map(workshop.try_without_fault, checks), strict=True):
        failed = check if outcome.void_reason else outcome.failing_check
        verdict = "DOES NOT PASS" if failed else "passes"
        title = " ".join((*check.command[len(PYTEST) :], *check.tests[:2]))
        more = f" and {len(check.tests) - 2} more" if len(check.tests) > 2 else ""
        print(f"{verdict} without a fault: {title}{more} ({outcome.seconds:.0f} s)", flush=True)
        for other in outcomes:
            if failed and other.failing_check and shares_tests(failed, other.failing_check):
                reason = outcome.void_reason or outcome.failures[0]
                other.void_reason = f"the check fails without a fault: {reason}"
                print(f"    {other.failures[0]} does not count: {other.void_reason}", flush=True)


def _try_all(
    workshop: Workshop, pool: ThreadPoolExecutor, faults: list[Fault], all_checks: bool
) -> dict[Fault, Outcomes]:
    results: dict[Fault, Outcomes] = {}
    all_outcomes = pool.map(workshop.try_fault, faults, repeat(all_checks))
    for fault, outcomes in zip(faults, all_outcomes, strict=True):
        results[fault] = outcomes
        verdict = "noticed" if is_noticed(outcomes) else "NOT NOTICED"
        print(f"[{len(results)}/{len(faults)}] {fault} ({fault.kind}): {verdict}")
        for check, outcome in outcomes.items():
            tests = outcome.void_reason or ", ".join(outcome.failures) or "-"
            print(f"    {check}: {tests} ({outcome.seconds:.0f} s)", flush=True)
    return results


def is_noticed(outcomes: Outcomes) -> bool:
    return any(outcome.failures and not outcome.void_reason for outcome in outcomes.values())


def render_report(results: dict[Fault, Outcomes]) -> str:
    """Return tables in Markdown: all faults, and their numbers by framework."""
    lines = [
        "| Framework | Where | Fault | Noticed by nbval, in | Failed tests |",
        "| :-- | :-- | :-- | :-- | --: |",
    ]
    for fault, outcomes in results.items():
        cells = _format_outcome(outcomes.get("nbval"), "nbval")
        tests = _format_outcome(outcomes.get("tests"), "tests")
        where = f"{fault.kind} {fault.lesson}".strip()
        lines.append(f"| {fault.framework} | {where} | {fault.name} | {cells} | {tests} |")
    lines += [
        "",
        "(After the first check that notices a fault, no other is run.)",
        "",
        "| Framework | Faults | Noticed | by nbval | by tests | Not noticed |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    for title in (*dict.fromkeys(fault.framework for fault in results), "all"):
        group = [each for fault, each in results.items() if title in (fault.framework, "all")]
        noticed = sum(map(is_noticed, group))
        counts = [len(group), noticed]
        for check in ("nbval", "tests"):
            counts.append(sum(is_noticed({check: each[check]}) for each in group if check in each))
        counts.append(len(group) - noticed)
        lines.append(f"| {title} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines) + "\n"


def _format_outcome(outcome: Outcome | None, check: str) -> str:
    if outcome is None:
        return ""
    if outcome.void_reason:
        return "void"
    if check == "tests" or not outcome.failures:
        return str(len(outcome.failures) or "-")
    more = len(outcome.failures) - 3
    return ", ".join(outcome.failures[:3]) + (f" +{more}" if more > 0 else "")


if __name__ == "__main__":
    sys.exit(main())
