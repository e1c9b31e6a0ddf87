"""Language models as a reader of D2L writes and uses them in Paddle."""

from typing import Any

import paddle
from paddle import nn

from tests.shim.each import recurrent
from tests.shim.each.paddle.adapter import Layer, tensor, to_numpy
from tests.shim.each.paddle.descent import Descent


class RecurrentModels(recurrent.FunctionModels, Descent):
    Layer = Layer

    def order_functions(self, *functions: Any) -> tuple[Any, ...]:
        return functions

    def loss(self) -> nn.Layer:
        return nn.CrossEntropyLoss()

    def make_optimizer(self, params: Any, lr: float) -> paddle.optimizer.Optimizer:
        return paddle.optimizer.SGD(float(lr), params)

    def make_rnn_models(self, vocab_size: int, num_hiddens: int, d2l: Any = None) -> list[Any]:
        """Make models of the framework's recurrent layers."""
        kinds = nn.SimpleRNN, nn.GRU, nn.LSTM
        rnns = [kind(vocab_size, num_hiddens, time_major=True) for kind in kinds]
        rnns.append(nn.GRU(vocab_size, num_hiddens, 2, direction="bidirect", time_major=True))
        return [(d2l or self.d2l).RNNModel(rnn, vocab_size) for rnn in rnns]

    def run_twice(self, net: Any, tokens: Any) -> list[Any]:
        """Return the logits of two calls, the second from the first's state; then the same, computed layer by layer."""
        X = tensor(tokens)
        first, state = net(X, net.begin_state(len(tokens)))
        second, _ = net(X, state)
        one_hot = nn.functional.one_hot(X.T, net.vocab_size)
        Y, state = net.rnn(one_hot)
        next_Y = net.rnn(one_hot, state)[0]
        by_hand = [net.linear(outputs).flatten(0, 1) for outputs in (Y, next_Y)]
        return to_numpy([first, second, *by_hand])


RECURRENT = RecurrentModels()
