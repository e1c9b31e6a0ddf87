"""``d2l.mxnet`` on MXNet 1.9.1: ``from d2l_compat import mxnet as d2l``.

Attention layers and the positional encoding are in ``attention`` and ``additive``, what is made
of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``data``, device
helpers in ``devices``, tensor functions in ``tensors``; plots are the same for every framework.

On NumPy 2 MXNet can be imported once this has been, and not before. All of it works on MXNet's
NumPy arrays, ``mxnet.np.ndarray``, so importing it turns them on: ``npx.set_np()``.
"""

from typing import Any

from d2l_compat._mxnet_numpy import removed_names
from d2l_compat._shared.require import require

with removed_names():
    require("mxnet")

from mxnet import npx

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.mxnet import tensors
from d2l_compat.mxnet.additive import AdditiveAttention
from d2l_compat.mxnet.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
    transpose_output,
    transpose_qkv,
)
from d2l_compat.mxnet.data import FashionMNIST, MTFraEng, load_data_nmt
from d2l_compat.mxnet.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.mxnet.seq2seq import (
    GRU,
    AttentionDecoder,
    Decoder,
    Encoder,
    EncoderDecoder,
    Seq2Seq,
    Seq2SeqEncoder,
    predict_seq2seq,
    sequence_mask,
    train_seq2seq,
)
from d2l_compat.mxnet.tensors import *
from d2l_compat.mxnet.training import Classifier, DataModule, Module, Trainer
from d2l_compat.mxnet.transformer import (
    AddNorm,
    EncoderBlock,
    PositionWiseFFN,
    TransformerEncoder,
    TransformerEncoderBlock,
)

npx.set_np()

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
    "load_data_nmt",
    "masked_softmax",
    "num_gpus",
    "predict_seq2seq",
    "sequence_mask",
    "train_seq2seq",
    "transpose_output",
    "transpose_qkv",
    "try_all_gpus",
    "try_gpu",
]
__all__ += common.__all__ + tensors.__all__


def __getattr__(name: str) -> Any:
    return common.attribute(__name__, name)
