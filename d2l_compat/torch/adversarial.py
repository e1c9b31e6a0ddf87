"""Generative adversarial networks: training steps of the discriminator and the generator."""

from collections.abc import Callable

import torch
from torch import Tensor

from d2l_compat._shared import adversarial as shared
from d2l_compat.torch._arrays import arrays

__all__ = ["update_D", "update_G"]

Function = Callable[..., Tensor]


def update_D(
    X: Tensor,
    Z: Tensor,
    net_D: Function,
    net_G: Function,
    loss: Function,
    trainer_D: torch.optim.Optimizer,
) -> Tensor:
    """Train the discriminator ``net_D`` for one step: ``X`` is real (1), the output of ``net_G`` for ``Z`` is fake (0).

    ``net_D`` returns a logit for each example, and ``loss(logits, labels)`` one number for the batch. Returns the mean
    of the losses on real and fake examples. Raises TypeError or ValueError if a network or the loss is not callable, or
    ``X`` and ``Z`` differ in length.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, X=X, Z=Z)
    with torch.no_grad():
        fakes = net_G(Z)
    real, fake = net_D(X), net_D(fakes)
    shared.check_discriminator_output(arrays, real, batch_size)
    shared.check_discriminator_output(arrays, fake, batch_size)
    loss_D = (loss(real, torch.ones_like(real)) + loss(fake, torch.zeros_like(fake))) / 2
    trainer_D.zero_grad()
    loss_D.backward()
    trainer_D.step()
    return loss_D


def update_G(
    Z: Tensor, net_D: Function, net_G: Function, loss: Function, trainer_G: torch.optim.Optimizer
) -> Tensor:
    """Train the generator ``net_G`` for one step, so that its output for ``Z`` is taken for real.

    Returns the loss. Raises TypeError or ValueError as :func:`update_D` does.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, Z=Z)
    Y = net_D(net_G(Z))
    shared.check_discriminator_output(arrays, Y, batch_size)
    loss_G = loss(Y, torch.ones_like(Y))
    trainer_G.zero_grad()
    loss_G.backward()
    trainer_G.step()
    return loss_G
