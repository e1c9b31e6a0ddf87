"""Tests of downloads from a server that fails in many ways, of data in a local folder, and of archives."""

import errno
import gzip
import hashlib
import io
import os
import re
import socket
import stat
import struct
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest.mock import Mock

import pytest

from d2l_compat import common as d2l
from d2l_compat._shared.data import archives, fetching, hub
from tests.conftest import run_server

needs_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other files and errors")
CONTENT = bytes(range(256)) * 4000
SHA1 = hashlib.sha1(CONTENT).hexdigest()


@dataclass
class Server:
    """The content of /data.bin, how it is served, and the requests so far."""

    url: str = ""
    content: bytes = CONTENT
    break_after: list[int] = field(default_factory=list)  # bytes, for each response in turn
    supports_ranges: bool = True
    requests: list[str | None] = field(default_factory=list)  # the Range of each
    misbehave: Callable[[BaseHTTPRequestHandler], None] | None = None  # replaces the response
    test_is_over: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested = self.headers["Range"]
            state.requests.append(requested)
            if state.misbehave:
                with suppress(OSError):  # the client has gone
                    state.misbehave(self)
                return
            if self.path != "/data.bin":
                self.send_error(404)
                return
            start = int(requested.split("=")[1][:-1]) if requested and state.supports_ranges else 0
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
        state.test_is_over.set()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the folder that D2L_DATA names, and one to download to, which does not exist."""
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setenv("D2L_DATA", str(source))
    return source, tmp_path / "target"


def contains_only(folder: Path, *names: str) -> bool:
    return sorted(path.name for path in folder.iterdir()) == sorted(names)


def download(server: Server, folder: Path, check_sum: str | None = SHA1) -> bytes:
    """Download the file into a folder, and return its content there."""
    path = d2l.download(server.url, folder, check_sum)
    assert path == str(folder / "data.bin")
    return Path(path).read_bytes()


def test_file_is_downloaded_once_and_checked(server: Server, tmp_path: Path):
    folder = tmp_path / "new" / "data"
    for _ in range(2):
        assert download(server, folder) == CONTENT
    assert len(server.requests) == 1
    assert contains_only(folder, "data.bin")


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256"])
def test_checksum_may_be_md5_sha1_or_sha256(server: Server, tmp_path: Path, algorithm: str):
    assert download(server, tmp_path, hashlib.new(algorithm, CONTENT).hexdigest())


def test_broken_download_resumes(server: Server, tmp_path: Path):
    server.break_after = [1000, 500_000]
    assert download(server, tmp_path) == CONTENT
    assert server.requests == [None, "bytes=1000-", "bytes=501000-"]


def test_download_resumes_in_next_run(server: Server, tmp_path: Path):
    server.break_after = [10, 10, 10]
    with pytest.raises(ConnectionError, match=r"interrupted after .* D2L_DATA"):
        download(server, tmp_path)
    assert contains_only(tmp_path, "data.bin.part")
    assert download(server, tmp_path) == CONTENT
    assert server.requests[-1] == "bytes=30-"
    assert contains_only(tmp_path, "data.bin")


def test_download_restarts_without_ranges(server: Server, tmp_path: Path):
    server.supports_ranges = False
    server.break_after = [1000]
    assert download(server, tmp_path) == CONTENT


@pytest.mark.parametrize("part", [b"of another file", CONTENT + b"and more"], ids=["other", "long"])
def test_part_of_another_file_is_discarded(server: Server, tmp_path: Path, part: bytes):
    (tmp_path / "data.bin.part").write_bytes(part)
    assert download(server, tmp_path) == CONTENT


def test_wrong_file_is_rejected_and_existing_one_kept(server: Server, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    with pytest.raises(ValueError, match=rf"data.bin: got check sum {SHA1}; need {'0' * 40}"):
        download(server, tmp_path, "0" * 40)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"
    assert contains_only(tmp_path, "data.bin")


def test_failed_download_keeps_existing_file(server: Server, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    server.break_after = [10, 10, 10]
    with pytest.raises(ConnectionError):
        download(server, tmp_path, None)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


def test_without_checksum_file_is_downloaded_again(server: Server, tmp_path: Path):
    for content in (b"old", b"new"):
        server.content = content
        assert download(server, tmp_path, None) == content


def test_missing_file_is_requested_once(server: Server, tmp_path: Path):
    with pytest.raises(ConnectionError, match="404"):
        d2l.download(server.url.replace("data", "nothing"), tmp_path, SHA1)
    assert len(server.requests) == 1
    assert contains_only(tmp_path)


def test_concurrent_downloads_fetch_once(server: Server, tmp_path: Path):
    with ThreadPoolExecutor(4) as threads:
        results = [threads.submit(download, server, tmp_path) for _ in range(4)]
    assert [result.result() for result in results] == [CONTENT] * 4
    assert len(server.requests) == 1


def test_names_map_to_addresses(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, SHA1))
    assert d2l.download("mine", tmp_path) == str(tmp_path / "data.bin")
    with pytest.raises(KeyError, match=r"'yours'; need an https address, or .* fra-eng, .*, mine"):
        d2l.download("yours", tmp_path)


def test_addresses_are_made_secure():
    assert d2l.DATA_URL.startswith("https://")
    assert fetching.to_https("http://example.org/a?b=c") == "https://example.org/a?b=c"
    assert fetching.to_https("http://localhost:80/a") == "http://localhost:80/a"


# Addresses, check sums and folders


@pytest.mark.parametrize("check_sum", [SHA1.upper(), hashlib.md5(CONTENT).hexdigest().upper()])
def test_checksum_may_be_upper_case(server: Server, tmp_path: Path, check_sum: str):
    for _ in range(2):
        download(server, tmp_path, check_sum)
    assert len(server.requests) == 1


@pytest.mark.parametrize("check_sum", ["", f" {SHA1[1:]}", "g" * 40, "\u0663" * 40, 40, b"0" * 40])
@pytest.mark.parametrize("in_folder", [False, True])
def test_bad_checksum_is_rejected_before_request(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    check_sum: str,
    in_folder: bool,
):
    if in_folder:
        monkeypatch.setenv("D2L_DATA", str(tmp_path))
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, check_sum))
    error = ValueError if isinstance(check_sum, str) else TypeError
    for args in ((server.url, tmp_path / "new", check_sum), ("mine", tmp_path / "new")):
        with pytest.raises(error, match=r"sha1_hash: got .*; need 32, 40 or 64 hexadecimal digits"):
            d2l.download(*args)
    assert not server.requests
    assert contains_only(tmp_path)


@pytest.mark.parametrize("check_sum", [SHA1[:-1], SHA1 + "0", SHA1 + SHA1[:13]])
def test_impossible_checksum_warns_and_is_ignored(server: Server, tmp_path: Path, check_sum: str):
    """Test lengths that no check sum has; D2L has a page whose check sum has 53 digits."""
    for _ in range(2):
        with pytest.warns(
            UserWarning, match=r"sha1_hash: got .*; the file is not checked"
        ) as caught:
            path = d2l.download(server.url, tmp_path, check_sum)
        assert caught[0].filename == __file__
        assert Path(path).read_bytes() == CONTENT
    assert len(server.requests) == 2  # as without a check sum


@pytest.mark.parametrize("end", ["", "/..", "?name=data.bin"])
def test_address_without_file_name_is_rejected(server: Server, tmp_path: Path, end: str):
    with pytest.raises(ValueError, match=r"url: got .*; need an address that ends in the name"):
        d2l.download(server.url.replace("/data.bin", end), tmp_path / "new")
    assert not server.requests
    assert contains_only(tmp_path)


def test_malformed_address_is_connection_error(tmp_path: Path):
    for url in ("http://127.0.0.1:99999/a", "http://127.0.0.1:one/a", "http://127.0.0.1/a b"):
        with pytest.raises(ConnectionError, match=r"download: got .*; need a connection"):
            d2l.download(url, tmp_path)
    assert contains_only(tmp_path)


# Limits


def send_all(handler: BaseHTTPRequestHandler, length: int | None = None) -> None:
    """Send the whole content, without Content-Length if ``length`` is None."""
    handler.send_response(200)
    if length is not None:
        handler.send_header("Content-Length", str(length))
    handler.end_headers()
    handler.wfile.write(CONTENT)


@pytest.mark.parametrize("sent", [None, CONTENT[:-1]], ids=["at once", "before the end"])
def test_silent_server_times_out(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes | None
):
    def wait(handler: BaseHTTPRequestHandler) -> None:
        if sent is not None:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(sent)
        server.test_is_over.wait(10)  # only a client without a time limit waits so long
        if sent is None:
            send_all(handler)
        else:
            handler.wfile.write(CONTENT[len(sent) :])

    server.misbehave = wait
    monkeypatch.setattr(fetching, "_TIMEOUT", 0.05)
    with pytest.raises(ConnectionError, match=r"timed out.*; need a connection"):
        download(server, tmp_path)
    assert contains_only(tmp_path, *(["data.bin.part"] if sent else []))


HEAD = b"HTTP/1.0 200 OK\r\n"
CHUNKED_HEADER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "texts",
    [
        (HEAD, b"\r\n", CONTENT[:2000]),
        (HEAD, b"X: y\r\n" * 90, b"\r\n", CONTENT[:2000]),
        (CHUNKED_HEADER, b"0" * 2000, b"7d0\r\n", CONTENT[:2000], b"\r\n0\r\n\r\n"),
    ],
    ids=["bytes", "headers", "sizes"],
)
def test_trickling_server_times_out(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: tuple[bytes, ...]
):
    """Test a server that takes a second for each byte."""
    num_bytes = 0

    def send(handler: BaseHTTPRequestHandler) -> None:
        nonlocal num_bytes
        for byte in b"".join(texts):
            handler.wfile.write(bytes([byte]))
            num_bytes += 1

    monkeypatch.setattr(fetching, "monotonic", lambda: num_bytes)
    server.misbehave = send
    with pytest.raises(ConnectionError, match=r"too slow: \d+ bytes in \d+ seconds.* D2L_DATA"):
        download(server, tmp_path, None)
    assert len(server.requests) == 1
    assert not (tmp_path / "data.bin").exists()


def test_slow_connection_may_take_hours(monkeypatch: pytest.MonkeyPatch):
    seconds = iter(range(20_001))
    monkeypatch.setattr(fetching, "monotonic", lambda: next(seconds))
    clock = fetching._Clock()
    for _ in range(20_000):
        clock.tick(25_000)  # bytes: 500 MB in all
    seconds = iter([30_000])
    with pytest.raises(fetching._PermanentError, match="too slow"):
        clock.tick(10**9)


@pytest.mark.parametrize("length", [len(CONTENT), None])
@pytest.mark.parametrize("part", [b"", CONTENT[:1000]], ids=["new", "resumed"])
def test_endless_file_is_rejected(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int | None, part: bytes
):
    if part:
        (tmp_path / "data.bin.part").write_bytes(part)
    (tmp_path / "data.bin").write_bytes(b"mine")
    server.misbehave = lambda handler: send_all(handler, length)
    monkeypatch.setattr(fetching, "_MAX_SIZE", len(CONTENT) - 1)
    with pytest.raises(ValueError, match=rf"need a file of at most {len(CONTENT) - 1} bytes"):
        download(server, tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"
    assert contains_only(tmp_path, "data.bin")
    monkeypatch.setattr(fetching, "_MAX_SIZE", len(CONTENT))
    assert download(server, tmp_path) == CONTENT


def test_limits_allow_large_data_sets():
    assert fetching._MAX_SIZE > 2 * 10**9
    assert archives._size_limit(2 * 10**9) > 10 * 10**9


# Redirects and malformed responses


def redirect(handler: BaseHTTPRequestHandler, address: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", address)
    handler.end_headers()


@pytest.mark.parametrize("address", ["file:///etc/hosts", "ftp://127.0.0.1/data.bin", "data:,x"])
def test_redirect_to_other_scheme_is_rejected(server: Server, tmp_path: Path, address: str):
    server.misbehave = lambda handler: redirect(handler, address)
    with pytest.raises(ConnectionError, match="need a connection"):
        download(server, tmp_path, None)
    assert contains_only(tmp_path)


def test_redirect_without_https_is_rejected(server: Server, tmp_path: Path):
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send_all(handler) if handler.path == "/there" else redirect(handler, address)

    server.misbehave = answer
    address = server.url.replace("data.bin", "there")
    assert download(server, tmp_path) == CONTENT  # http is allowed on this machine
    address = address.replace("127.0.0.1", "0.0.0.0")  # the same machine by another name
    with pytest.raises(ConnectionError, match=r"redirects to .*, which is not https"):
        download(server, tmp_path / "else")
    assert contains_only(tmp_path / "else")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0\r\n",
        b"HTTP/1.1 one\r\n\r\n",
        HEAD + b"X: y\r\n" * 200 + b"\r\n",
        HEAD + b"X: " + b"y" * 70_000,
        HEAD + b"Content-Length: 2000000\r\n\r\n" + CONTENT,
        CHUNKED_HEADER + b"one\r\n",
        CHUNKED_HEADER + b"ffff\r\nabc",
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
            no_linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
            handler.connection.close()

    server.misbehave = send
    (tmp_path / "data.bin").write_bytes(b"mine")
    with pytest.raises(ConnectionError, match=r"(?s)download: got .+; need a connection"):
        download(server, tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


# The disk


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("check_sum", [None, SHA1])
def test_link_target_is_not_written(
    server: Server, tmp_path: Path, link: Callable[[Path, Path], None], check_sum: str | None
):
    target = tmp_path / "target"
    for content in (b"theirs", CONTENT[:1000]):
        target.write_bytes(content)
        link(tmp_path / "data.bin.part", target)
        assert download(server, tmp_path, check_sum) == CONTENT
        assert target.read_bytes() == content
        assert not (tmp_path / "data.bin").is_symlink()
        (tmp_path / "data.bin").unlink()
        assert contains_only(tmp_path, "target")


@needs_posix
def test_dangling_link_and_pipe_are_replaced(server: Server, tmp_path: Path):
    part = tmp_path / "data.bin.part"
    for make in (lambda: part.symlink_to(tmp_path / "nowhere"), lambda: os.mkfifo(part)):
        make()
        assert download(server, tmp_path, None) == CONTENT
        assert contains_only(tmp_path, "data.bin")


@pytest.mark.parametrize("check_sum", [None, SHA1])
@pytest.mark.parametrize("name", ["data.bin", "data.bin.part"])
def test_folder_in_place_of_file_is_kept(
    server: Server, tmp_path: Path, name: str, check_sum: str | None
):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").touch()
    with pytest.raises(OSError, match=rf"^folder: got .*{name} \(.*\); need a folder to write in"):
        download(server, tmp_path, check_sum)
    assert contains_only(tmp_path / name, "mine")
    assert contains_only(tmp_path, name)
    assert not server.requests


@needs_posix
def test_impossible_folder_is_reported(server: Server, tmp_path: Path):
    (tmp_path / "file").touch()
    url = server.url.replace("data.bin", "x" * 300)
    for address, folder in ((server.url, tmp_path / "file" / "new"), (url, tmp_path)):
        with pytest.raises(OSError, match=r"^folder: got .* \(.*\); need a folder to write in"):
            d2l.download(address, folder)
    assert not server.requests
    assert contains_only(tmp_path, "file")


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Limit files to 100,000 bytes."""
    resource = pytest.importorskip("resource")
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
    server.misbehave = lambda handler: send_all(handler, length)
    message = rf"^folder: got {tmp_path} \(File too large\); need a folder .* room for {need}$"
    with pytest.raises(OSError, match=message):
        download(server, tmp_path)
    assert len(server.requests) == 1
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


