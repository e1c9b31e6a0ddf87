"""PaddlePaddle's face beside ``d2l.paddle`` of 0.17.6; tests/shim/each/oracle.py says what each name is for.

Upstream was written for Paddle 2. What is another since is put in its place.
"""

import sys
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import paddle
from paddle import nn

from tests.shim.each import oracle
from tests.shim.each.oracle import ModuleWith, older
from tests.shim.each.paddle import language, recurrent
from tests.shim.each.paddle.adapter import Layer, plain, tensor

FORMS = oracle.FORMS | oracle.LONG_FORMS | {"AddNorm": (8, 0.0)}
READER = recurrent.READER  # who writes language models
LANGUAGE = language  # and networks that read sentences
MODELS = sys.modules[__name__]
INTEGERS = "int64"
NOT_COMPARED: dict[str, dict[str, str]] = {
    "0.17.6": {
        "split_batch": "upstream's calls a function that is not there",
        "try_all_gpus": "of no GPU it makes a device, not a list",
    }
}


def _of(initializer: Any) -> Any:
    """It may be given the weight itself."""

    def initialized(weight: Any = None, **kwargs: Any) -> Any:
        made = initializer(**kwargs)
        return made if weight is None else made(weight)

    return initialized


def upstream() -> ModuleType:
    d2l = older("paddle")
    if not isinstance(d2l.paddle, ModuleWith):
        # It makes initial weights, but does not use them: here it does, so that what follows can be compared.
        initializer = ModuleWith(
            nn.initializer,
            Normal=_of(nn.initializer.Normal),
            XavierUniform=_of(nn.initializer.XavierUniform),
        )
        d2l.nn = ModuleWith(nn, initializer=initializer)
        d2l.int = lambda x=0: int(np.asarray(x).item())  # NumPy 2 takes no array of one number
        d2l.paddle = ModuleWith(
            paddle,
            nn=d2l.nn,
            # Of integers: Paddle 3 multiplies none by a loss.
            ones_like=lambda x: paddle.ones(x.shape),
            # Which upstream takes to be a GPU.
            set_device=lambda name: None,
        )
        mask = d2l.sequence_mask
        # Paddle 3 compares no float with an integer.
        d2l.sequence_mask = lambda X, valid_len, value=0: mask(
            X, valid_len.astype("float32"), value
        )
        # Matplotlib reads Paddle's tensors no more.
        d2l.plt = ModuleWith(
            plt, contour=lambda *args, **kwargs: plt.contour(*plain(args), **kwargs)
        )
    return d2l


UPSTREAM = {"0.17.6": upstream}


def twin(ours: Layer, theirs: nn.Layer, *inputs: Any) -> Layer:
    copy(ours.layer, theirs)
    return Layer(theirs)


def copy(ours: nn.Layer, theirs: nn.Layer) -> None:
    """The names of an encoder's recurrent part are longer in ours."""
    state = {name.replace("rnn.rnn.", "rnn."): array for name, array in ours.state_dict().items()}
    assert theirs.set_state_dict(state) == ([], [])


def answers(model: nn.Layer, X: Any, training: bool = False) -> Any:
    model.train() if training else model.eval()
    return plain(model(tensor(X)))


def parameters(net: nn.Layer) -> Any:
    return net.parameters()
