"""What the cells of a Java notebook leave behind, for the claims, which are in Python.

``handover.java`` runs in the notebook's kernel and gives values as JSON: numbers, texts, arrays, lists, maps, records
and figures come over; anything else (a model, a function) stays in the kernel as a :class:`Kept`.
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

from tests.lessons.cells import ExecutedCell
from tools.run.page_kernel import Execution, PageKernel

HANDOVER = Path(__file__).with_name("handover.java")
LITERAL = 2**15  # characters: Java's constants have at most twice as many bytes
UNREAD = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'', re.DOTALL)
ASSIGNED = re.compile(r"\b(\w+)\s*=(?![=>])")


class JavaError(ValueError):
    """What the kernel said of code that failed."""


def assigned_names(source: str) -> list[str]:
    """The variables that a cell sets, outside of all methods, classes and loops."""
    depth, outside = 0, []
    for part in re.split(r"([{}()\[\]])", UNREAD.sub(" ", source)):
        if part in ("{", "(", "["):
            depth += 1
        elif part in ("}", ")", "]"):
            depth -= 1
        elif depth == 0:
            outside.append(part)
    return [*dict.fromkeys(ASSIGNED.findall("".join(outside)))]


def camel(name: str) -> str:
    """A Python name as Java writes it: ``head_outputs`` is ``headOutputs``, and ``W_q`` stays."""
    return re.sub(r"(?<=[a-z\d])_([a-z])(?=[a-z\d])", lambda found: found[1].upper(), name)


class Java:
    """A notebook's kernel, asked for values."""

    def __init__(self, kernel: PageKernel) -> None:
        self.kernel = kernel
        self._known: dict[str, Any] = {}

    def begin(self) -> None:
        """Once the first cell has its imports."""
        self.run(f"{HANDOVER.read_text(encoding='utf-8')}\nHandover.watchFigures();")

    def run(self, code: str) -> None:
        """Raises JavaError with the compiler's words, or the program's."""
        told = self.kernel.execute_extra(code)
        if told.fault:
            raise JavaError(f"{told.fault}\n{code[:2000]}")

    def keep(self, cell: str, names: list[str], num_figures: int = 0) -> None:
        values = "".join(f', "{name}", {name}' for name in names)
        self.run(f'Handover.keep("{cell}", {num_figures}{values});')

    def get(self, expression: str) -> Any:
        """The value of an expression. By a file: what a kernel prints may come after its reply."""
        file = Path(self.kernel.workspace.folder, "handover.json")
        self.run(f'Handover.write("{file.as_posix()}", {expression});')
        return self._read(json.loads(file.read_text(encoding="utf-8")))

    def get_once(self, expression: str) -> Any:
        """The value of an expression that has one value, once all cells have run."""
        if expression not in self._known:
            self._known[expression] = self.get(expression)
        return self._known[expression]

    def call(self, function: str, *args: Any) -> Any:
        return self.get(call(function, *args))

    def _read(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._read(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            array = np.frombuffer(b64decode(value["array"])).reshape(value["shape"])
            return array.astype(value["type"])
        if "map" in value:
            return {key: self._read(each) for key, each in value["map"]}
        if "fields" in value:
            return Fields(value["of"], self._read(value["fields"]))
        return Kept(self, value["of"], value["kept"])


class Fields(SimpleNamespace):
    """A record or a figure; a record may be taken apart as a tuple."""

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        super().__init__(**fields)
        self._kind, self._fields = kind, [*fields]

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._fields)


class Code(str):
    """An argument that is Java code already."""


METHODS = {"BiFunction": "apply", "Function": "apply", "UnaryOperator": "apply", "Supplier": "get"}


class Kept:
    """A Java object that stays in its kernel; its fields and methods are asked for there."""

    def __init__(self, java: Java, kind: str, number: str) -> None:
        self.java, self.kind = java, kind
        self.expression = f'(({kind}) Handover.kept.get("{number}"))'

    def __call__(self, *inputs: Any) -> Any:
        """What a function makes of its inputs; or a block, by the lesson's own function."""
        if method := METHODS.get(self.kind):
            return self.call(method, *inputs)
        return self.java.call("evaluate", self, *inputs)

    def get(self, path: str) -> Any:
        """A field, or what follows the object in an expression: ``layers.get(0).W_q``."""
        return self.java.get_once(f"{self.expression}.{path}")

    def call(self, method: str, *args: Any) -> Any:
        return self.java.call(f"{self.expression}.{method}", *args)

    def parameters(self, *paths: str) -> list[list[np.ndarray]]:
        """Of each of these blocks inside it; all in one question, since each takes the kernel a tenth of a second."""
        blocks = (f"Handover.parameters({self.expression}.{path})" for path in paths)
        return self.java.get_once(f"List.of({', '.join(blocks)})")


def call(function: str, *args: Any) -> str:
    """A call of a function or a method, as Java writes it."""
    return f"{function}({', '.join(map(literal, args))})"


def literal(value: Any) -> str:
    """A Python value in Java's words."""
    if value is None:
        return "null"
    if isinstance(value, Kept):
        return value.expression
    if isinstance(value, Code):
        return value
    if isinstance(value, (bool, str)):
        return json.dumps(value)
    if isinstance(value, np.ndarray):
        kind = "BOOLEAN" if value.dtype == bool else f"{value.dtype}".upper()
        encoded = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        chunks = [encoded[at : at + LITERAL] for at in range(0, len(encoded), LITERAL)] or [""]
        # Not by +, which the compiler would make one constant of.
        joined = f"String.join({', '.join(map(json.dumps, ['', *chunks]))})"
        sizes = "".join(f", {size}L" for size in value.shape)
        return f'Handover.array("{kind}", {joined}{sizes})'
    return repr(value)


class Names(Mapping[str, Any]):
    """What a cell's names mean, once it has run: variables, by their Python names; else methods."""

    def __init__(self, java: Java, places: dict[str, str]) -> None:
        self.java, self._places = java, places

    def __getitem__(self, name: str) -> Any:
        name = camel(name)
        if name not in self._places:
            return lambda *args: self.java.call(name, *args)
        return self.java.get_once(f'Handover.kept.get("{self._places[name]}")')

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and camel(name) in self._places


class JavaCell(ExecutedCell):
    """A cell whose figures are drawn anew by matplotlib, from the same numbers."""

    def __init__(
        self, java: Java, name: str, source: str, execution: Execution, names: Names
    ) -> None:
        self.source, self.printed = source, execution.printed
        self.value = execution.value
        self.names = names  # type: ignore[assignment]
        self._java, self._name = java, name

    @cached_property
    def figures(self) -> list[Any]:  # type: ignore[override]
        kept = self._java.get(f'Handover.kept.get("{self._name}/figures")')
        return [DRAWN[each._kind](each) for each in kept]


def _heatmaps(its: Any) -> Any:
    grid = np.array(its.grid, float)
    size = its.width / 72, its.height / 72
    figure, axes = plt.subplots(*grid.shape[:2], squeeze=False, figsize=size)
    for row, matrices in zip(axes, grid, strict=True):
        for column, (panel, matrix) in enumerate(zip(row, matrices, strict=True)):
            panel.imshow(matrix, cmap=its.colorMap, vmin=its.low, vmax=its.high)
            panel.set(title=its.titles[column] if its.titles else "")
        row[0].set_ylabel(its.ylabel)
    for panel in axes[-1]:
        panel.set_xlabel(its.xlabel)
    plt.close(figure)
    return figure


def _curves(its: Any) -> Any:
    figure, axes = plt.subplots(figsize=(its.width / 72, its.height / 72))
    for number, curve in enumerate(its.curves):
        label = its.names[number] if number < len(its.names) else None
        axes.plot(curve.x, curve.y, label=label)
    axes.set(xlabel=its.xlabel, ylabel=its.ylabel)
    axes.set_xscale("log" if its.hasLogX else "linear")
    axes.set_yscale("log" if its.hasLogY else "linear")
    if its.names:
        axes.legend()
    plt.close(figure)
    return figure


DRAWN = {"Heatmaps": _heatmaps, "Curves": _curves}
