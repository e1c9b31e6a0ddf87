"""Tests of D2L's frozen lake and the maps of values learned on it, against values computed by hand and by gym 0.21."""

import copy
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from packaging.requirements import Requirement

from d2l_compat import common as d2l
from d2l_compat._shared import require
from d2l_compat._shared.description import describe
from d2l_compat._shared.plot import as_svg
from d2l_compat._shared.reinforcement import GYMNASIUM

LAKE = np.array([[*"SFFF"], [*"FHFH"], [*"FFFH"], [*"HFFG"]])
LEFT, DOWN, RIGHT, UP = range(4)
MOVES = {LEFT: (0, -1), DOWN: (1, 0), RIGHT: (0, 1), UP: (-1, 0)}  # rows are counted downwards
# The number of steps to the goal, counted by hand; 0 if there is none.
DISTANCES = np.array([[6, 5, 4, 5], [5, 0, 3, 0], [4, 3, 2, 0], [0, 2, 1, 0]])


@pytest.fixture
def info() -> dict[str, Any]:
    return d2l.make_env("FrozenLake-v1", seed=0)


# The lake


def outcome(state: int, action: int) -> tuple[float, int, float, bool]:
    """Return probability, next state, reward and whether the episode ends, by the rules."""
    cell = divmod(state, 4)
    if LAKE[cell] in ("G", "H"):
        return 1.0, state, 0, True
    row, column = np.clip(np.add(cell, MOVES[action]), 0, 3)
    letter = LAKE[row, column]
    return 1.0, 4 * row + column, float(letter == "G"), letter in ("G", "H")


def test_lake_follows_its_rules(info: dict[str, Any]):
    assert info["desc"].astype(str).tolist() == LAKE.tolist()
    assert info["desc"].dtype.kind == "S"  # D2L's code decodes it
    assert (info["num_states"], info["num_actions"]) == (16, 4)
    positions = [info[f"{what}_idx"] for what in ("trans_prob", "nextstate", "reward", "done")]
    assert positions == [0, 1, 2, 3]
    assert info["mdp"] == {(s, a): [outcome(s, a)] for s in range(16) for a in range(4)}
    keys = {"desc", "num_states", "num_actions", "mdp", "env"}
    assert info.keys() == keys | {f"{x}_idx" for x in ("trans_prob", "nextstate", "reward", "done")}


def test_frozen_lake_and_make_env_agree(info: dict[str, Any]):
    again = d2l.frozen_lake(0)
    assert again.keys() == info.keys()
    assert again["mdp"] == info["mdp"]
    samples = [[each["env"].action_space.sample() for _ in range(30)] for each in (info, again)]
    assert samples[0] == samples[1]


def test_value_iteration_finds_shortest_path(info: dict[str, Any]):
    V = np.zeros(16)
    for _ in range(10):
        Q = {pair: p * (r + 0.95 * V[s]) for pair, ((p, s, r, _),) in info["mdp"].items()}
        V = np.array([max(Q[s, a] for a in range(4)) for s in range(16)])
    want = np.where(DISTANCES > 0, 0.95 ** (DISTANCES - 1.0), 0)
    np.testing.assert_allclose(V.reshape(4, 4), want, atol=1e-12)


# The environment, which behaves like gym's


def test_walk_reaches_goal(info: dict[str, Any]):
    env = info["env"]
    for _ in range(2):  # and once more from the start
        assert env.reset() == 0
        steps = [env.step(action) for action in (DOWN, DOWN, RIGHT, DOWN, RIGHT, RIGHT)]
        assert [step[:3] for step in steps] == [
            *((state, 0.0, False) for state in (4, 8, 9, 13, 14)),
            (15, 1.0, True),
        ]
        assert [step[3] for step in steps] == [{"prob": 1.0}] * 6
        assert [type(part) for part in steps[-1]] == [int, float, bool, dict]


def test_hole_ends_episode_without_reward(info: dict[str, Any]):
    env = info["env"]
    env.reset()
    assert env.step(RIGHT)[:3] == (1, 0, False)
    assert env.step(DOWN)[:3] == (5, 0, True)


