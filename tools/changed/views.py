"""What of a file a check looks at, where that is not all of it."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


def code(notebook: Path) -> bytes:
    """All of it but its prose."""
    return json.dumps(_code_of(notebook), sort_keys=True).encode()


def program(notebook: Path) -> str:
    """Its cells of code, one below the other."""
    return "\n".join("".join(cell["source"]) for cell in _code_of(notebook)["cells"])


def _code_of(notebook: Path) -> dict[str, Any]:
    """A notebook without its prose; what is no notebook, as one cell."""
    text = notebook.read_text(encoding="utf-8", errors="replace")
    try:
        found = json.loads(text)
        cells = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
        return found | {"cells": cells}
    except (ValueError, LookupError, TypeError):
        return {"cells": [{"source": text}]}


def markup(page: Path) -> bytes:
    """All of a page of the site but the words of its paragraphs."""
    parser = _Markup()
    parser.feed(page.read_text(encoding="utf-8", errors="replace"))
    parser.close()
    return "".join(parser.kept).encode()


class _Markup(HTMLParser):
    RUNNING_TEXT = frozenset({"p", "li", "em", "strong"})
    NEVER_CLOSED = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self.within = [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kept.append(self.get_starttag_text() or tag)
        if tag not in self.NEVER_CLOSED:
            self.within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.kept.append(f"</{tag}>")
        if tag in self.within:
            while self.within.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.within[-1] not in self.RUNNING_TEXT:
            self.kept.append(data)


def tables(text: Path) -> bytes:
    """The tables of a text in Markdown."""
    lines = text.read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if line.startswith(b"|"))


VIEWS = {"code": code, "markup": markup, "tables": tables, "text": Path.read_bytes}
