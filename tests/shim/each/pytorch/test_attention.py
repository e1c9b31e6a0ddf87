"""Tests of features that only PyTorch has: fused kernels, half precision, state dicts, copies, compilers."""

import copy
import io
import math
import pickle
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from packaging.version import Version
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from d2l_compat import torch as d2l
from tests.shim import reference
from tests.shim.each import cases
from tests.shim.each.cases import LENGTHS, Case, every_kind_of_lengths


def tensors(case: Case) -> tuple[Tensor | None, ...]:
    return tuple(None if x is None else torch.from_numpy(x) for x in case.arrays)


def multi_head(case: Case, num_heads: int) -> nn.Module:
    """Make a layer for ``case`` with random weights, in evaluation mode."""
    torch.manual_seed(0)
    layer = d2l.MultiHeadAttention(*case.sizes, num_heads * 2, num_heads, 0.5)
    return layer.to(torch.from_numpy(case.queries).dtype).eval()


def assert_close(got: Tensor, want: Any, tolerance: float | None = None) -> None:
    want = want.detach().numpy() if isinstance(want, Tensor) else want
    cases.assert_close(
        got.detach().float().numpy() if got.dtype == torch.bfloat16 else got.detach().numpy(),
        want,
        tolerance,
    )


def test_masked_softmax_does_not_change_its_input() -> None:
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


def test_weights_are_computed_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = Mock(wraps=nn.functional.scaled_dot_product_attention)
    softmax = Mock(wraps=nn.functional.softmax)
    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", fused)
    monkeypatch.setattr(nn.functional, "softmax", softmax)
    layer = d2l.DotProductAttention(dropout=0.0)
    layer(*tensors(cases.make_case(LENGTHS["per query"])))
    fused.assert_called_once()
    softmax.assert_not_called()
    assert layer.attention_weights.shape == (2, 3, 4)
    fused.assert_called_once()
    softmax.assert_called_once()


def test_kernel_never_gets_query_without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its output for such a query, zeros or NaN, depends on PyTorch's version and the device.
    fused = Mock(wraps=nn.functional.scaled_dot_product_attention)
    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", fused)
    d2l.DotProductAttention(dropout=0.0)(*tensors(cases.make_case(LENGTHS["per query"])))
    assert fused.call_args.kwargs["attn_mask"].any(dim=-1).all()


def test_masked_scores_have_zero_and_finite_gradients() -> None:
    case = cases.make_case(LENGTHS["per query"])
    scores = torch.randn(2, 3, 4, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (d2l.masked_softmax(scores, tensors(case)[3]) * torch.randn(2, 3, 4)).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad.numpy()[case.is_masked] == 0).all()


@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(lambda layer: layer, id="unchanged"),
        pytest.param(lambda layer: layer.double(), id="double"),
        pytest.param(lambda layer: layer.half(), id="half"),
        pytest.param(lambda layer: layer.to(torch.bfloat16), id="to bfloat16"),
        pytest.param(lambda layer: layer.half().double(), id="half and back"),
        pytest.param(lambda layer: nn.Sequential(layer).double()[0], id="within a model"),
        pytest.param(lambda layer: layer.to("meta").to_empty(device="cpu"), id="via meta"),
    ],
)
def test_encoding_is_rounded_once_to_layers_dtype(
    convert: Callable[[nn.Module], nn.Module],
) -> None:
    P = convert(d2l.PositionalEncoding(7, 0.0)).P
    want = reference.positional_encoding(1000, 7)[None]
    # Half a unit in the last place just below 1, or the error of the angle's own rounding.
    assert_close(P, want, max(torch.finfo(P.dtype).eps / 4, 1e-12))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_encoded_input_keeps_its_dtype(dtype: torch.dtype) -> None:
    assert d2l.PositionalEncoding(6, 0.0)(torch.zeros(1, 2, 6, dtype=dtype)).dtype == dtype


