"""Test the lesson's claims against NumPy: the data of figures, and every printed result.

nbval only compares a notebook with its stored outputs; it cannot check whether they are right.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import (
    array,
    assert_printed,
    read_numbers,
    read_words,
    softmax,
)
from tests.lessons.shared_claims import (
    accuracy,
    assert_maps,
    assert_range_table,
    assert_variables,
    independent_scores,
    saturation,
    softmax_slopes,
    to_floats,
)
from tests.shim import reference
from tests.shim.each.adapter import Adapter

# Cells without random numbers have the same output in every framework, to the last digit.
DETERMINISTIC = [
    "price-list",
    "soft-look-up",
    "from-soft-to-hard",
    "three-customers",
    "batches",
    "last-queries",
    "same-answer",
]
# These cells print randomly drawn letters, or NaN, which Java writes in capitals.
VARYING_FORM = ["dictionaries", "trained-map", "empty-row"]
# The training steps, the dictionaries in each step, and the learning rate.
BUDGETS = {"others": (150, 64, 0.015)}

LETTERS = "abcdefghijklmnopqrstuvwxyz"
KEYS = np.array([[2, 1], [0, 3], [3, 0]], float)  # apple, lemon, pear
PRICES = np.array([50, 40, 70], float)
WIDTHS = 0.05, 0.3, 3

# Bounds for what the text says in words, with tolerance for the random numbers of other frameworks.
HIGH_ACCURACY = 0.98
# Accuracies may differ a little, since some answers are nearly equally likely.
ACCURACY_TOLERANCE = 0.001
ONE_IN_TEN = pytest.approx(0.1, abs=0.04)
ONE_IN_FOUR = pytest.approx(1 / 4, abs=0.06)
WIDTH_TOLERANCE = 0.03


# A dictionary that always answers


def test_lime_is_not_listed(cells):
    assert cells["price-list"].printed == "lemon: 40\nlime: not in the list\n"


def test_lime_costs_about_as_much_as_lemon(cells):
    scores = KEYS @ [0, 1]
    weights = softmax(scores)
    *fruits, (answer,) = cells["soft-look-up"].rows
    assert_printed(fruits, np.stack([scores, weights], axis=1), 3)
    assert_printed(answer, weights @ PRICES, 0)
    names = cells["soft-look-up"].names
    np.testing.assert_allclose(array(names["answer"]), weights @ PRICES, rtol=1e-6)
    labels = [line.split()[-1] for line in cells["soft-look-up"].printed.splitlines()]
    assert labels[:3] == ["apple", "lemon", "pear"]


def test_louder_queries_give_harder_answers(cells):
    for row, factor in zip(cells["from-soft-to-hard"].rows, (0, 1, 3, 10), strict=True):
        weights = softmax(factor * KEYS @ [0, 1])
        assert row[0] == factor
        assert_printed(row[1:4], weights, 3)
        assert_printed(row[4], weights @ PRICES, 1)


def test_attend_takes_softmax_over_keys(adapter, cells):
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
    tensors = [adapter.tensor(X.astype("float32")) for X in (Q, K, V)]
    answers = array(cells["attend"].names["attend"](*tensors))
    np.testing.assert_allclose(answers, softmax(Q @ K.mT) @ V, atol=1e-5)


def test_three_customers_get_price_and_sugar(cells):
    values = np.stack([PRICES, [19, 2, 17]], axis=1)
    answers = softmax(np.array([[0, 1], [1, 0], [1, 1]]) @ KEYS.T) @ values
    assert_printed(cells["three-customers"].rows, answers, 1)
    labels = [row[0] for row in read_words(cells["three-customers"].printed)]
    assert labels == ["sour:", "sweet:", "both:"]


def test_batch_is_one_more_axis(cells):
    shapes = [(2, 3, 4), (2, 5, 4), (2, 5, 6), (2, 3, 6)]
    assert [tuple(row) for row in cells["batches"].rows] == shapes


# Averages by nearness


def kernel_weights(queries: np.ndarray, keys: np.ndarray, width: float) -> np.ndarray:
    """Return the weights of a Gaussian kernel, which sum to one for each query."""
    weights = np.exp(-((queries[:, None] - keys) ** 2) / (2 * width**2))
    return weights / weights.sum(axis=1, keepdims=True)


def get_points(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of the lesson's points."""
    names = cells["kernel-regression"].names
    return array(names["x"]), array(names["y"])


