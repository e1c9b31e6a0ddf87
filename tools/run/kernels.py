"""What kernels find around them: no settings of the user's, and an empty folder to work in."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

NEUTRAL = {
    "MATPLOTLIBRC": os.devnull,
    "PYTHONHASHSEED": "0",
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
    # Builds matplotlib's cache of fonts where there is none, which a kernel would report on.
    import matplotlib.font_manager  # noqa: F401

    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="ipython-") as empty:
        os.environ.pop("MPLBACKEND", None)
        os.environ.update({**NEUTRAL, **more}, IPYTHONDIR=empty)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


class Workplace:
    """Where a kernel of this name works: an empty folder, as a reader's will hold none of the
    lesson's files. ``settings`` are the kernel manager's."""

    def __init__(self, kernel_name: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kernel-")
        self.folder = self._folder.name
        self.cleanup = self._folder.cleanup
        self.settings = {"kernel_name": kernel_name}
        # Files rather than ports: nobody else can reach the kernel, and no two can meet on a
        # port. Java's kernel knows ports only.
        if kernel_name != "java":
            self.settings |= {"transport": "ipc", "ip": str(Path(self.folder, "kernel"))}
