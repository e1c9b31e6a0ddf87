"""Improvements of matplotlib's SVG: sharp heat maps, and text alternatives.

matplotlib embeds a heat map as an image with one pixel per cell, which many viewers blur. Here each cell becomes
a square, and a colour bar a gradient.
"""

import re
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

# The gid of the artists that are replaced, which is the id of their elements in the SVG.
CELLS = "cells_"
BAR = "bar"

IMAGE = re.compile(
    rf'<image [^>]*id="(?P<name>{CELLS}\d+)"[^>]*(?P<transform>transform="matrix[^"]*")[^>]*/>'
)
STEPS = re.compile(rf'<g id="{BAR}">(.*?)</g>', re.DOTALL)
CORNER = re.compile(r"[ML] ([-\d.]+) ([-\d.]+)")
STOPS = 33  # in a gradient: more than the colours that define a colour map


def vectorize_images(svg: str, figure: Any) -> str:
    """Replace the images in an SVG of ``figure`` by squares, and its colour bar by a gradient."""
    images = {image.get_gid(): image for axes in figure.axes for image in axes.get_images()}

    def draw_cells(match: re.Match[str]) -> str:
        image = images[match["name"]]
        squares = _squares(image.to_rgba(image.get_array(), bytes=True))
        return f'<g id="{match["name"]}" {match["transform"]} shape-rendering="crispEdges">{squares}</g>'

    def draw_color_bar(match: re.Match[str]) -> str:
        corners = [(float(x), float(y)) for x, y in CORNER.findall(match[1])]
        return _gradient(corners, images[f"{CELLS}1"].get_cmap())

    svg = IMAGE.sub(draw_cells, svg)
    svg = STEPS.sub(draw_color_bar, svg)
    # Lines are joined, since a notebook stores every line as a separate string.
    return re.sub(r"\s*\n\s*", " ", svg)


def add_alt_text(svg: str, description: str) -> str:
    """Add a title and a description, for readers who cannot see the drawing."""
    title = re.split("[,.，。]", description)[0]
    alt_text = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return re.sub(r"<svg[^>]*>", lambda tag: f'{tag[0][:-1]} role="img">{alt_text}', svg, count=1)


def _squares(colors: Any) -> str:
    """Return a path for each colour, in the order in which the colours first occur; omit transparent cells."""
    paths: dict[str, list[str]] = {}
    for row, column in np.ndindex(colors.shape[:2]):
        *color, alpha = colors[row, column]
        if alpha:
            square = f"M{column} {row}h1v1h-1z"
            paths.setdefault("#{:02x}{:02x}{:02x}".format(*color), []).append(square)
    return "".join(f'<path fill="{color}" d="{"".join(d)}"/>' for color, d in paths.items())


def _gradient(corners: list[tuple[float, float]], colors: Any) -> str:
    """Return a rectangle with a gradient from the lowest value, at its bottom, to the highest."""
    (left, top), (right, bottom) = np.min(corners, axis=0), np.max(corners, axis=0)
    stops = "".join(
        f'<stop offset="{offset:g}" stop-color="#{red:02x}{green:02x}{blue:02x}"/>'
        for offset in np.linspace(0, 1, STOPS)
        for red, green, blue, _ in [colors(offset, bytes=True)]
    )
    # The id depends on the stops, since all drawings on a web page share the ids.
    name = f"{BAR}_{sha256(stops.encode()).hexdigest()[:8]}"
    rectangle = f'x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}"'
    return (
        f'<defs><linearGradient id="{name}" x1="0" y1="1" x2="0" y2="0">{stops}</linearGradient></defs>'
        f'<rect id="{BAR}" {rectangle} fill="url(#{name})"/>'
    )
