"""Reports of the results: as text, as JSON, and as tables in the documentation."""

import json
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from d2l_compat.conformance.files import FORMAT, Case
from d2l_compat.conformance.runner import STATUSES, Implementation

BEGIN, END = "<!-- make conformance -->\n", "<!-- end of make conformance -->"
WRONG = ("error", "failed", "differs")
# The words of the tables, by language.
WORDS = {
    "en": {
        "implementation": "implementation",
        "versions": "versions",
        "attention": "attention",
        "multi_head": "multi-head",
        "rope": "RoPE",
        "alibi_slopes": "slopes",
        "alibi": "ALiBi",
        "relative": "distances",
        "t5_buckets": "T5",
        "cached": "cache",
        "linear": "linear",
        "compared": "also",
        "status": "result",
        "cases": "cases",
        "error": "error",
        "failed": "failed",
        "differs": "differs",
        "asked": "Asked on",
        "separator": ", ",
    },
    "zh-TW": {
        "implementation": "實作",
        "versions": "版本",
        "attention": "注意力",
        "multi_head": "多頭",
        "rope": "RoPE",
        "alibi_slopes": "斜率",
        "alibi": "ALiBi",
        "relative": "距離",
        "t5_buckets": "T5",
        "cached": "快取",
        "linear": "線性",
        "compared": "另比",
        "status": "結果",
        "cases": "題目",
        "error": "出錯",
        "failed": "算錯",
        "differs": "慣例不同",
        "asked": "測試日期",
        "separator": "、",
    },
}


def has_failures(implementation: Implementation) -> bool:
    """Return whether an answer is wrong, or an installed implementation could not be asked."""
    if implementation.missing:
        return not implementation.missing.startswith("not installed")
    statuses = {case["status"] for case in implementation.cases().values()}
    return not statuses.isdisjoint({"error", "failed"})


def describe_implementation(implementation: Implementation, cases: Mapping[str, Case]) -> str:
    """Return lines about one implementation; a failure has the case's convention and known reports."""
    if implementation.missing:
        return f"{implementation.name}: {implementation.missing}"
    versions = ", ".join(f"{name} {x}" for name, x in implementation.versions.items())
    results = implementation.cases()
    counts = Counter(result["status"] for result in results.values())
    summary = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    lines = [f"{implementation.title} ({versions}): {summary}"]
    for name, result in results.items():
        if result["status"] in WRONG:
            lines.append(f"  {result['status']}: {name}, {result['dtype']}: {result['detail']}")
            if result["status"] == "differs":
                lines.append(f"    known difference: {result['reason']}")
            elif result["status"] == "failed":
                lines.append(f"    convention: {cases[name].convention}")
                if cases[name].issues:
                    lines.append(f"    reports of the same kind: {', '.join(cases[name].issues)}")
    return "\n".join(lines)


def count_by_kind(implementation: Implementation, cases: Mapping[str, Case]) -> dict[str, str]:
    """Return "passed/asked" for each kind of case, or a dash if nothing was asked."""
    passed, asked = Counter[str](), Counter[str]()
    for name, result in implementation.cases().items():
        kind = cases[name].kind
        asked[kind] += result["status"] != "not offered"
        passed[kind] += result["status"] == "passed"
    return {kind: f"{passed[kind]}/{n}" if n else "-" for kind, n in asked.items()}


def render_table(results: Sequence[Implementation], cases: Mapping[str, Case]) -> str:
    """Return a table of all implementations as text."""
    kinds = [*dict.fromkeys(case.kind for case in cases.values())]
    rows = [["passed / asked", *kinds]]
    for implementation in results:
        counts = count_by_kind(implementation, cases)
        name = implementation.title + " (not asked)" * bool(implementation.missing)
        rows.append([name, *(counts.get(kind, "-") for kind in kinds)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def write_json(path: Path, results: Sequence[Implementation]) -> None:
    report = {
        "format": FORMAT,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "implementations": [vars(implementation) for implementation in results],
    }
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def write_docs(folder: Path, results: Sequence[Implementation], cases: Mapping[str, Case]) -> None:
    """Put the tables between the marks in FOLDER/LANGUAGE/conformance.md."""
    for language in WORDS:
        path = folder / language / "conformance.md"
        text = path.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        after = rest[rest.index(END) :]
        tables = render_markdown(results, cases, language)
        path.write_text(f"{before}{BEGIN}{tables}{after}", encoding="utf-8")


def render_markdown(
    results: Sequence[Implementation], cases: Mapping[str, Case], language: str
) -> str:
    """Return the tables: how many cases each implementation passes, and which it does not."""
    words = WORDS[language]
    kinds = [*dict.fromkeys(case.kind for case in cases.values())]
    rows = [
        [words["implementation"], *(words[kind] for kind in kinds), words["compared"]],
        [":--", *["--:"] * len(kinds), ":--"],
    ]
    wrong = [[words["implementation"], words["status"], words["cases"]], [":--"] * 3]
    versions: dict[str, str] = {}
    for implementation in results:
        if implementation.missing:
            continue
        versions |= implementation.versions
        counts = count_by_kind(implementation, cases)
        asked = [x for x in implementation.questions if x["status"] != "not offered"]
        names = {name for question in asked for name in question.get("compared", ())}
        # One letter each keeps the table narrow.
        compared = "D" * any(question["dtype"] == "float64" for question in asked)
        compared += "W" * ("weights" in names)
        compared += "G" * any(name.startswith("gradient_") for name in names)
        title = implementation.title
        if re.search(r"[._]|^[a-z]", title):  # a name in code
            title = f"`{title}`"
        kind_cells = (counts.get(kind, "-") for kind in kinds)
        rows.append([title, *kind_cells, compared or "-"])
        by_status: dict[str, list[str]] = {}
        for name, result in implementation.cases().items():
            by_status.setdefault(result["status"], []).append(f"`{name}`")
        for status in WRONG:
            if status in by_status:
                wrong.append([title, words[status], words["separator"].join(by_status[status])])
    listed = words["separator"].join(f"{name} {x}" for name, x in sorted(versions.items()))
    colon = ": " if language == "en" else "\uff1a"
    stop = "." if language == "en" else "。"
    summary = f"{words['asked']} {date.today().isoformat()}{colon}{listed}{stop}"
    return f"{_markdown(rows)}\n{_markdown(wrong)}\n{summary}\n"


def _markdown(rows: Sequence[Sequence[Any]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
