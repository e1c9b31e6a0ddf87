"""Tests of features that only MLX has: compilation, laziness, parameters made at the first call, double precision."""

import copy
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx import nn
from mlx.utils import tree_flatten

from d2l_compat import mlx as d2l
from d2l_compat.mlx import _blockwise
from d2l_compat.mlx._lazy import linear
from tests.shim import reference

RNG = np.random.default_rng(0)
X = mx.array(RNG.normal(size=(2, 5, 6)).astype("float32"))
LENGTHS = mx.array([3, 0])


class Block(nn.Module):
    """Positions and attention, in evaluation mode."""

    def __init__(self, *sizes: int, max_len: int = 50) -> None:
        super().__init__()
        self.encoding = d2l.PositionalEncoding(6, 0.5, max_len)
        self.attention = d2l.MultiHeadAttention(*sizes, 6, 2, 0.5)
        self.eval()

    def __call__(self, X: mx.array, valid_lens: mx.array | None = None) -> mx.array:
        X = self.encoding(X)
        return self.attention(X, X, X, valid_lens)


def parameter_names(layer: nn.Module) -> list[str]:
    return [path for path, _ in tree_flatten(layer.parameters())]


@pytest.fixture(params=["short", "long"])
def _short_or_long(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "long":
        monkeypatch.setattr(_blockwise, "MIN_QUERIES", 4)
        monkeypatch.setattr(_blockwise, "BLOCK", 3)


either_length = pytest.mark.usefixtures("_short_or_long")


# Parameters


def test_encoding_table_is_not_a_parameter() -> None:
    block = Block(6, 6, 6)
    weights = [f"attention.W_{role}.weight" for role in "kqvo"]
    assert sorted(parameter_names(block)) == sorted(weights)
    assert not tree_flatten(block.encoding.trainable_parameters())
    block(X, LENGTHS)
    assert sorted(parameter_names(block)) == sorted(weights), "a call stores no parameter"


def test_first_call_sets_sizes_and_keeps_mode() -> None:
    block = Block()
    assert parameter_names(block) == ["attention.W_o.weight"]
    assert "LazyLinear(output_dims=6)" in str(block)
    output = block(X)
    assert len(parameter_names(block)) == 4
    np.testing.assert_array_equal(output, block(X), "still in evaluation")
    assert "LazyLinear(input_dims=6, output_dims=6, bias=False)" in str(block)


def test_trainer_trains_layers_without_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(d2l.Classifier):
        def __init__(self) -> None:
            super().__init__()
            self.net = d2l.PositionWiseFFN(4, 3)
            self.lr = 0.5

    class Data(d2l.DataModule):
        batch_size = 5

        def get_dataloader(self, train: bool) -> Any:
            return self.get_tensorloader((X[0], mx.array([0, 1, 2, 0, 1])), train)

    snapshots: list[Any] = []
    model = Model()
    step = model.training_step

    def record_step(batch: Any) -> Any:
        snapshots.append(dict(tree_flatten(model.trainable_parameters())))
        return step(batch)

    monkeypatch.setattr(d2l.Trainer, "_validate", lambda *_: None)
    object.__setattr__(model, "training_step", record_step)
    d2l.Trainer(max_epochs=1).fit(model, Data())
    assert len(snapshots[0]) == 4
    for path, parameter in tree_flatten(model.trainable_parameters()):
        assert not np.array_equal(parameter, snapshots[0][path]), path


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copy_computes_same_output_and_stores_no_weights(
    duplicate: Callable[[Any], Any],
) -> None:
    block = Block(6, 6, 6)
    output = block(X, LENGTHS)
    other = duplicate(block)
    with pytest.raises(AttributeError, match="call the layer first"):
        _ = other.attention.attention_weights
    np.testing.assert_array_equal(other(X, LENGTHS), output)


def test_custom_attention_may_lack_masks() -> None:
    class Doubled(d2l.DotProductAttention):
        def __call__(
            self, queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None = None
        ) -> mx.array:
            return 2 * super().__call__(queries, keys, values, lens)

    heads = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    want = 2 * heads(X, X, X, LENGTHS)
    heads.attention = Doubled(0.0)
    np.testing.assert_allclose(heads(X, X, X, LENGTHS), want, atol=1e-6)


def test_full_dropout_is_off_in_evaluation() -> None:
    layer = d2l.AddNorm(6, 1.0)
    assert not np.array_equal(layer.eval()(X, X[::-1]), layer.train()(X, X[::-1]))
    attention = d2l.DotProductAttention(1.0)
    for masks in {}, {"causal": True}, {"score_bias": mx.zeros((5, 5))}:
        assert not np.array(attention.train()(X, X, X, **masks)).any()
        assert np.array(attention.eval()(X, X, X, **masks)).all()


# Compilation


@either_length
def test_compiled_call_matches_and_checks_shapes() -> None:
    block = Block(6, 6, 6)
    compiled = mx.compile(block)
    np.testing.assert_allclose(compiled(X, LENGTHS), block(X, LENGTHS), atol=1e-6)
    with pytest.raises(ValueError, match="valid_lens: got shape"):
        compiled(X, mx.array([1, 2, 3]))


@either_length
def test_compiled_gradients_are_equal() -> None:
    attention = d2l.DotProductAttention(0.0)

    def loss(X: mx.array, lens: mx.array) -> mx.array:
        return (attention(X, X, X, lens) ** 2).sum()

    want = mx.grad(loss)(X, LENGTHS)
    np.testing.assert_allclose(mx.compile(mx.grad(loss))(X, LENGTHS), want, atol=1e-5)
    assert np.isfinite(np.array(want)).all()


@either_length
def test_mapped_call_treats_examples_separately() -> None:
    block = Block(6, 6, 6)

    def call_block(x: mx.array, length: mx.array) -> mx.array:
        return block(x[None], length[None])[0]

    np.testing.assert_allclose(mx.vmap(call_block)(X, LENGTHS), block(X, LENGTHS), atol=1e-6)


@either_length
def test_mapped_gradients_match_separate_ones() -> None:
    attention = d2l.DotProductAttention(0.0)

    def loss(x: mx.array) -> mx.array:
        return (attention(x[None], x[None], x[None]) ** 2).sum()

    want = mx.grad(lambda X: (attention(X, X, X) ** 2).sum())(X)
    np.testing.assert_allclose(mx.vmap(mx.grad(loss))(X), want, atol=1e-5)


@either_length
@pytest.mark.parametrize(
    "with_bias",
    [
        pytest.param(False, id="causal", marks=pytest.mark.release),
        pytest.param(True, id="causal and bias"),
    ],
)
def test_masks_and_their_gradients_may_be_compiled_and_mapped(with_bias: bool) -> None:
    attention = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    bias = mx.array(RNG.normal(size=(2, 2, 5, 5)).astype("float32"))
    bias[:, :, 4] = -np.inf  # the last query sees nothing
    lengths = mx.array([5, 0])

    def pool(x: mx.array, length: mx.array, bias: mx.array) -> mx.array:
        masks = {"score_bias": bias[None]} if with_bias else {}
        return attention(x[None], x[None], x[None], length[None], causal=True, **masks)[0]

    def differentiate(*args: mx.array) -> Any:
        return mx.grad(lambda *x: (pool(*x) ** 2).sum(), argnums=(0, 2))(*args)

    for function in pool, differentiate:
        results = [as_list(function(*args)) for args in zip(X, lengths, bias, strict=True)]
        want = [mx.stack(parts) for parts in zip(*results, strict=True)]
        mapped = as_list(mx.vmap(function)(X, lengths, bias))
        compiled = as_list(mx.compile(function)(X[0], lengths[0], bias[0]))
        for m, c, w in zip(mapped, compiled, want, strict=True):
            np.testing.assert_allclose(m, w, atol=1e-5)
            np.testing.assert_allclose(c, w[0], atol=1e-5)
            assert np.isfinite(np.array(w)).all()


@pytest.mark.parametrize(("steps", "masks"), [(5, {}), (140, {"window": 9})], ids=str)
def test_mapped_lengths_combine_with_a_shared_bias(steps: int, masks: dict[str, int]) -> None:
    attention = d2l.DotProductAttention(0.0)
    inputs = mx.array(RNG.normal(size=(2, steps, 6)).astype("float32"))
    lengths, bias = mx.array([steps, 3]), mx.random.normal((steps, steps))

    def attend(X: mx.array, lens: mx.array) -> mx.array:
        return attention(X, X, X, lens, score_bias=bias, **masks)

    mapped = mx.vmap(lambda x, length: attend(x[None], length[None])[0])(inputs, lengths)
    np.testing.assert_allclose(mapped, attend(inputs, lengths), atol=1e-5)


def test_blocks_of_a_window_may_be_compiled_and_mapped() -> None:
    attention = d2l.DotProductAttention(0.0)
    inputs = mx.array(RNG.normal(size=(2, 140, 6)).astype("float32"))
    lengths, bias = mx.array([140, 50]), mx.random.normal((2, 140, 140))

    def loss(X: mx.array, lens: mx.array, bias: mx.array) -> mx.array:
        return (attention(X, X, X, lens, score_bias=bias, window=9) ** 2).sum()

    def differentiate_one(x: mx.array, length: mx.array, bias: mx.array) -> Any:
        return mx.grad(loss, argnums=(0, 2))(x[None], length[None], bias[None])

    want = mx.grad(loss, argnums=(0, 2))(inputs, lengths, bias)
    compiled = mx.compile(mx.grad(loss, argnums=(0, 2)))(inputs, lengths, bias)
    mapped = mx.vmap(differentiate_one)(inputs, lengths, bias)
    for c, m, w in zip(compiled, mapped, want, strict=True):
        np.testing.assert_allclose(c, w, atol=1e-5)
        np.testing.assert_allclose(m[:, 0], w, atol=1e-5)


def test_linear_attention_may_be_compiled_and_mapped() -> None:
    layer = d2l.LinearAttention(6, 2, decay=[1.0, 0.5])

    def read(X: mx.array) -> mx.array:
        return layer(X, chunk_size=3)

    def differentiate(X: mx.array) -> mx.array:
        return mx.grad(lambda X: (read(X) ** 2).sum())(X)

    np.testing.assert_allclose(mx.compile(read)(X), read(X), atol=1e-5)
    mapped = mx.vmap(lambda x: differentiate(x[None])[0])(X)
    np.testing.assert_allclose(mapped, differentiate(X), atol=1e-5)


def as_list(x: Any) -> list[mx.array]:
    return [x] if isinstance(x, mx.array) else list(x)


@either_length
@pytest.mark.parametrize("lens", [None, LENGTHS], ids=["every key", "lengths"])
def test_second_derivatives_match_formula(lens: mx.array | None) -> None:
    attention = d2l.DotProductAttention(0.0)
    inputs = X.astype(mx.float64)

    def formula(x: mx.array) -> mx.array:
        return d2l.masked_softmax(x @ x.swapaxes(1, 2) / 6**0.5, lens) @ x

    def second_derivative(attend: Callable[[mx.array], mx.array]) -> mx.array:
        def first_derivative(x: mx.array) -> mx.array:
            return mx.grad(lambda x: (attend(x) ** 2).sum())(x)

        return mx.grad(lambda x: (first_derivative(x) ** 2).sum())(inputs)

    got = second_derivative(lambda x: attention(x, x, x, lens))
    np.testing.assert_allclose(got, second_derivative(formula), rtol=1e-9)


def test_block_with_state_compiles_after_a_call() -> None:
    block = Block(6, 6, 6)
    block(X, LENGTHS)
    compiled = mx.compile(lambda x: block(x), inputs=block.state)
    np.testing.assert_allclose(compiled(X), block(X), atol=1e-6)


# Numbers


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_half_precision_output_is_accurate(dtype: mx.Dtype) -> None:
    half = X.astype(dtype)
    attention = d2l.DotProductAttention(0.0)
    output = attention(half, half, half, LENGTHS)
    assert output.dtype == attention.attention_weights.dtype == dtype
    want, _ = reference.dot_product_attention(*[np.array(X)] * 3, np.array(LENGTHS))
    np.testing.assert_allclose(output.astype(mx.float32), want, atol=0.03)
    assert d2l.PositionalEncoding(6, 0.0)(half).dtype == dtype
    assert d2l.RotaryEncoding(6)(half).dtype == dtype


def test_bias_dtype_is_that_of_input() -> None:
    heads = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    half, bias = X.astype(mx.bfloat16), mx.random.normal((2, 5, 5)).astype(mx.bfloat16)
    wide, wide_bias = half.astype(mx.float32), bias.astype(mx.float32)
    want = heads(wide, wide, wide, score_bias=wide_bias)
    np.testing.assert_allclose(heads(half, half, half, score_bias=bias), want, atol=1e-6)


def test_float64_softmax_is_more_precise_than_mlxs() -> None:
    """Compare with MLX's softmax. When the second assertion fails, MLX's is as precise, and we can use it."""
    scores = RNG.normal(size=(1, 3, 40))
    want = reference.softmax(scores)
    double = mx.array(scores, mx.float64)
    np.testing.assert_allclose(d2l.masked_softmax(double), want, rtol=1e-13)
    assert np.abs(np.array(mx.softmax(double, axis=-1)) - want).max() > 1e-11


def test_lazy_call_uses_its_original_arguments() -> None:
    attention = d2l.DotProductAttention(0.0).eval()
    inputs, lens = mx.array(X), mx.array([3, 1])
    output = attention(inputs, inputs, inputs, lens)
    inputs[:], lens[:] = 0, 5
    want, _ = reference.dot_product_attention(*[np.array(X)] * 3, np.array([3, 1]))
    np.testing.assert_allclose(output, want, atol=1e-5)


def test_prepared_batch_sets_sizes_of_trained_model() -> None:
    class Trainer(d2l.Trainer):
        def prepare_batch(self, batch: Any) -> Any:
            return batch["X"], batch["y"]

    model = d2l.Classifier()
    model.net, model.lr = linear(None, 3), 0.1
    batches = [{"X": X, "y": mx.zeros((2, 5), mx.int32)}]
    loaders = SimpleNamespace(train_dataloader=lambda: batches, val_dataloader=lambda: None)
    Trainer(max_epochs=1).fit(model, loaders)
    assert model.net.weight.shape == (3, 6)


# Comparison with MLX's layers for positions


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotary_matches_mlxs_layer(layout: str) -> None:
    ours = d2l.RotaryEncoding(6, base=500, layout=layout, position_scale=0.25)
    theirs = nn.RoPE(6, traditional=layout == "interleaved", base=500, scale=0.25)
    np.testing.assert_allclose(ours(X, offset=3), theirs(X, offset=3), atol=1e-6)


@pytest.mark.parametrize("num_heads", [3, 4])
def test_alibi_slopes_match_mlxs_layer(num_heads: int) -> None:
    distance = mx.abs(mx.arange(3, 5)[:, None] - mx.arange(5))  # the last two of five positions
    bias = -d2l.alibi_slopes(num_heads)[:, None, None] * distance
    scores = mx.array(RNG.normal(size=(2, num_heads, 2, 5)).astype("float32"))
    want = nn.ALiBi()(scores, offset=3)
    np.testing.assert_allclose(scores + bias, want, rtol=1e-6)
    features = 2 * num_heads
    x = mx.array(RNG.normal(size=(2, 5, features)).astype("float32"))
    layer = d2l.MultiHeadAttention(*[features] * 4, num_heads, 0.0)
    layer(x[:, 3:], x, x, score_bias=bias)
    q, k = layer.transpose_qkv(layer.W_q(x[:, 3:])), layer.transpose_qkv(layer.W_k(x))
    scores = mx.unflatten(q @ k.swapaxes(1, 2) / 2**0.5, 0, (2, num_heads))
    weights = mx.softmax(nn.ALiBi()(scores, offset=3), axis=-1)
    np.testing.assert_allclose(layer.attention_weights, weights, atol=1e-6)


# Memory


def measure_peak(function: Callable[..., mx.array], steps: int) -> int:
    """Return the bytes in use at most while the function reads a text of ``steps`` tokens and its length."""
    x = mx.random.normal((1, steps, 4))
    mx.eval(x)
    mx.reset_peak_memory()
    mx.eval(function(x, mx.array([steps - 1])))
    return mx.get_peak_memory()


@pytest.mark.parametrize("masks", [{}, {"causal": True}, {"window": 100}], ids=str)
def test_memory_is_linear_in_length(masks: dict[str, Any]) -> None:
    attention = d2l.DotProductAttention(0.0).eval()
    gradient = mx.grad(lambda x, lens: attention(x, x, x, lens, **masks).sum())
    assert measure_peak(gradient, 6144) < 3 * measure_peak(gradient, 3072)


@pytest.mark.parametrize("name", ["CausalSelfAttention", "LinearAttention"])
def test_memory_of_causal_layer_is_linear_in_length(name: str) -> None:
    options = {"chunk_size": 16} if name == "LinearAttention" else {}
    layer = getattr(d2l, name)(4, 2)
    gradient = mx.grad(lambda x, lens: layer(x, **options).sum())
    assert measure_peak(gradient, 6144) < 3 * measure_peak(gradient, 3072)


# Functions


def test_random_functions_take_shapes_like_pytorchs() -> None:
    for function in (d2l.rand, d2l.randn):
        assert function(2, 3).shape == function((2, 3)).shape == (2, 3)
        assert function(4).shape == (4,)


def test_to_changes_dtype_and_accepts_any_device() -> None:
    assert d2l.to(X, mx.float16).dtype == mx.float16
    assert d2l.to(X, d2l.cpu()) is X


def test_several_last_dimensions_are_normalized_together() -> None:
    layer = d2l.AddNorm([5, 6], 0.0)
    array = np.array(X)
    centred = array - array.mean(axis=(1, 2), keepdims=True)
    want = centred / np.sqrt((centred**2).mean(axis=(1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer(X, mx.zeros_like(X)), want, atol=1e-5)


def test_batches_come_in_same_order_after_same_seed() -> None:
    data = d2l.DataModule()
    data.batch_size = 4

    def load_batches() -> list[Any]:
        mx.random.seed(1)
        loader = data.get_tensorloader((mx.arange(20),), train=True)
        return [batch[0].tolist() for batch in loader]

    assert load_batches() == load_batches()
    rows = [row for batch in load_batches() for row in batch]
    assert sorted(rows) == [*range(20)] != rows


def test_layer_hyperparameters_are_not_counted_twice() -> None:
    model = d2l.Seq2Seq(nn.Linear(2, 3), nn.Linear(3, 2), 1, 0.1)
    assert model.hparams["encoder"] is model.encoder
    assert {name.split(".")[0] for name in parameter_names(model)} == {"encoder", "decoder"}


# Counting


def test_convolution_counts_kernel_and_chain_length() -> None:
    layer = nn.Conv1d(6, 7, 3, padding=1)
    assert d2l.multiply_adds(layer, X) == 2 * 5 * 7 * 3 * 6
    assert d2l.longest_chain(nn.Sequential(layer, nn.ReLU(), nn.Linear(7, 2)), X) == 2


def test_attention_counts_both_products() -> None:
    attention = d2l.DotProductAttention(0.0).eval()
    assert d2l.multiply_adds(attention, X, X, X) == 2 * (2 * 5 * 5 * 6)
    assert d2l.longest_chain(attention, X, X, X) == 2

    def attend_fused(queries: mx.array) -> mx.array:
        heads = queries[:, None]
        return mx.fast.scaled_dot_product_attention(heads, heads, heads, scale=1.0)

    assert d2l.longest_chain(attend_fused, X) == 2


def test_additive_attention_has_pytorchs_order_of_parameters() -> None:
    names = parameter_names(d2l.AdditiveAttention(3, 2, 4, 0.0))
    assert names == ["W_k.weight", "W_q.weight", "w_v.weight"]
