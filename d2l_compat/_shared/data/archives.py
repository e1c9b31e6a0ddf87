"""Unpacking of archives, completely or not at all."""

import errno
import filecmp
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from gzip import GzipFile
from io import BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath
from tarfile import TarFile
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from d2l_compat._shared.checks import message
from d2l_compat._shared.data.files import describe_space, lock_folder, rephrase_os_errors

# An archive may unpack to _MAX_RATIO times its own size: real data compress far less, and a zip bomb is a thousand
# times as large. Up to _HARMLESS_SIZE anything is allowed; _MAX_SIZE is three times the size of D2L's largest archive.
_MAX_RATIO = 100
_HARMLESS_SIZE = 64 * 2**20  # bytes
_MAX_SIZE = 16 * 2**30
_BLOCK = 4096  # bytes that even an empty file takes on a disk
_CHUNK_SIZE = 2**20
_END_OF_TAR = bytes(512)
_END_OF_ZIP = b"PK\5\6"  # followed by 18 bytes and a comment of up to 2**16 bytes

# Errors of the disk. Any other error while an archive is unpacked is due to the archive.
_DISK_ERRORS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
}


def unpack(path: Path, folder: Path) -> None:
    """Unpack a .zip, .tar or .tar.gz file into ``folder``, completely or not at all; existing files are replaced.

    Raises ValueError for another kind of file, or one that is broken, would write outside of the folder or unpack to
    too many bytes, and OSError if it cannot be read or written.
    """
    with ExitStack() as stack:
        with rephrase_os_errors("filename", path, "a file that can be read"):
            file = stack.enter_context(path.open("rb"))
        stack.enter_context(rephrase_os_errors("folder", folder, describe_space()))
        folder = folder.resolve()
        parents = (path for path in (folder, *folder.parents) if path.exists())
        existing = next(parents, Path(folder.anchor))  # a drive of Windows may not exist
        scratch = Path(stack.enter_context(TemporaryDirectory(dir=existing, prefix=".unpacking-")))
        target = scratch / "new" / folder.relative_to(existing)
        target.mkdir(parents=True)
        with _rephrase_archive_errors(path):
            max_size = _size_limit(os.fstat(file.fileno()).st_size)
            archive = _open(file, path.suffix, max_size)
            stack.enter_context(archive)
            size = _check_members(_members(archive), max_size)
        with (
            rephrase_os_errors("folder", folder, describe_space(size)),
            _rephrase_archive_errors(path),
        ):
            _extract(archive, target)
        with lock_folder(existing):
            _move(scratch / "new", existing, scratch / "old")


@contextmanager
def _rephrase_archive_errors(path: Path) -> Iterator[None]:
    """Re-raise errors that are due to the archive as ValueError."""
    try:
        yield
    except Exception as error:  # broken bytes can raise nearly anything
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise
        got = f"{path} ({str(error) or type(error).__name__})"
        need = "a whole .zip, .tar or .tar.gz file whose members stay in their folder"
        raise ValueError(message("filename", got, need)) from error


def _size_limit(size: int) -> int:
    return min(_MAX_SIZE, max(_HARMLESS_SIZE, _MAX_RATIO * size))


def _open(file: BufferedReader, suffix: str, max_size: int) -> ZipFile | TarFile:
    if suffix == ".zip":
        return ZipFile(file)
    if suffix not in (".tar", ".gz"):
        raise ValueError("unknown suffix")
    if file.peek(2)[:2] != b"\x1f\x8b":
        return TarFile.open(fileobj=file, mode="r:")
    tar_file = GzipFile(fileobj=file)
    _check_gzip(tar_file, max_size)
    return TarFile.open(fileobj=tar_file, mode="r:")


def _check_gzip(file: GzipFile, max_size: int) -> None:
    """Read to the end, where gzip verifies its check sum; reading only the tar inside would stop before it."""
    while file.read(_CHUNK_SIZE):
        _check_size(file.tell(), max_size)
    file.seek(0)


