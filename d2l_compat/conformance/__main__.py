"""``python -m d2l_compat.conformance [IMPLEMENTATION ...]``: ask implementations, print who passes what.

An implementation is an adapter's name, or a file NAME.py with an ``adapter``; without any, all adapters are asked, each in
its own process. ``--cases`` takes a pattern of names of cases, ``--json`` writes all results, and ``--write-docs`` updates the
tables in the folder of the documentation. The exit code is 1 if an answer is wrong, and not a documented or known difference,
or if an implementation that was named could not be asked.
"""

import argparse
import sys
from fnmatch import filter as filter_names
from pathlib import Path

from d2l_compat._shared.checks import message
from d2l_compat.conformance.adapters import list_names
from d2l_compat.conformance.files import load_cases
from d2l_compat.conformance.report import (
    describe_implementation,
    has_failures,
    render_table,
    write_docs,
    write_json,
)
from d2l_compat.conformance.runner import ask_implementation


def main(arguments: list[str]) -> int:
    """Ask the implementations; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m d2l_compat.conformance")
    parser.add_argument("implementations", nargs="*", help="names, or files NAME.py; default: all")
    parser.add_argument("--cases", default="*", help="a pattern of names, such as 'causal*'")
    parser.add_argument("--json", type=Path, help="a file for all results")
    parser.add_argument("--write-docs", type=Path, help="the folder of the documentation")
    parser.add_argument("--list", action="store_true", help="print the names of all adapters")
    options = parser.parse_args(arguments)
    if options.list:
        print(*list_names(), sep="\n")
        return 0
    if options.write_docs and (options.implementations or options.cases != "*"):
        parser.error("--write-docs: the tables need every implementation and every case")
    for name in options.implementations:
        if name not in list_names() and not (name.endswith(".py") and Path(name).exists()):
            parser.error(message("implementation", name, "a file NAME.py, or a name from --list"))
    cases = {case.name: case for case in load_cases()}
    if not filter_names(cases, options.cases):
        parser.error(message("--cases", options.cases, "a pattern that matches a case"))
    results = []
    for name in options.implementations or list_names():
        results.append(ask_implementation(name, options.cases))
        print(describe_implementation(results[-1], cases), flush=True)
    print(render_table(results, cases))
    if options.json:
        write_json(options.json, results)
    if options.write_docs:
        write_docs(options.write_docs, results, cases)
    is_missing = any(result.missing for result in results) and bool(options.implementations)
    return int(is_missing or any(has_failures(result) for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
