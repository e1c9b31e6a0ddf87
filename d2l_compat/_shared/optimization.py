"""The parts of D2L's optimization chapter that are the same in every framework: descents, and their plots."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import check_callable, check_instance, format_value, message, size
from d2l_compat._shared.linear import batches, count_batches
from d2l_compat._shared.measuring import Timer, as_float

EXAMPLES_PER_POINT = 200  # between two measurements of the loss


def train_2d(
    trainer: Callable[..., tuple[Any, Any, Any, Any]],
    steps: int = 20,
    f_grad: Callable[..., Any] | None = None,
) -> list[tuple[Any, Any]]:
    """Descend a function of two variables from (-5, -2); print the last point, and return all.

    ``trainer(x1, x2, s1, s2)`` returns the next point and the next state, which is (0, 0) at first. If ``f_grad``,
    the function's gradient, is given, it is the fifth argument. Raises TypeError or ValueError unless ``steps`` is
    an integer of at least 1, and the functions can be called.
    """
    check_callable("trainer", trainer)
    steps = size("steps", steps)
    if f_grad is not None:
        check_callable("f_grad", f_grad)
    extra_arguments = () if f_grad is None else (f_grad,)
    state: Any = (-5, -2, 0, 0)
    points = [state[:2]]
    for _ in range(steps):
        state = trainer(*state, *extra_arguments)
        if not isinstance(state, (tuple, list)) or len(state) != 4:
            got = f"a result of {format_value(state)}"
            raise TypeError(message("trainer", got, "four numbers: x1, x2, s1, s2"))
        points.append(tuple(state[:2]))
    x1, x2 = (as_float("trainer", x) for x in points[-1])
    print(f"epoch {steps}, x1: {x1:f}, x2: {x2:f}")
    return points


def show_trace(f: Any, results: Any, tensor: Callable[[NDArray[np.float32]], Any]) -> None:
    """Draw the path of a descent over the contours of ``f``, which takes arrays made by ``tensor``."""
    check_callable("f", f)
    points = _to_points(results)
    x1, x2 = np.meshgrid(np.arange(-5.5, 1.0, 0.1), np.arange(-3.0, 1.0, 0.1), indexing="ij")
    heights = to_numpy("f", f(*(tensor(x.astype(np.float32)) for x in (x1, x2))))
    if heights.shape != x1.shape:
        raise ValueError(message("f", f"an output of shape {heights.shape}", f"shape {x1.shape}"))
    plot.set_figsize()
    plt = plot.pyplot()
    plt.plot(*points.T, "-o", color=plot.COLORS[1])
    plt.contour(x1, x2, heights, colors=plot.COLORS[0])
    plt.xlabel("x1")
    plt.ylabel("x2")


def _to_points(results: Any) -> NDArray[np.float64]:
    """Return points (points, 2) from pairs of numbers, each of which may be an array of one."""
    need = "points (x1, x2), at least one"
    try:
        points = [[*point] for point in results]
    except (TypeError, AssertionError):  # Paddle raises the latter for a scalar
        raise TypeError(message("results", format_value(results), need)) from None
    sizes = {len(point) for point in points}
    if sizes != {2}:
        got = f"points of {', '.join(map(str, sorted(sizes)))} numbers" if sizes else "none"
        raise ValueError(message("results", got, need))
    return np.array([[as_float("results", x) for x in point] for point in points])


def check_hyperparams(hyperparams: Any) -> None:
    check_instance("hyperparams", hyperparams, dict, "a dictionary")
    for name in hyperparams:
        check_instance("hyperparams", name, str, "strings as keys")


def train(
    data_iter: Any, num_epochs: int, step: Callable[[Any, Any], None], loss: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Run ``step`` on each batch, and measure the ``loss`` after every 200 examples.

    Plot the losses; print the last one, with the seconds per epoch. Return the seconds until each
    measurement, without the time of measuring, and the losses.
    """
    num_epochs = size("num_epochs", num_epochs)
    num_batches = count_batches("data_iter", data_iter)
    animator = Animator("epoch", "loss", xlim=[0, num_epochs], ylim=[0.22, 0.35])
    examples = 0
    losses: list[float] = []
    timer = Timer()

    def measure(epoch: float) -> None:
        timer.stop()
        losses.append(loss())
        animator.add(epoch, losses[-1])
        timer.start()

    for epoch in range(num_epochs):
        for batch, (X, y) in enumerate(batches(data_iter), 1):
            step(X, y)
            examples += len(X)
            if examples % EXAMPLES_PER_POINT == 0:
                measure(epoch + batch / num_batches)
    if not timer.times:  # there were too few examples
        measure(num_epochs)
    print(f"loss: {losses[-1]:.3f}, {timer.sum() / num_epochs:.3f} sec/epoch")
    return timer.cumsum(), losses
