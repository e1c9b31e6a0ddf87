"""``python -m tools.bench.generation [FRAMEWORK ...]``: measure the time that causal attention takes for a token.

Compare the shim's layer with a cache, the same layer that computes all tokens again, and what the framework offers for
a cache (tools/bench/layers). Each framework has its own process. Within a row, the three are measured in rounds, in
alternating order: each number is the median of the rounds, and each ratio the median of the rounds' ratios.
"""

import argparse
import statistics
import subprocess
import sys
from importlib import import_module

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.bench.attention import measure_seconds
from tools.bench.layers import Step

ROUNDS = 5
NAMES = ("cached", "recomputed", "own")  # "own" is the framework's


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if a measurement fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.generation", description=__doc__)
    parser.add_argument("framework", nargs="*", default=[*PYTHON_FRAMEWORKS])
    parser.add_argument(
        "--contexts", type=int, nargs="*", default=[16, 64, 256, 1024], help="tokens before"
    )
    parser.add_argument("--single", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.single:
        compare(options.framework[0], options.contexts)
        return 0
    has_failed = False
    for framework in options.framework:
        if framework in PYTHON_FRAMEWORKS:  # DJL has no layer to compare with the shim's
            contexts = map(str, options.contexts)
            arguments = [framework, "--single", "--contexts", *contexts]
            command = [sys.executable, "-W", "ignore", "-m", "tools.bench.generation", *arguments]
            has_failed |= bool(subprocess.run(command, check=False).returncode)
    return int(has_failed)


def compare(framework: str, contexts: list[int]) -> None:
    """Print the table of a framework."""
    layers = import_module(f"tools.bench.layers.{framework}")
    names = "".join(f"{name:>12}" for name in NAMES)
    print(f"\n{framework}, milliseconds a token\n    n{names}  recomputed/cached  cached/own")
    for n in contexts:
        steps: dict[str, Step] = {
            name: prepare() for name, prepare in layers.list_token_steps(n).items()
        }
        rounds = measure_rounds(steps)
        cells = [
            f"{1000 * statistics.median(rounds[name]):.3f}" if name in rounds else ""
            for name in NAMES
        ]
        numbers = "".join(f"{cell:>12}" for cell in cells)
        gain = format_ratio(rounds, "recomputed", "cached")
        overhead = format_ratio(rounds, "cached", "own")
        print(f"{n:5}{numbers}{gain:>19}{overhead:>12}", flush=True)


def measure_rounds(steps: dict[str, Step]) -> dict[str, list[float]]:
    """Return the seconds of each step, round by round."""
    rounds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()  # compile it
    for number in range(ROUNDS):
        for name in [*steps][:: -1 if number % 2 else 1]:
            rounds[name].append(measure_seconds(steps[name]))
    return rounds


def format_ratio(rounds: dict[str, list[float]], upper: str, lower: str) -> str:
    if lower not in rounds:
        return ""
    pairs = zip(rounds[upper], rounds[lower], strict=True)
    return f"{statistics.median(a / b for a, b in pairs):.2f}"


if __name__ == "__main__":
    sys.exit(main())
