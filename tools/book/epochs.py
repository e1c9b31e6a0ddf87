"""A page's training, made short: what a page does shows in a few epochs, and all pages would train for days."""

import ast
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager

EPOCHS = 3  # are enough
NAMES = "num_epochs", "max_epochs"


def with_fewer(source: str, most: int) -> str:
    """A cell in which no number that is given to ``num_epochs`` or ``max_epochs`` exceeds ``most``."""
    program = TransformerManager().transform_cell(source)  # with what Jupyter has besides Python
    try:
        tree = ast.parse(program)
    except SyntaxError:  # which the page's readers are told of, too
        return source
    lines = program.encode().splitlines(keepends=True)
    for number in sorted(_numbers(tree), key=lambda each: (each.lineno, each.col_offset))[::-1]:
        if isinstance(number.value, int) and number.value > most:
            line = lines[number.lineno - 1]
            after = line[number.end_col_offset :]
            lines[number.lineno - 1] = line[: number.col_offset] + b"%d" % most + after
    return b"".join(lines).decode()


def _numbers(tree: ast.AST) -> Iterator[ast.Constant]:
    given = [pair for node in ast.walk(tree) for pair in _given(node)]
    yield from (value for name, value in given if name in NAMES and isinstance(value, ast.Constant))


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names, and what they are given there: by an assignment, an argument, or as a default."""
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
