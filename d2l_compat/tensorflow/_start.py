"""Starting TensorFlow: with Keras on top of it, and without the log of its start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from d2l_compat._shared.checks import fault


def choose_backend() -> None:
    """Have Keras compute with TensorFlow, whatever ~/.keras/keras.json says.

    Raises ImportError where KERAS_BACKEND asks for another.
    """
    check_backend(os.environ.setdefault("KERAS_BACKEND", "tensorflow"))


def check_backend(backend: str) -> None:
    if backend != "tensorflow":
        need = "tensorflow, chosen before Keras is first imported"
        raise ImportError(fault("KERAS_BACKEND", backend, need))


@contextmanager
def quietly() -> Iterator[None]:
    """Keeps to itself what TensorFlow logs about the machine as it is imported.

    A failing import lets it out, and so does a TF_CPP_MIN_LOG_LEVEL of the reader's own.
    """
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    # Some of it is written before TensorFlow reads the level (tensorflow/tensorflow#100442),
    # and by C++, which knows file descriptor 2 and not sys.stderr.
    stderr = os.dup(2)
    with TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            os.write(stderr, log.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
