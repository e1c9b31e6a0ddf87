"""The shim's reference, read from the source by sphinx-autoapi: no framework is imported."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from d2l_compat.frameworks import FACES
from tools.site.names import PACKAGE, names

# Of each face what is its own: not what all share, nor a framework's functions under D2L's names.
OWN = {
    f"d2l_compat.{framework.face}": {
        name
        for name, room in names(PACKAGE / framework.face).items()
        if room not in ("common", "tensors")
    }
    for framework in FACES.values()
}


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: object) -> bool:
    """A face's names are documented where users have them, in the face, not in its rooms."""
    face, _, short = name.rpartition(".")
    if face in OWN:  # whose __all__ is computed, which AutoAPI cannot do
        return short not in OWN[face] or obj.is_undoc_member
    is_room = what in ("module", "package") and name.count(".") > 1
    return skip or is_room or name == "d2l_compat.frameworks"  # the project's own table


def setup(app: Sphinx) -> None:
    if (Path(app.srcdir) / "reference.md").exists():  # in one language
        app.setup_extension("sphinx.ext.napoleon")
        app.setup_extension("autoapi.extension")
        app.connect("autoapi-skip-member", _skip)
