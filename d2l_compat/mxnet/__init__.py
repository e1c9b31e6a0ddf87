"""``d2l.mxnet`` on MXNet 1.9.1: ``from d2l_compat import mxnet as d2l``.

Attention layers and the positional encoding are in ``attention``, device helpers in
``devices``, tensor functions in ``tensors``; plots are the same for every framework.

On NumPy 2 MXNet can be imported once this has been, and not before. All of it works on MXNet's
NumPy arrays, ``mxnet.np.ndarray``, so importing it turns them on: ``npx.set_np()``.
"""

from typing import Any

from d2l_compat._frameworks import require
from d2l_compat._mxnet_numpy import removed_names

with removed_names():
    require("mxnet")

from mxnet import npx

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.mxnet import tensors
from d2l_compat.mxnet.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
)
from d2l_compat.mxnet.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.mxnet.tensors import *

npx.set_np()

__all__ = [
    "DotProductAttention",
    "MultiHeadAttention",
    "PositionalEncoding",
    "cpu",
    "gpu",
    "masked_softmax",
    "num_gpus",
    "try_all_gpus",
    "try_gpu",
]
__all__ += common.__all__ + tensors.__all__


def __getattr__(name: str) -> Any:
    return common.attribute(__name__, name)
