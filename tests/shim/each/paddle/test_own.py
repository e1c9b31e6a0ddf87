"""Tests of features that only Paddle has: buffers, programs, weights made at the first call, its output."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2l_compat import paddle as d2l  # isort: split

import paddle
from paddle import nn

from tests.shim import reference

RNG = np.random.default_rng(0)
X = paddle.to_tensor(RNG.normal(size=(2, 5, 6)).astype("float32"))
LENGTHS = paddle.to_tensor([3, 0])


class Block(nn.Layer):
    """Positions and attention, in evaluation mode."""

    def __init__(self, *sizes: int, max_len: int = 50) -> None:
        super().__init__()
        self.encoding = d2l.PositionalEncoding(6, 0.5, max_len)
        self.attention = d2l.MultiHeadAttention(*sizes, 6, 2, 0.5)
        self.eval()

    def forward(self, X: paddle.Tensor, valid_lens: paddle.Tensor) -> paddle.Tensor:
        X = self.encoding(X)
        return self.attention(X, X, X, valid_lens)


class MaskedAttention(nn.Layer):
    """Rotary encodings, and attention with each kind of mask."""

    def __init__(self) -> None:
        super().__init__()
        self.rotary = nn.Sequential(
            *(d2l.RotaryEncoding(6, 50, layout=layout) for layout in ("halves", "interleaved"))
        )
        self.attention = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.5)

    def forward(self, X: paddle.Tensor, lens: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        rotated = self.rotary(X)
        return self.attention(rotated, rotated, X, lens, causal=True, score_bias=bias)


class MaskFunctions(nn.Layer):
    """Functions of masks and heads."""

    def forward(self, X: paddle.Tensor, lens: paddle.Tensor) -> paddle.Tensor:
        masked = d2l.sequence_mask(X, lens, -1)
        return d2l.transpose_output(d2l.transpose_qkv(masked, 3), 3)


TOKENS = paddle.to_tensor([[1, 2, 3, 0, 4], [6, 5, 4, 3, 2]])
BIAS = RNG.normal(size=(2, 2, 5, 5)).astype("float32")
BIAS[..., 2, :] = -np.inf
# For each layer, its inputs and their sizes; B is the batch size, S the number of steps.
LAYERS: dict[str, tuple[Callable[[], nn.Layer], tuple[Any, ...], tuple[Any, ...]]] = {
    "additive": (
        lambda: d2l.AdditiveAttention(6, 6, 8, 0.5),
        (X, X, X, LENGTHS),
        ("BS6", "BS6", "BS6", "B"),
    ),
    "encoder": (
        lambda: d2l.TransformerEncoder(7, 8, 8, 8, 8, [8], 8, 16, 2, 2, 0.5),
        (TOKENS, LENGTHS),
        ("BS", "B"),
    ),
    "recurrent": (lambda: d2l.Seq2SeqEncoder(7, 6, 4, 2), (TOKENS,), ("BS",)),
    "mask": (MaskFunctions, (X, LENGTHS), ("BS6", "B")),
    **{
        f"bias of rank {len(sizes)}": (
            MaskedAttention,
            (X, LENGTHS, paddle.to_tensor(BIAS[(0,) * (4 - len(sizes))])),
            ("BS6", "B", sizes),
        )
        for sizes in ("SS", "BSS", "BBSS")  # there are as many heads as examples
    },
}


def assert_equal(got: paddle.Tensor, want: paddle.Tensor) -> None:
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-6)


# Buffers


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("wrap", [lambda layer: layer, nn.Sequential], ids=["layer", "model"])
def test_encoding_is_rounded_once_when_moved(wrap: Any, dtype: str) -> None:
    layer = d2l.PositionalEncoding(7, 0.0)
    wrap(layer).to(dtype="float16").to(dtype=dtype)
    assert str(layer.P.dtype) == f"paddle.{dtype}"
    error = layer.P.astype("float64").numpy() - reference.positional_encoding(1000, 7)
    # Half a unit in the last place just below 1; Paddle converts float64 to half precision by way of float32.
    assert np.abs(error).max() < max(0.2501 * float(paddle.finfo(layer.P.dtype).eps), 1e-12)


def test_custom_encoding_is_kept_when_moved() -> None:
    layer = d2l.PositionalEncoding(4, 0.0, max_len=3)
    layer.P = paddle.ones([1, 3, 4])
    assert (layer.to("cpu").P == 1).all()


def test_encoding_is_the_only_buffer_and_not_saved() -> None:
    block = Block()
    block(X, LENGTHS)
    assert [name for name, _ in block.named_buffers()] == ["encoding.P"]
    assert {name.split(".")[0] for name in block.state_dict()} == {"attention"}
    assert {name.split(".")[0] for name, _ in block.named_parameters()} == {"attention"}


# Sizes from the first input


def test_optimizer_made_before_first_call_trains_every_weight() -> None:
    layer = d2l.MultiHeadAttention(6, 2, 0.0, True).to(dtype="float64")
    optimizer = paddle.optimizer.SGD(1.0, parameters=layer.parameters())
    layer(*[X.astype("float64")] * 3).square().sum().backward()
    before = {name: weight.numpy().copy() for name, weight in layer.state_dict().items()}
    optimizer.step()
    for name, weight in layer.state_dict().items():
        assert weight.dtype == paddle.float64
        assert not np.array_equal(weight.numpy(), before[name])


def test_loading_weights_before_first_call_is_error() -> None:
    with pytest.warns(UserWarning, match=r"Skip loading for W_..weight.*\[0, 6\]"):
        missing, _ = d2l.MultiHeadAttention(6, 2, 0.0).set_state_dict(
            d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0).state_dict()
        )
    assert missing == ["W_q.weight", "W_k.weight", "W_v.weight"]


def test_failed_first_call_leaves_additive_attention_without_sizes() -> None:
    layer = d2l.AdditiveAttention(8, 0.0)
    with pytest.raises(ValueError, match="valid_lens: got a length of -1"):
        layer(X, X, X, paddle.to_tensor([9, -1]))
    assert layer(X[..., :4], X[..., :4], X, LENGTHS).shape == [2, 5, 6]


# Initialization


def test_init_seq2seq_draws_only_weights_in_place() -> None:
    recurrent = nn.GRU(3, 40, 2)
    linear = nn.Linear(30, 40)
    lazy = d2l.PositionWiseFFN(5, 6).dense1
    embedding = nn.Embedding(3, 4)
    layers = (recurrent, linear, lazy, embedding)
    parameters = {
        name: p for i, layer in enumerate(layers) for name, p in named_parameters(layer, i)
    }
    before = {name: (p.data_ptr(), p.numpy().copy()) for name, p in parameters.items()}
    for layer in layers:
        layer.apply(d2l.init_seq2seq)
    for name, parameter in parameters.items():
        address, values = before[name]
        assert parameter.data_ptr() == address
        is_drawn = "weight" in name and name[0] in "01"
        assert np.array_equal(parameter.numpy(), values) != is_drawn
        if is_drawn:
            assert not parameter.stop_gradient
            limit = np.sqrt(6 / sum(parameter.shape))
            # In single precision the limit itself may be drawn, rounded up.
            assert (
                0.95 * limit
                < np.abs(parameter.numpy()).max()
                <= np.nextafter(np.float32(limit), np.float32(1))
            )


def named_parameters(layer: nn.Layer, number: int) -> list[tuple[str, Any]]:
    return [(f"{number}.{name}", parameter) for name, parameter in layer.named_parameters()]


def test_block_names_match_saved_weights() -> None:
    encoder = d2l.TransformerEncoder(7, 8, 16, 2, 2, 0.0)
    names = {".".join(name.split(".")[:2]) for name in encoder.state_dict() if "blks" in name}
    assert names == {"blks.0", "blks.1"}


# Training


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recurrent_model_moves_unlike_paddles_layer(dtype: str) -> None:
    class Model(d2l.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.GRU(3, 4))

    # If Paddle no longer raises this error, `remove_empty_buffers` is not needed.
    with pytest.raises(RuntimeError, match="memory"):
        nn.GRU(3, 4).to("cpu")
    model = Model().to("cpu", dtype)
    encoder = d2l.Seq2SeqEncoder(7, 6, 4, 2).to("cpu", dtype)
    for output in (model(paddle.ones([2, 5, 3], dtype))[0], encoder(TOKENS)[0]):
        assert str(output.dtype) == f"paddle.{dtype}"


class Table(nn.Layer):
    """A model that looks up logits by the last token, and returns a state like D2L 0.17's models."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 7)
        self.unused = nn.GRU(3, 4)  # which Paddle cannot move

    def forward(self, X: paddle.Tensor, Y: paddle.Tensor, lens: paddle.Tensor) -> Any:
        return self.table(Y), None


