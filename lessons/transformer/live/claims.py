"""Test that the live figure computes what NumPy does with the same stored weights."""

import base64
import json
import random

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.lessons.live import check_fit, set_state, set_states
from tests.lessons.transformer import ADJECTIVES, NOUNS, VERBS, Transformer, translate
from tests.site.browser import Open
from tools.weave.lessons import ROOT

LESSON, FIGURE = "transformer", "translator"
STORED = ROOT / "lessons" / LESSON / "live" / "shared" / "weights.js"
LANGUAGE, WEIGHTS = (
    json.loads(text.split(" = ")[1].rstrip(";\n"))
    for text in STORED.read_text("utf-8").split("d2lLive.")[1:]
)
LONGEST = "the small horses followed the happy queens ."
NORM = {"weight": "gamma", "bias": "beta"}


def draw_sentence(seed: int) -> str:
    rng = random.Random(seed)
    a, b = (rng.choice(["", *ADJECTIVES]) for _ in range(2))
    c, d = (rng.choice([*NOUNS]) + rng.choice(["", "s"]) for _ in range(2))
    return " ".join(f"the {a} {c} {rng.choice([*VERBS])} the {b} {d} .".split())


SENTENCES = [LONGEST, *map(draw_sentence, range(200))]


def read_model() -> Transformer:
    """Read a byte for the scale of each row, and then a byte for each number."""
    data, shapes, parts = base64.b64decode(WEIGHTS["data"]), WEIGHTS["shapes"], {}
    num_rows = sum(rows for rows, _ in shapes.values())
    scales = 2 ** (np.frombuffer(data, np.uint8, num_rows) / -16)
    numbers = np.frombuffer(data, np.int8, offset=num_rows)
    for name, (rows, columns) in shapes.items():
        matrix = numbers[: rows * columns].reshape(rows, columns) * scales[:rows, None]
        numbers, scales = numbers[rows * columns :], scales[rows:]
        path, kind = name.rsplit(".", 1)
        part = parts.setdefault(path, {})
        if rows == 1:
            part[NORM[kind] if "norm" in path else kind] = matrix[0]
        else:
            part |= {"table": matrix, "weight": matrix.T}  # for embeddings, for others
    return Transformer(parts, WEIGHTS["heads"], epsilon=1e-5, rms_epsilon=0)


def test_every_sentence_is_translated_right(page: Page):
    settings = [{"sentence": text, "written": 8} for text in SENTENCES]
    for given, state in zip(settings, set_states(page, FIGURE, settings), strict=True):
        assert (state["words"], state["origins"]) == translate(
            given["sentence"].split()
        )


@pytest.mark.parametrize("text", SENTENCES[:8])
def test_probabilities_and_weights_are_those_of_numpy(page: Page, text: str):
    source, (target, _) = text.split(), translate(text.split())
    read = [LANGUAGE["source"].index(word) for word in source]
    written = [LANGUAGE["target"].index(word) for word in ["<start>", *target[:-1]]]
    logits, (weights,) = read_model().translator(np.array([read]), np.array([written]))
    powers = np.exp(logits[0])
    settings = [{"sentence": text, "written": n + 1} for n in range(len(target))]
    for n, state in enumerate(set_states(page, FIGURE, settings)):
        probs = powers[n] / powers[n].sum()
        np.testing.assert_allclose(state["probs"], probs, atol=1e-9)
        np.testing.assert_allclose(state["weights"], weights[:, : n + 1], atol=1e-9)
        likeliest = [LANGUAGE["target"][token] or "–" for token in np.argsort(-probs)]
        assert [each["word"] for each in state["likeliest"]] == likeliest[:3]
    for head, expected in enumerate([weights.max(axis=0), *weights]):
        drawn = set_state(page, FIGURE, head=head)["map"]
        np.testing.assert_allclose(drawn, expected, atol=1e-9)


def test_keyboard_writes_words_and_announces_them(page: Page, live: Locator):
    set_state(page, FIGURE, sentence="the old queen saw the birds .", written=6, head=0)
    live.get_by_role("button", name="Next word").press("Enter")
    assert set_state(page, FIGURE)["words"][-2:] == ["videt", "."]
    live.get_by_role("button", name="Start again").press("Enter")
    expect(live.locator("tbody tr").first).to_contain_text("la")
    live.get_by_label("Subject", exact=True).select_option("cooks")
    live.get_by_role("button", name="All words").press("Enter")
    expect(live.locator("[role=status]")).to_contain_text("koki veki li uzeli vident")
    expect(live.locator(".live-frame")).to_have_count(7)


@pytest.mark.release
@pytest.mark.parametrize("language", ["en", "zh-TW"])
def test_figure_fits_on_a_phone_and_on_a_slide(open_page: Open, language: str):
    heads = [{"sentence": LONGEST, "written": n, "head": n % 5} for n in range(1, 9)]
    phone = {"viewport": {"width": 320, "height": 900}}
    check_fit(open_page(f"{language}/{LESSON}.html", **phone), {FIGURE: heads})
    deck = open_page(f"slides/{language}/pytorch/{LESSON}.html")
    check_fit(deck, {FIGURE: heads}, max_height=700)
