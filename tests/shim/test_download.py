"""Data from a server of our own, which breaks off, lies and misbehaves; and from a folder."""

import errno
import gzip
import hashlib
import io
import os
import re
import resource
import socket
import stat
import struct
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from d2l_compat import common as d2l
from d2l_compat._shared.data import archives, fetching, hub
from tests.conftest import run_server

CONTENT = bytes(range(256)) * 4000
SHA1 = hashlib.sha1(CONTENT).hexdigest()


@dataclass
class Server:
    """What it serves at /data.bin, and how; and what it was asked for."""

    url: str = ""
    content: bytes = CONTENT
    break_after: list[int] = field(default_factory=list)  # bytes, of one answer after the other
    knows_ranges: bool = True
    asked: list[str | None] = field(default_factory=list)  # the Range of each request
    misbehave: Callable[[BaseHTTPRequestHandler], None] | None = None  # in place of an answer
    over: threading.Event = field(default_factory=threading.Event)  # the test is


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            state.asked.append(wanted)
            if state.misbehave:
                with suppress(OSError):  # who asked has gone
                    state.misbehave(self)
                return
            if self.path != "/data.bin":
                self.send_error(404)
                return
            start = int(wanted.split("=")[1][:-1]) if wanted and state.knows_ranges else 0
            if start and start >= len(state.content):
                self.send_error(416)
                return
            body = state.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if state.break_after:
                body = body[: state.break_after.pop(0)]
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with run_server(Handler) as address:
        state.url = f"{address}/data.bin"
        yield state
        state.over.set()


def only(folder: Path, *names: str) -> bool:
    return sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_file_is_downloaded_once_and_checked(server: Server, tmp_path: Path):
    folder = tmp_path / "new" / "data"
    path = d2l.download(server.url, folder, SHA1)
    assert path == str(folder / "data.bin")
    assert Path(path).read_bytes() == CONTENT
    assert d2l.download(server.url, folder, SHA1) == path
    assert len(server.asked) == 1
    assert only(folder, "data.bin")


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256"])
def test_checksum_may_be_md5_sha1_or_sha256(server: Server, tmp_path: Path, algorithm: str):
    check_sum = hashlib.new(algorithm, CONTENT).hexdigest()
    assert d2l.download(server.url, tmp_path, check_sum)


def test_broken_download_resumes(server: Server, tmp_path: Path):
    server.break_after = [1000, 500_000]
    d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=501000-"]


def test_download_resumes_in_next_run(server: Server, tmp_path: Path):
    server.break_after = [10, 10, 10]
    with pytest.raises(ConnectionError, match=r"broken off after .* D2L_DATA"):
        d2l.download(server.url, tmp_path, SHA1)
    assert only(tmp_path, "data.bin.part")
    d2l.download(server.url, tmp_path, SHA1)
    assert server.asked[-1] == "bytes=30-"
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert only(tmp_path, "data.bin")


def test_server_without_ranges_restarts(server: Server, tmp_path: Path):
    server.knows_ranges = False
    server.break_after = [1000]
    d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"of another file", CONTENT + b"and more"], ids=["other", "long"])
