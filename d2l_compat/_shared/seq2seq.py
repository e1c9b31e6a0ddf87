"""What training and translating with an encoder and a decoder share in all frameworks."""

from collections.abc import Callable, Iterator
from typing import Any

from d2l_compat._shared import checks
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.data.text import Vocab
from d2l_compat._shared.data.translation import BOS, EOS, PAD, fit_length
from d2l_compat._shared.measuring import Accumulator, Timer
from d2l_compat._shared.training import undefined


def recurrent(dropout: float, **sizes: int) -> list[int]:
    """The sizes of a recurrent layer as ints of at least 1; ``dropout`` is from 0 to 1."""
    checks.dropout(dropout)
    return [checks.integer(what, size, 1) for what, size in sizes.items()]


def output(result: Any) -> Any:
    """Of a model that also gives its state, as those of 0.17 did, the output alone."""
    return result[0] if isinstance(result, tuple) else result


class Encoder:
    """The base class of encoders: define ``forward``."""

    def forward(self, X: Any, *args: Any) -> Any:
        """What the decoder's ``init_state`` will be given; to be defined."""
        raise undefined(self, "forward")


class Decoder:
    """The base class of decoders: define ``init_state`` and ``forward``."""

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        """The first state, from the encoder's outputs; to be defined."""
        raise undefined(self, "init_state")

    def forward(self, X: Any, state: Any) -> Any:
        """Logits for the tokens after ``X``, and the next state; to be defined."""
        raise undefined(self, "forward")


class AttentionDecoder:
    """What a decoder that attends has besides."""

    @property
    def attention_weights(self) -> Any:
        """The last call's weights; to be defined."""
        raise undefined(self, "attention_weights")


class EncoderDecoder:
    """An encoder, and a decoder that starts from what it gives."""

    encoder: Any
    decoder: Any

    def forward(self, enc_X: Any, dec_X: Any, *args: Any) -> Any:
        """The decoder's output for ``dec_X``, shape (batch, steps, vocabulary)."""
        state = self.decoder.init_state(self.encoder(enc_X, *args), *args)
        return self.decoder(dec_X, state)[0]


class Progress:
    """The loss per token, drawn every ten epochs, and how fast it went."""

    def __init__(self, num_epochs: int) -> None:
        self.num_epochs = checks.integer("num_epochs", num_epochs, 1)
        self.animator = Animator(xlabel="epoch", ylabel="loss", xlim=[10, self.num_epochs])

    def epochs(self) -> Iterator[int]:
        for epoch in range(1, self.num_epochs + 1):
            self.timer = Timer()
            self.sums = Accumulator(2)  # the loss, and the tokens
            yield epoch
            if epoch % 10 == 0:
                self.animator.add(epoch, (self.sums[0] / self.sums[1],))

    def add(self, loss: Any, num_tokens: Any) -> None:
        self.sums.add(loss, num_tokens)

    def report(self, device: object) -> None:
        loss, speed = self.sums[0] / self.sums[1], self.sums[1] / self.timer.stop()
        print(f"loss {loss:.3f}, {speed:.1f} tokens/sec on {device}")


def source(sentence: str, vocab: Vocab, num_steps: int) -> tuple[list[int], int]:
    """A sentence as ``num_steps`` numbers, and how many of these are no padding."""
    num_steps = checks.integer("num_steps", num_steps, 1)
    checks.instance("src_sentence", sentence, str, "a sentence, a string")
    tokens = [*vocab[sentence.lower().split(" ")], vocab[EOS]]
    return fit_length(tokens, num_steps, vocab[PAD]), min(len(tokens), num_steps)


def decode(
    step: Callable[[int, Any], tuple[int, Any]],
    state: Any,
    net: Any,
    vocab: Vocab,
    num_steps: int,
    save_attention_weights: bool,
) -> tuple[str, list[Any]]:
    """Token after token, until the end of the sentence or ``num_steps`` of them."""
    token, tokens, weights = vocab[BOS], [], []
    for _ in range(num_steps):
        token, state = step(token, state)
        if save_attention_weights:
            weights.append(net.decoder.attention_weights)
        if token == vocab[EOS]:
            break
        tokens.append(token)
    return " ".join(vocab.to_tokens(tokens)), weights


__all__ = [
    "BOS",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "Progress",
    "decode",
    "output",
    "recurrent",
    "source",
]
