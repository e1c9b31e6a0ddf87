"""Test that the live figure shows the notebook's numbers, and can be operated by keyboard and pointer."""

import re
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from tests.lessons.live import get_state, read_cells, set_state, set_states
from tests.site.browser import Open

LESSON, FIGURE = "multi-head-attention", "heads"
FRUITS = "apple", "lemon", "pear"
PRICES = np.array([50, 40, 70], float)
APPLE, LEMON, PEAR = range(3)
PEAR_LEMON = {"first": PEAR, "second": LEMON, "loudness": 6}
NUMBER = re.compile(r"-?\d+\.\d+")


def read_printed_numbers(name: str) -> list[list[str]]:
    """Return the numbers of a cell's output, line by line."""
    lines = "".join(
        output.get("text", "") for output in read_cells(LESSON)[name].outputs
    )
    return [NUMBER.findall(line) for line in lines.splitlines()]


def read_table_numbers(live: Locator) -> list[list[str]]:
    """Return the numbers of each head's table: its weights, and its answer."""
    return [
        NUMBER.findall(" ".join(table.locator("td").all_inner_texts()))
        for table in live.locator("table").all()
    ]


def compute_attention(query: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the weights of the three fruits, and the average of their prices."""
    powers = np.exp(np.eye(3) @ query)
    weights = powers / powers.sum()
    return weights, weights @ PRICES


def test_tables_match_notebook(page: Page, live: Locator):
    pear, lemon, both = read_printed_numbers("one-average")
    set_state(page, FIGURE, **PEAR_LEMON, twoHeads=False)
    assert read_table_numbers(live) == [both]
    set_state(page, FIGURE, twoHeads=True)
    assert read_table_numbers(live) == [pear, lemon]


def test_difference_matches_notebook_in_either_order(page: Page, live: Locator):
    heads, *differences = read_printed_numbers("two-averages")
    for first, second, difference in zip(
        (PEAR, LEMON), (LEMON, PEAR), differences, strict=True
    ):
        set_state(page, FIGURE, first=first, second=second, loudness=6, twoHeads=True)
        (cents,) = difference
        a, b = heads if first == PEAR else heads[::-1]
        caption = f"{a} − {b} = {cents}: a {FRUITS[first]} costs {cents} cents more than a {FRUITS[second]}."
        expect(live.locator("p output")).to_have_text(caption.replace("-", "−"))


@pytest.mark.parametrize("loudness", [0, 1, 6, 10])
@pytest.mark.parametrize("two_heads", [False, True])
def test_numbers_match_attention(page: Page, loudness: int, two_heads: bool):
    orders = list(product(range(3), repeat=2))
    settings = [
        {"first": a, "second": b, "loudness": loudness, "twoHeads": two_heads}
        for a, b in orders
    ]
    live_states = set_states(page, FIGURE, settings)
    for (first, second), live_state in zip(orders, live_states, strict=True):
        a, b = loudness * np.eye(3)[[first, second]]
        queries = [a, b] if two_heads else [a + b]
        weights, answers = zip(*map(compute_attention, queries), strict=True)
        np.testing.assert_array_equal(live_state["queries"], queries)
        np.testing.assert_allclose(live_state["weights"], weights, atol=1e-12)
        np.testing.assert_allclose(live_state["answers"], answers, atol=1e-12)
        if two_heads:
            difference = answers[0] - answers[1]
            assert live_state["difference"] == pytest.approx(difference, abs=1e-12)
        else:
            assert live_state["difference"] is None
            (answer,) = live_state["answers"]
            assert PRICES.min() - 1e-9 <= answer <= PRICES.max() + 1e-9


def test_one_head_ignores_order_of_fruits(page: Page):
    pear_first = set_state(page, FIGURE, **PEAR_LEMON, twoHeads=False)
    lemon_first = set_state(page, FIGURE, first=LEMON, second=PEAR)
    assert pear_first["answers"] == lemon_first["answers"]


def test_caption_calls_one_head_an_average(page: Page, live: Locator):
    set_state(page, FIGURE, first=APPLE, second=PEAR, loudness=6, twoHeads=False)
    caption = (
        "One head answers 60.0 cents: an average of the three prices, "
        "and not the difference asked for, 50 − 70 = −20."
    )
    expect(live.locator("p output")).to_have_text(caption)


def test_rounding_is_marked_as_approximate(page: Page):
    caption = page.locator('[data-live="heads"] p output')
    set_state(page, FIGURE, first=PEAR, second=LEMON, loudness=7, twoHeads=True)
    expect(caption).to_contain_text("70.0 − 40.0 ≈ 29.9")
    for loudness, first, second in product(range(11), range(3), range(3)):
        set_state(page, FIGURE, first=first, second=second, loudness=loudness)
        subtraction, _ = caption.inner_text().split(":")
        a, _, b, sign, difference = subtraction.replace("−", "-").split()
        adds_up = abs(float(a) - float(b) - float(difference)) < 0.01
        assert sign == ("=" if adds_up else "≈"), subtraction


def test_bars_are_as_long_as_weights(page: Page, live: Locator):
    weights = set_state(
        page, FIGURE, first=PEAR, second=APPLE, loudness=1, twoHeads=True
    )["weights"]
    shares = live.locator(".live-bar").evaluate_all(
        "bars => bars.map((bar) => bar.getBoundingClientRect().width / "
        "(bar.parentElement.clientWidth - parseFloat(getComputedStyle(bar.parentElement).paddingRight)))"
    )
    np.testing.assert_allclose(shares, np.ravel(weights), atol=0.02)


def test_keyboard_sets_fruits_loudness_and_heads(page: Page, live: Locator):
    before = set_state(page, FIGURE, **PEAR_LEMON, twoHeads=False)
    first = live.get_by_role("group", name="First fruit")
    second = live.get_by_role("group", name="Second fruit")
    first.get_by_label("pear").press("ArrowLeft")
    second.get_by_label("lemon").press("ArrowLeft")
    live.get_by_label("How loud").press("End")
    live.get_by_label("Two heads").press("Space")
    after = get_state(page, FIGURE)
    changes = {
        name: (before[name], after[name])
        for name in ("first", "second", "loudness", "twoHeads")
    }
    assert changes == {
        "first": (PEAR, LEMON),
        "second": (LEMON, APPLE),
        "loudness": (6, 10),
        "twoHeads": (False, True),
    }
    expect(live.locator("table")).to_have_count(2)
    caption = live.locator("p output").inner_text()
    expect(live.locator("[role=status]")).to_have_text(caption)


def test_clicking_words_sets_controls(page: Page, live: Locator):
    set_state(page, FIGURE, **PEAR_LEMON, twoHeads=False)
    live.get_by_role("group", name="Second fruit").get_by_text("apple").click()
    live.get_by_text("Two heads").click()
    after = get_state(page, FIGURE)
    assert (after["first"], after["second"], after["twoHeads"]) == (PEAR, APPLE, True)


@pytest.mark.release
def test_text_is_in_page_language(open_page: Open):
    page = open_page(f"zh-TW/{LESSON}.html")
    live = page.locator('[data-live="heads"]')
    expect(live.locator("p output")).to_have_text(
        "一個頭的答案是 55.0 元：這是三種價錢的平均，並不是我們要的差，70 − 40 = 30。"
    )
    live.get_by_label("兩個頭").check()
    expect(live.locator("p output")).to_have_text(
        "69.9 − 40.1 = 29.8，所以梨子比檸檬貴 29.8 元。"
    )
