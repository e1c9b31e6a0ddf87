"""What things are by their content, never by time stamps: digests of files, and of what is installed."""

import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path


def digest(words: Iterable[str], files: Iterable[Path], root: Path) -> str:
    """Of the words, in their order, and of the files, by their place below ``root``."""
    found = hashlib.sha256()
    for word in words:
        found.update(word.encode() + b"\0")
    for file in sorted(set(files)):
        found.update(str(file.relative_to(root)).encode() + b"\0")
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


@cache
def installed() -> tuple[str, ...]:
    """Python, and all packages beside it."""
    return sys.version, *sorted({f"{found.name}=={found.version}" for found in distributions()})
