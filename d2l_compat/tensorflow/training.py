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
from d2l_compat.tensorflow._keras import IS_KERAS_2, keras, name_training_for_keras_2

__all__ = ["Classifier", "DataModule", "Module", "Trainer", "nn_Module"]

nn_Module = keras.Model


class Module(shared.Steps, keras.Model):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``.

    It is a Keras model. While a ``Trainer`` fits it, the attribute ``training`` is True or False; calls of the model
    and of its layers use this value unless they pass another.
    """

    training: bool | None

    def __init__(
        self, plot_train_per_epoch: int = 2, plot_valid_per_epoch: int = 1, **kwargs: Any
    ) -> None:
        """Set the numbers of points plotted per epoch, for training and for validation.

        ``kwargs`` are those of any Keras model: ``name``, ``dtype``, ``trainable``.
        """
        super(shared.Steps, self).__init__(**kwargs)  # Keras's `__init__`, which takes arguments
        remove_loss_attribute(self)
        self.save_hyperparameters(ignore=["kwargs"])
        self.board = ProgressBoard()
        self.training = None
        self.built = has_default_build(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward`` with these arguments; ``training=``, if given, applies to this call only."""
        if self.training is not None:
            kwargs.setdefault("training", self.training)
        name_training_for_keras_2(kwargs)
        return super().__call__(*args, **kwargs)

    def call(self, X: Any, *args: Any, training: bool | None = None) -> Any:
        previous = self.training
        self.training = training  # for `forward`
        try:
            return self.forward(X, *args)
        finally:
            self.training = previous

    @property
    def trainable_variables(self) -> list[Any]:
        """Keras's variables, and each ``tf.Variable`` of D2L's models from scratch, which Keras 3 ignores."""
        return add_scratch_variables(self, super().trainable_variables)

    def configure_optimizers(self) -> keras.optimizers.Optimizer:
        """Return stochastic gradient descent with the learning rate ``self.lr``."""
        # Keras requires a float, and D2L's pages use 1.
        return keras.optimizers.SGD(float(self.lr) if isinstance(self.lr, int) else self.lr)


def remove_loss_attribute(model: Any) -> None:
    """Remove Keras 3's attribute ``loss``, which would hide the model's method, unless it has been set."""
    if vars(model).get("loss", "") is None:
        del model.loss


def add_scratch_variables(model: Any, variables: Sequence[Any]) -> list[Any]:
    """Return ``variables``, and each trainable ``tf.Variable`` among the attributes of the model's layers."""
    if IS_KERAS_2:
        return list(variables)
    layers = [layer for layer in model._flatten_layers() if layer.trainable]
    found = [v for v in _find_variables(list(map(vars, layers))) if v.trainable]
    return list({id(v): v for v in [*variables, *found]}.values())


def _find_variables(value: Any) -> Iterator[tf.Variable]:
    """Yield all variables in nested lists, tuples and dictionaries."""
    if isinstance(value, tf.Variable):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for element in value.values() if isinstance(value, dict) else value:
            yield from _find_variables(element)


def has_default_build(layer: keras.layers.Layer) -> bool:
    """Return whether a layer has no ``build`` of its own, since its sublayers are built at their first call.

    Its ``__init__`` then marks it as built. Otherwise Keras would first call it with symbolic inputs, and
    warn about ``*args``.
    """
    return type(layer).build is keras.layers.Layer.build


