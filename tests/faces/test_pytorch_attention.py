"""The attention layers and the positional encoding, held to the NumPy reference."""

import copy
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor, nn

from d2l_compat import torch as d2l
from tests import reference

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
SEEDS = st.integers(0, 2**32 - 1)

# Two examples, three queries, four keys: a length each, and a length for each query.
LENGTHS = {
    "every key": None,
    "per example": np.array([3, 0]),
    "per query": np.array([[4, 1, 0], [2, 0, 3]]),
}
every_kind_of_lengths = pytest.mark.parametrize("valid_lens", LENGTHS.values(), ids=LENGTHS)


@dataclass
class Case:
    """Input of an attention layer, as NumPy arrays."""

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    valid_lens: np.ndarray | None

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.queries, self.keys, self.values, self.valid_lens

    @property
    def tensors(self) -> tuple[Any, ...]:
        return tuple(None if x is None else torch.from_numpy(x) for x in self.arrays)

    @property
    def is_masked(self) -> np.ndarray:
        """True for the keys past a length; shape (batch, queries, keys)."""
        num_keys = self.keys.shape[1]
        shape = (*self.queries.shape[:2], num_keys)
        return np.arange(num_keys) >= reference.lengths(self.valid_lens, *shape)[..., None]


def make_case(
    valid_lens: np.ndarray | None = None,
    batch: int = 2,
    steps: tuple[int, int] = (3, 4),
    sizes: tuple[int, int, int] = (6, 6, 6),
    dtype: type = np.float64,
    seed: int = 0,
) -> Case:
    """Random input: ``steps`` queries and keys, ``sizes`` of one query, key and value."""
    rng = np.random.default_rng(seed)
    (num_queries, num_keys), (q, k, v) = steps, sizes

    def random(num: int, size: int) -> np.ndarray:
        return rng.normal(size=(batch, num, size)).astype(dtype)

    return Case(random(num_queries, q), random(num_keys, k), random(num_keys, v), valid_lens)


@st.composite
def cases(draw: st.DrawFn, equal_sizes: bool = True) -> Case:
    """Any input, empty ones and lengths of zero included."""
    batch, num_queries = draw(st.integers(0, 3)), draw(st.integers(0, 4))
    num_keys = draw(st.integers(1, 5))
    query_size, value_size = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    key_size = query_size if equal_sizes else draw(st.integers(1, 6))
    lengths = st.integers(0, num_keys)
    return make_case(
        draw(
            st.none()
            | arrays(np.int64, batch, elements=lengths)
            | arrays(np.int32, (batch, num_queries), elements=lengths)
        ),
        batch,
        (num_queries, num_keys),
        (query_size, key_size, value_size),
        draw(st.sampled_from([np.float32, np.float64])),
        draw(SEEDS),
    )


def multi_head(case: Case, num_heads: int, size: int = 2, bias: bool = False) -> nn.Module:
    """A layer that fits ``case``, in evaluation mode, its weights random."""
    torch.manual_seed(0)
    sizes = [x.shape[-1] for x in (case.keys, case.queries, case.values)]
    layer = d2l.MultiHeadAttention(*sizes, num_heads * size, num_heads, 0.5, bias)
    return layer.to(torch.from_numpy(case.queries).dtype).eval()


def reference_multi_head(layer: nn.Module, *inputs: Any) -> tuple[np.ndarray, np.ndarray]:
    """The reference with the weights of ``layer``."""

    def linear(projection: nn.Linear) -> reference.Linear:
        bias = 0.0 if projection.bias is None else projection.bias.detach().double().numpy()
        return reference.Linear(projection.weight.detach().double().numpy().T, bias)

    return reference.multi_head_attention(
        *inputs,
        num_heads=layer.num_heads,
        w_q=linear(layer.W_q),
        w_k=linear(layer.W_k),
        w_v=linear(layer.W_v),
        w_o=linear(layer.W_o),
    )


def assert_close(got: Tensor, want: Any, tolerance: float | None = None) -> None:
    tolerance = tolerance or TOLERANCE[got.dtype]
    want = want.detach().numpy() if isinstance(want, Tensor) else want
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().double().numpy(), want, rtol=tolerance, atol=tolerance)


# Masked softmax


