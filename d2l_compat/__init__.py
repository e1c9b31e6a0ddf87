"""Dive into Deep Learning's ``d2l`` package, on today's frameworks.

``from d2l_compat import torch as d2l`` gives what ``from d2l import torch as d2l`` gave.
Importing ``d2l_compat`` itself imports no framework and no matplotlib.
"""

from d2l_compat._install import install

__version__ = "0.1.0"

__all__ = ["install"]
