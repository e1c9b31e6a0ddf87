"""Test that the live figures show the lesson's numbers, and can be operated by keyboard."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.lessons.cells import softmax
from tests.lessons.live import get_state, read_cells, set_state
from tests.shim.reference import positional_encoding
from tests.site.browser import Open

LESSON = "self-attention-and-positional-encoding"


def read_table(live: Locator) -> tuple[list[list[str]], str]:
    """Return each word's score and weight, and the sentence about the query."""
    rows = live.locator("tbody tr").all()
    columns = [row.locator("td").all_inner_texts() for row in rows]
    return [[row[2], row[4]] for row in columns], live.locator("p output").inner_text()


@pytest.mark.parametrize("path", [f"en/{LESSON}.html", "en/index.html"])
def test_word_looks_around_as_in_notebook(open_page: Open, path: str):
    live = open_page(path).locator('[data-live="look-around"]')
    (output,) = read_cells(LESSON)["six-words"].outputs
    *lines, last = output["text"].splitlines()
    rows, sentence = read_table(live)
    assert rows == [line.split()[:2] for line in lines]
    vector = re.match(r"\(.*?\)", last)[0]
    assert f"was (1, 0) and is now {vector}" in sentence
    assert "it attends most to “cat”: 0.75." in sentence


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("query", range(4))
def test_words_look_around_by_formula(page: Page, query: int, masked: bool):
    X = np.array([[1, -2], [0.5, 3], [2, 2], [-1, 0]])
    settings = {"sentence": "one two three four", "query": query, "masked": masked}
    state = set_state(page, "look-around", **settings, vectors=X.tolist())
    is_hidden = masked & (np.arange(4) > query)
    weights = softmax(np.where(is_hidden, -np.inf, X @ X[query]))
    np.testing.assert_allclose(state["weights"], weights, atol=1e-12)
    np.testing.assert_allclose(state["output"], weights @ X, atol=1e-12)
    assert [score is None for score in state["scores"]] == is_hidden.tolist()


def test_table_follows_sentence_query_mask_and_numbers(open_page: Open):
    page = open_page(f"en/{LESSON}.html")
    live = page.locator('[data-live="look-around"]')
    sentence = live.get_by_label("Type a sentence:")
    sentence.fill("  The dog, it ran  away ")
    words = live.locator("tbody th").all_inner_texts()
    assert " ".join(words) == "The dog, it ran away"
    assert live.locator("[aria-pressed=true]").all_inner_texts() == ["away"]
    live.get_by_role("button", name="it").press("Enter")
    assert live.locator("[aria-pressed=true]").all_inner_texts() == ["it"]
    live.get_by_label("Hide what comes later").check()
    rows, _ = read_table(live)
    assert rows[3:] == [["−∞", "0.00"]] * 2
    live.get_by_label("it: thing").fill("0")
    rows, answer = read_table(live)
    assert [weight for _, weight in rows] == ["0.33"] * 3 + ["0.00"] * 2
    assert "is now (1.00, 0.00)" in answer
    sentence.fill("a b c d e f g h i j")
    assert live.locator("tbody tr").count() == 8


def test_clock_hands_match_row_of_encoding(page: Page):
    for i in (0, 1, 17, 59):
        values = set_state(page, "clock-hands", i=i)["values"]
        np.testing.assert_allclose(values, positional_encoding(60, 16)[i], atol=1e-12)


@pytest.mark.parametrize(("d", "base"), [(7, 100), (32, 10000), (64, 100000)])
def test_heat_map_matches_formula_at_any_width_and_base(page: Page, d: int, base: int):
    state = set_state(page, "heatmap", d=d, base=base, length=20)
    column = np.arange(d)
    angle = np.arange(20)[:, None] / float(state["base"]) ** (2 * (column // 2) / d)
    expected = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    np.testing.assert_allclose(state["P"], expected, atol=1e-12)


@pytest.mark.parametrize("i", [20, 28, 36])
def test_dot_products_match_encoding(page: Page, i: int):
    P = positional_encoding(60, 32)
    state = set_state(page, "dot-product", i=i, distance=0)
    expected = [P[i] @ P[i - distance] for distance in range(-20, 21)]
    np.testing.assert_allclose(state["products"], expected, atol=1e-9)
    assert state["product"] == pytest.approx(16)
    assert state["spread"] < 5e-5


def test_rotation_turns_position_to_target(page: Page):
    P = positional_encoding(80, 8)
    matrices = []
    for i in (0, 7, 59):
        state = set_state(page, "rotation", i=i, delta=5)
        assert state["residual"] < 1e-12
        np.testing.assert_allclose(np.ravel(state["turned"]), P[i + 5], atol=1e-12)
        matrices.append(state["matrices"])
    assert matrices[0] == matrices[1] == matrices[2]


def test_shuffling_matters_only_with_positions(page: Page):
    order = [3, 0, 5, 1, 4, 2]  # as in the notebook
    without_positions = set_state(page, "shuffle", order=order, positions=False)
    assert without_positions["difference"]["outputs"] < 5e-5
    with_positions = set_state(page, "shuffle", order=order, positions=True)
    assert with_positions["difference"]["outputs"] > 0.01


def test_arrow_keys_move_probe_of_heat_map(page: Page):
    live = page.locator('[data-live="heatmap"]')
    before = get_state(page, "heatmap")
    live.locator("[tabindex='0']").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    after = get_state(page, "heatmap")
    assert (after["row"], after["column"]) == (before["row"] + 1, before["column"] + 1)
    expect(live).to_contain_text(f"{after['value']:.4f}".replace("-", "−"))
