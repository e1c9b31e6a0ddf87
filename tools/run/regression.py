"""Extend nbval's pytest plugin (see conftest.py).

* Outputs are compared by tools/compare/outputs.py; if two figures differ, an image of both is saved.
* The notebooks of a page share a kernel (tools/run/page_kernel.py) and a worker of xdist
  (tools/run/schedule.py).
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import nbformat
import nbval.plugin
import pytest
from jupyter_client.kernelspec import NoSuchKernel
from nbformat import ValidationError
from nbval.plugin import IPyNbCell, IPyNbFile

from tools.compare.figures import PNG, SVG, compare_figures
from tools.compare.numbers import Tolerance, read_tolerance
from tools.compare.outputs import compare_outputs
from tools.compare.pixels import (
    Array,
    blend_on_white,
    compare_png_with_svg,
    compare_pngs,
    decode_png,
    draw_comparison,
    render,
)
from tools.run.kernels import neutral_environment
from tools.run.page_kernel import GPU_ENVIRONMENT, KernelDiedError, PageKernel
from tools.run.schedule import Stopwatch
from tools.run.sharing import CodeCell, get_page_key

IMAGES = Path("build", "figures")  # of figures that differ

REMAINING = pytest.StashKey[Counter[tuple[str, ...]]]()  # number of unfinished notebooks, by page
KERNELS = pytest.StashKey[dict[tuple[str, ...], PageKernel]]()  # by page


class NotebookFile(IPyNbFile):
    def collect(self) -> Iterator["NotebookCell"]:
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
            reason = f"{type(error).__name__}: {error}"
            raise self.CollectError(f"{self.path}: not a notebook: {reason:.200}") from None
        for cell in cells:
            arguments = {"cell_num": cell.cell_num, "cell": cell.cell, "options": cell.options}
            cell = NotebookCell.from_parent(self, name=cell.name, **arguments)
            cell.add_marker(pytest.mark.random_order(disabled=True))  # cells depend on each other
            yield cell

    def setup(self) -> None:
        kernels = self.config.stash[KERNELS]
        if get_page_key(self.path) in kernels:
            self.kernel = kernels[get_page_key(self.path)]
            self.setup_sanitize_files()
            return
        try:
            super().setup()
        except (NoSuchKernel, RuntimeError, OSError) as error:
            pytest.fail(f"no kernel started: {error}", pytrace=False)
        kernels[get_page_key(self.path)] = self.kernel
        self.kernel.plan_page(self.list_page_cells())

    def list_page_cells(self) -> list[list[CodeCell]]:
        """Return the cells of each notebook of the page that is tested in this session."""
        notebooks: dict[Path, list[CodeCell]] = {}
        for item in self.session.items:
            if isinstance(item, NotebookCell) and get_page_key(item.path) == get_page_key(
                self.path
            ):
                notebooks.setdefault(item.path, []).append(item.code_cell)
        return list(notebooks.values())

    def teardown(self) -> None:
        remaining = self.config.stash[REMAINING]
        remaining[get_page_key(self.path)] -= 1
        if remaining[get_page_key(self.path)] <= 0:
            self.config.stash[KERNELS].pop(get_page_key(self.path), None)
            super().teardown()


class NotebookCell(IPyNbCell):
    @property
    def code_cell(self) -> CodeCell:
        return CodeCell(self.cell.get("id", self.name), self.cell.source)

    def runtest(self) -> None:
        name = self.code_cell.name
        if expected := self.parent.kernel.set_next_cell(self.cell_num, name):
            self.raise_cell_error(f"cell {name!r} instead of another language's cell {expected!r}")
        try:
            super().runtest()
        except KernelDiedError:
            self.parent.timed_out = True  # so that nbval does not execute the cells below
            self.raise_cell_error("The kernel died")

    def compare_outputs(
        self, fresh: list[Any], stored: list[Any], skip_compare: Any = None
    ) -> bool:
        self.image.unlink(missing_ok=True)
        new_kinds, old_kinds = list_kinds(fresh), list_kinds(stored)
        # nbval compares each kind separately, and would not notice a change of their order.
        if new_kinds != old_kinds and sorted(new_kinds) == sorted(old_kinds):
            message = f"outputs in another order: {new_kinds} instead of {old_kinds}"
            self.comparison_traceback = [message]
            return False
        # nbval would skip images; here they are replaced by texts that can be compared.
        skip_compare = skip_compare or self.parent.skip_compare
        skip_compare = [key for key in skip_compare if not key.startswith("image/")]
        return super().compare_outputs(*self.unify_outputs(fresh, stored), skip_compare)

    @property
    def image(self) -> Path:
        name = "-".join((*self.path.with_suffix("").parts[-3:], self.cell.get("id", self.name)))
        return self.config.rootpath / IMAGES / f"{name}.png"

    def unify_outputs(self, fresh: list[Any], stored: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return both outputs, made equal where they agree; replace figures that differ by messages."""
        if len(fresh) != len(stored):
            return [*map(remove_png, fresh)], [*map(remove_png, stored)]
        tolerance = read_tolerance(self.cell.metadata.get("tags", []))
        unified: tuple[list[Any], list[Any]] = [], []
        for pair in zip(fresh, stored, strict=True):
            new, old = (dict(output) for output in pair)
            if isinstance(new.get("text"), str) and isinstance(old.get("text"), str):
                new["text"] = unify_texts(new["text"], old["text"], tolerance)
            new["data"], old["data"] = dict(new.get("data", {})), dict(old.get("data", {}))
            if SVG in new["data"] and SVG in old["data"]:
                self.unify_figures(new["data"], old["data"], tolerance)
            elif SVG in new["data"] or SVG in old["data"]:
                # Report only the missing SVG: its PNG is missing, too.
                new["data"].pop(PNG, None)
                old["data"].pop(PNG, None)
            elif PNG in new["data"] and PNG in old["data"]:
                self.unify_pngs(new["data"], old["data"])
            for mime in new["data"].keys() & old["data"].keys():
                new_text, old_text = new["data"][mime], old["data"][mime]
                if isinstance(new_text, str) and isinstance(old_text, str):
                    new["data"][mime] = unify_texts(new_text, old_text, tolerance)
            for outputs, output in zip(unified, (new, old), strict=True):
                outputs.append(nbformat.from_dict(output))
        return unified

    def unify_figures(
        self, fresh: dict[str, str], stored: dict[str, str], tolerance: Tolerance
    ) -> None:
        """Compare two SVGs, and the stored PNG with its SVG; replace them by the result."""
        difference = compare_figures(stored[SVG], fresh[SVG], tolerance)
        if difference:
            message = self.save_comparison(stored[SVG], fresh[SVG], render)
            difference = f"the fresh figure differs: {difference}\n{message}"
        else:
            difference = compare_png_with_svg(stored.get(PNG, ""), stored[SVG])
        fresh[SVG], stored[SVG] = (difference, "the stored one") if difference else ("", "")
        fresh[PNG] = stored[PNG] = ""

    def unify_pngs(self, fresh: dict[str, str], stored: dict[str, str]) -> None:
        """Compare two PNGs without SVGs; replace them by the result."""
        difference = compare_pngs(stored[PNG], fresh[PNG])
        if difference:
            message = self.save_comparison(
                stored[PNG], fresh[PNG], lambda png: blend_on_white(decode_png(png))
            )
            difference = f"the fresh image differs: {difference}\n{message}"
        fresh[PNG], stored[PNG] = (difference, "the stored one") if difference else ("", "")

    def save_comparison(self, stored: str, fresh: str, to_pixels: Callable[[str], Array]) -> str:
        """Save an image of two figures that differ; return a message with its path."""
        try:
            self.image.parent.mkdir(parents=True, exist_ok=True)
            self.image.write_bytes(draw_comparison(to_pixels(stored), to_pixels(fresh)))
        except (OSError, ValueError) as error:
            return f"no image could be saved: {error}"
        return f"see {self.image}"


