"""Of each public name the calls that work: what is called, and with what."""

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
from tests.shim.each.recurrent import load_reader


@dataclass(frozen=True)
class Own:
    """A value that is the framework's own, or knows it: made for each call."""

    make: Callable[[Adapter], Any]
    array: Any = None  # of a tensor


def tensor(array: Any, dtype: str) -> Own:
    array = np.asarray(array, dtype)
    return Own(lambda adapter: adapter.tensor(array), array)


def instance(name: str, *args: Any) -> Own:
    return Own(lambda adapter: getattr(adapter.d2l, name)(*(value(adapter, x) for x in args)))


def value(adapter: Adapter, x: Any) -> Any:
    return x.make(adapter) if isinstance(x, Own) else x


# What is called, made for the framework whose face that is, and good arguments for it.
Call = tuple[Callable[[Adapter], Callable[..., Any]], Callable[[Adapter], tuple[Any, ...]]]

X = tensor(np.linspace(-1, 1, 48).reshape(2, 3, 8), "float32")
TOKENS, LENS = tensor([[1, 2, 3], [4, 5, 6]], "int32"), tensor([1, 3], "int32")
LOGITS, LABELS = tensor(np.eye(2, 3), "float32"), tensor([0, 2], "int32")
VOCAB = instance("Vocab", ["a"], 0, ["<pad>", "<bos>", "<eos>"])
ROWS = tensor(np.linspace(-1, 1, 30).reshape(6, 5), "float32")
PAIR = Own(lambda adapter: (value(adapter, ROWS), adapter.tensor(np.ones((6, 1), "float32"))))
SUMMED = Own(
    lambda adapter: lambda X: adapter.d2l.linreg(X, adapter.tensor(np.ones((5, 1), "float32")), 0.5)
)
GUESSED = Own(lambda adapter: [(value(adapter, LOGITS), value(adapter, LABELS))])
LABELLED = Own(
    lambda adapter: adapter.d2l.load_array(
        (value(adapter, LOGITS), adapter.labels(LABELS.array)), 2, False
    )
)
CHOOSE = Own(lambda adapter: lambda X: X)
CLOTHES = Own(lambda adapter: lambda X: adapter.tensor(np.eye(2, 10, dtype="float32")))
PICTURES = Own(
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
    "DotProductAttention": (X, X, X, LENS),
    "GRU": (X,),
    "MultiHeadAttention": (X, X, X, LENS),
    "PositionWiseFFN": (X,),
    "PositionalEncoding": (X,),
    "RotaryEncoding": (X,),
    "Seq2SeqEncoder": (TOKENS,),
    "TransformerEncoder": (TOKENS, LENS),
    "TransformerEncoderBlock": (X, LENS),
}
SIZES: dict[str, tuple[Any, ...]] = {
    "BERTEncoder": (7, 8, 16, 2, 1, 0.0, 6),
    "BERTModel": (7, 8, 16, 2, 1, 0.0, 6),
    "MaskLM": (7, 6),
    "NextSentencePred": (),
    "AdditiveAttention": (8, 0.0),
    "DotProductAttention": (0.0,),
    "MultiHeadAttention": (8, 2, 0.0),
    "PositionalEncoding": (8, 0.0, 10),
    "RotaryEncoding": (8, 10),
    "Seq2SeqEncoder": (7, 6, 4, 2, 0.0),
}


def signature_of(call: Callable[..., Any], args: Sequence[Any]) -> Signature:
    """Return a call's signature; of several, the first that fits these arguments."""
    if isinstance(call, adapter.Layer):
        call = call.layer
    if not isinstance(call, type):
        for method in ("forward", "call"):
            call = getattr(call, method, call)
        return signature(call)
    its = getattr(call, "_signatures", None)  # Flax's layers have them there
    if its and its.alternatives:
        forms = its.alternatives
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


