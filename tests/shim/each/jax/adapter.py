"""The adapter of d2l_compat.jax."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import flax.linen as nn
import jax
import jax.experimental
import numpy as np
import optax  # type: ignore[import-untyped]
from jax.tree_util import keystr, tree_leaves_with_path
from numpy.typing import NDArray

from d2l_compat import jax as d2l
from d2l_compat._shared import checks
from d2l_compat.jax._state import TrainState
from tests.shim import reference
from tests.shim.each import adapter
from tests.shim.each.jax.translator import train_with_trainer

# Double precision is enabled locally, not for the whole process: the lessons run in single precision.
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

# With these environment variables, a subprocess has two devices on any machine, even on one with a GPU.
TWO_CPUS = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


def is_floating(x: Any) -> bool:
    return isinstance(x, jax.Array) and jax.numpy.issubdtype(x.dtype, jax.numpy.floating)


class Layer(adapter.Layer):
    """A layer and its variables, which are drawn for the first input unless they are passed.

    Attention weights are separated from the outputs, whether they are returned or sown.
    """

    def __init__(self, layer: nn.Module, variables: dict[str, Any] | None = None) -> None:
        super().__init__(layer)
        if variables is None and layer.scope:  # the layer is bound to variables
            variables = layer.variables
        self.variables = variables
        self.weights: Any = None
        self.keys = map(jax.random.key, count())

    @staticmethod
    def tensor(x: NDArray[Any]) -> jax.Array:
        with enable_x64(True):
            return jax.numpy.array(x)

    @staticmethod
    def array(x: Any) -> Any:
        return np.asarray(x) if isinstance(x, jax.Array) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        if training:
            kwargs["training"] = True  # not every layer takes it
        with enable_x64(True):
            tensors, kwargs = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
            if self.variables is None:
                self.variables = self.layer.init(next(self.keys), *tensors, **kwargs)
            rngs = {"dropout": next(self.keys)}
            output, sown = self.layer.apply(
                self.variables, *tensors, rngs=rngs, mutable="intermediates", **kwargs
            )
        sown = sown.get("intermediates", {})
        if "enc_attention_weights" in sown:
            (self.weights,) = sown["enc_attention_weights"]
        elif isinstance(output, tuple) and not hasattr(self.layer, "num_layers"):
            output, self.weights = output
        return self.to_numpy(output)

    @property
    def attention_weights(self) -> Any:
        if self.weights is None:  # Flax's layers return their weights and store nothing
            raise RuntimeError(checks.NOT_CALLED)
        return self.to_numpy(self.weights)

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        leaves, tree = jax.tree.flatten((self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)))
        floats = [x for x in leaves if is_floating(x)]

        def call(*floats: jax.Array) -> jax.Array:
            remaining = iter(floats)
            replaced = [next(remaining) if is_floating(x) else x for x in leaves]
            inputs, kwargs = jax.tree.unflatten(tree, replaced)
            result = self.layer.apply(self.variables or {}, *inputs, **kwargs)
            return result[0] if isinstance(result, tuple) else result

        with enable_x64(True), jax.debug_nans(True):  # an intermediate NaN is an error as well
            _, pull_back = jax.vjp(call, *floats)
            return [np.asarray(gradient) for gradient in pull_back(self.tensor(direction))]

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        rng = np.random.default_rng(0)
        with enable_x64(True):
            if self.variables is None:  # only their shapes are needed, so little is compiled
                args = next(self.keys), *self.to_tensors(inputs)
                self.variables = jax.eval_shape(
                    self.layer.init, *args, **self.kwargs_to_tensors(kwargs)
                )
            self.variables = jax.tree.map(
                lambda x: jax.numpy.asarray(rng.normal(0, 0.5, x.shape), x.dtype), self.variables
            )

    def part(self, path: str) -> dict[str, Any]:
        part = self.variables["params"]
        # Our blocks are a field, which has the name of the argument.
        blocks = "blocks_" if hasattr(self.layer, "blocks") else "blks_"
        for name in path.replace("blks.", blocks).split("."):
            part = part["LayerNorm_0" if name == "ln" else name]
        return part

    @property
    def parameter_names(self) -> list[str]:
        return [keystr(path) for path, _ in tree_leaves_with_path(self.variables)]

    @property
    def num_parameters(self) -> int:
        return sum(array.size for array in jax.tree.leaves(self.variables))

    def parameters(self, path: str) -> adapter.Arrays:
        names = {"kernel": "weight", "embedding": "table", "scale": "gamma"}
        part = {names.get(name, name): np.asarray(x) for name, x in self.part(path).items()}
        return part | {"beta": part["bias"]} if {"gamma", "bias"} <= part.keys() else part

    def gates(self, path: str) -> list[reference.Gates]:
        # The layer around Flax's cells has no parameters itself, so "rnn.rnn" is "rnn".
        cells = sorted(self.part(path.split(".")[0]).items())

        def linears(cell: dict[str, Any], kind: str) -> dict[str, reference.Linear]:
            letters = {"reset": "r", "update": "z", "new": "n"}
            parts = {name: cell[kind + letter] for name, letter in letters.items()}
            return {
                name: reference.Linear(
                    np.asarray(part["kernel"]), np.asarray(part.get("bias", 0.0))
                )
                for name, part in parts.items()
            }

        return [reference.Gates(linears(cell, "i"), linears(cell, "h")) for _, cell in cells]


tensor, to_numpy = Layer.tensor, Layer.to_numpy


class Encoding(Layer):
    def __init__(self, layer: nn.Module, dtype: str) -> None:
        super().__init__(layer)
        self.dtype = dtype

    @property
    def P(self) -> NDArray[Any]:
        with enable_x64(self.dtype == "float64"):
            return np.asarray(self.layer.P)


class WithDtype(Layer):
    """A layer with the dtype of its cache or state."""

    def __init__(self, layer: nn.Module, dtype: str, variables: dict[str, Any] | None) -> None:
        super().__init__(layer, variables)
        self.dtype = dtype


def to_single(x: NDArray[Any]) -> NDArray[Any]:
    return x.astype("float32") if x.dtype == "float64" else x


def apply_block(
    layer: nn.Module, training: bool, variables: Any, rngs: Any, inputs: Any, kwargs: Any
) -> Any:
    if training:
        kwargs = kwargs | {"training": True}  # not every layer takes it
    return layer.apply(variables, *inputs, rngs=rngs, **kwargs)


class Block(WithDtype):
    """A block, or a model of blocks, whose parameters are drawn in its dtype. Flax initializes them in float32.

    Calls are jitted, which is faster than compiling each operation by itself.
    """

    apply_jitted = staticmethod(jax.jit(apply_block, static_argnums=(0, 1)))

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        if self.variables is None:
            singles, single_kwargs = jax.tree.map(to_single, (inputs, kwargs))
            self._cast(jax.jit(self.layer.init)(next(self.keys), *singles, **single_kwargs))
        rngs = {"dropout": next(self.keys)}
        with enable_x64(True):
            args = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
            return to_numpy(self.apply_jitted(self.layer, training, self.variables, rngs, *args))

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        inputs, kwargs = jax.tree.map(to_single, (inputs, kwargs))
        super().randomize(*inputs, **kwargs)
        self._cast(self.variables)

    def _cast(self, variables: Any) -> None:
        with enable_x64(True):
            self.variables = jax.tree.map(lambda x: x.astype(self.dtype), variables)


def projection_variables(weights: adapter.Arrays | None) -> dict[str, Any] | None:
    """Return a layer's variables, or None if there are no weights."""
    if weights is None:
        return None
    names, parameters = {"W": "kernel", "b": "bias"}, {}
    for name, array in weights.items():
        projection = parameters.setdefault(f"W_{name[2]}", {})
        projection[names[name[0]]] = tensor(array)
    return {"params": parameters}


