"""Dropout that also handles the rates 0 and 1."""

from mxnet import autograd, np
from mxnet.gluon import nn


class Dropout(nn.Dropout):
    """Gluon's dropout, without the copy that it makes at rate 0, and with zeros instead of NaN at rate 1."""

    def forward(self, X: np.ndarray) -> np.ndarray:
        if self._rate == 0:
            return X
        if self._rate < 1:
            return super().forward(X)
        return X * 0 if autograd.is_training() else X


def is_inactive(layer: nn.Block) -> bool:
    """Return whether the layer, which a user may have put in the place of ours, returns its input now."""
    return isinstance(layer, nn.Dropout) and not (layer._rate and autograd.is_training())
