"""Language models as a reader of D2L writes and uses them in PyTorch."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from d2l_compat import torch as d2l

CPU = torch.device("cpu")
ACTIVATION = np.tanh


# D2L 1.0


def model(name: str, start: dict[str, Any], lr: float = 1.0, d2l: Any = d2l) -> Any:
    """One from scratch starts from these weights; the other draws its own."""
    vocab_size, num_hiddens = start["W_xh"].shape
    is_scratch = name == "RNNLMScratch"
    rnn = (d2l.RNNScratch if is_scratch else d2l.RNN)(vocab_size, num_hiddens)
    made = getattr(d2l, name)(rnn, vocab_size, lr)
    made(torch.zeros(1, 1, dtype=torch.int64))
    if is_scratch:
        for part, names in (rnn, ("W_xh", "W_hh", "b_h")), (made, ("W_hq", "b_q")):
            for each in names:
                getattr(part, each).data = torch.tensor(start[each])
    return made


def weights(model: Any) -> dict[str, Any]:
    if hasattr(model, "W_hq"):
        found = {name: getattr(model.rnn, name) for name in ("W_xh", "W_hh", "b_h")}
        found |= {"W_hq": model.W_hq, "b_q": model.b_q}
    else:
        (w_x, w_h, b_x, b_h), linear = model.rnn.rnn.all_weights[0], model.linear
        found = {"W_xh": w_x.T, "W_hh": w_h.T, "b_h": b_x + b_h}
        found |= {"W_hq": linear.weight.T, "b_q": linear.bias}
    return {name: each.detach().numpy().copy() for name, each in found.items()}


def logits(model: Any, tokens: Any, *state: Any) -> Any:
    return model(torch.tensor(tokens).long(), *map(torch.tensor, state)).detach().numpy()


def layer(name: str, start: dict[str, Any], inputs: Any, state: Any = None) -> Any:
    """Of the recurrent layer alone, (steps, batch, inputs) to outputs and a state."""
    rnn = model(name, start).rnn
    outputs, state = rnn(torch.tensor(inputs), None if state is None else [torch.tensor(state)])
    return np.array([each.detach().numpy() for each in outputs]), state.detach().numpy()


def fit(model: Any, data: Any, clip: float, d2l: Any = d2l) -> None:
    d2l.Trainer(max_epochs=1, gradient_clip_val=clip).fit(model, data)


def say(model: Any, prefix: str, num_preds: int, vocab: Any) -> str:
    return model.predict(prefix, num_preds, vocab, CPU)


# D2L 0.17


def functions(start: dict[str, Any]) -> tuple[Any, ...]:
    """What a model of functions is made of."""

    def get_params(vocab_size: int, num_hiddens: int, device: Any) -> list[torch.Tensor]:
        if start["W_xh"].shape != (vocab_size, num_hiddens):
            raise ValueError(f"sizes: got {vocab_size} and {num_hiddens}; need those of the start")
        return [torch.tensor(each, requires_grad=True) for each in start.values()]

    def init_state(batch_size: int, num_hiddens: int, device: Any) -> Any:
        return (torch.zeros(batch_size, num_hiddens, device=device),)

    def forward(inputs: torch.Tensor, state: Any, params: Any) -> Any:
        W_xh, W_hh, b_h, W_hq, b_q = params
        (H,), outputs = state, []
        for X in inputs:
            H = torch.tanh(X @ W_xh + H @ W_hh + b_h)
            outputs.append(H @ W_hq + b_q)
        return torch.cat(outputs), (H,)

    return *start["W_xh"].shape, CPU, get_params, init_state, forward


def from_functions(start: dict[str, Any], d2l: Any = d2l) -> Any:
    return d2l.RNNModelScratch(*functions(start))


def params(net: Any) -> list[Any]:
    return [each.detach().numpy() for each in net.params]


def train_epoch(
    net: Any, batches: Any, lr: float, use_random_iter: bool, own: bool, d2l: Any = d2l
) -> Any:
    """With a function that does the steps, ``own``, or the framework's optimizer."""
    loss = nn.CrossEntropyLoss()
    updater: Any = torch.optim.SGD(net.params, lr)
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
    kinds = nn.RNN, nn.GRU, nn.LSTM
    made = [kind(vocab_size, num_hiddens) for kind in kinds]
    made.append(nn.GRU(vocab_size, num_hiddens, num_layers=2, bidirectional=True))
    return [d2l.RNNModel(each, vocab_size) for each in made]


def twice(net: Any, tokens: Any) -> list[Any]:
    """The logits of a batch, and of the same once more from the state reached; then by the layers in it."""
    X = torch.tensor(tokens)
    first, state = net(X, net.begin_state(CPU, len(tokens)))
    second, _ = net(X, state)
    one_hot = torch.eye(net.vocab_size)[X.T]
    Y, state = net.rnn(one_hot)
    by_hand = [net.linear(Y).flatten(0, 1), net.linear(net.rnn(one_hot, state)[0]).flatten(0, 1)]
    return [each.detach().numpy() for each in (first, second, *by_hand)]


def clipped(gradients: list[Any], theta: float, d2l: Any = d2l) -> list[Any]:
    net = SimpleNamespace(
        params=[torch.zeros(each.shape, requires_grad=True) for each in gradients]
    )
    for param, gradient in zip(net.params, gradients, strict=True):
        param.grad = torch.tensor(gradient)
    d2l.grad_clipping(net, theta)
    return [param.grad.numpy() for param in net.params]
