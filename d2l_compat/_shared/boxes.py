"""The parts of object detection that are the same in every framework.

A box is (x1, y1, x2, y2): its upper left and lower right corner. ``xp`` is a framework or NumPy, whose functions have
the same names, so gradients flow through. Choices (which box, which class) have no gradients, and are made in NumPy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import Arrays, format_value, message, real

Numbers = NDArray[Any]
COLORS = "b", "g", "r", "m", "c"


# Checks


def check_boxes(arrays: Arrays, **named: Any) -> list[Any]:
    """Check arrays of boxes (boxes, 4), and return them in one floating-point dtype."""
    for what, boxes in named.items():
        arrays.check_rank(what, boxes, ("boxes", "4"))
        arrays.check_last_dimension(what, boxes, 4)
    converted = arrays.cast_integers(*named.values())
    arrays.check_floating(" and ".join(named), *converted)
    return converted


def check_box_pairs(arrays: Arrays, **named: Any) -> list[Any]:
    """Check two arrays of equally many boxes, and return them in one floating-point dtype."""
    one, other = check_boxes(arrays, **named)
    if len(one) != len(other):
        got = f"{len(one)} and {len(other)} boxes"
        raise ValueError(message(" and ".join(named), got, "the same number of each"))
    return [one, other]


def fraction(what: str, value: Any) -> float:
    need = "a number from 0 to 1"
    if not 0 <= real(what, value, need) <= 1:
        raise ValueError(message(what, value, need))
    return float(value)


def _to_floats(what: str, x: Any, shape: tuple[int | None, ...], axes: str) -> Numbers:
    """Convert to NumPy; check the shape, in which None is any size."""
    numbers = to_numpy(what, x)
    has_rank = numbers.ndim == len(shape)
    if not has_rank or any(n not in (None, m) for n, m in zip(shape, numbers.shape, strict=True)):
        raise ValueError(message(what, f"shape {numbers.shape}", f"shape ({axes})"))
    return numbers if numbers.dtype.kind == "f" else numbers.astype("float32")


def _to_anchors(anchors: Any) -> Numbers:
    """Return anchors as (anchors, 4); they may be given as a batch of one, (1, anchors, 4)."""
    if len(getattr(anchors, "shape", ())) == 2:
        return _to_floats("anchors", anchors, (None, 4), "anchors, 4")
    return _to_floats("anchors", anchors, (1, None, 4), "1, anchors, 4")[0]


# Drawing


def bbox_to_rect(bbox: Any, color: Any) -> Any:
    """Return a box (x1, y1, x2, y2) as matplotlib's rectangle, not filled, with an edge in this colour.

    Raises TypeError or ValueError unless these are four numbers.
    """
    corners = to_numpy("bbox", bbox)
    if corners.shape != (4,):
        got = f"shape {corners.shape}"
        raise ValueError(message("bbox", got, "four numbers, (x1, y1, x2, y2)"))
    x1, y1, x2, y2 = corners.tolist()
    return plot.pyplot().Rectangle(
        (x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=color, linewidth=2
    )


def show_bboxes(axes: Any, bboxes: Any, labels: Any = None, colors: Any = None) -> None:
    """Draw boxes (boxes, 4) with their labels on matplotlib's ``axes``, cycling through the colours.

    Raises TypeError or ValueError unless ``axes`` are axes, and each box four numbers.
    """
    if not hasattr(axes, "add_patch"):
        raise TypeError(message("axes", format_value(axes), "matplotlib's axes"))
    bboxes = to_numpy("bboxes", bboxes)
    if bboxes.ndim != 2:
        raise ValueError(message("bboxes", f"shape {bboxes.shape}", "shape (boxes, 4)"))
    labels = _as_list(labels, [])
    colors = _as_list(colors, COLORS) or COLORS
    for number, bbox in enumerate(bboxes):
        color = colors[number % len(colors)]
        rectangle = bbox_to_rect(bbox, color)
        axes.add_patch(rectangle)
        if number < len(labels):
            frame = {"facecolor": color, "lw": 0}
            style = {"va": "center", "ha": "center", "fontsize": 9, "bbox": frame}
            text_color = "k" if color == "w" else "w"
            axes.text(*rectangle.get_xy(), labels[number], color=text_color, **style)


def _as_list(x: Any, default: Any) -> Any:
    if x is None:
        return default
    return x if isinstance(x, (list, tuple)) else [x]


# Computation


def corner_to_center(xp: Any, boxes: Any) -> Any:
    x1, y1, x2, y2 = (boxes[:, i] for i in range(4))
    return xp.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], -1)


def center_to_corner(xp: Any, boxes: Any) -> Any:
    x, y, width, height = (boxes[:, i] for i in range(4))
    sides = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    return xp.stack(sides, -1)


def iou(xp: Any, boxes1: Any, boxes2: Any) -> Any:
    """Return the intersection over union of each pair, shape (boxes1, boxes2)."""
    first, second = boxes1[:, None], boxes2[None]
    starts = xp.maximum(first[..., :2], second[..., :2])
    ends = xp.minimum(first[..., 2:], second[..., 2:])
    sides = (ends - starts).clip(0, None)
    common = sides[..., 0] * sides[..., 1]
    return common / (_area(first) + _area(second) - common)


def _area(boxes: Any) -> Any:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def offsets(xp: Any, anchors: Any, boxes: Any, eps: float = 1e-6) -> Any:
    """Return the offsets from anchors to their boxes, relative to the anchors' sizes, as in Liu et al. (2016)."""
    anchors, boxes = corner_to_center(xp, anchors), corner_to_center(xp, boxes)
    shifts = 10 * (boxes[:, :2] - anchors[:, :2]) / anchors[:, 2:]
    scales = 5 * xp.log(boxes[:, 2:] / anchors[:, 2:] + eps)
    return xp.stack([shifts[:, 0], shifts[:, 1], scales[:, 0], scales[:, 1]], -1)


