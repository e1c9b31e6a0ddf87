"""The tables of the largest differences in docs/LANGUAGE/agreement.md."""

import re
from collections.abc import Callable
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tests.shim.compare_frameworks.differences import Differences, differences
from tests.shim.compare_frameworks.expected import Answers, expected_answers
from tests.shim.each.cases import TOLERANCE
from tools.weave.lessons import ROOT

TABLES = re.compile(
    r"(?<=<!-- make agreement -->\n).*?(?=<!-- end of make agreement -->)", re.DOTALL
)

# The title of each case's row, by language.
TITLES = {
    "en": {
        "heads_1": "1 head",
        "heads_2": "2 heads",
        "heads_5": "5 heads",
        "valid_lens": "`valid_lens`",
        "causal": "`causal`",
        "score_bias": "`score_bias`",
        "all_masks": "all three",
        "in_window": "`window`",
        "in_window_masks": "`window`, other masks",
        "alibi": "ALiBi",
        "relative": "table of distances",
        "interleaved": "RoPE, `interleaved`",
        "halves": "RoPE, `halves`",
        "P": "$P$",
        "cached": "cache",
        "grouped": "cache, grouped heads",
        "window": "cache, window",
        "sinks": "cache, window, sinks",
        "linear": "linear attention",
        "decay": "linear attention, decay",
    },
    "zh-TW": {
        "heads_1": "1 個頭",
        "heads_2": "2 個頭",
        "heads_5": "5 個頭",
        "valid_lens": "`valid_lens`",
        "causal": "`causal`",
        "score_bias": "`score_bias`",
        "all_masks": "三者並用",
        "in_window": "`window`",
        "in_window_masks": "`window` 與其他遮罩",
        "alibi": "ALiBi",
        "relative": "距離向量表",
        "interleaved": "RoPE，`interleaved`",
        "halves": "RoPE，`halves`",
        "P": "$P$",
        "cached": "快取",
        "grouped": "快取，分組查詢",
        "window": "快取，視窗",
        "sinks": "快取，視窗與 sink",
        "linear": "線性注意力",
        "decay": "線性注意力，衰減",
    },
}

# A measured difference may be this many times the published one: other processors round in another order.
FACTOR = 4


def doc_path(language: str = "en") -> Path:
    return ROOT / "docs" / language / "agreement.md"


def measure(ask: Callable[[str, str], Answers]) -> dict[str, list[Differences]]:
    """Return the differences of every framework, by dtype."""
    expected = expected_answers()
    return {
        dtype: [differences(ask(name, dtype), dtype, expected) for name in FRAMEWORKS]
        for dtype in TOLERANCE
    }


def render_tables(measured: dict[str, list[Differences]], language: str) -> str:
    """Return Markdown: for each dtype, a row for each case and a column for each framework."""
    sections = []
    for dtype, frameworks in measured.items():
        rows = [
            ["", *(framework.title for framework in FRAMEWORKS.values())],
            [":--", *["--:"] * len(frameworks)],
        ]
        for case, title in TITLES[language].items():
            rows.append(
                [title, *(f"{max(case_sizes[case].values()):.0e}" for case_sizes in frameworks)]
            )
        lines = (f"| {' | '.join(row)} |\n" for row in rows)
        sections.append(f"## {dtype}\n\n{''.join(lines)}")
    return "\n".join(sections)


def read_published_tables(language: str = "en") -> dict[str, list[list[str]]]:
    """Return the rows of each published table, by dtype; the first row is the head."""
    (text,) = TABLES.findall(doc_path(language).read_text(encoding="utf-8"))
    tables: dict[str, list[list[str]]] = {}
    for section in text.split("## ")[1:]:
        dtype, *lines = filter(None, section.splitlines())
        head, _, *rows = [line[2:-2].split(" | ") for line in lines]
        tables[dtype] = [head, *rows]
    return tables


def assert_as_published(framework: str, dtype: str, measured: Differences) -> None:
    """Check that no difference is larger than the published table promises."""
    head, *rows = read_published_tables()[dtype]
    column = head.index(FRAMEWORKS[framework].title)
    promised = {row[0]: float(row[column]) for row in rows}
    for case, sizes in measured.items():
        title = TITLES["en"][case]
        largest = max(sizes.values())
        assert largest <= FACTOR * promised[title], (
            f"docs/en/agreement.md has {promised[title]:.0e} for {title}, {dtype}, in "
            f"{FRAMEWORKS[framework].title}, and it is {largest:.0e}: run `make agreement`"
        )
