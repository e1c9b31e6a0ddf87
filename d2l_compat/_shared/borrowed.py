"""What upstream's modules hold only because they import it: ``d2l.np``, ``d2l.nn``, ``d2l.os``.

People's code uses these names, and a star import brings them. They are imported when they are first used.
"""

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

STANDARD_LIBRARY = "collections hashlib inspect math os random re shutil sys tarfile time zipfile"
# The path of each name: a module, or a module's attribute.
COMMON = {
    **{name: name for name in STANDARD_LIBRARY.split()},
    "backend_inline": "matplotlib_inline.backend_inline",
    "defaultdict": "collections.defaultdict",
    "display": "IPython.display",
    "np": "numpy",
    "pd": "pandas",
    "plt": "d2l_compat._shared.plt.plt",
    "requests": "requests",
}
BY_FRAMEWORK = {
    "torch": {
        "F": "torch.nn.functional",
        "Image": "PIL.Image",
        "data": "torch.utils.data",
        "distance_matrix": "scipy.spatial.distance_matrix",
        "nn": "torch.nn",
        "torch": "torch",
        "torchvision": "torchvision",
        "transforms": "torchvision.transforms",
    },
    "tensorflow": {"tf": "tensorflow"},
    "jax": {
        "Any": "typing.Any",
        "FunctionType": "types.FunctionType",
        "field": "dataclasses.field",
        "flax": "flax",
        "grad": "jax.grad",
        "jax": "jax",
        "jnp": "jax.numpy",
        "nn": "flax.linen",
        "optax": "optax",
        "partial": "functools.partial",
        "tf": "tensorflow",
        "tfds": "tensorflow_datasets",
        "train_state": "flax.training.train_state",
        "vmap": "jax.vmap",
    },
    "mxnet": {
        "autograd": "mxnet.autograd",
        "context": "mxnet.context",
        "gluon": "mxnet.gluon",
        "image": "mxnet.image",
        "init": "mxnet.init",
        "nn": "mxnet.gluon.nn",
        "np": "mxnet.np",
        "npx": "mxnet.npx",
        "rnn": "mxnet.gluon.rnn",
        "transforms": "mxnet.gluon.data.vision.transforms",
    },
    "paddle": {
        "F": "paddle.nn.functional",
        "Image": "PIL.Image",
        "nn": "paddle.nn",
        "paddle": "paddle",
        "paddlevision": "paddle.vision",
        "transforms": "paddle.vision.transforms",
        "warnings": "warnings",
    },
    "mlx": {"mx": "mlx.core", "nn": "mlx.nn"},
}


def get_paths(package: str) -> dict[str, str]:
    """Return the path of each borrowed name of a framework's package; ``d2l`` is the package itself."""
    return {**COMMON, "d2l": package, **BY_FRAMEWORK[package.rpartition(".")[2]]}


def list_installed(package: str) -> list[str]:
    """Return the borrowed names whose packages are installed, without importing these."""
    return [name for name, path in get_paths(package).items() if find_spec(path.partition(".")[0])]


def load(package: str, name: str) -> Any:
    """Import what a borrowed name stands for. Raises ImportError if its package is not installed."""
    path = get_paths(package)[name]
    needed = path.partition(".")[0]
    try:
        return resolve_name(path)
    except ModuleNotFoundError as error:
        if error.name != needed:
            raise
        raise ImportError(
            f"{package}.{name} is {path}, and {needed} is not installed. "
            f"Install it: pip install {needed.replace('_', '-')}"
        ) from None
