"""Call PyTorch's package alongside upstream's ``d2l.torch``; tests/shim/each/oracle.py explains the names."""

from typing import Any

import torch
from torch import nn

from tests.shim.each import oracle
from tests.shim.each.oracle import import_older
from tests.shim.each.pytorch import language, models, recurrent
from tests.shim.each.pytorch.adapter import Layer, to_numpy

LAYER_ARGS = oracle.LAYER_ARGS | {"AddNorm": (8, 0.0), "GRU": (8, 6, 2)}
OLDER_LAYER_ARGS = oracle.LONG_LAYER_ARGS
RECURRENT = recurrent.RECURRENT
MODELS = models
LANGUAGE = language
BATCH_DTYPE = "int64"
NOT_COMPARED: dict[str, dict[str, str]] = {
    "1.0.3": {"split_batch": "upstream's needs GPUs"},
    "0.17.6": {"split_batch": "upstream's needs GPUs"},
}


def import_upstream() -> Any:
    from d2l import torch as d2l

    return d2l


UPSTREAM = {"1.0.3": import_upstream, "0.17.6": lambda: import_older("torch")}


def build_twin(ours: Layer, theirs: nn.Module, *inputs: Any) -> Layer:
    layer = Layer(theirs)
    layer(*inputs)  # sets its sizes
    models.copy(ours.layer, theirs)
    return layer


def draw_xavier_parameters(function: Any) -> Any:
    torch.manual_seed(0)
    layers = nn.Linear(3, 4), nn.GRU(3, 4, 2), nn.Embedding(3, 4)
    for layer in layers:
        layer.apply(function)
    return to_numpy([parameter for layer in layers for parameter in layer.parameters()])


seed = torch.manual_seed


def initial_parameters(net: nn.Module, *inputs: Any) -> Any:
    net(*Layer.to_tensors(inputs))
    return {name: to_numpy(array) for name, array in net.state_dict().items()}


def parameters(net: nn.Module) -> Any:
    return net.parameters()
