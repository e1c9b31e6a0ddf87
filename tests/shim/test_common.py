"""Tests of code that all frameworks share: text, training helpers and boards, against values computed by hand."""

import math
import time
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from d2l_compat import common as d2l
from d2l_compat._shared.data.translation import preprocess_nmt
from tests.shim.each.rules import matches_message


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# Vocabulary and BLEU


def test_vocabulary_is_in_alphabetical_order():
    vocab = d2l.Vocab([["go", "."], ["hi", "."], ["go", "!"]], reserved_tokens=["<pad>"])
    assert vocab.idx_to_token == ["!", ".", "<pad>", "<unk>", "go", "hi"]
    assert len(vocab) == 6
    assert vocab["go"] == 4
    assert vocab[["hi", "nobody", ["go"]]] == [5, vocab.unk, [4]]
    assert vocab.to_tokens(0) == "!"
    assert vocab.to_tokens(np.array(1)) == "."
    assert vocab.to_tokens([5]) == ["hi"]
    assert vocab.to_tokens(range(2)) == vocab.to_tokens(np.float32([0, 1])) == ["!", "."]
    assert vocab.to_tokens(np.array([4, 5])) == ["go", "hi"]
    assert vocab.token_freqs[0] in (("go", 2), (".", 2))


def test_tuples_are_tokens():
    pairs = [("b", "a"), ("a", "b"), ("b", "a")]
    vocab = d2l.Vocab([*pairs, "a", 7])
    assert vocab.idx_to_token == ["<unk>", "a", ("a", "b"), ("b", "a"), 7]
    assert vocab.token_freqs[0] == (("b", "a"), 2)
    assert vocab[("b", "a")] == [0, 1]  # as in d2l: the index of each part
    assert vocab[7] == 4
    assert vocab[8] == vocab[None] == vocab.unk
    lines = (("a", "b"), ("a",))
    assert d2l.subsample(lines, d2l.Vocab(["a", "b"]))[1] == {"a": 2, "b": 1}


def test_rare_tokens_are_left_out():
    assert d2l.Vocab(list("aab"), min_freq=2).idx_to_token == ["<unk>", "a"]
    assert d2l.Vocab().idx_to_token == ["<unk>"]


TOKEN_LISTS = [["b", "a"], ["b", "c", "<pad>"]]


