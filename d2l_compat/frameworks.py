"""The frameworks, in the order readers meet them: all that the shim, the tools and the tests need to know of each.

The keys name the extras in pyproject.toml, the locks, the code files of a lesson, and the folders of notebooks.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Package:
    module: str  # what is imported
    distribution: str  # what is installed
    minimum: str  # the oldest version that works
    extra: str = ""  # of the distribution, with its brackets
    options: str = ""  # of the command that installs it
    note: str = ""  # what else a reader must know who does not have it

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
    packages: tuple[Package, ...]  # what the face imports; none where it is no Python module
    besides: tuple[Package, ...] = ()  # what these import and do not ask for
    kernel: str = "python3"
    services: tuple[str, ...] = ("Colab", "Kaggle", "Binder")  # which start that kernel
    # In a lesson, and what stands there instead where it is executed on a GPU.
    to_gpu: tuple[str, str] = ("d2l.cpu()", "d2l.gpu()")
    gpu_environment: Mapping[str, str] = field(default_factory=dict)  # as precise as on the CPU

    @property
    def is_python(self) -> bool:
        return self.kernel == "python3"


SETUPTOOLS = Package("setuptools", "setuptools", "68")

FRAMEWORKS = {
    "pytorch": Framework(
        "PyTorch",
        "torch",
        (Package("torch", "torch", "2.5"),),
        to_gpu=(  # it takes a GPU only where it is told to
            "from d2l_compat import torch as d2l",
            "from d2l_compat import torch as d2l; torch.set_default_device(d2l.gpu())",
        ),
    ),
    "tensorflow": Framework(
        "TensorFlow",
        "tensorflow",
        (Package("tensorflow", "tensorflow", "2.17"), Package("keras", "keras", "3.7")),
        to_gpu=('tf.config.set_visible_devices([], "GPU")', ""),
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
                options="--no-deps ",  # it would take NumPy back below 2
                note=" There is one for Linux on x86-64 only.",
            ),
        ),
        besides=(SETUPTOOLS,) if sys.version_info >= (3, 12) else (),  # it has distutils in it
    ),
    "paddle": Framework(
        "PaddlePaddle",
        "paddle",
        (Package("paddle", "paddlepaddle", "3.3"),),
        besides=(SETUPTOOLS,),
    ),
    "mlx": Framework(
        "MLX",
        "mlx",
        (
            Package(
                "mlx.core",
                "mlx",
                "0.32.4",
                extra="[cpu]",  # without it there is no backend on Linux
                note=" There are ones for Linux and for macOS on Apple silicon.",
            ),
        ),
    ),
    "djl": Framework(
        "DJL (Java)",
        "java",
        (),
        kernel="java",
        services=("Binder",),  # Colab and Kaggle start Python only
        to_gpu=("Device.cpu()", "Device.gpu()"),
    ),
}

# Those that have a face in Python.
PYTHON_FRAMEWORKS = {
    name: framework for name, framework in FRAMEWORKS.items() if framework.packages
}
