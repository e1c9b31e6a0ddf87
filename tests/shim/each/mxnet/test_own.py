"""Tests of features that only MXNet has: Gluon's blocks, MXNet's arrays and its pitfalls."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.shim.each.adapter import Adapter

from d2l_compat import mxnet as d2l  # isort: skip
import mxnet as mx
from mxnet import autograd, npx
from mxnet.gluon import nn, rnn

from d2l_compat.mxnet import devices
from tests.shim import reference
from tests.shim.each.cases import LENGTHS, make_case

ROWS = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.fixture
def heads() -> nn.Block:
    layer = d2l.MultiHeadAttention(8, 2, 0.5)
    layer.initialize()
    return layer


@pytest.fixture
def X() -> Any:
    return mx.np.random.normal(size=(2, 3, 6))


def test_importing_enables_numpy_arrays() -> None:
    assert mx.util.is_np_array()
    assert isinstance(d2l.ones((2, 3)), mx.np.ndarray)


def test_older_arrays_are_rejected(heads: nn.Block, X: Any) -> None:
    with pytest.raises(TypeError, match="keys: got NDArray; need a tensor"):
        heads(X, X.as_nd_ndarray(), X)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize("lengths", [[3, 0], [[1, 2, 3], [0, 3, 1]]], ids=["one", "per query"])
def test_lengths_are_whole_numbers_of_any_dtype(dtype: str, lengths: Any) -> None:
    layer = d2l.MultiHeadAttention(8, 2, 0.0)
    layer.initialize()
    X = d2l.randn(2, 3, 6)
    Y = layer(X, X, X, mx.np.array(lengths, dtype="int64"))
    assert mx.np.array_equal(layer(X, X, X, mx.np.array(lengths, dtype=dtype)), Y)
    with pytest.raises(ValueError, match="got a length of -1; need lengths of at least 0"):
        layer(X, X, X, mx.np.array(lengths, dtype=dtype) - 1)


@pytest.mark.parametrize("number", [0.5, np.nan, np.inf, -np.inf])
def test_length_that_is_not_whole_is_rejected(number: float) -> None:
    with pytest.raises(ValueError, match="valid_lens: got dtype float32 with fractions"):
        d2l.masked_softmax(d2l.ones((2, 3, 4)), d2l.tensor([1, number]))


def test_lists_become_float32_and_may_be_lengths(heads: nn.Block, X: Any) -> None:
    lengths = d2l.tensor([3, 2])
    assert lengths.dtype == np.float32
    assert d2l.exp(lengths)[1].item() == pytest.approx(np.e**2)
    assert heads(X, X, X, valid_lens=lengths).shape == (2, 3, 8)


def test_recording_implies_training_by_default(heads: nn.Block, X: Any) -> None:
    with autograd.record():
        dropped = heads(X, X, X)
    with autograd.record(train_mode=False):
        whole = heads(X, X, X)
    assert mx.np.array_equal(whole, heads(X, X, X))
    assert not mx.np.array_equal(dropped, whole)


@pytest.mark.parametrize("layer", [d2l.PositionalEncoding(6, 1), d2l.PositionalEncoding(6, 1.0)])
def test_full_dropout_leaves_zeros(layer: nn.Block, X: Any) -> None:
    X.attach_grad()
    with autograd.record():
        Y = layer(X)
    Y.backward()
    assert not Y.any()
    assert not X.grad.any()
    assert mx.np.array_equal(layer(X), X + layer.P[:, :3])


def test_weights_load_into_layer_without_sizes(heads: nn.Block, X: Any, tmp_path: Path) -> None:
    Y = heads(X, X, X)
    heads.save_parameters(str(tmp_path / "weights"))
    assert sorted(npx.load(str(tmp_path / "weights"))) == [f"W_{i}.weight" for i in "koqv"]
    other = d2l.MultiHeadAttention(8, 2, 0.5)
    other.load_parameters(str(tmp_path / "weights"))
    assert mx.np.array_equal(other(X, X, X), Y)


def test_custom_attention_may_lack_masks(heads: nn.Block, X: Any) -> None:
    class Opposed(d2l.DotProductAttention):  # type: ignore[misc]
        def forward(self, queries: Any, keys: Any, values: Any, valid_lens: Any = None) -> Any:
            return super().forward(-queries, keys, values, valid_lens)

    heads.attention = Opposed(0.0)
    assert heads(X, X, X, mx.np.array([3, 2], dtype="int64")).shape == (2, 3, 8)


@pytest.mark.parametrize("valid_lens", LENGTHS.values(), ids=LENGTHS)
def test_hybridized_layers_compute_same_output(adapter: Adapter, valid_lens: Any) -> None:
    case = make_case(valid_lens)
    layer = adapter.build_multi_head(*case.sizes, 6, 2, 0.5)
    Y = layer(*case.arrays)
    layer.layer.hybridize()
    np.testing.assert_allclose(layer(*case.arrays), Y, rtol=1e-12)


def test_encoding_is_rounded_once_when_model_changes_dtype() -> None:
    model = nn.Sequential()
    model.add(d2l.PositionalEncoding(7, 0.0), d2l.RotaryEncoding(6))
    units = np.tile([1.0, 0.0], (1, 1000, 3))  # rotated, they are the cosines and sines
    rotations = reference.rotary(units, range(1000)).reshape(1000, 3, 2)
    tables = reference.positional_encoding(1000, 7)[None], rotations.transpose(2, 0, 1)
    for dtype in ("float16", "float64"):
        model.cast(dtype)
        for layer, want in zip(model, tables, strict=True):
            P = layer.P.asnumpy()
            assert P.dtype == dtype
            assert np.abs(P - want).max() <= max(np.finfo(dtype).eps / 4, 1e-12)


def test_mask_takes_float_lengths_and_passes_gradients() -> None:
    X = d2l.ones((2, 3, 2))
    X.attach_grad()
    with autograd.record():
        Y = d2l.sequence_mask(X, d2l.tensor([1, 3]), value=5)
    Y.backward()
    want = np.array([[1, 0, 0], [1, 1, 1]])[..., None].repeat(2, axis=2)
    np.testing.assert_array_equal(X.grad.asnumpy(), want)
    np.testing.assert_array_equal(Y.asnumpy(), np.where(want, 1, 5))
    with pytest.raises(ValueError, match="valid_len: got dtype float32 with fractions"):
        d2l.sequence_mask(X, d2l.tensor([1, 2.5]))


# Recurrent layers


def make_twin(layer: nn.Block, X: Any) -> rnn.GRU:
    """Draw parameters for the layer; return Gluon's layer with the same parameters."""
    twin = rnn.GRU(4, 3)
    twin.initialize()
    twin(X, twin.begin_state(X.shape[1]))
    for ours, theirs in zip(
        layer.collect_params().values(), twin.collect_params().values(), strict=True
    ):
        ours.set_data(d2l.randn(*ours.shape))
        theirs.set_data(ours.data())
    return twin


