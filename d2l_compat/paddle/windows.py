"""Splitting queries, keys and masks into the blocks of attention within a window."""

import paddle
from paddle import Tensor

from d2l_compat._shared import windows
from d2l_compat._shared.windows import Blocks


@paddle.jit.not_to_static
def choose_blocks(queries: Tensor, keys: Tensor, window: int | None) -> Blocks | None:
    """Return the blocks, or None without a window, for short input, and in a traced program without sizes."""
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    if -1 in (num_queries, num_keys):
        return None
    return windows.choose_blocks(num_queries, num_keys, window)


def split_queries(X: Tensor, blocks: Blocks) -> Tensor:
    """Reshape (batch, queries, features) to (batch, blocks, size, features)."""
    X = _pad_front(X, blocks.query_padding, axis=1)
    return X.unflatten(1, [blocks.count, blocks.size])


def join_queries(X: Tensor, blocks: Blocks) -> Tensor:
    """Reverse :func:`split_queries`."""
    return X.flatten(1, 2)[:, blocks.query_padding :]


def split_keys(X: Tensor, blocks: Blocks) -> Tensor:
    """Gather each block's keys or values: the sinks, the block before, its own; (batch, blocks, keys, features)."""
    sinks = X[:, : blocks.num_sinks].unsqueeze(1).expand([-1, blocks.count, -1, -1])
    X = _pad_front(X, blocks.key_padding, axis=1)
    X = X.unflatten(1, [blocks.count + 1, blocks.size])
    parts = [X[:, :-1], X[:, 1:]]
    return paddle.concat([sinks, *parts] if blocks.num_sinks else parts, axis=2)


def split_bias(score_bias: Tensor, blocks: Blocks) -> Tensor:
    """Gather each block's part of (..., queries, keys), as (..., blocks, size, 2 * size)."""
    padded = _pad_front(score_bias, blocks.query_padding, axis=-2)
    padded = _pad_front(padded, blocks.key_padding, axis=-1)
    # Split first: each slice has a gradient of the size of what it was taken from.
    rows = paddle.split(padded, blocks.count, axis=-2)
    size = blocks.size
    parts = [row[..., i * size : (i + 2) * size] for i, row in enumerate(rows)]
    return paddle.stack(parts, axis=-3)


def split_mask(valid_lens: Tensor | None, blocks: Blocks) -> Tensor:
    """Return which keys each query sees; shape (batch or 1, blocks, size, keys)."""
    is_visible = paddle.to_tensor(blocks.is_visible).unsqueeze(0)
    if valid_lens is None:
        return is_visible
    lens = valid_lens.astype("int64")
    lens = (
        split_queries(lens.unsqueeze(2), blocks) if lens.ndim == 2 else lens.reshape([-1, 1, 1, 1])
    )
    return is_visible & (paddle.to_tensor(blocks.key_positions) < lens)


def hide_outside(
    is_visible: Tensor | None, queries: Tensor, keys: Tensor, window: int | None
) -> Tensor | None:
    """Return the mask without the keys that end before the window; None if there is neither.

    It is a mask of bools, since FLAGS_check_nan_inf would reject a bias of minus infinity.
    """
    if window is None:
        return is_visible
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    position = paddle.arange(num_queries) + (num_keys - num_queries)
    in_reach = position.unsqueeze(1) - paddle.arange(num_keys) < window
    return in_reach if is_visible is None else is_visible & in_reach


def _pad_front(X: Tensor, size: int, axis: int) -> Tensor:
    """Add zeros in front of an axis, or remove what is there if ``size`` is negative."""
    if size <= 0:
        return paddle.slice(X, [axis % X.ndim], [-size], [X.shape[axis]])
    shape = [*X.shape]
    shape[axis] = size
    return paddle.concat([paddle.zeros(shape, X.dtype), X], axis=axis)
