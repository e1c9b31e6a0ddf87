"""matplotlib's SVG, made fit for the viewers there are.

matplotlib puts a heat map into an SVG as a picture with a pixel a cell, which many a viewer blurs. Here
each cell is a square of its own, and a colour bar a gradient; and the drawing says what it shows.
"""

import re
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

# The names of what is drawn anew: of its artists, and of its elements in the SVG.
CELLS = "cells_"
BAR = "bar"

PICTURE = re.compile(
    rf'<image [^>]*id="(?P<name>{CELLS}\d+)"[^>]*(?P<place>transform="matrix[^"]*")[^>]*/>'
)
STEPS = re.compile(rf'<g id="{BAR}">(.*?)</g>', re.DOTALL)
CORNER = re.compile(r"[ML] ([-\d.]+) ([-\d.]+)")
STOPS = 33  # of a gradient: more than a colour map is made from


def vectorize_images(svg: str, figure: Any) -> str:
    """The same drawing, of shapes alone."""
    images = {image.get_gid(): image for axes in figure.axes for image in axes.get_images()}

    def cells(picture: re.Match[str]) -> str:
        image = images[picture["name"]]
        squares = _squares(image.to_rgba(image.get_array(), bytes=True))
        return f'<g id="{picture["name"]}" {picture["place"]} shape-rendering="crispEdges">{squares}</g>'

    def bar(steps: re.Match[str]) -> str:
        corners = [(float(x), float(y)) for x, y in CORNER.findall(steps[1])]
        return _gradient(corners, images[f"{CELLS}1"].get_cmap())

    # In one line: a notebook would hold each of its lines as one of its own.
    return re.sub(r"\s*\n\s*", " ", STEPS.sub(bar, PICTURE.sub(cells, svg)))


def add_alt_text(svg: str, description: str) -> str:
    """With a title and a description, for who cannot see it, where the drawing itself is in a page."""
    title = re.split("[,.，。]", description)[0]
    said = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return re.sub(r"<svg[^>]*>", lambda start: f'{start[0][:-1]} role="img">{said}', svg, count=1)


def _squares(colors: Any) -> str:
    """A path for each colour, in the order in which they come; transparent cells are left out."""
    paths: dict[str, list[str]] = {}
    for row, column in np.ndindex(colors.shape[:2]):
        *color, alpha = colors[row, column]
        if alpha:
            square = f"M{column} {row}h1v1h-1z"
            paths.setdefault("#{:02x}{:02x}{:02x}".format(*color), []).append(square)
    return "".join(f'<path fill="{color}" d="{"".join(d)}"/>' for color, d in paths.items())


def _gradient(corners: list[tuple[float, float]], colors: Any) -> str:
    """From the lowest value, below, to the highest."""
    (left, top), (right, bottom) = np.min(corners, axis=0), np.max(corners, axis=0)
    stops = "".join(
        f'<stop offset="{share:g}" stop-color="#{red:02x}{green:02x}{blue:02x}"/>'
        for share in np.linspace(0, 1, STOPS)
        for red, green, blue, _ in [colors(share, bytes=True)]
    )
    # Other drawings on a page have gradients, too: the same name, then, is the same gradient.
    name = f"{BAR}_{sha256(stops.encode()).hexdigest()[:8]}"
    place = f'x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}"'
    return (
        f'<defs><linearGradient id="{name}" x1="0" y1="1" x2="0" y2="0">{stops}</linearGradient></defs>'
        f'<rect id="{BAR}" {place} fill="url(#{name})"/>'
    )
