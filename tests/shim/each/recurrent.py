"""Language models as a reader of D2L writes and uses them: each framework's ``recurrent`` has a ``READER``.

JAX has functions of its own there, under the same names, since Flax's models do not hold their parameters.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.shim.each.descent import Descent

Start = dict[str, Any]  # the weights that a model from scratch starts from


def load_reader(framework: str) -> Any:
    module = import_module(f"tests.shim.each.{framework}.recurrent")
    return getattr(module, "READER", module)


class ClassReader(Descent):
    """With the classes of D2L 1.0."""

    Layer: Any  # of the adapter
    INTEGERS = "int32"
    ACTIVATION = staticmethod(np.tanh)  # of the framework's recurrent layer

    def make_layer(self, d2l: Any, vocab_size: int, num_hiddens: int) -> Any:
        return d2l.RNN(num_hiddens)

    def set_parameter(self, part: Any, name: str, value: Any) -> None:
        """Give a parameter of a model from scratch its value."""
        raise NotImplementedError

    def set_parameters(self, model: Any, start: Start) -> None:
        """Do so for a model of the framework's layers; without it, it draws its own."""

    def layer_weights(self, model: Any) -> Start:
        """The weights of a model of the framework's layers."""
        raise NotImplementedError

    def model(self, name: str, start: Start, lr: float = 1.0, d2l: Any = None) -> Any:
        """One from scratch starts from these weights."""
        d2l, sizes = d2l or self.d2l, start["W_xh"].shape
        is_scratch = name == "RNNLMScratch"
        rnn = d2l.RNNScratch(*sizes) if is_scratch else self.make_layer(d2l, *sizes)
        made = getattr(d2l, name)(rnn, sizes[0], lr)
        made(self.Layer.tensor(np.zeros((1, 1), self.INTEGERS)))
        if is_scratch:
            for part, names in (rnn, ("W_xh", "W_hh", "b_h")), (made, ("W_hq", "b_q")):
                for each in names:
                    self.set_parameter(part, each, start[each])
        else:
            self.set_parameters(made, start)
        return made

    def weights(self, model: Any) -> Start:
        if hasattr(model, "W_hq"):
            found = {name: getattr(model.rnn, name) for name in ("W_xh", "W_hh", "b_h")}
            found |= {"W_hq": model.W_hq, "b_q": model.b_q}
        else:
            found = self.layer_weights(model)
        return {name: np.array(self.Layer.plain(each)) for name, each in found.items()}

    def logits(self, model: Any, tokens: Any, *state: Any) -> Any:
        given = tokens.astype(self.INTEGERS), *state
        return self.Layer.plain(model(*self.Layer.given(given)))

    def layer(self, name: str, start: Start, inputs: Any, state: Any = None) -> Any:
        """Of the recurrent layer alone, (steps, batch, inputs) to outputs and a state."""
        states = None if state is None else self.Layer.given([state])
        outputs, state = self.model(name, start).rnn(self.Layer.tensor(inputs), states)
        return np.array([self.Layer.plain(each) for each in outputs]), self.Layer.plain(state)

    def fit(self, model: Any, data: Any, clip: float) -> None:
        self.d2l.Trainer(max_epochs=1, gradient_clip_val=clip).fit(model, data)

    def say(self, model: Any, prefix: str, num_preds: int, vocab: Any) -> str:
        return model.predict(prefix, num_preds, vocab, self.CPU)


class FunctionReader(Descent):
    """With the functions of D2L 0.17."""

    Layer: Any  # of the adapter

    @property
    def places(self) -> tuple[Any, ...]:
        """The last arguments of functions that ask for a device."""
        return (self.CPU,)

    def functions(self, start: Start) -> tuple[Any, ...]:
        """What a model of functions is made of."""
        d2l = self.d2l

        def get_params(vocab_size: int, num_hiddens: int, *device: Any) -> list[Any]:
            if start["W_xh"].shape != (vocab_size, num_hiddens):
                got = f"{vocab_size} and {num_hiddens}"
                raise ValueError(f"sizes: got {got}; need those of the start")
            return [self.variable(each) for each in start.values()]

        def init_state(batch_size: int, num_hiddens: int, *device: Any) -> Any:
            return (d2l.zeros((batch_size, num_hiddens)),)

        def forward(inputs: Any, state: Any, params: Any) -> Any:
            W_xh, W_hh, b_h, W_hq, b_q = params
            (H,), outputs = state, []
            for X in inputs:
                H = d2l.tanh(d2l.matmul(X, W_xh) + d2l.matmul(H, W_hh) + b_h)
                outputs.append(d2l.matmul(H, W_hq) + b_q)
            return d2l.concat(outputs, 0), (H,)

        return *start["W_xh"].shape, *self.in_order(get_params, init_state, forward)

    def in_order(self, get_params: Any, init_state: Any, forward: Any) -> tuple[Any, ...]:
        return self.CPU, get_params, init_state, forward

    def from_functions(self, start: Start, d2l: Any = None) -> Any:
        return (d2l or self.d2l).RNNModelScratch(*self.functions(start))

    def params(self, net: Any) -> list[Any]:
        return self.Layer.plain([*net.params])

    def loss(self) -> Any:
        """The mean of the cross-entropy."""
        raise NotImplementedError

    def make_optimizer(self, params: Any, lr: float) -> Any:
        """The framework's optimizer."""
        raise NotImplementedError

    def train_epoch(
        self, net: Any, batches: Any, lr: float, use_random_iter: bool, own: bool, d2l: Any = None
    ) -> Any:
        """With a function that does the steps, ``own``, or the framework's optimizer."""
        d2l = d2l or self.d2l
        updater = self.make_optimizer(net.params, lr)
        if own:
            updater = lambda batch_size: d2l.sgd(net.params, lr, batch_size)
        return d2l.train_epoch_ch8(net, batches, self.loss(), updater, self.CPU, use_random_iter)

    def predict_ch8(
        self, net: Any, prefix: str, num_preds: int, vocab: Any, d2l: Any = None
    ) -> str:
        return (d2l or self.d2l).predict_ch8(prefix, num_preds, net, vocab, *self.places)

    def train_ch8(
        self, net: Any, batches: Any, vocab: Any, lr: float, num_epochs: int, d2l: Any = None
    ) -> None:
        (d2l or self.d2l).train_ch8(net, batches, vocab, lr, num_epochs, self.CPU)

    def clipped(self, gradients: list[Any], theta: float, d2l: Any = None) -> list[Any]:
        net = SimpleNamespace(params=[self.variable(np.zeros_like(each)) for each in gradients])
        keeping = SimpleNamespace(sgd=lambda *args: None)
        for param, gradient in zip(net.params, self.Layer.given(gradients), strict=True):
            self.sgd([param], lambda x=param, g=gradient: (x * g).sum(), 0.0, 1, keeping)
        (d2l or self.d2l).grad_clipping(net, theta)
        return self.Layer.plain([param.grad for param in net.params])
