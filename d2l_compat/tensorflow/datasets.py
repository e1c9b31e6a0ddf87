"""D2L's data sets as TensorFlow tensors: translations from English to French, a novel, and Fashion-MNIST."""

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
    "build_array_nmt",
    "load_data_nmt",
    "load_data_time_machine",
    "seq_data_iter_random",
    "seq_data_iter_sequential",
]


class MTFraEng(translation.MTFraEng, DataModule):
    """Pairs of English and French sentences, as D2L 1.0 prepares them.

    ``arrays`` are source (sentences, num_steps), the target without its last token, the lengths
    of the sources (sentences,), and the target without its first token, all int32. Sentences are
    padded or cut off to ``num_steps`` tokens; ``build(src_sentences, tgt_sentences)`` returns the
    arrays of other sentences. Raises TypeError or ValueError for sizes below 1.
    """

    def _tensor(self, array: translation.Numbers) -> Tensor:
        return tf.constant(array)


build_array_nmt = translation.make_build_array_nmt(tf.constant)


def load_data_nmt(
    batch_size: int, num_steps: int, num_examples: int | None = 600
) -> tuple[tf.data.Dataset, Vocab, Vocab]:
    """Load pairs of sentences as D2L 0.17 prepares them, in shuffled batches, and the two vocabularies.

    A batch is (source, source lengths, target, target lengths), int32; sentences have ``num_steps``
    tokens. Raises TypeError or ValueError for sizes below 1.
    """
    pairs = translation.load_pairs(batch_size, num_steps, num_examples)
    return batches(pairs.arrays, batch_size, shuffle=True), pairs.src_vocab, pairs.tgt_vocab


def _to_int32(tokens: Any) -> Tensor:
    return tf.constant(tokens, tf.int32)


class TimeMachine(time_machine.TimeMachine, DataModule):
    """*The Time Machine* as sequences of characters, as D2L 1.0 prepares them.

    ``X`` (sequences, num_steps) has one sequence per starting position, and ``Y`` the next character for each one in
    ``X``, both int32. The first ``num_train`` sequences are for training, the next ``num_val`` for validation.
    """

    def __init__(
        self, batch_size: int, num_steps: int, num_train: int = 10000, num_val: int = 5000
    ) -> None:
        """Load the novel. Raises TypeError or ValueError for sizes below 1, or more steps than characters."""
        super().__init__()
        self.save_hyperparameters()
        self.X, self.Y = map(_to_int32, self._sequences())


def seq_data_iter_random(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return batches of non-overlapping sequences of a list of tokens, shuffled by Python's ``random``.

    A batch is X and Y (batch_size, num_steps), int32; Y has the next token for each token in X. Raises TypeError or
    ValueError for sizes below 1, or a ``corpus`` of the wrong type.
    """
    return time_machine.random_batches(corpus, batch_size, num_steps, _to_int32)


def seq_data_iter_sequential(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return batches as :func:`seq_data_iter_random` does, but each sequence continues in the next batch."""
    return time_machine.sequential_batches(corpus, batch_size, num_steps, _to_int32)


class SeqDataLoader(time_machine.SeqDataLoader):
    """A reusable iterable of batches of *The Time Machine*: see :func:`load_data_time_machine`."""

    tensor = staticmethod(_to_int32)


def load_data_time_machine(
    batch_size: int, num_steps: int, use_random_iter: bool = False, max_tokens: int = 10000
) -> tuple[SeqDataLoader, Vocab]:
    """Load batches of the first ``max_tokens`` characters of *The Time Machine*, as in D2L 0.17, and the vocabulary.

    The batches are those of :func:`seq_data_iter_random` or :func:`seq_data_iter_sequential`. Raises TypeError or
    ValueError for sizes below 1, and what :func:`download` raises.
    """
    loader = SeqDataLoader(batch_size, num_steps, use_random_iter, max_tokens)
    return loader, loader.vocab


class FashionMNIST(images.FashionMNIST, DataModule):
    """Fashion-MNIST in batches: images (batch, height, width, 1) from 0 to 1, and labels.

    ``train`` and ``val`` are (images, labels): uint8, (images, 28, 28) and (images,).
    """

    resize: tuple[int, int]

    def __init__(self, batch_size: int = 64, resize: int | tuple[int, int] = (28, 28)) -> None:
        """Load the images; ``resize`` is (height, width), in pixels, or one number for both.

        Images keep their aspect ratio, and are padded with black. Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        resize = images.check_sizes(batch_size, resize)
        self.save_hyperparameters()
        self.train = images.read_images(True, self.root)
        self.val = images.read_images(False, self.root)

    def get_dataloader(self, train: bool) -> tf.data.Dataset:
        """Return batches of the training images, shuffled, or of the validation images."""
        arrays = self.train if train else self.val
        # Images are resized batch by batch: all at once they could exhaust the memory.
        return batches(arrays, self.batch_size, shuffle=train).map(self._prepare)

    def _prepare(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        X = tf.cast(images[..., tf.newaxis], tf.float32) / 255
        return tf.image.resize_with_pad(X, *self.resize), tf.cast(labels, tf.int32)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show images of a batch with their labels."""
        X, y = batch
        show_images(tf.squeeze(X, -1), nrows, ncols, titles=labels or self.text_labels(y))
