"""Test that any call of a public name works, or raises a ValueError or TypeError with a clear message.

First, each argument of a good call is replaced by the bad values of its rules (rules.py), and the messages are
compared, which are the same in every framework. Then one or two arguments are replaced by random values, the same in
each run: each call must either work or raise such an error, and no call may work with meaningless arguments.
"""

import random
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import settings

from d2l_compat._shared.data import images
from tests.shim.each import fake_data
from tests.shim.each.adapter import Adapter
from tests.shim.each.calls import CALLS, ERROR_CALLS, SKIPPED, Lazy, find_signature, resolve, tensor
from tests.shim.each.rules import find_bad_values, matches_message

# fmt: off
VALUES = [
    None, True, False, -1, 0, 1, 2, 3, 20, 2**40, 2**63, -(2**64), 0.0, 0.5, 1.0, 1.9, -0.5,
    float("nan"), float("inf"), 1e300, 1j, "", "1", "a b", b"1", [], [1], [[1], [2, 3]], ["a"],
    (), (1, 2), {}, {"a": 1}, object(), int, len, range(3), np.float32(0.5), np.int64(2),
    np.array(2), np.array([]), np.array(["a"]), np.ones((2, 3, 8)),
]
# fmt: on
SHAPES = [(), (0,), (2,), (2, 3), (2, 3, 8), (2, 3, 0), (0, 3, 8), (2, 0, 8), (2, 3, 5), (4, 3, 8)]
DTYPES = ["float32", "float64", "int32", "int64", "int8", "uint8", "bool"]
NUMBERS = [0, 1, 2, 7, 100, -1, -3, 0.5]

# Documented exceptions of other types, such as those that lists, dictionaries and files raise.
NO_SUCH_FILE = """
    CTRDataset reorg_train_valid reorg_test read_voc_images read_data_bananas read_csv_labels
    load_data_voc load_data_bananas copyfile VOCSegDataset BananasDataset read_imdb read_snli"""
OTHER_ERRORS: dict[str, tuple[type[Exception], ...]] = {
    **dict.fromkeys(NO_SUCH_FILE.split(), (OSError,)),
    "Classifier.accuracy": (OverflowError,),  # from jax.jit, for integers past 64 bits
    "Classifier.loss": (OverflowError,),
    "Trainer.fit": (NotImplementedError,),  # abstract methods
    "Vocab.to_tokens": (IndexError,),
    "download": (KeyError, FileNotFoundError),
    "download_extract": (KeyError, FileNotFoundError),
    "evaluate_ranking": (KeyError,),  # a user without test items
    "evaluate_loss": (RuntimeError,),  # from the reader's function
    "extract": (FileNotFoundError,),
    "predict_seq2seq": (NotImplementedError,),
    "train_ch13": (AssertionError,),  # from Paddle, in the reader's function
    "TokenEmbedding": (KeyError, FileNotFoundError),
}

# The position of the argument that sets how many items are made one by one: 2**40 would take forever.
COUNT_ARGUMENT = {"generate": 2, "get_negatives": 3, "load_data_ptb": 2, "predict_ch8": 1}


def takes_forever(name: str, args: list[Any]) -> bool:
    count = args[COUNT_ARGUMENT[name]] if name in COUNT_ARGUMENT else None
    return isinstance(count, int) and count > 1000


def draw_calls(good: tuple[Any, ...], times: int, seed: str) -> Iterator[list[Any]]:
    """Yield arguments for this many calls: first the good ones, then the same with one or two replaced.

    Hypothesis is not used, since these examples need no shrinking, and its search would take most of the time.
    """
    rng = random.Random(seed)
    yield [*good]
    for _ in range(times - 1):
        replaced = rng.sample(range(len(good)), k=min(len(good), rng.choice((1, 1, 2))))
        yield [draw_replacement(rng, x) if i in replaced else x for i, x in enumerate(good)]


def draw_replacement(rng: random.Random, good: Any) -> Any:
    """Draw any value in place of a good one, or a similar tensor in place of a tensor."""
    if rng.random() < 0.5:
        return rng.choice(VALUES)
    dtype, number = rng.choice(DTYPES), rng.choice(NUMBERS)
    array = np.full(rng.choice(SHAPES), number)
    if isinstance(good, Lazy) and good.array is not None and rng.random() < 0.5:
        dtype = rng.choice([dtype, str(good.array.dtype)])
        array = good.array.astype(np.float64)
        array.flat[-1] = number
    return tensor(array.astype(dtype), dtype)


def is_whole(x: Any, largest: float = np.inf) -> bool:
    numbers = np.asarray(x)
    fits = (numbers % 1 == 0) & (numbers >= 0) & (numbers <= largest)
    return not numbers.size or (numbers.dtype.kind in "iuf" and bool(fits.all()))


# Conditions on the arguments (as NumPy arrays) of calls that once worked with meaningless arguments.
PRECONDITIONS: dict[str, Callable[..., bool]] = {
    "PositionWiseFFN, call": lambda X: np.shape(X)[-1] == 8,
    "PositionWiseFFN, first call": lambda X: (
        np.shape(X)[-1] > 0 and np.asarray(X).dtype.kind == "f"
    ),
    "BERTEncoder, call": lambda X, segments, lens: is_whole(X, 6) and is_whole(segments, 1),
    "BERTModel, call": lambda X, segments, lens, positions: (
        is_whole(X, 6) and is_whole(positions, 2)
    ),
    "MaskLM, call": lambda X, positions: is_whole(positions, np.shape(X)[1] - 1),
    "Seq2SeqEncoder, call": lambda X: is_whole(X, 6),
    "TransformerEncoder, call": lambda X, valid_lens: is_whole(X, 6),
    "Vocab.to_tokens": lambda indices: is_whole(indices, 1),
    "sequence_mask": lambda X, lens, value: np.allclose(
        np.asarray(value).astype(np.asarray(X).dtype), value, equal_nan=True
    ),
}