def test_episode_ends_after_hundred_steps(info: dict[str, Any]):
    env = info["env"]
    env.reset()
    steps = [env.step(UP) for _ in range(100)]
    assert [done for _, _, done, _ in steps] == [False] * 99 + [True]
    assert "TimeLimit.truncated" not in steps[98][3]
    assert steps[99][3]["TimeLimit.truncated"] is True


def test_goal_at_last_step_counts(info: dict[str, Any]):
    env = info["env"]
    env.reset()
    for action in [UP] * 94 + [DOWN, DOWN, RIGHT, DOWN, RIGHT]:
        env.step(action)
    state, reward, done, more = env.step(RIGHT)
    assert (state, reward, done, more["TimeLimit.truncated"]) == (15, 1.0, True, False)


@pytest.mark.parametrize("action", [DOWN, np.int64(1), np.float64(1.0), np.array([1]), np.int8(1)])
def test_actions_may_be_any_integer_type(info: dict[str, Any], action: Any):
    env = info["env"]
    env.reset()
    assert env.step(action)[0] == 4


def test_other_attributes_come_from_gymnasium(info: dict[str, Any]):
    env = info["env"]
    assert (env.nS, env.nA, env.action_space.n, env.observation_space.n) == (16, 4, 4, 16)
    assert env.P[14][RIGHT] == info["mdp"][14, RIGHT]
    assert isinstance(env.env, gymnasium.Env)
    assert env.env.reset(seed=3) == (0, {"prob": 1})
    assert [env.action_space.contains(x) for x in (0, 3, 4, -1)] == [True, True, False, False]
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = env.no_such_thing


def test_copies_are_independent(info: dict[str, Any]):
    env = info["env"]
    env.reset()
    other = copy.deepcopy(env)
    assert env.step(DOWN)[0] == 4
    assert other.step(RIGHT)[0] == 1
    assert other.action_space.sample() == env.action_space.sample()


# Seeds

# The actions that gym 0.21 drew with these seeds.
GYM_ACTIONS = {
    0: [0, 2, 2, 3, 1, 3, 0, 3, 2, 2, 1, 1, 1, 3, 3, 2, 1, 0, 1, 2],
    7: [0, 3, 0, 3, 3, 0, 0, 3, 0, 0, 2, 0, 3, 1, 0, 2, 3, 1, 2, 1],
}


@pytest.mark.parametrize("seed", GYM_ACTIONS)
def test_actions_are_drawn_as_gym_drew_them(seed: int):
    space = d2l.make_env("FrozenLake-v1", seed)["env"].action_space
    assert [space.sample() for _ in range(20)] == GYM_ACTIONS[seed]
    assert space.seed(0) == [0]
    assert [space.sample() for _ in range(20)] == GYM_ACTIONS[0]


def test_unseeded_lakes_differ():
    spaces = [d2l.make_env("FrozenLake-v1", None)["env"].action_space for _ in range(2)]
    actions = [[space.sample() for _ in range(50)] for space in spaces]
    assert actions[0] != actions[1]
    assert {*actions[0]} == {*range(4)}


def test_seed_applies_to_next_reset(info: dict[str, Any]):
    env = info["env"]
    assert env.seed(5) == [5]
    env.reset()
    numbers = env.unwrapped.np_random.random(3)
    assert (env.unwrapped.np_random.random(3) != numbers).all()
    env.reset()  # without a new seed
    assert (env.unwrapped.np_random.random(3) != numbers).all()
    env.seed(5)
    env.reset()
    np.testing.assert_array_equal(env.unwrapped.np_random.random(3), numbers)


