"""Every page, as it is read: with and without scripts, in print, on a telephone, by a search."""

import io
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.request import url2pathname
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, expect

from d2l_compat.frameworks import FRAMEWORKS
from tests.conftest import serving
from tests.site.browser import Open
from tests.site.conftest import (
    EDITIONS,
    LESSON,
    PAGES,
    leave_to_release,
    stored_figures,
    text_of,
)
from tools.site.figures import light
from tools.site.slides import deck_path
from tools.weave.lessons import LANGUAGES, lessons
from tools.weave.notebooks import IMAGE
from tools.weave.prose import read_passages

# Bytes for each framework, of a lesson's page and all it shows, fonts and search aside.
LIMIT = 240_000
MEGABYTE = 1_000_000


def pages(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


MAIN = "index", "agreement", "search", "slides"


def test_all_pages_are_there(site: Path):
    assert {
        "index.html",
        *(f"{tag}/{name}.html" for tag in LANGUAGES for name in MAIN),
        *PAGES,
        *map(deck_path, EDITIONS),
        *(
            f"{tag}/reference/d2l_compat/{about.face}/index.html"
            for tag in LANGUAGES
            for about in FRAMEWORKS.values()
        ),
    } <= set(pages(site))


def test_every_page_opens_without_a_complaint(open_page: Open, site: Path):
    page = open_page("en/index.html")
    for path in pages(site):
        page.goto(f"file://{site}/{path}")
        if path != "index.html":  # which leads on at once
            assert page.evaluate("document.querySelector('h1, #search-results') !== null"), path


def test_nothing_on_a_page_is_asked_from_elsewhere(site: Path):
    """The browser tests see what is loaded; here, what might be, later on."""
    loads = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    for path in pages(site):
        found = loads.findall((site / path).read_text(encoding="utf-8"))
        assert [each for each in found if "rel=" not in each] == []


def test_links_within_the_site_lead_somewhere(site: Path):
    for path in pages(site):
        here = (site / path).parent
        for link in re.findall(r'href="([^":#?]+)["#?]', (site / path).read_text("utf-8")):
            assert link.startswith("//") or (here / link).exists(), f"{path}: {link}"


def figures(page: str) -> list[str]:
    """What a lesson's page has to show: the drawings of its text, and the figures of its notebooks."""
    of_page = [each for each in EDITIONS if page == f"{each.language}/{each.folder.name}.html"]
    prose = [each.prose for each in read_passages(of_page[0].text) if each.block is None]
    drawings = [image["file"] for each in prose for image in IMAGE.finditer(each) if image["file"]]
    return drawings + [figure for each in of_page for figure in stored_figures(each)]


@pytest.mark.parametrize("path", PAGES)
def test_a_lesson_weighs_less_than_a_quarter_of_a_megabyte_for_each_framework(
    site: Path, path: str
):
    html = (site / path).read_text(encoding="utf-8")
    loaded = set(re.findall(r'(?:src|href)="([^":#?]+\.(?:svg|css|js|png))[?"]', html))
    parts = {name: ((site / path).parent / name).stat().st_size for name in loaded}
    svgs = [name for name in parts if name.startswith("_images/")]
    assert len(svgs) == len({*map(light, figures(path))})
    assert len(html.encode()) + sum(parts.values()) < LIMIT * len(FRAMEWORKS), parts


@pytest.mark.release
@pytest.mark.parametrize("path", PAGES)
def test_who_reads_a_lesson_to_its_end_has_loaded_less_than_a_megabyte(
    browser: Browser, site: Path, path: str
):
    """All that the browser asks for, the font too, before a server compresses it."""
    page = browser.new_page()
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url.partition("?")[0]))
    page.goto(f"file://{site}/{path}?framework=pytorch")
    for button in page.locator(".show-solution").all():
        button.click()
    shown = page.locator("article img").filter(visible=True)
    for image in shown.all():
        image.scroll_into_view_if_needed()
    page.wait_for_function(
        "([...all]) => all.every(each => each.complete)", arg=shown.element_handles()
    )
    sources = {image.get_attribute("src") for image in shown.all()}
    page.close()
    files = {
        Path(url2pathname(url.removeprefix("file://"))) for url in asked if url.startswith("file:")
    }
    drawn = [file for file in files if file.parent.name == "_images"]
    assert len(drawn) == len(sources) > 0
    assert sum(file.stat().st_size for file in files) < MEGABYTE