def _members(archive: ZipFile | TarFile) -> Iterator[tuple[str, int]]:
    """Yield the name and the size of each member. Raises ValueError if Python would overlook some."""
    return _tar_members(archive) if isinstance(archive, TarFile) else _zip_members(archive)


def _zip_members(archive: ZipFile) -> Iterator[tuple[str, int]]:
    members = archive.infolist()
    yield from ((member.filename, member.file_size) for member in members)
    assert archive.fp is not None
    archive.fp.seek(max(0, archive.fp.seek(0, os.SEEK_END) - 2**16 - 22))
    _, _, end = archive.fp.read().rpartition(_END_OF_ZIP)
    count = int.from_bytes(end[6:8], "little")
    if count not in (len(members) % 2**16, 2**16 - 1):  # 2**16 - 1: the count is stored elsewhere
        raise ValueError(f"{len(members)} members instead of {count}")


def _tar_members(archive: TarFile) -> Iterator[tuple[str, int]]:
    for member in archive:
        if not (member.isfile() or member.isdir()):
            raise ValueError(f"{member.name} is neither a file nor a folder")
        yield member.name, member.size
    # A broken header also ends the loop, without an error.
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(len(_END_OF_TAR)) != _END_OF_TAR:
        raise ValueError("broken or truncated")


def _check_members(members: Iterable[tuple[str, int]], max_size: int) -> int:
    """Return the total size; raise ValueError if a member leaves its folder, or the total exceeds ``max_size``."""
    total = 0
    for name, size in members:
        if not _is_inside(name):
            raise ValueError(f"{name} is outside of the folder")
        total += max(size, _BLOCK)
        _check_size(total, max_size)
    return total


def _is_inside(name: str) -> bool:
    """Return whether a name has no root, drive or ``..``, in the syntax of POSIX or Windows."""
    paths = PurePosixPath(name), PureWindowsPath(name)
    return not any(path.anchor or ".." in path.parts for path in paths)


def _check_size(size: int, max_size: int) -> None:
    if size > max_size:
        raise ValueError(f"it unpacks to more than {max_size} bytes")


def _extract(archive: ZipFile | TarFile, folder: Path) -> None:
    if isinstance(archive, TarFile):
        archive.extractall(folder, filter="data")
        names = [member.name for member in archive.getmembers() if member.isfile()]
    else:
        archive.extractall(folder)
        names = [member.filename for member in archive.infolist() if not member.is_dir()]
    # On Windows and macOS, names that differ only in case mean one file, and on Windows "NUL" means none.
    expected = len({PurePosixPath(name) for name in names})
    actual = sum(path.is_file() for path in folder.rglob("*"))
    if actual != expected:
        raise ValueError(
            f"{expected} files have become {actual}, because of names that this system cannot keep apart"
        )


def _move(new: Path, target: Path, old: Path) -> None:
    """Move everything in ``new`` into ``target``, and the files that it replaces into ``old``.

    If something cannot be moved, everything is moved back.
    """
    with ExitStack() as undo:
        _move_each(new, target, old, undo)
        undo.pop_all()


def _move_each(new: Path, target: Path, old: Path, undo: ExitStack) -> None:
    old.mkdir()
    for member in sorted(new.iterdir()):
        path = target / member.name
        exists = os.path.lexists(path)
        if exists and member.is_dir() != path.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        if exists and member.is_dir():
            _move_each(member, path, old / member.name, undo)
        elif exists:
            try:
                _back_up(path, old / member.name)
            except PermissionError:  # on Windows, while a program has the file open
                if filecmp.cmp(path, member, shallow=False):
                    continue
                raise
            undo.callback((old / member.name).replace, path)
            member.replace(path)
        else:
            member.replace(path)
            undo.callback(path.replace, member)


def _back_up(path: Path, backup: Path) -> None:
    try:
        os.link(path, backup, follow_symlinks=False)  # so that the path exists at any time
    except (OSError, NotImplementedError):  # a disk without hard links, or Windows
        path.replace(backup)
