"""What the lesson claims, held to the reference: figures by their data, and every printed result.

nbval compares a notebook with what was stored, and so cannot know that what was stored is right.
"""

from typing import Any

import numpy as np
import pytest

from tests.lessons.cells import array, assert_printed, rows_of, softmax, table
from tests.lessons.shared_claims import (
    assert_maps,
    assert_variables,
    median_and_range,
    share_right,
)
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import reference_multi_head

# What does not depend on random numbers is the same in every framework, to the last digit.
DETERMINED = [
    "one-average",
    "two-averages",
    "shapes",
    "merged-wrongly",
    "costs",
    "solution-rank",
]
# Letters are drawn.
IN_ANOTHER_FORM = ["questions", "two-heads-map", "texts", "readers-maps"]
# Of training: the steps, the questions in each, and the rate.
BUDGETS = {
    "tensorflow": (100, 128, 0.015),
    "jax": (150, 128, 0.015),
    "mxnet": (100, 128, 0.015),
    "others": (250, 32, 0.01),
}
BUDGETS_OF_READERS = {
    "pytorch": (200, 64),
    "tensorflow": (100, 128),
    "mxnet": (100, 128),
    "paddle": (100, 128),
    "mlx": (150, 64),
    "djl": (300, 64),
    "jax": (),  # as the comparers
}

PRICES = np.array([50, 40, 70], float)  # apple, lemon, pear

# What the text says in words, with room for another framework's draws.
NEARLY_NONE = 0.0011  # of the shares: answers that are as good as equally likely
NEAR_ONE = pytest.approx(1, abs=0.2)
GONE = 0.03
NEEDED = 0.7
NOT_MISSED = 0.1
A_LOT = 0.3
SOLVED = 0.95
# How often one of four digits is right by chance: another of the four may equal it.
BLIND = 1 / 4 + 3 / 4 / 10
MOST_FREQUENT = pytest.approx(
    0.383, abs=0.05
)  # of the four, the one that stands most often

Arrays = dict[str, Any]


# What depends on chance is as the text says it.


def test_layers_are_as_told(rows):
    (largest,), *differences = rows["all-alike"]
    assert largest > 0.5
    assert differences == [[0], [0]]
    if "own-layer" in rows:
        assert rows["own-layer"] == [[0]]
    (_, of_head), (_, of_model) = rows["wrong-root"]
    assert 0.1 < of_model < 0.2 < of_head
    (before,), (difference,) = rows["solution-order"]
    assert (before > 0.5, difference) == (True, 0)


def test_heads_are_as_told(rows):
    one, *more = rows["errors"]
    assert one[:2] == [1, NEAR_ONE]
    assert [row[0] for row in more] == [2, 4]
    assert max(np.abs(row[1:]).max() for row in more) < GONE
    for heads, of_models in removed_heads(rows["without-a-head-shown"]).items():
        assert len(of_models) == 5
        for costs in of_models:
            assert len(costs) == heads
            if heads == 2:
                assert min(costs) > NEEDED
            else:
                assert (min(costs) < NOT_MISSED, max(costs) > A_LOT) == (True, True)
    (of_sums,) = rows["solution-sum-shown"]
    assert np.abs(of_sums).max() < 0.4


def removed_heads(rows: list[list[float]]) -> dict[int, list[list[float]]]:
    """By how many heads there were, for each seed what the removal of each costs."""
    (two, *of_two), (four, *of_four) = rows[:6], rows[6:]
    assert (two, four) == ([2], [4])
    for seeds in (of_two, of_four):
        assert [row[0] for row in seeds] == [0, 1, 2, 3, 4]
    return {2: [row[1:] for row in of_two], 4: [row[1:] for row in of_four]}


def test_readers_are_as_told(rows):
    one, two = rows["readers-shares"]
    assert (one[0], two[0]) == (1, 2)
    assert one[1] == MOST_FREQUENT
    assert np.abs(two[1:]).min() >= SOLVED
    for row in rows["solution-without-a-layer-shown"]:
        assert np.abs(row).max() < BLIND + 0.03


# One average is not enough


