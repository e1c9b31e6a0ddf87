"""Random numbers as the CPU draws them, for PyTorch's notebooks on a GPU.

From one seed PyTorch draws other numbers on a GPU than on the CPU: what the notebooks show would differ in nearly
every cell. On a GPU the regression has them drawn on the CPU and taken there; all else is computed on the GPU.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only


class DrawsOnCPU(TorchDispatchMode):
    """All operations that PyTorch itself marks as drawing by a seed, from here on."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = args, kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*given[0], **given[1])
        tensors, device = _tensors(given), given[1].get("device")
        if device is None:
            device = tensors[0].device if tensors else "cpu"
        here, options = tree_map_only(torch.Tensor, self.here, given)
        if "device" in options:
            options["device"] = torch.device("cpu")
        try:
            drawn = func(*here, **options)
        except NotImplementedError:  # a GPU's own attention, which draws for its dropout
            return func(*given[0], **given[1])
        if func._schema.is_mutable:
            for tensor, its in zip(tensors, _tensors((here, options)), strict=True):
                tensor.copy_(its)
            return args[0]
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), drawn)

    def here(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.cpu()


def _tensors(arguments: Any) -> list[torch.Tensor]:
    return [each for each in tree_flatten(arguments)[0] if isinstance(each, torch.Tensor)]
