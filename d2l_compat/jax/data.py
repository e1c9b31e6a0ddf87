"""D2L's data sets for JAX: English and French sentences, a novel, and Fashion-MNIST."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.data import images, time_machine, translation
from d2l_compat._shared.data.loader import Batch, Loader
from d2l_compat.common import show_images
from d2l_compat.jax._shuffled import shuffled
from d2l_compat.jax.training import DataModule

__all__ = ["FashionMNIST", "MTFraEng", "TimeMachine"]


class MTFraEng(translation.MTFraEng, DataModule):
    """Pairs of English and French sentences, as D2L 1.0 prepares them.

    ``arrays`` are source (sentences, num_steps), the target without its last token, the lengths
    of the sources (sentences,), and the target without its first: all int32. ``num_steps`` tokens
    a sentence, padded or cut off; ``build(src_sentences, tgt_sentences)`` gives the arrays of other
    sentences. Raises TypeError or ValueError for sizes below 1.
    """

    def _tensor(self, array: translation.Numbers) -> jax.Array:
        return jnp.asarray(array)


def _int32(tokens: Any) -> jax.Array:
    return jnp.asarray(tokens, jnp.int32)


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


class FashionMNIST(images.FashionMNIST, DataModule):
    """Fashion-MNIST in batches: pictures (batch, height, width, 1) from 0 to 1, and labels."""

    def __init__(self, batch_size: int = 64, resize: tuple[int, int] = (28, 28)) -> None:
        """``resize`` is (height, width), in pixels.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        images.check_sizes(batch_size, resize)
        self.save_hyperparameters()
        self.train = images.Pictures(True, resize, self.root)
        self.val = images.Pictures(False, resize, self.root)

    def get_dataloader(self, train: bool) -> Loader:
        """Batches of the training pictures, shuffled, or of the others."""
        pictures = self.train if train else self.val

        def take(rows: NDArray[np.intp]) -> Batch:
            images, labels = zip(*(pictures[int(row)] for row in rows), strict=True)
            return np.moveaxis(np.stack(images), 1, -1), np.stack(labels)

        return Loader(take, len(pictures), self.batch_size, shuffled if train else None)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show pictures of a batch, with their labels."""
        X, y = batch
        show_images(X.squeeze(-1), nrows, ncols, titles=labels or self.text_labels(y))
