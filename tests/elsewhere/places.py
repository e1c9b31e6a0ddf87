"""Imitations of the services that run notebooks: each a Python of its own, and what is in it.

``python -m tests.elsewhere`` makes them once, beside our own environment, with the network. A test
works in a copy of one, without the network, and throws it away.
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

from d2l_compat.frameworks import FACES
from tools.compare.agreement import difference
from tools.compare.figures import SVG
from tools.compare.numbers import tolerance
from tools.compare.pictures import complete
from tools.run.kernels import Workplace
from tools.weave.launch import INSTALL, REPOSITORY
from tools.weave.lessons import ROOT, editions

HERE = Path(__file__).parent
VENV = Path(sys.prefix)
COPIES = ROOT / "build" / "elsewhere"  # in the same file system: a copy is made of links
LIMIT = 600  # seconds for a cell: a guard against hanging, not a measure

# What the services run on. Elsewhere their packages cannot be installed.
CAN_IMITATE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
WHY_NOT = "Colab, Kaggle and Binder run Linux on x86-64; this machine cannot imitate them"

ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
CONDA_PART = [line for line in ENVIRONMENT["dependencies"] if isinstance(line, str)]
(PIP_PART,) = (line["pip"] for line in ENVIRONMENT["dependencies"] if isinstance(line, dict))
# What stands in, from Python's own registry, for what conda brings; the rest is on this machine.
FOR_CONDA = {"pytorch-cpu": ["torch"], "setuptools": ["setuptools"]}
ON_THIS_MACHINE = {"python", "pip", "openjdk", "maven"}
BINDERS_PYTHON = next(line for line in CONDA_PART if line.startswith("python=")).split("=")[1]


def package_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def requirements(file: Path) -> list[str]:
    """The pins of a file, without their hashes."""
    text = file.read_text(encoding="utf-8")
    return [line.strip() for line in re.findall(r"^[a-z0-9][^\\\n]*==[^\\\n]*", text, re.MULTILINE)]


def locked() -> list[str]:
    """Our own versions, for what is not to float; also of TensorFlow's build for the CPU."""
    pins = {pin for lock in (ROOT / "requirements").glob("*.lock") for pin in requirements(lock)}
    return sorted(pins | {re.sub("^tensorflow==", "tensorflow-cpu==", pin) for pin in pins})


def for_conda() -> list[str]:
    """Raises LookupError for a package that nothing stands in for."""
    names = {package_name(line) for line in CONDA_PART} - ON_THIS_MACHINE
    return [each for name in sorted(names) for each in FOR_CONDA[name]]


@dataclass(frozen=True)
class Place:
    """An environment with nothing of ours in it."""

    name: str
    pythons: tuple[str, ...]  # the first of them that is installed; else our own
    parts: tuple[tuple[str, ...], ...]  # what is installed, one part after the other
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # of the command that installs

    @property
    def folder(self) -> Path:
        return VENV / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """Written last: says what the place is made of."""
        return self.folder / "made-of.json"

    @property
    def after_first_part(self) -> Path:
        """All that was installed for the first part."""
        return self.folder / "first-part.txt"

    @cached_property
    def interpreter(self) -> Path:
        found = filter(None, map(find_python, self.pythons))
        return next(found, Path(sys.executable))

    @property
    def made_of(self) -> str:
        made_of = [str(self.interpreter), self.parts, self.constraints, self.options]
        return json.dumps(made_of, indent=0)

    @property
    def is_ready(self) -> bool:
        return _read(self.stamp) == self.made_of


# PyTorch cannot be imported without its libraries for CUDA, some gigabytes. In our own versions they
# take no room: they are links.
FOR_CUDA = [pin for pin in locked() if pin.startswith(("nvidia-", "cuda-"))]
OURS = {package_name(pin) for pin in FOR_CUDA}
ON_COLAB = [pin for pin in requirements(HERE / "colab.txt") if package_name(pin) not in OURS]

COLAB = Place("colab", ("3.13", "3.12"), ((*ON_COLAB, *FOR_CUDA),), options=("--no-deps",))
BINDER = Place(
    "binder", (BINDERS_PYTHON, "3.13"), (tuple(PIP_PART), tuple(for_conda())), tuple(locked())
)

