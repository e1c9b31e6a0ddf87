"""The parts of D2L 1.0's first models that are the same in every framework."""

from typing import Any

from d2l_compat._shared import training
from d2l_compat._shared.checks import Arrays, check_instance, integer, integers, message, real, size
from d2l_compat._shared.linear import check_data_arguments


class RegressionData(training.DataModule):
    """Rows ``X`` and ``y``, the first ``num_train`` of them for training."""

    X: Any
    y: Any
    num_train: int

    def get_dataloader(self, train: bool) -> Any:
        """Return batches (X, y): shuffled training rows, or the other rows for validation."""
        rows = slice(self.num_train) if train else slice(self.num_train, None)
        return self.get_tensorloader((self.X, self.y), train, rows)


def check_regression_data(
    arrays: Arrays, w: Any, b: Any, noise: Any, num_train: Any, num_val: Any, batch_size: Any
) -> Any:
    """Check weights, a bias, the noise's standard deviation, and sizes. Return the bias."""
    size("num_train", num_train)
    integer("num_val", num_val, 0)
    size("batch_size", batch_size)
    need = "a standard deviation of at least 0"
    if not real("noise", noise, need) >= 0:
        raise ValueError(message("noise", noise, need))
    return check_data_arguments(arrays, w, b, num_train + num_val)


def bottleneck_sizes(
    num_channels: Any, groups: Any, bot_mul: Any, use_1x1conv: Any = False, strides: Any = 1
) -> tuple[int, int]:
    """Return the channels of a ResNeXt block's bottleneck, and the number of their groups.

    As in D2L, ``groups`` is the number of channels in a group.
    """
    size("num_channels", num_channels)
    size("groups", groups)
    integers("strides", strides, 1)
    check_instance("use_1x1conv", use_1x1conv, (bool, int), "True or False")
    channels = round(num_channels * real("bot_mul", bot_mul, "a number"))
    number = channels // groups
    if number < 1 or channels % number:
        got = f"{groups} for {channels} channels"
        raise ValueError(
            message("groups", got, "a number of channels per group that divides them evenly")
        )
    return channels, number
