"""Shrink the HTML of lessons, in which every cell in every framework repeats the same markup, and its style sheet."""

import re
from pathlib import Path

# The nested boxes that Sphinx puts around a cell's code or output.
BOX = re.compile(
    r'<div class="(output )?[^"]*\bhighlight-(?:page|myst)-\w+ notranslate">'
    r'<div class="highlight"><pre><span></span>(.*?)</pre></div>\n</div>',
    re.DOTALL,
)
TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
# <b> is the shortest element that has no meaning for screen readers.
SHORT_TOKEN = r"<b class=\1>\2</b>"
# Attributes of tabs that are not needed: no script refers to these ids, and site.js adds the group.
NEEDLESS = re.compile(
    r' (?:aria-controls|id)="sd-tab-item-\d+-content"| data-sync-group="framework"'
    r"|(?<=sd-tab-content) docutils"
)
# Attributes of tabs and images; HTML, unlike the MathML in it, needs no quotes around such values.
QUOTED = re.compile(r' (class(?=="sd-)|data-sync-id|for|loading)="([\w-]+)"(?=[ >])')


def shrink_html(html: str) -> str:
    """Return a page of fewer bytes that looks and behaves the same."""
    html = BOX.sub(_shrink_box, NEEDLESS.sub("", html))
    html = html.replace('"sd-tab-item-', '"tab-').replace('"sd-tab-set-', '"tabs-')
    return QUOTED.sub(r" \1=\2", html)


def _shrink_box(box: re.Match[str]) -> str:
    is_output, code = box.groups()
    classes = '"output highlight"' if is_output else "highlight"
    return f"<div class={classes}><pre>{TOKEN.sub(SHORT_TOKEN, code)}</pre></div>"


def shrink_css(file: Path) -> None:
    """Strip a style sheet's comments: Pygments writes one for each kind of token."""
    css = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r" */\*.*?\*/", "", css, flags=re.DOTALL), encoding="utf-8")
