"""``python -m tools.bench.imports [FRAMEWORK ...]``: measure the time of importing the shim.

One process imports the framework and then the shim, another the framework and then upstream's d2l. Each import is
compared with the framework's in the same process, because a machine's speed changes over time. Numbers are medians
over the rounds without the first, which fills the disk cache.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from math import nan
from statistics import median

from d2l_compat.frameworks import PYTHON_FRAMEWORKS

# On today's NumPy, MXNet and upstream's d2l for MXNet can only be imported with the shim's help.
MXNET = "from d2l_compat._mxnet_numpy import add_removed_names\nwith add_removed_names(): import mxnet\n"
# How to import a framework if the shim uses more modules than its top-level packages.
FRAMEWORK_IMPORTS = {
    "jax": "import jax, flax.linen",
    "mxnet": MXNET + "from mxnet import np, npx, gluon",
    "mlx": "import mlx.core, mlx.nn, mlx.optimizers",
}
MAX_RATIO = 1.05
MAX_ADDED_TO_MLX = 0.25  # seconds; MLX starts in hundredths of a second and without NumPy
PROGRAM = """\
import time
start = time.perf_counter()
{framework}
middle = time.perf_counter()
{package}
print(middle - start, time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Import:
    """The seconds of an import."""

    framework: float  # the framework by itself
    both: float  # the framework and the package

    @property
    def ratio(self) -> float:
        return self.both / self.framework


def render_import(framework: str) -> str:
    """Return the statement that imports a framework."""
    packages = ", ".join(package.module for package in PYTHON_FRAMEWORKS[framework].packages)
    return FRAMEWORK_IMPORTS.get(framework, f"import {packages}")


def measure(framework: str, package: str) -> Import | None:
    """Measure the import of a package for a framework; return None if it cannot be imported."""
    statement = f"from {package} import {PYTHON_FRAMEWORKS[framework].module}"
    program = PROGRAM.format(framework=render_import(framework), package=statement)
    # Without cached bytecode, this would measure the compilation of Python files.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return Import(*map(float, process.stdout.split()[-2:])) if process.returncode == 0 else None


def measure_rounds(framework: str, package: str, count: int) -> list[Import]:
    """Return ``count`` measurements, or none if the package cannot be imported."""
    imports = [measure(framework, package) for _ in range(count + 1)]
    return [each for each in imports[1:] if each is not None]


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if the shim is slower than allowed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.imports", description=__doc__)
    parser.add_argument(
        "framework", nargs="*", default=[*PYTHON_FRAMEWORKS], help="measure only these"
    )
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args(arguments)
    print("seconds to import     alone    shim   upstream   shim/alone   upstream/alone")
    is_too_slow = False
    for framework in options.framework:
        if framework not in PYTHON_FRAMEWORKS:  # DJL is in Java
            continue
        shim = measure_rounds(framework, "d2l_compat", options.rounds)
        if not shim:
            raise RuntimeError(f"d2l_compat cannot be imported for {framework}")
        upstream = measure_rounds(framework, "d2l", options.rounds)
        row = [median(each.framework for each in shim)]
        row += [_median(each.both for each in imports) for imports in (shim, upstream)]
        ratios = [_median(each.ratio for each in imports) for imports in (shim, upstream)]
        line = "{:20}{:7.2f}{:8.2f}{:11.2f}{:13.2f}{:17.2f}".format(framework, *row, *ratios)
        print(line, flush=True)
        if framework == "mlx":
            is_too_slow |= row[1] - row[0] > MAX_ADDED_TO_MLX
        else:
            is_too_slow |= ratios[0] > MAX_RATIO
    print(f"\nAllowed: shim/alone up to {MAX_RATIO}; in MLX, {MAX_ADDED_TO_MLX} seconds more.")
    return int(is_too_slow)


def _median(numbers: Iterable[float]) -> float:
    """Return the median, or NaN if there are no numbers."""
    values = list(numbers)
    return median(values) if values else nan


if __name__ == "__main__":
    sys.exit(main())
