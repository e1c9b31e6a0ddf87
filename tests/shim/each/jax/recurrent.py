"""Language models as a reader of D2L writes and uses them in JAX."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from d2l_compat import jax as d2l

ACTIVATION = np.tanh


class Trained(SimpleNamespace):
    """A model and its parameters, which Flax keeps apart."""

    model: Any
    params: Any

    @property
    def board(self) -> Any:
        return self.model.board


def model(name: str, start: dict[str, Any], lr: float = 1.0, d2l: Any = d2l) -> Trained:
    """One from scratch starts from these weights; the other draws its own."""
    vocab_size, num_hiddens = start["W_xh"].shape
    is_scratch = name == "RNNLMScratch"
    rnn = d2l.RNNScratch(vocab_size, num_hiddens) if is_scratch else d2l.RNN(num_hiddens)
    made = getattr(d2l, name)(rnn, vocab_size, lr)
    params = made.init(jax.random.key(0), jax.numpy.zeros((1, 1), "int32"))["params"]
    if is_scratch:
        jax_start = {name: jax.numpy.array(each) for name, each in start.items()}
        params = {"rnn": {name: jax_start[name] for name in ("W_xh", "W_hh", "b_h")}}
        params |= {name: jax_start[name] for name in ("W_hq", "b_q")}
    return Trained(model=made, params=params)


def weights(trained: Trained) -> dict[str, Any]:
    found = trained.params
    if "linear" in found:
        cell = found["rnn"]["SimpleCell_0"]
        found = {"W_xh": cell["i"]["kernel"], "W_hh": cell["h"]["kernel"], "b_h": cell["i"]["bias"]}
        found |= {"W_hq": trained.params["linear"]["kernel"]}
        found |= {"b_q": trained.params["linear"]["bias"]}
    else:
        found = {**found["rnn"], "W_hq": found["W_hq"], "b_q": found["b_q"]}
    return {name: np.array(each) for name, each in found.items()}


def logits(trained: Trained, tokens: Any, *state: Any) -> Any:
    variables = {"params": trained.params}
    return np.array(trained.model.apply(variables, tokens.astype("int32"), *state))


def layer(name: str, start: dict[str, Any], inputs: Any, state: Any = None) -> Any:
    """Of the recurrent layer alone, (steps, batch, inputs) to outputs and a state."""
    made = model(name, start)
    variables = {"params": made.params["rnn"]}
    outputs, state = made.model.rnn.apply(variables, inputs, None if state is None else [state])
    return np.array(outputs), np.array(state)


def fit(trained: Trained, data: Any, clip: float, d2l: Any = d2l) -> Trained:
    trained.model.apply_init = lambda dummy_input, key: {"params": trained.params}
    trainer = d2l.Trainer(max_epochs=1, gradient_clip_val=clip)
    trainer.fit(trained.model, data)
    return Trained(model=trained.model, params=trainer.state.params)


def say(trained: Trained, prefix: str, num_preds: int, vocab: Any) -> str:
    return trained.model.predict(prefix, num_preds, vocab, trained.params)
