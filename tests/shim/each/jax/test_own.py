"""Tests of features that only JAX and Flax have: transformations, layers as dataclasses, keys, sown values."""

import os
import pickle
import random
import subprocess
import sys
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.errors import InvalidRngError

from d2l_compat import jax as d2l
from tests.shim import reference
from tests.shim.each.cases import LENGTHS, every_kind_of_lengths, make_case
from tests.shim.each.jax.adapter import TWO_CPUS, enable_x64

KEY = jax.random.key(0)
SHORT_FORM = d2l.MultiHeadAttention(6, 3, 0.5)
LONG_FORM = d2l.MultiHeadAttention(6, 6, 6, 6, 3, 0.5)
EACH_FORM = pytest.mark.parametrize("layer", [SHORT_FORM, LONG_FORM], ids=["short", "long"])
LONG_FORM_IN_RELEASE = pytest.mark.parametrize(
    "layer",
    [
        pytest.param(SHORT_FORM, id="short"),
        pytest.param(LONG_FORM, id="long", marks=pytest.mark.release),
    ],
)
LAYERS = {
    "short": SHORT_FORM,
    "long": LONG_FORM,
    "additive": d2l.AdditiveAttention(6, 0.5),
    "causal": d2l.CausalSelfAttention(8, 4, 0.5, num_kv_heads=2, rope=True, window=3, num_sinks=1),
    "additive, with sizes": d2l.AdditiveAttention(5, 6, 7, 0.5),
    "encoder": d2l.TransformerEncoder(7, 8, 16, 2, 2, 0.0, use_bias=True),
    "encoder block": d2l.TransformerEncoderBlock(8, 16, 2, 0.0),
    "linear": d2l.LinearAttention(8, 2, decay=[1.0, 0.5]),
    "network": d2l.PositionWiseFFN(16, 8),
    "recurrent": d2l.Seq2SeqEncoder(7, 6, 4, 2),
    "residual": d2l.AddNorm(0.5),
    "rotary": d2l.RotaryEncoding(6, 9, base=500, layout="halves", position_scale=0.5),
}


def inputs(valid_lens: np.ndarray | None = None) -> tuple[Any, ...]:
    case = make_case(valid_lens, dtype="float32")
    return tuple(None if x is None else jnp.asarray(x) for x in case.arrays)


# Layers are dataclasses


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_layers_can_be_copied_compared_and_pickled(layer: nn.Module) -> None:
    for twin in (layer.clone(), layer.copy(), pickle.loads(pickle.dumps(layer))):
        assert twin == layer
        assert hash(twin) == hash(layer)
        assert repr(twin) == repr(layer)


@EACH_FORM
def test_copy_may_have_other_fields(layer: nn.Module) -> None:
    other = layer.copy(num_heads=2)
    assert (other.num_heads, other.key_size) == (2, layer.key_size)
    assert other != layer
    with pytest.raises(ValueError, match="a multiple of num_heads"):
        layer.copy(num_heads=4)


def test_layers_have_names_inside_other_layers() -> None:
    class Model(nn.Module):
        @nn.compact
        def __call__(self, X: jax.Array) -> jax.Array:
            X = d2l.PositionalEncoding(6, 0.0, max_len=4)(X)
            X, _ = d2l.MultiHeadAttention(6, 3, 0.0)(X, X, X)
            X, _ = d2l.MultiHeadAttention(6, 6, 6, 6, 3, 0.0, name="last")(X, X, X)
            return X

    params = Model().init(KEY, inputs()[0])["params"]
    assert set(params) == {"MultiHeadAttention_0", "last"}
    assert SHORT_FORM.clone(parent=None, name="mine").name == "mine"


def test_subclasses_and_lifted_layers_keep_signatures_and_fields() -> None:
    class Named(d2l.MultiHeadAttention):
        title: str = "none"

    assert Named(5, 6, 7, 8, 2, 0.5, title="long") == Named(8, 2, 0.5, title="long").copy(
        key_size=5, query_size=6, value_size=7
    )
    assert Named(8, 2, 0.5).title == "none"
    assert nn.remat(d2l.MultiHeadAttention)(5, 6, 7, 8, 2, 0.5).value_size == 7


