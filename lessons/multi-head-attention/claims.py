"""Test the lesson's claims against NumPy: the data of figures, and every printed result.

nbval only compares a notebook with its stored outputs; it cannot check whether they are right.
"""

from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, parse_rows, read_words, softmax
from tests.lessons.shared_claims import (
    accuracy,
    assert_maps,
    assert_variables,
    median_and_range,
)
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import reference_multi_head

# Cells without random numbers have the same output in every framework, to the last digit.
DETERMINISTIC = [
    "one-average",
    "two-averages",
    "shapes",
    "merged-wrongly",
    "costs",
    "solution-rank",
]
# These cells print randomly drawn letters.
VARYING_FORM = ["questions", "texts"]
# The training steps, the questions in each step, and the learning rate.
BUDGETS = {
    "tensorflow": (100, 128, 0.015),
    "jax": (150, 128, 0.015),
    "mxnet": (100, 128, 0.015),
    "others": (250, 32, 0.01),
}
READER_BUDGETS = {  # steps, and texts in each step, for the models that read texts
    "pytorch": (200, 64),
    "tensorflow": (100, 128),
    "mxnet": (100, 128),
    "paddle": (100, 128),
    "mlx": (150, 64),
    "djl": (300, 64),
    "jax": (),  # the same as in BUDGETS
}

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PRICES = np.array([50, 40, 70], float)  # apple, lemon, pear

# Bounds for what the text says in words, loose enough for the random numbers of every framework.
# Accuracies may differ a little, since some answers are nearly equally likely.
ACCURACY_TOLERANCE = 0.0011
MAX_SOLVED_ERROR = 0.03
MIN_ERROR_WITHOUT_HEAD = 0.7  # of two heads, without either
LOW_ERROR_WITHOUT_HEAD = 0.1  # of four heads, without the least needed
HIGH_ERROR_WITHOUT_HEAD = 0.3  # of four heads, without the most needed
SOLVED_ACCURACY = 0.95
# Probability that one of four digits, chosen at random, equals the right one.
BLIND_ACCURACY = 1 / 4 + 3 / 4 / 10
# Probability that the most frequent of four digits is right.
MOST_FREQUENT_ACCURACY = pytest.approx(0.383, abs=0.05)

Arrays = dict[str, Any]


# Results that depend on random numbers


def test_layer_outputs_agree_with_text(rows):
    largest, *differences = (row[-1] for row in rows["all-alike"])
    assert largest > 0.1
    assert differences == [0, 0, 0]
    if "own-layer" in rows:
        assert rows["own-layer"] == [[0]]
    (_, by_head_width), (_, by_model_width) = rows["wrong-root"]
    assert 0.1 < by_model_width < 0.2 < by_head_width
    (largest,), (difference,) = rows["solution-order"]
    assert largest > 0.1
    assert difference == 0


def test_head_errors_agree_with_text(rows):
    one_head, *more_heads = rows["errors"]
    assert one_head[:2] == [1, pytest.approx(1, abs=0.2)]
    assert [row[0] for row in more_heads] == [2, 4]
    assert max(np.abs(row[1:]).max() for row in more_heads) < MAX_SOLVED_ERROR
    for heads, runs in parse_head_errors(rows["without-a-head-shown"]).items():
        assert len(runs) == 5
        for errors in runs:
            assert len(errors) == heads
            if heads == 2:
                assert min(errors) > MIN_ERROR_WITHOUT_HEAD
            else:
                assert min(errors) < LOW_ERROR_WITHOUT_HEAD
                assert max(errors) > HIGH_ERROR_WITHOUT_HEAD
    ((heads, *sum_errors),) = rows["solution-sum-shown"]
    assert heads == 1
    assert np.abs(sum_errors).max() < 0.4


