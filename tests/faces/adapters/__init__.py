"""How the shared tests drive each face: NumPy goes in and comes out.

Every module here has the same names:

``d2l``
    the face
``FUSED``, ``CASTS``, ``ACCEPTS_NUMPY``
    whether attention is one product (a fused kernel); the dtype that
    comes of float64 input and float32 weights, or False where it is refused; whether it takes
    NumPy arrays as they are
``tensor(x)``
    a NumPy array as the framework's tensor
``masked_softmax(X, valid_lens)``, ``dot_product(dropout)``, ``multi_head(*args, weights, dtype)``,
``encoding(*args, dtype)``
    the face's own, behind :class:`Layer`; ``weights`` has W_q, W_k, W_v, W_o of shape (inputs,
    outputs) and perhaps b_q, b_k, b_v, b_o
``parameter_shapes(layer)``
    of a multi-head layer, under the names in ``weights``
``lesson_projections(names)``
    the weights of ``attention`` among the lesson's variables
``lesson_encoding(layer, X, offset)``
    what a layer of the lesson's own class ``PositionalEncoding`` makes of ``X``
"""

from typing import Any, Protocol

from numpy.typing import NDArray


class Layer(Protocol):
    """A layer of the face. NumPy arrays are made tensors; anything else goes in as it is."""

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]: ...

    @property
    def attention_weights(self) -> NDArray[Any]:
        """Of the last call."""

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        """Of sum(direction * output), with respect to the inputs of floating-point numbers."""