def test_points_lie_around_curve(cells):
    x, y = get_points(cells)
    assert x.shape == (40,)
    assert (np.diff(x) >= 0).all()
    assert 0 <= x[0] < x[-1] <= 5
    noise = y - np.sin(2 * x) - x / 2
    assert noise.std() == pytest.approx(0.3, rel=0.4)
    assert abs(noise.mean()) < 0.15


def test_fits_are_nadaraya_watson_averages(cells):
    x, y = get_points(cells)
    grid = np.linspace(0, 5, 101)
    curves = cells["three-widths"].curves
    expected = [
        (x, y),
        (grid, np.sin(2 * grid) + grid / 2),
        *((grid, kernel_weights(grid, x, width) @ y) for width in WIDTHS),
    ]
    for actual, curve in zip(curves, expected, strict=True):
        np.testing.assert_allclose(actual, curve, atol=1e-4)
    assert cells["three-widths"].legend == [
        "measured",
        "true curve",
        "width 0.05",
        "width 0.3",
        "width 3",
    ]


def test_middle_width_fits_curve_best(cells):
    x, y = get_points(cells)
    grid = np.linspace(0, 5, 101)
    truth = np.sin(2 * grid) + grid / 2
    fits = [kernel_weights(grid, x, width) @ y for width in WIDTHS]
    errors = [np.mean((fit - truth) ** 2) for fit in fits]
    assert np.argmin(errors) == 1
    assert np.abs(fits[-1] - y.mean()).max() < np.ptp(y) / 4


def test_width_maps_show_kernel_weights(cells):
    x, _ = get_points(cells)
    weights = [kernel_weights(x, x, width) for width in WIDTHS]
    expected = [weight_map / weight_map.max() for weight_map in weights]
    axes = "Keys", "Queries"
    titles = [f"Width {width}" for width in WIDTHS]
    *_, widest = assert_maps(cells["width-heatmaps"], expected, axes, titles, atol=1e-4)
    assert widest.min() > 0.1  # every query sees every key
    assert widest[-1, 0] == pytest.approx(1 / 4, abs=0.06)  # even at the far end


def error(
    width: float, x: np.ndarray, y: np.ndarray, hide_itself: bool = True
) -> float:
    """Return the mean squared error of predicting each point from the others, or all if not ``hide_itself``."""
    weights = np.exp(-((x[:, None] - x) ** 2) / (2 * width**2))
    if hide_itself:
        weights *= 1 - np.eye(len(x))
    return float(np.mean((weights @ y / weights.sum(axis=1) - y) ** 2))


@pytest.mark.parametrize("hide_itself", [True, False])
def test_error_predicts_each_point_from_others(adapter, cells, hide_itself):
    x, y = get_points(cells)
    names = cells["without-itself"].names
    for width in (0.1, 0.3, 2.0):
        actual = adapter.lesson_error(names, np.array(width, "float32"), hide_itself)
        expected = error(width, x, y, hide_itself)
        assert float(array(actual)) == pytest.approx(expected, rel=1e-3)


def test_learned_widths_agree_with_text(rows):
    (start_1, width_1), (start_2, width_2), (_, unmasked_width) = rows["learned-widths"]
    assert (start_1, start_2) == (0.1, 1)
    assert abs(width_1 - width_2) <= WIDTH_TOLERANCE
    assert 0.05 < min(width_1, width_2) <= max(width_1, width_2) < 3
    assert unmasked_width <= min(width_1, width_2) / 2


def test_learned_width_minimizes_error(cells):
    x, y = get_points(cells)
    widths = np.arange(0.05, 3, 0.005)
    best = widths[np.argmin([error(width, x, y) for width in widths])]
    for row in cells["learned-widths"].rows[:2]:
        assert row[-1] == pytest.approx(best, abs=0.03)
    unmasked_width = max(cells["learned-widths"].rows[2][-1], 0.005)  # not zero
    assert error(unmasked_width, x, y, hide_itself=False) < error(best, x, y) / 2


