"""Tests of D2L's chapter on computer vision, against NumPy in float64 and results computed by hand."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.shim.each import fake_data
from tests.shim.each.adapter import Adapter
from tests.shim.each.boards import watch_boards
from tests.shim.each.calls import get_device
from tests.shim.each.cases import assert_close
from tests.shim.each.test_classification import (
    START,
    X,
    Y,
    compute_weights,
    descend,
    loss_and_slope,
    make_batches,
)

pytestmark = pytest.mark.usefixtures("close_figures")

RNG = np.random.default_rng(5)
CORNERS = RNG.random((7, 2))
BOXES = np.concatenate([CORNERS, CORNERS + 0.1 + 0.5 * RNG.random((7, 2))], axis=1)
# A quarter of the image, its right half, the whole image, and a strip with 0.36 of the first one's area.
ANCHORS = np.array([[0, 0, 0.5, 0.5], [0.5, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0.18, 0.5]])


@pytest.fixture(autouse=True)
def _skip_missing_chapters(adapter: Adapter) -> None:
    if "box_iou" not in adapter.exports:
        adapter.assert_missing("box_iou", "resnet18", "train_ch13", "VOCSegDataset")
        pytest.skip("D2L has no such chapters in this framework")


def float_tensor(adapter: Adapter, x: Any) -> Any:
    return adapter.tensor(np.asarray(x, "float32"))


def overlap(one: Any, other: Any) -> float:
    """Return the intersection over union of two boxes, by its definition."""
    sides = [max(0.0, min(one[i + 2], other[i + 2]) - max(one[i], other[i])) for i in range(2)]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    common = sides[0] * sides[1]
    return common / (sum(areas) - common)


# Boxes


def test_boxes_convert_between_corners_and_center(adapter: Adapter) -> None:
    corners = float_tensor(adapter, [[10, 20, 50, 100], *BOXES])
    centers = adapter.to_numpy(adapter.d2l.box_corner_to_center(corners))
    assert centers[0].tolist() == [30, 60, 40, 80]
    assert_close(centers[1:, 2:], BOXES[:, 2:] - BOXES[:, :2])
    assert_close(
        adapter.to_numpy(adapter.d2l.box_center_to_corner(float_tensor(adapter, centers))),
        adapter.to_numpy(corners),
    )


def test_overlap_is_intersection_over_union(adapter: Adapter) -> None:
    got = adapter.to_numpy(
        adapter.d2l.box_iou(float_tensor(adapter, BOXES), float_tensor(adapter, BOXES[::-2]))
    )
    assert_close(got, [[overlap(one, other) for other in BOXES[::-2]] for one in BOXES])
    assert 0 < (got == 0).sum() < got.size
    # Integers become floats, alone and beside floats.
    pixels = np.array([[10, 20, 50, 100], [0, 30, 40, 90]])
    integers, floats = adapter.tensor(pixels.astype("int32")), float_tensor(adapter, pixels)
    for name in "box_iou", "offset_boxes", "offset_inverse":
        want = adapter.to_numpy(getattr(adapter.d2l, name)(floats, floats / 9))
        got = getattr(adapter.d2l, name)(integers, floats / 9)
        assert_close(adapter.to_numpy(got), want)


def test_anchors_are_centered_on_each_pixel(adapter: Adapter) -> None:
    sizes, ratios = [0.75, 0.5], [1, 4, 0.25]
    height, width = 2, 3
    want = []
    for row in range(height):
        for column in range(width):
            x, y = (column + 0.5) / width, (row + 0.5) / height
            for s, r in [(0.75, 1), (0.5, 1), (0.75, 4), (0.75, 0.25)]:
                w, h = s * np.sqrt(r) * height / width, s / np.sqrt(r)
                want.append([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
    got = adapter.to_numpy(
        adapter.d2l.multibox_prior(
            float_tensor(adapter, np.zeros((1, 3, height, width))), sizes, ratios
        )
    )
    assert got.dtype == np.float32
    assert_close(got, [want])


def test_offsets_are_inverted(adapter: Adapter) -> None:
    anchors = float_tensor(adapter, [[0, 0, 2, 4], *BOXES])
    assigned = float_tensor(adapter, [[1, 1, 5, 3], *BOXES[::-1]])
    offsets = adapter.d2l.offset_boxes(anchors, assigned)
    # The center moves by 2, a whole width, and by 0. The box becomes twice as wide and half as high.
    assert_close(adapter.to_numpy(offsets)[0], [10, 0, 5 * np.log(2), -5 * np.log(2)])
    assert_close(
        adapter.to_numpy(adapter.d2l.offset_inverse(anchors, offsets)),
        adapter.to_numpy(assigned),
        1e-4,
    )


def assign(adapter: Adapter, truth: Any, anchors: Any, *args: Any) -> list[int]:
    device = get_device(adapter)
    inputs = float_tensor(adapter, truth), float_tensor(adapter, anchors)
    return adapter.to_numpy(adapter.d2l.assign_anchor_to_bbox(*inputs, device, *args)).tolist()


def test_anchors_are_assigned_to_boxes(adapter: Adapter) -> None:
    near = [0, 0, 0.5, 0.45]  # its overlap with the first anchor is 0.9, with the last 0.35
    assert assign(adapter, [near], ANCHORS) == [0, -1, -1, -1]
    assert assign(adapter, [near], ANCHORS, 0.3) == [0, -1, -1, 0]
    # The first box gets the anchor that both boxes overlap most, and the second gets the best of the others.
    assert assign(adapter, [near, [0, 0, 0.5, 0.4]], ANCHORS) == [0, -1, -1, 1]
    far = [0.9, 0.9, 1, 1]
    assert assign(adapter, [near, far], ANCHORS[:2]) == [0, 1]
    assert assign(adapter, [near, near, near], ANCHORS[:1]) == [0]  # more boxes than anchors
    whole, half = [0, 0, 1, 1], [0, 0, 1, 0.5]  # they overlap by the threshold, 0.5
    assert assign(adapter, [whole], [whole, half]) == [0, 0]
    assert assign(adapter, np.zeros((0, 4)), ANCHORS) == [-1] * 4


def test_anchors_are_labelled(adapter: Adapter) -> None:
    near, right = [0, 0, 0.5, 0.45], [0.5, 0, 1, 0.8]
    labels = float_tensor(adapter, [[[1, *near], [0, *right]], [[0, *right], [2, *near]]])
    offsets, mask, classes = map(
        adapter.to_numpy, adapter.d2l.multibox_target(float_tensor(adapter, ANCHORS[None]), labels)
    )
    assert classes.tolist() == [[2, 1, 0, 0], [3, 1, 0, 0]]
    assert mask.tolist() == [[1] * 8 + [0] * 8] * 2
    first = [0, 10 * (0.225 - 0.25) / 0.5, 5 * np.log(1 + 1e-6), 5 * np.log(0.9 + 1e-6)]
    second = [0, 10 * (0.4 - 0.5), 5 * np.log(1 + 1e-6), 5 * np.log(0.8 + 1e-6)]
    assert_close(offsets, [[*first, *second, *[0] * 8]] * 2)


def keep_best(boxes: Any, scores: Any, threshold: float) -> list[int]:
    chosen: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(overlap(boxes[i], boxes[j]) <= threshold for j in chosen):
            chosen.append(i)
    return chosen


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.6, 1.0])
def test_nms_keeps_best_of_overlapping_boxes(adapter: Adapter, threshold: float) -> None:
    scores = RNG.permutation(7) / 7
    boxes = BOXES - 0.7 * np.tile(CORNERS, 2)  # closer together, so that some are removed
    got = adapter.to_numpy(
        adapter.d2l.nms(float_tensor(adapter, boxes), float_tensor(adapter, scores), threshold)
    )
    assert got.tolist() == keep_best(boxes.astype("float32"), scores, threshold)
    if threshold == 0.2:
        assert 1 < len(got) < 7


def test_multibox_detection_matches_d2ls_example(adapter: Adapter) -> None:
    anchors = np.array([[0.1, 0.08, 0.52, 0.92], [0.08, 0.2, 0.56, 0.95], [0.15, 0.3, 0.62, 0.91]])
    anchors = np.array([*anchors, [0.55, 0.2, 0.9, 0.88]])
    probs = np.array([[0.1, 0.2, 0.3, 0.1], [0.9, 0.8, 0.7, 0.005], [0, 0, 0, 0.895]])
    offsets = np.zeros((1, 16))
    offsets[0, 13] = 1  # the last box moves down by a tenth of its height
    inputs = [float_tensor(adapter, x) for x in (probs[None], offsets, anchors[None])]
    (got,) = adapter.to_numpy(adapter.d2l.multibox_detection(*inputs, 0.5))
    cat = anchors[3] + [0, 0.068, 0, 0.068]
    want = [[0, 0.9, *anchors[0]], [1, 0.895, *cat], [-1, 0.8, *anchors[1]], [-1, 0.7, *anchors[2]]]
    assert_close(got, want)
    # Boxes with a lower probability than the threshold are background.
    (got,) = adapter.to_numpy(adapter.d2l.multibox_detection(*inputs, 0.5, 0.85))
    want[2][1], want[3][1] = 0.2, 0.3
    assert_close(got, want)


def test_multibox_detection_keeps_confidence_at_threshold(adapter: Adapter) -> None:
    inputs = [
        float_tensor(adapter, x) for x in ([[[0.5], [0.5]]], np.zeros((1, 4)), ANCHORS[None, :1])
    ]
    (got,) = adapter.to_numpy(adapter.d2l.multibox_detection(*inputs, 0.5, pos_threshold=0.5))
    assert_close(got, [[0, 0.5, *ANCHORS[0]]])


# Networks


def convolve(x: Any, layer: Any, strides: int, to_numpy: Any) -> Any:
    """Convolve x (channels, height, width) with zero padding that keeps the size."""
    weight, bias = (
        to_numpy(w.data() if callable(w.data) else w) for w in (layer.weight, layer.bias)
    )
    side = weight.shape[-1] // 2
    padded = np.pad(x, ((0, 0), (side, side), (side, side)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (1, 2))
    output = np.einsum("crshw,ochw->ors", windows, weight.astype("float64"))
    return output[:, ::strides, ::strides] + bias[:, None, None]


@pytest.mark.parametrize(("channels", "strides"), [(3, 1), (5, 2)])
def test_residual_block_matches_reference(adapter: Adapter, channels: int, strides: int) -> None:
    is_mxnet = adapter.d2l.__name__.endswith("mxnet")
    others = () if strides == 1 else (True, strides)
    block = adapter.d2l.Residual(*(() if is_mxnet else (3,)), channels, *others)
    if is_mxnet:
        block.initialize()
    else:
        block.eval()
    x = RNG.normal(size=(2, 3, 6, 5)).astype("float32")
    got = adapter.to_numpy(block(adapter.tensor(x)))
    for one, y in zip(x, got, strict=True):
        hidden = convolve(one, block.conv1, strides, adapter.to_numpy) / np.sqrt(1 + 1e-5)
        inner = convolve(np.maximum(hidden, 0), block.conv2, 1, adapter.to_numpy) / np.sqrt(
            1 + 1e-5
        )
        shortcut = one if strides == 1 else convolve(one, block.conv3, strides, adapter.to_numpy)
        assert_close(y, np.maximum(inner + shortcut, 0), 1e-4)


def test_resnet18_has_d2ls_shapes_and_sizes(adapter: Adapter) -> None:
    is_mxnet = adapter.d2l.__name__.endswith("mxnet")
    net = adapter.d2l.resnet18(10) if is_mxnet else adapter.d2l.resnet18(10, 3)
    if is_mxnet:
        net.initialize()
    else:
        net.eval()
    Z = float_tensor(adapter, np.ones((2, 3, 9, 8)))
    shapes = []
    for layer in net if is_mxnet else net.children():
        Z = layer(Z)
        shapes.append(tuple(Z.shape))
    stages = [(64, 9, 8), (128, 5, 4), (256, 3, 2), (512, 2, 1)]
    assert shapes[2:] == [(2, *stage) for stage in [(64, 9, 8), *stages, (512, 1, 1)]] + [(2, 10)]
    params = net.collect_params().values() if is_mxnet else net.parameters()
    count = 9 * 3 * 64 + 3 * 64 + 10 * 513
    for before, after in [(64, 64), (64, 128), (128, 256), (256, 512)]:
        count += 9 * after * (before + 3 * after) + 4 * 3 * after
        count += 0 if before == after else (before + 1) * after
    assert sum(np.prod(p.shape) for p in params if not _is_running_statistic(p)) == count


def _is_running_statistic(parameter: Any) -> bool:
    """Return whether a parameter is a running statistic, not a weight."""
    return getattr(parameter, "grad_req", "write") == "null" or bool(
        getattr(parameter, "stop_gradient", False)
    )


# Training


def rate_for_summed_loss(adapter: Adapter, lr: float, batch_size: int) -> float:
    """Return the learning rate for a summed loss; Gluon's trainer divides by the batch size itself."""
    return lr if adapter.d2l.__name__.endswith("mxnet") else lr / batch_size


