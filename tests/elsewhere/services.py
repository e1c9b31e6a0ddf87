"""Imitate the services that run notebooks: each has an environment with its own Python and packages.

``python -m tests.elsewhere`` makes these environments once, inside our own environment, with a network. Each test works
in a copy, without a network, and removes the copy.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import mkdtemp

import nbformat
import psutil
import yaml
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.compare.figures import SVG
from tools.compare.numbers import read_tolerance
from tools.compare.outputs import compare_outputs
from tools.compare.pixels import add_pngs
from tools.run.kernels import KernelWorkspace
from tools.weave.launch import INSTALL, REPOSITORY
from tools.weave.lessons import ROOT, list_notebooks

HERE = Path(__file__).parent
VENV = Path(sys.prefix)
# In the same file system as the originals, because copies are hard links.
COPIES = ROOT / "build" / "elsewhere"
TIMEOUT = 600  # seconds per cell; only a guard against hanging

# The services run on this platform; their packages cannot be installed on others.
CAN_IMITATE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
UNSUPPORTED_PLATFORM = (
    "Colab, Kaggle and Binder run Linux on x86-64; this machine cannot imitate them"
)

ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
CONDA_PART = [line for line in ENVIRONMENT["dependencies"] if isinstance(line, str)]
(PIP_PART,) = (line["pip"] for line in ENVIRONMENT["dependencies"] if isinstance(line, dict))
# Packages from PyPI that replace conda's.
STAND_INS = {"pytorch-cpu": ["torch"], "setuptools": ["setuptools"]}
# Conda's packages that need no stand-in, because this machine has them.
PREINSTALLED_PACKAGES = {"python", "pip", "openjdk", "maven"}
BINDER_PYTHON = next(line for line in CONDA_PART if line.startswith("python=")).split("=")[1]


def parse_package_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def read_pins(file: Path) -> list[str]:
    """Return the pins of a requirements file, without hashes."""
    text = file.read_text(encoding="utf-8")
    return [line.strip() for line in re.findall(r"^[a-z0-9][^\\\n]*==[^\\\n]*", text, re.MULTILINE)]


def list_locked() -> list[str]:
    """Return the pins of our locks, as constraints, and TensorFlow's also for tensorflow-cpu."""
    pins = {pin for lock in (ROOT / "requirements").glob("*.lock") for pin in read_pins(lock)}
    return sorted(pins | {re.sub("^tensorflow==", "tensorflow-cpu==", pin) for pin in pins})


def list_stand_ins() -> list[str]:
    """Return the packages that replace conda's. Raise LookupError for a package without a stand-in."""
    names = {parse_package_name(line) for line in CONDA_PART} - PREINSTALLED_PACKAGES
    return [package for name in sorted(names) for package in STAND_INS[name]]


@dataclass(frozen=True)
class Service:
    """A service, with an environment in which nothing of this project is installed."""

    name: str
    pythons: tuple[str, ...]  # in order of preference; if none is installed, our own is used
    parts: tuple[tuple[str, ...], ...]  # requirements, installed one part after the other
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # of `uv pip install`

    @property
    def folder(self) -> Path:
        return VENV / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """The file that is written last, with the recipe of the environment."""
        return self.folder / "made-of.json"

    @property
    def first_part_file(self) -> Path:
        """The file that lists all packages installed for the first part."""
        return self.folder / "first-part.txt"

    @cached_property
    def interpreter(self) -> Path:
        installed = filter(None, map(find_python, self.pythons))
        return next(installed, Path(sys.executable))

    @property
    def recipe(self) -> str:
        """The sources of the environment, which is outdated if they have changed."""
        return json.dumps(
            [str(self.interpreter), self.parts, self.constraints, self.options], indent=0
        )

    @property
    def is_ready(self) -> bool:
        return _read_stamp(self.stamp) == self.recipe


# PyTorch cannot be imported without its libraries for CUDA, some gigabytes. We take the versions of our own
# environment, because uv then links to its files, which takes no space.
CUDA_LIBRARIES = [pin for pin in list_locked() if pin.startswith(("nvidia-", "cuda-"))]
CUDA_NAMES = {parse_package_name(pin) for pin in CUDA_LIBRARIES}
COLAB_PINS = [
    pin for pin in read_pins(HERE / "colab.txt") if parse_package_name(pin) not in CUDA_NAMES
]

COLAB = Service(
    "colab", ("3.13", "3.12"), ((*COLAB_PINS, *CUDA_LIBRARIES),), options=("--no-deps",)
)
BINDER = Service(
    "binder",
    (BINDER_PYTHON, "3.13"),
    (tuple(PIP_PART), tuple(list_stand_ins())),
    tuple(list_locked()),
)

