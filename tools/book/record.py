"""What the kernel of a page runs, so that its outputs on this package and on upstream's d2l can be compared."""

import gzip
import json
import os
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from IPython.core.formatters import BaseFormatter
from IPython.core.getipython import get_ipython
from matplotlib.figure import Figure
from traitlets import Unicode

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.shim.each.figures import describe

# The type of output in which a figure's numbers are sent, beside its images.
FIGURE = "text/x-figure"

SEEDS: dict[str, Callable[[Any], object]] = {
    "torch": lambda torch: torch.manual_seed(0),
    "tensorflow": lambda tf: tf.random.set_seed(0),
    "mxnet": lambda mx: mx.random.seed(0),
    "paddle": lambda paddle: paddle.seed(0),
}


class FigureFormatter(BaseFormatter):
    """Formatter that no page replaces, unlike those that are registered for a class."""

    format_type = Unicode(FIGURE)

    def __call__(self, shown: Any) -> str | None:
        return render_figure(shown) if isinstance(shown, Figure) else None


def start(framework: str) -> None:
    """Seed all generators, now and before each cell, and let each figure shown send its numbers."""
    with suppress(ImportError):  # the page reports it
        import_module(PYTHON_FRAMEWORKS[framework].module)
    seed_generators()
    shell: Any = get_ipython()
    shell.events.register("pre_run_cell", seed_generators)
    shell.display_formatter.formatters[FIGURE] = FigureFormatter()


def seed_generators(info: object = None) -> None:
    random.seed(0)
    np.random.seed(0)
    for name, seed in SEEDS.items():
        if name in sys.modules:
            seed(sys.modules[name])


def render_figure(figure: Figure) -> str:
    """Return the numbers and words of a figure."""
    descriptions = describe(figure)
    for axes in descriptions:
        axes["lines"] = drop_old_curves(axes["lines"])
    shapes = [
        {
            "patches": [np.asarray(each.get_path().vertices).tolist() for each in axes.patches],
            "points": [np.asarray(each.get_offsets()).tolist() for each in axes.collections],
        }
        for axes in figure.axes
    ]
    return json.dumps([descriptions, shapes], ensure_ascii=False)


def drop_old_curves(lines: list[list[Any]]) -> list[list[Any]]:
    """Return the lines without those that a later one continues, which upstream's ProgressBoard leaves below."""
    return [
        line
        for number, line in enumerate(lines, 1)
        if not any(later[: len(line)] == line for later in lines[number:])
    ]


def use_upstream(framework: str, version: str) -> None:
    """Import upstream's d2l as in the shim's tests, with what it downloads from the folder ``D2L_DATA``."""
    upstream = import_module(f"tests.shim.each.{framework}.oracle").UPSTREAM[version]()
    name = PYTHON_FRAMEWORKS[framework].module
    setattr(import_module("d2l"), name, upstream)
    sys.modules[f"d2l.{name}"] = upstream
    package = upstream.__name__.partition(".")[0]
    sys.modules.setdefault(package, ModuleType(package))  # for pickle
    upstream.requests = SimpleNamespace(
        get=lambda url, **options: SimpleNamespace(content=Path(find_stand_in(url)).read_bytes())
    )
    replace_images(framework)
    if framework == "jax":  # the tests do without TensorFlow
        upstream.tf = import_module("tensorflow")
        upstream.tfds = import_module("tensorflow_datasets")


def replace_images(framework: str) -> None:
    """Let the framework's own loader of Fashion-MNIST read the stand-ins."""
    module: Any
    if framework == "pytorch":
        module = import_module("torchvision.datasets.mnist")
        module.download_and_extract_archive = lambda url, download_root, **options: (
            module.extract_archive(find_stand_in(url), download_root)
        )
    elif framework == "mxnet":
        module = import_module("mxnet.gluon.data.vision.datasets")
        module.download = find_stand_in
    elif framework == "paddle":
        module = import_module("paddle.vision.datasets.mnist")
        module._check_exists_and_download = lambda path, url, *options: find_stand_in(url)
    else:
        module = import_module("tensorflow").keras.datasets.fashion_mnist
        module.load_data = load_images


def find_stand_in(url: str, **options: object) -> str:
    """Return the path of the file that takes the place of a download."""
    return os.path.join(os.environ["D2L_DATA"], Path(url).name)


def load_images() -> list[list[np.ndarray]]:
    """Return Fashion-MNIST's images and labels, for training and for tests, as Keras does."""
    parts = []
    for kind in "train", "t10k":
        arrays = []
        for name, header, shape in ("images-idx3", 16, (28, 28)), ("labels-idx1", 8, ()):
            data = gzip.decompress(Path(find_stand_in(f"{kind}-{name}-ubyte.gz")).read_bytes())
            arrays.append(np.frombuffer(data, np.uint8, offset=header).reshape(-1, *shape))
        parts.append(arrays)
    return parts
