"""Dropout, also with probability 1."""

import mlx.core as mx
from mlx import nn


class Dropout(nn.Dropout):
    """MLX's dropout, which also accepts ``p`` = 1 and then returns zeros."""

    def __init__(self, p: float) -> None:
        super().__init__(p if p < 1 else 0)
        self.p = p

    def __call__(self, x: mx.array) -> mx.array:
        return mx.zeros_like(x) if self.training and self.p == 1 else super().__call__(x)

    def _extra_repr(self) -> str:
        return f"p={self.p}"
