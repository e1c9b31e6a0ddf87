"""Bad calls of what models are made of and trained with: the same words in every face.

One table, by name. That no public name is forgotten is a test, too.
"""

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from d2l_compat import common
from tests.faces.calls import films

X = np.zeros((2, 3, 8), "float32")
TOKENS = np.zeros((2, 3), "int32")
BOXES = np.array([[0, 0, 1, 1]] * 3, "float32")
PICTURES = np.ones((2, 4, 4, 4), "float32")
Call = Callable[[ModuleType], Any]


def built(name: str, *inputs: Any) -> Call:
    """Call a layer of widths of 8."""

    def call(face: ModuleType) -> Any:
        return face.build(name, *SIZES[name](face))(*inputs)

    return call


def made(name: str, *args: Any, **kwargs: Any) -> Call:
    return lambda face: face.build(name, *args, **kwargs)


def called(name: str, *args: Any, **kwargs: Any) -> Call:
    return lambda face: face.call(name, *args, **kwargs)


def _recurrent(face: ModuleType, name: str, num_hiddens: int) -> Any:
    """Of a layer of the framework's; PyTorch's is told how many inputs there are as well."""
    sizes = (5, num_hiddens) if face.d2l.__name__.endswith("torch") else (num_hiddens,)
    return getattr(face.d2l, name)(*sizes)


def _needs_device(face: ModuleType) -> bool:
    """In PyTorch and MXNet, D2L's functions for parameters and states are told a device."""
    return face.d2l.__name__.endswith(("torch", "mxnet"))


def _predicts_on(face: ModuleType) -> bool:
    """In TensorFlow, D2L's functions of recurrent networks are told no device."""
    return not face.d2l.__name__.endswith("tensorflow")


def asked(name: str, *args: Any, **kwargs: Any) -> Call:
    """As it is: no tensors are made of arrays."""
    return lambda face: getattr(face.d2l, name)(*args, **kwargs)


def judged(which: str, Y_hat: Any, Y: Any) -> Call:
    """A classifier's loss or accuracy."""
    return lambda face: face.classifier(which)(face.tensor(Y_hat), face.tensor(Y))


def pictured(face: ModuleType, model: Any, X: Any = PICTURES) -> Any:
    """Call a model, which in JAX makes its layers then; it has its parameters in MXNet."""
    if hasattr(model, "initialize"):
        model.initialize(force_reinit=True)
    return face.layer(model)(X)


def recommending(name: str, batches: Any, num_epochs: int, evaluator: Any, *others: Any) -> Call:
    """Train a model of films."""

    def call(face: ModuleType) -> Any:
        trainer = face.descent.optimizer(face.linear(3, None), 0.1)
        sizes = (None, 2, 2) if name == "train_ranking" else ()
        given = max, batches, [], max, trainer, *sizes, num_epochs, None, evaluator
        return getattr(face.d2l, name)(*given, *({}, *others)[: 2 * bool(sizes)])

    return call


def regression_loss(face: ModuleType, model: Any) -> Any:
    """Of 2 predictions and 3 labels."""
    y_hat, y = face.tensor(X[0, :2, :1]), face.tensor(X[0, :, 0])
    if "state" not in signature(model.loss).parameters:
        return model.loss(y_hat, y)
    return model.loss({}, (y_hat,), y, SimpleNamespace(apply_fn=lambda variables, X: X))


SIZES: dict[str, Callable[[ModuleType], tuple[Any, ...]]] = {
    "AddNorm": lambda face: face.FORMS["AddNorm"],
    "AdditiveAttention": lambda face: (8, 0.0),
    "PositionWiseFFN": lambda face: face.FORMS["PositionWiseFFN"]["short"],
    "Seq2SeqEncoder": lambda face: (7, 6, 4, 2),
    "TransformerEncoder": lambda face: face.FORMS["TransformerEncoder"]["short"],
}

BERT = 7, 8, 16, 2, 2, 0.0, 4  # of 7 tokens, and 4 positions
PAIR = SimpleNamespace(tokens=TOKENS, segments=TOKENS, lens=None, positions=TOKENS)


def bert(**other: Any) -> Call:
    """Call BERT with good arguments, save these."""
    given = vars(PAIR) | other
    return lambda face: _ready(face.build("BERTModel", *BERT))(*given.values())


def _ready(layer: Any) -> Any:
    """In MXNet a layer has its parameters then."""
    if hasattr(layer.layer, "initialize"):
        layer.layer.initialize()
    return layer


# Of a vocabulary of 7.
NO_TOKENS = {
    name: [
        *(
            (
                built(name, np.array([[0, token]], "int32"), *valid_lens),
                ValueError,
                f"X: got a token of {token}",
                "tokens from 0 to 6, of a vocabulary of 7",
            )
            for token in (7, 400, -1, -5)
        ),
        (
            built(name, np.array([[0, 1.5]], "float32"), *valid_lens),
            ValueError,
            "X: got dtype float32 with fractions",
            "whole numbers",
        ),
        (
            built(name, np.array([[True, False]]), *valid_lens),
            TypeError,
            "X: got dtype bool",
            "an integer dtype",
        ),
    ]
    for name, valid_lens in {"Seq2SeqEncoder": [], "TransformerEncoder": [None]}.items()
}