@given(cases(), st.sampled_from([1, 1000]))
def test_masked_softmax_equals_the_reference(case: Case, scale: int) -> None:
    scores = scale * case.queries @ case.keys.swapaxes(1, 2)
    got = d2l.masked_softmax(torch.from_numpy(scores), case.tensors[3])
    assert got.dtype == case.tensors[0].dtype
    assert_close(got, reference.softmax(scores, case.valid_lens))


@given(cases())
def test_masked_scores_weigh_exactly_nothing_whatever_they_are(case: Case) -> None:
    scores = case.queries @ case.keys.swapaxes(1, 2)
    clean = d2l.masked_softmax(torch.from_numpy(scores), case.tensors[3])
    for junk in (np.nan, np.inf, -np.inf):
        spoilt = torch.from_numpy(np.where(case.is_masked, junk, scores).astype(scores.dtype))
        weights = d2l.masked_softmax(spoilt, case.tensors[3])
        assert torch.equal(weights, clean)
        assert (weights.numpy()[case.is_masked] == 0).all()


@given(cases())
def test_weights_of_a_row_sum_to_one_or_without_a_key_to_zero(case: Case) -> None:
    scores = torch.from_numpy(case.queries @ case.keys.swapaxes(1, 2))
    total = d2l.masked_softmax(scores, case.tensors[3]).sum(dim=-1)
    assert_close(total, 1.0 - case.is_masked.all(axis=-1))


def test_masked_softmax_leaves_its_input_alone() -> None:
    scores, valid_lens = torch.randn(2, 3, 4), torch.tensor([1, 2])
    before = scores.clone()
    d2l.masked_softmax(scores, valid_lens)
    assert torch.equal(scores, before)
    assert valid_lens.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_masked_softmax_works_in_half_precision(dtype: torch.dtype) -> None:
    scores = torch.tensor([[[1.0, 2.0, 3.0], [-9.0, 9.0, 0.0]]], dtype=dtype)
    got = d2l.masked_softmax(scores, torch.tensor([[2, 0]]))
    assert got.dtype == dtype
    want = reference.softmax(scores.double().numpy(), np.array([[2, 0]]))
    assert_close(got, want, torch.finfo(dtype).eps)


# Scaled dot-product attention


@given(cases())
def test_dot_product_attention_equals_the_reference(case: Case) -> None:
    layer = d2l.DotProductAttention(dropout=0.5).eval()
    output, weights = reference.dot_product_attention(*case.arrays)
    assert_close(layer(*case.tensors), output)
    assert_close(layer.attention_weights, weights)


@given(cases())
def test_attention_weights_are_those_the_output_was_made_from(case: Case) -> None:
    layer = d2l.DotProductAttention(dropout=0.0).eval()
    output = layer(*case.tensors)
    assert_close(layer.attention_weights @ case.tensors[2], output)
    assert (layer.attention_weights.numpy()[case.is_masked] == 0).all()


def test_a_query_without_a_key_pools_exactly_zero() -> None:
    case = make_case(LENGTHS["per query"])
    output = d2l.DotProductAttention(dropout=0.0)(*case.tensors)
    assert not output[0, 2].any()
    assert not output[1, 1].any()
    assert output[0, 1].all()


@pytest.mark.parametrize("valid_lens", [None, torch.zeros(2, dtype=torch.int64)])
def test_without_any_key_at_all_attention_pools_zero(valid_lens: Tensor | None) -> None:
    layer = d2l.DotProductAttention(dropout=0.0)
    output = layer(torch.ones(2, 3, 4), torch.ones(2, 0, 4), torch.ones(2, 0, 5), valid_lens)
    assert torch.equal(output, torch.zeros(2, 3, 5))
    assert layer.attention_weights.shape == (2, 3, 0)


@given(SEEDS)
def test_the_order_of_queries_is_kept_and_that_of_keys_is_irrelevant(seed: int) -> None:
    queries, keys, values, _ = make_case(seed=seed).tensors
    torch.manual_seed(seed)
    of_queries, of_keys = torch.randperm(3), torch.randperm(4)
    layer = d2l.DotProductAttention(dropout=0.0)
    output = layer(queries, keys, values)
    assert_close(layer(queries[:, of_queries], keys, values), output[:, of_queries])
    assert_close(layer(queries, keys[:, of_keys], values[:, of_keys]), output)


