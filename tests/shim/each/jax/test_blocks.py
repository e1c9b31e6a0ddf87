"""Tests of Transformer blocks under JAX's transformations: caches are immutable pytrees of fixed shapes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from d2l_compat import jax as d2l

TOKENS = np.random.default_rng(0).integers(0, 11, (2, 7))
OPTIONS: list[tuple[str | None, dict[str, Any]]] = [
    ("sinusoidal", {}),
    ("learned", {"window": 3, "num_sinks": 1}),
    (None, {"positions": "alibi", "num_kv_heads": 2}),
]


def make(positions: str | None, options: dict[str, Any]) -> tuple[d2l.BlockDecoder, Any]:
    block = d2l.TransformerBlock(8, 4, 16, causal=True, **options)
    layer = d2l.BlockDecoder(11, [block, block.copy()], positions=positions, max_len=7)
    return layer, layer.init(jax.random.key(0), TOKENS)


@pytest.mark.parametrize(("positions", "options"), OPTIONS, ids=str)
def test_caches_can_be_carried_through_a_scan(
    positions: str | None, options: dict[str, Any]
) -> None:
    layer, variables = make(positions, options)

    def step(caches: list[d2l.KVCache], tokens: jax.Array) -> Any:
        logits, caches = layer.apply(variables, tokens[:, None], caches=caches)
        return caches, logits[:, 0]

    _, logits = jax.lax.scan(step, layer.make_caches(2, 7), TOKENS.T)
    np.testing.assert_allclose(
        logits.swapaxes(0, 1), jax.jit(layer.apply)(variables, TOKENS), atol=1e-5
    )


@pytest.mark.parametrize(
    ("positions", "options", "max_len"),
    [("learned", {}, 8), ("sinusoidal", {}, 8), (None, {"positions": "alibi"}, 7)],
    ids=str,
)
def test_logits_past_the_end_are_nan_if_lengths_are_traced(
    positions: str | None, options: dict[str, Any], max_len: int
) -> None:
    layer, variables = make(positions, options)
    apply = jax.jit(layer.apply)
    logits, caches = apply(variables, TOKENS, caches=layer.make_caches(2, max_len))
    assert np.isfinite(logits).all()
    logits, _ = apply(variables, TOKENS[:, :1], caches=caches)
    assert np.isnan(logits).all()


def test_number_of_steps_is_checked_under_jit() -> None:
    layer, variables = make("learned", {})
    with pytest.raises(ValueError, match="X: got 8 positions; need at most max_len = 7"):
        jax.jit(layer.apply)(variables, np.zeros((1, 8), "int32"))


@pytest.mark.parametrize("dropping", ["encoder", "decoder"])
def test_seq2seq_drops_in_training_only(dropping: str) -> None:
    rates = {"encoder": 0.0, "decoder": 0.0} | {dropping: 0.5}
    model = d2l.BlockSeq2Seq(
        d2l.BlockEncoder(11, [d2l.TransformerBlock(8, 2, 16)], dropout=rates["encoder"]),
        d2l.BlockDecoder(
            11,
            [d2l.TransformerBlock(8, 2, 16, causal=True, cross_attention=True)],
            dropout=rates["decoder"],
        ),
        tgt_pad=0,
        lr=0.01,
    )
    args = TOKENS, TOKENS, np.array([7, 5])
    variables = model.init(jax.random.key(0), *args)

    def differ(training: bool) -> bool:
        apply = jax.jit(model.copy(training=training).apply)
        a, b = (apply(variables, *args, rngs={"dropout": jax.random.key(i)}) for i in range(2))
        return not jnp.array_equal(a, b)

    assert differ(training=True)
    assert not differ(training=False)
