"""What nbval is taught (conftest.py): a pytest plugin on top of its own.

* Outputs are compared as tools/agreement.py says; a figure that differs is kept as a picture.
* Notebooks that differ in their language alone share a kernel. A cell that they share is executed
  once: to the next notebook, the kernel tells again what it showed.
* Kernels start as the runner's do: without the user's settings, in an empty folder.
"""

import time
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

import nbformat
import nbval.plugin
import pytest
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import KernelManager
from nbformat import ValidationError
from nbval.kernel import NbvalKernelspecManager, RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile
from xdist.scheduler import LoadScopeScheduling

from d2l_compat.frameworks import FRAMEWORKS
from tools.agreement import difference
from tools.figures import FIGURE, picture
from tools.kernels import Workplace, neutral_environment
from tools.numbers import Tolerance, tolerance

PICTURES = Path("build", "figures")  # where those that differ are kept

# What chooses the device in a lesson's code, and its counterpart.
TO_GPU = dict(framework.to_gpu for framework in FRAMEWORKS.values())
# A GPU computes as the CPU does: no shortened floats, the same sums each time; and the pages
# beside each other share its memory.
GPU_ENVIRONMENT = {
    "NVIDIA_TF32_OVERRIDE": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
} | {
    name: value
    for framework in FRAMEWORKS.values()
    for name, value in framework.gpu_environment.items()
}

TO_COME = pytest.StashKey[Counter[tuple[str, ...]]]()  # notebooks, by page
KERNELS = pytest.StashKey[dict[tuple[str, ...], "Kernel"]]()


def page(notebook: Path | str) -> tuple[str, ...]:
    """What a notebook has in common with those in other languages: its path without it."""
    parts = Path(notebook).parts
    is_one_of_many = parts[-4:-3] == ("notebooks",)
    return (*parts[:-3], *parts[-2:]) if is_one_of_many else parts


@dataclass
class Shown:
    """A cell that was executed, and what it showed: the kernel's messages."""

    name: str
    source: str
    request: str
    messages: list[dict[str, Any]] = field(default_factory=list)


class KernelDiedError(Exception):
    pass


class Kernel(RunningKernel):
    """Of one page. Its first notebook is executed, and of the next ones the cells whose code is
    another; what the others showed is told again."""

    def __init__(self, kernel_name: str, cwd: str, startup_timeout: float) -> None:
        self.workplace = Workplace(kernel_name)
        specs = NbvalKernelspecManager()
        specs.get_kernel_spec(kernel_name)  # the manager would log at length that there is none
        self.km = KernelManager(kernel_spec_manager=specs, **self.workplace.settings)
        self.km.start_kernel(cwd=self.workplace.folder)
        self.kc = self.km.client()
        self.kc.start_channels()
        self.shown: list[Shown] = []
        self.cell: tuple[int, str] = 0, ""  # that comes next: its number and name
        self.told_again: deque[dict[str, Any]] = deque()
        try:
            self.kc.wait_for_ready(timeout=startup_timeout)
            self._ensure_iopub_up()
        except BaseException:
            self.stop()
            raise

    on_gpu = False  # the configuration's choice

    def stop(self) -> None:
        super().stop()
        self.workplace.cleanup()

    def expected(self, number: int, name: str) -> str | None:
        """The name of the first notebook's cell in this place, where it is another."""
        self.cell = number, name
        there = self.shown[number].name if number < len(self.shown) else name
        return there if there != name else None

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        number, name = self.cell
        self.told_again.clear()
        if number < len(self.shown) and self.shown[number].source == cell_input:
            self.told_again.extend(self.shown[number].messages)
            return self.shown[number].request
        code = cell_input
        for on_cpu, on_gpu in TO_GPU.items() if self.on_gpu else ():
            code = code.replace(on_cpu, on_gpu)
        request = super().execute_cell_input(code, allow_stdin)
        if number == len(self.shown):
            self.shown.append(Shown(name, cell_input, request))
        return request

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        until = time.monotonic() + (timeout or float("inf"))
        while not self.told_again:
            try:
                return super().await_reply(msg_id, 1)
            except Empty:
                # A dead kernel never replies.
                if not self.is_alive():
                    raise KernelDiedError from None
                if time.monotonic() > until:
                    raise
        return None

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        if stream == "iopub" and self.told_again:
            return self.told_again.popleft()
        message = super().get_message(stream, timeout)
        if stream == "shell":
            # nbval asks for one; Java's kernel says none when it tells about itself.
            message["content"].setdefault("status", "ok")
        elif self.shown and message["parent_header"].get("msg_id") == self.shown[-1].request:
            self.shown[-1].messages.append(message)
        return message


class Notebook(IPyNbFile):
    def collect(self) -> Iterator["Cell"]:
        try:
            cells = list(super().collect())
        except (
            OSError,
            LookupError,
            AttributeError,
            TypeError,
            ValueError,
            ValidationError,
        ) as error:
            why = f"{type(error).__name__}: {error}"
            raise self.CollectError(f"{self.path}: no notebook: {why:.200}") from None
        for cell in cells:
            given = {"cell_num": cell.cell_num, "cell": cell.cell, "options": cell.options}
            cell = Cell.from_parent(self, name=cell.name, **given)
            cell.add_marker(pytest.mark.random_order(disabled=True))  # within its notebook
            yield cell

    def setup(self) -> None:
        kernels = self.config.stash[KERNELS]
        if page(self.path) in kernels:
            self.kernel = kernels[page(self.path)]
            self.setup_sanitize_files()
            return
        try:
            super().setup()
        except (NoSuchKernel, RuntimeError, OSError) as error:
            pytest.fail(f"no kernel came up: {error}", pytrace=False)
        kernels[page(self.path)] = self.kernel

    def teardown(self) -> None:
        to_come = self.config.stash[TO_COME]
        to_come[page(self.path)] -= 1
        if to_come[page(self.path)] <= 0:
            self.config.stash[KERNELS].pop(page(self.path), None)
            super().teardown()


