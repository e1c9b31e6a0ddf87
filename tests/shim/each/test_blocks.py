"""Tests of Transformer blocks, of models made of them, and of the conversion of weights, against the reference."""

from typing import Any

import numpy as np
import pytest

from tests.shim import reference
from tests.shim.blocks import NUM_HEADS, Block
from tests.shim.each.adapter import Adapter, Layer

WIDTH, FFN, VOCAB = 16, 24, 11
LENS, MEMORY_LENS = np.array([7, 4], "int32"), np.array([2, 5], "int32")
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
EPSILON = 1e-3  # large enough to make a difference
BLOCKS: list[dict[str, Any]] = [
    {},
    {"norm_first": False, "activation": "relu"},
    {"norm": "rms", "activation": "swiglu", "bias": False, "positions": "rope", "num_kv_heads": 2},
    {"norm": "rms", "norm_first": False, "positions": "alibi"},
    {"causal": True, "positions": "alibi", "window": 3, "num_sinks": 1, "num_kv_heads": 1},
    {"causal": True, "norm": "rms", "activation": "swiglu", "positions": "rope"},
    {"causal": True, "cross_attention": True, "num_kv_heads": 2},
    {"cross_attention": True, "norm_first": False, "activation": "swiglu", "bias": False},
]


def draw(*shape: int, dtype: str = "float64", seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def build(
    adapter: Adapter, dtype: str = "float64", **options: Any
) -> tuple[Layer, Block, dict[str, Any]]:
    """Return a block with random parameters, its reference, and a memory if it reads one."""
    options = {"norm_epsilon": EPSILON} | options
    layer = adapter.build_block(WIDTH, NUM_HEADS, FFN, dtype=dtype, **options)
    memory: dict[str, Any] = {}
    if options.get("cross_attention"):
        memory = {"memory": draw(2, 5, WIDTH, dtype=dtype), "memory_valid_lens": MEMORY_LENS}
    layer.randomize(draw(2, 7, WIDTH, dtype=dtype), None, **memory)
    return layer, Block(layer, **options), memory


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("options", BLOCKS, ids=str)
def test_block_equals_reference(adapter: Adapter, options: dict[str, Any], dtype: str) -> None:
    layer, block, memory = build(adapter, dtype, **options)
    X = draw(2, 7, WIDTH, dtype=dtype)
    want = block(X, None, *memory.values())
    atol = TOLERANCE[dtype] * np.abs(want).max()
    np.testing.assert_allclose(layer(X, None, **memory), want, atol=atol)
    want = block(X, LENS, *memory.values())
    got = layer(X, LENS, **memory)
    np.testing.assert_allclose(got[0], want[0], atol=atol)
    np.testing.assert_allclose(got[1, :4], want[1, :4], atol=atol)
    assert np.isfinite(got).all()  # also where there is only padding
    assert np.isfinite(layer(X, 0 * LENS, **memory)).all()


@pytest.mark.parametrize("shape", [(7, 7), (NUM_HEADS, 7, 7), (2, NUM_HEADS, 7, 7)], ids=str)
@pytest.mark.parametrize("options", [BLOCKS[0], BLOCKS[2], BLOCKS[4]], ids=str)
def test_score_bias_is_added(
    adapter: Adapter, options: dict[str, Any], shape: tuple[int, ...]
) -> None:
    layer, block, _ = build(adapter, **options)
    X, score_bias = draw(2, 7, WIDTH), draw(*shape, seed=2)
    score_bias[..., 4, 3] = -np.inf
    score_bias[..., 2, :] = -np.inf  # a query that sees no key, whose pooling is zero
    want = block(X, None, score_bias=score_bias)
    np.testing.assert_allclose(layer(X, None, score_bias=score_bias), want, atol=1e-9)


@pytest.mark.parametrize("options", [BLOCKS[i] for i in (3, 4, 6)], ids=str)
def test_gradients_match_differences(adapter: Adapter, options: dict[str, Any]) -> None:
    layer, block, memory = build(adapter, **options)
    X, direction = draw(2, 3, WIDTH), draw(2, 3, WIDTH, seed=3)
    got = layer.gradients(direction, X, None, **memory)
    want = reference.gradient(
        lambda x: float((block(x, None, *memory.values()) * direction).sum()), X
    )
    np.testing.assert_allclose(got[0], want, atol=1e-6)


def test_dropout_acts_only_in_training(adapter: Adapter) -> None:
    layer = adapter.build_block(WIDTH, NUM_HEADS, FFN, 0.5, dtype="float32")
    X = draw(2, 7, WIDTH, dtype="float32")
    layer.randomize(X, None)
    np.testing.assert_array_equal(layer(X, None), layer(X, None))
    dropped = [layer(X, None, training=True) - X for _ in range(2)]
    assert not np.array_equal(*dropped)
    assert 0.15 < (np.abs(dropped[0]) < 1e-6).mean() < 0.35  # both layers' results were dropped


@pytest.mark.parametrize(
    "options", [{}, {"causal": True}, {"causal": True, "positions": "alibi"}], ids=str
)
def test_attention_weights_are_dropped(adapter: Adapter, options: dict[str, Any]) -> None:
    layer, block, _ = build(adapter, "float32", dropout=0.5, **options)
    X = draw(2, 7, WIDTH, dtype="float32")
    added = layer(X, None, training=True) - X
    # Without dropout of weights, this is what is added to a quarter of the numbers: the network's result is dropped.
    attended = 2 * block.attend(block.normalize("norm1", X.astype(float)), None, 0.0)
    assert np.isclose(added, attended, rtol=1e-3).mean() < 0.05


# Models


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", None])
def test_encoder_equals_its_blocks(adapter: Adapter, positions: str | None) -> None:
    options = {"norm_epsilon": EPSILON, "norm_first": positions is not None}
    layer = adapter.build_block_encoder(VOCAB, 2, options, positions=positions, max_len=9)
    tokens = np.array([[1, 2, 3, 4, 5, 6, 10], [4, 3, 2, 1, 0, 0, 0]], "int32")
    layer.randomize(tokens, LENS)
    X = layer.parameters("embedding")["table"].astype(float)[tokens]
    if positions == "sinusoidal":
        X = X * np.sqrt(WIDTH) + reference.positional_encoding(7, WIDTH)
    elif positions == "learned":
        X = X + layer.parameters("position_embedding")["table"][:7]
    for i in range(2):
        X = Block(layer, f"blks.{i}.", **options)(X, LENS)
    if options["norm_first"]:
        X = Block(layer, **options).normalize("norm", X)
    got = layer(tokens, LENS)
    np.testing.assert_allclose(got[0], X[0], atol=1e-9)
    np.testing.assert_allclose(got[1, :4], X[1, :4], atol=1e-9)


def test_training_drops_the_embedding(adapter: Adapter) -> None:
    layer = adapter.build_block_encoder(VOCAB, 1, {}, dropout=0.5)
    tokens = np.array([[1, 2, 3, 4, 5, 6, 10]], "int32")
    layer.randomize(tokens, None)
    want = layer(tokens, None)
    assert np.abs(layer(tokens, None, training=True) - want).max() > 0.1
    np.testing.assert_array_equal(layer(tokens, None), want)


def test_decoder_equals_its_blocks(adapter: Adapter) -> None:
    options = {"norm_epsilon": EPSILON, "causal": True}
    layer = adapter.build_block_decoder(VOCAB, 2, options, positions=None)
    tokens = np.array([[1, 2, 3, 4, 5, 6, 10]], "int32")
    layer.randomize(tokens, None)
    X = layer.parameters("embedding")["table"].astype(float)[tokens]
    for i in range(2):
        X = Block(layer, f"blks.{i}.", **options)(X)
    dense = layer.parameters("dense")
    X = Block(layer, **options).normalize("norm", X) @ dense["weight"] + dense["bias"]
    np.testing.assert_allclose(layer(tokens, None), X, atol=1e-9)


DECODERS: list[tuple[str | None, dict[str, Any]]] = [
    ("sinusoidal", {}),
    ("learned", {"num_kv_heads": 2, "window": 3, "num_sinks": 1}),
    (
        None,
        {
            "positions": "rope",
            "num_kv_heads": 1,
            "norm": "rms",
            "activation": "swiglu",
            "bias": False,
        },
    ),
    (None, {"positions": "alibi", "window": 4, "cross_attention": True, "norm_first": False}),
]


@pytest.mark.parametrize(("positions", "options"), DECODERS, ids=str)
def test_decoder_with_caches_equals_whole_text(
    adapter: Adapter, positions: str | None, options: dict[str, Any]
) -> None:
    layer = adapter.build_block_decoder(VOCAB, 2, options, positions=positions, max_len=13)
    tokens = np.random.default_rng(0).integers(0, VOCAB, (2, 13)).astype("int32")
    memory: dict[str, Any] = {}
    if "cross_attention" in options:
        memory = {"memory": draw(2, 5, WIDTH), "memory_valid_lens": MEMORY_LENS}
    layer.randomize(tokens, None, **memory)
    want = layer(tokens, None, **memory)
    assert want.shape == (2, 13, VOCAB)
    changed = tokens.copy()
    changed[:, 8] = (tokens[:, 8] + 1) % VOCAB
    is_changed = (np.abs(layer(changed, None, **memory) - want) > 1e-9).any(axis=(0, 2))
    assert not is_changed[:8].any()
    assert is_changed[8]
    for chunks in [1] * 13, [3, 3, 3, 3, 1], [13], [2, 8, 3]:
        decoder = adapter.make_caches(layer, 2, 13)
        ends = np.cumsum(chunks)
        parts = [
            decoder(tokens[:, end - n : end], None, **memory)
            for end, n in zip(ends, chunks, strict=True)
        ]
        np.testing.assert_allclose(np.concatenate(parts, 1), want, atol=1e-9)
    # Texts of different lengths: the second has two tokens fewer.
    decoder = adapter.make_caches(layer, 2, 13)
    decoder(tokens[:, :7], np.array([7, 5], "int32"), **memory)
    both = np.stack([tokens[0, 7:9], tokens[1, 5:7]])
    got = decoder(both, None, **memory)
    np.testing.assert_allclose(got[0], want[0, 7:9], atol=1e-9)
    np.testing.assert_allclose(got[1], want[1, 5:7], atol=1e-9)


@pytest.mark.parametrize(("positions", "options"), DECODERS, ids=str)
def test_parameters_are_as_many_as_the_formula_says(
    adapter: Adapter, positions: str | None, options: dict[str, Any]
) -> None:
    decoder = adapter.build_block_decoder(VOCAB, 3, options, positions=positions, max_len=9)
    encoder = adapter.build_block_encoder(VOCAB, 3, {"bias": False}, positions=positions, max_len=9)
    tokens = np.zeros((1, 2), "int32")
    memory = {"memory": draw(1, 5, WIDTH)} if "cross_attention" in options else {}
    decoder.randomize(tokens, None, **memory)
    encoder.randomize(tokens, None)
    sizes = VOCAB, 3, WIDTH, NUM_HEADS, FFN
    learned = 9 if positions == "learned" else 0
    counted = {k: x for k, x in options.items() if k not in ("positions", "window", "num_sinks")}
    count = adapter.d2l.count_transformer_parameters
    assert decoder.num_parameters == count(*sizes, learned_positions=learned, **counted)
    assert encoder.num_parameters == count(
        *sizes, learned_positions=learned, bias=False, output=False
    )


def test_published_models_have_the_parameters_of_the_formula(adapter: Adapter) -> None:
    count = adapter.d2l.count_transformer_parameters
    llama = count(
        128256, 32, 4096, 32, 14336, num_kv_heads=8, norm="rms", activation="swiglu", bias=False
    )
    assert llama == 8_030_261_248  # Llama 3 8B
    # GPT-2's output shares the embedding.
    assert count(50257, 12, 768, 12, 3072, learned_positions=1024, output=False) == 124_439_808


def test_seq2seq_predicts_what_it_would_without_caches(adapter: Adapter) -> None:
    model = adapter.build_block_seq2seq(VOCAB)
    source = np.random.default_rng(2).integers(0, VOCAB, (8, 5)).astype("int32")
    lens = np.array([5, 2, 5, 4, 3, 5, 1, 5], "int32")
    tokens = np.arange(8, dtype="int32")[:, None]
    model.randomize(source, tokens, lens)
    got, weights = adapter.predict_with_blocks(model, (source, tokens, lens, tokens), 6)
    for _ in range(6):
        logits = model(source, tokens, lens)
        tokens = np.concatenate([tokens, logits[:, -1:].argmax(-1).astype("int32")], axis=1)
    np.testing.assert_array_equal(got, tokens[:, 1:])
    # The axes are steps, blocks, batch, heads, queries and keys.
    assert np.shape(weights) == (6, 1, 8, NUM_HEADS, 1, 5)
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-5)
    # A token that repeats is read at another position, and after other tokens.
    assert np.abs(np.diff(weights, axis=0)).max(axis=(1, 2, 3, 4, 5)).min() > 1e-3
    assert not np.asarray(weights)[:, :, 1, :, :, 2:].any()


