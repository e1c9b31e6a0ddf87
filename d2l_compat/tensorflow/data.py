"""D2L's data sets as TensorFlow tensors: English and French sentences, and Fashion-MNIST."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared.data import images, translation
from d2l_compat.common import Vocab, show_images
from d2l_compat.tensorflow.training import DataModule, batches

__all__ = ["FashionMNIST", "MTFraEng", "load_data_nmt"]


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
    pairs = translation.pairs(batch_size, num_steps, num_examples)
    return batches(pairs.arrays, batch_size, shuffle=True), pairs.src_vocab, pairs.tgt_vocab


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
