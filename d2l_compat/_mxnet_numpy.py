"""What MXNet 1.9.1, of before NumPy 2, needs in order to work on today's NumPy.

While MXNet is imported it looks up names that NumPy has removed. They are lent to NumPy for that
long; afterwards NumPy is as it was. What MXNet looks up later, when it is used, it finds in a
copy of NumPy's namespace that only MXNet's own modules hold.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np


def _of_finance(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{name}: gone from NumPy since 1.20; it is in numpy-financial")

    function.__name__ = name
    return function


# What MXNet looks up, and what it then gets. Grouped by the NumPy that removed it.
REMOVED: dict[str, Any] = {
    # 1.20: they could be looked up until 2.0, but no longer called.
    **{name: _of_finance(name) for name in ("mirr", "npv", "pmt", "ppmt", "pv", "rate")},
    # 1.24: Python's own types. 2.0 brought a ``bool`` back.
    "bool": np.bool_,
    "int": int,
    # 2.0: constants, functions with a better name, and the strings of Python 2.
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
    # 2.4: functions that 2.0 gave a better name.
    "in1d": lambda *args, **kwargs: np.isin(*args, **kwargs).reshape(-1),
    "trapz": getattr(np, "trapezoid", None),
}


@contextmanager
def removed_names() -> Iterator[None]:
    """In here MXNet can be imported: NumPy has the ``REMOVED`` names that it lacked."""
    lent = {name: value for name, value in REMOVED.items() if name not in vars(np)}
    vars(np).update(lent)
    try:
        with warnings.catch_warnings():
            # MXNet compares versions with what Python 3.12 dropped.
            warnings.filterwarnings("ignore", ".*distutils", DeprecationWarning)
            yield
        _settle_mxnet()
    finally:
        for name in lent:
            delattr(np, name)


def _settle_mxnet() -> None:
    """Give MXNet's modules a NumPy of their own: a copy of this one as it is now."""
    own = ModuleType(np.__name__, np.__doc__)
    vars(own).update(vars(np))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "mxnet":
            names = vars(module)
            names.update({name: own for name, value in names.items() if value is np})
            if name in ("mxnet._ctypes.ndarray", "mxnet._ctypes.symbol"):
                # They hand arguments to the engine as text, in which since NumPy 2 a shape may
                # be "(4, np.int64(4))". So their str is one that writes it as before.
                names["str"] = _text


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = type(value)(x.item() if isinstance(x, np.generic) else x for x in value)
    return str(value)
