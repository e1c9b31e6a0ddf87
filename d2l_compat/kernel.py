"""Install a Jupyter kernel for notebooks with ``from d2l import ...``: ``python -m d2l_compat.kernel``.

The kernel "Python (d2l)" runs this Python with ``d2l`` standing for ``d2l_compat``, so notebooks need no edits.
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
    options = parser.parse_args(arguments)
    from jupyter_client.kernelspec import KernelSpecManager

    with TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(SPEC, indent=2) + "\n", encoding="utf-8")
        target = {"user": True} if options.user else {"prefix": sys.prefix}
        path = KernelSpecManager().install_kernel_spec(folder, NAME, **target)
    print(f'Installed "{SPEC["display_name"]}" in {path}')


if __name__ == "__main__":
    main()
