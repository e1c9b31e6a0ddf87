"""How far each framework is from the conformance suite's answers: ``python -m tests.shim.agreement`` updates the docs.

A difference is the largest one in a case's output, weights and gradients, divided by the largest expected number.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from d2l_compat.conformance.adapters import DTYPES
from d2l_compat.conformance.files import Case, load_cases
from d2l_compat.conformance.runner import Implementation, ask_implementation
from d2l_compat.frameworks import FRAMEWORKS
from tools.weave.lessons import ROOT

TABLES = re.compile(
    r"(?<=<!-- make agreement -->\n).*?(?=<!-- end of make agreement -->)", re.DOTALL
)
# The titles of the rows, by language.
TITLES = {
    "en": {
        "plain": "no mask",
        "valid_lens": "`valid_lens`",
        "score_bias": "`score_bias`",
        "causal": "`causal`",
        "window": "`window`",
        "masks": "several masks",
        "large_scores": "large scores",
        "heads": "multi-head",
        "heads_masks": "multi-head, masks",
        "alibi": "ALiBi",
        "relative": "table of distances",
        "interleaved": "RoPE, `interleaved`",
        "halves": "RoPE, `halves`",
        "cached": "cache",
        "cached_grouped": "cache, grouped heads",
        "cached_rope": "cache, RoPE",
        "cached_window": "cache, window",
        "cached_sinks": "cache, window, sinks",
        "linear": "linear attention",
        "decay": "linear attention, decay",
    },
    "zh-TW": {
        "plain": "無遮罩",
        "valid_lens": "`valid_lens`",
        "score_bias": "`score_bias`",
        "causal": "`causal`",
        "window": "`window`",
        "masks": "數種遮罩並用",
        "large_scores": "很大的分數",
        "heads": "多頭",
        "heads_masks": "多頭，遮罩",
        "alibi": "ALiBi",
        "relative": "距離向量表",
        "interleaved": "RoPE，`interleaved`",
        "halves": "RoPE，`halves`",
        "cached": "快取",
        "cached_grouped": "快取，分組查詢",
        "cached_rope": "快取，RoPE",
        "cached_window": "快取，視窗",
        "cached_sinks": "快取，視窗與 sink",
        "linear": "線性注意力",
        "decay": "線性注意力，衰減",
    },
}
MASKS = {
    "lengths": "valid_lens",
    "lengths_per_query": "valid_lens",
    "mask": "score_bias",
    "bias": "score_bias",
    "causal": "causal",
    "causal_lower_right": "causal",
    "window": "window",
}
# A measured difference may be this many times the published one, which is a few roundings: other processors round in
# another order.
FACTOR = 10

Differences = dict[str, dict[str, float]]  # by dtype and row


def choose_row(case: Case) -> str:
    """Return the key of the row to which a case belongs."""
    masks = {MASKS[name] for name in case.features if name in MASKS}
    match case.kind:
        case "attention" if "large_scores" in case.features:
            return "large_scores"
        case "attention" if "window" in masks:
            return "window"
        case "attention":
            return "masks" if len(masks) > 1 else next(iter(masks), "plain")
        case "multi_head":
            return "heads_masks" if masks else "heads"
        case "alibi_slopes":
            return "alibi"
        case "rope":
            return str(case.options["layout"])
        case "cached":
            options = [x for x in ("sinks", "window", "rope", "grouped") if x in case.features]
            return f"cached_{options[0]}" if options else "cached"
        case "linear" if "decay" in case.features:
            return "decay"
    return case.kind


ROWS = {case.name: choose_row(case) for case in load_cases()}


def ask_framework(framework: str, dtypes: tuple[str, ...] = DTYPES) -> Implementation:
    module = FRAMEWORKS[framework].module
    return ask_implementation(f"d2l_compat.{module}", dtypes=dtypes)


def find_largest(questions: Iterable[Mapping[str, Any]]) -> Differences:
    """Return the largest difference in the passed cases of each row."""
    largest: Differences = {}
    for question in questions:
        if question["status"] == "passed":
            rows = largest.setdefault(question["dtype"], {})
            row = ROWS[question["case"]]
            rows[row] = max(question["difference"], rows.get(row, 0))
    return largest


def assert_agreement(framework: str, dtypes: tuple[str, ...] = DTYPES) -> None:
    """Check that a framework passes all cases that it offers, and that no difference is larger than published."""
    answers = ask_framework(framework, dtypes)
    assert not answers.missing, answers.missing
    wrong = [x for x in answers.questions if x["status"] not in ("passed", "not offered")]
    assert not wrong, wrong
    for dtype, rows in find_largest(answers.questions).items():
        missing = TITLES["en"].keys() - rows.keys()
        assert not missing, f"{framework}, {dtype}: no case of {missing} was asked"
        head, *published = read_tables("en")[dtype]
        column = head.index(FRAMEWORKS[framework].title)
        promised = {row[0]: float(row[column]) for row in published}
        for row, difference in rows.items():
            title = TITLES["en"][row]
            assert difference <= FACTOR * promised[title], (
                f"docs/en/agreement.md has {promised[title]:.0e} for {title}, {dtype}, in "
                f"{head[column]}, and it is {difference:.0e}: run `make agreement`"
            )


def doc_path(language: str) -> Path:
    return ROOT / "docs" / language / "agreement.md"


def read_tables(language: str) -> dict[str, list[list[str]]]:
    """Return the rows of each published table, by dtype; the first row is the head."""
    (text,) = TABLES.findall(doc_path(language).read_text(encoding="utf-8"))
    tables: dict[str, list[list[str]]] = {}
    for section in text.split("## ")[1:]:
        dtype, *lines = filter(None, section.splitlines())
        head, _, *rows = [line[2:-2].split(" | ") for line in lines]
        tables[dtype] = [head, *rows]
    return tables


def render_tables(measured: list[Differences], language: str) -> str:
    """Return Markdown: for each dtype, a row for each group of cases and a column for each framework."""
    sections = []
    for dtype in DTYPES:
        rows = [
            ["", *(framework.title for framework in FRAMEWORKS.values())],
            [":--", *["--:"] * len(measured)],
        ]
        for row, title in TITLES[language].items():
            rows.append([title, *(f"{largest[dtype][row]:.0e}" for largest in measured)])
        lines = (f"| {' | '.join(row)} |\n" for row in rows)
        sections.append(f"## {dtype}\n\n{''.join(lines)}")
    return "\n".join(sections)


if __name__ == "__main__":
    measured = [find_largest(ask_framework(name).questions) for name in FRAMEWORKS]
    for language in TITLES:
        text = doc_path(language).read_text(encoding="utf-8")
        text = TABLES.sub(render_tables(measured, language), text)
        doc_path(language).write_text(text, encoding="utf-8")
    print(render_tables(measured, "en"), end="")
