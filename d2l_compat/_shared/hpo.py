"""Hyperparameter optimization: searchers, schedulers and a tuner, for any framework."""

import math
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from d2l_compat._shared.checks import check_callable, check_instance, integer, message, real, size
from d2l_compat._shared.oo_design import HyperParameters
from d2l_compat._shared.training import undefined_method_error

Config = dict[str, Any]
Trials = list[tuple[Config, float]]  # with their errors


class HPOSearcher(HyperParameters):
    """The base class of searchers, which draw configurations: define ``sample_configuration()``."""

    def sample_configuration(self) -> Config:
        """Return the next configuration to try; subclasses define it."""
        raise undefined_method_error(self, "sample_configuration")

    def update(self, config: Config, error: float, additional_info: Any = None) -> None:
        """Learn from the error of ``config``. This class learns nothing."""


class RandomSearcher(HPOSearcher):
    """Random search, Bergstra and Bengio (2012): each hyperparameter is drawn from its own distribution."""

    config_space: dict[str, Any]
    initial_config: Config | None

    def __init__(self, config_space: dict[str, Any], initial_config: Config | None = None) -> None:
        """Set a distribution for each name: one of SciPy's, or any object with a method ``rvs()`` like theirs.

        ``initial_config`` is the first configuration; if it is None, that is drawn as well. Raises TypeError for other
        values.
        """
        self.save_hyperparameters()
        need = "a dict of distributions, which have rvs()"
        check_instance("config_space", config_space, dict, need)
        for name, domain in config_space.items():
            if not hasattr(domain, "rvs"):
                got = f"{type(domain).__name__} for {name!r}"
                raise TypeError(message("config_space", got, need))
        if initial_config is not None:
            check_instance("initial_config", initial_config, dict, "a dict, or None")

    def sample_configuration(self) -> Config:
        """Return ``initial_config`` at the first call; after that, draw a value for each name."""
        config, self.initial_config = self.initial_config, None
        if config is not None:
            return dict(config)
        return {name: domain.rvs() for name, domain in self.config_space.items()}


class HPOScheduler(HyperParameters):
    """The base class of schedulers, which decide on the next trial: define ``suggest`` and ``update``."""

    def suggest(self) -> Config:
        """Return the configuration of the next trial; subclasses define it."""
        raise undefined_method_error(self, "suggest")

    def update(self, config: Config, error: float, info: Any = None) -> None:
        """Learn from the error of ``config``; subclasses define it."""
        raise undefined_method_error(self, "update")


class BasicScheduler(HPOScheduler):
    """A scheduler that tries what ``searcher`` draws, regardless of earlier trials."""

    searcher: HPOSearcher

    def __init__(self, searcher: HPOSearcher) -> None:
        """Set the searcher. Raises TypeError if it has no ``sample_configuration``."""
        _check_searcher(searcher)
        self.save_hyperparameters()

    def suggest(self) -> Config:
        """Return what the searcher draws."""
        return self.searcher.sample_configuration()

    def update(self, config: Config, error: float, info: Any = None) -> None:
        """Pass the error on to the searcher."""
        self.searcher.update(config, error, additional_info=info)


def _check_searcher(searcher: Any) -> None:
    if not hasattr(searcher, "sample_configuration"):
        raise TypeError(message("searcher", type(searcher).__name__, "an HPOSearcher"))


