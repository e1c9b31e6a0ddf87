"""D2L's own pages on the shim (tools/book): which code is run, and what is said of what fails."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2l_compat import common as d2l
from d2l_compat._shared.data import bananas, hub, voc
from d2l_compat.frameworks import FACES
from tools.book import pictures
from tools.book.__main__ import main, summary
from tools.book.epochs import with_fewer
from tools.book.pages import Page, pages, pairs, selected
from tools.book.results import Result, edition_of, read, record, result, tables
from tools.book.run import CAUSES, Outcome, cause, run
from tools.book.words import WORDS
from tools.weave.lessons import LANGUAGES

OLD = """\
# A page

```{.python .input}
from d2l import mxnet as d2l
```

```{.python .input}
#@tab pytorch, tensorflow
from d2l import torch as d2l
```

```python
never = "run"
```

```{.python .input}
#@tab all
d2l.one = 1
```
"""
NEW = """\
```{.python .input  n=1}
%load_ext d2lbook.tab
tab.interact_select('pytorch', 'jax')
```

```{.python .input  n=2}
%%tab jax
d2l.first = 'jax'
```

```{.python .input}
d2l.second = 'of PyTorch alone'
```

```{.python .input}
%%tab all
if tab.selected('jax'):
    d2l.third = 3
```
"""
OFFERED = """\
```{.python .input}
%load_ext d2lbook.tab
tab.interact_select(["pytorch", 'jax'])
#required_libs("gym==0.21.0")
```

```{.python .input}
%%tab all
d2l.fourth = 4
```
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    chapter = tmp_path / "chapter_toys"
    chapter.mkdir()
    (chapter / "old.md").write_text(OLD)
    (chapter / "new.md").write_text(NEW)
    (chapter / "old_origin.md").write_text(OLD)
    (chapter / "words.md").write_text("# Words\n\n```{.python .input}\n#@tab all\n1 + 1\n```\n")
    return tmp_path


def sources(page: Page, framework: str) -> list[str]:
    return [cell.source.strip() for cell in page.cells(framework)]


def test_a_page_has_the_cells_of_each_framework(book: Path) -> None:
    new, old, words = pages(book)
    assert [page.name for page in (new, old, words)] == ["toys/new", "toys/old", "toys/words"]
    assert sources(old, "mxnet") == ["from d2l import mxnet as d2l", "d2l.one = 1"]
    assert sources(old, "tensorflow") == ["from d2l import torch as d2l", "d2l.one = 1"]
    assert sources(old, "jax") == []
    third = "d2l.third = 3"
    assert sources(new, "jax") == ["d2l.first = 'jax'", third]
    assert sources(new, "pytorch") == ["d2l.second = 'of PyTorch alone'"]
    assert sources(new, "mxnet") == []
    lines = OLD.splitlines()
    for cell in old.cells("mxnet"):
        assert lines[cell.line - 1].startswith(cell.source.strip().splitlines()[0][:5]) or lines[
            cell.line - 1
        ].startswith("#@tab")


def test_a_page_is_there_in_the_frameworks_that_it_lists(tmp_path: Path) -> None:
    page = Page(tmp_path / "page.md")
    page.path.write_text(OFFERED)
    assert sources(page, "pytorch") == sources(page, "jax") == ["d2l.fourth = 4"]
    assert sources(page, "mxnet") == sources(page, "gym") == []


def test_pages_that_use_d2l_are_run_in_each_framework_they_are_there_in(book: Path) -> None:
    found = [(page.name, name) for page, name in pairs(book, ["pytorch", "jax", "mxnet", "other"])]
    assert found == [
        ("toys/new", "pytorch"),
        ("toys/new", "jax"),
        ("toys/old", "pytorch"),
        ("toys/old", "mxnet"),
    ]


def write(folder: Path, *cells: str) -> Page:
    path = folder / "chapter_toys" / "page.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"```{{.python .input}}\n#@tab all\n{cell}\n```\n" for cell in cells))
    path.write_text(path.read_text() + "```{.python .input}\n#@tab jax\nd2l = 1\n```\n")
    return Page(path)


DATA = """\
from pathlib import Path
from d2l_compat import common as d2l
if tab.selected('pytorch'):
    never = 1 / 0
assert len(Path(d2l.download("airfoil")).read_text().splitlines()) == 1503"""


