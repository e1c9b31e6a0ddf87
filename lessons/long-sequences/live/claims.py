"""Test that the live figures compute a softmax in one pass, and how far windows reach."""

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.lessons.live import check_fit, set_state, set_states
from tests.site.browser import Open

LESSON, FIGURE = "long-sequences", "online"
SCORES = np.array([1.0, 3, 2, 0, 4, 1, 2, 3])
VALUES = 10 * np.arange(1, 9)
# Every setting of the controls.
STEPS = [
    {"blockSize": size, "step": step}
    for size in range(1, 9)
    for step in range(1, -(-8 // size) + 1)
]
WINDOWS = [
    {"window": window, "layers": layers}
    for window, layers in product(range(1, 9), range(1, 7))
]


@pytest.fixture
def reach(page: Page) -> Locator:
    return page.locator('[data-live="reach"]')


def sum_powers(num_keys: int) -> dict[str, float]:
    """Return what is kept after some keys, computed from all of them at once."""
    m = SCORES[:num_keys].max(initial=-np.inf)
    powers = np.exp(SCORES[:num_keys] - m)
    return {"m": m, "l": powers.sum(), "o": powers @ VALUES[:num_keys]}


def count_reached(window: int, layers: int) -> list[int]:
    """Return how many tokens of each row can change the last output, inputs first."""
    distances = np.arange(24)[:, None] - np.arange(24)
    mask = np.where((distances >= 0) & (distances < window), 1.0, 0.0)
    powers = [np.linalg.matrix_power(mask, k) for k in range(layers, -1, -1)]
    return [np.count_nonzero(power[-1]) for power in powers]


def test_blocks_give_the_softmax_of_what_was_read(page: Page):
    states = set_states(page, FIGURE, STEPS)
    for given, state in zip(STEPS, states, strict=True):
        read = min(given["blockSize"] * given["step"], 8)
        sums, final = sum_powers(read), sum_powers(8)
        results = {"result": sums["o"] / sums["l"], "final": final["o"] / final["l"]}
        assert state == pytest.approx(given | {"read": read} | sums | results)


@pytest.mark.parametrize("given", STEPS, ids=str)
def test_bars_and_table_show_the_step(page: Page, live: Locator, given):
    state = set_state(page, FIGURE, **given)
    start, read = given["blockSize"] * (given["step"] - 1), state["read"]
    tops, kinds = live.locator("rect").evaluate_all(
        "all => [all.map((bar) => bar.y.baseVal.value), all.map((bar) => bar.classList[0])]"
    )
    names = np.repeat(["earlier", "now", "later"], [start, read - start, 8 - read])
    assert kinds == [f"live-{name}" for name in names]
    points = live.locator("polyline").get_attribute("points").split()
    x, y = map(float, points[-1].split(","))
    np.testing.assert_allclose([x, y], [44 + 27 * read, min(tops[:read]) + 1])
    before, after = sum_powers(start), sum_powers(read)
    shrink = np.exp(before["m"] - after["m"])
    shown = live.locator("tbody tr").evaluate_all(
        "all => all.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
    )
    for row, name in enumerate("lo", 1):
        old = before[name] * shrink
        expected = [before[name], old, after[name] - old, after[name]]
        np.testing.assert_allclose(np.array(shown[row], float), expected, atol=5e-4)
    results = [f"{state[name]:.3f}" for name in ("result", "final")]
    assert [row[-1] for row in shown[3:]] == results


@pytest.mark.parametrize(
    ("size", "step", "words"),
    [
        (1, 2, "from 1 to 3, so the old sums shrink by the factor e^(1 − 3) = 0.135"),
        (1, 3, "is still 3, so the old sums stay as they are: e^(3 − 3) = 1. After 3"),
        (8, 1, "All 8 keys are read: o / l is 49.211"),
    ],
)
def test_sentence_has_the_numbers(page: Page, live: Locator, size, step, words):
    set_state(page, FIGURE, blockSize=size, step=step)
    expect(live.locator("p output")).to_contain_text(words)


@pytest.mark.parametrize("given", WINDOWS, ids=str)
def test_cone_is_what_can_change_the_last_output(page: Page, reach: Locator, given):
    counts = count_reached(**given)
    assert set_state(page, "reach", **given) == given | {"reached": counts[0]}
    dots = reach.locator("circle:not(.live-target)").evaluate_all(
        "all => all.map((dot) => dot.classList[0] === 'live-reached')"
    )
    np.testing.assert_array_equal(
        np.reshape(dots, (-1, 24)), np.arange(24) >= 24 - np.array(counts)[:, None]
    )
    number = given["layers"] * (given["window"] - 1) + 1
    amount = "all 24" if number > 24 else f"{number} of the 24"
    expect(reach.locator("p output")).to_contain_text(f"depends on {amount} tokens")
    expect(reach.locator("p output")).to_contain_text(f" + 1 = {number}")


def test_keyboard_changes_both_figures(page: Page, live: Locator, reach: Locator):
    set_state(page, FIGURE, blockSize=2, step=3)
    for key in ("End", "Home"):
        live.get_by_label("Block size").press(key)
    live.get_by_label("Step", exact=True).press("ArrowRight")
    assert set_state(page, FIGURE)["read"] == 4  # step 3 is restored
    set_state(page, "reach", window=4, layers=3)
    reach.get_by_label("Window w").press("ArrowRight")
    reach.get_by_label("Layers L").press("ArrowLeft")
    assert set_state(page, "reach")["reached"] == 9
    for figure in (live, reach):
        sentence = figure.locator("p output").inner_text()
        expect(figure.locator("[role=status]")).to_have_text(sentence)


@pytest.mark.release
@pytest.mark.parametrize("language", ["en", "zh-TW"])
def test_figures_fit_on_a_phone_and_on_a_slide(open_page: Open, language: str):
    settings = {"online": STEPS, "reach": WINDOWS}
    phone = {"viewport": {"width": 320, "height": 900}}
    check_fit(open_page(f"{language}/{LESSON}.html", **phone), settings)
    deck = open_page(f"slides/{language}/pytorch/{LESSON}.html")
    check_fit(deck, settings, max_height=700)
