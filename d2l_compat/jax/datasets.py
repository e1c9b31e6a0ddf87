"""D2L's data sets for JAX: English and French sentences, a novel, and Fashion-MNIST."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.data import images, time_machine, translation
from d2l_compat._shared.data.loader import Batch, Loader
from d2l_compat.common import show_images
from d2l_compat.jax._shuffle import shuffle
from d2l_compat.jax.training import DataModule

__all__ = ["FashionMNIST", "MTFraEng", "TimeMachine"]


class MTFraEng(translation.MTFraEng, DataModule):
    """Pairs of English and French sentences, as D2L 1.0 prepares them.

    ``arrays`` are the sources (sentences, num_steps), the targets without their last token, the
    lengths of the sources (sentences,), and the targets without their first token, all int32. Each
    sentence is padded or cut to ``num_steps`` tokens; ``build(src_sentences, tgt_sentences)``
    returns the arrays of other sentences. Raises TypeError or ValueError for sizes below 1.
    """

    def _tensor(self, array: translation.Numbers) -> jax.Array:
        return jnp.asarray(array)


def _to_int32(tokens: Any) -> jax.Array:
    return jnp.asarray(tokens, jnp.int32)


class TimeMachine(time_machine.TimeMachine, DataModule):
    """*The Time Machine* as sequences of characters, as D2L 1.0 prepares them.

    ``X`` (sequences, num_steps) has one sequence per starting position, and ``Y`` the next
    character for each one in ``X``, both int32. The first ``num_train`` sequences are for training, the next
    ``num_val`` for validation.
    """

    def __init__(
        self, batch_size: int, num_steps: int, num_train: int = 10000, num_val: int = 5000
    ) -> None:
        """Load the novel. Raises TypeError or ValueError for sizes below 1, or more steps than characters."""
        super().__init__()
        self.save_hyperparameters()
        self.X, self.Y = map(_to_int32, self._sequences())


class FashionMNIST(images.FashionMNIST, DataModule):
    """Fashion-MNIST in batches: images (batch, height, width, 1) from 0 to 1, and labels.

    ``train`` and ``val`` are (images, labels): uint8, (images, 28, 28) and (images,).
    """

    resize: tuple[int, int]

    def __init__(self, batch_size: int = 64, resize: int | tuple[int, int] = (28, 28)) -> None:
        """Load the images; ``resize`` is (height, width), in pixels, or one number for both.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        resize = images.check_sizes(batch_size, resize)
        self.save_hyperparameters()
        self.train = images.read_images(True, self.root)
        self.val = images.read_images(False, self.root)

    def get_dataloader(self, train: bool) -> Loader:
        """Return batches of the training images, shuffled, or of the validation images."""
        pixels, labels = self.train if train else self.val

        def take(rows: NDArray[np.intp]) -> Batch:
            X = np.stack([images.scale_image(image, self.resize) for image in pixels[rows]])
            return X[..., None], labels[rows].astype(np.int32)

        return Loader(take, len(labels), self.batch_size, shuffle if train else None)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show images of a batch, with their labels."""
        X, y = batch
        show_images(X.squeeze(-1), nrows, ncols, titles=labels or self.text_labels(y))
