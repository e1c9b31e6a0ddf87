"""tools/changed/imports.py: which of the project's files a program uses, found without running it."""

from pathlib import Path

import pytest

from tools.changed.imports import is_anothers, used, used_by_code
from tools.weave.lessons import ROOT

READS = ()

FILES = {
    "conftest.py": 'pytest_plugins = ["tools.plugin"]\n',
    "d2l_compat/__init__.py": "",
    "d2l_compat/alone.py": "",
    "d2l_compat/shared/__init__.py": "",
    "d2l_compat/shared/plot.py": "import numpy\n",
    "d2l_compat/shared/mxnet_numpy.py": "",
    "d2l_compat/torch/__init__.py": "from d2l_compat.torch.layers import *\n",
    "d2l_compat/torch/layers.py": "def later():\n    from ..shared import plot\n",
    "d2l_compat/jax/__init__.py": "from . import layers\n",
    "d2l_compat/jax/layers.py": "",
    "tests/__init__.py": "",
    "tests/adapters/__init__.py": "",
    "tests/adapters/common.py": "",
    "tests/adapters/pytorch.py": "import d2l_compat.torch\n",
    "tests/adapters/jax.py": "import d2l_compat.jax\n",
    "tools/__init__.py": "",
    "tools/plugin.py": "",
}
TORCH = {"", "torch", "torch.layers", "shared", "shared.plot"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def shim(files: set[Path], root: Path) -> set[str]:
    """The shim's modules among them, by their names within it."""
    names = {".".join(file.relative_to(root).with_suffix("").parts) for file in files}
    ours = {name.removesuffix(".__init__") for name in names if name.startswith("d2l_compat")}
    return {name.removeprefix("d2l_compat").removeprefix(".") for name in ours}


@pytest.mark.parametrize(
    "code",
    [
        "import d2l_compat.torch",
        "import d2l_compat.torch as d2l",
        "from d2l_compat import torch as d2l",
        "from d2l import torch as d2l",
        "if True:\n    def f():\n        import d2l_compat.torch.layers",
        "from importlib import import_module\nimport_module('d2l_compat.torch')",
        "import importlib\nimportlib.import_module('d2l_compat.torch')",
        "__import__('d2l_compat.torch')",
        "import pytest\npytest.importorskip('d2l_compat.torch')",
        "%pip install x\nif 1:\n    !ls\nfrom d2l_compat import torch",
    ],
)
def test_an_import_counts_however_it_is_written_with_all_that_it_imports(root, code):
    assert shim(used_by_code(code, "pytorch", root), root) == TORCH


def test_what_is_not_imported_does_not_count(root):
    assert used_by_code("import numpy, d2l_compatible\n'd2l_compat.jax'", root=root) == set()
    assert shim(used_by_code("from d2l_compat import alone", root=root), root) == {"", "alone"}


@pytest.mark.parametrize(
    "code",
    [
        "import_module(name)",
        "import_module('.layers', package)",
        "import_module('d2l_compat.' + name)",
        "__import__(name)",
        "no Python",
    ],
)
def test_where_a_name_cannot_be_known_any_module_may_be_imported(root, code):
    everything = {root / name for name in FILES}
    assert used_by_code(code, root=root) == everything
    own = {root / name for name in FILES if "torch" not in name}
    assert used_by_code(code, "jax", root) == own - {root / "d2l_compat/shared/mxnet_numpy.py"}


@pytest.mark.parametrize("text", [b"import_module(name)", b"import (", b"\xff"])
def test_what_cannot_be_known_within_the_shim_is_of_the_shim(root, text):
    (root / "d2l_compat" / "alone.py").write_bytes(text)
    files = used([root / "d2l_compat" / "alone.py"], root=root)
    assert files == {root / name for name in FILES if name.startswith("d2l_compat")}


def test_of_a_name_that_is_known_in_part_the_rest_may_be_any_but_another_frameworks(root):
    code = "import_module(f'tests.adapters.{framework}')"
    names = {"tests/__init__.py", "tests/adapters/__init__.py", "tests/adapters/common.py"}
    files = used_by_code(code, "jax", root)
    assert {f for f in files if "d2l_compat" not in f.parts} == {
        root / name for name in {*names, "tests/adapters/jax.py"}
    }
    assert {"jax", "torch"} <= shim(used_by_code(code, root=root), root)


def test_another_frameworks_module_counts_where_it_is_named(root):
    code = "from d2l_compat import jax\nfrom d2l_compat.shared import mxnet_numpy"
    assert shim(used_by_code(code, "jax", root), root) == {
        *("", "jax", "jax.layers", "shared", "shared.mxnet_numpy")
    }


def test_a_comment_says_what_a_computed_name_is(root):
    code = "import_module(name)  # imports: a framework"
    assert used_by_code(code, root=root) == set()


def test_what_a_package_names_that_lies_in_it_counts_with_it(root):
    letters, other = (
        root / "d2l_compat" / "shared" / name for name in ("letters.otf", "other.otf")
    )
    letters.touch()
    other.touch()
    (letters.parent / "__init__.py").write_text('Path(__file__).parent / "letters.otf"')
    assert other not in used_by_code("from d2l_compat.shared import plot", root=root)
    assert letters in used_by_code("from d2l_compat.shared import plot", root=root)
    assert letters not in used_by_code("from d2l_compat import alone", root=root)


def test_plugins_of_pytest_are_imported(root):
    files = used([root / "conftest.py"], root=root)
    assert files == {
        root / name for name in ("conftest.py", "tools/__init__.py", "tools/plugin.py")
    }


@pytest.mark.parametrize(
    ("path", "is_anothers_of_jax"),
    [
        ("d2l_compat/jax/layers.py", False),
        ("d2l_compat/torch/layers.py", True),
        ("d2l_compat/java/pom.xml", True),
        ("lessons/tiny/code.jax.py", False),
        ("lessons/tiny/code.pytorch.py", True),
        ("tests/faces/test_mxnet_only.py", True),
        ("tests/faces/test_jax_only.py", False),
        ("tests/faces/test_plots.py", False),
    ],
)
def test_a_file_says_by_its_name_whose_it_is(path, is_anothers_of_jax):
    assert is_anothers(path, "jax") == is_anothers_of_jax
    assert not is_anothers(path, "")


def test_of_this_project_a_page_uses_its_own_face_and_no_tools():
    files = {file.relative_to(ROOT) for file in used_by_code("from d2l_compat import jax", "jax")}
    assert Path("d2l_compat/jax/attention.py") in files
    assert Path("d2l_compat/_shared/plot.py") in files
    assert {file.parts[0] for file in files} == {"d2l_compat"}
    assert {file.parts[1] for file in files if len(file.parts) > 2} == {"_shared", "jax"}
