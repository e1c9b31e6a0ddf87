"""Make the links that open a notebook in a browser, and the first cell of every notebook.

The repository's address is written only in pyproject.toml (``Repository``). README's links, the web site's buttons and
all notebooks are made from it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tools.weave.lessons import ROOT, Notebook
from tools.weave.prose import ORIGINAL

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY: str = PROJECT["urls"]["Repository"]
OWNER_AND_NAME = REPOSITORY.removeprefix("https://github.com/")
BRANCH = "main"
FILES_ADDRESS = f"{REPOSITORY}/blob/{BRANCH}"  # on GitHub
# The workflow that releases a version publishes the web site at this address.
SITE_ADDRESS = "https://{}.github.io/{}/".format(*OWNER_AND_NAME.split("/"))

FIRST_FRAMEWORK, *OTHER_FRAMEWORKS = PYTHON_FRAMEWORKS
INSTALL_FROM_CLONE = f"""\
git clone {REPOSITORY} d2l
pip install './d2l[{FIRST_FRAMEWORK}]'     # or {", ".join(OTHER_FRAMEWORKS)}"""
PIP = f"%pip install --quiet --no-deps git+{REPOSITORY}"
# In a notebook that was written for d2l, this replaces the cell that installs d2l.
D2L_FIRST_CELL = f"{PIP}\n%load_ext d2l_compat"

INSTALL = "install"  # the name of a notebook's first code cell

# {text} stands for the comments and messages in the reader's language.
PYTHON_CELL = f"""\
# {{text.install_comment}}
from importlib.util import find_spec

if not find_spec("d2l_compat"):
    {PIP}
import d2l_compat

d2l_compat.install("{{framework}}")"""

# Colab executes this as Python, and displays its first line above "invalid syntax".
JAVA_CELL = f"""\
// {{text.binder_comment}}https://mybinder.org/v2/gh/{OWNER_AND_NAME}/{BRANCH}
// {{text.local_comment}}
//     git clone {REPOSITORY} d2l && make -C d2l FRAMEWORKS=djl lab
try {{{{
    Class.forName("d2l.Heatmaps");
}}}} catch (ClassNotFoundException missing) {{{{
    System.out.println("{{text.missing_classes}}");
}}}}"""


@dataclass(frozen=True)
class FirstCellText:
    install_comment: str
    binder_comment: str
    local_comment: str
    missing_classes: str


FIRST_CELL_TEXTS = {
    "en": FirstCellText(
        install_comment="On Colab, Kaggle and the like this installs what is missing, and changes nothing else.",
        binder_comment="This notebook is in Java, for which Colab has no kernel. Open it on Binder: ",
        local_comment="Or on a machine of your own, with a JDK and Maven:",
        missing_classes="The lesson's own classes are missing: run `make` in the project's folder.",
    ),
    "zh-TW": FirstCellText(
        install_comment="在 Colab、Kaggle 之類的地方，這裡會安裝缺少的套件，其他一概不動。",
        binder_comment="這份筆記本用的是 Java，Colab 沒有它的核心。請到 Binder 上開啟：",
        local_comment="或在自己的電腦上開啟，要先裝好 JDK 與 Maven：",
        missing_classes="找不到這一課自己的類別：請在專案的資料夾裡執行 `make`。",
    ),
}


@dataclass(frozen=True)
class Service:
    """A service that opens a notebook in a browser."""

    name: str
    address: str  # {path} stands for the notebook's path, {quoted} for the percent-encoded path

    def link(self, notebook: Notebook) -> str:
        path = get_project_path(notebook)
        return self.address.format(path=path, quoted=quote(path, safe=""))


def get_project_path(notebook: Notebook) -> str:
    """Return a notebook's path within the project."""
    return notebook.path.relative_to(notebook.lesson.parent.parent).as_posix()


COLAB = Service(
    "Colab",
    f"https://colab.research.google.com/github/{OWNER_AND_NAME}/blob/{BRANCH}/{{path}}",
)
KAGGLE = Service(
    "Kaggle",
    f"https://www.kaggle.com/kernels/welcome?src={FILES_ADDRESS}/{{path}}",
)
BINDER = Service(
    "Binder",
    f"https://mybinder.org/v2/gh/{OWNER_AND_NAME}/{BRANCH}?urlpath=lab%2Ftree%2F{{quoted}}",
)
SOURCE = Service("GitHub", f"{FILES_ADDRESS}/{{path}}")


def get_line_address(file: Path, line: int) -> str:
    """Return the address of a line of one of the project's files."""
    return f"{FILES_ADDRESS}/{file.relative_to(ROOT).as_posix()}#L{line}"


def list_services(framework: str) -> tuple[Service, ...]:
    """Return the services that can run a framework."""
    return tuple(
        service
        for service in (COLAB, KAGGLE, BINDER)
        if service.name in FRAMEWORKS[framework].services
    )


def render_install_cell(notebook: Notebook) -> str:
    """Return the code of a notebook's first cell, or "" for an unknown framework."""
    if notebook.framework not in FRAMEWORKS:
        return ""
    code = PYTHON_CELL if FRAMEWORKS[notebook.framework].is_python else JAVA_CELL
    text = FIRST_CELL_TEXTS.get(notebook.language, FIRST_CELL_TEXTS[ORIGINAL])
    return code.format(framework=notebook.framework, text=text)
