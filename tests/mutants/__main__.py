"""``python -m tests.mutants``: tries every fault, and tells which checks noticed it."""

import argparse
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

from d2l_compat.frameworks import FRAMEWORKS
from tests.mutants import faults_in_lessons, faults_in_the_shim
from tests.mutants.fault import Fault
from tests.mutants.trial import Outcome, Workshop, at_once, checks
from tools.weave.lessons import ROOT

FAULTS: list[Fault] = sorted(
    [*faults_in_lessons.FAULTS, *faults_in_the_shim.FAULTS],
    key=lambda fault: list(FRAMEWORKS).index(fault.framework),
)
REPORT = ROOT / "build" / "mutants" / "report.md"

Said = dict[str, Outcome]  # by check: nbval, tests


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    wanted = options.framework or FRAMEWORKS
    faults = [f for f in FAULTS if f.framework in wanted and options.only in str(f)]
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
            if not _unchanged_passes(workshop, pool, faults):
                return 1
            said = _try_all(workshop, pool, faults, options.by_all)
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
    parser.add_argument("--jobs", type=int, default=2, help="faults at once (default: 2)")
    parser.add_argument(
        "--by-all", action="store_true", help="checks after the first to notice, too"
    )
    parser.add_argument("--list", action="store_true", help="name the faults, and try none")
    return parser.parse_args(arguments)


def _unchanged_passes(workshop: Workshop, pool: ThreadPoolExecutor, faults: list[Fault]) -> bool:
    """Whether every check passes where there is no fault. Its word means nothing otherwise."""
    used = at_once(check for fault in faults for _, check in checks(fault))
    for check, outcome in zip(used, pool.map(workshop.try_unchanged, used), strict=True):
        what = check.notebook or " ".join(check.command[-3:])
        if fault := outcome.void or ", ".join(outcome.noticed):
            print(f"without any fault this does not pass: {what}: {fault}", file=sys.stderr)
            return False
        print(f"passes without a fault: {what} ({outcome.seconds:.0f} s)", flush=True)
    return True


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
    return any(outcome.noticed for outcome in said.values())


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
        by = [sum(c in s and bool(s[c].noticed) for s in of_it) for c in ("nbval", "tests")]
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
