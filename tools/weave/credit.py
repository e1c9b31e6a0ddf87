"""Who made this and what may be done with it: said by every notebook, deck and page, as each may travel alone.

CC BY 4.0 asks whoever passes the text on to keep these words.
"""

from dataclasses import dataclass

from tools.weave.launch import FILES, REPOSITORY
from tools.weave.prose import ORIGINAL


@dataclass(frozen=True)
class Words:
    notebook: str
    slides: str
    site: str
    credit: str  # with a place for one of these


WORDS = {
    "en": Words(
        notebook="This notebook is",
        slides="These slides are",
        site="This site is",
        credit=(
            f"{{what}} by [the d2l_compat authors]({REPOSITORY}). Text and drawings are under "
            "[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/), "
            f"the code is under the [MIT licence]({FILES}/LICENSE)."
        ),
    ),
    "zh-TW": Words(
        notebook="這份筆記本",
        slides="這份投影片",
        site="本站",
        credit=(
            f"{{what}}由 [d2l_compat 作者群]({REPOSITORY})製作。文字與圖採用"
            "[創用 CC 姓名標示 4.0（CC BY 4.0）](https://creativecommons.org/licenses/by/4.0/deed.zh-hant)授權，"
            f"程式碼採用 [MIT 授權]({FILES}/LICENSE)。"
        ),
    ),
}


def credit(language: str, what: str) -> str:
    """Of what: a ``notebook``, ``slides`` or the ``site``. Markdown."""
    words = WORDS.get(language, WORDS[ORIGINAL])
    return words.credit.format(what=getattr(words, what))
