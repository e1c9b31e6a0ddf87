"""Test the chapter: its lessons, their order, languages and frameworks."""

import pickle
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import write_chapter
from tools.__main__ import main
from tools.project.documents import NOTEBOOKS, render_launch_tables
from tools.weave.launch import COLAB
from tools.weave.lessons import (
    ROOT,
    LessonError,
    describe_missing_notebooks,
    list_lessons,
    list_notebooks,
)
from tools.weave.prose import find_original, read_title


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of two lessons; the second has only one language and one framework."""
    write_lesson(tmp_path, "zebra", ["en", "zh-TW"], ["djl.java", "jax.py", "pytorch.py"])
    write_lesson(tmp_path, "ant", ["zh-TW"], ["jax.py"])
    write_chapter(tmp_path, "zebra", "ant")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_lesson(root: Path, name: str, languages: list[str], codes: list[str]) -> None:
    folder = root / "lessons" / name
    folder.mkdir(parents=True)
    for language in languages:
        (folder / f"text.{language}.md").write_text(f"# {name} <{language}>\n\n<<one>>\n")
    for code in codes:
        (folder / f"code.{code}").write_text("# %% one\n1\n")


def read_error(root: Path) -> str:
    with pytest.raises(LessonError) as caught:
        list(list_notebooks(root=root))
    return str(caught.value)


def test_error_message_survives_pickling():
    error = LessonError("no such cell", ROOT / "lessons" / "zebra" / "text.en.md", 7)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_pages_are_ordered_as_in_chapter_and_frameworks(root: Path):
    assert [*map(str, list_notebooks(root=root))] == [
        *(f"{tag}/{framework}/zebra" for tag in ("en", "zh-TW") for framework in FRAMEWORKS),
        "zh-TW/jax/ant",
    ]
    write_chapter(root, "ant", "zebra")
    assert next(list_notebooks(root=root)).lesson.name == "ant"


FRAMEWORKS = ["pytorch", "jax", "djl"]


def test_page_without_file_is_skipped_and_reported(root: Path, capsys):
    assert (
        describe_missing_notebooks(root=root) == "There is no notebook of ant in en, pytorch, djl."
    )
    assert describe_missing_notebooks(["zh-TW"], ["jax"], root) == ""
    (root / "lessons" / "zebra" / "code.djl.java").unlink()
    assert [*list_notebooks(None, ["pytorch"], root)] == [
        notebook for notebook in list_notebooks(root=root) if notebook.framework == "pytorch"
    ]
    (root / "lessons" / "zebra" / "text.zh-TW.md").unlink()
    main(["--root", str(root), "--framework", "pytorch"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "There is no notebook of zebra in zh-TW; of ant in en, pytorch."


def test_unlisted_lesson_folder_is_error(root: Path):
    write_lesson(root, "_live", ["en"], ["jax.py"])
    write_lesson(root, ".hidden", ["en"], ["jax.py"])
    (root / "lessons" / "gone" / "__pycache__").mkdir(parents=True)
    assert len(list_lessons(root)) == 2
    write_lesson(root, "newt", ["en"], ["jax.py"])
    assert read_error(root) == "lessons/newt: a lesson that is not listed in chapter.toml"


@pytest.mark.parametrize(
    ("chapter", "message"),
    [
        ('lessons = [\n"zebra",\n"gnu",\n"ant"]', "3: no lesson 'gnu': there is no such folder"),
        ('lessons = [\n"zebra",\n"ant",\n"ant"]', "3: lesson 'ant' is listed twice"),
        ('lessons = ["zebra"', " cannot be read: Unclosed array"),
        ("order = []", ' need lessons = ["FOLDER", ...]'),
        ("lessons = [1]", ' need lessons = ["FOLDER", ...]'),
    ],
)
def test_error_in_chapter_file_is_reported(root: Path, chapter: str, message: str):
    (root / "lessons" / "chapter.toml").write_text(chapter)
    assert read_error(root).startswith(f"lessons/chapter.toml:{message}")


def test_chapter_file_may_have_byte_order_mark(root: Path):
    chapter = root / "lessons" / "chapter.toml"
    chapter.write_bytes(b"\xef\xbb\xbf" + chapter.read_bytes())
    assert len(list_lessons(root)) == 2


@pytest.mark.parametrize("name", ["two words", "\u9b5a", "a.b", "a%20b", "(a)", "-a"], ids=ascii)
def test_name_unfit_for_links_is_rejected(root: Path, name: str):
    named = f"named {name!r}: need a name of a-z, A-Z, 0-9, - and _"
    write_lesson(root, "fox", [name], ["jax.py"])
    write_chapter(root, "zebra", "ant", "fox")
    # In a file name, a full stop ends the language or the framework.
    if "." not in name:
        assert read_error(root) == f"lessons: a language {named}"
        (root / "lessons" / "fox" / f"text.{name}.md").rename(root / "lessons/fox/text.en.md")
        (root / "lessons" / "fox" / f"code.{name}.py").touch()
        assert read_error(root) == f"lessons: a framework {named}"
    shutil.rmtree(root / "lessons" / "fox")
    write_lesson(root, name, ["en"], ["jax.py"])
    write_chapter(root, "zebra", "ant", name)
    assert read_error(root) == f"lessons: a lesson {named}"


def test_missing_chapter_file_is_reported(root: Path):
    (root / "lessons" / "chapter.toml").unlink()
    assert read_error(root) == "lessons/chapter.toml: cannot be read: No such file or directory"


def test_title_is_first_heading_outside_slides(root: Path):
    text = root / "lessons" / "ant" / "text.zh-TW.md"
    text.write_text(":::{slide}\n# Slide\n:::\n\n## Part\n\n# Ants\n\n# More\n")
    assert read_title(text) == "Ants"
    assert find_original(text.parent) == text
    text.write_text("## Part\n")
    with pytest.raises(LessonError, match="no title"):
        read_title(text)


# The list of notebooks


def test_notebook_list_has_table_for_each_lesson(root: Path):
    tables = render_launch_tables(list(list_notebooks(root=root)))
    zebra, ant = tables.removeprefix("## ").split("\n\n## ")
    assert zebra.startswith("zebra &lt;en&gt;\n\n|  | English | 繁體中文 |\n")
    assert ant.startswith("ant &lt;zh-TW&gt;\n\n|  | 繁體中文 |\n")
    for table, languages, frameworks in ((zebra, 2, FRAMEWORKS), (ant, 1, ["jax"])):
        rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
        assert len(rows) == len(frameworks)
        links = [re.findall(r"\[(Notebook|筆記本)\]", row) for row in rows]
        assert links == [["Notebook", "筆記本"][-languages:]] * len(rows)
    assert tables.count(f"[{COLAB.name}]") == 2 * 2 + 1  # DJL has none


# The lessons of this project


@pytest.mark.parametrize("lesson", list_lessons(), ids=lambda lesson: lesson.name)
def test_lesson_has_claims_numbers_and_faults(lesson: Path):
    assert (lesson / "claims.py").exists()
    assert (lesson / "numbers.toml").exists()
    assert (lesson / "faults.toml").exists()


def test_lesson_files_do_not_shadow_python_modules():
    """Test file names, since a code file that runs on its own imports modules in its folder first."""
    files = (ROOT / "lessons").glob("*/*.py")
    assert {file.stem for file in files}.isdisjoint(sys.stdlib_module_names)


def test_notebook_list_is_complete():
    listed = NOTEBOOKS.read_text(encoding="utf-8")
    paths = (notebook.path.relative_to(NOTEBOOKS.parent) for notebook in list_notebooks())
    assert all(f"]({path})" in listed for path in paths)
