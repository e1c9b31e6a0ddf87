"""``python -m tools.site.preview``: draw docs/preview.png, for README and for previews of the site's pages."""

from pathlib import Path

import numpy as np

from d2l_compat.frameworks import FRAMEWORKS
from tools.weave.lessons import ROOT

FILE = ROOT / "docs" / "preview.png"
SIZE = 1200, 630  # pixels: previews are cropped to this shape
SENTENCE = "the cat sat because it purred"
VECTORS = np.array([[0, 0], [3, 0], [0, 2], [0, 0], [1, 0], [0, 2]])  # each word as (thing, action)
INK, FAINT = "#1b1f24", "#57606a"


def draw(file: Path) -> None:
    """Draw a sentence and the attention weights between its words, as a PNG."""
    from matplotlib.figure import Figure

    weights = np.exp(VECTORS @ VECTORS.T)
    weights /= weights.sum(axis=1, keepdims=True)
    words = SENTENCE.split()
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    figure.text(0.06, 0.66, "Attention", size=44, weight="bold", color=INK)
    figure.text(0.06, 0.54, "in every framework", size=27, color=INK)
    titles = [framework.title for framework in FRAMEWORKS.values()]
    half = (len(titles) + 1) // 2
    for line, names in enumerate((titles[:half], titles[half:])):
        figure.text(0.06, 0.34 - 0.06 * line, "  ·  ".join(names), size=16, color=FAINT)
    axes = figure.add_axes((0.60, 0.10, 0.36, 0.36 * SIZE[0] / SIZE[1]))
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(
        range(len(words)), words, size=15, color=INK, rotation=40, ha="left", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(words)), words, size=15, color=INK)
    axes.tick_params(length=0, top=True, bottom=False, labeltop=True, labelbottom=False)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.savefig(file, metadata={"Software": None})


if __name__ == "__main__":
    draw(FILE)
