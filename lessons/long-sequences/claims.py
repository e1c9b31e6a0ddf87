"""Check the lesson's claims against NumPy: counts, blocks, windows, linear attention, and what trained models recall.

nbval compares a notebook with its stored outputs, and cannot know whether these are right. Measured times decide
nothing here.
"""

import re
from typing import Any

import numpy as np
import pytest

from d2l_compat.conformance.reference import compute
from tests.lessons.cells import array, assert_printed, parse_rows, read_numbers, softmax
from tests.lessons.shared_claims import assert_range_table, to_floats
from tests.shim import reference

# Cells without random numbers have the same output in every framework, to the last digit.
DETERMINISTIC = [
    "operations",
    "bytes",
    "online-by-hand",
    "softmax-by-hand",
    "window",
    "reach-shown",
    "linear-by-hand",
    "state-bytes-shown",
    "decay-by-hand",
    "solution-causal",
    "solution-powers",
    "solution-delta",
]
# Each framework draws its own pairs, and measures what it keeps in its own way.
VARYING_FORM = ["overflow", "empty-row", "kept-shown", "pairs-shown"]

DIFFERENCE = re.compile(r"= (\d+\.\d+)$", re.MULTILINE)


def read_differences(cell: Any) -> list[float]:
    return [float(number) for number in DIFFERENCE.findall(cell.printed)]


def read_rows(cell: Any) -> list[list[float]]:
    """Return the numbers in each printed line, of which those above a thousand have commas."""
    return parse_rows(cell.printed.replace(",", ""))


def attend(Q: Any, K: Any, V: Any, window: int | None = None) -> np.ndarray:
    """Return softmax(Q K^T / sqrt(d)) V, of matrices."""
    output, _ = reference.dot_product_attention(
        Q[None], K[None], V[None], window=window
    )
    return output[0]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype("float32")


@pytest.fixture(scope="module")
def matrices(cells) -> list[np.ndarray]:
    return [array(cells["matrices"].names[name]) for name in "QKV"]


# What attention costs


def test_multiply_adds_follow_the_formulas(cells):
    for n, *counts in read_rows(cells["operations"]):
        formulas = 8 * n * 64**2, 2 * n * 64**2, 4 * n * 64**2 + 2 * n**2 * 64
        assert counts == [*formulas]
    (crossing,) = [row for row in read_rows(cells["operations"]) if row[1] == row[3]]
    assert crossing[0] == (8 - 4) * 64 / 2 == 128


def test_each_layer_is_timed_at_each_length(cells):
    lengths, *rows = cells["layers-drawn"].rows
    assert lengths == [2**i for i in range(5, 12)]
    times = [row[:-1] for row in rows]
    assert np.shape(times) == (3, 7)
    np.testing.assert_allclose(times, cells["layers-timed"].names["times"], atol=0.006)
    exponents = [np.log2(row[-1] / row[-3]) / 2 for row in times]
    assert_printed([row[-1] for row in rows], exponents, 1)
    assert len(cells["layers-drawn"].curves) == 3
    assert cells["layers-drawn"].legend == ["CNN", "RNN", "attention"]


def test_layers_compute_what_they_are_called(adapter, cells):
    """Check that a convolution sees 8 tokens, and that the others see all that they should."""
    layers = cells["layers"].names["layers"]
    for layer, reach in zip(layers, (8, 20, 20), strict=True):
        first, second = (draw(20, 64) for _ in range(2))
        second[:12] += 1
        outputs = [array(layer(adapter.tensor(X))) for X in (first, second)]
        changed = np.abs(outputs[0] - outputs[1]).max(axis=1) > 1e-6
        assert outputs[0].shape == (20, 64)
        assert changed[:12].all()
        assert changed[12 : 12 + reach - 1].all()
        assert changed[12 + reach - 1 :].sum() == 0


def test_bytes_of_a_matrix(cells):
    for n, *printed in read_rows(cells["bytes"]):
        # "8 n^2 = " and "4 n d = " begin with numbers, too.
        assert printed == [8, 2, 8 * n**2, 4, 4 * n * 64]
    megabytes = 4 * 16_000**2 * 32 * 32 / 1e6
    assert megabytes == pytest.approx(1e6, rel=0.05)  # "a million megabytes"


# The online softmax


