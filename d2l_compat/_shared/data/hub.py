"""Data from the network, or from a folder: ``D2L_DATA`` names one to read from instead.

A download goes into ``NAME.part``, is taken up again where it broke off, is checked, and only
then takes its place under its name: what lies there is never half a file, nor lost by a failure.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from d2l_compat._shared.checks import fault

DATA_URL = "https://d2l-data.s3-accelerate.amazonaws.com/"
# Name: address, and SHA-1 (or MD5, SHA-256) of the file. Programs add their own.
DATA_HUB: dict[str, tuple[str, str | None]] = {
    "fra-eng": (DATA_URL + "fra-eng.zip", "94646ad1522d915e7b0f9296181140edcf86a4f5")
}

_ATTEMPTS = 3
_SECONDS = 30  # without a byte, until an attempt is given up
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256"}  # by length in hexadecimal digits


def download(url: str, folder: str | Path = "../data", sha1_hash: str | None = None) -> str:
    """The path of a file in ``folder``, fetched where it is not there yet.

    ``url`` may also be a name in ``DATA_HUB``, which knows the address and the check sum. ``http`` is made
    ``https``. Without a check sum, the file is fetched each time. Where the environment variable ``D2L_DATA`` names a
    folder, the file is read from there, checked, and nothing is fetched or written.

    Raises KeyError for a name that ``DATA_HUB`` has not, FileNotFoundError where ``D2L_DATA`` has no such
    file, ConnectionError where it cannot be fetched, and ValueError where it is not the file expected.
    """
    if not url.startswith(("http://", "https://")):
        if url not in DATA_HUB:
            known = ", ".join(DATA_HUB)
            raise KeyError(fault("url", repr(url), f"an https address, or a name: {known}"))
        url, sha1_hash = DATA_HUB[url]
    url = _secure(url)
    name = Path(urlsplit(url).path).name
    if instead := os.environ.get("D2L_DATA"):
        return str(_from_folder(Path(instead) / name, url, sha1_hash))
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent):
        if not (sha1_hash and path.exists() and _digest(path, sha1_hash) == sha1_hash):
            print(f"Downloading {path} from {url} ...")
            _fetch(url, path, sha1_hash)
    return str(path)


def extract(filename: str | Path, folder: str | Path | None = None) -> None:
    """Unpack a .zip, .tar or .tar.gz file into ``folder``, by default its own.

    Raises ValueError for a file of another kind, a broken one, and one that would write elsewhere.
    """
    import tarfile
    import tempfile
    import zipfile

    path = Path(filename)
    target = Path(folder) if folder is not None else path.parent
    target.mkdir(parents=True, exist_ok=True)
    # Unpacked aside and then moved: a broken archive leaves nothing behind.
    with tempfile.TemporaryDirectory(dir=target, prefix=".unpacking-") as aside:
        try:
            _unpack(path, Path(aside))
        except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
            need = "a whole .zip, .tar or .tar.gz file whose members stay in their folder"
            raise ValueError(fault("filename", f"{path} ({error})", need)) from None
        for member in sorted(Path(aside).rglob("*")):
            place = target / member.relative_to(aside)
            if member.is_dir():
                place.mkdir(exist_ok=True)
            else:
                member.replace(place)


def download_extract(name: str, folder: str | None = None) -> str:
    """Fetch a file of ``DATA_HUB``, unpack it beside itself, and return the path of its folder.

    That is the archive's name without its suffix, or ``folder``.
    """
    path = Path(download(name))
    extract(path)
    return str(path.parent / folder if folder else path.with_suffix(""))


def _unpack(path: Path, aside: Path) -> None:
    import tarfile
    import zipfile

    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not (aside / name).resolve().is_relative_to(aside.resolve()):
                    raise zipfile.BadZipFile(f"{name} leads out of it")
            archive.extractall(aside)
    elif path.suffix in (".tar", ".gz"):
        with tarfile.open(path) as archive:
            archive.extractall(aside, filter="data")
    else:
        raise zipfile.BadZipFile("another suffix")


def _secure(url: str) -> str:
    parts = urlsplit(url)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return urlunsplit(parts if is_here else parts._replace(scheme="https"))


def _from_folder(path: Path, url: str, check_sum: str | None) -> Path:
    if not path.exists():
        need = f"{path.name} from {url} in the folder that D2L_DATA names"
        raise FileNotFoundError(fault("D2L_DATA", f"{path.parent} without that file", need))
    _check(path, check_sum)
    return path


def _fetch(url: str, path: Path, check_sum: str | None) -> None:
    from http.client import HTTPException
    from urllib.error import HTTPError

    part = path.with_name(path.name + ".part")
    if check_sum is None:  # what an earlier run has left may belong to another file
        part.unlink(missing_ok=True)
    was_begun = part.exists()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _receive(url, part)
            break
        except (OSError, HTTPException) as error:
            if attempt == _ATTEMPTS or isinstance(error, HTTPError):
                need = f"a connection, or {path.name} in a folder that D2L_DATA names"
                raise ConnectionError(fault("download", f"{url} ({error})", need)) from None
    try:
        _check(part, check_sum)
    except ValueError:
        part.unlink()
        if not was_begun:
            raise
        _fetch(url, path, check_sum)  # once more from the start
        return
    part.replace(path)


def _receive(url: str, part: Path) -> None:
    """Append to ``part`` what it lacks. Raises OSError where the connection breaks off."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urlopen(request, timeout=_SECONDS)
    except HTTPError as error:
        if not (have and error.code == 416):  # nothing after these bytes
            raise
        part.unlink()
        response = urlopen(url, timeout=_SECONDS)
    with response:
        continues = response.status == 206
        length = response.headers["Content-Length"]
        with part.open("ab" if continues else "wb") as file:
            shutil.copyfileobj(response, file)
        want = None if length is None else int(length) + (have if continues else 0)
    got = part.stat().st_size
    if want is not None and got < want:
        raise ConnectionError(f"broken off after {got} of {want} bytes")


def _check(path: Path, check_sum: str | None) -> None:
    if check_sum is None:
        return
    got = _digest(path, check_sum)
    if got != check_sum:
        name = path.name.removesuffix(".part")
        raise ValueError(fault(name, f"check sum {got}", f"{check_sum}; it is another file"))


def _digest(path: Path, like: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, _ALGORITHMS[len(like)]).hexdigest()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; the next one finds the file."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
