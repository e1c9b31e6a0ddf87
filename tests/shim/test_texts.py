"""Tests of texts of D2L's chapters on natural language that upstream's d2l reads differently.

tests/shim/each/test_oracle.py compares the others. Batches are tested in tests/shim/each/test_language.py, bad
arguments by tests/shim/each/rules.py.
"""

import random
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from d2l_compat import common as d2l
from d2l_compat._shared.data import hub, sentences, vectors, wiki
from d2l_compat._shared.description import describe


@pytest.fixture
def write_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that replaces D2L's zip of this name by one with these files."""
    monkeypatch.setenv("D2L_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def write(name: str, folder: str, files: dict[str, str]) -> None:
        address = hub.DATA_HUB[name][0]
        monkeypatch.setitem(hub.DATA_HUB, name, (address, None))
        with zipfile.ZipFile(tmp_path / address.rpartition("/")[2], "w") as archive:
            for file, text in files.items():
                archive.writestr(f"{folder}/{file}", text)

    return write


# Words and their contexts


def test_first_word_can_be_noise():
    """Test that <unk> is never noise, even if it is not the first token."""
    vocab = d2l.Vocab(["$", "a", "b"])
    assert (vocab["$"], vocab.unk) == (0, 1)
    counter = Counter({"$": 5, "a": 5, "b": 5})
    (noise,) = d2l.get_negatives([[vocab["a"]] * 50], vocab, counter, 2)
    assert {*noise} == {vocab["$"], vocab["b"]}


def test_noise_words_follow_counts_to_power_of_three_quarters():
    random.seed(0)
    vocab = d2l.Vocab(["a", "b", "c"])
    counter = Counter({"a": 5, "b": 1, "c": 16})
    (noise,) = d2l.get_negatives([[vocab["a"]] * 1000], vocab, counter, 10)
    share = noise.count(vocab["c"]) / len(noise)
    assert abs(share - 8 / 9) < 0.02  # 16 ** 0.75 = 8; a standard deviation is 0.003


# Vectors


def test_vectors_may_have_header_line(write_zip: Any):
    write_zip("glove.6b.50d", "glove.6B.50d", {"vec.txt": "the 0.5 -1 2e-1\nof 1 2 3\n"})
    write_zip("wiki.en", "wiki.en", {"vec.txt": "2 3\nthe 0.5 -1 2e-1 \nof 1 2 3 \n"})
    for name in ("glove.6b.50d", "wiki.en"):
        tokens, table = vectors.read(name)
        assert tokens == ["<unk>", "the", "of"]
        assert table.dtype == np.float32
        np.testing.assert_array_equal(table, np.float32([[0, 0, 0], [0.5, -1, 0.2], [1, 2, 3]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 0.5 -1\nof 1 2 3\n", "with vectors of 2 and 3 numbers; need vectors of one length"),
        ("2 3\n", "with vectors of no numbers; need vectors of one length"),
        ("the 0.5 x\n", r"embedding_name: got the \(could not convert .*; need numbers"),
    ],
)
def test_malformed_vectors_are_rejected(write_zip: Any, text: str, message: str):
    write_zip("wiki.en", "wiki.en", {"vec.txt": text})
    with pytest.raises(ValueError, match=message):
        vectors.read("wiki.en")


# BERT's pairs


def test_single_sentence_paragraphs_are_skipped(tmp_path: Path):
    text = " = Head = \n One . Two . \n\n" + "".join(f" Go {i} . Stop {i} . \n" for i in range(30))
    (tmp_path / "wiki.train.tokens").write_text(text)
    paragraphs = wiki.read(tmp_path)
    want = [["one", "two ."], *([f"go {i}", f"stop {i} ."] for i in range(30))]
    assert paragraphs != want  # shuffled
    assert sorted(paragraphs) == sorted(want)


def test_tokens_of_pairs_are_masked():
    random.seed(4)
    text = [[f"{'abcdefgh'[i]} {n} x y z" for i in range(8)] for n in range(40)]
    vocab, columns = wiki.make_examples(text, 20)
    tokens, segments, lens, positions, weights, labels, is_next_labels = columns
    assert (len(tokens), tokens.shape[1]) == (40 * 7, 20)
    assert (lens == 13).all()
    assert positions.shape == weights.shape == labels.shape == (280, 3)
    assert (weights == [1, 1, 0]).all()  # 15 % of 13 tokens are 2
    assert (positions[:, 2] == 0).all()
    assert (labels[:, 2] == 0).all()
    assert (tokens[:, 13:] == vocab["<pad>"]).all()
    assert (segments == [0] * 7 + [1] * 6 + [0] * 7).all()
    assert 0.4 < is_next_labels.mean() < 0.6
    rows = np.arange(280)[:, None]
    masked = tokens[rows, positions[:, :2]]
    assert 0.7 < (masked == vocab["<mask>"]).mean() < 0.9
    assert 0.05 < (masked == labels[:, :2]).mean() < 0.17
    assert (positions[:, 0] < positions[:, 1]).all()
    restored = tokens.copy()
    restored[rows, positions[:, :2]] = labels[:, :2]
    for line, is_next in zip(restored, is_next_labels, strict=True):
        words = vocab.to_tokens(line[:13])
        assert [words[0], words[6], words[12]] == ["<cls>", "<sep>", "<sep>"]
        assert words[3:6] == words[9:12] == ["x", "y", "z"]
        first, second = ("abcdefgh".find(words[i]) for i in (1, 7))
        if is_next:
            assert (words[8], second) == (words[2], first + 1)


def test_masking_covers_all_sentences_words_and_tokens():
    random.seed(6)
    too_long = "g h i j " * 5  # so that these words are not rare
    text = [["a b", "c d", "e f"]] * 5 + [["g h", "i j", too_long]]
    masked, second_sentences, replacements = set(), set(), set()
    for _ in range(200):
        vocab, (tokens, _, _, positions, _, labels, is_next_labels) = wiki.make_examples(text, 7)
        columns = tokens, positions[:, 0], labels[:, 0], is_next_labels
        for line, position, label, is_next in zip(*columns, strict=True):
            masked.add(position)
            if line[position] != label:
                replacements.add(line[position])
            if position < 4 and not is_next:  # the second sentence has no mask
                second_sentences.add(" ".join(vocab.to_tokens(line[4:6])))
    assert masked == {1, 2, 4, 5}
    assert second_sentences == {"a b", "c d", "e f", "g h", "i j"}
    assert replacements == {*range(len(vocab))}


def test_too_long_pairs_are_skipped():
    text = [["a b", "c d", "e f g"]] * 3
    random.seed(5)
    assert len(wiki.make_examples(text, 8)[1][0]) == 6
    assert 3 <= len(wiki.make_examples(text, 7)[1][0]) < 6
    with pytest.raises(ValueError, match="max_len: got 4; need a size that a pair of sentences fi"):
        wiki.make_examples(text, 4)


def test_network_needs_output_for_each_class():
    with pytest.raises(ValueError, match=r"net: got an output of shape \(1, 3\); need \(1, 2\)"):
        sentences.best_name(sentences.SENTIMENTS, [[0.1, 0.2, 0.7]])


def test_histogram_is_described():
    lists = [[0] * n for n in (1, 1, 2, 11)], [[0], [0] * 5]
    d2l.show_list_len_pair_hist(["before", "after"], "# words", "count", *lists)
    description = describe(plt.gcf())
    plt.close("all")
    assert description == (
        "Bar chart of count against # words. before: 10 bars from 1.1 to 10.5, values from 0.00 to 2.00. "
        "after: 10 bars from 1.5 to 10.9, values from 0.00 to 1.00."
    )


# Bad input that no rule describes


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: d2l.RandomGenerator([1, -2.0]),
            ValueError,
            "a weight of -2.0; need a list of fin",
        ),
        (
            lambda: d2l.RandomGenerator([[1]]),
            ValueError,
            r"sampling_weights: got shape \(1, 1\); need",
        ),
        (lambda: d2l.RandomGenerator([]), ValueError, "sampling_weights: got a sum of 0.0; need"),
        (
            lambda: d2l.get_negatives([[1]], d2l.Vocab(["a"]), Counter(a=3), 5),
            ValueError,
            "all_contexts: got a context with all words in it; need at least one word outside of it",
        ),
        (lambda: d2l.read_imdb("x", True), FileNotFoundError, "data_dir: got x/train/pos .*need a"),
        (lambda: d2l.read_snli("x", 0), FileNotFoundError, "data_dir: got x/snli_1.0_test.txt .*n"),
    ],
)
def test_bad_input_raises_clear_errors(call: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


def test_pairs_without_columns_are_rejected(tmp_path: Path):
    (tmp_path / "snli_1.0_train.txt").write_text("head\nneutral\tA person\n")
    with pytest.raises(ValueError, match="with fewer columns; need a label, a premise and a hypo"):
        d2l.read_snli(tmp_path, True)