def test_q_learning_matches_results_on_gym(info: dict[str, Any]):
    """Test that about 250 episodes suffice, as D2L's page says."""
    random.seed(0)
    env = info["env"]
    Q = np.zeros((16, 4))
    for _ in range(255):
        state, done = env.reset(), False
        while not done:
            explores = random.random() < 0.9
            action = env.action_space.sample() if explores else int(Q[state].argmax())
            after, reward, done, _ = env.step(action)
            Q[state, action] += 0.9 * (reward + 0.95 * Q[after].max() - Q[state, action])
            state = after
    want = [
        [0.7729, 0.7341, 0.7639, 0.7257],
        [0.8136, 0, 0.8041, 0],
        [0.8565, 0.9016, 0.949, 0],
        [0, 0.949, 0.9999, 0],
    ]
    np.testing.assert_allclose(Q.max(axis=1).reshape(4, 4), want, atol=6e-5)
    assert Q.argmax(axis=1).tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 2, 1, 1, 0, 0, 2, 2, 0]


# A missing or old gymnasium


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, 'it is not installed. Install it: pip install "gymnasium>='),
        ("0.28.1", '0.28.1 is installed. Upgrade it: pip install "gymnasium>='),
    ],
)
def test_missing_gymnasium_error_names_install_command(
    monkeypatch: pytest.MonkeyPatch, version: str | None, message: str
):
    def find_version(name: str) -> str:
        if version is None:
            raise PackageNotFoundError(name)
        return version

    monkeypatch.setattr(require.metadata, "version", find_version)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError) as caught:
        d2l.make_env("FrozenLake-v1")
    assert str(caught.value).startswith(f"gymnasium {GYMNASIUM.minimum} or newer is needed, and ")
    assert message in str(caught.value)