# The call, the error, what was given, what is needed.
CASES: dict[str, list[tuple[Call, type[Exception], str, str]]] = {
    "AddNorm": [
        (
            built("AddNorm", X, X[:1]),
            ValueError,
            "X and Y: got shapes (2, 3, 8) and (1, 3, 8)",
            "two equal ones",
        ),
        (
            lambda face: face.build("AddNorm", *face.FORMS["AddNorm"][:-1], 2),
            ValueError,
            "dropout: got 2",
            "from 0 to 1",
        ),
    ],
    "AdditiveAttention": [
        (
            made("AdditiveAttention", 8),
            TypeError,
            "AdditiveAttention: missing a required argument: 'dropout'",
            "need (num_hiddens, dropout)",
        ),
        (made("AdditiveAttention", 0, 0.1), ValueError, "num_hiddens: got 0", "at least 1"),
        (made("AdditiveAttention", 8, -1), ValueError, "dropout: got -1", "from 0 to 1"),
        (
            built("AdditiveAttention", X[0], X, X),
            ValueError,
            "queries: got shape (3, 8)",
            "3 dimensions (batch, queries, features)",
        ),
        (
            built("AdditiveAttention", X, X, X[:, :2]),
            ValueError,
            "got 3 keys and 2 values",
            "one value for each key",
        ),
        (
            built("AdditiveAttention", X, X, X, np.array([4, 1], "int32")),
            ValueError,
            "valid_lens: got a length of 4",
            "from 0 to 3, the number of keys",
        ),
        (
            lambda face: face.build("AdditiveAttention", 8, 0.0).attention_weights,
            RuntimeError,
            "attention_weights: there are none yet",
            "call the layer first",
        ),
    ],
    "Classifier": [
        (
            judged("loss", X[0], np.array([0, 1, 0.5], "float32")),
            TypeError,
            "Y: got dtype float32",
            "an integer dtype",
        ),
        (
            judged("accuracy", X[0], np.array([0, 1], "int32")),
            ValueError,
            "Y: got shape (2,)",
            "as many labels as there are rows in Y_hat, of shape (3, 8)",
        ),
        (
            judged("accuracy", X[0, :, :0], np.zeros(3, "int32")),
            ValueError,
            "Y_hat: got shape (3, 0)",
            "at least one class",
        ),
        (
            judged("loss", TOKENS, TOKENS[:, 0]),
            TypeError,
            "Y_hat: got dtype int32",
            "one floating-point dtype",
        ),
    ],
    "EncoderDecoder": [
        (
            lambda face: face.d2l.EncoderDecoder(3, face.d2l.Decoder()),
            TypeError,
            "encoder: got int",
            "a layer",
        ),
    ],
    "FashionMNIST": [
        (asked("FashionMNIST", 0), ValueError, "batch_size: got 0", "at least 1"),
        (asked("FashionMNIST", 4, 28), TypeError, "resize: got 28", "(height, width), in pixels"),
    ],
    "MTFraEng": [
        (asked("MTFraEng", 0), ValueError, "batch_size: got 0", "at least 1"),
        (asked("MTFraEng", 4, num_steps=2.5), TypeError, "num_steps: got 2.5", "an integer"),
    ],
    "Module": [
        (
            lambda face: face.d2l.Module().loss(0, 0),
            NotImplementedError,
            "Module.loss: got no definition",
            "one in your class",
        ),
        (
            lambda face: face.d2l.Module().plot("loss", 1.0, train=True),
            RuntimeError,
            "plot: got a model without a trainer",
            "one that Trainer.fit has been given",
        ),
    ],
    "DataModule": [
        (
            lambda face: face.d2l.DataModule().get_dataloader(train=True),
            NotImplementedError,
            "DataModule.get_dataloader: got no definition",
            "one in your class",
        ),
    ],
    "PositionWiseFFN": [
        (
            made("PositionWiseFFN", 0, 8),
            ValueError,
            "ffn_num_hiddens: got 0",
            "at least 1",
        ),
        (
            made("PositionWiseFFN", 8),
            TypeError,
            "PositionWiseFFN: missing a required argument: 'ffn_num_outputs'",
            "need (ffn_num_hiddens, ffn_num_outputs)",
        ),
        (made("PositionWiseFFN", 2**40, 8), ValueError, "got 1099511627776", "of at most"),
        (
            built("PositionWiseFFN", X[..., :0]),
            ValueError,
            "X: got shape (2, 3, 0)",
            "at least one feature",
        ),
        (
            built("PositionWiseFFN", X > 0),
            TypeError,
            "X: got dtype bool",
            "one floating-point dtype",
        ),
        (built("PositionWiseFFN", [1.0]), TypeError, "X: got list", "a tensor"),
    ],
    "Seq2SeqEncoder": [
        (made("Seq2SeqEncoder", 0, 6, 4, 2), ValueError, "vocab_size: got 0", "at least 1"),
        (made("Seq2SeqEncoder", 7, 6, 4, 0), ValueError, "num_layers: got 0", "at least 1"),
        (made("Seq2SeqEncoder", 7, 6, 4, 2, 1.5), ValueError, "dropout: got 1.5", "from 0 to 1"),
        (
            built("Seq2SeqEncoder", X),
            ValueError,
            "X: got shape (2, 3, 8)",
            "2 dimensions (batch, steps)",
        ),
        *NO_TOKENS["Seq2SeqEncoder"],
    ],
    "Trainer": [
        (asked("Trainer", 0), ValueError, "max_epochs: got 0", "at least 1"),
        (asked("Trainer", 1, num_gpus=-1), ValueError, "num_gpus: got -1", "at least 0"),
        (
            asked("Trainer", 1, gradient_clip_val=-1),
            ValueError,
            "gradient_clip_val: got -1",
            "a number from 0 on",
        ),
        (
            asked("Trainer", 1, gradient_clip_val="1"),
            TypeError,
            "gradient_clip_val: got '1'",
            "a number from 0 on",
        ),
        (
            lambda face: face.d2l.Trainer(1).fit(face.d2l.Module(), [1, 2]),
            TypeError,
            "data: got list",
            "a DataModule",
        ),
        (
            lambda face: face.d2l.Trainer(1).prepare_model("a model"),
            TypeError,
            "model: got str",
            "a Module",
        ),
    ],
    "TransformerEncoder": [
        *NO_TOKENS["TransformerEncoder"],
        (
            made("TransformerEncoder", 7, 8, 16, 3, 2, 0.0),
            ValueError,
            "num_hiddens: got 8 with num_heads 3",
            "a multiple of num_heads",
        ),
        (
            made("TransformerEncoder", 7, 8, 16, 2, 0, 0.0),
            ValueError,
            "num_blks: got 0",
            "at least 1",
        ),
        (
            built("TransformerEncoder", X, None),
            ValueError,
            "X: got shape (2, 3, 8)",
            "2 dimensions (batch, steps)",
        ),
        (
            built("TransformerEncoder", TOKENS, np.array([1, 4], "int32")),
            ValueError,
            "valid_lens: got a length of 4",
            "from 0 to 3, the number of keys",
        ),
    ],
    "TransformerEncoderBlock": [
        (
            made("TransformerEncoderBlock", 8, 16, 3, 0.0),
            ValueError,
            "num_hiddens: got 8 with num_heads 3",
            "a multiple of num_heads",
        ),
        (
            made("TransformerEncoderBlock", 8, 16, 2),
            TypeError,
            "TransformerEncoderBlock: missing a required argument: 'dropout'",
            "need (num_hiddens, ffn_num_hiddens, num_heads, dropout, ",
        ),
    ],
    "BasicScheduler": [
        (asked("BasicScheduler", 3), TypeError, "searcher: got int", "an HPOSearcher"),
    ],
    "HPOTuner": [
        (asked("HPOTuner", 3, max), TypeError, "scheduler: got int", "an HPOScheduler"),
        (
            lambda face: face.d2l.HPOTuner(face.d2l.HPOScheduler(), 3),
            TypeError,
            "objective: got 3",
            "a layer or a function",
        ),
        (
            lambda face: face.d2l.HPOTuner(face.d2l.HPOScheduler(), max).run(0),
            ValueError,
            "number_of_trials: got 0",
            "at least 1",
        ),
    ],
    "LeNet": [
        (
            lambda face: pictured(face, face.d2l.LeNet(0.1, 0)),
            ValueError,
            "num_classes: got 0",
            "at least 1",
        ),
    ],
    "LinearRegression": [
        (
            lambda face: regression_loss(face, face.d2l.LinearRegression(0.1)),
            ValueError,
            "y: got shape (3,) for predictions of shape (2, 1)",
            "one number for each prediction",
        ),
    ],
    "LinearRegressionScratch": [
        (
            lambda face: pictured(face, face.d2l.LinearRegressionScratch(0, 0.1)),
            ValueError,
            "num_inputs: got 0",
            "at least 1",
        ),
        (
            lambda face: pictured(face, face.d2l.LinearRegressionScratch(4, 0.1, "wide")),
            TypeError,
            "sigma: got 'wide'",
            "a number",
        ),
        (
            lambda face: regression_loss(face, face.d2l.LinearRegressionScratch(2, 0.1)),
            ValueError,
            "y: got shape (3,) for predictions of shape (2, 1)",
            "one number for each prediction",
        ),
    ],
    "RandomSearcher": [
        (
            asked("RandomSearcher", [1]),
            TypeError,
            "config_space: got list",
            "a dict of distributions, which have rvs()",
        ),
        (asked("RandomSearcher", {"a": 1}), TypeError, "got int for 'a'", "which have rvs()"),
        (asked("RandomSearcher", {}, 3), TypeError, "initial_config: got int", "a dict, or None"),
    ],
    "ResNeXtBlock": [
        *(
            (
                lambda face, args=args: pictured(face, face.d2l.ResNeXtBlock(*args)),
                ValueError,
                got,
                need,
            )
            for args, got, need in [
                ((0, 1, 1), "num_channels: got 0", "at least 1"),
                ((4, 0, 1), "groups: got 0", "at least 1"),
                ((20, 6, 1), "groups: got 6 for 20 channels", "channels a group as divide them"),
                ((4, 8, 1), "groups: got 8 for 4 channels", "channels a group as divide them"),
                ((6, 2, 1), "X and Y: got shapes (2, 4, ", "two equal ones"),
            ]
        ),
        (
            lambda face: pictured(face, face.d2l.ResNeXtBlock(4, 2, 1), X),
            ValueError,
            "X: got shape (2, 3, 8)",
            "4 dimensions (examples, ",
        ),
    ],
    "SGD": [
        (
            lambda face: face.d2l.SGD(
                *([[]] if "params" in str(signature(face.d2l.SGD)) else []), "a"
            ),
            TypeError,
            "lr: got 'a'",
            "a number",
        ),
    ],
    "SoftmaxRegression": [
        (
            lambda face: pictured(face, face.d2l.SoftmaxRegression(0, 0.1)),
            ValueError,
            "num_outputs: got 0",
            "at least 1",
        ),
    ],
    "SyntheticRegressionData": [
        (called("SyntheticRegressionData", X, 1), ValueError, "w: got shape (2, 3, 8)", "shape (f"),
        *(
            (
                called("SyntheticRegressionData", np.ones(2, "float32"), 1, **{what: value}),
                error,
                f"{what}: got {value!r}",
                need,
            )
            for what, value, error, need in [
                ("noise", -1, ValueError, "from 0 on"),
                ("noise", "some", TypeError, "a standard deviation"),
                ("num_train", 0, ValueError, "at least 1"),
                ("num_val", -1, ValueError, "at least 0"),
                ("batch_size", 0, ValueError, "at least 1"),
            ]
        ),
    ],
    "check_len": [
        (asked("check_len", [1], 2), ValueError, "a: got 1 elements", "need 2"),
        (asked("check_len", 3, 2), TypeError, "a: got int", "a list"),
        (asked("check_len", [], -1), ValueError, "n: got -1", "at least 0"),
    ],
    "hpo_objective_lenet": [
        (asked("hpo_objective_lenet", "a", 4), TypeError, "learning_rate: got 'a'", "a number"),
        (asked("hpo_objective_lenet", 0.1, 0), ValueError, "batch_size: got 0", "at least 1"),
        (asked("hpo_objective_lenet", 0.1, 4, 0), ValueError, "max_epochs: got 0", "at least 1"),
    ],
    "rbfkernel": [
        (asked("rbfkernel", [[1.0]], [1.0]), ValueError, "x1: got shape (1, 1)", "a vector of"),
        (asked("rbfkernel", [1.0], "a"), TypeError, "x2: got str", "an array of real numbers"),
        (asked("rbfkernel", [1.0], [1.0], 0), ValueError, "ls: got 0", "a number above 0"),
    ],
    "update_D": [
        (
            called("update_D", X[0], X[1, :2], max, max, max, None),
            ValueError,
            "X and Z: got shapes (3, 8), (2, 8)",
            "as many rows of each",
        ),
        (called("update_D", X, X, 1, max, max, None), TypeError, "net_D: got 1", "a layer or"),
        (asked("update_D", [1], [1], max, max, max, None), TypeError, "X: got list", "a tensor"),
    ],
    "update_G": [
        (called("update_G", X, max, 1, max, None), TypeError, "net_G: got 1", "a layer or a"),
        (called("update_G", X, max, max, 1, None), TypeError, "loss: got 1", "a layer or a"),
        (
            lambda face: face.d2l.update_G(
                face.tensor(X[0]), lambda X: X, face.linear(8, None), max, None
            ),
            ValueError,
            "net_D: got shape (3, 3) from it for 3 examples",
            "a number for each example",
        ),
    ],
    "Benchmark": [
        (asked("Benchmark", 3), TypeError, "description: got int", "a string"),
    ],
    "RNN": [
        (
            lambda face: _recurrent(face, "RNN", 0),
            ValueError,
            "num_hiddens: got 0",
            "an integer of at least 1",
        ),
    ],
    "RNNLM": [
        (asked("RNNLM", 1, 5), TypeError, "rnn: got int", "a layer"),
    ],
    "RNNLMScratch": [
        (asked("RNNLMScratch", 1, 5), TypeError, "rnn: got int", "a layer"),
        (
            lambda face: face.build("RNNLMScratch", face.d2l.RNNScratch(5, 4), 5)(TOKENS[0]),
            ValueError,
            "X: got shape (3,)",
            "2 dimensions (batch, steps)",
        ),
        (
            lambda face: face.build("RNNLMScratch", face.d2l.RNNScratch(5, 4), 5)(TOKENS + 5),
            ValueError,
            "X: got a token of 5",
            "tokens from 0 to 4",
        ),
    ],
    "RNNModel": [
        (asked("RNNModel", 1, 5), TypeError, "rnn_layer: got int", "a recurrent layer of"),
    ],
    "RNNModelScratch": [
        (
            lambda face: face.d2l.RNNModelScratch(
                *(0, 4), *[face.d2l.cpu()] * _needs_device(face), max, max, max
            ),
            ValueError,
            "vocab_size: got 0",
            "at least 1",
        ),
        (
            lambda face: face.d2l.RNNModelScratch(
                *(5, 4), *[face.d2l.cpu()] * _needs_device(face), 1, 1, 1
            ),
            TypeError,
            ": got 1",
            "a layer or a function",
        ),
    ],
    "RNNScratch": [
        (asked("RNNScratch", 5, 0), ValueError, "num_hiddens: got 0", "at least 1"),
        (
            lambda face: face.build("RNNScratch", 5, 4)(X),
            ValueError,
            "inputs: got shape (2, 3, 8)",
            "a last dimension of 5",
        ),
        (
            lambda face: face.build("RNNScratch", 8, 4)(X, np.zeros((2, 3, 4), "float32")),
            ValueError,
            "state: got 2 states",
            "one, (batch, hiddens)",
        ),
    ],
    "SeqDataLoader": [
        (
            asked("SeqDataLoader", 0, 3, False, 9),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        ),
        (
            asked("SeqDataLoader", 2, 3, "no", 9),
            TypeError,
            "use_random_iter: got str",
            "True or False",
        ),
    ],
    "TimeMachine": [
        (asked("TimeMachine", 2, 0), ValueError, "num_steps: got 0", "at least 1"),
    ],
    "TrainCallback": [
        (
            asked("TrainCallback", max, [1], [1], 1, "cpu"),
            TypeError,
            "net: got builtin_function_or_method",
            "a Keras model",
        ),
    ],
    "Updater": [
        (
            lambda face: face.d2l.Updater([face.descent.variable(1.0)], 0.1)(0, [1.0]),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        ),
    ],
    "accuracy": [
        (
            called("accuracy", X[0], np.zeros(4, "int32")),
            ValueError,
            "y: got shape (4,) for predictions of shape (3,)",
            "one label for each prediction",
        ),
        (asked("accuracy", "ab", [1]), TypeError, "y_hat: got str", "an array of real numbers"),
    ],
    "corr2d": [
        (
            called("corr2d", X[0], np.ones((4, 1), "float32")),
            ValueError,
            "K: got shape (4, 1) for X of shape (3, 8)",
            "at least one row and column, and no more than X has",
        ),
        (
            called("corr2d", X, X[0]),
            ValueError,
            "X: got shape (2, 3, 8)",
            "a matrix of numbers, (rows, columns)",
        ),
        (asked("corr2d", [[1.0]], [[1.0]]), TypeError, "X: got list", "a matrix of numbers"),
        (called("corr2d", X[0], X[0] > 0), TypeError, "K: got dtype ", "a matrix of numbers"),
    ],
    "evaluate_accuracy": [
        (asked("evaluate_accuracy", 1, []), TypeError, "net: got 1", "a layer or a function"),
        (
            asked("evaluate_accuracy", max, []),
            ValueError,
            "data_iter: got no examples",
            "at least one batch",
        ),
    ],
    "evaluate_accuracy_gpu": [
        (asked("evaluate_accuracy_gpu", 1, []), TypeError, "net: got 1", "a layer or a function"),
        (
            asked("evaluate_accuracy_gpu", max, [1]),
            TypeError,
            "data_iter: got a batch that is 1",
            "batches (inputs, labels)",
        ),
    ],
    "grad_clipping": [
        (
            lambda face: face.d2l.grad_clipping([], 0),
            ValueError,
            "theta: got 0",
            "a number above 0",
        ),
    ],
    "load_data_time_machine": [
        (
            asked("load_data_time_machine", 2, 0),
            ValueError,
            "num_steps: got 0",
            "at least 1",
        ),
    ],
    "predict_ch8": [
        (
            lambda face: face.d2l.predict_ch8(
                *("a", 2, 1, None), *[face.d2l.cpu()] * _predicts_on(face)
            ),
            TypeError,
            "net: got 1",
            "a layer or a function",
        ),
    ],
    "seq_data_iter_random": [
        (
            asked("seq_data_iter_random", [1, 2], 0, 3),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        ),
        (
            asked("seq_data_iter_random", "ab", 1, 3),
            TypeError,
            "corpus: got str",
            "a list of numbers of tokens",
        ),
        (
            asked("seq_data_iter_random", [0.5], 1, 3),
            TypeError,
            "corpus: got shape (1,), dtype float64",
            "a list of numbers of tokens",
        ),
    ],
    "seq_data_iter_sequential": [
        (
            asked("seq_data_iter_sequential", [1, 2], 1, "2"),
            TypeError,
            "num_steps: got '2'",
            "at least 1",
        ),
    ],
    "train_ch8": [
        (asked("train_ch8", max, [], None, "fast", 1, None), TypeError, "lr: got 'fast'", "a num"),
        (asked("train_ch8", 1, [], None, 0.1, 1, None), TypeError, "net: got 1", "a layer or a"),
    ],
    "train_epoch_ch8": [
        (
            lambda face: face.d2l.train_epoch_ch8(
                *(1, [], max, max), *[None] * _predicts_on(face), False
            ),
            TypeError,
            "net: got 1",
            "a layer or a function",
        ),
        (
            lambda face: face.d2l.train_epoch_ch8(
                *(max, [], 1, max), *[None] * _predicts_on(face), False
            ),
            TypeError,
            "loss: got 1",
            "a layer or a function",
        ),
    ],
    "get_fashion_mnist_labels": [
        (
            asked("get_fashion_mnist_labels", [3, 10]),
            ValueError,
            "labels: got 10",
            "labels from 0 to 9",
        ),
        (
            asked("get_fashion_mnist_labels", [0.5]),
            ValueError,
            "labels: got 0.5",
            "labels from 0 to 9",
        ),
    ],
    "load_data_fashion_mnist": [
        (
            asked("load_data_fashion_mnist", 0),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        ),
        (
            asked("load_data_fashion_mnist", 4, 0),
            ValueError,
            "resize: got 0",
            "at least 1",
        ),
        (
            asked("load_data_fashion_mnist", 4, (2, 3, 4)),
            TypeError,
            "resize: got (2, 3, 4)",
            "(height, width), in pixels",
        ),
    ],
    "predict_ch3": [
        (asked("predict_ch3", 1, []), TypeError, "net: got 1", "a layer or a function"),
        (asked("predict_ch3", max, [], 0), ValueError, "n: got 0", "at least 1"),
        (
            asked("predict_ch3", max, []),
            ValueError,
            "test_iter: got no examples",
            "at least one batch",
        ),
    ],
    "train_ch3": [
        (
            asked("train_ch3", max, [], [], max, 0, max),
            ValueError,
            "num_epochs: got 0",
            "at least 1",
        ),
        (asked("train_ch3", 1, [], [], max, 1, max), TypeError, "net: got 1", "a layer or"),
    ],
    "train_ch6": [
        (
            asked("train_ch6", 1, [], [], 1, 0.1),
            TypeError,
            ": got ",
            "a layer",  # in TensorFlow a function that makes one
        ),
        (
            lambda face: face.descent.train_ch6(
                lambda: face.linear(8, None), lambda net: None, [1], [1], 0, 0.1
            ),
            ValueError,
            "num_epochs: got 0",
            "at least 1",
        ),
        (
            lambda face: face.descent.train_ch6(
                lambda: face.linear(8, None), lambda net: None, [1], [1], 1, "fast"
            ),
            TypeError,
            "lr: got 'fast'",
            "a number",
        ),
        (
            lambda face: face.descent.train_ch6(
                lambda: face.linear(8, None), lambda net: None, [], [], 1, 0.1
            ),
            TypeError,
            "train_iter: got ",
            "batches, at least one",
        ),
    ],
    "train_epoch_ch3": [
        *(
            (
                asked("train_epoch_ch3", *(1 if name == what else max for name in names)),
                TypeError,
                f"{what}: got 1",
                "a layer or a function",
            )
            for names in [("net", "train_iter", "loss", "updater")]
            for what in ("net", "loss", "updater")
        ),
        (
            asked("train_epoch_ch3", max, [], max, max),
            ValueError,
            "train_iter: got no examples",
            "at least one batch",
        ),
    ],
    "evaluate_loss": [
        (asked("evaluate_loss", 1, [], max), TypeError, "net: got 1", "a layer or a function"),
        (
            asked("evaluate_loss", max, [], max),
            ValueError,
            "data_iter: got no examples",
            "at least one batch",
        ),
        (
            asked("evaluate_loss", max, [1], max),
            TypeError,
            "data_iter: got a batch that is 1",
            "batches (inputs, labels)",
        ),
    ],
    "get_data_ch11": [
        (asked("get_data_ch11", 0), ValueError, "batch_size: got 0", "at least 1"),
        (asked("get_data_ch11", 10, 1.5), TypeError, "n: got 1.5", "an integer"),
    ],
    "linreg": [
        (
            called("linreg", X, np.ones((7, 1), "float32"), 0.5),
            ValueError,
            "X: got shape (2, 3, 8)",
            "a last dimension of 7",
        ),
        (
            called("linreg", X, np.ones((8, 1), "float64"), 0.5),
            TypeError,
            "X and w: got dtype float32, float64",
            "one floating-point dtype",
        ),
        (
            called("linreg", X, np.ones((8, 1), "float32"), np.ones(2, "float32")),
            ValueError,
            "b: got shape (2,) for outputs of shape (2, 3, 1)",
            "one number for each output, or one for all",
        ),
        (
            called("linreg", X, np.ones((8, 1), "float32"), "0"),
            TypeError,
            "b: got '0'",
            "a number that float32 holds",
        ),
    ],
    "load_array": [
        (
            lambda face: face.d2l.load_array((face.tensor(X), face.tensor(X[0])), 2),
            ValueError,
            "data_arrays: got shapes (2, 3, 8), (3, 8)",
            "equally many rows of each, at least one",
        ),
        (
            lambda face: face.d2l.load_array(face.tensor(X), 2),
            TypeError,
            "data_arrays: got ",
            "a tuple or a list of tensors",
        ),
        (
            lambda face: face.d2l.load_array((face.tensor(X),), 0),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        ),
    ],
    "load_data_nmt": [
        (asked("load_data_nmt", 0, 8), ValueError, "batch_size: got 0", "at least 1"),
        (
            asked("load_data_nmt", 4, 8, num_examples=0),
            ValueError,
            "num_examples: got 0",
            "at least 1",
        ),
    ],
    "predict_seq2seq": [
        (
            lambda face: predict(face, 5),
            TypeError,
            "src_sentence: got int",
            "a sentence, a string",
        ),
        (lambda face: predict(face, "a", 0), ValueError, "num_steps: got 0", "at least 1"),
    ],
    "sgd": [
        (
            lambda face: descend(face, 0.1, 0),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        ),
        (lambda face: descend(face, "0.1", 2), TypeError, "lr: got '0.1'", "a number"),
        (
            lambda face: descend(face, 0.1, 2, gradient=None),
            ValueError,
            "params: got a parameter without a gradient",
            "call backward first",
        ),
    ],
    "show_trace_2d": [
        (
            asked("show_trace_2d", 1, [(0, 0)]),
            TypeError,
            "f: got 1",
            "a layer or a function",
        ),
        (
            asked("show_trace_2d", lambda x, y: x, [1, 2]),
            TypeError,
            "results: got list",
            "points (x1, x2), at least one",
        ),
        (
            asked("show_trace_2d", lambda x, y: x, np.zeros((4, 3))),
            ValueError,
            "results: got points of 3 numbers",
            "points (x1, x2), at least one",
        ),
        (
            asked("show_trace_2d", lambda x, y: 1, [(0, 0)]),
            ValueError,
            "f: got shape () from it",
            "shape (65, 40)",
        ),
    ],
    "squared_loss": [
        (
            called("squared_loss", X, X[0]),
            ValueError,
            "y: got shape (3, 8) for predictions of shape (2, 3, 8)",
            "one number for each prediction",
        ),
        (
            called("squared_loss", X.astype("int32"), X),
            TypeError,
            "y_hat: got dtype int32",
            "one floating-point dtype",
        ),
    ],
    "synthetic_data": [
        (
            called("synthetic_data", X[0, 0], 0.5, 0),
            ValueError,
            "num_examples: got 0",
            "at least 1",
        ),
        (
            called("synthetic_data", X[0], 0.5, 3),
            ValueError,
            "w: got shape (3, 8)",
            "shape (features,) or (features, 1)",
        ),
    ],
    "train_ch11": [
        (
            asked("train_ch11", 1, None, {}, [], 5),
            TypeError,
            "trainer_fn: got 1",
            "a layer or a function",
        ),
        (
            asked("train_ch11", max, None, {}, [], 5),
            TypeError,
            "data_iter: got list",
            "batches, at least one",
        ),
        (
            asked("train_ch11", max, None, {}, [(X, X)], 0),
            ValueError,
            "feature_dim: got 0",
            "at least 1",
        ),
        (
            asked("train_ch11", max, None, {}, [(X, X)], 5, 0),
            ValueError,
            "num_epochs: got 0",
            "at least 1",
        ),
    ],
    "train_concise_ch11": [
        (
            asked("train_concise_ch11", 1, {}, [(X, X)]),
            TypeError,
            ": got 1",
            "need a",  # name in MXNet's, elsewhere a function that makes an optimizer
        ),
        (
            lambda face: face.d2l.train_concise_ch11(
                "sgd" if face.d2l.__name__.endswith("mxnet") else max, [0.1], [(X, X)]
            ),
            TypeError,
            "hyperparams: got list",
            "a dictionary",
        ),
    ],
    "sequence_mask": [
        (
            called("sequence_mask", X[0, 0], np.array([1], "int32")),
            ValueError,
            "X: got shape (8,)",
            "at least 2 dimensions (batch, steps)",
        ),
        (
            called("sequence_mask", X, np.array([1, 2, 3], "int32")),
            ValueError,
            "valid_len: got shape (3,)",
            "shape (2,), a length per example",
        ),
        (
            called("sequence_mask", X, np.array([True, False])),
            TypeError,
            "valid_len: got dtype bool",
            "an integer dtype",
        ),
        *(
            (
                called("sequence_mask", X.astype(dtype), TOKENS[0, :2], value),
                ValueError,
                f"value: got {value}",
                f"a number that {dtype} holds",
            )
            for dtype, value in [("int32", 0.5), ("int32", 2**31), ("uint8", -1), ("float32", 1e39)]
        ),
        (
            called("sequence_mask", X, TOKENS[0, :2], "0"),
            TypeError,
            "value: got '0'",
            "a number that float32 holds",
        ),
    ],
    "train_seq2seq": [
        (
            lambda face: face.d2l.train_seq2seq(object(), [], 0.1, 1, vocabulary(), face.d2l.cpu()),
            TypeError,
            "net: got object",
            "a layer",
        ),
        (
            lambda face: face.d2l.train_seq2seq(object(), [], 0.1, 0, vocabulary(), face.d2l.cpu()),
            ValueError,
            "num_epochs: got 0",
            "at least 1",
        ),
    ],
    "transpose_qkv": [
        (
            called("transpose_qkv", X, 3),
            ValueError,
            "num_hiddens: got 8 with num_heads 3",
            "a multiple of num_heads",
        ),
        (
            called("transpose_qkv", X[0], 2),
            ValueError,
            "X: got shape (3, 8)",
            "3 dimensions (batch, steps, num_hiddens)",
        ),
        (called("transpose_qkv", X, 0), ValueError, "num_heads: got 0", "at least 1"),
    ],
    "transpose_output": [
        (
            called("transpose_output", X, 3),
            ValueError,
            "X: got shape (2, 3, 8) with num_heads 3",
            "a batch that is a multiple of num_heads",
        ),
    ],
    **{
        name: [
            (
                lambda face, name=name: getattr(face.d2l, name)("relu", face.tensor(X)),
                TypeError,
                "layer: got 'relu'",
                "a layer or a function",
            ),
            (
                lambda face, name=name: getattr(face.d2l, name)(abs, [1.0]),
                TypeError,
                "inputs: got list",
                "need a",
            ),
        ]
        for name in ("longest_chain", "multiply_adds")
    },
}

