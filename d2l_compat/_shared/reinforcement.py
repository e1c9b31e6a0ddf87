"""Reinforcement learning: the frozen lake of D2L's chapter, and pictures of what is learned there.

gymnasium, which took gym's place, is imported when an environment is first made.
"""

import math
from collections.abc import Sequence
from hashlib import sha512
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, fault, format_value, integer
from d2l_compat._shared.require import import_package
from d2l_compat.frameworks import Package

Numbers = NDArray[Any]

GYMNASIUM = Package("gymnasium", "gymnasium", "0.29")
FROZEN_LAKE = "FrozenLake-v1"
ACTIONS = "0 (left), 1 (down), 2 (right) or 3 (up)"
RIGHT, DOWN = np.array([-1, 0, 1, 0]), np.array([0, 1, 0, -1])  # where each action leads
ENDS = "G", "H"  # goal and holes: the episode is over, and no action follows

CELLS, INCHES = 16, 0.5  # side by side in a figure, and the side of each
LUMINANCE = 0.2126, 0.7152, 0.0722  # of red, green and blue


def make_env(name: str = "", seed: int | None = 0) -> dict[str, Any]:
    """The environment of this name: ``FrozenLake-v1`` is the one that there is. See :func:`frozen_lake`.

    Raises ValueError for another name, and what :func:`frozen_lake` does.
    """
    if not isinstance(name, str) or name != FROZEN_LAKE:
        need = f"{FROZEN_LAKE!r}, the one environment that is known"
        raise ValueError(fault("name", format_value(name), need))
    return frozen_lake(seed)


def frozen_lake(seed: int | None) -> dict[str, Any]:
    """A lake of 4 by 4 cells, frozen but not slippery, and all that is known of it.

    ``desc``
        letters (rows, columns) as bytes: S where it starts, F frozen, H a hole, G the goal
    ``num_states``, ``num_actions``
        cells, counted row by row; and actions: 0 left, 1 down, 2 right, 3 up
    ``mdp``
        of (state, action) a list of what may come of it: (probability, next state, reward, whether it is the end);
        where these stand is told by ``trans_prob_idx``, ``nextstate_idx``, ``reward_idx`` and ``done_idx``
    ``env``
        the environment, which answers as gym's once did: see :class:`Environment`

    From one ``seed`` the actions are drawn that gym drew; None is any. Raises ImportError where gymnasium is not
    there, TypeError or ValueError where the seed is no integer from 0 on.
    """
    seed = _checked(seed)
    env = Environment(import_package(GYMNASIUM).make(FROZEN_LAKE, is_slippery=False), seed)
    return {
        "desc": env.desc,
        "num_states": env.nS,
        "num_actions": env.nA,
        "trans_prob_idx": 0,
        "nextstate_idx": 1,
        "reward_idx": 2,
        "done_idx": 3,
        "mdp": {(s, a): ends for s, actions in env.P.items() for a, ends in actions.items()},
        "env": env,
    }


def _checked(seed: int | None) -> int | None:
    return None if seed is None else integer("seed", seed, 0)


