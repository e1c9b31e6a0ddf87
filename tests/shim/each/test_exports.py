"""Tests of a package's public names, which its exports.txt lists, one a line."""

import re
import sys
from collections.abc import Callable
from inspect import Parameter, Signature, isclass, signature
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from IPython.core.oinspect import Inspector

from d2l_compat._shared import borrowed
from tests.shim.each.adapter import Adapter
from tests.shim.each.oracle import PatchedModule
from tools.weave.lessons import ROOT

DOCS = (ROOT / "docs/en/coming-from-d2l.md").read_text(encoding="utf-8")
LEFT_OUT = {
    *re.findall(r"`(\w+)`", re.search("^Four names are left out: .*", DOCS, re.MULTILINE)[0])
}


@pytest.fixture(scope="module")
def exports(pytestconfig: pytest.Config) -> list[str]:
    folder = Path(__file__).with_name(pytestconfig.getoption("framework"))
    return folder.joinpath("exports.txt").read_text().split()


def test_exports_match_exports_txt(adapter: Adapter, exports: list[str]) -> None:
    assert sorted(adapter.exports) == exports


def import_star(adapter: Adapter) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(f"from {adapter.d2l.__name__} import *", names)
    return {name: value for name, value in names.items() if name != "__builtins__"}


def test_star_import_imports_only_exports_and_borrowed_names(
    adapter: Adapter, exports: list[str]
) -> None:
    names = {*exports, *borrowed.get_paths(adapter.d2l.__name__)}
    assert import_star(adapter).keys() == names
    assert names <= {*dir(adapter.d2l)}
    assert adapter.d2l.d2l is adapter.d2l


@pytest.mark.parametrize("version", ["1.0.3", "0.17.6"])
def test_upstreams_names_exist_or_docs_explain_why_not(
    adapter: Adapter, load_upstream: Callable[[str], Any], version: str
) -> None:
    upstream = vars(load_upstream(version))
    # Oracles add "int".
    names = {name for name in upstream if not name.startswith("__")} - {"int"}
    missing = {name for name in names if not hasattr(adapter.d2l, name)}
    assert missing <= LEFT_OUT
    ours = import_star(adapter)
    assert {name for name in names - missing if name[0] != "_"} <= ours.keys()
    for name in names & borrowed.get_paths(adapter.d2l.__name__).keys() - {"d2l", "plt"}:
        is_patched = isinstance(upstream[name], (PatchedModule, SimpleNamespace))  # by the oracle
        assert is_patched or ours[name] is upstream[name]


def test_borrowed_module_that_is_not_installed_raises_import_error(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(adapter.d2l, "pd", raising=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pd" not in adapter.d2l.__all__
    with pytest.raises(ImportError, match=r"pd is pandas, .* pip install pandas"):
        _ = adapter.d2l.pd


def test_exports_are_not_private_or_modules(adapter: Adapter, exports: list[str]) -> None:
    assert not [name for name in exports if name.startswith("_")]
    assert not [name for name in exports if isinstance(getattr(adapter.d2l, name), ModuleType)]


def test_missing_name_error_suggests_nearest_name(adapter: Adapter) -> None:
    adapter.assert_missing("MultiHeadAtention")
    with pytest.raises(AttributeError, match="the nearest names are MultiHeadAttention"):
        _ = adapter.d2l.MultiHeadAtention
    assert not hasattr(adapter.d2l, "__wrapped__")


# D2L 1.0's signatures.
SIGNATURES = {
    "AdditiveAttention": "num_hiddens, dropout",
    "BERTEncoder": "vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, max_len=1000",
    "BERTModel": "vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, max_len=1000",
    "EncoderBlock": "num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False",
    "MultiHeadAttention": "num_hiddens, num_heads, dropout, bias=False",
    "PositionWiseFFN": "ffn_num_hiddens, ffn_num_outputs",
    "Residual": "num_channels, use_1x1conv=False, strides=1",
    "TransformerEncoder": (
        "vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, dropout, use_bias=False"
    ),
    "TransformerEncoderBlock": "num_hiddens, ffn_num_hiddens, num_heads, dropout, use_bias=False",
}
# Parameters that D2L names differently in one framework.
FRAMEWORK_PARAMETERS = {
    ("tensorflow", "EncoderBlock"): {"use_bias": "bias"},
    ("tensorflow", "TransformerEncoder"): {"use_bias": "bias"},
    ("tensorflow", "TransformerEncoderBlock"): {"use_bias": "bias"},
    ("mxnet", "MultiHeadAttention"): {"bias": "use_bias"},
    ("jax", "Residual"): {"strides=1": "strides=(1, 1)"},
    ("paddle", "Residual"): {"num_channels": "input_channels, num_channels"},
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_jupyter_shows_layer_parameters(adapter: Adapter, name: str) -> None:
    if name not in adapter.exports:
        pytest.skip(f"{adapter.d2l.__name__} has no {name}")
    layer = getattr(adapter.d2l, name)
    parameters = [
        parameter.replace(annotation=Parameter.empty)
        for parameter in signature(layer).parameters.values()
        if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and parameter.name != "training"
    ]
    framework = adapter.d2l.__name__.rpartition(".")[2]
    expected = SIGNATURES[name]
    for old, new in FRAMEWORK_PARAMETERS.get((framework, name), {}).items():
        expected = expected.replace(old, new)
    assert str(Signature(parameters)) == f"({expected})"
    definition = Inspector(theme_name="nocolor").info(layer, oname=name)["init_definition"]
    assert definition.startswith(f"{name}(")
    assert all(parameter.name in definition for parameter in parameters)


def test_no_layer_hides_its_parameters(adapter: Adapter) -> None:
    variadic = set()
    for name in adapter.exports:
        member = getattr(adapter.d2l, name)
        if isclass(member) and member.__module__.startswith("d2l_compat."):
            kinds = {parameter.kind for parameter in signature(member).parameters.values()}
            if Parameter.VAR_POSITIONAL in kinds:
                variadic.add(name)
    assert variadic <= {"Encoder", "Decoder", "AttentionDecoder"}  # abstract classes
