"""D2L's own pages, out of a reader's copy of its repository, run on the shim."""
