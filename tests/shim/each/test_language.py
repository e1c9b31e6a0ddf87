"""Tests of D2L's chapters on natural language: with short texts, and against NumPy in float64."""

import random
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.shim.each import fake_data
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import assert_close
from tests.shim.each.test_transformer import apply_block, read_linear, read_norm

TOKENS = np.array([[1, 2, 3, 0, 4], [6, 5, 4, 3, 2]], "int32")
SEGMENTS = np.array([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]], "int32")
LENS = np.array([3, 5], "int32")
POSITIONS = np.array([[1, 2, 0], [4, 0, 3]], "int32")
BATCH = [TOKENS, SEGMENTS, LENS, POSITIONS]
X = np.random.default_rng(8).normal(size=(2, 5, 8)).astype("float32")
# Tokens, hiddens, hiddens of the feed-forward network, heads, blocks, dropout, positions.
SHORT_FORM = 7, 8, 16, 2, 2, 0.0, 6
LONG_FORM = 7, 8, [8], 8, 16, 2, 2, 0.0, 6, 8, 8, 8


@pytest.fixture(scope="module")
def language(adapter: Adapter, pytestconfig: pytest.Config) -> Any:
    """Return a reader's models of natural language; if D2L has no such chapters, check that their names are missing."""
    framework = pytestconfig.getoption("framework")
    if find_spec(f"tests.shim.each.{framework}.language") is None:
        adapter.assert_missing("BERTModel", "TokenEmbedding", "load_data_imdb")
        pytest.skip("D2L has no such chapters in this framework")
    return import_module(f"tests.shim.each.{framework}.language")