def test_remains_of_another_file_are_discarded(server: Server, tmp_path: Path, left: bytes):
    (tmp_path / "data.bin.part").write_bytes(left)
    d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_wrong_file_is_refused_and_existing_one_kept(server: Server, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    with pytest.raises(ValueError, match=rf"data.bin: got check sum {SHA1}; need {'0' * 40}"):
        d2l.download(server.url, tmp_path, "0" * 40)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"
    assert only(tmp_path, "data.bin")


def test_failed_download_keeps_existing_file(server: Server, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    server.break_after = [10, 10, 10]
    with pytest.raises(ConnectionError):
        d2l.download(server.url, tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


def test_without_checksum_file_is_downloaded_again(server: Server, tmp_path: Path):
    for content in (b"old", b"new"):
        server.content = content
        d2l.download(server.url, tmp_path)
        assert (tmp_path / "data.bin").read_bytes() == content


def test_missing_file_is_requested_once(server: Server, tmp_path: Path):
    with pytest.raises(ConnectionError, match="404"):
        d2l.download(server.url.replace("data", "nothing"), tmp_path, SHA1)
    assert len(server.asked) == 1
    assert only(tmp_path)


def test_concurrent_downloads_fetch_once(server: Server, tmp_path: Path):
    threads = [
        threading.Thread(target=d2l.download, args=(server.url, tmp_path, SHA1)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_names_map_to_addresses(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, SHA1))
    assert d2l.download("mine", tmp_path) == str(tmp_path / "data.bin")
    with pytest.raises(KeyError, match=r"'yours'; need an https address, or .* fra-eng, .*, mine"):
        d2l.download("yours", tmp_path)


def test_addresses_are_made_secure():
    assert d2l.DATA_URL.startswith("https://")
    assert fetching.secure("http://example.org/a?b=c") == "https://example.org/a?b=c"
    assert fetching.secure("http://localhost:80/a") == "http://localhost:80/a"


# What is no address, no check sum, no place for a file


@pytest.mark.parametrize("check_sum", [SHA1.upper(), hashlib.md5(CONTENT).hexdigest().upper()])
def test_checksum_may_be_upper_case(server: Server, tmp_path: Path, check_sum: str):
    for _ in range(2):
        d2l.download(server.url, tmp_path, check_sum)
    assert len(server.asked) == 1


@pytest.mark.parametrize("check_sum", ["", f" {SHA1[1:]}", "g" * 40, "\u0663" * 40, 40, b"0" * 40])
@pytest.mark.parametrize("in_folder", [False, True])
def test_bad_checksum_is_refused_before_request(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    check_sum: str,
    in_folder: bool,
):
    if in_folder:
        monkeypatch.setenv("D2L_DATA", str(tmp_path))
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, check_sum))
    kind = ValueError if isinstance(check_sum, str) else TypeError
    for name, given in ((server.url, check_sum), ("mine", None)):
        with pytest.raises(kind, match=r"sha1_hash: got .*; need 32, 40 or 64 hexadecimal digits"):
            d2l.download(name, tmp_path / "new", given)
    assert not server.asked
    assert only(tmp_path)


@pytest.mark.parametrize("check_sum", [SHA1[:-1], SHA1 + "0", SHA1 + SHA1[:13]])
def test_impossible_checksum_warns_and_is_ignored(server: Server, tmp_path: Path, check_sum: str):
    """A page of D2L's has one of 53 digits."""
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"sha1_hash: got .* as it comes, unchecked") as told:
            path = d2l.download(server.url, tmp_path, check_sum)
        assert told[0].filename == __file__
        assert Path(path).read_bytes() == CONTENT
    assert len(server.asked) == 2  # as without one


@pytest.mark.parametrize("end", ["", "/..", "?name=data.bin"])
def test_address_without_file_name_is_refused(server: Server, tmp_path: Path, end: str):
    with pytest.raises(ValueError, match=r"url: got .*; need an address that ends in the name"):
        d2l.download(server.url.replace("/data.bin", end), tmp_path / "new")
    assert not server.asked
    assert only(tmp_path)


def test_malformed_address_is_connection_error(tmp_path: Path):
    for url in ("http://127.0.0.1:99999/a", "http://127.0.0.1:one/a", "http://127.0.0.1/a b"):
        with pytest.raises(ConnectionError, match=r"download: got .*; need a connection"):
            d2l.download(url, tmp_path)
    assert only(tmp_path)


# Limits


def full(handler: BaseHTTPRequestHandler, length: int | None = None) -> None:
    """All of it, and where ``length`` is None no word on how much that is."""
    handler.send_response(200)
    if length is not None:
        handler.send_header("Content-Length", str(length))
    handler.end_headers()
    handler.wfile.write(CONTENT)


@pytest.mark.parametrize("before", [None, CONTENT[:-1]], ids=["at once", "before the end"])
def test_silent_server_times_out(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
):
    def wait(handler: BaseHTTPRequestHandler) -> None:
        if before is not None:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(before)
        server.over.wait(10)  # of which all is waited only by who has no limit
        if before is None:
            full(handler)
        else:
            handler.wfile.write(CONTENT[len(before) :])

    server.misbehave = wait
    monkeypatch.setattr(fetching, "_SECONDS", 0.05)
    with pytest.raises(ConnectionError, match=r"timed out.*; need a connection"):
        d2l.download(server.url, tmp_path, SHA1)
    assert only(tmp_path, *(["data.bin.part"] if before else []))


def trickle(*texts: bytes, seconds: float, monkeypatch: pytest.MonkeyPatch):
    """Sends byte by byte; after each it is ``seconds`` later."""
    sent = 0
    monkeypatch.setattr(fetching, "monotonic", lambda: sent * seconds)

    def send(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        for byte in b"".join(texts):
            handler.wfile.write(bytes([byte]))
            sent += 1

    return send


HEAD = b"HTTP/1.0 200 OK\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "texts",
    [
        (HEAD, b"\r\n", CONTENT[:2000]),
        (HEAD, b"X: y\r\n" * 90, b"\r\n", CONTENT[:2000]),
        (CHUNKED, b"0" * 2000, b"7d0\r\n", CONTENT[:2000], b"\r\n0\r\n\r\n"),
    ],
    ids=["bytes", "headers", "sizes"],
)
def test_trickling_server_times_out(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: tuple[bytes, ...]
):
    server.misbehave = trickle(*texts, seconds=1, monkeypatch=monkeypatch)
    with pytest.raises(ConnectionError, match=r"too slow: \d+ bytes in \d+ seconds.* D2L_DATA"):
        d2l.download(server.url, tmp_path)
    assert len(server.asked) == 1
    assert "data.bin" not in os.listdir(tmp_path)


def test_slow_connection_has_hours(monkeypatch: pytest.MonkeyPatch):
    seconds = iter(range(20_001))
    monkeypatch.setattr(fetching, "monotonic", lambda: next(seconds))
    clock = fetching._Clock()
    for _ in range(20_000):
        clock.tick(25_000)  # bytes: 500 MB in all
    seconds = iter([30_000])
    with pytest.raises(fetching._GivenUp, match="too slow"):
        clock.tick(10**9)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("left", [b"", CONTENT[:1000]], ids=["anew", "begun"])
def test_endless_file_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool, left: bytes
):
    if left:
        (tmp_path / "data.bin.part").write_bytes(left)
    (tmp_path / "data.bin").write_bytes(b"mine")
    server.misbehave = lambda handler: full(handler, len(CONTENT) if told else None)
    monkeypatch.setattr(fetching, "_LARGEST", len(CONTENT) - 1)
    with pytest.raises(ValueError, match=rf"need a file of at most {len(CONTENT) - 1} bytes"):
        d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"
    assert only(tmp_path, "data.bin")
    monkeypatch.setattr(fetching, "_LARGEST", len(CONTENT))
    d2l.download(server.url, tmp_path, SHA1)


