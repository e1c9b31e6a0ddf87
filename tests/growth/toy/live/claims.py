"""The claims of the lesson's live figure."""

from pathlib import Path

import pytest

from tests.site.browser import Open
from tools.weave.lessons import find_languages

LESSON = Path(__file__).parent.parent


@pytest.mark.parametrize("language", find_languages(LESSON))
def test_the_figure_doubles_and_has_this_lessons_words(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON.name}.html")
    state = page.locator('[data-live="double"]').evaluate(
        "root => { root.live.set({ n: 4 }); return root.live.state(); }"
    )
    assert state == {"n": 4, "double": 8, "lesson": "@TITLE@"}