@pytest.mark.parametrize("version", ["0.17", "0.17.6"])
def test_tokens_are_by_frequency_in_0_17(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("D2L_VERSION", version)
    vocab = d2l.Vocab(TOKEN_LISTS, reserved_tokens=["<pad>", "<bos>"])
    assert vocab.idx_to_token == ["<unk>", "<pad>", "<bos>", "b", "a", "c"]
    assert vocab[["b", "nobody", "<pad>"]] == [3, 0, 1]
    assert vocab.to_tokens([0, 5]) == ["<unk>", "c"]
    assert d2l.Vocab(TOKEN_LISTS, min_freq=2).idx_to_token == ["<unk>", "b"]


@pytest.mark.parametrize("version", ["", "1.0", "1.0.3"])
def test_tokens_are_alphabetical_in_1_0(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("D2L_VERSION", version)
    assert d2l.Vocab(TOKEN_LISTS).idx_to_token == ["<pad>", "<unk>", "a", "b", "c"]


@pytest.mark.parametrize("version", ["0.1", "0.16.3", "1", "1.1", "017", "newest", " 0.17"])
def test_other_versions_are_rejected(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("D2L_VERSION", version)
    with pytest.raises(ValueError, match=rf"^D2L_VERSION: got '{version}'; need '0.17' or '1.0'$"):
        d2l.Vocab([])


@pytest.mark.parametrize(
    ("pred", "label", "k", "score"),
    [
        ("a b c d", "a b c d", 4, 1),
        ("a b", "a b c d", 2, math.exp(-1)),  # too short
        # 3 of 4 tokens match, and 1 of 3 pairs.
        ("a b x c", "a b c", 2, 0.75**0.5 * (1 / 3) ** 0.25),
        # 4 of 5 tokens match, 2 of 4 pairs, 1 of 3 triples.
        (
            "a b c x d",
            "a b c d e",
            3,
            (4 / 5) ** (1 / 2) * (2 / 4) ** (1 / 4) * (1 / 3) ** (1 / 8),
        ),
        # Also 1 of 2 quadruples, and the label is longer.
        (
            "a b c d x",
            "a b c d e f",
            4,
            math.exp(1 - 6 / 5)
            * (4 / 5) ** (1 / 2)
            * (3 / 4) ** (1 / 4)
            * (2 / 3) ** (1 / 8)
            * (1 / 2) ** (1 / 16),
        ),
        ("a a a", "a b c", 1, (1 / 3) ** 0.5),  # each token counts at most as often as in the label
        ("x", "a", 1, 0),
        ("", "a", 2, 0),
        ("a", "a", 4, 1),  # there are no pairs
    ],
)
def test_bleu_matches_formula(pred: str, label: str, k: int, score: float):
    assert d2l.bleu(pred, label, k) == pytest.approx(score)


def test_preprocessing_separates_signs_and_unifies_spaces():
    text = "Well, go on!\tD'accord\u202f! O\u00f9\xa0? Va. 3.5? No,no"
    expected = "well , go on !\td'accord ! o\u00f9 ? va . 3 .5 ? no ,no"
    assert preprocess_nmt(text) == expected


# Training helpers


def test_add_to_class_affects_existing_objects():
    class A:
        x = 2

    a = A()

    @d2l.add_to_class(A)
    def double(self):
        return 2 * self.x

    assert a.double() == 4
    with pytest.raises(TypeError, match="Class: got int; need a class"):
        d2l.add_to_class(3)


def test_arguments_and_local_variables_become_attributes():
    class B(d2l.HyperParameters):
        def __init__(self, a, b, _private, *rest, c=3, **more):
            local = a + b
            self.save_hyperparameters(ignore=["b"])
            assert local

    b = B(1, 2, 0, 7, 8, d=4)
    assert b.hparams == {"a": 1, "c": 3, "rest": (7, 8), "more": {"d": 4}, "local": 3}
    assert (b.a, b.c, b.local) == (1, 3, 3)
    assert not hasattr(b, "b")
    assert not hasattr(b, "_private")


def test_timer_adds_up(monkeypatch: pytest.MonkeyPatch):
    ticks = iter([0.0, 1.0, 10.0, 12.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    timer = d2l.Timer()
    assert timer.avg() == 0
    assert timer.stop() == 1
    timer.start()
    timer.stop()
    assert (timer.sum(), timer.avg(), timer.cumsum()) == (3, 1.5, [1, 3])


def test_accumulator_keeps_sums():
    sums = d2l.Accumulator(2)
    sums.add(1, np.float32(0.5))
    sums.add(2, 0.25)
    assert (sums[0], sums[1]) == (3, 0.75)
    sums.reset()
    assert sums.data == [0, 0]


# Boards


def curves(axes: Any) -> list[list[tuple[float, float]]]:
    return [list(zip(*line.get_data(), strict=True)) for line in axes.get_lines()]


def test_animator_plots_added_points():
    board = d2l.Animator(xlabel="epoch", legend=["loss", "accuracy"], xlim=[1, 3], yscale="log")
    board.add(1, (0.9, None))
    board.add(2, (np.array(0.5), 0.75))
    axes = board.axes[0]
    assert curves(axes) == [[(1, 0.9), (2, 0.5)], [(2, 0.75)]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["loss", "accuracy"]
    assert (axes.get_xlabel(), axes.get_yscale(), axes.get_xlim()) == ("epoch", "log", (1, 3))


def test_animator_takes_one_curve_and_formats():
    board = d2l.Animator(fmts=("r:",))
    board.add(0, 1)
    board.add(1, np.float32(4))
    (line,) = board.axes[0].get_lines()
    assert (line.get_color(), line.get_linestyle()) == ("r", ":")
    assert curves(board.axes[0]) == [[(0, 1), (1, 4)]]


def test_animator_draws_replaced_formats():
    board = d2l.Animator()
    board.add(0, [1] * 6)
    board.fmts = ["g:"]
    board.add(1, [2] * 6)
    assert {line.get_color() for line in board.axes[0].get_lines()} == {"g"}
    assert len(board.axes[0].get_lines()) == 6


def test_board_subclass_needs_no_other_init():
    class Silent(d2l.ProgressBoard):
        def __init__(self):
            self.display = False

    board = Silent()
    board.draw(0, 1, "loss")
    assert board.data == {"loss": [(0, 1)]}


def test_progress_board_draws_means():
    board = d2l.ProgressBoard(xlabel="x", ylabel="y")
    for x in range(4):
        board.draw(x, 10 * x, "even", every_n=2)
    board.draw(1, 5, "one")
    assert board.data == {"even": [(0.5, 5), (2.5, 25)], "one": [(1, 5)]}
    (axes,) = board.fig.axes
    assert curves(axes) == [[(0.5, 5), (2.5, 25)], [(1, 5)]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["even", "one"]
    assert axes.get_lines()[0].get_color() != axes.get_lines()[1].get_color()


def test_hidden_board_draws_nothing():
    board = d2l.ProgressBoard(display=False)
    board.draw(0, 1, "loss")
    assert board.fig is None
    assert plt.get_fignums() == []


# Images


def test_show_images_draws_grid():
    images = [np.full((2, 3), k) for k in range(3)]
    axes = d2l.show_images(images, 2, 2, titles=["a", "b", "c"], scale=2)
    assert len(axes) == 4
    assert tuple(axes[0].figure.get_size_inches()) == (4, 4)
    for k in range(3):
        (image,) = axes[k].get_images()
        np.testing.assert_array_equal(image.get_array(), images[k])
        assert axes[k].get_title() == "abc"[k]
        assert axes[k].axison
    assert not axes[3].get_images()
    assert not axes[3].axison


def test_show_images_omits_images_beyond_grid():
    images = np.arange(5.0).repeat(4).reshape(5, 2, 2)
    axes = d2l.show_images(images, 1, 2, titles="abcde")
    assert [axis.get_title() for axis in axes] == ["a", "b"]
    arrays = [axis.get_images()[0].get_array() for axis in axes]
    np.testing.assert_array_equal(arrays, images[:2])


def test_annotation_has_arrow():
    d2l.annotate("min", (1, 2), (3, 4))
    (note,) = plt.gca().texts
    assert (note.get_text(), note.xy, note.xyann) == ("min", (1, 2), (3, 4))
    assert note.arrow_patch is not None


# Bad input that no rule of tests/shim/each/rules.py describes


# fmt: off
BAD_CALLS: dict[str, Callable[[], Any]] = {
    "TypeError: tokens: got a string; need a list of tokens...": lambda: d2l.Vocab("abc"),
    "IndexError: indices: got 1; need integers from 0 to 0...": lambda: d2l.Vocab().to_tokens(1),
    "IndexError: indices: got -1; need integers...": lambda: d2l.Vocab().to_tokens([-1]),
    "ValueError: indices: got 1.9; need integers from 0...": lambda: d2l.Vocab().to_tokens(1.9),
    "TypeError: indices: got True; need integers...": lambda: d2l.Vocab().to_tokens([True]),
    "TypeError: tokens: got a token that is not hashable; need tokens...": lambda: d2l.Vocab(["a", ["b"]]),
    "TypeError: tokens: got int; need a list of lists...": lambda: d2l.Vocab([["a"], 1]),
    "TypeError: tokens: got set; need a token, or a list...": lambda: d2l.Vocab()[["a", {"b"}]],
    "TypeError: trainer: got a result of 0; need four numbers: x1, x2, s1, s2...":
        lambda: d2l.train_2d(max, 1),
    "ValueError: args: got 1 numbers; need 2, one for each sum...":
        lambda: d2l.Accumulator(2).add(1),
    "ValueError: args: got shape (2,); need one number...": lambda: d2l.Accumulator(1).add([1, 2]),
    "TypeError: args: got str of dtype <U1; need an array...": lambda: d2l.Accumulator(1).add("1"),
    "ValueError: titles: got 1 for 2 images; need one for each image in the grid...":
        lambda: d2l.show_images([np.zeros((2, 2))] * 3, 1, 2, titles=["a"]),
    "TypeError: imgs: got list of dtype...": lambda: d2l.show_images([["a"]], 1, 1),
}
# fmt: on


@pytest.mark.parametrize(("message", "call"), BAD_CALLS.items(), ids=BAD_CALLS)
def test_bad_input_raises_clear_errors(message: str, call: Callable[[], Any]):
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        call()
    assert matches_message(message, f"{caught.type.__name__}: {caught.value}")


# A competition's images


def test_reorganized_images_have_folder_per_label(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    labels = {str(i): "cat" if i < 4 else "dog" for i in range(10)}
    for name in labels:
        (tmp_path / "train" / f"{name}.png").write_text(name)
    (tmp_path / "test" / "11.png").write_text("11")
    (tmp_path / "labels.csv").write_text(
        "\n".join(["id,label", *(f"{name},{label}" for name, label in labels.items())])
    )
    assert d2l.read_csv_labels(tmp_path / "labels.csv") == labels
    assert d2l.reorg_train_valid(tmp_path, labels, 0.5) == 2  # half of the cats
    assert d2l.reorg_test(str(tmp_path)) is None
    output = tmp_path / "train_valid_test"
    numbers = {
        folder.relative_to(output).as_posix(): sorted(
            int(file.read_text()) for file in folder.iterdir()
        )
        for folder in output.glob("*/*")
    }
    assert numbers == {
        "train_valid/cat": [0, 1, 2, 3],
        "train_valid/dog": [4, 5, 6, 7, 8, 9],
        "valid/cat": [0, 1],
        "valid/dog": [4, 5],
        "train/cat": [2, 3],
        "train/dog": [6, 7, 8, 9],
        "test/unknown": [11],
    }
    assert d2l.reorg_train_valid(tmp_path, labels, 0.1) == 1


def test_missing_competition_files_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data_dir: got .*train .*; need a folder"):
        d2l.reorg_train_valid(tmp_path, {"1": "cat"}, 0.1)
    with pytest.raises(ValueError, match="valid_ratio: got 2; need a share, from 0 to 1"):
        d2l.reorg_train_valid(tmp_path, {"1": "cat"}, 2)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "2.png").touch()
    with pytest.raises(KeyError, match="labels: got none for '2'; need a label for each name"):
        d2l.reorg_train_valid(tmp_path, {"1": "cat"}, 0.1)
    (tmp_path / "labels.csv").write_text("id,label\n1,cat,dog\n")
    with pytest.raises(ValueError, match="fname: got a line '1,cat,dog'; need two columns"):
        d2l.read_csv_labels(tmp_path / "labels.csv")
    with pytest.raises(
        FileNotFoundError, match=r"filename: got .*; need a file that can be copied"
    ):
        d2l.copyfile(tmp_path / "3.png", tmp_path / "new")