def test_unmasked_points_repeat_their_own_noise(cells):
    x, _ = get_points(cells)
    unmasked_width = max(cells["learned-widths"].rows[2][-1], 0.005)  # not zero
    assert np.median(kernel_weights(x, x, unmasked_width).diagonal()) > 0.4


def test_unmasked_width_would_keep_shrinking(cells):
    x, y = get_points(cells)
    unmasked_width = max(cells["learned-widths"].rows[2][-1], 0.02)  # not zero
    widths = unmasked_width / 2.0 ** np.arange(4)
    errors = [error(width, x, y, hide_itself=False) for width in widths]
    assert all(narrower < wider for wider, narrower in pairwise(errors))


# How to score


def test_four_scores_match_formulas(adapter, cells):
    rng = np.random.default_rng(0)
    names = cells["four-scores"].names
    Q, K, W = (
        rng.normal(size=(2, 3, 4)),
        rng.normal(size=(2, 5, 4)),
        rng.normal(size=(4, 4)),
    )
    W_q, W_k, w_v = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), rng.normal(size=6)
    every_pair = (Q @ W_q)[:, :, None] + (K @ W_k)[:, None]
    expected = {
        "dot": ((Q, K), Q @ K.mT),
        "scaled_dot": ((Q, K), Q @ K.mT / 2),
        "bilinear": ((Q, K, W), np.einsum("bqi,ij,bkj->bqk", Q, W, K)),
        "additive": ((Q, K, W_q, W_k, w_v), np.tanh(every_pair) @ w_v),
    }
    for name, (inputs, scores) in expected.items():
        tensors = [adapter.tensor(X.astype("float32")) for X in inputs]
        np.testing.assert_allclose(array(names[name](*tensors)), scores, atol=1e-5)


def test_layers_match_formulas(cells):
    names = cells["two-layers"].names
    Q, K, V = (array(names[name]) for name in "QKV")
    scaled = reference.dot_product_attention(Q, K, V)[0]
    w_q, w_k = (reference.Linear(array(names[name])) for name in ("W_q", "W_k"))
    w_v = reference.Linear(array(names["w"]).reshape(-1, 1))
    additive = reference.additive_attention(Q, K, V, w_q=w_q, w_k=w_k, w_v=w_v)[0]
    for name in ("layer_outputs", "manual_outputs"):
        for actual, expected in zip(names[name], (scaled, additive), strict=True):
            np.testing.assert_allclose(array(actual), expected, atol=1e-5)
    largest, differences = np.transpose(cells["two-layers-shown"].rows)
    assert_printed(largest, [np.abs(scaled).max(), np.abs(additive).max()], 4)
    assert largest.min() > 0.1
    assert differences.tolist() == [0, 0]


def test_framework_function_scales_scores(cells):
    if "own-function" in cells:
        names = cells["own-function"].names
        Q, K, V = (array(names[name]) for name in "QKV")
        expected = reference.dot_product_attention(Q, K, V)[0]
        assert_variables(names, framework_output=expected)
        assert cells["own-function"].rows == [[0]]


def test_nearness_and_dot_product_agree_for_keys_of_equal_length(cells):
    names = cells["gaussian-or-dot"].names
    Q, K = array(names["Q"]), array(names["K"])
    unit_keys = K / np.linalg.norm(K, axis=-1, keepdims=True)
    np.testing.assert_allclose(array(names["unit_keys"]), unit_keys, atol=1e-6)
    differences = []
    for keys in (K, unit_keys):
        distance = ((Q[:, :, None] - keys[:, None]) ** 2).sum(axis=-1)
        difference = np.abs(softmax(-distance / 2) - softmax(Q @ keys.mT)).max()
        differences.append(difference)
    (any_length,), (equal_length,) = cells["gaussian-or-dot-shown"].rows
    assert_printed(any_length, differences[0], 4)
    assert any_length > 0.01
    assert differences[1] < 1e-12
    assert equal_length == 0


# Why divide by the root of the width