@pytest.mark.parametrize("examples", [2, 60], ids=["short gradients", "long gradients"])
def test_steps_of_train_seq2seq_follow_gradient(
    examples: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Train with SGD, since Adam's first step hides the gradient's length."""
    monkeypatch.setattr(paddle.optimizer, "Adam", paddle.optimizer.SGD)
    vocab = d2l.Vocab(["a", "b", "c"], reserved_tokens=["<pad>", "<bos>", "<eos>"])
    rng = np.random.default_rng(0)
    Y, lens = rng.integers(0, 7, (examples, 5)), rng.integers(1, 6, examples)
    net = Table()
    weight = net.table.weight.numpy().astype("float64")
    batch = [paddle.to_tensor(x.astype("int32")) for x in (Y, lens, Y, lens)]
    d2l.train_seq2seq(net, [batch], 0.5, 2, vocab, d2l.cpu())

    inputs = np.concatenate([np.full((examples, 1), vocab["<bos>"]), Y[:, :-1]], axis=1)
    mask = np.arange(5) < lens[:, None]
    for _ in range(2):
        probs = np.exp(weight[inputs])
        probs /= probs.sum(axis=-1, keepdims=True)
        loss = -(np.log(np.take_along_axis(probs, Y[..., None], -1))[..., 0] * mask).sum() / 5
        gradient = np.zeros((7, 7))
        np.add.at(gradient, inputs, (probs - np.eye(7)[Y]) * mask[..., None] / 5)
        length = np.linalg.norm(gradient)
        assert (length > 1) == (examples == 60)
        weight = weight - 0.5 * gradient / max(1, length)
    np.testing.assert_allclose(net.table.weight.numpy(), weight, atol=1e-5)
    assert f"loss {loss / lens.sum():.3f}, " in capsys.readouterr().out


# Edges


def test_attention_without_keys_is_zero() -> None:
    """Test layers with NaN in fresh memory; a shared test covers the other frameworks."""
    no_keys = paddle.ones([2, 0, 4])
    for layer in (d2l.DotProductAttention(0.0), d2l.AdditiveAttention(8, 0.0)):
        for valid_lens in (None, paddle.to_tensor([0, 0])):
            paddle.full([100], float("nan"))
            assert (layer(paddle.ones([2, 3, 4]), no_keys, no_keys, valid_lens) == 0).all()


def test_masked_scores_have_zero_gradients() -> None:
    for junk in (np.nan, np.inf):
        scores = paddle.to_tensor(np.where(np.arange(4) < 2, 1.0, junk) + np.zeros((1, 3, 1)))
        scores.stop_gradient = False
        weights = d2l.masked_softmax(scores, paddle.to_tensor([2]))
        (gradient,) = paddle.grad((weights * paddle.arange(4.0)).sum(), scores)
        assert (gradient[..., 2:] == 0).all()
        assert (gradient[..., :2] != 0).all()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))]
)
def test_layers_can_be_copied_after_call(duplicate: Callable[[nn.Layer], nn.Layer]) -> None:
    block = Block()
    output = block(X, LENGTHS)
    twin = duplicate(block)
    with pytest.raises(AttributeError, match="call the layer first"):
        _ = twin.attention.attention_weights
    assert_equal(twin(X, LENGTHS), output)
    additive = d2l.AdditiveAttention(8, 0.0)
    output = additive(X, X, X)
    twin = duplicate(additive)
    with pytest.raises(AttributeError, match="call the layer first"):
        _ = twin.attention_weights
    assert_equal(twin(X, X, X), output)


# Programs

# While Paddle traces a program, it stores the parameters under the program's address. If tracing
# fails, they stay there: the next program at that address would get them, and crash. Storing the
# exception keeps the program alive, so that its address is not reused.
TRACE_ERRORS: list[pytest.ExceptionInfo[Exception]] = []


@pytest.mark.parametrize("sizes", [[2, 5], [None, None]], ids=["known sizes", "unknown sizes"])
def test_layer_can_be_saved_as_program(sizes: list[Any], tmp_path: Path) -> None:
    block = Block()
    saved = str(tmp_path / "block")
    want = block(X, LENGTHS)
    specs = [([*sizes, 6], "float32"), (sizes[:1], "int64")]
    paddle.jit.save(block, saved, [paddle.static.InputSpec(*spec) for spec in specs])
    assert_equal(paddle.jit.load(saved)(X, LENGTHS), want)
    assert block.attention.attention_weights.shape == [2, 2, 5, 5]  # still those of the eager call


@pytest.mark.parametrize("has_known_sizes", [True, False], ids=["known sizes", "unknown sizes"])
@pytest.mark.parametrize(("make", "inputs", "sizes"), LAYERS.values(), ids=LAYERS)
def test_model_parts_can_be_saved_as_programs(
    make: Callable[[], nn.Layer],
    inputs: tuple[Any, ...],
    sizes: tuple[str, ...],
    has_known_sizes: bool,
) -> None:
    layer = make()
    layer.eval()
    want = layer(*inputs)
    known: dict[str, Any] = {"B": 2, "S": 5, "6": 6} if has_known_sizes else {"6": 6}
    specs = [
        paddle.static.InputSpec([known.get(axis) for axis in axes], tensor.dtype)
        for axes, tensor in zip(sizes, inputs, strict=True)
    ]
    got = paddle.jit.to_static(layer, specs, full_graph=True)(*inputs)
    outputs, expected = (x if isinstance(x, tuple | list) else [x] for x in (got, want))
    for a, b in zip(outputs, expected, strict=True):
        assert_equal(a, b)


@pytest.mark.parametrize("keys", [[1, 5, 6], [None, 5, 6], [None, None, 6]], ids=str)
def test_unknown_sizes_match_known_ones(keys: list[Any]) -> None:
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    specs = [paddle.static.InputSpec(shape) for shape in ([1, 3, 6], keys, [None, 5, 6])]
    lengths = paddle.static.InputSpec([None], "int64")
    layer.eval()  # in training, Paddle itself warns while it builds the backward pass
    inputs = X[:1, :3], X[:1], X[:1], LENGTHS[:1]
    want = layer(*inputs)
    program = paddle.jit.to_static(layer, [*specs, lengths], full_graph=True)
    assert program.forward.concrete_program.outputs[0].shape == [1, 3, 6]
    assert_equal(program(*inputs), want)


def test_program_takes_masks_by_name() -> None:
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.5)
    layer.eval()
    masks = {"causal": True, "score_bias": paddle.to_tensor(BIAS)}
    want = layer(X, X, X, LENGTHS, **masks)
    assert_equal(paddle.jit.to_static(layer, full_graph=True)(X, X, X, LENGTHS, **masks), want)


@pytest.mark.parametrize("queries", [3, None])
@pytest.mark.parametrize("keys", [5, None])
def test_last_query_sees_last_key_in_program(queries: int | None, keys: int | None) -> None:
    layer = d2l.DotProductAttention(0.5)
    layer.eval()
    want = layer(X[:, :3], X, X, causal=True)
    specs = [paddle.static.InputSpec([2, steps, 6]) for steps in (queries, keys, keys)]
    program = paddle.jit.to_static(layer, [*specs, None, True], full_graph=True)
    assert_equal(program(X[:, :3], X, X, causal=True), want)


@pytest.mark.parametrize("steps", [300, None], ids=["in blocks", "unknown steps"])
def test_program_attends_in_window(steps: int | None) -> None:
    long_input = paddle.to_tensor(RNG.normal(size=(2, 300, 6)).astype("float32"))
    inputs = (long_input, long_input, long_input, LENGTHS * 50, False, None, 20)
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.5)
    layer.eval()
    want = layer(*inputs)
    specs = [paddle.static.InputSpec([2, steps, 6]) for _ in range(3)]
    lengths = paddle.static.InputSpec([2], "int64")
    program = paddle.jit.to_static(layer, [*specs, lengths, False, None, 20], full_graph=True)
    assert_equal(program(*inputs), want)


def test_more_sinks_than_tokens_are_a_causal_mask() -> None:
    layer = d2l.CausalSelfAttention(6, 2, window=2, num_sinks=20)
    causal = d2l.CausalSelfAttention(6, 2)
    causal.set_state_dict(layer.state_dict())
    assert_equal(layer(X), causal(X))


def test_bias_is_added_in_projections_dtype() -> None:
    """Change the dtype by hooks, since autocast does so only on GPUs."""
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    bias = paddle.to_tensor(BIAS)
    want = layer(X, X, X, score_bias=bias)
    for part in (layer.W_q, layer.W_k, layer.W_v):
        part.register_forward_post_hook(lambda *call: call[-1].astype("float64"))
    layer.attention.register_forward_post_hook(lambda *call: call[-1].astype("float32"))
    assert_equal(layer(X, X, X, score_bias=bias), want)


def test_rotation_has_second_derivatives() -> None:
    for layout in ("halves", "interleaved"):
        x = X.clone()
        x.stop_gradient = False
        rotated = d2l.RotaryEncoding(6, layout=layout)(x)
        (slope,) = paddle.grad(rotated.square().sum(), x, create_graph=True)
        (second,) = paddle.grad(slope.sum(), x)
        assert_equal(second, paddle.full_like(x, 2))  # a rotation keeps the squared norm


@pytest.mark.parametrize(
    ("keys", "lengths", "message"),
    [
        ([2, None, 6], [None], "batch sizes of queries, keys and values: got 1, 2 and -1"),
        ([None, None, 7], [None], r"keys: got shape \(-1, -1, 7\)"),
        ([None, None, 6], [None, 4], r"valid_lens: got shape \(-1, 4\)"),
    ],
)
def test_program_with_mismatched_sizes_is_rejected(
    keys: list[Any], lengths: list[Any], message: str
) -> None:
    layer = d2l.MultiHeadAttention(6, 6, 6, 6, 2, 0.0)
    specs = [paddle.static.InputSpec(shape) for shape in ([1, 3, 6], keys, [None, None, 6])]
    specs.append(paddle.static.InputSpec(lengths, "int64"))
    with pytest.raises(ValueError, match=message) as error:
        _ = paddle.jit.to_static(layer, specs, full_graph=True).forward.concrete_program
    TRACE_ERRORS.append(error)


def test_layer_without_sizes_cannot_be_saved() -> None:
    with pytest.raises(RuntimeError, match="call the layer once before it is traced") as error:
        paddle.jit.to_static(Block(), full_graph=True)(X, LENGTHS)
    TRACE_ERRORS.append(error)


# Devices and noise


@pytest.mark.parametrize(("count", "names"), [(0, ["cpu"]), (2, ["gpu:0", "gpu:1"])])
def test_devices_match_paddles(
    count: int, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paddle.device.cuda, "device_count", lambda: count)
    assert d2l.num_gpus() == count
    assert d2l.try_all_gpus() == names
    assert [d2l.try_gpu(0), d2l.try_gpu(2)] == [names[0], "cpu"]
    assert d2l.gpu(7) == "gpu:7"
    assert paddle.set_device(d2l.cpu()) == paddle.CPUPlace()


def test_importing_and_tracing_print_nothing() -> None:
    program = """if True:
        from d2l_compat import paddle as d2l
        import paddle
        softmax = paddle.jit.not_to_static(d2l.masked_softmax)
        shapes = [paddle.static.InputSpec([1, 2, 3]), paddle.static.InputSpec([1], "int64")]
        paddle.jit.to_static(softmax, shapes, full_graph=True).concrete_program
    """
    process = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout == b""


class RecurrentClassifier(nn.Layer):
    """A bidirectional recurrent classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(6, 4, num_layers=2, direction="bidirect")
        self.output = nn.Linear(8, 3)

    def forward(self, X: paddle.Tensor) -> paddle.Tensor:
        return self.output(self.rnn(X)[0][:, -1])


@pytest.mark.parametrize("name", ["train_ch6", "train_ch13"])
def test_recurrent_models_move_and_train(name: str) -> None:
    net = RecurrentClassifier()
    batches = [(X, paddle.to_tensor([0, 2]))]
    before = net(X).numpy()
    if name == "train_ch6":
        d2l.train_ch6(net, batches, batches, 1, 0.1, "cpu")
    else:
        loss = nn.CrossEntropyLoss(reduction="none")
        trainer = paddle.optimizer.SGD(0.1, net.parameters())
        d2l.train_ch13(net, batches, batches, loss, trainer, 1, ["cpu"])
    assert np.abs(net(X).numpy() - before).max() > 1e-3
    d2l.plt.close("all")


def test_length_of_single_pair_may_be_scalar() -> None:
    encoder = d2l.BERTEncoder(7, 6, 8, 2, 1, 0.0, 5)
    tokens = paddle.to_tensor([[1, 2, 3, 4]])
    outputs = [
        encoder(tokens, tokens * 0, paddle.to_tensor(lens)).numpy() for lens in (2, [2], [2.0])
    ]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])
