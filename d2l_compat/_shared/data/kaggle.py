"""Images of a Kaggle competition, sorted into a folder for each class, as image loaders need them.

``data_dir`` has the folders ``train`` and ``test``; the result goes into its folder ``train_valid_test``.
"""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d2l_compat._shared.checks import check_instance, format_value, message, real
from d2l_compat._shared.data.files import rephrase_os_errors


def read_csv_labels(fname: str | Path) -> dict[str, str]:
    """Read names from a file's first column and labels from its second, after a line of headings.

    Raises FileNotFoundError if there is no such file, ValueError for a line of more or fewer columns.
    """
    check_instance("fname", fname, (str, Path), "a file's name")
    with rephrase_os_errors("fname", Path(fname), "a file that can be read"):
        lines = Path(fname).read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.rstrip().split(",") for line in lines]
    if wrong := [line for line, row in zip(lines, rows, strict=True) if len(row) != 2]:
        raise ValueError(message("fname", f"a line {wrong[0]!r}", "two columns, name and label"))
    return dict(rows)


def copyfile(filename: str | Path, target_dir: str | Path) -> None:
    """Copy a file into a folder, which is created if necessary.

    Raises FileNotFoundError if there is no such file, OSError if it cannot be copied.
    """
    for what, value in ("filename", filename), ("target_dir", target_dir):
        check_instance(what, value, (str, Path), "a name")
    with rephrase_os_errors("filename", Path(filename), "a file that can be copied"):
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        shutil.copy(filename, target_dir)


def reorg_train_valid(data_dir: str | Path, labels: Mapping[str, str], valid_ratio: float) -> int:
    """Copy the images of ``train`` to folders ``train`` and ``valid``, and all of them to ``train_valid``.

    Each of these has a folder for each label; ``labels`` maps an image's name without its suffix to its label. The
    same number of each class goes to ``valid``: ``valid_ratio`` of the images of the rarest class, at least 1.
    Returns this number. Raises TypeError or ValueError if there are no labels or ``valid_ratio`` is not from 0 to 1,
    KeyError for an image without a label, and FileNotFoundError if there is no such folder.
    """
    check_instance("labels", labels, Mapping, "a label for each name")
    need = "a share, from 0 to 1"
    if not 0 <= real("valid_ratio", valid_ratio, need) <= 1:
        raise ValueError(message("valid_ratio", valid_ratio, need))
    if not labels:
        raise ValueError(message("labels", "none", "a label for each name"))
    output = _output_folder(data_dir)
    num_valid = max(1, int(min(Counter(labels.values()).values()) * valid_ratio))
    counts = Counter[str]()
    for image in _list_images(data_dir, "train"):
        label = _find_label(labels, image)
        part = "valid" if counts[label] < num_valid else "train"
        for folder in ("train_valid", part):
            copyfile(image, output / folder / label)
        counts[label] += 1
    return num_valid


def reorg_test(data_dir: str | Path) -> None:
    """Copy the images of ``test`` into ``test/unknown``, since their labels are unknown.

    Raises FileNotFoundError if there is no such folder.
    """
    output = _output_folder(data_dir)
    for image in _list_images(data_dir, "test"):
        copyfile(image, output / "test" / "unknown")


def _output_folder(data_dir: Any) -> Path:
    check_instance("data_dir", data_dir, (str, Path), "a folder's name")
    return Path(data_dir) / "train_valid_test"


def _list_images(data_dir: str | Path, part: str) -> list[Path]:
    """Return the images sorted by name, so that the order is the same on every disk."""
    folder = Path(data_dir) / part
    with rephrase_os_errors("data_dir", folder, "a folder with train and test in it"):
        return sorted(folder.iterdir(), key=str)  # paths ignore case on Windows


def _find_label(labels: Mapping[str, str], image: Path) -> str:
    name = image.name.split(".")[0]
    if name not in labels:
        raise KeyError(message("labels", f"none for {format_value(name)}", "a label for each name"))
    return labels[name]