def list_kinds(outputs: list[Any]) -> list[str]:
    """Return the type of each output, and the stream's name if it is printed."""
    return [f"{output.output_type} {output.get('name', '')}".strip() for output in outputs]


def remove_png(output: Any) -> Any:
    """Return an output without the PNG beside an SVG: it is made from the SVG, and kernels do not send it."""
    if SVG not in output.get("data", {}):
        return output
    data = {kind: text for kind, text in output.data.items() if kind != PNG}
    return nbformat.from_dict({**output, "data": data})


def unify_texts(fresh: str, stored: str, tolerance: Tolerance) -> str:
    """Return the stored text if the fresh one agrees with it, otherwise the fresh one."""
    return stored if compare_outputs(stored, fresh, tolerance) is None else fresh


# nbval creates its kernels with this class.
nbval.plugin.RunningKernel = PageKernel


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", choices=["cpu", "gpu"], default="cpu", help="where the notebooks compute"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[KERNELS] = {}
    PageKernel.on_gpu = config.option.device == "gpu"
    PageKernel.cell_timeout = config.option.nbval_cell_timeout
    # xdist's workers inherit the environment.
    is_nbval = config.option.nbval or config.option.nbval_lax
    if is_nbval and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch(config))
        environment = ExitStack()
        environment.enter_context(neutral_environment(GPU_ENVIRONMENT if PageKernel.on_gpu else {}))
        config.add_cleanup(environment.close)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[Any], list[Any]]:
    files = yield
    return [
        NotebookFile.from_parent(parent, path=file_path) if isinstance(file, IPyNbFile) else file
        for file in files
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    notebooks = {item.path for item in session.items if isinstance(item, NotebookCell)}
    session.config.stash[REMAINING] = Counter(map(get_page_key, notebooks))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for kernel in session.config.stash[KERNELS].values():
        kernel.stop()
