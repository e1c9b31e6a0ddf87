"""``d2l.jax`` on today's JAX and Flax: ``from d2l_compat import jax as d2l``.

Attention layers and positional encodings are in ``attention``, ``additive`` and ``relative``, models
built of them in ``transformer`` and ``seq2seq``, training in ``training``, data sets in ``datasets``, device
helpers in ``devices``, array functions and ``get_key`` in ``tensors``, the cost of layers in
``counting``. Plots are the same for every framework. What D2L's chapters on other subjects use is in the
modules that ``LAZY_MODULES`` lists.
"""

from typing import TYPE_CHECKING, Any

from d2l_compat._shared import exports
from d2l_compat._shared.require import require

require("jax")

from d2l_compat.common import *
from d2l_compat.jax.additive import *
from d2l_compat.jax.attention import *
from d2l_compat.jax.counting import *
from d2l_compat.jax.datasets import *
from d2l_compat.jax.devices import *
from d2l_compat.jax.relative import *
from d2l_compat.jax.seq2seq import *
from d2l_compat.jax.tensors import *
from d2l_compat.jax.training import *
from d2l_compat.jax.transformer import *

# Imported when one of their names is first used.
LAZY_MODULES = (
    "blocks",
    "conversion",
    "generation",
    "linear_attention",
    "models",
    "recurrent",
    "resnet",
)
if TYPE_CHECKING:
    from d2l_compat.jax.blocks import *
    from d2l_compat.jax.conversion import *
    from d2l_compat.jax.generation import *
    from d2l_compat.jax.linear_attention import *
    from d2l_compat.jax.models import *
    from d2l_compat.jax.recurrent import *
    from d2l_compat.jax.resnet import *


def __getattr__(name: str) -> Any:
    return exports.load_attribute(__name__, name, LAZY_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *exports.list_names(__name__, LAZY_MODULES)})
