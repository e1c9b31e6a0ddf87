"""``Module``, ``Classifier``, ``DataModule`` and ``Trainer``: D2L 1.0's design of training code."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import training as shared
from d2l_compat._shared.boards import ProgressBoard
from d2l_compat.tensorflow import devices
from d2l_compat.tensorflow._arrays import arrays
from d2l_compat.tensorflow._keras import IS_KERAS_2, keras, named_for_keras_2

__all__ = ["Classifier", "DataModule", "Module", "Trainer", "nn_Module"]

nn_Module = keras.Model


class Module(shared.Steps, keras.Model):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``.

    It is a Keras model. While a ``Trainer`` fits it, ``training`` is True or False, and every
    call that does not say otherwise is one of that kind, down to the layers in the model.
    """

    training: bool | None

    def __init__(
        self, plot_train_per_epoch: int = 2, plot_valid_per_epoch: int = 1, **kwargs: Any
    ) -> None:
        """How many points are drawn in an epoch, of training and of validation.

        ``kwargs`` are any Keras model's: ``name``, ``dtype``, ``trainable``.
        """
        super(shared.Steps, self).__init__(**kwargs)  # Keras's, which takes more than others'
        if "loss" in vars(self):
            del self.loss  # what Keras 3 keeps there until `compile`; here it is a method
        self.save_hyperparameters(ignore=["kwargs"])
        self.board = ProgressBoard()
        self.training = None
        self.built = builds_its_parts(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What ``forward`` makes of the same arguments; ``training=True`` or False for one call."""
        if self.training is not None:
            kwargs.setdefault("training", self.training)
        named_for_keras_2(kwargs)
        return super().__call__(*args, **kwargs)

    def call(self, X: Any, *args: Any, training: bool | None = None) -> Any:
        before, self.training = self.training, training  # which `forward` may ask for
        try:
            return self.forward(X, *args)
        finally:
            self.training = before

    @property
    def trainable_variables(self) -> list[Any]:
        """Keras's, and after these each ``tf.Variable``, which Keras 3 passes over: D2L's models from
        scratch are made of them."""
        if IS_KERAS_2:
            return list(super().trainable_variables)
        layers = [layer for layer in self._flatten_layers() if layer.trainable]
        bare = {id(v): v for v in _variables(list(map(vars, layers))) if v.trainable}
        return [*super().trainable_variables, *bare.values()]

    def configure_optimizers(self) -> keras.optimizers.Optimizer:
        """Stochastic gradient descent, at the learning rate ``self.lr``."""
        # Keras asks for a float where D2L's pages say 1.
        return keras.optimizers.SGD(float(self.lr) if isinstance(self.lr, int) else self.lr)


def _variables(held: Any) -> Iterator[tf.Variable]:
    """Those in lists and dictionaries, and in these in turn."""
    if isinstance(held, tf.Variable):
        yield held
    elif isinstance(held, (list, tuple, dict)):
        for part in held.values() if isinstance(held, dict) else held:
            yield from _variables(part)


def builds_its_parts(layer: keras.layers.Layer) -> bool:
    """Whether there is nothing to build but the layers in it, which their first call builds.

    Keras would first try the layer on stand-ins for its inputs, and warns where there is *args.
    """
    return type(layer).build is keras.layers.Layer.build


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that give logits, over classes on the last axis."""

    def accuracy(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """The share of rows whose greatest logit is at the label; or, not averaged, 0 or 1 each."""
        logits, labels = _rows(Y_hat, Y)
        hits = tf.cast(tf.argmax(logits, axis=1) == labels, tf.float32)
        return tf.reduce_mean(hits) if averaged else hits

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Cross-entropy of logits (..., classes) and labels (...), the mean or one each."""
        logits, labels = _rows(Y_hat, Y)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(losses) if averaged else losses

    def layer_summary(self, X_shape: tuple[int, ...]) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = tf.random.normal(X_shape)
        for layer in self.net.layers:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {tuple(X.shape)}")


def _rows(Y_hat: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (rows, classes) and labels (rows,)."""
    arrays.check_labels(Y_hat, Y)
    return tf.reshape(Y_hat, (-1, Y_hat.shape[-1])), tf.cast(tf.reshape(Y, (-1,)), tf.int64)


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> tf.data.Dataset:
        """Batches of ``self.batch_size`` rows out of ``indices``, shuffled for training."""
        return batches([tensor[indices] for tensor in tensors], self.batch_size, train)


def batches(arrays: Sequence[Any], batch_size: int, shuffle: bool) -> tf.data.Dataset:
    """Tuples of ``batch_size`` rows each; shuffled anew at each pass."""
    dataset = tf.data.Dataset.from_tensor_slices(tuple(arrays))
    if shuffle:
        dataset = dataset.shuffle(max(1, len(dataset)))
    # Nothing here is for TensorFlow to tune, and its tuner keeps each epoch waiting for its end:
    # most of a second.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.batch(batch_size).with_options(options)


class Trainer(shared.Trainer):
    """Fits a :class:`Module` to a :class:`DataModule`, epoch by epoch.

    TensorFlow itself computes on the first GPU there is, whatever ``num_gpus`` says.
    """

    devices = devices

    @cached_property
    def update(self) -> "Update":
        return Update()

    def _set_training(self, is_training: bool) -> None:
        """``training`` of the model."""
        self.model.training = is_training

    def _step(self, batch: Any) -> None:
        """A step of training: the loss of a batch, its gradients, and the optimizer."""
        with tf.GradientTape() as tape:
            loss = self.model.training_step(batch)
        variables = self.model.trainable_variables
        gradients = tape.gradient(loss, variables)
        if self.gradient_clip_val > 0:
            gradients = self.clip_gradients(self.gradient_clip_val, gradients)
        self.update(self.optim, gradients, variables)

    def clip_gradients(self, grad_clip_val: float, grads: Sequence[Any]) -> list[Any]:
        """The gradients, shortened to have all together at most the norm ``grad_clip_val``."""
        return clip_gradients(grads, grad_clip_val)


class Update:
    """An optimizer's step, compiled where it is one of Keras's and there are more than a few.

    Keras's own ``fit`` compiles it, too: op by op, Adam takes half of a small model's time. To trace it
    takes as long as some fifteen steps.
    """

    FIRST = 4  # steps, op by op

    def __init__(self) -> None:
        self.known: list[Any] = []
        self.steps = 0

    def __call__(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Change ``variables`` as ``optimizer.apply_gradients`` does by their ``gradients``."""
        now = [optimizer, *variables]
        # Others than before: the reader has frozen a layer, or taken another optimizer.
        if list(map(id, now)) != list(map(id, self.known)):
            self.known, self.steps = now, 0
            self.apply = self._apply
        self.steps += 1
        if self.steps == self.FIRST + 1 and isinstance(optimizer, keras.optimizers.Optimizer):
            self.apply = tf.function(self._apply, reduce_retracing=True)
        self.apply(gradients)

    def _apply(self, gradients: Sequence[Any]) -> None:
        optimizer, *variables = self.known
        optimizer.apply_gradients(zip(gradients, variables, strict=True))


def clip_gradients(gradients: Sequence[Any], norm: float) -> list[Any]:
    # An embedding's come in parts, one for each time that a token occurs; the norm is of their sum.
    whole = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in gradients]
    shortened: list[Any] = tf.clip_by_global_norm(whole, norm)[0]
    return shortened
