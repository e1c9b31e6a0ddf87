"""Call PaddlePaddle's package alongside ``d2l.paddle`` of 0.17.6; tests/shim/each/oracle.py explains the names.

Upstream was written for Paddle 2. What has changed since is replaced here.
"""

import sys
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import paddle
from paddle import nn

from tests.shim.each import oracle
from tests.shim.each.oracle import PatchedModule, import_older
from tests.shim.each.paddle import language, recurrent
from tests.shim.each.paddle.adapter import Layer, tensor, to_numpy

LAYER_ARGS = oracle.LAYER_ARGS | oracle.LONG_LAYER_ARGS | {"AddNorm": (8, 0.0)}
RECURRENT = recurrent.RECURRENT
LANGUAGE = language
MODELS = sys.modules[__name__]
BATCH_DTYPE = "int64"
NOT_COMPARED: dict[str, dict[str, str]] = {
    "0.17.6": {
        "split_batch": "upstream's calls a missing function",
        "try_all_gpus": "without a GPU it returns a device, not a list",
    }
}


def _make_callable(initializer: Any) -> Any:
    """Let an initializer's class be called with the weight itself."""

    def initialize(weight: Any = None, **kwargs: Any) -> Any:
        return initializer(**kwargs) if weight is None else initializer(**kwargs)(weight)

    return initialize


def import_upstream() -> ModuleType:
    d2l = import_older("paddle")
    if not isinstance(d2l.paddle, PatchedModule):
        # Upstream makes initializers but does not apply them. They are applied here, to compare what follows.
        initializer = PatchedModule(
            nn.initializer,
            Normal=_make_callable(nn.initializer.Normal),
            XavierUniform=_make_callable(nn.initializer.XavierUniform),
        )
        d2l.nn = PatchedModule(nn, initializer=initializer)
        d2l.int = lambda x=0: int(np.asarray(x).item())  # NumPy 2 rejects an array of one number
        d2l.paddle = PatchedModule(
            paddle,
            nn=d2l.nn,
            # Paddle 3 does not multiply integers by a loss.
            ones_like=lambda x: paddle.ones(x.shape),
            # Upstream chooses a GPU.
            set_device=lambda name: None,
        )
        mask = d2l.sequence_mask
        # Paddle 3 does not compare floats with integers.
        d2l.sequence_mask = lambda X, valid_len, value=0: mask(
            X, valid_len.astype("float32"), value
        )
        # Matplotlib no longer reads Paddle's tensors.
        d2l.plt = PatchedModule(
            plt, contour=lambda *args, **kwargs: plt.contour(*to_numpy(args), **kwargs)
        )
    return d2l


UPSTREAM = {"0.17.6": import_upstream}


def build_twin(ours: Layer, theirs: nn.Layer, *inputs: Any) -> Layer:
    copy(ours.layer, theirs)
    return Layer(theirs)


def copy(ours: nn.Layer, theirs: nn.Layer) -> None:
    assert theirs.set_state_dict(ours.state_dict()) == ([], [])


def predict(model: nn.Layer, X: Any, training: bool = False) -> Any:
    model.train() if training else model.eval()
    return to_numpy(model(tensor(X)))


seed = paddle.seed


def initial_parameters(net: nn.Layer, *inputs: Any) -> Any:
    net(*Layer.to_tensors(inputs))
    return {name: to_numpy(array) for name, array in net.state_dict().items()}


def parameters(net: nn.Layer) -> Any:
    return net.parameters()
