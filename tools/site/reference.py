"""Configure sphinx-autoapi, which makes the shim's reference from its source without importing a framework.

The Java classes have a separate page (tools/site/java.py).
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

from astroid.manager import AstroidManager
from astroid.nodes import AnnAssign, Assign, Call, FunctionDef, If, Module
from docutils import nodes
from jinja2 import Environment
from sphinx.application import Sphinx

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.site.names import PACKAGE, read_names
from tools.weave.launch import get_line_address

SHIM = PACKAGE.name
COMMON = {name for name, module in read_names(PACKAGE / "torch").items() if module == "common"}


def _list_own_names(framework_package: str) -> set[str]:
    """Return a package's names, except those that all packages share and D2L's names of framework functions."""
    modules = read_names(PACKAGE / framework_package)
    return {name for name, module in modules.items() if module not in ("common", "tensors")}


OWN_NAMES = {
    f"{SHIM}.{each.module}": _list_own_names(each.module) for each in PYTHON_FRAMEWORKS.values()
}
# Private names that occur in signatures, and the public names that replace them.
PUBLIC_NAMES = {
    f"{SHIM}._shared.block_layers.TransformerBlock": "TransformerBlock",
    f"{SHIM}._shared.cache.Slots": "Slots",
    f"{SHIM}._shared.linear_attention.Decay": "float | collections.abc.Sequence[float]",
    f"{SHIM}._shared.linear_attention.LinearState": "LinearState",
    f"{SHIM}._shared.data.text.Vocab": "Vocab",
    f"{SHIM}._shared.data.loader.Loader": "collections.abc.Iterable[tuple[Any, ...]]",
    f"{SHIM}.jax._arrays.Array": "jax.Array | numpy.ndarray",
    f"{SHIM}.tensorflow._arrays.Array": "tensorflow.Tensor | numpy.ndarray",
    f"{SHIM}.tensorflow._keras.keras": "keras",
    "jnp.float32": "jax.numpy.float32",
    "plot.COLORS": "...",
    "plot.STYLES": "...",
}
PAGES = f"reference/{SHIM}/"
JAVA = "# d2l (Java)\n\n```{java-package}\n```\n"


class _SkippedModules(set[str]):
    """All modules that astroid must not read.

    Reading the frameworks would take longer than building the rest of the site, and our names would get the
    frameworks' docstrings.
    """

    NEEDED = frozenset({SHIM, *sys.builtin_module_names, "typing", "functools"})

    def __contains__(self, module: object) -> bool:
        return str(module).partition(".")[0] not in self.NEEDED


def _merge_typed_imports(package: Module) -> Module:
    """Replace ``if TYPE_CHECKING:`` by its content, which AutoAPI would not read.

    A package imports some of its modules for type checkers only, and loads them on first use.
    """
    for node in [each for each in package.body if isinstance(each, If)]:
        if node.test.as_string() == "TYPE_CHECKING":
            content = node.orelse or node.body
            for each in content:
                each.parent = package
            position = package.body.index(node)
            package.body[position : position + 1] = content
    return package


def _show_made_functions(module: Module) -> Module:
    """Replace ``name = shared.make_name(...)`` by the function that it makes, which AutoAPI would not show."""
    for position, node in enumerate(module.body):
        if not isinstance(node, Assign) or not isinstance(node.value, Call):
            continue
        name, make = node.targets[0].as_string(), node.value.func
        if make.as_string().endswith(f".make_{name}"):
            maker = next(make.infer())
            module.body[position] = next(
                each for each in maker.body if isinstance(each, FunctionDef) and each.name == name
            )
    return module


def _skip_member(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: object) -> bool:
    """Return whether to skip a name: it is shown in a framework's package, where users find it, not in a module."""
    parent, _, short_name = name.rpartition(".")
    if parent in OWN_NAMES:  # AutoAPI cannot read the package's __all__, which is computed
        return short_name not in OWN_NAMES[parent] or obj.is_undoc_member
    if short_name == "__call__":  # the forward method of Flax's and MLX's layers
        skip = obj.is_undoc_member
    if obj.inherited:
        return skip or not _is_new_member(parent, short_name)
    is_inner_module = what in ("module", "package") and name.count(".") > 1
    return skip or is_inner_module or name == f"{SHIM}.frameworks"  # not for users


