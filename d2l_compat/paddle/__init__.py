"""``d2l.paddle`` on today's PaddlePaddle: ``from d2l_compat import paddle as d2l``.

Attention layers and positional encodings are in ``attention``, ``additive`` and ``relative``, models built of them in
``transformer`` and ``seq2seq``, training in ``training``, data sets in ``datasets``, device helpers in ``devices``, tensor
functions in ``tensors``, the cost of layers in ``counting``. Plots are the same for every framework. What D2L's
chapters on other subjects use is in the modules that ``LAZY_MODULES`` lists.
"""

import os
import warnings
from typing import TYPE_CHECKING, Any

from d2l_compat._shared import exports
from d2l_compat._shared.require import require

# Paddle's C++ core logs a warning meant for its own developers whenever it traces a program.
# It reads this variable once, on import; 2 shows errors only, and a value that is already set stays.
os.environ.setdefault("GLOG_minloglevel", "2")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "No ccache found")  # a tool for building extensions
    require("paddle")

from d2l_compat.common import *
from d2l_compat.paddle.additive import *
from d2l_compat.paddle.attention import *
from d2l_compat.paddle.counting import *
from d2l_compat.paddle.datasets import *
from d2l_compat.paddle.devices import *
from d2l_compat.paddle.relative import *
from d2l_compat.paddle.seq2seq import *
from d2l_compat.paddle.tensors import *
from d2l_compat.paddle.training import *
from d2l_compat.paddle.transformer import *

LAZY_MODULES = (  # imported when one of their names is first used
    "bert",
    "blocks",
    "boxes",
    "classification",
    "conversion",
    "generation",
    "linear",
    "linear_attention",
    "optimization",
    "parallel",
    "pictures",
    "recurrent",
    "resnet",
    "sentences",
    "words",
)
if TYPE_CHECKING:
    from d2l_compat.paddle.bert import *
    from d2l_compat.paddle.blocks import *
    from d2l_compat.paddle.boxes import *
    from d2l_compat.paddle.classification import *
    from d2l_compat.paddle.conversion import *
    from d2l_compat.paddle.generation import *
    from d2l_compat.paddle.linear import *
    from d2l_compat.paddle.linear_attention import *
    from d2l_compat.paddle.optimization import *
    from d2l_compat.paddle.parallel import *
    from d2l_compat.paddle.pictures import *
    from d2l_compat.paddle.recurrent import *
    from d2l_compat.paddle.resnet import *
    from d2l_compat.paddle.sentences import *
    from d2l_compat.paddle.words import *


def __getattr__(name: str) -> Any:
    return exports.load_attribute(__name__, name, LAZY_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *exports.list_names(__name__, LAZY_MODULES)})