def test_limits_allow_large_data_sets():
    assert fetching._LARGEST > 2 * 10**9
    assert archives._limit(2 * 10**9) > 10 * 10**9


# What goes wrong on the way


@pytest.mark.parametrize("place", ["file:///etc/hosts", "ftp://127.0.0.1/data.bin", "data:,x"])
def test_redirect_to_other_scheme_is_refused(server: Server, tmp_path: Path, place: str):
    def lead(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.end_headers()

    server.misbehave = lead
    with pytest.raises(ConnectionError, match="need a connection"):
        d2l.download(server.url, tmp_path)
    assert only(tmp_path)


def test_redirect_from_https_is_not_downgraded(server: Server, tmp_path: Path):
    def lead(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/there":
            full(handler)
            return
        handler.send_response(302)
        handler.send_header("Location", f"{place}/there")
        handler.end_headers()

    server.misbehave = lead
    place = server.url.removesuffix("/data.bin")
    d2l.download(server.url, tmp_path, SHA1)  # on this machine
    place = place.replace("127.0.0.1", "0.0.0.0")  # the same, which not everybody knows
    with pytest.raises(ConnectionError, match=r"leads to .*, which is not https"):
        d2l.download(server.url, tmp_path / "else", SHA1)
    assert only(tmp_path / "else")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0\r\n",
        b"HTTP/1.1 one\r\n\r\n",
        HEAD + b"X: y\r\n" * 200 + b"\r\n",
        HEAD + b"X: " + b"y" * 70_000,
        HEAD + b"Content-Length: 2000000\r\n\r\n" + CONTENT,
        CHUNKED + b"one\r\n",
        CHUNKED + b"ffff\r\nabc",
        b"HTTP/1.0 302 Found\r\nLocation: http://[\r\n\r\n",
        b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:99999/\r\n\r\n",
    ],
)
@pytest.mark.parametrize("reset", [False, True])
def test_malformed_response_is_connection_error(
    server: Server, tmp_path: Path, answer: bytes, reset: bool
):
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(answer)
        if reset:
            at_once = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            handler.connection.close()

    server.misbehave = send
    (tmp_path / "data.bin").write_bytes(b"mine")
    with pytest.raises(ConnectionError, match=r"download: got .+; need a connection"):
        d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