def test_encoding_follows_layers_device() -> None:
    layer = d2l.PositionalEncoding(6, 0.0)
    assert layer.to("meta").P.is_meta
    with torch.device("meta"):
        assert d2l.PositionalEncoding(6, 0.0).P.is_meta


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
def test_layers_can_be_copied_after_call(duplicate: Callable[[nn.Module], nn.Module]) -> None:
    case = cases.make_case(LENGTHS["per example"])
    # Input that needs a gradient makes non-leaf tensors, which deepcopy rejects.
    inputs = list(tensors(case))
    for x in inputs[:3]:
        x.requires_grad_()
    for layer in (d2l.DotProductAttention(dropout=0.5).eval(), multi_head(case, num_heads=3)):
        output = layer(*(x * 1 for x in inputs))
        twin = duplicate(layer)
        with pytest.raises(AttributeError, match="attention_weights"):
            _ = twin.attention_weights
        assert torch.equal(twin(*inputs), output)
        assert torch.equal(twin.attention_weights, layer.attention_weights)
    encoding = d2l.PositionalEncoding(6, 0.0).double()
    assert torch.equal(duplicate(encoding)(inputs[0]), encoding(inputs[0]))


def test_state_dict_survives_torch_save() -> None:
    case = cases.make_case()
    file = io.BytesIO()
    layer, other = (d2l.MultiHeadAttention(6, 2, 0.0, bias=True).double() for _ in range(2))
    output = layer(*tensors(case))
    torch.save(layer.state_dict(), file)
    file.seek(0)
    # Loading also sets the sizes of a layer that has not been called.
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(*tensors(case)), output)


@every_kind_of_lengths
def test_layers_compile_to_one_graph(valid_lens: np.ndarray | None) -> None:
    case = cases.make_case(valid_lens)
    layer = multi_head(case, num_heads=3)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert_close(compiled(*tensors(case)), layer(*tensors(case)))


@every_kind_of_lengths
def test_layers_compute_shapes_on_meta_device(valid_lens: np.ndarray | None) -> None:
    case = cases.make_case(valid_lens)
    inputs = (None if x is None else x.to("meta") for x in tensors(case))
    layer = multi_head(case, num_heads=3).to("meta")
    assert layer(*inputs).shape == (2, 3, 6)
    assert layer.attention_weights.shape == (2, 3, 3, 4)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16, torch.int64])
def test_lengths_may_be_of_any_integer_dtype(dtype: torch.dtype) -> None:
    X = torch.randn(2, 3, 3)
    lens = torch.tensor([3, 2])
    torch.testing.assert_close(d2l.masked_softmax(X, lens.to(dtype)), d2l.masked_softmax(X, lens))


def test_custom_encoding_is_kept_when_moved() -> None:
    encoding = d2l.PositionalEncoding(4, 0.0, max_len=3)
    encoding.P = torch.ones(1, 3, 4)
    encoding.to("cpu")
    assert bool((encoding.P == 1).all())


def test_input_that_does_not_fit_loaded_weights_is_error() -> None:
    layer = d2l.MultiHeadAttention(8, 2, 0.0)
    layer.load_state_dict(d2l.MultiHeadAttention(8, 8, 8, 8, 2, 0.0).state_dict())
    X = torch.zeros(2, 3, 7)
    with pytest.raises(ValueError, match=r"queries: got shape \(2, 3, 7\); need .* of 8"):
        layer(X, X, X)


@pytest.mark.filterwarnings("ignore")  # PyTorch has moved quantization to another package
def test_layers_can_be_quantized() -> None:
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    layer = d2l.TransformerEncoder(7, 8, 16, 2, 1, 0.0).eval()
    expected = layer(tokens)
    quantized = torch.ao.quantization.quantize_dynamic(layer, {nn.Linear})
    assert not isinstance(quantized.blks[0].attention.W_q, nn.Linear)
    torch.testing.assert_close(quantized(tokens), expected, rtol=0.1, atol=0.1)


