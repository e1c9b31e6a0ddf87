"""Find the lessons, their texts and programs, and the notebooks woven from them.

``lessons/chapter.toml`` lists the lessons in order. A notebook exists if its text and its code file exist.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]

LANGUAGES = {"en": "English", "zh-TW": "繁體中文"}

# A name that needs no escaping in a path or a link.
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class LessonError(Exception):
    """An error in a lesson; its message begins with the file and, if known, the line."""

    def __init__(self, message: str, file: Path, line: int | None = None) -> None:
        super().__init__(message, file, line)  # all arguments, so that it can be pickled

    def __str__(self) -> str:
        message, file, line = self.args
        location = shorten_path(file) if line is None else f"{shorten_path(file)}:{line}"
        return f"{location}: {message}"


@dataclass(frozen=True)
class Notebook:
    """A lesson in one language and one framework."""

    lesson: Path
    language: str
    framework: str

    @property
    def text(self) -> Path:
        return self.lesson / f"text.{self.language}.md"

    @property
    def code(self) -> Path:
        """The code file; its suffix determines the programming language."""
        files = sorted(self.lesson.glob(f"code.{self.framework}.*"))
        return files[0] if files else self.lesson / f"code.{self.framework}.py"

    @property
    def exists(self) -> bool:
        return self.text.exists() and self.code.exists()

    @property
    def path(self) -> Path:
        notebooks = self.lesson.parent.parent / "notebooks"
        return notebooks / self.language / self.framework / f"{self.lesson.name}.ipynb"

    def __str__(self) -> str:
        return f"{self.language}/{self.framework}/{self.lesson.name}"


@dataclass(frozen=True)
class Page:
    """A lesson in one framework: notebooks in several languages, executed together."""

    notebooks: tuple[Notebook, ...]

    def __str__(self) -> str:
        first = self.notebooks[0]
        return f"{first.framework}/{first.lesson.name}"


def group_by_page(notebooks: Iterable[Notebook]) -> list[Page]:
    """Return the pages of these notebooks."""
    by_code: dict[Path, list[Notebook]] = {}
    for notebook in notebooks:
        by_code.setdefault(notebook.code, []).append(notebook)
    return [Page(tuple(group)) for group in by_code.values()]


def list_lessons(root: Path = ROOT) -> list[Path]:
    """Return the lessons' folders, in the chapter's order.

    Raises LessonError if lessons/chapter.toml does not list exactly the folders beside it.
    """
    chapter, text = _read_chapter(root)
    names = tomllib.loads(text).get("lessons")
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise LessonError('need lessons = ["FOLDER", ...]', chapter)
    # A folder without files is not a lesson: when one is removed, Python's cache may leave its folders behind.
    files = [file for file in chapter.parent.glob("[!._]*/*") if file.is_file()]
    folders = {file.parent.name: file.parent for file in files}
    lines = text.splitlines()
    for index, name in enumerate(names):
        line = next((n for n, content in enumerate(lines, 1) if f'"{name}"' in content), None)
        if name not in folders:
            raise LessonError(f"no lesson {name!r}: there is no such folder", chapter, line)
        if name in names[:index]:
            raise LessonError(f"lesson {name!r} is listed twice", chapter, line)
    for name in sorted(folders.keys() - {*names}):
        raise LessonError(f"a lesson that is not listed in {chapter.name}", folders[name])
    return [folders[name] for name in names]


def read_proof_lesson(root: Path = ROOT) -> str:
    """Return the name of the lesson executed once on each machine, or "". Raise LessonError if it is invalid."""
    return tomllib.loads(_read_chapter(root)[1]).get("proof", "")


def _read_chapter(root: Path) -> tuple[Path, str]:
    """Return the chapter's file and its text. Raise LessonError if it is not valid TOML."""
    chapter = root / "lessons" / "chapter.toml"
    try:
        text = chapter.read_text(encoding="utf-8-sig")
        tomllib.loads(text)
    except OSError as error:
        raise LessonError(f"cannot be read: {error.strerror}", chapter) from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise LessonError(f"cannot be read: {error}", chapter) from None
    return chapter, text


