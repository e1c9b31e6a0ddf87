"""Recurrent language models as a reader of D2L writes them in JAX."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from d2l_compat import jax as d2l

ACTIVATION = np.tanh


class Trained(SimpleNamespace):
    """A model and its parameters, which Flax keeps separate."""

    model: Any
    params: Any

    @property
    def board(self) -> Any:
        return self.model.board


def model(name: str, start: dict[str, Any], lr: float = 1.0, d2l: Any = d2l) -> Trained:
    """Make a model; one from scratch starts from these weights."""
    vocab_size, num_hiddens = start["W_xh"].shape
    is_scratch = name == "RNNLMScratch"
    rnn = d2l.RNNScratch(vocab_size, num_hiddens) if is_scratch else d2l.RNN(num_hiddens)
    net = getattr(d2l, name)(rnn, vocab_size, lr)
    params = net.init(jax.random.key(0), jax.numpy.zeros((1, 1), "int32"))["params"]
    if is_scratch:
        jax_start = {name: jax.numpy.array(x) for name, x in start.items()}
        params = {"rnn": {name: jax_start[name] for name in ("W_xh", "W_hh", "b_h")}}
        params |= {name: jax_start[name] for name in ("W_hq", "b_q")}
    return Trained(model=net, params=params)


def weights(trained: Trained) -> dict[str, Any]:
    params = trained.params
    if "linear" in params:
        i, h = (params["rnn"]["SimpleCell_0"][name] for name in "ih")
        linear = params["linear"]
        arrays = {"W_xh": i["kernel"], "W_hh": h["kernel"], "b_h": i["bias"]}
        arrays |= {"W_hq": linear["kernel"], "b_q": linear["bias"]}
    else:
        arrays = {**params["rnn"], "W_hq": params["W_hq"], "b_q": params["b_q"]}
    return {name: np.array(x) for name, x in arrays.items()}


def logits(trained: Trained, tokens: Any, *state: Any) -> Any:
    variables = {"params": trained.params}
    return np.array(trained.model.apply(variables, tokens.astype("int32"), *state))


def layer(name: str, start: dict[str, Any], inputs: Any, state: Any = None) -> Any:
    """Apply only the recurrent layer to (steps, batch, inputs); return outputs and a state."""
    trained = model(name, start)
    variables = {"params": trained.params["rnn"]}
    outputs, state = trained.model.rnn.apply(variables, inputs, None if state is None else [state])
    return np.array(outputs), np.array(state)


def fit(trained: Trained, data: Any, clip: float, d2l: Any = d2l) -> Trained:
    trained.model.apply_init = lambda dummy_input, key: {"params": trained.params}
    trainer = d2l.Trainer(max_epochs=1, gradient_clip_val=clip)
    trainer.fit(trained.model, data)
    return Trained(model=trained.model, params=trainer.state.params)


def predict(trained: Trained, prefix: str, num_preds: int, vocab: Any) -> str:
    return trained.model.predict(prefix, num_preds, vocab, trained.params)
