"""Bounding boxes, as far as they are the same in every framework.

A box is (x1, y1, x2, y2): its upper left and lower right corner. ``xp`` is the framework, or NumPy: its functions of
whole arrays are named alike, and gradients go through them. What chooses (which box, which class) has none, and
is done in NumPy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import Arrays, fault, format_value, real

Numbers = NDArray[Any]
COLORS = "b", "g", "r", "m", "c"


# Checked


def check_boxes(arrays: Arrays, what: str, boxes: Any) -> None:
    """Floating point, and four numbers each."""
    arrays.check_rank(what, boxes, ("boxes", "4"))
    arrays.check_last_dimension(what, boxes, 4)
    arrays.check_floating(what, boxes)


def check_box_arrays(arrays: Arrays, names: tuple[str, str], one: Any, other: Any) -> None:
    """Of one dtype."""
    for what, boxes in zip(names, (one, other), strict=True):
        check_boxes(arrays, what, boxes)
    arrays.check_floating(" and ".join(names), one, other)


def check_box_pairs(arrays: Arrays, names: tuple[str, str], one: Any, other: Any) -> None:
    """One each."""
    check_box_arrays(arrays, names, one, other)
    if len(one) != len(other):
        got = f"{len(one)} and {len(other)} boxes"
        raise ValueError(fault(" and ".join(names), got, "as many of one as of the other"))


def fraction(what: str, value: Any) -> float:
    need = "a number from 0 to 1"
    if not 0 <= real(what, value, need) <= 1:
        raise ValueError(fault(what, value, need))
    return float(value)


def _to_floats(what: str, x: Any, shape: tuple[int | None, ...], axes: str) -> Numbers:
    """In NumPy, of this shape; None is any size."""
    numbers = to_numpy(what, x)
    fits = numbers.ndim == len(shape) and all(
        size in (None, got) for size, got in zip(shape, numbers.shape, strict=True)
    )
    if not fits:
        raise ValueError(fault(what, f"shape {numbers.shape}", f"shape ({axes})"))
    return numbers if numbers.dtype.kind == "f" else numbers.astype("float32")


def _anchors(anchors: Any) -> Numbers:
    """(anchors, 4), which may be a batch of one."""
    if len(getattr(anchors, "shape", ())) == 2:
        return _to_floats("anchors", anchors, (None, 4), "anchors, 4")
    return _to_floats("anchors", anchors, (1, None, 4), "1, anchors, 4")[0]


# Drawn


def bbox_to_rect(bbox: Any, color: Any) -> Any:
    """A box (x1, y1, x2, y2) as matplotlib's rectangle: its edge alone, in this colour.

    Raises TypeError or ValueError where these are not four numbers.
    """
    corners = to_numpy("bbox", bbox)
    if corners.shape != (4,):
        got = f"shape {corners.shape}"
        raise ValueError(fault("bbox", got, "four numbers, (x1, y1, x2, y2)"))
    x1, y1, x2, y2 = corners.tolist()
    return plot.pyplot().Rectangle(
        (x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=color, linewidth=2
    )


def show_bboxes(axes: Any, bboxes: Any, labels: Any = None, colors: Any = None) -> None:
    """Draw boxes (boxes, 4) on matplotlib's ``axes``, each with its label, if it has one, in the colours by turns.

    Raises TypeError or ValueError where ``axes`` are no axes, or a box is not four numbers.
    """
    if not hasattr(axes, "add_patch"):
        raise TypeError(fault("axes", format_value(axes), "matplotlib's axes"))
    bboxes = to_numpy("bboxes", bboxes)
    if bboxes.ndim != 2:
        raise ValueError(fault("bboxes", f"shape {bboxes.shape}", "shape (boxes, 4)"))
    labels, colors = _as_list(labels, []), _as_list(colors, COLORS) or COLORS
    for number, bbox in enumerate(bboxes):
        color = colors[number % len(colors)]
        rectangle = bbox_to_rect(bbox, color)
        axes.add_patch(rectangle)
        if number < len(labels):
            frame = {"facecolor": color, "lw": 0}
            style = {"va": "center", "ha": "center", "fontsize": 9, "bbox": frame}
            on_it = "k" if color == "w" else "w"
            axes.text(*rectangle.get_xy(), labels[number], color=on_it, **style)


def _as_list(x: Any, default: Any) -> Any:
    if x is None:
        return default
    return x if isinstance(x, (list, tuple)) else [x]


# Computed


def corner_to_center(xp: Any, boxes: Any) -> Any:
    x1, y1, x2, y2 = (boxes[:, i] for i in range(4))
    return xp.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], -1)


def center_to_corner(xp: Any, boxes: Any) -> Any:
    x, y, width, height = (boxes[:, i] for i in range(4))
    sides = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    return xp.stack(sides, -1)


def iou(xp: Any, boxes1: Any, boxes2: Any) -> Any:
    """The share of two boxes' union that is in both, for each pair: (boxes1, boxes2)."""
    each, other = boxes1[:, None], boxes2[None]
    starts = xp.maximum(each[..., :2], other[..., :2])
    ends = xp.minimum(each[..., 2:], other[..., 2:])
    sides = (ends - starts).clip(0, None)
    common = sides[..., 0] * sides[..., 1]
    return common / (_area(each) + _area(other) - common)


