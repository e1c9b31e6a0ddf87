"""The order of rows in training."""

import random

import numpy as np

from d2l_compat._shared.data.loader import Rows


def shuffled(rows: Rows) -> Rows:
    """In an order drawn from Python's ``random``, as ``get_key`` draws: after ``random.seed(0)`` the same again."""
    return np.random.default_rng(random.getrandbits(64)).permutation(rows)
