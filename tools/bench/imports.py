"""``python -m tools.bench.imports [FRAMEWORK ...]``: what importing the shim costs.

A process each: the framework alone, the shim's face, and upstream's d2l, each round in another order.
Medians over the rounds of the seconds, and of how many times the framework's own in the same round: a
machine that slows down for a while slows down both. The first round, which fills the disk's cache,
does not count.
"""

import argparse
import os
import statistics
import subprocess
import sys
from random import Random

from d2l_compat.frameworks import FACES

# MXNet needs the shim's help to be imported on today's NumPy at all; upstream's d2l for it does, too.
MXNET = "from d2l_compat._mxnet_numpy import removed_names\nwith removed_names(): import mxnet\n"
# What a face uses of a framework, where that is more than its packages.
ALONE = {
    "jax": "import jax, flax.linen",
    "mxnet": MXNET + "from mxnet import np, npx, gluon",
    "mlx": "import mlx.core, mlx.nn, mlx.optimizers",
}
TIMED = "import time; start = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def programs(framework: str) -> dict[str, str]:
    name = FACES[framework].face
    packages = ", ".join(package.module for package in FACES[framework].packages)
    before = MXNET if framework == "mxnet" else ""
    return {
        "alone": ALONE.get(framework, f"import {packages}"),
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


def measured(framework: str, order: Random) -> dict[str, float]:
    """Seconds of each program in one round; upstream's is left out where it fails."""
    turns = [*programs(framework).items()]
    order.shuffle(turns)
    taken = {what: seconds(program) for what, program in turns}
    if taken["alone"] is None or taken["shim"] is None:
        raise RuntimeError(f"{framework}: it cannot be imported")
    return {what: took for what, took in taken.items() if took is not None}


def median(rounds: list[dict[str, float]], what: str, per: str | None = None) -> float:
    """Of the seconds, or of how many times those of another."""
    return statistics.median(taken[what] / (taken[per] if per else 1) for taken in rounds)


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
        rounds = [measured(framework, Random(n)) for n in range(asked.rounds + 1)][1:]
        ours = median(rounds, "shim", per="alone")
        upstream, theirs = f"{'none':>8}", ""
        if all("upstream" in taken for taken in rounds):
            upstream = f"{median(rounds, 'upstream'):8.2f}"
            theirs = f"{median(rounds, 'upstream', per='alone'):14.2f}"
        alone, shim = median(rounds, "alone"), median(rounds, "shim")
        print(f"{framework:20}{alone:7.2f}{shim:8.2f}{upstream}{ours:18.2f}{theirs}", flush=True)
        too_slow |= ours > 1.05
    print("\nThe shim may cost 1.05 times what the framework does.")
    return int(too_slow)


if __name__ == "__main__":
    sys.exit(main())