def test_disk_error_keeps_type_and_reason(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    open_file = Path.open
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ECONNRESET):
        error = OSError(number, os.strerror(number))

        def fail_to_open(path: Path, mode: str = "r", error: OSError = error) -> io.IOBase:
            if path.suffix == ".part" and mode != "rb":
                raise error
            return open_file(path, mode)

        monkeypatch.setattr(Path, "open", fail_to_open)
        message = rf"\({re.escape(os.strerror(number))}\); need .* {len(CONTENT)} bytes"
        with pytest.raises(OSError, match=rf"got {tmp_path} {message}") as caught:
            download(server, tmp_path)
        assert caught.type is type(error)
        assert contains_only(tmp_path)
    assert len(server.requests) == 5


# D2L_DATA


def test_d2l_data_folder_replaces_network(server: Server, folders: tuple[Path, Path]):
    source, target = folders
    with pytest.raises(
        FileNotFoundError, match=f"without that file; need data.bin from {server.url}"
    ):
        download(server, target)
    (source / "data.bin").write_bytes(b"other")
    with pytest.raises(ValueError, match="check sum"):
        download(server, target)
    assert (source / "data.bin").read_bytes() == b"other"
    (source / "data.bin").write_bytes(CONTENT)
    source.chmod(0o555)
    for _ in range(2):
        download(server, target)
        assert (target / "data.bin").samefile(source / "data.bin")
        assert contains_only(target, "data.bin")
    assert contains_only(source, "data.bin")
    assert not server.requests


