"""Dive into Deep Learning's ``d2l`` package, on today's frameworks.

``from d2l_compat import torch as d2l`` replaces ``from d2l import torch as d2l``. Code that cannot be edited
works after ``import d2l_compat.alias`` (in Jupyter, ``%load_ext d2l_compat``), which makes ``d2l`` mean this
package. Importing ``d2l_compat`` itself imports no framework and no matplotlib.
"""

from d2l_compat._install import install

__all__ = ["install"]
__version__ = "0.1.0"


def load_ipython_extension(ipython: object) -> None:
    """Make ``d2l`` mean this package: ``%load_ext d2l_compat``."""
    from d2l_compat import alias

    alias.install()


def unload_ipython_extension(ipython: object) -> None:
    """Make ``d2l`` mean what it meant before: ``%unload_ext d2l_compat``."""
    from d2l_compat import alias

    alias.remove()