def test_a_page_is_run_with_small_data_to_its_end(tmp_path: Path) -> None:
    outcome = run(write(tmp_path, DATA, "assert d2l.Vocab(['a'])['a']"), "jax", 600)
    assert outcome.error == ""
    assert (outcome.passed, outcome.cells, outcome.ran) == (3, 3, True)


@pytest.mark.parametrize(
    ("cell", "error", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero", "page"),
        ("d2l.Vocab(['a']).to_tokens('a')", "TypeError: indices", "shim"),
        pytest.param(
            "import numpy as np; np.linalg.inv(np.zeros((2, 2)))",
            "LinAlgError: Singular",
            "framework",
            marks=pytest.mark.release,
        ),
        pytest.param(
            "import no_such_package",
            "ModuleNotFoundError: No module",
            "package",
            marks=pytest.mark.release,
        ),
        ("import os; os._exit(3)", "the kernel died", "framework"),
    ],
)
def test_the_first_failure_is_told_with_its_line_and_its_cause(
    tmp_path: Path, cell: str, error: str, why: str
) -> None:
    page = write(tmp_path, "from d2l_compat import common as d2l", cell, "2 / 0")
    outcome = run(page, "jax", 600)
    assert outcome.error.startswith(error)
    assert (outcome.passed, outcome.cells, outcome.cause) == (1, 4, why)
    assert page.path.read_text().splitlines()[outcome.line] == cell


@pytest.mark.release
def test_of_an_error_with_a_figure_after_it_the_trace_tells_the_cause(tmp_path: Path) -> None:
    """What was drawn before is shown when the cell has ended, by an error as well."""
    cell = """\
%matplotlib inline
from d2l_compat import common as d2l
from matplotlib import pyplot
pyplot.plot([1, 2])
d2l.Vocab(['a']).to_tokens('a')"""
    outcome = run(write(tmp_path, cell), "jax", 600)
    assert (outcome.error[:18], outcome.cause) == ("TypeError: indices", "shim")


@pytest.mark.release
def test_the_chinese_edition_is_run_as_on_the_package_it_was_written_for(tmp_path: Path) -> None:
    """In 0.17 frequent words come first, in 1.0 all are in alphabetical order."""
    words = "from d2l_compat import common as d2l; words = d2l.Vocab([*'abb']).to_tokens([0, 1, 2])"
    page = write(tmp_path, words, "assert words == ['<unk>', 'a', 'b'], words")
    assert run(page, "jax", 600).error == ""
    (tmp_path / "config.ini").write_text("[project]\nlang = zh\n")
    assert run(page, "jax", 600).error == "AssertionError: ['<unk>', 'b', 'a']"


@pytest.mark.release
def test_what_python_finds_for_the_caller_it_finds_for_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_the_caller.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run(write(tmp_path, "import of_the_caller"), "jax", 600).error == ""


def test_a_page_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    outcome = run(write(tmp_path, "import time; time.sleep(6000)"), "jax", 10)
    assert (outcome.passed, outcome.error, outcome.cause) == (0, "more than 10 seconds", "time")


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("AttributeError", "train_ch8: d2l_compat.torch has no such name", "name"),
        ("ImportError", "gymnasium is needed, and it is not installed. Install it", "package"),
        ("ImportError", "Failed importing cv2. This likely means that some paddle", "package"),
        ("ImportError", "cannot import name 'a' from 'b'", "page"),
        ("RuntimeError", "Found no NVIDIA driver on your system", "gpu"),
        ("ValueError", "Expected a non cpu device, but got: cpu", "gpu"),
        ("URLError", "<urlopen error [Errno -3] Temporary failure in name resolution>", "network"),
        ("ValueError", "whatever", "page"),
    ],
)
def test_what_an_error_says_may_tell_its_cause(name: str, words: str, why: str) -> None:
    assert cause(name, words, "") == why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x = devices[0]", "gpu"),
        ("x = devices('gpu')[1]", "gpu"),
        ("x = y_shards[1]", "gpu"),
        ("x = others[0]", "page"),
    ],
)
def test_a_page_that_takes_one_more_gpu_than_there_are_needs_one(line: str, why: str) -> None:
    trace = f"IndexError Traceback (most recent call last)\nCell In[1], line 2\n----> 2 {line}\n"
    assert cause("IndexError", "list index out of range", trace) == why


