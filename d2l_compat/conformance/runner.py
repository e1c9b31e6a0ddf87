"""Run the workers: one process for each implementation, since some libraries cannot be imported together."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from d2l_compat.conformance.adapters import DTYPES

# On the CPU, and quietly; what the user has set stays.
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# From right to wrong: a case asked in two dtypes has the worse status.
STATUSES = ("not offered", "passed", "differs", "failed", "error")


@dataclass
class Implementation:
    """The answers of one implementation."""

    name: str
    title: str
    versions: dict[str, str] = field(default_factory=dict)
    missing: str = ""  # why it could not be asked
    questions: list[dict[str, Any]] = field(default_factory=list)

    def cases(self) -> dict[str, dict[str, Any]]:
        """Return the worst answer to each case."""
        worst: dict[str, dict[str, Any]] = {}
        for question in self.questions:
            old = worst.get(question["case"])
            if old is None or STATUSES.index(question["status"]) > STATUSES.index(old["status"]):
                worst[question["case"]] = question
        return worst


def ask_implementation(
    name: str, pattern: str = "*", dtypes: Sequence[str] = DTYPES
) -> Implementation:
    """Ask one implementation; if its process ends, ask a new one the questions that are left."""
    implementation = Implementation(name, name)
    with tempfile.TemporaryDirectory() as folder:
        while True:
            path = Path(folder, "results")
            path.write_bytes(b"")
            skip = len(implementation.questions)
            process = run_worker(name, str(path), pattern, ",".join(dtypes), str(skip))
            lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            if not lines:
                implementation.missing = f"its process ended: {last_line(process.stderr)}"
                return implementation
            header, *questions = lines
            if "missing" in header:
                implementation.missing = header["missing"]
                return implementation
            implementation.title, implementation.versions = header["title"], header["versions"]
            implementation.questions += [x for x in questions if x["status"] != "started"]
            if process.returncode == 0:
                return implementation
            if not questions or questions[-1]["status"] != "started":
                implementation.missing = f"its process ended: {last_line(process.stderr)}"
                return implementation
            detail = f"its process ended with code {process.returncode}"
            implementation.questions.append(questions[-1] | {"status": "error", "detail": detail})


def run_worker(*arguments: str) -> "subprocess.CompletedProcess[str]":
    module = "d2l_compat.conformance.worker"
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    environment = ENVIRONMENT | os.environ
    # What an adapter in a file prints is shown, for its author.
    stdout = None if arguments[0].endswith(".py") else subprocess.DEVNULL
    return subprocess.run(
        command, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
