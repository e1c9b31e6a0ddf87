"""The README's tables of how near the frameworks' results are, as a page has them."""

from tools.site.words import WORDS
from tools.weave.lessons import ROOT

MARKERS = "<!-- make agreement -->", "<!-- end of make agreement -->"


def tables(language: str) -> str:
    """A section for each, and its rows in this language's words."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = readme.partition(MARKERS[0])[2].partition(MARKERS[1])[0].strip()
    lines = [_told(line, WORDS[language].rows) for line in made.splitlines()]
    return "\n".join(lines)


def _told(line: str, rows: dict[str, str]) -> str:
    if line.startswith("### "):
        return line.removeprefix("#")  # what is a section in the README is a page here
    title, end, numbers = line.removeprefix("| ").partition(" | ")
    return f"| {rows.get(title, title)}{end}{numbers}" if end else line