def test_three_numbers_follow_by_hand(cells):
    scores, values = np.array([1.0, 3, 2]), np.array([10.0, 20, 30])
    for i, row in enumerate(cells["online-by-hand"].rows, start=1):
        powers = np.exp(scores[:i] - scores[:i].max())
        m, total, weighted = scores[:i].max(), powers.sum(), powers @ values[:i]
        assert_printed(row, [scores[i - 1], m, total, weighted, weighted / total], 3)
    assert_printed(cells["softmax-by-hand"].rows, [[softmax(scores) @ values]], 3)
    # The second exercise: a fourth score, 4, whose value is 0.
    powers = np.exp(np.array([1.0, 3, 2, 4]) - 4)
    total, weighted = powers.sum(), powers[:3] @ values
    assert_printed([1.553, 11.916], [total, weighted], 3)
    assert_printed(7.67, weighted / total)


def test_large_scores_overflow_unless_shifted(cells):
    powers, weights, _, shifted_weights = cells["overflow"].printed.lower().splitlines()
    assert powers.count("inf") == 2
    assert weights.count("nan") == 2
    weights = read_numbers(shifted_weights.split("weights")[1])
    np.testing.assert_allclose(weights, softmax(np.array([100.0, 102])), rtol=1e-5)


@pytest.mark.parametrize("block_size", [1, 5, 64, 100])
def test_blocks_equal_the_plain_formula(adapter, cells, block_size):
    Q, K, V = draw(12, 8), 50 * draw(100, 8), draw(100, 3)
    function = cells["blocks"].names["attend_in_blocks"]
    output, log_sums = function(*map(adapter.tensor, (Q, K, V)), block_size)
    np.testing.assert_allclose(array(output), attend(Q, K, V), atol=1e-4)
    scores = (Q @ K.T / np.sqrt(8)).astype(float)
    largest = scores.max(axis=1)
    expected = largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))
    np.testing.assert_allclose(array(log_sums).ravel(), expected, rtol=1e-5)


def test_printed_blocks_agree(cells):
    assert [row[0] for row in cells["blocks-same"].rows] == [1, 7, 64, 300]
    assert max(read_differences(cells["blocks-same"])) <= 1e-5


def test_query_that_sees_nothing(cells):
    first, second, third = cells["empty-row"].printed.lower().splitlines()
    assert first.count("nan") == 2
    assert second.count("nan") == 1
    assert re.findall(r"-?\d+\.\d+", third) == ["0.0", "0.0"]


@pytest.mark.parametrize("block_size", [1, 7, 50])
def test_gradients_in_blocks_equal_formula(adapter, cells, block_size):
    Q, K, V, grad = draw(20, 8), 2 * draw(50, 8), 3 * draw(50, 4), draw(20, 4)
    names = cells["backward"].names
    Q_, K_, V_, grad_ = map(adapter.tensor, (Q, K, V, grad))
    output, log_sums = names["attend_in_blocks"](Q_, K_, V_, block_size)
    found = names["gradients_in_blocks"](
        Q_, K_, V_, output, log_sums, grad_, block_size
    )
    inputs = {"queries": Q, "keys": K, "values": V, "direction": grad}
    inputs = {name: x[None, None].astype(float) for name, x in inputs.items()}
    expected = compute("attention", inputs, {})
    for a, name in zip(found, ("queries", "keys", "values"), strict=True):
        np.testing.assert_allclose(
            array(a), expected[f"gradient_{name}"][0, 0], atol=1e-4
        )
    assert max(read_differences(cells["backward-same"])) <= 1e-5


def test_only_the_plain_formula_keeps_a_matrix(cells, framework):
    kept = np.array(to_floats(cells["kept"].names["kept"]))
    square = 4 * np.array([1024, 2048, 4096]) ** 2 / 1e6
    cnn, rnn, plain, blocks, *ready_made = kept
    assert (plain >= square).all()
    assert (blocks >= square).all()
    assert len(ready_made) == 1 + (framework == "pytorch")  # its own attention is fused
    if framework == "djl":
        assert (ready_made[0] >= square).all()
        ready_made = []
    for small, middle, large in [cnn, rnn, *ready_made]:
        assert large < square[-1] / 10
        assert 1.5 < large / middle < 2.2
        # Below 2,048 tokens, d2l's attention may compute the plain formula.
        assert 1.5 < middle / small < 2.2 or small >= square[0]
    printed = [row for row in read_rows(cells["kept-shown"]) if len(row) == 3]
    assert_printed(printed[1:], kept[: 5 if framework == "pytorch" else 4], 1)


# A window


def test_window_has_the_query_and_those_before_it(cells):
    assert cells["window"].rows == (np.tri(6) - np.tri(6, k=-3)).tolist()


@pytest.mark.parametrize(
    ("n", "window"), [(20, 5), (21, 5), (24, 5), (7, 7), (5, 9), (10, 1)]
)
def test_window_in_blocks_equals_mask(adapter, cells, n, window):
    Q, K, V = (draw(n, 8) for _ in range(3))
    V = V * np.arange(1, n + 1, dtype="float32")[:, None]
    found = cells["window-blocks"].names["attend_in_window"](
        *map(adapter.tensor, (Q, K, V)), window
    )
    np.testing.assert_allclose(array(found), attend(Q, K, V, window), atol=1e-4)


