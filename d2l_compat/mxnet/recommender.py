"""D2L's chapter on recommender systems: ratings of films, rankings of items, and clicks on advertisements."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mxnet import Context, autograd, gluon, np, npx

from d2l_compat._shared import ranking as shared
from d2l_compat._shared.checks import check_callable, check_instance, size
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
    """Of the ratings that :func:`read_data_ml100k` gives, a table for training and one for the test.

    "random" puts each rating into the test with the probability ``test_ratio``; "seq-aware" the newest rating of each user,
    whatever ``test_ratio`` is, with the others in the order of users and times, and in columns 0 to 3. Raises TypeError or ValueError where
    users and items are not numbered from 1 to as many as there are, and for another mode or no share.
    """

    def draw(n: int) -> Any:
        return np.random.uniform(0, 1, (n,)).asnumpy()

    return movielens.split(data, num_users, num_items, split_mode, test_ratio, draw)


def load_data_ml100k(
    data: Any, num_users: int, num_items: int, feedback: str = "explicit"
) -> tuple[list[int], list[int], list[int], Any]:
    """Users and items, counted from 0, and ratings, a list of each; and all of them at one place.

    With "explicit" ``feedback`` that is a matrix (num_items, num_users), 0 where there is no rating. With "implicit"
    ratings are 1, and it is a dict: of each user the items. Raises TypeError or ValueError as :func:`split_data_ml100k`
    does, and for another ``feedback``.
    """
    *lists, known = movielens.interactions(data, num_users, num_items, feedback)
    return (*lists, known if isinstance(known, dict) else np.array(known))  # type: ignore[return-value]


def split_and_load_ml100k(
    split_mode: str = "seq-aware",
    feedback: str = "explicit",
    test_ratio: float = 0.1,
    batch_size: int = 256,
) -> tuple[int, int, gluon.data.DataLoader, gluon.data.DataLoader]:
    """How many users and items there are; batches (users, items, ratings) for training, shuffled, and for the test.

    Of a batch that would not be full the next epoch begins with these examples. Raises what
    :func:`read_data_ml100k`, :func:`split_data_ml100k` and :func:`load_data_ml100k` do.
    """
    batch_size = size("batch_size", batch_size)
    data, num_users, num_items = read_data_ml100k()
    train, test = (
        gluon.data.ArrayDataset(
            *map(np.array, load_data_ml100k(part, num_users, num_items, feedback)[:3])
        )
        for part in split_data_ml100k(data, num_users, num_items, split_mode, test_ratio)
    )
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
    """Train a model of ratings on ``devices``, by default every GPU, or the CPU.

    Of a batch the last array are the ratings, the others the inputs; a single one is both. The mean loss is drawn, and
    what ``evaluator(net, test_iter, devices)`` gives: with ``inter_mat``, ``evaluator(net, test_iter, inter_mat, devices)``.
    In the end both are printed. Raises TypeError or ValueError where these cannot be called, or there is no batch.
    """
    devices = _check(devices, net=net, loss=loss, evaluator=evaluator)
    check_instance("trainer", trainer, gluon.Trainer, "a Gluon trainer")
    given = (net, test_iter) if inter_mat is None else (net, test_iter, inter_mat)

    def step(values: list[np.ndarray]) -> tuple[float, int]:
        parts = _shared_out(values, devices)
        with autograd.record():
            losses = [loss(net(*part[:-1] or part), part[-1]) for part in parts]
        return _descend(losses, trainer, len(values[0])), sum(each.size for each in losses)

    def evaluate() -> Any:
        return evaluator(*given, devices)

    shared.train_rating(train_iter, num_epochs, step, evaluate, devices)


# Rankings


class _PairLoss(gluon.loss.Loss):
    """A number for all pairs of a batch: the score of what is liked, and of what is not, by the same user."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        """The loss is multiplied with ``weight``, if there is one."""
        super().__init__(weight, batch_axis, **kwargs)

    def _weighted(self, loss: np.ndarray) -> np.ndarray:
        return loss if self._weight is None else loss * self._weight


class BPRLoss(_PairLoss):
    """Bayesian personalized ranking (Rendle et al., 2009): -log sigmoid(positive - negative), summed over the batch."""

    def forward(self, positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
        """Of scores (batch, ...) the sums (1, ...). Raises TypeError or ValueError where shapes differ."""
        shared.check_scores(arrays, positive, negative)
        losses = npx.activation(negative - positive, "softrelu")  # which does not overflow
        return self._weighted(losses.sum(self._batch_axis, keepdims=True))


class HingeLossbRec(_PairLoss):
    """The hinge loss of rankings: max(0, margin - positive + negative), summed."""

    def forward(self, positive: np.ndarray, negative: np.ndarray, margin: float = 1) -> np.ndarray:
        """Of scores the sum, shape (). Raises TypeError or ValueError where their shapes differ."""
        shared.check_scores(arrays, positive, negative)
        return self._weighted(np.maximum(negative - positive + margin, 0).sum())


def evaluate_ranking(
    net: Callable[..., np.ndarray],
    test_input: Mapping[int, Sequence[int]],
    seq: np.ndarray | None,
    candidates: Mapping[int, Sequence[int]],
    num_users: int,
    num_items: int,
    devices: Sequence[Context],
) -> tuple[float, float]:
    """The hit rate among 50 recommended items, and the mean area under the ROC curve: see :func:`hit_and_auc`.

    Of each user all items are ranked, by ``net(users, items)`` or ``net(users, seq[users], items)``, but those of
    ``candidates``, which are known from training; ``test_input`` has those to be found. Raises TypeError, ValueError or
    KeyError where these are no dicts of items, or a user has nothing to be found.
    """
    devices = _check(devices, net=net)

    def score(user: int, items: Any) -> list[float]:
        scores: list[float] = []
        for start in range(0, len(items), 1024):
            some = np.array(items[start : start + 1024], dtype="float32")
            inputs = [np.full(some.shape, user, dtype="float32"), some]
            if seq is not None:
                inputs.insert(1, np.repeat(seq[user : user + 1], len(some), 0))
            for part in _shared_out(inputs, devices[: len(some)]):
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
    """Train a model of rankings: of a batch the last array are items that rank low, the one before those that rank high.

    After every ``eval_step`` epochs there is drawn what ``evaluator`` gives, called as :func:`evaluate_ranking`; in the end
    that is printed, with the mean loss of a pair. Raises TypeError or ValueError where these cannot be called, or there
    is no batch.
    """
    devices = _check(devices, net=net, loss=loss, evaluator=evaluator)
    check_instance("trainer", trainer, gluon.Trainer, "a Gluon trainer")

    def step(values: list[np.ndarray]) -> tuple[float, int]:
        parts = _shared_out(values, devices)
        with autograd.record():
            losses = [loss(net(*x, high), net(*x, low)) for *x, high, low in parts]
        return _descend(losses, trainer, len(values[0])), len(values[0])

    def evaluate() -> tuple[Any, Any]:
        given = test_iter, test_seq_iter, candidates, num_users, num_items, devices
        with autograd.predict_mode():
            return evaluator(net, *given)

    shared.train_ranking(train_iter, num_epochs, step, evaluate, devices, eval_step)


def _check(devices: Any, **functions: Any) -> list[Context]:
    for what, function in functions.items():
        check_callable(what, function)
    return check_devices(try_all_gpus() if devices is None else devices)


def _shared_out(values: list[np.ndarray], devices: list[Context]) -> list[tuple[np.ndarray, ...]]:
    """For each device a part of every array."""
    parts = [gluon.utils.split_and_load(each, devices, even_split=False) for each in values]
    return [*zip(*parts, strict=True)]


def _descend(losses: list[np.ndarray], trainer: gluon.Trainer, batch_size: int) -> float:
    """A step along their gradients; gives their sum."""
    for each in losses:
        each.backward()
    trainer.step(batch_size)
    return sum(float(each.sum()) for each in losses)


# Clicks


class CTRDataset(gluon.data.Dataset):
    """Advertisements, one a line: whether it was clicked, 1 or 0, and the values of fields, between tabs.

    An example is a vector of ``num_feat`` numbers and a list with the label. ``feat_mapper`` has for each field, counted
    from 1, the numbers of its values, ``defaults`` the number of rare ones; ``field_dims`` how many numbers
    there are, and ``offsets`` where those of a field begin, after those of the field before.
    """

    def __init__(
        self,
        data_path: str | Path,
        feat_mapper: dict[int, dict[str, int]] | None = None,
        defaults: dict[int, int] | None = None,
        min_threshold: int = 4,
        num_feat: int = 34,
    ) -> None:
        """Values that are there less than ``min_threshold`` times are rare ones. ``feat_mapper`` and ``defaults`` are
        those of the data for training, where this is not those itself.

        Lines with more or fewer fields are left out. Raises FileNotFoundError where there is no such file, TypeError or
        ValueError where no line is of this form, or a size is below 1.
        """
        self.NUM_FEATS, min_threshold = (
            size("num_feat", num_feat),
            size("min_threshold", min_threshold),
        )
        self._labels, rows = clicks.read(data_path, self.NUM_FEATS)
        if feat_mapper is None and defaults is None:
            feat_mapper, defaults = clicks.number(rows, min_threshold)
        clicks.check_numbers(feat_mapper, defaults, self.NUM_FEATS)
        self.feat_mapper, self.defaults, self.count = feat_mapper, defaults, len(rows)
        self.field_dims = np.array(clicks.sizes(feat_mapper), dtype="int64")  # type: ignore[arg-type]
        self.offsets = np.array([0, *self.field_dims.asnumpy().cumsum()[:-1]])
        self._numbers = clicks.encode(rows, feat_mapper, defaults)  # type: ignore[arg-type]

    def __len__(self) -> int:
        """How many advertisements there are."""
        return self.count

    def __getitem__(self, idx: int) -> tuple[np.ndarray, list[Any]]:
        """Its numbers (num_feat,), and its label."""
        return np.array(self._numbers[idx], dtype="float32"), [self._labels[idx]]