def parse_head_errors(rows: list[list[float]]) -> dict[float, list[list[float]]]:
    """Return the printed error after removing each head, by number of heads, seed and head."""
    errors = {}
    for (heads,), *seeds in (rows[:6], rows[6:]):
        assert [row[0] for row in seeds] == [0, 1, 2, 3, 4]
        errors[heads] = [row[1:] for row in seeds]
    assert list(errors) == [2, 4]
    return errors


def test_reader_accuracies_agree_with_text(rows):
    one_layer, two_layers = rows["readers-shares"]
    assert (one_layer[0], two_layers[0]) == (1, 2)
    assert one_layer[1] == MOST_FREQUENT_ACCURACY
    assert np.abs(two_layers[1:]).min() >= SOLVED_ACCURACY
    for row in rows["solution-without-a-layer-shown"]:
        assert np.abs(row).max() < BLIND_ACCURACY + 0.03


# One average is not enough


def test_one_query_for_two_fruits_gives_their_mean(cells):
    lines = read_words(cells["one-average"].printed)
    for words, query in zip(lines, ([0, 0, 6], [0, 6, 0], [0, 6, 6]), strict=True):
        weights = softmax(np.array(query, float))
        assert_printed([*map(float, words[1:4])], weights, 3)
        assert_printed(float(words[4]), weights @ PRICES, 1)
    assert [words[0] for words in lines] == ["pear:", "lemon:", "both:"]


def test_two_heads_can_subtract(cells):
    pear, lemon = (softmax(np.array(q, float)) @ PRICES for q in ([0, 0, 6], [0, 6, 0]))
    names = cells["two-averages"].names
    np.testing.assert_allclose(array(names["heads"]), [pear, lemon], rtol=1e-5)
    np.testing.assert_array_equal(array(names["W_o"]), [1, -1])
    heads, *differences = cells["two-averages"].rows
    assert_printed(heads, [pear, lemon], 1)
    assert_printed(differences, [[pear - lemon], [lemon - pear]], 1)
    sharper = softmax(np.array([0, 0, 8.0])) - softmax(np.array([0, 8.0, 0]))
    # Larger scores bring the difference nearer to 30.
    assert pear - lemon < sharper @ PRICES < 30


# Split, attend, merge


def test_merge_undoes_split(adapter, cells):
    names = cells["split-and-merge"].names
    X = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
    for heads in (1, 3, 4):
        parts = np.split(X, heads, axis=-1)
        split = names["split"](adapter.tensor(X), heads)
        expected = adapter.tensor(np.stack(parts, axis=1))
        np.testing.assert_array_equal(array(split), array(expected))
        np.testing.assert_array_equal(array(names["merge"](split)), X.astype(float))


