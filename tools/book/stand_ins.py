"""Small data in the place of D2L's, in a folder for ``D2L_DATA``: pages run in a minute, without a network."""

import gzip
import zipfile
from pathlib import Path

import numpy as np

# Pages with pictures of 28 by 28 go through five parts of an epoch; what is made larger takes long.
MANY, FEW = (1536, 512), (48, 24)
ENGLISH = "go", "run", "wait", "stop", "look", "come", "sit", "stand", "sing", "read"
FRENCH = "va", "cours", "attends", "arrête", "regarde", "viens", "assieds", "reste", "chante", "lis"


# Of a novel, so many sentences: D2L 1.0 reads 15,000 characters, 0.17 goes through the first ones 500 times.
LONG, SHORT = 260, 45
SENTENCE = (
    "The Time Traveller (for so it will be convenient to speak of him) said: take {} apples!\n"
)


def make(folder: Path, pictures: tuple[int, int], sentences: int) -> None:
    """The files."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    np.savetxt(folder / "airfoil_self_noise.dat", rng.normal(size=(1503, 6)), delimiter="\t")
    pairs = zip(ENGLISH, FRENCH, strict=True)
    lines = [f"{a.title()} {n}.\t{b.title()} {n} !" for a, b in pairs for n in range(70)]
    (folder / "timemachine.txt").write_text("".join(map(SENTENCE.format, range(sentences))))
    with zipfile.ZipFile(folder / "fra-eng.zip", "w") as archive:
        archive.writestr("fra-eng/fra.txt", "\n".join(lines))
    for kind, count in zip(("train", "t10k"), pictures, strict=True):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = rng.integers(0, 60, (count, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):  # each kind has a stripe of its own
            image[2 * label : 2 * label + 6] += 150
        for name, array in ("images-idx3", images), ("labels-idx1", labels):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
            file = folder / f"{kind}-{name}-ubyte.gz"
            file.write_bytes(gzip.compress(head + array.tobytes()))
    _make_houses(folder)
    _make_films(folder)
    _make_clicks(folder)


def _make_houses(folder: Path) -> None:
    """Sizes, of which some are not known, kinds and prices: prices for training alone."""
    rng = np.random.default_rng(2)
    for part, count in ("train", 200), ("test", 100):
        columns = ["Id,MSSubClass,MSZoning,LotArea,SaleType,SaleCondition"]
        lines = [
            f"{i},{20 * kind},{'RL' if kind else 'RM'},{rng.integers(5000, 9000) if i % 9 else 'NA'},WD,Normal"
            for i, kind in enumerate(rng.integers(0, 3, count))
        ]
        if part == "train":
            columns = [f"{columns[0]},SalePrice"]
            lines = [f"{line},{rng.integers(100_000, 200_000)}" for line in lines]
        (folder / f"kaggle_house_pred_{part}.csv").write_text("\n".join(columns + lines))


# As many films as a batch of D2L's has, since what does not fill one waits for the next epoch.
USERS, FILMS = 60, 260


def _make_films(folder: Path) -> None:
    """Each user rates 30 films, one after the other; users of one kind like the same ones."""
    rated = [(user, (30 * user + i) % FILMS, i) for user in range(USERS) for i in range(30)]
    lines = [f"{u + 1}\t{film + 1}\t{1 + (u + film) % 5}\t{time}" for u, film, time in rated]
    with zipfile.ZipFile(folder / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", "\n".join(lines))


def _make_clicks(folder: Path) -> None:
    """A batch of D2L's for training and one for the test: a label, and 34 values."""
    values = np.random.default_rng(1).integers(0, 5, (2 * 2048, 34))
    lines = ["\t".join(map(str, (row[0] % 2, *row))) for row in values]
    with zipfile.ZipFile(folder / "ctr.zip", "w") as archive:
        for name, part in ("train", lines[:2048]), ("test", lines[2048:]):
            archive.writestr(f"ctr/{name}.csv", "\n".join(part))