def sizes(adapter: Adapter, name: str, form: str = "short") -> tuple[Any, ...]:
    if name == "GRU":
        told = "num_inputs" in signature(adapter.d2l.GRU).parameters
        return (8, 6, 2, 0.0) if told else (6, 2, 0.0)
    found = SIZES[name] if name in SIZES else adapter.FORMS[name]
    return found if isinstance(found, tuple) else found[form]


def itself(name: str, *args: Any) -> Call:
    return lambda adapter: getattr(adapter.d2l, name), lambda adapter: args


def method(name: str, which: str, made_of: tuple[Any, ...], *args: Any) -> Call:
    return lambda adapter: getattr(
        instance(name, *made_of).make(adapter), which
    ), lambda adapter: args


def on_the_cpu(name: str, *args: Any) -> Call:
    """A function; where it asks for a device, or for several, it gets the CPU."""

    def get(adapter: Adapter) -> Callable[..., Any]:
        function, cpu = getattr(adapter.d2l, name), adapter.d2l.cpu()
        asked_for = signature(function).parameters
        places = {"device": cpu, "devices": [cpu]}
        given = {name: place for name, place in places.items() if name in asked_for}
        if "strategy" in asked_for:
            given["strategy"] = readers(adapter).STRATEGY
        return partial(function, **given)

    return get, lambda adapter: args


def made(name: str, form: str) -> Call:
    return lambda adapter: getattr(adapter.d2l, name), lambda adapter: sizes(adapter, name, form)


def first(name: str) -> Call:
    """A layer that takes its sizes from what it is given."""

    def get(adapter: Adapter) -> Callable[..., Any]:
        built = adapter.build(name, *sizes(adapter, name))
        if hasattr(built.layer, "initialize"):  # Gluon's must be
            built.layer.initialize()
        return built

    return get, lambda adapter: INPUTS.get(name, (ROWS,))


def used(name: str) -> Call:
    """One that has its sizes."""

    @cache
    def get(adapter: Adapter) -> Callable[..., Any]:
        built = adapter.build(name, *sizes(adapter, name))
        built.randomize(*(x.array for x in INPUTS[name]))
        # Flax's knows its variables only where it is bound to them.
        return built.layer.bind(built.variables) if hasattr(built, "variables") else built.layer

    return get, lambda adapter: INPUTS[name]


def masked(name: str, *shape: int) -> Call:
    """One that has its sizes, with a causal mask and a bias of the scores."""
    layer, _ = used(name)

    def get(adapter: Adapter) -> Callable[..., Any]:
        def attend(queries: Any, keys: Any, causal: Any, score_bias: Any) -> Any:
            return layer(adapter)(queries, keys, keys, causal=causal, score_bias=score_bias)

        return attend

    return get, lambda adapter: (X, X, True, tensor(np.ones(shape), "float32"))


def doubled(x: Any) -> Any:
    return x + x


def product(x: Any, y: Any) -> Any:
    return x * y


def halved(*numbers: Any) -> list[Any]:
    return [x / 2 for x in numbers]


def nothing(*args: Any) -> None:
    """A step that changes nothing."""


def with_gradients(adapter: Adapter) -> tuple[Any, ...]:
    """What a step of the face's ``sgd`` is given."""
    kept: list[tuple[Any, ...]] = []
    w = adapter.descent.variable(np.ones((8, 1), "float32"))

    def loss() -> Any:
        return adapter.d2l.reduce_sum(adapter.d2l.linreg(adapter.tensor(X.array[0]), w, 0.5))

    recorder = SimpleNamespace(sgd=lambda *args: kept.append(args))
    adapter.descent.sgd([w], loss, 0.1, 3, recorder)
    return kept[0]


def epochs(name: str, *args: Any) -> Call:
    """Of training from scratch: a model, batches, a loss, and a step; before the step, these arguments."""

    def good(adapter: Adapter) -> tuple[Any, ...]:
        w = adapter.descent.variable(np.ones((3, 3), "float32"))
        net = Own(lambda adapter: lambda X: adapter.d2l.linreg(X, w, 0.0))
        batches = [LABELLED] * (2 if name == "train_ch3" else 1)
        loss = Own(lambda adapter: adapter.descent.losses)
        return net, *batches, loss, *args, Own(lambda adapter: adapter.descent.updater([w], 0.1))

    return lambda adapter: getattr(adapter.d2l, name), good


