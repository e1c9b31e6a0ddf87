"""``python -m tests.elsewhere``: makes the places that the tests copy. It needs the network, once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from d2l_compat.frameworks import FACES
from tests.elsewhere.places import (
    BINDER,
    CAN_IMITATE,
    COLAB,
    DOWNLOADS,
    VENV,
    WHEELS,
    WHEELS_STAMP,
    WHY_NOT,
    Place,
    locked,
    not_ready,
    wheels_made_of,
)

UV = VENV / "bin" / "uv"
# What Python compiles at the first import, a copy has already; and not the rest, which is the most.
IMPORTED = [
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    *(package.module for face in FACES.values() for package in face.packages),
]
IMPORT = """\
import importlib.util, sys
if importlib.util.find_spec(sys.argv[1].partition(".")[0]):
    importlib.import_module(sys.argv[1])
"""


def main() -> int:
    """The exit code: 0, or 1 where something could not be made."""
    if not CAN_IMITATE:
        print(WHY_NOT)
        return 0
    to_do = not_ready()
    try:
        for place in (COLAB, BINDER):
            if place.name in to_do:
                make(place)
            version = call(place.python, "-V").strip()
            print(f"{place.folder}: {version} (wanted: {' or '.join(place.pythons)})")
        if WHEELS.name in to_do:
            download()
    except subprocess.CalledProcessError as error:
        print(f"{error}\nThe imitations are made with the network, once.", file=sys.stderr)
        return 1
    return 0


def make(place: Place) -> None:
    """Until all is there, it has no stamp, and is no place."""
    print(f"Making {place.folder} (once; it takes minutes) ...", flush=True)
    place.stamp.unlink(missing_ok=True)
    # Its programs look for their Python beside themselves: so a copy's do not run in the original.
    venv = ["venv", "--quiet", "--clear", "--seed", "--relocatable"]
    call(UV, *venv, "--python", place.interpreter, place.folder)
    with TemporaryDirectory() as folder:
        constraints, wanted = Path(folder, "constraints.txt"), Path(folder, "wanted.txt")
        constraints.write_text("\n".join(place.constraints), encoding="utf-8")
        for number, part in enumerate(place.parts):
            wanted.write_text("\n".join(part), encoding="utf-8")
            install = ["pip", "install", "--quiet", "--python", place.python]
            call(UV, *install, *place.options, "-r", wanted, "-c", constraints)
            if number == 0:
                said = call(UV, "pip", "freeze", "--python", place.python)
                place.after_first_part.write_text(said, encoding="utf-8")
    for module in IMPORTED:
        call(place.python, "-c", IMPORT, module)
    place.stamp.write_text(place.made_of, encoding="utf-8")


def download() -> None:
    print(f"Fetching {WHEELS} (once) ...", flush=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    with TemporaryDirectory() as folder:
        constraints = Path(folder, "constraints.txt")
        constraints.write_text("\n".join(locked()), encoding="utf-8")
        for place, arguments in DOWNLOADS:
            pip = [place.python, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
            call(*pip, "--dest", WHEELS, "--constraint", constraints, *arguments)
    WHEELS_STAMP.write_text(wheels_made_of(), encoding="utf-8")


def call(*command: str | Path) -> str:
    """What it prints. Raises CalledProcessError; why, it has said itself."""
    # Not in the project's folder: its settings for uv are no other place's.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        command, cwd="/", env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
