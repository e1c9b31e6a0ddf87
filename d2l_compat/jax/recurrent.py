"""D2L 1.0's recurrent networks as language models."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import checks
from d2l_compat._shared import recurrent as shared
from d2l_compat.jax._arrays import Array, arrays, as_jax
from d2l_compat.jax.training import Classifier

__all__ = ["RNN", "RNNLM", "RNNLMScratch", "RNNScratch"]


class RNNScratch(nn.Module):
    """A recurrent layer from scratch: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b_h).

    Weights are drawn from a normal distribution with the standard deviation ``sigma``. Raises
    TypeError or ValueError for sizes below 1.
    """

    num_inputs: int
    num_hiddens: int
    sigma: float = 0.01

    def __post_init__(self) -> None:
        self.num_inputs = checks.size("num_inputs", self.num_inputs)
        self.num_hiddens = checks.size("num_hiddens", self.num_hiddens)
        checks.real("sigma", self.sigma, "a number")
        super().__post_init__()

    def setup(self) -> None:
        normal = nn.initializers.normal(self.sigma)
        self.W_xh = self.param("W_xh", normal, (self.num_inputs, self.num_hiddens))
        self.W_hh = self.param("W_hh", normal, (self.num_hiddens, self.num_hiddens))
        self.b_h = self.param("b_h", nn.initializers.zeros, (self.num_hiddens,))

    def __call__(self, inputs: Array, state: Any = None) -> tuple[list[jax.Array], Any]:
        """Return an output (batch, hiddens) for each step of ``inputs`` (steps, batch, inputs), and the new state."""
        inputs = as_jax(inputs)
        arrays.check_sequence("inputs", inputs, self.num_inputs)
        state = shared.unpack_state(state)
        if state is None:
            state = jnp.zeros((inputs.shape[1], self.num_hiddens))
        outputs = []
        for X in inputs:
            state = jnp.tanh(X @ self.W_xh + state @ self.W_hh + self.b_h)
            outputs.append(state)
        return outputs, state


class RNNLMScratch(Classifier):
    """A language model from scratch: a recurrent layer ``rnn``, and an output layer for the next token.

    The input of ``rnn`` is (steps, batch, vocab_size). Raises TypeError or ValueError for
    arguments of the wrong type or range.
    """

    rnn: nn.Module
    vocab_size: int
    lr: float = 0.01

    def __post_init__(self) -> None:
        checks.check_instance("rnn", self.rnn, nn.Module, "a layer")
        self.vocab_size = checks.size("vocab_size", self.vocab_size)
        super().__post_init__()

    def setup(self) -> None:
        rnn: Any = self.rnn
        normal = nn.initializers.normal(rnn.sigma)
        self.W_hq = self.param("W_hq", normal, (rnn.num_hiddens, self.vocab_size))
        self.b_q = self.param("b_q", nn.initializers.zeros, (self.vocab_size,))

    def training_step(self, params: Any, batch: Any, state: Any) -> tuple[Any, Any]:
        """Return the result of ``loss`` for a batch, and the gradients; plot the perplexity."""
        differentiate = jax.value_and_grad(self.loss, has_aux=True)
        value, gradients = differentiate(params, batch[:-1], batch[-1], state)
        self.plot("ppl", jnp.exp(value[0]), train=True)
        return value, gradients

    def validation_step(self, params: Any, batch: Any, state: Any) -> None:
        """Plot the perplexity of a batch."""
        loss, _ = self.loss(params, batch[:-1], batch[-1], state)
        self.plot("ppl", jnp.exp(loss), train=False)

    def one_hot(self, X: Array) -> jax.Array:
        """Encode tokens (batch, steps) as (steps, batch, vocab_size), 1 at each token and 0 elsewhere."""
        arrays.check_tokens(X, self.vocab_size)
        return jax.nn.one_hot(as_jax(X).T, self.vocab_size)

    def output_layer(self, rnn_outputs: Any) -> jax.Array:
        """Return logits (batch, steps, vocab_size) for a list of outputs (batch, hiddens), one for each step."""
        return jnp.stack([H @ self.W_hq + self.b_q for H in rnn_outputs], 1)

    def forward(self, X: Array, state: Any = None) -> jax.Array:
        """Return logits (batch, steps, vocab_size) for the token that follows each token in X (batch, steps)."""
        return self.output_layer(self.rnn(self.one_hot(X), state)[0])

    def predict(self, prefix: str, num_preds: int, vocab: Any, params: Any) -> str:
        """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

        Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
        """

        def step(token: int, state: Any) -> tuple[int, Any]:
            X = self.one_hot(jnp.array([[token]]))
            outputs, state = self.rnn.apply({"params": params["rnn"]}, X, state)
            Y = self.apply({"params": params}, outputs, method=self.output_layer)
            return int(jnp.argmax(Y)), state  # type: ignore[arg-type]

        return shared.predict(prefix, num_preds, vocab, step)


class RNN(nn.Module):
    """Flax's recurrent layer: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b).

    Raises TypeError or ValueError for a size below 1.
    """

    num_hiddens: int

    def __post_init__(self) -> None:
        self.num_hiddens = checks.size("num_hiddens", self.num_hiddens)
        super().__post_init__()

    @nn.compact
    def __call__(
        self, inputs: Array, H: Any = None, training: bool = False
    ) -> tuple[jax.Array, jax.Array]:
        """Map ``inputs`` (steps, batch, inputs) to (steps, batch, hiddens) and a new state (batch, hiddens)."""
        arrays.check_sequence("inputs", as_jax(inputs), None)
        layer = nn.RNN(nn.SimpleCell(self.num_hiddens), time_major=True, return_carry=True)
        last, outputs = layer(as_jax(inputs), initial_carry=shared.unpack_state(H))
        return outputs, last


class RNNLM(RNNLMScratch):
    """A language model with Flax's layers: ``rnn``, called with (inputs, state, training), and a dense layer."""

    training: bool = True

    def setup(self) -> None:
        self.linear = nn.Dense(self.vocab_size)

    def output_layer(self, hiddens: Array) -> jax.Array:
        """Map (steps, batch, hiddens) to logits (batch, steps, vocab_size)."""
        return jnp.swapaxes(self.linear(hiddens), 0, 1)

    def forward(self, X: Array, state: Any = None) -> jax.Array:
        """Return logits (batch, steps, vocab_size) for the token that follows each token in X (batch, steps)."""
        outputs, _ = self.rnn(self.one_hot(X), state, self.training)
        return self.output_layer(outputs)