class Environment:
    """One of gymnasium's, which answers as those of gym 0.21 did, since D2L's pages ask so.

    Whatever else is asked for is gymnasium's; with its answers of today it is ``env``.
    """

    def __init__(self, env: Any, seed: int | None) -> None:
        self.env = env
        self.nS, self.nA = int(env.observation_space.n), int(env.action_space.n)
        self.action_space = Actions(self.nA, seed)
        self.seed(seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":  # a copy is asked before it has one
            raise AttributeError(name)
        return getattr(self.env.unwrapped, name)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """The next ``reset`` begins with this seed."""
        self._seed = _checked(seed)
        return [seed]

    def reset(self) -> int:
        """Begin anew: the state, alone."""
        seed, self._seed = self._seed, None
        return int(self.env.reset(seed=seed)[0])

    def step(self, action: Any) -> tuple[int, float, bool, dict[str, Any]]:
        """Next state, reward, whether the episode is over (at its end, or after 100 steps), and what else is known.

        Raises TypeError or ValueError where ``action`` is none of 0, 1, 2 and 3.
        """
        chosen = _actions("action", action)
        if chosen.size != 1:
            raise ValueError(fault("action", f"{chosen.size} numbers", f"one: {ACTIONS}"))
        state, reward, is_end, is_late, info = self.env.step(chosen.item())
        if is_late:
            info["TimeLimit.truncated"] = not is_end
        return state, float(reward), is_end or is_late, info


class Actions:
    """Actions 0 to ``n`` - 1, drawn as gym 0.21 drew them.

    With what gymnasium draws from the same seed, D2L's page on Q-learning would not find its way in 256 episodes.
    """

    def __init__(self, n: int, seed: int | None) -> None:
        self.n = n
        self.seed(seed)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """The Mersenne Twister, begun with 8 bytes of the seed's SHA-512."""
        digest = sha512(str(_checked(seed)).encode()).digest()
        start = None if seed is None else np.frombuffer(digest[:8], "<u4")
        self.np_random = np.random.RandomState(start)
        return [seed]

    def sample(self) -> int:
        """Any of them."""
        return int(self.np_random.randint(self.n))

    def contains(self, x: Any) -> bool:
        """Whether it is one of them."""
        return x in range(self.n)


# Pictures


def show_value_function_progress(env_desc: Any, V: Any, pi: Any) -> None:
    """Show of each step the value of each state by its colour, one scale for all steps, and the policy as arrows.

    ``env_desc`` is the map, letters (rows, columns); ``V`` are values and ``pi`` actions, as in :func:`frozen_lake`,
    both (steps, states). No action follows on a hole or the goal. The figure is shown at once. Raises TypeError or
    ValueError where shapes do not fit, or an action is none.
    """
    letters = _letters(env_desc)
    values, actions = _progress(letters, ("V", V), ("pi", pi))
    _show(_scale("V", values), letters, values, actions, range(len(values)))


def show_Q_function_progress(env_desc: Any, V_all: Any, pi_all: Any) -> None:
    """The same of about ten steps out of many: at equal distances, and the last one."""
    letters = _letters(env_desc)
    values, actions = _progress(letters, ("V_all", V_all), ("pi_all", pi_all))
    last = len(values) - 1
    steps = sorted({*range(0, last, max(1, len(values) // 10)), last})
    values, actions = values[steps], actions[steps]
    _show(_scale("V_all", values), letters, values, actions, steps)


def _letters(env_desc: Any) -> Numbers:
    need = "letters (rows, columns), as of env_info['desc']"
    check_instance("env_desc", env_desc, (np.ndarray, list, tuple), need)
    try:
        letters = np.asarray(env_desc)
    except ValueError:
        raise ValueError(fault("env_desc", "rows of unequal length", need)) from None
    if letters.dtype.kind not in "SU":
        raise TypeError(fault("env_desc", f"dtype {letters.dtype}", need))
    if letters.ndim != 2 or not letters.size:
        raise ValueError(fault("env_desc", f"shape {letters.shape}", need))
    return letters.astype(str)


def _progress(
    letters: Numbers, of_states: tuple[str, Any], policy: tuple[str, Any]
) -> tuple[Numbers, Numbers]:
    """Values and actions as maps, (steps, rows, columns)."""
    values = _maps(of_states[0], to_numpy(*of_states), letters.shape)
    actions = _maps(policy[0], _actions(*policy), letters.shape)
    if len(values) != len(actions):
        got = f"{len(values)} and {len(actions)} steps"
        raise ValueError(fault(f"{of_states[0]} and {policy[0]}", got, "as many of each"))
    return values, actions


def _maps(what: str, numbers: Numbers, shape: tuple[int, ...]) -> Numbers:
    states = math.prod(shape)
    if numbers.shape[1:] not in ((states,), shape) or not numbers.size:
        need = f"shape (steps, {states}), a number for each state of the map, and at least one step"
        raise ValueError(fault(what, f"shape {numbers.shape}", need))
    return numbers.reshape(-1, *shape)


def _actions(what: str, values: Any) -> NDArray[np.int64]:
    """As integers; D2L's pages have them in floating point as well."""
    numbers = to_numpy(what, values)
    is_one = np.isin(numbers, range(len(RIGHT)))
    if not is_one.all():
        raise ValueError(fault(what, f"an action of {numbers[~is_one].flat[0]:g}", ACTIONS))
    return numbers.astype(np.int64)


def _scale(what: str, values: Numbers) -> tuple[float, float]:
    """Of all steps; where nothing is known yet, all is dark."""
    low, high = plot.color_scale(what, values)
    return low, high if low < high else low + 1


def _show(
    scale: tuple[float, float],
    letters: Numbers,
    values: Numbers,
    actions: Numbers,
    steps: Sequence[int],
) -> None:
    """A panel for each step, which are counted from 1."""
    plot.use_svg_display()
    figure, grid = _panels(len(steps), *letters.shape)
    for i, (axes, step) in enumerate(zip(grid, steps, strict=False)):
        image = plot.draw_cells(axes, i, values[i], "bone", *scale)
        inks = _inks(image)
        _draw_letters(axes, letters, inks)
        _draw_arrows(axes, letters, actions[i], inks)
        axes.set_title(f"Step = {step + 1}")
    plot.draw_bar(figure, grid, image)
    plot.pyplot().show()


def _panels(count: int, height: int, width: int) -> tuple[Any, Any]:
    """A figure with so many maps of this size in it, and their axes, row by row."""
    columns = min(max(1, CELLS // width), count)
    rows = math.ceil(count / columns)
    figure, axes = plot.pyplot().subplots(
        *(rows, columns),
        figsize=(INCHES * columns * width, INCHES * rows * height),
        squeeze=False,
        layout="compressed",
    )
    for empty in axes.flat[count:]:
        empty.axis("off")
    return figure, axes.ravel()


def _inks(image: Any) -> Numbers:
    """For each cell black or white, which of them has the greater contrast as WCAG 2 measures it: 4.5 at least."""
    rgba = image.to_rgba(image.get_array())
    luminance = rgba[..., :3] ** 2.2 @ LUMINANCE
    is_light = (luminance > 0.18) | (rgba[..., 3] == 0)  # without a number a cell is blank
    return np.where(is_light, "k", "w")


def _draw_letters(axes: Any, letters: Numbers, inks: Numbers) -> None:
    """Large ones where the episode ends, else in the corner; and lines between them."""
    axes.set(xticks=[], yticks=[])
    for axis, count in zip((axes.yaxis, axes.xaxis), letters.shape, strict=True):
        axis.set_ticks(np.arange(1, count) - 0.5, minor=True)
    axes.grid(which="minor", color="0.5", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    large = {"size": 14, "weight": "bold", "ha": "center", "va": "center"}
    small = {"size": 8, "ha": "left", "va": "top"}
    for (row, column), letter in np.ndenumerate(letters):
        style, away = (large, 0) if letter in ENDS else (small, 0.4)
        axes.text(column - away, row - away, letter, color=inks[row, column], **style)


def _draw_arrows(axes: Any, letters: Numbers, actions: Numbers, inks: Numbers) -> None:
    """Where an action follows, half as long as a cell."""
    rows, columns = np.nonzero(~np.isin(letters, ENDS))
    chosen = actions[rows, columns]
    arrows = columns, rows, RIGHT[chosen] / 2, DOWN[chosen] / 2
    in_cells = {"angles": "xy", "units": "xy", "scale_units": "xy", "scale": 1, "width": 0.07}
    axes.quiver(*arrows, color=inks[rows, columns], pivot="mid", **in_cells)