def apply_offsets(xp: Any, anchors: Any, offset_preds: Any) -> Any:
    """Return the boxes that have these offsets from anchors, as the inverse of :func:`offsets`."""
    anchors = corner_to_center(xp, anchors)
    center = offset_preds[:, :2] * anchors[:, 2:] / 10 + anchors[:, :2]
    size = xp.exp(offset_preds[:, 2:] / 5) * anchors[:, 2:]
    boxes = xp.stack([center[:, 0], center[:, 1], size[:, 0], size[:, 1]], -1)
    return center_to_corner(xp, boxes)


def anchor_boxes(data: Any, sizes: Any, ratios: Any) -> Numbers:
    """Return anchors (1, height * width * (sizes + ratios - 1), 4) around each pixel of images.

    Coordinates are fractions of the image. Each pixel has all sizes with the first ratio, then the first size with
    the other ratios. An anchor's width is s * sqrt(r) * height / width of the image, its height s / sqrt(r).
    """
    shape = tuple(getattr(data, "shape", ()))
    if len(shape) < 2 or 0 in shape[-2:]:
        raise ValueError(message("data", f"shape {shape}", "images (..., height, width)"))
    sizes, ratios = _to_positive("sizes", sizes), _to_positive("ratios", ratios)
    height, width = shape[-2:]
    scale = np.concatenate([sizes, np.full(len(ratios) - 1, sizes[0])])
    root = np.sqrt(np.concatenate([np.full(len(sizes), ratios[0]), ratios[1:]]))
    halves = np.stack([scale * root * height / width, scale / root], -1) / 2
    y, x = ((np.arange(side) + 0.5) / side for side in (height, width))
    centers = np.stack(np.meshgrid(x, y), -1).reshape(-1, 1, 2)
    corners = np.concatenate([centers - halves, centers + halves], -1)
    return corners.reshape(1, -1, 4).astype("float32")


def _to_positive(what: str, values: Any) -> Numbers:
    numbers = to_numpy(what, values).astype("float64")
    if numbers.ndim != 1 or not numbers.size or not (numbers > 0).all():
        raise ValueError(
            message(what, format_value(values), "a list of numbers above 0, at least one")
        )
    return numbers


def assign_boxes(ground_truth: Any, anchors: Any, iou_threshold: Any = 0.5) -> NDArray[np.int64]:
    """Return for each anchor (anchors, 4) the number of its box in ``ground_truth`` (boxes, 4), or -1.

    Each box first gets an anchor: the pair with the largest overlap is assigned, then the pair with the largest overlap
    among the other boxes and anchors, and so on. Any other anchor gets the box that it overlaps most, if the overlap
    is at least ``iou_threshold``.
    """
    iou_threshold = fraction("iou_threshold", iou_threshold)
    truth = _to_floats("ground_truth", ground_truth, (None, 4), "boxes, 4")
    anchors = _to_floats("anchors", anchors, (None, 4), "anchors, 4")
    assignment = np.full(len(anchors), -1)
    if not truth.size or not anchors.size:
        return assignment
    overlaps = _overlaps(anchors, truth)
    is_near = overlaps.max(axis=1) >= iou_threshold
    assignment[is_near] = overlaps.argmax(axis=1)[is_near]
    for _ in range(min(overlaps.shape)):
        anchor, box = np.unravel_index(overlaps.argmax(), overlaps.shape)
        assignment[anchor] = box
        overlaps[:, box] = overlaps[anchor] = -1
    return assignment


