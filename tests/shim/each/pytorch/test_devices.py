"""Tests of devices on machines with no GPU, one or two from NVIDIA, or one from Apple."""

import pytest
import torch
from packaging.version import Version
from torch._subclasses.fake_tensor import FakeTensorMode

from d2l_compat import torch as d2l
from d2l_compat.torch._arrays import arrays

CPU, CUDA_0, CUDA_1, APPLE = (torch.device(name) for name in ("cpu", "cuda:0", "cuda:1", "mps:0"))
# Each machine's GPUs, and the result of gpu(), which names a device even if there is none.
MACHINES = {
    "no GPU": ([], CUDA_0),
    "one NVIDIA": ([CUDA_0], CUDA_0),
    "two NVIDIA": ([CUDA_0, CUDA_1], CUDA_0),
    "Apple": ([APPLE], APPLE),
}
on_every_machine = pytest.mark.parametrize(
    ("gpus", "first"), MACHINES.values(), ids=MACHINES, indirect=["gpus"]
)


@pytest.fixture
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """Make PyTorch report these GPUs."""
    nvidia = [device for device in request.param if device.type == "cuda"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(nvidia))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(nvidia))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: APPLE in request.param)
    return request.param


@on_every_machine
def test_gpus_are_counted_and_named(gpus: list[torch.device], first: torch.device) -> None:
    assert d2l.num_gpus() == len(gpus)
    assert d2l.gpu() == d2l.gpu(0) == first
    assert d2l.gpu(7) == torch.device(first.type, 7)


@on_every_machine
def test_try_gpu_returns_gpu_or_cpu(gpus: list[torch.device], first: torch.device) -> None:
    assert d2l.try_gpu() == (first if gpus else CPU)
    assert [d2l.try_gpu(i) for i in range(3)] == (gpus + [CPU] * 3)[:3]


@on_every_machine
def test_try_all_gpus_returns_all_or_cpu(gpus: list[torch.device], first: torch.device) -> None:
    assert d2l.try_all_gpus() == (gpus or [CPU])


@pytest.mark.parametrize("gpus", [[CUDA_0, APPLE]], ids=["both"], indirect=True)
def test_cuda_comes_before_mps(gpus: list[torch.device]) -> None:
    assert d2l.try_all_gpus() == [CUDA_0]


def test_cpu_returns_cpu() -> None:
    assert d2l.cpu() == CPU


# PyTorch's fake tensors have a device, which need not exist, and no values. Mixing two devices is
# still an error.


@pytest.mark.skipif(
    Version(torch.__version__) < Version("2.6"),
    reason="PyTorch 2.5 draws weights on a fake GPU with the real one's kernel",
)
@pytest.mark.parametrize("valid_lens", [None, [3, 2], [[1, 2, 3, 4], [4, 3, 2, 1]]])
def test_layers_stay_on_gpu(
    monkeypatch: pytest.MonkeyPatch, valid_lens: list[object] | None
) -> None:
    monkeypatch.setattr(type(arrays), "value_range", lambda *_: None)  # else it reads values
    with FakeTensorMode():
        with CUDA_0:
            heads = d2l.MultiHeadAttention(100, 100, 100, 100, 5, 0.5).eval()
            encoding = d2l.PositionalEncoding(100, 0.5).eval()
            rotary = d2l.RotaryEncoding(100)
        X = torch.randn(2, 4, 100, device=CUDA_0)
        lens = None if valid_lens is None else torch.tensor(valid_lens, device=CUDA_0)
        assert heads(X, X, X, lens).device == CUDA_0
        assert heads.attention_weights.device == CUDA_0
        assert encoding(X).device == CUDA_0
        assert rotary(X).device == CUDA_0
        bias = torch.randn(4, 4, device=CUDA_0)
        assert heads(X, X, X, lens, causal=True, score_bias=bias).device == CUDA_0
        assert d2l.masked_softmax(X, lens).device == CUDA_0
        assert d2l.DotProductAttention(0.5).eval()(X, X, X, lens).device == CUDA_0


def test_layer_and_input_on_different_devices_is_error() -> None:
    with FakeTensorMode():
        heads = d2l.MultiHeadAttention(100, 100, 100, 100, 5, 0.5)
        X = torch.randn(2, 4, 100, device=CUDA_0)
        with pytest.raises(RuntimeError, match="cpu"):
            heads(X, X, X)


def test_slopes_are_on_default_device() -> None:
    try:
        torch.set_default_device("meta")
        assert d2l.alibi_slopes(4).device.type == "meta"
    finally:
        torch.set_default_device(None)