@pytest.mark.release
def test_a_page_that_takes_the_first_of_no_gpus_needs_one(tmp_path: Path) -> None:
    for line, why in (("x = devices[0]", "gpu"), ("x = others[0]", "page")):
        assert run(write(tmp_path, "devices = others = []", line), "jax", 600).cause == why


@pytest.mark.release
def test_of_an_engines_trace_the_last_line_tells(tmp_path: Path) -> None:
    error = "Traceback (most recent call last):\\n  File x.cc\\nCheck failed: compile it for a GPU"
    outcome = run(write(tmp_path, f"raise RuntimeError('{error}')"), "jax", 600)
    assert outcome.error == "RuntimeError: Check failed: compile it for a GPU"
    assert outcome.cause == "gpu"


# Pictures, for the pages that ask for some


def test_a_page_finds_the_books_own_figures_and_others_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "img").mkdir()
    own = np.full((2, 3, 3), 7, np.uint8)
    Image.fromarray(own).save(tmp_path / "img" / "own.png")
    reads = """\
from PIL import Image
own, other = Image.open("../img/own.png"), Image.open('../img/other.jpg')
assert (own.size, own.getpixel((0, 0))) == ((3, 2), (7, 7, 7))
assert (other.format, other.size) == ("JPEG", (364, 281))
import os
assert sorted(os.listdir("../img")) == ["other.jpg", "own.png"]
own.putpixel((0, 0), (9, 9, 9))
own.save("../img/own.png")"""
    assert run(write(tmp_path, reads), "jax", 600).error == ""
    assert np.array_equal(np.array(Image.open(tmp_path / "img" / "own.png")), own)


def test_between_the_colours_of_a_pictures_corners_is_what_is_between_them() -> None:
    picture = pictures.drawn(np.random.default_rng(0), 3, 5).astype(int)
    assert np.ptp(picture[[0, 0, -1, -1], [0, -1, 0, -1]], 0).min() > 0
    middle = picture[[0, -1]][:, [0, -1]].mean((0, 1))
    assert np.abs(picture[1, 2] - middle).max() <= 0.5
    assert np.abs(picture[0, 1] - (3 * picture[0, 0] + picture[0, -1]) / 4).max() <= 0.5


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data as a page has it, for code that asks for all archives of pictures."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("D2L_DATA", str(data))
    monkeypatch.setattr(hub, "check", lambda path, check_sum: None)
    monkeypatch.setattr(pictures, "SEGMENTED", 3)
    (tmp_path / "page" / "work").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "page" / "work")
    return data


@pytest.mark.parametrize(
    ("code", "archives"),
    [
        ("vocab = d2l.Vocab(tokens)", []),
        ("d2l.download_extract('hotdog')", ["hotdog.zip"]),
        ("d2l.load_data_voc(32, crop_size)", ["VOCtrainval_11-May-2012.tar"]),
        ("d2l.load_data_bananas(32); '../img/banana.jpg'", ["banana-detection.zip"]),
    ],
)
def test_only_archives_that_a_page_asks_for_are_made(
    asked: Path, code: str, archives: list[str]
) -> None:
    pictures.make(asked, code)
    assert [file.name for file in asked.iterdir()] == archives


def test_of_two_competitions_a_batch_is_left_for_validation_and_five_for_training(
    asked: Path,
) -> None:
    pictures.make(asked, "cifar10_tiny dog_tiny")
    for name, table, classes in ("cifar10_tiny", "trainLabels", 10), ("dog_tiny", "labels", 120):
        folder = Path(d2l.download_extract(name))
        labels = d2l.read_csv_labels(folder / f"{table}.csv")
        d2l.reorg_train_valid(folder, labels, 0.1)
        d2l.reorg_test(folder)
        made = folder / "train_valid_test"
        count = Counter(file.relative_to(made).parts[0] for file in made.glob("*/*/*.png"))
        assert count["valid"] >= 32
        assert count["train"] >= 5 * 32
        assert count["train_valid"] == len(labels) == count["train"] + count["valid"]
        assert count["test"] == 5
        assert len({*labels.values()}) <= classes


