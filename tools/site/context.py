"""What every page is told: its counterparts in other languages, what to load, and when."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tools.lessons import LANGUAGES
from tools.site.words import WORDS

# Of 100 kilobytes, a page would use one, which is in site.css.
UNUSED = ("sphinx-design", "mystnb")


def _context(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    here = app.config.language.replace("_", "-")
    root = context["content_root"]
    context["language_tag"] = here
    context["languages_label"] = WORDS[here]["languages"]
    context["languages"] = [
        (name, tag, f"{root}../{tag}/{_counterpart(app, pagename, tag)}.html")
        for tag, name in LANGUAGES.items()
    ]
    context["description"] = WORDS[here]["description"]
    # A figure in a tab that is never opened is never asked for.
    context["body"] = context.get("body", "").replace("<img ", '<img loading="lazy" ')
    context["css_files"] = [
        css for css in context["css_files"] if not any(name in str(css) for name in UNUSED)
    ]


def _counterpart(app: Sphinx, pagename: str, tag: str) -> str:
    """The page's name in another language; that of the first page where there is none."""
    sources = Path(app.srcdir).parent / tag
    is_there = any((sources / f"{pagename}{suffix}").exists() for suffix in (".md", ".ipynb"))
    return pagename if is_there or pagename == "search" else "index"


def setup(app: Sphinx) -> None:
    # Late: after all others have added their style sheets.
    app.connect("html-page-context", _context, priority=900)
