"""Shorten the training in a page: a few epochs show what it does, and all pages would train for days."""

import ast
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager

EPOCHS = 3
PARAMETERS = "num_epochs", "max_epochs"


def cap_epochs(source: str, limit: int) -> str:
    """Return a cell in which no number given to ``num_epochs`` or ``max_epochs`` exceeds ``limit``."""
    program = TransformerManager().transform_cell(source)  # replaces Jupyter's magics
    try:
        tree = ast.parse(program)
    except SyntaxError:  # the kernel reports it
        return source
    lines = program.encode().splitlines(keepends=True)
    numbers = sorted(_find_numbers(tree), key=lambda each: (each.lineno, each.col_offset))
    for number in reversed(numbers):  # from the end, so that the other positions stay valid
        if isinstance(number.value, int) and number.value > limit:
            line = lines[number.lineno - 1]
            head, tail = line[: number.col_offset], line[number.end_col_offset :]
            lines[number.lineno - 1] = head + b"%d" % limit + tail
    return b"".join(lines).decode()


def _find_numbers(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants that are given to one of PARAMETERS."""
    for node in ast.walk(tree):
        for name, value in _find_values(node):
            if name in PARAMETERS and isinstance(value, ast.Constant):
                yield value


def _find_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with their values: from an assignment, a keyword argument, or a default."""
    match node:
        case ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for target, value in zip(targets, values, strict=False):
                if isinstance(target, ast.Name):
                    yield target.id, value
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.arguments(args=args, defaults=defaults) if defaults:
            for argument, value in zip(args[-len(defaults) :], defaults, strict=True):
                yield argument.arg, value
