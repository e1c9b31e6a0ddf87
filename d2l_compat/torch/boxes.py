"""Bounding boxes (x1, y1, x2, y2), anchors, and what is detected by them (Liu et al., 2016)."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from d2l_compat._shared import boxes as shared
from d2l_compat._shared.checks import real
from d2l_compat.torch._arrays import arrays

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


def box_corner_to_center(boxes: Tensor) -> Tensor:
    """(x1, y1, x2, y2) to (center x, center y, width, height), each of shape (boxes, 4).

    Raises TypeError or ValueError for another shape, or another dtype than floating point.
    """
    shared.check_boxes(arrays, "boxes", boxes)
    return shared.corner_to_center(torch, boxes)


def box_center_to_corner(boxes: Tensor) -> Tensor:
    """The other way round."""
    shared.check_boxes(arrays, "boxes", boxes)
    return shared.center_to_corner(torch, boxes)


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Of each pair of boxes, (boxes1, 4) and (boxes2, 4), the share of their union that is in both: (boxes1, boxes2).

    Raises TypeError or ValueError for another shape, or another dtype than one of floating point.
    """
    shared.check_box_arrays(arrays, ("boxes1", "boxes2"), boxes1, boxes2)
    return shared.iou(torch, boxes1, boxes2)


def offset_boxes(anchors: Tensor, assigned_bb: Tensor, eps: float = 1e-6) -> Tensor:
    """From each anchor (boxes, 4) to its box: 10 times the way in its width and height, and 5 times the logarithm
    of how much wider and higher the box is, plus ``eps`` within the logarithm.

    Raises TypeError or ValueError for other shapes, or another dtype than one of floating point.
    """
    shared.check_box_pairs(arrays, ("anchors", "assigned_bb"), anchors, assigned_bb)
    return shared.offsets(torch, anchors, assigned_bb, real("eps", eps, "a number"))


def offset_inverse(anchors: Tensor, offset_preds: Tensor) -> Tensor:
    """From anchors and predicted offsets, each (boxes, 4), to boxes: what :func:`offset_boxes` came from."""
    shared.check_box_pairs(arrays, ("anchors", "offset_preds"), anchors, offset_preds)
    return shared.apply_offsets(torch, anchors, offset_preds)


def multibox_prior(data: Tensor, sizes: Any, ratios: Any) -> Tensor:
    """Anchors (1, height * width * (sizes + ratios - 1), 4) around each pixel of ``data`` (..., height, width).

    They are float32, in shares of the picture. Around a pixel there are all ``sizes`` with the first of
    ``ratios``, then the first size with the others: s * sqrt(r) wide in shares of the height, s / sqrt(r) high.
    Raises TypeError or ValueError where there is no pixel, or a size or ratio is not above 0.
    """
    arrays.check_instance("data", data)
    return _tensor(shared.anchor_boxes(data, sizes, ratios), data.device)


def assign_anchor_to_bbox(
    ground_truth: Tensor, anchors: Tensor, device: Any, iou_threshold: float = 0.5
) -> Tensor:
    """For each anchor (anchors, 4) the number of its box among ``ground_truth`` (boxes, 4), or -1: int64, on ``device``.

    That is the box that it overlaps most, if by ``iou_threshold`` at least; and each box gets an anchor in any
    case, the best that is left, boxes with the largest overlap first. Raises TypeError or ValueError for other shapes.
    """
    return _tensor(shared.assign_boxes(ground_truth, anchors, iou_threshold), device)


def multibox_target(anchors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What is to be learned of ``anchors`` (1, anchors, 4) and ``labels`` (batch, boxes, 5), class and box.

    Offsets (batch, anchors * 4), float32; 1 where they count, else 0, of the same shape, float32; and classes
    (batch, anchors), int64, counted from 1: 0 is the background. Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("anchors", anchors)
    offset, mask, classes = shared.anchor_targets(anchors, labels)
    place = anchors.device
    return _tensor(offset, place), _tensor(mask, place), _tensor(classes, place)


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: the numbers of the boxes (boxes, 4) that are kept, int64, from the highest of
    ``scores`` (boxes,) on. A box goes where it overlaps one that is kept by more than ``iou_threshold``.

    Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("boxes", boxes)
    return _tensor(shared.suppress_overlaps(boxes, scores, iou_threshold), boxes.device)


def multibox_detection(
    cls_probs: Tensor,
    offset_preds: Tensor,
    anchors: Tensor,
    nms_threshold: float = 0.5,
    pos_threshold: float = 0.009999999,
) -> Tensor:
    """Of each anchor class, confidence and box, (batch, anchors, 6), float32: first those that :func:`nms` keeps.

    ``cls_probs`` (batch, classes + 1, anchors) has the background first, ``offset_preds`` is (batch, anchors * 4),
    ``anchors`` (1, anchors, 4). The class is -1 for boxes that are not kept, and for those of a confidence below
    ``pos_threshold``: theirs is then that of the background. Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("cls_probs", cls_probs)
    found = shared.detect(cls_probs, offset_preds, anchors, nms_threshold, pos_threshold)
    return _tensor(found, cls_probs.device)


def _tensor(numbers: NDArray[Any], place: Any) -> Tensor:
    return torch.from_numpy(numbers).to(place)
