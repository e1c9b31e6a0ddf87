"""Where things are: lessons, their texts and code files, and the notebooks woven from them.

``lessons/chapter.toml`` lists the lessons in their order. An edition of one exists where its text and
its code file do.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]

LANGUAGES = {"en": "English", "zh-TW": "繁體中文"}

# What stands in paths and links as it is.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class LessonError(Exception):
    """A fault in a lesson; its text begins with the file, and the line where there is one."""

    def __init__(self, message: str, file: Path, line: int | None = None) -> None:
        super().__init__(message, file, line)  # whole: it may cross from a process to another

    def __str__(self) -> str:
        message, file, line = self.args
        place = display(file) if line is None else f"{display(file)}:{line}"
        return f"{place}: {message}"


@dataclass(frozen=True)
class Edition:
    """One lesson in one language and one framework: what becomes one notebook."""

    folder: Path
    language: str
    framework: str

    @property
    def text(self) -> Path:
        return self.folder / f"text.{self.language}.md"

    @property
    def code(self) -> Path:
        """The code file; its extension says which programming language it is in."""
        found = sorted(self.folder.glob(f"code.{self.framework}.*"))
        return found[0] if found else self.folder / f"code.{self.framework}.py"

    @property
    def exists(self) -> bool:
        return self.text.exists() and self.code.exists()

    @property
    def notebook(self) -> Path:
        notebooks = self.folder.parent.parent / "notebooks"
        return notebooks / self.language / self.framework / f"{self.folder.name}.ipynb"

    def __str__(self) -> str:
        return f"{self.language}/{self.framework}/{self.folder.name}"


@dataclass(frozen=True)
class Page:
    """One lesson in one framework, in each of its languages: what is executed together."""

    editions: tuple[Edition, ...]

    def __str__(self) -> str:
        first = self.editions[0]
        return f"{first.framework}/{first.folder.name}"


def pages(chosen: Iterable[Edition]) -> list[Page]:
    """The editions, those of a page together."""
    together: dict[Path, list[Edition]] = {}
    for edition in chosen:
        together.setdefault(edition.code, []).append(edition)
    return [Page(tuple(editions)) for editions in together.values()]


def lessons(root: Path = ROOT) -> list[Path]:
    """The lessons' folders, in the chapter's order.

    Raises LessonError where lessons/chapter.toml and the folders beside it do not agree.
    """
    chapter, text = _read_chapter(root)
    listed = tomllib.loads(text).get("lessons")
    if not (isinstance(listed, list) and all(isinstance(name, str) for name in listed)):
        raise LessonError('need lessons = ["FOLDER", ...]', chapter)
    # A folder without a file is what Python leaves behind of a lesson that is gone.
    files = [file for file in chapter.parent.glob("[!._]*/*") if file.is_file()]
    folders = {file.parent.name: file.parent for file in files}
    lines = text.splitlines()
    for place, name in enumerate(listed):
        line = next((n for n, words in enumerate(lines, 1) if f'"{name}"' in words), None)
        if name not in folders:
            raise LessonError(f"no lesson {name!r}: there is no such folder", chapter, line)
        if name in listed[:place]:
            raise LessonError(f"lesson {name!r} is listed twice", chapter, line)
    for name in sorted(folders.keys() - {*listed}):
        raise LessonError(f"a lesson that is not listed in {chapter.name}", folders[name])
    return [folders[name] for name in listed]


def proof(root: Path = ROOT) -> str:
    """Return the name of the lesson that is executed once on each machine, or "". Raise LessonError."""
    return tomllib.loads(_read_chapter(root)[1]).get("proof", "")


def _read_chapter(root: Path) -> tuple[Path, str]:
    """Return the chapter's file and its text, which is TOML. Raise LessonError."""
    chapter = root / "lessons" / "chapter.toml"
    try:
        text = chapter.read_text(encoding="utf-8-sig")
        tomllib.loads(text)
    except OSError as error:
        raise LessonError(f"cannot be read: {error.strerror}", chapter) from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise LessonError(f"cannot be read: {error}", chapter) from None
    return chapter, text


def editions(
    languages: list[str] | None = None,
    frameworks: list[str] | None = None,
    root: Path = ROOT,
    names: list[str] | None = None,
) -> Iterator[Edition]:
    """Every edition there is, or those in the languages, frameworks and lessons asked for.

    Lessons come in the chapter's order, languages and frameworks in that of their tables. Raises
    LessonError for a language, framework or lesson that there is not, and for a name that no link can hold.
    """
    chosen = choose("lesson", names, [folder.name for folder in lessons(root)], root / "lessons")
    for edition in _asked_for(languages, frameworks, root):
        if edition.exists and edition.folder.name in chosen:
            yield edition


def left_out(
    languages: list[str] | None = None,
    frameworks: list[str] | None = None,
    root: Path = ROOT,
) -> str:
    """A line that names the editions that there are not, among those asked for; or nothing."""
    lacking: dict[str, dict[str, None]] = {}
    for edition in _asked_for(languages, frameworks, root):
        names = lacking.setdefault(edition.folder.name, {})
        if not edition.text.exists():
            names[edition.language] = None
        if not edition.code.exists():
            names[edition.framework] = None
    said = [f"{lesson} in {', '.join(names)}" for lesson, names in lacking.items() if names]
    return f"There is no edition of {'; of '.join(said)}." if said else ""


def _asked_for(
    languages: list[str] | None, frameworks: list[str] | None, root: Path
) -> Iterator[Edition]:
    """Also those that there are not. Raises LessonError."""
    folders = lessons(root)
    written = languages_of(*folders)
    programmed = frameworks_of(*folders)
    if not (written and programmed):
        fault = "no lesson here: need LESSON/text.LANGUAGE.md and LESSON/code.FRAMEWORK.py"
        raise LessonError(fault, root / "lessons")
    named = ("lesson", [folder.name for folder in folders]), ("language", written)
    for what, names in (*named, ("framework", programmed)):
        for name in names:
            if not NAME.fullmatch(name):
                fault = f"a {what} named {name!r}: need a name of a-z, A-Z, 0-9, - and _"
                raise LessonError(fault, root / "lessons")
    languages = choose("language", languages, written, root / "lessons")
    frameworks = choose("framework", frameworks, programmed, root / "lessons")
    for folder in folders:
        for language in languages:
            for framework in frameworks:
                yield Edition(folder, language, framework)


def languages_of(*folders: Path) -> list[str]:
    """Those of the lessons' texts."""
    return _named("text.*.md", folders, LANGUAGES)


def frameworks_of(*folders: Path) -> list[str]:
    """Those of the lessons' code files."""
    return _named("code.*.*", folders, FRAMEWORKS)


def _named(pattern: str, folders: tuple[Path, ...], known: Iterable[str]) -> list[str]:
    """What stands in the middle of the files' names: the known ones in their order, then others."""
    found = {file.name.split(".")[1] for folder in folders for file in folder.glob(pattern)}
    return [*(name for name in known if name in found), *sorted(found - {*known})]


def display(path: Path) -> str:
    """A path as short as it can be said from where one stands."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def choose(
    what: str, asked: list[str] | None, known: list[str], place: Path, line: int | None = None
) -> list[str]:
    """The names asked for, or all that are known.

    Raises LessonError, at ``place``, for a name that is not.
    """
    for name in asked or []:
        if name not in known:
            raise LessonError(f"no {what} {name!r}; there are: {', '.join(known)}", place, line)
    return list(dict.fromkeys(asked or known))
