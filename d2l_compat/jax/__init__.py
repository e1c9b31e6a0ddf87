"""``d2l.jax`` on today's JAX and Flax: ``from d2l_compat import jax as d2l``.

Attention layers and the positional encoding are in ``attention``, device helpers in
``devices``, array functions and ``get_key`` in ``tensors``; plots are the same for every
framework.
"""

from typing import Any

from d2l_compat._frameworks import require

require("jax")

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.jax import tensors
from d2l_compat.jax.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
)
from d2l_compat.jax.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.jax.tensors import *

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
