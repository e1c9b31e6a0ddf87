"""Measure how far every framework is from the reference, and update docs/LANGUAGE/agreement.md."""

from tests.shim.compare_frameworks.ask import ask_framework
from tests.shim.compare_frameworks.table import TABLES, TITLES, doc_path, measure, render_tables

if __name__ == "__main__":
    measured = measure(ask_framework)
    print(render_tables(measured, "en"), end="")
    for language in TITLES:
        text = doc_path(language).read_text(encoding="utf-8")
        text = TABLES.sub(render_tables(measured, language), text)
        doc_path(language).write_text(text, encoding="utf-8")
