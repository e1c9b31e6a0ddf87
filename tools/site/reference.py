"""The shim's reference, read from its source by sphinx-autoapi: no framework is imported, nor read."""

import sys
from pathlib import Path
from typing import Any

from astroid.manager import AstroidManager
from sphinx.application import Sphinx

from d2l_compat.frameworks import FACES
from tools.site.names import PACKAGE, names

SHIM = PACKAGE.name
# Of each face what is its own: not what all share, nor a framework's functions under D2L's names.
OWN = {
    f"{SHIM}.{framework.face}": {
        name
        for name, room in names(PACKAGE / framework.face).items()
        if room not in ("common", "tensors")
    }
    for framework in FACES.values()
}


class _NotRead(set[str]):
    """All modules but those that the reference is made of: to read what a face imports takes longer
    than the rest of the site, and brings nothing but a framework's own words under our names."""

    READ = frozenset({SHIM, *sys.builtin_module_names, "typing", "functools"})

    def __contains__(self, module: object) -> bool:
        return str(module).partition(".")[0] not in self.READ


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: object) -> bool:
    """A face's names are documented where users have them, in the face, not in its rooms."""
    face, _, short = name.rpartition(".")
    if face in OWN:  # whose __all__ is computed, which AutoAPI cannot do
        return short not in OWN[face] or obj.is_undoc_member
    is_room = what in ("module", "package") and name.count(".") > 1
    return skip or is_room or name == f"{SHIM}.frameworks"  # the project's own table


def setup(app: Sphinx) -> None:
    if (Path(app.srcdir) / "reference.md").exists():  # in one language
        AstroidManager.brain["module_denylist"] = _NotRead()
        app.setup_extension("sphinx.ext.napoleon")
        app.setup_extension("autoapi.extension")
        app.connect("autoapi-skip-member", _skip)
