"""Language models of recurrent networks: how they are trained, and what they are asked, in every framework alike."""

import math
from collections.abc import Callable
from typing import Any

from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import check_callable, check_instance, fault, integer, real, size
from d2l_compat._shared.linear import batches, no_examples_error
from d2l_compat._shared.measuring import Accumulator, Timer
from d2l_compat._shared.training import ClassifierSteps

Step = Callable[
    [int, Any], tuple[int, Any]
]  # a token and a state; the likeliest next, and the state


class LanguageModelSteps(ClassifierSteps):
    """What a language model does with a batch: it draws the perplexity, exp(loss)."""

    exp: Callable[[Any], Any]  # the face's

    def training_step(self, batch: Any) -> Any:
        """The loss of a batch, tokens first and the next tokens last; the perplexity is drawn."""
        loss = self.loss(self(*batch[:-1]), batch[-1])
        self.plot("ppl", self.exp(loss), train=True)
        return loss

    def validation_step(self, batch: Any) -> None:
        """Draw the perplexity of a batch."""
        loss = self.loss(self(*batch[:-1]), batch[-1])
        self.plot("ppl", self.exp(loss), train=False)


def unpack_state(state: Any) -> Any:
    """A state (batch, hiddens), which may come as the one element of a tuple, a list or a tensor."""
    if isinstance(state, (tuple, list)) or len(getattr(state, "shape", ())) > 2:
        if len(state) != 1:
            raise ValueError(fault("state", f"{len(state)} states", "one, (batch, hiddens)"))
        return state[0]
    return state


def check_functions(get_params: Any, init_state: Any, forward_fn: Any) -> None:
    """What a model of functions is made of: each can be called."""
    given = {"get_params": get_params, "init_state": init_state, "forward_fn": forward_fn}
    for what, function in given.items():
        check_callable(what, function)


def predict(prefix: str, num_preds: int, vocab: Any, step: Step, state: Any = None) -> str:
    """``prefix``, and after it ``num_preds`` characters, the likeliest each time.

    Raises TypeError or ValueError where ``prefix`` is no string or empty, or ``num_preds`` below 0.
    """
    check_instance("prefix", prefix, str, "a string of at least one character")
    if not prefix:
        raise ValueError(fault("prefix", "''", "a string of at least one character"))
    num_preds = integer("num_preds", num_preds, 0)
    if not hasattr(vocab, "to_tokens"):
        raise TypeError(fault("vocab", type(vocab).__name__, "a vocabulary, as Vocab is"))
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
    detached: Callable[[Any], Any],
    use_random_iter: bool,
) -> tuple[float, float]:
    """Do ``step`` with each batch and a state: perplexity, and tokens a second.

    A step gives the mean loss, the next state and the number of tokens. Where examples go on from batch to batch, so does
    the state, but no gradient through it; where they do not, each batch has a new one.
    """
    check_instance("use_random_iter", use_random_iter, (bool, int), "True or False")
    state, timer, sums = None, Timer(), Accumulator(2)
    for X, Y in batches(train_iter, "train_iter"):
        begins = state is None or use_random_iter
        state = begin_state(len(X)) if begins else detached(state)
        loss, state, count = step(X, Y, state)
        sums.add(loss * count, count)
    if not sums[1]:
        raise no_examples_error("train_iter")
    return perplexity(sums[0] / sums[1]), sums[1] / timer.stop()


def clipping_threshold(theta: Any) -> float:
    """``theta``, the greatest norm that gradients may have: a number above 0."""
    if not real("theta", theta, "a number above 0") > 0:
        raise ValueError(fault("theta", theta, "a number above 0"))
    return float(theta)


def perplexity(loss: float) -> float:
    """exp(loss): among how many tokens a model that guesses would be as unsure."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def map_state(function: Callable[[Any], Any], state: Any) -> Any:
    """A state, or tuples and lists of states, with ``function`` of each tensor in it."""
    if isinstance(state, (tuple, list)):
        return type(state)(map_state(function, part) for part in state)
    return function(state)


def train_ch8(
    num_epochs: int,
    train: Callable[[], tuple[float, float]],
    say: Callable[[str], str],
    device: Any,
) -> None:
    """``train`` epoch by epoch; each tenth perplexity is drawn, and printed what ``say`` makes of a beginning."""
    num_epochs = size("num_epochs", num_epochs)
    xlim = [10, num_epochs] if num_epochs > 10 else None
    drawn = Animator("epoch", "perplexity", legend=["train"], xlim=xlim)
    for number in range(1, num_epochs + 1):
        unsure, speed = train()
        if number % 10 == 0:
            print(say("time traveller"))
            drawn.add(number, [unsure])
    print(f"perplexity {unsure:.1f}, {speed:.1f} tokens/sec on {device}")
    print(say("time traveller"))
    print(say("traveller"))
