"""The models of D2L 1.0's first chapters as they are in PyTorch: pictures have their channels first."""

from typing import Any

import torch
from torch import nn

from d2l_compat import torch as d2l

BN_EPSILON = 1e-5
FACTOR = 2  # of LinearRegression's loss, to half the mean squared difference


def answers(model: Any, X: Any, training: bool = False) -> Any:
    return model.train(training)(torch.from_numpy(X)).detach().numpy()


def layers(model: Any) -> list[tuple[Any, Any]]:
    """Weights and biases: of convolutions (outputs, inputs, height, width), else (inputs, outputs)."""
    kinds = nn.Conv2d, nn.Linear
    found = [each for each in model.modules() if isinstance(each, kinds)]
    arrays = [(each.weight.detach().numpy(), each.bias.detach().numpy()) for each in found]
    return [(w if w.ndim == 4 else w.T, b) for w, b in arrays]


def copy(ours: Any, theirs: Any) -> None:
    """The parameters of a model to upstream's, both of which have been called."""
    names = theirs.state_dict()

    def named(name: str) -> str:  # of an encoder's recurrent part, 0.17's are shorter
        return name if name in names else name.replace("rnn.rnn.", "rnn.")

    theirs.load_state_dict({named(name): array for name, array in ours.state_dict().items()})


def fit(model: Any, data: Any, epochs: int, d2l: Any = d2l, start: Any = None) -> Any:
    """Of linear regression: (w, b) before and after, flat; ``start`` sets them before."""

    def now() -> tuple[Any, Any]:
        w, b = (model.w, model.b) if hasattr(model, "w") else model.get_w_b()
        if start is not None and not kept:
            for param, value in zip((w, b), start, strict=True):
                param.data.copy_(torch.from_numpy(value).reshape(param.shape))
        return w.detach().numpy().ravel().copy(), b.detach().numpy().copy()

    kept: list[Any] = []
    model(data.train_batch()[0])
    kept.append(now())
    d2l.Trainer(max_epochs=epochs).fit(model, data)
    return kept[0], now()


def dense(weight: Any, bias: Any) -> nn.Module:
    layer = nn.Linear(*weight.shape)
    layer.load_state_dict({"weight": torch.from_numpy(weight.T), "bias": torch.from_numpy(bias)})
    return layer


loss = nn.BCEWithLogitsLoss(reduction="sum")


def optimizer(net: nn.Module, lr: float) -> Any:
    return torch.optim.SGD(net.parameters(), lr)