def test_there_are_hotdogs_enough_to_be_shown(asked: Path) -> None:
    pictures.make(asked, "hotdog")
    folder = Path(d2l.download_extract("hotdog"))
    kinds = Counter(str(file.parent.relative_to(folder)) for file in folder.glob("*/*/*.png"))
    parts = [f"{part}/{kind}" for part in ("train", "test") for kind in ("hotdog", "not-hotdog")]
    assert kinds == dict.fromkeys(parts, 16)


def test_a_bananas_box_is_where_the_banana_is(asked: Path) -> None:
    pictures.make(asked, "read_data_bananas()")
    images, targets = bananas.read(is_train=True)
    assert len(images) >= 10
    for image, (kind, *box) in zip(images, targets[:, 0], strict=True):
        left, top, right, bottom = (round(256 * float(side)) for side in box)
        yellow = (image == (255, 255, 0)).all(-1)
        assert kind == 0
        assert image.shape == (256, 256, 3)
        assert yellow[top:bottom, left:right].all()
        assert 0 < yellow.sum() <= (right - left) * (bottom - top) + 16


def test_what_is_segmented_has_classes_and_is_larger_than_what_is_cropped(asked: Path) -> None:
    pictures.make(asked, "voc_dir = d2l.download_extract('voc2012')")
    folder = Path(d2l.download_extract("voc2012", "VOCdevkit/VOC2012"))
    images, colors = voc.read(folder, is_train=False)
    assert [each.shape for each in (*images, *colors)] == [(330, 500, 3)] * 6
    labels = [voc.label_of_color()[voc.number(each.astype(int))] for each in colors]
    assert [sorted({*each.flat}) for each in labels] == [[0, 1], [0, 2], [0, 3]]


def test_the_summary_counts_by_chapter_and_by_cause() -> None:
    told = summary(
        [
            Outcome("a/one", "pytorch", 3, 3, 1.0),
            Outcome("a/two", "pytorch", 3, 2, 1.0, "X: y", 7, "page"),
            Outcome("b/one", "jax", 1, 0, 1.0, "X: y", 7, "page"),
        ]
    ).splitlines()
    assert told[1] == "| chapter | pytorch | jax |"
    assert told[3:5] == ["| a | 1 of 2 |  |", "| b |  | 0 of 1 |"]
    assert told[6:] == [
        "1 of 3 run to the end.",
        "2: the page itself, or what it expects of an older framework",
    ]


def test_a_folder_that_is_no_book_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no page there uses d2l; need a copy of D2L's repository"):
        main([str(tmp_path)])
    with pytest.raises(SystemExit, match="there is no such folder"):
        main([str(tmp_path / "none")])


SELECTING = """\
class A:
    if tab.selected("mxnet", 'jax'):
        def f(self):
            self.a = 1

        if tab.selected('jax'):
            self.b = 2

    if tab.selected('pytorch') or tab.selected('mxnet'):
        c = 3
    d = 4
"""
FOR_JAX = """\
class A:
    def f(self):
        self.a = 1

        self.b = 2

    d = 4"""


def test_lines_for_a_framework_take_the_place_of_the_line_that_selects_it() -> None:
    assert selected(SELECTING, "jax") == FOR_JAX
    assert selected(SELECTING, "pytorch") == "class A:\n    c = 3\n    d = 4"
    assert selected("x = 1\nif y:\n    z = 2\n", "jax") == "x = 1\nif y:\n    z = 2"


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("num_epochs = 500", "num_epochs = 3"),
        ("num_epochs = 2", "num_epochs = 2"),
        ("lr, num_epochs, f = 0.5, 500, g(1, 500)", "lr, num_epochs, f = 0.5, 3, g(1, 500)"),
        ("t = Trainer(max_epochs=10, lr=10)  # 十", "t = Trainer(max_epochs=3, lr=10)  # 十"),
        ("def f(x, num_epochs=400): pass", "def f(x, num_epochs=3): pass"),
        ("s = '中'; num_epochs = 500; n = 500", "s = '中'; num_epochs = 3; n = 500"),
        ("num_epochs = epochs(500)", "num_epochs = epochs(500)"),
        ("xlim=[0, num_epochs]", "xlim=[0, num_epochs]"),
        ("no Python, num_epochs = 500", "no Python, num_epochs = 500"),
    ],
)
def test_training_ends_after_a_few_epochs(source: str, short: str) -> None:
    assert with_fewer(source, 3).rstrip("\n") == short


