"""``d2l.jax`` on today's JAX and Flax: ``from d2l_compat import jax as d2l``.

Attention layers and the positional encoding are in ``attention`` and ``additive``, what is made
of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``data``, device
helpers in ``devices``, array functions and ``get_key`` in ``tensors``; plots are the same for
every framework.
"""

from typing import Any

from d2l_compat._shared.require import require

require("jax")

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.jax import tensors
from d2l_compat.jax.additive import AdditiveAttention
from d2l_compat.jax.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
    transpose_output,
    transpose_qkv,
)
from d2l_compat.jax.data import FashionMNIST, MTFraEng
from d2l_compat.jax.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.jax.seq2seq import (
    GRU,
    AttentionDecoder,
    Decoder,
    Encoder,
    EncoderDecoder,
    Seq2Seq,
    Seq2SeqEncoder,
    sequence_mask,
)
from d2l_compat.jax.tensors import *
from d2l_compat.jax.training import Classifier, DataModule, Module, Trainer
from d2l_compat.jax.transformer import (
    AddNorm,
    EncoderBlock,
    PositionWiseFFN,
    TransformerEncoder,
    TransformerEncoderBlock,
)

__all__ = [
    "GRU",
    "AddNorm",
    "AdditiveAttention",
    "AttentionDecoder",
    "Classifier",
    "DataModule",
    "Decoder",
    "DotProductAttention",
    "Encoder",
    "EncoderBlock",
    "EncoderDecoder",
    "FashionMNIST",
    "MTFraEng",
    "Module",
    "MultiHeadAttention",
    "PositionWiseFFN",
    "PositionalEncoding",
    "Seq2Seq",
    "Seq2SeqEncoder",
    "Trainer",
    "TransformerEncoder",
    "TransformerEncoderBlock",
    "cpu",
    "gpu",
    "masked_softmax",
    "num_gpus",
    "sequence_mask",
    "transpose_output",
    "transpose_qkv",
    "try_all_gpus",
    "try_gpu",
]
__all__ += common.__all__ + tensors.__all__


def __getattr__(name: str) -> Any:
    return common.attribute(__name__, name)