def is_finite(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return all(map(is_finite, x))
    is_real = isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"
    return not is_real or bool(np.isfinite(x).all())


def describe_message(error: Exception) -> str:
    """Describe whether the message has the project's form: the name, what was given, what is needed."""
    assert str(error).strip()
    if re.fullmatch(r"(?s)[\"']?[\w ,.]+: .+; need .+", str(error)):
        return "with the project's message"
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_ours = "d2l_compat" in last.filename and str(last.line).startswith("raise")
    assert not is_ours, f"the message does not say what is needed: {error!r}"
    return "with another message"


@pytest.fixture(scope="module", autouse=True)
def _replace_data(adapter: Adapter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replace downloads by small data sets, and change to a temporary folder."""
    folder = tmp_path_factory.mktemp("bad-input")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        d2l = adapter.d2l
        fake_data.replace_sentences(patch, d2l, folder, "Go .\tVa !\n" * 6)
        fake_data.replace_novel(patch, d2l, folder, "The Time Traveller (so we call him)\n" * 4)
        fake_data.replace_language(patch, d2l, folder)
        fake_data.replace_films(patch, d2l, folder, [(1, 2, 5, 9), (2, 1, 3, 8), (1, 1, 2, 7)])
        fake_data.replace_airfoil(patch, d2l, folder, np.random.default_rng(0).normal(size=(9, 6)))
        shapes = {"images": (6, 28, 28), "labels": (6,)}
        patch.setattr(
            images, "_read_idx", lambda name, _: np.zeros(shapes[name.split("-")[1]], "uint8")
        )
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def exports(adapter: Adapter) -> set[str]:
    return adapter.exports


def test_every_public_name_has_a_call(adapter: Adapter, exports: set[str]) -> None:
    # Tensor functions are the framework's own, with the framework's messages.
    functions = {*adapter.d2l.tensors.__all__} - {"check_shape"}
    called = {re.split(r"[.,]", name)[0] for name in CALLS | ERROR_CALLS}
    assert exports - functions <= called | SKIPPED.keys()
    assert not called & (functions | SKIPPED.keys())
    for name in called - exports:  # D2L does not have it in this framework
        adapter.assert_missing(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS | ERROR_CALLS)
def test_bad_values_raise_errors_of_rules(adapter: Adapter, exports: set[str], name: str) -> None:
    if re.split(r"[.,]", name)[0] not in exports:
        return
    framework = adapter.d2l.__name__.rpartition(".")[2]
    get_callable, make_arguments = (CALLS | ERROR_CALLS)[name]
    call = get_callable(adapter)
    good = make_arguments(adapter)
    failures = []
    for position, parameter in enumerate(find_signature(call, good).parameters.values()):
        good_value = good[position] if position < len(good) else parameter.default
        bad_values = find_bad_values(framework, name, parameter, good_value)
        good_args = [resolve(adapter, x) for x in good] if bad_values else []
        for bad in bad_values:
            args = [*good_args]
            kwargs = {}
            if position < len(good):
                args[position] = resolve(adapter, bad.value)
            else:
                kwargs[parameter.name] = resolve(adapter, bad.value)
            message = catch_error(partial(call, *args, **kwargs))
            expected = f"{bad.error.__name__}: {bad.what or parameter.name}: got {bad.got}; need {bad.need}"
            if not matches_message(expected, message):
                failures.append(
                    f"{parameter.name}={bad.value!r}: expected {expected!r}, message {message!r}"
                )
    assert not failures, "\n".join(failures)


def catch_error(call: Callable[[], Any]) -> str:
    """Return the type and the message of the error that a call raises, if any."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  the type is compared too
        return f"{type(error).__name__}: {error}"
    finally:
        if plt.get_fignums():
            plt.close("all")
    return "no error"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_random_calls_work_or_raise_clear_errors(
    adapter: Adapter, exports: set[str], name: str, record_property: Callable[[str, object], None]
) -> None:
    if re.split(r"[.,]", name)[0] not in exports:
        return
    get_callable, make_arguments = CALLS[name]
    good = make_arguments(adapter)
    outcomes = Counter[str]()
    random.seed(name)  # for functions that draw random numbers
    np.random.seed(0)
    # PyTorch has more examples, which would take half a minute.
    for args in draw_calls(good, min(25, settings().max_examples), name):
        if takes_forever(name, args):
            continue
        try:
            outcomes[run_call(adapter, name, get_callable, args)] += 1
        except BaseException as error:
            error.add_note(f"called with {args}")
            raise
    for outcome, times in outcomes.items():
        record_property(f"random calls {outcome}", times)


def run_call(
    adapter: Adapter, name: str, get_callable: Callable[[Any], Callable[..., Any]], args: list[Any]
) -> str:
    call = get_callable(adapter)
    try:
        result = call(*(resolve(adapter, x) for x in args))
    except (ValueError, TypeError, *OTHER_ERRORS.get(name, ())) as error:
        return f"rejected {describe_message(error)}"
    finally:
        if plt.get_fignums():
            plt.close("all")
    numpy_args = [x.array if isinstance(x, Lazy) and x.array is not None else x for x in args]
    assert name not in PRECONDITIONS or PRECONDITIONS[name](*numpy_args)
    # JAX's compiled loss returns NaN for a label outside the classes, offsets are infinite for an anchor without a size.
    is_sound = is_finite(adapter.to_numpy(result)) or name in ("Classifier.loss", "offset_boxes")
    assert is_sound or not is_finite(numpy_args)
    return "worked"
