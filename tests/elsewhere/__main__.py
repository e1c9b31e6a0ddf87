"""``python -m tests.elsewhere``: make the environments that the tests copy. The first time, this needs a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.elsewhere.services import (
    BINDER,
    CAN_IMITATE,
    COLAB,
    DOWNLOADS,
    UNSUPPORTED_PLATFORM,
    VENV,
    WHEELS,
    WHEELS_STAMP,
    Service,
    describe_wheels,
    list_locked,
    list_outdated,
)

UV = VENV / "bin" / "uv"
# These are imported once, so that copies have their bytecode. Compiling all modules would take much longer.
MODULES_TO_IMPORT = [
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    *(package.module for framework in PYTHON_FRAMEWORKS.values() for package in framework.packages),
]
IMPORT_PROGRAM = """\
import importlib.util, sys
if importlib.util.find_spec(sys.argv[1].partition(".")[0]):
    importlib.import_module(sys.argv[1])
"""


def main() -> int:
    """Return the exit code, which is 1 if an environment could not be made."""
    if not CAN_IMITATE:
        print(UNSUPPORTED_PLATFORM)
        return 0
    outdated = list_outdated()
    try:
        for service in (COLAB, BINDER):
            if service.name in outdated:
                make_environment(service)
            version = run(service.python, "-V").strip()
            print(f"{service.folder}: {version} (preferred: {' or '.join(service.pythons)})")
        if WHEELS.name in outdated:
            download_wheels()
    except subprocess.CalledProcessError as error:
        print(f"{error}\nMaking the environments needs a network, once.", file=sys.stderr)
        return 1
    return 0


def make_environment(service: Service) -> None:
    """Make the environment of a service. The stamp is written last, when the environment is complete."""
    print(f"Making {service.folder} (once; it takes minutes) ...", flush=True)
    service.stamp.unlink(missing_ok=True)
    # With --relocatable, the programs of a copy run in the copy, not in the original.
    venv = ["venv", "--quiet", "--clear", "--seed", "--relocatable"]
    run(UV, *venv, "--python", service.interpreter, service.folder)
    with TemporaryDirectory() as folder:
        constraints = Path(folder, "constraints.txt")
        constraints.write_text("\n".join(service.constraints), encoding="utf-8")
        requirements = Path(folder, "requirements.txt")
        for number, part in enumerate(service.parts):
            requirements.write_text("\n".join(part), encoding="utf-8")
            install = ["pip", "install", "--quiet", "--python", service.python]
            run(UV, *install, *service.options, "-r", requirements, "-c", constraints)
            if number == 0:
                installed = run(UV, "pip", "freeze", "--python", service.python)
                service.first_part_file.write_text(installed, encoding="utf-8")
    for module in MODULES_TO_IMPORT:
        run(service.python, "-c", IMPORT_PROGRAM, module)
    service.stamp.write_text(service.recipe, encoding="utf-8")


def download_wheels() -> None:
    print(f"Downloading packages to {WHEELS} (once) ...", flush=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    with TemporaryDirectory() as folder:
        constraints = Path(folder, "constraints.txt")
        constraints.write_text("\n".join(list_locked()), encoding="utf-8")
        for service, arguments in DOWNLOADS:
            pip = [service.python, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
            run(*pip, "--dest", WHEELS, "--constraint", constraints, *arguments)
    WHEELS_STAMP.write_text(describe_wheels(), encoding="utf-8")


def run(*command: str | Path) -> str:
    """Return a command's standard output; its error messages are not captured. Raise CalledProcessError if it fails."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    # Run in /: the project's folder has settings for uv that are only for its own environment.
    return subprocess.run(
        command, cwd="/", env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
