"""Generative adversarial networks: a step of the discriminator, and one of the generator."""

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
    """A step of the discriminator ``net_D``: ``X`` is to be taken for real (1), what ``net_G`` makes of ``Z`` is not (0).

    ``net_D`` gives a logit for each example, and ``loss(logits, labels)`` compares. Gives the mean of the losses
    for the two. Raises TypeError or ValueError where these are no functions, or there are not as many of ``Z`` as of ``X``.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, X=X, Z=Z)
    with torch.no_grad():
        fakes = net_G(Z)
    judged = net_D(X), net_D(fakes)
    for Y in judged:
        shared.check_discriminator_output(arrays, Y, batch_size)
    real, fake = judged
    loss_D = (loss(real, torch.ones_like(real)) + loss(fake, torch.zeros_like(fake))) / 2
    trainer_D.zero_grad()
    loss_D.backward()
    trainer_D.step()
    return loss_D


def update_G(
    Z: Tensor, net_D: Function, net_G: Function, loss: Function, trainer_G: torch.optim.Optimizer
) -> Tensor:
    """A step of the generator ``net_G``: what it makes of ``Z`` is to be taken for real. Gives the loss.

    Raises TypeError or ValueError as :func:`update_D` does.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, Z=Z)
    Y = net_D(net_G(Z))
    shared.check_discriminator_output(arrays, Y, batch_size)
    loss_G = loss(Y, torch.ones_like(Y))
    trainer_G.zero_grad()
    loss_G.backward()
    trainer_G.step()
    return loss_G
