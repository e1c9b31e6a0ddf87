"""The shim's reference, read from the source by sphinx-autoapi: no framework is imported."""

from pathlib import Path

from sphinx.application import Sphinx


def _skip(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool:
    """A face's names are documented where users have them, in the face, not in its modules."""
    return skip or (what in ("module", "package") and name.count(".") > 1)


def setup(app: Sphinx) -> None:
    if (Path(app.srcdir) / "reference.md").exists():  # in one language
        app.setup_extension("sphinx.ext.napoleon")
        app.setup_extension("autoapi.extension")
        app.connect("autoapi-skip-member", _skip)