def readers(adapter: Adapter) -> Any:
    """How the framework's readers write recurrent networks."""
    framework = type(adapter).__module__.split(".")[-2]
    return load_reader(framework)


# A model of functions, with 6 tokens, and a vocabulary of as many.
START = {
    name: np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype("float32")
    for name, shape in {
        "W_xh": (6, 4),
        "W_hh": (4, 4),
        "b_h": (4,),
        "W_hq": (4, 6),
        "b_q": (6,),
    }.items()
}
SPEAKER = Own(lambda adapter: readers(adapter).from_functions(START))
SIX = instance("Vocab", ["a", "b", "c", "d", "e"])
NEXT = Own(lambda adapter: [(value(adapter, SEGMENTS), adapter.tensor(np.zeros((2, 3), "int32")))])


def told(classes: int) -> Own:
    """A network that says the same of everything."""
    outputs = tensor(np.eye(1, classes), "float32")
    return Own(lambda adapter: lambda X: value(adapter, outputs))


BOXES = tensor([[0, 0, 0.5, 0.5], [0.1, 0, 0.6, 0.5], [0.4, 0.4, 1, 0.9]], "float32")
ANCHORS = tensor([BOXES.array], "float32")
PIXELS = tensor(np.ones((3, 3, 3)), "uint8")


def _place(adapter: Adapter) -> Any:
    """Of a tensor, by the framework's name for it."""
    x = value(adapter, BOXES)
    return next(getattr(x, name) for name in ("device", "ctx", "place") if hasattr(x, name))


def optimizer(adapter: Adapter) -> Any:
    return adapter.descent.optimizer(adapter.linear(3, None), 0.1)


def stepping(name: str, *args: Any) -> Call:
    """Of training by an optimizer: a linear layer, batches, a loss, the optimizer, and these arguments."""

    def good(adapter: Adapter) -> tuple[Any, ...]:
        net = adapter.linear(
            3, {"weight": np.ones((3, 3), "float32"), "bias": np.zeros(3, "float32")}
        )
        batches = [] if name == "train_batch_ch13" else [LABELLED, LABELLED]
        loss = Own(lambda adapter: adapter.descent.losses)
        trainer = Own(lambda adapter: adapter.descent.optimizer(net, 0.1))
        return Own(lambda adapter: net), *batches, loss, trainer, *args

    def step(adapter: Adapter) -> Callable[..., Any]:
        batch = value(adapter, LOGITS), adapter.labels(LABELS.array)
        function = on_the_cpu(name)[0](adapter)
        return lambda net, loss, trainer: function(net, *batch, loss, trainer)

    return step if name == "train_batch_ch13" else on_the_cpu(name)[0], good


FILMS = ["user_id", "item_id", "rating", "timestamp"]


def films() -> Any:
    """Ratings of two users and two films, as a table."""
    from pandas import DataFrame

    return DataFrame([(1, 2, 5, 9), (2, 1, 3, 8), (1, 1, 2, 7)], columns=FILMS)


RATED, SHOWN = Own(lambda adapter: films()), {0: [0, 1], 1: [2]}
LIKED = Own(
    lambda adapter: (
        lambda users, items: adapter.tensor(np.ones((len(items.asnumpy()), 1), "float32"))
    )
)


