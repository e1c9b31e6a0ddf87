"""Tests on imitations of Windows and macOS; some imitations of a single function are in other modules."""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path, PurePath
from tarfile import TarFile
from typing import Any
from unittest.mock import Mock
from zipfile import ZipFile

import pytest

from d2l_compat import common as d2l
from tests.shim.test_download import (
    CONTENT,
    KINDS,
    Server,
    contains_only,
    download,
    make_archive,
    server,
)

__all__ = ["server"]  # a fixture


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file in a folder of the home folder that ``D2L_DATA`` names by ``~``."""
    for variable in "HOME", "USERPROFILE":
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("D2L_DATA", "~/my data")
    file = tmp_path / "my data" / "a.txt"
    file.parent.mkdir()
    file.write_bytes(b"1")
    return file


def test_file_is_copied_where_links_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "symlink_to", Mock(side_effect=OSError(22, "privilege not held")))
    for content in b"1", b"2":  # the second replaces the first
        source.write_bytes(content)
        check_sum = hashlib.sha1(content).hexdigest()
        copy = Path(d2l.download("https://d2l.ai/a.txt", tmp_path / "data", check_sum))
        assert copy.read_bytes() == content
        assert contains_only(tmp_path / "data", "a.txt")
    copy.write_bytes(b"3")
    assert source.read_bytes() == b"2"


@pytest.fixture
def open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to rename or replace files that have their final names, as if they were open on Windows."""
    replace = Path.replace

    def replace_unless_open(path: Path, target: Path) -> Path:
        if path.suffix in (".bin", ".txt") or target.exists():
            raise PermissionError(13, "Access is denied")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace_unless_open)
    monkeypatch.setattr("os.link", Mock(side_effect=NotImplementedError))


@pytest.mark.usefixtures("open_files")
def test_open_file_may_be_downloaded_again(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        assert download(server, tmp_path / "data", None) == CONTENT
        assert contains_only(tmp_path / "data", "data.bin")
    server.content = b"new"
    with pytest.raises(PermissionError, match=r"folder: got .*Access is denied"):
        download(server, tmp_path / "data", None)
    assert (tmp_path / "data" / "data.bin").read_bytes() == CONTENT


@pytest.mark.usefixtures("open_files")
def test_open_files_may_be_extracted_again(tmp_path: Path) -> None:
    for content in b"1", b"1", b"2":
        path = make_archive(tmp_path, "zip", {"data/a.txt": content, "data/b.txt": b""})
        with pytest.raises(PermissionError) if content == b"2" else nullcontext():
            d2l.extract(path)
        assert contains_only(tmp_path / "data", "a.txt", "b.txt")
        assert (tmp_path / "data" / "a.txt").read_bytes() == b"1"


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_become_one_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Test names that differ only in case, and names such as NUL, after which there is no file."""
    path = make_archive(tmp_path, kind, {"a/B.txt": b"1", "a/b.txt": b"2", "a/./b.txt": b"3"})
    d2l.extract(path, tmp_path / "other")
    assert contains_only(tmp_path / "other" / "a", "B.txt", "b.txt")

    def ignore_case(extractall: Callable[..., None]) -> Callable[..., None]:
        def extract(archive: Any, folder: Path, **options: Any) -> None:
            extractall(archive, folder, **options)
            (folder / "a" / "B.txt").replace(folder / "a" / "b.txt")

        return extract

    for archive in ZipFile, TarFile:
        monkeypatch.setattr(archive, "extractall", ignore_case(archive.extractall))
    with pytest.raises(ValueError, match=r"2 files have become 1, because of names"):
        d2l.extract(path)
    assert contains_only(tmp_path, "other", path.name)


def test_missing_drive_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_archive(tmp_path, "zip", {"a.txt": b"1"})
    monkeypatch.setattr(Path, "exists", lambda path: False)
    monkeypatch.setattr("tempfile.mkdtemp", Mock(side_effect=OSError(2, "No such drive", "Z:/")))
    with pytest.raises(OSError, match=r"folder: got Z:/ \(No such drive\); need a folder to write"):
        d2l.extract(path)


def test_order_of_files_does_not_ignore_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PurePath, "__lt__", lambda a, b: str(a).lower() < str(b).lower())
    for folder in "pos", "neg", "images/train":
        (tmp_path / "train" / folder).mkdir(parents=True)
        for name in "aB":
            (tmp_path / "train" / folder / name).write_text(name)
    assert d2l.read_imdb(tmp_path, True)[0] == ["B", "a"] * 2
    images = tmp_path / "train" / "images"
    assert d2l.reorg_train_valid(images, {"a": "cat", "B": "cat"}, 0.1) == 1
    assert contains_only(images / "train_valid_test" / "valid" / "cat", "B")
