"""``d2l.torch`` on today's PyTorch: ``from d2l_compat import torch as d2l``.

Attention layers and the positional encoding are in ``attention``, device helpers in
``devices``, tensor functions in ``tensors``; plots are the same for every framework.
"""

from typing import Any

from d2l_compat._frameworks import require

require("pytorch")

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.torch import tensors
from d2l_compat.torch.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
)
from d2l_compat.torch.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.torch.tensors import *

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