# Packages of frameworks that Colab does not have.
MISSING_PACKAGES = [
    package
    for framework in PYTHON_FRAMEWORKS.values()
    for package in framework.packages
    if package.distribution not in map(parse_package_name, COLAB.parts[0])
]
# First cells and postBuild install from a folder of wheels instead of PyPI. DOWNLOADS are pip's arguments to fill it.
BUILD = ("hatchling", "editables")
WHEELS = VENV / "wheels"
DOWNLOADS = [
    (COLAB, ("setuptools", "numpy", "matplotlib", "filelock", *BUILD)),
    (COLAB, ("graphviz", "requests")),  # required by MXNet, which is downloaded without its NumPy
    *(
        (COLAB, (*package.options.split(), package.distribution + package.extra))
        for package in MISSING_PACKAGES
    ),
    *(
        (BINDER, ("--no-deps", package.distribution))
        for package in PYTHON_FRAMEWORKS["mxnet"].packages
    ),
    (BINDER, BUILD),
]
WHEELS_STAMP = WHEELS / "made-of.json"


def describe_wheels() -> str:
    """Return the sources of the wheels, like a service's recipe."""
    downloads = [(str(service.interpreter), arguments) for service, arguments in DOWNLOADS]
    return json.dumps([downloads, list_locked()], indent=0)


def list_outdated() -> list[str]:
    """Return the names of the folders that ``python -m tests.elsewhere`` has to make."""
    names = [service.name for service in (COLAB, BINDER) if not service.is_ready]
    return names if _read_stamp(WHEELS_STAMP) == describe_wheels() else [*names, WHEELS.name]


def _read_stamp(stamp: Path) -> str:
    return stamp.read_text(encoding="utf-8") if stamp.exists() else ""


