"""All frameworks, from the same weights and inputs, against the float64 reference.

``python -m tests.compare_frameworks`` prints the table of the largest differences and puts it
into the README.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from d2l_compat.frameworks import FRAMEWORKS
from tests import reference
from tests.faces.cases import TOLERANCE, make_weights, reference_multi_head
from tools.run.java import SPEC, TARGET
from tools.weave.lessons import ROOT

README = ROOT / "README.md"
# One column of the table for each, the three gradients in one.
QUANTITIES = {"output": "output", "weights": "weights", "gradient": "gradients", "P": "$P$"}
MARKERS = "<!-- make agreement -->\n", "<!-- end of make agreement -->\n"

# How many times larger or smaller than in the table a difference may be: it is rounding, which
# another processor does in another order.
FACTOR = 4

Arrays = dict[str, np.ndarray]
Differences = dict[str, float]  # by quantity


def draw(dtype: str) -> Arrays:
    """Weights and inputs, the same numbers in either dtype; one query has no valid key."""
    rng = np.random.default_rng(2017)
    queries, keys, values = rng.normal(size=(2, 4, 20)), *rng.normal(size=(2, 2, 6, 30))
    case = {
        "queries": queries,
        "keys": keys,
        "values": values[..., :25],
        "direction": rng.normal(size=(2, 4, 100)),
        **make_weights((30, 20, 25), 100, bias=True),
    }
    rounded = {name: array.astype("float32").astype(dtype) for name, array in case.items()}
    return rounded | {
        "valid_lens": np.array([[6, 3, 0, 1], [2, 5, 4, 6]]),
        "num_heads": np.array(5),
        "max_len": np.array(1000),
        "num_hiddens_of_P": np.array(101),
    }


def expected() -> Arrays:
    case = draw("float64")
    inputs = [case[name] for name in ("queries", "keys", "values", "valid_lens")]
    output, weights = reference_multi_head(case, 5, *inputs)
    answers = {"output": output, "weights": weights}
    answers["P"] = reference.positional_encoding(1000, 101)[None]
    for which, name in enumerate(("queries", "keys", "values")):

        def loss(x: np.ndarray, which: int = which) -> float:
            given = [*inputs[:which], x, *inputs[which + 1 :]]
            return float((reference_multi_head(case, 5, *given)[0] * case["direction"]).sum())

        answers[f"gradient_{name}"] = reference.gradient(loss, inputs[which])
    return answers


def ask(framework: str, dtype: str) -> Arrays:
    """What a framework answers, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "given.npz"), Path(folder, "answers.npz")
        np.savez(given, **draw(dtype))
        if not FRAMEWORKS[framework].is_python:
            classes = f"{TARGET}/test-classes:{TARGET}/classes:{TARGET}/lib/*"
            command = ["java", "-cp", classes, "d2l.Answers"]
        else:
            command = [sys.executable, "-m", "tests.faces.answers", framework]
        done = subprocess.run(
            [*command, given, answers],
            cwd=ROOT,
            env=os.environ | SPEC["env"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{framework}: {done.stderr}"
        return dict(np.load(answers))


def differences(answers: Arrays, dtype: str, reference_answers: Arrays) -> Differences:
    """The largest of each quantity."""
    assert answers.keys() == reference_answers.keys()
    largest = dict.fromkeys(QUANTITIES, 0.0)
    for name, want in reference_answers.items():
        got = answers[name]
        assert (got.shape, got.dtype) == (want.shape, dtype), name
        assert np.isfinite(got).all(), name
        quantity = name.partition("_")[0]
        largest[quantity] = max(largest[quantity], float(np.abs(got - want).max()))
    return largest


def table() -> str:
    """Markdown: a row for each framework, a column for each dtype and quantity."""
    answers = expected()
    head = [f"{title}, {dtype}" for dtype in TOLERANCE for title in QUANTITIES.values()]
    rows = [["", *head], [":--", *["--:"] * len(head)]]
    for name, framework in FRAMEWORKS.items():
        found = [differences(ask(name, dtype), dtype, answers) for dtype in TOLERANCE]
        rows.append([framework.title, *(f"{x:.0e}" for largest in found for x in largest.values())])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def in_readme() -> tuple[str, str, str]:
    """The README before, in and after the table."""
    before, start, rest = README.read_text(encoding="utf-8").partition(MARKERS[0])
    shown, end, after = rest.partition(MARKERS[1])
    return before + start, shown, end + after


def shown(framework: str) -> dict[str, list[float]]:
    """What the table in README has for a framework, by dtype, in the order of QUANTITIES."""
    rows = [line.strip("| ").split(" | ") for line in in_readme()[1].splitlines()]
    (row,) = (row[1:] for row in rows if row[0] == FRAMEWORKS[framework].title)
    size = len(QUANTITIES)
    return {dtype: [*map(float, row[i * size :][:size])] for i, dtype in enumerate(TOLERANCE)}


def assert_as_shown(framework: str, dtype: str, largest: Differences) -> None:
    """README's table is of today's code."""
    for quantity, said in zip(largest, shown(framework)[dtype], strict=True):
        found = largest[quantity]
        assert max(said, found) <= FACTOR * min(said, found), (
            f"README has {said:.0e} for {quantity}, {dtype}, in {FRAMEWORKS[framework].title}, "
            f"and it is {found:.0e}: run `make agreement`"
        )


if __name__ == "__main__":
    made = table()
    print(made, end="")
    before, _, after = in_readme()
    README.write_text(before + made + after, encoding="utf-8")