# The disk


@pytest.mark.parametrize("kind", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("check_sum", [None, SHA1])
def test_link_target_is_not_written(
    server: Server,
    tmp_path: Path,
    kind: Callable[[Path, Path], None],
    check_sum: str | None,
):
    theirs = tmp_path / "theirs"
    for content in (b"theirs", CONTENT[:1000]):
        theirs.write_bytes(content)
        kind(tmp_path / "data.bin.part", theirs)
        d2l.download(server.url, tmp_path, check_sum)
        assert theirs.read_bytes() == content
        assert (tmp_path / "data.bin").read_bytes() == CONTENT
        assert not (tmp_path / "data.bin").is_symlink()
        (tmp_path / "data.bin").unlink()
        assert only(tmp_path, "theirs")


def test_dangling_link_and_pipe_are_replaced(server: Server, tmp_path: Path):
    part = tmp_path / "data.bin.part"
    part.symlink_to(tmp_path / "nowhere")
    d2l.download(server.url, tmp_path)
    os.mkfifo(part)
    d2l.download(server.url, tmp_path)
    assert only(tmp_path, "data.bin")


@pytest.mark.parametrize("check_sum", [None, SHA1])
@pytest.mark.parametrize("name", ["data.bin", "data.bin.part"])
def test_folder_in_place_of_file_is_kept(
    server: Server, tmp_path: Path, name: str, check_sum: str | None
):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").touch()
    with pytest.raises(OSError, match=rf"^folder: got .*{name} \(.*\); need a folder to write in"):
        d2l.download(server.url, tmp_path, check_sum)
    assert only(tmp_path / name, "mine")
    assert only(tmp_path, name)
    assert not server.asked


def test_impossible_folder_is_reported(server: Server, tmp_path: Path):
    (tmp_path / "file").touch()
    url = server.url.replace("data.bin", "x" * 300)
    for address, folder in ((server.url, tmp_path / "file" / "new"), (url, tmp_path)):
        with pytest.raises(OSError, match=r"^folder: got .* \(.*\); need a folder to write in"):
            d2l.download(address, folder)
    assert not server.asked
    assert only(tmp_path, "file")


@pytest.fixture
def small_disk() -> Iterator[None]:
    """One that takes no file of more than 100,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize(("length", "need"), [(len(CONTENT), "1024000 bytes"), (None, "it")])
def test_full_disk_error_names_folder_and_size(
    server: Server, tmp_path: Path, length: int | None, need: str
):
    (tmp_path / "data.bin").write_bytes(b"mine")
    server.misbehave = lambda handler: full(handler, length)
    told = rf"^folder: got {tmp_path} \(File too large\); need a folder .* room for {need}$"
    with pytest.raises(OSError, match=told):
        d2l.download(server.url, tmp_path, SHA1)
    assert len(server.asked) == 1
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


def test_disk_error_keeps_type_and_reason(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    open_file = Path.open
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ECONNRESET):
        refusal = OSError(number, os.strerror(number))

        def refuse(path: Path, mode: str = "r", refusal: OSError = refusal) -> io.IOBase:
            if path.suffix == ".part" and mode != "rb":
                raise refusal
            return open_file(path, mode)

        monkeypatch.setattr(Path, "open", refuse)
        told = rf"got {tmp_path} \({re.escape(os.strerror(number))}\); need .* {len(CONTENT)} bytes"
        with pytest.raises(OSError, match=told) as caught:
            d2l.download(server.url, tmp_path, SHA1)
        assert caught.type is type(refusal)
        assert only(tmp_path)
    assert len(server.asked) == 5


# D2L_DATA


def test_d2l_data_folder_replaces_network(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    monkeypatch.setenv("D2L_DATA", str(theirs))
    with pytest.raises(
        FileNotFoundError, match=f"without that file; need data.bin from {server.url}"
    ):
        d2l.download(server.url, ours, SHA1)
    (theirs / "data.bin").write_bytes(b"other")
    with pytest.raises(ValueError, match="check sum"):
        d2l.download(server.url, ours, SHA1)
    assert (theirs / "data.bin").read_bytes() == b"other"
    (theirs / "data.bin").write_bytes(CONTENT)
    theirs.chmod(0o555)
    for _ in range(2):
        assert d2l.download(server.url, ours, SHA1) == str(ours / "data.bin")
        assert (ours / "data.bin").samefile(theirs / "data.bin")
        assert only(ours, "data.bin")
    assert only(theirs, "data.bin")
    assert not server.asked


def test_existing_file_is_kept_unless_content_differs(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    monkeypatch.setenv("D2L_DATA", str(theirs))
    for folder in (theirs, ours):
        folder.mkdir()
        (folder / "data.bin").write_bytes(CONTENT)
    d2l.download(server.url, ours, SHA1)
    assert not (ours / "data.bin").is_symlink()
    (ours / "data.bin").write_bytes(b"other")
    d2l.download(server.url, ours, SHA1)
    assert (ours / "data.bin").read_bytes() == CONTENT
    d2l.download(server.url, theirs, SHA1)  # the folder itself
    d2l.download(server.url, theirs)
    assert not (theirs / "data.bin").is_symlink()
    assert not server.asked


@pytest.mark.parametrize("is_open", [False, True])
def test_data_set_is_read_in_place(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool
):
    """By the package itself: nothing needs to be written."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    (theirs / "data.bin").write_bytes(CONTENT)
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, SHA1))
    if not is_open:
        monkeypatch.setenv("D2L_DATA", str(theirs))
    assert hub.locate("mine", ours) == str((ours if is_open else theirs) / "data.bin")
    assert ours.exists() == bool(server.asked) == is_open


