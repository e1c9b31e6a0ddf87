"""The state of training, imported only when training begins: it imports Optax."""

from typing import Any

import jax
from flax import struct
from flax.training import train_state


class TrainState(train_state.TrainState):
    """Flax's state, with the statistics of batch normalization and the next step's dropout key.

    ``training`` copies the model's attribute. It is in the state because a change of the model alone would not
    make ``jax.jit`` compile again; a change of this static field does.
    """

    batch_stats: Any
    dropout_rng: jax.Array
    training: bool = struct.field(default=True, pytree_node=False)

    def apply_step(self, gradients: Any, statistics: Any) -> "TrainState":
        """Return the state after a step of the optimizer."""
        next_key = jax.random.split(self.dropout_rng)[0]
        return self.apply_gradients(grads=gradients, batch_stats=statistics, dropout_rng=next_key)
