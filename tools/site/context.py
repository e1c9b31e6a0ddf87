"""What every page is told: its counterparts in other languages, what to load, and when."""

import re
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from sphinx.application import Sphinx
from sphinx.locale import get_translation

from d2l_compat.frameworks import FRAMEWORKS
from tools.site import preview
from tools.site.lean import lean
from tools.site.words import WORDS
from tools.weave.credit import credit
from tools.weave.launch import SITE_ADDRESS
from tools.weave.lessons import LANGUAGES, ROOT, frameworks_of, languages_of, lessons
from tools.weave.prose import title

IMAGE = re.compile(r'<img (?P<rest>[^>]*?src="(?P<file>[^"]+)")')
SIZE = re.compile(
    r'<svg[^>]*?\bwidth="(?P<w>[\d.]+)(?P<unit>pt|px)?"[^>]*?\bheight="(?P<h>[\d.]+)(?:pt|px)?"'
)
# What Furo labels without asking for a translation.
LABEL = re.compile(r'Toggle navigation of |(?<= aria-label=")[^"]+|(?<=<title>)[^<]+')
translated = get_translation("sphinx")
# Of 100 kilobytes, a page would use one, which is in site.css.
UNUSED = ("sphinx-design", "mystnb", "graphviz")


def _context(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    here = app.config.language.replace("_", "-")
    root = context["content_root"]
    context["language_tag"] = here
    context["words"] = WORDS[here]
    pages = {tag: f"{tag}/{_counterpart(app, pagename, tag)}.html" for tag in LANGUAGES}
    context["languages"] = [
        (name, tag, f"{root}../{pages[tag]}") for tag, name in LANGUAGES.items()
    ]
    context["page_address"] = f"{SITE_ADDRESS}{here}/{pagename}.html"
    context["preview"] = f"{SITE_ADDRESS}{preview.FILE.name}"
    context["translations"] = [
        (tag, SITE_ADDRESS + page)
        for tag, page in pages.items()
        if page == f"{tag}/{pagename}.html"
    ]
    context["bar"] = _bar(pagename, here)
    context["with_labels"] = lambda html: _with_labels(html, WORDS[here].pages)
    context["credit"] = MarkdownIt().renderInline(credit(here, "site"))
    context["description"] = _description(pagename, here)
    context["body"] = lean(IMAGE.sub(lambda image: _with_size(app, image), context.get("body", "")))
    context["css_files"] = [
        css for css in context["css_files"] if not any(name in str(css) for name in UNUSED)
    ]


def _bar(pagename: str, language: str) -> dict[str, Any]:
    """Of a lesson: its frameworks, and the lessons before and after it in its language, if any."""
    folder = ROOT / "lessons" / pagename
    chapter = [each for each in lessons() if language in languages_of(each)]
    if folder not in chapter:
        return {}
    around = [None, *chapter, None]
    place = around.index(folder)
    return {
        "frameworks": [(name, FRAMEWORKS[name].title) for name in frameworks_of(folder)],
        "previous": _lesson(around[place - 1], language),
        "next": _lesson(around[place + 1], language),
    }


def _lesson(folder: Path | None, language: str) -> dict[str, str] | None:
    """What leads to a lesson, from the page of another."""
    if folder is None:
        return None
    return {"link": f"{folder.name}.html", "title": title(folder / f"text.{language}.md")}


def _description(pagename: str, language: str) -> str:
    """Of a lesson's page, or of any other."""
    words, folder = WORDS[language], ROOT / "lessons" / pagename
    is_a_lesson = folder in lessons()
    about = title(folder / f"text.{language}.md") if is_a_lesson else words.chapter
    frameworks = frameworks_of(*([folder] if is_a_lesson else lessons()))
    names = words.joined([FRAMEWORKS[name].title for name in frameworks])
    return words.description.format(title=about, frameworks=names)


def _with_labels(html: str, pages: str) -> str:
    """What Furo leaves without a name, or in English."""
    for aside, name in (("sidebar-drawer", pages), ("toc-drawer", translated("On this page"))):
        html = html.replace(
            f'<aside class="{aside}"', f'<aside class="{aside}" aria-label="{name}"'
        )
    return LABEL.sub(lambda label: str(translated(label[0])), html)


def _with_size(app: Sphinx, image: re.Match[str]) -> str:
    """Asked for when it is seen, as most tabs' never are; its place is kept until it comes."""
    name = image["file"].rpartition("/")[2]
    sources = [source for source, copy in app.builder.images.items() if copy == name]
    is_drawn = name.endswith(".svg") and sources
    svg = Path(app.srcdir, sources[0]).read_text(encoding="utf-8") if is_drawn else ""
    size = ""
    if found := SIZE.search(svg):
        pixels = 4 / 3 if found["unit"] == "pt" else 1
        size = (
            f'width="{float(found["w"]) * pixels:.0f}" height="{float(found["h"]) * pixels:.0f}" '
        )
    return f'<img loading="lazy" {size}{image["rest"]}'


def _counterpart(app: Sphinx, pagename: str, tag: str) -> str:
    """The page's name in another language; that of the first page where there is none."""
    sources = Path(app.srcdir).parent / tag
    source = "reference" if pagename.startswith("reference/") else pagename  # all of it, or none
    is_there = any((sources / f"{source}{suffix}").exists() for suffix in (".md", ".ipynb"))
    return pagename if is_there or pagename == "search" else "index"


def setup(app: Sphinx) -> None:
    # Late: after all others have added their style sheets.
    app.connect("html-page-context", _context, priority=900)
