"""Encoders and decoders (Sutskever et al., 2014): their layers, training and translation."""

from functools import partial
from typing import TYPE_CHECKING, Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import checks
from d2l_compat._shared import seq2seq as shared
from d2l_compat._shared.training import undefined_method_error
from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax.training import Classifier

__all__ = [
    "GRU",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "Seq2Seq",
    "Seq2SeqEncoder",
    "sequence_mask",
]

if TYPE_CHECKING:  # nn.Module declares this as its only field specifier
    from flax.linen.module import module_field as field
else:
    from dataclasses import field


class Encoder(nn.Module):
    """The base class of encoders: define ``__call__``."""

    def __call__(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the input of the decoder's ``init_state``; subclasses define it."""
        raise undefined_method_error(self, "__call__")


class Decoder(nn.Module):
    """The base class of decoders: define ``init_state`` and ``__call__``."""

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        """Return the first state, from the encoder's outputs; subclasses define it."""
        raise undefined_method_error(self, "init_state")

    def __call__(self, X: Any, state: Any, **kwargs: Any) -> Any:
        """Return logits for the tokens after ``X``, and the next state; subclasses define it."""
        raise undefined_method_error(self, "__call__")


class AttentionDecoder(Decoder):
    """The base class of decoders with attention.

    Unlike in other frameworks, the layer does not store its weights: sow them into "intermediates"
    under the name "dec_attention_weights", where ``predict_step`` reads them.
    """

    @property
    def attention_weights(self) -> Any:
        """Weights of the last call; subclasses define them."""
        raise undefined_method_error(self, "attention_weights")


class EncoderDecoder(Classifier):
    """An encoder, and a decoder that starts from its output.

    Both are called with ``training=self.training``, which a trainer sets. Raises TypeError if one of
    them is not a layer.
    """

    encoder: nn.Module
    decoder: nn.Module
    training: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        checks.check_instance("encoder", self.encoder, nn.Module, "a layer")
        checks.check_instance("decoder", self.decoder, nn.Module, "a layer")
        check_training(self.training)
        super().__post_init__()

    def __call__(self, enc_X: Any, dec_X: Any, *args: Any) -> Any:
        """Return the decoder's output for ``dec_X``, (batch, steps, vocabulary), without its state."""
        encoded = self.encoder(enc_X, *args, training=self.training)
        state = self.decoder.init_state(encoded, *args)
        return self.decoder(dec_X, state, training=self.training)[0]

    def predict_step(
        self, params: Any, batch: Any, num_steps: int, save_attention_weights: bool = False
    ) -> tuple[jax.Array, tuple[list[Any], Any]]:
        """Decode a batch greedily; also return the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target
        are used. Returns tokens of shape (batch, num_steps), and what was sown into
        "intermediates": the decoder's "dec_attention_weights" of each step, and the encoder's
        "enc_attention_weights", an empty list if it sows none. Weights of several heads have the
        shape (batch * heads, queries, keys), which D2L's pages expect. Dropout is off.

        Raises NotImplementedError if weights are to be saved and the decoder sows none.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = batch
        run = partial(_run, save=save_attention_weights)
        encoded, encoder_sown = run(self.encoder, params["encoder"], source, lengths)
        state = self.decoder.init_state(encoded, lengths)
        tokens = [jnp.asarray(target)[:, :1]]
        decoder_weights = []
        for _ in range(num_steps):
            (Y, state), sown = run(self.decoder, params["decoder"], tokens[-1], state)
            tokens.append(Y.argmax(axis=2))
            if save_attention_weights:
                if "dec_attention_weights" not in sown:
                    raise undefined_method_error(
                        self.decoder, "sow('intermediates', 'dec_attention_weights')"
                    )
                decoder_weights.append(_merge_heads(sown["dec_attention_weights"][0]))
        encoder_weights = _merge_heads(encoder_sown.get("enc_attention_weights", [[]])[0])
        return jnp.concatenate(tokens[1:], axis=1), (decoder_weights, encoder_weights)


def _run(layer: nn.Module, params: Any, *inputs: Any, save: bool) -> tuple[Any, dict[str, Any]]:
    """Apply a layer with ``training=False``; return its output and, if ``save``, what it sows."""
    if not save:
        return layer.apply({"params": params}, *inputs, training=False), {}
    output, sown = layer.apply({"params": params}, *inputs, training=False, mutable="intermediates")
    return output, sown.get("intermediates", {})


def _merge_heads(weights: Any) -> Any:
    """Reshape arrays (batch, heads, queries, keys) to (batch * heads, queries, keys)."""

    def merge(array: jax.Array) -> jax.Array:
        return array.reshape(-1, *array.shape[2:]) if array.ndim == 4 else array

    return jax.tree.map(merge, weights)


class GRU(nn.Module):
    """A multilayer network of gated recurrent units (Cho et al., 2014).

    ``dropout``, from 0 to 1, is the share of outputs dropped between layers in training. Raises ValueError
    or TypeError for arguments of the wrong type or range.
    """

    num_hiddens: int
    num_layers: int
    dropout: float = 0

    def __post_init__(self) -> None:
        self.num_hiddens, self.num_layers = shared.recurrent_sizes(
            self.dropout, num_hiddens=self.num_hiddens, num_layers=self.num_layers
        )
        super().__post_init__()

    @nn.compact
    def __call__(
        self, X: Array, state: Array | None = None, training: bool = False
    ) -> tuple[jax.Array, jax.Array]:
        """Map (steps, batch, inputs) to (steps, batch, hiddens) and the new state.

        The previous state, ``state``, and the new one have the shape (layers, batch, hiddens). ``training`` needs a
        random key named "dropout".
        """
        check_training(training)
        outputs = as_jax(X)
        states = []
        arrays.check_sequence("X", outputs, self._num_inputs())
        if state is not None:
            state = as_jax(state)
            arrays.check_state("state", state, self.num_layers, X.shape[1], self.num_hiddens)
        for i in range(self.num_layers):
            if i > 0:
                outputs = nn.Dropout(self.dropout)(outputs, deterministic=not training)
            cell = nn.GRUCell(self.num_hiddens, name=f"ScanGRUCell_{i}")  # D2L's name
            layer = nn.RNN(cell, time_major=True, return_carry=True)
            initial_state = None if state is None else state[i]
            last_state, outputs = layer(outputs, initial_carry=initial_state)
            states.append(last_state)
        return outputs, jnp.stack(states)

    def _num_inputs(self) -> int | None:
        """Return the input size of the weights, or None before they are initialized."""
        weights: Any = self.get_variable("params", "ScanGRUCell_0")
        return None if weights is None else weights["ir"]["kernel"].shape[0]


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence, and returns its outputs at all steps and its final state.

    Raises ValueError or TypeError for arguments of the wrong type or range.
    """

    vocab_size: int
    embed_size: int
    num_hiddens: int
    num_layers: int
    dropout: float = 0

    def __post_init__(self) -> None:
        names = ("vocab_size", "embed_size", "num_hiddens", "num_layers")
        sizes = {name: getattr(self, name) for name in names}
        for name, size in zip(names, shared.recurrent_sizes(self.dropout, **sizes), strict=True):
            setattr(self, name, size)
        super().__post_init__()

    def setup(self) -> None:
        self.embedding = nn.Embed(self.vocab_size, self.embed_size)
        self.rnn = GRU(self.num_hiddens, self.num_layers, self.dropout)

    def __call__(self, X: Array, *args: Any, training: bool = False) -> tuple[jax.Array, jax.Array]:
        """Map tokens (batch, steps) to (steps, batch, hiddens) and a new state (layers, batch, hiddens).

        ``training`` needs a random key named "dropout".
        """
        X = as_jax(X)
        arrays.check_tokens(X, self.vocab_size)
        return self.rnn(self.embedding(X.T.astype(jnp.int32)), training=training)


class Seq2Seq(EncoderDecoder):
    """An encoder and a decoder, trained with Adam at the learning rate ``lr``.

    ``tgt_pad`` is the index of the padding token, which the loss ignores.
    """

    tgt_pad: int
    lr: float

    def validation_step(self, params: Any, batch: Any, state: Any) -> None:
        """Plot the loss of a batch."""
        self.plot("loss", self.loss(params, batch[:-1], batch[-1], state)[0], train=False)

    @partial(jax.jit, static_argnums=(0, 5))
    def loss(
        self, params: Any, X: Any, Y: jax.Array, state: Any, averaged: bool = True
    ) -> tuple[jax.Array, Any]:
        """Return the cross-entropy of tokens other than ``tgt_pad``, and the changed variables.

        If not ``averaged``, there is a loss for each token, 0 for ``tgt_pad``.
        """
        losses, changed = super().loss(params, X, Y, state, False)
        mask = (Y.reshape(-1) != self.tgt_pad).astype(losses.dtype)
        losses = losses * mask
        return losses.sum() / mask.sum() if averaged else losses, changed

    def configure_optimizers(self) -> Any:
        """Return Optax's Adam with the learning rate ``lr``."""
        import optax  # type: ignore[import-untyped]

        return optax.adam(self.lr)


def sequence_mask(X: Array, valid_len: Array, value: float = 0) -> jax.Array:
    """Return a copy of ``X`` with ``value`` in each example's steps past its length.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    X = as_jax(X)
    arrays.check_sequence_mask(X, valid_len, value)
    is_past = jnp.arange(X.shape[1]) >= valid_len[:, None]
    is_past = is_past.reshape(*is_past.shape, *[1] * (X.ndim - 2))
    return jnp.where(is_past, jnp.asarray(value, X.dtype), X)
