"""The suite's files: ``cases.json`` describes the cases, ``cases.safetensors`` has their arrays, as CASE/ARRAY."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import message

Array = NDArray[Any]
Arrays = dict[str, Array]

FOLDER = Path(__file__).parent
FORMAT = 1
MASKS = "causal", "lengths", "mask", "window"
DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL"}


@dataclass(frozen=True)
class Case:
    """One question: inputs and options, and the right answers.

    ``features`` are what an implementation must offer to be asked; ``gradients`` are the names of the inputs whose
    gradients of sum(direction * output) are among the ``answers``, which are ``output``, and perhaps ``weights``,
    ``gradient_NAME`` and ``chunks_SIZE``.
    """

    name: str
    kind: str
    features: frozenset[str]
    options: Mapping[str, Any]
    inputs: Arrays
    answers: Arrays
    convention: str
    issues: tuple[str, ...]
    tolerances: Mapping[str, float]

    def __getitem__(self, name: str) -> Array:
        return self.inputs[name]

    def get(self, name: str) -> Array | None:
        return self.inputs.get(name)

    @property
    def gradients(self) -> list[str]:
        return [name[9:] for name in self.answers if name.startswith("gradient_")]

    def visible_keys(self, *masks: str) -> Array | None:
        """Join masks, from "causal", "lengths", "mask" and "window"; None if the case has none of them.

        The result is True for the keys that a query sees, shape (batch, heads, queries, keys). Raises ValueError for
        another name.
        """
        from d2l_compat.conformance.reference import visible_keys

        for name in masks:
            if name not in MASKS:
                raise ValueError(message("mask", repr(name), f"one of {', '.join(MASKS)}"))
        arrays = {name: x for name, x in self.inputs.items() if name in masks}
        options = {name: x for name, x in self.options.items() if name in masks}
        if not arrays and not options:
            return None
        queries, keys = self["queries"], self["keys"]
        batch, steps = queries.shape[0], (queries.shape[-2], keys.shape[-2])
        num_heads = self.options["num_heads"] if queries.ndim == 3 else queries.shape[1]
        return visible_keys(arrays, options, (batch, num_heads, *steps))

    def cast(self, dtype: str) -> "Case":
        """Return the case with floating-point inputs of another dtype, in which they are exact."""
        inputs = {n: x.astype(dtype) if x.dtype.kind == "f" else x for n, x in self.inputs.items()}
        return Case(**{**self.__dict__, "inputs": inputs})


def load_cases(folder: Path = FOLDER) -> list[Case]:
    """Load all cases, in the order of the manifest."""
    manifest = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    if manifest["format"] != FORMAT:
        raise ValueError(message("cases.json", f"format {manifest['format']}", f"format {FORMAT}"))
    arrays = read_safetensors(folder / "cases.safetensors")
    cases = []
    for entry in manifest["cases"]:
        parts = {
            role: {name: arrays[f"{entry['name']}/{name}"] for name in entry[role]}
            for role in ("inputs", "answers")
        }
        cases.append(
            Case(
                name=entry["name"],
                kind=entry["kind"],
                features=frozenset(entry["features"]),
                options=entry["options"],
                convention=entry["convention"],
                issues=tuple(entry["issues"]),
                tolerances=manifest["tolerances"] | entry.get("tolerances", {}),
                **parts,
            )
        )
    return cases


def read_safetensors(path: Path) -> Arrays:
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    names = {short: name for name, short in DTYPES.items()}
    arrays = {}
    for name, entry in json.loads(data[8:start]).items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], np.dtype(names[entry["dtype"]]).newbyteorder("<"))
        arrays[name] = array.reshape(entry["shape"]).astype(names[entry["dtype"]])
    return arrays


def write_safetensors(path: Path, arrays: Arrays) -> None:
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    end = 0
    # The format wants no array to begin at an odd address, so wide numbers come first.
    for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name)):
        x = arrays[name]
        parts.append(x.astype(x.dtype.newbyteorder("<")).tobytes())
        begin, end = end, end + len(parts[-1])
        header[name] = {
            "dtype": DTYPES[x.dtype.name],
            "shape": x.shape,
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
