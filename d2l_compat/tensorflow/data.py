"""D2L's data sets as TensorFlow tensors: English and French sentences, a novel, and Fashion-MNIST."""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared.data import images, time_machine, translation
from d2l_compat.common import Vocab, show_images
from d2l_compat.tensorflow.training import DataModule, batches

__all__ = [
    "FashionMNIST",
    "MTFraEng",
    "SeqDataLoader",
    "TimeMachine",
    "load_data_nmt",
    "load_data_time_machine",
    "seq_data_iter_random",
    "seq_data_iter_sequential",
]


class MTFraEng(translation.MTFraEng, DataModule):
    """Pairs of English and French sentences, as D2L 1.0 prepares them.

    ``arrays`` are source (sentences, num_steps), the target without its last token, the lengths
    of the sources (sentences,), and the target without its first: all int32. ``num_steps`` tokens
    a sentence, padded or cut off; ``build(src_sentences, tgt_sentences)`` gives the arrays of other
    sentences. Raises TypeError or ValueError for sizes below 1.
    """

    def _tensor(self, array: translation.Numbers) -> Tensor:
        return tf.constant(array)


def load_data_nmt(
    batch_size: int, num_steps: int, num_examples: int | None = 600
) -> tuple[tf.data.Dataset, Vocab, Vocab]:
    """Pairs of sentences as D2L 0.17 prepares them: shuffled batches, and the two vocabularies.

    A batch is (source, source lengths, target, target lengths): int32, sentences of ``num_steps``
    tokens. Raises TypeError or ValueError for sizes below 1.
    """
    pairs = translation.load_pairs(batch_size, num_steps, num_examples)
    return batches(pairs.arrays, batch_size, shuffle=True), pairs.src_vocab, pairs.tgt_vocab


def _int32(tokens: Any) -> Tensor:
    return tf.constant(tokens, tf.int32)


class TimeMachine(time_machine.TimeMachine, DataModule):
    """*The Time Machine* as sequences of characters, as D2L 1.0 prepares them.

    ``X`` (sequences, num_steps) are all that there are, one from each character on, and ``Y`` for each character
    the next: int32. The first ``num_train`` are for training, and ``num_val`` after them for validation.
    """

    def __init__(
        self, batch_size: int, num_steps: int, num_train: int = 10000, num_val: int = 5000
    ) -> None:
        """Raises TypeError or ValueError for sizes below 1, or more steps than characters."""
        super().__init__()
        self.save_hyperparameters()
        self.X, self.Y = map(_int32, self._sequences())


def seq_data_iter_random(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches out of a list of tokens: sequences that do not overlap, in any order, drawn by Python's ``random``.

    Gives X and Y (batch_size, num_steps), int32; Y is for each token the next. Raises TypeError or ValueError for
    sizes below 1, or a ``corpus`` of another kind.
    """
    return time_machine.random_batches(corpus, batch_size, num_steps, _int32)


def seq_data_iter_sequential(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """The same, and each sequence goes on in the next batch where it stopped in this one."""
    return time_machine.sequential_batches(corpus, batch_size, num_steps, _int32)


class SeqDataLoader(time_machine.SeqDataLoader):
    """Gives batches of *The Time Machine*, again and again: see :func:`load_data_time_machine`."""

    tensor = staticmethod(_int32)


def load_data_time_machine(
    batch_size: int, num_steps: int, use_random_iter: bool = False, max_tokens: int = 10000
) -> tuple[SeqDataLoader, Vocab]:
    """Batches of *The Time Machine*'s first ``max_tokens`` characters, as D2L 0.17 prepares them; and the vocabulary.

    They are :func:`seq_data_iter_random`'s, or those of :func:`seq_data_iter_sequential`. Raises TypeError or ValueError
    for sizes below 1, and what :func:`download` does.
    """
    loader = SeqDataLoader(batch_size, num_steps, use_random_iter, max_tokens)
    return loader, loader.vocab


class FashionMNIST(images.FashionMNIST, DataModule):
    """Fashion-MNIST in batches: pictures (batch, height, width, 1) from 0 to 1, and labels.

    ``train`` and ``val`` are (pictures, labels): uint8, (pictures, 28, 28) and (pictures,).
    """

    resize: tuple[int, int]

    def __init__(self, batch_size: int = 64, resize: tuple[int, int] = (28, 28)) -> None:
        """``resize`` is (height, width), in pixels; pictures keep their shape, in a black frame.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        images.check_sizes(batch_size, resize)
        self.save_hyperparameters()
        loaded = (images.Pictures(train, resize, self.root) for train in (True, False))
        self.train, self.val = ((pictures.images, pictures.labels) for pictures in loaded)

    def get_dataloader(self, train: bool) -> tf.data.Dataset:
        """Batches of the training pictures, shuffled, or of the others."""
        arrays = self.train if train else self.val
        # They get their size batch by batch: all at once they could fill the memory.
        return batches(arrays, self.batch_size, shuffle=train).map(self._prepare)

    def _prepare(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        X = tf.cast(images[..., tf.newaxis], tf.float32) / 255
        return tf.image.resize_with_pad(X, *self.resize), tf.cast(labels, tf.int32)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show pictures of a batch, with their labels."""
        X, y = batch
        show_images(tf.squeeze(X, -1), nrows, ncols, titles=labels or self.text_labels(y))