def test_a_page_without_formulas_asks_for_no_font_of_theirs(browser: Browser, site: Path):
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{site}/en/index.html", wait_until="load")
    page.evaluate("document.fonts.ready.then(() => null)")
    page.close()
    assert any(url.endswith(".html") for url in asked)
    assert [url for url in asked if ".woff2" in url] == []


@pytest.mark.parametrize("language", leave_to_release(LANGUAGES, but=["en"]))
@pytest.mark.parametrize("width", leave_to_release([390, 1280], but=[390]))
def test_what_follows_the_first_pages_figure_stays_where_it_is_when_it_comes(
    open_page: Open, language: str, width: int
):
    page = open_page(f"{language}/index.html", viewport={"width": width, "height": 900})
    page.wait_for_load_state()
    kept, taken = page.locator(".live").evaluate(
        "live => [live.offsetHeight, (live.replaceChildren(), live.offsetHeight)].reverse()"
    )
    assert taken > 300
    assert abs(taken - kept) < 48


@pytest.mark.parametrize("path", leave_to_release(PAGES, but=[f"en/{LESSON}"]))
def test_every_figure_says_what_it_shows(open_page: Open, path: str):
    page = open_page(path)
    alternatives = page.locator("article img").evaluate_all("all => all.map(each => each.alt)")
    assert len(alternatives) == len(figures(path)) > 0
    assert all(len(alt) > 40 for alt in alternatives)


def test_chinese_has_fonts_of_its_own_and_english_those_of_the_theme(open_page: Open):
    fonts = "getComputedStyle(document.body).fontFamily"
    chinese, english = (
        open_page(f"{language}/slides.html").evaluate(fonts) for language in ("zh-TW", "en")
    )
    assert re.search("Noto Sans TC.*Noto Sans CJK TC.*sans-serif$", chinese)
    assert "system-ui" not in chinese
    assert "TC" not in english


@pytest.mark.parametrize("language", leave_to_release(LANGUAGES, but=["en"]))
def test_without_scripts_all_frameworks_are_there_under_their_names(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}", java_script_enabled=False)
    cell = page.locator("#cell-by-hand")
    places = []
    for title, content in zip(
        [framework.title for framework in FRAMEWORKS.values()],
        cell.locator("> .sd-tab-content").all(),
        strict=True,
    ):
        label = cell.locator("> label", has_text=title)
        expect(label).to_be_visible()
        expect(content).to_be_visible()
        places += [label.bounding_box()["y"], content.bounding_box()["y"]]
    assert places == sorted(places)  # each name above its code
    flax = page.locator(".only.for-jax").first
    expect(flax).to_be_visible()
    expect(flax.locator(".only-title")).to_have_text("JAX")
    expect(page.locator("math").first).to_be_visible()
    assert page.locator(".live-figure:visible").count() == 0


@pytest.mark.parametrize("path", leave_to_release(PAGES, but=[f"en/{LESSON}"]))
def test_a_solution_is_folded_until_it_is_asked_for(open_page: Open, path: str):
    page = open_page(path)
    solutions = page.locator("section[id$=solutions] > section")
    assert solutions.count() == len(re.findall(r"^### \d+\. ", text_of(path), re.MULTILINE))
    for solution in solutions.all():
        told = solution.locator("> :is(p, .sd-tab-set, div.math, ol, ul)")
        assert told.count() > 0
        expect(solution.locator("h3")).to_be_visible()
        assert told.filter(visible=True).count() == 0
        solution.locator("> button").click()
        assert told.filter(visible=True).count() == told.count()
        expect(solution.locator("> button")).to_be_hidden()


