"""BERT (Devlin et al., 2019): an encoder of two sentences, its two tasks, and WikiText-2 to train it on."""

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

from mxnet import gluon, np
from mxnet.gluon import nn

from d2l_compat._shared import checks, signatures
from d2l_compat._shared.data import wiki
from d2l_compat.common import Vocab, download_extract
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet.transformer import TransformerEncoderBlock

__all__ = ["BERTEncoder", "BERTModel", "MaskLM", "NextSentencePred", "load_data_wiki"]
Arrays = Sequence[np.ndarray]

_read_wiki = wiki.read
_get_next_sentence = wiki.draw_sentence
_get_nsp_data_from_paragraph = wiki.draw_pairs
_replace_mlm_tokens = wiki.replace_tokens
_get_mlm_data_from_tokens = wiki.mask_tokens


class BERTEncoder(nn.Block):
    """BERT's encoder: trained embeddings of tokens, segments and positions, and encoder blocks with biases.

    ``BERTEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, max_len=1000)``; in D2L 0.17,
    ``num_blks`` is called ``num_layers``.
    """

    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        max_len: int = 1000,
    ) -> None: ...
    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
        max_len: int = 1000,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(
        self,
        *,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        dropout: float,
        max_len: int,
        **count: int,  # num_blks or num_layers
    ) -> None:
        """Create the layer. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        self.vocab_size, self.max_len = vocab_size, max_len
        self.token_embedding = nn.Embedding(vocab_size, num_hiddens)
        self.segment_embedding = nn.Embedding(2, num_hiddens)
        self.blks = nn.Sequential()
        (num_blks,) = count.values()
        for _ in range(num_blks):
            sizes = num_hiddens, ffn_num_hiddens, num_heads
            self.blks.add(TransformerEncoderBlock(*sizes, dropout, True))
        shape = 1, max_len, num_hiddens
        self.pos_embedding = self.params.get("pos_embedding", shape=shape)

    def __call__(
        self, tokens: np.ndarray, segments: np.ndarray, valid_lens: np.ndarray | None = None
    ) -> np.ndarray:
        return super().__call__(tokens, segments, valid_lens)

    def forward(
        self, tokens: np.ndarray, segments: np.ndarray, valid_lens: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode tokens and segments (0 or 1), integers (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens`` has the shape (batch,). Raises ValueError or TypeError for other input, and for more steps than
        ``max_len``.
        """
        arrays.check_sentence_pair(tokens, segments, self.vocab_size, self.max_len)
        X = self.token_embedding(tokens) + self.segment_embedding(segments)
        X = X + self.pos_embedding.data(ctx=X.ctx)[:, : X.shape[1]]
        for block in self.blks:
            X = block(X, valid_lens)
        return X


class MaskLM(nn.Block):
    """BERT's first task, to predict masked tokens."""

    def __init__(self, vocab_size: int, num_hiddens: int) -> None:
        """Create the layer. Raises TypeError or ValueError for sizes below 1."""
        super().__init__()
        vocab_size = checks.size("vocab_size", vocab_size)
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        self.mlp = nn.Sequential()
        self.mlp.add(nn.Dense(num_hiddens, flatten=False, activation="relu"))
        self.mlp.add(nn.LayerNorm(), nn.Dense(vocab_size, flatten=False))

    def forward(self, X: np.ndarray, pred_positions: np.ndarray) -> np.ndarray:
        """Return logits (batch, predictions, vocab_size) of the tokens at ``pred_positions``.

        ``X`` has the shape (batch, steps, inputs), ``pred_positions`` (batch, predictions). Raises TypeError or
        ValueError for other arguments.
        """
        arrays.check_pred_positions(X, pred_positions)
        arrays.check_features(X, self.mlp[0])
        rows = np.arange(len(X), dtype="int32", ctx=X.ctx).repeat(pred_positions.shape[1])
        masked_X = X[rows, pred_positions.astype("int32").reshape(-1)]
        return self.mlp(masked_X.reshape(*pred_positions.shape, -1))


class NextSentencePred(nn.Block):
    """BERT's second task, to predict whether the second sentence follows the first."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Dense(2)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Return logits (batch, 2) for X (batch, ...). Raises TypeError or ValueError for other arguments."""
        arrays.check_instance("X", X)
        flat = X.reshape(len(X), math.prod(X.shape[1:])) if X.ndim > 2 else X
        arrays.check_features(flat, self.output)
        return self.output(flat)


