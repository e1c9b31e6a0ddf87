"""Recurrent networks as language models: the classes of D2L 1.0, and the classes and training of 0.17."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks
from d2l_compat._shared import recurrent as shared
from d2l_compat.tensorflow._arrays import arrays
from d2l_compat.tensorflow._keras import IS_KERAS_2, keras
from d2l_compat.tensorflow.attention import register
from d2l_compat.tensorflow.devices import try_gpu
from d2l_compat.tensorflow.training import Classifier, Module, clip_gradients, has_default_build

__all__ = [
    "RNN",
    "RNNLM",
    "RNNLMScratch",
    "RNNModel",
    "RNNModelScratch",
    "RNNScratch",
    "grad_clipping",
    "predict_ch8",
    "train_ch8",
    "train_epoch_ch8",
]


@register
class RNNScratch(Module):
    """A recurrent layer from scratch: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b_h)."""

    def __init__(self, num_inputs: int, num_hiddens: int, sigma: float = 0.01) -> None:
        """Draw normal weights with the standard deviation ``sigma``. Raises TypeError or ValueError for sizes below 1."""
        super().__init__()
        num_inputs = checks.size("num_inputs", num_inputs)
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        sigma = checks.real("sigma", sigma, "a number")
        self.save_hyperparameters()
        self.W_xh = tf.Variable(tf.random.normal((num_inputs, num_hiddens)) * sigma)
        self.W_hh = tf.Variable(tf.random.normal((num_hiddens, num_hiddens)) * sigma)
        self.b_h = tf.Variable(tf.zeros(num_hiddens))

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[list[Tensor], Tensor]:
        """Return an output (batch, hiddens) for each step of ``inputs`` (steps, batch, inputs), and the new state."""
        num_inputs, num_hiddens = self.W_xh.shape
        arrays.check_sequence("inputs", inputs, num_inputs)
        state = shared.unpack_state(state)
        if state is None:
            state = tf.zeros((inputs.shape[1], num_hiddens))
        outputs = []
        for X in tf.unstack(inputs):
            state = tf.tanh(X @ self.W_xh + state @ self.W_hh + self.b_h)
            outputs.append(state)
        return outputs, state


@register
class RNNLMScratch(shared.LanguageModelSteps, Classifier):
    """A language model from scratch: a recurrent layer ``rnn``, and an output layer for the next token."""

    exp = staticmethod(tf.exp)

    def __init__(self, rnn: keras.layers.Layer, vocab_size: int, lr: float = 0.01) -> None:
        """Create the model; ``rnn`` takes (steps, batch, vocab_size).

        Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__()
        checks.check_instance("rnn", rnn, keras.layers.Layer, "a layer")
        vocab_size = checks.size("vocab_size", vocab_size)
        self.save_hyperparameters()
        self.init_params()

    def init_params(self) -> None:
        """Draw the weights of the output layer with the standard deviation of the weights of ``rnn``."""
        shape = self.rnn.num_hiddens, self.vocab_size
        self.W_hq = tf.Variable(tf.random.normal(shape) * self.rnn.sigma)
        self.b_q = tf.Variable(tf.zeros(self.vocab_size))

    def one_hot(self, X: Tensor) -> Tensor:
        """Encode tokens (batch, steps) as (steps, batch, vocab_size), 1 at each token and 0 elsewhere."""
        return _one_hot(X, self.vocab_size)

    def output_layer(self, rnn_outputs: Any) -> Tensor:
        """Return logits (batch, steps, vocab_size) for a list of outputs (batch, hiddens), one for each step."""
        return tf.stack([H @ self.W_hq + self.b_q for H in rnn_outputs], 1)

    def forward(self, X: Tensor, state: Any = None) -> Tensor:
        """Return logits (batch, steps, vocab_size) for the token that follows each token in X (batch, steps)."""
        return self.output_layer(self.rnn(self.one_hot(X), state)[0])

    def predict(self, prefix: str, num_preds: int, vocab: Any, device: Any = None) -> str:
        """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

        Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
        """

        def step(token: int, state: Any) -> tuple[int, Any]:
            outputs, state = self.rnn(self.one_hot(tf.constant([[token]])), state)
            return int(tf.argmax(self.output_layer(outputs)[0, 0])), state

        return shared.predict(prefix, num_preds, vocab, step)


