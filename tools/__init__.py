"""Weaves the lessons into notebooks, executes them, and compares what they show."""

import os

# No tool draws on a screen, and matplotlib is not imported where this names no backend.
os.environ.pop("MPLBACKEND", None)
