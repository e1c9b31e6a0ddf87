"""Write files so that an interruption cannot leave half of one."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a file's text at once: after any failure the old text is still there. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
