"""``Module``, ``Classifier``, ``DataModule`` and ``Trainer``: D2L 1.0's design of training code.

A Flax model does not store its parameters; they are in the ``state`` of the trainer. A model's
methods for training therefore take ``params`` and ``state``.
"""

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat._shared import training as shared
from d2l_compat._shared.boards import ProgressBoard
from d2l_compat._shared.data.loader import Batch, Loader, Rows
from d2l_compat.jax import devices
from d2l_compat.jax._arrays import arrays
from d2l_compat.jax._shuffle import shuffle
from d2l_compat.jax.tensors import get_key

__all__ = ["Classifier", "DataModule", "Module", "Trainer", "nn_Module"]

nn_Module = nn.Module


class Module(nn.Module, shared.Model):
    """The base class of models: define ``loss``, and ``self.net`` or ``forward``.

    Its fields are a ``board``, and the number of points plotted per epoch, for
    training (``plot_train_per_epoch``) and validation (``plot_valid_per_epoch``); set them after
    the model is created.
    """

    if not TYPE_CHECKING:  # type checkers would take them for arguments despite init=False
        plot_train_per_epoch: int = field(default=2, init=False)
        plot_valid_per_epoch: int = field(default=1, init=False)
        board: ProgressBoard = field(default_factory=ProgressBoard, init=False)

    def loss(self, *args: Any) -> Any:
        """Return the loss of ``state.apply_fn({"params": params}, *X)``; subclasses define it.

        It is called as ``loss(params, X, y, state)``, with the inputs ``X``, a tuple.
        """
        raise shared.undefined_method_error(self, "loss")

    def forward(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply ``self.net`` to ``X``."""
        if not hasattr(self, "net"):
            raise shared.undefined_method_error(self, "forward")
        return self.net(X, *args, **kwargs)

    def __call__(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward``."""
        return self.forward(X, *args, **kwargs)

    def training_step(self, params: Any, batch: Any, state: Any) -> tuple[Any, Any]:
        """Return the loss of a batch (inputs first, labels last) and its gradients; plot the loss."""
        loss, gradients = jax.value_and_grad(self.loss)(params, batch[:-1], batch[-1], state)
        self.plot("loss", loss, train=True)
        return loss, gradients

    def validation_step(self, params: Any, batch: Any, state: Any) -> None:
        """Plot the loss of a batch."""
        self.plot("loss", self.loss(params, batch[:-1], batch[-1], state), train=False)

    def configure_optimizers(self) -> Any:
        """Return Optax's stochastic gradient descent with the learning rate ``self.lr``."""
        import optax  # type: ignore[import-untyped]

        return optax.sgd(self.lr)

    def apply_init(self, dummy_input: Any, key: Any) -> Any:
        """Initialize the variables for inputs like ``dummy_input``, a tuple, and return them."""
        return self.init(key, *dummy_input)


class Classifier(Module):
    """The base class of models that return logits, with classes on the last axis."""

    def training_step(self, params: Any, batch: Any, state: Any) -> tuple[Any, Any]:
        """Return the result of ``loss`` for a batch, and the gradients; plot the loss."""
        differentiate = jax.value_and_grad(self.loss, has_aux=True)
        value, gradients = differentiate(params, batch[:-1], batch[-1], state)
        self.plot("loss", value[0], train=True)
        return value, gradients

    def validation_step(self, params: Any, batch: Any, state: Any) -> None:
        """Plot the loss and the accuracy of a batch."""
        X, Y = batch[:-1], batch[-1]
        self.plot("loss", self.loss(params, X, Y, state)[0], train=False)
        self.plot("acc", self.accuracy(params, X, Y, state), train=False)

    @partial(jax.jit, static_argnums=(0, 5))
    def accuracy(
        self, params: Any, X: Any, Y: jax.Array, state: Any, averaged: bool = True
    ) -> jax.Array:
        """Return the share of rows whose greatest logit is at the label; if not ``averaged``, 0 or 1 for each row."""
        Y_hat = state.apply_fn({"params": params, "batch_stats": state.batch_stats}, *X)
        arrays.check_labels(Y_hat, Y)
        hits = Y_hat.reshape(-1, Y_hat.shape[-1]).argmax(axis=1) == Y.reshape(-1)
        return hits.mean() if averaged else hits.astype(jnp.float32)

    @partial(jax.jit, static_argnums=(0, 5))
    def loss(
        self, params: Any, X: Any, Y: jax.Array, state: Any, averaged: bool = True
    ) -> tuple[jax.Array, Any]:
        """Return the cross-entropy of logits (..., classes) and labels (...), and the changed variables.

        The loss is the mean, or one per label if not ``averaged``; the variables are the statistics
        of batch normalization.
        """
        Y_hat, changed = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats},
            *X,
            mutable=["batch_stats"],
            rngs={"dropout": state.dropout_rng},
        )
        arrays.check_labels(Y_hat, Y)
        # A fraction is no label; its loss is NaN, as that of a label outside the classes.
        labels = jnp.where(Y % 1 == 0, Y, Y_hat.shape[-1]).reshape(-1, 1).astype(jnp.int32)
        log_probabilities = jax.nn.log_softmax(Y_hat.reshape(-1, Y_hat.shape[-1]))
        losses = -jnp.take_along_axis(log_probabilities, labels, axis=1).squeeze(1)
        return losses.mean() if averaged else losses, changed

    def layer_summary(self, X_shape: tuple[int, ...], key: jax.Array | None = None) -> None:
        """Print the shape after each layer of ``self.net``, for an input of shape ``X_shape``."""
        X = jnp.zeros(X_shape)
        keys = dict.fromkeys(("params", "dropout"), get_key() if key is None else key)
        model = self.bind(self.init(keys, X), rngs=keys, mutable=["batch_stats"])
        for layer in model.net.layers:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t {X.shape}")