def test_one_query_finds_one_fruit_and_two_at_once_their_mean(cells):
    lines = table(cells["one-average"].printed)
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
    heads, more, less = cells["two-averages"].rows
    assert_printed(heads, [pear, lemon], 1)
    assert_printed([more[0], less[0]], [pear - lemon, lemon - pear], 1)
    louder = softmax(np.array([0, 0, 8.0])) - softmax(np.array([0, 8.0, 0]))
    assert pear - lemon < louder @ PRICES < 30  # the louder, the nearer


# Split, attend, merge


def test_split_cuts_vectors_and_merge_puts_them_together_again(adapter, cells):
    names = cells["split-and-merge"].names
    X = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
    for heads in (1, 3, 4):
        parts = np.split(X, heads, axis=-1)
        cut = names["split"](adapter.tensor(X), heads)
        np.testing.assert_array_equal(
            array(cut), array(adapter.tensor(np.stack(parts, axis=1)))
        )
        np.testing.assert_array_equal(array(names["merge"](cut)), X.astype(float))


def attention_by_hand(
    its: Arrays, queries: np.ndarray, keys: np.ndarray, heads: int, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """What the layer puts out, and the weights of each head."""
    return reference_multi_head(its, heads, queries, keys, keys, causal=causal)


def test_all_ways_to_compute_it_are_one_head_after_the_other(cells):
    names = cells["the-layer"].names
    its = {W: array(names[W]) for W in ("W_q", "W_k", "W_v", "W_o")}
    X = array(names["X"])
    expected, _ = attention_by_hand(its, X, X, 2)
    assert_variables(names, by_heads=expected, by_layer=expected, ours=expected)
    (largest,), *differences = cells["all-alike"].rows
    assert_printed(largest, np.abs(expected).max(), 4)
    assert differences == [[0], [0]]
    if "own-layer" in cells:
        assert_variables(cells["own-layer"].names, by_own=expected)
        assert cells["own-layer"].rows == [[0]]


def test_any_number_of_heads_is_one_head_after_the_other(adapter, cells):
    multi_head = cells["multi-head"].names["multi_head"]
    rng = np.random.default_rng(1)
    X, *matrices = rng.normal(size=(1, 7, 12)), *rng.normal(size=(4, 12, 12)) / 3
    its = dict(zip(("W_q", "W_k", "W_v", "W_o"), matrices, strict=True))
    for heads in (1, 2, 3, 6):
        given = (adapter.tensor(each.astype("float32")) for each in (X, *matrices))
        expected, _ = attention_by_hand(its, X, X, heads)
        np.testing.assert_allclose(
            array(multi_head(*given, heads)), expected, atol=1e-4
        )


def test_each_step_has_the_shape_that_is_printed(cells):
    steps = {
        name: array(step).shape for name, step in cells["shapes"].names["steps"].items()
    }
    assert steps == {
        "X": (1, 5, 8),
        "X W_q": (1, 5, 8),
        "split": (1, 2, 5, 4),
        "attended": (1, 2, 5, 4),
        "merged": (1, 5, 8),
        "output": (1, 5, 8),
    }
    assert [tuple(row) for row in cells["shapes"].rows] == [*steps.values()]


def test_weights_come_averaged_unless_told_otherwise(cells):
    if "averaged-maps" in cells:
        names = cells["averaged-maps"].names
        averaged, by_head = array(names["weights"]), array(names["by_head"])
        np.testing.assert_allclose(averaged, by_head.mean(axis=1), atol=1e-6)
        assert cells["averaged-maps"].rows == [[1, 5, 5], [1, 2, 5, 5]]


def test_merged_without_exchanging_one_number_in_five_is_in_its_place(cells):
    names = cells["merged-wrongly"].names
    attended = array(names["attended"])
    right = np.concatenate([*attended[0]], axis=-1)
    in_place = (attended.reshape(5, 8) == right).mean()
    np.testing.assert_array_equal(array(names["wrong"])[0], attended.reshape(5, 8))
    assert cells["merged-wrongly"].rows == [[1, 5, 8, 1, 5, 8], [in_place]]
    assert in_place == 1 / 5


def test_the_wrong_root_flattens_the_weights(cells):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(8, 1000, 64)) @ rng.normal(size=(8, 10, 64)).mT
    for row, root in zip(cells["wrong-root"].rows, (64, 512), strict=True):
        largest = softmax(scores / np.sqrt(root)).max(axis=-1).mean()
        assert row == [root, pytest.approx(largest, abs=0.03)]


