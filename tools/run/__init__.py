"""Execute pages, for `make` and for nbval."""
