"""A valid call of each public name: the callable and its arguments."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from inspect import Signature, signature
from types import SimpleNamespace
from typing import Any, get_overloads

import numpy as np

from d2l_compat._shared import signatures
from tests.shim.each import adapter
from tests.shim.each.adapter import Adapter
from tests.shim.each.recurrent import load_recurrent_models


@dataclass(frozen=True)
class Lazy:
    """A value that depends on the framework, created for each call."""

    make: Callable[[Adapter], Any]
    array: Any = None  # a tensor's values


def tensor(array: Any, dtype: str) -> Lazy:
    array = np.asarray(array, dtype)
    return Lazy(lambda adapter: adapter.tensor(array), array)


def instance(name: str, *args: Any) -> Lazy:
    return Lazy(lambda adapter: getattr(adapter.d2l, name)(*(resolve(adapter, x) for x in args)))


def resolve(adapter: Adapter, x: Any) -> Any:
    return x.make(adapter) if isinstance(x, Lazy) else x


# Two functions that take the framework's adapter: one returns the callable, the other its arguments.
Call = tuple[Callable[[Adapter], Callable[..., Any]], Callable[[Adapter], tuple[Any, ...]]]

X = tensor(np.linspace(-1, 1, 48).reshape(2, 3, 8), "float32")
KEYS = tensor(np.linspace(-1, 1, 48).reshape(2, 2, 3, 4), "float32")
TOKENS, LENS = tensor([[1, 2, 3], [4, 5, 6]], "int32"), tensor([1, 3], "int32")
LOGITS, LABELS = tensor(np.eye(2, 3), "float32"), tensor([0, 2], "int32")
VOCAB = instance("Vocab", ["a"], 0, ["<pad>", "<bos>", "<eos>"])
ROWS = tensor(np.linspace(-1, 1, 30).reshape(6, 5), "float32")
PAIR = Lazy(lambda adapter: (resolve(adapter, ROWS), adapter.tensor(np.ones((6, 1), "float32"))))
LINEAR_MODEL = Lazy(
    lambda adapter: lambda X: adapter.d2l.linreg(X, adapter.tensor(np.ones((5, 1), "float32")), 0.5)
)
LOGIT_BATCHES = Lazy(lambda adapter: [(resolve(adapter, LOGITS), resolve(adapter, LABELS))])
LABELLED_BATCHES = Lazy(
    lambda adapter: adapter.d2l.load_array(
        (resolve(adapter, LOGITS), adapter.label_tensor(LABELS.array)), 2, False
    )
)
IDENTITY = Lazy(lambda adapter: lambda X: X)
FASHION_CLASSIFIER = Lazy(lambda adapter: lambda X: adapter.tensor(np.eye(2, 10, dtype="float32")))
FASHION_BATCHES = Lazy(
    lambda adapter: [
        (adapter.tensor(np.ones((2, 1, 4, 4), "float32")), adapter.tensor(LABELS.array))
    ]
)
MATRIX, KERNEL = tensor(np.ones((5, 6)), "float32"), tensor(np.ones((2, 3)), "float32")
BATCHES = instance("load_array", PAIR, 2, False)
ENCODER, DECODER = instance("Seq2SeqEncoder", 7, 6, 4, 2), instance("Decoder")
NET = instance("EncoderDecoder", ENCODER, DECODER)
SEGMENTS, POSITIONS = tensor([[0, 0, 1], [0, 1, 1]], "int32"), tensor([[0, 2], [1, 0]], "int32")
INPUTS: dict[str, tuple[Any, ...]] = {
    "BERTEncoder": (TOKENS, SEGMENTS, LENS),
    "BERTModel": (TOKENS, SEGMENTS, LENS, POSITIONS),
    "MaskLM": (X, POSITIONS),
    "AddNorm": (X, X),
    "AdditiveAttention": (X, X, X, LENS),
    "BlockDecoder": (TOKENS, LENS),
    "BlockEncoder": (TOKENS, LENS),
    "CausalSelfAttention": (X, LENS),
    "DotProductAttention": (X, X, X, LENS),
    "GRU": (X,),
    "LinearAttention": (X,),
    "MultiHeadAttention": (X, X, X, LENS),
    "PositionWiseFFN": (X,),
    "PositionalEncoding": (X,),
    "RotaryEncoding": (X,),
    "Seq2SeqEncoder": (TOKENS,),
    "TransformerBlock": (X, LENS),
    "TransformerEncoder": (TOKENS, LENS),
    "TransformerEncoderBlock": (X, LENS),
}


def blocks(**options: Any) -> Lazy:
    return Lazy(lambda adapter: [adapter.d2l.TransformerBlock(8, 2, 16, **options)])


LAYER_ARGS: dict[str, tuple[Any, ...]] = {
    "BlockDecoder": (7, blocks(causal=True)),
    "BlockEncoder": (7, blocks()),
    "TransformerBlock": (8, 2, 16, 0.0),
    "BERTEncoder": (7, 8, 16, 2, 1, 0.0, 6),
    "BERTModel": (7, 8, 16, 2, 1, 0.0, 6),
    "MaskLM": (7, 6),
    "NextSentencePred": (),
    "AdditiveAttention": (8, 0.0),
    "CausalSelfAttention": (8, 2, 0.0),
    "DotProductAttention": (0.0,),
    "LinearAttention": (8, 2),
    "MultiHeadAttention": (8, 2, 0.0),
    "PositionalEncoding": (8, 0.0, 10),
    "RotaryEncoding": (8, 10),
    "Seq2SeqEncoder": (7, 6, 4, 2, 0.0),
}


def find_signature(call: Callable[..., Any], args: Sequence[Any]) -> Signature:
    """Return a callable's signature; if it has several, return the first that fits these arguments."""
    if isinstance(call, adapter.Layer):
        call = call.layer
    if not isinstance(call, type):
        for method in ("forward", "call"):
            call = getattr(call, method, call)
        return signature(call)
    declared = getattr(call, "_signatures", None)  # Flax's layers have it
    if declared and declared.alternatives:
        forms = declared.alternatives
    elif get_overloads(call.__init__):
        forms = signatures.declared_signatures(call.__init__)
    else:
        forms = [signature(call)]
    return next(form for form in forms if _fits(form, args))


