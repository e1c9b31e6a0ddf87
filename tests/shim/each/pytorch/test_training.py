"""Tests of training features that only PyTorch has: an ignored label, labels for its losses, lazy layers."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from d2l_compat import torch as d2l
from tests.shim.each.test_training import write_fashion_mnist


def test_label_minus_100_is_ignored() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    loss = d2l.Classifier().loss(logits, torch.tensor([0, -100]))
    assert loss.item() == pytest.approx(torch.log1p(torch.exp(torch.tensor(-2.0))).item())
    with pytest.raises(ValueError, match="Y: got a label of -99; need labels from 0 to 1"):
        d2l.Classifier().loss(logits, torch.tensor([0, -99]))


def test_pytorchs_loss_takes_image_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fashion_mnist(d2l, tmp_path, monkeypatch)
    X, y = next(iter(d2l.FashionMNIST(batch_size=8).train_dataloader()))
    loss = torch.nn.functional.cross_entropy(X.flatten(1)[:, :10], y)
    assert torch.isfinite(loss)


def test_fashion_mnist_is_as_torchvision_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torchvision = pytest.importorskip("torchvision")
    write_fashion_mnist(d2l, tmp_path, monkeypatch)
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for file in tmp_path.glob("*.gz"):
        (raw / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    resize, to_tensor = torchvision.transforms.Resize((14, 21)), torchvision.transforms.ToTensor()
    steps = torchvision.transforms.Compose([resize, to_tensor])
    theirs = torchvision.datasets.FashionMNIST(str(tmp_path), transform=steps)
    ours = d2l.FashionMNIST(4, (14, 21)).train
    for step in None, torchvision.transforms.Compose([to_tensor, torch.neg]):
        if step:
            ours.transform = theirs.transform = step
        torch.testing.assert_close([X for X, _ in ours], [theirs[i][0] for i in range(10)])
    assert [(type(y), y) for _, y in ours] == [(int, y) for y in theirs.targets.tolist()]
    assert (ours.classes, ours.class_to_idx) == (theirs.classes, theirs.class_to_idx)
    for name in "data", "targets":
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))
    few, rest = torch.utils.data.random_split(ours + ours, [5, 15])
    batch = next(iter(torch.utils.data.DataLoader(torch.utils.data.Subset(few, [0, 3]), 2)))
    assert (batch[0].shape, batch[1].dtype, len(rest)) == ((2, 1, 28, 28), torch.int64, 15)


def test_compiled_model_is_trained() -> None:
    class Points(d2l.DataModule):
        batch_size = 8

        def get_dataloader(self, train: bool) -> Any:
            X = torch.linspace(-1, 1, 32).reshape(-1, 1)
            return self.get_tensorloader((X, 3 * X), train)

    model = d2l.LinearRegression(lr=0.5)
    assert "(net): LazyLinear(in_features=0, out_features=1, bias=True)" in repr(model)
    d2l.Trainer(max_epochs=9).fit(torch.compile(model, backend="eager"), Points())
    assert model.net.weight.item() == pytest.approx(3, abs=0.1)


def test_lazy_layers_keep_pytorchs_weights() -> None:
    """Train lazy layers, which get weights only after Xavier's have been drawn for the others."""
    X, y = torch.randn(10, 1, 8, 8), torch.arange(10) % 3
    batches = d2l.load_array((X, y), 5)
    net = nn.Sequential(nn.LazyConv2d(2, 3), nn.Flatten(), nn.LazyLinear(3))
    d2l.train_ch6(net, batches, batches, 1, 0.1, d2l.cpu())
    assert [type(layer) for layer in net] == [nn.Conv2d, nn.Flatten, nn.Linear]