@pytest.fixture
def texts(adapter: Adapter, language: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fake_data.replace_language(monkeypatch, adapter.d2l, tmp_path)


def join_tokens(vocab: Any, row: Any) -> str:
    return " ".join(vocab.to_tokens([*row]))


def read_batches(adapter: Adapter, batches: Any) -> list[list[Any]]:
    """Return the arrays of each batch."""
    return [adapter.to_numpy([*batch]) for batch in batches]


# Words


def test_token_embedding_reads_vectors(adapter: Adapter, texts: None) -> None:
    for name in ("glove.6b.50d", "wiki.en"):
        embedding = adapter.d2l.TokenEmbedding(name)
        assert len(embedding) == 5
        assert embedding.idx_to_token == ["<unk>", "w0", "w1", "w2", "w3"]
        assert embedding.token_to_idx["w3"] == 4
        assert embedding.unknown_idx == 0
        table = np.array([[0, 0, 0], *([i, -i, 0.5] for i in range(4))])
        np.testing.assert_array_equal(adapter.to_numpy(embedding.idx_to_vec), table)
        vectors = adapter.to_numpy(embedding[["w2", "nobody", "w0"]])
        assert vectors.dtype == np.float32
        np.testing.assert_array_equal(vectors, table[[3, 0, 1]])
        assert adapter.to_numpy(embedding[["w1"]]).shape == (1, 3)


def test_ptb_batches_are_skip_grams(adapter: Adapter, texts: None) -> None:
    random.seed(0)
    batches, vocab = adapter.d2l.load_data_ptb(16, 2, 3)
    seen_centers = []
    sizes = set()
    for centers, numbers, masks, labels in read_batches(adapter, batches):
        assert centers.shape == (len(numbers), 1)
        assert numbers.shape == masks.shape == labels.shape
        for center, number, mask, label in zip(centers[:, 0], numbers, masks, labels, strict=True):
            count = int(mask.sum())
            size = int(label.sum())
            assert count == 4 * size  # the context, and three noise words for each of its words
            assert (mask == (np.arange(len(mask)) < count)).all()
            assert (label == (np.arange(len(mask)) < size)).all()
            assert (number[count:] == 0).all()
            context = [int(word[1:]) for word in vocab.to_tokens([*number[:size]])]
            middle = int(vocab.to_tokens(int(center))[1:])
            # A sentence has 40 consecutive numbers.
            assert context == sorted(context)
            assert {x // 40 for x in context} == {middle // 40}
            assert middle not in context
            assert not {*number[:size]} & {*number[size:count]}
            seen_centers.append(int(center))
            sizes.add(size)
    assert sizes == {1, 2, 3, 4}
    assert len(batches) == -(-len(seen_centers) // 16)
    assert len({*seen_centers}) > 50
    later_batches = read_batches(adapter, batches)
    later_centers = [int(center) for batch in later_batches for center in batch[0][:, 0]]
    assert later_centers != seen_centers  # they are shuffled
    assert sorted(later_centers) == sorted(seen_centers)


def test_batchify_pads_skip_grams(adapter: Adapter, language: Any) -> None:
    batch = adapter.d2l.batchify(((1, [2, 2], [3, 3, 3, 3]), (1, [2, 2, 2], [3, 3])))
    assert [x.tolist() for x in adapter.to_numpy([*batch])] == [
        [[1], [1]],
        [[2, 2, 3, 3, 3, 3], [2, 2, 2, 3, 3, 0]],
        [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]],
        [[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]],
    ]


# Sentences


def test_imdb_batches_are_reviews(adapter: Adapter, texts: None) -> None:
    train, test, vocab = adapter.d2l.load_data_imdb(4, 6)
    assert vocab.idx_to_token == ["<unk>", *(f"w{i}" for i in range(2, 10))]  # at least 5 times
    test_batches = read_batches(adapter, test)
    assert [X.shape for X, _ in test_batches] == [(4, 6), (4, 6), (2, 6)]
    X, y = (np.concatenate(column) for column in zip(*test_batches, strict=True))
    assert y.tolist() == [1] * 5 + [0] * 5
    assert join_tokens(vocab, X[3]) == "w3 w4 w5 w6 w7 w8"
    assert join_tokens(vocab, X[9]) == "w5 w6 w7 w8 w9 <unk>"
    assert join_tokens(vocab, X[0]) == "<unk> <unk> w2 w3 w4 w5"
    assert adapter.is_shuffled(train)
    assert signature(adapter.d2l.load_data_imdb).parameters["num_steps"].default == 500


def test_snli_batches_are_pairs(
    adapter: Adapter, texts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test, vocab = adapter.d2l.load_data_snli(4, 3)
    assert capsys.readouterr().out == "read 18 examples\nread 18 examples\n"
    assert vocab.idx_to_token[:2] == ["<pad>", "<unk>"]
    pairs = []
    for (premises, hypotheses), labels in read_batches(adapter, test):
        assert premises.shape == hypotheses.shape == (len(labels), 3)
        for *pair, label in zip(premises, hypotheses, labels, strict=True):
            pairs.append((*(join_tokens(vocab, row) for row in pair), int(label)))
    expected = [i for i in range(24) if i % 4 < 3]
    counts = Counter(f"w{n % 10}" for i in expected for n in (i, i + 1, i + 2))
    assert {*vocab.idx_to_token[2:]} == {word for word, count in counts.items() if count >= 5}

    def format_known(*numbers: int) -> str:
        tokens = [f"w{n % 10}" if counts[f"w{n % 10}"] >= 5 else "<unk>" for n in numbers]
        return " ".join(tokens + ["<pad>"] * (3 - len(tokens)))

    assert pairs == [(format_known(i, i + 1), format_known(i + 2), i % 4) for i in expected]
    assert adapter.is_shuffled(train)


def test_snli_dataset_takes_vocabulary(adapter: Adapter, language: Any) -> None:
    vocab = adapter.d2l.Vocab(["a", "b"], reserved_tokens=["<pad>"])
    dataset = adapter.d2l.SNLIDataset((["a b a", "b"], ["x", ""], [2, 0]), 2, vocab)
    (premise, hypothesis), label = dataset[0]
    assert join_tokens(vocab, adapter.to_numpy(premise)) == "a b"
    assert join_tokens(vocab, adapter.to_numpy(hypothesis)) == "<unk> <pad>"
    assert int(label) == 2
    assert dataset.vocab is vocab
    assert (len(dataset), dataset.num_steps) == (2, 2)
    assert adapter.to_numpy(dataset.labels).tolist() == [2, 0]
    assert join_tokens(vocab, adapter.to_numpy(dataset.premises)[1]) == "b <pad>"
    assert join_tokens(vocab, adapter.to_numpy(dataset.hypotheses)[1]) == "<pad> <pad>"


@pytest.mark.parametrize("kind", ["a layer", "a function"])
def test_predictions_are_likeliest_classes(adapter: Adapter, language: Any, kind: str) -> None:
    vocab = adapter.d2l.Vocab([*"abc"])
    table = np.zeros((4, 3), "float32")
    table[vocab[[*"abc"]]] = np.eye(3)
    expected = {"positive": "c b c", "negative": "a b a"}
    net = language.classifier(table, np.float32([[1, 0], [0, 0], [0, 1]]))
    model = net if kind == "a layer" else lambda X: net(X)
    if kind == "a function" and hasattr(net, "eval"):
        net.eval()
    if kind == "a function" and hasattr(net, "to"):
        net.to(adapter.d2l.try_gpu())  # as in D2L, since a function's device is unknown
    for name, sentence in expected.items():
        for _ in range(5):  # there is no dropout
            assert adapter.d2l.predict_sentiment(model, vocab, sentence) == name
    assert getattr(net, "training", True) == (kind == "a layer" or not hasattr(net, "eval"))
    net = language.classifier(table, np.eye(3, dtype="float32"))
    if hasattr(net, "eval"):
        net.eval()
    pairs = {"entailment": ("aab", "a"), "contradiction": ("b", "ab"), "neutral": ("c", "c")}
    for name, (premise, hypothesis) in pairs.items():
        assert adapter.d2l.predict_snli(net, vocab, [*premise], [*hypothesis]) == name


# BERT


def test_wiki_batches_are_sentence_pairs(adapter: Adapter, texts: None) -> None:
    random.seed(1)
    batches, vocab = adapter.d2l.load_data_wiki(8, 9)
    batch_arrays = read_batches(adapter, batches)
    assert [len(batch[0]) for batch in batch_arrays] == [8] * 5
    assert [x.shape for x in batch_arrays[0]] == [
        (8, 9),
        (8, 9),
        (8,),
        (8, 1),
        (8, 1),
        (8, 1),
        (8,),
    ]
    assert {"<pad>", "<mask>", "<cls>", "<sep>", "<unk>"} < {*vocab.idx_to_token}
    columns = [np.concatenate(column) for column in zip(*batch_arrays, strict=True)]
    tokens, segments, lens, positions, weights, labels, nsp_labels = columns
    assert weights.dtype == np.float32
    assert (weights == 1).all()
    assert 8 < nsp_labels.sum() < 32
    whole = tokens.copy()
    np.put_along_axis(whole, positions, labels, 1)
    for row, segment, count in zip(whole, segments, lens, strict=True):
        pair = join_tokens(vocab, row[: int(count)]).split()
        assert (pair[0], pair[-1], pair.count("<sep>")) == ("<cls>", "<sep>", 2)
        first = pair.index("<sep>") + 1
        segments_of_pair = [0] * first + [1] * (len(pair) - first) + [0] * (9 - len(pair))
        assert segment.tolist() == segments_of_pair
        assert {*vocab.to_tokens([*row[len(pair) :]])} <= {"<pad>"}
    assert vocab["<mask>"] in np.take_along_axis(tokens, positions, 1)
    again = np.concatenate([batch[0] for batch in read_batches(adapter, batches)])
    assert (again != tokens).any()  # they are shuffled
    np.testing.assert_array_equal(np.sort(again, axis=0), np.sort(tokens, axis=0))


def test_wiki_masks_15_percent_of_tokens_in_order(adapter: Adapter, language: Any) -> None:
    sentences = [" ".join(f"w{i + n}" for n in range(20)) for i in range(8)]
    dataset = adapter.d2l._WikiTextDataset([sentences], 64)
    lens, positions, weights = (
        adapter.to_numpy(x)
        for x in (dataset.valid_lens, dataset.all_pred_positions, dataset.all_mlm_weights)
    )
    assert positions.shape == (7, 10)  # 15 % of 64
    for length, row, weight in zip(lens, positions, weights, strict=True):
        count = round(0.15 * int(length))
        assert weight.tolist() == [1] * count + [0] * (10 - count)
        assert (np.diff(row[:count]) > 0).all()


def test_wiki_dataset_has_d2ls_attributes(adapter: Adapter, texts: None) -> None:
    random.seed(2)
    folder = adapter.d2l.download_extract("wikitext-2", "wikitext-2")
    dataset = adapter.d2l._WikiTextDataset(adapter.d2l._read_wiki(folder), 9)
    assert len(dataset) == 40
    names = "all_token_ids", "all_segments", "valid_lens", "all_pred_positions"
    names += "all_mlm_weights", "all_mlm_labels", "nsp_labels"
    for name, item in zip(names, dataset[3], strict=True):
        np.testing.assert_array_equal(
            adapter.to_numpy(getattr(dataset, name))[3], adapter.to_numpy(item)
        )


def get_position_table(adapter: Adapter, encoder: Any) -> Any:
    positions = encoder.part("pos_embedding")
    return adapter.to_numpy(positions.data() if callable(positions.data) else positions)


def encode(adapter: Adapter, layer: Any, table: Any, lens: Any, path: str = "") -> Any:
    """Return the reference's output of BERT's encoder for TOKENS."""
    x = layer.parameters(f"{path}token_embedding")["table"][TOKENS].astype("float64")
    x = x + layer.parameters(f"{path}segment_embedding")["table"][SEGMENTS] + table[:, :5]
    for number in range(2):
        x, _ = apply_block(adapter, layer, x, lens, 2, f"{path}blks.{number}.")
    return x


@pytest.mark.parametrize("form", ["D2L 1.0", "D2L 0.17", "D2L 0.17, named"])
def test_bert_encoder_matches_reference(adapter: Adapter, language: Any, form: str) -> None:
    is_mxnet = adapter.d2l.__name__.endswith("mxnet")  # where 0.17's signature is the short one
    older_form = SHORT_FORM if is_mxnet else LONG_FORM
    forms = {"D2L 1.0": SHORT_FORM, "D2L 0.17": older_form}
    args: tuple[Any, ...] = forms.get(form, SHORT_FORM[:2])
    kwargs: dict[str, Any] = {}
    if form == "D2L 0.17, named":
        kwargs = {
            "ffn_num_hiddens": 16,
            "num_heads": 2,
            "num_layers": 2,
            "dropout": 0,
            "max_len": 6,
        }
        if not is_mxnet:
            names = "norm_shape", "ffn_num_input", "key_size", "query_size", "value_size"
            kwargs |= dict.fromkeys(names, 8)
    layer = adapter.build("BERTEncoder", *args, **kwargs)
    layer.randomize(TOKENS, SEGMENTS, LENS)
    table = get_position_table(adapter, layer)
    assert table.shape == (1, 6, 8)
    for lens in (LENS, None):
        assert_close(layer(TOKENS, SEGMENTS, lens), encode(adapter, layer, table, lens), 1e-3)
    floats = [x.astype("float32") for x in (TOKENS, SEGMENTS, LENS)]
    assert_close(layer(*floats), encode(adapter, layer, table, LENS), 1e-3)
    assert all("bias" in layer.parameters(f"blks.1.attention.W_{role}") for role in "qkvo")


def test_bert_tasks_match_reference(adapter: Adapter, language: Any) -> None:
    for sizes in ((7, 6), (7, 6, 8))[: 1 if adapter.d2l.__name__.endswith("mxnet") else 2]:
        layer = adapter.build("MaskLM", *sizes)
        layer.randomize(X, POSITIONS)
        first, normal, last = (name.removeprefix("mlm.") for name in language.MASK_LM_LAYERS)
        selected = np.take_along_axis(X, POSITIONS[..., None], 1)
        hidden = np.maximum(read_linear(layer, first)(selected), 0)
        hidden = read_norm(adapter, layer, normal)(hidden)
        assert_close(layer(X, POSITIONS), read_linear(layer, last)(hidden), 1e-4)
    layer = adapter.build("NextSentencePred")
    layer.randomize(X[:, 0])
    assert_close(layer(X[:, 0]), read_linear(layer, "output")(X[:, 0]))


@pytest.fixture(scope="module")
def bert(adapter: Adapter, language: Any) -> Any:
    layer = adapter.build("BERTModel", *SHORT_FORM)
    layer.randomize(*BATCH)
    return layer


def test_bert_model_matches_reference(adapter: Adapter, language: Any, bert: Any) -> None:
    table = get_position_table(adapter, adapter.layer(bert.part("encoder")))
    want = encode(adapter, bert, table, LENS, "encoder.")
    got, tokens_hat, next_hat = bert(*BATCH)
    assert_close(got, want, 1e-3)
    first, normal, last = language.MASK_LM_LAYERS
    selected = np.take_along_axis(want, POSITIONS[..., None], 1)
    hidden = np.maximum(read_linear(bert, first)(selected), 0)
    hidden = read_norm(adapter, bert, normal)(hidden)
    assert_close(tokens_hat, read_linear(bert, last)(hidden), 1e-3)
    pooled = np.tanh(read_linear(bert, language.HIDDEN)(want[:, 0]))
    assert_close(next_hat, read_linear(bert, language.NEXT)(pooled), 1e-3)
    assert bert(*BATCH[:3])[1] is None
    assert_close(bert(TOKENS, SEGMENTS)[0], encode(adapter, bert, table, None, "encoder."), 1e-3)


def test_bert_model_takes_long_signature(adapter: Adapter, language: Any) -> None:
    if adapter.d2l.__name__.endswith("mxnet"):
        model = adapter.build("BERTModel", *SHORT_FORM[:4], num_layers=2, dropout=0.0)
        model.randomize(*BATCH)
    else:
        model = adapter.build("BERTModel", *LONG_FORM, 8, 8, 8)
    assert [x.shape for x in model(*BATCH)] == [(2, 5, 8), (2, 3, 7), (2, 2)]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_bert_losses_and_gradients_match_reference(
    adapter: Adapter, language: Any, bert: Any, reduction: str
) -> None:
    weights = np.float32([[1, 1, 0], [1, 0, 0]])
    if reduction == "mean" and not adapter.d2l.__name__.endswith("mxnet"):
        weights[:] = 1  # a mean loss does not depend on padding
    labels, nsp_labels = np.array([[5, 0, 1], [6, 2, 3]], "int64"), np.array([1, 0], "int64")
    columns = [*BATCH, weights, labels, nsp_labels]
    token_loss, next_loss, total, *gradients = language.losses(
        adapter.d2l, bert.layer, 7, columns, reduction
    )
    _, tokens_hat, next_hat = bert(*BATCH)
    token_losses, token_slopes = entropy(tokens_hat, labels)
    next_losses, next_slopes = entropy(next_hat, nsp_labels)
    want = (token_losses * weights).sum() / weights.sum(), next_losses.mean()
    assert_close(np.array([token_loss, next_loss, total]).ravel(), [*want, sum(want)], 1e-4)
    assert_close(
        gradients[0], (token_slopes * weights[..., None]).sum((0, 1)) / weights.sum(), 1e-4
    )
    assert_close(gradients[1], next_slopes.mean(axis=0), 1e-4)
    slope = gradients[2] / np.linalg.norm(gradients[2])
    losses = []
    for step in (0.003, -0.006, 0.003):  # the last step restores the positions
        language.move_positions(bert.layer, np.float32(step) * slope)
        losses.append(
            float(np.ravel(language.losses(adapter.d2l, bert.layer, 7, columns, reduction)[2])[0])
        )
    assert (losses[0] - losses[1]) / 0.006 == pytest.approx(np.linalg.norm(gradients[2]), rel=0.03)


def entropy(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Return the cross-entropy of each row, and its gradient."""
    probs = np.exp(logits.astype("float64"))
    probs /= probs.sum(axis=-1, keepdims=True)
    losses = -np.log(np.take_along_axis(probs, labels[..., None], -1))[..., 0]
    return losses, probs - np.eye(logits.shape[-1])[labels]


def test_padding_does_not_affect_first_token(adapter: Adapter, language: Any, bert: Any) -> None:
    other = TOKENS.copy()
    other[0, 3:] = 6
    assert_close(bert(other, SEGMENTS, LENS)[2], bert(TOKENS, SEGMENTS, LENS)[2])