CASES |= {
    "BananasDataset": [
        (asked("BananasDataset", True), FileNotFoundError, "D2L_DATA: got ", "banana-detection.zip")
    ],
    "Residual": [
        (asked("Residual"), TypeError, "Residual: missing a required argument", "need ("),
        (asked("Residual", 0, 4), (ValueError, TypeError), ": got ", "need "),
    ],
    "BERTEncoder": [
        (
            made("BERTEncoder", 7, 9, 16, 2, 2, 0.0),
            ValueError,
            "num_hiddens: got 9 with",
            "a multi",
        ),
        (made("BERTEncoder", 7, 8, 16, 2, 2, 0.0, 0), ValueError, "max_len: got 0", "at least 1"),
        (
            made("BERTEncoder", 7, 8, 16),
            TypeError,
            "BERTEncoder: missing",
            "num_blks, dropout, max_",
        ),
    ],
    "BERTModel": [
        (made("BERTModel", *BERT[:4], 0, 0.0), ValueError, "num_blks: got 0", "at least 1"),
        (made("BERTModel", *BERT[:5], 2), ValueError, "dropout: got 2", "from 0 to 1"),
        (bert(tokens=TOKENS + 7), ValueError, "tokens: got a token of 7", "from 0 to 6"),
        (bert(tokens=TOKENS + 0.5), ValueError, "tokens: got dtype float", "whole numbers, of tok"),
        (bert(tokens=TOKENS[0]), ValueError, "tokens: got shape (3,)", "(batch, steps)"),
        (
            bert(segments=TOKENS + 2),
            ValueError,
            "segments: got a segment of 2",
            "from 0 to 1, of two",
        ),
        (
            bert(segments=TOKENS[:1]),
            ValueError,
            "segments: got shape (1, 3)",
            "shape (2, 3), a seg",
        ),
        (
            bert(tokens=np.zeros((1, 5), "int32")),
            ValueError,
            "positions: got 5 positions from offset 0",
            "at most 4 in all",
        ),
        (
            bert(lens=np.array([1.5, 2], "float32")),
            TypeError,
            "valid_lens: got dtype float32",
            "an integer dtype",
        ),
        (bert(lens=np.array([4, 1])), ValueError, "valid_lens: got a length of 4", "from 0 to 3"),
        (bert(positions=TOKENS + 3), ValueError, "pred_positions: got a position of 3", "0 to 2"),
        (
            bert(positions=TOKENS[:1]),
            ValueError,
            "pred_positions: got shape (1, 3)",
            "of 2 example",
        ),
    ],
    "MaskLM": [
        (made("MaskLM", 0, 8), ValueError, "vocab_size: got 0", "at least 1"),
        (made("MaskLM", 7, "8"), TypeError, "num_hiddens: got '8'", "an integer"),
        (
            lambda face: _ready(face.build("MaskLM", 7, 8))(X[0], TOKENS),
            ValueError,
            "X: got shape (3, 8)",
            "(batch, steps, features)",
        ),
    ],
    "NextSentencePred": [
        (
            lambda face: _ready(face.build("NextSentencePred"))(TOKENS),
            TypeError,
            "X: got dtype int32",
            "one floating-point dtype",
        )
    ],
    "SNLIDataset": [
        (asked("SNLIDataset", (["a"], ["b"]), 5), TypeError, "dataset: got tuple", "premises, hyp"),
        (
            asked("SNLIDataset", (["a"], [], [1]), 5),
            ValueError,
            "dataset: got 1, 0 and 1",
            "as man",
        ),
        (
            asked("SNLIDataset", (["a"], ["b"], ["1"]), 5),
            TypeError,
            "labels of another",
            "integers",
        ),
        (
            asked("SNLIDataset", (["a"], ["b"], [1]), 0),
            ValueError,
            "num_steps: got 0",
            "at least 1",
        ),
        (
            asked("SNLIDataset", (["a"], ["b"], [1]), 5, 3),
            TypeError,
            "vocab: got int",
            "as Vocab is",
        ),
    ],
    "TokenEmbedding": [
        (
            asked("TokenEmbedding", "glove"),
            KeyError,
            "url: got 'glove'",
            "glove.6b.100d, glove.6b.50",
        ),
        (asked("TokenEmbedding", 50), TypeError, "url: got int", "an https address, or a name"),
        (
            asked("TokenEmbedding", "wiki.en"),
            FileNotFoundError,
            "D2L_DATA: got",
            "need wiki.en.zip",
        ),
    ],
    "batchify": [(asked("batchify", []), ValueError, "data: got none", "at least one")],
    "load_data_imdb": [
        (asked("load_data_imdb", 0), ValueError, "batch_size: got 0", "at least 1"),
        (asked("load_data_imdb", 2, 0), ValueError, "num_steps: got 0", "at least 1"),
        (asked("load_data_imdb", 2), FileNotFoundError, "D2L_DATA: got", "need aclImdb_v1.tar.gz"),
    ],
    "load_data_ptb": [
        (asked("load_data_ptb", 0, 5, 5), ValueError, "batch_size: got 0", "at least 1"),
        (asked("load_data_ptb", 2, 0, 5), ValueError, "max_window_size: got 0", "at least 1"),
        (asked("load_data_ptb", 2, 5, -1), ValueError, "num_noise_words: got -1", "at least 0"),
    ],
    "load_data_snli": [
        (asked("load_data_snli", 2, 1.5), TypeError, "num_steps: got 1.5", "an integer"),
        (asked("load_data_snli", 2), FileNotFoundError, "D2L_DATA: got", "need snli_1.0.zip"),
    ],
    "load_data_wiki": [
        (asked("load_data_wiki", "2", 9), TypeError, "batch_size: got '2'", "an integer"),
        (asked("load_data_wiki", 2, 0), ValueError, "max_len: got 0", "at least 1"),
    ],
    "predict_sentiment": [
        (asked("predict_sentiment", 1, max, "a"), TypeError, "net: got 1", "a layer or a fun"),
        (asked("predict_sentiment", max, max, "a"), TypeError, "vocab: got builtin", "as Vocab is"),
        (
            lambda face: face.d2l.predict_sentiment(max, vocabulary(), " "),
            ValueError,
            "sequence: got none",
            "a list of words, at least one",
        ),
    ],
    "predict_snli": [
        (
            lambda face: face.d2l.predict_snli(max, vocabulary(), ["a"], "a b"),
            TypeError,
            "hypothesis: got str",
            "a list of words, at least one",
        ),
        (
            lambda face: face.d2l.predict_snli(
                lambda X: face.tensor(np.ones((1, 2), "float32")), vocabulary(), ["a"], ["a"]
            ),
            ValueError,
            "net: got shape (1, 2) from it",
            "(1, 3), a number for each class",
        ),
    ],
    "VOCSegDataset": [
        (asked("VOCSegDataset", True, 5, "."), TypeError, "crop_size: got 5", "(height, width)"),
        (asked("VOCSegDataset", True, (5, 0), "."), ValueError, "crop_size: got 0", "at least 1"),
    ],
    "assign_anchor_to_bbox": [
        (
            called("assign_anchor_to_bbox", BOXES[0], BOXES, None),
            ValueError,
            "ground_truth: got shape (4,)",
            "shape (boxes, 4)",
        ),
        (
            called("assign_anchor_to_bbox", BOXES, BOXES, None, 2),
            ValueError,
            "iou_threshold: got 2",
            "from 0 to 1",
        ),
    ],
    **{
        name: [
            (
                called(name, BOXES[0]),
                ValueError,
                "boxes: got shape (4,)",
                "2 dimensions (boxes, 4)",
            ),
            (called(name, BOXES[:, :3]), ValueError, "boxes: got shape (3, 3)", "dimension of 4"),
            (called(name, BOXES.astype("int32")), TypeError, "boxes: got dtype int32", "floating"),
        ]
        for name in ("box_center_to_corner", "box_corner_to_center")
    },
    "box_iou": [
        (called("box_iou", BOXES, X), ValueError, "boxes2: got shape (2, 3, 8)", "(boxes, 4)")
    ],
    "evaluate_accuracy_gpus": [
        (asked("evaluate_accuracy_gpus", 1, []), TypeError, "net: got int", "a layer")
    ],
    "load_data_bananas": [
        (asked("load_data_bananas", 2), FileNotFoundError, "D2L_DATA: got ", "banana-detection.zip")
    ],
    "load_data_voc": [
        (asked("load_data_voc", 2, (1, 1)), FileNotFoundError, "D2L_DATA: got ", "2012.tar")
    ],
    "multibox_detection": [
        (
            called("multibox_detection", X, X[:, 0], BOXES[None]),
            ValueError,
            "cls_probs: got shape (2, 3, 8)",
            "shape (batch, classes + 1, anchors)",
        ),
        (
            called("multibox_detection", X[:, :, :3], X[:, 0], BOXES[None]),
            ValueError,
            "offset_preds: got shape (2, 8)",
            "shape (batch, anchors * 4), here (2, 12)",
        ),
    ],
    "multibox_prior": [
        (called("multibox_prior", X[0, 0], [1], [1]), ValueError, "data: got shape (8,)", "height"),
        (called("multibox_prior", X, [], [1]), ValueError, "sizes: got list", "above 0"),
        (called("multibox_prior", X, [1], [0]), ValueError, "ratios: got list", "above 0"),
    ],
    "multibox_target": [
        (
            called("multibox_target", BOXES[None], X),
            ValueError,
            "labels: got shape (2, 3, 8)",
            "shape (batch, boxes, 5)",
        )
    ],
    "nms": [
        (called("nms", BOXES, X[0, 0], 0.5), ValueError, "scores: got shape (8,)", "shape (3,)"),
    ],
    **{
        name: [
            (
                called(name, BOXES, BOXES[:2]),
                ValueError,
                "got 3 and 2 boxes",
                "as many of one as of the other",
            )
        ]
        for name in ("offset_boxes", "offset_inverse")
    },
    "read_data_bananas": [
        (asked("read_data_bananas"), FileNotFoundError, "D2L_DATA: got ", "banana-detection.zip")
    ],
    "read_voc_images": [
        (
            asked("read_voc_images", "nowhere"),
            FileNotFoundError,
            "voc_dir: got nowhere",
            "a folder with VOC's files",
        )
    ],
    "resnet18": [(asked("resnet18", 0), ValueError, "num_classes: got 0", "at least 1")],
    "split_batch": [
        (
            called("split_batch", X, TOKENS[0], [None]),
            ValueError,
            "y: got 3 labels for 2 inputs",
            "a label for each input",
        ),
        (called("split_batch", X, TOKENS, []), ValueError, "devices: got none", "at least one"),
        (called("split_batch", X, TOKENS, 0), TypeError, "devices: got 0", "a list of devices"),
    ],
    "split_batch_multi_inputs": [
        (
            asked("split_batch_multi_inputs", X, 1, 2),
            TypeError,
            "X: got ndarray",
            "a list of arrays",
        )
    ],
    "train_batch_ch13": [
        (
            asked("train_batch_ch13", max, X, X, max, None, []),
            TypeError,
            "net: got builtin_function_or_method",
            "a layer",
        )
    ],
    "train_ch13": [
        (asked("train_ch13", max, [], [], max, None, 1), TypeError, "net: got builtin", "a layer"),
    ],
    "voc_label_indices": [
        (
            called("voc_label_indices", X, X),
            ValueError,
            "colormap: got shape (2, 3, 8)",
            "a picture (",
        )
    ],
    "voc_rand_crop": [
        (called("voc_rand_crop", X, X, 1, 1), ValueError, "got shape (2, 3, 8)", "a picture ("),
        (
            called("voc_rand_crop", np.ones((3, 3, 3)), np.ones((3, 2, 3)), 1, 1),
            ValueError,
            "label: got shape (3, 2, 3)",
            "a picture of 3 x 3 pixels",
        ),
    ],
}

