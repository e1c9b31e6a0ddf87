"""Files on the disk: their check sums, a folder for one process at a time, and words for what fails."""

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from d2l_compat._shared.checks import check_instance, fault

_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256"}  # by length in hexadecimal digits
_DIGITS = frozenset("0123456789abcdef")


def read_check_sum(what: str, check_sum: str | None) -> str | None:
    """The check sum in small letters; TypeError or ValueError where it is none of those we know.

    With digits too many or too few it cannot be that of any file, and yet a page of D2L's has one and runs:
    there is a warning, and what comes is taken unchecked.
    """
    if check_sum is None:
        return None
    need = "32, 40 or 64 hexadecimal digits (MD5, SHA-1 or SHA-256), or None"
    check_instance(what, check_sum, str, need)
    digits = check_sum.lower()
    if not digits or not _DIGITS.issuperset(digits):
        raise ValueError(fault(what, repr(check_sum), need))
    if len(digits) not in _ALGORITHMS:
        words = fault(what, repr(check_sum), need)
        warnings.warn(f"{words}; the file is taken as it comes, unchecked", stacklevel=4)
        return None
    return digits


def has(path: Path, check_sum: str) -> bool:
    return _digest(path, check_sum) == check_sum


def check(path: Path, check_sum: str | None) -> None:
    """Raise ValueError where the file is another one; ``None`` fits any."""
    if check_sum is None:
        return
    got = _digest(path, check_sum)
    if got != check_sum:
        name = path.name.removesuffix(".part")
        raise ValueError(fault(name, f"check sum {got}", f"{check_sum}; it is another file"))


def _digest(path: Path, like: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, _ALGORITHMS[len(like)]).hexdigest()


def room(size: int | None = None) -> str:
    """What is needed of a folder where ``size`` bytes are to go, or nobody knows how many."""
    return f"a folder to write in, with room for {'it' if size is None else f'{size} bytes'}"


@contextmanager
def told(what: str, place: Path, need: str) -> Iterator[None]:
    """The system's refusals in the house's words, and of their own types: ``place``, why, ``need``."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it has its words
            raise
        got = f"{error.filename2 or error.filename or place} ({error.strerror})"
        raise type(error)(fault(what, got, need)) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time into a folder; the next one finds the file.

    The lock is a file in the system's temporary folder, since the folder itself may be read-only and holds data alone.
    There are at most 256 of them: folders that share one only wait for each other.
    """
    from filelock import FileLock  # when it is needed: it imports asyncio

    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    with FileLock(Path(gettempdir()) / f"d2l-{digest[:2]}.lock", mode=0o666):  # for every user
        yield
