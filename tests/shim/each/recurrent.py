"""Recurrent language models as a reader of D2L writes them: the object ``RECURRENT`` in a framework's ``recurrent``.

JAX's ``recurrent`` has functions with the same names, since Flax's models do not contain their parameters.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.shim.each.descent import Descent

Start = dict[str, Any]  # the initial weights of a model from scratch


def load_recurrent_models(framework: str) -> Any:
    module = import_module(f"tests.shim.each.{framework}.recurrent")
    return getattr(module, "RECURRENT", module)


class ClassModels(Descent):
    """Models made of the classes of D2L 1.0."""

    Layer: Any  # the adapter's
    INTEGER_DTYPE = "int32"
    ACTIVATION = staticmethod(np.tanh)  # that of the framework's recurrent layer

    def make_layer(self, d2l: Any, vocab_size: int, num_hiddens: int) -> Any:
        return d2l.RNN(num_hiddens)

    def set_parameter(self, part: Any, name: str, value: Any) -> None:
        """Set a parameter of a model from scratch."""
        raise NotImplementedError

    def set_parameters(self, model: Any, start: Start) -> None:
        """Set the parameters of a model of the framework's layers; by default keep its random ones."""

    def layer_weights(self, model: Any) -> Start:
        """Return the weights of a model of the framework's layers."""
        raise NotImplementedError

    def model(self, name: str, start: Start, lr: float = 1.0, d2l: Any = None) -> Any:
        """Make a model; if it is from scratch, it starts from these weights."""
        d2l = d2l or self.d2l
        sizes = start["W_xh"].shape
        is_scratch = name == "RNNLMScratch"
        rnn = d2l.RNNScratch(*sizes) if is_scratch else self.make_layer(d2l, *sizes)
        model = getattr(d2l, name)(rnn, sizes[0], lr)
        model(self.Layer.tensor(np.zeros((1, 1), self.INTEGER_DTYPE)))
        if is_scratch:
            for part, names in (rnn, ("W_xh", "W_hh", "b_h")), (model, ("W_hq", "b_q")):
                for parameter in names:
                    self.set_parameter(part, parameter, start[parameter])
        else:
            self.set_parameters(model, start)
        return model

    def weights(self, model: Any) -> Start:
        if hasattr(model, "W_hq"):
            weights = {name: getattr(model.rnn, name) for name in ("W_xh", "W_hh", "b_h")}
            weights |= {"W_hq": model.W_hq, "b_q": model.b_q}
        else:
            weights = self.layer_weights(model)
        return {name: np.array(self.Layer.to_numpy(x)) for name, x in weights.items()}

    def logits(self, model: Any, tokens: Any, *state: Any) -> Any:
        inputs = tokens.astype(self.INTEGER_DTYPE), *state
        return self.Layer.to_numpy(model(*self.Layer.to_tensors(inputs)))

    def layer(self, name: str, start: Start, inputs: Any, state: Any = None) -> Any:
        """Apply only the recurrent layer to (steps, batch, inputs); return outputs and a state."""
        states = None if state is None else self.Layer.to_tensors([state])
        outputs, state = self.model(name, start).rnn(self.Layer.tensor(inputs), states)
        return np.array([self.Layer.to_numpy(x) for x in outputs]), self.Layer.to_numpy(state)

    def fit(self, model: Any, data: Any, clip: float) -> None:
        self.d2l.Trainer(max_epochs=1, gradient_clip_val=clip).fit(model, data)

    def predict(self, model: Any, prefix: str, num_preds: int, vocab: Any) -> str:
        return model.predict(prefix, num_preds, vocab, self.CPU)


class FunctionModels(Descent):
    """Models made of the functions of D2L 0.17."""

    Layer: Any  # the adapter's

    @property
    def devices(self) -> tuple[Any, ...]:
        """The last arguments of functions that take a device."""
        return (self.CPU,)

    def scratch_args(self, start: Start) -> tuple[Any, ...]:
        """Return the arguments of ``RNNModelScratch``: sizes and functions."""
        d2l = self.d2l

        def get_params(vocab_size: int, num_hiddens: int, *device: Any) -> list[Any]:
            if start["W_xh"].shape != (vocab_size, num_hiddens):
                got = f"{vocab_size} and {num_hiddens}"
                raise ValueError(f"sizes: got {got}; need those of the initial weights")
            return [self.variable(x) for x in start.values()]

        def init_state(batch_size: int, num_hiddens: int, *device: Any) -> Any:
            return (d2l.zeros((batch_size, num_hiddens)),)

        def forward(inputs: Any, state: Any, params: Any) -> Any:
            W_xh, W_hh, b_h, W_hq, b_q = params
            (H,) = state
            outputs = []
            for X in inputs:
                H = d2l.tanh(d2l.matmul(X, W_xh) + d2l.matmul(H, W_hh) + b_h)
                outputs.append(d2l.matmul(H, W_hq) + b_q)
            return d2l.concat(outputs, 0), (H,)

        return *start["W_xh"].shape, *self.order_functions(get_params, init_state, forward)

    def order_functions(self, get_params: Any, init_state: Any, forward: Any) -> tuple[Any, ...]:
        return self.CPU, get_params, init_state, forward

    def make_scratch(self, start: Start, d2l: Any = None) -> Any:
        return (d2l or self.d2l).RNNModelScratch(*self.scratch_args(start))

    def params(self, net: Any) -> list[Any]:
        return self.Layer.to_numpy([*net.params])

    def loss(self) -> Any:
        """Return the mean cross-entropy."""
        raise NotImplementedError

    def make_optimizer(self, params: Any, lr: float) -> Any:
        """Make the framework's optimizer."""
        raise NotImplementedError

    def train_epoch(
        self,
        net: Any,
        batches: Any,
        lr: float,
        use_random_iter: bool,
        by_sgd: bool,
        d2l: Any = None,
    ) -> Any:
        """Train for an epoch with ``d2l.sgd`` or the framework's optimizer."""
        d2l = d2l or self.d2l
        updater = self.make_optimizer(net.params, lr)
        if by_sgd:
            updater = lambda batch_size: d2l.sgd(net.params, lr, batch_size)
        return d2l.train_epoch_ch8(net, batches, self.loss(), updater, self.CPU, use_random_iter)

    def predict_ch8(
        self, net: Any, prefix: str, num_preds: int, vocab: Any, d2l: Any = None
    ) -> str:
        return (d2l or self.d2l).predict_ch8(prefix, num_preds, net, vocab, *self.devices)

    def train_ch8(
        self, net: Any, batches: Any, vocab: Any, lr: float, num_epochs: int, d2l: Any = None
    ) -> None:
        (d2l or self.d2l).train_ch8(net, batches, vocab, lr, num_epochs, self.CPU)

    def clip_gradients(self, gradients: list[Any], theta: float, d2l: Any = None) -> list[Any]:
        net = SimpleNamespace(params=[self.variable(np.zeros_like(x)) for x in gradients])
        skip_step = SimpleNamespace(sgd=lambda *args: None)
        for param, gradient in zip(net.params, self.Layer.to_tensors(gradients), strict=True):
            self.sgd([param], lambda x=param, g=gradient: (x * g).sum(), 0.0, 1, skip_step)
        (d2l or self.d2l).grad_clipping(net, theta)
        return self.Layer.to_numpy([param.grad for param in net.params])