def test_printed_windows_agree_but_for_one_key_more(cells, matrices):
    assert read_differences(cells["window-same"]) == [0, 0]
    first, second = (attend(*matrices, window) for window in (32, 33))
    assert_printed(
        read_differences(cells["off-by-one"]), [np.abs(first - second).max()], 4
    )
    assert np.abs(first - second).max() > 0.1


def test_each_layer_reaches_a_window_further(cells):
    for row, num_layers in zip(cells["reach-shown"].rows, range(1, 7), strict=True):
        assert row[0] == num_layers
        assert row[1] == row[-1] == num_layers * (4 - 1) + 1
    for num_layers, window in [(1, 1), (2, 3), (3, 5)]:
        reached = array(cells["reach"].names["find_reach"](num_layers, window))
        expected = num_layers * (window - 1) + 1
        assert reached.tolist() == [0] * (24 - expected) + [1] * expected


# Linear attention


def test_sums_by_hand(cells):
    keys, values = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([10.0, 20, 30])
    *rows, answer = cells["linear-by-hand"].rows
    for i, row in enumerate(rows, start=1):
        assert row == [*(keys[:i].T @ values[:i]), *keys[:i].sum(axis=0)]
    assert answer == [40, 2, 20]


@pytest.mark.parametrize("decay", [1.0, 0.7])
def test_three_forms_of_linear_attention(adapter, cells, decay):
    Q, K, V = draw(23, 6), 2 * draw(23, 6), draw(23, 4)
    expected = reference.linear_weights(Q, K, decay) @ V
    names = cells["chunks"].names
    tensors = [adapter.tensor(X) for X in (Q, K, V)]
    for function in ("attend_in_parallel", "attend_token_by_token"):
        found = names[function](*tensors, decay)
        np.testing.assert_allclose(array(found), expected, atol=1e-5)
    for size in (1, 5, 23, 40):
        found = names["attend_in_chunks"](*tensors, decay, size)
        np.testing.assert_allclose(array(found), expected, atol=1e-5)


def test_printed_forms_agree(cells):
    assert max(read_differences(cells["linear-same"])) <= 1e-5
    assert [row[0] for row in cells["chunks-same"].rows] == [1, 64, 300]
    assert max(read_differences(cells["chunks-same"])) <= 1e-5
    assert max(read_differences(cells["linear-layer-same"])) <= 1e-5


def test_forms_are_timed_at_each_length(cells):
    lengths, *rows = read_rows(cells["forms-timed-shown"])
    assert lengths == [512, 1024, 2048, 4096]
    names = cells["forms-timed"].names
    assert_printed(rows, names["form_times"])


