"""Train the figure's translator, and write its weights and the language to shared/weights.js.

The model is that of seed 0 of the PyTorch program. From the root of the repository, in its environment:

    python -m lessons.transformer.live.export

Each row of a matrix is stored as whole numbers from -127 to 127 and a scale: first a byte b for each row of all
matrices, whose scale is 2 ** (-b / 16), then the numbers of all rows, one byte each.
"""

import base64
import json
import types
from pathlib import Path

import matplotlib as mpl
import numpy as np

FOLDER = Path(__file__).parent
PROGRAM = FOLDER.parent / "code.pytorch.py"
SMALLEST = (
    0.0021  # the largest number of a row, at least, so that its b fits into a byte
)
HEADER = """\
// The trained translator of the figure, and the words it knows: written by live/export.py, not by hand.
"use strict";
"""


def train():
    """Run the program's cells up to "train", for one seed; return its names."""
    code = PROGRAM.read_text("utf-8")
    code = code[: code.index("# %% translate\n")].replace(
        "for seed in range(5)", "for seed in [0]"
    )
    mpl.use("agg")
    module = types.ModuleType("program")
    exec(compile(code, PROGRAM, "exec"), module.__dict__)  # noqa: S102
    return module


def quantize(parameters):
    """Return the shapes of parameters by name, and their scales and whole numbers as bytes."""
    shapes, scales, numbers = {}, [], []
    for name, parameter in parameters.items():
        rows = np.atleast_2d(parameter.numpy()).astype(float)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        halvings = np.floor(-16 * np.log2(np.maximum(largest, SMALLEST) / 127))
        shapes[name] = list(rows.shape)
        scales.append(halvings.astype(np.uint8).tobytes())
        numbers.append(np.rint(rows * 2 ** (halvings / 16)).astype(np.int8).tobytes())
    return shapes, b"".join(scales + numbers)


def main():
    program = train()
    shapes, data = quantize(program.translators[0].state_dict())
    language = {
        "nouns": program.NOUNS,
        "adjectives": program.ADJECTIVES,
        "verbs": program.VERBS,
        "plurals": program.PLURALS,
        "source": program.SOURCE_WORDS,
        "target": program.TARGET_WORDS,
    }
    weights = {"heads": 4, "shapes": shapes, "data": base64.b64encode(data).decode()}
    lines = [
        f"d2lLive.{name} = {json.dumps(value, separators=(',', ':'))};\n"
        for name, value in [("language", language), ("weights", weights)]
    ]
    path = FOLDER / "shared" / "weights.js"
    path.write_text(HEADER + "".join(lines), "utf-8")
    print(f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
