"""D2L's optimization chapter, as far as it is the same in every framework: how steps are followed, and drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import check_callable, check_instance, fault, format_value, size
from d2l_compat._shared.linear import batches, count_batches
from d2l_compat._shared.measuring import Timer, as_float

EXAMPLES_PER_POINT = 200  # examples, after which the loss is measured


def train_2d(
    trainer: Callable[..., tuple[Any, Any, Any, Any]],
    steps: int = 20,
    f_grad: Callable[..., Any] | None = None,
) -> list[tuple[Any, Any]]:
    """Go down a function of two variables from (-5, -2); the points on the way, of which the last is printed.

    ``trainer(x1, x2, s1, s2)`` gives the next point and the next state, which is (0, 0) at first; where there
    is an ``f_grad``, the function's gradient, that comes after them. Raises TypeError or ValueError where
    ``steps`` is not an integer of at least 1, or one of the others cannot be called.
    """
    check_callable("trainer", trainer)
    steps = size("steps", steps)
    if f_grad is not None:
        check_callable("f_grad", f_grad)
    more = () if f_grad is None else (f_grad,)
    now: Any = (-5, -2, 0, 0)
    points = [now[:2]]
    for _ in range(steps):
        now = trainer(*now, *more)
        if not isinstance(now, (tuple, list)) or len(now) != 4:
            raise TypeError(
                fault("trainer", f"{format_value(now)} from it", "four numbers: x1, x2, s1, s2")
            )
        points.append(tuple(now[:2]))
    x1, x2 = (as_float("trainer", x) for x in points[-1])
    print(f"epoch {steps}, x1: {x1:f}, x2: {x2:f}")
    return points


def show_trace(f: Any, results: Any, tensor: Callable[[NDArray[np.float32]], Any]) -> None:
    """Points on their way over the contours of ``f``, which is given the face's arrays."""
    check_callable("f", f)
    points = _points(results)
    x1, x2 = np.meshgrid(np.arange(-5.5, 1.0, 0.1), np.arange(-3.0, 1.0, 0.1), indexing="ij")
    heights = to_numpy("f", f(*(tensor(x.astype(np.float32)) for x in (x1, x2))))
    if heights.shape != x1.shape:
        raise ValueError(fault("f", f"shape {heights.shape} from it", f"shape {x1.shape}"))
    plot.set_figsize()
    plt = plot.pyplot()
    plt.plot(*points.T, "-o", color=plot.COLORS[1])
    plt.contour(x1, x2, heights, colors=plot.COLORS[0])
    plt.xlabel("x1")
    plt.ylabel("x2")


def _points(results: Any) -> NDArray[np.float64]:
    """Pairs of numbers, each of which may be an array of one."""
    need = "points (x1, x2), at least one"
    try:
        points = [[*point] for point in results]
    except (TypeError, AssertionError):  # Paddle's, of a single number
        raise TypeError(fault("results", format_value(results), need)) from None
    sizes = {len(point) for point in points}
    if sizes != {2}:
        got = f"points of {', '.join(map(str, sorted(sizes)))} numbers" if sizes else "none"
        raise ValueError(fault("results", got, need))
    return np.array([[as_float("results", x) for x in point] for point in points])


def check_hyperparams(hyperparams: Any) -> None:
    check_instance("hyperparams", hyperparams, dict, "a dictionary")
    for name in hyperparams:
        check_instance("hyperparams", name, str, "names as its keys")


def train(
    data_iter: Any, num_epochs: int, step: Callable[[Any, Any], None], loss: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Do ``step`` with each batch, and measure the ``loss`` after every 200 examples.

    The losses are drawn; the last is printed, with the seconds an epoch took. Gives the seconds that had
    passed until each, without the measuring, and the losses.
    """
    num_epochs = size("num_epochs", num_epochs)
    num_batches = count_batches("data_iter", data_iter)
    animator = Animator("epoch", "loss", xlim=[0, num_epochs], ylim=[0.22, 0.35])
    examples, timer = 0, Timer()

    def measure(epoch: float) -> None:
        timer.stop()
        animator.add(epoch, loss())
        timer.start()

    for epoch in range(num_epochs):
        for batch, (X, y) in enumerate(batches(data_iter), 1):
            step(X, y)
            examples += len(X)
            if examples % EXAMPLES_PER_POINT == 0:
                measure(epoch + batch / num_batches)
    if not timer.times:  # there was no such moment
        measure(num_epochs)
    losses = animator.Y[0]
    print(f"loss: {losses[-1]:.3f}, {timer.sum() / num_epochs:.3f} sec/epoch")
    return timer.cumsum(), losses