def test_weights_are_not_formed_until_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = Mock(wraps=nn.functional.scaled_dot_product_attention)
    softmax = Mock(wraps=nn.functional.softmax)
    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", fused)
    monkeypatch.setattr(nn.functional, "softmax", softmax)
    layer = d2l.DotProductAttention(dropout=0.0)
    layer(*make_case(LENGTHS["per query"]).tensors)
    fused.assert_called_once()
    softmax.assert_not_called()
    assert layer.attention_weights.shape == (2, 3, 4)
    fused.assert_called_once()
    softmax.assert_called_once()


def test_the_kernel_is_never_given_a_query_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # What it makes of one, zeros or NaN, depends on PyTorch's version and on the device.
    fused = Mock(wraps=nn.functional.scaled_dot_product_attention)
    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", fused)
    d2l.DotProductAttention(dropout=0.0)(*make_case(LENGTHS["per query"]).tensors)
    assert fused.call_args.kwargs["attn_mask"].any(dim=-1).all()


def test_attention_weights_are_the_last_calls() -> None:
    layer = d2l.DotProductAttention(dropout=0.0)
    first, last = make_case(seed=1), make_case(seed=2)
    layer(*first.tensors)
    layer(*last.tensors)
    assert_close(layer.attention_weights, reference.dot_product_attention(*last.arrays)[1])


def test_dropout_in_training_drops_weights_and_scales_up_the_rest() -> None:
    torch.manual_seed(0)
    queries, keys = torch.randn(4, 50, 8), torch.randn(4, 40, 8)
    layer = d2l.DotProductAttention(dropout=0.25)
    # With the identity for values, the output is the weights as they were used.
    used = layer(queries, keys, torch.eye(40).expand(4, -1, -1))
    dropped = used == 0
    assert dropped.float().mean() == pytest.approx(0.25, abs=0.02)
    weights = layer.attention_weights
    assert_close(used[~dropped], weights[~dropped] / 0.75)
    assert (weights != 0).all(), "attention_weights are those before dropout"


def test_dropout_differs_between_calls_in_training_and_is_off_in_evaluation() -> None:
    case = make_case()
    for layer in (d2l.DotProductAttention(dropout=0.5), d2l.MultiHeadAttention(6, 2, 0.5).double()):
        assert not torch.equal(layer.train()(*case.tensors), layer(*case.tensors))
        assert torch.equal(layer.eval()(*case.tensors), layer(*case.tensors))


# Multi-head attention


@given(cases(equal_sizes=False), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_multi_head_attention_equals_the_reference(
    case: Case, num_heads: int, size: int, bias: bool
) -> None:
    layer = multi_head(case, num_heads, size, bias)
    output, weights = reference_multi_head(layer, *case.arrays)
    assert_close(layer(*case.tensors), output)
    assert_close(layer.attention_weights, weights)
    masked = np.broadcast_to(case.is_masked[:, None], weights.shape)
    assert (layer.attention_weights.detach().numpy()[masked] == 0).all()


def test_multi_head_attention_keeps_the_number_of_queries_and_widens_to_num_hiddens() -> None:
    layer = d2l.MultiHeadAttention(100, 5, 0.5).eval()
    queries, keys = torch.ones(2, 4, 100), torch.ones(2, 6, 100)
    d2l.check_shape(layer(queries, keys, keys, torch.tensor([3, 2])), (2, 4, 100))
    d2l.check_shape(layer.attention_weights, (2, 5, 4, 6))


SIGNATURES = {
    "short, positional": lambda: d2l.MultiHeadAttention(8, 2, 0.5, True),
    "short, by keyword": lambda: d2l.MultiHeadAttention(
        num_hiddens=8, num_heads=2, dropout=0.5, bias=True
    ),
    "short, mixed": lambda: d2l.MultiHeadAttention(8, 2, bias=True, dropout=0.5),
    "long, positional": lambda: d2l.MultiHeadAttention(5, 6, 7, 8, 2, 0.5, True),
    "long, by keyword": lambda: d2l.MultiHeadAttention(
        bias=True, dropout=0.5, num_heads=2, num_hiddens=8, value_size=7, query_size=6, key_size=5
    ),
    "long, mixed": lambda: d2l.MultiHeadAttention(
        5, 6, 7, num_hiddens=8, num_heads=2, dropout=0.5, bias=True
    ),
}


@pytest.mark.parametrize("build", SIGNATURES.values(), ids=SIGNATURES)
def test_both_signatures_make_the_same_layer(build: Callable[[], nn.Module]) -> None:
    case = make_case(LENGTHS["per example"], sizes=(6, 5, 7))
    layer = build().double().eval()
    layer(*case.tensors)  # the short signature takes its sizes from this
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        "W_q.weight": (8, 6),
        "W_q.bias": (8,),
        "W_k.weight": (8, 5),
        "W_k.bias": (8,),
        "W_v.weight": (8, 7),
        "W_v.bias": (8,),
        "W_o.weight": (8, 8),
        "W_o.bias": (8,),
    }
    assert layer.attention.dropout.p == 0.5
    other = multi_head(case, num_heads=2, size=4, bias=True)
    layer.load_state_dict(other.state_dict())
    assert torch.equal(layer(*case.tensors), other(*case.tensors))