def recommending(name: str, *args: Any) -> Call:
    """Of training a model of films: before these arguments a network, batches, a loss and a trainer."""

    def good(adapter: Adapter) -> tuple[Any, ...]:
        net = adapter.linear(
            3, {"weight": np.ones((3, 3), "float32"), "bias": np.zeros(3, "float32")}
        )
        inputs = [value(adapter, LOGITS)] * (3 if name == "train_ranking" else 2)
        score = Own(lambda adapter: lambda *inputs: net(inputs[-1]))
        loss = Own(lambda adapter: lambda one, other: (one - other).sum(1))
        trainer = Own(lambda adapter: adapter.descent.optimizer(net, 0.1))
        return score, Own(lambda adapter: [inputs]), None, loss, trainer, *args

    return lambda adapter: getattr(adapter.d2l, name), good


def walking(adapter: Adapter) -> Callable[..., Any]:
    """A step on the frozen lake."""
    env = adapter.d2l.make_env("FrozenLake-v1")["env"]
    env.reset()
    return env.step


# A map, values and a policy.
LEARNED = [["S", "F", "G"]], tensor(np.eye(2, 3), "float32"), tensor([[2, 2, 0]] * 2, "float32")

# Good arguments of functions and classes that are called as they are.
GOOD: dict[str, tuple[Any, ...]] = {
    "RNNLM": (instance("RNNScratch", 6, 4), 6, 0.1),
    "RNNLMScratch": (instance("RNNScratch", 6, 4), 6, 0.1),
    "RNNModel": (Own(lambda adapter: readers(adapter).layers(6, 4)[0].rnn), 6),
    "RNNScratch": (6, 4, 0.1),
    "SeqDataLoader": (2, 3, False, 50),
    "TimeMachine": (2, 3, 20, 5),
    "Accumulator": (2,),
    "BasicScheduler": (instance("HPOSearcher"),),
    "Benchmark": ("one by one",),
    "EncoderDecoder": (ENCODER, DECODER),
    "FashionMNIST": (4, (28, 28)),
    "MTFraEng": (4, 9, 2, 2),
    "HPOTuner": (instance("HPOScheduler"), doubled),
    "RandomSearcher": ({}, {"a": 1}),
    "SyntheticRegressionData": (tensor([2, -3.4], "float32"), 4.2, 0.1, 4, 2, 2),
    "Seq2Seq": (ENCODER, DECODER, 1, 0.01),
    "Trainer": (2, 0, 1.0),
    "Vocab": ([["a", "b"], ["a"]], 0, ["<pad>"]),
    "RandomGenerator": ([2, 3, 4],),
    "SNLIDataset": ((["a b", "c"], ["d", "e"], [0, 2]), 2, None),
    "TokenEmbedding": ("glove.6b.50d",),
    "TrainCallback": (instance("Module"), GUESSED, GUESSED, 1, "/CPU:0"),
    "BPRLoss": (0.5, 0),
    "CTRDataset": ("nowhere.csv", {1: {"a": 0}}, {1: 1}, 2, 1),
    "HingeLossbRec": (0.5, 0),
    "BananasDataset": (True,),
    "VOCSegDataset": (True, (2, 2), "nowhere"),
    "accuracy": (LOGITS, LABELS),
    "add_to_class": (Own(lambda adapter: type("A", (), {})),),
    "alibi_slopes": (4,),
    "batchify": ([(1, [2], [3, 4]), (2, [1, 3], [4])],),
    "bleu": ("a b", "a b c", 2),
    "box_center_to_corner": (BOXES,),
    "box_corner_to_center": (BOXES,),
    "box_iou": (BOXES, BOXES),
    "check_len": ([1, 2], 2),
    "check_shape": (X, (2, 3, 8)),
    "copyfile": ("nowhere.png", "folder"),
    "corr2d": (MATRIX, KERNEL),
    "count_corpus": (["a", "b"],),
    "download": ("fra-eng", "data", None),
    "download_extract": ("fra-eng", "data"),
    "evaluate_accuracy": (CHOOSE, GUESSED),
    "evaluate_loss": (SUMMED, BATCHES, Own(lambda adapter: adapter.d2l.squared_loss)),
    "extract": ("fra-eng.zip", "data"),
    "frozen_lake": (0,),
    "gpu": (0,),
    "hit_and_auc": ([3, 1, 2], [1], 2),
    "init_seq2seq": (ENCODER,),
    "get_centers_and_contexts": ([[1, 2, 3], [4, 5]], 2),
    "get_negatives": ([[2], [3, 1]], SIX, Counter(a=2, b=3, c=1, d=1), 2),
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
    "load_data_ml100k": (RATED, 2, 2, "implicit"),
    "load_data_nmt": (4, 9, 2),
    "load_data_time_machine": (2, 3, False, 50),
    "load_data_voc": (2, (2, 2)),
    "longest_chain": (doubled, X),
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
    "multiply_adds": (doubled, X),
    "nms": (BOXES, tensor([0.9, 0.8, 0.7], "float32"), 0.5),
    "offset_boxes": (BOXES, BOXES, 1e-6),
    "offset_inverse": (BOXES, BOXES),
    "plot": ([0, 1], [[1, 2], [3, 4]]),
    "predict_ch3": (CLOTHES, PICTURES, 2),
    "predict_sentiment": (told(2), SIX, "a b"),
    "predict_snli": (told(3), SIX, ["a"], ["b", "c"]),
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
    "rbfkernel": (np.ones(3), np.ones(2), 0.5),
    "sequence_mask": (X, LENS, 0.5),
    "show_Q_function_progress": (*LEARNED,),
    "show_heatmaps": (np.ones((1, 2, 3, 3)), "x", "y"),
    "show_value_function_progress": (*LEARNED,),
    "subsample": ([["a", "b"], ["a"]], SIX),
    "show_trace_2d": (product, [(-5, -2), (-4, -1)]),
    "split_and_load_ml100k": ("random", "explicit", 0.5, 2),
    "split_data_ml100k": (RATED, 2, 2, "seq-aware", 0.5),
    "squared_loss": (X, X),
    "synthetic_data": (tensor([2, -3.4], "float32"), 4.2, 3),
    "tokenize": (["a b", "c"], "char"),
    "train_2d": (halved, 2, None),
    "train_ch11": (nothing, None, {"lr": 0.1}, BATCHES, 5, 1),
    "transpose_output": (tensor(np.ones((4, 3, 4)), "float32"), 2),
    "transpose_qkv": (X, 2),
    "truncate_pad": ([1, 2], 3, 0),
    "try_gpu": (0,),
    "voc_label_indices": (PIXELS, tensor(np.zeros(2**24), "int32")),
    "voc_rand_crop": (PIXELS, PIXELS, 2, 2),
}
CALLS: dict[str, Call] = {
    "Residual": (
        lambda adapter: adapter.d2l.Residual,
        lambda adapter: (3, 3) if adapter.d2l.__name__.endswith("paddle") else (3,),
    ),
    **{name: itself(name, *args) for name, args in GOOD.items()},
    "RNN": (
        lambda adapter: adapter.d2l.RNN,
        lambda adapter: (6, 4) if adapter.d2l.__name__.endswith("torch") else (4,),
    ),
    "RNNModelScratch": (
        lambda adapter: type(value(adapter, SPEAKER)),
        lambda adapter: readers(adapter).functions(START),
    ),
    "grad_clipping": (
        lambda adapter: lambda theta: readers(adapter).clipped([np.ones(3, "float32")], theta),
        lambda adapter: (0.5,),
    ),
    "predict_ch8": on_the_cpu("predict_ch8", "ab", 2, SPEAKER, SIX),
    "train_ch8": on_the_cpu("train_ch8", SPEAKER, NEXT, SIX, 0.1, 1),
    "train_epoch_ch8": (
        lambda adapter: (
            lambda train_iter, use_random_iter: readers(adapter).train_epoch(
                value(adapter, SPEAKER), train_iter, 0.1, use_random_iter, True
            )
        ),
        lambda adapter: (NEXT, True),
    ),
    **{name: made(name, "short") for name in INPUTS},
    **{
        f"{name}, long form": made(name, "long")
        for name in ("PositionWiseFFN", "TransformerEncoder", "TransformerEncoderBlock")
    },
    **{
        f"{name}, first call": first(name)
        for name in ("AdditiveAttention", "MultiHeadAttention", "PositionWiseFFN")
    },
    **{f"{name}, call": used(name) for name in INPUTS},
    "DotProductAttention, masks": masked("DotProductAttention", 3, 3),
    "MultiHeadAttention, masks": masked("MultiHeadAttention", 2, 3, 3),
    "Accumulator.add": method("Accumulator", "add", (2,), 1, 2.0),
    "Animator.add": method("Animator", "add", (), 1, 2.0),
    "Classifier.accuracy": (
        lambda adapter: adapter.classifier("accuracy"),
        lambda adapter: (LOGITS, LABELS),
    ),
    "Classifier.loss": (
        lambda adapter: adapter.classifier("loss"),
        lambda adapter: (LOGITS, LABELS),
    ),
    "MTFraEng.build": method("MTFraEng", "build", (4,), ["go ."], ["va !"]),
    "ProgressBoard.draw": method("ProgressBoard", "draw", (), 1, 2.0, "loss", 1),
    "SGD": (
        lambda adapter: partial(
            adapter.d2l.SGD, *([[]] if "params" in signature(adapter.d2l.SGD).parameters else [])
        ),
        lambda adapter: (0.1,),
    ),
    "Trainer.fit": method("Trainer", "fit", (1,), instance("Module"), instance("DataModule")),
    "Vocab.[]": method("Vocab", "__getitem__", (["a"],), ["a", "b"]),
    "Vocab.to_tokens": method("Vocab", "to_tokens", (["a"],), [0, 1]),
    "NextSentencePred, call": first("NextSentencePred"),
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
                ground_truth, anchors, _place(adapter), iou_threshold
            )
        ),
        lambda adapter: (BOXES, BOXES, 0.5),
    ),
    "bbox_to_rect": (
        lambda adapter: lambda bbox: adapter.d2l.bbox_to_rect(bbox, "r"),
        lambda adapter: ([1, 2, 3, 4],),
    ),
    "evaluate_accuracy_gpu": on_the_cpu("evaluate_accuracy_gpu", CHOOSE, GUESSED),
    "evaluate_accuracy_gpus": (
        lambda adapter: adapter.d2l.evaluate_accuracy_gpus,
        lambda adapter: (stepping("train_ch13")[1](adapter)[0], LABELLED),
    ),
    "evaluate_ranking": on_the_cpu("evaluate_ranking", LIKED, SHOWN, None, SHOWN, 2, 5),
    "load_array, one": (
        lambda adapter: lambda rows: adapter.d2l.load_array((rows,), 2),
        lambda adapter: (ROWS,),
    ),
    "make_env, its step": (walking, lambda adapter: (1,)),
    "predict_seq2seq": on_the_cpu("predict_seq2seq", NET, "a b", VOCAB, VOCAB, 3),
    "sgd": (lambda adapter: adapter.d2l.sgd, with_gradients),
    "show_bboxes": (
        lambda adapter: (
            lambda bboxes: adapter.d2l.show_bboxes(adapter.d2l.plt.gca(), bboxes, "dog")
        ),
        lambda adapter: ([[1, 2, 3, 4]],),
    ),
    "show_images": (  # of a large grid it would draw all places
        lambda adapter: lambda imgs: adapter.d2l.show_images(imgs, 1, 2),
        lambda adapter: (np.ones((2, 4, 4)),),
    ),
    "show_list_len_pair_hist": (
        lambda adapter: partial(adapter.d2l.show_list_len_pair_hist, ["a", "b"], "x", "y"),
        lambda adapter: ([[1], [2, 3]], [[1]]),
    ),
    "split_batch": on_the_cpu("split_batch", LOGITS, LABELS),
    "split_batch_multi_inputs": on_the_cpu(
        "split_batch_multi_inputs", Own(lambda adapter: [value(adapter, LOGITS)] * 2), LABELS
    ),
    "train_ch3": epochs("train_ch3", 1),
    "train_ch6": on_the_cpu(
        "train_ch6",
        Own(lambda adapter: adapter.descent.prepare_model(lambda: adapter.linear(3, None))),
        *(LABELLED, LABELLED, 1, 0.1),
    ),
    "train_batch_ch13": stepping("train_batch_ch13"),
    "train_ch13": stepping("train_ch13", 1),
    "train_concise_ch11": (
        lambda adapter: adapter.d2l.train_concise_ch11,
        lambda adapter: (*adapter.descent.concise(0.1), BATCHES, 1),
    ),
    "train_epoch_ch3": epochs("train_epoch_ch3"),
    "train_ranking": recommending(
        *(
            "train_ranking",
            None,
            2,
            2,
            1,
            None,
            Own(lambda adapter: lambda *args: (0.5, 0.5)),
            {},
            1,
        )
    ),
    "train_recsys_rating": recommending(
        "train_recsys_rating", 1, None, Own(lambda adapter: lambda *args: 0.5)
    ),
    "train_seq2seq": on_the_cpu("train_seq2seq", NET, [], 0.1, 1, VOCAB),
}