def _list_arguments(class_: Any) -> str:
    """Return the arguments of a class's constructor as its signature displays them."""
    init = class_.constructor
    if init and init.obj.get("inherited_from", {}).get("name") != "CheckedModule":
        return class_.args
    return ", ".join(_list_fields(class_))


def _list_fields(class_: Any) -> list[str]:
    """Return the arguments of a Flax layer, which is a dataclass.

    The fields of its base classes come first, keyword-only fields last.
    """
    types = {each["name"]: each.get("annotation") for each in class_.obj["children"]}
    package, _, name = class_.id.rpartition(".")
    layer = _find_definition(package, name)
    positional: list[str] = []
    keyword_only: list[str] = []
    for owner in reversed([layer, *layer.ancestors()]):
        fields = positional
        for part in owner.body if owner.root().name.startswith(package) else ():
            if not isinstance(part, AnnAssign) or "ClassVar" in part.annotation.as_string():
                continue
            field, default = part.target.name, part.value
            options = {}
            if isinstance(default, Call):  # field(default=..., kw_only=True)
                options = {option.arg: option.value for option in default.keywords}
                default = options.get("default")
            if field == "_":  # KW_ONLY: the fields after it are keyword-only
                fields = keyword_only
                continue
            argument = f"{field}: {types[field]}"
            if default:
                argument += f" = {default.as_string()}"
            (keyword_only if "kw_only" in options else fields).append(argument)
    return positional + ["*"] * bool(keyword_only) + keyword_only


def _add_filters(templates: Environment) -> None:
    templates.filters["list_arguments"] = _list_arguments


def _is_new_member(class_: str, member: str) -> bool:
    """Check whether an inherited member is documented nowhere else, because no public base class has it."""
    package, _, name = class_.rpartition(".")
    if package not in OWN_NAMES:
        return False
    for base in _find_definition(package, name).ancestors():
        is_public = base.name in COMMON or not base.root().name.startswith(f"{SHIM}._shared.")
        if is_public and member in (method.name for method in base.methods()):
            return False
    return True


@cache
def _find_definition(module: str, name: str) -> Any:
    """Return the syntax tree of a module's name, or of a class's member, wherever it is defined."""
    top, *members = name.split(".")
    definition = next(AstroidManager().ast_from_module_name(module).igetattr(top))
    for member in members:
        definition = definition.getattr(member)[0]
    return definition


def _link_to_source(domain: str, name: dict[str, str]) -> str | None:
    """Return the address of a name's definition, for sphinx.ext.linkcode, or None for a module."""
    if domain != "py" or not name["fullname"]:
        return None
    definition = _find_definition(name["module"], name["fullname"])
    return get_line_address(Path(definition.root().file), definition.fromlineno)


def _replace_private_names(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith(PAGES):
        for private, public in PUBLIC_NAMES.items():
            source[0] = source[0].replace(private, public)


def _mark_english(app: Sphinx, page: nodes.document) -> None:
    """Mark docstrings on a page in another language as English, for screen readers."""
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
    AstroidManager.brain["module_denylist"] = _SkippedModules()
    packages_with_typed_imports = {*OWN_NAMES, f"{SHIM}.tensorflow._keras"}
    AstroidManager().register_transform(
        Module, _merge_typed_imports, lambda module: module.name in packages_with_typed_imports
    )
    AstroidManager().register_transform(
        Module, _show_made_functions, lambda module: module.name.startswith(f"{SHIM}.")
    )
    for extension in (
        "sphinx.ext.napoleon",
        "sphinx.ext.linkcode",
        "autoapi.extension",
        "tools.site.java",
    ):
        app.setup_extension(extension)
    app.config.autoapi_prepare_jinja_env = _add_filters
    app.config.linkcode_resolve = _link_to_source
    app.connect("autoapi-skip-member", _skip_member)
    app.connect("builder-inited", _add_java)
    app.connect("source-read", _replace_private_names)
    app.connect("doctree-read", _mark_english)
