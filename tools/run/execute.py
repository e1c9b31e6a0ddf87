"""Executes cells in a fresh kernel, and says which one failed, and how."""

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

from tools.run.kernels import ANSI, Workplace

MOST_PRINTED = 5_000_000  # characters, of all cells together


class ExecutionError(Exception):
    """A cell failed, by its turn (from 0); the text says how."""

    def __init__(self, turn: int, what: str) -> None:
        super().__init__(what)
        self.turn = turn


class _TooMuchError(Exception):
    pass


class _Client(NotebookClient):
    """nbclient, but Ctrl-C is left to asyncio: it means all notebooks, not the one started last.

    And no more is taken than a reader could open.
    """

    printed = 0

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] == "stream":
            self.printed += len(msg["content"]["text"])
            if self.printed > MOST_PRINTED:
                raise _TooMuchError
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
    """What each cell shows. ``limit`` is in seconds, for all; ``on_start`` is told whose turn it is.

    Raises ExecutionError.
    """
    cells = [v4.new_code_cell(source) for source in sources]
    started: list[NotebookNode] = []

    def start(cell: NotebookNode, cell_index: int) -> None:
        on_start(len(started))
        started.append(cell)

    workplace = Workplace(kernelspec.name)
    manager = AsyncKernelManager(**workplace.settings)
    client = _Client(
        v4.new_notebook(metadata={"kernelspec": kernelspec}, cells=cells),
        km=manager,
        timeout=None,
        startup_timeout=ceil(limit),  # or it would end before the limit, on a slow machine
        record_timing=False,
        coalesce_streams=True,
        on_cell_start=start,
    )
    try:
        fault = await _fault(client, workplace, limit, started)
    finally:
        if await manager.is_alive():
            await manager.shutdown_kernel(now=True)
        await manager.cleanup_resources()
        if client.kc is not None:
            client.kc.stop_channels()
        workplace.cleanup()
    if fault:
        raise ExecutionError(max(len(started) - 1, 0), fault)
    return [cell.outputs for cell in cells]


async def _fault(
    client: _Client, workplace: Workplace, limit: float, started: list[NotebookNode]
) -> str:
    """Execute, and say what went wrong with the cell that was started last, or nothing."""
    task = asyncio.current_task()
    assert task is not None
    try:
        async with asyncio.timeout(limit) as timer:
            await client.async_execute(cwd=workplace.folder)
    except CellExecutionError as error:
        # Java's kernel says what is wrong in the cell's output alone.
        (shown,) = (output for output in started[-1].outputs if "traceback" in output)
        is_python = client.nb.metadata.kernelspec.language == "python"
        return ANSI.sub("", error.traceback if is_python else "\n".join(shown.traceback))
    except (DeadKernelError, TimeoutError):
        # nbclient takes whatever ends its waiting for the kernel's death.
        if task.cancelling() and not timer.expired():
            raise asyncio.CancelledError from None
        over = f"over the limit of {limit:g} s for the notebook"
        return over if timer.expired() else "the kernel died"
    except _TooMuchError:
        return f"it prints more than {MOST_PRINTED:,} characters"
    except (RuntimeError, OSError, NoSuchKernel) as error:
        return f"no kernel came up: {error}"
    return ""
