"""``python -m tools.bench.attention [FRAMEWORK ...]``: how fast attention is, and how much it takes.

Multi-head attention forward and backward: the shim's, upstream d2l's, and the framework's own
(tools/bench/layers). They take turns, there and back, at each length and in each round a process
each: what one holds on to, the next does not lack. The median of the rounds counts; where every step
is long, there is one. Memory is what the first step of that length adds to the most that the process
ever held.
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
from typing import NamedTuple

from d2l_compat.frameworks import FACES
from tools.bench.layers import Step, lengths

ROUNDS = 3
AT_LEAST = 1.0  # seconds a measurement, however many steps that are
LONG = 10.0  # seconds a step, in which noise is evened out: one round is enough
NAMES = ("shim", "upstream", "own")


class Took(NamedTuple):
    """What one step took."""

    open: float  # seconds, where every key is seen
    masked: float  # seconds, with valid_lens
    memory: float  # megabytes, without


def main(arguments: list[str] | None = None) -> int:
    """1 where the shim is behind upstream, or in the geometric mean behind the framework's own."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.attention", description=__doc__)
    parser.add_argument("framework", nargs="*", default=[*FACES], help="only these")
    about = "sequence lengths; at 4096 some layers take 17 GB"
    usual = [128, 256, 512, 1024, 2048, 4096]
    parser.add_argument("--lengths", type=int, nargs="*", default=usual, help=about)
    parser.add_argument("--alone", choices=NAMES, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.alone:
        print(json.dumps(measure(asked.framework[0], asked.alone, asked.lengths[0])))
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
    print(f"    n  valid_lens{names}{names}", flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in NAMES}
    for n in all_lengths:
        took = take_turns(framework, n)
        if "shim" not in took:
            return True
        for what in ("open", "masked"):
            row = {name: getattr(steps, what) for name, steps in took.items()}
            for name, took_it in row.items():
                ratios[name].append(row["shim"] / took_it)
            memory = {} if what == "masked" else {k: steps.memory for k, steps in took.items()}
            is_masked = "yes" if what == "masked" else "no"
            print(f"{n:5}  {is_masked:>10}{cells(row, '.3f')}{cells(memory, '.0f')}", flush=True)
    return is_behind(ratios)


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


def take_turns(framework: str, n: int) -> dict[str, Took]:
    """By name, the medians of the rounds; one that there is not, or that found no room, is left out."""
    rounds: dict[str, list[Took]] = {name: [] for name in NAMES}
    remaining = list(NAMES)
    for turn in range(ROUNDS):
        for name in remaining[:: -1 if turn % 2 else 1]:  # a copy
            took = in_a_process(framework, name, n)
            if took is None:
                remaining.remove(name)
            else:
                rounds[name].append(took)
        if remaining and all(rounds[name][0].open > LONG for name in remaining):
            break
    return {
        name: Took(*map(statistics.median, zip(*rounds[name], strict=True))) for name in remaining
    }


def in_a_process(framework: str, name: str, n: int) -> Took | None:
    words = [framework, "--alone", name, "--lengths", str(n)]
    command = [sys.executable, "-W", "ignore", "-m", "tools.bench.attention", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        print(f"{n:5}  {name}: ended by signal {-done.returncode}; too little memory?")
        return None
    if done.returncode:
        raise RuntimeError(f"{framework}, {name}, n = {n}:\n{done.stderr}")
    took = json.loads(done.stdout.splitlines()[-1])
    return Took(*took) if took else None


def measure(framework: str, name: str, n: int) -> Took | None:
    """In this process; None where there is no layer of this name."""
    layers = import_module(f"tools.bench.layers.{framework}")
    contenders: Callable[..., dict[str, Callable[[], Step]]] = layers.contenders
    if name not in (small := contenders(16, None)):
        return None
    small[name]()()  # what the first step takes besides
    before = most_ever_held()
    step = contenders(n, None)[name]()
    step()
    memory = most_ever_held() - before
    masked = contenders(n, lengths(n))[name]()
    masked()
    return Took(seconds(step), seconds(masked), memory)


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
