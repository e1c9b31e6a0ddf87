"""Tests of the conformance suite: its files, its formulas, that it notices faults, and its runner."""

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d2l_compat.conformance import load_cases, make, reference, report
from d2l_compat.conformance.__main__ import main
from d2l_compat.conformance.files import FOLDER, Array, Arrays, Case, read_safetensors
from d2l_compat.conformance.runner import Implementation, ask_implementation
from d2l_compat.conformance.worker import find_problems
from d2l_compat.frameworks import FRAMEWORKS
from tests.shim.reference import gradient
from tools.weave.lessons import ROOT

CASES = {case.name: case for case in load_cases()}
Compute = Callable[[Arrays, Mapping[str, Any]], Arrays]


# Files


def test_files_are_what_the_generator_makes(tmp_path: Path) -> None:
    make.make(tmp_path)
    for name in ("cases.safetensors", "cases.json", "cases.few.json"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_files_are_small_and_inputs_exact_in_every_dtype() -> None:
    assert len(CASES) >= 120
    assert sum(path.stat().st_size for path in FOLDER.glob("cases*")) < 2_000_000
    for case in CASES.values():
        for name, x in case.inputs.items():
            assert x.dtype.kind != "f" or np.array_equal(x.astype("float16"), x), case.name
            assert name == "bias" or np.isfinite(x).all()
        assert all(np.isfinite(x).all() for x in case.answers.values())


def test_few_cases_are_plain_json() -> None:
    text = (FOLDER / "cases.few.json").read_text(encoding="utf-8")
    # NaN and Infinity are not JSON.
    few = json.loads(text, parse_constant=lambda name: pytest.fail(name))["cases"]
    assert len(few) == len(make.FEW) == 6
    for entry in few:
        case = CASES[entry["name"]]
        for name, x in (case.inputs | case.answers).items():
            assert np.array_equal(x, entry["arrays"][name])


def test_other_readers_understand_the_format() -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="Paddle requires safetensors")
    ours = read_safetensors(FOLDER / "cases.safetensors")
    theirs = safetensors.load_file(FOLDER / "cases.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(x, theirs[name]) for name, x in ours.items())


# Formulas


def test_decimal_functions_agree_with_math() -> None:
    numbers = np.linspace(-30, 30, 101)
    assert np.allclose(reference.exp(numbers), np.exp(numbers), rtol=1e-15, atol=0)
    assert np.allclose(reference.tanh(numbers), np.tanh(numbers), rtol=1e-15, atol=0)
    for angle in (0.0, 0.5, 3.0, -4000.0):
        expected = math.cos(angle), math.sin(angle)
        assert np.allclose(reference.rotate_by(reference.Decimal(angle)), expected, atol=1e-15)


DIFFERENTIATED = (
    *("more_queries", "value_width", "bias_per_head", "bias_empty_row", "mask_keys"),
    *("causal_lengths_mask_bias_3x5", "window_lengths", "scale_small", "softcap_bias"),
    *("softcap_scale", "grouped_causal_2x5", "grouped_4_1", "multi_head_query_width"),
    *("multi_head_score_bias", "multi_head_grouped_causal", "multi_head_cross_widths_bias"),
    *("rope_halves_partial_offset", "rope_interleaved_per_row", "alibi_3", "alibi_3x5"),
    *("relative_2", "relative_causal", "cached_sinks_rope_halves", "linear_decay"),
)


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_match_finite_differences(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for function in (np.exp, np.tanh):  # faster
        monkeypatch.setattr(reference, function.__name__, function)
    monkeypatch.setattr(reference, "rotate_by", lambda angle: (math.cos(angle), math.sin(angle)))
    case = CASES[name]
    rng = np.random.default_rng(0)
    for x in case.gradients:
        # The slope along a random line; an infinite bias stays.
        line = np.where(np.isfinite(case[x]), rng.normal(size=case[x].shape), 0)

        def total(step: Array, x: str = x, line: Array = line) -> float:
            inputs = case.inputs | {x: case[x] + step[0] * line}
            output = reference.compute(case.kind, inputs, case.options)["output"]
            return float((output * case["direction"]).sum())

        slope = (case.answers[f"gradient_{x}"] * line).sum()
        assert gradient(total, [0.0], step=1e-4)[0] == pytest.approx(slope, rel=1e-8, abs=1e-8), x


def test_every_kind_with_gradients_is_differentiated() -> None:
    kinds = {case.kind for case in CASES.values() if case.gradients}
    assert kinds == {CASES[name].kind for name in DIFFERENTIATED}


# Faults, one of each kind


def recompute(case: Case, options: dict[str, Any] | None = None, **inputs: Array | None) -> Arrays:
    """Return the answers to the case with other inputs, without those that are None, and other options."""
    changed = {name: x for name, x in (case.inputs | inputs).items() if x is not None}
    return reference.compute(case.kind, changed, {**case.options, **(options or {})})


def put_in_empty_rows(case: Case, value: float) -> Arrays:
    is_empty = case.answers["weights"].sum(axis=-1, keepdims=True) == 0
    return {"output": np.where(is_empty, value, case.answers["output"])}


def cap_masked_scores(case: Case) -> Arrays:
    """Cap the scores after the mask, which then hides nothing completely."""
    cap = case.options["softcap"]
    scores = case["queries"] @ case["keys"].swapaxes(2, 3) / math.sqrt(case["keys"].shape[3])
    scores = cap * np.tanh(np.where(case["mask"], scores, -np.inf) / cap)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return {"output": weights @ case["values"]}


def simple_slopes(case: Case) -> Arrays:
    heads = np.arange(1, case.options["num_heads"] + 1)
    return {"output": 2.0 ** (-8 * heads / len(heads))}


def regroup(case: Case) -> Arrays:
    """Let query head h read key head h modulo their number."""
    return recompute(
        case, **{name: np.tile(case[name], (1, 2, 1, 1)) for name in ("keys", "values")}
    )


FAULTS: dict[str, tuple[str, Callable[[Case], Arrays]]] = {
    "causal mask at the wrong end": (
        "causal_3x5",
        lambda c: recompute(c, {"causal": "upper_left"}),
    ),
    "mask dropped": ("mask_shared", lambda c: recompute(c, mask=None)),
    "mask inverted": ("mask_per_row", lambda c: recompute(c, mask=~c["mask"])),
    "length off by one": ("lengths_some", lambda c: recompute(c, lengths=c["lengths"] + 1)),
    "bias dropped": ("bias_shared", lambda c: recompute(c, bias=0 * c["bias"])),
    "mean for a row that sees nothing": ("mask_all_empty", lambda c: put_in_empty_rows(c, 0.5)),
    "NaN for a row that sees nothing": ("mask_empty_row", lambda c: put_in_empty_rows(c, np.nan)),
    "window off by one": ("window_3", lambda c: recompute(c, {"window": 4})),
    "heads in another order": ("grouped_4_2", regroup),
    "default scale": ("scale_1", lambda c: recompute(c, {"scale": None})),
    "softcap after the mask": ("softcap_mask", cap_masked_scores),
    "RoPE in the other layout": ("rope_halves", lambda c: recompute(c, {"layout": "interleaved"})),
    "RoPE backwards": ("rope_halves", lambda c: recompute(c, positions=-c["positions"])),
    "RoPE of the first row": (
        "rope_halves_per_row",
        lambda c: recompute(c, positions=c["positions"][0]),
    ),
    "simple slopes": ("alibi_slopes_6", simple_slopes),
    "buckets of the other sign": (
        "t5_one_way_8",
        lambda c: recompute(c, distances=-c["distances"]),
    ),
    "window of the cache off by one": ("cached_window", lambda c: recompute(c, {"window": 2})),
    "sinks forgotten": ("cached_sinks", lambda c: recompute(c, {"num_sinks": 0})),
    "decay forgotten": ("linear_decay", lambda c: recompute(c, decay=np.ones(4))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_noticed(fault: str) -> None:
    name, compute = FAULTS[fault]
    case = CASES[name]
    assert find_problems(case, recompute(case), "float64") == []
    problems = find_problems(case, compute(case), "float32")
    assert any(problem.startswith(("output", "chunks")) for problem in problems), problems


# Implementations; the project's own are asked in tests/shim/each/test_agreement.py and test_frameworks_agree.py


def find_examples(language: str = "en") -> list[str]:
    """Return the two adapters on the page: one in NumPy, one with PyTorch's tensors."""
    page = (ROOT / "docs" / language / "conformance.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def ask_file(folder: Path, program: str, pattern: str) -> Implementation:
    (folder / "mine.py").write_text(program, encoding="utf-8")
    return ask_implementation(str(folder / "mine.py"), pattern)


def test_example_in_the_docs_works(tmp_path: Path) -> None:
    assert [x.count("\n") for x in find_examples("zh-TW")] == [
        x.count("\n") for x in find_examples()
    ]
    answers = ask_file(tmp_path, find_examples()[0], "[a-m]*").cases()
    statuses = {name: answer["status"] for name, answer in answers.items()}
    assert statuses["mask_shared"] == statuses["causal_6x6"] == "passed"
    assert statuses["grouped_4_2"] == statuses["multi_head_1"] == "not offered"
    assert {*statuses.values()} == {"passed", "not offered"}


def test_example_with_tensors_works(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the example needs PyTorch")
    answers = ask_file(tmp_path, find_examples()[1], "plain").cases()
    assert answers["plain"]["status"] == "passed"
    assert {"output", "weights", "gradient_queries"} <= {*answers["plain"]["compared"]}


def test_runner_survives_errors_crashes_and_missing_packages(tmp_path: Path) -> None:
    crash = 'if case.name == "causal_2x2":\n        import os\n        os._exit(3)'
    error = 'if case.name == "causal_1x1":\n        raise OSError("no disk")'
    start = "def compute(case):\n"
    program = find_examples()[0].replace(start, f"{start}    {crash}\n    {error}\n")
    answers = ask_file(tmp_path, program, "causal_?x?")
    cases = answers.cases()
    assert cases["causal_2x2"]["detail"] == "its process ended with code 3"
    assert re.fullmatch(r"OSError: no disk \(mine.py, line \d+\)", cases["causal_1x1"]["detail"])
    assert cases["causal_6x6"]["status"] == "passed"
    assert report.has_failures(answers)
    text = report.describe_implementation(answers, CASES)
    assert "error: causal_1x1, float32: OSError: no disk" in text
    missing = ask_file(tmp_path, "import absent_package", "plain").missing
    assert missing == "not installed: No module named 'absent_package'"
    misspelt = program.replace('"value_width"', '"value_widht"')
    assert (
        "feature of attention: got 'value_widht'" in ask_file(tmp_path, misspelt, "plain").missing
    )
    assert "got no adapter; need" in ask_file(tmp_path, "x = 1", "plain").missing
    broken = ask_file(tmp_path, "1 / 0", "plain")
    assert broken.missing == "its process ended: ZeroDivisionError: division by zero"
    assert report.has_failures(broken)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nobody"], "implementation: got nobody"),
        (["--cases", "nothing"], "--cases: got nothing"),
        (["--cases", "plain", "--write-docs", "docs"], "the tables need every implementation"),
    ],
)
def test_wrong_arguments_are_rejected(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert error in capsys.readouterr().err


def test_failure_names_convention_and_report() -> None:
    question = {"case": "causal_3x5", "dtype": "float32", "status": "failed", "detail": "output"}
    text = report.describe_implementation(Implementation("x", "X", {}, "", [question]), CASES)
    assert "The last query stands at the last key" in text
    assert "pytorch/pytorch#108108" in text


@pytest.mark.parametrize("language", report.WORDS)
def test_docs_have_tables_of_every_implementation_and_case(language: str) -> None:
    page = (ROOT / "docs" / language / "conformance.md").read_text(encoding="utf-8")
    table = page.split(report.BEGIN)[1].split(report.END)[0]
    for framework in FRAMEWORKS.values():
        (row,) = re.findall(rf"\| `d2l_compat\.{framework.module}` \|.*", table)
        counts = re.findall(r"(\d+)/(\d+)", row)
        assert all(passed == asked for passed, asked in counts)
    # A row with three cells names the cases that an implementation got wrong.
    wrong = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", " ".join(wrong))} <= {*CASES}
    assert len(wrong) > 10
