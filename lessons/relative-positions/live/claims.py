"""Test that the live figure's scores depend only on distance if vectors are turned, but not if positions are added."""

import re

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from tests.lessons.live import get_state, set_state, set_states
from tests.shim.reference import positional_encoding, rotary
from tests.site.browser import Open

LESSON = "relative-positions"
FIGURE = "turning-hands"
OMEGA = np.array([1, 1 / np.sqrt(10), 1 / 10])
CONTENT = np.zeros((1, 16))
CONTENT[0, [0, 2, 4]] = 1  # (1, 0) on each of the three dials
POSITIONS_AND_DISTANCES = [(0, 0), (1, 1), (7, 1), (7, 5), (23, 20), (60, 0), (60, 13)]
SUM = re.compile(r"(Turned|Added): (.*) ([=≈]) (\S+)\.")


def turn_hands(position: int) -> NDArray[np.float64]:
    """Return the three hands at a position: the turned content."""
    return rotary(CONTENT[None], [position])[0, 0, :6].reshape(3, 2)


def add_positions(position: int) -> NDArray[np.float64]:
    """Return the sum of the content and a row of the encoding, whose pairs are (sin, cos)."""
    pairs = positional_encoding(position + 1, 16)[position, :6].reshape(3, 2)
    return CONTENT[0, :6].reshape(3, 2) + pairs[:, ::-1]


def compute_added_scores(distance: int) -> list[float]:
    """Return the score at each position of the query if positions are added: a sum of four dot products."""
    a = np.arange(distance, 61)[:, None] * OMEGA
    b = a - distance * OMEGA
    return list((1 + np.cos(a) + np.cos(b) + np.cos(a - b)).sum(axis=1))


def read_lines(live: Locator, kind: str) -> NDArray[np.float64]:
    """Return the end points x1, y1, x2, y2 of the lines of one kind, one line per dial."""
    lines = live.locator(f"line.live-{kind}").evaluate_all(
        "all => all.map(({ x1, y1, x2, y2 }) => [x1, y1, x2, y2].map((each) => each.baseVal.value))"
    )
    return np.array(lines)


def read_numbers(text: str) -> list[float]:
    terms = re.findall(r"(?:([+−])\s)?(−?\d+\.\d+)", text)
    return [float((sign + x).replace("−", "-")) for sign, x in terms]


@pytest.mark.parametrize("add", [False, True], ids=["turned", "added"])
@pytest.mark.parametrize(("i", "distance"), POSITIONS_AND_DISTANCES)
def test_hands_match_formula_and_are_drawn_to_scale(
    page: Page, live: Locator, i: int, distance: int, add: bool
):
    state = set_state(page, FIGURE, i=i, distance=distance, add=add)
    make_hands = add_positions if add else turn_hands
    query, key = make_hands(i), make_hands(i - distance)
    for kind, name, hands in ("query", "queries", query), ("key", "keys", key):
        np.testing.assert_allclose(state[name], hands, atol=1e-12)
        x1, y1, x2, y2 = read_lines(live, kind).T
        drawn = np.stack([x2 - x1, y1 - y2], axis=1)  # in SVG, y grows downward
        np.testing.assert_allclose(drawn, hands, atol=1e-6)
        np.testing.assert_allclose(np.hypot(x2, y2), 1, atol=1e-6)  # on the rim
        assert (x1 == (-1 if add else 0)).all()
    content = [[-1, 0, 0, 0] if add else [0, 0, 1, 0]] * 3
    np.testing.assert_array_equal(read_lines(live, "content"), content)
    products = (query * key).sum(axis=1)
    np.testing.assert_allclose(state["products"], products, atol=1e-12)
    assert state["score"] == pytest.approx(products.sum(), abs=1e-12)


@pytest.mark.parametrize("add", [False, True], ids=["turned", "added"])
@pytest.mark.parametrize("distance", [0, 1, 2, 7, 20])
def test_score_is_constant_unless_positions_are_added(
    page: Page, distance: int, add: bool
):
    positions = range(distance, 61)
    scores = [np.cos(distance * OMEGA).sum()] * len(positions)
    if add:
        scores = compute_added_scores(distance)
    settings = [{"i": i, "distance": distance, "add": add} for i in positions]
    states = set_states(page, FIGURE, settings)
    lowest, highest = min(scores), max(scores)
    expected = {"i": positions, "score": scores, "lowest": lowest, "highest": highest}
    for name, values in expected.items():
        actual = [state[name] for state in states]
        np.testing.assert_allclose(actual, values, atol=1e-12)
    assert (highest - lowest > 5) == add


def test_sentence_describes_moving_query_and_key_together(page: Page, live: Locator):
    for distance in range(21):
        where = f"{distance} behind" if distance else "at the same place"
        beginning = f"Move both, i from {distance} to 60 with the key always {where}: "
        state = set_state(page, FIGURE, distance=distance, add=False)
        ending = f"the score stays at {state['score']:.2f}."
        expect(live).to_contain_text(beginning + ending.replace("-", "−"))
        set_state(page, FIGURE, add=True)
        scores = compute_added_scores(distance)
        ending = f"the score changes, between {min(scores):.2f} and {max(scores):.2f}."
        expect(live).to_contain_text(beginning + ending.replace("-", "−"))


