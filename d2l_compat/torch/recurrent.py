"""Recurrent networks as language models: the classes of D2L 1.0, and the classes and training of 0.17."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared import checks
from d2l_compat._shared import recurrent as shared
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.linear import sgd
from d2l_compat.torch.seq2seq import evaluation_mode, prediction_mode
from d2l_compat.torch.training import Classifier, Module

__all__ = [
    "RNN",
    "RNNLM",
    "RNNLMScratch",
    "RNNModel",
    "RNNModelScratch",
    "RNNScratch",
    "grad_clipping",
    "predict_ch8",
    "train_ch8",
    "train_epoch_ch8",
]


class RNNScratch(Module):
    """A recurrent layer from scratch: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b_h)."""

    def __init__(self, num_inputs: int, num_hiddens: int, sigma: float = 0.01) -> None:
        """Draw normal weights with the standard deviation ``sigma``. Raises TypeError or ValueError for sizes below 1."""
        super().__init__()
        num_inputs = checks.size("num_inputs", num_inputs)
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        sigma = checks.real("sigma", sigma, "a number")
        self.save_hyperparameters()
        self.W_xh = nn.Parameter(torch.randn(num_inputs, num_hiddens) * sigma)
        self.W_hh = nn.Parameter(torch.randn(num_hiddens, num_hiddens) * sigma)
        self.b_h = nn.Parameter(torch.zeros(num_hiddens))

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[list[Tensor], Tensor]:
        """Return an output (batch, hiddens) for each step of ``inputs`` (steps, batch, inputs), and the new state."""
        num_inputs, num_hiddens = self.W_xh.shape
        arrays.check_sequence("inputs", inputs, num_inputs)
        state = shared.unpack_state(state)
        if state is None:
            state = inputs.new_zeros(inputs.shape[1], num_hiddens)
        outputs = []
        for X in inputs:
            state = torch.tanh(X @ self.W_xh + state @ self.W_hh + self.b_h)
            outputs.append(state)
        return outputs, state


class RNNLMScratch(shared.LanguageModelSteps, Classifier):
    """A language model from scratch: a recurrent layer ``rnn``, and an output layer for the next token."""

    rnn: Any
    vocab_size: int
    exp = staticmethod(torch.exp)

    def __init__(self, rnn: nn.Module, vocab_size: int, lr: float = 0.01) -> None:
        """Create the model; ``rnn`` takes (steps, batch, vocab_size).

        Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__()
        checks.check_instance("rnn", rnn, nn.Module, "a layer")
        vocab_size = checks.size("vocab_size", vocab_size)
        self.save_hyperparameters()
        self.init_params()

    def init_params(self) -> None:
        """Draw the weights of the output layer with the standard deviation of the weights of ``rnn``."""
        self.W_hq = nn.Parameter(
            torch.randn(self.rnn.num_hiddens, self.vocab_size) * self.rnn.sigma
        )
        self.b_q = nn.Parameter(torch.zeros(self.vocab_size))

    def one_hot(self, X: Tensor) -> Tensor:
        """Encode tokens (batch, steps) as (steps, batch, vocab_size), 1 at each token and 0 elsewhere."""
        return _one_hot(X, self.vocab_size)

    def output_layer(self, rnn_outputs: Any) -> Tensor:
        """Return logits (batch, steps, vocab_size) for a list of outputs (batch, hiddens), one for each step."""
        return torch.stack([H @ self.W_hq + self.b_q for H in rnn_outputs], 1)

    def forward(self, X: Tensor, state: Any = None) -> Tensor:
        """Return logits (batch, steps, vocab_size) for the token that follows each token in X (batch, steps)."""
        return self.output_layer(self.rnn(self.one_hot(X), state)[0])

    def predict(
        self, prefix: str, num_preds: int, vocab: Any, device: torch.device | None = None
    ) -> str:
        """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

        Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
        """

        def step(token: int, state: Any) -> tuple[int, Any]:
            outputs, state = self.rnn(self.one_hot(torch.tensor([[token]], device=device)), state)
            return int(self.output_layer(outputs).argmax()), state

        with evaluation_mode(self):
            return shared.predict(prefix, num_preds, vocab, step)


class RNN(Module):
    """PyTorch's recurrent layer: H_t = tanh(X_t W_xh + H_(t-1) W_hh + b)."""

    def __init__(self, num_inputs: int, num_hiddens: int) -> None:
        """Create the layer. Raises TypeError or ValueError for sizes below 1."""
        super().__init__()
        num_inputs = checks.size("num_inputs", num_inputs)
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        self.save_hyperparameters()
        self.rnn: Any = nn.RNN(num_inputs, num_hiddens)

    def forward(self, inputs: Tensor, H: Any = None) -> Any:
        """Map ``inputs`` (steps, batch, inputs) to (steps, batch, hiddens) and a new state (1, batch, hiddens)."""
        return self.rnn(inputs, H)


class RNNLM(RNNLMScratch):
    """A language model with PyTorch's layers: a recurrent layer ``rnn`` and a linear layer."""

    def init_params(self) -> None:
        """Create the output layer, whose first call sets its sizes."""
        self.linear = nn.LazyLinear(self.vocab_size)

    def output_layer(self, hiddens: Tensor) -> Tensor:
        """Map (steps, batch, hiddens) to logits (batch, steps, vocab_size)."""
        return self.linear(hiddens).swapaxes(0, 1)


