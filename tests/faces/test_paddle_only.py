"""What only Paddle has: buffers, programs, weights made at the first call, and its talk."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2l_compat import paddle as d2l  # isort: split

import paddle
from paddle import nn

from tests import reference

RNG = np.random.default_rng(0)
X = paddle.to_tensor(RNG.normal(size=(2, 5, 6)).astype("float32"))
LENGTHS = paddle.to_tensor([3, 0])


class Block(nn.Layer):
    """Positions and attention, in evaluation mode."""

    def __init__(self, *sizes: int, max_len: int = 50) -> None:
        super().__init__()
        self.encoding = d2l.PositionalEncoding(6, 0.5, max_len)
        self.attention = d2l.MultiHeadAttention(*sizes, 6, 2, 0.5)
        self.eval()

    def forward(self, X: paddle.Tensor, valid_lens: paddle.Tensor) -> paddle.Tensor:
        X = self.encoding(X)
        return self.attention(X, X, X, valid_lens)


def assert_equal(got: paddle.Tensor, want: paddle.Tensor) -> None:
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-6)


# Buffers


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("within", [lambda layer: layer, nn.Sequential], ids=["alone", "within"])
def test_P_is_rounded_once_to_the_dtype_it_is_moved_to(within: Any, dtype: str) -> None:
    layer = d2l.PositionalEncoding(7, 0.0)
    within(layer).to(dtype="float16").to(dtype=dtype)
    assert str(layer.P.dtype) == f"paddle.{dtype}"
    error = layer.P.astype("float64").numpy() - reference.positional_encoding(1000, 7)
    # Half a unit in the last place just below 1; Paddle halves float64 by way of float32.
    assert np.abs(error).max() < max(0.2501 * float(paddle.finfo(layer.P.dtype).eps), 1e-12)


def test_a_P_of_ones_own_is_kept_when_it_moves() -> None:
    layer = d2l.PositionalEncoding(4, 0.0, max_len=3)
    layer.P = paddle.ones([1, 3, 4])
    assert (layer.to("cpu").P == 1).all()


def test_P_is_neither_trained_nor_saved_and_weights_are_no_buffer() -> None:
    block = Block()
    block(X, LENGTHS)
    assert [name for name, _ in block.named_buffers()] == ["encoding.P"]
    assert {name.split(".")[0] for name in block.state_dict()} == {"attention"}
    assert {name.split(".")[0] for name, _ in block.named_parameters()} == {"attention"}


def test_weights_are_saved_and_load_into_a_model_of_another_max_len(tmp_path: Path) -> None:
    short, long = Block(6, 6, 6), Block(6, 6, 6, max_len=90)
    paddle.save(short.state_dict(), str(tmp_path / "weights"))
    assert long.set_state_dict(paddle.load(str(tmp_path / "weights"))) == ([], [])
    assert_equal(long(X, LENGTHS), short(X, LENGTHS))


# Sizes from the first input


def test_an_optimizer_made_before_the_first_call_trains_every_weight() -> None:
    layer = d2l.MultiHeadAttention(6, 2, 0.0, True).to(dtype="float64")
    optimizer = paddle.optimizer.SGD(1.0, parameters=layer.parameters())
    layer(*[X.astype("float64")] * 3).square().sum().backward()
    before = {name: weight.numpy().copy() for name, weight in layer.state_dict().items()}
    optimizer.step()
    for name, weight in layer.state_dict().items():
        assert weight.dtype == paddle.float64
        assert not np.array_equal(weight.numpy(), before[name])


def test_a_first_call_in_another_dtype_is_refused_and_leaves_the_sizes_open() -> None:
    layer = d2l.MultiHeadAttention(6, 2, 0.0)
    with pytest.raises(TypeError, match="queries: got dtype float64; need float32"):
        layer(*[X.astype("float64")] * 3)
    assert layer.W_q.weight.shape == [0, 6]


def test_weights_loaded_before_the_first_call_are_refused_aloud() -> None:
    with pytest.warns(UserWarning, match=r"Skip loading for W_..weight.*\[0, 6\]"):
        missing, _ = d2l.MultiHeadAttention(6, 2, 0.0).set_state_dict(
            d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0).state_dict()
        )
    assert missing == ["W_q.weight", "W_k.weight", "W_v.weight"]


# Edges


def test_without_any_key_at_all_attention_pools_zero() -> None:
    layer, none = d2l.DotProductAttention(0.0), paddle.ones([2, 0, 4])
    for valid_lens in (None, paddle.to_tensor([0, 0])):
        paddle.full([100], float("nan"))  # what fresh memory may hold
        assert (layer(paddle.ones([2, 3, 4]), none, none, valid_lens) == 0).all()
    assert layer.attention_weights.shape == [2, 3, 0]


def test_the_gradients_of_masked_scores_are_zero_whatever_they_hold() -> None:
    for junk in (np.nan, np.inf):
        scores = paddle.to_tensor(np.where(np.arange(4) < 2, 1.0, junk) + np.zeros((1, 3, 1)))
        scores.stop_gradient = False
        weights = d2l.masked_softmax(scores, paddle.to_tensor([2]))
        (gradient,) = paddle.grad((weights * paddle.arange(4.0)).sum(), scores)
        assert (gradient[..., 2:] == 0).all()
        assert (gradient[..., :2] != 0).all()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))]
)
def test_layers_can_be_copied_after_a_call(duplicate: Callable[[nn.Layer], nn.Layer]) -> None:
    block = Block()
    output = block(X, LENGTHS)
    twin = duplicate(block)
    with pytest.raises(RuntimeError, match="call the layer first"):
        _ = twin.attention.attention_weights
    assert_equal(twin(X, LENGTHS), output)


# Programs


@pytest.mark.parametrize("sizes", [[2, 5], [None, None]], ids=["sizes known", "sizes unknown"])
def test_a_layer_becomes_a_program_that_is_saved(sizes: list[Any], tmp_path: Path) -> None:
    block, saved = Block(), str(tmp_path / "block")
    want = block(X, LENGTHS)
    specs = [([*sizes, 6], "float32"), (sizes[:1], "int64")]
    paddle.jit.save(block, saved, [paddle.static.InputSpec(*spec) for spec in specs])
    assert_equal(paddle.jit.load(saved)(X, LENGTHS), want)
    assert block.attention.attention_weights.shape == [2, 2, 5, 5]  # still the call's


@pytest.mark.parametrize("keys", [[1, 5, 6], [None, 5, 6], [None, None, 6]], ids=str)
def test_sizes_that_are_not_known_fit_those_that_are(keys: list[Any]) -> None:
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    specs = [paddle.static.InputSpec(shape) for shape in ([1, 3, 6], keys, [None, 5, 6])]
    lengths = paddle.static.InputSpec([None], "int64")
    layer.eval()  # in training, building the backward pass, Paddle warns of itself
    inputs = X[:1, :3], X[:1], X[:1], LENGTHS[:1]
    want = layer(*inputs)
    program = paddle.jit.to_static(layer, [*specs, lengths], full_graph=True)
    assert program.forward.concrete_program.outputs[0].shape == [1, 3, 6]
    assert_equal(program(*inputs), want)


@pytest.mark.parametrize(
    ("keys", "lengths", "message"),
    [
        ([2, None, 6], [None], "batch sizes of queries, keys and values: got 1, 2 and -1"),
        ([None, None, 7], [None], r"keys: got shape \(-1, -1, 7\)"),
        ([None, None, 6], [None, 4], r"valid_lens: got shape \(-1, 4\)"),
    ],
)
def test_a_program_of_sizes_that_do_not_fit_is_refused(
    keys: list[Any], lengths: list[Any], message: str
) -> None:
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    specs = [paddle.static.InputSpec(shape) for shape in ([1, 3, 6], keys, [None, None, 6])]
    specs.append(paddle.static.InputSpec(lengths, "int64"))
    with pytest.raises(ValueError, match=message):
        _ = paddle.jit.to_static(layer, specs, full_graph=True).forward.concrete_program


def test_a_layer_without_sizes_refuses_to_become_one() -> None:
    with pytest.raises(RuntimeError, match="call the layer once before it is traced"):
        paddle.jit.to_static(Block(), full_graph=True)(X, LENGTHS)


# Devices and noise


@pytest.mark.parametrize(("count", "found"), [(0, ["cpu"]), (2, ["gpu:0", "gpu:1"])])
def test_devices_are_those_there_are(
    count: int, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paddle.device.cuda, "device_count", lambda: count)
    assert d2l.num_gpus() == count
    assert d2l.try_all_gpus() == found
    assert [d2l.try_gpu(0), d2l.try_gpu(2)] == [found[0], "cpu"]
    assert d2l.gpu(7) == "gpu:7"
    assert paddle.set_device(d2l.cpu()) == paddle.CPUPlace()


def test_neither_importing_nor_tracing_prints_a_word() -> None:
    program = """if True:
        from d2l_compat import paddle as d2l
        import paddle
        softmax = paddle.jit.not_to_static(d2l.masked_softmax)
        shapes = [paddle.static.InputSpec([1, 2, 3]), paddle.static.InputSpec([1], "int64")]
        paddle.jit.to_static(softmax, shapes, full_graph=True).concrete_program
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.stdout == b""