def test_seq2seq_does_not_see_padding_of_the_source(adapter: Adapter) -> None:
    model = adapter.build_block_seq2seq(VOCAB)
    source = np.array([[1, 2, 3, 4, 5], [5, 4, 0, 0, 0]], "int32")
    changed = np.array([[1, 2, 3, 4, 5], [5, 4, 9, 8, 7]], "int32")
    lens = np.array([5, 2], "int32")
    tokens = np.array([[1, 3], [2, 4]], "int32")
    model.randomize(source, tokens, lens)
    np.testing.assert_allclose(
        model(changed, tokens, lens), model(source, tokens, lens), rtol=1e-4, atol=1e-4
    )
    (got, weights), (want, want_weights) = (
        adapter.predict_with_blocks(model, (x, tokens, lens, tokens), 3) for x in (changed, source)
    )
    np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(weights, want_weights, atol=1e-5)


def test_decoder_generates_with_caches(adapter: Adapter) -> None:
    layer = adapter.build_block_decoder(VOCAB, 2, {"positions": "rope"}, positions=None)
    prompts = [[1, 2, 3], [4]]
    layer.randomize(np.array([[1, 2, 3]], "int32"), None)
    decoder = adapter.make_caches(layer, 2, 20)
    predict = adapter.predict_function(decoder)
    texts = adapter.d2l.generate(predict, prompts, 6, top_k=1)
    for prompt, text in zip(prompts, texts, strict=True):
        whole = np.array([prompt + text], "int32")
        likeliest = layer(whole, None).argmax(-1)[0]
        np.testing.assert_array_equal(likeliest[len(prompt) - 1 : -1], text)