class DataModule(shared.DataModule):
    """The base class of data: define ``get_dataloader(train)``."""

    def get_tensorloader(
        self, tensors: Any, train: bool, indices: slice = slice(0, None)
    ) -> Loader:
        """Return batches of ``self.batch_size`` rows from ``indices``, shuffled for training.

        A batch is a tuple of NumPy arrays. The order follows Python's ``random``, as
        ``get_key`` does.
        """
        selected = [np.asarray(tensor)[indices] for tensor in tensors]

        def take(rows: Rows) -> Batch:
            return tuple(array[rows] for array in selected)

        return Loader(take, len(selected[0]), self.batch_size, shuffle if train else None)


class Trainer(shared.Trainer):
    """Training of a :class:`Module` on a :class:`DataModule`, epoch by epoch.

    ``state``, a Flax ``TrainState``, has the parameters (``params``), the optimizer's state, the
    statistics of batch normalization (``batch_stats``) and the key of the next step's dropout
    (``dropout_rng``). With ``num_gpus=0`` the model is on JAX's default device.
    """

    devices = devices
    state: Any

    def fit(self, model: Any, data: Any, key: jax.Array | None = None) -> None:
        """Train ``model`` on ``data``, from parameters initialized with ``key``, or ``get_key()``.

        The model's attribute ``training`` is True in training and False in validation. Raises
        TypeError if the arguments lack methods of a Module and of a DataModule.
        """
        from d2l_compat.jax._state import TrainState

        self.prepare_data(data)
        self.prepare_model(model)
        self.optim = model.configure_optimizers()
        params_key, dropout_key = jax.random.split(get_key() if key is None else key)
        inputs = self.prepare_batch(next(iter(self.train_dataloader)))[:-1]
        keys = {"params": params_key, "dropout": dropout_key}
        variables = self._to_device(model.apply_init(inputs, key=keys))
        self.state = TrainState.create(
            apply_fn=model.apply,
            params=variables["params"],
            tx=self.optim,
            batch_stats=variables.get("batch_stats", {}),
            dropout_rng=self._to_device(dropout_key),
        )
        self.run_epochs()

    def prepare_batch(self, batch: Any) -> Any:
        """Move ``batch`` to the model's device."""
        return self._to_device(batch)

    def fit_epoch(self) -> None:
        """Train on every batch once, and then validate."""
        super().fit_epoch()
        self._set_training(False)  # also if there is no validation data

    def _set_training(self, is_training: bool) -> None:
        """Set ``training`` of the model and of the state."""
        self.model.training = is_training
        self.state = self.state.replace(training=is_training)

    def _step(self, batch: Any) -> None:
        """Train on one batch: compute the loss and its gradients, and update the state."""
        state = self.state
        value, gradients = self.model.training_step(state.params, batch, state)
        if self.gradient_clip_val > 0:
            gradients = self.clip_gradients(self.gradient_clip_val, gradients)
        # If the model has statistics, `value` is the loss and the changed variables.
        statistics = value[1]["batch_stats"] if state.batch_stats else {}
        self.state = state.apply_step(gradients, statistics)

    def _validate(self, batch: Any) -> None:
        """Call the model's ``validation_step``."""
        self.model.validation_step(self.state.params, batch, self.state)

    def clip_gradients(self, grad_clip_val: float, grads: Any) -> Any:
        """Scale the gradients down so that their joint norm is at most ``grad_clip_val``."""
        norm = jnp.sqrt(sum((gradient**2).sum() for gradient in jax.tree.leaves(grads)))
        scale = grad_clip_val / jnp.maximum(norm, grad_clip_val)
        return jax.tree.map(lambda gradient: gradient * scale, grads)

    def _to_device(self, values: Any) -> Any:
        return jax.device_put(values, self.gpus[0]) if self.gpus else values
