"""The parts of generative adversarial networks that are the same in every framework."""

from typing import Any

from d2l_compat._shared.checks import Arrays, check_callable, message


def check_arguments(arrays: Arrays, net_D: Any, net_G: Any, loss: Any, **inputs: Any) -> int:
    """Check the networks, the loss, and that all inputs have the same number of rows; return this number."""
    for what, function in ("net_D", net_D), ("net_G", net_G), ("loss", loss):
        check_callable(what, function)
    for what, array in inputs.items():
        arrays.check_instance(what, array)
    shapes = [tuple(arrays.shape(array)) for array in inputs.values()]
    first, *others = (shape[:1] for shape in shapes)
    if not first or any(other != first for other in others):
        got = f"shapes {', '.join(map(str, shapes))}"
        raise ValueError(
            message(" and ".join(inputs), got, "the same number of rows in each, at least one")
        )
    return first[0]


def check_discriminator_output(arrays: Arrays, Y: Any, batch_size: int) -> None:
    """Check that the output of ``net_D`` is a number for each example."""
    arrays.check_instance("net_D", Y)
    shape = tuple(arrays.shape(Y))
    if shape[:1] != (batch_size,) or any(n != 1 for n in shape[1:]):
        got = f"an output of shape {shape} for {batch_size} examples"
        raise ValueError(message("net_D", got, "a number for each example"))
