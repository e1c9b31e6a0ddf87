"""Make MXNet 1.9.1, which is older than NumPy 2, work on today's NumPy.

When MXNet is imported, it looks up names that NumPy has removed. NumPy has them again during the import.
Afterwards only MXNet's own modules see them, in a copy of NumPy's namespace.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np


def _financial_function(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{name}: removed from NumPy in 1.20; use numpy-financial")

    function.__name__ = name
    return function


# Replacements for the names that MXNet looks up, grouped by the version of NumPy that removed them.
REMOVED: dict[str, Any] = {
    # 1.20: until 2.0 the names existed, but calling them was an error.
    **{name: _financial_function(name) for name in ("mirr", "npv", "pmt", "ppmt", "pv", "rate")},
    # 1.24: Python's own types. 2.0 brought a ``bool`` back.
    "bool": np.bool_,
    "int": int,
    # 2.0: constants, functions that were renamed, and the strings of Python 2.
    "Inf": np.inf,
    "NAN": np.nan,
    "NINF": -np.inf,
    "NZERO": -0.0,
    "NaN": np.nan,
    "PINF": np.inf,
    "PZERO": 0.0,
    "alltrue": np.all,
    "compat": SimpleNamespace(basestring=str),
    "msort": lambda a: np.sort(a, axis=0),
    "product": np.prod,
    "round_": np.round,
    "sometrue": np.any,
    # 2.4: functions that were renamed in 2.0.
    "in1d": lambda *args, **kwargs: np.isin(*args, **kwargs).reshape(-1),
    "trapz": getattr(np, "trapezoid", None),
}


@contextmanager
def add_removed_names() -> Iterator[None]:
    """Add the ``REMOVED`` names that NumPy lacks, in a context for importing MXNet."""
    missing = {name: value for name, value in REMOVED.items() if name not in vars(np)}
    vars(np).update(missing)
    try:
        with warnings.catch_warnings():
            # MXNet compares versions with distutils, which Python 3.12 removed.
            warnings.filterwarnings("ignore", ".*distutils", DeprecationWarning)
            yield
        _patch_mxnet_numpy()
    finally:
        for name in missing:
            delattr(np, name)


def _patch_mxnet_numpy() -> None:
    """Replace NumPy in MXNet's modules by a copy that keeps the ``REMOVED`` names."""
    numpy_copy = ModuleType(np.__name__, np.__doc__)
    vars(numpy_copy).update(vars(np))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "mxnet":
            names = vars(module)
            names.update({name: numpy_copy for name, value in names.items() if value is np})
            if name in ("mxnet._ctypes.ndarray", "mxnet._ctypes.symbol"):
                # These pass arguments to the engine as text. Since NumPy 2, str may write a shape
                # as "(4, np.int64(4))", which the engine cannot read.
                names["str"] = _format_argument


def _format_argument(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = type(value)(x.item() if isinstance(x, np.generic) else x for x in value)
    return str(value)
