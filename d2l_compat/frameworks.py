"""The table of frameworks, in the order in which they are always listed.

The keys also name the extras in pyproject.toml, the locks, the programs of a lesson, and the folders of notebooks.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Package:
    module: str  # the name in an import statement
    distribution: str  # the name in pip's command
    minimum: str  # the oldest version that works
    extra: str = ""  # the distribution's extra, in brackets
    options: str = ""  # of pip's command
    note: str = ""  # added to the message that the package is missing

    @property
    def requirement(self) -> str:
        return f"{self.distribution}{self.extra}>={self.minimum}"

    @property
    def install(self) -> str:
        return f'pip install {self.options}"{self.requirement}"'


@dataclass(frozen=True)
class Framework:
    title: str
    module: str  # the module in d2l_compat, named as in upstream's d2l
    packages: tuple[Package, ...]  # imported by that module; none if it is not Python
    # Packages that ``packages`` import without requiring them.
    undeclared_dependencies: tuple[Package, ...] = ()
    kernel: str = "python3"
    services: tuple[str, ...] = ("Colab", "Kaggle", "Binder")  # those that start this kernel
    # A line in lessons, and its replacement for execution on a GPU.
    gpu_replacement: tuple[str, str] = ("d2l.cpu()", "d2l.gpu()")
    gpu_environment: Mapping[str, str] = field(default_factory=dict)  # for execution on a GPU

    @property
    def is_python(self) -> bool:
        return self.kernel == "python3"


SETUPTOOLS = Package("setuptools", "setuptools", "68")

FRAMEWORKS = {
    "pytorch": Framework(
        "PyTorch",
        "torch",
        (Package("torch", "torch", "2.5"),),
        gpu_replacement=(  # PyTorch does not use a GPU by itself
            "from d2l_compat import torch as d2l",
            "from d2l_compat import torch as d2l; torch.set_default_device(d2l.gpu())",
        ),
    ),
    "tensorflow": Framework(
        "TensorFlow",
        "tensorflow",
        (Package("tensorflow", "tensorflow", "2.17"), Package("keras", "keras", "3.7")),
        gpu_replacement=('tf.config.set_visible_devices([], "GPU")', ""),
        gpu_environment={"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
    ),
    "jax": Framework(
        "JAX",
        "jax",
        (Package("jax", "jax", "0.5"), Package("flax", "flax", "0.10.3")),
        gpu_environment={
            "JAX_DEFAULT_MATMUL_PRECISION": "highest",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        },
    ),
    "mxnet": Framework(
        "MXNet",
        "mxnet",
        (
            Package(
                "mxnet",
                "mxnet",
                "1.9.1",
                options="--no-deps ",  # its dependencies would downgrade NumPy below 2
                note=" It exists for Linux on x86-64 only.",
            ),
        ),
        # For distutils.
        undeclared_dependencies=(SETUPTOOLS,) if sys.version_info >= (3, 12) else (),
    ),
    "paddle": Framework(
        "PaddlePaddle",
        "paddle",
        (Package("paddle", "paddlepaddle", "3.3"),),
        undeclared_dependencies=(SETUPTOOLS,),
    ),
    "mlx": Framework(
        "MLX",
        "mlx",
        (
            Package(
                "mlx.core",
                "mlx",
                "0.32.4",
                extra="[cpu]",  # the backend on Linux
                note=" It exists for Linux and for macOS on Apple silicon.",
            ),
        ),
    ),
    "djl": Framework(
        "DJL (Java)",
        "java",
        (),
        kernel="java",
        services=("Binder",),  # Colab and Kaggle start Python only
        gpu_replacement=("Device.cpu()", "Device.gpu()"),
    ),
}

# Frameworks with a Python package.
PYTHON_FRAMEWORKS = {
    name: framework for name, framework in FRAMEWORKS.items() if framework.packages
}