@pytest.mark.parametrize("dropout", [0, 0.5, 1])
@pytest.mark.parametrize("is_hybrid", [False, True])
def test_recurrent_layer_matches_gluons_in_evaluation(
    X: Any, dropout: float, is_hybrid: bool
) -> None:
    layer = d2l.GRU(4, 3, dropout)
    layer.initialize()
    layer(X)
    twin = make_twin(layer, X)
    if is_hybrid:
        layer.hybridize()
    state = d2l.randn(3, X.shape[1], 4)
    want, [want_state] = twin(X, [state])
    got, got_state = layer(X, H=state)
    np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), atol=1e-6)
    np.testing.assert_allclose(got_state.asnumpy(), want_state.asnumpy(), atol=1e-6)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_full_dropout_acts_between_recurrent_layers(X: Any, num_layers: int) -> None:
    layer = d2l.GRU(4, num_layers, 1.0)
    layer.initialize()
    X.attach_grad()
    with autograd.record():
        Y, _ = layer(X)
    Y.backward()
    assert bool(X.grad.any()) == (num_layers == 1)
    assert np.isfinite(Y.asnumpy()).all()


# Models and their training


# Gluon warns that it does not find the parameters of blocks in a list, but these blocks have none.
IGNORE_BLOCK_LISTS = pytest.mark.filterwarnings(
    "ignore:.* is an unregistered container with Blocks"
)


