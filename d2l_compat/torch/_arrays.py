"""How PyTorch's tensors answer what is asked to check them."""

import torch
from torch import Tensor, nn

from d2l_compat._shared.checks import Arrays


class _Tensors(Arrays):
    types = (Tensor,)

    def dtype(self, x: Tensor) -> str:
        return str(x.dtype).removeprefix("torch.")

    def range(self, x: Tensor) -> tuple[int, int] | None:
        # Reading values would stop a compiler's trace, and there are none on the meta device.
        if not x.numel() or torch.compiler.is_compiling() or x.is_meta:
            return None
        smallest, largest = torch.aminmax(x.long())
        return int(smallest), int(largest)

    def takes(self, projection: nn.Linear, inputs: Tensor) -> tuple[int | None, str | None]:
        weight = projection.weight
        if isinstance(weight, nn.UninitializedParameter):
            return None, None
        is_cast = not inputs.is_meta and torch.is_autocast_enabled(inputs.device.type)
        return weight.shape[1], None if is_cast else self.dtype(weight)


arrays = _Tensors()
