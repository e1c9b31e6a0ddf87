"""D2L's data sets as MLX arrays: English and French sentences, and Fashion-MNIST."""

from typing import Any

import mlx.core as mx
import numpy as np

from d2l_compat._shared.data import images, translation
from d2l_compat._shared.data.loader import Batch, Loader, Rows
from d2l_compat.common import Vocab, show_images
from d2l_compat.mlx.training import DataModule, shuffle

__all__ = ["FashionMNIST", "MTFraEng", "build_array_nmt", "load_data_nmt"]


class MTFraEng(translation.MTFraEng, DataModule):
    """Pairs of English and French sentences, as D2L 1.0 prepares them.

    ``arrays`` are the sources (sentences, num_steps), the targets without their last token, the
    lengths of the sources (sentences,), and the targets without their first token, all int32. Each
    sentence is padded or cut to ``num_steps`` tokens; ``build(src_sentences, tgt_sentences)``
    returns the arrays of other sentences. Raises TypeError or ValueError for sizes below 1.
    """

    def _tensor(self, array: translation.Numbers) -> mx.array:
        return mx.array(array)


build_array_nmt = translation.make_build_array_nmt(mx.array)


def load_data_nmt(
    batch_size: int, num_steps: int, num_examples: int | None = 600
) -> tuple[Loader, Vocab, Vocab]:
    """Load pairs of sentences as D2L 0.17 does: shuffled batches, and the two vocabularies.

    A batch is (source, source lengths, target, target lengths), int32; sentences have ``num_steps``
    tokens. Raises TypeError or ValueError for sizes below 1.
    """
    pairs = translation.load_pairs(batch_size, num_steps, num_examples)

    def take(rows: Rows) -> Batch:
        return tuple(mx.array(array[rows]) for array in pairs.arrays)

    loader = Loader(take, len(pairs.arrays[0]), batch_size, shuffle)
    return loader, pairs.src_vocab, pairs.tgt_vocab


class ImageDataset(images.ImageDataset):
    """The images of Fashion-MNIST; those of items are MLX's arrays (height, width, 1)."""

    def _to_item(self, image: Any) -> mx.array:
        return mx.array(images.scale_image(image, self.size)[..., None])


class FashionMNIST(images.FashionMNIST, DataModule):
    """Fashion-MNIST in batches: images (batch, height, width, 1) from 0 to 1, and labels.

    The channel is last, as MLX's convolutions expect.
    """

    def __init__(self, batch_size: int = 64, resize: int | tuple[int, int] = (28, 28)) -> None:
        """Load the images; ``resize`` is (height, width), in pixels, or one number for both.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        resize = images.check_sizes(batch_size, resize)
        self.save_hyperparameters()
        self.train = ImageDataset(True, resize, self.root)
        self.val = ImageDataset(False, resize, self.root)

    def get_dataloader(self, train: bool) -> Loader:
        """Return batches of the training images, shuffled, or of the validation images."""
        dataset = self.train if train else self.val

        def take(rows: Rows) -> Batch:
            examples = [dataset[int(row)] for row in rows]
            pixels = mx.stack([image for image, _ in examples])
            return pixels, mx.array(np.stack([label for _, label in examples]))

        return Loader(take, len(dataset), self.batch_size, shuffle if train else None)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show images of a batch, with their labels."""
        X, y = batch
        show_images(X.squeeze(-1), nrows, ncols, titles=labels or self.text_labels(y))