def test_extracted_files_are_beside_download(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    packed = archive(theirs, "zip", {"fra-eng/fra.txt": b"Go.\tVa !"}).read_bytes()
    next(theirs.iterdir()).rename(theirs / "data.bin.zip")
    theirs.chmod(0o555)
    monkeypatch.setenv("D2L_DATA", str(theirs))
    check_sum = hashlib.sha1(packed).hexdigest()
    d2l.extract(d2l.download(f"{server.url}.zip", ours, check_sum))
    assert (ours / "fra-eng" / "fra.txt").read_bytes() == b"Go.\tVa !"
    assert only(theirs, "data.bin.zip")


# Archives


KINDS = ["zip", "tar", "tar.gz"]


def archive(
    folder: Path,
    kind: str,
    members: dict[str, bytes],
    change: Callable[[tarfile.TarInfo], None] = lambda member: None,
    *others: tuple[bytes, str],  # of a tar: type, and what it leads to
) -> Path:
    path = folder / f"pack.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            change(info)
            file.addfile(info, io.BytesIO(content))
        for number, (type, linkname) in enumerate(others):
            info = tarfile.TarInfo(f"other{number}")
            info.type, info.linkname = type, linkname
            file.addfile(info)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_archives_extract_to_own_or_other_folder(tmp_path: Path, kind: str):
    path = archive(tmp_path, kind, {"a/one.txt": b"1", "a/b/two.txt": b"2"})
    d2l.extract(path)
    assert (tmp_path / "a" / "b" / "two.txt").read_bytes() == b"2"
    d2l.extract(path, tmp_path / "else")
    assert (tmp_path / "else" / "a" / "one.txt").read_bytes() == b"1"
    assert only(tmp_path, "a", "else", path.name)


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    path = tmp_path / "inner"
    path.mkdir()
    return path


REFUSED = r"^filename: got .*pack\.[a-z.]+ \(.+\); need a whole \.zip, .* stay in their folder$"
OUTSIDE = [
    "../out.txt",
    "a/../../out.txt",
    "a/../b.txt",
    "/tmp/out.txt",
    "..\\out",
    "C:\\out",
    "C:out",
]


def refusal(path: Path) -> str | None:
    try:
        d2l.extract(path)
    except ValueError as error:
        return str(error)
    return None


def refuses(path: Path, folder: Path | None = None) -> None:
    """In the house's words, and nothing is there that was not there before."""
    before = sorted(path.parent.parent.rglob("*"))
    for place in (folder, path.parent / "new" / "folder"):
        with pytest.raises(ValueError, match=REFUSED):
            d2l.extract(path, place)
    assert sorted(path.parent.parent.rglob("*")) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*OUTSIDE, "n" * 300, "file/below"])
