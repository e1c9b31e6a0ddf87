"""Test every page as readers use it: with and without scripts, in print, on a phone, from a search."""

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
from tests.conftest import run_server
from tests.site.browser import Open
from tests.site.conftest import (
    LESSON,
    NOTEBOOKS,
    PAGES,
    find_notebooks,
    list_stored_figures,
    mark_release,
    read_text,
)
from tools.site.figures import shrink_figure
from tools.site.slides import get_deck_path
from tools.weave.lessons import LANGUAGES, list_lessons
from tools.weave.notebooks import IMAGE
from tools.weave.prose import read_passages

# Bytes per framework of a lesson's page with its files, without fonts and search.
LIMIT = 240_000
MEGABYTE = 1_000_000


def list_pages(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


MAIN_PAGES = "index", "agreement", "search", "slides"


def test_all_pages_exist(site: Path):
    assert {
        "index.html",
        *(f"{tag}/{name}.html" for tag in LANGUAGES for name in MAIN_PAGES),
        *PAGES,
        *map(get_deck_path, NOTEBOOKS),
        *(
            f"{tag}/reference/d2l_compat/{framework.module}/index.html"
            for tag in LANGUAGES
            for framework in FRAMEWORKS.values()
        ),
    } <= set(list_pages(site))


def test_every_page_opens_without_problems(open_page: Open, site: Path):
    page = open_page("en/index.html")
    for path in list_pages(site):
        page.goto(f"file://{site}/{path}")
        if path != "index.html":  # which redirects at once
            assert page.evaluate("document.querySelector('h1, #search-results') !== null"), path


def test_no_page_refers_to_files_of_other_sites(site: Path):
    """Check what a browser might load later; the plugin checks what it does load."""
    external = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    for path in list_pages(site):
        tags = external.findall((site / path).read_text(encoding="utf-8"))
        assert [tag for tag in tags if "rel=" not in tag] == []


def test_links_within_the_site_are_not_broken(site: Path):
    for path in list_pages(site):
        folder = (site / path).parent
        for link in re.findall(r'href="([^":#?]+)["#?]', (site / path).read_text("utf-8")):
            assert link.startswith("//") or (folder / link).exists(), f"{path}: {link}"


def list_figures(page: str) -> list[str]:
    """List the drawings in the text of a lesson's page, and the figures in its notebooks."""
    notebooks = find_notebooks(page)
    prose = [each.prose for each in read_passages(notebooks[0].text) if each.block is None]
    drawings = [image["file"] for each in prose for image in IMAGE.finditer(each) if image["file"]]
    return drawings + [figure for each in notebooks for figure in list_stored_figures(each)]


@pytest.mark.parametrize("path", PAGES)
def test_a_lesson_has_less_than_a_quarter_of_a_megabyte_per_framework(site: Path, path: str):
    html = (site / path).read_text(encoding="utf-8")
    names = set(re.findall(r'(?:src|href)="([^":#?]+\.(?:svg|css|js|png))[?"]', html))
    sizes = {name: ((site / path).parent / name).stat().st_size for name in names}
    svgs = [name for name in names if name.startswith("_images/")]
    assert len(svgs) == len({*map(shrink_figure, list_figures(path))})
    assert len(html.encode()) + sum(sizes.values()) < LIMIT * len(FRAMEWORKS), sizes


@pytest.mark.release
@pytest.mark.parametrize("path", PAGES)
def test_reading_a_whole_lesson_loads_less_than_a_megabyte(browser: Browser, site: Path, path: str):
    """Add up the files that the browser loads, with the font, and without a server's compression."""
    page = browser.new_page()
    requested: set[str] = set()
    page.on("request", lambda request: requested.add(request.url.partition("?")[0]))
    page.goto(f"file://{site}/{path}?framework=pytorch")
    for button in page.locator(".show-solution").all():
        button.click()
    visible_images = page.locator("article img").filter(visible=True)
    for image in visible_images.all():
        image.scroll_into_view_if_needed()
    page.wait_for_function(
        "([...all]) => all.every(each => each.complete)", arg=visible_images.element_handles()
    )
    sources = {image.get_attribute("src") for image in visible_images.all()}
    page.close()
    paths = [url.removeprefix("file://") for url in requested if url.startswith("file:")]
    files = [Path(url2pathname(path)) for path in paths]
    images = [file for file in files if file.parent.name == "_images"]
    assert len(images) == len(sources) > 0
    assert sum(file.stat().st_size for file in files) < MEGABYTE


def test_a_page_without_formulas_does_not_load_their_font(browser: Browser, site: Path):
    page = browser.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(f"file://{site}/en/index.html", wait_until="load")
    page.evaluate("document.fonts.ready.then(() => null)")
    page.close()
    assert any(url.endswith(".html") for url in requested)
    assert [url for url in requested if ".woff2" in url] == []


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
@pytest.mark.parametrize("width", mark_release([390, 1280], always=[390]))
def test_loading_the_front_pages_figure_hardly_moves_the_text(
    open_page: Open, language: str, width: int
):
    page = open_page(f"{language}/index.html", viewport={"width": width, "height": 900})
    page.wait_for_load_state()
    height, reserved = page.locator(".live").evaluate(
        "live => [live.offsetHeight, (live.replaceChildren(), live.offsetHeight)]"
    )
    assert height > 300
    assert abs(height - reserved) < 48


@pytest.mark.parametrize("path", mark_release(PAGES, always=[f"en/{LESSON}"]))
def test_every_figure_has_an_alternative_text(open_page: Open, path: str):
    page = open_page(path)
    alternatives = page.locator("article img").evaluate_all("all => all.map(each => each.alt)")
    assert len(alternatives) == len(list_figures(path)) > 0
    assert all(len(alt) > 40 for alt in alternatives)


def test_chinese_has_its_own_fonts_and_english_those_of_the_theme(open_page: Open):
    fonts = "getComputedStyle(document.body).fontFamily"
    chinese = open_page("zh-TW/slides.html").evaluate(fonts)
    english = open_page("en/slides.html").evaluate(fonts)
    assert re.search("Noto Sans TC.*Noto Sans CJK TC.*sans-serif$", chinese)
    assert "system-ui" not in chinese
    assert "TC" not in english


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
def test_without_scripts_all_frameworks_are_shown_under_their_names(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}", java_script_enabled=False)
    cell = page.locator("#cell-shape-check")
    contents = cell.locator("> .sd-tab-content").all()
    tops = []
    for framework, content in zip(FRAMEWORKS.values(), contents, strict=True):
        label = cell.locator("> label", has_text=framework.title)
        expect(label).to_be_visible()
        expect(content).to_be_visible()
        tops += [label.bounding_box()["y"], content.bounding_box()["y"]]
    assert tops == sorted(tops)  # each name is above its code
    flax = page.locator(".only.for-jax").first
    expect(flax).to_be_visible()
    expect(flax.locator(".only-title")).to_have_text("JAX")
    expect(page.locator("math").first).to_be_visible()
    assert page.locator(".live-figure:visible").count() == 0


@pytest.mark.parametrize("path", mark_release(PAGES, always=[f"en/{LESSON}"]))
def test_a_solution_is_folded_until_its_button_is_clicked(open_page: Open, path: str):
    page = open_page(path)
    solutions = page.locator("section[id$=solutions] > section")
    assert solutions.count() == len(re.findall(r"^### \d+\. ", read_text(path), re.MULTILINE))
    for solution in solutions.all():
        parts = solution.locator("> :is(p, .sd-tab-set, div.math, ol, ul)")
        assert parts.count() > 0
        expect(solution.locator("h3")).to_be_visible()
        assert parts.filter(visible=True).count() == 0
        solution.locator("> button").click()
        assert parts.filter(visible=True).count() == parts.count()
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


# Any name and a year; the site's own pattern has only the names in the list of references.
CITATION = re.compile(
    r"[A-Z]\w+(?: et al\.| 等人| (?:and|與) [A-Z]\w+)?(?:, | \(|，|（)(?:19|20)\d\d\b"
)


@pytest.mark.parametrize("path", mark_release(PAGES, always=[f"en/{LESSON}"]))
def test_each_citation_links_to_its_reference_and_back(open_page: Open, path: str):
    page = open_page(path)
    references = page.locator("section[id$=references] li")
    prose = page.evaluate(
        """() => {
          const article = document.querySelector("article").cloneNode(true);
          for (const other of article.querySelectorAll("section[id$=references] li, pre")) other.remove();
          return article.textContent;
        }"""
    )
    citations = page.locator("a.cites")
    assert citations.count() == len(CITATION.findall(prose)) >= references.count()
    last_section = read_text(path).rpartition("\n## ")[2]
    assert references.count() == len(re.findall(r"^\* .*\(\d{4}\)", last_section, re.MULTILINE))
    assert page.locator("a.back").count() == citations.count()
    for number in range(citations.count()):
        citation = citations.nth(number)
        reference = page.locator(citation.get_attribute("href") or "")
        tooltip = citation.get_attribute("title") or ""
        text = reference.inner_text()
        assert text.startswith(tooltip)
        assert set(text.removeprefix(tooltip)) <= set(" ↩0123456789")
        names_and_years = re.findall(r"[A-Z]\w+|\d{4}", citation.inner_text())
        assert all(part in tooltip for part in names_and_years)
        back = reference.locator("a.back").evaluate_all("all => all.map(each => each.hash)")
        assert f"#{citation.get_attribute('id')}" in back
    for reference in references.all():
        assert reference.locator("a.back").count() > 0
    if not references.count():
        return
    citations.first.click()
    expect(page.locator(citations.first.get_attribute("href") or "")).to_be_in_viewport()
    back = references.locator("a.back").first
    back.click()
    expect(page.locator(back.get_attribute("href") or "")).to_be_in_viewport()


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
def test_print_shows_only_the_chosen_framework(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}?framework=jax")
    page.emulate_media(media="print")
    assert set(page.locator(".sd-tab-set > label:visible").all_inner_texts()) == {"JAX"}
    assert page.locator(".sd-tab-content:visible").count() == 1 + 53
    assert page.locator(".launch a:visible").count() == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_cheat_sheet_prints_on_one_page_of_a4(open_page: Open, language: str):
    page = open_page(f"{language}/cheat-sheet.html", viewport={"width": 733, "height": 1062})
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
    (width, height), *_ = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert (round(float(width)), round(float(height))) == (595, 842)
    page.emulate_media(media="print")
    tables = page.locator("article .table-wrapper")
    is_too_wide = "all => all.map(each => each.scrollWidth > each.clientWidth + 1)"
    assert set(tables.evaluate_all(is_too_wide)) == {False}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_follow_the_systems_theme_and_can_change_it(open_page: Open, scheme: str):
    page = open_page(f"en/{LESSON}", color_scheme=scheme)
    background = "getComputedStyle(document.body).backgroundColor"
    initial = page.evaluate(background)
    assert initial == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 22)"}[scheme]
    page.locator(".theme-toggle-content button").click()
    assert page.evaluate(background) != initial


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", mark_release([320, 390], always=[320]))
def test_a_phone_does_not_scroll_sideways(open_page: Open, language: str, width: int):
    for name in ("index.html", LESSON, "agreement.html", "slides.html"):
        page = open_page(f"{language}/{name}", viewport={"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def measure_shades(block: Locator) -> list[float]:
    """Measure how dark the left and the right edge of a block are, from 0 (white) to 1 (black)."""
    pixels = np.asarray(Image.open(io.BytesIO(block.screenshot())).convert("L"), float)
    darkness = 1 - np.median(pixels, axis=0) / 255  # of each column
    return [darkness[:4].max(), darkness[-4:].max()]  # the outermost column may be half outside


# Finds the link that a click on the middle of an element opens.
FIND_LINK = """each => {
  each.scrollIntoView({ block: "center", behavior: "instant" });
  const { x, y, width, height } = each.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2).closest("a")?.href;
}"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_lessons_open_by_name_and_by_image_from_the_front_page(open_page: Open, language: str):
    page = open_page(f"{language}/index.html")
    cards = page.locator(".gallery > div")
    assert cards.count() == len(list_lessons())
    for card, lesson in zip(cards.all(), list_lessons(), strict=True):
        for part in ("img", "a"):
            link = card.locator(part).evaluate(FIND_LINK)
            assert link.endswith(f"/{language}/{lesson.name}.html")
    cards.last.locator("img").click(force=True)
    page.wait_for_url(f"**/{language}/{list_lessons()[-1].name}.html")


@pytest.mark.parametrize("theme", mark_release(["light", "dark"], always=["light"]))
def test_code_that_fits_has_no_shades(open_page: Open, theme: str):
    page = open_page(f"en/{LESSON}", color_scheme=theme)
    hidden = ".highlight *, .sd-tab-label { color: transparent !important; }"
    page.add_style_tag(content=hidden)
    for kind in (".highlight:not(.output) > pre", ".output.highlight > pre"):
        fits = "each => each.scrollWidth <= each.clientWidth"
        visible_blocks = page.locator(kind).filter(visible=True).all()
        block = next(each for each in visible_blocks if each.evaluate(fits))
        screenshot = Image.open(io.BytesIO(block.screenshot())).convert("RGB")
        inside = np.asarray(screenshot)[2:-2, 4:-4]  # without the edges
        assert len(np.unique(inside.reshape(-1, 3), axis=0)) == 1, kind


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
def test_formulas_and_tables_fit_a_phone_or_have_shades(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}", viewport={"width": 390, "height": 800})
    page.wait_for_load_state()
    blocks = page.locator("div.math, .table-wrapper").all()
    assert len(blocks) >= 8
    # Make one table only a little too wide, independently of the fonts.
    page.locator(".table-wrapper").first.evaluate(
        "({ clientWidth, firstElementChild: { style } }) => "
        "{ style.cssText = `font-size: 8px; min-width: ${clientWidth + 4}px`; }"
    )
    is_wide = "each => each.scrollWidth > each.clientWidth"
    wide_blocks = [each for each in blocks if each.evaluate(is_wide)]
    assert wide_blocks
    for block in wide_blocks:
        expect(block).to_have_attribute("tabindex", "0")
        left, right = measure_shades(block)
        assert left < 0.05
        assert right > 0.2
        block.evaluate("each => each.scrollTo({left: each.scrollWidth, behavior: 'instant'})")
        left, right = measure_shades(block)
        assert right < 0.05
        assert left > 0.2
    sizes = page.locator("div.math math").evaluate_all(
        "all => all.map(each => parseFloat(getComputedStyle(each).fontSize))"
    )
    assert min(sizes) >= 12


def test_the_copy_button_is_visible_when_it_has_the_focus(open_page: Open):
    page = open_page(f"en/{LESSON}")
    button = page.locator("#cell-binary button.copybtn").first
    assert button.evaluate("each => getComputedStyle(each).opacity") == "0"
    page.locator("#cell-multiply-adds button.copybtn").first.focus()  # in the cell before
    for _ in range(20):
        page.keyboard.press("Tab")
        if button.evaluate("each => each === document.activeElement"):
            break
    expect(button).to_be_focused()
    expect(button).to_have_css("opacity", "1")


@pytest.mark.parametrize(
    ("language", "word", "title"),
    [
        ("en", "equivariant", "Self-Attention and Positional Encoding"),
        ("zh-TW", "位置編碼", "自注意力與位置編碼"),
    ],
)
def test_search_finds_the_lesson(open_page: Open, language: str, word: str, title: str):
    page = open_page(f"{language}/search.html?q={word}")
    expect(page.locator("#search-results li a").first).to_contain_text(title)


@pytest.mark.parametrize(
    ("language", "word", "count"),
    [
        ("en", "attention", "found"),
        pytest.param("zh-TW", "注意力", "共", marks=pytest.mark.release),
    ],
)
def test_search_counts_results_and_lists_prose_before_the_reference(
    open_page: Open, language: str, word: str, count: str
):
    page = open_page(f"{language}/search.html?q={word}")
    summary = page.locator("#search-results .search-summary")
    expect(summary).to_contain_text(count)
    in_reference = page.locator("#search-results li a").evaluate_all(
        "all => all.map(each => each.pathname.includes('/reference/'))"
    )
    assert str(len(in_reference)) in summary.inner_text()
    assert in_reference == sorted(in_reference)
    assert not in_reference[0]


def test_search_shows_an_excerpt_if_pages_can_be_fetched(browser: Browser, site: Path):
    with run_server(partial(SimpleHTTPRequestHandler, directory=site)) as address:
        page = browser.new_page()
        page.goto(f"{address}/en/search.html?q=interleaved")
        excerpt = page.locator("#search-results li p.context").first
        expect(excerpt).to_contain_text("interleaved", ignore_case=True)
        page.close()


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
def test_the_search_page_has_a_hint_and_a_field(open_page: Open, language: str):
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
def test_the_front_page_opens_in_the_readers_language(open_page: Open, locale: str, language: str):
    page = open_page("index.html", locale=locale)
    page.wait_for_url(f"**/{language}/index.html")


@pytest.mark.parametrize("path", PAGES)
def test_formulas_have_no_tex_left(site: Path, path: str):
    formulas = re.findall(r"<math.*?</math>", (site / path).read_text(encoding="utf-8"), re.DOTALL)
    assert len(formulas) > (100 if path.endswith(LESSON) else 0)
    for formula in formulas:
        text = "".join(ElementTree.fromstring(formula).itertext())
        assert not set(text) & set("\\&$"), text


@pytest.mark.parametrize("path", mark_release(PAGES, always=[f"en/{LESSON}"]))
@pytest.mark.parametrize("width", mark_release([390, 718, 1100, 1280], always=[390]))
def test_punctuation_stays_next_to_its_formula(open_page: Open, path: str, width: int):
    page = open_page(path, viewport={"width": width, "height": 900})
    if width == 718:  # A4
        page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.style.getPropertyValue('--root-gap')")
    # For each formula: the text after it, and how far that text's first mark is to the right of and below the formula.
    distances = page.evaluate(
        """() => [...document.querySelectorAll("math:not([display])")].flatMap((formula) => {
          const rest = formula.nextSibling;
          const start = rest?.data?.search(/^[.,;:!?)”’。，、；：！？）」』]/) ?? -1;
          if (start < 0 || !formula.getClientRects().length) return [];
          const mark = document.createRange();
          mark.setStart(rest, start);
          mark.setEnd(rest, start + 1);
          const [markBox, formulaBox] = [mark, formula].map((each) => each.getBoundingClientRect());
          const symbols = [...formula.querySelectorAll("mi, mn, mo, mtext")];
          const right = Math.max(...symbols.map((each) => each.getBoundingClientRect().right));
          return [[rest.data.slice(0, 20), markBox.left - right, markBox.top - formulaBox.bottom]];
        })"""
    )
    formulas = re.findall(r"(?<!\$)\$[^$\n]+\$[.,;:!?。，、；：！？]", read_text(path))
    assert len(distances) > 0.6 * len(formulas) > 0  # passages for other frameworks are hidden
    assert [each for each in distances if not -2 < each[1] < 2 or each[2] > 0] == []
