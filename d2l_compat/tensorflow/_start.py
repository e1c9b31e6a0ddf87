"""Start TensorFlow as the backend of Keras, and without its log messages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from d2l_compat._shared.checks import message


def choose_backend() -> None:
    """Choose TensorFlow as the backend of Keras, regardless of ~/.keras/keras.json.

    Raises ImportError if KERAS_BACKEND names another backend.
    """
    check_backend(os.environ.setdefault("KERAS_BACKEND", "tensorflow"))


def check_backend(backend: str) -> None:
    if backend != "tensorflow":
        need = "tensorflow, chosen before Keras is first imported"
        raise ImportError(message("KERAS_BACKEND", backend, need))


@contextmanager
def suppress_log() -> Iterator[None]:
    """Suppress what TensorFlow logs about the machine while it is imported.

    The log is shown if the import fails, or if the reader has set TF_CPP_MIN_LOG_LEVEL. Nothing is suppressed if
    the program has no file descriptor 2, as in IDLE on Windows.
    """
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    # TensorFlow logs some messages before it reads the level (tensorflow/tensorflow#100442). They come
    # from C++, which writes to file descriptor 2 and not to sys.stderr.
    try:
        stderr = os.dup(2)
    except OSError:
        yield
        return
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
