"""Dive into Deep Learning's ``d2l`` package, on today's frameworks.

``from d2l_compat import torch as d2l`` gives what ``from d2l import torch as d2l`` gave. If the code is
to stay as it is, ``import d2l_compat.alias`` (in Jupyter, ``%load_ext d2l_compat``) makes ``d2l`` mean this
package. Importing ``d2l_compat`` itself imports no framework and no matplotlib.
"""

from d2l_compat._install import install

__all__ = ["install"]
__version__ = "0.1.0"


def load_ipython_extension(ipython: object) -> None:
    """``%load_ext d2l_compat``: from now on ``d2l`` means this package."""
    from d2l_compat import alias

    alias.install()


def unload_ipython_extension(ipython: object) -> None:
    """``%unload_ext d2l_compat``: ``d2l`` means again what it meant before."""
    from d2l_compat import alias

    alias.remove()