def test_existing_file_is_kept_unless_content_differs(server: Server, folders: tuple[Path, Path]):
    source, target = folders
    target.mkdir()
    for folder in folders:
        (folder / "data.bin").write_bytes(CONTENT)
    download(server, target)
    assert not (target / "data.bin").is_symlink()
    (target / "data.bin").write_bytes(b"other")
    assert download(server, target) == CONTENT
    for check_sum in SHA1, None:
        download(server, source, check_sum)
    assert not (source / "data.bin").is_symlink()
    assert not server.requests


@pytest.mark.parametrize("is_downloaded", [False, True])
def test_data_set_is_read_in_place(
    server: Server,
    folders: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    is_downloaded: bool,
):
    """Test that a file in D2L_DATA is not copied; it is downloaded only without D2L_DATA."""
    source, target = folders
    (source / "data.bin").write_bytes(CONTENT)
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, SHA1))
    if is_downloaded:
        monkeypatch.delenv("D2L_DATA")
    assert hub.locate("mine", target) == str((target if is_downloaded else source) / "data.bin")
    assert target.exists() == bool(server.requests) == is_downloaded


def test_extracted_files_are_beside_download(server: Server, folders: tuple[Path, Path]):
    source, target = folders
    path = make_archive(source, "zip", {"fra-eng/fra.txt": b"Go.\tVa !"}).rename(
        source / "data.bin.zip"
    )
    source.chmod(0o555)
    check_sum = hashlib.sha1(path.read_bytes()).hexdigest()
    d2l.extract(d2l.download(f"{server.url}.zip", target, check_sum))
    assert (target / "fra-eng" / "fra.txt").read_bytes() == b"Go.\tVa !"
    assert contains_only(source, "data.bin.zip")


