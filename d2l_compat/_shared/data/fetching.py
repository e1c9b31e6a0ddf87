"""Downloads of files, resumed after a lost connection, within limits of size and time."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPHandler, HTTPSHandler, Request, build_opener

from d2l_compat._shared.checks import message
from d2l_compat._shared.data.files import (
    describe_space,
    rename,
    rephrase_os_errors,
    verify_check_sum,
)

_ATTEMPTS = 3
_TIMEOUT = 30.0  # seconds without a byte before an attempt ends
# A server may send single bytes forever. So after _GRACE_SECONDS the bytes of all attempts must have arrived at
# _MIN_BYTES_PER_SECOND, a tenth of the speed of a slow line. And no call takes longer than _MAX_SECONDS, enough for
# 500 MB at 25 kB a second; the next call resumes the download.
_GRACE_SECONDS = 60.0
_MIN_BYTES_PER_SECOND = 4_000
_MAX_SECONDS = 6 * 3600.0
_MAX_SIZE = 4 * 2**30  # bytes; D2L's largest file, of word vectors, has about 2 GB
_CHUNK_SIZE = 2**16  # bytes


class _ConnectionLostError(Exception):
    """A failure that another attempt may avoid."""


class _PermanentError(Exception):
    """A failure that another attempt would repeat."""


def to_https(url: str) -> str:
    """Replace ``http`` in the address by ``https``, except for this machine's own address."""
    return url if _is_secure(url) else urlunsplit(urlsplit(url)._replace(scheme="https"))


def _is_secure(url: str) -> bool:
    parts = urlsplit(url)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return parts.scheme == "https" or (parts.scheme == "http" and is_local)


def fetch(url: str, path: Path, check_sum: str | None) -> None:
    """Download a file to ``path``, which is replaced once the file is complete and checked.

    Raises ConnectionError if the download fails, ValueError if its check sum is wrong or it is too large,
    and OSError if it cannot be written.
    """
    _fetch(url, path, check_sum, _Clock())


def _fetch(url: str, path: Path, check_sum: str | None, clock: "_Clock") -> None:
    part = path.with_name(path.name + ".part")
    is_resumed = _can_resume(part, check_sum)
    try:
        _receive_with_retries(url, part, clock)
        verify_check_sum(part, check_sum)
    except ValueError:
        part.unlink(missing_ok=True)
        if not is_resumed:
            raise
        _fetch(url, path, check_sum, clock)  # once more from the start
        return
    rename(part, path)


def _can_resume(part: Path, check_sum: str | None) -> bool:
    """Return whether an earlier run has left bytes to continue from; remove anything else of that name.

    Links are not followed, since their targets are not ours. Without a check sum the bytes may be another file's.
    """
    try:
        status = part.lstat()
    except FileNotFoundError:
        return False
    if check_sum and stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return True
    part.unlink()
    return False


def _receive_with_retries(url: str, part: Path, clock: "_Clock") -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _receive(url, part, clock)
            return
        except (_ConnectionLostError, _PermanentError) as error:
            if attempt == _ATTEMPTS or isinstance(error, _PermanentError):
                name = part.name.removesuffix(".part")
                need = f"a connection, or {name} in a folder that D2L_DATA names"
                raise ConnectionError(message("download", f"{url} ({error})", need)) from error


def _receive(url: str, part: Path, clock: "_Clock") -> None:
    """Append the missing bytes to ``part``."""
    size_before = part.stat().st_size if part.exists() else 0
    with _classify_errors():
        response = _request(url, size_before, clock)
    with response:
        received = size_before if response.status == 206 else 0
        total = None if response.length is None else received + response.length
        _check_size(url, total or received)
        with (
            rephrase_os_errors("folder", part.parent, describe_space(total)),
            part.open("ab" if received else "wb") as file,
        ):
            for chunk in _read_chunks(response):
                received += len(chunk)
                _check_size(url, received)
                file.write(chunk)
    if total is not None and received < total:
        raise _ConnectionLostError(f"interrupted after {received} of {total} bytes")


def _request(url: str, start: int, clock: "_Clock") -> HTTPResponse:
    """Request the file's bytes from ``start`` on, or all of them if the server has none after it."""
    send = partial(build_opener(_Handler(clock)).open, timeout=_TIMEOUT)
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = send(request)
    except HTTPError as error:
        if not (start and error.code == 416):  # range not satisfiable
            raise
        response = send(url)
    if not _is_secure(response.url):
        response.close()
        raise _PermanentError(f"it redirects to {response.url}, which is not https")
    return response


def _read_chunks(response: HTTPResponse) -> Iterator[bytes]:
    while True:
        with _classify_errors():
            chunk = response.read(_CHUNK_SIZE)
        if not chunk:
            return
        yield chunk


@contextmanager
def _classify_errors() -> Iterator[None]:
    """Re-raise errors as :class:`_PermanentError` or :class:`_ConnectionLostError`."""
    try:
        yield
    except _PermanentError:
        raise
    except HTTPError as error:
        raise _PermanentError(" ".join(str(error).split())) from error
    except Exception as error:  # unexpected bytes from a server can raise nearly anything
        raise _ConnectionLostError(" ".join(str(error).split()) or type(error).__name__) from error


def _check_size(url: str, size: int) -> None:
    if size > _MAX_SIZE:
        got = f"{url} with {size} bytes or more"
        raise ValueError(message("download", got, f"a file of at most {_MAX_SIZE} bytes"))


class _Clock:
    """The time limit of a download, which grows with the bytes received."""

    def __init__(self) -> None:
        self.start = monotonic()
        self.size = 0

    def tick(self, size: int) -> None:
        """Count ``size`` bytes. Raises _PermanentError if the download is too slow."""
        self.size += size
        seconds = monotonic() - self.start
        if seconds > min(_MAX_SECONDS, _GRACE_SECONDS + self.size / _MIN_BYTES_PER_SECOND):
            raise _PermanentError(f"too slow: {self.size} bytes in {seconds:.0f} seconds")


class _Handler(HTTPHandler, HTTPSHandler):
    """An HTTP handler that applies the time limit to responses, from their first line on."""

    def __init__(self, clock: _Clock) -> None:
        super().__init__()
        self._clock = clock

    def do_open(self, http_class: Any, req: Request, **options: Any) -> HTTPResponse:
        return super().do_open(partial(self._connect, http_class), req, **options)

    def _connect(self, http_class: Any, host: str, **options: Any) -> Any:
        connection = http_class(host, **options)
        connection.response_class = self._make_response
        return connection

    def _make_response(self, *args: Any, **options: Any) -> HTTPResponse:
        response = HTTPResponse(*args, **options)
        reader = _TimedReader(response.fp.detach(), self._clock)
        response.fp = BufferedReader(reader, _CHUNK_SIZE)
        return response


class _TimedReader(RawIOBase):
    """A stream that reports each read to the clock."""

    def __init__(self, raw: RawIOBase, clock: _Clock) -> None:
        self._raw = raw
        self._clock = clock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        size = self._raw.readinto(buffer)
        self._clock.tick(size or 0)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()