def test_a_link_to_a_solution_unfolds_it(open_page: Open):
    page = open_page(f"en/{LESSON}")
    name = page.locator("section[id$=solutions] > section").nth(2).get_attribute("id")
    page.goto(f"{page.url}#{name}")
    assert page.locator("section[id$=solutions] > section.is-folded").count() == 8
    expect(page.locator(f"#{name} > p").first).to_be_visible()
    page.emulate_media(media="print")
    assert page.locator("section[id$=solutions] > section > p:not(:visible)").count() == 0
    assert page.locator(".show-solution:visible").count() == 0


# A name, whoever else, and a year: not what the site looks for, which is the names in the list.
CITATION = re.compile(
    r"[A-Z]\w+(?: et al\.| 等人| (?:and|與) [A-Z]\w+)?(?:, | \(|，|（)(?:19|20)\d\d\b"
)


@pytest.mark.parametrize("path", leave_to_release(PAGES, but=[f"en/{LESSON}"]))
def test_each_citation_leads_to_its_reference_and_back(open_page: Open, path: str):
    page = open_page(path)
    listed = page.locator("section[id$=references] li")
    prose = page.evaluate(
        """() => {
          const article = document.querySelector("article").cloneNode(true);
          for (const other of article.querySelectorAll("section[id$=references] li, pre")) other.remove();
          return article.textContent;
        }"""
    )
    citations = page.locator("a.cites")
    assert citations.count() == len(CITATION.findall(prose)) >= listed.count()
    last = text_of(path).rpartition("\n## ")[2]
    assert listed.count() == len(re.findall(r"^\* .*\(\d{4}\)", last, re.MULTILINE))
    assert page.locator("a.back").count() == citations.count()
    for number in range(citations.count()):
        citation = citations.nth(number)
        reference = page.locator(citation.get_attribute("href") or "")
        said, whole = citation.get_attribute("title") or "", reference.inner_text()
        assert whole.startswith(said)
        assert set(whole.removeprefix(said)) <= set(" ↩0123456789")
        assert all(part in said for part in re.findall(r"[A-Z]\w+|\d{4}", citation.inner_text()))
        back = reference.locator("a.back").evaluate_all("them => them.map(one => one.hash)")
        assert f"#{citation.get_attribute('id')}" in back
    for entry in listed.all():
        assert entry.locator("a.back").count() > 0
    if not listed.count():
        return
    citations.first.click()
    expect(page.locator(citations.first.get_attribute("href") or "")).to_be_in_viewport()
    listed.locator("a.back").first.click()
    cited = page.locator(listed.locator("a.back").first.get_attribute("href") or "")
    expect(cited).to_be_in_viewport()


