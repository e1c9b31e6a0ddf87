"""``python -m tools.run.devices FRAMEWORK ...``: print the frameworks that see a GPU, and the others on stderr.

Each framework runs in a separate process, since some cannot share one. DJL has a build for the CPU only.
"""

import subprocess
import sys

from d2l_compat.frameworks import FRAMEWORKS

PROGRAM = "from d2l_compat import {} as d2l; print('GPUs:', d2l.num_gpus())"


def count_gpus(framework: str) -> int:
    """Return the number of GPUs that a framework sees, or 0 if it cannot be imported."""
    program = PROGRAM.format(FRAMEWORKS[framework].module)
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return int(output.partition("GPUs:")[2].split()[0]) if "GPUs:" in output else 0


def main(frameworks: list[str]) -> int:
    on_gpu = [name for name in frameworks if FRAMEWORKS[name].is_python and count_gpus(name)]
    on_cpu = [name for name in frameworks if name not in on_gpu]
    if on_cpu:
        print(f"No GPU, or no build for one: {', '.join(on_cpu)}", file=sys.stderr)
    print(*on_gpu)
    return 0 if on_gpu else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
