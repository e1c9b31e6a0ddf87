"""``d2l.tensorflow`` on today's TensorFlow and Keras: ``from d2l_compat import tensorflow as d2l``.

Attention layers and the positional encoding are in ``attention`` and ``additive``, what is made
of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``data``, device
helpers in ``devices``, tensor functions in ``tensors``; plots are the same for every framework.

TensorFlow's log is turned off, unless TF_CPP_MIN_LOG_LEVEL says otherwise: with 0 it tells, for
instance, why it does not find a GPU.
"""

from typing import Any

from d2l_compat._shared.require import require
from d2l_compat.tensorflow._start import check_backend, choose_backend, quietly

choose_backend()
with quietly():
    require("tensorflow")

import keras

check_backend(keras.config.backend())  # it may have been imported before

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.tensorflow import tensors
from d2l_compat.tensorflow.additive import AdditiveAttention
from d2l_compat.tensorflow.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
    transpose_output,
    transpose_qkv,
)
from d2l_compat.tensorflow.data import FashionMNIST, MTFraEng, load_data_nmt
from d2l_compat.tensorflow.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.tensorflow.seq2seq import (
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
from d2l_compat.tensorflow.tensors import *
from d2l_compat.tensorflow.training import Classifier, DataModule, Module, Trainer
from d2l_compat.tensorflow.transformer import (
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
