"""Bounding boxes (x1, y1, x2, y2), anchors, and object detection with them (Liu et al., 2016)."""

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
    """Convert boxes (boxes, 4) from (x1, y1, x2, y2) to (center x, center y, width, height).

    Raises TypeError or ValueError for another shape or dtype. Integers become float32.
    """
    (boxes,) = shared.check_boxes(arrays, boxes=boxes)
    return shared.corner_to_center(torch, boxes)


def box_center_to_corner(boxes: Tensor) -> Tensor:
    """Convert boxes (boxes, 4) from (center x, center y, width, height) to (x1, y1, x2, y2)."""
    (boxes,) = shared.check_boxes(arrays, boxes=boxes)
    return shared.center_to_corner(torch, boxes)


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Return the intersection over union, (boxes1, boxes2), of each pair of boxes (boxes1, 4) and (boxes2, 4).

    Raises TypeError or ValueError for another shape or dtype. Integers become float32.
    """
    boxes1, boxes2 = shared.check_boxes(arrays, boxes1=boxes1, boxes2=boxes2)
    return shared.iou(torch, boxes1, boxes2)


def offset_boxes(anchors: Tensor, assigned_bb: Tensor, eps: float = 1e-6) -> Tensor:
    """Return the offsets (boxes, 4) from each anchor to its box, both (boxes, 4).

    They are 10 times the distances of the centers in units of the anchor's width and height, and
    5 * log(eps + box / anchor) for the widths and heights. Raises TypeError or ValueError for other shapes or
    dtypes. Integers become floats.
    """
    anchors, assigned_bb = shared.check_box_pairs(arrays, anchors=anchors, assigned_bb=assigned_bb)
    return shared.offsets(torch, anchors, assigned_bb, real("eps", eps, "a number"))


def offset_inverse(anchors: Tensor, offset_preds: Tensor) -> Tensor:
    """Return the boxes for anchors and predicted offsets, each (boxes, 4): the inverse of :func:`offset_boxes`."""
    anchors, offset_preds = shared.check_box_pairs(
        arrays, anchors=anchors, offset_preds=offset_preds
    )
    return shared.apply_offsets(torch, anchors, offset_preds)


def multibox_prior(data: Tensor, sizes: Any, ratios: Any) -> Tensor:
    """Return anchors (1, height * width * (sizes + ratios - 1), 4) around each pixel of ``data`` (..., height, width).

    Coordinates are float32, in fractions of the image's sides. Around a pixel there are all ``sizes`` with the first of
    ``ratios``, then the first size with the other ratios. For size s and ratio r, an anchor is s * sqrt(r) wide and
    s / sqrt(r) high, in units of the image's height. Raises TypeError or ValueError if there is no pixel, or a size or
    ratio is not above 0.
    """
    arrays.check_instance("data", data)
    return _to_tensor(shared.anchor_boxes(data, sizes, ratios), data.device)


def assign_anchor_to_bbox(
    ground_truth: Tensor, anchors: Tensor, device: Any, iou_threshold: float = 0.5
) -> Tensor:
    """Return for each anchor (anchors, 4) the index of its box in ``ground_truth`` (boxes, 4), or -1: int64, on ``device``.

    An anchor gets the box that it overlaps most, if their intersection over union is at least ``iou_threshold``. Each
    box also gets its best remaining anchor, boxes with the largest overlap first. Raises TypeError or ValueError for
    other shapes.
    """
    return _to_tensor(shared.assign_boxes(ground_truth, anchors, iou_threshold), device)


def multibox_target(anchors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return training targets for ``anchors`` (1, anchors, 4) from ``labels`` (batch, boxes, 5), each a class and box.

    These are offsets (batch, anchors * 4), float32; their mask, 1 for anchors with a box and 0 for others, of the same
    shape and dtype; and classes (batch, anchors), int64, counted from 1, where 0 is the background. Raises TypeError or
    ValueError for other shapes.
    """
    arrays.check_instance("anchors", anchors)
    offset, mask, classes = shared.anchor_targets(anchors, labels)
    device = anchors.device
    return _to_tensor(offset, device), _to_tensor(mask, device), _to_tensor(classes, device)


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices, int64, of the boxes (boxes, 4) that non-maximum suppression keeps, best score first.

    ``scores`` has the shape (boxes,). A box is removed if its intersection over union with a kept box exceeds
    ``iou_threshold``. Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("boxes", boxes)
    return _to_tensor(shared.suppress_overlaps(boxes, scores, iou_threshold), boxes.device)


def multibox_detection(
    cls_probs: Tensor,
    offset_preds: Tensor,
    anchors: Tensor,
    nms_threshold: float = 0.5,
    pos_threshold: float = 0.009999999,
) -> Tensor:
    """Return class, confidence and box of each anchor, (batch, anchors, 6), float32; boxes kept by :func:`nms` first.

    ``cls_probs`` (batch, classes + 1, anchors) has the background first, ``offset_preds`` is (batch, anchors * 4),
    ``anchors`` (1, anchors, 4). The class is -1 for boxes that are not kept, and for those with a confidence below
    ``pos_threshold``, whose confidence becomes that of the background. Raises TypeError or ValueError for other shapes.
    """
    arrays.check_instance("cls_probs", cls_probs)
    detections = shared.detect(cls_probs, offset_preds, anchors, nms_threshold, pos_threshold)
    return _to_tensor(detections, cls_probs.device)


def _to_tensor(numbers: NDArray[Any], device: Any) -> Tensor:
    return torch.from_numpy(numbers).to(device)
