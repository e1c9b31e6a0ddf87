"""Generative adversarial networks: training steps of the discriminator and the generator."""

from collections.abc import Callable

from mxnet import autograd, gluon, np

from d2l_compat._shared import adversarial as shared
from d2l_compat.mxnet._arrays import arrays

__all__ = ["update_D", "update_G"]

Function = Callable[..., np.ndarray]


def update_D(
    X: np.ndarray,
    Z: np.ndarray,
    net_D: Function,
    net_G: Function,
    loss: Function,
    trainer_D: gluon.Trainer,
) -> float:
    """Train the discriminator ``net_D`` for one step: ``X`` is real (1), the output of ``net_G`` for ``Z`` is fake (0).

    ``net_D`` returns a logit for each example, and ``loss(logits, labels)`` a loss for each. Returns half the sum
    of all losses on real and fake examples. Raises TypeError or ValueError if a network or the loss
    is not callable, or ``X`` and ``Z`` differ in length.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, X=X, Z=Z)
    with autograd.record():
        fakes = net_G(Z).detach()
        real, fake = net_D(X), net_D(fakes)
        shared.check_discriminator_output(arrays, real, batch_size)
        shared.check_discriminator_output(arrays, fake, batch_size)
        losses = (loss(real, np.ones_like(real)) + loss(fake, np.zeros_like(fake))) / 2
    losses.backward()
    trainer_D.step(batch_size)
    return float(losses.sum())


def update_G(
    Z: np.ndarray, net_D: Function, net_G: Function, loss: Function, trainer_G: gluon.Trainer
) -> float:
    """Train the generator ``net_G`` for one step, so that its output for ``Z`` is taken for real.

    Returns the sum of the losses. Raises TypeError or ValueError as :func:`update_D` does.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, Z=Z)
    with autograd.record():
        Y = net_D(net_G(Z))
        shared.check_discriminator_output(arrays, Y, batch_size)
        losses = loss(Y, np.ones_like(Y))
    losses.backward()
    trainer_G.step(batch_size)
    return float(losses.sum())
