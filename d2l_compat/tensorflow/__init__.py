"""``d2l.tensorflow`` on today's TensorFlow and Keras: ``from d2l_compat import tensorflow as d2l``.

Attention layers and positional encodings are in ``attention``, ``additive`` and ``relative``, models
built of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``datasets``, device
helpers in ``devices``, tensor functions in ``tensors``, the cost of layers in ``counting``. Plots are
the same for every framework. What D2L's chapters on other subjects use is in the modules that ``LAZY_MODULES`` lists.

TensorFlow's log is suppressed unless TF_CPP_MIN_LOG_LEVEL is set: with 0 it shows, for instance,
why no GPU was found.
"""

from typing import TYPE_CHECKING, Any

from d2l_compat._shared import exports
from d2l_compat._shared.require import require
from d2l_compat.tensorflow._start import check_backend, choose_backend, suppress_log

choose_backend()
with suppress_log():
    require("tensorflow")

from d2l_compat.tensorflow._keras import keras

check_backend(keras.backend.backend())  # Keras may have been imported before

from d2l_compat.common import *
from d2l_compat.tensorflow.additive import *
from d2l_compat.tensorflow.attention import *
from d2l_compat.tensorflow.counting import *
from d2l_compat.tensorflow.datasets import *
from d2l_compat.tensorflow.devices import *
from d2l_compat.tensorflow.relative import *
from d2l_compat.tensorflow.seq2seq import *
from d2l_compat.tensorflow.tensors import *
from d2l_compat.tensorflow.training import *
from d2l_compat.tensorflow.transformer import *

LAZY_MODULES = (  # imported when one of their names is first used
    "adversarial",
    "blocks",
    "boxes",
    "classification",
    "conversion",
    "generation",
    "linear",
    "linear_attention",
    "models",
    "optimization",
    "recurrent",
    "resnet",
)
if TYPE_CHECKING:
    from d2l_compat.tensorflow.adversarial import *
    from d2l_compat.tensorflow.blocks import *
    from d2l_compat.tensorflow.boxes import *
    from d2l_compat.tensorflow.classification import *
    from d2l_compat.tensorflow.conversion import *
    from d2l_compat.tensorflow.generation import *
    from d2l_compat.tensorflow.linear import *
    from d2l_compat.tensorflow.linear_attention import *
    from d2l_compat.tensorflow.models import *
    from d2l_compat.tensorflow.optimization import *
    from d2l_compat.tensorflow.recurrent import *
    from d2l_compat.tensorflow.resnet import *


def __getattr__(name: str) -> Any:
    return exports.load_attribute(__name__, name, LAZY_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *exports.list_names(__name__, LAZY_MODULES)})
