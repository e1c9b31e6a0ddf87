"""What kernels find around them: no settings of the user's, and an empty folder to work in."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from zmq import IPC_PATH_MAX_LEN

PREFIX = "kernel-"  # of the folders that kernels work in
ANSI = re.compile(r"\x1b\[[0-9;]*m")  # the colours of what they say
NEUTRAL = {
    "MATPLOTLIBRC": os.devnull,
    "PYTHONHASHSEED": "0",
    # The PNG that is stored is made from the SVG.
    "D2L_COMPAT_PNG": "never",
    # What is missing is a fault to be told (d2l_compat/_install.py), and nothing comes past the locks.
    "D2L_COMPAT_INSTALL": "never",
    "PIP_REQUIRE_HASHES": "1",
    # JAX compiles longer than it computes here.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # Sums in one order each time. The lessons' tensors are small: more threads would only wait
    # for each other, and for those of the notebook beside.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@contextmanager
def neutral_environment(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """For the kernels started within: no settings of the user's, so that all show the same.

    ``more`` is set besides.
    """
    before = dict(os.environ)
    os.environ.pop("MPLBACKEND", None)
    try:
        # Builds matplotlib's cache of fonts where there is none, which a kernel would report on.
        import matplotlib.font_manager  # noqa: F401

        with tempfile.TemporaryDirectory(prefix="ipython-") as empty:
            os.environ.update({**NEUTRAL, **more}, IPYTHONDIR=empty)
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Workplace:
    """Where a kernel of this name works: an empty folder, as a reader's will hold none of the
    lesson's files. ``settings`` are the kernel manager's."""

    def __init__(self, kernel_name: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=_place())
        self.folder = self._folder.name
        self.cleanup = self._folder.cleanup
        self.settings = {"kernel_name": kernel_name}
        # Files rather than ports: nobody else can reach the kernel, and no two can meet on a
        # port. Java's kernel knows ports only.
        if kernel_name != "java":
            self.settings |= {"transport": "ipc", "ip": str(Path(self.folder, "kernel"))}


def _place() -> str:
    """The user's place for temporary files or, where a kernel's files would have too long a path
    there for a socket, the system's."""
    place = tempfile.gettempdir()
    is_short = len(os.fsencode(f"{place}/{PREFIX}12345678/kernel-1")) <= IPC_PATH_MAX_LEN
    return place if is_short else "/tmp"
