"""Data from a server of our own, which breaks off, lies and misbehaves; and from a folder."""

import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from d2l_compat import common as d2l

READS = ()

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


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            state.asked.append(wanted)
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

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/data.bin"
    yield state
    http.shutdown()
    http.server_close()
    thread.join()


def only(folder: Path, *names: str) -> bool:
    return sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_file_is_fetched_once_checked_and_then_found(server: Server, tmp_path: Path):
    folder = tmp_path / "new" / "data"
    path = d2l.download(server.url, folder, SHA1)
    assert path == str(folder / "data.bin")
    assert Path(path).read_bytes() == CONTENT
    assert d2l.download(server.url, folder, SHA1) == path
    assert len(server.asked) == 1
    assert only(folder, "data.bin")


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256"])
def test_the_check_sum_may_be_of_several_kinds(server: Server, tmp_path: Path, algorithm: str):
    check_sum = hashlib.new(algorithm, CONTENT).hexdigest()
    assert d2l.download(server.url, tmp_path, check_sum)


def test_a_broken_download_goes_on_where_it_broke_off(server: Server, tmp_path: Path):
    server.break_after = [1000, 500_000]
    d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=501000-"]


def test_it_goes_on_in_the_next_run_as_well(server: Server, tmp_path: Path):
    server.break_after = [10, 10, 10]
    with pytest.raises(ConnectionError, match=r"broken off after .* D2L_DATA"):
        d2l.download(server.url, tmp_path, SHA1)
    assert only(tmp_path, "data.bin.part")
    d2l.download(server.url, tmp_path, SHA1)
    assert server.asked[-1] == "bytes=30-"
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert only(tmp_path, "data.bin")


def test_a_server_without_ranges_starts_again(server: Server, tmp_path: Path):
    server.knows_ranges = False
    server.break_after = [1000]
    d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"of another file", CONTENT + b"and more"], ids=["other", "long"])
def test_what_was_left_of_another_file_is_thrown_away(server: Server, tmp_path: Path, left: bytes):
    (tmp_path / "data.bin.part").write_bytes(left)
    d2l.download(server.url, tmp_path, SHA1)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_wrong_file_is_refused_and_what_was_there_stays(server: Server, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    with pytest.raises(ValueError, match=rf"data.bin: got check sum {SHA1}; need {'0' * 40}"):
        d2l.download(server.url, tmp_path, "0" * 40)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"
    assert only(tmp_path, "data.bin")


def test_a_failed_download_leaves_what_was_there(server: Server, tmp_path: Path):
    (tmp_path / "data.bin").write_bytes(b"mine")
    server.break_after = [10, 10, 10]
    with pytest.raises(ConnectionError):
        d2l.download(server.url, tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"mine"


def test_without_a_check_sum_it_is_fetched_anew(server: Server, tmp_path: Path):
    for content in (b"old", b"new"):
        server.content = content
        d2l.download(server.url, tmp_path)
        assert (tmp_path / "data.bin").read_bytes() == content


def test_a_file_that_is_not_there_is_asked_for_once(server: Server, tmp_path: Path):
    with pytest.raises(ConnectionError, match="404"):
        d2l.download(server.url.replace("data", "nothing"), tmp_path, SHA1)
    assert len(server.asked) == 1
    assert only(tmp_path)


def test_several_at_once_fetch_it_once(server: Server, tmp_path: Path):
    threads = [
        threading.Thread(target=d2l.download, args=(server.url, tmp_path, SHA1)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_names_stand_for_addresses(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(d2l.DATA_HUB, "mine", (server.url, SHA1))
    assert d2l.download("mine", tmp_path) == str(tmp_path / "data.bin")
    with pytest.raises(KeyError, match="'yours'; need an https address, or a name: fra-eng, mine"):
        d2l.download("yours", tmp_path)


def test_addresses_are_made_secure():
    from d2l_compat._shared.data.hub import _secure

    assert d2l.DATA_URL.startswith("https://")
    assert _secure("http://example.org/a?b=c") == "https://example.org/a?b=c"
    assert _secure("http://localhost:80/a") == "http://localhost:80/a"


# D2L_DATA


def test_a_folder_takes_the_place_of_the_network(
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
    assert d2l.download(server.url, ours, SHA1) == str(theirs / "data.bin")
    assert not server.asked
    assert not ours.exists()


# Archives


def archive(folder: Path, kind: str, members: dict[str, bytes]) -> Path:
    path = folder / f"pack.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members.items():
                file.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as file:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_archives_are_unpacked_beside_themselves_or_elsewhere(tmp_path: Path, kind: str):
    path = archive(tmp_path, kind, {"a/one.txt": b"1", "a/b/two.txt": b"2"})
    d2l.extract(path)
    assert (tmp_path / "a" / "b" / "two.txt").read_bytes() == b"2"
    d2l.extract(path, tmp_path / "else")
    assert (tmp_path / "else" / "a" / "one.txt").read_bytes() == b"1"
    assert only(tmp_path, "a", "else", path.name)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt"])
def test_nothing_is_unpacked_outside_the_folder(tmp_path: Path, kind: str, name: str):
    inner = tmp_path / "inner"
    inner.mkdir()
    path = archive(inner, kind, {"good.txt": b"good", name: b"out"})
    with pytest.raises(ValueError, match="whose members stay in their folder"):
        d2l.extract(path)
    assert only(tmp_path, "inner")
    assert only(inner, path.name)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_half_an_archive_leaves_nothing_behind(tmp_path: Path, kind: str):
    path = archive(tmp_path, kind, {"a.bin": os.urandom(100_000), "b.bin": os.urandom(100_000)})
    path.write_bytes(path.read_bytes()[:120_000])
    with pytest.raises(ValueError, match=r"filename: got .*; need a whole \.zip"):
        d2l.extract(path)
    assert only(tmp_path, path.name)


def test_another_kind_of_file_is_refused(tmp_path: Path):
    (tmp_path / "a.rar").write_bytes(b"")
    with pytest.raises(ValueError, match=r"need a whole \.zip"):
        d2l.extract(tmp_path / "a.rar")


def test_a_data_set_is_fetched_and_unpacked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packed = archive(tmp_path, "zip", {"data/x.txt": b"x"}).read_bytes()
    server.content = packed
    url = server.url.replace("data.bin", "data.zip")
    (tmp_path / "data.zip").write_bytes(packed)
    monkeypatch.setenv("D2L_DATA", str(tmp_path))
    monkeypatch.setitem(d2l.DATA_HUB, "data", (url, hashlib.sha1(packed).hexdigest()))
    assert d2l.download_extract("data") == str(tmp_path / "data")
    assert (tmp_path / "data" / "x.txt").read_bytes() == b"x"
    assert d2l.download_extract("data", "part") == str(tmp_path / "part")
