"""One way from any framework's array to NumPy; no framework is imported for it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import fault


def to_numpy(what: str, array: Any) -> NDArray[Any]:
    """``array``, a framework's or a (nested) list of numbers or arrays, as a real NumPy array.

    Gradients are left behind and device memory is copied. Raises TypeError for what is not
    numeric and ValueError for rows of unequal length; ``what`` names it in the message.
    """
    need = "an array of real numbers"
    try:
        numbers = np.asarray(_plain(array))
    except ValueError:
        raise ValueError(fault(what, "rows of unequal length", "rows of one length")) from None
    if numbers.dtype.kind not in "biuf":
        got = f"{type(array).__name__} of dtype {numbers.dtype}"
        raise TypeError(fault(what, got, need))
    return numbers


def _plain(array: Any) -> Any:
    if isinstance(array, (list, tuple)):
        return [_plain(part) for part in array]
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