@pytest.mark.parametrize(
    "layer",
    [d2l.MultiHeadAttention(8, 2, 0.5), d2l.MultiHeadAttention(6, 6, 6, 8, 2, 0.5)],
    ids=["short", "long"],
)
def test_there_is_no_bias_unless_asked_for(layer: nn.Module) -> None:
    assert set(layer.state_dict()) == {"W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"}


@given(SEEDS, st.integers(1, 3))
def test_self_attention_is_permutation_equivariant(seed: int, num_heads: int) -> None:
    case = make_case(seed=seed)
    layer, (tokens, _, _, _) = multi_head(case, num_heads), case.tensors
    torch.manual_seed(seed)
    order = torch.randperm(tokens.shape[1])
    shuffled = tokens[:, order]
    output = layer(tokens, tokens, tokens)
    assert_close(layer(shuffled, shuffled, shuffled), output[:, order])


@every_kind_of_lengths
def test_every_example_is_attended_to_on_its_own(valid_lens: np.ndarray | None) -> None:
    case = make_case(valid_lens)
    layer = multi_head(case, num_heads=3)
    alone = [layer(*(None if x is None else x[i : i + 1] for x in case.tensors)) for i in range(2)]
    assert_close(layer(*case.tensors), torch.cat(alone))


# Gradients


def input_gradients(layer: nn.Module, case: Case, direction: np.ndarray) -> list[np.ndarray]:
    inputs = [torch.from_numpy(x).requires_grad_() for x in case.arrays[:3]]
    with torch.autograd.set_detect_anomaly(True):  # NaN on the way is an error as well
        (layer(*inputs, case.tensors[3]) * torch.from_numpy(direction)).sum().backward()
    return [x.grad.numpy() for x in inputs]


def numeric_gradients(
    attend: Callable[..., tuple[np.ndarray, np.ndarray]], case: Case, direction: np.ndarray
) -> list[np.ndarray]:
    def loss(which: int, x: np.ndarray) -> float:
        inputs = list(case.arrays)
        inputs[which] = x
        return float((attend(*inputs)[0] * direction).sum())

    return [
        reference.gradient(lambda x, which=which: loss(which, x), case.arrays[which])
        for which in range(3)
    ]


@every_kind_of_lengths
def test_gradients_of_dot_product_attention_are_the_references(
    valid_lens: np.ndarray | None,
) -> None:
    case = make_case(valid_lens, sizes=(3, 3, 5))
    direction = np.random.default_rng(1).normal(size=(2, 3, 5))
    got = input_gradients(d2l.DotProductAttention(dropout=0.0), case, direction)
    want = numeric_gradients(reference.dot_product_attention, case, direction)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-8)


@every_kind_of_lengths
def test_gradients_of_multi_head_attention_are_the_references(
    valid_lens: np.ndarray | None,
) -> None:
    case = make_case(valid_lens, sizes=(3, 4, 5))
    layer = multi_head(case, num_heads=2, bias=True)
    direction = np.random.default_rng(1).normal(size=(2, 3, 4))
    got = input_gradients(layer, case, direction)
    want = numeric_gradients(lambda *x: reference_multi_head(layer, *x), case, direction)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_kind_of_lengths
