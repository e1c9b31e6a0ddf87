"""``python -m tools.bench.attention [FRAMEWORK ...]``: how fast attention is, and how much it takes.

Multi-head attention forward and backward: the shim's, upstream d2l's, and the framework's own
(tools/bench/layers). They take turns in one process a framework; the median of the rounds counts.
Memory is the shim's alone, a process a length: by how much one step raises the most ever held.
"""

import argparse
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module

from d2l_compat._frameworks import FRAMEWORKS
from tools.bench.layers import lengths

ROUNDS = 3
AT_LEAST = 0.2  # seconds a measurement, however many steps that are


def main(arguments: list[str] | None = None) -> int:
    """1 where the shim is behind upstream, or in the geometric mean behind the framework's own."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.attention", description=__doc__)
    parser.add_argument("framework", nargs="*", default=[*FRAMEWORKS], help="only these")
    about = "sequence lengths; the layers together take more than 24 GB at 4096 in TensorFlow"
    usual = [128, 256, 512, 1024, 2048, 4096]
    parser.add_argument("--lengths", type=int, nargs="*", default=usual, help=about)
    parser.add_argument("--time", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.time:
        return compare(asked.framework[0], asked.lengths)
    if asked.memory:
        return measure(asked.framework[0], asked.lengths[0])
    failed = 0
    for framework in asked.framework:
        if framework in FRAMEWORKS:  # Java has no upstream, and its own layer is the shim's
            print(f"\n{framework}", flush=True)
            failed |= _child("--time", framework, asked.lengths)
            for n in asked.lengths[-3:]:
                failed |= _child("--memory", framework, [n])
    return failed


def _child(what: str, framework: str, lengths: list[int]) -> int:
    words = [framework, what, "--lengths", *map(str, lengths)]
    command = [sys.executable, "-W", "ignore", "-m", "tools.bench.attention", *words]
    return int(subprocess.run(command, check=False).returncode != 0)


def compare(framework: str, all_lengths: list[int]) -> int:
    layers = import_module(f"tools.bench.layers.{framework}")
    to_upstream, to_own = [], []
    print("   n  valid_lens   shim  upstream     own   seconds a step", flush=True)
    for n in all_lengths:
        for is_masked in (False, True):
            steps = layers.contenders(n, lengths(n) if is_masked else None)
            took = alternate(steps)
            shown = [f"{took[name]:8.3f}" if name in took else f"{'-':>8}" for name in NAMES]
            print(f"{n:5} {'yes' if is_masked else 'no':>8}  {' '.join(shown)}", flush=True)
            if "upstream" in took:
                to_upstream.append(took["shim"] / took["upstream"])
            if "own" in took:
                to_own.append(took["shim"] / took["own"])
            del steps
    failed = False
    if to_upstream:
        worst, mean = max(to_upstream), geometric_mean(to_upstream)
        print(f"shim / upstream: {mean:.2f} in the geometric mean, at most {worst:.2f}")
        failed |= worst > 1.1  # of two equal ones, either may be ahead
    if to_own:
        mean = geometric_mean(to_own)
        print(f"shim / own:      {mean:.2f} in the geometric mean, at most {max(to_own):.2f}")
        failed |= mean > 1
    return int(failed)


NAMES = ("shim", "upstream", "own")


def alternate(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median seconds of a step, of each; they take turns."""
    counts = {}
    for name, step in steps.items():
        step()  # which compiles, and makes the weights
        counts[name] = math.ceil(AT_LEAST / seconds(step, 1))
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            taken[name].append(seconds(step, counts[name]))
    return {name: statistics.median(times) for name, times in taken.items()}


def seconds(step: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        step()
    return (time.perf_counter() - start) / times


def measure(framework: str, n: int) -> int:
    layers = import_module(f"tools.bench.layers.{framework}")
    layers.contenders(16, None)["shim"]()  # what the first step takes besides
    before = most_ever_held()
    layers.contenders(n, None)["shim"]()
    print(
        f"{n:5}  {most_ever_held() - before:6.0f} MB that one step of the shim's takes", flush=True
    )
    return 0


def most_ever_held() -> float:
    """In megabytes; Linux counts in kilobytes, macOS in bytes."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.mean(map(math.log, ratios)))


if __name__ == "__main__":
    sys.exit(main())
