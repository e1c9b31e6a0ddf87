"""What nbval is taught (conftest.py): a pytest plugin on top of its own.

* Outputs are compared as tools/compare/agreement.py says; a figure that differs is kept as a picture.
* Notebooks that differ in their language alone share a kernel (tools/run/page_kernel.py), and a worker
  of xdist (tools/run/schedule.py).
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

from tools.compare.agreement import difference
from tools.compare.figures import PNG, SVG, figure_difference
from tools.compare.numbers import Tolerance, tolerance
from tools.compare.pictures import (
    Array,
    on_white,
    picture,
    picture_fault,
    pixels,
    png_difference,
    render,
)
from tools.run.kernels import neutral_environment
from tools.run.page_kernel import GPU_ENVIRONMENT, KernelDiedError, PageKernel
from tools.run.schedule import Stopwatch
from tools.run.sharing import Cell as SharedCell
from tools.run.sharing import page_of

PICTURES = Path("build", "figures")  # where those that differ are kept

TO_COME = pytest.StashKey[Counter[tuple[str, ...]]]()  # notebooks, by page
KERNELS = pytest.StashKey[dict[tuple[str, ...], PageKernel]]()


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
        if page_of(self.path) in kernels:
            self.kernel = kernels[page_of(self.path)]
            self.setup_sanitize_files()
            return
        try:
            super().setup()
        except (NoSuchKernel, RuntimeError, OSError) as error:
            pytest.fail(f"no kernel came up: {error}", pytrace=False)
        kernels[page_of(self.path)] = self.kernel
        self.kernel.prepare(self.cells_of_page())

    def cells_of_page(self) -> list[list[SharedCell]]:
        """Of this notebook, and of those in other languages that are checked after it."""
        notebooks: dict[Path, list[SharedCell]] = {}
        for item in self.session.items:
            if isinstance(item, Cell) and page_of(item.path) == page_of(self.path):
                notebooks.setdefault(item.path, []).append(item.shared)
        return list(notebooks.values())

    def teardown(self) -> None:
        to_come = self.config.stash[TO_COME]
        to_come[page_of(self.path)] -= 1
        if to_come[page_of(self.path)] <= 0:
            self.config.stash[KERNELS].pop(page_of(self.path), None)
            super().teardown()


class Cell(IPyNbCell):
    @property
    def shared(self) -> SharedCell:
        return SharedCell(self.cell.get("id", self.name), self.cell.source)

    def runtest(self) -> None:
        name = self.shared.name
        if expected := self.parent.kernel.expect(self.cell_num, name):
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
        # nbval would skip pictures. Once they are settled, they can be compared as all else.
        skipped = skip_compare or self.parent.skip_compare
        skipped = [key for key in skipped if not key.startswith("image/")]
        return super().compare_outputs(*self.settled(fresh, stored), skipped)

    @property
    def picture(self) -> Path:
        name = "-".join((*self.path.with_suffix("").parts[-3:], self.cell.get("id", self.name)))
        return self.config.rootpath / PICTURES / f"{name}.png"

    def settled(self, fresh: list[Any], stored: list[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs, made one where they agree, and speaking where they are figures."""
        if len(fresh) != len(stored):
            return [*map(without_png, fresh)], [*map(without_png, stored)]
        allowed = tolerance(self.cell.metadata.get("tags", []))
        settled: tuple[list[Any], list[Any]] = [], []
        for pair in zip(fresh, stored, strict=True):
            new, old = (dict(output) for output in pair)
            if isinstance(new.get("text"), str) and isinstance(old.get("text"), str):
                new["text"], old["text"] = settle(new["text"], old["text"], allowed)
            new["data"], old["data"] = dict(new.get("data", {})), dict(old.get("data", {}))
            if SVG in new["data"] and SVG in old["data"]:
                self.settle_figures(new["data"], old["data"], allowed)
            elif SVG in new["data"] or SVG in old["data"]:  # one was lost, and with it its PNG
                new["data"].pop(PNG, None)
                old["data"].pop(PNG, None)
            elif PNG in new["data"] and PNG in old["data"]:
                self.settle_pictures(new["data"], old["data"])
            for mime in new["data"].keys() & old["data"].keys():
                texts = new["data"][mime], old["data"][mime]
                if all(isinstance(text, str) for text in texts):
                    new["data"][mime], old["data"][mime] = settle(*texts, allowed)
            for outputs, output in zip(settled, (new, old), strict=True):
                outputs.append(nbformat.from_dict(output))
        return settled

    def settle_figures(
        self, fresh: dict[str, str], stored: dict[str, str], allowed: Tolerance
    ) -> None:
        """The drawing, and the PNG that was made from the stored one; the words are left."""
        fault = figure_difference(stored[SVG], fresh[SVG], allowed)
        if fault:
            kept = self.draw(stored[SVG], fresh[SVG], render)
            fault = f"the fresh figure differs: {fault}\n{kept}"
        else:
            fault = picture_fault(stored.get(PNG, ""), stored[SVG])
        fresh[SVG], stored[SVG] = (fault, "the stored one") if fault else ("", "")
        fresh[PNG] = stored[PNG] = ""

    def settle_pictures(self, fresh: dict[str, str], stored: dict[str, str]) -> None:
        """The PNG that has no SVG beside it; the words are left."""
        fault = png_difference(stored[PNG], fresh[PNG])
        if fault:
            kept = self.draw(stored[PNG], fresh[PNG], lambda png: on_white(pixels(png)))
            fault = f"the fresh picture differs: {fault}\n{kept}"
        fresh[PNG], stored[PNG] = (fault, "the stored one") if fault else ("", "")

    def draw(self, stored: str, fresh: str, render: Callable[[str], Array]) -> str:
        """Keep a picture of two figures that differ, which ``render`` turns into pixels on white; say where."""
        try:
            self.picture.parent.mkdir(parents=True, exist_ok=True)
            self.picture.write_bytes(picture(render(stored), render(fresh)))
        except (OSError, ValueError) as error:
            return f"no picture of it: {error}"
        return f"see {self.picture}"


def without_png(output: Any) -> Any:
    """Leave out the PNG beside an SVG: it was made from the SVG, and no kernel sends it."""
    if SVG not in output.get("data", {}):
        return output
    data = {kind: text for kind, text in output.data.items() if kind != PNG}
    return nbformat.from_dict({**output, "data": data})


def settle(fresh: str, stored: str, allowed: Tolerance) -> tuple[str, str]:
    """Two texts, made one where they agree."""
    agree = difference(stored, fresh, allowed) is None
    return (stored, stored) if agree else (fresh, stored)


nbval.plugin.RunningKernel = PageKernel  # under this name nbval starts one


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=["cpu", "gpu"], default="cpu", help="of the notebooks")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[KERNELS] = {}
    PageKernel.on_gpu = config.option.device == "gpu"
    PageKernel.cell_timeout = config.option.nbval_cell_timeout
    # xdist's workers have inherited it.
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
    return [
        Notebook.from_parent(parent, path=file_path) if isinstance(file, IPyNbFile) else file
        for file in (yield)
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    notebooks = {item.path for item in session.items if isinstance(item, Cell)}
    session.config.stash[TO_COME] = Counter(map(page_of, notebooks))


def pytest_sessionfinish(session: pytest.Session) -> None:
    for kernel in session.config.stash[KERNELS].values():
        kernel.stop()