def test_custom_attention_may_lack_masks() -> None:
    class Doubled(d2l.DotProductAttention):
        def __call__(
            self, queries: Any, keys: Any, values: Any, lens: Any = None, training: bool = False
        ) -> Any:
            output, weights = super().__call__(queries, keys, values, lens, training)
            return 2 * output, weights

    class Heads(d2l.MultiHeadAttention):
        Attention = Doubled

    args = inputs(LENGTHS["per example"])
    (want, _), variables = SHORT_FORM.init_with_output(KEY, *args)
    got, _ = Heads(6, 3, 0.5).apply(variables, *args)
    np.testing.assert_allclose(got, 2 * want, atol=1e-6)


# Transformations


@EACH_FORM
@every_kind_of_lengths
def test_jit_and_vmap_match_plain_call(layer: nn.Module, valid_lens: np.ndarray | None) -> None:
    args = inputs(valid_lens)
    output, variables = layer.init_with_output(KEY, *args)
    assert [x.shape for x in output] == [(2, 3, 6), (2, 3, 3, 4)]
    examples = [None if x is None else x[:, None] for x in args]
    mapped = jax.vmap(lambda *x: layer.apply(variables, *x))(*examples)
    for got in (jax.jit(layer.apply)(variables, *args), [x[:, 0] for x in mapped]):
        jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, atol=1e-6), tuple(got), output)


MASKS = pytest.mark.parametrize("with_bias", [False, True], ids=["causal", "causal and bias"])


def draw_bias(*shape: int) -> jax.Array:
    bias = jax.random.normal(jax.random.key(2), shape)
    # The last query sees nothing.
    return bias.at[..., 1, 0].set(-jnp.inf).at[..., -1, :].set(-jnp.inf)


@LONG_FORM_IN_RELEASE
@MASKS
@every_kind_of_lengths
def test_masks_under_jit_vmap_and_grad_match_plain_call(
    layer: nn.Module, with_bias: bool, valid_lens: np.ndarray | None
) -> None:
    args = (*inputs(valid_lens), draw_bias(2, 3, 3, 4) if with_bias else None)
    variables = layer.init(KEY, *args[:3])

    def attend(*args: Any) -> Any:
        *tensors, bias = args
        return layer.apply(variables, *tensors, causal=True, score_bias=bias)

    def differentiate(*args: Any) -> Any:
        return jax.grad(lambda x: (attend(*x)[0] ** 2).sum(), allow_int=True)(args)

    examples = [None if x is None else x[:, None] for x in args]
    for function in attend, differentiate:
        want = function(*args)
        mapped = jax.vmap(function)(*examples)
        for got in (jax.jit(function)(*args), jax.tree.map(lambda x: x[:, 0], mapped)):
            for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
                if w.dtype != jax.dtypes.float0:  # the gradients of lengths
                    np.testing.assert_allclose(g, w, atol=1e-5)
                    assert np.isfinite(g).all()


def test_causal_mask_is_static() -> None:
    args = inputs()
    attend = jax.jit(lambda *x, causal: d2l.DotProductAttention(0.0).apply({}, *x, causal=causal))
    with pytest.raises(TypeError, match=r"causal: got \w*Tracer; need True or False"):
        attend(*args, causal=True)


@pytest.mark.usefixtures("force_blockwise")
@every_kind_of_lengths
def test_long_causal_input_compiles_without_weights(
    valid_lens: np.ndarray | None,
) -> None:
    args = inputs(valid_lens)
    layer = d2l.DotProductAttention(0.0)
    X, *_, lens = [None if x is None else jnp.tile(x, (1, 3, 1)[: x.ndim]) for x in args]

    def pool(X: jax.Array) -> jax.Array:
        return layer.apply({}, X, X, X, lens, causal=True)[0]

    np.testing.assert_allclose(jax.jit(pool)(X), pool(X), atol=1e-6)
    programs = [
        jax.jit(function).lower(X).compile().as_text()
        for function in (pool, lambda X: layer.apply({}, X, X, X, lens, causal=True))
    ]
    assert ["f32[2,9,9]" in program for program in programs] == [False, True]


@pytest.mark.parametrize("with_bias", [False, True], ids=["window", "window and bias"])
def test_window_under_jit_vmap_and_grad_matches_plain_call(with_bias: bool) -> None:
    layer = d2l.DotProductAttention(0.0)
    X = jax.random.normal(KEY, (2, 150, 4))
    args = X, X + 1, X, draw_bias(2, 150, 150) if with_bias else None

    def attend(*args: Any) -> jax.Array:
        *tensors, bias = args
        return layer.apply({}, *tensors, np.array([150, 0]), window=5, score_bias=bias)[0]

    def differentiate(*args: Any) -> Any:
        return jax.grad(lambda x: (attend(*x) ** 2).sum())(args)

    for function in attend, differentiate:
        got, want = jax.jit(function)(*args), function(*args)
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, atol=1e-5)
            assert np.isfinite(g).all()
            assert not g[1].any()


