"""A file from the network, within limits of size and time, taken up again where it broke off."""

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

from d2l_compat._shared.checks import fault
from d2l_compat._shared.data.files import check, room, told

_ATTEMPTS = 3
_SECONDS = 30.0  # without a byte, until an attempt is given up
# A server that trickles is not without a byte: after _PATIENCE seconds all that has come, in whatever
# attempts, must have come at _SLOWEST bytes a second, a tenth of a slow line. And no call takes longer than
# _WHOLE seconds: 500 MB at 25 kB a second. The next one goes on from there.
_PATIENCE = 60.0
_SLOWEST = 4_000
_WHOLE = 6 * 3600.0
_LARGEST = 4 * 2**30  # bytes; D2L's largest file, of word vectors, has about 2 GB
_PIECE = 2**16  # bytes


class _Lost(Exception):
    """The connection failed, and may not fail again."""


class _GivenUp(Exception):
    """It would fail again."""


def secure(url: str) -> str:
    """The address with ``https`` in place of ``http``, save on this machine itself."""
    return url if _is_secure(url) else urlunsplit(urlsplit(url)._replace(scheme="https"))


def _is_secure(url: str) -> bool:
    parts = urlsplit(url)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return parts.scheme == "https" or (parts.scheme == "http" and is_here)


def fetch(url: str, path: Path, check_sum: str | None) -> None:
    """Bring a file to ``path``, over what is there, once all of it has come and is the right one.

    Raises ConnectionError where it does not come, ValueError where it is another file or too large,
    and OSError where the disk does not take it.
    """
    _fetch(url, path, check_sum, _Clock())


def _fetch(url: str, path: Path, check_sum: str | None, clock: "_Clock") -> None:
    part = path.with_name(path.name + ".part")
    was_begun = _is_begun(part, check_sum)
    try:
        _receive_patiently(url, part, clock)
        check(part, check_sum)
    except ValueError:
        part.unlink(missing_ok=True)
        if not was_begun:
            raise
        _fetch(url, path, check_sum, clock)  # once more from the start
        return
    part.replace(path)


def _is_begun(part: Path, check_sum: str | None) -> bool:
    """Whether an earlier run has left bytes to go on from; anything else of that name is removed.

    A link is not followed: what it leads to is not ours. Without a check sum the bytes may be another file's.
    """
    try:
        found = part.lstat()
    except FileNotFoundError:
        return False
    if check_sum and stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return True
    part.unlink()
    return False


def _receive_patiently(url: str, part: Path, clock: "_Clock") -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _receive(url, part, clock)
            return
        except (_Lost, _GivenUp) as error:
            if attempt == _ATTEMPTS or isinstance(error, _GivenUp):
                name = part.name.removesuffix(".part")
                need = f"a connection, or {name} in a folder that D2L_DATA names"
                raise ConnectionError(fault("download", f"{url} ({error})", need)) from error


def _receive(url: str, part: Path, clock: "_Clock") -> None:
    """Append to ``part`` what it lacks."""
    have = part.stat().st_size if part.exists() else 0
    with _connected():
        answer = _ask(url, have, clock)
    with answer:
        got = have if answer.status == 206 else 0
        want = None if answer.length is None else got + answer.length
        _check_size(url, want or got)
        with (
            told("folder", part.parent, room(want)),
            part.open("ab" if got else "wb") as file,
        ):
            for piece in _pieces(answer):
                got += len(piece)
                _check_size(url, got)
                file.write(piece)
    if want is not None and got < want:
        raise _Lost(f"broken off after {got} of {want} bytes")


def _ask(url: str, have: int, clock: "_Clock") -> HTTPResponse:
    ask = partial(build_opener(_Handler(clock)).open, timeout=_SECONDS)
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = ask(request)
    except HTTPError as error:
        if not (have and error.code == 416):  # nothing after these bytes
            raise
        answer = ask(url)
    if not _is_secure(answer.url):
        answer.close()
        raise _GivenUp(f"it leads to {answer.url}, which is not https")
    return answer


def _pieces(answer: HTTPResponse) -> Iterator[bytes]:
    while True:
        with _connected():
            piece = answer.read(_PIECE)
        if not piece:
            return
        yield piece


@contextmanager
def _connected() -> Iterator[None]:
    try:
        yield
    except _GivenUp:
        raise
    except HTTPError as error:
        raise _GivenUp(error) from error
    except Exception as error:  # what others send raises nearly anything
        raise _Lost(" ".join(str(error).split()) or type(error).__name__) from error


def _check_size(url: str, size: int) -> None:
    if size > _LARGEST:
        got = f"{url} with {size} bytes or more"
        raise ValueError(fault("download", got, f"a file of at most {_LARGEST} bytes"))


class _Clock:
    """How long a download may take, by what has come of it."""

    def __init__(self) -> None:
        self.began = monotonic()
        self.size = 0

    def tick(self, size: int) -> None:
        self.size += size
        took = monotonic() - self.began
        if took > min(_WHOLE, _PATIENCE + self.size / _SLOWEST):
            raise _GivenUp(f"too slow: {self.size} bytes in {took:.0f} seconds")


class _Handler(HTTPHandler, HTTPSHandler):
    """Reads answers against the clock, from their first line on."""

    def __init__(self, clock: _Clock) -> None:
        super().__init__()
        self._clock = clock

    def do_open(self, http_class: Any, req: Request, **options: Any) -> HTTPResponse:
        return super().do_open(partial(self._connect, http_class), req, **options)

    def _connect(self, http_class: Any, host: str, **options: Any) -> Any:
        connection = http_class(host, **options)
        connection.response_class = self._answer
        return connection

    def _answer(self, *args: Any, **options: Any) -> HTTPResponse:
        answer = HTTPResponse(*args, **options)
        answer.fp = BufferedReader(_Timed(answer.fp.detach(), self._clock), _PIECE)
        return answer


class _Timed(RawIOBase):
    """Bytes that come, each of which the clock is told."""

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