def _fits(form: Signature, args: Sequence[Any]) -> bool:
    try:
        form.bind(*args)
    except TypeError:
        return False
    return True


def layer_args(adapter: Adapter, name: str, form: str = "short") -> tuple[Any, ...]:
    if name == "GRU":
        has_num_inputs = "num_inputs" in signature(adapter.d2l.GRU).parameters
        return (8, 6, 2, 0.0) if has_num_inputs else (6, 2, 0.0)
    args = LAYER_ARGS[name] if name in LAYER_ARGS else adapter.layer_args[name]
    args = args if isinstance(args, tuple) else args[form]
    return tuple(resolve(adapter, x) for x in args)


def direct_call(name: str, *args: Any) -> Call:
    return lambda adapter: getattr(adapter.d2l, name), lambda adapter: args


def method_call(name: str, method: str, init_args: tuple[Any, ...], *args: Any) -> Call:
    target = instance(name, *init_args)
    return lambda adapter: getattr(target.make(adapter), method), lambda adapter: args


def cpu_call(name: str, *args: Any) -> Call:
    """Return a call of a function with the CPU as its only device, if it takes devices."""

    def get(adapter: Adapter) -> Callable[..., Any]:
        function = getattr(adapter.d2l, name)
        cpu = adapter.d2l.cpu()
        parameters = signature(function).parameters
        devices = {"device": cpu, "devices": [cpu]}
        kwargs = {key: device for key, device in devices.items() if key in parameters}
        if "strategy" in parameters:
            kwargs["strategy"] = recurrent_models(adapter).STRATEGY
        return partial(function, **kwargs)

    return get, lambda adapter: args


def constructor_call(name: str, form: str) -> Call:
    return lambda adapter: getattr(adapter.d2l, name), partial(layer_args, name=name, form=form)


def masked_loss(adapter: Adapter) -> Callable[..., Any]:
    Loss = adapter.d2l.MaskedSoftmaxCELoss
    if "valid_len" in signature(Loss).parameters:  # in TensorFlow
        return lambda pred, label, valid_len: Loss(valid_len)(label, pred)
    return Loss()


def first_call(name: str) -> Call:
    """Return the first call of a layer, whose sizes are inferred from its input."""

    def get(adapter: Adapter) -> Callable[..., Any]:
        built = adapter.build(name, *layer_args(adapter, name))
        if hasattr(built.layer, "initialize"):  # Gluon's layers must be initialized
            built.layer.initialize()
        return built

    return get, lambda adapter: INPUTS.get(name, (ROWS,))


def layer_call(name: str) -> Call:
    """Return a call of a layer whose sizes are known."""

    @cache
    def get(adapter: Adapter) -> Callable[..., Any]:
        built = adapter.build(name, *layer_args(adapter, name))
        built.randomize(*(x.array for x in INPUTS[name]))
        # Flax's layers have their variables only when bound to them.
        return built.layer.bind(built.variables) if hasattr(built, "variables") else built.layer

    return get, lambda adapter: INPUTS[name]