def test_window_compiles_without_matrix_of_all_keys() -> None:
    layer = d2l.DotProductAttention(0.0)
    X = jnp.ones((2, 150, 4))

    def pool(X: jax.Array) -> jax.Array:
        return layer.apply({}, X, X, X, window=5)[0]

    def differentiate(X: jax.Array) -> jax.Array:
        return jax.grad(lambda X: pool(X).sum())(X)

    for function in pool, differentiate:
        assert "150,150" not in jax.jit(function).lower(X).compile().as_text()


@pytest.mark.parametrize("layer", [SHORT_FORM, d2l.CausalSelfAttention(6, 3, 0.5, window=5)])
def test_dropout_in_blocks(layer: nn.Module) -> None:
    X = jax.random.normal(KEY, (2, 150, 6))
    is_heads = isinstance(layer, d2l.MultiHeadAttention)
    attend = partial(layer.apply, layer.init(KEY, *[X] * (3 if is_heads else 1)))

    def pool(**options: Any) -> jax.Array:
        return attend(X, X, X, window=5, **options)[0] if is_heads else attend(X, **options)

    first, second = (pool(training=True, rngs={"dropout": jax.random.key(i)}) for i in (1, 2))
    assert jnp.isfinite(first).all()
    assert not jnp.array_equal(first, second)
    assert not jnp.array_equal(first, pool())


def test_bias_dtype_is_that_of_input() -> None:
    half = [x.astype(jnp.bfloat16) for x in inputs()[:3]]
    bias = draw_bias(3, 3, 4).astype(jnp.bfloat16)
    variables = SHORT_FORM.init(KEY, *half)
    output, _ = SHORT_FORM.apply(variables, *half, score_bias=bias)
    wide = [np.asarray(x, "float64") for x in half]  # NumPy arrays, which become float32
    want, _ = SHORT_FORM.apply(variables, *wide, score_bias=np.asarray(bias, "float64"))
    np.testing.assert_allclose(output, want, atol=1e-6)


def test_known_lengths_are_checked_under_jit() -> None:
    X, negative = jnp.zeros((2, 3, 6)), np.array([-1, 1])
    variables = SHORT_FORM.init(KEY, X, X, X)
    for lens in (negative, jnp.asarray(negative)):
        with pytest.raises(ValueError, match="valid_lens: got a length of -1"):
            jax.jit(lambda X, lens=lens: SHORT_FORM.apply(variables, X, X, X, lens))(X)
    weights = jax.jit(d2l.masked_softmax)(X, negative + 9)  # traced, so unknown
    np.testing.assert_allclose(weights, 1 / 6, rtol=1e-6)


def test_parameters_of_masked_attention_get_finite_gradients() -> None:
    args = inputs(LENGTHS["per query"])
    variables = SHORT_FORM.init(KEY, *args)
    gradients = jax.grad(lambda v: (SHORT_FORM.apply(v, *args)[0] ** 2).sum())(variables)
    assert all(jnp.isfinite(g).all() and g.any() for g in jax.tree.leaves(gradients))
    scores = jnp.where(jnp.arange(4) < 2, args[0][..., :1], jnp.nan)
    gradient = jax.grad(lambda s: (d2l.masked_softmax(s, np.array([2, 0])) ** 2).sum())(scores)
    assert jnp.isfinite(gradient).all()
    assert not gradient[..., 2:].any()
    assert not gradient[1].any()