def test_gradients_past_a_length_are_exactly_zero_and_none_is_nan(
    valid_lens: np.ndarray | None, dtype: type
) -> None:
    case = make_case(valid_lens, dtype=dtype)
    direction = np.ones((2, 3, 6), dtype)
    for layer in (d2l.DotProductAttention(dropout=0.0), multi_head(case, num_heads=3)):
        queries, keys, values = input_gradients(layer, case, direction)
        for gradient in (queries, keys, values):
            assert np.isfinite(gradient).all()
        assert (queries[case.is_masked.all(axis=2)] == 0).all()
        unseen = case.is_masked.all(axis=1)
        assert (keys[unseen] == 0).all()
        assert (values[unseen] == 0).all()


def test_gradients_of_masked_scores_are_exactly_zero_and_none_is_nan() -> None:
    case = make_case(LENGTHS["per query"])
    scores = torch.randn(2, 3, 4, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (d2l.masked_softmax(scores, case.tensors[3]) * torch.randn(2, 3, 4)).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad.numpy()[case.is_masked] == 0).all()


# Positional encoding


@given(st.integers(1, 40), st.integers(1, 33))
def test_the_encoding_is_the_papers(max_len: int, num_hiddens: int) -> None:
    P = d2l.PositionalEncoding(num_hiddens, 0.0, max_len).double().P
    assert_close(P, reference.positional_encoding(max_len, num_hiddens)[None])


@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(lambda layer: layer, id="as made"),
        pytest.param(lambda layer: layer.double(), id="double"),
        pytest.param(lambda layer: layer.half(), id="half"),
        pytest.param(lambda layer: layer.to(torch.bfloat16), id="to bfloat16"),
        pytest.param(lambda layer: layer.half().double(), id="half and back"),
        pytest.param(lambda layer: nn.Sequential(layer).double()[0], id="within a model"),
        pytest.param(lambda layer: layer.to("meta").to_empty(device="cpu"), id="by way of meta"),
    ],
)
def test_the_encoding_is_rounded_once_to_the_layers_dtype(
    convert: Callable[[nn.Module], nn.Module],
) -> None:
    P = convert(d2l.PositionalEncoding(7, 0.0)).P
    want = reference.positional_encoding(1000, 7)[None]
    # Half a unit in the last place just below 1, or what the angle's own rounding costs.
    assert_close(P, want, max(torch.finfo(P.dtype).eps / 4, 1e-12))


@given(st.integers(1, 9), st.integers(0, 5), st.integers(0, 4), st.integers(0, 2))
def test_offset_adds_the_encoding_of_later_positions(
    num_hiddens: int, offset: int, steps: int, batch: int
) -> None:
    layer = d2l.PositionalEncoding(num_hiddens, 0.0, max_len=9).double()
    X = torch.randn(batch, steps, num_hiddens, dtype=torch.float64)
    P = reference.positional_encoding(9, num_hiddens)[offset : offset + steps]
    assert_close(layer(X, offset), X.numpy() + P)


def test_decoding_token_by_token_adds_what_the_whole_sequence_gets() -> None:
    layer, X = d2l.PositionalEncoding(6, 0.0, max_len=5), torch.randn(2, 5, 6)
    tokens = [layer(X[:, i : i + 1], offset=i) for i in range(5)]
    assert torch.equal(torch.cat(tokens, dim=1), layer(X))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_sum_has_the_inputs_dtype(dtype: torch.dtype) -> None:
    assert d2l.PositionalEncoding(6, 0.0)(torch.zeros(1, 2, 6, dtype=dtype)).dtype == dtype


def test_the_encoding_is_neither_trained_nor_saved() -> None:
    layer = d2l.PositionalEncoding(6, 0.0, max_len=10)
    assert not list(layer.parameters())
    assert "P" in dict(layer.named_buffers())
    assert not layer.state_dict()
    assert not layer.P.requires_grad


def test_weights_load_into_a_model_of_another_max_len() -> None:
    short, long = (
        nn.Sequential(d2l.PositionalEncoding(6, 0.0, max_len), nn.Linear(6, 2))
        for max_len in (10, 20)
    )
    long.load_state_dict(short.state_dict())
    X = torch.randn(1, 10, 6)
    assert torch.equal(long(X), short(X))