def test_layer_equals_reference(adapter, cells):
    names = cells["linear-layer-same"].names
    W = adapter.lesson_matrices(names, "layer", [f"W_{role}" for role in "qkvo"])
    X = array(names["X"])
    assert X.shape == (2, 50, 16)
    projections = {f"w_{role}": reference.Linear(W[f"W_{role}"]) for role in "qkvo"}
    expected, _ = reference.linear_attention(X, num_heads=2, decay=0.9, **projections)
    found = np.concatenate([array(part) for part in names["parts"]], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_state_is_smaller_than_a_cache_of_33_tokens(cells):
    (state,), *caches = read_rows(cells["state-bytes-shown"])
    assert state == 4 * (64 * 64 + 64) * 4 == 66_560
    for n, size in caches:
        assert size == 2 * 256 * 4 * n
    assert 32 * 2048 < state < 33 * 2048


# What the state forgets


def test_pairs_are_asked_for_once_more(adapter, cells):
    drawn = adapter.lesson_draw(cells["draw-pairs"].names, "draw_pairs", 500, 8)
    keys, values, answers = (np.asarray(x).astype(int) for x in drawn)
    assert keys.shape == values.shape == (500, 16)
    assert answers.shape == (500, 8)
    for row_keys, row_values, row_answers in zip(keys, values, answers, strict=True):
        pairs = dict(zip(row_keys[:8], row_values[:8], strict=True))
        assert len(pairs) == 8  # no key comes twice
        assert [pairs[key] for key in row_keys[8:]] == [*row_answers]
    assert {*keys.ravel()} == {*range(32)}
    assert {*answers.ravel()} == {*range(8)}
    assert (values[:, 8:] == 8).all()
    assert (keys[:, 8:] != keys[:, :8]).mean() > 0.8  # in another order


def test_budget_is_the_stated_one(cells):
    assert {400, 32, 0.02, 0.1, 2, 4, 8, 16} <= cells["train"].numbers
    assert {16, 1, 4} <= cells["train-all"].numbers


def test_seeds_give_different_models(cells):
    for name in ("softmax", "one_head", "four_heads"):
        recalls = to_floats(cells["recall"].names[f"{name}_recall"])
        assert np.shape(recalls) == (5, 4)
    names = cells["recall"].names
    linear = [
        to_floats(names[f"{heads}_recall"]) for heads in ("one_head", "four_heads")
    ]
    assert len({*map(tuple, np.reshape(linear, (10, 4)))}) == 10


def test_recall_falls_with_pairs_and_with_a_smaller_state(cells):
    names = cells["recall"].names
    rows = assert_range_table(
        cells["recall-shown"],
        {
            "softmax": names["softmax_recall"],
            "16 x 16": names["one_head_recall"],
            "4 x 4 x 4": names["four_heads_recall"],
        },
    )
    softmax_row, *linear = [[median for median, *_ in row] for row in rows]
    assert min(softmax_row) > 0.98
    for row in linear:
        assert (np.diff(row) < 0.005).all()
        assert row[0] > 0.95
    at_sixteen = [row[-1] for row in linear]
    assert 0.9 > at_sixteen[0] > at_sixteen[1] + 0.1
    assert at_sixteen[1] < 0.7
    assert len(cells["recall-shown"].figures) == 1


def test_a_softmax_above_a_linear_layer_finds_all(cells):
    names = cells["stacks-shown"].names
    two_linear, mixed = assert_range_table(
        cells["stacks-shown"],
        {
            "two linear": names["two_linear_recall"],
            "mixed": names["mixed_recall"],
        },
    )
    assert min(median for median, *_ in mixed) > 0.98
    four_heads = np.median(to_floats(names["four_heads_recall"]), axis=0)
    assert four_heads[-1] - 0.03 < two_linear[-1][0] < 0.8  # "helps a little"


# Forgetting on purpose


def test_powers_of_the_decay(cells):
    for row, decay in zip(cells["decay-by-hand"].rows, (0.5, 0.9, 0.99), strict=True):
        assert row[0] == decay
        assert_printed(row[2::2], [decay**r for r in (1, 10, 100)], 4)
    assert 0.9**16 < 1 / 5  # "less than a fifth is left"


def test_decay_keeps_the_newest(cells):
    names = cells["recall-by-age"].names
    lasting, decaying = assert_range_table(
        cells["recall-by-age-shown"],
        {"a = 1": names["lasting_by_age"], "a = 0.9": names["decaying_by_age"]},
    )
    medians = [median for median, *_ in lasting]
    assert max(medians) - min(medians) < 0.06
    oldest, *between, newest = [median for median, *_ in decaying]
    assert oldest < medians[0] - 0.15
    assert newest > medians[-1] + 0.15
    assert (np.diff([oldest, *between, newest]) > 0).all()


# Solutions


def test_numbers_of_the_pen_and_paper_solutions():
    assert 32 * 32_768**2 * 2 / 1024**3 == 64
    assert 32 * (4096 - 1) + 1 == 131_041
    n = np.arange(1, 2000)
    attention, convolution = 4 * n * 512**2 + 2 * n**2 * 512, 8 * n * 512**2
    assert n[attention > convolution][0] == 1025
    assert (attention > 4 * n * 512**2).all()


def test_halves_merge_to_the_whole(adapter, cells):
    assert max(read_differences(cells["solution-merge"])) <= 1e-5
    names = cells["solution-merge"].names
    Q, K, V = 3 * draw(10, 8), draw(30, 8), draw(30, 8)
    parts = [
        names["attend_in_blocks"](*map(adapter.tensor, (Q, K[rows], V[rows])), 4)
        for rows in (slice(11), slice(11, 30))
    ]
    merged = names["merge"](*parts[0], *parts[1])
    np.testing.assert_allclose(array(merged), attend(Q, K, V), atol=1e-5)


def test_causal_blocks_are_half_and_one(cells):
    assert cells["solution-causal"].rows[0][:2] == [15, 25]
    assert read_differences(cells["solution-causal"]) == [0]
    assert 5 * (5 + 1) / 2 == 15


def test_powers_overflow_past_128(cells):
    for row, j in zip(
        cells["solution-powers"].printed.splitlines(), (100, 126, 128, 200), strict=True
    ):
        assert row.lower().endswith("inf") == (j >= 128)


def test_delta_rule_replaces(cells):
    assert cells["solution-delta"].rows == [
        [0, 10, 10, 0],
        [0, 20, 10, 20],
        [10, 30, 30, 20],
    ]
