"""Language models as a reader of D2L writes and uses them in MXNet."""

from types import SimpleNamespace
from typing import Any

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import rnn

from d2l_compat import mxnet as d2l

CPU = d2l.cpu()


def ACTIVATION(x: Any) -> Any:
    return onp.maximum(x, 0)  # Gluon's is relu


# D2L 1.0


def model(name: str, start: dict[str, Any], lr: float = 1.0, d2l: Any = d2l) -> Any:
    """One from scratch starts from these weights; the other draws its own."""
    vocab_size, num_hiddens = start["W_xh"].shape
    is_scratch = name == "RNNLMScratch"
    layer = d2l.RNNScratch(vocab_size, num_hiddens) if is_scratch else d2l.RNN(num_hiddens)
    made = getattr(d2l, name)(layer, vocab_size, lr)
    made(np.zeros((1, 1), dtype="int32"))
    if is_scratch:
        for part, names in (layer, ("W_xh", "W_hh", "b_h")), (made, ("W_hq", "b_q")):
            for each in names:
                getattr(part, each)[:] = np.array(start[each])
    return made


def weights(model: Any) -> dict[str, Any]:
    if hasattr(model, "W_hq"):
        found = {name: getattr(model.rnn, name) for name in ("W_xh", "W_hh", "b_h")}
        found |= {"W_hq": model.W_hq, "b_q": model.b_q}
    else:
        # Gluon numbers what it makes: the last words of a name stay.
        each = {k.partition("_")[2]: p.data() for k, p in model.collect_params().items()}
        found = {"W_xh": each["l0_i2h_weight"].T, "W_hh": each["l0_h2h_weight"].T}
        found |= {"b_h": each["l0_i2h_bias"] + each["l0_h2h_bias"]}
        found |= {"W_hq": each["weight"].T, "b_q": each["bias"]}
    return {name: each.asnumpy() for name, each in found.items()}


def logits(model: Any, tokens: Any, *state: Any) -> Any:
    return model(np.array(tokens, dtype="int32"), *map(np.array, state)).asnumpy()


def layer(name: str, start: dict[str, Any], inputs: Any, state: Any = None) -> Any:
    """Of the recurrent layer alone, (steps, batch, inputs) to outputs and a state."""
    layer = model(name, start).rnn
    outputs, state = layer(np.array(inputs), None if state is None else [np.array(state)])
    return onp.array([each.asnumpy() for each in outputs]), state.asnumpy()


def fit(model: Any, data: Any, clip: float, d2l: Any = d2l) -> None:
    d2l.Trainer(max_epochs=1, gradient_clip_val=clip).fit(model, data)


def say(model: Any, prefix: str, num_preds: int, vocab: Any) -> str:
    return model.predict(prefix, num_preds, vocab, CPU)


# D2L 0.17


def functions(start: dict[str, Any]) -> tuple[Any, ...]:
    """What a model of functions is made of."""

    def get_params(vocab_size: int, num_hiddens: int, device: Any) -> list[np.ndarray]:
        if start["W_xh"].shape != (vocab_size, num_hiddens):
            raise ValueError(f"sizes: got {vocab_size} and {num_hiddens}; need those of the start")
        made = [np.array(each) for each in start.values()]
        for each in made:
            each.attach_grad()
        return made

    def init_state(batch_size: int, num_hiddens: int, device: Any) -> Any:
        return (np.zeros((batch_size, num_hiddens), ctx=device),)

    def forward(inputs: np.ndarray, state: Any, params: Any) -> Any:
        W_xh, W_hh, b_h, W_hq, b_q = params
        (H,), outputs = state, []
        for X in inputs:
            H = np.tanh(np.dot(X, W_xh) + np.dot(H, W_hh) + b_h)
            outputs.append(np.dot(H, W_hq) + b_q)
        return np.concatenate(outputs), (H,)

    return *start["W_xh"].shape, CPU, get_params, init_state, forward


def from_functions(start: dict[str, Any], d2l: Any = d2l) -> Any:
    return d2l.RNNModelScratch(*functions(start))


def params(net: Any) -> list[Any]:
    return [each.asnumpy() for each in net.params]


def train_epoch(
    net: Any, batches: Any, lr: float, use_random_iter: bool, own: bool, d2l: Any = d2l
) -> Any:
    """With a function that does the steps, ``own``; Gluon's trainer does none of arrays."""
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def updater(batch_size: int) -> None:
        if own:
            d2l.sgd(net.params, lr, batch_size)
        else:
            for param in net.params:
                param -= lr * param.grad

    return d2l.train_epoch_ch8(net, batches, loss, updater, CPU, use_random_iter)


def predict_ch8(net: Any, prefix: str, num_preds: int, vocab: Any, d2l: Any = d2l) -> str:
    return d2l.predict_ch8(prefix, num_preds, net, vocab, CPU)


def train_ch8(
    net: Any, batches: Any, vocab: Any, lr: float, num_epochs: int, d2l: Any = d2l
) -> None:
    d2l.train_ch8(net, batches, vocab, lr, num_epochs, CPU)


def layers(vocab_size: int, num_hiddens: int, d2l: Any = d2l) -> list[Any]:
    """Recurrent layers of the framework's, and what is made of them."""
    made = [rnn.RNN(num_hiddens), rnn.GRU(num_hiddens), rnn.LSTM(num_hiddens)]
    made.append(rnn.GRU(num_hiddens, num_layers=2, bidirectional=True))
    models = [d2l.RNNModel(each, vocab_size) for each in made]
    for each in models:
        each.initialize(init.Xavier())
    return models


def twice(net: Any, tokens: Any) -> list[Any]:
    """The logits of a batch, and of the same once more from the state reached; then by the layers in it."""
    X = np.array(tokens, dtype="int32")
    start = net.begin_state(len(tokens), ctx=CPU)
    first, state = net(X, start)
    second, _ = net(X, state)
    one_hot = npx.one_hot(X.T, net.vocab_size)
    Y, state = net.rnn(one_hot, start)
    again = net.rnn(one_hot, state)[0]
    by_hand = [net.dense(each.reshape(-1, each.shape[-1])) for each in (Y, again)]
    return [each.asnumpy() for each in (first, second, *by_hand)]


def clipped(gradients: list[Any], theta: float, d2l: Any = d2l) -> list[Any]:
    net = SimpleNamespace(params=[np.zeros(each.shape) for each in gradients])
    for param, gradient in zip(net.params, gradients, strict=True):
        param.attach_grad()
        with autograd.record():
            product = (param * np.array(gradient)).sum()
        product.backward()
    d2l.grad_clipping(net, theta)
    return [param.grad.asnumpy() for param in net.params]
