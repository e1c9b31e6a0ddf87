"""Tests of a feature that only MXNet has: batches split among several devices."""

from d2l_compat import mxnet as d2l  # isort: skip  it makes MXNet importable
import numpy as onp
import pytest
from mxnet import gluon, init, np, npx

DEVICES = [npx.cpu(0), npx.cpu(1)]
X = np.array(onp.random.default_rng(0).normal(size=(7, 4)).astype("float32"))
Y = np.array([0, 1, 2, 0, 1, 2, 0])


def make_network(devices: list[object]) -> gluon.nn.Dense:
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize(init.One(), ctx=devices)
    return net


def test_several_devices_train_like_one() -> None:
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    results = []
    weights = []
    for devices in DEVICES[:1], DEVICES:
        net = make_network(devices)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
        total_loss, hits = d2l.train_batch_ch13(net, X, Y, loss, trainer, devices)
        results.append((total_loss, hits, d2l.evaluate_accuracy_gpus(net, [(X, Y), (X, Y)])))
        weights.append([net.weight.data(device).asnumpy() for device in devices])
    assert results[1] == pytest.approx(results[0], rel=1e-5)
    assert results[0][1] == 3  # all logits are equal, so class 0 is predicted
    for weight in weights[1]:
        onp.testing.assert_allclose(weight, weights[0][0], rtol=1e-5)


def test_several_inputs_are_split_together() -> None:
    inputs, labels = d2l.split_batch_multi_inputs([X, 2 * X], Y, DEVICES)
    assert len(inputs) == len(labels) == 2
    for (first, second), y in zip(inputs, labels, strict=True):
        assert first.ctx == second.ctx == y.ctx
        assert len(first) == len(y)
        onp.testing.assert_array_equal(second.asnumpy(), 2 * first.asnumpy())
    onp.testing.assert_array_equal(onp.concatenate([y.asnumpy() for y in labels]), Y.asnumpy())
    with pytest.raises(ValueError, match="X and y: got 1 examples for 2 devices; need an example"):
        d2l.split_batch(X[:1], Y[:1], DEVICES)