def masked_call(name: str, *shape: int) -> Call:
    """Return a call of a layer whose sizes are known, with a causal mask, a score bias and a window."""
    layer, _ = layer_call(name)

    def get(adapter: Adapter) -> Callable[..., Any]:
        def attend(queries: Any, keys: Any, causal: Any, score_bias: Any, window: Any) -> Any:
            masks = {"causal": causal, "score_bias": score_bias, "window": window}
            return layer(adapter)(queries, keys, keys, **masks)

        return attend

    return get, lambda adapter: (X, X, True, tensor(np.ones(shape), "float32"), 2)


def make_kv_cache(adapter: Adapter) -> Callable[..., Any]:
    """Return what makes a cache: in JAX, a class method, since the class takes arrays."""
    return getattr(adapter.d2l.KVCache, "create", adapter.d2l.KVCache)


def predict_tokens(adapter: Adapter, tokens: Any, valid_lens: Any) -> Any:
    """Return logits that depend on each token, for a vocabulary of three."""
    return adapter.tensor(np.eye(3, dtype="float32")[adapter.to_numpy(tokens) % 3])


def double(x: Any) -> Any:
    return x + x


def product(x: Any, y: Any) -> Any:
    return x * y


def halve(*numbers: Any) -> list[Any]:
    return [x / 2 for x in numbers]


def skip_step(*args: Any) -> None:
    """Take no step, in place of an optimizer's."""


def sgd_arguments(adapter: Adapter) -> tuple[Any, ...]:
    """Return arguments of the package's ``sgd``, whose parameters have gradients."""
    calls: list[tuple[Any, ...]] = []
    w = adapter.descent.variable(np.ones((8, 1), "float32"))

    def loss() -> Any:
        return adapter.d2l.reduce_sum(adapter.d2l.linreg(adapter.tensor(X.array[0]), w, 0.5))

    recorder = SimpleNamespace(sgd=lambda *args: calls.append(args))
    adapter.descent.sgd([w], loss, 0.1, 3, recorder)
    return calls[0]


def scratch_training_call(name: str, *args: Any) -> Call:
    """Return a call that trains from scratch: its arguments are a model, batches, a loss, ``args`` and a step."""

    def make_arguments(adapter: Adapter) -> tuple[Any, ...]:
        w = adapter.descent.variable(np.ones((3, 3), "float32"))
        net = Lazy(lambda adapter: lambda X: adapter.d2l.linreg(X, w, 0.0))
        batches = [LABELLED_BATCHES] * (2 if name == "train_ch3" else 1)
        loss = Lazy(lambda adapter: adapter.descent.losses)
        return net, *batches, loss, *args, Lazy(lambda adapter: adapter.descent.updater([w], 0.1))

    return lambda adapter: getattr(adapter.d2l, name), make_arguments


def recurrent_models(adapter: Adapter) -> Any:
    """Return recurrent networks as readers would write them in this framework."""
    framework = type(adapter).__module__.split(".")[-2]
    return load_recurrent_models(framework)


# A recurrent network from scratch for 6 tokens, and a vocabulary of 6 tokens.
INITIAL_WEIGHTS = {
    name: np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype("float32")
    for name, shape in {
        "W_xh": (6, 4),
        "W_hh": (4, 4),
        "b_h": (4,),
        "W_hq": (4, 6),
        "b_q": (6,),
    }.items()
}
SCRATCH_RNN = Lazy(lambda adapter: recurrent_models(adapter).make_scratch(INITIAL_WEIGHTS))
SIX_TOKENS = instance("Vocab", ["a", "b", "c", "d", "e"])
TOKEN_BATCHES = Lazy(
    lambda adapter: [(resolve(adapter, SEGMENTS), adapter.tensor(np.zeros((2, 3), "int32")))]
)


def constant_classifier(classes: int) -> Lazy:
    """Return a network whose output is the same for each input."""
    outputs = tensor(np.eye(1, classes), "float32")
    return Lazy(lambda adapter: lambda X: resolve(adapter, outputs))


BOXES = tensor([[0, 0, 0.5, 0.5], [0.1, 0, 0.6, 0.5], [0.4, 0.4, 1, 0.9]], "float32")
ANCHORS = tensor([BOXES.array], "float32")
PIXELS = tensor(np.ones((3, 3, 3)), "uint8")


def get_device(adapter: Adapter) -> Any:
    """Return a tensor's device, under the framework's name for it."""
    x = resolve(adapter, BOXES)
    return next(getattr(x, name) for name in ("device", "ctx", "place") if hasattr(x, name))


def build_optimizer(adapter: Adapter) -> Any:
    return adapter.descent.optimizer(adapter.build_linear(3, None), 0.1)


