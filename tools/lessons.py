"""Where things are: lessons, their texts and code files, and the notebooks woven from them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

LANGUAGES = {"en": "English", "zh-TW": "繁體中文"}


class LessonError(Exception):
    """A fault in a lesson; its text begins with the file, and the line where there is one."""

    def __init__(self, message: str, file: Path, line: int | None = None) -> None:
        place = display(file) if line is None else f"{display(file)}:{line}"
        super().__init__(f"{place}: {message}")


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


def editions(
    languages: list[str] | None = None,
    frameworks: list[str] | None = None,
    root: Path = ROOT,
) -> Iterator[Edition]:
    """Every edition, or those in the languages and frameworks asked for.

    Raises LessonError for a language or framework that no lesson has.
    """
    lessons = root / "lessons"
    folders = sorted({text.parent for text in lessons.glob("*/text.*.md")})
    if not folders:
        raise LessonError("no lesson here: need LESSON/text.LANGUAGE.md", lessons)
    languages = choose("language", languages, lessons.glob("*/text.*.*"), lessons)
    frameworks = choose("framework", frameworks, lessons.glob("*/code.*.*"), lessons)
    for folder in folders:
        for language in languages:
            for framework in frameworks:
                yield Edition(folder, language, framework)


def display(path: Path) -> str:
    """A path as short as it can be said from where one stands."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def choose(
    what: str, asked: list[str] | None, files: Iterable[Path], place: Path, line: int | None = None
) -> list[str]:
    """The names asked for, or all there are: those in the middle of the names of ``files``.

    Raises LessonError, at ``place``, for a name that no file has.
    """
    there_are = sorted({file.name.split(".")[1] for file in files})
    for name in asked or []:
        if name not in there_are:
            fault = f"no {what} {name!r}; there are: {', '.join(there_are)}"
            raise LessonError(fault, place, line)
    return list(dict.fromkeys(asked or there_are))