CASES |= {
    name: [
        (
            lambda face, name=name: getattr(face.d2l, name)()(face.tensor(X), face.tensor(X[:1])),
            ValueError,
            "positive and negative: got shapes (2, 3, 8) and (1, 3, 8)",
            "two equal ones",
        ),
        (
            lambda face, name=name: getattr(face.d2l, name)()(face.tensor(X), 1),
            TypeError,
            "negative: got int",
            "a tensor",
        ),
    ]
    for name in ("BPRLoss", "HingeLossbRec")
}
CASES |= {
    "CTRDataset": [
        (asked("CTRDataset", "a.csv"), FileNotFoundError, "data_path: got a.csv", "can be read"),
        (asked("CTRDataset", "a.csv", num_feat=0), ValueError, "num_feat: got 0", "at least 1"),
        (
            asked("CTRDataset", __file__),
            ValueError,
            "data_path: got no such line",
            "lines of a label, 0 or 1, and 34 values",
        ),
        (
            lambda face: face.d2l.CTRDataset(_clicks(), {1: {}}, num_feat=1),
            TypeError,
            "feat_mapper and defaults: got dict and NoneType",
            "or None of both",
        ),
        (
            lambda face: face.d2l.CTRDataset(_clicks(), {}, {}, num_feat=1),
            ValueError,
            "feat_mapper and defaults: got 0 fields and 0 fields",
            "what another CTRDataset of 1 fields has",
        ),
        (
            lambda face: face.d2l.CTRDataset(_clicks("2"), num_feat=1),
            ValueError,
            "data_path: got a label '2'",
            "a label, 0 or 1",
        ),
    ],
    "evaluate_ranking": [
        (
            asked("evaluate_ranking", max, {}, None, {}, 2, 5, [None]),
            KeyError,
            "test_input: got none of user 0",
            "the items of each user from 0 to 1",
        ),
        (
            asked("evaluate_ranking", max, [], None, {}, 2, 5, [None]),
            TypeError,
            "test_input: got list",
            "a dict",
        ),
        (
            lambda face: face.d2l.evaluate_ranking(
                lambda users, items: items[1:], {0: [0]}, None, {}, 1, 5, [face.d2l.cpu()]
            ),
            ValueError,
            "net: got 4 numbers for 5 items",
            "one number for each item",
        ),
    ],
    "hit_and_auc": [
        (asked("hit_and_auc", 1, [1], 2), TypeError, "rankedlist: got int", "a list of items"),
        (asked("hit_and_auc", [1], [1], -1), ValueError, "k: got -1", "at least 0"),
    ],
    "load_data_ml100k": [
        (
            lambda face: face.d2l.load_data_ml100k(films(), 2, 1),
            ValueError,
            "data: got items from 1 to 2",
            "items from 1 to 1",
        ),
        (
            lambda face: face.d2l.load_data_ml100k(films(), 2, 2, "none"),
            ValueError,
            "feedback: got 'none'",
            "'explicit' or 'implicit'",
        ),
    ],
    "read_data_ml100k": [
        (asked("read_data_ml100k"), FileNotFoundError, "D2L_DATA: got ", "ml-100k.zip")
    ],
    "split_and_load_ml100k": [
        (
            asked("split_and_load_ml100k", batch_size=0),
            ValueError,
            "batch_size: got 0",
            "at least 1",
        )
    ],
    "split_data_ml100k": [
        (
            asked("split_data_ml100k", [], 2, 2),
            TypeError,
            "data: got list",
            "a table of pandas with user_id, item_id, rating, timestamp",
        ),
        (
            lambda face: face.d2l.split_data_ml100k(films(), 1, 2),
            ValueError,
            "data: got users from 1 to 2",
            "users from 1 to 1",
        ),
        (
            lambda face: face.d2l.split_data_ml100k(films(), 2, 2, "new"),
            ValueError,
            "split_mode: got 'new'",
            "'random' or 'seq-aware'",
        ),
        (
            lambda face: face.d2l.split_data_ml100k(films(), 2, 2, "random", 2),
            ValueError,
            "test_ratio: got 2",
            "from 0 to 1",
        ),
    ],
    "train_ranking": [
        (
            recommending("train_ranking", [[1, 2]], 1, max),
            ValueError,
            "train_iter: got a batch of 2",
            "batches of at least 3 arrays",
        ),
        (
            recommending("train_ranking", [], 1, max),
            ValueError,
            "train_iter: got no examples",
            "at least one batch",
        ),
        (
            recommending("train_ranking", [], 1, max, 0),
            ValueError,
            "eval_step: got 0",
            "at least 1",
        ),
    ],
    "train_recsys_rating": [
        (
            recommending("train_recsys_rating", [], 1, None),
            TypeError,
            "evaluator: got None",
            "a function",
        ),
        (
            recommending("train_recsys_rating", 3, 1, max),
            TypeError,
            "train_iter: got 3",
            "batches of at least 1 arrays",
        ),
        (
            recommending("train_recsys_rating", [], 0, max),
            ValueError,
            "num_epochs: got 0",
            "at least 1",
        ),
        (
            asked("train_recsys_rating", max, [], [], max, None, 1, None, max),
            TypeError,
            "trainer: got NoneType",
            "a Gluon trainer",
        ),
        (
            asked("train_recsys_rating", max, [], [], max, None, 1, [], max),
            ValueError,
            "devices: got none",
            "at least one",
        ),
    ],
}

