"""Make the table of the shim's public names from its source, without importing a framework."""

import ast
from pathlib import Path

from d2l_compat._shared.exports import parse_exports
from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.weave.lessons import ROOT

PACKAGE = ROOT / "d2l_compat"
# All modules, in the order of the table; a module that is missing here raises an error.
MODULES = (
    "attention",
    "additive",
    "relative",
    "generation",
    "linear_attention",
    "transformer",
    "blocks",
    "conversion",
    "seq2seq",
    "training",
    "counting",
    "datasets",
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


def render_table() -> str:
    """Return a row in Markdown for each name, with its module and a mark for each framework that has it."""
    rows: dict[tuple[str, str], list[str]] = {}
    for column, framework in enumerate(PYTHON_FRAMEWORKS.values()):
        for name, module in read_names(PACKAGE / framework.module).items():
            rows.setdefault((module, name), [""] * len(PYTHON_FRAMEWORKS))[column] = "✓"
    lines = []
    for module, name in sorted(rows, key=lambda row: (MODULES.index(row[0]), row)):
        lines.append(f"| `{name}` | `{module}` | {' | '.join(rows[module, name])} |")
    return "\n".join(lines)


def read_names(folder: Path) -> dict[str, str]:
    """Return each public name of a framework's package with its module.

    The names come from the modules that the package imports with a star, some of them for type checkers only.
    """
    modules = [
        node.module.removeprefix(f"{PACKAGE.name}.").split(".")
        for node in ast.walk(ast.parse(_read(folder / "__init__.py")))
        if isinstance(node, ast.ImportFrom) and node.module and node.names[0].name == "*"
    ]
    return {
        name: path[-1]
        for path in modules
        for name in parse_exports(_read(PACKAGE.joinpath(*path).with_suffix(".py")))
    }


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")
