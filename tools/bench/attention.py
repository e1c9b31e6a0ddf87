"""``python -m tools.bench.attention [FRAMEWORK ...]``: how fast attention is, and how much it takes.

Multi-head attention forward and backward, without a mask and with each that the shim takes: the shim's,
upstream d2l's, and the framework's own (tools/bench/layers). They take turns, there and back, in each row
of the table and in each round a process each: what one holds on to, the next does not lack. The median
of the rounds counts; where every step is long, there is one. Memory is what the first step of that row
adds to the most that the process ever held. Who cannot do what a row asks is left out of it.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import NamedTuple

from d2l_compat.frameworks import FACES
from tools.bench.layers import MASKS, Mask, Step

ROUNDS = 3
AT_LEAST = 1.0  # seconds a measurement, however many steps that are
LONG = 10.0  # seconds a step, in which noise is evened out: one round is enough
NAMES = ("shim", "upstream", "own")


class Took(NamedTuple):
    """What one step took."""

    seconds: float
    megabytes: float


def main(arguments: list[str] | None = None) -> int:
    """1 where the shim is behind upstream, or in the geometric mean behind the framework's own."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.attention", description=__doc__)
    parser.add_argument("framework", nargs="*", default=[*FACES], help="only these")
    about = "sequence lengths; at 4096 some layers take 17 GB, and more with a bias"
    usual = [128, 256, 512, 1024, 2048, 4096]
    parser.add_argument("--lengths", type=int, nargs="*", default=usual, help=about)
    parser.add_argument("--alone", nargs=2, metavar=("NAME", "MASK"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.alone:
        name, mask = asked.alone
        print(json.dumps(measure(asked.framework[0], name, mask, asked.lengths[0])))
        return 0
    failed = False
    for framework in asked.framework:
        if framework in FACES:  # Java has no upstream, and its own layer is the shim's
            failed |= compare(framework, asked.lengths)
    return int(failed)


def compare(framework: str, all_lengths: list[int]) -> bool:
    """True where the shim is behind."""
    names = "".join(f"{name:>10}" for name in NAMES)
    print(f"\n{framework:21}seconds a step{'':16}megabytes a step")
    print(f"    n  {'mask':10}{names}{names}", flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in NAMES}
    found_room = True
    for n, mask in product(all_lengths, MASKS):
        took = take_turns(framework, mask, n)
        if "shim" not in took:
            found_room = False
            continue
        row = {name: steps.seconds for name, steps in took.items()}
        memory = {name: steps.megabytes for name, steps in took.items()}
        print(f"{n:5}  {mask:10}{cells(row, '.3f')}{cells(memory, '.0f')}", flush=True)
        for name, took_it in row.items():
            ratios[name].append(row["shim"] / took_it)
    return is_behind(ratios) or not found_room


def cells(row: dict[str, float], form: str) -> str:
    return "".join(f"{row[name]:10{form}}" if name in row else f"{'':10}" for name in NAMES)


def is_behind(ratios: dict[str, list[float]]) -> bool:
    means = {name: statistics.geometric_mean(each) for name, each in ratios.items() if each}
    for name in ("upstream", "own"):
        if name in means:
            most = max(ratios[name])
            print(f"shim / {name}: {means[name]:.2f} in the geometric mean, at most {most:.2f}")
    # Of two equal ones, either may be ahead.
    return max(ratios["upstream"], default=0) > 1.1 or means.get("own", 0) > 1


def take_turns(framework: str, mask: str, n: int) -> dict[str, Took]:
    """By name, the medians of the rounds; one that there is not, or that found no room, is left out."""
    rounds: dict[str, list[Took]] = {name: [] for name in NAMES}
    remaining = list(NAMES)
    for turn in range(ROUNDS):
        for name in remaining[:: -1 if turn % 2 else 1]:  # a copy
            took = in_a_process(framework, name, mask, n)
            if took is None:
                remaining.remove(name)
            else:
                rounds[name].append(took)
        if remaining and all(rounds[name][0].seconds > LONG for name in remaining):
            break
    return {
        name: Took(*map(statistics.median, zip(*rounds[name], strict=True))) for name in remaining
    }


def in_a_process(framework: str, name: str, mask: str, n: int) -> Took | None:
    words = [framework, "--alone", name, mask, "--lengths", str(n)]
    command = [sys.executable, "-W", "ignore", "-m", "tools.bench.attention", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        print(f"{n:5}  {mask:10}  {name}: ended by signal {-done.returncode}; too little memory?")
        return None
    if done.returncode:
        raise RuntimeError(f"{framework}, {name}, {mask}, n = {n}:\n{done.stderr}")
    took = json.loads(done.stdout.splitlines()[-1])
    return Took(*took) if took else None


def measure(framework: str, name: str, mask: str, n: int) -> Took | None:
    """In this process; None where no layer of this name takes such a mask."""
    layers = import_module(f"tools.bench.layers.{framework}")
    contenders: Callable[[Mask], dict[str, Callable[[], Step]]] = layers.contenders
    if name not in (small := contenders(MASKS[mask](16))):
        return None
    small[name]()()  # what the first step takes besides
    before = most_ever_held()
    step = contenders(MASKS[mask](n))[name]()
    step()
    memory = most_ever_held() - before
    return Took(seconds(step), memory)


def seconds(step: Step) -> float:
    """Of one, in the mean of as many as ``AT_LEAST`` asks for; what the first one compiles is there."""
    once = _seconds(step, 1)
    return once if once >= AT_LEAST else _seconds(step, math.ceil(AT_LEAST / once))


def _seconds(step: Step, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        step()
    return (time.perf_counter() - start) / times


def most_ever_held() -> float:
    """In megabytes; Linux counts in kilobytes, macOS in bytes."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    sys.exit(main())