class SuccessiveHalvingScheduler(HPOScheduler):
    """Successive halving, Karnin et al. (2013): the best configurations get more epochs, the others stop.

    A round begins with prefact * eta ** K configurations of ``r_min`` epochs. Of those with r epochs, the best share
    1 / eta is tried again with eta * r epochs, and so on up to ``r_max``. ``rung_levels`` are these K + 1 numbers of
    epochs, which ``config["max_epochs"]`` has.
    """

    searcher: HPOSearcher
    eta: int
    r_min: int
    r_max: int
    prefact: float

    def __init__(
        self, searcher: HPOSearcher, eta: int, r_min: int, r_max: int, prefact: float = 1
    ) -> None:
        """Set the searcher and the numbers of epochs.

        Raises TypeError if ``searcher`` has no ``sample_configuration``, TypeError or ValueError unless ``eta`` is an
        integer from 2, ``r_min`` one from 1, ``r_max`` one from ``r_min``, and ``prefact`` a number above 0.
        """
        self.save_hyperparameters()
        _check_searcher(searcher)
        integer("eta", eta, 2)
        integer("r_max", r_max, size("r_min", r_min))
        need = "a number above 0"
        if not 0 < real("prefact", prefact, need) < math.inf:
            raise ValueError(message("prefact", prefact, need))
        self.rung_levels = [r_min]
        while self.rung_levels[-1] * eta < r_max:
            self.rung_levels.append(self.rung_levels[-1] * eta)
        if r_max > r_min:
            self.rung_levels.append(r_max)
        self.K = len(self.rung_levels) - 1
        self.observed_error_at_rungs: dict[int, Trials] = defaultdict(list)
        self.all_observed_error_at_rungs: dict[int, Trials] = defaultdict(list)
        self.queue: list[Config] = []  # its last configuration is the next

    def suggest(self) -> Config:
        """Return the next configuration, with its number of epochs in ``max_epochs``; begin a new round if needed."""
        if not self.queue:
            for _ in range(self._count_trials(0)):
                config = self.searcher.sample_configuration()
                self.queue.append({**config, "max_epochs": self.r_min})
        return self.queue.pop()

    def update(self, config: Config, error: float, info: Any = None) -> None:
        """Record an error; when all of a rung are known, put its best configurations into the queue's front."""
        level = int(config["max_epochs"])
        self.searcher.update(config, error, additional_info=info)
        self.all_observed_error_at_rungs[level].append((config, error))
        if level >= self.r_max:
            return
        self.observed_error_at_rungs[level].append((config, error))
        rung = self.rung_levels.index(level)
        if len(self.observed_error_at_rungs[level]) >= self._count_trials(rung):
            best = self.get_top_n_configurations(level, self._count_trials(rung + 1))
            epochs = self.rung_levels[rung + 1]
            self.queue = [{**config, "max_epochs": epochs} for config in best] + self.queue
            self.observed_error_at_rungs[level] = []

    def get_top_n_configurations(self, rung_level: int, n: int) -> list[Config]:
        """Return the ``n`` configurations with the least errors among those observed at a rung, the best first."""
        trials = sorted(self.observed_error_at_rungs[rung_level], key=lambda trial: trial[1])
        return [config for config, _ in trials[:n]]

    def _count_trials(self, rung: int) -> int:
        return int(self.prefact * self.eta ** (self.K - rung))


class HPOTuner(HyperParameters):
    """Tries configurations one by one, and keeps the best.

    ``incumbent`` is the best configuration so far, ``incumbent_error`` its error; ``records`` has the config, error
    and runtime of each trial. ``incumbent_trajectory`` has the least error after each trial, and ``cumulative_runtime``
    the total seconds after each trial; ``current_runtime`` is the total so far.
    """

    scheduler: HPOScheduler
    objective: Callable[..., Any]

    def __init__(self, scheduler: HPOScheduler, objective: Callable[..., Any]) -> None:
        """Set the scheduler, and a function ``objective(**config)`` that returns an error, as a number or a tensor.

        Raises TypeError if ``scheduler`` has no ``suggest``, or ``objective`` is not callable.
        """
        if not hasattr(scheduler, "suggest"):
            raise TypeError(message("scheduler", type(scheduler).__name__, "an HPOScheduler"))
        check_callable("objective", objective)
        self.save_hyperparameters()
        self.incumbent: Config | None = None
        self.incumbent_error: float | None = None
        self.incumbent_trajectory: list[float] = []
        self.cumulative_runtime: list[float] = []
        self.current_runtime = 0.0
        self.records: list[dict[str, Any]] = []

    def run(self, number_of_trials: int) -> None:
        """Try ``number_of_trials`` configurations, and print the result of each.

        Raises TypeError or ValueError for ``number_of_trials`` below 1.
        """
        for trial in range(size("number_of_trials", number_of_trials)):
            start = time.time()
            config = self.scheduler.suggest()
            print(f"Trial {trial}: config = {config}")
            error = float(self.objective(**config))
            self.scheduler.update(config, error)
            runtime = time.time() - start
            self.bookkeeping(config, error, runtime)
            print(f"    error = {error}, runtime = {runtime}")

    def bookkeeping(self, config: Config, error: float, runtime: float) -> None:
        """Record the result of a trial that took ``runtime`` seconds."""
        self.records.append({"config": config, "error": error, "runtime": runtime})
        if self.incumbent_error is None or error < self.incumbent_error:
            self.incumbent, self.incumbent_error = config, error
        self.incumbent_trajectory.append(self.incumbent_error)
        self.current_runtime += runtime
        self.cumulative_runtime.append(self.current_runtime)
