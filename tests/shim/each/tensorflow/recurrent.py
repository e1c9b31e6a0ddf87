"""Language models as a reader of D2L writes and uses them in TensorFlow."""

from typing import Any

import numpy as np
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras

ACTIVATION = np.tanh
STRATEGY = tf.distribute.OneDeviceStrategy("/CPU:0")


# D2L 1.0


def model(name: str, start: dict[str, Any], lr: float = 1.0, d2l: Any = d2l) -> Any:
    """It starts from these weights."""
    vocab_size, num_hiddens = start["W_xh"].shape
    is_scratch = name == "RNNLMScratch"
    rnn = d2l.RNNScratch(vocab_size, num_hiddens) if is_scratch else d2l.RNN(num_hiddens)
    made = getattr(d2l, name)(rnn, vocab_size, lr)
    made(tf.zeros((1, 1), tf.int32))
    if is_scratch:
        for part, names in (rnn, ("W_xh", "W_hh", "b_h")), (made, ("W_hq", "b_q")):
            for each in names:
                getattr(part, each).assign(start[each])
    else:
        for variable, value in zip(
            [*rnn.rnn.weights, *made.linear.weights], start.values(), strict=True
        ):
            variable.assign(value)
    return made


def weights(model: Any) -> dict[str, Any]:
    if hasattr(model, "W_hq"):
        found = {name: getattr(model.rnn, name) for name in ("W_xh", "W_hh", "b_h")}
        found |= {"W_hq": model.W_hq, "b_q": model.b_q}
    else:
        found = dict(zip(("W_xh", "W_hh", "b_h"), model.rnn.rnn.weights, strict=True))
        found |= dict(zip(("W_hq", "b_q"), model.linear.weights, strict=True))
    return {name: each.numpy() for name, each in found.items()}


def logits(model: Any, tokens: Any, *state: Any) -> Any:
    return model(tf.constant(tokens, tf.int32), *map(list, state)).numpy()


def layer(name: str, start: dict[str, Any], inputs: Any, state: Any = None) -> Any:
    """Of the recurrent layer alone, (steps, batch, inputs) to outputs and a state."""
    rnn = model(name, start).rnn
    outputs, state = rnn(tf.constant(inputs), None if state is None else [tf.constant(state)])
    return np.array([each.numpy() for each in outputs]), state.numpy()


def fit(model: Any, data: Any, clip: float, d2l: Any = d2l) -> None:
    d2l.Trainer(max_epochs=1, gradient_clip_val=clip).fit(model, data)


def say(model: Any, prefix: str, num_preds: int, vocab: Any) -> str:
    return model.predict(prefix, num_preds, vocab)


# D2L 0.17


def functions(start: dict[str, Any]) -> tuple[Any, ...]:
    """What a model of functions is made of."""

    def get_params(vocab_size: int, num_hiddens: int) -> list[tf.Variable]:
        if start["W_xh"].shape != (vocab_size, num_hiddens):
            raise ValueError(f"sizes: got {vocab_size} and {num_hiddens}; need those of the start")
        return [tf.Variable(each) for each in start.values()]

    def init_state(batch_size: int, num_hiddens: int) -> Any:
        return (tf.zeros((batch_size, num_hiddens)),)

    def forward(inputs: tf.Tensor, state: Any, params: Any) -> Any:
        W_xh, W_hh, b_h, W_hq, b_q = params
        (H,), outputs = state, []
        for X in inputs:
            H = tf.tanh(X @ W_xh + H @ W_hh + b_h)
            outputs.append(H @ W_hq + b_q)
        return tf.concat(outputs, 0), (H,)

    return *start["W_xh"].shape, init_state, forward, get_params


def from_functions(start: dict[str, Any], d2l: Any = d2l) -> Any:
    return d2l.RNNModelScratch(*functions(start))


def params(net: Any) -> list[Any]:
    return [each.numpy() for each in net.trainable_variables]


def train_epoch(
    net: Any, batches: Any, lr: float, use_random_iter: bool, own: bool, d2l: Any = d2l
) -> Any:
    """With an optimizer of Keras: there is no other way."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return d2l.train_epoch_ch8(net, batches, loss, keras.optimizers.SGD(lr), use_random_iter)


def predict_ch8(net: Any, prefix: str, num_preds: int, vocab: Any, d2l: Any = d2l) -> str:
    return d2l.predict_ch8(prefix, num_preds, net, vocab)


def train_ch8(
    net: Any, batches: Any, vocab: Any, lr: float, num_epochs: int, d2l: Any = d2l
) -> None:
    d2l.train_ch8(net, batches, vocab, lr, num_epochs, STRATEGY)


def layers(vocab_size: int, num_hiddens: int, d2l: Any = d2l) -> list[Any]:
    """Recurrent layers of the framework's, and what is made of them."""
    kinds = keras.layers.SimpleRNN, keras.layers.GRU, keras.layers.LSTM
    made = [kind(num_hiddens, return_sequences=True, return_state=True) for kind in kinds]
    cells = [keras.layers.GRUCell(num_hiddens) for _ in range(2)]
    made.append(keras.layers.RNN(cells, return_sequences=True, return_state=True))
    return [d2l.RNNModel(each, vocab_size) for each in made]


def twice(net: Any, tokens: Any) -> list[Any]:
    """The logits of a batch, and of the same once more from the state reached; then by the layers in it."""
    X = tf.constant(tokens, tf.int32)
    first, state = net(X, net.begin_state(len(tokens), dtype=tf.float32))
    second, _ = net(X, state)
    one_hot = tf.one_hot(X, net.vocab_size)
    Y, *state = net.rnn(one_hot)
    again = net.rnn(one_hot, initial_state=state)[0]
    by_hand = [
        tf.reshape(tf.transpose(net.dense(each), (1, 0, 2)), (-1, net.vocab_size))
        for each in (Y, again)
    ]
    return [each.numpy() for each in (first, second, *by_hand)]


def clipped(gradients: list[Any], theta: float, d2l: Any = d2l) -> list[Any]:
    return [each.numpy() for each in d2l.grad_clipping([*map(tf.constant, gradients)], theta)]