# Archives


KINDS = ["zip", "tar", "tar.gz"]


def make_archive(
    folder: Path,
    kind: str,
    members: dict[str, bytes],
    change: Callable[[tarfile.TarInfo], None] = lambda member: None,
    *others: tuple[bytes, str],  # in a tar: type and link target
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
    path = make_archive(tmp_path, kind, {"a/one.txt": b"1", "a/b/two.txt": b"2"})
    d2l.extract(path)
    assert (tmp_path / "a" / "b" / "two.txt").read_bytes() == b"2"
    d2l.extract(path, tmp_path / "else")
    assert (tmp_path / "else" / "a" / "one.txt").read_bytes() == b"1"
    assert contains_only(tmp_path, "a", "else", path.name)


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    path = tmp_path / "inner"
    path.mkdir()
    return path


ARCHIVE_ERROR = (
    r"^filename: got .*pack\.[a-z.]+ \(.+\); need a whole \.zip, .* stay in their folder$"
)
OUTSIDE = [
    "../out.txt",
    "a/../../out.txt",
    "a/../b.txt",
    "/tmp/out.txt",
    "..\\out",
    "C:\\out",
    "C:out",
]


def assert_rejected(path: Path) -> None:
    """Check that an archive raises the usual error, and adds no files to its folder or the one above."""
    before = sorted(path.parent.parent.rglob("*"))
    for folder in (None, path.parent / "new" / "folder"):
        with pytest.raises(ValueError, match=ARCHIVE_ERROR):
            d2l.extract(path, folder)
    assert sorted(path.parent.parent.rglob("*")) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*OUTSIDE, "n" * 300, "file/below"])
