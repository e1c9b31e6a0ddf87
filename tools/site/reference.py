"""The shim's reference, read from its source by sphinx-autoapi: no framework is imported, nor read.

That of the classes for Java is one page more (tools/site/java.py).
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

from astroid.manager import AstroidManager
from astroid.nodes import AnnAssign, Call, If, Module
from docutils import nodes
from jinja2 import Environment
from sphinx.application import Sphinx

from d2l_compat.frameworks import FACES
from tools.site.names import PACKAGE, names
from tools.weave.launch import in_repository

SHIM = PACKAGE.name
COMMON = {name for name, room in names(PACKAGE / "torch").items() if room == "common"}
# Of each face what is its own: not what all share, nor a framework's functions under D2L's names.
OWN = {
    f"{SHIM}.{framework.face}": {
        name
        for name, room in names(PACKAGE / framework.face).items()
        if room not in ("common", "tensors")
    }
    for framework in FACES.values()
}
# What the shim alone calls so, and what its readers know it as.
KNOWN_AS = {
    f"{SHIM}._shared.data.loader.Loader": "collections.abc.Iterable[tuple[Any, ...]]",
    f"{SHIM}.jax._arrays.Array": "jax.Array | numpy.ndarray",
    f"{SHIM}.tensorflow._arrays.Array": "tensorflow.Tensor | numpy.ndarray",
    f"{SHIM}.tensorflow._keras.keras": "keras",
    "plot.COLORS": "...",
    "plot.STYLES": "...",
}
PAGES = f"reference/{SHIM}/"
JAVA = "# d2l (Java)\n\n```{java-package}\n```\n"


class _NotRead(set[str]):
    """All modules but those that the reference is made of: to read what a face imports takes longer
    than the rest of the site, and brings nothing but a framework's own words under our names."""

    READ = frozenset({SHIM, *sys.builtin_module_names, "typing", "functools"})

    def __contains__(self, module: object) -> bool:
        return str(module).partition(".")[0] not in self.READ


def _with_areas(face: Module) -> Module:
    """A face imports its areas for type checkers alone, and there AutoAPI does not look, nor at what else there may be."""
    for node in [each for each in face.body if isinstance(each, If)]:
        if node.test.as_string() == "TYPE_CHECKING":
            found = node.orelse or node.body
            for each in found:
                each.parent = face
            place = face.body.index(node)
            face.body[place : place + 1] = found
    return face


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: object) -> bool:
    """A face's names are documented where users have them, in the face, not in its rooms."""
    above, _, short = name.rpartition(".")
    if above in OWN:  # whose __all__ is computed, which AutoAPI cannot do
        return short not in OWN[above] or obj.is_undoc_member
    if short == "__call__":  # Flax's and MLX's layers have no other name for it
        skip = obj.is_undoc_member
    if obj.inherited:
        return skip or not _is_new(above, short)
    is_room = what in ("module", "package") and name.count(".") > 1
    return skip or is_room or name == f"{SHIM}.frameworks"  # the project's own table


def _given(class_: Any) -> str:
    """What a class is made with."""
    init = class_.constructor
    if init and init.obj.get("inherited_from", {}).get("name") != "CheckedModule":
        return class_.args
    return ", ".join(_fields(class_))


def _fields(class_: Any) -> list[str]:
    """Flax's layers are dataclasses, made with their fields: those of the classes above come first, those that go by
    keyword last."""
    types = {each["name"]: each.get("annotation") for each in class_.obj["children"]}
    face, _, name = class_.id.rpartition(".")
    layer = _definition(face, name)
    in_order: list[str] = []
    by_keyword: list[str] = []
    for owner in reversed([layer, *layer.ancestors()]):
        fields = in_order
        for part in owner.body if owner.root().name.startswith(face) else ():
            if not isinstance(part, AnnAssign) or "ClassVar" in part.annotation.as_string():
                continue
            field, default = part.target.name, part.value
            options = {}
            if isinstance(default, Call):  # field(default=..., kw_only=True)
                options = {option.arg: option.value for option in default.keywords}
                default = options.get("default")
            if field == "_":  # KW_ONLY: so do all that follow
                fields = by_keyword
                continue
            shown = f"{field}: {types[field]}" + (f" = {default.as_string()}" if default else "")
            (by_keyword if "kw_only" in options else fields).append(shown)
    return in_order + ["*"] * bool(by_keyword) + by_keyword


def _add_filters(templates: Environment) -> None:
    templates.filters["given"] = _given


def _is_new(class_: str, member: str) -> bool:
    """Of a class's inherited members, one that no class above it has which readers know: they meet it here."""
    face, _, name = class_.rpartition(".")
    if face not in OWN:
        return False
    known = [
        each
        for each in _definition(face, name).ancestors()
        if each.name in COMMON or not each.root().name.startswith(f"{SHIM}._shared.")
    ]
    return not any(member in (method.name for method in each.methods()) for each in known)


@cache
def _definition(module: str, name: str) -> Any:
    """The syntax tree of a name, or of a class's member, wherever it comes from."""
    found, *members = name.split(".")
    definition = next(AstroidManager().ast_from_module_name(module).igetattr(found))
    for member in members:
        definition = definition.getattr(member)[0]
    return definition


def _source(domain: str, name: dict[str, str]) -> str | None:
    """Where sphinx.ext.linkcode leads a reader; None of what a module says of itself."""
    if domain != "py" or not name["fullname"]:
        return None
    definition = _definition(name["module"], name["fullname"])
    return in_repository(Path(definition.root().file), definition.fromlineno)  # not a decorator's


def _in_known_names(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith(PAGES):
        for name, known in KNOWN_AS.items():
            source[0] = source[0].replace(name, known)


def _say_it_is_english(app: Sphinx, page: nodes.document) -> None:
    """What docstrings say, to a screen reader that reads a page in another language."""
    if app.env.docname.startswith(PAGES) and app.config.language != "en":
        for paragraph in page.findall(nodes.paragraph):
            paragraph["classes"].append("language-en")


def _add_java(app: Sphinx) -> None:
    file = Path(app.srcdir, PAGES, "java", "index.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(JAVA, encoding="utf-8")


def setup(app: Sphinx) -> None:
    if not (Path(app.srcdir) / "reference.md").exists():
        return
    AstroidManager.brain["module_denylist"] = _NotRead()
    told = {*OWN, f"{SHIM}.tensorflow._keras"}  # to type checkers
    AstroidManager().register_transform(Module, _with_areas, lambda module: module.name in told)
    for extension in (
        "sphinx.ext.napoleon",
        "sphinx.ext.linkcode",
        "autoapi.extension",
        "tools.site.java",
    ):
        app.setup_extension(extension)
    app.config.autoapi_prepare_jinja_env = _add_filters
    app.config.linkcode_resolve = _source
    app.connect("autoapi-skip-member", _skip)
    app.connect("builder-inited", _add_java)
    app.connect("source-read", _in_known_names)
    app.connect("doctree-read", _say_it_is_english)
