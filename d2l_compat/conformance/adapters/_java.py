"""The project's Java layers: one run of Java, d2l.Answers in the folder of Java's tests, answers every case."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from d2l_compat.conformance.adapters import DTYPES, Adapter
from d2l_compat.conformance.adapters.ours import OFFERS
from d2l_compat.conformance.files import Arrays, Case, load_cases

TARGET = Path(__file__).parents[2] / "java" / "target"

if not (TARGET / "test-classes").exists() or not shutil.which("java"):
    raise ImportError("the Java layers are not built, or there is no Java")


@cache
def run_java() -> "tuple[subprocess.CompletedProcess[str], Arrays]":
    """Ask all cases that are offered, in both dtypes; return the answers by DTYPE/CASE/ANSWER."""
    questions = {}
    for case in load_cases():
        if case.kind in OFFERS and case.features <= OFFERS[case.kind]:
            for dtype in DTYPES:
                prefix = f"{case.kind}/{dtype}/{case.name}"
                arrays = list_arrays(case.cast(dtype), dtype)
                questions |= {f"{prefix}/{name}": x for name, x in arrays.items()}
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
        np.savez(inputs, **questions)  # type: ignore[arg-type]
        classes = os.pathsep.join(
            str(TARGET / path) for path in ("test-classes", "classes", "lib/*")
        )
        settings = {
            "DJL_CACHE_DIR": str(TARGET / "djl"),
            "DJL_OFFLINE": "true",
            "OPT_OUT_TRACKING": "true",
            "OMP_NUM_THREADS": "1",
        }
        process = subprocess.run(
            ["java", "-cp", classes, "d2l.Answers", inputs, outputs],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            return process, {}
        with np.load(outputs) as answers:
            return process, dict(answers)


def list_arrays(case: Case, dtype: str) -> Arrays:
    """Return the case's inputs and options by name; an option OPTION that is a word is named OPTION_WORD.

    A mask is minus infinity for the keys that it hides, and otherwise 0.
    """
    arrays = dict(case.inputs)
    if "mask" in arrays:
        arrays["mask"] = np.where(arrays["mask"], 0, -np.inf).astype(dtype)
    for name, option in case.options.items():
        if isinstance(option, str):
            arrays[f"{name}_{option}"] = np.array(1)
        else:
            arrays[name] = np.array(option)
    return arrays


def compute(case: Case) -> Arrays:
    process, answers = run_java()
    if process.returncode:
        raise RuntimeError(process.stderr)
    dtypes = [x.dtype.name for x in case.inputs.values() if x.dtype.kind == "f"]
    prefix = f"{(dtypes or DTYPES)[0]}/{case.name}/"
    return {name.removeprefix(prefix): x for name, x in answers.items() if name.startswith(prefix)}


adapter = Adapter("d2l_compat.java", ("d2l-compat",), OFFERS, compute)
