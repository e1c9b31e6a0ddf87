"""``python -m tests.mutants``: tries every fault, and tells which checks noticed it."""

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
from tests.mutants.tables import EVERYWHERE, FAULTS
from tests.mutants.trial import PYTEST, Outcome, Workshop, shares_tests, to_pass_without
from tools.weave.lessons import ROOT

REPORT = ROOT / "build" / "mutants" / "report.md"

Said = dict[str, Outcome]  # by check: nbval, tests


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    wanted = options.framework or FRAMEWORKS
    known = sorted(
        EVERYWHERE if options.everywhere else FAULTS,
        key=lambda fault: [*FRAMEWORKS].index(fault.framework),
    )
    faults = [f for f in known if f.framework in wanted and options.only in str(f)]
    if options.list or not faults:
        print(*faults or ["there is no such fault"], sep="\n")
        return 0 if faults else 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with_java = any(fault.framework == "djl" for fault in faults)
    try:
        # On the way out: what runs is ended, then the threads end, then the copies go.
        with (
            TemporaryDirectory(prefix="mutants-") as folder,
            ThreadPoolExecutor(options.jobs) as pool,
            Workshop(Path(folder), with_java) as workshop,
        ):
            said = _try_all(workshop, pool, faults, options.by_all)
            try_unchanged(workshop, pool, said.values())
    except KeyboardInterrupt:
        return 130
    text = report(said)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(text, encoding="utf-8")
    print(text)
    all_ran = not any(outcome.void for each in said.values() for outcome in each.values())
    return 0 if all_ran and all(map(is_noticed, said.values())) else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="of what --list prints")
    parser.add_argument(
        "--everywhere",
        action="store_true",
        help="a lesson's faults in every framework that they fit, not in one each",
    )
    parser.add_argument("--jobs", type=int, default=2, help="faults at once (default: 2)")
    parser.add_argument(
        "--by-all", action="store_true", help="checks after the first to notice, too"
    )
    parser.add_argument("--list", action="store_true", help="name the faults, and try none")
    return parser.parse_args(arguments)


def try_unchanged(workshop: Workshop, pool: ThreadPoolExecutor, said: Iterable[Said]) -> None:
    """Who noticed a fault has to pass where there is none, or has noticed nothing."""
    outcomes = [outcome for each in said for outcome in each.values()]
    used = to_pass_without(outcomes)
    for check, outcome in zip(used, pool.map(workshop.try_unchanged, used), strict=True):
        failing = check if outcome.void else outcome.by
        word = "DOES NOT PASS" if failing else "passes"
        what = " ".join((*check.command[len(PYTEST) :], *check.tests[:2]))
        more = f" and {len(check.tests) - 2} more" if len(check.tests) > 2 else ""
        print(f"{word} without a fault: {what}{more} ({outcome.seconds:.0f} s)", flush=True)
        for other in outcomes:
            if failing and other.by and shares_tests(failing, other.by):
                other.void = f"not without a fault either: {outcome.void or outcome.noticed[0]}"
                print(f"    {other.noticed[0]} has noticed nothing: {other.void}", flush=True)


def _try_all(
    workshop: Workshop, pool: ThreadPoolExecutor, faults: list[Fault], by_all: bool
) -> dict[Fault, Said]:
    done: dict[Fault, Said] = {}
    tried = pool.map(workshop.try_fault, faults, repeat(by_all))
    for fault, said in zip(faults, tried, strict=True):
        done[fault] = said
        word = "noticed" if is_noticed(said) else "NOT NOTICED"
        print(f"[{len(done)}/{len(faults)}] {fault} ({fault.place}): {word}")
        for check, outcome in said.items():
            by = outcome.void or ", ".join(outcome.noticed) or "-"
            print(f"    {check}: {by} ({outcome.seconds:.0f} s)", flush=True)
    return done


def is_noticed(said: Said) -> bool:
    return any(outcome.noticed and not outcome.void for outcome in said.values())


def report(said: dict[Fault, Said]) -> str:
    lines = [
        "| Framework | Where | Fault | Noticed by nbval, in | Failed tests |",
        "| :-- | :-- | :-- | :-- | --: |",
    ]
    for fault, each in said.items():
        cells, tests = (_shown(each.get(check), check) for check in ("nbval", "tests"))
        where = f"{fault.place} {fault.lesson}".strip()
        lines.append(f"| {fault.framework} | {where} | {fault.name} | {cells} | {tests} |")
    lines += [
        "",
        "(A fault that one check has noticed is not tried with the next.)",
        "",
        "| Framework | Faults | Noticed | by nbval | by tests | Not noticed |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    for title in (*dict.fromkeys(fault.framework for fault in said), "all"):
        of_it = [each for fault, each in said.items() if title in (fault.framework, "all")]
        noticed = sum(map(is_noticed, of_it))
        by = [sum(is_noticed({c: s[c]}) for s in of_it if c in s) for c in ("nbval", "tests")]
        numbers = (len(of_it), noticed, *by, len(of_it) - noticed)
        lines.append(f"| {title} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines) + "\n"


def _shown(outcome: Outcome | None, check: str) -> str:
    if outcome is None or outcome.void:
        return "void" if outcome else ""
    if check == "tests" or not outcome.noticed:
        return str(len(outcome.noticed) or "-")
    more = len(outcome.noticed) - 3
    return ", ".join(outcome.noticed[:3]) + (f" +{more}" if more > 0 else "")


if __name__ == "__main__":
    sys.exit(main())