def test_root_keeps_softmax_soft(cells):
    largest_curves, slope_curves = cells["largest-weight"].curves, cells["slope"].curves
    curves = zip((False, True), largest_curves, slope_curves, strict=True)
    for is_scaled, (x, largest), (_, slopes) in curves:
        np.testing.assert_array_equal(x, range(2, 11))
        for i in (0, 4, 8):
            width = 2 ** (i + 2)
            scores = independent_scores(width) / (np.sqrt(width) if is_scaled else 1)
            actual = largest[i], slopes[i]
            np.testing.assert_allclose(actual, saturation(scores), atol=0.03)
    for name in ("largest-weight", "slope"):
        assert cells[name].legend == ["unscaled", "scaled"]
    unscaled, scaled = (y for _, y in largest_curves)
    assert unscaled[-1] == pytest.approx(0.96, abs=0.02)
    assert scaled[-1] == pytest.approx(0.32, abs=0.02)
    unscaled, scaled = (y for _, y in slope_curves)
    assert scaled.min() > 0.9 * scaled.max()
    assert unscaled[-1] < 0.02


def test_slope_remains_only_where_two_keys_score_alike():
    """Test unscaled scores at a width of 1024, where most queries have no slope left."""
    scores = np.sort(independent_scores(1024))
    is_sloped = softmax_slopes(scores) > 0.1
    assert 0 < is_sloped.mean() < 0.25
    np.testing.assert_array_less((scores[:, -1] - scores[:, -2])[is_sloped], 4)


# What must not be seen


def test_masks_hide_their_keys(cells):
    names = cells["masked"].names
    scores, i, j = array(names["scores"]), *np.indices((5, 5))
    masks = np.array([j < 3, j <= i, (j < 3) & (j <= i)])
    expected = softmax(np.where(masks, scores, -np.inf))
    axes, titles = ("Keys", "Queries"), ["Padding", "Causal", "Both"]
    maps = assert_maps(cells["masked"], expected, axes, titles)
    np.testing.assert_array_equal(maps > 0, masks)


def test_last_two_queries_see_four_and_five_keys(cells):
    names = cells["last-queries"].names
    X = array(names["X"])
    expected, _ = reference.dot_product_attention(X, X, X, causal=True)
    assert_variables(names, output_all=expected, output_last_two=expected[:, -2:])
    lines = cells["last-queries"].printed.splitlines()
    assert lines[0].endswith("keys seen [4, 5]")
    assert lines[1].endswith("difference 0.0000")


def test_empty_row_is_nan_by_hand_and_zero_in_layer(cells):
    manual, layer = read_words(cells["empty-row"].printed)
    assert [word.lower() for word in manual[-5:]] == ["nan"] * 5
    assert layer[-5:] == ["0.00"] * 5
    bias = array(cells["empty-row"].names["bias"])
    assert (bias[:, :2] == -np.inf).all()
    assert not bias[:, 2:].any()


def test_nan_spreads_and_large_negative_scores_hide_nothing(cells):
    weights = np.tril(np.full((5, 5), 0.2))
    weights[0] = np.nan
    values = np.array([np.nan, 1, 2, 3, 4])
    assert np.isnan(np.array([0, 0.5, 0.5, 0, 0]) @ values)  # in the next layer
    gradient = np.array([0.0, 1, 1, 1, 1])  # the loss leaves out the first answer
    assert np.isnan(weights.T @ gradient).all()  # the gradient of the values
    scores = array(cells["masked"].names["scores"])
    assert softmax(np.where(False, scores, -1e9))[0].tolist() == [0.2] * 5
    np.testing.assert_allclose(softmax(scores - 1e4), softmax(scores), atol=1e-9)


def test_framework_aligns_causal_mask_as_text_says(adapter, pytestconfig):
    X = np.random.default_rng(0).normal(size=(1, 1, 5, 64)).astype("float32")
    # With these values, the answers are the weights.
    values = np.eye(5, 64, dtype="float32")[None, None]
    weights = adapter.native_causal_attention(X[:, :, -2:], X, values)
    keys_seen = {"mlx": [4, 5], "mxnet": None, "paddle": None, "djl": None}
    expected = keys_seen.get(pytestconfig.getoption("framework"), [1, 2])
    if expected is None:
        assert weights is None
    else:
        assert (weights[0, 0] > 0).sum(axis=-1).tolist() == expected


def test_true_in_mask_has_two_meanings(cells):
    if "two-meanings" in cells:
        *keys_seen, last = cells["two-meanings"].printed.splitlines()
        seen = [read_numbers(line)[-5:] for line in keys_seen]
        assert seen == [[1, 2, 3, 4, 5], [4, 3, 2, 1, 0], [1, 2]]
        assert last.split()[-5:] == ["nan"] * 5