# Bad input; the arguments of the wrong type or range are in rules.py


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"norm": "batch"}, "norm: got 'batch'; need one of 'layer', 'rms'"),
        ({"activation": "silu"}, "activation: got 'silu'; need one of 'relu', 'gelu', 'swiglu'"),
        ({"positions": "sinusoidal"}, "positions: got 'sinusoidal'; need one of None, 'rope', 'al"),
        ({"window": 3}, "window: got 3 without a causal mask; need causal=True"),
        ({"norm_epsilon": 0}, "norm_epsilon: got 0; need a number above 0"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(
    adapter: Adapter, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=f"^{error}"):
        adapter.d2l.TransformerBlock(WIDTH, NUM_HEADS, FFN, **options)


def test_models_refuse_blocks_that_do_not_fit(adapter: Adapter) -> None:
    d2l = adapter.d2l
    block, wider = d2l.TransformerBlock(WIDTH, NUM_HEADS, FFN), d2l.TransformerBlock(32, 4, 8)
    with pytest.raises(ValueError, match=r"^blocks: got a block with causal=False; need a list"):
        d2l.BlockDecoder(VOCAB, [block])
    with pytest.raises(ValueError, match=r"^blocks: got blocks of 16 and 32 features; need one n"):
        d2l.BlockEncoder(VOCAB, [block, wider])
    with pytest.raises(ValueError, match=r"^blocks: got an empty list; need a list of"):
        d2l.BlockEncoder(VOCAB, [])
    with pytest.raises(TypeError, match=r"^blocks: got TransformerBlock; need a list of"):
        d2l.BlockEncoder(VOCAB, block)


def test_memory_is_given_exactly_if_it_is_read(adapter: Adapter) -> None:
    X, memory = draw(2, 3, WIDTH), draw(2, 5, WIDTH)
    layer, _, _ = build(adapter)
    with pytest.raises(ValueError, match=r"^memory: got a memory for a block without cross-atten"):
        layer(X, None, memory=memory)
    with pytest.raises(ValueError, match=r"^memory_valid_lens: got lengths without a memory"):
        layer(X, None, memory_valid_lens=MEMORY_LENS)
    layer, _, _ = build(adapter, cross_attention=True)
    with pytest.raises(ValueError, match=r"^memory: got None; need"):
        layer(X, None)


def test_refused_call_leaves_the_caches_as_they_were(adapter: Adapter) -> None:
    options = {"cross_attention": True}
    layer = adapter.build_block_decoder(VOCAB, 2, options, positions="learned", max_len=5)
    tokens, memory = np.array([[1, 2, 3, 4, 5, 6]], "int32"), draw(1, 5, WIDTH)
    layer.randomize(tokens[:, :4], None, memory=memory)
    decoder = adapter.make_caches(layer, 1, 4)
    decoder(tokens[:, :3], None, memory=memory)
    for steps, bad, error in [
        (2, memory, "cache: got 5 tokens; need at most 4"),
        (3, memory, "X: got 6 positions; need at most max_len = 5"),
        (1, memory[:, :, :8], r"memory: got shape \(1, 5, 8\); need a last dimension of 16"),
        (1, None, "memory: got None; need"),
    ]:
        with pytest.raises(ValueError, match=f"^{error}"):
            decoder(tokens[:, 3 : 3 + steps], None, memory=bad)
    with pytest.raises(ValueError, match=r"^X: got a token of 11; need tokens from 0 to 10"):
        decoder(tokens[:, 3:4] + 7, None, memory=memory)
    want = layer(tokens[:, :4], None, memory=memory)
    got = decoder(tokens[:, 3:4], None, memory=memory)
    np.testing.assert_allclose(got[:, 0], want[:, 3], atol=1e-9)


def test_cache_needs_a_causal_block_and_no_bias(adapter: Adapter) -> None:
    X = draw(2, 3, WIDTH)
    layer, _, _ = build(adapter)
    with pytest.raises(ValueError, match=r"^cache: got a cache for attention that is not causal"):
        adapter.make_cache(layer, 2, 4)(X)
    layer, _, _ = build(adapter, causal=True)
    cache = adapter.make_cache(layer, 2, 4).cache
    with pytest.raises(ValueError, match=r"^score_bias: got a bias together with a cache; need on"):
        layer(X, None, cache=cache, score_bias=draw(3, 3))


# Conversion of weights; that of the framework's own layers is tested with the framework


LIKE_D2L = {"norm_first": False, "activation": "relu"}


def convert_both_ways(
    adapter: Adapter, ours: Layer, other: Layer, *inputs: Any, atol: float = 1e-5
) -> None:
    """Check that each layer computes what the other did, once it has the other's weights."""
    ours.randomize(*inputs)
    want = ours(*inputs)
    other(*inputs)  # its first call sets its sizes
    adapter.convert_weights(ours, other)
    np.testing.assert_allclose(other(*inputs), want, atol=atol * np.abs(want).max())
    other.randomize(*inputs)
    want = other(*inputs)
    assert np.abs(ours(*inputs) - want).max() > 0.1
    adapter.convert_weights(other, ours)
    np.testing.assert_allclose(ours(*inputs), want, atol=atol * np.abs(want).max())


def test_weights_of_d2l_block_convert_both_ways(adapter: Adapter) -> None:
    X = draw(2, 7, WIDTH, dtype="float32")
    args = adapter.block_args(WIDTH, FFN, NUM_HEADS)
    options = LIKE_D2L | {"norm_epsilon": adapter.NORM_EPSILON}
    ours = adapter.build_block(WIDTH, NUM_HEADS, FFN, dtype="float32", **options)
    convert_both_ways(adapter, ours, adapter.build("TransformerEncoderBlock", *args, True), X, None)


def test_weights_of_d2l_encoder_convert_both_ways(adapter: Adapter) -> None:
    tokens = np.array([[1, 2, 3, 4, 5, 6, 10], [4, 3, 2, 1, 0, 0, 0]], "int32")
    options = LIKE_D2L | {"norm_epsilon": adapter.NORM_EPSILON}
    blocks = [adapter.d2l.TransformerBlock(WIDTH, NUM_HEADS, FFN, **options) for _ in range(2)]
    ours = adapter.with_dtype(adapter.d2l.BlockEncoder(VOCAB, blocks), "float32")
    args = VOCAB, WIDTH, FFN, NUM_HEADS, 2, 0.0, True
    convert_both_ways(adapter, ours, adapter.build("TransformerEncoder", *args), tokens, None)

    blocks[1] = adapter.d2l.TransformerBlock(WIDTH, NUM_HEADS, FFN, norm_first=False)
    other = adapter.with_dtype(adapter.d2l.BlockEncoder(VOCAB, blocks), "float32")
    other.randomize(tokens, None)
    with pytest.raises(ValueError, match=r"^target: got a layer with .*activation='gelu'; need .*"):
        adapter.convert_weights(ours, other)


def test_all_weights_of_shim_layers_convert(adapter: Adapter) -> None:
    options = {"cross_attention": True, "activation": "swiglu", "norm_epsilon": EPSILON}
    layer, _, memory = build(adapter, "float32", **options)
    inputs = draw(2, 7, WIDTH, dtype="float32"), None
    other = adapter.build_block(WIDTH, NUM_HEADS, FFN, dtype="float32", **options)
    want = layer(*inputs, **memory)
    assert np.abs(other(*inputs, **memory) - want).max() > 0.1
    adapter.convert_weights(layer, other)
    np.testing.assert_array_equal(other(*inputs, **memory), want)
    positions = "learned", "learned", "sinusoidal"
    encoder, same, other = (
        adapter.build_block_encoder(VOCAB, 1, {}, positions=each) for each in positions
    )
    inputs = np.array([[1, 2, 3, 4, 5, 6, 10]], "int32"), None
    encoder.randomize(*inputs)
    want = encoder(*inputs)
    assert np.abs(same(*inputs) - want).max() > 0.1
    adapter.convert_weights(encoder, same)
    np.testing.assert_allclose(same(*inputs), want, atol=1e-12)
    other(*inputs)
    with pytest.raises(ValueError, match=r"^target: got a layer with embedding positions='sinus"):
        adapter.convert_weights(encoder, other)


def test_weights_of_attention_convert_both_ways(adapter: Adapter) -> None:
    X = draw(2, 5, WIDTH, dtype="float32")
    ours = adapter.build_causal(WIDTH, NUM_HEADS, 0.0, True, dtype="float32")
    other = adapter.build_multi_head(WIDTH, NUM_HEADS, 0.0, True, dtype="float32")
    for layer in (ours, other):
        layer.randomize(*([X] if layer is ours else [X] * 3))
    want = ours(X)
    adapter.convert_weights(ours, other)
    np.testing.assert_allclose(other(X, X, X, causal=True), want, atol=1e-5)
    other.randomize(X, X, X)
    adapter.convert_weights(other, ours)
    np.testing.assert_allclose(ours(X), other(X, X, X, causal=True), atol=1e-5)


def test_missing_bias_becomes_zero_but_none_is_lost(adapter: Adapter) -> None:
    X = draw(2, 5, WIDTH, dtype="float32")
    layers = [
        adapter.build_causal(WIDTH, NUM_HEADS, 0.0, bias, dtype="float32") for bias in (False, True)
    ]
    for layer in layers:
        layer.randomize(X)
    without, with_bias = layers
    with pytest.raises(ValueError, match=r"^target: got a layer without W_.\.bias; need one, as"):
        adapter.convert_weights(with_bias, without)
    adapter.convert_weights(without, with_bias)
    np.testing.assert_allclose(with_bias(X), without(X), atol=1e-6)
    adapter.convert_weights(with_bias, without)  # its biases are zero


def test_layers_that_compute_something_else_are_refused(adapter: Adapter) -> None:
    X = draw(2, 5, WIDTH, dtype="float32")
    for options, error in [
        ({"norm": "rms"}, "target: got a layer with norm='rms'; need norm='layer', as in the sour"),
        ({"norm_first": False}, "target: got a layer with norm_first=False; need norm_first=True"),
        ({"positions": "rope"}, "target: got a layer with positions='rope'; need positions=None"),
        ({"norm_epsilon": 0.5}, "target: got a layer with norm_epsilon=0.5; need norm_epsilon=1e"),
        (
            {"num_kv_heads": 2},
            r"target: got a layer whose attention.W_..\w+ has the shape \(.*8\,?\); need the shape",
        ),
    ]:
        source = adapter.build_block(WIDTH, NUM_HEADS, FFN, dtype="float32")
        target = adapter.build_block(WIDTH, NUM_HEADS, FFN, dtype="float32", **options)
        for layer in (source, target):
            layer.randomize(X, None)
        before = target(X, None)
        with pytest.raises(ValueError, match=f"^{error}"):
            adapter.convert_weights(source, target)
        np.testing.assert_array_equal(target(X, None), before)
    attention = adapter.build_causal(WIDTH, NUM_HEADS, dtype="float32")
    attention.randomize(X)
    with pytest.raises(ValueError, match=r"need one, as in the (source|target)|need .*, as in the"):
        adapter.convert_weights(attention, source)
    norm = adapter.build("AddNorm", *adapter.addnorm_args(WIDTH))
    norm.randomize(X, X)
    with pytest.raises(TypeError, match=r"^source: got AddNorm; need a TransformerBlock"):
        adapter.convert_weights(norm, source)