class Cell(IPyNbCell):
    def runtest(self) -> None:
        name = self.cell.get("id", self.name)
        if expected := self.parent.kernel.expected(self.cell_num, name):
            self.raise_cell_error(
                f"{name!r} stands where the notebook in another language has {expected!r}"
            )
        try:
            super().runtest()
        except KernelDiedError:
            self.parent.timed_out = True  # nbval's word for: expect no more of the cells below
            self.raise_cell_error("The kernel died")

    def compare_outputs(
        self, fresh: list[Any], stored: list[Any], skip_compare: Any = None
    ) -> bool:
        self.picture.unlink(missing_ok=True)
        new, old = (
            [f"{output.output_type} {output.get('name', '')}".strip() for output in outputs]
            for outputs in (fresh, stored)
        )
        if new != old and sorted(new) == sorted(old):  # nbval looks at each kind for itself
            self.comparison_traceback = [f"outputs in another order: {new} instead of {old}"]
            return False
        return super().compare_outputs(*self.settled(fresh, stored), skip_compare)

    @property
    def picture(self) -> Path:
        name = "-".join((*self.path.with_suffix("").parts[-3:], self.cell.get("id", self.name)))
        return self.config.rootpath / PICTURES / f"{name}.png"

    def settled(self, fresh: list[Any], stored: list[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs, made one where they agree, and speaking where they are figures."""
        if len(fresh) != len(stored):
            return fresh, stored
        allowed = tolerance(self.cell.metadata.get("tags", []))
        settled: tuple[list[Any], list[Any]] = [], []
        for pair in zip(fresh, stored, strict=True):
            new, old = (dict(output) for output in pair)
            if isinstance(new.get("text"), str) and isinstance(old.get("text"), str):
                new["text"], old["text"] = self.settle(new["text"], old["text"], allowed)
            new["data"], old["data"] = dict(new.get("data", {})), dict(old.get("data", {}))
            for mime in new["data"].keys() & old["data"].keys():
                texts = new["data"][mime], old["data"][mime]
                if all(isinstance(text, str) for text in texts):
                    new["data"][mime], old["data"][mime] = self.settle(*texts, allowed)
            for outputs, output in zip(settled, (new, old), strict=True):
                outputs.append(nbformat.from_dict(output))
        return settled

    def settle(self, fresh: str, stored: str, allowed: Tolerance) -> tuple[str, str]:
        fault = difference(stored, fresh, allowed)
        if fault is None:
            return stored, stored
        new, old = FIGURE.fullmatch(fresh), FIGURE.fullmatch(stored)
        if new is None or old is None:
            return fresh, stored
        try:
            self.picture.parent.mkdir(parents=True, exist_ok=True)
            self.picture.write_bytes(picture(old[1], new[1]))
            kept = f"see {self.picture}"
        except (OSError, ValueError) as error:
            kept = f"no picture of it: {error}"
        return f"the fresh figure differs: {fault}\n{kept}", "the stored figure"


nbval.plugin.RunningKernel = Kernel  # under this name nbval starts one


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=["cpu", "gpu"], default="cpu", help="of the notebooks")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[KERNELS] = {}
    Kernel.on_gpu = config.option.device == "gpu"
    # xdist's workers have inherited it.
    if config.option.nbval and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch(config))
        environment = ExitStack()
        environment.enter_context(neutral_environment(GPU_ENVIRONMENT if Kernel.on_gpu else {}))
        config.add_cleanup(environment.close)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[Any], list[Any]]:
    return [
        Notebook.from_parent(parent, path=file_path) if isinstance(file, IPyNbFile) else file
        for file in (yield)
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    notebooks = {item.path for item in session.items if isinstance(item, Cell)}
    session.config.stash[TO_COME] = Counter(map(page, notebooks))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for kernel in session.config.stash[KERNELS].values():
        kernel.stop()


# With xdist: a page to a worker


class PageByPage(LoadScopeScheduling):
    """A page with all its languages goes to one worker, the longest first."""

    def __init__(self, config: pytest.Config, log: Any, seconds: dict[str, float]) -> None:
        super().__init__(config, log)
        self.seconds = seconds

    def _split_scope(self, nodeid: str) -> str:
        return _page_of(nodeid) or super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        longest = max(self.workqueue, key=lambda scope: self.seconds.get(scope, 0))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def _page_of(nodeid: str) -> str | None:
    file = nodeid.partition("::")[0]
    return "/".join(page(file)) if file.endswith(".ipynb") else None


class Stopwatch:
    """Remembers, from run to run, how long each page took."""

    KEY = "regression/seconds"

    def __init__(self, config: pytest.Config) -> None:
        self.cache = config.cache if hasattr(config, "cache") else None
        self.seconds: dict[str, float] = self.cache.get(self.KEY, {}) if self.cache else {}
        self.now: dict[str, float] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> PageByPage | None:
        return PageByPage(config, log, self.seconds) if config.option.nbval else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if scope := _page_of(report.nodeid):
            self.now[scope] = self.now.get(scope, 0) + report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.cache and self.now:
            self.cache.set(self.KEY, self.seconds | self.now)
