"""BERT (Devlin et al., 2019): an encoder of two sentences, its two tasks, and WikiText-2 to train it on."""

from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.io import DataLoader, Dataset

from d2l_compat._shared import checks, layers, signatures
from d2l_compat._shared.data import wiki
from d2l_compat.common import Vocab, download_extract
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.attention import linear
from d2l_compat.paddle.training import make_loader
from d2l_compat.paddle.transformer import TransformerEncoderBlock

__all__ = ["BERTEncoder", "BERTModel", "MaskLM", "NextSentencePred", "load_data_wiki"]

_read_wiki = wiki.read
_get_next_sentence = wiki.draw_sentence
_get_nsp_data_from_paragraph = wiki.draw_pairs
_replace_mlm_tokens = wiki.replace_tokens
_get_mlm_data_from_tokens = wiki.mask_tokens


class BERTEncoder(layers.BERTEncoder, nn.Layer):
    """BERT's encoder: trained embeddings of tokens, segments and positions, and encoder blocks with biases.

    ``BERTEncoder(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, max_len=1000)``, or D2L's
    longer form, with sizes that must equal ``num_hiddens``: (vocab_size, num_hiddens, norm_shape, ffn_num_input,
    ffn_num_hiddens, num_heads, num_layers, dropout, max_len=1000, key_size=768, query_size=768, value_size=768).
    """

    def _make_layers(self, vocab_size: int, max_len: int, num_blks: int, **block: Any) -> None:
        num_hiddens = block["num_hiddens"]
        # All sizes are known at once: only then can saved weights be loaded before the first call.
        block = dict.fromkeys(signatures.DERIVED_SIZES, num_hiddens) | block
        self.token_embedding = nn.Embedding(vocab_size, num_hiddens)
        self.segment_embedding = nn.Embedding(2, num_hiddens)
        self.blks = nn.Sequential(*(TransformerEncoderBlock(**block) for _ in range(num_blks)))
        normal = paddle.nn.initializer.Normal()  # mean 0, variance 1
        shape = [1, max_len, num_hiddens]
        self.pos_embedding = self.create_parameter(shape, default_initializer=normal)

    def forward(self, tokens: Tensor, segments: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        """Encode tokens and segments (0 or 1), integers (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens`` has the shape (batch,). Raises ValueError or TypeError for other input, and for more steps than
        ``max_len``.
        """
        vocab_size, max_len = self.token_embedding.weight.shape[0], self.pos_embedding.shape[1]
        arrays.check_sentence_pair(tokens, segments, vocab_size, max_len)
        X = self.token_embedding(tokens.astype("int64")) + self.segment_embedding(
            segments.astype("int64")
        )
        X = X + self.pos_embedding[:, : X.shape[1]]
        if isinstance(valid_lens, Tensor) and valid_lens.ndim == 0:  # as on one of D2L's pages
            valid_lens = valid_lens.unsqueeze(0)
        for block in self.blks:
            X = block(X, valid_lens)
        return X


class MaskLM(nn.Layer):
    """BERT's first task, to predict masked tokens.

    ``num_inputs`` is the number of features of the encoder's output; if it is None, the first input sets it.
    """

    def __init__(self, vocab_size: int, num_hiddens: int, num_inputs: int | None = None) -> None:
        """Create the layer. Raises TypeError or ValueError for sizes below 1."""
        super().__init__()
        checks.size("vocab_size", vocab_size)
        checks.size("num_hiddens", num_hiddens)
        first = linear(checks.optional_size("num_inputs", num_inputs), num_hiddens)
        last = nn.Linear(num_hiddens, vocab_size)
        self.mlp = nn.Sequential(first, nn.ReLU(), nn.LayerNorm(num_hiddens), last)

    def forward(self, X: Tensor, pred_positions: Tensor) -> Tensor:
        """Return logits (batch, predictions, vocab_size) of the tokens at ``pred_positions``.

        ``X`` has the shape (batch, steps, inputs), ``pred_positions`` (batch, predictions). Raises TypeError or
        ValueError for other arguments.
        """
        arrays.check_pred_positions(X, pred_positions)
        arrays.check_features(X, self.mlp[0])
        rows = paddle.arange(X.shape[0]).unsqueeze(1)
        return self.mlp(X[rows, pred_positions.astype("int64")])


class NextSentencePred(nn.Layer):
    """BERT's second task, to predict whether the second sentence follows the first.

    ``num_inputs`` is the number of features of the encoder's output; if it is None, the first input sets it.
    """

    def __init__(self, num_inputs: int | None = None) -> None:
        """Create the layer. Raises TypeError or ValueError for a size below 1."""
        super().__init__()
        self.output = linear(checks.optional_size("num_inputs", num_inputs), 2)

    def forward(self, X: Tensor) -> Tensor:
        """Return logits (batch, 2) for X (batch, inputs). Raises TypeError or ValueError for other arguments."""
        arrays.check_features(X, self.output)
        return self.output(X)


class BERTModel(layers.BERTModel, nn.Layer):
    """BERT with its two tasks.

    ``BERTModel(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, max_len=1000)``, or D2L's longer
    form, with sizes that must equal ``num_hiddens``: (vocab_size, num_hiddens, norm_shape, ffn_num_input,
    ffn_num_hiddens, num_heads, num_layers, dropout, max_len=1000, key_size=768, query_size=768, value_size=768,
    hid_in_features=768, mlm_in_features=768, nsp_in_features=768).
    """

    def _make_layers(
        self,
        *,
        vocab_size: int,
        num_hiddens: int,
        hid_in_features: int | None,
        mlm_in_features: int | None,
        nsp_in_features: int | None,
        **sizes: Any,
    ) -> None:
        self.encoder = BERTEncoder(vocab_size=vocab_size, num_hiddens=num_hiddens, **sizes)
        hidden = nn.Linear(hid_in_features or num_hiddens, num_hiddens)
        self.hidden = nn.Sequential(hidden, nn.Tanh())
        self.mlm = MaskLM(vocab_size, num_hiddens, mlm_in_features or num_hiddens)
        self.nsp = NextSentencePred(nsp_in_features or num_hiddens)

    def forward(
        self,
        tokens: Tensor,
        segments: Tensor,
        valid_lens: Tensor | None = None,
        pred_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return the encoded tokens, and logits for the masked tokens and for the next sentence.

        Their shapes are (batch, steps, num_hiddens), (batch, predictions, vocab_size) and (batch, 2). Without
        ``pred_positions`` the logits for masked tokens are None. Those for the next sentence are computed from the
        first token, ``<cls>``. Raises ValueError or TypeError as the encoder and the tasks' layers do.
        """
        encoded = self.encoder(tokens, segments, valid_lens)
        tokens_hat = None if pred_positions is None else self.mlm(encoded, pred_positions)
        return encoded, tokens_hat, self.nsp(self.hidden(encoded[:, 0]))


def _pad_bert_inputs(
    examples: Sequence[Any], max_len: int, vocab: Vocab
) -> tuple[list[Tensor], ...]:
    """Return the arrays of ``wiki.pad_inputs`` as lists with a tensor for each example."""
    columns = wiki.pad_inputs(examples, max_len, vocab)
    return tuple([*paddle.to_tensor(column)] for column in columns)


class _WikiTextDataset(wiki.WikiText, Dataset[Any]):
    tensor = staticmethod(paddle.to_tensor)


def load_data_wiki(batch_size: int, max_len: int) -> tuple[DataLoader, Vocab]:
    """Load pairs of sentences of WikiText-2 in shuffled batches, and the vocabulary.

    A batch is tokens and segments (batch, max_len); lengths (batch,); positions of masked tokens, their weights (1, or
    0 for padding) and their labels, each (batch, predictions); and labels (batch,), 1 if the second sentence follows
    the first. Weights are float32, all others int64. Raises TypeError or ValueError for sizes below 1 or too small for
    any pair, and what :func:`download_extract` raises.
    """
    batch_size, max_len = checks.size("batch_size", batch_size), checks.size("max_len", max_len)
    paragraphs = _read_wiki(download_extract("wikitext-2", "wikitext-2"))
    dataset = _WikiTextDataset(paragraphs, max_len)
    return make_loader(dataset, batch_size, True), dataset.vocab


def _get_batch_loss_bert(
    net: Callable[..., Any],
    loss: Callable[[Tensor, Tensor], Tensor],
    vocab_size: int,
    tokens_X: Tensor,
    segments_X: Tensor,
    valid_lens_x: Tensor,
    pred_positions_X: Tensor,
    mlm_weights_X: Tensor,
    mlm_Y: Tensor,
    nsp_y: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean losses of both tasks, and their sum; ``loss`` returns a mean, or a number per prediction."""
    _, tokens_hat, next_hat = net(
        tokens_X, segments_X, valid_lens_x.reshape([-1]), pred_positions_X
    )
    weights = mlm_weights_X.reshape([-1])
    losses = loss(tokens_hat.reshape([-1, vocab_size]), mlm_Y.reshape([-1]))
    mlm_loss = (losses * weights).sum() / (weights.sum() + 1e-8)
    nsp_loss = loss(next_hat, nsp_y).mean()
    return mlm_loss, nsp_loss, mlm_loss + nsp_loss
