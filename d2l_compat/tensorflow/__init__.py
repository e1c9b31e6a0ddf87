"""``d2l.tensorflow`` on today's TensorFlow and Keras: ``from d2l_compat import tensorflow as d2l``.

Attention layers and the positional encoding are in ``attention``, device helpers in
``devices``, tensor functions in ``tensors``; plots are the same for every framework.

TensorFlow's log is turned off, unless TF_CPP_MIN_LOG_LEVEL says otherwise: with 0 it tells, for
instance, why it does not find a GPU.
"""

from typing import Any

from d2l_compat._frameworks import require
from d2l_compat.tensorflow._start import check_backend, choose_backend, quietly

choose_backend()
with quietly():
    require("tensorflow")

import keras

check_backend(keras.config.backend())  # it may have been imported before

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.tensorflow import tensors
from d2l_compat.tensorflow.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
)
from d2l_compat.tensorflow.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.tensorflow.tensors import *

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
