"""Test the common features of all live figures. LESSON/live/claims.py tests their numbers."""

import numpy as np
import pytest

from tests.site.browser import Open
from tests.site.conftest import LESSON, NOTEBOOKS, PAGES, mark_release
from tools.weave.prose import read_passages

FIGURES = {
    f"{notebook.language}/{notebook.lesson.name}.html": [
        passage.block.name
        for passage in read_passages(notebook.text)
        if passage.block and passage.block.kind == "live"
    ]
    for notebook in NOTEBOOKS
}
ENGLISH = [path for path in PAGES if path.startswith("en/")]


@pytest.mark.parametrize("path", mark_release(PAGES, always=ENGLISH))
def test_every_control_has_a_name_and_reacts_to_keys(open_page: Open, path: str):
    page = open_page(path)
    assert FIGURES[path]
    for name in dict.fromkeys(FIGURES[path]):
        live = page.locator(f'[data-live="{name}"]')
        assert live.get_attribute("aria-label")
        for control in live.locator("input, button").all():
            assert control.evaluate(
                "each => Boolean(each.labels?.length || each.textContent.trim() || each.ariaLabel)"
            )
        for slider in live.locator("input[type=range]").all():
            before = slider.input_value()
            slider.focus()
            page.keyboard.press("ArrowRight" if before != slider.get_attribute("max") else "Home")
            assert slider.input_value() != before


@pytest.mark.parametrize("path", mark_release(PAGES, always=ENGLISH))
@pytest.mark.parametrize("width", mark_release([320, 1100], always=[320]))
def test_labels_and_numbers_fit(open_page: Open, path: str, width: int):
    page = open_page(path, viewport={"width": width, "height": 900})
    for end in "End", "Home":
        for slider in page.locator("[data-live] input[type=range]").all():
            slider.press(end)
        broken = page.evaluate(
            """() => Array.from(
              document.querySelectorAll(".live-slider :is(label, output), .live-matrix > *"),
              (each) => {
                const text = document.createRange();
                text.selectNodeContents(each);
                const fits = each.scrollWidth <= each.clientWidth || !each.clientWidth;
                return text.getClientRects().length === 1 && fits ? "" : each.textContent;
              },
            ).filter(Boolean)"""
        )
        assert broken == []
        dials = page.locator(".live-dials > div")
        assert not any(
            dials.evaluate_all("all => all.map((each) => each.scrollWidth > each.clientWidth)")
        )


def test_attention_agrees_with_the_formula(open_page: Open):
    page = open_page(f"en/{LESSON}")
    Q, K, V = np.random.default_rng(0).normal(size=(3, 5, 4))
    result = page.evaluate(
        "([Q, K, V]) => d2lLive.mathematics.attention(Q, K, V)", [x.tolist() for x in (Q, K, V)]
    )
    scores = np.exp(Q @ K.T / 2)
    weights = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result["weights"], weights, atol=1e-12)
    np.testing.assert_allclose(result["outputs"], weights @ V, atol=1e-12)


@pytest.mark.release
def test_reduced_motion_stops_animations(open_page: Open):
    page = open_page(f"en/{LESSON}", reduced_motion="reduce")
    live = page.locator('[data-live="shuffle"]')
    live.get_by_role("button", name="Shuffle").click()
    assert live.evaluate("root => root.getAnimations({ subtree: true }).length") == 0