@pytest.mark.parametrize("language", leave_to_release(LANGUAGES, but=["en"]))
def test_print_shows_the_chosen_framework_alone(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}?framework=jax")
    page.emulate_media(media="print")
    assert set(page.locator(".sd-tab-set > label:visible").all_inner_texts()) == {"JAX"}
    assert page.locator(".sd-tab-content:visible").count() == 1 + 62
    assert page.locator(".launch a:visible").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_readers_own_light_is_taken_and_can_be_changed(open_page: Open, scheme: str):
    page = open_page(f"en/{LESSON}", color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    at_first = page.evaluate(ground)
    assert at_first == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 22)"}[scheme]
    page.locator(".theme-toggle-content button").click()
    assert page.evaluate(ground) != at_first


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", leave_to_release([320, 390], but=[320]))
def test_a_telephone_does_not_scroll_sideways(open_page: Open, language: str, width: int):
    for name in ("index.html", LESSON, "agreement.html", "slides.html"):
        page = open_page(f"{language}/{name}", viewport={"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def shades(block: Locator) -> list[float]:
    """How dark a block is at its left edge and at its right, between nothing and black."""
    picture = np.asarray(Image.open(io.BytesIO(block.screenshot())).convert("L"), float)
    darkness = 1 - np.median(picture, axis=0) / 255  # of each column
    return [darkness[:4].max(), darkness[-4:].max()]  # one may lie half outside


# What takes a click on the middle of an element.
HIT = """each => {
  each.scrollIntoView({ block: "center", behavior: "instant" });
  const { x, y, width, height } = each.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2).closest("a")?.href;
}"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lesson_opens_from_the_first_page_by_its_name_and_by_its_picture(
    open_page: Open, language: str
):
    page = open_page(f"{language}/index.html")
    cards = page.locator(".gallery > div")
    assert cards.count() == len(lessons())
    for card, lesson in zip(cards.all(), lessons(), strict=True):
        for part in ("img", "a"):
            link = card.locator(part).evaluate(HIT)
            assert link.endswith(f"/{language}/{lesson.name}.html")
    cards.last.locator("img").click(force=True)
    page.wait_for_url(f"**/{language}/{lessons()[-1].name}.html")


@pytest.mark.parametrize("theme", leave_to_release(["light", "dark"], but=["light"]))
def test_code_that_fits_has_one_ground_from_end_to_end(open_page: Open, theme: str):
    page = open_page(f"en/{LESSON}", color_scheme=theme)
    page.add_style_tag(content=".highlight * { color: transparent !important; }")
    for kind in (".highlight:not(.output) > pre", ".output.highlight > pre"):
        shown = page.locator(kind).filter(visible=True).all()
        block = next(
            each for each in shown if each.evaluate("each => each.scrollWidth <= each.clientWidth")
        )
        picture = Image.open(io.BytesIO(block.screenshot())).convert("RGB")
        ground = np.asarray(picture)[2:-2, 4:-4]  # inside the edges
        assert len(np.unique(ground.reshape(-1, 3), axis=0)) == 1, kind


@pytest.mark.parametrize("language", leave_to_release(LANGUAGES, but=["en"]))
def test_formulas_and_tables_fit_a_telephone_or_show_on_which_side_they_go_on(
    open_page: Open, language: str
):
    page = open_page(f"{language}/{LESSON}", viewport={"width": 390, "height": 800})
    page.wait_for_load_state()
    blocks = page.locator("div.math, .table-wrapper").all()
    assert len(blocks) > 8
    # However wide letters are here, one is only a little too wide.
    page.locator(".table-wrapper").first.evaluate(
        "({ clientWidth, firstElementChild: { style } }) => "
        "{ style.cssText = `font-size: 8px; min-width: ${clientWidth + 4}px`; }"
    )
    is_wide = "each => each.scrollWidth > each.clientWidth"
    wide = [each for each in blocks if each.evaluate(is_wide)]
    assert wide
    for block in wide:
        expect(block).to_have_attribute("tabindex", "0")
        left, right = shades(block)
        assert left < 0.05
        assert right > 0.2
        block.evaluate("each => each.scrollTo({left: each.scrollWidth, behavior: 'instant'})")
        left, right = shades(block)
        assert right < 0.05
        assert left > 0.2
    smallest = min(
        float(size.removesuffix("px"))
        for size in page.locator("div.math math").evaluate_all(
            "all => all.map(each => getComputedStyle(each).fontSize)"
        )
    )
    assert smallest >= 12


def test_the_button_that_copies_is_seen_where_a_key_has_come_to_it(open_page: Open):
    page = open_page(f"en/{LESSON}")
    button = page.locator("#cell-binary button.copybtn").first
    assert button.evaluate("each => getComputedStyle(each).opacity") == "0"
    page.locator("#cell-binary > input").first.focus()
    for _ in range(5):
        page.keyboard.press("Tab")
        if button.evaluate("each => each === document.activeElement"):
            break
    expect(button).to_be_focused()
    expect(button).to_have_css("opacity", "1")


@pytest.mark.parametrize(
    ("language", "word", "in_title"),
    [
        ("en", "equivariant", "Self-Attention and Positional Encoding"),
        ("zh-TW", "位置編碼", "自注意力與位置編碼"),
    ],
)
def test_search_finds_the_lesson(open_page: Open, language: str, word: str, in_title: str):
    page = open_page(f"{language}/search.html?q={word}")
    expect(page.locator("#search-results li a").first).to_contain_text(in_title)


@pytest.mark.parametrize(
    ("language", "word", "count"),
    [
        ("en", "attention", "found"),
        pytest.param("zh-TW", "注意力", "共", marks=pytest.mark.release),
    ],
)
def test_prose_comes_before_the_reference_and_results_are_counted(
    open_page: Open, language: str, word: str, count: str
):
    page = open_page(f"{language}/search.html?q={word}")
    expect(page.locator("#search-results .search-summary")).to_contain_text(count)
    found = page.locator("#search-results li a").evaluate_all(
        "all => all.map(each => each.pathname.includes('/reference/'))"
    )
    assert str(len(found)) in page.locator("#search-results .search-summary").inner_text()
    assert found == sorted(found)
    assert not found[0]


def test_a_result_shows_its_words_where_pages_can_be_fetched(browser: Browser, site: Path):
    with serving(partial(SimpleHTTPRequestHandler, directory=site)) as address:
        page = browser.new_page()
        page.goto(f"{address}/en/search.html?q=interleaved")
        words = page.locator("#search-results li p.context").first
        expect(words).to_contain_text("interleaved", ignore_case=True)
        page.close()


@pytest.mark.parametrize("language", leave_to_release(LANGUAGES, but=["en"]))
def test_the_search_page_says_what_to_do(open_page: Open, language: str):
    page = open_page(f"{language}/search.html")
    expect(page.locator("article")).to_contain_text("valid_lens")
    page.locator("article input").fill("softmax")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results li a").first).to_be_visible()
    expect(page.locator("article input")).to_have_value("softmax")


def test_code_is_copied_by_its_button(open_page: Open):
    page = open_page(f"en/{LESSON}", permissions=["clipboard-read", "clipboard-write"])
    cell = page.locator("#cell-binary > .sd-tab-content").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("for i in range(8):\n    print(")


@pytest.mark.parametrize(
    ("locale", "language"),
    [("zh-TW", "zh-TW"), pytest.param("de-DE", "en", marks=pytest.mark.release)],
)
def test_the_first_page_leads_to_the_readers_language(open_page: Open, locale: str, language: str):
    page = open_page("index.html", locale=locale)
    page.wait_for_url(f"**/{language}/index.html")


@pytest.mark.parametrize("path", PAGES)
def test_formulas_are_whole(site: Path, path: str):
    formulas = re.findall(r"<math.*?</math>", (site / path).read_text(encoding="utf-8"), re.DOTALL)
    assert len(formulas) > (100 if path.endswith(LESSON) else 0)
    for formula in formulas:
        words = "".join(ElementTree.fromstring(formula).itertext())
        assert not set(words) & set("\\&$"), words


@pytest.mark.parametrize("path", leave_to_release(PAGES, but=[f"en/{LESSON}"]))
@pytest.mark.parametrize("width", leave_to_release([390, 718, 1100, 1280], but=[390]))
def test_what_follows_a_formula_stays_on_its_line_and_close_to_it(
    open_page: Open, path: str, width: int
):
    page = open_page(path, viewport={"width": width, "height": 900})
    if width == 718:  # A4
        page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.style.getPropertyValue('--root-gap')")
    places = page.evaluate(
        """() => [...document.querySelectorAll("math:not([display])")].flatMap((formula) => {
          const rest = formula.nextSibling;
          const mark = rest?.data?.search(/^[.,;:!?)”’。，、；：！？）」』]/) ?? -1;
          if (mark < 0 || !formula.getClientRects().length) return [];
          const sign = document.createRange();
          sign.setStart(rest, mark);
          sign.setEnd(rest, mark + 1);
          const [there, here] = [sign, formula].map((each) => each.getBoundingClientRect());
          const signs = [...formula.querySelectorAll("mi, mn, mo, mtext")];
          const right = Math.max(...signs.map((each) => each.getBoundingClientRect().right));
          return [[rest.data.slice(0, 20), there.left - right, there.top - here.bottom]];
        })"""
    )
    in_text = re.findall(r"(?<!\$)\$[^$\n]+\$[.,;:!?。，、；：！？]", text_of(path))
    assert len(places) > 0.6 * len(in_text) > 0  # passages for other frameworks are hidden
    assert [place for place in places if not -2 < place[1] < 2 or place[2] > 0] == []
