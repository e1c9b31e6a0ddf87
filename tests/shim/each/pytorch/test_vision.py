"""Tests of features that only PyTorch has: a residual block's two signatures, gradients of boxes, pixel labels."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from d2l_compat import torch as d2l


@pytest.mark.parametrize("args", [(3, 4, True, 2), (4, True, 2)])
def test_residual_block_has_two_signatures(args: tuple[int, ...]) -> None:
    names = "input_channels", "num_channels", "use_1x1conv", "strides"
    kwargs = dict(zip(names[-len(args) :], args, strict=True))
    for block in d2l.Residual(*args), d2l.Residual(**kwargs):
        assert block(torch.ones(2, 3, 6, 6)).shape == (2, 4, 3, 3)
        assert block.conv1.weight.shape == (4, 3, 3, 3)
    assert d2l.Residual(3, 3).conv3 is None
    assert d2l.Residual(3)(torch.ones(2, 3, 6, 6)).shape == (2, 3, 6, 6)


def test_overlaps_and_offsets_are_differentiable() -> None:
    boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 4]], dtype=torch.float64, requires_grad=True)
    others = torch.tensor([[0.5, 0.5, 2.5, 3], [0, 1, 2, 3]], dtype=torch.float64)
    for function in d2l.box_iou, d2l.offset_boxes, d2l.offset_inverse:
        assert torch.autograd.gradcheck(function, (boxes, others))


def test_pixel_labels_and_list_inputs() -> None:
    X, y = torch.randn(4, 2, 3, 5), torch.arange(60).reshape(4, 3, 5) % 3
    net = nn.Conv2d(2, 3, 1)

    class ListInput(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, X: list[torch.Tensor]) -> torch.Tensor:
            return self.net(X[1])

    def loss(y_hat: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(y_hat, y, reduction="none").mean((1, 2))

    with torch.no_grad():
        want = loss(net(X), y).sum().item(), (net(X).argmax(1) == y).sum().item()
    trainer = torch.optim.SGD(net.parameters(), 0.0)
    for model, batch in (net, X), (ListInput(), [X, X]):
        metrics = d2l.train_batch_ch13(model, batch, y, loss, trainer, [d2l.cpu()])
        assert [float(x) for x in metrics] == pytest.approx(want, rel=1e-5)
    batches = [(X, y)]
    d2l.train_ch13(net, batches, batches, loss, trainer, 1, [d2l.cpu()])
    _, share, _ = [line.get_ydata()[-1] for line in d2l.plt.gca().lines]
    assert share == pytest.approx(want[1] / 60)
    d2l.plt.close("all")