def test_members_outside_folder_are_rejected(inner: Path, kind: str, name: str):
    assert_rejected(make_archive(inner, kind, {"good.txt": b"good", "file": b"", name: b"out"}))


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
def test_links_and_devices_are_rejected(tmp_path: Path, inner: Path, kind: bytes, to: str):
    (tmp_path / "out").touch()
    path = make_archive(inner, "tar", {"good.txt": b"good"}, lambda member: None, (kind, to))
    assert_rejected(path)


@needs_posix
def test_archive_permissions_are_restricted(tmp_path: Path):
    def set_mode(member: tarfile.TarInfo) -> None:
        member.mode = {"none": 0o000, "all": 0o7777}[member.name]
        member.uid = member.gid = 12345

    d2l.extract(make_archive(tmp_path, "tar", {"none": b"", "all": b""}, set_mode))
    for name, mode in (("none", 0o600), ("all", 0o755)):
        status = (tmp_path / name).stat()
        assert stat.S_IMODE(status.st_mode) == mode
        assert (status.st_uid, status.st_gid) == (os.geteuid(), tmp_path.stat().st_gid)


def test_corrupt_archive_gives_all_or_nothing(tmp_path: Path):
    members = {"a/one.txt": b"one " * 10, "a/two.txt": os.urandom(30)}
    for kind in ("zip", "tar.gz"):
        content = make_archive(tmp_path, kind, members).read_bytes()
        for i, byte in enumerate(content):
            folder = tmp_path / kind / str(i)
            folder.mkdir(parents=True)
            path = folder / f"pack.{kind}"
            path.write_bytes(content[:i] + bytes([byte ^ 0xFF]) + content[i + 1 :])
            message = None
            try:
                d2l.extract(path)
            except ValueError as error:
                message = str(error)
            if message is None:  # the byte was part of a date, a permission or a comment
                files = [file.read_bytes() for file in sorted(folder.rglob("*.txt"))]
                assert files == list(members.values())
            else:
                assert re.match(ARCHIVE_ERROR, message)
                assert contains_only(folder, path.name)


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_archive_is_rejected(inner: Path, kind: str):
    path = make_archive(inner, kind, {"a/one.txt": b"1" * 600, "a/two.txt": os.urandom(600)})
    content = path.read_bytes()
    end = 2 * 1536 if kind == "tar" else len(content)  # zeros follow in a tar
    for size in (*range(0, end, 37), *range(0, end, 512), end - 1):
        path.write_bytes(content[:size])
        assert_rejected(path)


