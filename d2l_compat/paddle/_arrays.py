"""Access to Paddle's tensors for the shared checks."""

from typing import Any

import paddle
from paddle import Tensor, nn

from d2l_compat._shared import checks

# The checks also run while a program is traced, but are not part of it.
paddle.jit.ignore_module([checks])


class _Tensors(checks.Arrays):
    # A tensor, or its placeholder in a traced program.
    types = (Tensor, paddle.pir.Value)  # type: ignore[attr-defined]
    layer_types: tuple[type, ...] = (nn.Linear, nn.LayerNorm)

    def shape(self, x: Tensor) -> list[Any]:
        return [checks.Unknown("-1") if size == -1 else size for size in x.shape]

    def dtype(self, x: Tensor) -> str:
        return str(x.dtype).removeprefix("paddle.")

    def value_range(self, x: Tensor) -> tuple[float, float] | None:
        if not paddle.in_dynamic_mode() or not x.size:
            return None
        values = x.numpy()
        return values.min(), values.max()

    def expected_input(
        self, projection: nn.Linear, inputs: Tensor
    ) -> tuple[int | None, str | None]:
        weight = projection.weight
        if weight is None:  # a normalization may have none
            return None, None
        size = weight.shape[0] or None  # 0 before the first call
        return size, None if paddle.is_autocast_enabled() else self.dtype(weight)


arrays = _Tensors()