class Line(d2l.Module):  # type: ignore[misc]
    """A model from scratch: its parameters are arrays, some in other modules."""

    def __init__(self) -> None:
        super().__init__()
        self.lr = 0.1
        self.parts = [Slope(), Slope()]
        self.b = d2l.zeros(1)
        for array in self.get_scratch_params():
            array.attach_grad()

    def forward(self, X: Any) -> Any:
        return sum(part.w * X for part in self.parts) + self.b

    def loss(self, y_hat: Any, y: Any) -> Any:
        return ((y_hat - y) ** 2).mean()


class ListedLine(Line):
    """A model that lists its parameters itself, as on D2L's page on softmax regression."""

    def collect_params(self) -> list[Any]:
        return self.get_scratch_params()


class Slope(d2l.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.w = d2l.zeros(1)


class Points(d2l.DataModule):  # type: ignore[misc]
    """Points on the line 4 x + 3."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_size = 8
        self.X = d2l.linspace(-1, 1, 32)

    def get_dataloader(self, train: bool) -> Any:
        return self.get_tensorloader((self.X, 4 * self.X + 3), train)


@pytest.fixture(params=[0, 1], ids=["first device", "second device"])
def num_gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Replace GPUs by this number of CPU devices, which have separate memory in MXNet."""
    monkeypatch.setattr(devices, "num_gpus", lambda: request.param)
    monkeypatch.setattr(devices, "gpu", lambda i=0: mx.cpu(1 + i))
    return request.param


@IGNORE_BLOCK_LISTS
@pytest.mark.parametrize("Scratch", [Line, ListedLine])
def test_model_from_scratch_learns(Scratch: type[Line], num_gpus: int) -> None:
    model = Scratch()
    d2l.Trainer(max_epochs=40, num_gpus=num_gpus, gradient_clip_val=100).fit(model, Points())
    *slopes, b = model.parameters()
    assert {x.ctx for x in (*slopes, b)} == {mx.cpu(num_gpus)}
    assert sum(slopes).item() == pytest.approx(4, abs=0.1)
    assert b.item() == pytest.approx(3, abs=0.1)


@IGNORE_BLOCK_LISTS
@pytest.mark.parametrize("norm", [0.5, 1000.0])
def test_gradients_of_model_from_scratch_are_clipped_together(norm: float) -> None:
    model = Line()
    X = d2l.ones(3)
    with autograd.record():
        loss = model.loss(model(X), 7 * X)
    loss.backward()
    d2l.Trainer(1).clip_gradients(norm, model)
    got = np.concatenate([x.grad.asnumpy() for x in model.parameters()])
    gradient = np.full(3, -14.0)
    want = gradient * min(1, norm / np.linalg.norm(gradient))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_frozen_parameters_do_not_affect_clipping() -> None:
    model = nn.Sequential()
    model.add(nn.BatchNorm(), nn.Dense(1))  # the running sums of batch normalization are frozen
    model.initialize()
    with autograd.record():
        Y = model(d2l.ones((2, 3)))
    Y.backward()
    d2l.Trainer(1).clip_gradients(0.5, model)
    gradients = [
        p.grad().asnumpy() for p in model.collect_params().values() if p.grad_req != "null"
    ]
    assert sum((g**2).sum() for g in gradients) == pytest.approx(0.25, rel=1e-4)


def test_model_trains_on_requested_device(num_gpus: int) -> None:
    class Model(d2l.Classifier):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lr = 0.1
            self.net = nn.Sequential()
            self.net.add(nn.Dense(4), nn.Dense(2))
            self.net.initialize()

    class Rows(d2l.DataModule):  # type: ignore[misc]
        batch_size = 2

        def get_dataloader(self, train: bool) -> Any:
            return self.get_tensorloader((d2l.randn(6, 3), np.array([0, 1] * 3)), train)

    model = Model()
    d2l.Trainer(max_epochs=1, num_gpus=num_gpus).fit(model, Rows())
    assert model.net.collect_params().list_ctx() == [mx.cpu(num_gpus)]


class Repeating(d2l.Decoder):  # type: ignore[misc]
    """A decoder that adds the encoder's last state to each token's embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.dense = nn.Dense(7, flatten=False)
        self.drop = nn.Dropout(0.5)
        self.initialize()

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        return enc_all_outputs[1][-1]

    def forward(self, X: Any, state: Any) -> Any:
        return self.dense(self.drop(self.embedding(X) + mx.np.expand_dims(state, 1))), state


def test_translation_uses_no_dropout_and_no_recording() -> None:
    model = d2l.EncoderDecoder(d2l.Seq2SeqEncoder(7, 4, 4, 2, 0.5), Repeating())
    tokens = d2l.tensor([[1, 2, 3]] * 50)
    lens = d2l.tensor([3] * 50)
    with autograd.record():
        predicted, _ = model.predict_step((tokens, tokens, lens, tokens), d2l.cpu(), 4)
    assert (predicted == predicted[0]).all()
    with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
        autograd.get_symbol(predicted)


def test_functions_train_and_translate_on_second_device(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = mx.cpu(1)
    vocab = d2l.Vocab(["a", "b", "c"], reserved_tokens=["<pad>", "<bos>", "<eos>"])
    tokens, lens = d2l.tensor([[4, 5, 2], [5, 4, 2]]), d2l.tensor([3, 3])
    net = d2l.EncoderDecoder(d2l.Seq2SeqEncoder(7, 4, 4, 1), Repeating())
    d2l.train_seq2seq(net, [(tokens, lens, tokens, lens)], 0.01, 1, vocab, other)
    assert net.collect_params().list_ctx() == [other]
    assert "tokens/sec on cpu(1)" in capsys.readouterr().out
    predicted, weights = d2l.predict_seq2seq(net, "a b", vocab, vocab, 3, other)
    assert isinstance(predicted, str)
    assert weights == []


def test_hybridized_transformer_computes_same_output() -> None:
    layer = d2l.TransformerEncoder(7, 8, 16, 2, 2, 0.5)
    tokens, lens = d2l.tensor([[1, 2, 3], [4, 5, 6]]), d2l.tensor([2, 3])
    Y = layer(tokens, valid_lens=lens)
    layer.hybridize()
    np.testing.assert_allclose(layer(tokens, lens).asnumpy(), Y.asnumpy(), atol=1e-6)


def test_weights_of_upstreams_layers_load(upstream: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "weights")
    tokens, lens = d2l.tensor([[1, 2, 3], [4, 5, 6]]), d2l.tensor([2, 3])
    for name, args in (
        ("TransformerEncoder", (7, 8, 16, 2, 2, 0.5)),
        ("Seq2SeqEncoder", (7, 4, 4, 2)),
    ):
        theirs, ours = (getattr(package, name)(*args) for package in (upstream, d2l))
        Y = theirs(tokens, lens)
        theirs.save_parameters(file)
        ours.load_parameters(file)
        Z = ours(tokens, lens)
        for want, got in zip(Y, Z, strict=True) if isinstance(Y, tuple) else [(Y, Z)]:
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), atol=1e-5)


def test_layers_stay_on_second_device(heads: nn.Block) -> None:
    # MXNet treats each CPU device's memory as separate, and rejects operations on arrays of both.
    other = mx.cpu(1)
    X = mx.np.array(ROWS[:, :, :2].repeat(4, axis=2))
    lens = mx.np.array([3, 2], dtype="int64")
    want = heads(X, X, X, lens).asnumpy()
    heads.collect_params().reset_ctx(other)
    X, lens = X.as_in_ctx(other), lens.as_in_ctx(other)
    got = heads(X, X, X, lens)
    assert got.ctx == heads.attention_weights.ctx == other
    np.testing.assert_array_equal(got.asnumpy(), want)
    bias = mx.np.zeros((3, 3), ctx=other)
    assert heads(X, X, X, lens, causal=True, score_bias=bias).ctx == other
    assert d2l.PositionalEncoding(8, 0.5)(X).ctx == other
    assert d2l.RotaryEncoding(8)(X).ctx == other
    assert d2l.masked_softmax(X, lens).ctx == other
    long = mx.np.ones((2, 200, 8), ctx=other)
    bias = mx.np.zeros((200, 200), ctx=other)
    assert heads(long, long, long, lens, score_bias=bias, window=5).ctx == other
    assert heads.attention_weights.ctx == other
    linear = d2l.LinearAttention(8, 2)
    linear.initialize(ctx=other)
    state = linear.make_state(2)
    assert linear(long, state).ctx == state.kv.ctx == state.k.ctx == other


def test_long_input_may_be_an_empty_batch() -> None:
    X = mx.np.ones((0, 200, 8))
    assert d2l.DotProductAttention(0.5)(X, X, X, window=3).asnumpy().shape == X.shape
    causal = d2l.CausalSelfAttention(8, 2, window=3, num_sinks=2)
    for layer in (causal, d2l.LinearAttention(8, 2)):
        layer.initialize()
        assert layer(X).asnumpy().shape == X.shape


def test_text_may_be_shorter_than_the_sinks() -> None:
    layer = d2l.CausalSelfAttention(8, 2, window=3, num_sinks=10)
    layer.initialize()
    X = d2l.randn(2, 5, 8)
    np.testing.assert_allclose(
        layer(X).asnumpy(), layer(X, cache=layer.make_cache(2, 5)).asnumpy(), atol=1e-6
    )


@pytest.mark.parametrize("count", [0, 1, 2])
def test_available_gpus_are_used(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(npx, "num_gpus", lambda: count)
    gpus = [mx.gpu(i) for i in range(count)]
    assert d2l.num_gpus() == count
    assert d2l.gpu(7) == mx.gpu(7)
    assert [d2l.try_gpu(i) for i in range(3)] == [*gpus, *[mx.cpu()] * (3 - count)]
    assert d2l.try_all_gpus() == (gpus or [mx.cpu()])


def test_bert_stays_on_second_device() -> None:
    other = mx.cpu(1)
    model = d2l.BERTModel(7, 8, 16, 2, 1, 0.0, 6)
    model.initialize(ctx=other)
    tokens, lens = mx.np.ones((2, 4), ctx=other), mx.np.array([3, 2], ctx=other)
    outputs = model(tokens, tokens * 0, lens, tokens[:, :2] * 3)
    assert {output.ctx for output in outputs} == {other}


def test_rows_may_be_lists_of_numbers() -> None:
    X = mx.np.array(ROWS[0])
    (batch,) = d2l.load_array((X, [2, 0, 1]), 3, is_train=False)
    assert batch[0].asnumpy().tolist() == ROWS[0].tolist()
    assert batch[1].asnumpy().tolist() == [2, 0, 1]
    with pytest.raises(TypeError, match="data_arrays: got list; need a tuple or a list of tensors"):
        d2l.load_array((X, ["a", "b", "c"]), 3)
