"""Make small stand-ins for D2L's data in the folder ``D2L_DATA``, so that pages run in a minute, without a network."""

import gzip
from pathlib import Path

import numpy as np

from tools.archives import pack

# Numbers of images for training and for tests; few for pages that resize images, which is slow.
MANY_IMAGES = 1536, 512
FEW_IMAGES = 48, 24
# If the framework loads them: PaddlePaddle reads hundreds, and a page relies on the number for tests.
OWN_IMAGES = 1500, 10_000
ENGLISH = "go", "run", "wait", "stop", "look", "come", "sit", "stand", "sing", "read"
FRENCH = "va", "cours", "attends", "arrête", "regarde", "viens", "assieds", "reste", "chante", "lis"

# Numbers of sentences of the novel. D2L 1.0 reads 15,000 characters; 0.17 trains on the beginning, for 500 epochs.
LONG_NOVEL = 260
SHORT_NOVEL = 45
SENTENCE = (
    "The Time Traveller (for so it will be convenient to speak of him) said: take {} apples!\n"
)

# Words that pages look up by name. One page looks up the word of index 3367.
LOOKUP_WORDS = (
    *("the", "a", "he", "is", "good", "bad", "chip", "join", "baby", "beautiful", "man", "woman"),
    *("son", "beijing", "china", "tokyo", "worst", "big", "do", "did", "go", "this", "movie"),
    *("so", "great", "crane", "flying", "driver", "came", "just", "left"),
)
WORDS = [*LOOKUP_WORDS, *(f"word{i}" for i in range(3400))]
REVIEWS = 16  # of films
PARAGRAPHS = 40  # of Wikipedia
PAIRS = 128  # of SNLI
SENTENCES = 900  # of PTB

# The setup of a page that loads a trained BERT: this package saves an untrained one in the framework's format.
BERT_SETUP = """
import json, os, zipfile
{imports}
vocab = d2l.Vocab({words!r}, reserved_tokens=["<pad>", "<mask>", "<cls>", "<sep>"])
bert = d2l.BERTModel(len(vocab), 256, 512, 4, 2, 0.2, 512)
{save}
with zipfile.ZipFile(os.path.join(os.environ["D2L_DATA"], "{name}.zip"), "w") as archive:
    archive.write("params", "{name}/pretrained.{suffix}")
    archive.writestr("{name}/vocab.json", json.dumps(vocab.idx_to_token))
"""
BERT_FORMATS = {
    "pytorch": {
        "imports": "import torch\nfrom d2l_compat import torch as d2l",
        "save": "X = torch.zeros(1, 2, dtype=int)\nbert(X, X)\ntorch.save(bert.state_dict(), 'params')",
        "name": "bert.small.torch",
        "suffix": "params",
    },
    "mxnet": {
        "imports": "from d2l_compat import mxnet as d2l\nfrom mxnet import np",
        "save": "X = np.zeros((1, 2))\nbert.initialize()\nbert(X, X, None, X)\nbert.save_parameters('params')",
        "name": "bert.small",
        "suffix": "params",
    },
    "paddle": {
        "imports": "import paddle\nfrom d2l_compat import paddle as d2l",
        "save": "paddle.save(bert.state_dict(), 'params')",
        "name": "bert.small.paddle",
        "suffix": "pdparams",
    },
}


def make_setup(framework: str, code: str) -> str:
    """Return code for a page's kernel, which makes the files that only the framework can make."""
    if "bert.small" not in code or framework not in BERT_FORMATS:
        return ""
    return BERT_SETUP.format(words=[*LOOKUP_WORDS], **BERT_FORMATS[framework])


