"""What PyTorch's classifiers have of their own: a label that does not count."""

import pytest
import torch

from d2l_compat import torch as d2l


def test_a_label_of_minus_100_does_not_count() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    loss = d2l.Classifier().loss(logits, torch.tensor([0, -100]))
    assert loss.item() == pytest.approx(torch.log1p(torch.exp(torch.tensor(-2.0))).item())
    with pytest.raises(ValueError, match="Y: got a label of -99; need labels from 0 to 1"):
        d2l.Classifier().loss(logits, torch.tensor([0, -99]))
