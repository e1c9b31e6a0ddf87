"""Small data in the place of D2L's, in a folder for ``D2L_DATA``: pages run in a minute, without a network."""

import gzip
from pathlib import Path

import numpy as np

from tools.archives import pack

# Pages with pictures of 28 by 28 go through five parts of an epoch; what is made larger takes long.
MANY, FEW = (1536, 512), (48, 24)
ENGLISH = "go", "run", "wait", "stop", "look", "come", "sit", "stand", "sing", "read"
FRENCH = "va", "cours", "attends", "arrête", "regarde", "viens", "assieds", "reste", "chante", "lis"


# Of a novel, so many sentences: D2L 1.0 reads 15,000 characters, 0.17 goes through the first ones 500 times.
LONG, SHORT = 260, 45
SENTENCE = (
    "The Time Traveller (for so it will be convenient to speak of him) said: take {} apples!\n"
)

# Words that pages ask for by name, and enough others: a page looks up the 3367th.
ASKED = (
    *("the", "a", "he", "is", "good", "bad", "chip", "join", "baby", "beautiful", "man", "woman"),
    *("son", "beijing", "china", "tokyo", "worst", "big", "do", "did", "go", "this", "movie"),
    *("so", "great", "crane", "flying", "driver", "came", "just", "left"),
)
WORDS = [*ASKED, *(f"word{i}" for i in range(3400))]
REVIEWS, PARAGRAPHS, PAIRS, SENTENCES = 16, 40, 128, 900  # of films, of Wikipedia, SNLI's, PTB's

# What a page with a trained BERT runs before all else: one that is not trained, saved as its framework saves it.
BERT = """
import json, os, zipfile
{imports}
vocab = d2l.Vocab({words!r}, reserved_tokens=["<pad>", "<mask>", "<cls>", "<sep>"])
bert = d2l.BERTModel(len(vocab), 256, 512, 4, 2, 0.2, 512)
{save}
with zipfile.ZipFile(os.path.join(os.environ["D2L_DATA"], "{name}.zip"), "w") as archive:
    archive.write("params", "{name}/pretrained.{suffix}")
    archive.writestr("{name}/vocab.json", json.dumps(vocab.idx_to_token))
"""
SAVED = {
    "pytorch": {
        "imports": "import torch\nfrom d2l import torch as d2l",
        "save": "torch.save(bert.state_dict(), 'params')",
        "name": "bert.small.torch",
        "suffix": "params",
    },
    "mxnet": {
        "imports": "from d2l import mxnet as d2l\nfrom mxnet import np",
        "save": "X = np.zeros((1, 2))\nbert.initialize()\nbert(X, X, None, X)\nbert.save_parameters('params')",
        "name": "bert.small",
        "suffix": "params",
    },
    "paddle": {
        "imports": "import paddle\nfrom d2l import paddle as d2l",
        "save": "paddle.save(bert.state_dict(), 'params')",
        "name": "bert.small.paddle",
        "suffix": "pdparams",
    },
}


def before(framework: str, code: str) -> str:
    """What makes in a page's kernel what no file can be made of without its framework."""
    if "bert.small" not in code or framework not in SAVED:
        return ""
    return BERT.format(words=[*ASKED], **SAVED[framework])


def make(folder: Path, pictures: tuple[int, int], sentences: int) -> None:
    """The files."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    np.savetxt(folder / "airfoil_self_noise.dat", rng.normal(size=(1503, 6)), delimiter="\t")
    pairs = zip(ENGLISH, FRENCH, strict=True)
    lines = [f"{a.title()} {n}.\t{b.title()} {n} !" for a, b in pairs for n in range(70)]
    (folder / "timemachine.txt").write_text("".join(map(SENTENCE.format, range(sentences))))
    pack(folder / "fra-eng.zip", {"fra-eng/fra.txt": "\n".join(lines)})
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
    _make_words(folder, rng)
    _make_sentences(folder, rng)


def _make_words(folder: Path, rng: np.random.Generator) -> None:
    """Vectors, and running text of two kinds."""
    for size in (50, 100):
        _zip(folder, f"glove.6B.{size}d", {"vec.txt": _vectors(rng, size)})
    often = rng.choice(WORDS[:1000], (SENTENCES, 25))
    _zip(folder, "ptb", {"ptb.train.txt": _lines(often)})
    paragraphs = [" . ".join(_lines(some).splitlines()) for some in _some(rng, PARAGRAPHS, 4, 9)]
    text = "".join(f" {paragraph} . \n" for paragraph in paragraphs)
    _zip(folder, "wikitext-2-v1", {"wiki.train.tokens": text}, inside="wikitext-2")


def _make_sentences(folder: Path, rng: np.random.Generator) -> None:
    """Pairs that follow from each other or do not, and reviews."""
    labels = np.resize(["entailment", "contradiction", "neutral", "-"], PAIRS)
    rows = [
        f"{label}\t( {premise} )\t( {hypothesis} )"
        for label, *pair in zip(labels, _some(rng, PAIRS, 2, 8), strict=True)
        for premise, hypothesis in [_lines(pair[0]).splitlines()]
    ]
    parts = {f"snli_1.0_{part}.txt": "\n".join(["head", *rows]) for part in ("train", "test")}
    _zip(folder, "snli_1.0", parts)
    reviews = {
        f"aclImdb/{part}/{label}/{number}.txt": _lines(words)
        for part in ("train", "test")
        for label in ("pos", "neg")
        for number, words in enumerate(_some(rng, REVIEWS, 6, 30))
    }
    pack(folder / "aclImdb_v1.tar.gz", reviews)


def _some(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Words that are asked for, in this shape."""
    return rng.choice(ASKED, shape)


def _lines(words: np.ndarray) -> str:
    return "\n".join(map(" ".join, words))


def _vectors(rng: np.random.Generator, size: int) -> str:
    """A vector a line; some words have the same."""
    rows = [" ".join(map("{:.3f}".format, row)) for row in rng.normal(size=(61, size))]
    return "\n".join(f"{word} {rows[i % 61]}" for i, word in enumerate(WORDS))


def _zip(folder: Path, name: str, files: dict[str, str], inside: str = "") -> None:
    inside = inside or name
    pack(folder / f"{name}.zip", {f"{inside}/{file}": text for file, text in files.items()})


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
    _zip(folder, "ml-100k", {"u.data": "\n".join(lines)})


def _make_clicks(folder: Path) -> None:
    """A batch of D2L's for training and one for the test: a label, and 34 values."""
    values = np.random.default_rng(1).integers(0, 5, (2 * 2048, 34))
    lines = ["\t".join(map(str, (row[0] % 2, *row))) for row in values]
    parts = ("train", lines[:2048]), ("test", lines[2048:])
    _zip(folder, "ctr", {f"{name}.csv": "\n".join(part) for name, part in parts})
