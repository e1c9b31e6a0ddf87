"""Tests of recommender systems, against NumPy in float64 and cases computed by hand."""

from d2l_compat import mxnet as d2l  # isort: skip  it makes MXNet importable
import builtins
import re
from pathlib import Path
from typing import Any

import numpy as onp
import pandas
import pytest
from mxnet import autograd, gluon, init, np, npx

from tests.shim.each import fake_data
from tests.shim.each.boards import watch_boards
from tests.shim.each.cases import assert_close

pytestmark = pytest.mark.usefixtures("close_figures")
RNG = onp.random.default_rng(7)
CPU = [npx.cpu()]
# User, item, stars, time. User 3 rates two films at the same time, and one of them twice.
RATINGS = [
    (2, 4, 5, 50),
    (1, 1, 3, 30),
    (3, 2, 1, 90),
    (1, 2, 4, 10),
    (3, 1, 2, 90),
    (2, 1, 2, 20),
    (1, 3, 1, 30),
    (3, 2, 1, 90),
    (3, 5, 3, 40),
]
COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
TABLE = pandas.DataFrame(RATINGS, columns=COLUMNS)


# Ratings


@pytest.fixture
def films(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    fake_data.replace_films(monkeypatch, d2l, tmp_path, RATINGS)


@pytest.mark.usefixtures("films")
def test_ratings_are_read() -> None:
    data, *counts = d2l.read_data_ml100k()
    assert counts == [3, 5]
    pandas.testing.assert_frame_equal(data, TABLE)


@pytest.mark.usefixtures("films")
def test_missing_pandas_error_names_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def import_module(name: str, *args: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return original(name, *args)

    monkeypatch.setattr(builtins, "__import__", import_module)
    with pytest.raises(ImportError, match=r"it is not installed\. Install it: pip install pandas"):
        d2l.read_data_ml100k()


@pytest.mark.parametrize("test_ratio", [0.1, 0.9])
def test_newest_rating_of_each_user_is_test_data(test_ratio: float) -> None:
    train, test = d2l.split_data_ml100k(TABLE, 3, 5, "seq-aware", test_ratio)
    assert [*test.itertuples(name=None)] == [
        (0, 2, 4, 5, 50),
        (1, 1, 1, 3, 30),  # the first of two at the same time
        (2, 3, 2, 1, 90),
    ]
    assert [*train.itertuples(name=None)] == [
        (0, 1, 2, 4, 10),
        (1, 1, 3, 1, 30),
        (2, 2, 1, 2, 20),
        (3, 3, 5, 3, 40),
        (4, 3, 1, 2, 90),  # the second copy of the test rating is left out
    ]


def test_share_of_ratings_is_test_data() -> None:
    table = pandas.concat([TABLE] * 300, ignore_index=True)
    train, test = d2l.split_data_ml100k(table, 3, 5, test_ratio=0.25)
    assert 0.2 < len(test) / len(table) < 0.3
    pandas.testing.assert_frame_equal(pandas.concat([train, test]).sort_index(), table)
    assert train.index.is_monotonic_increasing
    assert [*map(len, d2l.split_data_ml100k(TABLE, 3, 5, "random", 0))] == [9, 0]
    assert [*map(len, d2l.split_data_ml100k(TABLE, 3, 5, "random", 1))] == [0, 9]


def test_ratings_become_lists_and_matrix_or_items() -> None:
    users, items = [u - 1 for u, *_ in RATINGS], [i - 1 for _, i, *_ in RATINGS]
    *lists, matrix = d2l.load_data_ml100k(TABLE, 3, 6)
    assert lists == [users, items, [rating[2] for rating in RATINGS]]
    want = onp.zeros((6, 3))
    for user, item, stars, _ in RATINGS:
        want[item - 1, user - 1] = stars
    assert matrix.dtype == onp.float32
    onp.testing.assert_array_equal(matrix.asnumpy(), want)
    *lists, items_of_users = d2l.load_data_ml100k(TABLE, 3, 6, "implicit")
    assert lists == [users, items, [1] * 9]
    assert items_of_users == {1: [3, 0], 0: [0, 1, 2], 2: [1, 0, 1, 4]}


@pytest.mark.usefixtures("films")
def test_ratings_come_in_batches() -> None:
    *counts, train, test = d2l.split_and_load_ml100k(batch_size=2)
    assert counts == [3, 5]
    batches = [[part.asnumpy().tolist() for part in batch] for batch in test]
    assert batches == [[[1, 0], [3, 0], [5, 3]], [[2], [1], [1]]]
    assert [len(batch[0]) for batch in train] == [2, 2]  # the fifth is left for the next epoch
    assert [len(batch[0]) for batch in train] == [2, 2, 2]
    assert len(d2l.split_and_load_ml100k("random", "implicit", 0.0, 4)[2]) == 2
    orders = {tuple(u for batch in train for u in batch[0].asnumpy()) for _ in range(9)}
    assert len(orders) > 1  # shuffled


def make_embedding(start: Any, devices: Any = CPU) -> gluon.nn.Embedding:
    """Make an embedding of a number for each user or item."""
    net = gluon.nn.Embedding(len(start), 1)
    net.initialize(init.Zero(), ctx=devices)
    net.weight.set_data(np.array(start).reshape(-1, 1))
    return net


class Rating(gluon.nn.Block):
    """The sum of a number for the user and one for the item."""

    def __init__(self, users: Any, items: Any, devices: Any = CPU) -> None:
        super().__init__()
        self.users = make_embedding(users, devices)
        self.items = make_embedding(items, devices)

    def forward(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        return (self.users(user) + self.items(item)).reshape(-1)

    @property
    def weights(self) -> list[Any]:
        layers = self.users, self.items
        return [layer.weight.list_data()[0].asnumpy()[:, 0] for layer in layers]


USERS, ITEMS = RNG.integers(0, 4, 12), RNG.integers(0, 6, 12)
STARS = RNG.integers(1, 6, 12).astype("float32")
START = RNG.normal(size=4).astype("float32"), RNG.normal(size=6).astype("float32")


@pytest.mark.parametrize("devices", [None, [npx.cpu(0), npx.cpu(1)]])
def test_rating_model_is_trained_and_plotted(
    devices: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boards = watch_boards(monkeypatch)
    calls = []
    expected_devices = devices or d2l.try_all_gpus()
    net = Rating(*START, expected_devices)
    rows = gluon.data.ArrayDataset(*map(np.array, (USERS, ITEMS, STARS)))
    batches = gluon.data.DataLoader(rows, 5)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})

    def evaluator(*args: Any) -> float:
        calls.append(args)
        return len(calls) / 4

    args = net, batches, "test", gluon.loss.L2Loss(), trainer, 3
    d2l.train_recsys_rating(*args, *([devices] if devices else []), evaluator=evaluator)
    users, items = (x.astype("float64") for x in START)
    mean_losses = []
    for _ in range(3):
        losses = 0.0
        for part in (slice(0, 5), slice(5, 10), slice(10, 12)):
            u, i = USERS[part], ITEMS[part]
            errors = users[u] + items[i] - STARS[part]
            losses += (errors**2 / 2).sum()
            onp.add.at(users, u, -0.5 * errors / len(u))
            onp.add.at(items, i, -0.5 * errors / len(u))
        mean_losses.append(losses / 12)
    assert_close(onp.concatenate(net.weights), onp.concatenate([users, items]), 1e-4)
    (board,) = boards
    assert board.Y[0] == pytest.approx(mean_losses, rel=1e-5)
    assert (board.X[0], board.Y[1]) == ([1, 2, 3], [0.25, 0.5, 0.75])
    assert calls == [(net, "test", expected_devices)] * 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"train loss {mean_losses[-1]:.3f}, test RMSE 0.750"
    assert re.fullmatch(rf"\d+\.\d examples/sec on {re.escape(str(expected_devices))}", lines[1])


def test_single_array_of_batch_is_input_and_target() -> None:
    calls = []
    net = gluon.nn.Dense(2, in_units=2, use_bias=False)
    net.initialize(init.One())
    rows = np.array([[1.0, 0.0], [0.0, 2.0]])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    d2l.train_recsys_rating(
        *(net, gluon.data.DataLoader(rows, 2), "test", gluon.loss.L2Loss(), trainer, 1, CPU),
        evaluator=lambda *args: calls.append(args) or 0.0,
        inter_mat="all",
    )
    # The loss is half the mean square over two columns; the output is [[1, 1], [2, 2]].
    slope = onp.array([[0, 1], [2, 0]]).T @ rows.asnumpy() / 2 / 2
    assert_close(net.weight.data().asnumpy(), 1 - slope, 1e-6)
    assert calls == [(net, "test", "all", CPU)]


# Rankings

HIGH, LOW = RNG.normal(size=(6, 1)).astype("float32"), RNG.normal(size=(6, 1)).astype("float32")


@pytest.mark.parametrize("weight", [None, 0.5])
def test_pair_losses_match_formulas(weight: float | None) -> None:
    differences = HIGH.astype("float64") - LOW
    scores = np.array(HIGH), np.array(LOW)
    got = d2l.BPRLoss(weight)(*scores)
    assert got.shape == (1, 1)
    factor = weight or 1
    assert float(got) == pytest.approx(factor * onp.log1p(onp.exp(-differences)).sum(), rel=1e-5)
    for margin in ([], [0.25]):
        got = d2l.HingeLossbRec(weight)(*scores, *margin)
        assert got.shape == ()
        want = factor * onp.maximum(0, (margin or [1])[0] - differences).sum()
        assert float(got) == pytest.approx(want, rel=1e-5)


def test_pairs_far_apart_have_finite_loss_and_gradient() -> None:
    low = np.array([300.0, -300.0])
    low.attach_grad()
    with autograd.record():
        loss = d2l.BPRLoss()(np.zeros(2), low)
    loss.backward()
    assert loss.asnumpy().tolist() == [300]
    assert low.grad.asnumpy().tolist() == [1, 0]


@pytest.mark.parametrize(
    ("ranked", "wanted", "k", "metrics"),
    [
        ([7, 8, 9, 4, 5], [8], 2, (1, 0.75)),
        ([7, 8, 9, 4, 5], [8], 1, (0, 0.75)),
        ([7, 8, 9, 4, 5], [5, 9], 5, (2, 0.5)),
        ([7, 8, 9, 4, 5], [5], 50, (1, 0)),
        ([7, 8], [1], 2, (0, 0)),
        ([], [1], 2, (0, 0)),
        ([7], [7], 2, (1, 1)),
    ],
)
def test_ranking_metrics(ranked: Any, wanted: Any, k: int, metrics: Any) -> None:
    assert d2l.hit_and_auc(ranked, wanted, k) == metrics


@pytest.mark.parametrize("devices", [CPU, [npx.cpu(0), npx.cpu(1)]])
def test_unknown_items_are_ranked(devices: Any) -> None:
    """Rank more items than there are users, and more than the network takes at once."""
    num_users, num_items = 3, 1100
    table = onp.random.default_rng(3).permutation(num_users * num_items).reshape(num_users, -1)
    candidates = {0: [*range(1, 80)], 2: [4, 1050]}
    test_input = {0: [90], 1: [1099], 2: [int(table[2].argmax())]}
    table[1, 1099] = onp.sort(table[1])[-50]  # tied with the fiftieth
    scores = np.array(table)
    sizes = []

    def net(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        sizes.append(len(items))
        return scores[users.astype("int32"), items.astype("int32")].reshape(-1, 1)

    hits, areas = [], []
    for user in range(num_users):
        (item,) = test_input[user]
        others = onp.setdiff1d(onp.arange(num_items), [*candidates.get(user, []), item])
        higher = table[user, others] > table[user, item]
        ties = (table[user, others] == table[user, item]) & (others < item)
        num_before = higher.sum() + ties.sum()
        hits.append(num_before < 50)
        areas.append(1 - num_before / len(others))
    got = d2l.evaluate_ranking(net, test_input, None, candidates, num_users, num_items, devices)
    assert got == pytest.approx((onp.mean(hits), onp.mean(areas)))
    assert hits == [False, False, True]
    assert max(sizes) <= 1024
    assert sum(sizes) == 3 * num_items - 81


def test_users_last_items_are_passed_to_model() -> None:
    seq = np.array([[1.0, 2.0], [3.0, 4.0]])
    calls = []

    def net(*inputs: np.ndarray) -> np.ndarray:
        calls.append([x.asnumpy().tolist() for x in inputs])
        return -inputs[-1]

    test_input, candidates = {0: [1], 1: [2]}, {0: [2], 1: [0, 1]}
    assert d2l.evaluate_ranking(net, test_input, seq, candidates, 2, 3, CPU) == (1, 0.5)
    assert calls == [[[0, 0], [[1, 2]] * 2, [0, 1]], [[1], [[3, 4]], [2]]]


@pytest.mark.parametrize("devices", [CPU, [npx.cpu(0), npx.cpu(1)]])
def test_ranking_model_is_trained_and_plotted(
    devices: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boards = watch_boards(monkeypatch)
    calls = []
    net = Rating(*START, devices)
    others = (ITEMS + 1 + RNG.integers(0, 5, 12)) % 6
    rows = gluon.data.ArrayDataset(*map(np.array, (USERS, ITEMS, others)))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})

    def evaluator(*args: Any) -> Any:
        calls.append(args)
        return np.array(0.25), np.array(len(calls) / 4)

    d2l.train_ranking(
        *(net, gluon.data.DataLoader(rows, 4), "test", d2l.BPRLoss(), trainer, None, 4, 6, 3),
        *(devices, evaluator, "known", 2),
    )
    items = START[1].astype("float64")
    for _ in range(3):
        losses = 0.0
        for part in (slice(0, 4), slice(4, 8), slice(8, 12)):
            high, low = ITEMS[part], others[part]
            differences = items[high] - items[low]
            losses += onp.log1p(onp.exp(-differences)).sum()
            slope = -1 / (1 + onp.exp(differences)) / 4
            onp.add.at(items, high, -0.5 * slope)
            onp.add.at(items, low, 0.5 * slope)
    assert_close(net.weights[1], items, 1e-4)
    assert_close(net.weights[0], START[0], 1e-6)  # a user's number cancels in a difference
    (board,) = boards
    assert (board.X, board.Y) == ([[2], [2]], [[0.25], [0.25]])
    assert calls == [(net, "test", None, "known", 4, 6, devices)]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"train loss {losses / 12:.3f}, test hit rate 0.250, test AUC 0.250"
    assert re.fullmatch(r"\d+\.\d examples/sec on \[cpu\(0\).*\]", lines[1])


# Clicks


def write_clicks(path: Path, rows: str) -> str:
    path.write_text(rows.replace(" ", "\t"), encoding="utf-8")
    return str(path)


def test_values_become_numbers(tmp_path: Path) -> None:
    train = write_clicks(
        tmp_path / "train.csv", "1 a x\n0 b x\n1 a y\n0 a z\n1 a\n0 b x\n1 c c c\n"
    )
    data = d2l.CTRDataset(train, min_threshold=2, num_feat=2)
    assert (len(data), data.count, data.NUM_FEATS) == (5, 5, 2)
    assert data.feat_mapper == {1: {"a": 0, "b": 1}, 2: {"x": 0}}
    assert data.defaults == {1: 2, 2: 1}
    assert (data.field_dims.tolist(), data.offsets.tolist()) == ([3, 2], [0, 3])
    examples = [data[i] for i in range(5)]
    assert [x.tolist() for x, _ in examples] == [[0, 3], [1, 3], [0, 4], [0, 4], [1, 3]]
    assert [y for _, y in examples] == [[1], [0], [1], [0], [0]]
    test = write_clicks(tmp_path / "test.csv", "1 c x\n0 b y")
    other = d2l.CTRDataset(test, data.feat_mapper, data.defaults, num_feat=2)
    assert [x.tolist() for x, _ in map(other.__getitem__, range(2))] == [[2, 3], [1, 4]]
    assert other.field_dims.tolist() == [3, 2]
    X, y = next(iter(gluon.data.DataLoader(other, 2)))
    assert (X.shape, y.tolist(), X.dtype, y.dtype) == ((2, 2), [[1], [0]], "float32", "float32")


def test_value_below_four_occurrences_is_rare(tmp_path: Path) -> None:
    file = write_clicks(tmp_path / "a.csv", "1 a\n" * 4 + "0 b\n" * 3)
    data = d2l.CTRDataset(file, num_feat=1)
    assert data.feat_mapper == {1: {"a": 0}}