def make_data(folder: Path, num_images: tuple[int, int], num_sentences: int) -> None:
    """Write the files that pages load; ``num_images`` has the numbers for training and for tests."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    np.savetxt(folder / "airfoil_self_noise.dat", rng.normal(size=(1503, 6)), delimiter="\t")
    pairs = zip(ENGLISH, FRENCH, strict=True)
    lines = [f"{a.title()} {n}.\t{b.title()} {n} !" for a, b in pairs for n in range(70)]
    (folder / "timemachine.txt").write_text("".join(map(SENTENCE.format, range(num_sentences))))
    pack(folder / "fra-eng.zip", {"fra-eng/fra.txt": "\n".join(lines)})
    for kind, count in zip(("train", "t10k"), num_images, strict=True):
        labels = (np.arange(count) % 10).astype(np.uint8)
        images = rng.integers(0, 60, (count, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):  # each class has its own stripe
            image[2 * label : 2 * label + 6] += 150
        for name, array in ("images-idx3", images), ("labels-idx1", labels):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
            file = folder / f"{kind}-{name}-ubyte.gz"
            file.write_bytes(gzip.compress(header + array.tobytes()))
    _make_houses(folder)
    _make_films(folder)
    _make_clicks(folder)
    _make_words(folder, rng)
    _make_sentences(folder, rng)


def _make_words(folder: Path, rng: np.random.Generator) -> None:
    """Write word vectors, and two texts for language models."""
    for size in (50, 100):
        _zip(folder, f"glove.6B.{size}d", {"vec.txt": _make_vectors(rng, size)})
    sentences = rng.choice(WORDS[:1000], (SENTENCES, 25))
    _zip(folder, "ptb", {"ptb.train.txt": _join_lines(sentences)})
    paragraphs = []
    for words in _choose_words(rng, PARAGRAPHS, 4, 9):
        paragraphs.append(" . ".join(_join_lines(words).splitlines()))
    text = "".join(f" {paragraph} . \n" for paragraph in paragraphs)
    _zip(folder, "wikitext-2-v1", {"wiki.train.tokens": text}, root="wikitext-2")


def _make_sentences(folder: Path, rng: np.random.Generator) -> None:
    """Write pairs of sentences with their relation, and reviews."""
    labels = np.resize(["entailment", "contradiction", "neutral", "-"], PAIRS)
    rows = []
    for label, pair in zip(labels, _choose_words(rng, PAIRS, 2, 8), strict=True):
        premise, hypothesis = _join_lines(pair).splitlines()
        rows.append(f"{label}\t( {premise} )\t( {hypothesis} )")
    parts = {f"snli_1.0_{part}.txt": "\n".join(["head", *rows]) for part in ("train", "test")}
    _zip(folder, "snli_1.0", parts)
    reviews = {
        f"aclImdb/{part}/{label}/{number}.txt": _join_lines(words)
        for part in ("train", "test")
        for label in ("pos", "neg")
        for number, words in enumerate(_choose_words(rng, REVIEWS, 6, 30))
    }
    pack(folder / "aclImdb_v1.tar.gz", reviews)


def _choose_words(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return an array of words of this shape."""
    return rng.choice(LOOKUP_WORDS, shape)


def _join_lines(words: np.ndarray) -> str:
    return "\n".join(map(" ".join, words))


def _make_vectors(rng: np.random.Generator, size: int) -> str:
    """Return word vectors, one per line; some words have the same vector."""
    rows = [" ".join(map("{:.3f}".format, row)) for row in rng.normal(size=(61, size))]
    return "\n".join(f"{word} {rows[i % 61]}" for i, word in enumerate(WORDS))


def _zip(folder: Path, name: str, files: dict[str, str], root: str = "") -> None:
    """Pack files into an archive, within a folder of the archive's name or the folder ``root``."""
    root = root or name
    pack(folder / f"{name}.zip", {f"{root}/{file}": text for file, text in files.items()})


def _make_houses(folder: Path) -> None:
    """Write tables of houses, some without a size; only those for training have prices."""
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


# More films than D2L's batch size, 256: an incomplete batch would be left for the next epoch.
USERS, FILMS = 60, 260


def _make_films(folder: Path) -> None:
    """Write ratings: each user rates 30 films in turn, and some users like the same films."""
    lines = []
    for user in range(USERS):
        for time in range(30):
            film = (30 * user + time) % FILMS
            lines.append(f"{user + 1}\t{film + 1}\t{1 + (user + film) % 5}\t{time}")
    _zip(folder, "ml-100k", {"u.data": "\n".join(lines)})


def _make_clicks(folder: Path) -> None:
    """Write one batch of D2L's size for training and one for testing; each row has a label and 34 values."""
    values = np.random.default_rng(1).integers(0, 5, (2 * 2048, 34))
    lines = ["\t".join(map(str, (row[0] % 2, *row))) for row in values]
    parts = ("train", lines[:2048]), ("test", lines[2048:])
    _zip(folder, "ctr", {f"{name}.csv": "\n".join(part) for name, part in parts})