def test_costs_do_not_depend_on_the_number_of_heads(cells):
    n, d = 10, 64
    assert rows_of(cells["costs"].printed.replace(",", "")) == [
        [heads, d / heads, 4 * d**2, 4 * n * d**2 + 2 * n**2 * d, heads * n**2]
        for heads in (1, 2, 4, 8, 16)
    ]


# One head or two, trained


def drawn(adapter: Adapter, cells: Any, count: int, sign: int = -1) -> list[np.ndarray]:
    """Letters, numbers, pairs asked for, answers."""
    return [
        array(each)
        for each in adapter.lesson_draw(
            cells["questions"].names, "questions", count, 6, sign
        )
    ]


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_question_is_a_pair_of_letters_and_its_answer_their_difference_or_sum(
    adapter, cells, sign
):
    letters, values, asked, answers = drawn(adapter, cells, 200, sign)
    assert letters.shape == values.shape == (200, 6)
    assert {*letters.ravel()} == {*range(26)}
    assert abs(values.mean()) < 0.1
    assert values.var() == pytest.approx(1, abs=0.15)
    for letter, value, pairs, answer in zip(
        letters, values, asked, answers, strict=True
    ):
        its = dict(zip(letter, value, strict=True))
        assert len(its) == 6
        assert all(a != b for a, b in pairs)
        told = [its[a] + sign * its[b] for a, b in pairs]
        np.testing.assert_allclose(answer, told, atol=1e-5)
    assert {*asked[..., 0].ravel()} == {*asked[..., 1].ravel()} == {*range(26)}


def test_the_questions_shown_are_answered_right(cells):
    entries, *asked = cells["questions"].printed.splitlines()
    words = entries.split(":")[1].split()
    its = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    assert len(its) == 6
    assert len(asked) == 3
    for line in asked:
        a, _, b, _, answer = line.split()
        assert float(answer) == pytest.approx(its[a] - its[b], abs=0.11)


