"""Call MXNet's package alongside upstream's ``d2l.mxnet``; tests/shim/each/oracle.py explains the names."""

import re
from typing import Any

import matplotlib.pyplot as plt

# First: it makes MXNet importable.
from tests.shim.each.mxnet import language, models, recurrent
from tests.shim.each.oracle import PatchedModule, import_older

from tests.shim.each.mxnet.adapter import Layer, to_numpy  # isort: skip
import mxnet
from mxnet.gluon import nn

RECURRENT = recurrent.RECURRENT
MODELS = models
LANGUAGE = language
BATCH_DTYPE = "float32"  # MXNet's dtype for lists, from which upstream makes tensors
NOT_COMPARED: dict[str, dict[str, str]] = {"1.0.3": {}}


def import_older_upstream() -> Any:
    d2l = import_older("mxnet")
    # Matplotlib no longer reads MXNet's arrays.
    d2l.plt = PatchedModule(
        plt, contour=lambda *args, **kwargs: plt.contour(*to_numpy(args), **kwargs)
    )
    return d2l


def import_upstream() -> Any:
    from d2l import mxnet as d2l

    return d2l


UPSTREAM = {"1.0.3": import_upstream, "0.17.6": import_older_upstream}


def build_twin(ours: Layer, theirs: nn.Block, *inputs: Any) -> Layer:
    layer = Layer(theirs)
    layer.randomize(*inputs)  # sets its sizes
    our_params = ours.layer._collect_params_with_prefix()
    their_params = theirs._collect_params_with_prefix()
    assert their_params.keys() == our_params.keys()
    for name, parameter in their_params.items():
        parameter.set_data(our_params[name].data())
    return layer


seed = mxnet.random.seed


def initial_parameters(net: nn.Block, *inputs: Any) -> Any:
    if any(parameter._data is None for parameter in net.collect_params().values()):
        net.initialize()
    net(*Layer.to_tensors(inputs))
    named = net._collect_params_with_prefix()
    # Trainers sort parameters by the name that Gluon gives them, which begins with the layer's class and a number.
    arrays = {
        f"{name} {re.sub('[0-9]', '', parameter.name)}": to_numpy(parameter.data())
        for name, parameter in named.items()
    }
    # Several threads draw a large array, and its values differ from run to run.
    return {name: x if x.size < 50_000 else x.shape for name, x in arrays.items()}


def parameters(net: nn.Block) -> Any:
    return [parameter.data() for parameter in net.collect_params().values()]