def test_gymnasium_is_imported_when_lake_is_made():
    program = (
        "import sys; from d2l_compat import common as d2l; assert 'gymnasium' not in sys.modules; "
        "d2l.make_env('FrozenLake-v1'); assert 'gymnasium' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_gymnasium_version_matches_pyproject():
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    lines = tomllib.loads(pyproject.read_text())["dependency-groups"]["dev"]
    (bound,) = (Requirement(line) for line in lines if line.startswith("gymnasium"))
    assert str(bound.specifier) == f">={GYMNASIUM.minimum}"


# Maps


@pytest.fixture(autouse=True)
def show_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Record calls of ``plt.show``, and close figures afterwards."""
    calls: list[bool] = []
    monkeypatch.setattr(plt, "show", lambda: calls.append(True))
    yield calls
    plt.close("all")


V = np.linspace(0, 1, 2 * 16).reshape(2, 16)
PI = np.arange(2 * 16).reshape(2, 16) % 4


def panels() -> list[Any]:
    return [axes for axes in plt.gcf().axes if axes.images]


def arrows(axes: Any) -> dict[tuple[int, int], tuple[float, float]]:
    """Return the direction (right, down) of each arrow on the screen by its cell (row, column)."""
    (quiver,) = (each for each in axes.collections if hasattr(each, "U"))
    assert (quiver.angles, axes.yaxis_inverted(), axes.xaxis_inverted()) == ("xy", True, False)
    cells = np.round(quiver.get_offsets()).astype(int).tolist()
    directions = zip(np.sign(quiver.U), np.sign(quiver.V), strict=True)
    return {(y, x): direction for (x, y), direction in zip(cells, directions, strict=True)}


def test_value_maps_share_scale(show_calls: list[bool]):
    d2l.show_value_function_progress(LAKE.astype("S"), V, PI)
    images = [axes.images[0] for axes in panels()]
    np.testing.assert_array_equal([i.get_array() for i in images], V.reshape(2, 4, 4))
    assert [i.get_clim() for i in images] == [(0, 1)] * 2
    assert {i.get_cmap().name for i in images} == {"bone"}
    assert [axes.get_title() for axes in panels()] == ["Step = 1", "Step = 2"]
    assert show_calls == [True]


def test_arrows_show_policy():
    d2l.show_value_function_progress(LAKE.astype("S"), V, PI.astype(float))
    for axes, actions in zip(panels(), PI.reshape(2, 4, 4), strict=True):
        want = {
            (row, column): MOVES[actions[row, column]][::-1]
            for row, column in np.ndindex(4, 4)
            if LAKE[row, column] in ("S", "F")
        }
        assert arrows(axes) == want
        assert {*want.values()} == {(-1, 0), (0, 1), (1, 0), (0, -1)}


def contrast(color: Any, other: Any) -> float:
    """Return the contrast ratio of WCAG 2."""
    lights = []
    for rgb in map(np.array, (color, other)):
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        lights.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(lights) / min(lights)


def test_letters_are_legible_on_cells():
    values = np.linspace(0, 1, 20 * 16).reshape(20, 16)
    d2l.show_value_function_progress(LAKE.astype("S"), values, np.ones((20, 16)))
    for axes in panels():
        letters, colors = np.full((4, 4), ""), {}
        for text in axes.texts:
            x, y = np.round(text.get_position()).astype(int)
            letters[y, x] = text.get_text()
            colors[y, x] = to_rgb(text.get_color())
            background = axes.images[0].to_rgba(axes.images[0].get_array())[y, x, :3]
            assert contrast(colors[y, x], background) > 4.4
        assert letters.tolist() == LAKE.tolist()
        (quiver,) = (each for each in axes.collections if hasattr(each, "U"))
        assert [tuple(rgba[:3]) for rgba in quiver.get_facecolor()] == [
            colors[cell] for cell in arrows(axes)
        ]


def test_about_ten_of_many_steps_and_last_are_shown():
    for count, want in {
        1: [1],
        5: [1, 2, 3, 4, 5],
        10: [*range(1, 11)],
        25: [*range(1, 26, 2)],
        100: [*range(1, 101, 10), 100],
        256: [*range(1, 256, 25), 256],
    }.items():
        values = np.repeat(np.arange(count) / count, 4).reshape(count, 4)
        d2l.show_Q_function_progress([["S", "F"], ["H", "G"]], values, np.zeros((count, 4)))
        assert [axes.get_title() for axes in panels()] == [f"Step = {step}" for step in want]
        first = [axes.images[0].get_array()[0, 0] * count for axes in panels()]
        np.testing.assert_allclose(first, np.array(want) - 1)
        plt.close("all")


def test_larger_map_has_larger_panels():
    d2l.show_value_function_progress(np.full((8, 8), "F"), np.ones((3, 64)), np.ones((3, 64)))
    assert plt.gcf().get_size_inches().tolist() == [8, 8]
    assert [axes.get_subplotspec().get_geometry()[:2] for axes in panels()] == [(2, 2)] * 3
    plt.close("all")
    d2l.show_value_function_progress(LAKE, np.ones((10, 16)), np.ones((10, 16)))
    assert plt.gcf().get_size_inches().tolist() == [8, 6]
    assert len(panels()) == 10


def test_zero_values_are_dark():
    d2l.show_value_function_progress(LAKE, np.zeros((1, 16)), np.zeros((1, 16)))
    (axes,) = panels()
    assert (axes.images[0].to_rgba(axes.images[0].get_array())[..., :3] == 0).all()
    assert {text.get_color() for text in axes.texts} == {"w"}


def test_nan_values_are_blank():
    values = np.where(LAKE.ravel() == "H", np.nan, 0.0)[None]
    values[0, 0] = -np.inf
    d2l.show_value_function_progress(LAKE, values, np.zeros((1, 16)))
    (axes,) = panels()
    letter_colors = {text.get_text(): text.get_color() for text in axes.texts}
    assert letter_colors == {"S": "k", "F": "w", "G": "w", "H": "k"}


def test_maps_are_described_and_drawn_as_vectors():
    pi = np.array([[2, 1, 1, 0, 1, 3, 1, 3, 2, 1, 1, 3, 3, 2, 2, 3]])
    d2l.show_value_function_progress(LAKE, V[:1], pi)
    assert describe(plt.gcf()) == (
        '"Step = 1": Heat map, 4 rows (unnamed) by 4 columns (unnamed), values from 0.00 to 0.48, '
        "1 of 16 zero; colours bone from 0.00 to 0.48. Arrows: 1 left, 6 down, 4 right, 0 up."
    )
    svg = as_svg(plt.gcf())
    assert "<image" not in svg
    assert svg.count('shape-rendering="crispEdges"') == 1


def test_arrows_are_described_by_direction():
    _, (screen, inverted) = plt.subplots(1, 2)
    directions = np.array([-1, 0, 0.1, 0]), np.array([0, -2, 2, 1])
    screen.quiver(*directions)
    inverted.quiver(*directions, angles="xy")
    inverted.invert_yaxis()
    screen.set_title("箭")
    assert describe(plt.gcf()) == (
        "箭頭：向左 1 個，向下 1 個，向右 0 個，向上 2 個。箭頭：向左 1 個，向下 2 個，向右 0 個，向上 1 個。"
    )


# Bad calls that no rule of tests/shim/each/rules.py describes

ZEROS = np.zeros((2, 16))


def step(action: Any) -> Any:
    env = d2l.make_env("FrozenLake-v1")["env"]
    env.reset()
    return env.step(action)


def value_map(desc: Any = LAKE, V: Any = ZEROS, pi: Any = ZEROS) -> None:
    d2l.show_value_function_progress(desc, V, pi)


def q_map(V: Any = ZEROS, pi: Any = ZEROS) -> None:
    d2l.show_Q_function_progress(LAKE, V, pi)


NAME = "'FrozenLake-v1', the only environment"
ACTION = "0 (left), 1 (down), 2 (right) or 3 (up)"
STATES = "shape (steps, 16), a number for each state of the map, and at least one step"
LETTERS = "letters (rows, columns), like env_info['desc']"
# fmt: off
BAD_CALLS: dict[str, Callable[[], Any]] = {
    f"ValueError: name: got ''; need {NAME}": d2l.make_env,
    f"ValueError: name: got list; need {NAME}": lambda: d2l.make_env(["a"]),
    f"ValueError: action: got an action of 4; need {ACTION}": lambda: step(4),
    f"ValueError: action: got an action of 1.5; need {ACTION}": lambda: step(1.5),
    f"ValueError: action: got 2 numbers; need one: {ACTION}": lambda: step([1, 2]),
    f"TypeError: env_desc: got dtype float64; need {LETTERS}": lambda: value_map(ZEROS),
    f"ValueError: env_desc: got shape (2,); need {LETTERS}": lambda: value_map(["SF", "HG"]),
    f"ValueError: env_desc: got rows of unequal length; need {LETTERS}":
        lambda: value_map([["S"], ["F", "G"]]),
    f"ValueError: env_desc: got shape (0, 2); need {LETTERS}":
        lambda: value_map(np.empty((0, 2), "U1")),
    f"ValueError: V: got shape (0, 16); need {STATES}": lambda: value_map(V=ZEROS[:0]),
    "ValueError: V and pi: got 2 and 1 steps; need the same number of each":
        lambda: value_map(pi=ZEROS[:1]),
    f"ValueError: pi: got an action of -1; need {ACTION}": lambda: value_map(pi=ZEROS - 1),
    f"ValueError: pi: got an action of nan; need {ACTION}": lambda: value_map(pi=ZEROS * np.nan),
    "ValueError: V: got shape (2, 4, 4) without a finite number; need at least one number":
        lambda: value_map(V=ZEROS * np.nan),
    f"ValueError: pi_all: got an action of 0.5; need {ACTION}": lambda: q_map(pi=ZEROS + 0.5),
    "ValueError: V_all and pi_all: got 2 and 1 steps; need the same number of each":
        lambda: q_map(pi=ZEROS[:1]),
}
# fmt: on


@pytest.mark.parametrize(("message", "call"), BAD_CALLS.items(), ids=BAD_CALLS)
def test_bad_calls_raise_clear_errors(message: str, call: Callable[[], Any]):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert f"{caught.type.__name__}: {caught.value}" == message
