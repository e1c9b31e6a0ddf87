"""Conversion of any framework's arrays to NumPy, without importing a framework."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import message


def to_numpy(what: str, array: Any) -> NDArray[Any]:
    """Convert a framework's array, or a nested list of numbers or arrays, to a NumPy array of real numbers.

    Gradients are dropped and device memory is copied. Raises TypeError unless it is numeric, and ValueError
    for rows of unequal length; ``what`` is its name in the message.
    """
    try:
        numbers = np.asarray(_convert(array))
    except ValueError:
        raise ValueError(message(what, "rows of unequal length", "rows of one length")) from None
    if numbers.dtype.kind not in "biuf":
        got = f"{type(array).__name__} of dtype {numbers.dtype}"
        raise TypeError(message(what, got, "an array of real numbers"))
    return numbers


def _convert(array: Any) -> Any:
    if isinstance(array, (list, tuple)):
        return [_convert(part) for part in array]
    if hasattr(array, "asnumpy"):  # MXNet
        return array.asnumpy()
    if "bfloat16" in str(getattr(array, "dtype", "")):  # NumPy has none
        if hasattr(array, "float"):  # PyTorch
            array = array.float()
        else:
            array = (array if hasattr(array, "detach") else np.asarray(array)).astype("float32")
    if hasattr(array, "detach"):  # PyTorch, PaddlePaddle
        return array.detach().cpu().numpy()
    return array
