"""Give nbval one kernel for a page, in all its languages.

The kernel starts as the runner's kernels do, without the user's settings and in an empty folder. A cell that the
page's notebooks share is executed once, and its messages are replayed to the other notebooks. When a cell differs
between languages, it is executed in all of them, one after the other, and the messages of each are stored until its
notebook asks for them.
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
from tools.run.kernels import ANSI, KernelWorkspace
from tools.run.sharing import CodeCell, Identity, Step, identify_cell, plan_steps

EXTRA_GPU_CODE = {
    "pytorch": "; from tools.run.draws import RandomNumbersOnCPU; RandomNumbersOnCPU().__enter__()"
}
# Replacements on a GPU: keys are a lesson's code for the CPU, values the code for a GPU.
GPU_CODE = {
    framework.gpu_replacement[0]: framework.gpu_replacement[1] + EXTRA_GPU_CODE.get(name, "")
    for name, framework in FRAMEWORKS.items()
}
# Make a GPU compute as the CPU does, with full floats and sums in the same order, and let several pages share
# its memory.
GPU_ENVIRONMENT = {
    "NVIDIA_TF32_OVERRIDE": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
} | {
    name: value
    for framework in FRAMEWORKS.values()
    for name, value in framework.gpu_environment.items()
}
SECONDS_TO_RESPOND = 5  # to an interrupt, as long as nbval waits


@dataclass
class Execution:
    """The execution of a cell: the id of its request, and the kernel's messages."""

    request: str
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def printed(self) -> str:
        """The text on the standard output."""
        contents = self._contents("stream")
        return "".join(each["text"] for each in contents if each["name"] == "stdout")

    @property
    def value(self) -> str:
        """The text of the last expression's value."""
        texts = [each["data"].get("text/plain", "") for each in self._contents("execute_result")]
        return texts[-1] if texts else ""

    @property
    def num_figures(self) -> int:
        return sum("image/svg+xml" in each["data"] for each in self._contents("display_data"))

    @property
    def traceback(self) -> str:
        """The traceback of a failed execution, or ""."""
        lines = [line for each in self._contents("error") for line in each["traceback"]]
        return ANSI.sub("", "\n".join(lines))

    def _contents(self, message_type: str) -> list[dict[str, Any]]:
        return [each["content"] for each in self.messages if each["msg_type"] == message_type]


class KernelDiedError(Exception):
    pass


class PageKernel(RunningKernel):
    # Set from the command line's options.
    on_gpu = False
    cell_timeout: float | None = None

    def __init__(self, kernel_name: str, cwd: str, startup_timeout: float) -> None:
        self.workspace = KernelWorkspace(kernel_name)
        specs = NbvalKernelspecManager()
        specs.get_kernel_spec(kernel_name)  # raises; the manager would also log a long message
        self.km = KernelManager(kernel_spec_manager=specs, **self.workspace.settings)
        self.km.start_kernel(cwd=self.workspace.folder)
        self.kc = self.km.client()
        self.kc.start_channels()
        self.executions: dict[Identity, Execution] = {}
        self.running_execution: Execution | None = None
        # Replayed messages that nbval has not read yet.
        self.unread_messages: deque[dict[str, Any]] = deque()
        self.names: dict[int, str] = {}  # of the first notebook's cells, by number
        self.next_cell = 0, ""  # number and name
        self.suffix = ".java" if kernel_name == "java" else ".py"
        self.remaining_steps: deque[Step] = deque()
        try:
            self.kc.wait_for_ready(timeout=startup_timeout)
            self._ensure_iopub_up()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        super().stop()
        self.workspace.cleanup()

    def set_next_cell(self, number: int, name: str) -> str | None:
        """Set the next cell; return the name of the first notebook's cell with this number, if different."""
        self.next_cell = number, name
        first_name = self.names.setdefault(number, name)
        return first_name if first_name != name else None

    def plan_page(self, notebooks: list[list[CodeCell]]) -> None:
        """Plan the execution of a page, given the cells of its notebooks."""
        self.remaining_steps.extend(plan_steps(notebooks, self.suffix))

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        number, name = self.next_cell
        identity = identify_cell(number, CodeCell(name, cell_input), self.suffix)
        self.unread_messages.clear()
        self._execute_steps_before(identity)
        if execution := self.executions.get(identity):
            self.unread_messages.extend(execution.messages)
            return execution.request
        self.executions[identity] = self._start(cell_input, allow_stdin)
        return self.executions[identity].request

    def _start(self, code: str, allow_stdin: bool | None = False) -> Execution:
        if self.on_gpu:
            for cpu_code, gpu_code in GPU_CODE.items():
                code = code.replace(cpu_code, gpu_code)
        self.running_execution = Execution(super().execute_cell_input(code, allow_stdin))
        return self.running_execution

    def _execute_steps_before(self, identity: Identity) -> None:
        """Execute the planned steps before this cell: other notebooks' cells, and definitions."""
        remaining_cells = [step.identity for step in self.remaining_steps if not step.is_definition]
        if identity not in remaining_cells:
            return
        while True:
            step = self.remaining_steps.popleft()
            if step.identity == identity and not step.is_definition:
                return
            if step.is_definition or step.identity not in self.executions:
                self._execute_step(step)

    def _execute_step(self, step: Step) -> None:
        """Execute a step to its end; an error is reported when nbval reaches the cell."""
        execution = self._start(step.source)
        with suppress(KernelDiedError):
            if not self._wait_for_end(execution, self.cell_timeout):
                self.interrupt()
            elif not step.is_definition:
                self.executions[step.identity] = execution

    def _wait_for_end(self, execution: Execution, seconds: float | None) -> bool:
        """Wait for at most ``seconds``; return whether the execution has ended."""
        try:
            self.await_reply(execution.request, seconds)
            self.await_idle(execution.request, seconds)
        except Empty:
            return False
        return True

    def find_execution(self, number: int, cell: CodeCell) -> Execution | None:
        """Return the execution of a cell of the page, or None."""
        return self.executions.get(identify_cell(number, cell, self.suffix))

    def execute_extra(self, code: str) -> Execution:
        """Execute code that is not a cell.

        Raises KernelDiedError. Raises TimeoutError after the time limit for a cell, when it has interrupted the
        execution, or stopped the kernel if the kernel does not respond.
        """
        if not self.is_alive():
            raise KernelDiedError
        self.unread_messages.clear()
        execution = self._start(code)
        if not self._wait_for_end(execution, self.cell_timeout):
            self.interrupt()
            if not self._wait_for_end(execution, SECONDS_TO_RESPOND):
                self.stop()
            raise TimeoutError
        return execution

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        deadline = time.monotonic() + (timeout or float("inf"))
        while not self.unread_messages:
            try:
                return super().await_reply(msg_id, 1)
            except Empty:
                # A dead kernel never replies.
                if not self.is_alive():
                    raise KernelDiedError from None
                if time.monotonic() > deadline:
                    raise
        return None

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        if stream == "iopub" and self.unread_messages:
            return self.unread_messages.popleft()
        message = super().get_message(stream, timeout)
        if stream == "shell":
            # nbval needs a status, which Java's kernel omits from its kernel_info reply.
            message["content"].setdefault("status", "ok")
        elif (
            self.running_execution
            and message["parent_header"].get("msg_id") == self.running_execution.request
        ):
            self.running_execution.messages.append(message)
        return message
