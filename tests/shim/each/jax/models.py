"""The models of D2L 1.0's first chapters in JAX, with channels last."""

from functools import partial
from typing import Any

import jax
import numpy as np

from d2l_compat import jax as d2l

BN_EPSILON = 1e-5
FACTOR = 1  # LinearRegression's loss divided by half the mean squared error
# The variables of Flax's models by id. The models are stored as well, so that no id is reused.
VARIABLES: dict[int, tuple[Any, Any]] = {}


def predict(model: Any, X: Any, training: bool = False) -> Any:
    X = X.transpose(0, 2, 3, 1) if X.ndim == 4 else X
    if id(model) not in VARIABLES:
        shapes = jax.eval_shape(model.init, jax.random.key(0), X)
        VARIABLES[id(model)] = model, draw_variables(shapes)
    apply = jax.jit(partial(model.apply, mutable=["batch_stats"]))
    Y = np.asarray(apply(VARIABLES[id(model)][1], X)[0])
    return Y.transpose(0, 3, 1, 2) if Y.ndim == 4 else Y


def draw_variables(shapes: Any) -> Any:
    """Draw variables of these shapes, faster than ``init``, which would be compiled."""
    rng = np.random.default_rng(0)

    def draw(path: Any, shape: Any) -> Any:
        if path[-1].key == "kernel":
            return rng.normal(0, 0.3, shape.shape).astype("float32")
        return np.full(shape.shape, path[-1].key in ("scale", "var"), "float32")

    return jax.tree_util.tree_map_with_path(draw, shapes)


def layer_weights(model: Any) -> list[tuple[Any, Any]]:
    """Return each layer's weight, shape (inputs, outputs) or (outputs, inputs, height, width), and bias."""
    params = VARIABLES[id(model)][1]["params"]
    params = params.get("net", params)
    names = sorted(params, key=lambda name: (len(name), name))
    layers = [params[name] for name in names if "kernel" in params[name]]
    arrays = [(np.asarray(layer["kernel"]), np.asarray(layer["bias"])) for layer in layers]
    return [(w.transpose(3, 2, 0, 1) if w.ndim == 4 else w, b) for w, b in arrays]


def copy(ours: Any, theirs: Any) -> None:
    """Copy a model's parameters to upstream's; both have been called."""
    VARIABLES[id(theirs)] = theirs, VARIABLES[id(ours)][1]


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Train a linear regression from ``start``; return flat (w, b) before and after."""

    def flatten(params: Any) -> tuple[Any, Any]:
        net = params.get("net", {})
        w, b = net.get("kernel", params.get("w")), net.get("bias", params.get("b"))
        return np.asarray(w).ravel(), np.asarray(b)

    variables = model.init(jax.random.key(0), data.train_batch()[0])
    if start is not None:
        w, b = start[0].reshape(-1, 1), start[1]
        is_scratch = "w" in variables["params"]
        params = {"w": w, "b": b} if is_scratch else {"net": {"kernel": w, "bias": b}}
        variables = {"params": jax.tree.map(jax.numpy.asarray, params)}
    model.apply_init = lambda inputs, key: variables
    trainer = d2l.Trainer(max_epochs=epochs)
    trainer.fit(model, data)
    return flatten(variables["params"]), flatten(trainer.state.params)
