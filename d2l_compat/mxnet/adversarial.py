"""Generative adversarial networks: a step of the discriminator, and one of the generator."""

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
    """A step of the discriminator ``net_D``: ``X`` is to be taken for real (1), what ``net_G`` makes of ``Z`` is not (0).

    ``net_D`` gives a logit for each example, and ``loss(logits, labels)`` a number. Gives the sum of these over the
    batch, the mean of the two. Raises TypeError or ValueError where these are no functions, or there are not as many
    of ``Z`` as of ``X``.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, X=X, Z=Z)
    with autograd.record():
        fakes = net_G(Z).detach()
        judged = net_D(X), net_D(fakes)
        for Y in judged:
            shared.check_discriminator_output(arrays, Y, batch_size)
        real, fake = judged
        losses = (loss(real, np.ones_like(real)) + loss(fake, np.zeros_like(fake))) / 2
    losses.backward()
    trainer_D.step(batch_size)
    return float(losses.sum())


def update_G(
    Z: np.ndarray, net_D: Function, net_G: Function, loss: Function, trainer_G: gluon.Trainer
) -> float:
    """A step of the generator ``net_G``: what it makes of ``Z`` is to be taken for real. Gives the losses' sum.

    Raises TypeError or ValueError as :func:`update_D` does.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, Z=Z)
    with autograd.record():
        Y = net_D(net_G(Z))
        shared.check_discriminator_output(arrays, Y, batch_size)
        losses = loss(Y, np.ones_like(Y))
    losses.backward()
    trainer_G.step(batch_size)
    return float(losses.sum())
