"""Tests of training features that only PyTorch has: an ignored label, labels for its losses, lazy layers."""

from pathlib import Path

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


def test_lazy_layers_keep_pytorchs_weights() -> None:
    """Train lazy layers, which get weights only after Xavier's have been drawn for the others."""
    X, y = torch.randn(10, 1, 8, 8), torch.arange(10) % 3
    batches = d2l.load_array((X, y), 5)
    net = nn.Sequential(nn.LazyConv2d(2, 3), nn.Flatten(), nn.LazyLinear(3))
    d2l.train_ch6(net, batches, batches, 1, 0.1, d2l.cpu())
    assert [type(layer) for layer in net] == [nn.Conv2d, nn.Flatten, nn.Linear]
