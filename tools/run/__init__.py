"""Executes pages: for `make`, and for nbval."""
