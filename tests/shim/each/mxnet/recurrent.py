"""Language models as a reader of D2L writes and uses them in MXNet."""

from typing import Any

from tests.shim.each.mxnet.adapter import Layer, to_numpy  # isort: skip  it makes MXNet importable
import numpy as onp
from mxnet import gluon, init, np, npx
from mxnet.gluon import rnn

from tests.shim.each import recurrent
from tests.shim.each.mxnet.descent import Descent


class RecurrentModels(recurrent.ClassModels, recurrent.FunctionModels, Descent):
    Layer = Layer

    @staticmethod
    def ACTIVATION(x: Any) -> Any:
        return onp.maximum(x, 0)  # relu, unlike in the other frameworks

    def set_parameter(self, part: Any, name: str, value: Any) -> None:
        getattr(part, name)[:] = np.array(value)

    def layer_weights(self, model: Any) -> recurrent.Start:
        # Gluon puts a numbered prefix before each name.
        x = {name.partition("_")[2]: p.data() for name, p in model.collect_params().items()}
        weights = {"W_xh": x["l0_i2h_weight"].T, "W_hh": x["l0_h2h_weight"].T}
        weights |= {"b_h": x["l0_i2h_bias"] + x["l0_h2h_bias"]}
        return weights | {"W_hq": x["weight"].T, "b_q": x["bias"]}

    def loss(self) -> gluon.loss.Loss:
        return gluon.loss.SoftmaxCrossEntropyLoss()

    def make_optimizer(self, params: Any, lr: float) -> Any:
        """Make a step function, since Gluon's trainer takes only Parameters."""

        def step(batch_size: int) -> None:
            for param in params:
                param -= lr * param.grad

        return step

    def make_rnn_models(self, vocab_size: int, num_hiddens: int, d2l: Any = None) -> list[Any]:
        """Make models of the framework's recurrent layers."""
        rnns = [kind(num_hiddens) for kind in (rnn.RNN, rnn.GRU, rnn.LSTM)]
        rnns.append(rnn.GRU(num_hiddens, num_layers=2, bidirectional=True))
        models = [(d2l or self.d2l).RNNModel(layer, vocab_size) for layer in rnns]
        for model in models:
            model.initialize(init.Xavier())
        return models

    def run_twice(self, net: Any, tokens: Any) -> list[Any]:
        """Return the logits of two calls, the second from the first's state; then the same, computed layer by layer."""
        X = np.array(tokens, dtype="int32")
        start = net.begin_state(len(tokens), ctx=self.CPU)
        first, state = net(X, start)
        second, _ = net(X, state)
        one_hot = npx.one_hot(X.T, net.vocab_size)
        first_Y, state = net.rnn(one_hot, start)
        second_Y, _ = net.rnn(one_hot, state)
        logits = [net.dense(Y.reshape(-1, Y.shape[-1])) for Y in (first_Y, second_Y)]
        return to_numpy([first, second, *logits])


RECURRENT = RecurrentModels()
