"""Test that the live figures show what a cache holds, and what a sampler draws from."""

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from d2l_compat._shared.cache import Slots
from d2l_compat._shared.generation import next_token_probs
from tests.lessons.live import check_fit, set_state, set_states
from tests.site.browser import Open

LESSON, FIGURE = "generation", "cache"
WORDS = ["the", "cat", "that", "the", "nurses", "sleep", "follows", "."]
PROBS = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
SHARES = (np.arange(1, 21) / 20).tolist()
# Each way's control, the sampler's argument, and their values.
LIMITS = {
    "topK": ("k", "top_k", [1, 2, 3, 4, 5]),
    "topP": ("p", "top_p", SHARES),
    "minP": ("minP", "min_p", SHARES),
}
# Every setting of the controls.
STEPS = [
    {"chunk": chunk, "step": step, "window": window}
    for chunk, window in product(range(1, 9), (False, True))
    for step in range(1, -(-8 // chunk) + 1)
]
WAYS = [{"way": "all"}]
WAYS += [
    {"way": way, name: x} for way, (name, _, values) in LIMITS.items() for x in values
]
CHOICES = [
    {"temperature": tenths / 10, **way} for tenths in range(2, 31) for way in WAYS
]


@pytest.fixture
def choosing(page: Page) -> Locator:
    return page.locator('[data-live="choosing"]')


def hold_positions(num_tokens: int, window: bool) -> list[int]:
    slots = Slots(4 if window else 8, is_rolling=window)
    return slots.held_positions(np.array([num_tokens]))[0].tolist()


def test_cache_reads_and_holds_what_the_layer_does(page: Page):
    states = set_states(page, FIGURE, STEPS)
    for given, state in zip(STEPS, states, strict=True):
        chunk, step, window = given.values()
        start, end = (step - 1) * chunk, min(step * chunk, 8)
        distances = np.arange(end)[:, None] - np.arange(end)
        is_visible = (distances >= 0) & (distances < (4 if window else 8))
        read = np.flatnonzero(is_visible[start:, :start].any(axis=0)).tolist()
        assert {*read} <= {*hold_positions(start, window)}
        assert state == given | {
            "queries": list(range(start, end)),
            "read": read,
            "slots": hold_positions(end, window),
            "scores": is_visible[start:].sum(),
            "scoresRecomputed": is_visible.sum(),
        }


@pytest.mark.parametrize("window", [False, True])
def test_matrix_and_slots_are_drawn(page: Page, live: Locator, window: bool):
    set_state(page, FIGURE, chunk=3, step=2, window=window)
    kinds = live.locator("rect").evaluate_all(
        "all => all.map((each) => each.classList[0])"
    )
    distances = np.arange(8)[:, None] - np.arange(8)
    is_visible = (distances >= 0) & (distances < (4 if window else 8))
    expected = np.full((8, 8), "live-hidden", object)
    expected[:3][is_visible[:3]] = "live-earlier"
    expected[3:6][is_visible[3:6]] = "live-now"
    np.testing.assert_array_equal(np.reshape(kinds, (8, 8)), expected)
    rows = [
        [f"{slot} {WORDS[slot]} read", f"{slot} {WORDS[slot]}"] for slot in range(3)
    ]
    rows += [["–", f"{slot} {WORDS[slot]} written"] for slot in range(3, 6)]
    if window:
        rows[0][1], rows[1][1] = rows[4][1], rows[5][1]
    rows = rows[:4] if window else [*rows, ["–", "–"], ["–", "–"]]
    shown = live.locator("tbody td").evaluate_all(
        "all => all.map((each) => each.textContent)"
    )
    assert [text.strip() for text in shown] == [text for row in rows for text in row]


def test_sentence_counts_keys_and_scores(page: Page, live: Locator):
    sentence = live.locator("p output")
    set_state(page, FIGURE, chunk=1, step=8, window=False)
    expect(sentence).to_have_text(
        "This step computes 1 key, reads 7 keys from the cache, and computes 8 scores; "
        "recomputing the whole text so far would take 36."
    )
    set_state(page, FIGURE, chunk=3, step=2, window=True)
    expect(sentence).to_contain_text("18. It replaces 2 of the keys that it reads.")


def test_keyboard_changes_chunk_step_and_window(page: Page, live: Locator):
    set_state(page, FIGURE, chunk=2, step=3, window=False)
    live.get_by_label("Chunk").press("End")
    expect(live.get_by_label("Step", exact=True)).to_have_attribute(
        "aria-valuetext", "1 of 1"
    )
    live.get_by_label("Chunk").press("Home")
    live.get_by_label("Step", exact=True).press(
        "ArrowRight"
    )  # from 3, which is restored
    live.get_by_label("Window of 4").press("Space")
    assert set_state(page, FIGURE)["slots"] == [0, 1, 2, 3]
    sentence = live.locator("p output").inner_text()
    expect(live.locator("[role=status]")).to_have_text(sentence)


def test_probabilities_are_those_of_the_sampler(page: Page):
    states = set_states(page, "choosing", CHOICES)
    for given, state in zip(CHOICES, states, strict=True):
        assert {name: state[name] for name in given} == pytest.approx(given)
        name, argument, _ = LIMITS.get(given["way"], ("k", "top_k", []))
        options = {"temperature": given["temperature"], argument: given.get(name)}
        expected = next_token_probs(np.log(PROBS), **options)
        np.testing.assert_allclose(state["probs"], expected, atol=1e-12)
        tempered = PROBS ** (1 / given["temperature"]) * (expected > 0)
        np.testing.assert_allclose(
            state["probs"], tempered / tempered.sum(), atol=1e-12
        )


@pytest.mark.parametrize(
    ("settings", "after", "sentence"),
    [
        ({"way": "all"}, [0.4, 0.25, 0.2, 0.1, 0.05], "All 5 words are left."),
        ({"way": "topK", "k": 1}, [1], "1 of the 5 words is left; it had 0.40"),
        ({"way": "topP", "p": 0.8}, [0.47, 0.29, 0.24], "3 of the 5 words are left; they had 0.85"),
        ({"way": "minP", "minP": 0.6}, [0.62, 0.38], "2 of the 5 words are left; they had 0.65"),
    ],
)  # fmt: skip
def test_bars_and_numbers_match(
    page: Page, choosing: Locator, settings, after, sentence
):
    state = set_state(page, "choosing", temperature=1, **settings)
    numbers = [f"{x:.2f}" for x in after] + ["cut"] * (5 - len(after))
    expect(choosing.locator("tbody td:last-child")).to_have_text(numbers)
    expect(choosing.locator("p output")).to_contain_text(sentence)
    for kind, shares in (("original", PROBS), ("bar", state["probs"])):
        widths = choosing.locator(f".live-{kind}").evaluate_all(
            "all => all.map((each) => each.offsetWidth / each.parentElement.clientWidth)"
        )
        np.testing.assert_allclose(widths, shares, atol=0.01)


def test_keyboard_chooses_a_way_and_its_limit(page: Page, choosing: Locator):
    set_state(page, "choosing", temperature=1, way="all", k=3)
    choosing.get_by_label("all words").press("ArrowRight")
    choosing.get_by_label("k", exact=True).press("ArrowLeft")
    choosing.get_by_label("Temperature").press("ArrowRight")
    state = set_state(page, "choosing")
    assert (state["way"], state["k"], state["temperature"]) == ("topK", 2, 1.1)
    sentence = choosing.locator("p output").inner_text()
    expect(choosing.locator("[role=status]")).to_have_text(sentence)


@pytest.mark.release
@pytest.mark.parametrize("language", ["en", "zh-TW"])
def test_figures_fit_on_a_phone_and_on_a_slide(open_page: Open, language: str):
    settings = {"cache": STEPS, "choosing": CHOICES}
    phone = {"viewport": {"width": 320, "height": 900}}
    check_fit(open_page(f"{language}/{LESSON}.html", **phone), settings)
    deck = open_page(f"slides/{language}/pytorch/{LESSON}.html")
    check_fit(deck, settings, max_height=700)
