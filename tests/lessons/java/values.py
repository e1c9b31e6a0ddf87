"""Read the variables of a Java notebook for the claims, which are in Python.

``handover.java`` runs in the notebook's kernel and sends values as JSON: numbers, strings, arrays, lists, maps, records
and figures. Anything else (a model, a function) stays in the kernel as a :class:`JavaObject`.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from d2l_compat._shared.plot import draw_frames
from tests.lessons.cells import ExecutedCell
from tools.run.page_kernel import Execution, PageKernel

HANDOVER = Path(__file__).with_name("handover.java")
MAX_LITERAL = 2**15  # characters; a string constant of Java has at most 65,535 bytes
COMMENT_OR_LITERAL = re.compile(
    r'/\*.*?\*/|//[^\n]*|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'', re.DOTALL
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?=f?\b)")
ASSIGNMENT = re.compile(r"(?<![\w.])(\w+)\s*=(?![=>])")


class JavaError(ValueError):
    """Raised with the kernel's message if code fails."""


def find_assigned_names(source: str) -> list[str]:
    """Return the variables that a cell sets outside methods, classes and loops."""
    depth = 0
    outside = []
    for part in re.split(r"([{}()\[\]])", COMMENT_OR_LITERAL.sub(" ", source)):
        if part in ("{", "(", "["):
            depth += 1
        elif part in ("}", ")", "]"):
            depth -= 1
        elif depth == 0:
            outside.append(part)
    return [*dict.fromkeys(ASSIGNMENT.findall("".join(outside)))]


def to_camel_case(name: str) -> str:
    """Convert a Python name to camel case: ``head_outputs`` becomes ``headOutputs``, ``W_q`` stays the same."""
    return re.sub(r"(?<=[a-z\d])_([a-z])(?=[a-z\d])", lambda match: match[1].upper(), name)


class Java:
    """A notebook's Java kernel, from which values are read."""

    def __init__(self, kernel: PageKernel) -> None:
        self.kernel = kernel
        self._cache: dict[str, Any] = {}

    def define_helpers(self) -> None:
        """Define the Java helpers, after the first cell's imports."""
        self.run(f"{HANDOVER.read_text(encoding='utf-8')}\nHandover.recordFigures();")

    def run(self, code: str) -> None:
        """Run code. Raises JavaError with the message of the compiler or the program."""
        result = self.kernel.execute_extra(code)
        if result.traceback:
            raise JavaError(f"{result.traceback}\n{code[:2000]}")

    def store(self, cell: str, names: list[str], num_figures: int = 0) -> None:
        values = "".join(f', "{name}", {name}' for name in names)
        self.run(f'Handover.store("{cell}", {num_figures}{values});')

    def get(self, expression: str) -> Any:
        """Return the value of an expression, through a file, since printed text may come after the kernel's reply."""
        file = Path(self.kernel.workspace.folder, "handover.json")
        self.run(f'Handover.write("{file.as_posix()}", {expression});')
        return self._read(json.loads(file.read_text(encoding="utf-8")))

    def get_once(self, expression: str) -> Any:
        """Return the cached value of an expression that does not change after all cells have run."""
        if expression not in self._cache:
            self._cache[expression] = self.get(expression)
        return self._cache[expression]

    def call(self, function: str, *args: Any) -> Any:
        return self.get(render_call(function, *args))

    def _read(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._read(x) for x in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            array = np.frombuffer(b64decode(value["array"])).reshape(value["shape"])
            return array.astype(value["type"])
        if "map" in value:
            return {key: self._read(x) for key, x in value["map"]}
        if "fields" in value:
            return Fields(value["class"], self._read(value["fields"]))
        return JavaObject(self, value["class"], value["number"])


class Fields(SimpleNamespace):
    """A record or a figure; a record can be unpacked like a tuple."""

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        super().__init__(**fields)
        self._kind, self._fields = kind, [*fields]

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._fields)


class Code(str):
    """An argument that is Java code, which is passed on as it is."""


METHODS = {"BiFunction": "apply", "Function": "apply", "UnaryOperator": "apply", "Supplier": "get"}


class JavaObject:
    """A Java object that stays in its kernel, where its fields are read and its methods called."""

    def __init__(self, java: Java, kind: str, number: str) -> None:
        self.java, self.kind = java, kind
        self.expression = f'(({kind}) Handover.stored.get("{number}"))'

    def __call__(self, *inputs: Any) -> Any:
        """Call a function; pass a block to the lesson's function ``evaluate``."""
        if method := METHODS.get(self.kind):
            return self.call(method, *inputs)
        return self.java.call("evaluate", self, *inputs)

    def get(self, path: str) -> Any:
        """Return a field, or the rest of an expression on the object, such as ``layers.get(0).W_q``."""
        return self.java.get_once(f"{self.expression}.{path}")

    def call(self, method: str, *args: Any) -> Any:
        return self.java.call(f"{self.expression}.{method}", *args)

    def parameters(self, *paths: str) -> list[list[np.ndarray]]:
        """Return the parameters of each block, in one expression, since evaluating one takes a tenth of a second."""
        blocks = (f"Handover.listParameters({self.expression}.{path})" for path in paths)
        return self.java.get_once(f"List.of({', '.join(blocks)})")


