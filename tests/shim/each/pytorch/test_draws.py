"""Tests of drawing random numbers for a GPU on the CPU.

The meta device replaces the GPU. Its tensors have no values, but the CPU generator's state shows what it has drawn.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from tools.run.draws import RandomNumbersOnCPU

DRAWS: dict[str, Callable[[], Any]] = {
    "randn": lambda: torch.randn(2, 3),
    "rand": lambda: torch.rand(5),
    "randint": lambda: torch.randint(0, 9, (4,)),
    "randperm": lambda: torch.randperm(7),
    "randn_like": lambda: torch.randn_like(torch.ones(3)),
    "bernoulli": lambda: torch.bernoulli(torch.full((40,), 0.5)),
    "normal_": lambda: torch.ones(20).normal_(1, 2),
    "a linear layer": lambda: nn.Linear(3, 4).weight,
    "an embedding": lambda: nn.Embedding(3, 4).weight,
    "a recurrent layer": lambda: nn.LSTM(2, 3).weight_hh_l0,
    "Glorot's weights": lambda: nn.init.xavier_uniform_(torch.empty(3, 3)),
    "dropout": lambda: nn.functional.dropout(torch.ones(20)),
    "a GPU's dropout": lambda: torch.native_dropout(torch.ones(20), 0.5, True)[0],
}


class DrawsForMetaDevice(RandomNumbersOnCPU):
    def to_cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(tensor, device="cpu")


@pytest.fixture
def meta() -> Iterator[None]:
    torch.set_default_device("meta")
    with DrawsForMetaDevice():
        yield
    torch.set_default_device(None)


def draw_and_get_state(draw: Callable[[], Any]) -> tuple[torch.Tensor, str]:
    torch.manual_seed(0)
    device = draw().device.type
    return torch.get_rng_state(), device


@pytest.mark.parametrize("name", DRAWS)
def test_cpu_generator_draws_for_other_devices(name: str, request: pytest.FixtureRequest) -> None:
    cpu_state, _ = draw_and_get_state(DRAWS[name])
    assert not torch.equal(cpu_state, draw_and_get_state(lambda: torch.ones(1))[0])
    request.getfixturevalue("meta")
    meta_state, device = draw_and_get_state(DRAWS[name])
    assert device == "meta"
    assert torch.equal(meta_state, cpu_state)


def test_explicit_generator_is_used(meta: None) -> None:
    order = torch.randperm(5, generator=torch.Generator("cpu").manual_seed(1))
    assert order.device.type == "meta"


def test_drawn_numbers_are_copied_to_device() -> None:
    for draw in DRAWS.values():
        torch.manual_seed(0)
        want = draw()
        torch.manual_seed(0)
        with RandomNumbersOnCPU():
            assert torch.equal(draw(), want)


def test_other_functions_are_not_changed(meta: None) -> None:
    before = torch.get_rng_state()
    assert (torch.ones(3) + torch.arange(3)).device.type == "meta"
    assert torch.equal(torch.get_rng_state(), before)
