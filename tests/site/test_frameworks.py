"""Test the choice of a framework, the switch between languages, and downloads."""

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tests.site.browser import Open
from tests.site.conftest import LESSON, NOTEBOOKS, mark_release
from tools.project.dist import WHEEL
from tools.weave.lessons import LANGUAGES, ROOT, Notebook

LAUNCH_BUTTONS = ".sd-tab-set .launch"
# Not those of cells that only one framework has.
CHOSEN_TABS = ".sd-tab-set:has(> input ~ input) > input:checked + label[data-sync-group=framework]"


def list_chosen_frameworks(page: Page) -> set[str]:
    """Return the frameworks chosen in any set of tabs; there should be only one."""
    return set(
        page.locator(CHOSEN_TABS).evaluate_all("all => all.map(each => each.dataset.syncId)")
    )


def choose(page: Page, framework: str) -> None:
    page.locator(".bar select").select_option(framework)


def read_cell(page: Page, cell: str) -> str:
    return page.locator(f"#{cell}").inner_text()


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
def test_choosing_a_framework_changes_all_cells(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}")
    assert page.locator(".sd-tab-set").count() == 1 + 53  # the buttons and the cells
    for framework in reversed(FRAMEWORKS):
        choose(page, framework)
        assert list_chosen_frameworks(page) == {framework}
        code = read_cell(page, "cell-setup")  # without hidden tabs
        imported = [
            name
            for name, each in PYTHON_FRAMEWORKS.items()
            if f"import {each.module} as d2l" in code
        ]
        assert imported == [framework] * (framework in PYTHON_FRAMEWORKS)
        assert ("import ai.djl" in code) == (framework == "djl")


def test_the_choice_is_remembered_on_the_next_page(open_page: Open):
    page = open_page(f"en/{LESSON}")
    choose(page, "paddle")
    page.goto(page.url.replace("/en/", "/zh-TW/"))
    assert list_chosen_frameworks(page) == {"paddle"}


@pytest.mark.parametrize("framework", mark_release(FRAMEWORKS, always=["djl"]))
def test_a_link_chooses_a_framework(open_page: Open, framework: str):
    page = open_page(f"en/{LESSON}?framework={framework}")
    assert list_chosen_frameworks(page) == {framework}


def test_a_link_with_an_unknown_framework_chooses_the_first(open_page: Open):
    assert list_chosen_frameworks(open_page(f"en/{LESSON}?framework=caffe")) == {"pytorch"}


def test_a_passage_for_some_frameworks_is_hidden_in_others(open_page: Open):
    page = open_page(f"en/{LESSON}?framework=jax")
    flax = page.get_by_text("Flax keeps a layer and its parameters apart")
    keras = page.get_by_text("Keras layers make their weights")
    expect(flax).to_be_visible()
    expect(keras).to_be_hidden()
    choose(page, "tensorflow")
    expect(flax).to_be_hidden()
    expect(keras).to_be_visible()


def test_tabs_below_the_title_can_be_operated_by_keyboard(open_page: Open):
    page = open_page(f"en/{LESSON}")
    page.locator(".sd-tab-set:not([id]) > input").first.focus()
    page.keyboard.press("ArrowRight")
    assert list_chosen_frameworks(page) == {"tensorflow"}


def test_buttons_open_the_notebook_of_the_framework(open_page: Open):
    page = open_page(f"zh-TW/{LESSON}?framework=mxnet")
    visible = page.locator(f"{LAUNCH_BUTTONS}:visible a")
    links = dict(visible.evaluate_all("all => all.map(each => [each.textContent, each.href])"))
    assert list(links) == ["Colab", "Kaggle", "Binder", "GitHub", "下載", "投影片"]
    notebook = "zh-TW/mxnet/self-attention-and-positional-encoding"
    assert all(notebook in link.replace("%2F", "/") for link in links.values())
    for link in visible.all()[:4]:
        assert link.get_attribute("title") == link.get_attribute("href")
    page.goto(links["投影片"])
    expect(page.locator("section.present h1")).to_have_text("自注意力與位置編碼")


def test_java_has_no_buttons_for_services_without_java(open_page: Open):
    page = open_page(f"en/{LESSON}?framework=djl")
    buttons = page.locator(f"{LAUNCH_BUTTONS}:visible a").all_inner_texts()
    assert buttons == ["Binder", "GitHub", "Download", "Slides"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_notebook_can_be_downloaded(site: Path, notebook: Notebook):
    page = (site / notebook.language / f"{notebook.lesson.name}.html").read_text(encoding="utf-8")
    link = f"../{notebook.path.relative_to(ROOT).as_posix()}"
    assert page.count(f'<a href="{link}" download>') == 1
    assert (site / notebook.language / link).read_bytes() == notebook.path.read_bytes()


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
def test_the_package_can_be_downloaded_from_the_front_page(open_page: Open, language: str):
    page = open_page(f"{language}/index.html")
    link = page.get_by_role("link", name=WHEEL)
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == WHEEL
    assert f"%pip install --no-deps ./{WHEEL}" in page.inner_text("body")
    with zipfile.ZipFile(download.value.path()) as package:
        names = [name for name in package.namelist() if "dist-info" not in name]
        contents = {name: package.read(name) for name in names}
    modules = [file.relative_to(ROOT).as_posix() for file in ROOT.glob("d2l_compat/**/*.py")]
    assert contents.keys() >= {*modules}
    assert [name for name in names if contents[name] != (ROOT / name).read_bytes()] == []


# The switch between languages


@pytest.mark.parametrize(
    "anchor",
    mark_release(
        ["relative-position-is-a-rotation", "cell-dot-products"], always=["cell-dot-products"]
    ),
)
def test_switching_the_language_keeps_the_position(open_page: Open, anchor: str):
    page = open_page(f"en/{LESSON}?framework=djl#{anchor}")
    page.wait_for_load_state()
    page.locator(".languages a").click()
    page.wait_for_url("**/zh-TW/**")
    assert page.locator("html").get_attribute("lang") == "zh-TW"
    _, _, new_anchor = page.url.partition("?framework=djl#")
    assert new_anchor.endswith(anchor)  # a heading's anchor begins with the lesson's name
    assert list_chosen_frameworks(page) == {"djl"}
    assert abs(page.locator(f"#{new_anchor}").bounding_box()["y"]) < 150


def test_a_page_without_translation_links_to_the_other_front_page(open_page: Open):
    page = open_page("en/regression.html")
    page.locator(".languages a").click()
    page.wait_for_url("**/zh-TW/index.html*")
