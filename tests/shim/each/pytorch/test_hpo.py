"""Tests of hyperparameter optimization: which configurations are tried and chosen, and the validation error."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from d2l_compat import torch as d2l
from tests.shim.each.test_training import write_fashion_mnist

pytestmark = pytest.mark.usefixtures("close_figures")
ERRORS = [0.5, 0.25, 0.75, 0.25]


def make_counter() -> Any:
    """Return a distribution that draws 0, 1, 2 and so on."""
    numbers = iter(range(99))
    return SimpleNamespace(rvs=lambda: next(numbers))


def test_initial_configuration_comes_first() -> None:
    first = {"a": -1, "b": -1}
    searcher = d2l.RandomSearcher({"a": make_counter(), "b": make_counter()}, first)
    configs = [searcher.sample_configuration() for _ in range(3)]
    assert configs == [first, {"a": 0, "b": 0}, {"a": 1, "b": 1}]
    assert configs[0] is not first  # a scheduler may change its configuration
    assert searcher.update(first, 0.5) is None
    assert d2l.RandomSearcher({"a": make_counter()}).sample_configuration() == {"a": 0}


@pytest.mark.parametrize("make_error", [float, torch.tensor])
def test_tuner_finds_best_configuration(
    make_error: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    updates = []

    class Searcher(d2l.RandomSearcher):
        def update(self, config: Any, error: float, additional_info: Any = None) -> None:
            updates.append((config, error))

    scheduler = d2l.BasicScheduler(Searcher({"a": make_counter()}))
    tuner = d2l.HPOTuner(scheduler, lambda a: make_error(ERRORS[a]))
    assert tuner.incumbent is None
    tuner.run(number_of_trials=4)
    configs = [{"a": a} for a in range(4)]
    assert updates == [*zip(configs, ERRORS, strict=True)]
    assert tuner.incumbent == {"a": 1}  # the first of two equal errors
    assert tuner.incumbent_error == 0.25
    assert tuner.incumbent_trajectory == [0.5, 0.25, 0.25, 0.25]
    assert [(trial["config"], trial["error"]) for trial in tuner.records] == updates
    runtimes = [trial["runtime"] for trial in tuner.records]
    np.testing.assert_allclose(tuner.cumulative_runtime, np.cumsum(runtimes))
    assert tuner.current_runtime == tuner.cumulative_runtime[-1]
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "Trial 1: config = {'a': 1}"
    assert re.fullmatch(r"    error = 0\.25, runtime = \d\.\d+(e-\d+)?", lines[3])


def test_custom_method_is_used() -> None:
    class Tuner(d2l.HPOTuner):
        def bookkeeping(self, config: Any, error: float, runtime: float) -> None:
            self.last = config, error

    tuner = Tuner(d2l.BasicScheduler(d2l.RandomSearcher({"a": make_counter()})), lambda a: 0.5)
    tuner.run(1)
    assert tuner.last == ({"a": 0}, 0.5)


@pytest.mark.parametrize(
    ("make", "name", "arguments"),
    [
        (d2l.HPOSearcher, "sample_configuration", []),
        (d2l.HPOScheduler, "suggest", []),
        (d2l.HPOScheduler, "update", [{}, 0.5]),
    ],
)
def test_abstract_methods_raise(make: Any, name: str, arguments: list[Any]) -> None:
    method = getattr(make(), name)
    with pytest.raises(NotImplementedError, match=f"{name}: got no definition; need one in your"):
        method(*arguments)


def test_validation_error_averages_all_examples() -> None:
    class Data(d2l.DataModule):
        batch_size = 4

        def get_dataloader(self, train: bool) -> Any:
            X = torch.eye(2)[[0, 0, 0, 0, 1, 1]]
            return self.get_tensorloader((X, torch.tensor([0, 0, 0, 1, 0, 1])), False)

    class Model(d2l.Classifier):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Dropout(0.9))
            self.net[0].weight.data = torch.eye(2)
            self.lr = 0.0

    trainer = d2l.HPOTrainer(max_epochs=1)
    model = Model()
    trainer.fit(model, Data())
    model.train()
    assert float(trainer.validation_error()) == pytest.approx(2 / 6)
    assert not model.training
    with pytest.raises(RuntimeError, match="got a trainer without a model or validation data"):
        d2l.HPOTrainer(max_epochs=1).validation_error()


def test_lenet_trains_with_its_hyperparameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fashion_mnist(d2l, tmp_path, monkeypatch)
    calls = []

    class Trainer(d2l.HPOTrainer):
        def fit(self, model: Any, data: Any) -> None:
            calls.append((model.lr, data.batch_size, self.max_epochs))
            assert model.net[0].weight.abs().max() <= (6 / (25 * 7)) ** 0.5  # Xavier's
            super().fit(model, data)

    monkeypatch.setattr("d2l_compat.torch.hpo.HPOTrainer", Trainer)
    error = d2l.hpo_objective_lenet(np.float64(0.25), 4, max_epochs=2)
    assert calls == [(0.25, 4, 2)]
    assert 0 <= float(error) <= 1


def test_rbf_kernel_matches_formula() -> None:
    x1, x2 = np.array([0.0, 1.0, 3.0]), torch.tensor([2.0, -1.0])
    want = [[np.exp(-((a - b) ** 2) / (2 * 0.3)) for b in (2.0, -1.0)] for a in x1]
    np.testing.assert_allclose(d2l.rbfkernel(x1, x2, ls=0.3), want)
    assert d2l.rbfkernel([0], [2])[0, 0] == pytest.approx(np.exp(-0.5))
