"""D2L's chapter on recommender systems: film ratings, rankings of items, and clicks on advertisements."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mxnet import Context, autograd, gluon, np, npx

from d2l_compat._shared import ranking as shared
from d2l_compat._shared.checks import check_callable, check_methods, size
from d2l_compat._shared.data import clicks, movielens
from d2l_compat._shared.data.movielens import read_data_ml100k
from d2l_compat._shared.parallel import check_devices
from d2l_compat._shared.ranking import hit_and_auc
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet.devices import try_all_gpus

__all__ = [
    "BPRLoss",
    "CTRDataset",
    "HingeLossbRec",
    "evaluate_ranking",
    "hit_and_auc",
    "load_data_ml100k",
    "read_data_ml100k",
    "split_and_load_ml100k",
    "split_data_ml100k",
    "train_ranking",
    "train_recsys_rating",
]


# Ratings


def split_data_ml100k(
    data: Any, num_users: int, num_items: int, split_mode: str = "random", test_ratio: float = 0.1
) -> tuple[Any, Any]:
    """Split the ratings that :func:`read_data_ml100k` returns into a training table and a test table.

    "random" puts each rating into the test table with the probability ``test_ratio``. "seq-aware" puts each user's
    newest rating into it and ignores ``test_ratio``; the other ratings are sorted by user and time, and the columns are
    named 0 to 3. Raises TypeError or ValueError if users or items are not numbered from 1 to ``num_users`` or
    ``num_items``, or if the mode or ratio is invalid.
    """

    def draw(n: int) -> Any:
        return np.random.uniform(0, 1, (n,)).asnumpy()

    return movielens.split(data, num_users, num_items, split_mode, test_ratio, draw)


def load_data_ml100k(
    data: Any, num_users: int, num_items: int, feedback: str = "explicit"
) -> tuple[list[int], list[int], list[int], Any]:
    """Return lists of users and items, both counted from 0, a list of ratings, and the interactions.

    With "explicit" ``feedback`` the interactions are a matrix (num_items, num_users) of ratings, 0 for none. With
    "implicit" feedback, ratings are 1, and the interactions are a dict of each user's items. Raises TypeError or
    ValueError as :func:`split_data_ml100k` does, or if ``feedback`` has another value.
    """
    *lists, interactions = movielens.list_interactions(data, num_users, num_items, feedback)
    if not isinstance(interactions, dict):
        interactions = np.array(interactions)
    return (*lists, interactions)  # type: ignore[return-value]


def split_and_load_ml100k(
    split_mode: str = "seq-aware",
    feedback: str = "explicit",
    test_ratio: float = 0.1,
    batch_size: int = 256,
) -> tuple[int, int, gluon.data.DataLoader, gluon.data.DataLoader]:
    """Load MovieLens: return the numbers of users and items, shuffled training batches, and test batches.

    A batch is (users, items, ratings). Examples that do not fill the last training batch begin the next epoch. Raises
    what :func:`read_data_ml100k`, :func:`split_data_ml100k` and :func:`load_data_ml100k` raise.
    """
    batch_size = size("batch_size", batch_size)
    data, num_users, num_items = read_data_ml100k()
    datasets = []
    for part in split_data_ml100k(data, num_users, num_items, split_mode, test_ratio):
        users, items, ratings, _ = load_data_ml100k(part, num_users, num_items, feedback)
        datasets.append(gluon.data.ArrayDataset(*map(np.array, (users, items, ratings))))
    train, test = datasets
    train_iter = gluon.data.DataLoader(train, batch_size, shuffle=True, last_batch="rollover")
    return num_users, num_items, train_iter, gluon.data.DataLoader(test, batch_size)


def train_recsys_rating(
    net: Callable[..., np.ndarray],
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    trainer: gluon.Trainer,
    num_epochs: int,
    devices: Sequence[Context] | None = None,
    evaluator: Any = None,
    *,
    inter_mat: Any = None,
) -> None:
    """Train a model of ratings on ``devices``, by default all GPUs, or else the CPU.

    The last array of a batch has the ratings, the others are the inputs; a single array is both. ``evaluator`` is
    called with (net, test_iter, devices), or, if ``inter_mat`` is not None, with (net, test_iter, inter_mat, devices).
    Its result and the mean loss are plotted, and printed at the end. Raises TypeError or ValueError if ``net``,
    ``loss`` or ``evaluator`` is not callable, or there is no batch.
    """
    devices = _check_arguments(devices, net=net, loss=loss, evaluator=evaluator)
    check_methods("trainer", trainer, "a Gluon trainer", "step")
    inputs = (net, test_iter) if inter_mat is None else (net, test_iter, inter_mat)

    def step(batch: list[np.ndarray]) -> tuple[float, int]:
        parts = _split(batch, devices)
        with autograd.record():
            losses = [loss(net(*part[:-1] or part), part[-1]) for part in parts]
        num_losses = sum(device_losses.size for device_losses in losses)
        return _do_step(losses, trainer, len(batch[0])), num_losses

    def evaluate() -> Any:
        return evaluator(*inputs, devices)

    shared.train_rating(train_iter, num_epochs, step, evaluate, devices)


# Rankings


class _PairLoss(gluon.loss.Loss):
    """A loss of pairs of scores: of an item that a user likes, and of an item that the same user does not like."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        """Create the loss, to be multiplied by ``weight`` unless that is None."""
        super().__init__(weight, batch_axis, **kwargs)

    def _apply_weight(self, loss: np.ndarray) -> np.ndarray:
        return loss if self._weight is None else loss * self._weight


class BPRLoss(_PairLoss):
    """Bayesian personalized ranking (Rendle et al., 2009): the sum of -log sigmoid(positive - negative)."""

    def forward(self, positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
        """Return the sums (1, ...) for scores (batch, ...). Raises TypeError or ValueError if shapes differ."""
        shared.check_scores(arrays, positive, negative)
        losses = npx.activation(negative - positive, "softrelu")  # log(1 + exp(x)) without overflow
        return self._apply_weight(losses.sum(self._batch_axis, keepdims=True))


class HingeLossbRec(_PairLoss):
    """The hinge loss of rankings: the sum of max(0, margin - positive + negative)."""

    def forward(self, positive: np.ndarray, negative: np.ndarray, margin: float = 1) -> np.ndarray:
        """Return the sum for all scores, shape (). Raises TypeError or ValueError if shapes differ."""
        shared.check_scores(arrays, positive, negative)
        return self._apply_weight(np.maximum(negative - positive + margin, 0).sum())


def evaluate_ranking(
    net: Callable[..., np.ndarray],
    test_input: Mapping[int, Sequence[int]],
    seq: np.ndarray | None,
    candidates: Mapping[int, Sequence[int]],
    num_users: int,
    num_items: int,
    devices: Sequence[Context],
) -> tuple[float, float]:
    """Return the hit rate among 50 recommended items, and the mean area under the ROC curve: see :func:`hit_and_auc`.

    For each user, ``net(users, items)`` or ``net(users, seq[users], items)`` scores all items except the user's
    ``candidates``, which are known from training; ``test_input`` has the items to find. Raises TypeError, ValueError or
    KeyError if ``test_input`` or ``candidates`` is not a dict of items, or a user has no item to find.
    """
    devices = _check_arguments(devices, net=net)

    def score(user: int, items: Any) -> list[float]:
        scores: list[float] = []
        for start in range(0, len(items), 1024):
            chunk = np.array(items[start : start + 1024], dtype="float32")
            inputs = [np.full(chunk.shape, user, dtype="float32"), chunk]
            if seq is not None:
                inputs.insert(1, np.repeat(seq[user : user + 1], len(chunk), 0))
            for part in _split(inputs, devices[: len(chunk)]):
                scores += net(*part).asnumpy().ravel().tolist()
        return scores

    return shared.evaluate(score, test_input, candidates, num_users, num_items)


def train_ranking(
    net: Callable[..., np.ndarray],
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    trainer: gluon.Trainer,
    test_seq_iter: Any,
    num_users: int,
    num_items: int,
    num_epochs: int,
    devices: Sequence[Context],
    evaluator: Callable[..., tuple[Any, Any]],
    candidates: Any,
    eval_step: int = 1,
) -> None:
    """Train a model of rankings: the last two arrays of a batch are items to rank high, and items to rank low.

    After every ``eval_step`` epochs the result of ``evaluator``, which is called like :func:`evaluate_ranking`, is
    plotted; at the end it is printed, with the mean loss of a pair. Raises TypeError or ValueError if ``net``, ``loss``
    or ``evaluator`` is not callable, or there is no batch.
    """
    devices = _check_arguments(devices, net=net, loss=loss, evaluator=evaluator)
    check_methods("trainer", trainer, "a Gluon trainer", "step")

    def step(batch: list[np.ndarray]) -> tuple[float, int]:
        batch_size = len(batch[0])
        parts = _split(batch, devices)
        with autograd.record():
            losses = [loss(net(*x, high), net(*x, low)) for *x, high, low in parts]
        return _do_step(losses, trainer, batch_size), batch_size

    def evaluate() -> tuple[Any, Any]:
        arguments = test_iter, test_seq_iter, candidates, num_users, num_items, devices
        with autograd.predict_mode():
            return evaluator(net, *arguments)

    shared.train_ranking(train_iter, num_epochs, step, evaluate, devices, eval_step)


def _check_arguments(devices: Any, **functions: Any) -> list[Context]:
    for what, function in functions.items():
        check_callable(what, function)
    return check_devices(try_all_gpus() if devices is None else devices)


def _split(batch: list[np.ndarray], devices: list[Context]) -> list[tuple[np.ndarray, ...]]:
    """Split each array of a batch; return a tuple of parts for each device."""
    parts = [gluon.utils.split_and_load(array, devices, even_split=False) for array in batch]
    return [*zip(*parts, strict=True)]


def _do_step(losses: list[np.ndarray], trainer: gluon.Trainer, batch_size: int) -> float:
    """Do one training step on the losses of all devices; return the sum of the losses."""
    for device_losses in losses:
        device_losses.backward()
    trainer.step(batch_size)
    return sum(float(device_losses.sum()) for device_losses in losses)


# Clicks


class CTRDataset(gluon.data.Dataset):
    """Advertisements, one per line of a file: 1 if clicked, else 0, then the values of its fields, separated by tabs.

    An example is a vector of ``num_feat`` indices and a list with the label. ``feat_mapper`` maps each field, counted
    from 1, to the indices of its values; ``defaults`` maps it to the index that its rare values share. ``field_dims``
    has the number of indices of each field, and ``offsets`` the sum of these numbers over all fields before it.
    """

    def __init__(
        self,
        data_path: str | Path,
        feat_mapper: dict[int, dict[str, int]] | None = None,
        defaults: dict[int, int] | None = None,
        min_threshold: int = 4,
        num_feat: int = 34,
    ) -> None:
        """Read the file; values that occur less than ``min_threshold`` times are rare.

        For test data, ``feat_mapper`` and ``defaults`` are those of the training data. Lines with more or fewer fields
        are left out. Raises FileNotFoundError if there is no such file, TypeError or ValueError if no line has
        this form, or a size is below 1.
        """
        self.NUM_FEATS = size("num_feat", num_feat)
        min_threshold = size("min_threshold", min_threshold)
        self._labels, rows = clicks.read(data_path, self.NUM_FEATS)
        if feat_mapper is None and defaults is None:
            feat_mapper, defaults = clicks.number_values(rows, min_threshold)
        clicks.check_numbers(feat_mapper, defaults, self.NUM_FEATS)
        self.feat_mapper = feat_mapper
        self.defaults = defaults
        self.count = len(rows)
        self.field_dims = np.array(clicks.field_sizes(feat_mapper), dtype="int64")  # type: ignore[arg-type]
        self.offsets = np.array([0, *self.field_dims.asnumpy().cumsum()[:-1]])
        self._indices = clicks.encode(rows, feat_mapper, defaults)  # type: ignore[arg-type]

    def __len__(self) -> int:
        """Return the number of advertisements."""
        return self.count

    def __getitem__(self, idx: int) -> tuple[np.ndarray, list[Any]]:
        """Return the indices (num_feat,) and the label of an advertisement."""
        return np.array(self._indices[idx], dtype="float32"), [self._labels[idx]]
