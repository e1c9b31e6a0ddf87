"""Encoders and decoders, how they learn to translate, and how they do it: Sutskever et al. (2014)."""

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

if TYPE_CHECKING:  # nn.Module knows this one alone
    from flax.linen.module import module_field as field
else:
    from dataclasses import field


class Encoder(nn.Module):
    """The base class of encoders: define ``__call__``."""

    def __call__(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """What the decoder's ``init_state`` will be given; to be defined."""
        raise undefined_method_error(self, "__call__")


class Decoder(nn.Module):
    """The base class of decoders: define ``init_state`` and ``__call__``."""

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        """The first state, from the encoder's outputs; to be defined."""
        raise undefined_method_error(self, "init_state")

    def __call__(self, X: Any, state: Any, **kwargs: Any) -> Any:
        """Logits for the tokens after ``X``, and the next state; to be defined."""
        raise undefined_method_error(self, "__call__")


class AttentionDecoder(Decoder):
    """The base class of decoders that attend.

    Its weights are not kept, as in other frameworks: sow them into "intermediates", under the
    name "dec_attention_weights", for ``predict_step`` to find.
    """

    @property
    def attention_weights(self) -> Any:
        """The last call's weights; to be defined."""
        raise undefined_method_error(self, "attention_weights")


class EncoderDecoder(Classifier):
    """An encoder, and a decoder that starts from what it gives.

    Both are called with ``training=``, as the model was made or as its trainer sets it. Raises
    TypeError if one of the two is not a layer.
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
        """The decoder's output for ``dec_X``, shape (batch, steps, vocabulary), and not its state."""
        encoded = self.encoder(enc_X, *args, training=self.training)
        state = self.decoder.init_state(encoded, *args)
        return self.decoder(dec_X, state, training=self.training)[0]

    def predict_step(
        self, params: Any, batch: Any, num_steps: int, save_attention_weights: bool = False
    ) -> tuple[jax.Array, tuple[list[Any], Any]]:
        """Decode, taking the likeliest token each time; also the attention weights.

        ``batch`` is (source, target, source lengths, labels), of which the target's first tokens
        are used. Returns tokens of shape (batch, num_steps), and what was sown into
        "intermediates": the decoder's "dec_attention_weights" of each step, and the encoder's
        "enc_attention_weights", an empty list where it has none. Weights of several heads come
        as (batch * heads, queries, keys), as D2L's pages take them. Dropout is off.

        Raises NotImplementedError where the decoder sows no weights and they are asked for.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = batch
        run = partial(_run, save=save_attention_weights)
        encoded, of_encoder = run(self.encoder, params["encoder"], source, lengths)
        state = self.decoder.init_state(encoded, lengths)
        outputs, weights = [jnp.asarray(target)[:, :1]], []
        for _ in range(num_steps):
            (Y, state), sown = run(self.decoder, params["decoder"], outputs[-1], state)
            outputs.append(Y.argmax(axis=2))
            if save_attention_weights:
                if "dec_attention_weights" not in sown:
                    raise undefined_method_error(
                        self.decoder, "sow('intermediates', 'dec_attention_weights')"
                    )
                weights.append(_head_by_head(sown["dec_attention_weights"][0]))
        of_encoder = _head_by_head(of_encoder.get("enc_attention_weights", [[]])[0])
        return jnp.concatenate(outputs[1:], axis=1), (weights, of_encoder)


def _run(layer: nn.Module, params: Any, *inputs: Any, save: bool) -> tuple[Any, dict[str, Any]]:
    """What a layer gives without training, and what it sows."""
    if not save:
        return layer.apply({"params": params}, *inputs, training=False), {}
    output, sown = layer.apply({"params": params}, *inputs, training=False, mutable="intermediates")
    return output, sown.get("intermediates", {})


def _head_by_head(weights: Any) -> Any:
    """(batch, heads, queries, keys), as MultiHeadAttention gives them, to (batch * heads, ...)."""

    def together(array: jax.Array) -> jax.Array:
        return array.reshape(-1, *array.shape[2:]) if array.ndim == 4 else array

    return jax.tree.map(together, weights)


class GRU(nn.Module):
    """Gated recurrent units in layers: Cho et al. (2014).

    ``dropout``, from 0 to 1, is the share dropped between layers in training. Raises ValueError
    or TypeError for arguments of a wrong range or kind.
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
        """(steps, batch, inputs) to (steps, batch, hiddens), and the state of each layer.

        The state, given or returned, is (layers, batch, hiddens). ``training`` needs a key named
        "dropout".
        """
        check_training(training)
        outputs, states = as_jax(X), []
        arrays.check_sequence("X", outputs, self._num_inputs())
        if state is not None:
            state = as_jax(state)
            arrays.check_state("state", state, self.num_layers, X.shape[1], self.num_hiddens)
        for number in range(self.num_layers):
            if number:
                outputs = nn.Dropout(self.dropout)(outputs, deterministic=not training)
            layer = nn.RNN(nn.GRUCell(self.num_hiddens), time_major=True, return_carry=True)
            before = None if state is None else state[number]
            last, outputs = layer(outputs, initial_carry=before)
            states.append(last)
        return outputs, jnp.stack(states)

    def _num_inputs(self) -> int | None:
        """What its weights, where it has some by now, were made for."""
        weights: Any = self.get_variable("params", "GRUCell_0")
        return None if weights is None else weights["ir"]["kernel"].shape[0]


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence: its outputs at all steps, and its state at the end.

    Raises ValueError or TypeError for arguments of a wrong range or kind.
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
        """Tokens (batch, steps) to (steps, batch, hiddens), and the state (layers, batch, hiddens).

        ``training`` needs a key named "dropout".
        """
        X = as_jax(X)
        arrays.check_tokens(X, self.vocab_size)
        return self.rnn(self.embedding(X.T.astype(jnp.int32)), training=training)


class Seq2Seq(EncoderDecoder):
    """Encoder and decoder, trained with Adam at the learning rate ``lr``.

    ``tgt_pad`` is the number of the token that fills up sentences; it does not count.
    """

    tgt_pad: int
    lr: float

    def validation_step(self, params: Any, batch: Any, state: Any) -> None:
        """Draw the loss of a batch."""
        self.plot("loss", self.loss(params, batch[:-1], batch[-1], state)[0], train=False)

    @partial(jax.jit, static_argnums=(0, 5))
    def loss(
        self, params: Any, X: Any, Y: jax.Array, state: Any, averaged: bool = True
    ) -> tuple[jax.Array, Any]:
        """Cross-entropy of the tokens that are not ``tgt_pad``; not averaged, 0 at those.

        Returns the variables that changed as well.
        """
        losses, changed = super().loss(params, X, Y, state, False)
        counts = (Y.reshape(-1) != self.tgt_pad).astype(losses.dtype)
        losses = losses * counts
        return losses.sum() / counts.sum() if averaged else losses, changed

    def configure_optimizers(self) -> Any:
        """Adam, at the learning rate ``lr``: Optax's."""
        import optax  # type: ignore[import-untyped]

        return optax.adam(self.lr)


def sequence_mask(X: Array, valid_len: Array, value: float = 0) -> jax.Array:
    """``X`` with ``value`` in each example's steps past its length; ``X`` itself is not changed.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    X = as_jax(X)
    arrays.check_sequence_mask(X, valid_len, value)
    is_past = jnp.arange(X.shape[1]) >= valid_len[:, None]
    is_past = is_past.reshape(*is_past.shape, *[1] * (X.ndim - 2))
    return jnp.where(is_past, jnp.asarray(value, X.dtype), X)
