"""Render the credit line. Every notebook, deck and page has it, because each may be shared by itself.

CC BY 4.0 requires everyone who shares the text to keep this line.
"""

from dataclasses import dataclass

from tools.weave.launch import FILES_ADDRESS, REPOSITORY
from tools.weave.prose import ORIGINAL


@dataclass(frozen=True)
class CreditText:
    notebook: str
    slides: str
    site: str
    credit: str  # {what} stands for one of the above


CREDIT_TEXTS = {
    "en": CreditText(
        notebook="This notebook is",
        slides="These slides are",
        site="This site is",
        credit=(
            f"{{what}} by [the d2l_compat authors]({REPOSITORY}). Text and drawings are under "
            "[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/), "
            f"the code is under the [MIT licence]({FILES_ADDRESS}/LICENSE)."
        ),
    ),
    "zh-TW": CreditText(
        notebook="這份筆記本",
        slides="這份投影片",
        site="本站",
        credit=(
            f"{{what}}由 [d2l_compat 作者群]({REPOSITORY})製作。文字與圖採用"
            "[創用 CC 姓名標示 4.0（CC BY 4.0）](https://creativecommons.org/licenses/by/4.0/deed.zh-hant)授權，"
            f"程式碼採用 [MIT 授權]({FILES_ADDRESS}/LICENSE)。"
        ),
    ),
}


def render_credit(language: str, what: str) -> str:
    """Return the credit line in Markdown; ``what`` is "notebook", "slides" or "site"."""
    text = CREDIT_TEXTS.get(language, CREDIT_TEXTS[ORIGINAL])
    return text.credit.format(what=getattr(text, what))
