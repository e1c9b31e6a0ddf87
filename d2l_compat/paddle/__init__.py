"""``d2l.paddle`` on today's PaddlePaddle: ``from d2l_compat import paddle as d2l``.

Attention layers and the positional encoding are in ``attention``, device helpers in
``devices``, tensor functions in ``tensors``; plots are the same for every framework.
"""

import os
import warnings
from typing import Any

from d2l_compat._frameworks import require

# Paddle's C++ core logs a warning meant for its own developers whenever it traces a program.
# It reads this once, as it is imported; 2 keeps errors, and what is set already is obeyed.
os.environ.setdefault("GLOG_minloglevel", "2")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "No ccache found")  # a tool for building extensions
    require("paddle")

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.paddle import tensors
from d2l_compat.paddle.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
)
from d2l_compat.paddle.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.paddle.tensors import *

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