def test_members_outside_folder_are_refused(inner: Path, kind: str, name: str):
    refuses(archive(inner, kind, {"good.txt": b"good", "file": b"", name: b"out"}))


@pytest.mark.parametrize(
    ("kind", "to"),
    [
        (tarfile.SYMTYPE, "good.txt"),
        (tarfile.SYMTYPE, "../out"),
        (tarfile.SYMTYPE, "/etc"),
        (tarfile.LNKTYPE, "good.txt"),
        (tarfile.LNKTYPE, "../out"),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (b"Z", ""),
    ],
)
def test_links_and_devices_are_refused(tmp_path: Path, inner: Path, kind: bytes, to: str):
    (tmp_path / "out").touch()
    path = archive(inner, "tar", {"good.txt": b"good"}, lambda member: None, (kind, to))
    refuses(path)


def test_archive_permissions_are_restricted(tmp_path: Path):
    def mark(member: tarfile.TarInfo) -> None:
        member.mode = {"none": 0o000, "all": 0o7777}[member.name]
        member.uid = member.gid = 12345

    d2l.extract(archive(tmp_path, "tar", {"none": b"", "all": b""}, mark))
    for name, mode in (("none", 0o600), ("all", 0o755)):
        found = (tmp_path / name).stat()
        assert stat.S_IMODE(found.st_mode) == mode
        assert (found.st_uid, found.st_gid) == (os.geteuid(), tmp_path.stat().st_gid)