def optimizer_training_call(name: str, *args: Any) -> Call:
    """Return a call that trains with an optimizer: a linear layer, batches, a loss, the optimizer and ``args``."""

    def make_arguments(adapter: Adapter) -> tuple[Any, ...]:
        net = adapter.build_linear(
            3, {"weight": np.ones((3, 3), "float32"), "bias": np.zeros(3, "float32")}
        )
        batches = [] if name == "train_batch_ch13" else [LABELLED_BATCHES, LABELLED_BATCHES]
        loss = Lazy(lambda adapter: adapter.descent.losses)
        trainer = Lazy(lambda adapter: adapter.descent.optimizer(net, 0.1))
        return Lazy(lambda adapter: net), *batches, loss, trainer, *args

    def step(adapter: Adapter) -> Callable[..., Any]:
        batch = resolve(adapter, LOGITS), adapter.label_tensor(LABELS.array)
        function = cpu_call(name)[0](adapter)
        return lambda net, loss, trainer: function(net, *batch, loss, trainer)

    return step if name == "train_batch_ch13" else cpu_call(name)[0], make_arguments


RATING_COLUMNS = ["user_id", "item_id", "rating", "timestamp"]


def ratings_table() -> Any:
    """Return a table of two users' ratings of two films."""
    from pandas import DataFrame

    return DataFrame([(1, 2, 5, 9), (2, 1, 3, 8), (1, 1, 2, 7)], columns=RATING_COLUMNS)


RATINGS = Lazy(lambda adapter: ratings_table())
CANDIDATES = {0: [0, 1], 1: [2]}
RECOMMENDER = Lazy(
    lambda adapter: (
        lambda users, items: adapter.tensor(np.ones((len(items.asnumpy()), 1), "float32"))
    )
)


def recommender_call(name: str, *args: Any) -> Call:
    """Return a call that trains a recommender: its arguments are a network, batches, a loss, a trainer and ``args``."""

    def make_arguments(adapter: Adapter) -> tuple[Any, ...]:
        net = adapter.build_linear(
            3, {"weight": np.ones((3, 3), "float32"), "bias": np.zeros(3, "float32")}
        )
        inputs = [resolve(adapter, LOGITS)] * (3 if name == "train_ranking" else 2)
        score = Lazy(lambda adapter: lambda *inputs: net(inputs[-1]))
        loss = Lazy(lambda adapter: lambda one, other: (one - other).sum(1))
        trainer = Lazy(lambda adapter: adapter.descent.optimizer(net, 0.1))
        return score, Lazy(lambda adapter: [inputs]), None, loss, trainer, *args

    return lambda adapter: getattr(adapter.d2l, name), make_arguments


def lake_step(adapter: Adapter) -> Callable[..., Any]:
    """Return the step function of a frozen lake."""
    env = adapter.d2l.make_env("FrozenLake-v1")["env"]
    env.reset()
    return env.step


# A map, values and a policy.
MAP_VALUES_POLICY = (
    [["S", "F", "G"]],
    tensor(np.eye(2, 3), "float32"),
    tensor([[2, 2, 0]] * 2, "float32"),
)

