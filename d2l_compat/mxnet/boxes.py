"""Bounding boxes (x1, y1, x2, y2), anchors, and what is detected by them (Liu et al., 2016)."""

from typing import Any

from mxnet import np
from numpy.typing import NDArray

from d2l_compat._shared import boxes as shared
from d2l_compat._shared.checks import real
from d2l_compat.mxnet._arrays import arrays

__all__ = [
    "assign_anchor_to_bbox",
    "box_center_to_corner",
    "box_corner_to_center",
    "box_iou",
    "multibox_detection",
    "multibox_prior",
    "multibox_target",
    "nms",
    "offset_boxes",
    "offset_inverse",
]


def box_corner_to_center(boxes: np.ndarray) -> np.ndarray:
    """(x1, y1, x2, y2) to (center x, center y, width, height), each of shape (boxes, 4).

    Raises TypeError or ValueError for another shape, or another dtype than floating point.
    """
    shared.check_boxes(arrays, "boxes", boxes)
    return shared.corner_to_center(np, boxes)


def box_center_to_corner(boxes: np.ndarray) -> np.ndarray:
    """The other way round."""
    shared.check_boxes(arrays, "boxes", boxes)
    return shared.center_to_corner(np, boxes)


def box_iou(boxes1: np.ndarray, boxes2: np.ndarray) -> np.ndarray:
    """Of each pair of boxes, (boxes1, 4) and (boxes2, 4), the share of their union that is in both: (boxes1, boxes2).

    Raises TypeError or ValueError for another shape, or another dtype than one of floating point.
    """
    shared.check_box_arrays(arrays, ("boxes1", "boxes2"), boxes1, boxes2)
    return shared.iou(np, boxes1, boxes2)


def offset_boxes(anchors: np.ndarray, assigned_bb: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """From each anchor (boxes, 4) to its box: 10 times the way in its width and height, and 5 times the logarithm
    of how much wider and higher the box is, plus ``eps`` within the logarithm.

    Raises TypeError or ValueError for other shapes, or another dtype than one of floating point.
    """
    shared.check_box_pairs(arrays, ("anchors", "assigned_bb"), anchors, assigned_bb)
    return shared.offsets(np, anchors, assigned_bb, real("eps", eps, "a number"))


def offset_inverse(anchors: np.ndarray, offset_preds: np.ndarray) -> np.ndarray:
    """From anchors and predicted offsets, each (boxes, 4), to boxes: what :func:`offset_boxes` came from."""
    shared.check_box_pairs(arrays, ("anchors", "offset_preds"), anchors, offset_preds)
    return shared.apply_offsets(np, anchors, offset_preds)


def multibox_prior(data: np.ndarray, sizes: Any, ratios: Any) -> np.ndarray:
    """Anchors (1, height * width * (sizes + ratios - 1), 4) around each pixel of ``data`` (..., height, width).

    They are float32, in shares of the picture. Around a pixel there are all ``sizes`` with the first of
    ``ratios``, then the first size with the others: s * sqrt(r) wide in shares of the height, s / sqrt(r) high.
    Raises TypeError or ValueError where there is no pixel, or a size or ratio is not above 0.
    """
    arrays.check_instance("data", data)
    return _tensor(shared.anchor_boxes(data, sizes, ratios), data.ctx)


def assign_anchor_to_bbox(
    ground_truth: np.ndarray, anchors: np.ndarray, device: Any, iou_threshold: float = 0.5
) -> np.ndarray:
    """For each anchor (anchors, 4) the number of its box among ``ground_truth`` (boxes, 4), or -1: int32, on ``device``.

    That is the box that it overlaps most, if by ``iou_threshold`` at least; and each box gets an anchor in any
    case, the best that is left, boxes with the largest overlap first. Raises TypeError or ValueError for other shapes.
    """
    return _tensor(
        shared.assign_boxes(ground_truth, anchors, iou_threshold).astype("int32"), device
    )


def multibox_target(
    anchors: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is to be learned of ``anchors`` (1, anchors, 4) and ``labels`` (batch, boxes, 5), class and box.

    Offsets (batch, anchors * 4), float32; 1 where they count, else 0, of the same shape, int32; and classes
    (batch, anchors), int32, counted from 1: 0 is the background. Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("anchors", anchors)
    offset, mask, classes = shared.anchor_targets(anchors, labels)
    place = anchors.ctx
    return (
        _tensor(offset, place),
        _tensor(mask.astype("int32"), place),
        _tensor(classes.astype("int32"), place),
    )


def nms(boxes: np.ndarray, scores: np.ndarray, iou_threshold: float) -> np.ndarray:
    """Non-maximum suppression: the numbers of the boxes (boxes, 4) that are kept, int32, from the highest of
    ``scores`` (boxes,) on. A box goes where it overlaps one that is kept by more than ``iou_threshold``.

    Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("boxes", boxes)
    return _tensor(
        shared.suppress_overlaps(boxes, scores, iou_threshold).astype("int32"), boxes.ctx
    )


def multibox_detection(
    cls_probs: np.ndarray,
    offset_preds: np.ndarray,
    anchors: np.ndarray,
    nms_threshold: float = 0.5,
    pos_threshold: float = 0.009999999,
) -> np.ndarray:
    """Of each anchor class, confidence and box, (batch, anchors, 6), float32: first those that :func:`nms` keeps.

    ``cls_probs`` (batch, classes + 1, anchors) has the background first, ``offset_preds`` is (batch, anchors * 4),
    ``anchors`` (1, anchors, 4). The class is -1 for boxes that are not kept, and for those of a confidence below
    ``pos_threshold``: theirs is then that of the background. Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("cls_probs", cls_probs)
    found = shared.detect(cls_probs, offset_preds, anchors, nms_threshold, pos_threshold)
    return _tensor(found, cls_probs.ctx)


def _tensor(numbers: NDArray[Any], place: Any) -> np.ndarray:
    return np.array(numbers, dtype=numbers.dtype, ctx=place)