def apply_cached(layer: nn.Module, variables: Any, X: Any, valid_lens: Any, cache: Any) -> Any:
    return layer.apply(variables, X, valid_lens, cache=cache)


class CachedLayer(adapter.CachedLayer):
    """A causal attention layer with its newest cache.

    Calls are jitted, which is faster than compiling each operation by itself. If the lengths do not fit, they are not
    jitted: only an eager call knows the lengths, and raises an error.
    """

    apply_jitted = staticmethod(jax.jit(apply_cached, static_argnums=0))

    def __call__(self, X: NDArray[Any], valid_lens: NDArray[Any] | None = None) -> NDArray[Any]:
        slots, batch, num_steps = self.cache.slots, *X.shape[:2]
        lens = np.full(batch, num_steps) if valid_lens is None else valid_lens
        has_room = slots.is_rolling or max(self.lengths) + max(lens) <= slots.size
        fits = has_room and ((lens >= 0) & (lens <= num_steps)).all()
        apply = self.apply_jitted if fits else apply_cached
        with enable_x64(True):
            args = self.layer.layer, self.layer.variables, tensor(X), valid_lens, self.cache
            output, self.cache = apply(*args)
        return np.asarray(output)

    def reset(self) -> None:
        self.cache = self.cache.reset()


class CachedDecoder(adapter.CachedDecoder):
    """A decoder with its newest caches, jitted as a :class:`CachedLayer` is."""

    def __call__(
        self, tokens: NDArray[Any], valid_lens: NDArray[Any] | None = None, **memory: Any
    ) -> NDArray[Any]:
        layer, cache = self.layer.layer, self.caches[0]
        end = max(cache.lengths) + tokens.shape[1]
        num_slots = end if cache.slots.is_rolling else cache.slots.size
        fits = end <= min(num_slots, layer.max_len) and tokens.max() < layer.vocab_size
        apply = Block.apply_jitted if fits else apply_block
        with enable_x64(True):
            kwargs = self.layer.kwargs_to_tensors(memory) | {"caches": self.caches}
            args = self.layer.variables, {}, [tokens, valid_lens], kwargs
            logits, self.caches = apply(layer, False, *args)
        return np.asarray(logits)