def test_traced_offset_beyond_end_gives_nan() -> None:
    layer = d2l.PositionalEncoding(6, 0.0, max_len=5)
    X = jnp.zeros((1, 2, 6))
    encode = jax.jit(lambda offset: layer.apply({}, X, offset=offset))
    np.testing.assert_array_equal(encode(3), layer.apply({}, X, offset=3))
    for offset, is_nan in ((4, [False, True]), (-1, [True, False]), (9, [True, True])):
        np.testing.assert_array_equal(jnp.isnan(encode(offset))[0].all(axis=1), is_nan)
    with pytest.raises(TypeError, match="offset: got"):
        encode(1.0)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_traced_rotary_offset_beyond_end_gives_nan(layout: str) -> None:
    layer = d2l.RotaryEncoding(6, 5, layout=layout)
    X = inputs()[0]
    rotate = jax.jit(lambda offset: layer.apply({}, X, offset=offset))
    np.testing.assert_allclose(rotate(2), layer.apply({}, X, offset=2), atol=1e-6)
    for offset, is_nan in ((3, [False, False, True]), (-1, [True, False, False])):
        np.testing.assert_array_equal(jnp.isnan(rotate(offset))[0].all(axis=1), is_nan)


# Keys, sown values, dtypes, flags


@pytest.mark.parametrize(
    ("layer", "num_inputs"),
    [
        (d2l.PositionalEncoding(6, 0.0), 1),
        (d2l.DotProductAttention(0.0), 3),
        (SHORT_FORM, 3),
    ],
    ids=["encoding", "dot product", "multi-head"],
)
def test_training_must_be_true_or_false(layer: nn.Module, num_inputs: int) -> None:
    X = [jnp.zeros((2, 3, 6))] * num_inputs
    for training in (1, None, jnp.array(True)):
        with pytest.raises(TypeError, match=r"training: got .*; need True or False"):
            layer.init(KEY, *X, training=training)


def test_offset_passed_as_training_is_rejected() -> None:
    layer = d2l.PositionalEncoding(6, 0.0)
    X = jnp.zeros((2, 3, 6))
    with pytest.raises(TypeError, match="training: got int; need True or False"):
        layer.apply({}, X, 2)
    with pytest.raises(TypeError, match="positional argument"):
        layer.apply({}, X, False, 2)


