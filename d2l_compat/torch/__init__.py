"""``d2l.torch`` on today's PyTorch: ``from d2l_compat import torch as d2l``.

Attention layers and the positional encoding are in ``attention`` and ``additive``, what is made
of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``data``, device
helpers in ``devices``, tensor functions in ``tensors``; plots are the same for every framework.
"""

from typing import Any

from d2l_compat._shared.require import require

require("pytorch")

from d2l_compat import common
from d2l_compat.common import *
from d2l_compat.torch import tensors
from d2l_compat.torch.additive import AdditiveAttention
from d2l_compat.torch.attention import (
    DotProductAttention,
    MultiHeadAttention,
    PositionalEncoding,
    masked_softmax,
    transpose_output,
    transpose_qkv,
)
from d2l_compat.torch.data import FashionMNIST, MTFraEng, load_data_nmt
from d2l_compat.torch.devices import cpu, gpu, num_gpus, try_all_gpus, try_gpu
from d2l_compat.torch.seq2seq import (
    GRU,
    AttentionDecoder,
    Decoder,
    Encoder,
    EncoderDecoder,
    Seq2Seq,
    Seq2SeqEncoder,
    init_seq2seq,
    predict_seq2seq,
    sequence_mask,
    train_seq2seq,
)
from d2l_compat.torch.tensors import *
from d2l_compat.torch.training import Classifier, DataModule, Module, Trainer
from d2l_compat.torch.transformer import (
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
    "init_seq2seq",
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
