"""Weave the lessons into notebooks, execute them, and compare their outputs."""

import os

# No tool draws on a screen, and importing matplotlib fails if this variable names an unknown backend.
os.environ.pop("MPLBACKEND", None)
