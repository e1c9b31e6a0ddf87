"""What PyTorch's classifiers have of their own: a label that does not count, and labels for PyTorch's losses."""

from pathlib import Path

import pytest
import torch

from d2l_compat import torch as d2l
from tests.faces.test_training import make_fashion


def test_a_label_of_minus_100_does_not_count() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    loss = d2l.Classifier().loss(logits, torch.tensor([0, -100]))
    assert loss.item() == pytest.approx(torch.log1p(torch.exp(torch.tensor(-2.0))).item())
    with pytest.raises(ValueError, match="Y: got a label of -99; need labels from 0 to 1"):
        d2l.Classifier().loss(logits, torch.tensor([0, -99]))


def test_pytorchs_own_loss_takes_the_labels_of_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fashion(d2l, tmp_path, monkeypatch)
    X, y = next(iter(d2l.FashionMNIST(batch_size=8).train_dataloader()))
    loss = torch.nn.functional.cross_entropy(X.flatten(1)[:, :10], y)
    assert torch.isfinite(loss)
