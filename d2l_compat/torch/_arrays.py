"""Access to PyTorch's tensors for the shared checks."""

import torch
from torch import Tensor, nn

from d2l_compat._shared.checks import Arrays


class _Tensors(Arrays):
    types = (Tensor,)
    layer_types = (nn.Linear, nn.LazyLinear, nn.LayerNorm)

    def dtype(self, x: Tensor) -> str:
        return str(x.dtype).removeprefix("torch.")

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        return x.to(getattr(torch, dtype))

    def value_range(self, x: Tensor) -> tuple[float, float] | None:
        # Reading values would stop a compiler's trace, and tensors on the meta device have none.
        if not x.numel() or torch.compiler.is_compiling() or x.is_meta:
            return None
        smallest, largest = torch.aminmax(x if x.is_floating_point() else x.long())
        return smallest.item(), largest.item()

    def expected_input(
        self, projection: nn.Linear, inputs: Tensor
    ) -> tuple[int | None, str | None]:
        weight = projection.weight
        if weight is None:  # a normalization may have none
            return None, None
        size = None if isinstance(weight, nn.UninitializedParameter) else weight.shape[-1]
        is_cast = not inputs.is_meta and torch.is_autocast_enabled(inputs.device.type)
        return size, None if is_cast else self.dtype(weight)

    def check_labels(self, Y_hat: Tensor, Y: Tensor) -> None:
        """Check labels as the base class does, but allow -100, which ``cross_entropy`` ignores."""
        labels = Y.masked_fill(Y == -100, 0) if isinstance(Y, Tensor) else Y
        super().check_labels(Y_hat, labels)


arrays = _Tensors()