class RNNModelScratch:
    """D2L 0.17's language model from scratch, built from functions; it is called with tokens and a state."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        device: torch.device,
        get_params: Callable[..., Sequence[Tensor]],
        init_state: Callable[..., Any],
        forward_fn: Callable[..., tuple[Tensor, Any]],
    ) -> None:
        """Create ``params`` with ``get_params(vocab_size, num_hiddens, device)``.

        ``init_state(batch_size, num_hiddens, device)`` returns a state; ``forward_fn(X, state, params)`` returns logits
        (steps * batch, vocab_size) for X (steps, batch, vocab_size), and the state. Raises TypeError or ValueError if
        these are not functions, or sizes are below 1.
        """
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.num_hiddens = checks.size("num_hiddens", num_hiddens)
        shared.check_functions(get_params, init_state, forward_fn)
        self.params = get_params(vocab_size, num_hiddens, device)
        self.init_state, self.forward_fn = init_state, forward_fn

    def __call__(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        return self.forward_fn(_one_hot(X, self.vocab_size), state, self.params)

    def begin_state(self, batch_size: int, device: torch.device) -> Any:
        """Return the initial state, from ``init_state``."""
        return self.init_state(batch_size, self.num_hiddens, device)


class RNNModel(nn.Module):
    """D2L 0.17's language model: a recurrent PyTorch layer, ``rnn_layer``, and a linear layer."""

    def __init__(self, rnn_layer: nn.RNNBase, vocab_size: int) -> None:
        """Create the model; ``rnn_layer`` takes (steps, batch, vocab_size).

        Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__()
        checks.check_instance("rnn_layer", rnn_layer, nn.RNNBase, "a PyTorch recurrent layer")
        self.rnn = rnn_layer
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.num_hiddens = rnn_layer.hidden_size
        self.num_directions = 2 if rnn_layer.bidirectional else 1
        self.linear = nn.Linear(self.num_hiddens * self.num_directions, vocab_size)

    def forward(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        Y, state = self.rnn(_one_hot(inputs, self.vocab_size), state)
        return self.linear(Y.reshape(-1, Y.shape[-1])), state

    def begin_state(self, device: torch.device, batch_size: int = 1) -> Any:
        """Return zeros (layers * directions, batch_size, hiddens), or two such tensors for an LSTM."""
        shape = self.num_directions * self.rnn.num_layers, batch_size, self.num_hiddens
        zeros = torch.zeros(shape, device=device)
        return (zeros, zeros.clone()) if isinstance(self.rnn, nn.LSTM) else zeros


def _one_hot(X: Tensor, vocab_size: int) -> Tensor:
    arrays.check_tokens(X, vocab_size)
    return F.one_hot(X.T.long(), vocab_size).float()


def predict_ch8(
    prefix: str, num_preds: int, net: Any, vocab: Any, device: torch.device | None
) -> str:
    """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

    Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
    """
    checks.check_callable("net", net)

    def step(token: int, state: Any) -> tuple[int, Any]:
        Y, state = net(torch.tensor([[token]], device=device), state)
        return int(Y.argmax()), state

    with prediction_mode(net):
        state = net.begin_state(batch_size=1, device=device)
        return shared.predict(prefix, num_preds, vocab, step, state)


def grad_clipping(net: Any, theta: float) -> None:
    """Scale the gradients of ``net`` in place so that their joint norm is at most ``theta``.

    These are the gradients of a layer's parameters, or of ``net.params``. Raises TypeError or ValueError if ``theta``
    is not a number above 0.
    """
    theta = shared.clipping_threshold(theta)
    params = net.parameters() if isinstance(net, nn.Module) else net.params
    nn.utils.clip_grad_norm_(params, theta)


def train_epoch_ch8(
    net: Any,
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: Any,
    device: torch.device | None,
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
    optimizer: Any = updater if isinstance(updater, torch.optim.Optimizer) else None
    if not optimizer:
        checks.check_callable("updater", updater)
    update: Any = optimizer.step if optimizer else lambda: updater(batch_size=1)

    def step(X: Tensor, Y: Tensor, state: Any) -> tuple[Tensor, Any, int]:
        y = Y.T.reshape(-1).to(device)
        y_hat, state = net(X.to(device), state)
        mean = loss(y_hat, y.long()).mean()
        if optimizer:
            optimizer.zero_grad()
        mean.backward()
        grad_clipping(net, 1)
        update()
        return mean.detach(), state, y.numel()

    return shared.train_epoch(
        train_iter,
        step,
        lambda batch_size: net.begin_state(batch_size=batch_size, device=device),
        lambda state: shared.map_state(Tensor.detach, state),
        use_random_iter,
    )


def train_ch8(
    net: Any,
    train_iter: Any,
    vocab: Any,
    lr: float,
    num_epochs: int,
    device: torch.device | None,
    use_random_iter: bool = False,
) -> None:
    """Train a language model with stochastic gradient descent, cross-entropy and :func:`train_epoch_ch8`.

    Every ten epochs the perplexity is plotted, and the model's continuation of *time traveller* printed. Raises
    TypeError or ValueError if ``num_epochs`` is below 1, or there is no batch (X, Y).
    """
    lr = checks.real("lr", lr, "a number")
    checks.check_callable("net", net)
    updater: Any = lambda batch_size: sgd(net.params, lr, batch_size)
    if isinstance(net, nn.Module):
        net.train()
        updater = torch.optim.SGD(net.parameters(), lr)
    loss = nn.CrossEntropyLoss()
    shared.train_ch8(
        num_epochs,
        lambda: train_epoch_ch8(net, train_iter, loss, updater, device, use_random_iter),
        lambda prefix: predict_ch8(prefix, 50, net, vocab, device),
        device,
    )