def made_and_called(name: str, *args: Any) -> Call:
    """A model of pictures. It is called, too: JAX's looks at its sizes only then."""

    def get(adapter: Adapter) -> Callable[..., Any]:
        kind = getattr(adapter.d2l, name)

        def make(*args: Any, **kwargs: Any) -> Any:
            model = kind(*args, **kwargs)
            if hasattr(model, "initialize"):  # Gluon's must be
                model.initialize(force_reinit=True)
            return adapter.layer(model)(np.ones((2, 4, 4, 4), "float32"))

        vars(make)["__signature__"] = signature_of(kind, args)
        return make

    return get, lambda adapter: args


# Calls that are too slow, or need too much, to be made with good arguments.
REFUSED_ONLY: dict[str, Call] = {
    "train_epoch_ch8, its functions": (
        lambda adapter: partial(on_the_cpu("train_epoch_ch8")[0](adapter), use_random_iter=False),
        lambda adapter: (
            max,
            NEXT,
            max,
            optimizer(adapter) if "tensorflow" in adapter.d2l.__name__ else max,
        ),
    ),
    "LeNet": made_and_called("LeNet", 0.1, 10),
    "LinearRegressionScratch": made_and_called("LinearRegressionScratch", 4, 0.1, 0.01),
    "ResNeXtBlock": made_and_called("ResNeXtBlock", 4, 2, 1),
    "SoftmaxRegression": made_and_called("SoftmaxRegression", 3, 0.1),
    "hpo_objective_lenet": itself("hpo_objective_lenet", 0.1, 4, 1),
    "update_D": itself("update_D", LOGITS, LOGITS, max, max, max, None),
    "update_G": itself("update_G", LOGITS, max, max, max, None),
}

# Of these nothing is called; nor of the framework's own functions, under D2L's names.
LEFT_OUT = {
    name: why
    for why, names in {
        "to be defined": "AttentionDecoder Decoder Encoder HPOScheduler HPOSearcher",
        "no function": "DATA_HUB DATA_URL VOC_CLASSES VOC_COLORMAP",
        "keeps what it is given": "DataModule HyperParameters Module LinearRegression",
        "it is TransformerEncoderBlock": "EncoderBlock",
        "it is a Trainer": "HPOTrainer",
        "nothing can be given": """
            Timer cpu get_dataloader_workers num_gpus read_ptb read_data_ml100k read_time_machine
            try_all_gpus use_svg_display voc_colormap2label""",
        "its arguments are matplotlib's": "annotate set_axes set_figsize",
        "of what is no such layer it leaves everything as it is": "init_cnn",
        "the framework's own": "nn_Module",
    }.items()
    for name in names.split()
}
