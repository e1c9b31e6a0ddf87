"""What a program uses of this project: its imports, and theirs, found without running anything.

What cannot be known is taken for the worst. A file that cannot be read, or that computes the name of
what it imports, may import anything: from within the shim, which is installed without the rest, any
module of the shim. In a computed name of which a part is known, ``import_module(f"a.b.{name}")``,
the unknown part stands for any name. A comment ``# imports: ...`` beside such a call says what else keeps
it from importing a module of ours that is not seen here.

A framework's program imports no other framework's modules by a computed name: one framework in a
process. By their own names they count, whatever they are.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tools.weave.lessons import ROOT

SHIM = "d2l_compat"
UPSTREAM = "d2l"  # which means the shim, where d2l_compat.alias is imported
PACKAGES = SHIM, "tools", "tests", "lessons"
IMPORTS_BY_NAME = {"import_module", "__import__", "importorskip"}
SAID = "# imports:"
ANYTHING = "*"


def used(files: Iterable[Path], framework: str = "", root: Path = ROOT) -> set[Path]:
    """These files of the project, those that they import, and what packages name that lies in them; for
    the programs of a framework."""
    modules = _modules(root)
    names = {file: name for name, file in modules.items()}
    to_do, found = list(files), set[Path]()
    while to_do:
        file = to_do.pop()
        if file in found:
            continue
        found.add(file)
        name = names.get(file, "")
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, ValueError):
            source = "?"  # no Python
        found |= _data(file, source)
        for imported in (name, *_imported(source, package)):
            to_do.extend(_files(imported, modules, framework))
    return found


def used_by_code(code: str, framework: str = "", root: Path = ROOT) -> set[Path]:
    """The project's files that a program uses, which is given as text; IPython's magics are none."""
    program = re.sub(r"^(\s*)[%!].*", r"\1pass", code, flags=re.MULTILINE)
    modules = _modules(root)
    files = [file for name in _imported(program, "") for file in _files(name, modules, framework)]
    return used(files, framework, root)


def is_anothers(path: Path | str, framework: str) -> bool:
    """Whether a file is another framework's own, by its name or its folder's. No framework: never."""
    words = {*re.split(r"[^a-z0-9]+", str(path).lower())}
    owners = {key for key, known in FRAMEWORKS.items() if words & {key, known.face}}
    return bool(framework and owners and framework not in owners)


def _modules(root: Path) -> dict[str, Path]:
    """The project's files, by the names that they are imported by."""
    files = [
        *root.glob("*.py"),
        *(file for name in PACKAGES for file in (root / name).rglob("*.py")),
    ]
    found = {}
    for file in files:
        parts = file.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def _files(name: str, modules: dict[str, Path], framework: str) -> Iterator[Path]:
    """Those that an import of this name runs: the module, and the packages that it is in."""
    if ANYTHING in name:
        for each in modules:
            if fnmatchcase(each, name) and not is_anothers(each, framework):
                yield from _files(each, modules, framework)
        return
    parts = name.split(".")
    if parts[0] == UPSTREAM:
        parts[0] = SHIM
    for end in range(1, len(parts) + 1):
        if file := modules.get(".".join(parts[:end])):
            yield file


@cache
def _imported(source: str, package: str) -> frozenset[str]:
    """The names in the imports of a module of this package."""
    anything = f"{SHIM}.*" if package.partition(".")[0] == SHIM else ANYTHING
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset({anything})
    found = set[str]()
    lines = source.splitlines()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                found.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
                found.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
            case ast.Call() if _name_of(node.func) in IMPORTS_BY_NAME:
                if SAID not in lines[(node.end_lineno or node.lineno) - 1]:
                    found.add(_pattern(node) or anything)
            case ast.Assign(targets=[ast.Name(id="pytest_plugins")]):
                found.update(ast.literal_eval(node.value))
    return frozenset(found)


def _data(module: Path, source: str) -> set[Path]:
    """What a package has beside its modules, and names: a font, say."""
    beside = module.parent.glob("[!.]*") if module.name == "__init__.py" else ()
    return {file for file in beside if file.suffix != ".py" and f'"{file.name}"' in source}


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _pattern(call: ast.Call) -> str | None:
    """The name that a call imports, with ``*`` for what is computed; None where all of it is."""
    match call.args:
        case [ast.Constant(value=str(name))] if not name.startswith("."):
            return name
        case [ast.JoinedStr(values=parts)]:
            known = (p.value if isinstance(p, ast.Constant) else ANYTHING for p in parts)
            return "".join(map(str, known))
    return None