LACKING = [  # on Colab
    package
    for framework in FACES.values()
    for package in framework.packages
    if package.distribution not in map(package_name, COLAB.parts[0])
]
# What the first cells, and postBuild, find in the place of a registry: pip's arguments.
BUILD = ("hatchling", "editables")
WHEELS = VENV / "wheels"
DOWNLOADS = [
    (COLAB, ("setuptools", "numpy", "matplotlib", "filelock", *BUILD)),
    (COLAB, ("graphviz", "requests")),  # MXNet's, and it alone is not to have its NumPy
    *(
        (COLAB, (*package.options.split(), package.distribution + package.extra))
        for package in LACKING
    ),
    *((BINDER, ("--no-deps", package.distribution)) for package in FACES["mxnet"].packages),
    (BINDER, BUILD),
]
WHEELS_STAMP = WHEELS / "made-of.json"


def wheels_made_of() -> str:
    asked = [(str(place.interpreter), arguments) for place, arguments in DOWNLOADS]
    return json.dumps([asked, locked()], indent=0)


def not_ready() -> list[str]:
    """What ``python -m tests.elsewhere`` has to make, by its folder's name."""
    names = [place.name for place in (COLAB, BINDER) if not place.is_ready]
    return names if _read(WHEELS_STAMP) == wheels_made_of() else [*names, WHEELS.name]


def _read(stamp: Path) -> str:
    return stamp.read_text(encoding="utf-8") if stamp.exists() else ""


@cache
def find_python(version: str) -> Path | None:
    """One that is installed, also where pyenv hides it."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    hidden = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin")))
    command = [VENV / "bin" / "uv", "python", "find", "--no-python-downloads", "--system", version]
    path = os.pathsep.join([*hidden, os.environ["PATH"]])
    run = subprocess.run(
        command,
        env={**os.environ, "PATH": path},
        cwd="/",  # no project's settings
        capture_output=True,
        text=True,
        check=False,
    )
    return Path(run.stdout.strip()) if run.returncode == 0 else None


@dataclass(frozen=True)
class Copy:
    """A place that may be changed. What starts in it knows nothing of ours, nor of the network."""

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
        """Nothing is inherited but the way to the system's programs."""
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
            "OMP_NUM_THREADS": "1",  # as many tests run beside it as there are cores
        }

    def run(self, *command: str | Path) -> str:
        """What a command of the place prints. Raises CalledProcessError, with its words as notes."""
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

    def distributions(self) -> dict[str, str]:
        """The version of each, and a digest of what is installed of it."""
        return json.loads(self.run(self.python, "-c", LIST))

    def requirements_of(self, requirement: str) -> set[str]:
        """It, and all that it needs here, as it says itself."""
        return set(json.loads(self.run(self.python, "-c", NEEDED, requirement)))

    @property
    def kernel(self) -> Path:
        """Named otherwise than ours: jupyter_client takes that one for the Python it runs in."""
        return self.home / "kernels" / "elsewhere"


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The distributions that were there and are another now, or gone."""
    return [
        f"{name}: {was} -> {after.get(name, 'gone')}"
        for name, was in before.items()
        if after.get(name) != was
    ]


LIST = """\
import hashlib, json
from importlib.metadata import distributions
print(json.dumps({
    str(each.name).lower().replace("_", "-"):
    f"{each.version} {hashlib.sha256((each.read_text('RECORD') or '').encode()).hexdigest()[:8]}"
    for each in distributions()
}))
"""
NEEDED = """\
import json, sys
from importlib.metadata import PackageNotFoundError, requires
from pip._vendor.packaging.requirements import Requirement
needed, to_do = set(), [Requirement(sys.argv[1])]
while to_do:
    asked = to_do.pop()
    name = asked.name.lower().replace("_", "-")
    if (name, *asked.extras) not in needed:
        needed.add((name, *asked.extras))
        for each in map(Requirement, requires(name) or []):
            if not each.marker or any(each.marker.evaluate({"extra": e}) for e in ("", *asked.extras)):
                to_do.append(each)
