"""D2L's own pages on the shim (tools/book): which code is run, and what is said of what fails."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2l_compat.frameworks import FACES
from tools.book.__main__ import main
from tools.book.epochs import with_fewer
from tools.book.pages import Page, pairs
from tools.book.results import Result, edition_of, read, record, result, tables
from tools.book.run import CAUSES, Outcome, cause, run
from tools.book.words import WORDS
from tools.weave.lessons import LANGUAGES

OLD = """\
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
tab.interact_select(["pytorch", 'jax'])
#required_libs("gym==0.21.0")
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
class A:
    if tab.selected("mxnet", 'jax'):
        def f(self):
            self.a = 1

        if tab.selected('jax'):
            self.b = 2

    if tab.selected('pytorch') or tab.selected('mxnet'):
        d = 4
```
"""


FOR_JAX = """\
class A:
    def f(self):
        self.a = 1

        self.b = 2"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    chapter = tmp_path / "chapter_toys"
    chapter.mkdir()
    (chapter / "old.md").write_text(OLD)
    (chapter / "new.md").write_text(NEW)
    (chapter / "old_origin.md").write_text(OLD)
    (chapter / "words.md").write_text("# Words\n\n```{.python .input}\n#@tab all\n1 + 1\n```\n")
    return tmp_path


# Which code is run


def test_pages_that_use_d2l_are_run_with_the_cells_of_each_framework(book: Path) -> None:
    found = {}
    for page, framework in pairs(book, ["pytorch", "jax", "mxnet", "gym"]):
        sources = [cell.source.strip() for cell in page.cells(framework)]
        found[page.name, framework] = sources
    assert found == {
        ("toys/new", "pytorch"): ["d2l.second = 'of PyTorch alone'", "class A:\n    d = 4"],
        ("toys/new", "jax"): ["d2l.first = 'jax'", FOR_JAX],
        ("toys/old", "pytorch"): ["from d2l import torch as d2l", "d2l.one = 1"],
        ("toys/old", "mxnet"): ["from d2l import mxnet as d2l", "d2l.one = 1"],
    }


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("num_epochs = 500", "num_epochs = 3"),
        ("num_epochs = 2", "num_epochs = 2"),
        ("lr, num_epochs, f = 0.5, 500, g(1, 500)", "lr, num_epochs, f = 0.5, 3, g(1, 500)"),
        ("t = Trainer(max_epochs=10, lr=10)  # 十", "t = Trainer(max_epochs=3, lr=10)  # 十"),
        ("def f(x, num_epochs=400): pass", "def f(x, num_epochs=3): pass"),
        ("s = '中'; num_epochs = 500; n = 500", "s = '中'; num_epochs = 3; n = 500"),
        ("no Python, num_epochs = 500", "no Python, num_epochs = 500"),
        ("%time x\nnum_epochs = 500", "get_ipython().run_line_magic('time', 'x')\nnum_epochs = 3"),
    ],
)
def test_training_ends_after_a_few_epochs(source: str, short: str) -> None:
    assert with_fewer(source, 3).rstrip("\n") == short


# A page in its kernel


def write(folder: Path, *cells: str) -> Page:
    path = folder / "chapter_toys" / "page.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"```{{.python .input}}\n#@tab all\n{cell}\n```\n" for cell in cells))
    path.write_text(path.read_text() + "```{.python .input}\n#@tab jax\nd2l = 1\n```\n")
    return Page(path)


DATA = """\
import os
from pathlib import Path
from d2l_compat import common as d2l
from PIL import Image

assert len(Path(d2l.download("airfoil")).read_text().splitlines()) == 1503
own, other = Image.open("../img/own.png"), Image.open('../img/other.jpg')
assert (own.size, own.getpixel((0, 0))) == ((3, 2), (7, 7, 7))
assert (other.format, other.size) == ("JPEG", (364, 281))
assert sorted(os.listdir("../img")) == ["other.jpg", "own.png"]
own.putpixel((0, 0), (9, 9, 9))
own.save("../img/own.png")"""
# In 0.17, for which the Chinese edition was written, frequent words come first.
ORDER = "assert d2l.Vocab([*'abb']).to_tokens([1, 2]) == {}"


@pytest.mark.parametrize(
    ("language", "order"),
    [("en", "ab"), pytest.param("zh", "ba", marks=pytest.mark.release)],
)
def test_a_page_is_run_with_small_data_and_pictures_to_its_end(
    tmp_path: Path, language: str, order: str
) -> None:
    (tmp_path / "config.ini").write_text(f"[project]\nlang = {language}\n")
    (tmp_path / "img").mkdir()
    own = np.full((2, 3, 3), 7, np.uint8)
    Image.fromarray(own).save(tmp_path / "img" / "own.png")
    outcome = run(write(tmp_path, DATA, ORDER.format([*order])), "jax", 600)
    assert outcome.error == ""
    assert (outcome.passed, outcome.cells, outcome.ran) == (3, 3, True)
    assert np.array_equal(np.array(Image.open(tmp_path / "img" / "own.png")), own)


