"""``d2l.mxnet`` on MXNet 1.9.1: ``from d2l_compat import mxnet as d2l``.

Attention layers and positional encodings are in ``attention``, ``additive`` and ``relative``, models
built of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``datasets``, device
helpers in ``devices``, tensor functions in ``tensors``, the cost of layers in ``counting``. Plots are
the same for every framework. What D2L's chapters on other subjects use is in the modules that ``LAZY_MODULES`` lists.

On NumPy 2, import this package before MXNet; with ``d2l_compat.alias``, the order does not matter. All
functions take MXNet's NumPy arrays, ``mxnet.np.ndarray``, so importing the package activates them:
``npx.set_np()``.
"""

from typing import TYPE_CHECKING, Any

from d2l_compat._mxnet_numpy import add_removed_names
from d2l_compat._shared import exports
from d2l_compat._shared.require import require

with add_removed_names():
    require("mxnet")

from mxnet import npx

from d2l_compat.common import *
from d2l_compat.mxnet.additive import *
from d2l_compat.mxnet.attention import *
from d2l_compat.mxnet.counting import *
from d2l_compat.mxnet.datasets import *
from d2l_compat.mxnet.devices import *
from d2l_compat.mxnet.relative import *
from d2l_compat.mxnet.seq2seq import *
from d2l_compat.mxnet.tensors import *
from d2l_compat.mxnet.training import *
from d2l_compat.mxnet.transformer import *

npx.set_np()

LAZY_MODULES = (  # imported when one of their names is first used
    "adversarial",
    "bert",
    "blocks",
    "boxes",
    "classification",
    "conversion",
    "generation",
    "linear",
    "linear_attention",
    "models",
    "optimization",
    "parallel",
    "pictures",
    "recommender",
    "recurrent",
    "resnet",
    "sentences",
    "words",
)
if TYPE_CHECKING:
    from d2l_compat.mxnet.adversarial import *
    from d2l_compat.mxnet.bert import *
    from d2l_compat.mxnet.blocks import *
    from d2l_compat.mxnet.boxes import *
    from d2l_compat.mxnet.classification import *
    from d2l_compat.mxnet.conversion import *
    from d2l_compat.mxnet.generation import *
    from d2l_compat.mxnet.linear import *
    from d2l_compat.mxnet.linear_attention import *
    from d2l_compat.mxnet.models import *
    from d2l_compat.mxnet.optimization import *
    from d2l_compat.mxnet.parallel import *
    from d2l_compat.mxnet.pictures import *
    from d2l_compat.mxnet.recommender import *
    from d2l_compat.mxnet.recurrent import *
    from d2l_compat.mxnet.resnet import *
    from d2l_compat.mxnet.sentences import *
    from d2l_compat.mxnet.words import *


def __getattr__(name: str) -> Any:
    return exports.load_attribute(__name__, name, LAZY_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *exports.list_names(__name__, LAZY_MODULES)})
