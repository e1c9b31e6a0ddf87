"""``python -m tools.bench.imports [FRAMEWORK ...]``: what importing the shim costs.

In one process the framework is imported, and then the shim's face, in another upstream's d2l in its place: what
either takes is measured beside its framework in the same seconds, since a machine is slow or fast for a while.
Medians over the rounds. The first round, which fills the disk's cache, does not count.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from math import nan
from statistics import median

from d2l_compat.frameworks import FACES

# MXNet needs the shim's help to be imported on today's NumPy at all; upstream's d2l for it does, too.
MXNET = "from d2l_compat._mxnet_numpy import removed_names\nwith removed_names(): import mxnet\n"
# What a face uses of a framework, where that is more than its packages.
ALONE = {
    "jax": "import jax, flax.linen",
    "mxnet": MXNET + "from mxnet import np, npx, gluon",
    "mlx": "import mlx.core, mlx.nn, mlx.optimizers",
}
TIMED = """\
import time
start = time.perf_counter()
{framework}
there = time.perf_counter()
{other}
print(there - start, time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Import:
    """Seconds."""

    framework: float  # alone
    both: float  # it, and what comes on top of it

    @property
    def times(self) -> float:
        return self.both / self.framework


def alone(framework: str) -> str:
    packages = ", ".join(package.module for package in FACES[framework].packages)
    return ALONE.get(framework, f"import {packages}")


def measured(framework: str, package: str) -> Import | None:
    """Of the framework's face in a package; None where that cannot be imported."""
    other = f"from {package} import {FACES[framework].face}"
    program = TIMED.format(framework=alone(framework), other=other)
    # Else compiling Python's files would be what is measured, each time.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return Import(*map(float, done.stdout.split()[-2:])) if done.returncode == 0 else None


def rounds(framework: str, package: str, count: int) -> list[Import]:
    """As many, or none where it cannot be imported."""
    found = [measured(framework, package) for _ in range(count + 1)]
    return [each for each in found[1:] if each is not None]


def main(arguments: list[str] | None = None) -> int:
    """1 where the shim costs more than it may."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.imports", description=__doc__)
    parser.add_argument("framework", nargs="*", default=[*FACES], help="only these")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args(arguments)
    print("seconds to import     alone    shim   upstream   shim/alone   upstream/alone")
    too_slow = False
    for framework in asked.framework:
        if framework not in FACES:  # Java imports nothing of Python's
            continue
        shim = rounds(framework, "d2l_compat", asked.rounds)
        if not shim:
            raise RuntimeError(f"{framework}: it cannot be imported")
        upstream = rounds(framework, "d2l", asked.rounds)
        seconds = [
            median(each.framework for each in shim),
            *(median(each.both for each in of) if of else nan for of in (shim, upstream)),
        ]
        times = [median(each.times for each in of) if of else nan for of in (shim, upstream)]
        row = "{:20}{:7.2f}{:8.2f}{:11.2f}{:13.2f}{:17.2f}".format(framework, *seconds, *times)
        print(row, flush=True)
        too_slow |= times[0] > 1.05
    print("\nThe shim may cost 1.05 times what the framework does.")
    return int(too_slow)


if __name__ == "__main__":
    sys.exit(main())