def test_the_encoding_follows_the_layers_device() -> None:
    layer = d2l.PositionalEncoding(6, 0.0)
    assert layer.to("meta").P.is_meta
    with torch.device("meta"):
        assert d2l.PositionalEncoding(6, 0.0).P.is_meta


def test_dropout_applies_to_the_sum_in_training_alone() -> None:
    torch.manual_seed(0)
    layer, X = d2l.PositionalEncoding(32, 0.25), torch.full((4, 50, 32), 2.0)
    total = layer.eval()(X)
    used = layer.train()(X)
    dropped = used == 0
    assert dropped.float().mean() == pytest.approx(0.25, abs=0.02)
    assert_close(used[~dropped], total[~dropped] / 0.75)
    assert_close(total, 2 + reference.positional_encoding(50, 32)[None].repeat(4, axis=0))


# Saving, copying, tracing


def save_and_load(layer: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "duplicate",
    [
        pytest.param(copy.deepcopy, id="deepcopy"),
        pytest.param(lambda layer: pickle.loads(pickle.dumps(layer)), id="pickle"),
        pytest.param(save_and_load, id="torch.save"),
    ],
)
def test_layers_can_be_copied_after_a_call(duplicate: Callable[[nn.Module], nn.Module]) -> None:
    case = make_case(LENGTHS["per example"])
    # Input that needs a gradient makes non-leaf tensors, which deepcopy refuses.
    inputs = [*(x.requires_grad_() for x in case.tensors[:3]), case.tensors[3]]
    for layer in (d2l.DotProductAttention(dropout=0.5).eval(), multi_head(case, num_heads=3)):
        output = layer(*(x * 1 for x in inputs))
        twin = duplicate(layer)
        with pytest.raises(RuntimeError, match="call the layer first"):
            _ = twin.attention_weights
        assert torch.equal(twin(*inputs), output)
        assert torch.equal(twin.attention_weights, layer.attention_weights)
    encoding = d2l.PositionalEncoding(6, 0.0).double()
    assert torch.equal(duplicate(encoding)(inputs[0]), encoding(inputs[0]))


def test_state_dict_goes_through_torch_save() -> None:
    case, file = make_case(), io.BytesIO()
    layer, other = (d2l.MultiHeadAttention(6, 2, 0.0, bias=True).double() for _ in range(2))
    output = layer(*case.tensors)
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))  # other has not been called: its sizes come along
    assert torch.equal(other(*case.tensors), output)


@every_kind_of_lengths
def test_layers_compile_to_one_graph(valid_lens: np.ndarray | None) -> None:
    case = make_case(valid_lens)
    layer = multi_head(case, num_heads=3)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert_close(compiled(*case.tensors), layer(*case.tensors))


@every_kind_of_lengths
def test_layers_give_shapes_on_the_meta_device(valid_lens: np.ndarray | None) -> None:
    case = make_case(valid_lens)
    inputs = (None if x is None else x.to("meta") for x in case.tensors)
    layer = multi_head(case, num_heads=3).to("meta")
    assert layer(*inputs).shape == (2, 3, 6)
    assert layer.attention_weights.shape == (2, 3, 3, 4)


def test_a_refused_call_leaves_the_weights_of_the_last_good_one() -> None:
    attention = d2l.DotProductAttention(0.0)
    X = torch.randn(2, 3, 4)
    attention(X, X, X)
    before = attention.attention_weights
    with pytest.raises(ValueError, match="valid_lens"):
        attention(X, X, X, torch.tensor([4, 4]))
    torch.testing.assert_close(attention.attention_weights, before)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16, torch.int64])
def test_lengths_may_be_of_any_integer_dtype(dtype: torch.dtype) -> None:
    X = torch.randn(2, 3, 3)
    lens = torch.tensor([3, 2])
    torch.testing.assert_close(d2l.masked_softmax(X, lens.to(dtype)), d2l.masked_softmax(X, lens))


def test_an_encoding_of_ones_own_is_kept_when_it_moves() -> None:
    encoding = d2l.PositionalEncoding(4, 0.0, max_len=3)
    encoding.P = torch.ones(1, 3, 4)
    encoding.to("cpu")
    assert bool((encoding.P == 1).all())
