"""Draw random numbers on the CPU for PyTorch's notebooks on a GPU.

From the same seed PyTorch draws different numbers on a GPU and on the CPU, so nearly every cell of the notebooks would
differ. The regression run on a GPU therefore draws random numbers on the CPU and copies them; everything else is
computed on the GPU.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only


class RandomNumbersOnCPU(TorchDispatchMode):
    """While active, run on the CPU all operations that PyTorch marks as random and seeded."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        tensors = _find_tensors((args, kwargs))
        device = kwargs.get("device")
        if device is None:
            device = tensors[0].device if tensors else "cpu"
        cpu_args, cpu_kwargs = tree_map_only(torch.Tensor, self.to_cpu, (args, kwargs))
        if "device" in cpu_kwargs:
            cpu_kwargs["device"] = torch.device("cpu")
        try:
            result = func(*cpu_args, **cpu_kwargs)
        except NotImplementedError:  # the GPU's attention with dropout, which the CPU lacks
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            copies = _find_tensors((cpu_args, cpu_kwargs))
            for tensor, copy in zip(tensors, copies, strict=True):
                tensor.copy_(copy)
            return args[0]
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), result)

    def to_cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.cpu()


def _find_tensors(arguments: Any) -> list[torch.Tensor]:
    return [each for each in tree_flatten(arguments)[0] if isinstance(each, torch.Tensor)]
