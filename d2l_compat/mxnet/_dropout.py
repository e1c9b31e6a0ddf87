"""Dropout, of nothing and of everything too."""

from mxnet import autograd, np
from mxnet.gluon import nn


class Dropout(nn.Dropout):
    """Gluon's, without its copy where nothing is dropped, and with zeros where everything is: its
    own are NaN then."""

    def forward(self, X: np.ndarray) -> np.ndarray:
        if self._rate == 0:
            return X
        if self._rate < 1:
            return super().forward(X)
        return X * 0 if autograd.is_training() else X
