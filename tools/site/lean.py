"""Lean markup: what a lesson's page has for each of its cells, seven times, is said in few letters."""

import re

# A cell's code or output, of which Sphinx makes boxes within boxes.
BOX = re.compile(
    r'<div class="(output )?[^"]*\bhighlight-(?:page|myst)-\w+ notranslate">'
    r'<div class="highlight"><pre><span></span>(.*?)</pre></div>\n</div>',
    re.DOTALL,
)
# HTML's own element for a key word, which means no more than the text around it.
MARK = re.compile(r'<span class="(\w+)">([^<]*)</span>'), r"<b class=\1>\2</b>"
# No one asks for the name of what a label shows; site.js gives all labels the one group that there is.
TAB = re.compile(
    r' (?:aria-controls|id)="sd-tab-item-\d+-content"| data-sync-group="framework"'
    r"|(?<=sd-tab-content) docutils"
)


def lean(html: str) -> str:
    html = BOX.sub(_box, TAB.sub("", html))
    return html.replace('"sd-tab-item-', '"tab-').replace('"sd-tab-set-', '"tabs-')


def _box(box: re.Match[str]) -> str:
    kind, code = box.groups()
    mark, sparing = MARK
    classes = '"output highlight"' if kind else "highlight"
    return f"<div class={classes}><pre>{mark.sub(sparing, code)}</pre></div>"