def compute_attention(
    params: Arrays,
    queries: np.ndarray,
    keys: np.ndarray,
    heads: int,
    causal: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute a layer's output, and the weights of each head."""
    return reference_multi_head(params, heads, queries, keys, keys, causal=causal)


def test_all_computations_agree_with_reference(cells):
    names = cells["the-layer"].names
    params = {W: array(names[W]) for W in ("W_q", "W_k", "W_v", "W_o")}
    X = array(names["X"])
    expected, _ = compute_attention(params, X, X, 2)
    assert_variables(
        names, headwise_output=expected, d2l_output=expected, output=expected
    )
    causal, _ = compute_attention(params, X[:, -2:], X, 2, causal=True)
    assert_variables(names, causal_output=causal, d2l_causal_output=causal)
    assert np.abs(causal[:, 0] - expected[:, -2]).max() > 1e-3  # it hides the last key
    largest, *differences = (row[-1] for row in cells["all-alike"].rows)
    assert_printed(largest, np.abs(expected).max(), 4)
    assert differences == [0, 0, 0]
    if "own-layer" in cells:
        assert_variables(cells["own-layer"].names, framework_output=expected)
        assert cells["own-layer"].rows == [[0]]


def test_steps_have_printed_shapes(cells):
    steps = {
        name: array(step).shape for name, step in cells["shapes"].names["steps"].items()
    }
    assert steps == {
        "X": (1, 5, 8),
        "X W_v": (1, 5, 8),
        "split": (1, 2, 5, 4),
        "weights": (1, 2, 5, 5),
        "attended": (1, 2, 5, 4),
        "merged": (1, 5, 8),
        "output": (1, 5, 8),
    }
    assert [tuple(row) for row in cells["shapes"].rows] == [*steps.values()]


def test_framework_averages_weights_by_default(cells):
    if "averaged-maps" in cells:
        names = cells["averaged-maps"].names
        weights, head_weights = array(names["weights"]), array(names["head_weights"])
        np.testing.assert_allclose(weights, head_weights.mean(axis=1), atol=1e-6)
        assert cells["averaged-maps"].rows == [[1, 5, 5], [1, 2, 5, 5]]


def test_wrong_merge_leaves_one_number_in_five_in_place(cells):
    names = cells["merged-wrongly"].names
    attended = array(names["attended"])
    merged = np.concatenate([*attended[0]], axis=-1)
    wrong_merge = attended.reshape(5, 8)
    share_in_place = (wrong_merge == merged).mean()
    np.testing.assert_array_equal(array(names["wrong_merge"])[0], wrong_merge)
    assert cells["merged-wrongly"].rows == [[1, 5, 8, 1, 5, 8], [share_in_place]]
    assert share_in_place == 1 / 5


def test_wrong_root_flattens_weights(cells):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(8, 1000, 64)) @ rng.normal(size=(8, 10, 64)).mT
    for row, root in zip(cells["wrong-root"].rows, (64, 512), strict=True):
        largest = softmax(scores / np.sqrt(root)).max(axis=-1).mean()
        assert row == [root, pytest.approx(largest, abs=0.03)]


def test_costs_do_not_depend_on_number_of_heads(cells):
    n, d = 10, 64
    assert parse_rows(cells["costs"].printed.replace(",", "")) == [
        [heads, d / heads, 4 * d**2, 4 * n * d**2 + 2 * n**2 * d, heads * n**2]
        for heads in (1, 2, 4, 8, 16)
    ]


# One head or two, trained


def draw_questions(
    adapter: Adapter, cells: Any, count: int, sign: int = -1
) -> list[np.ndarray]:
    """Draw letters, their numbers, questions (pairs of letters), and the answers."""
    names = cells["questions"].names
    samples = adapter.lesson_draw(names, "draw_questions", count, 6, sign)
    return [array(sample) for sample in samples]


@pytest.mark.parametrize("sign", [-1, 1])
def test_answers_are_differences_or_sums_of_two_numbers(adapter, cells, sign):
    letters, values, questions, answers = draw_questions(adapter, cells, 200, sign)
    assert letters.shape == values.shape == (200, 6)
    assert {*letters.ravel()} == {*range(26)}
    assert abs(values.mean()) < 0.1
    assert values.var() == pytest.approx(1, abs=0.15)
    for letter, value, pairs, answer in zip(
        letters, values, questions, answers, strict=True
    ):
        numbers = dict(zip(letter, value, strict=True))
        assert len(numbers) == 6
        assert all(a != b for a, b in pairs)
        expected = [numbers[a] + sign * numbers[b] for a, b in pairs]
        np.testing.assert_allclose(answer, expected, atol=1e-5)
    assert {*questions[..., 0].ravel()} == {*questions[..., 1].ravel()} == {*range(26)}


def test_printed_questions_have_right_answers(cells):
    entries, *questions = cells["questions"].printed.splitlines()
    words = entries.split(":")[1].split()
    numbers = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    assert len(numbers) == 6
    assert len(questions) == 3
    for line in questions:
        a, _, b, _, answer = line.split()
        assert float(answer) == pytest.approx(numbers[a] - numbers[b], abs=0.11)


