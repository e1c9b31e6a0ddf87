"""``d2l.torch`` on today's PyTorch: ``from d2l_compat import torch as d2l``.

Attention layers and positional encodings are in ``attention``, ``additive`` and ``relative``, models built of them in
``transformer`` and ``seq2seq``, training in ``training``, data sets in ``datasets``, device helpers in ``devices``, tensor
functions in ``tensors``, the cost of layers in ``counting``. Plots are the same for every framework. What D2L's
chapters on other subjects use is in the modules that ``LAZY_MODULES`` lists.
"""

from typing import TYPE_CHECKING, Any

from d2l_compat._shared import exports
from d2l_compat._shared.require import require

require("pytorch")

from d2l_compat.common import *
from d2l_compat.torch.additive import *
from d2l_compat.torch.attention import *
from d2l_compat.torch.counting import *
from d2l_compat.torch.datasets import *
from d2l_compat.torch.devices import *
from d2l_compat.torch.relative import *
from d2l_compat.torch.seq2seq import *
from d2l_compat.torch.tensors import *
from d2l_compat.torch.training import *
from d2l_compat.torch.transformer import *

LAZY_MODULES = (  # imported when one of their names is first used
    "adversarial",
    "bert",
    "blocks",
    "boxes",
    "classification",
    "conversion",
    "generation",
    "hpo",
    "linear",
    "linear_attention",
    "models",
    "optimization",
    "parallel",
    "pictures",
    "recurrent",
    "resnet",
    "sentences",
    "words",
)
if TYPE_CHECKING:
    from d2l_compat.torch.adversarial import *
    from d2l_compat.torch.bert import *
    from d2l_compat.torch.blocks import *
    from d2l_compat.torch.boxes import *
    from d2l_compat.torch.classification import *
    from d2l_compat.torch.conversion import *
    from d2l_compat.torch.generation import *
    from d2l_compat.torch.hpo import *
    from d2l_compat.torch.linear import *
    from d2l_compat.torch.linear_attention import *
    from d2l_compat.torch.models import *
    from d2l_compat.torch.optimization import *
    from d2l_compat.torch.parallel import *
    from d2l_compat.torch.pictures import *
    from d2l_compat.torch.recurrent import *
    from d2l_compat.torch.resnet import *
    from d2l_compat.torch.sentences import *
    from d2l_compat.torch.words import *


def __getattr__(name: str) -> Any:
    return exports.load_attribute(__name__, name, LAZY_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *exports.list_names(__name__, LAZY_MODULES)})