def test_corrupt_archive_gives_all_or_nothing(tmp_path: Path):
    members = {"a/one.txt": b"one " * 10, "a/two.txt": os.urandom(30)}
    for kind in ("zip", "tar.gz"):
        whole = archive(tmp_path, kind, members).read_bytes()
        for place in range(len(whole)):
            home = tmp_path / kind / str(place)
            home.mkdir(parents=True)
            path = home / f"pack.{kind}"
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            told = refusal(path)  # not of a date, a right, a comment
            assert told is None or re.match(REFUSED, told)
            found = [file.read_bytes() for file in sorted(home.rglob("*.txt"))]
            assert only(home, path.name) if told else found == list(members.values())


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_archive_is_refused(inner: Path, kind: str):
    path = archive(inner, kind, {"a/one.txt": b"1" * 600, "a/two.txt": os.urandom(600)})
    whole = path.read_bytes()
    end = 2 * 1536 if kind == "tar" else len(whole)  # after which come zeros
    for size in (*range(0, end, 37), *range(0, end, 512), end - 1):
        path.write_bytes(whole[:size])
        refuses(path)


def test_tar_with_broken_header_is_refused(inner: Path):
    path = archive(inner, "tar", {"one.txt": b"1", "two.txt": b"2", "three.txt": b"3"})
    whole = bytearray(path.read_bytes())
    whole[1024] ^= 0xFF
    path.write_bytes(whole)
    refuses(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [(6, 1), (8, 99), (8, 1), (8, 12), (8, 14)],
    ids=["encrypted", "unknown", "shrunk", "no bzip2", "no lzma"],
)
def test_unsupported_zip_is_refused(inner: Path, place: int, value: int):
    path = archive(inner, "zip", {"good.txt": b"good" * 100})
    whole = bytearray(path.read_bytes())
    whole[place] = whole[whole.index(b"PK\1\2") + place + 2] = value
    path.write_bytes(whole)
    refuses(path)


def test_gz_without_tar_is_refused(inner: Path):
    path = inner / "pack.gz"
    for content in (b"", b"text", gzip.compress(b""), gzip.compress(b"text" * 1000)):
        path.write_bytes(content)
        refuses(path)


# What grows beyond measure


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("count", [1, 300])
def test_archive_bomb_is_refused(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int
):
    size = 2_000_000 if count == 1 else 0  # empty files take room as well
    path = archive(inner, kind, {f"{n}": bytes(size) for n in range(count)})
    d2l.extract(path, tmp_path / "small")
    assert len(list((tmp_path / "small").iterdir())) == count
    monkeypatch.setattr(archives, "_SMALL", 1_000_000)
    monkeypatch.setattr(archives, "_TIMES", 15)
    refuses(path)
    monkeypatch.setattr(archives, "_TIMES", 10**6)
    d2l.extract(path, tmp_path / "times")
    monkeypatch.setattr(archives, "_LARGEST", 1_000_000)
    refuses(path)


def test_zip_bomb_is_refused_by_default_limits(inner: Path):
    path = archive(inner, "zip", {"zeros": bytes(10**8)})
    refuses(path)


def test_huge_header_is_refused(inner: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "_SMALL", 1_000_000)
    note = {"comment": "0" * 2_000_000}
    path = archive(inner, "tar.gz", {"a": b""}, lambda member: member.pax_headers.update(note))
    refuses(path)


def test_sparse_file_counts_with_full_size(inner: Path):
    holes = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a"}
    note = {**holes, "GNU.sparse.realsize": str(10**15)}
    content = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
    refuses(archive(inner, "tar", {"a": content}, lambda member: member.pax_headers.update(note)))


# What lies where an archive is unpacked