# Valid arguments of functions and classes that are called directly.
GOOD_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "RNNLM": (instance("RNNScratch", 6, 4), 6, 0.1),
    "RNNLMScratch": (instance("RNNScratch", 6, 4), 6, 0.1),
    "RNNModel": (Lazy(lambda adapter: recurrent_models(adapter).make_rnn_models(6, 4)[0].rnn), 6),
    "RNNScratch": (6, 4, 0.1),
    "SeqDataLoader": (2, 3, False, 50),
    "TimeMachine": (2, 3, 20, 5),
    "Accumulator": (2,),
    "BasicScheduler": (instance("HPOSearcher"),),
    "Benchmark": ("one by one",),
    "EncoderDecoder": (ENCODER, DECODER),
    "FashionMNIST": (4, (28, 28)),
    "MTFraEng": (4, 9, 2, 2),
    "HPOTuner": (instance("HPOScheduler"), double),
    "RandomSearcher": ({}, {"a": 1}),
    "SuccessiveHalvingScheduler": (instance("HPOSearcher"), 2, 1, 4, 1),
    "SyntheticRegressionData": (tensor([2, -3.4], "float32"), 4.2, 0.1, 4, 2, 2),
    "Seq2Seq": (ENCODER, DECODER, 1, 0.01),
    "BlockSeq2Seq": (instance("BlockEncoder", 7, blocks()), DECODER, 1, 0.01),
    "count_transformer_parameters": (7, 2, 8, 2, 16),
    "Trainer": (2, 0, 1.0),
    "Vocab": ([["a", "b"], ["a"]], 0, ["<pad>"]),
    "RandomGenerator": ([2, 3, 4],),
    "SNLIDataset": ((["a b", "c"], ["d", "e"], [0, 2]), 2, None),
    "TokenEmbedding": ("glove.6b.50d",),
    "TrainCallback": (instance("Module"), LOGIT_BATCHES, LOGIT_BATCHES, 1, "/CPU:0"),
    "BPRLoss": (0.5, 0),
    "CTRDataset": ("nowhere.csv", {1: {"a": 0}}, {1: 1}, 2, 1),
    "HingeLossbRec": (0.5, 0),
    "BananasDataset": (True,),
    "VOCSegDataset": (True, (2, 2), "nowhere"),
    "accuracy": (LOGITS, LABELS),
    "add_to_class": (Lazy(lambda adapter: type("A", (), {})),),
    "alibi_slopes": (4,),
    "batchify": ([(1, [2], [3, 4]), (2, [1, 3], [4])],),
    "bleu": ("a b", "a b c", 2),
    "box_center_to_corner": (BOXES,),
    "box_corner_to_center": (BOXES,),
    "box_iou": (BOXES, BOXES),
    "build_array_nmt": ([["a"], ["b", "a"]], VOCAB, 3),
    "check_len": ([1, 2], 2),
    "check_shape": (X, (2, 3, 8)),
    "copyfile": ("nowhere.png", "folder"),
    "corr2d": (MATRIX, KERNEL),
    "count_corpus": (["a", "b"],),
    "download": ("fra-eng", "data", None),
    "download_extract": ("fra-eng", "data"),
    "evaluate_accuracy": (IDENTITY, LOGIT_BATCHES),
    "evaluate_loss": (LINEAR_MODEL, BATCHES, Lazy(lambda adapter: adapter.d2l.squared_loss)),
    "extract": ("fra-eng.zip", "data"),
    "frozen_lake": (0,),
    "generate": (
        Lazy(lambda adapter: partial(predict_tokens, adapter)),
        [[1, 2], [3]],
        2,
    ),
    "gpu": (0,),
    "hit_and_auc": ([3, 1, 2], [1], 2),
    "init_seq2seq": (ENCODER,),
    "get_centers_and_contexts": ([[1, 2, 3], [4, 5]], 2),
    "get_negatives": ([[2], [3, 1]], SIX_TOKENS, Counter(a=2, b=3, c=1, d=1), 2),
    "get_tokens_and_segments": (["a", "b"], ["c"]),
    "get_data_ch11": (4, 6),
    "get_fashion_mnist_labels": (LABELS,),
    "linreg": (X, tensor(np.ones((8, 1)), "float32"), tensor([0.5], "float32")),
    "load_array": (PAIR, 2, True),
    "load_data_bananas": (2,),
    "load_data_fashion_mnist": (4, 14),
    "load_corpus_time_machine": (9,),
    "load_data_imdb": (2, 3),
    "load_data_ptb": (2, 3, 1),
    "load_data_snli": (2, 3),
    "load_data_wiki": (2, 9),
    "load_data_ml100k": (RATINGS, 2, 2, "implicit"),
    "load_data_nmt": (4, 9, 2),
    "load_data_time_machine": (2, 3, False, 50),
    "load_data_voc": (2, (2, 2)),
    "longest_chain": (double, X),
    "make_env": ("FrozenLake-v1", 0),
    "masked_softmax": (X, LENS),
    "multibox_detection": (
        tensor(np.full((1, 2, 3), 0.5), "float32"),
        tensor(np.zeros((1, 12)), "float32"),
        ANCHORS,
        0.5,
        0.1,
    ),
    "multibox_prior": (X, [0.5], [1, 2]),
    "multibox_target": (ANCHORS, tensor([[[0, 0.1, 0.1, 0.5, 0.5]]], "float32")),
    "multiply_adds": (double, X),
    "next_token_probs": (LOGITS,),
    "nms": (BOXES, tensor([0.9, 0.8, 0.7], "float32"), 0.5),
    "offset_boxes": (BOXES, BOXES, 1e-6),
    "offset_inverse": (BOXES, BOXES),
    "plot": ([0, 1], [[1, 2], [3, 4]]),
    "predict_ch3": (FASHION_CLASSIFIER, FASHION_BATCHES, 2),
    "predict_sentiment": (constant_classifier(2), SIX_TOKENS, "a b"),
    "predict_snli": (constant_classifier(3), SIX_TOKENS, ["a"], ["b", "c"]),
    "seq_data_iter_random": ([1, 2, 3, 4, 5], 1, 2),
    "seq_data_iter_sequential": ([1, 2, 3, 4, 5], 1, 2),
    "read_csv_labels": ("nowhere.csv",),
    "read_data_bananas": (True,),
    "read_imdb": ("nowhere", True),
    "read_snli": ("nowhere", True),
    "read_voc_images": ("nowhere", True),
    "reorg_test": ("nowhere",),
    "reorg_train_valid": ("nowhere", {"1": "cat"}, 0.5),
    "resnet18": (2,),
    "plot_ranges": ([16, 64], {"a": [[0.5, 1], [0.25, 1]]}),
    "print_ranges": ({"a": [[0.5, 1], [0.25, 1]]},),
    "rbfkernel": (np.ones(3), np.ones(2), 0.5),
    "sequence_mask": (X, LENS, 0.5),
    "show_Q_function_progress": (*MAP_VALUES_POLICY,),
    "show_heatmaps": (np.ones((1, 2, 3, 3)), "x", "y"),
    "show_value_function_progress": (*MAP_VALUES_POLICY,),
    "subsample": ([["a", "b"], ["a"]], SIX_TOKENS),
    "show_trace_2d": (product, [(-5, -2), (-4, -1)]),
    "split_and_load_ml100k": ("random", "explicit", 0.5, 2),
    "split_data_ml100k": (RATINGS, 2, 2, "seq-aware", 0.5),
    "squared_loss": (X, X),
    "synthetic_data": (tensor([2, -3.4], "float32"), 4.2, 3),
    "tokenize": (["a b", "c"], "char"),
    "train_2d": (halve, 2, None),
    "train_ch11": (skip_step, None, {"lr": 0.1}, BATCHES, 5, 1),
    "transpose_output": (tensor(np.ones((4, 3, 4)), "float32"), 2),
    "transpose_qkv": (X, 2),
    "preprocess_nmt": ("Go.\tVa !",),
    "tokenize_nmt": ("go .\tva !", 1),
    "truncate_pad": ([1, 2], 3, 0),
    "try_gpu": (0,),
    "voc_label_indices": (PIXELS, tensor(np.zeros(2**24), "int32")),
    "voc_rand_crop": (PIXELS, PIXELS, 2, 2),
}
CALLS: dict[str, Call] = {
    "MaskedSoftmaxCELoss": (
        masked_loss,
        lambda adapter: (X, tensor([[1, 2, 3], [4, 5, 6]], adapter.INTEGER_DTYPE), LENS),
    ),
    "Residual": (
        lambda adapter: adapter.d2l.Residual,
        lambda adapter: (3, 3) if adapter.d2l.__name__.endswith("paddle") else (3,),
    ),
    **{name: direct_call(name, *args) for name, args in GOOD_ARGUMENTS.items()},
    "RNN": (
        lambda adapter: adapter.d2l.RNN,
        lambda adapter: (6, 4) if adapter.d2l.__name__.endswith("torch") else (4,),
    ),
    "RNNModelScratch": (
        lambda adapter: type(resolve(adapter, SCRATCH_RNN)),
        lambda adapter: recurrent_models(adapter).scratch_args(INITIAL_WEIGHTS),
    ),
    "grad_clipping": (
        lambda adapter: (
            lambda theta: recurrent_models(adapter).clip_gradients([np.ones(3, "float32")], theta)
        ),
        lambda adapter: (0.5,),
    ),
    "predict_ch8": cpu_call("predict_ch8", "ab", 2, SCRATCH_RNN, SIX_TOKENS),
    "train_ch8": cpu_call("train_ch8", SCRATCH_RNN, TOKEN_BATCHES, SIX_TOKENS, 0.1, 1),
    "train_epoch_ch8": (
        lambda adapter: (
            lambda train_iter, use_random_iter: recurrent_models(adapter).train_epoch(
                resolve(adapter, SCRATCH_RNN), train_iter, 0.1, use_random_iter, True
            )
        ),
        lambda adapter: (TOKEN_BATCHES, True),
    ),
    **{name: constructor_call(name, "short") for name in INPUTS},
    **{
        f"{name}, long form": constructor_call(name, "long")
        for name in ("PositionWiseFFN", "TransformerEncoder", "TransformerEncoderBlock")
    },
    **{
        f"{name}, first call": first_call(name)
        for name in ("AdditiveAttention", "MultiHeadAttention", "PositionWiseFFN")
    },
    **{f"{name}, call": layer_call(name) for name in INPUTS},
    "DotProductAttention, masks": masked_call("DotProductAttention", 3, 3),
    "MultiHeadAttention, masks": masked_call("MultiHeadAttention", 2, 3, 3),
    "Accumulator.add": method_call("Accumulator", "add", (2,), 1, 2.0),
    "Animator.add": method_call("Animator", "add", (), 1, 2.0),
    "CausalSelfAttention.make_cache": (
        lambda adapter: layer_call("CausalSelfAttention")[0](adapter).make_cache,
        lambda adapter: (2, 6),
    ),
    "TransformerBlock.make_cache": (
        lambda adapter: layer_call("TransformerBlock")[0](adapter).make_cache,
        lambda adapter: (2, 6),
    ),
    "BlockDecoder.make_caches": (
        lambda adapter: layer_call("BlockDecoder")[0](adapter).make_caches,
        lambda adapter: (2, 6),
    ),
    "LinearAttention.make_state": (
        lambda adapter: layer_call("LinearAttention")[0](adapter).make_state,
        lambda adapter: (2,),
    ),
    "KVCache": (make_kv_cache, lambda adapter: (2, 2, 4, 6)),
    "KVCache.append": (
        lambda adapter: make_kv_cache(adapter)(2, 2, 4, 6).append,
        lambda adapter: (KEYS, KEYS, LENS),
    ),
    "Classifier.accuracy": (
        lambda adapter: adapter.classifier_method("accuracy"),
        lambda adapter: (LOGITS, LABELS),
    ),
    "Classifier.loss": (
        lambda adapter: adapter.classifier_method("loss"),
        lambda adapter: (LOGITS, LABELS),
    ),
    "MTFraEng.build": method_call("MTFraEng", "build", (4,), ["go ."], ["va !"]),
    "ProgressBoard.draw": method_call("ProgressBoard", "draw", (), 1, 2.0, "loss", 1),
    "SGD": (
        lambda adapter: partial(
            adapter.d2l.SGD, *([[]] if "params" in signature(adapter.d2l.SGD).parameters else [])
        ),
        lambda adapter: (0.1,),
    ),
    "Trainer.fit": method_call("Trainer", "fit", (1,), instance("Module"), instance("DataModule")),
    "Vocab.[]": method_call("Vocab", "__getitem__", (["a"],), ["a", "b"]),
    "Vocab.to_tokens": method_call("Vocab", "to_tokens", (["a"],), [0, 1]),
    "NextSentencePred, call": first_call("NextSentencePred"),
    "TokenEmbedding.[]": (
        cache(lambda adapter: adapter.d2l.TokenEmbedding("wiki.en").__getitem__),
        lambda adapter: (["w1", "x"],),
    ),
    "Updater, call": (
        lambda adapter: adapter.d2l.Updater(
            [adapter.descent.variable(np.ones((8, 1), "float32"))], 0.1
        ),
        lambda adapter: (3, [tensor(np.ones((8, 1)), "float32")]),
    ),
    "BPRLoss, call": (lambda adapter: adapter.d2l.BPRLoss(), lambda adapter: (LOGITS, LOGITS)),
    "HingeLossbRec, call": (
        lambda adapter: adapter.d2l.HingeLossbRec(),
        lambda adapter: (LOGITS, LOGITS),
    ),
    "add_to_class, its decorator": (
        lambda adapter: adapter.d2l.add_to_class(type("A", (), {})),
        lambda adapter: (len,),
    ),
    "assign_anchor_to_bbox": (
        lambda adapter: (
            lambda ground_truth, anchors, iou_threshold: adapter.d2l.assign_anchor_to_bbox(
                ground_truth, anchors, get_device(adapter), iou_threshold
            )
        ),
        lambda adapter: (BOXES, BOXES, 0.5),
    ),
    "bbox_to_rect": (
        lambda adapter: lambda bbox: adapter.d2l.bbox_to_rect(bbox, "r"),
        lambda adapter: ([1, 2, 3, 4],),
    ),
    "evaluate_accuracy_gpu": cpu_call("evaluate_accuracy_gpu", IDENTITY, LOGIT_BATCHES),
    "evaluate_accuracy_gpus": (
        lambda adapter: adapter.d2l.evaluate_accuracy_gpus,
        lambda adapter: (optimizer_training_call("train_ch13")[1](adapter)[0], LABELLED_BATCHES),
    ),
    "evaluate_ranking": cpu_call(
        "evaluate_ranking", RECOMMENDER, CANDIDATES, None, CANDIDATES, 2, 5
    ),
    "load_array, one": (
        lambda adapter: lambda rows: adapter.d2l.load_array((rows,), 2),
        lambda adapter: (ROWS,),
    ),
    "make_env, its step": (lake_step, lambda adapter: (1,)),
    "predict_seq2seq": cpu_call("predict_seq2seq", NET, "a b", VOCAB, VOCAB, 3),
    "sgd": (lambda adapter: adapter.d2l.sgd, sgd_arguments),
    "show_bboxes": (
        lambda adapter: (
            lambda bboxes: adapter.d2l.show_bboxes(adapter.d2l.plt.gca(), bboxes, "dog")
        ),
        lambda adapter: ([[1, 2, 3, 4]],),
    ),
    "show_images": (  # a large grid would take long to draw
        lambda adapter: lambda imgs: adapter.d2l.show_images(imgs, 1, 2),
        lambda adapter: (np.ones((2, 4, 4)),),
    ),
    "show_list_len_pair_hist": (
        lambda adapter: partial(adapter.d2l.show_list_len_pair_hist, ["a", "b"], "x", "y"),
        lambda adapter: ([[1], [2, 3]], [[1]]),
    ),
    "split_batch": cpu_call("split_batch", LOGITS, LABELS),
    "split_batch_multi_inputs": cpu_call(
        "split_batch_multi_inputs", Lazy(lambda adapter: [resolve(adapter, LOGITS)] * 2), LABELS
    ),
    "train_ch3": scratch_training_call("train_ch3", 1),
    "train_ch6": cpu_call(
        "train_ch6",
        Lazy(lambda adapter: adapter.descent.prepare_model(lambda: adapter.build_linear(3, None))),
        *(LABELLED_BATCHES, LABELLED_BATCHES, 1, 0.1),
    ),
    "train_batch_ch13": optimizer_training_call("train_batch_ch13"),
    "train_ch13": optimizer_training_call("train_ch13", 1),
    "train_concise_ch11": (
        lambda adapter: adapter.d2l.train_concise_ch11,
        lambda adapter: (*adapter.descent.concise_optimizer(0.1), BATCHES, 1),
    ),
    "train_epoch_ch3": scratch_training_call("train_epoch_ch3"),
    "train_ranking": recommender_call(
        "train_ranking",
        *(None, 2, 2, 1, None, Lazy(lambda adapter: lambda *args: (0.5, 0.5)), {}, 1),
    ),
    "train_recsys_rating": recommender_call(
        "train_recsys_rating", 1, None, Lazy(lambda adapter: lambda *args: 0.5)
    ),
    "train_seq2seq": cpu_call("train_seq2seq", NET, [], 0.1, 1, VOCAB),
}