def apply_stateful(layer: nn.Module, variables: Any, X: Any, state: Any, **options: Any) -> Any:
    return layer.apply(variables, X, state, **options)


class StatefulLayer(adapter.StatefulLayer):
    """A linear attention layer with its newest state."""

    apply_jitted = staticmethod(
        jax.jit(apply_stateful, static_argnums=0, static_argnames="chunk_size")
    )

    def __call__(self, X: NDArray[Any], **options: Any) -> NDArray[Any]:
        args = self.layer.layer, self.layer.variables, tensor(X), self.state
        with enable_x64(True):
            output, self.state = self.apply_jitted(*args, **options)
        return np.asarray(output)

    def reset(self) -> None:
        self.state = self.state.reset()


class Adapter(adapter.Adapter):
    d2l, layer = d2l, Layer
    train_with_trainer = staticmethod(train_with_trainer)
    train_with_functions = None  # D2L 0.17 had no JAX
    CAST_DTYPE = "float64"  # Flax computes in the wider dtype
    ACCEPTS_NUMPY = True
    NORM_EPSILON = 1e-6
    RMSNorm = nn.RMSNorm
    LAYERS_PREFIX = "layers_"
    ADDNORM_ARGS = (0.0,)
    FEATURES_ARGS = ()  # Flax's layers take their sizes from their input

    def block_sizes(self, width: int) -> tuple[Any, ...]:
        return (width,)

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        with enable_x64(True):
            return super().apply(function, *args)

    def masked_softmax(self, X: Any, valid_lens: Any = None) -> NDArray[Any]:
        with enable_x64(True):
            return super().masked_softmax(X, valid_lens)

    def build_multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.MultiHeadAttention(*args, **kwargs)
        return Layer(layer, projection_variables(weights))

    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Encoding(d2l.PositionalEncoding(*args, **kwargs), dtype)

    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.RotaryEncoding(*args, **kwargs))

    def build_causal(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.CausalSelfAttention(*args, **kwargs)
        return WithDtype(layer, dtype, projection_variables(weights))

    def make_cache(self, layer: Layer, batch_size: int, max_len: int) -> CachedLayer:
        with enable_x64(True):
            return CachedLayer(layer, layer.layer.make_cache(batch_size, max_len, layer.dtype))

    def with_dtype(self, layer: nn.Module, dtype: str) -> Block:
        return Block(layer, dtype, None)

    def build_block_seq2seq(self, vocab_size: int) -> Block:
        return self.with_dtype(super().build_block_seq2seq(vocab_size).layer, "float32")

    def make_caches(self, layer: Layer, batch_size: int, max_len: int) -> CachedDecoder:
        with enable_x64(True):
            caches = layer.layer.make_caches(batch_size, max_len, layer.dtype)
        return CachedDecoder(layer, caches)

    def convert_weights(self, source: Layer, target: Layer) -> None:
        with enable_x64(True):
            params = d2l.convert_weights(source.layer, target.layer, source.variables["params"])
        target.variables = {"params": params}

    def predict_with_blocks(
        self, model: Layer, batch: tuple[NDArray[Any], ...], num_steps: int
    ) -> tuple[NDArray[Any], Any]:
        params = model.variables["params"]
        tokens, (weights, _) = model.layer.predict_step(params, batch, num_steps, True)
        return self.to_numpy(tokens), self.to_numpy(weights)

    def build_linear_attention(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.LinearAttention(*args, **kwargs)
        return WithDtype(layer, dtype, projection_variables(weights))

    def make_state(self, layer: Layer, batch_size: int) -> StatefulLayer:
        with enable_x64(True):
            return StatefulLayer(layer, layer.layer.make_state(batch_size, layer.dtype))

    def build_linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Module:
        return nn.Dense(3)

    def build_unused(self) -> nn.Module:
        return nn.Dense(1)

    def fit_classifier(
        self,
        X: NDArray[Any],
        Y: NDArray[Any],
        lr: float,
        epochs: int,
        clip: float,
        d2l: Any = d2l,
        start: adapter.Arrays | None = None,
    ) -> tuple[adapter.Arrays, adapter.Arrays, dict[str, Any]]:
        linear = self.build_linear

        class Linear(d2l.Classifier):
            lr: float

            def setup(self) -> None:
                self.net = linear(X.shape[1], None)

        model = Linear(lr)
        variables = model.init(jax.random.key(0), X)
        if start:
            kernel, bias = jax.numpy.asarray(start["weight"]), jax.numpy.asarray(start["bias"])
            variables = {"params": {"net": {"kernel": kernel, "bias": bias}}}
        model.apply_init = lambda dummy_input, key: variables
        trainer = d2l.Trainer(max_epochs=epochs, gradient_clip_val=clip)
        trainer.fit(model, self.build_data_module(d2l, X, Y))
        before, after = Layer(model, variables), Layer(model, {"params": trainer.state.params})
        return before.parameters("net"), after.parameters("net"), model.board.data

    def classifier_method(self, name: str) -> Any:
        return lambda Y_hat, Y: getattr(d2l.Classifier(), name)({}, (Y_hat,), Y, _identity_state())

    def sequence_loss(
        self, Y_hat: NDArray[Any], Y: NDArray[Any], tgt_pad: int
    ) -> list[NDArray[Any]]:
        model = d2l.Seq2Seq(self.build_unused(), self.build_unused(), tgt_pad, 0.1, training=False)
        args = {}, (tensor(Y_hat),), tensor(Y), _identity_state()
        return [to_numpy(model.loss(*args)[0]), to_numpy(model.loss(*args, False)[0])]

    def native_causal_attention(self, *inputs: NDArray[Any]) -> NDArray[Any]:
        tensors = (self.tensor(x.swapaxes(1, 2)) for x in inputs)
        return to_numpy(jax.nn.dot_product_attention(*tensors, is_causal=True)).swapaxes(1, 2)

    def projections(self, layer: Any, roles: str = "qkvo") -> adapter.Arrays:
        """Return projections from the variables of a layer."""
        return {f"W_{i}": np.asarray(layer["params"][f"W_{i}"]["kernel"]) for i in roles}

    def lesson_projections(self, names: dict[str, Any], layer: str = "attention") -> adapter.Arrays:
        if isinstance(names[layer], tuple):  # a module and its variables
            return self.projections(names[layer][1])
        variables = {"attention": "attention_variables", "small_attention": "small_variables"}
        return super().lesson_projections(names, variables[layer])

    def lesson_encode(
        self, layer: nn.Module, X: NDArray[Any], offset: int = 0, training: bool = False
    ) -> NDArray[Any]:
        rngs = {"dropout": jax.random.key(0)}
        return np.asarray(layer.apply({}, X, training=training, offset=offset, rngs=rngs))

    def lesson_state_names(self, layer: nn.Module) -> list[str]:
        return [*layer.init(jax.random.key(0), np.zeros((1, 8, layer.num_hiddens), "float32"))]

    def lesson_draw(self, names: dict[str, Any], function: str, *args: Any) -> list[NDArray[Any]]:
        return to_numpy(names[function](np.random.default_rng(0), *args))

    def lesson_reader(
        self, names: dict[str, Any], kind: str = ""
    ) -> tuple[adapter.Arrays, Callable[[NDArray[Any]], NDArray[Any]]]:
        if kind:
            reader = names[f"{kind}_reader"]
            variables = reader.init(jax.random.key(0), np.zeros((1, 8), "int32"))
        else:
            reader, variables = names["reader"]
        parts = variables["params"]

        def answers(tokens: NDArray[Any]) -> NDArray[Any]:
            logits, _ = reader.apply(variables, tokens)
            return np.asarray(logits)

        weights = {"embedding": parts["embedding"]["embedding"]}
        for i, layer in (1, "layers_0"), (2, "layers_2"):  # a ReLU is between them
            dense = parts["output"][layer]
            weights |= {f"W_{i}": dense["kernel"], f"b_{i}": dense["bias"]}
        if kind == "learned":
            weights["P"] = _table(variables)
        arrays = {name: np.asarray(x) for name, x in weights.items()}
        return arrays | self.projections({"params": parts["attention"]}), answers

    def lesson_learned_table(self, names: dict[str, Any]) -> list[NDArray[Any]]:
        reader = names["learned_reader"]
        start = reader.init(jax.random.key(0), np.zeros((1, 8), "int32"))
        _, first = names["train"](reader, 0)
        return [_table(start), _table(first)]

    def lesson_weights(
        self, model: Any, tables: Iterable[str], matrices: Iterable[str] = ()
    ) -> adapter.Arrays:
        return super().lesson_weights(_bind(model), tables, matrices)

    def lesson_bias(self, model: Any, distances: NDArray[Any]) -> NDArray[Any]:
        return super().lesson_bias(_bind(model), distances)

    def lesson_layers(
        self, model: Any, layers: int | Iterable[str], tables: tuple[str, ...] = ("token", "place")
    ) -> tuple[adapter.Arrays, list[adapter.Arrays]]:
        return super().lesson_layers(_bind(model), layers, tables)

    def lesson_logits(self, model: Any, tokens: NDArray[Any]) -> NDArray[Any]:
        module, variables = model
        logits, *_ = module.apply(variables, tokens)
        return np.asarray(logits)

    def lesson_matrices(
        self, names: dict[str, Any], layer: str, matrices: Iterable[str]
    ) -> adapter.Arrays:
        parameters = names["variables"]["params"]
        return {name: np.asarray(parameters[name]["kernel"]) for name in matrices}

    def lesson_call(self, layer: Layer, *inputs: NDArray[Any]) -> NDArray[Any]:
        output, *_ = layer.layer.apply(layer.variables, *layer.to_tensors(inputs))
        return np.asarray(output)

    def lesson_parts(self, model: Any, paths: Iterable[str]) -> dict[str, adapter.Arrays]:
        # In Flax, the names of a block's options are taken.
        names = {"attention": "self_attention", "network": "feed_forward"}
        renamed = {
            path: ".".join(names.get(part, part) for part in path.split(".")) for path in paths
        }
        model = model if isinstance(model, Layer) else _bind(model)
        parts = super().lesson_parts(model, renamed.values())
        return {path: parts[name] for path, name in renamed.items()}

    def lesson_translate(
        self, names: dict[str, Any], model: Any, source: NDArray[Any]
    ) -> list[NDArray[Any]]:
        return to_numpy(names["translate"](model, source.astype("int32")))

    def lesson_start(self, model: Any) -> NDArray[Any]:
        return super().lesson_start(_bind(model))

    def lesson_scheme(self, model: Any) -> adapter.Arrays:
        parameters = _bind(model).variables["params"].get("scheme", {})
        return {name: np.asarray(x) for name, x in parameters.items()}


def _bind(model: Any) -> nn.Module:
    """Return a lesson's model as a bound module; it may be a pair of a module and its variables."""
    if isinstance(model, tuple):
        module, variables = model
        return module.bind(variables)
    return model


def _identity_state() -> TrainState:
    """Return the state of a model whose logits are its first input."""
    return TrainState.create(
        apply_fn=lambda variables, *X, **rest: (X[0], {}) if "mutable" in rest else X[0],
        params={},
        tx=optax.identity(),
        batch_stats={},
        dropout_rng=jax.random.key(0),
    )


def _table(variables: Any) -> NDArray[Any]:
    return np.asarray(variables["params"]["positions"]["P"]["embedding"])
