"""Test that a page in Chinese has no English in its text or in its labels for screen readers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from bs4.element import Comment, Doctype
from playwright.sync_api import expect

from tests.site.browser import Open
from tests.site.conftest import FIRST_NOTEBOOKS, LESSON, NOTEBOOKS, PAGES, mark_release
from tools.site.slides import HERE, REVEAL, get_deck_path, translate_script
from tools.weave.lessons import ROOT

DOCUMENTS = [f"zh-TW/{page.stem}.html" for page in sorted(ROOT.glob("docs/zh-TW/*.md"))]
REFERENCE = [f"zh-TW/reference/d2l_compat/{name}/index.html" for name in ("torch", "java", ".")]
SEARCHES = [f"zh-TW/search.html?q={words}" for words in ("注意力", "大象")]
LESSONS = [page for page in PAGES if page.startswith("zh-TW/")]
DECKS = [get_deck_path(notebook) for notebook in NOTEBOOKS if notebook.language == "zh-TW"]

# Programs, formulas, names in their own language, titles of works.
IGNORED_ELEMENTS = "script, style, pre, code, math, [lang=en], em, a[href^=http], dt.sig > :not(a)"
# Code cells with their outputs and figures; on slides, figures.
CELLS = ".sd-tab-set[id] .sd-tab-content, .slides img"
TEXT_ATTRIBUTES = "alt", "aria-label", "aria-valuetext", "data-tooltip", "placeholder", "title"
NAMES = {
    "Binder",
    "Colab",
    "Equinox",
    "Esc",
    "Flax",
    "Furo",
    "Haiku",
    "Java",
    "Kaggle",
    "Keras",
    "Linen",
    "SPACE",
    "Shift",
    "Alt",
    "Min-p",
    "Mistral",
    "Runtime",
    "Top-k",
    "Top-p",
    "Transformer",
    "Transformers",
    "cos",
    "logits",
    "min-p",
    "sin",
    "softmax",
    "top-k",
    "top-p",
}
CHINESE = re.compile(r"[\u3400-\u9fff]")
WORD = re.compile(r"[A-Za-z][\w'-]+")
SENTENCE = re.compile(r"(?:[A-Za-z][a-z'-]*[ ,]+){3,}[a-z]+")
# An English term in parentheses after the Chinese one.
TERM = re.compile(r"（[A-Za-z][^（）]{,40}）")
MODULE = re.compile(r"\bd2l_compat(?:\.\w+)+")
AUTHORS = re.compile(
    r"(?:[^\W\d_][\w -]*, (?:-?\w\. ?)+,? ?)+(?:et al\. )?\(\d{4}\)|[A-Z]\w+（\d{4}）"
)


def list_strings(html: str) -> Iterator[str]:
    """Yield all texts of a page that are visible or read aloud."""
    page = BeautifulSoup(html, "html.parser")
    for element in page.select(f"{IGNORED_ELEMENTS}, {CELLS}"):
        element.extract()
    for citation in page.select("a.cites"):
        del citation["title"]  # repeats the reference
    for text in page.find_all(string=True):
        if not isinstance(text, Comment | Doctype):
            yield " ".join(text.split())
    for element in page.find_all(True):
        yield from (str(element[name]) for name in TEXT_ATTRIBUTES if element.get(name))
    yield from (str(meta["content"]) for meta in page.select("meta[name=description]"))


def find_english(html: str) -> set[str]:
    """Return English sentences, and texts without Chinese that are not names."""
    english = set()
    for text in list_strings(html):
        text = MODULE.sub("", AUTHORS.sub("", TERM.sub("", text)))
        if CHINESE.search(text):
            english |= {sentence[0] for sentence in SENTENCE.finditer(text)}
        elif not all(map(is_name, WORD.findall(text))):
            english.add(text)
    return english


def is_name(word: str) -> bool:
    """Check whether a word is a name, such as PyTorch, float32, valid_lens or CNN."""
    return word in NAMES or not re.fullmatch(r"[A-Za-z]?[a-z'-]+", word)


@pytest.mark.parametrize(
    ("html", "expected"),
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
def test_english_is_found(html: str, expected: set[str]):
    assert find_english(html) == expected


@pytest.mark.parametrize(
    "path",
    [*DOCUMENTS, *SEARCHES, *LESSONS, *mark_release(REFERENCE, always=REFERENCE[-1:])],
)
def test_a_chinese_page_has_no_english_except_code_and_names(open_page: Open, path: str):
    page = open_page(path)
    if path in SEARCHES:
        expect(page.locator("#search-results h2")).to_have_text("搜尋結果")
    elif page.locator("pre").count():
        page.locator("button.copybtn").first.wait_for(state="attached")
    page.evaluate(
        "selector => document.querySelectorAll(selector).forEach(each => each.remove())",
        f"{IGNORED_ELEMENTS}, {CELLS}",  # most of the page, which would take long to parse
    )
    assert find_english(page.content()) == set()


def test_the_copy_button_is_in_chinese(open_page: Open):
    page = open_page("zh-TW/index.html", permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("button.copybtn").first
    expect(button).to_have_attribute("data-tooltip", "複製")
    button.click()
    expect(button).to_have_attribute("data-tooltip", "已複製")


@pytest.mark.parametrize("path", mark_release(DECKS, always=[*map(get_deck_path, FIRST_NOTEBOOKS)]))
def test_a_chinese_deck_has_no_english_except_code_and_names(open_page: Open, path: str):
    assert find_english(open_page(path).content()) == set()


def test_the_help_and_the_speakers_window_are_in_chinese(open_page: Open):
    page = open_page(f"slides/zh-TW/jax/{LESSON}#/3")
    page.evaluate("Reveal.toggleHelp()")
    expect(page.locator(".r-overlay-help")).to_contain_text("講者備註")
    assert find_english(page.content()) == set()
    page.evaluate("Reveal.toggleHelp()")
    with page.context.expect_page() as new_page:
        page.keyboard.press("s")
    window = new_page.value
    expect(window.locator(".speaker-controls-notes")).to_contain_text("備註")
    expect(window.locator(".speaker-layout-label")).to_have_text("版面: 預設")
    assert find_english(window.content()) == set()


@pytest.mark.parametrize("file", sorted(HERE.glob("deck/words/*.json")), ids=lambda file: file.stem)
def test_every_translated_message_of_decks_occurs_in_reveal(file: Path):
    scripts = [REVEAL / name for name in ("dist/reveal.js", "plugin/notes/notes.js")]
    code = "".join(script.read_text(encoding="utf-8") for script in scripts)
    for message, translation in json.loads(file.read_text(encoding="utf-8")).items():
        assert translate_script(code, {message: translation}) != code, message