def test_what_jupyter_has_besides_python_stays() -> None:
    assert "run_line_magic('matplotlib', 'inline')" in with_fewer("%matplotlib inline\nx = 1", 3)


# What came of the pages, kept for the docs

RAN = Result("en", "optimization/sgd", "pytorch", 5, 5)
FAILED = Result("en", "optimization/sgd", "jax", 5, 2, "framework", "TypeError: a | b")
ALSO = Result("en", "optimization/sgd", "tensorflow", 5, 3, "framework", "TypeError: a | b")
CHINESE = Result("zh", "linear-networks/a", "pytorch", 3, 1, "gpu", "no GPU")


def test_what_came_of_a_page_takes_the_place_of_what_there_was(tmp_path: Path) -> None:
    file = tmp_path / "book.jsonl"
    assert read(file) == []
    record([CHINESE, FAILED, RAN], file)
    assert read(file) == [FAILED, RAN, CHINESE]
    again = Result("en", "optimization/sgd", "jax", 5, 5)
    record([again], file)
    assert read(file) == [again, RAN, CHINESE]
    assert len(file.read_text("utf-8").splitlines()) == 3


def test_the_tables_count_the_pages_and_name_those_that_fail() -> None:
    assert (
        tables([RAN, FAILED, ALSO, CHINESE], "en")
        == """\
| chapter | PyTorch | TensorFlow | JAX |
|:--|--:|--:|--:|
| Optimization (English) | 1 of 1 | 0 of 1 | 0 of 1 |
| Linear networks (Chinese) | 0 of 1 |  |  |
| all | 1 of 2 | 0 of 1 | 0 of 1 |

Of 4 pairs of page and framework that were run, 1 came from the first cell to the last; of the 3 that need neither a GPU \
nor something they fetch themselves, 33.3 %. The others, with what each stumbles over:

| page | in | because of | the first error |
|:--|:--|:--|:--|
| sgd (English) | JAX, TensorFlow | today's framework or library | `TypeError: a \\| b` |
| a (Chinese) | PyTorch | it needs a GPU |  |
"""
    )


def test_an_error_is_kept_without_the_places_of_the_machine_it_came_from() -> None:
    said = (
        "FileNotFoundError: no '/tmp/book-1/data/fra.txt' or ../data/a.txt, see https://a.org/b/c"
    )
    kept = result(Outcome("a/b", "jax", 2, 1, 1.0, said, 3, "page"), "en").error
    assert kept == "FileNotFoundError: no 'fra.txt' or ../data/a.txt, see https://a.org/b/c"


@pytest.mark.parametrize("config", ["lang = zh", "name = d2l-en", "lang", None])
def test_a_book_says_its_language(book: Path, config: str | None) -> None:
    if config:
        (book / "config.ini").write_text(f"[project]\n{config}\n")
    assert edition_of(book) == ("zh" if config == "lang = zh" else "en")


def test_all_that_came_of_pages_can_be_told_in_every_language() -> None:
    assert WORDS.keys() == LANGUAGES.keys()
    for words in WORDS.values():
        assert words.causes.keys() == CAUSES.keys()
        assert {
            (each.edition in words.editions, each.chapter in words.chapters) for each in read()
        } == {(True, True)}
    assert {each.framework for each in read()} <= FACES.keys()
    assert [
        each.key
        for each in read()
        if each.ran != (each.error == "") or each.ran != (each.cause == "")
    ] == []


def test_what_comes_of_pages_is_kept_where_it_is_asked_for(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "book.jsonl"
    monkeypatch.setattr("tools.book.results.RESULTS", file)
    given = [str(book), "--framework", "jax", "--jobs", "1"]
    assert main(given) == 0
    assert not file.exists()
    assert main([*given, "--record"]) == 0
    error = "NameError: name 'd2l' is not defined"
    assert read(file) == [Result("en", "toys/new", "jax", 2, 0, "page", error)]
    capsys.readouterr()
    with pytest.raises(SystemExit, match="nothing is left to run"):
        main([*given, "--record", "--rest"])