def test_dropout_follows_key_named_dropout() -> None:
    args = inputs()
    variables = SHORT_FORM.init(KEY, *args)
    rngs = {"dropout": jax.random.key(1)}
    first, second = (SHORT_FORM.apply(variables, *args, training=True, rngs=rngs) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    assert not jnp.array_equal(first[0], SHORT_FORM.apply(variables, *args)[0])
    with pytest.raises(InvalidRngError, match="dropout"):
        SHORT_FORM.apply(variables, *args, training=True)


def test_get_key_follows_pythons_seed() -> None:
    random.seed(3)
    seeds = [random.randint(0, 1_000_000) for _ in range(2)]
    random.seed(3)
    assert [d2l.get_seed(), d2l.get_seed()] == seeds
    random.seed(3)
    keys = [d2l.get_key(), d2l.get_key()]
    np.testing.assert_array_equal(keys, [*map(jax.random.PRNGKey, seeds)])
    assert not jnp.array_equal(*keys)


def test_encoding_is_sown_and_is_not_a_parameter() -> None:
    layer = d2l.PositionalEncoding(7, 0.0, max_len=9)
    X = jnp.zeros((1, 2, 7), jnp.bfloat16)
    assert not layer.init(KEY, X)
    total, sown = layer.apply({}, X, mutable="intermediates")
    (P,) = sown["intermediates"]["P"]
    assert (P.shape, P.dtype, total.dtype) == ((1, 9, 7), X.dtype, X.dtype)
    np.testing.assert_allclose(P[0], reference.positional_encoding(9, 7), atol=2**-8)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_masked_softmax_works_in_half_precision(dtype: Any) -> None:
    scores = jnp.array([[[1.0, 2.0, 3.0], [-9.0, 9.0, 0.0]]], dtype)
    got = d2l.masked_softmax(scores, jnp.array([[2, 0]]))
    assert got.dtype == dtype
    want = reference.softmax(np.float64(scores), np.array([[2, 0]]))
    np.testing.assert_allclose(np.float64(got), want, atol=jnp.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("dtype", "want"), [("bfloat16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_heads_compute_in_wider_dtype_of_weights_and_input(dtype: str, want: str) -> None:
    with enable_x64(True):
        X = jnp.ones((2, 3, 6), dtype)
        (output, weights), variables = SHORT_FORM.init_with_output(KEY, X, X, X)
    assert all(W.dtype == "float32" for W in jax.tree.leaves(variables))
    assert output.dtype == weights.dtype == want


def test_float64_arrays_become_float32() -> None:
    X, bias = np.zeros((2, 3, 6)), np.zeros((3, 3))
    layer = d2l.DotProductAttention(0.0)
    output, _ = layer.apply({}, jnp.asarray(X), X, X, score_bias=bias)
    assert output.dtype == jnp.float32
    assert d2l.RotaryEncoding(6).apply({}, X).dtype == jnp.float32


# Devices and array functions


@pytest.mark.parametrize("gpus", [[], ["first"], ["first", "second"]], ids=len)
def test_gpus_match_jax_devices(gpus: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def list_devices(kind: str) -> list[str]:
        if kind == "gpu" and not gpus:
            raise RuntimeError("Unknown backend gpu")
        return gpus if kind == "gpu" else ["the CPU"]

    monkeypatch.setattr(jax, "devices", list_devices)
    assert d2l.num_gpus() == len(gpus)
    assert d2l.try_all_gpus() == (gpus or ["the CPU"])
    assert [d2l.try_gpu(i) for i in range(3)] == (gpus + ["the CPU"] * 3)[:3]
    assert [d2l.gpu(i) for i in range(len(gpus))] == gpus
    with pytest.raises(ValueError, match=f"gpu: got 2; need one of the {len(gpus)} available GPUs"):
        d2l.gpu(2)


SECOND_DEVICE_PROGRAM = """
from d2l_compat import jax as d2l
import jax, jax.numpy as jnp

first, second = jax.devices()
heads, encoding = d2l.MultiHeadAttention(100, 5, 0.5), d2l.PositionalEncoding(100, 0.5)
rotary, bias = d2l.RotaryEncoding(100), -d2l.alibi_slopes(5)[:, None, None] * jnp.ones((4, 4))
X = jax.random.normal(jax.random.key(0), (2, 4, 100))
args = heads.init(jax.random.key(1), X, X, X), X, jnp.array([3, 2])


def compute(variables, X, lens):
    attended = heads.apply(variables, X, X, X, lens)
    masked = heads.apply(variables, X, X, X, lens, causal=True, score_bias=bias)
    added, rotated = encoding.apply({}, X), rotary.apply({}, X)
    return *attended, *masked, added, rotated, d2l.masked_softmax(X, lens)


expected, results = (compute(*jax.device_put(args, device)) for device in (first, second))
for a, b in zip(expected, results, strict=True):
    assert (a.devices(), b.devices()) == ({first}, {second})
    assert (jax.device_put(a, second) == b).all()
print("compared:", len(results))
"""


@pytest.mark.release  # tests/shim/each/jax/test_training.py trains on a second device
def test_layers_stay_on_second_device() -> None:
    process = subprocess.run(
        [sys.executable, "-c", SECOND_DEVICE_PROGRAM],
        env=os.environ | TWO_CPUS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "compared: 7" in process.stdout, process.stderr


def test_looking_for_gpus_prints_nothing() -> None:
    program = "from d2l_compat import jax as d2l; d2l.try_gpu(), d2l.try_all_gpus(), d2l.cpu()"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert process.stdout + process.stderr == b""


class OwnProjections(d2l.MultiHeadAttention):
    """A layer whose author has other projections: a narrower one, one with an activation, and none at all."""

    def setup(self) -> None:
        self.attention = d2l.DotProductAttention(self.dropout)
        self.W_q = nn.Sequential([nn.Dense(4), nn.tanh])
        self.W_k = nn.Dense(4)
        self.W_v = lambda V: V
        self.W_o = nn.DenseGeneral(6)


@pytest.mark.parametrize("args", [(8, 2, 0.0), (8, 8, 8, 8, 2, 0.0)])
def test_subclass_may_have_other_projections(args: tuple[Any, ...]) -> None:
    X, Z = make_case(sizes=(8, 8, 8), dtype="float32").arrays[:2]
    (output, weights), variables = OwnProjections(*args).init_with_output(KEY, X, Z, Z)
    params = variables["params"]
    Q = np.tanh(X @ params["W_q"]["layers_0"]["kernel"])
    K = Z @ params["W_k"]["kernel"]
    parts = [
        reference.dot_product_attention(
            Q[..., i : i + 2], K[..., i : i + 2], Z[..., 2 * i :][..., :4]
        )
        for i in (0, 2)
    ]
    pooled = np.concatenate([part for part, _ in parts], axis=-1)
    np.testing.assert_allclose(output, pooled @ params["W_o"]["kernel"], atol=1e-5)
    np.testing.assert_allclose(weights[:, 1], parts[1][1], atol=1e-5)
