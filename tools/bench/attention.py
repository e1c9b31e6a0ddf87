"""``python -m tools.bench.attention [FRAMEWORK ...]``: measure the time and the memory of attention.

Compare multi-head attention, forward and backward, of the shim, of upstream's d2l and of the framework itself
(tools/bench/layers), without a mask and with each kind of mask. Each row of the table takes some rounds. In a round,
every layer runs in a new process, so that none uses memory that another left; the order alternates from round to round.
Each number is the median of the rounds; one round is enough if steps are long. Memory is what the first step adds to
the process's peak. A layer that does not support a row's mask is left out. After a table come exponents, of the growth
of the shim's time and memory from the second-longest sequence to the longest: 1 is linear, 2 is a square.
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

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.bench.layers import MASKS, Mask, Step

ROUNDS = 3
MIN_SECONDS = 1.0  # of a measurement, which repeats the step as often as needed
LONG_STEP = 10.0  # seconds from which one round is enough
NAMES = ("shim", "upstream", "own")  # of the layers; "own" is the framework's
MAX_OWN = 4096  # with a window, the frameworks' own layers still compute all scores


class Cost(NamedTuple):
    """The cost of one step."""

    seconds: float
    megabytes: float


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if the shim is slower than upstream, or on average than the framework's own layer."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.attention", description=__doc__)
    parser.add_argument(
        "framework", nargs="*", default=[*PYTHON_FRAMEWORKS], help="measure only these"
    )
    parser.add_argument(
        "--lengths",
        type=int,
        nargs="*",
        default=[128, 256, 512, 1024, 2048, 4096],
        help="sequence lengths; at 4096 some layers take 17 GB, and more with a bias",
    )
    parser.add_argument(
        "--masks", nargs="*", choices=MASKS, default=["no mask", "valid_lens", "causal", "bias"]
    )
    parser.add_argument("--single", nargs=2, metavar=("NAME", "MASK"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.single:
        name, mask = options.single
        print(json.dumps(measure(options.framework[0], name, mask, options.lengths[0])))
        return 0
    has_failed = False
    for framework in options.framework:
        if framework in PYTHON_FRAMEWORKS:  # DJL has no layer to compare with the shim's
            has_failed |= compare(framework, options.lengths, options.masks)
    return int(has_failed)


def compare(framework: str, lengths: list[int], masks: list[str]) -> bool:
    """Print the table of a framework; return whether the shim is slower or ran out of memory."""
    names = "".join(f"{name:>10}" for name in NAMES)
    print(f"\n{framework:21}seconds a step{'':16}megabytes a step")
    print(f"    n  {'mask':10}{names}{names}", flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in NAMES}
    shim_costs: dict[str, list[Cost]] = {mask: [] for mask in masks}
    out_of_memory = False
    for n, mask in product(lengths, masks):
        costs = measure_rounds(framework, mask, n)
        if "shim" not in costs:
            out_of_memory = True
            continue
        shim_costs[mask].append(costs["shim"])
        times = {name: cost.seconds for name, cost in costs.items()}
        memory = {name: cost.megabytes for name, cost in costs.items()}
        cells = format_cells(times, ".3f") + format_cells(memory, ".0f")
        print(f"{n:5}  {mask:10}{cells}", flush=True)
        for name, seconds in times.items():
            ratios[name].append(times["shim"] / seconds)
    if not out_of_memory and len(lengths) > 1:
        report_exponents(lengths, shim_costs)
    return report_ratios(ratios) or out_of_memory


def format_cells(row: dict[str, float], number_format: str) -> str:
    cells = [f"{row[name]:{number_format}}" if name in row else "" for name in NAMES]
    return "".join(f"{cell:>10}" for cell in cells)


def report_exponents(lengths: list[int], costs: dict[str, list[Cost]]) -> None:
    doublings = math.log2(lengths[-1] / lengths[-2])
    for mask, (*_, shorter, longest) in costs.items():
        seconds = math.log2(longest.seconds / shorter.seconds) / doublings
        megabytes = math.log2(longest.megabytes / shorter.megabytes) / doublings
        print(f"{mask}: exponents {seconds:.2f} (seconds), {megabytes:.2f} (megabytes)")


def report_ratios(ratios: dict[str, list[float]]) -> bool:
    """Print how the shim compares; return whether it is slower."""
    means = {name: statistics.geometric_mean(each) for name, each in ratios.items() if each}
    for name in ("upstream", "own"):
        if name in means:
            worst = max(ratios[name])
            print(f"shim / {name}: {means[name]:.2f} in the geometric mean, at most {worst:.2f}")
    # The margin is for noise: one of two equally fast layers is always ahead.
    return max(ratios["upstream"], default=0) > 1.1 or means.get("own", 0) > 1


def measure_rounds(framework: str, mask: str, n: int) -> dict[str, Cost]:
    """Return the median cost of each layer that exists and does not run out of memory."""
    rounds: dict[str, list[Cost]] = {name: [] for name in NAMES}
    remaining = [name for name in NAMES if can_have(name, mask, n)]
    for number in range(ROUNDS):
        order = remaining[::-1] if number % 2 else remaining[:]  # copies, because names are removed
        for name in order:
            cost = measure_in_new_process(framework, name, mask, n)
            if cost is None:
                remaining.remove(name)
            else:
                rounds[name].append(cost)
        if remaining and all(rounds[name][0].seconds > LONG_STEP for name in remaining):
            break
    return {
        name: Cost(*map(statistics.median, zip(*rounds[name], strict=True))) for name in remaining
    }


def can_have(name: str, mask: str, n: int) -> bool:
    """Return whether a layer of this name can have the mask, at a reasonable cost."""
    if name == "upstream":
        return mask not in ("bias", "window", "linear")
    if name == "own":
        return mask != "linear" and (mask != "window" or n <= MAX_OWN)
    return True


def measure_in_new_process(framework: str, name: str, mask: str, n: int) -> Cost | None:
    arguments = [framework, "--single", name, mask, "--lengths", str(n)]
    command = [sys.executable, "-W", "ignore", "-m", "tools.bench.attention", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode < 0:
        signal = -process.returncode
        print(f"{n:5}  {mask:10}  {name}: ended by signal {signal}; too little memory?")
        return None
    if process.returncode:
        raise RuntimeError(f"{framework}, {name}, {mask}, n = {n}:\n{process.stderr}")
    cost = json.loads(process.stdout.splitlines()[-1])
    return Cost(*cost) if cost else None


def measure(framework: str, name: str, mask: str, n: int) -> Cost | None:
    """Measure a layer in this process; return None if there is no such layer for this mask."""
    layers = import_module(f"tools.bench.layers.{framework}")
    list_layers: Callable[[Mask], dict[str, Callable[[], Step]]] = layers.list_layers
    small_layers = list_layers(MASKS[mask](16))
    if name not in small_layers:
        return None
    warm_up = small_layers[name]()
    warm_up()  # so that memory that any first step needs, even a small one, is not measured
    before = read_peak_memory()
    step = list_layers(MASKS[mask](n))[name]()
    step()
    memory = read_peak_memory() - before
    return Cost(measure_seconds(step), memory)


def measure_seconds(step: Step) -> float:
    """Return the mean time of a compiled step, over at least ``MIN_SECONDS``."""
    once = _time_steps(step, 1)
    return once if once >= MIN_SECONDS else _time_steps(step, math.ceil(MIN_SECONDS / once))


def _time_steps(step: Step, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        step()
    return (time.perf_counter() - start) / times


def read_peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    # ru_maxrss is in kilobytes on Linux, in bytes on macOS.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    sys.exit(main())