class BERTModel(nn.Block):
    """BERT with its two tasks.

    ``BERTModel(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, max_len=1000)``; in D2L 0.17,
    ``num_blks`` is called ``num_layers``.
    """

    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_blks: int,
        dropout: float,
        max_len: int = 1000,
    ) -> None: ...
    @overload
    def __init__(
        self,
        vocab_size: int,
        num_hiddens: int,
        ffn_num_hiddens: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
        max_len: int = 1000,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layer. Raises ValueError or TypeError as :class:`MultiHeadAttention` does."""
        super().__init__()
        self.encoder = BERTEncoder(**arguments)
        self.hidden = nn.Dense(arguments["num_hiddens"], activation="tanh")
        self.mlm = MaskLM(arguments["vocab_size"], arguments["num_hiddens"])
        self.nsp = NextSentencePred()

    def __call__(
        self,
        tokens: np.ndarray,
        segments: np.ndarray,
        valid_lens: np.ndarray | None = None,
        pred_positions: np.ndarray | None = None,
    ) -> Any:
        return super().__call__(tokens, segments, valid_lens, pred_positions)

    def forward(
        self,
        tokens: np.ndarray,
        segments: np.ndarray,
        valid_lens: np.ndarray | None = None,
        pred_positions: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the encoded tokens, and logits for the masked tokens and for the next sentence.

        Their shapes are (batch, steps, num_hiddens), (batch, predictions, vocab_size) and (batch, 2). Without
        ``pred_positions`` the logits for masked tokens are None. Those for the next sentence are computed from the
        first token, ``<cls>``. Raises ValueError or TypeError as the encoder and the tasks' layers do.
        """
        encoded = self.encoder(tokens, segments, valid_lens)
        tokens_hat = None if pred_positions is None else self.mlm(encoded, pred_positions)
        return encoded, tokens_hat, self.nsp(self.hidden(encoded[:, 0]))


def _to_tensor(x: Any) -> np.ndarray:
    return np.array(x, dtype=_int64_to_int32(x).dtype)


def _int64_to_int32(x: Any) -> Any:
    """Cast a NumPy array of int64 to int32; return any other array unchanged."""
    return x.astype("int32") if x.dtype == "int64" else x


def _pad_bert_inputs(
    examples: Sequence[Any], max_len: int, vocab: Vocab
) -> tuple[list[np.ndarray], ...]:
    """Return the arrays of ``wiki.pad_inputs`` as lists with a tensor for each example."""
    columns = wiki.pad_inputs(examples, max_len, vocab)
    return tuple([*_to_tensor(column)] for column in columns)


class _WikiTextDataset(wiki.WikiText, gluon.data.Dataset):
    tensor = staticmethod(_to_tensor)


def load_data_wiki(batch_size: int, max_len: int) -> tuple[gluon.data.DataLoader, Vocab]:
    """Load pairs of sentences of WikiText-2 in shuffled batches, and the vocabulary.

    A batch is tokens and segments (batch, max_len); lengths (batch,); positions of masked tokens, their weights (1, or
    0 for padding) and their labels, each (batch, predictions); and labels (batch,), 1 if the second sentence follows
    the first. Weights are float32, all others int32. Raises TypeError or ValueError for sizes below 1 or too small for
    any pair, and what :func:`download_extract` raises.
    """
    batch_size, max_len = checks.size("batch_size", batch_size), checks.size("max_len", max_len)
    paragraphs = _read_wiki(download_extract("wikitext-2", "wikitext-2"))
    vocab, columns = wiki.make_examples(paragraphs, max_len)
    # The columns stay NumPy arrays, whose rows are indexed faster.
    dataset = gluon.data.ArrayDataset(*map(_int64_to_int32, columns))
    return gluon.data.DataLoader(dataset, batch_size, shuffle=True), vocab


def _get_batch_loss_bert(
    net: Callable[..., Any],
    loss: Callable[..., np.ndarray],
    vocab_size: int,
    tokens_X_shards: Arrays,
    segments_X_shards: Arrays,
    valid_lens_x_shards: Arrays,
    pred_positions_X_shards: Arrays,
    mlm_weights_X_shards: Arrays,
    mlm_Y_shards: Arrays,
    nsp_y_shards: Arrays,
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return the mean losses of both tasks, and their sum, for each device.

    ``loss(y_hat, y, weights)`` returns one number per prediction.
    """
    inputs = tokens_X_shards, segments_X_shards, valid_lens_x_shards, pred_positions_X_shards
    targets = mlm_weights_X_shards, mlm_Y_shards, nsp_y_shards
    mlm_losses, nsp_losses = [], []
    for tokens, segments, lens, positions, weights, Y, y in zip(*inputs, *targets, strict=True):
        _, tokens_hat, next_hat = net(tokens, segments, lens.reshape(-1), positions)
        logits = tokens_hat.reshape(-1, vocab_size)
        losses = loss(logits, Y.reshape(-1), weights.reshape(-1, 1))
        mlm_losses.append(losses.sum() / (weights.sum() + 1e-8))
        nsp_losses.append(loss(next_hat, y).mean())
    total_losses = [mlm + nsp for mlm, nsp in zip(mlm_losses, nsp_losses, strict=True)]
    return mlm_losses, nsp_losses, total_losses
