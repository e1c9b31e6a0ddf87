"""Reinforcement learning: the frozen lake of D2L's chapter, and plots of value functions and policies.

gymnasium, the successor of gym, is imported when an environment is first made.
"""

import math
from collections.abc import Sequence
from hashlib import sha512
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, format_value, integer, message
from d2l_compat._shared.require import import_package
from d2l_compat.frameworks import Package

Numbers = NDArray[Any]

GYMNASIUM = Package("gymnasium", "gymnasium", "0.29")
FROZEN_LAKE = "FrozenLake-v1"
ACTIONS = "0 (left), 1 (down), 2 (right) or 3 (up)"
RIGHT, DOWN = np.array([-1, 0, 1, 0]), np.array([0, 1, 0, -1])  # the direction of each action
ENDS = "G", "H"  # goal and holes, where the episode ends

MAX_COLUMNS = 16  # cells side by side in a figure
CELL_INCHES = 0.5
LUMINANCE = 0.2126, 0.7152, 0.0722  # of red, green and blue


def make_env(name: str = "", seed: int | None = 0) -> dict[str, Any]:
    """Return the environment ``FrozenLake-v1``; see :func:`frozen_lake`.

    Raises ValueError for another name, and the errors of :func:`frozen_lake`.
    """
    if not isinstance(name, str) or name != FROZEN_LAKE:
        need = f"{FROZEN_LAKE!r}, the only environment"
        raise ValueError(message("name", format_value(name), need))
    return frozen_lake(seed)


def frozen_lake(seed: int | None) -> dict[str, Any]:
    """Return a lake of 4 by 4 cells, frozen but not slippery, as a dictionary.

    ``desc``
        letters (rows, columns) as bytes: S start, F frozen, H hole, G goal
    ``num_states``, ``num_actions``
        the numbers of cells, counted row by row, and of actions: 0 left, 1 down, 2 right, 3 up
    ``mdp``
        for each (state, action) a list of possible outcomes: (probability, next state, reward, whether it is the end);
        ``trans_prob_idx``, ``nextstate_idx``, ``reward_idx`` and ``done_idx`` are their positions
    ``env``
        the environment, with the interface of gym: see :class:`Environment`

    With a ``seed``, the random actions are as in gym; with None, they differ each time. Raises ImportError if
    gymnasium is missing, TypeError or ValueError unless the seed is None or an integer of at least 0.
    """
    seed = _check_seed(seed)
    env = Environment(import_package(GYMNASIUM).make(FROZEN_LAKE, is_slippery=False), seed)
    return {
        "desc": env.desc,
        "num_states": env.nS,
        "num_actions": env.nA,
        "trans_prob_idx": 0,
        "nextstate_idx": 1,
        "reward_idx": 2,
        "done_idx": 3,
        "mdp": {
            (state, action): outcomes
            for state, actions in env.P.items()
            for action, outcomes in actions.items()
        },
        "env": env,
    }


def _check_seed(seed: int | None) -> int | None:
    return None if seed is None else integer("seed", seed, 0)


