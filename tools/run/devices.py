"""``python -m tools.run.devices FRAMEWORK ...``: those of them that see a GPU; the others are named.

Each in a process of its own: some cannot live in one. DJL comes with a build for the CPU.
"""

import subprocess
import sys

from d2l_compat.frameworks import FRAMEWORKS

ASK = "from d2l_compat import {} as d2l; print('GPUs:', d2l.num_gpus())"


def num_gpus(framework: str) -> int:
    """0 also where the framework cannot be imported."""
    asked = ASK.format(FRAMEWORKS[framework].face)
    command = [sys.executable, "-c", asked]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return int(said.partition("GPUs:")[2].split()[0]) if "GPUs:" in said else 0


def main(frameworks: list[str]) -> int:
    with_gpu = [name for name in frameworks if FRAMEWORKS[name].is_python and num_gpus(name)]
    without = [name for name in frameworks if name not in with_gpu]
    if without:
        print(f"No GPU, or no build for one: {', '.join(without)}", file=sys.stderr)
    print(*with_gpu)
    return 0 if with_gpu else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