def test_tar_with_broken_header_is_rejected(inner: Path):
    path = make_archive(inner, "tar", {"one.txt": b"1", "two.txt": b"2", "three.txt": b"3"})
    content = bytearray(path.read_bytes())
    content[1024] ^= 0xFF
    path.write_bytes(content)
    assert_rejected(path)


@pytest.mark.parametrize(
    ("offset", "value"),
    [(6, 1), (8, 99), (8, 1), (8, 12), (8, 14)],
    ids=["encrypted", "unknown", "shrunk", "no bzip2", "no lzma"],
)
def test_unsupported_zip_is_rejected(inner: Path, offset: int, value: int):
    path = make_archive(inner, "zip", {"good.txt": b"good" * 100})
    content = bytearray(path.read_bytes())
    content[offset] = content[content.index(b"PK\1\2") + offset + 2] = value
    path.write_bytes(content)
    assert_rejected(path)


@pytest.mark.parametrize("name", ["pack.gz", "pack.rar"])
@pytest.mark.parametrize(
    "content",
    [b"", b"text", gzip.compress(b""), gzip.compress(b"text" * 1000)],
    ids=["empty", "text", "empty gzip", "gzip"],
)
def test_other_files_are_rejected(inner: Path, name: str, content: bytes):
    (inner / name).write_bytes(content)
    assert_rejected(inner / name)


# Sizes


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("count", [1, 300])
def test_archive_bomb_is_rejected(
    tmp_path: Path, inner: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int
):
    size = 2_000_000 if count == 1 else 0  # empty files also take space
    path = make_archive(inner, kind, {f"{n}": bytes(size) for n in range(count)})
    d2l.extract(path, tmp_path / "small")
    assert len(list((tmp_path / "small").iterdir())) == count
    monkeypatch.setattr(archives, "_HARMLESS_SIZE", 1_000_000)
    monkeypatch.setattr(archives, "_MAX_RATIO", 15)
    assert_rejected(path)
    monkeypatch.setattr(archives, "_MAX_RATIO", 10**6)
    d2l.extract(path, tmp_path / "high ratio")
    monkeypatch.setattr(archives, "_MAX_SIZE", 1_000_000)
    assert_rejected(path)


def test_zip_bomb_is_rejected_by_default_limits(inner: Path):
    assert_rejected(make_archive(inner, "zip", {"zeros": bytes(10**8)}))


def test_huge_header_is_rejected(inner: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "_HARMLESS_SIZE", 1_000_000)
    note = {"comment": "0" * 2_000_000}
    path = make_archive(inner, "tar.gz", {"a": b""}, lambda member: member.pax_headers.update(note))
    assert_rejected(path)


def test_sparse_file_counts_by_full_size(inner: Path):
    holes = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a"}
    note = {**holes, "GNU.sparse.realsize": str(10**15)}
    content = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
    assert_rejected(
        make_archive(inner, "tar", {"a": content}, lambda member: member.pax_headers.update(note))
    )