def _overlaps(boxes1: Numbers, boxes2: Numbers) -> Numbers:
    """Return the intersection over union; 0 for two boxes without an area."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(iou(np, boxes1, boxes2))


def anchor_targets(anchors: Any, labels: Any) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """Return training targets of ``anchors`` (1, anchors, 4) for ``labels`` (batch, boxes, 5), each a class and box.

    These are offsets (batch, anchors * 4); their mask, 1 for anchors with a box and 0 for others, of the same shape;
    and classes (batch, anchors), counted from 1, where 0 is the background.
    """
    boxes = _to_anchors(anchors)
    labels = _to_floats("labels", labels, (None, None, 5), "batch, boxes, 5")
    if not len(labels):
        raise ValueError(message("labels", f"shape {labels.shape}", "at least one example"))
    batch_size = len(labels)
    offset = np.zeros((batch_size, *boxes.shape), "float32")
    mask = np.zeros((batch_size, *boxes.shape), "float32")
    classes = np.zeros((batch_size, len(boxes)), "int64")
    for example, label in enumerate(labels):
        assignment = assign_boxes(label[:, 1:], boxes)
        has_box = assignment >= 0
        assigned_labels = label[assignment[has_box]]
        offset[example, has_box] = offsets(np, boxes[has_box], assigned_labels[:, 1:])
        mask[example, has_box] = 1
        classes[example, has_box] = assigned_labels[:, 0].astype("int64") + 1
    shape = batch_size, boxes.size
    return offset.reshape(shape), mask.reshape(shape), classes


def suppress_overlaps(boxes: Any, scores: Any, iou_threshold: Any) -> NDArray[np.int64]:
    """Return the numbers of boxes (boxes, 4) after non-maximum suppression, by descending ``scores`` (boxes,).

    A box is dropped if it overlaps a selected box, which has a higher score, by more than ``iou_threshold``.
    """
    iou_threshold = fraction("iou_threshold", iou_threshold)
    boxes = _to_floats("boxes", boxes, (None, 4), "boxes, 4")
    scores = _to_floats("scores", scores, (len(boxes),), f"{len(boxes)},")
    candidates = np.argsort(-scores, kind="stable")
    selected = []
    while candidates.size:
        best, candidates = candidates[0], candidates[1:]
        selected.append(best)
        overlaps = _overlaps(boxes[best][None], boxes[candidates])[0]
        candidates = candidates[overlaps <= iou_threshold]
    return np.array(selected, "int64")


def detect(
    cls_probs: Any,
    offset_preds: Any,
    anchors: Any,
    nms_threshold: Any,
    pos_threshold: Any,
) -> Numbers:
    """Return class, confidence and box of each anchor (batch, anchors, 6), boxes kept by non-maximum suppression first.

    ``cls_probs`` (batch, classes + 1, anchors) has the background first, ``offset_preds`` is (batch, anchors * 4),
    ``anchors`` (1, anchors, 4). The class is -1 for boxes that are not kept, and for those with a confidence below
    ``pos_threshold``, whose confidence becomes that of the background.
    """
    nms_threshold = fraction("nms_threshold", nms_threshold)
    pos_threshold = fraction("pos_threshold", pos_threshold)
    boxes = _to_anchors(anchors)
    axes = "batch, classes + 1, anchors"
    probs = _to_floats("cls_probs", cls_probs, (None, None, len(boxes)), axes)
    if probs.shape[1] < 2:
        raise ValueError(message("cls_probs", f"shape {probs.shape}", f"a class, ({axes})"))
    preds = to_numpy("offset_preds", offset_preds)
    if preds.shape not in ((len(probs), boxes.size), (len(probs), *boxes.shape)):
        need = f"shape (batch, anchors * 4), here {(len(probs), boxes.size)}"
        raise ValueError(message("offset_preds", f"shape {preds.shape}", need))
    detections = []
    for prob, pred in zip(probs[:, 1:], preds, strict=True):
        confidence, classes = prob.max(axis=0), prob.argmax(axis=0).astype(float)
        predicted = apply_offsets(np, boxes, pred.reshape(-1, 4))
        selected = suppress_overlaps(predicted, confidence, nms_threshold)
        others = np.setdiff1d(np.arange(len(boxes)), selected)
        classes[others] = -1
        is_low = confidence < pos_threshold
        classes[is_low] = -1
        confidence[is_low] = 1 - confidence[is_low]
        order = np.concatenate([selected, others])
        detections.append(np.column_stack([classes, confidence, predicted])[order])
    return np.array(detections, "float32").reshape(len(probs), len(boxes), 6)