@register
class RNN(Module):
    """Keras's recurrent layer: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b)."""

    def __init__(self, num_hiddens: int) -> None:
        """Create the layer. Raises TypeError or ValueError for a size below 1."""
        super().__init__()
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        self.save_hyperparameters()
        self.rnn: Any = keras.layers.SimpleRNN(
            num_hiddens, return_sequences=True, return_state=True
        )

    def forward(self, inputs: Tensor, H: Any = None) -> Any:
        """Map ``inputs`` (steps, batch, inputs) to (steps, batch, hiddens) and a new state (batch, hiddens)."""
        outputs, *H = _run_steps_first(self.rnn, inputs, H)
        return outputs, H[0] if len(H) == 1 else H  # a subclass's layer may have several states


@register
class RNNLM(RNNLMScratch):
    """A language model with Keras's layers: a recurrent layer ``rnn`` and a dense layer."""

    def init_params(self) -> None:
        """Create the output layer, whose first call sets its sizes."""
        self.linear = keras.layers.Dense(self.vocab_size)

    def output_layer(self, hiddens: Tensor) -> Tensor:
        """Map (steps, batch, hiddens) to logits (batch, steps, vocab_size)."""
        return tf.transpose(self.linear(hiddens), (1, 0, 2))


def _run_steps_first(layer: keras.layers.RNN, inputs: Tensor, state: Any) -> list[Any]:
    """Call a layer with (steps, batch, inputs), as Keras 2 does with ``time_major``, which Keras 3 lacks."""
    if not hasattr(layer, "_compiled"):  # Keras's eager loop is six times slower
        layer._compiled = tf.function(layer)
    if getattr(layer, "time_major", False):
        return list(layer._compiled(inputs, initial_state=state))
    Y, *state = layer._compiled(tf.transpose(inputs, (1, 0, 2)), initial_state=state)
    return [tf.transpose(Y, (1, 0, 2)), *state]


class RNNModelScratch:
    """D2L 0.17's language model from scratch, built from functions; it is called with tokens and a state."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        init_state: Callable[..., Any],
        forward_fn: Callable[..., tuple[Tensor, Any]],
        get_params: Callable[..., Sequence[tf.Variable]],
    ) -> None:
        """Create the parameters with ``get_params(vocab_size, num_hiddens)``.

        ``init_state(batch_size, num_hiddens)`` returns a state; ``forward_fn(X, state, params)`` returns logits
        (steps * batch, vocab_size) for X (steps, batch, vocab_size), and the state. Raises TypeError or ValueError if
        these are not functions, or sizes are below 1.
        """
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.num_hiddens = checks.size("num_hiddens", num_hiddens)
        shared.check_functions(get_params, init_state, forward_fn)
        self.init_state, self.forward_fn = init_state, forward_fn
        self.trainable_variables = get_params(vocab_size, num_hiddens)

    def __call__(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        return self.forward_fn(_one_hot(X, self.vocab_size), state, self.trainable_variables)

    def begin_state(self, batch_size: int, *args: Any, **kwargs: Any) -> Any:
        """Return the initial state, from ``init_state``."""
        return self.init_state(batch_size, self.num_hiddens)


@register
class RNNModel(keras.layers.Layer):
    """D2L 0.17's language model: a recurrent Keras layer, ``rnn_layer``, and a dense layer."""

    def __init__(self, rnn_layer: keras.layers.RNN, vocab_size: int, **kwargs: Any) -> None:
        """Create the model; ``rnn_layer`` takes (batch, steps, vocab_size), and returns all outputs and its state.

        ``kwargs`` are those of any Keras layer. Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__(**kwargs)
        checks.check_instance("rnn_layer", rnn_layer, keras.layers.RNN, "a Keras recurrent layer")
        if not (rnn_layer.return_sequences and rnn_layer.return_state):
            got = f"return_sequences {rnn_layer.return_sequences}, return_state {rnn_layer.return_state}"
            raise ValueError(checks.message("rnn_layer", got, "True for both"))
        self.rnn = rnn_layer
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.dense = keras.layers.Dense(vocab_size)
        self.built = has_default_build(self)

    def call(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        Y, *state = _run_steps_first(self.rnn, _one_hot(inputs, self.vocab_size), state)
        return self.dense(tf.reshape(Y, (-1, Y.shape[-1]))), state

    def begin_state(self, batch_size: int = 1, dtype: Any = None) -> Any:
        """Return the layer's initial state, zeros in its dtype."""
        if IS_KERAS_2:
            return self.rnn.cell.get_initial_state(batch_size=batch_size, dtype=self.compute_dtype)
        return self.rnn.get_initial_state(batch_size)


