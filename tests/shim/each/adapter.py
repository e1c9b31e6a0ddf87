"""How the shared tests drive each adapter: NumPy goes in and comes out.

``tests.shim.each.FRAMEWORK.adapter`` has a subclass of :class:`Layer` and one of :class:`Adapter`, under these names.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tests.lessons.cells import first_calls
from tests.shim.each import translator
from tests.shim.each.descent import Descent
from tests.shim.reference import Gates

Arrays = dict[str, NDArray[Any]]


class Layer(ABC):
    """Any layer of a framework. NumPy arrays are made tensors; anything else goes in as it is. Several outputs
    come as a list, and as such come the weights of several blocks."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    @staticmethod
    @abstractmethod
    def tensor(x: NDArray[Any]) -> Any:
        """The framework's."""

    @staticmethod
    @abstractmethod
    def array(x: Any) -> Any:
        """A tensor as a NumPy array, a device as what equals another's, and anything else as it is."""

    @classmethod
    def given(cls, inputs: Iterable[Any]) -> list[Any]:
        return [cls.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]

    @classmethod
    def named(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        return dict(zip(kwargs, cls.given(kwargs.values()), strict=True))

    @classmethod
    def plain(cls, x: Any) -> Any:
        """Tensors, also in tuples and lists, as NumPy arrays."""
        return [*map(cls.plain, x)] if isinstance(x, (tuple, list)) else cls.array(x)

    @abstractmethod
    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any: ...

    @property
    def attention_weights(self) -> Any:
        """Of the last call."""
        return self.plain(self.layer.attention_weights)

    @property
    def P(self) -> NDArray[Any]:
        """Of a positional encoding."""
        return self.plain(self.layer.P)

    @abstractmethod
    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        """Of sum(direction * output), with respect to all that is given in floating-point numbers."""

    @abstractmethod
    def randomize(self, *inputs: Any) -> None:
        """Call it once, and then draw every parameter anew, biases and scales too."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Of all its parameters."""

    @abstractmethod
    def parameters(self, path: str) -> Arrays:
        """Of a part such as ``blks.0.ffn.dense1``: weight (inputs, outputs) and perhaps bias;
        gamma and beta of a normalization; table (tokens, features) of an embedding."""

    @abstractmethod
    def gates(self, path: str) -> list[Gates]:
        """Of a recurrent part, layer by layer."""

    def part(self, path: str) -> Any:
        part = self.layer
        for name in path.split("."):
            part = part[int(name)] if name.isdecimal() else getattr(part, name)
        return part


class Adapter(ABC):
    """A adapter, with what the tests ask of it and of the lessons' code. Here is what most frameworks do alike."""

    d2l: Any  # the face
    layer: type[Layer]
    with_trainer: Callable[..., Any] = translator.with_trainer
    with_functions: Callable[..., Any] | None = translator.with_functions
    seed: Callable[[int], object] = staticmethod(random.seed)  # of the framework's random numbers
    # Of layers that a reader writes: their base class, the method that is called, and what they are made of.
    Block: Any
    CALL = "forward"
    Embedding: Any
    Linear: Any
    # How a reader of D2L goes down a gradient by hand, where D2L has chapters on that.
    descent: Descent | None = None
    FUSED = False  # whether attention is one product, a fused kernel
    # The dtype that comes of float64 input and float32 weights; False where it is refused.
    CASTS: str | bool = False
    ACCEPTS_NUMPY = False  # as it is
    INTEGERS = "int32"  # the dtype of what counts and numbers words
    # Of tensor functions: whether `repeat` repeats the whole, and in which order `meshgrid` has its axes;
    # arguments of `normal`, and of `rand` and `randn`.
    TILES, MESHGRID = False, "xy"
    NORMAL: tuple[Any, ...] = (0.0, 1.0, (2, 3))
    RAND: tuple[Any, ...] = ((2, 3),)
    DROPS_INPUTS = False  # whether the first of recurrent layers drops, too
    NORM_EPSILON = 1e-5  # what layer normalization adds to the variance
    # Of a lesson's models: the names that the last layer may have; before their numbers, the layers
    # of a reader that has several.
    LAST, LAYERS = ("output",), "layers."
    OUTPUT = "output.0", "output.2"  # of a lesson's reader, the two linear layers in the end
    HAND = "float32"  # the dtype of the hands that a lesson turns
    NORM: tuple[Any, ...] = (8, 0.0)  # AddNorm's arguments
    FEATURES: tuple[int, ...] = (
        8,
    )  # that the long forms begin with, or nothing: they take them from the input

    @property
    def FORMS(self) -> dict[str, Any]:
        """Arguments for layers of 8 dimensions, 2 heads, 16 hidden units, 7 words, 2 blocks and no dropout,
        in the short and the long form; where there is but one, the same twice."""
        return {
            "AddNorm": self.NORM,
            "PositionWiseFFN": {"short": (16, 8), "long": (*self.FEATURES, 16, 8)},
            "TransformerEncoderBlock": {
                "short": (8, 16, 2, 0.0),
                "long": (*self.sizes(8), 16, 2, 0.0),
            },
            "TransformerEncoder": {
                "short": (7, 8, 16, 2, 2, 0.0),
                "long": (7, *self.sizes(8), 16, 2, 2, 0.0),
            },
        }

    def sizes(self, width: int) -> tuple[Any, ...]:
        """Of a block, in the long form."""
        return width, width, width, width, [width], width

    # Layers that a reader writes

    def norm(self, width: int) -> tuple[Any, ...]:
        """AddNorm's arguments for layers of this width, which some frameworks are not told."""
        return (width, 0.0) if self.NORM == (8, 0.0) else self.NORM

    def dense(self, inputs: int, outputs: int) -> Any:
        return self.Linear(inputs, outputs)

    def initialize(self, layer: Any) -> Any:
        """Give a layer its parameters, where the framework makes them only then, and return it."""
        return layer

    def is_training(self, layer: Any, training: bool | None) -> bool:
        """Whether a layer is in training, which some frameworks hand to its call."""
        return bool(layer.training)

    def first_keys(self, encoded: Any) -> list[Any]:
        """What a decoder attends to before its first step."""
        return [None]

    # Arrays

    def tensor(self, x: NDArray[Any]) -> Any:
        return self.layer.tensor(x)

    def plain(self, x: Any) -> Any:
        return self.layer.plain(x)

    # The face

    def build(self, name: str, *args: Any, **kwargs: Any) -> Layer:
        return self.layer(getattr(self.d2l, name)(*args, **kwargs))

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.plain(getattr(self.d2l, name)(*self.layer.given(args), **kwargs))

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        """A function on NumPy's arrays, which come back."""
        return self.plain(function(*self.layer.given(args)))

    def masked_softmax(self, X: Any, valid_lens: Any = None) -> NDArray[Any]:
        return self.call("masked_softmax", X, valid_lens)

    def dot_product(self, dropout: float = 0.0) -> Layer:
        return self.build("DotProductAttention", dropout)

    def relative(self) -> Layer:
        """Dot-product attention with relative positions (Shaw et al., 2018): called with a ``table`` of vectors, shape
        (distances, d), and its ``rows`` for each query and key, shape (queries, keys)."""
        products = self.products

        class Relative(self.d2l.DotProductAttention):
            def __call__(
                self, queries: Any, *others: Any, table: Any, rows: Any, **kwargs: Any
            ) -> Any:
                bias = products(queries, table, rows) / math.sqrt(queries.shape[-1])
                return super().__call__(queries, *others, score_bias=bias, **kwargs)

        return self.layer(Relative(0.0))

    @abstractmethod
    def products(self, queries: Any, table: Any, rows: Any) -> Any:
        """The framework's dot products of each query, shape (batch, queries, d), with the table's row for each key:
        shape (batch, queries, keys). Gradients go through them."""

    @abstractmethod
    def multi_head(
        self, *args: Any, weights: Arrays | None = None, dtype: str = "float64", **kwargs: Any
    ) -> Layer:
        """``weights`` has W_q, W_k, W_v, W_o of shape (inputs, outputs) and perhaps b_q, b_k, b_v, b_o."""

    def parameter_shapes(self, layer: Layer) -> dict[str, tuple[int, ...]]:
        """Of a multi-head layer, under the names in ``weights``."""
        kinds = {"weight": "W", "bias": "b"}
        shapes = {
            f"{kinds[kind]}_{role}": x.shape
            for role in "qkvo"
            for kind, x in layer.parameters(f"W_{role}").items()
        }
        assert len(shapes) == len(layer.names)  # it has no others
        return shapes

    @abstractmethod
    def encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer: ...

    @abstractmethod
    def rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer: ...

    # Training

    @abstractmethod
    def linear(self, inputs: int, start: Arrays | None) -> Any:
        """A linear layer with 3 outputs; it may start from this weight and bias."""

    @abstractmethod
    def nothing(self) -> Any:
        """A layer that is never called."""

    def labels(self, Y: NDArray[Any]) -> Any:
        return self.tensor(Y)

    def fit_classifier(
        self,
        X: NDArray[Any],
        Y: NDArray[Any],
        lr: float,
        epochs: int,
        clip: float,
        d2l: Any = None,
        start: Arrays | None = None,
    ) -> tuple[Arrays, Arrays, dict[str, Any]]:
        """A linear ``Classifier`` of 3 classes, trained on all rows as one batch: its parameters before
        and after (weight, bias), and what its board has drawn; of another ``d2l``, or from a start."""
        d2l = d2l or self.d2l
        net = self.linear(X.shape[1], start)

        class Linear(d2l.Classifier):
            def __init__(self, lr: float) -> None:
                super().__init__()
                self.save_hyperparameters()
                self.net = net

        model = Linear(lr)
        built = self.layer(model)
        before = {name: array.copy() for name, array in built.parameters("net").items()}
        rows = self.rows(d2l, self.tensor(X), self.labels(Y))
        d2l.Trainer(max_epochs=epochs, gradient_clip_val=clip).fit(model, rows)
        return before, built.parameters("net"), model.board.data

    def rows(self, d2l: Any, *arrays: Any) -> Any:
        """All of them in one batch."""

        class Rows(d2l.DataModule):
            def __init__(self) -> None:
                super().__init__()
                self.arrays, self.batch_size = arrays, len(arrays[0])

            def get_dataloader(self, train: bool) -> Any:
                return self.get_tensorloader(self.arrays, train)

        return Rows()

    def classifier(self, name: str) -> Any:
        """A ``Classifier``'s ``loss`` or ``accuracy``, to be called with logits and labels as they are."""
        return getattr(self.d2l.Classifier(), name)

    def sequence_loss(
        self, Y_hat: NDArray[Any], Y: NDArray[Any], tgt_pad: int
    ) -> list[NDArray[Any]]:
        """What ``Seq2Seq.loss`` makes of logits and labels: the mean, and a loss each."""
        model = self.d2l.Seq2Seq(self.nothing(), self.nothing(), tgt_pad, 0.1)
        given = self.tensor(Y_hat), self.tensor(Y)
        return self.plain([model.loss(*given), model.loss(*given, averaged=False)])

    def own_causal(self, *inputs: NDArray[Any]) -> NDArray[Any] | None:
        """What the framework's own causal attention makes of queries, keys and values, where a lesson speaks of it;
        all are of shape (batch, heads, n, width)."""
        return None

    # The lessons' variables, ``names``

    def projections(self, layer: Any, roles: str = "qkvo") -> Arrays:
        """W_q, W_k, W_v, W_o, or some of them."""
        its = self.layer(layer)
        return {f"W_{role}": its.parameters(f"W_{role}")["weight"] for role in roles}

    def lesson_projections(self, names: dict[str, Any], layer: str = "attention") -> Arrays:
        return self.projections(names[layer])

    def lesson_encoding(
        self, layer: Any, X: NDArray[Any], offset: int = 0, training: bool = False
    ) -> NDArray[Any]:
        """What a layer of the lesson's own class ``PositionalEncoding`` makes of ``X``."""
        return self.layer(layer)(X, offset=offset, training=training)

    def lesson_new_encoding(self, names: dict[str, Any], *args: Any, max_len: int) -> Any:
        """A layer of the lesson's own class ``PositionalEncoding``."""
        return names["PositionalEncoding"](*args, max_len=max_len)

    def lesson_turned(self, names: dict[str, Any], X: NDArray[Any]) -> NDArray[Any]:
        """What the lesson's rotary attention makes of queries or keys."""
        return np.asarray(self.plain(names["RotaryAttention"](0).rotate(self.tensor(X))))

    def lesson_relative_scores(self, names: dict[str, Any], X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.plain(names["relative"].scores(self.tensor(X))))

    def lesson_relative_output(self, names: dict[str, Any], X: Any) -> Any:
        return names["relative"](X)

    def lesson_kept(self, layer: Any) -> list[str]:
        """The names of all that is trained or saved of it."""
        return self.layer(layer).names

    def lesson_drawn(self, names: dict[str, Any], function: str, *args: Any) -> list[NDArray[Any]]:
        """What the lesson's function of this name draws at random."""
        return self.plain(names[function](*args))

    def lesson_each(
        self, names: dict[str, Any], function: str, arguments: list[tuple[Any, ...]]
    ) -> list[Any]:
        """What the lesson's function of this name makes of each of these arguments."""
        return [names[function](*args) for args in arguments]

    def lesson_error(
        self, names: dict[str, Any], width: NDArray[Any], without_itself: bool
    ) -> NDArray[Any]:
        """The error of the curve through the lesson's points ``x`` and ``y``."""
        given = self.tensor(width), names["x"], names["y"], without_itself
        return self.plain(names["error"](*given))

    def lesson_question(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        """Letters, their numbers, and the pairs of letters asked for: of what a map is drawn of."""
        return [self.plain(names[name]) for name in ("letters", "numbers", "asked")]

    def new_reader(self, names: dict[str, Any], kind: str) -> Any:
        """With its parameters, which may take their sizes from the first input."""
        reader = names["readers"][kind]()
        reader(self.tensor(np.zeros((1, 8), "int64")))
        return reader

    def lesson_reader(
        self, names: dict[str, Any], kind: str = ""
    ) -> tuple[Arrays, Callable[[NDArray[Any]], NDArray[Any]]]:
        """The reader, or a new one of this kind: its weights, which are embedding, W_q, W_k, W_v, W_o, W_1, b_1,
        W_2, b_2 and perhaps P, and a function from tokens to answers."""
        reader = self.new_reader(names, kind) if kind else names["reader"]
        its = self.layer(reader)
        weights = {"embedding": its.parameters("embedding")["table"]}
        for number, path in enumerate(self.OUTPUT, 1):
            dense = its.parameters(path)
            weights |= {f"W_{number}": dense["weight"], f"b_{number}": dense["bias"]}
        if kind == "learned":
            weights["P"] = its.parameters("positions.P")["table"]
        return weights | self.projections(reader.attention), its

    def lesson_learned_table(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        """Of a reader with a learned table of positions: the table, before and after some steps of training."""
        train, readers, before = names["train"], [], []

        def table(reader: Any) -> NDArray[Any]:
            return self.layer(reader).parameters("positions.P")["table"].copy()

        def make_reader() -> Any:
            readers.append(self.new_reader(names, "learned"))
            before.append(table(readers[0]))
            return readers[0]

        def run(draw_sequences: Callable[..., Any]) -> None:
            with patch.dict(train.__globals__, draw_sequences=draw_sequences):
                train(make_reader, 0)

        first_calls(run, names["draw_sequences"])
        return [*before, table(readers[0])]

    def lesson_blocks(self, names: dict[str, Any]) -> list[Arrays]:
        """The weights of each layer among ``blocks``."""
        return [self.projections(block) for block in names["blocks"]]

    def lesson_relative(self, names: dict[str, Any]) -> Arrays:
        """W_q, W_k and W_v of ``relative``, and its table of vectors, a row for each distance."""
        table = self.layer(names["relative"]).parameters("table")["table"]
        return self.projections(names["relative"], "qkv") | {"table": table}

    def lesson_test(self, examples: Any) -> list[NDArray[Any]]:
        """What a lesson has drawn to test its models on."""
        return self.plain([*examples])

    def lesson_weights(
        self, model: Any, tables: Iterable[str], matrices: Iterable[str] = ()
    ) -> Arrays:
        """A model's tables and matrices, each by the last part of its path, and its last layer as output and bias."""
        its = self.layer(model).parameters
        last = its(next(name for name in self.LAST if hasattr(model, name)))
        return {
            **{name: its(name)["table"] for name in tables},
            **{path.rpartition(".")[2]: its(path)["weight"] for path in matrices},
            "output": last["weight"],
            "bias": last["bias"],
        }

    def lesson_layers(
        self, model: Any, count: int, tables: tuple[str, ...] = ("token", "place")
    ) -> tuple[Arrays, list[Arrays]]:
        """Of a model of so many layers: its tables, output and bias; and the projections of each layer."""
        its = self.layer(model).parameters
        layers = [
            {f"W_{role}": its(f"{self.LAYERS}{i}.W_{role}")["weight"] for role in "qkvo"}
            for i in range(count)
        ]
        return self.lesson_weights(model, tables), layers

    def lesson_finder(self, model: Any) -> Arrays:
        """Of a model that finds what a letter had last: also what its scheme has learned: vectors, a row for each
        distance, or numbers, one for each bucket."""
        its = self.lesson_weights(model, ("letter", "digit"), ("W_q", "W_k", "W_v"))
        return its | self.lesson_scheme(model)

    def lesson_bias(self, model: Any, distances: NDArray[Any]) -> NDArray[Any]:
        """What a model's scheme adds to the scores at these distances, whatever the queries."""
        return np.asarray(self.plain(model.scheme.bias(None, self.tensor(distances))))

    def lesson_scheme(self, model: Any) -> Arrays:
        """What a model's scheme of positions has learned."""
        scheme = model.scheme
        if hasattr(scheme, "vectors"):
            return {"vectors": self.layer(scheme).parameters("vectors")["table"]}
        return {"numbers": self.lesson_numbers(scheme)} if hasattr(scheme, "numbers") else {}

    def lesson_numbers(self, scheme: Any) -> NDArray[Any]:
        return np.asarray(self.plain(scheme.numbers))