def list_notebooks(
    languages: list[str] | None = None,
    frameworks: list[str] | None = None,
    root: Path = ROOT,
    names: list[str] | None = None,
) -> Iterator[Notebook]:
    """Yield every notebook that exists in the requested languages, frameworks and lessons (default: all).

    Lessons come in the chapter's order, languages and frameworks in the order of their tables; ``names`` are those of
    lessons. Raises LessonError for an unknown language, framework or lesson, and for a name that would need escaping
    in a link.
    """
    available = [lesson.name for lesson in list_lessons(root)]
    lesson_names = choose("lesson", names, available, root / "lessons")
    for notebook in _list_requested(languages, frameworks, root):
        if notebook.exists and notebook.lesson.name in lesson_names:
            yield notebook


def describe_missing_notebooks(
    languages: list[str] | None = None,
    frameworks: list[str] | None = None,
    root: Path = ROOT,
) -> str:
    """Return a line that names the requested notebooks that do not exist, or ""."""
    missing: dict[str, dict[str, None]] = {}
    for notebook in _list_requested(languages, frameworks, root):
        names = missing.setdefault(notebook.lesson.name, {})
        if not notebook.text.exists():
            names[notebook.language] = None
        if not notebook.code.exists():
            names[notebook.framework] = None
    parts = [f"{lesson} in {', '.join(names)}" for lesson, names in missing.items() if names]
    return f"There is no notebook of {'; of '.join(parts)}." if parts else ""


def _list_requested(
    languages: list[str] | None, frameworks: list[str] | None, root: Path
) -> Iterator[Notebook]:
    """Yield the requested notebooks, whether or not they exist. Raise LessonError for an invalid or unknown name."""
    lessons = list_lessons(root)
    available = {
        "lesson": [lesson.name for lesson in lessons],
        "language": find_languages(*lessons),
        "framework": find_frameworks(*lessons),
    }
    if not (available["language"] and available["framework"]):
        message = "no lesson here: need LESSON/text.LANGUAGE.md and LESSON/code.FRAMEWORK.py"
        raise LessonError(message, root / "lessons")
    for what, names in available.items():
        for name in names:
            if not SAFE_NAME.fullmatch(name):
                message = f"a {what} named {name!r}: need a name of a-z, A-Z, 0-9, - and _"
                raise LessonError(message, root / "lessons")
    languages = choose("language", languages, available["language"], root / "lessons")
    frameworks = choose("framework", frameworks, available["framework"], root / "lessons")
    for lesson in lessons:
        for language in languages:
            for framework in frameworks:
                yield Notebook(lesson, language, framework)


def find_languages(*lessons: Path) -> list[str]:
    """Return the languages of the lessons' texts."""
    return _find_names("text.*.md", lessons, LANGUAGES)


def find_frameworks(*lessons: Path) -> list[str]:
    """Return the frameworks of the lessons' code files."""
    return _find_names("code.*.*", lessons, FRAMEWORKS)


def _find_names(pattern: str, lessons: tuple[Path, ...], known: Iterable[str]) -> list[str]:
    """Return the middle part of the files' names: known names first, in their order, then the others."""
    names = {file.name.split(".")[1] for lesson in lessons for file in lesson.glob(pattern)}
    return [*(name for name in known if name in names), *sorted(names - {*known})]


def shorten_path(path: Path) -> str:
    """Return a path relative to the current folder, if it is within that folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def choose(
    what: str,
    requested: list[str] | None,
    available: list[str],
    file: Path,
    line: int | None = None,
) -> list[str]:
    """Return the requested names without duplicates, or all available names if none is requested.

    Raises LessonError, at ``file`` and ``line``, for an unknown name.
    """
    for name in requested or []:
        if name not in available:
            raise LessonError(f"no {what} {name!r}; there are: {', '.join(available)}", file, line)
    return list(dict.fromkeys(requested or available))
