"""Recurrent networks as language models: D2L 1.0's classes, and those and the training of 0.17."""

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
from d2l_compat.tensorflow.training import Classifier, Module, builds_its_parts, clip_gradients

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
        """Weights are normal, of the standard deviation ``sigma``. Raises TypeError or ValueError for sizes below 1."""
        super().__init__()
        num_inputs = checks.size("num_inputs", num_inputs)
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        sigma = checks.real("sigma", sigma, "a number")
        self.save_hyperparameters()
        self.W_xh = tf.Variable(tf.random.normal((num_inputs, num_hiddens)) * sigma)
        self.W_hh = tf.Variable(tf.random.normal((num_hiddens, num_hiddens)) * sigma)
        self.b_h = tf.Variable(tf.zeros(num_hiddens))

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[list[Tensor], Tensor]:
        """(steps, batch, inputs) to as many outputs (batch, hiddens) as steps, and the last, the state."""
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
    """A language model from scratch: a recurrent layer ``rnn``, and logits of what comes next."""

    exp = staticmethod(tf.exp)

    def __init__(self, rnn: keras.layers.Layer, vocab_size: int, lr: float = 0.01) -> None:
        """``rnn`` takes (steps, batch, vocab_size). Raises TypeError or ValueError for arguments of another kind."""
        super().__init__()
        checks.check_instance("rnn", rnn, keras.layers.Layer, "a layer")
        vocab_size = checks.size("vocab_size", vocab_size)
        self.save_hyperparameters()
        self.init_params()

    def init_params(self) -> None:
        """Draw the weights of the output layer, as ``rnn`` draws its own."""
        shape = self.rnn.num_hiddens, self.vocab_size
        self.W_hq = tf.Variable(tf.random.normal(shape) * self.rnn.sigma)
        self.b_q = tf.Variable(tf.zeros(self.vocab_size))

    def one_hot(self, X: Tensor) -> Tensor:
        """Tokens (batch, steps) to (steps, batch, vocab_size), 1 at each token and 0 elsewhere."""
        return _one_hot(X, self.vocab_size)

    def output_layer(self, rnn_outputs: Any) -> Tensor:
        """As many outputs (batch, hiddens) as steps to logits (batch, steps, vocab_size)."""
        return tf.stack([H @ self.W_hq + self.b_q for H in rnn_outputs], 1)

    def forward(self, X: Tensor, state: Any = None) -> Tensor:
        """Tokens (batch, steps) to logits of the next ones, (batch, steps, vocab_size)."""
        return self.output_layer(self.rnn(self.one_hot(X), state)[0])

    def predict(self, prefix: str, num_preds: int, vocab: Any, device: Any = None) -> str:
        """``prefix``, and after it ``num_preds`` characters, the likeliest each time.

        Raises TypeError or ValueError where these are of another kind, or ``prefix`` is empty.
        """

        def step(token: int, state: Any) -> tuple[int, Any]:
            outputs, state = self.rnn(self.one_hot(tf.constant([[token]])), state)
            return int(tf.argmax(self.output_layer(outputs)[0, 0])), state

        return shared.predict(prefix, num_preds, vocab, step)


@register
class RNN(Module):
    """Keras's recurrent layer: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b)."""

    def __init__(self, num_hiddens: int) -> None:
        """Raises TypeError or ValueError for a size below 1."""
        super().__init__()
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        self.save_hyperparameters()
        self.rnn: Any = keras.layers.SimpleRNN(
            num_hiddens, return_sequences=True, return_state=True
        )

    def forward(self, inputs: Tensor, H: Any = None) -> Any:
        """(steps, batch, inputs) to (steps, batch, hiddens), and the state (batch, hiddens)."""
        outputs, *H = _steps_first(self.rnn, inputs, H)
        return outputs, H[0] if len(H) == 1 else H  # a subclass's layer may have several


@register
class RNNLM(RNNLMScratch):
    """The same language model, of Keras's layers."""

    def init_params(self) -> None:
        """The output layer has its sizes after the first call."""
        self.linear = keras.layers.Dense(self.vocab_size)

    def output_layer(self, hiddens: Tensor) -> Tensor:
        """(steps, batch, hiddens) to logits (batch, steps, vocab_size)."""
        return tf.transpose(self.linear(hiddens), (1, 0, 2))


def _steps_first(layer: keras.layers.RNN, inputs: Tensor, state: Any) -> list[Any]:
    """What a layer gives for (steps, batch, inputs). Keras 3 takes the batch first; Keras 2 has ``time_major``."""
    if not hasattr(layer, "_compiled"):  # step by step, Keras's loop takes six times as long
        layer._compiled = tf.function(layer)
    if getattr(layer, "time_major", False):
        return list(layer._compiled(inputs, initial_state=state))
    Y, *state = layer._compiled(tf.transpose(inputs, (1, 0, 2)), initial_state=state)
    return [tf.transpose(Y, (1, 0, 2)), *state]


class RNNModelScratch:
    """D2L 0.17's language model from scratch, of functions: it is called with tokens and a state."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        init_state: Callable[..., Any],
        forward_fn: Callable[..., tuple[Tensor, Any]],
        get_params: Callable[..., Sequence[tf.Variable]],
    ) -> None:
        """``get_params(vocab_size, num_hiddens)`` gives the parameters, ``init_state(batch_size, num_hiddens)`` a state,
        ``forward_fn(X, state, params)`` of X (steps, batch, vocab_size) logits (steps * batch, vocab_size) and the state.
        Raises TypeError or ValueError where these are no functions, or sizes below 1.
        """
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.num_hiddens = checks.size("num_hiddens", num_hiddens)
        shared.check_functions(get_params, init_state, forward_fn)
        self.init_state, self.forward_fn = init_state, forward_fn
        self.trainable_variables = get_params(vocab_size, num_hiddens)

    def __call__(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Tokens (batch, steps) to logits of the next ones, (steps * batch, vocab_size), and the state."""
        return self.forward_fn(_one_hot(X, self.vocab_size), state, self.trainable_variables)

    def begin_state(self, batch_size: int, *args: Any, **kwargs: Any) -> Any:
        """What ``init_state`` gives."""
        return self.init_state(batch_size, self.num_hiddens)


