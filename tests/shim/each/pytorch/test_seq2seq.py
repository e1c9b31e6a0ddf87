"""What PyTorch's models for sequences have of their own: modes."""

import pytest
from torch import nn

from d2l_compat.torch.seq2seq import evaluating


@pytest.mark.parametrize("modes", [[True, True, False], [False, False, False], [True, False, True]])
def test_evaluation_leaves_each_layer_in_its_mode(modes: list[bool]) -> None:
    net = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
    layers = list(net.modules())
    for layer, mode in zip(layers, modes, strict=True):
        layer.training = mode
    with evaluating(net):
        assert not any(layer.training for layer in layers)
    assert [layer.training for layer in layers] == modes
