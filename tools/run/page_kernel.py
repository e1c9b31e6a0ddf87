"""The kernel that nbval gets of us: one for a page, in all its languages.

It starts as the runner's do, without the user's settings and in an empty folder. A cell that the page's
notebooks share is executed once; what it showed is played again to the next notebook. One that they do not
share is executed for all of them at its place, and what it showed is kept until its notebook asks.
"""

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager
from nbval.kernel import NbvalKernelspecManager, RunningKernel

from d2l_compat.frameworks import FRAMEWORKS
from tools.run.kernels import ANSI, Workplace
from tools.run.sharing import Cell, Identity, Turn, identity, turns

# What keeps a lesson's code on the CPU, or comes before it, and what takes it to a GPU.
BESIDES = {"pytorch": "; from tools.run.draws import DrawsOnCPU; DrawsOnCPU().__enter__()"}
TO_GPU = {
    framework.to_gpu[0]: framework.to_gpu[1] + BESIDES.get(name, "")
    for name, framework in FRAMEWORKS.items()
}
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
TO_RESPOND = 5  # seconds to an interrupt, as long as nbval waits


@dataclass
class Execution:
    """Of a cell: nbval's name for it, and the kernel's messages."""

    request: str
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def printed(self) -> str:
        return "".join(
            each["text"] for each in self._contents("stream") if each["name"] == "stdout"
        )

    @property
    def value(self) -> str:
        """The words for its last expression's value."""
        found = [each["data"].get("text/plain", "") for each in self._contents("execute_result")]
        return found[-1] if found else ""

    @property
    def num_figures(self) -> int:
        return sum("image/svg+xml" in each["data"] for each in self._contents("display_data"))

    @property
    def fault(self) -> str:
        """What made it fail; nothing where it did not."""
        lines = [line for each in self._contents("error") for line in each["traceback"]]
        return ANSI.sub("", "\n".join(lines))

    def _contents(self, *types: str) -> list[dict[str, Any]]:
        return [each["content"] for each in self.messages if each["msg_type"] in types]


class KernelDiedError(Exception):
    pass


class PageKernel(RunningKernel):
    on_gpu = False  # the configuration's choices
    cell_timeout: float | None = None

    def __init__(self, kernel_name: str, cwd: str, startup_timeout: float) -> None:
        self.workplace = Workplace(kernel_name)
        specs = NbvalKernelspecManager()
        specs.get_kernel_spec(kernel_name)  # the manager would log at length that there is none
        self.km = KernelManager(kernel_spec_manager=specs, **self.workplace.settings)
        self.km.start_kernel(cwd=self.workplace.folder)
        self.kc = self.km.client()
        self.kc.start_channels()
        self.executed: dict[Identity, Execution] = {}
        self.running: Execution | None = None
        self.replayed: deque[dict[str, Any]] = deque()  # messages that are still to come
        self.names: dict[int, str] = {}  # of the first notebook's cells, by their places
        self.place = 0, ""  # of the cell that comes next, and its name
        self.suffix = ".java" if kernel_name == "java" else ".py"
        self.to_come: deque[Turn] = deque()
        try:
            self.kc.wait_for_ready(timeout=startup_timeout)
            self._ensure_iopub_up()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        super().stop()
        self.workplace.cleanup()

    def expect(self, number: int, name: str) -> str | None:
        """What cell comes next; the name of the first notebook's in its place, if it is another."""
        self.place = number, name
        first = self.names.setdefault(number, name)
        return first if first != name else None

    def prepare(self, notebooks: list[list[Cell]]) -> None:
        """For a page: the cells of its notebooks."""
        self.to_come.extend(turns(notebooks, self.suffix))

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        number, name = self.place
        asked = identity(number, Cell(name, cell_input), self.suffix)
        self.replayed.clear()
        self._catch_up_with(asked)
        if known := self.executed.get(asked):
            self.replayed.extend(known.messages)
            return known.request
        self.executed[asked] = self._start(cell_input, allow_stdin)
        return self.executed[asked].request

    def _start(self, code: str, allow_stdin: bool | None = False) -> Execution:
        for on_cpu, on_gpu in TO_GPU.items() if self.on_gpu else ():
            code = code.replace(on_cpu, on_gpu)
        self.running = Execution(super().execute_cell_input(code, allow_stdin))
        return self.running

    def _catch_up_with(self, asked: Identity) -> None:
        """Execute what comes before this cell: in the other notebooks, and definitions."""
        if asked not in (turn.identity for turn in self.to_come if not turn.is_definition):
            return
        while (turn := self.to_come.popleft()).is_definition or turn.identity != asked:
            if turn.is_definition or turn.identity not in self.executed:
                self._finish(turn)

    def _finish(self, turn: Turn) -> None:
        """What fails here is told when its notebook's turn comes."""
        running = self._start(turn.source)
        with suppress(KernelDiedError):
            if not self._ends(running, self.cell_timeout):
                self.interrupt()
            elif not turn.is_definition:
                self.executed[turn.identity] = running

    def _ends(self, running: Execution, seconds: float | None) -> bool:
        """Wait for it so long."""
        try:
            self.await_reply(running.request, seconds)
            self.await_idle(running.request, seconds)
        except Empty:
            return False
        return True

    def execution(self, number: int, cell: Cell) -> Execution | None:
        """Of this cell of the page; none where there was none."""
        return self.executed.get(identity(number, cell, self.suffix))

    def tell(self, code: str) -> Execution:
        """Execute what is no cell.

        Raises KernelDiedError, and TimeoutError where it takes longer than a cell may: it is interrupted then
        or, if it does not respond, the kernel is stopped.
        """
        if not self.is_alive():
            raise KernelDiedError
        self.replayed.clear()
        running = self._start(code)
        if not self._ends(running, self.cell_timeout):
            self.interrupt()
            if not self._ends(running, TO_RESPOND):
                self.stop()
            raise TimeoutError
        return running

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        until = time.monotonic() + (timeout or float("inf"))
        while not self.replayed:
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
        if stream == "iopub" and self.replayed:
            return self.replayed.popleft()
        message = super().get_message(stream, timeout)
        if stream == "shell":
            # nbval asks for one; Java's kernel says none when it tells about itself.
            message["content"].setdefault("status", "ok")
        elif self.running and message["parent_header"].get("msg_id") == self.running.request:
            self.running.messages.append(message)
        return message