@register
class RNNModel(keras.layers.Layer):
    """D2L 0.17's language model of a recurrent layer of Keras's, ``rnn_layer``, and a dense one."""

    def __init__(self, rnn_layer: keras.layers.RNN, vocab_size: int, **kwargs: Any) -> None:
        """The layer takes (batch, steps, vocab_size), as Keras 3 does, and gives all outputs and its state.

        ``kwargs`` are any Keras layer's. Raises TypeError or ValueError for arguments of another kind.
        """
        super().__init__(**kwargs)
        checks.check_instance(
            "rnn_layer", rnn_layer, keras.layers.RNN, "a recurrent layer of Keras's"
        )
        if not (rnn_layer.return_sequences and rnn_layer.return_state):
            got = f"return_sequences {rnn_layer.return_sequences}, return_state {rnn_layer.return_state}"
            raise ValueError(checks.fault("rnn_layer", got, "True for both"))
        self.rnn, self.vocab_size = rnn_layer, checks.size("vocab_size", vocab_size)
        self.dense = keras.layers.Dense(vocab_size)
        self.built = builds_its_parts(self)

    def call(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Tokens (batch, steps) to logits of the next ones, (steps * batch, vocab_size), and the state."""
        Y, *state = _steps_first(self.rnn, _one_hot(inputs, self.vocab_size), state)
        return self.dense(tf.reshape(Y, (-1, Y.shape[-1]))), state

    def begin_state(self, batch_size: int = 1, dtype: Any = None) -> Any:
        """Zeros: the layer's own, in its dtype."""
        if IS_KERAS_2:
            return self.rnn.cell.get_initial_state(batch_size=batch_size, dtype=self.compute_dtype)
        return self.rnn.get_initial_state(batch_size)


def _one_hot(X: Any, vocab_size: int) -> Tensor:
    X = tf.convert_to_tensor(X)
    arrays.check_tokens(X, vocab_size)
    return tf.one_hot(tf.cast(tf.transpose(X), tf.int32), vocab_size)


def predict_ch8(prefix: str, num_preds: int, net: Any, vocab: Any) -> str:
    """``prefix``, and after it ``num_preds`` characters, the likeliest each time.

    Raises TypeError or ValueError where these are of another kind, or ``prefix`` is empty.
    """
    checks.check_callable("net", net)

    def step(token: int, state: Any) -> tuple[int, Any]:
        Y, state = net(tf.constant([[token]]), state)
        return int(tf.argmax(Y[0])), state

    start = net.begin_state(batch_size=1, dtype=tf.float32)
    return shared.predict(prefix, num_preds, vocab, step, start)


def grad_clipping(grads: Sequence[Any], theta: float) -> list[Any]:
    """The gradients, shortened so that all together have at most the norm ``theta``.

    Raises TypeError or ValueError where ``theta`` is no number above 0.
    """
    return clip_gradients(grads, shared.clipping_threshold(theta))


def train_epoch_ch8(
    net: Any,
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: keras.optimizers.Optimizer,
    use_random_iter: bool,
) -> tuple[float, float]:
    """Train for one epoch: gives the perplexity, and tokens a second.

    ``loss(y, y_hat)`` is a loss of Keras, a mean; ``updater`` an optimizer. Gradients are clipped at the norm 1. With
    ``use_random_iter`` each batch begins with a new state, otherwise it goes on. Raises TypeError or ValueError where
    these are of another kind, or there is no batch (X, Y).
    """
    checks.check_callable("net", net)
    checks.check_callable("loss", loss)
    checks.check_instance("updater", updater, keras.optimizers.Optimizer, "an optimizer of Keras")

    def step(X: Tensor, Y: Tensor, state: Any) -> tuple[Tensor, Any, int]:
        with tf.GradientTape() as tape:
            y_hat, state = net(X, state)
            mean = loss(tf.reshape(tf.transpose(Y), (-1,)), y_hat)
        params = net.trainable_variables
        grads = grad_clipping(tape.gradient(mean, params), 1)
        updater.apply_gradients(zip(grads, params, strict=True))
        return mean, state, int(tf.size(Y))

    return shared.train_epoch(
        train_iter,
        step,
        lambda batch_size: net.begin_state(batch_size=batch_size, dtype=tf.float32),
        lambda state: state,  # each tape has seen its own batch alone
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
    """Train a language model by stochastic gradient descent and cross-entropy, with :func:`train_epoch_ch8`.

    The perplexity is drawn each ten epochs, and what follows *time traveller* printed. Raises TypeError or ValueError where
    ``num_epochs`` is below 1, or there is no batch (X, Y).
    """
    lr = checks.real("lr", lr, "a number")
    device: Any = try_gpu()
    checks.check_callable("net", net)
    checks.check_instance("strategy", strategy, tf.distribute.Strategy, "a strategy of TensorFlow")
    with strategy.scope():
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        updater = keras.optimizers.SGD(float(lr))
    shared.train_ch8(
        num_epochs,
        lambda: train_epoch_ch8(net, train_iter, loss, updater, use_random_iter),
        lambda prefix: predict_ch8(prefix, 50, net, vocab),
        device._device_name,
    )
