"""The interface through which the shared tests call each framework: NumPy arrays go in and come out.

``tests.shim.each.FRAMEWORK.adapter`` defines subclasses of :class:`Layer` and :class:`Adapter` under the same names.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from d2l_compat._shared import borrowed
from tests.lessons.cells import record_first_calls
from tests.shim.each import translator
from tests.shim.each.descent import Descent
from tests.shim.reference import Gates

Arrays = dict[str, NDArray[Any]]


class Layer(ABC):
    """A layer of a framework, called with NumPy arrays.

    Arguments of other types are passed on unchanged. Several outputs, or the weights of several blocks, are
    returned as a list.
    """

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    @staticmethod
    @abstractmethod
    def tensor(x: NDArray[Any]) -> Any:
        """Make a tensor of the framework."""

    @staticmethod
    @abstractmethod
    def array(x: Any) -> Any:
        """Return a tensor as a NumPy array, a device in a form that can be compared, anything else unchanged."""

    @classmethod
    def to_tensors(cls, inputs: Iterable[Any]) -> list[Any]:
        return [cls.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]

    @classmethod
    def kwargs_to_tensors(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        return dict(zip(kwargs, cls.to_tensors(kwargs.values()), strict=True))

    @classmethod
    def to_numpy(cls, x: Any) -> Any:
        """Convert tensors, also those in tuples and lists, to NumPy arrays."""
        return [*map(cls.to_numpy, x)] if isinstance(x, (tuple, list)) else cls.array(x)

    @abstractmethod
    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any: ...

    @property
    def attention_weights(self) -> Any:
        """The weights of the last call."""
        return self.to_numpy(self.layer.attention_weights)

    @property
    def P(self) -> NDArray[Any]:
        """The table of a positional encoding."""
        return self.to_numpy(self.layer.P)

    @abstractmethod
    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        """Return the gradients of sum(direction * output) with respect to each floating-point argument."""

    @abstractmethod
    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        """Call the layer once, then draw every parameter at random, biases and scales too."""

    @property
    @abstractmethod
    def parameter_names(self) -> list[str]:
        """The names of all parameters."""

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """How many numbers all parameters have."""

    @abstractmethod
    def parameters(self, path: str) -> Arrays:
        """Return the parameters of a part such as ``blks.0.ffn.dense1``.

        Their names are ``weight``, shape (inputs, outputs), and perhaps ``bias``; in a normalization ``gamma`` and
        ``beta``; in an embedding ``table``, shape (tokens, features).
        """

    @abstractmethod
    def gates(self, path: str) -> list[Gates]:
        """Return the gates of a recurrent part, layer by layer."""

    def part(self, path: str) -> Any:
        part = self.layer
        for name in path.split("."):
            part = part[int(name)] if name.isdecimal() else getattr(part, name)
        return part


class CachedLayer:
    """A causal attention layer with its cache, called with the next tokens."""

    def __init__(self, layer: Layer, cache: Any) -> None:
        self.layer, self.cache = layer, cache

    def __call__(self, X: NDArray[Any], valid_lens: NDArray[Any] | None = None) -> NDArray[Any]:
        return self.layer(X, valid_lens, cache=self.cache)  # type: ignore[no-any-return]

    @property
    def lengths(self) -> Any:
        return self.cache.lengths

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Copies of the keys, the values and the lengths."""
        arrays = self.cache.keys, self.cache.values, self.cache.lengths
        return [np.array(self.layer.to_numpy(x)) for x in arrays]

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes  # type: ignore[no-any-return]

    def reset(self) -> None:
        self.cache.reset()


class CachedDecoder:
    """A decoder with a cache for each block, called with the next tokens."""

    def __init__(self, layer: Layer, caches: Any) -> None:
        self.layer, self.caches = layer, caches

    def __call__(
        self, tokens: NDArray[Any], valid_lens: NDArray[Any] | None = None, **memory: Any
    ) -> NDArray[Any]:
        return self.layer(tokens, valid_lens, caches=self.caches, **memory)  # type: ignore[no-any-return]


