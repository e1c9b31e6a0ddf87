"""Replace D2L's data sets by small ones, in the folder that ``D2L_DATA`` names."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools import archives


def replace_airfoil(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, table: np.ndarray) -> None:
    """Replace the airfoil data by rows of five features and a label."""
    np.savetxt(folder / "airfoil_self_noise.dat", table, delimiter="\t")
    _set_checksum(patch, d2l, "airfoil", folder)


def replace_sentences(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, text: str) -> None:
    """Replace the sentence pairs: each line has a sentence in English and one in French."""
    replace_texts(patch, d2l, folder, "fra-eng", {"fra-eng/fra.txt": text})


def replace_novel(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, text: str) -> None:
    """Replace *The Time Machine*."""
    (folder / "timemachine.txt").write_text(text, encoding="utf-8")
    _set_checksum(patch, d2l, "time_machine", folder)


def replace_films(
    patch: pytest.MonkeyPatch, d2l: Any, folder: Path, ratings: list[tuple[int, ...]]
) -> None:
    """Replace MovieLens by ratings (user, item, stars, time)."""
    lines = ["\t".join(map(str, rating)) for rating in ratings]
    replace_texts(patch, d2l, folder, "ml-100k", {"ml-100k/u.data": "\n".join(lines)})


def _set_checksum(patch: pytest.MonkeyPatch, d2l: Any, name: str, folder: Path) -> None:
    """Set a data set's checksum to that of the file in the folder; its address stays the same."""
    address, _ = d2l.DATA_HUB[name]
    file = folder / address.rpartition("/")[2]
    patch.setenv("D2L_DATA", str(folder))
    patch.setitem(d2l.DATA_HUB, name, (address, hashlib.sha1(file.read_bytes()).hexdigest()))


def replace_bananas(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, images: np.ndarray) -> None:
    """Replace the bananas by images (n, 256, 256, 3); image i has the box (16 i, 32, 64, 128)."""
    archives.write_bananas(folder, images, [(16 * i, 32, 64, 128) for i in range(len(images))])
    _set_checksum(patch, d2l, "banana-detection", folder)


def replace_voc(
    patch: pytest.MonkeyPatch,
    d2l: Any,
    folder: Path,
    images: list[np.ndarray],
    colors: list[np.ndarray],
) -> None:
    """Replace VOC 2012 by images, each with the colours of its pixels' classes."""
    archives.write_voc(folder, images, colors)
    _set_checksum(patch, d2l, "voc2012", folder)


def replace_texts(
    patch: pytest.MonkeyPatch, d2l: Any, folder: Path, name: str, files: dict[str, str]
) -> None:
    """Replace a data set's archive by one with these files."""
    archives.pack(folder / d2l.DATA_HUB[name][0].rpartition("/")[2], files)
    _set_checksum(patch, d2l, name, folder)


def replace_language(patch: pytest.MonkeyPatch, d2l: Any, folder: Path) -> None:
    """Replace the texts of D2L's chapters on natural language by words from w0 to w9, in PTB to w199."""

    def line(*numbers: int, num_words: int = 10) -> str:
        return " ".join(f"w{number % num_words}" for number in numbers)

    for name in ("glove.6b.50d", "wiki.en"):
        subfolder = d2l.DATA_HUB[name][0].rpartition("/")[2].removesuffix(".zip")
        vectors = "\n".join(f"w{i} {i} {-i} 0.5" for i in range(4))
        replace_texts(patch, d2l, folder, name, {f"{subfolder}/vec.txt": vectors})
    ptb = "\n".join(line(*range(40 * i, 40 * i + 40), num_words=200) for i in range(50))
    replace_texts(patch, d2l, folder, "ptb", {"ptb/ptb.train.txt": ptb})
    wiki = "".join(f" {line(i, i + 1)} . {line(i + 2)} . {line(i + 3)} . \n" for i in range(20))
    replace_texts(patch, d2l, folder, "wikitext-2", {"wikitext-2/wiki.train.tokens": wiki})
    reviews = {
        f"aclImdb/{part}/{label}/{i}.txt": line(*range(i + number, 10))
        for part in ("train", "test")
        for number, label in enumerate(("pos", "neg"))
        for i in range(5)
    }
    replace_texts(patch, d2l, folder, "aclImdb", reviews)
    kinds = "entailment", "contradiction", "neutral", "-"
    rows = [f"{kinds[i % 4]}\t( {line(i, i + 1)} )\t( {line(i + 2)} )" for i in range(24)]
    table = "\n".join(["head", *rows])
    parts = {f"snli_1.0/snli_1.0_{part}.txt": table for part in ("train", "test")}
    replace_texts(patch, d2l, folder, "SNLI", parts)