def test_extraction_replaces_only_its_files(tmp_path: Path):
    (tmp_path / "a").mkdir()
    for name in ("a/one.txt", "a/mine.txt"):
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "two.txt").symlink_to("a/mine.txt")
    path = archive(tmp_path, "tar", {"a/one.txt": b"1", "a/b/c.txt": b"3", "two.txt": b"2"})
    d2l.extract(path)
    found = {file.name: file.read_bytes() for file in tmp_path.rglob("*.txt")}
    assert found == {"one.txt": b"1", "mine.txt": b"mine", "c.txt": b"3", "two.txt": b"2"}
    assert only(tmp_path, "a", path.name, "two.txt")


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("theirs", ["z/x.txt", "z"])
def test_failed_extraction_restores_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str, links: bool
):
    if not links:  # a disk without hard links
        monkeypatch.setattr(os, "link", refuse_links)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_bytes(b"mine")
    (tmp_path / "two.txt").symlink_to("nowhere")
    if theirs == "z":
        (tmp_path / "z").mkdir()
    else:
        (tmp_path / "z").write_bytes(b"mine")
    members = {"a/b/c.txt": b"3", "a/one.txt": b"1", "b/d.txt": b"4", "two.txt": b"2", theirs: b""}
    path = archive(tmp_path, "tar", members)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=r"^folder: got .*/z \(File exists\); need a folder to write"):
        d2l.extract(path)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "a" / "one.txt").read_bytes() == b"mine"
    assert (tmp_path / "two.txt").readlink() == Path("nowhere")


def refuse_links(*args: object, **options: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("kind", KINDS)
def test_archive_without_room_leaves_nothing(tmp_path: Path, kind: str):
    (tmp_path / "b.txt").write_bytes(b"mine")
    path = archive(tmp_path, "zip", {"a.txt": b"1", "b.txt": b"2", "c.txt": bytes(200_000)})
    told = rf"^folder: got {tmp_path} \(File too large\); need .* with room for 208192 bytes$"
    with pytest.raises(OSError, match=told):
        d2l.extract(path)
    assert only(tmp_path, "b.txt", path.name)
    assert (tmp_path / "b.txt").read_bytes() == b"mine"


def test_unreadable_archive_is_reported(tmp_path: Path):
    (tmp_path / "folder.zip").mkdir()
    (tmp_path / "file").touch()
    path = archive(tmp_path, "zip", {"a.txt": b"1"})
    for name, kind in (("none.zip", FileNotFoundError), ("folder.zip", IsADirectoryError)):
        with pytest.raises(kind, match=rf"^filename: got .*{name} \(.*\); need a file that can be"):
            d2l.extract(tmp_path / name, tmp_path / "new")
    with pytest.raises(NotADirectoryError, match=r"^folder: got .* \(.*\); need a folder to write"):
        d2l.extract(path, tmp_path / "file" / "new")
    assert only(tmp_path, "file", "folder.zip", path.name)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_half_an_archive_leaves_nothing(tmp_path: Path, kind: str):
    path = archive(tmp_path, kind, {"a.bin": os.urandom(100_000), "b.bin": os.urandom(100_000)})
    path.write_bytes(path.read_bytes()[:120_000])
    with pytest.raises(ValueError, match=r"filename: got .*; need a whole \.zip"):
        d2l.extract(path)
    assert only(tmp_path, path.name)


def test_another_kind_of_file_is_refused(tmp_path: Path):
    (tmp_path / "a.rar").write_bytes(b"")
    with pytest.raises(ValueError, match=r"need a whole \.zip"):
        d2l.extract(tmp_path / "a.rar")


def test_download_extract_returns_folder(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packed = archive(tmp_path, "zip", {"data/x.txt": b"x"}).read_bytes()
    server.content = packed
    url = server.url.replace("data.bin", "data.zip")
    (tmp_path / "data.zip").write_bytes(packed)
    monkeypatch.setenv("D2L_DATA", str(tmp_path))
    (tmp_path / "chapter").mkdir()
    monkeypatch.chdir(tmp_path / "chapter")
    monkeypatch.setitem(d2l.DATA_HUB, "data", (url, hashlib.sha1(packed).hexdigest()))
    part = Path("..", "data")
    assert d2l.download_extract("data") == str(part / "data")
    assert (part / "data" / "x.txt").read_bytes() == b"x"
    assert d2l.download_extract("data", "part") == str(part / "part")
    assert not (tmp_path / "x.txt").exists()