def render_call(function: str, *args: Any) -> str:
    """Render a call of a function or a method in Java."""
    return f"{function}({', '.join(map(render_literal, args))})"


def render_literal(value: Any) -> str:
    """Render a Python value in Java."""
    if value is None:
        return "null"
    if isinstance(value, JavaObject):
        return value.expression
    if isinstance(value, Code):
        return value
    if isinstance(value, (bool, str)):
        return json.dumps(value)
    if isinstance(value, np.ndarray):
        kind = "BOOLEAN" if value.dtype == bool else f"{value.dtype}".upper()
        encoded = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        chunks = [encoded[i : i + MAX_LITERAL] for i in range(0, len(encoded), MAX_LITERAL)] or [""]
        # Not with +, which the compiler would evaluate to one constant.
        joined = f"String.join({', '.join(map(json.dumps, ['', *chunks]))})"
        sizes = "".join(f", {size}L" for size in value.shape)
        return f'Handover.createArray("{kind}", {joined}{sizes})'
    return repr(value)


class Names(Mapping[str, Any]):
    """A cell's variables by name, as in Python; any other name gives a function that calls the Java method."""

    def __init__(self, java: Java, keys: dict[str, str]) -> None:
        self.java, self._keys = java, keys

    def __getitem__(self, name: str) -> Any:
        name = to_camel_case(name)
        if name not in self._keys:
            return lambda *args: self.java.call(name, *args)
        return self.java.get_once(f'Handover.stored.get("{self._keys[name]}")')

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and to_camel_case(name) in self._keys


class JavaCell(ExecutedCell):
    """A cell whose figures are drawn again by matplotlib, from the same numbers."""

    def __init__(
        self, java: Java, name: str, source: str, execution: Execution, names: Names
    ) -> None:
        self.source = source
        self.printed = execution.printed
        self.value = execution.value
        self.names = names  # type: ignore[assignment]
        self._java, self._name = java, name

    @property
    def numbers(self) -> set[float]:
        code = COMMENT_OR_LITERAL.sub(" ", self.source)
        return {float(number) for number in NUMBER.findall(code)}

    @cached_property
    def figures(self) -> list[Any]:  # type: ignore[override]
        figures = self._java.get(f'Handover.stored.get("{self._name}/figures")')
        return [DRAW[figure._kind](figure) for figure in figures]


def _draw_heatmaps(fields: Any) -> Any:
    grid = np.array(fields.grid, float)
    size = fields.width / 72, fields.height / 72
    figure, axes = plt.subplots(*grid.shape[:2], squeeze=False, figsize=size)
    for row, matrices in zip(axes, grid, strict=True):
        for column, (panel, matrix) in enumerate(zip(row, matrices, strict=True)):
            panel.imshow(matrix, cmap=fields.colorMap, vmin=fields.low, vmax=fields.high)
            panel.set(title=fields.titles[column] if fields.titles else "")
        row[0].set_ylabel(fields.ylabel)
        if fields.yticklabels:
            row[0].set_yticks(range(len(fields.yticklabels)), fields.yticklabels)
    for panel in axes[-1]:
        panel.set_xlabel(fields.xlabel)
        if fields.xticklabels:
            panel.set_xticks(range(len(fields.xticklabels)), fields.xticklabels)
    for panel, is_marked in zip(
        axes.flat, np.reshape(fields.isMarked, (-1, *grid.shape[2:])), strict=True
    ):
        draw_frames(panel, is_marked)
    plt.close(figure)
    return figure


def _draw_curves(fields: Any) -> Any:
    figure, axes = plt.subplots(figsize=(fields.width / 72, fields.height / 72))
    for i, curve in enumerate(fields.curves):
        label = fields.names[i] if i < len(fields.names) else None
        axes.plot(curve.x, curve.y, label=label)
    for curve, ranges in zip(fields.curves, fields.ranges, strict=False):
        axes.vlines(curve.x, [bar.low for bar in ranges], [bar.high for bar in ranges])
    axes.set(xlabel=fields.xlabel, ylabel=fields.ylabel)
    axes.set_xscale("log" if fields.hasLogX else "linear")
    axes.set_yscale("log" if fields.hasLogY else "linear")
    if fields.names:
        axes.legend(axes.get_lines()[: len(fields.names)], fields.names)
    plt.close(figure)
    return figure


DRAW = {"Heatmaps": _draw_heatmaps, "Curves": _draw_curves}