def test_train_batch_ch13_returns_loss_and_hits(adapter: Adapter, descent: Any) -> None:
    net = adapter.build_linear(4, START)
    losses, hits, _ = loss_and_slope(START["weight"], START["bias"], X, Y)
    trainer = descent.optimizer(net, rate_for_summed_loss(adapter, 0.5, 60))
    batch = adapter.tensor(X), adapter.label_tensor(Y)
    loss, share = adapter.d2l.train_batch_ch13(
        net, *batch, descent.losses, trainer, [adapter.d2l.cpu()]
    )
    assert float(loss) == pytest.approx(losses.sum(), rel=1e-5)
    assert share == hits.sum()
    for got, want in zip(
        compute_weights(adapter, net),
        descend(START["weight"], START["bias"], 0.5, 60),
        strict=False,
    ):
        assert_close(got, want, 1e-4)


# If there are fewer than 5 batches, each is plotted.
@pytest.mark.parametrize("batch_size", [5, 20])
def test_train_ch13_trains_and_plots(
    adapter: Adapter,
    descent: Any,
    batch_size: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    boards = watch_boards(monkeypatch)
    net = adapter.build_linear(4, START)
    train = make_batches(adapter, batch_size)
    trainer = descent.optimizer(net, rate_for_summed_loss(adapter, 0.3, batch_size))
    devices = [[adapter.d2l.cpu()]] if adapter.d2l.num_gpus() else []
    data = train, make_batches(adapter)
    assert adapter.d2l.train_ch13(net, *data, descent.losses, trainer, 2, *devices) is None
    *after, history = descend(START["weight"], START["bias"], 0.3, batch_size, 2)
    for got, want in zip(compute_weights(adapter, net), after, strict=True):
        assert_close(got, want, 1e-4)
    _, hits, _ = loss_and_slope(*after, X, Y)
    (board,) = boards
    want = *history[-1], hits.mean()
    assert [curve[-1] for curve in board.Y] == [pytest.approx(x, rel=1e-4) for x in want]
    assert len(board.X[0]) == (12 if batch_size == 5 else 6)
    assert board.axes[0].get_ylim() == (0, 1)
    output = capsys.readouterr().out
    assert "loss {:.3f}, train acc {:.3f}, test acc {:.3f}\n".format(*want) in output
    assert re.search(r"^\d+\.\d examples/sec on \[.*cpu", output, re.MULTILINE)


def test_split_batch_keeps_order(adapter: Adapter) -> None:
    rows = float_tensor(adapter, np.arange(14).reshape(7, 2))
    labels = adapter.label_tensor(np.arange(7, dtype="int32"))
    parts = adapter.d2l.split_batch(rows, labels, [adapter.d2l.cpu()] * 2)
    for got, whole in zip(parts, (rows, labels), strict=True):
        assert len(got) == 2
        np.testing.assert_array_equal(
            np.concatenate([*map(adapter.to_numpy, got)]), adapter.to_numpy(whole)
        )
    assert sorted(len(part) for part in parts[0]) == [3, 4]


# Images

IMAGES = RNG.integers(0, 256, (3, 256, 256, 3), "uint8")


def move_channels_last(x: Any) -> Any:
    return x.transpose(1, 2, 0) if x.shape[0] == 3 else x


def test_banana_batches_have_boxes(
    adapter: Adapter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    fake_data.replace_bananas(monkeypatch, adapter.d2l, tmp_path, IMAGES)
    targets = np.array([[[0, 16 * i, 32, 64, 128]] for i in range(3)]) / 256
    images, boxes = adapter.d2l.read_data_bananas()
    assert_close(adapter.to_numpy(boxes), targets)
    for got, want in zip(images, IMAGES, strict=True):
        np.testing.assert_array_equal(move_channels_last(adapter.to_numpy(got)), want)
    train, test = adapter.d2l.load_data_bananas(2)
    output = capsys.readouterr().out
    assert "read 3 training examples\nread 3 validation examples\n" in output
    images, got = map(adapter.to_numpy, next(iter(test)))
    assert images.dtype == got.dtype == np.float32
    np.testing.assert_array_equal(images, IMAGES[:2].transpose(0, 3, 1, 2))
    assert_close(got, targets[:2])
    assert adapter.is_shuffled(train)


def test_voc_batches_have_pixel_labels(
    adapter: Adapter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    colormap = np.array(adapter.d2l.VOC_COLORMAP, "uint8")
    assert len(colormap) == len(adapter.d2l.VOC_CLASSES) == 21
    assert colormap[adapter.d2l.VOC_CLASSES.index("aeroplane")].tolist() == [128, 0, 0]
    assert colormap[adapter.d2l.VOC_CLASSES.index("tv/monitor")].tolist() == [0, 64, 128]
    classes = [
        np.arange(48).reshape(6, 8) % 21,
        np.zeros((3, 9), int),
        np.arange(56).reshape(8, 7) % 21,
    ]
    # A pixel's red and green are its row and column.
    grids = [np.indices(x.shape) for x in classes]
    images = [np.stack([*grid, grid[0] * 0 + 9], axis=-1).astype("uint8") for grid in grids]
    fake_data.replace_voc(
        monkeypatch, adapter.d2l, tmp_path, images, [colormap[x] for x in classes]
    )
    train, test = adapter.d2l.load_data_voc(2, (5, 6))
    assert "read 2 examples\nread 2 examples\n" in capsys.readouterr().out  # one is too small
    corners = set()
    for loader in [train, test] * 4:
        for batch in loader:
            parts, classified = map(adapter.to_numpy, batch)
            assert (parts.shape, classified.shape) == ((2, 3, 5, 6), (2, 5, 6))
            mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
            pixels = parts.transpose(0, 2, 3, 1).astype("float64") * deviation + mean
            pixels = np.rint(pixels * 255).astype(int)
            for image, labels in zip(pixels, classified, strict=True):
                rows, columns, _ = np.moveaxis(image, -1, 0)
                corners.add((rows[0, 0], columns[0, 0]))
                matches = [
                    (whole[rows, columns] == labels).all()
                    for whole in (classes[0], classes[2])
                    if rows.max() < len(whole) and columns.max() < whole.shape[1]
                ]
                assert any(matches)
    assert len(corners) > 2  # parts are drawn again in each iteration
    features, labels = adapter.d2l.read_voc_images("../data/VOCdevkit/VOC2012", False)
    corners = set()
    for _ in range(100):
        part, _ = adapter.d2l.voc_rand_crop(features[0], labels[0], 5, 6)
        corners.add(tuple(move_channels_last(adapter.to_numpy(part))[0, 0, :2].tolist()))
    assert corners == {(row, column) for row in (0, 1) for column in (0, 1, 2)}
    np.testing.assert_array_equal(move_channels_last(adapter.to_numpy(features[0])), images[0])
    table = adapter.d2l.voc_colormap2label()
    np.testing.assert_array_equal(
        adapter.to_numpy(adapter.d2l.voc_label_indices(labels[2], table)), classes[2]
    )
    with pytest.raises(
        ValueError, match=r"height and width: got \(7, 8\); need at most the image's"
    ):
        adapter.d2l.voc_rand_crop(features[0], labels[0], 7, 8)
