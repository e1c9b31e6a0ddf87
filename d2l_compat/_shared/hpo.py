"""Hyperparameter optimization: searchers, schedulers and a tuner, for any framework."""

import time
from collections.abc import Callable
from typing import Any

from d2l_compat._shared.checks import check_callable, check_instance, message, size
from d2l_compat._shared.oo_design import HyperParameters
from d2l_compat._shared.training import undefined_method_error

Config = dict[str, Any]


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
        need = "a dict of distributions, which have rvs()"
        check_instance("config_space", config_space, dict, need)
        for name, domain in config_space.items():
            if not hasattr(domain, "rvs"):
                got = f"{type(domain).__name__} for {name!r}"
                raise TypeError(message("config_space", got, need))
        if initial_config is not None:
            check_instance("initial_config", initial_config, dict, "a dict, or None")
        self.save_hyperparameters()

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
        if not hasattr(searcher, "sample_configuration"):
            raise TypeError(message("searcher", type(searcher).__name__, "an HPOSearcher"))
        self.save_hyperparameters()

    def suggest(self) -> Config:
        """Return what the searcher draws."""
        return self.searcher.sample_configuration()

    def update(self, config: Config, error: float, info: Any = None) -> None:
        """Pass the error on to the searcher."""
        self.searcher.update(config, error, additional_info=info)


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
