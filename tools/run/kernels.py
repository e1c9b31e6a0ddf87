"""Prepare kernels: an environment without the user's settings, and an empty working folder."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from zmq import IPC_PATH_MAX_LEN

PREFIX = "kernel-"  # of kernels' working folders
ANSI = re.compile(r"\x1b\[[0-9;]*m")  # colours in kernels' messages
NEUTRAL_ENVIRONMENT = {
    "MATPLOTLIBRC": os.devnull,
    "PYTHONHASHSEED": "0",
    # Kernels send no PNG: the stored one is made from the SVG.
    "D2L_COMPAT_PNG": "never",
    # Report missing packages (d2l_compat/_install.py), and install only what is in the locks.
    "D2L_COMPAT_INSTALL": "never",
    "PIP_REQUIRE_HASHES": "1",
    # The lessons' programs take JAX longer to compile than to execute.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    # Add numbers in the same order each time. The lessons' tensors are small: more threads would only
    # wait for each other, and for the threads of other notebooks.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@contextmanager
def neutral_environment(variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Set the environment, without the user's settings and with these variables, for kernels that start within."""
    before = dict(os.environ)
    os.environ.pop("MPLBACKEND", None)
    try:
        # Build matplotlib's font cache if it is missing, or a kernel would report this in its output.
        import matplotlib.font_manager  # noqa: F401

        with tempfile.TemporaryDirectory(prefix="ipython-") as empty:
            os.environ.update({**NEUTRAL_ENVIRONMENT, **variables}, IPYTHONDIR=empty)
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class KernelWorkspace:
    """A kernel's empty working folder (a reader has no files of the lesson), and its manager's settings."""

    def __init__(self, kernel_name: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=_find_temporary_folder())
        self.folder = self._folder.name
        self.cleanup = self._folder.cleanup
        self.settings = {"kernel_name": kernel_name}
        # Sockets in files instead of ports: nobody else can connect to the kernel, and two kernels cannot
        # choose the same port. Java's kernel supports only ports.
        if kernel_name != "java":
            self.settings |= {"transport": "ipc", "ip": str(Path(self.folder, "kernel"))}


def _find_temporary_folder() -> str:
    """Return the user's folder for temporary files, or /tmp if its path is too long for a socket."""
    folder = tempfile.gettempdir()
    is_short = len(os.fsencode(f"{folder}/{PREFIX}12345678/kernel-1")) <= IPC_PATH_MAX_LEN
    return folder if is_short else "/tmp"
