"""Pictures of a Kaggle competition, put into a folder for each class, as loaders of pictures want them.

``data_dir`` has the folders ``train`` and ``test``; what is made goes into ``train_valid_test`` in it.
"""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d2l_compat._shared.checks import check_instance, fault, format_value, real
from d2l_compat._shared.data.files import told


def read_csv_labels(fname: str | Path) -> dict[str, str]:
    """The names in a file's first column, and the labels in its second; its first line is a heading.

    Raises FileNotFoundError where there is no such file, ValueError for a line of more or fewer columns.
    """
    check_instance("fname", fname, (str, Path), "a file's name")
    with told("fname", Path(fname), "a file that can be read"):
        lines = Path(fname).read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.rstrip().split(",") for line in lines]
    if wrong := [line for line, row in zip(lines, rows, strict=True) if len(row) != 2]:
        raise ValueError(fault("fname", f"a line {wrong[0]!r}", "two columns, a name and a label"))
    return dict(rows)


def copyfile(filename: str | Path, target_dir: str | Path) -> None:
    """Copy a file into a folder, which is made where it is not there.

    Raises FileNotFoundError where there is no such file, OSError where it cannot be copied.
    """
    for what, value in ("filename", filename), ("target_dir", target_dir):
        check_instance(what, value, (str, Path), "a name")
    with told("filename", Path(filename), "a file that can be copied"):
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        shutil.copy(filename, target_dir)


def reorg_train_valid(data_dir: str | Path, labels: Mapping[str, str], valid_ratio: float) -> int:
    """Share the pictures of ``train`` out to folders ``train`` and ``valid``, and all of them to ``train_valid``.

    In each there is a folder for each label, by ``labels``, from the picture's name without its suffix. As many
    of each class go to ``valid``, and their number is returned: ``valid_ratio`` of the pictures of the rarest one, at least 1.
    Raises TypeError or ValueError where there are no labels, or no share; KeyError for a picture without a label;
    FileNotFoundError where there is no such folder.
    """
    check_instance("labels", labels, Mapping, "a label for each name")
    need = "a share, from 0 to 1"
    if not 0 <= real("valid_ratio", valid_ratio, need) <= 1:
        raise ValueError(fault("valid_ratio", valid_ratio, need))
    if not labels:
        raise ValueError(fault("labels", "none", "a label for each name"))
    made = _made(data_dir)
    for_valid = max(1, int(min(Counter(labels.values()).values()) * valid_ratio))
    seen = Counter[str]()
    for picture in _pictures(data_dir, "train"):
        label = _label(labels, picture)
        part = "valid" if seen[label] < for_valid else "train"
        for folder in ("train_valid", part):
            copyfile(picture, made / folder / label)
        seen[label] += 1
    return for_valid


def reorg_test(data_dir: str | Path) -> None:
    """Put the pictures of ``test`` into ``test/unknown``, since nobody knows their labels.

    Raises FileNotFoundError where there is no such folder.
    """
    made = _made(data_dir)
    for picture in _pictures(data_dir, "test"):
        copyfile(picture, made / "test" / "unknown")


def _made(data_dir: Any) -> Path:
    check_instance("data_dir", data_dir, (str, Path), "a folder's name")
    return Path(data_dir) / "train_valid_test"


def _pictures(data_dir: str | Path, part: str) -> list[Path]:
    """In the order of their names, which is the same on every disk."""
    folder = Path(data_dir) / part
    with told("data_dir", folder, "a folder with train and test in it"):
        return sorted(folder.iterdir())


def _label(labels: Mapping[str, str], picture: Path) -> str:
    name = picture.name.split(".")[0]
    if name not in labels:
        raise KeyError(fault("labels", f"none for {format_value(name)}", "a label for each name"))
    return labels[name]
