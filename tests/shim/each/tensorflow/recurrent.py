"""Language models as a reader of D2L writes and uses them in TensorFlow."""

from typing import Any

import tensorflow as tf

from d2l_compat.tensorflow._keras import keras
from tests.shim.each import recurrent
from tests.shim.each.tensorflow.adapter import Layer, to_numpy
from tests.shim.each.tensorflow.descent import Descent


class RecurrentModels(recurrent.ClassModels, recurrent.FunctionModels, Descent):
    Layer = Layer
    STRATEGY = tf.distribute.OneDeviceStrategy("/CPU:0")
    devices = ()

    def set_parameter(self, part: Any, name: str, value: Any) -> None:
        getattr(part, name).assign(value)

    def set_parameters(self, model: Any, start: recurrent.Start) -> None:
        variables = [*model.rnn.rnn.weights, *model.linear.weights]
        for variable, value in zip(variables, start.values(), strict=True):
            variable.assign(value)

    def layer_weights(self, model: Any) -> recurrent.Start:
        variables = [*model.rnn.rnn.weights, *model.linear.weights]
        names = "W_xh", "W_hh", "b_h", "W_hq", "b_q"
        return {name: variable.numpy() for name, variable in zip(names, variables, strict=True)}

    def logits(self, model: Any, tokens: Any, *state: Any) -> Any:
        return to_numpy(model(tf.constant(tokens, tf.int32), *map(list, state)))

    def predict(self, model: Any, prefix: str, num_preds: int, vocab: Any) -> str:
        return model.predict(prefix, num_preds, vocab)

    def order_functions(self, get_params: Any, init_state: Any, forward: Any) -> tuple[Any, ...]:
        return init_state, forward, get_params

    def params(self, net: Any) -> list[Any]:
        return [variable.numpy() for variable in net.trainable_variables]

    def train_epoch(
        self,
        net: Any,
        batches: Any,
        lr: float,
        use_random_iter: bool,
        by_sgd: bool,
        d2l: Any = None,
    ) -> Any:
        """Train with a Keras optimizer, whatever ``by_sgd`` is: D2L supports no other way."""
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        args = net, batches, loss, keras.optimizers.SGD(lr), use_random_iter
        return (d2l or self.d2l).train_epoch_ch8(*args)

    def train_ch8(
        self, net: Any, batches: Any, vocab: Any, lr: float, num_epochs: int, d2l: Any = None
    ) -> None:
        (d2l or self.d2l).train_ch8(net, batches, vocab, lr, num_epochs, self.STRATEGY)

    def make_rnn_models(self, vocab_size: int, num_hiddens: int, d2l: Any = None) -> list[Any]:
        """Make models of the framework's recurrent layers."""
        kinds = keras.layers.SimpleRNN, keras.layers.GRU, keras.layers.LSTM
        rnns = [kind(num_hiddens, return_sequences=True, return_state=True) for kind in kinds]
        cells = [keras.layers.GRUCell(num_hiddens) for _ in range(2)]
        rnns.append(keras.layers.RNN(cells, return_sequences=True, return_state=True))
        return [(d2l or self.d2l).RNNModel(rnn, vocab_size) for rnn in rnns]

    def run_twice(self, net: Any, tokens: Any) -> list[Any]:
        """Return the logits of two calls, the second from the first's state; then the same, computed layer by layer."""
        X = tf.constant(tokens, tf.int32)
        first, state = net(X, net.begin_state(len(tokens), dtype=tf.float32))
        second, _ = net(X, state)
        one_hot = tf.one_hot(X, net.vocab_size)
        Y, *state = net.rnn(one_hot)
        next_Y = net.rnn(one_hot, initial_state=state)[0]
        by_hand = [
            tf.reshape(tf.transpose(net.dense(outputs), (1, 0, 2)), (-1, net.vocab_size))
            for outputs in (Y, next_Y)
        ]
        return to_numpy([first, second, *by_hand])

    def clip_gradients(self, gradients: list[Any], theta: float, d2l: Any = None) -> list[Any]:
        tensors = [*map(tf.constant, gradients)]
        return to_numpy([*(d2l or self.d2l).grad_clipping(tensors, theta)])


RECURRENT = RecurrentModels()
