"""Measure how far every framework is from the reference, and update docs/LANGUAGE/agreement.md."""

from tests.shim.compare_frameworks.ask import ask_framework
from tests.shim.compare_frameworks.table import TABLES, TITLES, document, measure, tables

if __name__ == "__main__":
    measured = measure(ask_framework)
    print(tables(measured, "en"), end="")
    for language in TITLES:
        text = document(language).read_text(encoding="utf-8")
        text = TABLES.sub(tables(measured, language), text)
        document(language).write_text(text, encoding="utf-8")