@cache
def find_python(version: str) -> Path | None:
    """Return an installed Python of a version, even one of pyenv's that is not active."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    inactive = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin")))
    command = [VENV / "bin" / "uv", "python", "find", "--no-python-downloads", "--system", version]
    path = os.pathsep.join([*inactive, os.environ["PATH"]])
    process = subprocess.run(
        command,
        env={**os.environ, "PATH": path},
        cwd="/",  # no project's settings apply here
        capture_output=True,
        text=True,
        check=False,
    )
    return Path(process.stdout.strip()) if process.returncode == 0 else None


@dataclass(frozen=True)
class Copy:
    """A copy of a service's environment, whose programs use neither our environment nor the network."""

    folder: Path

    @property
    def prefix(self) -> Path:
        return self.folder / "env"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables; only PATH is inherited, without our own programs."""
        ours = str(VENV / "bin")
        paths = [path for path in os.environ["PATH"].split(os.pathsep) if path != ours]
        return {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([str(self.prefix / "bin"), *paths]),
            "TMPDIR": str(self.folder / "tmp"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": WHEELS.as_uri(),
            "OMP_NUM_THREADS": "1",  # there is one test per core
        }

    def run(self, *command: str | Path) -> str:
        """Return a command's standard output. Raise CalledProcessError with all its output as a note."""
        try:
            return subprocess.run(
                command,
                cwd=self.home,
                env=self.environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        except subprocess.CalledProcessError as error:
            error.add_note(f"{error.stdout}\n{error.stderr}")
            raise

    def list_distributions(self) -> dict[str, str]:
        """Return the version of each installed distribution with a hash of its files."""
        return json.loads(self.run(self.python, "-c", LIST_DISTRIBUTIONS))

    def list_requirements(self, requirement: str) -> set[str]:
        """Return a requirement's name and those of all its requirements, from their metadata."""
        return set(json.loads(self.run(self.python, "-c", LIST_REQUIREMENTS, requirement)))

    @property
    def kernel(self) -> Path:
        """The kernel's folder. Its name is not python3, for which jupyter_client would start our own Python."""
        return self.home / "kernels" / "elsewhere"


def list_changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the distributions that were changed or removed."""
    return [
        f"{name}: {old} -> {after.get(name, 'gone')}"
        for name, old in before.items()
        if after.get(name) != old
    ]


LIST_DISTRIBUTIONS = """\
import hashlib, json
from importlib.metadata import distributions
print(json.dumps({
    str(each.name).lower().replace("_", "-"):
    f"{each.version} {hashlib.sha256((each.read_text('RECORD') or '').encode()).hexdigest()[:8]}"
    for each in distributions()
}))
"""
LIST_REQUIREMENTS = """\
import json, sys
from importlib.metadata import PackageNotFoundError, requires
from pip._vendor.packaging.requirements import Requirement
needed, remaining = set(), [Requirement(sys.argv[1])]
while remaining:
    requirement = remaining.pop()
    name = requirement.name.lower().replace("_", "-")
    if (name, *requirement.extras) not in needed:
        needed.add((name, *requirement.extras))
        for each in map(Requirement, requires(name) or []):
            if not each.marker or any(each.marker.evaluate({"extra": e}) for e in ("", *requirement.extras)):
                remaining.append(each)
print(json.dumps(sorted({name for name, *_ in needed})))
"""


@contextmanager
def copy_service(service: Service) -> Iterator[Copy]:
    """Copy a service's environment; the files are hard links, which take no space."""
    COPIES.mkdir(parents=True, exist_ok=True)
    copy = Copy(Path(mkdtemp(dir=COPIES, prefix=f"{service.name}-")))
    try:
        shutil.copytree(service.folder, copy.prefix, copy_function=os.link, symlinks=True)
        for folder in (copy.home, copy.folder / "tmp", copy.kernel):
            folder.mkdir(parents=True)
        spec = {
            "argv": [str(copy.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "Python elsewhere",
            "language": "python",
        }
        (copy.kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        # Otherwise matplotlib would print a message about its search for fonts with the first figure.
        copy.run(copy.python, "-c", "import matplotlib.font_manager")
        yield copy
    finally:
        # Remove the copy in the background: its tens of thousands of links take longer than some tests.
        old_folder = copy.folder.rename(copy.folder.with_suffix(".old"))
        subprocess.Popen(["rm", "-rf", old_folder])


# The project's files


def copy_project(folder: Path) -> None:
    """Copy the project's files, committed or not, except those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in filter(None, listing.split("\0")):
        if (ROOT / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)


def make_repository(folder: Path) -> None:
    """Make a git repository with the project's files in its first commit."""
    copy_project(folder)
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*author, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", "all"],
        ["config", "uploadpack.allowFilter", "true"],  # pip needs this; GitHub has it
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)


def redirect_git(repository: Path) -> dict[str, str]:
    """Return variables that make git use this repository in place of the project's address."""
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": REPOSITORY,
    }


# Notebooks


def read_notebook(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def read_until_first_figure(path: Path) -> NotebookNode:
    """Return a notebook without the cells after its first figure."""
    notebook = read_notebook(path)
    has_figure = [
        any(SVG in output.get("data", {}) for output in cell.get("outputs", []))
        for cell in notebook.cells
    ]
    del notebook.cells[has_figure.index(True) + 1 :]
    return notebook


def find_notebooks(framework: str) -> list[Path]:
    """Return one notebook of each lesson, in the first of its languages."""
    by_lesson: dict[Path, Path] = {}
    for notebook in list_notebooks(frameworks=[framework]):
        by_lesson.setdefault(notebook.lesson, notebook.path)
    return list(by_lesson.values())


def read_first_cell(path: Path) -> NotebookNode:
    """Return a notebook with only its first code cell, which installs missing packages."""
    notebook = read_notebook(path)
    notebook.cells = [cell for cell in notebook.cells if cell.id == INSTALL]
    assert len(notebook.cells) == 1
    return notebook


@dataclass(frozen=True)
class Execution:
    notebook: NotebookNode
    peak: int  # bytes of memory of the kernel and its child processes

    @property
    def first_outputs(self) -> list[NotebookNode]:
        """The outputs of the first code cell."""
        return next(cell.outputs for cell in self.notebook.cells if cell.id == INSTALL)


def execute(
    notebook: NotebookNode,
    kernel: Path,
    environment: dict[str, str],
    folder: Path,
    may_fail: bool = False,
) -> Execution:
    """Execute a copy of a notebook in a fresh kernel. Raise CellExecutionError unless ``may_fail``."""
    fresh = nbformat.from_dict(json.loads(json.dumps(notebook)))
    specs = KernelSpecManager(kernel_dirs=[str(kernel.parent)], ensure_native_kernel=False)
    workspace = KernelWorkspace(kernel.name)
    manager = KernelManager(kernel_spec_manager=specs, **workspace.settings)
    try:
        manager.start_kernel(cwd=str(folder), env=environment)
        with _measure_memory(manager.provisioner.pid) as peak:
            NotebookClient(
                fresh,
                km=manager,
                timeout=TIMEOUT,
                allow_errors=may_fail,
                record_timing=False,
                coalesce_streams=True,
            ).execute()
        return Execution(fresh, peak[0])
    finally:
        manager.shutdown_kernel(now=True)
        workspace.cleanup()


@contextmanager
def _measure_memory(pid: int) -> Iterator[list[int]]:
    """Measure the peak memory of a process with its children; yield a list that has it at the end."""
    peak = [0]
    is_done = threading.Event()

    def watch() -> None:
        process = psutil.Process(pid)
        while not is_done.wait(0.1):
            with suppress(psutil.NoSuchProcess):
                used = process.memory_info().rss
                for child in process.children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        used += child.memory_full_info().uss  # without pages shared after a fork
                peak[0] = max(peak[0], used)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        is_done.set()
        watcher.join()


def list_differences(stored: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Compare outputs, except those of the install cell and of cells that nbval ignores."""
    differences = []
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        tags = old.metadata.get("tags", [])
        if old.cell_type == "code" and old.id != INSTALL and "nbval-ignore-output" not in tags:
            # Some kernels send no PNG, so it is made from the SVG.
            message = compare_outputs(old.outputs, add_pngs(new.outputs), read_tolerance(tags))
            if message:
                differences.append(f"{old.id}: {message}")
    return differences
