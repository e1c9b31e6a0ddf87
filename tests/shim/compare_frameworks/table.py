"""The tables of the largest differences, as the README has them."""

from collections.abc import Callable, Iterable

from d2l_compat.frameworks import FRAMEWORKS
from tests.shim.compare_frameworks.differences import Differences, differences
from tests.shim.compare_frameworks.expected import Answers, expected
from tests.shim.each.cases import TOLERANCE
from tools.weave.lessons import ROOT

README = ROOT / "README.md"
MARKERS = "<!-- make agreement -->\n", "<!-- end of make agreement -->\n"
# A row for each case. The site has these words in other languages (tools/site/words.py).
TITLES = {
    "heads_1": "1 head",
    "heads_2": "2 heads",
    "heads_5": "5 heads",
    "valid_lens": "`valid_lens`",
    "causal": "`causal`",
    "score_bias": "`score_bias`",
    "all_masks": "all three",
    "alibi": "ALiBi",
    "relative": "table of distances",
    "interleaved": "RoPE, `interleaved`",
    "halves": "RoPE, `halves`",
    "P": "$P$",
}

# How many times larger than in the table a difference may be: it is rounding, which another processor does in
# another order. On some processors it is smaller.
FACTOR = 4


def tables(ask: Callable[[str, str], Answers]) -> str:
    """Markdown: a table for each dtype, with a row for each case and a column for each framework."""
    wanted = expected()
    sections = []
    for dtype in TOLERANCE:
        found = [differences(ask(name, dtype), dtype, wanted) for name in FRAMEWORKS]
        rows: list[Iterable[str]] = [
            ["", *(framework.title for framework in FRAMEWORKS.values())],
            [":--", *["--:"] * len(found)],
            *(
                [title, *(f"{max(each[case].values()):.0e}" for each in found)]
                for case, title in TITLES.items()
            ),
        ]
        lines = (f"| {' | '.join(row)} |\n" for row in rows)
        sections.append(f"### {dtype}\n\n{''.join(lines)}")
    return "\n".join(sections)


def in_readme() -> tuple[str, str, str]:
    """The README before, in and after the tables."""
    before, start, rest = README.read_text(encoding="utf-8").partition(MARKERS[0])
    shown, end, after = rest.partition(MARKERS[1])
    return before + start, shown, end + after


def cells() -> dict[str, list[list[str]]]:
    """The tables in README, by dtype; the head is the first row."""
    found: dict[str, list[list[str]]] = {}
    for section in in_readme()[1].split("### ")[1:]:
        dtype, *lines = filter(None, section.splitlines())
        head, _, *rows = [line[2:-2].split(" | ") for line in lines]
        found[dtype] = [head, *rows]
    return found


def assert_as_shown(framework: str, dtype: str, found: Differences) -> None:
    """Check that no difference is larger than README's tables promise."""
    head, *rows = cells()[dtype]
    column = head.index(FRAMEWORKS[framework].title)
    said = {row[0]: float(row[column]) for row in rows}
    for case, sizes in found.items():
        largest, shown = max(sizes.values()), said[TITLES[case]]
        assert largest <= FACTOR * shown, (
            f"README has {shown:.0e} for {TITLES[case]}, {dtype}, in {FRAMEWORKS[framework].title}, "
            f"and it is {largest:.0e}: run `make agreement`"
        )