class Classifier(shared.ClassifierSteps, Module):
    """The base class of models that return logits, with classes on the last axis."""

    def accuracy(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the share of rows whose greatest logit is at the label; if not ``averaged``, 0 or 1 for each row."""
        logits, labels = _to_rows(Y_hat, Y)
        hits = tf.cast(tf.argmax(logits, axis=1) == labels, tf.float32)
        return tf.reduce_mean(hits) if averaged else hits

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the mean cross-entropy of Y_hat (..., classes) and Y (...); if not ``averaged``, one per label."""
        logits, labels = _to_rows(Y_hat, Y)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(losses) if averaged else losses

    def layer_summary(self, X_shape: tuple[int, ...]) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = tf.random.normal(X_shape)
        for layer in self.net.layers:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {X.shape}")


def _to_rows(Y_hat: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Reshape logits to (rows, classes) and labels to (rows,)."""
    arrays.check_labels(Y_hat, Y)
    return tf.reshape(Y_hat, (-1, Y_hat.shape[-1])), tf.cast(tf.reshape(Y, (-1,)), tf.int64)


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> tf.data.Dataset:
        """Return batches of ``self.batch_size`` rows from ``indices``, shuffled for training."""
        return batches([tensor[indices] for tensor in tensors], self.batch_size, train)


def batches(arrays: Sequence[Any], batch_size: int, shuffle: bool) -> tf.data.Dataset:
    """Return a data set of tuples of ``batch_size`` rows each, shuffled again at each pass."""
    dataset = tf.data.Dataset.from_tensor_slices(tuple(arrays))
    if shuffle:
        dataset = dataset.shuffle(max(1, len(dataset)))
    # TensorFlow's tuner has nothing to tune here, and would delay each epoch by most of a second.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.batch(batch_size).with_options(options)


class Trainer(shared.Trainer):
    """Training of a :class:`Module` on a :class:`DataModule`, epoch by epoch.

    TensorFlow computes on the first GPU, whatever ``num_gpus`` is.
    """

    devices = devices

    @cached_property
    def update(self) -> "Update":
        return Update()

    def prepare_model(self, model: Any) -> None:
        """Attach ``model`` to this trainer."""
        super().prepare_model(model)
        remove_loss_attribute(model)

    def _set_training(self, is_training: bool) -> None:
        """Set the model's ``training`` flag."""
        self.model.training = is_training

    def _step(self, batch: Any) -> None:
        """Train on one batch: compute the loss and its gradients, and update the parameters."""
        with tf.GradientTape() as tape:
            loss = self.model.training_step(batch)
        variables = add_scratch_variables(self.model, self.model.trainable_variables)
        gradients = tape.gradient(loss, variables)
        if self.gradient_clip_val > 0:
            gradients = self.clip_gradients(self.gradient_clip_val, gradients)
        self.update(self.optim, gradients, variables)

    def clip_gradients(self, grad_clip_val: float, grads: Sequence[Any]) -> list[Any]:
        """Return the gradients, scaled so that their joint norm is at most ``grad_clip_val``."""
        return clip_gradients(grads, grad_clip_val)


class Update:
    """An optimizer's step, which is compiled after a few calls if the optimizer is one of Keras's.

    Keras's ``fit`` compiles it too: if executed eagerly, Adam takes half of a small model's training time. Tracing
    takes as long as about fifteen steps.
    """

    EAGER_STEPS = 4

    def __init__(self) -> None:
        self.targets: list[Any] = []
        self.steps = 0

    def __call__(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Update ``variables`` with their ``gradients``, as ``optimizer.apply_gradients`` does."""
        targets = [optimizer, *variables]
        # The targets change if the reader freezes a layer, or uses another optimizer.
        if list(map(id, targets)) != list(map(id, self.targets)):
            self.targets = targets
            self.steps = 0
            self.apply = self._apply
        self.steps += 1
        if self.steps == self.EAGER_STEPS + 1 and isinstance(optimizer, keras.optimizers.Optimizer):
            self.apply = tf.function(self._apply, reduce_retracing=True)
        self.apply(gradients)

    def _apply(self, gradients: Sequence[Any]) -> None:
        optimizer, *variables = self.targets
        optimizer.apply_gradients(zip(gradients, variables, strict=True))


def clip_gradients(gradients: Sequence[Any], max_norm: float) -> list[Any]:
    # An embedding's gradient has a slice for each occurrence of a token; add them up before taking the norm.
    dense = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in gradients]
    clipped: list[Any] = tf.clip_by_global_norm(dense, max_norm)[0]
    return clipped
