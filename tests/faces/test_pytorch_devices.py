"""Devices, on machines that have none, one or two NVIDIA GPUs, or Apple's."""

import pytest
import torch

from d2l_compat import torch as d2l

CPU, CUDA_0, CUDA_1, APPLE = (torch.device(name) for name in ("cpu", "cuda:0", "cuda:1", "mps:0"))
# The GPUs there are, and what gpu() says: a name, whether or not there is such a device.
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
    """Makes PyTorch believe that it runs on a machine with these GPUs."""
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
def test_try_gpu_gives_a_gpu_that_is_there_or_the_cpu(
    gpus: list[torch.device], first: torch.device
) -> None:
    assert d2l.try_gpu() == (first if gpus else CPU)
    assert [d2l.try_gpu(i) for i in range(3)] == (gpus + [CPU] * 3)[:3]


@on_every_machine
def test_try_all_gpus_gives_them_all_or_the_cpu(
    gpus: list[torch.device], first: torch.device
) -> None:
    assert d2l.try_all_gpus() == (gpus or [CPU])


@pytest.mark.parametrize("gpus", [[CUDA_0, APPLE]], ids=["both"], indirect=True)
def test_nvidias_come_before_apples(gpus: list[torch.device]) -> None:
    assert d2l.try_all_gpus() == [CUDA_0]


def test_cpu_is_the_cpu() -> None:
    assert d2l.cpu() == CPU