# Existing files


def test_extraction_replaces_only_its_files(tmp_path: Path):
    (tmp_path / "a").mkdir()
    for name in ("a/one.txt", "a/mine.txt"):
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "two.txt").symlink_to("a/mine.txt")
    path = make_archive(tmp_path, "tar", {"a/one.txt": b"1", "a/b/c.txt": b"3", "two.txt": b"2"})
    d2l.extract(path)
    files = {file.name: file.read_bytes() for file in tmp_path.rglob("*.txt")}
    assert files == {"one.txt": b"1", "mine.txt": b"mine", "c.txt": b"3", "two.txt": b"2"}
    assert contains_only(tmp_path, "a", path.name, "two.txt")


@pytest.mark.parametrize("has_hard_links", [True, False])
@pytest.mark.parametrize("blocked", ["z/x.txt", "z"])
def test_failed_extraction_restores_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocked: str, has_hard_links: bool
):
    if not has_hard_links:
        error = PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        monkeypatch.setattr(os, "link", Mock(side_effect=error))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_bytes(b"mine")
    (tmp_path / "two.txt").symlink_to("nowhere")
    if blocked == "z":
        (tmp_path / "z").mkdir()
    else:
        (tmp_path / "z").write_bytes(b"mine")
    members = {"a/b/c.txt": b"3", "a/one.txt": b"1", "b/d.txt": b"4", "two.txt": b"2", blocked: b""}
    path = make_archive(tmp_path, "tar", members)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=r"^folder: got .*z \(File exists\); need a folder to write"):
        d2l.extract(path)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "a" / "one.txt").read_bytes() == b"mine"
    assert (tmp_path / "two.txt").readlink() == Path("nowhere")


@pytest.mark.parametrize("kind", KINDS)
def test_archive_without_room_leaves_nothing(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
):
    (tmp_path / "b.txt").write_bytes(b"mine")
    path = make_archive(tmp_path, kind, {"a.txt": b"1", "b.txt": b"2", "c.txt": bytes(200_000)})
    request.getfixturevalue("small_disk")  # not before, since a tar is larger than its limit
    message = rf"^folder: got {tmp_path} \(File too large\); need .* with room for 208192 bytes$"
    with pytest.raises(OSError, match=message):
        d2l.extract(path)
    assert contains_only(tmp_path, "b.txt", path.name)
    assert (tmp_path / "b.txt").read_bytes() == b"mine"


@needs_posix
def test_unreadable_archive_is_reported(tmp_path: Path):
    (tmp_path / "folder.zip").mkdir()
    (tmp_path / "file").touch()
    path = make_archive(tmp_path, "zip", {"a.txt": b"1"})
    for name, error in (("none.zip", FileNotFoundError), ("folder.zip", IsADirectoryError)):
        with pytest.raises(error, match=rf"^filename: got .*{name} \(.*\); need a file that can"):
            d2l.extract(tmp_path / name, tmp_path / "new")
    with pytest.raises(NotADirectoryError, match=r"^folder: got .* \(.*\); need a folder to write"):
        d2l.extract(path, tmp_path / "file" / "new")
    assert contains_only(tmp_path, "file", "folder.zip", path.name)


def test_download_extract_returns_folder(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = make_archive(tmp_path, "zip", {"data/x.txt": b"x"}).rename(tmp_path / "data.zip")
    url = server.url.replace("data.bin", "data.zip")
    monkeypatch.setenv("D2L_DATA", str(tmp_path))
    (tmp_path / "chapter").mkdir()
    monkeypatch.chdir(tmp_path / "chapter")
    check_sum = hashlib.sha1(path.read_bytes()).hexdigest()
    monkeypatch.setitem(d2l.DATA_HUB, "data", (url, check_sum))
    folder = Path("..", "data")
    assert d2l.download_extract("data") == str(folder / "data")
    assert (folder / "data" / "x.txt").read_bytes() == b"x"
    assert d2l.download_extract("data", "part") == str(folder / "part")
    assert not (tmp_path / "x.txt").exists()


def test_download_all_downloads_every_file(monkeypatch: pytest.MonkeyPatch):
    names: list[str] = []
    monkeypatch.setattr(hub, "download", names.append)
    d2l.download_all()
    assert names == [*d2l.DATA_HUB]