def _area(boxes: Any) -> Any:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def offsets(xp: Any, anchors: Any, assigned: Any, eps: float = 1e-6) -> Any:
    """From an anchor to its box, in the anchor's width and height, on the scale of Liu et al. (2016)."""
    anchors, assigned = corner_to_center(xp, anchors), corner_to_center(xp, assigned)
    moved = 10 * (assigned[:, :2] - anchors[:, :2]) / anchors[:, 2:]
    grown = 5 * xp.log(assigned[:, 2:] / anchors[:, 2:] + eps)
    columns = [each[:, i] for each in (moved, grown) for i in range(2)]
    return xp.stack(columns, -1)


def apply_offsets(xp: Any, anchors: Any, offset_preds: Any) -> Any:
    """The other way round."""
    anchors = corner_to_center(xp, anchors)
    center = offset_preds[:, :2] * anchors[:, 2:] / 10 + anchors[:, :2]
    size = xp.exp(offset_preds[:, 2:] / 5) * anchors[:, 2:]
    columns = [each[:, i] for each in (center, size) for i in range(2)]
    return center_to_corner(xp, xp.stack(columns, -1))


def anchor_boxes(data: Any, sizes: Any, ratios: Any) -> Numbers:
    """Anchors (1, height * width * (sizes + ratios - 1), 4) around each pixel, in shares of the picture.

    Of each pixel: all sizes with the first ratio, then the first size with the other ratios. The width is
    s * sqrt(r) * height / width of the picture, the height s / sqrt(r).
    """
    shape = tuple(getattr(data, "shape", ()))
    if len(shape) < 2 or 0 in shape[-2:]:
        raise ValueError(fault("data", f"shape {shape}", "pictures (..., height, width)"))
    sizes, ratios = (_positive(what, each) for what, each in (("sizes", sizes), ("ratios", ratios)))
    height, width = shape[-2:]
    scale = np.concatenate([sizes, np.full(len(ratios) - 1, sizes[0])])
    root = np.sqrt(np.concatenate([np.full(len(sizes), ratios[0]), ratios[1:]]))
    halves = np.stack([scale * root * height / width, scale / root], -1) / 2
    y, x = ((np.arange(side) + 0.5) / side for side in (height, width))
    centers = np.stack(np.meshgrid(x, y), -1).reshape(-1, 1, 2)
    corners = np.concatenate([centers - halves, centers + halves], -1)
    return corners.reshape(1, -1, 4).astype("float32")


def _positive(what: str, values: Any) -> Numbers:
    numbers = to_numpy(what, values).astype("float64")
    if numbers.ndim != 1 or not numbers.size or not (numbers > 0).all():
        raise ValueError(
            fault(what, format_value(values), "a list of numbers above 0, at least one")
        )
    return numbers


def assign_boxes(ground_truth: Any, anchors: Any, iou_threshold: Any = 0.5) -> NDArray[np.int64]:
    """For each anchor (anchors, 4) the number of its box among ``ground_truth`` (boxes, 4), or -1.

    That is the box that it overlaps most, if by ``iou_threshold`` at least. Before that, each box gets the anchor
    that overlaps it most of those that are left, boxes with the largest overlap first.
    """
    iou_threshold = fraction("iou_threshold", iou_threshold)
    truth = _to_floats("ground_truth", ground_truth, (None, 4), "boxes, 4")
    anchors = _to_floats("anchors", anchors, (None, 4), "anchors, 4")
    found = np.full(len(anchors), -1)
    if not truth.size or not anchors.size:
        return found
    overlaps = _overlaps(anchors, truth)
    is_near = overlaps.max(axis=1) >= iou_threshold
    found[is_near] = overlaps.argmax(axis=1)[is_near]
    for _ in range(min(overlaps.shape)):
        anchor, box = np.unravel_index(overlaps.argmax(), overlaps.shape)
        found[anchor] = box
        overlaps[:, box] = overlaps[anchor] = -1
    return found


