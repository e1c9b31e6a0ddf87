"""D2L's data sets as Paddle tensors: translations from English to French, a novel, and Fashion-MNIST."""

from collections.abc import Iterator, Sequence
from typing import Any

import paddle
from paddle.io import DataLoader, TensorDataset

from d2l_compat._shared.data import images, time_machine, translation
from d2l_compat.common import Vocab, show_images
from d2l_compat.paddle.training import DataModule, make_loader

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
    of the sources (sentences,), and the target without its first token, all int64. Sentences are
    padded or cut off to ``num_steps`` tokens; ``build(src_sentences, tgt_sentences)`` returns the
    arrays of other sentences. Raises TypeError or ValueError for sizes below 1.
    """

    def _tensor(self, array: translation.Numbers) -> paddle.Tensor:
        return _to_int64(array)


def load_data_nmt(
    batch_size: int, num_steps: int, num_examples: int | None = 600
) -> tuple[DataLoader, Vocab, Vocab]:
    """Load pairs of sentences as D2L 0.17 prepares them, in shuffled batches, and the two vocabularies.

    A batch is (source, source lengths, target, target lengths), int64; sentences have ``num_steps``
    tokens. Raises TypeError or ValueError for sizes below 1.
    """
    pairs = translation.load_pairs(batch_size, num_steps, num_examples)
    dataset = TensorDataset([*map(_to_int64, pairs.arrays)])
    return make_loader(dataset, batch_size, True), pairs.src_vocab, pairs.tgt_vocab


def _to_int64(numbers: translation.Numbers) -> paddle.Tensor:
    # D2L's pages concatenate them with lists, which become int64.
    return paddle.to_tensor(numbers, "int64")


build_array_nmt = translation.make_build_array_nmt(_to_int64)


class TimeMachine(time_machine.TimeMachine, DataModule):
    """*The Time Machine* as sequences of characters, as D2L 1.0 prepares them.

    ``X`` (sequences, num_steps) has one sequence per starting position, and ``Y`` the next character for each one in
    ``X``, both int64. The first ``num_train`` sequences are for training, the next ``num_val`` for validation.
    """

    def __init__(
        self, batch_size: int, num_steps: int, num_train: int = 10000, num_val: int = 5000
    ) -> None:
        """Load the novel. Raises TypeError or ValueError for sizes below 1, or more steps than characters."""
        super().__init__()
        self.save_hyperparameters()
        self.X, self.Y = map(paddle.to_tensor, self._sequences())


def seq_data_iter_random(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[paddle.Tensor, paddle.Tensor]]:
    """Return batches of non-overlapping sequences of a list of tokens, shuffled by Python's ``random``.

    A batch is X and Y (batch_size, num_steps), int64; Y has the next token for each token in X. Raises TypeError or
    ValueError for sizes below 1, or a ``corpus`` of the wrong type.
    """
    return time_machine.random_batches(corpus, batch_size, num_steps, paddle.to_tensor)


def seq_data_iter_sequential(
    corpus: Sequence[int], batch_size: int, num_steps: int
) -> Iterator[tuple[paddle.Tensor, paddle.Tensor]]:
    """Return batches as :func:`seq_data_iter_random` does, but each sequence continues in the next batch."""
    return time_machine.sequential_batches(corpus, batch_size, num_steps, paddle.to_tensor)


class SeqDataLoader(time_machine.SeqDataLoader):
    """A reusable iterable of batches of *The Time Machine*: see :func:`load_data_time_machine`."""

    tensor = staticmethod(paddle.to_tensor)


def load_data_time_machine(
    batch_size: int, num_steps: int, use_random_iter: bool = False, max_tokens: int = 10000
) -> tuple[SeqDataLoader, Vocab]:
    """Load batches of the first ``max_tokens`` characters of *The Time Machine*, as in D2L 0.17, and the vocabulary.

    The batches are those of :func:`seq_data_iter_random` or :func:`seq_data_iter_sequential`. Raises TypeError or
    ValueError for sizes below 1, and what :func:`download` raises.
    """
    loader = SeqDataLoader(batch_size, num_steps, use_random_iter, max_tokens)
    return loader, loader.vocab


class ImageDataset(images.ImageDataset):
    """The images of Fashion-MNIST; those of items are Paddle's tensors."""

    tensor = staticmethod(paddle.to_tensor)


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

    def get_dataloader(self, train: bool) -> DataLoader:
        """Return batches of the training images, shuffled, or of the validation images."""
        return make_loader(self._choose_images(train), self.batch_size, train)

    def visualize(
        self, batch: Any, nrows: int = 1, ncols: int = 8, labels: list[str] | None = None
    ) -> None:
        """Show images of a batch, with their labels."""
        X, y = batch
        show_images(X.squeeze(1), nrows, ncols, titles=labels or self.text_labels(y))
