"""A page in Chinese speaks Chinese: in what is read, and in what a screen reader says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from bs4.element import Comment, Doctype
from playwright.sync_api import expect

from tests.site.browser import Open
from tests.site.conftest import EDITIONS, FIRST, LESSON, PAGES, leave_to_release
from tools.site.slides import HERE, REVEAL, deck_path, in_words
from tools.weave.lessons import ROOT

ABOUT = [f"zh-TW/{page.stem}.html" for page in sorted(ROOT.glob("docs/zh-TW/*.md"))]
REFERENCE = [f"zh-TW/reference/d2l_compat/{name}/index.html" for name in ("torch", "java", ".")]
SEARCHES = [f"zh-TW/search.html?q={words}" for words in ("注意力", "大象")]
LESSONS = [page for page in PAGES if page.startswith("zh-TW/")]
DECKS = [deck_path(each) for each in EDITIONS if each.language == "zh-TW"]

# Not words of the page: programs, formulas, what names itself in its own language, titles of works.
NOT_WORDS = "script, style, pre, code, math, [lang=en], em, a[href^=http], dt.sig > :not(a)"
# A lesson's code cells with their outputs and figures; on slides the figures.
CELLS = ".sd-tab-set[id] .sd-tab-content, .slides img"
SAID = "alt", "aria-label", "aria-valuetext", "data-tooltip", "placeholder", "title"
NAMES = {
    "Binder",
    "Colab",
    "Esc",
    "Furo",
    "Java",
    "Kaggle",
    "SPACE",
    "Shift",
    "Alt",
    "cos",
    "sin",
    "softmax",
}
CHINESE = re.compile(r"[\u3400-\u9fff]")
WORD = re.compile(r"[A-Za-z][\w'-]+")
SENTENCE = re.compile(r"(?:[A-Za-z][a-z'-]*[ ,]+){3,}[a-z]+")
# The word in English beside the Chinese one, and the authors of a work.
TERM = re.compile(r"（[A-Za-z][^（）]{,40}）")
MODULE = re.compile(r"\bd2l_compat(?:\.\w+)+")
AUTHORS = re.compile(
    r"(?:[^\W\d_][\w -]*, (?:-?\w\. ?)+,? ?)+(?:et al\. )?\(\d{4}\)|[A-Z]\w+（\d{4}）"
)


def strings(html: str) -> Iterator[str]:
    """What a page has to read or to hear."""
    page = BeautifulSoup(html, "html.parser")
    for element in page.select(f"{NOT_WORDS}, {CELLS}"):
        element.extract()
    for citation in page.select("a.cites"):
        del citation["title"]  # the line of the reference, where it counts
    for text in page.find_all(string=True):
        if not isinstance(text, Comment | Doctype):
            yield " ".join(text.split())
    for element in page.find_all(True):
        yield from (str(element[name]) for name in SAID if element.get(name))
    yield from (str(meta["content"]) for meta in page.select("meta[name=description]"))


def english(html: str) -> set[str]:
    """Sentences anywhere, and whole strings of words that are not names."""
    found = set()
    for text in strings(html):
        text = MODULE.sub("", AUTHORS.sub("", TERM.sub("", text)))
        if CHINESE.search(text):
            found |= {sentence[0] for sentence in SENTENCE.finditer(text)}
        elif not all(map(is_a_name, WORD.findall(text))):
            found.add(text)
    return found


def is_a_name(word: str) -> bool:
    """PyTorch, float32, valid_lens, CNN."""
    return word in NAMES or not re.fullmatch(r"[A-Za-z]?[a-z'-]+", word)


@pytest.mark.parametrize(
    ("html", "left"),
    [
        ('<p>注意力</p><a href="x">Next</a>', {"Next"}),
        ('<button aria-label="Toggle the menu">選單</button>', {"Toggle the menu"}),
        ("<p>請看這裡：this is a whole sentence。</p>", {"this is a whole sentence"}),
        ("<p>PyTorch, float32</p><p>值（value）</p><p lang=en>English</p><pre>Next</pre>", set()),
        ("<p>Lin, Z., dos Santos, C. N., Cordonnier, J.-B. (2017).</p>", set()),
        ('<p><a href="x">Watson（1964）</a></p>', set()),
        ("<p>Elhage, N., Nanda, N., et al. (2021).</p>", set()),
    ],
)
def test_english_is_seen(html: str, left: set[str]):
    assert english(html) == left


@pytest.mark.parametrize(
    "path",
    [*ABOUT, *SEARCHES, *LESSONS, *leave_to_release(REFERENCE, but=REFERENCE[-1:])],
)
def test_a_chinese_page_has_no_english_but_code_and_names(open_page: Open, path: str):
    page = open_page(path)
    if path in SEARCHES:
        expect(page.locator("#search-results h2")).to_have_text("搜尋結果")
    elif page.locator("pre").count():
        page.locator("button.copybtn").first.wait_for(state="attached")
    page.evaluate(
        "words => document.querySelectorAll(words).forEach(each => each.remove())",
        f"{NOT_WORDS}, {CELLS}",  # most of the page, which would be read in vain
    )
    assert english(page.content()) == set()


def test_the_button_that_copies_says_so_in_chinese(open_page: Open):
    page = open_page("zh-TW/index.html", permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("button.copybtn").first
    expect(button).to_have_attribute("data-tooltip", "複製")
    button.click()
    expect(button).to_have_attribute("data-tooltip", "已複製")


@pytest.mark.parametrize("path", leave_to_release(DECKS, but=[*map(deck_path, FIRST)]))
def test_a_chinese_deck_has_no_english_but_code_and_names(open_page: Open, path: str):
    assert english(open_page(path).content()) == set()


def test_the_help_and_the_speakers_window_are_in_chinese(open_page: Open):
    page = open_page(f"slides/zh-TW/jax/{LESSON}#/4")
    page.evaluate("Reveal.toggleHelp()")
    expect(page.locator(".r-overlay-help")).to_contain_text("講者備註")
    assert english(page.content()) == set()
    page.evaluate("Reveal.toggleHelp()")
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    expect(opened.value.locator(".speaker-controls-notes")).to_contain_text("備註")
    expect(opened.value.locator(".speaker-layout-label")).to_have_text("版面: 預設")
    assert english(opened.value.content()) == set()


@pytest.mark.parametrize(
    "words", sorted(HERE.glob("deck/words/*.json")), ids=lambda file: file.stem
)
def test_all_that_is_translated_for_a_deck_is_said_by_reveal(words: Path):
    scripts = [REVEAL / name for name in ("dist/reveal.js", "plugin/notes/notes.js")]
    said = "".join(script.read_text(encoding="utf-8") for script in scripts)
    for pair in json.loads(words.read_text(encoding="utf-8")).items():
        assert in_words(said, dict([pair])) != said, pair