def _overlaps(boxes1: Numbers, boxes2: Numbers) -> Numbers:
    """Two boxes without an area have none in common."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(iou(np, boxes1, boxes2))


def anchor_targets(anchors: Any, labels: Any) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """What is to be learned of ``anchors`` (1, anchors, 4) and ``labels`` (batch, boxes, 5), class and box.

    Offsets (batch, anchors * 4); 1 where they count, else 0, of the same shape; and classes (batch, anchors), counted
    from 1: 0 is the background.
    """
    boxes = _anchors(anchors)
    labels = _to_floats("labels", labels, (None, None, 5), "batch, boxes, 5")
    found = []
    for label in labels:
        of_anchor = assign_boxes(label[:, 1:], boxes)
        has_box = of_anchor >= 0
        mask = np.repeat(has_box[:, None], 4, axis=1).astype("float32")
        offset, classes = np.zeros_like(boxes), np.zeros(len(boxes), "int64")
        its = label[of_anchor[has_box]]
        offset[has_box] = offsets(np, boxes[has_box], its[:, 1:])
        classes[has_box] = its[:, 0].astype("int64") + 1
        found.append((offset.ravel(), mask.ravel(), classes))
    if not found:
        raise ValueError(fault("labels", f"shape {labels.shape}", "at least one example"))
    offset, mask, classes = (np.array(column) for column in zip(*found, strict=True))
    return offset.astype("float32"), mask, classes


def suppress_overlaps(boxes: Any, scores: Any, iou_threshold: Any) -> NDArray[np.int64]:
    """The numbers of the boxes (boxes, 4) that are kept, by their ``scores`` (boxes,) from the highest on: a box goes
    where it overlaps one that is kept by more than ``iou_threshold``."""
    iou_threshold = fraction("iou_threshold", iou_threshold)
    boxes = _to_floats("boxes", boxes, (None, 4), "boxes, 4")
    scores = _to_floats("scores", scores, (len(boxes),), f"{len(boxes)},")
    left, kept = np.argsort(-scores, kind="stable"), []
    while left.size:
        first, left = left[0], left[1:]
        kept.append(first)
        left = left[_overlaps(boxes[first][None], boxes[left])[0] <= iou_threshold]
    return np.array(kept, "int64")


def detect(
    cls_probs: Any,
    offset_preds: Any,
    anchors: Any,
    nms_threshold: Any,
    pos_threshold: Any,
) -> Numbers:
    """Of each anchor class, confidence and box, (batch, anchors, 6): first those that are kept, by confidence.

    ``cls_probs`` (batch, classes + 1, anchors) has the background first, ``offset_preds`` is (batch, anchors * 4),
    ``anchors`` (1, anchors, 4). The class is -1 for boxes that overlap a better one, and for those of a
    confidence below ``pos_threshold``, which is then that of the background.
    """
    nms_threshold = fraction("nms_threshold", nms_threshold)
    pos_threshold = fraction("pos_threshold", pos_threshold)
    boxes = _anchors(anchors)
    axes = "batch, classes + 1, anchors"
    probs = _to_floats("cls_probs", cls_probs, (None, None, len(boxes)), axes)
    if probs.shape[1] < 2:
        raise ValueError(fault("cls_probs", f"shape {probs.shape}", f"a class, ({axes})"))
    preds = to_numpy("offset_preds", offset_preds)
    if preds.shape not in ((len(probs), boxes.size), (len(probs), *boxes.shape)):
        need = f"shape (batch, anchors * 4), here {(len(probs), boxes.size)}"
        raise ValueError(fault("offset_preds", f"shape {preds.shape}", need))
    found = []
    for prob, pred in zip(probs[:, 1:], preds, strict=True):
        confidence, classes = prob.max(axis=0), prob.argmax(axis=0).astype(float)
        moved = apply_offsets(np, boxes, pred.reshape(-1, 4))
        kept = suppress_overlaps(moved, confidence, nms_threshold)
        others = np.setdiff1d(np.arange(len(boxes)), kept)
        classes[others] = -1
        is_low = confidence < pos_threshold
        classes[is_low] = -1
        confidence[is_low] = 1 - confidence[is_low]
        order = np.concatenate([kept, others])
        found.append(np.column_stack([classes, confidence, moved])[order])
    return np.array(found, "float32").reshape(len(probs), len(boxes), 6)
