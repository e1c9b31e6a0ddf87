"""``python -m d2l_compat.kernel``: a Jupyter kernel for notebooks that say ``from d2l import ...``.

"Python (d2l)" is this Python, in which ``d2l`` means ``d2l_compat``; a notebook needs no edit at all.
"""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

NAME = "d2l"
SPEC = {
    "argv": [
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "--ext",
        "d2l_compat",
        "-f",
        "{connection_file}",
    ],
    "display_name": "Python (d2l)",
    "language": "python",
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m d2l_compat.kernel", description=__doc__)
    parser.add_argument("--user", action="store_true", help="for all your environments")
    asked = parser.parse_args(arguments)
    from jupyter_client.kernelspec import KernelSpecManager

    with TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(SPEC, indent=2) + "\n", encoding="utf-8")
        where = {"user": True} if asked.user else {"prefix": sys.prefix}
        path = KernelSpecManager().install_kernel_spec(folder, NAME, **where)
    print(f'Installed "{SPEC["display_name"]}" in {path}')


if __name__ == "__main__":
    main()
