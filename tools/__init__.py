"""Weaves the lessons into notebooks, executes them, and compares what they show."""

import os

# No tool draws on a screen, and importing matplotlib fails if this variable names an unknown backend.
os.environ.pop("MPLBACKEND", None)
