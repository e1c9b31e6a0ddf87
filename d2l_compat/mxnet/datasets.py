"""D2L's data sets as MXNet's arrays: translations from English to French, a novel, and Fashion-MNIST."""

from collections.abc import Iterator, Sequence
from typing import Any

from mxnet import gluon, np

from d2l_compat._shared.data import images, time_machine, translation
from d2l_compat.common import Vocab, show_images
from d2l_compat.mxnet.training import DataModule

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

    def _tensor(self, array: translation.Numbers) -> np.ndarray:
        return _to_tensor(array)


def load_data_nmt(
    batch_size: int, num_steps: int, num_examples: int | None = 600
) -> tuple[gluon.data.DataLoader, Vocab, Vocab]:
    """Load pairs of sentences as D2L 0.17 prepares them, in shuffled batches, and the two vocabularies.

    A batch is (source, source lengths, target, target lengths): sentences of ``num_steps`` tokens
    are float32, as in D2L, lengths int32. Raises TypeError or ValueError for sizes below 1.
    """
    pairs = translation.load_pairs(batch_size, num_steps, num_examples)
    # MXNet converts lists to float32, and D2L's pages concatenate sentences with such arrays.
    arrays = [x.astype("float32") if x.ndim == 2 else x for x in pairs.arrays]
    dataset = gluon.data.ArrayDataset(*arrays)
    batches = gluon.data.DataLoader(dataset, batch_size, shuffle=True)
    return batches, pairs.src_vocab, pairs.tgt_vocab


def _to_tensor(array: Any) -> np.ndarray:
    return np.array(array, dtype=array.dtype)


def _to_int32(tokens: Any) -> np.ndarray:
    return np.array(tokens, dtype="int32")


def _to_float32(tokens: Any) -> np.ndarray:
    return np.array(tokens, dtype="float32")


build_array_nmt = translation.make_build_array_nmt(_to_float32, _to_int32)


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
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return batches of non-overlapping sequences of a list of tokens, shuffled by Python's ``random``.

    A batch is X and Y (batch_size, num_steps), int32; Y has the next token for each token in X. Raises TypeError or
    ValueError for sizes below 1, or a ``corpus`` of the wrong type.
    """
    return time_machine.random_batches(corpus, batch_size, num_steps, _to_int32)


def seq_data_iter_sequential(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
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


class ImageDataset(images.ImageDataset, gluon.data.Dataset):
    """The images of Fashion-MNIST, with the methods of Gluon's data sets, such as ``transform_first``."""

    tensor = staticmethod(_to_tensor)
    transform = gluon.data.Dataset.transform


class FashionMNIST(images.FashionMNIST, DataModule):
    """Fashion-MNIST in batches: images (batch, 1, height, width) from 0 to 1, and labels."""

    def __init__(self, batch_size: int = 64, resize: int | tuple[int, int] = (28, 28)) -> None:
        """Load the images; ``resize`` is (height, width), in pixels, or one number for both.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        resize = images.check_sizes(batch_size, resize)
        self.save_hyperparameters()
        self.train = ImageDataset(True, resize, self.root)
        self.val = ImageDataset(False, resize, self.root)

    def get_dataloader(self, train: bool) -> gluon.data.DataLoader:
        """Return batches of the training images, shuffled, or of the validation images."""
        return gluon.data.DataLoader(self._choose_images(train), self.batch_size, shuffle=train)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show images of a batch with their labels."""
        X, y = batch
        show_images(X.squeeze(1), nrows, ncols, titles=labels or self.text_labels(y))
