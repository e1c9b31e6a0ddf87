"""Splitting queries, keys and masks into the blocks of attention within a window."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from d2l_compat._shared.windows import Blocks, visible_keys


def split_queries(X: Tensor, blocks: Blocks) -> Tensor:
    """Reshape (batch, queries, features) to (batch, blocks, size, features)."""
    X = F.pad(X, (0, 0, blocks.query_padding, 0))
    return X.unflatten(1, (blocks.count, blocks.size))


def join_queries(X: Tensor, blocks: Blocks) -> Tensor:
    """Reverse :func:`split_queries`."""
    return X.flatten(1, 2)[:, blocks.query_padding :]


def split_keys(X: Tensor, blocks: Blocks) -> Tensor:
    """Gather each block's keys or values: the sinks, the block before, its own; (batch, blocks, keys, features)."""
    sinks = X[:, None, : blocks.num_sinks].expand(-1, blocks.count, -1, -1)
    X = F.pad(X, (0, 0, blocks.key_padding, 0))  # removes keys if the padding is negative
    X = X.unflatten(1, (blocks.count + 1, blocks.size))
    return torch.cat([sinks, X[:, :-1], X[:, 1:]], dim=2)


def split_bias(score_bias: Tensor, blocks: Blocks) -> Tensor:
    """Gather each block's part of (..., queries, keys), as (..., blocks, size, 2 * size)."""
    padded = F.pad(score_bias, (blocks.key_padding, 0, blocks.query_padding, 0))
    tiles = padded.unflatten(-1, (blocks.count + 1, blocks.size))
    tiles = tiles.unflatten(-3, (blocks.count, blocks.size))
    # The gradients of diagonals are written once; those of slices, in a loop, would be added at full size.
    before, own = (
        part.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)
        for part in (tiles[..., :-1, :], tiles[..., 1:, :])
    )
    return torch.cat([before, own], dim=-1)


def split_mask(valid_lens: Tensor | None, blocks: Blocks, device: torch.device) -> Tensor:
    """Return which keys each query sees; shape (batch or 1, blocks, size, keys)."""
    is_visible = torch.from_numpy(blocks.is_visible).to(device)[None]
    if valid_lens is None:
        return is_visible
    lens = valid_lens.to(device, torch.int64)
    lens = split_queries(lens[..., None], blocks) if lens.ndim == 2 else lens[:, None, None, None]
    return is_visible & (torch.from_numpy(blocks.key_positions).to(device) < lens)


def hide_outside(
    score_bias: Tensor | None, queries: Tensor, keys: Tensor, window: int | None
) -> Tensor | None:
    """Return the bias with minus infinity for keys that end before the window; None if there is neither."""
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    if window is None or window >= num_keys:
        return score_bias
    is_outside = np.logical_not(visible_keys(num_queries, num_keys, window))
    bias = queries.new_zeros(num_queries, num_keys) if score_bias is None else score_bias
    return bias.masked_fill(torch.from_numpy(is_outside).to(bias.device), -torch.inf)
