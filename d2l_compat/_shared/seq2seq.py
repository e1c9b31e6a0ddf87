"""The parts of training and translating with an encoder and a decoder that are the same in every framework."""

from collections.abc import Callable, Iterable
from typing import Any

from d2l_compat._shared import checks
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.data.text import Vocab, fit_length
from d2l_compat._shared.data.translation import BOS, EOS, PAD
from d2l_compat._shared.measuring import Accumulator, Timer
from d2l_compat._shared.training import undefined_method_error
from d2l_compat._shared.weights import assignable

VOCAB = "a vocabulary, such as a Vocab"
BATCHES = "batches of 4 tensors: sources, their lengths, targets, their lengths"


def recurrent_sizes(dropout: float, **sizes: int) -> list[int]:
    """Return the sizes of a recurrent layer as ints of at least 1; check that ``dropout`` is from 0 to 1."""
    checks.check_dropout(dropout)
    return [checks.size(what, size) for what, size in sizes.items()]


def discard_state(result: Any) -> Any:
    """Return the output of a model that may also return its state, as in D2L 0.17."""
    return result[0] if isinstance(result, tuple) else result


class Encoder:
    """The base class of encoders: define ``forward``."""

    def forward(self, X: Any, *args: Any) -> Any:
        """Return the outputs for the decoder's ``init_state``; subclasses define it."""
        raise undefined_method_error(self, "forward")


class Decoder:
    """The base class of decoders: define ``init_state`` and ``forward``."""

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        """Return the first state, from the encoder's outputs; subclasses define it."""
        raise undefined_method_error(self, "init_state")

    def forward(self, X: Any, state: Any) -> Any:
        """Return logits for the tokens after ``X``, and the next state; subclasses define it."""
        raise undefined_method_error(self, "forward")


class UndefinedWeightsError(NotImplementedError, AttributeError):
    """The error for a decoder without ``attention_weights``: ``hasattr`` returns False."""


class AttentionDecoder:
    """Mixin for decoders with attention."""

    @assignable
    def attention_weights(self) -> Any:
        """Weights of the last call; subclasses define or assign them."""
        raise UndefinedWeightsError(undefined_method_error(self, "attention_weights"))


class EncoderDecoder:
    """An encoder, and a decoder that starts from its outputs.

    An object of this class itself returns an output and a state, as on D2L 0.17's pages. An object of a subclass,
    such as :class:`Seq2Seq`, returns only the output, as in D2L 1.0.
    """

    encoder: Any
    decoder: Any

    def forward(self, enc_X: Any, dec_X: Any, *args: Any) -> Any:
        """Return the decoder's output for ``dec_X``, shape (batch, steps, vocabulary), and its next state.

        A subclass returns only the output.
        """
        state = self.decoder.init_state(self.encoder(enc_X, *args), *args)
        result = self.decoder(dec_X, state)
        # A framework's own EncoderDecoder inherits from this class directly.
        is_subclass = EncoderDecoder not in type(self).__bases__
        return result[0] if is_subclass else result


class Progress:
    """The training loop of ``train_seq2seq``, which draws the loss per token and prints the speed."""

    def __init__(self, num_epochs: int, net: Any, layer: type, tgt_vocab: Any, lr: float) -> None:
        """Check the arguments. Raises ValueError or TypeError unless ``net`` is a ``layer`` and the others valid."""
        self.num_epochs = checks.size("num_epochs", num_epochs)
        checks.check_instance("net", net, layer, "a model that is a layer")
        _check_attributes("tgt_vocab", tgt_vocab, VOCAB, "to_tokens")
        checks.real("lr", lr, "a number")
        self.animator = Animator(xlabel="epoch", ylabel="loss", xlim=[10, self.num_epochs])

    def train(
        self,
        data_iter: Any,
        step: Callable[[Any], tuple[Any, Any]],
        device: object,
        arrays: checks.Arrays,
    ) -> None:
        """Run ``step``, which returns the loss and the number of tokens, on each batch of each epoch."""
        checks.check_instance("data_iter", data_iter, Iterable, BATCHES)
        for epoch in range(1, self.num_epochs + 1):
            timer, sums = Timer(), Accumulator(2)
            for batch in data_iter:
                _check_batch(batch, arrays)
                sums.add(*step(batch))
            if not sums[1]:
                raise ValueError(checks.message("data_iter", "no tokens", BATCHES))
            if epoch % 10 == 0:
                self.animator.add(epoch, (sums[0] / sums[1],))
        loss, speed = sums[0] / sums[1], sums[1] / timer.stop()
        print(f"loss {loss:.3f}, {speed:.1f} tokens/sec on {device}")


def _check_attributes(what: str, value: object, need: str, *names: str) -> None:
    """Check that ``value``, of any class, has attributes with these ``names``."""
    if isinstance(value, type) or not all(hasattr(value, name) for name in names):
        raise TypeError(checks.message(what, checks.format_value(value), need))


def _check_batch(batch: Any, arrays: checks.Arrays) -> None:
    if not isinstance(batch, (list, tuple)) or len(batch) != 4:
        got = f"a batch that is {checks.format_value(batch)}"
        raise TypeError(checks.message("data_iter", got, BATCHES))
    for tensor in batch:
        arrays.check_instance("data_iter", tensor, BATCHES)


def check_translation(
    net: Any, sentence: object, src_vocab: Any, tgt_vocab: Any, num_steps: int
) -> None:
    """Check the arguments of ``predict_seq2seq``, except for the device."""
    checks.size("num_steps", num_steps)
    checks.check_instance("src_sentence", sentence, str, "a sentence as a string")
    _check_attributes("src_vocab", src_vocab, VOCAB, "to_tokens")
    _check_attributes("tgt_vocab", tgt_vocab, VOCAB, "to_tokens")
    _check_attributes("net", net, "a model with an encoder and a decoder", "encoder", "decoder")


def encode_source(sentence: str, vocab: Vocab, num_steps: int) -> tuple[list[int], int]:
    """Return a sentence as ``num_steps`` token indices, and how many of them are not padding."""
    tokens = [*vocab[sentence.lower().split(" ")], vocab[EOS]]
    return fit_length(tokens, num_steps, vocab[PAD]), min(len(tokens), num_steps)


def decode(
    decoder: Any,
    state: Any,
    tokens: Any,
    likeliest: Callable[[Any], Any],
    num_steps: int,
    save_attention_weights: bool,
    end: int | None = None,
    **options: Any,
) -> tuple[list[Any], list[Any]]:
    """Return the tokens that follow ``tokens``, the ``likeliest`` each time, and the attention weights of each step.

    Decoding stops after ``num_steps``, or earlier at ``end``, which needs a batch of one sentence. ``options`` are
    passed to the decoder.
    """
    outputs, weights = [], []
    for _ in range(num_steps):
        Y, state = decoder(tokens, state, **options)
        tokens = likeliest(Y)
        if save_attention_weights:
            weights.append(decoder.attention_weights)
        if end is not None and to_int(tokens) == end:
            break
        outputs.append(tokens)
    return outputs, weights


def to_int(token: Any) -> int:
    """Return the only number in ``token``."""
    return int(to_numpy("token", token).item())


def join_tokens(tokens: list[Any], vocab: Vocab) -> str:
    """Return the words of a sentence from :func:`decode`, separated by spaces."""
    return " ".join(vocab.to_tokens([to_int(token) for token in tokens]))


__all__ = [
    "BOS",
    "EOS",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "Progress",
    "check_translation",
    "decode",
    "discard_state",
    "encode_source",
    "join_tokens",
    "recurrent_sizes",
]