def _one_hot(X: Any, vocab_size: int) -> Tensor:
    X = tf.convert_to_tensor(X)
    arrays.check_tokens(X, vocab_size)
    return tf.one_hot(tf.cast(tf.transpose(X), tf.int32), vocab_size)


def predict_ch8(prefix: str, num_preds: int, net: Any, vocab: Any) -> str:
    """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

    Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
    """
    checks.check_callable("net", net)

    def step(token: int, state: Any) -> tuple[int, Any]:
        Y, state = net(tf.constant([[token]]), state)
        return int(tf.argmax(Y[0])), state

    initial_state = net.begin_state(batch_size=1, dtype=tf.float32)
    return shared.predict(prefix, num_preds, vocab, step, initial_state)


def grad_clipping(grads: Sequence[Any], theta: float) -> list[Any]:
    """Return the gradients, scaled so that their joint norm is at most ``theta``.

    Raises TypeError or ValueError if ``theta`` is not a number above 0.
    """
    return clip_gradients(grads, shared.clipping_threshold(theta))


def train_epoch_ch8(
    net: Any,
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: keras.optimizers.Optimizer,
    use_random_iter: bool,
) -> tuple[float, float]:
    """Train for one epoch; return the perplexity, and tokens per second.

    ``loss(y, y_hat)`` is a Keras loss that returns a mean; ``updater`` is a Keras optimizer. Gradients are clipped to
    the norm 1. With ``use_random_iter`` each batch begins with a new state, otherwise with the last state of the
    previous batch. Raises TypeError or ValueError if arguments are of the wrong type, or there is no batch (X, Y).
    """
    checks.check_callable("net", net)
    checks.check_callable("loss", loss)
    checks.check_instance("updater", updater, keras.optimizers.Optimizer, "a Keras optimizer")

    def step(X: Tensor, Y: Tensor, state: Any) -> tuple[Tensor, Any, int]:
        with tf.GradientTape() as tape:
            y_hat, state = net(X, state)
            batch_loss = loss(tf.reshape(tf.transpose(Y), (-1,)), y_hat)
        params = net.trainable_variables
        grads = grad_clipping(tape.gradient(batch_loss, params), 1)
        updater.apply_gradients(zip(grads, params, strict=True))
        return batch_loss, state, int(tf.size(Y))

    return shared.train_epoch(
        train_iter,
        step,
        lambda batch_size: net.begin_state(batch_size=batch_size, dtype=tf.float32),
        lambda state: state,  # no need to detach: each tape records only its own batch
        use_random_iter,
    )


def train_ch8(
    net: Any,
    train_iter: Any,
    vocab: Any,
    lr: float,
    num_epochs: int,
    strategy: tf.distribute.Strategy,
    use_random_iter: bool = False,
) -> None:
    """Train a language model with stochastic gradient descent, cross-entropy and :func:`train_epoch_ch8`.

    Every ten epochs the perplexity is plotted, and the model's continuation of *time traveller* printed. Raises
    TypeError or ValueError if ``num_epochs`` is below 1, or there is no batch (X, Y).
    """
    lr = checks.real("lr", lr, "a number")
    device: Any = try_gpu()
    checks.check_callable("net", net)
    checks.check_instance("strategy", strategy, tf.distribute.Strategy, "a TensorFlow strategy")
    with strategy.scope():
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        updater = keras.optimizers.SGD(float(lr))
    shared.train_ch8(
        num_epochs,
        lambda: train_epoch_ch8(net, train_iter, loss, updater, use_random_iter),
        lambda prefix: predict_ch8(prefix, 50, net, vocab),
        device._device_name,
    )
