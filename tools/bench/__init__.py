"""How long things take, each beside others in one run. See docs/en/regression.md and coming-from-d2l.md."""