class StatefulLayer:
    """A linear attention layer with its state, called with the next tokens."""

    def __init__(self, layer: Layer, state: Any) -> None:
        self.layer, self.state = layer, state

    def __call__(self, X: NDArray[Any], **options: Any) -> NDArray[Any]:
        return self.layer(X, state=self.state, **options)  # type: ignore[no-any-return]

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Copies of the sums."""
        return [np.array(self.layer.to_numpy(x)) for x in (self.state.kv, self.state.k)]

    @property
    def nbytes(self) -> int:
        return self.state.nbytes  # type: ignore[no-any-return]

    def reset(self) -> None:
        self.state.reset()


class Adapter(ABC):
    """The operations that tests and claims need of a framework, as most frameworks implement them."""

    d2l: Any  # the framework's package
    layer: type[Layer]
    train_with_trainer: Callable[..., Any] = translator.train_with_trainer
    train_with_functions: Callable[..., Any] | None = translator.train_with_functions
    seed: Callable[[int], object] = staticmethod(random.seed)  # seeds the framework's generator
    wait: Callable[[], object] = staticmethod(lambda: None)  # waits for background operations
    # For layers that a reader writes: their base class, the method to define, and two layers to use in them.
    Block: Any
    CALL_METHOD = "forward"
    Embedding: Any
    RMSNorm: Any = None  # the framework's layer, if it has one
    Linear: Any
    # Gradient descent by hand, if D2L has chapters on it in this framework.
    descent: Descent | None = None
    # The output's dtype for float64 input and float32 weights, or None if these are rejected.
    CAST_DTYPE: str | None = None
    ACCEPTS_NUMPY = False  # whether functions take NumPy arrays
    INTEGER_DTYPE = "int32"  # the dtype of tokens and lengths
    # Tensor functions: whether `repeat` repeats the whole tensor, the order of `meshgrid`'s axes,
    # the arguments of `normal`, and those of `rand` and `randn`.
    REPEAT_TILES = False
    MESHGRID_INDEXING = "xy"
    NORMAL_ARGS: tuple[Any, ...] = (0.0, 1.0, (2, 3))
    RAND_ARGS: tuple[Any, ...] = ((2, 3),)
    CAN_REPLACE_TYPE = True  # whether a layer's attribute may become a layer of another type
    DROPS_INPUTS = False  # whether dropout applies to the first recurrent layer's input, too
    NORM_EPSILON = 1e-5  # what layer normalization adds to the variance
    RMS_EPSILON = 1e-6  # what RMSNorm adds to the mean square
    # In a lesson's models: the possible names of the last layer, and what precedes a layer's number
    # in its path.
    OUTPUT_NAMES = ("output",)
    LAYERS_PREFIX = "layers."
    READER_OUTPUT = "output.0", "output.2"  # the last two linear layers of a lesson's ``reader``
    ADDNORM_ARGS: tuple[Any, ...] = (8, 0.0)  # AddNorm's arguments
    # The first argument of long signatures; none if layers infer it from the input.
    FEATURES_ARGS: tuple[int, ...] = (8,)

    @property
    def layer_args(self) -> dict[str, Any]:
        """The constructor arguments of each layer; if it has two signatures, those of the short and the long one.

        Layers have 8 dimensions, 2 heads, 16 hidden units, 7 words, 2 blocks and no dropout.
        """
        return {
            "AddNorm": self.ADDNORM_ARGS,
            "PositionWiseFFN": {"short": (16, 8), "long": (*self.FEATURES_ARGS, 16, 8)},
            "TransformerEncoderBlock": {
                "short": (8, 16, 2, 0.0),
                "long": (*self.block_sizes(8), 16, 2, 0.0),
            },
            "TransformerEncoder": {
                "short": (7, 8, 16, 2, 2, 0.0),
                "long": (7, *self.block_sizes(8), 16, 2, 2, 0.0),
            },
        }

    def block_sizes(self, width: int) -> tuple[Any, ...]:
        """Return the sizes that a block's long signature begins with."""
        return width, width, width, width, [width], width

    # Layers that a reader writes

    def addnorm_args(self, width: int) -> tuple[Any, ...]:
        """Return the arguments of AddNorm for layers of this width."""
        return (width, 0.0) if self.ADDNORM_ARGS == (8, 0.0) else self.ADDNORM_ARGS

    def build_dense(self, inputs: int, outputs: int) -> Any:
        return self.Linear(inputs, outputs)

    def initialize(self, layer: Any) -> Any:
        """Initialize a layer if the framework requires it, and return it."""
        return layer

    def replace_sublayers(self, layer: Any, sublayers: dict[str, Any]) -> Any:
        """Put other layers in the place of a layer's own; return the layer."""
        for name, sublayer in sublayers.items():
            setattr(layer, name, sublayer)
        return layer

    def is_training(self, layer: Any, training: bool | None) -> bool:
        """Return whether a layer is in training; some frameworks pass ``training`` to its call."""
        return bool(layer.training)

    def first_keys(self, encoded: Any) -> list[Any]:
        """Return the keys that a decoder attends to before its first step."""
        return [None]

    # Arrays

    def tensor(self, x: NDArray[Any]) -> Any:
        return self.layer.tensor(x)

    def to_numpy(self, x: Any) -> Any:
        return self.layer.to_numpy(x)

    # The package

    @property
    def exports(self) -> set[str]:
        """The package's names, without those that it borrows from other packages."""
        return {*self.d2l.__all__} - borrowed.get_paths(self.d2l.__name__).keys()

    def assert_missing(self, *names: str) -> None:
        """Check that each of these names raises the package's error for missing names."""
        for name in names:
            with pytest.raises(AttributeError, match=rf"{name}: d2l_compat\.\w+ has no such name"):
                getattr(self.d2l, name)

    def build(self, name: str, *args: Any, **kwargs: Any) -> Layer:
        return self.layer(getattr(self.d2l, name)(*args, **kwargs))

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.to_numpy(getattr(self.d2l, name)(*self.layer.to_tensors(args), **kwargs))

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function with NumPy arrays, and return NumPy arrays."""
        return self.to_numpy(function(*self.layer.to_tensors(args)))

    def masked_softmax(self, X: Any, valid_lens: Any = None) -> NDArray[Any]:
        return self.call("masked_softmax", X, valid_lens)

    def build_dot_product(self, dropout: float = 0.0) -> Layer:
        return self.build("DotProductAttention", dropout)

    @abstractmethod
    def build_multi_head(
        self, *args: Any, weights: Arrays | None = None, dtype: str = "float64", **kwargs: Any
    ) -> Layer:
        """Make the layer with ``weights`` W_q, W_k, W_v, W_o (inputs, outputs), and perhaps b_q, b_k, b_v, b_o."""

    def parameter_shapes(self, layer: Layer) -> dict[str, tuple[int, ...]]:
        """Return the shapes of a multi-head layer's parameters, named as in ``build_multi_head``."""
        kinds = {"weight": "W", "bias": "b"}
        shapes = {
            f"{kinds[kind]}_{role}": x.shape
            for role in "qkvo"
            for kind, x in layer.parameters(f"W_{role}").items()
        }
        assert len(shapes) == len(layer.parameter_names)  # there are no others
        return shapes

    @abstractmethod
    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer: ...

    @abstractmethod
    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer: ...

    @abstractmethod
    def build_causal(
        self, *args: Any, weights: Arrays | None = None, dtype: str = "float64", **kwargs: Any
    ) -> Layer:
        """Make a ``CausalSelfAttention``, perhaps with weights named as in ``build_multi_head``."""

    def make_cache(self, layer: Layer, batch_size: int, max_len: int) -> "CachedLayer":
        return CachedLayer(layer, layer.layer.make_cache(batch_size, max_len))

    def build_block(self, *args: Any, dtype: str = "float64", **options: Any) -> Layer:
        """Make a ``TransformerBlock``."""
        return self.with_dtype(self.d2l.TransformerBlock(*args, **options), dtype)

    def with_dtype(self, layer: Any, dtype: str) -> Layer:
        """Return a layer whose parameters have this dtype."""
        raise NotImplementedError

    def build_block_encoder(
        self, vocab_size: int, num_blks: int, options: dict[str, Any], **model: Any
    ) -> Layer:
        """Make a ``BlockEncoder`` in float64, of blocks of 16 features, 4 heads and a network of 24."""
        blocks = [self.d2l.TransformerBlock(16, 4, 24, **options) for _ in range(num_blks)]
        return self.with_dtype(self.d2l.BlockEncoder(vocab_size, blocks, **model), "float64")

    def build_block_decoder(
        self, vocab_size: int, num_blks: int, options: dict[str, Any], **model: Any
    ) -> Layer:
        """Make a ``BlockDecoder`` as in ``build_block_encoder``."""
        options = {"causal": True} | options
        blocks = [self.d2l.TransformerBlock(16, 4, 24, **options) for _ in range(num_blks)]
        return self.with_dtype(self.d2l.BlockDecoder(vocab_size, blocks, **model), "float64")

    def make_caches(self, layer: Layer, batch_size: int, max_len: int) -> CachedDecoder:
        return CachedDecoder(layer, layer.layer.make_caches(batch_size, max_len))

    def build_block_seq2seq(self, vocab_size: int) -> Layer:
        """Make a ``BlockSeq2Seq`` of one block in the encoder and one in the decoder."""
        d2l = self.d2l
        encoder = d2l.BlockEncoder(vocab_size, [d2l.TransformerBlock(16, 4, 24)])
        block = d2l.TransformerBlock(16, 4, 24, causal=True, cross_attention=True)
        decoder = d2l.BlockDecoder(vocab_size, [block])
        return self.layer(d2l.BlockSeq2Seq(encoder, decoder, tgt_pad=0, lr=0.01))

    def block_args(self, width: int, ffn: int, heads: int) -> tuple[Any, ...]:
        """Return the arguments of D2L's ``TransformerEncoderBlock``, without dropout."""
        return width, ffn, heads, 0.0

    def convert_weights(self, source: Layer, target: Layer) -> None:
        self.d2l.convert_weights(source.layer, target.layer)

    def predict_with_blocks(
        self, model: Layer, batch: tuple[NDArray[Any], ...], num_steps: int
    ) -> tuple[NDArray[Any], Any]:
        """Return tokens (batch, steps) and attention weights from ``BlockSeq2Seq.predict_step``."""
        tensors = tuple(map(self.tensor, batch))
        arguments = tensors, self.d2l.cpu(), num_steps, True
        tokens, weights = model.layer.predict_step(*arguments)
        return self.to_numpy(tokens), self.to_numpy(weights)

    def predict_function(self, decoder: CachedDecoder) -> Callable[[Any, Any], Any]:
        """Return the function that ``generate`` calls."""
        return lambda tokens, lens: self.tensor(decoder(self.to_numpy(tokens), self.to_numpy(lens)))

    @abstractmethod
    def build_linear_attention(
        self, *args: Any, weights: Arrays | None = None, dtype: str = "float64", **kwargs: Any
    ) -> Layer:
        """Make a ``LinearAttention``, perhaps with weights named as in ``build_multi_head``."""

    def make_state(self, layer: Layer, batch_size: int) -> "StatefulLayer":
        return StatefulLayer(layer, layer.layer.make_state(batch_size))

    # Training

    @abstractmethod
    def build_linear(self, inputs: int, start: Arrays | None) -> Any:
        """Make a linear layer with 3 outputs, perhaps with this weight and bias."""

    @abstractmethod
    def build_unused(self) -> Any:
        """Make a layer that is never called."""

    def is_shuffled(self, loader: Iterable[Any]) -> bool:
        """Return whether the labels of the first batch, its second array, differ between epochs."""
        firsts = [np.asarray(self.to_numpy(next(iter(loader))[1])) for _ in range(20)]
        return len({labels.tobytes() for labels in firsts}) > 1

    def label_tensor(self, Y: NDArray[Any]) -> Any:
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
        """Train a linear ``Classifier`` of 3 classes, of this or another ``d2l``, on all rows as one batch.

        Returns its weight and bias before and after training, and the points that its board drew.
        """
        d2l = d2l or self.d2l
        net = self.build_linear(X.shape[1], start)

        class Linear(d2l.Classifier):
            def __init__(self, lr: float) -> None:
                super().__init__()
                self.save_hyperparameters()
                self.net = net

        model = Linear(lr)
        layer = self.layer(model)
        before = {name: array.copy() for name, array in layer.parameters("net").items()}
        data = self.build_data_module(d2l, self.tensor(X), self.label_tensor(Y))
        d2l.Trainer(max_epochs=epochs, gradient_clip_val=clip).fit(model, data)
        return before, layer.parameters("net"), model.board.data

    def build_data_module(self, d2l: Any, *arrays: Any) -> Any:
        """Make a ``DataModule`` of one batch."""

        class Data(d2l.DataModule):
            def __init__(self) -> None:
                super().__init__()
                self.arrays, self.batch_size = arrays, len(arrays[0])

            def get_dataloader(self, train: bool) -> Any:
                return self.get_tensorloader(self.arrays, train)

        return Data()

    def classifier_method(self, name: str) -> Any:
        """Return a ``Classifier``'s ``loss`` or ``accuracy``, a function of logits and labels."""
        return getattr(self.d2l.Classifier(), name)

    def sequence_loss(
        self, Y_hat: NDArray[Any], Y: NDArray[Any], tgt_pad: int
    ) -> list[NDArray[Any]]:
        """Return the mean ``Seq2Seq.loss`` of these logits and labels, and the loss of each token."""
        model = self.d2l.Seq2Seq(self.build_unused(), self.build_unused(), tgt_pad, 0.1)
        batch = self.tensor(Y_hat), self.tensor(Y)
        return self.to_numpy([model.loss(*batch), model.loss(*batch, averaged=False)])

    def native_causal_attention(self, *inputs: NDArray[Any]) -> NDArray[Any] | None:
        """Return the output of the framework's own causal attention, or None if no lesson mentions it.

        Queries, keys and values have shape (batch, heads, n, width).
        """
        return None

    # The lessons; ``names`` are the variables of a cell

    def projections(self, layer: Any, roles: str = "qkvo") -> Arrays:
        """Return W_q, W_k, W_v, W_o, or some of them."""
        parameters = self.layer(layer).parameters
        return {f"W_{role}": parameters(f"W_{role}")["weight"] for role in roles}

    def lesson_projections(self, names: dict[str, Any], layer: str = "attention") -> Arrays:
        return self.projections(names[layer])

    def lesson_encode(
        self, layer: Any, X: NDArray[Any], offset: int = 0, training: bool = False
    ) -> NDArray[Any]:
        """Return the output of a layer of the lesson's own class ``PositionalEncoding`` for ``X``."""
        return self.layer(layer)(X, offset=offset, training=training)

    def lesson_new_encoding(self, names: dict[str, Any], *args: Any, max_len: int) -> Any:
        """Make a layer of the lesson's own class ``PositionalEncoding``."""
        return names["PositionalEncoding"](*args, max_len=max_len)

    def lesson_state_names(self, layer: Any) -> list[str]:
        """Return the names of everything in a layer that is trained or saved."""
        return self.layer(layer).parameter_names

    def lesson_draw(self, names: dict[str, Any], function: str, *args: Any) -> list[NDArray[Any]]:
        """Return the arrays that the lesson's function of this name draws at random."""
        return self.to_numpy(names[function](*args))

    def lesson_error(
        self, names: dict[str, Any], width: NDArray[Any], without_itself: bool
    ) -> NDArray[Any]:
        """Return the error of the curve through the lesson's points ``x`` and ``y``."""
        return self.to_numpy(
            names["error"](self.tensor(width), names["x"], names["y"], without_itself)
        )

    def lesson_question(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        """Return the letters, numbers and questions (pairs of letters) whose attention weights a lesson draws."""
        return [self.to_numpy(names[name]) for name in ("letters", "numbers", "questions")]

    def new_reader(self, names: dict[str, Any], kind: str) -> Any:
        """Make a model by ``fixed_reader``, for example, and call it, since its sizes may come from the first input."""
        reader = names[f"{kind}_reader"]()
        reader(self.tensor(np.zeros((1, 8), "int64")))
        return reader

    def lesson_reader(
        self, names: dict[str, Any], kind: str = ""
    ) -> tuple[Arrays, Callable[[NDArray[Any]], NDArray[Any]]]:
        """Return the weights of ``reader``, or of a new one of a kind, and a function from tokens to answers.

        The weights are embedding, W_q, W_k, W_v, W_o, W_1, b_1, W_2, b_2 and perhaps P.
        """
        reader = self.new_reader(names, kind) if kind else names["reader"]
        layer = self.layer(reader)
        weights = {"embedding": layer.parameters("embedding")["table"]}
        for number, path in enumerate(self.READER_OUTPUT, 1):
            dense = layer.parameters(path)
            weights |= {f"W_{number}": dense["weight"], f"b_{number}": dense["bias"]}
        if kind == "learned":
            weights["P"] = layer.parameters("positions.P")["table"]
        return weights | self.projections(reader.attention), layer

    def lesson_learned_table(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        """Return a reader's learned table of positions, before and after some steps of training."""
        train = names["train"]
        readers: list[Any] = []
        before: list[NDArray[Any]] = []

        def copy_table(reader: Any) -> NDArray[Any]:
            return self.layer(reader).parameters("positions.P")["table"].copy()

        def make_reader() -> Any:
            readers.append(self.new_reader(names, "learned"))
            before.append(copy_table(readers[0]))
            return readers[0]

        def run(draw_sequences: Callable[..., Any]) -> None:
            with patch.dict(train.__globals__, draw_sequences=draw_sequences):
                train(make_reader, 0)

        record_first_calls(run, names["draw_sequences"])
        return [*before, copy_table(readers[0])]

    def lesson_blocks(self, names: dict[str, Any]) -> list[Arrays]:
        """Return the weights of each layer in ``blocks``."""
        return [self.projections(block) for block in names["blocks"]]

    def lesson_arrays(self, examples: Any) -> list[NDArray[Any]]:
        """Return the examples that a lesson drew to test its models."""
        return self.to_numpy([*examples])

    def lesson_weights(
        self, model: Any, tables: Iterable[str], matrices: Iterable[str] = ()
    ) -> Arrays:
        """Return a model's tables and matrices by the last part of their paths, and its last layer: output, bias."""
        parameters = self.layer(model).parameters
        last = parameters(next(name for name in self.OUTPUT_NAMES if hasattr(model, name)))
        return {
            **{name: parameters(name)["table"] for name in tables},
            **{path.rpartition(".")[2]: parameters(path)["weight"] for path in matrices},
            "output": last["weight"],
            "bias": last["bias"],
        }

    def lesson_layers(
        self, model: Any, layers: int | Iterable[str], tables: tuple[str, ...] = ("token", "place")
    ) -> tuple[Arrays, list[Arrays]]:
        """Return a model's tables, output and bias, and the projections of its layers.

        ``layers`` are their names, or how many there are in a list.
        """
        parameters = self.layer(model).parameters
        if isinstance(layers, int):
            layers = [f"{self.LAYERS_PREFIX}{i}" for i in range(layers)]
        projections = [
            {f"W_{x}": parameters(f"{layer}.W_{x}")["weight"] for x in "qkvo"} for layer in layers
        ]
        return self.lesson_weights(model, tables), projections

    def lesson_finder(self, model: Any) -> Arrays:
        """Return the weights of a model that finds a letter's last digit, and of its scheme of positions.

        A scheme has vectors, a row for each distance, or numbers, one for each bucket, or neither.
        """
        weights = self.lesson_weights(model, ("letter", "digit"), ("W_q", "W_k", "W_v"))
        return weights | self.lesson_scheme(model)

    def lesson_bias(self, model: Any, distances: NDArray[Any]) -> NDArray[Any]:
        """Return the bias that a model's scheme adds to the scores at these distances."""
        return np.asarray(self.to_numpy(model.scheme.bias(None, self.tensor(distances))))

    def lesson_scheme(self, model: Any) -> Arrays:
        """Return the parameters of a model's scheme of positions."""
        names = [name for name in ("vectors", "numbers") if hasattr(model.scheme, name)]
        return {name: self.lesson_parameter(getattr(model.scheme, name)) for name in names}

    def lesson_logits(self, model: Any, tokens: NDArray[Any]) -> NDArray[Any]:
        """Return a language model's logits for whole texts."""
        return np.asarray(self.layer(model)(tokens))

    def lesson_block(
        self, names: dict[str, Any], *args: Any, inputs: Iterable[NDArray[Any]], **options: Any
    ) -> Any:
        """Make a block of a lesson's class, with random parameters.

        An option that is a string is the name of one of the lesson's classes, or of the framework's.
        """
        for name, option in options.items():
            if isinstance(option, str):
                options[name] = names[option] if option in names else getattr(self, option)
        layer = self.layer(names["TransformerBlock"](*args, **options))
        layer.randomize(*inputs)
        return layer

    def lesson_call(self, layer: Any, *inputs: NDArray[Any]) -> NDArray[Any]:
        """Return what a block of ``lesson_block`` makes of its inputs."""
        return np.asarray(layer(*inputs))

    def lesson_parts(self, model: Any, paths: Iterable[str]) -> dict[str, Arrays]:
        """Return the parameters of parts of a model, or of a block of ``lesson_block``, by their paths."""
        layer = model if isinstance(model, Layer) else self.layer(model)
        last = [name for name in self.OUTPUT_NAMES if hasattr(layer.layer, name)]
        names = {"output": last[0]} if last else {}
        return {path: layer.parameters(names.get(path, path)) for path in paths}

    def lesson_translate(
        self, names: dict[str, Any], model: Any, source: NDArray[Any]
    ) -> list[NDArray[Any]]:
        """Return the tokens that a lesson's translator writes, and the logits."""
        tokens = self.tensor(source.astype(self.INTEGER_DTYPE))
        return self.to_numpy(names["translate"](model, tokens))

    def lesson_matrices(self, names: dict[str, Any], layer: str, matrices: Iterable[str]) -> Arrays:
        """Return a layer's matrices by name."""
        parameters = self.layer(names[layer]).parameters
        return {name: parameters(name)["weight"] for name in matrices}

    def lesson_start(self, model: Any) -> NDArray[Any]:
        """Return the vector of a model's start token."""
        return self.lesson_parameter(model.start).ravel()

    def lesson_way(self, way: Callable[[Any], Any], probs: NDArray[Any]) -> NDArray[Any]:
        """Return the distribution that a lesson's way to choose makes of another."""
        return np.asarray(self.to_numpy(way(self.tensor(probs))))

    def lesson_parameter(self, parameter: Any) -> NDArray[Any]:
        return np.asarray(self.to_numpy(parameter))