class Environment:
    """An environment of gymnasium with the interface of gym 0.21, for D2L's pages.

    Other attributes are gymnasium's. ``env`` is the environment with its own interface.
    """

    def __init__(self, env: Any, seed: int | None) -> None:
        self.env = env
        self.nS, self.nA = int(env.observation_space.n), int(env.action_space.n)
        self.action_space = Actions(self.nA, seed)
        self.seed(seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":  # while copying, ``env`` is not set yet
            raise AttributeError(name)
        return getattr(self.env.unwrapped, name)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Set the seed of the next ``reset``."""
        self._seed = _check_seed(seed)
        return [seed]

    def reset(self) -> int:
        """Start a new episode, and return its state without further information."""
        seed, self._seed = self._seed, None
        return int(self.env.reset(seed=seed)[0])

    def step(self, action: Any) -> tuple[int, float, bool, dict[str, Any]]:
        """Return the next state, the reward, whether the episode is over, and further information.

        It is over at a hole or the goal, or after 100 steps. Raises TypeError or ValueError unless ``action`` is one
        of 0, 1, 2 and 3.
        """
        actions = _to_actions("action", action)
        if actions.size != 1:
            raise ValueError(message("action", f"{actions.size} numbers", f"one: {ACTIONS}"))
        state, reward, is_end, is_truncated, info = self.env.step(actions.item())
        if is_truncated:
            info["TimeLimit.truncated"] = not is_end
        return state, float(reward), is_end or is_truncated, info


class Actions:
    """The actions 0 to ``n`` - 1, drawn as in gym 0.21.

    With the actions that gymnasium draws from the same seed, Q-learning on D2L's page fails within its 256 episodes.
    """

    def __init__(self, n: int, seed: int | None) -> None:
        self.n = n
        self.seed(seed)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Start a Mersenne Twister from 8 bytes of the seed's SHA-512."""
        digest = sha512(str(_check_seed(seed)).encode()).digest()
        state = None if seed is None else np.frombuffer(digest[:8], "<u4")
        self.np_random = np.random.RandomState(state)
        return [seed]

    def sample(self) -> int:
        """Draw an action."""
        return int(self.np_random.randint(self.n))

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is an action."""
        return x in range(self.n)


# Plots


def show_value_function_progress(env_desc: Any, V: Any, pi: Any) -> None:
    """Show for each step the values of the states as colours, on one scale, and the policy as arrows.

    ``env_desc`` is the map, letters (rows, columns); ``V`` are values and ``pi`` actions, as in :func:`frozen_lake`,
    both (steps, states). Holes and the goal have no arrow. The figure is displayed at once. Raises TypeError or
    ValueError for shapes that do not fit, or numbers that are not actions.
    """
    letters = _to_letters(env_desc)
    values, actions = _to_maps(letters, ("V", V), ("pi", pi))
    _show(_color_scale("V", values), letters, values, actions, range(len(values)))


def show_Q_function_progress(env_desc: Any, V_all: Any, pi_all: Any) -> None:
    """Show values and policies of about ten steps out of many: at equal distances, and the last one."""
    letters = _to_letters(env_desc)
    values, actions = _to_maps(letters, ("V_all", V_all), ("pi_all", pi_all))
    last = len(values) - 1
    steps = sorted({*range(0, last, max(1, len(values) // 10)), last})
    values, actions = values[steps], actions[steps]
    _show(_color_scale("V_all", values), letters, values, actions, steps)


def _to_letters(env_desc: Any) -> Numbers:
    need = "letters (rows, columns), like env_info['desc']"
    check_instance("env_desc", env_desc, (np.ndarray, list, tuple), need)
    try:
        letters = np.asarray(env_desc)
    except ValueError:
        raise ValueError(message("env_desc", "rows of unequal length", need)) from None
    if letters.dtype.kind not in "SU":
        raise TypeError(message("env_desc", f"dtype {letters.dtype}", need))
    if letters.ndim != 2 or not letters.size:
        raise ValueError(message("env_desc", f"shape {letters.shape}", need))
    return letters.astype(str)


def _to_maps(
    letters: Numbers, named_values: tuple[str, Any], named_policy: tuple[str, Any]
) -> tuple[Numbers, Numbers]:
    """Return values and actions as maps (steps, rows, columns), from pairs of a name and an array."""
    values = _reshape(named_values[0], to_numpy(*named_values), letters.shape)
    actions = _reshape(named_policy[0], _to_actions(*named_policy), letters.shape)
    if len(values) != len(actions):
        what = f"{named_values[0]} and {named_policy[0]}"
        got = f"{len(values)} and {len(actions)} steps"
        raise ValueError(message(what, got, "the same number of each"))
    return values, actions


def _reshape(what: str, numbers: Numbers, shape: tuple[int, ...]) -> Numbers:
    states = math.prod(shape)
    if numbers.shape[1:] not in ((states,), shape) or not numbers.size:
        need = f"shape (steps, {states}), a number for each state of the map, and at least one step"
        raise ValueError(message(what, f"shape {numbers.shape}", need))
    return numbers.reshape(-1, *shape)


def _to_actions(what: str, values: Any) -> NDArray[np.int64]:
    """Return actions as integers; on D2L's pages they may be floating-point numbers."""
    numbers = to_numpy(what, values)
    is_action = np.isin(numbers, range(len(RIGHT)))
    if not is_action.all():
        raise ValueError(message(what, f"an action of {numbers[~is_action].flat[0]:g}", ACTIONS))
    return numbers.astype(np.int64)


def _color_scale(what: str, values: Numbers) -> tuple[float, float]:
    """Return one colour scale for all steps; if all values are the same, they are dark on it."""
    low, high = plot.color_scale(what, values)
    return low, high if low < high else low + 1


def _show(
    scale: tuple[float, float],
    letters: Numbers,
    values: Numbers,
    actions: Numbers,
    steps: Sequence[int],
) -> None:
    """Show a panel for each step; ``steps`` count from 0, the titles from 1."""
    plot.use_svg_display()
    figure, grid = _make_panels(len(steps), *letters.shape)
    for i, (axes, step) in enumerate(zip(grid, steps, strict=False)):
        image = plot.draw_cells(axes, i, values[i], "bone", *scale)
        colors = _contrasting_colors(image)
        _draw_letters(axes, letters, colors)
        _draw_arrows(axes, letters, actions[i], colors)
        axes.set_title(f"Step = {step + 1}")
    plot.draw_color_bar(figure, grid, image)
    plot.pyplot().show()


def _make_panels(count: int, height: int, width: int) -> tuple[Any, Any]:
    """Return a figure for ``count`` maps of this size, and their axes, row by row."""
    columns = min(max(1, MAX_COLUMNS // width), count)
    rows = math.ceil(count / columns)
    figsize = (CELL_INCHES * columns * width, CELL_INCHES * rows * height)
    figure, axes = plot.pyplot().subplots(
        rows, columns, figsize=figsize, squeeze=False, layout="compressed"
    )
    for empty in axes.flat[count:]:
        empty.axis("off")
    return figure, axes.ravel()


def _contrasting_colors(image: Any) -> Numbers:
    """Return black or white for each cell, whichever has the greater contrast by WCAG 2: at least 4.5."""
    rgba = image.to_rgba(image.get_array())
    luminance = rgba[..., :3] ** 2.2 @ LUMINANCE
    is_light = (luminance > 0.18) | (rgba[..., 3] == 0)  # a cell without a number is transparent
    return np.where(is_light, "k", "w")


def _draw_letters(axes: Any, letters: Numbers, colors: Numbers) -> None:
    """Draw large letters where the episode ends, small ones in other cells' corners, and lines between cells."""
    axes.set(xticks=[], yticks=[])
    for axis, count in zip((axes.yaxis, axes.xaxis), letters.shape, strict=True):
        axis.set_ticks(np.arange(1, count) - 0.5, minor=True)
    axes.grid(which="minor", color="0.5", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    large = {"size": 14, "weight": "bold", "ha": "center", "va": "center"}
    small = {"size": 8, "ha": "left", "va": "top"}
    for (row, column), letter in np.ndenumerate(letters):
        style, offset = (large, 0) if letter in ENDS else (small, 0.4)
        axes.text(column - offset, row - offset, letter, color=colors[row, column], **style)


def _draw_arrows(axes: Any, letters: Numbers, actions: Numbers, colors: Numbers) -> None:
    """Draw arrows of half a cell's length in cells where the episode does not end."""
    rows, columns = np.nonzero(~np.isin(letters, ENDS))
    directions = actions[rows, columns]
    arrows = columns, rows, RIGHT[directions] / 2, DOWN[directions] / 2
    in_cells = {"angles": "xy", "units": "xy", "scale_units": "xy", "scale": 1, "width": 0.07}
    axes.quiver(*arrows, color=colors[rows, columns], pivot="mid", **in_cells)