def image_model_call(name: str, *args: Any) -> Call:
    """Return a call that makes and calls an image model, since JAX checks its sizes only in a call."""

    def get(adapter: Adapter) -> Callable[..., Any]:
        kind = getattr(adapter.d2l, name)

        def make(*args: Any, **kwargs: Any) -> Any:
            model = kind(*args, **kwargs)
            if hasattr(model, "initialize"):  # Gluon's models must be initialized
                model.initialize(force_reinit=True)
            return adapter.layer(model)(np.ones((2, 4, 4, 4), "float32"))

        vars(make)["__signature__"] = find_signature(kind, args)
        return make

    return get, lambda adapter: args


# Calls that are only made with bad arguments: with good ones they take too long or need too much data.
ERROR_CALLS: dict[str, Call] = {
    "train_epoch_ch8, its functions": (
        lambda adapter: partial(cpu_call("train_epoch_ch8")[0](adapter), use_random_iter=False),
        lambda adapter: (
            max,
            TOKEN_BATCHES,
            max,
            build_optimizer(adapter) if "tensorflow" in adapter.d2l.__name__ else max,
        ),
    ),
    "LeNet": image_model_call("LeNet", 0.1, 10),
    "LinearRegressionScratch": image_model_call("LinearRegressionScratch", 4, 0.1, 0.01),
    "ResNeXtBlock": image_model_call("ResNeXtBlock", 4, 2, 1),
    "SoftmaxRegression": image_model_call("SoftmaxRegression", 3, 0.1),
    "hpo_objective_lenet": direct_call("hpo_objective_lenet", 0.1, 4, 1),
    "update_D": direct_call("update_D", LOGITS, LOGITS, max, max, max, None),
    "update_G": direct_call("update_G", LOGITS, max, max, max, None),
}

# Names that are not called. The framework's own functions under D2L's names are not called either.
SKIPPED = {
    name: reason
    for reason, names in {
        "abstract": "AttentionDecoder Decoder Encoder HPOScheduler HPOSearcher",
        "weights are converted in test_blocks.py": "convert_weights",
        "not callable": "DATA_HUB DATA_URL VOC_CLASSES VOC_COLORMAP",
        "any argument is stored": "DataModule HyperParameters Module LinearRegression",
        "an alias of TransformerEncoderBlock": "EncoderBlock",
        "a Trainer": "HPOTrainer",
        "no arguments": """
            Timer cpu download_all get_dataloader_workers num_gpus read_ptb read_data_ml100k read_data_nmt read_time_machine
            try_all_gpus use_svg_display voc_colormap2label""",
        "matplotlib's arguments": "annotate set_axes set_figsize",
        "other layers are ignored": "init_cnn",
        "the framework's own": "nn_Module",
    }.items()
    for name in names.split()
}
