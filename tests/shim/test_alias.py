"""Tests of the alias of ``d2l`` for ``d2l_compat``, by import, by extension and by kernel, and of its removal."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from d2l_compat import kernel
from d2l_compat.frameworks import PYTHON_FRAMEWORKS

UPSTREAM = {
    "__init__.py": "__version__ = '1.0.3'\n",
    "torch.py": "who = 'upstream'\n",
    "caffe.py": "who = 'upstream'\n",
}


def run(code: str, *path: Path) -> str:
    """Return the output of a program in its own process, with these folders first on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Return a folder with another package named d2l."""
    folder = tmp_path / "d2l"
    folder.mkdir()
    for name, text in UPSTREAM.items():
        (folder / name).write_text(text)
    return tmp_path


needs_pytorch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
STATEMENTS = [
    "from d2l import torch as d2l",
    "import d2l.torch as d2l",
    "import d2l.torch; d2l = d2l.torch",
]


@needs_pytorch
def test_every_import_of_d2l_loads_this_package(upstream: Path):
    # PyTorch is imported once, our package each time.
    code = f"""
import sys
import d2l_compat.alias
for folders in [], [{str(upstream)!r}]:
    sys.path[:0] = folders
    for statement in {STATEMENTS!r}:
        d2l_compat.alias.install()
        exec(statement)
        import d2l_compat.torch
        assert d2l is d2l_compat.torch, statement
        assert d2l.__spec__.name == d2l.__name__ == "d2l_compat.torch", d2l.__spec__
        from d2l.torch import MultiHeadAttention
        assert MultiHeadAttention is d2l_compat.torch.MultiHeadAttention
        d2l_compat.alias.remove()
        for name in [name for name in sys.modules if name.startswith("d2l_compat.torch")]:
            del sys.modules[name]
        del d2l_compat.torch
"""
    run(code)


@needs_pytorch
def test_previous_module_is_restored(upstream: Path):
    code = """
import d2l.torch, d2l.caffe
before = d2l, d2l.torch, d2l.caffe
import d2l_compat.alias
from d2l import torch
assert torch.__name__ == "d2l_compat.torch"
d2l_compat.alias.install()  # again
d2l_compat.alias.remove()
import d2l.torch, d2l.caffe
assert (d2l, d2l.torch, d2l.caffe) == before and d2l.torch.who == "upstream"
d2l_compat.alias.remove()  # again
import d2l.caffe
"""
    run(code, upstream)


def test_removed_alias_leaves_no_module():
    code = """
import d2l_compat.alias
import d2l
d2l_compat.alias.remove()
try:
    import d2l.paddle  # upstream, if it is installed, has no such module
except ModuleNotFoundError as error:
    print(error)
"""
    assert "No module named 'd2l" in run(code)


@pytest.mark.parametrize("statement", ["from d2l import caffe", "import d2l.caffe"])
def test_unknown_framework_error_lists_known_ones(upstream: Path, statement: str):
    code = f"""
import d2l_compat.alias
try:
    {statement}
except ImportError as error:
    print(error)
"""
    modules = ", ".join(framework.module for framework in PYTHON_FRAMEWORKS.values())
    assert f"d2l.caffe: d2l_compat stands in for d2l, and has {modules}" in run(code, upstream)


def test_other_imports_are_unchanged():
    code = """
import d2l_compat.alias
try:
    import d2l_but_other
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run(code).strip() == "d2l_but_other"


@pytest.mark.skipif(find_spec("mxnet") is None, reason="MXNet is not installed")
def test_mxnet_may_be_imported_first():
    """Test the order in which D2L's pages on DCGAN and on information theory import."""
    code = """
import d2l_compat.alias, numpy, sys
from mxnet import gluon, np, npx
print(any(name.startswith("d2l_compat.mxnet") for name in sys.modules), hasattr(numpy, "PZERO"))
from d2l import mxnet as d2l
print(np.ones(2).sum(), d2l.arange(3).sum())
"""
    assert run(code).split() == ["False", "False", "2.0", "3.0"]


def test_alias_imports_no_framework():
    code = "import d2l_compat.alias, sys; print(sorted({'torch', 'numpy', 'matplotlib'} & {*sys.modules}))"
    assert run(code).strip() == "[]"


CELLS = [
    "%load_ext d2l_compat",
    "import d2l; print(d2l.__version__ == '1.0.3')",
    "%unload_ext d2l_compat",
]


def run_cells(cells: list[str], manager: KernelManager, folder: Path) -> list[str]:
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
    NotebookClient(notebook, km=manager).execute(cwd=str(folder))
    return ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]


def test_extension_enables_and_disables_alias(upstream: Path):
    cells = [*CELLS, "import d2l; print(d2l.__version__)"]
    printed = run_cells(cells, KernelManager(kernel_name="python3"), upstream)
    assert printed == ["", "False\n", "", "1.0.3\n"]


@needs_pytorch
def test_notebook_with_d2l_kernel_needs_no_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    kernel.main([])
    specs = KernelSpecManager(kernel_dirs=[str(tmp_path / "share" / "jupyter" / "kernels")])
    assert specs.get_kernel_spec("d2l").display_name == "Python (d2l)"
    assert 'Installed "Python (d2l)"' in capsys.readouterr().out
    manager = KernelManager(kernel_name="d2l", kernel_spec_manager=specs)
    cells = ["from d2l import torch as d2l\nprint(d2l.__name__)"]
    assert run_cells(cells, manager, tmp_path) == ["d2l_compat.torch\n"]
