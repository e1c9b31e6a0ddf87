"""Which version of d2l a program was written for, where 0.17 and 1.0 answer the same call differently."""

import os

from d2l_compat._shared.checks import fault, format_value

VARIABLE = "D2L_VERSION"
OLDER, NEWER = "0.17", "1.0"


def is_0_17() -> bool:
    """Whether D2L_VERSION is 0.17, or any 0.17.x; without it, everything is as in 1.0.

    Raises ValueError for a version that is neither of the two.
    """
    given = os.getenv(VARIABLE) or NEWER
    version = ".".join(given.split(".")[:2])
    if version not in (OLDER, NEWER):
        raise ValueError(fault(VARIABLE, format_value(given), f"'{OLDER}' or '{NEWER}'"))
    return version == OLDER
