"""Recurrent networks as language models, as in D2L 0.17; D2L 1.0 has no code for PaddlePaddle."""

from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.nn import functional as F

from d2l_compat._shared import checks
from d2l_compat._shared import recurrent as shared
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.linear import sgd
from d2l_compat.paddle.seq2seq import prediction_mode

__all__ = [
    "RNNModel",
    "RNNModelScratch",
    "grad_clipping",
    "predict_ch8",
    "train_ch8",
    "train_epoch_ch8",
]


class RNNModelScratch:
    """D2L 0.17's language model from scratch, built from functions; it is called with tokens and a state."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        get_params: Callable[..., Sequence[Tensor]],
        init_state: Callable[..., Any],
        forward_fn: Callable[..., tuple[Tensor, Any]],
    ) -> None:
        """Create ``params`` with ``get_params(vocab_size, num_hiddens)``.

        ``init_state(batch_size, num_hiddens)`` returns a state; ``forward_fn(X, state, params)`` returns logits
        (steps * batch, vocab_size) for X (steps, batch, vocab_size), and the state. Raises TypeError or ValueError if
        these are not functions, or sizes are below 1.
        """
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.num_hiddens = checks.size("num_hiddens", num_hiddens)
        shared.check_functions(get_params, init_state, forward_fn)
        self.params = get_params(vocab_size, num_hiddens)
        self.init_state, self.forward_fn = init_state, forward_fn

    def __call__(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        return self.forward_fn(_one_hot(X, self.vocab_size), state, self.params)

    def begin_state(self, batch_size: int) -> Any:
        """Return the initial state, from ``init_state``."""
        return self.init_state(batch_size, self.num_hiddens)


class RNNModel(nn.Layer):
    """D2L 0.17's language model: a recurrent Paddle layer, ``rnn_layer``, and a linear layer."""

    def __init__(self, rnn_layer: nn.layer.rnn.RNNBase, vocab_size: int) -> None:
        """Create the model; ``rnn_layer`` takes (steps, batch, vocab_size).

        Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__()
        checks.check_instance(
            "rnn_layer", rnn_layer, nn.layer.rnn.RNNBase, "a Paddle recurrent layer"
        )
        self.rnn = rnn_layer
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.num_hiddens = rnn_layer.hidden_size
        self.num_directions = rnn_layer.num_directions
        self.linear = nn.Linear(self.num_hiddens * self.num_directions, vocab_size)

    def forward(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        Y, state = self.rnn(_one_hot(inputs, self.vocab_size), state)
        return self.linear(Y.reshape(-1, Y.shape[-1])), state

    def begin_state(self, batch_size: int = 1) -> Any:
        """Return zeros (layers * directions, batch_size, hiddens), or two such tensors for an LSTM."""
        shape = self.num_directions * self.rnn.num_layers, batch_size, self.num_hiddens
        zeros = paddle.zeros(shape)
        return (zeros, zeros.clone()) if isinstance(self.rnn, nn.LSTM) else zeros


def _one_hot(X: Tensor, vocab_size: int) -> Tensor:
    arrays.check_tokens(X, vocab_size)
    return F.one_hot(X.T.astype("int64"), vocab_size)


def predict_ch8(prefix: str, num_preds: int, net: Any, vocab: Any, device: Any) -> str:
    """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

    Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
    """
    checks.check_callable("net", net)

    def step(token: int, state: Any) -> tuple[int, Any]:
        Y, state = net(paddle.to_tensor([[token]], place=device), state)
        return int(Y.argmax()), state

    with prediction_mode(net):
        state = net.begin_state(batch_size=1)
        return shared.predict(prefix, num_preds, vocab, step, state)


def grad_clipping(net: Any, theta: float) -> None:
    """Scale the gradients of ``net`` in place so that their joint norm is at most ``theta``.

    These are the gradients of a layer's parameters, or of ``net.params``. Raises TypeError or ValueError if ``theta``
    is not a number above 0.
    """
    theta = shared.clipping_threshold(theta)
    params = net.parameters() if isinstance(net, nn.Layer) else net.params
    nn.utils.clip_grad_norm_(params, theta)


def train_epoch_ch8(
    net: Any,
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: paddle.optimizer.Optimizer | Callable[..., Any],
    device: Any,
    use_random_iter: bool,
) -> tuple[float, float]:
    """Train for one epoch; return the perplexity, and tokens per second.

    ``loss(y_hat, y)`` is averaged; ``updater`` is an optimizer, or a function that is called with ``batch_size=1``.
    Gradients are clipped to the norm 1. With ``use_random_iter`` each batch begins with a new state, otherwise with the
    last state of the previous batch. Raises TypeError or ValueError if ``net``, ``loss`` or ``updater`` is not
    callable, or there is no batch (X, Y).
    """
    checks.check_callable("net", net)
    checks.check_callable("loss", loss)
    optimizer: Any = updater if isinstance(updater, paddle.optimizer.Optimizer) else None
    if not optimizer:
        checks.check_callable("updater", updater)
    update: Any = optimizer.step if optimizer else lambda: updater(batch_size=1)

    def step(X: Tensor, Y: Tensor, state: Any) -> tuple[Tensor, Any, int]:
        y = Y.T.reshape(-1).to(device)
        y_hat, state = net(X.to(device), state)
        mean = loss(y_hat, y.astype("int64")).mean()
        if optimizer:
            optimizer.clear_grad()
        mean.backward()
        grad_clipping(net, 1)
        update()
        return mean.detach(), state, y.size

    return shared.train_epoch(
        train_iter,
        step,
        lambda batch_size: net.begin_state(batch_size=batch_size),
        lambda state: shared.map_state(Tensor.detach, state),
        use_random_iter,
    )


def train_ch8(
    net: Any,
    train_iter: Any,
    vocab: Any,
    lr: float,
    num_epochs: int,
    device: Any,
    use_random_iter: bool = False,
) -> None:
    """Train a language model with stochastic gradient descent, cross-entropy and :func:`train_epoch_ch8`.

    Every ten epochs the perplexity is plotted, and the model's continuation of *time traveller* printed. Raises
    TypeError or ValueError if ``num_epochs`` is below 1, or there is no batch (X, Y).
    """
    lr = checks.real("lr", lr, "a number")
    checks.check_callable("net", net)
    updater: Any = lambda batch_size: sgd(net.params, lr, batch_size)
    if isinstance(net, nn.Layer):
        net.train()
        updater = paddle.optimizer.SGD(lr, net.parameters())
    loss = nn.CrossEntropyLoss()
    shared.train_ch8(
        num_epochs,
        lambda: train_epoch_ch8(net, train_iter, loss, updater, device, use_random_iter),
        lambda prefix: predict_ch8(prefix, 50, net, vocab, device),
        device,
    )
