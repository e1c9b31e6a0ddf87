"""Recurrent networks as language models: the classes of D2L 1.0, and the classes and training of 0.17."""

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import Context, autograd, gluon, init, np, npx
from mxnet.gluon import nn, rnn

from d2l_compat._shared import checks
from d2l_compat._shared import recurrent as shared
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet.linear import sgd
from d2l_compat.mxnet.training import Classifier, Module, clip_norm, get_gradients

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
        self.W_xh = np.random.randn(num_inputs, num_hiddens) * sigma
        self.W_hh = np.random.randn(num_hiddens, num_hiddens) * sigma
        self.b_h = np.zeros(num_hiddens)

    def forward(self, inputs: np.ndarray, state: Any = None) -> tuple[list[np.ndarray], np.ndarray]:
        """Return an output (batch, hiddens) for each step of ``inputs`` (steps, batch, inputs), and the new state."""
        num_inputs, num_hiddens = self.W_xh.shape
        arrays.check_sequence("inputs", inputs, num_inputs)
        state = shared.unpack_state(state)
        if state is None:
            state = np.zeros((inputs.shape[1], num_hiddens), dtype=inputs.dtype, ctx=inputs.ctx)
        outputs = []
        for X in inputs:
            state = np.tanh(np.dot(X, self.W_xh) + np.dot(state, self.W_hh) + self.b_h)
            outputs.append(state)
        return outputs, state


class RNNLMScratch(shared.LanguageModelSteps, Classifier):
    """A language model from scratch: a recurrent layer ``rnn``, and an output layer for the next token."""

    exp = staticmethod(np.exp)

    def __init__(self, rnn: nn.Block, vocab_size: int, lr: float = 0.01) -> None:
        """Create the model; ``rnn`` takes (steps, batch, vocab_size).

        Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__()
        checks.check_instance("rnn", rnn, nn.Block, "a layer")
        vocab_size = checks.size("vocab_size", vocab_size)
        self.save_hyperparameters()
        self.init_params()

    def init_params(self) -> None:
        """Draw the weights of the output layer with the standard deviation of the weights of ``rnn``."""
        self.W_hq = np.random.randn(self.rnn.num_hiddens, self.vocab_size) * self.rnn.sigma
        self.b_q = np.zeros(self.vocab_size)
        for array in self.get_scratch_params():
            array.attach_grad()

    def one_hot(self, X: np.ndarray) -> np.ndarray:
        """Encode tokens (batch, steps) as (steps, batch, vocab_size), 1 at each token and 0 elsewhere."""
        return _one_hot(X, self.vocab_size)

    def output_layer(self, rnn_outputs: Any) -> np.ndarray:
        """Return logits (batch, steps, vocab_size) for a list of outputs (batch, hiddens), one for each step."""
        return np.stack([np.dot(H, self.W_hq) + self.b_q for H in rnn_outputs], axis=1)

    def forward(self, X: np.ndarray, state: Any = None) -> np.ndarray:
        """Return logits (batch, steps, vocab_size) for the token that follows each token in X (batch, steps)."""
        return self.output_layer(self.rnn(self.one_hot(X), state)[0])

    def predict(
        self, prefix: str, num_preds: int, vocab: Any, device: Context | None = None
    ) -> str:
        """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

        Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
        """

        def step(token: int, state: Any) -> tuple[int, Any]:
            X = np.array([[token]], dtype="int32", ctx=device)
            outputs, state = self.rnn(self.one_hot(X), state)
            return int(self.output_layer(outputs).argmax().item()), state

        return shared.predict(prefix, num_preds, vocab, step)


class RNN(Module):
    """Gluon's recurrent layer: H_t = relu(X_t W_xh + H_(t-1) W_hh + b)."""

    def __init__(self, num_hiddens: int) -> None:
        """Create the layer. Raises TypeError or ValueError for a size below 1."""
        super().__init__()
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        self.save_hyperparameters()
        self.rnn: Any = rnn.RNN(num_hiddens)

    def forward(self, inputs: np.ndarray, H: Any = None) -> Any:
        """Map ``inputs`` (steps, batch, inputs) to (steps, batch, hiddens) and a new state (1, batch, hiddens)."""
        if H is None:
            (H,) = self.rnn.begin_state(inputs.shape[1], ctx=inputs.ctx)
        outputs, (H,) = self.rnn(inputs, (H,))
        return outputs, H


class RNNLM(RNNLMScratch):
    """A language model with Gluon's layers: a recurrent layer ``rnn`` and a dense layer."""

    def init_params(self) -> None:
        """Create the output layer, and initialize the model; the first call sets its sizes."""
        self.linear = nn.Dense(self.vocab_size, flatten=False)
        self.initialize()

    def output_layer(self, hiddens: np.ndarray) -> np.ndarray:
        """Map (steps, batch, hiddens) to logits (batch, steps, vocab_size)."""
        return self.linear(hiddens).swapaxes(0, 1)


