"""Files on disk: check sums, a lock for a folder, and the wording of operating-system errors."""

import filecmp
import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from d2l_compat._shared.checks import check_instance, message

_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256"}  # by length in hexadecimal digits
_DIGITS = frozenset("0123456789abcdef")


def parse_check_sum(what: str, check_sum: str | None) -> str | None:
    """Return the check sum in lower case. Raises TypeError or ValueError if its form is unknown.

    One of D2L's pages, which must run, has a check sum with a wrong number of digits. Such a check sum causes a
    warning, and the file is not checked.
    """
    if check_sum is None:
        return None
    need = "32, 40 or 64 hexadecimal digits (MD5, SHA-1 or SHA-256), or None"
    check_instance(what, check_sum, str, need)
    digits = check_sum.lower()
    if not digits or not _DIGITS.issuperset(digits):
        raise ValueError(message(what, repr(check_sum), need))
    if len(digits) not in _ALGORITHMS:
        error = message(what, repr(check_sum), need)
        warnings.warn(f"{error}; the file is not checked", stacklevel=4)
        return None
    return digits


def has_check_sum(path: Path, check_sum: str) -> bool:
    return _digest(path, check_sum) == check_sum


def verify_check_sum(path: Path, check_sum: str | None) -> None:
    """Raise ValueError unless the file has this check sum; None fits any file."""
    if check_sum is None:
        return
    actual = _digest(path, check_sum)
    if actual != check_sum:
        name = path.name.removesuffix(".part")
        raise ValueError(message(name, f"check sum {actual}", f"{check_sum}; it is another file"))


def _digest(path: Path, check_sum: str) -> str:
    """Return the file's digest by the algorithm whose digests are as long as ``check_sum``."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, _ALGORITHMS[len(check_sum)]).hexdigest()


def describe_space(size: int | None = None) -> str:
    """Describe a folder with room for ``size`` bytes; None means an unknown number."""
    return f"a folder to write in, with room for {'it' if size is None else f'{size} bytes'}"


def rename(new: Path, path: Path) -> None:
    """Rename a file to ``path``, which it replaces.

    Windows refuses this with PermissionError while a program has ``path`` open. That is no error if ``path`` has the
    same content: then it is kept, and ``new`` is removed.
    """
    try:
        new.replace(path)
    except PermissionError:
        if not (path.is_file() and filecmp.cmp(new, path, shallow=False)):
            raise
        new.unlink()


@contextmanager
def rephrase_os_errors(what: str, path: Path, need: str) -> Iterator[None]:
    """Re-raise OSError as the same type, with the project's wording: the path, the reason, and ``need``."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # raised by the project itself
            raise
        got = f"{error.filename2 or error.filename or path} ({error.strerror})"
        raise type(error)(message(what, got, need)) from error


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that two processes do not download or unpack the same file into it at once.

    The lock is a file in the system's temporary folder, since the folder itself may be read-only, and should contain
    only data. There are at most 256 locks; folders that share one only wait for each other.
    """
    from filelock import FileLock  # imported on first use, since it imports asyncio

    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    with FileLock(Path(gettempdir()) / f"d2l-{digest[:2]}.lock", mode=0o666):  # for all users
        yield
