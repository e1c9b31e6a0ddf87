"""Execute cells in a fresh kernel, and report the cell that failed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import ceil
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode, v4

from tools.run.kernels import ANSI, KernelWorkspace

MAX_PRINTED = 5_000_000  # characters, in all cells together


class ExecutionError(Exception):
    """The failure of the cell at ``index``, which the message describes."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


class _TooMuchPrintedError(Exception):
    pass


class _Client(NotebookClient):
    """An nbclient that limits how much is printed, and leaves Ctrl-C to asyncio.

    nbclient would stop only the notebook that started last; Ctrl-C has to stop all of them.
    """

    num_printed = 0  # characters

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] == "stream":
            self.num_printed += len(msg["content"]["text"])
            if self.num_printed > MAX_PRINTED:
                raise _TooMuchPrintedError
        return super().process_message(msg, cell, cell_index)

    @asynccontextmanager
    async def async_setup_kernel(self, **settings: Any) -> AsyncIterator[None]:
        await self.async_start_new_kernel(**settings)
        await self.async_start_new_kernel_client()
        yield


async def execute(
    sources: list[str],
    kernelspec: NotebookNode,
    limit: float,
    on_start: Callable[[int], None] = lambda _: None,
) -> list[list[NotebookNode]]:
    """Execute the cells, and return the outputs of each. Raise ExecutionError if one fails.

    ``limit`` is in seconds, for all cells together; ``on_start`` is called with the index of each cell that starts.
    """
    cells = [v4.new_code_cell(source) for source in sources]
    started_cells: list[NotebookNode] = []

    def record_start(cell: NotebookNode, cell_index: int) -> None:
        on_start(len(started_cells))
        started_cells.append(cell)

    workspace = KernelWorkspace(kernelspec.name)
    manager = AsyncKernelManager(**workspace.settings)
    client = _Client(
        v4.new_notebook(metadata={"kernelspec": kernelspec}, cells=cells),
        km=manager,
        timeout=None,
        # The defaults are too short for a busy machine; after the second, output would be lost silently.
        startup_timeout=ceil(limit),
        iopub_timeout=ceil(limit),
        record_timing=False,
        coalesce_streams=True,
        on_cell_start=record_start,
    )
    try:
        message = await _execute_all(client, workspace, limit, started_cells)
    finally:
        if await manager.is_alive():
            await manager.shutdown_kernel(now=True)
        await manager.cleanup_resources()
        if client.kc is not None:
            client.kc.stop_channels()
        workspace.cleanup()
    if message:
        raise ExecutionError(max(len(started_cells) - 1, 0), message)
    return [cell.outputs for cell in cells]


async def _execute_all(
    client: _Client, workspace: KernelWorkspace, limit: float, started_cells: list[NotebookNode]
) -> str:
    """Execute all cells; return the error of the cell that started last, or ""."""
    task = asyncio.current_task()
    assert task is not None
    try:
        async with asyncio.timeout(limit) as timer:
            await client.async_execute(cwd=workspace.folder)
    except CellExecutionError as error:
        if client.nb.metadata.kernelspec.language == "python":
            return ANSI.sub("", error.traceback)
        # Java's kernel reports the error only in the cell's output.
        (output,) = (output for output in started_cells[-1].outputs if "traceback" in output)
        return ANSI.sub("", "\n".join(output.traceback))
    except (DeadKernelError, TimeoutError):
        # nbclient reports a cancellation as the kernel's death.
        if task.cancelling() and not timer.expired():
            raise asyncio.CancelledError from None
        if timer.expired():
            return f"over the limit of {limit:g} s for the notebook"
        return "the kernel died"
    except _TooMuchPrintedError:
        return f"it prints more than {MAX_PRINTED:,} characters"
    except (RuntimeError, OSError, NoSuchKernel) as error:
        return f"no kernel started: {error}"
    return ""