# Others say the same of themselves, or their bad calls are in other tables.
ELSEWHERE = {
    "AttentionDecoder": "test_what_is_to_be_defined",
    "Decoder": "test_what_is_to_be_defined",
    "DotProductAttention": "test_errors",
    "Encoder": "test_what_is_to_be_defined",
    "EncoderBlock": "it is TransformerEncoderBlock",
    "GRU": "Seq2SeqEncoder makes one",
    "HPOScheduler": "to be defined",
    "HPOSearcher": "to be defined",
    "HPOTrainer": "it is a Trainer",
    "init_cnn": "of what is no such layer it leaves everything as it is",
    "nn_Module": "the framework's own",
    "MultiHeadAttention": "test_errors",
    "PositionalEncoding": "test_errors",
    "RotaryEncoding": "test_errors",
    "Seq2Seq": "it is an EncoderDecoder",
    "alibi_slopes": "test_errors",
    "cpu": "nothing can be given",
    "get_dataloader_workers": "nothing can be given",
    "get_key": "nothing can be given",
    "get_seed": "nothing can be given",
    "gpu": "test_errors",
    "init_seq2seq": "of what is no such layer it leaves everything as it is",
    "masked_softmax": "test_errors",
    "num_gpus": "nothing can be given",
    "try_all_gpus": "nothing can be given",
    "try_gpu": "test_errors",
    "voc_colormap2label": "nothing can be given",
}