def comparer_by_hand(
    its: Arrays, letters: np.ndarray, values: np.ndarray, asked: np.ndarray, heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """What the model makes of its parameters: answers and weights."""
    asked = asked.astype(int)
    entries = its["letter"][letters.astype(int)] + values[..., None] @ its["number"]
    queries = its["first"][asked[..., 0]] + its["second"][asked[..., 1]]
    Y, weights = attention_by_hand(its, queries, entries, heads)
    return (Y @ its["output"] + its["bias"])[..., 0], weights


def error_by_hand(its: Arrays, given: list[np.ndarray], heads: int) -> float:
    *inputs, answers = given
    said, _ = comparer_by_hand(its, *inputs, heads)
    return float(((said - answers) ** 2).mean())


def comparer(adapter: Adapter, model: Any) -> Arrays:
    """What a model that compares numbers has learned."""
    projections = (f"attention.{W}" for W in ("W_q", "W_k", "W_v", "W_o"))
    matrices = "number", *projections
    return adapter.lesson_weights(model, ("letter", "first", "second"), matrices)


def exactly(error: float) -> Any:
    """The same error of the same questions, in single precision."""
    return pytest.approx(error, rel=0.005, abs=1e-5)


@pytest.mark.parametrize(
    ("cell", "test", "sign"),
    [("errors", "differences", -1), ("solution-sum", "sums", 1)],
)
def test_tests_are_questions_of_many_dictionaries(adapter, cells, cell, test, sign):
    letters, values, asked, answers = adapter.lesson_arrays(cells[cell].names[test])
    assert letters.shape == values.shape == answers.shape == (len(letters), 6)
    assert len(letters) in (500, 1000)
    at = (letters[:, None, None] == asked[..., None]).argmax(axis=-1)
    told = np.take_along_axis(values[:, None], at, axis=-1)
    np.testing.assert_allclose(answers, told[..., 0] + sign * told[..., 1], atol=1e-5)
    assert len({*map(tuple, letters)}) > len(letters) - 10


def test_errors_are_those_of_the_models_which_differ_in_their_heads_alone(
    adapter, cells
):
    names = cells["errors"].names
    given = adapter.lesson_arrays(names["differences"])
    sizes = set()
    for heads, models in names["models"].items():
        found = []
        for model, error in zip(models, names["errors"][heads], strict=True):
            its = comparer(adapter, model)
            sizes.add(sum(each.size for each in its.values()))
            found.append(error_by_hand(its, given, heads))
            assert float(error) == exactly(found[-1])
        assert len({*np.round(found, 6)}) == 5
    assert len(sizes) == 1
    for row, (heads, errors) in zip(
        cells["errors"].rows[-3:], names["errors"].items(), strict=True
    ):
        assert len(errors) == 5
        assert_printed(np.abs(row), [heads, *median_and_range(errors)], 3)


def test_models_are_trained_for_so_many_steps(cells, framework, assert_trained_on):
    assert {*BUDGETS_OF_READERS[framework]} <= cells["train-readers"].numbers
    assert_trained_on("solution-sum", "questions", 6)


def test_the_error_of_one_head_is_one_at_best():
    """For weights w and w' of the two letters and a factor c, as the text derives it."""
    w, other, c = np.meshgrid(
        np.linspace(0, 1, 51), np.linspace(0, 1, 51), np.linspace(-5, 5, 201)
    )
    error = np.where(w + other <= 1, (c * w - 1) ** 2 + (c * other + 1) ** 2, np.inf)
    assert error.min() == pytest.approx(1)
    a, b = np.random.default_rng(0).normal(size=(2, 10**6))
    drawn = (1.5 * (0.7 * a + 0.2 * b) - (a - b)) ** 2
    expected = (1.5 * 0.7 - 1) ** 2 + (1.5 * 0.2 + 1) ** 2
    assert drawn.mean() == pytest.approx(expected, rel=0.01)


def test_one_head_finds_the_first_letter_and_the_other_the_second(adapter, cells):
    cell = cells["two-heads-map"]
    entries, pairs = (line.split(":")[1].split() for line in cell.printed.splitlines())
    its = comparer(adapter, cell.names["models"][2][0])
    _, weights = comparer_by_hand(its, *adapter.lesson_question(cell.names), 2)
    axes, titles = ("Entries", "Questions"), ["Head 1", "Head 2"]
    maps = assert_maps(cell, weights[0], axes, titles, atol=1e-3)
    found = [[entries[i] for i in each.argmax(axis=1)] for each in maps]
    first, second = ([pair.split("-")[i] for pair in pairs] for i in (0, 1))
    assert sorted(found) == sorted([first, second])


def test_a_head_is_missed_as_much_as_is_printed(adapter, cells):
    names = cells["without-a-head-shown"].names
    given = adapter.lesson_arrays(names["differences"])
    printed = removed_heads(cells["without-a-head-shown"].rows)
    for heads, of_models in names["removed"].items():
        for seed, costs in enumerate(of_models):
            its = comparer(adapter, names["models"][heads][seed])
            width = its["W_o"].shape[0] // heads
            assert len(costs) == heads
            for head, cost in enumerate(costs):
                W_o = its["W_o"].copy()
                W_o[head * width : (head + 1) * width] = 0
                found = error_by_hand(its | {"W_o": W_o}, given, heads)
                assert float(cost) == exactly(found)
                assert_printed(printed[heads][seed][head], float(cost), 3)


def test_the_models_hear_all_their_heads_again_afterwards(adapter, cells):
    names = cells["without-a-head-shown"].names
    given = drawn(adapter, cells, 400)
    for heads in (2, 4):
        for model in names["models"][heads]:
            assert error_by_hand(comparer(adapter, model), given, heads) < GONE


# Two layers


def test_a_text_is_a_dictionary_and_the_same_in_another_order(adapter, cells):
    tokens, digits = (
        array(each).astype(int)
        for each in adapter.lesson_draw(cells["texts"].names, "texts", 200)
    )
    assert (tokens.shape, digits.shape) == ((200, 16), (200, 4))
    for text, answer in zip(tokens, digits, strict=True):
        pairs = text.reshape(8, 2)
        assert len({*pairs[:4, 0]}) == 4
        assert sorted(pairs[:4].tolist()) == sorted(pairs[4:].tolist())
        assert (pairs[:, 0] < 26).all()
        np.testing.assert_array_equal(pairs[4:, 1] - 26, answer)
    assert any((text[:8] != text[8:]).any() for text in tokens)
    for line in cells["texts"].printed.splitlines():
        written = line.split()
        first, second = (
            {*zip(half[::2], half[1::2], strict=True)}
            for half in (written[:8], written[8:])
        )
        assert first == second


def reader_by_hand(
    its: Arrays, layers: list[Arrays], tokens: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits at the letters of the second half, and the map of each layer."""
    X, maps = its["token"][tokens] + its["place"][: tokens.shape[1]], []
    for layer in layers:  # two heads in all
        Y, weights = attention_by_hand(layer, X, X, 2 // len(layers), causal=True)
        X = X + Y
        maps.append(weights[:, 0])
    return X[:, 8::2] @ its["output"] + its["bias"], maps


def share_by_hand(
    its: Arrays, layers: list[Arrays], tokens: np.ndarray, digits: np.ndarray
) -> float:
    logits, _ = reader_by_hand(its, layers, tokens)
    return share_right(logits.argmax(axis=-1), digits)


def texts(adapter: Adapter, cells: Any) -> list[np.ndarray]:
    return [
        array(each).astype(int)
        for each in adapter.lesson_draw(cells["texts"].names, "texts", 400)
    ]


def read_test(adapter: Adapter, cells: Any) -> list[np.ndarray]:
    """What the readers are tested on."""
    test = adapter.lesson_arrays(cells["readers-shares"].names["test"])
    tokens, digits = (each.astype(int) for each in test)
    assert (tokens.shape, digits.shape) == ((500, 16), (500, 4))
    np.testing.assert_array_equal(tokens[:, 9::2] - 26, digits)
    assert len({*map(tuple, tokens)}) > 490
    return [tokens, digits]


def test_shares_are_those_of_the_readers(adapter, cells):
    names = cells["readers-shares"].names
    tokens, digits = read_test(adapter, cells)
    for row, (count, readers) in zip(
        cells["readers-shares"].rows, names["readers"].items(), strict=True
    ):
        of_seeds = [float(share) for share in names["shares"][count]]
        of_tables = set()
        for reader, share in zip(readers, of_seeds, strict=True):
            its, layers = adapter.lesson_layers(reader, count)
            of_tables.add(float(its["token"].sum()))
            found = share_by_hand(its, layers, tokens, digits)
            assert share == pytest.approx(found, abs=NEARLY_NONE)
        assert len(of_tables) == 5  # from five seeds
        assert_printed(np.abs(row), [count, *median_and_range(of_seeds)], 3)


@pytest.mark.parametrize("count", [1, 2])
def test_a_reader_is_the_formula(adapter, cells, count):
    reader = cells["readers-shares"].names["readers"][count][0]
    tokens, _ = texts(adapter, cells)
    said = reader(adapter.tensor(tokens[:50].astype("int32")))
    logits = said[0] if isinstance(said, tuple) else said  # with its maps, or alone
    expected, _ = reader_by_hand(*adapter.lesson_layers(reader, count), tokens[:50])
    np.testing.assert_allclose(array(logits), expected, rtol=1e-3, atol=2e-2)


def test_blind_choice_is_right_about_one_time_in_three(adapter, cells):
    tokens, digits = texts(adapter, cells)
    there = tokens[:, 1:8:2] - 26
    right = (there[:, :, None] == digits[:, None]).mean()
    assert right == pytest.approx(BLIND, abs=0.03)
    assert 0.3 < BLIND < 0.35


def test_the_digit_that_stands_most_often_is_right_as_often_as_one_layer(
    adapter, cells
):
    tokens, digits = texts(adapter, cells)
    there = tokens[:, 1:8:2] - 26
    often = (there[:, :, None] == there[:, None]).sum(axis=-1)
    said = np.take_along_axis(there, often.argmax(axis=1)[:, None], axis=1)
    assert (said == digits).mean() == MOST_FREQUENT
    for share in cells["readers-shares"].names["shares"][1]:
        assert float(share) == MOST_FREQUENT


def test_the_first_layer_looks_one_back_and_the_second_behind_the_letter(
    adapter, cells
):
    cell = cells["readers-maps"]
    words = cell.printed.split()
    names = cell.names
    tokens = array(names["tokens"]).astype(int).reshape(1, 16)
    its, layers = adapter.lesson_layers(names["readers"][2][0], 2)
    _, maps = reader_by_hand(its, layers, tokens)
    axes, titles = ("Keys", "Queries"), ["First layer", "Second layer"]
    expected = [each[0] for each in maps]
    first, second = assert_maps(cell, expected, axes, titles, atol=1e-3)
    for digit in (1, 3, 5, 7):
        assert first[digit].argmax() == digit - 1
    for letter in (8, 10, 12, 14):
        assert second[letter].argmax() == words.index(words[letter]) + 1


def test_what_is_left_without_a_layer(adapter, cells):
    names = cells["solution-without-a-layer-shown"].names
    tokens, digits = read_test(adapter, cells)
    for row, (left_out, shares) in zip(
        cells["solution-without-a-layer-shown"].rows, names["left"].items(), strict=True
    ):
        shares = [float(share) for share in shares]
        for reader, share in zip(names["readers"][2], shares, strict=True):
            its, layers = adapter.lesson_layers(reader, 2)
            layers[left_out] = {W: 0 * each for W, each in layers[left_out].items()}
            found = share_by_hand(its, layers, tokens, digits)
            assert share == pytest.approx(found, abs=NEARLY_NONE)
        assert_printed(np.abs(row), median_and_range(shares), 3)
    lines = cells["solution-without-a-layer-shown"].printed.splitlines()
    assert ["first" in lines[0], "second" in lines[1]] == [True, True]


# Solutions


def test_a_heads_scores_have_the_rank_of_its_width(cells):
    names = cells["solution-rank"].names
    X, W_q, W_k = (array(names[each])[-20:] for each in ("X", "W_q", "W_k"))
    found = []
    for heads in (1, 2, 4, 8):
        width = 8 // heads
        scores = (X.reshape(20, 8) @ W_q[:, :width]) @ (
            X.reshape(20, 8) @ W_k[:, :width]
        ).T
        found.append([heads, width, np.linalg.matrix_rank(scores, rtol=1e-6)])
    assert cells["solution-rank"].rows == found


def test_heads_have_no_order(cells):
    names = cells["solution-order"].names
    its = {W: array(names[W]) for W in ("W_q", "W_k", "W_v", "W_o")}
    X, order = array(names["X"]), array(names["order"]).astype(int)
    assert order.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    expected, _ = attention_by_hand(its, X, X, 2)
    assert_variables(names, before=expected, after=expected)
    for found, W in zip(names["exchanged"], ("W_q", "W_k", "W_v"), strict=True):
        np.testing.assert_allclose(array(found), its[W][:, order], atol=1e-6)
    (largest,), (difference,) = cells["solution-order"].rows
    assert_printed(largest, np.abs(expected).max(), 4)
    assert difference == 0


def test_one_head_can_add(adapter, cells):
    names = cells["solution-sum-shown"].names
    given = adapter.lesson_arrays(names["sums"])
    errors = [float(error) for error in names["of_sums"]]
    starts = set()
    for model, error in zip(names["adders"], errors, strict=True):
        its = comparer(adapter, model)
        starts.add(its["letter"][0, 0])
        assert error == exactly(error_by_hand(its, given, 1))
    assert len(starts) == 5  # each from a seed of its own
    (row,) = cells["solution-sum-shown"].rows
    assert_printed(np.abs(row), median_and_range(errors), 3)


def test_the_mean_map_is_the_mean_of_the_two(adapter, cells):
    cell = cells["solution-mean-map"]
    its = comparer(adapter, cell.names["models"][2][0])
    _, weights = comparer_by_hand(its, *adapter.lesson_question(cell.names), 2)
    expected = [*weights[0], weights[0].mean(axis=0)]
    axes, titles = ("Entries", "Questions"), ["Head 1", "Head 2", "Mean"]
    first, second, mean = assert_maps(cell, expected, axes, titles, atol=1e-3)
    np.testing.assert_allclose(mean, (first + second) / 2, atol=1e-5)
    assert ((mean > 0.25).sum(axis=1) == 2).all()  # two entries matter in each row
