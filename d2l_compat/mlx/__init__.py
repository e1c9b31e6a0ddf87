"""D2L's names on MLX, which D2L itself does not support: ``from d2l_compat import mlx as d2l``.

They do the same as in PyTorch, but in the style of MLX: layers are ``mlx.nn.Module``s; gradients come
from ``nn.value_and_grad`` and random numbers from ``mx.random``; and nothing is computed before it is
read or evaluated with ``mx.eval``. Attention layers and positions are in ``attention``, ``additive``
and ``relative``, models made of them in ``transformer`` and ``seq2seq``, training in ``training``,
data sets in ``datasets``, device helpers in ``devices``, array functions in ``tensors``, the cost of a
layer in ``counting``; plots are the same for every framework.
"""

from typing import TYPE_CHECKING, Any

from d2l_compat._shared import exports
from d2l_compat._shared.require import require

require("mlx")

from d2l_compat.common import *
from d2l_compat.mlx.additive import *
from d2l_compat.mlx.attention import *
from d2l_compat.mlx.counting import *
from d2l_compat.mlx.datasets import *
from d2l_compat.mlx.devices import *
from d2l_compat.mlx.relative import *
from d2l_compat.mlx.seq2seq import *
from d2l_compat.mlx.tensors import *
from d2l_compat.mlx.training import *
from d2l_compat.mlx.transformer import *

LAZY_MODULES = (  # imported when one of their names is first used
    "blocks",
    "conversion",
    "generation",
    "linear_attention",
)
if TYPE_CHECKING:
    from d2l_compat.mlx.blocks import *
    from d2l_compat.mlx.conversion import *
    from d2l_compat.mlx.generation import *
    from d2l_compat.mlx.linear_attention import *


def __getattr__(name: str) -> Any:
    return exports.load_attribute(__name__, name, LAZY_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *exports.list_names(__name__, LAZY_MODULES)})