@pytest.mark.parametrize(
    ("cell", "error", "why"),
    [
        ("d2l.Vocab(['a']).to_tokens('a')", "TypeError: indices", "shim"),
        ("import os; os._exit(3)", "the kernel died", "framework"),
        pytest.param("1 / 0", "ZeroDivisionError: div", "page", marks=pytest.mark.release),
        pytest.param(
            "import time; time.sleep(6000)", "more than ", "time", marks=pytest.mark.release
        ),
        pytest.param(
            "import numpy as np; np.linalg.inv(np.zeros((2, 2)))",
            "LinAlgError: Singular",
            "framework",
            marks=pytest.mark.release,
        ),
    ],
)
def test_the_first_failure_is_told_with_its_line_and_its_cause(
    tmp_path: Path, cell: str, error: str, why: str
) -> None:
    page = write(tmp_path, "from d2l_compat import common as d2l", cell, "2 / 0")
    outcome = run(page, "jax", 20 if why == "time" else 600)
    assert outcome.error.startswith(error)
    assert (outcome.passed, outcome.cells, outcome.cause) == (1, 4, why)
    assert page.path.read_text().splitlines()[outcome.line] == cell


TRACE = "IndexError Traceback (most recent call last)\nCell In[1], line 2\n----> 2 {}\n"


@pytest.mark.parametrize(
    ("name", "words", "trace", "why"),
    [
        ("AttributeError", "train_ch8: d2l_compat.torch has no such name", "", "name"),
        ("ImportError", "gymnasium is needed, and it is not installed. Install it", "", "package"),
        ("ImportError", "Failed importing cv2. This likely means that some", "", "package"),
        ("ImportError", "cannot import name 'a' from 'b'", "", "page"),
        ("RuntimeError", "Found no NVIDIA driver on your system", "", "gpu"),
        ("URLError", "<urlopen error [Errno -3] Temporary failure in name>", "", "network"),
        # A page that takes one more GPU than there are needs one.
        ("IndexError", "list index out of range", TRACE.format("x = devices('gpu')[1]"), "gpu"),
        ("IndexError", "list index out of range", TRACE.format("x = y_shards[1]"), "gpu"),
        ("IndexError", "list index out of range", TRACE.format("x = others[0]"), "page"),
    ],
)
def test_what_an_error_says_may_tell_its_cause(name: str, words: str, trace: str, why: str) -> None:
    assert cause(name, words, trace) == why


# What came of the pages, kept for the docs

RAN = Result("en", "optimization/sgd", "pytorch", 5, 5)
FAILED = Result("en", "optimization/sgd", "jax", 5, 2, "framework", "TypeError: a | b")
ALSO = Result("en", "optimization/sgd", "tensorflow", 5, 3, "framework", "TypeError: a | b")
CHINESE = Result("zh", "linear-networks/a", "pytorch", 3, 1, "gpu", "no GPU")
TABLES = """\
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


def test_the_tables_count_the_pages_and_name_those_that_fail() -> None:
    assert tables([RAN, FAILED, ALSO, CHINESE], "en") == TABLES


def test_what_came_of_a_page_takes_the_place_of_what_there_was(tmp_path: Path) -> None:
    file = tmp_path / "book.jsonl"
    record([CHINESE, FAILED, RAN], file)
    assert read(file) == [FAILED, RAN, CHINESE]
    again = Result("en", "optimization/sgd", "jax", 5, 5)
    record([again], file)
    assert read(file) == [again, RAN, CHINESE]


def test_an_error_is_kept_without_the_places_of_the_machine_it_came_from() -> None:
    said = "FileNotFoundError: no '/tmp/book-1/data/fra.txt' or ../data/a.txt, see https://a.org/b"
    kept = result(Outcome("a/b", "jax", 2, 1, 1.0, said, 3, "page"), "en").error
    assert kept == "FileNotFoundError: no 'fra.txt' or ../data/a.txt, see https://a.org/b"


def test_all_that_came_of_pages_can_be_told_in_every_language() -> None:
    assert WORDS.keys() == LANGUAGES.keys()
    for words in WORDS.values():
        assert words.causes.keys() == CAUSES.keys()
        for each in read():
            assert each.edition in words.editions
            assert each.chapter in words.chapters
    assert {each.framework for each in read()} <= FACES.keys()
    for each in read():
        assert each.ran == (each.error == "") == (each.cause == ""), each.key


def test_make_book_says_what_came_of_the_pages_and_keeps_it_where_asked(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "book.jsonl"
    monkeypatch.setattr("tools.book.results.RESULTS", file)
    given = [str(book), "--framework", "jax", "--jobs", "1"]
    assert main([*given, "--record"]) == 0
    error = "NameError: name 'd2l' is not defined"
    assert read(file) == [Result("en", "toys/new", "jax", 2, 0, "page", error)]
    said = capsys.readouterr().out.splitlines()
    assert "| toys | 0 of 1 |" in said
    assert said[-2:] == ["0 of 1 run to the end.", f"1: {CAUSES['page']}"]
    with pytest.raises(SystemExit, match="nothing is left to run"):
        main([*given, "--record", "--rest"])


def test_a_folder_that_is_no_book_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no page there uses d2l; need a copy of D2L's repository"):
        main([str(tmp_path)])
    assert edition_of(tmp_path) == "en"
