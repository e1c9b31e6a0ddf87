"""Shuffle rows for training."""

import random

import numpy as np

from d2l_compat._shared.data.loader import Rows


def shuffle(rows: Rows) -> Rows:
    """Return ``rows`` in a random order. As in ``get_key``, the seed is drawn with Python's ``random``."""
    return np.random.default_rng(random.getrandbits(64)).permutation(rows)