print(json.dumps(sorted({name for name, *_ in needed})))
"""


@contextmanager
def copy_of(place: Place) -> Iterator[Copy]:
    """A copy, which takes no room: its files are links."""
    COPIES.mkdir(parents=True, exist_ok=True)
    copy = Copy(Path(mkdtemp(dir=COPIES, prefix=f"{place.name}-")))
    try:
        shutil.copytree(place.folder, copy.prefix, copy_function=os.link, symlinks=True)
        for empty in (copy.home, copy.folder / "tmp", copy.kernel):
            empty.mkdir(parents=True)
        spec = {
            "argv": [str(copy.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "Python elsewhere",
            "language": "python",
        }
        (copy.kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        # Or the first figure would come with a word about matplotlib's search for fonts.
        copy.run(copy.python, "-c", "import matplotlib.font_manager")
        yield copy
    finally:
        # Tens of thousands of links: a disk takes longer to remove them than some tests take.
        gone = copy.folder.rename(copy.folder.with_suffix(".gone"))
        subprocess.Popen(["rm", "-rf", gone])


# The project's files, and where pip finds them


def copy_project(folder: Path) -> None:
    """What is committed, or would be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in filter(None, listed.split("\0")):
        if (ROOT / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)


def make_repository(folder: Path) -> None:
    """Of the project's files, as the first commit."""
    copy_project(folder)
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*who, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", "all"],
        ["config", "uploadpack.allowFilter", "true"],  # as a forge has it, and pip asks for it
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)


def in_place_of_the_forge(repository: Path) -> dict[str, str]:
    """Makes git take this repository wherever the project's address is asked for."""
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": REPOSITORY,
    }


# Notebooks


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def until_its_first_figure(path: Path) -> NotebookNode:
    notebook = read(path)
    draws = [
        any(SVG in output.get("data", {}) for output in cell.get("outputs", []))
        for cell in notebook.cells
    ]
    del notebook.cells[draws.index(True) + 1 :]
    return notebook


def notebooks_of(framework: str) -> list[Path]:
    """Of each lesson one, in the first of its languages."""
    of_lesson: dict[Path, Path] = {}
    for edition in editions(frameworks=[framework]):
        of_lesson.setdefault(edition.folder, edition.notebook)
    return list(of_lesson.values())


def first_cell_of(notebook: Path) -> NotebookNode:
    """The notebook, without all other cells of code."""
    whole = read(notebook)
    whole.cells = [cell for cell in whole.cells if cell.id == INSTALL]
    assert len(whole.cells) == 1
    return whole


@dataclass(frozen=True)
class Execution:
    notebook: NotebookNode
    peak: int  # bytes of the kernel and of all that it started

    @property
    def first_outputs(self) -> list[NotebookNode]:
        return next(cell.outputs for cell in self.notebook.cells if cell.id == INSTALL)


def execute(
    notebook: NotebookNode,
    kernel: Path,
    environment: dict[str, str],
    folder: Path,
    may_fail: bool = False,
) -> Execution:
    """Execute a notebook's copy, in a fresh kernel. Raises CellExecutionError unless it may fail."""
    fresh = nbformat.from_dict(json.loads(json.dumps(notebook)))
    specs = KernelSpecManager(kernel_dirs=[str(kernel.parent)], ensure_native_kernel=False)
    workplace = Workplace(kernel.name)
    manager = KernelManager(kernel_spec_manager=specs, **workplace.settings)
    try:
        manager.start_kernel(cwd=str(folder), env=environment)
        with _peak_memory(manager.provisioner.pid) as peak:
            NotebookClient(
                fresh,
                km=manager,
                timeout=LIMIT,
                allow_errors=may_fail,
                record_timing=False,
                coalesce_streams=True,
            ).execute()
        return Execution(fresh, peak[0])
    finally:
        manager.shutdown_kernel(now=True)
        workplace.cleanup()


@contextmanager
def _peak_memory(pid: int) -> Iterator[list[int]]:
    """Of a process: all that it holds, and what its children have beside it."""
    peak, is_over = [0], threading.Event()

    def watch() -> None:
        process = psutil.Process(pid)
        while not is_over.wait(0.1):
            with suppress(psutil.NoSuchProcess):
                now = process.memory_info().rss
                for child in process.children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        now += child.memory_full_info().uss  # a fork has the same pages
                peak[0] = max(peak[0], now)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        is_over.set()
        watcher.join()


def differences(stored: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Of what the cells show, save the first one, which installs, and those that nbval leaves alone."""
    found = []
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        tags = old.metadata.get("tags", [])
        if old.cell_type == "code" and old.id != INSTALL and "nbval-ignore-output" not in tags:
            # Not every kernel sends the PNG, which is made from the SVG.
            fault = difference(old.outputs, complete(new.outputs), tolerance(tags))
            if fault:
                found.append(f"{old.id}: {fault}")
    return found
