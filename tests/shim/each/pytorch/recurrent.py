"""Language models as a reader of D2L writes and uses them in PyTorch."""

from typing import Any

import torch
from torch import nn

from tests.shim.each import recurrent
from tests.shim.each.pytorch.adapter import Layer, tensor, to_numpy
from tests.shim.each.pytorch.descent import Descent


class RecurrentModels(recurrent.ClassModels, recurrent.FunctionModels, Descent):
    Layer = Layer
    INTEGER_DTYPE = "int64"

    def make_layer(self, d2l: Any, vocab_size: int, num_hiddens: int) -> Any:
        return d2l.RNN(vocab_size, num_hiddens)

    def set_parameter(self, part: Any, name: str, value: Any) -> None:
        getattr(part, name).data = torch.tensor(value)

    def layer_weights(self, model: Any) -> recurrent.Start:
        (w_x, w_h, b_x, b_h), linear = model.rnn.rnn.all_weights[0], model.linear
        weights = {"W_xh": w_x.T, "W_hh": w_h.T, "b_h": b_x + b_h}
        return weights | {"W_hq": linear.weight.T, "b_q": linear.bias}

    def loss(self) -> nn.Module:
        return nn.CrossEntropyLoss()

    def make_optimizer(self, params: Any, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(params, lr)

    def make_rnn_models(self, vocab_size: int, num_hiddens: int, d2l: Any = None) -> list[Any]:
        """Make a model of each kind of the framework's recurrent layers."""
        rnns = [kind(vocab_size, num_hiddens) for kind in (nn.RNN, nn.GRU, nn.LSTM)]
        rnns.append(nn.GRU(vocab_size, num_hiddens, num_layers=2, bidirectional=True))
        return [(d2l or self.d2l).RNNModel(rnn, vocab_size) for rnn in rnns]

    def run_twice(self, net: Any, tokens: Any) -> list[Any]:
        """Return the logits of two calls, the second from the first's state; then the same, computed layer by layer."""
        X = tensor(tokens)
        first, state = net(X, net.begin_state(self.CPU, len(tokens)))
        second, _ = net(X, state)
        one_hot = torch.eye(net.vocab_size)[X.T]
        Y, state = net.rnn(one_hot)
        next_Y = net.rnn(one_hot, state)[0]
        by_hand = [net.linear(outputs).flatten(0, 1) for outputs in (Y, next_Y)]
        return to_numpy([first, second, *by_hand])


RECURRENT = RecurrentModels()