class RNNModelScratch:
    """D2L 0.17's language model from scratch, built from functions; it is called with tokens and a state."""

    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        device: Context,
        get_params: Callable[..., Sequence[np.ndarray]],
        init_state: Callable[..., Any],
        forward_fn: Callable[..., tuple[np.ndarray, Any]],
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

    def __call__(self, X: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        return self.forward_fn(_one_hot(X, self.vocab_size), state, self.params)

    def begin_state(self, batch_size: int, ctx: Context) -> Any:
        """Return the initial state, from ``init_state``."""
        return self.init_state(batch_size, self.num_hiddens, ctx)


class RNNModel(nn.Block):
    """D2L 0.17's language model: a recurrent Gluon layer, ``rnn_layer``, and a dense layer."""

    def __init__(self, rnn_layer: nn.Block, vocab_size: int) -> None:
        """Create the model; ``rnn_layer`` takes (steps, batch, vocab_size).

        Raises TypeError or ValueError for arguments of the wrong type.
        """
        super().__init__()
        checks.check_instance("rnn_layer", rnn_layer, nn.Block, "a Gluon recurrent layer")
        self.rnn = rnn_layer
        self.vocab_size = checks.size("vocab_size", vocab_size)
        self.dense = nn.Dense(vocab_size)

    def forward(self, inputs: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        """Return logits (steps * batch, vocab_size) for the token after each input (batch, steps), and the state."""
        Y, state = self.rnn(_one_hot(inputs, self.vocab_size), state)
        return self.dense(Y.reshape(-1, Y.shape[-1])), state

    def begin_state(self, *args: Any, **kwargs: Any) -> Any:
        """Return the layer's initial state: ``begin_state(batch_size, ctx=device)``."""
        return self.rnn.begin_state(*args, **kwargs)


def _one_hot(X: np.ndarray, vocab_size: int) -> np.ndarray:
    arrays.check_tokens(X, vocab_size)
    return npx.one_hot(X.T, vocab_size)


def predict_ch8(prefix: str, num_preds: int, net: Any, vocab: Any, device: Context) -> str:
    """Continue ``prefix`` by ``num_preds`` characters, the likeliest each time; return the whole text.

    Raises TypeError or ValueError if arguments are of the wrong type, or ``prefix`` is empty.
    """
    checks.check_callable("net", net)

    def step(token: int, state: Any) -> tuple[int, Any]:
        Y, state = net(np.array([[token]], dtype="int32", ctx=device), state)
        return int(Y.argmax().item()), state

    initial_state = net.begin_state(batch_size=1, ctx=device)
    return shared.predict(prefix, num_preds, vocab, step, initial_state)


def grad_clipping(net: Any, theta: float) -> None:
    """Scale the gradients of ``net`` in place so that their joint norm is at most ``theta``.

    These are the gradients of a layer's parameters, or of ``net.params``. Raises TypeError or ValueError if ``theta``
    is not a number above 0.
    """
    theta = shared.clipping_threshold(theta)
    is_block = isinstance(net, nn.Block)
    gradients = get_gradients(net) if is_block else [param.grad for param in net.params]
    clip_norm(gradients, theta)


def train_epoch_ch8(
    net: Any,
    train_iter: Any,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    updater: Callable[..., Any],
    device: Context,
    use_random_iter: bool,
) -> tuple[float, float]:
    """Train for one epoch; return the perplexity, and tokens per second.

    ``loss(y_hat, y)`` is averaged; ``updater`` is called with ``batch_size=1``. Gradients are clipped to the norm 1.
    With ``use_random_iter`` each batch begins with a new state, otherwise with the last state of the previous batch.
    Raises TypeError or ValueError if ``net``, ``loss`` or ``updater`` is not callable, or there is no batch (X, Y).
    """
    for what, function in ("net", net), ("loss", loss), ("updater", updater):
        checks.check_callable(what, function)

    def step(X: np.ndarray, Y: np.ndarray, state: Any) -> tuple[np.ndarray, Any, int]:
        X, y = X.as_in_ctx(device), Y.T.reshape(-1).as_in_ctx(device)
        with autograd.record():
            y_hat, state = net(X, state)
            batch_loss = loss(y_hat, y).mean()
        batch_loss.backward()
        grad_clipping(net, 1)
        updater(batch_size=1)
        return batch_loss, state, y.size

    return shared.train_epoch(
        train_iter,
        step,
        lambda batch_size: net.begin_state(batch_size=batch_size, ctx=device),
        lambda state: shared.map_state(np.ndarray.detach, state),
        use_random_iter,
    )


def train_ch8(
    net: Any,
    train_iter: Any,
    vocab: Any,
    lr: float,
    num_epochs: int,
    device: Context,
    use_random_iter: bool = False,
) -> None:
    """Train a language model with stochastic gradient descent, cross-entropy and :func:`train_epoch_ch8`.

    Every ten epochs the perplexity is plotted, and the model's continuation of *time traveller* printed. Raises
    TypeError or ValueError if ``num_epochs`` is below 1, or there is no batch (X, Y).
    """
    lr = checks.real("lr", lr, "a number")
    checks.check_callable("net", net)
    updater: Any = lambda batch_size: sgd(net.params, lr, batch_size)
    if isinstance(net, nn.Block):
        net.initialize(init.Normal(0.01), device, force_reinit=True)
        updater = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr}).step
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    shared.train_ch8(
        num_epochs,
        lambda: train_epoch_ch8(net, train_iter, loss, updater, device, use_random_iter),
        lambda prefix: predict_ch8(prefix, 50, net, vocab, device),
        device,
    )
