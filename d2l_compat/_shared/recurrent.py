"""The parts of recurrent language models that are the same in every framework: training and prediction."""

import math
from collections.abc import Callable
from typing import Any

from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import check_callable, check_instance, integer, message, real, size
from d2l_compat._shared.linear import batches, no_examples_error
from d2l_compat._shared.measuring import Accumulator, Timer
from d2l_compat._shared.training import ClassifierSteps

Step = Callable[[int, Any], tuple[int, Any]]  # (token, state) -> (likeliest next token, state)


class LanguageModelSteps(ClassifierSteps):
    """The steps of a language model, which draw the perplexity, exp(loss)."""

    exp: Callable[[Any], Any]  # the framework's

    def training_step(self, batch: Any) -> Any:
        """Return the loss of a batch, whose tokens come first and whose next tokens come last; draw the perplexity."""
        loss = self.loss(self(*batch[:-1]), batch[-1])
        self.plot("ppl", self.exp(loss), train=True)
        return loss

    def validation_step(self, batch: Any) -> None:
        """Draw the perplexity of a batch."""
        loss = self.loss(self(*batch[:-1]), batch[-1])
        self.plot("ppl", self.exp(loss), train=False)


def unpack_state(state: Any) -> Any:
    """Return a state (batch, hiddens), which may come as the only element of a tuple, a list or a tensor."""
    if isinstance(state, (tuple, list)) or len(getattr(state, "shape", ())) > 2:
        if len(state) != 1:
            raise ValueError(message("state", f"{len(state)} states", "one, (batch, hiddens)"))
        return state[0]
    return state


def check_functions(get_params: Any, init_state: Any, forward_fn: Any) -> None:
    """Check that the functions of a model can be called."""
    check_callable("get_params", get_params)
    check_callable("init_state", init_state)
    check_callable("forward_fn", forward_fn)


def predict(prefix: str, num_preds: int, vocab: Any, step: Step, state: Any = None) -> str:
    """Return ``prefix``, followed by ``num_preds`` characters, the likeliest each time.

    Raises TypeError or ValueError unless ``prefix`` is a string, not empty, and ``num_preds`` at least 0.
    """
    check_instance("prefix", prefix, str, "a string of at least one character")
    if not prefix:
        raise ValueError(message("prefix", "''", "a string of at least one character"))
    num_preds = integer("num_preds", num_preds, 0)
    if not hasattr(vocab, "to_tokens"):
        raise TypeError(message("vocab", type(vocab).__name__, "a vocabulary, such as a Vocab"))
    tokens = [vocab[prefix[0]]]
    for character in prefix[1:]:
        _, state = step(tokens[-1], state)
        tokens.append(vocab[character])
    for _ in range(num_preds):
        token, state = step(tokens[-1], state)
        tokens.append(token)
    return "".join(vocab.to_tokens(tokens))


def train_epoch(
    train_iter: Any,
    step: Callable[[Any, Any, Any], tuple[Any, Any, int]],
    begin_state: Callable[[int], Any],
    detach: Callable[[Any], Any],
    use_random_iter: bool,
) -> tuple[float, float]:
    """Run ``step`` on each batch and a state; return the perplexity, and the tokens per second.

    A step returns the mean loss, the next state and the number of tokens. The next batch continues with the state, but
    without gradients through it; with ``use_random_iter``, each batch has a new state.
    """
    check_instance("use_random_iter", use_random_iter, (bool, int), "True or False")
    state = None
    timer, sums = Timer(), Accumulator(2)
    for X, Y in batches(train_iter, "train_iter"):
        is_new = state is None or use_random_iter
        state = begin_state(len(X)) if is_new else detach(state)
        loss, state, count = step(X, Y, state)
        sums.add(loss * count, count)
    if not sums[1]:
        raise no_examples_error("train_iter")
    return perplexity(sums[0] / sums[1]), sums[1] / timer.stop()


def clipping_threshold(theta: Any) -> float:
    """Return ``theta``, the greatest norm that gradients may have, as a number above 0."""
    if not real("theta", theta, "a number above 0") > 0:
        raise ValueError(message("theta", theta, "a number above 0"))
    return float(theta)


def perplexity(loss: float) -> float:
    """Return exp(loss): guessing among this many tokens has the same loss."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def map_state(function: Callable[[Any], Any], state: Any) -> Any:
    """Apply ``function`` to each tensor of a state, which may be nested tuples and lists."""
    if isinstance(state, (tuple, list)):
        return type(state)(map_state(function, part) for part in state)
    return function(state)


def train_ch8(
    num_epochs: int,
    train: Callable[[], tuple[float, float]],
    continue_text: Callable[[str], str],
    device: Any,
) -> None:
    """Call ``train`` in each epoch; after every tenth one, draw the perplexity and print a continued text."""
    num_epochs = size("num_epochs", num_epochs)
    xlim = [10, num_epochs] if num_epochs > 10 else None
    animator = Animator("epoch", "perplexity", legend=["train"], xlim=xlim)
    for epoch in range(1, num_epochs + 1):
        epoch_perplexity, speed = train()
        if epoch % 10 == 0:
            print(continue_text("time traveller"))
            animator.add(epoch, [epoch_perplexity])
    print(f"perplexity {epoch_perplexity:.1f}, {speed:.1f} tokens/sec on {device}")
    print(continue_text("time traveller"))
    print(continue_text("traveller"))
