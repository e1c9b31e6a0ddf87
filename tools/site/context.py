"""Add the bar, links to other languages and previews to the context of every page, and shrink its HTML."""

import re
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from sphinx.application import Sphinx
from sphinx.locale import get_translation

from d2l_compat.frameworks import FRAMEWORKS
from tools.site import preview
from tools.site.lean import shrink_html
from tools.site.words import SITE_TEXT
from tools.weave.credit import render_credit
from tools.weave.launch import SITE_ADDRESS
from tools.weave.lessons import LANGUAGES, ROOT, find_frameworks, find_languages, list_lessons
from tools.weave.prose import read_title

IMAGE = re.compile(r'<img (?P<rest>[^>]*?src="(?P<file>[^"]+)")')
SIZE = re.compile(
    r'<svg[^>]*?\bwidth="(?P<w>[\d.]+)(?P<unit>pt|px)?"[^>]*?\bheight="(?P<h>[\d.]+)(?:pt|px)?"'
)
# Labels that Furo does not translate.
LABEL = re.compile(r'Toggle navigation of |(?<= aria-label=")[^"]+|(?<=<title>)[^<]+')
translate = get_translation("sphinx")
# Style sheets of 100 kilobytes, of which pages need only one kilobyte; site.css contains that part.
UNUSED_CSS = ("sphinx-design", "mystnb", "graphviz")


def _extend_context(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Handle Sphinx's event html-page-context."""
    language = app.config.language.replace("_", "-")
    root = context["content_root"]
    context["language_tag"] = language
    context["site_text"] = SITE_TEXT[language]
    pages = {tag: f"{tag}/{_find_counterpart(app, pagename, tag)}.html" for tag in LANGUAGES}
    context["languages"] = [
        (name, tag, f"{root}../{pages[tag]}") for tag, name in LANGUAGES.items()
    ]
    context["page_address"] = f"{SITE_ADDRESS}{language}/{pagename}.html"
    context["preview"] = f"{SITE_ADDRESS}{preview.FILE.name}"
    context["translations"] = [
        (tag, SITE_ADDRESS + page)
        for tag, page in pages.items()
        if page == f"{tag}/{pagename}.html"
    ]
    context["bar"] = _describe_bar(pagename, language)
    context["add_labels"] = lambda html: _add_labels(html, SITE_TEXT[language].pages)
    context["credit"] = MarkdownIt().renderInline(render_credit(language, "site"))
    context["description"] = _describe_page(pagename, language)
    body = IMAGE.sub(lambda image: _load_lazily(app, image), context.get("body", ""))
    context["body"] = shrink_html(body)
    context["css_files"] = [
        css for css in context["css_files"] if not any(name in str(css) for name in UNUSED_CSS)
    ]


def _describe_bar(pagename: str, language: str) -> dict[str, Any]:
    """Return a lesson's frameworks, and links to the lessons before and after it in its language."""
    folder = ROOT / "lessons" / pagename
    chapter = [each for each in list_lessons() if language in find_languages(each)]
    if folder not in chapter:
        return {}
    neighbours = [None, *chapter, None]
    position = neighbours.index(folder)
    return {
        "frameworks": [(name, FRAMEWORKS[name].title) for name in find_frameworks(folder)],
        "previous": _link_to_lesson(neighbours[position - 1], language),
        "next": _link_to_lesson(neighbours[position + 1], language),
    }


def _link_to_lesson(folder: Path | None, language: str) -> dict[str, str] | None:
    """Return the address and the title of a lesson, or None if there is no such neighbour."""
    if folder is None:
        return None
    return {"link": f"{folder.name}.html", "title": read_title(folder / f"text.{language}.md")}


def _describe_page(pagename: str, language: str) -> str:
    """Return the meta description: a lesson's for its page, and the chapter's for any other page."""
    text = SITE_TEXT[language]
    folder = ROOT / "lessons" / pagename
    is_lesson = folder in list_lessons()
    subject = read_title(folder / f"text.{language}.md") if is_lesson else text.chapter
    frameworks = find_frameworks(folder) if is_lesson else find_frameworks(*list_lessons())
    names = text.join_list([FRAMEWORKS[name].title for name in frameworks])
    return text.description.format(title=subject, frameworks=names)


def _add_labels(html: str, sidebar: str) -> str:
    """Label the landmarks that Furo leaves without a name, and translate its other labels."""
    for aside, label in (("sidebar-drawer", sidebar), ("toc-drawer", translate("On this page"))):
        html = html.replace(
            f'<aside class="{aside}"', f'<aside class="{aside}" aria-label="{label}"'
        )
    return LABEL.sub(lambda match: str(translate(match[0])), html)


def _load_lazily(app: Sphinx, image: re.Match[str]) -> str:
    """Delay an image's loading until it is visible (most tabs never are), and reserve its space if possible."""
    name = image["file"].rpartition("/")[2]
    sources = [source for source, copy in app.builder.images.items() if copy == name]
    is_svg = name.endswith(".svg") and sources
    svg = Path(app.srcdir, sources[0]).read_text(encoding="utf-8") if is_svg else ""
    size = ""
    if match := SIZE.search(svg):
        pixels = 4 / 3 if match["unit"] == "pt" else 1
        width, height = float(match["w"]) * pixels, float(match["h"]) * pixels
        size = f'width="{width:.0f}" height="{height:.0f}" '
    return f'<img loading="lazy" {size}{image["rest"]}'


def _find_counterpart(app: Sphinx, pagename: str, tag: str) -> str:
    """Return the name of a page's translation into another language, or of the front page if there is none."""
    sources = Path(app.srcdir).parent / tag
    # The reference is translated as a whole or not at all.
    source = "reference" if pagename.startswith("reference/") else pagename
    exists = any((sources / f"{source}{suffix}").exists() for suffix in (".md", ".ipynb"))
    return pagename if exists or pagename == "search" else "index"


def setup(app: Sphinx) -> None:
    # A late priority, so that all other extensions have added their style sheets.
    app.connect("html-page-context", _extend_context, priority=900)
