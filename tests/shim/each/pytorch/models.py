"""The models of D2L 1.0's first chapters in PyTorch, with channels first."""

from typing import Any

import torch
from torch import nn

from d2l_compat import torch as d2l

BN_EPSILON = 1e-5
FACTOR = 2  # LinearRegression's loss divided by half the mean squared error


def predict(model: Any, X: Any, training: bool = False) -> Any:
    return model.train(training)(torch.from_numpy(X)).detach().numpy()


def layer_weights(model: Any) -> list[tuple[Any, Any]]:
    """Return each layer's weight, shape (inputs, outputs) or (outputs, inputs, height, width), and bias."""
    kinds = nn.Conv2d, nn.Linear
    layers = [module for module in model.modules() if isinstance(module, kinds)]
    arrays = [(x.weight.detach().numpy(), x.bias.detach().numpy()) for x in layers]
    return [(w if w.ndim == 4 else w.T, b) for w, b in arrays]


def copy(ours: Any, theirs: Any) -> None:
    """Copy a model's parameters to upstream's; both have been called."""
    theirs.load_state_dict(ours.state_dict())


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Train a linear regression from ``start``; return flat (w, b) before and after."""

    def params() -> tuple[Any, Any]:
        return (model.w, model.b) if hasattr(model, "w") else model.get_w_b()

    def weights() -> tuple[Any, ...]:
        return tuple(param.detach().numpy().ravel().copy() for param in params())

    model(data.train_batch()[0])
    if start is not None:
        for param, value in zip(params(), start, strict=True):
            param.data.copy_(torch.from_numpy(value).reshape(param.shape))
    before = weights()
    d2l.Trainer(max_epochs=epochs).fit(model, data)
    return before, weights()


def dense(weight: Any, bias: Any) -> nn.Module:
    layer = nn.Linear(*weight.shape)
    layer.load_state_dict({"weight": torch.from_numpy(weight.T), "bias": torch.from_numpy(bias)})
    return layer


loss = nn.BCEWithLogitsLoss(reduction="sum")


def optimizer(net: nn.Module, lr: float) -> Any:
    return torch.optim.SGD(net.parameters(), lr)
