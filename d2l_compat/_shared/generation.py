"""Generate tokens: choose each one from a model's logits, until enough are there or a stop token comes.

Choosing is done in NumPy, in float64, so that it is the same in every framework.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import message

Floats = NDArray[np.float64]
Predict = Callable[[Any, Any], Any]


def next_token_probs(
    logits: ArrayLike,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> NDArray[np.float64]:
    """Return the probabilities from which :func:`generate` draws the next token.

    ``logits``, shape (..., vocab), are divided by ``temperature``, a positive number, before the softmax. Then, in this
    order, and each time with what is left summing to 1: ``top_k`` keeps the k most probable tokens (1 is greedy
    decoding); ``top_p``, above 0 and at most 1, keeps the smallest set of most probable tokens whose sum reaches
    it (Holtzman et al., 2020); ``min_p``, likewise, keeps tokens with at least this fraction of the largest
    probability (Nguyen et al., 2024). Of tokens with equal probabilities, the first count as more probable.
    Returns float64 of the same shape. Raises ValueError or TypeError for arguments that are out of range.
    """
    array = to_numpy("logits", logits).astype(np.float64)
    _check_choice(array.shape, temperature, top_k, top_p, min_p)
    largest = array.max(axis=-1, keepdims=True)
    is_bad = ~np.isfinite(largest)
    if is_bad.any():
        got = f"a row whose largest number is {largest[is_bad][0]}"
        raise ValueError(message("logits", got, "a finite number"))
    exp = np.exp((array - largest) / temperature)
    probs = exp / exp.sum(axis=-1, keepdims=True)
    # The rank of each token, from the most probable one on.
    order = np.argsort(-probs, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    if top_k is not None:
        probs = _keep(probs, rank < top_k)
    if top_p is not None:
        ordered = np.take_along_axis(probs, order, axis=-1)
        # Rounding may leave a sum below 1; what comes before a token decides whether it is still needed.
        before = np.cumsum(ordered, axis=-1) - ordered
        probs = _keep(probs, np.take_along_axis(before < top_p, rank, axis=-1))
    if min_p is not None:
        probs = _keep(probs, probs >= min_p * probs.max(axis=-1, keepdims=True))
    return probs


def make_generate(to_array: Callable[[NDArray[Any]], Any]) -> Callable[..., list[list[int]]]:
    """Return a framework's ``generate``; ``to_array`` makes its arrays."""

    def generate(
        predict: Callable[[Any, Any], Any],
        prompts: Sequence[Sequence[int]],
        num_tokens: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        stop: int | None = None,
        seed: int | None = None,
    ) -> list[list[int]]:
        """Continue each prompt, a list of tokens, by up to ``num_tokens`` tokens; return lists of the new ones.

        ``predict(tokens, valid_lens)`` returns logits, shape (batch, steps, vocab), for integers of shape (batch,
        steps), of which the first ``valid_lens``, shape (batch,), of each row are tokens and the others padding.
        It is called with the prompts, then with one new token per row: it keeps what it needs of earlier
        calls, usually a cache. A token is drawn from :func:`next_token_probs`, whose arguments are those here;
        ``top_k=1`` is greedy. A row ends after the token ``stop``. The same ``seed``, an integer of at least 0, and
        the same logits give the same tokens in every framework. Raises ValueError or TypeError for arguments
        out of range and logits that do not fit.
        """
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        return _generate(predict, to_array, prompts, num_tokens, options, stop, seed)

    return generate


def _generate(
    predict: Predict,
    to_array: Callable[[NDArray[Any]], Any],
    prompts: Sequence[Sequence[int]],
    num_tokens: int,
    options: dict[str, Any],
    stop: int | None,
    seed: int | None,
) -> list[list[int]]:
    checks.check_callable("predict", predict)
    num_tokens = checks.integer("num_tokens", num_tokens, 1)
    stop = None if stop is None else checks.integer("stop", stop, 0)
    rng = np.random.default_rng(None if seed is None else checks.integer("seed", seed, 0))
    tokens, valid_lens = _pad(prompts)
    results: list[list[int]] = [[] for _ in tokens]
    is_done = np.zeros(len(tokens), bool)
    while True:
        logits = to_numpy("logits", predict(to_array(tokens), to_array(valid_lens)))
        if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
            need = f"shape {tokens.shape} and an axis for the vocabulary"
            raise ValueError(message("logits", f"shape {logits.shape}", need))
        last = logits[np.arange(len(tokens)), valid_lens - 1]
        chosen = _draw(next_token_probs(last, **options), rng)
        for result, token, done in zip(results, chosen.tolist(), is_done, strict=True):
            if not done:
                result.append(token)
        is_done |= chosen == stop
        if is_done.all() or max(map(len, results)) == num_tokens:
            return results
        tokens = chosen[:, None].astype(np.int32)
        valid_lens = np.ones(len(tokens), np.int32)


def _keep(probs: Floats, is_kept: NDArray[np.bool_]) -> Floats:
    kept = np.where(is_kept, probs, 0)
    return kept / kept.sum(axis=-1, keepdims=True)


def _draw(probs: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a token from each row: one uniform number per row, so that rows do not influence each other's tokens."""
    cumulative = probs.cumsum(axis=-1)
    chosen = (cumulative <= rng.random((len(probs), 1)) * cumulative[:, -1:]).sum(axis=-1)
    return np.minimum(chosen, probs.shape[-1] - 1)


def _pad(prompts: Iterable[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return prompts padded at the end with zeros, shape (batch, steps), and their lengths."""
    need = "a list of lists of tokens, at least one"
    rows = []
    for prompt in _as_list(prompts, need):
        row = [checks.integer("prompts", x, 0, checks.MAX_SIZE) for x in _as_list(prompt, need)]
        rows.append(row)
    if not rows:
        raise ValueError(message("prompts", "none", need))
    if not all(rows):
        raise ValueError(message("prompts", "an empty prompt", "at least one token in each"))
    lengths = np.array([*map(len, rows)], np.int32)
    tokens = np.zeros((len(rows), lengths.max()), np.int32)
    for row, prompt in zip(tokens, rows, strict=True):
        row[: len(prompt)] = prompt
    return tokens, lengths


def _as_list(prompts: Any, need: str) -> list[Any]:
    """Return prompts, or the tokens of one, as a list; an array becomes nested lists."""
    if hasattr(prompts, "shape"):
        prompts = to_numpy("prompts", prompts).tolist()
    if isinstance(prompts, str) or not isinstance(prompts, Iterable):
        raise TypeError(message("prompts", type(prompts).__name__, need))
    return [*prompts]


def _check_choice(
    shape: tuple[int, ...],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
) -> None:
    if not shape or not shape[-1]:
        raise ValueError(message("logits", f"shape {shape}", "a last axis for the vocabulary"))
    need = "a number above 0; for greedy decoding, top_k=1"
    if not 0 < checks.real("temperature", temperature, need) < np.inf:
        raise ValueError(message("temperature", temperature, need))
    if top_k is not None:
        vocab_size = shape[-1]
        if checks.integer("top_k", top_k, 1) > vocab_size:
            need = f"at most {vocab_size}, the size of the vocabulary"
            raise ValueError(message("top_k", top_k, need))
    for name, value in (("top_p", top_p), ("min_p", min_p)):
        need = "a number above 0 and at most 1"
        if value is not None and not 0 < checks.real(name, value, need) <= 1:
            raise ValueError(message(name, value, need))