def test_autocast_allows_other_input_dtype() -> None:
    layer = d2l.MultiHeadAttention(8, 8, 8, 8, 2, 0.0)
    X = torch.ones(2, 3, 8, dtype=torch.bfloat16)
    bias = torch.zeros(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(X, X, X).dtype == torch.bfloat16
        assert layer(X.float(), X.float(), X.float(), score_bias=bias).dtype == torch.bfloat16


def test_second_derivatives_exist_with_math_kernel() -> None:
    case = cases.make_case(sizes=(2, 2, 2))
    layer = d2l.DotProductAttention(0.0)
    keys, values = (torch.from_numpy(x) for x in (case.keys, case.values))
    queries = torch.from_numpy(case.queries).requires_grad_()
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(lambda q: layer(q, keys, values), queries)


def test_masks_match_pytorchs_layer() -> None:
    torch.manual_seed(0)
    X, bias = torch.randn(2, 6, 16), torch.randn(4, 6, 6)
    pytorch_layer = nn.MultiheadAttention(16, 4, bias=False, batch_first=True)
    layer = d2l.MultiHeadAttention(16, 16, 16, 16, 4, 0.0)
    with torch.no_grad():
        projections = pytorch_layer.in_proj_weight.chunk(3)
        for ours, theirs in zip((layer.W_q, layer.W_k, layer.W_v), projections, strict=True):
            ours.weight.copy_(theirs)
        layer.W_o.weight.copy_(pytorch_layer.out_proj.weight)
    causal_mask = torch.full((6, 6), -torch.inf).triu(1)
    want, _ = pytorch_layer(
        X, X, X, attn_mask=(bias + causal_mask).repeat(2, 1, 1), need_weights=False
    )
    for masks in ({"causal": True, "score_bias": bias}, {"score_bias": bias + causal_mask}):
        assert_close(layer(X, X, X, **masks), want, 1e-5)


@pytest.mark.skipif(
    Version(torch.__version__) < Version("2.8"),
    reason="only PyTorch 2.8 or later traces varying sizes",
)
def test_masks_and_rotary_compile_to_one_graph() -> None:
    torch.manual_seed(0)
    layer = d2l.MultiHeadAttention(8, 8, 8, 8, 2, 0.0)
    rotary = d2l.RotaryEncoding(8)
    compiled, compiled_rotary = (
        torch.compile(module, fullgraph=True, backend="eager") for module in (layer, rotary)
    )
    for length in (4, 6, 7):  # after the first call, the length is dynamic
        X, bias = torch.randn(2, length, 8), torch.randn(2, length, length)
        for masks in ({"causal": True}, {"causal": True, "score_bias": bias}):
            assert_close(compiled(X, X, X, **masks), layer(X, X, X, **masks))
        assert_close(compiled_rotary(X, offset=3), rotary(X, offset=3))


@pytest.mark.parametrize("kind", ["ours", "PyTorch's"])
def test_longest_chain_counts_both_products_of_fused_attention(kind: str) -> None:
    X = torch.ones(1, 5, 8)
    layer = d2l.MultiHeadAttention(8, 2, 0) if kind == "ours" else nn.MultiheadAttention(8, 2)

    def attend(X: Tensor) -> Tensor:
        output = layer(X, X, X)
        return output[0] if isinstance(output, tuple) else output

    # The projections, the scores, the averages, and the projection of the output.
    assert d2l.longest_chain(attend, X) == 4


@pytest.mark.parametrize(
    "masks",
    [{}, {"causal": True}, {"valid_lens": torch.tensor([3, 5, 0, 2, 5, 1])}, {"window": 2}],
    ids=str,
)
def test_bias_for_each_head_equals_its_copies(masks: dict[str, Any]) -> None:
    queries, keys, values = (torch.randn(6, 5, 4, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 3, 5, 5)
    bias[0, 1, 2] = -math.inf  # a query that sees no key
    bias.requires_grad_()
    layer = d2l.DotProductAttention(0.0)
    results = []
    for score_bias in (bias, bias.expand(2, -1, -1, -1).flatten(0, 1)):
        pooled = layer(queries, keys, values, score_bias=score_bias, **masks)
        gradients = torch.autograd.grad(pooled.square().sum(), (queries, keys, values, bias))
        results.append((pooled, layer.attention_weights, *gradients))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want)


def test_bias_for_heads_that_do_not_fit_is_refused() -> None:
    X = torch.randn(6, 5, 4)
    for shape in ((1, 4, 5, 5), (2, 3, 5, 5), (1, 3, 5, 4)):
        with pytest.raises(ValueError, match="score_bias"):
            d2l.DotProductAttention(0.0)(X, X, X, score_bias=torch.zeros(shape))
