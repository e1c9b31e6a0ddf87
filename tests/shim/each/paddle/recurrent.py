"""Language models as a reader of D2L writes and uses them in Paddle."""

from types import SimpleNamespace
from typing import Any

import paddle
from paddle import nn

from d2l_compat import paddle as d2l

CPU = d2l.cpu()


def functions(start: dict[str, Any]) -> tuple[Any, ...]:
    """What a model of functions is made of."""

    def get_params(vocab_size: int, num_hiddens: int) -> list[paddle.Tensor]:
        if start["W_xh"].shape != (vocab_size, num_hiddens):
            raise ValueError(f"sizes: got {vocab_size} and {num_hiddens}; need those of the start")
        return [paddle.to_tensor(each, stop_gradient=False) for each in start.values()]

    def init_state(batch_size: int, num_hiddens: int) -> Any:
        return (paddle.zeros((batch_size, num_hiddens)),)

    def forward(inputs: paddle.Tensor, state: Any, params: Any) -> Any:
        W_xh, W_hh, b_h, W_hq, b_q = params
        (H,), outputs = state, []
        for X in inputs:
            H = paddle.tanh(X @ W_xh + H @ W_hh + b_h)
            outputs.append(H @ W_hq + b_q)
        return paddle.concat(outputs), (H,)

    return *start["W_xh"].shape, get_params, init_state, forward


def from_functions(start: dict[str, Any], d2l: Any = d2l) -> Any:
    return d2l.RNNModelScratch(*functions(start))


def params(net: Any) -> list[Any]:
    return [each.detach().numpy() for each in net.params]


def train_epoch(
    net: Any, batches: Any, lr: float, use_random_iter: bool, own: bool, d2l: Any = d2l
) -> Any:
    """With a function that does the steps, ``own``, or the framework's optimizer."""
    loss = nn.CrossEntropyLoss()
    updater: Any = paddle.optimizer.SGD(float(lr), net.params)
    if own:
        updater = lambda batch_size: d2l.sgd(net.params, lr, batch_size)
    return d2l.train_epoch_ch8(net, batches, loss, updater, CPU, use_random_iter)


def predict_ch8(net: Any, prefix: str, num_preds: int, vocab: Any, d2l: Any = d2l) -> str:
    return d2l.predict_ch8(prefix, num_preds, net, vocab, CPU)


def train_ch8(
    net: Any, batches: Any, vocab: Any, lr: float, num_epochs: int, d2l: Any = d2l
) -> None:
    d2l.train_ch8(net, batches, vocab, lr, num_epochs, CPU)


def layers(vocab_size: int, num_hiddens: int, d2l: Any = d2l) -> list[Any]:
    """Recurrent layers of the framework's, and what is made of them."""
    kinds = nn.SimpleRNN, nn.GRU, nn.LSTM
    made = [kind(vocab_size, num_hiddens, time_major=True) for kind in kinds]
    made.append(nn.GRU(vocab_size, num_hiddens, 2, direction="bidirect", time_major=True))
    return [d2l.RNNModel(each, vocab_size) for each in made]


def twice(net: Any, tokens: Any) -> list[Any]:
    """The logits of a batch, and of the same once more from the state reached; then by the layers in it."""
    X = paddle.to_tensor(tokens)
    first, state = net(X, net.begin_state(len(tokens)))
    second, _ = net(X, state)
    one_hot = nn.functional.one_hot(X.T, net.vocab_size)
    Y, state = net.rnn(one_hot)
    by_hand = [net.linear(Y).flatten(0, 1), net.linear(net.rnn(one_hot, state)[0]).flatten(0, 1)]
    return [each.detach().numpy() for each in (first, second, *by_hand)]


def clipped(gradients: list[Any], theta: float, d2l: Any = d2l) -> list[Any]:
    net = SimpleNamespace(params=[paddle.zeros(each.shape) for each in gradients])
    for param, gradient in zip(net.params, gradients, strict=True):
        param.stop_gradient = False
        (param * paddle.to_tensor(gradient)).sum().backward()
    d2l.grad_clipping(net, theta)
    return [param.grad.numpy() for param in net.params]