def test_sign_is_approximate_if_rounded_terms_do_not_add_up(page: Page, live: Locator):
    signs = set()
    cases = [(30, distance, False) for distance in range(21)]
    cases += [(i, distance, True) for i in range(20, 61, 4) for distance in (0, 3, 20)]
    for i, distance, add in cases:
        state = set_state(page, FIGURE, i=i, distance=distance, add=add)
        sentence = live.locator("p output").first.text_content() or ""
        sentence = sentence.replace("\xa0", " ")
        mode, terms, sign, total = SUM.fullmatch(sentence).groups()
        assert mode == ("Added" if add else "Turned")
        assert "-" not in sentence
        assert read_numbers(terms) == pytest.approx(state["products"], abs=0.0051)
        assert read_numbers(total) == pytest.approx([state["score"]], abs=0.0051)
        adds_up = abs(sum(read_numbers(terms)) - read_numbers(total)[0]) < 0.001
        assert sign == ("=" if adds_up else "≈"), sentence
        signs.add(sign)
    assert signs == {"=", "≈"}


def test_dials_show_products_and_angles(page: Page, live: Locator):
    set_state(page, FIGURE, i=7, distance=2, add=False)
    expect(live.locator(".live-dials > div")).to_have_text(
        [
            re.compile("ω₀ = 1product −0.42114.6° apart"),
            re.compile("ω₁ = 0.316product 0.8136.2° apart"),
            re.compile("ω₂ = 0.1product 0.9811.5° apart"),
        ]
    )
    expect(live.get_by_role("img").first).to_have_attribute(
        "aria-label",
        "Dial 0: the query is (0.75, 0.66), the key (0.28, −0.96), 114.6° apart",
    )


def test_hands_differ_in_more_than_colour(page: Page, live: Locator):
    set_state(page, FIGURE, i=60, distance=0, add=False)  # the hands coincide
    width = "each => parseFloat(getComputedStyle(each).strokeWidth)"
    query, key = (live.locator(f".live-{kind}").first for kind in ("query", "key"))
    assert 2 * query.evaluate(width) < key.evaluate(width)
    order = live.locator("svg g").first.evaluate(
        "all => Array.from(all.children, (each) => `${each.tagName} ${each.classList}`)"
    )
    assert order.index("line live-key") < order.index("line live-query")
    assert order.index("path live-key-tip") < order.index("circle live-query-tip")


def test_key_is_never_before_position_zero(page: Page):
    before = set_state(page, FIGURE, i=7, distance=5, add=False)
    moved = set_state(page, FIGURE, distance=20)
    assert (before["i"], moved["i"]) == (7, 20)
    np.testing.assert_array_equal(moved["keys"], [[1, 0]] * 3)
    assert set_state(page, FIGURE, distance=3)["i"] == 7  # as set before


def test_keyboard_changes_position_distance_and_mode(page: Page, live: Locator):
    before = set_state(page, FIGURE, i=7, distance=4, add=False)
    live.get_by_label("Position i").press("ArrowRight")
    live.get_by_label("Distance i − j").press("ArrowLeft")
    moved = get_state(page, FIGURE)
    assert (moved["i"], moved["distance"]) == (before["i"] + 1, before["distance"] - 1)
    expect(live).to_contain_text("query, position 8")
    expect(live).to_contain_text("key, position 5")
    live.get_by_label("Add instead of turn").press("Space")
    after = get_state(page, FIGURE)
    assert (after["add"], after["queries"]) != (False, moved["queries"])
    sentences = " ".join(live.locator("p output").all_inner_texts())
    expect(live.locator("[role=status]")).to_have_text(sentences)


@pytest.mark.release
def test_text_is_in_page_language(open_page: Open):
    page = open_page(f"zh-TW/{LESSON}.html")
    live = page.locator('[data-live="turning-hands"]')
    set_state(page, FIGURE, i=7, distance=1, add=False)
    expect(live.locator("p output")).to_have_text(
        [
            "旋轉：0.54 + 0.95 + 1.00 = 2.49。",
            "兩者一起移動，i 從 1 到 60，鍵始終站在查詢前面 1 個位置：分數一直是 2.49。",
        ]
    )
    live.get_by_label("不旋轉，改成加上位置").check()
    scores = compute_added_scores(1)
    expect(live.locator("p output").last).to_have_text(
        "兩者一起移動，i 從 1 到 60，鍵始終站在查詢前面 1 個位置：分數跟著變，"
        f"最低 {min(scores):.2f}，最高 {max(scores):.2f}。"
    )
    expect(live).to_contain_text("查詢，位置 7")
