"""Language models as a reader of D2L writes and uses them in MXNet."""

from typing import Any

from tests.shim.each.mxnet.adapter import Layer, plain  # isort: skip  it makes MXNet importable
import numpy as onp
from mxnet import gluon, init, np, npx
from mxnet.gluon import rnn

from tests.shim.each import recurrent
from tests.shim.each.mxnet.descent import Descent


class Reader(recurrent.ClassReader, recurrent.FunctionReader, Descent):
    Layer = Layer

    @staticmethod
    def ACTIVATION(x: Any) -> Any:
        return onp.maximum(x, 0)  # Gluon's is relu

    def set_parameter(self, part: Any, name: str, value: Any) -> None:
        getattr(part, name)[:] = np.array(value)

    def layer_weights(self, model: Any) -> recurrent.Start:
        # Gluon numbers what it makes: the last words of a name stay.
        each = {k.partition("_")[2]: p.data() for k, p in model.collect_params().items()}
        found = {"W_xh": each["l0_i2h_weight"].T, "W_hh": each["l0_h2h_weight"].T}
        found |= {"b_h": each["l0_i2h_bias"] + each["l0_h2h_bias"]}
        return found | {"W_hq": each["weight"].T, "b_q": each["bias"]}

    def loss(self) -> gluon.loss.Loss:
        return gluon.loss.SoftmaxCrossEntropyLoss()

    def make_optimizer(self, params: Any, lr: float) -> Any:
        """Gluon's trainer does none of arrays."""

        def step(batch_size: int) -> None:
            for param in params:
                param -= lr * param.grad

        return step

    def layers(self, vocab_size: int, num_hiddens: int, d2l: Any = None) -> list[Any]:
        """Recurrent layers of the framework's, and what is made of them."""
        made = [kind(num_hiddens) for kind in (rnn.RNN, rnn.GRU, rnn.LSTM)]
        made.append(rnn.GRU(num_hiddens, num_layers=2, bidirectional=True))
        models = [(d2l or self.d2l).RNNModel(each, vocab_size) for each in made]
        for each in models:
            each.initialize(init.Xavier())
        return models

    def twice(self, net: Any, tokens: Any) -> list[Any]:
        """The logits of a batch, and of the same once more from the state reached; then by the layers in it."""
        X = np.array(tokens, dtype="int32")
        start = net.begin_state(len(tokens), ctx=self.CPU)
        first, state = net(X, start)
        second, _ = net(X, state)
        one_hot = npx.one_hot(X.T, net.vocab_size)
        Y, state = net.rnn(one_hot, start)
        again = net.rnn(one_hot, state)[0]
        by_hand = [net.dense(each.reshape(-1, each.shape[-1])) for each in (Y, again)]
        return plain([first, second, *by_hand])


READER = Reader()
