"""The version of d2l that a program was written for, since a few calls mean different things in 0.17 and 1.0."""

import os

from d2l_compat._shared.checks import format_value, message

VARIABLE = "D2L_VERSION"
OLD_VERSION, NEW_VERSION = "0.17", "1.0"


def is_0_17() -> bool:
    """Return whether D2L_VERSION is 0.17 or 0.17.x; the default is 1.0.

    Raises ValueError for any other version.
    """
    value = os.getenv(VARIABLE) or NEW_VERSION
    version = ".".join(value.split(".")[:2])
    if version not in (OLD_VERSION, NEW_VERSION):
        need = f"'{OLD_VERSION}' or '{NEW_VERSION}'"
        raise ValueError(message(VARIABLE, format_value(value), need))
    return version == OLD_VERSION
