"""Bounding boxes. D2L has no object detection in TensorFlow."""

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import boxes as shared
from d2l_compat.tensorflow._arrays import arrays

__all__ = ["box_center_to_corner", "box_corner_to_center"]


def box_corner_to_center(boxes: Tensor) -> Tensor:
    """Convert boxes (boxes, 4) from (x1, y1, x2, y2) to (center x, center y, width, height).

    Integers become floating point. Raises TypeError or ValueError for another shape or dtype.
    """
    (boxes,) = shared.check_boxes(arrays, boxes=boxes)
    return shared.corner_to_center(tf, boxes)


def box_center_to_corner(boxes: Tensor) -> Tensor:
    """Convert boxes (boxes, 4) from (center x, center y, width, height) to (x1, y1, x2, y2)."""
    (boxes,) = shared.check_boxes(arrays, boxes=boxes)
    return shared.center_to_corner(tf, boxes)
