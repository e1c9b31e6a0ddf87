"""Run D2L's own pages, from a reader's copy of its repository, on the shim."""
