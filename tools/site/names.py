"""The table of the shim's names, read from the code of its faces without importing them."""

import ast
from pathlib import Path

from d2l_compat._shared.exports import listed
from d2l_compat.frameworks import FACES
from tools.weave.lessons import ROOT

PACKAGE = ROOT / "d2l_compat"
# In the order of the table; a room that is missing here is an error, and not left out.
HOMES = (
    "attention",
    "additive",
    "relative",
    "transformer",
    "seq2seq",
    "training",
    "counting",
    "data",
    "linear",
    "classification",
    "models",
    "adversarial",
    "hpo",
    "optimization",
    "recurrent",
    "recommender",
    "resnet",
    "words",
    "sentences",
    "bert",
    "parallel",
    "boxes",
    "pictures",
    "devices",
    "tensors",
    "common",
)


def table() -> str:
    """A row for each name: where it is, and in which frameworks. Markdown, without a head."""
    homes = {name: names(PACKAGE / framework.face) for name, framework in FACES.items()}
    rows: dict[tuple[str, str], list[bool]] = {}
    for number, framework in enumerate(FACES):
        for name, home in homes[framework].items():
            rows.setdefault((home, name), [False] * len(FACES))[number] = True
    lines = []
    for (home, name), there in sorted(
        rows.items(), key=lambda row: (HOMES.index(row[0][0]), row[0])
    ):
        cells = ["✓" if is_there else "" for is_there in there]
        lines.append(f"| `{name}` | `{home}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def names(folder: Path) -> dict[str, str]:
    """Of a face each public name, and the room that has it: those that are imported with a star.

    Areas are imported so for type checkers.
    """
    rooms = [
        node.module.removeprefix(f"{PACKAGE.name}.").split(".")
        for node in ast.walk(ast.parse(_source(folder / "__init__.py")))
        if isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*"
    ]
    return {
        name: path[-1]
        for path in rooms
        for name in listed(_source(PACKAGE.joinpath(*path).with_suffix(".py")))
    }


def _source(file: Path) -> str:
    return file.read_text(encoding="utf-8")
