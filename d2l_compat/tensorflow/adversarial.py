"""Generative adversarial networks: training steps of the discriminator and the generator."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import adversarial as shared
from d2l_compat._shared.checks import check_instance
from d2l_compat.tensorflow._arrays import arrays
from d2l_compat.tensorflow._keras import keras

__all__ = ["update_D", "update_G"]


def update_D(
    X: Tensor,
    Z: Tensor,
    net_D: keras.Model,
    net_G: Callable[..., Any],
    loss: Callable[..., Any],
    optimizer_D: Any,
) -> Tensor:
    """Train the discriminator ``net_D`` for one step: ``X`` is real (1), the output of ``net_G`` for ``Z`` is fake (0).

    ``net_D`` returns a logit for each example, and ``loss(labels, logits)`` the mean loss of a batch. Returns the mean
    of the losses on real and fake examples, times the batch size. Raises TypeError or ValueError if ``net_D`` is not a
    Keras layer, ``net_G`` or the loss is not callable, or ``X`` and ``Z`` differ in length.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, X=X, Z=Z)
    check_instance("net_D", net_D, keras.layers.Layer, "a Keras layer")
    fakes = net_G(Z)
    with tf.GradientTape() as tape:
        real = _logits(net_D, X, batch_size)
        fake = _logits(net_D, fakes, batch_size)
        loss_D = loss(tf.ones_like(real), real) + loss(tf.zeros_like(fake), fake)
        loss_D = loss_D * batch_size / 2
    _step(tape, loss_D, net_D, optimizer_D)
    return loss_D


def update_G(
    Z: Tensor,
    net_D: Callable[..., Any],
    net_G: keras.Model,
    loss: Callable[..., Any],
    optimizer_G: Any,
) -> Tensor:
    """Train the generator ``net_G`` for one step, so that its output for ``Z`` is taken for real.

    Returns the loss, times the batch size. Raises TypeError or ValueError as :func:`update_D` does.
    """
    batch_size = shared.check_arguments(arrays, net_D, net_G, loss, Z=Z)
    check_instance("net_G", net_G, keras.layers.Layer, "a Keras layer")
    with tf.GradientTape() as tape:
        Y = _logits(net_D, net_G(Z), batch_size)
        loss_G = loss(tf.ones_like(Y), Y) * batch_size
    _step(tape, loss_G, net_G, optimizer_G)
    return loss_G


def _logits(net_D: Callable[..., Any], X: Tensor, batch_size: int) -> Tensor:
    """Return the logits as (examples,), since Keras's losses average over the last axis."""
    Y = net_D(X)
    shared.check_discriminator_output(arrays, Y, batch_size)
    return tf.reshape(Y, (-1,))


def _step(tape: tf.GradientTape, loss: Tensor, net: Any, optimizer: Any) -> None:
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
