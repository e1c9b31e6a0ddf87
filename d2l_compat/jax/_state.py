"""The state of training. This imports Optax, so it is itself imported when training begins."""

from typing import Any

import jax
from flax import struct
from flax.training import train_state


class TrainState(train_state.TrainState):
    """Flax's, with the statistics of batch normalization, and the next step's key for dropout.

    ``training`` is the model's. A function that is compiled for a model and a state is compiled
    for either value of it: the model alone would be taken for what it was when it last came.
    """

    batch_stats: Any
    dropout_rng: jax.Array
    training: bool = struct.field(default=True, pytree_node=False)

    def updated(self, gradients: Any, statistics: Any) -> "TrainState":
        """The state after a step of the optimizer."""
        next_key = jax.random.split(self.dropout_rng)[0]
        return self.apply_gradients(grads=gradients, batch_stats=statistics, dropout_rng=next_key)
