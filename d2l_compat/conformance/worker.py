"""Ask one implementation, in its own process: ``python -m d2l_compat.conformance.worker ADAPTER RESULTS PATTERN DTYPES SKIP``.

RESULTS gets a line of JSON for the adapter, and one before and after each question, so that the runner knows at which
question a process ended. DTYPES are separated by commas. SKIP questions are left out.
"""

import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from d2l_compat.conformance.adapters import Adapter, load_adapter
from d2l_compat.conformance.files import Array, Arrays, Case, load_cases

Result = dict[str, Any]


def list_questions(
    adapter: Adapter, pattern: str, dtypes: Sequence[str]
) -> Iterator[tuple[Case, str]]:
    """Yield each case that matches, in each of these dtypes that the adapter has; without numbers, in its first."""
    for case in load_cases():
        if fnmatchcase(case.name, pattern):
            has_floats = any(x.dtype.kind == "f" for x in case.inputs.values())
            for dtype in adapter.dtypes if has_floats else adapter.dtypes[:1]:
                if dtype in dtypes:
                    yield case, dtype


def ask(adapter: Adapter, case: Case, dtype: str) -> Result:
    """Ask one question, and judge the answers."""
    if case.kind not in adapter.offers or case.features - adapter.offers[case.kind]:
        return {"status": "not offered"}
    try:
        answers = {name: np.asarray(x) for name, x in adapter.compute(case.cast(dtype)).items()}
    except Exception as error:  # noqa: BLE001 - libraries raise nearly anything
        lines = str(error).strip().splitlines() or [""]
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        return {"status": "error", "detail": f"{type(error).__name__}: {lines[0]} ({place})"}
    problems = find_problems(case, answers, dtype)
    result: Result = {"status": "failed" if problems else "passed", "compared": [*answers]}
    if problems:
        result["detail"] = "; ".join(problems)
        # Numbers that are not finite follow no convention.
        if all(np.isfinite(x).all() for x in answers.values()):
            for key, reason in adapter.differences.items():
                if key in case.features or fnmatchcase(case.name, key):
                    result |= {"status": "differs", "reason": reason}
    else:
        differences = (relative_difference(x, case.answers[n]) for n, x in answers.items())
        result["difference"] = max(differences)
    return result


def find_problems(case: Case, answers: Arrays, dtype: str) -> list[str]:
    """Return what is wrong with the answers; no answer at all is wrong, too."""
    problems = [] if answers else ["no answer"]
    for name, got in answers.items():
        want = case.answers.get(name)
        if want is None:
            problems.append(f"{name}: not an answer of this case")
        elif got.shape != want.shape:
            problems.append(f"{name}: shape {got.shape} instead of {want.shape}")
        elif got.dtype.kind == "f" and not np.isfinite(got).all():
            problems.append(f"{name}: {np.count_nonzero(~np.isfinite(got))} numbers are not finite")
        elif (size := relative_difference(got, want)) > case.tolerances[
            choose_dtype(case, got, dtype)
        ]:
            problems.append(f"{name}: largest relative difference {size:.1e}")
    return problems


def choose_dtype(case: Case, got: Array, dtype: str) -> str:
    """Return the dtype by which to judge: the question's, or the answer's if the question has no numbers with one."""
    if any(x.dtype.kind == "f" for x in case.inputs.values()) or got.dtype.kind != "f":
        return dtype
    return got.dtype.name


def relative_difference(got: Array, want: Array) -> float:
    """Return the largest difference, divided by the largest expected absolute value, unless that is 0."""
    if not want.size:
        return 0.0
    return float(np.abs(got.astype(np.float64) - want).max() / (np.abs(want).max() or 1.0))


def find_versions(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return versions


def main(name: str, results: TextIO, pattern: str, dtypes: Sequence[str], skip: int) -> None:
    def write(line: Result) -> None:
        results.write(json.dumps(line) + "\n")
        results.flush()

    try:
        adapter = load_adapter(name)
    except ImportError as error:
        write({"missing": f"not installed: {error}"})
        return
    except (TypeError, ValueError) as error:
        write({"missing": str(error)})
        return
    write({"title": adapter.title, "versions": find_versions(adapter.packages)})
    for number, (case, dtype) in enumerate(list_questions(adapter, pattern, dtypes)):
        if number >= skip:
            question = {"case": case.name, "dtype": dtype}
            write(question | {"status": "started"})
            write(question | ask(adapter, case, dtype))


if __name__ == "__main__":
    with Path(sys.argv[2]).open("a", encoding="utf-8") as file:
        main(sys.argv[1], file, sys.argv[3], sys.argv[4].split(","), int(sys.argv[5]))