# What each framework's own function answers where everything is hidden, as the text says.
OWN_EMPTY_ROWS = {
    "pytorch": [["0.00"] * 5],
    "tensorflow": [["0.20"] * 5],
    "jax": [["0.20"] * 5],
    "paddle": [["nan"] * 5],
    "mlx": [["0.20"] * 5, ["nan"] * 5],
}


def test_own_function_answers_empty_row_as_text_says(cells, framework):
    if "own-empty-row" not in cells:
        assert framework in ("mxnet", "djl")
        return
    rows = [line[-5:] for line in read_words(cells["own-empty-row"].printed)]
    assert [[word.lstrip("-") for word in row] for row in rows] == OWN_EMPTY_ROWS[
        framework
    ]


# A dictionary that is learned


def test_dictionaries_have_letters_digits_and_answers(adapter, cells):
    names = cells["dictionaries"].names
    for size in (6, 12, 26):
        samples = adapter.lesson_draw(names, "draw_dictionaries", 200, size)
        samples = [sample.astype(int) for sample in samples]
        letters, digits, questions, _ = samples
        assert letters.shape == (200, size)
        assert all(len({*row}) == size for row in letters)
        assert {*letters.ravel()} == {*range(26)}
        assert {*digits.ravel()} == {*range(10)}
        assert (letters != questions).any()
        for letter, digit, question, answer in zip(*samples, strict=True):
            entries = {*zip(letter, digit, strict=True)}
            assert {*zip(question, answer, strict=True)} == entries
    for line in cells["dictionaries"].printed.splitlines():
        entries, _, answers = line.partition("->")
        assert {*entries.split()} == {*answers.split()}
        assert len(entries.split()) == 6


def get_examples(names: Any, num_arrays: int = 4) -> list[np.ndarray]:
    """Return a cell's letters, digits, questions and answers, or the first ``num_arrays`` of the four."""
    variables = "letters", "digits", "questions", "answers"
    return [array(names[name]).astype(int) for name in variables[:num_arrays]]


def read_model(
    adapter: Adapter, model: Any, additive: bool = False
) -> dict[str, np.ndarray]:
    """Return a model's parameters by name."""
    matrices = ["W_q", "W_k", "W_v"]
    if additive:
        matrices.append("w")
    return adapter.lesson_weights(model, ("letter", "digit"), matrices)


