"""The models of D2L 1.0's first chapters as they are in JAX: pictures have their channels last."""

from functools import partial
from typing import Any

import jax
import numpy as np

from d2l_compat import jax as d2l

BN_EPSILON = 1e-5
FACTOR = 1  # of LinearRegression's loss, to half the mean squared difference
# Flax's models do not hold their variables. The model is kept as well: the id of one that is gone is given to another.
KEPT: dict[int, tuple[Any, Any]] = {}


def answers(model: Any, X: Any, training: bool = False) -> Any:
    X = X.transpose(0, 2, 3, 1) if X.ndim == 4 else X
    if id(model) not in KEPT:
        KEPT[id(model)] = model, drawn(jax.eval_shape(model.init, jax.random.key(0), X))
    apply = jax.jit(partial(model.apply, mutable=["batch_stats"]))
    Y = np.asarray(apply(KEPT[id(model)][1], X)[0])
    return Y.transpose(0, 3, 1, 2) if Y.ndim == 4 else Y


def drawn(shapes: Any) -> Any:
    """Variables of these shapes, without the seconds that compiling ``init`` takes."""
    rng = np.random.default_rng(0)

    def draw(path: Any, shape: Any) -> Any:
        if path[-1].key == "kernel":
            return rng.normal(0, 0.3, shape.shape).astype("float32")
        return np.full(shape.shape, path[-1].key in ("scale", "var"), "float32")

    return jax.tree_util.tree_map_with_path(draw, shapes)


def layers(model: Any) -> list[tuple[Any, Any]]:
    """Weights and biases: of convolutions (outputs, inputs, height, width), else (inputs, outputs)."""
    params = KEPT[id(model)][1]["params"]
    params = params.get("net", params)
    names = sorted(params, key=lambda name: (len(name), name))
    found = [params[name] for name in names if "kernel" in params[name]]
    arrays = [(np.asarray(each["kernel"]), np.asarray(each["bias"])) for each in found]
    return [(w.transpose(3, 2, 0, 1) if w.ndim == 4 else w, b) for w, b in arrays]


def copy(ours: Any, theirs: Any) -> None:
    """The parameters of a model to upstream's, both of which have been called."""
    KEPT[id(theirs)] = theirs, KEPT[id(ours)][1]


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Of linear regression: (w, b) before and after, flat; ``start`` sets them before."""

    def flat(params: Any) -> tuple[Any, Any]:
        of_net = params.get("net", {})
        w, b = of_net.get("kernel", params.get("w")), of_net.get("bias", params.get("b"))
        return np.asarray(w).ravel(), np.asarray(b)

    variables = model.init(jax.random.key(0), data.train_batch()[0])
    if start is not None:
        w, b = start[0].reshape(-1, 1), start[1]
        own = "w" in variables["params"]
        params = {"w": w, "b": b} if own else {"net": {"kernel": w, "bias": b}}
        variables = {"params": jax.tree.map(jax.numpy.asarray, params)}
    model.apply_init = lambda inputs, key: variables
    trainer = d2l.Trainer(max_epochs=epochs)
    trainer.fit(model, data)
    return flat(variables["params"]), flat(trainer.state.params)
