"""``python -m tools.bench.imports [FRAMEWORK ...]``: what importing the shim costs.

A process each, in turn: the framework alone, the shim's face, and upstream's d2l. Medians of several
rounds, and how many times the framework's own. The first round, which fills the disk's cache, does not count.
"""

import argparse
import os
import statistics
import subprocess
import sys

from d2l_compat._frameworks import FRAMEWORKS
from tools.lessons import face

# MXNet needs the shim's help to be imported on today's NumPy at all; upstream's d2l for it does, too.
MXNET = "from d2l_compat._mxnet_numpy import removed_names\nwith removed_names(): import mxnet\n"
ALONE = {
    "pytorch": "import torch",
    "tensorflow": "import tensorflow, keras",
    "jax": "import jax, flax.linen",
    "mxnet": MXNET + "from mxnet import np, npx, gluon",
    "paddle": "import paddle",
}
TIMED = "import time; start = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def programs(framework: str) -> dict[str, str]:
    name = face(framework)
    before = MXNET if framework == "mxnet" else ""
    return {
        "alone": ALONE[framework],
        "shim": f"from d2l_compat import {name}",
        "upstream": f"{before}from d2l import {name}",
    }


def seconds(program: str) -> float | None:
    """None where it fails."""
    command = [sys.executable, "-W", "ignore", "-c", TIMED.format(program)]
    # Else compiling Python's files would be what is measured, each time.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def main(arguments: list[str] | None = None) -> int:
    """1 where the shim costs more than it may."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.imports", description=__doc__)
    parser.add_argument("framework", nargs="*", default=[*FRAMEWORKS], help="only these")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    print("seconds to import     alone    shim   upstream   shim/alone   upstream/alone")
    too_slow = False
    for framework in asked.framework:
        if framework not in FRAMEWORKS:  # Java imports nothing of Python's
            continue
        times: dict[str, list[float]] = {}
        for number in range(asked.rounds + 1):
            for what, program in programs(framework).items():
                took = seconds(program)
                if number and took is not None:
                    times.setdefault(what, []).append(took)
        medians = {what: statistics.median(taken) for what, taken in times.items()}
        alone, shim, upstream = (medians.get(what) for what in ("alone", "shim", "upstream"))
        if alone is None or shim is None:
            raise RuntimeError(f"{framework}: it cannot be imported")
        theirs = f"{upstream:8.2f}{'':10}" if upstream else f"{'none':>8}{'':10}"
        times_theirs = f"{upstream / alone:14.2f}" if upstream else ""
        print(f"{framework:20}{alone:7.2f}{shim:8.2f}{theirs}{shim / alone:8.2f}{times_theirs}")
        too_slow |= shim > 1.05 * alone
    print("\nThe shim may cost 1.05 times what the framework does.")
    return int(too_slow)


if __name__ == "__main__":
    sys.exit(main())