def compute_look_up(
    params: dict[str, np.ndarray],
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the model's logits and attention weights from query, key and value vectors."""
    q, k = queries @ params["W_q"], keys @ params["W_k"]
    if "w" in params:
        # One dictionary at a time needs less memory.
        sums = (a[:, None] + b for a, b in zip(q, k, strict=True))
        scores = np.array([np.tanh(pairs) @ params["w"][:, 0] for pairs in sums])
    else:
        scores = q @ k.mT / np.sqrt(params["W_k"].shape[1])
    weights = softmax(scores)
    return weights @ values @ params["W_v"] @ params["output"] + params["bias"], weights


def compute_answers(
    params: dict[str, np.ndarray],
    letters: np.ndarray,
    digits: np.ndarray,
    questions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the model's logits and attention weights for these letters, digits and questions."""
    entries = params["letter"][letters] + params["digit"][digits]
    return compute_look_up(params, params["letter"][questions], entries, entries)


def test_model_matches_formula(adapter, cells):
    names = cells["letters-in-keys"].names
    params = read_model(adapter, names["models"][0])
    letters, digits, questions, answers = get_examples(names)
    queries = params["letter"][questions]
    letter_vectors = params["letter"][letters]
    digit_vectors = params["digit"][digits]
    entries = letter_vectors + digit_vectors
    keys_and_values = [
        (entries, entries),
        (letter_vectors, digit_vectors),
        (digit_vectors, entries),
        (entries, letter_vectors),
    ]
    expected = []
    for keys, values in keys_and_values:
        logits, _ = compute_look_up(params, queries, keys, values)
        expected.append(accuracy(logits.argmax(axis=-1), answers))
    actual = np.ravel(cells["letters-in-keys-shown"].rows)
    np.testing.assert_allclose(actual, expected, atol=2e-3)
    assert actual[:2].min() >= HIGH_ACCURACY
    assert actual[2:].tolist() == [ONE_IN_FOUR, ONE_IN_TEN]


def test_hiding_heaviest_entry_leaves_guessing(adapter, cells):
    names = cells["removed"].names
    params = read_model(adapter, names["models"][0])
    letters, digits, questions, answers = get_examples(names)
    entries = params["letter"][letters] + params["digit"][digits]
    _, weights = compute_answers(params, letters, digits, questions)
    is_heaviest = weights == weights.max(axis=-1, keepdims=True)
    values = entries @ params["W_v"]
    expected = []
    for mask in (~is_heaviest, is_heaviest):
        visible = weights * mask
        Y = visible / visible.sum(axis=-1, keepdims=True) @ values
        logits = Y @ params["output"] + params["bias"]
        expected.append([accuracy(logits.argmax(axis=-1), answers)])
    actual = cells["removed-shown"].rows
    np.testing.assert_allclose(actual, expected, atol=2e-3)
    (others_only,), (heaviest_only,) = actual
    assert others_only == ONE_IN_TEN
    assert heaviest_only >= HIGH_ACCURACY


def test_training_follows_budget(assert_budget):
    assert_budget("solution-additive", "draw_dictionaries", length=6)


@pytest.fixture(scope="module")
def examples_by_size(adapter, cells) -> dict[int, list[np.ndarray]]:
    """Return the letters, digits, questions and answers of each test set."""
    examples = {}
    for size, test_set in cells["accuracies"].names["tests"].items():
        examples[size] = [x.astype(int) for x in adapter.lesson_arrays(test_set)]
        letters, digits, questions, answers = examples[size]
        assert letters.shape == digits.shape == (500, size)
        assert all(len({*row}) == size for row in letters)
        indices = (letters[:, None] == questions[..., None]).argmax(axis=-1)
        np.testing.assert_array_equal(np.take_along_axis(digits, indices, 1), answers)
        assert len({*map(tuple, letters)}) > 490
    assert list(examples) == [6, 12, 26]
    return examples


@pytest.mark.parametrize(
    ("cell_name", "variable", "models_variable", "additive"),
    [
        ("shares", "look_up_accuracies", "models", False),
        ("solution-additive-shown", "additive_accuracies", "additive_models", True),
    ],
)
def test_accuracies_match_five_models(
    adapter, cells, examples_by_size, cell_name, variable, models_variable, additive
):
    cell = cells[cell_name]
    models = [
        read_model(adapter, model, additive) for model in cell.names[models_variable]
    ]
    assert len({params["letter"][0, 0] for params in models}) == 5  # five seeds
    assert cell.rows[0] == list(examples_by_size)
    accuracies = np.array(to_floats(cell.names[variable]))
    for params, row in zip(models, accuracies, strict=True):
        expected = []
        for *inputs, answers in examples_by_size.values():
            logits, _ = compute_answers(params, *inputs)
            expected.append(accuracy(logits.argmax(axis=-1), answers))
        np.testing.assert_allclose(row, expected, atol=ACCURACY_TOLERANCE)
    assert accuracies.min() >= HIGH_ACCURACY
    assert_range_table(cell, {"right": accuracies}, digits=3)


def test_each_question_looks_at_its_entry(adapter, cells):
    """Test the map against the formula's weights for the cell's dictionary."""
    cell = cells["trained-map"]
    params = read_model(adapter, cell.names["models"][0])
    letters, digits, questions = (x[0] for x in get_examples(cell.names, 3))
    _, expected = compute_answers(params, letters[None], digits[None], questions[None])
    marks = questions[:, None] == letters
    columns = [f"{LETTERS[x]}{y}" for x, y in zip(letters, digits, strict=True)]
    labels = {"columns": columns, "rows": [LETTERS[x] for x in questions]}
    axes = "Entries", "Letters asked for"
    (weights,) = assert_maps(cell, expected[:1], axes, atol=1e-3, **labels, marks=marks)
    assert marks.sum() == marks[range(6), weights.argmax(axis=1)].sum() == 6
    assert weights.max(axis=1).min() > 0.8
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)


def test_three_weightings_give_one_answer(cells):
    values = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    rows = np.array(cells["same-answer"].rows)
    assert len({*map(tuple, rows[:, :4])}) == 3
    np.testing.assert_allclose(rows[:, :4].sum(axis=1), 1)
    np.testing.assert_allclose(rows[:, 4:], rows[:, :4] @ values)
    assert {*map(tuple, rows[:, 4:])} == {(0.5, 0.5)}


# Solutions


def test_box_kernel_is_mask(cells):
    x, y = get_points(cells)
    grid = np.linspace(0, 5, 101)
    is_near = np.abs(grid[:, None] - x) < 0.3
    expected = [y[nearby].mean() if nearby.any() else np.nan for nearby in is_near]
    cell = cells["solution-box"]
    np.testing.assert_allclose(array(cell.names["box"]), expected, atol=1e-4)
    assert cell.rows[0] == [0, np.isnan(expected).sum()]  # difference, empty boxes


def test_more_points_need_smaller_width(cells):
    cell = cells["solution-width-shown"]
    assert cell.rows[0] == [20, 80, 320]
    widths = np.array(to_floats(cell.names["learned_widths"]))
    assert all(len({*column}) == 5 for column in widths.T)
    (row,) = assert_range_table(cell, {"width": widths})
    assert (np.diff(row[:, 0]) < 0).all()


def test_widths_for_other_seeds_minimize_error(cells):
    names = cells["solution-width"].names
    for seed in (0, 3):
        x, y = (array(values) for values in names["draw_points"](80, seed))
        widths = np.arange(0.03, 1, 0.002)
        errors = [error(width, x, y) for width in widths]
        learned = float(names["learned_widths"][seed][1])
        assert error(learned, x, y) < min(errors) * 1.02


def test_reversers_match_formula(adapter, cells):
    cell = cells["solution-reversal-map"]
    digits = array(cell.names["digits"]).astype(int)
    assert digits.shape == (500, 8)
    first_weights = set()
    maps = []
    for model, share in zip(cell.names["reversers"], cell.rows[0], strict=True):
        params = adapter.lesson_weights(model, ("digit", "query", "place"))
        first_weights.add(params["query"][0, 0])
        values = params["digit"][digits]
        keys = params["place"] + values
        scores = params["query"] @ keys.mT / np.sqrt(values.shape[-1])
        maps.append(softmax(scores))
        logits = maps[-1] @ values @ params["output"] + params["bias"]
        expected = accuracy(logits.argmax(axis=-1), digits[:, ::-1])
        assert share == pytest.approx(expected, abs=ACCURACY_TOLERANCE)
        assert share >= HIGH_ACCURACY
    assert len(first_weights) == 5  # five seeds
    axes = "Digits read", "Digits written"
    (weights,) = assert_maps(cell, maps[0][:1], axes, atol=1e-3)
    np.testing.assert_array_equal(weights.argmax(axis=1), np.arange(8)[::-1])
    assert weights[:, ::-1].diagonal().min() > 0.7


def test_entries_with_same_letter_share_weight(adapter, cells):
    names = cells["solution-twice"].names
    params = read_model(adapter, names["models"][0])
    rows = cells["solution-twice-shown"].rows
    assert len(rows) == 12
    for digits, row in (([3, 5, 7, 9], rows[1]), ([7, 5, 3, 9], rows[7])):
        logits, weights = compute_answers(params, [0, 1, 0, 2], digits, [0])
        assert_printed(row[:4], weights[0], 2)
        assert row[4] == logits[0].argmax()
    assert (rows[0], rows[6]) == ([3, 5, 7, 9], [7, 5, 3, 9])
    original, exchanged = np.array(rows[1:6]), np.array(rows[7:])
    for a, b, c, d, answer in (*original, *exchanged):
        assert a + c > 0.9
        assert max(b, d) < 0.1
        assert answer in (3, 7)
    # Training does not determine how they share the weight.
    assert original[:, 0].std() > 0.05
    heavier = np.where(original[:, 0] > original[:, 2], 3, 7)
    assert (original[:, 4] == heavier).sum() >= 3  # mostly
    # The weight belongs to the entry, not to its position.
    np.testing.assert_allclose(exchanged, original[:, [2, 1, 0, 3, 4]], atol=0.011)
