"""How test_oracle.py drives upstream's d2l beside the face.

A framework's ``oracle`` has these names. MLX has none: upstream has no such face.

``UPSTREAM``
    version to a function that gives its module; ImportError where it cannot be imported. Only 1.0.3
    has JAX, only 0.17.6 PaddlePaddle
``FORMS``
    of each layer, arguments that upstream takes as well: widths of 8, 2 heads, 16 hidden units, 7
    words, no dropout
``OLDER_FORMS``
    those that 0.17.6 takes, where they are others
``twin(ours, theirs, *inputs)``
    upstream's layer behind the adapter's ``Layer``, with the parameters of ours
``call(function, *args)``
    a function of either, on NumPy arrays
``TENSOR_CALLS``
    arguments of tensor functions whose signatures are the framework's own; a dict at the end is keywords
``NOT_COMPARED``
    version to name to reason, of this framework
``run_interface(Class)``
    make one and call it
``translate(d2l, name, tokens, lens)``
    a model ``name`` (EncoderDecoder, Seq2Seq) of fixed parameters: its output, and what its
    ``predict_step`` gives
``xavier(function)``
    the parameters after ``init_seq2seq``, from a fixed seed
``MODELS``
    what copies a model's parameters to upstream's, and what it answers
``seed()``
    draw the same random numbers from here on
``functions(d2l, name, vocab, batch)``
    what ``train_seq2seq`` makes of an ``EncoderDecoder`` of fixed parameters, or what
    ``predict_seq2seq`` says with it
``Pair``
    a model as ``EncoderDecoder`` of 0.17.6 is, where 1.0.3 has those functions
"""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

OLDER = Path(sys.prefix, "d2l-0.17")  # where `make` puts it


def older(face: str) -> ModuleType:
    """The module ``d2l.FACE`` of version 0.17.6, under a name of its own: that of 1.0.3 stays what it is."""
    name = f"d2l_0_17.{face}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, OLDER / "d2l" / f"{face}.py")
        if spec is None or spec.loader is None or not OLDER.exists():
            raise ImportError(f"{OLDER}: there is no d2l 0.17.6; `make env` installs it")
        sys.modules[name] = module_from_spec(spec)  # where it looks itself up
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def call(
    tensor: Callable[[Any], Any], plain: Callable[[Any], Any], function: Any, *args: Any
) -> Any:
    """What most frameworks' ``call`` is made of."""
    return plain(function(*(x if x is None else tensor(x) for x in args)))


def run_interface(X: Any, Class: Any) -> None:
    """What most frameworks' ``run_interface`` is made of."""
    layer = Class()
    if hasattr(layer, "attention_weights"):
        raise AssertionError("there are no weights yet")
    layer(X) if not hasattr(layer, "init_state") else layer.init_state(X)


class ModuleWith:
    """A module, some of whose names mean something else."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
