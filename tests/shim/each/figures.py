"""Describe figures by their numbers and words, to compare those of two packages."""

from typing import Any

import numpy as np


def describe(figure: Any) -> list[dict[str, Any]]:
    """Describe each axes of a figure, without colours and line styles, which differ."""
    size = [round(float(inch), 2) for inch in figure.get_size_inches()]
    plots = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    return [
        {
            "size": size,
            "lines": [np.round(line.get_xydata(), 5).tolist() for line in axes.lines],
            "labels": (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()),
            "limits": np.round([axes.get_xlim(), axes.get_ylim()], 5).tolist(),
            "scales": (axes.get_xscale(), axes.get_yscale()),
            "legend": [text.get_text() for text in getattr(axes.get_legend(), "texts", [])],
            "texts": [(text.get_text(), getattr(text, "xy", None)) for text in axes.texts],
            "images": [describe_image(image) for image in axes.images],
            "is drawn": (axes.axison, axes.xaxis.get_visible(), axes.yaxis.get_visible()),
        }
        for axes in plots
    ]


def describe_image(image: Any) -> tuple[Any, ...]:
    values = np.round(np.asarray(image.get_array()), 5).tolist()
    limits = [float(f"{limit:.3g}") for limit in image.get_clim()]  # as ours are rounded
    return values, image.get_cmap().name, limits
