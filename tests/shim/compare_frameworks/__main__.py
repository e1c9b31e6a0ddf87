"""Prints the tables of the largest differences, and puts them into the README."""

from tests.shim.compare_frameworks.ask import ask
from tests.shim.compare_frameworks.table import README, in_readme, tables

if __name__ == "__main__":
    made = tables(ask)
    print(made, end="")
    before, _, after = in_readme()
    README.write_text(before + made + after, encoding="utf-8")