def _clicks(label: str = "1") -> Path:
    """In the folder of the data, a file of one line."""
    file = Path(os.environ["D2L_DATA"], "clicks.csv")
    file.write_text(f"{label}\ta\n")
    return file


def vocabulary() -> common.Vocab:
    return common.Vocab(["a"], reserved_tokens=["<pad>", "<bos>", "<eos>"])


def predict(face: ModuleType, sentence: Any, num_steps: int = 3) -> Any:
    vocab = vocabulary()
    # Refused before the model is touched.
    return face.d2l.predict_seq2seq(object(), sentence, vocab, vocab, num_steps, face.d2l.cpu())


def descend(face: ModuleType, lr: Any, batch_size: Any, gradient: Any = 1.0) -> None:
    """A step of ``sgd``, which takes gradients by themselves in TensorFlow alone."""
    if "grads" in signature(face.d2l.sgd).parameters:
        face.d2l.sgd([face.descent.variable(1.0)], [gradient], lr, batch_size)
    else:
        param = face.tensor(X) if gradient is None else face.descent.variable(np.ones(1, "float32"))
        face.d2l.sgd([param], lr, batch_size)


@pytest.mark.parametrize(
    ("name", "call", "error", "got", "need"),
    [
        pytest.param(name, *case, id=f"{name}: {case[2]}")
        for name, cases in CASES.items()
        for case in cases
    ],
)
def test_bad_calls_say_what_was_given_and_what_is_needed(
    face: ModuleType,
    name: str,
    call: Call,
    error: type[Exception],
    got: str,
    need: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("D2L_DATA", str(tmp_path))  # nothing is there, and nothing is fetched
    if name not in face.d2l.__all__:  # D2L had it not in this framework: the name itself is refused
        with pytest.raises(AttributeError, match=f"{name}: .* has no such name"):
            getattr(face.d2l, name)
        return
    with pytest.raises(error) as caught:
        call(face)
    assert got in str(caught.value)
    assert need in str(caught.value)


@pytest.mark.parametrize("name", NO_TOKENS)
@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "uint8",
        *(pytest.param(x, marks=pytest.mark.release("jax")) for x in ("int64", "int8")),
    ],
)
def test_tokens_are_whole_numbers_of_any_dtype(face: ModuleType, name: str, dtype: str) -> None:
    layer = face.build(name, *SIZES[name](face))
    np.testing.assert_array_equal(
        *(np.asarray(layer(TOKENS.astype(kind), None), object)[0] for kind in ("int32", dtype))
    )


