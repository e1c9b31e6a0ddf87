"""Small files in the place of D2L's, in the folder that ``D2L_DATA`` names."""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def airfoil(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, table: np.ndarray) -> None:
    """Five features and a sound a row."""
    np.savetxt(folder / "airfoil_self_noise.dat", table, delimiter="\t")
    _put(patch, d2l, "airfoil", folder)


def sentences(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, text: str) -> None:
    """English and French, a pair a line."""
    with zipfile.ZipFile(folder / "fra-eng.zip", "w") as archive:
        archive.writestr("fra-eng/fra.txt", text)
    _put(patch, d2l, "fra-eng", folder)


def novel(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, text: str) -> None:
    """In the place of *The Time Machine*."""
    (folder / "timemachine.txt").write_text(text, encoding="utf-8")
    _put(patch, d2l, "time_machine", folder)


def _put(patch: pytest.MonkeyPatch, d2l: Any, name: str, folder: Path) -> None:
    """The address stays, and so does the file's name; the check sum is that of the file there."""
    address, _ = d2l.DATA_HUB[name]
    file = folder / address.rpartition("/")[2]
    patch.setenv("D2L_DATA", str(folder))
    patch.setitem(d2l.DATA_HUB, name, (address, hashlib.sha1(file.read_bytes()).hexdigest()))
