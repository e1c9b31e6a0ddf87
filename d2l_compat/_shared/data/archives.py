"""Archives, unpacked whole or not at all."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from gzip import GzipFile
from io import BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath
from tarfile import TarFile
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from d2l_compat._shared.checks import fault
from d2l_compat._shared.data.files import locked, room, told

# What an archive may unpack to: _TIMES its own size, far more than data compress and far less than a bomb, which is
# a thousand times as large. What takes no more than _SMALL does no harm, and _LARGEST is three times D2L's largest.
_TIMES = 100
_SMALL = 64 * 2**20  # bytes
_LARGEST = 16 * 2**30
_BLOCK = 4096  # bytes, which even an empty file takes on a disk
_PIECE = 2**20
_END_OF_TAR = bytes(512)
_END_OF_ZIP = b"PK\5\6"  # and 18 bytes, and a comment of up to 2**16

# All else that fails while an archive is unpacked is its own fault.
_FAULTS_OF_THE_DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
}


def unpack(path: Path, folder: Path) -> None:
    """Unpack a .zip, .tar or .tar.gz file into ``folder``, over what is there: all of it, or nothing.

    Raises ValueError for a file of another kind, a broken one, one that would write elsewhere, and one that
    would grow beyond measure; OSError where it cannot be read, or the disk does not take it.
    """
    with ExitStack() as stack:
        with told("filename", path, "a file that can be read"):
            file = stack.enter_context(path.open("rb"))
        stack.enter_context(told("folder", folder, room()))
        folder = folder.resolve()
        there = next(place for place in (folder, *folder.parents) if place.exists())
        aside = Path(stack.enter_context(TemporaryDirectory(dir=there, prefix=".unpacking-")))
        inside = aside / "new" / folder.relative_to(there)
        inside.mkdir(parents=True)
        with _sound(path):
            most = _limit(os.fstat(file.fileno()).st_size)
            archive = _open(file, path.suffix, most)
            stack.enter_context(archive)
            size = _check_members(_members(archive), most)
        with told("folder", folder, room(size)), _sound(path):
            _extract(archive, inside)
        with locked(there):
            _move(aside / "new", there, aside / "old")


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # broken bytes raise nearly anything
        if isinstance(error, OSError) and error.errno in _FAULTS_OF_THE_DISK:
            raise
        got = f"{path} ({str(error) or type(error).__name__})"
        need = "a whole .zip, .tar or .tar.gz file whose members stay in their folder"
        raise ValueError(fault("filename", got, need)) from error


def _limit(size: int) -> int:
    return min(_LARGEST, max(_SMALL, _TIMES * size))


def _open(file: BufferedReader, suffix: str, most: int) -> ZipFile | TarFile:
    if suffix == ".zip":
        return ZipFile(file)
    if suffix not in (".tar", ".gz"):
        raise ValueError("another suffix")
    if file.peek(2)[:2] != b"\x1f\x8b":
        return TarFile.open(fileobj=file, mode="r:")
    inside = GzipFile(fileobj=file)
    _read_through(inside, most)
    return TarFile.open(fileobj=inside, mode="r:")


def _read_through(file: GzipFile, most: int) -> None:
    """To the end, where gzip keeps its check sum: a tar of its own ends before that."""
    while file.read(_PIECE):
        _check_size(file.tell(), most)
    file.seek(0)


def _members(archive: ZipFile | TarFile) -> Iterator[tuple[str, int]]:
    """The name and the size of each. Raises ValueError where Python would overlook some of them."""
    return _members_of_tar(archive) if isinstance(archive, TarFile) else _members_of_zip(archive)


def _members_of_zip(archive: ZipFile) -> Iterator[tuple[str, int]]:
    members = archive.infolist()
    yield from ((member.filename, member.file_size) for member in members)
    assert archive.fp is not None
    archive.fp.seek(max(0, archive.fp.seek(0, os.SEEK_END) - 2**16 - 22))
    _, _, end = archive.fp.read().rpartition(_END_OF_ZIP)
    count = int.from_bytes(end[6:8], "little")
    if count not in (len(members) % 2**16, 2**16 - 1):  # the last stands for more
        raise ValueError(f"{len(members)} members in place of {count}")


def _members_of_tar(archive: TarFile) -> Iterator[tuple[str, int]]:
    for member in archive:
        if not (member.isfile() or member.isdir()):
            raise ValueError(f"{member.name} is neither a file nor a folder")
        yield member.name, member.size
    # A broken header ends it as well, without a word.
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(len(_END_OF_TAR)) != _END_OF_TAR:
        raise ValueError("broken, or without an end")


def _check_members(members: Iterable[tuple[str, int]], most: int) -> int:
    """All stay in their folder and within ``most`` bytes, which are counted."""
    total = 0
    for name, size in members:
        if not _is_inside(name):
            raise ValueError(f"{name} leads out of it")
        total += max(size, _BLOCK)
        _check_size(total, most)
    return total


def _is_inside(name: str) -> bool:
    """A name without a root, a drive or a way up, however it is written."""
    paths = PurePosixPath(name), PureWindowsPath(name)
    return not any(path.anchor or ".." in path.parts for path in paths)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"it unpacks to more than {most} bytes")


def _extract(archive: ZipFile | TarFile, folder: Path) -> None:
    if isinstance(archive, TarFile):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)


def _move(new: Path, there: Path, old: Path) -> None:
    """All that is in one folder into another; what it takes the place of is kept in a third.

    Where something cannot be moved, all of it goes back.
    """
    with ExitStack() as way_back:
        _move_each(new, there, old, way_back)
        way_back.pop_all()


def _move_each(new: Path, there: Path, old: Path, way_back: ExitStack) -> None:
    old.mkdir()
    for member in sorted(new.iterdir()):
        place = there / member.name
        is_taken = os.path.lexists(place)
        if is_taken and member.is_dir() != place.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
        if is_taken and member.is_dir():
            _move_each(member, place, old / member.name, way_back)
        elif is_taken:
            _keep(place, old / member.name)
            way_back.callback((old / member.name).replace, place)
            member.replace(place)
        else:
            member.replace(place)
            way_back.callback(place.replace, member)


def _keep(place: Path, kept: Path) -> None:
    try:
        os.link(place, kept, follow_symlinks=False)  # the place is never empty
    except (OSError, NotImplementedError):  # a disk without hard links, or Windows
        place.replace(kept)