TO_BE_DEFINED: dict[str, Callable[[ModuleType, Any], Any]] = {
    "Encoder": lambda face, Mine: face.layer(Mine())(X),
    "Decoder": lambda face, Mine: Mine().init_state(X),
    "AttentionDecoder": lambda face, Mine: Mine().attention_weights,
}


@pytest.mark.parametrize("name", TO_BE_DEFINED)
def test_what_is_to_be_defined_says_so(face: ModuleType, name: str) -> None:
    class Mine(getattr(face.d2l, name)):  # type: ignore[misc]
        def setup(self) -> None:  # JAX's layers must have it
            pass

    with pytest.raises(NotImplementedError, match=r"Mine\.\w+: got no definition; need one in"):
        TO_BE_DEFINED[name](face, Mine)


def test_no_public_name_is_forgotten(face: ModuleType) -> None:
    shared = {
        *common.__all__,
        *face.d2l.tensors.__all__,
    }  # tests/test_common.py, and the framework's own
    assert {*face.d2l.__all__} - shared <= CASES.keys() | ELSEWHERE.keys()


def test_a_label_of_no_class_is_refused_where_values_are_known(face: ModuleType) -> None:
    call = judged("loss", X[0], np.array([0, 1, 8], "int32"))
    if face.d2l.__name__.endswith("jax"):  # it compiles its loss, which has no values
        assert np.isnan(face.plain(call(face))[0])
        return
    with pytest.raises(ValueError, match="Y: got a label of 8; need labels from 0 to 7, of 8 clas"):
        call(face)
