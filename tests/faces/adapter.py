"""How the shared tests drive each face: NumPy goes in and comes out.

Every framework's ``adapter`` has the same names:

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
``build(name, *args)``, ``call(name, *args)``
    a layer of the face behind :class:`AnyLayer`, and what a function of the face gives
``FORMS``, ``NORM_EPSILON``
    arguments for layers of 8 dimensions, 2 heads, 16 hidden units, 7 words, 2 blocks and no
    dropout, in the short and the long form (where there is but one, the same twice); and what
    layer normalization adds to the variance
``plain(x)``
    tensors, also in tuples and lists, as NumPy arrays; devices as what equals another's
``fit_classifier(X, Y, lr, epochs, clip, d2l, start)``
    a linear ``Classifier`` of 3 classes, trained on all rows as one batch: its parameters before
    and after (weight, bias), and what its board has drawn; of another ``d2l``, or from a start
``classifier(name)``
    a ``Classifier``'s ``loss`` or ``accuracy``, to be called with logits and labels as they are
``sequence_loss(Y_hat, Y, tgt_pad)``
    what ``Seq2Seq.loss`` makes of logits and labels: the mean, and a loss each
``with_trainer``, ``with_functions``
    those of its ``translator``
``parameter_shapes(layer)``
    of a multi-head layer, under the names in ``weights``
``lesson_projections(names, layer)``
    the weights of ``attention`` (or another layer) among the lesson's variables
``lesson_encoding(layer, X, offset, training)``, ``lesson_kept(layer)``
    what a layer of the lesson's own class ``PositionalEncoding`` makes of ``X``; and the names of all that
    is trained or saved of it
``lesson_sequences(names, count, length)``
    tokens and labels that the lesson's function draws
``lesson_reader(names, kind)``
    the reader among the lesson's variables, or a new one of this kind: its weights, which are
    embedding, W_q, W_k, W_v, W_o, W_1, b_1, W_2, b_2 and perhaps P, and a function from tokens to answers
``lesson_learned_table(names)``
    of a reader with a learned table of positions: the table, before and after training
``lesson_blocks(names)``
    the weights of each layer among the lesson's ``blocks``
``lesson_relative(names)``
    W_q, W_k and W_v of ``relative``, and its table of vectors, a row for each distance
"""

from typing import Any, Protocol

from numpy.typing import NDArray

from tests.reference import Gates


class Layer(Protocol):
    """A layer of the face. NumPy arrays are made tensors; anything else goes in as it is."""

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]: ...

    @property
    def attention_weights(self) -> NDArray[Any]:
        """Of the last call."""

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        """Of sum(direction * output), with respect to the inputs of floating-point numbers."""


class AnyLayer(Layer, Protocol):
    """Any layer. Several outputs come as a list, and as such come the weights of several blocks."""

    def randomize(self, *inputs: Any) -> None:
        """Call it once, and then draw every parameter anew, biases and scales too."""

    def parameters(self, path: str) -> dict[str, NDArray[Any]]:
        """Of a part such as ``blks.0.ffn.dense1``: weight (inputs, outputs) and perhaps bias;
        gamma and beta of a normalization; table (tokens, features) of an embedding."""

    def gates(self, path: str) -> list[Gates]:
        """Of a recurrent part, layer by layer."""