def compute_comparer(
    params: Arrays,
    letters: np.ndarray,
    values: np.ndarray,
    questions: np.ndarray,
    heads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute a comparer's answers and attention weights from its parameters."""
    questions = questions.astype(int)
    entries = (
        params["letter"][letters.astype(int)] + values[..., None] @ params["number"]
    )
    queries = params["first"][questions[..., 0]] + params["second"][questions[..., 1]]
    Y, weights = compute_attention(params, queries, entries, heads)
    return (Y @ params["output"] + params["bias"])[..., 0], weights


def compute_error(params: Arrays, examples: list[np.ndarray], heads: int) -> float:
    """Compute a comparer's mean squared error on examples."""
    *inputs, answers = examples
    predictions, _ = compute_comparer(params, *inputs, heads)
    return float(((predictions - answers) ** 2).mean())


def read_comparer(adapter: Adapter, model: Any) -> Arrays:
    """Return a comparer's parameters by name."""
    projections = [f"attention.{W}" for W in ("W_q", "W_k", "W_v", "W_o")]
    matrices = "number", *projections
    return adapter.lesson_weights(model, ("letter", "first", "second"), matrices)


def approx_error(error: float) -> Any:
    """Return a value equal to this error within single precision."""
    return pytest.approx(error, rel=0.005, abs=1e-5)


@pytest.mark.parametrize(
    ("cell", "name", "sign"),
    [("errors", "differences", -1), ("solution-sum", "sums", 1)],
)
def test_test_sets_have_many_dictionaries(adapter, cells, cell, name, sign):
    letters, values, questions, answers = adapter.lesson_arrays(cells[cell].names[name])
    assert letters.shape == values.shape == answers.shape == (len(letters), 6)
    assert len(letters) in (500, 1000)
    indices = (letters[:, None, None] == questions[..., None]).argmax(axis=-1)
    numbers = np.take_along_axis(values[:, None], indices, axis=-1)
    expected = numbers[..., 0] + sign * numbers[..., 1]
    np.testing.assert_allclose(answers, expected, atol=1e-5)
    assert len({*map(tuple, letters)}) > len(letters) - 10


def test_errors_match_models_of_equal_size(adapter, cells):
    names = cells["errors"].names
    examples = adapter.lesson_arrays(names["differences"])
    sizes = set()
    for heads, models in names["models"].items():
        expected = []
        for model, error in zip(models, names["errors"][heads], strict=True):
            params = read_comparer(adapter, model)
            sizes.add(sum(matrix.size for matrix in params.values()))
            expected.append(compute_error(params, examples, heads))
            assert float(error) == approx_error(expected[-1])
        assert len({*np.round(expected, 6)}) == 5
    assert len(sizes) == 1
    for row, (heads, errors) in zip(
        cells["errors"].rows[-3:], names["errors"].items(), strict=True
    ):
        assert len(errors) == 5
        assert_printed(np.abs(row), [heads, *median_and_range(errors)], 3)


def test_training_follows_budget(cells, framework, assert_budget):
    assert {*READER_BUDGETS[framework]} <= cells["train-readers"].numbers
    assert_budget("solution-sum", "draw_questions", length=6)


def test_best_error_of_one_head_is_one():
    """Test the text's formula, with weights w and w' for the two letters and a factor c."""
    w, other, c = np.meshgrid(
        np.linspace(0, 1, 51), np.linspace(0, 1, 51), np.linspace(-5, 5, 201)
    )
    error = np.where(w + other <= 1, (c * w - 1) ** 2 + (c * other + 1) ** 2, np.inf)
    assert error.min() == pytest.approx(1)
    a, b = np.random.default_rng(0).normal(size=(2, 10**6))
    errors = (1.5 * (0.7 * a + 0.2 * b) - (a - b)) ** 2
    expected = (1.5 * 0.7 - 1) ** 2 + (1.5 * 0.2 + 1) ** 2
    assert errors.mean() == pytest.approx(expected, rel=0.01)


def test_each_head_finds_one_letter(adapter, cells):
    cell = cells["two-heads-map"]
    params = read_comparer(adapter, cell.names["models"][2][0])
    question = adapter.lesson_question(cell.names)
    _, weights = compute_comparer(params, *question, 2)
    maps = assert_maps(
        cell,
        weights[0],
        ("Entries", "Questions"),
        ["Head 1", "Head 2"],
        atol=1e-3,
        **label_questions(question),
    )
    entries = [LETTERS[int(x)] for x in question[0][0]]
    letters_seen = ["".join(entries[i] for i in head.argmax(axis=1)) for head in maps]
    first, second = question[2][0].astype(int).T
    asked = ["".join(LETTERS[x] for x in letters) for letters in (first, second)]
    assert sorted(letters_seen) == sorted(asked)


def label_questions(question: list[np.ndarray]) -> dict[str, Any]:
    """Return the names of a map's columns and rows, and where the letters asked for stand."""
    letters, _, pairs = (array[0].astype(int) for array in question)
    return {
        "columns": [LETTERS[x] for x in letters],
        "rows": [f"{LETTERS[a]}-{LETTERS[b]}" for a, b in pairs],
        "marks": (letters == pairs[:, :, None]).any(axis=1),
    }


def test_errors_without_a_head_match_formula(adapter, cells):
    names = cells["without-a-head-shown"].names
    examples = adapter.lesson_arrays(names["differences"])
    printed = parse_head_errors(cells["without-a-head-shown"].rows)
    for heads, runs in names["errors_without"].items():
        for seed, errors in enumerate(runs):
            params = read_comparer(adapter, names["models"][heads][seed])
            width = params["W_o"].shape[0] // heads
            assert len(errors) == heads
            for head, error in enumerate(errors):
                W_o = params["W_o"].copy()
                W_o[head * width : (head + 1) * width] = 0
                expected = compute_error(params | {"W_o": W_o}, examples, heads)
                assert float(error) == approx_error(expected)
                assert_printed(printed[heads][seed][head], float(error), 3)


def test_removed_heads_are_restored(adapter, cells):
    names = cells["without-a-head-shown"].names
    examples = draw_questions(adapter, cells, 400)
    for heads in (2, 4):
        for model in names["models"][heads]:
            params = read_comparer(adapter, model)
            assert compute_error(params, examples, heads) < MAX_SOLVED_ERROR


# Two layers


def test_texts_repeat_their_pairs_in_new_order(adapter, cells):
    tokens, digits = draw_texts(adapter, cells, 200)
    assert (tokens.shape, digits.shape) == ((200, 16), (200, 4))
    for text, answer in zip(tokens, digits, strict=True):
        pairs = text.reshape(8, 2)
        assert len({*pairs[:4, 0]}) == 4
        assert sorted(pairs[:4].tolist()) == sorted(pairs[4:].tolist())
        assert (pairs[:, 0] < 26).all()
        np.testing.assert_array_equal(pairs[4:, 1] - 26, answer)
    assert any((text[:8] != text[8:]).any() for text in tokens)
    for line in cells["texts"].printed.splitlines():
        words = line.split()
        first = {*zip(words[:8:2], words[1:8:2], strict=True)}
        second = {*zip(words[8::2], words[9::2], strict=True)}
        assert first == second


def compute_reader(
    params: Arrays, layers: list[Arrays], tokens: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Compute logits at the letters of the second half, and the map of each layer."""
    X = params["token"][tokens] + params["place"][: tokens.shape[1]]
    maps = []
    for layer in layers:  # two heads in total
        Y, weights = compute_attention(layer, X, X, 2 // len(layers), causal=True)
        X = X + Y
        maps.append(weights[:, 0])
    return X[:, 8::2] @ params["output"] + params["bias"], maps


def compute_accuracy(
    params: Arrays, layers: list[Arrays], tokens: np.ndarray, digits: np.ndarray
) -> float:
    """Compute a reader's accuracy from its parameters."""
    logits, _ = compute_reader(params, layers, tokens)
    return accuracy(logits.argmax(axis=-1), digits)


def draw_texts(adapter: Adapter, cells: Any, count: int = 400) -> list[np.ndarray]:
    """Draw the tokens of texts, and the digits to predict in their second halves."""
    samples = adapter.lesson_draw(cells["texts"].names, "draw_texts", count)
    return [array(sample).astype(int) for sample in samples]


def get_reader_test_set(adapter: Adapter, cells: Any) -> list[np.ndarray]:
    """Return the tokens and digits of the readers' test set."""
    test = adapter.lesson_arrays(cells["readers-shares"].names["test"])
    tokens, digits = (sample.astype(int) for sample in test)
    assert (tokens.shape, digits.shape) == ((500, 16), (500, 4))
    np.testing.assert_array_equal(tokens[:, 9::2] - 26, digits)
    assert len({*map(tuple, tokens)}) > 490
    return [tokens, digits]


def test_accuracies_match_readers(adapter, cells):
    names = cells["readers-shares"].names
    tokens, digits = get_reader_test_set(adapter, cells)
    rows = cells["readers-shares"].rows
    for row, (depth, readers) in zip(rows, names["readers"].items(), strict=True):
        accuracies = [float(share) for share in names["accuracies"][depth]]
        table_sums = set()
        for reader, share in zip(readers, accuracies, strict=True):
            params, layers = adapter.lesson_layers(reader, depth)
            table_sums.add(float(params["token"].sum()))
            expected = compute_accuracy(params, layers, tokens, digits)
            assert share == pytest.approx(expected, abs=ACCURACY_TOLERANCE)
        assert len(table_sums) == 5  # five seeds
        assert_printed(np.abs(row), [depth, *median_and_range(accuracies)], 3)


def test_blind_choice_is_right_one_time_in_three(adapter, cells):
    tokens, digits = draw_texts(adapter, cells)
    choices = tokens[:, 1:8:2] - 26
    share = (choices[:, :, None] == digits[:, None]).mean()
    assert share == pytest.approx(BLIND_ACCURACY, abs=0.03)
    assert 0.3 < BLIND_ACCURACY < 0.35


def test_one_layer_is_as_good_as_most_frequent_digit(adapter, cells):
    tokens, digits = draw_texts(adapter, cells)
    choices = tokens[:, 1:8:2] - 26
    counts = (choices[:, :, None] == choices[:, None]).sum(axis=-1)
    guesses = np.take_along_axis(choices, counts.argmax(axis=1)[:, None], axis=1)
    assert (guesses == digits).mean() == MOST_FREQUENT_ACCURACY
    for share in cells["readers-shares"].names["accuracies"][1]:
        assert float(share) == MOST_FREQUENT_ACCURACY


def test_layers_look_where_text_says(adapter, cells):
    cell = cells["readers-maps"]
    names = cell.names
    tokens = array(names["tokens"]).astype(int).reshape(1, 16)
    params, layers = adapter.lesson_layers(names["readers"][2][0], 2)
    _, maps = compute_reader(params, layers, tokens)
    axes, titles = ("Keys", "Queries"), ["First layer", "Second layer"]
    expected = [layer_map[0] for layer_map in maps]
    words = [(LETTERS + "0123456789")[token] for token in tokens[0]]
    # Digits look at the letters before them, letters behind their first appearance.
    looks = {digit: digit - 1 for digit in (1, 3, 5, 7)}
    repeats = {letter: words.index(words[letter]) + 1 for letter in (8, 10, 12, 14)}
    marks = np.zeros((16, 16), bool)
    marks[[*repeats], [*repeats.values()]] = True  # of the last map
    labels = {"columns": words, "rows": words, "marks": marks}
    first, second = assert_maps(cell, expected, axes, titles, atol=1e-3, **labels)
    assert {i: first[i].argmax() for i in looks} == looks
    assert {i: second[i].argmax() for i in repeats} == repeats
    corners = {frame.get_xy() for frame in cell.panels[0].axes.patches}
    assert {(y + 0.5, x + 0.5) for x, y in corners} == {*looks.items()}


def test_accuracies_without_a_layer_match_formula(adapter, cells):
    names = cells["solution-without-a-layer-shown"].names
    tokens, digits = get_reader_test_set(adapter, cells)
    rows = cells["solution-without-a-layer-shown"].rows
    accuracies_without = enumerate(names["accuracies_without"])
    for row, (removed_layer, runs) in zip(rows, accuracies_without, strict=True):
        accuracies = [float(share) for share in runs]
        for reader, share in zip(names["readers"][2], accuracies, strict=True):
            params, layers = adapter.lesson_layers(reader, 2)
            matrices = layers[removed_layer]
            layers[removed_layer] = {W: 0 * matrix for W, matrix in matrices.items()}
            expected = compute_accuracy(params, layers, tokens, digits)
            assert share == pytest.approx(expected, abs=ACCURACY_TOLERANCE)
        assert_printed(np.abs(row), median_and_range(accuracies), 3)
    _, first, second = cells["solution-without-a-layer-shown"].printed.splitlines()
    assert first.startswith("without the first ")
    assert second.startswith("without the second ")


# Solutions


def test_rank_of_scores_is_head_width(cells):
    names = cells["solution-rank"].names
    X, W_q, W_k = (array(names[name]) for name in ("X", "W_q", "W_k"))
    tokens = X.reshape(20, 8)
    expected = []
    for heads in (1, 2, 4, 8):
        width = 8 // heads
        scores = (tokens @ W_q[:, :width]) @ (tokens @ W_k[:, :width]).T
        expected.append([heads, width, np.linalg.matrix_rank(scores, rtol=1e-6)])
    assert cells["solution-rank"].rows == expected


def test_heads_have_no_order(cells):
    names = cells["solution-order"].names
    order = array(names["order"]).astype(int)
    assert order.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    original = array(names["original_output"])
    assert_variables(names, reordered_output=original)
    (largest,), (difference,) = cells["solution-order"].rows
    assert_printed(largest, np.abs(original).max(), 4)
    assert difference == 0


def test_one_head_can_add(adapter, cells):
    names = cells["solution-sum-shown"].names
    examples = adapter.lesson_arrays(names["sums"])
    errors = [float(error) for error in names["sum_errors"]]
    first_weights = set()
    for model, error in zip(names["adders"], errors, strict=True):
        params = read_comparer(adapter, model)
        first_weights.add(params["letter"][0, 0])
        assert error == approx_error(compute_error(params, examples, 1))
    assert len(first_weights) == 5  # five seeds
    (row,) = cells["solution-sum-shown"].rows
    assert_printed(np.abs(row), [1, *median_and_range(errors)], 3)


def test_mean_map_is_mean_of_heads(adapter, cells):
    cell = cells["solution-mean-map"]
    params = read_comparer(adapter, cell.names["models"][2][0])
    question = adapter.lesson_question(cell.names)
    _, weights = compute_comparer(params, *question, 2)
    expected = [*weights[0], weights[0].mean(axis=0)]
    axes, titles = ("Entries", "Questions"), ["Head 1", "Head 2", "Mean"]
    labels = label_questions(question)
    first, second, mean = assert_maps(cell, expected, axes, titles, atol=1e-3, **labels)
    np.testing.assert_allclose(mean, (first + second) / 2, atol=1e-5)
    assert ((mean > 0.25).sum(axis=1) == 2).all()  # two entries matter in each row
